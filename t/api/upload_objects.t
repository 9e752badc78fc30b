# Uploads whose bytes go into an object store as they come: what they cost there, and what becomes
# of them when a request is cut or refused, or the store fails. t/operate/upload_nodes.t has several
# nodes.
#
# both: the row of an upload is locked while a request begins to write
use strict;
use warnings;

use Digest::SHA qw(sha256_base64 sha256_hex);
use IO::Socket::INET;
use MDL::Contract;
use MDL::Instance;
use MDL::ObjectProxy;
use MDL::Objects;
use MDL::Swift;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024, PART => 8 * 1024 * 1024, TAILS => 32 };

my $store  = MDL::Swift->new;
my $proxy  = MDL::ObjectProxy->new($store);
my $server = MDL::Instance->new(extra => object_store($proxy) . "DownloadsPollInterval 1\n")->start;
my $shop   = new_shop();

my $unique = 0;

# Bytes that no other upload has.
sub fresh
{
    my ($size) = @_;
    my @words = map { pack 'N', $_ * 2_654_435_761 % 2**32 } 1 .. $size / 4 + 1;
    return substr sprintf('%d of %d: ', ++$unique, $$) . join('', @words), 0, $size;
}

sub object_of { my ($bytes) = @_; return (sql('SELECT object FROM blob WHERE sha256 = '
    . "'${\ sha256_hex($bytes)}'"))[0][0] }

sub slurp_log { return error_log_since(0) }

sub strays { return map { $_->[0] } sql('SELECT key FROM stray_object ORDER BY key') }

# What an upload's row says: state, bytes, writer.
sub row { my ($upload) = @_; return @{ (sql("SELECT COALESCE(written, ''), arrived, "
    . "COALESCE(writer, '') FROM upload WHERE id = '$upload->{id}'"))[0] } }

# Waits for a sweep of strays at a restart.  Rows whose sweep the restart itself cut off are due
# after an hour: they are made due.
sub swept
{
    my ($look, $what) = @_;
    httpd_graceful();
    wait_for(sub {
        return 1 if $look->();
        sql('UPDATE stray_object SET due_at = 1 WHERE removed_at IS NOT NULL');
        return 0;
    }, 300, $what);
    return;
}

# The requests to the store while $do runs.
sub costs
{
    my ($do) = @_;
    $proxy->forget;
    $do->();
    my %count = $proxy->counts;
    return \%count;
}

# Completes an upload, and checks that its asset is ready at once and its object has the bytes.
sub becomes
{
    my ($upload, $bytes, $what) = @_;
    my $reply = complete_upload($shop, $upload);
    is $reply->{status}, 201, "$what becomes an asset at once" or diag $reply->{body};
    is $reply->{json}{job}, undef, 'without a job';
    is $reply->{json}{asset}{sha256}, sha256_hex($bytes), 'its SHA-256 is right';
    my $object = object_of($bytes);
    like $object, qr/^obj_/, 'its bytes are in an object' or return;
    is sha256_hex($store->get($object)), sha256_hex($bytes), 'which has them';
    return;
}

sub released
{
    my ($upload) = @_;
    return wait_for(sub { (row($upload))[2] eq '' }, 60, 'the end of the write');
}

subtest 'a PUT of a small file is one request to the store' => sub {
    my $bytes = fresh(100 * KB);
    my $upload = begin_upload($shop, size => length $bytes);
    my $cost = costs(sub { is put_bytes($upload, $bytes)->{status}, 204, 'a PUT' });
    is_deeply $cost, { put => 1 }, 'a PUT at the store' or diag explain $cost;
    $cost = costs(sub { is offset_of($upload), length $bytes, 'HEAD' });
    is_deeply $cost, {}, 'asks the store for nothing';
    $cost = costs(sub { becomes($upload, $bytes, 'the file') });
    is_deeply $cost, {}, 'nor does its completion' or diag explain $cost;
    is_deeply [ strays() ], [], 'nothing is stray';
};

subtest 'a PUT of a large file is sent in parts' => sub {
    my $bytes = fresh(2 * PART + MB);
    my $upload = begin_upload($shop, size => length $bytes);
    my $cost = costs(sub { is put_bytes($upload, $bytes)->{status}, 204, 'a PUT' });
    is_deeply $cost, { create => 1, part => 3, complete => 1, head => 1 }, 'three of them'
        or diag explain $cost;
    becomes($upload, $bytes, 'the file');
};

