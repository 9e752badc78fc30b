# The OpenAPI document and its page: how they are served, and that the router has exactly the
# operations that the document describes.  openapi.t calls them.
#
# once: the document is a part of the module
use strict;
use warnings;

use Digest::SHA qw(sha256_base64);
use MDL::OpenApi;
use MDL::Test;
use Test::More;

# --- how it is served ----------------------------------------------------------------------------

my $served = api('GET', '/openapi.json');
is($served->{status}, 200, 'the document, without a key');
is($served->{headers}{'cache-control'}, 'no-cache', 'it may be stored, and is asked for again');
like($served->{json}{openapi}, qr/^3\.1\.\d+\z/, 'its version is OpenAPI 3.1');
my $etag = $served->{headers}{etag};
like($etag, qr/^"[0-9a-f]+"\z/, 'it has a strong entity tag');
my $same = api('GET', '/openapi.json', headers => { 'If-None-Match' => $etag });
is("$same->{status} $same->{body}", '304 ', 'with that tag it is not sent again');
is($same->{headers}{etag}, $etag, 'and 304 has the tag too');
fits(operation('getOpenapi'), $same, 'with If-None-Match');
is(api('GET', '/openapi.json', headers => { 'If-None-Match' => '"x"' })->{status}, 200,
    'with another tag it is');
my $head = api('HEAD', '/openapi.json');
is("$head->{status} $head->{body}", '200 ', 'HEAD has no body');
is($head->{headers}{'content-length'}, length $served->{body}, 'but the Content-Length of GET');

# --- the page ------------------------------------------------------------------------------------

my $html = api('GET', '/docs');
is($html->{status}, 200, 'the page, without a key');
is($html->{headers}{'content-type'}, 'text/html; charset=utf-8', 'it is HTML');
is($html->{headers}{'cache-control'}, 'no-cache', 'it may be stored, and is asked for again');
my ($style) = $html->{body} =~ m{<style>(.*?)</style>}s;
my ($script) = $html->{body} =~ m{<script>(.*?)</script>}s;
is($html->{headers}{'content-security-policy'},
    "default-src 'none'; style-src 'sha256-" . sha256_base64($style) . "=';"
    . " script-src 'sha256-" . sha256_base64($script) . "=';"
    . " form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    'it may show its own style and run its own script, and nothing else');
ok($html->{body} !~ /<(?:script[ ]|img|link|iframe|object)\b|\bon\w+=|url\(|\@import/,
    'it needs nothing else');
my $seen = api('GET', '/docs', headers => { 'If-None-Match' => $html->{headers}{etag} });
is("$seen->{status} $seen->{body}", '304 ', 'with its tag it is not sent again');
is(api('HEAD', '/docs')->{headers}{'content-length'}, length $html->{body}, 'HEAD has its length');
my %anchors;
$anchors{$_}++ for $html->{body} =~ / id="([^"]*)"/g;
is(join(' ', grep { $anchors{$_} > 1 } sort keys %anchors), '', 'no anchor is there twice');
is(join(' ', grep { !$anchors{$_} } $html->{body} =~ /href="#([^"]*)"/g), '',
    'each link leads to an anchor');
my $components = document()->{components};
is(join(' ', grep { !$anchors{$_} } (map { $_->{id} } operations(), upload_operations()),
    (map { "schema-$_" } keys %{ $components->{schemas} }),
    (map { "header-$_" } keys %{ $components->{headers} }),
    map { "code-$_" } @{ $components->{schemas}{Error}{properties}{error}{properties}{code}
        {'x-extensible-enum'} }),
    '', 'it has every operation, schema, header and code');

# --- the router and the document -----------------------------------------------------------------

sub source_of
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!";
    local $/;
    return <$in>;
}

my (%routed, @arrays);
for my $path (glob "mod_downloads/{api,upload}/*.c") {
    my $text = source_of($path);
    while ($text =~ /^const mdl_route_t (\w+)\[\] = \{(.*?)^\};/gms) {
        my ($name, $rows) = ($1, $2);
        push @arrays, $name;
        $routed{"$1 $2"} = $name while $rows =~ /^    \{"([A-Z]+)", "([^"]+)"/gm;
    }
}
my %described = map { ("$_->{method} $_->{form}" => 1) } operations();
is(join("\n", grep { !$described{$_} } sort keys %routed), '', 'every route is in the document');
is(join("\n", grep { !$routed{$_} } sort keys %described), '', 'every operation has a route');
my ($table) = source_of('mod_downloads/api/router.c') =~ /\bresources\[\] = \{(.*?)\};/s;
is(join(' ', sort $table =~ /mdl_\w+/g), join(' ', sort @arrays), 'and the router knows them all');

open my $lint, '-|', 'tools/node', 't/node/document.mjs', document_file()
    or die "t/node/document.mjs: $!";
is(join('', <$lint>), '', 'everything has a sentence and an example that is what it says');
close $lint;
is($?, 0, 'everything was looked at');

my %ids;
$ids{ $_->{id} }++ for operations(), upload_operations();
is(join(' ', grep { $ids{$_} > 1 } sort keys %ids), '', 'operation ids are unique');

done_testing();
