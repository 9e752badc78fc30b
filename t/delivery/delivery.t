# What a customer opens: the order's page, its button, and the file (contract, section 8).
#
# both: the page and the file are read and counted by several queries that differ
use strict;
use warnings;

use Digest::SHA qw(hmac_sha256 sha256_base64 sha256_hex sha256);
use MIME::Base64 qw(encode_base64 encode_base64url decode_base64url);
use Test::More;
use Time::HiRes qw(time);

use MDL::DownloadClient;
use MDL::Instance;
use MDL::Objects;
use MDL::Test;
use MDL::Upload qw(in_objects);

my $server    = MDL::Instance->new(cluster => 1)->start;
my $shop      = new_shop(name => 'Books & <Bytes>');
my $log_start = error_log_size();
my $number    = int(time);
my @tokens;    # must not be in any log

# --- helpers -------------------------------------------------------------------------------------

# A ready asset with these bytes; returns { id, bytes, sha256, … }.
sub asset
{
    my ($bytes, %more) = @_;
    my $name  = 'delivery-' . ++$number . '.bin';
    my $reply = api('POST', '/assets', key => $shop->{token},
        json => { source_url => source($name, $bytes), %more });
    $reply->{status} == 202 or die "import: $reply->{status} $reply->{body}\n";
    my $job = wait_job($shop, $reply->{json}{job}{id});
    $job->{status} eq 'succeeded' or die "import: $job->{error}{message}\n";
    return { %{ $reply->{json}{asset} }, bytes => $bytes, sha256 => sha256_hex($bytes) };
}

# A product of these assets; returns its id.
sub product
{
    my ($assets, %more) = @_;
    my $id    = 'gid://shop/Product/' . ++$number;
    my $reply = map_product($id, $assets, %more);
    $reply->{status} == 201 or die "mapping: $reply->{status} $reply->{body}\n";
    return $id;
}

sub map_product
{
    my ($id, $assets, %more) = @_;
    return api('POST', '/mappings', key => $shop->{token},
        json => { storefront_product_id => $id, file_ids => [ map { $_->{id} } @$assets ], %more });
}

