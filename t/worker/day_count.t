# The counts of each day agree with the events, to the unit: over a month of made events, while the
# process that counts is killed, over a month of real orders, and as it happens. So do the plots.
#
# both: each database adds in its own way
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Customer;
use MDL::DownloadClient;
use MDL::Settings;
use MDL::Test;
use POSIX qw(strftime);
use Test::More;

my $server = settings_server(extra => "DownloadsSessionIdle 1\n");
my $shop   = new_shop();
my %key    = (key => $shop->{token});

# The days of the shop, by date, page by page.
sub days
{
    my ($of) = @_;
    my %days;
    my $path = '/statistics?limit=7';
    while ($path) {
        my $page = api('GET', $path, key => $of->{token})->{json};
        for my $day (@{ $page->{data} }) {
            my $date = delete $day->{date};
            die "$date twice" if $days{$date};
            $days{$date} = $day;
        }
        $path = $page->{has_more} && "/statistics?limit=7&cursor=$page->{next_cursor}";
    }
    return \%days;
}

# What events count, as the API shows them, and their number.
sub counted
{
    my ($of) = @_;
    my ($after, $seen, %days) = (0, 0);
    while (1) {
        my $page = api('GET', "/events?after=$after&limit=100", key => $of->{token})->{json};
        for my $event (@{ $page->{data} }) {
            my ($type, $data) = @$event{qw(type data)};
            my %adds = $type eq 'order.assigned' && $data->{is_new} ? (orders => 1)
                : $type eq 'download.completed' ? (downloads => 1, bytes => $data->{bytes})
                : $type eq 'email.sent'         ? (emails => 1)
                :                                 ();
            my $day = substr $event->{created_at}, 0, 10;
            for my $kind (keys %adds) {
                $days{$day} //= { map { $_ => 0 } qw(orders downloads bytes emails) };
                $days{$day}{$kind} += $adds{$kind};
            }
            $seen++;
        }
        $after = $page->{next_after};
        last if !$page->{has_more};
    }
    return (\%days, $seen);
}

# A count as the settings show it.
sub shown
{
    my ($kind, $n) = @_;
    return $n if $kind ne 'bytes';
    return $n == 1 ? '1 byte' : "$n bytes" if $n < 1000;
    my $unit = 0;
    while ($n >= ($unit ? 999.5 : 1000)) { $n /= 1000; $unit++ }
    return sprintf $n < 99.95 ? '%.1f %s' : '%.0f %s', $n, (qw(byte kB MB GB TB))[$unit];
}

my @KINDS  = qw(orders downloads bytes emails);
my @LABELS = ('New orders', 'Completed downloads', 'Data downloaded', 'Emails sent');

sub today { return int(time / 86400) }

