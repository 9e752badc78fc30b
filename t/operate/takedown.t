# downloadsctl shop block and unblock: within 5 seconds nothing of a shop is served or worked on,
# and afterwards all goes on where it was.
#
# both: how soon a process sees a block depends on the database
use strict;
use warnings;

use MDL::Contract;
use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use constant { KB => 1024, MB => 1024 * 1024 };

my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\nDownloadsSessionIdle 1\n")
    ->start;
my $source = MDL::Source->new;
my $shop   = new_shop();
my $other  = new_shop();

sub job { my ($of, $id) = @_; return api('GET', "/jobs/$id", key => $of->{token})->{json} }

# Queues an import whose source goes on slowly, and stops before the end; whoever asks a second time
# gets the rest.
sub slow_import
{
    my ($of, $name) = @_;
    my $url = $source->offer($name,
        { size => 1000 * KB, rate => 64 * KB, hold => 800 * KB, etag => '"one"' },
        { rate => undef, hold => undef });
    my $reply = api('POST', '/assets', key => $of->{token}, json => { source_url => $url });
    die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json}{job}{id};
}

# An order whose email leaves in an hour, unless the test makes it due before.
sub order_with_email
{
    my ($of, $product, $to) = @_;
    my $reply = assign($of, digits(), [$product], send_email => JSON::PP::true(),
        customer => { email => $to });
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

# A client in a process of its own that goes on reading a download, or sending an upload, and notes
# the time of each piece; returns a function that gives the time of the last, once it was cut off.
sub noting
{
    my ($step) = @_;
    pipe my $in, my $out or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $in;
        $out->autoflush(1);
        local $SIG{PIPE} = 'IGNORE';
        while ($step->()) {
            print $out time, "\n";
            sleep 0.05;
        }
        print $out "end\n";
        POSIX::_exit(0);
    }
    close $out;
    readline $in;    # it has begun
    return sub {
        my $last = 0;
        my $ended = 0;
        local $SIG{ALRM} = sub { kill KILL => $pid };
        alarm 120;
        while (my $line = <$in>) {
            $line eq "end\n" ? $ended = 1 : ($last = $line + 0);
        }
        alarm 0;
        waitpid $pid, 0;
        return $ended ? $last : undef;
    };
}

sub reading
{
    my ($path) = @_;
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path);
    return noting(sub { $client->read_some(16 * KB) });
}