# An order of these products; returns { id, url, path, token, assignments => [ ids ] }.
sub order
{
    my (@products) = @_;
    my $id    = '' . ++$number;
    my $reply = api('POST', "/orders/$id/assignments", key => $shop->{token}, json => {
        storefront_customer_id => "$number",
        items => [ map { { storefront_product_id => $_ } } @products ],
    });
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my $order = $reply->{json};
    my ($path, $token) = $order->{download_page_url} =~ m{^http://[^/]+(/d/o/(.+))$}
        or die "no page: $order->{download_page_url}\n";
    push @tokens, $token;
    return { id => $id, url => $order->{download_page_url}, path => $path, token => $token,
        assignments => [ map { $_->{id} } @{ $order->{assignments} } ] };
}

# An order of one product with one file.
sub one_file
{
    my ($bytes, %mapping) = @_;
    my $asset = asset($bytes);
    my $order = order(product([$asset], %mapping));
    return ($order, $asset, "$order->{assignments}[0]-$asset->{id}");
}

sub press
{
    my ($order, $file) = @_;
    return page('POST', $order->{path}, form => { file => $file });
}

# Presses the button and returns the path of the link.
sub link_of
{
    my ($order, $file) = @_;
    my $reply = press($order, $file);
    $reply->{status} == 303 or die "no redirect but $reply->{status}: $reply->{body}\n";
    my ($path, $token) = $reply->{headers}{location} =~ m{^http://[^/]+(/d/f/([^/]+).*)$}
        or die "not a link: $reply->{headers}{location}\n";
    push @tokens, $token;
    return $path;
}

# Signs a link as the service does, for links that the button does not make.
sub forge
{
    my ($assignment, $asset, $expires) = @_;
    open my $in, '<:raw', logs_dir() . '/secret' or die "secret: $!";
    my $secret = do { local $/; <$in> };
    my $bytes = join('', map { chr int rand 256 } 1 .. 16) . pack('Q>Q>Q>', $assignment, $asset,
        $expires);
    my $mac = hmac_sha256($bytes, hmac_sha256('file-link', $secret));
    my $token = encode_base64url($bytes . substr $mac, 0, 16);
    push @tokens, $token;
    return "/d/f/$token";
}

sub left
{
    my ($order) = @_;
    my $body = page('GET', $order->{path})->{body};
    return $body =~ /(\d+) of \d+ downloads? left/ ? $1 : $body =~ /no downloads left/ ? 0 : undef;
}

sub counted_sql
{
    my ($assignment, $asset) = @_;
    my ($row) = sql("SELECT downloads_used FROM allowance WHERE assignment_id = $assignment "
            . "AND asset_id = $asset");
    return $row ? $row->[0] : 0;
}

sub is_page
{
    my ($reply, $status, $like, $name) = @_;
    subtest $name => sub {
        is($reply->{status}, $status, "the status is $status");
        is($reply->{headers}{'content-type'}, 'text/html; charset=utf-8', 'it is a page');
        is($reply->{headers}{'cache-control'}, 'private, no-store', 'it must not be cached');
        like($reply->{body}, $like, 'it says what to do');
        ok(!exists $reply->{headers}{etag}, 'it has no entity tag');
        ok(!exists $reply->{headers}{'content-disposition'}, 'and is not sent as a file');
    };
    return;
}

# --- the page ------------------------------------------------------------------------------------

subtest 'The page lists the files of the order' => sub {
    my $asset = asset('x' x 2_345_678, title => 'The <b>Book</b>', filename => 'book.bin');
    my $order = order(product([$asset], download_limit => 3));
    my $reply = page('GET', $order->{path});

    is($reply->{status}, 200, 'the page opens');
    like($reply->{body}, qr/Books &amp; &lt;Bytes&gt;/, 'with the shop, escaped');
    like($reply->{body}, qr/Order \Q$order->{id}\E/, 'with the number of the order');
    like($reply->{body}, qr/The &lt;b&gt;Book&lt;\/b&gt;/, 'with the title, escaped');
    like($reply->{body}, qr/book\.bin/, 'with the name of the file');
    like($reply->{body}, qr/2\.3\W+MB/, 'with its size');
    like($reply->{body}, qr/\Q$asset->{sha256}\E/, 'with its SHA-256');
    like($reply->{body}, qr/3 of 3 downloads left/, 'with the downloads left');
    like($reply->{body}, qr/name="file" value="$order->{assignments}[0]-$asset->{id}"/,
        'with a button');
    like($reply->{body}, qr/action="\Q$order->{path}\E"/, 'that posts to the page itself');
};

subtest 'The page is private and loads nothing from elsewhere' => sub {
    my ($order) = one_file('private');
    my $reply = page('GET', $order->{path});
    my %headers = %{ $reply->{headers} };
    my ($style) = $reply->{body} =~ m{<style>(.*?)</style>}s;
    my $origin = 'http://localhost:' . port();

    is($headers{'content-type'}, 'text/html; charset=utf-8', 'Content-Type');
    is($headers{'cache-control'}, 'private, no-store', 'Cache-Control');
    is($headers{'referrer-policy'}, 'no-referrer', 'Referrer-Policy');
    is($headers{'x-content-type-options'}, 'nosniff', 'X-Content-Type-Options');
    is($headers{'x-frame-options'}, 'DENY', 'X-Frame-Options');
    is($headers{'x-robots-tag'}, 'noindex', 'X-Robots-Tag');
    is($headers{'content-security-policy'},
        "default-src 'none'; style-src 'sha256-" . sha256_base64($style) . "='; "
            . "form-action 'self' $origin; base-uri 'none'; frame-ancestors 'none'",
        'Content-Security-Policy allows only its own style and form');
};

subtest 'Opening the page costs nothing' => sub {
    my ($order, $asset) = one_file('looking', download_limit => 2);
    my $head = page('HEAD', $order->{path});
    my $get  = page('GET', $order->{path});

    is($head->{status}, 200, 'HEAD is answered');
    is($head->{body}, '', 'without a body');
    is($head->{headers}{'content-length'}, length $get->{body}, 'with the length of the page');
    page('GET', $order->{path}) for 1 .. 3;
    is(left($order), 2, 'all downloads are left');
};

subtest 'The page comes whole, also if a range of it is asked for' => sub {
    my $order = order(product([ asset('range') ]));
    my $whole = page('GET', $order->{path})->{body};
    for my $range ('bytes=0-9', 'bytes=9999999-') {
        my $page = page('GET', $order->{path}, headers => { Range => $range });
        is($page->{status}, 200, $range);
        is($page->{body}, $whole, 'the page');
    }
};

subtest 'A file without a limit shows no number of downloads' => sub {
    my ($order) = one_file('no limit', download_limit => 0);

    unlike(page('GET', $order->{path})->{body}, qr/downloads? left/, 'the page mentions no limit');
};

subtest 'An order without files says so' => sub {
    my $order = order(product([]));

    like(page('GET', $order->{path})->{body}, qr/nothing to download/, 'the page says so');
};

subtest 'An address that the service did not issue is not found' => sub {
    my ($order) = one_file('nowhere');
    my $other = $order->{token};
    substr($other, 5, 1) = substr($other, 5, 1) eq 'A' ? 'B' : 'A';

    is_page(page('GET', "/d/o/$other"), 404, qr/no such page/, 'a token with a wrong letter');
    is_page(page('GET', '/d/o/'), 404, qr/no such page/, 'an empty token');
    is_page(page('GET', "/d/o/$order->{token}/x"), 404, qr/no such page/,
        'a segment after the token');
    is_page(page('GET', '/d/x'), 404, qr/no such page/, 'another path');
    is_page(page('GET', '/d'), 404, qr/no such page/, 'no path');
    is_page(page('GET', "/d/f/$order->{token}"), 404, qr/no such file/,
        "a page's token as a file's");
};

subtest 'Other methods are refused with a list of the allowed ones' => sub {
    my ($order, $asset, $file) = one_file('method');
    my $page = page('PUT', $order->{path});
    my $link = link_of($order, $file);
    my $post = page('POST', $link, form => { file => $file });

    is($page->{status}, 405, 'PUT of the page');
    is($page->{headers}{allow}, 'GET, HEAD, POST', 'Allow of the page');
    is($post->{status}, 405, 'POST of the file');
    is($post->{headers}{allow}, 'GET, HEAD', 'Allow of the file');
    like($_->{body}, qr/can\W+t be done.*\Q$order->{url}\E.*mention order <bdi>$order->{id}/s,
        'the answer links back to the page and says whom to ask') for $page, $post;
};

# --- the button ----------------------------------------------------------------------------------

subtest 'The button leads to the file' => sub {
    my ($order, $asset, $file) = one_file('the bytes', download_limit => 2);
    my $reply = press($order, $file);

    is($reply->{status}, 303, 'it redirects with See Other');
    like($reply->{headers}{location}, qr{^\Q${\public_url()}\E/f/[\w-]+/delivery-\d+\.bin$},
        'to a link that ends in the name of the file');
    is(left($order), 2, 'an unused link costs nothing');
    my ($path) = $reply->{headers}{location} =~ m{^http://[^/]+(.*)$};
    my $got = page('GET', $path);
    is($got->{status}, 200, 'the link is answered');
    is($got->{body}, 'the bytes', 'with the bytes');
    is(left($order), 1, 'and has cost one download');
    is(page('GET', $path, headers => { Range => 'bytes=4-' })->{body}, 'bytes',
        'the same link gives a part of them again');
    is(left($order), 1, 'at no further cost');
    is(page('GET', $path =~ s{/[^/]+$}{}r)->{body}, 'the bytes',
        'it gives the whole again, also without the name');
    is(left($order), 0, 'which costs another download');
    is(page('GET', $path =~ s{/[^/]+$}{/other%20name}r, headers => { Range => 'bytes=4-' })->{body},
        'bytes', 'any other name works, too');
};

subtest 'Requests that the button does not make are refused' => sub {
    my ($order, $asset, $file) = one_file('no button');
    my ($other, undef, $foreign) = one_file('another order');
    my $post = sub {
        my ($type, $body) = @_;
        return MDL::Test::reply_of(HTTP::Tiny->new(max_redirect => 0)->request('POST',
            'http://127.0.0.1:' . port() . $order->{path},
            { headers => { 'content-type' => $type }, content => $body }));
    };

    is_page(press($order, $foreign), 404, qr/not in this order/, 'a file of another order');
    is_page(press($order, 'nonsense'), 404, qr/not in this order/, 'an invalid file');
    is_page(page('POST', $order->{path}, form => { files => $file }), 400, qr/button/, 'no field');
    is_page($post->('application/json', '{}'), 415, qr/button/, 'another media type');
    is_page($post->('application/x-www-form-urlencoded', 'file=' . 'x' x 4096), 413, qr/button/,
        'a body over 4 KiB');
    is_page($post->('application/x-www-form-urlencoded', sub { undef }), 411, qr/button/,
        'a body of unknown length');
    my $cut = raw("POST $order->{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            . "Content-Type: application/x-www-form-urlencoded\r\n"
            . "Content-Length: 500000000\r\n\r\nfile=", timeout => 10);
    like($cut, qr{^HTTP/1\.1 413 }, 'a huge body is refused before it has come');
};

# --- the file ------------------------------------------------------------------------------------

subtest 'The file has all headers that a client needs' => sub {
    my ($order, $asset, $file) = one_file('0123456789' x 1000);
    my $reply = page('GET', link_of($order, $file));
    my %headers = %{ $reply->{headers} };

    is($reply->{status}, 200, 'the file is sent');
    is($reply->{body}, $asset->{bytes}, 'with its bytes');
    is($headers{'content-length'}, 10_000, 'Content-Length');
    is($headers{'content-type'}, 'application/octet-stream', 'Content-Type');
    is($headers{etag}, qq("$asset->{sha256}"), 'ETag is the SHA-256');
    is($headers{'accept-ranges'}, 'bytes', 'Accept-Ranges');
    like($headers{'last-modified'}, qr/ GMT$/, 'Last-Modified');
    is($headers{'repr-digest'}, 'sha-256=:' . encode_base64(sha256($asset->{bytes}), '') . ':',
        'Repr-Digest');
    like($headers{'content-disposition'}, qr/^attachment; /, 'Content-Disposition');
    is($headers{'cache-control'}, 'private', 'Cache-Control');
    is($headers{'content-security-policy'}, 'sandbox', 'Content-Security-Policy');
    is($headers{'referrer-policy'}, 'no-referrer', 'Referrer-Policy');
    is($headers{'x-content-type-options'}, 'nosniff', 'X-Content-Type-Options');
    is($headers{'cross-origin-resource-policy'}, 'same-origin', 'Cross-Origin-Resource-Policy');
};

subtest 'A name in any script is kept, and its special characters are escaped' => sub {
    my $name  = "\x{5b57} \"q\" 100% \x{fc}.pdf";
    my $asset = asset('named', filename => $name, content_type => 'application/pdf');
    my $order = order(product([$asset]));
    my $link  = link_of($order, "$order->{assignments}[0]-$asset->{id}");
    my $reply = page('GET', $link);

    like($link, qr{/%E5%AD%97%20%22q%22%20100%25%20%C3%BC\.pdf$}, 'the link has it as one segment');
    is($reply->{body}, 'named', 'the link works');
    is($reply->{headers}{'content-disposition'},
        'attachment; filename="_ _q_ 100_ _.pdf"; '
            . q(filename*=UTF-8''%E5%AD%97%20%22q%22%20100%25%20%C3%BC.pdf),
        'the header has an ASCII fallback and the full name');
    is($reply->{headers}{'content-type'}, 'application/pdf', 'the type is the asset\'s');
};

subtest 'Answers without bytes of the file cost nothing' => sub {
    my ($order, $asset, $file) = one_file('abcdefghij', download_limit => 1);
    my $link = link_of($order, $file);
    my $with = sub { page('GET', $link, headers => {@_}) };

    my $head = page('HEAD', $link);
    is($head->{status}, 200, 'HEAD');
    is($head->{headers}{'content-length'}, 10, 'HEAD has the length');
    is($head->{headers}{etag}, qq("$asset->{sha256}"), 'HEAD has the entity tag');

    my $ranged = page('HEAD', $link, headers => { Range => 'bytes=2-3' });
    is($ranged->{status}, 200, 'HEAD ignores Range');
    is($ranged->{headers}{'content-length'}, 10, 'and has the length of the whole file');

    my $same = $with->('If-None-Match' => qq("$asset->{sha256}"));
    is($same->{status}, 304, 'If-None-Match with the entity tag');
    is($same->{headers}{etag}, qq("$asset->{sha256}"), '304 has the entity tag');
    is($same->{body}, '', '304 has no body');
    is($with->('If-Modified-Since' => $head->{headers}{'last-modified'})->{status}, 304,
        'If-Modified-Since');
    is_page($with->('If-Match' => '"other"'), 412, qr/start the download again/,
        'If-Match of another file');

    for my $range ('bytes=10-', 'bytes=10-20', 'bytes=-0', 'bytes=99-, 100-200',
        'bytes=99999999999999999999-') {
        my $beyond = $with->(Range => $range);
        is($beyond->{status}, 416, "Range: $range");
        is($beyond->{headers}{'content-range'}, 'bytes */10', 'with the length of the file');
    }
    is($with->(Range => 'bytes=10-', 'If-Range' => qq("$asset->{sha256}"))->{status}, 416,
        'a range beyond the end with a matching If-Range');

    for my $header ('Sec-Purpose', 'Purpose', 'X-Purpose', 'X-Moz') {
        is_page($with->($header => $_), 403, qr/press the button/, "$header: $_")
            for qw(prefetch preview);
    }
    is_page($with->('Sec-Purpose' => 'prefetch;prerender'), 403, qr/press the button/, 'prerender');

    is(counted_sql($order->{assignments}[0], $asset->{id}), 0, 'none of these has cost a download');
    is($with->()->{body}, 'abcdefghij', 'and the download is still there');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'which costs one');
};

subtest 'Parts of a file are one download' => sub {
    my $bytes = join '', map { chr($_ % 251) } 0 .. 99_999;
    my ($order, $asset, $file) = one_file($bytes, download_limit => 1);
    my $link = link_of($order, $file);
    my $with = sub { page('GET', $link, headers => {@_}) };
    my $tag  = qq("$asset->{sha256}");

    my $part = $with->(Range => 'bytes=100-199');
    is($part->{status}, 206, 'a range');
    is($part->{headers}{'content-range'}, 'bytes 100-199/100000', 'its Content-Range');
    is($part->{headers}{'content-length'}, 100, 'its Content-Length');
    is($part->{headers}{etag}, $tag, 'the entity tag of the whole file');
    is($part->{headers}{'repr-digest'}, 'sha-256=:' . encode_base64(sha256($bytes), '') . ':',
        'the digest of the whole file');
    is($part->{body}, substr($bytes, 100, 100), 'with its bytes');
    is($with->(Range => 'bytes=-50')->{body}, substr($bytes, -50), 'the last bytes');
    is($with->(Range => 'bytes=99990-')->{body}, substr($bytes, 99_990), 'a range without an end');
    is($with->(Range => 'bytes=99990-200000')->{body}, substr($bytes, 99_990),
        'a range beyond the end');

    my $parts = $with->(Range => 'bytes=0-9,50000-50009');
    is($parts->{status}, 206, 'two ranges');
    like($parts->{headers}{'content-type'}, qr{^multipart/byteranges; boundary=}, 'are multipart');
    like($parts->{body},
        qr{Content-range: bytes 0-9/100000\r\n\r\n\Q${\substr($bytes, 0, 10)}\E\r\n}si,
        'with the first');
    like($parts->{body},
        qr{bytes 50000-50009/100000\r\n\r\n\Q${\substr($bytes, 50_000, 10)}\E\r\n}si,
        'and the second');

    is($with->(Range => 'bytes=5-9', 'If-Range' => $tag)->{status}, 206, 'If-Range of this file');
    is($with->(Range => 'bytes=5-9', 'If-Range' => '"other"')->{body}, $bytes,
        'If-Range of another file gives the whole');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1,
        'all of these have cost one download');
};

subtest 'An invalid range is ignored' => sub {
    my ($order, $asset, $file) = one_file('passed over', download_limit => 2);
    my $link = link_of($order, $file);
    my $with = sub { page('GET', $link, headers => { Range => shift }) };

    is($with->('lines=1-2')->{status}, 200, 'an unknown unit');
    is($with->('bytes=9-5')->{status}, 200, 'an invalid range');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 2, 'each costs a download');
};

