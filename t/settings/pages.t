# Every page of the settings, and what customers open, in each of its states: with nothing, as
# usual, with long names and a thousand rows, with a form that was filled in wrongly.  In four
# languages, what customers open in six, wide, on phones and printed, nothing is cut off,
# axe and html-validate find nothing, and on phones everything is large enough for a thumb.  A page
# or a form without a state here is a failure.
#
#   PICTURES=1               leaves pictures in build/screenshots (make check-pages)
#   LANGUAGES="de fr"  VIEWS="320-light print"  STATES=order     only these; STATES is a pattern
#
# once: the look of the pages does not depend on the database
# long: it opens a thousand pages
use strict;
use warnings;
use utf8;

use File::Path qw(make_path);
use IPC::Open2 qw(open2);
use JSON::PP;
use Test::More;

use MDL::Contract;
use MDL::Maildir;
use MDL::Settings;
use MDL::Target qw(slurp top_dir);
use MDL::Test;

plan skip_all => 'make check-pages takes its time' if !$ENV{PAGES};
binmode Test::More->builder->$_, ':utf8' for qw(output failure_output);

my @languages = split ' ', $ENV{LANGUAGES} || 'en de fr es ja ar';    # ja ar: for customers alone
my %width     = (wide => 1280, 375 => 375, 320 => 320);
my @views     = map {
    my ($name, $scheme) = /^(\w+)-(light|dark)$/ or die "There is no view $_.\n";
    # Contrast depends on the colours alone, all else on the width.
    { name => $_, width => $width{$name}, height => 800, scheme => $scheme,
        words => 1, thumbs => $name ne 'wide', axe => $scheme eq 'light' || $name eq 'wide' };
} grep { $_ ne 'print' } split ' ',
    $ENV{VIEWS} || 'wide-light wide-dark 375-light 375-dark 320-light 320-dark';
my @printed = ({ name => 'print', width => 680, height => 960, scheme => 'dark', media => 'print',
    words => 1, axe => 1 });    # the inner width of a page of A4
my $PRINTED = qr/^customer-(?!find|merge|un)|^order-(?!done)/;
@printed = () if $ENV{VIEWS} && $ENV{VIEWS} !~ /print/;
my $pictures = top_dir() . '/t/logs/screenshots';
make_path($pictures) if $ENV{PICTURES};

# --- what there is --------------------------------------------------------------------------------

my (%pages, %forms);
for my $file (glob top_dir() . '/mod_downloads/settings/*.c') {
    my $source = slurp($file);
    while ($source =~ /^    \{"([^"]*)",((?:[^{}]|\n)*?\.(?:get|post)(?:[^{}]|\n)*)\}/gm) {
        my ($path, $rest) = ($1, $2);
        $pages{$path} = 1 if $rest =~ /\.get = /;
        $forms{$path} = 1 if $rest =~ /\.post = /;
    }
}
cmp_ok(scalar(keys %pages), '>', 30, 'the pages are found in the sources');

# Forms without anything to type, and those whose answer is a file or an email.
my @untyped = map { "{}/$_" } qw(emails/preview/test jobs/{}/retry orders/csv own-emails/ask
    own-emails/notices members/ask members/remove shop/logo/delete files/uploads/{}/complete
    files/uploads/{}/abort keys/{}/revoke webhooks/{}/rotate-secret webhooks/{}/test
    webhooks/{}/resend webhooks/{}/delete license-keys/{}/remove approve suspend unblock),
    (map { "files/{}/$_" } qw(restore retry cancel delete)),
    (map { "orders/{}/$_" } qw(restore approve rotate-link)),
    (map { "products/{}/$_" } qw(remove up delete)),
    (map { "$_/{}/delete" } qw(categories license-keys links packs));

# --- what is shown --------------------------------------------------------------------------------

my $LONG = 'Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnung';
my $HOST = lc(substr $LONG, 0, 30);

my $server = settings_server(extra => "DownloadsLinkLifetime 36000\n"
        . "DownloadsPollInterval 1\n");
my $shop   = new_shop(name => 'Nordlicht Verlag & Töchter');
my $empty  = new_shop(name => 'Leerstand');
my $crowd  = new_shop(name => "$LONG, München");
my %id     = (shop => $shop->{shop_id}, empty => $empty->{shop_id}, crowd => $crowd->{shop_id});
for my $id (values %id) {
    told('member', 'add', @$_, '--shop', $id)
        for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
}
told('member', 'add', 'operator', 'operator');
my $waiting = told('shop', 'add', 'Wartend', 'wartend.example')->{id};
told('member', 'add', 'owner', 'owner', '--shop', $waiting);

sub made
{
    my ($of, $path, $json) = @_;
    my $reply = api('POST', $path, key => $of->{token}, json => $json);
    die "POST $path: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[012]$/;
    return $reply->{json};
}

# Copies a row n times; %set has SQL for the columns that differ, where i counts from 1.
sub copies
{
    my ($table, $id, $n, %set) = @_;
    my @columns = map { $_->[0] } sql("SELECT name FROM pragma_table_info('$table') "
            . "WHERE name <> 'id' ORDER BY cid");
    my $values = join ', ', map { $set{$_} // "t.$_" } @columns;
    sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $n) "
        . "INSERT INTO $table (@{[ join ', ', @columns ]}) SELECT $values FROM $table t, n "
        . "WHERE t.id = $id");
    return;
}

