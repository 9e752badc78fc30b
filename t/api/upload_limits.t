# What open uploads take: at most 20 of a shop are open at a time, and from their first byte they
# count against its quota (contract, section 6).
#
# both: uploads are counted under other locks
use strict;
use warnings;

use IO::Socket::INET;
use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant { KB => 1024, MB => 2**20 };

my $server = MDL::Instance->new(extra => "DownloadsStorageQuota 70M\n")->start;
my $shop   = new_shop();

sub begin
{
    my (%members) = @_;
    return api('POST', '/assets/uploads', key => $shop->{token}, patient => 1,
        json => { filename => 'a', %members });
}

sub abort_upload
{
    my ($upload) = @_;
    return api('DELETE', "/assets/uploads/$upload->{id}", key => $shop->{token})->{status};
}

sub open_uploads
{
    return (sql(
        "SELECT count(*) FROM upload WHERE shop_id = $shop->{shop_id} AND status = 'open'"))[0][0];
}

sub reserved
{
    my ($upload) = @_;
    return (sql("SELECT reserved FROM upload WHERE id = '$upload->{id}'"))[0][0];
}

# Sends the head of a chunked request and one chunk; chunk() sends another, ended() the end.
sub chunked
{
    my ($upload, $method, $bytes, %headers) = @_;
    my ($path) = $upload->{upload_url} =~ m{^http://[^/]+(/.*)};
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port(), Timeout => 60)
        or die "no connection to the server: $!";
    print $socket join("\r\n", "$method $path HTTP/1.1", 'Host: localhost', 'Connection: close',
        'Transfer-Encoding: chunked', (map { "$_: $headers{$_}" } sort keys %headers), '', '');
    return chunk($socket, $bytes);
}

