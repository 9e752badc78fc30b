# Reserves ports for servers that are stopped and started again while other suites look for free
# ports.
#
#   my $port = free_port();    # reserved as long as this process lives
#
# The ports are below the range that the kernel uses for outgoing connections, so that no connection
# takes one while nobody listens on it.
package MDL::Ports;

use strict;
use warnings;

use Exporter qw(import);
use IO::Socket::INET;
use Socket qw(AF_UNIX SOCK_STREAM pack_sockaddr_un);

our @EXPORT = qw(free_port);

use constant { FIRST => 10_000, COUNT => 22_000 };

my @held;

# Reserves a port by an abstract socket, which disappears with the process.
sub hold_port
{
    my ($port) = @_;
    socket my $holder, AF_UNIX, SOCK_STREAM, 0 or die "socket: $!\n";
    bind $holder, pack_sockaddr_un("\0mod_downloads-port-$port") or return;
    return push @held, $holder;
}

sub free_port
{
    for (1 .. 1000) {
        my $port = FIRST + int rand COUNT;
        # First, so that nobody's server finds this look at the port in its way.
        next if !hold_port($port);
        return $port
            if IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 1);
    }
    die "no free port\n";
}

1;
