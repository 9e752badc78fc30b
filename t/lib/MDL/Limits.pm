# What suites of rate limits share.
package MDL::Limits;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(count limited back);

sub count { my ($status, @of) = @_; return scalar grep { $_->{status} == $status } @of }

# The answer once nothing is left: a token may just have come back.
sub limited
{
    my ($ask) = @_;
    my $reply;
    for (1 .. 5) {
        last if ($reply = $ask->())->{status} == 429;
    }
    return $reply;
}

# What may have come back since a time, with so many a minute.
sub back { my ($a_minute, $since) = @_; return 1 + int((time - $since + 1) * $a_minute / 60) }

1;
