# What a request costs, whatever the machine: statements, round trips and rows as the access log has
# them, allocations as t/bench/c/preload.c counts them, system calls as strace does.
package Bench::Costs;

use strict;
use warnings;

use Bench::Load;
use Bench::Report qw(median);
use Bench::Row;
use Bench::Service qw(build wait_for);
use List::Util qw(sum0);
use Time::HiRes qw(sleep);

use constant REQUESTS => 100;

# One child with one connection: after some requests of a kind all statements are prepared.
sub conf
{
    return <<"END";
ServerLimit 1
StartServers 1
ThreadsPerChild 4
MinSpareThreads 1
MaxSpareThreads 4
MaxRequestWorkers 4
DBDMax 1
DBDKeep 1
LogFormat "%{X-Kind}i %P %{downloads-db}n" costs
CustomLog "logs/costs.log" costs
END
}

# Lines of a kind: [ process, statements, trips, rows ].
sub lines_of
{
    my ($on, $kind) = @_;
    open my $in, '<', "$on->{data}/logs/costs.log" or return;
    my @lines;
    while (<$in>) {
        my ($name, $pid, @words) = split /[ ,]+/;
        next if $name ne $kind;
        my @of = map { [/^statements=(\d+);trips=(\d+);rows=(\d+)$/] } grep { /=/ } @words;
        push @lines, [ $pid, map { my $i = $_; sum0(map { $_->[$i] } @of) } 0 .. 2 ];
    }
    return @lines;
}

sub allocations
{
    my ($pid) = @_;
    open my $in, '<:raw', build() . '/allocations' or return 0;
    while (read $in, my $pair, 16) {
        my ($owner, $calls) = unpack 'qq', $pair;
        return $calls if $owner == $pid;
    }
    return 0;
}

# How many system calls the process makes meanwhile.
sub system_calls
{
    my ($pid, $work) = @_;
    my $path   = build() . '/strace';
    my $strace = fork // die "fork: $!\n";
    if (!$strace) {
        open STDERR, '>', "$path.output" or die "$path.output: $!\n";
        exec 'strace', '-f', '-c', '-o', $path, '-p', $pid or die "strace: $!\n";
    }
    my $attached = eval { wait_for(sub { -s "$path.output" }, 10, 'strace is attached') };
    sleep 0.3;
    $work->();
    kill 'INT', $strace;
    waitpid $strace, 0;
    open my $in, '<', $path or return;
    my ($calls) = join('', <$in>) =~ /^100\.00\s+\S+\s+\S+\s+(\d+)/m;
    return $calls;
}

sub of
{
    my ($db, @rows) = @_;
    my $counter = build() . '/allocations';
    unlink $counter;
    my $on = Bench::Service->new($db, files => $ENV{FILES}, orders => 1000, downloads => REQUESTS,
        conf => conf(),
        environment => { LD_PRELOAD => build() . '/preload.so', BENCH_ALLOCATIONS => $counter });
    my @costs = map { cost($on, $_) } @rows;
    $on->stop;
    return @costs;
}

# The links that some requests need are made before anything is counted.
sub cost
{
    my ($on, $row) = @_;
    my $run = sub {
        my ($kind, @request) = @_;
        wrk($on, @request, kind => $kind, connections => 1, stop => REQUESTS);
        return wait_for(sub { my @lines = lines_of($on, $kind); @lines >= REQUESTS && \@lines }, 10,
            "lines of $kind");
    };
    Bench::Row::prepare($row, $on);
    my ($first) = @{ $run->("$row->{name}-first", $row->{request}->($on)) };
    my $pid     = $first->[0];
    my @request = $row->{request}->($on);
    my $before  = allocations($pid);
    my @lines   = @{ $run->($row->{name}, @request) };
    my $calls   = allocations($pid) - $before;
    @request = $row->{request}->($on);
    my $system  = system_calls($pid, sub { $run->("$row->{name}-traced", @request) });
    my %cost    = (name => $row->{name}, title => $row->{title} =~ s{ / .*}{}r, db => $on->{db});
    @cost{qw(statements trips rows)} = map { my $i = $_; median(map { $_->[$i] } @lines) } 1 .. 3;
    $cost{allocations}  = sprintf '%.0f', $calls / REQUESTS;
    $cost{system_calls} = sprintf '%.1f', $system / REQUESTS if $system;
    return \%cost;
}

1;
