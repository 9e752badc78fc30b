# HTTP/2 streams that a test reads as far as it wants; see t/node/http2-reader.mjs.
#
#   my $streams = MDL::Streams->new($server);
#   $streams->get('a', path => $path, until => 100_000);    # on a connection of its own
#   my $event = $streams->event('a'); # { event => 'paused', bytes => 100000, … }
#   $streams->tell(do => 'reset', id => 'a');
#   my $client = $streams->client($path);                   # as an MDL::DownloadClient
#
# Connections use TLS unless origin => $streams->plain is given.
package MDL::Streams;

use strict;
use warnings;

use IO::Select;
use IPC::Open2;
use JSON::PP;
use MDL::Test ();

use parent 'MDL::Helper';

use constant PATIENCE => 120;

sub new
{
    my ($class, $server) = @_;
    my $self = bless { seen => [], text => '', owner => $$ }, $class;
    $self->{origin} = 'https://localhost:' . $server->tls_port;
    $self->{plain}  = 'http://localhost:' . $server->{vars}{port};
    $self->{pid} = open2($self->{out}, $self->{hold}, 'tools/node', 't/node/http2-reader.mjs',
        $server->certificate);
    return $self;
}

sub tell
{
    my ($self, %command) = @_;
    local $SIG{PIPE} = 'IGNORE';
    syswrite $self->{hold}, encode_json(\%command) . "\n"
        or die "t/node/http2-reader.mjs has ended: $!\n";
    return;
}

sub get
{
    my ($self, $id, %more) = @_;
    return $self->tell(do => 'get', id => $id, on => "connection of $id",
        origin => $self->{origin}, %more);
}

sub plain { return shift->{plain} }

# Opens a stream on a connection of its own; returns it once the head of the answer has come.
sub client
{
    my ($self, $path, %more) = @_;
    my $client = bless { streams => $self, id => ++$self->{clients} . " $path" },
        'MDL::Streams::Client';
    $self->get($client->{id}, path => $path, until => 0, %more);
    $client->{last} = $self->event($client->{id});
    die "no answer: $client->{last}{error}\n" if !defined $client->{last}{status};
    return $client;
}

# The next event of the stream or connection of this name.
sub event
{
    my ($self, $name) = @_;
    while (1) {
        for my $i (0 .. $#{ $self->{seen} }) {
            my $event = $self->{seen}[$i];
            next if ($event->{id} // $event->{on}) ne $name;
            splice @{ $self->{seen} }, $i, 1;
            return $event;
        }
        IO::Select->new($self->{out})->can_read(PATIENCE) or die "waited in vain for $name\n";
        sysread $self->{out}, $self->{text}, 65536, length $self->{text}
            or die "t/node/http2-reader.mjs has ended\n";
        push @{ $self->{seen} }, decode_json($1) while $self->{text} =~ s/^(.*)\n//;
    }
    return;
}

package MDL::Streams::Client;

sub go
{
    my ($self, %how) = @_;
    $self->{streams}->tell(do => 'go', id => $self->{id}, %how);
    return $self->{last} = $self->{streams}->event($self->{id});
}

sub read_until
{
    my ($self, $until) = @_;
    my $event = $self->go(until => $until);
    die "the stream $event->{event} after $event->{bytes} bytes\n" if $event->{bytes} < $until;
    return $self;
}

sub rest
{
    my ($self) = @_;
    return $self->{last}{event} eq 'end' || $self->go->{event} eq 'end';
}

# Breaks off: ends the whole connection, or only the stream by a reset.
sub leave
{
    my ($self, $connection) = @_;
    return $self->{last}{bytes} if $self->{last}{event} ne 'paused';
    $self->{streams}->tell(id => $self->{id},
        $connection ? (do => 'drop', on => "connection of $self->{id}") : (do => 'reset'));
    $self->{last} = $self->{streams}->event($self->{id});
    return $self->{last}{bytes};
}

# The server's kernel may hold bytes that have not arrived yet, and so may mod_http2.
sub at_most { return shift->arrived + 2 * 131072 }

# All bytes that came over the connection, frames included.
sub arrived { return shift->{last}{arrived} }

sub read_bytes { return shift->{last}{bytes} }
sub status     { return shift->{last}{status} }
sub sha256     { return shift->{last}{sha256} }

1;
