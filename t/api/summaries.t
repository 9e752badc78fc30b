# Lists with view=summary (contract, section 1): what their entries have and have not, their pages,
# and filters beside it.
#
# once: the views differ in what is written of the same rows; lists.t reads them on both databases
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();

sub get { my ($path, $of) = @_; return api('GET', $path, key => ($of // $shop)->{token}) }

# Every entry of a list, page by page.
sub all_of
{
    my ($path, $shape, $of) = @_;
    my ($cursor, @all);
    for (1 .. 50) {
        my $reply = get($path . (defined $cursor ? "&cursor=$cursor" : ''), $of);
        is_answer($reply, 200, $path);
        is_shape($reply->{json}, $shape, 'a page');
        push @all, @{ $reply->{json}{data} };
        $cursor = $reply->{json}{next_cursor} // return \@all;
        like($reply->{headers}{link}, qr/[?&]view=summary&/,
            'the next page is one of summaries, too') if $path =~ /view/;
    }
    die "$path has no end\n";
}

# What is left of whole entries without some of their members.
sub without
{
    my ($members, @entries) = @_;
    my @left = map { { %$_ } } @entries;
    delete @{$_}{@$members} for @left;
    return \@left;
}

sub order
{
    my ($number, $customer, $products, %more) = @_;
    my $reply = assign($shop, $number, $products, storefront_customer_id => $customer, %more);
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

for my $list (qw(orders packs mappings)) {
    (my $noun = $list) =~ s/s$//;
    is_deeply(get("/$list?view=summary")->{json},
        { data => [], has_more => JSON::PP::false(), next_cursor => undef },
        "a shop without $list has no summaries of them");
}

my @files = map { ready_asset($shop, "summaries-$$-$_.txt", "file $_\n")->{id} } 1 .. 3;
my @packs = map { api('POST', '/packs', key => $shop->{token},
    json => { name => "pack $_", file_ids => \@files })->{json} } 1 .. 3;
my ($ever, $days, $years) = map { mapping_of($shop, [ $files[0] ], pack_ids => [ $packs[0]{id} ],
    access_days => $_)->{storefront_product_id} }
    undef, 30, 3650;

# --- packs and mappings --------------------------------------------------------------------------

my @lists = qw(note storefront_variant_ids variant_titles file_ids pack_ids link_ids
    license_key_tag_ids);
is_deeply(all_of('/packs?view=summary&limit=2', 'pack_summaries'),
    without(['file_ids'], @{ all_of('/packs?limit=2', 'packs') }), 'packs without their files');
is_deeply(all_of('/mappings?view=summary&limit=2', 'mapping_summaries'),
    without(\@lists, @{ all_of('/mappings?limit=2', 'mappings') }), 'mappings without their lists');
is_deeply(all_of("/mappings?storefront_product_id=$days&view=summary", 'mapping_summaries'),
    without(\@lists, @{ all_of("/mappings?storefront_product_id=$days", 'mappings') }),
    'those of one product');
is(scalar @{ all_of("/mappings?storefront_product_id=$days&view=summary", 'mapping_summaries') }, 1,
    'of which there is one');

# --- orders --------------------------------------------------------------------------------------

order(201, '21', [$ever], customer => { email => "ada-$$\@example.com" },
    send_email => JSON::PP::true());
order(202, '21', [ $days, $years ]);
order(203, '22', [ $years, $ever, $days ]);
order(204, '22', [$days]);
held_by_check($shop, 204);
api('POST', '/orders/202/revoke', key => $shop->{token}, json => { reason => 'a mistake' });
wait_for(sub { get('/orders/201')->{json}{email}{status} eq 'sent' }, 60, 'the email');

my $whole = all_of('/orders?limit=3', 'orders');
my $brief = all_of('/orders?view=summary&limit=3', 'order_summaries');
is_deeply([ map { [ @{$_}{qw(storefront_order_id assignment_count)} ] } @$brief ],
    [ [ 204, 1 ], [ 203, 3 ], [ 202, 2 ], [ 201, 1 ] ],
    'orders with the number of their assignments');
ok(@{ $whole->[0]{fraud}{signals} }, 'one of them has a signal');
for my $order (@$whole) {
    my $assignments = delete $order->{assignments};
    $order->{assignment_count} = @$assignments;
    delete $order->{fraud}{signals};
}
is_deeply($brief, $whole, 'and all else as in the whole form');
my %ends = map { $_->{storefront_order_id} => $_->{access}{expires_at} } @$brief;
ok(defined $ends{202}, 'also the end of access,');
cmp_ok($ends{202}, 'gt', $ends{204}, 'that of the assignment which ends last');
is($ends{203}, undef, 'if none of them is for ever');

is_deeply([ map { $_->{storefront_order_id} }
    @{ all_of('/orders?customer=21&status=revoked&view=summary', 'order_summaries') } ],
    ['202'], 'filters find summaries, too');
is_deeply(all_of("/orders?storefront_product_id=$days&view=summary", 'order_summaries', $other), [],
    "another shop's list has none of them");

# Pages of one moment, while an order is added after the first.
sql("UPDATE orders SET created_at = 1767225600000000 WHERE shop_id = $shop->{shop_id}");
my $first = get('/orders?view=summary&limit=2')->{json};
order(205, '23', [$ever]);
my $second = get("/orders?view=summary&limit=2&cursor=$first->{next_cursor}")->{json};
is_deeply([ map { $_->{storefront_order_id} } map { @{ $_->{data} } } $first, $second ],
    [qw(204 203 202 201)], 'pages of one moment are stable while an order is added');

# --- what is refused -----------------------------------------------------------------------------

for my $list (qw(orders packs mappings)) {
    for my $value ('', 'full', 'Summary') {
        is_error(get("/$list?view=$value"), 400, 'invalid_request', "$list?view=$value", '/view');
    }
    my $cursor = get("/$list?view=summary&limit=1")->{json}{next_cursor};
    is_error(get("/$list?limit=1&cursor=$cursor"), 400, 'invalid_cursor',
        "a cursor of summaries for whole $list");
    $cursor = get("/$list?limit=1")->{json}{next_cursor};
    is_error(get("/$list?view=summary&cursor=$cursor"), 400, 'invalid_cursor',
        "a cursor of whole $list for summaries");
}
is_error(get("/$_?view=summary"), 400, 'invalid_request', "$_ have no summaries", '/view')
    for qw(links categories assets);
is_error(get('/orders/201?view=summary'), 400, 'invalid_request', 'nor does a single order',
    '/view');

done_testing();
