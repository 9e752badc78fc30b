# API keys (contract, section 2): one 401 for every invalid key, approval, scope, revocation,
# expiry.
#
# both: how soon a process sees a revoked key depends on the database
use strict;
use warnings;

use Compress::Zlib qw(crc32);
use MDL::Contract;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

my $shop    = new_shop();
my $token   = $shop->{token};
my @base62  = ('0' .. '9', 'A' .. 'Z', 'a' .. 'z');

# A token as the service would make it, with a valid checksum.
sub token_of
{
    my ($id, $secret) = @_;
    my $body = "adk_live_${id}_$secret";
    my ($crc, $sum) = (crc32($body), '');
    for (1 .. 6) {
        $sum = $base62[ $crc % 62 ] . $sum;
        $crc = int($crc / 62);
    }
    return $body . $sum;
}

sub some { my ($count) = @_; return join '', map { $base62[ rand 62 ] } 1 .. $count }

sub parts_of
{
    my ($of) = @_;
    return $of =~ /^adk_live_([0-9A-Za-z]{16})_([0-9A-Za-z]{43})[0-9A-Za-z]{6}\z/;
}

# The bytes of an answer without the request id and the date, which differ.
sub bytes_of
{
    my ($method, $path, @headers) = @_;
    my $bytes = raw(join "\r\n", "$method /api/v1$path HTTP/1.1", 'Host: localhost',
        'Connection: close', @headers, '', '');
    my ($id) = $bytes =~ /^X-Request-Id: (\S+)\r$/m;
    $bytes =~ s/\Q$id\E/REQUEST-ID/g if defined $id;
    $bytes =~ s/^Date: [^\r]*/Date: DATE/m;
    return $bytes;
}

sub bearer { my ($of) = @_; return bytes_of('GET', '/ping', "Authorization: Bearer $of") }

sub new_key
{
    my ($of, @options) = @_;
    my ($code, $made, $text) = ctl('key', 'create', $of->{shop_id}, 'another', @options);
    die "downloadsctl key create ended with $code: $text\n" if $code != 0;
    return { key_id => $made->{key}{id}, token => $made->{token} };
}

sub status_of { my ($of) = @_; return api('GET', '/ping', key => $of)->{status} }

# The statuses of so many requests at once, which reach every process.
sub pings
{
    my ($count, $of) = @_;
    return map { $_->{status} } parallel($count,
        sub { return { status => api('GET', '/ping', key => $of, patient => 1)->{status} } });
}

my ($key_id, $secret) = parts_of($token);
ok(defined $secret, 'a token has the form of the contract') or diag($token);
is($token, token_of($key_id, $secret),
    'its last six characters are CRC-32 of the rest, in base 62');
is($key_id, $shop->{key_id}, 'its key id is the one that downloadsctl printed');

# --- ping and health -----------------------------------------------------------------------------

my $ping = api('GET', '/ping', key => $token);
is_answer($ping, 200, 'a valid key is accepted');
is_shape($ping->{json}, 'ping', 'the answer to ping');
is($ping->{json}{ok}, 1, 'ok is true');
is_deeply($ping->{json}{shop},
    { id => $shop->{shop_id}, name => $shop->{name}, domain => $shop->{domain} },
    "ping names the key's shop");
is_deeply($ping->{json}{key}, { id => $key_id, name => 'suites', scope => 'full' },
    'ping names the key, without its secret');
is(status_of("   $token"), 200, 'more than one space before the token is accepted');
is(api('GET', '/ping', headers => { Authorization => "bEARER $token" })->{status}, 200,
    'the scheme is compared without case');

my $health = api('GET', '/health');
is_answer($health, 200, 'health needs no key');
is_deeply($health->{json}, { status => 'ok' }, 'health says ok');
is(api('GET', '/health', key => 'nonsense')->{status}, 200, 'health ignores a key');

# --- 401, byte for byte --------------------------------------------------------------------------

my $other = new_shop();
my ($other_id, $other_secret) = parts_of($other->{token});

my $revoked = new_key($shop);
is(status_of($revoked->{token}), 200, 'a key works before it is revoked');
my ($code) = ctl('key', 'revoke', $revoked->{key_id});
is($code, 0, 'a key can be revoked');

