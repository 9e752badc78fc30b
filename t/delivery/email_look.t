# The customer's email in a real browser, as it came over SMTP, in each language and state: whole,
# and without what Gmail and Outlook ignore; on a desktop and on phones, light and dark.  With
# FULL=1 build/screenshots keeps pictures of all.
#
# once: the look of an email does not depend on the database
# long: it opens a hundred emails
use strict;
use warnings;
use utf8;

use Compress::Zlib qw(compress crc32);
use Encode qw(decode encode);
use File::Path qw(make_path);
use IPC::Open2 qw(open2);
use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::Maildir;
use MDL::Test;
use Test::More;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

# --- a mail server and a shop with all that an email shows ---

my $server = MDL::Instance->new;
my $inbox  = "$server->{folder}/smtp";
make_path($inbox);
system('openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost'
        . " -keyout $inbox/key.pem -out $inbox/cert.pem 2>/dev/null") == 0 or die "no openssl\n";
my $smtp = open2(my $ports, my $hold, '/usr/bin/python3', '-W', 'ignore',
    MDL::Target::top_dir() . '/t/lib/smtp_peer.py', $inbox, "$inbox/cert.pem", "$inbox/key.pem");
my ($port) = split / /, <$ports> // die "the SMTP server does not start\n";
$server->configure(extra => "DownloadsMailTransport smtp://127.0.0.1:$port\n");
$server->start;

my $shop = new_shop(name => 'Books & Bytes');

sub made
{
    my ($path, $members) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $members);
    $reply->{status} =~ /^20/ or die "$path: $reply->{status} $reply->{body}\n";
    return $reply->{json};
}

# A black plate that is wider and higher than an email shows it.
sub logo
{
    my $chunk = sub { my ($type, $data) = @_;
        return pack('N', length $data) . $type . $data . pack('N', crc32($type . $data)) };
    my @rows = map { "\0" . ($_ < 20 || $_ > 140 ? "\0" x 75 : "\x0f\xff\xf0" x 25) } 0 .. 159;
    return "\x89PNG\r\n\x1a\n" . $chunk->('IHDR', pack('NNC5', 600, 160, 1, 0, 0, 0, 0))
        . $chunk->('IDAT', compress(join '', @rows)) . $chunk->('IEND', '');
}

sub branded
{
    my $key = $shop->{token};
    api('PATCH', '/shop', key => $key, json => { accent => '#116633',
        emails => { en => { greeting => "Welcome aboard!", closing => 'See you soon' } } });
    api('PUT', '/shop/logo', key => $key, body => logo(),
        headers => { 'content-type' => 'image/png' });
    wait_for(sub { api('GET', '/shop/logo', key => $key)->{json}{status} eq 'ready' }, 120, 'logo');
    return;
}

sub files
{
    my ($count, $title, $size) = @_;
    my @ids = map { ready_asset($shop, digits() . '.pdf', 'bytes', title => "$title $_")->{id} }
        1 .. $count;
    sql("UPDATE asset SET size = $size WHERE id IN (" . join(', ', @ids) . ')');
    return \@ids;
}

# The email of an order of these products, as it arrived: { name, html, order }.
sub email_of
{
    my ($name, $locale, @products) = @_;
    my $to    = digits() . '@buyer.example';
    my $reply = assign($shop, digits(), \@products, send_email => JSON::PP::true(),
        storefront_customer_id => digits(),
        customer => { email => $to, first_name => 'Zoë', locale => $locale });
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my $mail = wait_for(sub {
        my ($raw) = grep { /^To: .*\Q$to\E/m } map { MDL::Test::slurp($_) } glob "$inbox/*.eml";
        $raw && MDL::Maildir::parse_mail($raw);
    }, 30, "the email $name");
    return { name => "$locale-$name", html => decode('UTF-8', $mail->{html}),
        order => $reply->{json}{storefront_order_id} };
}

my $tag   = made('/license-key-tags', { name => 'Keys' })->{id};
my $key   = 'AAAA-BBBB-CCCC-DDDD-EEEE-FFFF-GGGG-HHHH-IIII-JJJJ';
my $link  = made('/links', { title => 'The readers’ forum', url => 'https://forum.example/' })
    ->{id};
my @many  = (
    mapping_of($shop, files(1, 'Handbook', 36_700_160), title => 'The whole handbook',
        note => "Unpack it first.\nThen read the first page.", link_ids => [$link],
        license_key_tag_ids => [$tag]),
    mapping_of($shop, files(14, 'Photo of a rather long walk along the river', 2_411_724),
        title => 'Photos'),
    mapping_of($shop, files(1, 'Ab' x 70, 734_003_200)));
