# The page and the email of an order link to where the customer withdraws from the contract, for 14
# days after the order.
#
# once: the shop's address is read with the order
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my $URL     = 'https://shop.example/withdraw?a=1&b=2';
my $shop    = new_shop();
my $product = mapping_of($shop, [])->{storefront_product_id};
my %words   = (en => 'Withdraw from the contract', de => 'Vertrag widerrufen',
    fr => 'Se rétracter du contrat', es => 'Desistir del contrato', ja => '契約を解除する',
    ar => 'الرجوع عن العقد');

sub order_in
{
    my ($language) = @_;
    my $order = digits();
    my $reply = assign($shop, $order, [$product], storefront_customer_id => $order,
        send_email => JSON::PP::true(),
        customer => { email => "c$order\@buyer.example", locale => $language });
    is_answer($reply, 201, "an order in $language");
    my ($path) = $reply->{json}{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    return ($order, $path);
}

my ($before, $plain) = order_in('en');
unlike(page('GET', $plain)->{body}, qr/Withdraw/, 'a shop without an address has no link');
unlike(wait_mail("c$before\@buyer.example")->{text}, qr/Withdraw/, 'nor has its email');

is(api('PATCH', '/shop', key => $shop->{token}, json => { withdrawal_url => $URL })->{status}, 200,
    'the shop gives its address');
my $link = quotemeta($URL =~ s/&/&amp;/r);
my $path;
for my $language (sort keys %words) {
    (my $order, $path) = order_in($language);
    like(page('GET', $path)->{body}, qr{<a href="$link"[^>]*>$words{$language}</a>},
        "the page has the link in $language");
    my $mail = wait_mail("c$order\@buyer.example");
    like($mail->{html}, qr{<a [^>]*href="$link"[^>]*>$words{$language}</a>}, 'and the email');
    like($mail->{text}, qr{^\Q$words{$language}\E[^\n]*\n\Q$URL\E$}m, 'also as text');
}
my $ended = (time - 14 * 86_400) * 1_000_000;
sql("UPDATE orders SET created_at = $ended + 3600000000");
like(page('GET', $path)->{body}, qr/$link/, 'it is there for 14 days');
sql("UPDATE orders SET created_at = $ended");
unlike(page('GET', $path)->{body}, qr/$link/, 'and then no more');

done_testing;
