# Assertions of the wire contract.  A shape lists all members of an object: a missing member is a
# failure, and so is an extra one.
#
#   is_answer($reply, 202, 'an import is accepted');
#   is_shape($reply->{json}, 'asset', 'the asset');
#   is_error($reply, 422, 'unknown_reference', 'an unknown asset', '/file_ids/0');
package MDL::Contract;

use strict;
use warnings;

use B ();
use Digest::SHA qw(sha256_hex);
use Exporter qw(import);
use JSON::PP ();
use MDL::Test;
use Test::More;

our @EXPORT = qw(
    is_answer is_error is_shape pointers stored refused unstored
    product variant digits import_of ready_asset mapping_of assign held_by_check
    help_asked
);

# --- shapes --------------------------------------------------------------------------------------

# A type is a name, with "?" behind it if null is allowed, { … } for an object, or [ type ] for a
# list.
my $TIME = 'time';
my %SHAPES = (
    job => {
        id              => 'job_id',
        type            => 'asset_import|upload_verification|storefront_lookup',
        status          => 'queued|running|succeeded|failed|cancelled',
        asset_id        => 'id?',
        storefront_order_id => 'digits?',
        progress        => { bytes_received => 'count', bytes_total => 'count?',
            percent => 'count?' },
        attempts        => 'count',
        max_attempts    => 'count',
        next_attempt_at => 'time?',
        error           => 'problem?',
        created_at      => $TIME,
        updated_at      => $TIME,
        started_at      => 'time?',
        finished_at     => 'time?',
    },
    asset => {
        id           => 'id',
        status       => 'pending|ready|failed',
        filename     => 'text',
        title        => 'text',
        content_type => 'text?',
        size         => 'count?',
        sha256       => 'sha256?',
        category_id  => 'id?',
        source_url   => 'text?',
        version      => 'id',
        note         => 'text?',
        former       => 'former?',
        created_at   => $TIME,
        updated_at   => $TIME,
    },
    license_key_tag => {
        id                  => 'id',
        name                => 'text',
        available           => 'count',
        assigned            => 'count',
        low_stock_threshold => 'count?',
        reclaim_on_revoke   => 'bool',
        created_at          => $TIME,
        updated_at          => $TIME,
    },
    license_key_tags => { data => ['license_key_tag'], has_more => 'bool', next_cursor => 'text?' },
    license_key => {
        id                  => 'id',
        license_key         => 'text?',
        status              => 'available|assigned|withdrawn',
        assignment_id       => 'id?',
        storefront_order_id => 'text?',
        assigned_at         => 'time?',
        withdrawn_at        => 'time?',
        created_at          => $TIME,
    },
    license_keys => { data => ['license_key'], has_more => 'bool', next_cursor => 'text?' },
    license_keys_added => { added => 'count', duplicates => 'count', handed_out => 'count' },
    category => { id => 'id', name => 'text', created_at => $TIME, updated_at => $TIME },
    pack     => { id => 'id', name => 'text', file_ids => ['id'], created_at => $TIME,
        updated_at => $TIME },
    link     => { id => 'id', title => 'text', url => 'url', created_at => $TIME,
        updated_at => $TIME },
    categories => { data => ['category'], has_more => 'bool', next_cursor => 'text?' },
    packs      => { data => ['pack'], has_more => 'bool', next_cursor => 'text?' },
    links      => { data => ['link'], has_more => 'bool', next_cursor => 'text?' },
    mappings   => { data => ['mapping'], has_more => 'bool', next_cursor => 'text?' },
    upload => {
        id           => 'upload_id',
        status       => 'open|completed|aborted',
        filename     => 'text',
        title        => 'text',
        content_type => 'text?',
        category_id  => 'id?',
        size         => 'count?',
        sha256       => 'sha256?',
        offset       => 'count',
        upload_url   => 'url?',
        method       => 'PUT',
        headers      => { 'Content-Type' => 'text' },
        protocols    => ['text'],
        max_size     => 'count',
        asset_id     => 'id?',
        created_at   => $TIME,
        updated_at   => $TIME,
        expires_at   => $TIME,
    },
    former  => { version => 'id', size => 'count', sha256 => 'sha256', note => 'text?',
        kept_until => $TIME },
    problem => { code => 'text', message => 'text' },
    ping    => {
        ok          => 'bool',
        shop        => { id => 'id', name => 'text', domain => 'text' },
        key         => { id => 'text', name => 'text', scope => 'full|read' },
        api_version => 'v1',
        server_time => $TIME,
    },
    mapping => {
        id                     => 'id',
        storefront_product_id  => 'product',
        title                  => 'text?',
        note                   => 'text?',
        storefront_variant_ids => ['variant'],
        variant_titles         => 'object',
        file_ids               => ['id'],
        pack_ids               => ['id'],
        link_ids               => ['id'],
        license_key_tag_ids    => ['id'],
        download_type          => 'ZIP|FILES',
        is_active              => 'bool',
        download_limit         => 'count?',
        access_days            => 'count?',
        fresh_downloads        => 'bool',
        content                => 'live|pinned',
        created_at             => $TIME,
        updated_at             => $TIME,
    },
    order => {
        storefront_order_id => 'digits',
        name     => 'text?',
        access   => { status => 'active|held|revoked|rejected', reason => 'text?',
            expires_at => 'time?' },
        customer => {
            id                     => 'id',
            storefront_customer_id => 'digits?',
            email                  => 'text?',
            first_name             => 'text?',
            last_name              => 'text?',
            locale                 => 'text?',
        },
        recipient   => 'text?',
        assignments => ['assignment'],
        fraud => {
            decision => 'not_checked|passed|held|approved|rejected',
            level    => 'none|low|medium|high?',
            signals  => ['signal'],
        },
        email => {
            status     => 'not_requested|queued|sent|failed|bounced|no_recipient|held',
            to         => 'text?',
            attempts   => 'count',
            last_error => 'text?',
            sent_at    => 'time?',
        },
        download_page_url => 'url',
        created_at        => $TIME,
        updated_at        => $TIME,
    },
    customer => {
        id                     => 'id',
        storefront_customer_id => 'digits?',
        email                  => 'text?',
        first_name             => 'text?',
        last_name              => 'text?',
        locale                 => 'text?',
        created_at             => $TIME,
        updated_at             => $TIME,
    },
    signal => { code => 'code', level => 'none|low|medium|high', message => 'text' },
    assignment => {
        id                    => 'id',
        storefront_product_id => 'product',
        storefront_variant_id => 'variant?',
        title                 => 'text',
        quantity              => 'id',
        status                => 'active|revoked',
        mapping_id            => 'id',
        download_type         => 'ZIP|FILES',
        files                 => ['file'],
        links                 => [ { link_id => 'id', title => 'text', url => 'url' } ],
        license_keys          => ['text'],
        license_keys_pending  => 'count',
        created_at            => $TIME,
        expires_at            => 'time?',
    },
    event => {
        id             => 'id',
        action         => 'assigned|revoked|restored|downloads_granted|email_resent|link_rotated'
            . '|approved|rejected|license_keys_assigned|fraud_held|fraud_passed|quantity_changed'
            . '|address_changed|declared|help_asked|help_refused',
        assignment_ids => 'ids?',
        key_id         => 'text?',
        user           => 'text?',
        reason         => 'text?',
        details        => 'object?',
        created_at     => $TIME,
    },
    shop_event => {
        id         => 'event_id',
        number     => 'id',
        type       => 'asset.ready|asset.version_added|customer.address_changed|customer.merged'
            . '|download.completed|download.limit_reached|order.address_changed'
            . '|email.bounced|email.failed|email.sent|help.requested'
            . '|import.failed|license_key.delivered'
            . '|license_key.low|order.approved|order.assigned|order.held|order.rejected'
            . '|order.restored|order.revoked|shop.blocked|webhook.disabled|webhook.test',
        created_at => $TIME,
        data       => 'object',
    },
    webhook_endpoint => {
        id                    => 'id',
        url                   => 'url',
        description           => 'text?',
        event_types           => 'names?',
        is_active             => 'bool',
        previous_secret_until => 'time?',
        failing_since         => 'time?',
        disabled_at           => 'time?',
        created_at            => $TIME,
        updated_at            => $TIME,
    },
    webhook_endpoints => { data => ['webhook_endpoint'], has_more => 'bool',
        next_cursor => 'text?' },
    webhook_delivery => {
        id              => 'id',
        event_id        => 'event_id',
        event_type      => 'text?',
        status          => 'pending|succeeded|failed',
        attempts        => 'count',
        next_attempt_at => 'time?',
        response_status => 'count?',
        response_body   => 'text?',
        error           => 'text?',
        created_at      => $TIME,
        last_attempt_at => 'time?',
    },
    webhook_deliveries => { data => ['webhook_delivery'], has_more => 'bool',
        next_cursor => 'text?' },
    shop_events => { data => ['shop_event'], has_more => 'bool', next_after => 'count',
        feed => 'text' },
    download => {
        assignment_id   => 'id',
        file_id         => 'id?',
        status          => 'open|counted|returned',
        bytes_delivered => 'count',
        size            => 'count',
        transfers       => 'count',
        opened_at       => $TIME,
        updated_at      => $TIME,
    },
    email => {
        id         => 'id',
        status     => 'queued|sent|failed|bounced|no_recipient|held',
        to         => 'text?',
        attempts   => 'count',
        last_error => 'text?',
        created_at => $TIME,
        sent_at    => 'time?',
    },
    diagnosis => {
        storefront_order_id => 'digits',
        checks              => [
            {
                name    => 'recipient|email|page|mapping|fraud|access|allowance|file',
                status  => 'ok|warn|fail',
                message => 'text',
            }
        ],
        first_failure => 'name?',
    },
    download_urls => {
        expires_at => $TIME,
        files      => [ { file_id => 'id', filename => 'text', url => 'url' } ],
        zip        => 'zip?',
    },
    zip  => { filename => 'text', size => 'count', url => 'url' },
    file => {
        file_id        => 'id',
        filename       => 'text',
        size           => 'count?',
        sha256         => 'sha256?',
        status         => 'pending|ready|failed',
        downloads_used => 'count',
        download_limit => 'count',
    },
    assets => { data => ['asset'], has_more => 'bool', next_cursor => 'text?' },
    jobs   => { data => ['job'], has_more => 'bool', next_cursor => 'text?' },
    assignments => { data => ['assignment'], has_more => 'bool', next_cursor => 'text?' },
    events      => { data => ['event'], has_more => 'bool', next_cursor => 'text?' },
    downloads   => { data => ['download'], has_more => 'bool', next_cursor => 'text?' },
    mailed      => { data => ['listed_email'], has_more => 'bool', next_cursor => 'text?' },
    emails      => { data => ['email'], has_more => 'bool', next_cursor => 'text?' },
    orders      => { data => ['order'], has_more => 'bool', next_cursor => 'text?' },
);
# The entries of lists with view=summary.
$SHAPES{order_summary} = { %{ $SHAPES{order} }, assignment_count => 'count',
    fraud => { %{ $SHAPES{order}{fraud} } } };
