# How many files a mapping and an order may give (contract, section 6).
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();

sub call { my ($method, $path, %opt) = @_; return api($method, $path, key => $shop->{token}, %opt) }

sub made
{
    my ($list, $members) = @_;
    my $reply = call('POST', $list, json => $members);
    die "POST $list was answered with: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return (values %{ $reply->{json} })[0];
}

# Ready files, more of them than it would take to import in a test.
my $model = ready_asset($shop, "many-$$.txt", "many\n")->{id};
sql('INSERT INTO asset (shop_id, status, filename, title, content_type, sha256, version, created_at, updated_at)'
        . ' WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1250)'
        . " SELECT shop_id, status, 'many-' || n || '.txt', 'Many ' || n, content_type, sha256, version,"
        . " created_at, updated_at FROM asset, numbers WHERE id = $model");
my @files = map { 0 + $_->[0] } sql("SELECT id FROM asset WHERE shop_id = $shop->{shop_id} ORDER BY id");
my @packs = map { made('/packs', { name => "Pack $_", file_ids => [ @files[ 250 * $_ .. 250 * $_ + 249 ] ] })->{id} }
    0 .. 4;

sub mapping { my (%members) = @_; return { storefront_product_id => product(), %members } }

subtest 'a mapping gives at most 1,000 files' => sub {
    my $full = mapping(pack_ids => [ @packs[ 0 .. 3 ] ]);
    is(call('POST', '/mappings', json => $full)->{status}, 201, '1,000 files of four packs are accepted');
    is(call('POST', '/mappings', json => { %$full, file_ids => [ @files[ 0 .. 249 ] ] })->{status}, 200,
        'a file that is also in a pack counts once');

    unstored();
    my $reply = call('POST', '/mappings', json => mapping(pack_ids => \@packs));
    refused($reply, 422, 'too_many_files', 'five packs of 250 files');
    like($reply->{json}{error}{message}, qr/1250 .* 1000/, 'the message says how many there would be and may be');
    refused(call('POST', '/mappings', json => { %$full, file_ids => [ $files[1000] ] }), 422, 'too_many_files',
        'one file more for a mapping that has 1,000');

    my $small = made('/mappings', mapping(file_ids => [ $files[0] ]));
    unstored();
    refused(
        call('PUT', "/mappings/$small->{id}",
            json => { storefront_product_id => $small->{storefront_product_id}, pack_ids => \@packs }),
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

    is(call('PATCH', $path, json => { name => 'Grew', file_ids => [ @files[ 5 .. 9 ] ] })->{status}, 200,
        'it takes files that the mapping has already');
    is(call('PATCH', "/packs/$packs[3]", json => { file_ids => [ @files[ 750 .. 998 ] ] })->{status}, 200,
        'another pack of the mapping loses a file');
    is(call('PATCH', $path, json => { file_ids => [ @files[ 5 .. 9 ], $files[1001] ] })->{status}, 200,
        'which makes room for one');
    is(call('PATCH', "/packs/$packs[3]", json => { file_ids => [ @files[ 750 .. 999 ] ] })->{status}, 422,
        'so that the other can have it back no more');
    is(call('DELETE', "/mappings/$mapping->{id}")->{status}, 204, 'the mapping is deleted');
    is(call('PATCH', $path, json => { file_ids => [ @files[ 1000 .. 1249 ] ] })->{status}, 200,
        'a deleted mapping keeps no pack from growing');
};

done_testing();
