# What a shop's emails look like, in its settings: each email in each language as it is sent, with
# the shop's own name and colour, in a frame that may do nothing.
#
# once: the sample needs no database, and t/settings/staff_email.t counts on both
use strict;
use utf8;
use warnings;

use Encode qw(decode);

use MDL::Contract;
use MDL::Maildir;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop(name => 'Books <i>&amp;</i> more');
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
api('PATCH', '/shop', key => $shop->{token}, json => { accent => '#116633' });

my %SUBJECT = (
    email            => { en => qr/downloads/, de => qr/Downloads/, fr => qr/téléchargements/,
        es => qr/descargas/ },
    find => { en => qr/Your orders/, de => qr/Ihre Bestellungen/, fr => qr/Vos commandes/,
        es => qr/Sus pedidos/ },
    license_keys_low => { en => qr/License keys run low: shop $id/, de => qr/Lizenzschl/,
        fr => qr/licence/, es => qr/licencia/ },
    notices => { en => qr/What happened in your shop: shop $id/, de => qr/geschehen/,
        fr => qr/passé/, es => qr/pasado/ },
    webhook_disabled => { en => qr/switched off/, de => qr/abgeschaltet/, fr => qr/webhook/i,
        es => qr/webhook/i },
    confirm => { en => qr/confirm your address/, de => qr/best/, fr => qr/adresse/,
        es => qr/direcci/ },
);

sub preview { return visit('staff', 'GET', "/$id/emails/preview$_[0]") }

