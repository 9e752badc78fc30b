# Large files of a service: what is imported and bought of them, once asked for.
package Bench::Files;

use strict;
use warnings;

use Bench::Rows;
use Bench::Service qw(run wait_for);
use Exporter qw(import);
use Time::HiRes qw(sleep);

our @EXPORT = qw(fresh_url write_new random_file altered_file imported);

my $order = 900_000_000;

sub write_new
{
    my ($path, $bytes) = @_;
    open my $out, '>:raw', $path or die "$path: $!\n";
    print $out $bytes;
    close $out or die "$path: $!\n";
    return;
}

# The URL of a source of so many random bytes.
sub random_file
{
    my ($on, $name, $bytes) = @_;
    my $path = "$on->{data}/source/$name";
    run('sh', '-c', 'head -c "$1" /dev/urandom >"$2"', 'sh', $bytes, $path) if !-e $path;
    return $on->{SOURCE_URL} =~ s{[^/]+$}{$name}r;
}

# The same with this text at its beginning, so that its bytes are not there yet.
sub altered_file
{
    my ($on, $name, $bytes, $text) = @_;
    my $url = random_file($on, $name, $bytes);
    open my $out, '+<', "$on->{data}/source/$name" or die "$name: $!\n";
    print $out $text;
    close $out or die "$name: $!\n";
    return $url;
}

# Imports a URL and waits; returns the asset's id.
sub imported
{
    my ($on, $url) = @_;
    my $answer = $on->api('POST', '/assets', { source_url => $url });
    my $path   = "/jobs/$answer->{job}{id}";
    my $job    = wait_for(
        sub { my $job = $on->api('GET', $path); $job->{status} !~ /queued|running/ && $job }, 600,
        "the import of $url");
    die "the import of $url has $job->{status}: $job->{error}{message}\n"
        if $job->{status} ne 'succeeded';
    return $answer->{asset}{id};
}

# The mapping of what is bought: the large file, two halves of it in an archive, 1,000 files in one.
my %MAPPED = (
    file => sub {
        my ($on, $product) = @_;
        my $asset = imported($on, random_file($on, 'large.bin', $ENV{LARGE} << 20));
        $on->api('POST', '/mappings',
            { %$product, file_ids => [$asset], download_type => 'FILES' });
    },
    zip => sub {
        my ($on, $product) = @_;
        random_file($on, 'large.bin', $ENV{LARGE} << 20);
        my @assets = map { imported($on, random_file($on, "half-$_.bin", $ENV{LARGE} << 19)) }
            1 .. 2;
        $on->api('POST', '/mappings', { %$product, file_ids => \@assets, download_type => 'ZIP' });
    },
    'zip-small' => sub {
        my ($on, $product) = @_;
        random_file($on, 'hundred.bin', $ENV{FILES} * 100_000);
        my $id = $on->api('POST', '/mappings',
            { %$product, file_ids => [1], download_type => 'ZIP' })->{id};
        $on->sql(Bench::Rows::rows('mapping_file', 1, $on->{files} - 1, mapping_id => $id,
            asset_id => 'i', position => 'i'));
    },
);

for my $count (10, 300) {
    $MAPPED{"files-$count"} = sub {
        my ($on, $product) = @_;
        my $id = $on->api('POST', '/mappings',
            { %$product, file_ids => [1], download_type => 'ZIP' })->{id};
        $on->sql(Bench::Rows::rows('mapping_file', 1, $count - 1, mapping_id => $id,
            asset_id => 'i', position => 'i'));
    };
}

# A link that nobody has used, for something that was bought; the first call prepares all of it.
sub fresh_url
{
    my ($on, $what) = @_;
    $on->{bought}{$what} //= do {
        my %product = (storefront_product_id => 'gid://bench/Product/' . ++$order);
        $MAPPED{$what}->($on, { %product, download_limit => 0 });
        my $answer = $on->api('POST', "/orders/$order/assignments",
            { storefront_customer_id => "$order", items => [ \%product ] });
        my ($page) = $answer->{download_page_url} =~ m{^https?://[^/]+(/.*)};
        [ $order, $answer->{assignments}[0]{id}, $page ];
    };
    my ($id, $assignment) = @{ $on->{bought}{$what} };
    my $urls = $on->api('GET', "/orders/$id/assignments/$assignment/download-urls");
    return $what eq 'file' ? $urls->{files}[0]{url} : $urls->{zip}{url};
}

1;
