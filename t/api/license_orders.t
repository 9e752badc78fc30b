# License keys of orders (contract, section 6): which keys an order gets when it is assigned,
# revoked or restored, and fifty customers at once. The tags themselves are tested in
# t/api/license_keys.t.
#
# both: keys are given out under other locks
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();

sub tag
{
    my ($name, @keys) = @_;
    my $reply = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => $name });
    my $id = $reply->{json}{id} or die "the tag was answered with: $reply->{body}\n";
    add($id, @keys) if @keys;
    return $id;
}

sub add
{
    my ($id, @keys) = @_;
    return api('POST', "/license-key-tags/$id/keys", key => $shop->{token},
        json => { keys => \@keys });
}

sub order { my ($id) = @_; return api('GET', "/orders/$id", key => $shop->{token})->{json} }
sub act { my ($id, $action) = @_; return api('POST', "/orders/$id/$action", key => $shop->{token}) }

# The first assignment's keys, and how many it still waits for.
sub keys_of
{
    my ($order) = @_;
    my $assignment = $order->{assignments}[0];
    return join(' ', @{ $assignment->{license_keys} }) . " and $assignment->{license_keys_pending}";
}

sub stock
{
    my ($id) = @_;
    my $tag = api('GET', "/license-key-tags/$id", key => $shop->{token})->{json};
    return "$tag->{available} $tag->{assigned}";
}

# --- one customer --------------------------------------------------------------------------------

my ($one, $two) = (tag('One', qw(A B C)), tag('Two', qw(X)));
my $product = mapping_of($shop, [], license_key_tag_ids => [ $two, $one ])->{storefront_product_id};
my $id      = digits();
my $reply   = assign($shop, $id, [ { storefront_product_id => $product, quantity => 2 } ]);
is_answer($reply, 201, 'a quantity of two of a product with two tags');
is_deeply([ sort @{ $reply->{json}{assignments}[0]{license_keys} } ], [qw(A B X)],
    'the answer has two keys of one tag and the only key of the other');
is($reply->{json}{assignments}[0]{license_keys_pending}, 1, 'one is pending');
is(stock($one) . ', ' . stock($two), '1 2, 0 1', 'the tags count them');
is_answer(assign($shop, $id, [ { storefront_product_id => $product, quantity => 2 } ]), 200,
    'the same assignment again');
is(stock($one) . ', ' . stock($two), '1 2, 0 1', 'gets no second key');

act($id, 'revoke');
is($_->{status}, 200, 'keys that are added while an order is revoked') for add($two, 'Y');
is(stock($two), '1 1', 'stay available');
is(scalar @{ order($id)->{assignments}[0]{license_keys} }, 3, 'the order keeps those it has');
act($id, 'restore');
is(stock($one) . ', ' . stock($two), '1 2, 0 2',
    'after the order is restored it gets the key that it waits for, and no other');
is(order($id)->{assignments}[0]{license_keys_pending}, 0, 'and waits for none');
act($id, $_) for qw(revoke restore);
is(stock($one) . ', ' . stock($two), '1 2, 0 2',
    'revoking and restoring it again gives no further key');

my $ended = tag('Ended', 'E-1');
my $sells = mapping_of($shop, [], license_key_tag_ids => [$ended]);
$id = digits();
assign($shop, $id, [ { storefront_product_id => $sells->{storefront_product_id}, quantity => 2 } ]);
is(keys_of(order($id)), 'E-1 and 1', 'an order waits for its second key');
act($id, 'revoke');
api('PUT', "/mappings/$sells->{id}", key => $shop->{token},
    json => { storefront_product_id => $sells->{storefront_product_id} });
is(api('DELETE', "/license-key-tags/$ended", key => $shop->{token})->{status}, 204,
    'a tag can be deleted although a revoked order waits for it');
act($id, 'restore');
is(keys_of(order($id)), 'E-1 and 0',
    'after the order is restored it no longer waits for a key of the deleted tag');

# --- fifty orders at once ------------------------------------------------------------------------

my $tag = tag('Fifty');
add($tag, map { sprintf 'K-%02d', $_ } 1 .. 30);
$product = mapping_of($shop, [], license_key_tag_ids => [$tag])->{storefront_product_id};
my @orders  = map { digits() } 1 .. 50;
my @answers = parallel(50,
    sub { my ($i) = @_; return assign($shop, $orders[$i], [$product], patient => 1) });
is(scalar(grep { ($_->{status} // 0) == 201 } @answers), 50, 'fifty assignments at once succeed')
    or diag(map { $_->{died} // "$_->{status} $_->{body}\n" } @answers);

# Sorts the orders by their assignments' ids, oldest first.
my %before = map { $_ => order($_) } @orders;
@orders = sort { $before{$a}{assignments}[0]{id} <=> $before{$b}{assignments}[0]{id} } @orders;
my @given = map { @{ $before{$_}{assignments}[0]{license_keys} } } @orders;
is_deeply([ sort @given ], [ map { sprintf 'K-%02d', $_ } 1 .. 30 ],
    'thirty keys are assigned, each once');
my @waiting = grep { $before{$_}{assignments}[0]{license_keys_pending} } @orders;
is(scalar @waiting, 20, 'twenty orders wait');
is(scalar(grep { @{ $before{$_}{assignments}[0]{license_keys} } } @waiting), 0, 'without a key');
is(stock($tag), '0 30', 'the tag has none left');

my @later = map { sprintf 'L-%02d', $_ } 1 .. 20;
is_deeply(add($tag, @later[ 0 .. 4 ])->{json}, { added => 5, duplicates => 0, handed_out => 5 },
    'five more keys');
is_deeply([ map { keys_of(order($_)) } @waiting[ 0 .. 5 ] ],
    [ (map { "$_ and 0" } @later[ 0 .. 4 ]), ' and 1' ], 'go to the five oldest orders');
add($tag, @later[ 5 .. 19 ]);
is_deeply([ map { keys_of(order($_)) } @waiting ], [ map { "$_ and 0" } @later ],
    'fifteen more keys go to the rest');
is(stock($tag), '0 50', 'all keys are assigned');
my ($event) = grep { $_->{action} eq 'license_keys_assigned' } @{ order($waiting[0])->{events} };
is_deeply($event->{details}, { license_keys => 1 }, "the order has an event for its key");
is($event->{key_id}, $shop->{key_id}, 'with the API key that added it');
is_deeply($event->{assignment_ids}, [ $before{ $waiting[0] }{assignments}[0]{id} ],
    'and the assignment');

done_testing();
