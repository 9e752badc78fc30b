# Maintenance: pages and reads go on; every operation of the API, every form and every download that
# would change something gets 503 with Retry-After, and no row changes. What runs ends first, and
# jobs wait until it is over.
#
# both: each learns of it by its own transactions
use strict;
use warnings;

use MDL::Customer;
use MDL::Database;
use MDL::DownloadClient;
use MDL::OpenApi;
use MDL::Operations;
use MDL::Settings;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant SIZE => 3_000_000;

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', 'operator', 'operator');
told('member', 'add', 'owner', 'owner', '--shop', $id);

# Everything that is stored, but the heartbeats of nodes and processes.
my @tables = map { $_->[0] } sql(database() eq 'pgsql'
    ? "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
    : "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
@tables = grep { !/^(?:node|meter)$/ } @tables;

sub everything
{
    return { map { $_ =>  [ sort map { "@$_" } sql(qq(SELECT * FROM "$_")) ] } @tables };
}

sub unchanged
{
    my ($before, $name) = @_;
    my $after = everything();
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply [ grep { !eq_array($before->{$_}, $after->{$_}) } @tables ], [], $name;
}

sub is_closed
{
    my ($reply, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is "$reply->{status} " . ($reply->{json}{error}{code} // '') . ' '
        . ($reply->{headers}{'retry-after'} // ''), '503 maintenance 60', $name;
}

# --- what is asked for meanwhile ------------------------------------------------------------------

my $file  = new_file($shop, SIZE);
my $buy   = buy($shop, $file);
my $link  = link_of($buy);
my $other = buy($shop, $file);
my $begun = link_of($other);
page('GET', $begun, headers => { Range => 'bytes=0-99' });
my $upload = begin_upload($shop, size => 10);
my @asked  = map { [ $_, request_for($_, $shop) ] } operations();
my %pages  = settings_pages();
my $key    = idem();
my $made   = api('POST', '/categories', key => $shop->{token}, idem => $key,
    json => { name => 'before' });
settle();
page('GET', $buy->{path});
wait_for(sub { sql('SELECT 1 FROM order_visit') }, 20, 'the visit');
wait_for(sub { !sql('SELECT 1 FROM download_transfer') }, 60, 'the end of each transfer');

# --- it begins, and waits for what runs -----------------------------------------------------------

my $client = MDL::DownloadClient->over('HTTP/1.1', $server, link_of(buy($shop, $file)));
$client->read_until(1000);
my ($code, $answer) = ctl('maintenance', 'on', '--wait', 0);
is "$code $answer->{error}{code}", '6 still_running', 'a running download is waited for';
is told('maintenance', 'status')->{downloads}, 1, 'and counted';
$client->rest;
is $client->sha256, $file->{sha256}, 'it ends whole';
if (database() eq 'pgsql') {
    my $lock = lock_rows('shop');
    is((ctl('maintenance', 'on', '--wait', 0))[0], 6, 'an older transaction is waited for, too');
    unlock($lock);
}
is((ctl('maintenance', 'on', '--reason', 'a move'))[0], 0, 'then nothing runs any more');
is told('maintenance', 'status')->{reason}, 'a move', 'the reason is kept';

my $before = everything();

# --- the API --------------------------------------------------------------------------------------

for (@asked) {
    my ($operation, $request) = @$_;
    my $reply = send_request($operation, $request,
        key => $operation->{open} ? undef : $shop->{token});
    if ($operation->{write}) {
        is_closed($reply, "$operation->{id} is refused");
        is_deeply [ misfits($operation, $reply) ], [], 'as the document has it';
    } else {
        cmp_ok $reply->{status}, '<', 400, "$operation->{id} goes on";
    }
}
is_deeply api('POST', '/categories', key => $shop->{token}, idem => $key,
    json => { name => 'before' })->{json}, $made->{json}, 'an answer of before is given again';
ok api('GET', '/health/ready')->{json}{maintenance}, 'the readiness says so';
my %upload = (
    putUploadBytes  => ask_upload('PUT', $upload, '0123456789'),
    sendUploadPiece => tus('PATCH', $upload, '0123456789', 'Upload-Offset' => 0,
        'Content-Type' => 'application/offset+octet-stream'),
    terminateUpload => tus('DELETE', $upload),
);
for (sort keys %upload) {
    is_closed($upload{$_}, "$_ is refused");
    is_deeply [ misfits(operation($_), $upload{$_}) ], [], 'as the document has it';
}

# --- customers ------------------------------------------------------------------------------------

my %SAYS = (
    en => 'paused for maintenance', de => 'Wartungsarbeiten', fr => 'suspendus pour maintenance',
    es => 'en pausa por mantenimiento', ja => 'メンテナンス', ar => 'للصيانة',
);
for my $path ($link, $begun) {
    my $reply = page('GET', $path, headers => { Range => 'bytes=100-199' });
    is "$reply->{status} $reply->{headers}{'retry-after'}", '503 60', 'no bytes are sent';
}
for (sort keys %SAYS) {
    like page('GET', $link, headers => { 'Accept-Language' => $_ })->{body}, qr/$SAYS{$_}/,
        "customers read why: $_";
}
is page('HEAD', $link)->{status}, 200, 'HEAD goes on';
is page('GET', $buy->{path})->{status}, 200, 'the page goes on';
is page('POST', $buy->{path}, form => { help => 1 })->{status}, 503, 'nobody is asked for help';
is page('POST', $buy->{path} =~ s{/o/.*}{/find/$shop->{domain}}r,
    form => { email => 'a@buyer.example' })->{status}, 503,
    'no order is looked for';

# --- the settings ---------------------------------------------------------------------------------

for my $path (sort grep { !/\{\}.*\{\}/ } keys %pages) {
    my $real = '/' . $path =~ s/^\{\}/$id/r;
    my $user = $path =~ /^\{\}/ && $path !~ /block|approve|suspend/ ? 'owner' : 'operator';
    if ($pages{$path}{get} && $path ne 'sign-in') {
        cmp_ok visit($user, 'GET', $real)->{status}, '<', 400, "$real is shown";
    }
    next if !$pages{$path}{post} || $path =~ /^sign-/;
    my $page = visit($user, 'GET', $user eq 'operator' ? '/shops' : "/$id/categories");
    my $reply = submit($user, $page, $real,
        { name => 'new', user => 'new', domain => 'new.example' });
    like $reply->{status}, qr/^(?:503|400|404|409|415|422)$/, "$real changes nothing";
}
my $reply = submit('owner', visit('owner', 'GET', "/$id/categories"), "/$id/categories",
    { name => 'new' });
is "$reply->{status} $reply->{headers}{'retry-after'}", '503 60', 'a form is refused';
like $reply->{body}, qr/closed for maintenance/, 'and its page says why';

# --- the operator ---------------------------------------------------------------------------------

($code, $answer) = ctl('shop', 'suspend', $id);
is "$code $answer->{error}{code}", '5 maintenance', 'commands change nothing either';
like((ctl('check'))[2], qr/Maintenance is on/, 'the check says so');
unchanged($before, 'none of this has changed a row');

# --- jobs wait ------------------------------------------------------------------------------------

my ($job) = map { $_->[0] } sql("SELECT min(id) FROM job WHERE type = 'asset_import'");
sql("UPDATE job SET due_at = 1, status = 'queued', attempts = 0 WHERE id = '$job'");
$before = everything();
wait_for(sub { $server->error_log =~ /MDL0388/ }, 60, 'the background process');
my $log = error_log_size();
httpd_graceful();
wait_for(sub { error_log_since($log) =~ /MDL0388/ }, 60, 'the new background process');
unchanged($before, 'a due job waits, also after a restart');
is((ctl('maintenance', 'off'))[0], 0, 'it is over');
is api('POST', '/categories', key => $shop->{token}, json => { name => 'after' })->{status}, 201,
    'at once';
is page('GET', $link)->{status}, 200, 'downloads begin again';
is page('GET', $begun, headers => { Range => 'bytes=100-' })->{status}, 206, 'and go on';
is ask_upload('PUT', $upload, '0123456789')->{status}, 204, 'uploads too';
wait_for(sub { sql("SELECT 1 FROM job WHERE id = '$job' AND attempts > 0") }, 20, 'the job');
wait_for(sub { (sql('SELECT count(*) FROM order_visit'))[0][0] >= 1 }, 20, 'the visits');
like $server->error_log, qr/MDL0389/, 'the log says that it is over';
is((ctl('maintenance', 'off'))[0], 4, 'it is not over twice');

$server->stop;
done_testing();
