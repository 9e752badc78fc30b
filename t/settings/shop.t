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
like(shown()->{body}, qr/value="Nordlicht &amp; Co"/, 'the page shows it, escaped');

my $wrong = submit('owner', shown(), "/$id/shop", { %form, accent => 'gold', name => 'Typed' });
is($wrong->{status}, 400, 'a colour that is none is refused');
like($wrong->{body}, qr/role="alert".*#1d4ed8/s, 'by a sentence');
like($wrong->{body}, qr/value="Typed"/, 'and what was typed stays');
is(shop()->{name}, 'Nordlicht & Co', 'nothing is changed');
is(submit('owner', shown(), "/$id/shop", { %form, email_delay => 61 })->{status}, 400,
    'nor by a delay of more than an hour');

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
    qw(de en es fr);
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
    my $refused = submit('owner', shown(), "/$id/shop", { %form, $field => $value });
    is($refused->{status}, 400, "$field of $value is refused");
    like($refused->{body}, qr/role="alert"[^>]*>Give 0 to 1,000,000.*value="$value"/s,
        'by a sentence, with what was typed');
}
submit('owner', shown(), "/$id/shop", \%form);

# --- how a customer sees it -----------------------------------------------------------------------

submit('owner', shown(), "/$id/shop",
    { %form, name => 'Nord <b>licht', limit => 3, days => 30, languages => 'de,es' });
like(shown()->{body}, qr{<a href="/settings/$id/shop/preview">}, 'the page links to a preview');
my $preview = visit('owner', 'GET', "/$id/shop/preview", headers => { 'accept-language' => 'fr' });
is($preview->{status}, 200, 'an owner sees it');
like($preview->{body},
    qr{<html lang="de".*<header><p><bdi>Nord &lt;b&gt;licht</bdi>.*Bestellung 1001}s,
    "the customer's page, with the shop's name, in the first of its languages");
like($preview->{body}, qr/verf\S+ bis.*example\.pdf.*noch 3 von 3 Downloads/s,
    'its days, and its downloads');
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
is(send_logo('owner', shown(), png())->{status}, 303, 'an owner sends a logo');
wait_for(sub { shop()->{logo}{status} eq 'ready' }, 120, 'the logo is ready');
my $with = shown();
like($with->{body}, qr/<img src="\Q${\ shop()->{logo}{url} }\E"/, 'the page shows the logo');
like($with->{headers}{'content-security-policy'}, qr{img-src \S+/logo/;}, 'as its policy allows');
is(submit('owner', $with, "/$id/shop/logo/delete", {})->{status}, 303, 'which is removed');
is(shop()->{logo}{status}, 'none', 'and gone');

$server->stop;
done_testing();
