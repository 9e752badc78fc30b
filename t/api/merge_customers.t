# Merging customers: one stays and gets the other's orders, and whoever names the other means the
# one who stays.
#
# both: locks, and the number of a customer is looked up by a subquery
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $shop    = new_shop();
my %key     = (key => $shop->{token});
my $product = mapping_of($shop, [])->{storefront_product_id};

# Makes an order; returns its number and its customer's id.
sub order_of
{
    my ($number, $email, %more) = @_;
    my $order = digits();
    my $reply = api('POST', "/orders/$order/assignments", %key, json => {
        items    => [ { storefront_product_id => $product } ],
        customer => { email => $email, %more },
        defined $number ? (storefront_customer_id => "$number") : (),
    });
    is_answer($reply, 201, "an order of $email");
    return ($order, $reply->{json}{customer}{id});
}

sub merge
{
    my ($id, $into, %opt) = @_;
    return api('POST', "/customers/$id/merge", %key, json => { into_customer_id => $into }, %opt);
}

sub order { return api('GET', "/orders/$_[0]", %key)->{json} }

sub listed
{
    my ($query) = @_;
    return map { $_->{storefront_order_id} } @{ api('GET', "/orders?$query", %key)->{json}{data} };
}

sub found { return map { $_->{id} } @{ api('GET', "/search?q=$_[0]", %key)->{json}{customers} } }

my ($first,  $ada)    = order_of(701, 'ada@king.example', first_name => 'Augusta');
my ($second, $byron)  = order_of(702, 'ada@byron.example', last_name => 'Byron');
my ($third,  $guest)  = order_of(undef, 'Ada@king.example', locale => 'de');
my ($own)    = order_of(702, 'ada@byron.example');
api('PATCH', "/orders/$own", %key, json => { email => 'gift@king.example' });
my $event = api('GET', '/events?after=latest', %key)->{json}{next_after};

# --- one into the other --------------------------------------------------------------------------

my $before = order($second);
my $reply  = merge($byron, $ada);
is_answer($reply, 200, 'two customers are merged');
is($reply->{json}{id}, $ada, 'the answer is the one who stays');
is_deeply([ @{ $reply->{json} }{qw(storefront_customer_id email first_name last_name)} ],
    [ '701', 'ada@king.example', 'Augusta', 'Byron' ],
    'with its own number, address and name, and what only the other had');
is(order($_)->{customer}{id}, $ada, 'the orders are theirs') for $first, $second, $own;
is(order($second)->{recipient}, 'ada@byron.example',
    'and keep their address');
is(order($own)->{recipient}, 'gift@king.example', 'also one of their own');
isnt(order($second)->{updated_at}, $before->{updated_at}, 'they have changed');
is(order($second)->{download_page_url}, $before->{download_page_url}, 'but not their pages');
is_answer(api('GET', "/customers/$byron", %key), 200, 'the other is read by its id');
is(api('GET', "/customers/$byron", %key)->{json}{id}, $ada, 'which is the one who stays');
is_deeply([ found('702') ],    [$ada], 'and is found by its number');
is_deeply([ found('byron') ],  [$ada], 'and by its address');
is_deeply([ listed('customer=702') ], [ $own, $second, $first ], 'so are the orders');
my $told = wait_for(sub {
    my @merged = grep { $_->{type} eq 'customer.merged' }
        @{ api('GET', "/events?after=$event", %key)->{json}{data} };
    return @merged && \@merged;
}, 60, 'the event');
is_deeply([ map { @$_{qw(type data)} } @$told ],
    [ 'customer.merged', { customer_id => $ada, merged_customer_id => $byron } ],
    'the shop gets an event');
is((sql("SELECT count(*) FROM audit WHERE noun = 'customer' AND action = 'merged'"))[0][0], 1,
    'and the audit an entry');

# --- who is followed -----------------------------------------------------------------------------

my ($later, $of) = order_of(702, 'ada@king.example', first_name => 'Ada');
is($of, $ada, "a later order under the other's number is of the one who stays");
is(api('GET', "/customers/$ada", %key)->{json}{first_name}, 'Ada', 'whose data it brings');
is_answer(assign($shop, $second, [$product], storefront_customer_id => '702'), 200,
    'an order that was moved is assigned under the former number');
is(order($second)->{customer}{id}, $ada, 'and stays where it is');
order_of(702, 'Ada@Byron.example');
is(api('GET', "/customers/$ada", %key)->{json}{email}, 'ada@king.example',
    'the address of the other is not taken again');
is_deeply([ found('byron') ], [$ada], 'the former address still finds');
api('PATCH', "/customers/$byron", %key, json => { email => 'ada@lovelace.example' });
is(api('GET', "/customers/$ada", %key)->{json}{email}, 'ada@lovelace.example',
    'a correction of the other is one of the one who stays');
is(order($first)->{customer}{email}, 'ada@lovelace.example', 'as its orders show');

