# Requests that are refused early (contract, sections 1, 3 and 4): order of checks, media type,
# size, JSON, members. No refused request changes the database.
#
# once: these requests are refused before the database is used
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

use constant LIMIT  => 256 * 1024;
use constant MAX_ID => 9007199254740991;    # 2^53 - 1, written out because Perl's 2**53 is a float

my $shop  = new_shop();
my $token = $shop->{token};
my $true  = JSON::PP::true();

sub post { my ($path, %with) = @_; return api('POST', $path, key => $token, %with) }

# Sends exactly these headers and bytes.
sub sent
{
    my ($first, $headers, $body) = @_;
    return parse_reply(raw(join("\r\n", "$first HTTP/1.1", 'Host: localhost', 'Connection: close',
        @$headers, '', '') . ($body // '')));
}

sub write_headers
{
    return ("Authorization: Bearer $token", 'Idempotency-Key: ' . idem(),
        'Content-Type: application/json');
}

# --- paths and methods ---------------------------------------------------------------------------

unstored();
for my $path ('', '/', '/nothing', '/pings', '/ping/', '/ping/x', '/assets/', '/jobs/',
    '/jobs/a/b', '/orders/', '/orders/1/assignments/',
    '/orders/1/items', '/Ping')
{
    refused(api('GET', $path), 404, 'not_found', "GET '$path', without a key");
}
refused(post('/nothing', idem => undef, body => '{'), 404, 'not_found', 'POST /nothing');

my %allowed = (
    '/health'               => 'GET, HEAD, OPTIONS',
    '/health/ready'         => 'GET, HEAD, OPTIONS',
    '/health/storage'       => 'GET, HEAD, OPTIONS',
    '/ping'                 => 'GET, HEAD, OPTIONS',
    '/jobs/job_1'           => 'GET, HEAD, OPTIONS',
    '/orders/1'             => 'GET, HEAD, OPTIONS, PATCH',
    '/assets'               => 'GET, HEAD, OPTIONS, POST',
    '/assets/1'             => 'DELETE, GET, HEAD, OPTIONS, PATCH',
    '/jobs'                 => 'GET, HEAD, OPTIONS',
    '/mappings'             => 'GET, HEAD, OPTIONS, POST',
    '/mappings/1'           => 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT',
    '/orders/1/revoke'      => 'OPTIONS, POST',
    '/orders/1/assignments' => 'GET, HEAD, OPTIONS, POST',
);
sub allow { my ($reply) = @_; return join ', ', sort split /,\s*/, $reply->{headers}{allow} // '' }

for my $path (sort keys %allowed) {
    for my $method (qw(GET HEAD POST PUT PATCH DELETE BREW)) {
        next if $allowed{$path} =~ /\b$method\b/;
        my $reply = api($method, $path);
        is(allow($reply), $allowed{$path}, "$method $path: Allow lists the methods");
        is($reply->{status}, 405, "$method $path: 405") if $method eq 'HEAD';
        refused($reply, 405, 'method_not_allowed', "$method $path") if $method ne 'HEAD';
    }
    my $options = api('OPTIONS', $path);
    is($options->{status}, 204, "OPTIONS $path: 204, without a key");
    is(allow($options), $allowed{$path}, "OPTIONS $path: Allow");
    is($options->{body}, '', "OPTIONS $path: no body");
    is($options->{headers}{'cache-control'}, 'no-store', "OPTIONS $path: Cache-Control");
    like($options->{headers}{'x-request-id'}, qr/^req_/, "OPTIONS $path: X-Request-Id");
}

my $get  = api('GET',  '/ping', key => $token);
my $head = api('HEAD', '/ping', key => $token);
is($head->{status}, 200, 'HEAD is answered as GET is');
is($head->{body}, '', 'and has no body');
is($head->{headers}{'content-length'}, length $get->{body}, "but GET's Content-Length");
is($head->{headers}{$_}, $get->{headers}{$_}, "and the same $_")
    for qw(content-type cache-control x-content-type-options);
isnt($head->{headers}{'x-request-id'}, $get->{headers}{'x-request-id'},
    'each answer has its own request id');
is(api('HEAD', '/ping')->{status}, 401, 'HEAD needs a key as GET does');
is(api('HEAD', '/orders/1', key => $token)->{status}, 404, 'HEAD answers 404, too');

# --- the order of checks -------------------------------------------------------------------------

my $large = '{"x":"' . 'x' x LIMIT . '"}';
refused(api('POST', '/nothing', idem => undef, body => $large), 404, 'not_found',
    'the route is checked before the key');
refused(api('POST', '/assets', idem => undef, body => '{'), 401, 'unauthorized',
    'the key is checked before Idempotency-Key and body');
refused(post('/assets', idem => undef, body => '{', headers => { 'content-type' => 'text/plain' }),
    400, 'idempotency_key_required', 'Idempotency-Key is checked before the media type');
refused(post('/assets', body => '{', headers => { 'content-type' => 'text/plain' }),
    415, 'unsupported_media_type', 'the media type is checked before the JSON');
refused(post('/assets', body => substr($large, 0, -1)), 413, 'request_too_large',
    'the size is checked before the JSON');
refused(post('/assets', body => '{"nonsense":1,}'), 400, 'invalid_json',
    'the JSON is checked before the members');
refused(post('/mappings', json => { storefront_product_id => 'x', file_ids => [1] }),
    400, 'invalid_request', 'the members are checked before what they refer to',
    '/storefront_product_id');

# --- media type ----------------------------------------------------------------------------------

my $good = { storefront_product_id => product() };
for my $type (undef, '', 'text/plain', 'text/json', 'application/jsonp', 'application/json2',
    'application/x-www-form-urlencoded', 'multipart/form-data', 'application/json; charset=latin1',
    'application/json, text/plain', 'json', '*/*')
{
    refused(post('/mappings', json => $good, headers => { 'content-type' => $type }), 415,
        'unsupported_media_type', 'Content-Type ' . ($type // 'missing')) if defined $type;
}
for my $coding ('gzip', 'identity, br') {
    refused(post('/mappings', json => $good, headers => { 'content-encoding' => $coding }), 415,
        'unsupported_media_type', "Content-Encoding: $coding");
}
refused(
    sent('POST /api/v1/mappings', [ "Authorization: Bearer $token", 'Idempotency-Key: ' . idem(),
        'Content-Length: 2' ], '{}'),
    415, 'unsupported_media_type', 'no Content-Type'
);
# A chunked body is known to be empty only at its end, and HTTP/2 bodies often have no length
# either.
for my $type ([], ['Content-Type: application/json']) {
    my @headers = ("Authorization: Bearer $token", 'Transfer-Encoding: chunked', @$type);
    refused(sent('POST /api/v1/orders/1/revoke', [ @headers, 'Idempotency-Key: ' . idem() ],
        "0\r\n\r\n"),
        404, 'order_not_found', "an empty chunked body counts as no body, @$type");
    refused(sent('POST /api/v1/mappings', [ @headers, 'Idempotency-Key: ' . idem() ], "0\r\n\r\n"),
        @$type ? (400, 'invalid_json') : (415, 'unsupported_media_type'),
        "an empty chunked body where one is required, @$type");
}
refused(
    sent('POST /api/v1/orders/1/revoke',
        [ "Authorization: Bearer $token", 'Transfer-Encoding: chunked',
        'Idempotency-Key: ' . idem() ], "2\r\n{}\r\n0\r\n\r\n"),
    415, 'unsupported_media_type', 'a chunked body without a Content-Type'
);
for my $type ('application/json', 'Application/JSON', 'application/json;charset=utf-8',
    'application/json; charset=UTF-8', 'application/json; charset="utf-8"')
{
    is_answer(post('/mappings', json => { storefront_product_id => product() },
        headers => { 'content-type' => $type }), 201, "Content-Type $type");
}

# --- size ----------------------------------------------------------------------------------------

sub body_of
{
    my ($length) = @_;
    my $json = '{"storefront_product_id":"' . product() . '"}';
    return $json . ' ' x ($length - length $json);
}

# Sends a body with Content-Length or in chunks.
sub sent_in
{
    my ($form, $body) = @_;
    my @headers = ($form eq 'chunked'
        ? 'Transfer-Encoding: chunked'
        : 'Content-Length: ' . length $body);
    $body = join '', map { sprintf "%x\r\n%s\r\n", length, $_ } unpack('(a10000)*', $body), ''
        if $form eq 'chunked';
    return sent('POST /api/v1/mappings', [ write_headers(), @headers ], $body);
}

for my $form ('with Content-Length', 'chunked') {
    is_answer(sent_in($form, body_of(LIMIT)), 201, "256 KiB, $form, are accepted");
    unstored();
    refused(sent_in($form, body_of(LIMIT + 1)), 413, 'request_too_large', "one more byte, $form");
    refused(sent_in($form, body_of(300 * 1024)), 413, 'request_too_large', "300 KiB, $form");
}
refused(
    sent('POST /api/v1/mappings', [ write_headers(), 'Content-Length: 999999999999' ]),
    413, 'request_too_large', 'a terabyte that is only announced'
);

# --- bodies that end early -----------------------------------------------------------------------

# impatient.test is a virtual host with a short timeout; see t/conf/httpd.conf.in.
my $stored  = stored();
my $stalled = parse_reply(raw(join("\r\n", 'POST /api/v1/mappings HTTP/1.1', 'Host: impatient.test',
    write_headers(), 'Content-Length: 500', '', '') . substr(body_of(500), 0, 80)));
refused($stalled, 408, 'request_timeout', 'a body that stops arriving');
is($stalled->{headers}{connection}, 'close', 'the connection is closed');
my $cut = parse_reply(raw(join("\r\n", 'POST /api/v1/mappings HTTP/1.1', 'Host: localhost',
    write_headers(), 'Connection: close', 'Content-Length: 500', '', '')
    . substr(body_of(500), 0, 80), end => 1));
refused($cut, 400, 'invalid_request', 'a body that ends early');
# httpd itself answers this, before it calls the module.
my $chunk = sent('POST /api/v1/mappings', [ write_headers(), 'Transfer-Encoding: chunked' ],
    "zz\r\n" . body_of(100) . "\r\n0\r\n\r\n");
is($chunk->{status}, 400, 'a chunk without a length: 400');
is(stored(), $stored, 'a chunk without a length: nothing is stored');

# --- JSON ----------------------------------------------------------------------------------------

sub nested
{
    my ($depth) = @_;    # the outermost object is the first level
    return '{"x":' . '[' x ($depth - 1) . ']' x ($depth - 1) . '}';
}

my %broken = (
    'nothing'                        => '',
    'white space alone'              => " \n ",
    'half an object'                 => '{"title":"x"',
    'a word'                         => 'nonsense',
    'trailing bytes'                 => '{} x',
    'two objects'                    => '{}{}',
    'a trailing comma'               => '{"title":"x",}',
    'single quotes'                  => q({'title':'x'}),
    'a comment'                      => '{} // that is all',
    'a member without quotes'        => '{title:"x"}',
    'NaN'                            => '{"category_id":NaN}',
    'a leading zero'                 => '{"category_id":01}',
    'a number beyond 64 bits'        => '{"category_id":9223372036854775808}',
    'a number below 64 bits'         => '{"category_id":-9223372036854775809}',
    'a number of a thousand digits'  => '{"category_id":' . '9' x 1000 . '}',
    'a fraction beyond all bounds'   => '{"category_id":1e999}',
    'duplicate members'              => '{"title":"a","title":"b"}',
    'duplicate members, spelled otherwise' => '{"title":"a","\u0074itle":"b"}',
    'duplicate members further in'   => '{"customer":{"email":"a","email":"b"}}',
    'two byte order marks'           => "\xef\xbb\xbf\xef\xbb\xbf{}",
    'a raw line feed in a string'    => qq({"title":"a\nb"}),
    'NUL in the text'                => "{}\0",
    'NUL in a string'                => qq({"title":"a\0b"}),
    'NUL in a string, escaped'       => '{"title":"a\u0000b"}',
    'NUL in a name, escaped'         => '{"a\u0000b":1}',
    'a byte that is not UTF-8'       => qq({"title":"\xff"}),
    'Latin-1'                        => qq({"title":"caf\xe9"}),
    'an overlong form'               => qq({"title":"\xc0\xaf"}),
    'a surrogate'                    => qq({"title":"\xed\xa0\x80"}),
    'half a surrogate pair, escaped' => '{"title":"\ud83d"}',
    'a code point above the last'    => qq({"title":"\xf4\x90\x80\x80"}),
    'a character cut off'            => qq({"title":"\xe2\x82"}),
    'UTF-16'                         => "\xff\xfe{\0}\0",
    'seventeen levels'               => nested(17),
    'a hundred thousand levels'      => '[' x 100_000,
);
unstored();
for my $what (sort keys %broken) {
    refused(post('/assets', body => $broken{$what}), 400, 'invalid_json', $what);
}
refused(post('/assets', body => "\xef\xbb\xbf{}"), 400, 'invalid_request',
    'a byte order mark is ignored', '/source_url');
refused(post('/assets', body => nested(16)), 400, 'invalid_request',
    'sixteen levels are accepted', '/source_url', '/x');

for my $body ('[]', '[{}]', '"x"', '5', 'true', 'null') {
    refused(post($_, body => $body), 400, 'invalid_request', "POST $_ with the body $body")
        for '/assets', '/mappings', '/orders/1/assignments';
}

# --- values: counted before they are made --------------------------------------------------------

# A body with this many values: the object, its list, and what is in that.
sub values_of { my ($n, $value) = @_; return '{"x":[' . join(',', ($value) x ($n - 2)) . ']}' }

refused(post('/mappings', body => values_of(10_000, '[]')), 400, 'invalid_request', '10,000 values',
    '/storefront_product_id', '/x');
for my $value ('[]', '{}', '1', '","', '{ }', "[\n]") {
    my $reply = post('/mappings', body => values_of(10_001, $value));
    is_error($reply, 413, 'request_too_large', "10,001 values: $value");
    is($reply->{json}{error}{limit}, 10_000, 'with the limit');
}
is_error(post('/mappings', body => '{' . join(',', map { "\"$_\":1" } 1 .. 10_000) . '}'), 413,
    'request_too_large', '10,001 values, members of the body');
my $strange = post('/mappings', body => '{' . join(',', map { "\"$_\":1" } 1 .. 9999) . '}');
is("$strange->{status} $strange->{json}{error}{code}", '400 invalid_request',
    '9,999 unknown members');
is(@{ $strange->{json}{error}{details} }, 100, '100 of the faults are listed');
is_error(
    post('/license-key-tags/1/keys', body => qq({"keys":[) . join(',', ('{}') x 20_000) . ']}'),
    413, 'request_too_large', 'a list of 20,000 objects for keys');
refused(post('/license-key-tags/1/keys', json => { keys => [ 1 .. 10_001 ] }), 400,
    'invalid_request', 'a list of 10,001 keys', '/keys');

# --- query: only a list takes parameters ---------------------------------------------------------

for my $request (
    [ 'GET', '/ping' ], [ 'GET', '/health' ], [ 'GET', '/openapi.json' ], [ 'GET', '/assets/1' ],
    [ 'GET', '/orders/1' ], [ 'POST', '/mappings', json => { storefront_product_id => product() } ],
    [ 'POST', '/orders/1/revoke', json => {} ], [ 'DELETE', '/links/1' ],
  )
{
    my ($method, $path, @body) = @$request;
    for my $query ('dry_run=true', 'limit=5', 'cursor=x') {
        my ($name) = $query =~ /^(\w+)/;
        refused(api($method, "$path?$query", key => $token, @body), 400, 'invalid_request',
            "$method $path?$query", "/$name");
    }
}
is_answer(api('GET', '/ping?', key => $token), 200, 'an empty query');

# --- members: the error lists every invalid one
# -------------------------------------------------------

refused(post('/assets', json => {}), 400, 'invalid_request', 'no members', '/source_url');
refused(post('/mappings', json => {}), 400, 'invalid_request', 'no members',
    '/storefront_product_id');
my $empty = post('/orders/1/assignments', json => {});
refused($empty, 400, 'invalid_request', 'no members', '/items');
is_deeply([ map { $_->{code} } @{ $empty->{json}{error}{details} } ], ['required'],
    'its code is required');
refused(post('/orders/1/assignments', json => { storefront_customer_id => undef, items => undef }),
    400, 'invalid_request', 'a required member that is null', '/items');

my $misspelt = post('/orders/1/assignments', json => { storefront_customer_id => '1',
    items => [ { storefront_product_id => product(), qty => 1, 'a/b~c' => 1 } ],
    customer => { mail => 'a@b.example' }, send_mail => $true, shop_id => 1 });
refused($misspelt, 400, 'invalid_request', 'unknown members, at every level',
    '/items/0/qty', '/items/0/a~1b~0c', '/customer/mail', '/send_mail', '/shop_id');
refused(post('/assets', json => { source_url => source_url('x'), sourceUrl => 'x', Title => 'x' }),
    400, 'invalid_request', 'unknown members of an asset', '/sourceUrl', '/Title');
refused(post('/mappings', json => { storefront_product_id => product(), id => 5, packs => [] }),
    400, 'invalid_request', 'unknown members of a mapping', '/id', '/packs');

# Each member of each operation, with the kinds of value that it accepts; '' if it accepts none of
# these.
my %kinds = (
    null   => undef,
    number => 5,
    real   => 1.5,
    string => 'x y',
    true   => $true,
    array  => [],
    object => {},
);
my %operations = (
    '/assets' => {
        source_url   => '',
        filename     => 'string',
        content_type => '',
        title        => 'string',
        sha256       => '',
        category_id  => 'number null',
    },
    '/mappings' => {
        storefront_product_id  => '',
        title                  => 'string null',
        note                   => 'string null',
        storefront_variant_ids => 'array',
        variant_titles         => 'object',
        file_ids               => 'array',
        pack_ids               => 'array',
        link_ids               => 'array',
        license_key_tag_ids    => 'array',
        download_type          => '',
        is_active              => 'true',
        download_limit         => 'number null',
        access_days            => 'number null',
        content                => '',
    },
    '/orders/1/assignments' => {
        storefront_customer_id => 'null',
        items                  => '',
        send_email             => 'true',
        fraud_check            => 'true',
        client_ip              => 'null',
        customer               => 'object',
    },
    '/orders/1/revoke' => { reason => 'string', assignment_ids => '' },
    '/orders/1/restore' => { reason => 'string', assignment_ids => '' },
    '/orders/1/grant-downloads' => {
        downloads      => 'number',
        extend_days    => 'number',
        assignment_ids => '',
        file_ids       => '',
        reason         => 'string',
    },
    '/orders/1/resend' => { email => '', reason => 'string' },
    '/orders/1/rotate-link' => { reason => 'string' },
    '/orders/1/approve' => { reason => 'string' },
    '/assets/uploads' => {
        filename     => 'string',
        content_type => '',
        title        => 'string',
        size         => 'number',
        sha256       => '',
        category_id  => 'number null',
    },
    '/categories' => { name => 'string' },
    '/packs' => { name => 'string', file_ids => 'array' },
    '/links' => { title => 'string', url => '' },
    '/license-key-tags' => { name => 'string', low_stock_threshold => 'number null' },
    '/license-key-tags/1/keys' => { keys => '' },
);

# The members of a table that do not accept a kind.
sub faulty
{
    my ($kind, $members) = @_;
    return grep { !grep { $_ eq $kind } split / /, $members->{$_} } keys %$members;
}

for my $path (sort keys %operations) {
    my $members = $operations{$path};
    for my $kind (sort keys %kinds) {
        my @faulty = map { "/$_" } faulty($kind, $members) or next;
        refused(post($path, json => { map { $_ => $kinds{$kind} } keys %$members }), 400,
            'invalid_request', "POST $path: a value of kind $kind for every member", @faulty);
    }
}
my %item     = (storefront_product_id => '', storefront_variant_id => 'null', quantity => 'number');
my %customer = ((map { $_ => 'null' } qw(email locale)),
    map { $_ => 'string null' } qw(first_name last_name));
for my $kind (sort keys %kinds) {
    my @faulty = (
        (map { ("/items/0/$_", "/items/1/$_") } faulty($kind, \%item)),
        (map { "/customer/$_" } faulty($kind, \%customer))
    );
    refused(
        post('/orders/1/assignments', json => {
            storefront_customer_id => '1',
            items    => [ ({ map { $_ => $kinds{$kind} } keys %item }) x 2 ],
            customer => { map { $_ => $kinds{$kind} } keys %customer },
        }),
        400, 'invalid_request', "a value of kind $kind for every nested member", @faulty
    );
}
for my $list (qw(file_ids pack_ids link_ids license_key_tag_ids)) {
    refused(
        post('/mappings', json => { storefront_product_id => product(),
            $list => [ 'x', 1.5, $true, undef, [], {}, 0, -1, MAX_ID + 1, 7, 7 ] }),
        400, 'invalid_request', "elements of $list that are not ids, and one twice",
        map { "/$list/$_" } 0 .. 8, 10
    );
}
refused(
    post('/mappings', json => { storefront_product_id => product(),
        storefront_variant_ids => [ 5, $true, undef, [], {}, 'x', '', '05', '123456789012345678901',
            'gid://storefront/Product/1', 'gid://storefront/ProductVariant/',
            'gid://another/ProductVariant/1', 'gid://storefront/ProductVariant/1/2', '1', '1' ] }),
    400, 'invalid_request', 'elements that are not variants, and one twice',
    map { "/storefront_variant_ids/$_" } 0 .. 12, 14
);
refused(
    post('/orders/1/assignments', json => { storefront_customer_id => '1',
        items => [ 5, {}, 'x', { storefront_product_id => 'x' }, [], undef ] }),
    400, 'invalid_request', 'items that are not objects, and some that lack members',
    '/items/0', '/items/1/storefront_product_id', '/items/2', '/items/3/storefront_product_id',
    '/items/4', '/items/5'
);

# --- values --------------------------------------------------------------------------------------

sub refused_values
{
    my ($path, $good, $member, @values) = @_;
    for my $value (@values) {
        my $text = defined $value ? length $value > 40 ? length($value) . ' bytes' : $value
            : 'null';
        refused(post($path, json => { %$good, $member => $value }), 400, 'invalid_request',
            "POST $path: $member $text", "/$member");
    }
    return;
}

my $product = product();
refused_values('/mappings', {}, 'storefront_product_id', '', '123', 'gid://storefront/Product/',
    'gid://storefront/Product/x', 'gid://storefront/Product/01', 'gid://storefront/Product/1 ',
    'gid:///Product/1', 'gid://storefront/ProductVariant/1', 'gid://storefront/Product/1/2',
    'gid://storefront/product/1', 'gid://store front/Product/1',
    'gid://storefront/Product/123456789012345678901', "gid://storefront/Product/1\n");
refused_values('/mappings', { storefront_product_id => $product }, 'download_type', '',
    'zip', 'TAR');
refused_values('/mappings', { storefront_product_id => $product }, 'content', '', 'Live', 'frozen');
refused_values('/mappings', { storefront_product_id => $product }, 'download_limit', -1,
    MAX_ID + 1);
refused_values('/mappings', { storefront_product_id => $product }, 'access_days', -1,
    MAX_ID + 1);
refused_values('/mappings', { storefront_product_id => $product }, 'file_ids', [ 1 .. 251 ]);

my %asset = (source_url => source_url('x'));
refused_values('/assets', {}, 'source_url', '', 'x', '/x', '//localhost/x', 'localhost/x',
    'http://', "http://local\nhost/", 'http://user@localhost/x', 'http://user:word@localhost/x',
    "http://localhost/\x{e9}", "http://\x{ff11}\x{ff12}\x{ff17}.0.0.1/x", 'http://localhost./x',
    'http://localhost:0/x', 'http://localhost:99999/x', 'http://localhost:x/x',
    'http://localhost/' . 'x' x 8192);
refused_values('/assets', \%asset, 'filename', '', '.', '..', 'a/b', '../a', 'a\\b', "a\nb", "a\tb",
    "a\x7f", 'x' x 256);
refused_values('/assets', \%asset, 'title', '', "a\nb", 'x' x 256);
refused_values('/assets', \%asset, 'content_type', '', 'video', 'video/', '/mp4', 'video/mp4/x',
    "video/mp4\r\nX: y", 'vid eo/mp4', 'x/' . 'y' x 200);
refused_values('/assets', \%asset, 'sha256', '', '0' x 63, '0' x 65, 'g' x 64);
refused_values('/assets', \%asset, 'category_id', 0, -1, MAX_ID + 1);

my %assign = (storefront_customer_id => '1', items => [ { storefront_product_id => $product } ]);
refused_values('/orders/1/assignments', \%assign, 'storefront_customer_id', '', '01', '-1', '1.0',
    ' ', '1 ', 'x', '123456789012345678901', 'gid://storefront/Customer/1');
refused_values('/orders/1/assignments', \%assign, 'items', [], [ ($assign{items}[0]) x 251 ]);
for (
    [ quantity              => 0, -1, 1001, MAX_ID + 1 ],
    [ storefront_product_id => '', 'x', 'gid://storefront/ProductVariant/1' ],
    [ storefront_variant_id => ' 1', 'x', '01', 'gid://storefront/Product/1',
        'gid://another/ProductVariant/1' ],
) {
    my ($member, @values) = @$_;
    refused(
        post('/orders/1/assignments', json => { %assign, items =>
            [ { storefront_product_id => $product, $member => $_ } ] }),
        400, 'invalid_request', "an item's $member '$_'", "/items/0/$member"
    ) for @values;
}
for (
    [ email => 'x', 'a@', '@b.example', 'a b@c.example', "a\@b.example\r\nBcc: c\@d.example",
        'a@b.example, c@d.example', 'x' x 250 . '@b.example' ],
    [ first_name => "a\nb", 'x' x 101 ],
    [ last_name  => "a\nb", 'x' x 101 ],
    [ locale     => 'x' x 36, 'deutsch!', '../../etc', 'x' x 9, 'de-', '-de', 'de--AT', 'de_', '12',
        'de AT', "d\x{e9}", 'de-' . 'x' x 9, 'de_DE.UTF-8' ],
) {
    my ($member, @values) = @$_;
    refused(
        post('/orders/1/assignments', json => { %assign, customer => { $member => $_ } }),
        400, 'invalid_request', "a customer's $member of " . length($_) . ' bytes',
        "/customer/$member"
    ) for @values;
}
my $form = 'This member must be an email address.';
for my $email ("joerg\@m\x{fc}ller .example", "j\x{2028}rg\@b.example",
    "joerg\@\x{ff0e}example", 'x') {
    my @replies = (
        post('/orders/1/assignments', json => { %assign, customer => { email => $email } }),
        post('/orders/1/resend', json => { email => $email }));
    is($_->{json}{error}{details}[0]{message}, $form, 'an address that is refused is told its form')
        for @replies;
}
for my $order ('0x1', '01', '-1', 'abc', '1.0', '123456789012345678901', '%20') {
    refused(post("/orders/$order/assignments", json => \%assign), 400, 'invalid_request',
        "the order id $order in the path");
}
refused(post('/orders/abc/assignments', json => { %assign, send_mail => $true, items => [] }),
    400, 'invalid_request', 'an invalid order id with invalid members', '/items', '/send_mail');

# --- unknown ids ---------------------------------------------------------------------------------

refused(post('/assets', json => { %asset, category_id => 5 }), 422, 'unknown_reference',
    'a category that the shop does not have', '/category_id');
refused(
    post('/mappings', json => { storefront_product_id => $product, file_ids => [ MAX_ID, 1 ],
        pack_ids => [5], link_ids => [ 6, 7 ], license_key_tag_ids => [8] }),
    422, 'unknown_reference', 'content that the shop does not have',
    '/file_ids/0', '/file_ids/1', '/pack_ids/0', '/link_ids/0', '/link_ids/1',
    '/license_key_tag_ids/0'
);

# --- what messages don't disclose ----------------------------------------------------------------

my $told = post('/mappings', body => qq({"storefront_product_id":"\xff"}))->{body}
    . api('GET', '/jobs/%27;%20DROP%20TABLE%20job;%20--', key => $token)->{body};
unlike($told, qr/SELECT|INSERT|DROP|sqlite|postgres|pg_|\.c:\d|127\.0\.0\.1|\/tmp|\/usr/i,
    'messages name no SQL, no path and no address');

is_answer(api('GET', '/ping', key => $token), 200, 'the service still works');

# --- Range is ignored (RFC 9110 section 14.2) ----------------------------------------------------

my $put     = mapping_of($shop, []);
my @repeat  = (json => { storefront_product_id => $put->{storefront_product_id}, access_days => 9 },
    idem => idem());
my $written = post('/mappings', @repeat);
is_answer($written, 200, 'a write');
for my $range ('bytes=0-9', 'bytes=9999999-', 'bytes=0-1,5-9', 'bytes=-1') {
    for my $headers ({ range => $range }, { range => $range, 'if-range' => '"x"' }) {
        my $name  = join ', ', map { "$_: $headers->{$_}" } sort keys %$headers;
        my $again = post('/mappings', @repeat, headers => $headers);
        is_answer($again, 200, "its replay with $name");
        is($again->{body}, $written->{body}, 'has the same bytes');
        is_answer(post('/mappings', @repeat, idem => idem(), headers => $headers), 200,
            "a write with $name");
        is_answer(api('GET', $_, key => $token, headers => $headers), 200, "GET $_ with $name")
            for '/ping', '/health', "/mappings/$put->{id}";
    }
}

# --- a refusal does not wait for a body ----------------------------------------------------------

for my $expect ('', "Expect: 100-continue\r\n") {
    my $answer = raw("POST /api/v1/mappings HTTP/1.1\r\nHost: localhost\r\n"
            . "Content-Type: application/json\r\nContent-Length: 99\r\n$expect\r\n");
    like($answer, qr{^HTTP/1\.1 401 }, 'without a key the answer comes before the body');
    like($answer, qr{^Connection: close\r$}m, 'and the connection is closed');
}

my %many = map { ("member$_" => 1) } 1 .. 1000;
my $much = api('POST', '/mappings', key => $shop->{token}, json => { %many, 'x' x 10_000 => 1 });
is($much->{status}, 400, 'a thousand unknown members are refused');
is(scalar @{ $much->{json}{error}{details} }, 100, 'the answer lists the first hundred');
cmp_ok(length $much->{body}, '<', 20_000, 'and has a moderate length');

done_testing();
