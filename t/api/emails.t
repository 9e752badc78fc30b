# GET /emails (contract, section 10): the emails of a shop by status, order and the beginning of an
# address, alone and together, page by page.
#
# both: each filter has an index, and two are by an expression
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my %book  = map { $_->{shop_id} => mapping_of($_, [])->{storefront_product_id} } $shop, $other;

sub sent
{
    my ($of, $number, %more) = @_;
    my $reply = assign($of, $number, [ $book{ $of->{shop_id} } ], send_email => JSON::PP::true(),
        %more);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    wait_for(sub { api('GET', "/orders/$number", key => $of->{token})->{json}{email}{status}
        eq 'sent' }, 60, "the email of $number");
    return;
}

# The orders of the emails that a query finds, page by page.
sub found
{
    my ($query) = @_;
    my ($cursor, @found);
    for my $page (1 .. 100) {
        my $reply = api('GET', "/emails?$query" . (defined $cursor ? "&cursor=$cursor" : ''),
            key => $shop->{token});
        is_answer($reply, 200, "emails?$query");
        is_shape($reply->{json}, 'mailed', 'a page') if $page == 1;
        push @found, map { $_->{storefront_order_id} } @{ $reply->{json}{data} };
        $cursor = $reply->{json}{next_cursor} // return \@found;
    }
    die "emails?$query has no end\n";
}

my @TO = (
    [ 7001, 'ada@example.com' ],
    [ 7002, 'Bob@example.com' ],
    [ 7003, 'bobby@example.com' ],
    [ 7004, "zoe\@b\x{fc}cher.example" ],
    [ 7005, 'y_oe@example.com' ],
);
sent($shop, $_->[0], customer => { email => $_->[1] }, name => "A-$_->[0]") for @TO;
sent($other, 7001, customer => { email => 'ada@example.com' });
is(api('POST', '/orders/7001/resend', key => $shop->{token}, json => { email => 'bo@example.com' })
        ->{status}, 202, 'an email is sent again');
wait_for(sub { !grep { $_->{status} ne 'sent' }
    @{ api('GET', '/emails', key => $shop->{token})->{json}{data} } }, 60, 'it has left');

my ($further, @rest) = @{ api('GET', '/emails', key => $shop->{token})->{json}{data} };
my $of_order = api('GET', '/orders/7001/emails', key => $shop->{token})->{json}{data}[0];
is_deeply($further, { %$of_order, storefront_order_id => '7001', order_name => 'A-7001',
    kind => 'further' }, 'an email is that of its order, and says which');
is_deeply([ map { $_->{kind} } @rest ], [ ('first') x @TO ], 'the first ones of orders say so');

my %BECAME = (
    7002 => "status = 'failed', sent_at = NULL, last_error = 'refused'",
    7003 => "status = 'queued', held = 1, sent_at = NULL",
    7004 => "bounced_at = 5, last_error = 'unknown'",
    7005 => "status = 'no_recipient', recipient = NULL, sent_at = NULL",
);
sub become
{
    my (@numbers) = @_;
    sql("UPDATE email SET $BECAME{$_} WHERE order_id = (SELECT id FROM orders WHERE "
        . "shop_id = $shop->{shop_id} AND storefront_order_id = '$_')") for @numbers;
    return;
}
become(qw(7002 7003 7004));

for (
    [ '',                                        [qw(7001 7005 7004 7003 7002 7001)] ],
    [ 'status=sent',                             [qw(7001 7005 7001)] ],
    [ 'status=failed',                           ['7002'] ],
    [ 'status=held',                             ['7003'] ],
    [ 'status=bounced',                          ['7004'] ],
    [ 'status=queued',                           [] ],
    [ 'storefront_order_id=7001',                [qw(7001 7001)] ],
    [ 'storefront_order_id=7777',                [] ],
    [ 'storefront_order_id=7001&status=sent',    [qw(7001 7001)] ],
    [ 'storefront_order_id=7001&status=failed',  [] ],
    [ 'storefront_order_id=7001&to=ADA',         ['7001'] ],
    [ 'storefront_order_id=7001&to=bob',         [] ],
    [ 'to=BO',                                   [qw(7001 7003 7002)] ],
    [ 'to=bob%40example.com',                    ['7002'] ],
    [ 'to=bo&status=failed',                     ['7002'] ],
    [ 'to=7001',                                 [] ],
    [ 'to=y%25oe',                               [] ],
    [ 'to=zoe%40b%C3%BCcher.example',            ['7004'] ],
    [ 'to=zoe%40xn--',                           ['7004'] ],
) {
    my ($query, $expected) = @$_;
    is_deeply(found($query), $expected, "emails?$query: those that fit");
    is_deeply(found("$query&limit=1"), $expected, 'one by one, too');
}
become('7005');
is_deeply(found('status=no_recipient'), ['7005'], 'also that of an order without an address');

for my $query ('status=not_requested', 'status=x', 'storefront_order_id=x',
    'storefront_order_id=07', 'storefront_order_id=' . '1' x 21, 'to=', 'to=%01',
    'to=' . 'x' x 255, 'fate=sent', 'q=7001') {
    my ($name) = $query =~ /^(\w+)/;
    is_error(api('GET', "/emails?$query", key => $shop->{token}), 400, 'invalid_request', $query,
        "/$name");
}

my $cursor = api('GET', '/emails?to=bo&limit=1', key => $shop->{token})->{json}{next_cursor};
is_error(api('GET', "/emails?to=b&cursor=$cursor", key => $shop->{token}), 400, 'invalid_cursor',
    'a cursor goes with its filters');

my $read = MDL::Test::new_key($shop->{shop_id}, scope => 'read')->{token};
is(api('GET', '/emails', key => $read)->{status}, 200, 'a key that only reads may read them');

done_testing();
