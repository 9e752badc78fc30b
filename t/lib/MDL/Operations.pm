# A successful request for every operation of the OpenAPI document. Each request uses entities of
# its own.
#
#   my $request = request_for($operation, $shop);    # { path, json or nothing }
#   my $reply   = send_request($operation, $request, key => $shop->{token});
#   settle();                                         # waits until no background job is due
#
# request_for() dies if an operation has no row here, so that a new one can't be left out.
package MDL::Operations;

use strict;
use warnings;

use Compress::Zlib qw(compress crc32);
use Exporter qw(import);
use HTTP::Tiny;
use JSON::PP;
use MDL::Contract;
use MDL::Receiver;
use MDL::Source;
use MDL::Test;

our @EXPORT = qw(request_for send_request settle created upload_of upload_in_pieces held_order
    bytes png);

my $unique = 0;
my ($source, $receiver);

sub label { return 'thing-' . $$ . '-' . ++$unique }
sub bytes { return 'bytes of ' . label() . "\n" }

# Makes a request that creates something; returns it.
sub created
{
    my ($shop, $path, $json) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $json);
    die "POST $path was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^20[012]$/;
    return $reply->{json};
}

sub asset
{
    my ($shop) = @_;
    my $label = label();
    return ready_asset($shop, "$label.txt", bytes())->{id};
}

# An asset whose first version is kept.
sub replaced_asset
{
    my ($shop) = @_;
    my $id = asset($shop);
    created($shop, "/assets/$id/versions", { upload_id => upload_of($shop, bytes()) });
    return $id;
}

sub noun
{
    my ($shop, $path, %more) = @_;
    return created($shop, $path, { name => label(), %more })->{id};
}

sub category { return noun($_[0], '/categories') }
sub pack_of  { my ($shop, @files) = @_; return noun($shop, '/packs', file_ids => \@files) }
sub tag      { return noun($_[0], '/license-key-tags') }

sub link_of
{
    return created($_[0], '/links',
        { title => label(), url => 'https://example.com/' . label() })->{id};
}

sub move_path
{
    my ($shop) = @_;
    return join '/move-buyers/', '/mappings/' . mapping($shop)->{id}, mapping($shop)->{id};
}
sub mapping  { my ($shop, @files) = @_; return mapping_of($shop, \@files) }

sub help_request { return help_asked($_[0], order($_[0])->{storefront_order_id}) }

# A webhook endpoint that is told of nothing by itself, and whose URL takes everything.
sub webhook
{
    my ($shop) = @_;
    make_room_for_webhooks($shop);
    return created($shop, '/webhook-endpoints', webhook_body())->{id};
}

sub webhook_body
{
    $receiver //= MDL::Receiver->new;
    $receiver->answers('takes', {});
    return { url => $receiver->url('takes'), event_types => ['shop.blocked'],
        description => label() };
}

# A shop has ten endpoints at most.
sub make_room_for_webhooks
{
    my ($shop) = @_;
    my ($count) = sql("SELECT count(*) FROM webhook_endpoint WHERE deleted_at IS NULL "
        . "AND shop_id = $shop->{shop_id}");
    sql("UPDATE webhook_endpoint SET deleted_at = 1 WHERE shop_id = $shop->{shop_id}")
        if $count->[0] >= 8;
    return;
}

# The ids of an endpoint and of a delivery that is over.
sub webhook_delivery
{
    my ($shop) = @_;
    my $endpoint = webhook($shop);
    created($shop, "/webhook-endpoints/$endpoint/test", {});
    my $row;
    wait_for(sub {
        ($row) = sql("SELECT id, attempts FROM webhook_delivery WHERE endpoint_id = $endpoint");
        $row && $row->[1];
    }, 60,
        'a delivery');
    sql("UPDATE webhook_delivery SET due_at = NULL, status = 'failed' "
        . "WHERE endpoint_id = $endpoint");
    return ($endpoint, $row->[0]);
}

