# Files whose bytes are in an object store, as customers get them: what of HTTP works as with files,
# how often the store is asked, and what happens when it fails (contract, section 8).
#
# both: each database is asked where a file is
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::ObjectProxy;
use MDL::Objects;
use MDL::Swift;
use MDL::Test;
use MDL::Zip ();
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

my $store = MDL::Swift->new;
my $proxy = MDL::ObjectProxy->new($store);
my $server = MDL::Instance->new(tls => 1, extra => object_store($proxy))->start;
my $shop   = new_shop();

# A file of so many bytes in an object, and an order of it; the requests to the store are counted
# from here on.
sub bought
{
    my ($size, %opt) = @_;
    my $file = into_object($store, new_file($shop, $size));
    my $buy  = buy($shop, $file, %opt);
    $proxy->forget;
    return ($buy, link_of($buy), $file);
}

sub get
{
    my ($path, %headers) = @_;
    return page('GET', $path, headers => \%headers);
}

# The requests to the store since the last look, as "get 0-99, get 5-7".
sub asked
{
    my @requests = map { join ' ', $_->{kind}, $_->{range} // () } $proxy->requests;
    $proxy->forget;
    return join ', ', @requests;
}

subtest 'A whole file' => sub {
    my ($buy, $path, $file) = bought(300 * KB);
    my $reply = get($path);
    is $reply->{status}, 200, 'it comes' or diag explain $reply;
    is sha256_hex($reply->{body}), $file->{sha256}, 'with its bytes';
    is $reply->{headers}{'content-length'}, $file->{size}, 'and its length';
    is $reply->{headers}{etag}, $file->{etag}, 'and its entity tag';
    is asked(), 'get 0-307199', 'by one request to the store';
    is settled($buy)->{used}, 1, 'for one download';
};

done_testing;
