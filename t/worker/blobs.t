# Files that nothing refers to any more leave the storage folder, and those that are needed stay.
#
# both: files are held under other locks
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Fcntl qw(:flock);
use MDL::Contract;
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use POSIX ();
use Test::More;

my $server = MDL::Instance->new(extra => "DownloadsRetryDelay 50\n")->start;
my $shop   = new_shop();
my $other  = new_shop();
my $number = 0;

sub blob
{
    my ($bytes) = @_;
    my $sha256 = sha256_hex($bytes);
    return storage_dir() . '/blobs/' . substr($sha256, 0, 1) . "/$sha256";
}

sub asset
{
    my ($of, $bytes) = @_;
    return ready_asset($of, 'file-' . ++$number . '.txt', $bytes)->{id};
}

sub remove
{
    my ($of, $id) = @_;
    my $reply = api('DELETE', "/assets/$id", key => $of->{token});
    die "DELETE: $reply->{status} $reply->{body}\n" if $reply->{status} != 204;
    return;
}

# Sweeps as if everything had been released an hour ago: a new background process begins with a
# sweep, which removes the mark of each blob that it has looked at.
sub sweep
{
    sql('UPDATE blob SET released_at = 1 WHERE released_at IS NOT NULL');
    httpd_graceful();
    wait_for(sub { !sql('SELECT sha256 FROM blob WHERE released_at = 1') }, 20, 'a sweep');
    return;
}

# Executes a statement in a transaction that holds up other writers; returns a function that
# commits.
sub hold_writes
{
    my ($statement) = @_;
    my $params = MDL::Test::vars()->{db_params};
    if (database() eq 'sqlite3') {
        open my $lock, '>>', "$params-writer" or die "$params-writer: $!\n";
        flock $lock, LOCK_EX or die "flock: $!\n";
        return sub { sql($statement); return flock $lock, LOCK_UN };
    }
    open my $psql, '|-', MDL::Database::psql(), '-q', '-o', '/dev/null', '-d',
        MDL::Database::patient($params)
        or die "psql: $!\n";
    $psql->autoflush;
    print $psql "BEGIN; $statement;\n";
    wait_for(sub { sql(q{SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
        AND query LIKE 'UPDATE %' AND state = 'idle in transaction'
        AND application_name = 'psql'}) }, 60, 'the lock');
    return sub { print $psql "COMMIT;\n"; return close $psql };
}

subtest 'the bytes of a deleted asset are removed' => sub {
    my $asset = asset($shop, 'of one alone');
    ok -e blob('of one alone'), 'they are there';
    remove($shop, $asset);
    ok -e blob('of one alone'), 'and for an hour more';
    sweep();
    ok !-e blob('of one alone'), 'then they are gone';
    is_deeply [
        sql(q{SELECT sha256 FROM blob WHERE sha256 = '} . sha256_hex('of one alone') . q{'}) ],
        [], 'and so is their row';
};

subtest 'bytes that another asset has stay' => sub {
    my @assets = (asset($shop, 'of two shops'), asset($other, 'of two shops'));
    remove($shop, $assets[0]);
    sweep();
    ok -e blob('of two shops'), 'they stay while one asset is left';
    remove($other, $assets[1]);
    sweep();
    ok !-e blob('of two shops'), 'and go with the last';
};

subtest 'the bytes of an older version are removed' => sub {
    my $asset = asset($shop, 'version one');
    my $reply = api('POST', "/assets/$asset/versions", key => $shop->{token},
        json => { source_url => source('v-' . ++$number, 'version two') });
    is $reply->{status}, 202, 'there is another' or diag $reply->{body};
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'and it is ready';
    sweep();
    ok -e blob('version one'), 'the old one is kept';
    my $former = "SELECT bytes_former FROM shop WHERE id = $shop->{shop_id}";
    my $stored = (sql($former))[0][0];
    sql("UPDATE asset SET former_until = 1 WHERE id = $asset");
    httpd_graceful();
    wait_for(sub { !sql("SELECT 1 FROM asset WHERE id = $asset AND former_version IS NOT NULL") },
        20, 'it to be forgotten');
    is((sql($former))[0][0], $stored - length 'version one',
        'which the shop no longer stores');
    is(api('GET', "/assets/$asset", key => $shop->{token})->{json}{former}, undef, 'nor sees');
    ok -e blob('version one'), 'its bytes stay an hour for those who read them';
    sweep();
    ok !-e blob('version one'), 'then they are gone';
    ok -e blob('version two'), 'the new one is there';
};

