# Emails over several connections at once: an email's result is committed before its connection
# carries the next one, so that a kill repeats one for each connection at most; a graceful restart
# repeats none that the server takes within two seconds; and a server that hesitates over one email
# holds up no other.
#
# both: each email is committed before the next
use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use MDL::Contract;
use MDL::Instance;
use MDL::Mail;
use MDL::Test;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use constant CONNECTIONS => 20;     # the default
use constant SLOW        => 1.9;    # seconds before "slow" gets an answer

my $server = MDL::Instance->new;
my $log    = "$server->{folder}/smtp.log";
my $hold   = "$server->{folder}/smtp.hold";    # as long as it is there, "tarpit" gets no answer
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 64)
    or die "no port: $!";

# A mock, for no real server asks the database at DATA: lines of its log say what happened in order.
my $out;
sub note_down { syswrite $out, join(' ', @_) . "\n"; return }

sub status_of
{
    my ($address) = @_;
    my ($row) = sql("SELECT status FROM email WHERE recipient = '$address'");
    return $row->[0];
}

sub answer_line
{
    my ($c, $line) = @_;
    if ($c->{data}) {
        return if $line ne '.';
        $c->{data} = 0;
        note_down('taken', $c->{id}, $c->{to});
        $c->{last} = $c->{to};
        push @{ $c->{held} }, "250 taken\r\n" and return if $c->{to} =~ /^tarpit/ && -e $hold;
        $c->{until} = time + SLOW and return if $c->{to} =~ /^slow/;
        return "250 taken\r\n";
    }
    return "221 bye\r\n" if $line eq 'QUIT' && (note_down('quit', $c->{id}), 1);
    $c->{to} = $1 if $line =~ /^RCPT TO:<(.*)>/;
    return "250 fine\r\n" if $line ne 'DATA';
    $c->{data} = 1;
    note_down('early', $c->{id}, $c->{to}, 'after', $c->{last})
        if defined $c->{last} && $c->{last} =~ /\@buyer\.example$/
        && status_of($c->{last}) ne 'sent';
    return "354 go on\r\n";
}

