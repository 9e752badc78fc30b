# Archives of many files and of large ones: 5,000 files (FULL=1: 10,000) take the server little
# memory and few descriptors, and beyond 4 GB every program still finds all entries.
#
# The test puts the files into the storage folder and the database directly: importing 10,000 files,
# or 15 GB, would take as long as all other suites together.  The large files are sparse, with bytes
# only at their ends, and so is the copy that the programs read here.  `make check-large` (LARGE=1)
# sends all 15 GB and has each program read every byte, which takes minutes.
#
# once: zip.t tests archives on each database
use strict;
use warnings;

use File::Temp ();
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);

use MDL::Instance;
use MDL::Test;
use MDL::Zip;

use constant { FILES => $ENV{FULL} ? 10_000 : 5_000, PARTS => $ENV{FULL} ? 200 : 100 };
use constant GIB => 2**30;

# What archives may add to the child, in KB: while they are sent, and what it keeps. On SQLite the
# page cache of its writer, 1 MB, is in it.
use constant { MEMORY => 8 * 1024, KEPT => 7 * 1024 };

my $large  = $ENV{LARGE};
my $folder = File::Temp->newdir;
my ($modules) = MDL::Test::slurp('t/conf/modules.list') =~ m{(/\S+)/mod_\w+\.so};

my $server = MDL::Instance->new(mpm => 'event', single => 1, modules => ['ratelimit'],
    extra => <<"END")->start;
DownloadsLinkLifetime 3600
LoadModule http2_module $modules/mod_http2.so
Protocols h2c http/1.1
<Location /d>
    SetOutputFilter RATE_LIMIT
    SetEnvIf X-Slow (\\d+) rate-limit=\$1
</Location>
END
my $shop = new_shop();
my $child;

sub restart
{
    $server->stop;
    $server->start;
    # The background process also has the listening socket until it closes what it has inherited.
    ($child) = wait_for(sub { my @pids = server_pids(); @pids == 1 && $pids[0] }, 20, 'one child');
    return;
}

# The child's memory in KB: VmRSS or VmHWM.
sub memory
{
    my ($which) = @_;
    my ($kb) = MDL::Test::slurp("/proc/$child/status") =~ /^$which:\s+(\d+) kB/m;
    return $kb;
}

# Waits until the server has noticed that all clients have left: a transfer keeps its plan in
# memory.
sub no_transfer
{
    return wait_for(sub { !sql('SELECT 1 FROM download_transfer LIMIT 1') }, 20,
        'the end of transfers');
}

sub descriptors { return scalar(() = glob "/proc/$child/fd/*") }

sub address { return 'http://127.0.0.1:' . port() . shift }

# Downloads by curl into a file; returns the file and the bytes per second.
sub curl
{
    my ($path, @options) = @_;
    my $file = "$folder/" . idem('curl');
    my ($output, $code) = program_output('curl', '-sS', '--fail', '-o', $file, '-w',
        '%{speed_download}', @options, address($path));
    $code == 0 or die "curl: $output\n";
    return ($file, $output);
}

sub bytes_at
{
    my ($file, $offset, $length) = @_;
    open my $in, '<:raw', $file or die "$file: $!\n";
    seek $in, $offset, 0;
    my $bytes;
    read $in, $bytes, $length;
    return $bytes;
}

# --- many files ----------------------------------------------------------------------------------

my $noise = join '', map { chr int rand 256 } 1 .. 6000;
my @many  = map { { name => sprintf('part %05d.bin', $_), bytes => $_ . substr $noise, 0,
    $_ * 7919 % 6000 } }
    1 .. FILES;
