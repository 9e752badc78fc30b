# A customer asks the shop for help, by the button of a page that says that something is wrong.
#
# both: requests are counted by a query, and one may be asked at a time
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $asset = ready_asset($shop, 'book.pdf', 'the book');
my $product = mapping_of($shop, [ $asset->{id} ], download_limit => 1)->{storefront_product_id};

# An order; { number, url, item, where }.
sub order
{
    my $number = digits();
    my $reply  = assign($shop, $number, [$product], storefront_customer_id => $number);
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    return { number => $number, url => $reply->{json}{download_page_url},
        item => $reply->{json}{assignments}[0]{id},
        where => "order_id = (SELECT id FROM orders WHERE shop_id = $shop->{shop_id} "
            . "AND storefront_order_id = '$number')" };
}

sub expired
{
    my $order = order();
    sql("UPDATE assignment SET expires_at = created_at + 1 WHERE id = $order->{item}");
    return $order;
}

sub used_up
{
    my $order = order();
    sql("INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra) "
        . "VALUES ($order->{item}, $asset->{id}, 1, 0)");
    return $order;
}

sub revoked
{
    my $order = order();
    api('POST', "/orders/$order->{number}/revoke", key => $shop->{token}, json => {});
    return $order;
}

sub shown { my ($order) = @_; return page('GET', $order->{url})->{body} }
sub press
{
    my ($order) = @_;
    return page('POST', $order->{url}, form => { help => 'shop' }, patient => 1);
}

sub has_button { my ($html) = @_; return $html =~ /<input type="hidden" name="help"/ ? 1 : 0 }

sub requests
{
    my ($order) = @_;
    return join ' ', map { join ':', @$_ }
        sql("SELECT state, finding FROM help_request WHERE $order->{where} ORDER BY id");
}

is(has_button(shown(order())), 0, 'a page on which nothing is wrong has no button');

for ([ \&expired, 'access_expired' ], [ \&used_up, 'allowance_used_up' ],
    [ \&revoked, 'access_revoked' ]) {
    my ($made, $finding) = @$_;
    my $order = $made->();
    is(has_button(shown($order)), 1, "$finding: the page has the button");
    page('HEAD', $order->{url});
    is(requests($order), '', 'looking asks nothing');
    my $reply = press($order);
    is($reply->{status}, 303, 'pressing it leads back') or diag(explain($reply));
    is($reply->{headers}{location}, $order->{url}, 'to the page');
    is(requests($order), "asked:$finding", 'and the shop is asked, with what is wrong');
    my $html = shown($order);
    is(has_button($html), 0, 'the page has no button any more');
    like($html, qr/You asked the shop for help on <time.*The shop has not answered you yet/,
        'and says since when it is asked, and who has not answered');
}

subtest 'A request is there once' => sub {
    my $order = expired();
    my @status = parallel(4, sub { press($order)->{status} });
    is("@status", '303 303 303 303', 'the button is pressed at once by several');
    is(press($order)->{status}, 303, 'and again');
    is(requests($order), 'asked:access_expired', 'one request');
};

subtest 'A request lapses' => sub {
    my $order = expired();
    my $day   = 86_400_000_000;
    for my $times (1 .. 3) {
        press($order);
        is(scalar(() = requests($order) =~ /asked/g), 1, "request $times is asked");
        sql("UPDATE help_request SET asked_at = asked_at - 14 * $day WHERE $order->{where} "
            . "AND state = 'asked'");
        is(has_button(shown($order)), 1, 'after 14 days the button is back');
    }
    sql("UPDATE help_request SET asked_at = asked_at + 13 * $day WHERE $order->{where}");
    sql("UPDATE help_request SET state = 'refused' WHERE $order->{where}");
    my $reply = press($order);
    is($reply->{status}, 429, 'a fourth request of a month is refused');
    like($reply->{body}, qr/has been asked too often/, 'in words');
    is(scalar(my @all = split / /, requests($order)), 3, 'and is not stored');
    sql("UPDATE help_request SET asked_at = asked_at - 29 * $day WHERE $order->{where}");
    is(press($order)->{status}, 303, 'a month later it is accepted');
};

