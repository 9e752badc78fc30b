# A process beside the test that ends when nobody holds the pipe to it any more, however that happens.
#
#   my $self = $class->begin(sub { my ($self, $watch) = @_; … }, %members);    # returns when $watch does
#   $self->stop;
#
# A kind that starts a program instead of a fork of the test sets owner, pid and hold by itself.
package MDL::Helper;

use strict;
use warnings;

use POSIX ();

sub begin
{
    my ($class, $run, %members) = @_;
    pipe my $watch, my $hold or die "pipe: $!";
    my $self = bless { %members, owner => $$ }, $class;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $hold;
        $run->($self, $watch);
        POSIX::_exit(0);
    }
    @$self{qw(pid hold)} = ($pid, $hold);
    return $self;
}

# Whether it was there to be stopped.
sub stop
{
    my ($self) = @_;
    return 0 if !$self->{hold} || $$ != $self->{owner};
    close delete $self->{hold};
    local $?;
    waitpid $self->{pid}, 0;
    return 1;
}

sub DESTROY { return shift->stop }

1;
