# The TypeScript client that `make sdk` makes, of the served document, performs the main job and
# pages through an order of 60 assignments.
#
# once: the client does not depend on the database
# long: it generates and compiles a client
use strict;
use warnings;

use Cwd qw(getcwd);
use File::Copy qw(copy);
use File::Path qw(make_path);
use JSON::PP;
use MDL::Contract;
use MDL::OpenApi;
use MDL::Test;
use Test::More;

my $top    = getcwd();
my $folder = logs_dir() . "/client-$$";
make_path($folder);

# Runs a command in the client's folder; returns (exit code, output).
sub run
{
    my (@command) = @_;
    my $pid = open my $out, '-|';
    defined $pid or die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        chdir $folder or die "$folder: $!";
        exec @command or die "$command[0]: $!\n";
    }
    my $text = do { local $/; <$out> // '' };
    close $out;
    return ($? >> 8, $text);
}

sub write_file
{
    my ($name, $text) = @_;
    open my $out, '>', "$folder/$name" or die "$name: $!";
    print $out $text;
    close $out or die "$name: $!";
    return;
}

sub configure
{
    my (@files) = @_;
    my %options = (target => 'es2022', module => 'nodenext', lib => [qw(es2022 dom)], types => []);
    $options{$_} = JSON::PP::true
        for qw(strict noUncheckedIndexedAccess exactOptionalPropertyTypes);
    write_file('tsconfig.json', encode_json({ compilerOptions => \%options, files => \@files }));
    return;
}

symlink "$top/build/node/node_modules", "$folder/node_modules" or die "node_modules: $!";
write_file('package.json', '{"type":"module"}');

my ($code, $text) = run("$top/tools/openapi2sdk", document_file(), "$folder/sdk");
is("$code $text", '0 ', 'the client is made of the document, without a warning');
is(join(' ', sort map { s{.*/}{}r } glob "$folder/sdk/*"),
    'README.md index.d.ts index.js package.json schema.d.ts', 'as a package');
copy("$top/t/node/client.ts", "$folder/client.ts") or die "client.ts: $!";

# A client that contradicts the document does not compile; one compiler looks at all of them.
my $client = do { open my $in, '<', "$folder/client.ts" or die "client.ts: $!"; local $/; <$in> };
my @mistakes = ([ "'FILES'", "'FOLDER'" ], [ 'file_ids', 'asset_ids' ],
    [ 'urls.files[0]!.url', 'urls.files[0]!.uri' ], [ "reason: 'Refunded'", 'reason: 5' ],
    [ '{ path, header: once() }', '{ path }' ]);
write_file("wrong$_.ts", $client =~ s/\Q$mistakes[$_][0]\E/$mistakes[$_][1]/r) for 0 .. $#mistakes;
configure('client.ts', map { "wrong$_.ts" } 0 .. $#mistakes);
(undef, $text) = run("$top/tools/node", 'tsc', '-p', '.');
is(join('', grep { !/^(?:wrong\d\.ts\(|\s)/ } split /^/, $text), '',
    'a program that uses it compiles, strictly');
like($text, qr/^wrong$_\.ts\(\d+,\d+\): error/m,
    "with $mistakes[$_][1] instead of $mistakes[$_][0] it does not compile")
    for 0 .. $#mistakes;

my $shop    = new_shop();
my $source  = source("client-$$.txt", "what was bought\n");
my $product = product();
my $order   = digits();
($code, $text) = run('node', 'client.js', base_url(), $shop->{token}, $source, $product, $order);
is($code, 0, 'the client performs the main job') or diag($text);
my $got = eval { decode_json($text) } // {};

is($got->{ping}{shop}{id}, $shop->{shop_id}, "ping names the key's shop");
is($got->{replayed}, 'true', 'the import, sent again, is replayed');
is($got->{job}{status}, 'succeeded', 'the job has succeeded');
is($got->{mapping}{file_ids}[0], $got->{imported}{asset}{id}, 'the product is mapped to the asset');
is($got->{assigned}{storefront_order_id}, $order, 'the order is assigned');
is($got->{order}{assignments}[0]{files}[0]{download_limit}, 3, 'and can be read');
is($got->{order}{events}[0]{action}, 'assigned', 'with its events');
is($got->{revoked}{access}{reason}, 'Refunded', 'access is revoked');
is($got->{refused}, 'access_revoked', 'so there are no URLs');
is($got->{restored}{access}{status}, 'active', 'access is restored');
is($got->{bytes}, "what was bought\n", 'so the URL gives the file');

my %paged = map { $_ => 1 } @{ $got->{paged}{ids} // [] };
is(scalar keys %paged, 60, 'all assignments of an order of 60 are seen');
is($got->{paged}{pages}, 3, 'in pages of 25');

done_testing();