# An order with these products, of a customer with a name, whose email was sent.
my $orders = 70000;
sub order
{
    my ($of, $products, %members) = @_;
    my $number = ++$orders;
    my $reply  = assign($of, $number, $products, storefront_customer_id => "$number",
        name => "A-$number", send_email => JSON::PP::true, customer =>
        { email => "ada$number\@example.com", first_name => 'Ada', last_name => 'Lovelace' },
        %members);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    wait_for(sub { api('GET', "/orders/$number", key => $of->{token})->{json}{email}{status}
            ne 'queued' }, 60, 'the email');
    return $reply->{json};
}

sub customer_of
{
    my ($order) = @_;
    return (sql('SELECT customer_id FROM orders WHERE id = ' . of_order($order)))[0][0];
}

sub number { my ($order) = @_; return $order->{storefront_order_id} }

sub of_order
{
    my ($order) = @_;
    return "(SELECT id FROM orders WHERE storefront_order_id = '@{[ number($order) ]}')";
}

my $category = made($shop, '/categories', { name => 'Bücher' });
my $book     = ready_asset($shop, 'das-ganze-buch.pdf', 'b' x 2_345_678,
    title => 'Das ganze Buch', category_id => $category->{id});
my $audio  = ready_asset($shop, 'hoerbuch.mp3', 'a' x 45_678, title => 'Hörbuch');
my $failed = made($shop, '/assets',
    { source_url => source_url('absent.pdf'), title => 'Leseprobe' });
wait_job($shop, $failed->{job}{id});
my $new = made($shop, "/assets/$book->{id}/versions",
    { source_url => source('das-ganze-buch.pdf', 'B' x 2_345_999) });
wait_job($shop, $new->{job}{id});
my ($running, $queued) = map { made($shop, '/assets',
        { source_url => source_url("absent-$_.pdf"), title => "Unterwegs $_" }) } 1, 2;
for ([ $running, 'running', 30_000_000 ], [ $queued, 'queued', 0 ]) {
    my ($import, $status, $received) = @$_;
    wait_job($shop, $import->{job}{id});
    sql("UPDATE asset SET status = 'pending' WHERE id = $import->{asset}{id}");
    sql("UPDATE job SET status = '$status', bytes_received = $received, bytes_total = 123456789, "
        . "due_at = 4098377580000000, finished_at = NULL, error_code = NULL, error_message = NULL "
        . "WHERE id = '$import->{job}{id}'");
}
my $pack = made($shop, '/packs',
    { name => 'Alles zum Buch', file_ids => [ $book->{id}, $audio->{id} ] });
my $bare = made($shop, '/packs', { name => 'Leer', file_ids => [] });
my $link = made($shop, '/links',
    { title => 'Forum der Leser', url => 'https://forum.example/a?b=c' });
my $stock = made($shop, '/license-key-tags', { name => 'Programm, Vollversion',
    low_stock_threshold => 5 });
my $owed = made($shop, '/license-key-tags', { name => 'Programm, Update' });
made($shop, "/license-key-tags/$stock->{id}/keys",
    { keys => [ map { "AAAA-BBBB-CCCC-DDDD-EEEE-$_" } 1111 .. 1114 ] });
my %product = (
    usual => mapping_of($shop, [ $book->{id}, $audio->{id} ], title => 'Das Buch mit Hörbuch',
        download_limit => 5, access_days => 30, link_ids => [ $link->{id} ],
        pack_ids => [ $pack->{id} ], license_key_tag_ids => [ $stock->{id} ],
        note => 'Viel Freude beim Lesen und beim Hören.'),
    one  => mapping_of($shop, [ $audio->{id} ], title => 'Hörbuch', download_limit => 1),
    moved => mapping_of($shop, [ $audio->{id} ], title => 'Hörbuch, alte Auflage'),
    bare => mapping_of($shop, [], title => 'Noch ohne Inhalt', is_active => JSON::PP::false),
    owed => mapping_of($shop, [], title => 'Update', license_key_tag_ids => [ $owed->{id} ]),
    preparing => mapping_of($shop, [ $running->{asset}{id} ]),
    failed    => mapping_of($shop, [ $failed->{asset}{id} ], title => 'Leseprobe'),
);
my %sold  = map { $_ => $product{$_}{storefront_product_id} } keys %product;
my %order = map { $_ => order($shop, [ $sold{one} ]) }
    qw(held revoked rejected expired used_up bounced refused no_address);
$order{$_} = order($shop, [ $sold{$_} ]) for qw(owed preparing failed moved);
$order{live} = order($shop, [ @sold{qw(usual one)} ]);
held_by_check($shop, number($order{$_})) for qw(held rejected);
made($shop, "/orders/@{[ number($order{revoked}) ]}/revoke",
    { reason => 'Das Geld wurde am 20. November erstattet.' });
made($shop, "/orders/@{[ number($order{rejected}) ]}/reject", { reason => 'Karte gestohlen' });
sql('UPDATE assignment SET expires_at = created_at + 1 WHERE order_id = '
    . of_order($order{expired}));