subtest 'A range beyond the end with an If-Range of another file gives the whole file, '
    . 'and costs a download' => sub {
    my ($order, $asset, $file) = one_file('if-range');
    my $reply = page('GET', link_of($order, $file),
        headers => { Range => 'bytes=8-', 'If-Range' => '"other"' });

    is($reply->{status}, 200, 'it is the whole');
    is($reply->{body}, 'if-range', 'with its bytes');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'and has cost one download');
};

subtest 'If-Range with a date' => sub {
    my ($order, $asset, $file) = one_file('if-range', download_limit => 9);
    my $link = link_of($order, $file);
    my $with = sub { page('GET', $link, headers => {@_}) };
    my $cost = sub { counted_sql($order->{assignments}[0], $asset->{id}) };
    my $date = sub { page('HEAD', $link)->{headers}{'last-modified'} };
    my $new  = $date->();

    is($with->()->{body}, 'if-range', 'the whole comes');
    is($with->(Range => 'bytes=3-', 'If-Range' => $new)->{status}, 200,
        'a date within the last minute is too weak a validator, so the whole comes again');
    is($cost->(), 2, 'which costs a download');

    sql("UPDATE asset SET updated_at = updated_at - 3600000000 WHERE id = $asset->{id}");
    my $old  = $date->();
    my $part = $with->(Range => 'bytes=3-', 'If-Range' => $old);
    is($part->{status}, 206, 'with an older date a part comes');
    is($part->{body}, 'range', 'with its bytes');
    is($cost->(), 2, 'which costs nothing');
    my $beyond = $with->(Range => 'bytes=8-', 'If-Range' => $old);
    is($beyond->{status}, 416, 'a range beyond the end is refused');
    is($beyond->{headers}{'content-range'}, 'bytes */8', 'with the length of the file');
    is($cost->(), 2, 'which costs nothing');

    is($with->(Range => 'bytes=3-', 'If-Range' => $new)->{body}, 'if-range',
        'with the date of another file the whole comes');
    is($cost->(), 3, 'which costs a download');
};

