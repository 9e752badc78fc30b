# Orders with items that nothing is mapped to: "unmapped":"skip" (contract, section 6).
#
# both: an order without assignments is read by other statements
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my $true = JSON::PP::true();
my $shop = new_shop();
my $mapped   = mapping_of($shop, [])->{storefront_product_id};
my $physical = product();

sub order { return api('GET', "/orders/$_[0]", key => $shop->{token}) }

sub skipped
{
    my ($product, $variant) = @_;
    return { storefront_product_id => $product, storefront_variant_id => $variant,
        code => 'product_not_mapped', message => 'No active mapping serves this product.' };
}

sub products { return [ map { $_->{storefront_product_id} } @{ $_[0]{json}{assignments} } ] }

sub count_of
{
    my ($table, $order) = @_;
    my ($row) = sql("SELECT count(*) FROM $table t JOIN orders o ON o.id = t.order_id"
        . " WHERE o.shop_id = $shop->{shop_id} AND o.storefront_order_id = '$order'");
    return $row->[0];
}

# --- one of several ------------------------------------------------------------------------------

my $mixed = digits();
my $variant = variant();
my $key   = idem();
my @cart  = ($physical, $mapped,
    { storefront_product_id => $mapped, storefront_variant_id => $variant },
    { storefront_product_id => product(), storefront_variant_id => '5' }, $physical);
my $other_variant = $cart[3]{storefront_product_id};
my @skip = (unmapped => 'skip', send_email => $true, storefront_customer_id => '501',
    customer => { email => "cart-$$\@buyer.example" });

my $made = assign($shop, $mixed, \@cart, @skip, idem => $key);
is_answer($made, 201, 'a cart with products that are not mapped');
is_deeply($made->{json}{skipped}, [ skipped($physical, undef),
    skipped($other_variant, 'gid://storefront/ProductVariant/5') ],
    'those are listed, each once');
is_deeply(products($made), [ $mapped, $mapped ], 'the others are assigned');
is($made->{json}{email}{status}, 'queued', 'the email is queued');
my $replay = assign($shop, $mixed, \@cart, @skip, idem => $key);
is($replay->{headers}{'idempotent-replayed'}, 'true', 'the same request is replayed');
is($replay->{body}, $made->{body}, 'with what it skipped');
ok(!exists order($mixed)->{json}{skipped}, 'GET knows nothing of what was skipped');

my $again = assign($shop, $mixed, \@cart, @skip);
is_answer($again, 200, 'the same cart under another key');
is_deeply($again->{json}{skipped}, $made->{json}{skipped}, 'skips the same');
is(count_of('assignment', $mixed), 2, 'assigns nothing twice');
is(count_of('email', $mixed), 1, 'and sends one email');

my $only = assign($shop, $mixed, [$physical], @skip);
is_answer($only, 200, 'only what is not mapped, to an order with assignments');
is_deeply(products($only), [ $mapped, $mapped ], 'leaves those as they are');
is(count_of('email', $mixed), 1, 'and sends nothing');

is_deeply(assign($shop, $mixed, [$mapped], unmapped => 'skip', storefront_customer_id => '501')
        ->{json}{skipped}, [], 'nothing to skip is an empty list');

# --- nothing mapped ------------------------------------------------------------------------------

my $empty = digits();
my $late  = product();
my @nothing = (@skip, fraud_check => $true, storefront_customer_id => '502');
my $stored = assign($shop, $empty, [$late], @nothing);
is_answer($stored, 201, 'an order with nothing mapped');
like($stored->{headers}{location}, qr{/orders/$empty\z}, 'is stored');
is_deeply($stored->{json}{assignments}, [], 'without assignments');
is_deeply($stored->{json}{skipped}, [ skipped($late, undef) ], 'everything is skipped');
is($stored->{json}{email}{status}, 'not_requested', 'no email is queued');
is($stored->{json}{fraud}{decision}, 'not_checked', 'no fraud check runs');
is_shape(order($empty)->{json}, 'whole_order', 'the order');
my $checks = api('GET', "/orders/$empty/diagnosis", key => $shop->{token})->{json};
is($checks->{first_failure}, 'page', 'its diagnosis says what is wrong');
is(page('GET', $stored->{json}{download_page_url})->{status}, 200, 'its page opens');
is_answer(assign($shop, $empty, [$late], @nothing), 200, 'once more: nothing was created');

is_answer(api('POST', '/mappings', key => $shop->{token},
    json => { storefront_product_id => $late }), 201, 'the product is mapped');
my $at_last = assign($shop, $empty, [$late], @skip, storefront_customer_id => '502');
is_answer($at_last, 201, 'then the same order');
is_deeply(products($at_last), [$late], 'is assigned');
is($at_last->{json}{email}{status}, 'queued', 'and emailed');

# --- refused -------------------------------------------------------------------------------------

unstored();
refused(assign($shop, digits(), [ $mapped, $physical ], unmapped => 'refuse'), 422,
    'product_not_mapped', 'the default, said', '/items/1/storefront_product_id');
refused(assign($shop, digits(), [$mapped], unmapped => 'ignore'), 400, 'invalid_request',
    'an unknown value', '/unmapped');
refused(assign($shop, $mixed, [$physical], unmapped => 'skip', storefront_customer_id => '503'),
    409, 'other_customer', 'the order of another customer');

done_testing();
