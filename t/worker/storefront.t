# The look-up at a shop's storefront: when it is asked and when not, what its answer does to the
# order and its email, and how invalid answers are treated. The storefront is a mock
# (MDL::Storefront).
#
# once: answers of a storefront are read above the database; storefront_fraud.t has the job on both
use strict;
use warnings;
use utf8;

use JSON::PP;
use MDL::Contract qw(assign is_shape);
use MDL::Lookups;
use MDL::Test;
use Test::More;

my $true = JSON::PP::true();
my ($server, $storefront) = start_lookups();

# --- what it does ---------------------------------------------------------------------------------

subtest 'a customer without data is looked up, and gets the email' => sub {
    my $shop     = shop_with_product();
    my $customer = number();
    $storefront->customer($customer, email => "zoe\@buyer.example ", first_name => "\x{feff}Zoë",
        last_name => 'Müller', locale => 'de-AT');
    my ($order) = order_of($shop, customer_id => $customer);
    my $job = wait_lookup($shop, $order);
    is_shape $job, 'job', 'the look-up among the jobs';
    is $job->{status},              'succeeded', 'it succeeds';
    is $job->{asset_id},            undef,       'it belongs to no asset';
    is $job->{storefront_order_id}, $order,      'but to the order';
    my $email = wait_email($shop, $order, 'sent');
    is $email->{to}, 'zoe@buyer.example', 'the email goes to the address of the storefront';
    my $mail = wait_mail('zoe@buyer.example');
    like $mail->{text}, qr/guide\.pdf/, 'and names the file';
    my $of = order($shop, $order)->{customer};
    is_deeply [ @$of{qw(email first_name last_name locale)} ],
        [ 'zoe@buyer.example', 'Zoë', 'Müller', 'de-AT' ],
        'the order has the customer';
    is_deeply [ map { $_->[0] }
            sql("SELECT locale FROM customer WHERE storefront_customer_id = '$customer'") ],
        ['de-AT'], 'and the language is kept';
    my @requests = $storefront->requests($order);
    is scalar @requests, 1, 'the storefront was asked once';
    my ($request) = @requests;
    is $request->{errors}, undef, 'with a query that its schema allows'
        or diag explain $request->{errors};
    is $request->{method}, 'POST', 'by POST';
    is $request->{path}, '/admin/api/2026-10/graphql.json', 'at the path of the Admin API';
    like $request->{type}, qr{^application/json}, 'as JSON';
    is $request->{token}, 'right', 'with the access token';
    is_deeply $request->{variables},
        {
        customer  => "gid://shopify/Customer/$customer",
        order     => "gid://shopify/Order/$order",
        withOrder => JSON::PP::false(),
        },
        'the ids are variables';
    unlike $request->{query}, qr/$customer|$order/, 'and not in the query';
    is check($shop, $order, 'recipient')->{status}, 'ok', 'the diagnosis finds no fault';
};

subtest 'a guest is known by the order alone' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    $storefront->order($order, email => 'guest@buyer.example', first_name => 'Gus',
        last_name => 'Guest', locale => 'fr');
    order_of($shop, order => $order, customer_id => undef);
    is wait_email($shop, $order, 'sent')->{to}, 'guest@buyer.example', 'the email goes there';
    my $of = order($shop, $order)->{customer};
    is_deeply [ @$of{qw(storefront_customer_id email first_name last_name locale)} ],
        [ undef, 'guest@buyer.example', 'Gus', 'Guest', 'fr' ], 'the order has the guest';
    my ($request) = $storefront->requests($order);
    is $request->{errors}, undef, 'by a query that the schema allows'
        or diag explain $request->{errors};
    is_deeply $request->{variables},
        { order => "gid://shopify/Order/$order", withOrder => JSON::PP::false() },
        'which asks for no customer';
};

subtest 'an address of the storefront that looks mistyped is noted' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    $storefront->order($order, email => 'guest@gmial.com');
    order_of($shop, order => $order, customer_id => undef);
    wait_email($shop, $order, 'sent');
    is_deeply [ (sql("SELECT likely_typo FROM orders WHERE storefront_order_id = '$order'"))[0] ],
        [ [ 'guest@gmial.com' ] ], 'for the overview of the shop';
};

