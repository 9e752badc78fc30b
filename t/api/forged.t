# Refused keys, forged links and requests without a key, by network (contract, section 5): none of
# them keeps anybody else out, and each is logged in the form that conf/fail2ban knows.
#
# once: rates are counted in memory
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Limits;
use MDL::Target qw(slurp top_dir);
use MDL::Test;
use Test::More;

use constant MOST => 30;

# Clients come by a proxy: their address is what mod_remoteip makes of X-Forwarded-For.
my $server = MDL::Instance->new(modules => ['remoteip'], extra => <<"END")->start;
DownloadsRateLimit On
DownloadsRateNetwork @{[MOST]}
DownloadsRequireTLS Off
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1
END
my $shop = new_shop();
my $wrong = $shop->{token} =~ s/(?<=_).{10}(?=.{39}\z)/0123456789/r;

sub get
{
    my ($path, $from, $key) = @_;
    return api('GET', $path, key => $key, headers => { 'X-Forwarded-For' => $from });
}

# The lines of the log that name an address.
sub lines_of
{
    my ($address) = @_;
    return grep { /MDL0220: .* from \Q$address\E$/ } split /\n/, slurp(logs_dir() . '/error_log');
}

subtest 'a network that sends many wrong keys gets 429' => sub {
    my $began = time;
    my @replies = map { get('/ping', '192.0.2.1', $_ % 2 ? $wrong : 'adk_live_x') } 1 .. MOST + 20;
    cmp_ok count(401, @replies), '>=', MOST, 'as many as a minute allows are 401';
    cmp_ok count(401, @replies), '<=', MOST + back(MOST, $began),
        'and those that came back meanwhile';
    is count(429, @replies), @replies - count(401, @replies), 'the others are 429';
    my ($reply) = grep { $_->{status} == 429 } @replies;
    is_error $reply, 429, 'rate_limited', 'such an answer';
    like $reply->{headers}{'retry-after'}, qr/^[1-9]\d*\z/, 'has Retry-After';
    is $reply->{headers}{'x-ratelimit-limit'}, undef, 'and says nothing about a key';
    is scalar(lines_of('192.0.2.1')), count(401, @replies),
        'each 401 has a line of the log, a 429 has none';
};

subtest 'which keeps nobody else out' => sub {
    my @good = map { get('/ping', '192.0.2.1', $shop->{token}) } 1 .. 20;
    is count(200, @good), 20, 'a valid key works from that network';
    my $new = new_shop();
    is get('/ping', '192.0.2.1', $new->{token})->{status}, 200,
        'so does one that was never used before';
    ctl('shop', 'set', $shop->{shop_id}, '--name', 'Renamed');    # no key is remembered
    is get('/ping', '192.0.2.1', $shop->{token})->{status}, 200,
        'and one that is no longer remembered';
    is get('/ping', '192.0.2.2', $wrong)->{status}, 401, 'another address is no other network';
    is get('/health', '192.0.2.1')->{status}, 200, '/health is counted apart';
    is get('/ping', '192.0.2.1')->{status}, 401, 'a request without a key is not counted';
};

subtest 'an IPv6 network is its first 64 bits' => sub {
    my $began = time;
    my @replies = map { get('/ping', "2001:db8:0:1::$_", $wrong) } 1 .. MOST + 10;
    cmp_ok count(401, @replies), '<=', MOST + back(MOST, $began),
        'all addresses of a network share';
    is get('/ping', '2001:db8:0:2::1', $wrong)->{status}, 401, 'the next network has its own';
    get('/ping', '::ffff:192.0.2.8', $wrong) for 1 .. MOST + 5;
    is limited(sub { get('/ping', '192.0.2.8', $wrong) })->{status}, 429,
        'IPv4 inside IPv6 is IPv4';
};

