# A shop whose things stay as they are, for requests whose answer is known: t/node/fuzz-deck.mjs
# sends them.
#
#   my $kept = kept_things($shop, $full, $url);
#
# The second shop is one that will have no room left, and the URL that of a file that takes longer
# than the test.
#
#   ids      one of each thing that has a path, { asset_id => 12, … }
#   bodies   for each operation that demands a body one that succeeds, { createPack => { … }, … }
#   spent    an Idempotency-Key that a request has used
#   cards    [ { operation, ids, body, headers, key, gives, then } ], as t/node/fuzz-deck.mjs says:
#            what is refused because of the state that a thing is in, or because of what a body
#            names, and what succeeds only once
package MDL::Kept;

use strict;
use warnings;

use Exporter qw(import);
use JSON::PP;
use MDL::Contract;
use MDL::OpenApi;
use MDL::Test;
use MDL::Upload;

our @EXPORT = qw(kept_things);

use constant NOTHING => 9_007_199_254_740_991;    # an id of nothing

our $shop;    # whose key a request has
my (%ids, %bodies, @cards);

# Sends a request that has to succeed, and returns its answer.
sub done
{
    my ($id, $named, %body) = @_;
    my $operation = operation($id);
    my %at    = (%ids, %$named);
    my $path  = $operation->{path} =~ s/\{(\w+)\}/$at{$1}/gr;
    my $reply = api($operation->{method}, $path, key => $shop->{token},
        $operation->{body} ? (json => \%body) : ());
    die "$id was answered with: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^2/;
    $bodies{$id} //= \%body if %body;
    return $reply->{json};
}

sub card
{
    my ($operation, $gives, $named, %more) = @_;
    push @cards, { operation => $operation, gives => $gives, ids => $named, %more };
    return;
}

# With one key, a request is done once, and its answer is repeated.
sub once { return (headers => { 'Idempotency-Key' => idem() }) }

# --- assets and uploads --------------------------------------------------------------------------

# An upload whose bytes have come.
sub brought
{
    my ($bytes, %members) = @_;
    my $upload = done('createUpload', {}, filename => 'kept.txt', size => length $bytes, %members);
    my $reply  = put_bytes($upload, $bytes);
    die "the bytes were answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^2/;
    return { upload_id => $upload->{id} };
}

sub completed
{
    my ($upload) = @_;
    return { asset_id => done('completeUpload', $upload)->{asset}{id} };
}

sub uploads
{
    my $wrong = brought('some bytes', sha256 => '0' x 64);
    card(completeUpload     => '422 checksum_mismatch', $wrong);
    card(createAssetVersion => '422 checksum_mismatch', {}, body => $wrong);

    my $deleted = brought('some bytes');
    done('deleteAsset', completed($deleted));
    card(completeUpload => '404 asset_not_found', $deleted);

    my $aborted = brought('some bytes');
    done('deleteUpload', $aborted);
    card(completeUpload => '409 upload_finished', $aborted);

    $ids{upload_id} = done('createUpload', {}, filename => 'open.txt', size => 10)->{id};
    card(completeUpload     => '409 upload_incomplete', {});
    card(createAssetVersion => '409 upload_incomplete', {},
        body => { upload_id => $ids{upload_id} });
    card(createUpload => '422 storage_quota_exceeded', {},
        body => { filename => 'large.bin', size => 1_600_000_000 });

    card(createUpload => '201', {}, body => { filename => 'new.txt', size => 10 }, then => $_) for (
        { operation => 'completeUpload',     gives => '201' },
        { operation => 'completeUpload',     gives => '202', pieces => 1 },
        { operation => 'createAssetVersion', gives => '200' },
    );
    return;
}

# A shop with more bytes than it may have, as if its quota had been lowered while an upload was
# open.
sub no_room
{
    local ($shop) = @_;
    my $asset  = completed(brought('some bytes'));
    my $upload = brought('some more bytes');
    my $less   = completed(brought('more bytes before'));
    done('createAssetVersion', $less, %{ brought('less after') });
    sql("UPDATE shop SET bytes_stored = 4000000000 WHERE id = $shop->{shop_id}");
    card(completeUpload     => '422 storage_quota_exceeded', $upload, key => 'no_room');
    card(createAssetVersion => '422 storage_quota_exceeded', $asset,  key => 'no_room',
        body => $upload);
    card(restoreAssetVersion => '422 storage_quota_exceeded', { %$less, version => 1 },
        key => 'no_room');
    return;
}

