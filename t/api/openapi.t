# Compares the OpenAPI document with the running service: each operation is called so that it
# succeeds and so that it is refused; each answer is as the document declares.  document.t has the
# document itself.
#
# both: each operation succeeds and is refused on each
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use HTTP::Tiny;
use JSON::PP;
use MDL::Contract;
use MDL::OpenApi;
use MDL::Operations;
use MDL::Source;
use MDL::Test;
use MDL::Upload qw(in_objects);
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my (undef, $read) = ctl('key', 'create', $shop->{shop_id}, 'reader', '--scope', 'read');

# --- each operation succeeds and is refused ------------------------------------------------------

my $UNKNOWN = { digits => '99999999999999999999', id => '9007199254740991' };

my %described = map { ("$_->{method} $_->{form}" => 1) } operations();

# The path with its last id replaced by an unknown one.
sub unknown_path
{
    my ($operation, $path) = @_;
    my @form = split m{/}, $operation->{form};
    my @path = split m{/}, $path;
    my ($last) = grep { ($form[$_] // '') eq '{}' } reverse 0 .. $#form;
    my $id = $path[$last];
    $path[$last]
        = $id =~ /^(job_|upl_)/   ? $1 . '0' x 26
        : $operation->{path} =~ /\{storefront_order_id\}/ && $last == 2 ? $UNKNOWN->{digits}
        :                           $UNKNOWN->{id};
    return join '/', @path;
}

sub code_of
{
    my ($reply) = @_;
    return "$reply->{status} " . ($reply->{json}{error}{code} // 'no error');
}

sub refused_with
{
    my ($operation, $reply, $wanted, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(code_of($reply), $wanted, "$operation->{id}: $name") or diag($reply->{body});
    return fits($operation, $reply, $name);
}

sub without_id { my ($reply) = @_; return $reply->{body} =~ s/"request_id":"[^"]*"//r }

# A shop that was suspended.
my $closed = new_shop();
my ($suspended) = ctl('shop', 'suspend', $closed->{shop_id});
is($suspended, 0, 'a shop is suspended');

# A shop that the operator has blocked.
my $blocked = new_shop();
is((ctl('shop', 'block', $blocked->{shop_id}, '--reason', 'a complaint'))[0], 0,
    'a shop is blocked');

# Announces a body larger than any operation accepts, and sends none of it.
sub announce
{
    my ($operation, $path, $type) = @_;
    $type //= 'application/json';
    return parse_reply(raw(join "\r\n", "$operation->{method} /api/v1$path HTTP/1.1",
        'Host: localhost', "Authorization: Bearer $shop->{token}", 'Idempotency-Key: ' . idem(),
        "Content-Type: $type", 'Content-Length: 9000000', 'Connection: close', '', ''));
}

for my $operation (operations()) {
    my ($id, $method) = @$operation{qw(id method)};
    my $request = eval { request_for($operation, $shop) };
    if (!$request) {
        fail("$id can be prepared");
        diag($@);
        next;
    }
    my $path = $request->{path};
    my $send = sub { send_request($operation, $request, key => $shop->{token}, @_) };
    my $has_id = $operation->{codes}{404} && $id ne 'assignOrder';    # which makes its order

    refused_with($operation, $send->(headers => { 'x-forwarded-for' => '203.0.113.9' }),
        '403 tls_required', 'in clear');

    # Refused, also to other shops.
    if (!$operation->{open}) {
        refused_with($operation, $send->(key => undef), '401 unauthorized', 'without a key');
        refused_with($operation, $send->(key => $closed->{token}), '403 shop_not_approved',
            'of a suspended shop');
        refused_with($operation, $send->(key => $blocked->{token}), '403 shop_blocked',
            'of a blocked shop');
    }
    if ($operation->{write}) {
        refused_with($operation, $send->(key => $read->{token}), '403 insufficient_scope',
            'with a read-only key');
        refused_with($operation, $send->(idem => undef), '400 idempotency_key_required',
            'without Idempotency-Key');
        refused_with($operation,
            $send->(body => '{}', headers => { 'content-type' => 'text/plain' }),
            '415 unsupported_media_type', 'with text');
        refused_with($operation, announce($operation, $path, $request->{type}),
            '413 request_too_large', 'with more than 8 MiB');
    }
    if ($operation->{write} && !$request->{type}) {
        refused_with($operation, $send->(body => '[1,'), '400 invalid_json', 'with half a list');
        refused_with($operation, $send->(body => '{"nonsense":true}'), '400 invalid_request',
            'with an unknown member');
    }
    if ($method eq 'GET') {
        refused_with($operation, api('GET', "$path?nonsense=1", key => $shop->{token}),
            '400 invalid_request', 'with an unknown parameter');
    }
    if ($operation->{lists}) {
        refused_with($operation, $send->(), '200 no error', 'the first page');
        for (qw(limit=0 limit=101 limit=x)) {
            refused_with($operation, api('GET', "$path?$_", key => $shop->{token}),
                '400 invalid_request', "with $_");
        }
        refused_with($operation, api('GET', "$path?cursor=AAAA", key => $shop->{token}),
            '400 invalid_cursor', 'with an invalid cursor');
    }
    if ($has_id) {
        my $nobody = send_request($operation,
            { %$request, path => unknown_path($operation, $path) }, key => $shop->{token});
        like(code_of($nobody), qr/^404 \w+_not_found\z/, "$id: an unknown id")
            or diag($nobody->{body});
        fits($operation, $nobody, 'an unknown id');
        my $stranger = $send->(key => $other->{token});
        my $alien = send_request($operation, { %$request, path => unknown_path($operation, $path) },
            key => $other->{token});
        like(code_of($stranger), qr/^404 \w+_not_found\z/, "$id: of another shop")
            or diag($stranger->{body});
        fits($operation, $stranger, 'of another shop');
        is(without_id($stranger), without_id($alien),
            "$id: another shop's id is answered like an unknown one")
            if $operation->{form} =~ tr/{// == 1;
    }

    # Methods, and success.
    my $options = api('OPTIONS', $path);
    is($options->{status}, 204, "$id: OPTIONS");
    my %allowed = map { $_ => 1 } split /, /, $options->{headers}{allow} // '';
    ok($allowed{$method}, "$id: OPTIONS lists $method");
    my @beside = grep { !/^(?:HEAD|OPTIONS)$/ && !$described{"$_ $operation->{form}"} }
        sort keys %allowed;
    is("@beside", '', "$id: OPTIONS lists only methods of the document")
        if $path ne '/assets/uploads';
    my $wrong = api('TRACK', $path, key => $shop->{token});
    is(code_of($wrong), '405 method_not_allowed', "$id: another method");
    is($wrong->{headers}{allow}, $options->{headers}{allow},
        "$id: its Allow header is that of OPTIONS");

    refused_with($operation, $send->(headers => { 'if-match' => '"another"' }),
        '412 precondition_failed', 'of another version')
        if $has_id && $operation->{codes}{412};
    my $reply = $send->();
    like($reply->{status}, qr/^2/, "$id succeeds") or diag($reply->{body});
    fits($operation, $reply, 'success');
    fits($operation, $send->(headers => { 'if-none-match' => $reply->{headers}{etag} }),
        'what is known already')
        if grep { $_ == 304 } @{ $operation->{responses} };
    if ($method eq 'GET') {
        my $head = api('HEAD', $path, key => $shop->{token});
        is("$head->{status} " . length $head->{body}, "$reply->{status} 0",
            "$id: HEAD has the status and no body");
    }
}

# --- the examples of parameters and bodies -------------------------------------------------------

# Their ids and cursors lead to nothing, but the service has no fault to find with them.
my $reader = new_shop();

sub is_understood
{
    my ($operation, $path, $name, %request) = @_;
    my $reply = api($operation->{method}, $path, key => $reader->{token}, %request);
    unlike(code_of($reply), qr/^(?:400 (?!invalid_cursor)|404 not_found|405|413|415|5)/,
        "$operation->{id}: $name is understood")
        or diag($reply->{body});
    return fits($operation, $reply, $name);
}

for my $operation (operations()) {
    my $path    = example_path($operation);
    my %headers = examples_in($operation, 'header');
    my $idem    = delete $headers{'Idempotency-Key'};
    my $body    = $operation->{body};
    my $json = !$body || $body->{type} eq 'application/json';
    is_understood($operation, $path, 'the request of the examples', headers => \%headers,
        defined $idem ? (idem => $idem) : (), $body ? (json => $body->{example}) : ()) if $json;
    my %query = examples_in($operation, 'query');
    is_understood($operation, "$path?" . HTTP::Tiny->www_form_urlencode({ $_ => $query{$_} }),
        "$_=$query{$_}") for sort keys %query;
}

# --- further declared answers --------------------------------------------------------------------

# Sends one request of an operation and checks the status and code of its answer.
sub call_of
{
    my ($id, $path, $wanted, $name, %request) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $operation = operation($id);
    my $reply = api($operation->{method}, $path, key => $shop->{token}, %request);
    refused_with($operation, $reply, $wanted, $name);
    return $reply->{json};
}

sub path_of { my ($id) = @_; return request_for(operation($id), $shop)->{path} }

my $file    = ready_asset($shop, "openapi-$$.txt", bytes())->{id};
my $foreign = $UNKNOWN->{id} + 0;
my $tag     = created($shop, '/license-key-tags', { name => 'T' })->{id};
my $pack    = created($shop, '/packs', { name => 'P', file_ids => [$file] })->{id};
my $link    = created($shop, '/links', { title => 'L', url => 'https://example.com/' })->{id};
my $mapping = created($shop, '/mappings', { storefront_product_id => product(), file_ids => [$file],
    pack_ids => [$pack], link_ids => [$link], license_key_tag_ids => [$tag] });

call_of('putLogo', '/shop/logo', '400 invalid_request', 'no image', body => 'GIF89a',
    headers => { 'content-type' => 'image/png' });
call_of('importAsset', '/assets', '422 source_host_not_allowed', 'from anywhere',
    json => { source_url => 'https://elsewhere.example/x' });
call_of('importAsset', '/assets', '422 unknown_reference', 'into an unknown category',
    json => { source_url => source_url('x'), category_id => $foreign });
call_of('updateAsset', "/assets/$file", '422 unknown_reference', 'into an unknown category',
    json => { category_id => $foreign });
call_of('deleteAsset', "/assets/$file", '409 asset_in_use', 'held by a mapping and a pack');
call_of('deletePack', "/packs/$pack", '409 pack_in_use', 'held by a mapping');
call_of('deleteLink', "/links/$link", '409 link_in_use', 'held by a mapping');
call_of('deleteLicenseKeyTag', "/license-key-tags/$tag", '409 license_key_tag_in_use',
    'held by a mapping');
call_of('createPack', '/packs', '422 unknown_reference', 'with an unknown file',
    json => { name => 'P', file_ids => [$foreign] });
call_of('updatePack', "/packs/$pack", '422 unknown_reference', 'with an unknown file',
    json => { file_ids => [$foreign] });
call_of('saveMapping', '/mappings', '422 unknown_reference', 'with an unknown link',
    json => { storefront_product_id => product(), link_ids => [$foreign] });
call_of('saveMapping', '/mappings', '200 no error', 'once more', json => {
    storefront_product_id => $mapping->{storefront_product_id}, license_key_tag_ids => [$tag],
    file_ids => [$file], pack_ids => [$pack], link_ids => [$link] });
call_of('replaceMapping', "/mappings/$mapping->{id}", '422 unknown_reference',
    'with an unknown tag',
    json => { storefront_product_id => product(), license_key_tag_ids => [$foreign] });
my $second = created($shop, '/mappings', { storefront_product_id => product() });
call_of('replaceMapping', "/mappings/$second->{id}", '409 mapping_exists', 'in place of another',
    json => { storefront_product_id => $mapping->{storefront_product_id} });

call_of('updateMapping', "/mappings/$second->{id}", '409 mapping_exists', 'to be another',
    json => { storefront_product_id => $mapping->{storefront_product_id} });
call_of('updateMapping', "/mappings/$second->{id}", '422 unknown_reference', 'with an unknown tag',
    json => { license_key_tag_ids => [$foreign] });

my $inactive = created($shop, '/mappings', { storefront_product_id => product(),
    is_active => JSON::PP::false() });
call_of($_, "/mappings/$mapping->{id}/move-buyers/$inactive->{id}", '422 mapping_inactive',
    'of an inactive product') for qw(countBuyers moveBuyers);

call_of('listAssets', "/assets?status=ready&filename=openapi-$$.txt&limit=1", '200 no error',
    'with filters');
my $page = call_of('listAssets', '/assets?limit=1', '200 no error', 'with pages');
ok($page->{has_more}, 'there is a second page');
call_of('listAssets', "/assets?limit=1&cursor=$page->{next_cursor}", '200 no error',
    'the second page');

my $waiting = path_of('getJob');
my $pending = api('GET', $waiting, key => $shop->{token})->{json}{asset_id};
call_of('createAssetVersion', "/assets/$pending/versions", '409 asset_not_ready',
    'of one that has no bytes yet', json => { source_url => source_url('x') });
call_of('createAssetVersion', "/assets/$file/versions", '422 source_host_not_allowed',
    'from anywhere', json => { source_url => 'https://elsewhere.example/x' });
call_of('createAssetVersion', "/assets/$file/versions", '422 unknown_reference',
    'from an unknown upload', json => { upload_id => 'upl_' . '0' x 26 });
call_of('restoreAssetVersion', "/assets/$pending/versions/1/restore", '409 asset_not_ready',
    'of one that has no bytes yet');
call_of('restoreAssetVersion', "/assets/$file/versions/1/restore", '409 version_current',
    'of the present version');
call_of('restoreAssetVersion', "/assets/$file/versions/2/restore", '404 version_not_found',
    'of a version that there was not');
call_of('retryJob', "$waiting/retry", '409 job_finished', 'of a job that waits');
my $failed = path_of('retryJob') =~ s{/retry\z}{}r;
my $unready = api('GET', $failed, key => $shop->{token})->{json}{asset_id};
my $source = MDL::Source->new;
my $busy = call_of('createAssetVersion', "/assets/$unready/versions", '202 no error',
    'of one whose import failed',
    json => { source_url => $source->offer('busy', { status => 503 }) });
call_of('retryJob', "$failed/retry", '409 asset_not_ready', 'while the asset has another job');
call_of('cancelJob', "/jobs/$busy->{job}{id}/cancel", '200 no error', 'of an unfinished job');
my $imported = api('POST', '/assets', key => $shop->{token},
    json => { source_url => source('done.txt', bytes()) });
wait_job($shop, $imported->{json}{job}{id});
call_of('cancelJob', "/jobs/$imported->{json}{job}{id}/cancel", '409 job_finished',
    'of a job that has succeeded');
call_of('getJob', "/jobs/$imported->{json}{job}{id}", '200 no error', 'that has succeeded');

call_of('createUpload', '/assets/uploads', '422 unknown_reference', 'into an unknown category',
    json => { filename => 'x', category_id => $foreign });
call_of('createUpload', '/assets/uploads', '413 request_too_large', 'of a file that is too large',
    json => { filename => 'x', size => 4503599627370496 });
my $bytes = bytes();
my $half = upload_of($shop, undef, size => 100);
call_of('completeUpload', "/assets/uploads/$half/complete", '409 upload_incomplete',
    'without bytes');
call_of('createAssetVersion', "/assets/$file/versions", '409 upload_incomplete',
    'from an upload without bytes', json => { upload_id => $half });
call_of('deleteUpload', "/assets/uploads/$half", '204 no error', 'that is incomplete');
call_of('completeUpload', "/assets/uploads/$half/complete", '409 upload_finished',
    'that was aborted');
my $whole = upload_of($shop, $bytes, sha256 => sha256_hex('other bytes'));
call_of('completeUpload', "/assets/uploads/$whole/complete", '422 checksum_mismatch',
    'with other bytes');
call_of('createAssetVersion', "/assets/$file/versions", '422 checksum_mismatch',
    'from such an upload', json => { upload_id => $whole });
$whole = upload_of($shop, $bytes);
call_of('createAssetVersion', "/assets/$file/versions", '200 no error', 'from an upload',
    json => { upload_id => $whole });
call_of('restoreAssetVersion', "/assets/$file/versions/1/restore", '200 no error',
    'of the version before');
call_of('restoreAssetVersion', "/assets/$file/versions/1/restore", '409 version_not_kept',
    'that is no longer kept');
call_of('createAssetVersion', "/assets/$file/versions", '409 upload_finished',
    'from an upload that was used', json => { upload_id => $whole });
$whole = upload_of($shop, $bytes);
my $completed = call_of('completeUpload', "/assets/uploads/$whole/complete", '201 no error',
    'of a whole upload');
call_of('completeUpload', "/assets/uploads/$whole/complete", '200 no error', 'once more');
call_of('deleteAsset', "/assets/$completed->{asset}{id}", '204 no error',
    'that came from an upload');
call_of('completeUpload', "/assets/uploads/$whole/complete", '404 asset_not_found',
    'once more, without its asset');
my $pieces = upload_in_pieces($shop, bytes(), 5);
call_of('completeUpload', "/assets/uploads/$pieces/complete",
    in_objects() ? '201 no error' : '202 no error', 'in two pieces');
call_of('deleteUpload', "/assets/uploads/$whole", '409 upload_finished', 'that is completed');
call_of('getUpload', "/assets/uploads/$whole", '200 no error', 'that is completed');

my $order = digits();
my %assign = (storefront_customer_id => digits(),
    items => [ { storefront_product_id => $mapping->{storefront_product_id}, quantity => 2 } ]);
call_of('assignOrder', "/orders/$order/assignments", '422 product_not_mapped',
    'of an unknown product',
    json => { %assign, items => [ { storefront_product_id => product() } ] });
my $made = call_of('assignOrder', "/orders/$order/assignments", '201 no error', 'with everything',
    json => \%assign);
my $item = $made->{assignments}[0]{id};
call_of('assignOrder', "/orders/$order/assignments", '200 no error', 'once more', json => \%assign);
call_of('assignOrder', "/orders/$order/assignments", '409 other_customer', 'of another customer',
    json => { %assign, storefront_customer_id => digits() });
my ($one, $guest) = map { $_->{customer}{id} } $made,
    api('POST', '/orders/' . digits() . '/assignments', key => $shop->{token},
        json => { items => $assign{items} })->{json};
sub merges
{
    my ($from, $into, @more) = @_;
    return call_of('mergeCustomer', "/customers/$from/merge", @more,
        json => { into_customer_id => $into });
}
merges($one, 2**53 - 1, '422 unknown_reference', 'into nobody');
merges($one, $guest, '409 customer_is_guest', 'into a guest');
merges($guest, $one, '200 no error', 'of a guest');
my $someone = api('POST', '/orders/' . digits() . '/assignments', key => $shop->{token},
    json => { items => $assign{items} })->{json}{customer}{id};
merges($guest, $someone, '409 customer_merged', 'of one who was merged');
call_of('addLicenseKeys', "/license-key-tags/$tag/keys", '200 no error', 'that an order waits for',
    json => { keys => [ 'K1', 'K2', 'K2' ] });
call_of('generateLicenseKeys', "/license-key-tags/$tag/generate", '200 no error', 'by a pattern',
    json => { pattern => 'PRO-**********', count => 3 });
call_of('generateLicenseKeys', "/license-key-tags/$tag/generate", '422 license_pattern_weak',
    'by a pattern of one key', json => { pattern => 'PRO', count => 1 });
call_of('getAssignment', "/orders/$order/assignments/$item", '200 no error', 'with license keys');
my $keys = call_of('listLicenseKeys', "/license-key-tags/$tag/keys?status=assigned", '200 no error',
    'that an order has');
call_of('deleteLicenseKey', "/license-key-tags/$tag/keys/$keys->{data}[0]{id}",
    '409 license_key_assigned', 'that an order has');
call_of('deleteLicenseKey', "/license-key-tags/$tag/keys/$foreign", '404 license_key_not_found',
    'unknown');
call_of('updateAssignment', "/orders/$order/assignments/$item", '200 no error', 'lowered',
    json => { quantity => 1, reason => 'why' });
call_of('listLicenseKeys', "/license-key-tags/$tag/keys", '200 no error', 'one of them withdrawn');
call_of('updateAssignment', "/orders/$order/assignments/$foreign", '404 assignment_not_found',
    'unknown', json => { quantity => 1 });
call_of('updateAssignment', "/orders/$UNKNOWN->{digits}/assignments/$item", '404 order_not_found',
    'of no order', json => { quantity => 1 });
call_of('updateLicenseKeyTag', "/license-key-tags/$tag", '200 no error', 'that reclaims',
    json => { reclaim_on_revoke => JSON::PP::true });
call_of('resendEmail', "/orders/$order/resend", '422 no_recipient', 'without an address');
my $asked = help_asked($shop, $order);
call_of('answerHelpRequest', "/help-requests/$asked/answer", '422 no_recipient',
    'without an address', json => { answer => 'resend' });
sql("DELETE FROM help_request WHERE id = $asked");
my %send = (json => { send_email => JSON::PP::true });
call_of('updateOrder', "/orders/$order", '422 no_recipient', 'without an address', %send);
call_of('resendEmail', "/orders/$order/resend", '202 no error', 'to an address',
    json => { email => 'ada@buyer.example' });
call_of('resendEmail', "/orders/$order/resend", '202 no error', 'to an address',
    json => { email => 'ada@buyer.example' }) for 1 .. 2;
call_of('resendEmail', "/orders/$order/resend", '429 rate_limited', 'a fourth time',
    json => { email => 'ada@buyer.example' });
call_of('rotateLink', "/orders/$order/rotate-link", '200 no error', 'with a reason',
    json => { reason => 'why' });
call_of('grantDownloads', "/orders/$order/grant-downloads", '200 no error', 'with everything',
    json => { downloads => 1, extend_days => 2, assignment_ids => [$item], file_ids => [$file],
        reason => 'why' });
call_of('grantDownloads', "/orders/$order/grant-downloads", '400 invalid_request', 'of nothing',
    json => {});
call_of('grantDownloads', "/orders/$order/grant-downloads", '422 unknown_reference',
    'of an unknown file', json => { downloads => 1, file_ids => [$foreign] });
call_of('approveOrder', "/orders/$order/approve", '409 order_not_held', 'never held');
call_of('rejectOrder', "/orders/$order/reject", '409 order_not_held', 'never held');
my $help = path_of('answerHelpRequest');
call_of('answerHelpRequest', $help, '409 access_unlimited', 'an order that never ends',
    json => { answer => 'extend' });
call_of('answerHelpRequest', $help, $_, 'a customer who asks', json => { answer => 'refuse' })
    for '200 no error', '409 help_not_asked';
call_of($_->[0], "/orders/$order/$_->[1]", '422 unknown_reference', 'of an unknown assignment',
    json => { assignment_ids => [$foreign] })
    for [ 'revokeOrder', 'revoke' ], [ 'restoreOrder', 'restore' ];
call_of('revokeOrder', "/orders/$order/revoke", '200 no error', 'one assignment',
    json => { assignment_ids => [$item], reason => 'why' });
call_of('updateAssignment', "/orders/$order/assignments/$item", '409 access_revoked',
    'that is revoked', json => { quantity => 3 });
call_of('restoreOrder', "/orders/$order/restore", '200 no error', 'one assignment',
    json => { assignment_ids => [$item] });
call_of('revokeOrder', "/orders/$order/revoke", '200 no error', 'the whole order');
call_of('getDownloadUrls', "/orders/$order/assignments/$item/download-urls", '409 access_revoked',
    'of a revoked order');
call_of('updateAssignment', "/orders/$order/assignments/$item", '409 access_revoked',
    'of a revoked order', json => { quantity => 3 });
call_of('resendEmail', "/orders/$order/resend", '409 access_revoked', 'of a revoked order');
call_of('updateOrder', "/orders/$order", '409 access_revoked', 'of a revoked order', %send);
call_of('assignOrder', "/orders/$order/assignments", '409 access_revoked', 'to a revoked order',
    json => \%assign);
call_of('assignOrder', "/orders/$order/assignments", '412 precondition_failed',
    'to another version', json => \%assign, headers => { 'if-match' => '"another"' });
call_of('assignOrder', "/orders/$UNKNOWN->{digits}/assignments", '404 order_not_found',
    'to a version of no order', json => \%assign, headers => { 'if-match' => '*' });
call_of($_->[0], "/orders/$order/assignments/$foreign$_->[1]", '404 assignment_not_found',
    'an unknown assignment')
    for [ 'getAssignment', '' ], [ 'getDownloadUrls', '/download-urls' ];
call_of('getAssignment', "/orders/$UNKNOWN->{digits}/assignments/1", '404 order_not_found',
    'of an unknown order');
call_of('getDownloadUrls', "/orders/$order/assignments/$item/download-urls",
    '403 insufficient_scope', 'with a key that may only read', key => $read->{token});
call_of('listAudit', '/audit', '403 insufficient_scope', 'with a key that may only read',
    key => $read->{token});
call_of('listAudit', '/audit?noun=order&limit=100', '200 no error', 'of orders');
call_of('listAudit', '/audit?noun=nothing', '400 invalid_request', 'of no noun');
call_of('getDownloadUrls', "/orders/$UNKNOWN->{digits}/assignments/1/download-urls",
    '404 order_not_found', 'of an unknown order');
call_of('getOrder', "/orders/$order", '200 no error', 'after several actions');
call_of('getOrderDiagnosis', "/orders/$order/diagnosis", '200 no error', 'of a revoked order');
call_of('listOrders', '/orders', '200 no error', 'after several actions');

call_of('search', '/search?q=a&limit=100', '200 no error', 'a short word');
call_of('search', '/search?q=%23', '200 no error', 'without a word');
call_of('search', '/search?q=', '400 invalid_request', 'for nothing');

call_of('listEvents', '/events?after=latest', '200 no error', 'the end');
call_of('listEvents', '/events?limit=100', '200 no error', 'a whole page');
call_of('listEvents', '/events?after=x', '400 invalid_request', 'with no number');
call_of('listEvents', '/events?after=1&feed=feed_0', '409 feed_changed', 'of another feed');

my $hook = path_of('getWebhookEndpoint');
my $sent = path_of('resendWebhookDelivery');
call_of('resendWebhookDelivery', "$hook/deliveries/$UNKNOWN->{id}/resend",
    '404 webhook_delivery_not_found', 'an unknown delivery');
api('PATCH', $_, key => $shop->{token}, json => { is_active => JSON::PP::false })
    for $hook, $sent =~ s{/deliveries.*}{}r;
call_of('testWebhookEndpoint', "$hook/test", '409 webhook_endpoint_inactive', 'of one that is off');
call_of('resendWebhookDelivery', $sent, '409 webhook_endpoint_inactive', 'of one that is off');

my $held = held_order($shop);
my ($held_item) = map { $_->{id} }
    @{ api('GET', "/orders/$held", key => $shop->{token})->{json}{assignments} };
call_of('getDownloadUrls', "/orders/$held/assignments/$held_item/download-urls", '409 order_held',
    'of a held order');
call_of('resendEmail', "/orders/$held/resend", '409 order_held', 'of a held order');
call_of('updateOrder', "/orders/$held", '409 order_held', 'of a held order', %send);
call_of('restoreOrder', "/orders/$held/restore", '409 order_held', 'of a held order');
my $held_help = help_asked($shop, $held);
call_of('answerHelpRequest', "/help-requests/$held_help/answer", '409 order_held',
    'of a held order', json => { answer => 'extend' });
call_of('rejectOrder', "/orders/$held/reject", '200 no error', 'that is held',
    json => { reason => 'why' });
call_of('restoreOrder', "/orders/$held/restore", '409 access_revoked', 'of a rejected order');
call_of('answerHelpRequest', "/help-requests/$held_help/answer", '409 access_revoked',
    'of a rejected order', json => { answer => 'one_more' });
call_of('getOrder', "/orders/$held", '200 no error', 'that was rejected');
my $undeclared = path_of('getDownloadUrls');
my ($undeclared_id) = $undeclared =~ m{^/orders/(\d+)/};
sql("UPDATE orders SET undeclared = 1 WHERE storefront_order_id = '$undeclared_id'");
call_of('getDownloadUrls', $undeclared, '409 declaration_required', 'before its declaration');
call_of('getOrderDiagnosis', "/orders/$held/diagnosis", '200 no error', 'that was rejected');

# --- coverage ------------------------------------------------------------------------------------

# Other suites test answers that need time, a fault, a full disk or thousands of files.
my $ELSEWHERE =
    qr/ (?:idempotency_\w+|request_timeout|rate_limited|internal_error|service_unavailable
    |maintenance|insufficient_storage|storage_quota_exceeded|too_many_\w+)\z
    |^get(?:Readiness|StorageHealth)\ 503/x;
# What is in objects has been hashed as it came.
$ELSEWHERE = qr/$ELSEWHERE|^completeUpload 202/ if in_objects();
is(join("\n", never_given($ELSEWHERE, operations())), '',
    'every declared answer was given, except those of other suites');
is(join("\n", strange_examples($ELSEWHERE, operations())), '',
    'the examples of errors say what the service says');

done_testing();
