#!/usr/bin/perl
# What make bench makes of its measurements.
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
is(median(4, 1, 2, 3), 2.5, 'of an even number the mean of the two in the middle');
is(median(), undef, 'of nothing there is none');

my $sum = of({ beside => 1, floor => 0.5, goal => 0.7 }, pair(100, 100), pair(10, 20), pair(50, 200));
is($sum->{ratio}, 0.5, 'the ratio is the median of the ratios of the rounds');
is($sum->{ours}{rate}, 50, 'each side has its own median');
is($sum->{beside}{rate}, 100, 'of its own order');
is($sum->{short}, 0, 'what reaches its floor is not short of it');
is(of({ beside => 1, floor => 0.51, goal => 0.7 }, pair(10, 20))->{short}, 1, 'what does not is');

my $most = { beside => 1, floor => 1.5, goal => 1.2, most => 1 };
is(of($most, pair(3, 2))->{short}, 0, 'where less is better the floor is the most');
is(of($most, pair(4, 2))->{short}, 1, 'and what is above it is short');

my $alone = of({ floor => 10, goal => 4, most => 1 }, map { { ours => { p50 => $_ }, beside => {} } } 3, 12, 5);
is($alone->{ratio}, 5, 'without a yardstick the figure itself counts, a time where there is no rate');
is($alone->{beside}, undef, 'and nothing stands beside it');

done_testing();
