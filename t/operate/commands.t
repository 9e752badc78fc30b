# downloadsctl shows a shop's files, mappings and customers: their lists have an end, and another
# shop's are not there.
#
# both: each list is a query
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my ($shop, $other) = map { new_shop() } 1, 2;
my $id = $shop->{shop_id};
my @files = map { ready_asset($shop, "commands-$$-$_.txt", "bytes $_\n") } 1 .. 3;
my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'keys' })
    ->{json}{id};
my $mapping = mapping_of($shop, [ $files[0]{id}, $files[1]{id} ], license_key_tag_ids => [$tag],
    title => 'Two files', storefront_variant_ids => [variant()]);
my $whole = mapping_of($shop, [ $files[2]{id} ]);
my $number = digits();
my @orders = map { digits() } 1 .. 3;

# The output for people, and the exit code.
sub said
{
    my $program = MDL::Test::vars()->{build} . '/downloadsctl';
    open my $out, '-|', $program, '-f', conf_file(), @_ or die "$program: $!\n";
    my $text = do { local $/; <$out> // '' };
    close $out;
    return wantarray ? ($text, $? >> 8) : $text;
}

sub listed
{
    my (@command) = @_;
    my ($code, $json, $text) = ctl(@command);
    is($code, 0, "'@command' succeeds") or diag($text);
    return $json;
}

sub is_absent
{
    my (@command) = @_;
    my ($code, $json) = ctl(@command);
    is($code, 4, "'@command' finds nothing") && isnt($json->{error}{code}, undef, 'and says so');
    return;
}

for my $n (0, 1, 2) {
    my $reply = api('POST', "/orders/$orders[$n]/assignments", key => $shop->{token}, json => {
        ($n < 2 ? (storefront_customer_id => $number) : ()),
        customer => { email => ($n < 2 ? 'Ann' : 'guest') . "-$$\@buyer.example" },
        items    => [ { storefront_product_id => $whole->{storefront_product_id} } ],
    });
    is($reply->{status}, 201, 'an order is made') or diag($reply->{body});
}

subtest 'files' => sub {
    my $list = listed('asset', 'list', $id);
    is_deeply([ map { $_->{id} } @$list ], [ map { $_->{id} } reverse @files ], 'newest first');
    my ($text, $code) = said('asset', 'list', $id, '--limit', 2);
    is($code, 0, 'as many as --limit says');
    is(scalar(() = $text =~ /commands-$$/g), 2, 'are shown');
    like($text, qr/^\(there are more: --limit shows up to 10000\)$/m, 'with a line about the rest');
    unlike(said('asset', 'list', $id, '--limit', 3), qr/there are more/, 'if there is a rest');
    is_deeply(listed('asset', 'list', $other->{shop_id}), [], 'another shop has none');
    is(said('asset', 'list', $other->{shop_id}), "The shop has no file.\n", 'in words, too');

    my $one = listed('asset', 'show', $id, $files[1]{id});
    is($one->{$_}, $files[1]{$_}, "a file has its $_") for qw(id filename sha256 size);
    like(said('asset', 'show', $id, $files[1]{id}), qr/^sha256 +$files[1]{sha256}$/m, 'in lines');
    is_absent('asset', 'show', $other->{shop_id}, $files[1]{id});
    is_absent('asset', 'list', 987_654);
    is((ctl('asset', 'show', $id, 'x'))[0], 1, 'and its id is a number');
};

subtest 'mappings' => sub {
    my $list = listed('mapping', 'list', $id);
    is_deeply([ map { $_->{id} } @$list ], [ $whole->{id}, $mapping->{id} ], 'newest first');
    is_deeply(listed('mapping', 'list', $other->{shop_id}), [], 'another shop has none');
    my $one = listed('mapping', 'show', $id, $mapping->{id});
    for my $member (qw(id storefront_product_id storefront_variant_ids title file_ids pack_ids
        link_ids license_key_tag_ids is_active download_type content)) {
        is_deeply($one->{$member}, $mapping->{$member}, "a mapping has its $member");
    }
    my $text = said('mapping', 'show', $id, $mapping->{id});
    like($text, qr/^file_ids +$files[0]{id} $files[1]{id}$/m, 'its files are in a line');
    like($text, qr/^link_ids +-$/m, 'and what it has not');
    like($text, qr/^is_active +yes$/m, 'it is active');
    is_absent('mapping', 'show', $other->{shop_id}, $mapping->{id});
};

subtest 'customers' => sub {
    my $list = listed('customer', 'list', $id);
    my ($ann, $guest) = @$list;
    is(scalar @$list, 2, 'each is listed once');
    is($ann->{storefront_customer_id}, $number, 'by the number');
    is($guest->{storefront_customer_id}, undef, 'a guest has none');
    is_deeply(listed('customer', 'list', $id, '--email', "ann-$$\@BUYER.example"), [$ann],
        'and found by an address, in any case');
    is_deeply(listed('customer', 'list', $id, '--email', 'nobody@buyer.example'), [],
        'another address finds none');
    is_deeply(listed('customer', 'list', $other->{shop_id}), [], 'another shop has none');

    my $one = listed('customer', 'show', $id, $ann->{id});
    is($one->{email}, "Ann-$$\@buyer.example", 'a customer has the address');
    is_deeply([ map { $_->{storefront_order_id} } @{ $one->{orders} } ],
        [ reverse @orders[ 0, 1 ] ],
        'and the orders, newest first');
    like(said('customer', 'show', $id, $guest->{id}), qr/^$orders[2] /m, 'a guest has one');
    is_absent('customer', 'show', $other->{shop_id}, $ann->{id});

    sql("UPDATE customer SET merged_into = $ann->{id} WHERE id = $guest->{id}");
    is(listed('customer', 'show', $id, $guest->{id})->{id}, $ann->{id},
        'who was merged into another leads there');
};

subtest 'storage verify tells a terminal how far it is' => sub {
    my $command = MDL::Test::vars()->{build} . '/downloadsctl -f ' . conf_file()
        . ' storage verify --full';
    my $seen = qx(script -qec '$command' /dev/null);
    like($seen, qr/\r#+\.* +\d+ %, 1 of \d+ files/, 'by a line that is replaced');
    like($seen, qr/\r +\r\d+ files? w\w+ looked at and read/, 'and removed in the end');
    is(qx(script -qec '$command --quiet' /dev/null), '', 'but not with --quiet');
    unlike(qx(script -qec '$command --json' /dev/null), qr/%/, 'nor with --json');
    unlike(qx($command 2>&1), qr/%/, 'nor without a terminal');
};

done_testing();
