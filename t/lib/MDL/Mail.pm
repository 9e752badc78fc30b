# Shared by the suites of email: shops, orders that send an email, and programs that read it.
package MDL::Mail;

use strict;
use warnings;
use utf8;

use Encode qw(encode_utf8);
use Exporter qw(import);
use JSON::PP;
use MDL::Contract qw(assign mapping_of ready_asset);
use MDL::Test;
use Test::More;

our @EXPORT = qw(shop_with_product order_for email_of wait_email read_by_python read_by_perl
    attempt_now next_order_id);

my $true = JSON::PP::true();

# Makes a shop with everything that an email shows; returns { shop_id, token, product }.
sub shop_with_product
{
    my ($name, %opt) = @_;
    my ($code, $shop, $text) = ctl('shop', 'add', encode_utf8($name),
        idem('mail') =~ tr/./-/r . '.example',
        '--email', 'help@shop.example');
    die "shop add: $text" if $code != 0;
    $shop = $shop->{shop} // $shop;
    ($code, undef, $text) = ctl('shop', 'approve', $shop->{id});
    die "shop approve: $text" if $code != 0;
    my $key = MDL::Test::new_key($shop->{id});
    my $asset = ready_asset($key, 'guide.pdf', 'the bytes of a guide');
    if (defined $opt{title}) {
        my $reply = api('PATCH', "/assets/$asset->{id}", key => $key->{token}, patient => 1,
            json => { title => $opt{title} });
        die "PATCH: $reply->{status} $reply->{body}\n" if $reply->{status} != 200;
    }
    return { shop_id => $shop->{id}, token => $key->{token}, product => mapping_of($key,
        [ $asset->{id} ])->{storefront_product_id} };
}

my $orders = 0;
sub next_order_id { return sprintf '%d%05d', $$, ++$orders }

# Assigns the shop's product to a new order and has an email sent; returns the order's id.
sub order_for
{
    my ($shop, $email, %customer) = @_;
    my $id = next_order_id();
    my $reply = assign($shop, $id, [ $shop->{product} ], patient => 1, send_email => $true,
        customer => { email => $email, %customer });
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $id;
}

sub email_of
{
    my ($shop, $order) = @_;
    return api('GET', "/orders/$order", key => $shop->{token}, patient => 1)->{json}{email};
}

# Waits until $look is true of the order's email; returns the email.
sub wait_email
{
    my ($shop, $order, $look) = @_;
    my $email;
    eval {
        wait_for(sub { $email = email_of($shop, $order); $look->($email) }, 20,
            "the email of $order");
    } or diag $@, explain $email;
    return $email;
}

my $reader = <<'END';
import email, email.policy, email.utils, json, sys
from email.header import decode_header, make_header
raw = open(sys.argv[1], "rb").read()
# Python's newer parser puts a space between the encoded words of a name, against RFC 2047.
name, address = email.utils.parseaddr(email.message_from_bytes(raw)["From"])
mail = email.message_from_bytes(raw, policy=email.policy.default)
def part(p):
    return {"type": p.get_content_type(), "charset": p.get_content_charset(),
        "defects": [repr(d) for d in p.defects],
            "encoding": str(p["Content-Transfer-Encoding"]), "text": p.get_content()}
print(json.dumps({
    "headers": {k.lower(): str(v) for k, v in mail.items()},
    "count": {k.lower(): len(mail.get_all(k)) for k in mail.keys()},
    "from": [str(make_header(decode_header(name))), address],
    "to": [a.addr_spec for a in mail["To"].addresses],
    "date": mail["Date"].datetime.timestamp(),
    "type": mail.get_content_type(),
    "defects": [repr(d) for part in [mail, *mail.values()] for d in part.defects],
    "longest": max(len(line) for line in raw.splitlines()),
    "parts": [part(p) for p in mail.iter_parts()]}))
END

# Reads a message with Python's email package.
sub read_by_python
{
    my ($path) = @_;
    open my $out, '-|', '/usr/bin/python3', '-c', $reader, $path or die "python3: $!";
    my $text = do { local $/; <$out> };
    close $out or die "python3 can't read $path\n";
    return decode_json($text);
}

my $perl_reader = <<'END';
use strict; use warnings;
use Email::MIME; use JSON::PP; use Encode;
my $mail = Email::MIME->new(do { local (@ARGV, $/) = @ARGV; scalar <> });
my ($from) = Email::Address::XS->parse($mail->header_raw('From'));
print JSON::PP->new->utf8->encode({
    names => [ map { lc } $mail->header_names ],
    subject => $mail->header_str('Subject'),
    from => [ Encode::decode('MIME-Header', $from->phrase // ''), $from->address ],
    type => $mail->content_type =~ s/;.*//sr,
    parts => [ map { { type => $_->content_type =~ s/;.*//sr, text => $_->body_str } }
        $mail->subparts ],
});
END

# Reads a message with Perl's Email::MIME.
sub read_by_perl
{
    my ($path) = @_;
    open my $out, '-|', $^X, '-MEmail::Address::XS', '-e', $perl_reader, $path or die "perl: $!";
    my $text = do { local $/; <$out> };
    close $out or die "Email::MIME can't read $path\n";
    return decode_json($text);
}

# Makes the next attempt to send an order's email due now instead of in a minute.
sub attempt_now
{
    my ($order) = @_;
    sql(qq{UPDATE job SET due_at = 1 WHERE status = 'queued' AND email_id IN
        (SELECT e.id FROM email e JOIN orders o ON o.id = e.order_id
         WHERE o.storefront_order_id = '$order')});
    return;
}

1;
