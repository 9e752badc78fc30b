# Assigning downloads to orders (contract, section 6): POST and GET /orders/{id}/assignments,
# GET /orders/{id}.
#
# once: flow.t, idempotency.t, quantity.t and openapi.t assign on both databases
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());

my $shop  = new_shop();
my $token = $shop->{token};

sub order { my ($id, $of) = @_; return api('GET', "/orders/$id", key => ($of // $shop)->{token}) }

sub assignments_of
{
    my ($id, $of) = @_;
    return api('GET', "/orders/$id/assignments", key => ($of // $shop)->{token});
}

sub by_id { my (@list) = @_; return [ sort { $a->{id} <=> $b->{id} } @list ] }

sub rows_of
{
    my ($order) = @_;
    my ($row) = sql('SELECT count(*) FROM assignment a JOIN orders o ON o.id = a.order_id'
        . " WHERE o.shop_id = $shop->{shop_id} AND o.storefront_order_id = '$order'");
    return $row->[0];
}

sub emails_of
{
    my ($order) = @_;
    my ($row) = sql('SELECT count(*) FROM email e JOIN orders o ON o.id = e.order_id'
        . " WHERE o.shop_id = $shop->{shop_id} AND o.storefront_order_id = '$order'");
    return $row->[0];
}

my $one = ready_asset($shop, "orders-$$-one.txt", "number one\n");
my $two = ready_asset($shop, "orders-$$-two.txt", "and two\n");
my $both = mapping_of($shop, [ $two->{id}, $one->{id} ], download_limit => 3);
my $none = mapping_of($shop, [], download_type => 'FILES');

sub shown
{
    my ($asset, $limit) = @_;
    return {
        file_id => $asset->{id}, filename => $asset->{filename}, size => $asset->{size},
        sha256 => $asset->{sha256}, status => 'ready', downloads_used => 0,
        download_limit => $limit,
    };
}

# --- the smallest order --------------------------------------------------------------------------

my $small = assign($shop, '450789469', [ $both->{storefront_product_id} ]);
is_answer($small, 201, 'an assignment');
my $got = $small->{json};
is_shape($got, 'order', 'the order');
is($got->{storefront_order_id}, '450789469', "it has the storefront's id");
is_deeply($got->{access}, { status => 'active', reason => undef, expires_at => undef },
    'access is given');
is_deeply($got->{fraud}, { decision => 'not_checked', level => undef, signals => [] },
    'no fraud check was requested');
is_deeply($got->{email},
    { status => 'not_requested', to => undef, attempts => 0, last_error => undef,
        sent_at => undef },
    'no email was requested');
my $customer_id = delete $got->{customer}{id};
is_deeply($got->{customer},
    { storefront_customer_id => '77', email => undef, first_name => undef, last_name => undef,
        locale => undef },
    'the customer has only an id');
like($got->{download_page_url}, qr{^\Q@{[ public_url() ]}\E/\S+\z},
    'the page is under the public URL');
unlike($got->{download_page_url}, qr/450789469/, "and does not contain the order's id");
is(page('GET', $got->{download_page_url})->{status}, 200, 'the page opens');
is(scalar @{ $got->{assignments} }, 1, 'there is one assignment');
my $assignment = $got->{assignments}[0];
my $first_id   = delete $assignment->{id};
is($assignment->{created_at}, $got->{created_at}, 'it was created with the order');
is_deeply($assignment, {
    storefront_product_id => $both->{storefront_product_id},
    storefront_variant_id => undef,
    title                 => 'Product 1001',
    quantity              => 1,
    status                => 'active',
    mapping_id            => $both->{id},
    download_type         => 'ZIP',
    files                 => [ shown($two, 3), shown($one, 3) ],
    links                 => [],
    license_keys          => [],
    license_keys_pending  => 0,
    created_at            => $got->{created_at},
    expires_at            => undef,
}, 'the assignment, with its files in the order of the mapping');

my $read = order('450789469');
is_answer($read, 200, 'the order can be read');
is_shape($read->{json}, 'whole_order', 'the order that is read');
is_deeply([ map { [ @{$_}{qw(action key_id assignment_ids details)} ] }
    @{ delete $read->{json}{events} } ],
    [ [ 'assigned', $shop->{key_id}, [$first_id],
        { send_email => $false, fraud_check => $false } ] ],
    'its event has the API key');
is_deeply(delete $read->{json}{downloads}, [], 'it has no downloads');
$read->{json}{customer}{id} == $customer_id and delete $read->{json}{customer}{id};
$read->{json}{assignments}[0]{id} == $first_id and delete $read->{json}{assignments}[0]{id};
is_deeply($read->{json}, $got, 'the rest is as in the first answer');

my $list = assignments_of('450789469');
is_answer($list, 200, 'its assignments can be read');
is_shape($list->{json}, 'assignments', 'the list of assignments');
is_deeply([ @{ $list->{json} }{qw(has_more next_cursor)} ], [ $false, undef ], 'there are no more');
is(delete $list->{json}{data}[0]{id}, $first_id, 'the assignment has the same id');
is_deeply($list->{json}{data}, $got->{assignments}, 'and the same members as in the order');

# --- assigning again -----------------------------------------------------------------------------

my $again = assign($shop, '450789469', [ $both->{storefront_product_id} ]);
is_answer($again, 200, 'the same assignment again');
is_shape($again->{json}, 'order', 'the same order');
is($again->{json}{assignments}[0]{id}, $first_id, 'the same assignment');
is($again->{json}{customer}{id}, $customer_id, 'the same customer');
is(rows_of('450789469'), 1, 'which is stored once');
is_answer(
    assign($shop, '450789469',
        [ { storefront_product_id => $both->{storefront_product_id}, quantity => 5 } ]),
    200, 'the same product with another quantity'
);
is(order('450789469')->{json}{assignments}[0]{quantity}, 5, 'the quantity is the new one');
is(order('450789469')->{json}{assignments}[0]{files}[0]{download_limit}, 15,
    'and so often may each file be downloaded');
my ($changed) = @{ order('450789469')->{json}{events} };
is_deeply([ @$changed{qw(action key_id details)} ],
    [ 'quantity_changed', $shop->{key_id}, { quantity_before => 1, quantity => 5 } ],
    'the order has an event');
is(assign($shop, '450789469', [ $both->{storefront_product_id} ])->{json}{assignments}[0]{quantity},
    5, 'without a quantity it stays');
my $versioned = sub {
    my ($quantity) = @_;
    return api('POST', '/orders/450789469/assignments', key => $token,
        idem => "again-$$-$quantity", json => { storefront_customer_id => '77', items =>
        [ { storefront_product_id => $both->{storefront_product_id}, quantity => $quantity } ] });
};
is($versioned->(2)->{json}{assignments}[0]{quantity}, 2, 'it can be lowered');
$versioned->(1);
is($versioned->(2)->{headers}{'idempotent-replayed'}, 'true',
    'the same request that comes late once more');
is(order('450789469')->{json}{assignments}[0]{quantity}, 1, 'does not change it back');

my $more = assign($shop, '450789469',
    [ $both->{storefront_product_id}, $none->{storefront_product_id} ]);
is_answer($more, 201, 'another product');
is_shape($more->{json}, 'order', 'the order with two products');
my ($old, $new) = @{ by_id(@{ $more->{json}{assignments} }) };
is($old->{id}, $first_id, 'the first is still there');
is_deeply([ @{$new}{qw(mapping_id download_type files)} ], [ $none->{id}, 'FILES', [] ],
    'the second has the mapping, type and files of its mapping');
is_deeply(by_id(@{ assignments_of('450789469')->{json}{data} }), [ $old, $new ],
    'the list has both');

# --- every member --------------------------------------------------------------------------------

my $customer = "orders-$$\@buyer.example";
my $large = assign($shop, '12345678901234567890',
    [ { storefront_product_id => $both->{storefront_product_id}, quantity => 1000 } ],
    storefront_customer_id => '98765432109876543210', send_email => $true, fraud_check => $true,
    customer => { email => $customer, first_name => "Zo\x{eb}",
        last_name => "O\x{2019}Neill \x{1f600}", locale => 'de-CH' });
is_answer($large, 201, 'an assignment with all members');
is_shape($large->{json}, 'order', 'the order with all members');
$got = $large->{json};
is($got->{storefront_order_id}, '12345678901234567890', 'an order id of twenty digits');
is_deeply([ @{ $got->{customer} }{qw(storefront_customer_id email first_name last_name locale)} ],
    [ '98765432109876543210', $customer, "Zo\x{eb}", "O\x{2019}Neill \x{1f600}", 'de-CH' ],
    'the customer');
is($got->{assignments}[0]{quantity}, 1000, 'the quantity');
is($got->{fraud}{decision}, 'passed', 'the requested fraud check has passed');
is_deeply($got->{email},
    { status => 'queued', to => $customer, attempts => 0, last_error => undef, sent_at => undef },
    'the email is queued');
my $sent = wait_for(sub {
    my $look = order('12345678901234567890')->{json};
    return $look->{email}{status} eq 'sent' ? $look : undef;
}, 60, 'the email to be sent');
is_shape($sent, 'whole_order', 'the order after the email');
is_deeply([ @{ $sent->{email} }{qw(to attempts last_error)} ], [ $customer, 1, undef ],
    'the email was sent at the first attempt');
cmp_ok($sent->{email}{sent_at}, 'ge', $got->{created_at}, 'after the order was created');
my $mail = wait_mail($customer);
ok(scalar(grep { $_ eq $got->{download_page_url} } @{ $mail->{urls} }),
    "the email has the page's address")
    or diag("@{ $mail->{urls} }");

is_answer(
    assign($shop, '12345678901234567890', [ $both->{storefront_product_id} ],
        storefront_customer_id => '98765432109876543210', send_email => $true),
    200, 'the same assignment again with send_email'
);
is(emails_of('12345678901234567890'), 1, 'sends no second email');
is(order('12345678901234567890')->{json}{email}{status}, 'sent', 'and the first is still sent');

# --- the customer --------------------------------------------------------------------------------

my @with = (storefront_customer_id => '500');
is_answer(assign($shop, digits(), [ $none->{storefront_product_id} ], @with,
    customer => { email => 'first@buyer.example', first_name => 'Ada', locale => 'en' }), 201,
    'a customer');
my $known = assign($shop, digits(), [ $none->{storefront_product_id} ], @with,
    customer => { last_name => 'Lovelace' })->{json}{customer};
is_deeply([ @{$known}{qw(email first_name last_name locale)} ],
    [ 'first@buyer.example', 'Ada', 'Lovelace', 'en' ],
    'members that are left out stay, new ones are added');
is(assign($shop, digits(), [ $none->{storefront_product_id} ], @with)->{json}{customer}{id},
    $known->{id}, 'another order has the same customer');
my $moved = assign($shop, digits(), [ $none->{storefront_product_id} ], @with, send_email => $true,
    customer => { email => 'second@buyer.example' });
is($moved->{json}{customer}{email}, 'second@buyer.example', 'an address can change');
is($moved->{json}{email}{to}, 'second@buyer.example', 'and the email goes there');
my $cleared = assign($shop, digits(), [ $none->{storefront_product_id} ], @with,
    customer => { email => undef, locale => undef })->{json}{customer};
is_deeply([ @{$cleared}{qw(email first_name last_name locale)} ],
    [ undef, 'Ada', 'Lovelace', undef ], 'null clears a member');
my $trimmed = assign($shop, digits(), [ $none->{storefront_product_id} ], @with,
    customer => { email => "\x{feff} third\@buyer.example \n", first_name => "Ada\x{a0}",
        last_name => '' });
is_answer($trimmed, 201, 'unseen edges refuse no order, nor does an empty member');
is_deeply([ @{ $trimmed->{json}{customer} }{qw(email first_name last_name)} ],
    [ 'third@buyer.example', 'Ada', undef ], 'the edges go, and what is empty is null');
is_answer(assign($shop, digits(), [ $none->{storefront_product_id} ], @with, client_ip => '',
    customer => { email => " \x{200b}", first_name => ' ', locale => '' }), 201, 'nor do blanks');
is(api('GET', '/orders?email=' . '%20third@buyer.example%C2%A0', key => $shop->{token})->{status},
    200, 'a filter has none either');

for my $locale (qw(pt-BR zh-Hant-TW de_DE sl-rozaj-1994 x-a en-x-1)) {
    is(assign($shop, digits(), [ $none->{storefront_product_id} ], @with,
        customer => { locale => $locale })
            ->{json}{customer}{locale}, $locale, "the locale $locale");
}

unstored();
my $contested = assign($shop, '450789469', [ $both->{storefront_product_id} ],
    storefront_customer_id => '78', customer => { email => 'thief@buyer.example' });
refused($contested, 409, 'other_customer', "another customer's order");

# --- a storefront merges two customers -----------------------------------------------------------

my $merged = digits();
my $ada    = "ada-$$\@buyer.example";
my @items  = ([ $none->{storefront_product_id} ], send_email => $true);
my $before = assign($shop, $merged, @items, storefront_customer_id => '510',
    customer => { email => $ada, last_name => 'Byron' })->{json};
wait_mail($ada);
unstored();
refused(assign($shop, $merged, @items, storefront_customer_id => '511'), 409, 'other_customer',
    'an order by the id of a customer whose address is not known');
refused(assign($shop, $merged, @items, storefront_customer_id => '511',
    customer => { email => "eve-$$\@buyer.example" }),
    409, 'other_customer', 'and by one with another address');
my $after = assign($shop, $merged, @items, storefront_customer_id => '511',
    customer => { email => uc $ada, last_name => 'Lovelace' });
is_answer($after, 200, 'by one with the same address, in any case');
is_deeply([ @{ $after->{json}{customer} }{qw(storefront_customer_id last_name)} ],
    [ '511', 'Lovelace' ], 'it is theirs');
is($after->{json}{download_page_url}, $before->{download_page_url}, 'its page is the same');
is(emails_of($merged), 1, 'and no second email is sent');
cmp_ok($after->{json}{updated_at}, 'gt', $before->{updated_at}, 'it has a new version');
is(join(' ', map { $_->{storefront_order_id} }
    @{ api('GET', '/orders?customer=511', key => $token)->{json}{data} }), $merged,
    'it is in the list of that customer');
is_answer(assign($shop, $merged, @items, storefront_customer_id => '511'), 200,
    'from then on the id is enough');
unstored();
refused(assign($shop, '450789469', [ $both->{storefront_product_id} ],
    storefront_customer_id => '511', customer => { email => $ada }),
    409, 'other_customer', 'an order of a customer without an address');

# A first request that forgot the customer.
my $guest = digits();
is_answer(assign($shop, $guest, [ $none->{storefront_product_id} ],
    storefront_customer_id => undef), 201, 'an order of a guest');
my @known = ([ $none->{storefront_product_id} ], storefront_customer_id => digits(),
    customer => { email => "late-$$\@buyer.example" });
unstored();
my $late = assign($shop, $guest, @known);
refused($late, 409, 'other_customer', 'the same order of a customer');
like($late->{json}{error}{message}, qr/PATCH .orders/, '… says what to do');
api('PATCH', "/orders/$guest", key => $token,
    json => { email => "late-$$\@buyer.example" });
is_answer(assign($shop, $guest, @known), 200, '… and after that it is theirs');

# --- emails without an address -------------------------------------------------------------------

my $silent = digits();
my $unsent = assign($shop, $silent, [ $none->{storefront_product_id} ],
    storefront_customer_id => '600', send_email => $true);
is_answer($unsent, 201, 'an order whose customer has no address');
is_deeply($unsent->{json}{email},
    { status => 'no_recipient', to => undef, attempts => 0, last_error => undef, sent_at => undef },
    'its email has no recipient');
my $told = assign($shop, $silent, [ $none->{storefront_product_id} ],
    storefront_customer_id => '600',
    send_email => $true, customer => { email => "silent-$$\@buyer.example" });
is_answer($told, 200, 'the same assignment with an address');
is($told->{json}{email}{to}, "silent-$$\@buyer.example", 'sends the email there');
wait_mail("silent-$$\@buyer.example");

my $asked = digits();
@with = (storefront_customer_id => '601', customer => { email => "asked-$$\@buyer.example" });
is(assign($shop, $asked, [ $none->{storefront_product_id} ], @with)->{json}{email}{status},
    'not_requested', 'an order without an email');
is(emails_of($asked), 0, 'queues no email');
is(assign($shop, $asked, [ $none->{storefront_product_id} ], @with, send_email => $true)
        ->{json}{email}{status}, 'queued', 'the email may be requested later');
wait_mail("asked-$$\@buyer.example");
is(emails_of($asked), 1, 'and is sent once');

# --- all or nothing ------------------------------------------------------------------------------

unstored();
my $unmapped = digits();
refused(
    assign($shop, $unmapped, [ product(), $both->{storefront_product_id}, product(),
        { storefront_product_id => $none->{storefront_product_id}, storefront_variant_id => '5' },
        product() ],
        storefront_customer_id => '700', send_email => $true,
        customer => { email => 'x@buyer.example' }),
    422, 'product_not_mapped', 'products that are not mapped, beside some that are',
    map { "/items/$_/storefront_product_id" } 0, 2, 4
);
is_error(order($unmapped), 404, 'order_not_found', 'the order was not created');
my $other = new_shop();
my $theirs = mapping_of($other, []);
unstored();
refused(assign($shop, $unmapped, [ $theirs->{storefront_product_id} ]), 422, 'product_not_mapped',
    "a product that only another shop has mapped", '/items/0/storefront_product_id');
my $inactive = mapping_of($shop, [ $one->{id} ], is_active => $false);
unstored();
refused(assign($shop, $unmapped, [ $inactive->{storefront_product_id} ]), 422, 'product_not_mapped',
    'a product whose mapping is not active', '/items/0/storefront_product_id');
my $ended = mapping_of($shop, [ $one->{id} ]);
my $served = digits();
my $first_answer = assign($shop, $served, [ $ended->{storefront_product_id} ]);
is_answer($first_answer, 201, 'a product whose mapping is active');
is_answer(api('PATCH', "/mappings/$ended->{id}", key => $token, json => { is_active => $false }),
    200, 'it ends');
is_deeply(order($served)->{json}{assignments}, $first_answer->{json}{assignments},
    'the order goes on serving it');
is_answer(assign($shop, $served, [ $ended->{storefront_product_id} ]), 200,
    'assigning it again makes nothing');
unstored();
refused(assign($shop, $served,
    [ $ended->{storefront_product_id}, $inactive->{storefront_product_id} ]), 422,
    'product_not_mapped', 'a further item of the order', '/items/1/storefront_product_id');
refused(assign($shop, '5', [ $ended->{storefront_product_id} ]), 422, 'product_not_mapped',
    'another order of it', '/items/0/storefront_product_id');
refused(assign($shop, $unmapped, [ ($both->{storefront_product_id}) x 2, product() ]), 422,
    'product_not_mapped',
    'a product that is not mapped behind two lines of one', '/items/2/storefront_product_id');
my @lines = map { +{ storefront_product_id => $both->{storefront_product_id}, quantity => $_ } }
    999, 1, 1;
refused(assign($shop, $unmapped, \@lines), 400, 'invalid_request',
    'lines that are too many together', '/items/2/quantity');

# --- lines of one product ------------------------------------------------------------------------

# The quantities of an order's assignments, and the limits of their first files.
sub amounts
{
    my ($reply) = @_;
    return join ', ', map { "$_->{quantity} of " . ($_->{files}[0]{download_limit} // 'none') }
        @{ $reply->{json}{assignments} };
}

my $lines = digits();
is(amounts(assign($shop, $lines, [ ($both->{storefront_product_id}) x 2 ])), '2 of 6',
    'two lines of a product are one item of two');
is_answer(assign($shop, $lines, [ ($both->{storefront_product_id}) x 2 ]), 200, 'the same again');
is(amounts(order($lines)), '2 of 6', 'makes nothing twice');
is(amounts(assign($shop, $lines, [ @lines[ 1, 2 ], { %{ $lines[1] }, quantity => 3 } ])), '5 of 15',
    'lines have a quantity each');
is(amounts(assign($shop, digits(), [ map { +{
    storefront_product_id => $both->{storefront_product_id}, storefront_variant_id => $_ } }
    '5', $both->{storefront_product_id} =~ s/Product.*/ProductVariant\/5/r ])), '2 of 6',
    'a variant in its two forms is one, too');
is(amounts(assign($shop, digits(), [ map { +{
    storefront_product_id => $both->{storefront_product_id}, storefront_variant_id => $_ } }
    '5', '6' ])), '1 of 3, 1 of 3', 'two variants are two items');

my ($kept) = map { $_->{id} } @{ order($lines)->{json}{assignments} };
api('POST', "/orders/$lines/revoke", key => $token, json => { assignment_ids => [$kept] });
is_answer(assign($shop, $lines, [ { %{ $lines[1] }, quantity => 5 } ]), 200,
    'an item that was revoked, in its quantity');
is(order($lines)->{json}{assignments}[0]{status}, 'revoked', 'stays so');
unstored();
refused(assign($shop, $lines, [ { %{ $lines[1] }, quantity => 4 } ]), 409, 'access_revoked',
    'and in another', '/items/0/quantity');

# --- variants ------------------------------------------------------------------------------------

my $product = product();
my %for;
for my $variants ([], [ '1', '2' ], ['3']) {
    my $name = "@$variants" || 'whole';
    $for{$name} = mapping_of($shop, [], storefront_product_id => $product,
        storefront_variant_ids => $variants)->{id};
}
$for{inactive} = mapping_of($shop, [], storefront_product_id => $product,
    storefront_variant_ids => ['4'], is_active => $false)->{id};
my $varied = assign($shop, digits(), [ map { +{ storefront_product_id => $product,
    storefront_variant_id => $_ } } undef, '1', '2', '3', '4', '9' ]);
is_answer($varied, 201, 'one product in several variants');
is_shape($varied->{json}, 'order', 'the order with variants');
my ($prefix) = $product =~ m{^(gid://[^/]+/)};
my %mapped = map { $_->{storefront_variant_id} // 'none' => $_->{mapping_id} }
    @{ $varied->{json}{assignments} };
is_deeply(\%mapped, {
    'none'                        => $for{whole},
    "${prefix}ProductVariant/1"   => $for{'1 2'},
    "${prefix}ProductVariant/2"   => $for{'1 2'},
    "${prefix}ProductVariant/3"   => $for{3},
    "${prefix}ProductVariant/4"   => $for{whole},
    "${prefix}ProductVariant/9"   => $for{whole},
}, "a variant's own mapping comes before the whole product's, if it is active");
my $only = product();
mapping_of($shop, [], storefront_product_id => $only, storefront_variant_ids => ['1']);
unstored();
refused(
    assign($shop, $unmapped,
        [ $only, { storefront_product_id => $only, storefront_variant_id => '2' } ]),
    422, 'product_not_mapped', 'a product with only a variant mapped',
    '/items/0/storefront_product_id', '/items/1/storefront_product_id'
);
my $spelled = digits();
is_answer(
    assign($shop, $spelled, [ { storefront_product_id => $only, storefront_variant_id => '1' } ]),
    201, 'a variant given as a number');
is_answer(assign($shop, $spelled, [ { storefront_product_id => $only,
    storefront_variant_id => "${prefix}ProductVariant/1" } ]), 200,
    'equals the variant given as a global id');

# --- live and pinned -----------------------------------------------------------------------------

sub files
{
    my ($id) = @_;
    return join ' ', map { $_->{file_id} } @{ order($id)->{json}{assignments}[0]{files} };
}

for my $content ('live', 'pinned') {
    my $mapping = mapping_of($shop, [ $one->{id} ], content => $content);
    my $id      = digits();
    assign($shop, $id, [ $mapping->{storefront_product_id} ]);
    mapping_of($shop, [ $two->{id}, $one->{id} ], content => $content,
        storefront_product_id => $mapping->{storefront_product_id});
    is(files($id), $content eq 'live' ? "$two->{id} $one->{id}" : $one->{id},
        "$content content after the mapping has changed");
}

# --- access time and limit -----------------------------------------------------------------------

my $brief = mapping_of($shop, [ $one->{id} ], access_days => 30, download_limit => 0);
my $dated = digits();
$got = assign($shop, $dated, [ $brief->{storefront_product_id} ])->{json};
is_shape($got, 'order', 'an order that expires');
my $days = sub { my ($time) = @_; return (split ' ', qx(date -u -d '$time' +%s))[0] / 86400 };
cmp_ok(abs($days->($got->{access}{expires_at}) - $days->($got->{created_at}) - 30), '<', 0.001,
    'expires thirty days after its creation');
is($got->{assignments}[0]{files}[0]{download_limit}, 0, 'a limit of 0 means no limit');
my $lasting = assign($shop, $dated, [ $none->{storefront_product_id} ])->{json};
is($lasting->{access}{expires_at}, undef, 'an order with an assignment without an end has no end');

# --- unknown orders ------------------------------------------------------------------------------

sub bytes
{
    my ($reply) = @_;
    my %headers = %{ $reply->{headers} };
    delete @headers{qw(date x-request-id)};
    return join "\n", $reply->{status}, (map { "$_: $headers{$_}" } sort keys %headers),
        $reply->{body} =~ s/req_[\w@-]+/req/r;
}

for my $read (\&order, \&assignments_of) {
    my $unknown = $read->('99999999', $other);
    is_error($unknown, 404, 'order_not_found', 'an unknown order');
    my $foreign = $read->('450789469', $other);
    is(bytes($foreign), bytes($unknown), "another shop's order: the same bytes");
    is(bytes($read->($_, $other)), bytes($unknown), "the order '$_': the same bytes")
        for 'abc', '0', '-1', '0450789469', '%20', '%27', '1' x 21, '1' x 300;
}
my $own = assign($other, '450789469', [ $theirs->{storefront_product_id} ]);
is_answer($own, 201, 'another shop may have an order with the same number');
is(rows_of('450789469'), 2, 'which adds nothing to this one');
is_answer(assign($shop, '0', [ $none->{storefront_product_id} ]), 201,
    'an order may have the number 0');

# --- revoked access ------------------------------------------------------------------------------

my $taken = digits();
assign($shop, $taken, [ $none->{storefront_product_id} ]);
sql("UPDATE orders SET access_status = 'revoked', access_reason = 'a refund' "
    . "WHERE shop_id = $shop->{shop_id} AND storefront_order_id = '$taken'");
unstored();
refused(assign($shop, $taken, [ $both->{storefront_product_id} ]), 409, 'access_revoked',
    'an order that was revoked');
$got = order($taken)->{json};
is_shape($got, 'whole_order', 'an order that was revoked');
is_deeply($got->{access}, { status => 'revoked', reason => 'a refund', expires_at => undef },
    'has the status and the reason');

done_testing();