subtest 'names count in characters, and domains beyond ASCII get their email' => sub {
    my $shop     = shop_with_product();
    my $customer = number();
    $storefront->customer($customer, email => 'zoe@bücher.example', first_name => 'Ж' x 100,
        last_name => 'ü' x 101);
    my ($order) = order_of($shop, customer_id => $customer);
    wait_email($shop, $order, 'sent');
    ok wait_mail('zoe@xn--bcher-kva.example'), 'the email arrives';
    my $of = order($shop, $order)->{customer};
    is_deeply [ @$of{qw(email first_name last_name)} ],
        [ 'zoe@xn--bcher-kva.example', 'Ж' x 100, undef ],
        'a name of 100 characters is taken, one of 101 is not';
    my ($same) = order_of($shop, customer_id => $customer,
        customer => { email => 'zoe@bücher.example' });
    is order($shop, $same)->{customer}{email}, 'zoe@xn--bcher-kva.example',
        'a request gives the same address';
    my $found = api('GET', '/orders?email=zoe@b%C3%BCcher.example', key => $shop->{token})
        ->{json}{data};
    is scalar @$found, 2, 'and its orders are found by either form';
};

subtest 'no call is made where none is needed' => sub {
    my $shop = shop_with_product();
    my ($told) = order_of($shop, customer => { email => 'told@buyer.example' });
    wait_email($shop, $told, 'sent');
    my ($nameless) = order_of($shop, customer => { first_name => 'Ann' });
    is wait_email($shop, $nameless, 'no_recipient')->{to}, undef,
        'a customer named without an address gets no email';
    my ($silent) = order_of($shop, send_email => JSON::PP::false());
    my $known = number();
    order_of($shop, customer_id => $known, customer => { email => 'known@buyer.example' });
    my ($again) = order_of($shop, customer_id => $known);
    is wait_email($shop, $again, 'sent')->{to}, 'known@buyer.example',
        'a customer with an address gets the email';
    my $other = shop_with_product(url => undef);
    my ($alone) = order_of($other);
    is wait_email($other, $alone, 'no_recipient')->{last_error}, undef,
        "a shop without a storefront can't look anything up";
    is check($other, $alone, 'recipient')->{status}, 'fail', 'and the diagnosis says so';
    is_deeply [ map { lookups($shop, $_) } $told, $nameless, $silent, $again ], [],
        'there is no job';
    is_deeply [ lookups($other, $alone) ], [], 'nor one of the other shop';
    is_deeply [ map { $storefront->requests($_) } $told, $nameless, $silent, $again, $alone ], [],
        'and the storefront was not asked';
};

subtest 'what the shop has given stays' => sub {
    my $shop = shop_with_product();
    my $customer = number();
    $storefront->customer($customer, email => 'theirs@buyer.example', first_name => 'Theirs',
        last_name => 'Last');
    order_of($shop, customer_id => $customer, send_email => JSON::PP::false(),
        customer => { first_name => 'Ours' });
    my ($order) = order_of($shop, customer_id => $customer);
    wait_email($shop, $order, 'sent');
    my $of = order($shop, $order)->{customer};
    is_deeply [ @$of{qw(email first_name last_name)} ], [ 'theirs@buyer.example', 'Ours', 'Last' ],
        'the storefront fills in what is missing';
};

subtest 'an email waits for the address, and the order says so' => sub {
    my $shop     = shop_with_product();
    my $order    = number();
    my $customer = number();
    $storefront->customer($customer, email => 'late@buyer.example');
    $storefront->order($order, answers => [ { hold => 1 } ]);
    order_of($shop, order => $order, customer_id => $customer);
    wait_for(sub { $storefront->requests($order) }, 10, 'the call');
    my $email = order($shop, $order)->{email};
    is_deeply [ @$email{qw(status to)} ], [ 'queued', undef ],
        'it is queued, without a recipient yet';
    is check($shop, $order, 'recipient')->{status}, 'warn',
        'the diagnosis: the recipient is asked for';
    like check($shop, $order, 'email')->{message}, qr/waits for the customer's address/,
        'and the email waits';
    my $reply = assign($shop, $order, [ $shop->{product} ], send_email => $true,
        storefront_customer_id => $customer);
    is $reply->{status}, 200, 'the same is assigned again';
    is scalar lookups($shop, $order), 1, 'which makes no second look-up';
    $storefront->release($order);
    wait_email($shop, $order, 'sent');
    is scalar(mails('late@buyer.example')), 1, 'one email is sent';
    is scalar $storefront->requests($order), 1, 'after one call';
};

