# The shops of a service: one that means harm, and what the other one notices of it. The other one
# is that of Bench::Service, and has its product 1.
package Bench::Shops;

use strict;
use warnings;

use Bench::Rows;
use Bench::Service qw(wait_for);
use Exporter qw(import);
use JSON::PP;
use Time::HiRes qw(time);

our @EXPORT = qw(ctl add_shop request assign pages import_one email_one took part);

my $json   = JSON::PP->new->utf8->canonical;
my $number = 0;

# What downloadsctl answers.
sub ctl
{
    my ($on, @arguments) = @_;
    return $json->decode(scalar qx($on->{DOWNLOADSCTL} --json @arguments));
}

# A shop with so many keys: { id, keys }.
sub add_shop
{
    my ($on, $name, $keys) = @_;
    my $id = ctl($on, 'shop', 'add', $name, lc "$name.example")->{id};
    ctl($on, 'shop', 'approve', $id);
    return { id => $id,
        keys => [ map { ctl($on, 'key', 'create', $id, "key$_")->{token} } 1 .. $keys ] };
}

# The answer to a request by a key, whatever it is; a body is text, or is made JSON.
sub request
{
    my ($on, $http, $key, $method, $path, $body) = @_;
    my %headers = (authorization => "Bearer $key", 'content-type' => 'application/json',
        $method eq 'GET' ? () : ('idempotency-key' => join '-', $$, time));
    return $http->request($method, "$on->{BASE_URL}$path",
        { headers => \%headers,
            defined $body ? (content => ref $body ? $json->encode($body) : $body) : () });
}

# The answer to an assignment of products, by their numbers, to an order.
sub assign
{
    my ($on, $http, $key, $order, @products) = @_;
    return request($on, $http, $key, 'POST', "/orders/$order/assignments",
        { storefront_customer_id => '1',
        customer => { email => 'a@slow.example' },
        items    => [ map { { storefront_product_id => "gid://bench/Product/$_" } } @products ] });
}

# --- what the other shop notices -----------------------------------------------------------------

# The milliseconds that some work takes.
sub took
{
    my ($work) = @_;
    my $began = time;
    $work->();
    return 1000 * (time - $began);
}

# The milliseconds between two times of a row that is made by a request, once it has them.
sub waited
{
    my ($on, $seconds, $from, $to, $rows) = @_;
    my $query = "SELECT $to - $from FROM $rows AND $to IS NOT NULL";
    my ($row) = wait_for(sub { ($on->rows($query))[0] }, $seconds, $query);
    return $row->[0] / 1000;
}

sub import_one
{
    my ($on, $seconds) = @_;
    my $url = $on->source('file-' . ++$number . '.bin', "$number " x 200);
    my $id = $on->api('POST', '/assets', { source_url => $url })->{asset}{id};
    return waited($on, $seconds, 'created_at', 'finished_at', "job WHERE asset_id = $id");
}

sub email_one
{
    my ($on, $seconds) = @_;
    my $order = 700_000 + ++$number;
    $on->api('POST', "/orders/$order/assignments",
        { storefront_customer_id => "$order", send_email => JSON::PP::true,
        customer => { email => "buyer-$order\@quick.example" },
        items    => [ { storefront_product_id => 'gid://bench/Product/1' } ] });
    return waited($on, $seconds, 'e.created_at', 'e.sent_at',
        "email e JOIN orders o ON o.id = e.order_id WHERE o.storefront_order_id = '$order'");
}

# The pages of so many orders.  Each has an order of its own, so that no limit of pages is met.
sub pages
{
    my ($on, $count) = @_;
    return map {
        $on->api('POST', '/orders/' . (600_000 + $_) . '/assignments',
            { storefront_customer_id => "$_",
            items => [ { storefront_product_id => 'gid://bench/Product/1' } ] })
            ->{download_page_url}
    } 1 .. $count;
}

# The value below which this share of the times is.
sub part
{
    my ($times, $share) = @_;
    my @sorted = sort { $a <=> $b } @$times;
    return $sorted[ $share * $#sorted ];
}

1;