# A PUT of 50 MB, which would take minutes; ends when the server has answered.
sub sending
{
    my ($upload) = @_;
    my ($path) = $upload->{upload_url} =~ m{^https?://[^/]+(/.+)$};
    my $socket = MDL::Test::connection();
    print $socket "PUT $path HTTP/1.1\r\nHost: localhost\r\nContent-Length: @{[ 50 * MB ]}\r\n\r\n";
    $socket->flush;
    return noting(sub {
        vec(my $bits = '', fileno($socket), 1) = 1;
        return 0 if select my $ready = $bits, undef, undef, 0;
        return syswrite $socket, 'x' x (8 * KB);
    });
}

sub block { my ($of) = @_; return ctl('shop', 'block', $of->{shop_id}, '--reason', 'a complaint') }

# --- before --------------------------------------------------------------------------------------

my $large   = new_file($shop, 64 * MB);
my $small   = new_file($shop, 1000);
my $link    = api('POST', '/links', key => $shop->{token},
    json => { title => 'Forum', url => 'https://example.com/forum' })
    ->{json}{id};
my $product = mapping_of($shop, [ $small->{id} ], link_ids => [$link])->{storefront_product_id};
my $theirs  = new_file($other, 1000);
my $bought  = buy($shop, $large, limit => 1);
my $file    = link_of($bought);
my $page    = assign($shop, digits(), [$product])->{json}{download_page_url};
my ($visit) = page('GET', $page)->{body} =~ m{href="([^"]+/l/[^"]+)"};
my $paused  = begin_upload($shop, size => 10);
patch_bytes($paused, 0, 'first');

my %addresses = ('a page' => $page, "a link's" => $visit,
    "a file's" => link_of(buy($shop, $small)));
is page('GET', $addresses{$_})->{status}, /link/ ? 303 : 200, "$_ address works"
    for sort keys %addresses;

my ($to, $elsewhere) = map { "$_-takedown-$$\@buyer.example" } qw(blocked elsewhere);
ctl('shop', 'set', $_->{shop_id}, '--mail-delay', 60) for $shop, $other;
order_with_email($shop, $product, $to);
order_with_email($other, mapping_of($other, [ $theirs->{id} ])->{storefront_product_id},
    $elsewhere);
my $running = slow_import($shop, 'running');
wait_for(sub { job($shop, $running)->{progress}{bytes_received} }, 20, 'an import to be under way');

my $read = reading($file);
my $sent = sending(begin_upload($shop, size => 50 * MB));

# --- blocked -------------------------------------------------------------------------------------

my ($exit, $json) = block($shop);
my $began = time;
is $exit, 0, 'the shop is blocked';
is $json->{block_reason}, 'a complaint', 'for that reason';
ok $json->{blocked_at}, 'at a time';
is $json->{status}, 'approved', 'and its status is what it was';
sql("UPDATE job SET due_at = 1 WHERE type = 'email' AND finished_at IS NULL");
# As one that was being queued at that moment.
my ($late) = map { $_->[0] }
    sql("SELECT id FROM job WHERE shop_id = $shop->{shop_id} AND type = 'email'");
sql("UPDATE job SET lane = 'mail' WHERE id = '$late'");

is_error(api('GET', '/ping', key => $shop->{token}), 403, 'shop_blocked', 'a request');
is api('GET', '/ping', key => $other->{token})->{status}, 200, "another shop's is answered";
for my $name (sort keys %addresses) {
    my $answer = page('GET', $addresses{$name}, headers => { 'Accept-Language' => 'en' });
    is $answer->{status}, 403, "$name address answers 403";
    like $answer->{body}, qr/This shop is unavailable/, 'with a sentence';
    like page('GET', $addresses{$name}, headers => { 'Accept-Language' => 'de' })->{body},
        qr/Dieser Shop ist nicht verfügbar|Dieser Shop ist nicht verf\xc3\xbcgbar/,
        'in German, too';
}
is page('POST', $bought->{path}, form => { file => $bought->{button} })->{status}, 403,
    'so does a button';
is tus('HEAD', $paused)->{status}, 403, 'and an upload';
is patch_bytes($paused, 5, 'other')->{status}, 403, 'which takes no bytes';

# What a busy machine may add: as much as these requests took, which is little otherwise.
my $limit = $began + 5 + (time - $began);
my $last = $read->();
ok defined $last, 'a running download is cut off';
cmp_ok $last // 0, '<', $limit, 'within 5 seconds';
$last = $sent->();
ok defined $last, 'a running upload is cut off';
cmp_ok $last // 0, '<', $limit, 'within 5 seconds';
my @before = $source->requests('running');
wait_for(sub { ($source->requests('running'))[0]{ended} }, 20, 'the end of the import');
cmp_ok +($source->requests('running'))[0]{ended}, '<', $limit + 10,
    'a running import is broken off';

wait_mail($elsewhere);
sleep 5;
is scalar(mails($to)), 0, 'no email of the shop has left, while that of another has';
is scalar($source->requests('running')), scalar(@before), 'and no import was tried again';
wait_for(sub { sql("SELECT 1 FROM job WHERE id = '$running' AND status = 'queued'") }, 60,
    'the end of its attempt');
my %jobs = map { $_->[0] => $_ } sql("SELECT type, status, attempts, error_code FROM job"
    . " WHERE shop_id = $shop->{shop_id} AND finished_at IS NULL");
is_deeply [ map { $_ || 'none' } @{ $jobs{asset_import} }[ 1, 3 ] ], [ 'queued', 'none' ],
    'the import is queued';
is $jobs{asset_import}[2], 0, 'and has lost no attempt';
is $jobs{email}[2], 0, 'nor has the email';

is((block($shop))[0], 0, 'a shop can be blocked twice');

# --- unblocked -----------------------------------------------------------------------------------

($exit, $json) = ctl('shop', 'unblock', $shop->{shop_id});
is $exit, 0, 'the shop is unblocked';
is $json->{blocked_at}, undef, 'that is said';
wait_for(sub { api('GET', '/ping', key => $shop->{token})->{status} == 200 }, 5,
    'its key to be good');
is page('GET', $addresses{$_})->{status}, /link/ ? 303 : 200, "$_ address works again"
    for sort keys %addresses;
is offset_of($paused), 5, 'the upload is where it was';
is patch_bytes($paused, 5, 'other')->{status}, 204, 'and goes on';
wait_mail($to, 30);
my $job = wait_job($shop, $running);
is_deeply [ @$job{qw(status attempts)} ], [ 'succeeded', 1 ],
    'the import succeeds, in its first attempt';
my ($first, $second) = $source->requests('running');
ok $second->{range}, 'from where it was broken off' or diag explain $second;
my $answer = page('GET', $file);
is $answer->{status}, 200, 'the download can begin anew';
is length $answer->{body}, $large->{size}, 'and comes whole';
ctl('shop', 'set', $other->{shop_id}, '--mail-delay', 0);
order_with_email($other, mapping_of($other, [ $theirs->{id} ])->{storefront_product_id},
    "after-$elsewhere");
wait_mail("after-$elsewhere");
is scalar(mails($to)), 1, 'the email was sent once';
my ($held) = sql("SELECT count(*) FROM job WHERE lane LIKE 'blocked-%'");
is $held->[0], 0, 'no job is left behind';

# --- many jobs -----------------------------------------------------------------------------------

subtest 'thousands of queued jobs wait, and go on in the lanes where they were' => sub {
    my $n = 2500;
    my $db = database() eq 'pgsql'
        ? "SELECT g FROM generate_series(1, $n) t (g)"
        : "WITH RECURSIVE t (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM t WHERE g < $n) "
        . "SELECT g FROM t";
    sql("INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, due_at, "
        . "lease_token, bytes_received, created_at) SELECT 'job_test' || (10000 + g), "
        . "$shop->{shop_id}, 'email', CASE WHEN g % 2 = 0 THEN 'mail' ELSE 'bulk' END, 'queued', "
        . "0, 5, 4000000000000000, 0, 0, 1 FROM ($db) s");
    my $lanes = sub { return { map { $_->[0] => $_->[1] }
        sql("SELECT lane, count(*) FROM job WHERE id LIKE 'job_test%'"
        . ' GROUP BY lane') } };
    block($shop);
    is_deeply $lanes->(), { 'blocked-mail' => 1250, 'blocked-bulk' => 1250 }, 'blocked';
    ctl('shop', 'unblock', $shop->{shop_id});
    is_deeply $lanes->(), { mail => 1250, bulk => 1250 }, 'unblocked';
    sql("DELETE FROM job WHERE id LIKE 'job_test%'");
};

# --- refused -------------------------------------------------------------------------------------

is((ctl('shop', 'block', $shop->{shop_id}))[0], 1, 'a reason must be given');
is((ctl('shop', 'block', $shop->{shop_id}, '--reason', ''))[0], 5, 'which is not empty');
is((ctl('shop', $_, 999_999, $_ eq 'block' ? ('--reason', 'none') : ()))[0], 4, "$_ of no shop")
    for qw(block unblock);

$server->stop;
done_testing;
