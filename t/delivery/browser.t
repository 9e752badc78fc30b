# The customer's page in a real browser, and the page on which staff confirm an address: in every
# state, on a phone, a tablet and a desktop, in English and German.  axe looks at the phone alone,
# in light and dark; with FULL=1 at each, and build/screenshots keeps pictures of all.
#
# once: the look of the page does not depend on the database
# long: it opens a hundred pages
use strict;
use warnings;
use utf8;

use Digest::SHA qw(sha256_hex);
use File::Path qw(make_path);
use JSON::PP;
use Test::More;

use MDL::Contract;
use MDL::Instance;
use MDL::Maildir;
use MDL::Objects;
use MDL::Test;

# The links are made long before the browsers open the last of them.
my $server  = MDL::Instance->new(extra => "DownloadsLinkLifetime 3600\n")->start;
my $shop    = new_shop(name => 'Books & Bytes');
my $folder  = MDL::Target::top_dir() . '/t/logs/screenshots';
my $reason  = "We refunded your payment on 20 November. Thank you for telling us.";
my %paper   = (light => 'rgb(255, 255, 255)', dark => 'rgb(31, 41, 55)');
my @views   = map {
    my ($name, $width, $height) = @$_;
    my $whole = $ENV{FULL} || $name eq 'phone';
    my %size  = (width => $width, height => $height, axe => $whole ? 1 : 0);
    map { { name => "$name-$_", scheme => $_, %size } } 'light', $whole ? 'dark' : ();
} [ phone => 390, 844 ], [ tablet => 768, 1024 ], [ desktop => 1440, 900 ];
make_path($folder) if $ENV{FULL};
sql("UPDATE shop SET email = 'help\@books.example' WHERE id = $shop->{shop_id}");

# --- orders in every state -----------------------------------------------------------------------

sub made
{
    my ($path, $members) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $members);
    $reply->{status} =~ /^20/ or die "$path: $reply->{status} $reply->{body}\n";
    return $reply->{json};
}

# An order of these assets; returns { id, url, assignments, assets }.
sub order
{
    my ($assets, %mapping) = @_;
    my $quantity = delete $mapping{quantity} // 1;
    my $product  = mapping_of($shop, [ map { $_->{id} } @$assets ], %mapping)
        ->{storefront_product_id};
    my $id       = digits();
    my $reply    = assign($shop, $id,
        [ { storefront_product_id => $product, quantity => $quantity } ]);
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my $order = $reply->{json};
    return { id => $id, url => $order->{download_page_url}, assets => $assets,
        assignment => $order->{assignments}[0]{id} };
}

