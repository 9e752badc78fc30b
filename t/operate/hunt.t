# A hunt: rows, tables and the database are taken away from the background process, its disk fails,
# it is killed at random instants and httpd restarted, while imports, uploads and emails come. When
# all is well again no slot is lost, no job has failed that had not begun, each email has arrived,
# and of each connection to the mail server that was cut one email at most comes twice.
#
#   SEED=4711 HUNT=1200     what is done, and for how many seconds (make check-hunt)
#
# both: each has its own locks and faults
use strict;
use warnings;

use MDL::Chaos qw(copies table);
use MDL::Instance;
use MDL::Mail;
use MDL::MailServer;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $seconds = $ENV{HUNT} or plan skip_all => 'make check-hunt takes its time';
my $seed = $ENV{SEED} // time ^ $$;
diag "SEED=$seed";
srand $seed;

use constant { MAILERS => 5, MB => 1024 * 1024 };

my $mail   = MDL::MailServer->new;
my $server = MDL::Instance->new(extra => <<"END")->start;
DownloadsPollInterval 1
DownloadsLeaseTime 10
DownloadsRetryDelay 500
DownloadsIngestAttempts 20
DownloadsMailConnections @{[MAILERS]}
DownloadsMailTransport smtp://127.0.0.1:$mail->{port}
END
my $source = MDL::Source->new;
my $shop   = shop_with_product('Hunt');
my $chaos  = MDL::Chaos->new(seed => $seed, ports => sub { MDL::Test::port() }, shop => $shop,
    source => $source);

# --- what is done ---------------------------------------------------------------------------------

my %done;
my ($killed, $row) = (0, 0);    # the last background process, and how many in a row
# [ from, until ]: results can't be written down, so that an email may go again without a cut
my @outages;

sub outage
{
    my ($most, $begin, $end) = @_;
    my $from = time;
    my $held = $begin->();
    sleep rand $most;
    kill_now() if $row < 2 && rand() < 0.3;
    $end->($held);
    push @outages, [ $from, time ];
    return;
}

# After the third death in a row a process would wait before it works: a restart begins the count
# anew.
sub kill_worker
{
    if ($row > 1) {
        $row = 0;
        httpd_graceful();
        $done{'restart gracefully'}++;
    }
    return kill_now();
}

sub kill_now
{
    my ($pid) = worker_pids() or return;
    return if $pid == $killed;
    kill KILL => $pid;
    $killed = $pid;
    $row++;
    $done{'kill'}++;
    return;
}

# The background process after the one that was killed last.
sub a_worker
{
    return wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $killed && $pid }, 20,
        'a background process');
}

sub kill_some
{
    for (1 .. 4) {
        a_worker();
        sleep rand 0.6;
        kill_worker();
    }
    return;
}

my @tables = qw(job asset email shop);
my %incidents = (
    'lock rows'          => sub { outage(7, sub { lock_rows($tables[ rand @tables ]) }, \&unlock) },
    'lock a table'       =>
        sub { outage(7, sub { lock_tables($tables[ rand @tables ]) }, \&unlock) },
    'take the database'  => sub {
        my $pid = a_worker();
        outage(6, sub { take_database($pid) }, sub { eval { give_database($pid) } });
    },
    'restart gracefully' => sub { httpd_graceful() },
    # A lock while work ends, and then no database, is what once lost slots.
    'lock, then take' => sub {
        my $pid = a_worker();
        outage(4, sub {
            my $lock = lock_rows('asset');
            sleep 2 + rand 5;
            take_database($pid);
            return $lock;
        }, sub { eval { give_database($pid) }; unlock($_[0]) });
    },
);

my @others = sort keys %incidents;
$chaos->load(0.1,  sub { $chaos->import_one(@_) }) for 1, 2;
$chaos->load(0.1,  sub { $chaos->upload_one(@_) });
$chaos->load(0.05, sub { $chaos->email_one(@_) }) for 1, 2;
my $until = time + $seconds;
while (time < $until) {
    kill_some();
    next if rand() < 0.5;
    my $name = $others[ rand @others ];
    $incidents{$name}->();
    $done{$name}++;
}
sleep 1;
my @lines = $chaos->end;

