# The look-up at a shop's storefront: when it is asked and when not, what its answer does to the
# order and its email, and what becomes of answers that are none.  The storefront is a mock, see
# MDL::Storefront.
use strict;
use warnings;
use utf8;

use JSON::PP;
use MDL::Contract qw(assign is_answer is_shape is_error mapping_of ready_asset);
use MDL::Instance;
use MDL::Storefront;
use MDL::Test;
use Test::More;

my $true = JSON::PP::true();
binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsRetryDelay 1
DownloadsPollInterval 1
DownloadsIngestConnectTimeout 1
DownloadsIngestStallTimeout 1
DownloadsIngestTimeout 2
END
my $storefront = MDL::Storefront->new;

sub connect_shop
{
    my ($shop, $url, $token) = @_;
    my ($code, undef, $text) = ctl('shop', 'set', $shop->{shop_id}, '--storefront', $url,
        '--storefront-token-file', $storefront->token_file($token));
    die "shop set: $text" if $code != 0;
    return $shop;
}

# A shop with a product; connected unless url => undef.
sub shop_with_product
{
    my (%opt) = (url => $storefront->url, @_);
    my $shop  = new_shop();
    my $asset = ready_asset($shop, 'guide.pdf', 'the bytes of a guide');
    $shop->{product} = mapping_of($shop, [ $asset->{id} ])->{storefront_product_id};
    connect_shop($shop, $opt{url}, $opt{token}) if defined $opt{url};
    return $shop;
}

my $numbers = 0;
sub number { return sprintf '%d%05d', $$, ++$numbers }

# Assigns the product to a new order of a new customer; returns (order, customer).
sub order_of
{
    my ($shop, %opt) = @_;
    my $order    = delete $opt{order}    // number();
    my $customer = delete $opt{customer_id} // number();
    my $reply    = assign($shop, $order, [ $shop->{product} ], send_email => $true,
        storefront_customer_id => $customer, %opt);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[01]$/;
    return ($order, $customer);
}

sub order { my ($shop, $id) = @_; return api('GET', "/orders/$id", key => $shop->{token})->{json} }

sub check
{
    my ($shop, $order, $name) = @_;
    my $reply = api('GET', "/orders/$order/diagnosis", key => $shop->{token});
    my ($check) = grep { $_->{name} eq $name } @{ $reply->{json}{checks} };
    return $check;
}

# The look-ups of an order, newest first.
sub lookups
{
    my ($shop, $order) = @_;
    my $jobs = api('GET', '/jobs?limit=100', key => $shop->{token})->{json}{data};
    return grep { $_->{type} eq 'storefront_lookup' && $_->{storefront_order_id} eq $order } @$jobs;
}

sub wait_lookup
{
    my ($shop, $order) = @_;
    my ($job) = lookups($shop, $order);
    return wait_job($shop, $job->{id});
}

sub wait_email
{
    my ($shop, $order, $status) = @_;
    my $email;
    eval {
        wait_for(sub { $email = order($shop, $order)->{email}; $email->{status} eq $status },
            20, "the email of $order to be $status");
    } or diag $@, explain $email;
    return $email;
}

# --- what it does ---------------------------------------------------------------------------------

subtest 'a customer whom nobody told of is looked up, and gets the email' => sub {
    my $shop     = shop_with_product();
    my $customer = number();
    $storefront->customer($customer, email => 'zoe@buyer.example', first_name => 'Zoë',
        last_name => 'Müller', locale => 'de-AT');
    my ($order) = order_of($shop, customer_id => $customer);
    my $job = wait_lookup($shop, $order);
    is_shape $job, 'job', 'the look-up among the jobs';
    is $job->{status},              'succeeded', 'it succeeds';
    is $job->{asset_id},            undef,       'it is of no asset';
    is $job->{storefront_order_id}, $order,      'but of the order';
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
    is check($shop, $order, 'recipient')->{status}, 'ok', 'the diagnosis is content';
};

