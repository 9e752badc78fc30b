# The orders of a list as CSV: what the filter finds, however many, for staff, and in the audit.
#
# both: pieces are read one after the other
use strict;
use warnings;
use utf8;

use Encode qw(decode);
use Test::More;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];
told('member', 'add', 'other', 'staff', '--shop', new_shop()->{shop_id});

my $product = mapping_of($shop, [ ready_asset($shop, 'book.pdf', 'a book')->{id} ])
    ->{storefront_product_id};
assign($shop, 7001, [$product], storefront_customer_id => '501', customer => {
    first_name => '=1+1', last_name => 'Løve, "Ada"', email => 'ada@example.com' });
assign($shop, 7002, [$product], storefront_customer_id => '502');

sub csv
{
    my ($query, $user, $page) = @_;
    $page //= visit('staff', 'GET', "/$id/orders");
    return submit($user // 'staff', $page, "/$id/orders/csv?$query", {});
}

sub numbers { return [ $_[0]{body} =~ /^(\d+),/mg ] }

my $reply = csv('');
is($reply->{status}, 200, 'staff get the list');
is($reply->{headers}{'content-type'}, 'text/csv; charset=utf-8', 'as CSV');
like($reply->{headers}{'content-disposition'},
    qr/^attachment; filename="orders-\d{4}-\d\d-\d\d\.csv"$/,
    'in a file with the day in its name');
my $text = decode('UTF-8', $reply->{body});
like($text, qr/\A\x{feff}storefront_order_id,created_at,.*\r\n/, 'for spreadsheets');
like($text,
    qr/^7001,\d{4}-[^,]+Z,'=1\+1,"Løve, ""Ada""",ada\@example\.com,501,active,not_requested\r$/m,
    'each order is a line, whose names are no formulas');
is_deeply(numbers($reply), [qw(7002 7001)], 'the newest first');
is_deeply(numbers(csv('q=ada%40example.com')), ['7001'], 'what the filter finds');
is_deeply(numbers(csv('attention=expired')), [], 'and nothing else');
is_deeply([ (sql("SELECT action, user_name, count(*) FROM audit WHERE shop_id = $id "
    . "AND noun = 'order' AND via = 'settings' GROUP BY action, user_name"))[0] ],
    [ [ 'exported', 'staff', 3 ] ], 'each is noted in the audit');

my $page = visit('staff', 'GET', "/$id/orders");
is(csv('', 'staff', $page)->{status}, 200, 'a form is taken');
is(csv('', 'staff', $page)->{status}, 409, 'once');
is(csv('', 'reader', own_form('reader', 'read-only', "/$id/orders"))->{status}, 403,
    'those who may only read get none');
unlike(visit('reader', 'GET', "/$id/orders")->{body}, qr{orders/csv}, 'nor a button');
is(csv('', 'other', $page)->{status}, 404, "another shop's staff neither");
is(csv('q=' . 'x' x 255)->{status}, 400, 'a query that is too long is refused');

sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, '
        . 'fraud_decision, created_at, updated_at) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL '
        . 'SELECT i + 1 FROM n WHERE i < 2500) '
        . "SELECT c.shop_id, '88' || (10000 + i), c.id, 'csv' || i, 'active', 'not_checked', "
        . "1000000 + i, 1000000 + i FROM n, customer c WHERE c.shop_id = $id "
        . "AND c.storefront_customer_id = '502'");
my %seen;
my @all = @{ numbers(csv('')) };
is(scalar(@all), 2502, 'thousands come, too');
is(scalar(grep { !$seen{$_}++ } @all), 2502, 'each once');

$server->stop;
done_testing;