sub serve
{
    my $select = IO::Select->new($listener);
    my (%connections, $count);
    while (1) {
        for my $socket ($select->can_read(0.05)) {
            if ($socket == $listener) {
                my $client = $listener->accept or next;
                $connections{$client} = { id => ++$count, in => '' };
                $select->add($client);
                syswrite $client, "220 mock\r\n";
                next;
            }
            my $c = $connections{$socket};
            if (!sysread $socket, $c->{in}, 65_536, length $c->{in}) {
                note_down('closed', $c->{id});
                $select->remove($socket);
                close $socket;
                delete $connections{$socket};
                next;
            }
            while ($c->{in} =~ s/^(.*?)\r\n//) {
                my $answer = answer_line($c, $1);
                syswrite $socket, $answer if defined $answer;
            }
        }
        for my $socket ($select->handles) {
            my $c = $connections{$socket} or next;
            next if time < ($c->{until} // next);
            delete $c->{until};
            syswrite $socket, "250 taken\r\n";
        }
        next if -e $hold;
        for my $socket ($select->handles) {
            my $held = $socket == $listener ? undef : delete $connections{$socket}{held};
            syswrite $socket, $_ for @{ $held // [] };
        }
    }
    return;
}

$server->configure(extra => 'DownloadsMailTransport smtp://127.0.0.1:' . $listener->sockport
    . <<'END');

DownloadsPollInterval 1
END
$server->start;
my $owner = $$;
my $mock  = fork // die "fork: $!";
if (!$mock) {
    $SIG{PIPE} = 'IGNORE';
    open $out, '>>', $log or POSIX::_exit(1);
    eval { serve(); 1 } or note_down('died', $@);
    POSIX::_exit(1);
}
END { local $?; kill KILL => $mock if $mock && $$ == $owner }

my $shop = shop_with_product('Mail Shop');

sub lines { return grep { /^$_[0] / } split /\n/, MDL::Test::slurp($log) // '' }

# How often each of these addresses got an email.
sub copies
{
    my ($of) = @_;
    my %copies;
    $copies{$_}++ for map { / (\Q$of\E\S*)$/ ? $1 : () } lines('taken');
    return \%copies;
}

# Queues emails while the background process is stopped, so that it finds all of them at once.
sub backlog
{
    my ($name, $n) = @_;
    my ($worker) = wait_for(sub { my @pids = worker_pids(); @pids == 1 && $pids[0] }, 20,
        'the background process');
    pause_process($worker);
    my %orders = map { my $to = "$name$_\@buyer.example"; ($to => order_for($shop, $to)) } 1 .. $n;
    kill CONT => $worker;
    return %orders;
}

sub all_sent
{
    my (%orders) = @_;
    return wait_for(sub { my @open = sql("SELECT id FROM email WHERE status <> 'sent'"); !@open },
        300, 'all emails to be sent');
}

subtest 'a backlog goes over several connections, each used again' => sub {
    my %orders = backlog('many', 60);
    ok all_sent(%orders), 'all are sent';
    is_deeply copies('many'), { map { $_ => 1 } keys %orders }, 'each once';
    my %used;
    $used{ (split / /)[1] }++ for grep { / many/ } lines('taken');
    cmp_ok scalar(keys %used), '>', 1, 'over more than one connection';
    cmp_ok scalar(keys %used), '<=', CONNECTIONS, 'and no more than there may be';
    is_deeply [ lines('early') ], [],
        "each email's result was committed before its connection's next DATA";
};

subtest 'a server that hesitates over one email holds up no other' => sub {
    open my $file, '>', $hold or die "$hold: $!";
    close $file;
    my $slow = order_for($shop, 'tarpit@buyer.example');
    wait_for(sub { grep { / tarpit/ } lines('taken') }, 60, 'the email that gets no answer');
    my %orders = backlog('beside', 30);
    for my $order (values %orders) {
        is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
            'an email beside it';
    }
    is email_of($shop, $slow)->{status}, 'queued', 'while that one waits for its answer';
    unlink $hold;
    is wait_email($shop, $slow, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
        'which comes in the end';
    is_deeply copies('tarpit'), { 'tarpit@buyer.example' => 1 }, 'once';
};

subtest "a server that hesitates over all emails of a shop leaves connections to another's" => sub {
    my $other = shop_with_product('Other Shop');
    my $ended = grep { / tarpit/ } lines('taken');
    open my $file, '>', $hold or die "$hold: $!";
    close $file;
    my %slow = backlog('tarpit', 2 * CONNECTIONS);
    wait_for(sub { CONNECTIONS * 4 / 5 <= grep({ / tarpit/ } lines('taken')) - $ended }, 120,
        'the conversations');
    for my $number (1 .. 5) {
        my $order = order_for($other, "free$number\@buyer.example");
        is wait_email($other, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
            "another shop's email";
    }
    is grep({ / tarpit/ } lines('taken')) - $ended, CONNECTIONS * 4 / 5,
        'beside as many as a shop may have';
    unlink $hold;
    ok all_sent(%slow), 'and the others are sent in the end';
};

subtest 'a kill repeats one email for each connection at most' => sub {
    my %orders = backlog('killed', 60);
    my ($worker) = worker_pids();
    wait_for(sub { lines('taken') >= 91 + 2 * CONNECTIONS + 5 + 20 }, 120, 'twenty of the emails');
    kill KILL => $worker;
    ok all_sent(%orders), 'all are sent in the end';
    my $copies = copies('killed');
    is_deeply [ sort keys %$copies ], [ sort keys %orders ], 'each arrived';
    cmp_ok((grep { $_ > 2 } values %$copies), '==', 0, 'none more than twice');
    my $again = grep { $_ > 1 } values %$copies;
    diag "$again of 60 emails arrived twice";
    cmp_ok $again, '<=', CONNECTIONS, 'no more of them twice than there are connections';
    is_deeply [ lines('early') ], [], 'and still no connection had run ahead';
};

# Restarts gracefully while emails wait for their answers; returns whether the background process
# has ended by itself, and their orders.
sub restart_beside_mail
{
    my ($round) = @_;
    my $taken = lines('taken');
    my %orders = backlog("slow$round-", 20);
    my ($worker) = worker_pids();
    wait_for(sub { lines('taken') >= $taken + 15 }, 120, 'emails that wait for their answers');
    my ($log_size, $began, $took) = (error_log_size(), time);
    MDL::Httpd::restart_by('USR1', 'a graceful restart', sub {
        wait_for(sub { (MDL::Test::slurp("/proc/$worker/stat") // ') Z') =~ /\) [ZX]/ }, 60,
            'its end');
        $took = time - $began;
    });
    my $killed = $took > 2.5 || error_log_since($log_size) =~ /MDL0345/;
    ok all_sent(%orders), 'all are sent';
    return (!$killed, %orders);
}

# httpd kills a background process that has not ended after three seconds, or that stands still. On
# a busy machine it may, so that only restarts without that count.
subtest 'graceful restarts repeat no email that a slow server takes' => sub {
    my $ended = 0;
    for my $round (1 .. 15) {
        my ($in_time, %orders) = restart_beside_mail($round);
        next if !$in_time;
        is_deeply copies("slow$round-"), { map { $_ => 1 } keys %orders }, 'each once';
        is_deeply [ sql("SELECT recipient, attempts FROM email WHERE attempts <> 1 "
            . "AND recipient LIKE 'slow$round-%'") ], [], 'and each at its first attempt';
        last if ++$ended == 3;
    }
    cmp_ok $ended, '>', 0, 'the background process has ended in time';
};

subtest 'connections without work are closed' => sub {
    my $quits = lines('quit');
    my $last = order_for($shop, 'last@buyer.example');
    is wait_email($shop, $last, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'an email';
    wait_for(sub { lines('quit') > $quits }, 60, 'a QUIT');
    ok wait_for(sub {
        my %open = map { (split / /)[1] => 1 } lines('taken');
        delete $open{ (split / /)[1] } for lines('closed');
        !%open;
    }, 30, 'the end of all connections'), 'all of them';
    my $order = order_for($shop, 'after@buyer.example');
    is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
        'the next email makes another';
};

is_deeply [ lines('died') ], [], 'the mail server of this test was well';
$server->stop;
done_testing;
