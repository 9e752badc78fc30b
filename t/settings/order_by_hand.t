# An order that staff make by hand: a product found by typing, an address, a name, and a number of
# the storefront's or the next of the shop's own.
#
# once: the form calls what t/api/guests.t calls on both databases
use strict;
use warnings;
use utf8;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop();
my $other  = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];

my $books = 0;

# A product with a book of its own.
sub sold
{
    my ($of, $title, %members) = @_;
    my $file = ready_asset($of, 'book-' . ++$books . '.pdf', "book $books");
    return mapping_of($of, [ $file->{id} ], title => $title, %members);
}

my $guide = sold($shop, 'Guide to Ümlauts');
my $atlas = sold($shop, 'Atlas');
sold($shop, 'Guide, withdrawn', is_active => JSON::PP::false());
my $foreign = sold($other, 'Foreign guide');
my $path    = "/$id/orders/new";

# The mappings that a search offers.
sub offered
{
    my ($text) = @_;
    my $body = visit('staff', 'GET', "$path?q=$text")->{body};
    return [ sort { $a <=> $b } $body =~ /name="mapping" value="(\d+)"/g ];
}

sub press
{
    my (%fields) = @_;
    return submit('staff', visit('staff', 'GET', $path), $path, \%fields);
}

sub order_at
{
    my ($reply) = @_;
    my ($number) = $reply->{headers}{location} =~ m{/orders/(\d+)};
    return api('GET', "/orders/$number", key => $shop->{token})->{json};
}

# --- the product ---------------------------------------------------------------------------------

is(visit('reader', 'GET', $path)->{status}, 403, 'those who only read can\'t');
like(visit('staff', 'GET', "/$id/orders")->{body}, qr{/orders/new"}, 'the list leads there');
unlike(visit('reader', 'GET', "/$id/orders")->{body}, qr{/orders/new"}, 'but not them');
is_deeply(offered(''), [ $guide->{id}, $atlas->{id} ], 'active products are offered');
is_deeply(offered('%C3%BCmlaut'), [ $guide->{id} ], 'or those with a part of the title, any case');
my ($number) = $atlas->{storefront_product_id} =~ /(\d+)\z/;
is_deeply(offered($number), [ $atlas->{id} ], 'or by the number');
like(visit('staff', 'GET', "$path?q=nothing")->{body}, qr/No active product has this title/,
    'nothing is said to be found');

# --- the order -----------------------------------------------------------------------------------

my $reply = press(mapping => $guide->{id}, email => 'hand@buyer.example', name => 'A-1043');
is($reply->{status}, 303, 'an order is made');
my $order = order_at($reply);
is($order->{storefront_order_id}, '9' . '0' x 18 . '1', 'with a number of the shop\'s own');
is($order->{name}, 'A-1043', 'and its name');
is($order->{customer}{storefront_customer_id}, undef, 'for a guest');
is($order->{assignments}[0]{storefront_product_id}, $guide->{storefront_product_id},
    'who gets the product');
is($order->{events}[-1]{user}, 'staff', 'by whom, its story says');
my $mail = wait_mail('hand@buyer.example', 60);
ok(scalar(grep { $_ eq $order->{download_page_url} } @{ $mail->{urls} }), 'the email leaves');
like($mail->{headers}{subject}, qr{A-1043}, 'and names the order');
like(visit('staff', 'GET', "/$id/orders")->{body}, qr/A-1043/, 'as the list does');
is(order_at(press(mapping => $atlas->{id}, email => 'hand@buyer.example'))->{storefront_order_id},
    '9' . '0' x 18 . '2', 'the next order has the next number');
is(order_at(press(mapping => $atlas->{id}, email => 'hand@buyer.example', number => '7700'))
    ->{storefront_order_id}, '7700', 'or that of the storefront');
is_deeply([ sql("SELECT noun_id, user_name FROM audit WHERE shop_id = $id AND via = 'settings'"
        . ' ORDER BY id LIMIT 1') ], [ [ '9' . '0' x 18 . '1', 'staff' ] ], 'the audit has it');

# --- refusals ------------------------------------------------------------------------------------

for (
    [ { mapping => $guide->{id}, email => 'nobody' }, 400, 'This is not an email address' ],
    [ { email => 'a@buyer.example' }, 400, 'Choose a product' ],
    [ { mapping => $guide->{id}, email => 'a@buyer.example', name => 'x' x 51 }, 400,
        'at most 50 characters|1 to 50 characters' ],
    [ { mapping => $guide->{id}, email => 'a@buyer.example', number => 'x' }, 400,
        '1 to 20 digits' ],
    [ { mapping => $guide->{id}, email => 'a@buyer.example', number => '7700' }, 409,
        'an order with this number already' ],
    [ { mapping => $foreign->{id}, email => 'a@buyer.example' }, 422, 'not there any more' ],
    )
{
    my ($fields, $status, $words) = @$_;
    my $refused = press(%$fields, q => 'Guide');
    is($refused->{status}, $status, $words);
    like($refused->{body}, qr/role="alert">\s*[^<]*(?:$words)/, 'is said');
    like($refused->{body}, qr/name="email"[^>]*value="\Q$fields->{email}\E"/,
        'with what was typed');
}
my ($orders) = sql("SELECT count(*) FROM orders WHERE shop_id = $id");
is($orders->[0], 3, 'nothing of that is stored');
is(order_at(press(mapping => $guide->{id}, email => 'last@buyer.example'))->{storefront_order_id},
    '9' . '0' x 18 . '3', 'and no number is used up');

done_testing();