subtest 'an empty file' => sub {
    my $upload = begin_upload($shop, size => 0);
    is put_bytes($upload, '')->{status}, 204, 'a PUT';
    becomes($upload, '', 'it');
    $upload = begin_upload($shop, size => 0);
    is complete_upload($shop, $upload)->{status}, 201, 'needs no PUT';
};

subtest 'pieces of a file' => sub {
    my $bytes = fresh(PART + 100 * KB);
    my $upload = begin_upload($shop, size => length $bytes);
    my $at = 0;
    for my $size (5 * MB, 3 * MB, 50 * KB) {
        my $cost = costs(sub {
            is patch_bytes($upload, $at, substr $bytes, $at, $size)->{status}, 204, "$size bytes";
        });
        $at += $size;
        diag explain $cost if keys %$cost > 4;
        is offset_of($upload), $at, 'are counted';
    }
    is patch_bytes($upload, $at, substr $bytes, $at)->{status}, 204, 'the rest';
    becomes($upload, $bytes, 'the file');
    sql('UPDATE stray_object SET due_at = 1');
    swept(sub { !grep { $_ =~ /\./ } keys %{ { $store->objects } } },
        'the sweep of what pieces left');
    ok exists { $store->objects }->{ object_of($bytes) }, 'but not of the object';
    sql('DELETE FROM stray_object');
};

subtest 'an upload that is not there' => sub {
    my $absent = 'upl_' . '0' x 26;
    my $asset  = ready_asset($shop, 'known.bin', 'known');
    is_error(complete_upload($shop, { id => $absent }), 404, 'upload_not_found', 'in the path');
    is_error(api('POST', "/assets/$asset->{id}/versions", key => $shop->{token},
            json => { upload_id => $absent }), 422, 'unknown_reference', 'in the body',
        '/upload_id');
};

subtest 'a piece of exactly a part is sent as one, and not again' => sub {
    my $bytes = fresh(PART + 10);
    my $upload = begin_upload($shop, size => length $bytes);
    my $cost = costs(sub { patch_bytes($upload, 0, substr $bytes, 0, PART) });
    is_deeply $cost, { create => 1, part => 1 }, 'a part' or diag explain $cost;
    is offset_of($upload), PART, 'is counted';
    $cost = costs(sub { patch_bytes($upload, PART, substr $bytes, PART) });
    is_deeply $cost, { part => 1, parts => 1, complete => 1, head => 1, uploads => 1 },
        'and the rest another, which also asks for what others may have left'
        or diag explain $cost;
    becomes($upload, $bytes, 'the file');
    is_deeply [ strays() ], [ object_of($bytes) . '.' ], 'they are looked for once more later';
    sql('DELETE FROM stray_object');
};

subtest 'however small the pieces' => sub {
    my $bytes = fresh(3 * TAILS);
    my $upload = begin_upload($shop, size => length $bytes);
    my $cost = costs(sub {
        for my $at (0 .. length($bytes) - 2) {
            my $reply = patch_bytes($upload, $at, substr $bytes, $at, 1);
            die "$reply->{status} $reply->{body}\n" if $reply->{status} != 204;
        }
    });
    my $pieces = length($bytes) - 1;
    cmp_ok $cost->{put}, '<=', 1.2 * $pieces, "$pieces pieces cost as many small PUTs, or some more"
        or diag explain $cost;
    cmp_ok $cost->{get} + $cost->{delete}, '<=', 2.2 * $pieces, 'and are read and removed once';
    my @tails = grep { /\./ } keys %{ { $store->objects } };
    cmp_ok scalar @tails, '<=', TAILS, 'no more objects are left than the limit allows';
    cmp_ok length((row($upload))[0]), '<', 4 * KB, 'the state stays short';
    is patch_bytes($upload, $pieces, substr $bytes, $pieces)->{status}, 204, 'the last one';
    becomes($upload, $bytes, 'the file');
    is_deeply [ grep { /\./ } keys %{ { $store->objects } } ], [], 'no piece is left';
    sql('DELETE FROM stray_object');
};

subtest 'a large piece is not written again for each small one behind it' => sub {
    my $bytes = fresh(7 * MB + 2 * TAILS);
    my $upload = begin_upload($shop, size => length($bytes) + 1);
    patch_bytes($upload, 0, substr $bytes, 0, 7 * MB);
    $proxy->forget;
    for my $at (7 * MB .. length($bytes) - 1) {
        my $reply = patch_bytes($upload, $at, substr $bytes, $at, 1);
        die "$reply->{status} $reply->{body}\n" if $reply->{status} != 204;
    }
    my ($first) = row($upload);
    my ($key) = $first =~ /"tails":\[\["([^"]+)",@{[ 7 * MB ]}\]/;
    ok $key, 'as it was' or diag $first;
    is scalar(grep { $_->{method} eq 'GET' && $_->{target} =~ /\Q$key\E/ } $proxy->requests), 0,
        'and was not read';
    is tus('DELETE', $upload)->{status}, 204, 'the upload is deleted';
    swept(sub { !grep { /\./ } keys %{ { $store->objects } } }, 'the sweep, soon after');
    sql('DELETE FROM stray_object');
};

