# A shop's files as its staff see them: the list and its filters, a file from a web address, its
# page, its forms, and what its deletion is refused for.
#
# both: the database finds files by their names, and what uses them
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Source;
use MDL::Test;
use Test::More;

my $XSS = '"><script>alert(1)</script>';

my $server = settings_server();
my $source = MDL::Source->new;
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my %key    = (key => $shop->{token});
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ staff => 'staff' ], [ reader => 'read-only' ];
my $other = new_shop();
told('member', 'add', 'other', 'owner', '--shop', $other->{shop_id});

my $LIST = "/$id/files";

sub listed
{
    my ($query, $user) = @_;
    my $page = visit($user // 'reader', 'GET', "$LIST?$query");
    is($page->{status}, 200, "files?$query") or diag $page->{body};
    return [ $page->{body} =~ m{<td><a href="/settings/$id/files/(\d+)"}g ];
}

sub file_page { return visit($_[1] // 'staff', 'GET', "$LIST/$_[0]")->{body} }

# Sends a form of a file's page; the reply.
sub press
{
    my ($file, $action, $fields, $user) = @_;
    return submit($user // 'staff', visit('staff', 'GET', "$LIST/$file"),
        "$LIST/$file$action", $fields // {});
}

# --- the list ------------------------------------------------------------------------------------

like(visit('reader', 'GET', $LIST)->{body}, qr/There is no file yet/, 'at first there is none');
my $book  = ready_asset($shop, 'book.pdf',  'the book', title => "Book $XSS")->{id};
my $song  = ready_asset($shop, 'bonus.mp3', 'the song')->{id};
my $theirs = ready_asset($other, 'book.pdf', 'their book')->{id};
like(file_page($song), qr{action="/settings/$id/products".*?name="item"\ value="1-$song"}sx,
    'a file that is in no product can be made one');
unlike(file_page($song, 'reader'), qr{action="/settings/$id/products"}, 'by those who may');
my $category = api('POST', '/categories', %key, json => { name => "Music $XSS" })->{json}{id};
api('PATCH', "/assets/$song", %key, json => { category_id => $category + 0 });
my $mapping = mapping_of($shop, [ $book + 0 ]);
my $product = $mapping->{storefront_product_id};
api('POST', '/packs', %key, json => { name => "Pack $XSS", file_ids => [ $book + 0 ] });

is_deeply(listed(''), [ $song, $book ], 'all files of the shop, the newest first');
is_deeply(listed('q=bo'), [ $song, $book ], 'those whose names begin so, by name');
is_deeply(listed('q=book'), [$book], 'which may be one');
is_deeply(listed('q=ook'),  [],      'and is the beginning');
is_deeply(listed('q=%25'),  [],      'and no pattern');
is_deeply(listed('q=bo&category=' . $category), [$song], 'a name and a category');
is_deeply(listed("category=$category"), [$song], 'a category');
is_deeply(listed('state=ready'), [ $song, $book ], 'a state');
is_deeply(listed('state=failed'), [], 'that no file may have');
is(visit('reader', 'GET', "$LIST?q=" . 'x' x 256)->{status}, 400, 'a name that is too long');
{
    my $page = visit('reader', 'GET', $LIST)->{body};
    like($page, qr/1 product, 1 pack/, 'where a file is used');
    like($page, qr/nothing yet/, 'or that it is not');
    like($page, qr/16\S*\s*bytes stored/, 'what the shop stores');
    unlike($page, qr/<script>alert|<form method="post" action="[^"]+files/,
        'text is text, and a reader has no form');
}
{
    my $rows = join ', ', map { "($id, 'failed', 'many" . (100 + $_) . "', 't', 1, 1, 1)" } 1 .. 60;
    sql('INSERT INTO asset (shop_id, status, filename, title, version, created_at, updated_at) '
            . "VALUES $rows");
    my $page = visit('reader', 'GET', "$LIST?state=failed");
    is(scalar(() = $page->{body} =~ m{<td><a }g), 50, 'a page has fifty');
    my ($next) = $page->{body} =~ m{href="/settings($LIST\?[^"]+before=\d+)"};
    is(scalar(() = visit('reader', 'GET', $next =~ s/&amp;/&/gr)->{body} =~ m{<td><a }g), 10,
        'the next the rest of those that fit');
    like(visit('reader', 'GET', "$LIST?q=many")->{body}, qr/Type in more of the name/,
        'a search shows fifty, and says so');
    sql("DELETE FROM asset WHERE filename LIKE 'many%'");
}

# --- from a web address --------------------------------------------------------------------------

sub import_from
{
    my ($path, $fields, %answer) = @_;
    my $done = submit('staff', visit('staff', 'GET', $LIST), $LIST,
        { source_url => $source->offer($path, { body => 'x', %answer }), %$fields });
    is($done->{status}, 303, "$path is imported") or diag $done->{body};
    my ($file) = $done->{headers}{location} =~ m{$LIST/(\d+)\?done=file_imported$};
    return $file;
}

sub job_of
{
    my ($file) = @_;
    return (sql("SELECT id FROM job WHERE asset_id = $file ORDER BY id DESC LIMIT 1"))[0][0];
}

my $held = import_from('held.bin', { title => "Held $XSS" });
is(wait_job($shop, job_of($held))->{status}, 'succeeded', 'it comes');
ok(!visit('staff', 'GET', "$LIST/$held")->{headers}{refresh}, 'and its page stays as it is');
sql("UPDATE job SET status = 'queued', due_at = 9000000000000000, bytes_received = 50000, "
    . "bytes_total = 200000 WHERE asset_id = $held");
like(file_page($held), qr/<progress value="50000" max="200000" /,
    'before, it shows how much has come');
like(file_page($held), qr/On its way: 50\S*\s*kB of 200/, 'in words, too');
ok(visit('staff', 'GET', "$LIST/$held")->{headers}{refresh}, 'and renews itself');
sql("UPDATE job SET status = 'succeeded', due_at = NULL WHERE asset_id = $held");
like(file_page($held), qr/Held &quot;|Held &#34;/, 'with the title that was given');
like(file_page($held), qr/held\.bin/, 'and the name of the address');

for my $case (
    [ 'nonsense', 400, qr/Give the whole https address/ ],
    [ 'https://u:p@localhost/x', 400, qr/without a password/ ],
    [ 'https://elsewhere.example/x', 422, qr/does not allow imports from there/ ],
    [ 'https://localhost/' . 'x' x 8192, 400, qr/Give the whole/ ])
{
    my $refused = submit('staff', visit('staff', 'GET', $LIST), $LIST,
        { source_url => $case->[0], title => 'Kept' });
    is($refused->{status}, $case->[1], substr($case->[0], 0, 40) . ' is refused');
    like($refused->{body}, qr/role="alert"[^>]*>\s*[^<]*$case->[2].*value="Kept"/s,
        'with a sentence, and what was typed');
}
for my $case ([ 'a/b', qr/Give the file a name, without a folder/ ],
    [ "\x{9577}" x 86, qr/This file name is too long: shorten it to 63 characters/ ])
{
    my $refused = submit('staff', visit('staff', 'GET', $LIST), $LIST,
        { source_url => $source->offer('p', { body => 'x' }), filename => $case->[0] });
    is($refused->{status}, 400, 'a name with a path is refused, and a long one');
    like($refused->{body}, qr/role="alert"[^>]*>\s*$case->[1]/, 'in plain words');
}

# --- what failed ---------------------------------------------------------------------------------

my $lost = import_from('lost.pdf', {}, status => 404);
wait_job($shop, job_of($lost));
my $pinned = mapping_of($shop, [ $lost + 0 ])->{storefront_product_id};
assign($shop, 7001, [$pinned]);
like(file_page($lost), qr/could not be had\. There is no file at its address/,
    'the page says what failed');
like(file_page($lost), qr{Orders that wait for it.*orders/7001"}s, 'who waits');
like(file_page($lost), qr{files/$lost/retry"}, 'and offers to try again');
unlike(file_page($lost, 'reader'), qr/<form method="post" action="[^"]+files/, 'not to a reader');
$source->offer('lost.pdf', { body => 'found' });
is(press($lost, '/retry')->{status}, 303, 'staff try again');
is(wait_job($shop, job_of($lost))->{status}, 'succeeded', 'and it comes');
unlike(file_page($lost), qr/wait for it|could not be had/, 'so nobody waits');
is(press($lost, '/retry')->{status}, 409, 'what came is not tried again');

# --- what is cancelled -------------------------------------------------------------------------

my $slow = import_from('slow.pdf', {}, body => 'x' x 9000, hold => 1000);
wait_for(sub { $source->requests('slow.pdf') }, 20, 'an import to begin');
like(file_page($slow), qr{files/$slow/cancel"}, 'what is coming can be cancelled');
unlike(file_page($slow, 'reader'), qr{/cancel"}, 'not by a reader');
is(press($slow, '/cancel')->{status}, 303, 'staff cancel it');
is(api('GET', '/jobs/' . job_of($slow), %key)->{json}{status}, 'cancelled', 'as the API does');
my $stopped = file_page($slow);
like($stopped, qr/It was cancelled before the file had come\.<.*files\/$slow\/retry"/s,
    'which the page says, and offers to try again');
unlike($stopped, qr{/cancel"|Customers keep}, 'and no more');
$source->release('slow.pdf');
is(press($slow, '/retry')->{status}, 303, 'staff do');
is(wait_job($shop, job_of($slow))->{status}, 'succeeded', 'and it comes');
is(press($slow, '/cancel')->{status}, 409, 'what has come is not cancelled');

my $wrong = api('POST', '/assets', %key,
    json => { source_url => $source->offer('wrong.pdf', { body => 'x' }), sha256 => 'a' x 64 });
wait_job($shop, $wrong->{json}{job}{id});
like(file_page($wrong->{json}{asset}{id}), qr/checksum/, 'a checksum that does not match');
unlike(file_page($wrong->{json}{asset}{id}), qr{/retry"},
    'is not tried again, which could not help');
unlike(visit('staff', 'GET', "/$id/")->{body}, qr{jobs/$wrong->{json}{job}{id}/retry},
    'on the overview neither');

# --- a file's page -------------------------------------------------------------------------------

assign($shop, 7002, [$product]);
my $page = file_page($book);
my ($number) = $product =~ m{(\d+)$};
like($page, qr{<a href="/settings/$id/products/$mapping->{id}">Product $number</a>},
    'the products that have it');
like($page, qr/Pack: <a [^>]+><bdi>Pack &/, 'the packs');
like($page, qr/1 order has it/, 'how many orders');
like($page, qr/The one order that has it gets the new version/, 'whom a new version reaches');
like($page, qr/can\W+t be deleted while/, 'and why it can\'t be deleted');
unlike($page, qr/<script>alert/, 'text is text');
is(visit('other', 'GET', "/$other->{shop_id}/files/$book")->{status}, 404,
    'another shop\'s file is not there');
is(visit('other', 'GET', "$LIST/$book")->{status}, 404, 'under either shop');
is(visit('staff', 'GET', "$LIST/$_")->{status}, 404, "nor is $_") for qw(0 x 999999);

is(press($book, '', { title => 'New', filename => 'new.pdf', category => $category })->{status},
    303, 'staff rename it');
is_deeply([ @{ api('GET', "/assets/$book", %key)->{json} }{qw(title filename category_id)} ],
    [ 'New', 'new.pdf', $category ], 'which it is then');
is(press($book, '', { title => 'New', filename => 'new.pdf', category => '' })->{status}, 303,
    'or take it out of its category');
is(api('GET', "/assets/$book", %key)->{json}{category_id}, undef, 'which it then has not');
for my $case ([ '', 'new.pdf', '' ], [ 'x' x 256, 'new.pdf', '' ], [ 'New', 'a/b', '' ],
    [ 'New', '', '' ])
{
    my $refused = press($book, '',
        { title => $case->[0], filename => $case->[1], category => $case->[2] });
    is($refused->{status}, 400, 'what is no name is refused');
    like($refused->{body}, qr/role="alert".*<details open>/s, 'with a sentence, the form open');
}
is(press($book, '', { title => 'New', filename => 'new.pdf', category => 999_999 })->{status}, 422,
    'nor is there such a category');
{
    my $stale = visit('staff', 'GET', "$LIST/$book");
    api('PATCH', "/assets/$book", %key, json => { title => 'Newer' });
    my $late = submit('staff', $stale, "$LIST/$book", { title => 'Late', filename => 'late.pdf' });
    is($late->{status}, 412, 'who has not seen the last change is told');
    like($late->{body}, qr/Somebody has changed this/, 'in plain words');
    is(api('GET', "/assets/$book", %key)->{json}{title}, 'Newer', 'and changes nothing');
}

is(press($book, '/replace', { source_url => $source->offer('v2.pdf', { body => 'version 2' }) })
    ->{status}, 303, 'staff replace it');
wait_job($shop, job_of($book));
is(api('GET', "/assets/$book", %key)->{json}{version}, 2, 'by its second version');
like(file_page($book), qr/version 2/, 'which the page says');
is(press($book, '/replace', { source_url => 'nonsense' })->{status}, 400, 'by a file, that is');
like(file_page($book),
    qr/<input type="checkbox" name="notify" value="1"> Tell the buyer of the one /,
    'the page offers to tell the buyers, and says how many that reaches');
unlike(file_page($song), qr/name="notify"/, 'unless nobody has the file');
{
    my %long = (source_url => $source->offer('v3.pdf', { body => 'version 3' }), notify => 1);
    my $late = press($book, '/replace', { %long, note => 'x' x 1001 });
    is($late->{status}, 400, 'a note that is too long is refused');
    like($late->{body}, qr/A note has up to.*name="notify" value="1" checked/s, 'and nothing lost');
    my $pressed = press($book, '/replace', { %long, note => "New:\r\na <b>chapter</b>" });
    is($pressed->{headers}{location}, "/settings$LIST/$book?done=buyers_told",
        'the button leads to the page');
    my $told = qr/The buyer of the one order that has it will be told by email once the new/;
    like(visit('staff', 'GET', "$LIST/$book?done=buyers_told")->{body},
        qr/class="good" role="status">$told/, 'which says how many will be told');
    wait_job($shop, job_of($book));
    is(api('GET', "/assets/$book", %key)->{json}{note}, "New:\na <b>chapter</b>",
        'another is kept');
    like(file_page($book), qr{What is new in it:</p>\n.*New:<br>a &lt;b&gt;chapter&lt;/b&gt;<br>},
        'and shown');
    is((sql("SELECT count(*) FROM job WHERE type = 'tell_buyers'"))[0][0], 1,
        'and the buyers are told');
    press($book, '/restore', { version => 2 });
}

like(file_page($book), qr/Put version 3 back.*The one order that has the file gets version 3/s,
    'the page offers the version before, and says whom it reaches');
unlike(file_page($book, 'reader'), qr/Put version 3 back/, 'not to a reader');
is(press($book, '/restore', { version => 3 })->{headers}{location} // '',
    "/settings$LIST/$book?done=file_put_back", 'staff put it back');
like(visit('staff', 'GET', "$LIST/$book?done=file_put_back")->{body},
    qr/Put back: it is version 5 now/, 'as the next version');
{
    my $late = press($book, '/restore', { version => 1 });
    is($late->{status}, 409, 'a version that is not kept');
    like($late->{body}, qr/role="alert"[^>]*>\s*The bytes of this version are no longer kept/,
        'is refused with a sentence');
}

my $refused = press($book, '/delete');
is($refused->{status}, 409, 'what an order has is not deleted');
like($refused->{body}, qr/role="alert"/, 'which is said');
is(press($song, '/delete')->{headers}{location} // '', "/settings$LIST?done=file_deleted",
    'what nobody has is');
is(api('GET', "/assets/$song", %key)->{status}, 404, 'and is gone');

# --- who may -------------------------------------------------------------------------------------

for my $action ('', qw(/replace /restore /retry /cancel /delete)) {
    is(press($book, $action, { title => 'x', filename => 'y', source_url => 'z' }, 'other')
        ->{status}, 404, "another shop's owner may not: $action");
    is(submit('reader', own_form('reader', 'read-only', "$LIST/$book"), "$LIST/$book$action",
        { title => 'x' })->{status}, 403, "nor a reader: $action");
}
is(submit('reader', own_form('reader', 'read-only', $LIST), $LIST, { source_url => 'x' })
    ->{status}, 403, 'nor may a reader import');
is_deeply([ map { join ' ', @$_ } sql("SELECT noun, action, user_name FROM audit "
    . "WHERE shop_id = $id AND via = 'settings' GROUP BY noun, action, user_name "
    . 'ORDER BY noun, action') ],
    [ 'asset changed staff', 'asset deleted staff', 'asset imported staff',
        'asset version_added staff', 'asset version_restored staff', 'job cancelled staff',
        'job retried staff' ],
    'the audit has each change');

$server->stop;
done_testing;
