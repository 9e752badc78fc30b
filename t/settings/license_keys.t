# The pages of license keys: stocks, keys that are pasted or made, who got which, and who may do
# what.
#
# both: keys are found by their sealed text, and orders that wait are counted by other statements
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my $list   = "/$id/license-keys";
told('member', 'add', $_->[0], $_->[1], '--shop', $id) for [ staff => 'staff' ],
    [ reader => 'read-only' ];

sub call { my ($method, $path, %opt) = @_; return api($method, $path, key => $shop->{token}, %opt) }

# What a form on a page does.
sub send_form
{
    my ($page, $path, %fields) = @_;
    return submit('staff', visit('staff', 'GET', $page), $path, \%fields);
}

# What the page says.
sub text_of
{
    my ($reply) = @_;
    return $reply->{body} =~ s{^.*<main>}{}sr =~ s/<[^>]*>/ /gr =~ s/\s+/ /gr;
}

# --- a stock -------------------------------------------------------------------------------------

my $empty = visit('staff', 'GET', $list);
is($empty->{status}, 200, 'there is a page of stocks');
like(text_of($empty), qr/There is no stock yet/, 'without any');
is(send_form($list, $list, name => '')->{status}, 400, 'a stock needs a name');
my $faulty = send_form($list, $list, name => 'Editor', threshold => 'few');
is($faulty->{status}, 400, 'and a number to be told at');
like($faulty->{body}, qr/value="Editor"/, 'what was typed is still there');
my $made = send_form($list, $list, name => 'Editor "3"', threshold => 2, reclaims => 1);
is($made->{status}, 303, 'a stock is created');
my ($stock) = $made->{headers}{location} =~ m{(/\d+/license-keys/\d+)\?done=stock_created};
my ($tag)   = $stock =~ /(\d+)\z/;
my $of_api  = call('GET', "/license-key-tags/$tag")->{json};
is_deeply([ @$of_api{qw(name low_stock_threshold)}, $of_api->{reclaim_on_revoke} ? 1 : 0 ],
    [ 'Editor "3"', 2, 1 ], 'as the API shows it');
like(text_of(visit('staff', 'GET', $list)), qr/Editor &quot;3&quot; low/, 'it is in the list');

# --- keys that are pasted ------------------------------------------------------------------------

# Orders of two and of one that wait.
my $product = mapping_of($shop, [], license_key_tag_ids => [ $tag + 0 ])->{storefront_product_id};
assign($shop, 8001, [ { storefront_product_id => $product, quantity => 2 } ],
    customer => { email => 'ada@buyer.example' });
is(visit('staff', 'GET', $stock)->{body} =~ /One order waits for a key/, 1,
    'an order that waits is told');
like(visit('staff', 'GET', $list)->{body}, qr/data-label="Orders that wait">1</,
    'in the list, too');

my $paste = join "\r\n", "\x{feff}KEY-1", '', ' KEY-2 ', '"KEY,""3"""', 'KEY-1', map { "MORE-$_" }
    1 .. 477;
my $added = send_form($stock, "$stock/add", keys => $paste);
is($added->{status}, 200, 'keys are pasted');
like(text_of($added), qr/480 keys were added\. 1 was there already\. 2 went to orders that were/,
    'and it is told what became of them');
is(submit('staff', $added, "$stock/add", { keys => $paste })->{body}
        =~ /No key was added\. 481 were there/, 1, 'a second time they are all there');
is_deeply([ @{ call('GET', "/license-key-tags/$tag")->{json} }{qw(available assigned)} ],
    [ 478, 2 ], 'the API counts the same');
is_deeply(call('GET', '/orders/8001')->{json}{assignments}[0]{license_keys}, [qw(KEY-1 KEY-2)],
    'the order has its keys, without what nobody sees');

my $table = "Name;License key;Note\nAda;TAB-1;first\nBo;\"TAB;2\";\n;;\nCy;TAB-3\n";
like(text_of(send_form($stock, "$stock/add", keys => $table)), qr/3 keys were added/,
    "a table's column");
for (
    [ ' ',                                qr/There is no key in there/ ],
    [ "A-1\nName,Key\n",                  qr/Line 2 is no single key/ ],
    [ "A-1\n\n\"A-2\n",                   qr/Line 3 is no single key/ ],
    [ "A-1\n" . 'x' x 513,                qr/Line 2 is no license key/ ],
    [ (join "\n", map { "X$_" } 1 .. 10_001), qr/the 10,001st is in line 10001/ ],
) {
    my ($text, $says) = @$_;
    my $refused = send_form($stock, "$stock/add", keys => $text);
    like(text_of($refused), $says, "refused: $refused->{status}");
}
is(call('GET', "/license-key-tags/$tag")->{json}{available}, 481, 'of these nothing was added');
my $many = join "\n", map { sprintf 'MANY-%05d-%s', $_, 'k' x 480 } 1 .. 10_000;
like(text_of(send_form($stock, "$stock/add", keys => $many)), qr/10000 keys were added/,
    '10,000 keys at once');

# --- keys that are made --------------------------------------------------------------------------

my $second = (send_form($list, $list, name => 'Made')->{headers}{location}
    =~ m{(/\d+/license-keys/\d+)})[0];
