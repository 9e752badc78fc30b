# When the background process looks for jobs, and what it costs: it does for a job that is due, and
# for nothing else.
#
# both: the database finds what is due
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Mail;
use MDL::Test;
use Test::More;

# So long a poll interval that nothing happens here but by a wake-up, and a look for idle downloads
# each second (sweeps).
$MDL::Target::patience = 40;
my $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsLeaseTime 300
DownloadsPollInterval 60
DownloadsSessionIdle 1
END
my $shop   = shop_with_product('Wake');
my ($worker) = worker_pids();

use constant POLL => 60;    # seconds

# Has another background process begin with its first poll, so that the next is a minute away.
sub begin_anew
{
    my $before = $worker;
    httpd_graceful();
    wait_for(sub { ($worker) = my @pids = worker_pids(); @pids == 1 && $worker != $before }, 30,
        'its successor');
    return at_rest();
}

# Does something behind the first poll of another background process and before the next; returns
# what that returned.
sub before_next_poll
{
    my ($run) = @_;
    for my $try (1 .. 5) {
        my $began = time;
        begin_anew();
        my $result = $run->();
        return $result if time - $began < POLL - 5;
    }
    die "the machine is too slow to do anything between two polls\n";
}

# How often the thread that looks for jobs has waited.
sub waits
{
    my ($count) = MDL::Test::slurp("/proc/$worker/task/$worker/status")
        =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
    return $count;
}

# Waits until the background process waits, and returns how often it has.
sub at_rest
{
    my $before = -1;
    wait_for(sub {
        my $last = $before;
        $before = waits();
        select undef, undef, undef, 0.1;
        $before == $last;
    }, 10, 'the background process to wait');
    return $before;
}

# Waits until each event has its number, for which the background process wakes.
sub numbered
{
    return wait_for(sub { !(sql('SELECT count(*) FROM event WHERE number IS NULL'))[0][0] }, 10,
        'the numbers');
}

# A job that is due, of which nobody was told.
sub unseen
{
    my ($order) = @_;
    sql('UPDATE job SET due_at = ' . time
        . '000000 WHERE email_id = (SELECT e.id FROM email e JOIN orders o ON o.id = e.order_id'
        . " WHERE o.storefront_order_id = '$order')");
    return $order;
}

subtest 'an order without a job has nobody look for jobs' => sub {
    my ($unseen, $status) = @{ before_next_poll(sub {
        ctl('shop', 'set', $shop->{shop_id}, '--mail-delay', 30);
        my $order = unseen(order_for($shop, 'unseen@buyer.example'));
        ctl('shop', 'set', $shop->{shop_id}, '--mail-delay', 0);
        for (1 .. 10) {
            my $reply = assign($shop, digits(), [ $shop->{product} ]);
            is $reply->{status}, 201, 'an order without an email';
        }
        ok numbered(), 'the background process wakes, and numbers what has happened';
        at_rest();
        return [ $order, email_of($shop, $order)->{status} ];
    }) };
    is $status, 'queued', 'but has not looked for jobs';
    order_for($shop, 'wakes@buyer.example');
    ok wait_email($shop, $unseen, sub { $_[0]{status} eq 'sent' }), 'an email has it look';
};

subtest 'a job that is due later has nobody look for jobs' => sub {
    my ($code) = ctl('shop', 'set', $shop->{shop_id}, '--mail-delay', 30);
    is $code, 0, 'the shop delays its emails';
    is before_next_poll(sub {
        my $unseen = unseen(order_for($shop, 'unseen-too@buyer.example'));
        order_for($shop, 'later@buyer.example');
        numbered();
        at_rest();
        return email_of($shop, $unseen)->{status};
    }), 'queued', 'an email that was due waits on';
    ctl('shop', 'set', $shop->{shop_id}, '--mail-delay', 0);
};

subtest 'a job is seen at once, whatever came before' => sub {
    my $began = time;
    for my $number (1 .. 20) {
        my $order = order_for($shop, "quick$number\@buyer.example");
        is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
            "email $number is sent";
    }
    cmp_ok time - $began, '<', 10 * POLL, 'none at a poll, of which there would be twenty';
    is scalar(my @none = grep { $_->[0] ne 'succeeded' }
            sql("SELECT status FROM job WHERE attempts > 0 AND shop_id = $shop->{shop_id}")),
        0, 'and no job is left behind';
};

# What PostgreSQL has counted of an index that the looks go by: looks, and entries that they met.
sub counted
{
    my ($index) = @_;
    my ($row) = sql(
        "SELECT idx_scan, idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = '$index'");
    return $row;
}

# How often the background process has looked for idle downloads, as far as PostgreSQL has counted.
sub sweeps { return counted('download_session_idle')->[0] }