# An older database, or a replica that had not got everything, may have the same epoch.
my $unknown = new_key($shop);
is(status_of($unknown->{token}), 200, 'a key works while the database has it');
sql("DELETE FROM api_key WHERE id = '$unknown->{key_id}'");
wait_for(sub { status_of($unknown->{token}) == 401 }, 60,
    'the key to be looked up again, whatever the epoch is');

my ($expiring, @pings);
for my $seconds (2, 8, 32, 128) {    # a slow machine takes the longer ones
    my $began = time;
    $expiring = new_key($shop, '--expires', $seconds);
    @pings = pings(8, $expiring->{token});
    last if time - $began < $seconds;
}
is_deeply(\@pings, [ (200) x 8 ], 'a key works until it expires');
ok(wait_for(sub { status_of($expiring->{token}) == 401 }, 200, 'the key to expire'),
    'and is refused then, although the server has cached it');

my $missing = bytes_of('GET', '/ping');
like($missing, qr{\AHTTP/1\.1 401 }, 'no key: 401');
like($missing, qr{^WWW-Authenticate: Bearer realm="downloads"\r$}m,
    'the challenge names the realm, and no error');
is_error(
    parse_reply(raw("GET /api/v1/ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")),
    401, 'unauthorized', 'no key');

(my $flipped = $token) =~ s/(.)\z/$1 eq 'a' ? 'b' : 'a'/e;
(my $other_case = $token) =~ s/^adk_live_/ADK_LIVE_/;
my @malformed = (
    [ 'empty',                        '' ],
    [ 'only the scheme',              'Bearer' ],
    [ 'another scheme',               'Basic dXNlcjpwYXNzd29yZA==' ],
    [ 'Basic with the token',         "Basic $token" ],
    [ 'no scheme',                    $token ],
    [ 'a tab for the space',          "Bearer\t$token" ],
    [ 'a parameter',                  "Bearer token=$token" ],
    [ 'in quotes',                    "Bearer \"$token\"" ],
    [ 'the token twice',              "Bearer $token$token" ],
    [ 'two tokens',                   "Bearer $token, Bearer $other->{token}" ],
    [ 'something after the token',   "Bearer $token x" ],
    [ 'another word',                 'Bearer nonsense' ],
    [ 'only the prefix',              'Bearer adk_live_' ],
    [ 'only prefix and id',           "Bearer adk_live_$key_id" ],
    [ 'no secret',                    "Bearer adk_live_${key_id}_" ],
    [ 'one character short',          'Bearer ' . substr $token, 0, -1 ],
    [ 'one character long',           "Bearer ${token}0" ],
    [ 'another prefix',               'Bearer ' . $token =~ s/live/test/r ],
    [ 'the prefix in capitals',       "Bearer $other_case" ],
    [ 'a wrong checksum',             "Bearer $flipped" ],
    [ 'an invalid character',     'Bearer ' . $token =~ s/(?<=^adk_live_)./-/r ],
    [ 'bytes above ASCII',            'Bearer ' . $token =~ s/.\z/\xff/r ],
    [ 'percent signs',                'Bearer %s%n%s%n%00' ],
    [ 'four thousand characters',     'Bearer ' . 'A' x 4000 ],
);
is(bytes_of('GET', '/ping', "Authorization: $_->[1]"), $missing,
    "malformed, $_->[0]: the same bytes")
    for @malformed;
is(bytes_of('GET', '/ping', "Authorization: Bearer $token", "Authorization: Bearer $token"),
    $missing, 'two headers: the same bytes');
is(bytes_of('GET', "/ping?access_token=$token"), $missing, 'a token in the URL: the same bytes');
is(bytes_of('GET', '/ping', "X-Api-Key: $token"), $missing, 'another header: the same bytes');

is(bearer(token_of(some(16), some(43))), $missing, 'an unknown key: the same bytes');
is(bearer(token_of($key_id, some(43))), $missing, 'a wrong secret: the same bytes');
is(bearer(token_of($key_id, $other_secret)), $missing,
    'the secret of another shop: the same bytes');
