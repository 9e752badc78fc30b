# What guards the rows of `make bench` against getting slower.  t/bench/guards has a file for each
# machine with the ratios of whole runs there, which `make bench RECORD=5` appends:
#
#   ping pgsql 0.874 0.868 0.881 0.859 0.870
#
# The last five count, and guard once they are five: a row must not come to less than the lowest of
# them, less a sixth; where less is better, to more than the highest and a sixth.
package Bench::Guards;

use strict;
use warnings;

use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use List::Util qw(max min);

our @EXPORT = qw(guards_file read_guards guard record);

use constant RUNS => 5;

# The file of this machine, by its processor and cores unless MACHINE names it.
sub guards_file
{
    open my $in, '<', '/proc/cpuinfo' or die "/proc/cpuinfo: $!\n";
    my $info    = join '', <$in>;
    my ($model) = $info =~ /^model name\s*:\s*(.*)$/m;
    my $cores   = () = $info =~ /^processor\b/mg;
    my $name    = $ENV{MACHINE} || join ' ', $model // 'processor', $cores, 'cores';
    return 't/bench/guards/' . lc $name =~ s/[^A-Za-z0-9]+/-/gr;
}

# { 'ping pgsql' => [ ratios ] }; empty if there is no such file.
sub read_guards
{
    my ($path) = @_;
    open my $in, '<', $path or return {};
    return { map { my ($name, $db, @ratios) = split; ("$name $db" => \@ratios) } <$in> };
}

sub guard
{
    my ($ratios, $row, $db) = @_;
    my @last = @{ $ratios->{"$row->{name} $db"} // [] };
    return if @last < RUNS;
    return $row->{most} ? max(@last) * 7 / 6 : min(@last) * 5 / 6;
}

# Appends a run to the file of a machine.
sub record
{
    my ($path, @sums) = @_;
    my $ratios = read_guards($path);
    for my $sum (grep { !$_->{failed} } @sums) {
        my $row  = $ratios->{"$sum->{name} $sum->{db}"} //= [];
        push @$row, sprintf '%.4g', $sum->{ratio};
        splice @$row, 0, -RUNS() if @$row > RUNS;
    }
    make_path(dirname($path));
    open my $out, '>', $path or die "$path: $!\n";
    print $out join(' ', $_, @{ $ratios->{$_} }), "\n" for sort keys %$ratios;
    close $out or die "$path: $!\n";
    return;
}

1;