delete $SHAPES{order_summary}{assignments};
# The evidence of an order.
sub kept_list
{
    my ($entry) = @_;
    return { data => [$entry], has_more => 'bool', gone_before => 'time?' };
}
$SHAPES{evidence} = {
    made_at   => $TIME,
    address   => 'text?',
    items     => [ { %{ $SHAPES{assignment} }, assignment_id => 'id', links => 'count',
        license_keys => 'count' } ],
    emails    => kept_list({ %{ $SHAPES{email} }, response => 'text?', bounced_at => 'time?' }),
    visits    => kept_list({ visited_at => $TIME, network => 'text' }),
    events    => kept_list('event'),
    downloads => kept_list({
        %{ $SHAPES{download} },
        filename           => 'text?',
        version            => 'id?',
        sha256             => 'sha256?',
        bytes_sent         => 'count',
        bytes_acknowledged => 'count',
        bytes_handed_over  => 'count',
        network            => 'text?',
        ended_at           => 'time?',
    }),
    map { $_ => $SHAPES{order}{$_} } qw(storefront_order_id name access customer created_at),
};
delete @{ $SHAPES{evidence}{items}[0] }{qw(id mapping_id download_type license_keys_pending)};
delete @{ $SHAPES{evidence}{downloads}{data}[0] }{qw(bytes_delivered updated_at)};
# An email in the list of all orders.
$SHAPES{listed_email} = { %{ $SHAPES{email} }, storefront_order_id => 'digits',
    order_name => 'text?', kind => 'first|further' };
