# Clients that hold a connection and do hardly anything: those that send no request lose their threads
# after seconds, by the limits of the sample configuration; those that take no more of a file have none.
#
# once: a request that does not come asks no database
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use IO::Socket::INET;
use Test::More;

use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Target qw(slurp top_dir);
use MDL::Test;

use constant CLIENTS => 8;    # two for each thread of the server
use constant MB      => 1024 * 1024;

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
$server->stop;

# While they are fast, a thread copies the file for them.
subtest 'Clients that take a file fast, and then no more of it, hold no threads' => sub {
    my $fast = MDL::Instance->new(single => 1, mpm => 'event')->start;
    my $shop = new_shop();
    my $file = new_file($shop, 16 * MB);
    my @clients = map {
        my $path = link_of(buy($shop, $file, limit => 1));
        MDL::DownloadClient->over('HTTP/1.1', $fast, $path, buffer => MB)->read_until(6 * MB);
    } 1 .. CLIENTS;
    is api('GET', '/ping', key => $shop->{token})->{status}, 200, 'another client is answered';
    is scalar(grep { $_->rest && $_->sha256 eq sha256_hex($file->{bytes}) } @clients), CLIENTS,
        'each of them gets the rest, of the same file';
};

done_testing;
