# Mapping products to content (contract, section 6): POST /mappings.
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());

my $shop  = new_shop();
my $other = new_shop();

sub put { my (%members) = @_; return api('POST', '/mappings', key => $shop->{token}, json => \%members) }

# What the database has of a mapping: its files and variants, in order.
sub kept
{
    my ($table, $column, $id) = @_;
    return join ' ', map { $_->[0] }
        sql("SELECT $column FROM $table WHERE mapping_id = $id ORDER BY position");
}

my @files = map { ready_asset($shop, "mappings-$$-$_.txt", "file $_\n")->{id} } 1 .. 3;
my $foreign = ready_asset($other, "mappings-$$-foreign.txt", "foreign\n")->{id};

# --- creating --------------------------------------------------------------------------------------

my $product = product();
my $created = put(storefront_product_id => $product);
is_answer($created, 201, 'a mapping of nothing is a mapping');
is(join(' ', keys %{ $created->{json} }), 'mapping', 'the answer has the mapping');
is_shape($created->{json}{mapping}, 'mapping', 'the mapping');
my %mapping = %{ $created->{json}{mapping} };
my %given   = (
    storefront_product_id  => $product,
    storefront_variant_ids => [],
    file_ids               => [],
    pack_ids               => [],
    link_ids               => [],
    license_key_tag_ids    => [],
    download_type          => 'ZIP',
    is_active              => $true,
    download_limit         => undef,
    access_days            => undef,
    content                => 'live',
);
is_deeply({ map { $_ => $mapping{$_} } keys %given }, \%given, 'the defaults');
is($mapping{updated_at}, $mapping{created_at}, 'it was not updated yet');

# Everything at once, as the specification writes it.
my @variants = map { variant() } 1 .. 3;
%given = (
    storefront_product_id  => product(),
    storefront_variant_ids => [@variants],
    file_ids               => [ reverse @files ],
    pack_ids               => [],
    link_ids               => [],
    license_key_tag_ids    => [],
    download_type          => 'FILES',
    is_active              => $false,
    download_limit         => 0,
    access_days            => 36500,
    content                => 'pinned',
);
my $full = put(%given);
is_answer($full, 201, 'a mapping with everything');
is_shape($full->{json}{mapping}, 'mapping', 'the mapping with everything');
is_deeply({ map { $_ => $full->{json}{mapping}{$_} } keys %given }, \%given, 'as it was given');
my $id = $full->{json}{mapping}{id};
is(kept('mapping_file', 'asset_id', $id), "@{[ reverse @files ]}", 'the files keep their order');
is(kept('mapping_variant', 'storefront_variant_id', $id), "@variants", 'the variants are kept');

# --- updating --------------------------------------------------------------------------------------

