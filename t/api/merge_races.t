# Merges beside assignments, other merges and news. Locks of the suite hold requests, so that the
# order of events is certain. No order stays with a customer who was merged.
#
# pgsql: SQLite has one writer at a time
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Database;
use MDL::Httpd;
use MDL::Instance;
use MDL::Maildir;
use MDL::Test;
use Test::More;

# Two nodes that wait for locks as long as the suite holds them.
my $server = MDL::Instance->new;
my $conf   = "DownloadsPollInterval 1\nDBDParams \""
    . MDL::Database::patient($server->{vars}{db_params}) . "\"\n";
$server->configure(extra => $conf);
$server->start;
my $other = MDL::Instance->new(without => qr/^DBDParams/,
    extra => "DownloadsStorage $server->{folder}/storage\nDownloadsMigrate Off\n"
        . "DownloadsSecretFile $server->{folder}/secret\n"
        . "DownloadsMailTransport maildir:$server->{folder}/mail\n$conf");
$other->start;
$server->aim;

my $shop    = new_shop();
my %key     = (key => $shop->{token});
my $file    = ready_asset($shop, 'book.pdf', 'the book')->{id};
my $product = mapping_of($shop, [$file])->{storefront_product_id};

sub assignment
{
    my ($order, $number) = @_;
    return [ 'POST', "/orders/$order/assignments", %key, json => {
        items => [ { storefront_product_id => $product } ],
        defined $number ? (storefront_customer_id => "$number") : (),
        customer => { email => ($number // 'guest') . '@buyer.example' },
    } ];
}

# A customer with an order: { number, id, order }.
sub customer
{
    my ($number, $order) = (digits(), digits());
    my $reply = api(@{ assignment($order, $number) });
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    return { number => $number, id => $reply->{json}{customer}{id}, order => $order };
}

sub merge
{
    my ($from, $into) = @_;
    return [ 'POST', "/customers/$from->{id}/merge", %key,
        json => { into_customer_id => $into->{id} } ];
}

sub lock_order    { return lock_rows("orders WHERE storefront_order_id = '$_[0]{order}'") }
sub lock_customer { return lock_rows("customer WHERE id = $_[0]{id}") }

# Waits until so many of the service's transactions wait for a lock, by a statement like this.
sub held
{
    my ($count, $statement) = @_;
    $statement //= '%';
    return wait_for(sub {
        (sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            . "AND wait_event_type = 'Lock' AND application_name <> 'psql' "
            . "AND query LIKE '$statement'"))[0][0] == $count;
    }, 60, "$count transactions to wait for a lock");
}

# Sends requests one after the other, each when the one before it waits for a lock; when all wait,
# calls $then. Returns the answers' statuses.
sub in_turn
{
    my ($then, @requests) = @_;
    my ($n, @statuses) = (0);
    my $next;
    $next = sub {
        my $request = shift @requests or return $then->();
        my $at = $n++;
        my ($reply) = api_at_once(sub { held($n); $next->() }, $request);
        diag($reply->{body}) if $reply->{status} !~ /^20[01]$/;
        $statuses[$at] = $reply->{status};
        return;
    };
    $next->();
    return join ' ', @statuses;
}

sub owner_of { return api('GET', "/orders/$_[0]", %key)->{json}{customer}{id} }

sub stranded
{
    wait_for(sub {
        (sql('SELECT (SELECT count(*) FROM customer WHERE merging > 0) + (SELECT count(*) FROM job '
            . "WHERE type = 'customer_merge' AND status IN ('queued', 'running'))"))[0][0] == 0;
    }, 60, 'the end of the merges');
    return join ' ', map { $_->[0] } sql('SELECT o.storefront_order_id FROM orders o '
        . 'JOIN customer c ON c.id = o.customer_id WHERE c.merged_into IS NOT NULL');
}

subtest 'An assignment comes while its customer is merged' => sub {
    my ($stays, $goes) = map { customer() } 1 .. 2;
    my ($new, $old) = (digits(), $goes->{order});
    my $lock = lock_order($goes);
    is(in_turn(sub { unlock($lock) }, merge($goes, $stays), assignment($new, $goes->{number}),
        assignment($old, $goes->{number})), '200 201 200', 'all are answered');
    is(owner_of($_), $stays->{id}, 'the order is with who stays') for $old, $new;
    is(stranded(), '', 'none is left behind');
};

subtest 'A merge comes while its customer gets an order' => sub {
    my ($stays, $goes) = map { customer() } 1 .. 2;
    my $new  = digits();
    my $lock = lock_tables('assignment');
    is(in_turn(sub { unlock($lock) }, assignment($new, $goes->{number}), merge($goes, $stays)),
        '201 200', 'both are answered');
    is(owner_of($_), $stays->{id}, 'the order is with who stays') for $new, $goes->{order};
    is(stranded(), '', 'none is left behind');
};

subtest 'Assignments and a second merge between the steps of a merge' => sub {
    my ($goes, $stays, $last) = map { customer() } 1 .. 3;
    sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, '
        . "fraud_decision, created_at, updated_at) SELECT $shop->{shop_id}, '77' || i, "
        . "$goes->{id}, 'busy' || i, 'active', 'not_checked', 1000 + i, 1000 + i "
        . 'FROM generate_series(100, 549) AS i');
    my @paused = map {
        $_->aim;
        wait_for(sub { (worker_pids())[0] }, 60, 'a background process');
    } $server, $other;
    $server->aim;
    pause_process($_) for @paused;
    is(api(@{ merge($goes, $stays) })->{status}, 200, 'one with 451 orders is merged');
    is(owner_of('77100'), $goes->{id}, 'most of them are still to be moved');
    for ([ digits(), $goes->{number} ], [ '77100', $goes->{number} ], [ '77101', undef ]) {
        my ($order, $number) = @$_;
        is(api(@{ assignment($order, $number) })->{status}, 201, "an assignment of order $order");
        is(owner_of($order), $stays->{id}, 'is with who stays');
    }
    is(api(@{ merge($stays, $last) })->{status}, 200, 'who stays is merged');
    my $newer = digits();
    is(api(@{ assignment($newer, $goes->{number}) })->{status}, 201, 'a later order');
    is(owner_of($newer), $last->{id}, 'is with the last');
    kill CONT => @paused;
    is(stranded(), '', 'none is left behind');
    is_deeply([ sql("SELECT count(*) FROM orders WHERE customer_id = $last->{id}") ],
        [ [ 450 + 1 + 1 + 1 + 2 ] ], 'all orders are with the last');
};

