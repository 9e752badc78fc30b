# License keys (contract, section 6): /license-key-tags and the keys in them. How orders get keys
# when they are assigned is tested in t/api/license_orders.t.
#
# once: openapi.t makes each of these requests on both databases, license_orders.t gives keys there
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());
my $NOT_FOUND = 'There is no such license key tag.';

my $shop  = new_shop();
my $other = new_shop();

sub call
{
    my ($method, $path, %opt) = @_;
    my $of = delete $opt{of} // $shop;
    return api($method, "/license-key-tags$path", key => $of->{token}, timeout => 300, %opt);
}

sub tag
{
    my (%members) = @_;
    my $reply = call('POST', '', json => { name => 'A tag', %members });
    die "the tag was answered with: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

my (%known, %keys);    # by tag: its keys, and the same in the order in which they came

sub add
{
    my ($id, $keys, %opt) = @_;
    my $reply = call('POST', "/$id/keys", json => { keys => $keys }, %opt);
    push @{ $keys{$id} }, grep { !$known{$id}{$_}++ } @$keys;
    return $reply;
}

# Keys that an order gets of a tag.
sub bought
{
    my ($id, $quantity) = @_;
    my $mapping = mapping_of($shop, [], license_key_tag_ids => [$id]);
    my $order   = api('POST', '/orders/' . digits() . '/assignments', key => $shop->{token},
        timeout => 300, json => {
        storefront_customer_id => '77',
        items => [ { storefront_product_id => $mapping->{storefront_product_id},
            quantity => $quantity } ],
    });
    return @{ $order->{json}{assignments}[0]{license_keys} };
}

# Checks a tag's counts, in the API's answer and in the database.
sub is_stock
{
    my ($id, $available, $assigned, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $json = call('GET', "/$id")->{json};
    my ($counted) = sql(
        'SELECT sum(CASE WHEN assignment_id IS NULL THEN 1 ELSE 0 END), count(assignment_id)'
        . " FROM license_key WHERE tag_id = $id");
    return is("$json->{available} $json->{assigned}", "$available $assigned", $name)
        && is(join(' ', map { $_ || 0 } @$counted), "$available $assigned",
            "$name: the database has the same counts");
}

# --- tags ----------------------------------------------------------------------------------------

my $made = call('POST', '', json => { name => 'Photo editor 3' });
is_answer($made, 201, 'a tag is created');
my $tag = $made->{json};
is_shape($tag, 'license_key_tag', 'the tag');
is_deeply([ @$tag{qw(name available assigned low_stock_threshold)} ],
    [ 'Photo editor 3', 0, 0, undef ], 'it has no keys and no threshold');
like($made->{headers}{location}, qr{/api/v1/license-key-tags/$tag->{id}\z}, 'Location names it');
my $read = call('GET', "/$tag->{id}");
is_answer($read, 200, 'it can be read');
is_deeply($read->{json}, $tag, 'as it was created');

my $full = tag(name => 'N' x 255, low_stock_threshold => 1_000_000_000);
is($full->{name}, 'N' x 255, 'a name of 255 bytes');
is($full->{low_stock_threshold}, 1_000_000_000, 'the largest threshold');
is(tag(low_stock_threshold => 0)->{low_stock_threshold}, 0, 'the smallest threshold');
is(tag(name => $tag->{name})->{name}, $tag->{name}, 'two tags may have the same name');

my $idem = idem();
my @twice = map { call('POST', '', json => { name => 'Once' }, idem => $idem) } 1, 2;
is($twice[1]{body}, $twice[0]{body}, 'a replay answers the same tag');
is($twice[1]{headers}{'idempotent-replayed'}, 'true', 'and is marked as a replay');

unstored();
refused(call('POST', '', json => {}), 400, 'invalid_request', 'no name', '/name');
for (
    [ 'an empty name'               => { name => '' },               '/name' ],
    [ 'a name of 256 bytes'         => { name => 'N' x 256 },        '/name' ],
    [ 'a name with a line feed'     => { name => "a\nb" },           '/name' ],
    [ 'a name that is a number'     => { name => 7 },                '/name' ],
    [ 'a threshold below 0'         => { low_stock_threshold => -1 }, '/low_stock_threshold' ],
    [ 'a threshold that is too large'   => { low_stock_threshold => 1_000_000_001 },
        '/low_stock_threshold' ],
    [ 'a threshold that is text'    => { low_stock_threshold => '5' }, '/low_stock_threshold' ],
    [ 'a member that is not known'  => { threshold => 5 },           '/threshold' ],
    [ 'several faults'              => { name => '', available => 5, low_stock_threshold => 0.5 },
        '/name', '/available', '/low_stock_threshold' ],
) {
    my ($name, $members, @pointers) = @$_;
    refused(call('POST', '', json => { name => 'A tag', %$members }), 400, 'invalid_request', $name,
        @pointers);
    refused(call('PATCH', "/$tag->{id}", json => $members), 400, 'invalid_request',
        "$name in a change", @pointers);
}
refused(call('PATCH', "/$tag->{id}", json => { name => undef }), 400, 'invalid_request',
    'a name can not be cleared', '/name');

# --- changing ------------------------------------------------------------------------------------

my $change = call('PATCH', "/$tag->{id}", json => { name => 'Photo editor 4' });
is_answer($change, 200, 'a new name');
is_shape($change->{json}, 'license_key_tag', 'the changed tag');
is_deeply([ @{ $change->{json} }{qw(id name low_stock_threshold created_at)} ],
    [ $tag->{id}, 'Photo editor 4', undef, $tag->{created_at} ], 'changes nothing else');
cmp_ok($change->{json}{updated_at}, 'gt', $tag->{updated_at}, 'but updated_at');
$tag = call('PATCH', "/$tag->{id}", json => { low_stock_threshold => 5 })->{json};
is("$tag->{name} $tag->{low_stock_threshold}", 'Photo editor 4 5',
    'a new threshold leaves the name');
my $empty = call('PATCH', "/$tag->{id}", json => {});
is_answer($empty, 200, 'a change of nothing');
is_deeply($empty->{json}, $tag, 'changes nothing, not even updated_at');
$tag = call('PATCH', "/$tag->{id}", json => { low_stock_threshold => undef })->{json};
is($tag->{low_stock_threshold}, undef, 'null clears the threshold');

# --- the list ------------------------------------------------------------------------------------

my $lister = new_shop();
is_deeply(call('GET', '', of => $lister)->{json},
    { data => [], has_more => $false, next_cursor => undef },
    'a shop without tags has an empty list');
my @listed = map { call('POST', '', of => $lister, json => { name => "Tag $_" })->{json} } 1 .. 3;
my $page = call('GET', '?limit=2', of => $lister);
is_answer($page, 200, 'a page');
is_shape($page->{json}, 'license_key_tags', 'the page');
is_deeply($page->{json}{data}, [ @listed[ 2, 1 ] ], 'newest first');
is($page->{json}{has_more}, $true, 'there is more');
call('POST', '', of => $lister, json => { name => 'Meanwhile' });
$page = call('GET', "?limit=2&cursor=$page->{json}{next_cursor}", of => $lister);
is_deeply($page->{json}, { data => [ $listed[0] ], has_more => $false, next_cursor => undef },
    'the next page has the rest, without the tag that was added meanwhile');
is_error(call('GET', '?name=x'), 400, 'invalid_request', 'an unknown filter', '/name');

# --- other shops' tags and unknown ones ----------------------------------------------------------

unstored();
for (
    [ 'reading'  => 'GET',    '' ],
    [ 'changing' => 'PATCH',  '', json => { name => 'Mine' } ],
    [ 'deleting' => 'DELETE', '' ],
    [ 'adding'   => 'POST',   '/keys', json => { keys => ['A'] } ],
) {
    my ($name, $method, $path, %opt) = @$_;
    my @bodies;
    for my $id ($tag->{id}, 9007199254740991, 'x', 0) {
        my $reply = call($method, "/$id$path", of => $other, %opt);
        refused($reply, 404, 'license_key_tag_not_found', "$name $id");
        push @bodies, $reply->{body} =~ s/req_[\w@-]+/req/r;
    }
    is(scalar(grep { $_ ne $bodies[0] } @bodies), 0,
        "$name another shop's tag and an unknown one: the same bytes");
    like($bodies[0], qr/"message":"\Q$NOT_FOUND\E"/, "$name: the message");
}

# --- adding keys ---------------------------------------------------------------------------------

my $added = add($tag->{id}, [ 'AAAA-1', 'AAAA-2', 'AAAA-1' ]);
is_answer($added, 200, 'keys are added');
is_shape($added->{json}, 'license_keys_added', 'the answer');
is_deeply($added->{json}, { added => 2, duplicates => 1, handed_out => 0 },
    'a key that is in the request twice is added once');
is_stock($tag->{id}, 2, 0, 'the tag has them');
is_deeply(add($tag->{id}, [ 'AAAA-2', 'aaaa-2', 'AAAA-3' ])->{json},
    { added => 2, duplicates => 1, handed_out => 0 },
    'an existing key is not added again; keys are case-sensitive');
is_stock($tag->{id}, 4, 0, 'the tag has four');
is(call('GET', "/$tag->{id}")->{json}{updated_at}, $tag->{updated_at},
    'adding keys does not change updated_at of the tag');
my $second = tag();
is_deeply(add($second->{id}, ['AAAA-2'])->{json}, { added => 1, duplicates => 0, handed_out => 0 },
    'the same key in another tag is another key');
$idem = idem();
@twice = map { add($second->{id}, [ 'R-1', 'R-2' ], idem => $idem) } 1, 2;
is($twice[1]{body}, '{"added":2,"duplicates":0,"handed_out":0}', 'a replay has the first answer');
is($twice[1]{headers}{'idempotent-replayed'}, 'true', 'and is marked as a replay');
is_stock($second->{id}, 3, 0, 'and adds nothing');

my @odd = ('K', "caf\xe9 \x{4e2d}", 'with "quotes" \\ and \'', '[1]', '%s {{x}}', 'K' x 512,
    "\x{1f600}" x 256);
is_deeply(add($second->{id}, \@odd)->{json}, { added => 7, duplicates => 0, handed_out => 0 },
    'keys with any characters are added');
is_deeply(add($second->{id}, \@odd)->{json}, { added => 0, duplicates => 7, handed_out => 0 },
    'are duplicates when they come again');
is_deeply([ (bought($second->{id}, 10))[ 3 .. 9 ] ], \@odd, 'and are given away unchanged');

# A spreadsheet, an editor or a web page leaves there what nobody sees: sold twice it would be one
# key.
my $pasted = tag(name => "\x{feff}Pasted \x{200b}");
is($pasted->{name}, 'Pasted', 'the name of a tag has no unseen edges');
is_deeply(add($pasted->{id},
    [ 'AAAA-1111', 'AAAA-1111 ', "\x{feff}AAAA-1111", "AAAA-1111\r\n", "\t\xa0AAAA-1111\x{3000}",
    "AAAA-1111\x{200b}\x{2060}", "\x{200e}AAAA-1111\x{2028}", "AAAA-1111\x{85}",
    "AA\x{a0}\x{200b}BB" ])->{json},
    { added => 2, duplicates => 7, handed_out => 0 },
    'nor has a key: what differs in that alone is one key');
is_deeply([ bought($pasted->{id}, 2) ], [ 'AAAA-1111', "AA\x{a0}\x{200b}BB" ],
    'which is given away without them');

unstored();
for (
    [ 'no keys'                 => {},                          '/keys' ],
    [ 'an empty list'           => { keys => [] },              '/keys' ],
    [ 'a key without a list'    => { keys => 'A' },             '/keys' ],
    [ '10,001 keys'             => { keys => [ 1 .. 10_001 ] }, '/keys' ],
    [ 'invalid keys'            => { keys => [ 'A', '', undef, 5, ['A'], 'K' x 513, "A\tB",
        "\x{1f600}" x 257 ] },
        map { "/keys/$_" } 1 .. 7 ],
    [ 'keys of blanks alone'    => { keys => [ ' A ', ' ', "\x{a0}\x{200b}\n" ] }, '/keys/1',
        '/keys/2' ],
    [ 'an unknown member'       => { keys => ['A'], tag => 1 }, '/tag' ],
) {
    my ($name, $members, @pointers) = @$_;
    refused(call('POST', "/$tag->{id}/keys", json => $members), 400, 'invalid_request', $name,
        @pointers);
}
refused(call('POST', "/$tag->{id}/keys", body => '{"keys":["' . 'K' x (8 << 20) . '"]}'),
    413, 'request_too_large', 'a body over 8 MiB');

# --- keys that are made --------------------------------------------------------------------------

sub generate
{
    my ($id, $pattern, $count, %opt) = @_;
    return call('POST', "/$id/generate", json => { pattern => $pattern, count => $count }, %opt);
}

my $made_by = tag(name => 'Made');
$idem = idem();
my $generated = generate($made_by->{id}, 'AB-***-***-##-??', 300, idem => $idem);
is_answer($generated, 200, 'keys are made');
is_shape($generated->{json}, 'license_keys_added', 'the answer');
is_deeply($generated->{json}, { added => 300, duplicates => 0, handed_out => 0 }, 'all of them');
is(generate($made_by->{id}, 'AB-***-***-##-??', 300, idem => $idem)->{body}, $generated->{body},
    'a replay has the first answer');
is_stock($made_by->{id}, 300, 0, 'and makes none');
my @three = bought($made_by->{id}, 300);
my $LETTER = '[A-HJ-NP-Z]';
my $EITHER = '[A-HJ-NP-Z2-9]';
is_deeply([ grep { !/^AB-$EITHER{3}-$EITHER{3}-[2-9]{2}-$LETTER{2}\z/ } @three ], [],
    'they are of the pattern, without characters that look alike');
my %different = map { $_ => 1 } @three;
is(scalar keys %different, 300, 'and different');
is_deeply(generate($made_by->{id}, '**********', 10_000)->{json},
    { added => 10_000, duplicates => 0, handed_out => 0 }, '10,000 keys at once');

unstored();
for (
    [ 'no pattern' => { count => 5 }, '/pattern' ],
    [ 'no number'  => { pattern => '**********' }, '/count' ],
    [ 'a number of 0'  => { pattern => '**********', count => 0 }, '/count' ],
    [ 'too many'   => { pattern => '**********', count => 10_001 }, '/count' ],
    [ 'a long pattern' => { pattern => '*' x 101, count => 1 }, '/pattern' ],
    [ 'a pattern with a line feed' => { pattern => "****\n*********", count => 1 }, '/pattern' ],
) {
    my ($name, $members, @pointers) = @$_;
    refused(call('POST', "/$made_by->{id}/generate", json => $members), 400, 'invalid_request',
        $name, @pointers);
}
my $weak = generate($second->{id}, 'ABCD-####-????', 2000);
refused($weak, 422, 'license_pattern_weak', 'a pattern whose keys could be guessed');
is($weak->{json}{error}{limit}, 1358, 'says for how many keys it is good');
refused(generate($second->{id}, 'ABCD', 1), 422, 'license_pattern_weak', 'a pattern of one key');
refused(generate($made_by->{id}, '******', 1), 422, 'license_pattern_weak',
    'one that is good for a smaller tag');

# --- ten thousand keys ---------------------------------------------------------------------------

sub timed
{
    my ($what, $do) = @_;
    my $began = time;
    my $reply = $do->();
    note(sprintf '%s: %.0f ms (%s)', $what, 1000 * (time - $began), database());
    return $reply;
}

my $bulk = tag(name => 'Bulk');
my @many = map { sprintf 'BULK-%s-%05d', 'x' x 490, $_ } 1 .. 10_000;
is_deeply(timed('10,000 keys of 500 bytes', sub { add($bulk->{id}, \@many) })->{json},
    { added => 10_000, duplicates => 0, handed_out => 0 }, '10,000 keys in one request');
is_stock($bulk->{id}, 10_000, 0, 'are all stored');
is_deeply(timed('the same once more', sub { add($bulk->{id}, \@many) })->{json},
    { added => 0, duplicates => 10_000, handed_out => 0 },
    'the second time they are all duplicates');
is_stock($bulk->{id}, 10_000, 0, 'and nothing is added');
is_deeply([ bought($bulk->{id}, 600) ], [ @many[ 0 .. 599 ] ],
    'they are given away in the order of the request');

# --- assignments that wait for keys --------------------------------------------------------------

# Inserts orders with one assignment each, which waits for $wanted keys of a tag; returns the
# assignments' ids, oldest first.
my $mapping = mapping_of($shop, []);
my $first   = assign($shop, digits(), [ $mapping->{storefront_product_id} ])->{json};
my $group   = 0;

sub waiting
{
    my ($tag_id, $orders, $wanted) = @_;
    my $mark = join '-', 'waiting', $$, ++$group;
    my ($from) = sql("SELECT customer_id, 900000000 + 100000 * $group FROM orders "
        . "WHERE shop_id = $shop->{shop_id} LIMIT 1");
    sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status,'
        . ' fraud_decision, created_at, updated_at)'
        . " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $orders)"
        . " SELECT $shop->{shop_id}, CAST($from->[1] + i AS TEXT), $from->[0], '$mark-' || i, "
        . "'active', 'passed', 1, 1 FROM n ORDER BY i");
    my $ours = "page_id LIKE '$mark-%'";
    sql('INSERT INTO assignment (order_id, storefront_product_id, storefront_variant_id, quantity, '
        . 'mapping_id,'
        . " content, status, created_at) SELECT id, 'gid://storefront/Product/1', '', $wanted, "
        . "$mapping->{id}, 'live', 'active', 1 FROM orders WHERE $ours ORDER BY id");
    my $assignments =
        "SELECT a.id FROM assignment a JOIN orders o ON o.id = a.order_id WHERE o.$ours";
    sql("INSERT INTO license_claim (assignment_id, tag_id, wanted, assigned) "
        . "SELECT id, $tag_id, $wanted, 0 FROM ($assignments) w");
    sql('ANALYZE');    # PostgreSQL does this by itself within a minute
    return map { $_->[0] } sql("$assignments ORDER BY a.id");
}

# The keys of a tag that each assignment has, oldest first, with a remark if the number in its claim
# differs.
sub given
{
    my ($tag_id, @assignments) = @_;
    my $list = join ', ', @assignments;
    my (%of, $n);
    push @{ $of{ $_->[0] // '' } }, $keys{$tag_id}[ $n++ ]
        for sql("SELECT assignment_id FROM license_key WHERE tag_id = $tag_id ORDER BY id");
    my %claimed = map { $_->[0] => $_->[1] }
        sql("SELECT assignment_id, assigned FROM license_claim WHERE tag_id = $tag_id "
            . "AND assignment_id IN ($list)");
    return map {
        my @own = @{ $of{$_} // [] };
        join('+', @own) . (@own == $claimed{$_} ? '' : " but the claim says $claimed{$_}")
    } @assignments;
}

sub events
{
    my ($assignment) = @_;
    return map { [ @$_[ 0 .. 2 ], decode_json($_->[3]) ] }
        sql('SELECT e.action, e.key_id, e.reason, e.details FROM order_timeline e '
            . 'JOIN assignment a ON a.order_id = e.order_id'
            . " WHERE a.id = $assignment ORDER BY e.id");
}

my $wanted = tag(name => 'Wanted');
my @waiting = waiting($wanted->{id}, 4, 2);
is_deeply(add($wanted->{id}, [qw(A B C D E)])->{json},
    { added => 5, duplicates => 0, handed_out => 5 },
    'five keys for four assignments that need two each');
is_deeply([ given($wanted->{id}, @waiting) ], [ 'A+B', 'C+D', 'E', '' ], 'go to the oldest first');
is_stock($wanted->{id}, 0, 5, 'and are counted as assigned');
is_deeply([ events($waiting[0]) ],
    [ [ 'license_keys_assigned', $shop->{key_id}, '', { license_keys => 2 } ] ],
    "the order's audit trail has the keys and who added them");
is_deeply([ events($waiting[2]) ],
    [ [ 'license_keys_assigned', $shop->{key_id}, '', { license_keys => 1 } ] ],
    'with the number that the order got');
is_deeply([ events($waiting[3]) ], [], 'an order that got none has no event');
my ($ids) = sql("SELECT e.assignment_ids FROM order_timeline e "
    . "JOIN assignment a ON a.order_id = e.order_id WHERE a.id = $waiting[0]");
is_deeply(decode_json($ids->[0]), [ $waiting[0] ], 'the event names the assignment');
add($wanted->{id}, [qw(A B C D E)]);
is_deeply([ given($wanted->{id}, @waiting) ], [ 'A+B', 'C+D', 'E', '' ],
    'adding the same keys again assigns nothing');
add($wanted->{id}, [qw(A F G H I J)]);
is_deeply([ given($wanted->{id}, @waiting) ], [ 'A+B', 'C+D', 'E+F', 'G+H' ],
    'more keys go to the assignments that still wait');
is_stock($wanted->{id}, 2, 8, 'the rest stays available');
is(scalar events($waiting[2]), 2, 'an order that got keys twice has two events');

my $scarce = tag(name => 'Scarce');
@waiting = waiting($scarce->{id}, 3, 1);
for my $keys (1 .. 3) {
    add($scarce->{id}, ["ONE-$keys"]);
    is_deeply([ given($scarce->{id}, @waiting) ], [ map { $_ <= $keys ? "ONE-$_" : '' } 1 .. 3 ],
        "keys that come one by one: $keys of three orders have theirs");
}

my $inactive = tag(name => 'Inactive');
@waiting = waiting($inactive->{id}, 4, 1);
sql("UPDATE orders SET access_status = 'revoked' WHERE id = (SELECT order_id FROM assignment "
    . "WHERE id = $waiting[0])");
sql("UPDATE orders SET access_status = 'held' WHERE id = (SELECT order_id FROM assignment "
    . "WHERE id = $waiting[1])");
sql("UPDATE assignment SET status = 'revoked' WHERE id = $waiting[2]");
add($inactive->{id}, [qw(A B)]);
is_deeply([ given($inactive->{id}, @waiting) ], [ '', '', '', 'A' ],
    'a revoked order, a held order and a revoked assignment get nothing');
is_stock($inactive->{id}, 1, 1, 'the remaining key stays available');

my $crowd = tag(name => 'Crowd');
@waiting = waiting($crowd->{id}, 10_000, 1);
my ($events_before) = map { $_->[0] } sql('SELECT count(*) FROM order_timeline');
@many = map { sprintf 'CROWD-%05d', $_ } 1 .. 10_000;
is_deeply(timed('10,000 keys for 10,000 waiting orders', sub { add($crowd->{id}, \@many) })->{json},
    { added => 10_000, duplicates => 0, handed_out => 10_000 },
    '10,000 keys for 10,000 waiting orders');
is_stock($crowd->{id}, 0, 10_000, 'are all assigned');
is_deeply([ given($crowd->{id}, @waiting) ], \@many, 'in the order of the assignments');
is((sql('SELECT count(*) FROM order_timeline'))[0][0] - $events_before, 10_000,
    'with one event each');

# --- deleting ------------------------------------------------------------------------------------

my $doomed = tag(name => 'Doomed');
add($doomed->{id}, [qw(A B)]);
my ($holder) = waiting($doomed->{id}, 1, 3);
sql("UPDATE license_claim SET assigned = 2 WHERE assignment_id = $holder");
sql("INSERT INTO mapping_license_key_tag (mapping_id, tag_id, position) "
    . "VALUES ($mapping->{id}, $doomed->{id}, 0)");
my ($order) = map { $_->[0] } sql("SELECT o.storefront_order_id FROM orders o "
    . "JOIN assignment a ON a.order_id = o.id WHERE a.id = $holder");
unstored();
my $held = call('DELETE', "/$doomed->{id}");
refused($held, 409, 'license_key_tag_in_use', 'a tag that is in use', "/mappings/$mapping->{id}",
    "/orders/$order");
is_deeply([ map { "$_->{code}: $_->{message}" } @{ $held->{json}{error}{details} } ],
    [ "held_by_mapping: Mapping $mapping->{id} holds this license key tag.",
      "held_by_order: Order $order waits for keys of this license key tag." ],
    'the details name the mapping and the order');
sql("DELETE FROM mapping_license_key_tag WHERE tag_id = $doomed->{id}");
unstored();
refused(call('DELETE', "/$doomed->{id}"), 409, 'license_key_tag_in_use',
    'a tag that an order waits for', "/orders/$order");
sql("UPDATE license_claim SET wanted = 2 WHERE assignment_id = $holder");
refused(call('DELETE', "/$doomed->{id}", json => { why => 1 }), 400, 'invalid_request',
    'a DELETE with a member', '/why');
$idem = idem();
my @gone = map { call('DELETE', "/$doomed->{id}", idem => $idem) } 1, 2;
is("$_->{status} $_->{body}", '204 ', 'a tag without references is deleted') for @gone;
is($gone[1]{headers}{'idempotent-replayed'}, 'true', 'the second answer is a replay');
for (
    [ 'read'      => 'GET',    '' ],
    [ 'changed'   => 'PATCH',  '', json => { name => 'Mine' } ],
    [ 'deleted'   => 'DELETE', '' ],
    [ 'filled up' => 'POST',   '/keys', json => { keys => ['C'] } ],
) {
    my ($name, $method, $path, %opt) = @$_;
    is_error(call($method, "/$doomed->{id}$path", %opt), 404, 'license_key_tag_not_found',
        "then it can't be $name");
}
is(scalar(grep { $_->{id} == $doomed->{id} } @{ call('GET', '')->{json}{data} }), 0, 'nor listed');
is((sql("SELECT count(*) FROM license_key WHERE tag_id = $doomed->{id}"))[0][0], 2,
    'its keys stay');

done_testing();
