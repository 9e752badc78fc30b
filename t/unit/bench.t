#!/usr/bin/perl
# How make bench evaluates its measurements, and what guards a row against getting slower.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bench";

use Bench::Guards;
use Bench::Report;
use File::Temp qw(tempdir);
use Test::More;

sub of
{
    my ($row, @rounds) = @_;
    return summary({ name => 'row', title => 'A row', db => 'pgsql', %$row }, @rounds);
}

sub pair
{
    my ($ours, $beside) = @_;
    return { ours => { rate => $ours }, beside => { rate => $beside } };
}

is(median(3, 1, 2), 2, 'the median of an odd number is the middle');
is(median(4, 1, 2, 3), 2.5, 'the median of an even number is the mean of the two in the middle');
is(median(), undef, 'an empty list has no median');

my $sum = of({ beside => 1, guard => 0.5 }, pair(100, 100), pair(10, 20), pair(50, 200));
is($sum->{ratio}, 0.5, 'the ratio is the median of the ratios of the rounds');
is($sum->{ours}{rate}, 50, 'each side has its own median');
is($sum->{beside}{rate}, 100, 'for both sides');
is($sum->{slower}, 0, 'a ratio at its guard is not slower');
is(of({ beside => 1, guard => 0.51 }, pair(10, 20))->{slower}, 1, 'a ratio below it is slower');
is(of({ beside => 1, goal => 0.9 }, pair(10, 20))->{slower}, 0, 'and without a guard none is');

my $most = { beside => 1, guard => 1.5, most => 1 };
is(of($most, pair(3, 2))->{slower}, 0, 'if less is better the guard is an upper limit');
is(of($most, pair(4, 2))->{slower}, 1, 'and a ratio above it is slower');

my $alone = of({ goal => 4, most => 1 }, map { { ours => { p50 => $_ }, beside => {} } } 3, 12, 5);
is($alone->{ratio}, 5,
    'without a yardstick the ratio is the figure itself, or the time if there is no rate');
is($alone->{beside}, undef, 'and there is no figure for the yardstick');

my $path = tempdir(CLEANUP => 1) . '/guards/machine';
my %ping = (name => 'ping', db => 'pgsql');
is_deeply(read_guards($path), {}, 'a machine without a file has no guards');
my %failed = (%ping, db => 'sqlite3', failed => 'why');
sub guard_of { my ($db, %row) = @_; return scalar guard(read_guards($path), { %ping, %row }, $db) }

record($path, { %ping, ratio => $_ }, \%failed) for 0.3, 0.9, 1.2, 0.6, 0.8;
is(guard_of('pgsql'), 0.25, 'of five runs the lowest guards, less a sixth');
is(guard_of('pgsql', most => 1), 1.4, 'or the highest and a sixth, if less is better');
is(guard_of('sqlite3'), undef, 'a row that could not be measured is not recorded');
record($path, { %ping, ratio => 0.7 });
is(guard_of('pgsql'), 0.5, 'the last five runs count');
is(guard({ 'ping pgsql' => [ (1) x 4 ] }, \%ping, 'pgsql'), undef, 'and four guard nothing');

# The table of the guide is the model's, or a part of it.
my $top = "$FindBin::Bin/../..";
open my $guide, '<', "$top/docs/scale.md" or die "scale.md: $!\n";
my ($table) = join('', <$guide>) =~ /^\| orders a day .*?\n\|[-:|]+\n(.*?)\n\n/ms;
my %model = map { s/\s+/ /gr => 1 } qx($^X "$top/t/bench/model");
my @shown = map { "$_ " } split /\n/, $table // '';
cmp_ok(scalar @shown, '>', 10, 'docs/scale.md has a table');
is_deeply([ grep { !$model{$_} } @shown ], [], 'which is what the model prints');

done_testing();
