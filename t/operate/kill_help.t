# kill -9 of httpd between the writes of a decision about a request for help: once the client has
# repeated it, it is done once and whole. KILLS=1, as make check-kills sets, is between all writes,
# KILLS=5 after each fifth.
#
# both: what a kill leaves depends on the database
use strict;
use warnings;

use MDL::Contract;
use MDL::Httpd;
use MDL::Maildir;
use MDL::Settings;
use MDL::Target qw(suite_dir top_dir);
use MDL::Test;
use Test::More;

use constant { EVERY => $ENV{KILLS} || 12, DAY => 86_400_000_000 };

my $library = suite_dir() . '/kill_at.so';
system('cc', '-shared', '-fPIC', '-o', $library, top_dir() . '/t/lib/kill_at.c') == 0
    or die "no kill_at.so\n";
my $armed = $ENV{KILL_AT} = suite_dir() . '/kill-at';

my $server = settings_server(preload => $library, extra => <<'END');
DownloadsPollInterval 1
DownloadsLeaseTime 3
END
my ($shop, $own) = map { new_shop() } 1 .. 2;
my $id = $shop->{shop_id};
told('member', 'add', 'staff', 'staff', '--shop', $id);
submit('staff', visit('staff', 'GET', "/$id/own-emails"), "/$id/own-emails",
    { email => 'staff@home.example' });
page('POST', (grep { m{/c/} } @{ wait_mail('staff@home.example')->{urls} })[0]);
# As if the member had an email just now: the next waits till the hour is over.
my $now = time() * 1_000_000;
sql("INSERT INTO notice (shop_id, user_name, kind, choice, waiting, sent_at) "
    . "VALUES ($id, 'staff', 'help', 'now', 0, $now)");
api('PATCH', '/shop', key => $own->{token}, json => { help => 'first_by_itself' });

for my $each ($shop, $own) {
    $each->{file}    = ready_asset($each, 'book.pdf', 'the book')->{id};
    $each->{product} = mapping_of($each, [ $each->{file} ], access_days => 1,
        download_limit => 1)->{storefront_product_id};
}

# An order whose access has ended, or whose download is used up.
sub ended
{
    my ($of, $used_up) = @_;
    my $number = digits();
    my $made   = assign($of, $number, [ $of->{product} ], storefront_customer_id => $number,
        customer => { email => "b$number\@buyer.example" });
    die "assign: $made->{status} $made->{body}\n" if $made->{status} != 201;
    my $order = { number => $number, url => $made->{json}{download_page_url}, shop => $of,
        item => $made->{json}{assignments}[0]{id}, to => "b$number\@buyer.example",
        where => "order_id = (SELECT id FROM orders WHERE shop_id = $of->{shop_id} AND "
            . "storefront_order_id = '$number')" };
    sql($used_up
        ? 'INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra) '
            . "VALUES ($order->{item}, $of->{file}, 1, 0)"
        : "UPDATE assignment SET expires_at = created_at + 1 WHERE id = $order->{item}");
    return $order;
}

# Ten orders that wait for an answer: { …, answer, id, link }.
my @waiting;
sub waiting
{
    return shift @waiting if @waiting;
    my @answers = qw(extend one_more refuse extend one_more extend one_more refuse extend one_more);
    for my $answer (@answers) {
        my $order = ended($shop, $answer eq 'one_more');
        is(page('POST', $order->{url}, form => { help => 'shop' })->{status}, 303,
            'a customer asks');
        push @waiting, { %$order, answer => $answer,
            id => (sql("SELECT id FROM help_request WHERE $order->{where}"))[0][0] };
    }
    sql('DELETE FROM staff_email_budget');    # a day allows fewer emails than all writes need
    sql('UPDATE notice SET sent_at = sent_at - 3600000000, due_at = due_at - 3600000000 '
        . "WHERE kind = 'help' AND due_at IS NOT NULL");
    # An email of before may come twice, if a kill was before that it had left was noted.
    wait_for(sub {
        for my $mail (mails('staff@home.example')) {
            next if $mail->{headers}{subject} !~ /^What happened/;
            my %links = $mail->{text} =~ /^- Order (\d+), .*\r?\n\s+(\S+)/mg;
            $_->{link} //= $links{ $_->{number} } for @waiting;
        }
        return !grep { !$_->{link} } @waiting;
    }, 60, 'the links');
    wait_for(sub { !sql("SELECT 1 FROM notice WHERE kind = 'help' AND due_at IS NOT NULL") }, 60,
        'a note that they have left');
    return shift @waiting;
}

