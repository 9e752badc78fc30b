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
    wrk($on, path => '/orders/{r}/assignments/{r}/download-urls', random => $on->{seeded}, stop => $count,
        urls => $URLS, connections => 2);
    return $URLS;
}

# As many as a service says, or enough of them for as long as the run takes: three times as many as the last
# run used in that time.
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
        die "There were not enough links for $result->{requests} downloads.\n" if $result->{requests} > $enough;
        $on->{download_rate} = $result->{requests} / $ENV{SECONDS};
        return $result;
    },
    beside => sub { least($_[0], 'download') },
    grows  => 1, floor => 0.50, goal => 0.75;

row 'part',
    title   => 'a part, within a download / static file',
    on      => 'large',
    prepare => sub {
        my ($on) = @_;
        my $links = join '', map { fresh_url($on, 'file') =~ s{^https?://[^/]+}{}r . "\n" } 1 .. LINKS;
        write_new("$URLS-part", $links);
    },
    ours    => sub { wrk($_[0], key => 0, paths => "$URLS-part", range => PART) },
    beside  => sub { wrk($_[0], key => 0, path => '/source/large.bin', range => PART) },
    floor   => 0.15, goal => 0.25;

sub fetch_with_curl
{
    my ($bytes, @urls) = @_;
    return timed(@urls * $bytes / 1e6, sub { run('curl', '-sSf', map { ('-o', '/dev/null', $_) } @urls) });
}

# Ten small archives in a row: one takes no longer than a connection of curl's and the first statements of
# a child.
for my $large (
    [ 'file',      'the large file',                        0.90, 0.97, 1, $ENV{LARGE} << 20 ],
    [ 'zip',       'ZIP of two large files',                0.90, 0.97, 1, $ENV{LARGE} << 20 ],
    [ 'zip-small', 'ZIP of 1,000 files of 100 KB',          0.60, 0.80, 10, $ENV{FILES} * 100_000 ],
) {
    my ($what, $title, $floor, $goal, $count, $bytes) = @$large;
    row $what,
        title  => "$title, MB/s / static file",
        on     => 'large',
        ours   => sub {
            my ($on) = @_;
            return fetch_with_curl($bytes, map { fresh_url($on, $what) } 1 .. $count);
        },
        beside => sub {
            my ($on) = @_;
            my $file = $what eq 'zip-small' ? 'hundred.bin' : 'large.bin';
            return fetch_with_curl($bytes, ("$on->{origin}/source/$file") x $count);
        },
        floor => $floor, goal => $goal;
}

# Links to the large file, as many as there are slow downloads.
sub slow_links
{
    my ($on) = @_;
    return @{
        $on->{slow_links} //= do {
            fresh_url($on, 'file');
            my ($order, $assignment) = @{ $on->{bought}{file} };
            wrk($on, path => "/orders/$order/assignments/$assignment/download-urls", stop => $ENV{SLOW},
                urls => "$URLS-slow");
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
        return Bench::Slow::beside($on, sub { download_with_breaks($on, @options) }, slow_links($on));
    },
    beside => sub { my ($on) = @_; return download_with_breaks($on, download($on)) },
    floor  => 0.50, goal => 0.80;

row 'memory',
    title  => 'KB a slow download / of a static file',
    on     => 'memory', most => 1, rounds => 3,
    ours   => sub { my ($on) = @_; return Bench::Slow::memory($on, slow_links($on)) },
    beside => sub { Bench::Slow::memory($_[0], ('/source/large.bin') x $ENV{SLOW}) },
    floor  => 1.5, goal => 1.2;

1;
