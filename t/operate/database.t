# The database stops and starts again: requests get 503 meanwhile and succeed right afterwards,
# without a restart of httpd, and the background process resumes its work.
#
# both: each is away in its own way
use strict;
use warnings;

use MDL::Instance;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

use constant MB => 1024 * 1024;

# No child is started or ended because of the number of requests.
my $server = MDL::Instance->new(cluster => 1, extra => <<'END')->start;
DownloadsLeaseTime 2
DownloadsPollInterval 1
LogLevel dbd:crit
<IfModule !mpm_prefork_module>
    MinSpareThreads 1
</IfModule>
<IfModule mpm_prefork_module>
    ServerLimit 30
    StartServers 30
    MaxSpareServers 30
    MaxRequestWorkers 30
</IfModule>
END
my $source = MDL::Source->new;
my $shop   = new_shop();
my $key    = $shop->{token};

sub import_of
{
    my ($url, %opt) = @_;
    return api('POST', '/assets', key => $key, json => { source_url => $url }, %opt);
}

# The seconds of CPU time that a process has used.
sub processor_time
{
    my ($pid) = @_;
    my @stat = split ' ', MDL::Test::slurp("/proc/$pid/stat") =~ s/^.*\) //sr;
    return ($stat[11] + $stat[12]) / 100;
}

sub processes { return { parent => httpd_pid(), servers => [ sort(server_pids()) ],
    workers => [ worker_pids() ] } }