my @plain = mapping_of($shop, files(1, 'Handbook', 2_411_724), access_days => 30);
my @half  = mapping_of($shop, files(3, 'Part', 734_003_200), title => 'x' x 120,
    license_key_tag_ids => [ made('/license-key-tags', { name => 'None' })->{id} ]);
my ($half) = @{ $half[0]{file_ids} };

sub gids { return map { { storefront_product_id => $_->{storefront_product_id} } } @_ }

my @mails = email_of('plain', 'en', gids(@plain));
branded();
sql("UPDATE asset SET status = 'pending' WHERE id = $half");
sql("UPDATE asset SET status = 'failed' WHERE id = $half + 1");
push @mails, email_of('preparing', 'en', gids(@half));
for my $language (map { m{/([\w-]+)\.words$} } glob 'conf/templates/*.words') {
    made("/license-key-tags/$tag/keys", { keys => [ $key . digits() ] });
    push @mails, email_of('many', $language, gids(@many));
}

# --- what people see ---

my %PAPER = (light => 'rgb(255, 255, 255)', dark => 'rgb(31, 41, 55)');
my %INK   = (light => 'rgb(17, 24, 39)',    dark => 'rgb(243, 244, 246)');
my $folder = MDL::Target::top_dir() . '/t/logs/screenshots';
make_path($folder) if $ENV{FULL};

my $browser = open2(my $out, my $in, 'tools/node', 't/node/browser-email.mjs');
print $in encode_json([ map { { %$_, $ENV{FULL} ? (folder => $folder) : () } } @mails ]);
close $in;
for my $mail (@mails) {
    my $seen = decode_json(scalar <$out> // '{}');
    subtest "The email $mail->{name}" => sub {
        is_deeply($seen->{invalid}, [], 'html-validate finds nothing');
        cmp_ok(length encode('UTF-8', $mail->{html}), '<', 102 * 1024, 'Gmail does not clip it');
        is(scalar @{ $seen->{views} // [] }, 10, 'it was looked at in ten views');
        for my $view (@{ $seen->{views} }) {
            my ($program, $width, $scheme) = split /-/, $view->{name};
            is_deeply($view->{faults}, [], "$view->{name}: all of it can be read");
            like($view->{text}, qr/\Q$mail->{order}\E.*20\d\d.*Zoë.*Books & Bytes/s,
                'the order and its date are at the top');
            is_deeply($view->{colours}, [ $PAPER{$scheme}, $INK{$scheme} ], "it is $scheme");
        }
        my %texts = map { $_->{text} => 1 } @{ $seen->{views} };
        $mail->{text} = (sort keys %texts)[0];
        if ($mail->{name} =~ /many/) {
            like($_, qr/whole\ handbook.*Unpack\ it\ first\.\nThen\ read.*$key.*Handbook\ 1
                .*readers’\ forum.*Photos.*\D6\D.*AbAbAb/sx,
                'each product has its note, keys, files and links') for keys %texts;
            is(() = $mail->{text} =~ /Welcome/g, $mail->{name} =~ /^en/ ? 1 : 0,
                "the shop's own words are in no other language");
            is(() = $mail->{text} =~ /^(?:Handbook|Photo of|AbAb)/mg, 10, 'and ten lines of files');
        }
    };
}
ok(close $out, 'the browser ends well');
waitpid $browser, 0;
diag("screenshots: $folder; in the end build/screenshots") if $ENV{FULL};

is(() = $mails[0]{text} =~ /Everything is waiting/g, 1, 'the preheader is not seen');
like($mails[0]{html}, qr{<td[^>]*>\s*<div\ style="display:none[^>]*>Your\ downloads\ are\ ready\.
    \ Everything\ is\ waiting}x, 'but is what a list of emails shows first');
like($mails[0]{text}, qr/^Books & Bytes\s+Order \d+ · \d+ \w+ 20\d\d/,
    'a shop without a logo has its name');
like($mails[1]{text}, qr/Part 1 \(.*: still.*Part 2 .*: could not.*Part 3 \(734\x{a0}MB\)/s,
    'files that are not there say so');
like($mails[1]{text}, qr/Zoë,\s+Welcome aboard!.*See you soon/s, "the shop's own words are there");
like($mails[1]{text}, qr/\n1 license key is on its way/, 'and a key that is still to come');

close $hold;
waitpid $smtp, 0;
$server->stop;
done_testing();
