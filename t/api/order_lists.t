# Reading orders and assignments (contract, sections 1 and 6): pages that are stable while rows are
# added, single assignments, and URLs of files.
#
# both: pages stay as they are while rows are added
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my $one   = ready_asset($shop, "lists-$$-one.txt", "number one\n");
my $two   = ready_asset($shop, "lists-$$-two.txt", "and two\n");
my $three = ready_asset($shop, "lists-$$-three.txt", "three\n");
my $mapping = mapping_of($shop, [ $one->{id} ], download_limit => 2);

sub get { my ($path, $of) = @_; return api('GET', $path, key => ($of // $shop)->{token}) }

sub new_order
{
    my (@products) = @_;
    my $id = digits();
    my $reply = assign($shop, $id, @products ? \@products : [ $mapping->{storefront_product_id} ],
        storefront_customer_id => $id, customer => { email => "lists-$id\@buyer.example" });
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return $id;
}

# The ids of each page, following next_cursor; $meanwhile is called after each page.
sub pages
{
    my ($path, $shape, $id, $meanwhile) = @_;
    my ($cursor, @pages);
    do {
        my $query = defined $cursor ? "&cursor=$cursor" : '';
        my $reply = get("$path$query");
        is_answer($reply, 200, 'a page of ' . $path);
        is_shape($reply->{json}, $shape, 'the page');
        push @pages, [ map { $_->{$id} } @{ $reply->{json}{data} } ];
        $cursor = $reply->{json}{next_cursor};
        is($reply->{json}{has_more} ? 1 : 0, defined $cursor ? 1 : 0,
            'has_more is true if there is a next_cursor');
        is(defined $reply->{headers}{link} ? 1 : 0, defined $cursor ? 1 : 0,
            'and so is there a Link header');
        $meanwhile->() if $meanwhile;
    } while (defined $cursor && @pages < 20);
    return @pages;
}

# --- orders --------------------------------------------------------------------------------------

my $none = get('/orders');
is_answer($none, 200, 'a shop without orders');
is_deeply($none->{json}, { data => [], has_more => JSON::PP::false(), next_cursor => undef },
    'has an empty list');

my @orders = map { new_order() } 1 .. 7;
my @pages = pages('/orders?limit=3', 'orders', 'storefront_order_id', \&new_order);
is_deeply(\@pages, [ [ reverse @orders[ 4 .. 6 ] ], [ reverse @orders[ 1 .. 3 ] ], [ $orders[0] ] ],
    'pages of orders, newest first, are stable while orders are added');
is(scalar @{ get('/orders')->{json}{data} }, 10, 'a page has 25 by default');
my $whole = get("/orders/$orders[2]")->{json};
delete @{$whole}{qw(events downloads)};
my ($row) = grep { $_->{storefront_order_id} eq $orders[2] }
    @{ get('/orders?limit=100')->{json}{data} };
is_deeply($row, $whole, 'a list shows an order without its events and downloads');

my $cursor = get('/orders?limit=1')->{json}{next_cursor};
is_error(get("/orders?cursor=$cursor", $other), 400, 'invalid_cursor', "another shop's cursor");
is_error(get("/orders/$orders[0]/assignments?cursor=$cursor"), 400, 'invalid_cursor',
    "another list's cursor");
is_error(get('/orders?cursor=nonsense'), 400, 'invalid_cursor', 'an invalid cursor');
is_error(get('/orders?limit=0&state=active'), 400, 'invalid_request', 'invalid parameters',
    '/limit', '/state');
is_deeply(get('/orders', $other)->{json}{data}, [], 'another shop sees none of them');

# Orders with different contents.
my @kinds = map { mapping_of($shop, $_) } [ $one->{id}, $two->{id} ], [], [ $three->{id} ];
my @mixed = map { new_order(map { $_->{storefront_product_id} } @$_) }
    [ @kinds[ 0, 1 ] ], [ $kinds[2] ], [@kinds];
api('POST', "/orders/$mixed[1]/resend", key => $shop->{token});
my %shown = map { $_->{storefront_order_id} => $_ } @{ get('/orders?limit=3')->{json}{data} };
is_deeply([ map { [ map { [ map { $_->{file_id} } @{ $_->{files} } ] }
    @{ $shown{$_}{assignments} } ] } @mixed ],
    [ [ [ $one->{id}, $two->{id} ], [] ], [ [ $three->{id} ] ],
        [ [ $one->{id}, $two->{id} ], [], [ $three->{id} ] ] ],
    'each order of a page has its own assignments with their files');
is_deeply([ map { $shown{$_}{email}{status} eq 'not_requested' ? 0 : 1 } @mixed ], [ 0, 1, 0 ],
    'and its own email');

# --- assignments ---------------------------------------------------------------------------------

my @many = map { mapping_of($shop, [])->{storefront_product_id} } 1 .. 6;
my $order = new_order(@many[ 0 .. 4 ]);
my $list  = "/orders/$order/assignments";
my @ids   = map { $_->{id} } @{ get("/orders/$order")->{json}{assignments} };
@pages = pages("$list?limit=2", 'assignments', 'id', sub {
    assign($shop, $order, [ $many[5] ], storefront_customer_id => $order);
});
is_deeply(\@pages, [ [ @ids[ 4, 3 ] ], [ @ids[ 2, 1 ] ], [ $ids[0] ] ],
    'pages of assignments, newest first, are stable while one is added');
$cursor = get("$list?limit=1")->{json}{next_cursor};
is_error(get("/orders/$orders[0]/assignments?cursor=$cursor"), 400, 'invalid_cursor',
    "another order's cursor");

my $single = get("$list/$ids[2]");
is_answer($single, 200, 'one assignment');
is_shape($single->{json}, 'assignment', 'the assignment');
is_deeply($single->{json}, get("/orders/$order")->{json}{assignments}[2],
    'is the one that the order shows');
my ($elsewhere) = map { $_->{id} } @{ get("/orders/$orders[0]")->{json}{assignments} };
for my $path ('', '/download-urls') {
    is_error(get("$list/$_$path"), 404, 'assignment_not_found', "the assignment '$_'$path")
        for $elsewhere, 99999999, 0, 'abc', '9007199254740992';
    is_error(get("/orders/$_/assignments/$ids[0]$path"), 404, 'order_not_found',
        "an assignment of the order '$_'$path")
        for '99999999', 'abc';
    is_error(get("$list/$ids[0]$path", $other), 404, 'order_not_found',
        "another shop's assignment$path");
}

# --- packs and links -----------------------------------------------------------------------------

sub made
{
    my ($path, $json) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $json);
    die "$path was answered with: $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json}{id};
}

my $pack  = made('/packs', { name => 'A pack', file_ids => [ $two->{id}, $one->{id} ] });
my $next  = made('/packs', { name => 'Another', file_ids => [ $three->{id}, $two->{id} ] });
my @links = map { made('/links', { title => $_, url => "https://shop.example/$_" }) }
    qw(first second);

sub content
{
    my ($id) = @_;
    my ($assignment) = @{ get("/orders/$id")->{json}{assignments} };
    return [ map { $_->{file_id} } @{ $assignment->{files} } ],
        [ map { $_->{link_id} } @{ $assignment->{links} } ];
}

my %order;
for my $content (qw(live pinned)) {
    my $packed = mapping_of($shop, [ $one->{id} ], content => $content, download_limit => 1,
        pack_ids => [ $next, $pack ], link_ids => [ reverse @links ]);
    $order{$content} = new_order($packed->{storefront_product_id});
    is_deeply([ content($order{$content}) ],
        [ [ $one->{id}, $three->{id}, $two->{id} ], [ reverse @links ] ],
        "$content: the mapping's files, then those of its packs, none twice, and its links");
}
is_deeply(get("/orders/$order{live}")->{json}{assignments}[0]{links}[1],
    { link_id => $links[0], title => 'first', url => 'https://shop.example/first' }, 'a link');
api('PATCH', "/packs/$next", key => $shop->{token}, json => { file_ids => [ $two->{id} ] });
is_deeply((content($order{live}))[0], [ $one->{id}, $two->{id} ],
    'live: a file that leaves the pack leaves the order');
is_deeply((content($order{pinned}))[0], [ $one->{id}, $three->{id}, $two->{id} ],
    'pinned: the order keeps it');

# --- URLs of files -------------------------------------------------------------------------------

my $used = sub {
    my ($id) = @_;
    return join ' ',
        map { $_->{downloads_used} } @{ get("/orders/$id")->{json}{assignments}[0]{files} };
};
my $bought = $order{pinned};
my ($purchase) = map { $_->{id} } @{ get("/orders/$bought")->{json}{assignments} };
my $path  = "/orders/$bought/assignments/$purchase/download-urls";
my $stored = stored();
my $urls = get($path);
is_answer($urls, 200, 'URLs of an assignment');
is_shape($urls->{json}, 'download_urls', 'the answer');
is(stored(), $stored, 'making URLs stores nothing');
is_deeply([ map { [ @{$_}{qw(file_id filename)} ] } @{ $urls->{json}{files} } ],
    [ map { [ @{$_}{qw(id filename)} ] } $one, $three, $two ], 'one for each file');
is($used->($bought), '0 0 0', 'making URLs costs no download');
my @bytes = ("number one\n", "three\n", "and two\n");
for my $i (0 .. 2) {
    my $file = page('GET', $urls->{json}{files}[$i]{url});
    is($file->{status}, 200, "the URL of file $i, with those of packs,");
    is($file->{body}, $bytes[$i], 'gives its bytes');
}
is($used->($bought), '1 1 1', 'which costs one download each');
is(page('GET', $urls->{json}{files}[0]{url}, headers => { Range => 'bytes=1-' })->{body},
    substr($bytes[0], 1), 'the same URL gives a part');
is($used->($bought), '1 1 1', 'which belongs to the same download');
is(page('GET', get($path)->{json}{files}[0]{url})->{status}, 403,
    'a new URL is refused because of the limit');
isnt(get($path)->{json}{files}[1]{url}, $urls->{json}{files}[1]{url}, 'each URL is new');
my $form = page('GET', get("/orders/$order{live}")->{json}{download_page_url});
is(scalar(() = $form->{body} =~ /value="\d+-\d+"/g), 2, 'the page offers the files of packs too');
my ($follows) = map { $_->{id} } @{ get("/orders/$order{live}")->{json}{assignments} };
my $live = get("/orders/$order{live}/assignments/$follows/download-urls")->{json};
is(page('GET', $live->{files}[1]{url})->{body}, $bytes[2], "a live pack's file can be downloaded");
sql("UPDATE asset SET status = 'pending' WHERE id = $three->{id}");
is_deeply([ map { $_->{file_id} } @{ get($path)->{json}{files} } ], [ $one->{id}, $two->{id} ],
    'a file that is not ready has no URL');
sql("UPDATE asset SET status = 'ready' WHERE id = $three->{id}");

done_testing();