# Checks the plots of the shop's overview and their table, which show the last thirty days.
sub plots_are
{
    my ($of, $all, $name) = @_;
    told('member', 'add', 'staff', 'staff', '--shop', $of->{shop_id});
    my ($today, $body);
    do {
        $today = today();
        $body = visit('staff', 'GET', "/$of->{shop_id}/")->{body} =~ s/\xC2\xA0|&nbsp;/ /gr;
    } while (today() != $today);
    my @dates = map { strftime('%Y-%m-%d', gmtime(86400 * ($today - $_))) } reverse 0 .. 29;
    my $days = { map { $all->{$_} ? ($_ => $all->{$_}) : () } @dates };
    my (%bars, %sums, %table);
    for my $i (0 .. 3) {
        my ($kind, $sum) = ($KINDS[$i], 0);
        $sum += $_->{$kind} for values %$days;
        my ($head, $svg) = $body
            =~ m{<figcaption>\Q$LABELS[$i]\E <strong>(.*?)</strong>.*?<svg(.*?)</svg>}s;
        is $head =~ s/,//gr, shown($kind, $sum), "$name: the sum of $kind";
        is_deeply [ map { s/,//gr } $svg =~ m{<title>([^<]+)</title>}g ],
            [ map { "$_: " . shown($kind, $days->{$_} ? $days->{$_}{$kind} : 0) } @dates ],
            "$name: $kind of each day";
        my ($most) = sort { $b <=> $a } map { $_->{$kind} } values %$days;
        my @heights = $svg =~ m{<rect x="\d+" y="\d+" width="9" height="(\d+)"/>}g;
        is_deeply \@heights, [ map { my $n = $days->{$_} ? $days->{$_}{$kind} : 0;
            $n ? 1 + int($n / $most * 47) : 0 } @dates ], "$name: bars of $kind";
    }
    my @rows = map { s/,//gr =~ s/<[^>]+>/|/gr =~ s/\|+/|/gr }
        $body =~ m{<tr>(<td>\d{4}-.*?)</tr>}g;
    is_deeply \@rows, [ map { my $date = $_;
        "|$date|" . join('', map { shown($_, $days->{$date}{$_}) . '|' } @KINDS) }
            sort { $b cmp $a } keys %$days ], "$name: the table";
    return;
}

# From here on each row that is inserted into the table also does this.
sub trigger
{
    my ($when, $table, %does) = @_;
    return sql(database() eq 'pgsql'
        ? 'CREATE FUNCTION also() RETURNS trigger LANGUAGE plpgsql '
            . "AS 'BEGIN $does{pgsql}; RETURN NEW; "
        . "END'; CREATE TRIGGER also BEFORE INSERT ON $table FOR EACH ROW EXECUTE FUNCTION also()"
        : "CREATE TRIGGER also $when INSERT ON $table BEGIN $does{sqlite3}; END");
}

sub no_trigger
{
    return sql(database() eq 'pgsql' ? 'DROP FUNCTION also CASCADE' : 'DROP TRIGGER also');
}

# A month of events, as their transactions leave them: without numbers.
my $month = new_shop();
my $day_0 = today() - 29;
srand 44;
sub make_events
{
    my ($count) = @_;
    my @rows;
    for my $n (1 .. $count) {
        my $day = int rand 30;
        next if $day == 7;    # a day without any
        my $at = ($day_0 + $day) * 86_400_000_000 + ($n % 3 ? int rand 86_400_000_000 : $n % 2 ? 0
            : 86_399_999_999);
        my ($type, $data) = @{ [
            [ 'order.assigned',     '{"assignment_ids":[1],"is_new":true}' ],
            [ 'order.assigned',     '{"assignment_ids":[2],"is_new":false}' ],
            [ 'download.completed',
                '{"assignment_id":1,"file_id":1,"bytes":' . int(rand 5e9) . '}' ],
            [ 'download.limit_reached', '{"assignment_id":1,"file_id":1,"bytes":1}' ],
            [ 'email.sent',         '{"email_id":1}' ],
            [ 'email.failed',       '{"email_id":1}' ],
        ]->[ rand 6 ] };
        push @rows, "($month->{shop_id}, '$type', '$data', $at)";
    }
    while (my @some = splice @rows, 0, 500) {
        sql('INSERT INTO event (shop_id, type, data, created_at) VALUES ' . join ', ', @some);
    }
    return;
}
make_events(3000);

sub waiting
{
    my ($of) = @_;
    return (sql('SELECT count(*) FROM event WHERE number IS NULL '
        . "AND shop_id = $of->{shop_id}"))[0][0];
}

# A count takes longer than all else of the transaction, so that a kill comes in its middle.
trigger('BEFORE', 'day_count', pgsql => 'PERFORM pg_sleep(0.01)',
    sqlite3 => 'SELECT length(hex(randomblob(1000000)))');
new_file($shop, 10);    # an event of its own wakes the background process
my ($kills, $left) = (0, waiting($month));
for my $try (1 .. 20) {
    last if $kills == 2;
    if (!waiting($month)) {    # those before had been counted when the kill came
        make_events(5000);
        $left = waiting($month);
        httpd_graceful();      # a process that keeps dying waits before it works
    }
    wait_for(sub { my $now = waiting($month); ($now == 0 || $now < $left) && (($left = $now), 1) },
        120, 'some have numbers');
    my ($worker) = worker_pids();
    kill KILL => $worker;
    wait_for(sub { !grep { $_ == $worker } worker_pids() }, 20, 'the background process is killed');
    $kills++ if waiting($month) > 0;
}
is $kills, 2, 'the background process is killed twice while it counts';
no_trigger();
wait_for(sub { waiting($month) == 0 }, 120, 'all events have numbers');
my ($counted, $seen) = counted($month);
cmp_ok $seen, '>', 2000, 'the month has many events';
is_deeply days($month), $counted, 'the counts of each day are those of its events';
plots_are($month, $counted, 'made events');
ok !exists days($month)->{ strftime('%Y-%m-%d', gmtime(($day_0 + 7) * 86400)) },
    'a day without any is left out';

# A month of real orders: the days of their events are put back as they are written.
subtest 'real orders' => sub {
    my $real  = new_shop();
    my $file  = new_file($real, 2_000_000);
    my $sold  = mapping_of($real, [ $file->{id} ])->{storefront_product_id};
    trigger('AFTER', 'event',
        pgsql   => 'NEW.created_at = NEW.created_at - NEW.id % 29 * 86400000000',
        sqlite3 => 'UPDATE event SET created_at = created_at - id % 29 * 86400000000 '
            . 'WHERE id = NEW.id');
    my @cut;
    for my $n (1 .. 200) {
        my $id    = 4_400_000_000 + $n;
        my $reply = assign($real, $id, [$sold], send_email => $n % 2 ? \1 : \0,
            storefront_customer_id => "$n", customer => { email => "a$n\@buyer.example" });
        my $order = { shop => $real, id => $id,
            button => "$reply->{json}{assignments}[0]{id}-$file->{id}",
            path   => $reply->{json}{download_page_url} =~ s{^https?://[^/]+}{}r };
        page('GET', link_of($order)) if $n % 4 == 1;
        next if $n % 10 != 2;
        push @cut, $order;
        my $client = MDL::DownloadClient->over('HTTP/1.1', $server, link_of($order));
        $client->read_until(10_000)->leave(1);
    }
    settled($_, 60) for @cut;
    my $sum;
    wait_for(sub {
        $sum = { map { $_ => 0 } @KINDS };
        for my $day (values %{ days($real) }) { $sum->{$_} += $day->{$_} for @KINDS }
        return $sum->{emails} >= 100 && $sum->{downloads} >= 50 && waiting($real) == 0;
    }, 120, 'all that was bought is counted');
    is_deeply $sum, { orders => 200, downloads => 50, bytes => 100_000_000, emails => 100 },
        'each new order, each download that was not cut, each email';
    my ($events) = counted($real);
    cmp_ok scalar keys %$events, '>', 25, 'on many days';
    is_deeply days($real), $events, 'the counts are those of the events';
    plots_are($real, $events, 'real orders');
    no_trigger();
};

# What really happens.
my $file  = new_file($shop, 12_345);
my $order = buy($shop, $file, limit => 3);
page('GET', link_of($order));
settled($order);
my $other = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};
my $more = assign($shop, $order->{id}, [$other], send_email => JSON::PP::true(),
    storefront_customer_id => $order->{id}, customer => { email => 'a@buyer.example' });
is $more->{status}, 201, 'another product is assigned, with an email' or diag $more->{body};
my $real;    # on one day, or on two at midnight
wait_for(sub {
    $real = { map { $_ => 0 } @KINDS };
    for my $day (values %{ days($shop) }) { $real->{$_} += $day->{$_} for @KINDS }
    return $real->{emails} && $real->{downloads};
}, 120, 'an email and a download');
is_deeply $real, { orders => 1, downloads => 1, bytes => 12_345, emails => 1 },
    'an order, another product for it, a download and an email';
is_deeply days($shop), (counted($shop))[0], 'as the events say';
plots_are($shop, days($shop), 'what happens');
is_deeply days(new_shop()), {}, 'another shop has none of it';

done_testing;
