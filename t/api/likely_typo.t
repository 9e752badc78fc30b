# A likely typing error in a customer's address is told in the answer to an assignment (contract,
# section 6).
#
# once: the address was read before
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my $true    = JSON::PP::true();
my $shop    = new_shop();
my $product = mapping_of($shop, [])->{storefront_product_id};

sub assigned
{
    my ($order, $email) = @_;
    return assign($shop, $order, [$product], send_email => $true, storefront_customer_id => $order,
        customer => { email => $email });
}

my $order = digits();
my $reply = assigned($order, 'ada@gmial.com');
is_answer($reply, 201, 'an order for an address with a likely typing error');
is_deeply($reply->{json}{likely_typo}, { email => 'ada@gmial.com', suggestion => 'ada@gmail.com' },
    'the answer tells what was probably meant');
is($reply->{json}{customer}{email}, 'ada@gmial.com', 'the address is kept');
is($reply->{json}{email}{status}, 'queued', 'and its email is queued');
is_deeply(assigned($order, 'ada@gmial.com')->{json}{likely_typo}, $reply->{json}{likely_typo},
    'it is told again with another assignment');
ok(!exists api('GET', "/orders/$order", key => $shop->{token})->{json}{likely_typo},
    'not when the order is read');
ok(!exists assigned(digits(), 'ada@gmail.com')->{json}{likely_typo}, 'nothing of another address');

done_testing;
