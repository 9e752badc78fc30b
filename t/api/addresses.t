# An address is corrected, for one order or for all of a customer's (contract, sections 6 and 10).
#
# both: every statement of it locks, and the order's address is chosen in SQL
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());
my $shop    = new_shop();
my $other   = new_shop();
my $file    = ready_asset($shop, "addresses-$$.txt", "what was bought\n");
my $product = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};
my $unique  = 0;

sub address { return join('-', $_[0], $$, ++$unique) . '@buyer.example' }

# A new order of a customer; returns its answer.
sub order
{
    my ($customer, $email, %members) = @_;
    my $reply = assign($shop, digits(), [$product], storefront_customer_id => $customer,
        customer => { email => $email }, %members);
    die "the order was answered with: $reply->{body}\n" if $reply->{status} !~ /^20[01]$/;
    return $reply->{json};
}

sub change
{
    my ($path, $json, %request) = @_;
    return api('PATCH', $path, key => $shop->{token}, json => $json, %request);
}

sub change_order
{
    my ($order, $json, %request) = @_;
    return change("/orders/$order->{storefront_order_id}", $json, %request);
}

sub read_order
{
    my ($order) = @_;
    return api('GET', "/orders/$order->{storefront_order_id}", key => $shop->{token})->{json};
}

# The orders that a search for an address finds.
sub found
{
    my ($email, $more) = @_;
    my $list = api('GET', "/orders?email=$email" . ($more // ''), key => $shop->{token})->{json};
    return [ sort map { $_->{storefront_order_id} } @{ $list->{data} } ];
}

sub numbers { return [ sort map { $_->{storefront_order_id} } @_ ] }

# How often the shop got an event of a type.
sub told
{
    my ($type) = @_;
    my ($row) = sql("SELECT count(*) FROM event WHERE shop_id = $shop->{shop_id}"
        . " AND type = '$type'");
    return $row->[0];
}

# --- one order -----------------------------------------------------------------------------------

my ($typo, $right) = (address('typo'), address('right'));
my $customer = digits();
my $order    = order($customer, $typo);
my $sibling  = order($customer, $typo);
is($order->{recipient}, undef, 'an order has no address of its own at first');

my $reply = change_order($order, { email => $right, reason => 'A typo.' });
is_answer($reply, 200, 'an order gets another address');
my $changed = $reply->{json};
is_shape($changed, 'order', 'the order');
is($changed->{recipient}, $right, 'which it has for itself');
is($changed->{customer}{email}, $typo, 'beside that of its customer');
is($changed->{download_page_url}, $order->{download_page_url}, 'and the page stays where it is');
my $entry = read_order($order)->{events}[0];
is($entry->{action}, 'address_changed', 'its audit trail tells of it');
is($entry->{reason}, 'A typo.', 'with the reason');
is_deeply($entry->{details}, { email_before => $typo, email => $right, link_rotated => $false },
    'and both addresses');
is(told('order.address_changed'), 1, 'and the shop gets an event');
is_deeply(found($right), numbers($order), 'it is found by its own address');
is_deeply(found($typo),  numbers($sibling), 'and no longer by its customer\'s');
is_deeply(found($typo, "&customer=$customer"), numbers($sibling),
    'also among the orders of its customer');

is(change_order($order, { email => $right })->{json}{updated_at}, $changed->{updated_at},
    'the same address again changes nothing');
is(change_order($order, {})->{json}{updated_at}, $changed->{updated_at}, 'nor does {}');
is(told('order.address_changed'), 1, 'and tells nobody');

is_answer(change_order($order, { send_email => $true }), 200, 'the email is sent');
ok(wait_mail($right, 60), 'to the order\'s address');
is(scalar(mails($typo)), 0, 'and to no other');

my $rotated = change_order($order, { email => address('third'), rotate_link => $true })->{json};
isnt($rotated->{download_page_url}, $order->{download_page_url},
    'a stranger\'s link is replaced with the address');
is(page('GET', $order->{download_page_url})->{status}, 404, 'and does not work any more');
is_deeply(read_order($order)->{events}[0]{details}{link_rotated}, $true, 'which the entry says');

is(change_order($order, { email => undef })->{json}{recipient}, undef, 'null clears the address');
is_deeply(found($typo), numbers($order, $sibling), 'and the customer\'s goes for the order again');

# --- emails that wait ----------------------------------------------------------------------------

my $held = order($customer, $typo, send_email => $true);
wait_for(sub { read_order($held)->{email}{status} eq 'sent' }, 60, 'the email to leave');
sql("UPDATE email SET status = 'queued', held = 1 WHERE order_id = (SELECT id FROM orders WHERE"
    . " shop_id = $shop->{shop_id} AND storefront_order_id = '$held->{storefront_order_id}')");
is(change_order($held, { email => $right, send_email => $true })->{json}{email}{to}, $right,
    'an email that waits follows the address');
my ($emails) = sql('SELECT count(*) FROM email WHERE order_id = (SELECT id FROM orders WHERE'
    . " shop_id = $shop->{shop_id} AND storefront_order_id = '$held->{storefront_order_id}')");
is($emails->[0], 1, 'and no second one is sent');

my $unknown  = digits();
my $awaiting = assign($shop, $unknown, [$product], storefront_customer_id => digits(),
    send_email => $true)->{json};
is($awaiting->{email}{status}, 'no_recipient', 'an email that has no address,');
my $given = address('given');
# As if the storefront were being asked for it.
sql("UPDATE email SET status = 'queued' WHERE order_id = (SELECT id FROM orders WHERE"
    . " shop_id = $shop->{shop_id} AND storefront_order_id = '$unknown')");
is(change_order($awaiting, { email => $given })->{json}{email}{to}, $given,
    'but waits for one, gets it');
ok(wait_mail($given, 60), 'and leaves');

# --- a customer ----------------------------------------------------------------------------------

$customer = digits();
($typo, $right) = (address('typo'), address('right'));
my $own    = address('own');
my @orders = map { order($customer, $typo) } 1 .. 3;
my $path   = "/customers/$orders[0]{customer}{id}";
change_order($orders[2], { email => $own });

$reply = api('GET', $path, key => $shop->{token});
is_answer($reply, 200, 'a customer is read');
is_shape($reply->{json}, 'customer', 'the customer');
is($reply->{json}{email}, $typo, 'with its address');
is(api('GET', $path, key => $other->{token})->{status}, 404, 'by its shop alone');

my $etag = $reply->{headers}{etag};
$reply = change($path, { email => $right, reason => 'They wrote.' },
    headers => { 'If-Match' => $etag });
is_answer($reply, 200, 'its address is corrected');
is($reply->{json}{email}, $right, 'for good');
is(told('customer.address_changed'), 1, 'the shop gets one event');
is(read_order($_)->{events}[0]{action}, 'address_changed', 'and each order an entry')
    for @orders[ 0, 1 ];
is_deeply(found($right), numbers(@orders[ 0, 1 ]), 'the customer\'s orders follow');
is_deeply(found($own), numbers($orders[2]), 'except one with an address of its own');
is_error(change($path, { email => $typo }, headers => { 'If-Match' => $etag }), 412,
    'precondition_failed', 'a former version');
is(change($path, { email => $right })->{json}{updated_at}, $reply->{json}{updated_at},
    'the same address again changes nothing');

push @orders, order($customer, $typo);
is($orders[3]{customer}{email}, $right, 'a source that repeats the wrong address changes nothing');
is(order($customer, uc $typo)->{customer}{email}, $right, 'in any case');
is(order($customer, $right)->{customer}{email}, $right, 'nor once it knows better');
is(order($customer, $typo)->{customer}{email}, $right, 'and falls back');
my $moved = address('moved');
is(order($customer, $moved)->{customer}{email}, $moved, 'an address that is new is taken');

$reply = change($path,
    { email => $right, clear_order_recipients => $true, rotate_links => $true });
is(read_order($orders[2])->{recipient}, undef, 'orders lose addresses of their own if asked');
my $now = read_order($orders[0])->{download_page_url};
isnt($now, $orders[0]{download_page_url}, 'and their pages are elsewhere');
is(page('GET', $now)->{status}, 200, 'where they can be opened');
is(told('customer.address_changed'), 2, 'with one event more');
change($path, { email => $right, clear_order_recipients => $true });
is(told('customer.address_changed'), 2, 'and none the second time');

# --- the same order, another customer ------------------------------------------------------------

my $number = $orders[0]{storefront_order_id};
my $merged = assign($shop, $number, [$product], storefront_customer_id => digits(),
    customer => { email => $typo });
is($merged->{status}, 409, 'a customer with any other address can\'t take over an order');
$customer = digits();
my $first  = order($customer, $typo);
change("/customers/$first->{customer}{id}", { email => $right });
$merged = assign($shop, $first->{storefront_order_id}, [$product],
    storefront_customer_id => digits(), customer => { email => $typo });
is_answer($merged, 200, 'a customer with the replaced address can');
is($merged->{json}{recipient}, $right, 'but the order keeps the one that was corrected');

# --- refusals ------------------------------------------------------------------------------------

unstored();
refused(change_order($order, { email => 'nobody' }), 400, 'invalid_request', 'no address',
    '/email');
refused(change_order($order, { rotate_link => $true }), 400, 'invalid_request',
    'a new link without an address', '/email');
refused(change($path, { email => undef }), 400, 'invalid_request', 'no address of a customer',
    '/email');
refused(change($path, { clear_order_recipients => $true }), 400, 'invalid_request',
    'clearing without an address', '/email');
refused(change('/customers/' . (2**53 - 1), { email => $right }), 404, 'customer_not_found',
    'an unknown customer');
refused(api('PATCH', $path, key => $other->{token}, json => { email => $right }), 404,
    'customer_not_found', "another shop's customer");
refused(change_order({ storefront_order_id => digits() }, { email => $right }), 404,
    'order_not_found', 'an unknown order');

done_testing();