subtest 'no call is made where nothing is to be known' => sub {
    my $shop = shop_with_product();
    my ($told) = order_of($shop, customer => { email => 'told@buyer.example' });
    wait_email($shop, $told, 'sent');
    my ($nameless) = order_of($shop, customer => { first_name => 'Ann' });
    is wait_email($shop, $nameless, 'no_recipient')->{to}, undef,
        'a customer without an address has none';
    my ($silent) = order_of($shop, send_email => JSON::PP::false());
    my $known = number();
    order_of($shop, customer_id => $known, customer => { email => 'known@buyer.example' });
    my ($again) = order_of($shop, customer_id => $known);
    is wait_email($shop, $again, 'sent')->{to}, 'known@buyer.example', 'who is known is written to';
    my $other = shop_with_product(url => undef);
    my ($alone) = order_of($other);
    is wait_email($other, $alone, 'no_recipient')->{last_error}, undef,
        'a shop without a storefront has nobody to ask';
    is check($other, $alone, 'recipient')->{status}, 'fail', 'and the diagnosis says so';
    is_deeply [ map { lookups($shop, $_) } $told, $nameless, $silent, $again ], [], 'there is no job';
    is_deeply [ lookups($other, $alone) ], [], 'nor one of the other shop';
    is_deeply [ map { $storefront->requests($_) } $told, $nameless, $silent, $again, $alone ], [],
        'and the storefront was not asked';
};

subtest 'what the shop has said stays' => sub {
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
    is_deeply [ @$email{qw(status to)} ], [ 'queued', undef ], 'it is queued, to nobody yet';
    is check($shop, $order, 'recipient')->{status}, 'warn', 'the diagnosis: the recipient is asked for';
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
    is scalar(mails('sooner@buyer.example')), 1, 'it is written to without waiting';
    $storefront->release($order);
    is wait_lookup($shop, $order)->{status}, 'succeeded', 'the look-up ends';
    is order($shop, $order)->{email}{to}, 'sooner@buyer.example', 'and changes nothing';
    is scalar(mails('sooner@buyer.example')), 1, 'there is one email';
};

# --- nobody to write to ---------------------------------------------------------------------------

subtest 'who has no address is named so on the order' => sub {
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

subtest 'an order whose customer gets an address later is looked up again when it is assigned again' => sub {
    my $shop = shop_with_product();
    my ($order, $customer) = order_of($shop);
    wait_email($shop, $order, 'no_recipient');
    $storefront->customer($customer, email => 'second@buyer.example');
    order_of($shop, order => $order, customer_id => $customer);
    is wait_email($shop, $order, 'sent')->{to}, 'second@buyer.example', 'and the email is sent';
};

# --- a storefront that does not answer at once ----------------------------------------------------

my %patient = (
    'a storefront that throttles by HTTP' => [ { status => 429, headers => { 'Retry-After' => 1 } } ],
    'a storefront that throttles by GraphQL' => [
        {
            body => {
                errors => [ { message => 'Throttled', extensions => { code => 'THROTTLED' } } ],
                extensions => {
                    cost => {
                        requestedQueryCost => 4,
                        actualQueryCost    => undef,
                        throttleStatus =>
                            { maximumAvailable => 2000.0, currentlyAvailable => 1, restoreRate => 2.5 },
                    },
                },
            },
        },
    ],
    'a storefront with an error of its own' => [ { status => 503 }, { status => 500 } ],
    'a storefront whose answer is cut'      => [ { cut => 1 } ],
    'a storefront that is too slow'         => [ { hold => 1 } ],
    'a storefront that fails in GraphQL' =>
        [ { body => { errors => [ { extensions => { code => 'INTERNAL_SERVER_ERROR' } } ] } } ],
);
for my $name (sort keys %patient) {
    subtest "$name is asked again" => sub {
        my $shop     = shop_with_product();
        my $order    = number();
        my $customer = number();
        my @answers  = @{ $patient{$name} };
        $storefront->customer($customer, email => "a$customer\@buyer.example");
        $storefront->order($order, answers => [ @answers, {} ]);
        order_of($shop, order => $order, customer_id => $customer);
        my $job = wait_lookup($shop, $order);
        is $job->{status},   'succeeded',  'it succeeds in the end';
        is $job->{attempts}, @answers + 1, 'in as many attempts as it took';
        is $job->{error},    undef,        'and nothing is left of the error';
        wait_email($shop, $order, 'sent');
        is scalar(mails("a$customer\@buyer.example")), 1, 'the email is sent once';
    };
}

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
                $found->{attempts} == 1 && $found->{status} eq 'queued' && $found;
            },
            10,
            'the first attempt'
        );
        is $job->{error}{code}, 'storefront_throttled', "$seconds s: the job says why it waits";
        my ($row) = sql("SELECT due_at - started_at FROM job WHERE id = '$job->{id}'");
        my $waits = $row->[0] / 1_000_000;
        ok $waits >= $seconds && $waits < $seconds + 20, "$seconds s: it waits that long"
            or diag $waits;
        like check($shop, $order, 'recipient')->{message}, qr/asked again/, 'the diagnosis says so';
        my $reply = api('POST', "/jobs/$job->{id}/cancel", key => $shop->{token});
        is $reply->{status}, 200, "$seconds s: the waiting can be ended";
        my $email = wait_email($shop, $order, 'no_recipient');
        like $email->{last_error}, qr/cancelled/, "$seconds s: which the order tells";
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
    'a storefront that is not authorized' => [ { status => 403, body => { errors => 'no' } }, 'storefront_refused' ],
    'a token that may not read customers' => [ { body => $denied }, 'storefront_refused' ],
    'a shop that is frozen' => [ { status => 402, body => { errors => 'x' } }, 'storefront_refused' ],
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

