# A process that passes bytes between clients and a server.  A subclass has two methods: open_pair
# connects to the server and registers both connections with add_pair; pass passes on what has
# arrived at one of them, and returns false to close both.
#
#   my $self = $class->carry($listener, %members);
#   $self->stop;
package MDL::Relay;

use strict;
use warnings;

use IO::Select;

use parent 'MDL::Helper';

sub carry
{
    my ($class, $listener, %members) = @_;
    return $class->begin(sub { my ($self, $watch) = @_; $self->run($listener, $watch) }, %members);
}

sub run
{
    my ($self, $listener, $watch) = @_;
    local $SIG{PIPE} = 'IGNORE';
    $self->{watch} = $watch;
    my $select = IO::Select->new($watch, $listener);
    while (1) {
        for my $ready ($select->can_read) {
            return if $ready == $watch;
            if ($ready == $listener) {
                my $client = $listener->accept or next;
                $select->add($self->open_pair($client));
            }
            elsif (my $end = $self->{ends}{ fileno($ready) // next }) {
                next if $self->pass($end);
                $select->remove(@{ $end->{pair} }{qw(client server)});
                $self->close_pair($end->{pair});
            }
        }
    }
    return;
}

sub add_pair
{
    my ($self, $client, $server) = @_;
    my $pair = { client => $client, server => $server };
    $self->{ends}{ fileno $client } = { from => $client, to => $server, pair => $pair, up => 1 };
    $self->{ends}{ fileno $server } = { from => $server, to => $client, pair => $pair };
    return ($client, $server);
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

# Writes all bytes; false if that failed.
sub write_all
{
    my ($to, $bytes) = @_;
    for (my $done = 0; $done < length $bytes;) {
        $done += syswrite($to, $bytes, length($bytes) - $done, $done) // return 0;
    }
    return 1;
}

1;
