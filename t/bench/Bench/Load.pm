# The tools that drive a service and its yardsticks.  Each returns { rate => per second, p50, p99 =>
# milliseconds }; where there is no rate, p50 is what is compared.
package Bench::Load;

use strict;
use warnings;

use Bench::Report qw(median);
use Bench::Service qw(build run);
use Exporter qw(import);
use IO::Socket::INET;
use List::Util qw(sum0);
use POSIX ();
use Time::HiRes qw(time);

our @EXPORT = qw(wrk first_byte least least_tables timed by_processor number CONNECTIONS);
our @EXPORT_OK = qw(processor_seconds);

use constant CONNECTIONS => 16;

my $here   = 't/bench';
my $number = 0;

# A number that nobody has used; ten millions behind it are the caller's.
sub number { return 10_000_000 * ++$number }

# Requests over kept connections for as long as SECONDS says.  Options, in wrk.lua's words: method,
# path, paths, body, type, idem, range, kind, from, random, stop, urls; close => 1 takes a new
# connection for each; key => 0 sends none; connections;
# refused => 1 counts answers of 400 and more, in place of failing.
sub wrk
{
    my ($on, %opt) = @_;
    my $connections = delete $opt{connections} // CONNECTIONS;
    my $key         = delete $opt{key} // 1;
    my $refused     = delete $opt{refused};
    my $origin      = delete $opt{origin} // $on->{origin};
    $opt{path} = "/api/v1$opt{path}" if $opt{path} && $key;
    $opt{from} //= number();
    local %ENV = (%ENV, BENCH_CONNECTIONS => $connections,
        $key ? (BENCH_KEY => $on->{API_TOKEN}) : (),
        map { ('BENCH_' . uc $_ => $opt{$_}) } grep { defined $opt{$_} } keys %opt);
    my $seconds = $opt{stop} ? 600 : $ENV{SECONDS};
    my $output =
        qx(wrk -t1 -c$connections -d${seconds}s --timeout 30s -s $here/load/wrk.lua $origin 2>&1);
    my ($requests, $micros, $p50, $p99, $errors) =
        $output =~ /^BENCH (\d+) (\d+) (\S+) (\S+) (\d+)$/m
        or die "wrk: $output\n";
    die "wrk: $errors of $requests requests failed\n$output" if $errors && !$refused;
    return { rate => $requests / $micros * 1e6, p50 => $p50, p99 => $p99, requests => $requests,
        refused => $errors };
}

# The milliseconds from a request to the first byte of its answer's body, which is read to its end
# then, over a kept connection, one request after the other.
sub first_byte
{
    my ($on, $path) = @_;
    my ($host) = $on->{origin} =~ m{^http://(.+)};
    my $until  = time + $ENV{SECONDS};
    my ($socket, @took);
    while (time < $until) {
        $socket //= IO::Socket::INET->new(PeerAddr => $host) or die "$host: $@\n";
        my ($began, $answer) = (time, '');
        print {$socket} "GET $path HTTP/1.1\r\nHost: $host\r\n\r\n";
        read_to($socket, \$answer, sub { $answer =~ /\r\n\r\n./s });
        push @took, 1000 * (time - $began);
        die "$path: $answer\n" if $answer !~ m{^HTTP/1.1 200 };
        my ($length) = $answer =~ /^Content-Length: (\d+)/mi;
        my $whole = 4 + index($answer, "\r\n\r\n") + ($length // 0);
        read_to($socket, \$answer, sub { $length ? length $answer >= $whole
            : $answer =~ /\r\n0\r\n\r\n\z/ });
        undef $socket if $answer =~ /^Connection: close/mi;
    }
    @took = sort { $a <=> $b } @took;
    return { p50 => median(@took), p99 => $took[ $#took * 0.99 ] };
}

sub read_to
{
    my ($socket, $answer, $end) = @_;
    while (!$end->()) {
        sysread $socket, $$answer, 65536, length $$answer or die "The answer is cut: $$answer\n";
    }
    return;
}

sub least_tables
{
    my ($on) = @_;
    $on->sql(slurp("$here/least/schema.sql")) if !$on->{least}++;
    return;
}

# The least statements for a write: pgbench on PostgreSQL; on SQLite our loop, where so many of them
# share a commit.
sub least
{
    my ($on, $script, %opt) = @_;
    least_tables($on);
    my $from = number();
    my $body = 'x' x 900;
    local %ENV = (%ENV, %{ $opt{environment} // {} });
    if ($on->{db} eq 'pgsql') {
        my ($host) = $on->params =~ /host=(\S+)/;
        my $output = qx(pgbench -n -M prepared -c @{[CONNECTIONS]} -j 1 -T $ENV{SECONDS} \\
            -h '$host' -U downloads -D n=$from -D body=$body \\
            -f $here/least/$script.sql downloads 2>&1);
        my ($rate) = $output =~ /^tps = ([\d.]+)/m or die "pgbench: $output\n";
        die "pgbench: $output\n" if $output =~ /failed transactions: [1-9]/;
        return { rate => $rate };
    }
    my ($group, $params) = ($opt{group} // 16, $on->params);
    my $output = qx('@{[build()]}/loop' '$params' $here/least/$script.sql $ENV{SECONDS} $group \\
        n=$from body=$body);
    my ($rate, $p50, $p99) = split ' ', $output or die "the loop over SQLite failed\n";
    return { rate => $rate, p50 => $p50, p99 => $p99 };
}

sub slurp
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$in>;
}

# A piece of work of so many units, as a rate.
sub timed
{
    my ($units, $work) = @_;
    my $began = time;
    $work->();
    my $took = time - $began;
    return { rate => $units / $took, p50 => 1000 * $took };
}

# What these processes and the children that they have waited for have taken of the processors.
sub processor_seconds
{
    my $ticks = 0;
    for my $pid (@_) {
        open my $in, '<', "/proc/$pid/stat" or next;
        $ticks += sum0((split ' ', <$in> =~ s/.*\) //r)[11 .. 14]);
    }
    return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# A run of wrk, as requests a second of the processor time of a server, whose processes the first
# function lists.
sub by_processor
{
    my ($processes, $work) = @_;
    my $before = processor_seconds($processes->());
    my $result = $work->();
    my $taken  = processor_seconds($processes->()) - $before;
    return { %$result, rate => $result->{requests} / $taken };
}

1;
