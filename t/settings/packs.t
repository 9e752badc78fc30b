# Packs, links and categories as a shop's staff see them: lists, forms, the order of a pack's files
# by buttons, and what holds what can't be deleted.
#
# once: the forms call what t/api calls on both databases
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $XSS = '"><script>alert(1)</script>';

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my %key    = (key => $shop->{token});
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];
my $other = new_shop();
told('member', 'add', 'other', 'owner', '--shop', $other->{shop_id});

sub made
{
    my ($path, $body) = @_;
    my $reply = api('POST', $path, %key, json => $body);
    die "$path: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

# Sends a form of a page to a path below it; the reply.
sub press
{
    my ($page, $action, $fields) = @_;
    return submit('staff', visit('staff', 'GET', "/$id$page"), "/$id$page$action", $fields // {});
}

sub body { return visit($_[1] // 'staff', 'GET', "/$id$_[0]")->{body} }

# --- categories and links ------------------------------------------------------------------------

like(body('/categories'), qr/There is no category yet/, 'at first there is no category');
is(press('/categories', '', { name => "Music $XSS" })->{status}, 303, 'staff add one');
my ($category) = body('/categories') =~ m{categories/(\d+)"};
like(body('/categories'), qr/Music &/, 'which is listed, as text');
is(press("/categories/$category", '', { name => 'Songs' })->{status}, 303, 'and renamed');
is(api('GET', "/categories/$category", %key)->{json}{name}, 'Songs', 'for everybody');
is(press($_, '', { name => '' })->{status}, 400, "$_: without a name it is refused")
    for '/categories', "/categories/$category", '/packs';
is(press("/categories/$category", '/delete')->{status}, 303, 'and deleted');
is(visit('staff', 'GET', "/$id/categories/$category")->{status}, 404, 'which it then is');

like(body('/links'), qr/There is no link yet/, 'at first there is no link');
is(press('/links', '', { title => "Course $XSS", url => 'https://course.example/' })->{status}, 303,
    'staff add one');
my ($link) = body('/links') =~ m{links/(\d+)"};
for my $url ('', 'http://course.example/', 'https://u:p@course.example/', 'javascript:alert(1)',
    'https://course.example/' . 'x' x 2048)
{
    my $refused = press("/links/$link", '', { title => 'Course', url => $url });
    is($refused->{status}, 400, 'not with the address ' . substr $url, 0, 30);
    like($refused->{body}, qr/role="alert">\s*Give the whole https address/, 'which is said');
}
is(press("/links/$link", '', { title => 'Course', url => 'https://other.example/' })->{status}, 303,
    'staff change it');
is_deeply([ @{ api('GET', "/links/$link", %key)->{json} }{qw(title url)} ],
    [ 'Course', 'https://other.example/' ], 'for everybody');
{
    my $stale = visit('staff', 'GET', "/$id/links/$link");
    api('PATCH', "/links/$link", %key, json => { title => 'Newer' });
    is(submit('staff', $stale, "/$id/links/$link",
        { title => 'Late', url => 'https://late.example/' })->{status}, 412,
        'who has not seen the last change is told');
}
my $mapping = made('/mappings',
    { storefront_product_id => MDL::Contract::product(), link_ids => [ $link + 0 ] });
like(body("/links/$link"), qr{<a href="/settings/$id/products/$mapping->{id}">Product \d+</a>},
    'its page leads to the products that have it');
my $held = press("/links/$link", '/delete');
is($held->{status}, 409, 'what a product has is not deleted');
like($held->{body}, qr/mapping $mapping->{id}/, 'and the page says which');

# --- packs ---------------------------------------------------------------------------------------

like(body('/packs'), qr/There is no pack yet/, 'at first there is no pack');
my @file = map { ready_asset($shop, "$_.pdf", $_, title => "\u$_ $XSS")->{id} } qw(one two three);
my $done = press('/packs', '', { name => "Album $XSS" });
my ($pack) = ($done->{headers}{location} // '') =~ m{/$id/packs/(\d+)\?done=pack_created$};
ok($pack, 'staff make a pack, and are led to it') or diag $done->{body};
like(body("/packs/$pack?q=th"), qr/value="$file[2]">Add/, 'a file is found by its name');
unlike(body("/packs/$pack?q=th"), qr/value="$file[0]">Add/, 'and no other');

sub files { return api('GET', "/packs/$pack", %key)->{json}{file_ids} }

press("/packs/$pack", '/files', { add => $_ }) for @file;
is_deeply(files(), [@file], 'files are added at the end');
press("/packs/$pack", '/files', { add => $file[0] });
is_deeply(files(), [@file], 'once');
press("/packs/$pack", '/files', { up => $file[2] });
is_deeply(files(), [ @file[ 0, 2, 1 ] ], 'one goes up');
press("/packs/$pack", '/files', { down => $file[0] });
is_deeply(files(), [ @file[ 2, 0, 1 ] ], 'one goes down');
press("/packs/$pack", '/files', $_)
    for { up => $file[2] }, { down => $file[1] }, { up => 999_999 }, { remove => 999_999 };
is_deeply(files(), [ @file[ 2, 0, 1 ] ], 'not beyond the ends, and nothing that is not there');
is_deeply([ body("/packs/$pack") =~ m{<td><a href="/settings/$id/files/(\d+)"}g ],
    [ @file[ 2, 0, 1 ] ], 'the page shows them in that order');
press("/packs/$pack", '/files', { remove => $file[0] });
is_deeply(files(), [ @file[ 2, 1 ] ], 'one is removed');
like(body("/packs/$pack"), qr/In no product/, 'no product has it yet');
my @has = map { made('/mappings', { storefront_product_id => MDL::Contract::product(),
    pack_ids => [ $pack + 0 ], title => "Has $XSS" }) } 1 .. 22;
is_deeply([ body("/packs/$pack") =~ m{<a href="/settings/$id/products/(\d+)"><bdi>Has &}g ],
    [ map { $_->{id} } @has[ 0 .. 19 ] ], 'its page leads to the first products that have it');
like(body("/packs/$pack"), qr/and 2 more/, 'and counts the others');
api('DELETE', "/mappings/$_->{id}", %key) for @has;
like(body("/packs/$pack"), qr/In no product/, 'without those that are deleted');
my $theirs = ready_asset($other, 'their.pdf', 'theirs')->{id};
my $refused = press("/packs/$pack", '/files', { add => $theirs });
is($refused->{status}, 422, 'no file of another shop');
unlike($refused->{body}, qr{<li></li>}, 'and no list of nothing is below the reason');
is(press("/packs/$pack", '/files', {})->{status}, 400, 'a form without a button is faulty');
{
    my $stale = visit('staff', 'GET', "/$id/packs/$pack");
    api('PATCH', "/packs/$pack", %key, json => { file_ids => [ map { $_ + 0 } @file[ 0, 1 ] ] });
    is(submit('staff', $stale, "/$id/packs/$pack/files", { up => $file[1] })->{status}, 412,
        'who has not seen the last change is told');
    is_deeply(files(), [ @file[ 0, 1 ] ], 'and changes nothing');
}
is(press("/packs/$pack", '', { name => 'Record' })->{status}, 303, 'it is renamed');
like(body('/packs'), qr/Record.*<td [^>]*>2</s, 'the list has its name, and how many files it has');
made('/mappings', { storefront_product_id => MDL::Contract::product(), pack_ids => [ $pack + 0 ] });
is(press("/packs/$pack", '/delete')->{status}, 409, 'what a product has is not deleted');
press('/packs', '', { name => 'Another' });
my ($another) = body('/packs') =~ m{packs/(\d+)"};
is(press("/packs/$another", '/delete')->{status}, 303, 'what nobody has is');
unlike(join('', map { body($_, 'reader') } '/packs', "/packs/$pack", '/links', "/links/$link"),
    qr/<script>alert|value="\d+">(?:Add|Up|Down|Remove)|<h2 id="new">/,
    'text is text, and a reader has no button');

# --- who may -------------------------------------------------------------------------------------

for my $path ("/packs/$pack", "/links/$link") {
    is(visit('other', 'GET', "/$other->{shop_id}$path")->{status}, 404,
        "$path is not in another shop");
    for my $action ('', '/delete') {
        is(submit('reader', own_form('reader', 'read-only', "/$id$path"), "/$id$path$action",
            { name => 'x', title => 'x', url => 'https://x.example/' })->{status}, 403,
            "$path$action: not for a reader");
    }
}
is_deeply([ map { join ' ', @$_ } sql("SELECT noun, action, user_name FROM audit "
    . "WHERE shop_id = $id AND via = 'settings' GROUP BY noun, action, user_name "
    . 'ORDER BY noun, action') ],
    [ (map { ; "category $_ staff" } qw(changed created deleted)),
        (map { ; "link $_ staff" } qw(changed created)),
        (map { ; "pack $_ staff" } qw(changed created deleted)) ], 'the audit has each change');

$server->stop;
done_testing;
