# Another product for the buyers of one: found by typing, counted, given by a job whose result the
# page shows.
#
# once: the page calls what t/api/move_buyers.t calls on both databases
use strict;
use warnings;
use utf8;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];

my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
    ->{json}{id};
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token}, json => { keys => ['KEY-1'] });
my $file   = ready_asset($shop, 'atlas.pdf', 'atlas');
my $first  = mapping_of($shop, [ $file->{id} ], title => 'Atlas <b>');
my $second = mapping_of($shop, [ $file->{id} ], title => 'Atlas, second',
    license_key_tag_ids => [$tag]);
my $paused = mapping_of($shop, [], title => 'Atlas, paused', is_active => JSON::PP::false());
my $product = "/$id/products/$first->{id}";
my $path    = "$product/buyers";
my ($buyer, $late) = (digits(), digits());
assign($shop, $buyer, [ $first->{storefront_product_id} ]);

sub assignments { return api('GET', "/orders/$_[0]", key => $shop->{token})->{json}{assignments} }

sub page_after_move
{
    my ($body) = (undef);
    wait_for(sub { ($body = visit('staff', 'GET', $path)->{body}) =~ /Done\./ }, 20, 'the move');
    return $body;
}

# --- the page ------------------------------------------------------------------------------------

is(visit('reader', 'GET', $path)->{status}, 403, 'those who only read can\'t');
like(visit('staff', 'GET', $product)->{body}, qr{\Q$path\E"}, 'the product leads there');
unlike(visit('reader', 'GET', $product)->{body}, qr{\Q$path\E"}, 'but not them');
my $body = visit('staff', 'GET', "$path?q=atlas")->{body};
is_deeply([ $body =~ /name="to" value="(\d+)"/g ], [ $second->{id} ],
    'it offers active products, but not this one');
unlike($body, qr/The last time/, 'nothing was given before');
my $page = visit('staff', 'GET', "$path?to=$second->{id}");
like($page->{body}, qr/1 order has this product\. 1 would get the other one\. 0 have it already/,
    'the buyers are counted');
like($page->{body}, qr/name="keys" value="1">/, 'license keys are not ticked');
like($page->{body}, qr/name="email" value="1">/, 'neither are emails');
is(visit('staff', 'GET', "$path?to=999999")->{status}, 404, 'an unknown product is not there');
$page = visit('staff', 'GET', "$path?to=$paused->{id}");
is($page->{status}, 422, 'what is paused can\'t be given');
like($page->{body}, qr/not active/, 'and is told why');

# --- the job -------------------------------------------------------------------------------------

my $reply = submit('staff', visit('staff', 'GET', "$path?to=$second->{id}"), $path,
    { to => $second->{id} });
is($reply->{status}, 303, 'staff give it');
like($reply->{headers}{location}, qr{\Q$path\E\?done=move_begun}, 'and come back to the page');
like(page_after_move(), qr/1 order got the product/, 'which shows the result');
is(scalar(@{ assignments($buyer) }), 2, 'the buyer has both');
is_deeply(assignments($buyer)->[1]{license_keys}, [], 'without a key');
is_deeply([ map { [ @$_[ 0, 1 ] ] } sql("SELECT user_name, action FROM audit WHERE shop_id = $id "
    . "AND noun = 'mapping' AND noun_id = '$first->{id}' AND via = 'settings'") ],
    [ [ 'staff', 'buyers_moved' ] ], 'the audit has it') or diag explain [ sql(
    "SELECT user_name, noun, noun_id, action FROM audit WHERE shop_id = $id") ];
is(scalar(grep { ($_->{user} // '') eq 'staff' && $_->{action} eq 'assigned' }
    @{ api('GET', "/orders/$buyer", key => $shop->{token})->{json}{events} }), 1,
    'and the order\'s story says by whom');

assign($shop, $late, [ $first->{storefront_product_id} ]);
like(visit('staff', 'GET', "$path?to=$second->{id}")->{body},
    qr/2 orders have this product\. 1 would get the other one\. 1 has it already/,
    'later it is counted who lacks it');
submit('staff', visit('staff', 'GET', "$path?to=$second->{id}"), $path,
    { to => $second->{id}, keys => 1 });
wait_for(sub { @{ assignments($late) } == 2 }, 20, 'the second move');
is_deeply(assignments($late)->[1]{license_keys}, ['KEY-1'], 'with a key, if ticked');
is_deeply(assignments($buyer)->[1]{license_keys}, [], 'and nobody else gets one');

$server->stop;
done_testing();
