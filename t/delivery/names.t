# Malicious names and non-English names, as the name of a file, title, shop, customer, link or
# reason: all output is well-formed and safe, and keeps the name where possible.
#
# once: the encoding of names does not depend on the database
use strict;
use warnings;
use utf8;

use Encode qw(decode encode);
use File::Path qw(make_path remove_tree);
use IPC::Open2 qw(open2);
use JSON::PP;
use Test::More;

use MDL::Contract;
use MDL::Test;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my $shop = new_shop();

# A label, the name, and the name that the file gets on disk if it differs.
my @names = (
    [ 'harmless',              'manual.pdf' ],
    [ 'Chinese',               '用户手册 第二版.pdf' ],
    [ 'emoji',                 "\x{1F468}\x{200D}\x{1F469}\x{200D}\x{1F467} party \x{1F389}.mp3" ],
    [ 'quotes',                q(it's "the" `one` «two».pdf) ],
    [ '255 bytes',             ('長' x 83) . 'ab.pdf' ],
    [ 'a path',                '../../x.pdf',                      '.._.._x.pdf' ],
    [ 'a Windows path',        '..\\..\\x.pdf',                    '.._.._x.pdf' ],
    [ 'CR LF',                 "a\r\nSet-Cookie: evil=1\r\n\r\n<b>.pdf",
        'a__Set-Cookie: evil=1____<b>.pdf' ],
    [ 'right-to-left override', "invoice\x{202E}fdp.exe",          'invoice_fdp.exe' ],
    [ 'other marks',           "a\x01\x{2066}b\x{200F}c\x{2028}d\x{85}e\x{61C}f\x{FEFF}g.pdf",
        'a__b_c_d_e_f_g.pdf' ],
    [ 'a device',              'CON' ],
    [ 'a device with an ending', 'com1.pdf' ],
    [ 'HTML',                  '<script>alert(1)</script><img src=x onerror=alert(1)>.pdf',
        '<script>alert(1)<_script><img src=x onerror=alert(1)>.pdf' ],
    [ 'an attribute',          '" autofocus onfocus="alert(1).pdf' ],
    [ 'a template',            '{{#shop}}{{{name}}}{{/shop}}.pdf',
        '{{#shop}}{{{name}}}{{_shop}}.pdf' ],
    [ 'escapes',               '%2e%2e%2f&amp;&#0;%0d%0a.pdf' ],
    [ 'header syntax',         q(x"; filename=evil.exe; y=".pdf) ],
    [ 'blanks and dots',       '  .name. ' ],
);

sub quoted { my ($text) = @_; return q(') . encode('UTF-8', $text =~ s/'/''/gr) . q(') }

# An order in which everything has this name, even if the API would refuse it.
sub order_called
{
    my ($name) = @_;
    my $asset = ready_asset($shop, digits() . '.bin', encode('UTF-8', $name));
    my $reply = api('POST', '/links', key => $shop->{token},
        json => { title => 'link', url => 'https://there.example/' });
    my $link  = $reply->{json}{id};
    my $product = mapping_of($shop, [ $asset->{id} ], link_ids => [$link])->{storefront_product_id};
    my $id = digits();
    my $to = "names-$id\@names.example";
    sql("UPDATE shop SET name = " . quoted($name) . " WHERE id = $shop->{shop_id}");
    sql("UPDATE asset SET filename = " . quoted($name) . ", title = " . quoted($name)
        . " WHERE id = $asset->{id}");
    sql("UPDATE link SET title = " . quoted($name) . " WHERE id = $link");
    $reply = assign($shop, $id, [$product], send_email => JSON::PP::true(),
        customer => { email => $to,
        $name =~ /[\x00-\x1f\x7f-\x9f]/
            ? () : (first_name => substr($name, 0, 30), last_name => substr($name, 0, 30)) });
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    return { id => $id, to => $to, url => $reply->{json}{download_page_url},
        file => "$reply->{json}{assignments}[0]{id}-$asset->{id}" };
}

# These pages as an HTML parser sees them.
sub shapes
{
    my (@pages) = @_;
    my $pid = open2(my $out, my $in, 'tools/node', 't/node/html-shape.mjs');
    print $in encode_json([ map { decode('UTF-8', $_) } @pages ]);
    close $in;
    my @shapes = map { decode_json($_) } <$out>;
    waitpid $pid, 0;
    return @shapes;
}

# The lines of a response's head, by the name in lower case.
sub head_of
{
    my ($path) = @_;
    my $answer = raw("GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    my ($head) = split /\r\n\r\n/, $answer, 2;
    my ($status, @lines) = split /\r\n/, $head;
    return ($status, map { /^([\w-]+): (.*)$/ ? (lc $1 => $2) : ("not a header: $_" => '') }
        @lines);
}

my (@pages, @revoked, @presses, %head, %mail);
my $folder = logs_dir() . '/names';

for my $case (@names) {
    my ($what, $name, $saved) = @$case;
    my $order = order_called($name);
    push @pages, page('GET', $order->{url})->{body};
    $order->{mail} = wait_mail($order->{to});
    my $pressed = page('POST', $order->{url}, form => { file => $order->{file} });
    my ($path)  = ($pressed->{headers}{location} // '') =~ m{^http://[^/]+(/.*)$};

    subtest "$what: the headers are safe and have the name" => sub {
        like($path, qr{^/d/f/[\w-]+(?:/[\w.~%-]+)?$}, 'the link has one segment after its token');
        my ($status, %lines) = head_of($path);
        my $disposition = delete $lines{'content-disposition'};
        is($status, 'HTTP/1.1 200 OK', 'the file is sent');
        my ($fallback, $extended) = $disposition
            =~ /^attachment; filename="([^"\\]*)"; filename\*=UTF-8''([\w!#\$&+.^`|~%-]*)$/
            or diag($disposition);
        like($fallback, qr/^[\x20-\x7e]+$/, 'the fallback is printable ASCII');
        unlike($fallback, qr{[/\\"%]}, 'without special characters');
        is(decode('UTF-8', $extended =~ s/%(..)/chr hex $1/ger), $saved // $name,
            'filename* has the full name');
        $head{$what} = join ' ', sort keys %lines;
        is($head{$what}, $head{harmless}, 'it has the usual headers and no others');
    };
    subtest "$what: the name adds no header to the email" => sub {
        $mail{$what} = join ' ', sort keys %{ $order->{mail}{headers} };
        is($mail{$what}, $mail{harmless}, 'it has the usual headers and no others');
        like($order->{mail}{raw}, qr/^[^\x80-\xff]*$/, 'and is ASCII');
    };
    push @presses,
        { do => 'press', url => $order->{url}, folder => "$folder/" . @presses, click => 'button' };
    api('POST', "/orders/$order->{id}/revoke", key => $shop->{token}, json => {});
    my $row = "shop_id = $shop->{shop_id} AND storefront_order_id = '$order->{id}'";
    sql("UPDATE orders SET access_reason = " . quoted($name) . " WHERE $row");
    push @revoked, page('GET', $order->{url})->{body};
    sql("UPDATE orders SET access_status = 'active' WHERE $row");
    sql("UPDATE assignment SET status = 'active' WHERE order_id = (SELECT id FROM orders "
        . "WHERE $row)");
}

for my $kind ([ 'the page', @pages ], [ 'the page of a revoked order', @revoked ]) {
    my ($which, @html) = @$kind;
    my @shapes = shapes(@html);
    subtest "$which is well-formed with every name" => sub {
        for my $i (0 .. $#names) {
            my ($what, $name) = @{ $names[$i] };
            my $shape = $shapes[$i] // {};
            is_deeply($shape->{errors}, [], "$what: a parser finds no error");
            is_deeply($shape->{elements}, $shapes[0]{elements},
                "$what: it has the usual elements and no others");
            my $shown = $name =~ s/\r\n?/\n/gr =~ s/[\x01\x80-\x9f]/\x{fffd}/gr;
            ok(scalar(grep { index($_, $shown) >= 0 } @{ $shape->{texts} }),
                "$what: its text has the name");
        }
    };
}

remove_tree($folder);
make_path($_->{folder}) for @presses;
# or Chromium saves what has other letters than ASCII as "download"
local $ENV{LC_ALL} = 'C.UTF-8';
open my $out, '-|', 'tools/node', 't/node/browser-page.mjs', encode_json(\@presses)
    or die "node: $!";
my @results = map { decode_json($_) } <$out>;
close $out;
subtest 'A browser saves each file under a safe name' => sub {
    for my $i (0 .. $#names) {
        my ($what, $name) = @{ $names[$i] };
        my $result = $results[$i] // {};
        is_deeply($result->{folder}, [ $result->{name} ], "$what: one file, in its folder");
        unlike($result->{name} // '/',
            qr{^\.|[/\\\x00-\x1f\x7f-\x9f\x{202a}-\x{202e}\x{2066}-\x{2069}]},
            "$what: without a path, control characters or direction marks");
    }
    is($results[$_]{name}, $names[$_][1], "$names[$_][0]: the name is unchanged") for 0 .. 1;
};

done_testing();
