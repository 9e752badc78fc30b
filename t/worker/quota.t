# The storage quota of a shop (DownloadsStorageQuota), as imports keep to it.
#
# both: bytes are counted under other locks
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant KB => 1024;

my $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsStorageQuota 100K
DownloadsRetryDelay 50
END
my $shop   = new_shop();
my $key    = $shop->{token};
my $source = MDL::Source->new;

sub stored_bytes
{
    my ($row) = sql("SELECT bytes_stored FROM shop WHERE id = $shop->{shop_id}");
    return $row->[0];
}

sub job_of
{
    my ($path, $url, %more) = @_;
    my $reply = api('POST', $path, key => $key, patient => 1,
        json => { source_url => $url, %more });
    die "POST $path: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json};
}

my $count = 0;

sub offer
{
    my (%answer) = @_;
    return $source->offer('file-' . ++$count, { version => $count, %answer });
}

# Performs an import, or adds a version, which must succeed; returns its asset.
sub fits
{
    my ($name, $path, %answer) = @_;
    my $made = job_of($path, offer(%answer));
    my $job  = wait_job($shop, $made->{job}{id});
    is($job->{status}, 'succeeded', "$name: it fits") or diag explain $job;
    return $made->{asset}{id};
}

sub fails
{
    my ($name, $path, %answer) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $before = stored_bytes();
    my $made   = job_of($path, offer(%answer));
    my $job    = wait_job($shop, $made->{job}{id});
    is_shape($job, 'job', "$name: the job");
    is($job->{status}, 'failed', "$name: it fails");
    is(($job->{error} // {})->{code}, 'storage_quota_exceeded', "$name: because of the quota");
    is($job->{attempts}, 1, "$name: at once");
    is(stored_bytes(), $before, "$name: the shop stores what it did");
    is_deeply([ glob storage_dir() . '/partial/*' ], [], "$name: no partial file is left");
    return $made->{asset}{id};
}

my $first = fits('40 of 100 KiB', '/assets', size => 40 * KB);
is(stored_bytes(), 40 * KB, 'its bytes are counted');
my $refused = fails('a file that is announced as too large', '/assets', size => 60 * KB + 1);
is(api('GET', "/assets/$refused", key => $key)->{json}{status}, 'failed', 'its asset has failed');
fails('a file that turns out to be too large', '/assets', size => 60 * KB + 1, length => 'chunked');
fails('a file of many times the quota', '/assets', size => 50_000 * KB);
cmp_ok($source->sent("file-$count"), '<', 10_000 * KB, 'which is hardly read');
my $second = fits('60 KiB more', '/assets', size => 60 * KB);
is(stored_bytes(), 100 * KB, 'the quota is used up');
is_deeply(api('GET', '/shop', key => $key)->{json}{storage},
    { files => 2, bytes => 100 * KB, former_bytes => 0, upload_bytes => 0, quota => 100 * KB,
        bytes_left => 0 },
    'which the shop is told');
fails('one byte more', '/assets', size => 1);
fits('a file without a byte', '/assets', size => 0);

fails('a version that is larger', "/assets/$first/versions", size => 40 * KB + 1);
is(api('GET', "/assets/$first", key => $key)->{json}{version}, 1, 'the asset keeps its bytes');
fits('a version of the same size', "/assets/$first/versions", size => 40 * KB);
fits('a smaller version', "/assets/$first/versions", size => 10 * KB);
is(stored_bytes(), 70 * KB, 'the difference is free again');
fits('a larger version that fits', "/assets/$first/versions", size => 40 * KB, length => 'chunked');
is(stored_bytes(), 100 * KB, 'until it is taken again');

# As if an operator had lowered the quota.
sql("UPDATE shop SET bytes_stored = bytes_stored + 50000 WHERE id = $shop->{shop_id}");
fits('a shop beyond its quota: a version of the same size', "/assets/$first/versions",
    size => 40 * KB);
fails('a shop beyond its quota: one byte more', "/assets/$first/versions", size => 40 * KB + 1);
sql("UPDATE shop SET bytes_stored = bytes_stored - 50000 WHERE id = $shop->{shop_id}");

is(api('DELETE', "/assets/$second", key => $key)->{status}, 204, 'an asset is deleted');
is(stored_bytes(), 40 * KB, 'what it took is free again');

# Both are admitted at first, because each would fit alone.
my @made = map { job_of('/assets', offer(size => 40 * KB, hold => KB, etag => '"x"')) } 1, 2;
for my $made (@made) {
    wait_for(
        sub { api('GET', "/jobs/$made->{job}{id}", key => $key)->{json}{progress}{bytes_received} },
        10, 'its first bytes');
}
$source->release("file-$_") for $count - 1, $count;
my @jobs = map { wait_job($shop, $_->{job}{id}) } @made;
is(join(' ', sort map { $_->{status} } @jobs), 'failed succeeded',
    'of two of which only one fits, one fails');
my ($failed) = grep { $_->{status} eq 'failed' } @jobs;
is($failed->{error}{code}, 'storage_quota_exceeded', 'because of the quota');
is(api('GET', "/assets/$failed->{asset_id}", key => $key)->{json}{status}, 'failed',
    'and its asset has failed');
is(stored_bytes(), 80 * KB, 'the other is counted');
my ($rows) = sql("SELECT sum(b.size) FROM asset a JOIN blob b ON b.sha256 = a.sha256 "
        . "WHERE a.shop_id = $shop->{shop_id} AND a.deleted_at IS NULL");
is($rows->[0], 80 * KB, 'exactly as large as the assets are');
my ($left) = glob storage_dir() . '/blobs/*/' . MDL::Source::sha256(40 * KB,
    $failed->{id} eq $made[0]{job}{id} ? $count - 1 : $count);
ok(-e $left, 'the bytes of the one that failed are in storage');
sql('UPDATE blob SET released_at = 1 WHERE released_at IS NOT NULL');
httpd_graceful();
ok(wait_for(sub { !-e $left }, 20, 'a sweep'), 'until they are swept, an hour later');

my $other = new_shop();
is(wait_job($other, api('POST', '/assets', key => $other->{token},
    json => { source_url => offer(size => 100 * KB) })->{json}{job}{id})->{status},
    'succeeded', 'each shop has a quota of its own');

# --- former versions ------------------------------------------------------------------------------

subtest 'a former version is kept where there is room, and takes none from others' => sub {
    $shop = new_shop();
    $key  = $shop->{token};
    my $file = fits('90 KiB', '/assets', size => 90 * KB);
    fits('other 5 KiB in their place', "/assets/$file/versions", size => 5 * KB);
    my $restore = "/assets/$file/versions/1/restore";
    is(api('GET', "/assets/$file", key => $key)->{json}{former}{size}, 90 * KB, 'are both stored');
    my $upload = begin_upload($shop, size => 90 * KB);
    is(put_bytes($upload, 'u' x (90 * KB))->{status}, 204, 'another file of 90 KiB comes');
    is(complete_upload($shop, $upload)->{status}, 201, 'and is stored, too');
    my $reply = api('POST', $restore, key => $key);
    is("$reply->{status} $reply->{json}{error}{code}", '422 storage_quota_exceeded',
        'so the former version has no room');
    is(stored_bytes(), 95 * KB, 'and nothing has changed');
    is(api('DELETE', "/assets/$_->{json}{id}", key => $key)->{status}, 204, 'until that is gone')
        for api('GET', "/assets/" . get_upload($shop, $upload)->{asset_id}, key => $key);
    is(api('POST', $restore, key => $key)->{status}, 200, 'then it is put back');
    is(stored_bytes(), 90 * KB, 'and counts');
    fits('other 50 KiB in their place', "/assets/$file/versions", size => 50 * KB);
    is(api('GET', "/assets/$file", key => $key)->{json}{former}, undef,
        'where there is no room, the former one is not kept');
    is(api('GET', '/shop', key => $key)->{json}{storage}{former_bytes}, 0, 'nor counted');
};

$server->stop;
done_testing;
