# The peer that ours is compared with: t/node/peer.mjs, two processes of Fastify with pg, on the
# service's PostgreSQL in a schema of its own.
package Bench::Peer;

use strict;
use warnings;

use Bench::Service qw(build wait_for);
use HTTP::Tiny;

my ($pid, $port);

sub origin { return "http://127.0.0.1:$port" }

sub processes { return ($pid, split ' ', qx(pgrep -P $pid)) }

sub start
{
    my ($on) = @_;
    chomp($port = qx(tools/instance port));
    $pid = fork // die "fork: $!\n";
    if (!$pid) {
        my ($host) = $on->params =~ /host=(\S+)/;
        %ENV = (%ENV, PORT => $port, API_TOKEN => $on->{API_TOKEN}, PGHOST => $host,
            PGUSER => 'downloads', PGDATABASE => 'downloads');
        open STDOUT, '>', build() . '/peer.log' or die "peer.log: $!\n";
        open STDERR, '>&', \*STDOUT;
        exec 'tools/node', 't/node/peer.mjs' or die "tools/node: $!\n";
    }
    my %key = (headers => { authorization => "Bearer $on->{API_TOKEN}" });
    wait_for(sub { HTTP::Tiny->new->get(origin() . '/api/v1/ping', \%key)->{success} }, 60,
        'the peer answers');
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
