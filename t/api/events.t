# GET /events (contract, section 11): what happens in a shop, each event with the number behind the
# last.
#
# once: events_followed.t has the numbers of both databases
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Customer;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());
my $shop = new_shop();

sub events
{
    my ($query, $of) = @_;
    return api('GET', '/events' . ($query // ''), key => ($of // $shop)->{token});
}

my $read = 0;

# Waits for the next events, of which there are so many, and returns them; no other may come with
# them.
sub next_events
{
    my ($count, $what, $of) = @_;
    my $after = $of ? 0 : $read;
    my $json;
    wait_for(
        sub { $json = events("?after=$after", $of)->{json}; return @{ $json->{data} } >= $count },
        60, "$count events: $what");
    is_shape($_, 'shop_event', "$what: $_->{type}") for @{ $json->{data} };
    is(join(' ', map { $_->{number} } @{ $json->{data} }), join(' ', $after + 1 .. $after + $count),
        "$what: the numbers go on without a gap");
    $read = $json->{next_after} if !$of;
    return @{ $json->{data} };
}

# Types, and what they have.
sub told
{
    my (@events) = @_;
    return [ map { [ $_->{type}, $_->{data} ] } @events ];
}

# --- assets --------------------------------------------------------------------------------------

my $empty = events();
is_answer($empty, 200, 'a new shop');
is_shape($empty->{json}, 'shop_events', 'its events');
my $feed = $empty->{json}{feed};
is_deeply($empty->{json}, { data => [], has_more => $false, next_after => 0, feed => $feed },
    'are none');
is_deeply(events('?after=latest')->{json}, $empty->{json}, 'from the end on neither');

my $file = new_file($shop, 1000);
is_deeply(told(next_events(1, 'an import')), [ [ 'asset.ready',
    { asset_id => $file->{id}, version => 1, size => 1000, sha256 => $file->{sha256} } ] ],
    'an import that succeeds');

my $next = api('POST', "/assets/$file->{id}/versions", key => $shop->{token},
    json => { source_url => source('events-2.bin', 'two') });
wait_job($shop, $next->{json}{job}{id});
my ($version) = next_events(1, 'a version');
is("$version->{type} $version->{data}{asset_id} $version->{data}{version} $version->{data}{size}",
    "asset.version_added $file->{id} 2 3", 'a new version');

my $lost = api('POST', '/assets', key => $shop->{token},
    json => { source_url => source_url('events-none.bin') });
wait_job($shop, $lost->{json}{job}{id});
is_deeply(told(next_events(1, 'a failure')),
    [ [ 'import.failed', { asset_id => $lost->{json}{asset}{id},
        job_id => $lost->{json}{job}{id}, error_code => 'source_not_found' } ] ],
    'an import that fails');

# --- orders --------------------------------------------------------------------------------------

my $product = mapping_of($shop, [ $file->{id} ], download_limit => 1, title => 'Sketchbook')
    ->{storefront_product_id};
my $id      = digits();
my $order   = assign($shop, $id, [$product], send_email => $true,
    customer => { email => 'a@buyer.example' });
my $first   = $order->{json}{assignments}[0]{id};
my @sent    = next_events(2, 'an order with an email');
is_deeply(told($sent[0]),
    [ [ 'order.assigned', { storefront_order_id => $id, assignment_ids => [$first],
        is_new => $true, title => 'Sketchbook' } ] ],
    'an order is assigned');
is($sent[1]{type}, 'email.sent', 'and its email sent');
is_deeply([ sort keys %{ $sent[1]{data} } ], [qw(email_id storefront_order_id)],
    'with the ids of both');
is_answer(assign($shop, $id, [$product]), 200, 'what is assigned once more');
api('POST', "/orders/$id/grant-downloads", key => $shop->{token}, json => { downloads => 1 });

my $idem = idem();

sub act
{
    my ($of, $what, %json) = @_;
    return api('POST', "/orders/$of/$what", key => $shop->{token}, json => \%json,
        idem => $json{reason} ? $idem : idem());
}

act($id, 'revoke', assignment_ids => [$first]);
act($id, 'revoke', assignment_ids => [$first]);
act($id, 'restore');
is(act($id, 'revoke', reason => 'Paid back')->{status}, 200, 'a revocation') for 1, 2;
act($id, 'restore');
is_deeply(told(next_events(4, 'what is decided')), [
    [ 'order.revoked',
        { storefront_order_id => $id, access_status => 'active', assignment_ids => [$first] } ],
    [ 'order.restored', { storefront_order_id => $id, access_status => 'active' } ],
    [ 'order.revoked',  { storefront_order_id => $id, access_status => 'revoked' } ],
    [ 'order.restored', { storefront_order_id => $id, access_status => 'active' } ],
], 'access is revoked and restored, each once');

held_by_check($shop, $id);
act($id, 'approve');
my $other_id = digits();
assign($shop, $other_id, [$product]);
held_by_check($shop, $other_id);
act($other_id, 'reject');
is_deeply(
    [ map { "$_->{type} $_->{data}{storefront_order_id} " . ($_->{data}{access_status} // '') }
    next_events(5, 'the fraud check') ],
    [ "order.held $id held", "order.approved $id active", "order.assigned $other_id ",
        "order.held $other_id held", "order.rejected $other_id rejected" ],
    'orders are held, approved and rejected');

# A customer of whom two orders were revoked is held.
my $wary  = new_shop();
my $plain = mapping_of($wary, [])->{storefront_product_id};
my @made  = map { digits() } 1 .. 3;
for my $of (@made) {
    assign($wary, $of, [$plain], storefront_customer_id => '7', fraud_check => $true);
    api('POST', "/orders/$of/revoke", key => $wary->{token}, json => {}) if $of ne $made[2];
}
is_deeply([ map { "$_->{type} $_->{data}{storefront_order_id}" } next_events(6, 'a risk', $wary) ],
    [ (map { ("order.assigned $_", "order.revoked $_") } @made[ 0, 1 ]), "order.assigned $made[2]",
        "order.held $made[2]" ],
    'an order is assigned before it is held');

# --- downloads -----------------------------------------------------------------------------------

my $buy = buy($shop, $file, limit => 2);
next_events(1, 'an order');
for my $nth (1, 2) {
    my $link = link_of($buy);
    page('GET', $link, headers => { Range => 'bytes=0-0' });
    is(page('GET', $link)->{status}, 200, 'a download');
    settled($buy);
    my $data = { storefront_order_id => $buy->{id}, assignment_id => $buy->{assignment},
        file_id => $file->{id}, title => $buy->{title}, bytes => length 'two' };
    is_deeply(told(next_events($nth, "download $nth")),
        [ [ 'download.completed', $data ], $nth == 2 ? [ 'download.limit_reached', $data ] : () ],
        $nth == 1 ? 'one of two downloads is completed' : 'the last one is, too');
}

# --- license keys --------------------------------------------------------------------------------

my $tag = api('POST', '/license-key-tags', key => $shop->{token},
    json => { name => 'T', low_stock_threshold => 1 })
    ->{json}{id};
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token}, json => { keys => [qw(K1 K2)] });
my $keys = mapping_of($shop, [], license_key_tag_ids => [$tag])->{storefront_product_id};
my @orders = map { digits() } 1 .. 3;
assign($shop, $_, [$keys]) for @orders;
my %low = (license_key_tag_id => $tag, low_stock_threshold => 1);
is_deeply([ map { $_->[0] eq 'order.assigned' ? "assigned $_->[1]{storefront_order_id}" : $_ }
    @{ told(next_events(6, 'orders with license keys')) } ], [
    "assigned $orders[0]",
    [ 'license_key.low',       { %low, available => 1 } ],
    [ 'license_key.delivered', { storefront_order_id => $orders[0], license_keys => 1 } ],
    "assigned $orders[1]",
    [ 'license_key.delivered', { storefront_order_id => $orders[1], license_keys => 1 } ],
    "assigned $orders[2]",
], 'keys are delivered once the order is assigned, and a tag is low once');
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token}, json => { keys => ['K3'] });
is_deeply(told(next_events(1, 'a license key that comes later')),
    [ [ 'license_key.delivered', { storefront_order_id => $orders[2], license_keys => 1 } ] ],
    'an order that waited gets its key');
