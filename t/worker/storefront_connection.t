# A shop's connection to its storefront: how the operator makes and ends it, that its token is
# sealed, and which host the service calls.
#
# once: which host is called is decided above the database
use strict;
use warnings;

use MDL::Instance;
use MDL::Lookups;
use MDL::Test;
use Test::More;

my ($server, $storefront) = start_lookups();

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
        [ 'no URL',      '--storefront', 'shop',                       '--storefront-token-file',
            $file ],
        [ 'a query',     '--storefront', 'https://shop.example/?x=1',  '--storefront-token-file',
            $file ],
        [ 'an IP',       '--storefront', 'https://127.0.0.1',          '--storefront-token-file',
            $file ],
        [ 'a user',      '--storefront', 'https://a:b@shop.example',   '--storefront-token-file',
            $file ],
        [ 'another scheme', '--storefront', 'ftp://shop.example',      '--storefront-token-file',
            $file ],
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
    is $code, 5, 'a token alone makes no connection';
};

subtest 'a token that was moved or sealed with another secret is not used' => sub {
    my ($one, $two) = (shop_with_product(), shop_with_product());
    sql("UPDATE shop SET storefront_token = (SELECT o.storefront_token FROM shop o
        WHERE o.id = $one->{shop_id}) WHERE id = $two->{shop_id}");
    my ($order) = order_of($two);
    my $job = wait_lookup($two, $order);
    is $job->{error}{code}, 'storefront_token_unreadable', "another shop's token is refused";
    like $job->{error}{message}, qr/operator has to set it anew/,
        'with a message that says what to do';
    like error_log_since(0), qr/MDL0360.*downloadsctl shop set/, 'the log tells the operator';
    sql("UPDATE shop SET storefront_url = 'https://elsewhere.example' WHERE id = $one->{shop_id}");
    ($order) = order_of($one);
    is wait_lookup($one, $order)->{error}{code}, 'storefront_token_unreadable',
        'and so is a token whose URL was changed';
    is_deeply [ $storefront->requests($order) ], [], 'no storefront was called';
};

subtest 'a connection that was ended is not used' => sub {
    my $shop  = shop_with_product();
    my $order = number();
    $storefront->order($order,
        answers => [ { status => 429, headers => { 'Retry-After' => 600 } } ]);
    order_of($shop, order => $order);
    my ($job) = lookups($shop, $order);
    wait_for(sub { sql("SELECT 1 FROM job WHERE id = '$job->{id}' AND status = 'queued' "
        . 'AND attempts = 1') }, 60, 'the first call');
    ctl('shop', 'set', $shop->{shop_id}, '--storefront', '');
    sql("UPDATE job SET due_at = 1 WHERE id = '$job->{id}'");
    $job = wait_lookup($shop, $order);
    is $job->{error}{code}, 'storefront_not_connected', 'the look-up ends';
    wait_email($shop, $order, 'no_recipient');
};

subtest 'a storefront in a private network is not called, though imports may reach that' => sub {
    my $guarded = MDL::Instance->new(
        without => qr/^DownloadsStorefrontAllowNetwork/,
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
    is_deeply [ $storefront->requests($order) ], [], 'and no storefront was called';
    $guarded->stop;
    $server->aim;
};

subtest 'over TLS the certificate has to be trusted' => sub {
    my $shop     = shop_with_product(url => $storefront->secure_url);
    my $customer = number();
    $storefront->customer($customer, email => 'secure@buyer.example');
    my ($order) = order_of($shop, customer_id => $customer);
    is wait_lookup($shop, $order)->{error}{code}, 'storefront_unavailable',
        'an untrusted certificate is refused';
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

end_lookups();
