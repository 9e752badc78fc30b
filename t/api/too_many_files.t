# How many files a mapping and an order may give (contract, section 6).
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

# Ready files, more of them than it would take to import in a test.
my $model = ready_asset($shop, "many-$$.txt", "many\n")->{id};
sql('INSERT INTO asset (shop_id, status, filename, title, content_type, sha256, size, version, '
        . 'created_at, updated_at) WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 '
        . 'FROM numbers WHERE n < 1250)'
        . " SELECT shop_id, status, 'many-' || n || '.txt', 'Many ' || n, content_type, sha256, "
        . "size, version, created_at, updated_at FROM asset, numbers WHERE id = $model");
my @files = map { 0 + $_->[0] }
    sql("SELECT id FROM asset WHERE shop_id = $shop->{shop_id} ORDER BY id");
my @packs = map { made('/packs',
    { name => "Pack $_", file_ids => [ @files[ 250 * $_ .. 250 * $_ + 249 ] ] })->{id} }
    0 .. 4;

sub mapping { my (%members) = @_; return { storefront_product_id => product(), %members } }

subtest 'a mapping gives at most 1,000 files' => sub {
    my $full = mapping(pack_ids => [ @packs[ 0 .. 3 ] ]);
    is(call('POST', '/mappings', json => $full)->{status}, 201,
        '1,000 files of four packs are accepted');
    is(call('POST', '/mappings', json => { %$full, file_ids => [ @files[ 0 .. 249 ] ] })
        ->{status}, 200, 'a file that is also in a pack counts once');

    unstored();
    my $reply = call('POST', '/mappings', json => mapping(pack_ids => \@packs));
    refused($reply, 422, 'too_many_files', 'five packs of 250 files');
    like($reply->{json}{error}{message}, qr/1250 .* 1000/,
        'the message says how many there would be and may be');
    refused(call('POST', '/mappings', json => { %$full, file_ids => [ $files[1000] ] }), 422,
        'too_many_files', 'one file more for a mapping that has 1,000');

    my $small = made('/mappings', mapping(file_ids => [ $files[0] ]));
    unstored();
    refused(
        call('PUT', "/mappings/$small->{id}",
            json => { storefront_product_id => $small->{storefront_product_id},
                pack_ids => \@packs }),
        422, 'too_many_files', 'a mapping that is replaced'
    );
    is_deeply(call('GET', "/mappings/$small->{id}")->{json}, $small, 'it stays as it was');
};

subtest 'nor does a pack grow beyond that in any mapping' => sub {
    my $pack    = made('/packs', { name => 'Grows', file_ids => [ $files[0] ] });
    my $path    = "/packs/$pack->{id}";
    my $small   = made('/mappings', mapping(pack_ids => [ $pack->{id} ]));
    my $mapping = made('/mappings', mapping(pack_ids => [ @packs[ 0 .. 3 ], $pack->{id} ]));
    my $newest  = made('/mappings', mapping(pack_ids => [ $pack->{id} ]));
    my $before  = call('GET', $path)->{json};
    unstored();
    my $reply = call('PATCH', $path, json => { file_ids => [ @files[ 999 .. 1001 ] ] });
    refused($reply, 422, 'too_many_files', 'two files that the mapping does not have');
    like($reply->{json}{error}{message}, qr/^Mapping $mapping->{id} would give 1002 files/,
        'the message names the mapping');
    is_deeply(call('GET', $path)->{json}, $before, 'the pack stays as it was');

    is(call('PATCH', $path, json => { name => 'Grew', file_ids => [ @files[ 5 .. 9 ] ] })
        ->{status}, 200, 'it takes files that the mapping has already');
    is(call('PATCH', "/packs/$packs[3]", json => { file_ids => [ @files[ 750 .. 998 ] ] })
        ->{status}, 200, 'another pack of the mapping loses a file');
    is(call('PATCH', $path, json => { file_ids => [ @files[ 5 .. 9 ], $files[1001] ] })
        ->{status}, 200, 'which makes room for one');
    is(call('PATCH', "/packs/$packs[3]", json => { file_ids => [ @files[ 750 .. 999 ] ] })
        ->{status}, 422, 'so that the other can have it back no more');
    is(call('DELETE', "/mappings/$mapping->{id}")->{status}, 204, 'the mapping is deleted');
    is(call('PATCH', $path, json => { file_ids => [ @files[ 1000 .. 1249 ] ] })->{status}, 200,
        'a deleted mapping keeps no pack from growing');
    is(call('PATCH', "/packs/$packs[3]", json => { file_ids => [ @files[ 750 .. 999 ] ] })
        ->{status}, 200, 'so the other one has its file back');
};

# Items of a product, one for each of its variants from the first on.
my @variants = map { variant() } 1 .. 251;

sub items
{
    my ($product, $count) = @_;
    return [ map { { storefront_product_id => $product, storefront_variant_id => $variants[$_] } }
        0 .. $count - 1 ];
}

sub order { my ($id) = @_; return call('GET', "/orders/$id")->{json} }

sub files_in { my ($entries) = @_; return sum0(map { scalar @{ $_->{files} } } @$entries) }

