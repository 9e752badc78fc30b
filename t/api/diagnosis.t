# Why can't this customer download? (contract, section 6): GET /orders/{id}/diagnosis. Each check is
# the first failure once.
#
# once: the checks are made of rows that states.t and order_access.t read on both databases
use strict;
use warnings;

use MDL::Contract;
use MDL::Objects;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my @names = qw(recipient email page mapping fraud access allowance file);
my $one   = ready_asset($shop, "diagnosis-$$-one.txt", "number one\n");
my $two   = ready_asset($shop, "diagnosis-$$-two.txt", "and two\n");
my ($first, $second) = map { mapping_of($shop, [ $_->{id} ], download_limit => 1) } $one, $two;
my $empty = mapping_of($shop, []);

sub diagnosis
{
    my ($id, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $reply = api('GET', "/orders/$id/diagnosis", key => $shop->{token});
    is_answer($reply, 200, $name);
    is_shape($reply->{json}, 'diagnosis', $name);
    is($reply->{json}{storefront_order_id}, $id, "$name: of that order");
    is(join(' ', map { $_->{name} } @{ $reply->{json}{checks} }), "@names",
        "$name: every check, in order");
    return $reply->{json};
}

sub statuses { my ($json) = @_; return join ' ', map { $_->{status} } @{ $json->{checks} } }

sub message
{
    my ($json, $name) = @_;
    my ($check) = grep { $_->{name} eq $name } @{ $json->{checks} };
    return $check->{message};
}

# Checks which check fails first, that none before it fails, and its message.
sub fails_first
{
    my ($id, $check, $words, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $json = diagnosis($id, $name);
    is($json->{first_failure}, $check, "$name: the first failure is $check")
        or diag(statuses($json));
    my %status = map { $_->{name} => $_->{status} } @{ $json->{checks} };
    is($status{$check}, 'fail', "$name: its status is fail");
    my @before = grep { $_ ne $check }
        (join(' ', @names) =~ /^(.*)\b$check\b/ ? split / /, $1 : ());
    is(scalar(grep { $status{$_} eq 'fail' } @before), 0, "$name: no check before it fails");
    like(message($json, $check), $words, "$name: the message says why");
    return $json;
}

sub where { my ($id) = @_; return "(SELECT id FROM orders WHERE shop_id = $shop->{shop_id}"
    . " AND storefront_order_id = '$id')" }

# An order of these products whose email was sent; returns its id and those of its assignments.
sub new_order
{
    my (@products) = @_;
    my $id = digits();
    my $to = "diagnosis-$$-$id\@buyer.example";
    my $reply = assign($shop, $id, \@products, storefront_customer_id => $id,
        send_email => JSON::PP::true(), customer => { email => $to });
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    wait_for(sub {
        api('GET', "/orders/$id", key => $shop->{token})->{json}{email}{status} eq 'sent';
    }, 60,
        'the email to be sent');
    return ($id, map { $_->{id} } @{ $reply->{json}{assignments} });
}

sub act
{
    my ($id, $action, %members) = @_;
    my $reply = api('POST', "/orders/$id/$action", key => $shop->{token}, json => \%members);
    die "$action was answered with: $reply->{body}\n" if $reply->{status} !~ /^20[02]$/;
    return $reply->{json};
}

# Downloads an assignment's first file; returns the status.
sub download
{
    my ($id, $assignment) = @_;
    my $urls = api('GET', "/orders/$id/assignments/$assignment/download-urls",
        key => $shop->{token});
    my $status = page('GET', $urls->{json}{files}[0]{url})->{status};
    wait_for(sub {
        !sql("SELECT 1 FROM download_session WHERE assignment_id = $assignment "
            . "AND status = 'open'");
    }, 60, 'the download to be settled');
    return $status;
}

my @products = map { $_->{storefront_product_id} } $first, $second;

# --- an order without failures -------------------------------------------------------------------

my ($good, @good) = new_order(@products);
my $json = diagnosis($good, 'an order without failures');
is($json->{first_failure}, undef, 'nothing fails');
is(statuses($json), 'ok ok ok ok ok ok ok ok', 'every check is ok') or diag(explain($json));

# --- recipient and email -------------------------------------------------------------------------

my $id = digits();
assign($shop, $id, \@products, storefront_customer_id => $id);
fails_first($id, 'recipient', qr/no email address: send the email again to one that you know/,
    'a customer without an address');
$json = do {
    assign($shop, $id, \@products, storefront_customer_id => $id,
        customer => { email => 'late@buyer.example' });
    diagnosis($id, 'an email that was not requested');
};
is($json->{first_failure}, undef, 'is not a failure');
is((split / /, statuses($json))[1], 'warn', 'but a warning');

$id = digits();
assign($shop, $id, \@products, storefront_customer_id => $id, send_email => JSON::PP::true());
assign($shop, $id, \@products, storefront_customer_id => $id,
    customer => { email => 'late@buyer.example' });
fails_first($id, 'email', qr/no address/, 'an address that came after the email was requested');
($id) = new_order(@products);
sql("UPDATE email SET status = 'failed', last_error = '550 no such mailbox' WHERE order_id = "
    . where($id));
fails_first($id, 'email', qr/550 no such mailbox/, 'an email that was refused');
sql("UPDATE email SET status = 'queued', last_error = '451 try later', sent_at = NULL "
    . "WHERE order_id = " . where($id));
$json = diagnosis($id, 'an email that is tried again');
is($json->{first_failure}, undef, 'is not a failure yet');
like(message($json, 'email'), qr/tried again.*451 try later/, "the message quotes the server");

# --- page ----------------------------------------------------------------------------------------

($id) = new_order(@products);
sql('DELETE FROM assignment WHERE order_id = ' . where($id));
fails_first($id, 'page', qr/empty/, 'an order with nothing assigned');

# --- mapping -------------------------------------------------------------------------------------

($id) = new_order($empty->{storefront_product_id});
fails_first($id, 'mapping', qr/Mapping $empty->{id} has no content/, 'an empty mapping');
($id) = new_order($empty->{storefront_product_id}, $products[0]);
$json = diagnosis($id, 'an empty mapping beside one with content');
is(statuses($json), 'ok ok ok warn ok ok ok ok', 'is a warning');

my ($tag, $second_tag) = map { api('POST', '/license-key-tags', key => $shop->{token},
    json => { name => $_ })->{json}{id} } qw(Pro Extra);
my @keys = ([$tag], [ $tag, $second_tag ]);
@keys = map { mapping_of($shop, [], license_key_tag_ids => $_)->{storefront_product_id} } @keys;
($id) = new_order($keys[0]);
is(message(diagnosis($id, 'a license key that the stock lacks'), 'mapping'),
    "1 license key is still missing: add keys to license-key tag $tag.", 'names the tag');
act($id, 'revoke');
like(message(diagnosis($id, 'one of a revoked order'), 'mapping'),
    qr/handed out once access is given/, 'waits for the access');
($id) = new_order($keys[1]);
is(message(diagnosis($id, 'keys of two tags'), 'mapping'),
    "2 license keys are still missing: add keys to license-key tags $tag, $second_tag.",
    'names both');

# --- fraud and access ----------------------------------------------------------------------------

($id) = new_order(@products);
held_by_check($shop, $id);
fails_first($id, 'fraud', qr/under review.*The storefront rates the order's risk as high\./,
    'a held order');
act($id, 'reject', reason => 'a stolen card');
fails_first($id, 'fraud', qr/rejected/, 'a rejected order');
act($id, 'approve');
is(diagnosis($id, 'an approved order')->{first_failure}, undef, 'has no failure');

act($id, 'revoke', reason => 'a refund');
fails_first($id, 'access', qr/revoked: a refund/, 'a revoked order');
my @ids = map { $_->{id} } @{ act($id, 'restore')->{assignments} };
act($id, 'revoke', assignment_ids => [ $ids[0] ]);
$json = diagnosis($id, 'an order of which one assignment is revoked');
is($json->{first_failure}, undef, 'is not a failure');
is((split / /, statuses($json))[5], 'warn', 'but a warning');
act($id, 'revoke', assignment_ids => [ $ids[1] ]);
fails_first($id, 'access', qr/Every assignment is revoked/,
    'an order of which every assignment is revoked');
act($id, 'restore');
sql('UPDATE assignment SET expires_at = 1 WHERE order_id = ' . where($id));
fails_first($id, 'access', qr/expired/, 'an order that has expired');
act($id, 'grant-downloads', extend_days => 1);
is(diagnosis($id, 'an order whose time was extended')->{first_failure}, undef, 'has no failure');

# --- allowance -----------------------------------------------------------------------------------

is(download($good, $good[0]), 200, 'a download');
$json = diagnosis($good, 'a file that is used up beside one that is not');
is(statuses($json), 'ok ok ok ok ok ok warn ok', 'is a warning');
is(download($good, $good[1]), 200, 'another download');
fails_first($good, 'allowance', qr/used up, 2 of 2 files/, 'every file used up');
act($good, 'grant-downloads', downloads => 1);
is(diagnosis($good, 'after a grant')->{first_failure}, undef, 'has no failure');

# --- file ----------------------------------------------------------------------------------------

lose_bytes($one);
$json = diagnosis($good, 'a file that is missing beside one that is not');
is(statuses($json), 'ok ok ok ok ok ok ok warn', 'is a warning');
like(message($json, 'file'), qr/$one->{filename} \(file $one->{id}\) is missing/,
    'which names the file');
($id) = new_order($products[0]);
fails_first($id, 'file', qr/missing in the server's storage/, 'a file that is missing');
find_bytes($one);
is(diagnosis($id, 'a file that is back')->{first_failure}, undef, 'nothing fails');
sql("UPDATE asset SET status = 'failed' WHERE id = $one->{id}");
fails_first($id, 'file', qr/could not be imported/, 'a file whose import failed');
sql("UPDATE asset SET status = 'pending' WHERE id = $one->{id}");
fails_first($id, 'file', qr/still being imported/, 'a file that is being imported');
sql("UPDATE asset SET status = 'ready' WHERE id = $one->{id}");

# --- the operator's command ----------------------------------------------------------------------

my $of = $shop->{shop_id};
my ($code, $said) = ctl('order', 'diagnose', $of, $good);
is($code, 0, 'an order without failures is well for downloadsctl, too');
my $answer = diagnosis($good, 'the same order');
is_deeply($said, { map { $_ => $answer->{$_} } qw(checks first_failure) },
    'which says what the API says');
act($good, 'revoke');
($code, $said) = ctl('order', 'diagnose', $of, $good);
is_deeply([ $code, $said->{first_failure} ], [ 6, 'access' ], 'a failure is its exit status');
($code, $said) = ctl('order', 'resend', $of, $good);
is_deeply([ $code, $said->{error}{code} ], [ 5, 'access_revoked' ],
    'what is refused to the shop is refused to the operator');
act($good, 'restore');

($code, $said) = ctl('order', 'show', $of, $good);
my $shown = api('GET', "/orders/$good", key => $shop->{token})->{json};
is_deeply([ $code, @$said{qw(storefront_order_id shop_id customer_email access email_status)} ],
    [ 0, $good, $of, $shown->{customer}{email}, 'active', 'sent' ], 'order show has the order');
is_deeply([ map { [ @$_{qw(asset_id downloads_used download_limit)} ] } @{ $said->{files} } ],
    [ map { [ $_->{id}, 1, 2 ] } $one, $two ], 'and its files') or diag(explain($said->{files}));

for my $to ([], [ '--email', 'else@buyer.example' ]) {
    ($code, $said) = ctl('order', 'resend', $of, $good, @$to);
    is_deeply([ $code, $said->{email_to} ], [ 0, $to->[1] // $shown->{customer}{email} ],
        "resend @$to");
}
act($good, 'resend');
($code, $said) = ctl('order', 'resend', $of, $good);
is_deeply([ $code, $said->{error}{code} ], [ 5, 'rate_limited' ],
    'it counts against the limit that the API has');
is_error(api('POST', "/orders/$good/resend", key => $shop->{token}, json => {}), 429,
    'rate_limited', 'and the other way round');
my $user = $ENV{SUDO_USER} // getpwuid $<;
my @events = grep { $_->{action} eq 'email_resent' }
    @{ api('GET', "/orders/$good", key => $shop->{token})->{json}{events} };
is_deeply([ map { $_->{user} } @events ], [ undef, $user, $user ], 'the order says who it was');
my @entries = grep { $_->{action} eq 'email_resent' && $_->{noun_id} eq $good }
    @{ (ctl('audit', '--shop', $of))[1] };
is_deeply([ map { "$_->{via} " . ($_->{user} // '') } @entries ], [ 'api ', ("command $user") x 2 ],
    'and so does the audit');
($code, $said) = ctl('order', 'resend', $of, $good, '--email', 'nobody');
is_deeply([ $code, $said->{error}{code} ], [ 5, 'invalid_email' ], 'what is no address is refused');
for my $verb (qw(show diagnose resend)) {
    ($code, $said) = ctl('order', $verb, $other->{shop_id}, $good);
    is_deeply([ $code, $said->{error}{code} ], [ 4, 'order_not_found' ],
        "order $verb finds no order of another shop");
}

# --- which request it was ------------------------------------------------------------------------

my $log     = error_log_size();
my $traced  = digits();
my $request = assign($shop, $traced, [ $first->{storefront_product_id} ],
    storefront_customer_id => $traced, send_email => JSON::PP::true(),
    customer => { email => "traced-$$\@buyer.example" })->{headers}{'x-request-id'};
is_deeply([ sql("SELECT request_id FROM email WHERE order_id = " . where($traced)) ],
    [ [$request] ], 'an email has the request that caused it');
my ($job) = grep { ($_->{request_id} // '') eq $request }
    @{ (ctl('job', 'list', '--shop', $of))[1] };
is($job->{type}, 'email', 'job list has it, too');
wait_for(sub {
    error_log_since($log) =~ /MDL0340: email of job $job->{id} \(\Q$request\E\) was accepted/;
}, 60, 'a line about the job with the request');
my ($entry) = grep { ($_->{request_id} // '') eq $request } @{ (ctl('audit', '--shop', $of))[1] };
is_deeply([ @$entry{qw(noun noun_id action)} ], [ 'order', $traced, 'assigned' ],
    'and so has the audit');

# --- unknown orders ------------------------------------------------------------------------------

is_error(api('GET', "/orders/$_/diagnosis", key => $shop->{token}), 404, 'order_not_found',
    "the order '$_'")
    for '99999999', 'abc';
is_error(api('GET', "/orders/$good/diagnosis", key => $other->{token}), 404, 'order_not_found',
    "another shop's order");

done_testing();