sql("INSERT INTO allowance (assignment_id, asset_id, downloads_used, downloads_extra) "
    . "VALUES ($order{used_up}{assignments}[0]{id}, $audio->{id}, 1, 0)");
sql("UPDATE email SET bounced_at = sent_at + 1, last_error = '552 5.2.2 Mailbox full' "
    . 'WHERE order_id = ' . of_order($order{bounced}));
sql("UPDATE email SET status = 'failed', sent_at = NULL, last_error = '550 5.1.1 No such user' "
    . 'WHERE order_id = ' . of_order($order{refused}));
sql("UPDATE email SET status = 'no_recipient', recipient = NULL, sent_at = NULL WHERE order_id = "
    . of_order($order{no_address}));
sql('UPDATE customer SET email = NULL WHERE id = (SELECT customer_id FROM orders WHERE id = '
    . of_order($order{no_address}) . ')');

# Members with an address of their own, which one has not confirmed yet. As if they had been sent
# an email just now: the next has all that is asked till then.
told('member', 'add', 'other', 'staff', '--shop', $id{shop});
my %confirms;
for my $user (qw(reader staff other)) {
    submit($user, visit($user, 'GET', "/$id{shop}/own-emails"), "/$id{shop}/own-emails",
        { email => "$user\@home.example" });
    ($confirms{$user}) = grep { m{/c/} } @{ wait_mail("$user\@home.example")->{urls} };
    next if $user eq 'reader';
    page('POST', $confirms{$user});
    sql('INSERT INTO notice (shop_id, user_name, kind, choice, waiting, sent_at) '
        . "VALUES ($id{shop}, '$user', 'help', 'now', 0, @{[ time * 1_000_000 ]})");
}

# What customers have asked the shop: it waits for an answer, or was refused.
sub expires
{
    my ($order) = @_;
    sql('UPDATE assignment SET expires_at = created_at + 1 WHERE order_id = ' . of_order($order));
    return;
}

sub asks_for_help
{
    my ($order) = @_;
    my $reply = page('POST', $order->{download_page_url}, form => { help => 'shop' });
    die "no help: $reply->{status} $reply->{body}\n" if $reply->{status} != 303;
    return $order;
}
$order{$_} = order($shop, [ $sold{one} ]) for qw(help_asked help_refused);
my $answered = order($shop, [ $sold{one} ]);
expires($_) for $answered, @order{qw(help_asked help_refused)};
asks_for_help($_) for $answered, @order{qw(help_asked help_refused rejected)};
sql('UPDATE customer SET email = NULL WHERE id = ' . customer_of($answered));
sql("UPDATE notice SET sent_at = sent_at - 3600000000, due_at = due_at - 3600000000 "
    . "WHERE kind = 'help' AND due_at IS NOT NULL");

# The link by which a member answers.
sub answers
{
    my ($user, $order) = @_;
    my $number = number($order);
    return wait_for(sub { my ($link) = map { $_->{text} =~ /^- Order A-$number, .*\r?\n\s+(\S+)/m }
            mails("$user\@home.example"); $link }, 30, "the link to answer order $number");
}
my %answer_at = map { $_ => answers('staff', $order{$_}) } qw(help_asked help_refused rejected);
$answer_at{answered} = answers('staff', $answered);
$answer_at{other}    = answers('other', $answered);
told('member', 'remove', 'other', '--shop', $id{shop});
my $refused = "/$id{shop}/orders/" . number($order{help_refused});
submit('staff', visit('staff', 'GET', $refused), "$refused/refuse-help",
    { reason => 'Kaufen Sie bitte die neue Auflage.' })->{status} == 303
    or die "The help was not refused.\n";

# A download that counts, one that was stopped, and one that is under way.
sub download
{
    my ($order, $item, $asset) = @_;
    my $reply = page('POST', $order->{download_page_url}, form => { file => "$item-$asset->{id}" });
    die "no link: $reply->{status} $reply->{body}\n" if $reply->{status} != 303;
    page('GET', $reply->{headers}{location});
    return $reply->{headers}{location};
}
my $live = $order{live}{assignments}[0]{id};
my $link_of_file = download($order{live}, $live, $book);
wait_for(sub { @{ api('GET', "/orders/@{[ number($order{live}) ]}", key => $shop->{token})
        ->{json}{downloads} } == 1 }, 20, 'the download');

# A file whose buyers were told of a new version.
my $paper = ready_asset($shop, 'zeitschrift.pdf', 'z' x 100_000, title => 'Zeitschrift');
$order{told} = order($shop, [ mapping_of($shop, [ $paper->{id} ])->{storefront_product_id} ]);
my $issue = made($shop, "/assets/$paper->{id}/versions", { notify => JSON::PP::true,
    note => "Mit Register.\nKapitel 7 ist neu.", source_url => source('zeitschrift.pdf', 'Z') });
my $unsubscribes = wait_for(sub { my ($link) = map { grep { m{/u/} } @{ $_->{urls} } }
        mails('ada' . number($order{told})); $link }, 30, 'the email about the version');

