# POST /orders/{id}/rotate-link (contract, section 6): a new address for an order's page, and
# nothing left of the former one.
#
# once: openapi.t replaces links on both databases, and what a link opens is decided before
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my ($file, $more) = map { ready_asset($shop, "rotate-$$-$_.txt", "what was bought, number $_\n") }
    1, 2;
my $link  = api('POST', '/links', key => $shop->{token},
    json => { title => 'Forum', url => 'https://example.com/forum' })
    ->{json}{id};
my $product = mapping_of($shop, [ $file->{id}, $more->{id} ], link_ids => [$link],
    download_limit => 0)->{storefront_product_id};

sub new_order
{
    my (%members) = @_;
    my $id = digits();
    my $reply = assign($shop, $id, [$product], storefront_customer_id => $id, %members);
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

sub act
{
    my ($order, $action, $members, %request) = @_;
    return api('POST', "/orders/$order->{storefront_order_id}/$action", key => $shop->{token},
        defined $members ? (json => $members) : (), %request);
}

sub press
{
    my ($order, %form) = @_;
    return page('POST', $order->{download_page_url}, form => \%form)->{headers}{location};
}

# Every address that leads to something of the order: { name => URL }.
sub addresses
{
    my ($order) = @_;
    my $assignment = $order->{assignments}[0]{id};
    my ($visit) = page('GET', $order->{download_page_url})->{body} =~ m{href="([^"]+/l/[^"]+)"};
    my $urls = api('GET',
        "/orders/$order->{storefront_order_id}/assignments/$assignment/download-urls",
        key => $shop->{token})->{json};
    return {
        'the page'                => $order->{download_page_url},
        "a link's URL"            => $visit,
        "a file's URL"            => press($order, file => "$assignment-$file->{id}"),
        "an archive's URL"        => press($order, zip  => $assignment),
        "the API's for a file"    => $urls->{files}[0]{url},
        "the API's for an archive" => $urls->{zip}{url},
    };
}

sub statuses
{
    my ($urls) = @_;
    return { map { $_ => page('GET', $urls->{$_})->{status} } keys %$urls };
}

sub events
{
    my ($order) = @_;
    return api('GET', "/orders/$order->{storefront_order_id}", key => $shop->{token})
        ->{json}{events};
}

# --- a page with all that leads from it ----------------------------------------------------------

my $order  = new_order();
my $former = addresses($order);
my %open   = map { $_ => /link/ ? 303 : 200 } keys %$former;
my %closed = map { $_ => 404 } keys %$former;
is_deeply(statuses($former), \%open, 'every address of the order works');
my $unused = addresses($order);
my $known  = () = @{ events($order) };

my $reply = act($order, 'rotate-link', { reason => 'posted in a forum' });
is_answer($reply, 200, 'a new link');
my $rotated = $reply->{json};
is_shape($rotated, 'order', 'the order');
isnt($rotated->{download_page_url}, $order->{download_page_url}, 'its page has another address');
is_deeply({ %$rotated, download_page_url => '' }, { %$order, download_page_url => '',
    assignments => $rotated->{assignments}, updated_at => $rotated->{updated_at} },
    'and nothing else of the order has changed');
is_deeply(statuses($former), \%closed, 'every former address is 404');
is_deeply(statuses($unused), \%closed, 'and so are those that were never opened');
my ($token) = $rotated->{download_page_url} =~ m{/o/(.+)$};
for my $name (sort keys %$former) {
    my $answer = page($name =~ /page/ ? 'GET' : 'POST', $former->{$name});
    unlike($answer->{body}, qr/\Q$token\E/, "$name says nothing of the new one");
    is($answer->{status}, 404, 'by no method');
}
my $later = addresses($rotated);
is_deeply(statuses($later), \%open, 'the new page and what leads from it work');
my @events = @{ events($order) };
is(@events, $known + 1, 'one event is added');
is_deeply([ @{ $events[0] }{qw(action assignment_ids reason details)} ],
    [ 'link_rotated', undef, 'posted in a forum', undef ], 'which says what was done, and why');
ok($events[0]{key_id}, 'and by which key');

my $again = act($order, 'rotate-link')->{json};
is_deeply(statuses($later), \%closed, 'a second new link replaces the first');
is_deeply(statuses($former), \%closed, 'and the former ones stay closed');
is(page('GET', $again->{download_page_url})->{status}, 200, 'the newest works');
my $url = $again->{download_page_url};
is(assign($shop, $order->{storefront_order_id}, [$product],
    storefront_customer_id => $order->{storefront_order_id})
    ->{json}{download_page_url}, $url, 'assigning again does not change it');

# A file that is not in the order any more.
my $gone = addresses($again)->{"a file's URL"};
api('PUT', "/mappings/$again->{assignments}[0]{mapping_id}", key => $shop->{token},
    json => { storefront_product_id => $product, file_ids => [] });
is(page('GET', $gone)->{status}, 404, 'the URL of a file that left the order');
($token) = $url =~ m{/o/(.+)$};
like(page('GET', $gone)->{body}, qr/\Q$token\E/, 'leads back to the page that it came from');
$url = act($order, 'rotate-link')->{json}{download_page_url};
unlike(page('GET', $gone)->{body}, qr{/o/}, 'but not to the one that replaced it');
api('PUT', "/mappings/$again->{assignments}[0]{mapping_id}", key => $shop->{token},
    json => { storefront_product_id => $product, file_ids => [ $file->{id}, $more->{id} ],
        link_ids => [$link] });

# --- emails --------------------------------------------------------------------------------------

my $to = "rotate-$$\@buyer.example";
$order   = new_order(customer => { email => $to });
$rotated = act($order, 'rotate-link')->{json};
is(scalar(mails($to)), 0, 'a new link sends no email');
is_answer(act($order, 'resend'), 202, 'the email is sent again');
my $urls = wait_mail($to)->{urls};
ok(scalar(grep { $_ eq $rotated->{download_page_url} } @$urls), 'with the new link');
ok(!scalar(grep { $_ eq $order->{download_page_url} } @$urls), 'and without the former one');

# --- repeated, refused, in every state -----------------------------------------------------------

$order = new_order();
my $key  = idem('rotate');
my @same = map { act($order, 'rotate-link', { reason => 'once' }, idem => $key) } 1, 2;
is($same[1]{body}, $same[0]{body}, 'a replay has the same answer');
is(page('GET', $same[0]{json}{download_page_url})->{status}, 200,
    'and does not replace the link again');
is(scalar(grep { $_->{action} eq 'link_rotated' } @{ events($order) }), 1,
    'nor does it add an event');

unstored();
refused(act({ storefront_order_id => digits() }, 'rotate-link'), 404, 'order_not_found',
    'an unknown order');
refused(act({ storefront_order_id => 'x' }, 'rotate-link'), 404, 'order_not_found',
    'an invalid id');
refused(api('POST', "/orders/$order->{storefront_order_id}/rotate-link", key => $other->{token}),
    404, 'order_not_found', "another shop's order");
refused(act($order, 'rotate-link', { assignment_ids => [1] }), 400, 'invalid_request',
    'an unknown member', '/assignment_ids');

act($order, 'revoke', { reason => 'a refund' });
my $revoked = act($order, 'rotate-link')->{json};
is($revoked->{access}{status}, 'revoked', 'a revoked order stays revoked');
is($revoked->{access}{reason}, 'a refund', 'with its reason');
like(page('GET', $revoked->{download_page_url})->{body}, qr/a refund/, 'which its new page says');

done_testing();
