#!/usr/bin/perl
# The second object store (tools/radosgw): it listens on loopback alone, and ends with its parent.
# It runs by `make check-radosgw`, which installs the store.
use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";
use lib 't/lib';
use MDL::Target qw(slurp);

my $folder = tempdir(CLEANUP => 1);

# The processes of the store, by their ids.
sub processes
{
    return grep { (slurp("/proc/$_/cmdline") // '') =~ /\0\Q$folder\E(?:\/|\0)/ }
        map { m{(\d+)\z} } glob '/proc/[0-9]*';
}

delete $ENV{MDL_STORE_PARENT};
pipe my $in, my $out or die "pipe: $!\n";
my $parent = fork // die "fork: $!\n";
if (!$parent) {
    close $in;
    syswrite $out, system('tools/radosgw', 'start', $folder) == 0 ? 'up' : 'down';
    alarm 600;
    POSIX::pause();
    POSIX::_exit(0);
}
close $out;
sysread $in, my $state, 10;
is $state, 'up', 'it starts';
my $mine = join '|', processes();
my @addresses = map { /^\S+ +\S+ +\S+ +(\S+):\d+ .*pid=(?:$mine),/ ? $1 : () } qx(ss -Htlnp);
cmp_ok scalar @addresses, '>', 2, 'monitor, OSD and gateway listen';
is_deeply [ grep { $_ ne '127.0.0.1' } @addresses ], [], 'on loopback alone';
kill KILL => $parent;
waitpid $parent, 0;
my $until = time + 60;
sleep 0.05 while processes() && time < $until;
is_deeply [ processes() ], [], 'all end with their parent, even if it is killed';
done_testing();