# An asset whose second version is put back with a key, and whose first is not kept.
sub versions
{
    my $asset = completed(brought('version 1'));
    done('createAssetVersion', $asset, %{ brought("version $_") }) for 2, 3;
    my %restore = once();
    my %second  = (%$asset, version => 2);
    my $reply   = api('POST', "/assets/$asset->{asset_id}/versions/2/restore",
        key => $shop->{token}, idem => $restore{headers}{'Idempotency-Key'});
    die "restore was answered with: $reply->{status} $reply->{body}\n" if $reply->{status} != 200;
    card(restoreAssetVersion => '200', \%second, %restore);
    card(restoreAssetVersion => '409 version_not_kept', { %second, version => 1 });
    card(restoreAssetVersion => '409 version_current',
        { %second, version => $reply->{json}{version} });
    return;
}

# A job that was cancelled, and another one of its asset that lasts.
sub jobs
{
    my ($slow) = @_;
    my $import = done('importAsset', {}, source_url => $slow);
    $ids{job_id} = $import->{job}{id};
    done('cancelJob', {});
    my %asset = (asset_id => $import->{asset}{id});
    done('createAssetVersion', \%asset, source_url => $slow);
    card(retryJob            => '409 asset_not_ready', {});
    card(createAssetVersion  => '409 asset_not_ready', \%asset);
    card(restoreAssetVersion => '409 asset_not_ready', \%asset);
    return;
}

# --- what a mapping has, and orders --------------------------------------------------------------

sub catalog
{
    $ids{asset_id}    = completed(brought('some bytes'))->{asset_id};
    $ids{version}     = 1;
    $ids{category_id} = done('createCategory', {}, name => 'Kept')->{id};
    $ids{pack_id}     = done('createPack', {}, name => 'Kept',
        file_ids => [ $ids{asset_id} ])->{id};
    $ids{link_id}     = done('createLink', {}, title => 'Kept',
        url => 'https://example.com/')->{id};
    $ids{tag_id}      = done('createLicenseKeyTag', {}, name => 'Kept')->{id};
    done('addLicenseKeys', {}, keys => [ map { "KEPT-$_" } 1 .. 5 ]);
    done('generateLicenseKeys', {}, pattern => 'KEPT-********', count => 2);
    my %all = (storefront_product_id => product(), file_ids => [ $ids{asset_id} ],
        pack_ids => [ $ids{pack_id} ],
        link_ids => [ $ids{link_id} ], license_key_tag_ids => [ $ids{tag_id} ]);
    $ids{mapping_id} = done('saveMapping', {}, %all)->{id};
    done('replaceMapping', {}, %all);
    card(deleteAsset         => '409 asset_in_use',           {});
    card(deletePack          => '409 pack_in_use',            {});
    card(deleteLink          => '409 link_in_use',            {});
    card(deleteLicenseKeyTag => '409 license_key_tag_in_use', {});
    card(generateLicenseKeys => '422 license_pattern_weak', {},
        body => { pattern => 'A', count => 1 });
    card(generateLicenseKeys => '200', {}, once());

    my $other = { storefront_product_id => product() };
    $ids{to_mapping_id} = done('saveMapping', {}, %$other)->{id};
    card(countBuyers => '200', {});
    card(moveBuyers  => '202', {}, once());
    my $closed = done('saveMapping', {}, storefront_product_id => product(),
        is_active => JSON::PP::false)->{id};
    card($_ => '422 mapping_inactive', { to_mapping_id => $closed }) for qw(countBuyers moveBuyers);
    card(updateMapping  => '409 mapping_exists', {}, body => $other);
    card(replaceMapping => '409 mapping_exists', {}, body => $other);
    return $all{storefront_product_id};
}

# An order that the fraud check holds, since the customer has two.
sub held
{
    my (%members) = @_;
    my %at = (storefront_order_id => digits());
    my $order = done('assignOrder', \%at, %members, fraud_check => JSON::PP::true);
    die "the order is $order->{access}{status}\n" if $order->{access}{status} ne 'held';
    return { %at, assignment_id => $order->{assignments}[0]{id} };
}

