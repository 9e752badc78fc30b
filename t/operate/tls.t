# DownloadsRequireTLS: what comes in clear is refused before anybody looks at the key or the token
# in it; excepted are this machine, and proxies of DownloadsTLSProxy that vouch.
#
# once: a refusal asks no database
use strict;
use warnings;

use IO::Socket::INET;
use Test::More;

use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Ports;
use MDL::Test;
use MDL::Upload;

# The address that other machines see; undef where there is none.
sub outer_address
{
    my $socket = IO::Socket::INET->new(Proto => 'udp', PeerAddr => '203.0.113.1', PeerPort => 9)
        // return;
    return $socket->sockhost =~ /^127\./ ? undef : $socket->sockhost;
}

my $outer  = outer_address();
my $port   = free_port();
my $server = MDL::Instance->new(tls => 1, mpm => 'event', modules => [ 'remoteip', 'headers' ],
    extra => <<"END")->start;
Listen 0.0.0.0:$port
LogFormat "%>s database=%{downloads-db}n" cost
CustomLog "\@t_logs\@/cost.log" cost
DownloadsRateLimit On
<Directory "/">
    Header always set X-Folder walked
</Directory>
END
my $shop   = new_shop();
my $buy    = buy($shop, new_file($shop, 1000));
my $file   = link_of($buy);
my $upload = begin_upload($shop, filename => 'x.bin');
my ($upload_path) = $upload->{upload_url} =~ m{//[^/]+(/.+)};

my %FORWARDED = ('X-Forwarded-For' => '203.0.113.9');

sub ping { my ($origin, %headers) = @_; return ask('GET', "$origin/api/v1/ping", %headers) }

sub ask
{
    my ($method, $url, %headers) = @_;
    return page($method, $url, headers => { Authorization => "Bearer $shop->{token}", %headers });
}

sub folder { my ($url) = @_; return page('GET', $url)->{headers}{'x-folder'} }

sub http_url { my ($address) = @_; return "http://$address:$port" }

# Runs curl over TLS; returns the status and the protocol.
sub curl
{
    my (@options) = @_;
    open my $out, '-|', 'curl', '-s', '--cacert', $server->certificate, '-o', '/dev/null', '-w',
        '%{http_code} %{http_version}', '-H', "Authorization: Bearer $shop->{token}", @options,
        'https://localhost:' . $server->tls_port . '/api/v1/ping'
        or die "curl: $!\n";
    return scalar <$out>;
}

sub all_refused
{
    my ($origin, $who, %headers) = @_;
    for (['GET', '/health'], ['GET', '/ping'], ['GET', '/nowhere'], ['POST', '/assets'],
        ['OPTIONS', '/ping']) {
        my ($method, $path) = @$_;
        my $reply = ask($method, "$origin/api/v1$path", %headers);
        is_error($reply, 403, 'tls_required', "$method $path from $who");
        is($reply->{headers}{'x-ratelimit-remaining'}, undef, '… says nothing of the key');
    }
    for (['GET', $buy->{path}], ['POST', $buy->{path}], ['GET', $file], ['HEAD', $file],
        ['GET', '/d/l/x']) {
        my ($method, $path) = @$_;
        my $reply = page($method, "$origin$path", headers => \%headers);
        is($reply->{status}, 403, "$method " . substr($path, 0, 5) . " from $who");
        like($reply->{body}, qr/This address needs https/, '… is refused by a page')
            if $method ne 'HEAD';
    }
    is_error(ask('PUT', "$origin$upload_path", %headers), 403, 'tls_required',
        "an upload from $who");
    return;
}

is(folder("http://127.0.0.1:$port/nowhere.txt"), 'walked', 'httpd walks the folders of a file');
is(folder($_), undef, 'but not for a URL of this module')
    for "http://127.0.0.1:$port/api/v1/ping", "http://127.0.0.1:$port$upload_path",
    "http://127.0.0.1:$port$buy->{path}";

subtest 'This machine needs no TLS' => sub {
    is(ping('http://127.0.0.1:' . port())->{status}, 200, 'a key in clear is good on loopback');
    is(page('GET', $buy->{path})->{status}, 200, 'so is a page');
};

subtest 'Nor does TLS itself, by whichever protocol and whoever sent it on' => sub {
    is(curl('--http1.1'), '200 1.1', 'HTTP/1.1');
    is(curl('--http2'), '200 2', 'HTTP/2, whose streams have connections of their own');
    is(curl('-H', 'X-Forwarded-For: 203.0.113.9', '-H', 'X-Forwarded-Proto: http'), '200 2',
        'from a proxy');
};

subtest 'What a proxy of this machine passed on in clear is refused' => sub {
    my $before = ping('http://127.0.0.1:' . port())->{headers}{'x-ratelimit-remaining'};
    all_refused('http://127.0.0.1:' . port(), 'a proxy', %FORWARDED);
    for my $header ('Forwarded', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'Via', 'X-Real-IP',
        'x-forwarded-x') {
        is(ping('http://127.0.0.1:' . port(), $header => 'https')->{status}, 403,
            "known by $header");
    }
    # httpd writes a line after its answer.
    my $refused = wait_for(sub {
        my @lines = grep { /^403 / } split /\n/, MDL::Target::slurp(logs_dir() . '/cost.log');
        return @lines == 17 && \@lines;
    }, 10, 'a line for each refusal');
    is_deeply([ grep { $_ ne '403 database=-' } @$refused ], [],
        'none of them has asked the database');
    cmp_ok(ping('http://127.0.0.1:' . port())->{headers}{'x-ratelimit-remaining'}, '>=',
        $before - 1, 'and none has cost the key a token');
};

SKIP: {
    skip 'this machine has no address but loopback', 1 if !defined $outer;
    subtest 'What another machine sends in clear is refused' => sub {
        all_refused(http_url($outer), 'another machine');
        all_refused(http_url($outer), 'another machine that claims TLS',
            'X-Forwarded-Proto' => 'https');
    };
}

subtest "mod_remoteip's word admits nobody" => sub {
    my $trusted = join ' ', '127.0.0.1', $outer // ();
    my $extra   = $server->{extra};
    $server->stop;
    $server->configure(
        extra => "$extra\nRemoteIPHeader X-Client-IP\nRemoteIPInternalProxy $trusted\n");
    $server->start;
    is(ping('http://127.0.0.1:' . port())->{status}, 200,
        'without its header this machine is this machine');
    is(ping('http://127.0.0.1:' . port(), 'X-Client-IP' => '203.0.113.9')->{status}, 403,
        'a header that mod_remoteip has taken away was there');
    is(ping(http_url($outer), 'X-Client-IP' => '127.0.0.1')->{status}, 403,
        'nobody becomes loopback by it')
        if defined $outer;
    $server->stop;
    $server->configure(extra => $extra);
    $server->start;
};

subtest 'A proxy of DownloadsTLSProxy vouches, and no other does' => sub {
    my $extra = $server->{extra};
    $server->stop;
    $server->configure(extra => "$extra\nDownloadsTLSProxy 10.0.0.0/8 127.0.0.0/8\n");
    $server->start;
    my $here = 'http://127.0.0.1:' . port();
    is(ping($here, %FORWARDED, 'X-Forwarded-Proto' => 'https')->{status}, 200, 'it says https');
    is(page('GET', $buy->{path}, headers => { %FORWARDED, 'X-Forwarded-Proto' => 'HTTPS' })
        ->{status}, 200, 'in any letter case, for a page');
    all_refused($here, 'a proxy that says http', 'X-Forwarded-Proto' => 'http');
    is(ping($here, %FORWARDED)->{status}, 403, 'it says nothing');
    is(ping($here, 'X-Forwarded-Proto' => $_)->{status}, 403, "it says \"$_\"")
        for 'https, http', 'http, https', 'https, https', '';
    is(ping(http_url($outer), 'X-Forwarded-Proto' => 'https')->{status}, 403,
        'another machine says https')
        if defined $outer;
};

subtest 'DownloadsRequireTLS Off serves everybody in clear' => sub {
    $server->stop;
    $server->configure(extra => "$server->{extra}\nDownloadsRequireTLS Off\n");
    $server->start;
    is(ping('http://127.0.0.1:' . port(), %FORWARDED)->{status}, 200, 'also from a proxy');
};

subtest 'downloadsctl check warns of a public URL that nobody can open' => sub {
    $server->configure(without => qr/^DownloadsPublicURL/,
        extra => "DownloadsPublicURL http://shop.test:$port/d\n");
    my (undef, $json) = ctl('check');
    is_deeply([ grep { /RequireTLS/ } @{ $json->{warnings} } ],
        [ "DownloadsPublicURL is http://shop.test:$port/d, and DownloadsRequireTLS refuses what "
            . "comes in clear: "
            . 'make it https, also where a proxy ends TLS (see DownloadsTLSProxy).' ],
        'the warning');
};

$server->stop;
done_testing();
