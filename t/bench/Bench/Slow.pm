# Many downloads that go on slowly, all at once: the memory that httpd's processes take for them,
# and what else is done meanwhile.
package Bench::Slow;

use strict;
use warnings;

use Bench::Service qw(wait_for);
use Errno qw(EAGAIN);
use IO::Handle;
use POSIX qw(WNOHANG);
use Socket qw(:DEFAULT SO_RCVBUF);
use Time::HiRes qw(sleep);

use constant { PIECE => 4096, TURNS => 8 };

# KB of all of a service's processes, where what they share counts once.
sub taken
{
    my ($on) = @_;
    my $sum = 0;
    for my $pid ($on->processes) {
        open my $in, '<', "/proc/$pid/smaps_rollup" or next;
        $sum += join('', <$in>) =~ /^Pss:\s+(\d+)/m ? $1 : 0;
    }
    return $sum;
}

# A download of which the beginning has come.
sub begin
{
    my ($address, $path) = @_;
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, PIECE;
    connect $socket, $address or die "connect: $!\n";
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    sysread $socket, my $bytes, PIECE;
    die "A slow download was answered with: $bytes\n" if $bytes !~ m{^HTTP/1\.1 200};
    $socket->blocking(0);
    return $socket;
}

sub begin_all
{
    my ($on, @paths) = @_;
    my ($port) = $on->{origin} =~ /(\d+)$/;
    my $address = sockaddr_in($port, inet_aton('127.0.0.1'));
    return map { begin($address, $_) } @paths;
}

# Reads on, a piece of each within a second; the reads are spread over it.
sub turn
{
    my (@sockets) = @_;
    my $read = 0;
    for my $socket (@sockets) {
        my $got = sysread $socket, my $bytes, PIECE;
        die "A slow download has ended.\n" if defined $got ? $got == 0 : $! != EAGAIN;
        sleep 0.05 if ++$read % (@sockets / 20 + 1) == 0;
    }
    return;
}

# The KB that each of these downloads takes, on a service that was just started.
sub memory
{
    my ($on, @paths) = @_;
    $on->restart;
    my $before  = taken($on);
    my @sockets = begin_all($on, @paths);
    turn(@sockets) for 1 .. TURNS;
    my $each = (taken($on) - $before) / @sockets;
    return { rate => $each };
}

# What this work returns beside them.
sub beside
{
    my ($on, $work, @paths) = @_;
    pipe my $begun, my $ready or die "pipe: $!\n";
    my $parent = $$;
    my $pid    = fork // die "fork: $!\n";
    if ($pid == 0) {
        eval {
            my @sockets = begin_all($on, @paths);
            syswrite $ready, "begun\n";
            turn(@sockets) while getppid == $parent;
        };
        print {*STDERR} $@;
        POSIX::_exit(1);
    }
    close $ready;
    my $result = defined readline($begun) && $work->();
    die "Slow downloads have ended.\n" if !$result || waitpid $pid, WNOHANG;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    wait_for(sub { ($on->rows('SELECT count(*) FROM download_transfer'))[0][0] == 0 }, 60,
        'settled downloads');
    return $result;
}

1;
