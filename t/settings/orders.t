# The orders of a shop as its staff see them: finding one, its whole story, and every button on its
# page.
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
my $shop   = new_shop(name => "Shop $XSS");
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
told('member', 'add', 'operator', 'operator');
my $other = new_shop();

my $asset = ready_asset($shop, 'book.pdf', 'the book', title => "Book $XSS");
my $mapping = mapping_of($shop, [ $asset->{id} ]);
my $product = $mapping->{storefront_product_id};

sub order
{
    my ($number, %opt) = @_;
    my $reply = assign($shop, $number, [$product], %opt);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

sub slurp_top { my ($path) = @_; return MDL::Target::slurp(MDL::Target::top_dir() . "/$path") }

sub found
{
    my ($user, $query) = @_;
    my $reply = visit($user, 'GET', "/$id/orders?$query");
    is($reply->{status}, 200, "orders?$query");
    return [ $reply->{body} =~ m{/settings/$id/orders/(\d+)"}g ];
}

# --- finding -------------------------------------------------------------------------------------

like(visit('reader', 'GET', "/$id/orders")->{body},
    qr{<p>There is no order yet\. Orders appear here [^<]*storefront[^<]*API key[^<]*to them\.</p>},
    'without orders the page says what brings them');
like(visit('staff', 'GET', "/$id/orders")->{body},
    qr{class="button" href="[^"]*/orders/new".*to them\. Or create one by hand: [^<]+</p>}s,
    'and to staff, who can create one, that, too');
unlike(visit('staff', 'GET', "/$id/orders")->{body}, qr/Show all orders/, 'there is nothing else');
my $first = order(7001, storefront_customer_id => '501', send_email => JSON::PP::true(),
    customer => { email => 'Ada@Example.com', first_name => "Ada $XSS", last_name => 'Lovelace' });
order(7002,  storefront_customer_id => '502', customer => { email => 'bob@example.com' });
order(70021, storefront_customer_id => '501');
order(7100,  storefront_customer_id => '7002');
is_deeply(found('reader', ''), [qw(7100 70021 7002 7001)], 'all orders, the newest first');
is_deeply(found('reader', 'q=70021'), ['70021'], 'by the number');
is_deeply([ sort @{ found('reader', 'q=+7002+') } ], [qw(7002 70021 7100)],
    'by its first digits, or the customer\'s number');
is_deeply(found('reader', 'q=ada%40EXAMPLE.com'), [qw(70021 7001)], 'by the address, in any case');
is_deeply(found('reader', 'q=nobody%40example.com'), [],
    'an address that nobody has finds nothing');
is_deeply(found('reader', 'q=love+ada'), [qw(70021 7001)], 'by words, as the search of all pages');
is_deeply(found('reader', 'q=love+bob'), [], 'of which none is left out');
is_deeply(found('reader', 'q=' . '%22%3E%3C%3E'), [], 'nothing that is no word finds anything');
is(visit('reader', 'GET', "/$id/orders?q=" . ('9' x 300))->{status}, 400,
    'what is too long is refused');
is(visit('reader', 'GET', "/$other->{shop_id}/orders")->{status}, 404,
    'another shop\'s orders are not there');
api('POST', '/orders/7002/revoke', key => $shop->{token}, json => {});
is_deeply(found('reader', 'state=revoked'), ['7002'], 'by the state');
is_deeply(found('reader', 'state=held'), [], 'which may have none');
for my $query ('state=held', 'q=nobody%40example.com') {
    like(visit('reader', 'GET', "/$id/orders?$query")->{body},
        qr{<p>No order matches.*<a href="/settings/$id/orders">Show all orders</a>}s,
        "$query: the page says so, and leads to all orders");
}
is_deeply(found('reader', "product=" . ($product =~ s{/}{%2F}gr)), [qw(7100 70021 7002 7001)],
    'by what was bought');
is_deeply(found('reader', 'product=nothing'), [], 'which may be nothing');
is_deeply(found('reader', 'from=2100-01-01'), [], 'by the day');
is_deeply(found('reader', 'from=2000-01-01&to=2100-01-01&state=revoked'), ['7002'],
    'and all together');
is_deeply(found('reader', 'q=7001&state=revoked'), [], 'also with a number');
is_deeply(found('reader', 'q=7002&state=revoked'), ['7002'], 'which finds those that fit the rest');
is_deeply(found('reader', 'q=7002&from=2100-01-01'), [], 'of any filter');
is_deeply(found('reader', 'q=501&product=nothing'), [], 'with the number of a customer');
is_deeply(found('reader', 'q=bob%40example.com&state=revoked'), ['7002'], 'and with an address');
is_deeply(found('reader', 'q=ada%40example.com&state=revoked'), [], 'that has none like that');
is_deeply(found('reader', 'state=nonsense&before=x'), [qw(7100 70021 7002 7001)],
    'what makes no sense is left out');

{
    my $many = join ', ', map { "($id, 'c$_', $_, $_)" } 1 .. 60;
    sql("INSERT INTO customer (shop_id, storefront_customer_id, created_at, updated_at) "
        . "VALUES $many");
    sql('INSERT INTO orders (shop_id, storefront_order_id, customer_id, page_id, access_status, '
            . 'fraud_decision, created_at, updated_at) '
            . "SELECT shop_id, '900' || substr(storefront_customer_id, 2), id, "
            . "'p' || storefront_customer_id, 'active', 'not_checked', created_at, created_at "
            . "FROM customer WHERE shop_id = $id AND storefront_customer_id LIKE 'c%'");
    sql('INSERT INTO search_word (shop_id, kind, word, ref) '
            . "SELECT shop_id, 1, storefront_order_id, id FROM orders "
            . "WHERE shop_id = $id AND storefront_order_id LIKE '900%'");
    my $page = visit('reader', 'GET', "/$id/orders");
    is(scalar(() = $page->{body} =~ m{orders/\d+"}g), 50, 'a page has fifty');
    my ($next) = $page->{body} =~ m{href="/settings(/$id/orders\?[^"]+)"};
    is(scalar(() = visit('reader', 'GET', $next =~ s/&amp;/&/gr)->{body} =~ m{orders/\d+"}g), 14,
        'and the next one the rest');
    like(visit('reader', 'GET', "/$id/orders?q=900")->{body}, qr/There are more/,
        'a number that fits many says so');
    sql("UPDATE orders SET access_status = 'rejected' WHERE shop_id = $id "
        . "AND storefront_order_id = '9009'");
    is_deeply(found('reader', 'q=900&state=rejected'), ['9009'],
        'the last of many is found, too, if it alone fits');
    sql("UPDATE customer SET email = 'many\@example.com' WHERE shop_id = $id "
        . "AND storefront_customer_id LIKE 'c%'");
    $page = visit('reader', 'GET', "/$id/orders?q=many%40example.com&state=");
    is(scalar(() = $page->{body} =~ m{orders/\d+"}g), 50, 'of an address a page has fifty, too');
    ($next) = $page->{body} =~ m{href="/settings(/$id/orders\?[^"]+)"};
    is(scalar(() = visit('reader', 'GET', $next =~ s/&amp;/&/gr)->{body} =~ m{orders/\d+"}g), 10,
        'and the next one the rest of that address');
}

# --- one order -----------------------------------------------------------------------------------

my $path = "/$id/orders/7001";
my $page = visit('staff', 'GET', $path);
is($page->{status}, 200, 'an order has a page');
unlike($page->{body}, qr/<script>alert/, 'on which what somebody typed is text')
    or diag $page->{body};
like($page->{body}, qr/Book &quot;&gt;&lt;script&gt;|Book &#34;&gt;&lt;script&gt;/, 'all of it');
like($page->{body}, qr/Ada\@Example\.com/, 'with the customer');
like($page->{body}, qr{href="\Q$first->{download_page_url}\E\?staff"},
    'the page that the customer sees');
like($page->{body}, qr/0 of 10 downloaded/, 'what is left of each file');
like($page->{body}, qr/Downloads were assigned.*API key/s, 'and what was done by whom');
my $german = visit('staff', 'GET', $path, headers => { 'accept-language' => 'de' });
like($german->{body}, qr/Die Adresse des Kunden ist Ada\@Example\.com\./,
    'the checks are in the language of the page');
unlike($german->{body}, qr/\bThe \w/, 'all of them');
my %translated = map { $_ => 1 } slurp_top('conf/templates/de.words') =~ /^check\.(\w+) = /mg;
my @findings = slurp_top('mod_downloads/core/order/diagnosis.c')
    =~ /"((?:recipient|email|page|mapping|fraud|access|allowance|file)_\w+)"/g;
cmp_ok(scalar(@findings), '>', 30, 'there are many findings');
is_deeply([ grep { !$translated{$_} } @findings ], [], 'and each has a German sentence');
my %signal = map { $_ => 1 } slurp_top('conf/templates/de.words') =~ /^signal\.(\w+) = /mg;
my @codes = slurp_top('mod_downloads/core/order/fraud.c')
    =~ /(?:fraud_add|look_at_count)\(\s*\w+,\s*"(\w+)"/g;
cmp_ok(scalar(@codes), '>=', 9, 'there are several signals');
is_deeply([ grep { !$signal{$_} } @codes ], [], 'and each has one, too');
{
    my @tables = grep { !/^(?:api_key|sqlite_)/ } map { $_->[0] }
        sql(database() eq 'pgsql' ? "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        : "SELECT name FROM sqlite_master WHERE type = 'table'");
    # The background process writes by itself: the email's fate, its own signs of life.
    my @workers = worker_pids();
    pause_process($_) for @workers;
    my $rows = sub {
        return [ sort map { join "\t", @$_ }
            sql(join '; ', map { "SELECT '$_', t.* FROM $_ t" } @tables) ];
    };
    for my $user (qw(staff operator)) {
        my ($url) = visit($user, 'GET', $path)
            ->{body} =~ m{<a href="([^"]+)" rel="noreferrer noopener"};
        my $before = $rows->();
        like(page('GET', $url)->{body}, qr/Book &/, "$user opens the page as the customer sees it");
        is_deeply($rows->(), $before, 'which costs nothing, and leaves no trace');
    }
    kill CONT => @workers;
}
my $seen = visit('reader', 'GET', $path);
unlike($seen->{body}, qr/\Q$first->{download_page_url}\E/,
    'a reader does not see the customer\'s page');
unlike($seen->{body}, qr/<form method="post"/, 'nor any button');
{
    my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
        ->{json}{id};
    api('POST', "/license-key-tags/$tag/keys", key => $shop->{token},
        json => { keys => ['KEY-OF-7003'] });
    my $keys = api('POST', '/mappings', key => $shop->{token},
        json => { storefront_product_id => MDL::Contract::product(),
            license_key_tag_ids => [$tag] })->{json};
    assign($shop, 7003, [ $keys->{storefront_product_id} ]);
    my @seen = map { visit($_, 'GET', "/$id/orders/7003")->{body} } qw(reader staff);
    like($_, qr/license keys: 1/, 'an order of license keys alone says how many') for @seen;
    unlike($seen[0], qr/KEY-OF-7003/, 'a reader sees none of them');
    like($seen[1], qr{<code>KEY-OF-7003</code>}, 'staff see them');
    unlike($_, qr/has no content/, 'and is not taken for an empty one') for @seen;
}
is(visit('reader', 'GET', "/$id/orders/7999")->{status}, 404, 'an order that is not there');
told('member', 'add', 'other', 'owner', '--shop', $other->{shop_id});
is(visit('other', 'GET', $path)->{status}, 404, 'is as one of another shop');
is(visit('other', 'GET', "/$other->{shop_id}/orders/7001")->{status}, 404, 'under either shop');

# --- its buttons ---------------------------------------------------------------------------------

sub press
{
    my ($action, $fields) = @_;
    return submit('staff', visit('staff', 'GET', $path), "$path/$action", $fields // {});
}

sub access { return api('GET', '/orders/7001', key => $shop->{token})->{json} }

my $pressed = press('revoke', { reason => "Refunded $XSS" });
is($pressed->{status}, 303, 'staff revoke');
is($pressed->{body}, '', 'and are led back without a page of its own');
is(access()->{access}{status}, 'revoked', 'the order');
is(access()->{events}[0]{user}, 'staff', 'in their own name');
is(access()->{events}[0]{key_id}, undef, 'and not in that of a key');
my $revoked = visit('staff', 'GET', "$path?done=order_revoked");
like($revoked->{body}, qr/role="status">The access is revoked/, 'which the page says');
unlike($revoked->{body}, qr{/resend"}, 'whose email can\'t be sent again');
like($revoked->{body}, qr/The email can\W+t be sent again now/, 'which it says, too');
like($revoked->{body}, qr/<bdi>staff<.*Refunded &quot;|<bdi>staff<.*Refunded &#34;/s,
    'with who and why');
is(page('GET', $first->{download_page_url})->{status}, 200, 'the customer\'s page');
like(page('GET', $first->{download_page_url})->{body}, qr/withdrawn/, 'says so, too');
is(press('restore')->{status}, 303, 'staff restore it');
is(access()->{access}{status}, 'active', 'again');

is(press('grant', { downloads => 5, days => 0 })->{status}, 303, 'staff give downloads');
is(access()->{assignments}[0]{files}[0]{download_limit}, 15, 'which the order has');
for my $fields ([ 0, 0 ], [ -1, 1 ], [ 'x', 1 ], [ 1001, 0 ], [ 0, 3651 ], [ '', '' ], [ 1.5, 0 ]) {
    my $refused = press('grant', { downloads => $fields->[0], days => $fields->[1] });
    is($refused->{status}, 400, "downloads '$fields->[0]' and days '$fields->[1]' are refused");
    like($refused->{body}, qr/role="alert">Give 1 to 1000 downloads/, 'with a sentence');
}
is(access()->{assignments}[0]{files}[0]{download_limit}, 15, 'and change nothing');

like(visit('staff', 'GET', $path)->{body}, qr{/resend"},
    'of what is open the email can be sent again');
is(press('resend', { to => 'second@example.com' })->{status}, 303,
    'staff send the email to another address');
ok(wait_for(sub {
    grep { /^To: .*second\@example\.com/m } map { MDL::Target::slurp($_) }
        glob mail_dir() . '/new/*';
}, 20, 'the email'),
    'which gets it');
is(access()->{customer}{email}, 'Ada@Example.com', 'the customer keeps its own');
like(press('resend', { to => 'no address' })->{body},
    qr/role="alert">This is not an email address.*value="no address"/s,
    'another is refused, and still there');
sql("UPDATE customer SET email = NULL WHERE shop_id = $id AND storefront_customer_id = '502'");
api('POST', '/orders/7002/restore', key => $shop->{token}, json => {});
$seen = visit('staff', 'GET', "/$id/orders/7002");
like($seen->{body}, qr/no email address: send the email again to one that you know/,
    'of one without an address the page says what can be done there');
like(submit('staff', $seen, "/$id/orders/7002/resend", {})->{body},
    qr/role="alert">\s*The customer has no email address: say where the email should go/,
    'and so does the refusal');
is(press('revoke', { reason => 'x' x 501 })->{status}, 400, 'a reason that is too long is refused');

my $before = access()->{download_page_url};
is(press('rotate-link')->{status}, 303, 'staff replace the link');
isnt(access()->{download_page_url}, $before, 'which is another then');
is(page('GET', $before)->{status}, 404, 'and the old one is gone');

is(press('approve')->{status}, 409, 'an order that is not held can\'t be approved');
sql("UPDATE orders SET access_status = 'held', fraud_decision = 'held' WHERE shop_id = $id "
    . "AND storefront_order_id = '7001'");
like(visit('staff', 'GET', $path)->{body}, qr/Approve the order.*Reject the order/s,
    'one that is held can be decided');
unlike(visit('staff', 'GET', $path)->{body}, qr{/resend"}, 'and its email not be sent');
is_deeply(found('staff', 'state=held'), ['7001'], 'and is found');
like(visit('staff', 'GET', "/$id/")->{body}, qr{Orders to review.*orders/7001"}s,
    'also on the first page');
is(press('approve')->{status}, 303, 'staff approve it');
is(access()->{fraud}{decision}, 'approved', 'which is noted');
sql("UPDATE orders SET access_status = 'held', fraud_decision = 'held' WHERE shop_id = $id "
    . "AND storefront_order_id = '7001'");
is(press('reject', { reason => 'A stolen card' })->{status}, 303, 'or reject it');
is(access()->{access}{reason}, 'A stolen card', 'with a reason');
like(visit('staff', 'GET', $path)->{body}, qr{/approve"(?!.*/restore")}s,
    'One that is rejected can be approved, not restored');
is(press('approve')->{status}, 303, 'and they approve it after all');
is_deeply([ map { join ' ', @$_ }
    sql("SELECT action, user_name, count(*) FROM audit WHERE shop_id = $id AND noun = 'order' "
        . "AND noun_id = '7001' AND via = 'settings' GROUP BY action, user_name ORDER BY action") ],
    [ map { s/ / staff /r } 'approved 2', 'downloads_granted 1', 'email_resent 1', 'link_rotated 1',
        'rejected 1', 'restored 1', 'revoked 1' ],
    'the audit has each button that took effect, and no other');

# --- two people ----------------------------------------------------------------------------------

{
    my $theirs = visit('staff', 'GET', $path);
    my $mine   = visit('owner', 'GET', $path);
    is(submit('staff', $theirs, "$path/grant", { downloads => 1, days => 0 })->{status}, 303,
        'one of two gives a download');
    my $limit = access()->{assignments}[0]{files}[0]{download_limit};
    my $late = submit('owner', $mine, "$path/grant",
        { downloads => 7, days => 3, reason => "Sorry $XSS" });
    is($late->{status}, 412, 'the other, who has not seen that, is told');
    like($late->{body}, qr/role="alert">\s*Somebody has changed this since the page was shown/,
        'in plain words');
    like($late->{body}, qr/0 of $limit downloaded/, 'sees the order as it is now');
    like($late->{body}, qr/<details open>\s*<summary>Give more/, 'the form is open');
    like($late->{body},
        qr/name="downloads" value="7".*name="days" value="3".*value="Sorry &(?:quot|#34);/s,
        'with what was typed');
    unlike($late->{body}, qr/<script>alert/, 'as text');
    is(scalar(() = $late->{body} =~ /<details open>/g), 1, 'and no other');
    is(access()->{assignments}[0]{files}[0]{download_limit}, $limit, 'nothing was done');
    is(access()->{events}[0]{user}, 'staff', 'nor noted');
    is(submit('owner', $late, "$path/grant", { downloads => 7, days => 3 })->{status}, 303,
        'who has seen it may do it');
    is(access()->{assignments}[0]{files}[0]{download_limit}, $limit + 7, 'and does');

    for my $action (qw(revoke resend rotate-link)) {
        my $stale = visit('owner', 'GET', $path);
        is(submit('staff', visit('staff', 'GET', $path), "$path/grant",
            { downloads => 1, days => 0 })->{status}, 303, 'one changes it');
        my $told = submit('owner', $stale, "$path/$action",
            { to => 'third@example.com', reason => 'late' });
        is($told->{status}, 412, "$action: the other is told");
        like($told->{body}, $action eq 'resend' ? qr/value="third\@example\.com"/
            : $action eq 'revoke' ? qr/value="late"/ : qr/<details open>\s*<summary>Replace/,
            "$action: with what was typed");
    }
    my $german = visit('owner', 'GET', $path);
    api('POST', '/orders/7001/grant-downloads', key => $shop->{token}, json => { downloads => 1 });
    like(submit('owner', $german, "$path/revoke", {}, 'accept-language' => 'de')->{body},
        qr/role="alert">\s*Jemand hat das ge\S+ndert, seit diese Seite/,
        'after a change by the API, in German');

    my $before_email = visit('owner', 'GET', $path);
    sql("UPDATE orders SET updated_at = updated_at + 1000 WHERE shop_id = $id "
        . "AND storefront_order_id = '7001'");
    is(submit('owner', $before_email, "$path/revoke", {})->{status}, 303,
        'what becomes of an email stops nobody');
    is(press('restore')->{status}, 303, 'it is restored');

    my %page = map { $_ => visit($_, 'GET', $path) } qw(staff owner);
    my @both = parallel(2, sub {
        my $user = (qw(staff owner))[ $_[0] ];
        return submit($user, $page{$user}, "$path/grant", { downloads => 1, days => 0 })->{status};
    });
    is(join(' ', sort @both), '303 412',
        'of two at the same moment one does it, and the other is told');
}

# --- who may, and how often ----------------------------------------------------------------------

is(submit('reader', own_form('reader', 'read-only', $path), "$path/revoke", {})->{status}, 403,
    'a reader may press nothing');
is(access()->{access}{status}, 'active', 'and changes nothing');
my $had  = access()->{assignments}[0]{files}[0]{download_limit};
my $form = visit('staff', 'GET', $path);
is(submit('staff', $form, "$path/grant", { downloads => 1, days => 0 })->{status}, 303,
    'a button takes effect');
is(submit('staff', $form, "$path/grant", { downloads => 1, days => 0 })->{status}, 409, 'once');
is(access()->{assignments}[0]{files}[0]{download_limit}, $had + 1, 'and not twice');

$server->stop;
done_testing;
