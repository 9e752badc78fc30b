# Uploads in the background process: large ones are hashed while imports run, across restarts and
# kills, or are cancelled; and the quota of a shop.
#
# once: bytes are hashed outside of the database; jobs.t, quota.t, t/operate/kill.t lock on both
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant KB      => 1024;
use constant LARGE   => 2 * 2**30;
use constant ENDLESS => 512 * 2**30;    # takes minutes to hash: it is broken off

my $server = MDL::Instance->new(extra => "DownloadsStorageQuota 100K\nDownloadsUploadMaxSize 4G\n");
$server->start;
my $shop = new_shop();

sub partial { my ($upload) = @_; return storage_dir() . "/partial/$upload->{id}" }
sub asset { my ($id) = @_; return api('GET', "/assets/$id", key => $shop->{token})->{json} }
sub job { my ($id) = @_; return api('GET', "/jobs/$id", key => $shop->{token})->{json} }
sub stored_bytes { return (sql("SELECT bytes_stored FROM shop WHERE id = $shop->{shop_id}"))[0][0] }
sub as_if_stored
{
    my ($more, $do) = @_;
    sql("UPDATE shop SET bytes_stored = bytes_stored + $more WHERE id = $shop->{shop_id}");
    $do->();
    sql("UPDATE shop SET bytes_stored = bytes_stored - $more WHERE id = $shop->{shop_id}");
    return;
}
sub begin
{
    my (%members) = @_;
    return api('POST', '/assets/uploads', key => $shop->{token},
        json => { filename => 'a', %members });
}

# --- the quota -----------------------------------------------------------------------------------

unstored();
refused(begin(size => 100 * KB + 1), 422, 'storage_quota_exceeded',
    'a size that the quota does not allow');
my $first = begin_upload($shop, size => 60 * KB);
put_bytes($first, 'a' x (60 * KB));
is(stored_bytes(), 0, 'an upload is not stored yet');
my $made = complete_upload($shop, $first);
is($made->{status}, 201, 'an upload that fits');
is(stored_bytes(), 60 * KB, 'counts as an asset');
complete_upload($shop, $first);
is(stored_bytes(), 60 * KB, 'once');
unstored();
refused(begin(size => 40 * KB + 1), 422, 'storage_quota_exceeded',
    'a size that does not fit any more');

# Bytes come while the shop stores less, so that they find room.
my $version = begin_upload($shop);
as_if_stored(-60 * KB, sub { put_bytes($version, 'd' x (100 * KB)) });
my $reply = api('POST', "/assets/$made->{json}{asset}{id}/versions", key => $shop->{token},
    json => { upload_id => $version->{id} });
is_answer($reply, 200, 'a version may take what its asset had');
is(stored_bytes(), 100 * KB, 'and counts in its place');

my ($unknown, $pieces) = map { begin_upload($shop) } 1 .. 2;
as_if_stored(-100 * KB, sub {
    put_bytes($unknown, 'b' x (40 * KB + 1));
    patch_bytes($pieces, 0, 'c');
    patch_bytes($pieces, 1, 'c' x (40 * KB), 'Upload-Length' => 40 * KB + 1);
});
unstored();
refused(complete_upload($shop, $unknown), 422, 'storage_quota_exceeded',
    'a size that was not announced');
unstored();
refused(complete_upload($shop, $pieces), 422, 'storage_quota_exceeded',
    'nor may an upload in pieces be larger');
is(get_upload($shop, $unknown)->{status}, 'open', 'the upload stays open, since room may be made');
is(api('DELETE', "/assets/uploads/$pieces->{id}", key => $shop->{token})->{status}, 204,
    'the other one is aborted');
is(api('DELETE', "/assets/$made->{json}{asset}{id}", key => $shop->{token})->{status}, 204,
    'the asset is deleted');
is(complete_upload($shop, $unknown)->{status}, 201, 'now there is room');

