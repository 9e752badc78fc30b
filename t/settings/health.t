# What an operator sees of the service: its background processes, what waits for them, the storage,
# emails and failing webhook endpoints; and what a shop's owner sees of it.
#
# both: the database counts what waits
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $SCRIPT = '"><script>alert(1)</script>';

# Nobody takes the jobs that this suite makes.
my $server = settings_server(
    extra => "DownloadsWorker Off\nDownloadsStorageReserve 1000000\n"
        . "DownloadsStorageQuota 5000000000\n");
my ($shop, $other) = map { new_shop(name => "Shop $_") } 'one', "two $SCRIPT";
my $id = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
told('member', 'add', 'operator', 'operator');

sub health { return visit('operator', 'GET', '/health', @_)->{body} }

# The rows of the table below a heading, each as the texts of its cells.
sub rows
{
    my ($body, $heading) = @_;
    my ($table) = $body =~ m{<h2>\Q$heading\E</h2>\s*<table>.*?<tbody>(.*?)</tbody>}s;
    return map { [ map { s/<[^>]+>//gr =~ s/\s+/ /gr } m{<td[^>]*>(.*?)</td>}gs ] }
        ($table // '') =~ m{<tr>(.*?)</tr>}gs;
}

# The row of a lane, without its name.
sub lane
{
    my ($name, $body, $heading) = @_;
    my ($row) = grep { $_->[0] eq $name } rows($body // health(), $heading // 'What waits');
    return [ @{$row}[ 1 .. $#$row ] ];
}

is(visit($_, 'GET', '/health')->{status}, 403, "no $_ sees it") for qw(owner staff reader nobody);
is(visit('operator', 'GET', '/health')->{status}, 200, 'an operator does');
like(health(headers => { 'accept-language' => 'de' }), qr{<h1>Zustand des Dienstes</h1>},
    'also in German');

# --- background processes ------------------------------------------------------------------------

like(health(), qr/No background process has given a sign of life/, 'at first there is none');
for my $node ([ 'here.example', 5 ], [ "gone.example$SCRIPT", 3600 ]) {
    my ($host, $silence) = @$node;
    my $beat = (time - $silence) * 1_000_000;
    sql("INSERT INTO node (host, pid_file, pid, build, beat_at) "
        . "VALUES ('$host', '/run/httpd.pid', 4711, '0.1.0 (abc)', $beat)");
}
my ($gone, $here) = rows(health(), 'Background processes');
is_deeply([ @$here[ 0, 1, 3 ] ], [ 'here.example /run/httpd.pid', 'works', '0.1.0 (abc)' ],
    'one with a recent sign of life works');
like($here->[2], qr/^\d+ seconds ago$/, 'with how long ago it was');
is_deeply([ @$gone[ 0, 1 ] ],
    [ 'gone.example&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt; /run/httpd.pid', 'silent' ],
    'one without is silent');
like($gone->[2], qr/^\d+ \w+ \d{4}, \d\d:\d\d UTC$/, 'with when the last sign came');

# --- what waits ----------------------------------------------------------------------------------

my $jobs = 0;

# Makes jobs; due is seconds from now.
sub jobs
{
    my ($of, $lane, $due, $count, %with) = @_;
    my $columns = join '', map { ", $_" } sort keys %with;
    my $values  = join '', map { ", $with{$_}" } sort keys %with;
    my $due_at  = defined $due ? int((time + $due) * 1_000_000) : 'NULL';
    my $status  = defined $due ? 'queued' : 'running';
    while ($count > 0) {
        my $some = $count > 500 ? 500 : $count;
        sql("INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, due_at, "
            . "lease_token, bytes_received, created_at$columns) VALUES " . join ', ',
            map { sprintf "('job_0%06d', %d, 'storefront_lookup', '%s', '%s', 0, 5, %s, 0, 0, 0%s)",
                ++$jobs, $of->{shop_id}, $lane, $status, $due_at, $values } 1 .. $some);
        $count -= $some;
    }
    return;
}

is_deeply(lane('Emails'), [ 0, 0, 0, '' ], 'at first nothing waits');
jobs($shop,  'mail', -7200, 2);
jobs($other, 'mail', -60,   1);
jobs($shop,  'mail', 86400, 4);
jobs($shop,  'mail', undef, 1, lease_owner => "'node'");
jobs($shop,  'blocked-mail', -60, 1);
my $emails = lane('Emails');
is_deeply([ @$emails[ 0 .. 2 ] ], [ 3, 4, 1 ], 'jobs that are due, later, and running');
like($emails->[3], qr/\d\d:\d\d UTC$/, 'and since when the oldest has waited');
is_deeply(lane('Small imports'), [ 0, 0, 0, '' ], 'other lanes have none of them');

jobs($other, 'lookup', 86400, 1000);
is(lane('Look-ups at the storefront')->[1], 1000, 'a thousand are counted');
jobs($other, 'lookup', 86400, 1);
is(lane('Look-ups at the storefront')->[1], 'more than 1,000', 'but no more');

my $mine = visit('owner', 'GET', "/$id/")->{body};
is_deeply([ @{ lane('Emails', $mine, 'What waits, and what is stored') }[ 0 .. 2 ] ], [ 2, 4, 1 ],
    "an owner sees the shop's own on the overview");
is_deeply([ map { $_->[0] } rows($mine, 'What waits, and what is stored') ], ['Emails'],
    "and nothing of another shop's, nor what has nothing to do");
sql("UPDATE shop SET bytes_stored = 1500000000 WHERE id = $id");
like(visit('owner', 'GET', "/$id/")->{body},
    qr{<bdi>1\.5\D+GB</bdi> of <bdi>5\.0\D+GB</bdi> stored|1\.5\D+GB of 5\.0\D+GB stored},
    'and what it stores, of its quota');
unlike(visit('staff', 'GET', "/$id/")->{body}, qr/What waits/, 'staff do not');

# --- the storage ---------------------------------------------------------------------------------

my ($left) = health() =~ m{<li><bdi>[^<]*/storage</bdi>: works(.*?)</li>};
like($left // '', qr/\d\D+B left on its disk; writing leaves 1\.0\D+MB free/,
    'the folder works, and has room');
my $partial = "$server->{folder}/storage/partial";
chmod 0500, $partial or die "$partial: $!\n";
wait_for(sub { health() =~ m{/storage</bdi>: <strong>fails</strong>} }, 20,
    'a folder that can not be written to fails');
chmod 0750, $partial or die "$partial: $!\n";
wait_for(sub { health() =~ m{/storage</bdi>: works} }, 20, 'one that can works');
my $identity = "$server->{folder}/storage/identity";
rename $identity, "$identity.own" or die "$identity: $!\n";
wait_for(sub { health() =~ m{/storage</bdi>: <strong>fails</strong>} }, 20,
    'a folder that is not that of the database, as without its file system, fails');
rename "$identity.own", $identity or die "$identity: $!\n";

# --- emails --------------------------------------------------------------------------------------

like(health(), qr/No email has been tried yet/, 'at first no email was tried');
my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
    ->{json}{id};
my $product = mapping_of($shop, [], license_key_tag_ids => [$tag])->{storefront_product_id};
assign($shop, 7001, [$product], storefront_customer_id => '1');
my $order = (sql('SELECT id FROM orders'))[0][0];
my $now   = time . '000000';
sql("INSERT INTO email (shop_id, order_id, message_id, status, attempts, last_error, created_at) "
    . 'VALUES ' . join ', ',
    map { "($id, $order, 'm$_', 'failed', 1, '550 $SCRIPT', $now)" } 1 .. 5);
like(health(), qr/The mail server takes none of the newest emails/, 'one that takes no email');
like(health(), qr/<span lang="en">550 &quot;&gt;&lt;script&gt;/, 'and what it says');
sql("UPDATE email SET status = 'sent', last_error = NULL WHERE message_id IN ('m1', 'm5')");
my $some = health();
like($some, qr/Of the newest 5 emails that were tried, 2 were taken/, 'one that takes some');
unlike($some, qr/takes none/, 'is not said to take none');

# --- webhook endpoints ---------------------------------------------------------------------------

like(health(), qr/No webhook endpoint fails/, 'at first no endpoint fails');
my $hooks = 0;

sub hook
{
    my ($of, $set) = @_;
    my $n = ++$hooks;
    sql("INSERT INTO webhook_endpoint (shop_id, job_id, url, secret, is_active, created_at, "
        . "updated_at) VALUES ($of->{shop_id}, 'job_w$n', 'https://a.example/$n', '', 1, 1, 1)");
    sql("UPDATE webhook_endpoint SET $set WHERE job_id = 'job_w$n'");
    return $n;
}

sub failing
{
    my ($list) = health() =~ m{<h2>Webhook endpoints that fail</h2>\s*<ul[^>]*>(.*?)</ul>}s;
    return map { s/<[^>]+>//gr =~ s/\s+/ /gr } ($list // '') =~ m{<li>(.*?)</li>}gs;
}

hook($shop, 'is_active = 1');
hook($shop, 'is_active = 0, failing_since = 1700000000000000');
hook($shop, 'failing_since = 1700000000000000, deleted_at = 2, is_active = 0, disabled_at = 2');
is_deeply([failing()], [], 'nor one that works, that its shop switched off, or that is deleted');
hook($shop,  'failing_since = 1700000000000000');
hook($other, 'failing_since = 1, is_active = 0, disabled_at = 1700000000000000');
my @fail = failing();
is(scalar @fail, 2, 'those of all shops are there');
like($fail[1], qr{^Shop one: https://a\.example/4 failing since 14 November 2023},
    'one that fails');
like($fail[0],
    qr{^Shop two &quot;&gt;&lt;script&gt;\S+ https://a\.example/5 switched off on 14 November},
    'and one that was switched off for it');
hook($shop, 'failing_since = 1') for 1 .. 19;
is(scalar(failing()), 20, 'of many twenty are shown');
like(health(), qr/There are more/, 'and that there are more');
unlike(health(), qr/<script>alert/, 'what others have typed is text');

$server->stop;
done_testing;
