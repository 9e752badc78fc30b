#!/usr/bin/perl
# What `make install` puts where, into a folder of its own.
use strict;
use warnings;

use File::Basename qw(basename);
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";
my $dest  = tempdir(CLEANUP => 1);
my $build = tempdir(CLEANUP => 1);
my ($apxs) = $ENV{APXS} // grep { -x } qw(/usr/bin/apxs /usr/bin/apxs2);

# What is built is only copied.
for my $name (qw(mod_downloads.so downloadsctl)) {
    open my $out, '>', "$build/$name" or die "$name: $!\n";
}

sub slurp
{
    my ($path) = @_;
    open my $in, '<', $path or return '';
    local $/;
    return scalar <$in>;
}

sub install
{
    local @ENV{qw(APXS BUILD DESTDIR PREFIX)} = ($apxs // 'apxs', $build, $dest, '/usr');
    my $said = qx(tools/install 2>&1);
    is($?, 0, 'it ends well') or diag($said);
    return split /\n/, $said;
}

my @put = install();
is_deeply([ grep { !m{^\Q$dest\E/} } @put ], [], 'everything is put below DESTDIR');
is_deeply([ grep { !-f } @put ], [], 'and is there');

my $docs = "$dest/usr/share/doc/mod_downloads";
for my $file (glob 'docs/*.md') {
    is(slurp("$docs/" . basename($file)), slurp($file), "$file is among the documentation");
}

my ($sample) = grep { m{/etc/.*downloads\.conf$} || m{/extra/mod_downloads\.conf$} } @put;
my @named = slurp($sample) =~ m{(\S*\.md)\b}g;
ok(@named > 0, 'the configuration refers to it');
is_deeply([ grep { !m{^/} || !-f "$dest$_" } @named ], [], 'by where it is');

open my $out, '>>', $sample or die "$sample: $!\n";
print $out "# mine\n";
close $out;
install();
like(slurp($sample), qr/^# mine$/m, 'a configuration that was changed is kept');
ok(-f "$sample.new", 'with the new one beside it');

done_testing();
