# What one request may cost the server's memory: bodies that are made of as many values as fit, and
# the largest that are accepted. One child with few threads serves them all, so that all of it is
# seen.
#
# once: these requests are refused before the database is used, or are large for httpd alone
use strict;
use warnings;

use MDL::Instance;
use MDL::Test;
use Test::More;

use constant { MEMORY => 32 * 1024, MIB => 2**20 };    # MEMORY in KB

my $server = MDL::Instance->new(mpm => 'event', single => 1)->start;
my $shop = new_shop();
my $tag  = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
    ->{json}{id};
my ($child) = wait_for(sub { my @pids = server_pids(); @pids == 1 && $pids[0] }, 60, 'one child');

# The child's memory in KB: VmRSS or VmHWM.
sub memory
{
    my ($which) = @_;
    my ($kb) = MDL::Test::slurp("/proc/$child/status") =~ /^$which:\s+(\d+) kB/m;
    return $kb;
}

sub costs_little
{
    my ($what, $status, $path, $body) = @_;
    my $before = memory('VmRSS');
    my $reply  = api('POST', $path, key => $shop->{token}, body => $body);
    is($reply->{status}, $status, "$what: $status") or diag($reply->{body});
    my $grown = memory('VmHWM') - $before;
SKIP: {
        skip 'the sanitizers take memory of their own', 1 if $ENV{SANITIZER_RUNTIME};
        cmp_ok($grown, '<', MEMORY, "$what: $grown KB");
    }
    return;
}

my $keys = "/license-key-tags/$tag/keys";
my $room = 8 * MIB - 20;
costs_little('8 MiB of empty objects',   413, $keys, '{"keys":[' . '{},' x ($room / 3) . '1]}');
costs_little('8 MiB of empty lists',     413, $keys, '{"keys":[' . '[],' x ($room / 3) . '1]}');
costs_little('8 MiB of digits',          413, $keys, '{"keys":[' . '1,' x ($room / 2) . '1]}');
costs_little('a million unknown members', 413, $keys,
    '{' . join(',', map { sprintf '"%x":1', $_ } 1 .. 650_000) . '}');
costs_little('8 MiB of one string', 400, $keys, '{"keys":["' . 'x' x $room . '"]}');
costs_little('10,000 keys of 512 bytes', 200, $keys,
    '{"keys":[' . join(',', map { sprintf '"%0512d"', $_ } 1 .. 10_000) . ']}');
costs_little('10,000 keys, each byte escaped', 200, $keys,
    '{"keys":[' . join(',', map { '"' . '\u0041' x 138 . '"' } 1 .. 10_000) . ']}');
costs_little('10,000 faulty keys', 400, $keys, '{"keys":[' . join(',', ('{}') x 10_000) . ']}');
costs_little('256 KiB of empty objects', 413, '/mappings', '{"x":[' . '{},' x 87_000 . '1]}');

done_testing();
