# The page of the shop itself: its name, its colour, its emails, and its logo.
#
# once: the form calls what the API calls on both databases
use strict;
use warnings;

use Digest::SHA qw(sha256_base64);
use MDL::Operations qw(png);
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop(name => 'Nordlicht');
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ];

sub shown { return visit('owner', 'GET', "/$id/shop") }

sub shop { return api('GET', '/shop', key => $shop->{token})->{json} }

my %form = (name => 'Nordlicht & Co', accent => '#FFD700', email => '', sender_name => 'Nora',
    reply_to => 'help@nordlicht.example', email_delay => 5, hold_at => 'medium',
    limit => '', days => '', languages => '');

my $page = shown();
is($page->{status}, 200, 'an owner sees the page') or diag($page->{body});
is(visit('staff', 'GET', "/$id/shop")->{status}, 403, 'staff do not');

my $done = submit('owner', $page, "/$id/shop", \%form);
is($done->{status}, 303, 'the owner changes the shop') or diag($done->{body});
my $now = shop();
is_deeply([ @$now{qw(name accent sender_name reply_to email_delay hold_at)} ],
    [ 'Nordlicht & Co', '#ffd700', 'Nora', 'help@nordlicht.example', 5, 'medium' ],
    'and it is changed');
is($now->{declaration}, 0, 'a form without the declaration leaves it off');
submit('owner', shown(), "/$id/shop", { %form, declaration => 'on' });
is(shop()->{declaration}, 1, 'the owner has new orders wait for a declaration');
like(shown()->{body}, qr/value="on" selected/, 'as the page says');
is(shop()->{help}, 'on', 'customers may ask for help');
for (qw(first_by_itself off)) {
    submit('owner', shown(), "/$id/shop", { %form, help => $_ });
    is(shop()->{help}, $_, "until the owner says $_");
    like(shown()->{body}, qr/value="$_" selected/, 'as the page says');
}
like(shown()->{body}, qr/value="Nordlicht &amp; Co"/, 'the page shows it, escaped');

