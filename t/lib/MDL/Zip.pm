# Shared by the suites of ZIP archives: many assets at once, inserted directly, and the programs
# that customers unpack archives with.
package MDL::Zip;

use strict;
use warnings;

use Compress::Raw::Zlib ();
use Digest::SHA qw(sha256_hex);
use Exporter qw(import);
use JSON::PP;
use Test::More;

use MDL::Test;

our @EXPORT = qw(
    stock sparse_file order_of urls link_of part
    read_all read_by_all program_output
);

my $number       = 0;
my $order_number = int(time);

# An SQL expression for a text of any bytes.
sub sql_text
{
    my ($bytes) = @_;
    my $hex = unpack 'H*', $bytes;
    return database() eq 'pgsql' ? "convert_from(decode('$hex', 'hex'), 'UTF8')"
        : "CAST(X'$hex' AS TEXT)";
}

# Puts files into the storage folder and makes each an asset of the shop, without an import, which
# would take too long for many files or many gigabytes.  A file is { name, bytes } or the result of
# sparse_file, and may have updated_at (microseconds).  Its id and sha256 are filled in.
sub stock
{
    my ($shop, @files) = @_;
    for my $file (@files) {
        if (defined $file->{bytes}) {
            $file->{size}   = length $file->{bytes};
            $file->{sha256} = sha256_hex($file->{bytes});
            $file->{crc32}  = Compress::Raw::Zlib::crc32($file->{bytes});
            my $path = blob_path($file);
            open my $out, '>:raw', $path or die "$path: $!\n";
            print $out $file->{bytes};
            close $out or die "$path: $!\n";
        }
        $file->{mark} = 'zip:' . ++$number;
        $file->{updated_at} //= 1_795_244_889_000_000;
    }
    while (my @some = splice @files, 0, 150) {
        sql('INSERT INTO blob (sha256, size, crc32, created_at) VALUES '
            . join(', ', map { "('$_->{sha256}', $_->{size}, $_->{crc32}, 1)" } @some)
            . ' ON CONFLICT (sha256) DO NOTHING');
        my %id = map { $_->[1] => 0 + $_->[0] }
            sql('INSERT INTO asset (shop_id, status, filename, title, '
            . 'source_url, sha256, size, version, created_at, updated_at) VALUES '
            . join(', ', map { my $name = sql_text($_->{name});
                "($shop->{shop_id}, 'ready', $name, $name, '$_->{mark}', '$_->{sha256}', "
                    . "$_->{size}, 1, 1, $_->{updated_at})" } @some)
            . ' RETURNING id, source_url');
        $_->{id} = $id{ $_->{mark} } for @some;
    }
    return;
}

sub blob_path
{
    my ($file) = @_;
    return storage_dir() . '/blobs/' . substr($file->{sha256}, 0, 1) . "/$file->{sha256}";
}

# The CRC-32 of $length zero bytes, combined from those of powers of two.
sub crc_of_zeros
{
    my ($length) = @_;
    my ($crc, $power, $size) = (0, Compress::Raw::Zlib::crc32("\0"), 1);
    for (; $length; $length >>= 1, $size *= 2) {
        $crc = Compress::Raw::Zlib::crc32_combine($crc, $power, $size) if $length & 1;
        $power = Compress::Raw::Zlib::crc32_combine($power, $power, $size);
    }
    return $crc;
}

# A sparse file: these bytes at its beginning and end, and a hole between them.  Its SHA-256 is made
# up, since nothing checks it.
sub sparse_file
{
    my ($name, $size, $first, $last) = @_;
    my %file = (name => $name, size => $size, first => $first, last => $last,
        sha256 => sha256_hex("$name $size " . ++$number));
    my $hole = $size - length($first) - length $last;
    my $crc  = Compress::Raw::Zlib::crc32_combine(Compress::Raw::Zlib::crc32($first),
        crc_of_zeros($hole), $hole);
    $file{crc32} = Compress::Raw::Zlib::crc32_combine($crc, Compress::Raw::Zlib::crc32($last),
        length $last);
    my $path = blob_path(\%file);
    open my $out, '>:raw', $path or die "$path: $!\n";
    print $out $first;
    seek $out, $size - length $last, 0;
    print $out $last;
    close $out or die "$path: $!\n";
    return \%file;
}

# --- orders --------------------------------------------------------------------------------------

