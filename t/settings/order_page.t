# The page of an order answers in one sentence with one button, which does what it says: each state
# of an order, and its items one by one.
#
# once: the forms call what t/api calls on both databases
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

my $asset = ready_asset($shop, 'book.pdf', 'the book');
my @product = map { mapping_of($shop, [ $asset->{id} ], download_limit => 1)
        ->{storefront_product_id} } 1, 2;

# An order of products whose email was sent; its number and the ids of its items.
sub order
{
    my (@products) = @_;
    my $number = digits();
    my $reply = assign($shop, $number, \@products, storefront_customer_id => $number,
        send_email => JSON::PP::true(), customer => { email => "c$number\@example.com" });
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    wait_for(sub { api('GET', "/orders/$number", %key)->{json}{email}{status} eq 'sent' }, 60,
        'the email');
    return ($number, map { $_->{id} } @{ $reply->{json}{assignments} });
}

sub of_order { my ($number) = @_; return "(SELECT id FROM orders WHERE shop_id = $id "
    . "AND storefront_order_id = '$number')" }

sub seen { my ($number, $user) = @_; return visit($user // 'staff', 'GET', "/$id/orders/$number") }

# What stands under the title, as text.
sub answer
{
    my ($page) = @_;
    my ($section) = $page->{body} =~ m{<section[^>]*>(.*?)</section>}s;
    return ($section // '') =~ s/<[^>]+>/ /gr =~ s/\s+/ /gr;
}

# Presses the button that stands there.
sub press
{
    my ($page, %typed) = @_;
    my ($path, $form) =
        $page->{body} =~ m{<section[^>]*>.*?<form\ method="post"\ action="/settings([^"]+)">
            (.*?)</form>}sx;
    my %fields = $form =~ /<input type="hidden" name="(\w+)" value="([^"]*)">/g;
    return submit('staff', $page, $path, { %fields, %typed });
}

sub emails { my ($number) = @_; return scalar(() = sql("SELECT id FROM email WHERE order_id = "
    . of_order($number))) }

# --- one sentence, one button --------------------------------------------------------------------

my ($number, @item) = order(@product);
my $page = seen($number);
like(answer($page), qr/^ The customer can download $/, 'an order without fault says yes, no more');
like($page->{body}, qr/<summary>8 checks passed/, 'and folds what is well');

for (@item) {
    sql("INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra) "
        . "VALUES ($_, $asset->{id}, 1, 0)");
}
$page = seen($number);
like(answer($page), qr/can\S+t\ download\ All\ downloads\ of\ book\.pdf
    .*\ Give\ one\ more\ download\ and\ email/x,
    'a limit that is reached: one more download, and an email');
is(press($page)->{status}, 303, 'the button is pressed');
like(answer(seen($number)), qr/^ The customer can download/, 'and the customer can download');
is(emails($number), 2, 'and is told by email');

sql("UPDATE assignment SET expires_at = created_at + 1 WHERE order_id = " . of_order($number));
$page = seen($number);
my ($until) = answer($page) =~ /Access ended on .* Extend to (.+?) and email the customer/;
ok($until, 'access that has ended: it is extended to a date') or diag(answer($page));
like($page->{body}, qr/id="days" name="days" value="30"/, 'and the form below is prefilled');
is(press($page)->{status}, 303, 'the button is pressed');
is(emails($number), 3, 'with an email');
like(visit('staff', 'GET', "/$id/orders/$number?done=order_granted")->{body},
    qr{class="good" role="status">[^\n]*Access lasts until},
    'the page says how long access lasts');
like(answer(seen($number)), qr/^ The customer can download/, 'and the customer can download');

sql("UPDATE assignment SET expires_at = created_at + 1 WHERE order_id = " . of_order($number));
$page = seen($number);
submit('staff', $page, "/$id/orders/$number/grant", { downloads => 1, days => 0 });
like(visit('staff', 'GET', "/$id/orders/$number?done=order_granted")->{body},
    qr/class="notice" role="status">They are given, but the customer still can/,
    'a gift that does not help is not praised');

my ($bounced) = order($product[0]);
sql("UPDATE email SET bounced_at = sent_at + 1, last_error = '550 no such user' WHERE order_id = "
    . of_order($bounced));
