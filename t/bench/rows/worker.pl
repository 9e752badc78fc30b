# What the background process does: imports, emails, claims.
use strict;
use warnings;

use Bench::Files;
use Bench::Load;
use Bench::Report qw(median);
use Bench::Row;
use Bench::Rows;
use Bench::Service qw(build run wait_for);
use List::Util qw(min);
use Time::HiRes qw(sleep time);

use constant { SMALL_FILES => $ENV{FILES}, LATER => 4_000_000_000_000_000 };

# --- imports -------------------------------------------------------------------------------------

# By the first entries of two small indexes, so that the wait itself costs little of what is
# measured.
sub wait_for_jobs
{
    my ($on, $seconds) = @_;
    my $open = 'SELECT 1 WHERE EXISTS (SELECT 1 FROM job WHERE lease_owner IS NOT NULL)'
        . ' OR EXISTS (SELECT 1 FROM job WHERE due_at < ' . LATER . ')';
    wait_for(sub { !$on->rows($open) }, $seconds, 'the end of all jobs');
    return;
}

sub import_large
{
    my ($on) = @_;
    my $url = altered_file($on, 'import.bin', $ENV{LARGE} << 20, number());
    return timed($ENV{LARGE} * 1.048576, sub { imported($on, $url) });
}

row 'import-large',
    title  => 'import of the large file, MB/s / curl and sync',
    on     => 'large',
    ours   => \&import_large,
    beside => sub {
        my ($on) = @_;
        my $to = "$on->{data}/import-" . number() . '.bin';
        return timed($ENV{LARGE} * 1.048576, sub {
            run('curl', '-sSf', '-o', $to, random_file($on, 'import.bin'));
            run('sync', $to);
        });
    },
    goal => 1.05;

# Small files with numbers from $from + 1 on.
sub small_sources
{
    my ($on, $from, $bytes) = @_;
    my $text = sprintf '%-9d ', $from;
    write_new("$on->{data}/source/small-$_.bin", "$_ " . $text x ($bytes / 10))
        for map { $from + $_ } 1 .. SMALL_FILES + 1;
    return $on->{SOURCE_URL} =~ s{[^/]+$}{small-}r;
}

row 'import-small',
    title => '1,000 imports of 10 KB / fetch, fsync, commit',
    on    => 'large',
    ours  => sub {
        my ($on)  = @_;
        my $from  = number();
        my $url   = small_sources($on, $from, 10_000);
        my $began = time;
        wrk($on, method => 'POST', path => '/assets', idem => 'bench-{n}', from => $from,
            stop => SMALL_FILES, body => qq({"source_url":"$url\{n}.bin"}));
        wait_for_jobs($on, 120);
        # The last job's end counts, not wrk's, which comes later.
        my ($end) = $on->rows('SELECT max(finished_at) FROM job');
        return { rate => SMALL_FILES / ($end->[0] / 1e6 - $began) };
    },
    beside => sub {
        my ($on) = @_;
        my $from   = number();
        my $url    = small_sources($on, $from, 10_000);
        # Beside ours, and not removed: where many files were deleted within minutes, ext4 takes
        # longer for a new one.
        my $folder = "$on->{data}/fetched-$from";
        run('mkdir', $folder);
        least_tables($on);
        return timed(SMALL_FILES, sub {
            run(build() . '/fetch', $on->params, $folder, "$url%lld.bin", $from + 1, SMALL_FILES);
        });
    },
    goal => 2.0;

# Milliseconds from the answer to POST /assets until the import of 1 KB has succeeded; the median of
# as many as are made while $go_on says so.
sub small_import_time
{
    my ($on, $go_on) = @_;
    my @took;
    while ($go_on->(scalar @took)) {
        my $number = number();
        my $job = $on->api('POST', '/assets',
            { source_url => $on->source("tiny-$number.bin", "$number " x 100) });
        my ($id, $began) = ($job->{job}{id}, time);
        1 until $on->api('GET', "/jobs/$id")->{status} eq 'succeeded';
        push @took, 1000 * (time - $began);
    }
    return { p50 => median(@took) };
}

sub alone { my ($on) = @_; return small_import_time($on, sub { $_[0] < 50 }) }

row 'import-alone',
    title => 'ms to an import of 1 KB',
    on    => 'large', most => 1,
    ours  => \&alone,
    goal => 4;

row 'import-beside',
    title => 'ms to an import of 1 KB, beside twelve / alone',
    on    => 'large', most => 1,
    ours  => sub {
        my ($on) = @_;
        my @jobs = map { $on->api('POST', '/assets', { source_url => $_ })->{job}{id} }
            map { random_file($on, "sixty-four-$_.bin", 64 << 20) } 1 .. 12;
        my $done   =
            sub { !grep { $on->api('GET', "/jobs/$_")->{status} =~ /queued|running/ } @jobs };
        my $result = small_import_time($on, sub { $_[0] < 5 || ($_[0] < 50 && !$done->()) });
        wait_for($done, 120, 'twelve imports of 64 MB');
        return $result;
    },
    beside => \&alone,
    goal => 3;

