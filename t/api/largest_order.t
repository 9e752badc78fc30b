# What the largest order allowed costs the server's memory, as an answer, as a page and as an email:
# 5,000 files in 250 items with an archive each, in packs that five items give, or with 1,000 links
# and 5,000 license keys besides.
#
# both: rows take memory of another library
use strict;
use warnings;

use Digest::SHA qw(sha256_base64);
use List::Util qw(sum0);
use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use Test::More;

use constant MEMORY => 32 * 1024;    # KB

my $server = MDL::Instance->new(mpm => 'event', single => 1)->start;
my $shop   = new_shop();

sub call
{
    my ($method, $path, %opt) = @_;
    return api($method, $path, key => $shop->{token}, timeout => 300, %opt);
}

sub memory
{
    my ($pid, $which) = @_;
    my ($kb) = MDL::Test::slurp("/proc/$pid/status") =~ /^$which:\s+(\d+) kB/m;
    return $kb;
}

# Runs something and says how much a process grew meanwhile at most; returns what it returned.  The
# process is a new one, which has no memory yet that others gave back.
sub costs_little
{
    my ($what, $pids, $do) = @_;
    $server->stop;
    $server->start;
    call('GET', '/ping');
    my ($pid) = wait_for(sub { my @pids = $pids->(); @pids == 1 && $pids[0] }, 60, 'one process');
    open my $refs, '>', "/proc/$pid/clear_refs" or die "clear_refs: $!";
    print $refs 5;    # VmHWM begins anew
    close $refs;
    my $before = memory($pid, 'VmRSS');
    my $result = $do->();
    my $grown  = memory($pid, 'VmHWM') - $before;
    cmp_ok($grown, '<', MEMORY, "$what: $grown KB");
    return $result;
}

my $model = ready_asset($shop, "large-$$.txt", "large\n")->{id};
my $name  = '"' x 250;    # six times as long on the page and in the email
sql('INSERT INTO asset (shop_id, status, filename, title, content_type, sha256, size, version, '
        . 'created_at, updated_at) WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 '
        . 'FROM numbers WHERE n < 4999)'
        . " SELECT shop_id, status, n || '-$name', n || '-$name', content_type, sha256, "
        . "size, version, created_at, updated_at FROM asset, numbers WHERE id = $model");
my @files = map { 0 + $_->[0] }
    sql("SELECT id FROM asset WHERE shop_id = $shop->{shop_id} ORDER BY id");

sub made
{
    my ($list, %members) = @_;
    my $reply = call('POST', $list, json => \%members);
    die "POST $list was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 201;
    return $reply->{json};
}

# 250 items of 20 files each, and what else an item gives.
sub singly
{
    my ($else) = @_;
    return map {
        my $product = product();
        made('/mappings', storefront_product_id => $product, download_type => 'ZIP',
            file_ids => [ @files[ 20 * $_ .. 20 * $_ + 19 ] ], $else ? $else->($_) : ());
        { storefront_product_id => $product, quantity => 20 };
    } 0 .. 249;
}

sub with_everything
{
    sql('INSERT INTO link (shop_id, title, url, created_at, updated_at)'
            . ' WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers '
            . 'WHERE n < 1000)'
            . " SELECT $shop->{shop_id}, 'Link ' || n, 'https://links.example/${\('x' x 500)}/' "
            . "|| n, 1, 1 FROM numbers");
    my @links = map { 0 + $_->[0] }
        sql("SELECT id FROM link WHERE shop_id = $shop->{shop_id} ORDER BY id");
    my $tag   = made('/license-key-tags', name => 'Keys')->{id};
    call('POST', "/license-key-tags/$tag/keys",
        json => { keys => [ map { "KEY-$_-${\('x' x 100)}" } 1 .. 5000 ] });
    return singly(sub {
        (link_ids => [ @links[ 4 * $_[0] .. 4 * $_[0] + 3 ] ], license_key_tag_ids => [$tag]);
    });
}

sub in_packs
{
    my $product = product();
    my @packs   = map {
        made('/packs', name => "Pack $_",
            file_ids => [ @files[ 250 * $_ .. 250 * $_ + 249 ] ])->{id}
    } 0 .. 3;
    made('/mappings', storefront_product_id => $product, pack_ids => \@packs);
    return map { { storefront_product_id => $product, storefront_variant_id => variant() } } 1 .. 5;
}

for my $case (
    [ '5,000 files in 250 items', 5000, 0,    singly() ],
    [ '5 items of 1,000 files',   1000, 0,    in_packs() ],
    [ 'links and keys, too',      5000, 6000, with_everything() ]
    )
{
    my ($what, $files, $others, @items) = @$case;
    my $id    = digits();
    my $email = "$id\@buyer.example";
    my $reply = costs_little("$what: assigned", \&server_pids,
        sub { assign($shop, $id, \@items, customer => { email => $email }, timeout => 300) });
    is($reply->{status}, 201, 'accepted') or diag($reply->{body});

    my $order = costs_little("$what: the answer", \&server_pids, sub { call('GET', "/orders/$id") })
        ->{json};
    is(sum0(map { scalar @{ $_->{files} } } @{ $order->{assignments} }), 5000,
        'all files are there');
    is(costs_little("$what: a list of orders", \&server_pids,
        sub { call('GET', '/orders?limit=1') })->{status},
        200, 'listed');

    my $path = $order->{download_page_url} =~ s{^https?://[^/]+}{}r;
    my $page = costs_little("$what: the page", \&server_pids,
        sub { page('GET', $path, timeout => 300) });
    is(() = $page->{body} =~ /<li\b[^>]*>/g, $files + $others, 'everything is on it');
    my ($style) = $page->{body} =~ m{<style>(.*?)</style>}s;
    like($page->{headers}{'content-security-policy'},
        qr/'sha256-\Q@{[ sha256_base64($style) ]}\E='/, 'and its headers are those of a page');

    my $mail = costs_little("$what: the email", \&worker_pids, sub {
        call('POST', "/orders/$id/resend", json => {});
        return wait_mail($email, 300);
    });
    is(() = $mail->{$_} =~ /(?:- |<bdi>)(?:\d+-(?:"|&quot;){250}|large-)/g, 10,
        "its $_ has ten files") for qw(text html);
    is(sum0($mail->{text} =~ /^(\d+) more files? (?:is|are) on your download page\.\r?$/mg), 4990,
        'which counts the others');
    is(() = $mail->{text} =~ /KEY-\d+|Link \d+:/g, $others, 'and all links and keys');
}

done_testing();
