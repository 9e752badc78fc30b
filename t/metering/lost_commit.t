# A download session that was committed although the server never learned of it, because the
# connection broke while the answer to COMMIT was on its way. Nothing was sent, so it costs nothing.
#
# pgsql: SQLite is in the process: no answer is lost
use strict;
use warnings;

use Test::More;

use MDL::Customer;
use MDL::Instance;
use MDL::DownloadClient;
use MDL::LostCommit;
use MDL::Test;

use constant MB => 1024 * 1024;

# One child, whose meter another download keeps beating, so that no other process settles for it.
my $server = MDL::Instance->new(mpm => 'event');
my $way    = MDL::LostCommit->new($server->{vars}{db_params});
$server->configure(extra => <<"END");
DownloadsSessionIdle 1
DBDParams "${\ $way->params}"
StartServers 1
ServerLimit 1
ThreadsPerChild 32
MaxRequestWorkers 32
END
$server->start;

my $shop  = new_shop();
my $other = MDL::DownloadClient->over('HTTP/1.1', $server,
    link_of(buy($shop, new_file($shop, 8 * MB))));
my $file  = new_file($shop, 100_000);
my $buy   = buy($shop, $file, limit => 1);
my $path  = link_of($buy);

$way->lose($file->{sha256});
is page('GET', $path)->{status}, 503, 'the customer is asked to come back';
ok $way->lost, 'for the answer to COMMIT was lost';
$way->heal;
is sql(qq(SELECT id FROM download_session WHERE etag = '$file->{etag}')), 1, 'the session is there';

my $read = 0;
my $account;
wait_for(
    sub {
        $other->read_until($read += 10_000);    # so that the child writes to the database, too
        $account = MDL::Customer::account($buy);
        return !grep { $_->{status} eq 'open' } @{ $account->{sessions} };
    },
    30, 'the end of the session'
);
is $account->{used}, 0, 'it gives its download back';
my $reply = page('GET', $path);
ok $reply->{body} eq $file->{bytes}, 'and the customer gets the file';

$other->leave;
$server->stop;
done_testing();
