# A stretch of network between a client and the server, which is slow and gets cut.
#
#   my $path = MDL::Path->new(to => port(), rate => 8 * MB, cuts => [ 3 * MB ], how => 'fin');
#   … http://localhost:@{[ $path->port ]}/ …
#   $path->stop;
#
# Each of cuts ends one connection, the first that has brought so many bytes to its client: by an
# orderly end (fin) or a reset (rst).  Whatever is encrypted stays so.
package MDL::Path;

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER SO_RCVBUF SO_SNDBUF);
use Time::HiRes qw(sleep);

use constant { PIECE => 32768, BUFFER => 65536 };

sub new
{
    my ($class, %opt) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 64)
        or die "no free port: $!\n";
    pipe my $watch, my $hold or die "pipe: $!";
    my $self = bless { %opt, listener => $listener, port => $listener->sockport, owner => $$ }, $class;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $hold;
        $self->carry($watch);
        POSIX::_exit(0);
    }
    close delete $self->{listener};
    # It ends when this is closed, however that happens.
    @$self{qw(pid hold)} = ($pid, $hold);
    return $self;
}

sub port { return shift->{port} }

sub stop
{
    my ($self) = @_;
    return if !$self->{hold} || $$ != $self->{owner};
    close delete $self->{hold};
    local $?;
    waitpid $self->{pid}, 0;
    return;
}

sub DESTROY { return shift->stop }

sub carry
{
    my ($self, $watch) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $select = IO::Select->new($watch, $self->{listener});
    while (1) {
        for my $ready ($select->can_read) {
            return if $ready == $watch;
            if ($ready == $self->{listener}) {
                $select->add($self->open_pair);
            }
            elsif (my $end = $self->{ends}{ fileno $ready }) {
                next if $self->pass($end);
                $select->remove(@{ $end->{pair} }{qw(client server)});
                $self->close_pair($end->{pair});
            }
        }
    }
    return;
}

# Small buffers, so that what stands between the two is little.
sub open_pair
{
    my ($self) = @_;
    my $client = $self->{listener}->accept or return;
    my $server = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!";
    setsockopt $server, SOL_SOCKET, SO_RCVBUF, pack 'i', BUFFER;
    setsockopt $client, SOL_SOCKET, SO_SNDBUF, pack 'i', BUFFER;
    if (!$server->connect(Socket::pack_sockaddr_in($self->{to}, Socket::inet_aton('127.0.0.1')))) {
        close $_ for $client, $server;
        return;
    }
    my $pair = { client => $client, server => $server, brought => 0 };
    $self->{ends}{ fileno $client } = { from => $client, to => $server, pair => $pair };
    $self->{ends}{ fileno $server } = { from => $server, to => $client, pair => $pair, down => 1 };
    return ($client, $server);
}

# False when the two have to be parted.
sub pass
{
    my ($self, $end) = @_;
    my $pair = $end->{pair};
    sysread $end->{from}, my $bytes, PIECE or return 0;
    for (my $done = 0; $done < length $bytes;) {
        $done += syswrite($end->{to}, $bytes, length($bytes) - $done, $done) // return 0;
    }
    return 1 if !$end->{down};
    $pair->{brought} += length $bytes;
    sleep length($bytes) / $self->{rate} if $self->{rate};
    my $cuts = $self->{cuts} // [];
    return 1 if !@$cuts || $pair->{brought} < $cuts->[0];
    shift @$cuts;
    setsockopt $pair->{client}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $self->{how} eq 'rst';
    return 0;
}

sub close_pair
{
    my ($self, $pair) = @_;
    for (@$pair{qw(server client)}) {
        delete $self->{ends}{ fileno $_ };
        close $_;
    }
    return;
}

1;
