# What a download costs that comes to no good end (contract, section 8): the client breaks off, the
# server is stopped or killed, the order is revoked in mid-transfer.
use strict;
use warnings;

use MDL::Buyer;
use MDL::Instance;
use MDL::Leaver;
use MDL::Streams;
use MDL::Test;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

use constant { KB => 1024, MB => 1024 * 1024 };

my $server = MDL::Instance->new(tls => 1, extra => <<'END')->start;
DownloadsSessionIdle 1
LogFormat "%U %H" ends
CustomLog "@t_logs@/ends" ends
END
my $shop    = new_shop();
my $file    = new_file($shop, 8 * MB);
my $large   = new_file($shop, 64 * MB);
my $streams = MDL::Streams->new($server);

# --- clients that stop where they are told to ------------------------------------------------------

# The rest of a link's file by curl, from this byte on; returns the status.
sub resume
{
    my ($path, $from, $rest) = @_;
    my $got = logs_dir() . '/rest';
    my $url = 'http://localhost:' . port() . $path;
    chomp(my $status = qx(curl -sS -r $from- -o '$got' -w '%{http_code}' '$url'));
    is MDL::Test::slurp($got) eq substr($rest, $from), 1, 'the rest comes' or diag "status $status";
    unlink $got;
    return $status;
}

# A transfer that has brought so many bytes and waits: { read, arrived (at least), leave, on }.
my %BEGIN = (
    'HTTP/1.1' => sub { return reader(@_, port => port()) },
    'TLS'      => sub { return reader(@_, port => $server->tls_port, tls => 1) },
    'HTTP/2'   => sub {
        my ($path, $until) = @_;
        $streams->get($path, path => $path, until => $until);
        my $event = $streams->event($path);
        die "$event->{event} after $event->{bytes} bytes\n" if $event->{event} ne 'paused';
        return {
            arrived => sub { return $event->{bytes} },
            leave   => sub {
                my ($how) = @_;
                $streams->tell($how ? (do => 'drop', on => "that of $path") : (do => 'reset', id => $path));
                return $streams->event($path)->{bytes};
            },
            rest => sub {
                $streams->tell(do => 'go', id => $path);
                my $end = $streams->event($path);
                return ($end->{event} eq 'end' ? 1 : 0, $end->{sha256}, $end->{bytes});
            },
        };
    },
);
my @ways = sort keys %BEGIN;

sub reader
{
    my ($path, $until, %opt) = @_;
    my $reader = MDL::Leaver->get($path, %opt);
    $reader->read_until($until);
    return {
        arrived => sub { return $reader->arrived },
        leave   => sub { return $reader->leave(@_) },
        rest    => sub { my $whole = $reader->rest; return ($whole, $reader->sha256, $reader->read_bytes) },
    };
}

sub begin { my ($way, $path, $until) = @_; return $BEGIN{$way}->($path, $until) }

sub requests_ended
{
    my ($path) = @_;
    return scalar grep { index($_, "$path ") == 0 } split /\n/, MDL::Test::slurp(logs_dir() . '/ends') // '';
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

# What is to give its download back takes its time, so all of it is looked at together, in the end:
# by the name of the case { buy, read, final => 1 for what can't go on }.
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
    my (@kept, @short, @lost);
    for (@{ $cases{$case} }) {
        my $account = settled($_->{buy}, 60);
        my $session = $account->{sessions}[0];
        push @kept, $session if $account->{used} != 0 || $session->{status} ne 'returned';
        push @short, "$session->{bytes_delivered} of $_->{read}"
            if $session->{bytes_delivered} < $_->{read};
    }
    is_deeply \@kept, [], 'each gives its download back';
    is_deeply \@short, [], 'none has read more than the service says';
    my @again = grep { !$_->{final} } @{ $cases{$case} };
    resume($_->{buy}{link}, $_->{read}, $_->{buy}{file}{bytes}) for @again;
    for (@again) {
        my $account = settled($_->{buy}, 60);
        push @lost, $account if $account->{used} != 1 || $account->{sessions}[0]{status} ne 'counted';
    }
    is_deeply \@lost, [], 'with the rest it is one download' if @again;
    return;
}

