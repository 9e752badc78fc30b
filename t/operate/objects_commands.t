# `downloadsctl storage` and an object store: status, verify with --repair, clean, and what copy
# says when it can't.
#
# both: what is missing is a column of the database
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use POSIX qw(strftime);
use Test::More;

use MDL::Customer;
use MDL::Instance;
use MDL::ObjectProxy;
use MDL::Swift;
use MDL::Test;

use constant DAY => 86400;

my $store = MDL::Swift->new;
my $proxy = MDL::ObjectProxy->new($store);
my $server = MDL::Instance->new(extra => <<"END")->start;
DownloadsPollInterval 1
DownloadsObjectStore ${\ $proxy->url}
DownloadsObjectKeyFile ${\ $proxy->key_file}
END
my $shop = new_shop();
my ($whole, $gone, $changed, $short) = map { new_file($shop, 10_000 + $_) } 1 .. 4;

sub object_of
{
    my ($file) = @_;
    my ($row) = sql("SELECT object FROM blob WHERE sha256 = '$file->{sha256}'");
    return $row->[0];
}

sub missing
{
    my ($row) = sql('SELECT count(*) FROM blob WHERE missing_at IS NOT NULL');
    return $row->[0];
}

sub verify
{
    my ($code, $json, $text) = ctl('storage', 'verify', @_);
    die "storage verify @_: $text\n" if ref $json ne 'HASH';
    return ($code, $json, { map { $_->{sha256} => $_ } @{ $json->{faults} // [] } });
}

# The output for people.
sub said
{
    my $program = MDL::Test::vars()->{build} . '/downloadsctl';
    open my $out, '-|', $program, '-f', conf_file(), @_ or die "$program: $!\n";
    local $/;
    return scalar <$out>;
}

subtest 'status' => sub {
    my ($code, $json) = ctl('storage', 'status');
    is $code, 0, 'succeeds';
    is_deeply $json, {
        folder => storage_dir(), files => 0, file_bytes => 0, store => $proxy->url, objects => 4,
        object_bytes => 40_010, missing => 0, strays => 0, holds => 0,
    }, 'and counts' or diag explain $json;
    like said('storage', 'status'), qr/^objects +4$/m, 'for people, too';
};

subtest 'an object that is gone' => sub {
    is_deeply [ (verify('--full'))[0], missing() ], [ 0, 0 ], 'all is well at first';
    my $bytes = $store->get(object_of($gone));
    $store->delete(object_of($gone));
    my ($code, $json, $fault) = verify();
    is_deeply [ $code, $json->{missing}, $fault->{ $gone->{sha256} }{fault} ],
        [ 6, 1, 'missing' ], 'is found' or diag explain $json;
    like $fault->{ $gone->{sha256} }{place}, qr/^object obj_/, 'with its key';
    is missing(), 1, 'and the database knows';
    is +(ctl('storage', 'status'))[1]{missing}, 1, 'as the status says';
    $store->put(object_of($gone), $bytes);
    is_deeply [ (verify())[0], missing() ], [ 0, 0 ], 'once it is restored all is well';
};

subtest 'objects that are damaged' => sub {
    my %before = map { $_->{sha256} => object_of($_) } $gone, $changed, $short;
    $store->delete(object_of($gone));
    $store->put(object_of($changed), 'x' x $changed->{size});
    $store->put(object_of($short),   'short');
    my ($code, $json, $fault) = verify();
    is_deeply { map { $_ => $fault->{$_}{fault} } keys %$fault },
        { $gone->{sha256} => 'missing', $short->{sha256} => 'wrong_size' },
        'their sizes are looked at';
    ($code, $json, $fault) = verify('--full', '--repair');
    is_deeply [ $code, @$json{qw(missing wrong_size changed imports_queued)} ],
        [ 6, 1, 1, 1, 3 ], 'and with --full their bytes' or diag explain $json;
    for my $file ($gone, $changed, $short) {
        my $job = $fault->{ $file->{sha256} }{assets}[0]{job_id};
        is wait_job($shop, $job)->{status}, 'succeeded', '--repair imports it again';
        isnt object_of($file), $before{ $file->{sha256} }, 'into another object';
        is sha256_hex($store->get(object_of($file))), $file->{sha256}, 'which has the bytes';
    }
    is_deeply [ (verify('--full'))[0], missing() ], [ 0, 0 ], 'then all is well';
    my %stray = map { $_->[0] => 1 } sql('SELECT key FROM stray_object');
    is_deeply [ map { $stray{ $before{ $_->{sha256} } } } $changed, $short ], [ 1, 1 ],
        'the damaged objects will be removed';
};

subtest 'an object that was given up stays so until it has its bytes' => sub {
    my $object = object_of($whole);
    $store->put($object, 'y' x $whole->{size});
    sql("UPDATE blob SET missing_at = 1 WHERE object = '$object'");
    my ($code, undef, $fault) = verify();
    is_deeply [ $code, $fault->{ $whole->{sha256} }{fault}, missing() ], [ 6, 'changed', 1 ],
        'its right size is not enough';
    $store->put($object, $whole->{bytes});
    is_deeply [ (verify())[0], missing() ], [ 0, 0 ], 'its right bytes are';
};

subtest 'a store that is away' => sub {
    $proxy->rule(any => { status => 403, code => 'AccessDenied' });
    my ($code, $json, $text) = ctl('storage', 'verify');
    is $code, 6, 'ends the verification';
    like $text, qr/"code":\s*"storage_unavailable"/, 'and no file counts as missing';
    $proxy->heal;
    is_deeply [ (verify())[0], missing() ], [ 0, 0 ], 'nothing is recorded';
    $proxy->rule(head => { status => 403, code => 'AccessDenied' });
    $proxy->rule(get => { after => 1, status => 403, code => 'AccessDenied' });
    ($code, $json, $text) = ctl('storage', 'verify');
    is $code, 6, 'also one that refuses while it runs';
    like $text, qr/"storage_unavailable"/, 'with the same code';
    $proxy->heal;
};

# --- clean ---------------------------------------------------------------------------------------

# What a store would list: keys with their ages in days.
sub listed
{
    my ($root, $item, $when, %age) = @_;
    my $xml = join '', map {
        my $at = strftime('%Y-%m-%dT%H:%M:%S.000Z', gmtime time - $age{$_} * DAY);
        "<$item><Key>$_</Key><Size>7</Size><UploadId>u</UploadId><$when>$at</$when></$item>"
    } sort keys %age;
    return { status => 200, body => '<?xml version="1.0" encoding="UTF-8"?>'
            . "<$root><IsTruncated>false</IsTruncated>$xml</$root>" };
}

subtest 'clean' => sub {
    my ($old, $new, $stray, $foreign) = map { 'obj_' . $_ x 26 } 1 .. 4;
    sql("INSERT INTO stray_object (key, due_at) VALUES ('$stray', 9000000000000000)");
    $store->put($_, 'nobody') for $old, "$old.1", $new, $stray, 'other';
    my $all = sub {
        $proxy->rule(list => listed('ListBucketResult', 'Contents', 'LastModified',
            $old => 8, "$old.1" => 8, $new => 6, $stray => 8, other => 8, object_of($whole) => 8));
        $proxy->rule(uploads => listed('ListMultipartUploadsResult', 'Upload', 'Initiated',
            $old => 8, $new => 6, $stray => 8));
        $proxy->rule(abort => { status => 204 });
        $proxy->forget;
    };
    $all->();
    my ($hold) = map { $_->{id} } (ctl('storage', 'hold'))[1];
    my ($code, $json, $text) = ctl('storage', 'clean', 'object');
    is $code, 5, 'not while a backup is made';
    like $text, qr/"storage_held"/, 'and it says so';
    ctl('storage', 'release', $hold);
    ($code, $json) = ctl('storage', 'clean', 'object');
    is_deeply [ $code, @$json{qw(removed bytes kept)} ], [ 0, 3, 14, 2 ],
        'objects and uploads that nobody knows for a week are removed' or diag explain $json;
    is_deeply [ sort map { $_->{place} } @{ $json->{places} } ],
        [ "object $old", "object $old.1", "unfinished upload of $old" ], 'which it names';
    my %count = $proxy->counts;
    is_deeply [ @count{qw(delete abort)} ], [ 2, 1 ], 'and no others';
    $proxy->heal;
    my %there = $store->objects;
    is_deeply [ map { exists $there{$_} ? 1 : 0 } $old, "$old.1", $new, $stray, 'other',
        object_of($whole) ], [ 0, 0, 1, 1, 1, 1 ], 'the others are there';
    is +(verify())[0], 0, 'and nothing is missing';
    is +(ctl('storage', 'clean', 'folder'))[0], 0, 'an empty folder can be cleaned';
    my @audit = grep { $_->{noun} eq 'storage' && $_->{action} eq 'cleaned' }
        @{ (ctl('audit'))[1] };
    is_deeply [ map { $_->{noun_id} } @audit ], [qw(folder object object)], 'the audit tells';
};

# --- copy ----------------------------------------------------------------------------------------

# The sweep of strays goes by the database's clock, so a copy's keys must do so, too.
sub copy_by_a_slow_clock
{
    my ($library) = glob '/usr/lib/*/faketime/libfaketimeMT.so.1';
    local @ENV{qw(LD_PRELOAD FAKETIME DONT_FAKE_MONOTONIC)} = ($library, '-2d', 1);
    sql('DELETE FROM stray_object');
    $proxy->rule(put => { status => 507 });
    is +(ctl('storage', 'copy', 'folder', 'object'))[0], 6, 'a copy by a clock two days behind';
    $proxy->heal;
    delete @ENV{qw(LD_PRELOAD FAKETIME)};
    my @due = map { $_->[0] / 1e6 - time } sql('SELECT due_at FROM stray_object');
    is scalar(grep { $_ > 1800 } @due), scalar @due, 'has an hour like any other'
        or diag explain \@due;
    ok scalar @due, 'for each key';
    return;
}

subtest 'copy, when it can not' => sub {
    for my $wrong ([qw(folder folder)], [qw(object object)], [qw(folder tape)],
        [qw(folder object --jobs 0)], [qw(folder object --jobs 65)],
        [qw(folder object --rate 1000)], [qw(folder)]) {
        is +(ctl('storage', 'copy', @$wrong))[0], 1, "'@$wrong' is a mistake";
    }
    is +(ctl('storage', 'clean', 'tape'))[0], 1, 'so is clean tape';
    like said('storage', 'copy', 'folder', 'object'), qr/^0 files of 0 bytes copied, .* 0 left$/m,
        'nothing is to be copied';
    $proxy->rule(get => { after => 1, status => 403, code => 'AccessDenied' });
    my ($code, $json, $text) = ctl('storage', 'copy', 'object', 'folder');
    is $code, 6, 'a store that refuses ends it';
    like $text, qr/"storage_unavailable".*AccessDenied/s, 'with its words';
    $proxy->heal;
    is object_of($whole) ne '', 1, 'and everything is where it was';
    my $partial = storage_dir() . '/partial';
    chmod 0500, $partial;
    ($code, $json, $text) = ctl('storage', 'copy', 'object', 'folder');
    chmod 0750, $partial;
    is $code, 6, 'so does a folder that can not be written to';
    like $text, qr/storage folder can't be written to/, 'which it says';
    is +(ctl('storage', 'copy', 'object', 'folder'))[0], 0, 'mended, it works';
    # SQLite's clock is the process's own; libfaketime does not go with the sanitizers.
    copy_by_a_slow_clock() if database() eq 'pgsql' && !$ENV{SANITIZER_RUNTIME};
    is +(ctl('storage', 'copy', 'folder', 'object'))[0], 0, 'and back';
    $server->configure(extra => '');
    ($code, $json, $text) = ctl('storage', 'copy', 'folder', 'object');
    is $code, 2, 'without a store there is nothing to copy into';
    like $text, qr/DownloadsObjectStore is missing/, 'which it says';
    ($code, $json, $text) = ctl('storage', 'verify');
    is $code, 6, 'nor can objects be verified';
    like $text, qr/not configured/, 'which it says, too';
};

$server->stop;
done_testing;
