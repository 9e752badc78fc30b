# What a shop does with an order (contract, section 6): revoke, restore, grant-downloads, resend,
# approve and reject, each repeated and in sequence, and the audit trail.
#
# both: what changes an order waits for other locks
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());

my $shop  = new_shop();
my $other = new_shop();
my $one   = ready_asset($shop, "access-$$-one.txt", "number one\n");
my $two   = ready_asset($shop, "access-$$-two.txt", "and two\n");
my @products = map { $_->{storefront_product_id} }
    mapping_of($shop, [ $one->{id}, $two->{id} ], download_limit => 1),
    mapping_of($shop, [ $two->{id} ], download_limit => 1, access_days => 30);
my $addresses = 0;

sub new_address { return "access-$$-" . ++$addresses . '@buyer.example' }
sub order { my ($id) = @_; return api('GET', "/orders/$id", key => $shop->{token})->{json} }

# An order of both products; returns its id and those of its assignments.
sub new_order
{
    my (%members) = @_;
    my $id = digits();
    my $reply = assign($shop, $id, \@products, storefront_customer_id => $id, %members);
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return ($id, map { $_->{id} } @{ $reply->{json}{assignments} });
}

sub act
{
    my ($id, $action, $members, %request) = @_;
    return api('POST', "/orders/$id/$action", key => $shop->{token},
        defined $members ? (json => $members) : (), %request);
}

sub where { my ($id) = @_; return "o.shop_id = $shop->{shop_id} AND o.storefront_order_id = '$id'" }

# The order's audit trail as it is stored.
sub trail
{
    my ($id) = @_;
    return map { join '|', @$_ }
        sql('SELECT e.id, e.action, e.assignment_ids, e.key_id, e.reason, e.details,'
        . ' e.created_at FROM order_timeline e JOIN orders o ON o.id = e.order_id WHERE '
        . where($id)
        . ' ORDER BY e.id');
}

sub moved_at
{
    my ($id) = @_;
    return (sql('SELECT updated_at FROM orders o WHERE ' . where($id)))[0][0];
}