subtest 'a wrong token is told, and the look-up goes on once there is a right one' => sub {
    my $shop = shop_with_product(token => 'shpat_wrong');
    my $customer = number();
    $storefront->customer($customer, email => 'patient@buyer.example');
    my ($order) = order_of($shop, customer_id => $customer);
    my $job = wait_lookup($shop, $order);
    is $job->{error}{code}, 'storefront_refused', 'the job says that the token is refused';
    like wait_email($shop, $order, 'no_recipient')->{last_error}, qr/access token/, 'so does the order';
    my ($code) = ctl('shop', 'set', $shop->{shop_id}, '--storefront-token-file',
        $storefront->token_file);
    is $code, 0, 'the operator sets another token';
    my $reply = api('POST', "/jobs/$job->{id}/retry", key => $shop->{token});
    is $reply->{status}, 202, 'the shop tries the job again';
    is wait_email($shop, $order, 'sent')->{to}, 'patient@buyer.example', 'the email is sent';
    is wait_job($shop, $job->{id})->{status}, 'succeeded', 'and the job succeeds';
};

subtest 'what is no answer of this API is given up in the end' => sub {
    my $shop = shop_with_product();
    my %bodies = (
        empty           => { body => '' },
        html            => { body => '<!doctype html><title>Log in</title>' },
        list            => { body => [] },
        'without data'  => { body => {} },
        'null data'     => { body => { data => undef } },
        'a number'      => { body => { data => { customer => 5 } } },
        'a list'        => { body => { data => { customer => [] } } },
        'a wrong email' => { body => { data => { customer => { defaultEmailAddress => 'x@y.example' } } } },
        'an email that is a number' =>
            { body => { data => { customer => { defaultEmailAddress => { emailAddress => 5 } } } } },
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
        is $job->{error}{code}, 'storefront_invalid', "$name: for it is no answer";
        is $job->{attempts}, $job->{max_attempts}, "$name: after all attempts";
        wait_email($shop, $orders{$name}, 'no_recipient');
    }
    is_deeply [ grep { $_->{path} !~ /graphql/ } $storefront->requests ], [],
        'no redirect was followed';
};

# --- the connection -------------------------------------------------------------------------------

