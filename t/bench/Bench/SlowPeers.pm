# t/bench/load/slow_peers.py: a source of 1 KB a second, and a mail server that takes a minute for
# each recipient at slow.example.
package Bench::SlowPeers;

use strict;
use warnings;

use IPC::Open2 qw(open2);

my ($pid, $from, $to, $source_port, $mail_port);

sub start
{
    $pid = open2($from, $to, '/usr/bin/python3', '-W', 'ignore', 't/bench/load/slow_peers.py');
    ($source_port, $mail_port) = split ' ', <$from>;
    return;
}

sub source_port { return $source_port }
sub mail_port   { return $mail_port }

sub stop
{
    return if !$pid;
    kill 'TERM', $pid;
    waitpid $pid, 0;
    undef $pid;
    return;
}

1;