my ($second_tag) = $second =~ /(\d+)\z/;
my $weak = send_form($second, "$second/generate", pattern => 'ABCD-####-????', count => 2000);
is($weak->{status}, 422, 'a pattern whose keys could be guessed is refused');
like(text_of($weak), qr/good for a tag with 1358 keys/, 'with what it is good for');
like($weak->{body}, qr/value="ABCD-####-\?\?\?\?"/, 'and is still there');
like(text_of(send_form($second, "$second/generate", pattern => 'ABCD-####-????', count => 500)),
    qr/500 keys were added/, 'a smaller number is made');
like(call('GET', "/license-key-tags/$second_tag/keys")->{json}{data}[0]{license_key},
    qr/^ABCD-[2-9]{4}-[A-HJ-NP-Z]{4}\z/, 'of that pattern');
is(send_form($second, "$second/generate", pattern => '*' x 20, count => $_)->{status}, 400,
    "not $_ keys")
    for 0, 10_001, 'many';

# --- who got which -------------------------------------------------------------------------------

my $handed = visit('staff', 'GET', "$stock?status=assigned");
like(text_of($handed),
    qr/KEY-2 handed out 8001 ada\@buyer\.example .* KEY-1 handed out 8001 ada\@buyer\.example/,
    'the list says which order and customer has a key');
unlike($handed->{body}, qr/MORE-1</, 'and has no others');
my ($older) = visit('staff', 'GET', $stock)->{body} =~ /href="\/settings([^"]*before=\d+)"/;
is(visit('staff', 'GET', $older)->{status}, 200, 'it goes on');

my $found = send_form($stock, "$stock/find", key => ' KEY-2 ');
like(text_of($found), qr/KEY-2 : handed out, Order 8001 \( ada\@buyer\.example \)/,
    'a whole key is found');
like(text_of(send_form($stock, "$stock/find", key => 'KEY-')), qr/This stock has no such key/,
    'a part of one is not');
like(text_of(send_form($second, "$second/find", key => 'KEY-2')), qr/This stock has no such key/,
    'nor a key of another stock');

sub key_id
{
    my ($text) = @_;
    my $keys = call('GET', "/license-key-tags/$tag/keys?status=assigned")->{json}{data};
    my ($row) = sql("SELECT max(id) FROM license_key WHERE tag_id = $tag "
        . "AND assignment_id IS NULL");
    return $text ? (grep { $_->{license_key} eq $text } @$keys)[0]{id} : $row->[0];
}

is(send_form($stock, "$stock/remove", key => key_id('KEY-1'))->{status}, 409,
    "a customer's key can't be removed");
is(send_form($stock, "$stock/remove", key => key_id())->{status}, 303, 'one in stock can');
is(call('GET', "/license-key-tags/$tag")->{json}{available}, 10_480, 'and is counted');

# --- changes -------------------------------------------------------------------------------------

my $page = visit('staff', 'GET', $stock);
is(submit('staff', $page, "$stock/change", { name => 'Editor 4' })->{status}, 303,
    'a stock is renamed');
is_deeply([ @{ call('GET', "/license-key-tags/$tag")->{json} }{qw(name low_stock_threshold)} ],
    [ 'Editor 4', undef ], 'and nobody is told any more');
is(submit('staff', $page, "$stock/change", { name => 'Editor 5', form_token =>
    form_token(visit('staff', 'GET', $stock)) })->{status}, 412,
    'but not by somebody who saw it before');
is(send_form($stock, "$stock/delete")->{status}, 409, 'a stock that a product uses stays');
is(send_form($second, "$second/delete")->{headers}{location} =~ /license-keys\?done=stock_deleted/,
    1, 'another is deleted');

is_deeply([ map { $_->[0] } sql("SELECT DISTINCT action FROM audit WHERE shop_id = $id "
    . "AND noun = 'license_key_tag' AND user_name = 'staff' ORDER BY action") ],
    [qw(changed created deleted key_deleted keys_added)], 'the audit has all of it');

# --- who may -------------------------------------------------------------------------------------

my $seen = visit('reader', 'GET', "$stock?status=assigned");
is($seen->{status}, 200, 'who only reads sees a stock');
unlike($seen->{body}, qr/KEY-1|<form method="post" action="[^"]*license-keys/,
    'without keys and forms');
for my $path ($list, map { "$stock/$_" } qw(add generate find change remove delete)) {
    my $form = own_form('reader', 'read-only', $list);
    is(submit('reader', $form, $path, { name => 'X', keys => 'X', key => 'KEY-1' })->{status}, 403,
        "and can't send $path");
}
my $other = new_shop();
told('member', 'add', 'other', 'staff', '--shop', $other->{shop_id});
my $foreign = "/$other->{shop_id}/license-keys";
my $token   = visit('other', 'GET', $foreign);
is(visit('other', 'GET', "$foreign/$tag")->{status}, 404, "another shop's stock is not there");
for my $form (qw(add generate find change remove delete)) {
    my $reply = submit('other', visit('other', 'GET', $foreign), "$foreign/$tag/$form",
        { name => 'X', keys => 'X', key => 'KEY-1', pattern => '*' x 20, count => 1 });
    is($reply->{status}, 404, "nor can it be used: $form");
}
is(call('GET', "/license-key-tags/$tag")->{json}{available}, 10_480, 'nothing has changed it');

$server->stop;
done_testing;