# Checks the statuses of $n requests at once, a third of them writes.
sub all_answer
{
    my ($status, $post_status, $n, $what) = @_;
    my $url = $source->offer('any', { size => 1000 });
    my @replies = parallel($n, sub {
        my ($i) = @_;
        return api('GET', '/health') if $i % 3 == 0;
        return api('GET', '/mappings', key => $key) if $i % 3 == 1;
        return import_of($url);
    });
    my @expected = map { $_ % 3 == 2 ? $post_status : $status } 0 .. $n - 1;
    is_deeply [ map { $_->{status} } @replies ], \@expected, $what
        or diag explain [ grep { ($_->{status} // 0) != $status } @replies ];
    return @replies;
}

sub outage
{
    my ($mode) = @_;
    my $before = processes();
    my $size   = 3 * MB;
    my $url    = $source->offer("held-$mode", { size => $size, etag => '"h"', version => $mode,
        hold => 2 * MB });
    my $held = import_of($url)->{json}{job}{id};
    wait_for(sub { (-s storage_dir() . "/partial/$held" // 0) > MB }, 10, 'a transfer under way');

    my $log = error_log_size();
    MDL::Database::postgres('stop', $mode);
    my $idem = idem();
    my $reply = import_of($url, idem => $idem);
    is $reply->{status}, 503, 'a write gets 503';
    is $reply->{json}{error}{code}, 'service_unavailable', 'with the code of the API'
        or diag $reply->{body};
    for my $answer (all_answer(503, 503, 24, 'all requests get 503, from every process')) {
        like $answer->{headers}{'retry-after'} // 'none', qr/^\d+$/, 'with Retry-After';
    }
    my $lines = error_log_since($log);
    unlike $lines, qr/\[dbd:error\]/, 'mod_dbd writes no lines of each request';
    like $lines, qr/MDL0110: the database is out of reach: \S/, 'the log has the reason';
    my @refused = $lines =~ /MDL0124/g;
    my @reasons = $lines =~ /MDL0110/g;
    # With prefork a process may not have come so far.
    ok @refused || ($ENV{MPM} // '') eq 'prefork', 'and says when no new connection can be made';
    cmp_ok scalar(@refused), '<=', @reasons + server_pids(), 'though not for each request';

    is api('GET', '/ping', key => 'adk_live_nobody_nothing')->{status}, 401,
        'a malformed key is still refused';

    # The lease ends: in mode "fast" after the transfer, when its result can't be written; otherwise
    # during the transfer.
    $source->release("held-$mode") if $mode eq 'fast';
    my ($worker) = worker_pids();
    my $began = time;
    my $used = processor_time($worker);
    sleep 3;
    $used = processor_time($worker) - $used;
    my $took = time - $began;
    cmp_ok $used, '<', 0.2 * $took,
        "the background process waits quietly ($used s of processor time in $took s)";

    start_database();
    all_answer(200, 202, 24, 'the first requests afterwards succeed, in every process');
    $source->release("held-$mode");
    my $again = import_of($url, idem => $idem);
    is $again->{status}, 202, 'the failed write succeeds when it is repeated';
    is $again->{headers}{'idempotent-replayed'}, undef, 'and is not a replay';
    my $job = wait_job($shop, $held, 20);
    is $job->{status}, 'succeeded', 'the import that was running succeeds' or diag explain $job;
    is wait_job($shop, $again->{json}{job}{id}, 20)->{status}, 'succeeded',
        'and so does the new one';
    # Each of the two imports moves once to the lane for large files, with a second request. One
    # whose lease a busy machine has let end goes on from where it was.
    my @requests = $source->requests("held-$mode");
    is scalar(grep { !$_->{range} } @requests), 4, 'neither started from the beginning'
        or diag explain \@requests;
    is_deeply processes(), $before, 'no process of httpd was started or ended';
    return;
}

if (database() eq 'pgsql') {
    subtest 'PostgreSQL is stopped and started' => sub { outage('fast') };
    subtest 'PostgreSQL crashes and is started' => sub { outage('immediate') };
    subtest 'PostgreSQL is restarted between two requests' => sub {
        MDL::Database::postgres('stop', 'fast');
        start_database();
        all_answer(200, 202, 24, 'no request fails');
    };
}

# Another program's transaction, during which nobody else can write.
sub lock_database { return MDL::Database::lock_tables('idempotency') }

# Requests while the database is locked for 1.5 s; returns how long it was, and the replies.
sub locked_for_a_moment
{
    my ($url)  = @_;
    my $lock   = lock_database();
    my $began  = time;
    my $child  = fork // die "fork: $!";
    if (!$child) {
        sleep 1.5;
        print { $lock->{in} } "COMMIT;\n";
        POSIX::_exit(0);
    }
    my @replies = parallel(12, sub {
        my ($i) = @_;
        return $i % 2 ? import_of($url) : api('GET', '/ping', key => $key);
    });
    waitpid $child, 0;
    MDL::Database::unlock($lock);
    return (time - $began, @replies);
}

if (database() eq 'sqlite3') {
    subtest 'another program locks the SQLite database for a moment' => sub {
        my $before = processes();
        my $url    = $source->offer('busy', { size => 1000 });
        my ($took, @replies);
        for my $try (1 .. 5) {
            ($took, @replies) = locked_for_a_moment($url);
            last if $took < 4;    # a write waits 5 s
        }
        is_deeply [ map { $_->{status} } @replies ], [ map { $_ % 2 ? 202 : 200 } 0 .. 11 ],
            'reads go on and writes wait' or diag explain \@replies;
        cmp_ok $took, '>', 1, 'the lock lasted';
        is wait_job($shop, $_->{json}{job}{id}, 20)->{status}, 'succeeded', 'the import succeeds'
            for grep { $_->{status} == 202 } @replies;
        is_deeply processes(), $before, 'no process of httpd was started or ended';
    };

    subtest 'another program locks the SQLite database for long' => sub {
        my $before = processes();
        my $url    = $source->offer('long', { size => 1000 });
        my $lock   = lock_database();
        my ($worker) = worker_pids();
        my $used  = processor_time($worker);
        my $began = time;
        my @replies = parallel(6, sub {
            return import_of($url, timeout => 60, idem => "locked-$_[0]-$$");
        });
        my $took = time - $began;
        is_deeply [ map { $_->{status} } @replies ], [ (503) x 6 ], 'writes get 503'
            or diag explain \@replies;
        like $_->{headers}{'retry-after'} // 'none', qr/^\d+$/, 'with Retry-After' for @replies;
        diag sprintf 'they got it after %.1f s', $took;
        is api('GET', '/ping', key => $key)->{status}, 200, 'reads go on';
        $used = processor_time($worker) - $used;
        cmp_ok $used, '<', 0.2 * $took, "the background process waits quietly ($used s)";
        MDL::Database::unlock($lock);
        my $reply = import_of($url);
        is $reply->{status}, 202, 'the first write afterwards succeeds';
        is wait_job($shop, $reply->{json}{job}{id}, 20)->{status}, 'succeeded', 'and so is its job';
        is_deeply processes(), $before, 'no process of httpd was started or ended';
    };
}

subtest 'a request waits for a connection for no more than 5 s' => sub {
    $server->stop;
    $server = MDL::Instance->new(mpm => 'event', extra => <<'END')->start;
DBDMax 1
DBDKeep 1
StartServers 1
ServerLimit 1
ThreadsPerChild 32
MaxRequestWorkers 32
LogFormat "%D %{Idempotency-Key}i" took
CustomLog "@t_logs@/took" took
END
    $key = new_shop()->{token};
    my $url = $source->offer('crowd', { size => 1000 });
    is import_of($url)->{status}, 202, 'a write';
    my $lock    = lock_database();
    my @replies = parallel(16,
        sub { return import_of($url, timeout => 120, idem => "crowd-$_[0]-$$") });
    MDL::Database::unlock($lock);
    my @took;
    wait_for(
        sub { @took = MDL::Test::slurp(logs_dir() . '/took') =~ /^(\d+) crowd-/mg; @took == 16 },
        60, 'the access log');
    my @refused = grep { $_->{status} == 503 } @replies;
    cmp_ok scalar(@refused), '>=', 13, 'most requests that wait for the only connection get 503'
        or diag explain [ map { $_->{status} } @replies ];
    is $_->{json}{error}{code}, 'service_unavailable', 'with the code of the API' for @refused;
    like $_->{json}{error}{message}, qr/^[A-Z].*\btry again\.$/, 'with a sentence' for @refused;
    like $_->{headers}{'retry-after'} // 'none', qr/^\d+$/, 'and Retry-After' for @refused;
    # If one after the other had the connection for 5 s, the last would take 80 s.
    @took = sort { $a <=> $b } @took;
    cmp_ok $took[0], '<', 13_000_000, 'the first ones are answered after 5 s';
    cmp_ok $took[-1], '<', 30_000_000, 'and so are the others, not one after the other';
    like $server->error_log, qr/MDL0121: all DBDMax connections were in use for 5 s/,
        'the log says why';
    if (database() eq 'pgsql') {
        my ($locked) = grep { $_->{status} == 409 } @replies;
        is $locked->{json}{error}{code}, 'idempotency_conflict_in_progress',
            'the one that has it waits for the lock as long';
        is $locked->{headers}{'retry-after'}, 1, 'and gets Retry-After, too';
    }
    is import_of($url)->{status}, 202, 'the first write afterwards succeeds';
};

$server->stop;
done_testing;