# The ids of a tag and of a key in its stock.
sub license_key
{
    my ($shop) = @_;
    my $tag = tag($shop);
    my $path = "/license-key-tags/$tag/keys";
    created($shop, $path, { keys => [ label() ] });
    return ($tag, api('GET', $path, key => $shop->{token})->{json}{data}[0]{id});
}

# A new order of one file, with the customer's email address.
sub order
{
    my ($shop, %members) = @_;
    my $id = digits();
    my $mapping = mapping($shop, asset($shop));
    my $reply = assign($shop, $id, [ $mapping->{storefront_product_id} ],
        customer => { email => label() . '@buyer.example' }, %members);
    die "the order was answered with: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

sub order_path
{
    my ($shop, $rest) = @_;
    return '/orders/' . order($shop)->{storefront_order_id} . $rest;
}

sub assignment_path
{
    my ($shop, $rest) = @_;
    my $order = order($shop);
    return "/orders/$order->{storefront_order_id}/assignments/$order->{assignments}[0]{id}$rest";
}

# An order that the fraud check holds.
sub held_order
{
    my ($shop) = @_;
    return held_by_check($shop, order($shop)->{storefront_order_id})->{storefront_order_id};
}

# The id of an upload that has received these bytes, or none if they are undef.
sub upload_of
{
    my ($shop, $bytes, %members) = @_;
    my $upload = created($shop, '/assets/uploads', { filename => label() . '.txt', %members });
    if (defined $bytes) {
        my $reply = HTTP::Tiny->new(timeout => 30)->put($upload->{upload_url},
            { content => $bytes, headers => $upload->{headers} });
        die "the upload was answered with: $reply->{status} $reply->{content}\n"
            if !$reply->{success};
    }
    return $upload->{id};
}

# The id of an upload whose bytes came in two pieces, cut at $cut.
sub upload_in_pieces
{
    my ($shop, $bytes, $cut) = @_;
    my $upload = created($shop, '/assets/uploads',
        { filename => label() . '.txt', size => length $bytes });
    for ([ 0, substr $bytes, 0, $cut ], [ $cut, substr $bytes, $cut ]) {
        my $reply = HTTP::Tiny->new(timeout => 30)->request('PATCH', $upload->{upload_url}, {
            content => $_->[1],
            headers => {
                'Tus-Resumable' => '1.0.0',
                'Upload-Offset' => $_->[0],
                'Content-Type'  => 'application/offset+octet-stream',
            },
        });
        die "a piece was answered with: $reply->{status} $reply->{content}\n"
            if $reply->{status} != 204;
    }
    return $upload->{id};
}

sub source_job
{
    my ($shop, $status) = @_;
    $source //= MDL::Source->new;
    my $url = $source->offer(label(), { status => $status, size => 10 });
    return api('POST', '/assets', key => $shop->{token}, json => { source_url => $url })
        ->{json}{job}{id};
}

# A job that waits an hour for its next attempt.
sub waiting_job
{
    my ($shop) = @_;
    my $id = source_job($shop, 503);
    # In one step: a further attempt may begin at any time.
    wait_for(sub {
        sql("UPDATE job SET due_at = due_at + 3600000000 WHERE id = '$id' AND status = 'queued' "
            . 'AND attempts > 0 RETURNING id');
    }, 60, "the first attempt of $id");
    return $id;
}

sub failed_job
{
    my ($shop) = @_;
    my $id = source_job($shop, 404);
    wait_job($shop, $id);
    return $id;
}

sub import_body
{
    my ($shop) = @_;
    my $label = label();
    return { source_url => source("$label.txt", bytes()) };
}

sub mapping_body
{
    my ($shop) = @_;
    return { storefront_product_id => product(), title => 'Sketchbook', note => "Begin\nhere.",
        file_ids => [ asset($shop) ],
        pack_ids => [ pack_of($shop) ],
        link_ids => [ link_of($shop) ], license_key_tag_ids => [ tag($shop) ] };
}

# The same for a variant that has a title.
sub variant_body
{
    my ($shop) = @_;
    my $body = mapping_body($shop);
    (my $variant = $body->{storefront_product_id}) =~ s/Product/ProductVariant/;
    return { %$body, storefront_variant_ids => [$variant], variant_titles => { $variant => 'L' } };
}

# By operationId: a function that returns the path, and the body if there is one.
my %REQUESTS = (
    getHealth  => sub { '/health' },
    getReadiness => sub { '/health/ready' },
    getStorageHealth => sub { '/health/storage' },
    getOpenapi => sub { '/openapi.json' },
    getDocs    => sub { '/docs' },
    getPing     => sub { '/ping' },

    listAssets  => sub { asset($_[0]); '/assets' },
    importAsset => sub { ('/assets', import_body($_[0])) },
    getAsset    => sub { '/assets/' . asset($_[0]) },
    updateAsset =>
        sub { ('/assets/' . asset($_[0]), { title => label(), category_id => category($_[0]) }) },
    deleteAsset => sub { '/assets/' . asset($_[0]) },
    createAssetVersion => sub { ('/assets/' . asset($_[0]) . '/versions', import_body($_[0])) },
    restoreAssetVersion => sub { '/assets/' . replaced_asset($_[0]) . '/versions/1/restore' },

    createUpload    => sub { ('/assets/uploads', { filename => label() . '.txt', size => 10 }) },
    getUpload      => sub { '/assets/uploads/' . upload_of($_[0]) },
    deleteUpload    => sub { '/assets/uploads/' . upload_of($_[0]) },
    completeUpload => sub { '/assets/uploads/' . upload_of($_[0], bytes()) . '/complete' },

    listJobs  => sub { failed_job($_[0]); '/jobs' },
    getJob    => sub { '/jobs/' . waiting_job($_[0]) },
    cancelJob => sub { '/jobs/' . waiting_job($_[0]) . '/cancel' },
    retryJob  => sub { '/jobs/' . failed_job($_[0]) . '/retry' },

    listCategories => sub { category($_[0]); '/categories' },
    createCategory => sub { ('/categories', { name => label() }) },
    getCategory    => sub { '/categories/' . category($_[0]) },
    updateCategory => sub { ('/categories/' . category($_[0]), { name => label() }) },
    deleteCategory => sub { '/categories/' . category($_[0]) },

    listPacks  => sub { pack_of($_[0]); '/packs' },
    createPack => sub { ('/packs', { name => label(), file_ids => [ asset($_[0]) ] }) },
    getPack    => sub { '/packs/' . pack_of($_[0], asset($_[0])) },
    updatePack =>
        sub { ('/packs/' . pack_of($_[0]), { name => label(), file_ids => [ asset($_[0]) ] }) },
    deletePack => sub { '/packs/' . pack_of($_[0], asset($_[0])) },

    listLinks  => sub { link_of($_[0]); '/links' },
    createLink => sub { ('/links', { title => label(), url => 'https://example.com/' . label() }) },
    getLink    => sub { '/links/' . link_of($_[0]) },
    updateLink => sub { ('/links/' . link_of($_[0]), { title => label() }) },
    deleteLink => sub { '/links/' . link_of($_[0]) },

    listLicenseKeyTags  => sub { tag($_[0]); '/license-key-tags' },
    createLicenseKeyTag =>
        sub { ('/license-key-tags', { name => label(), low_stock_threshold => 5 }) },
    getLicenseKeyTag    => sub { '/license-key-tags/' . tag($_[0]) },
    updateLicenseKeyTag => sub { ('/license-key-tags/' . tag($_[0]), { name => label() }) },
    deleteLicenseKeyTag => sub { '/license-key-tags/' . tag($_[0]) },
    addLicenseKeys =>
        sub { ('/license-key-tags/' . tag($_[0]) . '/keys', { keys => [ label(), label() ] }) },
    generateLicenseKeys => sub { ('/license-key-tags/' . tag($_[0]) . '/generate',
        { pattern => '********', count => 2 }) },
    listLicenseKeys => sub { my ($tag) = license_key($_[0]); "/license-key-tags/$tag/keys" },
    deleteLicenseKey =>
        sub { my ($tag, $key) = license_key($_[0]); "/license-key-tags/$tag/keys/$key" },

    listMappings   => sub { mapping($_[0]); '/mappings' },
    saveMapping     => sub { ('/mappings', variant_body($_[0])) },
    getMapping     => sub { '/mappings/' . mapping($_[0])->{id} },
    replaceMapping => sub { ('/mappings/' . mapping($_[0])->{id}, mapping_body($_[0])) },
    updateMapping  => sub { ('/mappings/' . mapping($_[0])->{id}, { download_limit => 5 }) },
    deleteMapping  => sub { '/mappings/' . mapping($_[0])->{id} },
    countBuyers    => sub { move_path($_[0]) },
    moveBuyers     => sub { (move_path($_[0]), { send_email => JSON::PP::true }) },

    listOrders      => sub { order($_[0]); '/orders' },
    getOrder        => sub { order_path($_[0], '') },
    updateOrder     =>
        sub { (order_path($_[0], ''), { email => label() . '@buyer.example' }) },
    getCustomer     => sub { '/customers/' . order($_[0])->{customer}{id} },
    updateCustomer  => sub {
        my ($shop) = @_;
        return ('/customers/' . order($shop, storefront_customer_id => digits())->{customer}{id},
            { email => label() . '@buyer.example' });
    },
    mergeCustomer => sub {
        my ($shop) = @_;
        my @ids = map { order($shop, storefront_customer_id => digits())->{customer}{id} } 1, 2;
        return ("/customers/$ids[0]/merge", { into_customer_id => $ids[1] });
    },
    listAssignments => sub { order_path($_[0], '/assignments') },
    assignOrder     => sub {
        my ($shop) = @_;
        my $product = created($shop, '/mappings', mapping_body($shop))->{storefront_product_id};
        return ('/orders/' . digits() . '/assignments', {
            storefront_customer_id => digits(),
            items      => [ { storefront_product_id => $product, title => 'A', quantity => 2 } ],
            send_email => JSON::PP::true,
            customer   => { email => label() . '@buyer.example' },
        });
    },
    getAssignment   => sub { assignment_path($_[0], '') },
    updateAssignment => sub { (assignment_path($_[0], ''), { quantity => 3 }) },
    getDownloadUrls => sub { assignment_path($_[0], '/download-urls') },
    listHelpRequests  => sub { help_request($_[0]); '/help-requests' },
    getHelpRequest    => sub { '/help-requests/' . help_request($_[0]) },
    answerHelpRequest => sub { ('/help-requests/' . help_request($_[0]) . '/answer',
        { answer => 'refuse', reason => label() }) },
    revokeOrder     => sub { (order_path($_[0], '/revoke'), { reason => label() }) },
    restoreOrder    => sub {
        my ($shop) = @_;
        my $path = order_path($shop, '');
        created($shop, "$path/revoke", {});
        return ("$path/restore", { reason => label() });
    },
    grantDownloads => sub { (order_path($_[0], '/grant-downloads'), { downloads => 2 }) },
    resendEmail    => sub { order_path($_[0], '/resend') },
    rotateLink     => sub { (order_path($_[0], '/rotate-link'), { reason => label() }) },
    approveOrder   => sub { '/orders/' . held_order($_[0]) . '/approve' },
    rejectOrder    => sub { ('/orders/' . held_order($_[0]) . '/reject', { reason => label() }) },
    getOrderDiagnosis  => sub { order_path($_[0], '/diagnosis') },
    listOrderEvents    => sub { order_path($_[0], '/events') },
    listOrderDownloads => sub { order_path($_[0], '/downloads') },
    getOrderEvidence   => sub { order_path($_[0], '/evidence') },
    listOrderEmails    => sub { order_path($_[0], '/emails') },

    listEmails         => sub { order($_[0], send_email => JSON::PP::true); '/emails' },

    listStatistics => sub {
        my ($shop) = @_;
        order($shop);
        wait_for(sub { @{ api('GET', '/statistics', key => $shop->{token})->{json}{data} } }, 60,
            'a count');
        return '/statistics';
    },
    search => sub { '/search' },

    listEvents => sub { order($_[0]); '/events' },
    listAudit  => sub { category($_[0]); '/audit' },

    getShop    => sub { '/shop' },
    updateShop => sub { ('/shop', { sender_name => label(), accent => '#aa3300' }) },
    getLogo    => sub { '/shop/logo' },
    putLogo    => sub { ('/shop/logo', undef, type => 'image/png', body => png()) },
    deleteLogo => sub { '/shop/logo' },

    listWebhookEndpoints  => sub { webhook($_[0]); '/webhook-endpoints' },
    createWebhookEndpoint => sub {
        make_room_for_webhooks($_[0]);
        return ('/webhook-endpoints', webhook_body());
    },
    getWebhookEndpoint    => sub { '/webhook-endpoints/' . webhook($_[0]) },
    updateWebhookEndpoint =>
        sub { ('/webhook-endpoints/' . webhook($_[0]), { description => label() }) },
    deleteWebhookEndpoint => sub { '/webhook-endpoints/' . webhook($_[0]) },
    rotateWebhookSecret   => sub { '/webhook-endpoints/' . webhook($_[0]) . '/rotate-secret' },
    testWebhookEndpoint   => sub { '/webhook-endpoints/' . webhook($_[0]) . '/test' },
    listWebhookDeliveries =>
        sub { '/webhook-endpoints/' . (webhook_delivery($_[0]))[0] . '/deliveries' },
    resendWebhookDelivery => sub {
        my ($endpoint, $delivery) = webhook_delivery($_[0]);
        return "/webhook-endpoints/$endpoint/deliveries/$delivery/resend";
    },
);

sub request_for
{
    my ($operation, $shop) = @_;
    my $prepare = $REQUESTS{ $operation->{id} }
        // die "t/lib/MDL/Operations.pm has no row for the operation $operation->{id}\n";
    my ($path, $json, %more) = $prepare->($shop);
    return { path => $path, defined $json ? (json => $json) : (), %more };
}

# Sends a request; further options replace those of the request.
sub send_request
{
    my ($operation, $request, %more) = @_;
    return api($operation->{method}, $request->{path},
        defined $request->{json} && !exists $more{body} ? (json => $request->{json}) : (),
        $request->{type} && !exists $more{body}
            ? (body => $request->{body}, %more,
                headers => { 'content-type' => $request->{type}, %{ $more{headers} // {} } })
            : %more);
}

# A PNG of one white pixel, with a text of its own.
sub png
{
    my $chunk = sub { my ($type, $data) = @_;
        return pack('N', length $data) . $type . $data . pack('N', crc32($type . $data)) };
    return "\x89PNG\r\n\x1a\n" . $chunk->('IHDR', pack('NNC5', 1, 1, 8, 0, 0, 0, 0))
        . $chunk->('tEXt', "Title\0" . label()) . $chunk->('IDAT', compress("\0\xff"))
        . $chunk->('IEND', '');
}

# Waits until no job runs or is due within ten minutes, the clean-up after cancelled ones included,
# and every event has its number. What waits for an order's missing keys may do so for ever.
sub settle
{
    wait_for(sub {
        my ($row) = sql("SELECT (SELECT count(*) FROM job WHERE type <> 'late_email' "
            . "AND (status = 'running' OR due_at < " . (time + 600) . '000000)), '
            . '(SELECT count(*) FROM event WHERE number IS NULL)');
        !$row->[0] && !$row->[1];
    }, 60, 'all due jobs to end');
    return;
}

1;
