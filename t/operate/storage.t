# The storage folder belongs with the database: httpd starts on no other, and `downloadsctl check`
# says why.
#
# both: each is restored in its own way
use strict;
use warnings;

use MDL::Contract qw(assign digits mapping_of);
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant MB => 1024 * 1024;

my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\n")->start;
my $folder = "$server->{folder}/storage";
my $empty  = "$server->{folder}/empty";
mkdir $empty or die "$empty: $!\n";
my $source = MDL::Source->new;
my $shop   = new_shop();

sub import_of
{
    my ($name, %answer) = @_;
    my $reply = api('POST', '/assets', key => $shop->{token},
        json => { source_url => $source->offer($name, \%answer) });
    return $reply->{json}{job}{id} // die "import: $reply->{status} $reply->{body}\n";
}

sub use_folder
{
    my ($path) = @_;
    $server->configure(extra => "DownloadsPollInterval 1\nDownloadsStorage $path\n");
    return;
}

# What downloadsctl says of the folder: (whether it is well, the line).
sub checked
{
    my ($code, $json) = ctl('check');
    my ($line) = grep { $_->{name} eq 'storage' } @{ $json->{checks} };
    return ($line->{ok} ? 1 : 0, $line->{message});
}

is wait_job($shop, import_of('first', body => 'first'))->{status}, 'succeeded',
    'a new server makes a folder its own';
