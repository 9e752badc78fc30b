# The rate limit of a key (contract, section 5): it is exact over all processes, shown in every
# answer to a valid key, and turned off by DownloadsRateLimit Off.
#
# once: rates are counted in memory
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Limits qw(limited);
use MDL::Test;
use POSIX qw(ceil);
use Test::More;
use Time::HiRes qw(time);
use Time::Local qw(timegm);

use constant BURST => 60;

my @HEADERS = qw(x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset ratelimit-policy
    ratelimit);

# One token comes back each minute, so none comes back during a check of a few seconds; came_back()
# allows for a slow machine.
# The shop's limit, which t/api/rate_limit_shop.t is about, is out of the way.
my $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsRateLimit On
DownloadsRateRefill 1
DownloadsRateShopFactor 100
END
my $shop   = new_shop();

# A new key of the shop.
sub fresh
{
    my (@options) = @_;
    my ($code, $made, $text) = ctl('key', 'create', $shop->{shop_id}, 'fresh', @options);
    die "downloadsctl key create ended with $code: $text\n" if $code != 0;
    return { %$shop, key_id => $made->{key}{id}, token => $made->{token} };
}

# Revokes keys, since a shop can have only a few active ones.
sub done { ctl('key', 'revoke', $_->{key_id}) for @_; return }

sub headers_of { my ($reply) = @_; return join ' ', grep { exists $reply->{headers}{$_} } @HEADERS }

sub left { my ($reply) = @_; return $reply->{headers}{'x-ratelimit-remaining'} }

my $began;    # before the first request of the key

# How many tokens may have come back since.
sub came_back { return int((time - $began) / 60) }

