# A year of a busy shop, half a month at a time: what the service removes by itself stays flat, in
# rows and in bytes, and so does the storage folder. The mass of each half a month is written by
# SQL, as requests would have left it; a few of everything are made by requests. `make check-growth`
# (GROWTH=orders of the year) prints the sizes of all tables for each month.
#
# both: rows are removed by other queries
use strict;
use warnings;

use File::Find qw(find);
use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Mail;
use MDL::Test;
use MDL::Upload;
use Test::More;

plan skip_all => 'takes long: make check-growth' if !$ENV{GROWTH};

use constant { DAY => 86400, SECOND => 1_000_000, STEPS => 24, STEP_DAYS => 15,
    FIRST => 900_000_000_000_000 };
# seconds between what requests have made and the next mass: ids are in the order of time
use constant REST => 14_400;

my %kept = (jobs => 30, uploads => 30, emails => 60, downloads => 60, bounces => 30);
my $keep = join ' ', map { "$_=$kept{$_}" } sort keys %kept;

# So much more than in the first half-year the second may have, in rows and in bytes.
my ($ROWS, $BYTES) = (1.05, 1.15);
my @FLAT = qw(job upload download_session download_transfer idempotency form);

my $server = MDL::Instance->new(clock => 1,
    extra => "DownloadsKeep $keep\nDownloadsPollInterval 1\n")->start;
my $shop   = shop_with_product('Growth');
my $file   = new_file($shop, 1000);
my $other  = new_file($shop, 1000);
my $orders = int($ENV{GROWTH} / STEPS);
my $start  = time;
my ($mapping, $asset) = map { @$_ } sql('SELECT mapping_id, asset_id FROM mapping_file');

# --- the mass ------------------------------------------------------------------------------------

# The first ten digits of the ids that are made at a time.
sub ulid_time
{
    my ($us) = @_;
    my $ms = int($us / 1000);
    return join '',
        map { substr '0123456789abcdefghjkmnpqrstvwxyz', ($ms >> 5 * (9 - $_)) & 31, 1 } 0 .. 9;
}

# SQL that may take its time.
sub slow_sql
{
    my ($sql) = @_;
    my $vars = MDL::Test::vars();
    local $vars->{db_params} = $vars->{db_params} =~ s/statement_timeout=\d+/statement_timeout=0/r;
    return sql($sql);
}

# SQL that inserts a row for each number from one to another.
sub mass
{
    my ($table, $from, $to, $columns, $values, $join) = @_;
    $join //= '';
    return "INSERT INTO $table ($columns) WITH RECURSIVE n (i) AS (SELECT CAST($from "
        . "AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $to) SELECT $values FROM n $join;\n";
}

