# What `make bench` says of its rows, as tables of Markdown: medians of the rounds, the ratio beside
# guard and goal.
package Bench::Report;

use strict;
use warnings;

use Exporter qw(import);
use JSON::PP;
use List::Util qw(max);

our @EXPORT = qw(median measured summary is_slower print_head print_row print_costs write_json);

sub median
{
    my @sorted = sort { $a <=> $b } @_;
    return if !@sorted;
    return ($sorted[ ($#sorted) / 2 ] + $sorted[ @sorted / 2 ]) / 2;
}

# What a run of a side counts as: its rate, or where there is none how long it took.
sub measured { my ($side) = @_; return $side->{rate} // $side->{p50} }

# Of the rounds, [ { ours, beside } ], each side's medians, and the median of the rounds' ratios. A
# row without a yardstick has its own figure instead of a ratio.
sub summary
{
    my ($row, @rounds) = @_;
    my %sum = (name => $row->{name}, title => $row->{title}, db => $row->{db},
        guard => $row->{guard}, goal => $row->{goal}, most => $row->{most} ? 1 : 0);
    for my $side (qw(ours beside)) {
        for my $figure (qw(rate p50 p99)) {
            my @values = grep { defined } map { $_->{$side}{$figure} } @rounds;
            $sum{$side}{$figure} = median(@values) if @values;
        }
    }
    $sum{ratio} = median(map { $row->{beside} ? measured($_->{ours}) / measured($_->{beside})
        : measured($_->{ours}) } @rounds);
    $sum{rounds} = @rounds;
    $sum{slower} = is_slower(\%sum) ? 1 : 0;
    return \%sum;
}

# Below its guard, or above it where less is better.
sub is_slower
{
    my ($sum) = @_;
    return if !defined $sum->{guard};
    return $sum->{most} ? $sum->{ratio} > $sum->{guard} : $sum->{ratio} < $sum->{guard};
}

sub figure
{
    my ($value) = @_;
    return '-' if !defined $value;
    return sprintf $value >= 100 ? '%.0f' : $value >= 10 ? '%.1f' : '%.2f', $value;
}

# Columns with their widths; a negative one is for text.
my @ROW  = ([ row => -51 ], [ db => -7 ], [ ours => 8 ], [ 'p99 ms' => 7 ], [ beside => 8 ],
    [ ratio => 6 ], [ guard => 5 ], [ goal => 5 ], [ '' => -6 ]);
my @COST = qw(statements trips rows allocations system_calls);

sub print_cells
{
    my ($columns, @cells) = @_;
    print join(' | ', '',
        map { sprintf "%$columns->[$_][1]s", $cells[$_] } 0 .. $#cells) =~ s/^ //r, " |\n";
    return;
}

sub print_titles
{
    my ($columns) = @_;
    print_cells($columns, map { $_->[0] } @$columns);
    print '|', (map { '-' x (abs($_->[1]) + 1) . ($_->[1] > 0 ? ':' : '-') . '|' } @$columns), "\n";
    return;
}

sub print_head { print_titles(\@ROW); return }

sub print_row
{
    my ($sum) = @_;
    my $sign = $sum->{most} ? '<' : '';
    my @aims = map { defined $_ ? $sign . figure($_) : '-' } @$sum{qw(guard goal)};
    print_cells(\@ROW, @$sum{qw(title db)}, figure(measured($sum->{ours})),
        figure($sum->{ours}{p99}), figure(measured($sum->{beside} // {})),
        figure($sum->{ratio}), @aims, $sum->{slower} ? 'SLOWER' : '');
    return;
}

sub print_costs
{
    my ($costs) = @_;
    my @columns = ([ 'a request' => -32 ], [ db => -7 ], map { [ tr/_/ /r => 12 ] } @COST);
    print_titles(\@columns);
    print_cells(\@columns, @$_{qw(title db)}, map { $_ // '-' } @$_{@COST}) for @$costs;
    print "\n";
    return;
}

sub write_json
{
    my ($path, $result) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out JSON::PP->new->utf8->canonical->pretty->encode($result);
    close $out or die "$path: $!\n";
    return;
}

1;