# --- repeats, chains, circles, guests ------------------------------------------------------------

my $changed = sub { (sql('SELECT count(*) FROM event'))[0][0] };
my $count   = $changed->();
for ([ $byron, $ada, 'again' ], [ $ada, $byron, 'the other way round' ],
    [ $ada, $ada, 'with itself' ]) {
    my ($from, $into, $what) = @$_;
    my $again = merge($from, $into);
    is_answer($again, 200, "a merge $what");
    is($again->{json}{id}, $ada, 'changes nothing');
}
is($changed->(), $count, 'and tells nothing');

is_error(merge($ada, $guest), 409, 'customer_is_guest', 'into a guest');
is_answer(merge($guest, $ada), 200, 'a guest is merged');
is_deeply([ @{ order($third)->{customer} }{qw(id locale)} ], [ $ada, 'de' ],
    'and what was known of them');
is_answer(api('POST', "/orders/$third/assignments", %key,
        json => { items => [ { storefront_product_id => $product } ] }), 200,
    'its order is assigned without a number');
is(order($third)->{customer}{id}, $ada, 'and stays where it is');

my ($fourth, $grace) = order_of(704, 'grace@hopper.example');
is_error(merge($byron, $grace), 409, 'customer_merged', 'one who was merged into somebody else');
is_answer(merge($ada, $grace), 200, 'the one who stays is merged itself');
is(api('GET', "/customers/$_", %key)->{json}{id}, $grace, 'all are followed to the last')
    for $ada, $byron, $guest, $grace;
is((order_of(702, 'ada@byron.example'))[1], $grace, 'also by number');
is_deeply([ sql("SELECT DISTINCT merged_into FROM customer WHERE merged_into IS NOT NULL") ],
    [ [$grace] ], 'in one step');

# --- refusals ------------------------------------------------------------------------------------

my $other = new_shop();
my $theirs = assign($other, digits(), [ mapping_of($other, [])->{storefront_product_id} ],
    storefront_customer_id => '701')->{json}{customer}{id};
my ($fifth, $last) = order_of(705, 'last@example.com');
is_error(merge($theirs, $last), 404, 'customer_not_found', "another shop's customer");
is_error(merge($last, $_->[0]), 422, 'unknown_reference', $_->[1], '/into_customer_id')
    for [ $theirs, "into another shop's" ], [ 2**53 - 1, 'into nobody' ];
is_error(merge($last, 'x'), 400, 'invalid_request', 'into no number', '/into_customer_id');
is_error(merge($last, $grace, headers => { 'if-match' => '"1"' }), 412, 'precondition_failed',
    'one who has changed');
sql("INSERT INTO customer (shop_id, storefront_customer_id, merged_into, created_at, updated_at) "
    . "SELECT $shop->{shop_id}, 'many' || id, $grace, 0, 0 FROM ("
    . join(' UNION ALL ', map { "SELECT $_ AS id" } 1 .. 400) . ") q");
is_answer(merge($last, $grace), 200, 'into one who has taken in many');
sql("INSERT INTO customer (shop_id, storefront_customer_id, merged_into, created_at, updated_at) "
    . "SELECT $shop->{shop_id}, 'more' || id, $grace, 0, 0 FROM customer "
    . "WHERE storefront_customer_id LIKE 'many%'");
sql("INSERT INTO customer (shop_id, storefront_customer_id, merged_into, created_at, updated_at) "
    . "SELECT $shop->{shop_id}, 'most' || id, $grace, 0, 0 FROM customer "
    . "WHERE storefront_customer_id LIKE 'many%'");
my ($sixth, $next) = order_of(706, 'next@example.com');
is_error(merge($next, $grace), 422, 'too_many_customers', 'but not into one of 1,000');

# --- many orders ---------------------------------------------------------------------------------

my ($seventh, $busy) = order_of(707, 'busy@example.com');
sql("INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, "
    . "fraud_decision, created_at, updated_at) SELECT $shop->{shop_id}, '77' || id, $busy, "
    . "'busy' || id, 'active', 'not_checked', 1000 + id, 1000 + id FROM ("
    . join(' UNION ALL ', map { "SELECT $_ AS id" } 100 .. 549) . ") q");
is_answer(merge($busy, $next), 200, 'one with 451 orders');
wait_for(sub { (sql("SELECT count(*) FROM orders WHERE customer_id = $busy"))[0][0] == 0 }, 60,
    'the orders');
is((sql("SELECT count(*) FROM orders WHERE customer_id = $next "
        . "AND recipient = 'busy\@example.com'"))[0][0],
    451, 'all of them move, with their address');
wait_for(sub { (sql('SELECT count(*) FROM customer WHERE merging > 0'))[0][0] == 0 },
    60, 'the end');
is_deeply([ listed('email=busy@example.com&limit=2') ], [ $seventh, '77549' ],
    'and are found by it');

done_testing;