is(bearer(token_of($other_id, $secret)), $missing,
    'an id with the secret of this shop: the same bytes');
is(bearer(token_of(lc $key_id, $secret)), $missing, 'an id in another case: the same bytes')
    if lc $key_id ne $key_id;
is(bearer($revoked->{token}), $missing, 'a revoked key: the same bytes');
is(bearer($expiring->{token}), $missing, 'an expired key: the same bytes');

for (
    [ 'GET',  '/jobs/job_1' ],
    [ 'GET',  '/orders/1' ],
    [ 'GET',  '/orders/1/assignments' ],
    [ 'POST', '/assets' ],
    [ 'POST', '/mappings' ],
    [ 'POST', '/orders/1/assignments' ],
) {
    my ($method, $path) = @$_;
    is(bytes_of($method, $path), $missing, "$method $path without a key: the same bytes");
    is(bytes_of($method, $path, "Authorization: Bearer $revoked->{token}"), $missing,
        "$method $path with a revoked key: the same bytes");
}
is(status_of($token), 200, 'none of this has locked the key');

# --- revocation, at the next request of every process --------------------------------------------

my $short = new_key($shop);
is_deeply([ pings(16, $short->{token}) ], [ (200) x 16 ], 'a new key works in every process');
ctl('key', 'revoke', $short->{key_id});
is_deeply([ pings(16, $short->{token}) ], [ (401) x 16 ],
    'after its revocation it works in none, as soon as downloadsctl has returned');
is(status_of($token), 200, "the shop's other key still works");

ctl('shop', 'set', $shop->{shop_id}, '--name', 'Another Name');
ok(wait_for(sub { api('GET', '/ping', key => $token)->{json}{shop}{name} eq 'Another Name' }, 60,
    'the name'),
    "ping shows a shop's new name, although the server had cached the old one");

# --- approval ------------------------------------------------------------------------------------

my $unapproved = new_shop(approve => 0);
my $exit;
($exit) = ctl('key', 'create', $unapproved->{shop_id}, 'too early');
is($exit, 5, 'a shop that is not approved gets no key');

my $pausing = new_shop();
my ($pausing_id) = parts_of($pausing->{token});
my $pausing_revoked = new_key($pausing);
ctl('key', 'revoke', $pausing_revoked->{key_id});
is_deeply([ pings(16, $pausing->{token}) ], [ (200) x 16 ], 'the keys of an approved shop work');
($exit) = ctl('shop', 'suspend', $pausing->{shop_id});
is($exit, 0, 'a shop can be suspended');
is_deeply([ pings(16, $pausing->{token}) ], [ (403) x 16 ],
    'after its suspension they work in none, as soon as downloadsctl has returned');
is_error(api('GET', '/ping', key => $pausing->{token}), 403, 'shop_not_approved',
    'a key of a suspended shop');
is_error(api('POST', '/mappings', key => $pausing->{token}, idem => undef, body => '{'), 403,
    'shop_not_approved', 'a faulty write of a suspended shop');
is(bearer(token_of($pausing_id, some(43))), $missing,
    'only a caller with the secret learns that the shop is suspended');
is(bearer($pausing_revoked->{token}), $missing, 'a revoked key does not show it');
is(status_of($other->{token}), 200, 'another shop is not affected');
ctl('shop', 'approve', $pausing->{shop_id});
is(status_of($pausing->{token}), 200, 'once it is approved again its key works at once');

# --- scope ---------------------------------------------------------------------------------------

my $reader = new_key($shop, '--scope', 'read');
my $reads  = api('GET', '/ping', key => $reader->{token});
is_answer($reads, 200, 'a read-only key may read');
is($reads->{json}{key}{scope}, 'read', 'ping shows its scope');
is(api('HEAD', '/ping', key => $reader->{token})->{status}, 200, 'it may use HEAD');
is_error(api('GET', '/orders/1', key => $reader->{token}), 404, 'order_not_found',
    'it may read orders');
