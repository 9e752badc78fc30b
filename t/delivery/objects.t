# Files whose bytes are in an object store, as customers get them: what of HTTP works as with files,
# how often the store is asked, and what happens when it fails (contract, section 8).
#
# both: each database is asked where a file is
# long: it waits until a store that is silent is given up
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
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

my $store = MDL::Swift->new;
my $proxy = MDL::ObjectProxy->new($store);
my $server = MDL::Instance->new(tls => 1,
    extra => object_store($proxy) . "DownloadsSessionIdle 1\n")->start;
my $shop   = new_shop();

# A file of so many bytes in an object, an order of it, and a link; the requests to the store are
# counted from here on.
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

# How many of these requests have ended before the last byte that they were for.
sub cuts
{
    return scalar grep {
        my ($first, $last) = split /-/, $_->{range};
        defined $_->{sent} && $_->{sent} <= $last - $first;
    } @_;
}

# The requests to the store since the last look, as "get 0-99, get 5-7".
sub asked
{
    my @requests = map { join ' ', $_->{kind}, $_->{range} // () } $proxy->requests;
    $proxy->forget;
    return join ', ', @requests;
}

sub is_page
{
    my ($reply, $status, $like, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is $reply->{status}, $status, $name;
    like $reply->{body}, $like, 'a page says what to do';
    ok !exists $reply->{headers}{$_}, "without $_" for qw(etag content-disposition);
    return;
}

sub is_free
{
    my ($buy, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply account($buy), { used => 0, sessions => [] }, $name;
}

# Once the store has gone away, which the service notices after five failures in a row, the test
# brings it back.
sub healed
{
    my ($path) = @_;
    $proxy->heal;
    wait_for(sub { get($path)->{status} == 200 }, 30, 'the store to be asked again');
    return;
}

# --- a store that goes away for good -------------------------------------------------------------

# A server of its own, since it takes half a minute until it gives up.
sub losing
{
    my $bucket = MDL::Swift->new;    # which belongs to one database
    my $gone   = MDL::ObjectProxy->new($bucket);
    my $losing = MDL::Instance->new(extra => object_store($gone) . "DownloadsSessionIdle 1\n")
        ->start;
    my $owner  = new_shop();
    my $file   = into_object($bucket, new_file($owner, 20 * MB));
    my $buy    = buy($owner, $file, limit => 1);
    my $path   = link_of($buy);
    $gone->rule(get => { cut => 2 * MB });
    my $client = MDL::DownloadClient->over('HTTP/1.1', $losing, $path)->read_until(MB);
    $gone->rule(get => { refuse => 1 });
    $client->read_until(2 * MB);    # one that took nothing for a minute would be cut for that
    $server->aim;
    return sub {
        $losing->aim;
        ok !$client->rest, 'the connection ends before the file';
        my $read = $client->read_bytes;
        cmp_ok $read, '>=', 2 * MB, 'what came before is sent';
        is $client->sha256, sha256_hex(substr $file->{bytes}, 0, $read), 'as it is';
        like $losing->error_log, qr/MDL0407: a file was not sent whole/, 'the log says so';
        my $account = settled($buy);
        is $account->{used}, 0, 'no download is used up';
        is $account->{sessions}[0]{bytes_delivered}, $read, 'and the bytes are noted';
        $gone->heal;
        wait_for(sub { get($path, Range => 'bytes=0-0')->{status} == 206 }, 30, 'the store');
        my $rest = MDL::DownloadClient->over('HTTP/1.1', $losing, $path,
            headers => { Range => "bytes=$read-" });
        ok $rest->rest, 'later the client goes on';
        is $rest->sha256, sha256_hex(substr $file->{bytes}, $read), 'behind what it has';
        is settled($buy)->{used}, 1, 'for one download in all';
        $losing->stop;
        $server->aim;
    };
}

my $lost = losing();

# --- what works as with files --------------------------------------------------------------------

subtest 'A whole file' => sub {
    my ($buy, $path, $file) = bought(300 * KB);
    my $reply = get($path);
    is $reply->{status}, 200, 'it comes' or diag explain $reply;
    is sha256_hex($reply->{body}), $file->{sha256}, 'with its bytes';
    is $reply->{headers}{'content-length'}, $file->{size}, 'its length';
    is $reply->{headers}{etag}, $file->{etag}, 'and its entity tag';
    is asked(), 'get 0-307199', 'by one request to the store';
    is settled($buy)->{used}, 1, 'for one download';
};

subtest 'An empty file' => sub {
    my ($buy, $path) = bought(0);
    my $reply = get($path);
    is "$reply->{status} $reply->{body}", '200 ', 'it comes';
    is settled($buy)->{used}, 1, 'for one download';
};

subtest 'Ranges' => sub {
    my ($buy, $path, $file) = bought(300 * KB);
    my ($bytes, $size) = @$file{qw(bytes size)};
    for ([ '0-99', 0, 100 ], [ '299000-', 299_000, $size - 299_000 ], [ '-50', $size - 50, 50 ],
        [ '5-999999', 5, $size - 5 ]) {
        my ($range, $from, $length) = @$_;
        my $reply = get($path, Range => "bytes=$range");
        is $reply->{status}, 206, "$range: a part";
        ok $reply->{body} eq substr($bytes, $from, $length), 'with its bytes';
        is asked(), sprintf('get %d-%d', $from, $from + $length - 1),
            'which alone are asked for';
    }
    for ([ 10, 90_000, 200, 20 ], [ 7, 3, 10, 4 ]) {
        my ($first, $length, $second, $more) = @$_;
        my $ranges = join ',', map { sprintf '%d-%d', $_->[0], $_->[0] + $_->[1] - 1 }
            [ $first, $length ], [ $second += $first + $length, $more ];
        my $reply = get($path, Range => "bytes=$ranges");
        like $reply->{headers}{'content-type'}, qr{^multipart/byteranges}, "$ranges: two parts";
        my @parts = $reply->{body} =~ /\r\n\r\n(.*?)\r\n--/gs;
        ok $parts[0] eq substr($bytes, $first, $length), 'the first has its bytes';
        ok $parts[1] eq substr($bytes, $second, $more), 'so has the second';
        is asked(), join(', ', map {"get $_"} split /,/, $ranges), 'which alone are asked for';
    }
    my @many = map { 1000 * $_ . '-' . 1000 * $_ } 1 .. 17;
    my $reply = get($path, Range => 'bytes=' . join ',', @many[ 0 .. 15 ]);
    is_deeply [ $reply->{status}, scalar(() = asked() =~ /get/g) ], [ 206, 16 ],
        'sixteen ranges are as many requests';
    $reply = get($path, Range => 'bytes=' . join ',', @many);
    is_deeply [ $reply->{status}, length $reply->{body} ], [ 200, $size ],
        'more get the whole file';
    is asked(), 'get 0-' . ($size - 1), 'by one request';
    $reply = get($path, Range => 'bytes=1000-1009,0-9');
    my @parts = $reply->{body} =~ /\r\n\r\n(.*?)\r\n--/gs;
    is_deeply \@parts, [ substr($bytes, 1000, 10), substr $bytes, 0, 10 ], 'ranges go backwards';
    is asked(), 'get 1000-1009, get 0-9', 'in the order of the request';
    $reply = get($path, Range => 'bytes=1000-1009,1010-1019');
    is $reply->{body}, substr($bytes, 1000, 20), 'two that touch come as one';
    is asked(), 'get 1000-1009, get 1010-1019', 'by two requests';
    $reply = get($path, Range => 'bytes=' . join ',', ('100-101', '0-1') x 101);
    is sha256_hex($reply->{body}), $file->{sha256}, 'in place of too many comes the whole';
    is asked(), 'get 0-307199', 'for which the store is asked once';
};

subtest 'Conditions' => sub {
    my ($buy, $path, $file) = bought(20 * KB);
    my $reply = get($path, Range => 'bytes=5-9', 'If-Range' => $file->{etag});
    is "$reply->{status} $reply->{body}", '206 ' . substr($file->{bytes}, 5, 5),
        'If-Range of this version: the part';
    is asked(), 'get 5-9', 'by one request';
    $reply = get($path, Range => 'bytes=5-9', 'If-Range' => '"other"');
    is "$reply->{status} $reply->{body}", "200 $file->{bytes}", 'of another version: the whole';
    is asked(), 'get 0-20479', 'by one request';
};

subtest 'Answers without bytes ask the store for nothing' => sub {
    my ($buy, $path, $file) = bought(20 * KB, limit => 1);
    my $second = link_of($buy);
    my $reply = page('HEAD', $path, headers => { Range => 'bytes=5-9' });
    is $reply->{status}, 200, 'HEAD';
    is $reply->{headers}{'content-length'}, $file->{size}, 'with the length';
    is get($path, 'If-None-Match' => $file->{etag})->{status}, 304, 'an unchanged file';
    is get($path, 'If-Match' => '"other"')->{status}, 412, 'a changed one';
    $reply = get($path, Range => 'bytes=30000-');
    is $reply->{status}, 416, 'a range behind the end';
    is $reply->{headers}{'content-range'}, "bytes */$file->{size}", 'with the size';
    is get($path, 'Sec-Purpose' => 'prefetch')->{status}, 403, 'a prefetch';
    is_free($buy, 'none of them has a session');
    is get($path)->{status}, 200, 'the file comes';
    is settled($buy)->{used}, 1, 'for its only download';
    $proxy->forget;
    is get($second)->{status}, 403, 'another link is refused';
    is asked(), '', 'and the store is asked for none of them';
};

for my $way (ways($ENV{MPM} =~ s/ .*//r)) {
    subtest "$way: a file of several megabytes" => sub {
        my ($buy, $path, $file) = bought(3 * MB + 17);
        my $client = MDL::DownloadClient->over($way, $server, $path);
        ok $client->rest, 'it comes to its end';
        is $client->sha256, $file->{sha256}, 'with its bytes';
        is asked(), 'get 0-3145744', 'by one request to the store';
        is settled($buy)->{used}, 1, 'for one download';
    };
}

subtest 'A file of more than 64 MiB' => sub {
    my ($buy, $path, $file) = bought(66 * MB);
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path, buffer => MB);
    ok $client->rest, 'it comes to its end';
    is $client->sha256, $file->{sha256}, 'with its bytes';
    is asked(), 'get 0-67108863, get 67108864-69206015', 'by a request for each 64 MiB';
};

# --- a store that cuts ---------------------------------------------------------------------------

subtest 'A client that stands still while the store loses its patience' => sub {
    for my $way (ways($ENV{MPM} =~ s/ .*//r)) {
        my ($buy, $path, $file) = bought(62 * MB);
        $proxy->rule(get => { patience => 1 });
        my $client = MDL::DownloadClient->over($way, $server, $path)->read_until(MB);
        for my $cut (1 .. 2) {
            wait_for(sub { $cut <= cuts($proxy->requests) }, 60, 'the store to cut');
            $client->read_until($cut * 24 * MB);    # more than the kernel buffers
        }
        $proxy->heal;
        ok $client->rest, "$way: it gets the file to its end";
        is $client->sha256, $file->{sha256}, 'with its bytes';
        is settled($buy)->{used}, 1, 'for one download';
        my @requests;
        wait_for(sub { !grep { !defined $_->{sent} } @requests = $proxy->requests }, 60,
            'the end of the requests');
        my $cuts = cuts(@requests);
        cmp_ok $cuts, '>=', 2, 'the store has cut it twice, or more often if the machine was busy';
        is scalar @requests, $cuts + 1, 'and was asked once more than it has cut';
        $proxy->forget;
    }
};

subtest 'A store that breaks off and is busy' => sub {
    my ($buy, $path, $file) = bought(3 * MB);
    $proxy->rule(get => { cut => MB, times => 1 });
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path)->read_until(100 * KB);
    $proxy->rule(get => { status => 503, code => 'SlowDown', times => 2 });
    ok $client->rest, 'the client gets the file to its end';
    is $client->sha256, $file->{sha256}, 'with its bytes';
    is asked(), 'get 0-3145727' . ', get 1048576-3145727' x 3, 'it is asked again, from there on';
    is settled($buy)->{used}, 1, 'for one download';
};

subtest 'A transfer that is cut while it waits for the store' => sub {
    my ($buy, $path) = bought(4 * MB);
    $proxy->rule(get => { rate => 20 * KB });
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path);
    is $client->status, 200, 'it has begun';
    is api('POST', "/orders/$buy->{id}/revoke", key => $shop->{token}, json => {})->{status}, 200,
        'the order is revoked';
    ok !$client->rest, 'the connection ends';
    wait_for(sub { !sql('SELECT 1 FROM download_transfer') }, 20, 'the end of the transfer');
    $proxy->heal;
};

# --- an object that is not there -----------------------------------------------------------------

subtest 'An object that is gone' => sub {
    my ($buy, $path, $file) = bought(20 * KB, limit => 1);
    my $log = error_log_size();
    $store->delete($file->{object});
    is_page(get($path), 500, qr/missing on our side/, 'the customer is told');
    like error_log_since($log),
        qr/MDL0406: asset $file->{id}: .*$file->{sha256}.*object $file->{object}/,
        'the log names file and object';
    ok is_missing($file), 'the database knows it';
    is_free($buy, 'no download is counted');
    my $check = (grep { $_->{name} eq 'file' } @{ api('GET', "/orders/$buy->{id}/diagnosis",
        key => $shop->{token})->{json}{checks} })[0];
    is $check->{status}, 'fail', "the order's diagnosis says so" or diag explain $check;
    is asked(), 'get 0-20479', 'and asks the store for nothing';

    $store->put($file->{object}, $file->{bytes});
    is_page(get($path), 500, qr/missing on our side/, 'what may be damaged is not sent');
    is asked(), '', 'nor asked for, before somebody has looked at it';
    sql("UPDATE blob SET missing_at = NULL WHERE object = '$file->{object}'");
    is sha256_hex(get($path)->{body}), $file->{sha256}, 'then the link works';

    $store->put($file->{object}, 'x' . $file->{bytes});
    is_page(get($path), 500, qr/missing on our side/, 'an object of another size is not sent');
    ok is_missing($file), 'and counts as missing';
};

subtest 'An object whose bytes have moved' => sub {
    for my $to ('obj_moved' . time, undef) {
        my ($buy, $path, $file) = bought(20 * KB, limit => 1);
        if (defined $to) {
            $store->put($to, $file->{bytes});
        }
        else {
            open my $out, '>:raw', blob_file($file) or die blob_file($file) . ": $!";
            print $out $file->{bytes};
            close $out;
        }
        my $place = defined $to ? "'$to'" : 'NULL';
        my $moved = logs_dir() . "/moved-$file->{id}";
        $proxy->rule(
            get => { status => 404, code => 'NoSuchKey', times => 1, until => $moved });
        my @replies = parallel(2, sub {
            my ($i) = @_;
            return get($path) if $i == 0;
            wait_for(sub { $proxy->requests }, 60, 'the request');
            sql("UPDATE blob SET object = $place WHERE sha256 = '$file->{sha256}'");
            open my $out, '>', $moved or die "$moved: $!";
            return {};
        });
        is $replies[0]{status}, 200, 'a reader who looks for them in their old place gets them';
        is sha256_hex($replies[0]{body}), $file->{sha256}, 'as they are';
        ok !is_missing($file), 'nothing is missing';
        is asked(), join(', ', ('get 0-20479') x (defined $to ? 2 : 1)), 'the new place is asked';
    }
};

# --- a store that does not answer ----------------------------------------------------------------

subtest 'A store that refuses' => sub {
    my ($buy, $path, $file) = bought(20 * KB, limit => 1);
    my $log = error_log_size();
    for ([ 403, 'AccessDenied' ], [ 404, 'NoSuchBucket' ], [ 301, 'PermanentRedirect' ]) {
        my ($status, $code) = @$_;
        $proxy->rule(get => { status => $status, code => $code });
        my $reply = get($path);
        is_page($reply, 503, qr/can\W+t be reached right now/, "$code: the customer is told");
        is $reply->{headers}{'retry-after'}, 5, 'when to try again';
    }
    my $told = () = error_log_since($log) =~ /MDL0604/g;
    ok $told >= 1 && $told <= server_pids(), 'each process logs once what to do'
        or diag error_log_since($log);
    is_free($buy, 'no download is counted');
    ok !is_missing($file), 'and nothing is missing';
    $proxy->heal;
    is get($path)->{status}, 200, 'then the same link works';
};

subtest 'A store that is away' => sub {
    my ($buy, $path) = bought(20 * KB, limit => 1);
    my $log = error_log_size();
    $proxy->rule(any => { refuse => 1 });
    my $reply = get($path);
    is_page($reply, 503, qr/can\W+t be reached right now/, 'the customer is told');
    is $reply->{headers}{'retry-after'}, 5, 'when to try again';
    is_free($buy, 'no download is counted');
    healed($path);
    is settled($buy)->{used}, 1, 'then the link works for its download';
};

subtest 'A store that has gone away for good' => $lost;

subtest 'An object without a store' => sub {
    my ($buy, $path, $file) = bought(20 * KB);
    $server->stop;
    $server->configure(extra => '');
    $server->start;
    my $log = error_log_size();
    is_page(get($path), 503, qr/can\W+t be reached right now/, 'the customer is told');
    like error_log_since($log), qr/MDL0441: asset $file->{id} .* set DownloadsObjectStore/,
        'the log says what to do';
    ok !is_missing($file), 'and nothing is missing';
};

done_testing;
