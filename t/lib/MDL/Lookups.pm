# Shared by the suites of the storefront look-up: a server, a mock storefront (MDL::Storefront),
# shops that are connected to it, and their orders.
#
#   my ($server, $storefront) = start_lookups();
#   my $shop = shop_with_product();
#   $storefront->customer('9001', email => 'zoe@buyer.example');
#   my ($order) = order_of($shop, customer_id => '9001');
#   is wait_lookup($shop, $order)->{status}, 'succeeded';
#   …
#   end_lookups();
package MDL::Lookups;

use strict;
use warnings;

use Exporter qw(import);
use JSON::PP;
use MDL::Contract qw(assign mapping_of ready_asset);
use MDL::Instance;
use MDL::Storefront;
use MDL::Test;
use Test::More;

our @EXPORT =
    qw(start_lookups end_lookups connect_shop shop_with_product number order_of order check
    lookups wait_lookup wait_email);

my ($server, $storefront);

# Starts a server with short retry delays, and the mock storefront.
sub start_lookups
{
    binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);
    $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsRetryDelay 1
DownloadsPollInterval 1
END
    $storefront = MDL::Storefront->new;
    return ($server, $storefront);
}

sub connect_shop
{
    my ($shop, $url, $token) = @_;
    my ($code, undef, $text) = ctl('shop', 'set', $shop->{shop_id}, '--storefront', $url,
        '--storefront-token-file', $storefront->token_file($token));
    die "shop set: $text" if $code != 0;
    return $shop;
}

# Makes a shop with a product, and connects it to the storefront unless url => undef.
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
    my $customer = exists $opt{customer_id} ? delete $opt{customer_id} : number();
    my $reply    = assign($shop, $order, [ $shop->{product} ], send_email => JSON::PP::true(),
        patient => 1, storefront_customer_id => $customer, %opt);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[01]$/;
    return ($order, $customer);
}

sub order
{
    my ($shop, $id) = @_;
    return api('GET', "/orders/$id", key => $shop->{token}, patient => 1)->{json};
}

sub check
{
    my ($shop, $order, $name) = @_;
    my $reply = api('GET', "/orders/$order/diagnosis", key => $shop->{token}, patient => 1);
    my ($check) = grep { $_->{name} eq $name } @{ $reply->{json}{checks} };
    return $check;
}

# The look-ups of an order, newest first.
sub lookups
{
    my ($shop, $order) = @_;
    my $jobs = api('GET', '/jobs?limit=100', key => $shop->{token}, patient => 1)->{json}{data};
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

# Checks that no log or database contains a token, stops the server and ends the suite.
sub end_lookups
{
    subtest 'no log or database contains a token' => sub {
        my @tokens = ($storefront->token, 'shpat_wrong', 'shpat_very-secret');
        for my $path (glob "$server->{folder}/*log* $server->{folder}/downloads.db*") {
            my $text = MDL::Test::slurp($path);
            is_deeply [ grep { index($text, $_) >= 0 } @tokens ], [],
                'not in ' . $path =~ s{.*/}{}r;
        }
    };
    $server->stop;
    return done_testing;
}

1;
