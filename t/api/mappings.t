# Mapping products to content (contract, section 6): /mappings.
#
# both: the same product is saved twice at one moment, and several queries are different
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());

my $shop  = new_shop();
my $other = new_shop();

sub put
{
    my (%members) = @_;
    return api('POST', '/mappings', key => $shop->{token}, json => \%members);
}

# A column of the rows that a mapping has in a table, in their order.
sub kept
{
    my ($table, $column, $id) = @_;
    return join ' ', map { $_->[0] }
        sql("SELECT $column FROM $table WHERE mapping_id = $id ORDER BY position");
}

# A request of our shop, or of the shop given in the option "of".
sub call
{
    my ($method, $path, %opt) = @_;
    my $of = delete $opt{of} // $shop;
    return api($method, $path, key => $of->{token}, %opt);
}

# Creates an entity by POST; dies if that fails.
sub made
{
    my ($list, $members, %opt) = @_;
    my $reply = call('POST', $list, json => $members, %opt);
    die "POST $list was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^20[01]\z/;
    return $reply->{json};
}

sub is_gone
{
    my ($reply, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is("$reply->{status} [$reply->{body}]", '204 []', $name);
}

# The body of an error without its request id.
sub bytes { my ($reply) = @_; return $reply->{body} =~ s/req_[\w@-]+/req/r }

my @files = map { ready_asset($shop, "mappings-$$-$_.txt", "file $_\n")->{id} } 1 .. 3;
my $foreign = ready_asset($other, "mappings-$$-foreign.txt", "foreign\n")->{id};

# Two of each in our shop, and one of each in the other.
my %content = (
    pack_ids =>
        [ map { made('/packs', { name => "Pack $_", file_ids => [ $files[0] ] })->{id} } 1, 2 ],
    link_ids => [ map { made('/links',
        { title => "Link $_", url => "https://example.com/$_" })->{id} } 1, 2 ],
    license_key_tag_ids => [ map { made('/license-key-tags', { name => "Tag $_" })->{id} } 1, 2 ],
);
my %of_other = (
    file_ids            => $foreign,
    pack_ids            => made('/packs', { name => 'Theirs' }, of => $other)->{id},
    link_ids            => made('/links', { title => 'Theirs', url => 'https://example.com/' },
        of => $other)->{id},
    license_key_tag_ids => made('/license-key-tags', { name => 'Theirs' }, of => $other)->{id},
);

# --- creating ------------------------------------------------------------------------------------

my $product = product();
my $created = put(storefront_product_id => $product);
is_answer($created, 201, 'a mapping may be empty');
is_shape($created->{json}, 'mapping', 'the mapping');
my %mapping = %{ $created->{json} };
my %given   = (
    storefront_product_id  => $product,
    title                  => undef,
    note                   => undef,
    storefront_variant_ids => [],
    variant_titles         => {},
    file_ids               => [],
    pack_ids               => [],
    link_ids               => [],
    license_key_tag_ids    => [],
    download_type          => 'ZIP',
    is_active              => $true,
    download_limit         => undef,
    access_days            => undef,
    content                => 'live',
    fresh_downloads        => $false,
);
is_deeply({ map { $_ => $mapping{$_} } keys %given }, \%given, 'the defaults');
is($mapping{updated_at}, $mapping{created_at}, 'updated_at is created_at');
like($created->{headers}{location}, qr{/api/v1/mappings/$mapping{id}\z}, 'Location names it');

# All members, as in the specification.
my @variants = map { variant() } 1 .. 3;
%given = (
    storefront_product_id  => product(),
    storefront_variant_ids => [@variants],
    file_ids               => [ reverse @files ],
    map({ $_ => [ reverse @{ $content{$_} } ] } keys %content),
    download_type          => 'FILES',
    is_active              => $false,
    download_limit         => 0,
    access_days            => 36500,
    content                => 'pinned',
    fresh_downloads        => $true,
);
my $full = put(%given);
is_answer($full, 201, 'a mapping with all members');
is_shape($full->{json}, 'mapping', 'the mapping with all members');
is_deeply({ map { $_ => $full->{json}{$_} } keys %given }, \%given, 'it has the given members');
my $id = $full->{json}{id};
is(kept('mapping_file', 'asset_id', $id), "@{[ reverse @files ]}", 'the files keep their order');
is(kept('mapping_variant', 'storefront_variant_id', $id), "@variants", 'the variants are kept');
is_deeply(call('GET', "/mappings/$id")->{json}, $full->{json}, 'reading it shows the same');
is_deeply(call('GET', "/mappings/$mapping{id}")->{json}, \%mapping,
    'and reading the empty one, too');

# --- updating ------------------------------------------------------------------------------------

sub is_update
{
    my ($reply, $of, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_answer($reply, 200, $name);
    is($reply->{json}{id}, $of->{json}{id}, "$name: the same mapping");
    is_deeply(call('GET', "/mappings/$reply->{json}{id}")->{json}, $reply->{json},
        "$name: reading it shows the same");
    return is($reply->{json}{created_at}, $of->{json}{created_at},
        "$name: with the same created_at");
}

my $update = put(storefront_product_id => $given{storefront_product_id},
    storefront_variant_ids => [ @variants[ 2, 0, 1 ] ]);
is_update($update, $full, 'the same variants in another order');
is_shape($update->{json}, 'mapping', 'the mapping, updated');
cmp_ok($update->{json}{updated_at}, 'ge', $full->{json}{updated_at},
    'updated_at is not earlier');
is($update->{headers}{location}, undef, 'an update has no Location');
is_deeply(
    [ @{ $update->{json} }{qw(file_ids pack_ids link_ids license_key_tag_ids download_type is_active
                download_limit access_days content fresh_downloads)} ],
    [ [], [], [], [], 'ZIP', $true, undef, undef, 'live', $false ],
    'an update resets members that it leaves out to their defaults'
);
is(kept('mapping_file', 'asset_id', $id), '', 'and empties lists');
is(kept('mapping_variant', 'storefront_variant_id', $id), "@variants[ 2, 0, 1 ]",
    'the variants are in their new order');

is_update(put(storefront_product_id => $product, file_ids => [ $files[1] ]), $created,
    'a mapping of the whole product is updated');
is(kept('mapping_file', 'asset_id', $mapping{id}), $files[1], 'with a list of files');
is_update(put(storefront_product_id => $product, file_ids => [@files]), $created,
    'and updated again');
is(kept('mapping_file', 'asset_id', $mapping{id}), "@files", 'with a longer list');
is_update(put(storefront_product_id => $product, download_limit => undef, access_days => undef),
    $created, 'null means the same as absent where it is allowed');

# --- variants ------------------------------------------------------------------------------------

my $varied = product();
my ($platform) = $varied =~ m{^gid://([^/]+)/};
my $bare = put(storefront_product_id => $varied, storefront_variant_ids => [ '12', '345' ]);
is_answer($bare, 201, 'variants given as numbers');
is_deeply($bare->{json}{storefront_variant_ids},
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
    [ 'both numbers joined'  => ['12345'] ],
    [ 'no variant'           => [] ],
) {
    my ($name, $set) = @$_;
    my $separate = put(storefront_product_id => $varied, storefront_variant_ids => $set);
    is_answer($separate, 201, "$name: a mapping of its own");
    isnt($separate->{json}{id}, $bare->{json}{id}, "$name: another mapping");
}
is_answer(put(storefront_product_id => $varied =~ s/\bgid:\/\/\w+/gid:\/\/elsewhere/r), 201,
    'the same product number on another platform is another product');
unstored();
refused(
    put(storefront_product_id => product(),
        storefront_variant_ids => [ '7', "gid://$platform/ProductVariant/7" ]),
    400, 'invalid_request', 'one variant in two forms', '/storefront_variant_ids/1'
);
is_answer(
    put(storefront_product_id => product(), storefront_variant_ids => [ map { "$_" } 1 .. 250 ],
        download_limit => 1, access_days => 1),
    201, '250 variants, and the smallest limits'
);
unstored();
refused(
    put(storefront_product_id => product(), storefront_variant_ids => [ map { "$_" } 1 .. 251 ]),
    400, 'invalid_request', '251 variants', '/storefront_variant_ids');
is_answer(put(storefront_product_id => 'gid://storefront/Product/12345678901234567890'), 201,
    'a product whose number has twenty digits');

# --- ids of other shops --------------------------------------------------------------------------

unstored();
refused(put(storefront_product_id => product(), file_ids => [$foreign]), 422, 'unknown_reference',
    "another shop's asset", '/file_ids/0');
refused(put(storefront_product_id => product(),
    file_ids => [ $files[0], 9007199254740991, $files[1], $foreign ]),
    422, 'unknown_reference', 'known and unknown assets', '/file_ids/1', '/file_ids/3');
my ($of_theirs, $of_none) = map { bytes(put(storefront_product_id => $product, file_ids => [$_])) }
    $foreign, 9007199254740991;
is($of_theirs, $of_none, "another shop's asset and an unknown one: the same bytes");
refused(put(storefront_product_id => $product, file_ids => [$foreign]), 422, 'unknown_reference',
    'an update with an asset of another shop', '/file_ids/0');
is(kept('mapping_file', 'asset_id', $mapping{id}), '', 'changes nothing');
for my $list (sort keys %content) {
    refused(put(storefront_product_id => product(),
        $list => [ $content{$list}[0], $of_other{$list}, 9007199254740991 ]),
        422, 'unknown_reference', "$list of another shop and unknown ones", "/$list/1", "/$list/2");
}
refused(put(storefront_product_id => product(), map { $_ => [ $of_other{$_} ] } keys %of_other),
    422, 'unknown_reference', "another shop's ids in every list", map { "/$_/0" } keys %of_other);
sql("UPDATE asset SET deleted_at = 1 WHERE id = $files[2]");
is_gone(call('DELETE', "/license-key-tags/$content{license_key_tag_ids}[1]"), 'a tag is deleted');
unstored();
refused(put(storefront_product_id => product(), file_ids => [@files],
    license_key_tag_ids => $content{license_key_tag_ids}),
    422, 'unknown_reference', 'a deleted asset and a deleted tag', '/file_ids/2',
    '/license_key_tag_ids/1');
sql("UPDATE asset SET deleted_at = NULL WHERE id = $files[2]");
pop @{ $content{license_key_tag_ids} };
my $theirs = api('POST', '/mappings', key => $other->{token},
    json => { storefront_product_id => $product, file_ids => [$foreign] });
is_answer($theirs, 201, 'the same product in another shop');
isnt($theirs->{json}{id}, $mapping{id}, 'is another mapping');

# --- assets that are not ready -------------------------------------------------------------------

my $pending = api('POST', '/assets', key => $shop->{token},
    json => { source_url => source_url("mappings-$$-none.txt") });
is_answer(put(storefront_product_id => product(), file_ids => [ $pending->{json}{asset}{id} ]), 201,
    'an asset may be mapped before it has arrived');

# --- reading -------------------------------------------------------------------------------------

my $foreign_mapping = $theirs->{json};
unstored();
for my $method (qw(GET PUT DELETE)) {
    my %body = $method eq 'PUT' ? (json => { storefront_product_id => product() }) : ();
    my @replies = map { call($method, "/mappings/$_", %body) } $foreign_mapping->{id},
        9007199254740991, 0, 'x', "0$id";
    refused($replies[0], 404, 'mapping_not_found', "$method of another shop's mapping");
    is($replies[0]{json}{error}{message}, 'There is no such mapping.',
        "$method: with this message");
    is(bytes($replies[$_]), bytes($replies[0]), "$method of an unknown id ($_): the same bytes")
        for 1 .. $#replies;
}
is_deeply(call('GET', "/mappings/$foreign_mapping->{id}", of => $other)->{json}, $foreign_mapping,
    "the other shop's mapping is unchanged");

# --- the list ------------------------------------------------------------------------------------

{
    my $lister = new_shop();
    my $read = sub { my ($query) = @_; return call('GET', "/mappings$query", of => $lister) };
    my $map = sub { return made('/mappings', {@_}, of => $lister) };
    is_deeply($read->('')->{json}, { data => [], has_more => $false, next_cursor => undef },
        'an empty list');

    # Each mapping has different lists, so that mixed-up elements are noticed.
    my @own   = map { ready_asset($lister, "mappings-list-$$-$_.txt", "list $_\n")->{id} } 1 .. 3;
    my @packs = map { made('/packs', { name => "Pack $_" }, of => $lister)->{id} } 1 .. 3;
    my @links = map { made('/links', { title => 'L', url => "https://example.com/$_" },
        of => $lister)->{id} } 1 .. 3;
    my @tags  = map { made('/license-key-tags', { name => "Tag $_" }, of => $lister)->{id} } 1 .. 3;
    my $often = product();
    my @made = reverse map {
        my $n = $_;
        my @turn = $n % 4 == 0 ? () : map { ($_ + $n) % 3 } 0 .. $n % 3;
        $map->(
            storefront_product_id  => $n % 2 ? $often : product(),
            storefront_variant_ids => [ map { "$n$_" } @turn ],
            file_ids => [ @own[@turn] ], pack_ids => [ @packs[ reverse @turn ] ],
            link_ids => [ @links[@turn] ], license_key_tag_ids => [ @tags[ reverse @turn ] ],
            download_limit => $n, access_days => $n, is_active => $n % 3 ? $true : $false,
        )
    } 1 .. 7;
    my ($query, @seen) = ('?limit=3');
    for my $n (1 .. 3) {
        my $page = $read->($query);
        is_answer($page, 200, "page $n");
        is_shape($page->{json}, 'mappings', "page $n");
        push @seen, @{ $page->{json}{data} };
        $map->(storefront_product_id => $n == 2 ? $often : product());
        is($page->{json}{has_more}, $n < 3 ? $true : $false, "page $n: has_more");
        $query = '?limit=3&cursor=' . ($page->{json}{next_cursor} // '');
    }
    is_deeply(\@seen, \@made, 'the pages have each mapping once with its lists, newest first, '
        . 'without those that were added meanwhile');

    my $filter = '?storefront_product_id=' . ($often =~ s{([:/])}{sprintf '%%%02X', ord $1}ger);
    is_deeply([ map { $_->{id} } @{ $read->($filter)->{json}{data} } ],
        [ map { $_->{id} } grep { $_->{storefront_product_id} eq $often }
            @{ $read->('?limit=100')->{json}{data} } ],
        'the mappings of one product');
    my $first = $read->("$filter&limit=2");
    is(scalar @{ $first->{json}{data} }, 2, 'a page of them');
    my ($next) = $first->{headers}{link} =~ m{^</api/v1/mappings(\?[^>]+)>; rel="next"\z};
    is_deeply([ map { $_->{id} } map { @{ $_->{json}{data} } } $first, $read->($next),
        $read->("$filter&limit=2&cursor="
            . $read->($next)->{json}{next_cursor}) ],
        [ map { $_->{id} } @{ $read->($filter)->{json}{data} } ], 'all pages of them');
    my $all = $read->('?limit=100')->{json}{data};
    for my $state (qw(true false)) {
        my @wanted = grep { $_->{is_active} == ($state eq 'true') } @$all;
        is_deeply([ map { @{ $read->($_)->{json}{data} } } "?is_active=$state&limit=100" ],
            \@wanted, "is_active=$state has these alone");
        is_deeply($read->("$filter&is_active=$state")->{json}{data},
            [ grep { $_->{storefront_product_id} eq $often } @wanted ], 'of a product, too');
    }
    is_error($read->('?is_active=1'), 400, 'invalid_request', 'no boolean', '/is_active');
    is_deeply($read->('?storefront_product_id=' . product())->{json}{data}, [],
        'a product that is not mapped has none');

    my $cursor = $first->{json}{next_cursor};
    is_error($read->("?cursor=$cursor"), 400, 'invalid_cursor',
        'the cursor of a filtered list without the filter');
    is_error($read->('?storefront_product_id=gid://storefront/Product/1&cursor=' . $cursor), 400,
        'invalid_cursor', 'the cursor of another filter');
    my $plain = $read->('?limit=2')->{json}{next_cursor};
    is_error($read->("$filter&cursor=$plain"), 400, 'invalid_cursor',
        'the cursor of the whole list with a filter');
    is_error(call('GET', "/packs?cursor=$plain", of => $lister), 400, 'invalid_cursor',
        'the cursor of another list');
    is_error($read->("?storefront_product_id=$_"), 400, 'invalid_request', "a product of: $_",
        '/storefront_product_id')
        for '', '12', 'gid://storefront/ProductVariant/12';
}

# --- replacing -----------------------------------------------------------------------------------

sub replace { my ($of, %members) = @_; return call('PUT', "/mappings/$of", json => \%members) }

my $old = made('/mappings', { storefront_product_id => product(), storefront_variant_ids => ['1'],
    file_ids => [@files], %content, download_limit => 3, access_days => 4, is_active => $false,
    content => 'pinned', fresh_downloads => $true, download_type => 'FILES' });
my $moved = product();
my $put = replace($old->{id}, storefront_product_id => $moved);
is_answer($put, 200, 'another product');
is_shape($put->{json}, 'mapping', 'the replaced mapping');
is_deeply($put->{json},
    { %mapping, id => $old->{id}, storefront_product_id => $moved, created_at => $old->{created_at},
        updated_at => $put->{json}{updated_at} },
    'members that are left out get their defaults, and lists are empty');
cmp_ok($put->{json}{updated_at}, 'ge', $old->{updated_at}, 'updated_at is not earlier');
is_deeply(call('GET', "/mappings/$old->{id}")->{json}, $put->{json}, 'reading it shows the same');
my %whole = (
    storefront_product_id  => $moved,
    storefront_variant_ids => [ variant(), variant() ],
    file_ids               => [ @files[ 2, 1 ] ],
    map({ $_ => [ reverse @{ $content{$_} } ] } keys %content),
    download_type          => 'FILES',
    is_active              => $true,
    download_limit         => 7,
    access_days            => 8,
    content                => 'pinned',
    fresh_downloads        => $true,
);
$put = replace($old->{id}, %whole);
is_answer($put, 200, 'a replacement of all members');
is_deeply({ map { $_ => $put->{json}{$_} } keys %whole }, \%whole, 'it has the given members');
is_deeply(call('GET', "/mappings/$old->{id}")->{json}, $put->{json}, 'reading it shows the same');
is_answer(replace($old->{id}, %whole), 200, 'the same replacement again');

my $idem = idem();
my @twice = map { call('PUT', "/mappings/$old->{id}", json => \%whole, idem => $idem) } 1, 2;
is($twice[1]{body}, $twice[0]{body}, 'a replay answers the same');
is($twice[1]{headers}{'idempotent-replayed'}, 'true', 'and is marked as a replay');

# A replaced mapping serves its new product, and no longer the former one.
my $served = product();
is_error(assign($shop, digits(), [$served]), 422, 'product_not_mapped',
    'a product that is not mapped', '/items/0/storefront_product_id');
is_answer(replace($old->{id}, storefront_product_id => $served), 200, 'is mapped by a replacement');
is_answer(assign($shop, digits(), [$served]), 201, 'and can be assigned');
is_error(assign($shop, digits(), [$moved]), 422, 'product_not_mapped', 'the former product can not',
    '/items/0/storefront_product_id');

my $taken = made('/mappings',
    { storefront_product_id => product(), storefront_variant_ids => [ '1', '2' ] });
my $as_it_was = call('GET', "/mappings/$old->{id}")->{json};
unstored();
refused(replace($old->{id}, storefront_product_id => $taken->{storefront_product_id},
    file_ids => [@files], storefront_variant_ids => [ '2', '1' ]), 409, 'mapping_exists',
    "another mapping's product and variants");
refused(replace($old->{id}, storefront_product_id => product(), file_ids => [ $files[0], $foreign ],
        pack_ids => [ $of_other{pack_ids} ]), 422, 'unknown_reference', 'ids of another shop',
    '/file_ids/1', '/pack_ids/0');
refused(replace($old->{id}, file_ids => ['1'], is_active => 1, download_limit => -1,
    access_days => -1, content => 'both', fresh_downloads => 'yes',
        download_type => 'RAR', name => 'x', storefront_variant_ids => [1]),
    400, 'invalid_request', 'invalid members', '/storefront_product_id', '/file_ids/0',
    '/is_active', '/download_limit', '/access_days', '/content', '/fresh_downloads',
    '/download_type', '/name', '/storefront_variant_ids/0');
is_deeply(call('GET', "/mappings/$old->{id}")->{json}, $as_it_was,
    'refused replacements change nothing');
is_answer(replace($old->{id}, storefront_product_id => $taken->{storefront_product_id},
    storefront_variant_ids => ['1']),
    200, "the same product with other variants");

# --- changing ------------------------------------------------------------------------------------

sub change { my ($id, %members) = @_; return call('PATCH', "/mappings/$id", json => \%members) }

my $full_one = made('/mappings', { storefront_product_id => product(),
    storefront_variant_ids => [ '7', '8' ], file_ids => [@files], %content,
    download_type => 'FILES', is_active => JSON::PP::false(), download_limit => 3, access_days => 9,
    content => 'pinned' });
for ([ is_active => JSON::PP::true() ], [ download_limit => undef ], [ access_days => undef ],
    [ download_limit => 0 ], [ download_type => 'ZIP' ], [ content => 'live' ],
    [ fresh_downloads => JSON::PP::true() ],
    [ title => 'A title' ], [ note => "One\ntwo" ],
    [ variant_titles => { 'gid://storefront/ProductVariant/8' => 'Large' } ],
    [ title => undef ], [ note => undef ], [ variant_titles => {} ],
    [ file_ids => [ $files[1] ] ], [ pack_ids => [] ], [ link_ids => [] ],
    [ license_key_tag_ids => [] ]) {
    my ($member, $value) = @$_;
    my $before = call('GET', "/mappings/$full_one->{id}")->{json};
    my $reply  = change($full_one->{id}, $member => $value);
    is_answer($reply, 200, "$member is changed");
    is_deeply($reply->{json}, { %$before, $member => $value,
        updated_at => $reply->{json}{updated_at} }, 'and nothing else');
    is_deeply(call('GET', "/mappings/$full_one->{id}")->{json}, $reply->{json}, 'as it is read');
}
my $variants = change($full_one->{id}, storefront_variant_ids => ['9'])->{json};
like("@{ $variants->{storefront_variant_ids} }", qr{^gid://[^ ]+/ProductVariant/9\z},
    'a variant by its number is one of the product');
my $unchanged = change($full_one->{id});
is_answer($unchanged, 200, 'a change of nothing');
is_deeply($unchanged->{json}, $variants, 'changes nothing, updated_at neither');
unstored();
refused(change($full_one->{id}, storefront_product_id => product()), 400, 'invalid_request',
    'another product without its variants', '/storefront_variant_ids');
refused(change($full_one->{id}, file_ids => undef, is_active => 1, download_limit => 1.5,
    name => 'x'), 400, 'invalid_request',
    'invalid members', '/file_ids', '/is_active', '/download_limit', '/name');
refused(change($full_one->{id}, file_ids => [$foreign]), 422, 'unknown_reference',
    "another shop's file", '/file_ids/0');
refused(change($full_one->{id}, storefront_product_id => $taken->{storefront_product_id},
    storefront_variant_ids => [ '1', '2' ]),
    409, 'mapping_exists', "another mapping's product and variants");
is_error(change(9999999, is_active => JSON::PP::false()), 404, 'mapping_not_found',
    'an unknown mapping');
is_deeply(call('GET', "/mappings/$full_one->{id}")->{json}, $variants,
    'refused changes change nothing');
my $whole = call('PATCH', "/mappings/$full_one->{id}",
    body => '{"download_limit":4.0,"access_days":1e1}');
is_deeply([ @{ $whole->{json} }{qw(download_limit access_days)} ], [ 4, 10 ],
    'an integer is one however it is written');

# --- deleting ------------------------------------------------------------------------------------

my $bought = product();
my $sold   = made('/mappings',
    { storefront_product_id => $bought, file_ids => [ $files[0] ], %content });
my $general = made('/mappings',
    { storefront_product_id => $bought, storefront_variant_ids => ['5'] });
my $order  = digits();
is_answer(assign($shop, $order, [$bought]), 201, 'an order');
my $delivered = call('GET', "/orders/$order")->{json}{assignments}[0]{files};
is(scalar @$delivered, scalar grep({ $_->{file_id} } @$delivered), 'it has files');
$idem = idem();
my @gone = map { call('DELETE', "/mappings/$sold->{id}", idem => $idem) } 1, 2;
is_gone($gone[0], 'a mapping with an order is deleted');
is_gone($gone[1], 'the deletion is replayed');
is($gone[1]{headers}{'idempotent-replayed'}, 'true', 'and says so');
is_error(call($_, "/mappings/$sold->{id}",
    $_ eq 'PUT' ? (json => { storefront_product_id => product() }) : ()), 404,
    'mapping_not_found', "$_ of a deleted mapping") for qw(GET PUT DELETE);
for my $query ('?limit=100', "?storefront_product_id=$bought") {
    ok(!grep({ $_->{id} == $sold->{id} } @{ call('GET', "/mappings$query")->{json}{data} }),
        "it is not in the list: $query");
}
my $after = call('GET', "/orders/$order")->{json}{assignments}[0];
is_deeply([ $after->{mapping_id}, $after->{files} ], [ $sold->{id}, $delivered ],
    'the order keeps its mapping and files');
is_error(assign($shop, digits(), [$bought]), 422, 'product_not_mapped',
    'its product can not be assigned to a new order', '/items/0/storefront_product_id');
is_answer(assign($shop, $order, [$bought]), 200, 'the same assignment to the same order succeeds');
is_error(assign($shop, $order, [ $bought, product() ]), 422, 'product_not_mapped',
    'the same product beside an unmapped one', '/items/1/storefront_product_id');
is(kept('mapping_license_key_tag', 'tag_id', $sold->{id}), '', 'it has no license key tags left');
my $anew = made('/mappings', { storefront_product_id => $bought, file_ids => [ $files[1] ] });
isnt($anew->{id}, $sold->{id}, 'mapping the product again makes another mapping');
is_answer(assign($shop, digits(), [$bought]), 201, 'which is used for new orders');
is_deeply(call('GET', "/orders/$order")->{json}{assignments}[0]{files}, $delivered,
    'but not for earlier ones');

is_gone(call('DELETE', "/mappings/$general->{id}"), 'a mapping without orders is deleted');
is_deeply([ sql("SELECT id FROM mapping WHERE id = $general->{id}") ], [], 'its row too');
is_answer(assign($shop, digits(),
    [ { storefront_product_id => $bought, storefront_variant_id => '5' } ]), 201,
    'its variant can be assigned by the mapping of the whole product');

my $keeps = made('/mappings', { storefront_product_id => product(), file_ids => [ $files[0] ],
    %content, content => 'pinned' });
$order = digits();
is_answer(assign($shop, $order, [ $keeps->{storefront_product_id} ]), 201,
    'an order with pinned content');
is_gone(call('DELETE', "/mappings/$keeps->{id}"), 'its mapping is deleted');
is(join(' ', map { kept(@$_, $keeps->{id}) }
        [qw(mapping_file asset_id)], [qw(mapping_pack pack_id)],
        [qw(mapping_link link_id)]) =~ s/ //gr, '',
    'which refers to nothing then');
ok(grep({ $_->{file_id} == $files[0] } @{ call('GET',
    "/orders/$order")->{json}{assignments}[0]{files} }),
    'the order keeps its files');

# --- many at once --------------------------------------------------------------------------------

sub tally
{
    my %n;
    $n{ $_->{status} // $_->{died} }++ for @_;
    return join ' ', map { "$_:$n{$_}" } sort keys %n;
}

my $rush = product();
my @made = parallel(8, sub {
    my ($i) = @_;
    return { status => call('POST', '/mappings', patient => 1,
        json => { storefront_product_id => $rush, file_ids => [ $files[ $i % 3 ] ] })->{status} };
});
is(tally(@made), '200:7 201:1',
    'of eight requests for one mapping one creates it and seven update it');
is(scalar @{ [ sql("SELECT id FROM mapping WHERE shop_id = $shop->{shop_id} "
    . "AND storefront_product_id = '$rush'") ] }, 1, 'there is one mapping');
my ($rushed) = sql(
    "SELECT id FROM mapping WHERE shop_id = $shop->{shop_id} AND storefront_product_id = '$rush'");
is(kept('mapping_file', 'asset_id', $rushed->[0]) =~ tr/ //, 0, 'with the file of one of them');

my @several = map { made('/mappings', { storefront_product_id => product() })->{id} } 1 .. 6;
$rush = product();
@made = parallel(6, sub {
    return { status => call('PUT', "/mappings/$several[ $_[0] ]", patient => 1,
        json => { storefront_product_id => $rush })->{status} };
});
is(tally(@made), '200:1 409:5', 'of six mappings that are moved to one product one succeeds');

for my $turn (1 .. 5) {
    my $mapped = made('/mappings', { storefront_product_id => product() });
    my @orders = map { digits() } 1 .. 6;
    my @mixed = parallel(6, sub {
        my ($i) = @_;
        my $reply = $i == 3 ? call('DELETE', "/mappings/$mapped->{id}", patient => 1)
            : assign($shop, $orders[$i], [ $mapped->{storefront_product_id} ], patient => 1);
        return { status => $reply->{status} };
    });
    like(tally(@mixed), qr/^(?:201:\d )?204:1(?: 422:\d)?\z/,
        'orders that are assigned while the mapping is deleted succeed or are refused');

    my $pack = made('/packs', { name => 'Contested' })->{id};
    my @products = map { product() } 1 .. 4;
    @mixed = parallel(4, sub {
        my ($i) = @_;
        my $reply = $i == 2 ? call('DELETE', "/packs/$pack", patient => 1)
            : call('POST', '/mappings', patient => 1,
            json => { storefront_product_id => $products[$i], pack_ids => [$pack] });
        return { status => $reply->{status} };
    });
    like(tally(@mixed), qr/^(?:204:1 422:3|201:3 409:1)\z/,
        'a pack is deleted before it is mapped, or mapped and not deleted');
}

done_testing();