subtest 'a checksum' => sub {
    my $bytes = fresh(100);
    my $upload = begin_upload($shop, size => length $bytes);
    my $sum = sub { 'sha256 ' . sha256_base64($_[0]) . '=' };
    my $cost = costs(sub {
        is_error(patch_bytes($upload, 0, substr($bytes, 0, 40), 'Upload-Checksum' => $sum->('x')),
            460, 'checksum_mismatch', 'of other bytes is refused');
    });
    is_deeply $cost, {}, 'before the store is asked for anything' or diag explain $cost;
    is offset_of($upload), 0, 'nothing has arrived';
    my ($state) = row($upload);
    my $again = costs(sub {
        is_error(patch_bytes($upload, 0, substr($bytes, 0, 40), 'Upload-Checksum' => $sum->('x')),
            460, 'checksum_mismatch', 'again');
    });
    is +(row($upload))[0], $state, 'the key that was not used serves again';
    is scalar(strays()), 1, 'so there is one';
    is patch_bytes($upload, 0, substr($bytes, 0, 40),
        'Upload-Checksum' => $sum->(substr $bytes, 0, 40))->{status}, 204, 'of the piece is taken';
    is_error(patch_bytes($upload, 40, 'y' x 60, 'Upload-Checksum' => $sum->('x')), 460,
        'checksum_mismatch', 'a later one is refused');
    is offset_of($upload), 40, 'and what was there stays';
    is patch_bytes($upload, 40, substr($bytes, 40))->{status}, 204, 'the rest';
    becomes($upload, $bytes, 'the file');
    sql('DELETE FROM stray_object');
};

subtest 'a checksum of a piece with several parts' => sub {
    my $bytes = fresh(2 * PART + 5);
    my $upload = begin_upload($shop, size => length $bytes);
    my $wrong = 'sha256 ' . sha256_base64('x') . '=';
    is_error(patch_bytes($upload, 0, 'z' x length $bytes, 'Upload-Checksum' => $wrong), 460,
        'checksum_mismatch', 'is refused after the parts were sent');
    is_deeply [ (row($upload))[ 0, 1 ] ], [ '', 0 ], 'the next write begins under another key';
    is patch_bytes($upload, 0, substr $bytes, 0, PART + 1)->{status}, 204, 'a good piece';
    is_error(patch_bytes($upload, PART + 1, 'z' x (PART + 4), 'Upload-Checksum' => $wrong), 460,
        'checksum_mismatch', 'a bad one behind it, with a part');
    is offset_of($upload), PART + 1, 'changes nothing';
    is patch_bytes($upload, PART + 1, substr $bytes, PART + 1)->{status}, 204, 'the right one';
    becomes($upload, $bytes, 'the file');
    sql('UPDATE stray_object SET due_at = 1');
    swept(sub { !$store->uploads }, 'the sweep of the refused parts');
    sql('DELETE FROM stray_object');
};

subtest 'a cut request' => sub {
    my $bytes = fresh(PART + 1000);
    my $upload = begin_upload($shop, size => length $bytes);
    my $socket = begin_write($upload, length $bytes, substr($bytes, 0, PART + 500),
        method => 'PUT');
    wait_for(sub { (row($upload))[2] ne '' }, 60, 'the write');
    close $socket;
    released($upload);
    is offset_of($upload), PART + 500, 'leaves every byte that had arrived';
    is patch_bytes($upload, PART + 500, substr $bytes, PART + 500)->{status}, 204, 'PATCH goes on';
    becomes($upload, $bytes, 'the file');
    sql('DELETE FROM stray_object');
};