$page = seen($bounced);
like(answer($page), qr/can\S+t download .*came back: 550 no such user .*Change the address/,
    'an email that came back: the right address');
is(press($page, to => 'right@example.com', send => 'yes')->{status}, 303, 'which is given');
is((sql("SELECT recipient FROM email WHERE order_id = " . of_order($bounced)
    . ' ORDER BY id DESC'))[0][0], 'right@example.com', 'and gets the email');
$page = seen($bounced);
my ($story) = $page->{body} =~ m{<ol class="events">(.*?)</ol>}s;
like($story, qr/The\ email\ to\ c$bounced\@example\.com\ came\ back.*550\ no\ such\ user
    .*The\ email\ to\ c$bounced\@example\.com\ was\ sent/sx,
    'the story has every email, and its fate');
my $name = (sql("SELECT name FROM api_key WHERE shop_id = $id"))[0][0];
like($story, qr{Downloads were assigned.*API key <bdi>\Q$name\E</bdi>}s, 'and who, by name');

my ($held) = order($product[0]);
held_by_check($shop, $held);
$page = seen($held);
like(answer($page), qr/can\S+t download The order is under review.* Approve the order $/,
    'an order under review: approve it');
unlike(seen($held, 'reader')->{body}, qr/<form method="post"/, 'for those who may');
is(press($page)->{status}, 303, 'the button is pressed');
like(answer(seen($held)), qr/^ The customer can download/, 'and the customer can download');

api('POST', "/orders/$held/revoke", %key, json => { reason => 'Paid back' });
$page = seen($held);
like(answer($page), qr/is revoked: Paid back.*The customer reads.*Restore the access $/,
    'one that is revoked: restore it');

# --- partly --------------------------------------------------------------------------------------

my $tag = api('POST', '/license-key-tags', %key, json => { name => 'Seats' })->{json}{id};
api('POST', "/license-key-tags/$tag/keys", %key, json => { keys => [qw(ONE TWO THREE)] });
my $seats = mapping_of($shop, [ $asset->{id} ], license_key_tag_ids => [$tag])
    ->{storefront_product_id};
assign($shop, 9001, [ { storefront_product_id => $seats, quantity => 5 } ]);
$page = seen(9001);
like(answer($page), qr/but not everything License keys that are missing: 2 of 5\./,
    'part of a purchase that is missing is said, with how much');
like($page->{body}, qr/<section class="notice">/, 'and is not green');
like($page->{body}, qr{<code>TWO</code>}, 'staff see the keys');
unlike(seen(9001, 'reader')->{body}, qr/TWO/, 'a reader does not');

my @many = map { ready_asset($shop, "chapter-$_.pdf", "chapter $_")->{id} } 1 .. 12;
($number) = order(mapping_of($shop, \@many)->{storefront_product_id});
like(seen($number)->{body}, qr{chapter-10\.pdf.*<summary>2\ more\ files</summary>
    .*chapter-11\.pdf}sx, 'files beyond ten are folded');

# --- its items -----------------------------------------------------------------------------------

($number, @item) = order(@product);

sub items
{
    return join ' ', map { "$_->{quantity} $_->{status}" }
        @{ api('GET', "/orders/$number", %key)->{json}{assignments} };
}

sub act
{
    my ($action, %fields) = @_;
    return submit('staff', seen($number), "/$id/orders/$number/$action", \%fields)->{status};
}

is(act('quantity', item => $item[1], quantity => 3), 303, 'the quantity of an item is set');
is(items(), '1 active 3 active', 'of that item');
is(act('revoke', item => $item[0]), 303, 'an item is revoked');
is(items(), '1 revoked 3 active', 'alone');
like(answer(seen($number)), qr/but not everything Of 2 products, revoked: 1, expired: 0/,
    'which the page says');
is(act('restore', item => $item[0]), 303, 'and restored');
is(items(), '1 active 3 active', 'again');
is(act('grant', item => $item[0], downloads => 4, days => 0), 303, 'an item gets downloads');
is_deeply([ map { $_->{files}[0]{download_limit} }
    @{ api('GET', "/orders/$number", %key)->{json}{assignments} } ], [ 5, 3 ], 'alone');
