# What every operation of the OpenAPI document that writes has in common: Idempotency-Key, scope,
# media type. New operations are included automatically; t/lib/MDL/Operations.pm has a successful
# request for each.
#
#   try_writes(qr{^/orders});    # those whose paths match
package MDL::Writes;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;

use MDL::Instance;
use MDL::OpenApi;
use MDL::Operations;
use MDL::Test;

our @EXPORT = qw(try_writes);

my ($shop, $read);

# What the audit has of each operation: noun and action.
my %AUDIT = (
    importAsset        => 'asset imported',
    updateAsset        => 'asset changed',
    deleteAsset        => 'asset deleted',
    createAssetVersion => 'asset version_added',
    restoreAssetVersion => 'asset version_restored',

    createUpload    => 'upload begun',
    deleteUpload    => 'upload aborted',
    completeUpload => 'upload completed',

    cancelJob => 'job cancelled',
    retryJob  => 'job retried',

    createCategory => 'category created',
    updateCategory => 'category changed',
    deleteCategory => 'category deleted',

    createPack => 'pack created',
    updatePack => 'pack changed',
    deletePack => 'pack deleted',

    createLink => 'link created',
    updateLink => 'link changed',
    deleteLink => 'link deleted',

    createLicenseKeyTag => 'license_key_tag created',
    updateLicenseKeyTag => 'license_key_tag changed',
    deleteLicenseKeyTag => 'license_key_tag deleted',
    addLicenseKeys      => 'license_key_tag keys_added',
    generateLicenseKeys => 'license_key_tag keys_added',
    deleteLicenseKey    => 'license_key_tag key_deleted',

    saveMapping     => 'mapping saved',
    replaceMapping => 'mapping saved',
    updateMapping  => 'mapping changed',
    deleteMapping  => 'mapping deleted',
    moveBuyers     => 'mapping buyers_moved',
    answerHelpRequest => 'order help_answered',

    updateOrder    => 'order changed',
    updateCustomer => 'customer changed',
    mergeCustomer  => 'customer merged',
    assignOrder    => 'order assigned',
    revokeOrder    => 'order revoked',
    restoreOrder   => 'order restored',
    updateAssignment => 'order quantity_changed',
    grantDownloads => 'order downloads_granted',
    resendEmail    => 'order email_resent',
    rotateLink     => 'order link_rotated',
    approveOrder   => 'order approved',
    rejectOrder    => 'order rejected',

    updateShop => 'shop changed',

    createWebhookEndpoint => 'webhook_endpoint created',
    updateWebhookEndpoint => 'webhook_endpoint changed',
    deleteWebhookEndpoint => 'webhook_endpoint deleted',
    rotateWebhookSecret   => 'webhook_endpoint secret_rotated',
    testWebhookEndpoint   => 'webhook_endpoint tested',
    resendWebhookDelivery => 'webhook_endpoint event_resent',
);

# --- what is stored ------------------------------------------------------------------------------

# Without the tables that also change without a write, or with the first of a shop alone.
my $OTHER = qr/^(?:api_key|data_key|epoch|node|meter|event_count|day_count|schema_migration
    |sqlite_.*)$/x;
my @tables;

# Every row of every table, as "table column column …".
# Without what changes by itself: a look at whether an order's missing keys have come.
sub rows
{
    return map { join "\t", @$_ } sql(join '; ',
        map { "SELECT '$_', t.* FROM $_ t" . ($_ eq 'job' ? " WHERE type <> 'late_email'" : '') }
            @tables);
}

# The lines that are only in the first list ("-"), and those that are only in the second ("+").
sub difference
{
    my ($before, $after) = @_;
    my %before = map { $_ => 1 } @$before;
    my %after  = map { $_ => 1 } @$after;
    return (
        (map { "- $_" } grep { !$after{$_} } @$before),
        (map { "+ $_" } grep { !$before{$_} } @$after)
    );
}

