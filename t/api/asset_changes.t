# Existing assets (contract, section 6): the list, one asset, changing, deleting, versions.
#
# once: openapi.t makes each of these requests on both databases; lists.t has the pages
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use MDL::Contract;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my $key   = $shop->{token};

sub get    { my ($path) = @_; return api('GET', $path, key => $key) }
sub change { my ($id, %to) = @_; return api('PATCH', "/assets/$id", key => $key, json => \%to) }

# The ids that the list returns for a query string.
sub listed
{
    my ($query) = @_;
    my $reply = get("/assets$query");
    return "$reply->{status} $reply->{body}" if $reply->{status} != 200;
    return join ' ', map { $_->{id} } @{ $reply->{json}{data} };
}

my $now = 1_700_000_000_000_000;

sub category
{
    my ($of) = @_;
    my ($row) = sql('INSERT INTO category (shop_id, name, created_at, updated_at) '
            . "VALUES ($of->{shop_id}, 'A category', $now, $now) RETURNING id");
    return 0 + $row->[0];
}

sub blob
{
    my ($sha256, $size) = @_;
    sql("INSERT INTO blob (sha256, size, crc32, created_at) VALUES ('$sha256', $size, 1, $now)");
    sql("UPDATE shop SET bytes_stored = bytes_stored + $size WHERE id = $shop->{shop_id}");
    return $sha256;
}

# Inserts an asset as a row; returns its id.
sub row_of
{
    my (%given) = @_;
    my %row = (shop_id => $shop->{shop_id}, status => 'failed', filename => 'row.bin',
        title => 'Row', version => 1, created_at => $now, updated_at => $now, %given);
    my @names = sort keys %row;
    my $values = join ', ', map { $row{$_} =~ /^\d+\z/ ? $row{$_} : "'$row{$_}'" } @names;
    my ($id) = sql('INSERT INTO asset (' . join(', ', @names) . ") VALUES ($values) RETURNING id");
    return 0 + $id->[0];
}

# Checks that shop.bytes_stored, which the quota uses, is the sum of the sizes of the shop's assets,
# and bytes_former that of their former versions.
sub is_stored
{
    my ($name) = @_;
    my ($row) = sql('SELECT bytes_stored, bytes_former, (SELECT COALESCE(sum(b.size), 0) '
            . 'FROM asset a JOIN blob b ON b.sha256 = a.sha256 WHERE a.shop_id = shop.id '
            . 'AND a.deleted_at IS NULL), (SELECT COALESCE(sum(b.size), 0) FROM asset a '
            . 'JOIN blob b ON b.sha256 = a.former_sha256 WHERE a.shop_id = shop.id) '
            . "FROM shop WHERE id = $shop->{shop_id}");
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is("@$row[0, 1]", "@$row[2, 3]",
        "$name: the shop's stored bytes are the sum of its assets");
}

# --- the list ------------------------------------------------------------------------------------

my $empty = get('/assets');
is_answer($empty, 200, 'a shop without assets has a list');
is_deeply($empty->{json}, { data => [], has_more => JSON::PP::false(), next_cursor => undef },
    'which is empty');

my $ready = ready_asset($shop, "changes-$$.txt", "ready\n");
my $first = get("/assets/$ready->{id}")->{json};
is_shape($first, 'asset', 'an asset, read alone,');
is_deeply([ @{$first}{qw(id status filename size sha256 version category_id source_url)} ],
    [ @{$ready}{qw(id)}, 'ready', @{$ready}{qw(filename size sha256)}, 1, undef,
        source_url($ready->{filename}) ], 'has these values');
my $list = get('/assets');
is_answer($list, 200, 'the list');
is_shape($list->{json}, 'assets', 'the list');
is_deeply($list->{json}{data}, [$first], 'contains the same asset');

my $of_shop  = category($shop);
my $of_other = category($other);
my $bytes    = blob(sha256_hex("asset-changes-$$"), 77);
my $a = row_of(status => 'pending', category_id => $of_shop);
my $b = row_of(status => 'failed', filename => "caf\xc3\xa9 & 50%.pdf", category_id => $of_shop);
my $c = row_of(status => 'ready', sha256 => $bytes, filename => "caf\xc3\xa9 & 50%.pdf");
my $gone   = row_of(category_id => $of_shop, deleted_at => $now);
my $theirs = row_of(shop_id => $other->{shop_id}, category_id => $of_other);