# --- emails and claims ---------------------------------------------------------------------------

# Jobs of one kind per second, from the first claim to the last end. The last ones are looked at
# first, by the key: the wait itself costs nothing of the machine that is being measured.
sub jobs_rate
{
    my ($on, $from, $count, @statements) = @_;
    my $these = sprintf "FROM job WHERE id > '%s' AND id <= '%s'",
        map { Bench::Rows::job_id($_) } $from, $from + $count;
    $on->sql('BEGIN;', @statements, 'COMMIT;');
    wait_for(
        sub { !$on->rows("SELECT id $these AND finished_at IS NULL ORDER BY id DESC LIMIT 1") },
        600, 'the end of all jobs');
    my ($span) = $on->rows("SELECT count(*), max(finished_at) - min(started_at) $these");
    die "$span->[0] of $count jobs have ended\n" if $span->[0] != $count;
    return { rate => $count / $span->[1] * 1e6 };
}

row 'emails',
    rounds => 3,
    title => 'emails/s from a backlog',
    ours  => sub {
        my ($on) = @_;
        my $from = number();
        my $result = jobs_rate($on, $from, $ENV{BACKLOG},
            Bench::Rows::email_jobs($on->{shop}, $from, $ENV{BACKLOG}, $on->{orders}));
        my ($lost) = $on->rows("SELECT count(*) FROM email WHERE status <> 'sent'");
        die "$lost->[0] emails were not sent\n" if $lost->[0];
        return $result;
    },
    goal => 1000;

# Imports from a host that is not allowed fail as soon as they are claimed.
sub claims
{
    my ($on) = @_;
    my $from = number();
    return jobs_rate($on, $from, $ENV{BACKLOG}, refused($on, $from, $ENV{BACKLOG}));
}

sub refused
{
    my ($on, $from, $count, %columns) = @_;
    return Bench::Rows::jobs($on->{shop}, $from, $count, type => "'asset_import'",
        lane => "'small'", asset_id => 1, source_url => "'https://refused.example/file.bin'",
        %columns);
}

row 'claims',
    title     => 'claims/s, 1,000,000 jobs wait / none',
    on        => 'claims_many', beside_on => 'claims',
    prepare   => sub {
        my ($on) = @_;
        return if !$on->{many};
        $on->sql('BEGIN;', refused($on, number(), $ENV{QUEUED}, due_at => LATER), 'COMMIT;');
        # The database writes what it got before it is measured, not meanwhile.
        $on->sql($on->{db} eq 'pgsql' ? 'CHECKPOINT;' : 'PRAGMA wal_checkpoint(TRUNCATE);');
    },
    ours   => \&claims,
    beside => \&claims,
    goal => 0.95;

# Microseconds of PostgreSQL's time for the claim of a job, in four seconds in which ten background
# processes get fifty jobs a second.
sub claim_time
{
    my ($on) = @_;
    my ($from, $steps) = (number(), 40);
    my $jobs  = 5 * $steps;
    my $these = sprintf "FROM job WHERE id > '%s' AND id <= '%s'",
        map { Bench::Rows::job_id($_) } $from, $from + $jobs;
    $on->rows('SELECT pg_stat_statements_reset()');
    my $began = time;
    for my $step (0 .. $steps - 1) {
        my $wait = $began + $step / 10 - time;
        sleep $wait if $wait > 0;
        $on->rows(refused($on, $from + 5 * $step, 5));
    }
    wait_for(
        sub { !$on->rows("SELECT id $these AND finished_at IS NULL ORDER BY id DESC LIMIT 1") },
        120, 'the end of all jobs');
    my ($claims) = $on->rows('SELECT sum(total_exec_time), sum(rows) FROM pg_stat_statements '
        . "WHERE query ~ '^UPDATE job SET status = .*lease_token [+]'");
    die "$claims->[1] of $jobs jobs were claimed\n" if $claims->[1] != $jobs;
    return 1000 * $claims->[0] / $jobs;
}

# The least of five: whatever else runs takes the processor away in the midst of a statement.
sub least_claim_time
{
    my ($on) = @_;
    return { p50 => min(map { claim_time($on) } 1 .. 5) };
}

row 'claims-ten',
    title     => 'us a claim, ten processes, 1,000,000 wait / 1,000',
    db        => 'pgsql', most => 1,
    on        => 'ten_many', beside_on => 'ten',
    prepare   => sub {
        my ($on) = @_;
        $on->sql('BEGIN;', refused($on, number(), $on->{queued}, due_at => LATER), 'COMMIT;');
        # So that neither happens by itself meanwhile.
        $on->sql('VACUUM ANALYZE job;', 'CHECKPOINT;');
    },
    ours   => \&least_claim_time,
    beside => \&least_claim_time,
    goal => 1.2;

1;
