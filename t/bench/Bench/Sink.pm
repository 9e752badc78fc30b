# smtp-sink, which takes every email and keeps none.
package Bench::Sink;

use strict;
use warnings;

my ($pid, $port);

sub port { return $port }

sub start
{
    chomp($port = qx(tools/instance port));
    $pid = fork // die "fork: $!\n";
    if (!$pid) {
        my @user = $> == 0 ? ('-u', 'nobody') : ();
        local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
        exec 'smtp-sink', @user, "127.0.0.1:$port", '1024' or die "smtp-sink: $!\n";
    }
    return;
}

sub stop
{
    return if !$pid;
    kill 'TERM', $pid;
    waitpid $pid, 0;
    undef $pid;
    return;
}

1;