subtest 'a former version that can\'t be forgotten holds up no other' => sub {
    my $third = new_shop();
    my ($plain, $broken) = map { asset($third, "$_ of the third shop") } qw(plain broken);
    my $sound = asset($other, 'sound of another shop');
    for my $each ([ $third, $broken ], [ $other, $sound ]) {
        my ($of, $asset) = @$each;
        my $reply = api('POST', "/assets/$asset/versions", key => $of->{token},
            json => { source_url => source('v-' . ++$number, "the next of $asset") });
        wait_job($of, $reply->{json}{job}{id});
    }
    # Now at most one asset of the shop has no former version, and one has none already.
    sql('CREATE UNIQUE INDEX broken ON asset ((former_version IS NULL)) '
        . "WHERE shop_id = $third->{shop_id}");
    my $log = error_log_size();    # before a sweep of each minute may come
    sql("UPDATE asset SET former_until = 1 WHERE id = $broken");
    sql("UPDATE asset SET former_until = 2 WHERE id = $sound");
    httpd_graceful();
    wait_for(sub { !sql("SELECT 1 FROM asset WHERE id = $sound AND former_version IS NOT NULL") },
        20, 'the other to be forgotten');
    like(error_log_since($log),
        qr/MDL0358: can't forget the former version of the asset $broken;/, 'the log says so');
    sql('DROP INDEX broken');
    sql("UPDATE asset SET former_until = 9000000000000000 WHERE id = $broken");
};

subtest 'bytes that another asset has as its former version stay' => sub {
    my $asset = asset($shop, 'a former version');
    my $gone  = asset($other, 'a former version');
    my $reply = api('POST', "/assets/$asset/versions", key => $shop->{token},
        json => { source_url => source('v-' . ++$number, 'a present version') });
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'it is replaced';
    remove($other, $gone);
    sweep();
    ok -e blob('a former version'), 'they stay';
    is api('POST', "/assets/$asset/versions/1/restore", key => $shop->{token})->{status}, 200,
        'and are put back';
};

subtest 'a deleted asset keeps no version' => sub {
    my $asset = asset($shop, 'first of a deleted one');
    my $reply = api('POST', "/assets/$asset/versions", key => $shop->{token},
        json => { source_url => source('v-' . ++$number, 'second of a deleted one') });
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'it has two';
    remove($shop, $asset);
    sweep();
    ok !-e blob("$_ of a deleted one"), "the $_ is gone" for qw(first second);
};

subtest 'the bytes of an upload that was aborted after the last of them are removed' => sub {
    my $upload = begin_upload($shop, size => 8);
    is put_bytes($upload, 'uploaded')->{status}, 204, 'all bytes arrive';
    sweep();
    ok -e blob('uploaded'), 'while it is open they stay';
    is api('DELETE', "/assets/uploads/$upload->{id}", key => $shop->{token})->{status}, 204,
        'it is aborted';
    sweep();
    ok !-e blob('uploaded'), 'then they are gone';
};

subtest 'the bytes of an upload that expired are removed, those of a completed one stay' => sub {
    my ($late, $kept) = map { begin_upload($shop, size => 4) } 1 .. 2;
    put_bytes($late, 'late');
    put_bytes($kept, 'kept');
    is complete_upload($shop, $kept)->{status}, 201, 'one is completed';
    sql("UPDATE upload SET expires_at = 1 WHERE id = '$late->{id}'");
    httpd_graceful();
    wait_for(sub { sql("SELECT 1 FROM upload WHERE id = '$late->{id}' AND status = 'aborted'") },
        20, 'the other to be given up');
    sweep();
    ok !-e blob('late'), 'the bytes of the expired upload are gone';
    ok -e blob('kept'), 'those of the completed one are there';
};

subtest 'the bytes of an import that is cancelled just as they are stored are removed' => sub {
    my $bytes  = 'stored in vain';
    my $source = MDL::Source->new;
    my $reply  = api('POST', '/assets', key => $shop->{token},
        json => { source_url => $source->offer('in-vain', { body => $bytes, hold => 3 }) });
    my $cancel =
        "UPDATE job SET status = 'cancelled', lane = 'cleanup', due_at = 1, finished_at = 1"
        . " WHERE id = '$reply->{json}{job}{id}'";
    wait_for(sub { $source->requests('in-vain') }, 10, 'the import to begin');
    my $lock = hold_writes($cancel);
    $source->release('in-vain');
    wait_for(sub { -e blob($bytes) }, 10, 'its bytes to be stored');
    $lock->();
    wait_for(sub { sql(q{SELECT 1 FROM blob WHERE sha256 = '} . sha256_hex($bytes) . q{'}) }, 10,
        'the worker to see that it was cancelled');
    sweep();
    ok !-e blob($bytes), 'they are gone';
};

subtest 'the bytes of an upload that is aborted just as they are stored are removed' => sub {
    my $bytes  = 'put in vain';
    my $upload = begin_upload($shop, size => length $bytes);
    my $lock   = hold_writes("UPDATE upload SET status = 'aborted' WHERE id = '$upload->{id}'");
    my $pid    = open(my $put, '-|') // die "fork: $!\n";
    if (!$pid) {
        my $status;
        do {
            $status = put_bytes($upload, $bytes)->{status};
        } while ($status == 503);    # it does not wait for the lock for long
        syswrite STDOUT, $status;
        POSIX::_exit(0);
    }
    wait_for(sub { -e blob($bytes) }, 10, 'the bytes to be stored');
    $lock->();
    is <$put>, 409, 'the request that brought them is refused';
    sweep();
    ok !-e blob($bytes), 'they are gone';
};

subtest 'bytes that come again after they were removed are stored again' => sub {
    remove($shop, asset($shop, 'twice'));
    sweep();
    ok !-e blob('twice'), 'they are gone';
    asset($shop, 'twice');
    ok -e blob('twice'), 'and there again';
    sweep();
    ok -e blob('twice'), 'to stay';
};

subtest 'bytes that come again before they are removed stay' => sub {
    remove($shop, asset($shop, 'in time'));
    my $asset = asset($shop, 'in time');
    sweep();
    ok -e blob('in time'), 'the sweep sees that they are needed';
    remove($shop, $asset);
    sweep();
    ok !-e blob('in time'), 'and removes them once they are not';
};

subtest 'bytes that are removed while they come again are fetched once more' => sub {
    plan skip_all => 'SQLite has one writer at a time' if database() eq 'sqlite3';
    my $bytes  = 'under the hands';
    my $sha256 = sha256_hex($bytes);
    remove($shop, asset($shop, $bytes));
    open my $psql, '|-', MDL::Database::psql(), '-q', '-o', '/dev/null', '-d',
        MDL::Database::patient()
        or die "psql: $!\n";
    $psql->autoflush;
    print $psql "BEGIN; UPDATE asset SET sha256 = NULL, size = NULL WHERE sha256 = '$sha256';",
        " DELETE FROM blob WHERE sha256 = '$sha256';\n";
    wait_for(sub { sql(q{SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
        AND query LIKE 'DELETE FROM blob%' AND state = 'idle in transaction'
        AND application_name = 'psql'}) }, 60, 'a sweep that is not over');
    my $reply = api('POST', '/assets', key => $shop->{token},
        json => { source_url => source('again-' . ++$number, $bytes) });
    is $reply->{status}, 202, 'they come again';
    wait_for(sub { sql(q{SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
            AND wait_event_type = 'Lock'}) }, 10, 'the import to wait for the sweep');
    unlink blob($bytes) or die "unlink: $!\n";
    print $psql "COMMIT;\n";
    close $psql;
    my $job = wait_job($shop, $reply->{json}{job}{id});
    is $job->{status}, 'succeeded', 'the import succeeds' or diag explain $job;
    is $job->{attempts}, 2, 'at its second attempt';
    ok -e blob($bytes), 'and the bytes are there';
};

# --- what a kill leaves --------------------------------------------------------------------------

# A file that was last written so many days ago.
sub old_file
{
    my ($path, $days) = @_;
    if (!-e $path) {
        open my $out, '>', $path or die "$path: $!\n";
        close $out or die "$path: $!\n";
    }
    my $when = time - $days * 86400;
    utime $when, $when, $path or die "$path: $!\n";
    return $path;
}

# A new background process looks at one folder after the other: a file in the last goes last. The
# one before may still be on its way through them, so it ends first.
sub look_for_orphans
{
    $server->stop;
    my $last = old_file(storage_dir() . '/blobs/f/' . 'f' x 64, 8);
    $server->start;
    wait_for(sub { !-e $last }, 60, 'all folders to be looked at');
    return;
}

subtest 'bytes that are stored just before a kill, and that nobody wants any more, '
    . 'are removed' => sub {
    my $bytes  = 'orphaned';
    my $source = MDL::Source->new;
    my $reply  = api('POST', '/assets', key => $shop->{token},
        json => { source_url => $source->offer('orphaned', { body => $bytes, hold => 3 }) });
    wait_for(sub { $source->requests('orphaned') }, 10, 'the import to begin');
    my $lock = hold_writes(
        "UPDATE job SET status = 'cancelled', lane = 'cleanup', due_at = 1, finished_at = 1"
        . " WHERE id = '$reply->{json}{job}{id}'");
    $source->release('orphaned');
    wait_for(sub { -e blob($bytes) }, 10, 'its bytes to be stored');
    kill KILL => worker_pids();
    $lock->();
    my $kept = asset($shop, 'kept beside it');
    ok !sql(q{SELECT 1 FROM blob WHERE sha256 = '} . sha256_hex($bytes) . q{'}), 'they have no row';
    look_for_orphans();
    ok -e blob($bytes), 'for a week they stay';
    old_file(blob($bytes), 8);
    old_file(blob('kept beside it'), 8);
    my $log = error_log_size();
    look_for_orphans();
    ok !-e blob($bytes), 'then they are gone';
    my $sha256 = sha256_hex($bytes);
    like error_log_since($log), qr/MDL0352: removed the file $sha256 /, 'as the log says';
    ok -e blob('kept beside it'), 'those that have a row stay';
    asset($other, $bytes);
    ok -e blob($bytes), 'and the same bytes can come again';
};

subtest 'temporary files are removed' => sub {
    my $partial = storage_dir() . '/partial';
    my $upload  = begin_upload($shop, size => 8);
    patch_bytes($upload, 0, 'begun');
    old_file($_, 2) for "$partial/upl_unknown", "$partial/job_unknown", "$partial/job_unknown.mark",
        "$partial/upl_lost.blob", "$partial/.check-abcdef", "$partial/$upload->{id}";
    old_file("$partial/.check-young", 0);
    httpd_graceful();
    wait_for(sub { !-e "$partial/.check-abcdef" }, 20, 'an old check to be cleaned up');
    wait_for(sub { 2 == grep { !/\/\.\.?$/ } glob "$partial/{.,}*" }, 20, 'the others to go');
    ok -e "$partial/$upload->{id}", 'that of an open upload stays';
    ok -e "$partial/.check-young", 'and what may be in use';
};

$server->stop;
done_testing;
