# One search in the header of each page of a shop.
#
# once: t/api/search.t finds on both databases
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $XSS = '"><script>alert(1)</script>';

my $server = settings_server(extra => <<'END');
LogFormat "%r | %U%q" all
CustomLog "@t_logs@/all.log" all
END
my $shop   = new_shop(name => "Shop $XSS");
my $id     = $shop->{shop_id};
my $other  = new_shop();
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];
told('member', 'add', $_, 'staff', '--shop', $other->{shop_id}) for qw(staff other);

my $file = ready_asset($shop, 'guide.pdf', 'bytes', title => "Guide $XSS");
my $product = mapping_of($shop, [ $file->{id} ], title => "Sketch $XSS")->{storefront_product_id};
assign($shop, '7001', [$product], storefront_customer_id => '501',
    customer => { email => 'ada@lovelace.example', first_name => "Ada $XSS" });

# The body of the page that finds this, as a user sees it.
sub page_of
{
    my ($q, $user, $in) = @_;
    my $reply = visit($user // 'reader', 'GET', '/' . ($in // $id) . "/search?q=$q");
    is($reply->{status}, 200, "search?q=$q");
    unlike($reply->{body}, qr/<script>alert/, 'what was typed is text');
    return $reply->{body};
}

# The headings of the groups.
sub groups { return join ', ', page_of(@_) =~ m{<h2>([^<]+)</h2>}g }

for my $path ("/$id/", "/$id/orders", "/$id/keys") {
    my $body = visit('reader', 'GET', $path)->{body};
    like($body, qr{<form method="get" action="/settings/$id/search" role="search"},
        "$path has the search");
    like($body, qr{<a href="/settings/"><bdi>Shop}, 'and its name leads to the other shops');
}
like(visit('staff', 'GET', '/')->{body}, qr{href="/settings/$other->{shop_id}/"},
    'if there are any');

is(groups('lovelace'), 'Orders, People', 'a person, with the orders');
like(page_of('lovelace'), qr{href="/settings/$id/orders/7001">Order 7001</a>}, 'each with a link');
like(page_of('ADA'), qr{href="/settings/$id/orders\?q=501"><bdi>Ada &quot;}, 'the person, too');
is(groups('%237001'), 'Orders', 'an order');
is(groups('sketch'), 'Products', 'a product');
like(page_of('sketch'), qr{href="/settings/$id/products/\d+"}, 'with a link');
is(groups('guide'), 'Files', 'a file');
like(page_of('guide'), qr{href="/settings/$id/files/$file->{id}"}, 'with a link');
like(page_of('guide+pdf'), qr{value="guide pdf"}, 'the field keeps what was typed');
like(page_of('nobody'), qr/Nothing was found/, 'nothing');
like(page_of('%22%3E%3Cscript%3Ealert(1)'), qr/value="&quot;&gt;&lt;script/, 'whatever it is');
like(page_of(''), qr/Find orders, people/, 'nothing was typed');
my $tag = api('POST', '/license-key-tags', key => $shop->{token},
    json => { name => "Editor $XSS" })->{json}{id};
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token},
    json => { keys => [ qw(K7Q2-X9PL-4M K7Q2-X9PL-4N), 'L' x 512 ] });
assign($shop, '7002',
    [ mapping_of($shop, [], license_key_tag_ids => [$tag])->{storefront_product_id} ]);
is(groups('K7Q2-X9PL-4M', 'staff'), 'License keys', 'staff find a license key by the whole of it');
is(groups('L' x 512, 'staff'), 'License keys', 'even the longest');
is(groups('L' x 511, 'staff'), '', 'but not by a part');
like(page_of('K7Q2-X9PL-4M', 'staff'),
    qr{<li><a\ href="/settings/$id/orders/7002">Order\ 7002</a>,
        \ <a\ href="/settings/$id/license-keys/$tag"><bdi>Editor.*handed\ out}x,
    'which leads to its order and its stock');
like(page_of('K7Q2-X9PL-4N', 'staff'), qr{<li><a href="/settings/$id/license-keys/$tag">},
    'or to its stock alone');
is(groups('K7Q2-X9PL-4M'), '', 'a reader does not');
is(groups('lovelace', 'staff', $other->{shop_id}), '', 'another shop finds nothing of it');
is(visit('other', 'GET', "/$id/search?q=ada")->{status}, 404, 'nor do its members here');
is(visit('reader', 'GET', "/$id/search?q=" . 'a' x 1025)->{status}, 400, 'too long a text');

$server->stop;
my $log = MDL::Test::slurp("$server->{folder}/all.log");
unlike($log, qr/K7Q2|lovelace/i, 'the log does not have what was searched for');
like($log, qr{^GET /settings/$id/search\?q=\*{12} HTTP/1\.1 \| /settings/$id/search\?q=\*{12}$}m,
    'only that something was');
done_testing;