# Checks a number of tokens, or of what they pay for, each $cost.
sub is_count
{
    my ($count, $expected, $name, $cost) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $most = int(($expected * ($cost // 1) + came_back()) / ($cost // 1));
    return ok($count >= $expected && $count <= $most, $name)
        || diag("$count, not $expected to $most");
}

# Uses up all tokens of the key but $keep.
sub drain
{
    my ($key, $keep) = @_;
    api('GET', '/ping', key => $key->{token}) for 1 .. BURST - $keep;
    return $key;
}

# The values of the headers: { limit, remaining, reset (seconds since 1970), q, w, r, t }; undef if
# one is missing or malformed.
sub standing
{
    my ($reply) = @_;
    my %of = map { $_ => $reply->{headers}{$_} // '' } @HEADERS;
    my %is;
    ($is{limit})     = $of{'x-ratelimit-limit'} =~ /^(\d+)\z/;
    ($is{remaining}) = $of{'x-ratelimit-remaining'} =~ /^(\d+)\z/;
    $is{reset} = timegm($6, $5, $4, $3, $2 - 1, $1) + "0.$7"
        if $of{'x-ratelimit-reset'} =~ /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z\z/;
    # A list of RFC 9651 with one member: a string with integer parameters.
    @is{qw(q w)} = $of{'ratelimit-policy'} =~ /^"key";q=(\d+);w=(\d+)\z/;
    @is{qw(r t)} = $of{'ratelimit'} =~ /^"key";r=(\d+);t=(\d+)\z/;
    return if grep { !defined $is{$_} } qw(limit remaining reset q w r t);
    return \%is;
}

# --- the headers ---------------------------------------------------------------------------------

my $key   = fresh();
$began = time;
my $reply = api('GET', '/ping', key => $key->{token});
my $is    = standing($reply);
ok($is, 'an answer shows the state of its key in both forms') or diag(explain($reply->{headers}));
is($is->{limit}, BURST, 'X-RateLimit-Limit is the burst');
is($is->{q}, BURST, 'and so is q of RateLimit-Policy');
is($is->{w}, BURST * 60, 'w is the time in which an empty bucket fills up, in seconds');
is($is->{remaining}, BURST - 1, 'a read takes one token');
is($is->{r}, $is->{remaining}, 'r of RateLimit is the same number');
cmp_ok($is->{reset}, '>=', $began + 59.9, 'X-RateLimit-Reset is when the bucket is full');
cmp_ok($is->{reset}, '<=', time + 60.1, 'and no later');
is($is->{t}, 60, 't of RateLimit is when the next token comes, in whole seconds');

$is = standing(api('POST', '/mappings', key => $key->{token}, json => {}));
is_count($is->{remaining}, BURST - 3, 'a write takes two');
cmp_ok($is->{reset}, '>=', $began + 179.9, 'the bucket is full later then');
cmp_ok($is->{t}, '<=', 60, 'but the next token comes no later');
is_count(left(api('HEAD', '/ping', key => $key->{token})), BURST - 4,
    'HEAD costs what GET costs');

# --- every answer to a valid key -----------------------------------------------------------------

my $all  = join ' ', @HEADERS;
my $idem = idem();
my $product = product();
my @told = (
    [ 'a success', 200, 1, api('GET', '/ping', key => $key->{token}) ],
    [ 'an unknown id', 404, 1, api('GET', '/orders/1', key => $key->{token}) ],
    [ 'a write', 201, 2, api('POST', '/mappings', key => $key->{token}, idem => $idem,
        json => { storefront_product_id => $product }) ],
    [ 'its replay', 201, 2, api('POST', '/mappings', key => $key->{token}, idem => $idem,
        json => { storefront_product_id => $product }) ],
    [ 'a conflict', 409, 2, api('POST', '/mappings', key => $key->{token}, idem => $idem,
        json => { storefront_product_id => $product, is_active => \0 }) ],
    [ 'no Idempotency-Key', 400, 2, api('POST', '/mappings', key => $key->{token}, idem => undef,
        json => {}) ],
    [ 'a body that is not JSON', 400, 2,
        api('POST', '/mappings', key => $key->{token}, body => '{') ],
    [ 'another media type', 415, 2, api('POST', '/mappings', key => $key->{token}, body => '{}',
        headers => { 'Content-Type' => 'text/plain' }) ],
    [ 'a body that is too large', 413, 2, api('POST', '/mappings', key => $key->{token},
        body => '{"a":"' . 'x' x 300_000 . '"}') ],
    [ 'an unknown product', 422, 2, assign($key, 1, [ product() ]) ],
);
my $before = BURST - 4;
for (@told) {
    my ($name, $status, $cost, $answer) = @$_;
    is($answer->{status}, $status, "$name is answered $status") or diag($answer->{body});
    is(headers_of($answer), $all, "$name: every header is there");
    is_count(left($answer), $before - $cost, "$name costs $cost");
    $before -= $cost;
}
is($told[3][3]{headers}{'idempotent-replayed'}, 'true', 'the replay is marked as one');

my $reader = fresh('--scope', 'read');
my $refusal = api('POST', '/mappings', key => $reader->{token}, json => {});
is_error($refusal, 403, 'insufficient_scope', 'a write with a read-only key');
is(headers_of($refusal), $all, 'shows the state of its key, too');
is(left($refusal), BURST, 'and costs nothing');

my $suspended = new_shop();
ctl('shop', 'suspend', $suspended->{shop_id});
$refusal = api('GET', '/ping', key => $suspended->{token});
is_error($refusal, 403, 'shop_not_approved', 'a valid key of a suspended shop');
is(headers_of($refusal), $all, 'shows the state of its key, too');
is(left($refusal), BURST, 'and costs nothing');

# --- answers without the headers -----------------------------------------------------------------

my $wrong = $key->{token} =~ s/(?<=_).{10}(?=.{39}\z)/0123456789/r;
is(headers_of(api('GET', '/ping')), '', 'an answer without a key has none of the headers');
is(headers_of(api('GET', '/ping', key => $wrong)), '', 'nor has one with a wrong secret');
my $revoked = fresh();
done($revoked);
$reply = api('GET', '/ping', key => $revoked->{token});
is($reply->{status}, 401, 'a revoked key is refused');
is(headers_of($reply), '', 'and gets none of the headers');
is(headers_of(api('GET', '/health', key => $key->{token})), '',
    'nor has an answer that needs no key');
is(headers_of(api('GET', '/nowhere', key => $key->{token})), '', 'nor one without a route');
is(headers_of(api('DELETE', '/ping', key => $key->{token})), '', 'nor one to an unknown method');
is(headers_of(api('OPTIONS', '/ping', key => $key->{token})), '', 'nor one to OPTIONS');
is_count(left(api('GET', '/ping', key => $key->{token})), $before - 1,
    'and none of these has cost anything');
done($key, $reader);

# --- the limit -----------------------------------------------------------------------------------

$began = time;
$key   = drain(fresh(), 1);
my $read = sub { api('GET', '/ping', key => $key->{token}) };
is_count(left($read->()), 0, 'the last token can be used');
$reply = limited($read);
is_error($reply, 429, 'rate_limited', 'one more request');
$is = standing($reply);
ok($is, 'has all the headers') or diag(explain($reply->{headers}));
is($is->{remaining}, 0, 'nothing is left');
like($reply->{headers}{'retry-after'}, qr/^[1-9]\d*\z/, 'Retry-After is a number of seconds');
cmp_ok($reply->{headers}{'retry-after'}, '<=', 60, 'until the token that the read needs');
is($is->{t}, $reply->{headers}{'retry-after'}, 't of RateLimit is the same number');
for (1 .. 5) {    # until no token has come back since the read that was refused
    limited($read);
    $reply = api('POST', '/mappings', key => $key->{token}, json => {});
    last if $read->()->{status} == 429;
}
cmp_ok($reply->{headers}{'retry-after'}, '>', 60, 'a write has to wait for two tokens');
cmp_ok($reply->{headers}{'retry-after'}, '<=', 120, 'and not longer');
$read->() for 1 .. 5;
cmp_ok(limited($read)->{headers}{'retry-after'}, '<=', 60,
    'refused requests cost nothing');
cmp_ok(standing(api('GET', '/ping', key => $key->{token}))->{reset}, '<=', time + BURST * 60 + 0.1,
    'and the bucket is full no later');
is(api('GET', '/health', key => $key->{token})->{status}, 200,
    'a request without a key is not limited');

# --- the order of checks -------------------------------------------------------------------------

limited($read);
unstored();
refused(api('POST', '/mappings', key => $key->{token}, idem => undef, body => 'x'), 429,
    'rate_limited', 'a write with other faults');
$idem = idem();
refused(
    api('POST', '/mappings', key => $key->{token}, idem => $idem,
        json => { storefront_product_id => $product, is_active => \0 }),
    429, 'rate_limited', 'a valid write'
);
is_error(api('GET', '/ping', key => $key->{token} =~ s/(?<=_).{10}(?=.{39}\z)/0123456789/r), 401,
    'unauthorized', 'a caller without the secret does not learn that the key is used up');
is_error(api('GET', '/nowhere', key => $key->{token}), 404, 'not_found', 'an unknown path');
$reader = drain(fresh('--scope', 'read'), 0);
is_error(limited(sub { api('GET', '/ping', key => $reader->{token}) }), 429, 'rate_limited',
    'a read-only key without tokens');
is_error(api('POST', '/mappings', key => $reader->{token}, json => {}), 403, 'insufficient_scope',
    'a write with it');
my $second = fresh();
$reply = api('POST', '/mappings', key => $second->{token}, idem => $idem,
    json => { storefront_product_id => $product, is_active => \0 });
is_answer($reply, 200, 'the Idempotency-Key of a refused request can be used');
is($reply->{headers}{'idempotent-replayed'}, undef, 'no answer was stored for it');
cmp_ok(left($reply), '==', BURST - 2, "another key of the shop has its own tokens");
my $other = new_shop();
is(left(api('GET', '/ping', key => $other->{token})), BURST - 1,
    'and so has a key of another shop');
done($key, $reader, $second);

# --- exact, over all processes -------------------------------------------------------------------

# Clients that each send until they are refused a few times; returns all statuses.
sub storm
{
    my ($clients, $send) = @_;
    return map { ref $_ eq 'ARRAY' ? @$_ : $_ } parallel(
        $clients,
        sub {
            my @statuses;
            while (@statuses < BURST + 5 && 5 > grep { $_ == 429 } @statuses) {
                push @statuses, $send->()->{status};
            }
            return \@statuses;
        }
    );
}

sub count { my ($status, @of) = @_; return scalar grep { $_ eq $status } @of }

# The number of processes that have answered so many requests since the access log had a given size.
sub servers_since
{
    my ($offset, $requests) = @_;
    my @lines;
    wait_for(sub {
        @lines = split /\n/, substr MDL::Test::slurp(logs_dir() . '/access_log'), $offset;
        return @lines >= $requests;
    }, 60, "$requests lines of the log");
    my %seen = map { /(\d+)\z/ ? ($1 => 1) : () } @lines;
    return scalar keys %seen;
}

my (@statuses, $servers);
for (1 .. 5) {    # until the other process had its turn, too
    my $offset = -s logs_dir() . '/access_log';
    $key      = fresh();
    $began    = time;
    @statuses = storm(12, $read);
    is_count(count(200, @statuses), BURST,
        'of many reads at once exactly as many succeed as there are tokens');
    is(count(200, @statuses) + count(429, @statuses), @statuses, 'and the others get 429');
    done($key);
    $servers = servers_since($offset, scalar @statuses);
    last if $servers > 1;
}
cmp_ok($servers, '>', 1, 'more than one process has answered');

$key      = fresh();
$began    = time;
@statuses = storm(
    12,
    sub {
        api('POST', '/mappings', key => $key->{token},
            json => { storefront_product_id => $product, is_active => \1 });
    }
);
is_count(count(200, @statuses), BURST / 2, 'of many writes at once half as many succeed', 2);
done($key);

$key      = fresh();
$began    = time;
@statuses = parallel(BURST + 20, sub { $read->()->{status} });
is_count(count(200, @statuses), BURST, 'the limit is exact if each client sends one request');
done($key);

# --- tokens come back ----------------------------------------------------------------------------

$server->stop;
$server->configure(extra => <<'END');
DownloadsRateLimit On
DownloadsRateBurst 4
DownloadsRateRefill 60
DownloadsRateReadCost 3
DownloadsRateWriteCost 4
END
$server->start;
my $ask = $read;
my $refused;
for (1 .. 20) {    # until none could come back before the second request
    $key   = fresh();
    $began = time;
    ($reply, $refused) = ($ask->(), $ask->());
    last if time - $began < 2;
    done($key);
}
$is = standing($reply);
is_deeply([ @$is{qw(limit remaining q w t)} ], [ 4, 1, 4, 4, 1 ],
    'burst, refill and costs can be configured') or diag(explain($reply->{headers}));
is_error($refused, 429, 'rate_limited', 'a request that costs more than what is left');
wait_for(sub { $ask->()->{status} == 200 }, 60, 'tokens to come back');
cmp_ok(ceil(time - $began), '>=', $refused->{headers}{'retry-after'},
    'tokens come back not much earlier than Retry-After says');
sleep limited($ask)->{headers}{'retry-after'};
is($ask->()->{status}, 200, 'and no later');

my %former = map { $_ => 1 } server_pids();
httpd_graceful();
wait_for(sub { !grep { $former{$_} } server_pids() }, 60, 'the former processes to end');
is(left(api('GET', '/ping', key => $key->{token})), 1, 'after a restart the bucket is full');

# --- Off -----------------------------------------------------------------------------------------

$server->stop;
$server->configure(extra => "DownloadsRateLimit Off\nDownloadsRateBurst 1\n");
$server->start;
my @replies = map { api('GET', '/ping', key => $key->{token}) } 1 .. BURST + 10;
is(count(200, map { $_->{status} } @replies), BURST + 10, 'Off: there is no limit');
is(headers_of($replies[0]), '', 'and none of the headers');
is(api('POST', '/mappings', key => $key->{token}, json => { storefront_product_id => $product })
    ->{status}, 200, 'writes are not limited either');

done_testing();
