# The rate limit of a shop (contract, section 5): all its keys together have three times the tokens
# of one, over all processes, an answer tells of the limit that has less left, and what has read
# thousands of rows costs more.
#
# once: rates are counted in memory
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Limits;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

use constant { KEYS => 10, BURST => 60, FACTOR => 3 };

# One token of a key comes back each minute, and three of a shop.
my $server = MDL::Instance->new(
    extra => "DownloadsRateLimit On\nDownloadsRateRefill 1\nDownloadsRatePages 6\n")->start;

# A shop and its keys, as many as it can have.
sub shop_with_keys
{
    my $shop = new_shop();
    return ($shop, { %$shop }, map { { %$shop, %{ MDL::Test::new_key($shop->{shop_id}) } } }
        2 .. KEYS);
}

sub ping { my ($key) = @_; return api('GET', '/ping', key => $key->{token}) }

# Of which limit an answer tells, and how many tokens are left.
sub told
{
    my ($reply) = @_;
    my ($policy, $quota) = ($reply->{headers}{'ratelimit-policy'}
        // '') =~ /^"(\w+)";q=(\d+);w=\d+\z/;
    my ($name, $left) = ($reply->{headers}{'ratelimit'} // '') =~ /^"(\w+)";r=(\d+);t=\d+\z/;
    is($policy // '', $name // '', 'policy and state are of the same limit');
    is($reply->{headers}{'x-ratelimit-limit'},     $quota, 'X-RateLimit-Limit is of the same');
    is($reply->{headers}{'x-ratelimit-remaining'}, $left,  'and so is X-RateLimit-Remaining');
    return ($name, $quota, $left);
}

subtest 'a shop with ten keys gets three times what a key gets' => sub {
    my ($shop, @keys) = shop_with_keys();
    my $began    = time;
    my @statuses = map { @$_ } parallel(KEYS, sub {
        my ($i) = @_;
        return [ map { ping($keys[$i])->{status} } 1 .. BURST / 2 ];    # no key is used up
    });
    my $succeeded = grep { $_ == 200 } @statuses;
    cmp_ok $succeeded, '>=', FACTOR * BURST, 'three times a burst succeeds';
    cmp_ok $succeeded, '<=', FACTOR * BURST + back(FACTOR, $began), 'and no more';
    is scalar(grep { $_ != 200 && $_ != 429 } @statuses), 0, 'the others get 429';

    my $reply = limited(sub { ping($keys[0]) });
    is_error $reply, 429, 'rate_limited', 'a further request';
    like $reply->{json}{error}{message}, qr/shop's keys/, 'which says that it is the shop';
    is_deeply [ told($reply) ], [ 'shop', FACTOR * BURST, 0 ], 'in the headers, too';
    like $reply->{headers}{'retry-after'}, qr/^[1-9]\d*\z/, 'Retry-After is a number of seconds';
    cmp_ok $reply->{headers}{'retry-after'}, '<=', 20, 'until the token that the read needs';
    my ($other) = shop_with_keys();
    is ping($other)->{status}, 200, 'another shop does not notice';
};

subtest 'an answer tells of the limit that has less left' => sub {
    my ($shop, @keys) = shop_with_keys();
    my $began = time;
    is_deeply [ told(ping($keys[0])) ], [ 'key', BURST, BURST - 1 ], 'with one key that is the key';
    for my $key (@keys[ 1 .. 2 ]) {
        ping($key) for 1 .. BURST - 10;
    }
    ping($keys[3]) for 1 .. 29;
    my ($name, $quota, $left) = told(ping($keys[4]));
    is $name, 'shop', 'with several it is the shop once that has fewer';
    is $quota, FACTOR * BURST, 'which has three times as many';
    cmp_ok $left, '>=', 49, 'of which those that the keys have taken together are gone';
    cmp_ok $left, '<=', 49 + back(FACTOR, $began), 'and no others';
    is +(told(ping($keys[1])))[0], 'key', 'for a key with fewer it is the key';
};

subtest 'what one of the two refuses takes nothing from the other' => sub {
    my ($shop, @keys) = shop_with_keys();
    my $began = time;
    ping($keys[0]) for 1 .. BURST + 30;
    ping($keys[1]) for 1 .. BURST;
    ping($keys[2]) for 1 .. 20;
    my ($name, undef, $left) = told(ping($keys[3]));
    is $name, 'shop', 'the shop has less left than a new key';
    cmp_ok $left, '>=', 39, 'but not less by what a key was refused';
    ping($keys[3]) for 1 .. $left + 30;
    is limited(sub { ping($keys[3]) })->{status}, 429, 'the shop has none left';
    ctl('shop', 'suspend', $shop->{shop_id});
    my $reply = ping($keys[3]);
    is_error $reply, 403, 'shop_not_approved', 'a request of the shop that is suspended then';
    is +(told($reply))[0], 'key', 'tells of the key';
    cmp_ok $reply->{headers}{'x-ratelimit-remaining'}, '>=',
        BURST - 1 - $left - back(FACTOR, $began), 'which has all that the shop refused';
};

# Ready files of a shop, more of them than it would take to import in a test.
sub files_of
{
    my ($shop, $key, $count) = @_;
    my $model = ready_asset($key, 'model.txt', 'model')->{id};
    sql('INSERT INTO asset (shop_id, status, filename, title, content_type, sha256, size, version, '
            . 'created_at, updated_at)'
            . " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers "
            . "WHERE n < $count - 1)"
            . ' SELECT shop_id, status, n || filename, n || title, content_type, sha256, size, '
            . 'version, created_at, updated_at'
            . " FROM asset, numbers WHERE id = $model");
    return map { 0 + $_->[0] } sql("SELECT id FROM asset WHERE shop_id = $shop->{shop_id}");
}

# An order of that many items of each product.
sub order_of
{
    my ($key, $items, @products) = @_;
    my $order = digits();
    my $reply = assign($key, $order, [ map {
        my $product = $_;
        map { { storefront_product_id => $product, storefront_variant_id => variant() } }
            1 .. $items
    } @products ]);
    is $reply->{status}, 201, 'an order of ' . $items * @products . ' items';
    return ($order, $reply->{json}{download_page_url});
}

# An order of twenty items with 250 files each.
sub large_order
{
    my ($shop, $key) = @_;
    my @files = files_of($shop, $key, 1000);
    return order_of($key, 5, map {
        mapping_of($key, [ splice @files, 0, 250 ])->{storefront_product_id}
    } 1 .. 4);
}

subtest 'what has read thousands of rows costs more, and may be owed' => sub {
    my ($shop, @keys) = shop_with_keys();
    my ($order, $url) = large_order($shop, $keys[1]);
    my $began = time;
    my $read = sub { api('GET', "/orders/$order", key => $keys[0]{token}) };
    is +(told($read->()))[2], BURST - 6,
        'a read of 5,000 files costs six tokens, which its answer tells';
    $read->() for 2 .. 9;
    ping($keys[0]) for 1 .. 5;
    my $reply = $read->();
    is $reply->{status}, 200, 'the last token is enough to begin';
    is +(told($reply))[2], 0, 'then none is left';
    $reply = ping($keys[0]);
    is_error $reply, 429, 'rate_limited', 'and what was owed';
    cmp_ok $reply->{headers}{'retry-after'}, '>', 6 * 60 - 30 - (time - $began),
        'has to come back first';
    cmp_ok $reply->{headers}{'retry-after'}, '<=', 6 * 60, 'but no more than that';

    # Each view that came back pays for six, of which the next one needs but one.
    is page('GET', $url)->{status}, 200, "the order's page";
    is limited(sub { page('GET', $url) })->{status}, 429, 'costs six views, too';
};

subtest 'the files of packs count once for each pack that was read' => sub {
    my ($shop, @keys) = shop_with_keys();
    my @files = files_of($shop, $keys[1], 250);
    my @packs = map {
        my ($id) = sql(
            "INSERT INTO pack (shop_id, name, created_at, updated_at) VALUES ($shop->{shop_id},"
                . " 'Pack $_', 1, 1) RETURNING id");
        $id->[0];
    } 1 .. 20;
    sql('INSERT INTO pack_file (pack_id, asset_id, position) SELECT p.id, s.id, s.id '
            . 'FROM pack p, asset s'
            . " WHERE p.shop_id = $shop->{shop_id} AND s.shop_id = $shop->{shop_id}");
    my ($order) = order_of($keys[1], 1,
        mapping_of($keys[1], [], pack_ids => [ map { 0 + $_ } @packs ])->{storefront_product_id});
    my $reply = api('GET', "/orders/$order", key => $keys[0]{token});
    is scalar @{ $reply->{json}{assignments}[0]{files} }, 250,
        'an order whose twenty packs have the same files';
    is +(told($reply))[2], BURST - 6, 'costs as much as 5,000 files';
};

subtest 'usual requests cost one token' => sub {
    my ($shop, @keys) = shop_with_keys();
    my @files = files_of($shop, $keys[1], 100);
    my ($order) = order_of($keys[1], 25,
        mapping_of($keys[1], [ @files[ 0 .. 3 ] ])->{storefront_product_id});
    my $left  = BURST;
    my $began = time;
    for my $path ("/orders/$order", '/assets?limit=100', '/orders?limit=100',
        '/mappings?limit=100') {
        my $reply = api('GET', $path, key => $keys[0]{token});
        is $reply->{status}, 200, $path;
        my $now = (told($reply))[2];
        my $came_back = int((time - $began) / 60);
        ok --$left <= $now && $now <= $left + $came_back, 'takes one' or diag "$now, not $left";
    }
};

$server->stop;
$server->configure(extra => <<'END');
DownloadsRateLimit On
DownloadsRateBurst 4
DownloadsRateRefill 60
DownloadsRateReadCost 2
DownloadsRateShopFactor 1
END
$server->start;

subtest 'the factor can be configured, and tokens come back when Retry-After says' => sub {
    my (@keys, @replies);
    for (1 .. 10) {    # until none could come back before the third request
        (undef, @keys) = shop_with_keys();
        my $began = time;
        @replies = map { ping($_) } @keys[ 0, 0, 1 ];
        last if time - $began < 2;
    }
    is $replies[0]{status}, 200, 'one key gets two requests';
    is $replies[1]{status}, 200, 'of two tokens each';
    is_error $replies[2], 429, 'rate_limited', 'which is all that the shop gets';
    sleep $replies[2]{headers}{'retry-after'};
    is ping($keys[1])->{status}, 200, 'no later than promised';
};

$server->stop;
done_testing;
