# Restarts under load: no request fails in a graceful one, no job is lost, no process or core file
# is left over, there is one background process, and large imports continue from their offset.
#
# both: each is left and opened again in its own way
use strict;
use warnings;

use IO::Socket::INET;
use MDL::Instance;
use MDL::Load;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

# Imports that are acknowledged between two restarts, and pieces of a large one.
use constant { MB => 1024 * 1024, LOAD => $ENV{FULL} ? 60 : 30, PIECES => $ENV{FULL} ? 10 : 5 };

# The poll interval is so long that jobs start in time only because the worker is woken up.
$MDL::Target::patience = 40;
my $slow_poll = "DownloadsPollInterval 60\nDownloadsLeaseTime 120\n";
my $server = MDL::Instance->new(extra => $slow_poll)->start;
my $source = MDL::Source->new;
my $shop   = new_shop();
my $key    = $shop->{token};
my $small  = $source->offer('small', { size => 1000 });

sub import_of
{
    my ($url, %more) = @_;
    my $reply = api('POST', '/assets', key => $key, json => { source_url => $url, %more });
    die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json}{job}{id};
}

sub one_background_process
{
    my ($before) = @_;
    my @workers = wait_for(sub { my @pids = worker_pids(); @pids == 1 ? @pids : undef }, 10,
        'one background process');
    return isnt $workers[0], $before // 0, 'there is one background process, and it is a new one';
}

# Checks that each acknowledged import has succeeded.
sub nothing_lost
{
    my ($result) = @_;
    is_deeply [ MDL::Load::lost($result->{jobs}, 30) ], [],
        scalar(@{ $result->{jobs} }) . ' imports were acknowledged, each succeeds';
    return;
}

subtest 'three graceful restarts under load fail no request' => sub {
    my ($worker) = worker_pids();
    my $load = MDL::Load->new(key => $key, url => $small, clients => 6, keep_alive => 3);
    for (1 .. 3) {
        $load->wait_for_more(LOAD);
        httpd_graceful();
    }
    $load->wait_for_more(LOAD);
    my $result = $load->stop;
    is_deeply $result->{failures}, [], "$result->{requests} requests, none has failed"
        or diag explain $result->{failures};
    diag "$result->{retried} met an idle connection that was being closed";
    nothing_lost($result);
    one_background_process($worker);
};

subtest 'a restart under load loses nothing that was acknowledged' => sub {
    my ($worker) = worker_pids();
    my $load = MDL::Load->new(key => $key, url => $small, clients => 6, keep_alive => 3);
    $load->wait_for_more(LOAD);
    httpd_restart();
    $load->wait_for_more(LOAD);
    nothing_lost($load->stop);
    one_background_process($worker);
};

subtest 'a stop and a start under load lose nothing that was acknowledged' => sub {
    my ($worker) = worker_pids();
    my $load = MDL::Load->new(key => $key, url => $small, clients => 6, keep_alive => 3);
    $load->wait_for_more(LOAD);
    $server->stop;
    is_deeply [ $server->processes ], [], 'no process is left after the stop';
    $server->start;
    $load->wait_for_more(LOAD);
    nothing_lost($load->stop);
    one_background_process($worker);
};

subtest 'a job that a child of the old generation commits is started at once' => sub {
    my %old = map { $_ => 1 } server_pids();
    my $body = qq({"source_url":"$small"});
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port())
        or die "no connection: $!";
    print $socket "POST /api/v1/assets HTTP/1.1\r\nHost: localhost\r\n",
        "Authorization: Bearer $key\r\n",
        "Content-Type: application/json\r\nIdempotency-Key: @{[ idem() ]}\r\nConnection: close\r\n",
        "Expect: 100-continue\r\nContent-Length: ", length $body, "\r\n\r\n";
    is scalar <$socket>, "HTTP/1.1 100 Continue\r\n", 'a child waits for the body of a request';
    httpd_graceful();
    ok scalar(grep { $old{$_} } $server->processes), 'a child of the old generation is still there';
    print $socket $body;
    my $answer = do { local $/; <$socket> };
    like $answer, qr{^HTTP/1.1 202 }m, 'the request that it had begun is served';
    my ($id) = $answer =~ /"(job_\w+)"/;
    my $began = time;
    is wait_job($shop, $id, 20)->{status}, 'succeeded',
        'and its job is done without waiting for a poll';
    diag sprintf 'the job was done in %.0f ms', 1000 * (time - $began);
};