# Half a month: each order has a look-up, an email with its job and one and a half downloads; of a
# hundred two have a second email, and two an upload.
sub half_a_month
{
    my ($step) = @_;
    my ($from, $to) = ($step * $orders + 1, ($step + 1) * $orders);
    my $begin = ($start + $step * STEP_DAYS * DAY + REST) * SECOND;
    my $each  = int((STEP_DAYS * DAY - REST) * SECOND / $orders);
    my $at    = "$begin + (i - $from) * $each";
    my $ulid  = ulid_time($begin);
    my $number = '(' . FIRST . " + i) || ''";
    my $order = "CROSS JOIN orders o WHERE o.shop_id = $shop->{shop_id} "
        . "AND o.storefront_order_id = $number";
    my $email = "CROSS JOIN email e WHERE e.message_id = 'b' || i || '\@growth.example'";
    my $sha   = "'$file->{sha256}'";
    my ($id, $second) = map { "'$ulid' || (1000000000000000 + 2 * i + $_)" } 0, 1;
    my $due   = 'attempts, max_attempts, lease_token, bytes_received, created_at, started_at, '
        . 'finished_at, updated_at';
    my $ended = "1, 5, 1, 0, $at, $at, $at + 1000000, $at + 1000000";
    my $day   = $to - int($orders / STEP_DAYS);
    my @sql   = (
        mass('customer', $from, $to,
            'shop_id, storefront_customer_id, email, first_name, last_name, created_at, updated_at',
            "$shop->{shop_id}, $number, 'customer-' || i || '\@buyer.example', 'Ada', "
                . "'Lovelace', $at, $at"),
        mass('orders', $from, $to,
            'shop_id, storefront_order_id, customer_id, page_id, access_status, fraud_decision, '
                . 'created_at, updated_at',
            "$shop->{shop_id}, $number, c.id, 'AAAAAAAAAAAAA' || (10000000 + i) || 'A', 'active', "
                . "'not_checked', $at, $at",
            "CROSS JOIN customer c WHERE c.shop_id = $shop->{shop_id} "
                . "AND c.storefront_customer_id = $number"),
        mass('assignment', $from, $to,
            'shop_id, order_id, storefront_product_id, storefront_variant_id, quantity, '
                . 'mapping_id, content, status, created_at',
            "$shop->{shop_id}, o.id, '$shop->{product}', '', 1, $mapping, 'live', 'active', $at",
            $order),
        mass('allowance', $from, $to, 'assignment_id, asset_id, downloads_used, downloads_extra',
            "a.id, $asset, 1, 0", "$order AND a.order_id = o.id"
            =~ s/CROSS JOIN orders o/CROSS JOIN orders o CROSS JOIN assignment a/r),
        mass('order_timeline', $from, $to, 'order_id, action, key_id, created_at',
            "o.id, 'assigned', '$shop->{shop_id}', $at", $order),
        mass('audit', $from, $to, 'shop_id, noun, noun_id, action, via, key_id, created_at',
            "$shop->{shop_id}, 'order', $number, 'assigned', 'api', 'abcdefghijklmnop', $at"),
        mass('email', $from, $to,
            'shop_id, order_id, recipient, message_id, status, attempts, created_at, sent_at',
            "$shop->{shop_id}, o.id, 'customer-' || i || '\@buyer.example', "
                . "'b' || i || '\@growth.example', 'sent', 1, $at, $at",
            $order),
        mass('email', $from, $to,
            'shop_id, order_id, recipient, message_id, status, attempts, created_at, sent_at',
            "$shop->{shop_id}, o.id, 'customer-' || i || '\@buyer.example', "
                . "'r' || i || '\@growth.example', 'sent', 1, $at, $at",
            "$order AND i % 50 = 0"),
        mass('job', $from, $to, "id, shop_id, type, lane, email_id, status, $due",
            "'job_' || $id, $shop->{shop_id}, 'email', 'mail', e.id, 'succeeded', $ended", $email),
        mass('job', $from, $to, "id, shop_id, type, lane, order_id, status, $due",
            "'job_' || $second, $shop->{shop_id}, 'storefront_lookup', 'lookup', o.id, "
                . "'succeeded', $ended", $order),
        mass('upload', $from, $to,
            'id, shop_id, status, filename, title, size, sha256, created_at, '
                . 'expires_at, updated_at',
            "'upl_' || $id, $shop->{shop_id}, CASE WHEN i % 100 = 0 THEN 'aborted' ELSE "
                . "'completed' END, 'upload.bin', 'upload.bin', 1000, $sha, $at, $at, $at",
            'WHERE i % 50 = 0'),
        (map { mass('download_session', $from, $to,
            'id, generation, assignment_id, asset_id, etag, size, status, files, bytes, transfers, '
                . 'opened_at, updated_at',
            "'link$_-' || i, 1, a.id, $asset, '\"$file->{sha256}\"', 1000, 'counted', '$asset=', "
                . "1000, 1, $at, $at",
            "$order AND a.order_id = o.id AND i % $_ = 0"
                =~ s/CROSS JOIN orders o/CROSS JOIN orders o CROSS JOIN assignment a/r) } 1, 2),
        mass('idempotency', $day, $to,
            'shop_id, key_hi, key_lo, fingerprint, status, body, created_at',
            "$shop->{shop_id}, i, i, '" . 'f' x 43 . "', 201, '" . 'b' x 1500 . "', $at"),
    );
    slow_sql((database() eq 'sqlite3' ? 'PRAGMA synchronous = OFF;'
        : 'SET synchronous_commit = off;') . "BEGIN;$_ COMMIT;")
        for @sql;
    return;
}

# --- and what is done by requests ----------------------------------------------------------------

sub real_flow
{
    my ($step) = @_;
    my $buy = buy($shop, $file);
    is page('GET', link_of($buy))->{status}, 200, 'a customer downloads a file';
    my $order = order_for($shop, "real-$step\@buyer.example");
    is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
        'an order has its email';
    my $reply = api('POST', "/assets/$other->{id}/versions", key => $shop->{token},
        json => { source_url => source("version-$step", MDL::Customer::random_bytes(100_000)) });
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'a file has a new version';
    my ($whole, $left) = map { begin_upload($shop, size => 10_000) } 1 .. 2;
    put_bytes($whole, MDL::Customer::random_bytes(10_000));
    is complete_upload($shop, $whole)->{status}, 201, 'an upload is completed';
    patch_bytes($left, 0, MDL::Customer::random_bytes(5_000));
    my $asset = new_file($shop, 50_000);
    is api('DELETE', "/assets/$asset->{id}", key => $shop->{token})->{status}, 204,
        'an asset is deleted';
    my $uploaded = get_upload($shop, $whole);
    is $uploaded->{status}, 'completed', 'and the upload is there';
    return;
}

# --- what there is -------------------------------------------------------------------------------

my @tables = map { $_->[0] } database() eq 'sqlite3'
    ? sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
        . "ORDER BY name")
    : sql("SELECT relname FROM pg_class WHERE relkind = 'r' "
        . "AND relnamespace = 'public'::regnamespace ORDER BY relname");

sub rows_of
{
    return { map { $_->[0] => $_->[1] }
        slow_sql(join ' UNION ALL ', map { "SELECT '$_', count(*) FROM $_" } @tables) };
}