# An import that staff cancelled, and buyers who were given another product.
sub cancelled
{
    my $import = made($shop, '/assets', { source_url => source_url('absent-3.pdf') });
    wait_job($shop, $import->{job}{id});
    sql("UPDATE asset SET status = 'failed' WHERE id = $import->{asset}{id}");
    sql("UPDATE job SET status = 'cancelled' WHERE id = '$import->{job}{id}'");
    return $import->{asset};
}
my $cancelled = cancelled();
my $moves     = "/$id{shop}/products/$product{moved}{id}/buyers";
submit('staff', visit('staff', 'GET', "$moves?to=$product{owed}{id}"), $moves,
    { to => $product{owed}{id} })->{status} == 303 or die "The buyers were not moved.\n";
wait_for(sub { (sql("SELECT count(*) FROM job WHERE type = 'move_buyers' "
        . "AND status IN ('queued', 'running')"))[0][0] == 0 }, 30, 'the move');

my %hook = map { $_ => made($shop, '/webhook-endpoints', { url => source_url("hook/$_"),
    description => 'Warenwirtschaft' })->{id} } qw(failing off quiet);
made($shop, "/webhook-endpoints/$hook{failing}/test", {}) for 1 .. 3;
wait_for(sub { (sql("SELECT count(*) FROM webhook_delivery WHERE endpoint_id = $hook{failing} "
        . 'AND attempts > 0'))[0][0] >= 3 }, 60, 'the answers');
sql("UPDATE webhook_endpoint SET failing_since = updated_at WHERE id = $hook{failing}");
sql("UPDATE webhook_endpoint SET is_active = 0, failing_since = updated_at, "
    . "disabled_at = updated_at WHERE id = $hook{off}");
told('member', 'add', 'bea@nordlicht.example', 'owner', '--shop', $id{shop});
my $key = told('key', 'list', $id{shop})->[0]{id};

sub begun
{
    my ($of) = @_;
    my $begun = submit('staff', visit('staff', 'GET', "/$of/files/uploads"), "/$of/files/uploads",
        { filename => 'part.bin', size => 10 });
    return $begun->{headers}{location} =~ m{/(upl_\w+)$} ? $1 : die "no upload: $begun->{body}\n";
}
my $upload = begun($id{shop});

# The crowded shop: a thousand of each, with long names.
my $many = ready_asset($crowd, 'viele.bin', 'v' x 1000, title => $LONG);
copies('asset', $many->{id}, 1000, filename => "'$LONG-' || i || '.pdf'", title => "'$LONG ' || i");
my $of_crowd = made($crowd, '/categories', { name => $LONG });
copies('category', $of_crowd->{id}, 1000, name => "'$LONG ' || i");
my $pack_of_crowd = made($crowd, '/packs', { name => $LONG, file_ids => [ map { $_->[0] + 0 }
    sql("SELECT id FROM asset WHERE shop_id = $id{crowd} ORDER BY id LIMIT 200") ] });
copies('pack', $pack_of_crowd->{id}, 1000, name => "'$LONG ' || i");
my $link_of_crowd = made($crowd, '/links',
    { title => $LONG, url => "https://$HOST.example/" . $HOST x 5 });
copies('link', $link_of_crowd->{id}, 1000, title => "'$LONG ' || i");
my $tag_of_crowd = made($crowd, '/license-key-tags',
    { name => $LONG, low_stock_threshold => 2000 });
copies('license_key_tag', $tag_of_crowd->{id}, 1000, name => "'$LONG ' || i");
made($crowd, "/license-key-tags/$tag_of_crowd->{id}/keys",
    { keys => [ map { "$_-" . 'ABCDEFGHIJKLMNOPQRSTUVWXYZ' x 3 } 1 .. 1000 ] });
my $sold_by_crowd = mapping_of($crowd, [ $many->{id} ], title => "$LONG, 2. Auflage",
    pack_ids => [ $pack_of_crowd->{id} ], link_ids => [ $link_of_crowd->{id} ],
    license_key_tag_ids => [ $tag_of_crowd->{id} ], note => "$LONG " x 10);
copies('mapping', $sold_by_crowd->{id}, 1000,
    storefront_product_id => "'gid://storefront/Product/9' || (100000 + i)");
my $order_of_crowd = order($crowd,
    [ { storefront_product_id => $sold_by_crowd->{storefront_product_id}, quantity => 100 } ],
    customer => { email => "$HOST\@$HOST.example", first_name => $LONG, last_name => $LONG });
copies('orders', of_order($order_of_crowd), 1000,
    storefront_order_id => "'18446744073709' || (100000 + i)",
    page_id => "'page' || i", name => "substr('#$LONG', 1, 40) || i",
    access_status => "CASE i % 5 WHEN 0 THEN 'held' WHEN 1 THEN 'revoked' ELSE 'active' END");
copies('email', "(SELECT id FROM email WHERE order_id = " . of_order($order_of_crowd) . ')', 1000,
    message_id => "'message-' || i", bounced_at => 't.created_at',
    last_error => "'552 5.2.2 Mailbox full'");
copies('audit', "(SELECT max(id) FROM audit WHERE shop_id = $id{crowd})", 1000,
    detail => "'$LONG'");
