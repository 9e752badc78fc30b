# The counts of each day agree with the events: over a month of made events, and as it happens.
#
# both: each database adds in its own way
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Customer;
use MDL::Test;
use POSIX qw(strftime);
use Test::More;

my $shop = new_shop();
my %key  = (key => $shop->{token});

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

# A month of events, as their transactions leave them: without numbers.
my $month = new_shop();
my $day_0 = int(time / 86400) - 29;
my (@rows, %made);
srand 44;
for my $n (1 .. 3000) {
    my $day = int rand 30;
    next if $day == 7;    # a day without any
    my $at   = ($day_0 + $day) * 86_400_000_000 + ($n % 3 ? int rand 86_400_000_000 : $n % 2 ? 0
        : 86_399_999_999);
    my ($type, $data) = @{ [
        [ 'order.assigned',     '{"assignment_ids":[1],"is_new":true}' ],
        [ 'order.assigned',     '{"assignment_ids":[2],"is_new":false}' ],
        [ 'download.completed', '{"assignment_id":1,"file_id":1,"bytes":' . int(rand 5e9) . '}' ],
        [ 'download.limit_reached', '{"assignment_id":1,"file_id":1,"bytes":1}' ],
        [ 'email.sent',         '{"email_id":1}' ],
        [ 'email.failed',       '{"email_id":1}' ],
    ]->[ rand 6 ] };
    push @rows, "($month->{shop_id}, '$type', '$data', $at)";
}
while (my @some = splice @rows, 0, 500) {
    sql('INSERT INTO event (shop_id, type, data, created_at) VALUES ' . join ', ', @some);
}
my $waiting = "SELECT count(*) FROM event WHERE number IS NULL AND shop_id = $month->{shop_id}";
new_file($shop, 10);    # an event of its own wakes the background process
wait_for(sub { (sql($waiting))[0][0] == 0 }, 120, 'all events have numbers');
my ($counted, $seen) = counted($month);
cmp_ok $seen, '>', 2000, 'the month has many events';
is_deeply days($month), $counted, 'the counts of each day are those of its events';
ok !exists days($month)->{ strftime('%Y-%m-%d', gmtime(($day_0 + 7) * 86400)) },
    'a day without any is left out';

# What really happens.
my $file  = new_file($shop, 12_345);
my $order = buy($shop, $file, limit => 3);
page('GET', link_of($order));
settled($order);
my $other = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};
my $more = assign($shop, $order->{id}, [$other], send_email => JSON::PP::true(),
    storefront_customer_id => $order->{id}, customer => { email => 'a@buyer.example' });
is $more->{status}, 201, 'another product is assigned, with an email' or diag $more->{body};
my $real;
wait_for(sub {
    ($real) = values %{ days($shop) };
    return $real && $real->{emails} && $real->{downloads};
}, 120, 'an email and a download');
is_deeply $real, { orders => 1, downloads => 1, bytes => 12_345, emails => 1 },
    'an order, another product for it, a download and an email';
is_deeply days($shop), (counted($shop))[0], 'as the events say';
is_deeply days(new_shop()), {}, 'another shop has none of it';

done_testing;
