# The titles of products and variants, and the note to a product's buyers: who gives them, what
# an order keeps of them, and that customers and staff read them in place of numbers.
#
# both: each database joins the titles of a product and its variant, and writes those of events, in
# a statement of its own
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $XSS    = '<b>"&';
my $NOTE   = "First <unpack>.\r\nThen read\tme.\n";
my $server = settings_server();
my $shop   = new_shop();
my $file   = ready_asset($shop, 'brushes.zip', 'the brushes');
my $tag    = post('/license-key-tags', { name => 'Keys' })->{json}{id};
post("/license-key-tags/$tag/keys", { keys => [ 'KEY-1', 'KEY-2' ] });
told('member', 'add', 'reader', 'read-only', '--shop', $shop->{shop_id});

sub post { my ($path, $json) = @_; return api('POST', $path, key => $shop->{token}, json => $json) }

sub named
{
    my (%members) = @_;
    return post('/mappings', { storefront_product_id => product(), %members });
}

# The titles of an order's items.
sub titles { my ($reply) = @_; return [ map { $_->{title} } @{ $reply->{json}{assignments} } ] }

# --- given to a mapping --------------------------------------------------------------------------

my $first = named(title => "  Brushes $XSS ", note => $NOTE, storefront_variant_ids => [ '7', '8' ],
    variant_titles => { 7 => "Large $XSS" }, file_ids => [ $file->{id} ],
    license_key_tag_ids => [$tag]);
is_answer($first, 201, 'a mapping with a title, a note, and the title of a variant');
my %mapping = %{ $first->{json} };
my $seven   = 'gid://storefront/ProductVariant/7';
is($mapping{title}, "Brushes $XSS", 'the title is trimmed');
is($mapping{note}, "First <unpack>.\nThen read\tme.", 'the note has its lines');
is_deeply($mapping{variant_titles}, { $seven => "Large $XSS" },
    'a variant by its number has a title, and the other has none');
is_deeply(api('GET', "/mappings/$mapping{id}", key => $shop->{token})->{json}, \%mapping,
    'reading it shows the same');
my $longest = "\x{4e2d}" x 255;
is(named(title => $longest, note => "\x{4e2d}" x 1000)->{status}, 201, 'the longest');
unstored();
refused(named(title => "${longest}x", note => 'x' x 1001), 400, 'invalid_request', 'longer ones',
    '/title', '/note');
refused(named(title => "a\nb", note => "a\x01b", storefront_variant_ids => ['7'],
        variant_titles => { 7 => "${longest}x", 8 => 'x' }),
    400, 'invalid_request', 'a title of two lines, a control character, another variant',
    '/title', '/note', '/variant_titles/7', '/variant_titles/8');

sub changed
{
    my (%members) = @_;
    return api('PATCH', "/mappings/$mapping{id}", key => $shop->{token}, json => \%members)->{json};
}

is_deeply(changed(storefront_variant_ids => [ '9', '7' ])->{variant_titles},
    { $seven => "Large $XSS" }, 'a variant that stays keeps its title');

# --- kept by an order ----------------------------------------------------------------------------

my $product = $mapping{storefront_product_id};
my $plain   = ready_asset($shop, 'plain.zip', 'of a product without a title');
my $bare    = named(file_ids => [ $plain->{id} ])->{json}{storefront_product_id};
my ($number) = $bare =~ /(\d+)\z/;
my $id      = digits();
my $after   = api('GET', '/events?after=latest', key => $shop->{token})->{json}{next_after};
my @items   = ({ storefront_product_id => $product, storefront_variant_id => '7' },
    { storefront_product_id => $product, storefront_variant_id => '9' },
    { storefront_product_id => $bare });
my $order   = assign($shop, $id, \@items, send_email => JSON::PP::true(),
    customer => { email => 'titles@buyer.example' });
is_answer($order, 201, 'an order');
my @named = ("Brushes $XSS, Large $XSS", "Brushes $XSS", "Product $number");
is_deeply(titles($order), \@named,
    "the title and that of the variant; the title alone; the product's number");
my $event = wait_for(sub {
    my $json = api('GET', "/events?after=$after", key => $shop->{token})->{json};
    my ($found) = grep { $_->{type} eq 'order.assigned' } @{ $json->{data} };
    $found;
}, 60, 'order.assigned');
is($event->{data}{title}, $named[0], 'its event has the title of the first');

changed(title => 'Newer', variant_titles => { 7 => 'Huge' });
is_deeply(titles(assign($shop, $id, [ { %{ $items[0] }, title => 'Late' } ])), \@named,
    'what was assigned keeps its title');
is_deeply(titles(api('GET', "/orders/$id", key => $shop->{token})), \@named,
    'when it is read, too');
is_deeply(titles(assign($shop, digits(), [ { %{ $items[0] }, title => 'From the storefront' } ])),
    ['From the storefront'], "an item's own title comes first");
unstored();
refused(assign($shop, digits(), [ { %{ $items[0] }, title => "${longest}x" } ]), 400,
    'invalid_request', 'an item with a longer title', '/items/0/title');

# --- read by customers and staff -----------------------------------------------------------------

my $html = page('GET', $order->{json}{download_page_url} =~ s{^https?://[^/]+}{}r)->{body};
like($html, qr{<h2><bdi>Brushes &lt;b&gt;&quot;&amp;, Large [^<]*</bdi></h2>},
    'a product has a heading');
like($html, qr{<h2><bdi>Brushes &lt;b&gt;&quot;&amp;</bdi></h2>},
    'and so has another of its variants');
like($html, qr{First &lt;unpack&gt;\.<br>Then read\tme\.<br>}, 'with its line ends, escaped');
is(scalar(() = $html =~ /First &lt;unpack/g), 2, 'for each of them');
my @sections = $html =~ m{<section>(.*?)</section>}sg;
is(@sections, 3, 'each item has a section');
like($sections[0], qr{KEY-1</code>.*<bdi>brushes\.zip}s, 'with its keys and files');
like($sections[1], qr{KEY-2</code>.*<bdi>brushes\.zip}s, 'of its own');
like($sections[2], qr{<h2><bdi>plain\.zip</bdi></h2>},
    'a number, which tells a customer nothing, is not shown, but the title of a file');
my $mail = wait_mail('titles@buyer.example', 60);
like($mail->{text},
    qr/^\Q$named[0]\E\r?\n\r?\nFirst <unpack>\.\r?\nThen read\tme\.\r?$/m,
    'the email has the note as text');
like($mail->{text}, qr/^\QBrushes $XSS\E(?:(?!^Brushes).)*^- KEY-1\r?$/ms,
    'and a key below its product');
like($mail->{html}, qr{First &lt;unpack&gt;\.<br>Then read}, 'and the note as HTML');

my $single = page('GET', assign($shop, digits(), [ $items[0] ])->{json}{download_page_url}
        =~ s{^https?://[^/]+}{}r)->{body};
is(scalar(() = $single =~ /<section>/g), 1, 'a single product has a section, too');

my $shown = visit('reader', 'GET', "/$shop->{shop_id}/orders/$id")->{body};
like($shown, qr{<h3><bdi>Brushes &lt;b&gt;&quot;&amp;, Large}, 'staff read the title');
like($shown, qr{Product \d+, variant 7 &middot;}, 'and below it the numbers');
like($shown, qr{<h3>Product $number</h3>}, 'or the number alone');
unlike($shown, qr{gid://}, 'and no gid');

done_testing();