stock($shop, @many);
my $order  = order_of($shop, \@many);
# The page offers no archive of a purchase with more files than it shows.
my @links  = map { link_of($shop, $order) } 1 .. 25;
my $single = urls($shop, $order)->{files}[0]{url} =~ s{^http://[^/]+}{}r;
restart();
page('GET', $single)->{status} == 200 or die "a file can't be had\n";
my ($rss, $idle) = (memory('VmRSS'), descriptors());
my ($archive) = curl(shift @links);
my $size  = -s $archive;
my $first = memory('VmHWM') - $rss;

subtest 'An archive of many files is read by every program' => sub {
    my ($yauzl, $zipfile) = read_all($archive);

    read_by_all($archive);
    my @expected = map { [ $_->{name}, $_->{size}, $_->{sha256} ] } @many;
    is_deeply($yauzl, \@expected, 'yauzl finds each of them');
    is_deeply($zipfile, \@expected, 'zipfile too');
};

subtest 'Parts at random offsets have the same bytes' => sub {
    my ($path, $same) = ('', 0);
    for my $i (0 .. PARTS - 1) {
        $path = shift @links if $i % 10 == 0;
        my $offset = int rand $size;
        my $length = 1 + int rand 300_000;
        my $reply  = part($path, "$offset-" . ($offset + $length - 1));
        my $good   = $reply->{status} == 206
            && $reply->{body} eq bytes_at($archive, $offset, $length);
        $same += $good;
        diag("$reply->{status} for $length bytes from $offset") if !$good;
    }
    is($same, PARTS, 'all of them');
};
my $resumed = memory('VmHWM') - $rss;

subtest 'A download that is cut ten times and resumed has the same bytes' => sub {
    my $path  = shift @links;
    my $bytes = '';
    for my $try (1 .. 10) {
        my $wanted = $try == 10 ? $size : length($bytes) + int rand($size / 9);
        my $offset = length $bytes;
        my $reply  = MDL::Test::client()->get(address($path), {
            headers => { range => "bytes=$offset-" },
            data_callback => sub { $bytes .= $_[0]; die "cut\n" if length $bytes >= $wanted },
        });
        like($reply->{status}, qr/206|599/, "try $try");
        no_transfer();
        last if length $bytes >= $size;
    }
    ok($bytes eq bytes_at($archive, 0, $size), 'every byte is there');
};

subtest 'Over HTTP/2 it has the same bytes' => sub {
    my $path = shift @links;
    my ($whole, $part) = map { (curl($path, '--http2-prior-knowledge', @$_))[0] }
        [], [ '-r', '12345-9876543' ];

    is((program_output('cmp', $archive, $whole))[0], '', 'the whole');
    ok(bytes_at($part, 0, $size) eq bytes_at($archive, 12345, 9876543 - 12344), 'and a part');
};

subtest 'A slow transfer holds few descriptors' => sub {
    my $path   = shift @links;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port()) or die "$@\n";
    my ($most, $got) = (0, 0);
    print $socket "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    $socket->flush;
    while (my $read = sysread $socket, my $bytes, 65536) {
        $got += $read;
        my $now = descriptors();
        $most = $now if $now > $most;
    }
    cmp_ok($got, '>', $size, 'it ends');
    cmp_ok($most - $idle, '<=', 24, "at most $most are open, $idle before");
    note("descriptors: $idle idle, at most $most");
};

# The plan is freed before the first of these bytes goes out; mod_ratelimit takes a second for the
# others.
subtest 'While the last bytes of an archive go out, its plan is freed already' => sub {
    my $path = shift @links;
    part($path, '-20000');
    no_transfer();
    my $before = memory('VmRSS');
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port()) or die "$@\n";
    my ($answer, $more) = ('');
    print $socket "GET $path HTTP/1.1\r\nHost: localhost\r\nRange: bytes=-20000\r\nX-Slow: 16\r\n"
        . "Connection: close\r\n\r\n";
    $socket->flush;
    while (sysread $socket, my $bytes, 65536) {
        $answer .= $bytes;
        $more //= memory('VmRSS') - $before if $answer =~ /\r\n\r\n./s;
    }
    my ($body) = $answer =~ m{^HTTP/1\.1 206 .*?\r\n\r\n(.*)}s;
    ok($body eq bytes_at($archive, $size - 20_000, 20_000), 'the end of the archive comes');
    SKIP: {
        skip 'the sanitizers take memory of their own', 1 if $ENV{SANITIZER_RUNTIME};
        cmp_ok($more, '<', 512,
            "$more KB more than between transfers; the plan takes 230 a thousand files");
    }
};

# --- large files ---------------------------------------------------------------------------------

my @files = (
    { name => 'before.txt', bytes => 'before' },
    (map { sparse_file("large $_.bin", 5 * GIB + $_, "the first bytes of $_",
        "the last bytes of $_") } 1 .. 3),
    { name => 'after.txt', bytes => 'after' },
);
stock($shop, @files);
my $huge   = order_of($shop, \@files);
my $length = urls($shop, $huge)->{zip}{size};

# The offset of each file by the ZIP format: a header of 30 bytes, the name, and 20 bytes of ZIP64.
my @begins;
my $end = 0;
for my $file (@files) {
    push @begins, $end + 30 + length($file->{name}) + ($file->{size} >= 0xffffffff ? 20 : 0);
    $end = $begins[-1] + $file->{size};
}

# Makes a copy of the archive with holes for its zeros.
sub sparse_copy
{
    my $path = "$folder/sparse.zip";
    my $link = link_of($shop, $huge);
    open my $out, '>:raw', $path or die "$path: $!\n";
    my @parts = ([ 0, $begins[1] + 200 ], (map { [ $_ - 200, $_ + 200 ] } @begins[ 2, 3 ]),
        [ $begins[4] - 200, $length ]);
    for (@parts) {
        my ($from, $to) = @$_;
        my $reply = part($link, "$from-" . ($to - 1));
        $reply->{status} == 206 or die "$from: $reply->{status}\n";
        seek $out, $from, 0;
        print $out $reply->{body};
    }
    truncate $out, $length;
    close $out or die "$path: $!\n";
    return $path;
}

