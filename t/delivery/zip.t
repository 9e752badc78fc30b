# The archive of an assignment's files (contract, section 8): its length is known in advance, its
# bytes are the same at any time and from any offset, and every program that customers use reads it.
#
# The test puts files into the storage folder and the database directly, with names that the API
# would refuse. zip_large.t tests many files and large ones.
#
# once: bytes of archives; t/metering/zip_metering.t has their queries on both databases
use strict;
use warnings;
use utf8;

use Digest::SHA qw(sha256_hex);
use Encode qw(encode_utf8);
use File::Temp ();
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);

use MDL::Contract;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Test;
use MDL::Zip;

my $folder = File::Temp->newdir;
my $shop   = new_shop();
my $number = int(time);
my $log_start = error_log_size();

# --- helpers -------------------------------------------------------------------------------------

sub files
{
    return map { { name => "file-$_.txt", bytes => "This is file $_.\n" x $_ } } 1 .. shift;
}

sub an_order
{
    my ($n, %mapping) = @_;
    stock($shop, my @files = files($n));
    return (order_of($shop, \@files, %mapping), @files);
}

# The archive's bytes, and a file that has them.
sub fetched
{
    my ($order) = @_;
    my $reply = page('GET', link_of($shop, $order));
    $reply->{status} == 200 or die "archive: $reply->{status} $reply->{body}\n";
    return ($reply->{body}, file_of($reply->{body}));
}

sub file_of
{
    my ($bytes) = @_;
    my $path = "$folder/" . ++$number . '.zip';
    open my $out, '>:raw', $path or die "$path: $!\n";
    print $out $bytes;
    close $out or die "$path: $!\n";
    return $path;
}

sub used
{
    my ($order) = @_;
    my $assignment = api('GET', "/orders/$order->{id}", key => $shop->{token})
        ->{json}{assignments}[0];
    return join ' ', map { $_->{downloads_used} } @{ $assignment->{files} };
}

sub contents { return [ map { [ $_->{name}, $_->{size}, $_->{sha256} ] } @_ ] }

# --- the offer -----------------------------------------------------------------------------------