# The quota shrinks while an upload is hashed.
$pieces = begin_upload($shop, size => 50 * KB);
patch_bytes($pieces, 0, 'e');
patch_bytes($pieces, 1, 'e' x (50 * KB - 1));
$reply = complete_upload($shop, $pieces);
is($reply->{status}, 202, 'an upload in pieces that fits');
my $done = wait_job($shop, $reply->{json}{job}{id});
is($done->{status}, 'succeeded', 'becomes an asset');
is(stored_bytes(), 90 * KB + 1, 'and is counted');
sql("UPDATE shop SET bytes_stored = 60000 WHERE id = $shop->{shop_id}");
sql("UPDATE asset SET status = 'pending', sha256 = NULL, size = NULL "
    . "WHERE id = $reply->{json}{asset}{id}");
sql("UPDATE job SET status = 'queued', due_at = 1, finished_at = NULL WHERE id = '$done->{id}'");
$done = wait_job($shop, $done->{id});
is_deeply([ $done->{status}, $done->{error}{code} ], [ 'failed', 'storage_quota_exceeded' ],
    'an upload that no longer fits when it is hashed fails');
is(asset($reply->{json}{asset}{id})->{status}, 'failed', 'and so does its asset');
$server->stop;

# --- large uploads -------------------------------------------------------------------------------

$server = MDL::Instance->new(extra => "DownloadsUploadMaxSize 1024G\n"
    . "DownloadsStorageReserve 0\nDownloadsLeaseTime 5\n");
$server->start;
$shop = new_shop();

# Two GiB of zeros take a while to hash, but no time to send.
sub large
{
    my ($size) = @_;
    $size //= LARGE;
    my $upload = begin_upload($shop, size => $size);
    patch_bytes($upload, 0, "\0");
    truncate partial($upload), $size or die "truncate: $!";
    my $answer = complete_upload($shop, $upload);
    die "completing was answered with: $answer->{status} $answer->{body}\n"
        if $answer->{status} != 202;
    wait_for(sub { my $job = job($answer->{json}{job}{id}); $job->{status} ne 'queued' }, 60,
        'the job to run');
    return ($upload, $answer->{json}{job}{id}, $answer->{json}{asset}{id});
}

my ($upload, $id, $asset_id) = large(ENDLESS);
my $small = import_of($shop, "upload-jobs-$$.txt", 'small');
is(wait_job($shop, $small->{json}{job}{id})->{status}, 'succeeded', 'an import goes on');
is(job($id)->{status}, 'running', 'while a large upload is hashed');
api('POST', "/jobs/$id/cancel", key => $shop->{token});

($upload, $id, $asset_id) = large();
httpd_graceful();
my $job = wait_job($shop, $id, 600);
is($job->{status}, 'succeeded', 'a restart in between does no harm');
is($job->{attempts}, 1, 'and is no failed attempt');
is_deeply($job->{progress}, { bytes_received => LARGE, bytes_total => LARGE, percent => 100 },
    'all was read');
my $sha256 = asset($asset_id)->{sha256};
is($sha256, 'a7c744c13cc101ed66c29f672f92455547889cc586ce6d44fe76ae824958ea51',
    'the digest is that of two GiB of zeros');

($upload, $id, $asset_id) = large();
my $offset = error_log_size();
kill KILL => worker_pids();
wait_for(sub { error_log_since($offset) =~ /MDL0331/ }, 15, 'the next background process');
$job = wait_job($shop, $id, 600);
is($job->{status}, 'succeeded', 'nor does a kill');
is(asset($asset_id)->{sha256}, $sha256, 'the same bytes have the same digest');

($upload, $id, $asset_id) = large(ENDLESS);
is(api('POST', "/jobs/$id/cancel", key => $shop->{token})->{status}, 200, 'the job is cancelled');
is(asset($asset_id)->{status}, 'failed', 'the asset fails');
my ($next, $next_id, $next_asset) = large();
is(job($id)->{status}, 'cancelled', 'and stays so');
is(wait_job($shop, $next_id, 600)->{status}, 'succeeded', 'the next one does not wait for it');
httpd_graceful();
ok(wait_for(sub { !-e partial($upload) && !-e partial($next) }, 15, 'the sweep'),
    'the bytes of both are swept');
$reply = api('POST', "/jobs/$id/retry", key => $shop->{token});
is($reply->{status}, 202, 'tried again after that');
$job = wait_job($shop, $id);
is_deeply([ $job->{status}, $job->{error}{code} ], [ 'failed', 'upload_incomplete' ],
    'it says that the bytes are gone');
ok(!-e partial($upload), 'and leaves no file');

$server->stop;
done_testing();