sub is_update
{
    my ($reply, $of, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_answer($reply, 200, $name);
    is($reply->{json}{mapping}{id}, $of->{json}{mapping}{id}, "$name: the same mapping");
    return is($reply->{json}{mapping}{created_at}, $of->{json}{mapping}{created_at},
        "$name: made when it was");
}

my $update = put(storefront_product_id => $given{storefront_product_id},
    storefront_variant_ids => [ @variants[ 2, 0, 1 ] ]);
is_update($update, $full, 'the same variants in another order');
is_shape($update->{json}{mapping}, 'mapping', 'the mapping, updated');
cmp_ok($update->{json}{mapping}{updated_at}, 'ge', $full->{json}{mapping}{updated_at},
    'it was updated later');
is_deeply(
    [ @{ $update->{json}{mapping} }{qw(file_ids download_type is_active download_limit access_days content)} ],
    [ [], 'ZIP', $true, undef, undef, 'live' ],
    'what an update leaves out is the default again'
);
is(kept('mapping_file', 'asset_id', $id), '', 'every list is replaced');
is(kept('mapping_variant', 'storefront_variant_id', $id) =~ tr/ //, 2, 'the variants are there once');

is_update(put(storefront_product_id => $product, file_ids => [ $files[1] ]), $created,
    'the whole product, mapped again');
is(kept('mapping_file', 'asset_id', $mapping{id}), $files[1], 'with another list');
is_update(put(storefront_product_id => $product, file_ids => [@files]), $created, 'and again');
is(kept('mapping_file', 'asset_id', $mapping{id}), "@files", 'with a longer one');
is_update(put(storefront_product_id => $product, storefront_variant_ids => undef), $created,
    'null is as good as absent');

# --- variants --------------------------------------------------------------------------------------

my $varied = product();
my ($platform) = $varied =~ m{^gid://([^/]+)/};
my $bare = put(storefront_product_id => $varied, storefront_variant_ids => [ '12', '345' ]);
is_answer($bare, 201, 'variants by their numbers');
is_deeply($bare->{json}{mapping}{storefront_variant_ids},
    [ "gid://$platform/ProductVariant/12", "gid://$platform/ProductVariant/345" ],
    'are answered as global ids');
is_update(
    put(storefront_product_id => $varied,
        storefront_variant_ids => [ "gid://$platform/ProductVariant/345", '12' ]),
    $bare, 'the same variants, half of them as global ids'
);
for (
    [ 'one variant less'     => ['12'] ],
    [ 'one variant more'     => [ '12', '345', '6' ] ],
    [ 'another variant'      => [ '12', '346' ] ],
    [ 'digits run together'  => ['12345'] ],
    [ 'no variant'           => [] ],
) {
    my ($name, $set) = @$_;
    my $separate = put(storefront_product_id => $varied, storefront_variant_ids => $set);
    is_answer($separate, 201, "$name: a mapping of its own");
    isnt($separate->{json}{mapping}{id}, $bare->{json}{mapping}{id}, "$name: another mapping");
}
is_answer(put(storefront_product_id => $varied =~ s/\bgid:\/\/\w+/gid:\/\/elsewhere/r), 201,
    'the same number on another platform is another product');
unstored();
refused(
    put(storefront_product_id => product(), storefront_variant_ids => [ '7', "gid://$platform/ProductVariant/7" ]),
    400, 'invalid_request', 'one variant in two forms', '/storefront_variant_ids/1'
);
is_answer(
    put(storefront_product_id => product(), storefront_variant_ids => [ map { "$_" } 1 .. 250 ],
        download_limit => 1, access_days => 1),
    201, '250 variants, and the smallest numbers'
);
unstored();
refused(put(storefront_product_id => product(), storefront_variant_ids => [ map { "$_" } 1 .. 251 ]),
    400, 'invalid_request', '251 variants', '/storefront_variant_ids');
is_answer(put(storefront_product_id => 'gid://storefront/Product/12345678901234567890'), 201,
    'a product whose number has twenty digits');

# --- ids of others ---------------------------------------------------------------------------------

unstored();
refused(put(storefront_product_id => product(), file_ids => [$foreign]), 422, 'unknown_reference',
    "another shop's asset", '/file_ids/0');
refused(put(storefront_product_id => product(), file_ids => [ $files[0], 9007199254740991, $files[1], $foreign ]),
    422, 'unknown_reference', 'some that are there and some that are not', '/file_ids/1', '/file_ids/3');
sub bodies
{
    my (@ids) = @_;
    return map { put(storefront_product_id => $product, file_ids => [$_])->{body} =~ s/req_[\w@-]+/req/r } @ids;
}
my ($of_other, $of_none) = bodies($foreign, 9007199254740991);
is($of_other, $of_none, "another shop's asset and none at all: the same bytes");
refused(put(storefront_product_id => $product, file_ids => [$foreign]), 422, 'unknown_reference',
    'an update with an asset of another shop', '/file_ids/0');
is(kept('mapping_file', 'asset_id', $mapping{id}), '', 'has changed nothing');
for my $list (qw(pack_ids link_ids license_key_tag_ids)) {
    refused(put(storefront_product_id => product(), file_ids => [ $files[0] ], $list => [ 1, 2 ]), 422,
        'unknown_reference', "$list that are not there", "/$list/0", "/$list/1");
}
my $theirs = api('POST', '/mappings', key => $other->{token},
    json => { storefront_product_id => $product, file_ids => [$foreign] });
is_answer($theirs, 201, 'the same product in another shop');
isnt($theirs->{json}{mapping}{id}, $mapping{id}, 'is another mapping');

# --- assets that are not ready ---------------------------------------------------------------------

my $pending = api('POST', '/assets', key => $shop->{token},
    json => { source_url => source_url("mappings-$$-none.txt") });
is_answer(put(storefront_product_id => product(), file_ids => [ $pending->{json}{asset}{id} ]), 201,
    'an asset may be mapped before it has arrived');

done_testing();
