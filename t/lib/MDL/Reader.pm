# A client that takes so many bytes of a body and no more, over HTTP/1.1, TLS or HTTP/2.
#
#   my $reader = MDL::Reader->new($server, 'h2', $path, range => 'bytes=100-');
#   $reader->status;             # once the header has come
#   my $bytes = $reader->take(1 << 20);    # fewer when the answer ends; undef when it breaks off
#   $reader->leave;              # at once, with a reset
#
# Its receive buffer is small, so what the server's kernel was acknowledged is about what it took.
# HTTP/2 is the least that serves: one stream, headers without compression, on the plain port.
package MDL::Reader;

use strict;
use warnings;

use IO::Socket::INET;
use IO::Socket::SSL;
use Socket qw(SOL_SOCKET SO_LINGER SO_RCVBUF INADDR_LOOPBACK inet_ntoa pack_sockaddr_in);

use constant BUFFER => 65536;
use constant { DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4, PING => 6, GOAWAY => 7,
    WINDOW_UPDATE => 8 };

sub new
{
    my ($class, $server, $protocol, $path, %headers) = @_;
    my $port = $protocol eq 'tls' ? $server->tls_port : $server->{vars}{port};
    socket my $socket, Socket::AF_INET, Socket::SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', BUFFER or die "SO_RCVBUF: $!";
    setsockopt $socket, Socket::IPPROTO_TCP, Socket::TCP_NODELAY, pack 'i', 1 or die "TCP_NODELAY: $!";
    connect $socket, pack_sockaddr_in($port, INADDR_LOOPBACK) or die "connect: $!";
    my $self = bless {
        protocol => $protocol, socket => $socket, reader => $socket, raw => '', body => '', ended => 0,
    }, $class;
    if ($protocol eq 'tls') {
        $self->{reader} = IO::Socket::SSL->start_SSL($socket, SSL_verify_mode => SSL_VERIFY_NONE)
            or die "TLS: $IO::Socket::SSL::SSL_ERROR\n";
    }
    $headers{host} = 'localhost';
    $protocol eq 'h2' ? $self->ask_stream($path, %headers) : $self->ask($path, %headers);
    return $self;
}

sub ask
{
    my ($self, $path, %headers) = @_;
    $self->put("GET $path HTTP/1.1\r\n" . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers)
            . "\r\n");
    $self->more or die "no answer\n" until $self->{raw} =~ s/^(.*?\r\n\r\n)//s;
    $self->{header} = $1;
    ($self->{status}) = $self->{header} =~ m{^HTTP/1\.1 (\d+)};
    ($self->{length}) = $self->{header} =~ /^Content-Length: (\d+)/mi;
    return;
}

sub put
{
    my ($self, $bytes) = @_;
    my $socket = $self->{reader};
    local $SIG{PIPE} = 'IGNORE';
    while (length $bytes) {
        my $n = syswrite $socket, $bytes or die "write: $!\n";
        substr $bytes, 0, $n, '';
    }
    return;
}

# Reads once; false at the end, or when the connection broke off.
sub more
{
    my ($self) = @_;
    local $SIG{ALRM} = sub { die "nothing came for 30 s\n" };
    alarm 30;
    my $n = sysread $self->{reader}, $self->{raw}, 16384, length $self->{raw};
    alarm 0;
    return $n;
}

# --- HTTP/2 ----------------------------------------------------------------------------------------

sub frame_of
{
    my ($type, $flags, $stream, $payload) = @_;
    return substr(pack('N', length $payload), 1) . pack('CCN', $type, $flags, $stream) . $payload;
}

sub frame { return shift->put(frame_of(@_)) }

sub literal
{
    my ($text) = @_;
    return length $text < 127 ? chr(length $text) . $text
        : chr(127) . chr((length($text) - 127) % 128 | 128 * (length $text >= 255))
            . (length $text >= 255 ? chr((length($text) - 127) >> 7) : '') . $text;
}

