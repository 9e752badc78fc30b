# What is sent to webhook endpoints (contract, section 11): signed, each event with one id, tried
# again, and no endpoint waits for another.
#
# both: deliveries are claimed by queries that differ
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::Receiver;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());
my $receiver = MDL::Receiver->new;
my $shop     = new_shop();
my $file     = ready_asset($shop, 'webhooks.bin', 'webhooks');
my $product  = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};

sub call
{
    my ($method, $path, %opt) = @_;
    return api($method, "/webhook-endpoints$path", key => $shop->{token}, %opt);
}

sub order
{
    my $id = digits();
    my $reply = assign($shop, $id, [$product], patient => 1);
    die "the order: $reply->{body}\n" if $reply->{status} != 201;
    return $id;
}

sub deliveries
{
    my ($endpoint) = @_;
    return @{ call('GET', "/$endpoint->{id}/deliveries?limit=100")->{json}{data} };
}

# Waits until a delivery fits, and returns it.
sub delivery
{
    my ($endpoint, $event, $fits, $what) = @_;
    my $found;
    wait_for(sub {
        ($found) = grep { $_->{event_id} eq $event && $fits->($_) } deliveries($endpoint);
        $found;
    }, 40, $what);
    return $found;
}

# Makes what waits for its next attempt due now; switching an endpoint on has its job look.
sub hurry
{
    my ($endpoint) = @_;
    sql("UPDATE webhook_delivery SET due_at = 1 WHERE endpoint_id = $endpoint->{id} "
        . "AND due_at IS NOT NULL");
    call('PATCH', "/$endpoint->{id}", json => { is_active => $true });
    return;
}

# --- a webhook -----------------------------------------------------------------------------------

my $fast  = $receiver->endpoint($shop, 'fast',
    event_types => [ 'order.assigned', 'order.revoked' ]);
my $first = order();
my ($got) = $receiver->await_events('fast', 1);
is("$got->{method} $got->{type}", 'POST application/json', 'an event is posted as JSON');
is_deeply($got->{verified}, [$true], "the specification's library verifies it");
my $event = decode_json($got->{body});
is_shape($event, 'shop_event', 'the body');
is("$event->{type} $event->{data}{storefront_order_id}", "order.assigned $first",
    'it tells of the order');
is($got->{id}, $event->{id}, 'webhook-id is the id of the event');
my ($listed) = grep { $_->{id} eq $event->{id} }
    @{ api('GET', '/events?limit=100', key => $shop->{token})->{json}{data} };
is_deeply($listed, $event, 'GET /events has the same');
my $done = delivery($fast, $event->{id}, sub { $_[0]{status} eq 'succeeded' }, 'the result');
is_shape($done, 'webhook_delivery', 'its delivery');
is("$done->{attempts} $done->{response_status} $done->{event_type}", '1 200 order.assigned',
    'has what came of it');
api('POST', "/orders/$first/restore", key => $shop->{token}, json => {});
api('POST', "/orders/$first/revoke",  key => $shop->{token}, json => {});
(undef, $got) = $receiver->await_events('fast', 2);
is(decode_json($got->{body})->{type}, 'order.revoked',
    'only the types that were asked for are sent');

# --- one that never answers holds up nobody ------------------------------------------------------

my %waits = map { $_ => $receiver->endpoint($shop, $_, event_types => ['shop.blocked']) }
    qw(stuck quick);
my $other = new_shop();
$waits{other} = $receiver->endpoint($other, 'other');
$receiver->answers('stuck', { hold => 1 });
my $held = call('POST', "/$waits{stuck}{id}/test")->{json}{id};
my ($attempts, $asked);
for my $try (1 .. 5) {    # an attempt is given up after 15 s, before the others may have come
    $receiver->await('stuck', ++$asked);
    call('POST', "/$waits{quick}{id}/test");
    api('POST', "/webhook-endpoints/$waits{other}{id}/test", key => $other->{token});
    $receiver->await_events($_, $try) for qw(quick other);
    $attempts = delivery($waits{stuck}, $held, sub { 1 }, 'the delivery')->{attempts};
    last if $attempts == $asked - 1;
    $asked = () = $receiver->received('stuck');
    hurry($waits{stuck});
}
is($attempts, $asked - 1,
    "while one endpoint has not answered, another one and another shop's are sent their events");
call('DELETE', "/$waits{$_}{id}") for qw(stuck quick);

# --- those that do not answer well ---------------------------------------------------------------

my %bad = (
    slow     => { hold   => 1 },
    failing  => { status => 500, body => 'Out of order' },
    redirect => { status => 302, headers => { Location => $receiver->url('elsewhere') } },
    cut      => { status => 200, headers => { 'Content-Length' => 1000 }, cut => 1 },
);
my %endpoint = map { $_ => $receiver->endpoint($shop, $_, event_types => ['order.assigned']) }
    sort keys %bad;