subtest 'the connection is made by the operator, and its token is never seen again' => sub {
    my $shop = new_shop();
    my @set  = ('shop', 'set', $shop->{shop_id});
    my $file = $storefront->token_file('shpat_very-secret');
    my ($code, $json, $text) = ctl(@set, '--storefront', 'https://shop.example/',
        '--storefront-token-file', $file);
    is $code, 0, 'URL and token are set' or diag $text;
    is $json->{storefront_url}, 'https://shop.example', 'the URL is shown, without a slash';
    unlike $text, qr/secret|shpat|token/, 'the token is not';
    (undef, $json, $text) = ctl('shop', 'list');
    my ($listed) = grep { $_->{id} == $shop->{shop_id} } @$json;
    is $listed->{storefront_url}, 'https://shop.example', 'shop list has the URL';
    unlike $text, qr/very-secret|shpat|token/, 'and no token';
    my ($row) = sql("SELECT storefront_token FROM shop WHERE id = $shop->{shop_id}");
    unlike $row->[0], qr/very-secret/, 'the database has it sealed';
    for my $faulty (
        [ 'a new URL without a token', '--storefront', 'https://other.example' ],
        [ 'no URL',      '--storefront', 'shop',                       '--storefront-token-file', $file ],
        [ 'a query',     '--storefront', 'https://shop.example/?x=1',  '--storefront-token-file', $file ],
        [ 'an IP',       '--storefront', 'https://127.0.0.1',          '--storefront-token-file', $file ],
        [ 'a user',      '--storefront', 'https://a:b@shop.example',   '--storefront-token-file', $file ],
        [ 'another scheme', '--storefront', 'ftp://shop.example',      '--storefront-token-file', $file ],
        [ 'no token', '--storefront-token-file', '/dev/null' ],
        [ 'a token with a line end', '--storefront-token-file', $storefront->token_file("a\nb") ],
    ) {
        my ($name, @arguments) = @$faulty;
        $storefront->token_file($name =~ /line end/ ? "a\nb" : 'shpat_very-secret');
        ($code, $json, $text) = ctl(@set, @arguments);
        is $code, 5, "$name is refused" or diag $text;
        unlike $text, qr/shpat/, "$name: the token is not repeated";
    }
    ($code, undef, $text) = ctl(@set, '--storefront-token-file', '/nowhere');
    is $code, 1, 'a file that is not there is a mistake of usage' or diag $text;
    ($code, $json) = ctl(@set, '--storefront', '');
    is_deeply [ $code, $json->{storefront_url} ], [ 0, undef ], 'an empty URL ends the connection';
    ($row) = sql("SELECT count(*) FROM shop WHERE id = $shop->{shop_id}
        AND storefront_url IS NULL AND storefront_token IS NULL");
    is $row->[0], 1, 'and nothing of it is left';
    ($code) = ctl(@set, '--storefront-token-file', $file);
    is $code, 5, 'a token alone makes none';
};

subtest 'a token that was moved or sealed with another secret is not used' => sub {
    my ($one, $two) = (shop_with_product(), shop_with_product());
    sql("UPDATE shop SET storefront_token = (SELECT o.storefront_token FROM shop o
        WHERE o.id = $one->{shop_id}) WHERE id = $two->{shop_id}");
    my ($order) = order_of($two);
    my $job = wait_lookup($two, $order);
    is $job->{error}{code}, 'storefront_token_unreadable', 'that of another shop';
    like $job->{error}{message}, qr/operator has to set it anew/, 'with what is to be done';
    like error_log_since(0), qr/MDL0360.*downloadsctl shop set/, 'the log tells the operator';
    sql("UPDATE shop SET storefront_url = 'https://elsewhere.example' WHERE id = $one->{shop_id}");
    ($order) = order_of($one);
    is wait_lookup($one, $order)->{error}{code}, 'storefront_token_unreadable',
        'nor with another URL than its own';
    is_deeply [ $storefront->requests($order) ], [], 'nobody was called';
};

subtest 'a connection that was ended is not used' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    $storefront->order($order, answers => [ { status => 429, headers => { 'Retry-After' => 1 } } ]);
    order_of($shop, order => $order);
    wait_for(sub { $storefront->requests($order) }, 10, 'the first call');
    ctl('shop', 'set', $shop->{shop_id}, '--storefront', '');
    my $job = wait_lookup($shop, $order);
    is $job->{error}{code}, 'storefront_not_connected', 'the look-up ends';
    wait_email($shop, $order, 'no_recipient');
};

subtest 'a storefront whose name leads to a private network is not called' => sub {
    my $guarded = MDL::Instance->new(
        without => qr/^DownloadsIngestAllowNetwork/,
        extra   => "DownloadsRetryDelay 1\n"
    )->start;
    my $shop = new_shop();
    my $asset = api('POST', '/mappings', key => $shop->{token},
        json => { storefront_product_id => 'gid://shopify/Product/1' });
    $shop->{product} = 'gid://shopify/Product/1';
    connect_shop($shop, $storefront->url);
    my ($order) = order_of($shop);
    my $job = wait_lookup($shop, $order);
    is $job->{error}{code}, 'storefront_address_forbidden', 'the look-up fails';
    unlike $job->{error}{message}, qr/127|::1/, 'without telling the address';
    is_deeply [ $storefront->requests($order) ], [], 'and nobody was called';
    $guarded->stop;
    $server->aim;
};

