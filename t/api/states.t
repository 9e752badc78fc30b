# Every state that an order can be in. For the shop's system: the order's members, the status and
# code of requests that need access, and the diagnosis' first failure with its message. For the
# customer: the page's sentence, whether it has a button, and the status of the page, its button and
# an earlier link.
#
# t/api/fraud.t tests how an order is held, t/api/order_access.t the actions, and t/api/diagnosis.t
# each check of the diagnosis.
#
# once: what a state allows is decided above the database; order_access.t makes them on both
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Objects;
use MDL::Test;
use Test::More;

my $contact = 'help@states.example';
my $shop    = do {
    my ($code, $made) = ctl('shop', 'add', 'States', digits() . '.states.example', '--email',
        $contact);
    my $id = ($made->{shop} // $made)->{id};
    ctl('shop', 'approve', $id);
    +{ shop_id => $id, %{ MDL::Test::new_key($id) } };
};

# An order of one file whose email was sent: { id, page, asset, mapping, assignment, link }.
sub order_of
{
    my ($name) = @_;
    my $asset  = ready_asset($shop, "states-$$-" . digits() . '.txt', "bytes of an order: $name\n");
    my $mapping = mapping_of($shop, [ $asset->{id} ], download_limit => 2, access_days => 30);
    my $id     = digits();
    my $reply  = assign($shop, $id, [ $mapping->{storefront_product_id} ],
        storefront_customer_id => $id,
        send_email => JSON::PP::true(), customer => { email => "states-$$-$id\@buyer.example" });
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    my %order = (id => $id, page => $reply->{json}{download_page_url}, asset => $asset,
        mapping => $mapping, assignment => $reply->{json}{assignments}[0]{id});
    wait_for(sub { read_order(\%order)->{email}{status} eq 'sent' }, 60, 'the email');
    $order{link} = press(\%order)->{headers}{location};
    return \%order;
}

sub read_order
{
    my ($order) = @_;
    return api('GET', "/orders/$order->{id}", key => $shop->{token})->{json};
}

sub press
{
    my ($order) = @_;
    return page('POST', $order->{page},
        form => { file => "$order->{assignment}-$order->{asset}{id}" });
}

sub where_id
{
    my ($order) = @_;
    return "(SELECT id FROM orders WHERE shop_id = $shop->{shop_id} "
        . "AND storefront_order_id = '$order->{id}')";
}

sub act
{
    my ($action, %members) = @_;
    return sub {
        my ($order) = @_;
        my $reply = api('POST', "/orders/$order->{id}/$action", key => $shop->{token},
            json => \%members);
        die "$action was answered with: $reply->{body}\n" if $reply->{status} != 200;
        return;
    };
}

sub held { my ($order) = @_; held_by_check($shop, $order->{id}); return }

sub expired
{
    my ($order) = @_;
    sql('UPDATE assignment SET expires_at = 1 WHERE order_id = ' . where_id($order));
    return;
}

# Uses up the order's downloads.
sub exhausted
{
    my ($order) = @_;
    for (1 .. 2) {
        my $reply = page('GET', press($order)->{headers}{location});
        die "the download was answered with: $reply->{status}\n" if $reply->{status} != 200;
    }
    wait_for(sub { 2 == grep { $_->{status} eq 'counted' } @{ read_order($order)->{downloads} } },
        60, 'two downloads');
    return;
}

sub lost  { my ($order) = @_; return lose_bytes($order->{asset}) }
sub found { my ($order) = @_; return find_bytes($order->{asset}) }

sub set_asset
{
    my ($status) = @_;
    return sub {
        my ($order) = @_;
        sql("UPDATE asset SET status = '$status' WHERE id = $order->{asset}{id}");
        return;
    };
}

sub unassign
{
    my ($order) = @_;
    act('revoke', assignment_ids => [ $order->{assignment} ])->($order);
    return;
}

sub stop_mapping
{
    my ($order) = @_;
    api('DELETE', "/mappings/$order->{mapping}{id}", key => $shop->{token});
    return;
}

sub empty_mapping
{
    my ($order) = @_;
    api('PUT', "/mappings/$order->{mapping}{id}", key => $shop->{token},
        json => { storefront_product_id => $order->{mapping}{storefront_product_id} });
    return;
}

my $risk = qr/The storefront rates the order's risk as high\./;
my $good = '200 - 202 - 200 303 200';

# Columns: name; what happens to the order; its access and fraud decision; the statuses of
# download-urls and resend (with their codes), page, button and link; the page's sentence; the
# diagnosis' first failure and its message.
my @states = (
    [ 'after its assignment', [], 'active not_checked', $good, qr/2 of 2 downloads left/, undef ],
    [ 'held', [ \&held ], 'held held',
        '409 order_held 409 order_held 200 403 403', qr/under review/,
        fraud => qr/^The order is under review.* $risk$/ ],
    [ 'approved', [ \&held, act('approve') ], 'active approved', $good, qr/2 of 2 downloads left/,
        undef ],
    [ 'rejected', [ \&held, act('reject', reason => 'stolen') ], 'rejected rejected',
        '409 access_revoked 409 access_revoked 200 403 403', qr/not released.*stolen/s,
        fraud => qr/^The order was rejected.* $risk$/ ],
    [ 'rejected, then approved', [ \&held, act('reject'), act('approve') ], 'active approved',
        $good, qr/2 of 2 downloads left/, undef ],
    [ 'revoked', [ act('revoke', reason => 'refunded') ], 'revoked not_checked',
        '409 access_revoked 409 access_revoked 200 403 403', qr/withdrawn.*refunded/s,
        access => qr/^Access to the order is revoked: refunded$/ ],
    [ 'revoked without a reason', [ act('revoke') ], 'revoked not_checked',
        '409 access_revoked 409 access_revoked 200 403 403', qr/withdrawn/,
        access => qr/^Access to the order is revoked\.$/ ],
    [ 'revoked, then restored', [ act('revoke'), act('restore') ], 'active not_checked', $good,
        qr/2 of 2 downloads left/, undef ],
    [ 'held, then revoked', [ \&held, act('revoke') ], 'revoked held',
        '409 access_revoked 409 access_revoked 200 403 403', qr/withdrawn/,
        fraud => qr/^The order is under review/ ],
    [ 'held, revoked, restored', [ \&held, act('revoke'), act('restore') ], 'held held',
        '409 order_held 409 order_held 200 403 403', qr/under review/,
        fraud => qr/^The order is under review/ ],
    [ 'held, revoked, approved', [ \&held, act('revoke'), act('approve') ], 'revoked approved',
        '409 access_revoked 409 access_revoked 200 403 403', qr/withdrawn/, access => qr/revoked/ ],
    [ 'approved, then revoked', [ \&held, act('approve'), act('revoke') ], 'revoked approved',
        '409 access_revoked 409 access_revoked 200 403 403', qr/withdrawn/, access => qr/revoked/ ],
    [ 'with its only assignment revoked', [ \&unassign ], 'active not_checked',
        '409 access_revoked 409 access_revoked 200 403 403', qr/withdrawn/,
        access => qr/^Every assignment is revoked/ ],
    [ 'expired', [ \&expired ], 'active not_checked',
        '409 access_revoked 409 access_revoked 200 403 403', qr/have expired/,
        access => qr/^Access has expired.*extend_days/ ],
    [ 'expired, then extended', [ \&expired, act('grant-downloads', extend_days => 1) ],
        'active not_checked', $good, qr/available until/, undef ],
    [ 'held and expired', [ \&held, \&expired ], 'held held',
        '409 order_held 409 order_held 200 403 403', qr/under review/,
        fraud => qr/^The order is under review/ ],
    [ 'exhausted', [ \&exhausted ], 'active not_checked',
        '200 - 202 - 200 403 403', qr/limit of this file is reached/,
        allowance =>
            qr/^The download limit of states-.*, 2, is used up, 1 of 1 file: grant more\.$/ ],
    [ 'exhausted, then granted more', [ \&exhausted, act('grant-downloads', downloads => 5) ],
        'active not_checked', $good, qr/<button type/, undef ],
    [ 'exhausted and revoked', [ \&exhausted, act('revoke') ], 'revoked not_checked',
        '409 access_revoked 409 access_revoked 200 403 403', qr/withdrawn/, access => qr/revoked/ ],
    [ 'with a file that is missing', [ \&lost ], 'active not_checked',
        '200 - 202 - 200 303 500', qr/2 of 2 downloads left/,
        file => qr/is missing in the server's storage: 1 of 1 file\.$/ ],
    [ 'with a file that was missing', [ \&lost, \&found ], 'active not_checked', $good,
        qr/2 of 2 downloads left/, undef ],
    [ 'with a file that is being imported', [ set_asset('pending') ], 'active not_checked',
        '200 - 202 - 200 409 409', qr/being prepared/, file => qr/is still being imported/ ],
    [ 'with a file that could not be imported', [ set_asset('failed') ], 'active not_checked',
        '200 - 202 - 200 409 409', qr/could not be prepared/, file => qr/could not be imported/ ],
    [ 'whose mapping was deleted', [ \&stop_mapping ], 'active not_checked', $good,
        qr/2 of 2 downloads left/, undef ],
    [ 'whose mapping was emptied', [ \&empty_mapping ], 'active not_checked',
        '200 - 202 - 200 404 404', qr/nothing to download/, mapping => qr/has no content/ ],
);

sub answer { my ($reply) = @_; return $reply->{status}, $reply->{json}{error}{code} // '-' }

for my $state (@states) {
    my ($name, $steps, $access, $statuses, $says, $first, $words) = @$state;
    subtest "an order $name" => sub {
        my $order = order_of($name);
        $_->($order) for @$steps;

        my $now = read_order($order);
        is("$now->{access}{status} $now->{fraud}{decision}", $access,
            'the access and the fraud decision');
        my $told = api('GET', "/orders/$order->{id}/diagnosis", key => $shop->{token});
        is_shape($told->{json}, 'diagnosis', 'the diagnosis');
        is($told->{json}{first_failure}, $first, 'the first failure of the diagnosis')
            or diag($told->{body});
        if ($first) {
            my ($check) = grep { $_->{name} eq $first } @{ $told->{json}{checks} };
            like($check->{message}, $words, 'and its message');
        }
        my $urls   = api('GET',
            "/orders/$order->{id}/assignments/$order->{assignment}/download-urls",
            key => $shop->{token});
        my $resend = api('POST', "/orders/$order->{id}/resend", key => $shop->{token}, json => {});
        my $page   = page('GET', $order->{page});
        is(page('HEAD', $order->{page})->{status}, $page->{status},
            'HEAD of the page has the same status');
        my $pressed = press($order);
        my $link    = page('GET', $order->{link});
        is(join(' ', answer($urls), answer($resend), map { $_->{status} } $page, $pressed, $link),
            $statuses, 'the statuses of download-urls, resend, page, button and link');
        like($page->{body}, $says, "the page's sentence");
        like($page->{body}, qr/\Q$contact\E/, 'the page names whom to ask');
        like($page->{body}, qr/\Q$order->{id}\E/, 'and the number of the order');
        is($page->{body} =~ /name="(?:file|zip)"/ ? 1 : 0, $pressed->{status} == 303 ? 1 : 0,
            'the page has a button if pressing it works');
        unlike($page->{body}, qr/\Q$order->{asset}{filename}\E/, 'the page names no file')
            if $urls->{status} == 409;
        unlike($page->{body}, qr/risk/, 'the page does not tell why the order is held');
        like($link->{body}, qr/\Q$contact\E/, 'the link says whom to ask')
            if $link->{status} != 200;
        return if $urls->{status} != 200;
        my @urls = map { $_->{url} } @{ $urls->{json}{files} };
        is(join(' ', map { page('GET', $_)->{status} } @urls), $statuses =~ /(200|403|500)$/
            ? $1 : '', "a new URL has the link's status");
    };
}

subtest 'an unknown order' => sub {
    is_error(api($_->[0], "/orders/999999999999/$_->[1]", key => $shop->{token}, @$_[ 2 .. $#$_ ]),
        404, 'order_not_found', $_->[1])
        for [ 'GET', 'diagnosis' ], [ 'GET', 'assignments/1/download-urls' ],
            map { [ 'POST', $_, json => {} ] } qw(revoke restore resend approve reject);
    is(page('GET', public_url() . '/o/nonsense')->{status}, 404, 'its page');
};

done_testing();
