# The tokens of pages, files, links and uploads are in no log, whatever its format, nor in
# mod_status's page, while redirects and the page's own button keep them.
#
# once: logs do not depend on the database
use strict;
use warnings;

use Test::More;

use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Test;
use MDL::Upload;

my $server = MDL::Instance->new(tls => 1, mpm => 'event', modules => [qw(status rewrite)],
    extra => <<'END')->start;
ExtendedStatus On
LogLevel warn downloads:debug
LogFormat "%r | %U%q | %f | %{Referer}i | %{Location}o | %{SCRIPT_URI}e %{REDIRECT_URL}e | \
%>U %<U %>r %<r | %{X-Path}i" all
CustomLog "@t_logs@/all.log" all
ErrorDocument 410 /source/error.txt
<Location /status>
    SetHandler server-status
</Location>
<Location /d>
    RewriteEngine On
    RewriteCond %{QUERY_STRING} ^moved$
    RewriteRule . https://new.test%{REQUEST_URI} [R=301,L]
    RewriteCond %{QUERY_STRING} ^gone$
    RewriteRule . - [G]
    <RequireAll>
        Require all granted
        Require not env denied
    </RequireAll>
</Location>
SetEnvIf X-Denied . denied
END
source('error.txt', 'This is over.');

my $shop = new_shop();
my $file = new_file($shop, 1_000_000);
my $buy  = buy($shop, $file, limit => 100);
my $reply = api('POST', '/links', key => $shop->{token},
    json => { title => 'A link', url => 'https://there.test/' });
my $product = mapping_of($shop, [ $file->{id}, new_file($shop, 1000)->{id} ],
    link_ids => [ $reply->{json}{id} ])->{storefront_product_id};
