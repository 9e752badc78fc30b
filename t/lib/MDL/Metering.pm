# Tests of what a download costs, by the bytes delivered (contract, section 8), that must pass under
# each of httpd's MPMs and over each protocol that it speaks.
#
#   my ($server, $shop, $file) = meters_under('event');
package MDL::Metering;

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Exporter qw(import);
use Test::More;

use MDL::Customer;
use MDL::Instance;
use MDL::DownloadClient;
use MDL::Test;

our @EXPORT    = qw(meters_under answer is_rest statuses costs);
our @EXPORT_OK = qw(in_time ways $JOINED $CROWDED);

use constant { KB => 1024, MB => 1024 * 1024 };

# mod_http2 does not work under prefork. Protocols don't depend on the database, so all but the
# first database try HTTP/1.1 alone.
my %WAYS = (
    event   => [ 'HTTP/1.1', 'TLS', 'HTTP/2', 'h2c' ],
    worker  => [ 'HTTP/1.1', 'TLS', 'HTTP/2', 'h2c' ],
    prefork => [ 'HTTP/1.1', 'TLS' ],
);
if (!$ENV{FULL} && database() ne (split ' ', $ENV{DATABASES} // database())[0]) {
    $_ = ['HTTP/1.1'] for values %WAYS;
}

# The protocols to try under an MPM.
sub ways { my ($mpm) = @_; return @{ $WAYS{$mpm} } }

# What the log says of a whole that is no download of its own, and of a transfer too many.
our ($JOINED, $CROWDED) = (qr/not counted, its session is open/, qr/not counted, 429: crowded/);

my ($server, $shop, $file);

# Runs these tests on a server of its own; returns the server, a shop, and the file of 8 MB that was
# sold. extra has further directives.
sub meters_under
{
    my ($mpm, $extra) = @_;
    $server = MDL::Instance->new(tls => 1, mpm => $mpm,
        extra => "DownloadsSessionIdle 1\n" . ($extra // ''))->start;
    $shop   = new_shop();
    $file   = new_file($shop, 8 * MB);
    my %begun;
    subtest "$mpm: if one download is left, fifty links fetched at once use only that one" =>
        \&one_of_fifty;
    for my $way (ways($mpm)) {
        $begun{$way} = [ parts_begun($way) ];
        subtest "$mpm, $way: each whole transfer costs one download" => sub { whole_ones($way) };
        subtest "$mpm, $way: a download that breaks off and goes on costs one" =>
            sub { goes_on($way) };
    }
    for my $way (ways($mpm)) {
        subtest "$mpm, $way: two parts by two links cost one download, "
            . "once they make up the whole file" =>
            sub { parts_joined($way, @{ $begun{$way} }) };
    }
    subtest "$mpm: clients that close their sending side pay for what they get" => \&closed_halves;
    for my $way ('HTTP/1.1', 'TLS') {
        subtest "$mpm, $way: each whole transfer of a connection costs one download" =>
            sub { asked_otherwise($way) };
    }
    return ($server, $shop, $file);
}

# Sends a GET of a link, and returns the client once it has read the head of the answer.
sub answer
{
    my ($way, $path, $range) = @_;
    return MDL::DownloadClient->over($way, $server, $path,
        $range ? (headers => { Range => "bytes=$range" }) : ());
}

sub is_part
{
    my ($answer, $from, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is $answer->sha256, sha256_hex(substr $file->{bytes}, $from, $answer->read_bytes), $name;
}

sub is_rest
{
    my ($answer, $from, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok $answer->rest, "$name: it comes to its end";
    return is_part($answer, $from, "$name: its bytes are the file's");
}

sub statuses { my ($account) = @_; return join ' ', map { $_->{status} } @{ $account->{sessions} } }

sub costs
{
    my ($buy, $downloads, $statuses) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $account = eval { settled($buy) } // do { diag $@; account($buy) };
    is $account->{used}, $downloads, "it has cost $downloads" or diag explain $account->{sessions};
    is statuses($account), $statuses, "its sessions are $statuses" if $statuses;
    return $account;
}

# --- under each processing model, over each protocol ---------------------------------------------

sub whole_ones
{
    my ($way) = @_;
    my $path;
    my $buy = in_time($JOINED, sub {
        my $buy = buy($shop, $file, limit => 3);
        $path = link_of($buy);
        is_rest(answer($way, $path), 0, 'the whole file');
        is_rest(answer($way, $path, '0-'), 0, 'the whole file as a range');
        is_rest(answer($way, $path, '0-'), 0, 'and the same range once more');
        return $buy;
    });
    is answer($way, $path)->status, 403, 'a fourth is refused';
    costs($buy, 3);
    is_rest(answer($way, $path, '1000-1999'), 1000, 'a part');
    costs($buy, 3);
    return;
}

sub goes_on
{
    my ($way) = @_;
    my $buy  = buy($shop, $file, limit => 1);
    my $path = link_of($buy);
    my ($from, $at_most) = (0, 0);
    my @wrong;
    for my $time (1 .. 10) {
        my $answer = answer($way, $path, "$from-");
        my $read   = $answer->read_until(700_000)->leave($time % 2);
        $at_most += $answer->at_most;
        push @wrong, "from $from"
            if $answer->sha256 ne sha256_hex(substr $file->{bytes}, $from, $read);
        $from += $read;
    }
    is_deeply \@wrong, [], "the bytes of all ten parts are the file's";
    is_rest(answer($way, $path, "$from-"), $from, 'the rest');
    my $session = costs($buy, 1, 'counted')->{sessions}[0];
    is $session->{transfers}, 11, 'all eleven requests belong to one session';
    cmp_ok $session->{bytes_delivered}, '>=', $file->{size}, 'all of it was delivered';
    cmp_ok $session->{bytes_delivered}, '<=', $at_most + $file->{size} - $from,
        'and little more than has arrived is counted as delivered';
    return;
}

# Requests for the whole file that are followed by another on the same connection, or that end it:
# each is [ name, options of the client, downloads that it costs ].
my @ASKED = (
    [ 'two pipelined requests for the whole', sub { (pipelined => $_[0]) }, 2 ],
    [ 'a part, pipelined after the whole', sub { (pipelined => $_[1]) }, 1 ],
    [ 'Connection: close', sub { (headers => { Connection => 'close' }) }, 1 ],
    [ 'HTTP/1.0', sub { (version => '1.0') }, 1 ],
);

sub asked_otherwise
{
    my ($way) = @_;
    for (@ASKED) {
        my ($name, $more, $downloads) = @$_;
        my $buy = in_time($downloads > 1 && $JOINED, sub {
            my $buy  = buy($shop, $file, limit => 3);
            my $path = link_of($buy);
            my $get  = "GET $path HTTP/1.1\r\nHost: localhost\r\n";
            my %more = $more->("$get\r\n", "${get}Range: bytes=5-9999\r\n\r\n");
            my $answer = MDL::DownloadClient->over($way, $server, $path, %more);
            is_rest($answer, 0, $name);
            is_rest($answer->read_head, $downloads == 1 ? 5 : 0, "$name: the second answer")
                if $more{pipelined};
            return $buy;
        });
        costs($buy, $downloads, join ' ', ('counted') x $downloads);
    }
    return;
}

# The service waits half a second for what was sent to be settled: a whole that is asked for right
# behind another one is then another download, and a link with sixteen transfers takes the next one.
# If the machine was too busy for that, which the log tells by these words, the try is repeated with
# another order; a service that does not wait is never in time. $try returns its order.
sub in_time
{
    my ($late, $try) = @_;
    my $buy;
    for (1 .. 10) {
        my $log = error_log_size();
        $buy = $try->();
        last if !$late
            || error_log_since($log) !~ /MDL0405: .* assignment $buy->{assignment}: $late/;
    }
    return $buy;
}

# Clients that close their sending side after the request, or after a byte too many. They do not
# read for a while, so the server sees the close before it has sent the answer.
sub closed_halves
{
    my @clients = map {
        my $way = $_;
        map {
            my ($name, @more) = @$_;
            my $buy = buy($shop, $file, limit => 1);
            my $answer = MDL::DownloadClient->over($way, $server, link_of($buy),
                half_close => 1, @more);
            { name => "$way, a client that $name", buy => $buy, answer => $answer };
        } [ 'closes its sending side' ], [ 'sends a byte more and closes it', pipelined => 'X' ];
    } 'HTTP/1.1', 'TLS';
    wait_for(sub { is_noted($_->{buy}) }, 20, "the bytes of $_->{name} to be noted") for @clients;
    for (@clients) {
        my ($name, $buy, $answer) = @$_{qw(name buy answer)};
        my $whole = $answer->rest;
        my $read  = $answer->read_bytes;
        is_part($answer, 0, "$name: $read bytes come");
        my $session = costs($buy, $whole ? 1 : 0, $whole ? 'counted' : 'returned')->{sessions}[0];
        cmp_ok $session->{bytes_delivered}, '>=', $read, 'at least these are counted as delivered';
    }
    return;
}

# Whether the service has noted bytes of this order's transfer, or has already ended it.
sub is_noted
{
    my ($buy) = @_;
    my ($row) = sql("SELECT bytes FROM download_transfer WHERE assignment_id = $buy->{assignment}");
    return !$row || $row->[0] > 0;
}

sub one_of_fifty
{
    my $buy   = buy($shop, $file, limit => 1);
    my @links = map { link_of($buy) } 1 .. 50;
    my %count;
    $count{ ref $_ ? $_->{died} : $_ }++
        for parallel(50, sub { page('GET', $links[ $_[0] ], patient => 1)->{status} });
    is_deeply \%count, { 200 => 1, 403 => 49 }, 'one is served and 49 are refused';
    costs($buy, 1, 'counted');
    return;
}

# Four clients that get a part of the file and leave; parts_joined() looks at them later.
sub parts_begun
{
    my ($way) = @_;
    return map {
        my $buy = buy($shop, $file, limit => 1);
        my $to  = $_ ? $file->{size} - MB + int rand(MB - 384 * KB) : $file->{size} / 2;
        my $answer = answer($way, link_of($buy), $_ ? () : '0-' . ($to - 1));
        $_ ? $answer->read_until($to) : $answer->rest;
        +{ buy => $buy, read => $answer->leave($_ % 2), at_most => $answer->at_most };
    } 0 .. 3;
}

sub parts_joined
{
    my ($way, @parts) = @_;
    for (@parts) {
        my ($buy, $read) = @$_{qw(buy read)};
        my $session = costs($buy, 0, 'returned')->{sessions}[0];
        cmp_ok $session->{bytes_delivered}, '>=', $read,
            'at least what was read is counted as delivered';
        cmp_ok $session->{bytes_delivered}, '<=', $_->{at_most}, 'and little more than has arrived';
        is_rest(answer($way, link_of($buy), "$read-"), $read, 'the rest by another link');
        costs($buy, 1, 'counted returned');
    }
    return;
}

1;
