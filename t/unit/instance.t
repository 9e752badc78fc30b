#!/usr/bin/perl
# make run, make demo and make clean in one checkout: README.md's calls do the job at a running
# server, a demo is kept beside it, and make clean removes both.
#
#   BUILD=dir    where mod_downloads.so and downloadsctl are (build)
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin;
use JSON::PP;
use POSIX qw(WNOHANG);
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";
my $build = delete $ENV{BUILD} || 'build';
delete @ENV{qw(INSTANCE DB KEEP MAKEFLAGS MAKELEVEL)};

# A folder that only its owner may enter, so root's instance puts its data elsewhere.
my $tree = abs_path(tempdir('mdl-instance.XXXXXX', TMPDIR => 1, CLEANUP => 1));
make_path("$tree/build", "$tree/mod_downloads", "$tree/t/unit");
for ("$build/mod_downloads.so", "$build/downloadsctl") {
    -e or BAIL_OUT("$_ is not there: make build");
    system('cp', $_, "$tree/build") == 0 or die "cp\n";
}
system('cp', '-R', qw(Makefile README.md apxs.mk tools conf), $tree) == 0 or die "cp\n";
chdir $tree or die "chdir: $!\n";

END {
    my $status = $?;
    system "$tree/tools/instance remove $_" for map { "$tree/$_" } 'instance', 'mine', 'build/demo';
    $? = $status;
}

sub slurp
{
    my ($path) = @_;
    open my $in, '<', $path or return '';
    local $/;
    return scalar <$in> // '';
}

sub succeeds
{
    my ($what, @command) = @_;
    my $output = qx(@command 2>&1);
    is($?, 0, $what) or diag($output);
    return $output;
}

sub env
{
    my ($instance) = @_;
    return map { /^(\w+)='(.*)'$/ ? ($1 => $2) : () } split /\n/, slurp("$instance/env");
}

sub ping
{
    my %env = @_;
    my $output = qx(curl -sS -H "Authorization: Bearer $env{API_TOKEN}" $env{BASE_URL}/ping 2>&1);
    return eval { decode_json($output) } // { error => $output };
}

sub processes
{
    return split /\n/, qx(pgrep -af -- '-f ($_[0])/conf/');
}

my $runner = fork // die "fork: $!\n";
if (!$runner) {
    open STDOUT, '>', '/dev/null';
    open STDERR, '>&', \*STDOUT;
    exec 'tools/run' or POSIX::_exit(127);
}
for (1 .. 600) {
    last if -e 'instance/env' || waitpid($runner, WNOHANG);
    select undef, undef, undef, 0.1;
}
like(qx(tools/run 2>&1), qr/^A service runs in instance already/,
    'a second make run of the same instance is refused');
isnt($?, 0, 'and ends as a failure');
is(ping(env('instance'))->{shop}{name}, 'Sample Shop', 'the first one goes on');
kill TERM => $runner;
waitpid $runner, 0;
is($?, 0, 'until it is stopped');

succeeds("make run's server starts",
    'tools/instance make instance && tools/instance start instance && tools/instance key instance');
my %run = env('instance');
succeeds("README.md's six calls do the job there", 'tools/six-calls');
succeeds('a demo runs beside it', 'SIZE=10000 tools/demo');
ok(!-e 'build/demo', 'the demo leaves nothing behind');
my $output = succeeds('a demo that is kept runs beside it', 'KEEP=1 SIZE=10000 tools/demo');
like($output, qr{The server is left up: build/demo/env}, 'the output says where the server is');
my %demo = env('build/demo');
is(ping(%demo)->{shop}{name}, 'Field Recordings', 'the server answers');
is_deeply({ env('instance') }, \%run, 'the other instance has not changed');
my $shop = ping(%run)->{shop};
is("$shop->{id} $shop->{name}", '1 Sample Shop', 'the other instance has its own first shop');

my $folders = join '|', map { readlink("$_/data") // "$tree/$_/data" } 'instance', 'build/demo';
cmp_ok(scalar processes($folders), '>', 3, 'processes of both are running');
unlike($folders, qr{^\Q$tree\E}, "root's data is where httpd's user may enter") if $> == 0;

rename 'instance', 'mine' or die "rename: $!\n";
mkdir 'instance' or die "mkdir: $!\n";
open my $out, '>', 'instance/diary' or die "diary: $!\n";
close $out;
like(qx(make clean 2>&1), qr/instance was not made by tools\/instance and is left alone/,
    'make clean leaves a folder alone that is not an instance');
ok(-e 'instance/diary' && -e 'build', 'make clean removes nothing then');
unlink 'instance/diary';
rmdir 'instance';
rename 'mine', 'instance' or die "rename: $!\n";

succeeds('make clean succeeds', 'make clean');
is_deeply([ processes($folders) ], [], 'no process is left');
is_deeply([ grep { -e } 'build', 'instance', split /\|/, $folders ], [], 'no file is left');
succeeds('make clean succeeds with nothing to do', 'make clean');

SKIP: {
    skip 'only root has folders elsewhere', 2 if $> != 0;
    succeeds('an instance is made', 'mkdir build && cp /bin/true build/downloadsctl',
        '&& cp /bin/true build/mod_downloads.so && tools/instance make instance');
    my $elsewhere = readlink 'instance/data';
    system 'rm', '-r', 'instance';
    succeeds('its folder was deleted by hand', 'make clean');
    ok(!-e $elsewhere, 'its data elsewhere is removed, too');
}

done_testing();
