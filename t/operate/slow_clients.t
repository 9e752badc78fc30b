# Clients that open a connection and hardly send anything: with the limits of the sample configuration
# they lose their threads after seconds.
#
# once: a request that does not come asks no database
use strict;
use warnings;

use IO::Socket::INET;
use Test::More;

use MDL::Instance;
use MDL::Target qw(slurp top_dir);
use MDL::Test;

use constant CLIENTS => 8;    # two for each thread of the server

my ($limits) = slurp(top_dir() . '/conf/mod_downloads.conf') =~ /^ *(RequestReadTimeout .*)$/m;
ok($limits, 'the sample configuration limits how long a request may take to arrive');
my $server = MDL::Instance->new(single => 1, mpm => 'worker', extra => "$limits\n")->start;
my $shop   = new_shop();

my @slow = map {
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->{vars}{port}) or die "no connection: $!";
    print {$socket} "GET /api/v1/ping HTTP/1.1\r\nX: ";
    $socket;
} 1 .. CLIENTS;

is(api('GET', '/ping', key => $shop->{token})->{status}, 200, 'another client is answered while they still wait');
is(scalar(grep { my $answer = <$_> // ''; $answer =~ /^HTTP\/1\.1 408 / } @slow), CLIENTS, 'each of them is told 408');

done_testing;
