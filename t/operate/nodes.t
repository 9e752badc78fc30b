# Two nodes on one PostgreSQL and one storage folder, one of which has a wrong clock.
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Mail;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use Test::More;

plan skip_all => 'libfaketime and the sanitizers wait for each other' if $ENV{SANITIZER_RUNTIME};

use constant { MB => 1024 * 1024, LEASE => 10, JOBS => 12 };

my $conf = <<"END";
DownloadsPollInterval 1
DownloadsLeaseTime @{[LEASE]}
DownloadsSessionIdle 2
END
my $right  = MDL::Instance->new(extra => $conf);
my $folder = "$right->{folder}/storage";
my $wrong  = MDL::Instance->new(
    clock   => 1,
    without => qr/^(?:DBDParams|DownloadsMailTransport)/,
    extra   => $conf
        . qq(DBDParams "$right->{vars}{db_params}"\nDownloadsStorage "\@t_logs\@/shared"\n)
        . qq(DownloadsMailTransport "maildir:$right->{folder}/mail"\n),
);
symlink $folder, "$wrong->{folder}/shared" or die "symlink: $!\n";
$_->start for $right, $wrong;
my ($other) = worker_pids();
$right->aim;
my ($worker) = worker_pids();
my $source = MDL::Source->new;
my $shop   = shop_with_product('Nodes');
my $file   = new_file($shop, 64 * MB);

# Calls check while the wrong clock is ahead, and while it is behind.
sub each_clock
{
    my ($name, $check) = @_;
    for my $ahead (60, -60) {
        my $log = -s "$wrong->{folder}/error_log";
        $wrong->step_clock($ahead);
        wait_for(sub { substr($wrong->error_log, $log) =~ /MDL0347/ }, 20, 'the new time');
        subtest sprintf('%s: a node is %d s %s', $name, abs $ahead,
            $ahead > 0 ? 'ahead' : 'behind') => $check;
    }
    return;
}

sub transfer
{
    my ($node) = @_;
    my $buy = buy($shop, $file, limit => 1);
    $buy->{client} = MDL::DownloadClient->over('HTTP/1.1', $node, link_of($buy))->read_until(MB);
    return $buy;
}

each_clock('Transfers', sub {
    my @buys = map { transfer($_) } ($right, $wrong) x 2;
    my $left = transfer($wrong);
    # So that the other node's process gives it back.
    pause_process($worker);
    $left->{client}->leave;
    is eval { settled($left, 60)->{used} }, 0, 'a download is given back by the node that is wrong';
    kill CONT => $worker;
    is scalar(grep { $_->{client}->rest } @buys), scalar @buys,
        'the transfers of both go on to their ends';
    is_deeply [ map { eval { settled($_, 60)->{used} } } @buys ], [ (1) x @buys ],
        'each is one download';
});

my $count = 0;

sub held_imports
{
    my (@names) = map { 'held-' . ++$count } 1 .. JOBS;
    my %ids;
    for my $name (@names) {
        my $url = $source->offer($name, { size => MB, hold => MB / 2, version => $name });
        my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
        die "import: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
        $ids{$name} = $reply->{json}{job}{id};
    }
    return \%ids;
}

sub jobs_of
{
    my ($what, $ids) = @_;
    my $list = join ', ', map { "'$_'" } values %$ids;
    return sql("SELECT $what FROM job WHERE id IN ($list)");
}

sub wait_running
{
    my ($ids, $seconds) = @_;
    return wait_for(sub {
        my @there = jobs_of('updated_at - started_at', $ids);
        return @there == grep { defined $_->[0] && $_->[0] > $seconds * 1e6 } @there;
    }, 120, "leases that were renewed for $seconds s");
}

each_clock('Jobs', sub {
    my $ids = held_imports();
    my %order = map {
        $_->aim;
        my $to = 'node-' . ++$count . '@buyer.example';
        $to => order_for($shop, $to);
    } ($right, $wrong) x 4;
    $right->aim;
    wait_running($ids, 1.5 * LEASE);
    $source->release($_) for keys %$ids;
    is_deeply [ map { wait_job($shop, $_, 30)->{status} } values %$ids ], [ ('succeeded') x JOBS ],
        'all imports succeed';
    is_deeply [ jobs_of('max(lease_token)', $ids) ], [ [1] ], 'none was taken twice';
    is_deeply [ grep { $source->requests($_) != 1 } keys %$ids ], [], 'nor done twice';
    wait_email($shop, $_, sub { $_[0]{status} eq 'sent' }) for values %order;
    is_deeply [ grep { mails($_) != 1 } keys %order ], [], 'each email comes once';
});

each_clock('A node that stands still', sub {
    my $ids = held_imports();
    wait_running($ids, 0);
    my $has = sub { scalar grep { my $fd = readlink($_) // ''; grep { $fd =~ /$_/ } values %$ids }
        glob "/proc/$_[0]/fd/*" };
    ok wait_for(sub { $has->($worker) + $has->($other) == JOBS }, 60, 'their files to be open'),
        'two nodes have the jobs';
    pause_process($worker);
    wait_for(sub { $has->($other) == JOBS }, 120, 'the other node to take them over');
    $source->release($_) for keys %$ids;
    is_deeply [ map { wait_job($shop, $_, 30)->{status} } values %$ids ], [ ('succeeded') x JOBS ],
        'the other node does them once their leases have ended';
    my $before = [ jobs_of('id, status, lease_token', $ids) ];
    kill CONT => $worker;
    my $next = held_imports();
    wait_running($next, LEASE);
    is_deeply [ jobs_of('id, status, lease_token', $ids) ], $before,
        'that changes nothing when it wakes up';
    $source->release($_) for keys %$next;
    is_deeply [ map { wait_job($shop, $_, 30)->{status} } values %$next ], [ ('succeeded') x JOBS ],
        'and both go on';
});

subtest 'A node that is a day ahead does not end what others began' => sub {
    # the other one's does the housekeeping
    $right->configure(extra => "${conf}DownloadsWorker Off\n");
    $_->stop for $right, $wrong;
    $right->start;
    my ($upload, $late) = map { begin_upload($shop, size => 8) } 1 .. 2;
    sql("UPDATE idempotency SET created_at = 1 WHERE created_at = (SELECT min(created_at) "
        . "FROM idempotency)");
    my ($kept) = map { $_->[0] } sql('SELECT count(*) FROM idempotency WHERE created_at > 1');
    sql("UPDATE upload SET expires_at = 1000000 WHERE id = '$late->{id}'");
    $wrong->step_clock(90_000);
    $wrong->start;
    $right->aim;    # both use its database
    wait_for(sub { !sql("SELECT 1 FROM upload WHERE id = '$late->{id}' AND status = 'open'") }, 120,
        'what has expired to be aborted');
    wait_for(sub { !sql('SELECT 1 FROM idempotency WHERE created_at = 1') }, 120,
        'what is over to be removed');
    is_deeply [ sql('SELECT count(*) FROM idempotency') ], [ [$kept] ],
        'answers of this day are kept';
    $wrong->aim;
    is get_upload($shop, $upload)->{status}, 'open', 'the node that is ahead shows the upload';
    is complete_upload($shop, $upload)->{status}, 409, 'and waits for its bytes';
    $right->aim;
    like put_bytes($upload, '01234567')->{status}, qr/^2/, 'which the other one takes';
    is complete_upload($shop, $upload)->{status}, 201, 'to the end';
};

done_testing;
