# What a download costs, by what was delivered (contract, section 8), and what an order says of it.
# httpd's other processing models: metering_worker.t and metering_prefork.t.
#
# The programs that customers use are tested in t/delivery/download_clients.t; many clients that
# break off, and a server that stops during transfers, in t/metering/download_cuts.t.
#
# both: bytes are settled under other locks
use strict;
use warnings;

use Test::More;

use MDL::Customer;
use MDL::Contract;
use MDL::Metering;
use MDL::Test;

use constant KB => 1024;

my (undef, $shop, $file) = meters_under('event');

# --- what an order shows -------------------------------------------------------------------------

subtest 'An order shows its downloads' => sub {
    my $buy  = buy($shop, $file, limit => 3);
    my $path = link_of($buy);
    my $order = sub { api('GET', "/orders/$buy->{id}", key => $shop->{token})->{json} };
    page('GET', $path, headers => { Range => 'bytes=0-999' });
    page('GET', $path, headers => { Range => 'bytes=500-1499' });
    wait_for(sub { $order->()->{downloads}[0]{bytes_delivered} == 2000 }, 10,
        'what two parts delivered');
    is_shape($order->(), 'whole_order', 'the order');
    my $first = $order->()->{downloads}[0];
    is $first->{transfers}, 2, 'with the number of its requests';
    is $first->{size}, $file->{size}, 'the size of its file';
    is $first->{file_id}, $file->{id}, "and the file's id";
    page('GET', link_of($buy));
    wait_for(sub { $order->()->{downloads}[0]{status} eq 'counted' }, 10, 'the second one');
    is scalar @{ $order->()->{downloads} } - ($buy->{former_sessions} // 0), 2,
        'the newest comes first';
};

subtest 'A session is open as long as it is not idle, and takes its download again '
    . 'when it goes on' => sub {
    my $buy = buy($shop, $file, limit => 1);
    my ($path, $other) = map { link_of($buy) } 1 .. 2;
    my $answer = answer('HTTP/1.1', $path)->read_until(64 * KB);
    is statuses(account($buy)), 'open', 'it is open while it runs';
    is answer('HTTP/1.1', $other)->status, 403, 'meanwhile none is left';
    my $read = $answer->leave(1);
    costs($buy, 0, 'returned');
    is_rest(answer('HTTP/1.1', $path, "$read-"), $read, 'it goes on');
    costs($buy, 1, 'counted');
    is answer('HTTP/1.1', $other)->status, 403, 'and it was the only one';
};

subtest 'An empty file is a download' => sub {
    my $buy  = buy($shop, new_file($shop, 0), limit => 2);
    my $path = link_of($buy);
    is page('GET', $path)->{status}, 200, 'it comes';
    costs($buy, 1, 'counted');
    is page('GET', $path, headers => { Range => 'bytes=-5' })->{status}, 200,
        'and comes again by a range of nothing';
    costs($buy, 2, 'counted counted');
    is page('GET', $path)->{status}, 403, 'then none is left';
};

# --- what is never whole -------------------------------------------------------------------------

subtest 'All but the last byte, again and again, is a download once it adds up to three '
    . 'times the file' => sub {
    my $small = new_file($shop, 100 * KB);
    my $buy   = buy($shop, $small, limit => 1);
    my $all_but_one = '0-' . ($small->{size} - 2);
    for my $time (1 .. 4) {
        my $reply = page('GET', link_of($buy), headers => { Range => "bytes=$all_but_one" });
        is length $reply->{body}, $small->{size} - 1, "all but a byte comes, time $time";
        my $account = costs($buy, $time < 4 ? 0 : 1,
            join ' ', ('counted') x ($time > 3), ('returned') x ($time < 4 ? $time : 3));
        my $sum = 0;
        $sum += $_->{bytes_delivered} for @{ $account->{sessions} };
        ok $sum >= 3 * $small->{size} == ($time > 3), "by then $sum bytes were delivered";
    }
    my $reply = page('POST', $buy->{path}, form => { file => $buy->{button} });
    is $reply->{status}, 403, 'and none is left';
};

done_testing();
