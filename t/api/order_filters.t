# Finding orders in the API (contract, section 6): every filter of GET /orders, several together,
# their pages, and what they look at when hardly anything fits.
#
# both: the database filters
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop    = new_shop();
my $other   = new_shop();
my $file    = ready_asset($shop, "filters-$$.txt", "a file\n");
my @mapping = map { mapping_of($shop, [ $file->{id} ]) } 1 .. 2;
my ($book, $film) = map { $_->{storefront_product_id} } @mapping;
my $elsewhere = mapping_of($other, [], storefront_product_id => $book);

sub order
{
    my ($of, $number, $customer, $products, %more) = @_;
    my $reply = assign($of, $number, $products, storefront_customer_id => $customer, %more);
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

# The numbers of the orders that a query finds, page by page.
sub found
{
    my ($query, $of) = @_;
    my ($cursor, @found);
    for my $page (1 .. 200) {
        my $reply = api('GET', "/orders?$query" . (defined $cursor ? "&cursor=$cursor" : ''),
            key => ($of // $shop)->{token});
        is_answer($reply, 200, "orders?$query");
        is_shape($reply->{json}, 'orders', 'a page') if $page == 1;
        push @found, map { $_->{storefront_order_id} } @{ $reply->{json}{data} };
        $cursor = $reply->{json}{next_cursor} // return \@found;
    }
    die "orders?$query has no end\n";
}

order($shop, 101, '11', [$book], customer => { email => 'Ada@Example.com' });
order($shop, 102, '11', [ $book, $film ]);
order($shop, 103, '12', [$film], customer => { email => 'ada@example.com' });
order($shop, 104, '13', [$film], customer => { email => 'bob@example.com' },
    send_email => JSON::PP::true());
order($other, 901, '11', [$book], customer => { email => 'ada@example.com' });
api('POST', '/orders/102/revoke', key => $shop->{token}, json => {});
wait_for(sub { api('GET', '/orders/104', key => $shop->{token})->{json}{email}{status} eq 'sent' },
    60, 'the email');

# Times that lie apart, and the fates of emails.
my %at = map { $_ => sprintf '2026-01-%02dT12:00:00.000Z', $_ } 1 .. 31;
sub micros { my ($day) = @_; return (1767225600 + ($day - 1) * 86400 + 43200) . '000000' }
my %day = (101 => 1, 102 => 2, 103 => 3, 104 => 4);
sql("UPDATE orders SET created_at = " . micros($day{$_}) . ", updated_at = " . micros(20 - $day{$_})
        . " WHERE shop_id = $shop->{shop_id} AND storefront_order_id = '$_'") for keys %day;
order($shop, 105, '13', [$book], send_email => JSON::PP::true());
wait_for(sub { api('GET', '/orders/105', key => $shop->{token})->{json}{email}{status} eq 'sent' },
    60, 'the email');
sql("UPDATE email SET bounced_at = 1 WHERE order_id = (SELECT id FROM orders "
    . "WHERE shop_id = $shop->{shop_id} AND storefront_order_id = '104')");
sql("UPDATE orders SET created_at = " . micros(5) . ", updated_at = " . micros(15)
        . " WHERE shop_id = $shop->{shop_id} AND storefront_order_id = '105'");

for (
    [ '',                                     [qw(105 104 103 102 101)] ],
    [ 'status=revoked',                       ['102'] ],
    [ 'status=active',                        [qw(105 104 103 101)] ],
    [ 'status=held',                          [] ],
    [ 'customer=11',                          [qw(102 101)] ],
    [ 'customer=99',                          [] ],
    [ 'email=ADA%40example.com',              [qw(103 102 101)] ],
    [ 'email=nobody%40example.com',           [] ],
    [ 'email=ada%40example.com&customer=12',  ['103'] ],
    [ 'email=bob%40example.com&customer=12',  [] ],
    [ "storefront_product_id=$book",                        [qw(105 102 101)] ],
    [ "storefront_product_id=$film",                        [qw(104 103 102)] ],
    [ 'storefront_product_id=gid://storefront/Product/9',                      [] ],
    [ 'email_status=not_requested',           [qw(103 102 101)] ],
    [ 'email_status=bounced',                 ['104'] ],
    [ 'email_status=sent',                    ['105'] ],
    [ "created_since=$at{3}",                 [qw(105 104 103)] ],
    [ "created_before=$at{3}",                [qw(102 101)] ],
    [ "created_since=$at{2}&created_before=$at{4}", [qw(103 102)] ],
    [ "created_since=2026-01-03T13:00:00%2B01:00",  [qw(105 104 103)] ],
    [ "created_since=2026-01-03t12:00:00.000001z",  [qw(105 104)] ],
    [ "updated_since=$at{17}",                [qw(101 102 103)] ],
    [ "updated_since=$at{20}",                [] ],
    [ "updated_since=$at{15}&status=active",  [qw(101 103 104 105)] ],
    [ "updated_since=$at{15}&created_since=$at{3}", [qw(103 104 105)] ],
    [ "storefront_product_id=$film&status=active",          [qw(104 103)] ],
    [ "storefront_product_id=$film&customer=11",            ['102'] ],
    [ "status=revoked&created_before=$at{2}", [] ],
    [ "status=revoked&email_status=not_requested&storefront_product_id=$book&customer=11"
        . "&email=ada%40example.com&created_since=$at{2}&created_before=$at{3}"
        . "&updated_since=$at{18}", ['102'] ],
) {
    my ($query, $expected) = @$_;
    is_deeply(found($query), $expected, "orders?$query: those that fit");
    is_deeply(found("$query&limit=1"), $expected, 'one by one, too');
}
is_deeply(found('email=ada%40example.com', $other), ['901'], 'another shop finds its own');
is_deeply(found("storefront_product_id=$book", $other), ['901'],
    'also of a product that both have');

# --- what is no filter ---------------------------------------------------------------------------

for my $query ('status=open', 'email_status=lost', 'created_since=yesterday',
    'created_before=2026-02-30T00:00:00Z', 'updated_since=2026-01-01',
    'updated_since=2026-01-01T00:00:00', 'created_since=1969-12-31T23:59:59Z',
    'created_since=2026-01-01T24:00:00Z', 'created_since=2026-01-01T00:00:00.Z', 'customer=',
    'customer=x', 'customer=012', 'email=' . 'x' x 255, 'storefront_product_id=%01',
    'storefront_product_id=123')
{
    my ($name) = $query =~ /^(\w+)/;
    is_error(api('GET', "/orders?$query", key => $shop->{token}), 400, 'invalid_request', $query,
        "/$name");
}
my $cursor = api('GET', '/orders?status=active&limit=1', key => $shop->{token})
    ->{json}{next_cursor};
is_error(api('GET', "/orders?cursor=$cursor", key => $shop->{token}), 400, 'invalid_cursor',
    'a cursor without its filter');
is_error(api('GET', "/orders?status=revoked&limit=1&cursor=$cursor", key => $shop->{token}), 400,
    'invalid_cursor', 'a cursor of another one');

# --- many, of one moment -------------------------------------------------------------------------

my $moment = micros(10);
sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, '
        . 'fraud_decision, created_at, updated_at) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL '
        . 'SELECT i + 1 FROM n WHERE i < 2500) '
        . "SELECT c.shop_id, '77' || (10000 + i), c.id, 'filters' || i, 'active', 'not_checked', "
        . "$moment, $moment FROM n, customer c WHERE c.shop_id = $shop->{shop_id} "
        . "AND c.storefront_customer_id = '12'");
is_deeply(found('email_status=sent'), ['105'], 'what is behind thousands that do not fit is found');
is_deeply([ map { $_->{storefront_order_id} }
    @{ api('GET', '/orders?email_status=bounced', key => $shop->{token})->{json}{data} } ],
    ['104'], 'at once where an email has not arrived');
my $page = api('GET', '/orders?email_status=queued', key => $shop->{token});
is_deeply($page->{json}{data}, [], 'a page of them has none');
ok($page->{json}{has_more}, 'and says that there may be more');
my $all = found('customer=12&limit=100');
is(scalar(@$all), 2501, 'of one customer all are found');
is(scalar(keys %{ { map { $_ => 1 } @$all } }), 2501, 'and none twice');
is_deeply([ @$all[ 0, 1, -2, -1 ] ], [qw(7712500 7712499 7710001 103)],
    'in the order of time, then of their ids');
is(scalar(@{ found("updated_since=$at{10}&limit=100") }), 2505, 'so are those that were changed');

# --- emails that did not arrive, and another shop's orders of the same product -------------------

for (1 .. 2) {
    is(api('POST', '/orders/105/resend', key => $shop->{token}, json => {})->{status}, 202,
        'an email is sent again');
    wait_for(
        sub { api('GET', '/orders/105', key => $shop->{token})->{json}{email}{status} eq 'sent' },
        60, 'the email');
}
sub fail_emails
{
    my ($number, $which) = @_;
    return sql("UPDATE email SET status = 'failed', bounced_at = NULL "
        . "WHERE id IN (SELECT $which(e.id) FROM email e JOIN orders o ON o.id = e.order_id "
        . "WHERE o.shop_id = $shop->{shop_id} AND o.storefront_order_id = '$number' "
            . "GROUP BY e.order_id)");
}
fail_emails(105, 'min');
is_deeply(found('email_status=failed'), [],
    'an email that failed before another was sent does not count');
fail_emails(105, 'max');
fail_emails(104, 'max');
is_deeply(found('email_status=failed'), [qw(105 104)],
    'an order is found once, by its newest email');
is_deeply(found('email_status=failed&limit=1'), [qw(105 104)], 'one by one, too');
is_deeply(found("email_status=failed&storefront_product_id=$film"), ['104'], 'and by its product');

sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, '
        . 'fraud_decision, created_at, updated_at) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL '
        . 'SELECT i + 1 FROM n WHERE i < 1500) '
        . "SELECT shop_id, '88' || (10000 + i), customer_id, 'others' || i, 'active', "
        . "'not_checked', $moment, $moment FROM n, orders WHERE shop_id = $other->{shop_id} "
        . "AND storefront_order_id = '901'");
sql('INSERT INTO assignment (shop_id, order_id, storefront_product_id, storefront_variant_id, '
        . 'quantity, mapping_id, content, status, created_at) '
        . "SELECT shop_id, id, '$book', '', 1, $elsewhere->{id}, 'live', 'active', 1 FROM orders "
        . "WHERE page_id LIKE 'others%'");
my $ours = api('GET', "/orders?storefront_product_id=$book&status=active", key => $shop->{token})
    ->{json}{data};
is_deeply([ map { $_->{storefront_order_id} } @$ours ], [qw(105 101)],
    "another shop's orders of a product are not looked at");

# --- what may keep the customer from downloading -------------------------------------------------

sub of { my ($order) = @_; return "(SELECT id FROM orders WHERE shop_id = $shop->{shop_id} "
    . "AND storefront_order_id = '$order')" }

sub kept
{
    my ($attention, $expected, $name) = @_;
    for my $more ('', '&limit=1', '&status=active') {
        is_deeply(found("attention=$attention$more"), $expected, "$attention$more: $name");
    }
    return;
}

kept($_, [], 'no order') for qw(expired limit_reached preparing keys_owed);
sql('UPDATE assignment SET expires_at = 1000 WHERE order_id = ' . of(101));
sql('UPDATE assignment SET expires_at = 2000 WHERE order_id = ' . of(102));
sql('UPDATE assignment SET expires_at = 3000 WHERE order_id = ' . of(103));
kept('expired', [qw(103 101)], 'those whose access has ended and is not revoked, the latest first');
is_deeply(found('attention=expired&customer=11'), ['101'], 'also of a customer');
sql('UPDATE assignment SET expires_at = NULL WHERE shop_id = ' . $shop->{shop_id});

my ($item, $used) = @{ (sql('SELECT a.id, f.asset_id FROM assignment a JOIN mapping_file f '
    . 'ON f.mapping_id = a.mapping_id WHERE a.order_id = ' . of(104)))[0] };
sql("INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra) "
    . "VALUES ($item, $used, 100, 0)");
sql("INSERT INTO event (shop_id, type, order_id, data, created_at) SELECT $shop->{shop_id}, "
    . "'download.limit_reached', id, '{}', 1 FROM orders WHERE id IN (" . of(103) . ', ' . of(104)
    . ')');
kept('limit_reached', ['104'], 'those with a file that is used up, not those with more downloads');

sql("UPDATE asset SET status = 'pending' WHERE id = $used");
kept('preparing', [qw(105 104 103 101)], 'those that wait for a file');
sql("UPDATE asset SET status = 'ready' WHERE id = $used");

my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
    ->{json}{id};
assign($shop, 9000 + $_, [ mapping_of($shop, [], license_key_tag_ids => [$tag])
    ->{storefront_product_id} ]) for 1, 2;
kept('keys_owed', [qw(9002 9001)], 'those that wait for license keys');
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token}, json => { keys => [qw(K1 K2)] });
kept('keys_owed', [], 'until they have them');
is_error(api('GET', '/orders?attention=late', key => $shop->{token}), 400, 'invalid_request',
    'an attention that there is not', '/attention');

done_testing();
