# Streams of HTTP/2 that a test reads as far as it wants; see t/node/http2-reader.mjs.
#
#   my $streams = MDL::Streams->new($server);
#   $streams->get('a', path => $path, until => 100_000);    # on a connection of its own
#   my $event = $streams->event('a');                       # { event => 'paused', bytes => 100000, … }
#   $streams->tell(do => 'reset', id => 'a');
package MDL::Streams;

use strict;
use warnings;

use IO::Select;
use IPC::Open2;
use JSON::PP;
use MDL::Test ();

use constant PATIENCE => 60;

sub new
{
    my ($class, $server) = @_;
    my $self = bless { seen => [], text => '', owner => $$ }, $class;
    $self->{origin} = 'https://localhost:' . $server->tls_port;
    $self->{pid} = open2($self->{out}, $self->{in}, 'tools/node', 't/node/http2-reader.mjs',
        $server->certificate);
    return $self;
}

sub tell
{
    my ($self, %command) = @_;
    local $SIG{PIPE} = 'IGNORE';
    syswrite $self->{in}, encode_json(\%command) . "\n" or die "the streams are gone: $!\n";
    return;
}

sub get
{
    my ($self, $id, %more) = @_;
    return $self->tell(do => 'get', id => $id, on => "that of $id", origin => $self->{origin}, %more);
}

# The next event of this stream, or of the connection of this name.
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
        sysread $self->{out}, $self->{text}, 65536, length $self->{text} or die "the streams are gone\n";
        push @{ $self->{seen} }, decode_json($1) while $self->{text} =~ s/^(.*)\n//;
    }
    return;
}

sub stop
{
    my ($self) = @_;
    return if !$self->{in} || $$ != $self->{owner};
    close delete $self->{in};
    local $?;
    waitpid $self->{pid}, 0;
    return;
}

sub DESTROY { return shift->stop }

1;
