#!/usr/bin/perl
# How make bench evaluates its measurements.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bench";

use Bench::Report;
use Test::More;

sub of
{
    my ($row, @rounds) = @_;
    return summary({ name => 'row', title => 'A row', db => 'pgsql', %$row }, @rounds);
}

sub pair { my ($ours, $beside) = @_; return { ours => { rate => $ours }, beside => { rate => $beside } } }

is(median(3, 1, 2), 2, 'the median of an odd number is the middle');
is(median(4, 1, 2, 3), 2.5, 'the median of an even number is the mean of the two in the middle');
is(median(), undef, 'an empty list has no median');

my $sum = of({ beside => 1, floor => 0.5, goal => 0.7 }, pair(100, 100), pair(10, 20), pair(50, 200));
is($sum->{ratio}, 0.5, 'the ratio is the median of the ratios of the rounds');
is($sum->{ours}{rate}, 50, 'each side has its own median');
is($sum->{beside}{rate}, 100, 'for both sides');
is($sum->{short}, 0, 'a ratio at its floor is not short of it');
is(of({ beside => 1, floor => 0.51, goal => 0.7 }, pair(10, 20))->{short}, 1, 'a ratio below its floor is short of it');

my $most = { beside => 1, floor => 1.5, goal => 1.2, most => 1 };
is(of($most, pair(3, 2))->{short}, 0, 'if less is better the floor is an upper limit');
is(of($most, pair(4, 2))->{short}, 1, 'and a ratio above it is short of it');

my $alone = of({ floor => 10, goal => 4, most => 1 }, map { { ours => { p50 => $_ }, beside => {} } } 3, 12, 5);
is($alone->{ratio}, 5, 'without a yardstick the ratio is the figure itself, or the time if there is no rate');
is($alone->{beside}, undef, 'and there is no figure for the yardstick');

done_testing();