my $wrong = submit('owner', shown(), "/$id/shop", { %form, accent => 'gold', name => 'Typed' });
is($wrong->{status}, 400, 'a colour that is none is refused');
like($wrong->{body}, qr/role="alert".*#1d4ed8/s, 'by a sentence');
like($wrong->{body}, qr/value="Typed"/, 'and what was typed stays');
is(shop()->{name}, 'Nordlicht & Co', 'nothing is changed');
is(submit('owner', shown(), "/$id/shop", { %form, email_delay => 61 })->{status}, 400,
    'nor by a delay of more than an hour');

my $refused = submit('owner', shown(), "/$id/shop", { %form, withdrawal_url => 'http://a.example' },
    'accept-language' => 'de');
is($refused->{status}, 400, 'a page for withdrawals that is not https is refused');
like($refused->{body}, qr/role="alert">Geben Sie die ganze https-Adresse/, 'by a sentence');
submit('owner', shown(), "/$id/shop", { %form, withdrawal_url => 'https://a.example/w?a&b' });
is(shop()->{withdrawal_url}, 'https://a.example/w?a&b', 'another is kept');
like(shown()->{body}, qr{name="withdrawal_url"[^>]* value="https://a\.example/w\?a&amp;b"},
    'and shown');
submit('owner', shown(), "/$id/shop", \%form);
is(shop()->{withdrawal_url}, undef, 'until it is taken away');

# --- its own words in emails ---

is(submit('owner', shown(), "/$id/shop", { %form, greeting_de => "Moin <b>\r\nund willkommen",
    closing_fr => 'y' x 300 })->{status}, 303, 'the owner adds words of their own');
is_deeply(shop()->{emails}{de}, { greeting => "Moin <b>\nund willkommen", closing => undef },
    'in a language');
is(length shop()->{emails}{fr}{closing}, 300, 'or in another');
like(shown()->{body}, qr{<textarea id="greeting_de"[^>]*>Moin &lt;b&gt;\nund willkommen</textarea>},
    'the page shows them, escaped');
my $long = submit('owner', shown(), "/$id/shop", { %form, closing_en => 'y' x 301 });
is($long->{status}, 400, 'too many are refused');
like($long->{body}, qr/A text for emails has up to 300 characters/, 'by a sentence');
like($long->{body}, qr/>y{301}</, 'and stay in the form');
my %full = map { ("greeting_$_" => "\x{1f600}" x 300, "closing_$_" => "\x{1f600}" x 300) }
    qw(ar de en es fr ja);
is(submit('owner', shown(), "/$id/shop", { %form, %full })->{status}, 303,
    'all of them may be as long as that, in any script');
is(length shop()->{emails}{es}{closing}, 300, 'and are kept');
is(submit('owner', shown(), "/$id/shop", \%form)->{status}, 303, 'without them');
is(shop()->{emails}{de}{greeting}, undef, 'they are gone');
is_deeply([ @{ shop() }{qw(default_download_limit default_access_days)} ], [ undef, undef ],
    'an empty limit is none');
submit('owner', shown(), "/$id/shop", { %form, limit => 0, days => 36500 });
is_deeply([ @{ shop() }{qw(default_download_limit default_access_days)} ], [ 0, 36500 ],
    'limits are taken');
like(shown()->{body}, qr/name="limit"[^>]* value="0".*name="days"[^>]* value="36500"/s,
    'and shown');
submit('owner', shown(), "/$id/shop", { %form, languages => 'de,  en' });
is_deeply(shop()->{languages}, [qw(de en)], 'languages are taken');
like(shown()->{body}, qr/name="languages"[^>]* value="de,en"/, 'and shown');
like(submit('owner', shown(), "/$id/shop", { %form, languages => 'de, de' })->{body},
    qr/role="alert"[^>]*>Languages are up to 20 tags/, 'the same twice is refused by a sentence');
for ([ limit => 1_000_001 ], [ limit => 'x' ], [ days => 0 ], [ days => 36501 ]) {
    my ($field, $value) = @$_;
    my $says = $field eq 'limit' ? 'Downloads of each file: give 0' : 'Days of access: give 1';
    my $refused = submit('owner', shown(), "/$id/shop", { %form, $field => $value });
    is($refused->{status}, 400, "$field of $value is refused");
    like($refused->{body}, qr/role="alert"[^>]*>$says.*value="$value"/s,
        'by a sentence, with what was typed');
}
submit('owner', shown(), "/$id/shop", \%form);

# --- how a customer sees it -----------------------------------------------------------------------

submit('owner', shown(), "/$id/shop",
    { %form, name => 'Nord <b>licht', limit => 3, days => 30, languages => 'de,es' });
like(shown()->{body}, qr{<a href="/settings/$id/shop/preview">}, 'the page links to a preview');
like(shown()->{body}, qr{<a href="http://[^"]+/d/find/\Q$shop->{domain}\E">},
    'and to where customers find their downloads');
my $preview = visit('owner', 'GET', "/$id/shop/preview", headers => { 'accept-language' => 'fr' });
is($preview->{status}, 200, 'an owner sees it');
like($preview->{body},
    qr{<html lang="de".*<header><p><bdi>Nord &lt;b&gt;licht</bdi>.*Bestellung <bdi>1001</bdi>}s,
    "the customer's page, with the shop's name, in the first of its languages");
like($preview->{body}, qr{<aside[^>]*>[^<]*Beispiel[^<]*<a href="\.\./shop">},
    'it says that it is a sample, and leads back');
like($preview->{body}, qr/verf\S+ bis.*example\.pdf.*noch 3 von 3 Downloads/s,
    'its days, and its downloads');
like($preview->{body}, qr{<a href="[^"]+/find/\Q$shop->{domain}\E">}, 'its way to all downloads');
my ($accent) = $preview->{body} =~ m{<style>(:root\{--action:#[^<]+)</style>};
my $hash = sha256_base64($accent // '');
like($preview->{headers}{'content-security-policy'}, qr/style-src[^;]*'sha256-\Q$hash\E='/,
    'and its colour');
is(visit('staff', 'GET', "/$id/shop/preview")->{status}, 403, 'staff do not');
is(visit('owner', 'POST', "/$id/shop/preview", form => { file => 1 })->{status}, 405,
    'its buttons do nothing');
submit('owner', shown(), "/$id/shop", \%form);

# The form of the logo, as a browser sends it.
sub send_logo
{
    my ($user, $from, $bytes, %more) = @_;
    my ($token) = $from->{body} =~ /name="form_token" value="([^"]+)"/;
    my %fields = (form_token => $token, %more);
    my $body = join '', (map { qq{--XY\r\nContent-Disposition: form-data; name="$_"\r\n\r\n}
        . "$fields{$_}\r\n" } sort keys %fields),
        qq{--XY\r\nContent-Disposition: form-data; name="file"; filename="logo.png"\r\n},
        "Content-Type: image/png\r\n\r\n$bytes\r\n--XY--\r\n";
    return visit($user, 'POST', "/$id/shop/logo", body => $body,
        headers => { 'content-type' => 'multipart/form-data; boundary=XY', origin => origin() });
}

my $gif = send_logo('owner', shown(), 'GIF89a');
is($gif->{status}, 400, 'a file that is no image is refused') or diag($gif->{body});
like($gif->{body}, qr/neither a PNG nor a JPEG/, 'by a sentence');
is(send_logo('owner', { body => '' }, png())->{status}, 403, 'a form without a token, too');
is(send_logo('owner', shown(), png(), map { ("more$_" => 1) } 1 .. 4)->{status}, 400,
    'and one with more fields');
is(send_logo('staff', shown(), png())->{status}, 403, 'and one of staff');
for ([ 2**21 + 1, qr/role="alert"[^>]*>A logo may have at most 2 MiB: make it smaller/ ],
    [ 3 * 2**20, qr/<h1>The picture is too large.*may have 2\.1\S+MB at most.*make it smaller/s ])
{
    my ($size, $says) = @$_;
    my $large = send_logo('owner', shown(), png() . 'x' x ($size - length png()));
    is($large->{status}, 413, "a logo of $size bytes is too large");
    like($large->{body}, $says, 'which the page says, with the bound and what helps');
}
is(send_logo('owner', shown(), png())->{status}, 303, 'an owner sends a logo');
wait_for(sub { shop()->{logo}{status} eq 'ready' }, 120, 'the logo is ready');
my $with = shown();
like($with->{body}, qr/<img src="\Q${\ shop()->{logo}{url} }\E"/, 'the page shows the logo');
like($with->{headers}{'content-security-policy'}, qr{img-src \S+/logo/;}, 'as its policy allows');
is(submit('owner', $with, "/$id/shop/logo/delete", {})->{status}, 303, 'which is removed');
is(shop()->{logo}{status}, 'none', 'and gone');

$server->stop;
done_testing();