sub chunk
{
    my ($socket, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    printf $socket "%x\r\n%s\r\n", length $bytes, $bytes;
    $socket->flush;
    return $socket;
}

sub ended
{
    my ($socket) = @_;
    local $SIG{PIPE} = 'IGNORE';
    print $socket "0\r\n\r\n";
    $socket->flush;
    local $/;
    return parse_reply(scalar <$socket>);
}

subtest 'of 30 uploads that begin at once 20 are open' => sub {
    my @replies = parallel(30,
        sub { my $reply = begin(size => 1); [ $reply->{status}, $reply->{json} ] });
    is(scalar(grep { $_->[0] == 201 } @replies), 20, '20 begin');
    is(open_uploads(), 20, 'and are open');
    is(scalar(grep { ($_->[1]{error}{code} // '') eq 'too_many_uploads' } @replies), 10,
        'the others are too many');
    my @open = map { $_->[1] } grep { $_->[0] == 201 } @replies;

    my $refused = begin();
    is_error($refused, 422, 'too_many_uploads', 'one more',
        map { "/assets/uploads/$_" } sort map { $_->{id} } @open);
    like($refused->{json}{error}{message}, qr/has 20 uploads open and may have 20/,
        'its message says how many are open');
    is(begin_upload(new_shop())->{status}, 'open', 'another shop may begin one');

    is(abort_upload($open[0]), 204, 'one is aborted');
    push @open, begin_upload($shop, size => 1);
    is(begin()->{status}, 422, 'and makes room for one');
    put_bytes($open[1], 'x');
    is(complete_upload($shop, $open[1])->{status}, 201, 'one is completed');
    push @open, begin_upload($shop, size => 1);
    is(begin()->{status}, 422, 'and makes room for one');
    sql("UPDATE upload SET expires_at = 1000000 WHERE id = '$open[2]{id}'");
    push @open, begin_upload($shop, size => 1);
    is(begin()->{status}, 422, 'so does one that has expired');
    abort_upload($_) for @open;
};

subtest 'an upload counts with its size from its beginning until it is over' => sub {
    $shop = new_shop();
    my $large = begin_upload($shop, size => 60 * MB);
    unstored();
    refused(begin(size => 10 * MB + 1), 422, 'storage_quota_exceeded',
        'another one that does not fit beside it');
    my $small = begin_upload($shop, size => 10 * MB);
    is(abort_upload($large), 204, 'an aborted upload counts no more');
    $large = begin_upload($shop, size => 60 * MB);
    sql("UPDATE upload SET expires_at = 1000000 WHERE id = '$large->{id}'");
    is(begin(size => 60 * MB)->{status}, 201, 'nor does one that has expired');

    my $import = import_of($shop, "upload-limits-$$.bin", 'x' x 1000);
    my $job    = wait_job($shop, $import->{json}{job}{id});
    is(($job->{error} // {})->{code}, 'storage_quota_exceeded',
        'an import needs room beside open uploads') or diag explain $job;
    put_bytes($small, 'y' x (10 * MB));
    is(complete_upload($shop, $small)->{status}, 201,
        'an upload that is completed does not count twice');
};

subtest 'uploads that begin at once do not exceed the quota together' => sub {
    $shop = new_shop();
    my @statuses = parallel(12, sub { begin(size => 10 * MB)->{status} });
    is(join(' ', sort @statuses), join(' ', (201) x 7, (422) x 5), 'seven of twelve fit');
};

subtest 'an upload of unknown size counts with what comes' => sub {
    $shop = new_shop();
    my ($first, $second) = map { begin_upload($shop) } 1 .. 2;
    my $slow = chunked($first, 'PUT', 'a' x (100 * KB));
    wait_for(sub { reserved($first) > 0 }, 60, 'the first bytes');
    is(reserved($first), 64 * MB + reserved_beyond($first), 'while it comes, with 64 MB more');
    unstored();
    refused(begin(size => 6 * MB), 422, 'storage_quota_exceeded', 'an upload beside it');
    my $other = chunked($second, 'PUT', 'b' x (6 * MB));
    is_error(ended($other), 422, 'storage_quota_exceeded',
        'a second one that does not fit beside it');
    ok(stored_bytes($second) < 6 * MB, 'keeps what did fit');
    is(reserved($second), stored_bytes($second), 'and counts with it');
    is(ended($slow)->{status}, 204, 'the first one ends');
    is(get_upload($shop, $first)->{size}, 100 * KB, 'and has its size');
    is(put_bytes($second, 'b' x (6 * MB))->{status}, 204, 'now there is room for the second one');
    is(complete_upload($shop, $_)->{status}, 201, 'an upload is completed') for $first, $second;
    is((sql("SELECT bytes_stored FROM shop WHERE id = $shop->{shop_id}"))[0][0], 6 * MB + 100 * KB,
        'both are stored');
};

# By how much the room that is reserved is more than 64 MB: what the first read brought.
sub reserved_beyond
{
    my ($upload) = @_;
    my $bytes = reserved($upload) - 64 * MB;
    return $bytes > 0 && $bytes <= 64 * KB ? $bytes : -1;
}

subtest 'pieces of an upload of unknown size count likewise' => sub {
    $shop = new_shop();
    my $full   = begin_upload($shop, size => 60 * MB);
    my $pieces = begin_upload($shop);
    is(patch_bytes($pieces, 0, 'c' x (9 * MB))->{status}, 204, 'a piece that fits');
    is(reserved($pieces), 9 * MB, 'counts');
    is_error(patch_bytes($pieces, 9 * MB, 'c' x (MB + 1)), 422, 'storage_quota_exceeded',
        'one byte more than fits');
    is(offset_of($pieces), 9 * MB, 'leaves the upload as it was');
    is_error(patch_bytes($pieces, 9 * MB, 'c', 'Upload-Length' => 10 * MB + 1), 422,
        'storage_quota_exceeded', 'a length that does not fit');
    is(tus('HEAD', $pieces)->{headers}{'upload-defer-length'}, 1, 'is not noted');

    my %piece = ('Tus-Resumable' => '1.0.0', 'Upload-Offset' => 9 * MB,
        'Content-Type' => 'application/offset+octet-stream');
    close chunked($pieces, 'PATCH', 'c' x KB, %piece);
    wait_for(sub { (offset_of($pieces) // 0) == 9 * MB + KB && reserved($pieces) == 9 * MB + KB },
        60, 'the end of a cut piece');
    is(reserved($pieces), 9 * MB + KB, 'a cut piece counts with what came');
    is(patch_bytes($pieces, 9 * MB + KB, 'c' x (MB - KB), 'Upload-Length' => 10 * MB)->{status},
        204, 'a length that just fits');
    is(complete_upload($shop, $pieces)->{status}, in_objects() ? 201 : 202,
        'and can be completed');

    is(abort_upload($full), 204, 'an upload is aborted');
    my $late = begin_upload($shop);
    my $slow = chunked($late, 'PUT', 'd');
    wait_for(sub { reserved($late) > 0 }, 60, 'the request to begin');
    sql("UPDATE upload SET expires_at = 1000000 WHERE id = '$late->{id}'");
    chunk($slow, 'd' x MB) for 1 .. 66;
    is_error(ended($slow), 409, 'upload_finished',
        'an upload that expires meanwhile gets no more room');
};

$server->stop;

$server = MDL::Instance->new(extra => "DownloadsUploadMaxOpen 1\n")->start;
$shop = new_shop();
my $only = begin_upload($shop);
is_error(begin(), 422, 'too_many_uploads', 'a second upload where one may be open',
    "/assets/uploads/$only->{id}");
is(tus('DELETE', $only)->{status}, 204, 'a tus client ends it');
is(begin()->{status}, 201, 'and another one begins');
is(put_bytes(begin_upload(new_shop()), 'e' x (100 * KB))->{status}, 204,
    'without a quota nothing is reserved');
is((sql('SELECT max(reserved) FROM upload'))[0][0], 0, 'by any upload');
$server->stop;

done_testing();
