# PostgreSQL's host vanishes: its packets are dropped, or its kernel acknowledges and nothing answers.
# Requests get 503 within a client's patience, those that come meanwhile at once; other virtual hosts
# notice nothing; the first request afterwards succeeds.
use strict;
use warnings;

use HTTP::Tiny;
use Test::More;

use MDL::Instance;
use MDL::Source;
use MDL::Test;
use MDL::Vanishing;

plan skip_all => 'SQLite has no host' if database() ne 'pgsql';

my $drops = MDL::Vanishing->own_network;

# More requests at once than the server has connections, fewer than it has threads.
use constant { THREADS => 48, REQUESTS => 36, ROUNDS => 3 };

my $server = MDL::Instance->new(mpm => 'event');
my $host   = MDL::Vanishing->new($server->{vars}{db_params});
$server->configure(extra => <<"END");
DBDParams "${\ $host->params}"
DBDMax 16
DBDKeep 8
StartServers 1
ServerLimit 1
ThreadLimit ${\ THREADS}
ThreadsPerChild ${\ THREADS}
MaxRequestWorkers ${\ THREADS}
Listen 127.0.0.1:\@tls_port\@
<VirtualHost *:\@tls_port\@>
    ServerName other.test
    DocumentRoot \@t_logs\@/source
</VirtualHost>
END
$server->start;
my $source = MDL::Source->new;
my $shop   = new_shop();
my $key    = $shop->{token};
my $page   = 'http://127.0.0.1:' . $server->tls_port . '/page.txt';
my $file   = $source->offer('file', { size => 1000 });
MDL::Instance::write_file("$server->{folder}/source/page.txt", 'a page');

# Requests of each kind at once, whose client has so many seconds.  Returns their statuses.
sub at_once
{
    my ($patience) = @_;
    my @kinds = (
        sub { api('GET', '/health', timeout => $patience) },
        sub { api('GET', '/mappings', key => $key, timeout => $patience) },
        sub { api('POST', '/assets', key => $key, timeout => $patience, json => { source_url => $file }) },
        sub { HTTP::Tiny->new(timeout => 2)->get($page) },
    );
    return map { $_->{status} } parallel(REQUESTS, sub { $kinds[ $_[0] % @kinds ]->() });
}

# What to expect of them.
sub each_gets
{
    my @statuses = @_;
    return map { $statuses[ $_ % @statuses ] } 0 .. REQUESTS - 1;
}

sub vanishes
{
    my ($how, $patience) = @_;
    my @worker = worker_pids();
    is_deeply [ at_once(20) ], [ each_gets(200, 200, 202, 200) ], 'requests succeed before';
    $host->$how;
    for my $round (1 .. ROUNDS) {
        is_deeply [ at_once($patience) ], [ each_gets(503, 503, 503, 200) ],
            "each gets 503 in time, and the other host's pages are served, round $round";
    }
    $host->come_back;
    my $reply = api('POST', '/assets', key => $key, json => { source_url => $file });
    is $reply->{status}, 202, 'the first request afterwards succeeds';
    is_deeply [ at_once(20) ], [ each_gets(200, 200, 202, 200) ], 'and so do many';
    is wait_job($shop, $reply->{json}{job}{id}, 30)->{status}, 'succeeded', 'the job is done';
    is_deeply [ worker_pids() ], \@worker, 'by the same background process';
    return;
}

# The time that a client has is the server's 3 s or 8 s, and one more for a busy machine.
subtest 'its packets are dropped' => sub {
    plan skip_all => 'the kernel lets no user have a network of their own' if !$drops;
    vanishes('drop', 4);
};
subtest 'nothing answers' => sub { vanishes('silence', 9) };

like $server->error_log, qr/MDL0122: .*MDL0123: /s, 'the log says when that began and when it ended';

$server->stop;
done_testing();
