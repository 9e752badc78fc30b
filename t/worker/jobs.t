# Jobs (contract, section 6): the list, cancelling, trying again, as an integrator sees them.
#
# both: jobs are claimed by other queries under other locks
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

use constant { KB => 1024, MB => 1024 * 1024 };

# The poll interval is so long that what happens at once here depends on a wake-up.
$MDL::Target::patience = 40;
my $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsPollInterval 60
DownloadsLeaseTime 300
DownloadsRetryDelay 3600000
DownloadsIngestStallTimeout 600
END
my $shop   = new_shop();
my $other  = new_shop();
my $key    = $shop->{token};
my $source = MDL::Source->new;

sub import_from
{
    my ($url) = @_;
    my $reply = api('POST', '/assets', key => $key, patient => 1, json => { source_url => $url });
    die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json};
}

sub job    { my ($id) = @_; return api('GET',  "/jobs/$id",        key => $key)->{json} }
sub asset  { my ($id) = @_; return api('GET',  "/assets/$id",      key => $key)->{json} }
sub cancel { my ($id, %more) = @_; return api('POST', "/jobs/$id/cancel", key => $key, %more) }
sub retry  { my ($id, %more) = @_; return api('POST', "/jobs/$id/retry",  key => $key, %more) }

sub partial_files { my @files = glob storage_dir() . '/partial/*'; return @files }

sub wait_no_partial
{
    my ($name) = @_;
    return ok(wait_for(sub { !partial_files() }, 20, 'the partial file to go'),
        "$name: no partial file is left");
}

# Begins an import of $size bytes, whose source stops after $hold of them until it is released.
sub held_import
{
    my ($name, $size, $hold) = @_;
    my $made = import_from(
        $source->offer($name, { size => $size, etag => qq("$name"), hold => $hold,
        version => $name }));
    wait_for(sub { job($made->{job}{id})->{progress}{bytes_received} >= $hold }, 10,
        "$hold bytes of $name");
    return $made;
}

