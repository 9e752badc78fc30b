# How many links and license keys an order may have (contract, section 6).
#
# once: the limits are counted by queries of mappings.t, which runs on both databases
use strict;
use warnings;

use JSON::PP;
use List::Util qw(sum0);
use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();

sub call { my ($method, $path, %opt) = @_; return api($method, $path, key => $shop->{token}, %opt) }

sub made
{
    my ($list, $members) = @_;
    my $reply = call('POST', $list, json => $members);
    die "POST $list was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 201;
    return $reply->{json};
}

sql('INSERT INTO link (shop_id, title, url, created_at, updated_at)'
        . ' WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers '
        . 'WHERE n < 250)'
        . " SELECT $shop->{shop_id}, 'Link ' || n, 'https://links.example/' || n, 1, 1 "
        . "FROM numbers");
my @links = map { 0 + $_->[0] }
    sql("SELECT id FROM link WHERE shop_id = $shop->{shop_id} ORDER BY id");
my @tags  = map { made('/license-key-tags', { name => "Tag $_" })->{id} } 1 .. 6;

sub mapping
{
    my (%members) = @_;
    return made('/mappings', { storefront_product_id => product(), %members });
}

# Items of a mapping, one for each of its variants from the first on.
my @variants = map { variant() } 1 .. 10;

sub items
{
    my ($mapping, $count, %members) = @_;
    my $product = $mapping->{storefront_product_id};
    return [ map { { storefront_product_id => $product, storefront_variant_id => $variants[$_],
        %members } }
            0 .. $count - 1 ];
}

sub order { my ($id) = @_; return call('GET', "/orders/$id")->{json} }

# How many links, or other content, each of an order's assignments has.
sub counts { my ($what, $entries) = @_; return [ map { scalar @{ $_->{$what} } } @$entries ] }

