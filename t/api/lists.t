# What all lists have in common (contract, section 1): pages, cursors, query parameters. The suite
# of each noun tests the members and filters of its list.
#
# both: the database reads on behind a cursor
use strict;
use warnings;

use JSON::PP ();
use MDL::Contract;
use MDL::Test;
use Test::More;

# By list: a function that adds a row and returns its id.
my %make = (
    assets             => sub { import_into($_[0])->{asset}{id} },
    emails             => \&email_of,
    categories         => sub { made($_[0], 'categories', { name => 'Category' }) },
    'help-requests'    => sub { help_asked($_[0], order_of($_[0])) },
    jobs               => sub { import_into($_[0])->{job}{id} },
    'license-key-tags' => sub { made($_[0], 'license-key-tags', { name => 'Tag' }) },
    links => sub { made($_[0], 'links', { title => 'Link', url => 'https://links.example.com/' }) },
    mappings => sub { made($_[0], 'mappings', { storefront_product_id => product() }) },
    orders => \&order_of,
    packs  => sub { made($_[0], 'packs', { name => 'Pack', file_ids => [] }) },
);

# An order needs a mapped product, one for each shop.
my %sold;

sub order_of
{
    my ($shop, %members) = @_;
    $sold{ $shop->{shop_id} } //= mapping_of($shop, [])->{storefront_product_id};
    my $reply = assign($shop, digits(), [ $sold{ $shop->{shop_id} } ], %members);
    die "the assignment was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 201;
    return $reply->{json}{storefront_order_id};
}

sub email_of
{
    my ($shop) = @_;
    my $order  = order_of($shop, send_email => JSON::PP::true(),
        customer => { email => 'ada@buyer.example' });
    return get($shop, "/orders/$order/emails")->{json}{data}[0]{id};
}

sub import_into
{
    my ($shop, %more) = @_;
    my $reply = api('POST', '/assets', key => $shop->{token},
        json => { source_url => source_url('lists.bin'), %more });
    die "POST /assets was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 202;
    return $reply->{json};
}

sub made
{
    my ($shop, $path, $members) = @_;
    my $reply = api('POST', "/$path", key => $shop->{token}, json => $members);
    die "POST /$path was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 201;
    return $reply->{json}{id};
}

sub get
{
    my ($shop, $path) = @_;
    return api('GET', $path, key => $shop->{token});
}

