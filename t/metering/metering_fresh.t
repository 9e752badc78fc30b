# What t/metering/metering.t says, of a new version of a file whose former one was used up.
#
# both: the statement that takes a download begins the new allowance
use strict;
use warnings;

use Test::More;

use MDL::Contract;
use MDL::Customer;
use MDL::Metering;
use MDL::Test;

$MDL::Customer::fresh = 1;
my (undef, $shop) = meters_under('event');
my $file = new_file($shop, 1000);

sub order { my ($buy) = @_; return api('GET', "/orders/$buy->{id}", key => $shop->{token})->{json} }

sub listed
{
    my $list = api('GET', '/orders?attention=limit_reached', key => $shop->{token})->{json}{data};
    return { map { $_->{storefront_order_id} => 1 } @$list };
}

subtest 'A version begins with its first download, and counts are shown before it' => sub {
    my $buy = buy($shop, $file, limit => 2);
    is left($buy), 2, 'the page has all downloads again';
    is order($buy)->{assignments}[0]{files}[0]{downloads_used}, 0, 'so has the API';
    ok !listed()->{ $buy->{id} }, 'and the order needs no attention';
    page('GET', link_of($buy)) for 1 .. 2;
    is settled($buy)->{used}, 2, 'they count';
    is left($buy), 0, 'and end';
    ok listed()->{ $buy->{id} }, 'which needs attention';
    new_bytes($shop, $file, $file->{bytes});
    is left($buy), 0, 'the same bytes bring nothing';
    new_bytes($shop, $file, 'other bytes');
    is left($buy), 2, 'other ones do';
    ok !listed()->{ $buy->{id} }, 'and the order needs no attention again';
};

subtest 'An archive has what its fewest has, whether a file is given by a pack or not' => sub {
    my ($own, $packed) = map { new_file($shop, 1000) } 1 .. 2;
    my $pack = api('POST', '/packs', key => $shop->{token},
        json => { name => 'Pack', file_ids => [ $packed->{id} ] })->{json};
    my $mapping = mapping_of($shop, [ $own->{id} ], pack_ids => [ $pack->{id} ],
        download_limit => 1, fresh_downloads => \1);
    my $order = assign($shop, digits(), [ $mapping->{storefront_product_id} ])->{json};
    my ($path) = $order->{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    my $button = { zip => $order->{assignments}[0]{id} };
    my $press  = sub { return page('POST', $path, form => $button) };
    my $taken  = sub {
        my $reply = $press->();
        return $reply->{status} if $reply->{status} != 303;
        return page('GET', $reply->{headers}{location} =~ s{^https?://[^/]+}{}r)->{status};
    };
    my $used = sub {
        return join ' ', map { $_->{downloads_used} } @{ api('GET',
            "/orders/$order->{storefront_order_id}", key => $shop->{token})
            ->{json}{assignments}[0]{files} };
    };
    is $taken->(), 200, 'it comes';
    is $used->(), '1 1', 'for one download of each file';
    wait_for(sub { !grep { $_->{status} eq 'open' } @{ api('GET',
        "/orders/$order->{storefront_order_id}", key => $shop->{token})->{json}{downloads} } },
        60, 'its end');
    is $press->()->{status}, 403, 'there is no other';
    new_bytes($shop, $own, 'other bytes');
    is $used->(), '0 1', 'a new version has all of its own';
    is $press->()->{status}, 403, 'the other file has none';
    new_bytes($shop, $packed, 'and others');
    is $used->(), '0 0', 'until it has a new version';
    is $taken->(), 200, 'and then it comes again';
    is $used->(), '1 1', 'for one download of each';
};

done_testing;
