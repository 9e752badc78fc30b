# The answer to an assignment is made of what was written. It is what GET /orders/{id} says of the
# order.
#
# both: the answer is made of what each database returns
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my $true = JSON::PP::true();

my $shop = new_shop();
my %key  = (key => $shop->{token});

sub made
{
    my ($path, $json) = @_;
    my $reply = api('POST', $path, %key, json => $json);
    die "$path was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^20[01]$/;
    return $reply->{json}{id};
}

sub is_as_read
{
    my ($id, $products, $name, %more) = @_;
    my $reply = assign($shop, $id, $products, %more);
    is $reply->{status}, 201, "$name is assigned";
    my $read = api('GET', "/orders/$id", %key)->{json};
    # The email may have left since.
    delete @$_{qw(email updated_at)} for $more{send_email} ? ($reply->{json}, $read) : ();
    is_deeply $reply->{json}, { map { $_ => $read->{$_} } keys %{ $reply->{json} } },
        "$name: it is as it is read";
    return $reply->{json};
}

my @files = map { ready_asset($shop, "file-$_.bin", "bytes $_")->{id} } 1 .. 4;
my @packs = map { made('/packs', { name => "Pack $_", file_ids => [ @files[ $_, $_ + 1 ] ] }) }
    1 .. 2;
my @links = map { made('/links', { title => "Link $_", url => "https://links.test/$_" }) } 1 .. 2;
my $tag   = made('/license-key-tags', { name => 'Keys' });
api('POST', "/license-key-tags/$tag/keys", %key, json => { keys => [ map {"KEY-$_"} 1 .. 9 ] });

my %lists = (file_ids => [ $files[0] ], pack_ids => [ reverse @packs ], link_ids => \@links);
my $plain = mapping_of($shop, [ $files[0] ]);
my $empty = mapping_of($shop, [], link_ids => [ $links[0] ]);
my $packs = mapping_of($shop, [], pack_ids => \@packs, download_type => 'ZIP');
my $all   = mapping_of($shop, [ $files[0] ], %lists, access_days => 30, download_limit => 5,
    content => 'pinned');
my $follows = mapping_of($shop, [ $files[0] ], %lists, access_days => 1, download_limit => 0);
my $keys    = mapping_of($shop, [ $files[0] ], license_key_tag_ids => [$tag]);
my $variant = variant();
my $one     = mapping_of($shop, [ $files[1] ], storefront_variant_ids => [$variant]);

my %product = map { $_->[0] => $_->[1]{storefront_product_id} }
    [ plain => $plain ], [ links => $empty ], [ packs => $packs ], [ pinned => $all ],
    [ follows => $follows ], [ keys => $keys ];
is_as_read(digits(), [ $product{$_} ], "an order of $_") for sort keys %product;
is_as_read(digits(), [ values %product ], 'an order of all of them');
is_as_read(digits(),
    [ { storefront_product_id => $one->{storefront_product_id}, storefront_variant_id => $variant,
    quantity => 3 } ], 'three of a variant');
is_as_read(digits(), [ $product{plain} ], 'an order with an email', send_email => $true,
    customer => { email => 'buyer@buyer.example' });
is_as_read(digits(), [ $product{plain} ], 'an order that is checked', fraud_check => $true);

my $named = is_as_read(digits(), [ $product{plain} ], 'an order of a customer with a name',
    storefront_customer_id => '4711',
    customer => { email => 'ada@buyer.example', first_name => 'Ada', last_name => 'Lovelace',
        locale => 'en' });
my $again = is_as_read(digits(), [ $product{plain} ], 'the next order of that customer',
    storefront_customer_id => '4711', customer => { first_name => 'Augusta', locale => undef });
is_deeply $again->{customer}, { %{ $named->{customer} }, first_name => 'Augusta', locale => undef },
    'it has what is known of the customer, and what was given or cleared now';
is_as_read($again->{storefront_order_id}, [ $product{packs} ], 'more of an order',
    storefront_customer_id => '4711');

done_testing;
