# Late keys and files (contract, section 10): an email that left while something was missing is
# followed by one more once everything is there, whatever happens to the background process.
#
# both: the waiting jobs are found and woken by other queries under other locks
use strict;
use warnings;

use JSON::PP;
use MDL::Contract qw(assign digits held_by_check mapping_of);
use MDL::Instance;
use MDL::Mail qw(wait_email);
use MDL::Source;
use MDL::Test;
use Test::More;

my $true   = JSON::PP::true();
my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\n")->start;
my $source = MDL::Source->new;
my $shop   = new_shop();
my $told   = qr/What was still missing from your order at .* is there now\./;

sub tag
{
    my $reply = api('POST', '/license-key-tags', key => $shop->{token}, patient => 1,
        json => { name => 'Late' });
    return $reply->{json}{id};
}

sub add_keys
{
    my ($tag, @keys) = @_;
    my $reply = api('POST', "/license-key-tags/$tag/keys", key => $shop->{token}, patient => 1,
        json => { keys => \@keys });
    die "keys: $reply->{body}\n" if $reply->{status} != 200;
    return;
}

sub product_with_keys
{
    return mapping_of($shop, [], license_key_tag_ids => [@_])->{storefront_product_id};
}

# Orders a product, and waits until the email about it was sent; returns the order and its address.
sub told_of
{
    my ($product, $order) = @_;
    $order //= digits();
    my $reply = assign($shop, $order, [$product], patient => 1, send_email => $true,
        storefront_customer_id => $order, customer => { email => "late$order\@buyer.example" });
    die "assign: $reply->{body}\n" if $reply->{status} !~ /^20[01]$/;
    wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    return ($order, "late$order\@buyer.example");
}

sub job_of
{
    my ($order) = @_;
    my ($row) = sql("SELECT j.id, j.status, j.due_at FROM job j JOIN email e ON e.id = j.email_id "
        . "JOIN orders o ON o.id = e.order_id WHERE j.type = 'late_email' "
        . "AND o.storefront_order_id = '$order' ORDER BY j.id DESC LIMIT 1");
    return $row;
}

# Has the order's job look now, and waits until it has.
sub look
{
    my ($order) = @_;
    my $id = job_of($order)->[0];
    wait_for(sub { job_of($order)->[1] ne 'running' }, 20, "the job of $order");
    sql("UPDATE job SET due_at = 1 WHERE id = '$id' AND status = 'queued'");
    return wait_for(sub { my $job = job_of($order); $job->[0] ne $id || $job->[1] eq 'succeeded'
        || ($job->[1] eq 'queued' && $job->[2] != 1) }, 30, "a look at $order");
}

sub emails { return scalar(my @found = mails($_[0])) }
sub wait_emails
{
    my ($to, $n) = @_;
    return wait_for(sub { emails($to) >= $n }, 40, "$n emails to $to");
}

subtest 'an email without a key is followed by one with it' => sub {
    my $tag = tag();
    my ($order, $to) = told_of(product_with_keys($tag));
    unlike((mails($to))[0]{text}, $told, 'the first says nothing of that');
    add_keys($tag, 'LATE-KEY-1');
    wait_emails($to, 2);
    my @by_text = grep { $_->{text} =~ $told } mails($to);
    is scalar(@by_text), 1, 'the second says that what was missing has come';
    like $by_text[0]{text}, qr/LATE-KEY-1/, 'and has the key';
    is job_of($order)->[1], 'succeeded', 'the job has ended';
    is emails($to), 2, 'there is no third email';
};

subtest 'it waits until nothing is missing' => sub {
    my ($one, $two) = (tag(), tag());
    my ($order, $to) = told_of(product_with_keys($one, $two));
    add_keys($one, 'FIRST');
    look($order);
    is emails($to), 1, 'no email tells of half of it';
    add_keys($two, 'SECOND');
    wait_emails($to, 2);
    is emails($to), 2, 'one tells of all';
};

