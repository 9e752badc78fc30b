# The emails of a shop in its settings: the newest first, by what became of them, by order and by
# the beginning of an address, in pages; sending again and correcting from a row.
#
# both: each filter has an index, and two are by an expression
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop(name => 'Books & <b>more</b>');
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
my $neighbour = new_shop();

like(visit('staff', 'GET', "/$id/emails")->{body}, qr/There is no email yet/,
    'without emails the page says so');

my %book = map {
    $_->{shop_id} => mapping_of($_, [ ready_asset($_, 'book.pdf', 'the book')->{id} ])
        ->{storefront_product_id}
} $shop, $neighbour;

sub order
{
    my ($of, $number, $email) = @_;
    my $reply = assign($of, $number, [ $book{ $of->{shop_id} } ], send_email => JSON::PP::true(),
        customer => { email => $email });
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    wait_for(sub { api('GET', "/orders/$number", key => $of->{token})->{json}{email}{status}
        eq 'sent' }, 20, "the email of $number");
    return;
}

# The orders of the emails that a page lists, in its order.
sub listed
{
    my ($query, $user) = @_;
    my $reply = visit($user // 'staff', 'GET', "/$id/emails$query");
    is($reply->{status}, 200, "emails$query");
    return [ $reply->{body} =~ m{<td class="short"><a href="/settings/$id/orders/(\d+)"}g ];
}

my @TO = (
    [ 7001, 'ada@example.com' ],
    [ 7002, 'Bob@example.com' ],
    [ 7003, 'bobby@example.com' ],
    [ 7004, 'b@example.org' ],
    [ 7005, 'zoe@example.com' ],
    [ 7006, 'y_oe@example.com' ],
);
order($shop, @$_) for @TO;
order($neighbour, 7001, 'ada@example.com');

is_deeply(listed(''), [ map { $_->[0] } reverse @TO ], 'all emails of the shop, the newest first');
is_deeply(listed('', 'reader'), [ map { $_->[0] } reverse @TO ],
    'which whoever only reads may see');
is(visit('nobody', 'GET', "/$id/emails")->{status}, 404, 'but nobody else');
my $body = visit('staff', 'GET', "/$id/emails")->{body};
unlike($body, qr{<b>more}, 'the name of the shop is text');
like($body, qr{<bdi>Bob\@example\.com</bdi>}, 'the address is shown');

# --- what became of them ---

my %BECAME = (
    7001 => "bounced_at = 5, last_error = '550 <i>unknown</i>'",
    7002 => "status = 'failed', sent_at = NULL, last_error = 'refused'",
    7003 => "status = 'queued', sent_at = NULL",
    7004 => "status = 'queued', held = 1, sent_at = NULL",
    7005 => "status = 'no_recipient', recipient = NULL, sent_at = NULL",
);
sql("UPDATE email SET $BECAME{$_} WHERE order_id = (SELECT id FROM orders WHERE shop_id = $id "
        . "AND storefront_order_id = '$_')") for sort keys %BECAME;
my %FATE = (bounced => 7001, failed => 7002, queued => 7003, held => 7004, no_recipient => 7005,
    sent => 7006);
is_deeply(listed("?fate=$_"), [ $FATE{$_} ], "by what became of them: $_") for sort keys %FATE;
is(scalar @{ listed('?fate=nonsense') }, 6, 'what is no such thing is left out');

sub row
{
    my ($number, $user) = @_;
    my ($row) = visit($user // 'staff', 'GET', "/$id/emails?q=$number")->{body}
        =~ m{<tbody>\s*<tr>(.*?)</tr>}s;
    return $row;
}
like(row(7001), qr/came back.*550 &lt;i&gt;unknown/s, 'the server\'s reason is shown, as text');
like(row(7005), qr/no address/, 'and that there was no address');
my %BUTTONS = (7001 => 'both', 7002 => 'both', 7003 => 'none', 7004 => 'none', 7005 => 'correct',
    7006 => 'resend');
for my $number (sort keys %BUTTONS) {
    my $row     = row($number);
    my $correct = $row =~ m{orders/$number#new-address"};
    my $resend  = $row =~ m{action="/settings/$id/orders/$number/resend"};
    is($correct ? $resend ? 'both' : 'correct' : $resend ? 'resend' : 'none', $BUTTONS{$number},
        "what can be done about the email of $number");
    unlike(row($number, 'reader'), qr/resend|new-address/, 'is not for those who only read');
}
like(visit('staff', 'GET', "/$id/orders/7001")->{body}, qr/ id="new-address"/,
    'the order\'s page has the field that the link leads to');

# --- by order and address ---

is_deeply(listed('?q=7002'), [7002], 'by the number of an order');
is_deeply(listed('?q=700'),  [],     'which must be whole');
is_deeply(listed('?q=BOB'),          [ 7003, 7002 ], 'by the beginning of an address, in any case');
is_deeply(listed('?q=bob%40'),       [7002],         'or more of it');
is_deeply(listed('?q=b'),            [ 7004, 7003, 7002 ], 'or less: the newest first');
is_deeply(listed('?q=b&fate=failed'), [7002], 'and by what became of it');
is_deeply(listed('?q=7002&fate=sent'), [], 'of an order, too');
is_deeply(listed('?q=y_'), [7006], 'an underscore is itself');
is_deeply(listed('?q=%25'), [], 'and a percent sign');
is_deeply(listed('?q=example'), [], 'the middle of an address finds nothing');
like(visit('staff', 'GET', "/$id/emails?q=example")->{body}, qr/No email matches/,
    'and the page says so');
is(visit('staff', 'GET', "/$id/emails?q=" . 'a' x 255)->{status}, 400,
    'what is too long is refused');

# --- sending again ---

my $page = visit('staff', 'GET', "/$id/emails?q=7006");
is(submit('staff', $page, "/$id/orders/7006/resend", {})->{status}, 303, 'a row sends again');
is_deeply(listed('?q=7006'), [ 7006, 7006 ], 'which is another email of the order');
my @rows = map { s/<[^>]+>/ /gr =~ s/\s+/ /gr }
    visit('staff', 'GET', "/$id/emails?q=7006")->{body} =~ m{data-label="To">(.*?)</td>}g;
is_deeply(\@rows, [ ' y_oe@example.com once more ', ' y_oe@example.com ' ],
    'and the list tells them apart');

# --- pages ---

sql("INSERT INTO email (shop_id, order_id, recipient, message_id, status, attempts, created_at) "
        . "SELECT shop_id, id, 'many\@example.com', 'm$_' || id, 'failed', 1, $_ FROM orders "
        . "WHERE shop_id = $id AND storefront_order_id = '7001'") for 1 .. 60;
for my $query ('', '?fate=failed', '?q=7001', '?q=MANY', '?q=many&fate=failed') {
    my %seen;
    my $path = "/$id/emails$query";
    my @sizes;
    while (defined $path && @sizes < 5) {
        my $reply = visit('staff', 'GET', $path);
        push @sizes, scalar(() = $reply->{body} =~ m{<td class="short">}g);
        ($path) = map { s/&amp;/&/gr } $reply->{body} =~ m{href="/settings(/$id/emails\?[^"]+)"};
    }
    my $all = { '' => 67, '?fate=failed' => 61, '?q=7001' => 61 }->{$query} // 60;
    is_deeply(\@sizes, [ 50, $all - 50 ], "emails$query has pages of fifty");
}

$server->stop;
done_testing;