sub orders
{
    my ($product) = @_;
    my %members = (storefront_customer_id => digits(),
        items => [ { storefront_product_id => $product } ]);
    $ids{storefront_order_id} = digits();
    my $order = done('assignOrder', {}, %members);
    $ids{assignment_id} = $order->{assignments}[0]{id};
    $ids{customer_id}   = $order->{customer}{id};
    done('updateAssignment', {}, quantity  => 1);
    done('grantDownloads',   {}, downloads => 1);
    card(assignOrder     => '409 other_customer', {},
        body => { %members, storefront_customer_id => digits() });
    card($_ => '403 insufficient_scope', {}, key => 'kept_reader')
        for qw(getDownloadUrls listAudit);

    my $keys = api('GET', "/license-key-tags/$ids{tag_id}/keys", key => $shop->{token})
        ->{json}{data};
    ($ids{license_key_id}) = map { $_->{id} } grep { $_->{status} eq 'assigned' } @$keys;
    card(deleteLicenseKey => '409 license_key_assigned', {});

    my $another = digits();
    done('assignOrder', { storefront_order_id => $another }, %members);
    my $held = held(%members);
    card($_ => '409 order_held', $held) for qw(getDownloadUrls resendEmail restoreOrder);
    card(updateOrder => '409 order_held', $held,
        body => { email => 'held@example.com', send_email => JSON::PP::true });

    my %undeclared = (storefront_order_id => digits());
    $undeclared{assignment_id} = done('assignOrder', \%undeclared, %members)->{assignments}[0]{id};
    sql("UPDATE orders SET undeclared = 1"
        . " WHERE storefront_order_id = '$undeclared{storefront_order_id}'");
    card(getDownloadUrls => '409 declaration_required', \%undeclared);

    my %resent = (storefront_order_id => $another);
    done('resendEmail', \%resent, email => 'kept@example.com') for 1 .. 3;
    card(resendEmail => '429 rate_limited', \%resent);

    my $rejected = held(%members);
    done('rejectOrder', $rejected);
    card(rejectOrder => '200', $rejected);
    my $approved = held(%members);
    card(approveOrder => '200', $approved);
    card($_ => '409 access_revoked', $rejected) for qw(getDownloadUrls resendEmail restoreOrder);
    return;
}

# --- the rest ------------------------------------------------------------------------------------

# An endpoint that is switched off, and what it was sent before.
sub webhooks
{
    $ids{webhook_endpoint_id} = done('createWebhookEndpoint', {}, url => 'https://example.com/',
        event_types => ['shop.blocked'])->{id};
    done('testWebhookEndpoint', {});
    my $deliveries = wait_for(sub {
        my $list = api('GET', "/webhook-endpoints/$ids{webhook_endpoint_id}/deliveries",
            key => $shop->{token});
        return @{ $list->{json}{data} } ? $list->{json}{data} : undef;
    }, 15, 'the delivery');
    $ids{webhook_delivery_id} = $deliveries->[0]{id};
    done('updateWebhookEndpoint', {}, is_active => JSON::PP::false);
    card($_ => '409 webhook_endpoint_inactive', {})
        for qw(resendWebhookDelivery testWebhookEndpoint);
    return;
}

# Bodies that name what is not there.
sub references
{
    my %of = (
        category_id    => [qw(importAsset createUpload updateAsset)],
        file_ids       => [qw(createPack updatePack saveMapping updateMapping replaceMapping)],
        assignment_ids => [qw(revokeOrder restoreOrder grantDownloads)],
    );
    for my $name (sort keys %of) {
        my $named = $name =~ /s$/ ? [NOTHING] : NOTHING;
        for my $operation (@{ $of{$name} }) {
            my $body = $operation =~ /^update/ ? {} : $bodies{$operation} // {};
            card($operation => '422 unknown_reference', {}, body => { %$body, $name => $named });
        }
    }
    card(createAssetVersion => '422 unknown_reference', {},
        body => { upload_id => 'upl_' . '0' x 26 });
    return;
}

sub kept_things
{
    ($shop, my $full, my $slow) = @_;
    my $product = catalog();
    orders($product);
    uploads();
    jobs($slow);
    no_room($full);
    versions();
    webhooks();
    references();
    my $spent = idem();
    api('PATCH', "/categories/$ids{category_id}", key => $shop->{token}, idem => $spent,
        json => { name => 'Renamed' });
    return { ids => \%ids, bodies => \%bodies, spent => $spent, cards => \@cards };
}

1;