# Performs an action; checks that it returns the order and adds $events events, and that earlier
# events stay unchanged.
sub acted
{
    my ($id, $action, $members, $events, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @before = trail($id);
    my $moved  = moved_at($id);
    my $reply  = act($id, $action, $members);
    my @after  = trail($id);
    is_answer($reply, $action eq 'resend' ? 202 : 200, $name);
    is_shape($reply->{json}, 'order', "$name: the order");
    is(@after - @before, $events, "$name: $events event" . ($events == 1 ? '' : 's'));
    is_deeply([ @after[ 0 .. $#before ] ], \@before, "$name: earlier events stay unchanged");
    cmp_ok(moved_at($id), '>', $moved, "$name: updated_at moves") if $events > 0;
    return $reply->{json};
}

sub access
{
    my ($order) = @_;
    return join ' ', $order->{access}{status}, $order->{access}{reason} // '-',
        $order->{fraud}{decision}, map { $_->{status} } @{ $order->{assignments} };
}

sub emails
{
    my ($id) = @_;
    return map { { status => $_->[0], to => $_->[1], message_id => $_->[2], held => $_->[3] } }
        sql('SELECT e.status, e.recipient, e.message_id, e.held FROM email e JOIN orders o '
            . 'ON o.id = e.order_id WHERE ' . where($id) . ' ORDER BY e.id');
}

sub urls
{
    my ($id, $assignment) = @_;
    return api('GET', "/orders/$id/assignments/$assignment/download-urls", key => $shop->{token});
}

# --- the whole order -----------------------------------------------------------------------------

my ($id, $first, $second) = new_order();
my $minted = urls($id, $first)->{json}{files}[0]{url};
is(access(acted($id, 'revoke', { reason => 'a refund' }, 1, 'revoking an order')),
    'revoked a refund not_checked revoked revoked', 'revokes both assignments');
my $page = page('GET', order($id)->{download_page_url});
like($page->{body}, qr/a refund/, 'the page says why');
unlike($page->{body}, qr/name="(?:file|zip)"/, 'and has no button that downloads');
is(page('GET', $minted)->{status}, 403, 'an earlier URL is refused');
unstored();
refused(urls($id, $first), 409, 'access_revoked', 'URLs of a revoked order');
refused(act($id, 'resend'), 409, 'access_revoked', 'the email of a revoked order');
is(access(acted($id, 'revoke', { reason => 'a refund' }, 0, 'revoking it again')),
    'revoked a refund not_checked revoked revoked', 'changes nothing');
is(access(acted($id, 'revoke', undef, 0, 'revoking it without a reason')),
    'revoked a refund not_checked revoked revoked', 'keeps the reason');
is(access(acted($id, 'revoke', { reason => 'a fraud' }, 1, 'revoking it for another reason')),
    'revoked a fraud not_checked revoked revoked', 'changes the reason');

is(access(acted($id, 'restore', undef, 1, 'restoring it')), 'active - not_checked active active',
    'restores both assignments');
is(access(acted($id, 'restore', {}, 0, 'restoring it again')), 'active - not_checked active active',
    'changes nothing');
my $bytes = page('GET', $minted);
is($bytes->{status}, 200, 'the earlier URL works again');
is($bytes->{body}, "number one\n", 'and gives the file');
my ($rows) = sql("SELECT count(*) FROM assignment a JOIN orders o ON o.id = a.order_id WHERE "
    . where($id));
is($rows->[0], 2, 'each assignment is stored once');

# --- single assignments --------------------------------------------------------------------------

($id, $first, $second) = new_order();
my $some = { assignment_ids => [$second], reason => 'the wrong one' };
is(access(acted($id, 'revoke', $some, 1, 'revoking an assignment')),
    'active - not_checked active revoked', 'leaves the other active');
acted($id, 'revoke', $some, 0, 'revoking it again');
is_answer(urls($id, $first), 200, 'the other can be downloaded');
is_error(urls($id, $second), 409, 'access_revoked', 'the revoked one can not');
acted($id, 'revoke', { assignment_ids => [ $first, $second ] }, 1, 'revoking both');
is_deeply(order($id)->{events}[0]{assignment_ids}, [$first],
    'the event names only the one that changed');
is(access(acted($id, 'restore', { assignment_ids => [$first] }, 1, 'restoring one')),
    'active - not_checked active revoked', 'leaves the other revoked');
acted($id, 'restore', { assignment_ids => [$first] }, 0, 'restoring it again');
is(access(acted($id, 'revoke', undef, 1, 'revoking the rest')),
    'revoked - not_checked revoked revoked', 'revokes the order');
is(access(acted($id, 'restore', { assignment_ids => [$second] }, 1,
    'restoring one of a revoked order')),
    'active - not_checked revoked active', 'makes the order active with that one');
is(access(acted($id, 'restore', undef, 1, 'restoring the order')),
    'active - not_checked active active', 'restores the rest');
acted($id, 'revoke', { assignment_ids => [ $first, $second ] }, 1, 'revoking each of them');
is_error(act($id, 'resend', { email => new_address() }), 409, 'access_revoked',
    'an email without an active assignment');

# --- refused requests ----------------------------------------------------------------------------

my ($foreign, $theirs) = new_order();
unstored();
for my $action (qw(revoke restore grant-downloads)) {
    my %more = $action eq 'grant-downloads' ? (downloads => 1) : ();
    refused(act($id, $action, { %more, assignment_ids => [ $first, $theirs, 4711 ] }), 422,
        'unknown_reference', "$action of another order's assignment", '/assignment_ids/1',
        '/assignment_ids/2');
    refused(act($id, $action, { %more, assignment_ids => [] }), 400, 'invalid_request',
        "$action of no assignment at all", '/assignment_ids');
    refused(act($id, $action, { %more, assignment_ids => ['1'], order_id => 1 }), 400,
        'invalid_request', "$action with invalid members", '/assignment_ids/0', '/order_id');
}
refused(act($id, $_, { assignment_ids => [$first] }), 400, 'invalid_request', "$_ of an assignment",
    '/assignment_ids')
    for qw(approve reject resend);
refused(act($id, 'revoke', { reason => $_ }), 400, 'invalid_request', 'an invalid reason',
    '/reason')
    for '', 'x' x 501, "two\nlines", 5;
my %members = ('grant-downloads' => { downloads => 1 });
for my $action (qw(revoke restore grant-downloads resend approve reject)) {
    refused(act($_, $action, $members{$action}), 404, 'order_not_found',
        "$action of the order '$_'")
        for '99999999', 'abc', '01';
    refused(api('POST', "/orders/$id/$action", key => $other->{token},
        json => $members{$action} // {}), 404,
        'order_not_found', "$action of another shop's order");
}
refused(act($id, $_), 409, 'order_not_held', "$_ of an order that was never held")
    for qw(approve reject);

# --- more downloads, more time -------------------------------------------------------------------

sub limits
{
    my ($order) = @_;
    return join ' ', map { "$_->{downloads_used}/$_->{download_limit}" }
        map { @{ $_->{files} } } @{ $order->{assignments} };
}

($id, $first, $second) = new_order();
is(page('GET', urls($id, $second)->{json}{files}[0]{url})->{status}, 200, 'a download');
is(limits(order($id)), '0/1 0/1 1/1', 'uses up the limit of one');
is(page('GET', urls($id, $second)->{json}{files}[0]{url})->{status}, 403, 'another is refused');
is(limits(acted($id, 'grant-downloads', { downloads => 2 }, 1, 'granting downloads')),
    '0/3 0/3 1/3', 'adds to every file');
is(page('GET', urls($id, $second)->{json}{files}[0]{url})->{status}, 200, 'then another succeeds');
is(limits(acted($id, 'grant-downloads', { downloads => 1, assignment_ids => [$first] }, 1,
    'granting to an assignment')), '0/4 0/4 2/3', 'adds to its files');
is(limits(acted($id, 'grant-downloads', { downloads => 1, file_ids => [ $two->{id} ] }, 1,
    'granting to a file')), '0/4 0/5 2/4', 'adds to it in each assignment');
is(limits(acted($id, 'grant-downloads', { downloads => 1000, assignment_ids => [$first],
    file_ids => [ $two->{id} ] }, 1, 'granting to a file of an assignment')), '0/4 0/1005 2/4',
    'adds only to that one');
is_deeply(order($id)->{events}[0]{details},
    { downloads => 1000, file_ids => [ $two->{id} ] }, 'the event has the details');

sub seconds { my ($time) = @_; chomp(my $out = qx(date -u -d '$time' +%s)); return $out }

my $end   = order($id)->{assignments}[1]{expires_at};
my $later = acted($id, 'grant-downloads', { extend_days => 3 }, 1, 'granting time');
is(seconds($later->{assignments}[1]{expires_at}) - seconds($end), 3 * 86400, 'adds it to the end');
is($later->{assignments}[0]{expires_at}, undef, 'access without an end stays so');
is(limits($later), '0/4 0/1005 2/4', 'and so do the downloads');
sql("UPDATE assignment SET expires_at = 1000000 WHERE id = $second");
is_error(urls($id, $second), 409, 'access_revoked', 'an assignment that has expired');
my $now = time;
$later = acted($id, 'grant-downloads',
    { extend_days => 1, downloads => 1, assignment_ids => [$second] }, 1,
    'granting time after the end');
my $until = seconds($later->{assignments}[1]{expires_at}) - 86400;
ok($now <= $until && $until <= time, 'counts from now') or diag("$now $until");
is_answer(urls($id, $second), 200, 'and it can be downloaded again');
sql("UPDATE assignment SET expires_at = 253402200000000000 WHERE id = $second");
acted($id, 'grant-downloads', { extend_days => 3650 }, 1,
    'granting ten years at the end of the year 9999');
is((sql("SELECT expires_at FROM assignment WHERE id = $second"))[0][0], '253402300799999999',
    'ends with that year, the last of the time format');
acted($id, 'grant-downloads', { extend_days => 1, assignment_ids => [$first] }, 0,
    'granting time to access without an end');
acted($id, 'revoke', undef, 1, 'a revoked order');
acted($id, 'grant-downloads', { downloads => 1 }, 1, 'can be granted downloads');

unstored();
refused(act($id, 'grant-downloads', {}), 400, 'invalid_request', 'granting nothing', '/downloads');
refused(act($id, 'grant-downloads', { downloads => $_->[0], extend_days => $_->[1] }), 400,
    'invalid_request', "granting @$_", '/downloads', '/extend_days')
    for [ 0, 0 ], [ 1001, 3651 ], [ -1, -1 ], [ '1', '1' ];
refused(act($id, 'grant-downloads', { downloads => 1, file_ids => [ $one->{id}, 4711 ] }), 422,
    'unknown_reference', 'granting a file that is not in the order', '/file_ids/1');
refused(act($id, 'grant-downloads',
    { downloads => 1, file_ids => [ $one->{id} ], assignment_ids => [$second] }),
    422, 'unknown_reference', 'granting a file that the assignment does not give', '/file_ids/0');

# --- resending the email -------------------------------------------------------------------------

my ($to, $guest) = (new_address(), new_address());
($id) = new_order(customer => { email => $to });
my $first_at = time;
my $resent = acted($id, 'resend', undef, 1, 'resending the email of an order that had none');
is_deeply([ @{ $resent->{email} }{qw(status to)} ], [ 'queued', $to ], 'queues it');
wait_mail($to);
$resent = acted($id, 'resend', { email => $guest }, 1, 'resending it to another address');
is($resent->{email}{to}, $guest, 'uses that address');
is($resent->{customer}{email}, $to, "which does not become the customer's");
is_deeply(order($id)->{events}[0]{details}, { to => $guest }, 'the event has the address');
my $mail = wait_mail($guest);
ok(scalar(grep { $_ eq $resent->{download_page_url} } @{ $mail->{urls} }),
    "it has the page's address");
acted($id, 'resend', {}, 1, 'resending it a third time');
my @emails = wait_for(
    sub { my @all = emails($id); (grep { $_->{status} ne 'sent' } @all) ? undef : \@all }, 60,
    'three emails to be sent')->@*;
is_deeply([ map { $_->{to} } @emails ], [ $to, $guest, $to ], 'each is an email of its own');
my %ids = map { $_->{message_id} => 1 } @emails;
is(scalar keys %ids, 3, 'with its own Message-ID');
unstored();
my $limited = act($id, 'resend');
refused($limited, 429, 'rate_limited', 'a fourth time in an hour');
cmp_ok($limited->{headers}{'retry-after'}, '>=', 3599 - (time - $first_at),
    'Retry-After is an hour from the first');
cmp_ok($limited->{headers}{'retry-after'}, '<=', 3601, 'and not more');
sub age_first_resend
{
    return sql("UPDATE order_timeline SET created_at = created_at - 3600000000 "
        . "WHERE id = (SELECT min(e.id) FROM order_timeline e JOIN orders o ON o.id = e.order_id "
        . "WHERE e.action = 'email_resent' AND e.created_at > " . (time - 1800)
        . '000000 AND ' . where($id) . ')');
}
age_first_resend();
acted($id, 'resend', undef, 1, 'once the first is an hour old');
age_first_resend();
my $once = idem();
my @last = parallel(2, sub { act($id, 'resend', {}, idem => $once, patient => 1) });
is(join(' ', map { $_->{status} } @last), '202 202',
    'the last that is allowed, twice at once with one key: the second is a replay');
is(scalar(grep { exists $_->{headers}{'retry-after'} } @last), 0, 'which is told no Retry-After');

($id) = new_order();
unstored();
refused(act($id, 'resend'), 422, 'no_recipient', 'a customer without an address');
refused(act($id, 'resend', { email => $_ }), 400, 'invalid_request', 'an invalid address', '/email')
    for '', 'nobody', "a\@b.example\r\nBcc: c\@d.example";
is(acted($id, 'resend', { email => new_address() }, 1, 'an address with the request')
    ->{customer}{email}, undef, "does not become the customer's");
my $key  = idem('resend');
my @same = map { act($id, 'resend', { email => $guest }, idem => $key) } 1, 2;
is($same[1]{body}, $same[0]{body}, 'a replay has the same answer');
is(scalar(emails($id)), 2, 'and sends no further email');

# --- review --------------------------------------------------------------------------------------

$to = new_address();
($id, $first, $second) = new_order(customer => { email => $to });
held_by_check($shop, $id);
my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
    ->{json}{id};
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token}, json => { keys => [qw(A B C)] });
my $keyed  = mapping_of($shop, [ $one->{id} ], license_key_tag_ids => [$tag])
    ->{storefront_product_id};
my @add    = ($shop, $id, [$keyed], storefront_customer_id => $id, send_email => $true);
my $held   = assign(@add)->{json};
is_shape($held, 'order', 'an assignment to a held order');
is(access($held), 'held - held active active active', 'leaves it held');
is_deeply([ @{ $held->{email} }{qw(status to)} ], [ 'held', $to ], 'its email is held');
is($held->{assignments}[2]{license_keys_pending}, 1, 'and so is its license key');
is_answer(assign(@add), 200, 'assigning the same again');
my $more = mapping_of($shop, [])->{storefront_product_id};
is_answer(assign($shop, $id, [$more], storefront_customer_id => $id, send_email => $true), 201,
    'assigning more');
is(scalar(emails($id)), 1, 'adds no second email');
acted($id, 'revoke', { assignment_ids => [ order($id)->{assignments}[3]{id} ] }, 1,
    'revoking one assignment of a held order');
sql("DELETE FROM assignment WHERE order_id IN (SELECT o.id FROM orders o WHERE @{[ where($id) ]})"
    . " AND storefront_product_id = '$more'");
unstored();
refused(urls($id, $first), 409, 'order_held', 'URLs of a held order');
refused(act($id, 'resend'), 409, 'order_held', 'the email of a held order');
refused(act($id, 'restore'), 409, 'order_held', 'restoring a held order');
like(page('GET', $held->{download_page_url})->{body}, qr/under review/,
    'the page says that it is under review');

is(access(acted($id, 'reject', { reason => 'a stolen card' }, 1, 'rejecting it')),
    'rejected a stolen card rejected active active active', 'changes access and decision');
acted($id, 'reject', { reason => 'a stolen card' }, 0, 'rejecting it again');
acted($id, 'reject', undef, 0, 'rejecting it without a reason');
unstored();
refused(urls($id, $first), 409, 'access_revoked', 'URLs of a rejected order');
refused(act($id, 'resend'), 409, 'access_revoked', 'the email of a rejected order');
refused(act($id, 'restore'), 409, 'access_revoked', 'restoring a rejected order');
refused(assign(@add), 409, 'access_revoked', 'assigning to a rejected order');
is(scalar(mails($to)), 0, 'no email was sent so far');

my $approved = acted($id, 'approve', { reason => 'the bank called' }, 1, 'approving it after that');
is(access($approved), 'active - approved active active active', 'gives access');
is($approved->{email}{status}, 'queued', 'its email is queued');
is_deeply($approved->{assignments}[2]{license_keys}, ['A'], 'its license key is given');
is_deeply(order($id)->{events}[0]{details}, { license_keys => 1 },
    'the event has the number of keys');
wait_mail($to);
acted($id, 'approve', undef, 0, 'approving it again');
is(scalar(emails($id)), 1, 'sends nothing more');
is_deeply(order($id)->{assignments}[2]{license_keys}, ['A'], 'and gives no second key');
is_error(act($id, 'reject'), 409, 'order_not_held', 'an approved order can not be rejected');

# An order that is revoked while it is under review.
$to = new_address();
($id) = new_order(customer => { email => $to });
held_by_check($shop, $id);
assign($shop, $id, [$keyed], storefront_customer_id => $id, send_email => $true);
is(access(acted($id, 'revoke', undef, 1, 'revoking a held order')),
    'revoked - held revoked revoked revoked', 'leaves the decision open');
is(access(acted($id, 'restore', undef, 1, 'restoring it')), 'held - held active active active',
    'puts it under review again');
acted($id, 'revoke', undef, 1, 'revoking it once more');
is(access(acted($id, 'approve', undef, 1, 'approving it while it is revoked')),
    'revoked - approved revoked revoked revoked', 'leaves it revoked');
is((emails($id))[0]{held}, 1, 'its email still waits');
is(order($id)->{assignments}[2]{license_keys_pending}, 1, 'and so does its key');
my $restored = acted($id, 'restore', undef, 1, 'restoring it after the approval');
is(access($restored), 'active - approved active active active', 'gives access');
is($restored->{email}{status}, 'queued', 'and sends the email');
is($restored->{assignments}[2]{license_keys_pending}, 0, 'and gives the key');
wait_mail($to);
($id) = new_order();
held_by_check($shop, $id);
acted($id, 'revoke', { reason => 'a refund' }, 1,
    'an order that was revoked while it is under review');
is(access(acted($id, 'reject', { reason => 'a fraud' }, 1, 'is rejected')),
    'revoked a refund rejected revoked revoked', 'and stays revoked');
is_error(act($id, 'restore'), 409, 'access_revoked', 'restoring it before it is approved');

# An address that changes between the assignment and the approval.
my $newer = new_address();
($id) = new_order(customer => { email => new_address() });
held_by_check($shop, $id);
assign($shop, $id, [$keyed], storefront_customer_id => $id, send_email => $true);
assign($shop, $id, [$keyed], storefront_customer_id => $id, customer => { email => $newer });
is(acted($id, 'approve', undef, 1, 'approving an order after the address has changed')
    ->{email}{to}, $newer, 'sends the email to the new address');
wait_mail($newer);

# --- an order that is closed before its email is sent --------------------------------------------

for my $case ([ 'revoked', 'failed' ], [ 'rejected', 'failed' ], [ 'held', 'held' ]) {
    my ($status, $end) = @$case;
    ($id) = new_order();
    # The email is inserted in the transaction that closes the order, so that no worker can send it
    # first.
    my ($row) = sql('SELECT o.id FROM orders o WHERE ' . where($id));
    my $job = join q{}, "job_access", $$, $status;
    my $email = "(SELECT max(id) FROM email WHERE order_id = $row->[0])";
    sql("BEGIN; UPDATE orders SET access_status = '$status' WHERE id = $row->[0];"
        . ' INSERT INTO email (shop_id, order_id, recipient, message_id, status, attempts, '
        . 'created_at) VALUES'
        . " ($shop->{shop_id}, $row->[0], 'late\@buyer.example', 'late-$$-$status\@shop.example', "
        . "'queued', 0, 1);"
        . ' INSERT INTO job (id, shop_id, type, lane, email_id, status, attempts, '
        . 'max_attempts, due_at,'
        . " lease_token, bytes_received, created_at) VALUES ('$job', $shop->{shop_id}, 'email', "
        . "'mail', $email, 'queued', 0, 5, 1, 0, 0, 1); COMMIT");
    assign($shop, $foreign, \@products, storefront_customer_id => $foreign);    # wakes the worker
    my $ended = wait_for(
        sub { my $look = order($id)->{email}; $look->{status} eq $end ? $look : undef }, 60,
        "the email to be $end");
    is($ended->{attempts}, $end eq 'failed' ? 1 : 0, "the email of a $status order is $end");
    like($ended->{last_error} // $end, qr/\b$status\b/, 'and names the status');
}
is(scalar(mails('late@buyer.example')), 0, 'none of them was sent');

# --- many at once --------------------------------------------------------------------------------

($id) = new_order();
for my $round (1 .. 5) {
    for my $action (qw(revoke restore)) {
        my @before = trail($id);
        my @replies = parallel(8, sub { act($id, $action, { reason => 'at once' }, patient => 1) });
        is(scalar(grep { $_->{status} == 200 } @replies), 8,
            "eight requests to $action at once all succeed");
        is(trail($id) - @before, 1, 'and recorded once');
    }
}

# Revoking and restoring change the order and its assignments in one transaction.
($id) = new_order();
my @seen = parallel(6, sub {
    my ($i) = @_;
    if ($i == 0) {
        act($id, $_ % 2 ? 'revoke' : 'restore', undef, patient => 1) for 1 .. 40;
        return [];
    }
    my %seen;
    $seen{ access(order($id)) }++ for 1 .. 60;
    return [ keys %seen ];
});
my %mixed = map { $_ => 1 } grep { !/^(?:active - \S+(?: active)+|revoked - \S+(?: revoked)+)$/ }
    map { @$_ } @seen;
is_deeply([ sort keys %mixed ], [], 'an order read meanwhile is consistent');

# --- the audit trail of an order -----------------------------------------------------------------

my $second_key = MDL::Test::new_key($shop->{shop_id});
my %who = (first => $shop->{key_id}, second => $second_key->{key_id});
my $rare = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Rare' })
    ->{json}{id};
my $story = mapping_of($shop, [ $one->{id} ], license_key_tag_ids => [$rare])
    ->{storefront_product_id};
my ($life, $address) = (digits(), new_address());
my @with = (storefront_customer_id => $life, customer => { email => $address });
my $now_with = sub {
    my ($token, $action, $body) = @_;
    my $reply = api('POST', $action =~ m{^/} ? $action : "/orders/$life/$action", key => $token,
        json => $body);
    die "$action was answered with: $reply->{body}\n" if $reply->{status} !~ /^20[0-2]$/;
    return $reply->{json};
};
my $born = assign($shop, $life, [ $story, $products[0] ], @with, send_email => $true,
    fraud_check => $true)
    ->{json};
my ($a, $b) = map { $_->{id} } @{ $born->{assignments} };
wait_mail($address);
$now_with->($second_key->{token}, "/license-key-tags/$rare/keys", { keys => ['R-1'] });
$now_with->($shop->{token}, 'grant-downloads', { downloads => 5, assignment_ids => [$b],
    reason => 'a courtesy' });
$now_with->($second_key->{token}, 'revoke', { assignment_ids => [$a], reason => 'returned' });
$now_with->($second_key->{token}, 'revoke', { assignment_ids => [$a], reason => 'returned' });
$now_with->($shop->{token}, 'restore', { assignment_ids => [$a] });
$now_with->($shop->{token}, 'revoke', { reason => 'chargeback' });
$now_with->($shop->{token}, 'restore', { reason => 'it was a mistake' });
my $risk = held_by_check($shop, $life)->{fraud};
my $third = assign($shop, $life, [ $products[1] ], @with)->{json}{assignments}[2]{id};
$now_with->($second_key->{token}, 'reject', { reason => 'a stolen card' });
$now_with->($shop->{token}, 'approve', { reason => 'the bank called' });
$now_with->($shop->{token}, 'approve', {});
$now_with->($second_key->{token}, 'resend', { email => $guest, reason => 'lost it' });
my $told = api('GET', "/orders/$life", key => $shop->{token});
is_shape($told->{json}, 'whole_order', 'an order after many actions');
is_deeply(
    [ reverse map { [ @{$_}{qw(action key_id assignment_ids reason details)} ] }
        @{ $told->{json}{events} } ],
    [
        [ 'assigned', $who{first}, [ $a, $b ], undef,
            { send_email => $true, fraud_check => $true } ],
        [ 'fraud_passed', $who{first}, undef, undef, { level => 'none', signals => [] } ],
        [ 'license_keys_assigned', $who{second}, [$a], undef, { license_keys => 1 } ],
        [ 'downloads_granted', $who{first}, [$b], 'a courtesy', { downloads => 5 } ],
        [ 'revoked',  $who{second}, [$a],  'returned',         undef ],
        [ 'restored', $who{first},  [$a],  undef,              undef ],
        [ 'revoked',  $who{first},  undef, 'chargeback',       undef ],
        [ 'restored', $who{first},  undef, 'it was a mistake', undef ],
        [ 'fraud_held', $who{first}, undef, undef,
            { map { $_ => $risk->{$_} } qw(level signals) } ],
        [ 'assigned', $who{first}, [$third], undef,
            { send_email => $false, fraud_check => $false } ],
        [ 'rejected', $who{second}, undef, 'a stolen card',   undef ],
        [ 'approved', $who{first},  undef, 'the bank called', undef ],
        [ 'email_resent', $who{second}, undef, 'lost it', { to => $guest } ],
    ],
    'each action that changed something is one event, with its key'
);
my @times = map { $_->{created_at} } @{ $told->{json}{events} };
is_deeply(\@times, [ reverse sort @times ], 'newest first');
is_deeply($told->{json}{assignments}[0]{license_keys}, ['R-1'],
    'the order still has its one license key');

$now_with->($shop->{token}, $_ % 2 ? 'revoke' : 'restore', {}) for 1 .. 50;
is(scalar @{ order($life)->{events} }, 50, 'an order shows its last fifty events');
is(scalar(trail($life)), 63, 'and the database keeps all');

# --- updated_at ----------------------------------------------------------------------------------

my ($moving) = new_order();
is((sql('SELECT updated_at - created_at FROM orders o WHERE ' . where($moving)))[0][0], 0,
    'a new order was updated when it was made');
act($moving, 'revoke', {});
my $moved = moved_at($moving);
act($moving, 'revoke', {});
assign($shop, $moving, [ @products[0, 1] ], storefront_customer_id => $moving);
is(moved_at($moving), $moved, 'what changes nothing does not move it');
act($moving, 'restore', {});
{
    my $again = sub {
        assign($shop, $moving, [ @products[0, 1] ], storefront_customer_id => $moving,
            customer => {@_});
    };
    my %given = (email => new_address(), first_name => 'Ada', last_name => 'Lovelace',
        locale => 'de');
    for my $member (sort keys %given) {
        $moved = moved_at($moving);
        is($again->($member => $given{$member})->{json}{customer}{$member}, $given{$member},
            "the customer's $member changes");
        cmp_ok(moved_at($moving), '>', $moved, 'which moves it');
        $moved = moved_at($moving);
        $again->($member => $given{$member});
        is(moved_at($moving), $moved, 'once');
        $again->($member => undef);
        cmp_ok(moved_at($moving), '>', $moved, 'as does clearing it');
        $moved = moved_at($moving);
        $again->($member => undef);
        is(moved_at($moving), $moved, 'once');
    }
}
act($moving, 'revoke', {});
sql('UPDATE orders AS o SET updated_at = 4102444800000000 WHERE ' . where($moving));
act($moving, 'restore', {});
is(moved_at($moving), 4102444800001000, 'it moves on when the clock was ahead');
is(order($moving)->{updated_at}, '2100-01-01T00:00:00.001Z', 'and is shown');
my ($mailed) = new_order(send_email => $true, customer => { email => new_address() });
wait_for(sub { order($mailed)->{email}{status} eq 'sent' }, 60, 'the email');
cmp_ok((sql('SELECT updated_at - created_at FROM orders o WHERE ' . where($mailed)))[0][0], '>', 0,
    'the fate of the email moves it');

done_testing();
