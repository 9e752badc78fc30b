# What one customer may ask for in a minute (contract, section 5), and that honest ones don't
# notice: a download manager with 16 connections, many customers behind one address.
#
# once: rates are counted in memory
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Customer;
use MDL::Instance;
use MDL::Limits;
use MDL::Metering qw(in_time $CROWDED);
use MDL::Test;
use Test::More;

use constant { PAGES => 20, PARTS => 60, MB => 1024 * 1024 };

my $server = MDL::Instance->new(extra => <<"END")->start;
DownloadsRateLimit On
DownloadsRateBurst 100000
DownloadsRateRefill 100000
DownloadsRatePages @{[PAGES]}
DownloadsRateParts @{[PARTS]}
DownloadsRateNetwork 5
END
my $shop  = new_shop();
my $small = new_file($shop, 1000);

sub has_to_wait
{
    my ($reply, $what) = @_;
    is $reply->{status}, 429, "$what gets 429";
    like $reply->{headers}{'retry-after'}, qr/^[1-9]\d*\z/, 'with Retry-After';
    return;
}

subtest 'a page can be opened so often, and says in a sentence when that was too often' => sub {
    my $buy = buy($shop, $small);
    my $link = link_of($buy);
    my $began = time;
    my @replies = map { page('GET', $buy->{path}) } 1 .. PAGES + 10;
    cmp_ok count(200, @replies), '>=', PAGES - 1, 'as many as a minute allows, with the button';
    cmp_ok count(200, @replies), '<=', PAGES + back(PAGES, $began),
        'and those that came back meanwhile';
    my $reply = limited(sub { page('GET', $buy->{path}) });
    has_to_wait($reply, 'a further view');
    like $reply->{headers}{'content-type'}, qr{^text/html}, 'as a page';
    like $reply->{body}, qr/Please wait a moment/, 'in English';
    $reply = limited(sub { page('GET', $buy->{path}, headers => { 'Accept-Language' => 'de' }) });
    like $reply->{body}, qr/Bitte warten Sie einen Moment/, 'or in German';
    has_to_wait(limited(sub { page('POST', $buy->{path}, form => { file => $buy->{button} }) }),
        'its button');
    is limited(sub { page('HEAD', $buy->{path}) })->{status}, 429, 'HEAD is no other way';
    is page('GET', $link)->{status}, 200, 'its files are counted apart';
    is page('GET', buy($shop, $small)->{path})->{status}, 200,
        'and so is the page of another order';
};

