# Moving buyers: a job gives what a mapping gives to each order that has another, once, whatever
# happens to the background process meanwhile (contract, section 6).
#
# both: the orders are read by a cursor, and each is in a savepoint
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Httpd qw(worker_pids);
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());
my $shop = new_shop();
my $id   = $shop->{shop_id};
my $file = ready_asset($shop, 'second.pdf', 'the second edition');

sub keys_tag
{
    my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => $_[0] });
    api('POST', "/license-key-tags/$tag->{json}{id}/keys", key => $shop->{token},
        json => { keys => [ map { "$_[0]-$_" } 1 .. 5 ] });
    return $tag->{json}{id};
}

sub count_of
{
    my ($from, $to) = @_;
    return api('GET', "/mappings/$from->{id}/move-buyers/$to->{id}", key => $shop->{token});
}

sub move
{
    my ($from, $to, %json) = @_;
    return api('POST', "/mappings/$from->{id}/move-buyers/$to->{id}", key => $shop->{token},
        json => \%json);
}

# Waits until a move has ended; returns its numbers.
sub moved
{
    my ($reply) = @_;
    is($reply->{status}, 202, 'a move is queued') or diag $reply->{body};
    my $job = wait_job($shop, $reply->{json}{id}, 60);
    is($job->{status}, 'succeeded', 'and succeeds') or diag explain $job->{error};
    return $job->{move};
}

sub order { return api('GET', "/orders/$_[0]", key => $shop->{token})->{json} }
sub products_of { return [ map { $_->{title} } @{ order($_[0])->{assignments} } ] }

# --- who gets what -------------------------------------------------------------------------------

my $first  = mapping_of($shop, [ $file->{id} ], title => 'First');
my $second = mapping_of($shop, [ $file->{id} ], title => 'Second',
    license_key_tag_ids => [ keys_tag('S') ]);
my %is = map { $_ => digits() } qw(plain held revoked part had full other);

assign($shop, $is{$_}, [ $first->{storefront_product_id} ])
    for qw(plain held revoked part had full);
assign($shop, $is{other}, [ mapping_of($shop, [])->{storefront_product_id} ]);
held_by_check($shop, $is{held});
my $gone = order($is{part})->{assignments}[0]{id};
api('POST', "/orders/$is{revoked}/revoke", key => $shop->{token}, json => {});
api('POST', "/orders/$is{part}/revoke", key => $shop->{token},
    json => { assignment_ids => [$gone] });
assign($shop, $is{had}, [ $second->{storefront_product_id} ]);
api('POST', "/orders/$is{had}/revoke", key => $shop->{token},
    json => { assignment_ids => [ order($is{had})->{assignments}[1]{id} ] });
# An order has 250 items at most.
assign($shop, $is{full},
    [ map { +{ storefront_product_id => $first->{storefront_product_id},
        storefront_variant_id => variant() } } 1 .. 249 ]);

my $counted = count_of($first, $second);
is_deeply($counted->{json}, { orders => 6, have_it => 1, to_give => 3, more => $false },
    'they are counted first') or diag $counted->{body};
my $reply = move($first, $second);
like($reply->{headers}{location}, qr{/jobs/\Q$reply->{json}{id}\E\z},
    'the answer leads to its job');
is($reply->{json}{type}, 'buyers_move', 'which says what it is');
my $move = moved($reply);
is_deeply($move, { mapping_id => $first->{id}, to_mapping_id => $second->{id},
    license_keys => $false, send_email => $false, given => 2, skipped => 1,
    skipped_orders => [ { storefront_order_id => $is{full}, code => 'too_many_items' } ] },
    'the job says to how many it was given, and which orders are full') or diag explain $move;
is_deeply(products_of($is{plain}), [qw(First Second)], 'a buyer has both');
is_deeply(order($is{plain})->{assignments}[1]{license_keys}, [], 'without a license key');
is(order($is{plain})->{assignments}[1]{license_keys_pending}, 0, 'nor one to come');
is(order($is{plain})->{email}{status}, 'not_requested', 'without an email');
is(order($is{plain})->{events}[-1]{action}, 'assigned', 'its story tells');
is_deeply(products_of($is{held}), [qw(First Second)], 'an order that is held has both');
is(order($is{held})->{access}{status}, 'held', 'and stays held');
is_deeply(products_of($is{$_}), ['First'], "nothing for an order that was $_")
    for qw(revoked part);
is(order($is{revoked})->{access}{status}, 'revoked',
    'its access stays revoked');
is(order($is{had})->{assignments}[1]{status}, 'revoked', 'what was revoked stays revoked');
is(scalar(@{ order($is{full})->{assignments} }), 250, 'a full order has no item more');
is(scalar(@{ order($is{other})->{assignments} }), 1, 'and nobody else got any');
is((sql("SELECT count(*) FROM audit WHERE shop_id = $id AND noun = 'mapping' "
    . "AND action = 'buyers_moved' AND noun_id = '$first->{id}'"))[0][0], 1, 'it is in the audit');

my $listed = api('GET', '/jobs?type=buyers_move', key => $shop->{token})->{json}{data};
is_deeply([ map { $_->{id} } @$listed ], [ $reply->{json}{id} ], 'it is among the jobs');

# --- again ---------------------------------------------------------------------------------------

my $late = digits();
assign($shop, $late, [ $first->{storefront_product_id} ],
    customer => { email => "late-$$\@buyer.example" });
