# Staff correct where an order's emails go: for the order, or for its customer for good.
#
# once: the form calls what t/api/addresses.t calls on both databases
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];
my $file    = ready_asset($shop, 'book.pdf', 'the book');
my $product = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};

sub order
{
    my ($number, $email, %members) = @_;
    my $reply = assign($shop, $number, [$product], customer => { email => $email }, %members);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

sub now { return api('GET', "/orders/$_[0]", key => $shop->{token})->{json} }

sub press
{
    my ($number, $fields) = @_;
    my $page = "/$id/orders/$number";
    return submit('staff', visit('staff', 'GET', $page), "$page/address", $fields);
}

my $before = order(8001, 'ada@gmial.example', send_email => JSON::PP::true());
order(8002, 'ada@gmial.example');
wait_mail('ada@gmial.example', 60);
wait_for(sub { now(8001)->{email}{status} eq 'sent' }, 60, 'the email to be noted');

my $body = visit('staff', 'GET', "/$id/orders/8001")->{body};
like($body, qr/name="to"[^>]*value="ada\@gmial\.example"/, 'the address stands there to be mended');
like($body, qr/name="rotate"[^>]* checked/,
    'a new link is offered, since the email is in a stranger\'s hands');
unlike(visit('staff', 'GET', "/$id/orders/8002")->{body}, qr/name="rotate"[^>]* checked/,
    'but not where none has left');
unlike(visit('reader', 'GET', "/$id/orders/8001")->{body}, qr{/address"},
    'those who only read see no form');

unlike($body, qr/name="all"[^>]* checked/, 'nor is it offered to change others');
sql("UPDATE email SET bounced_at = created_at WHERE shop_id = $id");
my $mistaken = visit('staff', 'GET', "/$id/orders/8001")->{body};
like($mistaken, qr{<section.*name="to".*name="all"[^>]*\ checked.*</section>}sx,
    'where the email came back the form stands at the top, and corrects all orders');
is(scalar(() = $mistaken =~ m{/orders/8001/address"}g), 1, 'and only there');
sql("UPDATE email SET bounced_at = NULL WHERE shop_id = $id");

my $reply = press(8001, { to => 'no address', rotate => 'yes', reason => 'typo' });
is($reply->{status}, 400, 'what is no address is refused');
like($reply->{body}, qr/value="no address".*value="typo"/s, 'and is still there');
is(now(8001)->{recipient}, undef, 'nothing is stored');

$reply = press(8001,
    { to => 'ada@gmail.example', send => 'yes', rotate => 'yes', reason => 'typo' });
is($reply->{status}, 303, 'the address is changed');
like(visit('staff', 'GET', "/$id/orders/8001?done=address_changed")->{body},
    qr/role="status">The address is changed/, 'and the page says so');
my $order = now(8001);
is($order->{recipient}, 'ada@gmail.example', 'for this order');
isnt($order->{download_page_url}, $before->{download_page_url}, 'its page is elsewhere');
is($order->{events}[-1]{action}, 'assigned', 'its story');
is_deeply([ map { [ @$_{qw(action user reason)} ] } grep { $_->{action} eq 'address_changed' }
        @{ $order->{events} } ], [ [ 'address_changed', 'staff', 'typo' ] ], 'tells who did it');
ok(scalar(grep { $_ eq $order->{download_page_url} }
        @{ wait_mail('ada@gmail.example', 60)->{urls} }), 'the email leaves with the new link');
is(now(8002)->{customer}{email}, 'ada@gmial.example', 'other orders are as before');

is(press(8002, { to => 'ada@right.example', all => 'yes' })->{status}, 303,
    'the customer\'s address is corrected');
is(now(8001)->{recipient}, undef, 'for all orders');
is(now(8001)->{customer}{email}, 'ada@right.example', 'of the customer');
is(order(8003, 'ada@gmial.example')->{customer}{email}, 'ada@right.example', 'and for good');
is(scalar(mails('ada@right.example')), 0, 'no email is sent unless asked for');
is_deeply([ map { join ' ', @$_ } sql('SELECT noun, action, user_name FROM audit'
        . " WHERE shop_id = $id AND via = 'settings' ORDER BY id") ],
    [ 'order address_changed staff', 'customer address_changed staff' ],
    'the audit has both, and no address');

# --- an address that was probably mistyped -------------------------------------------------------

my $doubt = qr{<h2>Is\ the\ address\ right\?</h2>.*bob\@gmail\.com.*\ meant\ in\ place\ of
    .*bob\@gmial\.com}sx;
my $gmial = order(8004, 'bob@gmial.com');
$body = visit('staff', 'GET', "/$id/orders/8004")->{body};
like($body, qr{$doubt.*name="to"[^>]*value="bob\@gmail\.com".*name="all"[^>]*\ checked}sx,
    'the page doubts the address, and the form has the one that was meant');
is(scalar(() = $body =~ m{/orders/8004/address"}g), 1, 'once');
my $read = visit('reader', 'GET', "/$id/orders/8004")->{body};
like($read, $doubt, 'those who only read are told');
unlike($read, qr{/address"}, 'and see no form');
like(press(8004, { to => 'bob at gmail' })->{body}, qr{name="to"[^>]*value="bob at gmail"},
    'what was typed in its place stands there to be mended');
page('GET', $gmial->{download_page_url});
wait_for(sub { visit('staff', 'GET', "/$id/orders/8004")->{body} !~ $doubt }, 20,
    'the visit: somebody who opens the page has got the email');
order(8005, 'cid@gmial.com');
api('POST', '/orders/8005/revoke', key => $shop->{token}, json => { reason => 'Paid back' });
unlike(visit('staff', 'GET', "/$id/orders/8005")->{body}, qr/Is the address right/,
    'nor is it asked where nothing is given');

done_testing();
