# A shop's system lists the requests of customers for help, and answers each once.
#
# both: a request is answered under a lock that differs
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();
my %key  = (key => $shop->{token});
my $file = ready_asset($shop, 'book.pdf', 'the book')->{id};
my $product   = mapping_of($shop, [$file], access_days => 1)->{storefront_product_id};
my $unlimited = mapping_of($shop, [$file])->{storefront_product_id};

# An order whose customer asks for help; { number, item, id }.
sub asking
{
    my (%opt) = @_;
    my $number = digits();
    my $made   = assign($shop, $number, [ $opt{product} // $product ],
        storefront_customer_id => $number,
        $opt{email} ? (customer => { email => $opt{email} }) : ());
    my $order = { number => $number, item => $made->{json}{assignments}[0]{id},
        id => help_asked($shop, $number) };
    sql("UPDATE assignment SET expires_at = created_at + 1 WHERE id = $order->{item}")
        if $opt{expired};
    return $order;
}

sub answer
{
    my ($order, %members) = @_;
    return api('POST', "/help-requests/$order->{id}/answer", %key, json => \%members,
        idem => idem(), patient => 1);
}

sub get { my ($path) = @_; return api('GET', $path, %key)->{json} }
sub listed { return join ' ', map { $_->{id} } @{ get("/help-requests$_[0]")->{data} } }

my $first = asking(expired => 1, email => 'first@buyer.example');
my $reply = get("/help-requests/$first->{id}");
like(delete $reply->{asked_at}, qr/^20.*Z$/, 'it says when it was asked');
is_deeply($reply, { id => $first->{id}, storefront_order_id => $first->{number},
    finding => 'access_expired', state => 'asked', answer => undef, decided_by => undef,
    decided_at => undef }, 'and of which order');

my $second = asking();
is(listed(''), "$second->{id} $first->{id}", 'the newest is first');
is(listed('?state=asked'), "$second->{id} $first->{id}", 'both wait');
is_error(api('GET', '/help-requests?state=granted', %key), 400, 'invalid_request',
    'another state is no filter', '/state');

is_error(answer($first), 400, 'invalid_request', 'no answer', '/answer');
is_error(answer($first, answer => 'later', downloads => 1, reason => 'x' x 501), 400,
    'invalid_request', 'faulty members', '/answer', '/reason', '/downloads');
is_error(answer($first, answer => 'one_more'), 409, 'access_revoked',
    'a download of an order that has ended');
is_error(answer($second, answer => 'resend'), 422, 'no_recipient', 'an email to nobody');
is_error(answer(asking(product => $unlimited), answer => 'extend'), 409, 'access_unlimited',
    'what never ends');
is_error(api('POST', "/help-requests/$_/answer", %key, json => { answer => 'refuse' }), 404,
    'help_request_not_found', "request $_") for qw(9007199254740991 0 x);

my $extended = answer($first, answer => 'extend', reason => 'a courtesy');
is($extended->{status}, 200, 'seven more days') or diag(explain($extended));
is($extended->{json}{state}, 'granted', 'grant the request');
like($extended->{json}{decided_at}, qr/^20.*Z$/, 'with the time');
my $order = get("/orders/$first->{number}");
my @done = grep { /granted|resent/ } map { $_->{action} } @{ $order->{events} };
is_deeply([ sort @done ], [qw(downloads_granted email_resent)],
    'the order has the days, and its email');
is_error(answer($first, answer => 'refuse'), 409, 'help_not_asked', 'another answer');

my $more = answer($second, answer => 'one_more')->{json};
is($more->{state}, 'granted', 'one more, without an address');
my $refused = answer(asking(expired => 1), answer => 'refuse', reason => 'It has ended')->{json};
is_deeply([ @$refused{qw(state answer decided_by)} ], [ 'refused', 'It has ended', undef ],
    'refused, with the reason');

my $both = asking(expired => 1);
my @status = sort { $a <=> $b } @{ [ parallel(4, sub {
    return answer($both, answer => $_[0] % 2 ? 'extend' : 'refuse')->{status};
}) ] };
is("@status", '200 409 409 409', 'one of several answers at once is taken');

my $old = asking();
sql("UPDATE help_request SET asked_at = asked_at - 1209600000000 WHERE id = $old->{id}");
is(get("/help-requests/$old->{id}")->{state}, 'lapsed', 'after 14 days it has lapsed');
is_error(answer($old, answer => 'refuse'), 409, 'help_not_asked', 'so nobody answers it');
unlike(listed('?state=asked'), qr/\b$old->{id}\b/, 'nor waits it');

my @audit = grep { $_->{action} eq 'help_answered' } @{ get('/audit?noun=order')->{data} };
is_deeply([ sort map { $_->{noun_id} } @audit ],
    [ sort $first->{number}, $second->{number}, $refused->{storefront_order_id}, $both->{number} ],
    'the audit has each answer with its order');

done_testing();
