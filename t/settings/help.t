# A customer who asks for help is on the shop's first page and on the order's, until somebody has
# answered.
#
# both: a request is settled by a statement that says whether there was one
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
    for [ staff => 'staff' ], [ owner => 'owner' ], [ reader => 'read-only' ];
my $other = new_shop();
told('member', 'add', 'other', 'staff', '--shop', $other->{shop_id});

my $product = mapping_of($shop, [ ready_asset($shop, 'book.pdf', 'the book')->{id} ],
    access_days => 1)->{storefront_product_id};

# An order whose access has ended and whose customer asks for help; { number, url }.
sub asking
{
    my $number = digits();
    my $made   = assign($shop, $number, [$product], storefront_customer_id => $number);
    $made->{status} == 201 or die "assign: $made->{status} $made->{body}\n";
    my $order = { number => $number, url => $made->{json}{download_page_url},
        item => $made->{json}{assignments}[0]{id} };
    sql("UPDATE assignment SET expires_at = created_at + 1 WHERE id = $order->{item}");
    ask($order);
    return $order;
}

sub ask
{
    my ($order) = @_;
    is(page('POST', $order->{url}, form => { help => 'shop' })->{status}, 303, 'a customer asks');
    return;
}

sub seen
{
    my ($order, $user, @more) = @_;
    return visit($user // 'staff', 'GET', "/$id/orders/$order->{number}", @more);
}

# Submits a form of a page of the order that was shown before.
sub refuse
{
    my ($order, $user, $page, %typed) = @_;
    my ($seen) = $page->{body} =~ /<input type="hidden" name="seen" value="(\d+)">/;
    return submit($user, $page, "/$id/orders/$order->{number}/refuse-help",
        { (defined $seen ? (seen => $seen) : ()), %typed });
}

sub waits
{
    my ($order) = @_;
    my $body = visit('reader', 'GET', "/$id/")->{body};
    return $body =~ m{<h2>Customers who ask for help</h2>.*?/orders/$order->{number}"}s ? 1 : 0;
}

sub state
{
    my ($order) = @_;
    return join ' ', map { join ':', map { $_ // '' } @$_ }
        sql("SELECT h.state, h.decided_by FROM help_request h JOIN orders o ON o.id = h.order_id "
            . "WHERE o.shop_id = $id AND o.storefront_order_id = '$order->{number}' ORDER BY h.id");
}

sub entries
{
    my ($order, $action) = @_;
    return scalar grep { $_->{action} eq $action }
        @{ api('GET', "/orders/$order->{number}", %key)->{json}{events} };
}

my $order = asking();
is(waits($order), 1, 'the first page says so');
like(seen($order, 'reader')->{body}, qr/The customer asked for help on <time/, "and the order's");
unlike(seen($order, 'reader')->{body}, qr/refuse-help/, 'a reader has no button');
like(seen($order, 'staff', headers => { 'accept-language' => 'de' })->{body},
    qr/Der Kunde hat am .* um Hilfe gebeten/, 'also in German');
is(entries($order, 'help_asked'), 1, 'the timeline has it');

is_deeply([ map { "@$_" } sql("SELECT user_name, choice FROM notice WHERE shop_id = $id "
    . "AND kind = 'help' ORDER BY user_name") ], [ 'owner now', 'staff now' ],
    'who may answer is told by email at once');
like(visit('staff', 'GET', "/$id/own-emails")->{body},
    qr/name="help">[^"]+"off">[^"]+"now" selected>/, 'which is what they have until they choose');
my @event;
wait_for(sub { @event = @{ api('GET', '/events?type=help.requested', %key)->{json}{data} } }, 20,
    'the event');
is_deeply($event[0]{data},
    { storefront_order_id => $order->{number}, finding => 'access_expired' },
    "and the shop's systems by an event");

subtest 'Refused' => sub {
    my $page = seen($order);
    like($page->{body}, qr/refuse-help/, 'staff have the button');
    my $late = seen($order, 'owner');
    is(refuse($order, 'reader', seen($order, 'reader'))->{status}, 403, 'not for a reader');
    is(refuse($order, 'other', $page)->{status}, 404, "nor for another shop's staff");
    is(state($order), 'asked:', 'so it still waits');
    is(refuse($order, 'staff', $page, reason => 'x' x 501)->{status}, 400, 'a reason has a bound');
    is(refuse($order, 'staff', $page, reason => 'Buy it <again>')->{status}, 303, 'refused');
    is(state($order), 'refused:staff', 'with who did it');
    is(refuse($order, 'owner', $late)->{status}, 412, 'an owner is too late');
    is(waits($order), 0, 'the first page does not have it any more');
    is(entries($order, 'help_refused'), 1, 'the timeline has it once');
    my $html = page('GET', $order->{url})->{body};
    like($html, qr/Buy it &lt;again&gt;/, 'the customer reads why');
    like($html, qr/name="help"/, 'and may ask again');
    is((sql("SELECT count(*) FROM audit WHERE shop_id = $id AND action = 'help_refused'"))[0][0], 1,
        'the audit has it once');
};

subtest 'Refused when nobody asks' => sub {
    my $page = seen($order);
    unlike($page->{body}, qr/refuse-help/, 'there is no form');
    my $reply = refuse($order, 'staff', $page);
    is($reply->{status}, 409, 'and one that is sent all the same is refused');
    like($reply->{body}, qr/does not wait for help/, 'in words');
};

subtest 'Granted' => sub {
    ask($order);
    is(state($order), 'refused:staff asked:', 'asked again');
    my $reply = api('POST', "/orders/$order->{number}/grant-downloads", %key,
        json => { extend_days => 7 });
    is($reply->{status}, 200, 'the shop gives a week') or diag(explain($reply));
    is(state($order), 'refused:staff granted:', 'which grants the request');
    is(waits($order), 0, 'so nobody waits');
    unlike(page('GET', $order->{url})->{body}, qr/name="help"/, 'and the page is well');

    my $revoked = asking();
    api('POST', "/orders/$revoked->{number}/revoke", %key, json => {});
    is(state($revoked), 'asked:', 'revoking answers nothing');
    api('POST', "/orders/$revoked->{number}/restore", %key, json => {});
    is(state($revoked), 'granted:', 'restoring does');
};

subtest 'Both buttons at once' => sub {
    my $both = asking();
    my %page = map { $_ => seen($both, $_) } qw(staff owner);
    my @status = sort map { $_ // '' } @{ [ parallel(2, sub {
        my ($i) = @_;
        my $user = (qw(staff owner))[$i];
        return refuse($both, $user, $page{$user}, reason => "by $user")->{status};
    }) ] };
    is("@status", '303 412', 'one is refused');
    is(entries($both, 'help_refused'), 1, 'and one counts');
};

subtest 'Lapsed' => sub {
    my $old = asking();
    sql("UPDATE help_request SET asked_at = asked_at - 1209600000000 WHERE state = 'asked'");
    is(waits($old), 0, 'after 14 days nobody is asked');
    unlike(seen($old)->{body}, qr/refuse-help/, 'and nothing is to be answered');
    api('POST', "/orders/$old->{number}/grant-downloads", %key, json => { extend_days => 7 });
    is(state($old), 'asked:', 'nor granted');
};

subtest 'Many' => sub {
    asking() for 1 .. 21;
    my $body = visit('reader', 'GET', "/$id/")->{body};
    my ($list) = $body =~ m{<h2>Customers who ask for help</h2>\n<ul[^>]*>(.*?)</ul>\s*(.*)}s;
    is(scalar(() = $list =~ /<li>/g), 20, 'twenty are shown');
    like($body, qr{</ul>\n<p class="soft">There are more}, 'and that there are more');
};

$server->stop;
done_testing();