subtest 'a file that was still being prepared' => sub {
    my $reply = api('POST', '/assets', key => $shop->{token},
        json => { source_url => $source->offer('late.pdf', { size => 1000, hold => 0 }) });
    my ($order, $to) = told_of(mapping_of($shop, [ $reply->{json}{asset}{id} ])
            ->{storefront_product_id});
    look($order);
    is emails($to), 1, 'no email as long as it is prepared';
    $source->release('late.pdf');
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'it is ready';
    look($order);
    wait_emails($to, 2);
    is emails($to), 2, 'then one';
};

subtest 'nobody is told of an order that is held or revoked' => sub {
    my $tag = tag();
    my $product = product_with_keys($tag);
    my ($held, $held_to) = told_of($product);
    my ($revoked, $revoked_to) = told_of($product);
    held_by_check($shop, $held);
    api('POST', "/orders/$revoked/revoke", key => $shop->{token}, json => {});
    add_keys($tag, 'H-1', 'H-2');
    look($_) for $held, $revoked;
    is job_of($held)->[1], 'queued', 'that of a held order waits';
    is job_of($revoked)->[1], 'succeeded', 'that of a revoked one has ended';
    is emails($_), 1, 'no email' for $held_to, $revoked_to;
    api('POST', "/orders/$held/approve", key => $shop->{token}, json => {});
    look($held);
    wait_emails($held_to, 2);
    is emails($held_to), 2, 'once the order is approved, its customer is told';
};

subtest 'an order gets one a day' => sub {
    my ($one, $two) = (tag(), tag());
    my ($order, $to) = told_of(product_with_keys($one));
    add_keys($one, 'DAY-1');
    wait_emails($to, 2);
    wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    told_of(product_with_keys($two), $order);
    wait_emails($to, 3);
    add_keys($two, 'DAY-2');
    look($order);
    is emails($to), 3, 'the second of a day waits';
    my ($late) = map { $_->[0] } sql("SELECT e.created_at FROM email e JOIN orders o "
            . "ON o.id = e.order_id WHERE is_late = 1 AND o.storefront_order_id = '$order'");
    is job_of($order)->[2] - $late, 86_400_000_000, 'until a day after the first';
    sql("UPDATE email SET created_at = created_at - 86400000000 WHERE is_late = 1");
    look($order);
    wait_emails($to, 4);
    is emails($to), 4, 'then it leaves';
};

subtest 'an email that was sent again with everything in it is enough' => sub {
    my $tag = tag();
    my ($order, $to) = told_of(product_with_keys($tag));
    sql("UPDATE job SET lane = 'kept' WHERE id = '" . job_of($order)->[0] . "'");
    add_keys($tag, 'AGAIN');
    api('POST', "/orders/$order/resend", key => $shop->{token}, json => {});
    wait_emails($to, 2);
    wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    sql("UPDATE job SET lane = 'orders' WHERE id = '" . job_of($order)->[0] . "'");
    look($order);
    is job_of($order)->[1], 'succeeded', 'the job has ended';
    is emails($to), 2, 'without an email';
};

subtest 'the background process is killed while it tells forty orders' => sub {
    my $tag = tag();
    my $product = product_with_keys($tag);
    my %to = map { my ($order, $to) = told_of($product); ($order => $to) } 1 .. 40;
    my $done = sub { return (sql("SELECT count(*) FROM email WHERE is_late = 1"))[0][0] };
    my $before = $done->();
    add_keys($tag, map { "KILL-$_" } 1 .. 40);
    for my $n (1, 10, 25) {
        wait_for(sub { $done->() - $before >= $n }, 60, "$n late emails");
        my ($worker) = worker_pids();
        kill KILL => $worker;
        wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $worker }, 20, 'its successor');
    }
    wait_for(sub { $done->() - $before >= 40 }, 60, 'all late emails');
    wait_email($shop, $_, sub { $_[0]{status} eq 'sent' }) for sort keys %to;
    is_deeply [ sql("SELECT count(*), count(DISTINCT order_id) FROM email WHERE is_late = 1 AND "
        . "order_id IN (SELECT id FROM orders WHERE storefront_order_id IN ("
        . join(',', map { "'$_'" } keys %to) . "))") ], [ [ 40, 40 ] ], 'each is told once';
    is_deeply [ sql("SELECT count(*) FROM job WHERE type = 'late_email' AND status = 'failed'") ],
        [ [0] ], 'no job has failed';
};

$server->stop;
done_testing;
