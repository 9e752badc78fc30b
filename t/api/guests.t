# Orders of guests, whom the storefront gives no number, and the names of orders (contract,
# section 6).
#
# both: the customer of an order is found in SQL
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop    = new_shop();
my $file    = ready_asset($shop, "guests-$$.txt", "what was bought\n");
my $product = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};

sub buy
{
    my ($number, %members) = @_;
    return api('POST', "/orders/$number/assignments", key => $shop->{token},
        json => { items => [ { storefront_product_id => $product } ], %members });
}

sub rename_to
{
    my ($number, $name) = @_;
    return api('PATCH', "/orders/$number", key => $shop->{token}, json => { name => $name });
}

# --- guests --------------------------------------------------------------------------------------

my ($one, $two) = (digits(), digits());
my $email = "guest-$$\@buyer.example";
my $reply = buy($one, customer => { email => $email, first_name => 'Gus' },
    send_email => JSON::PP::true());
is_answer($reply, 201, 'an order without a customer\'s number');
is_shape($reply->{json}, 'order', 'the order');
my $guest = $reply->{json}{customer};
is($guest->{storefront_customer_id}, undef, 'its customer is a guest');
is($guest->{first_name}, 'Gus', 'of whom the order has the data');
like(wait_mail($email, 60)->{text}, qr/Gus/, 'who gets the email');
is(api('GET', "/customers/$guest->{id}", key => $shop->{token})->{json}{storefront_customer_id},
    undef, 'and is read by the number of the order\'s answer');
isnt(buy($two, customer => { email => $email })->{json}{customer}{id}, $guest->{id},
    'the next order of a guest has another');
is(buy($one, storefront_customer_id => undef)->{json}{customer}{id}, $guest->{id},
    'the same order again has the same');

my $known = digits();
is(buy($one, storefront_customer_id => $known)->{status}, 409,
    'a customer whose address is unknown can\'t take the order over');
is(buy($one, storefront_customer_id => $known, customer => { email => $email })
    ->{json}{customer}{storefront_customer_id}, $known, 'one with the guest\'s address can');
is(buy($one)->{json}{customer}{storefront_customer_id}, $known, 'and keeps it');

# --- names ---------------------------------------------------------------------------------------

is(buy($two)->{json}{name}, undef, 'an order has no name at first');
is(buy($two, name => ' A-1043 ')->{json}{name}, 'A-1043', 'it gets one by an assignment');
is(buy($two)->{json}{name}, 'A-1043', 'and keeps it');
my $before = api('GET', "/orders/$two", key => $shop->{token})->{json};
is(rename_to($two, 'A-1043')->{json}{updated_at}, $before->{updated_at},
    'the same changes nothing');
my $renamed = rename_to($two, 'B-7')->{json};
is($renamed->{name}, 'B-7', 'or by PATCH');
isnt($renamed->{updated_at}, $before->{updated_at}, 'which makes a new version');
like(page('GET', $renamed->{download_page_url})->{body}, qr/>B-7</, 'the customer reads it');
my $fresh = digits();
is(buy($fresh, name => 'B-7')->{json}{name}, 'B-7', 'two orders may have one name');
is(rename_to($two, undef)->{json}{name}, undef, 'null clears it');
like(page('GET', $renamed->{download_page_url})->{body}, qr/>$two</, 'and the number is back');

unstored();
refused(rename_to($two, 'x' x 51), 400, 'invalid_request', 'a name that is too long', '/name');
refused(buy($two, name => "a\nb"), 400, 'invalid_request', 'a name of two lines', '/name');

done_testing();
