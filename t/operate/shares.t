# What an operator sets for emails holds for the service: two nodes share DownloadsMailRate and
# DownloadsMailConnections, and the share of one that dies comes back.
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Mail;
use MDL::MailServer;
use MDL::Test;
use Test::More;

# Of the connections a shop leaves some to others, so as many shops as connections use them all.
use constant { RATE => 12, CONNECTIONS => 8 };

my $mail = MDL::MailServer->new;
my $conf = <<"END";
DownloadsPollInterval 1
DownloadsMailRate @{[RATE]}
DownloadsMailConnections @{[CONNECTIONS]}
DownloadsMailTransport smtp://127.0.0.1:$mail->{port}
END
my $one = MDL::Instance->new(extra => $conf);
my $two = MDL::Instance->new(
    without => qr/^DBDParams/,
    extra   => $conf
        . qq(DBDParams "$one->{vars}{db_params}"\nDownloadsStorage "$one->{folder}/storage"\n),
);
$_->start for $two, $one;

sub shares
{
    my ($node) = @_;
    return ($node->error_log
            =~ /MDL0359: [^:]+: (\d+); \D+(\d+) connections and (\d+)/g)[ -3 .. -1 ];
}

sub wait_share
{
    my ($live, $node) = @_;
    my $known = eval { wait_for(sub { ((shares($node))[0] // 0) == $live }, 60, 'the share') };
    return ok($known, "a node learns that it is one of $live") || diag $@;
}

# The fates of a shop's emails, once each is sent or says that it waits for its turn.
sub fates
{
    my ($shop, @orders) = @_;
    my %fates;
    for my $order (@orders) {
        my $email = wait_email($shop, $order,
            sub { $_[0]{status} eq 'sent' || defined $_[0]{last_error} });
        $fates{ $email->{status} }++;
    }
    return \%fates;
}

sub orders
{
    my ($shop, $name, $n) = @_;
    return map { order_for($shop, "$name$_\@buyer.example") } 1 .. $n;
}

# How many emails the mail server keeps waiting, once every node has had a turn to claim more.
sub held
{
    my ($name, $least, @nodes) = @_;
    my $held = sub { scalar grep { $_->[1] eq 'held' && $_->[3] =~ /^held$name/ } $mail->lines };
    eval { wait_for(sub { $held->() >= $least }, 60, "$least emails"); 1 } or diag $@;
    my $shop = new_shop();
    for my $node (@nodes) {
        $node->aim;
        ready_asset($shop, 'turn.bin', "$name $node->{name}");
    }
    return $held->();
}

wait_share(2, $_) for $one, $two;
my %worker;
for my $node ($one, $two) {
    $node->aim;
    ($worker{$node}) = worker_pids();
}

subtest 'emails of a shop an hour' => sub {
    my $shop = shop_with_product('Shared');
    my $sent = 0;
    for ([ $one, $two ], [ $two, $one ]) {
        my ($node, $other) = @$_;
        pause_process($worker{$other});
        $node->aim;
        my $fates = fates($shop, orders($shop, 'shared', RATE));
        is_deeply $fates, { sent => RATE / 2, queued => RATE / 2 }, 'a node sends its half';
        $sent += $fates->{sent};
        kill CONT => $worker{$other};
    }
    is $sent, RATE, 'both together send as many as the service may';
};

subtest 'connections to the mail server' => sub {
    for my $i (1 .. CONNECTIONS) {
        my $shop = shop_with_product("Held $i");
        for my $node ($one, $two) {
            $node->aim;
            order_for($shop, "held-two-$i-$node->{name}\@buyer.example");
        }
    }
    is held('-two', CONNECTIONS, $one, $two), CONNECTIONS,
        'both together have as many as the service may';
    $mail->release;
    my $taken = sub { scalar grep { $_->[1] eq 'taken' && $_->[3] =~ /^held/ } $mail->lines };
    ok wait_for(sub { $taken->() == 2 * CONNECTIONS }, 60, 'all emails'), 'all are sent';
    $mail->hold;
};

$two->kill_all;
$one->aim;
# As if its time had passed.
sql("UPDATE node SET beat_at = beat_at - 3600000000 WHERE pid_file = '$two->{vars}{t_pid_file}'");
wait_share(1, $one);

subtest 'the share of a node that died comes back' => sub {
    my $shop = shop_with_product('Alone');
    is_deeply fates($shop, orders($shop, 'alone', RATE + 2)), { sent => RATE, queued => 2 },
        'the other sends as many as the service may';
    for my $i (1 .. CONNECTIONS) {
        my $shop = shop_with_product("Held again $i");
        order_for($shop, "held-one-$i-$_\@buyer.example") for 1, 2;
    }
    is held('-one', CONNECTIONS, $one), CONNECTIONS, 'over as many connections';
    $mail->release;
};

$one->stop;
done_testing;
