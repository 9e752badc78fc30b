# What a customer opens: the order's page, its button, and the file (contract, section 8).
#
# both: the page and the file are read and counted by several queries that differ
use strict;
use warnings;

use Digest::SHA qw(sha256 sha256_base64);
use MIME::Base64 qw(encode_base64);
use Test::More;

use MDL::Instance;
use MDL::Opened;
use MDL::Test;

MDL::Instance->new->start;
my $shop      = sell_at(new_shop(name => 'Books & <Bytes>'));
my $log_start = error_log_size();

# --- the page ------------------------------------------------------------------------------------

subtest 'The page lists the files of the order' => sub {
    my $asset = asset('x' x 2_345_678, title => 'The <b>Book</b>', filename => 'book.bin');
    my $order = order(product([$asset], download_limit => 3));
    my $reply = page('GET', $order->{path});

    is($reply->{status}, 200, 'the page opens');
    like($reply->{body}, qr/Books &amp; &lt;Bytes&gt;/, 'with the shop, escaped');
    like($reply->{body}, qr/Order <bdi>\Q$order->{id}\E</, 'with the number of the order');
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
    my ($style, $script) = map { $reply->{body} =~ m{<$_>(.*?)</$_>}s } qw(style script);
    my $origin = 'http://localhost:' . port();

    is($headers{'content-type'}, 'text/html; charset=utf-8', 'Content-Type');
    is($headers{'cache-control'}, 'private, no-store', 'Cache-Control');
    is($headers{'referrer-policy'}, 'no-referrer', 'Referrer-Policy');
    is($headers{'x-content-type-options'}, 'nosniff', 'X-Content-Type-Options');
    is($headers{'x-frame-options'}, 'DENY', 'X-Frame-Options');
    is($headers{'x-robots-tag'}, 'noindex', 'X-Robots-Tag');
    is($headers{'content-security-policy'},
        "default-src 'none'; style-src 'sha256-" . sha256_base64($style) . "='; "
            . "script-src 'sha256-" . sha256_base64($script) . "='; "
            . "form-action 'self' $origin; base-uri 'none'; frame-ancestors 'none'",
        'Content-Security-Policy allows only its own style, script and form');
    unlike($script, qr/fetch|XMLHttp|https?:|import|cookie|storage/i,
        'and its script loads and stores nothing');
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
    all_settled($order);
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
    all_settled($order);
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
    sql("UPDATE asset SET updated_at = ${\ int(1e6 * time)} WHERE id = $asset->{id}");
    my $new  = $date->();

    is($with->()->{body}, 'if-range', 'the whole comes');
    all_settled($order);
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

    all_settled($order);
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

subtest 'No token gets into the error log' => sub { tokens_stay_out($log_start) };

done_testing();