subtest 'over TLS the certificate has to be one that is trusted' => sub {
    my $shop     = shop_with_product(url => $storefront->secure_url);
    my $customer = number();
    $storefront->customer($customer, email => 'secure@buyer.example');
    my ($order) = order_of($shop, customer_id => $customer);
    is wait_lookup($shop, $order)->{error}{code}, 'storefront_unavailable',
        'one that nobody vouches for is refused';
    is_deeply [ $storefront->requests($order) ], [], 'before the token is sent';
    $server->configure(extra => "$server->{extra}DownloadsStorefrontCAFile "
            . $storefront->certificate . "\n");
    httpd_restart();
    my ($job) = lookups($shop, $order);
    is api('POST', "/jobs/$job->{id}/retry", key => $shop->{token})->{status}, 202, 'tried again';
    is wait_email($shop, $order, 'sent')->{to}, 'secure@buyer.example',
        'one that DownloadsStorefrontCAFile has is trusted';
    my ($request) = $storefront->requests($order);
    ok $request->{secure}, 'and the call goes over TLS';
};

# --- the fraud check ------------------------------------------------------------------------------

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

subtest 'a fraud check without an address waits for both' => sub {
    my $shop = shop_with_product();
    my ($good, $bad) = (number(), number());
    $storefront->customer($_, email => "both$_\@buyer.example") for $good, $bad;
    $storefront->order($good, risks => ['LOW']);
    $storefront->order($bad,  risks => ['HIGH']);
    order_of($shop, order => $_, customer_id => $_, fraud_check => $true) for $good, $bad;
    is wait_email($shop, $good, 'sent')->{to}, "both$good\@buyer.example", 'a good one is sent';
    wait_lookup($shop, $bad);
    is wait_email($shop, $bad, 'held')->{to}, "both$bad\@buyer.example", 'another has its address';
    my $reply = api('POST', "/orders/$bad/approve", key => $shop->{token});
    is $reply->{status}, 200, 'and once it is approved';
    wait_email($shop, $bad, 'sent');
    is scalar(mails("both$bad\@buyer.example")), 1, 'is sent as well';
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

subtest 'a risk that can not be had holds nothing up for ever' => sub {
    my $shop = shop_with_product(token => 'shpat_wrong');
    my ($id) = order_of($shop, fraud_check => $true, customer => { email => 'vain@buyer.example' });
    is wait_lookup($shop, $id)->{status}, 'failed', 'the look-up fails';
    my $order = order($shop, $id);
    is $order->{access}{status}, 'active', 'the order is decided on what is known';
    is_deeply [ signals($order) ], ['risk_unknown low'], 'which it says';
    wait_email($shop, $id, 'sent');

    my $cancelled = number();
    $storefront->order($cancelled, answers => [ { status => 429, headers => { 'Retry-After' => 60 } } ]);
    connect_shop($shop, $storefront->url);
    order_of($shop, order => $cancelled, fraud_check => $true,
        customer => { email => 'cancelled@buyer.example' });
    wait_for(sub { $storefront->requests($cancelled) }, 10, 'the call');
    my ($job) = lookups($shop, $cancelled);
    is api('POST', "/jobs/$job->{id}/cancel", key => $shop->{token})->{status}, 200,
        'a look-up is cancelled';
    is_deeply [ signals(order($shop, $cancelled)) ], ['risk_unknown low'], 'which is the same';
    wait_email($shop, $cancelled, 'sent');

    my $unknown = number();
    order_of($shop, order => $unknown, fraud_check => $true,
        customer => { email => 'unknown@buyer.example' });
    is wait_lookup($shop, $unknown)->{status}, 'succeeded', 'an order that the storefront has not';
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
    $storefront->release($id);
    wait_lookup($shop, $id);
    is order($shop, $id)->{fraud}{decision}, 'approved', 'and stays so';
    wait_email($shop, $id, 'sent');
};

subtest 'a risk that is not known yet is waited for' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    my $pending = { data => { customer => undef,
        order => { clientIp => 'nonsense', risk => { assessments => [ { riskLevel => 'PENDING' } ] } } } };
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

# --- the end of the background process ------------------------------------------------------------

subtest 'a background process that is killed within a call leaves nothing behind' => sub {
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

# --- secrecy --------------------------------------------------------------------------------------

subtest 'no token is anywhere' => sub {
    my @tokens = ($storefront->token, 'shpat_wrong', 'shpat_very-secret');
    for my $path (glob "$server->{folder}/*log* $server->{folder}/downloads.db*") {
        my $text = MDL::Test::slurp($path);
        is_deeply [ grep { index($text, $_) >= 0 } @tokens ], [],
            'not in ' . $path =~ s{.*/}{}r;
    }
};

$server->stop;
done_testing;