$receiver->answers($_, $bad{$_}) for keys %bad;
$receiver->answers('chatty', { body => 'x' x 1000 . "\0", repeat => 100 });
$receiver->answers('anew', { status => 500 }, { hold => 1 }, {});
$endpoint{$_} = $receiver->endpoint($shop, $_, event_types => ['order.assigned'])
    for qw(chatty anew);

my $second = order();
my @fast = $receiver->await_events('fast', 3);
is(decode_json($fast[2]{body})->{data}{storefront_order_id}, $second,
    'a good endpoint has the event');
my $id = $fast[2]{id};
is(scalar(grep { $_->{event_id} eq $id && $_->{status} eq 'pending' } deliveries($endpoint{slow})),
    1, 'while a slow one has not answered');
$receiver->await($_, 1) for keys %bad;
my $anew = delivery($endpoint{anew}, $id, sub { $_[0]{attempts} }, 'a first attempt');
hurry($endpoint{anew});
$receiver->await('anew', 2);
is(call('POST', "/$endpoint{anew}{id}/deliveries/$anew->{id}/resend")->{status}, 202,
    'a delivery is sent again during an attempt');

my %body;
my %expected = (
    slow     => [ undef, qr/^localhost did not answer in time\./ ],
    failing  => [ 500,   qr/had the status 500/ ],
    redirect => [ 302,   qr/redirect, which is not followed/ ],
    cut      => [ 200,   qr/^localhost broke off\./ ],
);
for my $name (sort { ($b eq 'slow') <=> ($a eq 'slow') } sort keys %expected) {
    my $tried = delivery($endpoint{$name}, $id, sub { $_[0]{attempts} },
        "the first attempt at $name");
    is($tried->{status}, 'pending', "$name: it is tried again");
    is($tried->{response_status}, $expected{$name}[0], "$name: the status of the answer");
    like($tried->{error}, $expected{$name}[1], "$name: why");
    ok($tried->{next_attempt_at}, "$name: when");
    $body{$name} = $tried->{response_body};
    $receiver->answers($name, {});
}
is($body{failing}, 'Out of order', "an answer's first bytes are kept");
my $chatty = delivery($endpoint{chatty}, $id, sub { $_[0]{attempts} }, 'the long answer');
is("$chatty->{status} " . length $chatty->{response_body}, 'succeeded 1024',
    'of a long answer the first kilobyte');
is(scalar $receiver->received('elsewhere'), 0, 'the redirect was not followed');
$anew = delivery($endpoint{anew}, $id, sub { $_[0]{status} eq 'succeeded' }, 'what was sent again');
is($anew->{attempts}, 1, 'what was sent again has begun anew, whatever came of the attempt');

# A second attempt comes after 5 s, or sooner where the test hurries it.
for my $name (sort keys %bad) {
    my $again = delivery($endpoint{$name}, $id,
        sub { hurry($endpoint{$name}); $_[0]{status} eq 'succeeded' }, "success at $name");
    my @came  = $receiver->received($name);
    cmp_ok($again->{attempts}, '>=', 2, "$name: a later attempt succeeds");
    cmp_ok(scalar @came, '>=', $again->{attempts}, "$name: each attempt has come");
    is(join(' ', map { $_->{id} } @came), join(' ', ($id) x @came), "$name: with one id");
    is(scalar(grep { !$_->{verified}[0] } @came), 0, "$name: and was verified each time");
    is(scalar(grep { $_->{body} ne $came[0]{body} } @came), 0, "$name: with the same body");
}

# --- gone ----------------------------------------------------------------------------------------

$receiver->answers('gone', { status => 410 });
my $gone = $receiver->endpoint($shop, 'gone', event_types => ['shop.blocked']);
is(call('POST', "/$gone->{id}/test")->{status}, 202, 'an endpoint that is gone is tested');
wait_for(sub { !call('GET', "/$gone->{id}")->{json}{is_active} }, 20, 'it to be switched off');
like(call('GET', "/$gone->{id}")->{json}{disabled_at}, qr/^20/,
    'one that answers 410 is switched off at once');
wait_for(sub {
    scalar grep { $_->{data}{webhook_endpoint_id} == $gone->{id} }
        @{ api('GET', '/events?type=webhook.disabled', key => $shop->{token})->{json}{data} };
}, 10, 'the event that tells so');
call('DELETE', "/$gone->{id}");

# --- failing for long ----------------------------------------------------------------------------

