# The operator blocks a shop in the browser, with a reason and after a question that names it.
#
# once: t/operate/takedown.t blocks shops on both databases
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $XSS = '"><script>alert(1)</script>';

my $server = settings_server();
my $shop   = new_shop(name => "Shop $XSS");
my $id     = $shop->{shop_id};
my $other  = new_shop();
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ];
told('member', 'add', 'operator', 'operator');

my $asset = ready_asset($shop, 'book.pdf', 'the book');
my $order = assign($shop, '7001', [ mapping_of($shop, [ $asset->{id} ])->{storefront_product_id} ])
    ->{json};
my $count = 2100; # more than two transactions
for my $from (0 .. 6) {
    my $rows = join ', ', map { sprintf "('job_0%05d', %d, 'storefront_lookup', 'lookup', "
        . "'queued', 0, 5, %d000000, 0, 0, 0)", $from * 300 + $_, $id, time + 86400 } 1 .. 300;
    sql("INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, due_at, "
        . "lease_token, bytes_received, created_at) VALUES $rows");
}

sub held
{
    return (sql("SELECT count(*) FROM job WHERE shop_id = $id AND lane = 'blocked-lookup'"))[0][0];
}

sub shown { my ($user) = @_; return visit($user, 'GET', "/$id/")->{body} }

# --- blocking ------------------------------------------------------------------------------------

like(shown('operator'), qr{<a href="/settings/$id/block">Block this shop</a>},
    'an operator can block a shop');
unlike(shown('owner'), qr{/block"}, 'an owner can not');
my $ask = visit('operator', 'GET', "/$id/block");
like($ask->{body},
    qr{<h1>Block\ <bdi>Shop\ &quot;&gt;&lt;script&gt;
        .*<button\ type="submit"\ class="danger">Block\ <bdi>Shop\ &quot;}sx,
    'the question names the shop');
like(visit('operator', 'GET', "/$id/block", headers => { 'accept-language' => 'de' })->{body},
    qr{<bdi>Shop [^<]*</bdi> blockieren\?}, 'also in German');

for my $reason ('', ' ', 'x' x 501) {
    my $refused = submit('operator', visit('operator', 'GET', "/$id/block"), "/$id/block",
        { reason => $reason });
    is($refused->{status}, 400, 'a reason of ' . length($reason) . ' bytes is refused');
    like($refused->{body}, qr/role="alert" id="problem">\s*A reason has 1 to 500 characters/,
        'with a sentence');
}
is(api('GET', '/ping', key => $shop->{token})->{status}, 200, 'and has no effect');

for my $user (qw(owner staff)) {
    my $form = own_form($user, $user, "/$id/members");
    is(visit($user, 'GET', "/$id/block")->{status}, 403, "$user is not asked");
    is(submit($user, $form, "/$id/block", { reason => 'Mine' })->{status}, 403,
        'and blocks nothing');
}
is(submit('operator', $ask, "/$id/block", { reason => "Complaint $XSS" })->{status}, 303,
    'an operator blocks it');
is(submit('operator', $ask, "/$id/block", { reason => 'Again' })->{status}, 409,
    'once with a form');
wait_for(sub { api('GET', '/ping', key => $shop->{token})->{status} == 403 }, 60,
    'the key to be refused');
is(api('GET', '/ping', key => $shop->{token})->{json}{error}{code}, 'shop_blocked',
    'its key is refused');
is(api('GET', '/ping', key => $other->{token})->{status}, 200, "another shop's is not");
is(page('GET', $order->{download_page_url})->{status}, 403, 'its pages are');
is(held(), $count, 'and its jobs wait');
like(visit('operator', 'GET', "/$id/?done=shop_blocked")->{body},
    qr{role="status">The\ shop\ is\ blocked
        .*The\ reason\ given:\ Complaint\ &quot;&gt;&lt;script&gt;}sx,
    'the operator reads so, and why');
unlike(shown('operator'), qr/Nothing needs anybody|Block this shop/,
    'and is not asked to block it again');
like(shown('owner'), qr/This shop is blocked.*Ask the operator/, 'the owner reads so, too');
unlike(shown('owner') . visit('owner', 'GET', "/$id/audit")->{body}, qr/Complaint/, 'but not why');
like(visit('operator', 'GET', "/$id/audit")->{body},
    qr{: blocked <span class="soft"><bdi>Complaint &quot;.*<bdi>operator<}s,
    'the audit has who blocked it');

# --- the end of it -------------------------------------------------------------------------------

is(submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/unblock", {})->{status}, 403,
    'an owner can not end it');
is(submit('operator', visit('operator', 'GET', "/$id/"), "/$id/unblock", {})->{status}, 303,
    'an operator can');
wait_for(sub { api('GET', '/ping', key => $shop->{token})->{status} == 200 }, 60,
    'the key to work');
is(page('GET', $order->{download_page_url})->{status}, 200, 'all of it goes on');
is(held(), 0, 'its jobs too');
like(visit('operator', 'GET', "/$id/?done=shop_unblocked")->{body},
    qr{role="status">The shop is no longer blocked}, 'which the page says');
my @stale = map { visit('operator', 'GET', "/$id/$_") } '', 'block';
is(submit('operator', $stale[0], "/$id/suspend", {})->{status}, 303,
    'one of two operators suspends it');
my $told = submit('operator', $stale[0], "/$id/suspend", {});
is($told->{status}, 409, 'once');
$told = submit('operator', $stale[1], "/$id/block", { reason => 'Mine' });
is($told->{status}, 412, 'the other, who has not seen that, is told');
like($told->{body}, qr/Somebody has changed this.*value="suspended".*value="Mine"/s,
    'and has what was typed');
is(held(), 0, 'nothing was done');
is(submit('operator', visit('operator', 'GET', "/$id/"), "/$id/approve", {})->{status}, 303,
    'it is approved again');
is(submit('operator', $stale[0] = visit('operator', 'GET', "/$id/"), "/$id/suspend", {})->{status},
    303, 'suspended');
is(submit('operator', visit('operator', 'GET', "/$id/"), "/$id/approve", {})->{status}, 303,
    'and approved');
is(visit('operator', 'GET', '/999999/block')->{status}, 404,
    'a shop that is not there can not be blocked');

is_deeply([ map { "$_->[0] $_->[1]" } sql(
    "SELECT action, user_name FROM audit WHERE noun = 'shop' AND via = 'settings' ORDER BY id") ],
    [ 'blocked operator', 'unblocked operator', 'suspended operator', 'approved operator',
        'suspended operator', 'approved operator' ], 'each is one entry of the audit');

$server->stop;
done_testing;
