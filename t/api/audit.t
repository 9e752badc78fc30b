# GET /audit (contract, section 6): the changes of a shop, as its owners see them in the settings.
#
# both: each page reads on behind an id, and the audit's is the database's own
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop(key_name => 'Till');
my $id     = $shop->{shop_id};
my $other  = new_shop();
told('member', 'add', 'owner', 'owner', '--shop', $id);

sub made
{
    my ($name, $of) = @_;
    return api('POST', '/categories', key => ($of // $shop)->{token}, json => { name => $name })
        ->{json}{id};
}

sub audit
{
    my ($query, %opt) = @_;
    return api('GET', "/audit?$query", key => ($opt{of} // $shop)->{token});
}

# Noun, id and action of each entry, page by page.
sub found
{
    my ($query) = @_;
    my (@found, $cursor);
    for (1 .. 50) {
        my $reply = audit($query . (defined $cursor ? "&cursor=$cursor" : ''));
        is_answer($reply, 200, "audit?$query");
        push @found, map { "$_->{noun} $_->{noun_id} $_->{action}" } @{ $reply->{json}{data} };
        $cursor = $reply->{json}{next_cursor} // return \@found;
    }
    die "audit?$query has no end\n";
}

my @made = map { made("C $_") } 1 .. 5;
made('D', $other);
my $reply = audit('limit=1');
my $entry = $reply->{json}{data}[0];
is_deeply($entry, {
        noun => 'category', noun_id => $made[4], action => 'created', via => 'api', user => undef,
        key_id => $shop->{key_id}, key_name => 'Till', detail => undef,
        map { $_ => $entry->{$_} } qw(id request_id created_at)
    }, 'an entry says what was done, by which key') or diag $reply->{body};
like($entry->{request_id}, qr/^req_/, 'and by which request');

my @all = ((map { "category $_ created" } reverse @made), 'member owner saved',
    "api_key $shop->{key_id} created", "shop $id approved", "shop $id created");
is_deeply(found('limit=100'), \@all, "all of a shop's, the newest first");
is_deeply(found("limit=$_"), \@all, "by $_: none is left out or comes twice") for 1, 2, 3;
is_deeply(found('noun=category&limit=2'), [ @all[ 0 .. 4 ] ], 'of a noun, page by page');
is_deeply(found('who=Till'), [ @all[ 0 .. 4 ] ], 'by the name of a key');
is_deeply(found("noun=category&who=$shop->{key_id}"), [ @all[ 0 .. 4 ] ], 'and its id');
is_deeply(found('noun=pack'), [], 'of a noun that was not changed: none');
is_error(audit('noun=nonsense'), 400, 'invalid_request', 'an unknown noun', '/noun');
is_error(audit('who=' . 'x' x 256), 400, 'invalid_request', 'a name that is too long', '/who');
is_error(audit("cursor=" . audit('limit=1')->{json}{next_cursor}, of => $other), 400,
    'invalid_cursor', 'the cursor of another shop');

# --- a member ------------------------------------------------------------------------------------

my $order = digits();
assign($shop, $order, [ mapping_of($shop, [])->{storefront_product_id} ]);
is(submit('owner', visit('owner', 'GET', "/$id/orders/$order"), "/$id/orders/$order/revoke",
    { reason => 'Refunded' })->{status}, 303, 'a member revokes an order');
my ($revoked) = @{ audit('who=owner')->{json}{data} };
is_deeply([ @$revoked{qw(noun noun_id action via user key_id detail)} ],
    [ 'order', $order, 'revoked', 'settings', 'owner', undef, 'Refunded' ],
    'which is there by the name, with the reason');

# --- a search looks at some ----------------------------------------------------------------------

sql('INSERT INTO audit (shop_id, noun, action, via, user_name, created_at) VALUES ' . join ', ',
    ("($id, 'link', 'created', 'settings', 'many', 1)") x 700);
$reply = audit('who=owner');
is_deeply([ $reply->{json}{data}, $reply->{json}{has_more} ], [ [], JSON::PP::true() ],
    'a search looks at 300 entries, and says that there are more');
is_deeply(found('who=owner'), ["order $order revoked"], 'it goes on from there');

# --- who may -------------------------------------------------------------------------------------

for my $scope (qw(read deliver)) {
    my $key = told('key', 'create', $id, "to $scope", '--scope', $scope);
    is_error(api('GET', '/audit', key => $key->{token}), 403, 'insufficient_scope',
        "a key of the scope $scope");
}
told('shop', 'block', $id, '--reason', 'Suspicion of fraud');
told('shop', 'unblock', $id);
my ($blocked) = grep { $_->{action} eq 'blocked' } @{ audit('noun=shop')->{json}{data} };
is_deeply([ $blocked->{noun_id}, $blocked->{detail} ], [ $id, undef ],
    'only operators see why a shop was blocked');
is_deeply([ map { $_->{detail} } grep { $_->{action} eq 'blocked' }
    @{ told('audit', '--shop', $id, '--limit', 50) } ], ['Suspicion of fraud'], 'as they do');

$server->stop;
done_testing;
