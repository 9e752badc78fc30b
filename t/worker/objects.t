# Imports into an object store, and what becomes of objects that no blob has.
#
# both: a new object is known to the database, in the transaction of the claim
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Instance;
use MDL::ObjectProxy;
use MDL::Source;
use MDL::Swift;
use MDL::Test;
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

my $store = MDL::Swift->new;
my $proxy = MDL::ObjectProxy->new($store);
my $server = MDL::Instance->new(extra => <<"END")->start;
DownloadsObjectStore ${\ $proxy->url}
DownloadsObjectKeyFile ${\ $proxy->key_file}
DownloadsIngestAttempts 3
DownloadsRetryDelay 50
DownloadsLeaseTime 3
DownloadsPollInterval 1
DownloadsIngestAllowHost localhost
END
my $shop   = new_shop();
my $source = MDL::Source->new;

sub import_of
{
    my ($url, %more) = @_;
    my $reply = api('POST', '/assets', key => $shop->{token}, patient => 1,
        json => { source_url => $url, %more });
    die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json};
}

sub object_of
{
    my ($sha256) = @_;
    my ($row) = sql("SELECT object FROM blob WHERE sha256 = '$sha256'");
    return $row && $row->[0];
}

sub strays { return map { $_->[0] } sql('SELECT key FROM stray_object ORDER BY key') }

# Checks that an import has succeeded, and that an object has its bytes.
sub arrives
{
    my ($made, $sha256, $size) = @_;
    my $job = wait_job($shop, $made->{job}{id}, 60);
    is $job->{status}, 'succeeded', 'the job succeeds' or diag explain $job;
    my ($asset) = sql("SELECT status, sha256, size FROM asset WHERE id = $made->{asset}{id}");
    is_deeply $asset, [ 'ready', $sha256, $size ], 'the asset has the bytes';
    my $object = object_of($sha256);
    like $object, qr/^obj_/, 'which are in an object';
    is sha256_hex($store->get($object)), $sha256, 'the object has them';
    is -e storage_dir() . '/blobs/' . substr($sha256, 0, 1) . "/$sha256", undef, 'no file has them';
    return $job;
}

# Requests are counted once the background process has looked whether the store belongs to the
# database.
arrives(import_of($source->offer('first', { size => 1 })), MDL::Source::sha256(1), 1);

subtest 'a small file becomes an object by one request' => sub {
    $proxy->forget;
    arrives(import_of($source->offer('small', { size => 100 * KB })),
        MDL::Source::sha256(100 * KB), 100 * KB);
    my %count = $proxy->counts;
    is_deeply \%count, { put => 1 }, 'a PUT' or diag explain \%count;
    is_deeply [ strays() ], [], 'and is no stray';
};

subtest 'an empty file too' => sub {
    arrives(import_of($source->offer('empty', { size => 0 })), sha256_hex(''), 0);
};

subtest 'a large file is sent in parts' => sub {
    $proxy->forget;
    arrives(import_of($source->offer('large', { size => 20 * MB })),
        MDL::Source::sha256(20 * MB), 20 * MB);
    my %count = $proxy->counts;
    is_deeply \%count, { create => 1, part => 3, complete => 1, head => 1 },
        'of 8 MiB, and none is read back' or diag explain \%count;
    is_deeply [ strays() ], [], 'and is no stray';
};

subtest 'a source that is cut goes on behind the parts that have come' => sub {
    my $url = $source->offer('cut', { size => 30 * MB, version => 2, etag => '"one"',
        cut => 19 * MB }, {}, { cut => undef });
    arrives(import_of($url), MDL::Source::sha256(30 * MB, 2), 30 * MB);
    is_deeply [ $store->uploads ], [], 'no upload is left unfinished';
    my ($resumed) = grep { defined $_->{range} } $source->requests('cut');
    is $resumed->{range}, 16 * MB, 'after two parts' or diag explain [ $source->requests('cut') ];
};

