# kill -9 of each kind of httpd's processes: every acknowledged import is done exactly once.
#
# both: each recovers in its own way
use strict;
use warnings;

use MDL::Instance;
use MDL::Load;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

# A large file, and imports that are acknowledged between two kills.
use constant MB => 1024 * 1024;
use constant { LARGE => ($ENV{FULL} ? 1024 : 400) * MB, LOAD => $ENV{FULL} ? 50 : 25 };

my $server = MDL::Instance->new(extra => "DownloadsLeaseTime 3\nDownloadsPollInterval 1\n")->start;
my $source = MDL::Source->new;
my $shop   = new_shop();
my $key    = $shop->{token};
my $small  = $source->offer('small', { size => 1000 });

sub import_of
{
    my ($url, %more) = @_;
    my $reply = api('POST', '/assets', key => $key, json => { source_url => $url, %more });
    die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json}{job}{id};
}

sub job { my ($id) = @_; return api('GET', "/jobs/$id", key => $key)->{json} }

sub wait_progress
{
    my ($id, $bytes) = @_;
    return wait_for(sub { (job($id)->{progress}{bytes_received} // 0) >= $bytes }, 300,
        "$bytes bytes of $id");
}

# Waits for a background process other than these; returns its pid.
sub next_worker
{
    my (@before) = @_;
    return wait_for(sub {
        my ($pid) = grep { my $one = $_; !grep { $_ == $one } @before } worker_pids();
        return $pid;
    }, 10, 'a background process');
}

sub ended { my ($pid) = @_; return (MDL::Test::slurp("/proc/$pid/stat") // ' Z ') =~ /\) Z|^ Z/ }

subtest 'the background process is killed in the middle of a large import' => sub {
    my $sha256 = MDL::Source::sha256(LARGE);
    # The first answer only shows that the file is large. However late a kill comes, it finds the
    # source waiting before the end.
    my $piece = { size => LARGE, etag => '"huge"', rate => 350 * MB, hold => 0.5 * LARGE };
    my $url   = $source->offer('huge', ($piece) x 2, { hold => 0.45 * LARGE }, { hold => LARGE });
    my $id    = import_of($url, sha256 => $sha256);
    my $log = error_log_size();
    for my $part (0.2, 0.6) {
        wait_progress($id, $part * LARGE);
        my ($worker) = worker_pids();
        kill KILL => $worker;
        isnt next_worker($worker), $worker, 'another one is started';
    }
    my $job = wait_job($shop, $id, 300);
    is $job->{status}, 'succeeded', 'the import succeeds' or diag explain $job;
    is $job->{progress}{bytes_received}, LARGE, 'with all bytes';
    my $path = storage_dir() . '/blobs/' . substr($sha256, 0, 1) . "/$sha256";
    is -s $path, LARGE, 'the file is there';
    like qx(openssl dgst -sha256 -r '$path'), qr/^$sha256\b/, 'and has the SHA-256 of the bytes';
    is_deeply [ sql('SELECT count(*), min(status) FROM asset') ], [ [ 1, 'ready' ] ],
        'there is one asset';
    is_deeply [ glob storage_dir() . '/partial/*' ], [], 'and no partial file is left';
    my @ranges = map { $_->{range} // 0 } $source->requests('huge');
    cmp_ok $ranges[-2], '>=', 0.2 * LARGE, 'after the first kill it continued from its offset';
    cmp_ok $ranges[-1], '>=', 0.6 * LARGE, 'and after the second, too';
    cmp_ok $source->sent('huge'), '<', 1.2 * LARGE, 'the source has sent few bytes twice';
    is scalar(() = error_log_since($log) =~ /MDL0334/g), 2,
        'the log has both restarts';
    unlink $path;
};

subtest 'children of httpd are killed under load' => sub {
    my $load = MDL::Load->new(key => $key, url => $small, clients => 4, keep_alive => 2);
    for (1 .. 3) {
        $load->wait_for_more(LOAD);
        my ($child) = server_pids();
        kill KILL => $child;
        wait_for(sub { ended($child) }, 10, 'the end of a child');
    }
    $load->wait_for_more(LOAD);
    my $result = $load->stop;
    my @lost = MDL::Load::lost($result->{jobs}, 30);
    is_deeply \@lost, [],
        scalar(@{ $result->{jobs} }) . ' imports were acknowledged, each succeeds';
    diag sprintf '%d requests, %d of them failed', $result->{requests},
        scalar @{ $result->{failures} };
    is scalar(worker_pids()), 1, 'there is one background process';
    is api('GET', '/ping', key => $key)->{status}, 200, 'the server goes on';
};

subtest 'the background process is killed again and again under load' => sub {
    httpd_graceful();    # resets the count of its crashes, so that it is restarted at once
    my $load = MDL::Load->new(key => $key, url => $small, clients => 4);
    my $worker;
    for (1 .. 2) {
        $load->wait_for_more(LOAD);
        $worker = next_worker($worker // ());
        kill KILL => $worker;
    }
    my $result = $load->stop;
    is_deeply $result->{failures}, [], 'no request fails';
    is_deeply [ MDL::Load::lost($result->{jobs}, 30) ], [], 'each acknowledged import succeeds';
    is_deeply [ sql('SELECT count(*) FROM asset a WHERE status <> \'ready\'') ], [ [0] ],
        'and so does every other committed one';
};

subtest 'the parent is killed under load' => sub {
    my $load = MDL::Load->new(key => $key, url => $small, clients => 4, keep_alive => 2);
    $load->wait_for_more(LOAD);
    my ($worker) = worker_pids();
    my $began = time;
    kill KILL => httpd_pid();
    wait_for(sub { ended($worker) }, 10, 'the end of the background process');
    ok ended($worker), 'the background process dies with its parent';
    diag sprintf 'it did so in %.0f ms', 1000 * (time - $began);
    # httpd's children survive their parent, and the imports that they acknowledge must be done,
    # too.
    $load->wait_for_more(LOAD);
    $server->kill_all;
    my $result = $load->stop;
    $server->start;
    is_deeply [ MDL::Load::lost($result->{jobs}, 30) ], [],
        scalar(@{ $result->{jobs} }) . ' imports were acknowledged, each succeeds after a start';
    is scalar(worker_pids()), 1, 'there is one background process';
};

# An import that stops after 2 of its 3 MB until it is released.
sub held_import
{
    my ($name) = @_;
    my $id = import_of($source->offer($name, { size => 3 * MB, etag => '"h"', version => $name,
        hold => 2 * MB }));
    wait_progress($id, MB);
    return $id;
}

sub stored_whole
{
    my ($name) = @_;
    my $sha256 = MDL::Source::sha256(3 * MB, $name);
    my $path = storage_dir() . '/blobs/' . substr($sha256, 0, 1) . "/$sha256";
    return like qx(openssl dgst -sha256 -r '$path'), qr/^$sha256\b/, 'the file has the right bytes';
}

subtest 'a restart replaces a background process that hangs' => sub {
    my $id = held_import('hangs');
    my ($hung) = worker_pids();
    pause_process($hung);
    httpd_graceful();
    wait_for(sub { ended($hung) }, 10, 'the end of the process that hung');
    my $next = next_worker($hung);
    $source->release('hangs');
    my $job = wait_job($shop, $id, 20);
    is $job->{status}, 'succeeded', 'its job succeeds' or diag explain $job;
    is_deeply [ worker_pids() ], [$next], 'there is one background process';
    stored_whole('hangs');
    cmp_ok $source->sent('hangs'), '<', 4 * MB, 'it has continued from its offset';
};

subtest 'a worker that hangs loses its job to another node, and changes nothing when '
    . 'it wakes up' => sub {
    my $other = MDL::Instance->new(
        extra => "DownloadsLeaseTime 3\nDownloadsPollInterval 1\n"
            . "DownloadsStorage $server->{folder}/storage\nDownloadsMigrate Off\n"
            . qq(DBDParams "$server->{vars}{db_params}"\n),
        without => qr/^DBDParams/
    );
    $other->start;
    $server->aim;
    my $id = held_import('fenced');
    my ($hung, $next) = map { $_->aim; worker_pids() } $server, $other;
    # Either background process may have the job.
    my $has = sub { scalar grep { (readlink($_) // '') =~ /$id$/ } glob "/proc/$_[0]/fd/*" };
    my ($owner) = grep { $has->($_) } $hung, $next;
    ok $owner, 'one of two nodes does the import';
    pause_process($owner);
    $server->aim;
    my $taken = wait_for(sub { sql("SELECT 1 FROM job WHERE id = '$id' AND lease_token > 1") }, 20,
        'another lease');
    $source->release('fenced');
    my $job = wait_job($shop, $id, 20);
    is $job->{status}, 'succeeded', 'the other node does it once the lease has ended'
        or diag explain $job;
    my $logs = sub { return $server->error_log . $other->error_log };
    kill CONT => $owner;
    wait_for(sub { $logs->() =~ /MDL032[35].*$id/ }, 10, 'the end of its attempt');
    is_deeply job($id), $job, 'the job has not changed';
    stored_whole('fenced');
    is_deeply [ glob storage_dir() . '/partial/*' ], [], 'no partial file is left';
    $other->stop;
    $server->aim;
};

$server->stop;
done_testing;