sub act
{
    my ($order, $action, $members) = @_;
    made("/orders/$order->{id}/$action", $members // {});
    return $order;
}

sub set
{
    my ($order, $values) = @_;
    sql("UPDATE orders SET $values WHERE storefront_order_id = '$order->{id}'");
    return $order;
}

# The URL that a file's button redirects to.
sub link_of
{
    my ($order, $asset) = @_;
    my $reply = page('POST', $order->{url},
        form => { file => "$order->{assignment}-$asset->{id}" });
    $reply->{status} == 303 or die "no redirect but $reply->{status}: $reply->{body}\n";
    return $reply->{headers}{location};
}

my $book  = ready_asset($shop, 'the-whole-book-with-a-rather-long-name-2026-final-edition.pdf',
    'b' x 2_345_678,
    title => 'The Whole Book, with a Rather Long Title That Has to Be Broken into Lines');
my $audio = ready_asset($shop, 'audio.mp3', 'a' x 45_678, title => 'Audio');
my $link  = made('/links',
    { title => 'The readers’ forum', url => 'https://forum.example/a?b=c' })->{id};
my $tag   = made('/license-key-tags', { name => 'Keys' })->{id};
made("/license-key-tags/$tag/keys", { keys => ['AAAA-BBBB-CCCC-DDDD-EEEE-FFFF-GGGG-HHHH'] });

sub pending
{
    my ($asset, $status) = @_;
    sql("UPDATE asset SET status = '$status' WHERE id = $asset->{id}");
    return;
}

sub fresh
{
    my ($name) = @_;
    return ready_asset($shop, "$name.bin", "bytes of $name", title => ucfirst $name);
}

my %order = (
    active    => order([ $book, $audio ], download_limit => 5, access_days => 30,
        link_ids => [$link], license_key_tag_ids => [$tag], quantity => 3),
    held      => set(order([$audio]), "access_status = 'held', fraud_decision = 'held'"),
    revoked   => act(order([$audio]), 'revoke', { reason => $reason }),
    rejected  => set(order([$audio]),
        "access_status = 'rejected', access_reason = 'The card was reported as stolen.'"),
    expired   => order([$audio], access_days => 1),
    exhausted => order([$audio], download_limit => 1),
    preparing => order([ fresh('preparing'), $audio ]),
    failed    => order([ fresh('failed') ]),
    empty     => order([]),
    missing   => order([ fresh('missing') ]),
    archives  => order([ $book, $audio ], download_limit => 1),
    terms     => order([ $book, $audio ], access_days => 30, link_ids => [$link]),
);
assign($shop, $order{archives}{id}, [ { storefront_product_id =>
    mapping_of($shop, [ map { $_->{id} } $audio, fresh('score') ])->{storefront_product_id} } ]);
assign($shop, $order{terms}{id}, [ { storefront_product_id =>
    mapping_of($shop, [ $audio->{id} ], download_limit => 1)->{storefront_product_id} } ]);
sql("UPDATE assignment SET expires_at = 4098377580000000 WHERE id = $order{terms}{assignment}");
my %link = map { $_ => link_of($order{$_}, $order{$_}{assets}[0]) }
    qw(active exhausted preparing failed missing);
page('GET', $link{exhausted})->{status} == 200 or die "no download\n";
page('GET', link_of($order{$_}, $audio)) for qw(active archives);
pending($order{preparing}{assets}[0], 'pending');
pending($order{failed}{assets}[0], 'failed');
sql("UPDATE assignment SET expires_at = 1700000000000000 WHERE id = $order{expired}{assignment}");
lose_bytes($order{missing}{assets}[0]);
my ($gone) = $link{active} =~ m{^(.*/f/)};

# An order of products with so many files each.
sub cart
{
    my ($name, @counts) = @_;
    my $n     = 0;
    my @items = map {
        my @ids = map { $n++; fresh("$name-$n")->{id} } 1 .. $_;
        mapping_of($shop, \@ids, title => "Product $name of $_ files")->{storefront_product_id};
    } @counts;
    return { url => assign($shop, digits(), \@items)->{json}{download_page_url} };
}

$order{cart} = cart('cart', 1, 3, 2, 5, 1, 4, 2, 2);
$order{many} = cart('many', 12, 13);

# name, address, status, text expected in English and in German, further members of the request
ctl('member', 'add', 'ada@books.example', 'owner', '--shop', $shop->{shop_id});
my ($confirm) = grep { m{/c/} } @{ wait_mail('ada@books.example')->{urls} };

my @cases = (
    [ 'confirm',         $confirm,     200, qr/Should ada\@books\.example get/,
        qr/Soll ada\@books\.example/ ],
    [ 'confirm-unknown', "${confirm}x", 404, qr/There is no such page/,
        qr/Diese Seite gibt es nicht/ ],
    (map { [ $_->[0], $order{ $_->[0] }{url}, 200, @$_[ 1, 2 ] ] }
        [ 'active',    qr/Trying again costs nothing/,    qr/Ein neuer Versuch kostet nichts/ ],
        [ 'held',      qr/order is under review/,         qr/Bestellung wird geprüft/ ],
        [ 'revoked',   qr/withdrawn.*20 November/s,       qr/zurückgezogen.*20 November/s ],
        [ 'rejected',  qr/not released.*stolen/s,         qr/nicht freigegeben.*stolen/s ],
        [ 'expired',   qr/until 14 November 2023, 22:13/, qr/bis 14\. November 2023, 22:13 Uhr/ ],
        [ 'exhausted', qr/limit of this file is reached/, qr/Limit dieser Datei ist erreicht/ ],
        [ 'archives',  qr/Download all as ZIP \(2\s+files/,
            qr/Alle als ZIP herunterladen \(2\s+Dateien/ ],
        [ 'terms',     qr/Available until 14 November 2099/, qr/Verfügbar bis 14\. November 2099/ ],
        [ 'preparing', qr/file is being prepared/,        qr/wird gerade vorbereitet/ ],
        [ 'failed',    qr/could not be prepared/,         qr/konnte nicht vorbereitet werden/ ],
        [ 'cart',      qr/cart of 5 files/,               qr/5 einzelne Dateien/ ],
        [ 'empty',     qr/nothing to download/,           qr/nichts herunterzuladen/ ]),
    [ 'not-found',      "$order{active}{url}x", 404, qr/no such page/,
        qr/Seite gibt es nicht/ ],
    [ 'wrong-method',   $order{active}{url},    405, qr/can’t be done/,        qr/geht hier nicht/,
        method => 'PUT' ],
    [ 'file-not-found', "${gone}x",             404, qr/no such file/,
        qr/Datei gibt es nicht/ ],
    [ 'file-missing',   $link{missing},         500, qr/missing on our side/,
        qr/fehlt auf unserer Seite/ ],
    [ 'file-preparing', $link{preparing},       409, qr/is being prepared/,
        qr/wird gerade vorbereitet/ ],
);

# --- the browser ---------------------------------------------------------------------------------

# The tasks of the browser, and a function for each that looks at its result.
my (@tasks, @looks);

sub task { my ($task, $look) = @_; push @tasks, $task; push @looks, $look; return }

for my $language ([ 'en-GB', 'en', 3 ], [ 'de-AT', 'de', 4 ]) {
    my ($locale, $tag, $at) = @$language;
    for my $case (@cases) {
        my ($name, $url, $status, undef, undef, %more) = @$case;
        my @named = map { { %$_, name => "$tag-$name-$_->{name}" } } @views;
        $more{folder} = $folder if $ENV{FULL};
        task({ do => 'look', url => $url, language => $locale, views => \@named, %more }, sub {
            my ($seen) = @_;
            subtest "The page is accessible and fits: $name, $tag" => sub {
                is($seen->{status}, $status, "the status is $status");
                is($seen->{language}, $tag, "the language is $tag");
                like($seen->{text}, $case->[$at], "the state's sentence is shown");
                is($seen->{headings}, 1, 'there is one heading of the first level');
                is_deeply($seen->{wrong}, [], 'the browser reports no error');
                is_deeply($seen->{faults}, [], 'and html-validate finds nothing');
                for my $view (@views) {
                    my $looked = shift @{ $seen->{views} // [] } // {};
                    is($looked->{paper}, $paper{ $view->{scheme} },
                        "$view->{name}: its policy allows its own style");
                    is_deeply($looked->{misfits}, [], "$view->{name}: everything fits its width");
                    is_deeply($looked->{violations}, [], "$view->{name}: axe finds no violation")
                        if $view->{axe};
                }
            };
        });
    }
}

my $downloads = logs_dir() . '/downloads';
make_path($downloads);
task({ do => 'press', url => $order{active}{url}, folder => $downloads,
    click => qq(li:has-text("Audio") button.second) }, sub {
    my ($file) = @_;
    is($file->{name}, 'audio.mp3',
        'without JavaScript the button downloads the file under its name');
    is($file->{sha256}, sha256_hex('a' x 45_678), 'with its bytes');
    is($file->{url}, $order{active}{url}, 'and the page stays open');
});
task({ do => 'follow', url => $order{active}{url}, click => 'a:has-text("forum")' }, sub {
    is_deeply(shift, { url => 'https://forum.example/a?b=c', referrer => undef },
        'the link opens without a Referer');
});

task({ do => 'reach', url => $order{cart}{url} }, sub {
    my ($seen) = @_;
    is($seen->{buttons}, 8, 'each of eight products has one primary button');
    cmp_ok($seen->{last}, '<=', 2 * 844, 'the last ends on the second screen of a phone');
    is($seen->{folded}, 6, 'the files of those that have several are folded');
});
task({ do => 'script', url => $order{many}{url}, language => 'de-AT', timezone => 'Asia/Tokyo',
    filter => 'many-9' }, sub {
    my ($seen) = @_;
    like($seen->{title}, qr/\d\d:\d\d Uhr UTC$/, 'without a script a date names its zone');
    unlike($seen->{date}, qr/UTC/, "with it, it is in the reader's");
    is($seen->{shift}, 9, 'which differs by its hours');
    is_deeply($seen->{shown}, ['Many-9'], 'the filter leaves the file that is looked for');
    is($seen->{printed}, 0, 'nothing to press is printed');
});
task({ do => 'script', url => $order{active}{url}, app => 1 }, sub {
    my ($seen) = @_;
    is($seen->{copied}, 'AAAA-BBBB-CCCC-DDDD-EEEE-FFFF-GGGG-HHHH', 'a button copies the key');
    is($seen->{address}, $order{active}{url},
        "in the browser of an app the page shows its address to copy");
});

# Of this task comes another line once the button is there.
task({ do => 'wait', url => $order{preparing}{url}, selector => 'li:has-text("Preparing") button' },
    sub {
    my ($seen, $next) = @_;
    subtest 'The page shows the button of a file by itself once it is ready' => sub {
        my $header = sub { page('GET', $order{preparing}{url})->{headers}{refresh} };
        is($header->(), 10, 'the page is reloaded every 10 seconds');
        is($seen->{before}, 0, 'at first there is no button');
        pending($order{preparing}{assets}[0], 'ready');
        is($next->()->{after}, 1, 'then there is one');
        is($header->(), undef, 'the page is not reloaded any more');
    };
});

open my $out, '-|', 'tools/node', 't/node/browser-page.mjs', encode_json(\@tasks) or die "node: $!";
my $next = sub { decode_json(scalar <$out> // '{}') };
$_->($next->(), $next) for @looks;
ok(close $out, 'the browser ends well');
diag("screenshots: $folder; in the end build/screenshots") if $ENV{FULL};

$server->stop;
done_testing();
