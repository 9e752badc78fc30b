# Files that clients fetch from the object store itself (DownloadsObjectDelivery redirect): what
# counts, what is answered here, and what the store's URL gives (contract, section 8).
#
# both: a redirect is counted by the database alone
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Metering qw(ways);
use MDL::ObjectProxy;
use MDL::Objects;
use MDL::Swift;
use MDL::Test;
use MDL::Zip ();
use Test::More;

use constant KB => 1024;

my $store  = MDL::Swift->new;
my $proxy  = MDL::ObjectProxy->new($store);
my $public = $store->url =~ s/127\.0\.0\.1/localhost/r;
my $server = MDL::Instance->new(tls => 1, extra => object_store($proxy) . <<"END")->start;
DownloadsObjectDelivery redirect
DownloadsObjectPublicURL $public
DownloadsSessionIdle 1
END
my $shop = new_shop();

sub bought
{
    my ($size, %opt) = @_;
    my $file = into_object($store, new_file($shop, $size));
    my $buy  = buy($shop, $file, %opt);
    $proxy->forget;
    return ($buy, link_of($buy), $file);
}

# Asks for a link, and checks that the answer leads to the store; returns the URL there.
sub redirected
{
    my ($path, %headers) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $reply = page('GET', $path, headers => \%headers);
    is $reply->{status}, 303, 'the client is sent to the store' or diag explain $reply;
    my $url = $reply->{headers}{location};
    like $url, qr{^\Q$public\E/obj_}, 'by its public URL';
    like $reply->{headers}{'cache-control'}, qr/\bno-store\b/, 'which no cache keeps';
    ok !exists $reply->{headers}{$_}, "without $_"
        for qw(etag last-modified content-disposition repr-digest);
    return $url;
}

sub delivered { my ($buy) = @_; return settled($buy)->{sessions}[0]{bytes_delivered} }

subtest 'A whole file' => sub {
    my ($buy, $path, $file) = bought(300 * KB, limit => 2);
    my $log = error_log_size();
    my $url = redirected($path);
    is_deeply [ $proxy->requests ], [], 'and the service asks the store for nothing';
    is settled($buy)->{used}, 1, 'it counts at once';
    is delivered($buy), $file->{size}, 'as delivered';
    my $download = api('GET', "/orders/$buy->{id}/evidence", key => $shop->{token})
        ->{json}{downloads}{data}[0];
    is_deeply [ @$download{qw(bytes_sent bytes_acknowledged bytes_handed_over)} ],
        [ 0, 0, $file->{size} ], 'but the evidence claims no byte of it';
    like error_log_since($log), qr/MDL0405: .*: counted, at the redirect/, 'as the log says';
    unlike error_log_since($log), qr/X-Amz-Signature/i, 'which has no signature in it';
    my $reply = page('GET', $url);
    is $reply->{status}, 200, 'the URL is good' or diag explain $reply;
    is sha256_hex($reply->{body}), $file->{sha256}, 'for the bytes';
    like $reply->{headers}{'content-disposition'}, qr/^attachment; filename="bought-\d+\.bin"/,
        'with the filename';
    is $reply->{headers}{'content-type'}, 'application/octet-stream', 'and the type';
    is page('GET', $url =~ s/(X-Amz-Expires=)300\b/${1}301/r)->{status}, 403,
        'and not for longer than 300 s';
    redirected($path);
    is settled($buy)->{used}, 2, 'the whole again is another download';
    is page('GET', $path)->{status}, 403, 'until none is left';
};

subtest 'A part' => sub {
    my ($buy, $path, $file) = bought(300 * KB, limit => 1);
    my $url = redirected($path, Range => 'bytes=1000-200999');
    is delivered($buy), 200_000, 'it is settled as delivered';
    is account($buy)->{used}, 0, 'the rest is still to be fetched';
    my $reply = page('GET', $url, headers => { Range => 'bytes=1000-200999' });
    is $reply->{status}, 206, 'the store sends the part';
    ok $reply->{body} eq substr($file->{bytes}, 1000, 200_000), 'with its bytes';
    redirected($path, Range => 'bytes=0-999');
    redirected($path, Range => 'bytes=201000-');
    is settled($buy)->{used}, 1, 'once all parts were fetched it is one download';
    redirected($path, Range => 'bytes=5-9');
    is settled($buy)->{used}, 1, 'and a part is free then';
};

subtest 'What is answered here' => sub {
    my ($buy, $path, $file) = bought(20 * KB, limit => 1);
    my $reply = page('HEAD', $path);
    is "$reply->{status} $reply->{headers}{'content-length'}", "200 $file->{size}", 'HEAD';
    is page('GET', $path, headers => { 'If-None-Match' => $file->{etag} })->{status}, 304,
        'an unchanged file';
    is page('GET', $path, headers => { Range => 'bytes=30000-' })->{status}, 416,
        'a range behind the end';
    is_deeply account($buy), { used => 0, sessions => [] }, 'which count nothing';
    is_deeply [ $proxy->requests ], [], 'and the store is not asked';

    my ($stocked) = my @files = map { { name => "here-$_", bytes => $_ x 5000 } } 1 .. 2;
    MDL::Zip::stock($shop, @files);
    is page('GET', link_of(buy($shop, $stocked)))->{body}, $stocked->{bytes},
        'a file in the folder';
    into_object($store, $files[1]);
    my $order = MDL::Zip::order_of($shop, \@files, download_type => 'ZIP');
    is page('GET', MDL::Zip::link_of($shop, $order))->{status}, 200, 'an archive';
};

subtest 'A file that is known to be missing' => sub {
    my ($buy, $path, $file) = bought(20 * KB, limit => 1);
    $store->delete($file->{object});
    sql("UPDATE blob SET missing_at = 1 WHERE sha256 = '$file->{sha256}'");
    is page('GET', $path)->{status}, 500, 'is refused';
    is_deeply account($buy), { used => 0, sessions => [] }, 'which counts nothing';
    $store->put($file->{object}, $file->{bytes});
    sql("UPDATE blob SET missing_at = NULL WHERE sha256 = '$file->{sha256}'");
    redirected(link_of(buy($shop, $file)));
};

for my $way (ways($ENV{MPM} =~ s/ .*//r)) {
    subtest "$way: what counts" => sub {
        my ($buy, $path, $file) = bought(20 * KB, limit => 1);
        my $client = MDL::DownloadClient->over($way, $server, $path);
        is $client->status, 303, 'the client is sent to the store';
        is delivered($buy), $file->{size}, 'which counts once the answer has come';
        is account($buy)->{used}, 1, 'as one download';
    };
}

done_testing;