# --- what has become of it ------------------------------------------------------------------------

httpd_graceful();    # a process without a limit of its disk, and without a row of deaths
# Of those that have died twice one at a time is worked on, which may take long.
sub open_jobs
{
    return (sql("SELECT count(*) FROM job WHERE status IN ('queued', 'running')"))[0][0];
}

while (my $open = open_jobs()) {
    wait_for(sub { sql("UPDATE job SET due_at = 1 WHERE status = 'queued'"); open_jobs() < $open },
        60, "the end of one of $open jobs");
}

is_deeply [ map { $_->{refused} // () } @lines ], [], 'no request is refused';

# A job may fail that had begun three times.
my %failed  = table(
    "SELECT id, type, error_code, error_message, interruptions FROM job WHERE status = 'failed'");
my @imports = grep { $_->{import} && $_->{job} } @lines;
my %name_of = map { $_->{job} => $_->{import} } @imports;
my @unjust  = grep { $_->[2] ne 'internal_error' || $_->[4] < 3
    || ($name_of{ $_->[0] } && $source->requests($name_of{ $_->[0] }) < 3) } values %failed;
is_deeply \@unjust, [], 'no job has failed that had not begun three times';
my %ready = table("SELECT id, status FROM asset WHERE status = 'ready'");
is_deeply [ grep { !$ready{ $_->{asset} } && !$failed{ $_->{job} } } grep { $_->{job} } @lines ],
    [], 'each import and each upload is ready';

my @emails = grep { $_->{email} && !$_->{refused} } @lines;
my $emails = copies($mail, @outages);
my %sent   = table("SELECT recipient FROM email WHERE status = 'sent'");
is_deeply [ grep { !$emails->{by_address}{$_} || !$sent{$_} } map { $_->{email} } @emails ], [],
    'each email arrives, and counts as sent';
is_deeply $emails->{more}, [], 'of each connection that was cut one at most comes twice';
unlike $server->error_log, qr/MDL0353|Assertion|exit signal (?!Killed)/,
    'nothing was lost between threads, and nothing has crashed';

# One shop alone has four in five of a lane's slots, if none of them is lost.
sub running
{
    my ($lane) = @_;
    return (sql("SELECT count(*) FROM job WHERE lane = '$lane' AND status = 'running'"))[0][0];
}

for my $case ([ 'small', 64, { size => 1000, hold => 0 } ],
    [ 'bulk', 8, { size => 3 * MB, hold => 2 * MB, etag => '"large"' } ]) {
    my ($lane, $slots, $answer) = @$case;
    my @names = map { "slot-$lane-$_" } 1 .. $slots;
    my @jobs = map {
        api('POST', '/assets', key => $shop->{token}, patient => 1,
            json => { source_url => $source->offer($_, { %$answer, version => $_ }) })
            ->{json}{job}{id}
    } @names;
    ok wait_for(sub { running($lane) == $slots }, 60, "$slots imports at once"),
        "all slots of the lane $lane are there";
    $source->release($_) for @names;
    is_deeply [ grep { wait_job($shop, $_, 60)->{status} ne 'succeeded' } @jobs ], [],
        'and do their work';
}
order_for($shop, "held$_\@buyer.example") for 1 .. 4;
ok wait_for(sub { running('mail') == 4 }, 60, 'four emails at once'),
    'all slots for emails are there';
$mail->release;
my @uploads = map { $chaos->upload_one("slot-hash-$_") } 1 .. 8;
is_deeply [ grep { wait_job($shop, $_->{job}, 60)->{status} ne 'succeeded' } @uploads ], [],
    'uploads are read';

my %kinds;
$kinds{ $_->[1] }++ for values %failed;
diag sprintf '%s, seed %d: %s', database(), $seed, join ', ',
    map { "$done{$_} × $_" } sort keys %done;
diag sprintf '%d imports, %d uploads, %d emails over %d connections, %d of them cut; '
    . '%d emails too many; failed: %s', scalar @imports, scalar(grep { $_->{upload} } @lines),
    scalar @emails, scalar @{ $emails->{connections} }, @$emails{qw(cut extra)},
    join(', ', map { "$kinds{$_} × $_" } sort keys %kinds) || 'none';

$server->stop;
done_testing;