sub ask_stream
{
    my ($self, $path, %headers) = @_;
    my $host = delete $headers{host};
    my @fields = ([ ':method', 'GET' ], [ ':scheme', 'http' ], [ ':authority', $host ],
        [ ':path', $path ], map { [ $_, $headers{$_} ] } sort keys %headers);
    $self->put("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    # No table of headers, so that the status comes as it stands in the static one.
    $self->frame(SETTINGS, 0, 0, pack 'nN', 1, 0);
    $self->frame(HEADERS, 5, 1, join '', map { "\0" . literal($_->[0]) . literal($_->[1]) } @fields);
    $self->next_frame or die "no answer\n" until defined $self->{status};
    return;
}

my %STATUS = (8 => 200, 9 => 204, 10 => 206, 11 => 304, 12 => 400, 13 => 404, 14 => 500);

# Takes in a frame; false when there are no more.
sub next_frame
{
    my ($self) = @_;
    while (length $self->{raw} < 9
        || length $self->{raw} < 9 + unpack 'N', "\0" . substr $self->{raw}, 0, 3)
    {
        $self->more or return 0;
    }
    my $head = substr $self->{raw}, 0, 9, '';
    my ($type, $flags, $stream) = unpack 'x3CCN', $head;
    my $payload = substr $self->{raw}, 0, unpack('N', "\0" . substr $head, 0, 3), '';
    if ($type == DATA) {
        $self->{body} .= $payload;
        $self->{ended} = 1 if $flags & 1;
    }
    elsif ($type == HEADERS) {
        $payload = substr $payload, 5 if $flags & 32;
        while (length $payload && (ord($payload) & 0xe0) == 0x20) { $payload = substr $payload, 1 }
        my $first = ord $payload;
        $self->{status} = $STATUS{ $first & 127 } if $first & 128;
        $self->{status} = substr $payload, 2, 3 if $first == 0x48 || $first == 0x08;
        $self->{ended} = 1 if $flags & 1;
    }
    elsif ($type == SETTINGS && !($flags & 1)) {
        $self->frame(SETTINGS, 1, 0, '');
    }
    elsif ($type == PING) {
        $self->{pong} = 1 if $flags & 1;
        $self->frame(PING, 1, 0, $payload) if !($flags & 1);
    }
    elsif ($type == RST_STREAM || $type == GOAWAY) {
        $self->{reset} = $type == RST_STREAM ? 'stream' : 'connection';
        return 0;
    }
    return 1;
}

# Whether an HTTP/2 connection still answers.
sub is_alive
{
    my ($self) = @_;
    delete $self->{reset};
    eval { $self->frame(PING, 0, 0, 'are you?'); 1 } or return 0;
    while (!$self->{pong}) { $self->next_frame || $self->{reset} || return 0 }
    return 1;
}

# --- for the test ----------------------------------------------------------------------------------

sub status { return shift->{status} }

# True when the stream was reset, and not its connection.
sub stream_reset { return (shift->{reset} // '') eq 'stream' }

sub take
{
    my ($self, $wanted) = @_;
    if ($self->{protocol} ne 'h2') {
        while (length $self->{raw} < $wanted && length $self->{raw} < $self->{length}) {
            $self->more or return undef;
        }
        $wanted = $self->{length} if $wanted > $self->{length};
        $self->{length} -= $wanted;
        return substr $self->{raw}, 0, $wanted, '';
    }
    while (length $self->{body} < $wanted && !$self->{ended}) {
        my $before = length $self->{body};
        $self->next_frame or return undef;
        my $came = length($self->{body}) - $before;
        if ($came && !$self->{ended}) {
            my $update = join '', map { frame_of(WINDOW_UPDATE, 0, $_, pack 'N', $came) } 0, 1;
            eval { $self->put($update); 1 } or return undef;
        }
    }
    return substr $self->{body}, 0, $wanted, '';
}

sub all
{
    my ($self) = @_;
    return $self->take(1 << 40);
}

sub leave
{
    my ($self) = @_;
    setsockopt $self->{socket}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
    $self->{reader}->close(SSL_no_shutdown => 1) if $self->{protocol} eq 'tls';
    close $self->{socket};
    return;
}

1;