subtest "a large import does not start from the beginning after @{[PIECES]} restarts" => sub {
    my $size   = 20 * PIECES * MB;
    my $sha256 = MDL::Source::sha256($size);
    # The first answer only shows that the file is large.  Each of the next pauses until a restart.
    my $piece  = { size => $size, etag => '"l"', hold => 16 * MB };
    my $id     = import_of($source->offer('large', ($piece) x (PIECES + 1), { hold => $size }),
        sha256 => $sha256);
    my $partial = storage_dir() . "/partial/$id";
    for my $i (1 .. PIECES) {
        wait_for(sub { (-s $partial // 0) > $i * 15 * MB }, 120, "part $i of the import");
        $i % 2 ? httpd_graceful() : httpd_restart();
    }
    my $job = wait_job($shop, $id, 300);
    is $job->{status}, 'succeeded', 'it succeeds' or diag explain $job;
    is $job->{attempts}, 1, 'the restarts cost it no attempt';
    my $sent = $source->sent('large');
    cmp_ok $sent, '<', 1.3 * $size, sprintf 'the source sent %.2f times its size', $sent / $size;
    is scalar(() = $source->requests('large')), PIECES + 2, 'with one request for each piece';
};

subtest 'a stop does not wait for transfers' => sub {
    my @names = map { "running-$_" } 1 .. 6;
    my @ids   = map {
        import_of($source->offer($_, { size => 20 * MB, etag => qq("$_"), version => $_,
            hold => 10 * MB }))
    } @names;
    wait_for(sub { @ids == grep { (-s storage_dir() . "/partial/$_" // 0) > 9 * MB } @ids }, 20,
        'six transfers under way');
    my ($worker) = worker_pids();
    my $began = time;
    kill TERM => $worker;    # as the parent does
    wait_for(sub { !-e "/proc/$worker/exe" }, 10, 'the end of the background process');
    my $took = time - $began;
    diag sprintf 'the background process stopped in %.0f ms', 1000 * $took;
    wait_for(sub { $server->error_log =~ /MDL0334/ }, 10, 'the parent to notice');
    like $server->error_log, qr/MDL0334: .*\(status 0\)/, 'by itself, not by SIGKILL';
    $took = $server->stop;
    diag sprintf 'the server stopped in %.0f ms', 1000 * $took;
    $source->release($_) for @names;
    $server->start;
    is_deeply [ map { wait_job($shop, $_, 30)->{status} } @ids ], [ ('succeeded') x 6 ],
        'they succeed after a start';
};

# prefork ends a child by a signal at any moment.
subtest 'the MPM prefork is restarted under load' => sub {
    my $prefork = MDL::Instance->new(mpm => 'prefork')->start;
    my $load = MDL::Load->new(key => new_shop()->{token}, url => $small, clients => 6,
        keep_alive => 3);
    for (1 .. 3) {
        $load->wait_for_more(LOAD);
        httpd_restart();
    }
    $load->wait_for_more(LOAD);
    $prefork->stop;
    my $result = $load->stop;
    $prefork->start;
    nothing_lost($result);
    $prefork->stop;
    unlike $prefork->error_log, qr/exit signal/, 'no child has crashed';
    $server->aim;
};

$server->stop;
is_deeply [ $server->processes ], [], 'no process is left';
# MDL::TestRun looks for segmentation faults in all logs, and can tell httpd's own from ours.
unlike $server->error_log, qr/exit signal (?!Segmentation)|Assertion|could not make child process/,
    'and no process has crashed';
done_testing;
