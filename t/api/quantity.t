# The quantity of an assignment, and what becomes of its license keys (contract, section 6): raised,
# lowered, revoked, with and without reclaim_on_revoke; the list of a tag's keys, and deleting one.
#
# both: keys are given out and taken back under other locks
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();

sub call
{
    my ($method, $path, @json) = @_;
    return api($method, $path, key => $shop->{token}, patient => 1, @json ? (json => @json) : ());
}

sub tag
{
    my ($keys, %members) = @_;
    my $reply = call('POST', '/license-key-tags', { name => 'Tag', %members });
    my $id = $reply->{json}{id} or die "the tag was answered with: $reply->{body}\n";
    call('POST', "/license-key-tags/$id/keys", { keys => $keys }) if @$keys;
    return $id;
}

# The paths of a new order of $quantity, and of its assignment.
sub order_of
{
    my ($tags, $quantity, %members) = @_;
    my $product = mapping_of($shop, [], license_key_tag_ids => $tags)->{storefront_product_id};
    my $id = digits();
    my $reply = assign($shop, $id, [ { storefront_product_id => $product, quantity => $quantity } ],
        %members);
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return ("/orders/$id", "/orders/$id/assignments/$reply->{json}{assignments}[0]{id}");
}

sub set
{
    my ($path, $quantity, @more) = @_;
    return call('PATCH', $path, { quantity => $quantity, @more });
}

# The quantity, the status, the keys, and how many are waited for.
sub state_of
{
    my ($assignment) = @_;
    return "$assignment->{quantity} $assignment->{status}: @{ $assignment->{license_keys} } "
        . "and $assignment->{license_keys_pending}";
}
sub now { my ($path) = @_; return state_of(call('GET', $path)->{json}) }

sub stock
{
    my ($id) = @_;
    my $tag = call('GET', "/license-key-tags/$id")->{json};
    return "$tag->{available} $tag->{assigned}";
}

