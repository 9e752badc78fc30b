# Whoever asks to find the downloads of an address does not learn from the answer, nor from its
# time, whether a shop knows the address: known and unknown ones in random order, 5,000 each, have
# the same bytes, and a Kolmogorov-Smirnov test does not tell their times apart in two of three
# runs, although it does once a millisecond is added to one kind. An address gets one email. Takes
# minutes: make check-find (FIND=addresses of a kind).
#
# both: each database writes in its own time
use strict;
use warnings;

use IO::Socket::INET;
use List::Util qw(shuffle sum);
use MDL::Instance;
use MDL::Maildir;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

plan skip_all => 'takes minutes: make check-find' if !$ENV{FIND};

use constant { RUNS => 3, OF_NETWORK => 10, PLANTED => 0.001, SAME => 0.01, OF_SHOP => 100 };

my $server = MDL::Instance->new->start;
my $count  = $ENV{FIND};
my $number = 0;

# The addresses of a shop's customers, each with an order; and as many that it does not know.
sub addresses
{
    my ($shop) = @_;
    my $of   = $shop->{shop_id};
    my $rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $count)";
    sql("$rows INSERT INTO customer (shop_id, storefront_customer_id, email, created_at, "
        . "updated_at) SELECT $of, 'c' || i, 'k' || i || '.$of\@buyer.example', 1, 1 FROM n");
    sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, '
        . "fraud_decision, created_at, updated_at) SELECT $of, 'o' || id, id, "
        . "CAST(1000000000000000 + id AS TEXT) || 'AAAAAA', 'active', 'not_checked', 1, 1 "
        . "FROM customer WHERE shop_id = $of");
    return map { my $i = $_; map { [ $_, "$_$i.$of\@buyer.example" ] } qw(k u) } 1 .. $count;
}

# A connection from a network that has not asked yet.
sub connection
{
    $number++;
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port(), Timeout => 30,
        LocalAddr => sprintf('127.2.%d.%d', $number / 200, 1 + $number % 200))
        // die "no connection to the server: $!\n";
}

# Asks for an address; returns the seconds until the whole answer was there, and the answer
# without its date.
sub ask
{
    my ($socket, $shop, $address) = @_;
    my $form    = 'email=' . $address =~ s/\@/%40/r;
    my $request = "POST /d/find/$shop->{domain} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        . "Content-Type: application/x-www-form-urlencoded\r\n"
        . 'Content-Length: ' . length($form) . "\r\n\r\n$form";
    my ($answer, $began) = ('', time);
    syswrite $socket, $request;
    while ($answer !~ /\A.*?^Content-Length: (\d+)\r\n.*?\r\n\r\n(.*)\z/msi || length $2 < $1) {
        sysread($socket, $answer, 65536, length $answer) or die "the answer broke off: $answer\n";
    }
    my $took = time - $began;
    return ($took, $answer =~ s/^(?:Date|Keep-Alive):.*?\r\n//gmir);
}

# The probability that two samples of one distribution differ as much (Kolmogorov and Smirnov).
sub same_by_chance
{
    my ($one, $two) = @_;
    my @one = sort { $a <=> $b } @$one;
    my @two = sort { $a <=> $b } @$two;
    my ($i, $j, $most) = (0, 0, 0);
    while ($i < @one && $j < @two) {
        my $at = $one[$i] < $two[$j] ? $one[$i] : $two[$j];
        $i++ while $i < @one && $one[$i] <= $at;
        $j++ while $j < @two && $two[$j] <= $at;
        my $apart = abs($i / @one - $j / @two);
        $most = $apart if $apart > $most;
    }
    my $root   = sqrt(@one * @two / (@one + @two));
    my $lambda = ($root + 0.12 + 0.11 / $root) * $most;
    return 1 if $lambda < 0.3;
    return 2 * sum(map { (-1)**($_ - 1) * exp(-2 * $_**2 * $lambda**2) } 1 .. 100);
}

my $alike = 0;
for my $run (1 .. RUNS) {
    my $shop = new_shop(name => 'Find Times');
    my @asks = shuffle(addresses($shop));
    my (%took, %answers, $socket);
    for my $i (0 .. $#asks) {
        $socket = connection() if $i % OF_NETWORK == 0;
        my ($took, $answer) = ask($socket, $shop, $asks[$i][1]);
        push @{ $took{ $asks[$i][0] } }, $took;
        $answers{$answer}++;
    }
    my ($answer) = keys %answers;
    is scalar(keys %answers), 1, "run $run: all answers have the same bytes,";
    like $answer, qr{^HTTP/1.1 200 }, 'and are 200';
    my $p = same_by_chance($took{k}, $took{u});
    $alike++ if $p > SAME;
    my ($known, $unknown) = map { 1000 * sum(@$_) / @$_ } @took{qw(k u)};
    diag sprintf 'known %.3f ms, unknown %.3f ms, p = %.4f', $known, $unknown, $p;
    my $planted = same_by_chance([ map { $_ + PLANTED } @{ $took{k} } ], $took{u});
    cmp_ok $planted, '<=', SAME, 'a millisecond would be found';
}
cmp_ok $alike, '>=', RUNS - 1, 'times are not told apart in two of three runs';

wait_for(sub { (sql("SELECT count(*) FROM job WHERE type = 'find_email' "
    . "AND status IN ('queued', 'running')"))[0][0] == 0 }, 60, 'the emails to leave');
my %to;
$to{ $_->{headers}{to} }++ for mails();
cmp_ok scalar(keys %to), '>=', $count < OF_SHOP ? 1 : OF_SHOP, 'emails left';
cmp_ok scalar(keys %to), '<=', RUNS * OF_SHOP, 'a hundred of a shop at most';
is_deeply [ grep { $to{$_} > 1 } keys %to ], [], 'and one to an address';

done_testing();