is(listed(''), "$c $b $a $ready->{id}", 'newest first, without deleted ones and other shops\'');
is(listed('?status=pending'), $a, 'by status');
is(listed('?status=ready'), "$c $ready->{id}", 'by another status');
is(listed("?category_id=$of_shop"), "$b $a", 'by category');
is(listed("?category_id=$of_other"), '', "another shop's category has none of this shop's assets");
is(listed('?filename=caf%C3%A9%20%26%2050%25.pdf'), "$c $b", 'by filename');
is(listed('?filename=caf%C3%A9'), '', 'a filter compares the whole filename');
is(listed("?sha256=$bytes"), $c, 'by SHA-256');
is(listed('?sha256=' . uc $bytes), $c, 'by SHA-256 in upper case');
is(listed("?category_id=$of_shop&status=failed"), $b, 'by category and status');
is(listed("?filename=caf%C3%A9+%26+50%25.pdf&category_id=$of_shop"), $b,
    'by filename and category');
is(listed('?filename=caf%C3%A9+%26+50%25.pdf&status=ready'), $c, 'by filename and status');
is(listed("?sha256=$bytes&status=pending"), '', 'by SHA-256 and a status that it does not have');
is(listed("?sha256=$bytes&status=ready&filename=caf%C3%A9+%26+50%25.pdf"), $c,
    'by SHA-256, status and filename');
is(listed("?sha256=$bytes&filename=row.bin"), '',
    'by SHA-256 and a filename that it does not have');
is(listed("?sha256=$bytes&category_id=$of_shop"), '',
    'by SHA-256 and a category that it is not in');
is_error(get('/assets?status=done&category_id=x&filename=&sha256=abc&limit=0&name=x'), 400,
    'invalid_request', 'invalid filters', '/status', '/category_id', '/filename',
    '/sha256', '/limit', '/name');

