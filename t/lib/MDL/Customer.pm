# Orders of one file: the order, its links, and how many downloads the service has counted.
#
#   my $file = new_file($shop, 8 * MB);
#   my $buy  = buy($shop, $file, limit => 1);
#   my $path = link_of($buy);          # presses the button
#   …
#   my $account = settled($buy);       # { used, sessions => [ … ] }
#
# With $fresh, which FRESH=1 sets, products have fresh downloads, and each order has used up those
# of a former version before buy returns.
package MDL::Customer;

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Exporter qw(import);
use MDL::Test;

our $fresh = $ENV{FRESH};
our @EXPORT = qw(new_file new_bytes buy link_of account settled left);

my $number = int(time) * 10;
my %products;

sub random_bytes
{
    my ($size) = @_;
    open my $in, '<:raw', '/dev/urandom' or die "/dev/urandom: $!";
    read($in, my $bytes, $size) == $size or die "/dev/urandom is short\n";
    return $bytes;
}

# Makes an asset of $size random bytes, or of the bytes given; returns { id, size, sha256, etag,
# bytes, path }, where path is a copy on disk.
sub new_file
{
    my ($shop, $size, %more) = @_;
    my $bytes = delete $more{bytes} // random_bytes($size);
    my $name  = 'bought-' . ++$number . '.bin';
    my $url   = source($name, $bytes);
    my $reply = api('POST', '/assets', key => $shop->{token}, patient => 1,
        json => { source_url => $url, %more });
    die "import: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    my $job = wait_job($shop, $reply->{json}{job}{id});
    die "import: $job->{error}{message}\n" if $job->{status} ne 'succeeded';
    my $sha256 = sha256_hex($bytes);
    return {
        id     => $reply->{json}{asset}{id},
        size   => length $bytes,
        bytes  => $bytes,
        sha256 => $sha256,
        etag   => qq("$sha256"),
        path   => logs_dir() . "/source/$name",
    };
}

# Makes an order of this file, with a limit of downloads; returns { id, path, assignment, file, … }.
sub buy
{
    my ($shop, $file, %opt) = @_;
    my $limit   = $opt{limit} // 3;
    new_bytes($shop, $file, random_bytes(99)) if $fresh;
    my $product = $products{"$file->{id} $file->{sha256} $limit"} //= new_product($shop, $file,
        $limit);
    my $id      = '' . ++$number;
    my $reply   = api('POST', "/orders/$id/assignments", key => $shop->{token},
        patient => 1, json => {
            storefront_customer_id => $id,
            items => [ { storefront_product_id => $product } ],
        });
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    my $order = $reply->{json};
    my ($path) = $order->{download_page_url} =~ m{^https?://[^/]+(/.+)$}
        or die "no page: $order->{download_page_url}\n";
    my $assignment = $order->{assignments}[0]{id};
    my $buy = {
        shop       => $shop,
        id         => $id,
        path       => $path,
        url        => $order->{download_page_url},
        assignment => $assignment,
        button     => "$assignment-$file->{id}",
        file       => $file,
        limit      => $limit,
        title      => $order->{assignments}[0]{title},
    };
    if ($fresh) {
        page('GET', link_of($buy), patient => 1) for 1 .. $limit || 1;
        settled($buy);
        new_bytes($shop, $file, $file->{bytes});
        $buy->{former_sessions} = $limit || 1;
    }
    return $buy;
}

# Gives a file other bytes.
sub new_bytes
{
    my ($shop, $file, $bytes) = @_;
    my $reply = api('POST', "/assets/$file->{id}/versions", key => $shop->{token}, patient => 1,
        json => { source_url => source('version-' . ++$number . '.bin', $bytes) });
    die "version: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    my $job = wait_job($shop, $reply->{json}{job}{id});
    die "version: $job->{error}{message}\n" if $job->{status} ne 'succeeded';
    return;
}

sub new_product
{
    my ($shop, $file, $limit) = @_;
    my $id    = 'gid://shop/Product/' . ++$number;
    my $reply = api('POST', '/mappings', key => $shop->{token}, patient => 1, json => {
        storefront_product_id => $id, file_ids => [ $file->{id} ], download_limit => $limit,
        download_type => 'FILES', $fresh ? (fresh_downloads => \1) : (),
    });
    die "mapping: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $id;
}

# Presses the page's button; returns the path that it leads to.
sub link_of
{
    my ($buy) = @_;
    my $reply = page('POST', $buy->{path}, form => { file => $buy->{button} }, patient => 1);
    my ($path) = ($reply->{headers}{location} // '') =~ m{^https?://[^/]+(/.+)$};
    die "the button: $reply->{status} $reply->{body}\n" if $reply->{status} != 303 || !$path;
    return $path;
}

# The order's downloads as the API shows them: { used, sessions }, the newest session first.
sub account
{
    my ($buy) = @_;
    my $reply = api('GET', "/orders/$buy->{id}", key => $buy->{shop}{token}, patient => 1);
    die "order: $reply->{status} $reply->{body}\n" if $reply->{status} != 200;
    my @sessions = @{ $reply->{json}{downloads} };
    splice @sessions, -$buy->{former_sessions} if $buy->{former_sessions};
    return {
        used     => $reply->{json}{assignments}[0]{files}[0]{downloads_used},
        sessions => \@sessions,
    };
}

# The account once no session is open any more.
sub settled
{
    my ($buy, $seconds) = @_;
    my $account;
    wait_for(
        sub {
            $account = account($buy);
            return !grep { $_->{status} eq 'open' } @{ $account->{sessions} };
        },
        $seconds // 20, "the end of the sessions of order $buy->{id}"
    );
    return $account;
}

# The number of downloads left, as the customer's page shows it.
sub left
{
    my ($buy) = @_;
    my $body = page('GET', $buy->{path})->{body};
    return $body =~ /(\d+) of \d+ downloads? left/ ? $1
        : $body =~ /download limit of this file is reached/ ? 0 : undef;
}

1;