unlike(events("?after=0&limit=100")->{body}, qr/K[123]|downloads\/o\/|buyer\.example/,
    'no event has a license key, an address or the URL of a page');

# --- reading -------------------------------------------------------------------------------------

my $last = $read;
my $all  = events('?limit=100')->{json};
is_deeply([ map { $_->{number} } @{ $all->{data} } ], [ 1 .. $last ],
    'all of them, from the oldest on');
is_deeply(events('?after=0&limit=100')->{json}, $all, 'after=0 is the same');
is("$all->{has_more} $all->{next_after}", "0 $last", 'and that was all');
my %ids = map { $_->{id} => 1 } @{ $all->{data} };
is(scalar keys %ids, $last, 'each has an id of its own');
my $page = events('?after=3&limit=2')->{json};
is_deeply([ map { $_->{number} } @{ $page->{data} } ], [ 4, 5 ], 'a page of them');
is("$page->{has_more} $page->{next_after}", '1 5', 'says where to go on');
is_deeply(events('?after=latest')->{json},
    { data => [], has_more => $false, next_after => $last, feed => $feed },
    'after=latest tells the number of the last');
is_deeply(events("?after=$_")->{json},
    { data => [], has_more => $false, next_after => $last, feed => $feed },
    "after=$_: there is none, and where to go on is the last")
    for $last, $last + 5, 99_999, 9007199254740991, "99999&type=order.held";
