# All that happened to an order, page by page (contract, sections 1 and 6): events, downloads,
# emails.
#
# both: the database merges what happened, page by page
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my $file  = ready_asset($shop, "history-$$.txt", "bytes\n");
my @products =
    map { mapping_of($shop, [ $file->{id} ], download_limit => 100)->{storefront_product_id} } 1, 2;

sub get { my ($path, $of) = @_; return api('GET', $path, key => ($of // $shop)->{token}) }

sub new_order
{
    my $id = digits();
    my $reply = assign($shop, $id, \@products, storefront_customer_id => $id,
        customer => { email => "history-$id\@buyer.example" });
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return $id;
}

# The entries of all pages; $meanwhile is called after each page.
sub pages
{
    my ($path, $shape, $limit, $meanwhile) = @_;
    my ($cursor, @entries);
    for (my $n = 0; $n < 30 && ($n == 0 || defined $cursor); $n++) {
        my $reply = get("$path?limit=$limit" . (defined $cursor ? "&cursor=$cursor" : ''));
        is_answer($reply, 200, "a page of $path");
        is_shape($reply->{json}, $shape, 'the page');
        cmp_ok(scalar @{ $reply->{json}{data} }, '<=', $limit,
            'has no more entries than were asked for');
        push @entries, @{ $reply->{json}{data} };
        $cursor = $reply->{json}{next_cursor};
        $meanwhile->() if $meanwhile;
    }
    return @entries;
}

my ($order, $second) = (new_order(), new_order());
my @lists = qw(events downloads emails);

# --- an order to which little happened -----------------------------------------------------------

is_deeply(get("/orders/$second/$_")->{json},
    { data => [], has_more => JSON::PP::false(), next_cursor => undef },
    "an order without $_ has an empty list")
    for qw(downloads emails);
is_deeply(get("/orders/$second/events")->{json}{data}, get("/orders/$second")->{json}{events},
    'its events are those that it shows itself');

# --- events --------------------------------------------------------------------------------------

sub act
{
    my ($action, $json) = @_;
    return api('POST', "/orders/$order/$action", key => $shop->{token}, json => $json);
}

is(act('grant-downloads', { downloads => 1, reason => "number $_" })->{status}, 200, "grant $_")
    for 1 .. 6;
my @events = pages("/orders/$order/events", 'events', 2,
    sub { act('grant-downloads', { downloads => 1 }) });
is_deeply([ map { $_->{reason} } @events ], [ (map { "number $_" } reverse 1 .. 6), undef ],
    'pages of events, newest first, are stable while others are added');
is_deeply([ pages("/orders/$order/events", 'events', 100) ], get("/orders/$order")->{json}{events},
    'they are those that the order shows');
sql("INSERT INTO order_timeline (order_id, action, created_at) SELECT id, 'assigned', 1 FROM orders"
    . " WHERE shop_id = $shop->{shop_id} AND storefront_order_id = '$order'") for 1 .. 60;
is(scalar @{ get("/orders/$order")->{json}{events} }, 50, 'the order itself shows 50 events');
is(scalar pages("/orders/$order/events", 'events', 30), 60 + 7 + 4, 'the list has all of them');

# --- downloads -----------------------------------------------------------------------------------

my @assignments = map { $_->{id} } @{ get("/orders/$order")->{json}{assignments} };

sub download
{
    my ($assignment) = @_;
    my $urls = get("/orders/$order/assignments/$assignment/download-urls")->{json};
    my $reply = page('GET', $urls->{files}[0]{url});
    is("$reply->{status} $reply->{body}", "200 bytes\n", 'a download');
    return;
}

download($assignments[ $_ % 2 ]) for 1 .. 5;
# A download may be counted while its transfer still runs, which then adds to it.
wait_for(sub {
    my ($row) = sql("SELECT count(*) FROM download_session WHERE status = 'counted' "
        . 'AND ended_at IS NOT NULL AND assignment_id IN (' . join(', ', @assignments) . ')');
    $row->[0] == 5;
}, 60, 'the downloads to be counted, and their ends');
my @downloads = pages("/orders/$order/downloads", 'downloads', 2);
is_deeply(\@downloads, get("/orders/$order")->{json}{downloads},
    "pages of downloads, newest first, have what the order shows, of all its items");
# The same moment for all.
sql("UPDATE download_session SET opened_at = 1700000000000000 WHERE assignment_id IN ("
    . join(', ', @assignments) . ')');
# A downloads's entry has no id; each gets a size of its own.
my @sessions = sql('SELECT id FROM download_session WHERE assignment_id IN ('
    . join(', ', @assignments) . ')');
sql("UPDATE download_session SET transfers = " . (10 + $_) . " WHERE id = '$sessions[$_][0]'")
    for 0 .. $#sessions;
for my $limit (1 .. 3) {
    my $added = 0;
    my @got = map { $_->{transfers} } grep { $_->{transfers} > 1 }
        pages("/orders/$order/downloads", 'downloads', $limit,
            sub { download($assignments[0]) if !$added++ });
    is_deeply([ sort @got ], [ 10 .. 14 ],
        "of downloads of one moment, each is on one of the pages of $limit, while another begins");
}
is(scalar pages("/orders/$order/downloads", 'downloads', 2), 8, 'now there are three more');

# --- emails --------------------------------------------------------------------------------------

is(act('resend', { email => "history-$_\@buyer.example" })->{status}, 202, "email $_") for 1 .. 3;
my @emails = pages("/orders/$order/emails", 'emails', 2);
is_deeply([ map { $_->{to} } @emails ], [ map { "history-$_\@buyer.example" } reverse 1 .. 3 ],
    'emails are listed newest first');
my $shown = get("/orders/$order")->{json}{email};
is($emails[0]{to}, $shown->{to}, 'the first is the one that the order shows');
wait_for(sub {
    !grep { $_->{status} ne 'sent' } pages("/orders/$order/emails", 'emails', 10);
}, 60, 'the emails to leave, before their fate is written');
sql("UPDATE email SET status = 'failed', last_error = '550 no such user', held = 0, sent_at = NULL "
    . "WHERE id = $emails[2]{id}");
sql("UPDATE email SET status = 'sent', sent_at = 1700000000000000, "
    . "bounced_at = 1700000001000000, held = 0 WHERE id = $emails[1]{id}");
@emails = pages("/orders/$order/emails", 'emails', 1);
is_deeply([ @{ $emails[2] }{qw(status last_error)} ], [ 'failed', '550 no such user' ],
    "with the server's words");
is_deeply([ @{ $emails[1] }{qw(status sent_at)} ], [ 'bounced', '2023-11-14T22:13:20.000Z' ],
    'one that came back, and when it was sent');

# --- what is refused -----------------------------------------------------------------------------

for my $list (@lists) {
    is_error(get("/orders/$order/$list", $other), 404, 'order_not_found',
        "$list of another shop's order");
    is_error(get("/orders/$_/$list"), 404, 'order_not_found', "$list of the order '$_'")
        for '99999999', 'abc';
    is_error(get("/orders/$order/$list?limit=0&status=sent"), 400, 'invalid_request',
        "$list: faulty parameters", '/limit', '/status');
    my $cursor = get("/orders/$order/$list?limit=1")->{json}{next_cursor};
    is_error(get("/orders/$second/$list?cursor=$cursor"), 400, 'invalid_cursor',
        "$list: another order's cursor");
    my ($next) = grep { $_ ne $list } @lists;
    is_error(get("/orders/$order/$next?cursor=$cursor"), 400, 'invalid_cursor',
        "$next: a cursor of $list");
}

done_testing();