subtest 'Merges at once' => sub {
    for ([ 'into each other', 2, [ 0, 1 ], [ 1, 0 ] ],
        [ 'the first goes on', 3, [ 0, 2 ], [ 1, 0 ] ],
        [ 'the second goes on', 3, [ 1, 0 ], [ 0, 2 ] ]) {
        my ($what, $count, @merges) = @$_;
        my @all  = map { customer() } 1 .. $count;
        my $lock = lock_customer($all[0]);
        is(in_turn(sub { unlock($lock) }, map { merge(map { $all[$_] } @$_) } @merges), '200 200',
            "$what: both are answered");
        my %ids = map { api('GET', "/customers/$_->{id}", %key)->{json}{id} => 1 } @all;
        is(scalar keys %ids, 1, 'all are one');
        is(owner_of($_->{order}), (keys %ids)[0], 'who has the order') for @all;
        is(stranded(), '', 'none is left behind');
    }
};

subtest 'A deadlock of an assignment and a merge' => sub {
    my ($goes, $stays, $last) = map { customer() } 1 .. 3;
    my ($first, $second) = (lock_order($goes), lock_order($stays));
    my $log = error_log_size();
    # When the first merge is over, the assignment has the former customer, the second merge has who
    # stays, and both wait for the order. Whoever gets it then waits for the other.
    my $then = sub {
        unlock($first);
        held(1, $_) for '%INSERT INTO orders %', '%FROM orders WHERE customer_id = %';
        unlock($second);
    };
    is(in_turn($then, merge($goes, $stays), assignment($stays->{order}, $goes->{number}),
        merge($stays, $last)), '200 200 200', 'all are answered');
    like(error_log_since($log), qr/MDL0109.*deadlock/, 'one was run again');
    is(owner_of($_->{order}), $last->{id}, 'who stays has the order') for $goes, $stays;
    is(stranded(), '', 'none is left behind');
};

subtest 'News of a customer who is merged' => sub {
    $file    = ready_asset($shop, 'news.pdf', 'the news')->{id};
    $product = mapping_of($shop, [$file])->{storefront_product_id};
    my ($goes, $stays, $later) = map { customer() } 1 .. 3;
    my $told = sub {
        my ($version) = @_;
        my $reply = api('POST', "/assets/$file/versions", %key, json => {
            source_url => source("news-$version.pdf", "news $version"),
            notify => JSON::PP::true() });
        is(wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'a version comes');
        return;
    };
    my $count = sub { scalar(my @found = mails("$_[0]{number}\@buyer.example")) };
    my $lock = lock_order($goes);
    my $first = sub {
        $told->(2);
        wait_for(sub { !grep { $count->($_) != 1 } $goes, $stays, $later }, 60, 'the news');
        unlock($lock);
    };
    is(in_turn($first, merge($goes, $stays)), '200', 'news leave while a merge waits');
    $lock = lock_tables('news_item');
    $told->(3);
    held(1);
    is(api(@{ merge($later, $stays) })->{status}, 200, 'a merge is done while news wait');
    unlock($lock);
    wait_for(sub {
        # As if a day had passed.
        sql('UPDATE news_address SET sent_at = sent_at - 86400000000 WHERE sent_at IS NOT NULL');
        sql('UPDATE news_address SET due_at = 1 WHERE due_at IS NOT NULL');
        sql('UPDATE news_shop SET due_at = 1');
        return !grep { $count->($_) < 2 } $goes, $stays, $later;
    }, 60, 'the news');
    is($count->($_), 2, 'each address is told of each version') for $goes, $stays, $later;
    is(stranded(), '', 'no order is left behind');
};

unlike($server->error_log . $other->error_log, qr/MDL0201/, 'no request was answered 500');

$_->stop for $server, $other;
done_testing;