subtest 'An archive is offered if the mapping has the type ZIP and two files are ready' => sub {
    my ($order, @files) = an_order(3);
    my $zip  = urls($shop, $order)->{zip};
    my $page = page('GET', $order->{path})->{body};
    my $head = page('HEAD', link_of($shop, $order));

    is_shape($zip, 'zip', 'the member zip');
    is($zip->{filename}, "order-$order->{id}.zip", 'it is named after the order');
    is($zip->{size}, $head->{headers}{'content-length'}, 'its size is known');
    like($zip->{url}, qr{/d/z/[\w-]+/order-$order->{id}\.zip\z}, 'its URL ends with its name');
    like($page, qr/Download all as ZIP \(3\W+files, \d+\W+bytes\)/, 'the page has a button');
    like($page, qr/name="zip" value="$order->{assignment}"/, 'for this assignment');

    my $pressed = page('POST', $order->{path}, form => { zip => $order->{assignment} });
    is($pressed->{status}, 303, 'which redirects');
    like($pressed->{headers}{location}, qr{/d/z/[\w-]+/order-$order->{id}\.zip\z},
        'to a link to the archive');
    is(page('GET', $pressed->{headers}{location})->{status}, 200, 'that gives the archive');

    for my $other (one => (an_order(1))[0], single => (an_order(2, download_type => 'FILES'))[0]) {
        next if !ref $other;
        is(urls($shop, $other)->{zip}, undef, 'one file, or the type FILES, has no archive');
        unlike(page('GET', $other->{path})->{body}, qr/ZIP/, 'and no button');
        is(page('POST', $other->{path}, form => { zip => $other->{assignment} })->{status}, 409,
            'and none can be requested');
    }
    sql("UPDATE asset SET status = 'pending' WHERE id = $files[0]{id}");
    like(page('GET', $order->{path})->{body}, qr/ZIP \(2\W+files/,
        'a file that is not ready is left out');
    sql("UPDATE asset SET status = 'pending' WHERE id = $files[1]{id}");
    is(urls($shop, $order)->{zip}, undef, 'with one ready file there is no archive');
    is(page('POST', $order->{path}, form => { zip => $order->{assignment} + 100000 })
        ->{status}, 404, 'an unknown assignment has no archive');
};

subtest 'It has the files of the mapping, then those of its packs, each once and in order' => sub {
    stock($shop, my @files = files(7));
    my @id = map { $_->{id} } @files;
    my ($first, $second) = map {
        MDL::Zip::made($shop, 'POST', '/packs', { name => 'Some', file_ids => $_ })->{id}
    } [ @id[ 2, 0, 5 ] ], [ @id[ 5, 6, 1, 3 ] ];
    for my $content (qw(live pinned)) {
        my $order = order_of($shop, [], content => $content, file_ids => [ @id[ 4, 1 ] ],
            pack_ids => [ $second, $first ]);
        my ($yauzl) = read_all((fetched($order))[1]);
        is_deeply([ map { $_->[0] } @$yauzl ], [ map { "file-$_.txt" } 5, 2, 6, 7, 4, 3, 1 ],
            $content);
    }
};

subtest 'A link that the service did not issue is not found' => sub {
    my ($order) = an_order(2);
    my $path = link_of($shop, $order);
    my $file = urls($shop, $order)->{files}[0]{url} =~ s{^http://[^/]+}{}r;

    is(page('GET', $path =~ s{/z/}{/f/}r)->{status}, 404,
        "an archive's token does not work for a file");
    is(page('GET', $file =~ s{/f/}{/z/}r)->{status}, 404,
        "a file's token does not work for an archive");
    is(page('GET', "$path/x")->{status}, 404, 'a segment after the name is not found');
    is(page('POST', $path)->{headers}{allow}, 'GET, HEAD', 'it can only be read');
};

# --- the answer ----------------------------------------------------------------------------------

subtest 'If a file disappears while the archive is sent, the connection ends, '
    . 'and no pipelined answer follows' => sub {
    my @files = map { sparse_file("large-$_.bin", 16 * 2**20, "begin $_", "end $_") } 1 .. 3;
    stock($shop, @files);
    my $order = order_of($shop, \@files);
    my $path  = link_of($shop, $order);
    for my $range ('', "Range: bytes=1-\r\n") {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port())
            or die "$@\n";
        print $socket "GET $path HTTP/1.1\r\nHost: localhost\r\n$range\r\n"
            . "GET $order->{path} HTTP/1.1\r\nHost: localhost\r\n\r\n";
        $socket->flush;
        sysread $socket, my $answer, 65536;
        my ($length) = $answer =~ /^Content-Length: (\d+)\r$/m;
        my ($head)   = split /\r\n\r\n/, $answer;
        my $last = MDL::Zip::blob_path($files[-1]);
        rename $last, "$last.away" or die "$last: $!\n";
        my $got = length($answer) - length($head) - 4;
        my $pages = 0;
        while (sysread $socket, my $more, 65536) {
            $got += length $more;
            $pages += $more =~ /<!DOCTYPE/;
        }
        rename "$last.away", $last or die "$last: $!\n";
        cmp_ok($got, '<', $length, 'the archive is cut off');
        is($pages, 0, 'and no page follows it');
    }
    like(error_log_since($log_start), qr/MDL0407/, 'the log says so');
};

subtest 'The answer has the headers of a file' => sub {
    my ($order, @files) = an_order(3);
    my $path = link_of($shop, $order);
    my $get  = page('GET', $path);
    my %h    = %{ $get->{headers} };
    my $head = page('HEAD', $path);

    is($get->{status}, 200, 'it is sent');
    is($h{'content-length'}, length $get->{body}, 'Content-Length');
    is($h{'content-type'}, 'application/zip', 'Content-Type');
    like($h{etag}, qr/^"[0-9a-f]{64}"\z/, 'a strong entity tag');
    is($h{'last-modified'}, 'Sat, 21 Nov 2026 07:08:09 GMT',
        'Last-Modified is that of the newest file');
    is($h{'accept-ranges'}, 'bytes', 'Accept-Ranges');
    is($h{'content-disposition'}, qq(attachment; filename="order-$order->{id}.zip"; )
        . "filename*=UTF-8''order-$order->{id}.zip", 'Content-Disposition');
    is($h{'x-content-type-options'}, 'nosniff', 'X-Content-Type-Options');
    is($h{'content-security-policy'}, 'sandbox', 'Content-Security-Policy');
    is($h{'referrer-policy'}, 'no-referrer', 'Referrer-Policy');
    is($h{'cache-control'}, 'private', 'Cache-Control');
    ok(!exists $h{'repr-digest'}, 'and no digest, since none is known');
    is($head->{body}, '', 'HEAD has no body');
    is($head->{headers}{$_}, $h{$_}, "but the same $_")
        for qw(content-length etag last-modified accept-ranges);
    is(page('GET', $path, headers => { 'if-none-match' => $h{etag} })->{status}, 304,
        'If-None-Match with its tag: 304');
    is(page('GET', $path, headers => { 'if-match' => '"x"' })->{status}, 412,
        'If-Match with another tag: 412');
    is(page('GET', $path, headers => { 'sec-purpose' => 'prefetch' })->{status}, 403,
        'a prefetch is refused');
};

subtest 'Two links give the same bytes' => sub {
    my ($order) = an_order(5);
    my ($first, $second) = map { page('GET', link_of($shop, $order)) } 1, 2;

    is(sha256_hex($first->{body}), sha256_hex($second->{body}), 'the bodies are equal');
    is($first->{headers}{etag}, $second->{headers}{etag}, 'and have the same entity tag');
};

subtest 'Any part can be downloaded' => sub {
    my ($order) = an_order(40);
    my ($all) = fetched($order);
    my $path  = link_of($shop, $order);
    my $size  = length $all;
    my $etag  = page('HEAD', $path)->{headers}{etag};

    for my $case ([ '0-0', 0, 1 ], [ '5-', 5, $size - 5 ], [ '-22', $size - 22, 22 ],
        [ '28-60', 28, 33 ], [ "100-$size", 100, $size - 100 ], [ '-99999999', 0, $size ]) {
        my ($range, $from, $length) = @$case;
        my $reply = part($path, $range);
        is($reply->{status}, 206, "bytes=$range");
        is($reply->{headers}{'content-range'}, "bytes $from-" . ($from + $length - 1) . "/$size",
            'its Content-Range');
        ok($reply->{body} eq substr($all, $from, $length), 'and its bytes');
        $path = link_of($shop, $order);
    }
    my $several = part($path, '0-9,1000-1099,-10');
    like($several->{headers}{'content-type'}, qr{^multipart/byteranges; boundary=},
        'several ranges are multipart');
    my @parts = $several->{body} =~ m{Content-range: bytes (\d+)-\d+/$size\r\n\r\n}gi;
    is("@parts", '0 1000 ' . ($size - 10), 'each with its range');
    ok(index($several->{body}, "\r\n\r\n" . substr($all, 1000, 100) . "\r\n") > 0, 'and its bytes');
    is(part($path, "$size-")->{headers}{'content-range'}, "bytes */$size",
        'a range beyond the end is 416');
    is(part($path, '7-', 'if-range' => $etag)->{status}, 206,
        'If-Range with its tag gives the part');
    is(length part($path, '7-', 'if-range' => '"old"')->{body}, $size,
        'with another tag it gives the whole');
};

subtest 'A change of a file changes the entity tag' => sub {
    my ($order, @files) = an_order(3);
    my $path = link_of($shop, $order);
    my $tag  = sub { page('HEAD', $path)->{headers}{etag} };
    my $before = $tag->();
    my %seen = ($before => 1);

    for my $change ("filename = 'other.txt'", 'updated_at = updated_at + 60000000',
        "sha256 = '$files[1]{sha256}'") {
        sql("UPDATE asset SET $change WHERE id = $files[0]{id}");
        ok(!$seen{ $tag->() }++, "after $change");
    }
    my $reply = part($path, '10-', 'if-range' => $before);
    is($reply->{status}, 200, 'resuming the former archive starts from the beginning');
    read_by_all(file_of($reply->{body}));
};

# --- the bytes -----------------------------------------------------------------------------------

subtest 'Programs read the archive' => sub {
    stock($shop, my @files = (files(20), { name => 'empty', bytes => '' },
        { name => 'random.bin', bytes => join '', map { chr int rand 256 } 1 .. 300_000 }));
    my ($bytes, $path) = fetched(order_of($shop, \@files));
    my ($yauzl, $zipfile) = read_all($path);
    my ($listed) = program_output('zipinfo', '-v', $path);

    read_by_all($path);
    is_deeply($yauzl, contents(@files), 'yauzl finds the files, in their order');
    is_deeply($zipfile, contents(@files), 'zipfile too');
    is(scalar(() = $listed =~ /minimum software version required to extract:\s+1\.0\n/g), @files,
        'it has no ZIP64');
    like($listed, qr/file last modified on \(DOS date\/time\):\s+2026 Nov 21 07:08:08/,
        'times are fixed, in UTC');
    my ($test) = program_output('7z', 'l', '-slt', $path);
    unlike($test, qr/Warning|Error/i, '7-Zip gives no warning');
};

my @HOSTILE = (
    [ '文件 说明.pdf',     '文件 说明.pdf' ],
    [ '👩‍👩‍👧 🎉.gif',      '👩‍👩‍👧 🎉.gif' ],
    [ 'say "hi" it\'s.txt', 'say _hi_ it\'s.txt' ],
    [ 'x' x 251 . '.txt', 'x' x 251 . '.txt' ],
    [ '文' x 84 . '.md',  '文' x 84 . '.md' ],
    [ '../../x',          '.._.._x' ],
    [ '/etc/passwd',      '_etc_passwd' ],
    [ 'C:\\boot.ini',     'C__boot.ini' ],
    [ "a\r\nSet-Cookie: b", 'a__Set-Cookie_ b' ],
    [ "exe\x{202e}gpj.scr", 'exe_gpj.scr' ],
    [ 'CON',              '_CON' ],
    [ 'nul.txt',          '_nul.txt' ],
    [ 'same.txt',         'same.txt' ],
    [ 'same.txt',         'same (2).txt' ],
    [ 'SAME.TXT',         'SAME (3).TXT' ],
    [ 'ÄRGER.txt',        'ÄRGER.txt' ],
    [ 'ärger.txt',        'ärger (2).txt' ],
    [ 'Straße.txt',       'Straße.txt' ],
    [ 'STRASSE.txt',      'STRASSE (2).txt' ],
    [ "\x{fb01}n.txt",    "\x{fb01}n.txt" ],
    [ 'FIN.TXT',          'FIN (2).TXT' ],
    [ 'end. ',            'end' ],
    [ '..',               'file' ],
);

subtest 'Names are safe for every system' => sub {
    my $i = 0;
    stock($shop, my @files = map { { name => encode_utf8($_->[0]), bytes => 'Number ' . ++$i } }
        @HOSTILE);
    my $order = order_of($shop, \@files);
    my ($bytes, $path) = fetched($order);
    my ($yauzl, $zipfile) = read_all($path);
    my @names = map { $_->[1] } @HOSTILE;
    my $into  = "$folder/unpacked";

    is_deeply([ map { $_->[0] } @$yauzl ], \@names,
        'yauzl, which is strict about names, accepts them');
    is_deeply([ map { $_->[0] } @$zipfile ], \@names, 'zipfile too');
    read_by_all($path);
    for my $unpack ([ 'unzip', '-qq', '-d', $into, $path ], [ '7z', 'x', '-bd', "-o$into", $path ],
        [ 'bsdtar', '-C', $into, '-xf', $path ]) {
        mkdir $into;
        my ($output, $code) = program_output(@$unpack);
        is($code, 0, "$unpack->[0] unpacks it") or diag($output);
        my %found = map {
            my $at = $_;
            utf8::decode(my $name = s{.*/}{}sr);
            ($name => MDL::Test::slurp($at));
        } glob "$into/{*,.*[!.]*}";
        is_deeply(\%found, { map { $names[$_] => 'Number ' . ($_ + 1) } 0 .. $#names },
            'into that folder, each file under its name');
        program_output('rm', '-rf', $into);
    }
    ok(!-e "$folder/x" && !-e "$folder/../x", 'and nowhere else');
};

# --- missing files, and costs --------------------------------------------------------------------

subtest 'Each product has its archive, which says what it contains if it is not all' => sub {
    my @sets = map {
        my $set = $_;
        [ map { { name => "$set-$_.txt", bytes => "$set $_" } } 1 .. 3 ];
    } qw(book <b>score);
    pop @{ $sets[0] };
    stock($shop, @$_) for @sets;
    my $product = product();
    mapping_of($shop, [ map { $_->{id} } @{ $sets[$_] } ], download_limit => 1,
        storefront_product_id => $product, storefront_variant_ids => ["$_"]) for 0, 1;
    my $id    = digits();
    my $reply = assign($shop, $id,
        [ map { { storefront_product_id => $product, storefront_variant_id => "$_" } } 0, 1 ]);
    my $order = $reply->{json};
    my ($path) = $order->{download_page_url} =~ m{^http://[^/]+(/.+)$};
    my $shown = sub { page('GET', $path, headers => { 'accept-language' => shift })->{body} };

    like($shown->('en'), qr{>Download <bdi>book-1\.txt</bdi> and 1 more as ZIP \(2\W+files, },
        'the first, in English');
    like($shown->('en'),
        qr{>Download <bdi>&lt;b&gt;score-1\.txt</bdi> and 2 more as ZIP \(3\W+files, },
        'the second');
    like($shown->('de'),
        qr{><bdi>book-1\.txt</bdi> und 1 weitere als ZIP herunterladen \(2\W+Dateien, },
        'the first, in German');

    my $score = $order->{assignments}[1]{id};
    my $urls  = "/orders/$id/assignments/$score/download-urls";
    page('GET', api('GET', $urls, key => $shop->{token})->{json}{files}[1]{url});
    wait_for(sub { $shown->('de') !~ /weil ein Download/ }, 30, 'the end of the download');
    like($shown->('en'),
        qr{<bdi>&lt;b&gt;score-1\.txt</bdi> and 2 more files can\W+t be downloaded together},
        'once a file of it is used up, the page says which archive is gone');
    like($shown->('de'),
        qr{score-1\.txt</bdi> und 2 weitere Dateien zusammen gibt es nicht mehr als ZIP},
        'in German, too');
    like($shown->('en'), qr{>Download <bdi>book-1\.txt</bdi> and 1 more},
        'and the other is still offered');
};

subtest 'A file that is missing from the storage is found before the first byte' => sub {
    my ($order, @files) = an_order(4, download_limit => 2);
    my $path = link_of($shop, $order);
    my $blob = storage_dir() . '/blobs/' . substr($files[2]{sha256}, 0, 1) . "/$files[2]{sha256}";

    for my $harm (sub { truncate $blob, 3 }, sub { unlink $blob }) {
        $harm->();
        my $log   = error_log_size();
        my $reply = page('GET', $path);
        is($reply->{status}, 500, 'the archive is not sent');
        like($reply->{body}, qr/missing on our side/, 'a page says so');
        ok(!exists $reply->{headers}{$_}, "without $_") for qw(etag content-disposition);
        like(error_log_since($log), qr/MDL0440: asset $files[2]{id}, one of 4 .* $files[2]{sha256}/,
            'the log names the file');
        is(used($order), '0 0 0 0', 'and no download is counted');
    }
};

subtest 'It costs one download of each file, or nothing' => sub {
    my ($order) = an_order(3, download_limit => 2);
    my ($first, $second, $third) = map { link_of($shop, $order) } 1 .. 3;

    page('HEAD', $first);
    part($first, '99999999-');
    page('GET', $first, headers => { 'if-none-match' => '*' });
    is(used($order), '0 0 0', 'HEAD, 416 and 304 cost nothing');
    my $whole = page('GET', $first);
    is(used($order), '1 1 1', 'the whole archive costs one of each');
    part($first, '10-500');
    is(used($order), '1 1 1', 'another part of it costs nothing');
    my $seen = wait_for(sub {
        my ($last) = sql("SELECT status, COALESCE(asset_id, 0), size FROM download_session "
            . "WHERE assignment_id = $order->{assignment}");
        return $last->[0] eq 'counted' && $last;
    }, 20, 'the download to be settled');
    is("@$seen[1, 2]", '0 ' . length $whole->{body}, 'it is one session, without a file');
    page('GET', $second);
    is(used($order), '2 2 2', 'another link costs one more of each');
    is(page('GET', $third)->{status}, 403, 'then the limit is reached');
    is(used($order), '2 2 2', 'and nothing is counted');
    my $page = wait_for(
        sub { my $body = page('GET', $order->{path})->{body}; $body !~ /is running/ && $body }, 20,
        'the last download to be settled');
    unlike($page, qr/name="zip"/, 'the page does not offer it');
    my $over = 'The files can\W+t be downloaded together as ZIP any more, '
        . 'because the downloads of that purchase are used up';
    like($page, qr/$over/,
        'and explains why');
    is(page('POST', $order->{path}, form => { zip => $order->{assignment} })->{status}, 403,
        'pressing the button is refused like the link');

    ($order) = an_order(3, download_limit => 1);
    my ($archive, $file) = (link_of($shop, $order), urls($shop, $order)->{files}[1]{url});
    page('GET', $file);
    is(used($order), '0 1 0', 'one file is downloaded by itself');
    is(page('GET', $archive)->{status}, 403, 'the archive is refused then');
    wait_for(sub { page('GET', $order->{path})->{body} =~ /ZIP any more/ }, 20,
        'the page to call it used up');
    like(page('GET', $order->{path})->{body}, qr/ZIP any more/, 'and explains why');
    is(used($order), '0 1 0', 'and costs nothing');
};

subtest 'An archive that broke off is there for the next link, '
    . 'and while it runs the page says so' => sub {
    stock($shop, my @files = map { { name => "large-$_.bin", bytes => $_ x 4_000_000 } } 1 .. 2);
    my $order  = order_of($shop, \@files, download_limit => 1);
    my ($path) = link_of($shop, $order) =~ m{^(?:https?://[^/]+)?(/.+)$};
    my $client = MDL::DownloadClient->over('HTTP/1.1',
        { name => 'zip', vars => { port => port() } }, $path)
        ->read_until(1_000_000);

    my $page = page('GET', $order->{path})->{body};
    like($page, qr/ as ZIP right now, because a download of at least one of them is running/,
        'the page says so');
    is(() = $page =~ /A download of this file is running/g, 2, 'of each of its files, too');
    unlike($page, qr/name="(?:file|zip)"/, 'and has no button');
    is(page('POST', $order->{path}, form => { zip => $order->{assignment} })->{status}, 403,
        'pressing it is refused');
    $client->leave(1);
    wait_for(sub { page('GET', $order->{path})->{body} =~ /name="zip"/ }, 20, 'the button');
    is(page('GET', link_of($shop, $order))->{status}, 200,
        'once it is broken off another link gives it');
    is(used($order), '1 1', 'for one download of each file');
    wait_for(sub { page('GET', $order->{path})->{body} =~ /ZIP any more/ }, 20,
        'the page to call it used up');
};

subtest 'If one download is left, 20 simultaneous attempts use only that one' => sub {
    my ($order) = an_order(6, download_limit => 1);
    my @links = map { link_of($shop, $order) } 1 .. 20;
    my @statuses = parallel(scalar @links,
        sub { page('GET', $links[ $_[0] ], patient => 1)->{status} });

    is(scalar(grep { $_ == 200 } @statuses), 1, 'one is served') or diag("@statuses");
    is(scalar(grep { $_ == 403 } @statuses), 19, 'and the others are refused');
    is(used($order), '1 1 1 1 1 1', 'each file is used once');
};

done_testing();