my @many = reverse map { row_of(filename => 'many.bin') } 1 .. 7;
my ($page, @seen) = get('/assets?filename=many.bin&limit=3');
push @seen, map { $_->{id} } @{ $page->{json}{data} };
row_of(filename => 'many.bin');
while ($page->{json}{has_more}) {
    my ($next) = $page->{headers}{link} =~ m{<(?:http://[^/]+)?/api/v1(/[^>]+)>; rel="next"};
    like($next, qr/cursor=\Q$page->{json}{next_cursor}\E/, 'Link leads to the next page');
    $page = get($next);
    push @seen, map { $_->{id} } @{ $page->{json}{data} };
}
is("@seen", "@many", 'the pages have each asset once, although one is added meanwhile');
is($page->{headers}{link}, undef, 'the last page has no Link');
my $cursor = get('/assets?filename=many.bin&limit=3')->{json}{next_cursor};
is_error(get("/assets?limit=3&cursor=$cursor"), 400, 'invalid_cursor',
    'a cursor under other filters');

# --- one asset -----------------------------------------------------------------------------------

sub without_id { my ($reply) = @_; return $reply->{body} =~ s/req_[\w@-]+/req/r }

my $unknown = get('/assets/9007199254740991');
is_error($unknown, 404, 'asset_not_found', 'an unknown asset');
is($unknown->{json}{error}{message}, 'There is no such asset.', 'the message is a sentence');
my %not_ours = ("another shop's" => $theirs, 'a deleted one' => $gone,
    map { $_ => $_ } 0, '-1', '01', 'x', '9' x 16, '9' x 30, "${\ $ready->{id}}x");
for my $name (sort keys %not_ours) {
    my $path = "/assets/$not_ours{$name}";
    is(without_id(get($path)), without_id($unknown), "GET of $name: the same bytes");
    is(without_id(change($not_ours{$name}, title => 'x')), without_id($unknown),
        "PATCH of $name: the same bytes");
    is(without_id(api('DELETE', $path, key => $key)), without_id($unknown),
        "DELETE of $name: the same bytes");
    is(without_id(api('POST', "$path/versions", key => $key,
        json => { source_url => source_url($ready->{filename}) })),
        without_id($unknown), "a version of $name: the same bytes");
}

# --- changing ------------------------------------------------------------------------------------

my %to = (filename => "neu \x{1f33b}.txt", title => 'A new title', content_type => 'text/x-new',
    category_id => $of_shop);
my $changed = change($ready->{id}, %to);
is_answer($changed, 200, 'an asset is changed');
is_shape($changed->{json}, 'asset', 'the changed asset');
is_deeply({ map { $_ => $changed->{json}{$_} } keys %to }, \%to, 'has the new values');
is_deeply([ @{ $changed->{json} }{qw(status size sha256 version source_url created_at)} ],
    [ @{$first}{qw(status size sha256 version source_url created_at)} ], 'and keeps the others');
cmp_ok($changed->{json}{updated_at}, 'gt', $first->{updated_at}, 'updated_at is later');
is_deeply(get("/assets/$ready->{id}")->{json}, $changed->{json}, 'and reading it shows the same');
is_deeply(change($ready->{id})->{json}, $changed->{json}, 'an empty change changes nothing');
my $title = change($ready->{id}, title => 'Only this')->{json};
is_deeply([ @{$title}{qw(filename title content_type category_id)} ],
    [ $to{filename}, 'Only this', $to{content_type}, $of_shop ],
    'a change of one member leaves the others');
my $cleared = change($ready->{id}, content_type => undef, category_id => undef)->{json};
is_deeply([ @{$cleared}{qw(filename title content_type category_id)} ],
    [ $to{filename}, 'Only this', undef, undef ], 'null clears an optional member');

unstored();
my $null = change($ready->{id}, filename => undef, title => undef);
refused($null, 400, 'invalid_request', 'null for required members', '/filename', '/title');
is("$_->{code} $_->{message}", 'wrong_type This member must not be null; it may be left out.',
    "$_->{pointer}: the reason")
    for @{ $null->{json}{error}{details} };
refused(change($ready->{id}, filename => '../x', title => '', content_type => 'x',
    category_id => 0, status => 'ready', sha256 => 'x'), 400, 'invalid_request', 'faulty members',
    '/filename', '/title', '/content_type', '/category_id', '/status', '/sha256');
refused(change($ready->{id}, category_id => $of_other), 422, 'unknown_reference',
    "another shop's category", '/category_id');
refused(change($ready->{id}, category_id => 9007199254740991), 422, 'unknown_reference',
    'an unknown category', '/category_id');
is_deeply(get("/assets/$ready->{id}")->{json}, $cleared, 'refused changes change nothing');

my $in_category = import_of($shop, "changes-category-$$.txt", 'x', category_id => $of_shop);
is_answer($in_category, 202, 'an import into a category');
is($in_category->{json}{asset}{category_id}, $of_shop, 'names the category');
is(wait_job($shop, $in_category->{json}{job}{id})->{status}, 'succeeded', 'the import succeeds');
is(get("/assets/$in_category->{json}{asset}{id}")->{json}{category_id}, $of_shop,
    'and its asset is in the category');
unstored();
refused(import_of($shop, "changes-category-$$.txt", 'x', category_id => $of_other), 422,
    'unknown_reference', "an import into another shop's category", '/category_id');

# --- versions ------------------------------------------------------------------------------------

my $held = MDL::Source->new;

sub version_of
{
    my ($id, %members) = @_;
    return api('POST', "/assets/$id/versions", key => $key, json => \%members);
}

my $neither = version_of($ready->{id});
is_error($neither, 400, 'invalid_request', 'a version of nothing', '/source_url');
is($neither->{json}{error}{details}[0]{message}, 'This member or upload_id is required.',
    'which names both ways');
is_error(version_of($ready->{id}, source_url => undef), 400, 'invalid_request', 'a version of null',
    '/source_url');
is_error(version_of($ready->{id}, upload_id => undef), 400, 'invalid_request', 'an upload of null',
    '/upload_id');

is_stored('before');
my $mapping = mapping_of($shop, [ $ready->{id} ]);
my $order   = digits();
assign($shop, $order, [ $mapping->{storefront_product_id} ]);

sub file_of_order
{
    my $reply = api('GET', "/orders/$order/assignments", key => $key);
    return $reply->{json}{data}[0]{files}[0];
}

change($ready->{id}, content_type => 'text/x-own');
my $before = get("/assets/$ready->{id}")->{json};
my $text   = "the second version\n";
my $url    = $held->offer("version-$$", { body => $text, hold => 4,
    headers => ['Content-Type: text/x-source'] });
my $queued = version_of($ready->{id}, source_url => $url, sha256 => uc sha256_hex($text));
is_answer($queued, 202, 'new bytes for an asset');
is(join(' ', sort keys %{ $queued->{json} }), 'asset job', 'the answer has asset and job');
is_deeply($queued->{json}{asset}, $before, 'the asset has not changed yet');
is_shape($queued->{json}{job}, 'job', 'the job of a version');
is($queued->{json}{job}{asset_id}, $ready->{id}, 'the job belongs to the asset');
like($queued->{headers}{location}, qr{/api/v1/jobs/\Q$queued->{json}{job}{id}\E\z},
    'Location is the job');
wait_for(sub { get("/jobs/$queued->{json}{job}{id}")->{json}{progress}{bytes_received} }, 60,
    'the first bytes');
is_deeply(get("/assets/$ready->{id}")->{json}, $before,
    'the asset keeps its old bytes while the job runs');
is_error(version_of($ready->{id}, source_url => $url), 409, 'asset_not_ready',
    'another version while the job runs');
$held->release("version-$$");
is(wait_job($shop, $queued->{json}{job}{id})->{status}, 'succeeded', 'the job succeeds');
my $second = get("/assets/$ready->{id}")->{json};
is_deeply([ @{$second}{qw(id status version size sha256 source_url content_type filename)} ],
    [ $ready->{id}, 'ready', 2, length $text, sha256_hex($text), $url, 'text/x-own',
        $before->{filename} ], 'and the asset has the new bytes');
is(file_of_order()->{sha256}, sha256_hex($text), 'existing orders get the new version');
is_stored('a version of another size');

for my $failing (
    { source_url => source_url("none-$$") },
    { source_url => source_url($ready->{filename}), sha256 => sha256_hex('something else') }
    )
{
    my $reply = version_of($ready->{id}, %$failing);
    is(wait_job($shop, $reply->{json}{job}{id})->{status}, 'failed', 'a version that fails');
    is_deeply(get("/assets/$ready->{id}")->{json}, $second, 'leaves the asset as it was');
}
is_stored('after versions that failed');

my $failed = import_of($shop, 'x', 'x', source_url => source_url("later-$$.txt"))->{json};
is(wait_job($shop, $failed->{job}{id})->{status}, 'failed', 'an import that fails');
source("later-$$.txt", 'now it is there');
my $mended = version_of($failed->{asset}{id}, source_url => source_url("later-$$.txt"));
is_answer($mended, 202, 'its asset gets a new version');
is($mended->{json}{asset}{status}, 'pending', 'it is pending meanwhile');
is(wait_job($shop, $mended->{json}{job}{id})->{status}, 'succeeded', 'the version succeeds');
is_deeply([ @{ get("/assets/$failed->{asset}{id}")->{json} }{qw(status version)} ], [ 'ready', 2 ],
    'and the asset is ready');
is_stored('an asset that was mended');

unstored();
refused(version_of($ready->{id}), 400, 'invalid_request', 'a version without a source',
    '/source_url');
refused(version_of($ready->{id}, source_url => $url, upload_id => 'upl_x'), 400, 'invalid_request',
    'a version with two sources', '/upload_id');
refused(version_of($ready->{id}, source_url => 'no', sha256 => 'no', filename => 'x'), 400,
    'invalid_request', 'faulty members of a version', '/source_url', '/sha256', '/filename');
refused(version_of($ready->{id}, upload_id => 'upl_00000000000000000000000000'), 422,
    'unknown_reference', 'an unknown upload', '/upload_id');
refused(version_of($ready->{id}, source_url => 'https://example.com/x'), 422,
    'source_host_not_allowed', 'a version from a host that is not allowed', '/source_url');
refused(version_of($a, source_url => $url), 409, 'asset_not_ready', 'a version of a pending asset');
refused(version_of($ready->{id}, source_url => $url, note => 'x' x 1001, notify => 'yes'), 400,
    'invalid_request', 'faulty news of a version', '/note', '/notify');

# --- what is said of a version --------------------------------------------------------------------

my $said = ready_asset($shop, "said-$$.txt", 'said 1')->{id};
my $no   = version_of($said, source_url => source_url("gone-$$.txt"),
    note => 'Wrong.');
is($no->{json}{asset}{note}, undef, 'a note is not shown before its version is there');
wait_job($shop, $no->{json}{job}{id});
is(get("/assets/$said")->{json}{note}, undef, 'nor if the version never comes');
wait_job($shop, version_of($said, source_url => source("said2-$$.txt", 'said 2'),
    note => "Two.\nLines.")->{json}{job}{id});
is(get("/assets/$said")->{json}{note}, "Two.\nLines.", 'then it is');
my $bytes = begin_upload($shop);
put_bytes($bytes, 'said 3');
is(version_of($said, upload_id => $bytes->{id}, note => 'Three.')->{json}{asset}{note}, 'Three.',
    'also of an upload');
is(get("/assets/$said")->{json}{former}{note}, "Two.\nLines.",
    'and the former version has its own');
is(api('POST', "/assets/$said/versions/2/restore", key => $key)->{json}{note}, "Two.\nLines.",
    'which comes back with it');
wait_job($shop, version_of($said, source_url => source("said5-$$.txt", 'said 5'))
    ->{json}{job}{id});
is(get("/assets/$said")->{json}{note}, undef, 'the next version has none unless it is given');
unstored();

# --- putting a version back ----------------------------------------------------------------------

sub restore
{
    my ($id, $version, %more) = @_;
    return api('POST', "/assets/$id/versions/$version/restore", key => $key, %more);
}

is_deeply([ @{ $second->{former} }{qw(version size sha256)} ],
    [ 1, $ready->{size}, $ready->{sha256} ], 'the version before is kept');
my ($kept) = sql("SELECT former_until - updated_at FROM asset WHERE id = $ready->{id}");
cmp_ok(abs($kept->[0] / 86_400_000_000 - 30), '<', 0.01, 'for 30 days');
is($before->{former}, undef, 'the first version has none before it');

unstored();
refused(restore($ready->{id}, 3), 404, 'version_not_found', 'a version that there was not');
refused(restore($ready->{id}, $_), 404, 'version_not_found', "version $_") for qw(0 x);
refused(restore($ready->{id}, 2), 409, 'version_current', 'the present version');
refused(restore($failed->{asset}{id}, 1), 409, 'version_not_kept', 'a version without bytes');
refused(restore($ready->{id}, 1, json => { force => JSON::PP::true() }), 400, 'invalid_request',
    'a restore with a member', '/force');
sql("UPDATE blob SET missing_at = 1 WHERE sha256 = '$ready->{sha256}'");
refused(restore($ready->{id}, 1), 409, 'version_not_kept', 'a version whose bytes are lost');
sql("UPDATE blob SET missing_at = NULL WHERE sha256 = '$ready->{sha256}'");

my $once = idem();
my $back = restore($ready->{id}, 1, idem => $once);
is_answer($back, 200, 'the version before is put back');
is_shape($back->{json}, 'asset', 'the asset');
is_deeply([ @{ $back->{json} }{qw(version size sha256 source_url title content_type)} ],
    [ 3, @{$before}{qw(size sha256 source_url title content_type)} ], 'as the next version');
is_deeply([ @{ $back->{json}{former} }{qw(version size sha256)} ],
    [ 2, @{$second}{qw(size sha256)} ], 'and the present one is kept');
is_deeply(restore($ready->{id}, 1, idem => $once)->{json}, $back->{json}, 'once for a key');
is(file_of_order()->{sha256}, $ready->{sha256}, 'existing orders get it');
is_stored('a version that was put back');
my ($event) = sql("SELECT type, data FROM event WHERE shop_id = $shop->{shop_id} "
    . 'ORDER BY id DESC LIMIT 1');
is($event->[0], 'asset.version_added', 'the shop is told');
is_deeply(decode_json($event->[1]), { asset_id => $ready->{id}, version => 3,
    size => $ready->{size}, sha256 => $ready->{sha256} }, 'which bytes the asset has now');

my $again = version_of($ready->{id},
    source_url => source_url($ready->{filename}));
is(wait_job($shop, $again->{json}{job}{id})->{status}, 'succeeded', 'the same bytes again');
is_deeply([ @{ get("/assets/$ready->{id}")->{json} }{qw(version former)} ],
    [ 4, $back->{json}{former} ], 'leave what is kept');
is_stored('the same bytes again');
unstored();
refused(restore($ready->{id}, 3), 409, 'version_not_kept', 'a version with the same bytes');
my $third = restore($ready->{id}, 2)->{json};
is_deeply([ @{$third}{qw(version sha256)} ], [ 5, $second->{sha256} ], 'a change of mind');
is($third->{former}{version}, 4, 'can be changed again');
$second = $third;

# --- deleting ------------------------------------------------------------------------------------

sub delete_of { my ($id, %more) = @_; return api('DELETE', "/assets/$id", key => $key, %more) }

sub holders
{
    my ($reply) = @_;
    return join ' ',
        sort map { "$_->{code}:$_->{pointer}" } @{ $reply->{json}{error}{details} // [] };
}

my ($pack) = sql('INSERT INTO pack (shop_id, name, created_at, updated_at) '
        . "VALUES ($shop->{shop_id}, 'A pack', $now, $now) RETURNING id");
sql("INSERT INTO pack_file (pack_id, asset_id, position) VALUES ($pack->[0], $ready->{id}, 0)");
my $refusal = delete_of($ready->{id});
is_error($refusal, 409, 'asset_in_use', 'an asset that is in use',
    "/mappings/$mapping->{id}", "/packs/$pack->[0]");
is(holders($refusal), "held_by_mapping:/mappings/$mapping->{id} held_by_pack:/packs/$pack->[0]",
    'the details name what refers to it');
is_deeply([ sort map { $_->{message} } @{ $refusal->{json}{error}{details} } ],
    [ "Mapping $mapping->{id} holds this asset.", "Pack $pack->[0] holds this asset." ],
    'in full sentences');
is_deeply(get("/assets/$ready->{id}")->{json}, $second, 'it is still there');
sql("DELETE FROM pack_file WHERE pack_id = $pack->[0]");
sql("UPDATE mapping SET deleted_at = $now, is_active = 0 WHERE id = $mapping->{id}");
is(holders(delete_of($ready->{id})), "held_by_order:/orders/$order",
    'an order still refers to it through a deleted mapping');
sql("DELETE FROM mapping_file WHERE mapping_id = $mapping->{id}");
my ($assignment) = sql('SELECT a.id FROM assignment a JOIN orders o ON o.id = a.order_id '
        . "WHERE o.shop_id = $shop->{shop_id} AND o.storefront_order_id = '$order'");
sql("INSERT INTO assignment_file (assignment_id, asset_id, position) "
    . "VALUES ($assignment->[0], $ready->{id}, 0)");
is(holders(delete_of($ready->{id})), "held_by_order:/orders/$order", 'a pinned order refers to it');
sql("DELETE FROM assignment_file WHERE asset_id = $ready->{id}");

unstored();
refused(delete_of($ready->{id}, json => { force => JSON::PP::true() }), 400, 'invalid_request',
    'a DELETE with a member', '/force');
my $idem    = idem();
my $deleted = delete_of($ready->{id}, idem => $idem);
is("$deleted->{status} $deleted->{body}", '204 ', 'an asset without references is deleted');
my $replayed = delete_of($ready->{id}, idem => $idem);
is("$replayed->{status} $replayed->{body}", '204 ',
    'the same request with the same key gets the same answer');
is($replayed->{headers}{'idempotent-replayed'}, 'true', 'marked as a replay');
is_error(delete_of($ready->{id}), 404, 'asset_not_found', 'a second DELETE');
is_error(get("/assets/$ready->{id}"), 404, 'asset_not_found', 'a deleted asset');
unlike(listed('?limit=100'), qr/\b$ready->{id}\b/, 'is not listed');
is_stored('after the deletion');
is(get("/jobs/$queued->{json}{job}{id}")->{status}, 200, 'its jobs can still be read');

done_testing();