subtest 'an address that the shop gives meanwhile is used at once' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    $storefront->order($order, answers => [ { hold => 1 } ]);
    my (undef, $customer) = order_of($shop, order => $order);
    wait_for(sub { $storefront->requests($order) }, 10, 'the call');
    order_of($shop, order => $order, customer_id => $customer,
        customer => { email => 'sooner@buyer.example' });
    wait_email($shop, $order, 'sent');
    is scalar(mails('sooner@buyer.example')), 1, 'the email goes there without waiting';
    $storefront->release($order);
    is wait_lookup($shop, $order)->{status}, 'succeeded', 'the look-up ends';
    is order($shop, $order)->{email}{to}, 'sooner@buyer.example', 'and changes nothing';
    is scalar(mails('sooner@buyer.example')), 1, 'there is one email';
};

# --- nobody to write to ---------------------------------------------------------------------------

subtest 'the order says that its customer has no address' => sub {
    my $shop = shop_with_product();
    my %customers = (
        unknown   => undef,
        nameless  => {},
        malformed => { email => 'not an address' },
        injected  => { email => "a\@b.example\r\nBcc: c\@d.example" },
        many      => { email => 'a@b.example, c@d.example' },
        long      => { email => ('a' x 300) . '@b.example' },
    );
    for my $name (sort keys %customers) {
        my $customer = number();
        $storefront->customer($customer, %{ $customers{$name} }) if $customers{$name};
        my ($order) = order_of($shop, customer_id => $customer);
        is wait_lookup($shop, $order)->{status}, 'succeeded', "$name: the look-up succeeds";
        my $email = wait_email($shop, $order, 'no_recipient');
        like $email->{last_error}, qr/knows no email address/, "$name: the order says why";
        is $email->{to}, undef, "$name: there is no address";
        is_deeply [ @{ check($shop, $order, 'recipient') }{qw(status)} ], ['fail'],
            "$name: the diagnosis too";
    }
};

subtest 'an order whose customer gets an address later is looked up again when it '
    . 'is assigned again' => sub {
    my $shop = shop_with_product();
    my ($order, $customer) = order_of($shop);
    wait_email($shop, $order, 'no_recipient');
    $storefront->customer($customer, email => 'second@buyer.example');
    order_of($shop, order => $order, customer_id => $customer);
    is wait_email($shop, $order, 'sent')->{to}, 'second@buyer.example', 'and the email is sent';
};

# --- a storefront that does not answer at once ----------------------------------------------------

my %patient = (
    'a storefront that throttles by HTTP' =>
        [ { status => 429, headers => { 'Retry-After' => 1 } } ],
    'a storefront that throttles by GraphQL' => [
        {
            body => {
                errors => [ { message => 'Throttled', extensions => { code => 'THROTTLED' } } ],
                extensions => {
                    cost => {
                        requestedQueryCost => 4,
                        actualQueryCost    => undef,
                        throttleStatus =>
                            { maximumAvailable => 2000.0, currentlyAvailable => 1,
                                restoreRate => 2.5 },
                    },
                },
            },
        },
    ],
    'a storefront with an error of its own' => [ { status => 503 }, { status => 500 } ],
    'a storefront whose answer is cut'      => [ { cut => 1 } ],
    'a storefront that fails in GraphQL' =>
        [ { body => { errors => [ { extensions => { code => 'INTERNAL_SERVER_ERROR' } } ] } } ],
);

