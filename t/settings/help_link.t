# Who is told that a customer asks for help gets a link to a page that answers: once, by its
# buttons, as long as the member may.
#
# both: a request is answered under a lock that differs
use strict;
use warnings;

use MDL::Contract;
use MDL::Maildir;
use MDL::Settings;
use MDL::Target qw(slurp);
use MDL::Test;
use Test::More;

my $server = settings_server(extra => "DownloadsPollInterval 1\n");
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my %key    = (key => $shop->{token});
my @USERS  = qw(owner staff reader);
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
for my $user (@USERS) {
    submit($user, visit($user, 'GET', "/$id/own-emails"), "/$id/own-emails",
        { email => "$user\@home.example" });
    page('POST', (grep { m{/c/} } @{ wait_mail("$user\@home.example")->{urls} })[0]);
}
# As if each had an email just now: the next waits for an hour, and has all that is asked till then.
my $now = time() * 1_000_000;
sql("INSERT INTO notice (shop_id, user_name, kind, choice, waiting, sent_at) "
    . "VALUES ($id, '$_', 'help', 'now', 0, $now)") for @USERS;

my $product = mapping_of($shop, [ ready_asset($shop, 'book.pdf', 'the book')->{id} ],
    access_days => 1)->{storefront_product_id};

# An order whose access has ended and whose customer asks for help; { number, url, item }.
sub asking
{
    my (%customer) = @_;
    my $number = digits();
    my $made   = assign($shop, $number, [$product], storefront_customer_id => $number,
        %customer ? (customer => \%customer) : ());
    my $order = { number => $number, url => $made->{json}{download_page_url},
        item => $made->{json}{assignments}[0]{id} };
    sql("UPDATE assignment SET expires_at = created_at + 1 WHERE id = $order->{item}");
    is(page('POST', $order->{url}, form => { help => 'shop' })->{status}, 303, 'a customer asks');
    return $order;
}

sub notices
{
    my ($user) = @_;
    return grep { $_->{headers}{subject} =~ /^What happened/ } mails("$user\@home.example");
}

# The newest links that were sent to a member, by the order's number.
sub links
{
    my ($user, $count) = @_;
    wait_for(sub { notices($user) >= $count }, 30, "$count emails to $user");
    my $mail = (notices($user))[-1];
    return { $mail->{text} =~ /^- Order (\d+), .*\r?\n\s+(\S+)/mg };
}

# Ends the hour.
my $told = 0;
sub told_links
{
    my (@users) = @_;
    sql("UPDATE notice SET sent_at = sent_at - 3600000000, due_at = due_at - 3600000000 "
        . "WHERE kind = 'help' AND due_at IS NOT NULL");
    $told++;
    return { map { $_ => links($_, $told) } @users };
}

