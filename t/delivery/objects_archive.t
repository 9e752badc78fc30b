# Archives of files whose bytes are in an object store, in the folder, or in both: their bytes, how
# often the store is asked, and what happens when an object is gone (contract, section 8).
#
# both: each database is asked where the files are
use strict;
use warnings;

use MDL::DownloadClient;
use MDL::Instance;
use MDL::Metering qw(ways);
use MDL::ObjectProxy;
use MDL::Objects;
use MDL::Swift;
use MDL::Test;
use MDL::Zip;
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

my $store  = MDL::Swift->new;
my $proxy  = MDL::ObjectProxy->new($store);
my $server = MDL::Instance->new(tls => 1,
    extra => object_store($proxy) . "DownloadsSessionIdle 1\n")->start;
my $shop   = new_shop();
my $number = 0;

# An archive of files with these sizes; the sizes of those that stay in the folder are in a list of
# their own. Returns its order, its link and its files.
sub archive
{
    my (@sizes) = @_;
    my @files = map {
        my $n = ++$number;
        +{ name => "file-$n", bytes => substr(sprintf('%010d', $n) x (1 + ($_ // 0) / 10), 0, $_) }
    } map { ref $_ ? @$_ : $_ } @sizes;
    my @stay = map { ref $_ ? 1 : 0 } @sizes;
    stock($shop, @files);
    into_object($store, map { $files[$_] } grep { !$stay[$_] } 0 .. $#files);
    my $order = order_of($shop, \@files, download_type => 'ZIP', download_limit => 9);
    $proxy->forget;
    return ($order, link_of($shop, $order), @files);
}

# What each file of an order has cost.
sub used
{
    my ($order) = @_;
    return join ' ', map { $_->[0] } sql('SELECT w.downloads_used FROM allowance w'
        . " WHERE w.assignment_id = $order->{assignment} ORDER BY w.asset_id");
}

sub gets { return scalar grep { $_->{kind} eq 'get' } $proxy->requests }

sub entries_are
{
    my ($bytes, @files) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $path = logs_dir() . '/archive.zip';
    open my $out, '>:raw', $path or die "$path: $!";
    print $out $bytes;
    close $out;
    my ($entries) = read_all($path);
    return is_deeply $entries, [ map { [ @$_{qw(name size sha256)} ] } @files ],
        'its entries have the bytes of the files';
}

my @SIZES = (10 * KB, [ 20 * KB ], 0, 3 * MB, (5 * KB) x 20, [ MB ], 300 * KB, 1);
my ($order, $path, @files) = archive(@SIZES);
my $whole;

subtest 'A whole archive' => sub {
    my $reply = page('GET', $path, max_size => 2**26);
    is $reply->{status}, 200, 'it comes' or diag explain $reply;
    $whole = $reply->{body};
    entries_are($whole, @files);
    is gets(), scalar(grep { !ref $_ && $_ > 0 } @SIZES), 'by one request for each object';
    wait_for(sub { used($order) eq join ' ', (1) x @files }, 20, 'one download of each file');
};

for my $way (ways($ENV{MPM} =~ s/ .*//r)) {
    subtest "$way: an archive" => sub {
        my $client = MDL::DownloadClient->over($way, $server, link_of($shop, $order));
        is $client->status, 200, 'it is sent';
        ok $client->rest, 'it comes to its end';
        is $client->sha256, Digest::SHA::sha256_hex($whole), 'with the same bytes';
    };
}

subtest 'Ranges of it' => sub {
    for (1 .. 12) {
        my $from   = int rand(length($whole) - 1);
        my $length = 1 + int rand(400 * KB);
        my $reply  = part($path, sprintf '%d-%d', $from, $from + $length - 1);
        ok $reply->{body} eq substr($whole, $from, $length), "$length bytes from $from on";
    }
    my $last = length($whole) - 1;
    my $reply = part($path, "$last-$last,100-300,11000-11009");
    my @parts = $reply->{body} =~ /\r\n\r\n(.*?)\r\n--/gs;
    ok $parts[0] eq substr($whole, -1) && $parts[1] eq substr($whole, 100, 201)
        && $parts[2] eq substr($whole, 11_000, 10), 'three ranges at once';
    my $at = index $whole, $files[-2]{bytes};
    $proxy->forget;
    is part($path, $at . '-' . ($at + 9))->{status}, 206, 'a part of one object';
    is join(' ', map { $_->{range} } $proxy->requests), '0-9', 'of which alone bytes are read';
};

subtest 'A client that stands still' => sub {
    my ($order, $path, @files) = archive(20 * KB, 30 * MB, (20 * KB) x 5);
    $proxy->rule(get => { patience => 1 });
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path)->read_until(MB);
    my $cut = sub {
        return grep { $_->{target} =~ /$files[1]{object}/ && $_->{sent} && $_->{sent} < 30 * MB }
            $proxy->requests;
    };
    wait_for($cut, 60, 'the store to cut');
    ok $client->rest, 'gets the archive to its end';
    $proxy->heal;
    is $client->sha256, Digest::SHA::sha256_hex(page('GET', $path, max_size => 2**26)->{body}),
        'with the same bytes';
};

subtest 'An object that is gone' => sub {
    my ($order, $path, @files) = archive((20 * KB) x 12);
    my $log = error_log_size();
    $store->delete($files[9]{object});
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path);
    ok !$client->rest, 'the connection ends before it';
    cmp_ok $client->read_bytes, '>=', 9 * 20 * KB, 'after the files before it';
    wait_for(sub { is_missing($files[9]) }, 20, 'the database to know it');
    like error_log_since($log),
        qr/MDL0440: asset $files[9]{id}, one of 12 .*object $files[9]{object}/,
        'the log names file and object';
    $proxy->forget;
    my $reply = page('GET', $path);
    is $reply->{status}, 500, 'the next one is refused';
    like $reply->{body}, qr/missing on our side/, 'with a page';
    my @again = grep { $_->{target} =~ /$files[0]{object}/ } $proxy->requests;
    is scalar @again, 0, 'before the store is asked for anything';
    my $single = urls($shop, $order)->{files}[9]{url} =~ s{^http://[^/]+}{}r;
    is page('GET', $single)->{status}, 500, 'so is the file itself';
    $store->put($files[9]{object}, $files[9]{bytes});
    sql("UPDATE blob SET missing_at = NULL WHERE object = '$files[9]{object}'");
    is page('GET', $single)->{body}, $files[9]{bytes}, 'until it is back';
    is page('GET', $path)->{status}, 200, 'and then the archive, too';
};

subtest 'A store that is away' => sub {
    my ($order, $path, @files) = archive([ 20 * KB ], 20 * KB, 20 * KB);
    $proxy->rule(any => { status => 403, code => 'AccessDenied' });
    my $reply = page('GET', $path, headers => { Range => 'bytes=21000-' });
    is $reply->{status}, 503, 'an archive that goes on in an object is refused';
    is $reply->{headers}{'retry-after'}, 5, 'for a while';
    is used($order), '', 'which costs nothing';
    $proxy->heal;
    is page('GET', $path)->{status}, 200, 'then it comes';
};

done_testing;