subtest 'Beyond 4 GB every program finds the files' => sub {
    my $path = sparse_copy();
    my ($listed, $code) = program_output('unzip', '-l', $path);
    my @expected = map { "$_->{name} $_->{size}" } @files;

    is($code, 0, 'unzip lists it') or diag($listed);
    is_deeply([ map { /^\s*(\d+)\s+\S+ \S+\s+(.*\.\w+)$/ ? "$2 $1" : () } split /\n/, $listed ],
        \@expected, 'with names and sizes');
    ($listed, $code) = program_output('zipinfo', '-v', $path);
    is($code, 0, 'zipinfo gives no warning');
    is(scalar(() = $listed =~ /minimum software version required to extract:\s+4\.5\n/g), 4,
        'four entries need ZIP64');
    is(scalar(() = $listed =~ /minimum software version required to extract:\s+1\.0\n/g), 1,
        'and one does not');
    ($listed, $code) = program_output('7z', 'l', '-slt', $path);
    is($code, 0, '7-Zip lists it') or diag($listed);
    unlike($listed, qr/Warning|Error/i, 'without a warning');
    my @sizes = $listed =~ /^Size = (\d+)$/mg;
    is_deeply(\@sizes, [ map { $_->{size} } @files ], 'with its sizes');
    ($listed, $code) = program_output('bsdtar', '-tf', $path);
    is($listed, join('', map { "$_->{name}\n" } @files), 'bsdtar lists it');
    for my $small ($files[0], $files[4]) {
        is((program_output('unzip', '-p', $path, $small->{name}))[0], $small->{bytes},
            "unzip reads $small->{name}");
        is((program_output('python3', '-c', 'import sys, zipfile; sys.stdout.write(zipfile.ZipFile('
            . 'sys.argv[1]).read(sys.argv[2]).decode())', $path, $small->{name}))[0],
            $small->{bytes}, 'zipfile too');
    }
};

subtest 'Any part beyond 4 GB can be downloaded' => sub {
    my $link = link_of($shop, $huge);

    for my $i (1 .. 3) {
        my $file = $files[$i];
        is(part($link, "$begins[$i]-" . ($begins[$i] + length($file->{first}) - 1))->{body},
            $file->{first}, "the beginning of file $i");
        my $last = $begins[$i] + $file->{size};
        my $reply = part($link, ($last - length $file->{last}) . '-' . ($last + 3));
        is($reply->{body}, $file->{last} . ($i < 4 ? "PK\3\4" : ''), 'its end and what follows');
        is($reply->{headers}{'content-range'},
            'bytes ' . ($last - length $file->{last}) . '-' . ($last + 3) . "/$length",
            'its Content-Range');
        $link = link_of($shop, $huge);
    }
    for my $border (2 * GIB, 4 * GIB, 8 * GIB) {
        my $reply = part($link, ($border - 10) . '-' . ($border + 9));
        is($reply->{body}, "\0" x 20, 'around ' . $border / GIB . ' GiB');
    }
    my $reply = part($link, '-22');
    is(substr($reply->{body}, 0, 4), "PK\5\6", 'the end');
};

# One child served all of the above, one transfer at a time, so each of its threads has allocated
# what it needs. The final peak is only reported: HTTP/2 uses more threads.
subtest 'It takes the server little memory' => sub {
    plan skip_all => 'the sanitizers take memory of their own' if $ENV{SANITIZER_RUNTIME};
    no_transfer();
    my ($kept, $most) = map { memory($_) - $rss } qw(VmRSS VmHWM);
    is((server_pids())[0], $child, 'it is the same child');
    cmp_ok($resumed, '<', MEMORY, "$resumed KB at the most for the first transfer and the parts");
    cmp_ok($kept,    '<', KEPT,   "$kept KB more at the end")
        or diag(MDL::Test::slurp("/proc/$child/status"));
    note("memory: $rss KB before, $first KB more for the first transfer, "
        . "$resumed KB with the parts, ", "$kept KB after all, $most KB at the most");
};

subtest 'Three files of more than 5 GB are read by every program' => sub {
    plan skip_all => 'it takes minutes; make check-large does it' if !$large;
    my $link = link_of($shop, $huge);
    open my $out, '>', logs_dir() . '/source/static.bin' or die "static.bin: $!\n";
    truncate $out, 5 * GIB;
    restart();
    page('GET', '/source/static.bin', headers => { range => 'bytes=0-9' });
    page('HEAD', $link);
    my $before = memory('VmRSS');
    my $path   = "$folder/whole.zip";
    my $sent = sub {
        my ($output, $code) = program_output('curl', '-sS', '--fail', '-o', '/dev/null', '-w',
            '%{speed_download}', address(shift));
        is($code, 0, 'it is sent');
        return $output / 1e6;
    };
    my $speed = $sent->($link);
    my $grown = memory('VmHWM') - $before;
    cmp_ok($grown, '<', MEMORY, "the child grew by $grown KB");
    diag(sprintf 'archive %.0f MB/s, static file %.0f MB/s; memory %d KB more', $speed,
        $sent->('/source/static.bin'), $grown);
    my $address = address(link_of($shop, $huge));
    is(system("curl -sS --fail '$address' | dd of='$path' bs=1M iflag=fullblock conv=sparse "
        . "status=none"), 0,
        'the archive is saved');
    is(-s $path, $length, 'with its whole length');
    read_by_all($path);
};

$server->stop;

done_testing();
