# What an interrupted download costs (contract, section 8): the client breaks off, the server is
# stopped or killed, the order is revoked in mid-transfer.
#
# both: what a killed process has not written depends on the database
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Customer;
use MDL::Instance;
use MDL::DownloadClient;
use MDL::Metering ();
use MDL::Streams;
use MDL::Test;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

use constant { KB => 1024, MB => 1024 * 1024 };

my $server = MDL::Instance->new(tls => 1, extra => <<'END')->start;
DownloadsSessionIdle 1
SetEnvIf Request_URI "^/d/./(.{24})" token=$1
LogFormat "%{token}e %H" ends
CustomLog "@t_logs@/ends" ends
END
my $shop    = new_shop();
my $file    = new_file($shop, 8 * MB);
my $large   = new_file($shop, 64 * MB);

# --- clients that stop where they are told to ----------------------------------------------------

# Begins a transfer and reads so many bytes of it.
sub begin
{
    my ($way, $path, $until) = @_;
    return MDL::DownloadClient->over($way, $server, $path)->read_until($until);
}

# The rest of a link's file, from this byte on.
sub resume
{
    my ($way, $path, $from, $rest) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $answer = MDL::DownloadClient->over($way, $server, $path, buffer => MB,
        headers => { Range => "bytes=$from-" });
    my $whole = $answer->rest;
    return ok $whole && $answer->sha256 eq sha256_hex(substr $rest, $from),
        "the rest comes over $way";
}

sub requests_ended
{
    my ($path) = @_;
    return scalar grep { /^(\S{24}) / && index($path, $1) >= 0 }
        split /\n/, MDL::Test::slurp(logs_dir() . '/ends') // '';
}

