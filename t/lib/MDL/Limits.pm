# What suites of rate limits share.
package MDL::Limits;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(count limited back);

sub count { my ($status, @of) = @_; return scalar grep { $_->{status} == $status } @of }

# The answer once nothing is left: a few tokens may just have come back, and as many as one a second
# since the last such answer, if the machine is busy.
my $nothing_left = $^T;

sub limited
{
    my ($ask) = @_;
    my $reply;
    for (my $asked = 0; $asked < 200 && $asked < 5 + time - $nothing_left; $asked++) {
        $reply = $ask->();
        next if $reply->{status} != 429;
        $nothing_left = time;
        last;
    }
    return $reply;
}

# What may have come back since a time, with so many a minute.
sub back { my ($a_minute, $since) = @_; return 1 + int((time - $since + 1) * $a_minute / 60) }

1;
