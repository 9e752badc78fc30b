# Clients that hold a connection and do hardly anything: those that send no request lose their
# threads after seconds, by the limits of the sample configuration; of those whose bodies do not
# come few have a thread for long; those that take no more of a file have none.
#
# once: a request that does not come asks no database
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use IO::Select;
use IO::Socket::INET;
use Test::More;

use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Settings;
use MDL::Target qw(port slurp top_dir wait_for);
use MDL::Test;

use constant CLIENTS => 8;    # two for each thread of the server
use constant MB      => 1024 * 1024;

my $BODY = '{"name":"Books"}';
my $keys = 0;

my ($limits) = slurp(top_dir() . '/conf/mod_downloads.conf') =~ /^ *(RequestReadTimeout .*)$/m;
ok($limits, 'the sample configuration limits how long a request may take to arrive');
my $server = MDL::Instance->new(single => 1, mpm => 'worker', tls => 1, extra => "$limits\n")
    ->start;
my $shop   = new_shop();

# As many connections, each of which sends these bytes and no more.
sub stalled
{
    my ($count, $bytes, $port) = @_;
    return map {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port // port())
            or die "no connection: $!";
        print {$socket} $bytes;
        $socket->flush;
        $socket;
    } 1 .. $count;
}

sub answered
{
    my ($name) = @_;
    return is api('GET', '/ping', key => $shop->{token})->{status}, 200, $name;
}

subtest 'Clients whose header does not come' => sub {
    my @slow = stalled(CLIENTS, "GET /api/v1/ping HTTP/1.1\r\nX: ");
    answered('another client is answered while they still wait');
    is(scalar(grep { my $answer = <$_> // ''; $answer =~ /^HTTP\/1\.1 408 / } @slow), CLIENTS,
        'each of them is told 408');
};

subtest 'Clients whose TLS handshake does not come' => sub {
    my @slow = stalled(CLIENTS, "\x16\x03\x01", $server->tls_port);
    answered('another client is answered while they still wait');
    is scalar(grep { IO::Select->new($_)->can_read(120) } @slow), CLIENTS,
        'each of them loses its connection';
};
$server->stop;

# A shop's request with a body of which the first byte comes.
sub begun_by
{
    my ($of) = @_;
    return join "\r\n", 'POST /api/v1/categories HTTP/1.1', 'Host: localhost',
        "Authorization: Bearer $of->{token}", 'Content-Type: application/json',
        'Idempotency-Key: ' . ++$keys, 'Content-Length: ' . length $BODY, '', substr $BODY, 0, 1;
}

# So many of the connections are ended, which httpd itself does not do for so long.
sub are_told
{
    my ($count, @sockets) = @_;
    my $select = IO::Select->new(@sockets);
    wait_for(sub { $select->can_read(0) >= $count }, 120, "the end of $count requests");
    return cmp_ok scalar(grep { <$_> =~ m{^HTTP/1\.1 408 } } $select->can_read(0)), '>=', $count,
        'all but an eighth of them are told 408';
}

# httpd itself waits for an hour.  An eighth of the threads is four.
subtest 'Clients whose bodies do not come' => sub {
    my $threads = settings_server(form => 1, mpm => 'worker', extra => <<'END');
Timeout 3600
ServerLimit 1
StartServers 1
ThreadsPerChild 32
MaxRequestWorkers 32
<IfModule reqtimeout_module>
    RequestReadTimeout body=0
</IfModule>
END
    my ($hostile, $slow) = map { new_shop() } 1 .. 2;
    my @few    = map { stalled(1, begun_by($slow)) } 1 .. 2;
    my @bodies = map { stalled(1, begun_by($hostile)) } 1 .. 40;
    is api('GET', '/ping', key => $slow->{token})->{status}, 200,
        'another client is answered while forty of a shop wait';
    are_told(36, @bodies);
    for my $socket (@few) {
        print {$socket} substr $BODY, 1;
        $socket->flush;
        like scalar(<$socket>), qr{^HTTP/1\.1 201 }, 'whoever has few of them is waited for';
    }
    close $_ for @bodies;
    my $form = join "\r\n", 'POST /settings/sign-in HTTP/1.1', 'Host: localhost',
        'Origin: ' . origin(), 'Content-Type: application/x-www-form-urlencoded',
        'Content-Length: 100', '', 'n';
    my @forms = stalled(40, $form);
    is api('GET', '/ping', key => $slow->{token})->{status}, 200,
        'another client is answered while forty sign in';
    are_told(36, @forms);
    $threads->stop;
};

subtest 'Clients that take no more of a large file hold no threads' => sub {
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