subtest 'A range of the last bytes costs a download, like any that covers the file' => sub {
    my ($order, $asset, $file) = one_file('suffix');

    is(page('GET', link_of($order, $file), headers => { Range => 'bytes=-2' })->{body}, 'ix',
        'the bytes come');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'and have cost one download');
};

subtest 'A connection serves pipelined requests one after the other' => sub {
    my ($order, $asset, $file) = one_file('kept alive', download_limit => 0);
    my $path  = link_of($order, $file);
    my $get   = "GET $path HTTP/1.1\r\nHost: localhost\r\n";
    my $all   = raw("$get\r\n" x 20 . $get . "Connection: close\r\n\r\n");

    is(scalar(() = $all =~ /\r\n\r\nkept alive/g), 21, 'all 21 are answered');
};

# --- limits --------------------------------------------------------------------------------------

subtest 'Page and messages have an address to write to' => sub {
    my $first = asset('support');
    my $order = order(product([ $first, asset('second') ], download_limit => 1));
    my $file  = "$order->{assignments}[0]-$first->{id}";
    my $links = api('GET',
        "/orders/$order->{id}/assignments/$order->{assignments}[0]/download-urls",
        key => $shop->{token})->{json};
    my @urls  = ($order->{path}, link_of($order, $file), $links->{zip}{url});
    my $addresses = sub {
        my %found = map { $_ => 1 }
            map { page('GET', $_)->{body} =~ /href="mailto:([^"]+)"/g } @urls;
        return join ' ', sort keys %found;
    };
    page('GET', link_of($order, $file));

    is($addresses->(), '', 'no address is shown if the shop has none');
    MDL::Test::ctl_or_die('shop', 'set', $shop->{shop_id}, '--email', 'owner@shop.example');
    is($addresses->(), 'owner@shop.example', "the shop's address is shown");
    MDL::Test::ctl_or_die('shop', 'set', $shop->{shop_id}, '--reply-to', 'answers@shop.example');
    is($addresses->(), 'answers@shop.example', 'its reply-to address is shown if it has one');
    MDL::Test::ctl_or_die('shop', 'set', $shop->{shop_id}, '--reply-to', '', '--email', '');
};