unstored();
for my $path ('/assets', '/mappings', '/orders/1/assignments') {
    refused(api('POST', $path, key => $reader->{token}, json => {}), 403, 'insufficient_scope',
        "POST $path with a read-only key");
    refused(api('POST', $path, key => $reader->{token}, idem => undef, body => 'x'), 403,
        'insufficient_scope', "POST $path with a read-only key and other faults");
}
refused(
    api('POST', '/mappings', key => $reader->{token},
        json => { storefront_product_id => product() }),
    403, 'insufficient_scope', 'a write without any other fault'
);

# What opens a download is for "deliver", which writes no more than "read" does.
my $courier = new_key($shop, '--scope', 'deliver');
is(api('GET', '/ping', key => $courier->{token})->{json}{key}{scope}, 'deliver',
    'there is a third scope');
refused(api('POST', '/mappings', key => $courier->{token},
    json => { storefront_product_id => product() }),
    403, 'insufficient_scope', 'which writes nothing');
is(api('POST', '/assets/uploads', key => $courier->{token}, json => { filename => 'a' })->{status},
    403, 'no upload either');

my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
    ->{json}{id};
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token},
    json => { keys => ['SCOPE-KEY-1'] });
my $sold = mapping_of($shop, [ ready_asset($shop, "scope-$$.txt", "a file\n")->{id} ],
    license_key_tag_ids => [$tag]);
my $number = digits();
my $bought = assign($shop, $number, [ $sold->{storefront_product_id} ])->{json};
is_deeply($bought->{assignments}[0]{license_keys}, ['SCOPE-KEY-1'], 'an order has a license key');
my ($page_token) = $bought->{download_page_url} =~ m{([^/]+)$};
my $of = "/orders/$number/assignments/$bought->{assignments}[0]{id}";
for my $path ('/orders', '/orders?view=summary', "/orders/$number",
    "/orders/$number/assignments", $of,
    map { "/orders/$number/$_" } qw(events downloads emails diagnosis))
{
    my %got = map { $_->[0] => api('GET', $path, key => $_->[1]{token}) }
        [ full => $shop ], [ deliver => $courier ], [ read => $reader ];
    is($got{deliver}{body}, $got{full}{body}, "GET $path: deliver sees what full sees");
    is($got{read}{status}, 200, 'read may read it');
    unlike($got{read}{body}, qr/SCOPE-KEY-1|\Q$page_token\E/, 'without what opens a download');
}
my $seen = api('GET', "/orders/$number", key => $reader->{token});
is_answer($seen, 200, 'as the document says');
is($seen->{json}{download_page_url}, undef, 'the page is null');
is($seen->{json}{assignments}[0]{license_keys}, undef, 'and so are the keys');
is(api('GET', "$of/download-urls", key => $courier->{token})->{status}, 200,
    'deliver gets download URLs');
is_error(api('GET', "$of/download-urls", key => $reader->{token}), 403, 'insufficient_scope',
    'read does not');

# --- when a key was last used --------------------------------------------------------------------

sub last_used
{
    my ($of) = @_;
    my (undef, $keys) = ctl('key', 'list', $shop->{shop_id});
    my ($found) = grep { $_->{id} eq $of->{key_id} } @{ ref $keys eq 'ARRAY' ? $keys : [] };
    return $found->{last_used_at};
}

my $unused = new_key($shop);
my $used   = new_key($shop);
is(last_used($used), undef, 'a new key has no last_used_at');
my ($from, $to) = map { api('GET', '/ping', key => $_)->{json}{server_time} }
    $token, $used->{token};
# The background process writes it when it begins, once a minute and when it stops.
my $began = time;
httpd_graceful();
my $noted = wait_for(sub { last_used($used) }, 60, 'last_used_at');
cmp_ok($noted, 'ge', $from, 'a used key has the time of its use');
cmp_ok($noted, 'le', $to, 'and not a later one');
is(last_used($unused), undef, 'an unused key still has none');
my ($uses, $writes) = (0, 0);
for (my $until = time + 2; time < $until || $uses < 20; $uses++) {
    status_of($used->{token});
    my $now = last_used($used);
    $writes++ if $now ne $noted;
    $noted = $now;
}
cmp_ok($writes, '<=', 1 + (time - $began) / 60,
    "it is written once a minute, not at each of $uses uses");
is(status_of($token), 200, 'the key works after the restart');

done_testing();