$move = moved(move($first, $second, license_keys => $true, send_email => $true));
is($move->{given}, 1, 'a second move gives to whoever came since');
is(scalar(@{ order($late)->{assignments}[1]{license_keys} }), 1, 'with a license key, as asked');
like(order($late)->{email}{status}, qr/^(?:queued|sent)$/, 'and with an email');
is_deeply(products_of($is{plain}), [qw(First Second)], 'and nothing twice');
is_deeply(order($is{plain})->{assignments}[1]{license_keys}, [], 'nor a key to who has it already');

is(moved(move($second, $second))->{given}, 0, 'to itself it gives nothing');
api('PATCH', "/mappings/$second->{id}", key => $shop->{token}, json => { is_active => $false });
is_error(move($first, $second), 422, 'mapping_inactive', 'what is not active is not given');

# --- many orders, and a background process that is killed -----------------------------------------

# Enough that a move takes many transactions.
my $ORDERS = 1200;
my $many     = mapping_of($shop, [ $file->{id} ], title => 'Many');
my $customer = (sql("SELECT customer_id FROM orders WHERE shop_id = $id "
    . "AND storefront_order_id = '$is{plain}'"))[0][0];
my $numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $ORDERS) ";
sql("INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, "
    . "fraud_decision, created_at, updated_at) ${numbers}SELECT $id, 8000000 + i, $customer, "
    . "'many-$id-' || i, 'active', 'not_checked', i, i FROM n");
sql("INSERT INTO assignment (shop_id, order_id, storefront_product_id, storefront_variant_id, "
    . "title, quantity, mapping_id, content, status, created_at) "
    . "SELECT $id, id, '$many->{storefront_product_id}', '', 'Many', 1, $many->{id}, "
    . "CASE WHEN id % 2 = 0 THEN 'live' ELSE 'pinned' END, 'active', 1 FROM orders "
    . "WHERE shop_id = $id AND page_id LIKE 'many-%'");
my $other = new_shop();
my ($more, $big, $kills);

# Kills the background process during a move; returns how often it was in the middle.
sub killed_in_the_middle
{
    my ($of) = @_;
    my ($count, $seen) = (0, 0);
    my $given = sub { (sql("SELECT given FROM move WHERE job_id = '$of'"))[0][0] };
    for (1 .. 3) {
        wait_for(sub { $given->() > $seen }, 120, 'the move to come further');
        my ($worker) = wait_for(sub { (worker_pids())[0] }, 60, 'a background process');
        kill KILL => $worker;
        $seen = $given->();
        last if $seen == $ORDERS;
        $count++;
        wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $worker }, 60,
            'another background process');
    }
    return $count;
}

my $moves = 0;
do {    # one may be over before it is seen
    $moves++;
    $more = mapping_of($shop, [ $file->{id} ], title => "More $moves");
    is_deeply(count_of($many, $more)->{json},
        { orders => $ORDERS, have_it => 0, to_give => $ORDERS, more => $false }, 'many orders');
    $big   = move($many, $more)->{json}{id};
    $kills = killed_in_the_middle($big);
} while (!$kills && $moves < 5);
ok($kills, "the background process was killed $kills times in the middle");
is(ready_asset($other, 'meanwhile.pdf', 'meanwhile')->{size}, 9, 'another shop imports meanwhile');
my $end = wait_job($shop, $big, 120);
is($end->{status}, 'succeeded', 'the move ends all the same') or diag explain $end;
is($end->{move}{given}, $ORDERS, 'it counts each order');
is_deeply([ sql("SELECT count(*), count(DISTINCT order_id) FROM assignment "
    . "WHERE mapping_id = $more->{id}") ], [ [ $ORDERS, $ORDERS ] ], 'each order has it once');
is_deeply([ sql("SELECT count(*), count(DISTINCT order_id) FROM event WHERE shop_id = $id "
    . "AND type = 'order.assigned' AND order_id IN (SELECT id FROM orders WHERE shop_id = $id "
    . "AND page_id LIKE 'many-%')") ], [ [ $moves * $ORDERS, $ORDERS ] ],
    'with one event each');

# --- emails leave room for those of new orders ---------------------------------------------------

my $waiting = join ', ', map { "('job_0${id}_$_', $id, 'email', 'blocked-mail', 'queued', 0, 9, "
    . "1, 0, 0, 1, 1)" } 1 .. 100;
sql("INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, due_at, "
    . "lease_token, bytes_received, created_at, updated_at) VALUES $waiting");
sql("UPDATE job SET lane = 'mail', due_at = 4000000000000000 "
    . "WHERE shop_id = $id AND lane = 'blocked-mail'");
my $last = mapping_of($shop, [], title => 'Last');
my $held = move($many, $last, send_email => $true)->{json}{id};
my $job;
wait_for(sub {
    $job = api('GET', "/jobs/$held", key => $shop->{token})->{json};
    return $job->{started_at};
}, 60, 'the move to begin');
is($job->{move}{given}, 0, 'while 100 emails wait, a move with emails waits');
is(api('POST', "/jobs/$held/cancel", key => $shop->{token}, json => {})->{json}{status},
    'cancelled', 'it can be cancelled');
is((sql("SELECT count(*) FROM assignment WHERE mapping_id = $last->{id}"))[0][0], 0,
    'and then gives nothing');
sql("DELETE FROM job WHERE shop_id = $id AND id LIKE 'job\\_0%' ESCAPE '\\'");

done_testing();