subtest 'A shop is asked by so many' => sub {
    my $order = expired();
    sql("INSERT INTO help_request (shop_id, order_id, finding, state, asked_at) "
        . "SELECT $shop->{shop_id}, -id, 'none', 'asked', (SELECT max(asked_at) FROM help_request) "
        . "FROM (" . (database() eq 'pgsql' ? 'SELECT generate_series(1, 1000) AS id'
            : 'WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 1000) '
            . 'SELECT id FROM n') . ') ids');
    is(press($order)->{status}, 429, 'another waits');
    is(requests($order), '', 'and is not stored');
    sql('DELETE FROM help_request WHERE order_id < 0');
    is(press($order)->{status}, 303, 'until the shop has answered');
};

subtest 'A failed download' => sub {
    my $order = order();
    my $link  = page('POST', $order->{url}, form => { file => "$order->{item}-$asset->{id}" })
        ->{headers}{location};
    sql("UPDATE assignment SET expires_at = created_at + 1 WHERE id = $order->{item}");
    my $reply = page('GET', $link);
    is($reply->{status}, 403, 'it has expired') or diag(explain($reply));
    like($reply->{body},
        qr{<form method="post" action="\Q$order->{url}\E">\s*<input[^>]*name="help"},
        'its page has the button');
};

sub helps
{
    my ($help) = @_;
    my $reply = api('PATCH', '/shop', key => $shop->{token}, json => { help => $help });
    is($reply->{json}{help}, $help, "the shop's help is $help") or diag(explain($reply));
    return;
}

# The actions of an order's timeline that nobody is named for.
sub timeline
{
    my ($order) = @_;
    return join ' ', map { $_->[0] } sql("SELECT action FROM order_timeline WHERE $order->{where} "
            . 'AND key_id IS NULL AND user_name IS NULL ORDER BY id');
}

sub grants { my ($order) = @_; return scalar(() = timeline($order) =~ /downloads_granted/g) }

subtest 'A shop that does not want to be asked' => sub {
    my $order = expired();
    helps('off');
    is(has_button(shown($order)), 0, 'its pages have no button');
    my $reply = press($order);
    is($reply->{status}, 403, 'what is sent nevertheless is refused');
    like($reply->{body}, qr/Questions/, 'by the page, which says where to write');
    is(requests($order), '', 'and nobody is asked');
    my $other = order();
    my $link  = page('POST', $other->{url}, form => { file => "$other->{item}-$asset->{id}" })
        ->{headers}{location};
    sql("UPDATE assignment SET expires_at = created_at + 1 WHERE id = $other->{item}");
    is(has_button(page('GET', $link)->{body}), 0, 'nor has the page of a failed download');
    helps('on');
};

subtest 'The first request is granted by itself' => sub {
    helps('first_by_itself');
    for my $made (\&expired, \&used_up) {
        my $order = $made->();
        my @status = parallel(4, sub { press($order)->{status} });
        is("@status", '303 303 303 303', 'the button is pressed at once by several')
            or diag(error_log_since(0));
        like(requests($order), qr/^granted:\w+$/, 'one request is granted, and nobody is asked');
        is(grants($order), 1, 'once') or diag(timeline($order));
        my $html = shown($order);
        is(has_button($html), 0, 'nothing is wrong any more') or diag($html);
        like($html, qr/name="file"/, 'the page has the download');
        is_deeply([ sql("SELECT count(*) FROM help_request WHERE $order->{where} "
            . 'AND decided_by IS NULL AND decided_at IS NOT NULL') ], [ [1] ], 'nobody decided it');
        sql("UPDATE assignment SET expires_at = created_at + 1 WHERE id = $order->{item}");
        press($order);
        like(requests($order), qr/^granted:\w+ asked:\w+$/, 'the next goes to the shop');
        is(grants($order), 1, 'and gives nothing by itself');
    }
    my $order = revoked();
    press($order);
    is(requests($order), 'asked:access_revoked', 'a revoked order is for the shop');
    is(grants($order), 0, 'too');
    helps('on');
};

is(page('POST', public_url() . '/o/AAAAAAAAAAAAAAAAAAAAAA', form => { help => 'shop' })->{status},
    404, 'an unknown page asks nothing');

done_testing();