# A session reports all its counts together, a second after the last time at the earliest: once a
# later sweep is counted, so is what was before it.
sub counted_at_rest
{
    my ($index) = @_;
    at_rest();
    my $before = sweeps();
    wait_for(sub { sweeps() > $before }, 20, 'the counts');
    return counted($index);
}

subtest 'what ended jobs leave costs a look nothing' => sub {
    my $holder = hold_snapshot();
    sql("INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, due_at, "
        . "lease_token, bytes_received, created_at) SELECT 'job_' || i, $shop->{shop_id}, 'email', "
        . "'small', 'failed', 1, 1, i, 1, 0, i FROM generate_series(1, 10000) AS i");
    sql('UPDATE job SET due_at = NULL WHERE due_at <= 10000');
    my ($scans, $entries);
    for my $try (1 .. 10) {    # a poll may come between, or another wake-up
        my $before = counted_at_rest('job_due');
        ok ready_asset($shop, "beside-$try.txt", "an import beside an old snapshot, $try"),
            'a file is imported';
        my $after = counted_at_rest('job_due');
        ($scans, $entries) = map { $after->[$_] - $before->[$_] } 0, 1;
        last if $scans == 19;
    }
    # Nine lanes are looked at when it wakes, and nine when it has claimed the job.
    is $scans, 19, 'by two looks and a claim, and none when the job had ended';
    cmp_ok $entries, '<', 100, 'which met few entries of the index';
    close $holder;
} if database() eq 'pgsql';

# Has an event numbered, and returns what that has brought the counts to.
sub counted_behind_event
{
    my $last   = sub {
        (sql("SELECT COALESCE(max(last), 0) FROM event_count WHERE id = $shop->{shop_id}"))[0][0];
    };
    my $before = $last->();
    assign($shop, digits(), [ $shop->{product} ]);
    wait_for(sub { $last->() > $before }, 10, 'the number');
    return counted_at_rest('event_waiting');
}

subtest 'what has its number costs the next events nothing' => sub {
    my ($scans, $entries);
    for my $try (1 .. 10) {    # a poll may come between, or another wake-up
        my $holder = hold_snapshot();
        sql("INSERT INTO event (shop_id, type, data, created_at) "
            . "SELECT $shop->{shop_id}, 'order.assigned', '{}', i "
            . 'FROM generate_series(1, 10000) AS i');
        sql('UPDATE event SET number = 0 WHERE number IS NULL');
        my $before = counted_behind_event();
        my $after  = counted_behind_event();
        ($scans, $entries) = map { $after->[$_] - $before->[$_] } 0, 1;
        close $holder;
        last if $scans == 1;
    }
    is $scans, 1, 'they are looked for once';
    cmp_ok $entries, '<', 5000, 'behind most of those that have one';
} if database() eq 'pgsql';

# A session of PostgreSQL with a snapshot that stays until the handle is closed.
sub hold_snapshot
{
    open my $psql, '|-', MDL::Database::psql(), MDL::Database::patient(), '-qX', '-o', '/dev/null'
        or die "psql: $!";
    $psql->autoflush;
    print $psql "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM job;\n";
    wait_for(sub { (sql("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' "
        . "AND datname = current_database() AND query LIKE '%FROM job%' "
        . "AND application_name = 'psql'"))[0][0] }, 60, 'the snapshot');
    return $psql;
}

# Ends all connections to the database, and says whether there may be new ones.
sub allow_connections
{
    my ($allow) = @_;
    system(MDL::Database::psql(), MDL::Database::patient($ENV{MDL_TEST_PGSQL}), '-qX', '-o',
        '/dev/null', '-c', "ALTER DATABASE $server->{name} ALLOW_CONNECTIONS $allow",
        '-c', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        . "WHERE datname = '$server->{name}'") == 0
        or die "psql failed\n";
    return;
}

# Times of an hour ahead are of before the clock was set back.
subtest 'after an outage a job of before the clock was set back waits for no poll' => sub {
    ctl('shop', 'set', $shop->{shop_id}, '--mail-delay', 30);
    order_for($shop, 'ahead@buyer.example');
    sql('UPDATE job SET updated_at = updated_at + 3600000000, due_at = updated_at + 3600000000 '
        . 'WHERE due_at IS NOT NULL');
    my $log = error_log_size();
    allow_connections('false');
    wait_for(sub { error_log_since($log) =~ /pid $worker:.*MDL0110/ }, 20, 'the outage');
    allow_connections('true');
    order_for($shop, 'wakes@buyer.example');
    ok wait_mail('ahead@buyer.example'), 'its email is sent';
} if database() eq 'pgsql';

$server->stop;
done_testing;
