#!/usr/bin/perl
# What tools/dependencies does on machines that lack packages, with mocks of dpkg, apt and sudo that
# only record their calls; the message of a build that lacks a program or header; how tools/node
# tries again, with a mock of npm; how tools/step ends, and what it says of processor time.
use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";
my $temp = tempdir(CLEANUP => 1);
my $bin;

sub write_file
{
    my ($path, $text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    chmod 0755, $path;
    return;
}

# Makes a machine with the usual tools and these programs, each a line of shell.
sub machine
{
    my (%program) = @_;
    $bin = tempdir(DIR => $temp);
    for my $name (qw(sh env find grep head)) {
        my ($path) = grep { -x } "/bin/$name", "/usr/bin/$name";
        symlink $path, "$bin/$name" or die "$name: $!\n";
    }
    write_file("$bin/$_", "#!/bin/sh\n$program{$_}\n") for keys %program;
    return;
}

# Runs tools/dependencies; returns its exit status, its output and the recorded calls.
sub dependencies
{
    unlink "$temp/calls";
    local $ENV{PATH} = $bin;
    my $output = qx(tools/dependencies build 2>&1);
    my $status = $?;
    open my $in, '<', "$temp/calls" or return ($status, $output, '');
    local $/;
    return ($status, $output, scalar <$in>);
}

my $all      = 'shift; shift; shift; for name; do printf "installed=%s " "$name"; done';
my $without  =
    'for name; do case $name in gcc) ;; *) printf "installed=%s " "$name" ;; esac; done; exit 1';
# What apt is asked to install alone, it installs without a question, even with --assume-no.
my $apt      = qq{echo "as \${ROOT:-user}: \$*" >>$temp/calls
    case "\$*" in *" install "*) ;; *) exit ;; esac
    case "\$*" in *" -y "*) ;; *) echo "0 upgraded, 3 newly installed"
        echo "Need to get 5 MB of archives." ;; esac
    case "\$*" in *--print-uris*) ;; *) echo installs >>$temp/calls ;; esac};
my $sudo     = 'ROOT=root exec "$@"';

machine('dpkg-query' => $all, id => 'echo 1000');
is_deeply([ dependencies() ], [ 0, '', '' ],
    'nothing is done or printed when everything is installed');

machine('dpkg-query' => $without, id => 'echo 1000', sudo => $sudo, 'apt-get' => $apt);
my ($status, $output, $calls) = dependencies();
is($status, 0, 'a user with sudo can install what is missing') or diag($output);
is($output, "Installing: gcc\n0 upgraded, 3 newly installed\nNeed to get 5 MB of archives.\n",
    'the output names the packages and their size');
like($calls, qr/^as root: .* install -y --no-install-recommends gcc$/m,
    'and apt is called as root');
unlike($calls, qr/^as user/m, 'and only as root');
unlike($calls, qr/ install (?!-y ).*\ninstalls/, 'what only asks for the size installs nothing');

machine('dpkg-query' => $without, id => 'echo 0', 'apt-get' => $apt);
($status, $output, $calls) = dependencies();
is($status, 0, 'root installs without sudo') or diag($output);
like($calls, qr/ install -y --no-install-recommends gcc$/m,
    'apt is called with the same arguments');

machine('dpkg-query' => $without, id => 'echo 1000', 'apt-get' => $apt);
($status, $output, $calls) = dependencies();
isnt($status, 0, 'a user without sudo gets an error');
like($output, qr/^    apt-get update && apt-get install gcc$/m,
    'the message has the command for root');
is($calls, '', 'nothing is installed');

machine();
($status, $output) = dependencies();
is($status, 0, 'on a system other than Debian nothing is installed');
like($output, qr/no Debian: .*gcc/, 'and the message lists what is needed');

# A build without the compiler, apxs, or one of httpd's headers.
write_file("$temp/apxs", "#!/bin/sh\n[ \$2 != INCLUDEDIR ] || echo $temp\n");
for my $lacking ([ 'CC=no-such-cc', 'no-such-cc' ], [ 'APXS=/no/such/apxs', '/no/such/apxs' ],
    [ "APXS=$temp/apxs", 'A header' ]) {
    my ($argument, $name) = @$lacking;
    $output = qx(MAKEFLAGS= make BUILD=$temp/build $argument build 2>&1);
    isnt($?, 0, "a build without $name fails");
    like($output, qr/^\Q$name\E is missing\. On Debian, tools\/dependencies build installs/m,
        'the message says what to do') or diag($output);
}

# npm's registry that does not answer the first times.
my $tree = tempdir(DIR => $temp);
system('cp', '-R', '--parents', 'tools/node', 't/node/package.json', 't/node/package-lock.json',
    $tree) == 0
    or die "cp\n";
sub node
{
    my ($failures) = @_;
    unlink "$temp/calls", "$tree/build/node/installed.json";
    my $mocks = tempdir(DIR => $temp);
    write_file("$mocks/npm", "#!/bin/sh\necho npm >>$temp/calls\n"
            . "[ \$(grep -c npm $temp/calls) -gt $failures ] || { echo 'no answer'; exit 1; }\n");
    write_file("$mocks/sleep", "#!/bin/sh\necho pause \$1 >>$temp/calls\n");
    local $ENV{PATH} = "$mocks:$ENV{PATH}";
    my $text = qx('$tree/tools/node' 2>&1);
    my $end  = $?;
    open my $in, '<', "$temp/calls" or return ($end, $text, 0);
    return ($end, $text, scalar grep { /npm/ } <$in>);
}

($status, $output, $calls) = node(2);
is($status, 0, 'packages of npm are fetched though its registry fails twice') or diag($output);
is($calls, 3, 'by a third try');
($status, $output, $calls) = node(9);
isnt($status, 0, 'a registry that never answers is an error');
is($calls, 4, 'after four tries');
like($output, qr/^no answer\nnpm could not fetch .*above\.\n\z/m,
    "which ends with npm's words and a sentence");

my $broken = q{printf 'make: *** [Makefile:7: check-x] Error 1\n'; seq 600; exit 3};
$output = qx(BUILD='$temp/build' tools/step lint sh -c "$broken" 2>&1);
is($? >> 8, 3, 'a step ends as its command does');
like($output, qr/^600\n\nFAILED in the step "lint";.*lint\.log:\n.*check-x\] Error 1\n\z/m,
    'and the last lines name the step that failed, and the target');
$output = qx(BUILD='$temp/build' tools/step lint echo well 2>&1);
is($?, 0, 'a step that succeeds');
like($output, qr/^well\n +\d+ processor seconds in +\d+ s: lint\n\z/, 'adds what it took');

# The daemon's end of the pipe is open until it ends, and a moment later it is dead.
my $daemon = q{(perl -e 'do { @t = times } while \$t[0] + \$t[1] < 1' & echo \$!) | { read pid; cat;
    while grep -qs '^State:.[^ZX]' /proc/\$pid/status; do :; done; }};
qx(BUILD='$temp/build' tools/step suites sh -c "$daemon");
my ($lint, $suites, $sum) = qx(BUILD='$temp/build' tools/step --times lint suites)
    =~ /^\ +(\d+)\ processor.*:\ lint\n\ +(\d+)\ processor.*:\ suites\n
        \ +(\d+)\ processor\ seconds\ in\ +\d+\ s\ in\ all\n\z/x;
cmp_ok($suites // 0, '>=', 1, 'a daemon is in the processor time of its step');
cmp_ok(abs(($sum // 9) - ($lint // 0) - ($suites // 0)), '<=', 1, 'and a step in that of all');

done_testing();
