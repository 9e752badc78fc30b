# The upload URL (contract, section 7): PUT of a whole file, and tus 1.0.0 with the extensions
# expiration, checksum and termination, as browsers and other clients use it. Every answer is as the
# OpenAPI document declares it.
#
# once: pieces go to the storage folder, or with MDL_STORAGE=objects into objects; uploads.t and
# upload_limits.t lock uploads on both
use strict;
use warnings;

use Digest::SHA qw(sha1_base64 sha256 sha256_base64 sha256_hex);
use IO::Socket::INET;
use MDL::Contract;
use MDL::Instance;
use MDL::OpenApi;
use MDL::Test;
use MDL::Upload;
use MIME::Base64 qw(encode_base64);
use Test::More;

use constant MAX_SIZE => 5 * 2**30;

my $shop = new_shop();
my $bytes = join '', map { chr(($_ * 13) % 256) } 1 .. 700_000;
my $size  = length $bytes;

my %operation = map { $_->{method} => $_ } upload_operations();

# The document has a request with X-HTTP-Method-Override, or by a method that there is not, as POST.
sub held
{
    my ($method, $headers, $reply) = @_;
    my $operation = $operation{ $headers->{'X-HTTP-Method-Override'} ? 'POST' : $method }
        // $operation{POST};
    my @misfits = misfits($operation, $reply);
    fail("$operation->{id}: $reply->{status} as declared")
        && diag(join "\n", @misfits, $reply->{body}) if @misfits;
    return;
}
$MDL::Upload::watch = \&held;

sub sha256_of
{
    my ($reply) = @_;
    return api('GET', "/assets/$reply->{json}{asset}{id}", key => $shop->{token})->{json}{sha256};
}

# Completes the upload, waits for its job if there is one, and returns the asset's SHA-256.
sub completed
{
    my ($upload) = @_;
    my $reply = complete_upload($shop, $upload);
    wait_job($shop, $reply->{json}{job}{id}) if $reply->{json}{job};
    return ref $reply->{json}{asset} ? sha256_of($reply) : "$reply->{status} $reply->{body}";
}

my %sent;

