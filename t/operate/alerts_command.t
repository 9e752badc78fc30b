# Alerts while the service is closed, and when their command hangs or fails: each is told once.
#
# both: how the database remembers what was told
use strict;
use warnings;

use Test::More;

use MDL::Alerts;
use MDL::Contract;
use MDL::Test;

my $server = alerting('');
my $folder = $server->{folder};
$server->{extra} .= qq(DownloadsMailBounces "maildir:$folder/bounces"\n);
$server->configure(extra => $server->{extra});
$server->start;
my $shop = new_shop();
wait_for(sub { (sql('SELECT count(*) FROM node'))[0][0] }, 30, 'a heartbeat');

sub break_it { return rename "$folder/bounces", "$folder/away" }
sub mend_it  { return rename "$folder/away", "$folder/bounces" }

subtest 'while the service is closed to changes' => sub {
    MDL::Test::ctl_or_die('maintenance', 'on');
    break_it();
    wait_told($server, 'bounces failed');
    mend_it();
    wait_told($server, 'bounces well');
    is_deeply [ told($server) ], [ 'bounces failed', 'bounces well' ], 'it tells, and nothing else';
    MDL::Test::ctl_or_die('maintenance', 'off');
};

subtest 'a command that hangs' => sub {
    forget_told($server);
    touch($server, 'hang');
    break_it();
    wait_for(sub { -e "$folder/hangs" }, 30, 'the command runs');
    is wait_job($shop, api('POST', '/assets', key => $shop->{token},
            json => { source_url => source('while.bin', 'bytes') })->{json}{job}{id})->{status},
        'succeeded', 'holds up no job';
    wait_told($server, 'bounces failed');
    is log_count($server, 'could not tell of "bounces failed": it did not end in time and was'),
        1, 'is killed and run again';
    mend_it();
    wait_told($server, 'bounces well');
    is_deeply [ told($server) ], [ 'bounces failed', 'bounces well' ], 'so that it tells each once';
};

subtest 'a command that fails' => sub {
    forget_told($server);
    touch($server, 'fail');
    break_it();
    wait_for(sub { log_count($server, 'it ended with code 3: no network; it is tried again') >= 2 },
        30, 'the log has its words');
    unlink "$folder/fail";
    wait_told($server, 'bounces failed');
    mend_it();
    wait_told($server, 'bounces well');
    is_deeply [ told($server) ], [ 'bounces failed', 'bounces well' ], 'is run again';
};

$server->stop;
done_testing();
