# What customers of a shop open, for suites of the page and the file: orders with their links, made
# by the API, and what they have cost.
package MDL::Opened;

use strict;
use warnings;

use Digest::SHA qw(hmac_sha256 sha256_hex);
use Exporter qw(import);
use MIME::Base64 qw(encode_base64url);
use Test::More;
use Time::HiRes qw(time);

use MDL::Test;

our @EXPORT = qw(sell_at asset product map_product order one_file press link_of forge left
    counted_sql all_settled is_page tokens_stay_out);

my $shop;
my $number = int(time);
my @tokens;    # must not be in any log

# Sets the shop whose orders these are.
sub sell_at { ($shop) = @_; return $shop }

# A ready asset with these bytes; returns { id, bytes, sha256, … }.
sub asset
{
    my ($bytes, %more) = @_;
    my $name  = 'delivery-' . ++$number . '.bin';
    my $reply = api('POST', '/assets', key => $shop->{token}, patient => 1,
        json => { source_url => source($name, $bytes), %more });
    $reply->{status} == 202 or die "import: $reply->{status} $reply->{body}\n";
    my $job = wait_job($shop, $reply->{json}{job}{id});
    $job->{status} eq 'succeeded' or die "import: $job->{error}{message}\n";
    return { %{ $reply->{json}{asset} }, bytes => $bytes, sha256 => sha256_hex($bytes) };
}

# A product of these assets; returns its id.
sub product
{
    my ($assets, %more) = @_;
    my $id    = 'gid://shop/Product/' . ++$number;
    my $reply = map_product($id, $assets, %more);
    $reply->{status} == 201 or die "mapping: $reply->{status} $reply->{body}\n";
    return $id;
}

sub map_product
{
    my ($id, $assets, %more) = @_;
    return api('POST', '/mappings', key => $shop->{token}, patient => 1,
        json => { storefront_product_id => $id, file_ids => [ map { $_->{id} } @$assets ], %more });
}

# An order of these products; returns { id, url, path, token, assignments => [ ids ] }.
sub order
{
    my (@products) = @_;
    my $id    = '' . ++$number;
    my $reply = api('POST', "/orders/$id/assignments", key => $shop->{token},
        patient => 1, json => {
            storefront_customer_id => "$number",
            items => [ map { { storefront_product_id => $_ } } @products ],
        });
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my $order = $reply->{json};
    my ($path, $token) = $order->{download_page_url} =~ m{^http://[^/]+(/d/o/(.+))$}
        or die "no page: $order->{download_page_url}\n";
    push @tokens, $token;
    return { id => $id, url => $order->{download_page_url}, path => $path, token => $token,
        assignments => [ map { $_->{id} } @{ $order->{assignments} } ] };
}

# An order of one product with one file.
sub one_file
{
    my ($bytes, %mapping) = @_;
    my $asset = asset($bytes);
    my $order = order(product([$asset], %mapping));
    return ($order, $asset, "$order->{assignments}[0]-$asset->{id}");
}

sub press
{
    my ($order, $file) = @_;
    return page('POST', $order->{path}, form => { file => $file });
}

# Presses the button and returns the path of the link.
sub link_of
{
    my ($order, $file) = @_;
    my $reply = press($order, $file);
    $reply->{status} == 303 or die "no redirect but $reply->{status}: $reply->{body}\n";
    my ($path, $token) = $reply->{headers}{location} =~ m{^http://[^/]+(/d/f/([^/]+).*)$}
        or die "not a link: $reply->{headers}{location}\n";
    push @tokens, $token;
    return $path;
}

# Signs a link as the service does, for links that the button does not make.
sub forge
{
    my ($assignment, $asset, $expires) = @_;
    open my $in, '<:raw', logs_dir() . '/secret' or die "secret: $!";
    my $secret = do { local $/; <$in> };
    my $bytes = join('', map { chr int rand 256 } 1 .. 16) . pack('Q>Q>Q>', $assignment, $asset,
        $expires);
    my $mac = hmac_sha256($bytes, hmac_sha256('file-link', $secret));
    my $token = encode_base64url($bytes . substr $mac, 0, 16);
    push @tokens, $token;
    return "/d/f/$token";
}

sub left
{
    my ($order) = @_;
    my $body = page('GET', $order->{path})->{body};
    return $body =~ /(\d+) of \d+ downloads? left/ ? $1
        : $body =~ /is running|limit of this file is reached/ ? 0 : undef;
}

sub counted_sql
{
    my ($assignment, $asset) = @_;
    my ($row) = sql("SELECT downloads_used FROM allowance WHERE assignment_id = $assignment "
            . "AND asset_id = $asset");
    return $row ? $row->[0] : 0;
}

# Waits until what the order's transfers have delivered is settled. From then on the whole again is
# another download; asked for at once it waits only half a second for that.
sub all_settled
{
    my ($order) = @_;
    my $ids = join ', ', @{ $order->{assignments} };
    return wait_for(
        sub { !sql("SELECT 1 FROM download_transfer WHERE assignment_id IN ($ids)") }, 60,
        "the end of the transfers of order $order->{id}");
}

sub is_page
{
    my ($reply, $status, $like, $name) = @_;
    subtest $name => sub {
        is($reply->{status}, $status, "the status is $status");
        is($reply->{headers}{'content-type'}, 'text/html; charset=utf-8', 'it is a page');
        is($reply->{headers}{'cache-control'}, 'private, no-store', 'it must not be cached');
        like($reply->{body}, $like, 'it says what to do');
        ok(!exists $reply->{headers}{etag}, 'it has no entity tag');
        ok(!exists $reply->{headers}{'content-disposition'}, 'and is not sent as a file');
    };
    return;
}

# The log of all that was opened has a download, and none of the tokens.
sub tokens_stay_out
{
    my ($log_start) = @_;
    my ($order, $asset, $file) = one_file('logged');
    page('GET', link_of($order, $file), headers => { Referer => $order->{url} });
    my $log = error_log_since($log_start);

    like($log, qr/MDL0405: download of asset $asset->{id} for assignment \d+: counted/,
        'the log has the download');
    is(scalar(grep { index($log, $_) >= 0 } @tokens), 0, 'and none of ' . @tokens . ' tokens');
    return;
}

1;