$receiver->answers('failing', { status => 503 });
my $third = order();
my $failed = { event_id => ($receiver->await_events('fast', 4))[3]{id}, attempts => 0 };
while ($failed->{attempts} < 10) {
    my $before = $failed->{attempts};
    $failed = delivery($endpoint{failing}, $failed->{event_id}, sub { $_[0]{attempts} > $before },
        "attempt $before + 1");
    hurry($endpoint{failing}) if $failed->{status} eq 'pending';
}
is("$failed->{status} " . ($failed->{next_attempt_at} // 'never'), 'failed never',
    'after ten attempts, of three days, it has failed');
like(call('GET', "/$endpoint{failing}{id}")->{json}{failing_since}, qr/^20/,
    'the endpoint says since when it fails');
sql("UPDATE webhook_endpoint SET failing_since = failing_since - 432000000000 "
    . "WHERE id = $endpoint{failing}{id}");
is(call('POST', "/$endpoint{failing}{id}/deliveries/$failed->{id}/resend")->{status}, 202,
    'a delivery is sent again');
wait_for(sub { !call('GET', "/$endpoint{failing}{id}")->{json}{is_active} }, 20,
    'the endpoint to be switched off');
like(call('GET', "/$endpoint{failing}{id}")->{json}{disabled_at}, qr/^20/,
    'one that has failed for five days is switched off');
my ($told) = wait_for(sub {
    my @events = grep { $_->{data}{webhook_endpoint_id} != $gone->{id} }
        @{ api('GET', '/events?type=webhook.disabled', key => $shop->{token})->{json}{data} };
    return @events ? \@events : undef;
}, 10, 'the event');
is($told->[0]{data}{webhook_endpoint_id}, $endpoint{failing}{id}, 'and an event tells so');
is_error(call('POST', "/$endpoint{failing}{id}/test"), 409, 'webhook_endpoint_inactive',
    'a test of one that is off');
is_error(call('POST', "/$endpoint{failing}{id}/deliveries/$failed->{id}/resend"), 409,
    'webhook_endpoint_inactive', 'sending again to one that is off');
my $count = () = $receiver->received('failing');
order();
$receiver->await_events('fast', 5);
is(scalar(my @still = $receiver->received('failing')), $count, 'nothing is sent to it');
$receiver->answers('failing', {});
my $on = call('PATCH', "/$endpoint{failing}{id}", json => { is_active => $true })->{json};
is(join(' ', map { $on->{$_} // 'none' } qw(is_active disabled_at failing_since)), '1 none none',
    'it is switched on again');
is(delivery($endpoint{failing}, $failed->{event_id}, sub { $_[0]{status} eq 'succeeded' },
    'what waited')->{response_status}, 200,
    'and gets what waited');

# --- a shop that is blocked ----------------------------------------------------------------------

my $day     = 86_400_000_000;
my $blocked = new_shop();
my $patient = $receiver->endpoint($blocked, 'patient');

sub patient
{
    my ($what) = @_;
    return (sql("SELECT $what FROM webhook_endpoint WHERE id = $patient->{id}"))[0][0];
}

$receiver->answers('patient', { status => 503 });
api('POST', "/webhook-endpoints/$patient->{id}/test", key => $blocked->{token});
wait_for(sub { patient('failing_since') }, 20, 'the first failure');
ctl('shop', 'block', $blocked->{shop_id}, '--reason', 'a complaint');
wait_for(sub {
    (sql("SELECT count(*) FROM webhook_delivery WHERE endpoint_id = $patient->{id}"))[0][0] == 2;
}, 10, 'the event shop.blocked');
wait_for(sub {
    (sql("SELECT status FROM job WHERE id = '" . patient('job_id') . "'"))[0][0] ne 'running';
}, 60, 'an attempt that had begun to end');
sql("UPDATE webhook_delivery SET due_at = 1 WHERE endpoint_id = $patient->{id}");
my $others = () = $receiver->events('other');
api('POST', "/webhook-endpoints/$waits{other}{id}/test", key => $other->{token});
my $before = () = $receiver->received('patient');
$receiver->await_events('other', $others + 1);
is(scalar(my @none = $receiver->received('patient')), $before,
    "while a shop is blocked nothing is sent to its endpoint, and to others' it is");

# As if it had failed for a day, and been blocked for ten.
sql("UPDATE webhook_endpoint SET failing_since = failing_since - 11 * $day "
    . "WHERE id = $patient->{id}");
sql("UPDATE shop SET blocked_at = blocked_at - 10 * $day WHERE id = $blocked->{shop_id}");
ctl('shop', 'unblock', $blocked->{shop_id});
my %later = map { decode_json($_->{body})->{type} => 1 }
    ($receiver->await('patient', $before + 2))[ $before, $before + 1 ];
is(join(' ', sort keys %later), 'shop.blocked webhook.test', 'what waited is sent later');
wait_for(sub {
    (sql("SELECT sum(attempts) FROM webhook_delivery WHERE endpoint_id = $patient->{id}"))[0][0]
        >= $before + 2;
}, 10, 'the results');
is(patient('is_active'), 1,
    'and the time for which it was blocked is none in which the endpoint has failed');
ctl('shop', 'block', $blocked->{shop_id}, '--reason', 'a complaint');

# --- secrets, tests, deletion --------------------------------------------------------------------

my $new = call('POST', "/$fast->{id}/rotate-secret");
is_answer($new, 200, 'a secret is replaced');
isnt($new->{json}{secret}, $fast->{secret}, 'by another one');
$receiver->secrets('fast', $fast->{secret}, $new->{json}{secret});
my $test = call('POST', "/$fast->{id}/test");
is_answer($test, 202, 'a test');
is("$test->{json}{type} " . ($test->{json}{number} // 'none'), 'webhook.test none',
    'is an event, without a number yet');
my @with_test = $receiver->await_events('fast', 6);
is($with_test[5]{id}, $test->{json}{id}, 'which comes');
is_deeply($with_test[5]{verified}, [ $true, $true ], 'for a day both secrets verify it');
is($with_test[5]{signatures}, 2, 'by two signatures');
is(scalar(grep { $_->{id} eq $test->{json}{id} } map { $receiver->received($_) } keys %bad), 0,
    'other endpoints do not get it');
sql("UPDATE webhook_endpoint SET old_until = 1 WHERE id = $fast->{id}");
call('POST', "/$fast->{id}/test");
is_deeply(($receiver->await_events('fast', 7))[6]{verified}, [ $false, $true ],
    'then the new one alone');

is(call('DELETE', "/$fast->{id}")->{status}, 204, 'an endpoint is deleted');
order();
$receiver->await_events('chatty', 4);
is(scalar(my @all = $receiver->events('fast')), 7, 'and gets nothing more');
wait_for(sub {
    (sql("SELECT count(*) FROM job WHERE type = 'webhook' AND status = 'cancelled' "
        . "AND due_at IS NULL"))[0][0] == 4;
},
    10, 'its job to be over');
is(scalar(grep { $_->{type} eq 'webhook' }
    @{ api('GET', '/jobs?limit=100', key => $shop->{token})->{json}{data} }), 0,
    'jobs of endpoints are not listed');

# --- the operator's side -------------------------------------------------------------------------

my $server = MDL::Instance->new(without => qr/^DownloadsSecretFile/);
my %file   = map { ($_ => "$server->{folder}/secret-$_") } qw(old new);
for (sort keys %file) {
    MDL::Instance::write_file($file{$_}, "the secret $_ of the suites, which is long enough");
    chmod 0600, $file{$_};
}

sub configured
{
    my ($without, @names) = @_;
    return (without => $without,
        extra => 'DownloadsSecretFile ' . join(' ', map { qq("$file{$_}") } @names) . "\n");
}

subtest 'an endpoint in a private network is not connected to, '
    . 'though imports may reach that' => sub {
    $server->configure(configured(qr/^Downloads(?:SecretFile|WebhookAllowNetwork)/, 'old'));
    $server->start;
    $shop = new_shop();
    my $private = $receiver->endpoint($shop, 'private');
    my $event = call('POST', "/$private->{id}/test")->{json}{id};
    my $tried = delivery($private, $event, sub { $_[0]{attempts} }, 'the attempt');
    is($tried->{status} . ($tried->{response_status} // ''), 'pending', 'it is tried again');
    like($tried->{error}, qr/address is not one that webhooks may be sent to/, 'and says why');
    unlike($tried->{error}, qr/127|::1/, 'without telling the address');
    is(scalar $receiver->received('private'), 0, 'nothing came');
    $server->stop;
};

subtest "endpoints go on when the server's secret is replaced" => sub {
    $server->configure(configured(qr/^DownloadsSecretFile/, 'old'));
    $server->start;
    $shop = new_shop();
    my $kept = $receiver->endpoint($shop, 'kept');
    unlike(join('', map { $_->[0] } sql('SELECT secret FROM webhook_endpoint')),
        qr/\Q$kept->{secret}\E/, 'a secret is sealed in the database');
    $server->configure(configured(qr/^DownloadsSecretFile/, 'new', 'old'));
    httpd_graceful();
    my ($code) = ctl('secret', 'retire');
    is($code, 0, 'the former secret is retired');
    $server->configure(configured(qr/^DownloadsSecretFile/, 'new'));
    httpd_graceful();
    my $token = (ctl('key', 'create', $shop->{shop_id}, 'new'))[1]{token};
    $shop = { %$shop, token => $token };
    call('POST', "/$kept->{id}/test");
    my ($came) = $receiver->await('kept', 1);
    is_deeply($came->{verified}, [$true], "the endpoint's own secret is the same");
    $server->stop;
};

done_testing();