subtest 'When the limit is reached the button disappears and links stop working' => sub {
    my ($order, $asset, $file) = one_file('limited', download_limit => 1);
    my ($first, $second) = map { link_of($order, $file) } 1 .. 2;

    is(page('GET', $first)->{status}, 200, 'the only download is used');
    wait_for_status($order, 'counted');
    is_page(page('GET', $second), 403, qr/limit is reached.*\Q$order->{token}\E/s,
        'another link is refused and leads back to the page');
    is(page('GET', $first, headers => { Range => 'bytes=1-' })->{status}, 206,
        'the first link still gives a part');
    is_page(page('GET', $first), 403, qr/limit is reached/, 'but not the whole again');
    my $page = page('GET', $order->{path});
    like($page->{body}, qr/limit of this file is reached/, 'the page says so');
    like($page->{body}, qr/no downloads left/, 'and that none is left');
    unlike($page->{body}, qr/<form/, 'and has no button');
    is(press($order, $file)->{status}, 403, 'pressing it is refused like the link');
};

subtest 'Two of one product may be downloaded twice as often' => sub {
    my $asset   = asset('twice', title => 'Twice');
    my $product = product([$asset], download_limit => 1);
    my $order   = order($product);
    my $left    =
        sub { page('GET', $order->{path})->{body} =~ /(\d+ of \d+ downloads? left)/ ? $1 : undef };
    my $file    = "$order->{assignments}[0]-$asset->{id}";
    my $told    = sub {
        scalar grep { $_->{type} eq 'download.limit_reached'
            && $_->{data}{storefront_order_id} eq $order->{id} }
            @{ api('GET', '/events?after=0&limit=100&type=download.limit_reached',
            key => $shop->{token})->{json}{data} };
    };

    is($left->(), '1 of 1 download left', 'one of it once');
    is(api('POST', "/orders/$order->{id}/assignments", key => $shop->{token},
        json => { storefront_customer_id => $order->{id},
        items => [ { storefront_product_id => $product, quantity => 2 } ] })->{status}, 200,
        'another is bought');
    is($left->(), '2 of 2 downloads left', 'two of it twice');
    my @links = map { link_of($order, $file) } 1 .. 3;
    is(page('GET', $links[0])->{status}, 200, 'the first download');
    wait_for_status($order, 'counted');
    is(page('GET', $links[1])->{status}, 200, 'the second');
    wait_for(sub { $told->() }, 20, 'the event that it was the last');
    is($told->(), 1, 'of which an event tells that it was the last');
    is_page(page('GET', $links[2]), 403, qr/limit is reached/, 'a third is refused');
};