# The keys of a tag with their states, the newest first.
sub listed
{
    my ($id, $query) = @_;
    my $reply = call('GET', "/license-key-tags/$id/keys" . ($query // ''));
    is_shape($reply->{json}, 'license_keys', "the list of tag $id");
    return join ' ', map { "$_->{license_key}=$_->{status}" } @{ $reply->{json}{data} };
}

# --- where keys go back --------------------------------------------------------------------------

my $back = tag([qw(A B C D)], reclaim_on_revoke => JSON::PP::true());
my ($order, $item) = order_of([$back], 3);
is(now($item), '3 active: A B C and 0', 'an order of three');
my $lowered = set($item, 2, reason => 'one seat less');
is_answer($lowered, 200, 'lowered to two');
is_shape($lowered->{json}, 'assignment', 'the answer');
is(state_of($lowered->{json}), '2 active: A B and 0', 'two keys stay');
is(stock($back), '2 2', 'the third is in stock again');
is(listed($back), 'D=available C=available B=assigned A=assigned', 'and free');
my ($event) = @{ call('GET', $order)->{json}{events} };
is_deeply([ @$event{qw(action key_id reason details)} ],
    [ 'quantity_changed', $shop->{key_id}, 'one seat less',
        { quantity_before => 3, quantity => 2 } ], 'the order has an event');
my $events = @{ call('GET', $order)->{json}{events} };
is(state_of(set($item, 2)->{json}), '2 active: A B and 0', 'two once more change nothing');
is(scalar @{ call('GET', $order)->{json}{events} }, $events, 'and add no event');

is(state_of(set($item, 6)->{json}), '6 active: A B C D and 2',
    'raised to six, it gets what there is, and waits for two');
my (undef, $other) = order_of([$back], 1);
is(now($other), '1 active:  and 1', 'another order waits behind it');
is(state_of(set($item, 3)->{json}), '3 active: A B C and 0', 'lowered to three');
is(now($other), '1 active: D and 0', 'the key goes to the order that waits');
is(stock($back), '0 4', 'none is left');

call('POST', "$order/revoke", {});
is(now($item), '3 revoked:  and 3', 'a revoked order keeps no key');
is(stock($back), '3 1', 'they are in stock');
($event) = @{ call('GET', $order)->{json}{events} };
is_deeply($event->{details}, { license_keys_reclaimed => 3 }, 'the event says how many');
is_error(set($item, 2), 409, 'access_revoked', 'the quantity of a revoked order');
call('POST', "$order/restore", {});
is(now($item), '3 active: A B C and 0', 'restored, it claims keys anew');

is(state_of(set($item, 0)->{json}), '3 revoked:  and 3',
    'lowered to 0 it is revoked, and keeps its quantity');
is(call('GET', $order)->{json}{access}{status}, 'active', 'the order is not');
is(state_of(set($item, 0)->{json}), '3 revoked:  and 3', '0 once more');
is_error(set($item, 1), 409, 'access_revoked', 'the quantity of a revoked assignment');

# --- assigning again -----------------------------------------------------------------------------

my $shown = tag([qw(T U V)], reclaim_on_revoke => JSON::PP::true());
my $sold  = mapping_of($shop, [], license_key_tag_ids => [$shown])->{storefront_product_id};
my $twice = digits();

sub again
{
    my (%item) = @_;
    return assign($shop, $twice, [ { storefront_product_id => $sold, %item } ])
        ->{json}{assignments}[0];
}

is(state_of(again(quantity => 2)), '2 active: T U and 0', 'an order of two');
is(state_of(again(quantity => 3)), '3 active: T U V and 0',
    'assigned again with three, it gets another key');
is(state_of(again()), '3 active: T U V and 0', 'without a quantity it keeps them');
is(state_of(again(quantity => 1)), '1 active: T and 0', 'with one it gives two back');
is(stock($shown), '2 1', 'which are in stock');

# --- where they stay -----------------------------------------------------------------------------

my $stay = tag([qw(K L M N)]);
($order, $item) = order_of([$stay], 3);
is(state_of(set($item, 1)->{json}), '1 active: K and 0', 'lowered, without reclaim_on_revoke');
is(stock($stay), '1 3', 'nothing is in stock again');
is(listed($stay), 'N=available M=withdrawn L=withdrawn K=assigned', 'two keys are withdrawn');
is(listed($stay, '?status=withdrawn'), 'M=withdrawn L=withdrawn', 'the list by status');
is(listed($stay, '?status=assigned'), 'K=assigned', 'assigned');
is(listed($stay, '?status=available'), 'N=available', 'available');
is(state_of(set($item, 2)->{json}), '2 active: K L and 0', 'raised, it gets its own again first');
is(state_of(set($item, 5)->{json}), '5 active: K L M N and 1', 'then from the stock');
call('POST', "$order/revoke", {});
is(now($item), '5 revoked: K L M N and 1', 'revoked, it keeps them');

# --- both, and several tags ----------------------------------------------------------------------

my ($one, $two) = (tag([qw(1 2 3)], reclaim_on_revoke => JSON::PP::true()), tag([qw(4 5 6)]));
($order, $item) = order_of([ $one, $two ], 3);
set($item, 2);
is(stock($one) . ', ' . stock($two), '1 2, 0 3', 'of two tags one reclaims');
call('PATCH', "/license-key-tags/$two", { reclaim_on_revoke => JSON::PP::true() });
call('POST', "$order/revoke", {});
is(stock($one) . ', ' . stock($two), '3 0, 3 0',
    'from when the shop chooses so, what was withdrawn goes back, too');

my $held = tag(['H1'], reclaim_on_revoke => JSON::PP::true());
($order, $item) = order_of([$held], 1);
held_by_check($shop, $order =~ s{.*/}{}r);
is(state_of(set($item, 2)->{json}), '2 active: H1 and 1', 'an order under review can be changed');
call('POST', "$order/reject", {});
is(stock($held), '1 0', 'once it is rejected, its key goes back');
is_error(set($item, 1), 409, 'access_revoked', 'and its quantity stays');
call('POST', "$order/approve", {});
is(now($item), '2 active: H1 and 1', 'approved after all, it gets the key again');

# --- bounds --------------------------------------------------------------------------------------

my $few = tag([]);
($order, $item) = order_of([$few], 1);
is_error(set($item, $_->[0]), 400, 'invalid_request', $_->[1], '/quantity')
    for [ -1, 'a quantity below 0' ], [ 1001, 'above 1,000' ], [ 1.5, 'between two' ],
    [ '2', 'as text' ], [ undef, 'null' ];
is_error(call('PATCH', $item, {}), 400, 'invalid_request', 'no quantity', '/quantity');
is(state_of(set($item, 1000)->{json}), '1000 active:  and 1000', 'the largest quantity');
my @products = map { mapping_of($shop, [], license_key_tag_ids => [$few])->{storefront_product_id} }
    1 .. 5;
my $many = digits();
my $reply = assign($shop, $many,
    [ map { { storefront_product_id => $_, quantity => 999 } } @products ]);
my @items = map { "/orders/$many/assignments/$_->{id}" } @{ $reply->{json}{assignments} };
is(set($_, 1000)->{status}, 200, 'an order of almost 5,000 license keys') for @items[ 0 .. 4 ];
push @products, mapping_of($shop, [], license_key_tag_ids => [$few])->{storefront_product_id};
is_error(assign($shop, $many, [ $products[5] ]), 422, 'too_many_license_keys',
    'which gets no more');
set($items[0], 999);
is(assign($shop, $many, [ $products[5] ])->{status}, 201, 'but where it has given one back');
is_error(set($items[0], 1000), 422, 'too_many_license_keys', 'and then the quantity is refused');
is(now($items[0]), '999 active:  and 999', 'and stays');

# --- once ----------------------------------------------------------------------------------------

my $raced = tag([ map { "R$_" } 1 .. 3 ], reclaim_on_revoke => JSON::PP::true());
($order, $item) = order_of([$raced], 3);
my @same = parallel(8, sub {
    api('PATCH', $item, key => $shop->{token}, idem => 'lower-once', json => { quantity => 2 },
        patient => 1);
});
is_deeply([ grep { $_ ne 200 } map { $_->{status} // $_->{died} } @same ], [],
    'one request, sent eight times at once');
my $first = api('PATCH', $item, key => $shop->{token}, idem => 'lower-once',
    json => { quantity => 2 });
set($item, 3);
my $again = api('PATCH', $item, key => $shop->{token}, idem => 'lower-once',
    json => { quantity => 2 });
is($again->{body}, $first->{body}, 'a replay has the first answer');
is(now($item) . ', ' . stock($raced), '3 active: R1 R2 R3 and 0, 0 3', 'and changes nothing');
my @mixed = parallel(12, sub { my ($i) = @_; set($item, 1 + $i % 3) });
is_deeply([ grep { $_ ne 200 } map { $_->{status} // $_->{died} } @mixed ], [],
    'twelve requests at once');
my ($has, $count) = (call('GET', $item)->{json}, 0);
is(scalar @{ $has->{license_keys} }, $has->{quantity}, 'leave as many keys as the quantity');
is(stock($raced), (3 - $has->{quantity}) . " $has->{quantity}", 'and the rest in stock');

# Eight orders of one tag are revoked and restored at once, each with a key.
my $crowd = tag([ map { "S$_" } 1 .. 4 ], reclaim_on_revoke => JSON::PP::true());
my @orders = map { [ order_of([$crowd], 1) ] } 1 .. 8;
for (1 .. 2) {
    my @moved = parallel(8, sub {
        my ($i) = @_;
        call('POST', "$orders[$i][0]/revoke", {});
        call('POST', "$orders[$i][0]/restore", {});
    });
    is_deeply([ grep { $_ ne 200 } map { $_->{status} // $_->{died} } @moved ], [],
        'eight orders revoked and restored at once');
}
my @keys = map { @{ call('GET', $_->[1])->{json}{license_keys} } } @orders;
is_deeply([ sort @keys ], [qw(S1 S2 S3 S4)], 'each key has one customer');
is(stock($crowd), '0 4', 'and none is lost');

# --- the list, and deleting ----------------------------------------------------------------------

my $pages = tag([ map { "P$_" } 1 .. 7 ]);
my (@seen, $cursor);
do {
    my $page = call('GET', "/license-key-tags/$pages/keys?limit=3"
        . (defined $cursor ? "&cursor=$cursor" : ''))->{json};
    push @seen, map { $_->{license_key} } @{ $page->{data} };
    $cursor = $page->{next_cursor};
} while (defined $cursor);
is("@seen", 'P7 P6 P5 P4 P3 P2 P1', 'the list has pages');
is_error(call('GET', "/license-key-tags/$pages/keys?status=lost"), 400, 'invalid_request',
    'an unknown status', '/status');
my $reader = MDL::Test::new_key($shop->{shop_id}, scope => 'read');
is(api('GET', "/license-key-tags/$pages/keys", key => $reader->{token})
    ->{json}{data}[0]{license_key}, undef, 'a key that only reads sees no license key');

my %ids = map { $_->{license_key} => $_->{id} }
    @{ call('GET', "/license-key-tags/$stay/keys")->{json}{data} };
my %pages = map { $_->{license_key} => $_ }
    @{ call('GET', "/license-key-tags/$pages/keys")->{json}{data} };
my $path = "/license-key-tags/$pages/keys";
is(call('DELETE', "$path/$pages{P3}{id}")->{status}, 204, 'a key in stock can be deleted');
is(stock($pages), '6 0', 'the stock counts it');
is_error(call('DELETE', "$path/$pages{P3}{id}"), 404, 'license_key_not_found', 'once');
is_error(call('DELETE', "$path/$ids{K}"), 404, 'license_key_not_found', 'a key of another tag');
is_error(call('DELETE', "/license-key-tags/$stay/keys/$ids{K}"), 409, 'license_key_assigned',
    'a key that a customer has');
is_error(call('DELETE', "$path/x"), 404, 'license_key_not_found', 'no id');
is_deeply(call('POST', $path, { keys => [ 'P3', 'P4' ] })->{json},
    { added => 1, duplicates => 1, handed_out => 0 }, 'it can be added again');
my $spare = tag([qw(W1 W2)]);
($order, $item) = order_of([$spare], 2);
set($item, 1);
my ($withdrawn) = @{ call('GET', "/license-key-tags/$spare/keys?status=withdrawn")->{json}{data} };
is("$withdrawn->{license_key} $withdrawn->{storefront_order_id}", 'W2 ' . ($order =~ s{.*/}{}r),
    'a withdrawn key says whose it was');
is(call('DELETE', "/license-key-tags/$spare/keys/$withdrawn->{id}")->{status}, 204,
    'and can be deleted');
is(stock($spare), '0 1', 'the tag counts it no more');
is(state_of(set($item, 2)->{json}), '2 active: W1 and 1', 'it does not come back');

my $ended = tag([qw(E1 E2)]);
($order, $item) = order_of([$ended], 2);
set($item, 1);
call('DELETE', "/mappings/$_->{id}") for grep { "@{ $_->{license_key_tag_ids} }" eq $ended }
    @{ call('GET', '/mappings')->{json}{data} };
is(call('DELETE', "/license-key-tags/$ended")->{status}, 204,
    'a tag that nobody waits for can be deleted');
is(state_of(set($item, 3)->{json}), '3 active: E1 E2 and 0',
    'what was withdrawn comes back then, too, and nothing is waited for');

done_testing();