# How many there are on each page of a list of orders or assignments; the entries come with them.
sub pages
{
    my ($what, $path) = @_;
    my (@pages, @seen, $cursor);
    do {
        my $list = call('GET', $path . ($cursor ? "&cursor=$cursor" : ''))->{json};
        push @pages, sum0(map { @{ counts($what, $_->{assignments} // [$_]) } } @{ $list->{data} });
        push @seen, @{ $list->{data} };
        $cursor = $list->{next_cursor};
    } while ($cursor);
    return (\@pages, \@seen);
}

for my $content (qw(live pinned)) {
    subtest "an order has at most 1,000 links of $content content" => sub {
        my $mapping = mapping(link_ids => \@links, content => $content);
        my $id      = digits();
        unstored();
        my $reply = assign($shop, $id, items($mapping, 5));
        refused($reply, 422, 'too_many_links', 'five items of 250 links');
        like($reply->{json}{error}{message}, qr/1000/, 'the message says how many there may be');

        is(assign($shop, $id, items($mapping, 4))->{status}, 201, 'four items are accepted');
        my $order = order($id);
        is_deeply(counts(links => $order->{assignments}), [ (250) x 4 ], 'all links are shown');
        ok(!exists $order->{links_truncated}, 'nothing says that there are more');
        unstored();
        refused(assign($shop, $id, [ items($mapping, 5)->[4] ]), 422, 'too_many_links',
            'one item more');
        is(assign($shop, $id, items($mapping, 4))->{status}, 200,
            'the same items can be assigned again');
    };
}

subtest 'an order that grew beyond 1,000 links shows the first 1,000' => sub {
    my $older   = assign($shop, digits(), items(mapping(link_ids => [ $links[0] ]), 1))->{json};
    my $mapping = mapping(link_ids => [ @links[ 0 .. 99 ] ]);
    my $id      = digits();
    my $items   = items($mapping, 8);
    assign($shop, $id, [ @$items[ 0 .. 6 ] ], customer => { email => "$id\@buyer.example" });
    my $put = call('PUT', "/mappings/$mapping->{id}",
        json => { storefront_product_id => $mapping->{storefront_product_id},
            link_ids => [ @links[ 0 .. 149 ] ] });
    is($put->{status}, 200, 'its mapping grows');

    my $order = order($id);
    is_deeply(counts(links => $order->{assignments}), [ (150) x 6, 100 ],
        'the last item lacks some');
    is_deeply([ map { $_->{link_id} } @{ $order->{assignments}[6]{links} } ], [ @links[ 0 .. 99 ] ],
        'the later ones');
    is($order->{links_truncated}, JSON::PP::true(), 'the order says that there are more');
    is(assign($shop, $id, [ $items->[0] ])->{json}{links_truncated}, JSON::PP::true(),
        'assigning an item again says so, too');
    unstored();
    refused(assign($shop, $id, [ $items->[7] ]), 422, 'too_many_links', 'one item more');

    my $page = page('GET', $order->{download_page_url} =~ s{^https?://[^/]+}{}r);
    is($page->{status}, 200, 'the page is shown');
    like($page->{body}, qr/This order has more links than this page can list/,
        'and says that there are more');
    call('POST', "/orders/$id/resend", json => {});
    my $mail = wait_mail("$id\@buyer.example", 60);
    like($mail->{$_}, qr/more links than are listed here/, "so does the email, as $_")
        for qw(text html);

    my $list = call('GET', '/orders?limit=2')->{json};
    is_deeply([ map { $_->{storefront_order_id} } @{ $list->{data} } ], [$id],
        'a page of orders ends after it');
    is($list->{data}[0]{links_truncated}, JSON::PP::true(), 'where it is marked likewise');
    $list = call('GET', "/orders?limit=1&cursor=$list->{next_cursor}")->{json};
    is($list->{data}[0]{storefront_order_id}, $older->{storefront_order_id},
        'the next page goes on');

    my ($pages, $seen) = pages(links => "/orders/$id/assignments?limit=100");
    is_deeply($pages, [ 900, 150 ],
        'a page of its assignments ends before it has more than 1,000 links');
    is_deeply(counts(links => $seen), [ (150) x 7 ], 'all pages together have all of them');
};

# Links or keys of 2,000 and of 500 letters.
subtest 'an order has at most 640 KiB of links, and of license keys' => sub {
    my $long = 'x' x 1970;
    sql('INSERT INTO link (shop_id, title, url, created_at, updated_at)'
            . ' WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers '
            . 'WHERE n < 200)'
            . " SELECT $shop->{shop_id}, 'Long ' || n, 'https://links.example/$long' || n, 1, 1 "
            . "FROM numbers");
    my @long = map { 0 + $_->[0] } sql(
        "SELECT id FROM link WHERE shop_id = $shop->{shop_id} AND title LIKE 'Long%' ORDER BY id");
    my $mapping = mapping(link_ids => \@long);
    my $id      = digits();
    unstored();
    my $reply = assign($shop, $id, items($mapping, 2));
    refused($reply, 422, 'too_many_links', 'two items of 200 links each');
    like($reply->{json}{error}{message}, qr/640 KiB/, 'the message says how long they may be');
    is(assign($shop, $id, items($mapping, 1))->{status}, 201, 'one of them is accepted');

    my $tag = made('/license-key-tags', { name => 'Long keys' })->{id};
    call('POST', "/license-key-tags/$tag/keys",
        json => { keys => [ map { "KEY-$_-${\('x' x 490)}" } 1001 .. 2500 ] });
    $mapping = mapping(license_key_tag_ids => [$tag]);
    $id      = digits();
    unstored();
    $reply = assign($shop, $id, items($mapping, 2, quantity => 750));
    refused($reply, 422, 'too_many_license_keys', '1,500 license keys of 500 letters');
    like($reply->{json}{error}{message}, qr/640 KiB/, 'likewise');
    is(assign($shop, $id, items($mapping, 1, quantity => 1000))->{status}, 201,
        'a thousand are accepted');
};

subtest 'an order has at most 5,000 license keys' => sub {
    my $six = mapping(license_key_tag_ids => \@tags);
    my $id  = digits();
    unstored();
    my $reply = assign($shop, $id, items($six, 1, quantity => 834));
    refused($reply, 422, 'too_many_license_keys', '834 keys of six tags each');
    like($reply->{json}{error}{message}, qr/5000/, 'the message says how many there may be');
    refused(assign($shop, $id, items($six, 2, quantity => 417)), 422, 'too_many_license_keys',
        'as many for two items');

    my $five = mapping(license_key_tag_ids => [ @tags[ 0 .. 4 ] ]);
    is(assign($shop, $id, items($five, 1, quantity => 1000))->{status}, 201,
        '1,000 of five tags each are accepted');
    my $one = items(mapping(license_key_tag_ids => [ $tags[5] ]), 1);
    unstored();
    refused(assign($shop, $id, $one), 422, 'too_many_license_keys', 'one more');
    is(call('POST', "/license-key-tags/$tags[$_]/keys",
        json => { keys => [ map { "KEY-$_" } 1 .. 1000 ] })->{status},
        200, 'keys come')
        for 0 .. 4;
    my $order = order($id);
    is_deeply(counts(license_keys => $order->{assignments}), [5000], 'the order has them all');
    is($order->{assignments}[0]{license_keys_pending}, 0, 'and waits for none');
    unstored();
    refused(assign($shop, $id, $one), 422, 'too_many_license_keys',
        'one more, now that it has them');
    is(assign($shop, $id, items($five, 1, quantity => 1000))->{status}, 200,
        'the same item can be assigned again');

    assign($shop, digits(), $one);
    call('POST', "/license-key-tags/$tags[5]/keys", json => { keys => ['LAST'] });
    my ($pages) = pages(license_keys => '/orders?limit=2');
    is_deeply([ @$pages[ 0, 1 ] ], [ 1, 5000 ], 'a page of orders ends before it has more');
};

done_testing();
