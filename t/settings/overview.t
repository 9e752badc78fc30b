# The first page of a shop: what needs somebody, with a link to where it is mended; and nothing
# else.
#
# both: the database finds what needs somebody
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Source;
use MDL::Test;
use POSIX qw(strftime);
use Test::More;

my $XSS = '"><script>alert(1)</script>';

my $server = settings_server();
my $source = MDL::Source->new;
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my %key    = (key => $shop->{token});
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
my $other = new_shop();
told('member', 'add', 'other', 'staff', '--shop', $other->{shop_id});

sub overview
{
    my ($user, @more) = @_;
    return visit($user // 'staff', 'GET', "/$id/", @more)->{body};
}

# The entries of the section with this heading, without their elements.
sub section
{
    my ($heading, $body) = @_;
    my ($list) = ($body // overview()) =~ m{<h2>\Q$heading\E</h2>\n<ul[^>]*>\n(.*?)\n</ul>}s;
    return map { s/<[^>]+>//gr =~ s/\s+/ /gr } split m{</li>\n?}, $list // '';
}

sub nothing { return overview('reader') =~ /Nothing needs attention/ ? 1 : 0 }

is(nothing(), 1, 'at first nothing needs attention');
like(overview('reader', headers => { 'accept-language' => 'de' }), qr/Nichts braucht jemanden/,
    'also in German');

for ([ staff => 1 ], [ owner => 1 ], [ reader => 0 ]) {
    my ($user, $begins) = @$_;
    is(overview($user) =~ m{Start here.*href="/settings/$id/files/uploads"}s ? 1 : 0, $begins,
        "without a file the overview leads a $user to " . ($begins ? 'upload one' : 'nothing'));
}

# --- imports -------------------------------------------------------------------------------------

sub import_from
{
    my ($of, $path, %opt) = @_;
    my $url   = $source->offer($path, { body => 'x', %opt });
    my $reply = api('POST', '/assets', key => $of->{token},
        json => { source_url => $url, filename => $opt{name} // $path });
    die "import: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    wait_job($of, $reply->{json}{job}{id});
    return $reply->{json};
}

my $lost = import_from($shop, 'lost.pdf', status => 404,
    name => 'lost "><img src=x onerror=alert(1)>.pdf');
import_from($other, 'theirs.pdf', status => 404);
my ($line) = section('Imports that failed');
like($line, qr/^lost &quot;&gt;&lt;img .*pdf File $lost->{asset}{id}/,
    'an import that failed is there, with its name');
like($line, qr/There is no file at its address\..* The reason: .*\bTry again: lost/,
    'what to do, why, and a button');
is(scalar(section('Imports that failed')), 1, "without another shop's");
is(nothing(), 0, 'so something needs somebody');
unlike(overview('reader'), qr/<form method="post"/, 'a reader sees no button');
unlike(overview(), qr/theirs|<img/, 'and what was typed is text');
like(overview('staff', headers => { 'accept-language' => 'de' }),
    qr/Unter der Adresse gibt es keine Datei\..*Erneut versuchen/s, 'also in German');
like(overview('staff', headers => { 'accept-language' => 'de' }),
    qr/Der Grund: <span lang="en">localhost answered with status 404\./,
    'with the host and what it did, which is in English');

sub retry
{
    my ($user, $job, $page) = @_;
    my $of = $user eq 'other' ? $other->{shop_id} : $id;
    return submit($user, $page // visit($user, 'GET', "/$of/"), "/$of/jobs/$job/retry", {});
}

my $before = visit('staff', 'GET', "/$id/");
is(retry('reader', $lost->{job}{id}, own_form('reader', 'read-only', "/$id/"))->{status}, 403,
    'a reader may not try again');
is(retry('other', $lost->{job}{id})->{status}, 404, "another shop's import is not there");
is(retry('staff', 'job_none')->{status}, 404, 'nor is one that never was');
$source->offer('lost.pdf', { body => 'found' });
my $again = retry('staff', $lost->{job}{id});
is($again->{status}, 303, 'staff try again') or diag $again->{body};
like(visit('staff', 'GET', "/$id/?done=import_retried")->{body},
    qr/role="status">The import is on its way/, 'which is said');
is(wait_job($shop, $lost->{job}{id})->{status}, 'succeeded', 'and it succeeds');
is(nothing(), 1, 'so nothing needs attention');
unlike(overview('staff'), qr/Start here/, 'and with a file nobody is told where to begin');
is(retry('staff', $lost->{job}{id}, $before)->{status}, 409, 'what succeeded is not tried again');
is_deeply(
    [ (sql("SELECT noun, noun_id, action, user_name FROM audit ORDER BY id DESC LIMIT 1"))[0] ],
    [ [ 'job', $lost->{job}{id}, 'retried', 'staff' ] ], 'the audit has who tried again');

my $version = import_from($shop, 'version.pdf', status => 404);
is(scalar(section('Imports that failed')), 1, 'another fails');
my $new = api('POST', "/assets/$version->{asset}{id}/versions", %key,
    json => { source_url => $source->offer('good.pdf', { body => 'good' }) });
wait_job($shop, $new->{json}{job}{id});
is(nothing(), 1, 'which is settled once the file has come by another job');
$version = import_from($shop, 'deleted.pdf', status => 404);
api('DELETE', "/assets/$version->{asset}{id}", %key);
is(nothing(), 1, 'or was deleted');
my $old = import_from($shop, 'old.pdf', status => 404);
sql("UPDATE job SET finished_at = finished_at - 31 * 86400000000 WHERE id = '$old->{job}{id}'");
is(nothing(), 1, 'or failed long ago');
{
    my $errors = MDL::Target::slurp(
        MDL::Target::top_dir() . '/mod_downloads/settings/import_error.c');
    sql("UPDATE job SET finished_at = finished_at + 31 * 86400000000 WHERE id = '$old->{job}{id}'");
    for my $code (($errors =~ /import_errors\[\] = \{(.*?)NULL/s)[0] =~ /"(\w+)"/g,
        'internal_error') {
        sql("UPDATE job SET error_code = '$code', error_message = NULL "
            . "WHERE id = '$old->{job}{id}'");
        for my $language (qw(en de)) {
            like(overview('reader', headers => { 'accept-language' => $language }),
                qr{<p>[^<]{20,}</p>\n</li>}, "$code, $language: says what to do");
        }
    }
}
api('POST', "/jobs/$old->{job}{id}/retry", %key);
wait_job($shop, $old->{job}{id});
api('DELETE', "/assets/$old->{asset}{id}", %key);

# --- emails --------------------------------------------------------------------------------------

my $asset   = ready_asset($shop, 'book.pdf', 'the book');
my $product = mapping_of($shop, [ $asset->{id} ])->{storefront_product_id};

sub order
{
    my ($number, $status, $address) = @_;
    assign($shop, $number, [$product], storefront_customer_id => "$number",
        send_email => JSON::PP::true,
        customer => { $address ? (email => "c$number\@example.com") : () });
    wait_for(sub {
        api('GET', "/orders/$number", %key)->{json}{email}{status} =~ /^(?:sent|no_recipient)$/;
    }, 20, "the email of $number");
    sql("UPDATE email SET $status WHERE order_id = (SELECT id FROM orders "
        . "WHERE storefront_order_id = '$number')") if $status;
    return;
}

order(8001, "status = 'failed', sent_at = NULL, last_error = '550 no such $XSS'", 1);
order(8002, "bounced_at = sent_at, last_error = '552 mailbox full'", 1);
order(8003, '');
order(8004, '', 1);
# A refusal of help leaves after the email that came back, which it does not make good.
sql('INSERT INTO email (shop_id, order_id, message_id, status, help_id, attempts, created_at) '
        . "SELECT shop_id, id, 'refusal\@test', 'sent', 1, 1, created_at FROM orders "
        . "WHERE storefront_order_id = '8002'");
my @lines = section('Emails that did not arrive');
is(scalar @lines, 3, 'emails that did not arrive are there');
like($lines[0], qr/^Order 8003: there is no address/, 'one without an address');
like($lines[1], qr/^Order 8002: the email to c8002\@example\.com came back .*552 mailbox full$/,
    'one that came back, with why');
like($lines[2],
    qr/^Order 8001: the email to c8001\@example\.com could not be sent .*550 no such &quot;/,
    'one that failed');
like(overview(), qr{<a href="/settings/$id/orders/8001">Order 8001</a>},
    'each with a link to the order');
unlike(overview(), qr/<script>alert/, 'and what a mail server says is text');
is_deeply([ map { s/<[^>]+>//gr }
    visit('staff', 'GET', "/$id/orders")->{body}
        =~ m{<td class="short" data-label="Email">(.*?)</td>}g ],
    [ 'sent', 'no address', 'came back', 'failed' ], 'the list of orders says the same');
unlike(visit('other', 'GET', "/$other->{shop_id}/")->{body}, qr/Emails that/,
    'another shop has none of it');
api('POST', '/orders/8001/resend', %key, json => {});
wait_for(sub { api('GET', '/orders/8001', %key)->{json}{email}{status} eq 'sent' }, 20,
    'the second email');
is(scalar(section('Emails that did not arrive')), 2, 'sending it again settles it');
api('POST', '/orders/8002/revoke', %key, json => {});
is(scalar(section('Emails that did not arrive')), 1, 'as does revoking the order');
sql("UPDATE email SET created_at = created_at - 31 * 86400000000");
is(nothing(), 1, 'or time');

# --- addresses -----------------------------------------------------------------------------------

sub mistyped
{
    my ($number, $address, %more) = @_;
    assign($shop, $number, [$product], storefront_customer_id => "$number",
        customer => { email => $address }, %more);
    return;
}

mistyped(8005, 'ada@gmial.com');
mistyped(8006, 'lin@yaho.com');
mistyped(8007, 'a&b@hotmial.com');
mistyped(8008, 'ada@gmail.com');
@lines = section('Addresses that may be mistyped');
is(scalar @lines, 3, 'addresses that are probably mistyped are there, the newest first')
    or diag explain \@lines;
like($lines[2],
    qr/^Order 8005: the email went to ada\@gmial\.com; ada\@gmail\.com was probably meant /,
    'each with what was probably meant');
like($lines[0], qr/ a&amp;b\@hotmial/, 'as text');
like(overview(), qr{<a href="/settings/$id/orders/8005">Order 8005</a>}, 'and a link to its order');
unlike(visit('other', 'GET', "/$other->{shop_id}/")->{body}, qr/mistyped/,
    'another shop has none of it');
like(overview('reader', headers => { 'accept-language' => $_->[0] }), $_->[1], "in $_->[0]")
    for [ de => qr/mit vermutlichem Tippfehler/ ], [ fr => qr/sans doute mal saisies/ ],
    [ es => qr/quiz\S+ mal escritas/ ];
mistyped(8005, 'ada@gmial.com');
is(scalar(section('Addresses that may be mistyped')), 3, 'the same again is no second entry');
my ($page) =
    api('GET', '/orders/8006', %key)->{json}{download_page_url} =~ m{^https?://[^/]+(/.+)$};
page('GET', $page);
wait_for(sub { section('Addresses that may be mistyped') == 2 }, 20, 'the visit of a page');
is(scalar(grep { /8006/ } section('Addresses that may be mistyped')), 0,
    'an address at which somebody got the email is left out');
api('PATCH', '/orders/8005', %key, json => { email => 'ada@gmail.com' });
is(scalar(grep { /8005/ } section('Addresses that may be mistyped')), 0,
    'as is one that was corrected');
my $customer = api('GET', '/orders/8007', %key)->{json}{customer}{id};
api('PATCH', "/customers/$customer", %key, json => { email => 'lou@hotmail.com' });
is(nothing(), 1, 'so nothing needs attention');
mistyped(8009, 'ada@gmial.com');
api('POST', '/orders/8009/revoke', %key, json => {});
is(nothing(), 1, 'nor does an order that was revoked');

# --- license keys --------------------------------------------------------------------------------

my $tag = api('POST', '/license-key-tags', %key,
    json => { name => "Pro $XSS", low_stock_threshold => 1 })->{json};
api('POST', '/license-key-tags', %key, json => { name => 'No threshold' });
is_deeply([ section('License keys that run low') ],
    ['Pro &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;: 0 left, with a threshold of 1. '
        . 'Add keys: Pro &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;'],
    'license keys that run low are there');
like(overview(), qr{ href="/settings/$id/license-keys/$tag->{id}"}, 'with where to add some');
is_deeply([ section('License keys that run low', overview('reader')) ],
    ['Pro &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;: 0 left, with a threshold of 1.'],
    'which whoever only reads may not');
api('POST', "/license-key-tags/$tag->{id}/keys", %key, json => { keys => [qw(a b)] });
is(nothing(), 1, 'and gone when there are enough');

# --- what customers wait for ---------------------------------------------------------------------

my $owed  = api('POST', '/license-key-tags', %key, json => { name => "Seats $XSS" })->{json}{id};
my $seats = mapping_of($shop, [], license_key_tag_ids => [$owed])->{storefront_product_id};
assign($shop, 8010, [ { storefront_product_id => $seats, quantity => 2 } ],
    storefront_customer_id => '8010');
is_deeply([ section('Customers wait for license keys') ],
    ['Seats &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt; one purchase waits'],
    'a customer who waits for a key');
api('POST', "/license-key-tags/$owed/keys", %key, json => { keys => [qw(a b)] });
is(nothing(), 1, 'is served when keys come');

my $gone = import_from($shop, 'gone.pdf', status => 404)->{asset}{id};
my $sold = mapping_of($shop, [$gone])->{storefront_product_id};
assign($shop, $_, [$sold], storefront_customer_id => $_) for qw(8011 8012);
like((section('Imports that failed'))[0], qr/ 2 purchases wait /, 'customers who wait for a file');
unlike(overview('reader', headers => { 'accept-language' => 'de' }), qr/purchases/, 'in German');
my $there = api('POST', "/assets/$gone/versions", %key,
    json => { source_url => $source->offer('there.pdf', { body => 'there' }) });
wait_job($shop, $there->{json}{job}{id});
is(nothing(), 1, 'have it once it is there');

my $hook = api('POST', '/webhook-endpoints', %key,
    json => { url => source_url('hook'), event_types => ['shop.blocked'] })->{json}{id};
is(nothing(), 1, 'a webhook endpoint needs nobody');
sql("UPDATE webhook_endpoint SET failing_since = 1700000000000000 WHERE id = $hook");
like((section('Webhook endpoints that fail'))[0],
    qr{^http\S+/hook failing since .*14 November 2023}, 'until it fails');
like(overview(), qr{<a href="/settings/$id/webhooks/$hook">}, 'with a link to it');
sql("UPDATE webhook_endpoint SET is_active = 0, disabled_at = 1700000000000000 WHERE id = $hook");
like((section('Webhook endpoints that fail'))[0], qr/hook switched off on/,
    'or was switched off for it');
is(api('DELETE', "/webhook-endpoints/$hook", %key)->{status}, 204, 'it is deleted');
is(nothing(), 1, 'and needs nobody');

# --- 30 days -------------------------------------------------------------------------------------

my $quiet = new_shop();
told('member', 'add', 'staff', 'staff', '--shop', $quiet->{shop_id});
my $plain = visit('staff', 'GET', "/$quiet->{shop_id}/")->{body};
like($plain, qr/Nothing was sold, downloaded or sent yet/, 'a new shop has no plots');
unlike($plain, qr/<svg/, 'nor an empty one');
my ($today, $plots);
do {    # and once more if the day ends meanwhile
    $today = int(time / 86400);
    sql("DELETE FROM day_count WHERE shop_id = $quiet->{shop_id}");
    sql('INSERT INTO day_count (shop_id, day, kind, n) VALUES '
        . join ', ', map { "($quiet->{shop_id}, $_->[0], $_->[1], $_->[2])" }
        [ $today, 0, 3 ], [ $today, 2, 5_000_000 ], [ $today - 29, 0, 1 ], [ $today - 30, 0, 70 ]);
    $plots = visit('staff', 'GET', "/$quiet->{shop_id}/")->{body};
} while $today != int(time / 86400);
my @titles = $plots =~ m{<title>(\d{4}-\d\d-\d\d: [^<]+)</title>}g;
is(scalar @titles, 120, 'four plots of 30 days');
my @date = map { strftime('%Y-%m-%d', gmtime($_ * 86400)) } $today - 29, $today;
is_deeply([ @titles[ 0, 29 ] ], [ "$date[0]: 1", "$date[1]: 3" ], 'each day has its value');
like($titles[89], qr/^$date[1]: 5\.0\D+MB$/, 'bytes as a size');
like($plots, qr{<figcaption>New orders <strong>4</strong>}, 'and all of them the sum');
like($plots, qr{<td>$date[1]</td><td class="number" data-label="New orders">3</td>},
    'the table has the same');
unlike($plots, qr/style=/, 'without inline style');

# --- many ----------------------------------------------------------------------------------------

{
    my $many = join ', ', map { "('job_00$_', $id, 'asset_import', 'small', $asset->{id}, "
        . "'failed', 1, 5, 1, 0, 0, 0, " . time() . "000000)" } 100 .. 350;
    sql("INSERT INTO job (id, shop_id, type, lane, asset_id, status, attempts, max_attempts, "
        . "lease_token, bytes_received, created_at, started_at, finished_at) VALUES $many");
    is(scalar(section('Imports that failed')), 0,
        'of one file whose last job succeeded nobody is needed');
    sql("INSERT INTO asset (shop_id, status, filename, title, version, created_at, updated_at) "
        . "SELECT $id, 'failed', 'many' || id, 'many', 1, 0, 0 FROM job WHERE id LIKE 'job_00%'");
    sql("UPDATE job SET asset_id = (SELECT a.id FROM asset a WHERE a.filename = 'many' || job.id) "
        . "WHERE id LIKE 'job_00%'");
    my $body = overview();
    is(scalar(section('Imports that failed', $body)), 20,
        'of many failed imports twenty are shown');
    like($body, qr/There are more/, 'and that there are more');
}

$server->stop;
done_testing;
