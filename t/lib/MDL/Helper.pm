# A process beside the test that ends when the pipe to it is closed, at the latest when the test
# ends.
#
#   my $self = $class->begin(sub { my ($self, $watch) = @_; … }, %members);
#       # the sub returns when $watch does
#   $self->stop;
#
# A server among them runs accept_all, and has a method serve.
#
# A subclass that starts a program instead of forking the test sets owner, pid and hold itself.
package MDL::Helper;

use strict;
use warnings;

use IO::Select;
use POSIX ();

my %holds;    # by the descriptor: a helper must not keep others from seeing the end of their pipes

sub begin
{
    my ($class, $run, %members) = @_;
    pipe my $watch, my $hold or die "pipe: $!";
    my $self = bless { %members, owner => $$ }, $class;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $_ for $hold, values %holds;
        $run->($self, $watch);
        POSIX::_exit(0);
    }
    @$self{qw(pid hold)} = ($pid, $hold);
    $holds{ fileno $hold } = $hold;
    return $self;
}

# Serves each connection in a process of its own, until the test ends.
sub accept_all
{
    my ($self, $listener, $watch) = @_;
    local $SIG{CHLD} = 'IGNORE';
    local $SIG{PIPE} = 'IGNORE';
    my $select = IO::Select->new($listener, $watch);
    while (1) {
        for my $ready ($select->can_read) {
            return if $ready == $watch;
            my $client = $listener->accept or next;
            my $pid = fork;
            if (defined $pid && !$pid) {
                close $listener;
                eval { $self->serve($client, $watch); 1 } or warn ref $self, ": $@";
                POSIX::_exit(0);
            }
            close $client;
        }
    }
    return;
}

# Stops the process; returns whether there was one.
sub stop
{
    my ($self) = @_;
    return 0 if !$self->{hold} || $$ != $self->{owner};
    delete $holds{ fileno $self->{hold} };
    close delete $self->{hold};
    local $?;
    waitpid $self->{pid}, 0;
    return 1;
}

sub DESTROY { return shift->stop }

1;