my ($foreign) = (sql("SELECT id FROM assignment WHERE order_id = " . of_order(9001)))[0][0];
for my $wrong ($foreign, 'x', 0) {
    is(act('revoke', item => $wrong), 422, "item $wrong is refused");
    is(act('quantity', item => $wrong, quantity => 2), 404, 'for its quantity, too');
}
# The folds of the items' forms, as they are sent: open or not, and the fold.
sub folds { my ($page) = @_; return $page->{body} =~ m{<details(\ open|)>\s*
    <summary>Change[^<]*<span\ class="unseen">(.*?)</details>}gsx }

my @folds = folds(seen($number));
is_deeply([ @folds[ 0, 2 ] ], [ '', '' ], 'each item has a fold with its forms');
my $refused = submit('staff', seen($number), "/$id/orders/$number/quantity",
    { item => $item[1], quantity => '50000' });
is($refused->{status}, 400, 'a quantity of 50,000 is refused');
@folds = folds($refused);
is_deeply([ @folds[ 0, 2 ] ], [ '', ' open' ], 'the page has the fold of that item open');
like($folds[3], qr{<p\ class="problem">The\ quantity\ is\ 1\ to\ 1000\.</p>
    .*name="quantity"\ value="50000".*name="downloads"\ value="1"}sx,
    'with the reason and what was typed, in that form alone');
unlike($folds[1], qr/class="problem"|50000/, 'and nothing in the other');
$refused = submit('staff', seen($number), "/$id/orders/$number/grant",
    { item => $item[0], downloads => '', days => 'ten' });
@folds = folds($refused);
is_deeply([ $refused->{status}, @folds[ 0, 2 ] ], [ 400, ' open', '' ],
    'so with downloads and days');
like($folds[1], qr{<p\ class="problem">Give\ 1\ to .*name="quantity"\ value="1"
    .*name="downloads"\ value="".*name="days"\ value="ten"}sx, 'as they were typed');
is(act('quantity', item => $item[0], quantity => 0), 400, 'a quantity of 0 is refused');
is(items(), '1 active 3 active', 'nothing of which changes anything');

# --- the evidence, to print ----------------------------------------------------------------------

{
    my $page = seen($number, 'reader');
    like($page->{body}, qr{href="/settings/$id/orders/$number/evidence"},
        'its page leads to the evidence');
    like($page->{body}, qr/\@media print/, 'pages are made to be printed, too');
    my ($path) = api('GET', "/orders/$number", %key)->{json}{download_page_url}
        =~ m{^https?://[^/]+(/.+)$};
    my ($button) = page('GET', $path)->{body} =~ /name="file" value="([^"]+)"/;
    my $link = page('POST', $path, form => { file => $button })->{headers}{location};
    page('GET', $link =~ s{^https?://[^/]+}{}r);
    my $text =
        sub { visit('reader', 'GET', "/$id/orders/$number/evidence")->{body} =~ s/<[^>]+>//gr };
    wait_for(sub { $text->() =~ /127\.0\.0\.0.*8 of 8\W+bytes acknowledged delivered whole/s }, 20,
        'the download in the evidence');
    my $shown = $text->();
    like($shown, qr/Order $number .* evidence of delivery/, 'it names the order');
    like($shown, qr/c$number\@example\.com/, 'the address');
    like($shown, qr/book\.pdf 8\W+bytes, SHA-256 $asset->{sha256}/, 'the file with its SHA-256');
    like($shown, qr/book\.pdf, version 1: 8 of 8\W+bytes acknowledged/, 'what was acknowledged');
    like($shown, qr/All times are in UTC/, 'in UTC');
    like($shown, qr/The quantity was changed/, 'and what was done');
    my ($token) = $path =~ m{([^/]+)$};
    unlike(visit('staff', 'GET', "/$id/orders/$number/evidence")->{body}, qr/\Q$token\E/,
        'nobody sees the address of the page there');
    is(visit('reader', 'GET', "/$id/orders/1/evidence")->{status}, 404, 'another order has none');
}

$server->stop;
done_testing;