sub costs
{
    my ($buy, $downloads, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $account = eval { settled($buy, 60) } // do { diag $@; account($buy) };
    is $account->{used}, $downloads, $name // "it has cost $downloads"
        or diag explain $account->{sessions};
    return $account;
}

# A download is given back only after a while, so all cases are checked together at the end. By
# name: { buy, read (bytes), at_most (bytes that may be counted as delivered), final => 1 if the
# order can't be downloaded any more }.
my (%cases, @cases);

sub gives_back
{
    my ($case, $buy, $read, %more) = @_;
    push @cases, $case if !$cases{$case};
    push @{ $cases{$case} }, { buy => $buy, read => $read, %more };
    return;
}

sub gave_back
{
    my ($case) = @_;
    my (@kept, @short, @long, @lost);
    for (@{ $cases{$case} }) {
        my $account = settled($_->{buy}, 60);
        my $session = $account->{sessions}[0];
        my $told    = "$session->{bytes_delivered} of $_->{read}";
        push @kept,  $session if $account->{used} != 0 || $session->{status} ne 'returned';
        push @short, $told    if $session->{bytes_delivered} < $_->{read};
        push @long,  $told    if $_->{at_most} && $session->{bytes_delivered} > $_->{at_most};
    }
    is_deeply \@kept, [], 'each gives its download back';
    is_deeply \@short, [], 'none has read more than the service says';
    is_deeply \@long, [], 'nor does the service say much more than it has read';
    my @again = grep { !$_->{final} } @{ $cases{$case} };
    resume($_->{buy}{way}, $_->{buy}{link}, $_->{read}, $_->{buy}{file}{bytes}) for @again;
    for (@again) {
        my $account = settled($_->{buy}, 60);
        push @lost, $account
            if $account->{used} != 1 || $account->{sessions}[0]{status} ne 'counted';
    }
    is_deeply \@lost, [], 'with the rest it is one download' if @again;
    return;
}

# --- the server is killed, stopped or restarted --------------------------------------------------

# h2c breaks off as HTTP/2 does.
my %WAYS = map { my $mpm = $_; $mpm => [ grep { $_ ne 'h2c' } MDL::Metering::ways($mpm) ] }
    qw(event worker prefork);

# An order and a link, with the protocol that it will be used over.
sub buy_over
{
    my ($way) = @_;
    my $buy = buy($shop, $file, limit => 1);
    @$buy{qw(way link)} = ($way, link_of($buy));
    return $buy;
}

# A transfer over each protocol, each stopped in the middle.
sub transfers
{
    my ($mpm) = @_;
    return map {
        my $buy = buy_over($_);
        $buy->{client} = begin($_, $buy->{link}, 5 * MB);
        $buy;
    } @{ $WAYS{$mpm} };
}

# The bytes of running transfers that are written down, and so would survive their process.
sub noted
{
    my ($buy) = @_;
    my ($row) = sql(
        "SELECT sum(bytes) FROM download_transfer WHERE assignment_id = $buy->{assignment}");
    return $row->[0] || 0;
}

sub is_cut_off
{
    my ($buy) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $client = $buy->{client};
    my $whole  = $client->rest;
    return ok !$whole,
        "over $buy->{way} the client gets no more than " . $client->read_bytes . ' bytes';
}

# event comes last; the sessions of the others end meanwhile. worker, whose threads are those of
# event, has its turn when all is run.
for my $mpm ('prefork', $ENV{FULL} ? 'worker' : (), 'event') {
    $server->stop;
    $server->configure(mpm => $mpm);
    $server->start;

    subtest "The server is killed in mid-transfer, $mpm" => sub {
        my @buys = transfers($mpm);
        for my $buy (@buys) {
            wait_for(sub { noted($buy) >= 5 * MB }, 20, 'the service to note what has arrived');
        }
        $server->kill_all;
        $server->start;
        for my $buy (@buys) {
            is_cut_off($buy);
            gives_back('The server was killed', $buy, 5 * MB, at_most => $buy->{client}->at_most);
        }
    };

    subtest "The server is stopped in mid-transfer, $mpm" => sub {
        my @buys = transfers($mpm);
        my $offset = error_log_size();
        $_->{client}->fill for grep { $_->{way} ne 'HTTP/2' } @buys;
        $server->stop;
        unlike error_log_since($offset), qr/sending a SIGKILL/,
            'each of its processes ends by itself';
        $server->start;
        for my $buy (@buys) {
            is_cut_off($buy);
            my $client = $buy->{client};
            gives_back('The server was stopped', $buy, $client->read_bytes,
                at_most => $client->at_most);
        }
    };

    subtest "The server is restarted gracefully in mid-transfer, $mpm" => sub {
        my @buys = transfers($mpm);
        my @left = transfers($mpm);
        httpd_graceful();
        for my $buy (@buys) {
            my $client = $buy->{client};
            ok $client->rest, "over $buy->{way} the transfer comes to its end";
            is $client->sha256, $file->{sha256}, 'with the whole file';
            my $account = costs($buy, 1);
            is $account->{sessions}[0]{status}, 'counted', 'and is counted';
        }
        for my $buy (@left) {
            my $client = $buy->{client};
            gives_back('Its client broke off after a graceful restart', $buy, $client->leave(1),
                at_most => $client->at_most);
        }
    };
}

# --- the client breaks off -----------------------------------------------------------------------

use constant CLIENTS => $ENV{FULL} ? 50 : 20;

# Reads so far and leaves, with or without a reset: { read, at_most }.
sub leave_at
{
    my ($buy, $until, $reset) = @_;
    my $client = begin($buy->{way}, $buy->{link}, $until);
    return { read => $client->leave($reset), at_most => $client->at_most };
}

# How many bytes before the end a client leaves at the latest, since bytes on their way to it may be
# counted as delivered.
my %NEAR = ('HTTP/1.1' => 192 * KB, 'TLS' => 192 * KB, 'HTTP/2' => 448 * KB);

for my $way (@{ $WAYS{event} }) {
    subtest "Over $way @{[CLIENTS]} clients break off in the last MB of 8" => sub {
        my @buys  = map { buy_over($way) } 1 .. CLIENTS;
        my @until = map { $file->{size} - $NEAR{$way} - int rand(MB - $NEAR{$way}) } @buys;
        my $leave = sub { my ($i) = @_; return leave_at($buys[$i], $until[$i], $i % 2) };
        # One helper process reads all HTTP/2 streams.
        my @left = map {
            my $ten = 10 * $_;
            $way eq 'HTTP/2' ? (map { $leave->($ten + $_) } 0 .. 9)
                : parallel(10, sub { return $leave->($ten + $_[0]) })
        } 0 .. CLIENTS / 10 - 1;
        my @failed = grep { !$_->{read} || $_->{read} >= $file->{size} } @left;
        is_deeply \@failed, [], 'each leaves before the end' or return;
        gives_back(CLIENTS . " broke off over $way", $buys[$_], $left[$_]{read},
            at_most => $left[$_]{at_most}) for 0 .. $#buys;
    };
}

subtest 'A client breaks off and comes back by another link' => sub {
    my $buy = buy($shop, $file, limit => 1);
    my ($first, $second) = map { link_of($buy) } 1 .. 2;
    my $client = begin('HTTP/1.1', $first, 5 * MB);
    my $read   = $client->leave(1);
    ok $read < $file->{size}, "the client leaves with $read bytes";
    @$buy{qw(way link)} = ('HTTP/1.1', $second);
    gives_back('It came back by another link', $buy, $read, at_most => $client->at_most);
};

# --- bounds --------------------------------------------------------------------------------------

subtest 'Sixteen transfers of a link run at once' => sub {
    my $buy     = buy($shop, $large, limit => 1);
    my $path    = link_of($buy);
    # Not the whole file: such requests would wait for each other.
    my @clients = map {
        MDL::DownloadClient->over('HTTP/1.1', $server, $path, headers => { Range => "bytes=$_-" })
    } 1 .. 16;
    is scalar(grep { $_->status == 206 } @clients), 16, 'sixteen are served';
    my $reply = page('GET', $path, headers => { Range => 'bytes=0-9' });
    is $reply->{status}, 429, 'the next is refused';
    like $reply->{headers}{'retry-after'}, qr/^\d+$/, 'and gets Retry-After';
    (pop @clients)->leave(1);
    wait_for(sub { page('GET', $path, headers => { Range => 'bytes=0-9' })->{status} == 206 }, 20,
        'a place that has become free');
    is account($buy)->{used}, 1, 'all of them are one download';
    gives_back('Sixteen broke off', $buy, $_->leave(1), final => 1) for @clients;
};

subtest 'A link sends at most three times the size of the file' => sub {
    my $buy  = buy($shop, $file, limit => 1);
    my $path = link_of($buy);
    my $half = sub { page('GET', $path, headers => { Range => 'bytes=0-4194303' })->{status} };
    is_deeply [ map { $half->() } 1 .. 6 ], [ (206) x 6 ], 'half of it six times';
    my $status;
    wait_for(sub { ($status = $half->()) != 206 }, 20, 'an end');
    is $status, 403, 'then it gives no more';
};

# Reads at most 400 KB a second to the end; returns { status, read }.
sub read_slowly
{
    my ($path) = @_;
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path, buffer => 64 * KB);
    while ($client->read_bytes < $client->{length}) {
        $client->read_some(16 * KB) or last;
        sleep 0.04;
    }
    return { status => $client->status, read => $client->read_bytes };
}