delete $SHAPES{order_summary}{fraud}{signals};
$SHAPES{pack_summary} = { %{ $SHAPES{pack} } };
delete $SHAPES{pack_summary}{file_ids};
$SHAPES{mapping_summary} = { %{ $SHAPES{mapping} } };
delete @{ $SHAPES{mapping_summary} }{qw(note storefront_variant_ids variant_titles file_ids pack_ids
    link_ids license_key_tag_ids)};
for my $noun (qw(order pack mapping)) {
    $SHAPES{"${noun}_summaries"} = { data => ["${noun}_summary"], has_more => 'bool',
        next_cursor => 'text?' };
}
# The answer that makes an endpoint, or a new secret for it.
$SHAPES{webhook_endpoint_with_secret} = { %{ $SHAPES{webhook_endpoint} },
    secret => 'webhook_secret' };
# The answer to GET /orders/{id}.
$SHAPES{whole_order} = { %{ $SHAPES{order} }, events => ['event'], downloads => ['download'] };

my %PATTERNS = (
    time    => qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\z/,
    job_id  => qr/^job_[0-9A-Za-z]+\z/,
    webhook_secret => qr/^whsec_[A-Za-z0-9+\/]{43}=\z/,
    event_id => qr/^evt_[1-9][0-9]*\z/,
    upload_id => qr/^upl_[0-9a-z]{26}\z/,
    sha256  => qr/^[0-9a-f]{64}\z/,
    digits  => qr/^(?:0|[1-9][0-9]{0,19})\z/,
    product => qr{^gid://[a-z0-9-]+/Product/[0-9]+\z},
    variant => qr{^gid://[a-z0-9-]+/ProductVariant/[0-9]+\z},
    url     => qr{^https?://[^/\s]+/\S+\z},
    name    => qr/^[a-z]+\z/,
    code    => qr/^[a-z_]+\z/,
    text    => qr/./s,
);

# Whether the value was a number in the JSON.
sub is_number
{
    my ($value) = @_;
    my $flags = B::svref_2object(\$value)->FLAGS;
    return $flags & (B::SVf_IOK | B::SVf_NOK) && !($flags & B::SVf_POK);
}

sub scalar_fits
{
    my ($value, $type) = @_;
    return JSON::PP::is_bool($value) if $type eq 'bool';
    return ref $value eq 'HASH'      if $type eq 'object';
    return ref $value eq 'ARRAY' && !grep { !scalar_fits($_, 'id') } @$value if $type eq 'ids';
    return ref $value eq 'ARRAY' && !grep { !scalar_fits($_, 'text') } @$value if $type eq 'names';
    return 0 if ref $value;
    return is_number($value) && $value =~ /^[1-9]\d*\z/ && $value < 2**53 if $type eq 'id';
    return is_number($value) && $value =~ /^\d+\z/ if $type eq 'count';
    return 0 if is_number($value);
    return $value =~ $PATTERNS{$type} if $PATTERNS{$type};
    return scalar grep { $_ eq $value } split /\|/, $type;
}

# What is wrong with a value, as sentences.
sub misfits
{
    my ($value, $type, $at) = @_;
    if (!ref $type) {
        return if ($type =~ s/\?\z// || $type eq 'null') && !defined $value;
        return misfits($value, $SHAPES{$type}, $at) if $SHAPES{$type};
        return if defined $value && scalar_fits($value, $type);
        return "$at is not of type $type: " . (defined $value ? $value : 'null');
    }
    if (ref $type eq 'ARRAY') {
        return "$at is no list" if ref $value ne 'ARRAY';
        return map { misfits($value->[$_], $type->[0], "$at/$_") } 0 .. $#$value;
    }
    return "$at is no object" if ref $value ne 'HASH';
    return (
        (map { "$at/$_ is missing" } grep { !exists $value->{$_} } sort keys %$type),
        (map { "$at/$_ is not in the contract" } grep { !exists $type->{$_} } sort keys %$value),
        (map { misfits($value->{$_}, $type->{$_}, "$at/$_") }
            grep { exists $value->{$_} } sort keys %$type)
    );
}

sub is_shape
{
    my ($value, $shape, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @misfits = misfits($value, $shape, '');
    return ok(!@misfits, "$name has the shape of: $shape") || diag(join "\n", @misfits);
}

# --- answers -------------------------------------------------------------------------------------

# Headers that every answer has.
sub header_faults
{
    my ($reply) = @_;
    my %headers = %{ $reply->{headers} };
    my @faults;
    push @faults, 'X-Request-Id: ' . ($headers{'x-request-id'} // 'missing')
        if ($headers{'x-request-id'} // '') !~ /^req_[0-9A-Za-z_@-]+\z/;
    push @faults, 'Cache-Control: ' . ($headers{'cache-control'} // 'missing')
        if ($headers{'cache-control'} // '') ne 'no-store';
    push @faults, 'X-Content-Type-Options: ' . ($headers{'x-content-type-options'} // 'missing')
        if ($headers{'x-content-type-options'} // '') ne 'nosniff';
    return @faults;
}

sub shown
{
    my ($reply) = @_;
    return join "\n", "the answer was: $reply->{status}",
        (map { "$_: $reply->{headers}{$_}" } sort keys %{ $reply->{headers} }),
        '', substr $reply->{body}, 0, 2000;
}

# Checks that an answer has that status, is JSON, and has the headers that are always sent.
sub is_answer
{
    my ($reply, $status, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @faults = header_faults($reply);
    push @faults, "the status is not $status" if $reply->{status} != $status;
    push @faults, 'the body is not JSON' if ref $reply->{json} ne 'HASH';
    return ok(!@faults, "$name: $status") || diag(join "\n", @faults, shown($reply));
}

sub pointers
{
    my ($reply) = @_;
    return join ' ', sort map { $_->{pointer} } @{ $reply->{json}{error}{details} // [] };
}

# Checks the complete error envelope; @pointers are all pointers in its details, in any order.
sub is_error
{
    my ($reply, $status, $code, $name, @pointers) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @faults = header_faults($reply);
    my $type   = @pointers
        ? { details => [ { pointer => 'text', code => 'text', message => 'text' } ] } : {};

    my %numbers = $code
        =~ /^(?:too_many_\w+|request_too_large|upload_incomplete|license_pattern_weak)\z/
        ? map { $_ => 'count' } grep { exists $reply->{json}{error}{$_} } qw(limit count) : ();
    push @faults, misfits($reply->{json},
        { error => { code => 'text', message => 'text', status => 'id', request_id => 'text',
            %$type, %numbers } }, '');
    if (!@faults) {
        my $error = $reply->{json}{error};
        my $asked = join ' ', sort @pointers;
        push @faults, "the code is not $code" if $error->{code} ne $code;
        push @faults, "the status is not $status"
            if $reply->{status} != $status || $error->{status} != $status;
        push @faults, 'the body has another request id than the header'
            if $error->{request_id} ne $reply->{headers}{'x-request-id'};
        push @faults, "the pointers are not $asked" if @pointers && pointers($reply) ne $asked;
    }
    return ok(!@faults, "$name: $status $code") || diag(join "\n", @faults, shown($reply));
}

# --- what is stored ------------------------------------------------------------------------------

my @TABLES = qw(asset job mapping mapping_variant mapping_file customer orders assignment
    assignment_file assignment_link allowance email order_timeline upload idempotency
    license_key_tag license_key license_claim
    category pack pack_file link mapping_pack mapping_link mapping_license_key_tag);

# The number of rows in each table, without expired idempotency keys, which may be removed at any
# time.
sub stored
{
    my %only = (idempotency => sprintf 'WHERE created_at > %d000000', time - 86_000);
    my ($row) = sql('SELECT ' . join ', ',
        map { "(SELECT count(*) FROM $_ " . ($only{$_} // '') . ')' } @TABLES);
    return join ' ', map { "$TABLES[$_]=$row->[$_]" } 0 .. $#TABLES;
}

my $before;

# From now on nothing may be stored; refused() checks that.
sub unstored { $before = stored(); return }

# Checks that a request is refused with that error, and that nothing was stored since unstored().
sub refused
{
    my ($reply, $status, $code, $name, @pointers) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_error($reply, $status, $code, $name, @pointers)
        && is(stored(), $before, "$name: nothing is stored");
}

# --- entities ------------------------------------------------------------------------------------

my $number = 1000;

# A storefront's id that this suite has not used yet.
sub digits  { return '' . ++$number }
sub product { return 'gid://storefront/Product/' . digits() }
sub variant { return 'gid://storefront/ProductVariant/' . digits() }

# Imports bytes under a name; returns the answer of POST /assets.
sub import_of
{
    my ($shop, $name, $bytes, %members) = @_;
    my $url = source($name, $bytes);
    return api('POST', '/assets', key => $shop->{token}, json => { source_url => $url, %members });
}

# A ready asset: { id, filename, size, sha256 }; name is that of its source.
sub ready_asset
{
    my ($shop, $name, $bytes, %members) = @_;
    my $url = source($name, $bytes);
    my $reply = api('POST', '/assets', key => $shop->{token}, patient => 1,
        json => { source_url => $url, %members });
    die "the import was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 202;
    my $job = wait_job($shop, $reply->{json}{job}{id});
    die "the import of $name ended as $job->{status}\n" if $job->{status} ne 'succeeded';
    return {
        id       => $reply->{json}{asset}{id},
        filename => $reply->{json}{asset}{filename},
        size     => length $bytes,
        sha256   => sha256_hex($bytes),
    };
}

# Maps a new product to files; returns the mapping.
sub mapping_of
{
    my ($shop, $file_ids, %members) = @_;
    my $reply = api('POST', '/mappings', key => $shop->{token}, patient => 1,
        json => { storefront_product_id => product(), file_ids => $file_ids, %members });
    die "the mapping was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^20[01]$/;
    return $reply->{json};
}

# Assigns products to an order; each is given as its gid, or as an item of the request.
sub assign
{
    my ($shop, $order, $products, %members) = @_;
    my %request = map { exists $members{$_} ? ($_ => delete $members{$_}) : () }
        qw(idem timeout patient);
    my @items = map { ref $_ ? $_ : { storefront_product_id => $_ } } @$products;
    return api('POST', "/orders/$order/assignments", key => $shop->{token}, %request,
        json => { storefront_customer_id => '77', items => \@items, %members });
}

# Stores a request for help with an order, as its page does; returns its id.
sub help_asked
{
    my ($shop, $order) = @_;
    my ($row) = sql('INSERT INTO help_request (shop_id, order_id, finding, state, asked_at) '
        . "SELECT shop_id, id, 'access_expired', 'asked', created_at FROM orders "
        . "WHERE shop_id = $shop->{shop_id} AND storefront_order_id = '$order' RETURNING id");
    return $row->[0];
}

# Has the fraud check hold an order because of its risk, without a storefront.
sub held_by_check
{
    my ($shop, $id) = @_;
    sql("UPDATE orders SET storefront_risk = 'high'"
        . " WHERE shop_id = $shop->{shop_id} AND storefront_order_id = '$id'");
    my $order = api('GET', "/orders/$id", key => $shop->{token})->{json};
    my %item  = map { $_ => $order->{assignments}[0]{$_} }
        qw(storefront_product_id storefront_variant_id);
    my $reply = assign($shop, $id, [ \%item ], patient => 1, fraud_check => JSON::PP::true(),
        storefront_customer_id => $order->{customer}{storefront_customer_id});
    die "the order is not held: $reply->{body}\n" if $reply->{json}{access}{status} ne 'held';
    return $reply->{json};
}

1;
