# What a download costs, by what was delivered (contract, section 8), as each of httpd's processing models
# has to meter it, over each protocol that it speaks.
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
use MDL::Leaver;
use MDL::Test;

our @EXPORT    = qw(meters_under answer is_rest statuses costs);
our @EXPORT_OK = qw(ways);

use constant { KB => 1024, MB => 1024 * 1024 };

# mod_http2 does not work under prefork.  A protocol makes no difference to the database.
my %WAYS = (
    event   => [ 'HTTP/1.1', 'TLS', 'HTTP/2', 'h2c' ],
    worker  => [ 'HTTP/1.1', 'TLS', 'HTTP/2', 'h2c' ],
    prefork => [ 'HTTP/1.1', 'TLS' ],
);
if (!$ENV{FULL} && database() ne (split ' ', $ENV{DATABASES} // database())[0]) {
    $_ = ['HTTP/1.1'] for values %WAYS;
}

# The protocols that are to be tried under a processing model.
sub ways { my ($mpm) = @_; return @{ $WAYS{$mpm} } }

my ($server, $shop, $file);

# Tests what each processing model has to hold over each of its protocols, on a server of its own; returns it,
# a shop and the file of 8 MB that was sold.
sub meters_under
{
    my ($mpm) = @_;
    $server = MDL::Instance->new(tls => 1, mpm => $mpm, extra => "DownloadsSessionIdle 1\n")->start;
    $shop   = new_shop();
    $file   = new_file($shop, 8 * MB);
    my %begun;
    subtest "$mpm: of fifty links that are fetched at once one is served" => \&one_of_fifty;
    for my $way (ways($mpm)) {
        $begun{$way} = [ parts_begun($way) ];
        subtest "$mpm, $way: each whole download is one" => sub { whole_ones($way) };
        subtest "$mpm, $way: a download that breaks off and goes on is one" => sub { goes_on($way) };
    }
    for my $way (ways($mpm)) {
        subtest "$mpm, $way: two parts by two links are one, once they are the whole" =>
            sub { parts_joined($way, @{ $begun{$way} }) };
    }
    subtest "$mpm: clients that close their sending side get what is counted" => \&closed_halves;
    for my $way ('HTTP/1.1', 'TLS') {
        subtest "$mpm, $way: each whole one of a connection counts once" => sub { asked_otherwise($way) };
    }
    return ($server, $shop, $file);
}

# The answer to a GET of a link, of which nothing has been read but the head.
sub answer
{
    my ($way, $path, $range) = @_;
    return MDL::Leaver->over($way, $server, $path, $range ? (headers => { Range => "bytes=$range" }) : ());
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
    ok $answer->rest, "$name: to its end";
    return is_part($answer, $from, "$name: as it is");
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

# --- under each processing model, over each protocol -----------------------------------------------

sub whole_ones
{
    my ($way) = @_;
    my $buy  = buy($shop, $file, limit => 3);
    my $path = link_of($buy);
    is_rest(answer($way, $path), 0, 'the whole');
    is_rest(answer($way, $path, '0-'), 0, 'once more as a range from its beginning');
    is_rest(answer($way, $path, '0-'), 0, 'and a third time right after it');
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
        push @wrong, "from $from" if $answer->sha256 ne sha256_hex(substr $file->{bytes}, $from, $read);
        $from += $read;
    }
    is_deeply \@wrong, [], 'ten parts come as they are';
    is_rest(answer($way, $path, "$from-"), $from, 'so does the rest');
    my $session = costs($buy, 1, 'counted')->{sessions}[0];
    is $session->{transfers}, 11, 'by eleven requests';
    cmp_ok $session->{bytes_delivered}, '>=', $file->{size}, 'all of it was delivered';
    cmp_ok $session->{bytes_delivered}, '<=', $at_most + $file->{size} - $from,
        'and little more than arrived is said to be';
    return;
}

# Requests for the whole behind which something else stands in the same connection, or nothing may: each
# { name, what is asked for, the requests for the whole that are answered }.
my @ASKED = (
    [ 'one right behind the other', sub { my ($get) = @_; return (behind => $get) }, 2 ],
    [ 'a part right behind the whole', sub { (behind => $_[1]) }, 1 ],
    [ 'Connection: close', sub { (headers => { Connection => 'close' }) }, 1 ],
    [ 'HTTP/1.0', sub { (version => '1.0') }, 1 ],
);

sub asked_otherwise
{
    my ($way) = @_;
    for (@ASKED) {
        my ($name, $more, $downloads) = @$_;
        my $buy  = buy($shop, $file, limit => 3);
        my $path = link_of($buy);
        my $get  = "GET $path HTTP/1.1\r\nHost: localhost\r\n";
        my %more = $more->("$get\r\n", "${get}Range: bytes=5-9999\r\n\r\n");
        my $answer = MDL::Leaver->over($way, $server, $path, %more);
        is_rest($answer, 0, $name);
        is_rest($answer->read_head, $downloads == 1 ? 5 : 0, "$name: the second") if $more{behind};
        costs($buy, $downloads, join ' ', ('counted') x $downloads);
    }
    return;
}

# Clients that have sent all that they will ever send, and more than was asked of them: the end of that
# is read before what they asked for has left, for they stand still meanwhile.
sub closed_halves
{
    my @clients = map {
        my $way = $_;
        map {
            my ($name, @more) = @$_;
            my $buy = buy($shop, $file, limit => 1);
            my $answer = MDL::Leaver->over($way, $server, link_of($buy), half => 1, @more);
            { name => "$way, a client that $name", buy => $buy, answer => $answer };
        } [ 'closes its sending side' ], [ 'sends a byte more and closes it', behind => 'X' ];
    } 'HTTP/1.1', 'TLS';
    wait_for(sub { is_noted($_->{buy}) }, 20, "word of $_->{name}") for @clients;
    for (@clients) {
        my ($name, $buy, $answer) = @$_{qw(name buy answer)};
        my $whole = $answer->rest;
        my $read  = $answer->read_bytes;
        is_part($answer, 0, "$name: $read bytes come");
        my $session = costs($buy, $whole ? 1 : 0, $whole ? 'counted' : 'returned')->{sessions}[0];
        cmp_ok $session->{bytes_delivered}, '>=', $read, 'and no less was delivered';
    }
    return;
}

# Whether the service knows what a transfer has delivered so far, or took it to have ended.
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
    $count{ ref $_ ? $_->{died} : $_ }++ for parallel(50, sub { page('GET', $links[ $_[0] ])->{status} });
    is_deeply \%count, { 200 => 1, 403 => 49 }, 'one is served and 49 are refused';
    costs($buy, 1, 'counted');
    return;
}

# Four who get a part of it and leave; what becomes of it is to be seen by parts_joined.
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
        cmp_ok $session->{bytes_delivered}, '>=', $read, 'no less than was read is said to be delivered';
        cmp_ok $session->{bytes_delivered}, '<=', $_->{at_most}, 'and little more than arrived';
        is_rest(answer($way, link_of($buy), "$read-"), $read, 'the rest by another link');
        costs($buy, 1, 'counted returned');
    }
    return;
}

1;
