# Who follows GET /events misses nothing: eight processes write, most of them to the same orders, on
# PostgreSQL over two nodes, while another reads on behind the last number that it has seen. What
# has happened to each order, and in which order, is known from its audit trail, which is written
# under the order's lock.
#
# `make check-events` does this with 100,000 writes on PostgreSQL.
#
# both: numbers are given out under other locks
use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $WRITES  = $ENV{EVENTS} // 800;
my $WRITERS = 8;
my $LIMIT   = $ENV{EVENTS} ? 1800 : 600;    # seconds

my @nodes = MDL::Instance->new(mpm => 'event');
if (database() eq 'pgsql') {
    push @nodes, MDL::Instance->new(mpm => 'event', without => qr/^DBDParams/,
        extra =>
            qq(DBDParams "$nodes[0]{vars}{db_params}"\nDownloadsStorage "\@t_logs\@/shared"\n));
    symlink "$nodes[0]{folder}/storage", "$nodes[1]{folder}/shared" or die "symlink: $!\n";
}
$_->start for @nodes;
$nodes[0]->aim;
my $shop   = new_shop();
my $file   = ready_asset($shop, 'followed.bin', 'followed');
my $sold   = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};
my @shared = map { digits() } 1 .. 40;
assign($shop, $_, [$sold])->{status} == 201 or die "an order was not made\n" for @shared;
my $done = logs_dir() . "/events-done-$$";
unlink $done;

# A function that makes requests by a kept connection, which the server may close meanwhile, and
# repeats what it is told to.
sub connection_of_shop
{
    my $http = HTTP::Tiny->new(timeout => 60, keep_alive => 1,
        default_headers => { authorization => "Bearer $shop->{token}",
            'content-type' => 'application/json' });
    return sub {
        my ($method, $path, $json) = @_;
        my %with = (headers => $method eq 'GET' ? {} : { 'idempotency-key' => idem('followed') },
            defined $json ? (content => encode_json($json)) : ());
        my $reply;
        for (my $until = time + $LIMIT;;) {
            $reply = $http->request($method, base_url() . $path, \%with);
            my $again = MDL::Test::is_to_repeat({ %$reply, body => $reply->{content} });
            last if time > $until || !$again && $reply->{status} != 599;
            sleep $reply->{headers}{'retry-after'} // 1 if $again;
        }
        die "$method $path: $reply->{status} $reply->{content}\n"
            if $reply->{status} !~ /^20[01]\z/;
        return decode_json($reply->{content});
    };
}

# Every tenth write makes an order; the others close and open one that all writers share.
sub write_some
{
    my ($writer) = @_;
    $nodes[ $writer % @nodes ]->aim;
    my $call = connection_of_shop();
    srand $writer;
    for my $n (1 .. $WRITES / $WRITERS) {
        if ($n % 10 == 0) {
            $call->('POST', "/orders/9$writer$n/assignments",
                { storefront_customer_id => "9$writer",
                items => [ { storefront_product_id => $sold } ] });
            next;
        }
        my $order = $shared[ rand @shared ];
        $call->('POST', "/orders/$order/" . (rand() < 0.5 ? 'revoke' : 'restore'),
            { reason => "$writer.$n" });
    }
    return { wrote => 1 };
}

# Reads until the writers have ended, each event has its number and nothing follows.
sub follow
{
    my $call  = connection_of_shop();
    my $after = 0;
    my @seen;
    for (my $until = time + $LIMIT; time < $until; ) {
        my $last = -e $done && !(sql('SELECT count(*) FROM event WHERE number IS NULL'))[0][0];
        my $page = $call->('GET', "/events?limit=100&after=$after");
        push @seen, map { [ $_->{number}, $_->{id}, $_->{type}, $_->{data}{storefront_order_id} ] }
            @{ $page->{data} };
        $after = $page->{next_after};
        next if $page->{has_more} || @{ $page->{data} };
        return { seen => \@seen } if $last;
        sleep 0.05;
    }
    die "the events did not come to an end\n";
}

my @writing = (1) x $WRITERS;
my @results = parallel($WRITERS + 2, sub {
    my ($i) = @_;
    return follow() if $i == $WRITERS;
    if ($i == $WRITERS + 1) {    # says when the writers have ended
        wait_for(sub { my @ended = glob "$done.*"; return @ended == $WRITERS }, $LIMIT,
            'the writers');
        open my $out, '>', $done or die "$done: $!\n";
        return {};
    }
    my $result = eval { write_some($i) } // { died => $@ };
    open my $out, '>', "$done.$i" or die "$done.$i: $!\n";
    return $result;
});
unlink $done, glob "$done.*";
is(join('', map { $_->{died} // '' } @results), '', 'eight processes write, one reads');

my @seen = @{ $results[$WRITERS]{seen} // [] };
is_deeply([ map { $_->[0] } @seen ], [ 1 .. @seen ],
    scalar(@seen) . ' events were read, one number after the other');
my %ids = map { $_->[1] => 1 } @seen;
is(scalar keys %ids, scalar @seen, 'none of them twice');
my ($unnumbered) = sql('SELECT count(*), count(number) FROM event');
is("@$unnumbered", scalar(@seen) . ' ' . scalar(@seen), 'and that is all that there are');

my (%told, %happened);
push @{ $told{ $_->[3] } }, $_->[2] =~ s/^order\.//r for grep { $_->[3] } @seen;
push @{ $happened{ $_->[0] } }, $_->[1]
    for sql('SELECT o.storefront_order_id, e.action FROM order_timeline e'
    . ' JOIN orders o ON o.id = e.order_id ORDER BY e.id');
is(scalar keys %told, scalar keys %happened, 'each order has told something');
my @wrong = grep { "@{ $told{$_} // [] }" ne "@{ $happened{$_} }" } sort keys %happened;
is("@wrong", '', 'each what has happened to it, in that order');
cmp_ok(scalar(map { @$_ } values %happened), '>', $WRITES / 2, 'which was a lot');

$_->stop for @nodes;
done_testing();