subtest 'all bytes before a cut' => sub {
    my $bytes = fresh(1000);
    my $upload = begin_upload($shop);
    is patch_bytes($upload, 0, $bytes)->{status}, 204, 'the bytes of a file of unknown size';
    is complete_upload($shop, $upload)->{status}, 409, 'are no file yet';
    my $cut = begin_upload($shop, size => 1000);
    my $other = fresh(1000);
    my ($path) = $cut->{upload_url} =~ m{^http://[^/]+(/.*)};
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port());
    print $socket join("\r\n", "PUT $path HTTP/1.1", 'Host: localhost',
        'Transfer-Encoding: chunked', '', '3e8', $other, '');
    $socket->flush;
    wait_for(sub { (row($cut))[2] ne '' }, 60, 'the write');
    close $socket;
    released($cut);
    is offset_of($cut), 1000, 'the bytes before a cut end';
    becomes($cut, $other, 'such a file');
    is patch_bytes($upload, 1000, '', 'Upload-Length' => 1000)->{status}, 204, 'its size';
    becomes($upload, $bytes, 'the file of a known size');
    sql('DELETE FROM stray_object');
};

subtest 'a PUT replaces pieces' => sub {
    my $bytes = fresh(200);
    my $upload = begin_upload($shop, size => length $bytes);
    patch_bytes($upload, 0, 'other');
    my ($before) = (row($upload))[0] =~ /"key":"(\w+)"/;
    is put_bytes($upload, $bytes)->{status}, 204, 'a PUT';
    becomes($upload, $bytes, 'its file');
    isnt object_of($bytes), $before, 'has a key of its own';
    is_deeply [ strays() ], [$before], 'the other is stray';
    ok((sql('SELECT count(*) FROM stray_object WHERE owner IS NULL'))[0][0], 'and nobody has it');
    swept(sub { !grep { /^\Q$before\E/ } keys %{ { $store->objects } } }, 'its sweep');
    sql('DELETE FROM stray_object');
};

subtest 'a file that turns out too large' => sub {
    my $upload = begin_upload($shop, size => 10);
    my ($path) = $upload->{upload_url} =~ m{^http://[^/]+(/.*)};
    patch_bytes($upload, 0, 'abc');
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port());
    print $socket join("\r\n", "PATCH $path HTTP/1.1", 'Host: localhost', 'Connection: close',
        'Tus-Resumable: 1.0.0', 'Upload-Offset: 3',
        'Content-Type: application/offset+octet-stream', 'Transfer-Encoding: chunked', '', '8',
        'defghijk', '0', '', '');
    is_error(answer_on($socket), 413, 'request_too_large', 'a piece');
    is offset_of($upload), 3, 'leaves what was there';
    is patch_bytes($upload, 3, 'defghij')->{status}, 204, 'the right one';
    becomes($upload, 'abcdefghij', 'the file');
    sql('DELETE FROM stray_object');
};

subtest 'one writer at a time' => sub {
    my $bytes = fresh(1000);
    my $upload = begin_upload($shop, size => length $bytes);
    my $slow = begin_write($upload, 1000, substr $bytes, 0, 500);
    wait_for(sub { (row($upload))[2] ne '' }, 60, 'the write');
    my $reply = patch_bytes($upload, 0, 'x');
    is_error($reply, 423, 'upload_locked', 'a second one');
    ok $reply->{headers}{'retry-after'}, 'should wait';
    is_error(put_bytes($upload, $bytes), 423, 'upload_locked', 'a PUT too');
    is complete_upload($shop, $upload)->{status}, 409, 'it is not complete yet';
    print $slow substr $bytes, 500;
    is answer_on($slow)->{status}, 204, 'the first one goes on';
    becomes($upload, $bytes, 'the file');
};

subtest 'the store is away at the end of a piece' => sub {
    my $bytes = fresh(1000);
    my $upload = begin_upload($shop, size => length $bytes);
    is patch_bytes($upload, 0, substr $bytes, 0, 400)->{status}, 204, 'a piece';
    $proxy->rule(any => { refuse => 1 });
    my $reply = patch_bytes($upload, 400, substr $bytes, 400, 300);
    is_error($reply, 503, 'service_unavailable', 'the next one');
    is $reply->{headers}{'upload-offset'}, 400, 'is not counted, as the answer says';
    ok $reply->{headers}{'retry-after'}, 'and says when to try again';
    is offset_of($upload), 400, 'HEAD says the same';
    is_error(patch_bytes($upload, 400, substr $bytes, 400), 503, 'service_unavailable',
        'while the store is known to be away');
    is complete_upload($shop, $upload)->{status}, 409, 'a completion says what is missing';
    $proxy->heal;
    wait_for(sub { patch_bytes($upload, 400, substr $bytes, 400)->{status} == 204 }, 60,
        'the store to be found again');
    becomes($upload, $bytes, 'the file');
    sql('DELETE FROM stray_object');
};