my $order = assign($shop, digits(), [ { storefront_product_id => $product } ]);
my ($link) = page('GET', $order->{json}{download_page_url})->{body} =~ m{"[^"]*(/d/l/[^"]+)"};
my ($archive) = page('POST', $order->{json}{download_page_url},
    form => { zip => $order->{json}{assignments}[0]{id} })
    ->{headers}{location} =~ m{//[^/]+(/d/z/.*)};
my $upload = begin_upload($shop, filename => 'x.bin');
my ($upload_path) = $upload->{upload_url} =~ m{//[^/]+(/u/.+)};
my ($page_path) = $order->{json}{download_page_url} =~ m{//[^/]+(/d/o/.+)};

my %paths = (page => $buy->{path}, file => link_of($buy), archive => $archive, link => $link,
    upload => $upload_path, 'another page' => $page_path);
my %tokens = map { $_ => $paths{$_} =~ m{^/(?:d/\w|u)/([^/]+)} } keys %paths;

sub curl
{
    my ($path, @options) = @_;
    my $url = $path =~ /^https:/ ? $path : 'https://localhost:' . $server->tls_port . $path;
    open my $out, '-|', 'curl', '-s', '--cacert', $server->certificate, @options, $url
        or die "curl: $!\n";
    local $/;
    return scalar <$out>;
}

# Names of tokens that text has, or a part of them that is long enough to be of use.
sub tokens_in
{
    my ($text) = @_;
    return grep { my $token = $tokens{$_}; grep { index($text, substr $token, $_, 20) >= 0 }
        0 .. length($token) - 20 } sort keys %tokens;
}

is_deeply([ tokens_in(join ' ', values %paths) ], [ sort keys %tokens ], 'the scan finds tokens');

subtest 'Whoever needs a token still gets it' => sub {
    for my $name (sort keys %paths) {
        next if $name eq 'upload';
        my $moved = page('GET', "$paths{$name}?moved");
        is($moved->{headers}{location}, "https://new.test$paths{$name}?moved",
            "a redirect of a $name keeps it");
        is(page('GET', "$paths{$name}?gone")->{status}, 410,
            'an error document is sent in place of it');
    }
    is(page('GET', $paths{$_}, headers => { Referer => public_url() . "/o/$tokens{page}",
        'X-Path' => $paths{$_} })->{status},
        $_ eq 'link' ? 303 : 200, "a $_ is served") for grep { $_ ne 'upload' } sort keys %paths;
    is(put_bytes($upload, 'bytes')->{status}, 204, 'an upload is written');
    for my $name (grep { $_ ne 'upload' } sort keys %paths) {
        is(curl($paths{$name}, '--http2', '-o', '/dev/null', '-w', '%{http_code}'),
            $name eq 'link' ? 303 : 200, "over HTTP/2, too: $name");
    }
};

subtest 'A search, which may be for a license key' => sub {
    for my $query ('q=K7Q2-X9PL', 'limit=5&q=K7Q2-X9PL', 'q=&q=K7Q2-X9PL', 'q=K7Q2-X9PL&nonsense',
        'q=X9PL;K7Q2')
    {
        my $reply = api('GET', "/search?$query", key => $shop->{token},
            headers => { Referer => "http://localhost/api/v1/search?$query" });
        like($reply->{status}, qr/^[24]00$/, $query);
    }
    for my $path (qw(/api/v1//search /api/v1/%73earch /%61pi/v1/search /api/v1/x/../search
        /api/v1/search/)) {
        my $reply = page('GET', "$path?%71=K7Q2-X9PL&q=K7Q2-X9PL",
            headers => { Authorization => "Bearer $shop->{token}" });
        like($reply->{status}, qr/^[24]0[04]$/, "its path as $path");
    }
    page('GET', '/source/search?q=another-site');
};

subtest 'Pages send no referrer' => sub {
    is(page('GET', $paths{$_})->{headers}{'referrer-policy'}, 'no-referrer', $_)
        for grep { $_ ne 'upload' } sort keys %paths;
    is(page('GET', '/d/o/none')->{headers}{'referrer-policy'}, 'no-referrer',
        'a page that says no');
    page('GET', '/source/error.txt', headers => { Referer => 'http://localhost' . $paths{page} });
};

subtest 'Requests that httpd refuses by itself' => sub {
    for my $path (sort values %paths) {
        for my $line ("GET $path HTTP/1.1\r\nHost: localhost\r\nBad Header: x",
            "GET $path HTTP/1.1", "GET $path HTTP/1.1\r\nHost: localhost\r\nContent-Length: x",
            "GET $path HTTP/9.9\r\nHost: localhost",
            "GET $path nonsense HTTP/1.1\r\nHost: localhost",
            "GET $path?" . 'x' x 9000 . " HTTP/1.1\r\nHost: localhost",
            "GET $path%2F HTTP/1.1\r\nHost: localhost", "TRACE $path HTTP/1.1\r\nHost: localhost") {
            my $reply = parse_reply(raw("$line\r\nConnection: close\r\n\r\n"));
            cmp_ok($reply->{status}, '>=', 200,
                substr($line =~ s/\Q$path\E/$path =~ s,[^\/]{20}.*,,r/er, 0, 60)
                    =~ s/[\r\n]+/, /gr);
        }
    }
};

subtest "Requests that the operator's rules refuse" => sub {
    is(page('GET', $paths{$_}, headers => { 'X-Denied' => 1 })->{status}, 403, $_)
        for grep { $_ ne 'upload' } sort keys %paths;
};

subtest 'Addresses with escapes that nobody needs' => sub {
    for my $path (map { $paths{$_} } grep { $_ ne 'upload' } sort keys %paths) {
        my $escaped = $path =~ s{^/d/(.)/}{ sprintf '/%%64/%%%02X/', ord $1 }er;
        like(page('GET', $escaped)->{status}, qr/^(?:200|303)\z/, substr $escaped, 0, 9);
    }
};

subtest 'mod_status shows requests that are under way without their tokens' => sub {
    my @slow;
    my $large = buy($shop, new_file($shop, 32_000_000));    # more than the sockets take in at once
    for my $http (qw(--http1.1 --http2)) {
        my $url = 'https://localhost:' . $server->tls_port . link_of($large);
        ($tokens{$http}) = $url =~ m{/f/([^/]+)};
        my $pid = fork // die "fork: $!";
        exec('curl', '-s', '--cacert', $server->certificate, $http, '--limit-rate', '50k', '-o',
            '/dev/null', $url) or exit 1 if !$pid;
        push @slow, $pid;
    }
    my $status;
    wait_for(sub {
        $status = page('GET', '/status')->{body};
        return $status =~ m{stream \d+, GET /d/f/\*} && $status =~ m{<td nowrap>GET /d/f/\*+};
    }, 20, 'the stream of HTTP/2 and the request of HTTP/1.1, masked, in the page');
    is_deeply([ tokens_in($status) ], [], 'no token');
    like($status, qr{</html>}, 'and the page is whole');
    kill TERM => @slow;
    waitpid $_, 0 for @slow;
};

$server->stop;
for my $log (map { "$server->{folder}/$_" } qw(all.log access_log error_log)) {
    my $text = MDL::Target::slurp($log);
    my ($name) = $log =~ m{([^/]+)\z};
    cmp_ok(length $text, '>', 1000, "$name has been written");
    unlike($text, qr/K7Q2/, "$name does not have what was searched for");
    is_deeply([ tokens_in($text) ], [], "$name has no token")
        or diag(grep { tokens_in($_) } map { "$_\n" } (split /\n/, $text));
}
my $all = MDL::Target::slurp("$server->{folder}/all.log");
like($all, qr{^GET /d/o/\*+ HTTP/1\.1 \| /d/o/\*+ \|}m, 'a request can be told by its path');
my $search = qr{/api/v1/search\?limit=5&q=\*{9}};
like($all, qr{^GET $search HTTP/1\.1 \| $search \|}m, 'so can a search');
like($all, qr{^GET /source/search\?q=another-site }m, 'that of another application is left alone');
like($all, qr{^POST /d/o/\*+ HTTP/1\.1 \|.*localhost:\d+/d/f/\*+/}m, 'so can where it leads');

done_testing();