subtest 'so does the successor of a background process that was killed' => sub {
    my $url = $source->offer('killed', { size => 30 * MB, version => 3, etag => '"one"',
        rate => 5 * MB, hold => 29 * MB }, {}, { rate => undef });
    my $made = import_of($url);
    wait_for(sub {
        my ($row) = sql("SELECT written FROM job WHERE id = '$made->{job}{id}'");
        return defined $row->[0] && $row->[0] =~ /"parts":[23]/;
    }, 60, 'two parts');
    kill KILL => worker_pids();
    $source->release('killed');
    arrives($made, MDL::Source::sha256(30 * MB, 3), 30 * MB);
    ok scalar(grep { $_ == 16 * MB || $_ == 24 * MB } map { $_->{range} // 0 }
        $source->requests('killed')), 'after two parts, or a third that came before the kill';
};

subtest 'the same bytes again stay where they are, and the new object goes' => sub {
    my $sha256 = MDL::Source::sha256(100 * KB);
    my $object = object_of($sha256);
    my $made = import_of($source->offer('again', { size => 100 * KB }));
    is wait_job($shop, $made->{job}{id})->{status}, 'succeeded', 'the job succeeds';
    is object_of($sha256), $object, 'the blob has the object that it had';
    my @strays = strays();
    is scalar @strays, 1, 'the other is a stray';
    ok exists { $store->objects }->{ $strays[0] }, 'which is there';
    sql('UPDATE stray_object SET due_at = 1');
    httpd_graceful();
    wait_for(sub { !exists { $store->objects }->{ $strays[0] } }, 60, 'the sweep');
    wait_for(sub { (sql('SELECT due_at - removed_at FROM stray_object'))[0][0] > 86_000_000_000 },
        60, 'its result');
    ok exists { $store->objects }->{$object}, 'the blob keeps its object';
    sql('UPDATE stray_object SET due_at = 1, removed_at = 1');
    httpd_graceful();
    wait_for(sub { !strays() }, 60, 'the second sweep, after which the key is forgotten');
};

subtest 'a checksum that is not the right one leaves no object' => sub {
    my $made = import_of($source->offer('wrong', { size => 12 * MB, version => 4 }),
        sha256 => 'a' x 64);
    my $job = wait_job($shop, $made->{job}{id}, 60);
    is $job->{error}{code}, 'checksum_mismatch', 'the job fails';
    my @strays = strays();
    is scalar @strays, 1, 'its key is a stray';
    sql('UPDATE stray_object SET due_at = 1');
    httpd_graceful();
    wait_for(sub { !$store->uploads }, 60, 'the sweep');
    sql('DELETE FROM stray_object');
};

subtest 'an object whose asset is deleted goes a day after its last reference' => sub {
    my $url = $source->offer('gone', { size => 50 * KB, version => 5 });
    my $made = import_of($url);
    my $sha256 = MDL::Source::sha256(50 * KB, 5);
    arrives($made, $sha256, 50 * KB);
    my $object = object_of($sha256);
    api('DELETE', "/assets/$made->{asset}{id}", key => $shop->{token});
    sql("UPDATE blob SET released_at = 1 WHERE sha256 = '$sha256'");
    httpd_graceful();
    wait_for(sub { !defined object_of($sha256) }, 60, 'the sweep of blobs');
    is_deeply [ strays() ], [$object], 'its object is a stray then';
    ok exists { $store->objects }->{$object}, 'and is there as long as downloads may run';
    sql('UPDATE stray_object SET due_at = 1');
    httpd_graceful();
    wait_for(sub { !exists { $store->objects }->{$object} }, 60, 'the sweep of strays');
    sql('DELETE FROM stray_object');
};

subtest 'while the store is away imports wait, and use up no attempt' => sub {
    $proxy->rule(any => { refuse => 1 });
    my $url = $source->offer('away', { size => 70 * KB, version => 6 });
    my $made = import_of($url);
    my $job = wait_for(sub {
        my $job = api('GET', "/jobs/$made->{job}{id}", key => $shop->{token})->{json};
        return $job->{status} eq 'queued' && $job->{error} ? $job : undef;
    }, 60, 'the first try');
    is $job->{error}{code}, 'storage_unavailable', 'the job says what it waits for';
    is $job->{attempts}, 0, 'and has used up no attempt';
    $proxy->heal;
    sql("UPDATE job SET due_at = 1 WHERE id = '$made->{job}{id}' AND status = 'queued'");
    arrives($made, MDL::Source::sha256(70 * KB, 6), 70 * KB);
};

subtest 'a key that the store denies likewise, under one key' => sub {
    $proxy->rule(any => { status => 403, code => 'InvalidAccessKeyId' });
    sql('DELETE FROM stray_object');
    my $made = import_of($source->offer('denied', { size => 70 * KB, version => 7 }));
    for my $try (1 .. 3) {
        wait_for(sub {
            my ($row) = sql("SELECT status, lease_token FROM job WHERE id = '$made->{job}{id}'");
            return $row->[0] eq 'queued' && $row->[1] >= $try;
        }, 60, "try $try");
        last if $try == 3;
        # After the restart, for one that stops a try leaves its key.
        httpd_graceful();
        sql("UPDATE job SET due_at = 1 WHERE id = '$made->{job}{id}' AND status = 'queued'");
    }
    is scalar strays(), 1, 'one key was made for it';
    $proxy->heal;
    sql("UPDATE job SET due_at = 1 WHERE id = '$made->{job}{id}' AND status = 'queued'");
    httpd_graceful();
    arrives($made, MDL::Source::sha256(70 * KB, 7), 70 * KB);
};

subtest 'parts that the store has lost make the import begin anew' => sub {
    my $url = $source->offer('lost', { size => 20 * MB, version => 8, etag => '"one"' });
    $proxy->rule(complete => { status => 404, code => 'NoSuchUpload', times => 1 });
    my $made = import_of($url);
    arrives($made, MDL::Source::sha256(20 * MB, 8), 20 * MB);
    $source->sent('lost');    # waits for the ends of the transfers
    is scalar(grep { ($_->{sent} // 0) >= 20 * MB } $source->requests('lost')), 2,
        'the source is read twice';
};

subtest 'an upload that libcurl has begun twice, on a kept connection that was lost' => sub {
    $proxy->forget;
    $proxy->rule(create => { lose => 1, times => 1 });
    arrives(import_of($source->offer('twice', { size => 20 * MB, version => 9 })),
        MDL::Source::sha256(20 * MB, 9), 20 * MB);
    my %count = $proxy->counts;
    is $count{create}, 2, 'the first answer was lost';
    my $object = object_of(MDL::Source::sha256(20 * MB, 9));
    is_deeply [ grep { $_ eq $object } $store->uploads ], [], 'no upload of it is left unfinished';
};

done_testing;