# Waits until the order's only session has this status.
sub wait_for_status
{
    my ($order, $status) = @_;
    return wait_for(sub {
        my ($last) = sql(
            "SELECT status FROM download_session WHERE assignment_id = $order->{assignments}[0]");
        return $last && $last->[0] eq $status;
    }, 20, "a session that is $status");
}

subtest 'While the last download runs the page says so, and once it is broken off its '
    . 'button is back' => sub {
    my ($order, $asset, $file) = one_file('x' x 8_000_000, download_limit => 1);
    my ($first, $second) = map { link_of($order, $file) } 1 .. 2;
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $first)->read_until(1_000_000);
    my %seen   = map { $_ => page('GET', $order->{path},
        headers => { 'Accept-Language' => $_ })->{body} } qw(en de);

    my $running = 'A download of this file is running\. '
        . 'If it broke off, load this page again in a minute';
    like($seen{en}, qr/no downloads left.*$running/s,
        'the page says that one is running');
    like($seen{de}, qr/Gerade läuft ein Download dieser Datei\. Falls er abgebrochen ist/,
        'also in German');
    unlike($seen{en}, qr/<form|limit of this file is reached/,
        'it has no button, and does not call it used up');
    is_page(press($order, $file), 403, qr/A download of this file is running/,
        'pressing it is refused');
    is_page(page('GET', $second), 403,
        qr/A download is running.*you can try again in a minute.*\Q$order->{token}\E/s,
        'another link is refused in these words, and leads back to the page');
    is(page('HEAD', $second)->{status}, 403, 'and so is HEAD');
    my $diagnosis = api('GET', "/orders/$order->{id}/diagnosis", key => $shop->{token})->{json};
    my ($allowance) = grep { $_->{name} eq 'allowance' } @{ $diagnosis->{checks} };
    is($allowance->{status}, 'warn', 'the diagnosis warns');
    like($allowance->{message},
        qr/^The last download of .* is running\. If it breaks off, it can be tried again/,
        'and says why');

    my $read = $client->leave(1);
    my $page = wait_for(sub { page('GET', $order->{path})->{body} =~ /^(.*<form.*)$/s && $1 }, 20,
        'the button');
    like($page, qr/1 of 1 download left/, 'it broke off: the page offers it again');
    my $whole = page('GET', link_of($order, $file));
    is(sha256_hex($whole->{body}), $asset->{sha256}, 'a press of the button gives the whole file');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'which is the one download');
    wait_for(sub { page('GET', $order->{path})->{body} =~ /limit of this file is reached/ }, 20,
        'the page to call it used up');
    is_page(page('GET', $first, headers => { Range => "bytes=$read-" }), 403, qr/limit is reached/,
        'the link that broke off does not go on with it');
};

