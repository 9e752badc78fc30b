# A relay between a client and the server that slows connections down and cuts them.
#
#   my $path = MDL::Path->new(to => port(), rate => 8 * MB, cuts => [ 3 * MB ], how => 'fin');
#   … http://localhost:@{[ $path->port ]}/ …
#   $path->stop;
#
# rate is in bytes a second to the client. Each of cuts ends one connection, the first that has
# carried so many bytes to its client, by an orderly close (fin) or a reset (rst).
#
# up => n and down => n hold all bytes back, once so many have been carried to the server or to the
# client, until release(), or until a file released() is made.
package MDL::Path;

use strict;
use warnings;

use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_LINGER SO_RCVBUF SO_SNDBUF);
use Time::HiRes qw(sleep);

use MDL::Test ();

use parent 'MDL::Relay';

use constant { PIECE => 32768, BUFFER => 65536 };

my $count = 0;

sub new
{
    my ($class, %opt) = @_;
    $opt{released} = MDL::Test::suite_dir() . "/path-$$-" . ++$count;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 64)
        or die "no free port: $!\n";
    return $class->carry($listener, %opt, port => $listener->sockport);
}

sub port     { return shift->{port} }
sub released { return shift->{released} }

sub release
{
    my ($self) = @_;
    open my $out, '>', $self->{released} or die "$self->{released}: $!";
    close $out;
    return;
}

# Counts bytes, and waits where they are held; returns false when the test ends meanwhile.
sub count_bytes
{
    my ($self, $way, $bytes) = @_;
    $self->{carried}{$way} += $bytes;
    while (defined $self->{$way} && $self->{carried}{$way} >= $self->{$way}
        && !-e $self->{released}) {
        return 0 if IO::Select->new($self->{watch})->can_read(0.02);
    }
    return 1;
}

# Small buffers, so that few bytes are in flight.
sub open_pair
{
    my ($self, $client) = @_;
    my $server = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!";
    setsockopt $server, SOL_SOCKET, SO_RCVBUF, pack 'i', BUFFER;
    setsockopt $client, SOL_SOCKET, SO_SNDBUF, pack 'i', BUFFER;
    $server->connect(Socket::pack_sockaddr_in($self->{to}, Socket::inet_aton('127.0.0.1')))
        or return;
    return $self->add_pair($client, $server);
}

sub pass
{
    my ($self, $end) = @_;
    my $pair = $end->{pair};
    sysread $end->{from}, my $bytes, PIECE or return 0;
    MDL::Relay::write_all($end->{to}, $bytes) or return 0;
    $self->count_bytes($end->{up} ? 'up' : 'down', length $bytes) or return 0;
    return 1 if $end->{up};
    $pair->{brought} += length $bytes;
    sleep length($bytes) / $self->{rate} if $self->{rate};
    my $cuts = $self->{cuts} // [];
    return 1 if !@$cuts || $pair->{brought} < $cuts->[0];
    shift @$cuts;
    setsockopt $pair->{client}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $self->{how} eq 'rst';
    return 0;
}

1;