for my $letter (sort keys %SUBJECT) {
    for my $language (sort keys %{ $SUBJECT{$letter} }) {
        my $query = "?email=$letter&language=$language";
        my $page  = preview($query);
        is($page->{status}, 200, "$letter in $language");
        my $body = $page->{body};
        utf8::decode($body);
        my ($subject) = $body =~ m{<p lang="$language"><bdi>(.*?)</bdi></p>}s;
        like($subject, $SUBJECT{$letter}{$language}, 'has its subject');
        my ($src) = $body =~ m{<iframe sandbox src="/settings([^"]+)"};
        $src =~ s/&amp;/&/g;
        is($src, "/$id/emails/preview/html$query", 'and a frame');
        my $html = visit('staff', 'GET', $src);
        is($html->{status}, 200, 'which has the email');
        like($html->{body}, qr/<html lang="$language"/, 'in that language');
        my ($text) = $body =~ m{<pre lang="$language" dir="auto">(.*?)</pre>}s;
        like($text, qr/Books &lt;i&gt;&amp;amp;&lt;\/i&gt; more/, 'the text names the shop');
        unlike("$text $html->{body}", qr/\{\{/, 'and nothing is left open');
        unlike($html->{body}, qr/<i>/, 'which is text, too');
        is(scalar(() = $html->{body} =~ /<script/g), 0, 'without a script');
    }
}
my $body = preview('')->{body};
like($body, qr{<option value="email" selected>}, 'the delivery email comes first');
is_deeply([ sort $body =~ m{<option value="([a-z]{2})"}g ], [qw(ar de en es fr ja)],
    'the languages are those that there are');
like(decode('UTF-8', visit('staff', 'GET', "/$id/emails/preview/html?language=ar")->{body}),
    qr/<html lang="ar" dir="rtl">.*مرحبًا Ada،/s, 'also those of customers alone');
like(visit('staff', 'GET', "/$id/emails/preview", headers => { 'accept-language' => 'ar, ja' })
    ->{body}, qr/<html lang="en" dir="ltr">.*What the emails look like/s,
    'in which staff get English');
like(visit('staff', 'GET', "/$id/emails/preview", headers => { 'accept-language' => 'fr-CA' })
    ->{body}, qr{<option value="fr" selected>}, 'the visitor\'s is chosen');
like(preview('?language=nl')->{body}, qr{<option value="en" selected>},
    'a language that there is not is English');
like(preview('?email=nonsense')->{body}, qr{<option value="email" selected>}, 'an email, too');
is(preview('?language=' . 'x' x 36)->{status}, 400, 'a tag that is too long is refused');
is(visit($_->[0], 'GET', "/$id/emails/preview$_->[2]")->{status}, $_->[1], "$_->[0] sees $_->[1]")
    for [ reader => 200, '' ], [ reader => 200, '/html' ], [ nobody => 404, '' ],
    [ nobody => 404, '/html' ];

# --- what the frame may do ---

my $page = preview('');
like($page->{headers}{'content-security-policy'},
    qr{; frame-src http://127\.0\.0\.1:\d+/settings/;},
    'the page may frame the settings');
like($page->{headers}{'content-security-policy'}, qr/frame-ancestors 'none'$/, 'but not be framed');
my $html = preview('/html');
like($html->{headers}{'content-security-policy'},
    qr{^sandbox;\ default-src\ 'none';\ style-src\ 'unsafe-inline';\ img-src\ http\S+/logo/;
        \ form-action\ 'none';\ base-uri\ 'none';\ frame-ancestors\ 'self'$}x,
    'the email may only look like itself');
is($html->{headers}{'x-frame-options'}, 'SAMEORIGIN', 'in a frame of its own page');
like($html->{body}, qr/background-color:#116633/, 'with the colour of the shop');
unlike(visit('staff', 'GET', "/$id/emails")->{headers}{'content-security-policy'}, qr/frame-src/,
    'no other page frames anything');

# --- it is what is sent ---

my $product = mapping_of($shop, [ ready_asset($shop, 'book.pdf', 'the book')->{id} ])
    ->{storefront_product_id};
my %OWN = (de => { greeting => "Moin <b>\n{{name}}", closing => 'Bis bald & danke' },
    en => { greeting => 'Welcome' });
api('PATCH', '/shop', key => $shop->{token}, json => { emails => \%OWN });
assign($shop, 7001, [$product], send_email => JSON::PP::true(),
    customer => { email => 'ada@example.com', first_name => 'Ada', locale => 'de' });
my $mail = wait_mail('ada@example.com');

# What a text says that does not depend on its order.
sub said
{
    my ($text) = @_;
    return [ grep { /^(?:Guten Tag|Ihre Dateien|Bewahren |Freundliche |Books )/ }
            map { s/\s+$//r } split /\n/, $text ];
}

my ($text) = preview('?language=de')->{body} =~ m{<pre[^>]*>(.*?)</pre>}s;
my %CHARACTER = (lt => '<', gt => '>', amp => '&', quot => '"');
$text =~ s/&(\w+);/$CHARACTER{$1}/g;
is_deeply(said($text), said($mail->{text}), 'the sample says what an email says');
like($_, qr/^Guten Tag Ada,\n\nMoin <b>\n\{\{name\}\}\n\n.*\n\nBis bald & danke\n\nFreundliche/s,
    'the shop\'s own words are after the first line and before the last')
    for $text, $mail->{text} =~ s/\r//gr;
like($mail->{html}, qr{Guten Tag Ada,</p>\s*<p[^>]*>Moin &lt;b&gt;<br>\{\{name\}\}<br></p>},
    'as text, also in HTML');
like(preview('?language=fr')->{body},
    qr{<pre lang="fr"[^>]*>Bonjour Ada,\s+Merci}, 'not in French');
like(preview('?language=en')->{body}, qr{>Hello Ada,\n\nWelcome\n\nThank you}, 'but in English');
cmp_ok(scalar @{ said($text) }, '>=', 3, 'which is more than a greeting');

my $offers = sub { api('PATCH', '/shop', key => $shop->{token}, json => { languages => $_[0] }) };
$offers->([qw(de it)]);
assign($shop, 7002, [$product], send_email => JSON::PP::true(),
    customer => { email => 'dante@example.com', first_name => 'Dante', locale => 'it' });
like(wait_mail('dante@example.com')->{text} =~ s/\r//gr, qr/^Guten Tag Dante,\n\nMoin <b>\n/,
    'a language without templates: the first that the shop offers, with its own words');
like(preview('?language=en')->{body}, qr{>Guten Tag Ada,\n\nMoin &lt;b&gt;\n},
    'the sample of a language that the shop does not offer is what its customers get');
$offers->(undef);

# --- a test to oneself ---

my $ADA   = 'ada@staff.example';
my $QUERY = '?email=confirm&language=de';
like(preview('')->{body}, qr/sign in with an email address/, 'a name is no address');
unlike(preview('')->{body}, qr{emails/preview/test}, 'and gets no button');
told('member', 'add', $ADA, 'staff', '--shop', $id);
my $hers = visit($ADA, 'GET', "/$id/emails/preview$QUERY");
like($hers->{body}, qr/Send this email to \Q$ADA\E, as a test/, 'who has one gets it');
my %OTHER = (to => 'eve@example.com');
my $sent = submit($ADA, $hers, "/$id/emails/preview/test$QUERY", \%OTHER);
is($sent->{status}, 303, 'and sends a test');
my $test = wait_mail($ADA);
like(decode('MIME-Header', $test->{headers}{subject}), qr/^Test: Bitte best/,
    'which says that it is one');
is(scalar(mails('eve@example.com')), 0, 'and goes to nobody else');
my $after = visit($ADA, 'GET', $sent->{headers}{location} =~ s{^.*?/settings}{}r)->{body};
like($after, qr/The test is on its way to \Q$ADA\E/, 'the page says where to');
like($after, qr/<option value="$_" selected>/, "and still shows the same: $_") for qw(confirm de);
like(visit('owner', 'GET', "/$id/audit?who=$ADA")->{body}, qr/email test sent.*confirm, de/s,
    'and the audit who sent it');
my $form = visit('staff', 'GET', "/$id/orders/new");
is(submit('staff', $form, "/$id/emails/preview/test", {})->{status}, 400,
    'who has no address sends none');
is(submit('reader', own_form('reader', 'read-only', "/$id/shop"),
        "/$id/emails/preview/test", {})->{status}, 403, 'nor does who only reads');

my ($link) = grep { m{/c/} } @{ $test->{urls} };
is(page('GET', $link =~ s{^https?://[^/]+}{}r)->{status}, 404,
    'a test of the question does not confirm an address');

sub send_test
{
    my ($query) = @_;
    my $page = visit($ADA, 'GET', "/$id/emails/preview$query");
    return submit($ADA, $page, "/$id/emails/preview/test$query", {});
}
is(send_test('?email=email&language=en')->{status}, 303, 'the delivery email, too');
wait_for(sub { mails($ADA) == 2 }, 20, 'it');
my ($delivery) = grep { $_->{raw} =~ /^Subject: Test: Your downloads/m } mails($ADA);
like($delivery->{headers}{from}, qr/^"?Books /, 'comes from whom customers see');
is_deeply([ map { send_test('')->{status} } 1 .. 19 ], [ (303) x 18, 429 ],
    'a day has twenty for an address');
like(send_test('')->{body}, qr/A day has 20 tests for an address/, 'and the page says so');

# --- the shop's languages ---

sub offered
{
    my ($letter) = @_;
    my $body = preview("?email=$letter&language=en")->{body};
    return $body =~ m{<select id="language".*?</select>}s ? [ $& =~ /<option value="(\w+)"/g ] : [];
}
api('PATCH', '/shop', key => $shop->{token}, json => { languages => ['fr'] });
like(preview('?email=email&language=en')->{body}, qr/<bdi>Vos t/,
    "customers get their email in the shop's languages");
is_deeply(offered('email'),   ['fr'],            'so it has no other');
is_deeply(offered('confirm'), [qw(de en es fr)], 'unlike that of an owner');
api('PATCH', '/shop', key => $shop->{token}, json => { languages => undef });

# --- links of a sample lead nowhere ---

for my $letter (qw(email confirm)) {
    my ($link) = preview("?email=$letter")->{body} =~ m{(http\S+/[oc]/[\w.~-]+)};
    my $path = $link =~ s{^https?://[^/]+}{}r;
    is(page('GET', $path)->{status}, 404, "the link of $letter leads nowhere");
}

$server->stop;
done_testing;