sub is_asked_again
{
    my (@answers) = @_;
    my $shop      = shop_with_product();
    my $order     = number();
    my $customer  = number();
    $storefront->customer($customer, email => "a$customer\@buyer.example");
    $storefront->order($order, answers => [ @answers, {} ]);
    order_of($shop, order => $order, customer_id => $customer);
    my $job = wait_lookup($shop, $order);
    is $job->{status},   'succeeded',  'it succeeds in the end';
    is $job->{error},    undef,        'and nothing is left of the error';
    wait_email($shop, $order, 'sent');
    is scalar(mails("a$customer\@buyer.example")), 1, 'the email is sent once';
    return $job->{attempts};
}

for my $name (sort keys %patient) {
    subtest "$name is asked again" => sub {
        my @answers = @{ $patient{$name} };
        is is_asked_again(@answers), @answers + 1, 'in as many attempts as it took';
    };
}

# Only here the service has little patience: elsewhere each request that the storefront gets counts.
subtest 'a storefront that is too slow is asked again' => sub {
    my $extra = $server->{extra};
    $server->configure(extra => $extra
            . join '', map { "DownloadsIngest${_}Timeout 5\n" } '', 'Connect', 'Stall');
    httpd_restart();
    cmp_ok is_asked_again({ hold => 1 }), '>=', 2, 'in another attempt';
    $server->configure(extra => $extra);
    httpd_restart();
};

subtest 'throttling is waited for as long as the storefront says' => sub {
    my $shop = shop_with_product();
    my %answers = (
        60   => { status => 429, headers => { 'Retry-After' => 60 } },
        3600 => { status => 429, headers => { 'Retry-After' => 99999999999 } },
        30   => {
            body => {
                errors     => [ { message => 'Throttled' } ],
                extensions => {
                    cost => {
                        requestedQueryCost => 400,
                        throttleStatus     => { currentlyAvailable => 100, restoreRate => 10.0 },
                    },
                },
            },
        },
    );
    for my $seconds (sort { $a <=> $b } keys %answers) {
        my $order = number();
        $storefront->order($order, answers => [ $answers{$seconds} ]);
        order_of($shop, order => $order);
        my $job = wait_for(
            sub {
                my ($found) = lookups($shop, $order);
                $found->{attempts} && $found->{status} eq 'queued' && $found;
            },
            10,
            'the first attempt'
        );
        is $job->{error}{code}, 'storefront_throttled', "$seconds s: the job says why it waits";
        my ($row) = sql("SELECT due_at, started_at FROM job WHERE id = '$job->{id}'");
        my ($due, $started) = map { $_ / 1_000_000 } @$row;
        ok $due >= $started + $seconds && $due < time + 1 + $seconds,
            "$seconds s: it waits that long" or diag "$started, $due";
        like check($shop, $order, 'recipient')->{message}, qr/asked again/, 'the diagnosis says so';
        my $reply = api('POST', "/jobs/$job->{id}/cancel", key => $shop->{token});
        is $reply->{status}, 200, "$seconds s: the waiting can be ended";
        my $email = wait_email($shop, $order, 'no_recipient');
        like $email->{last_error}, qr/cancelled/, "$seconds s: which the order's events say";
    }
};

# --- a storefront that says no --------------------------------------------------------------------

my $denied = {
    data   => { customer => undef },
    errors => [
        {
            message    => 'Access denied for customer field.',
            path       => ['customer'],
            extensions => { code => 'ACCESS_DENIED' },
        }
    ],
};
my %refusals = (
    'a storefront that is not authorized' => [ { status => 403, body => { errors => 'no' } },
        'storefront_refused' ],
    'a token that may not read customers' => [ { body => $denied }, 'storefront_refused' ],
    'a shop that is frozen' => [ { status => 402, body => { errors => 'x' } },
        'storefront_refused' ],
    'a query that is not understood' =>
        [ { body => { errors => [ { message => 'x' } ] } }, 'storefront_refused' ],
    'a URL without the API' => [ { status => 404, body => 'no' }, 'storefront_not_found' ],
);
for my $name (sort keys %refusals) {
    subtest "$name is not asked again" => sub {
        my ($answer, $code) = @{ $refusals{$name} };
        my $shop  = shop_with_product();
        my $order = number();
        $storefront->order($order, answers => [$answer]);
        order_of($shop, order => $order);
        my $job = wait_lookup($shop, $order);
        is $job->{status},      'failed', 'the look-up fails';
        is $job->{attempts},    1,        'at once';
        is $job->{error}{code}, $code,    'with its code';
        is wait_email($shop, $order, 'no_recipient')->{last_error}, $job->{error}{message},
            'the order has the reason';
        my $check = check($shop, $order, 'recipient');
        is $check->{status}, 'fail', 'so has the diagnosis';
        like $check->{message}, qr/\Q$job->{error}{message}\E/, 'in the same words';
    };
}