subtest 'Sixteen slow transfers of a link are cut once they have sent three times the size' => sub {
    my $film = new_file($shop, 20 * MB);
    my $buy  = buy($shop, $film, limit => 1);
    my $path = link_of($buy);
    my $log  = error_log_size();
    my @got  = parallel(16, sub { return read_slowly($path) });
    my $sum  = 0;
    $sum += $_->{read} // 0 for @got;
    is scalar(grep { ($_->{status} // 0) == 200 } @got), 16, 'sixteen are served'
        or diag explain \@got;
    is scalar(grep { ($_->{read} // $film->{size}) >= $film->{size} } @got), 0,
        'none gets the whole';
    cmp_ok $sum, '>', 2 * $film->{size}, "together they get $sum bytes: more than twice the file";
    cmp_ok $sum, '<', 5 * $film->{size}, 'but less than five times';
    like error_log_since($log), qr/MDL0412/, 'the log says that they were cut';
};

# --- the order is revoked ------------------------------------------------------------------------

sub revoke
{
    my ($buy) = @_;
    my $reply = api('POST', "/orders/$buy->{id}/revoke", key => $shop->{token}, json => {});
    is $reply->{status}, 200, 'the order is revoked';
    return;
}

# Checks that the server ends the request, which would otherwise go on for more than a minute.
sub is_cut
{
    my ($path) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok eval { wait_for(sub { requests_ended($path) }, 20, 'the end of the request') },
        'the server ends the request';
}

# A client in a process of its own that reads 1 MB a second and finally reports how much it got.
sub slow_reader
{
    my ($way, $path) = @_;
    pipe my $in, my $out or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $in;
        my $reader = MDL::DownloadClient->over($way, $server, $path);
        $out->autoflush(1);
        while ($reader->read_bytes < $large->{size}) {
            $reader->read_some(16 * KB) or last;
            print $out $reader->read_bytes, "\n";
            sleep 0.015;
        }
        POSIX::_exit(0);
    }
    close $out;
    readline $in;    # it has begun
    return sub {
        my $last = 0;
        $last = $_ while <$in>;
        waitpid $pid, 0;
        return int $last;
    };
}

for my $way ('HTTP/1.1', 'TLS') {
    subtest "Over $way a revoke cuts a slow transfer" => sub {
        my $buy  = buy($shop, $large, limit => 1);
        my $path = link_of($buy);
        my $got  = slow_reader($way, $path);
        revoke($buy);
        is_cut($path) or return;
        my $bytes = $got->();
        cmp_ok $bytes, '<', $large->{size} / 2, "the client is cut off after $bytes bytes";
        gives_back('The order was revoked', $buy, 0, final => 1);
    };

    subtest "Over $way a revoke cuts a transfer that stands still" => sub {
        my $buy    = buy($shop, $large, limit => 1);
        my $path   = link_of($buy);
        my $client = begin($way, $path, 100 * KB);
        revoke($buy);
        is_cut($path) or return;
        ok !$client->rest, 'the client is cut off';
        cmp_ok $client->read_bytes, '<', MB, 'and gets hardly more than it had read';
        gives_back('The order was revoked', $buy, 0, final => 1);
    };
}

# A small part of what was counted is written down only if it takes more than a second.
subtest 'A revoke cuts a small part that stands still' => sub {
    my $buy  = buy($shop, $file, limit => 1);
    my $path = link_of($buy);
    is page('GET', $path)->{status}, 200, 'the whole is downloaded';
    costs($buy, 1);
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $path,
        headers => { Range => 'bytes=0-' . (MB - 1) })->read_until(20 * KB);
    my $ended = requests_ended($path);
    wait_for(sub { noted($buy) >= 20 * KB }, 20, 'what it has delivered');
    revoke($buy);
    ok eval { wait_for(sub { requests_ended($path) > $ended }, 20, 'the end of the request') },
        'the server ends the request';
    ok !$client->rest, 'the client is cut off';
    my $account = wait_for(
        sub { my $now = account($buy); $now->{sessions}[0]{bytes_delivered} > 8 * MB ? $now : 0 },
        20, 'what the part delivered');
    is $account->{used}, 1, 'it cost nothing';
    is $account->{sessions}[0]{transfers}, 2, 'it is one of two transfers';
};

subtest "A new link for the order's page cuts the transfers of the former one" => sub {
    my $buy  = buy($shop, $large, limit => 2);
    my $path = link_of($buy);
    my $got  = slow_reader('HTTP/1.1', $path);
    my $reply = api('POST', "/orders/$buy->{id}/rotate-link", key => $shop->{token}, json => {});
    is $reply->{status}, 200, 'the link is replaced';
    ($buy->{path}) = $reply->{json}{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    my $later = link_of($buy);
    is_cut($path) or return;
    my $bytes = $got->();
    cmp_ok $bytes, '<', $large->{size} / 2, "the client is cut off after $bytes bytes";
    is page('GET', $path)->{status}, 404, 'and can not go on';
    settled($buy);
    my $client = begin('HTTP/1.1', $later, MB);
    sleep 3;
    ok $client->rest, "a transfer by the new page's link goes on to its end";
    costs($buy, 1, 'counted returned');
};

subtest 'Over HTTP/2 a revoke cuts its stream, and the connection lives on' => sub {
    my $streams = MDL::Streams->new($server);
    my ($cut, $kept) = map { buy($shop, $large, limit => 1) } 1 .. 2;
    my %path = map { $_->{id} => link_of($_) } $cut, $kept;
    $streams->get($_->{id}, on => 'both', path => $path{ $_->{id} }, rate => MB, until => 200 * KB)
        for $cut, $kept;
    is $streams->event($_->{id})->{event}, 'paused', 'a stream has begun' for $cut, $kept;
    $streams->tell(do => 'go', id => $_->{id}, rate => MB) for $cut, $kept;
    revoke($cut);
    my $event = $streams->event($cut->{id});
    is $event->{event}, 'failed', 'one is cut' or diag explain $event;
    cmp_ok $event->{bytes}, '<', $large->{size} / 2, "after $event->{bytes} bytes";
    $streams->tell(do => 'go', id => $kept->{id});
    my $other = $streams->event($kept->{id});
    is $other->{event}, 'end', 'the other comes to its end' or diag explain $other;
    is $other->{sha256}, $large->{sha256}, 'whole';
    is scalar(grep { ($_->{on} // '') eq 'both' } @{ $streams->{seen} }), 0,
        'over the same connection';
    costs($kept, 1);
    gives_back('The order was revoked', $cut, 0, final => 1);
};

subtest 'Over HTTP/2 a revoke cuts a transfer that stands still' => sub {
    my $buy  = buy($shop, $large, limit => 1);
    my $path = link_of($buy);
    my $client = begin('HTTP/2', $path, 100 * KB);
    revoke($buy);
    is_cut($path) or return;
    ok !$client->rest, 'the client is cut off after ' . $client->read_bytes . ' bytes';
    gives_back('The order was revoked', $buy, 0, final => 1);
};

subtest 'A transfer that was cut off goes on once the order is restored' => sub {
    my $buy    = buy($shop, $file, limit => 1);
    my $path   = link_of($buy);
    my $client = begin('HTTP/1.1', $path, 5 * MB);
    revoke($buy);
    is_cut($path) or return;
    api('POST', "/orders/$buy->{id}/restore", key => $shop->{token}, json => {});
    resume('HTTP/1.1', $path, 5 * MB, $file->{bytes});
    costs($buy, 1);
};

# --- what they cost in the end -------------------------------------------------------------------

for my $case (@cases) {
    subtest $case => sub { gave_back($case) };
}

done_testing();