sub state
{
    my ($order) = @_;
    return join ' ', map { join ':', map { $_ // '' } @$_ }
        sql("SELECT h.state, h.decided_by FROM help_request h JOIN orders o ON o.id = h.order_id "
            . "WHERE o.shop_id = $id AND o.storefront_order_id = '$order->{number}' ORDER BY h.id");
}

sub audited
{
    my ($order) = @_;
    return join ' ', map { join ':', @$_ } sql("SELECT action, user_name FROM audit "
        . "WHERE shop_id = $id AND noun_id = '$order->{number}' AND user_name IS NOT NULL");
}

sub press { my ($link, %form) = @_; return page('POST', $link, form => \%form) }

my %order = map { $_ => asking(email => "$_\@customer.example") }
    qw(more extend resend refuse both role removed forged lapsed);
my $links = told_links(qw(owner staff));
is(scalar keys %{ $links->{$_} }, 9, "$_ has a link for each order") for qw(owner staff);
is_deeply(links('reader', 1), {}, 'who only reads has none');
my %link = map { my $order = $_; $order => { map { $_ => $links->{$_}{ $order{$order}{number} } }
    qw(owner staff) } } keys %order;
isnt($link{more}{owner}, $link{more}{staff}, "a member's link is the member's own");

subtest 'Opened by a scanner' => sub {
    for my $method (qw(GET HEAD GET)) {
        my $reply = page($method, $link{more}{staff}, headers => { 'sec-purpose' => 'prefetch' });
        is($reply->{status}, 200, "$method shows the page");
        is($reply->{headers}{'cache-control'}, 'private, no-store', 'which no cache keeps');
    }
    my $html = page('GET', $link{more}{staff})->{body};
    like($html, qr/The customer of order <bdi>$order{more}{number}<.*asked .* for help on <time/s,
        'it says who asks');
    like($html, qr/Access ended on/, 'and what is wrong');
    like($html, qr{href="[^"]+/settings/$id/orders/$order{more}{number}"}, 'leads to the order');
    like(page('GET', $link{more}{staff}, headers => { 'accept-language' => 'de' })->{body},
        qr/Ein Kunde bittet um Hilfe/, 'and speaks German');
    is(page('DELETE', $link{more}{staff})->{status}, 405, 'another method is refused');
    is(state($order{more}), 'asked:', 'nothing was answered');
    is(audited($order{more}), '', 'nor done');
};

subtest 'What would not help is refused' => sub {
    my $reply = press($link{more}{staff}, answer => 'one_more');
    is($reply->{status}, 409, 'a download of an order that has ended');
    like($reply->{body}, qr/role="alert">[^<]*restore or extend it first/, 'in words');
    is(press($link{more}{staff}, answer => 'resend')->{status}, 409, 'nor is the email sent');
    is(press($link{more}{staff}, %$_)->{status}, 400, 'a form without a known answer')
        for {}, { answer => 'grant' };
    is(press($link{more}{staff}, answer => 'refuse', reason => 'x' x 501)->{status}, 400,
        'a reason has a bound');
    is(state($order{more}), 'asked:', 'so the customer still waits');
};

subtest 'Extended' => sub {
    my $reply = press($link{extend}{staff}, answer => 'extend');
    is($reply->{status}, 200, 'the button extends') or diag(explain($reply));
    like($reply->{body}, qr/The request is granted/, 'and says so');
    is(state($order{extend}), 'granted:staff', 'with who did it');
    is(audited($order{extend}), 'downloads_granted:staff', 'and so has the audit');
    unlike(page('GET', $order{extend}{url})->{body}, qr/name="help"/,
        "the customer's page is well");
    ok(wait_mail('extend@customer.example'), 'the customer is told');
    for my $user (qw(staff owner)) {
        my $again = press($link{extend}{$user}, answer => 'extend');
        is($again->{status}, 409, "$user presses again");
        like($again->{body}, qr/answered before/, 'and reads that it is answered');
    }
    is(page('GET', $link{extend}{owner})->{status}, 200, 'a look says the same');
    is(audited($order{extend}), 'downloads_granted:staff', 'once');
};

subtest 'The email again, and one more' => sub {
    for ([ 'resend', 'resend', 'email_resent' ], [ 'more', 'one_more', 'downloads_granted' ]) {
        my ($name, $answer, $action) = @$_;
        sql("UPDATE assignment SET expires_at = created_at + 86400000000 "
            . "WHERE id = $order{$name}{item}");
        is(press($link{$name}{owner}, answer => $answer, reason => 'for the customer')->{status},
            200, "$answer is taken");
        is(state($order{$name}), 'granted:owner', 'the request is granted');
        is(audited($order{$name}), "$action:owner", 'the audit has it');
        ok(wait_mail("$name\@customer.example"), 'the customer has an email');
    }
    my ($extra) = sql('SELECT downloads_extra FROM allowance '
        . "WHERE assignment_id = $order{more}{item}");
    is($extra->[0], 1, 'one more is one');
};

subtest 'Refused' => sub {
    is(press($link{refuse}{staff}, answer => 'refuse', reason => 'Buy it <again>')->{status}, 200,
        'the form refuses');
    is(state($order{refuse}), 'refused:staff', 'with who did it');
    like(page('GET', $order{refuse}{url})->{body}, qr/Buy it &lt;again&gt;/,
        'the customer reads why');
    like(page('GET', $link{refuse}{staff})->{body}, qr/The request is refused/, 'so does the link');
    is(audited($order{refuse}), 'help_refused:staff', 'the audit has it');
    my $mail = wait_mail('refuse@customer.example');
    like($mail->{headers}{subject}, qr/has answered your request for help$/, 'an email says so');
    like($mail->{text}, qr/can’t do what you asked for\..*Buy it <again>.*\Q$order{refuse}{url}\E/s,
        'with the reason, and the page');
    like($mail->{html}, qr/Buy it &lt;again&gt;/, 'escaped');
    is(press($link{refuse}{owner}, answer => 'refuse')->{status}, 409, 'another is too late');
    is((sql('SELECT count(*) FROM email WHERE help_id IS NOT NULL AND order_id = '
        . "(SELECT order_id FROM assignment WHERE id = $order{refuse}{item})"))[0][0], 1,
        'there is one email');
};

subtest 'Both buttons at once' => sub {
    my @press = ([ staff => 'extend' ], [ owner => 'refuse' ], [ staff => 'refuse' ],
        [ owner => 'extend' ]);
    my @status = parallel(4, sub {
        my ($user, $answer) = @{ $press[ $_[0] ] };
        return press($link{both}{$user}, answer => $answer)->{status};
    });
    is(join(' ', sort @status), '200 409 409 409', 'one is taken') or diag("@status");
    is(scalar(() = state($order{both}) =~ /granted|refused/g), 1, 'one answer is there');
    is(scalar(my @entries = split / /, audited($order{both})), 1, 'and one entry');
};

subtest 'Forwarded' => sub {
    told('member', 'add', 'staff', 'read-only', '--shop', $id);
    is(page('GET', $link{role}{staff})->{status}, 403, 'to somebody who only reads by now');
    my $reply = press($link{role}{staff}, answer => 'extend');
    is($reply->{status}, 403, 'whose button does nothing');
    like($reply->{body}, qr/You may not answer/, 'in words');
    told('member', 'remove', 'staff', '--shop', $id);
    is(press($link{removed}{staff}, answer => 'refuse')->{status}, 403, 'or to who was removed');
    is(state($order{$_}) . audited($order{$_}), 'asked:', "$_: nothing is answered")
        for qw(role removed);
    is(press($link{role}{owner}, answer => 'extend')->{status}, 200, "an owner's link goes on");
};

subtest 'Forged' => sub {
    my $link = $link{forged}{staff};
    substr($link, -3, 1) = substr($link, -3, 1) eq 'A' ? 'B' : 'A';
    is(press($link, answer => 'extend')->{status}, 404, 'a changed link is none');
    like(page('GET', $link)->{body}, qr/There is no such page/, 'and says so');
    is(press($link{forged}{staff} =~ s{/h/}{/c/}r)->{status}, 404,
        'nor does it confirm an address');
    is(state($order{forged}), 'asked:', 'nothing is answered');
};

subtest 'Lapsed' => sub {
    sql("UPDATE help_request SET asked_at = asked_at - 1209600000000 WHERE state = 'asked'");
    is(page('GET', $link{lapsed}{owner})->{status}, 410, 'after 14 days');
    my $reply = press($link{lapsed}{owner}, answer => 'extend');
    is($reply->{status}, 409, 'the button does nothing');
    like($reply->{body}, qr/The request has lapsed/, 'in words');
    is(audited($order{lapsed}), '', 'nothing was done');
};

subtest 'An order on hold, and a blocked shop' => sub {
    my $held = asking();
    my $link = told_links('owner')->{owner}{ $held->{number} };
    sql("UPDATE orders SET access_status = 'held' WHERE storefront_order_id = '$held->{number}'");
    my $page = page('GET', $link)->{body};
    unlike($page, qr/value="(?:one_more|extend|resend)"/, 'is decided in the settings');
    like($page, qr/so nothing can be given here.*value="refuse"/s, 'or refused');
    is(press($link, answer => 'extend')->{status}, 409, 'a form that gives is refused');
    told('shop', 'block', $id, '--reason', 'a notice');
    is($_->{status}, 403, 'a blocked shop answers nobody')
        for page('GET', $link), press($link, answer => 'refuse');
    told('shop', 'unblock', $id);
    is(press($link, answer => 'refuse')->{status}, 200, 'until it is unblocked');
};

my @tokens = map { m{/h/(.*)} } map { values %$_ } values %link;
my $logs = slurp(logs_dir() . '/access_log') . slurp(logs_dir() . '/error_log');
is(scalar(grep { index($logs, $_) >= 0 } @tokens), 0, 'no log has a link');

$server->stop;
done_testing();