# With their indexes.
sub bytes_of
{
    return { map { $_->[0] => $_->[1] } database() eq 'sqlite3'
        ? sql(
            'SELECT m.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_master m ON m.name = d.name'
            . ' WHERE d.aggregate = TRUE GROUP BY m.tbl_name')
        : sql("SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r'"
            . " AND relnamespace = 'public'::regnamespace") };
}

sub folder_of
{
    my ($files, $bytes) = (0, 0);
    find(sub { if (-f) { $files++; $bytes += -s _ } }, storage_dir());
    return ($files, $bytes);
}

# Rows that should have gone at a time.
sub overdue
{
    my ($now) = @_;
    my %before = map { $_ => int(($now - $kept{$_} * DAY) * SECOND) } keys %kept;
    return map { $_->[0] }
        slow_sql("SELECT 'job' FROM job WHERE finished_at < $before{jobs} AND due_at IS NULL"
        . " UNION SELECT 'upload' FROM upload WHERE status <> 'open' "
        . "AND updated_at < $before{uploads} UNION SELECT 'download' FROM download_session "
        . "WHERE status <> 'open' AND opened_at < $before{downloads} UNION SELECT 'email' "
        . "FROM email r JOIN email b ON b.order_id = r.order_id AND b.id < r.id "
        . "WHERE r.message_id >= 'r' AND r.message_id < 's' AND b.created_at < $before{emails}"
        . ' UNION SELECT \'answer\' FROM idempotency WHERE created_at < '
        . int(($now - DAY) * SECOND)
        . ' UNION SELECT \'blob\' FROM blob WHERE released_at IS NOT NULL');
}

my (%rows, %bytes, %folder);    # the most in each half-year

sub note_most
{
    my ($most, $half, $now) = @_;
    for (keys %$now) {
        $most->{$half}{$_} = $now->{$_} if $now->{$_} > ($most->{$half}{$_} // 0);
    }
    return;
}

sub report
{
    my ($month, $rows, $bytes, $files, $size) = @_;
    diag sprintf '%-24s%12s%12s%10s', "month $month", 'rows', 'MB', 'a row';
    for (grep { $rows->{$_} > 0 } @tables) {
        diag sprintf '%-24s%12d%12.1f%10d', $_, $rows->{$_}, $bytes->{$_} / 1e6,
            $bytes->{$_} / $rows->{$_};
    }
    diag sprintf '%-24s%12d%12.1f', 'DownloadsStorage', $files, $size / 1e6;
    return;
}

for my $step (0 .. STEPS - 1) {
    subtest sprintf('half-month %d', $step + 1) => sub {
        half_a_month($step);
        my $days = ($step + 1) * STEP_DAYS;
        $server->step_clock($days * DAY);
        real_flow($step);
        # An hour after their release blobs may go.
        $server->step_clock($days * DAY + 7200);
        sql('UPDATE blob SET released_at = 1 WHERE released_at IS NOT NULL');
        my $now = time + $days * DAY;
        httpd_graceful();
        ok eval { wait_for(sub { !overdue($now) }, $ENV{GROWTH} / 1000 + 30, 'what is over to go') }
            or diag join ' ', overdue($now);
        slow_sql('VACUUM ANALYZE') if database() eq 'pgsql';    # as autovacuum does in half a month
        my $half = $step < STEPS / 2 ? 1 : 2;
        my ($rows, $bytes) = (rows_of(), bytes_of());
        my ($files, $size) = folder_of();
        note_most(\%rows, $half, $rows);
        note_most(\%bytes, $half, $bytes);
        note_most(\%folder, $half, { files => $files, bytes => $size });
        report(($step + 1) / 2, $rows, $bytes, $files, $size) if $step % 2;
    };
}

for my $table (@FLAT) {
    my ($first, $second) = map { $rows{$_}{$table} // 0 } 1, 2;
    cmp_ok $second, '<=', $first * $ROWS + 10, "rows of $table: $first, then $second";
    ($first, $second) = map { $bytes{$_}{$table} // 0 } 1, 2;
    cmp_ok $second, '<=', $first * $BYTES + 100_000, "bytes of $table: $first, then $second";
}
cmp_ok $rows{2}{email}, '<=', $rows{2}{orders} * 1.01, 'emails: hardly more than one of each order';
# Each step adds one file that is kept.
cmp_ok $folder{2}{files}, '<=', $folder{1}{files} + STEPS,
    "files in DownloadsStorage: $folder{1}{files}, then $folder{2}{files}";

# The meters of httpd's processes that have ended are dead.
ok eval { wait_for(sub { 3 > sql('SELECT id FROM meter') }, 60, 'old meters to go') },
    'no old meters stay';

# The first order of the year.
my $first = api('GET', '/orders/' . (FIRST + 1), key => $shop->{token});
is $first->{status}, 200, 'the first order is there';
is $first->{json}{email}{status}, 'sent', 'with its email';
is $first->{json}{assignments}[0]{files}[0]{downloads_used}, 1, 'what was downloaded of it counts';
is page('GET', $first->{json}{download_page_url} =~ s{^https?://[^/]+}{}r)->{status}, 200,
    'and it has its page';

done_testing;