my ($identity) = (MDL::Test::slurp("$folder/identity") // 'none') =~ /^(storage_\w{26})\n\z/;
is_deeply [ sql('SELECT identity FROM storage') ], [ [$identity] ], 'and the database knows it';
is_deeply [ checked() ], [ 1, $folder ], 'downloadsctl has nothing to say';

subtest 'a graceful restart on an empty folder' => sub {
    use_folder($empty);
    my $log = error_log_size();
    httpd_graceful();
    like error_log_since($log), qr/MDL0350: .*\Q$identity\E.*MDL0351/s,
        'the log says which folder is missing';
    is api('GET', '/ping', key => $shop->{token})->{status}, 200, 'requests are served';
    my $reply = api('POST', '/assets/uploads', key => $shop->{token},
        json => { filename => 'a.pdf', size => 10 });
    is $reply->{status}, 503, 'but no upload is taken' or diag $reply->{body};
    wait_for(sub { error_log_since($log) =~ /MDL0320: .*\Q$identity\E/ }, 10,
        'the background process');
    my $job = import_of('second', body => 'second');
    is qx(find '$empty' -type f), '', 'no file is written there';
    use_folder($folder);
    httpd_graceful();
    is wait_job($shop, $job)->{status}, 'succeeded',
        'an import waits until the folder is right again';
};

subtest 'a start on an empty folder' => sub {
    $server->stop;
    use_folder($empty);
    my $log = error_log_size();
    $server->httpd('-k', 'start');
    wait_for(sub { error_log_since($log) =~ /MDL0351/ && !$server->processes }, 20, 'the refusal');
    my ($command) = error_log_since($log) =~ /MDL0350: .*: (echo \S+ >\S+)/;
    ok $command, 'is refused, and the log has a command';
    my ($well, $line) = checked();
    ok !$well, 'downloadsctl finds it, too';
    like $line, qr/\Q$command\E$/, 'and prints the same command';
    is qx(find '$empty' -type f), '', 'no file is written there';
    is system($command), 0, 'with which the folder takes the place of the other';
    $server->start;
    is wait_job($shop, import_of('third', body => 'third'))->{status}, 'succeeded', 'and is used';
};

subtest 'a node that starts on the same host with the same folder' => sub {
    my @running = map { import_of("running-$_", size => MB, hold => MB / 2) } 1 .. 4;
    wait_for(sub {
        my ($row) = sql("SELECT count(*) FROM job WHERE status = 'running'");
        $row->[0] == 4;
    }, 10, 'four imports');
    my $node = MDL::Instance->new(
        without => qr/^DBDParams/,
        extra   => qq(DBDParams "$server->{vars}{db_params}"\nDownloadsStorage $empty\n)
            . "DownloadsPollInterval 1\n",
    )->start;
    is wait_job($shop, import_of('fourth', body => 'fourth'))->{status}, 'succeeded', 'works';
    $server->aim;
    $source->release("running-$_") for 1 .. 4;
    is_deeply [ map { wait_job($shop, $_)->{status} } @running ], [ ('succeeded') x 4 ],
        'the others go on';
    my $of = join ',', map { "'$_'" } @running;
    is_deeply [ sql("SELECT DISTINCT lease_token FROM job WHERE id IN ($of)") ], [ [1] ],
        'with their jobs';
    $node->stop;
};

# --- what is in it -------------------------------------------------------------------------------

sub path_of
{
    my ($asset) = @_;
    return "$empty/blobs/" . substr($asset->{sha256}, 0, 1) . "/$asset->{sha256}";
}

sub imported
{
    my ($name, $query, %answer) = @_;
    my $url   = $source->offer($name, \%answer) . $query;
    my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
    my $job = wait_job($shop, $reply->{json}{job}{id});
    die "import: $job->{status}\n" if $job->{status} ne 'succeeded';
    return api('GET', "/assets/$reply->{json}{asset}{id}", key => $shop->{token})->{json};
}

# Puts other bytes in the place of a file.
sub overwrite
{
    my ($path, $bytes) = @_;
    unlink $path;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $bytes;
    close $out or die "$path: $!\n";
    return;
}

sub verify
{
    my (@options) = @_;
    my ($code, $json, $text) = ctl('storage', 'verify', @options);
    die "storage verify @options: $text\n" if ref $json ne 'HASH' || $json->{error};
    return ($code, $json, { map { $_->{sha256} => $_ } @{ $json->{faults} } });
}

subtest 'files that are missing or damaged' => sub {
    # The folder took the place of the other, whose files are needed.
    system("cp -a '$folder'/blobs/. '$empty'/blobs/") == 0 or die "cp\n";
    my @files = map { imported("verified-$_", '', body => "the bytes $_") }
        qw(whole missing short changed closed);
    my ($whole, $missing, $short, $changed, $closed) = @files;
    my $uploaded = complete_upload($shop,
        do { my $u = begin_upload($shop, size => 4); put_bytes($u, 'sent'); $u })->{json}{asset};
    my $page     = imported('verified-query', '?signed=1', body => 'behind a query');
    my $mapping  = mapping_of($shop, [ $missing->{id} ])->{storefront_product_id};
    my @orders   = map { my $id = digits(); assign($shop, $id, [$mapping]); $id } 1 .. 12;
    my ($code, $json) = verify('--full');
    is $code, 0, 'nothing is wrong at first' or diag explain $json;
    is_deeply [ checked_files() ],
        [ 1, "$json->{files} of $json->{files} looked at; all: downloadsctl storage verify" ],
        'nor does downloadsctl check say so';

    unlink path_of($_) or die "$!\n" for $missing, $uploaded, $page;
    overwrite(path_of($short),   'the');
    overwrite(path_of($changed), 'the bytez changed');
    chmod 0, path_of($closed) or die "$!\n";
    my ($well, $line) = checked_files();
    ok !$well, 'downloadsctl check finds files that are missing';
    like $line,
        qr/\Q$server->{folder}\E.*(?:asset\ \d+\ of\ shop\ $shop->{shop_id},\ .*)
            .*downloadsctl\ storage\ verify/x,
        'names one with its asset, and says what to do';

    ($code, $json, my $fault) = verify();
    is $code, 6, 'so does storage verify';
    is_deeply [ @$json{qw(missing wrong_size changed unreadable)} ], [ 3, 1, 0, 1 ],
        'and counts them' or diag explain $json;
    my $found = $fault->{ $missing->{sha256} };
    is_deeply [ @$found{qw(fault size place)} ], [ 'missing', 17, path_of($missing) ],
        'it says which file';
    is_deeply { map { $_ => $found->{assets}[0]{$_} } qw(id shop_id filename orders) },
        { id => $missing->{id}, shop_id => $shop->{shop_id}, filename => 'verified-missing',
            orders => 12 },
        'which asset, and how many orders';
    is scalar @{ $found->{assets}[0]{order_ids} }, 10, 'and ten of their numbers';
    is scalar(grep { my $id = $_; grep { $_ eq $id } @orders } @{ $found->{assets}[0]{order_ids} }),
        10, 'which are those';
    is_deeply [ map { $fault->{ $_->{sha256} }{fault} } $short, $closed ],
        [ 'wrong_size', 'unreadable' ], 'what else is wrong has a name';
    is $fault->{ $changed->{sha256} }, undef, 'bytes are not read';
    is api('GET', "/assets/$missing->{id}", key => $shop->{token})->{json}{version}, 1,
        'and nothing is changed';

    ($code, $json, $fault) = verify('--full');
    is_deeply [ $code, $json->{changed}, $fault->{ $changed->{sha256} }{fault} ],
        [ 6, 1, 'changed' ], '--full reads them';

    # Other bytes come from the source of the short one: they are not taken.
    $source->offer('verified-short', { body => 'other bytes now' });
    ($code, $json, $fault) = verify('--full', '--repair');
    is_deeply [ $code, @$json{qw(repaired imports_queued)} ], [ 6, 1, 3 ],
        '--repair says what it has done' or diag explain $json;
    my %job = map { $_->{id} => $fault->{ $_->{sha256} }{assets}[0]{job_id} }
        $missing, $short, $changed;
    is wait_job($shop, $job{ $_->{id} })->{status}, 'succeeded',
        'what was imported is imported again' for $missing, $changed;
    my $refused = wait_job($shop, $job{ $short->{id} });
    is_deeply [ $refused->{status}, $refused->{error}{code} ], [ 'failed', 'checksum_mismatch' ],
        'and nothing but the same bytes is';
    like $fault->{ $uploaded->{sha256} }{assets}[0]{not_imported}, qr/uploaded/,
        'what was uploaded is not';
    like $fault->{ $page->{sha256} }{assets}[0]{not_imported}, qr/query/, 'nor what had a query';
    like $fault->{ $uploaded->{sha256} }{remedy}, qr/backup/, 'and it says what is to be done';
    ok -e path_of($changed) . '.damaged', 'changed bytes are set aside';

    ($code, $json, $fault) = verify('--full');
    is_deeply [ $code, sort keys %$fault ],
        [ 6, sort map { $_->{sha256} } $short, $uploaded, $page ], 'the others are whole again';
    is MDL::Test::slurp(path_of($_)), "the bytes $_->{filename}" =~ s/verified-//r,
        "$_->{filename} has its bytes" for $missing, $changed, $closed;
    my @audit = grep { $_->{action} eq 'version_added' && $_->{via} eq 'command' }
        @{ (ctl('audit', '--shop', $shop->{shop_id}))[1] };
    is_deeply [ sort map { $_->{noun_id} } @audit ],
        [ sort map { "$_->{id}" } $missing, $short, $changed ], 'the audit has each import';

    overwrite(path_of($short), 'the bytes short');
    put_bytes($_, 'sent'), complete_upload($shop, $_) for begin_upload($shop, size => 4);
    imported('verified-page', '', body => 'behind a query');
    is_deeply [ (verify('--full'))[0], (checked_files())[0] ], [ 0, 1 ],
        'when they are restored all is well';
};

# The guide's own lines, with this server's places.
subtest 'the backup of docs/operate.md' => sub {
    my ($script) = MDL::Test::slurp(MDL::Target::top_dir() . '/docs/operate.md')
        =~ /^## Backup\n.*?^```sh\n(.*?)^```/ms;
    my $vars = MDL::Test::vars();
    my $to   = "$server->{folder}/guide";
    mkdir $to or die "$to: $!\n";
    $script =~ s{/var/backups/}{$to/}g;
    $script =~ s{/root/}{$to/};
    $script =~ s{-o www-data }{};    # this test runs as that user
    $script =~ s{^downloadsctl}{$vars->{build}/downloadsctl -f @{[ conf_file() ]}}mg;
    open my $out, '>', "$to/backup.sh" or die "$!\n";
    print $out $script;
    close $out or die "$!\n";
    is system("sh -e $to/backup.sh >$to/out 2>&1"), 0, 'succeeds'
        or diag MDL::Test::slurp("$to/out");
    is scalar(my @made = glob "$to/downloads/*Z/manifest"), 2, 'both backups are there';
    ok -s "$to/downloads.secret", 'and the secret';
};

subtest 'more files than downloadsctl check looks at' => sub {
    my $newest = imported('newest', '', body => 'the newest of many');
    my ($count) = map { $_->[0] } sql('SELECT count(*) FROM blob');
    sql('INSERT INTO blob (sha256, size, crc32, created_at) WITH RECURSIVE many (n) AS'
            . ' (SELECT 10001 UNION ALL SELECT n + 1 FROM many WHERE n < 13000)'
            . ' SELECT n || substr(\'' . '0' x 64 . "', 6), 1, 1, 0 FROM many");
    my ($well, $line) = checked_files();
    my ($looked, $all) = $line =~ /^(\d+) of (\d+) looked at/;
    ok $well, 'those that nobody refers to need not be there';
    is $all, $count + 3000, 'it says how many there are';
    cmp_ok $looked, '>=', 1000, 'and at how many it has looked,';
    cmp_ok $looked, '<=', 2000, 'which are few';
    is((verify())[1]{files}, $all, 'storage verify looks at all');
    rename path_of($newest), path_of($newest) . '.away' or die "$!\n";
    ok !(checked_files())[0], 'the newest is among those that are looked at';
    rename path_of($newest) . '.away', path_of($newest) or die "$!\n";
    sql('DELETE FROM blob WHERE created_at = 0');
};

# Has a new background process look for what it may remove, as if all that was released had been an
# hour ago; the tables are looked at behind the files.
sub sweep
{
    sql('UPDATE blob SET released_at = 1 WHERE released_at IS NOT NULL');
    sql('INSERT INTO idempotency (shop_id, key_hi, key_lo, fingerprint, status, body, created_at)'
            . " VALUES ($shop->{shop_id}, 1, 1, '', 200, '', 1)");
    httpd_graceful();
    wait_for(sub { !sql('SELECT 1 FROM idempotency WHERE created_at = 1') }, 20, 'a sweep');
    return;
}

sub gone
{
    my ($asset) = @_;
    return api('DELETE', "/assets/$asset->{id}", key => $shop->{token})->{status} == 204;
}

sub dump_database
{
    my ($to)   = @_;
    my $params = MDL::Test::vars()->{db_params};
    my @copy   = database() eq 'sqlite3' ? ('sqlite3', $params, ".backup '$to'")
        : (MDL::Database::psql() =~ s/psql$/pg_dump/r, '-Fc', '-f', $to, '-d', $params);
    return system(@copy) == 0 || die "@copy\n";
}

sub restore_database
{
    my ($from, $params) = @_;
    my @copy = database() eq 'sqlite3' ? ('cp', $from, $params)
        : (MDL::Database::psql() =~ s/psql$/pg_restore/r, '-d', $params, $from);
    return system(@copy) == 0 || die "@copy\n";
}

# By another program, as docs/operate.md has it, while the service goes on; what comes between takes
# hours.
subtest 'a backup has every file that its database knows, however long it takes' => sub {
    my ($kept, $deleted, $again) = map { imported("backup-$_", '', body => "backed up $_") }
        qw(kept deleted again);
    my $copy = "$server->{folder}/backup";
    mkdir $copy or die "$copy: $!\n";
    my ($code, $hold) = ctl('storage', 'hold');
    is $code, 0, 'the storage is held';
    dump_database("$copy/database");
    ok gone($deleted), 'an asset is deleted meanwhile';
    ok gone($again),   'another, too,';
    $again = imported('backup-again', '', body => 'backed up again');
    ok gone($again), 'comes again and is deleted again';
    my $new = imported('backup-new', '', body => 'backed up new');
    overwrite("$empty/blobs/f/" . 'f' x 64, 'of nobody');
    utime 1, 1, "$empty/blobs/f/" . 'f' x 64;
    sweep();
    ok -e path_of($_), "and $_->{filename} is not removed" for $deleted, $again;
    system("tar -C '$empty' -cf '$copy/storage.tar' .") == 0 or die "tar\n";
    my ($other) = map { $_->{id} } (ctl('storage', 'hold'))[1];
    is_deeply [ ctl('storage', 'release', $hold->{id}) ]->[1], { released => 1 }, 'it is released';
    sweep();
    ok -e path_of($deleted), 'but another copy is being made';
    is_deeply [ (ctl('storage', 'release', $hold->{id}))[0],
        (ctl('storage', 'release', $other))[0] ], [ 4, 0 ],
        'that is released once it is done, once';
    sweep();
    ok !-e path_of($_), "then $_->{filename} goes" for $deleted, $again;
    wait_for(sub { !-e "$empty/blobs/f/" . 'f' x 64 }, 60, 'and what the database does not know');

    my $node = MDL::Instance->new(empty => 1);
    restore_database("$copy/database", $node->{vars}{db_params});
    system("tar -C '$node->{folder}/storage' -xpf '$copy/storage.tar'") == 0 or die "tar\n";
    $node->start;
    ($code, my $json) = verify('--full');
    is_deeply [ $code, $json->{ok} ? 1 : 0 ], [ 0, 1 ],
        'nothing of it is missing where it is restored' or diag explain $json;
    cmp_ok $json->{files}, '>=', 3, 'and it has files';
    is api('GET', "/assets/$deleted->{id}", key => $shop->{token})->{status}, 200,
        'and what was deleted later';
    sql('UPDATE storage_hold SET held_at = 1');
    ok gone($kept), 'an asset is deleted there';
    my $log = error_log_size();
    sweep();
    like error_log_since($log), qr/MDL0357: .* release \Q$hold->{id}\E/,
        'the hold was restored with it, as the log says';
    like join(' ', @{ (ctl('check'))[1]{warnings} }), qr/release \Q$hold->{id}\E/,
        'and downloadsctl check';
    is_deeply [ ctl('storage', 'release', 'all') ]->[1], { released => 1 },
        'it is ended as the guide says';
    sweep();
    ok !-e "$node->{folder}/storage/blobs/" . substr($kept->{sha256}, 0, 1) . "/$kept->{sha256}",
        'and files go again';
    $node->stop;
};

sub checked_files
{
    my ($code, $json) = ctl('check');
    my ($line) = grep { $_->{name} eq 'files' } @{ $json->{checks} };
    return ($line->{ok} ? 1 : 0, $line->{message});
}

$server->aim;
$server->stop;
done_testing;
