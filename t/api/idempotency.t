# Idempotency-Key (contract, section 3): which keys are valid, which requests are replayed or in
# conflict, and that no request takes effect twice, even if many come at once.
#
# both: keys are taken under other locks
use strict;
use warnings;

use Fcntl qw(:flock);
use IO::Select;
use MDL::Contract;
use MDL::Test;
use Socket qw(MSG_PEEK);
use Test::More;

my $shop  = new_shop();
my $token = $shop->{token};
my $url   = source("idempotency-$$.txt", "once\n");

sub mapping { my (%with) = @_; return api('POST', '/mappings', key => $token, %with) }
sub replayed { my ($reply) = @_; return $reply->{headers}{'idempotent-replayed'} }

# Checks that an answer is a replay of the first one.
sub is_replay
{
    my ($reply, $first, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_answer($reply, $first->{status}, $name);
    is($reply->{body}, $first->{body}, "$name: the same bytes");
    is($reply->{headers}{location}, $first->{headers}{location}, "$name: the same Location");
    is($reply->{headers}{'content-type'}, $first->{headers}{'content-type'},
        "$name: the same Content-Type");
    is(replayed($reply), 'true', "$name: Idempotent-Replayed");
    return isnt($reply->{headers}{'x-request-id'}, $first->{headers}{'x-request-id'},
        "$name: a new request id");
}

# --- which keys are valid ------------------------------------------------------------------------

unstored();
for my $path ('/assets', '/mappings', '/orders/1/assignments') {
    refused(api('POST', $path, key => $token, idem => undef, json => {}), 400,
        'idempotency_key_required', "POST $path without Idempotency-Key");
}
refused(mapping(idem => $_, json => { storefront_product_id => product() }), 400,
    'idempotency_key_invalid', length($_) . ' bytes')
    for '', 'k' x 256;

my $long = substr idem() . 'k' x 255, 0, 255;
my $word = idem();
for my $key ('x', '~', $long, join('', map { chr } 0x20 .. 0x7e) =~ s/^ //r, $word, qq("$word"),
    uc $word,
    'two words, and a comma', "a\ttab") {
    my $name = length $key > 60 ? length($key) . ' bytes' : "the key $key" =~ s/\t/\\t/r;
    my $with = { storefront_product_id => product() };
    my $first = mapping(idem => $key, json => $with);
    is_answer($first, 201, $name);
    is(replayed($first), undef, "$name: the first answer is not a replay");
    is_replay(mapping(idem => $key, json => $with), $first, $name);
    my $other = substr($key, 0, -1) . ($key =~ /z\z/ ? 'y' : 'z');
    is(replayed(mapping(idem => $other, json => $with)), undef,
        "$name: another last byte makes another key");
}

# Headers that HTTP::Tiny does not send.
sub sent_with
{
    my (@keys) = @_;
    my $json = sprintf '{"storefront_product_id":"%s"}', shift @keys;
    return parse_reply(raw(join "\r\n", 'POST /api/v1/mappings HTTP/1.1', 'Host: localhost',
        "Authorization: Bearer $token", (map { "Idempotency-Key: $_" } @keys),
        'Content-Type: application/json', 'Content-Length: ' . length $json, 'Connection: close',
        '', $json));
}
my $product = product();
my $first   = sent_with($product, 'one', 'another');
is_answer($first, 201, 'two headers');
is_replay(sent_with($product, 'one, another'), $first, 'two headers are one, joined by a comma');
unstored();
refused(sent_with(product(), "\xc3\xa9" x 128), 400, 'idempotency_key_invalid',
    '256 bytes of UTF-8');
for my $key ("caf\xc3\xa9", "caf\xe9") {
    $product = product();
    $first   = sent_with($product, $key);
    is_answer($first, 201, sprintf 'bytes beyond ASCII, %vx', $key);
    is_replay(sent_with($product, $key), $first, sprintf 'bytes beyond ASCII, %vx', $key);
}

# --- which requests are the same -----------------------------------------------------------------

my $key   = idem('asset');
my $asset = api('POST', '/assets', key => $token, idem => $key, json => { source_url => $url });
is_answer($asset, 202, 'an import');
wait_job($shop, $asset->{json}{job}{id});
my $before = stored();
is_replay(api('POST', '/assets', key => $token, idem => $key, json => { source_url => $url }),
    $asset, 'an import, requested again after its end');
is(stored(), $before, 'a replay stores nothing');

$product = product();
my $spelling = qq({"storefront_product_id":"$product","is_active":true,"file_ids":[]});
$key   = idem('spelling');
$first = mapping(idem => $key, body => $spelling);
is_answer($first, 201, 'a mapping');
is_replay(mapping(idem => $key, body => $_), $first, 'the same JSON written differently') for (
    qq({"file_ids":[],"is_active":true,"storefront_product_id":"$product"}),
    qq( {\n  "storefront_product_id" : "$product",\r\n\t"is_active": true , "file_ids": [ ] }\n),
    qq({"storefront_product_id":"\\u0067id:\\/\\/) . substr($product, 6)
        . qq(","is_active":true,"file_ids":[]}),
);
$before = stored();
is_error(mapping(idem => $key, body => $_), 409, 'idempotency_conflict', "another body, $_") for (
    qq({"storefront_product_id":"$product","is_active":true}),
    qq({"storefront_product_id":"$product","is_active":true,"file_ids":[],"access_days":null}),
    qq({"storefront_product_id":"$product","is_active":false,"file_ids":[]}),
    qq({"storefront_product_id":"$product","is_active":true,"file_ids":[],"content":"live"}),
    qq({"storefront_product_id":"${product}0","is_active":true,"file_ids":[]}),
);
is(stored(), $before, 'a conflict stores nothing');
is_replay(mapping(idem => $key, body => $spelling), $first, 'after a conflict');

# The order of a list matters.
$key = idem('order');
my @variants = map { variant() } 1 .. 2;
my $listed   = { storefront_product_id => product(), storefront_variant_ids => [@variants] };
is_answer(mapping(idem => $key, json => $listed), 201, 'a mapping with two variants');
is_error(
    mapping(idem => $key, json => { %$listed, storefront_variant_ids => [ reverse @variants ] }),
    409, 'idempotency_conflict', 'a list in another order'
);

my $order   = digits();
my $served  = mapping_of($shop, [], is_active => JSON::PP::true());
my @request = ([ $served->{storefront_product_id} ], idem => idem('assign'));
$first = assign($shop, $order, @request);
is_answer($first, 201, 'an assignment');
is_error(assign($shop, digits(), @request), 409, 'idempotency_conflict',
    'the same body for another order');
is_replay(assign($shop, $order, @request), $first, 'the same assignment');
is_error(
    api('POST', '/mappings', key => $token, idem => $request[2],
        json => { storefront_product_id => $served->{storefront_product_id} }),
    409, 'idempotency_conflict', 'the key at another path'
);
is_replay(
    api('POST', "/orders/$order/assignments?x=1", key => $token, idem => $request[2],
        json => { storefront_customer_id => '77', items =>
            [ { storefront_product_id => $served->{storefront_product_id} } ] }),
    $first, 'a query, which writes ignore'
);

# --- shops and API keys --------------------------------------------------------------------------

my $other = new_shop();
$key = idem('shared');
my $shared = { storefront_product_id => product() };
my ($mine, $theirs) =
    map { api('POST', '/mappings', key => $_->{token}, idem => $key, json => $shared) }
    $shop, $other;
is_answer($mine,   201, 'a key');
is_answer($theirs, 201, 'the same key of another shop');
is(replayed($theirs), undef, 'is another key');
isnt($theirs->{json}{id}, $mine->{json}{id}, 'and has its own effect');
my (undef, $second) = ctl('key', 'create', $shop->{shop_id}, 'second');
is_replay(api('POST', '/mappings', key => $second->{token}, idem => $key, json => $shared), $mine,
    "the shop's other API key");

# --- a refused request does not use up the key ---------------------------------------------------

$key = idem('free');
my $late = product();
is_error(assign($shop, '4', [$late], idem => $key), 422, 'product_not_mapped',
    'a product that is not mapped yet', '/items/0/storefront_product_id');
is_error(api('POST', '/orders/4/assignments', key => $token, idem => $key, json => { items => 5 }),
    400, 'invalid_request', 'an invalid body with that key gets its own error', '/items');
is_answer(mapping(json => { storefront_product_id => $late }), 201, 'the product is mapped');
my $at_last = assign($shop, '4', [$late], idem => $key);
is_answer($at_last, 201, 'then the same request succeeds');
is(replayed($at_last), undef, 'and is not a replay');
is_replay(assign($shop, '4', [$late], idem => $key), $at_last, 'the next one is');

# --- keys expire after a day ---------------------------------------------------------------------

my %forgotten = (
    mapping => [ '/mappings', { storefront_product_id => product() } ],
    assign  => [ '/orders/5/assignments',
        { storefront_customer_id => '1', send_email => JSON::PP::true(),
        customer => { email => "forgotten-$$\@buyer.example" },
        items    => [ { storefront_product_id => $late } ] } ],
);
for my $what (sort keys %forgotten) {
    my ($path, $json) = @{ $forgotten{$what} };
    my @same = ('POST', $path, key => $token, idem => idem('forgotten'), json => $json);
    is_answer(api(@same), 201, "$what, first");
    sql("UPDATE idempotency SET created_at = created_at - 86401000000 "
        . "WHERE shop_id = $shop->{shop_id}");
    my $count = stored() =~ s/ idempotency=\d+//r;
    my $again = api(@same);
    is_answer($again, 200, "$what, a day later: nothing was created");
    is(replayed($again), undef, "$what, a day later: it is not a replay");
    is(stored() =~ s/ idempotency=\d+//r, $count, "$what, a day later: nothing is stored twice");
    is(replayed(api(@same)), 'true', "$what: the new answer is replayed from then on");
}
wait_mail("forgotten-$$\@buyer.example");
is(scalar mails("forgotten-$$\@buyer.example"), 1, 'an email was sent once');

$key = idem('reused');
is_answer(mapping(idem => $key, json => { storefront_product_id => product() }), 201, 'a key');
sql("UPDATE idempotency SET created_at = created_at - 86401000000 "
    . "WHERE shop_id = $shop->{shop_id}");
is_answer(mapping(idem => $key, json => { storefront_product_id => product() }), 201,
    'a day later another request may use it');

# --- many at once --------------------------------------------------------------------------------

# The number of processes that answered, by the last field of the access log's lines.
sub processes_since
{
    my ($offset, $uri, $count) = @_;
    my @lines = @{
        wait_for(sub {
            open my $in, '<', logs_dir() . '/access_log' or die "access_log: $!";
            seek $in, $offset, 0;
            my @found = grep { index($_, "\"POST $uri HTTP") >= 0 } <$in>;
            return @found >= $count ? \@found : undef;
        }, 60, 'the lines of the access log')
    };
    my %seen = map { /(\d+)$/ ? ($1 => 1) : () } @lines;
    return scalar keys %seen;
}

sub rows { my ($from) = @_; my ($row) = sql("SELECT count(*) FROM $from"); return $row->[0] }

# Holds up all writes; returns a function that lets them go on.
sub hold_writes
{
    if (database() eq 'pgsql') {
        open my $psql, '|-', MDL::Database::psql(), MDL::Database::patient(), '-qAtX'
            or die "psql: $!";
        $psql->autoflush;
        print $psql "BEGIN; LOCK TABLE idempotency IN SHARE ROW EXCLUSIVE MODE;\n";
        wait_for(sub {
            my ($row) = sql(
                "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE"
                . " c.relname = 'idempotency' AND l.mode = 'ShareRowExclusiveLock' AND l.granted"
                . ' AND l.database = (SELECT oid FROM pg_database '
                . 'WHERE datname = current_database())');
            $row->[0];
        }, 60, 'the lock');
        return sub { print $psql "COMMIT;\n"; close $psql };
    }
    my $path = MDL::Test::vars()->{db_params} . '-writer';
    open my $file, '+<', $path or die "$path: $!";
    flock $file, LOCK_EX or die "$path: $!";
    return sub { close $file };
}

# How many of httpd's processes have accepted connections.
sub busy_processes
{
    my $port = sprintf ':%04X', port();
    my %accepted = map { /^\s*\d+: \w+$port \S+ 01 (?:\S+\s+){5}(\d+)/ ? ("socket:[$1]" => 1) : () }
        split /\n/, MDL::Test::slurp('/proc/net/tcp');
    return scalar grep {
        grep { $accepted{ readlink($_) // '' } } glob "/proc/$_/fd/*";
    } server_pids();
}

# Sends the $n requests that $request describes, and holds up every write until all have been sent,
# to more than one process. Returns the parts of each answer in which replays may differ.
sub all_at_once
{
    my ($n, $request) = @_;
    my $release;
    my $begun = sub {
        wait_for(sub { busy_processes() > 1 }, 60, 'several processes to take requests');
        $release = hold_writes();
    };
    my $complete = sub {
        my @answers = map { recv($_, my $bytes, 65_536, MSG_PEEK); $bytes }
            IO::Select->new(@_)->can_read(0);
        # Only those that have waited for too long.
        is_deeply([ grep { !m{^HTTP/1\.1 (?:408|409|503) } } @answers ], [],
            "$n requests are under way at once");
        $release->();
    };
    my @replies = api_at_once({ begun => $begun, complete => $complete },
        map { $request->($_) } 1 .. $n);
    return map { +{
        status   => $_->{status},
        body     => $_->{body},
        location => $_->{headers}{location},
        replayed => replayed($_),
        $_->{status} ? () : (died => 'no answer'),
    } } @replies;
}

sub assignment_of
{
    my ($order, $product, $to, %more) = @_;
    return [ 'POST', "/orders/$order/assignments", %more, json => {
        storefront_customer_id => '77',
        items      => [ { storefront_product_id => $product } ],
        send_email => JSON::PP::true(),
        customer   => { email => $to },
    } ];
}

sub different
{
    my ($member, @replies) = @_;
    my %seen = map { ($_->{$member} // 'none') => 1 } @replies;
    return join "\n", sort keys %seen;
}

sub are_one
{
    my ($name, $status, @replies) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(different('died', @replies), 'none', "$name: every client got an answer");
    is(different('status', @replies), $status, "$name: every answer is $status");
    unlike(different('body', @replies), qr/\n/, "$name: the answers are equal, byte for byte");
    unlike(different('location', @replies), qr/\n/, "$name: so is their Location");
    return is(scalar(grep { ($_->{replayed} // '') ne 'true' } @replies), 1,
        "$name: all but one are replays");
}

my $crowd  = new_shop();
my $log    = -s logs_dir() . '/access_log';
my $import = source("crowd-$$.txt", "for everybody\n");
$key = idem('crowd');
my @answers = all_at_once(200, sub {
    [ 'POST', '/assets', key => $crowd->{token}, idem => $key, json => { source_url => $import } ]
});
are_one('200 imports with one key', 202, @answers);
cmp_ok(processes_since($log, '/api/v1/assets', 200), '>', 1, 'several processes took part');
is(rows("asset WHERE shop_id = $crowd->{shop_id}"), 1, 'there is one asset');
is(rows("job WHERE shop_id = $crowd->{shop_id}"),   1, 'there is one job');
my $one = JSON::PP->new->utf8->decode($answers[0]{body});
is_shape($one->{asset}, 'asset', 'the asset');
my $job = wait_job($crowd, $one->{job}{id});
is($job->{status}, 'succeeded', 'the job succeeds');
is($job->{attempts}, 1, 'at its first attempt');

my $sold  = mapping_of($crowd, [ $one->{asset}{id} ]);
my $customer = "crowd-$$\@buyer.example";
$log = -s logs_dir() . '/access_log';
$key = idem('crowd');
@answers = all_at_once(200, sub {
    assignment_of('9', $sold->{storefront_product_id}, $customer, key => $crowd->{token},
        idem => $key)
});
are_one('200 assignments with one key', 201, @answers);
cmp_ok(processes_since($log, '/api/v1/orders/9/assignments', 200), '>', 1,
    'several processes took part');
wait_for(sub {
    api('GET', '/orders/9', key => $crowd->{token})->{json}{email}{status} eq 'sent'
}, 60, 'the email to be sent');
is(scalar mails($customer), 1, 'one email was sent');
is(rows("$_ WHERE shop_id = $crowd->{shop_id}"), 1, "there is one row in table $_")
    for qw(customer orders email);
is(rows("assignment a JOIN orders o ON o.id = a.order_id WHERE o.shop_id = $crowd->{shop_id}"), 1,
    'and one assignment');
is(rows("job WHERE shop_id = $crowd->{shop_id} AND type = 'email'"), 1,
    'and one job for the email');

# Without a common Idempotency-Key, unique constraints prevent duplicates.
$customer   = "natural-$$\@buyer.example";
@answers = all_at_once(40, sub {
    assignment_of('10', $sold->{storefront_product_id}, $customer, key => $crowd->{token})
});
is(different('died', @answers), 'none', '40 assignments with 40 keys: every client got an answer');
is(scalar(grep { $_->{status} == 201 } @answers), 1,  'one of them created something');
is(scalar(grep { $_->{status} == 200 } @answers), 39, 'the others find it there');
wait_mail($customer);
is(rows("email e JOIN orders o ON o.id = e.order_id WHERE o.shop_id = $crowd->{shop_id}"
    . " AND o.storefront_order_id = '10'"), 1, 'one email was queued');

my $target = product();
@answers = all_at_once(40, sub {
    [ 'POST', '/mappings', key => $crowd->{token},
        json => { storefront_product_id => $target, file_ids => [ $one->{asset}{id} ] } ]
});
is(different('died', @answers), 'none', '40 mappings with 40 keys: every client got an answer');
is(scalar(grep { $_->{status} == 201 } @answers), 1, 'one of them created it');
is(rows("mapping WHERE shop_id = $crowd->{shop_id} AND storefront_product_id = '$target'"), 1,
    'there is one mapping');

# Different requests with one key: one succeeds.
$key = idem('race');
@answers = all_at_once(40, sub {
    my ($i) = @_;
    [ 'POST', '/mappings', key => $crowd->{token}, idem => $key,
        json => { storefront_product_id => "gid://storefront/Product/900000$i" } ]
});
is(scalar(grep { $_->{status} == 201 } @answers), 1, '40 mappings with one key: one is created');
is(scalar(grep { $_->{status} == 409 && $_->{body} =~ /"idempotency_conflict"/ } @answers), 39,
    'the others are in conflict');
is(rows("mapping WHERE shop_id = $crowd->{shop_id} AND storefront_product_id LIKE '%/900000%'"), 1,
    'and store nothing');

# A request that succeeded is replayed even if it would be refused now.
my @before = ($crowd, '11', [ $sold->{storefront_product_id} ]);
$key = idem('before');
my $original = assign(@before, idem => $key);
is($original->{status}, 201, 'an order is assigned');
sql("UPDATE orders SET access_status = 'revoked' WHERE shop_id = $crowd->{shop_id}"
    . " AND storefront_order_id = '11'");
my $repeated = assign(@before, idem => $key);
is($repeated->{status}, 201, 'after the order is revoked the same request is replayed');
is($repeated->{body}, $original->{body}, 'with the same body');
is($repeated->{headers}{'idempotent-replayed'}, 'true', 'and marked as a replay');
is_error(assign(@before), 409, 'access_revoked', 'another request is refused');

done_testing();