# An order of these assets, in as many packs of 250 as needed; returns { id, assignment, path }.
sub order_of
{
    my ($shop, $assets, %mapping) = @_;
    my @ids = map { $_->{id} } @$assets;
    my @packs;
    while (@ids > 250) {
        my $pack = made($shop, 'POST', '/packs',
            { name => 'Many', file_ids => [ splice @ids, -250 ] });
        unshift @packs, $pack->{id};
    }
    my @beyond  = splice @packs, 3;
    my $product = 'gid://shop/Product/' . ++$order_number;
    my $mapping = made($shop, 'POST', '/mappings',
        { storefront_product_id => $product, file_ids => \@ids, pack_ids => \@packs,
            download_limit => 0, %mapping });
    my $id = '' . ++$order_number;
    my $order = made($shop, 'POST', "/orders/$id/assignments",
        { storefront_customer_id => '7', items => [ { storefront_product_id => $product } ] });
    my ($path) = $order->{download_page_url} =~ m{^http://[^/]+(/.*)$};

    # More files than a mapping may have, as from the time before there was a limit.
    sql('INSERT INTO mapping_pack (mapping_id, pack_id, position) VALUES '
            . join ', ', map { "($mapping->{id}, $beyond[$_], " . (@packs + $_) . ')' }
            0 .. $#beyond)
        if @beyond;
    return { id => $id, assignment => $order->{assignments}[0]{id}, path => $path };
}

sub made
{
    my ($shop, $method, $path, $json) = @_;
    my $reply = api($method, $path, key => $shop->{token}, json => $json, patient => 1);
    $reply->{status} =~ /^20/ or die "$method $path: $reply->{status} $reply->{body}\n";
    return $reply->{json};
}

sub urls
{
    my ($shop, $order) = @_;
    my $reply = api('GET', "/orders/$order->{id}/assignments/$order->{assignment}/download-urls",
        key => $shop->{token});
    $reply->{status} == 200 or die "download-urls: $reply->{status} $reply->{body}\n";
    return $reply->{json};
}

# A fresh link to the archive, as a path.
sub link_of
{
    my ($shop, $order) = @_;
    my $zip = urls($shop, $order)->{zip} or die "there is no archive\n";
    my ($path) = $zip->{url} =~ m{^http://[^/]+(/.*)$};
    return $path;
}

# No test reads more than 64 MB of an archive of many GB.
sub part
{
    my ($path, $range, %headers) = @_;
    return page('GET', $path, headers => { range => "bytes=$range", %headers }, max_size => 2**26);
}

# --- programs ------------------------------------------------------------------------------------

# Runs a program; returns its output, standard error included, and its exit code.
sub program_output
{
    my (@command) = @_;
    local $ENV{LC_ALL} = 'C.UTF-8';
    my $pid = open my $from, '-|';
    defined $pid or die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec @command or die "$command[0]: $!\n";
    }
    my $output = do { local $/; <$from> // '' };
    close $from;
    return ($output, $? >> 8);
}

# The programs that customers unpack archives with, each with a command that reads a whole archive
# and verifies its checksums.
my @PROGRAMS = (
    [ 'unzip'   => 'unzip', '-tqq' ],
    [ '7-Zip'   => '7z', 't', '-bd' ],
    [ 'bsdtar'  => 'sh', '-c', 'bsdtar -xOf "$0" >/dev/null' ],
    [ 'zipfile' => 'python3', '-c',
        'import sys, zipfile; sys.exit(zipfile.ZipFile(sys.argv[1]).testzip() is not None)' ],
    [ 'yauzl'   => 'sh', '-c', 'tools/node t/node/unzip.mjs "$0" >/dev/null' ],
);

sub read_by_all
{
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($path) = @_;
    for (@PROGRAMS) {
        my ($name, @command) = @$_;
        my ($output, $code) = program_output(@command, $path);
        is($code, 0, "$name reads it") or diag($output);
    }
    return;
}

my $PYTHON = <<'END';
import hashlib, json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    for info in archive.infolist():
        with archive.open(info) as file:
            if hasattr(hashlib, "file_digest"):
                digest = hashlib.file_digest(file, "sha256")
            else:
                digest = hashlib.sha256(file.read())
        print(json.dumps([info.filename, info.file_size, digest.hexdigest()]))
END

# The entries that yauzl and Python's zipfile find in an archive: two lists of [name, size,
# SHA-256].
sub read_all
{
    my ($archive) = @_;
    return map {
        my ($output, $code) = program_output(@$_, $archive);
        die "@$_: $output" if $code != 0;
        [ map { decode_json($_) } split /\n/, $output ];
    } [ 'tools/node', 't/node/unzip.mjs' ], [ 'python3', '-c', $PYTHON ];
}

1;