subtest 'the store fails when it makes the object' => sub {
    my $bytes = fresh(PART + 1000);
    my $upload = begin_upload($shop, size => length $bytes);
    $proxy->rule(complete => { status => 503, code => 'InternalError' });
    my $reply = put_bytes($upload, $bytes);
    is_error($reply, 503, 'service_unavailable', 'a PUT');
    is $reply->{headers}{'upload-offset'}, PART, 'a part is kept';
    $proxy->heal;
    wait_for(sub { patch_bytes($upload, PART, substr $bytes, PART)->{status} == 204 }, 60,
        'the rest, once the store works');
    becomes($upload, $bytes, 'the file');
    sql('DELETE FROM stray_object');
};

subtest 'the store loses parts' => sub {
    my $bytes = fresh(PART + 1000);
    my $upload = begin_upload($shop, size => length $bytes);
    patch_bytes($upload, 0, substr $bytes, 0, PART);
    my ($state) = row($upload);
    my ($key, $id) = $state =~ /"key":"(\w+)".*"upload":"([^"]+)"/ or die "state: $state\n";
    $id =~ s/([^\w.~-])/sprintf '%%%02X', ord $1/ge;
    is $store->request('DELETE', $key, "uploadId=$id")->{status}, 204, 'somebody aborts the upload';
    my $reply = patch_bytes($upload, PART, substr $bytes, PART);
    is_error($reply, 409, 'upload_offset_conflict', 'the next piece');
    is $reply->{headers}{'upload-offset'}, 0, 'is told to begin anew';
    like slurp_log(), qr/MDL0213: upload $upload->{id} begins anew/, 'the log says so';
    is offset_of($upload), 0, 'HEAD too';
    is patch_bytes($upload, 0, $bytes)->{status}, 204, 'all bytes again';
    becomes($upload, $bytes, 'the file');
    sql('DELETE FROM stray_object');
};

subtest 'the store denies' => sub {
    my $upload = begin_upload($shop, size => 10);
    $proxy->rule(any => { status => 403, code => 'AccessDenied' });
    my $reply = put_bytes($upload, fresh(10));
    is_error($reply, 503, 'service_unavailable', 'a PUT');
    ok $reply->{headers}{'retry-after'}, 'may be tried again';
    $proxy->rule(any => { status => 507, code => 'QuotaExceeded' });
    is_error(put_bytes($upload, fresh(10)), 507, 'insufficient_storage', 'a full store');
    like slurp_log(), qr/MDL0214: upload $upload->{id}/, 'which the log names';
    $proxy->heal;
    my $bytes = fresh(10);
    is put_bytes($upload, $bytes)->{status}, 204, 'once it has room';
    becomes($upload, $bytes, 'the file');
    sql('DELETE FROM stray_object');
};

subtest 'an upload that has begun in the folder goes on there' => sub {
    my $bytes = fresh(100);
    my $upload = begin_upload($shop, size => 100);
    my $path = storage_dir() . "/partial/$upload->{id}";
    open my $out, '>:raw', $path or die "$path: $!\n";
    print $out substr $bytes, 0, 30;
    close $out;
    chmod 0666, $path;
    is offset_of($upload), 30, 'its bytes count';
    my $cost = costs(sub {
        is patch_bytes($upload, 30, substr $bytes, 30)->{status}, 204, 'the rest';
    });
    is_deeply $cost, {}, 'goes into the file';
    my $reply = complete_upload($shop, $upload);
    is $reply->{status}, 202, 'a job hashes it';
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'and succeeds';
};

subtest 'many slow clients' => sub {
    my $count = 40;
    my @shops = map { new_shop() } 1 .. 3;
    my @uploads = map { begin_upload($shops[ $_ % 3 ], size => 2 * MB) } 1 .. $count;
    my $memory = sub {
        my $sum = 0;
        for my $pid (server_pids()) {
            $sum += $1 if (MDL::Target::slurp("/proc/$pid/status") // '') =~ /^RssAnon:\s+(\d+)/m;
        }
        return $sum;
    };
    my $before = $memory->();
    my @open = map { begin_write($_, 2 * MB, 'x' x MB) } @uploads;
    wait_for(sub { !grep { (row($_))[2] eq '' } @uploads }, 120, 'all writes');
    my $grown = ($memory->() - $before) / KB;
    cmp_ok $grown, '<', $count / 2, "$count with a MB each make the server grow by $grown MB";
    close $_ for @open;
    released($_) for @uploads;
    is_deeply [ grep { $_ != MB } map { (row($_))[1] } @uploads ], [], 'every byte is kept';
};

done_testing();
