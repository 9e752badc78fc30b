#!/usr/bin/perl
# What tools/sql2c takes and refuses of a migration.
use strict;
use warnings;

use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";

# Compiles our SQL with this second migration; returns the exit status and the output.
sub compiled
{
    my ($text) = @_;
    my $folder = tempdir(CLEANUP => 1);
    system('cp', '-R', 'sql', "$folder/sql") == 0 or die "cp failed\n";
    open my $out, '>', "$folder/sql/migrations/0002_next.sql" or die "$folder: $!\n";
    print $out $text;
    close $out or die "$folder: $!\n";
    my $output = qx(tools/sql2c '$folder/sql' '$folder/out' 2>&1);
    return ($? >> 8, $output);
}

my $adds = "CREATE TABLE next (id INTEGER);\n";
for my $level (1, 2) {
    is_deeply [ compiled("-- runs-with: $level\n$adds") ], [ 0, '' ],
        "a migration that runs with version $level is taken";
}
is_deeply [ compiled("-- runs-with: 1\nUPDATE shop SET name = 'x' WHERE id = 1;\n") ], [ 0, '' ],
    'and so is one that changes some rows';

for my $refusal (
    [ $adds => qr/One line "-- runs-with: N"/, 'no version' ],
    [ "-- runs-with: 1\n-- runs-with: 2\n$adds" => qr/One line/, 'two versions' ],
    [ "-- runs-with: 0\n$adds" => qr/from 1 to 2, not '0'/,       'no such version' ],
    [ "-- runs-with: 3\n$adds" => qr/from 1 to 2, not '3'/,       'a later version' ],
    [ "-- runs-with: all\n$adds" => qr/from 1 to 2, not 'all'/,   'no number' ],
    [ "-- runs-with: 1\nUPDATE shop SET name = 'x';\n" => qr/'UPDATE shop .* all rows/,
        'a change of all rows' ],
    [ "-- runs-with: 1\n${adds}DELETE FROM shop;\n" => qr/'DELETE FROM shop' .* all rows/,
        'a removal of all rows' ],
) {
    my ($text, $words, $what) = @$refusal;
    my ($status, $output) = compiled($text);
    ok $status == 1 && $output =~ $words, "refused: $what" or diag "$status $output";
}

done_testing;