sub ids
{
    my ($reply) = @_;
    return [ map { $_->{id} // $_->{storefront_order_id} } @{ $reply->{json}{data} } ];
}

# The path of the next page by the Link header, without /api/v1; undef if there is none.
sub next_of
{
    my ($reply) = @_;
    return ($reply->{headers}{link} // '') =~ m{^</api/v1(/[^>\s]+)>; rel="next"\z} ? $1 : undef;
}

# The ids of each page, following the Link headers.
sub walk
{
    my ($shop, $path) = @_;
    my @pages;
    while (defined $path) {
        my $reply = get($shop, $path);
        push @pages, ids($reply);
        $path = next_of($reply);
        last if @pages > 100;
    }
    return @pages;
}

# A cursor is opaque: the service accepts those that it made, and no others.
sub is_bad_cursor
{
    my ($shop, $path, $cursor, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $sign = $path =~ /\?/ ? '&' : '?';
    return is_error(get($shop, "$path${sign}cursor=$cursor"), 400, 'invalid_cursor', $name);
}

source('lists.bin', 'bytes');
my $neighbour = new_shop();
$make{$_}->($neighbour) for sort keys %make;

for my $list (sort keys %make) {
    my $shop = new_shop();
    my $add  = sub { $make{$list}->($shop) };
    my $path = "/$list";

    # --- pages ---
    my $reply = get($shop, $path);
    is_answer($reply, 200, "$path, empty");
    is($reply->{body}, '{"data":[],"has_more":false,"next_cursor":null}',
        "$path of a new shop is empty, although another shop has a row");
    is($reply->{headers}{link}, undef, 'and has no Link');

    my @ids = map { $add->() } 1 .. 7;
    @ids = sort @ids if $list eq 'jobs';    # those of one millisecond are in any order
    $reply = get($shop, $path);
    is_deeply(ids($reply), [ reverse @ids ], "$path lists the newest first");
    is_deeply([ sort keys %{ $reply->{json} } ], [qw(data has_more next_cursor)],
        'the answer has three members');
    is($reply->{json}{has_more} ? 1 : 0, 0, 'has_more is false');

    $reply = get($shop, "$path?limit=3");
    is_deeply(ids($reply), [ @ids[ 6, 5, 4 ] ], "$path?limit=3 has the first three");
    is($reply->{json}{has_more} ? 1 : 0, 1, 'has_more is true');
    is(next_of($reply), "$path?limit=3&cursor=$reply->{json}{next_cursor}",
        'Link and next_cursor name the same page');
    like($reply->{json}{next_cursor}, qr/^[A-Za-z0-9_-]+\z/, 'a cursor needs no escaping in a URL');
    is_deeply([ walk($shop, "$path?limit=3") ],
        [ [ @ids[ 6, 5, 4 ] ], [ @ids[ 3, 2, 1 ] ], [ $ids[0] ] ],
        "$path, page by page: each row once");
    is_deeply([ walk($shop, "$path?limit=7") ], [ [ reverse @ids ] ],
        'a full page without more rows is the last');
    is_deeply([ map { scalar @$_ } walk($shop, "$path?limit=1") ], [ (1) x 7 ], 'pages of one row');

    my $head = api('HEAD', "$path?limit=3", key => $shop->{token});
    is("$head->{status} $head->{body}", '200 ', 'HEAD has no body');
    is($head->{headers}{link}, $reply->{headers}{link}, 'and the same Link as GET');

    # --- while rows are added ---
    my $cursor = $reply->{json}{next_cursor};
    push @ids, $add->(), $add->();
    is_deeply([ walk($shop, "$path?limit=3&cursor=$cursor") ], [ [ @ids[ 3, 2, 1 ] ], [ $ids[0] ] ],
        "$path: rows that are added meanwhile do not shift the pages");
    is_deeply(ids(get($shop, "$path?limit=2&cursor=$cursor")), [ @ids[ 3, 2 ] ],
        'a cursor can be used with another limit');

    # --- cursors ---
    my $other = new_shop();
    $make{$list}->($other) for 1 .. 4;
    my $foreign = get($other, "$path?limit=3")->{json}{next_cursor};
    is_bad_cursor($shop, $path, $foreign, "$path with the cursor of another shop");
    is_bad_cursor($shop, $path, '', 'an empty cursor');
    is_bad_cursor($shop, $path, 'x', 'a short cursor');
    is_bad_cursor($shop, $path, 'A' x 40, 'a made-up cursor of the right length');
    is_bad_cursor($shop, $path, 'A' x 4000, 'a long cursor');
    is_bad_cursor($shop, $path, "${cursor}A", 'a cursor with another character at its end');
    is_bad_cursor($shop, $path, "$cursor%3D", 'a cursor with padding');
    is_bad_cursor($shop, $path, substr($cursor, 0, -1), 'a truncated cursor');
    is_bad_cursor($shop, $path, scalar reverse($cursor), 'a reversed cursor');
    my @taken;
    for my $at (0 .. length($cursor) - 1) {
        (my $changed = $cursor) =~ s/^(.{$at})(.)/$1 . ($2 eq 'A' ? 'B' : 'A')/e;
        push @taken, $at if get($shop, "$path?cursor=$changed")->{status} != 400;
    }
    is_deeply(\@taken, [], 'a cursor with any one character changed');

    # --- the query's parameters ---
    for ('0', '101', '1000', '-1', '%2B1', '+1', '1.5', '1e1', '007', '0x10', 'ten', '', '%20',
        '4294967301', '18446744073709551617') {
        is_error(get($shop, "$path?limit=$_"), 400, 'invalid_request', "$path?limit=$_", '/limit');
    }
    for ([ 'nonsense=1', '/nonsense' ], [ 'Limit=3', '/Limit' ], [ 'limits=3', '/limits' ],
        [ '%6climit=3', '/llimit' ], [ 'page=2', '/page' ], [ 'shop_id=1', '/shop_id' ],
        [ 'a=1&b=2', '/a', '/b' ], [ 'limit=0&a=1', '/limit', '/a' ], [ '%FF=1', '/' ],
        [ 'a/b=1', '/' ]) {
        my ($query, @pointers) = @$_;
        my $refusal = get($shop, "$path?$query");
        is_error($refusal, 400, 'invalid_request', "$path?$query", @pointers);
    }
    is(get($shop, "$path?a=1")->{json}{error}{details}[0]{code}, 'unknown_parameter',
        'an unknown parameter has its own code');
    is_error(get($shop, "$path?limit=3&limit=3"), 400, 'invalid_request', 'a parameter twice',
        '/limit');
    is_error(get($shop, "$path?cursor=$cursor&cursor=$cursor"), 400, 'invalid_request',
        'a cursor twice', '/cursor');
    is_error(get($shop, "$path?%FF=1&%FF=1"), 400, 'invalid_request', 'an invalid name, twice',
        '/', '/');
    is_error(get($shop, "$path?$_"), 400, 'invalid_request', "$path?$_", '/')
        for 'limit', '=3', 'limit=%zz', 'limit=%', 'cursor=%00';
    is_error(get($shop, "$path?cursor=x&a=1"), 400, 'invalid_request',
        'a bad cursor and a bad parameter', '/a');
    is(get($shop, "$path$_")->{status}, 200, "$path$_ is accepted")
        for '?', '?&', '?limit=1&', '?%6cimit=1';

    # --- limits ---
    push @ids, $add->() while @ids < 26;
    is(@{ ids(get($shop, $path)) }, 25, "$path has 25 rows without a limit");
    is(next_of(get($shop, $path)), "$path?cursor=" . get($shop, $path)->{json}{next_cursor},
        'and Link has no limit either');
    is(@{ ids(get($shop, "$path?limit=100")) }, 26, 'a limit of 100 is accepted');
}

# --- filters ---
my $shop = new_shop();
import_into($shop);
my @named = map { import_into($shop, filename => "a&b=c+d %\x{e9}.txt") } 1 .. 3;
import_into($shop);
is_deeply([ walk($shop, '/assets?limit=2&filename=a%26b%3Dc%2Bd%20%25%C3%A9.txt') ],
    [ [ map { $_->{asset}{id} } @named[ 2, 1 ] ], [ $named[0]{asset}{id} ] ],
    'Link repeats a filter with special characters');

done_testing();