# --- the server goes -------------------------------------------------------------------------------

# A transfer over each way that stands in the middle.
sub transfers
{
    return map {
        my $buy = buy($shop, $file, limit => 1);
        $buy->{way}    = $_;
        $buy->{link}   = link_of($buy);
        $buy->{client} = begin($_, $buy->{link}, 5 * MB);
        $buy;
    } @ways;
}

# The bytes of running transfers that would be known if their process was gone.
sub noted
{
    my ($buy) = @_;
    my ($row) = sql("SELECT sum(bytes) FROM download_transfer WHERE assignment_id = $buy->{assignment}");
    return $row->[0] || 0;
}

for my $case (
    [ 'killed', sub { $server->kill_all; $server->start } ],
    [ 'stopped', sub { $server->stop; $server->start } ],
) {
    my ($what, $do) = @$case;
    subtest "The server is $what in mid-transfer" => sub {
        my @buys = transfers();
        for my $buy (@buys) {
            wait_for(sub { noted($buy) >= 5 * MB }, 20, 'the service to note what has arrived');
        }
        $do->();
        for my $buy (@buys) {
            my ($whole, undef, $bytes) = $buy->{client}{rest}->();
            ok !$whole, "over $buy->{way} the client gets no more than $bytes bytes";
            gives_back("The server was $what", $buy, 5 * MB);
        }
    };
}

subtest 'The server is restarted gracefully in mid-transfer' => sub {
    my @buys = transfers();
    my @left = transfers();
    httpd_graceful();
    for my $buy (@buys) {
        my ($whole, $sha256) = $buy->{client}{rest}->();
        is $sha256, $file->{sha256}, "over $buy->{way} the transfer comes to its end";
        my $account = costs($buy, 1);
        is $account->{sessions}[0]{status}, 'counted', 'and is counted';
    }
    gives_back('Its client broke off after a graceful restart', $_, $_->{client}{leave}->(1)) for @left;
};

# --- the client breaks off -------------------------------------------------------------------------

# The number of clients, and how near to the end the last of them leaves: what is on its way to it may
# be taken for delivered, since that is rounded up.
for my $case ([ 'HTTP/1.1', 50, 64 * KB ], [ 'TLS', 15, 160 * KB ], [ 'HTTP/2', 15, 384 * KB ]) {
    my ($way, $clients, $near) = @$case;
    $clients = 5 if database() ne 'sqlite3';
    subtest "Over $way $clients clients break off in the last MB of 8" => sub {
        for my $i (1 .. $clients) {
            my $buy = buy($shop, $file, limit => 1);
            $buy->{link} = link_of($buy);
            my $client = begin($way, $buy->{link}, $file->{size} - $near - int rand(MB - $near));
            my $read   = $client->{leave}->($i % 2);
            cmp_ok $read, '<', $file->{size}, "the client leaves with $read bytes";
            gives_back("$clients broke off over $way", $buy, $read);
        }
    };
}

subtest 'A client breaks off and comes back by another link' => sub {
    my $buy = buy($shop, $file, limit => 1);
    my ($first, $second) = map { link_of($buy) } 1 .. 2;
    my $client = begin('HTTP/1.1', $first, 5 * MB);
    my $read   = $client->{leave}->(1);
    cmp_ok $read, '<', $file->{size}, "the client leaves with $read bytes";
    $buy->{link} = $second;
    gives_back('It came back by another link', $buy, $read);
};

# --- bounds ----------------------------------------------------------------------------------------