subtest 'Of fifty links that are opened at once when one has broken off, '
    . 'one takes its download over' => sub {
    my ($order, $asset, $file) = one_file('y' x 8_000_000, download_limit => 1);
    my @links  = map { link_of($order, $file) } 1 .. 51;
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, pop @links)->read_until(1_000_000);

    $client->leave(1);
    wait_for(sub { page('HEAD', $links[0])->{status} == 200 }, 20, 'the end of the transfer');
    my %count;
    $count{ ref $_ ? $_->{died} : $_ }++
        for parallel(50, sub { page('GET', $links[ $_[0] ], patient => 1)->{status} });
    is_deeply(\%count, { 200 => 1, 403 => 49 }, 'one 200 and 49 times 403');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'one download is counted');
};

subtest 'If one download is left, fifty simultaneous attempts use only that one' => sub {
    my ($order, $asset, $file) = one_file('one for all', download_limit => 1);
    my @links = parallel(50, sub { link_of($order, $file) });
    my @answers = parallel(50, sub { page('GET', $links[ $_[0] ], patient => 1)->{status} });
    my %count;
    $count{ ref $_ ? $_->{died} : $_ }++ for @answers;

    is_deeply(\%count, { 200 => 1, 403 => 49 }, 'one 200 and 49 times 403');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'one download is counted');
};

subtest 'Fifty requests of one link open one session' => sub {
    my ($order, $asset, $file) = one_file('one session', download_limit => 1);
    my $link = link_of($order, $file);
    my @answers = parallel(50, sub { page('GET', $link, patient => 1)->{status} });

    my %count;
    $count{ ref $_ ? $_->{died} : $_ }++ for @answers;

    cmp_ok($count{200}, '>=', 1, 'at least one is served');
    is(($count{200} // 0) + ($count{403} // 0) + ($count{429} // 0), 50,
        'the others are refused or have to wait');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'one download is counted');
};

subtest 'A link expires, and so does its session' => sub {
    my ($order, $asset, $file) = one_file('in time', download_limit => 5);
    my $old  = forge($order->{assignments}[0], $asset->{id}, int(time) - 1);
    my $late = forge($order->{assignments}[0], $asset->{id}, int(time) + 60);

    is_page(page('GET', $old), 410, qr/too old.*\Q$order->{token}\E/s,
        'an expired link is gone, and its page links back');
    is(page('GET', $late)->{status}, 200, 'a valid link is served');
    is(left($order), 4, 'and has cost a download');
    my $long_ago = int((time - 2 * 86_400) * 1e6);
    sql("UPDATE download_session SET opened_at = $long_ago "
            . "WHERE assignment_id = $order->{assignments}[0]");
    is_page(page('GET', $late), 410, qr/too old/, 'a link whose session is over a day old is gone');
    is(left($order), 4, 'which costs nothing');
};

# --- the order's state ---------------------------------------------------------------------------

for my $case (
    [ 'held', qr/under review/, 'The shop is checking' ],
    [ 'revoked', qr/withdrawn/, 'Refunded on request' ],
    [ 'rejected', qr/not released/, 'The card was stolen' ],
) {
    my ($status, $like, $reason) = @$case;
    subtest "An order that is $status gives no file" => sub {
        my $asset = asset("bytes of $status", filename => "secret-name-$status.bin", title => 'T');
        my $order = order(product([$asset]));
        my $file  = "$order->{assignments}[0]-$asset->{id}";
        my $link  = link_of($order, $file);
        sql("UPDATE orders SET access_status = '$status', access_reason = '$reason' "
                . "WHERE storefront_order_id = '$order->{id}'");
        my $page = page('GET', $order->{path});

        is($page->{status}, 200, 'the page opens');
        like($page->{body}, $like, 'and says why');
        unlike($page->{body}, qr/secret-name/, 'without a file\'s name');
        unlike($page->{body}, qr/<form/, 'without a button');
        if ($status eq 'held') {
            unlike($page->{body}, qr/\Q$reason\E/, 'and without the reason');
        }
        else {
            like($page->{body}, qr/\Q$reason\E/, "with the shop's reason");
        }
        is_page(press($order, $file), 403, $like, 'pressing the button is forbidden');
        is_page(page('GET', $link), 403, qr/$like.*\Q$order->{token}\E/s,
            'an earlier link is forbidden, and its page links back');
        is(counted_sql($order->{assignments}[0], $asset->{id}), 0, 'nothing has been counted');
    };
}

subtest 'An expired assignment gives no file' => sub {
    my ($order, $asset, $file) = one_file('expired', access_days => 1);
    my $link = link_of($order, $file);

    like(page('GET', $order->{path})->{body},
        qr{available until <time datetime="[\d-]+T[\d:.]+Z">\d+ \w+ \d{4}, \d\d:\d\d UTC<},
        'before the end the page has its time');
    my $past = int((time - 10) * 1e6);
    sql("UPDATE assignment SET expires_at = $past WHERE id = $order->{assignments}[0]");
    my $page = page('GET', $order->{path});
    like($page->{body}, qr/have expired/, 'after it the page says so');
    unlike($page->{body}, qr/<form/, 'without a button');
    is_page(press($order, $file), 403, qr/have expired/, 'pressing the button is forbidden');
    is_page(page('GET', $link), 403, qr/expired.*\Q$order->{token}\E/s,
        'an earlier link is forbidden');
};

