# Files that a member uploads in Chromium: five at once; a large one over a connection that is cut
# three times, paused, and chosen again after a reload; and one without JavaScript. The upload URL
# has another origin than the settings. With LARGE=1 the large file has 5 GB and the last
# one 500 MB.
#
# once: a browser sees nothing of the database
# long: it has a browser and a large file
use strict;
use warnings;

use Digest::SHA;
use JSON::PP;
use MDL::Contract;
use MDL::Ports;
use MDL::Settings;
use MDL::Test;
use MDL::Target qw(logs_dir top_dir wait_for);
use Test::More;

use constant MB => 1_000_000;

my $size   = ($ENV{LARGE} ? 5000 : 200) * MB;
my $port   = free_port();
my $server = settings_server(extra => <<"END");
DownloadsUploadURL http://127.0.0.1:$port/u
<Location "/u">
    LimitRequestBody 0
</Location>
END
my $shop   = new_shop();
told('member', 'add', 'staff', 'staff', '--shop', $shop->{shop_id});

# A file of bytes that don't repeat; returns its path and digest.
sub file
{
    my ($name, $length) = @_;
    my $path = logs_dir() . "/$name";
    my $sha  = Digest::SHA->new(256);
    open my $out, '>:raw', $path or die "$path: $!\n";
    my $block = join '', map { pack 'N', rand 2**32 } 1 .. MB / 4;
    for (my $left = $length; $left > 0; $left -= MB) {
        substr $block, 0, 8, pack 'Q', $left;
        my $piece = substr $block, 0, $left < MB ? $left : MB;
        $sha->add($piece);
        print $out $piece;
    }
    close $out or die "$path: $!\n";
    return { path => $path, sha256 => $sha->hexdigest };
}

sub asset
{
    my ($id) = @_;
    return wait_for(sub {
        my $asset = api('GET', "/assets/$id", key => $shop->{token})->{json};
        $asset->{status} eq 'pending' ? undef : $asset;
    }, 300, 'the file\'s check');
}

my @small = map { file("small-$_.bin", $_ * MB + $_) } 1 .. 5;
my $large = file('large.bin', $size);
my $plain = file('plain.bin', ($ENV{LARGE} ? 500 : 3) * MB);
my $sold  = ready_asset($shop, 'sold.bin', 'version 1')->{id};
assign($shop, 7001, [ mapping_of($shop, [$sold])->{storefront_product_id} ]);
my $wish  = JSON::PP->new->encode({
    page   => origin() . "/settings/$shop->{shop_id}/files/uploads",
    user   => 'staff',
    port   => $port,
    server => port(),
    small  => [ map { $_->{path} } @small ],
    large  => $large->{path},
    size   => $size,
    plain  => $plain->{path},
    replaced => $sold,
});
open my $from, '-|', map({ top_dir() . "/$_" } 'tools/node', 't/node/browser-tus.mjs'), $wish
    or die "node: $!\n";
my $result = JSON::PP->new->decode(do { local $/; <$from> } || '{}');
close $from;

is($?, 0, 'the browser has done it all') or BAIL_OUT('nothing to look at');
is_deeply($result->{wrong}, [], 'without a complaint');
is_deeply([ sort map { asset($_)->{sha256} } @{ $result->{small} } ],
    [ sort map { $_->{sha256} } @small ], 'five files that were chosen at once are there');
is($result->{buttons}, 0, 'with no button that would do nothing');
is($result->{cuts}, 3, 'the connection was cut three times');
my $asset = asset($result->{large});
is($asset->{sha256}, $large->{sha256}, 'the large file has all its bytes');
is($asset->{size}, $size, 'and no more');
cmp_ok(abs($result->{bar} - $result->{offset}), '<=', 0.01,
    'when it was paused the bar showed what the server had');
cmp_ok($result->{offset}, '>', 0.1, 'which was more than nothing');
cmp_ok($result->{sent}, '<', 2 * $size, 'what had come was not sent once more');
is(asset($result->{plain})->{sha256}, $plain->{sha256}, 'a file came without JavaScript');
like($result->{told},
    qr/^The file is uploaded\. The buyer of the one order .* will be told by email/,
    'a new version says who will be told of it');

unlink map { $_->{path} } @small, $large, $plain;
$server->stop;
done_testing;
