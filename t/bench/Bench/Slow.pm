# Many downloads that go on slowly, all at once, and the memory that httpd's processes take for them.
package Bench::Slow;

use strict;
use warnings;

use Errno qw(EAGAIN);
use Socket qw(:DEFAULT SO_RCVBUF);
use IO::Handle;
use Time::HiRes qw(sleep);

use constant { PIECE => 4096, TURNS => 8 };

# KB of all of a service's processes, where what they share counts once.
sub taken
{
    my ($on) = @_;
    my $sum = 0;
    for my $pid (split ' ', qx(pgrep -f -- '-f $on->{data}/conf/')) {
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

# The KB that each of these downloads takes, on a service that was just started.
sub memory
{
    my ($on, @paths) = @_;
    $on->restart;
    my ($port) = $on->{origin} =~ /(\d+)$/;
    my $address = sockaddr_in($port, inet_aton('127.0.0.1'));
    my $before  = taken($on);
    my @sockets = map { begin($address, $_) } @paths;
    for (1 .. TURNS) {
        for my $socket (@sockets) {
            my $got = sysread $socket, my $bytes, PIECE;
            die "A slow download has ended.\n" if defined $got ? $got == 0 : $! != EAGAIN;
        }
        sleep 1;
    }
    my $each = (taken($on) - $before) / @sockets;
    return { rate => $each };
}

1;