# Opens a connection and sends a request's head and the given part of its body.
sub begun
{
    my ($upload, $method, $headers, $body, %with) = @_;
    my ($path) = $upload->{upload_url} =~ m{^http://[^/]+(/.*)};
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port(), Timeout => 60)
        or die "no connection to the server: $!";
    my @headers = map { "$_: $headers->{$_}" } sort keys %$headers;
    print $socket join("\r\n", "$method $path HTTP/1.1", 'Host: ' . ($with{host} // 'localhost'),
        'Connection: close', @headers, '', $body // '');
    $socket->flush;
    $sent{$socket} = [ $method, $headers ];
    return $socket;
}

sub patch_head
{
    my ($offset, $length) = @_;
    return {
        'Tus-Resumable'  => '1.0.0',
        'Upload-Offset'  => $offset,
        'Content-Type'   => 'application/offset+octet-stream',
        'Content-Length' => $length,
    };
}

sub answer_on
{
    my ($socket) = @_;
    local $SIG{ALRM} = sub { die "no answer in time\n" };
    alarm 120;
    my $answer = do { local $/; <$socket> };
    alarm 0;
    my $reply = parse_reply($answer);
    held(@{ $sent{$socket} }, $reply);
    return $reply;
}

# --- what the server supports --------------------------------------------------------------------

my $upload = begin_upload($shop, size => $size);
my $reply = ask_upload('OPTIONS', $upload);
is($reply->{status}, 204, 'OPTIONS');
is_deeply(
    { map { $_ => $reply->{headers}{$_} } grep { /^tus-/ } keys %{ $reply->{headers} } },
    {
        'tus-resumable'          => '1.0.0',
        'tus-version'            => '1.0.0',
        'tus-extension'          => 'expiration,checksum,termination',
        'tus-checksum-algorithm' => 'sha1,sha256',
        'tus-max-size'           => MAX_SIZE,
    },
    'shows version, extensions and the largest size'
);
is($reply->{headers}{allow}, 'DELETE, HEAD, OPTIONS, PATCH, PUT', 'and the methods');

# --- the core ------------------------------------------------------------------------------------

$reply = tus('HEAD', $upload);
is($reply->{status}, 200, 'HEAD');
is_deeply([ @{ $reply->{headers} }{qw(upload-offset upload-length tus-resumable cache-control
    upload-defer-length)} ],
    [ 0, $size, '1.0.0', 'no-store', undef ], 'answers offset and length, not to be cached');
like($reply->{headers}{'upload-expires'}, qr/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\z/,
    'and when the upload expires');

$reply = patch_bytes($upload, 0, substr $bytes, 0, 300_001);
is($reply->{status}, 204, 'a piece');
is_deeply([ @{ $reply->{headers} }{qw(upload-offset tus-resumable)} ], [ 300_001, '1.0.0' ],
    'moves the offset');
ok($reply->{headers}{'upload-expires'}, 'the answer says when the upload expires');
$reply = patch_bytes($upload, 300_001, '');
is_deeply([ $reply->{status}, $reply->{headers}{'upload-offset'} ], [ 204, 300_001 ],
    'an empty piece does not');
is(offset_of($upload), 300_001, 'HEAD shows it');
is(patch_bytes($upload, 300_001, substr $bytes, 300_001)->{headers}{'upload-offset'}, $size,
    'the rest');
is(offset_of($upload), $size, 'all bytes have come');
is(patch_bytes($upload, $size, '')->{status}, 204, 'an empty piece at the end is accepted');
is(completed($upload), sha256_hex($bytes), 'the asset has the bytes that were sent');
$reply = tus('HEAD', $upload);
is_deeply(
    [ $reply->{status}, @{ $reply->{headers} }{qw(upload-offset upload-length upload-expires)} ],
    [ 200, $size, $size, undef ], 'HEAD of an upload that became an asset');
is(patch_bytes($upload, $size, '')->{status}, 204, 'an empty piece is still accepted');

my $one = begin_upload($shop, size => $size);
is(patch_bytes($one, 0, $bytes)->{status}, 204, 'all bytes in one piece');
is(complete_upload($shop, $one)->{status}, 201, 'are hashed as they come');
is(complete_upload($shop, $one)->{json}{asset}{sha256}, sha256_hex($bytes),
    'with the right SHA-256');

# A length that comes later.
my $later = begin_upload($shop);
$reply = tus('HEAD', $later);
is_deeply([ @{ $reply->{headers} }{qw(upload-length upload-defer-length)} ], [ undef, 1 ],
    'HEAD of an upload without a length');
patch_bytes($later, 0, 'abc');
is(patch_bytes($later, 3, 'def', 'Upload-Length' => 9)->{status}, 204, 'a piece brings the length');
is_deeply([ @{ tus('HEAD', $later)->{headers} }{qw(upload-length upload-defer-length)} ],
    [ 9, undef ], 'HEAD shows it');
is(patch_bytes($later, 6, 'ghi', 'Upload-Length' => 9)->{status}, 204,
    'another piece may repeat it');
is(completed($later), sha256_hex('abcdefghi'), 'the file is whole');

# Clients that can't send PATCH.
my $over = begin_upload($shop, size => 6);
is(tus('POST', $over, 'abc', 'Upload-Offset' => 0, 'X-HTTP-Method-Override' => 'PATCH',
    'Content-Type' => 'application/offset+octet-stream')->{status}, 204, 'POST for PATCH');
is(tus('POST', $over, undef, 'X-HTTP-Method-Override' => 'HEAD')->{headers}{'upload-offset'}, 3,
    'POST for HEAD');
is(tus('GET', $over, undef, 'X-HTTP-Method-Override' => 'DELETE')->{status}, 204, 'GET for DELETE');
is(tus('HEAD', $over)->{status}, 410, 'deletes');

# --- checksums -----------------------------------------------------------------------------------

sub padded { my ($text) = @_; return $text . '=' x (-length($text) % 4) }

my $checked = begin_upload($shop, size => 22);
is(patch_bytes($checked, 0, 'hello world', 'Upload-Checksum' => 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=')
    ->{status}, 204, 'a piece with its SHA-1');
$reply = patch_bytes($checked, 11, 'hello_world',
    'Upload-Checksum' => 'sha256 ' . padded(sha256_base64('hello world')));
is_error($reply, 460, 'checksum_mismatch', 'a piece with a wrong SHA-256');
is(offset_of($checked), 11, 'is thrown away');
is(patch_bytes($checked, 11, 'hello world',
    'Upload-Checksum' => 'sha256 ' . padded(sha256_base64('hello world')))->{status},
    204, 'a piece with the right one is kept');
is(completed($checked), sha256_hex('hello world' x 2), 'the asset has only the right bytes');

my $large = begin_upload($shop, size => $size);
is(patch_bytes($large, 0, $bytes, 'Upload-Checksum' => 'sha1 ' . padded(sha1_base64('x')))
    ->{status}, 460, 'a large first piece with a wrong SHA-1');
is(offset_of($large), 0, 'leaves nothing');
is(patch_bytes($large, 0, $bytes, 'Upload-Checksum' => 'sha1 ' . padded(sha1_base64($bytes)))
    ->{status}, 204, 'with the right one it is kept');
is(complete_upload($shop, $large)->{json}{asset}{sha256}, sha256_hex($bytes),
    'and the digest of the whole is right');

# --- PUT -----------------------------------------------------------------------------------------

my $put = begin_upload($shop, size => $size);
patch_bytes($put, 0, 'other bytes');
is(put_bytes($put, $bytes)->{status}, 204, 'PUT replaces earlier bytes');
is(offset_of($put), $size, 'all bytes have come');
is_error(put_bytes($put, $bytes), 409, 'upload_finished', 'a second PUT');
is(completed($put), sha256_hex($bytes), 'the bytes are those of the PUT');
is_error(put_bytes($put, $bytes), 409, 'upload_finished', 'a PUT after the completion');

my $file = logs_dir() . "/tus-$$.bin";
open my $out, '>:raw', $file or die "$file: $!";
print $out $bytes;
close $out;
my $curled = begin_upload($shop);
is(`curl -sS -o /dev/null -w '%{http_code}' -T $file '$curled->{upload_url}'`, '204', 'curl -T');
is(completed($curled), sha256_hex($bytes), 'uploads the file');
$curled = begin_upload($shop);
is(`curl -sS -o /dev/null -w '%{http_code}' -T - '$curled->{upload_url}' < $file`, '204',
    'curl -T -, in chunks');
is(completed($curled), sha256_hex($bytes), 'uploads what it reads');
unlink $file;

# --- termination ---------------------------------------------------------------------------------

my $ended = begin_upload($shop, size => 10);
patch_bytes($ended, 0, 'abc');
is(tus('DELETE', $ended)->{status}, 204, 'DELETE');
ok(in_objects() || !stored_bytes($ended), 'removes the bytes at once');
is(tus('HEAD', $ended)->{status}, 410, 'HEAD of a deleted upload');
is_error(tus('DELETE', $ended), 410, 'upload_gone', 'a second DELETE');
is(get_upload($shop, $ended)->{status}, 'aborted', 'the API shows it as aborted');

# --- refused requests ----------------------------------------------------------------------------

my $piece = 'application/offset+octet-stream';
my %good  = ('Upload-Offset' => 3, 'Content-Type' => $piece);
my @cases = (
    # what                              method    headers                         body      answer
    [ 'no version',                     'PATCH',  { %good, 'Tus-Resumable' => undef }, 'x', 412,
        'tus_version_unsupported' ],
    [ 'an old version',                 'PATCH',  { %good, 'Tus-Resumable' => '0.2.2' }, 'x', 412,
        'tus_version_unsupported' ],
    [ 'two versions',                   'PATCH',  { %good, 'Tus-Resumable' => '1.0.0, 1.0.0' }, 'x',
        412, 'tus_version_unsupported' ],
    [ 'DELETE without a version',       'DELETE', { 'Tus-Resumable' => undef }, undef, 412,
        'tus_version_unsupported' ],
    [ 'no type',                        'PATCH',  { 'Upload-Offset' => 3 }, 'x', 415,
        'unsupported_media_type' ],
    [ 'another type',                   'PATCH',  { %good,
        'Content-Type' => 'application/octet-stream' }, 'x', 415, 'unsupported_media_type' ],
    [ 'a type that begins like it',     'PATCH',  { %good, 'Content-Type' => "$piece-x" }, 'x', 415,
        'unsupported_media_type' ],
    [ 'a piece that is encoded',        'PATCH',  { %good, 'Content-Encoding' => 'gzip' }, 'x', 415,
        'unsupported_media_type' ],
    [ 'a file that is encoded',         'PUT',    { 'Content-Encoding' => 'identity, gzip' },
        'x' x 10, 415, 'unsupported_media_type' ],
    [ 'a form around the file',         'PUT',
        { 'Content-Type' => 'multipart/form-data; boundary=x' }, 'x' x 10, 415,
        'unsupported_media_type' ],
    [ 'no offset',                      'PATCH',  { 'Content-Type' => $piece }, 'x', 400,
        'invalid_request' ],
    [ 'a negative offset',              'PATCH',  { %good, 'Upload-Offset' => -1 }, 'x', 400,
        'invalid_request' ],
    [ 'an offset with a sign',          'PATCH',  { %good, 'Upload-Offset' => '+3' }, 'x', 400,
        'invalid_request' ],
    [ 'an empty offset',                'PATCH',  { %good, 'Upload-Offset' => '' }, 'x', 400,
        'invalid_request' ],
    [ 'two offsets',                    'PATCH',  { %good, 'Upload-Offset' => '3, 3' }, 'x', 400,
        'invalid_request' ],
    [ 'an offset that is a fraction',   'PATCH',  { %good, 'Upload-Offset' => '3.0' }, 'x', 400,
        'invalid_request' ],
    [ 'an offset in hexadecimal',       'PATCH',  { %good, 'Upload-Offset' => '0x3' }, 'x', 400,
        'invalid_request' ],
    [ 'an offset beyond any number',    'PATCH',  { %good, 'Upload-Offset' => '9' x 19 }, 'x', 400,
        'invalid_request' ],
    [ 'an offset that has passed',      'PATCH',  { %good, 'Upload-Offset' => 2 }, 'x', 409,
        'upload_offset_conflict' ],
    [ 'an offset that is too large',    'PATCH',  { %good, 'Upload-Offset' => 4 }, 'x', 409,
        'upload_offset_conflict' ],
    [ 'more than the size',             'PATCH',  { %good }, 'x' x 8, 413, 'request_too_large' ],
    [ 'another length',                 'PATCH',  { %good, 'Upload-Length' => 11 }, 'x', 400,
        'invalid_request' ],
    [ 'an invalid length',              'PATCH',  { %good, 'Upload-Length' => 'ten' }, 'x', 400,
        'invalid_request' ],
    [ 'an unknown checksum',            'PATCH',  { %good,
        'Upload-Checksum' => 'md5 nhB9nTcrtoJr2B01QqQZ1g==' }, 'x', 400, 'invalid_request' ],
    [ 'a checksum in upper case',       'PATCH',  { %good,
        'Upload-Checksum' => 'SHA1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=' }, 'x', 400, 'invalid_request' ],
    [ 'a checksum without a value',     'PATCH',  { %good, 'Upload-Checksum' => 'sha1' }, 'x', 400,
        'invalid_request' ],
    [ 'a checksum that is too short',   'PATCH',  { %good, 'Upload-Checksum' => 'sha1 Kq5s' }, 'x',
        400, 'invalid_request' ],
    [ 'a checksum that is not base64',  'PATCH',
        { %good, 'Upload-Checksum' => 'sha1 ' . '!' x 28 }, 'x', 400, 'invalid_request' ],
    [ 'a wrong checksum',               'PATCH',  { %good,
        'Upload-Checksum' => 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=' }, 'x', 460, 'checksum_mismatch' ],
    [ 'less than the size',             'PUT',    {}, 'x' x 9, 400, 'invalid_request' ],
    [ 'more than the size, at once',    'PUT',    {}, 'x' x 11, 413, 'request_too_large' ],
    [ 'a part of the file',             'PUT',    { 'Content-Range' => 'bytes 0-9/10' }, 'x' x 10,
        400, 'invalid_request' ],
    [ 'nothing',                        'PUT',    {}, '', 400, 'invalid_request' ],
    [ 'GET',                            'GET',    {}, undef, 405, 'method_not_allowed' ],
    [ 'POST',                           'POST',   {}, 'x', 405, 'method_not_allowed' ],
    [ 'another method',                 'BREW',   {}, undef, 405, 'method_not_allowed' ],
    [ 'a method in lower case',         'POST',   { %good, 'X-HTTP-Method-Override' => 'patch' },
        'x', 405, 'method_not_allowed' ],
    [ 'an override by GET',             'PATCH',  { %good, 'X-HTTP-Method-Override' => 'GET' }, 'x',
        405, 'method_not_allowed' ],
);
my $target = begin_upload($shop, size => 10);
patch_bytes($target, 0, 'abc');
unstored();
for my $case (@cases) {
    my ($what, $method, $headers, $body, $status, $code) = @$case;
    $reply = tus($method, $target, $body, %$headers);
    refused($reply, $status, $code, $what);
    is($reply->{headers}{'tus-resumable'}, '1.0.0', "$what: the answer has the version");
    is($reply->{headers}{'tus-version'}, $status == 412 ? '1.0.0' : undef, "$what: Tus-Version");
    is($reply->{headers}{'upload-offset'}, $code eq 'upload_offset_conflict' ? 3 : undef,
        "$what: Upload-Offset");
    is($reply->{headers}{allow}, $status == 405 ? 'DELETE, HEAD, OPTIONS, PATCH, PUT' : undef,
        "$what: Allow");
    is(stored_bytes($target), 3, "$what: the bytes do not change");
    next if $method ne 'PATCH' || $headers->{'X-HTTP-Method-Override'};
    is_error(tus('POST', $target, $body, %$headers, 'X-HTTP-Method-Override' => 'PATCH'), $status,
        $code, "$what, by POST");
}
is(tus('HEAD', $target, undef, 'Tus-Resumable' => undef)->{status}, 412, 'HEAD without a version');
is(patch_bytes($target, 3, 'defghij', 'Content-Type' => "$piece; charset=utf-8")->{status}, 204,
    'after these requests the upload goes on, also with a parameter behind the type');
is(completed($target), sha256_hex('abcdefghij'), 'and has the right bytes');

my $unknown = begin_upload($shop);
patch_bytes($unknown, 0, 'abc');
is_error(patch_bytes($unknown, 3, 'x', 'Upload-Length' => 2), 400, 'invalid_request',
    'a length below the offset');
is_error(patch_bytes($unknown, 3, 'x', 'Upload-Length' => MAX_SIZE + 1), 413, 'request_too_large',
    'a length beyond the largest');
is_error(patch_bytes($unknown, 3, 'xyz', 'Upload-Length' => 4), 413, 'request_too_large',
    'a length below the end of the piece');
is_error(answer_on(begun($unknown, 'PUT', { 'Content-Length' => MAX_SIZE + 1 })), 413,
    'request_too_large', 'a body beyond the largest');
is(stored_bytes($unknown), 3, 'none of these changes the bytes');
is(tus('HEAD', $unknown)->{headers}{'upload-defer-length'}, 1, 'or gives the upload a length');

# A chunked body does not announce its size.
my $chunked = begin_upload($shop, size => 10);
patch_bytes($chunked, 0, 'abc');
sub chunks { my ($n) = @_; return sprintf("%x\r\n%s\r\n0\r\n\r\n", $n, 'x' x $n) }
my %chunked = (%{ patch_head(3, 0) }, 'Transfer-Encoding' => 'chunked');
delete $chunked{'Content-Length'};
is_error(answer_on(begun($chunked, 'PATCH', \%chunked, chunks(8))), 413, 'request_too_large',
    'a chunked piece that is too long');
is(offset_of($chunked), 3, 'leaves the offset');
is(answer_on(begun($chunked, 'PATCH', \%chunked, chunks(4)))->{headers}{'upload-offset'}, 7,
    'a chunked piece that fits moves it');
is_error(answer_on(begun($chunked, 'PUT', { 'Transfer-Encoding' => 'chunked' }, chunks(9))), 400,
    'invalid_request', 'a chunked PUT that is too short');
is_error(answer_on(begun($chunked, 'PUT', { 'Transfer-Encoding' => 'chunked' }, chunks(11))), 413,
    'request_too_large', 'a chunked PUT that is too long');
is(answer_on(begun($chunked, 'PUT', { 'Transfer-Encoding' => 'chunked' }, chunks(10)))->{status},
    204, 'a chunked PUT that fits');

# Invalid upload URLs.
my ($root, $token) = $chunked->{upload_url} =~ m{(.*)/(.*)};
my %strange = (
    'no token'          => "$root/",
    'no slash'          => $root,
    'a short token'     => "$root/" . substr($token, 0, -1),
    'a long token'      => "$root/${token}A",
    'a changed token'   => "$root/" . ($token =~ s/^(.)/$1 eq 'M' ? 'N' : 'M'/er),
    'a changed end'     => "$root/" . ($token =~ s/(.{4})$/$1 eq 'AAAA' ? 'BBBB' : 'AAAA'/er),
    'another segment'   => "$root/$token/x",
    'an upload\'s id'   => "$root/$chunked->{id}",
);
for my $what (sort keys %strange) {
    my $at = { upload_url => $strange{$what} };
    is_error(tus('PATCH', $at, 'x', %good), 404, 'upload_not_found', $what);
    is_error(put_bytes($at, 'x'), 404, 'upload_not_found', "$what: PUT");
    is_error(tus('DELETE', $at), 404, 'upload_not_found', "$what: DELETE");
    is_error(tus('POST', $at, undef, 'X-HTTP-Method-Override' => 'DELETE'), 404, 'upload_not_found',
        "$what: POST");
    is(tus('HEAD', $at)->{headers}{'upload-offset'}, undef, "$what: no offset");
}

# Each method, asked of an upload that can't be written.
sub refused_to_all
{
    my ($at, $status, $code, $name, %headers) = @_;
    is(tus('HEAD', $at, undef, %headers)->{status}, $status, "$name: HEAD");
    is_error(patch_bytes($at, 0, 'x', %headers), $status, $code, "$name: PATCH");
    is_error(put_bytes($at, 'x', %headers), $status, $code, "$name: PUT");
    is_error(tus('DELETE', $at, undef, %headers), $status, $code, "$name: DELETE");
    is_error(tus('POST', $at, undef, 'X-HTTP-Method-Override' => 'DELETE', %headers), $status,
        $code, "$name: POST");
    return;
}

my $barred = begin_upload($shop, size => 10);
my %clear  = ('X-Forwarded-For' => '203.0.113.9');
refused_to_all($barred, 403, 'tls_required', 'in clear', %clear);
is_error(ask_upload('OPTIONS', $barred, undef, %clear), 403, 'tls_required', 'in clear: OPTIONS');
sql("UPDATE upload SET expires_at = 1000000 WHERE id = '$barred->{id}'");
refused_to_all($barred, 410, 'upload_gone', 'expired');

my $blocked = new_shop();
$barred = begin_upload($blocked, size => 10);
is((ctl('shop', 'block', $blocked->{shop_id}, '--reason', 'a complaint'))[0], 0,
    'a shop is blocked');
refused_to_all($barred, 403, 'shop_blocked', 'of a blocked shop');

# Once an upload is an asset.
my $whole = begin_upload($shop, size => 10);
put_bytes($whole, '0123456789');
complete_upload($shop, $whole);
is_error(tus('DELETE', $whole), 409, 'upload_finished', 'DELETE of a completed upload');
is_error(tus('POST', $whole, 'x', 'X-HTTP-Method-Override' => 'PUT'), 409, 'upload_finished',
    'PUT by POST');

# --- cut connections -----------------------------------------------------------------------------

# The cut request holds the upload for a moment after HEAD shows its bytes.
sub patched_when_free
{
    my ($upload, $offset, $piece) = @_;
    my $answer;
    wait_for(sub { ($answer = patch_bytes($upload, $offset, $piece))->{status} != 423 }, 60,
        'the end of the cut request');
    return $answer;
}

my $cut = begin_upload($shop, size => $size);
close begun($cut, 'PATCH', patch_head(0, $size), substr $bytes, 0, 400_000);
ok(wait_for(sub { (offset_of($cut) // 0) == 400_000 }, 60, 'the bytes of a cut piece'),
    'after a cut piece HEAD shows what arrived');
is(patched_when_free($cut, 400_000, substr $bytes, 400_000)->{status}, 204,
    'and the client goes on from there');
is(completed($cut), sha256_hex($bytes), 'the file is whole');

my $cut_put = begin_upload($shop, size => $size);
close begun($cut_put, 'PUT', { 'Content-Length' => $size }, substr $bytes, 0, 5);
ok(wait_for(sub { (offset_of($cut_put) // 0) == 5 }, 60, 'the bytes of a cut PUT'),
    'five bytes of a cut PUT are kept');
is(patched_when_free($cut_put, 5, substr $bytes, 5)->{status}, 204, 'tus goes on from there');
is(completed($cut_put), sha256_hex($bytes), 'to a whole file');

my $cut_checked = begin_upload($shop, size => $size);
patch_bytes($cut_checked, 0, 'abc');
close begun($cut_checked, 'PATCH',
    { %{ patch_head(3, $size - 3) }, 'Upload-Checksum' => 'sha1 ' . padded(sha1_base64($bytes)) },
    substr $bytes, 0, 300_000);
wait_for(sub { patch_bytes($cut_checked, 3, '')->{status} == 204 }, 60, 'the end of the cut piece');
is(offset_of($cut_checked), 3, 'a cut piece with a checksum is not kept');

my $timed = begin_upload($shop, size => 100);
my @timed = (
    begun($timed, 'PATCH', patch_head(0, 100), 'abcdefg', host => 'impatient.test'),
    begun(begin_upload($shop, size => 100), 'PUT', { 'Content-Length' => 100 }, 'abcdefg',
        host => 'impatient.test'),
    begun(begin_upload($shop, size => 100), 'POST',
        { 'Content-Length' => 100, 'X-HTTP-Method-Override' => 'PUT' }, 'abcdefg',
        host => 'impatient.test'),
);
is_error(answer_on($_), 408, 'request_timeout', 'a client that stops sending') for @timed;
is(offset_of($timed), 7, 'its bytes are kept');

# --- one writer at a time ------------------------------------------------------------------------

my $busy = begin_upload($shop, size => $size);
my $slow = begun($busy, 'PATCH', patch_head(0, $size), substr $bytes, 0, 300_000);
wait_for(sub { is_being_written($busy) }, 60, 'a request that writes');
$reply = patch_bytes($busy, 0, 'x');
is_error($reply, 423, 'upload_locked', 'a second request to the same upload');
ok($reply->{headers}{'retry-after'}, 'has Retry-After');
is_error(put_bytes($busy, $bytes), 423, 'upload_locked', 'so is a PUT');
is_error(tus('POST', $busy, $bytes, 'X-HTTP-Method-Override' => 'PUT'), 423, 'upload_locked',
    'and one by POST');
is(tus('HEAD', $busy)->{status}, 200, 'but HEAD is answered');
is(complete_upload($shop, $busy)->{status}, 409, 'and it can not be completed yet');
print $slow substr $bytes, 300_000;
is(answer_on($slow)->{status}, 204, 'the first one is not disturbed');
is(completed($busy), sha256_hex($bytes), 'and its bytes are right');

# Bytes that are not stored yet, so that this upload has to store them.
my $doomed = begin_upload($shop, size => $size);
my $new    = reverse $bytes;
$slow = begun($doomed, 'PATCH', patch_head(0, $size), substr $new, 0, 300_000);
wait_for(sub { is_being_written($doomed) }, 60, 'a request that writes');
is(tus('DELETE', $doomed)->{status}, 204, 'an upload can be deleted while it is written');
print $slow substr $new, 300_000;
is_error(answer_on($slow), 409, 'upload_finished', 'the writing request is refused');
is(offset_of($doomed), undef, 'nothing is left');
ok(in_objects() || !stored_bytes($doomed), 'no file either');

# --- browsers: CORS ------------------------------------------------------------------------------

sub cors
{
    my ($answer) = @_;
    return join ' ', sort grep { /^access-control-/ } keys %{ $answer->{headers} };
}

my $plain = begin_upload($shop, size => 10);
is(cors(ask_upload('OPTIONS', $plain, undef, Origin => 'https://shop.example',
    'Access-Control-Request-Method' => 'PATCH')),
    '', 'by default no origin is allowed');

my $server = MDL::Instance->new(cluster => 1,
    extra => "DownloadsUploadOrigin https://shop.example https://app.example:8443\n"
        . "DBDMin 1\nDBDKeep 1\nDBDMax 2\n");
$server->start;
$shop  = new_shop();
$plain = begin_upload($shop, size => 10);
my %from = (Origin => 'https://shop.example');
$reply = ask_upload('OPTIONS', $plain, undef, %from, 'Access-Control-Request-Method' => 'PATCH',
    'Access-Control-Request-Headers' => 'content-type,tus-resumable,upload-offset');
is($reply->{status}, 204, 'a preflight');
is($reply->{headers}{'access-control-allow-origin'}, 'https://shop.example', 'allows the origin');
like($reply->{headers}{'access-control-allow-methods'}, qr/\b$_\b/, "allows $_")
    for qw(HEAD PATCH PUT DELETE POST);
like($reply->{headers}{'access-control-allow-headers'}, qr/\b$_\b/i, "allows $_")
    for qw(Content-Type Tus-Resumable Upload-Offset Upload-Length Upload-Checksum
    X-HTTP-Method-Override);
like($reply->{headers}{'access-control-max-age'}, qr/^\d+\z/, 'for a while');
is($reply->{headers}{'access-control-allow-credentials'}, undef, 'without cookies');
$reply = patch_bytes($plain, 0, 'abc', %from);
is($reply->{status}, 204, 'the piece itself');
is($reply->{headers}{'access-control-allow-origin'}, 'https://shop.example',
    'is readable for the page');
like($reply->{headers}{'access-control-expose-headers'}, qr/\b$_\b/, "with its $_")
    for qw(Upload-Offset Upload-Length Upload-Expires Tus-Resumable X-Request-Id);
like($reply->{headers}{vary}, qr/\bOrigin\b/, 'Vary names Origin');
is(patch_bytes($plain, 9, 'x', %from)->{headers}{'access-control-allow-origin'},
    'https://shop.example', 'errors are readable, too');
is(put_bytes({ upload_url => "$plain->{upload_url}x" }, 'x', %from)
    ->{headers}{'access-control-allow-origin'},
    'https://shop.example', 'even for an unknown upload');
for my $origin ('https://evil.example', 'http://shop.example', 'https://shop.example:8443',
    'https://shop.example.evil', 'null', 'https://app.example')
{
    $reply = ask_upload('OPTIONS', $plain, undef, Origin => $origin,
        'Access-Control-Request-Method' => 'PUT');
    is(cors($reply), '', "a preflight from $origin allows nothing");
    like($reply->{headers}{vary}, qr/\bOrigin\b/, "Vary names Origin, for $origin");
    is(cors(tus('HEAD', $plain, undef, Origin => $origin)), '',
        "an answer to $origin allows nothing");
}
is(tus('HEAD', $plain, undef, Origin => 'https://app.example:8443')
    ->{headers}{'access-control-allow-origin'},
    'https://app.example:8443', 'the second origin is allowed');

# --- resources -----------------------------------------------------------------------------------

# Ten slow clients, and two connections to the database.
my @slow = map { begun(begin_upload($shop, size => 10), 'PUT', { 'Content-Length' => 10 }, 'x') }
    1 .. 10;
is(api('GET', '/ping', key => $shop->{token}, timeout => 30)->{status}, 200,
    'slow uploads hold no connection to the database');
print $_ 'x' x 9 for @slow;
is(join(' ', map { answer_on($_)->{status} } @slow), join(' ', (204) x 10), 'and all succeed');

sub peak
{
    my $peak = 0;
    for my $pid (server_pids()) {
        open my $in, '<', "/proc/$pid/status" or next;
        my ($kib) = join('', <$in>) =~ /^VmHWM:\s+(\d+)/m;
        $peak = $kib if ($kib // 0) > $peak;
    }
    return $peak;
}

my $zeros = logs_dir() . "/tus-$$.zeros";
open $out, '>:raw', $zeros or die "$zeros: $!";
truncate $out, 300 * 2**20;
close $out;
my $small = begin_upload($shop, size => 2**20);
put_bytes($small, "\0" x 2**20);
my $before = peak();
my $huge = begin_upload($shop, size => 300 * 2**20);
is(`curl -sS -o /dev/null -w '%{http_code}' -T $zeros '$huge->{upload_url}'`, '204',
    'a PUT of 300 MiB');
my $grown = peak() - $before;
cmp_ok($grown, '<', 8 * 1024, "makes the server's processes grow by only $grown KiB");
my $zeros_digest = Digest::SHA->new(256)->addfile($zeros, 'b')->hexdigest;
is(complete_upload($shop, $huge)->{json}{asset}{sha256}, $zeros_digest, 'and the digest is right');
unlink $zeros;

# The database is down when the last byte arrives.
SKIP: {
    skip 'only PostgreSQL can be stopped', 4 if database() ne 'pgsql';
    my $away = begin_upload($shop, size => $size);
    my $last = begun($away, 'PATCH', patch_head(0, $size), substr $bytes, 0, 600_000);
    wait_for(sub { is_being_written($away) }, 60, 'a request that writes');
    stop_database();
    print $last substr $bytes, 600_000;
    is_error(answer_on($last), 503, 'service_unavailable', 'an outage at the last byte');
    start_database();
    wait_for(sub { api('GET', '/health')->{status} == 200 }, 60, 'the database');
    is(wait_for(sub { offset_of($away) }, 60, 'the end of the write'), $size, 'loses no byte');
    is(patch_bytes($away, $size, '')->{status}, 204, 'the client need not send anything again');
    is(completed($away), sha256_hex($bytes), 'and the upload becomes an asset');
}

# --- the document --------------------------------------------------------------------------------

for my $operation (upload_operations()) {
    my %headers = examples_in($operation, 'header');
    my $body    = $operation->{body};
    $headers{'Content-Type'} = $body->{type} if $body;
    my $answer = ask_upload($operation->{method}, begin_upload($shop), $body && $body->{example},
        %headers);
    like($answer->{status}, qr/^2/, "$operation->{id}: the examples are accepted")
        or diag($answer->{body});
    $answer = ask_upload($operation->{method}, { upload_url => example_path($operation) },
        $body && $body->{example}, %headers);
    is($answer->{status}, $operation->{method} eq 'OPTIONS' ? 204 : 404,
        "$operation->{id}: the token leads to nothing");
}
$server->stop;

# An answer to HEAD tells no code.
my $ELSEWHERE = qr/\ (?:internal_error|service_unavailable|maintenance
    |insufficient_storage|storage_quota_exceeded)\z|^getUploadOffset\ 50/x;
is(join("\n", never_given($ELSEWHERE, upload_operations())), '',
    'every declared answer was given, except those of other suites');
is(join("\n", strange_examples($ELSEWHERE, upload_operations())), '',
    'the examples of errors say what the service says');

done_testing();
