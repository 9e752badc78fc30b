# The products of a shop as its staff see and change them: the list and its filters, what a product
# gives, whom a change reaches, its variants, copies, and its end.
#
# both: the list is found by expressions, which each database folds and orders in its own way
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $XSS    = '"><script>alert(1)</script>';
my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];
my $other = new_shop();
told('member', 'add', 'other', 'staff', '--shop', $other->{shop_id});

my $file = ready_asset($shop, 'brushes.zip', 'the brushes', title => "Brushes $XSS");
my $pack = made('/packs', name => 'Textures', file_ids => [ $file->{id} ]);
my $link = made('/links', title => 'The forum', url => 'https://forum.example/');
my $tag  = made('/license-key-tags', name => 'Seats');
my $foreign = ready_asset($other, 'foreign.zip', 'of another shop');

sub made
{
    my ($path, %members) = @_;
    return api('POST', $path, key => $shop->{token}, json => \%members)->{json}{id};
}

sub mapping { my ($n) = @_; return api('GET', "/mappings/$n", key => $shop->{token})->{json} }

sub shown
{
    my ($path, $user) = @_;
    my $reply = visit($user // 'reader', 'GET', "/$id/products$path");
    is($reply->{status}, 200, "products$path");
    unlike($reply->{body}, qr/<script>alert|gid:\/\/storefront/, 'is escaped, and has no gid');
    return $reply->{body};
}

# The titles in the list.
sub listed
{
    my ($query) = @_;
    return [ shown("?$query") =~ m{/products/\d+"><bdi>([^<]+)<}g ];
}

# Sends a form of a product's page, in the version that is shown.
sub sent
{
    my ($n, $form, %fields) = @_;
    return submit('staff', visit('staff', 'GET', "/$id/products/$n"), "/$id/products/$n$form",
        \%fields);
}

sub added
{
    my (%fields) = @_;
    return submit('staff', visit('staff', 'GET', "/$id/products"), "/$id/products", \%fields);
}

# --- a new product -------------------------------------------------------------------------------

like(shown(''), qr/There is no product yet/, 'without products the page says so');
unlike(shown(''), qr/New product/, 'a reader can add none');
my $reply = added(product => '1018', title => "Atlas $XSS");
is($reply->{status}, 303, 'a product by its number');
my ($atlas) = $reply->{headers}{location} =~ m{/products/(\d+)\?done=product_created};
is(mapping($atlas)->{storefront_product_id}, 'gid://shopify/Product/1018', 'of the usual platform');
is(mapping($atlas)->{title}, "Atlas $XSS", 'with its title');
my $again = added(product => '1018', title => 'Again');
is($again->{status}, 409, 'the same once more is refused');
like($again->{body}, qr/Another mapping has this product.*value="Again"/s, 'with what was typed');
is(mapping($atlas)->{title}, "Atlas $XSS", 'and nothing of it is changed');
is(added(product => 'x')->{status}, 400, 'no number');
is(added(product => '1018', variants => "5 S\n5 L")->{status}, 400,
    'a variant that comes twice');
is(submit('reader', own_form('reader', 'read-only', "/$id/products"), "/$id/products",
        { product => '1019' })->{status}, 403, 'a reader may not');
my $sized = added(product => '1018', title => 'Atlas', variants => "5 Small one\r\n\r\n6\r\n");
my ($variants) = $sized->{headers}{location} =~ m{/products/(\d+)};
is_deeply([ @{ mapping($variants) }{qw(storefront_variant_ids variant_titles)} ],
    [ [ map { "gid://shopify/ProductVariant/$_" } 5, 6 ],
        { 'gid://shopify/ProductVariant/5' => 'Small one' } ],
    'some variants of a product, and the title of one');

# --- what it gives -------------------------------------------------------------------------------

like(shown("/$atlas"), qr/Buyers get nothing yet/, 'an empty product says so');
my $found = shown("/$atlas?find=BRUSH", 'staff');
like($found, qr/name="item" value="1-$file->{id}"/, 'a file is found by its title in any case');
like(shown("/$atlas?find=exture", 'staff'), qr/name="item" value="2-$pack"/, 'a pack by a part');
like(shown("/$atlas?find=forum", 'staff'), qr/name="item" value="3-$link"/, 'a link');
like(shown("/$atlas?find=Seats", 'staff'), qr/name="item" value="4-$tag"/, 'license keys');
like(shown("/$atlas?find=foreign", 'staff'), qr/Nothing has this in its name/,
    "nothing of another shop");
is(sent($atlas, '/add', item => $_)->{status}, 303, "$_ is added")
    for "1-$file->{id}", "2-$pack", "3-$link", "4-$tag";
is_deeply([ @{ mapping($atlas) }{qw(file_ids pack_ids link_ids license_key_tag_ids)} ],
    [ [ $file->{id} ], [$pack], [$link], [$tag] ], 'the mapping gives them');
like(shown("/$atlas?find=BRUSH", 'staff'), qr/<span class="state">in it</, 'what is in it says so');
is(sent($atlas, '/add', item => "1-$foreign->{id}")->{status}, 422, "another shop's file is not");
is(sent($atlas, '/add', item => 'x')->{status}, 400, 'nor nothing');
my $second = ready_asset($shop, 'second.zip', 'the second');
sent($atlas, '/add', item => "1-$second->{id}");
is(sent($atlas, '/up', item => "1-$second->{id}")->{status}, 303, 'an entry is moved up');
is_deeply(mapping($atlas)->{file_ids}, [ $second->{id}, $file->{id} ], 'before the other');
is(sent($atlas, '/remove', item => "1-$second->{id}")->{status}, 303, 'and taken out');
is_deeply(mapping($atlas)->{file_ids}, [ $file->{id} ], 'of the mapping');
is(sent($variants, '/copy', from => '1018')->{status}, 303, 'the contents of another product');
is_deeply([ @{ mapping($variants) }{qw(file_ids pack_ids)} ], [ [ $file->{id} ], [$pack] ],
    'are copied');
is(sent($variants, '/copy', from => '4711')->{status}, 400, 'of none they are not');

# --- its settings --------------------------------------------------------------------------------

my $saved = sent($atlas, '', title => 'World atlas', note => "One.\r\nTwo.", limit => '7',
    days => '30', active => '1', pinned => '1', separate => '1', fresh => '1');
is($saved->{status}, 303, 'the settings are saved');
is_deeply([ @{ mapping($atlas) }{qw(title note download_limit access_days content download_type)} ],
    [ 'World atlas', "One.\nTwo.", 7, 30, 'pinned', 'FILES' ], 'all of them');
ok(mapping($atlas)->{fresh_downloads}, 'and the box for new versions');
like(shown("/$atlas", 'staff'), qr/name="fresh" value="1" checked/, 'which is ticked then');
is_deeply(mapping($atlas)->{file_ids}, [ $file->{id} ], 'and the contents are as they were');
for ([ 'Downloads of each file: give 0', '-1', '30' ], [ 'Days of access: give 0', '1', 'x' ]) {
    my ($says, $limit, $days) = @$_;
    my $faulty = sent($atlas, '', title => 'Typed', limit => $limit, days => $days);
    is($faulty->{status}, 400, 'a faulty number is refused');
    like($faulty->{body}, qr/role="alert"[^>]*>\s*$says.*value="Typed"/s,
        'by a sentence that names it, with what was typed');
}
is(mapping($atlas)->{title}, 'World atlas', 'and nothing is saved');
is(sent($atlas, '', seen => '1', title => 'Late')->{status}, 412, 'so is a form of an older page');
sent($atlas, '', title => 'World atlas');
is_deeply([ @{ mapping($atlas) }{qw(is_active download_limit access_days content)} ],
    [ JSON::PP::false(), undef, undef, 'live' ], 'empty fields and boxes are saved, too');
ok(!mapping($atlas)->{fresh_downloads}, 'all of them');
sent($atlas, '', title => 'World atlas', active => '1');

# --- whom it reaches -----------------------------------------------------------------------------

like(shown("/$atlas"), qr/reaches new orders only/, 'without orders it reaches new ones');
my $product = mapping($atlas)->{storefront_product_id};
assign($shop, $_, [$product]) for '8001', '8002';
like(shown("/$atlas"), qr/reaches 2 earlier orders and all new ones/, 'then the earlier ones');
like(shown("/$atlas"), qr{/orders/800\d">}, 'and leads to one of them');
sent($atlas, '', title => 'World atlas', active => '1', pinned => '1');
assign($shop, '8100', [$product]);
like(shown("/$atlas"), qr/1 earlier order keeps what it got/, 'but not those that keep theirs');

# --- the list ------------------------------------------------------------------------------------

made('/mappings', storefront_product_id => 'gid://shopify/Product/2000', title => 'Water colours');
made('/mappings', storefront_product_id => 'gid://shopify/Product/20', title => 'west',
    is_active => JSON::PP::false());
is_deeply(listed(''), [ 'west', 'Water colours', 'Atlas', 'World atlas' ], 'the newest first');
is_deeply(listed('q=w'), [ 'Water colours', 'west', 'World atlas' ], 'by the title, in any case');
is_deeply(listed('q=20'), [ 'west', 'Water colours' ], 'by the beginning of the number');
is_deeply(listed('q=olours'), [], 'by its beginning alone');
is_deeply(listed('state=paused'), ['west'], 'the paused ones');
is_deeply(listed('q=w&state=active'), [ 'Water colours', 'World atlas' ], 'both together');
my $list = shown('');
like($list, qr{World atlas.*?1 file<.*?1 pack<.*?1 link<.*?1 stock of license keys<.*?2 follow}s,
    'with what it gives and its orders');

# --- one made of a file, or of another product ----------------------------------------------------

my $of_file = added(product => '3001', title => 'Brushes', item => "1-$file->{id}");
my ($brushes) = $of_file->{headers}{location} =~ m{/products/(\d+)};
is_deeply(mapping($brushes)->{file_ids}, [ $file->{id} ], 'a product of a file');
sent($brushes, '', title => 'Brushes', note => 'Unpack them.', limit => '3', days => '9',
    pinned => '1', separate => '1');
my $copied = added(product => '3002', title => 'Pens', from => $brushes);
my ($pens) = $copied->{headers}{location} =~ m{/products/(\d+)};
my @all = qw(file_ids note download_limit access_days content download_type);
is_deeply([ @{ mapping($pens) }{@all} ], [ @{ mapping($brushes) }{@all} ],
    'a copy has what the other has');
is_deeply([ @{ mapping($pens) }{qw(title is_active)} ], [ 'Pens', JSON::PP::true() ],
    'but for its title and that it takes orders');
sent($pens, '', title => 'Pens', active => '1', note => 'Refill them.');
is(mapping($brushes)->{note}, 'Unpack them.', 'and changes apart from it');
$copied = added(product => '3001', from => $brushes);
is($copied->{status}, 409, 'a number that is taken is refused');
like($copied->{body}, qr/name="from" value="$brushes"/, 'and the form still copies');
my $theirs = mapping_of($other, [ $foreign->{id} ])->{id};
is(added(product => '3003', from => $theirs)->{status}, 404, 'nothing of another shop is copied');
is(added(product => '3003', item => "1-$foreign->{id}")->{status}, 422, 'nor sold');
like(visit('reader', 'GET', "/$id/products/$pens")->{body}, qr/Pens/, 'a reader sees the copy');
unlike(visit('reader', 'GET', "/$id/products/$pens")->{body}, qr{action="[^"]*/products"},
    'and can make none');

# --- its end -------------------------------------------------------------------------------------

like(shown("/$atlas/delete", 'staff'), qr/Delete this product\?/, 'deleting it asks');
is(sent($atlas, '/delete')->{status}, 303, 'then it is deleted');
is(visit('staff', 'GET', "/$id/products/$atlas")->{status}, 404, 'and gone');
is(api('GET', '/orders/8001', key => $shop->{token})->{json}{assignments}[0]{files}[0]{file_id},
    $file->{id}, 'an earlier order has its file');
for my $path ("/$variants", "/$variants/delete") {
    is(visit('other', 'GET', "/$id/products$path")->{status}, 404, "$path is for its own shop");
    is(visit('other', 'GET', "/$other->{shop_id}/products$path")->{status}, 404,
        'as is its number');
}

done_testing();
