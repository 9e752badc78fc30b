# The part of the disk that stays free (DownloadsStorageReserve): what would take it is refused or
# tried again later, and downloads go on.
#
# once: the disk is asked, not the database
use strict;
use warnings;

use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant KB => 1024;

my $server = MDL::Instance->new(extra => "DownloadsRetryDelay 50\n")->start;
my $shop   = new_shop();
my $key    = $shop->{token};
my $source = MDL::Source->new;
my $file   = new_file($shop, 100 * KB);
my $page   = buy($shop, $file);
my $upload = begin_upload($shop, size => 1000 * KB);
my $bytes  = MDL::Customer::random_bytes(1000 * KB);

sub imported
{
    my ($name, %more) = @_;
    return api('POST', '/assets', key => $key,
        json => { source_url => $source->offer($name, { size => 500 * KB }) }, %more);
}

sub restart_with
{
    my ($reserve) = @_;
    $server->configure(extra => "DownloadsRetryDelay 50\nDownloadsStorageReserve $reserve\n");
    $server->stop;
    $server->start;
    return;
}

is(patch_bytes($upload, 0, substr $bytes, 0, 400 * KB)->{status}, 204, 'a piece of an upload');
my %again = (idem => idem());
my $first = imported('first', %again);
is_answer($first, 202, 'an import');
is(wait_job($shop, $first->{json}{job}{id})->{status}, 'succeeded', 'which succeeds');

# More than any disk has.
$source->offer('held', { size => 500 * KB, hold => KB, etag => '"x"' });
my $held = api('POST', '/assets', key => $key, json => { source_url => $source->url('held') });
is_answer($held, 202, 'an import whose source answers later');
restart_with('16384G');

is_error(imported('second'), 507, 'insufficient_storage', 'another import');
is_error(api('POST', "/assets/$file->{id}/versions", key => $key,
    json => { source_url => $source->url('first') }),
    507, 'insufficient_storage', 'a new version');
is_error(api('POST', '/assets/uploads', key => $key, json => { filename => 'a', size => 1 }), 507,
    'insufficient_storage', 'another upload');
my $replay = imported('first', %again);
is($replay->{body}, $first->{body}, 'the first request again has its answer');
is_error(patch_bytes($upload, 400 * KB, substr $bytes, 400 * KB), 507, 'insufficient_storage',
    'the next piece of the upload');
is(offset_of($upload), 400 * KB, 'the upload keeps what it had');
like($server->error_log,
    qr/MDL0212: POST \S*\/assets is refused: the disk .* DownloadsStorageReserve/,
    'the log names the directive');

$source->release('held');
my $job = wait_for(sub {
    my $now = api('GET', "/jobs/$held->{json}{job}{id}", key => $key)->{json};
    return $now->{error} && $now;
}, 20, 'the import that waited');
is($job->{error}{code}, 'insufficient_storage',
    'the import that waited is told that there is no room');
is(page('GET', link_of($page))->{body}, $file->{bytes}, 'a download goes on');

restart_with('0');
api('POST', "/jobs/$held->{json}{job}{id}/retry", key => $key, json => {});
is(wait_job($shop, $held->{json}{job}{id})->{status}, 'succeeded',
    'with room again the import succeeds');
is(patch_bytes($upload, 400 * KB, substr $bytes, 400 * KB)->{status}, 204,
    'the upload goes on where it was');
is(complete_upload($shop, $upload)->{status}, 202, 'and is completed');

done_testing();