told('member', 'add', "kollegin$_\@$HOST.example", 'staff', '--shop', $id{crowd}) for 1 .. 5;
my $today = int(time / 86400);
for my $kind (0 .. 3) {
    my $unit = $kind == 2 ? 10**9 : 100;
    sql('INSERT OR REPLACE INTO day_count (shop_id, day, kind, n) VALUES ' . join ', ',
        map { my $id = $_; map { "($id, $today - $_, $kind, $_ * 7 % 11 * $unit)" } 0 .. 29 }
            @id{qw(shop crowd)});
}

# --- the states -----------------------------------------------------------------------------------

# [ name, user, address, { action, values }, { agent, before, after, status } ]; the user is undef
# for a customer, and "" for staff who need not sign in. before and after surround the look.
my (@states, %visited);

# The route of an address.
sub route
{
    my ($path) = @_;
    my ($bare) = $path =~ m{^/([^?]*)};
    my @fit = grep { my $pattern = quotemeta =~ s/\\\{\\\}/[^\/]+/gr; $bare =~ /^$pattern$/ }
        keys %pages, keys %forms;
    # Of orders/new and orders/{} the first.
    return (sort { $a =~ tr/{// <=> $b =~ tr/{// } @fit)[0] // $bare;
}

# A page as a user sees it.
sub shown
{
    my ($name, $user, $path) = @_;
    $visited{ route($path) } = 1;
    push @states, [ $name, $user, origin() . "/settings$path" ];
    return;
}

# The answer to a form that was filled in wrongly; the form is on the page at $path.
sub wrong
{
    my ($user, $path, $action, %values) = @_;
    $visited{ 'POST ' . route($action) } = 1;
    my $name = 'wrong-' . route($action) =~ s/^\{\}\///r =~ s/\{\}/one/gr =~ tr{/}{-}r;
    $name .= '-' . join '-', sort keys %values if grep { $_->[0] eq $name } @states;
    push @states, [ $name, $user, origin() . "/settings$path",
        { action => "/settings$action", values => \%values } ];
    return;
}

my $in = "/$id{shop}";
for my $which (qw(empty shop crowd)) {
    my $at = "/$id{$which}";
    shown("$which-overview", 'owner', "$at/");
    shown("$which-$_",       'owner', "$at/$_")
        for qw(keys members webhooks audit shop own-emails);
    shown("$which-" . tr{/}{-}r, 'staff', "$at/$_")
        for qw(orders orders/new files files/uploads packs links categories products license-keys
        emails search);
}
my $live_order = 'orders/' . number($order{live});
shown("reader-$_->[0]", 'reader', "$in/$_->[1]") for [ overview => '' ],
    [ order => $live_order ], [ file => "files/$book->{id}" ],
    [ product => "products/$product{usual}{id}" ], [ keys => 'keys' ],
    [ webhook => "webhooks/$hook{failing}" ], [ stock => "license-keys/$stock->{id}" ];
shown("order-$_", 'staff', "$in/orders/" . number($order{$_})) for sort keys %order;
shown('order-crowd', 'staff', "/$id{crowd}/orders/" . number($order_of_crowd));
shown("order-done-$_", 'staff', "$in/$live_order?done=$_")
    for qw(order_granted email_resent link_rotated);
shown('order-done-in-vain', 'staff',
    "$in/orders/@{[ number($order{used_up}) ]}?done=order_granted");
shown('order-evidence', 'staff', "$in/$live_order/evidence");
shown('order-evidence-crowd', 'staff',
    "/$id{crowd}/orders/" . number($order_of_crowd) . '/evidence');
my $merge = "$in/customers/" . customer_of($order{bounced}) . '/merge';
my $merge_of_crowd = "/$id{crowd}/customers/" . customer_of($order_of_crowd) . '/merge';
shown('merge-from-order', 'staff', "$merge?order=" . number($order{bounced}));
shown('orders-none-found', 'staff', "$in/orders?q=nobody%40example.com");
shown('file-done-told', 'staff', "$in/files/$book->{id}?done=buyers_told");
shown('customer-merge',       'staff', $merge);
shown('customer-merge-found', 'staff', "$merge?q=ada");
shown('customer-merge-none',  'staff', "$merge?q=nobody");
shown('customer-merge-done',  'staff', "$merge?done=customer_merged");
shown('customer-merge-crowd', 'staff', "$merge_of_crowd?q=$HOST");
shown('buyers',        'staff', "$in/products/$product{usual}{id}/buyers");
shown('buyers-found',  'staff', "$in/products/$product{usual}{id}/buyers?q=Leseprobe");
shown('buyers-none',   'staff', "$in/products/$product{usual}{id}/buyers?q=none");
shown('buyers-chosen', 'staff',
    "$in/products/$product{usual}{id}/buyers?to=$product{owed}{id}");
shown('buyers-moved', 'staff', "$moves?done=move_begun");
shown('buyers-crowd', 'staff', "/$id{crowd}/products/$sold_by_crowd->{id}/buyers?q=Donau");
shown('orders-help', 'staff', "$in/orders?attention=help");
shown('orders-none', 'staff', "$in/orders?q=none&state=held");
shown('search-found', 'staff', "$in/search?q=ada");
shown('search-crowd', 'staff', "/$id{crowd}/search?q=donaudampf");
shown('search-none', 'staff', "$in/search?q=none");
shown("file-$_->[0]", 'staff', "$in/files/$_->[1]") for [ usual => $book->{id} ],
    [ failed => $failed->{asset}{id} ], [ running => $running->{asset}{id} ],
    [ queued => $queued->{asset}{id} ], [ cancelled => $cancelled->{id} ];
shown("crowd-$_->[0]", 'staff', "/$id{crowd}/$_->[1]") for [ file => "files/$many->{id}" ],
    [ pack => "packs/$pack_of_crowd->{id}" ], [ link => "links/$link_of_crowd->{id}" ],
    [ category => "categories/$of_crowd->{id}" ], [ stock => "license-keys/$tag_of_crowd->{id}" ],
    [ product => "products/$sold_by_crowd->{id}" ],
    [ 'product-delete', "products/$sold_by_crowd->{id}/delete" ];
shown('upload', 'staff', "$in/files/uploads/$upload");
shown("pack-$_->[0]", 'staff', "$in/packs/$_->[1]{id}") for [ usual => $pack ], [ empty => $bare ];
shown('link',         'staff', "$in/links/$link->{id}");
shown('category',     'staff', "$in/categories/$category->{id}");
shown("stock-$_->[0]", 'staff', "$in/license-keys/$_->[1]{id}")
    for [ usual => $stock ], [ owed => $owed ];
shown("product-$_", 'staff', "$in/products/$product{$_}{id}") for qw(usual bare owed failed);
shown('product-delete', 'staff', "$in/products/$product{usual}{id}/delete");
shown('email-preview', 'staff', "$in/emails/preview");
$visited{'{}/emails/preview/html'} = 1;    # the frame in it, where a policy lets no axe run
shown('emails-bounced', 'staff', "$in/emails?status=bounced");
shown('emails-none',    'staff', "$in/emails?status=held");
shown('key-revoke',     'owner', "$in/keys/$key/revoke");
shown("webhook-$_", 'owner', "$in/webhooks/$hook{$_}") for sort keys %hook;
shown('webhook-delete', 'owner', "$in/webhooks/$hook{off}/delete");
shown('shop-preview',   'owner', "$in/shop/preview");
shown('audit-none',     'owner', "$in/audit?user=nobody");
shown('waiting-overview', 'owner', "/$waiting/");
shown('waiting-keys',     'owner', "/$waiting/keys");
shown("operator-$_->[0]", 'operator', $_->[1]) for [ shops => '/shops' ], [ overview => "$in/" ],
    [ waiting => "/$waiting/" ], [ block => "$in/block" ], [ audit => '/audit' ],
    [ health => '/health' ];
shown('own-shops',   'owner', '/');
shown('sign-out',    'owner', '/sign-out');
shown('not-found',   'owner', "$in/nothing");
shown('no-shop',     'owner', '/99999/');
shown('not-allowed', 'reader', "$in/shop");

wrong('staff', "$in/categories", "$in/categories", name => ' ');
wrong('staff', "$in/categories/$category->{id}", "$in/categories/$category->{id}", name => '');
wrong('staff', "$in/files", "$in/files", source_url => 'file:///etc/passwd');
wrong('staff', "$in/files/$book->{id}", "$in/files/$book->{id}", title => '', filename => 'a/b');
wrong('staff', "$in/files/$book->{id}", "$in/files/$book->{id}/replace", source_url => 'nowhere');
wrong('staff', "$in/files/$audio->{id}", "$in/files/$audio->{id}/replace", notify => '1',
    source_url => source_url('absent.mp3'), note => 'x' x 1001);
wrong('owner', "$in/keys", "$in/keys", name => '');
wrong('staff', "$in/license-keys", "$in/license-keys", name => '');
my $at_stock = "$in/license-keys/$stock->{id}";
wrong('staff', $at_stock, "$at_stock/add",      keys    => 'x' x 600);
wrong('staff', $at_stock, "$at_stock/generate", pattern => '???', count => 'many');
wrong('staff', $at_stock, "$at_stock/find",     key     => 'none');
wrong('staff', $at_stock, "$at_stock/change",   name    => '', threshold => 'x');
wrong('staff', "$in/links", "$in/links", title => 'Forum', url => 'forum');
wrong('staff', "$in/links/$link->{id}", "$in/links/$link->{id}", title => '', url => '');
wrong('owner', "$in/members", "$in/members", user => '', role => 'staff');
wrong('owner', "$in/own-emails", "$in/own-emails", email => 'nowhere');
my $at_order = "$in/$live_order";
wrong('staff', $at_order, "$at_order/revoke", reason    => 'x' x 600);
my $at_help = "$in/orders/" . number($order{help_asked});
wrong('staff', $at_help, "$at_help/refuse-help", reason => 'x' x 600);
wrong('staff', "$merge?q=ada", $merge, into => customer_of($order{bounced}));
my $at_buyers = "$in/products/$product{usual}{id}/buyers";
wrong('staff', "$at_buyers?to=$product{owed}{id}", $at_buyers, to => $product{bare}{id});
my $at_held = "$in/orders/" . number($order{held});
wrong('staff', $at_held,  "$at_held/reject",  reason    => 'x' x 600);
wrong('staff', $at_order, "$at_order/grant",    downloads => 'x', days => '');
wrong('staff', $at_order, "$at_order/resend",   to        => 'nowhere');
wrong('staff', $at_order, "$at_order/quantity", quantity  => 'x');
wrong('staff', $at_order, "$at_order/address",  to        => 'nowhere');
wrong('staff', "$in/orders/new", "$in/orders/new", email => 'nowhere', number => 'x');
wrong('owner', "$in/shop", "$in/shop", name => '', accent => 'gold');
wrong('owner', "$in/shop", "$in/shop/logo");
wrong('staff', "$in/packs", "$in/packs", name => '');
wrong('staff', "$in/packs/$pack->{id}", "$in/packs/$pack->{id}", name => '');
wrong('staff', "$in/packs/$pack->{id}", "$in/packs/$pack->{id}/files", add => '999999');
wrong('staff', "$in/products", "$in/products", product => 'x', title => '');
my $at_product = "$in/products/$product{usual}{id}";
wrong('staff', $at_product, $at_product,        limit => 'x', days => '-1');
wrong('staff', "$at_product?find=Programm", "$at_product/add", item => 'file-999999');
wrong('staff', $at_product, "$at_product/copy", from           => 'x');
wrong('operator', '/shops', '/shops', name => '', domain => 'x');
wrong('operator', "$in/block", "$in/block", reason => '');
wrong('owner', "$in/webhooks", "$in/webhooks", url => 'ftp://x', events => 'some');
wrong('owner', "$in/webhooks/$hook{quiet}", "$in/webhooks/$hook{quiet}", url => 'x');
wrong('staff', "$in/files/uploads", "$in/files/uploads", name => 'x.bin', size => '-1');

# What customers open.
push @states, [ "customer-$_", undef, $order{$_}{download_page_url} ] for sort keys %order;
push @states, [ 'customer-crowd', undef, $order_of_crowd->{download_page_url} ],
    [ 'customer-not-found', undef, "$order{live}{download_page_url}x" ];

# A shop that asks for a declaration, and tells where to withdraw.
my $asks = new_shop(name => 'Nordlicht Akademie');
my $switched = api('PATCH', '/shop', key => $asks->{token}, json =>
    { declaration => JSON::PP::true, withdrawal_url => 'https://shop.example/widerruf' });
die "PATCH /shop: $switched->{body}\n" if $switched->{status} != 200;
told('member', 'add', 'owner', 'owner', '--shop', $asks->{shop_id});
shown('shop-asks', 'owner', "/$asks->{shop_id}/shop");
my $lesson = mapping_of($asks, [ ready_asset($asks, 'lektion.pdf', 'l' x 1000)->{id} ]);
my %asked = map { $_ => order($asks, [ $lesson->{storefront_product_id} ])->{download_page_url} }
    qw(asked declared);
my %declares = (declare => 'yes', begin => 'yes');
page('POST', $asked{declared}, form => { %declares, lose => 'yes' })->{status} == 303
    or die "There was no declaration.\n";
push @states, [ "customer-declaration-$_", undef, $asked{$_} ] for sort keys %asked;
my ($declared_at) = $asked{asked} =~ m{^https?://[^/]+(/.+)$};
push @states, [ 'customer-declaration-half', undef, $asked{asked},
    { action => $declared_at, values => \%declares } ];

# The form to find an order again, and its answers.
my $find = origin() . "/d/find/$shop->{domain}";
push @states, [ 'customer-find', undef, $find ],
    map { my ($name, $email) = @$_; [ "customer-find-$name", undef, $find,
        { action => "/d/find/$shop->{domain}", values => { email => $email } } ] }
        [ sent => 'ada@example.com' ], [ wrong => 'nowhere' ];
push @states, [ 'customer-in-app', undef, $order{live}{download_page_url}, undef,
    { agent => 'Instagram 300' } ];

# A button that was pressed too late.
sub path_of { my ($url) = @_; return $url =~ s{^https?://[^/]+}{}r }

sub pressed
{
    my ($name, $user, $url, $values, %opt) = @_;
    push @states, [ $name, $user, $url, { action => path_of($url), values => $values }, \%opt ];
    return;
}
pressed("customer-pressed-$_", undef, $order{$_}{download_page_url},
    { help => undef, file => "$order{$_}{assignments}[0]{id}-$audio->{id}" })
    for qw(expired revoked used_up);

# Maintenance: who only reads goes on.
my %closed = map { my ($when, $what) = @$_; $when => sub { told('maintenance', $what) } }
    [ before => 'on' ], [ after => 'off' ];
push @states, [ 'customer-closed', undef, $order{live}{download_page_url}, undef, \%closed ],
    [ 'customer-closed-file', undef, $link_of_file, undef, { %closed, status => 503 } ],
    [ 'customer-closed-declaration', undef, $asked{asked}, { action => $declared_at,
        values => { %declares, lose => 'yes' } }, { %closed, status => 503 } ],
    [ 'closed-page', 'staff', origin() . "/settings$in/categories", undef, \%closed ],
    [ 'closed-form', 'staff', origin() . "/settings$in/categories",
        { action => "/settings$in/categories", values => { name => 'Neu' } },
        { %closed, status => 503 } ];

# What leads out of an email: no more emails about versions, an address of staff, and an answer.
sub damaged { my ($url) = @_; return substr($url, 0, -4) . reverse substr $url, -4 }

my %again = (before => sub { sql('DELETE FROM unsubscribed') });
push @states, [ 'customer-unsubscribe', undef, $unsubscribes, undef, \%again ],
    [ 'customer-unsubscribe-unknown', undef, damaged($unsubscribes) ];
pressed('customer-unsubscribe-ended', undef, $unsubscribes, {}, %again);
push @states, [ 'confirm', '', $confirms{reader} ], [ 'confirm-done', '', $confirms{staff} ],
    [ 'confirm-unknown', '', damaged($confirms{reader}) ];

sub asked_before
{
    my ($days, $state) = @_;
    expires($answered);
    sql("UPDATE help_request SET state = '$state', answer = NULL, decided_by = NULL, decided_at = "
        . "NULL, asked_at = @{[ (time - $days * 86400) * 1_000_000 ]} WHERE order_id = "
        . of_order($answered));
    return;
}
my %waits = (before => sub { asked_before(0, 'asked') });
push @states, [ 'help', '', $answer_at{help_asked} ], [ 'help-closed', '', $answer_at{rejected} ],
    [ 'help-was-refused', '', $answer_at{help_refused} ],
    [ 'help-not-allowed', '', $answer_at{other} ],
    [ 'help-unknown', '', damaged($answer_at{other}) ],
    [ 'help-no-address', '', $answer_at{answered}, undef, \%waits ],
    [ 'help-lapsed', '', $answer_at{answered}, undef,
        { before => sub { asked_before(20, 'asked') } } ],
    [ 'help-was-granted', '', $answer_at{answered}, undef,
        { before => sub { asked_before(0, 'granted') } } ];
pressed("help-$_->[0]", '', $answer_at{answered}, $_->[1], %waits)
    for [ granted => { answer => 'extend' } ], [ 'in-vain' => { answer => 'resend' } ],
    [ refused => { answer => 'refuse', reason => 'Kaufen Sie bitte die neue Auflage.' } ];
shown('own-emails-asked',     'reader', "$in/own-emails");
shown('own-emails-confirmed', 'staff',  "$in/own-emails");
shown('file-told',            'staff',  "$in/files/$paper->{id}");

# What shows a secret.
push @states, [ 'key-created', 'owner', origin() . "/settings$in/keys",
    { action => "/settings$in/keys", values => { name => 'Warenwirtschaft', scope => 'full' } } ],
    [ 'webhook-secret', 'owner', origin() . "/settings$in/webhooks",
        { action => "/settings$in/webhooks",
            values => { url => source_url('hook'), events => 'all' } } ];

# --- the browser ----------------------------------------------------------------------------------

my $JSON = JSON::PP->new->utf8;
my $pid  = open2(my $from, my $to, map { top_dir() . "/$_" } 'tools/node',
    't/node/browser-settings.mjs');
$to->autoflush(1);

sub task
{
    my (%task) = @_;
    print $to $JSON->encode(\%task), "\n";
    return $JSON->decode(scalar(<$from>) // '{"failed":"the browser has ended"}');
}

for my $language (@languages) {
    for my $state (grep { !$ENV{STATES} || $_->[0] =~ /$ENV{STATES}/ } @states) {
        my ($name, $user, $url, $form, $opt) = @$state;
        next if $language =~ /^(?:ja|ar)$/ && defined $user;
        my %who = (who => $language, user => $user, language => $language,
            agent => $opt->{agent});
        $opt->{before}->() if $opt->{before};
        my @seen = task(%who, do => 'open', url => $url);
        push @seen, task(%who, do => 'send', %$form) if $form;
        push @seen, task(%who, do => 'look', name => "$language-$name",
            views => [ @views, $name =~ /$PRINTED/ ? @printed : () ],
            $ENV{PICTURES} ? (folder => $pictures) : ());
        $opt->{after}->() if $opt->{after};
        my @complaints = map { @{ $_->{wrong} // [] } } @seen;
        my $last = $seen[-1];
        my $status = $last->{status} // 'unknown';
        push @complaints, "the status is $status"
            if $opt->{status} ? $status ne $opt->{status} : $status !~ /^[234]/;
        push @complaints, map { "a space that breaks: $_" } @{ $last->{loose} // [] };
        for my $view (@{ $last->{views} // [] }) {
            push @complaints, map { "$view->{name}: cut off: $_" } @{ $view->{misfits} };
            push @complaints, map { "$view->{name}: broken: $_" } @{ $view->{broken} || [] };
            push @complaints, map { "$view->{name}: too small: $_" } @{ $view->{small} || [] };
            push @complaints, map { "$view->{name}: $_" } @{ $view->{violations} || [] };
        }
        ok(!@complaints, "$name, $language: no complaint") or diag(join "\n", @complaints);
    }
}
close $to;
waitpid $pid, 0;

# t/settings/browser.t has the page to sign in.
is(join(' ', grep { !$visited{$_} && $_ ne 'sign-in' } sort keys %pages), '',
    'no page is forgotten');
my %answers = map { $_ => 1 } @untyped, 'sign-out';
is(join(' ', grep { !$visited{"POST $_"} && !$answers{$_} } sort keys %forms), '',
    'nor is a form');

$server->stop;
done_testing;
