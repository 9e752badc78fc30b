# The rows of `make bench`.  A file of t/bench/rows declares them:
#
#   row 'ping',                           # the name that ROWS chooses by
#       title   => 'GET /ping',
#       request => sub { … },             # given the service, the options of wrk for ours
#       beside  => sub { … },             # runs the yardstick once; none: the figure itself counts
#       goal => 0.80;
#
#   ours       instead of request: runs ours once
#   prepare    is run once on the service, and not measured
#   db         the only database that the row is for
#   most       1: less is better
#   grows      1: is also measured on services with more and more orders
#   on         the service, by its name in %SERVICES (usual)
#   beside_on  the service that the yardstick runs on
#   rounds     at the most
package Bench::Row;

use strict;
use warnings;

use Bench::Load;
use Exporter qw(import);

our @EXPORT = qw(row);

my @rows;

sub row
{
    my ($name, %row) = @_;
    my $request = $row{request};
    $row{ours} //= sub { my ($on) = @_; return wrk($on, $request->($on)) };
    push @rows, { on => 'usual', %row, name => $name };
    return;
}

sub all { return @rows }

sub prepare
{
    my ($row, $on) = @_;
    $row->{prepare}->($on) if $row->{prepare} && !$on->{prepared}{ $row->{prepare} }++;
    return;
}

1;