for my $content (qw(live pinned)) {
    subtest "an order has at most 5,000 files of $content content" => sub {
        my $mapping = made('/mappings',
            mapping(pack_ids => [ @packs[ 0 .. 3 ] ], content => $content,
            file_ids => [ @files[ 245 .. 254 ] ]));
        my $product = $mapping->{storefront_product_id};
        my $id      = digits();
        unstored();
        my $reply = assign($shop, $id, items($product, 6));
        refused($reply, 422, 'too_many_files', 'six items of 1,000 files');
        like($reply->{json}{error}{message}, qr/5000/, 'the message says how many there may be');

        $reply = assign($shop, $id, items($product, 5));
        is($reply->{status}, 201, 'five items are accepted');
        my $order = order($id);
        is(files_in($order->{assignments}), 5000, 'all files are shown');
        ok(!exists $order->{files_truncated}, 'nothing says that there are more');
        is_deeply(
            [ map { $_->{file_id} } @{ $order->{assignments}[4]{files} } ],
            [ @files[ 245 .. 254, 0 .. 244, 255 .. 999 ] ],
            'those of the mapping come first, then those of its packs, and none comes twice'
        );
        unstored();
        refused(assign($shop, $id, [ items($product, 6)->[5] ]), 422, 'too_many_files',
            'one item more');
        is(assign($shop, $id, items($product, 5))->{status}, 200,
            'the same items can be assigned again');
    };
}

subtest 'what one file costs and has left is counted for each item' => sub {
    my $mapping = made('/mappings', mapping(pack_ids => [ $packs[0] ], download_limit => 3));
    my $id      = digits();
    my $order   = assign($shop, $id, items($mapping->{storefront_product_id}, 2))->{json};
    my $second  = $order->{assignments}[1];
    call('POST', "/orders/$id/grant-downloads",
        json => { downloads => 2, assignment_ids => [ $second->{id} ], file_ids => [ $files[7] ] });
    $order = order($id);
    is_deeply([ map { $_->{files}[7]{download_limit} } @{ $order->{assignments} } ], [ 3, 5 ],
        'a file of a pack has the downloads that were granted to one of two items');
    is($order->{assignments}[1]{files}[8]{download_limit}, 3,
        'the next file has the limit of the mapping');
};

subtest 'an order has at most 250 items' => sub {
    my $mapping = made('/mappings', mapping(file_ids => [ $files[0] ]));
    my $items   = items($mapping->{storefront_product_id}, 251);
    my $id      = digits();
    is(assign($shop, $id, [ @$items[ 0 .. 248 ] ])->{status}, 201, '249 items are accepted');
    is(assign($shop, $id, [ @$items[ 248, 249 ] ])->{status}, 201, 'one more is accepted');
    unstored();
    my $reply = assign($shop, $id, [ $items->[250] ]);
    refused($reply, 422, 'too_many_items', 'the 251st');
    like($reply->{json}{error}{message}, qr/251 .* 250/,
        'the message says how many there would be and may be');
    is(assign($shop, $id, [ @$items[ 0 .. 9 ] ])->{status}, 200,
        'the same items can be assigned again');
};

subtest 'an order that grew beyond 5,000 files shows the first 5,000' => sub {
    my $other   = assign($shop, digits(),
        items(made('/mappings', mapping(file_ids => [ $files[0] ]))
                ->{storefront_product_id}, 1))->{json};
    my $grows   = made('/packs', { name => 'Grows', file_ids => [ $files[750] ] });
    my $mapping = made('/mappings', mapping(pack_ids => [ @packs[ 0 .. 2 ], $grows->{id} ]));
    my $id      = digits();
    my $items   = items($mapping->{storefront_product_id}, 7);
    assign($shop, $id, [ @$items[ 0 .. 5 ] ], customer => { email => "$id\@buyer.example" });
    is(call('PATCH', "/packs/$grows->{id}", json => { file_ids => [ @files[ 750 .. 999 ] ] })
        ->{status}, 200, 'a pack of it grows');

    my $order = order($id);
    is(files_in($order->{assignments}), 5000, 'the order shows 5,000 files');
    is($order->{files_truncated}, JSON::PP::true(), 'it says that there are more');
    is(scalar @{ $order->{assignments} }, 6, 'all its assignments are there');
    is_deeply([ map { scalar @{ $_->{files} } } @{ $order->{assignments} } ], [ (1000) x 5, 0 ],
        'the last one lacks its files');
    is(assign($shop, $id, [ $items->[0] ])->{json}{files_truncated}, JSON::PP::true(),
        'assigning an item again says so, too');
    unstored();
    refused(assign($shop, $id, [ $items->[6] ]), 422, 'too_many_files', 'one item more');

    my $page = page('GET', $order->{download_page_url} =~ s{^https?://[^/]+}{}r);
    is($page->{status}, 200, 'the page is shown');
    like($page->{body}, qr/This order has more files than this page can list/,
        'and says that there are more');
    call('POST', "/orders/$id/resend", json => {});
    my $mail = wait_mail("$id\@buyer.example", 60);
    like($mail->{$_}, qr/more files than are listed here/, "so does the email, as $_")
        for qw(text html);

    my $list = call('GET', '/orders?limit=2')->{json};
    is_deeply([ map { $_->{storefront_order_id} } @{ $list->{data} } ], [$id],
        'a page of orders ends after it');
    is($list->{data}[0]{files_truncated}, JSON::PP::true(), 'where it is marked likewise');
    ok($list->{has_more}, 'the list has more');
    $list = call('GET', "/orders?limit=1&cursor=$list->{next_cursor}")->{json};
    is($list->{data}[0]{storefront_order_id}, $other->{storefront_order_id},
        'the next page goes on');

    my (@seen, $cursor);
    do {
        $list = call('GET',
            "/orders/$id/assignments?limit=100" . ($cursor ? "&cursor=$cursor" : ''))->{json};
        ok(files_in($list->{data}) <= 5000, 'a page of its assignments has 5,000 files at most');
        push @seen, @{ $list->{data} };
    } while ($cursor = $list->{next_cursor});
    is_deeply([ map { scalar @{ $_->{files} } } @seen ], [ (1000) x 6 ],
        'all pages together have all of them');
};

done_testing();
