# Direct uploads in the API (contract, sections 6 and 7): begun, read, aborted, completed.
# t/api/tus.t tests the upload URL.
#
# both: uploads are completed under other locks
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use MDL::Upload;
use Test::More;

my $shop  = new_shop();
my $token = $shop->{token};

sub begin
{
    my (%members) = @_;
    return api('POST', '/assets/uploads', key => $token, json => \%members);
}

sub get   { my ($path, $of) = @_; return api('GET', $path, key => ($of // $shop)->{token}) }
sub look  { my ($upload, $of) = @_; return get("/assets/uploads/$upload->{id}", $of) }
sub abort_upload
{
    my ($upload, %with) = @_;
    return api('DELETE', "/assets/uploads/$upload->{id}", key => $token, %with);
}
sub partial { my ($upload) = @_; return storage_dir() . "/partial/$upload->{id}" }
sub asset_of { my ($reply) = @_; return get("/assets/$reply->{json}{asset}{id}")->{json} }

# --- the main job --------------------------------------------------------------------------------

my $bytes  = join '', map { chr(($_ * 11) % 256) } 1 .. 300_000;
my $sha256 = sha256_hex($bytes);
my $reply  = begin(filename => 'film.mp4', content_type => 'video/mp4', size => length $bytes);
is_answer($reply, 201, 'an upload is begun');
my $upload = $reply->{json};
is_shape($upload, 'upload', 'the upload');
like($reply->{headers}{location}, qr{/api/v1/assets/uploads/\Q$upload->{id}\E\z},
    'Location names it');
is_deeply(
    [ @{$upload}{qw(status filename title content_type category_id size sha256 offset asset_id)} ],
    [ 'open', 'film.mp4', 'film.mp4', 'video/mp4', undef, length $bytes, undef, 0, undef ],
    'the initial state of the upload');
is_deeply($upload->{protocols}, [ 'put', 'tus-1.0.0' ], 'it lists the protocols');
is($upload->{headers}{'Content-Type'}, 'video/mp4', 'the header to send');
is($upload->{max_size}, length $bytes, 'and the largest size');
like($upload->{upload_url}, qr{^http://[^/]+/u/[0-9A-Za-z_-]{56}\z},
    'the upload URL ends with a token');
unlike($upload->{upload_url}, qr/\Q$upload->{id}\E/, 'which does not contain the id');
cmp_ok($upload->{expires_at}, 'gt', $upload->{created_at}, 'it expires');
is_deeply(look($upload)->{json}, $upload, 'it can be read');

is(put_bytes($upload, $bytes)->{status}, 204, 'the bytes are put');
my $arrived = look($upload)->{json};
is_deeply([ @{$arrived}{qw(status offset size sha256)} ],
    [ 'open', length $bytes, length $bytes, $sha256 ],
    'the upload has size, offset and SHA-256 then');
ok(!-e partial($upload), 'the partial file is gone');

$reply = complete_upload($shop, $upload);
is_answer($reply, 201, 'the upload is completed');
my $asset = $reply->{json}{asset};
is_shape($asset, 'asset', 'the asset');
is_deeply([ @{$asset}{qw(status filename title content_type size sha256 source_url version)} ],
    [ 'ready', 'film.mp4', 'film.mp4', 'video/mp4', length $bytes, $sha256, undef, 1 ],
    'which is ready');
like($reply->{headers}{location}, qr{/api/v1/assets/$asset->{id}\z}, 'Location names the asset');
is_deeply(asset_of($reply), $asset, 'which can be read');
my $done = look($upload)->{json};
is_deeply([ @{$done}{qw(status asset_id offset upload_url)} ],
    [ 'completed', $asset->{id}, length $bytes, undef ], 'the upload is completed and has no URL');
is_deeply(get("/assets?sha256=$sha256")->{json}{data}[0], $asset, 'the list has the asset');

# The customer gets the same bytes.
my $mapping = mapping_of($shop, [ $asset->{id} ]);
my $order = digits();
assign($shop, $order, [ $mapping->{storefront_product_id} ]);
my $assignment = get("/orders/$order/assignments")->{json}{data}[0]{id};
my $urls = get("/orders/$order/assignments/$assignment/download-urls")->{json};
is(sha256_hex(page('GET', $urls->{files}[0]{url})->{body}), $sha256,
    'a customer downloads what was uploaded');

$reply = complete_upload($shop, $upload);
is_answer($reply, 200, 'a second completion with another key');
is_deeply($reply->{json}, { asset => $asset, job => undef }, 'answers the same asset');

# --- in pieces -----------------------------------------------------------------------------------

my $pieces = begin_upload($shop, filename => 'pieces.bin', size => length $bytes,
    sha256 => uc $sha256);
is($pieces->{sha256}, $sha256, 'a SHA-256 may be given, also in upper case');
patch_bytes($pieces, 0, substr $bytes, 0, 100_000);
$reply = complete_upload($shop, $pieces);
is_error($reply, 409, 'upload_incomplete', 'completing an incomplete upload');
is_deeply([ @{ $reply->{json}{error} }{qw(count limit)} ], [ 100_000, 300_000 ],
    'which says how much of it is there');
like($reply->{json}{error}{message}, qr/\b100000\b.*\b300000\b/, 'the message has offset and size');
is(look($pieces)->{json}{status}, 'open', 'it stays open');
is(look($pieces)->{json}{offset}, 100_000, 'with its offset');
patch_bytes($pieces, 100_000, substr $bytes, 100_000);
is(look($pieces)->{json}{offset}, 300_000, 'the rest has come');
$reply = complete_upload($shop, $pieces);
is(join(' ', sort keys %{ $reply->{json} }), 'asset job', 'the answer has asset and job');
my $job;
if (in_objects()) {
    is_answer($reply, 201, 'an upload in pieces is hashed as it comes');
    is($reply->{json}{job}, undef, 'so it needs no job');
}
else {
    is_answer($reply, 202, 'an upload in pieces is hashed first');
    is_shape($reply->{json}{job}, 'job', 'the job');
    is($reply->{json}{job}{type}, 'upload_verification', 'with its own type');
    is($reply->{json}{asset}{status}, 'pending', 'the asset waits for it');
    like($reply->{headers}{location}, qr{/api/v1/jobs/\Q$reply->{json}{job}{id}\E\z},
        'Location names the job');
    $job = wait_job($shop, $reply->{json}{job}{id});
    is($job->{status}, 'succeeded', 'the job succeeds') or diag(explain($job));
    is_deeply($job->{progress},
        { bytes_received => 300_000, bytes_total => 300_000, percent => 100 },
        'after it has read all bytes');
}
is_deeply([ @{ asset_of($reply) }{qw(status sha256 size version)} ],
    [ 'ready', $sha256, 300_000, 1 ], 'the asset is ready');
is(complete_upload($shop, $pieces)->{json}{asset}{status}, 'ready',
    'a second completion answers it');
is(scalar(grep { !$job || $_->{id} eq $job->{id} } @{ get('/jobs')->{json}{data} }),
    $job ? 1 : 0, 'the jobs list has its job');

# --- checksums -----------------------------------------------------------------------------------

my $wrong = begin_upload($shop, sha256 => sha256_hex('something else'));
put_bytes($wrong, 'bytes');
is(look($wrong)->{json}{sha256}, sha256_hex('bytes'), 'the upload shows the SHA-256 of its bytes');
unstored();
refused(complete_upload($shop, $wrong), 422, 'checksum_mismatch',
    'completing an upload with another SHA-256 than given');
is(look($wrong)->{json}{status}, 'open', 'the upload stays open');

$wrong = begin_upload($shop, size => 6, sha256 => sha256_hex('something else'));
patch_bytes($wrong, 0, 'abc');
patch_bytes($wrong, 3, 'def');
$reply = complete_upload($shop, $wrong);
if (in_objects()) {
    is_error($reply, 422, 'checksum_mismatch',
        'completing an upload in pieces with another SHA-256');
}
else {
    is_answer($reply, 202, 'completing an upload in pieces with another SHA-256');
    $job = wait_job($shop, $reply->{json}{job}{id});
    is($job->{status}, 'failed', 'the job fails');
    is($job->{error}{code}, 'checksum_mismatch', 'with checksum_mismatch');
    is(asset_of($reply)->{status}, 'failed', 'and so does the asset');
}

# --- sizes ---------------------------------------------------------------------------------------

my $empty = begin_upload($shop, size => 0);
is(put_bytes($empty, '')->{status}, 204, 'an empty file is put');
is(complete_upload($shop, $empty)->{json}{asset}{size}, 0, 'and completed');
$empty = begin_upload($shop, size => 0);
$reply = complete_upload($shop, $empty);
is_answer($reply, in_objects() ? 201 : 202, 'an empty file needs no bytes');
is(wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'its job succeeds')
    if !in_objects();
is(asset_of($reply)->{sha256}, sha256_hex(''), 'its SHA-256 is that of an empty file');

my $open_end = begin_upload($shop);
is($open_end->{size}, undef, 'the size is optional');
cmp_ok($open_end->{max_size}, '>=', 2**30, 'max_size is the largest size then');
$reply = complete_upload($shop, $open_end);
is_error($reply, 409, 'upload_incomplete', 'completing it without bytes');
is($reply->{json}{error}{count}, 0, 'which says that there are none');
ok(!exists $reply->{json}{error}{limit}, 'and not how many there may be, which nobody has said');
put_bytes($open_end, 'x' x 77);
is(look($open_end)->{json}{size}, 77, 'the size is that of the bytes');
is_answer(complete_upload($shop, $open_end), 201, 'and the upload can be completed');

# --- refused requests ----------------------------------------------------------------------------

unstored();
refused(begin(), 400, 'invalid_request', 'a filename is required', '/filename');
refused(begin(filename => $_), 400, 'invalid_request', "the filename '$_'", '/filename')
    for '', '../x', 'a/b', 'a\\b', '.', '..', "a\nb", 'x' x 256;
refused(begin(filename => 'a', size => $_), 400, 'invalid_request', 'the size ' . ($_ // 'null'),
    '/size')
    for -1, '10', 1.5, 2**53;
refused(begin(filename => 'a', size => 6 * 2**30), 413, 'request_too_large',
    'a size beyond the largest', '/size');
refused(begin(filename => 'a', sha256 => 'abc'), 400, 'invalid_request', 'an invalid SHA-256',
    '/sha256');
refused(begin(filename => 'a', content_type => 'film'), 400, 'invalid_request',
    'an invalid media type', '/content_type');
refused(begin(filename => 'a', title => 'x' x 256), 400, 'invalid_request',
    'a title that is too long', '/title');
refused(begin(filename => 'a', source_url => 'https://example.com/', upload_url => 'x',
    shop_id => 1), 400,
    'invalid_request', 'members that an upload does not have', '/source_url', '/upload_url',
    '/shop_id');
refused(begin(filename => 'a', category_id => 987654), 422, 'unknown_reference',
    'an unknown category', '/category_id');
refused(api('POST', "/assets/uploads/$upload->{id}/complete", key => $token, json => { x => 1 }),
    400, 'invalid_request', 'completing takes no members', '/x');
refused(api('POST', '/assets/uploads', key => $token, idem => undef, json => { filename => 'a' }),
    400, 'idempotency_key_required', 'a key is required');
my $reader = new_shop(scope => 'read');
refused(api('POST', '/assets/uploads', key => $reader->{token}, json => { filename => 'a' }), 403,
    'insufficient_scope', 'a read-only key');

my %allow = (
    '/assets/uploads'                        => 'OPTIONS, POST',
    "/assets/uploads/$upload->{id}"          => 'DELETE, GET, HEAD, OPTIONS',
    "/assets/uploads/$upload->{id}/complete" => 'OPTIONS, POST',
);
for my $path (sort keys %allow) {
    my $options = api('OPTIONS', $path);
    is(join(', ', sort split /, /, $options->{headers}{allow}), $allow{$path}, "Allow of $path");
}
is_error(get('/assets/uploads'), 405, 'method_not_allowed', 'there is no list of uploads');

# --- other shops ---------------------------------------------------------------------------------

my $other = new_shop();
my $mine  = begin_upload($shop);
unstored();
for my $id ($mine->{id}, 'upl_' . '0' x 26, 'upl_', 'nonsense', uc $mine->{id}, '%27', '1') {
    my $path = "/assets/uploads/$id";
    refused(get($path, $other), 404, 'upload_not_found', "another shop reads $id");
    refused(api('DELETE', $path, key => $other->{token}), 404, 'upload_not_found',
        "and aborts $id");
    refused(api('POST', "$path/complete", key => $other->{token}), 404, 'upload_not_found',
        "and completes $id");
}

# --- idempotency ---------------------------------------------------------------------------------

my $key = idem();
my @two = map { api('POST', '/assets/uploads', key => $token, idem => $key,
    json => { filename => 'a' }) } 1, 2;
is($two[1]{body}, $two[0]{body}, 'beginning an upload twice with one key makes one upload');
is($two[1]{headers}{'idempotent-replayed'}, 'true', 'the second answer is marked as a replay');
my $once = $two[0]{json};
put_bytes($once, 'once');
$key = idem();
@two = map { complete_upload($shop, $once, idem => $key) } 1, 2;
is($two[1]{body}, $two[0]{body}, 'completing twice with one key has one answer');
is($two[1]{status}, 201, 'with the first status');

my $race = begin_upload($shop, filename => 'race.bin');
put_bytes($race, 'race');
my @racers = parallel(8,
    sub { my $got = complete_upload($shop, $race, patient => 1);
        [ $got->{status}, $got->{json}{asset}{id} ] });
is(join(' ', sort map { $_->[0] } @racers), join(' ', (200) x 7, 201),
    'of eight completions at once one creates the asset');
my %ids = map { $_->[1] => 1 } @racers;
is(scalar(keys %ids), 1, 'and all get the same asset');
is(scalar(@{ get('/assets?filename=race.bin')->{json}{data} }), 1, 'there is one asset');

# --- its category --------------------------------------------------------------------------------

my $category = api('POST', '/categories', key => $token, json => { name => 'Short-lived' })
    ->{json}{id};
my $filed = begin_upload($shop, filename => 'a', category_id => $category);
api('DELETE', "/categories/$category", key => $token);
is(look($filed)->{json}{category_id}, undef, 'an upload loses a category that is deleted');
cmp_ok(look($filed)->{json}{updated_at}, 'gt', $filed->{updated_at}, 'which updates it');

# --- aborting ------------------------------------------------------------------------------------

my $gone = begin_upload($shop, size => 10);
patch_bytes($gone, 0, 'abcde');
$reply = abort_upload($gone);
is($reply->{status}, 204, 'an upload is aborted');
is($reply->{body}, '', 'with an empty body');
is_deeply([ @{ look($gone)->{json} }{qw(status offset upload_url)} ], [ 'aborted', 0, undef ],
    'it has no bytes and no URL then');
is_error(abort_upload($gone), 409, 'upload_finished', 'aborting it again');
is_error(complete_upload($shop, $gone), 409, 'upload_finished', 'completing it');
is_error(put_bytes($gone, 'abcdefghij'), 409, 'upload_finished', 'a PUT to it');
is(patch_bytes($gone, 5, 'fghij')->{status}, 410, 'a PATCH of it');
is_error(abort_upload($upload), 409, 'upload_finished', 'aborting a completed upload');
ok(-s partial($gone), 'the file stays until the sweep') if !in_objects();

# --- expiry --------------------------------------------------------------------------------------

my $late = begin_upload($shop, size => 10);
patch_bytes($late, 0, 'abcde');
my $kept = begin_upload($shop, size => 10);
patch_bytes($kept, 0, 'abcde');
sql("UPDATE upload SET expires_at = 1000000 WHERE id = '$late->{id}'");
sql("UPDATE upload SET expires_at = 1000000 WHERE id = '$upload->{id}'");
is_error(look($late), 404, 'upload_not_found', 'an expired upload');
is_error(abort_upload($late), 404, 'upload_not_found', 'aborting it');
is_error(complete_upload($shop, $late), 404, 'upload_not_found', 'completing it');
is(put_bytes($late, 'abcdefghij')->{status}, 410, 'a PUT to it');
is(patch_bytes($late, 5, 'fghij')->{status}, 410, 'a PATCH of it');
is(look($upload)->{json}{status}, 'completed', 'a completed upload does not expire');
httpd_graceful();    # the background process sweeps when it starts
sub is_aborted
{
    my ($one) = @_;
    return (sql("SELECT status FROM upload WHERE id = '$one->{id}'"))[0][0] eq 'aborted';
}
ok(wait_for(sub { is_aborted($late) && !grep { -e partial($_) } $late, $gone, $pieces, $wrong },
    60, 'the sweep'), 'the sweep removes their files, and those of hashed uploads');
is((sql("SELECT status FROM upload WHERE id = '$late->{id}'"))[0][0], 'aborted',
    'the expired upload is aborted');
is(stored_bytes($kept), 5, 'the bytes of an open upload stay');
is((sql("SELECT count(*) FROM upload WHERE status = 'open' AND id = '$kept->{id}'"))[0][0], 1,
    'the open upload is open');

# --- versions ------------------------------------------------------------------------------------

sub version
{
    my ($id, %members) = @_;
    return api('POST', "/assets/$id/versions", key => $token, json => \%members);
}

my $second = begin_upload($shop, filename => 'other.mp4');
put_bytes($second, 'second');
$reply = version($asset->{id}, upload_id => $second->{id});
is_answer($reply, 200, 'an upload as new bytes of an asset');
is_deeply([ @{ $reply->{json}{asset} }{qw(id status filename sha256 size version)} ],
    [ $asset->{id}, 'ready', 'film.mp4', sha256_hex('second'), 6, 2 ], 'is its second version');
is(look($second)->{json}{asset_id}, $asset->{id}, 'the upload names the asset');
is(sha256_hex(page('GET', $_->{url})->{body}), sha256_hex('second'),
    'and its customers get the new bytes')
    for @{ get("/orders/$order/assignments/$assignment/download-urls")->{json}{files} };
is_error(version($asset->{id}, upload_id => $second->{id}), 409, 'upload_finished',
    'a version from the same upload');

my $third = begin_upload($shop, size => 6);
patch_bytes($third, 0, 'thi');
is_error(version($asset->{id}, upload_id => $third->{id}), 409, 'upload_incomplete',
    'a version from an incomplete upload');
patch_bytes($third, 3, 'rd!');
$reply = version($asset->{id}, upload_id => $third->{id});
is_answer($reply, in_objects() ? 200 : 202, 'a version from an upload in pieces');
if (!in_objects()) {
    is($reply->{json}{asset}{sha256}, sha256_hex('second'),
        'the asset keeps its bytes until the upload is hashed');
    is(wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'the job succeeds');
}
is_deeply([ @{ asset_of($reply) }{qw(status sha256 version)} ],
    [ 'ready', sha256_hex('third!'), 3 ], 'and the asset has its third version');

my $foreign = begin_upload($other);
put_bytes($foreign, 'foreign');
unstored();
refused(version($asset->{id}, upload_id => $_), 422, 'unknown_reference', "the upload $_",
    '/upload_id')
    for $foreign->{id}, 'nonsense', 'upl_' . '0' x 26;
refused(version(987654, upload_id => $kept->{id}), 409, 'upload_incomplete',
    'an incomplete upload for an unknown asset');
my $whole = begin_upload($shop);
put_bytes($whole, 'whole');
unstored();
refused(version($_, upload_id => $whole->{id}), 404, 'asset_not_found',
    "a complete upload for the asset $_") for 987654, -1, 'x', 0;

# --- the folder -----------------------------------------------------------------------

# t/api/upload_objects.t has what objects do instead.
if (!in_objects()) {
    sub in_pieces
    {
        my ($text) = @_;
        my $made = begin_upload($shop, size => length $text);
        patch_bytes($made, 0, substr $text, 0, 1);
        patch_bytes($made, 1, substr $text, 1);
        return $made;
    }

    # If a worker is killed after it has stored the blob and before it has updated the database,
    # the job is claimed again.
    my $again = in_pieces('again');
    $reply = complete_upload($shop, $again);
    wait_job($shop, $reply->{json}{job}{id});
    ok(-e partial($again), 'the partial file stays after the job');
    sql("UPDATE asset SET status = 'pending', sha256 = NULL WHERE id = $reply->{json}{asset}{id}");
    sql("UPDATE job SET status = 'queued', due_at = 1, finished_at = NULL "
        . "WHERE id = '$reply->{json}{job}{id}'");
    is(wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'so the job can run again');
    is(asset_of($reply)->{sha256}, sha256_hex('again'), 'with the same result');
    sql("UPDATE job SET status = 'queued', due_at = 4102444800000000, finished_at = NULL "
        . "WHERE id = '$reply->{json}{job}{id}'");
    my $more = complete_upload($shop, $again);
    is_answer($more, 202, 'a second completion, while the bytes are hashed');
    is($more->{json}{job}{id}, $reply->{json}{job}{id}, 'has the job that does it');

    my $lost = in_pieces('lost');
    unlink partial($lost);
    $reply = complete_upload($shop, $lost);
    is_error($reply, 409, 'upload_incomplete', 'completing an upload whose file is lost');

    # --- the storage -----------------------------------------------------------------------------

    subtest 'a storage folder that can not be written to is named in the log' => sub {
        my $upload = begin_upload($shop, size => 3);
        my $before = error_log_size();
        chmod 0500, storage_dir() . '/partial' or die "chmod: $!\n";
        my $reply = put_bytes($upload, 'abc');
        chmod 0750, storage_dir() . '/partial' or die "chmod: $!\n";
        is_error($reply, 500, 'internal_error', 'the upload is answered with 500');
        like(error_log_since($before),
            qr/\(13\)Permission denied.*MDL0210: upload $upload->{id}: .*storage/,
            'the log names the folder and the error');
        is(put_bytes($upload, 'abc')->{status}, 204, 'uploads work again once that is repaired');
    };
}

# --- without DownloadsUploadURL ------------------------------------------------------------------

my $server = MDL::Instance->new(without => qr/^DownloadsUploadURL/);
$server->start;
my $alone = new_shop();
$reply = api('POST', '/assets/uploads', key => $alone->{token}, json => { filename => 'a' });
is_error($reply, 503, 'service_unavailable', 'a server without upload URLs');
like($reply->{json}{error}{message}, qr/DownloadsUploadURL/, 'names the directive to set');
$server->stop;

done_testing();