# What was done for an order, in words.
sub account
{
    my ($order) = @_;
    my $all = sub { join ' ', sort map { join ':', map { $_ // '' } @$_ } sql($_[0]) };
    my ($item) = sql("SELECT expires_at, COALESCE((SELECT sum(downloads_extra) FROM allowance "
        . "WHERE assignment_id = a.id), 0) FROM assignment a WHERE a.id = $order->{item}");
    return {
        request => $all->("SELECT state, decided_by FROM help_request WHERE $order->{where}"),
        days  => int(($item->[0] / 1e6 - time) / 86_400 + 0.5),
        extra => $item->[1],
        timeline => $all->("SELECT action FROM order_timeline WHERE $order->{where} "
            . "AND action NOT IN ('assigned', 'help_asked')"),
        audit => $all->('SELECT action, user_name FROM audit WHERE '
            . "shop_id = $order->{shop}{shop_id} AND noun_id = '$order->{number}' "
            . "AND action <> 'assigned'"),
        emails => $all->("SELECT CASE WHEN help_id IS NULL THEN 'page' ELSE 'answer' END "
            . "FROM email WHERE $order->{where}"),
    };
}

my %done = (
    extend   => { state => 'granted', days => 7, extra => 0, entries => [qw(downloads_granted
        email_resent)], emails => 'page' },
    one_more => { state => 'granted', days => 1, extra => 1, entries => [qw(downloads_granted
        email_resent)], emails => 'page' },
    refuse   => { state => 'refused', days => 0, extra => 0, entries => ['help_refused'],
        emails => 'answer' },
    first    => { state => 'granted', days => 7, extra => 1, entries => ['downloads_granted'],
        emails => '' },
);

sub expected
{
    my ($answer, $user, $audit) = @_;
    my $done = $done{$answer};
    return { request => "$done->{state}:$user", days => $done->{days}, extra => $done->{extra},
        timeline => join(' ', @{ $done->{entries} }), audit => $audit, emails => $done->{emails} };
}

# How each decision is asked for, what a repeated request may be answered, and what is done then.
my %verb = (extend => 'downloads_granted', one_more => 'downloads_granted',
    refuse => 'help_refused');
my %KINDS = (
    page => {
        order => \&waiting,
        ask   => sub {
            my ($order, %opt) = @_;
            return page('POST', $order->{link}, form => { answer => $order->{answer} }, %opt);
        },
        again => qr/^(?:200|409)$/,
        done  => sub { expected($_[0]{answer}, 'staff', "$verb{ $_[0]{answer} }:staff") },
    },
    api => {
        order => \&waiting,
        ask   => sub {
            my ($order, %opt) = @_;
            return api('POST', "/help-requests/$order->{id}/answer", key => $shop->{token},
                json => { answer => $order->{answer} }, idem => "answer-$order->{id}", %opt);
        },
        again => qr/^200$/,
        done  => sub { expected($_[0]{answer}, '', 'help_answered:') },
    },
    first => {
        order => sub { ended($own, 0) },
        ask   => sub {
            my ($order, %opt) = @_;
            return page('POST', $order->{url}, form => { help => 'shop' }, %opt);
        },
        again => qr/^303$/,
        done  => sub { expected('first', '', '') },
    },
);

sub wait_emails
{
    return wait_for(sub { (sql("SELECT count(*) FROM job WHERE status IN ('queued', 'running') "
        . "AND type = 'email'"))[0][0] == 0 }, 60, 'all emails to leave');
}

# Kills the process of a request before its n-th write, with its parent if n is negative; returns
# whether that was before the answer.
sub killed
{
    my ($kind, $n) = @_;
    my $order = $kind->{order}->();
    wait_emails() if $n < 0;    # of other orders
    my $reply = $kind->{ask}->($order, headers => { 'x-kill' => $n });
    my $alive = $reply->{status} != 599;
    if (!$alive && $n < 0) {
        $server->kill_all;
        $server->start;
    }
    push @{ $kind->{orders} }, { %$order, n => $n };
    $reply = $kind->{ask}->($order) if !$alive;
    like($reply->{status}, $alive ? qr/^[23]/ : $kind->{again},
        "write $n: the request is answered" . ($alive ? '' : ' when it is repeated'))
        or diag($reply->{body});
    return !$alive;
}

for my $name (qw(page api first)) {
    my $kind = $KINDS{$name};
    subtest $name => sub {
        my $n = 1;
        $n += EVERY while killed($kind, $n);
        cmp_ok($n, '>', 5, 'a decision has some writes');
        do { $n-- } while $n > 0 && !killed($kind, $n);
        diag("$name: its last write before the answer is number $n");
        # Not each decision has the same number of writes.
        my $parents = 0;
        for (; $n > 0 && ($parents < 2 || EVERY == 1); $n--) {
            $parents++ if killed($kind, -$n);
        }
        cmp_ok($parents, '>=', 2, 'some kills were of the parent, too');
        for my $order (@{ $kind->{orders} }) {
            is_deeply(account($order), $kind->{done}->($order),
                "write $order->{n}: it is done once") or diag(explain(account($order)));
        }
    };
}

# The background process.
my @late;
subtest 'the background process' => sub {
    for my $n (EVERY > 1 ? (3, 20) : (1 .. 40)) {
        my $order = waiting();
        wait_emails();
        my ($worker) = worker_pids();
        open my $out, '>', "$armed.new" or die "$armed: $!\n";
        print $out $n;
        close $out;
        rename "$armed.new", "$armed.$worker";
        is($KINDS{api}{ask}->($order)->{status}, 200, 'a decision is taken');
        wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $worker }, 60, 'another one');
        httpd_graceful();    # resets the count of its crashes, so that it is restarted at once
        push @late, $order;
        is_deeply(account($order), $KINDS{api}{done}->($order), "killed before its write $n");
    }
};

wait_emails();
is_deeply([ sql("SELECT count(*) FROM email WHERE status <> 'sent'") ], [ [0] ], 'all are sent');
# A kill of the background process may be after an email has left and before that is noted.
for my $order ((map { @{ $KINDS{$_}{orders} } } qw(page api)), @late) {
    my @mails = mails($order->{to});
    my %ids   = map { $_->{headers}{'message-id'} => 1 } @mails;
    is(scalar keys %ids, 1, "order $order->{number} has one email");
    is(scalar @mails, 1, 'which has left once') if ($order->{n} // 0) > 0;
}

$server->stop;
done_testing();