subtest 'Sixteen transfers of a link run at once' => sub {
    my $buy     = buy($shop, $large, limit => 1);
    my $path    = link_of($buy);
    my @clients = map { MDL::Leaver->get($path, port => port()) } 1 .. 16;
    is scalar(grep { $_->status == 200 } @clients), 16, 'sixteen are served';
    my $reply = page('GET', $path, headers => { Range => 'bytes=0-9' });
    is $reply->{status}, 429, 'the next is refused';
    like $reply->{headers}{'retry-after'}, qr/^\d+$/, 'and told when to come again';
    (pop @clients)->leave(1);
    wait_for(sub { page('GET', $path, headers => { Range => 'bytes=0-9' })->{status} == 206 }, 20,
        'a place that has become free');
    is account($buy)->{used}, 1, 'all of them are one download';
    gives_back('Sixteen broke off', $buy, $_->leave(1), final => 1) for @clients;
};

subtest 'A link gives three times the size of the file' => sub {
    my $buy  = buy($shop, $file, limit => 1);
    my $path = link_of($buy);
    my $half = sub { page('GET', $path, headers => { Range => 'bytes=0-4194303' })->{status} };
    is_deeply [ map { $half->() } 1 .. 6 ], [ (206) x 6 ], 'half of it six times';
    my $status;
    wait_for(sub { ($status = $half->()) != 206 }, 20, 'an end');
    is $status, 403, 'then it gives no more';
};

# --- the order is revoked --------------------------------------------------------------------------

sub revoke
{
    my ($buy) = @_;
    my $reply = api('POST', "/orders/$buy->{id}/revoke", key => $shop->{token}, json => {});
    is $reply->{status}, 200, 'the order is revoked';
    return;
}

# That the server ends the request, which would go on for a minute and more.
sub is_cut
{
    my ($path) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok eval { wait_for(sub { requests_ended($path) }, 20, 'the end of the request') },
        'the server ends the request';
}

# A reader in a process of its own, at 1 MB a second, which tells at its end how much it has got.
sub slow_reader
{
    my ($path, %opt) = @_;
    pipe my $in, my $out or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $in;
        my $reader = MDL::Leaver->get($path, %opt);
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

my %PORT = ('HTTP/1.1' => sub { (port => port()) }, 'TLS' => sub { (port => $server->tls_port, tls => 1) });

for my $way (sort keys %PORT) {
    subtest "Over $way a revoke cuts a slow transfer" => sub {
        my $buy  = buy($shop, $large, limit => 1);
        my $path = link_of($buy);
        my $got  = slow_reader($path, $PORT{$way}->());
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
        my ($whole, undef, $bytes) = $client->{rest}->();
        ok !$whole, "the client is cut off after $bytes bytes";
        cmp_ok $bytes, '<', MB, 'and gets hardly more than it had read';
        gives_back('The order was revoked', $buy, 0, final => 1);
    };
}

subtest 'Over HTTP/2 a revoke cuts its stream, and the connection lives on' => sub {
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
    is scalar(grep { ($_->{on} // '') eq 'both' } @{ $streams->{seen} }), 0, 'over the same connection';
    costs($kept, 1);
    gives_back('The order was revoked', $cut, 0, final => 1);
    $streams->tell(do => 'drop', on => 'both');
};

subtest 'Over HTTP/2 a revoke cuts a transfer that stands still' => sub {
    my $buy  = buy($shop, $large, limit => 1);
    my $path = link_of($buy);
    my $client = begin('HTTP/2', $path, 100 * KB);
    revoke($buy);
    is_cut($path) or return;
    my ($whole, undef, $bytes) = $client->{rest}->();
    ok !$whole, "the client is cut off after $bytes bytes";
    gives_back('The order was revoked', $buy, 0, final => 1);
};

subtest 'What was cut off and is restored goes on' => sub {
    my $buy    = buy($shop, $file, limit => 1);
    my $path   = link_of($buy);
    my $client = begin('HTTP/1.1', $path, 5 * MB);
    revoke($buy);
    is_cut($path) or return;
    api('POST', "/orders/$buy->{id}/restore", key => $shop->{token}, json => {});
    resume($path, 5 * MB, $file->{bytes});
    costs($buy, 1);
};

# --- what came of it -------------------------------------------------------------------------------

for my $case (@cases) {
    subtest $case => sub { gave_back($case) };
}

$streams->stop;
done_testing();