is_deeply(events('?after=7', new_shop())->{json},
    { data => [], has_more => $false, next_after => 0, feed => $feed },
    'in a shop without events it is 0');
my $held = events('?type=order.held')->{json};
is_deeply([ map { $_->{type} } @{ $held->{data} } ], [ ('order.held') x 2 ], 'those of a type');
is($held->{next_after}, $last, 'and where to go on is behind all of them');

my $one = events('?type=order.held&limit=1')->{json};
is("$one->{has_more} $one->{next_after}", "1 $held->{data}[0]{number}",
    'a page of a type ends at its last event');

for ([ 'after=x', '/after' ], [ 'after=-1', '/after' ], [ 'after=01', '/after' ],
    [ 'type=order', '/type' ],
    [ 'limit=0', '/limit' ], [ 'before=1', '/before' ]) {
    is_error(events("?$_->[0]"), 400, 'invalid_request', "a query of $_->[0]", $_->[1]);
}

# --- who may -------------------------------------------------------------------------------------

my $reader = new_shop(scope => 'read');
is_answer(events('', $reader), 200, 'a key that may only read');
is_deeply(events('', $reader)->{json}{data}, [], "has nothing of another shop's");

my $blocked = new_shop();
ctl('shop', 'block', $blocked->{shop_id}, '--reason', 'Complaints');
ctl('shop', 'unblock', $blocked->{shop_id});
is_deeply(told(next_events(1, 'a block', $blocked)), [ [ 'shop.blocked', {} ] ],
    'a shop that was blocked');

# --- a backup that was restored ------------------------------------------------------------------

is_deeply(events("?after=3&limit=2&feed=$feed")->{json}, $page,
    'a reader may say which feed it reads');
my ($renewed) = ctl('feed', 'renew');
is($renewed, 0, 'the operator, who has restored a backup, gives the numbers another feed');
is_error(events("?after=3&feed=$feed"), 409, 'feed_changed', 'a reader of the former one is told');
is_error(events("?after=latest&feed=$feed"), 409, 'feed_changed', 'at the end, too');
my $now = events('?after=latest')->{json}{feed};
isnt($now, $feed, 'without it the reader gets the new one');
is(events("?after=latest&feed=$now")->{status}, 200, 'and goes on with that');

done_testing();
