# The tab of webhooks: endpoints, a secret that is shown once, what was sent, and who may do what.
#
# once: the forms call what t/worker/webhooks.t calls on both databases
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Receiver;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $XSS = '"><script>alert(1)</script>';
my ($true, $false) = (JSON::PP::true(), JSON::PP::false());

my $server   = settings_server();
my $receiver = MDL::Receiver->new;
my $shop     = new_shop();
my $id       = $shop->{shop_id};
my $tab      = "/$id/webhooks";
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];

sub endpoints { return @{ api('GET', '/webhook-endpoints', key => $shop->{token})->{json}{data} } }

sub of_api
{
    my ($method, $path) = @_;
    return api($method, "/webhook-endpoints/$path", key => $shop->{token})->{json};
}

# What the owner's form on a page does; "seen" is what the page has.
sub send_form
{
    my ($page, $path, %fields) = @_;
    return submit('owner', visit('owner', 'GET', $page), $path, \%fields);
}

sub audited
{
    my ($row) = sql("SELECT action, noun_id, user_name FROM audit WHERE noun = 'webhook_endpoint' "
        . "ORDER BY id DESC LIMIT 1");
    return "@{$row}[0, 1] " . ($row->[2] // '');
}

# --- a new one -----------------------------------------------------------------------------------

my $page = visit('owner', 'GET', $tab);
is($page->{status}, 200, 'an owner sees the tab');
like($page->{body},
    qr{<a\ href="/settings/$id/webhooks"\ aria-current="page">Webhooks</a>
        .*There\ is\ no\ endpoint\ yet}sx,
    'which is marked, and empty');
like($page->{body},
    qr{name="order\.assigned"\ value="1">
        \ <span>Downloads\ of\ an\ order\ were\ assigned<br><code>order\.assigned}x,
    'with the events in words');
unlike($page->{body}, qr/name="webhook\.test"/,
    'but for the test, which is sent to whom it is for');
my $german = visit('owner', 'GET', $tab, headers => { 'accept-language' => 'de' });
like($german->{body},
    qr/<html lang="de"[^>]*>.*noch keinen Endpunkt.*Eine Bestellung wartet auf Prüfung/s,
    'there is a German page');

my @faults = (
    [ { url => '' }, qr/The URL has up to 2,048 characters, and must be an absolute https URL/ ],
    [ { url => 'ftp://shop.example/hook' },         qr/must be an absolute https URL/ ],
    [ { url => 'https://user:pw@shop.example/' },   qr/without user, password or fragment/ ],
    [ { url => 'https://shop.example/#top' },       qr/without user, password or fragment/ ],
    [ { url => 'https://10.0.0.1/' },               qr/the name of a host/ ],
    [ { url => 'https://shop.example/' . 'x' x 2030 }, qr/up to 2,048 characters/ ],
    [ { description => 'x' x 256 },                 qr/A description has up to 255 characters/ ],
    [ { events => 'some' },                         qr/Choose at least one event/ ],
);
for my $fault (@faults) {
    my %fields = (url => 'https://shop.example/hook', description => "Orders $XSS", events => 'all',
        %{ $fault->[0] });
    my $faulty = send_form($tab, $tab, %fields);
    is($faulty->{status}, 400, join ' ', 'refused:',
        map { "$_ " . substr $fault->[0]{$_}, 0, 40 } keys %{ $fault->[0] });
    like($faulty->{body}, qr/role="alert"[^>]*>[^<]*$fault->[1]/, 'with a sentence');
}
my $again = send_form($tab, $tab, url => 'no URL', description => "Orders $XSS", events => 'some',
    'order.held' => 1);
like($again->{body}, qr/value="no URL".*value="Orders &(?:quot|#34);&gt;&lt;script/s,
    'what was typed is still there, as text');
like($again->{body}, qr/value="some" checked.*name="order\.held" value="1" checked/s,
    'with the choice of events');
my $in_german = visit('owner', 'POST', $tab,
    form => { form_token => form_token($page), url => 'no URL' },
    headers => { origin => origin(), 'accept-language' => 'de' });
like($in_german->{body}, qr/role="alert"[^>]*>Die URL hat bis zu 2.048 Zeichen/,
    'the sentence is in the language of the page');
is(scalar(endpoints()), 0, 'and none was made');

my $url  = $receiver->url('first');
my $made = submit('owner', $page, $tab, { url => " $url ", description => 'Orders & more',
    events => 'some', 'order.assigned' => 1, 'order.held' => 1 });
is($made->{status}, 200, 'an endpoint is made') or diag $made->{body};
my ($secret) = $made->{body} =~ /(whsec_[A-Za-z0-9+\/=]+)/;
ok($secret, 'and its secret is shown');
is($made->{headers}{'cache-control'}, 'private, no-store', 'which no cache keeps');
my ($first) = endpoints();
is_deeply([ @$first{qw(url description event_types is_active)} ],
    [ $url, 'Orders & more', [ 'order.assigned', 'order.held' ], $true ], 'it is what was typed')
    or diag explain $first;
is(audited(), "created $first->{id} owner", 'the audit has it');
$again = submit('owner', $page, $tab, { url => $url, events => 'all' });
is($again->{status}, 409, 'the same form once more is refused');
unlike($again->{body}, qr/whsec_/, 'without a secret');
is(scalar(endpoints()), 1, 'and there is one endpoint');
$page = visit('owner', 'GET', $tab);
like($page->{body},
    qr{<a\ href="/settings/$id/webhooks/$first->{id}"><bdi>\Q$url\E</bdi>.*Orders\ &amp;\ more
        .*<code>order\.assigned</code>.*>on<}sx,
    'the tab lists it');

# --- a test, deliveries, sending again -----------------------------------------------------------

my $own = "$tab/$first->{id}";
$receiver->answers('first', { status => 500, body => "<b>Out of order</b> $XSS" });
$receiver->secrets('first', $secret);
like(visit('owner', 'GET', $own)->{body}, qr/Nothing was sent yet/, 'at first nothing was sent');
my $done = send_form($own, "$own/test");
is($done->{status}, 303, 'a test is sent');
like($done->{headers}{location}, qr{$own\?done=webhook_tested$}, 'and leads back');
is(audited(), "tested $first->{id} owner", 'the audit has it');
my ($test) = $receiver->await('first', 1);
is_deeply($test->{verified}, [$true], 'the secret that was shown verifies it');
$receiver->put_off($first->{id});
my ($delivery) = @{ of_api('GET', "$first->{id}/deliveries")->{data} };
my $tries = $delivery->{attempts} == 1 ? '1 try' : "$delivery->{attempts} tries";
$page = visit('owner', 'GET', "$own?done=webhook_tested");
like($page->{body}, qr/role="status">A test is on its way.*see what your system has answered/,
    'the page says so, and who answers');
like($page->{body}, qr{A test<br><code>\Q$delivery->{event_id}\E<}, 'the event is in the list');
like($page->{body},
    qr{>failing</span>\ <span\ class="soft">\Q$tries\E,
        \ next\ on\ <time\ datetime="\Q$delivery->{next_attempt_at}\E"
        .*>500\ <span\ class="soft"\ lang="en">The\ answer\ had\ the\ status\ 500\.}sx,
    'with its state, when it is tried again, and the answer');
like($page->{body}, qr{<pre[^>]*>&lt;b&gt;Out of order&lt;/b&gt; &(?:quot|#34);&gt;&lt;script&gt;},
    'the first bytes of which are text');
like($page->{body}, qr/It has failed since <time/, 'the endpoint is failing');
like(visit('owner', 'GET', $tab)->{body}, qr/failing since <time/, 'which the tab says, too');
$receiver->answers('first', {});
$done = submit('owner', $page, "$own/resend", { delivery => $delivery->{id} });
like($done->{headers}{location}, qr/\?done=webhook_resent$/, 'it is sent again');
is(audited(), "event_resent $first->{id} owner", 'the audit has it');
wait_for(sub { (of_api('GET', "$first->{id}/deliveries")->{data}[0]{status}) eq 'succeeded' }, 60,
    'success');
like(visit('owner', 'GET', "$own?done=webhook_resent")->{body},
    qr{The event is on its way again.*>delivered<}s, 'and taken');
{
    my ($row) = sql("SELECT id, status, attempts FROM webhook_delivery "
        . "WHERE endpoint_id = $first->{id} ORDER BY id DESC LIMIT 1");
    my $set = sub { sql("UPDATE webhook_delivery SET status = '$_[0]', attempts = $_[1], "
        . "due_at = $_[2] WHERE id = $row->[0]") };
    $set->('pending', 0, 9_000_000_000_000_000);
    like(visit('owner', 'GET', $own)->{body}, qr/>not sent yet</,
        'what has not been sent is not what waits for an answer');
    $set->(@$row[ 1, 2 ], 'NULL');
}
is(send_form($own, "$own/resend", delivery => 999_999)->{status}, 404,
    'a delivery that is not there');
is(send_form($own, "$own/resend", delivery => 'x')->{status}, 404, 'or is none');

sql("INSERT INTO webhook_delivery (endpoint_id, event_id, status, attempts, created_at, updated_at)"
    . " SELECT endpoint_id, 0, 'failed', 10, 1, 1 FROM webhook_delivery WHERE id = $delivery->{id}")
    for 1 .. 60;
$page = visit('owner', 'GET', $own);
is(() = $page->{body} =~ /data-label="Answer"/g, 50, 'fifty deliveries are on a page');
like($page->{body},
    qr{An event that is no longer kept.*>failed</span> <span class="soft">10 tries<}s,
    'also those whose event is gone');
my ($older) = $page->{body} =~ m{href="/settings(\Q$own\E\?before=\d+)">Older};
$page = visit('owner', 'GET', $older);
is(() = $page->{body} =~ /data-label="Answer"/g, 11, 'the others on the next');
unlike($page->{body}, qr/>Older/, 'which is the last');

# --- changes -------------------------------------------------------------------------------------

my @same = map { visit('owner', 'GET', $own) } 1 .. 2;
like($same[0]{body},
    qr/name="active"\ value="1"\ checked.*value="\Q$url\E".*value="some"\ checked
        .*name="order\.held"\ value="1"\ checked/sx,
    'its form has it as it is');
unlike($same[0]{body}, qr/name="order\.revoked" value="1" checked/, 'and no more');
$done = submit('owner', $same[0], $own, { url => $receiver->url('second'), events => 'all' });
like($done->{headers}{location} // $done->{body}, qr/\?done=webhook_changed$/, 'it is changed');
is(audited(), "changed $first->{id} owner", 'the audit has it');
my $now = of_api('GET', $first->{id});
is_deeply([ @$now{qw(url description event_types is_active)} ],
    [ $receiver->url('second'), undef, undef, $false ], 'all of it') or diag explain $now;
$page = visit('owner', 'GET', "$own?done=webhook_changed");
like($page->{body}, qr/The endpoint is changed.*It is switched off: nothing is sent to it/s,
    'and says that it is off');
unlike($page->{body}, qr/Send a test|Send again/, 'without a button that would send');
is(submit('owner', $page, "$own/test", {})->{status}, 409, 'a test is refused');
my $told = submit('owner', $same[1], $own, { url => $url, events => 'all', active => 1 });
is($told->{status}, 412, 'who has not seen the change is told');
like($told->{body}, qr/Somebody has changed this.*value="\Q$url\E"/s, 'with what was typed');
is(submit('owner', $told, $own, { url => $url, events => 'all', active => 1 })->{status}, 303,
    'and may do it once it is seen');
ok(of_api('GET', $first->{id})->{is_active}, 'so it is on again');
is(send_form($own, $own, url => 'no URL')->{status}, 400, 'a URL that is none is refused');
sql("UPDATE webhook_endpoint SET is_active = 0, disabled_at = updated_at WHERE id = $first->{id}");
like(visit('owner', 'GET', $own)->{body},
    qr/It was switched off on <time.*because it had failed for five days/s,
    'one that the service has switched off says so');
like(visit('owner', 'GET', $tab)->{body}, qr/>off<.*switched off by this service on <time/s,
    'as does the tab');

$made = send_form($own, "$own/rotate-secret");
my ($new) = $made->{body} =~ /(whsec_[A-Za-z0-9+\/=]+)/;
ok($new && $new ne $secret, 'the secret is replaced, and shown');
is(audited(), "secret_rotated $first->{id} owner", 'the audit has it');
$page = visit('owner', 'GET', $own);
like($page->{body}, qr/the former secret signs as well/,
    'the page says until when the former one signs');
unlike($page->{body}, qr/whsec_/, 'and shows neither');
is(submit('owner', $same[1], "$own/rotate-secret", {})->{status}, 412,
    'on a page that has not seen that it is not replaced again');

# --- who may -------------------------------------------------------------------------------------

my $other  = new_shop();
my $theirs = $receiver->endpoint($other, 'theirs');
my %role = (staff => 'staff', reader => 'read-only');
for my $user (sort keys %role) {
    my $form = own_form($user, $role{$user}, $own);
    for my $path ($tab, $own) {
        my $seen = visit($user, 'GET', $path);
        is($seen->{status}, 200, "$user sees $path");
        unlike($seen->{body}, qr/<form method="post"/, 'without a form');
    }
    is(submit($user, $form, $_, { url => $url })->{status}, 403, "and may not POST $_")
        for $tab, $own, map { "$own/$_" } qw(rotate-secret test resend delete);
    is(visit($user, 'GET', "$own/delete")->{status}, 403, 'nor look how it would be deleted');
}
is(visit('owner', 'GET', "$tab/$_")->{status}, 404, "$_ is not there")
    for $theirs->{id}, 'x', 999_999;
for my $path ("$tab/$theirs->{id}",
    map { "$tab/$theirs->{id}/$_" } qw(rotate-secret test resend delete)) {
    is(submit('owner', visit('owner', 'GET', $tab), $path, { url => $url, events => 'all',
        delivery => 1 })->{status}, 404, "nothing is done to another shop's: $path");
}
for my $origin ('https://evil.example', undef) {
    my $reply = visit('owner', 'POST', $tab,
        form => { form_token => form_token(visit('owner', 'GET', $tab)), url => $url },
        headers => { defined $origin ? (origin => $origin) : () });
    is($reply->{status}, 403, 'a form of the origin ' . ($origin // '(none)') . ' is refused');
}
is(submit('owner', $page, $tab, { form_token => 'x', url => $url })->{status}, 403,
    'as is a token that nobody was shown');
is(scalar(endpoints()), 1, 'and none of it had an effect');

# --- the end -------------------------------------------------------------------------------------

my $ask = visit('owner', 'GET', "$own/delete");
like($ask->{body}, qr{Delete this webhook endpoint\?.*<bdi>\Q$url\E<}s,
    'before one is deleted, its URL is asked for');
$done = submit('owner', $ask, "$own/delete", {});
like($done->{headers}{location}, qr{/settings$tab\?done=webhook_deleted$}, 'it is deleted');
is(audited(), "deleted $first->{id} owner", 'the audit has it');
like(visit('owner', 'GET', "$tab?done=webhook_deleted")->{body},
    qr/The endpoint is deleted.*There is no endpoint yet/s, 'and gone');
is(visit('owner', 'GET', $own)->{status}, 404, 'as is its page');
my $form = visit('owner', 'GET', $tab);
$receiver->endpoint($shop, "many$_") for 1 .. 10;
my $full = submit('owner', $form, $tab, { url => $url, events => 'all' });
is($full->{status}, 422, 'an eleventh is refused');
like($full->{body}, qr/A shop has at most 10 webhook endpoints.*This shop has ten endpoints/s,
    'with a sentence');
unlike($full->{body}, qr/name="url"/, 'and no form for it');
my $pending = new_shop(approve => 0)->{shop_id};
told('member', 'add', 'owner', 'owner', '--shop', $pending);
like(visit('owner', 'GET', "/$pending/webhooks")->{body}, qr/not approved for the API yet/,
    'a shop that is not approved sees why it has none');
is(submit('owner', $form, "/$pending/webhooks", { url => $url, events => 'all' })->{status}, 403,
    'and can make none');

unlike(join('', map { MDL::Target::slurp($_) // '' } error_log(), MDL::Target::logs_dir()
    . '/access_log'), qr/whsec_/, 'no log has a secret');
$server->stop;
done_testing;
