# Staff merge a customer with another: who stays is found by a search, and gets the orders.
#
# once: the merge is tested by t/api/merge_customers.t
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my %key    = (key => $shop->{token});
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];
my $other = new_shop();
told('member', 'add', 'other', 'staff', '--shop', $other->{shop_id});
my $product = mapping_of($shop, [])->{storefront_product_id};

sub customer_of
{
    my ($order, %members) = @_;
    my $reply = api('POST', "/orders/$order/assignments", %key,
        json => { items => [ { storefront_product_id => $product } ], %members });
    is_answer($reply, 201, "order $order");
    return $reply->{json}{customer}{id};
}

my $guest = customer_of(8101, customer => { email => 'ada@king.example' });
my $ada   = customer_of(8102, storefront_customer_id => '701',
    customer => { email => 'ada@king.example', first_name => '<b>Ada' });
my $grace = customer_of(8103, storefront_customer_id => '702',
    customer => { email => 'grace@hopper.example' });

my $path = "/$id/customers/$guest/merge";
like(visit('staff', 'GET', "/$id/orders/8101")->{body},
    qr{<a href="/settings\Q$path\E\?order=8101">}, 'the page of an order leads there');
unlike(visit('reader', 'GET', "/$id/orders/8101")->{body}, qr{/merge}, 'staff alone');
is(visit('reader', 'GET', $path)->{status}, 403, 'who may see it');
is(visit('other', 'GET', "/$other->{shop_id}/customers/$guest/merge")->{status}, 404,
    "another shop's customer is not there");

my $page = visit('staff', 'GET', $path);
is($page->{status}, 200, 'the page') or diag($page->{body});
like($page->{body}, qr{<p>.*ada\@king\.example.*a guest</p>}, 'names the customer');
is_deeply([ $page->{body} =~ /name="into" value="(\d+)"/g ], [$ada],
    'and offers others who have the address');
like($page->{body}, qr/&lt;b&gt;Ada/, 'whose name is text');
my $BACK = qr{<a href="/settings/$id/orders/8101">Order 8101</a>};
unlike($page->{body}, qr{orders/\d}, 'it leads to no order when none has led there');
$page = visit('staff', 'GET', "$path?order=8101");
like($page->{body}, $BACK, 'else back to it');
is(scalar(() = $page->{body} =~ /type="hidden" name="order" value="8101"/g), 2,
    'also after a search and a merge');
unlike(visit('staff', 'GET', "$path?order=$_")->{body}, qr{orders/\d|evil|name="order"},
    "order=$_ is no number")
    for '8101%2F..%2Fevil', 'evil', '%22%3Eevil', '';
my $search = visit('staff', 'GET', "$path?q=hopper");
is_deeply([ $search->{body} =~ /name="into" value="(\d+)"/g ], [$grace], 'or is found');
like(visit('staff', 'GET', "$path?q=nobody")->{body}, qr/No other customer was found/, 'or nobody');
is(visit('staff', 'GET', "$path?q=" . 'x' x 256)->{status}, 400, 'a search has 255 characters');
like(visit('staff', 'GET', $path, headers => { 'accept-language' => $_->[0] })->{body}, $_->[1],
    "in $_->[0]")
    for [ de => qr/Wer bleibt\?/ ], [ fr => qr/Qui reste/ ], [ es => qr/se queda\?/ ];

my $back = "/$id/customers/$ada/merge";
my $done = submit('staff', visit('staff', 'GET', $back), $back, { into => $guest });
is($done->{status}, 409, 'nobody with a number is merged into a guest');
like($done->{body}, qr/role="alert">A guest has no number/, 'which the page says');
$done = submit('staff', visit('staff', 'GET', $back), $back, { into => $guest, order => 8101 });
like($done->{body}, $BACK, 'with the way back');
my $german = submit('staff', visit('staff', 'GET', $back), $back, { into => $guest },
    'accept-language' => 'de');
like($german->{body}, qr/role="alert">Ein Gast kann nicht/, 'in German, too');

$done = submit('staff', $page, $path, { into => $ada, order => 8101 });
is($done->{status}, 303, 'a merge') or diag($done->{body});
like($done->{headers}{location},
    qr{/customers/$ada/merge\?done=customer_merged&order=8101$}, 'leads to who stays');
my $merged = visit('staff', 'GET', "$back?done=customer_merged&order=8101");
like($merged->{body}, qr/The two are one now/, 'and is told');
like($merged->{body}, $BACK, 'with the way back to the order');
is(api('GET', '/orders/8101', %key)->{json}{customer}{id}, $ada, 'the order is theirs');
is_deeply(
    [ (sql('SELECT noun, noun_id, action, user_name FROM audit ORDER BY id DESC LIMIT 1'))[0] ],
    [ [ 'customer', $guest, 'merged', 'staff' ] ], 'the audit has who merged');
like(visit('staff', 'GET', $path)->{body}, qr{customer 701</p>},
    'the former page shows the one who stays');

$server->stop;
done_testing;
