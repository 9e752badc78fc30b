# What customers fetch.
use strict;
use warnings;

use Bench::Files;
use Bench::Load;
use Bench::Row;
use Bench::Service qw(build run);
use Bench::Slow;

use constant { PART => 'bytes=0-10239', LINKS => 64 };

my $URLS = build() . '/urls';

# Paths of links that nobody has used, in a file.
sub links
{
    my ($on, $count) = @_;
    wrk($on, path => '/orders/{r}/assignments/{r}/download-urls', random => $on->{seeded},
        stop => $count, urls => $URLS, connections => 2);
    return $URLS;
}

# As many as a service says, or enough of them for as long as the run takes: three times as many as
# the last run used in that time.
sub enough
{
    my ($on) = @_;
    return $on->{downloads} // int(3 * ($on->{download_rate} // 4000) * $ENV{SECONDS}) + 100;
}

sub download { my ($on) = @_; return (key => 0, paths => links($on, enough($on))) }

row 'download',
    title   => 'a whole file of 10 KB / least statements',
    request => \&download,
    ours    => sub {
        my ($on) = @_;
        my $enough = enough($on);
        my $result = wrk($on, download($on));
        die "There were not enough links for $result->{requests} downloads.\n"
            if $result->{requests} > $enough;
        $on->{download_rate} = $result->{requests} / $ENV{SECONDS};
        return $result;
    },
    beside => sub { least($_[0], 'download') },
    grows  => 1, goal => 0.75;

# As a customer comes: with a connection of its own, and a whole handshake.
sub over_tls
{
    my ($on, $path) = @_;
    return wrk($on, key => 0, path => $path, origin => $on->{tls_origin}, close => 1);
}

row 'page',
    title   => "an order's page, new TLS connection / bare",
    on      => 'large',
    prepare => sub { fresh_url($_[0], 'file') },
    ours    => sub {
        my ($on) = @_;
        return over_tls($on, $on->{bought}{file}[2]);
    },
    beside  => sub { over_tls($_[0], '/bench/bare') },
    goal    => 0.80;

# A page of 300 files in one archive, up to its last byte, beside that of ten.
sub page_of
{
    my ($on, $what) = @_;
    fresh_url($on, $what);
    return wrk($on, key => 0, path => $on->{bought}{$what}[2], connections => 1);
}

row 'page-300',
    title  => "an order's page of 300 files / of 10",
    ours   => sub { page_of($_[0], 'files-300') },
    beside => sub { page_of($_[0], 'files-10') };

# The same up to the first byte of the page.
sub first_of
{
    my ($on, $what) = @_;
    fresh_url($on, $what);
    return first_byte($on, $on->{bought}{$what}[2]);
}

row 'page-300-first',
    title  => "ms to a page of 300 files' first byte / of 10",
    most   => 1,
    ours   => sub { first_of($_[0], 'files-300') },
    beside => sub { first_of($_[0], 'files-10') },
    goal   => 1.5;

row 'part',
    title   => 'a part, within a download / static file',
    on      => 'large',
    prepare => sub {
        my ($on) = @_;
        my $links = join '', map { fresh_url($on, 'file') =~ s{^https?://[^/]+}{}r . "\n" }
            1 .. LINKS;
        write_new("$URLS-part", $links);
    },
    ours    => sub { wrk($_[0], key => 0, paths => "$URLS-part", range => PART) },
    beside  => sub { wrk($_[0], key => 0, path => '/source/large.bin', range => PART) },
    goal => 0.25;

# How a file is fetched: by curl, or by h2load, which reads HTTP/2 faster.
my %BY = (
    http  => sub { run('curl', '-sSf', map { ('-o', '/dev/null', $_) } @_) },
    tls   => sub { run('curl', '-sSfk', '--http1.1', map { ('-o', '/dev/null', $_) } @_) },
    http2 => sub {
        for my $url (@_) {
            my $output = qx(h2load -n1 -c1 -m1 '$url' 2>&1);
            die "h2load: $output\n"
                if $output !~ /^Application protocol: h2$/m || $output !~ /, 1 succeeded/;
        }
    },
);

my %BY_WHAT = (http => '', tls => ' by TLS', http2 => ' by HTTP/2');

# What is fetched: the rows of each way, with their goals.  Ten small archives in a row: one takes
# no longer than a connection of curl's and the first statements of a child.
for my $large (
    [ 'file', 'large file', 1, $ENV{LARGE} << 20, http => 0.97, tls => 2.2, http2 => 1.0 ],
    [ 'zip', 'ZIP of two large files', 1, $ENV{LARGE} << 20,
        http => 0.97, tls => 1.2, http2 => 1.0 ],
    [ 'zip-small', 'ZIP of 1,000 files of 100 KB', 10, $ENV{FILES} * 100_000, http => 0.80 ],
) {
    my ($what, $title, $count, $bytes, %goals) = @$large;
    my $file = $what eq 'zip-small' ? 'hundred.bin' : 'large.bin';
    for my $how (sort keys %goals) {
        my $fetch = sub {
            my ($on, @paths) = @_;
            my $origin = $how eq 'http' ? $on->{origin} : $on->{tls_origin};
            my @urls   = map { $origin . s{^https?://[^/]+}{}r } @paths;
            return timed($count * $bytes / 1e6, sub { $BY{$how}->(@urls) });
        };
        row $how eq 'http' ? $what : "$what-$how",
            title  => "$title$BY_WHAT{$how}, MB/s / static file",
            on     => 'large',
            ours   => sub {
                my ($on) = @_;
                return $fetch->($on, map { fresh_url($on, $what) } 1 .. $count);
            },
            beside => sub { $fetch->($_[0], ("/source/$file") x $count) },
            goal   => $goals{$how};
    }
}

# Links to the large file, as many as there are slow downloads.
sub slow_links
{
    my ($on) = @_;
    return @{
        $on->{slow_links} //= do {
            fresh_url($on, 'file');
            my ($order, $assignment) = @{ $on->{bought}{file} };
            wrk($on, path => "/orders/$order/assignments/$assignment/download-urls",
                stop => $ENV{SLOW}, urls => "$URLS-slow");
            [ map { s/\n//r } lines("$URLS-slow") ];
        }
    };
}

sub lines
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    return <$in>;
}

# httpd closes kept connections when all threads of a child are busy for a moment.
sub download_with_breaks
{
    my ($on, @options) = @_;
    my $result = wrk($on, @options, refused => 1);
    die "$result->{refused} of $result->{requests} downloads failed.\n"
        if $result->{refused} > $result->{requests} / 20;
    return $result;
}

row 'download-beside',
    title  => "a whole file beside $ENV{SLOW} slow downloads / alone",
    on     => 'slow',
    ours   => sub {
        my ($on) = @_;
        my @options = download($on);
        return Bench::Slow::beside($on, sub { download_with_breaks($on, @options) },
            slow_links($on));
    },
    beside => sub { my ($on) = @_; return download_with_breaks($on, download($on)) },
    goal => 0.80;

row 'memory',
    title  => 'KB a slow download / of a static file',
    on     => 'memory', most => 1, rounds => 3,
    ours   => sub { my ($on) = @_; return Bench::Slow::memory($on, slow_links($on)) },
    beside => sub { Bench::Slow::memory($_[0], ('/source/large.bin') x $ENV{SLOW}) },
    goal => 1.2;

1;