sub is_cancelled
{
    my ($reply, $made, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_answer($reply, 200, $name);
    is_shape($reply->{json}, 'job', "$name: the job");
    is_deeply([ @{ $reply->{json} }{qw(id status error next_attempt_at)} ],
        [ $made->{job}{id}, 'cancelled', undef, undef ], "$name: it is cancelled");
    isnt($reply->{json}{finished_at}, undef, "$name: it has ended");
    return is(asset($made->{asset}{id})->{status}, 'failed', "$name: its asset has failed");
}

sub succeeds
{
    my ($made, $sha256, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $job = wait_job($shop, $made->{job}{id});
    is($job->{status}, 'succeeded', "$name: it succeeds") or diag explain $job;
    is($job->{attempts}, 1, "$name: in its first attempt");
    my $asset = asset($made->{asset}{id});
    is_deeply([ @{$asset}{qw(status sha256 version)} ], [ 'ready', $sha256, 1 ],
        "$name: the asset has the right bytes");
    return wait_no_partial($name);
}

# --- cancelling what runs ------------------------------------------------------------------------

for my $case ([ 'large', 3 * MB, 2 * MB ], [ 'small', 600 * KB, 300 * KB ]) {
    my ($name, $size, $hold) = @$case;
    my $made  = held_import($name, $size, $hold);
    my $began = time;
    is_cancelled(cancel($made->{job}{id}), $made, "a $name import that runs");
    ok(wait_for(sub { !grep { !$_->{ended} } $source->requests($name) }, 20,
        'the end of the transfer'),
        'the source sees its connection cut');
    wait_no_partial("a $name import");
    diag sprintf 'a running import was gone %.0f ms after it was cancelled', 1000 * (time - $began);
    my $again = cancel($made->{job}{id});
    is_cancelled($again, $made, 'cancelled once more');
    is_deeply($again->{json}, job($made->{job}{id}), 'nothing is changed by that');

    my $retried = retry($made->{job}{id});
    is_answer($retried, 202, 'it is tried again');
    is_shape($retried->{json}, 'job', 'the job that is tried again');
    is_deeply([ @{ $retried->{json} }{qw(id status attempts error started_at finished_at)} ],
        [ $made->{job}{id}, 'queued', 0, undef, undef, undef ], 'it is queued as if it were new');
    is_deeply($retried->{json}{progress},
        { bytes_received => 0, bytes_total => undef, percent => undef }, 'nothing has arrived');
    is(asset($made->{asset}{id})->{status}, 'pending', 'its asset waits again');
    $source->release($name);
    succeeds($made, MDL::Source::sha256($size, $name), "a $name import, tried again");
}

subtest 'an import that is cancelled and tried again at once begins anew' => sub {
    my $made = held_import('at-once', 3 * MB, 2 * MB);
    my $old  = () = $source->requests('at-once');
    my ($worker) = worker_pids();
    pause_process($worker);    # so that it finds both at once
    for (1 .. 3) {
        is(cancel($made->{job}{id})->{status}, 200, 'cancelled');
        is(retry($made->{job}{id})->{status},  202, 'and tried again');
    }
    kill CONT => $worker;
    ok(wait_for(sub { ($source->requests('at-once'))[ $old - 1 ]{ended} }, 20,
        'the end of the transfer'),
        'the transfer that ran is broken off');
    $source->release('at-once');
    succeeds($made, MDL::Source::sha256(3 * MB, 'at-once'), 'in the end');
};

subtest 'an asset whose import runs is deleted' => sub {
    my $made = held_import('deleted', 3 * MB, 2 * MB);
    is(api('DELETE', "/assets/$made->{asset}{id}", key => $key)->{status}, 204, 'it is deleted');
    is(job($made->{job}{id})->{status}, 'cancelled', 'the import is cancelled with it');
    ok(wait_for(sub { !grep { !$_->{ended} } $source->requests('deleted') }, 20,
        'the end of the transfer'),
        'the transfer ends');
    wait_no_partial('a deleted asset');
    is_error(retry($made->{job}{id}), 409, 'job_finished', 'it is not tried again');
};

# --- cancelling what waits -----------------------------------------------------------------------

subtest 'a queued job that has kept a part of its file' => sub {
    my $made = import_from(
        $source->offer('cut', { size => 3 * MB, etag => '"cut"', version => 'cut' },
        { cut => 2 * MB }, { cut => undef }));
    wait_for(sub { job($made->{job}{id})->{error} }, 10, 'the end of the first attempt');
    my ($file) = partial_files();
    cmp_ok -s $file, '>', MB, 'it has a partial file';
    is_cancelled(cancel($made->{job}{id}), $made, 'cancelled');
    wait_no_partial('cancelled');
    is(retry($made->{job}{id})->{status}, 202, 'it is tried again');
    succeeds($made, MDL::Source::sha256(3 * MB, 'cut'), 'tried again');
    is(($source->requests('cut'))[-1]{range}, undef, 'from the beginning');
};

# --- when the background process dies ------------------------------------------------------------

for my $case ('running', 'queued') {
    subtest "the background process dies before it has seen that a $case job was cancelled" => sub {
        my $name = "dies-$case";
        my $made;
        if ($case eq 'running') {
            $made = held_import($name, 3 * MB, 2 * MB);
        }
        else {
            $made = import_from(
                $source->offer($name, { size => 3 * MB, etag => '"x"', version => $name },
                { cut => 2 * MB }, { cut => undef }));
            wait_for(sub { job($made->{job}{id})->{error} }, 10, 'the end of the first attempt');
        }
        my ($worker) = worker_pids();
        pause_process($worker);
        is_cancelled(cancel($made->{job}{id}), $made, 'cancelled meanwhile');
        is(scalar(partial_files()), 1, 'the partial file is still there');
        kill KILL => $worker;
        ok(wait_for(sub { !partial_files() }, 10, 'the partial file to go'),
            'its successor removes it');
        is(job($made->{job}{id})->{status}, 'cancelled', 'the job stays cancelled');
        is(retry($made->{job}{id})->{status}, 202, 'it is tried again');
        $source->release($name);
        succeeds($made, MDL::Source::sha256(3 * MB, $name), 'tried again');
    };
}

subtest 'the server is stopped before the background process has seen it' => sub {
    my ($made, $took);
    # httpd kills a background process that has not ended after three seconds. On a busy machine it
    # may, so that only a stop that was quicker counts.
    for my $try (1 .. 10) {
        $made = held_import("stopped-$try", 3 * MB, 2 * MB);
        my ($worker) = worker_pids();
        pause_process($worker);
        is(cancel($made->{job}{id})->{status}, 200, 'cancelled');
        my @seen  = $server->processes;
        my $began = time;
        kill TERM => $server->pid;
        wait_for(sub { (MDL::Test::slurp("/proc/$worker/status") // 'State: Z')
            =~ /^(?:State:\s+[ZX]|ShdPnd:\s+\S*[4-7c-f]\S{3}$)/m }, 60,
            'the signal to the background process');
        kill CONT => $worker;
        wait_for(sub { !$server->processes && MDL::Instance::are_gone(@seen) }, 60,
            'the end of the server');
        $took = time - $began;
        last if $took < 2.5;
        $server->start;
        wait_no_partial('killed');
    }
    is(scalar(partial_files()), 0, 'no partial file is left');
    $server->start;
    is(job($made->{job}{id})->{status}, 'cancelled', 'the job stays cancelled');
};

# --- what can't be done --------------------------------------------------------------------------

my $done = import_from(source("done-$$.txt", 'done'));
is(wait_job($shop, $done->{job}{id})->{status}, 'succeeded', 'a job that succeeded');
my $broken = import_from(source_url("none-$$.txt"));
is(wait_job($shop, $broken->{job}{id})->{status}, 'failed', 'a job that failed');
unstored();
refused(cancel($_->{job}{id}), 409, 'job_finished', "cancelling it: $_->{job}{id}")
    for $done, $broken;
refused(retry($done->{job}{id}), 409, 'job_finished', 'trying again what succeeded');
refused(cancel($done->{job}{id}, json => { x => 1 }), 400, 'invalid_request', 'a member', '/x');

my $waits = held_import('waits', 3 * MB, 2 * MB);
unstored();
refused(retry($waits->{job}{id}), 409, 'job_finished', 'trying again what runs');

sub without_id { my ($reply) = @_; return $reply->{body} =~ s/req_[\w@-]+/req/r }

my $unknown = cancel('job_00000000000000000000000000');
is_error($unknown, 404, 'job_not_found', 'a job that is not there');
for my $act ('cancel', 'retry') {
    for my $id ($waits->{job}{id}, $broken->{job}{id}) {
        is(without_id(api('POST', "/jobs/$id/$act", key => $other->{token})), without_id($unknown),
            "$act of another shop's job: the same bytes");
    }
    is(without_id(api('POST', "/jobs/$_/$act", key => $key)), without_id($unknown), "$act of $_")
        for 'nonsense', '1', uc $waits->{job}{id};
}
is(job($waits->{job}{id})->{status}, 'running', 'it runs on');

source("none-$$.txt", 'now it is there');
my $idem   = idem();
my $second = retry($broken->{job}{id}, idem => $idem);
is_answer($second, 202, 'a job that failed is tried again');
is(wait_job($shop, $broken->{job}{id})->{status}, 'succeeded', 'and succeeds');
my $replay = retry($broken->{job}{id}, idem => $idem);
is($replay->{body}, $second->{body}, 'asked with the same key: the same answer');
is($replay->{headers}{'idempotent-replayed'}, 'true', 'which says that it is a replay');

# A cancelled version leaves the asset as it was; an asset gets bytes from one job at a time.
my $ready   = asset($done->{asset}{id});
my $version = sub {
    my ($url) = @_;
    return api('POST', "/assets/$ready->{id}/versions", key => $key,
        json => { source_url => $url });
};
my $cancelled = $version->($source->offer('version', { size => 600 * KB, hold => KB }))
    ->{json}{job}{id};
is(cancel($cancelled)->{json}{status}, 'cancelled', 'the import of a version is cancelled');
is_deeply(asset($ready->{id}), $ready, 'the asset stays as it was');
my $next = $version->($source->url('version'))->{json}{job}{id};
isnt($next, undef, 'another version is asked for');
is_error(retry($cancelled), 409, 'asset_not_ready', 'trying the first again meanwhile');
$source->release('version');
is(wait_job($shop, $next)->{status}, 'succeeded', 'the other one arrives');

# --- the list ------------------------------------------------------------------------------------

sub get { my ($path, $of) = @_; return api('GET', $path, key => ($of // $shop)->{token}) }

my $empty = get('/jobs', $other);
is_answer($empty, 200, 'a shop without jobs has a list');
is_deeply($empty->{json}{data}, [], 'which is empty');

my $mapping = mapping_of($shop, [ $ready->{id} ]);
assign($shop, digits(), [ $mapping->{storefront_product_id} ], send_email => JSON::PP::true(),
    customer => { email => "jobs-$$\@buyer.example" });
my ($email) = sql("SELECT id FROM job WHERE shop_id = $shop->{shop_id} AND type = 'email'");
refused_as_unknown($email->[0]);

sub refused_as_unknown
{
    my ($id) = @_;
    is(without_id(cancel($id)), without_id($unknown), "the job of an email can't be cancelled");
    is(without_id(retry($id)),  without_id($unknown), 'nor tried again');
    return;
}

my @ids = map { $_->[0] }
    sql("SELECT id FROM job WHERE shop_id = $shop->{shop_id} AND type <> 'email' ORDER BY id DESC");
my $list = get('/jobs?limit=100');
is_answer($list, 200, 'the list');
is_shape($list->{json}, 'jobs', 'the list');
is_deeply([ map { $_->{id} } @{ $list->{json}{data} } ], \@ids,
    'has every job but those of emails, newest first');
is_deeply((grep { $_->{id} eq $done->{job}{id} } @{ $list->{json}{data} })[0],
    job($done->{job}{id}), 'each as it is when read alone');

my ($path, @seen) = ('/jobs?limit=4');
while ($path) {
    my $page = get($path);
    push @seen, map { $_->{id} } @{ $page->{json}{data} };
    import_from(source_url("done-$$.txt")) if @seen == 4;
    $path = $page->{json}{has_more} && "/jobs?limit=4&cursor=$page->{json}{next_cursor}";
}
is_deeply(\@seen, \@ids, 'the pages have each job once, whatever is added meanwhile');
is_error(get('/jobs?state=open&limit=101'), 400, 'invalid_request', 'invalid parameters',
    '/state', '/limit');

$source->release('waits');
is(wait_job($shop, $waits->{job}{id})->{status}, 'succeeded',
    'a job that nobody cancelled succeeds');
$server->stop;
done_testing;
