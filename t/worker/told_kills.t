# Thousands of buyers are told of a version while orders come in and the background process is
# killed again and again: emails of orders leave first, nobody is told twice except by the email
# that a cut connection had just brought, whoever has unsubscribed gets none, and a shop sends 2,000
# a day. Takes minutes: make check-told (TOLD=buyers).
#
# both: each database settles what was cut in its own way
use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP;
use MDL::Contract;
use MDL::Httpd;
use MDL::Instance;
use MDL::MailServer;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

plan skip_all => 'takes minutes: make check-told' if !$ENV{TOLD};

use constant { DAY => 86_400_000_000, OF_DAY => 2000, AT_ONCE => 20 };

my $true   = JSON::PP::true();
my $buyers = $ENV{TOLD};
my $ended  = int($buyers / 10);
my $mail   = MDL::MailServer->new;
my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\n"
    . "DownloadsMailTransport smtp://127.0.0.1:$mail->{port}\nDownloadsMailRate 0\n")->start;
my $source = MDL::Source->new;
my $shop   = new_shop(name => 'Busy Shop');

# A file that b1 to bN have bought.
sub file_of
{
    my ($name, $n) = @_;
    my $id      = ready_asset($shop, "$name-$$", "$name 1", title => $name)->{id};
    my $mapping = mapping_of($shop, [$id]);
    sql("INSERT INTO assignment (shop_id, order_id, storefront_product_id, storefront_variant_id, "
        . "quantity, mapping_id, content, status, created_at) SELECT $shop->{shop_id}, o.id, "
        . "'$mapping->{storefront_product_id}', '', 1, $mapping->{id}, 'live', 'active', 1 "
        . "FROM orders o WHERE o.storefront_order_id LIKE 'b%' AND o.shop_id = $shop->{shop_id} "
        . "ORDER BY o.id LIMIT $n");
    return { id => $id, name => $name, product => $mapping->{storefront_product_id} };
}

sub version
{
    my ($file) = @_;
    my $reply = api('POST', "/assets/$file->{id}/versions", key => $shop->{token}, json => {
        source_url => source("$file->{name}-2-$$", "$file->{name} 2"), notify => $true });
    wait_job($shop, $reply->{json}{job}{id});
    return;
}

sub day_passes
{
    sql('UPDATE news_address SET sent_at = sent_at - ' . DAY . ' WHERE sent_at IS NOT NULL');
    sql('UPDATE news_shop SET due_at = 1');
    return;
}

# How much is left to tell: jobs at work, and items that no job has yet.
sub left
{
    return @{ (sql("SELECT (SELECT count(*) FROM job WHERE type IN ('tell_buyers', 'news_email') "
        . "AND status IN ('queued', 'running')), "
        . '(SELECT count(*) FROM news_item WHERE job_id IS NULL)'))[0] };
}

sub tell_all
{
    my ($each) = @_;
    wait_for(sub {
        $each->();
        my ($jobs, $items) = left();
        day_passes() if $jobs == 0 && $items > 0;
        return $jobs + $items == 0;
    }, 3600, 'all buyers to be told');
    return;
}

my $rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $buyers)";
sql("$rows INSERT INTO customer (shop_id, storefront_customer_id, email, created_at, updated_at) "
    . "SELECT $shop->{shop_id}, 'c' || i, 'b' || i || '\@buyer.example', 1, 1 FROM n");
sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, '
    . "fraud_decision, created_at, updated_at) SELECT $shop->{shop_id}, 'b' || id, id, "
    . "CAST(1000000000000000 + id AS TEXT) || 'AAAAAA', 'active', 'not_checked', 1, 1 "
    . "FROM customer WHERE shop_id = $shop->{shop_id} ORDER BY id");

my $first = file_of('First', $ended);
version($first);
tell_all(sub { });
my @urls = map { $_->[3] } grep { $_->[1] eq 'ends' } $mail->lines;
is scalar @urls, $ended, 'some are told, each once';
is scalar(grep { $_->{status} == 200 } map { HTTP::Tiny->new->post_form($_,
    { 'List-Unsubscribe' => 'One-Click' }) } @urls), $ended, 'and unsubscribe';
day_passes();

my $before = scalar $mail->lines;
my $second = file_of('Second', $buyers);
my ($kills, $pid, $next, %asked) = (0, 0, 0);
version($second);
tell_all(sub {
    my $order = digits();
    my $to    = "order$order\@buyer.example";
    $asked{$to} = time;
    assign($shop, $order, [ $second->{product} ], send_email => $true,
        storefront_customer_id => $order, customer => { email => $to });
    my ($worker) = worker_pids();
    ($pid, $next) = ($worker, time + 0.5 + rand 3) if $worker && $worker != $pid;
    return if !$worker || time < $next;
    $kills += kill KILL => $worker;
    # A process that keeps dying waits before it works, unless httpd is restarted.
    httpd_graceful() if $kills % 2 == 0;
});
wait_for(sub { (sql("SELECT count(*) FROM email WHERE status = 'queued'"))[0][0] == 0 }, 120,
    'the emails of orders to leave');

my @lines = $mail->lines;
splice @lines, 0, $before;
my (%copies, %last, %cut, @news);
for (@lines) {
    my ($at, $what, $connection, $to) = @$_;
    if ($what eq 'taken') {
        push @{ $copies{$to} }, { at => $at, connection => $connection };
        $last{$connection} = $to;
        push @news, $at if $to =~ /^b/;
    }
    $cut{$connection} = 1 if $what eq 'closed' && !exists $cut{$connection};
    $cut{$connection} = 0 if $what eq 'quit';
}
my @told = grep { /^b/ } keys %copies;
is scalar @told, $buyers - $ended, "everybody else is told, through $kills kills";
is scalar(grep { /^b(\d+)\@/ && $1 <= $ended } @told), 0, 'nobody who has unsubscribed';
my (@wrong, $twice);
for my $to (keys %copies) {
    my @of = @{ $copies{$to} };
    $twice += @of - 1;
    pop @of;
    push @wrong, $to if grep { !$cut{ $_->{connection} } || $last{ $_->{connection} } ne $to } @of;
}
is_deeply \@wrong, [], 'and nobody twice but by the email that a cut connection had brought';
is scalar(grep { $copies{$_} } keys %asked), scalar keys %asked, 'every order has its email';

# News that left between the request for an order's email and that email.
my @overtaken = sort { $a <=> $b } map { my $to = $_;
    scalar grep { $_ > $asked{$to} && $_ < $copies{$to}[0]{at} } @news } grep { $copies{$_} }
    keys %asked;
diag sprintf '%d kills, %d emails came twice, %d orders; before an email of an order left %d news '
    . 'at the median, %d at most', $kills, $twice, scalar keys %asked,
    @overtaken ? @overtaken[ @overtaken / 2, -1 ] : (0, 0);
cmp_ok $overtaken[-1] // 0, '<=', 2 * AT_ONCE, 'which left before those that waited';
my ($all) = sql("SELECT count(*) FROM job WHERE type = 'news_email'");
cmp_ok $all->[0], '>=', $buyers, 'each by a job of its own';
is((sql('SELECT count(*) FROM news_item'))[0][0], 0, 'and nothing is left');

$server->stop;
done_testing();
