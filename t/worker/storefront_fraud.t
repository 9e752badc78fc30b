# The fraud check and the look-up: an order is held until the storefront has told its risk.
#
# both: an order is held and released under other locks
use strict;
use warnings;

use JSON::PP;
use MDL::Lookups;
use MDL::Test;
use Test::More;

my $true = JSON::PP::true();
my (undef, $storefront) = start_lookups();

sub signals { return map { "$_->{code} $_->{level}" } @{ shift->{fraud}{signals} } }

subtest 'the fraud check waits for the risk that the storefront sees' => sub {
    my $shop = shop_with_product();
    my %levels = (
        none   => { risks => [] },
        low    => { risks => [ 'NONE', 'LOW' ] },
        medium => { risks => [ 'MEDIUM', 'LOW' ] },
        high   => { risks => [ 'PENDING', 'HIGH' ] },
    );
    for my $level (sort keys %levels) {
        my $id = number();
        $storefront->order($id, %{ $levels{$level} }, client_ip => '2001:DB8:0::7',
            answers => [ { hold => 1 } ]);
        order_of($shop, order => $id, fraud_check => $true,
            customer => { email => "$level\@buyer.example" });
        wait_for(sub { $storefront->requests($id) }, 10, 'the call');
        my $order = order($shop, $id);
        is_deeply [ $order->{access}{status}, $order->{fraud}{decision}, $order->{email}{status} ],
            [ 'held', 'held', 'held' ], "$level: until then the order is held";
        is_deeply [ signals($order) ], ['risk_pending none'], "$level: and says why";
        $storefront->release($id);
        is wait_lookup($shop, $id)->{status}, 'succeeded', "$level: the look-up succeeds";
        $order = order($shop, $id);
        my $held = $level eq 'high';
        is_deeply [ $order->{access}{status}, $order->{fraud}{decision}, $order->{fraud}{level} ],
            [ $held ? ('held', 'held') : ('active', 'passed'), $level ],
            "$level: then it is " . ($held ? 'held' : 'released');
        is_deeply [ signals($order) ], $level eq 'none' ? [] : ["storefront_risk $level"],
            "$level: the signal is named";
        is wait_email($shop, $id, $held ? 'held' : 'sent')->{to}, "$level\@buyer.example",
            "$level: so is the email";
        my ($row) = sql("SELECT storefront_risk, client_ip FROM orders
            WHERE storefront_order_id = '$id'");
        is $row->[0], $level, "$level: the risk is kept";
        like $row->[1], qr/^2001:0?db8:.*7$/, "$level: and the address";
        my ($request) = $storefront->requests($id);
        ok $request->{variables}{withOrder}, "$level: the order was asked for";
        is $request->{errors}, undef, "$level: with a query that its schema allows";
    }
};

subtest 'an order without an address waits for the address and for the risk' => sub {
    my $shop = shop_with_product();
    my ($good, $bad) = (number(), number());
    $storefront->customer($_, email => "both$_\@buyer.example") for $good, $bad;
    $storefront->order($good, risks => ['LOW']);
    $storefront->order($bad,  risks => ['HIGH']);
    order_of($shop, order => $_, customer_id => $_, fraud_check => $true) for $good, $bad;
    is wait_email($shop, $good, 'sent')->{to}, "both$good\@buyer.example",
        'of low risk its email is sent';
    wait_lookup($shop, $bad);
    is wait_email($shop, $bad, 'held')->{to}, "both$bad\@buyer.example",
        'of high risk it is held, with its address';
    my $reply = api('POST', "/orders/$bad/approve", key => $shop->{token});
    is $reply->{status}, 200, 'and once it is approved';
    wait_email($shop, $bad, 'sent');
    is scalar(mails("both$bad\@buyer.example")), 1, 'it is sent as well';
};

subtest 'a fraud check that begins while an address is looked up has a look-up of its own' => sub {
    my $shop = shop_with_product();
    my $id   = number();
    $storefront->customer($id, email => "begun$id\@buyer.example");
    $storefront->order($id, risks => ['HIGH'], answers => [ { hold => 1 }, {} ]);
    order_of($shop, order => $id, customer_id => $id);
    wait_for(sub { $storefront->requests($id) }, 10, 'the call');
    order_of($shop, order => $id, customer_id => $id, fraud_check => $true);
    is scalar lookups($shop, $id), 1, 'there is one at a time';
    $storefront->release($id);
    wait_for(sub { lookups($shop, $id) == 2 }, 10, 'the second');
    is wait_lookup($shop, $id)->{status}, 'succeeded', 'which asks for the risk';
    is_deeply [ signals(order($shop, $id)) ], ['storefront_risk high'], 'so that it is known';
    is wait_email($shop, $id, 'held')->{to}, "begun$id\@buyer.example", 'and the email is held';
    is scalar(mails("begun$id\@buyer.example")), 0, 'and not sent';
};

subtest "a risk that can't be found out holds nothing up for ever" => sub {
    my $shop = shop_with_product(token => 'shpat_wrong');
    my ($id) = order_of($shop, fraud_check => $true, customer => { email => 'vain@buyer.example' });
    is wait_lookup($shop, $id)->{status}, 'failed', 'the look-up fails';
    my $order = order($shop, $id);
    is $order->{access}{status}, 'active', 'the order is decided on what is known';
    is_deeply [ signals($order) ], ['risk_unknown low'], 'which it says';
    wait_email($shop, $id, 'sent');

    my $cancelled = number();
    $storefront->order($cancelled,
        answers => [ { status => 429, headers => { 'Retry-After' => 60 } } ]);
    connect_shop($shop, $storefront->url);
    order_of($shop, order => $cancelled, fraud_check => $true,
        customer => { email => 'cancelled@buyer.example' });
    wait_for(sub { $storefront->requests($cancelled) }, 10, 'the call');
    my ($job) = lookups($shop, $cancelled);
    is api('POST', "/jobs/$job->{id}/cancel", key => $shop->{token})->{status}, 200,
        'a look-up is cancelled';
    is_deeply [ signals(order($shop, $cancelled)) ], ['risk_unknown low'],
        'its risk is unknown, too';
    wait_email($shop, $cancelled, 'sent');

    my $unknown = number();
    order_of($shop, order => $unknown, fraud_check => $true,
        customer => { email => 'unknown@buyer.example' });
    is wait_lookup($shop, $unknown)->{status}, 'succeeded',
        'an order that the storefront does not know';
    is_deeply [ signals(order($shop, $unknown)) ], ['risk_unknown low'], 'is of unknown risk';
    wait_email($shop, $unknown, 'sent');
};

subtest 'an order that was decided on meanwhile stays decided' => sub {
    my $shop = shop_with_product();
    my $id   = number();
    $storefront->order($id, risks => ['HIGH'], answers => [ { hold => 1 } ]);
    order_of($shop, order => $id, fraud_check => $true,
        customer => { email => 'decided@buyer.example' });
    wait_for(sub { $storefront->requests($id) }, 10, 'the call');
    is api('POST', "/orders/$id/approve", key => $shop->{token})->{status}, 200, 'it is approved';
    wait_email($shop, $id, 'sent');
    my $approved = order($shop, $id);
    $storefront->release($id);
    wait_lookup($shop, $id);
    my $order = order($shop, $id);
    is $order->{fraud}{decision}, 'approved', 'and stays so';
    is_deeply [ signals($order) ], ['storefront_risk high'], 'the risk is shown';
    cmp_ok $order->{updated_at}, 'gt', $approved->{updated_at}, 'and moves updated_at';
};

subtest "a customer's name that the storefront knows moves updated_at" => sub {
    my $shop = shop_with_product();
    my $id   = number();
    $storefront->customer($id, first_name => 'Zoe');
    $storefront->order($id, risks => ['HIGH'], answers => [ { hold => 1 } ]);
    order_of($shop, order => $id, customer_id => $id, fraud_check => $true,
        customer => { email => 'named@buyer.example' });
    wait_for(sub { $storefront->requests($id) }, 10, 'the call');
    api('POST', "/orders/$id/approve", key => $shop->{token});
    wait_email($shop, $id, 'sent');
    sql("UPDATE orders SET risk_pending = 0 WHERE storefront_order_id = '$id'");
    my $before = order($shop, $id);
    $storefront->release($id);
    wait_lookup($shop, $id);
    my $order = order($shop, $id);
    is $order->{customer}{first_name}, 'Zoe', 'the name is there';
    cmp_ok $order->{updated_at}, 'gt', $before->{updated_at}, 'and the order was updated';
};

subtest 'a risk that is not known yet is waited for' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    my $pending = { data => { customer => undef,
        order => { clientIp => 'nonsense',
            risk => { assessments => [ { riskLevel => 'PENDING' } ] } } } };
    $storefront->order($order, risks => ['LOW'], answers => [ { body => $pending }, {} ]);
    order_of($shop, order => $order, fraud_check => $true,
        customer => { email => 'pending@buyer.example' });
    my $job = wait_lookup($shop, $order);
    is_deeply [ @$job{qw(status attempts)} ], [ 'succeeded', 2 ], 'it is asked for again';
    is_deeply [ signals(order($shop, $order)) ], ['storefront_risk low'], 'until it is there';
};

subtest 'a token that may not read orders still gives the customer' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    my $partly = {
        data => { customer => { defaultEmailAddress => { emailAddress => 'partly@buyer.example' } },
            order => undef },
        errors => [ { path => ['order'], extensions => { code => 'ACCESS_DENIED' } } ],
    };
    $storefront->order($order, answers => [ { body => $partly } ]);
    order_of($shop, order => $order, fraud_check => $true);
    is wait_lookup($shop, $order)->{error}{code}, 'storefront_refused', 'the look-up fails';
    is order($shop, $order)->{customer}{email}, 'partly@buyer.example', 'but the customer is known';
    is wait_email($shop, $order, 'sent')->{to}, 'partly@buyer.example', 'and written to';
};

end_lookups();
