# An HTTP client that reads a chosen part of an answer and then breaks off, and knows how many bytes
# have reached it.
#
#   my $client = MDL::DownloadClient->over('TLS', $server, $path,
#       headers => { Range => 'bytes=5-' });
#   $client->read_until(100_000);       # reads so many bytes of the body, and keeps the connection
#   my $arrived = $client->arrived;     # bytes read, and those that wait in the kernel
#   my $at_most = $client->at_most;     # the most that the service may count as delivered
#   $client->leave;                     # breaks off; rest() reads to the end instead
#
# The protocols are HTTP/1.1, TLS (HTTP/1.1 over TLS), HTTP/2 (over TLS) and h2c; MDL::Streams
# serves the last two. Options: headers; and for the first two
#   buffer      size of the kernel's receive buffer; by default small, so that little arrives unread
#   version     1.0 sends an HTTP/1.0 request
#   pipelined   bytes to send right after the request
#   half_close  closes the sending side after them
# Over TLS arrived() does not see records that are not decrypted yet, so more may have arrived.
package MDL::DownloadClient;

use strict;
use warnings;

use Digest::SHA;
use IO::Socket::SSL;
use MDL::Streams;
use MDL::Target qw(wait_for);
use Socket qw(AF_INET IPPROTO_TCP SOCK_STREAM SOL_SOCKET SO_LINGER SO_RCVBUF TCP_QUICKACK inet_aton
    pack_sockaddr_in);

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
        return $streams->client($path, $way eq 'h2c' ? (origin => $streams->plain) : (), %opt);
    }
    my @where = $way eq 'TLS' ? (port => $server->tls_port, tls => 1)
        : (port => $server->{vars}{port});
    my $self = bless { %opt, @where }, $class;
    $self->connect;
    $self->send($self->request($path) . ($opt{pipelined} // ''));
    shutdown $self->{socket}, 1 if $opt{half_close};
    return $self->read_head;
}

END { $_->stop for values %streams }

sub send
{
    my ($self, $bytes) = @_;
    return $self->{io}->syswrite($bytes) || die "no request was sent: $!\n";
}

sub request
{
    my ($self, $path) = @_;
    my %headers = (Host => "localhost:$self->{port}", %{ $self->{headers} // {} });
    my $version = $self->{version} // '1.1';
    return "GET $path HTTP/$version\r\n"
        . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers)
        . "\r\n";
}

# The kernel takes the size of the buffer when it connects, so it is set before.
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

# Reads the head of the answer, or of the next one if requests were pipelined.
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
    $self->count_body($body);
    return $self;
}

sub count_body
{
    my ($self, $bytes) = @_;
    $self->{read} += length $bytes;
    $self->{sha}->add($bytes);
    return;
}

# Reads up to $most bytes; returns false at the end.
sub read_some
{
    my ($self, $most) = @_;
    my $count = $self->{io}->sysread(my $bytes, $most < PIECE ? $most : PIECE);
    $self->{error} = $! if !defined $count;
    $self->count_body($bytes) if $count;
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

# Reads on to the end of the answer or of the connection; returns whether the answer is complete.
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

# The bytes that wait in the kernel. It acknowledges them now, not 40 ms later, which the service
# might not see any more.
sub waiting
{
    my ($self) = @_;
    my $waiting = pack 'i', 0;
    ioctl $self->{socket}, FIONREAD, $waiting or die "FIONREAD: $!";
    setsockopt $self->{socket}, IPPROTO_TCP, TCP_QUICKACK, 1;
    return unpack 'i', $waiting;
}

sub arrived
{
    my ($self) = @_;
    return $self->{left} if $self->{left};
    my $waiting = $self->waiting;
    return $self->{read} + ($self->{tls} ? $self->{io}->pending : $waiting);
}

# Waits until the kernel has no room for more of an answer that goes on.
sub fill
{
    my ($self) = @_;
    my $before = 0;
    return wait_for(sub {
        my $waiting = $self->waiting;
        my $same = $waiting > 0 && $waiting == $before;
        $before = $waiting;
        return $same;
    }, 60, 'bytes that nobody reads');
}

# The server's kernel may hold bytes that have not arrived yet.
sub at_most { return shift->arrived + UNSENT }

# Breaks off: with $reset it reads all that has arrived and resets the connection; without, it
# closes the connection with bytes unread, as a killed process does. Returns how many bytes it has
# read.
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