subtest 'A revoked assignment does not affect the others of its order' => sub {
    my @assets = map { asset("part $_", filename => "part-$_.bin", title => "Part $_") } 1 .. 2;
    my $order  = order(map { product([$_]) } @assets);
    my @files  = map { "$order->{assignments}[$_]-$assets[$_]{id}" } 0 .. 1;
    my $link   = link_of($order, $files[0]);
    sql("UPDATE assignment SET status = 'revoked' WHERE id = $order->{assignments}[0]");
    my $page = page('GET', $order->{path});

    unlike($page->{body}, qr/part-1\.bin/, 'its file is left out');
    like($page->{body}, qr/part-2\.bin/, 'the other is shown');
    is(press($order, $files[0])->{status}, 403, 'its button is forbidden');
    is(page('GET', $link)->{status}, 403, 'its link is forbidden');
    is(page('GET', link_of($order, $files[1]))->{body}, 'part 2', 'the other can be downloaded');
    sql("UPDATE assignment SET status = 'revoked' WHERE id = $order->{assignments}[1]");
    like(page('GET', $order->{path})->{body}, qr/withdrawn/, 'if all are revoked the page says so');
};

subtest 'A file that is not ready has no button' => sub {
    my ($order, $asset, $file) = one_file('not ready');
    my $link = link_of($order, $file);

    for my $case ([ 'pending', qr/being prepared/ ], [ 'failed', qr/could not be prepared/ ]) {
        my ($status, $like) = @$case;
        sql("UPDATE asset SET status = '$status' WHERE id = $asset->{id}");
        my $page = page('GET', $order->{path});
        like($page->{body}, $like, "$status: the page says so");
        unlike($page->{body}, qr/<form/, "$status: without a button");
        is(press($order, $file)->{status}, 409, "$status: pressing it is a conflict");
        is_page(page('GET', $link), 409, qr/$like.*\Q$order->{token}\E/s,
            "$status: so is an earlier link");
    }
    sql("UPDATE asset SET status = 'ready' WHERE id = $asset->{id}");
    is(page('GET', $link)->{body}, 'not ready', 'once it is ready the same link works');
};

subtest 'A file that was removed from the product is gone' => sub {
    my @assets  = map { asset("content $_") } 1 .. 2;
    my $product = product([ $assets[0] ]);
    my $order   = order($product);
    my $link    = link_of($order, "$order->{assignments}[0]-$assets[0]{id}");
    is(map_product($product, [ $assets[1] ])->{status}, 200, 'the product gets other content');

    is_page(page('GET', $link), 404, qr/no longer there/, 'the link of the old file is gone');
    is(press($order, "$order->{assignments}[0]-$assets[0]{id}")->{status}, 404, 'so is its button');
    is(page('GET', link_of($order, "$order->{assignments}[0]-$assets[1]{id}"))->{body}, 'content 2',
        'the new file can be downloaded');
};

# --- faults of the service -----------------------------------------------------------------------

subtest 'A file that is missing from the storage costs nothing and is reported '
    . 'to the operator' => sub {
    my ($order, $asset, $file) = one_file('missing bytes', download_limit => 1);
    my $link   = link_of($order, $file);
    my $offset = error_log_size();

    lose_bytes($asset);
    is_page(page('GET', $link), 500, qr/missing on our side/, 'the customer is told');
    my $log = error_log_since($offset);
    like($log, qr/MDL0406: .*\Q$asset->{sha256}\E/, 'the log names the file');
    if (!in_objects()) {
        open my $out, '>', blob_file($asset) or die "$asset->{sha256}: $!";
        print $out 'short';
        close $out;
        is(page('GET', $link)->{status}, 500, 'a file of another size is not sent either');
    }
    is(counted_sql($order->{assignments}[0], $asset->{id}), 0, 'no download was counted');
    find_bytes($asset);
    is(page('GET', $link)->{body}, 'missing bytes', 'once it is back the same link works');
};

SKIP: {
    skip 'SQLite has no server to stop', 1 if database() ne 'pgsql';
    subtest 'While the database is down customers are asked to try again' => sub {
        my ($order, $asset, $file) = one_file('away');
        my $link = link_of($order, $file);
        stop_database();
        my @replies = (page('GET', $order->{path}), press($order, $file), page('GET', $link),
            page('PUT', $link));
        start_database();

        for my $reply (@replies) {
            is_page($reply, 503, qr/try again/i, 'a page says so');
            is($reply->{headers}{'retry-after'}, 5, 'with Retry-After');
        }
        is(page('GET', $link)->{body}, 'away', 'the first request afterwards is served');
    };
}

subtest 'No token gets into the error log' => sub {
    my ($order, $asset, $file) = one_file('logged');
    page('GET', link_of($order, $file), headers => { Referer => $order->{url} });
    my $log = error_log_since($log_start);

    like($log, qr/MDL0405: download of asset $asset->{id} for assignment \d+: counted/,
        'the log has the download');
    is(scalar(grep { index($log, $_) >= 0 } @tokens), 0, 'and none of ' . @tokens . ' tokens');
};

done_testing();