subtest 'visits of links are views of their page' => sub {
    my $link = api('POST', '/links', key => $shop->{token},
        json => { title => 'A link', url => 'https://example.com/' });
    my $product = 'gid://shop/Product/99';
    api('POST', '/mappings', key => $shop->{token},
        json => { storefront_product_id => $product, link_ids => [ $link->{json}{id} ] });
    my $order = api('POST', '/orders/990/assignments', key => $shop->{token},
        json => { storefront_customer_id => '99',
            items => [ { storefront_product_id => $product } ] });
    my ($page)  = $order->{json}{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    my ($visit) = page('GET', $page)->{body} =~ m{href="[^"]*(/d/l/[^"]+)"}
        or die "no link on the page\n";
    my @replies = map { page('GET', $visit) } 1 .. PAGES + 10;
    cmp_ok count(303, @replies), '>=', PAGES - 1, 'as many as a minute allows';
    has_to_wait(limited(sub { page('GET', $visit) }), 'a further visit');
    has_to_wait(limited(sub { page('GET', $page) }), 'the page');
};

subtest 'files can be asked for so often' => sub {
    my $buy = buy($shop, $small, limit => 100);
    my $path = link_of($buy);
    my $second = link_of($buy);
    my $began = time;
    my @replies = map { page('GET', $path, headers => { Range => 'bytes=0-0' }) } 1 .. PARTS + 20;
    cmp_ok count(206, @replies), '>=', PARTS, 'as many parts as a minute allows';
    cmp_ok count(206, @replies), '<=', PARTS + back(PARTS, $began),
        'and those that came back meanwhile';
    my $reply = limited(sub { page('GET', $second, headers => { Range => 'bytes=0-0' }) });
    has_to_wait($reply, 'a further one, by another link of the order,');
    like $reply->{body}, qr/<h1>The files were requested too often</, 'which says so';
    like limited(sub { page('GET', $second, headers => { 'Accept-Language' => 'fr' }) })->{body},
        qr/<h1>Les fichiers ont/, 'in the browser\'s language';
    is $reply->{headers}{etag}, undef, 'without the entity tag of the file';
    is limited(sub { page('HEAD', $path) })->{status}, 429, 'HEAD is no other way';
    is page('GET', $buy->{path})->{status}, 200, 'its page is counted apart';
    is page('GET', link_of(buy($shop, $small)))->{status}, 200,
        'and so are the files of another order';
};

subtest 'parts of a large file are free' => sub {
    my $large = new_file($shop, 32 * MB);
    my $buy   = buy($shop, $large);
    my $path  = link_of($buy);
    # A part's token comes back once it is settled, which is late on a busy machine.
    my @statuses = map {
        my $turn = $_;
        my @some = parallel(8, sub {
            my $from = (8 * ($turn % 4) + $_[0]) * MB;
            return page('GET', $path,
                headers => { Range => sprintf 'bytes=%d-%d', $from, $from + MB - 1 })->{status};
        });
        wait_for(sub { account($buy)->{sessions}[0]{bytes_delivered} >= 8 * ($turn + 1) * MB }, 60,
            'the parts to be settled');
        @some;
    } 0 .. 10;
    is scalar(grep { $_ == 206 } @statuses), 88, 'each of 88 parts of 1 MiB is sent';
    is account($buy)->{used}, 1, 'for one download';
};

# Maps a product to a ZIP of two large files.
sub large_archive
{
    my @files   = map { new_file($shop, 24 * MB) } 1 .. 2;
    my $product = 'gid://shop/Product/98';
    api('POST', '/mappings', key => $shop->{token}, json => { storefront_product_id => $product,
        file_ids => [ map { $_->{id} } @files ], download_type => 'ZIP' });
    return $product;
}

# An order of it, as a customer gets it: { assignment, location }, where the button leads.
sub archive_of
{
    my ($product, $order_id) = @_;
    my $order = api('POST', "/orders/$order_id/assignments", key => $shop->{token},
        json => { storefront_customer_id => '98',
            items => [ { storefront_product_id => $product } ] });
    my ($page) = $order->{json}{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    my $id     = $order->{json}{assignments}[0]{id};
    return { assignment => $id,
        location => page('POST', $page, form => { zip => $id })->{headers}{location} };
}

subtest 'a download manager with 16 connections gets a large ZIP' => sub {
    my $product = large_archive();
    my ($number, $whole, $status, $output) = 980;
    my $name = logs_dir() . '/archive.zip';
    in_time($CROWDED, sub {
        my $order = archive_of($product, $number++);
        $whole = page('GET', $order->{location});
        is $whole->{status}, 200, 'a browser gets it in one piece';
        unlink $name;
        my $link = $order->{location};
        $output =
            qx(aria2c -q --no-conf -x16 -s16 -k1M --max-tries=1 -d / -o "$name" "$link" 2>&1);
        $status = $?;
        return $order;
    });
    is $status, 0, 'aria2 gets it in parts' or diag $output;
    is sha256_hex(MDL::Test::slurp($name)), sha256_hex($whole->{body}), 'the same bytes';
};

subtest 'customers behind one address are not in each other\'s way' => sub {
    my @buys = map { buy($shop, $small) } 1 .. 40;
    my @replies = map { my $buy = $_; (map { page('GET', $buy->{path}) } 1 .. 5),
        page('GET', link_of($buy)) } @buys;
    is count(200, @replies), 240,
        '40 orders with five views and a download each, all from one address';
};

$server->stop;
$server->configure(extra => "DownloadsRateLimit On\nDownloadsRatePages 0\nDownloadsRateParts 0\n");
$server->start;

subtest '0: there is no limit' => sub {
    my $buy = buy($shop, $small);
    my $path = link_of($buy);
    is count(200, map { page('GET', $buy->{path}) } 1 .. 150), 150, 'of the page';
    is count(206, map { page('GET', $path, headers => { Range => 'bytes=0-0' }) } 1 .. 650), 650,
        'nor of parts';
};

$server->stop;
done_testing;