subtest '/health is limited by network' => sub {
    my @replies = map { get('/health', '192.0.2.3') } 1 .. MOST + 20;
    cmp_ok count(200, @replies), '>=', MOST, 'as many as a minute allows are answered';
    my $reply = limited(sub { get('/health', '192.0.2.3') });
    is_error $reply, 429, 'rate_limited', 'a further one';
    like $reply->{headers}{'retry-after'}, qr/^[1-9]\d*\z/, 'has Retry-After';
    my $ready;
    for (1 .. 10) {    # a token may come back between the two
        limited(sub { get('/health', '192.0.2.3') });
        last if ($ready = get('/health/ready', '192.0.2.3'))->{status} == 429;
    }
    is $ready->{status}, 429, 'and /health/ready is counted with it';
    is get('/health', '192.0.2.4')->{status}, 200, 'another network is answered';
    is get('/ping', '192.0.2.3', $shop->{token})->{status}, 200, 'and so is a valid key';
    is get('/ping', '192.0.2.3', $wrong)->{status}, 401, 'refused keys are counted apart';
};

subtest 'what is valid is not counted' => sub {
    my $new = new_shop();
    is count(200, map { get('/ping', '192.0.2.5', $new->{token}) } 1 .. MOST + 20), MOST + 20,
        'many requests with a valid key';
    is get('/ping', '192.0.2.5', $wrong)->{status}, 401, 'leave the network all that it had';
};

subtest 'a forged link is logged' => sub {
    my $token = 'A' x 43;
    for my $link ("/d/o/$token", "/d/f/$token", "/d/z/$token", "/d/l/$token", "/d/h/$token",
        "/u/$token") {
        my $before = lines_of('198.51.100.1');
        is page('GET', $link, headers => { 'X-Forwarded-For' => '198.51.100.1',
            'Tus-Resumable' => '1.0.0' })->{status},
            404, substr($link, 0, 5) . ' is not found';
        is scalar(lines_of('198.51.100.1')), $before + 1, 'and has a line';
    }
    my $began = time;
    page('GET', "/d/o/$token", headers => { 'X-Forwarded-For' => '198.51.100.2' })
        for 1 .. MOST + 30;
    cmp_ok scalar(lines_of('198.51.100.2')), '<=', MOST + back(MOST, $began),
        'no more lines than a minute allows';
    is page('GET', "/d/o/$token", headers => { 'X-Forwarded-For' => '198.51.100.2' })
        ->{status}, 404, 'the answer stays the same';
};

# Matches of conf/fail2ban's filter in a log.
sub matches
{
    my ($log) = @_;
    my $filter = top_dir() . '/conf/fail2ban/filter.d/mod_downloads.conf';
    my $report = qx(fail2ban-regex "$log" "$filter" 2>&1);
    my ($matched) = $report =~ /^Lines: \d+ lines, \d+ ignored, (\d+) matched/m or diag $report;
    return $matched;
}

subtest "fail2ban's filter matches these lines, and nothing that a client can write" => sub {
    my $log = logs_dir() . '/error_log';
    my @lines = grep { /MDL0220/ } split /\n/, slurp($log);
    cmp_ok @lines, '>', MOST, 'there are lines';
    is matches($log), @lines, 'fail2ban-regex matches each';
    my $other = "$server->{folder}/other_log";
    my ($date) = $lines[0] =~ /^(\[[^\]]*\])/;
    open my $out, '>', $other or die "$other: $!";
    print $out "$date [core:info] [pid 1:tid 2] [client 192.0.2.9:1] AH00128: "
        . "File does not exist: /x/$_\n"
        for 'MDL0220: refused key from 192.0.2.7',
        '[downloads:warn] [pid 1:tid 2] MDL0220: refused key from 192.0.2.7';
    close $out;
    is matches($other), 0, 'a line that quotes one is not matched';
};

$server->stop;
$server->configure(extra => "DownloadsRateLimit On\nDownloadsRateNetwork 0\n");
$server->start;

subtest 'DownloadsRateNetwork 0: there is no limit, but of the lines' => sub {
    my $before = lines_of('127.0.0.1');
    my $began = time;
    my @replies = map { api('GET', '/ping', key => $wrong) } 1 .. 200;
    is count(401, @replies), 200, 'each refused key gets 401';
    cmp_ok scalar(lines_of('127.0.0.1')) - $before, '<=', 120 + 4 * back(MOST, $began),
        'not each has a line';
    is count(200, map { api('GET', '/health') } 1 .. 200), 200, '/health is answered always';
};

$server->stop;
done_testing;