subtest 'a wrong token is reported, and the look-up goes on once there is a right one' => sub {
    my $shop = shop_with_product(token => 'shpat_wrong');
    my $customer = number();
    $storefront->customer($customer, email => 'patient@buyer.example');
    my ($order) = order_of($shop, customer_id => $customer);
    my $job = wait_lookup($shop, $order);
    is $job->{error}{code}, 'storefront_refused', 'the job says that the token is refused';
    like wait_email($shop, $order, 'no_recipient')->{last_error}, qr/access token/,
        'so does the order';
    my ($code) = ctl('shop', 'set', $shop->{shop_id}, '--storefront-token-file',
        $storefront->token_file);
    is $code, 0, 'the operator sets another token';
    my $reply = api('POST', "/jobs/$job->{id}/retry", key => $shop->{token});
    is $reply->{status}, 202, 'the shop tries the job again';
    is wait_email($shop, $order, 'sent')->{to}, 'patient@buyer.example', 'the email is sent';
    is wait_job($shop, $job->{id})->{status}, 'succeeded', 'and the job succeeds';
};

subtest 'after invalid answers the look-up is given up in the end' => sub {
    my $shop = shop_with_product();
    my %bodies = (
        empty           => { body => '' },
        html            => { body => '<!doctype html><title>Log in</title>' },
        list            => { body => [] },
        'without data'  => { body => {} },
        'null data'     => { body => { data => undef } },
        'a number'      => { body => { data => { customer => 5 } } },
        'a list'        => { body => { data => { customer => [] } } },
        'a wrong email' =>
            { body => { data => { customer => { defaultEmailAddress => 'x@y.example' } } } },
        'an email that is a number' =>
            { body =>
                { data => { customer => { defaultEmailAddress => { emailAddress => 5 } } } } },
        'a name that is an object' => { body => { data => { customer => { firstName => {} } } } },
        deep  => { body => '[' x 100_000 },
        huge  => { body => 'x' x 1000, repeat => 2000 },
        'bad bytes' => { body => "{\"data\":{\"customer\":{\"firstName\":\"\\u0000\"}}}" },
        redirect => { status => 307, headers => { Location => $storefront->url . '/other' } },
    );
    my %orders;
    for my $name (sort keys %bodies) {
        my $order = $orders{$name} = number();
        $storefront->order($order, answers => [ $bodies{$name} ]);
        order_of($shop, order => $order);
    }
    for my $name (sort keys %bodies) {
        my $job = wait_lookup($shop, $orders{$name});
        is $job->{status},      'failed',             "$name: the look-up fails";
        is $job->{error}{code}, 'storefront_invalid', "$name: because the answer is invalid";
        is $job->{attempts}, $job->{max_attempts}, "$name: after all attempts";
        wait_email($shop, $orders{$name}, 'no_recipient');
    }
    is_deeply [ grep { $_->{path} !~ /graphql/ } $storefront->requests ], [],
        'no redirect was followed';
};

# --- the end of the background process ------------------------------------------------------------

subtest 'a call is made again if the background process was killed during it' => sub {
    my $shop     = shop_with_product();
    my $order    = number();
    my $customer = number();
    $storefront->customer($customer, email => 'survivor@buyer.example');
    $storefront->order($order, answers => [ { hold => 1 }, {} ]);
    order_of($shop, order => $order, customer_id => $customer);
    wait_for(sub { $storefront->requests($order) }, 10, 'the call');
    kill KILL => worker_pids();
    is wait_lookup($shop, $order)->{status}, 'succeeded', 'its successor asks again';
    is wait_email($shop, $order, 'sent')->{to}, 'survivor@buyer.example', 'the email is sent';
    is scalar(mails('survivor@buyer.example')), 1, 'once';
    $storefront->release($order);
};

end_lookups();