sub nothing_changed
{
    my ($before, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @difference = difference($before, [ rows() ]);
    return ok(!@difference, $name) || diag(join "\n", @difference);
}

# The number of rows that each table has gained or lost, as "table+1 table-2 …".
sub growth
{
    my ($before, $after) = @_;
    my %count;
    $count{ (split /\t/)[0] }++ for @$after;
    $count{ (split /\t/)[0] }-- for @$before;
    return join ' ', map { sprintf '%s%+d', $_, $count{$_} } grep { $count{$_} } sort keys %count;
}

# --- answers -------------------------------------------------------------------------------------

sub is_refused
{
    my ($operation, $reply, $status, $wanted, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = "$reply->{status} " . ($reply->{json}{error}{code} // $reply->{body});
    is($got, "$status $wanted", "$operation->{id}: $name");
    return fits($operation, $reply, $name);
}

sub brief
{
    my ($reply) = @_;
    return {
        status   => $reply->{status},
        body     => $reply->{body},
        location => $reply->{headers}{location} // 'none',
        replayed => $reply->{headers}{'idempotent-replayed'} // 'no',
    };
}

# The id of what an operation changed or made: in the path, or in the answer.
sub id_of
{
    my ($request, $reply) = @_;
    return $reply->{json}{storefront_order_id} if $request->{path} =~ m{^/help-requests/};
    my ($id) = $request->{path} =~ m{^/(?:orders|[a-z-]+)/(?:uploads/)?(\w*\d\w*)(?:/|$)};
    return $id // ($reply->{json}{asset} // $reply->{json})->{id};
}

# One entry of the audit for a success.
sub is_audited
{
    my ($operation, $request, $reply, $last) = @_;
    my $id = $operation->{id};
    my $wanted = $AUDIT{$id} // 'a row in %AUDIT of this suite';
    my @entries = sql("SELECT noun || ' ' || action, noun_id, via, key_id, user_name, detail "
        . "FROM audit WHERE id > $last ORDER BY id");
    is(scalar @entries, 1, "$id: the audit has one entry more");
    my $detail = pop @{ $entries[0] };
    is_deeply($entries[0], [ $wanted, id_of($request, $reply), 'api', $shop->{key_id}, '' ],
        "$id: which says what was done with what by which key")
        or diag(explain($entries[0]));
    my $json = $request->{json} // {};
    is(join(', ', sort split /, /, $detail // ''),
        $json->{reason} // ($operation->{method} eq 'PATCH' ? join(', ', sort keys %$json) : ''),
        "$id: and why, or which members");
    return;
}

sub last_audit { return (sql('SELECT coalesce(max(id), 0) FROM audit'))[0][0] }

sub refusals
{
    my ($operation, $request) = @_;
    my $send   = sub { send_request($operation, $request, key => $shop->{token}, @_) };
    my $before = [ rows() ];
    is_refused($operation, $send->(idem => undef), 400, 'idempotency_key_required',
        'without Idempotency-Key');
    is_refused($operation, $send->(idem => 'k' x 256), 400, 'idempotency_key_invalid',
        'with a long Idempotency-Key');
    is_refused($operation, $send->(key => undef), 401, 'unauthorized', 'without a key');
    is_refused($operation, $send->(key => $read->{token}), 403, 'insufficient_scope',
        'with a read-only key');
    is_refused($operation,
        $send->(body => '{}', headers => { 'Content-Type' => 'text/plain' }), 415,
        'unsupported_media_type', 'with text');
    is_refused($operation, $send->(body => '{"nonsense":1}'), 400, 'invalid_request',
        'with an unknown member');
    is_refused($operation, $send->(body => '{'), 400, 'invalid_json', 'with half an object');
    my @match = $operation->{path} !~ /\{/
        || $operation->{id} =~ /^(?:moveBuyers|answerHelpRequest)$/
        ? (400, 'invalid_request')    # there is nothing that has a version
        : $operation->{id} eq 'assignOrder' ? (404, 'order_not_found')    # the request makes it
        :                                     (412, 'precondition_failed');
    is_refused($operation, $send->(headers => { 'If-Match' => '"x"' }), @match,
        'with If-Match that names nothing');
    is_refused($operation, $send->(headers => { 'If-Match' => 'x' }), 400, 'invalid_request',
        'with half an If-Match');
    return nothing_changed($before, "$operation->{id}: refused requests change nothing");
}

# --- the operations ------------------------------------------------------------------------------

sub try_writes
{
    my ($paths) = @_;
    # All rows are compared, so no other suite's jobs may change one.
    my $server = MDL::Instance->new;
    $server->start;
    $shop = new_shop();
    (my $code, $read) = ctl('key', 'create', $shop->{shop_id}, 'reader', '--scope', 'read');
    is($code, 0, 'a read-only key is created');
    @tables = grep { !/$OTHER/ } map { $_->[0] } sql(
        database() eq 'pgsql'
        ? "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        : "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
    );
    ok(scalar(grep { $_ eq 'idempotency' } @tables), 'the tables are listed');
    my @writes = grep { $_->{write} && $_->{path} =~ $paths } operations();
    cmp_ok(scalar @writes, '>', 10, 'the document has operations that write');
    try_write($_) for @writes;
    return;
}

sub try_write
{
    my ($operation) = @_;
    my $id      = $operation->{id};
    my $request = eval { request_for($operation, $shop) };
    my $other   = eval { request_for($operation, $shop) };
    if (!$request || !$other) {
        diag($@);
        return fail("$id can be prepared");
    }
    settle();
    refusals($operation, $request);

    # Once.
    my @before = rows();
    my $last   = last_audit();
    my $key    = idem($id);
    my $first  = send_request($operation, $request, key => $shop->{token}, idem => $key);
    like($first->{status}, qr/^2/, "$id succeeds") or diag($first->{body});
    fits($operation, $first, 'the first time');
    is($first->{headers}{'idempotent-replayed'}, undef, "$id: the first answer is not a replay");
    settle();
    my @after = rows();
    my @effect = difference(\@before, \@after);
    ok(scalar(grep { !/^\+ audit\t/ } @effect), "$id has an effect");
    is_audited($operation, $request, $first, $last);

    # Again.
    my $again = send_request($operation, $request, key => $shop->{token}, idem => $key);
    is_deeply(brief($again), { %{ brief($first) }, replayed => 'true' },
        "$id: a replay has the same status, bytes and Location");
    fits($operation, $again, 'the second time');
    settle();
    nothing_changed(\@after, "$id: a replay changes nothing");

    # The same key with another request.
    is_refused($operation,
        send_request($operation, $other, key => $shop->{token}, idem => $key), 409,
        'idempotency_conflict', 'the key of another request');
    nothing_changed(\@after, "$id: a conflict changes nothing");

    # Five at once.
    $key = idem($id);
    my @answers = parallel(5, sub {
        brief(send_request($operation, $other, key => $shop->{token}, idem => $key, patient => 1))
    });
    my %different = map { join("\n", map { $_ // 'none' } @$_{qw(died status location body)}) => 1 }
        @answers;
    is(scalar keys %different, 1, "$id: five at once get the same answer")
        or diag(join "\n\n", keys %different);
    is(scalar(grep { ($_->{replayed} // '') ne 'true' } @answers), 1,
        "$id: four of the five are replays");
    settle();
    is(growth(\@after, [ rows() ]), growth(\@before, \@after),
        "$id: five at once have the effect of one");
    return;
}

1;
