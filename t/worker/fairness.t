# No job and no shop takes the background process from the others.
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsPollInterval 1
END
my $source = MDL::Source->new;
my $shop   = new_shop();

sub job { my ($id) = @_; return api('GET', "/jobs/$id", key => $shop->{token})->{json} }

# Queues imports whose sources answer once they are released; returns their jobs.
sub held_imports
{
    my ($of, @names) = @_;
    return map {
        my $reply = api('POST', '/assets', key => $of->{token},
            json => { source_url => $source->offer($_, { size => 1000, hold => 0 }) });
        die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
        $reply->{json}{job}{id};
    } @names;
}

# The jobs that run after so many interruptions, when there are as many as that.
sub running
{
    my ($n, $interruptions) = @_;
    my $look = "SELECT id FROM job WHERE status = 'running' AND interruptions = $interruptions";
    my @ids;
    wait_for(sub { @ids = map { $_->[0] } sql($look); @ids == $n }, 20, "$n running jobs");
    return @ids;
}

# Kills the background process, as a job does that takes more memory than there is.
sub kill_worker
{
    my ($worker) = worker_pids();
    kill KILL => $worker;
    return wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $worker }, 10, 'another background process');
}

subtest 'a job that ended the process three times is set aside, and its neighbours go on' => sub {
    my $log = error_log_size();
    my ($poison, @others) = my @ids = held_imports($shop, map { "neighbour-$_" } 0 .. 3);
    my %name = map { $ids[$_] => "neighbour-$_" } 0 .. 3;
    for my $deaths (0, 1) {
        running(4, $deaths);
        kill_worker();
    }
    my $ended = 0;
    while ($ended < 4) {
        my ($id) = my @running = running(1, 2);
        if ($id eq $poison) {
            kill_worker();
        }
        else {
            $source->release($name{$id});
        }
        wait_job($shop, $id);
        $ended++;
    }
    my $job = job($poison);
    is_deeply [ $job->{status}, $job->{error}{code} ], [ 'failed', 'internal_error' ], 'it has failed';
    for my $id (@others) {
        $job = job($id);
        is_deeply [ @$job{qw(status attempts)} ], [ 'succeeded', 1 ], 'a neighbour succeeds, in its first attempt';
    }
    my @given_up = error_log_since($log) =~ /MDL0322: job (job_\w+) /g;
    is_deeply \@given_up, [$poison], 'the log says which was given up';
};

$server->stop;
done_testing;
