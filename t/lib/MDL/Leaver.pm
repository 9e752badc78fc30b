# A client that reads as much as a test wants, and knows what has reached it.
#
#   my $leaver = MDL::Leaver->over('TLS', $server, $path, headers => { Range => 'bytes=5-' });
#   $leaver->read_until(100_000);       # bytes of the body; stops there and keeps the connection
#   my $arrived = $leaver->arrived;     # those, and what its kernel has taken besides (when it left)
#   my $at_most = $leaver->at_most;     # what the service may say that it has delivered
#   $leaver->leave;                     # or rest(), which reads to the end
#
# The ways are HTTP/1.1, TLS (with HTTP/1.1 in it), HTTP/2 (over TLS) and h2c; the last two are streams
# of MDL::Streams.  Options: headers; and of the first two
#   buffer    bytes that the kernel may hold for it; few, so that hardly more reaches it than it has read
#   version   1.0 asks by HTTP/1.0
#   behind    bytes that are sent right behind the request
#   half      closes the sending side behind them
# Over TLS arrived() is without what the records' frames hide: it may be less than what has come.
package MDL::Leaver;

use strict;
use warnings;

use Digest::SHA;
use IO::Socket::SSL;
use MDL::Streams;
use Socket qw(AF_INET SOCK_STREAM SOL_SOCKET SO_LINGER SO_RCVBUF inet_aton pack_sockaddr_in);

use constant {
    BUFFER   => 8192,
    PATIENCE => 60,
    PIECE    => 16384,
    UNSENT   => 131072,
    FIONREAD => 0x541B,
};

my %streams;    # by the server's name

sub over
{
    my ($class, $way, $server, $path, %opt) = @_;
    if ($way eq 'HTTP/2' || $way eq 'h2c') {
        my $streams = $streams{ $server->{name} } //= MDL::Streams->new($server);
        return $streams->leaver($path, $way eq 'h2c' ? (origin => $streams->plain) : (), %opt);
    }
    my @where = $way eq 'TLS' ? (port => $server->tls_port, tls => 1) : (port => $server->{vars}{port});
    my $self = bless { %opt, @where }, $class;
    $self->connect;
    $self->put($self->request($path) . ($opt{behind} // ''));
    shutdown $self->{socket}, 1 if $opt{half};
    return $self->read_head;
}

END { $_->stop for values %streams }

sub put
{
    my ($self, $bytes) = @_;
    return $self->{io}->syswrite($bytes) || die "no request was sent: $!\n";
}

sub request
{
    my ($self, $path) = @_;
    my %headers = (Host => "localhost:$self->{port}", %{ $self->{headers} // {} });
    my $version = $self->{version} // '1.1';
    return "GET $path HTTP/$version\r\n" . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers)
        . "\r\n";
}

# The buffer's size counts from the connection's first segment, so it is set before there is one.
sub connect
{
    my ($self) = @_;
    socket my $socket, AF_INET, SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', $self->{buffer} // BUFFER;
    setsockopt $socket, SOL_SOCKET, Socket::SO_RCVTIMEO(), pack 'l!l!', PATIENCE, 0;
    CORE::connect $socket, pack_sockaddr_in($self->{port}, inet_aton('127.0.0.1'))
        or die "no connection to the server: $!\n";
    $self->{socket} = $self->{io} = bless $socket, 'IO::Socket::INET';
    return if !$self->{tls};
    $self->{io} = IO::Socket::SSL->start_SSL($socket, SSL_hostname => 'localhost',
        SSL_verify_mode => IO::Socket::SSL::SSL_VERIFY_NONE(), SSL_alpn_protocols => ['http/1.1'])
        or die "no TLS: $IO::Socket::SSL::SSL_ERROR\n";
    return;
}

# Also of the next answer, where one is whole and more was asked for.
sub read_head
{
    my ($self) = @_;
    my $head = '';
    @$self{qw(read sha)} = (0, Digest::SHA->new(256));
    while ($head !~ /\r\n\r\n/) {
        $self->{io}->sysread($head, PIECE, length $head) or die "the connection ended: $head\n";
    }
    ($head, my $body) = split /\r\n\r\n/, $head, 2;
    ($self->{status}) = $head =~ m{^HTTP/1\.1 (\d+)};
    ($self->{length}) = $head =~ /^Content-Length: (\d+)\r?$/mi;
    $self->take($body);
    return $self;
}

sub take
{
    my ($self, $bytes) = @_;
    $self->{read} += length $bytes;
    $self->{sha}->add($bytes);
    return;
}

# False when there is no more.
sub read_some
{
    my ($self, $most) = @_;
    my $count = $self->{io}->sysread(my $bytes, $most < PIECE ? $most : PIECE);
    $self->{error} = $! if !defined $count;
    $self->take($bytes) if $count;
    return $count;
}

sub read_until
{
    my ($self, $until) = @_;
    while ($self->{read} < $until) {
        $self->read_some($until - $self->{read})
            or die "the answer ended after $self->{read} bytes\n";
    }
    return $self;
}

# Reads to the end of the answer or of the connection, as fast as it comes; returns true when it is whole.
sub rest
{
    my ($self) = @_;
    setsockopt $self->{socket}, SOL_SOCKET, SO_RCVBUF, pack 'i', 2**20;
    while ($self->{read} < $self->{length}) {
        $self->read_some($self->{length} - $self->{read}) or last;
    }
    return $self->{read} == $self->{length};
}

sub read_bytes { return shift->{read} }
sub status     { return shift->{status} }
sub sha256     { return shift->{sha}->clone->hexdigest }

sub arrived
{
    my ($self) = @_;
    return $self->{left} if $self->{left};
    my $waiting = pack 'i', 0;
    ioctl $self->{socket}, FIONREAD, $waiting or die "FIONREAD: $!";
    return $self->{read} + ($self->{tls} ? $self->{io}->pending : unpack 'i', $waiting);
}

# Besides what arrived the server's kernel may hold some.
sub at_most { return shift->arrived + UNSENT }

# Leaves with all that has arrived, by a reset that comes before anything else; or with bytes unread, as
# a process that is killed.  Returns how many bytes it has read.
sub leave
{
    my ($self, $reset) = @_;
    if ($reset) {
        setsockopt $self->{socket}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
        my $arrived = $self->arrived;
        $self->read_some($arrived - $self->{read}) while $self->{read} < $arrived;
    }
    $self->{left} = $self->arrived;
    $self->{tls} ? $self->{io}->close(SSL_no_shutdown => 1) : close $self->{socket};
    return $self->{read};
}

1;
