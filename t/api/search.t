# One search for orders, customers, products and files.
#
# both: each database compares words in its own way
use strict;
use warnings;
use utf8;

use Encode qw(encode_utf8);
use MDL::Contract;
use MDL::Test;
use Test::More;

binmode $_, ':utf8' for map { Test::More->builder->$_ } qw(output failure_output);

my ($shop, $other) = (new_shop(), new_shop());

# What a search finds, as "kind id", sorted.
sub found
{
    my ($q, $in) = @_;
    my $bytes = encode_utf8($q);
    $bytes =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ge;
    my $reply = api('GET', "/search?q=$bytes&limit=100", key => ($in // $shop)->{token});
    return "$reply->{status} $reply->{body}" if $reply->{status} != 200;
    my %found = %{ $reply->{json} };
    return join ', ', (map { "order $_->{storefront_order_id}" } @{ $found{orders} }),
        (map { "customer $_->{storefront_customer_id}" } @{ $found{customers} }),
        (map { "mapping $_->{id}" } @{ $found{mappings} }),
        (map { "asset $_->{id}" } @{ $found{assets} }),
        (map { "key $_->{license_key_tag_name} $_->{status} " . ($_->{storefront_order_id} // '-') }
            @{ $found{license_keys} });
}

# Whether a search finds exactly these.
sub finds
{
    my ($q, $expected, $name) = @_;
    return is found($q), $expected, $name;
}

my $file    = ready_asset($shop, 'field-guide_v2.pdf', 'bytes');
my $mapping = mapping_of($shop, [ $file->{id} ], title => 'Bestimmungsbuch');
my $product = $mapping->{storefront_product_id};
my $number  = $product =~ s{.*/}{}r;
my ($order, $customer) = ('55001002', '66001003');
my %ada = (email => 'Ada.King+shop@Lovelace.example', first_name => 'Ädà',
    last_name => 'O’Neill-Groß');

sub buys
{
    my ($id, %members) = @_;
    my $reply = assign($shop, $id, [$product], storefront_customer_id => $customer, %members);
    die "$reply->{status} $reply->{body}" if $reply->{status} !~ /^20[01]$/;
    return;
}

buys($order, customer => \%ada);
my $person = "order $order, customer $customer";
finds($order, "order $order", 'an order by its number');
finds("#$order", "order $order", 'and with a #');
finds('5500100', "order $order", 'and by its beginning');
finds($customer, $person, 'a customer by the number, with the orders');
finds($_, $person, "the customer by '$_'")
    for 'ada', 'ÄDA', "o'neill", 'groß', 'GROSS', 'neill ada', 'ada.king+shop@lovelace.example',
    'ada.k', 'king', 'shop', 'lovelace.ex', 'king+shop@love', 'example o’neill';
finds($_, '', "nobody by '$_'") for 'lovelac3', 'ovelace', 'ada lovelady', 'king ada smith';
finds($product, "mapping $mapping->{id}", 'a product by its id');
finds('bestimmung', "mapping $mapping->{id}", 'and by its title');
finds($number, "mapping $mapping->{id}", 'and by its number');
finds($_, "asset $file->{id}", "a file by '$_'")
    for 'field', 'guide', 'field-guide', 'V2', 'pdf guide';

is found('ada', $other), '', "another shop finds nothing of it: a person";
is found($_, $other), '', "another shop finds nothing of it: $_" for $order, $number, 'guide';

buys(my $second = '55001003',
    customer => { first_name => 'Augusta', email => 'augusta@byron.example' });
finds('augusta', "order $second, order $order, customer $customer",
    'a customer by another name, with all orders, the newest first');
finds('ada', '', 'and no longer by the former');
finds('groß', "order $second, order $order, customer $customer", 'but by the one that was kept');

my %key = (key => $shop->{token});
# The best and the newest come first, and no more than asked for.
my @many = map { my $id = "7712$_"; buys($id); $id } 1, 10 .. 14;
is found('771210'), 'order 771210', 'a whole number';
my $first = api('GET', '/search?q=77121&limit=3', %key)->{json};
is join(' ', map { $_->{storefront_order_id} } @{ $first->{orders} }), '77121 771214 771213',
    'the whole number first, then the newest';
# The newer has the word, and another that begins with it.
my ($echoes, $echo) = map { ready_asset($shop, $_, 'bytes')->{id} } 'echoes.pdf', 'both.pdf';
api('PATCH', "/assets/$echo", %key, json => { title => 'Echo echoes' });
is_deeply [ map { $_->{id} } @{ api('GET', '/search?q=echo&limit=2', %key)->{json}{assets} } ],
    [ $echo, $echoes ], 'each once, and as many as asked for';

is api('PATCH', "/assets/$file->{id}", %key, json => { title => 'Pflanzen' })->{status}, 200,
    'a file gets another title';
finds('pflanzen guide', "asset $file->{id}", 'and is found by it');
my $spare = ready_asset($shop, 'herbarium.epub', 'bytes');
finds('herbarium', "asset $spare->{id}", 'a file is found');
finds('herbarium pflanzen', '', 'nothing by the words of two');
is api('DELETE', "/assets/$spare->{id}", %key)->{status}, 204, 'it is deleted';
finds('herbarium', '', 'and no longer found');

my $unused = mapping_of($shop, [ $file->{id} ]);
my ($old)  = $unused->{storefront_product_id} =~ m{(\d+)\z};
my $gid    = product();
my ($new)  = $gid =~ m{(\d+)\z};
is api('PUT', "/mappings/$unused->{id}", %key, json => { storefront_product_id => $gid })->{status},
    200, 'a mapping gets another product';
finds($old, '', 'and is not found by the former');
finds($new, "mapping $unused->{id}", 'but by the new one');
is api('DELETE', "/mappings/$_->{id}", %key)->{status}, 204, 'a mapping is deleted'
    for $unused, $mapping;
finds($new, '', 'and no longer found');
finds($number, '', 'also if it serves orders');

for my $of ($shop, $other) {
    is(found('K7Q2-X9PL-4M', $of), '', 'no license key, without any');
    my @tags = map { api('POST', '/license-key-tags', key => $of->{token},
        json => { name => $_ })->{json}{id} } 'Editor', $of == $shop ? 'Viewer' : 'Theirs';
    api('POST', "/license-key-tags/$_/keys", key => $of->{token},
        json => { keys => [ 'K7Q2-X9PL-4M', "\x{e9}" x 512, 'other' . $_ ] }) for @tags;
    next if $of != $shop;
    assign($shop, '88001', [ mapping_of($shop, [], license_key_tag_ids => [ $tags[0] ])
        ->{storefront_product_id} ]);
}
finds('K7Q2-X9PL-4M', 'key Viewer available -, key Editor assigned 88001',
    'a license key by the whole of it, in each tag');
finds("\x{e9}" x 512, 'key Viewer available -, key Editor available -', 'even the longest');
finds(" K7Q2-X9PL-4M ", 'key Viewer available -, key Editor assigned 88001', 'and space around it');
finds($_, '', "not by '$_'") for 'K7Q2-X9PL', 'k7q2-x9pl-4m', 'K7Q2-X9PL-4MM';
is(found('K7Q2-X9PL-4M', $other), 'key Theirs available -, key Editor available -',
    'another shop finds its own');
{
    my %by = map { $_ => MDL::Test::new_key($shop->{shop_id}, scope => $_)->{token} }
        qw(read deliver);
    is(found('K7Q2-X9PL-4M', { token => $by{deliver} }),
        'key Viewer available -, key Editor assigned 88001', 'a key of the scope deliver does');
    is(found('K7Q2-X9PL-4M', { token => $by{read} }), '', 'one of the scope read does not');
}
is_deeply([ sql("SELECT 1 FROM audit WHERE detail LIKE '%K7Q2%' OR detail LIKE '%X9PL%'") ], [],
    'the audit has no word of it');

finds($_, '', "nothing by '$_'") for '+ #@', '-';
for my $q ('', '%20', '%FF', 'a' x 513) {
    is api('GET', "/search?q=$q", %key)->{status}, 400, "refused: '" . substr($q, 0, 10) . q(');
}

done_testing;
