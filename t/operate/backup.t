# downloadsctl backup copies database and files while the service runs, and restore brings them
# back into an empty place: every order's page and file, and no email twice.
#
# both: each database is copied and filled in its own way
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Fcntl qw(LOCK_EX);
use JSON::PP;
use MDL::Backup;
use MDL::Contract qw(assign digits ready_asset);
use MDL::Customer;
use MDL::Instance;
use MDL::Mail qw(shop_with_product order_for);
use MDL::Maildir;
use MDL::Test;
use MDL::Upload;
use POSIX qw(mkfifo);
use Test::More;

use constant KB => 1024;

my $server  = MDL::Instance->new(extra => "DownloadsPollInterval 1\n")->start;
my $storage = "$server->{folder}/storage";
my $folder  = backup_folder($server);
my $shop    = new_shop();

sub blob_path
{
    my ($place, $sha256) = @_;
    return "$place/blobs/" . substr($sha256, 0, 1) . "/$sha256";
}

sub backed_up
{
    my ($code, $json, $text) = ctl('backup', @_ ? @_ : $folder);
    is $code, 0, 'a backup is made' or diag $text;
    return $json;
}

sub refused
{
    my ($code, $words, $what, @command) = @_;
    my @got = ctl(@command);
    my $error = ref $got[1] eq 'HASH' ? $got[1]{error}{message} : '';
    ok $got[0] == $code && $error =~ $words, $what or diag explain \@got;
    return;
}

# What a command shows on a terminal.
sub on_terminal
{
    my $command = join ' ', MDL::Test::vars()->{build} . '/downloadsctl', '-f', conf_file(), @_;
    return scalar qx(script -qec '$command' /dev/null);
}

# Every order's page, and the bytes of its file.
sub orders_are_whole
{
    my ($what, @orders) = @_;
    my @broken = grep {
        my $page  = page('GET', $_->{path});
        my $bytes = page('GET', link_of($_))->{body};
        $page->{status} != 200 || sha256_hex($bytes) ne $_->{file}{sha256};
    } @orders;
    is_deeply [ map { $_->{id} } @broken ], [], $what;
    return;
}

# --- twenty orders -------------------------------------------------------------------------------

my @files  = map { new_file($shop, $_ * 300 * KB) } 1 .. 4;
my @orders = map { buy($shop, $files[ $_ % 4 ], limit => 0) } 1 .. 20;

# An email that waits, as all of this shop do.
my $mailing = shop_with_product('Mailing');
MDL::Test::ctl_or_die('shop', 'set', $mailing->{shop_id}, '--mail-delay', 60);
my $waiting = order_for($mailing, 'ada@example.com');

# A buyer who is to be told of a new version.
sql("INSERT INTO news_item (order_id, asset_id, shop_id, address, version)
    VALUES (1, $files[0]{id}, $shop->{shop_id}, 'ada\@example.com', 2)");
sql("INSERT INTO news_address (shop_id, address, due_at)
    VALUES ($shop->{shop_id}, 'ada\@example.com', 9000000000000000)");

# An upload whose bytes have come.
my $upload = begin_upload($shop, size => 5);
put_bytes($upload, 'bytes');

my $first = backed_up();
is_deeply [ @$first{qw(files copied faulty)} ], [ 5 + 1, 5 + 1, 0 ],
    'every file is copied' or diag explain $first;
is $first->{bytes}, 3000 * KB + length('the bytes of a guide') + 5, 'with its bytes';
is_deeply [ sql('SELECT count(*) FROM storage_hold') ], [ [0] ], 'the storage is no longer held';
my @audit = sql("SELECT via FROM audit WHERE noun = 'storage' AND action = 'backed_up'");
is_deeply \@audit, [ ['command'] ], 'the audit has it';

my $unused;
subtest 'the next backup copies what is new' => sub {
    push @files, new_file($shop, 10 * KB);
    push @orders, buy($shop, $files[-1], limit => 0);
    $unused = new_file($shop, 10);
    MDL::Test::ctl_or_die('maintenance', 'on');
    my $second = backed_up();
    MDL::Test::ctl_or_die('maintenance', 'off');
    is_deeply [ @$second{qw(files copied copied_bytes)} ], [ 8, 2, 10 * KB + 10 ],
        'two files';
    my @sets = glob "$folder/*Z";
    is_deeply \@sets, [ $first->{backup}, $second->{backup} ], 'both backups are there';
};

subtest 'a terminal sees how far the backup is' => sub {
    my $seen = on_terminal('backup', $folder);
    like $seen, qr/^The database \.\.\.\r +\r+[#.]+ +\d+ %, \d of 8 files/, 'by a line';
    like $seen, qr/\r +\r\S+Z: 8 files/, 'which is removed in the end';
    unlike on_terminal('backup', $folder, '--quiet'), qr/%|database/, 'but not with --quiet';
};

# What happens after the backup is lost.
my ($last_order) = map { $_->[0] } sql('SELECT max(id) FROM orders');
my ($feed)       = map { $_->[0] } sql('SELECT name FROM event_feed');
my $lost = buy($shop, $files[0], limit => 0);

refused(5, qr/is not empty/, 'a folder with files is not restored over', 'restore', $folder);
destroy($server);
my ($code, $restored, $text) = ctl('restore', $folder);
is $code, 0, 'an empty place is restored' or diag $text;
is_deeply [ @$restored{qw(files faulty emails_set_aside)} ], [ 8, 0, 1 ],
    'every file was read again' or diag explain $restored;
ok !-e "$storage/restoring", 'nothing is left over';
$server->start;
wait_heartbeat();
is +(ctl('check'))[0], 0, 'downloadsctl check finds nothing' or diag explain [ ctl('check') ];

orders_are_whole('every order has its page and its file', @orders);
is page('GET', $lost->{path})->{status}, 404, 'but for the one that came later';
is complete_upload($shop, $upload)->{status}, 201, 'an upload can be completed';

subtest 'what may have happened since is not done again' => sub {
    my ($row) = sql("SELECT e.status, j.status, j.error_code, e.last_error FROM email e
        JOIN job j ON j.email_id = e.id WHERE e.shop_id = $mailing->{shop_id}");
    is_deeply [ @$row[ 0 .. 2 ] ], [ 'failed', 'failed', 'restored' ],
        'an email that waited has failed';
    like $row->[3], qr/restored from the backup of 20/, 'and says why';
    is scalar(mails('ada@example.com')), 0, 'it is not sent';
    is_deeply [ sql('SELECT count(*) FROM news_item') ], [ [0] ], 'no buyer is told twice';
    is_deeply [ sql('SELECT count(*) FROM news_address WHERE due_at IS NOT NULL') ], [ [0] ],
        'nor looked at';
    is_deeply [ sql('SELECT count(*) FROM news_address WHERE sent_at IS NULL') ], [ [0] ],
        'and the address is forgotten with those that were told';
    my $later = buy($shop, $files[0], limit => 0);
    my ($id) = map { $_->[0] } sql('SELECT max(id) FROM orders');
    cmp_ok $id, '>', $last_order + 1_000_000, 'ids go on behind a gap';
    isnt +(sql('SELECT name FROM event_feed'))[0][0], $feed, 'the events have a new feed';
    is_deeply [ sql('SELECT count(*) FROM storage_hold') ], [ [0] ], "the backup's hold has ended";
};

subtest 'an email that was set aside' => sub {
    MDL::Test::ctl_or_die('shop', 'set', $mailing->{shop_id}, '--mail-delay', 0);
    my ($status, $json) = ctl('job', 'retry', '--failed', '--type', 'email');
    is $status, 0, 'can be sent' or diag explain $json;
    my $mail = eval { wait_mail('ada@example.com') };
    ok $mail, 'and arrives';
};

# --- what is wrong -------------------------------------------------------------------------------

refused(1, qr/--keep is a whole number from 1 to 1000/, 'a number to keep is checked', 'backup',
    $folder, '--keep', 0);
refused(6, qr/give it to the user that httpd runs as/, 'a folder must be writable', 'backup',
    '/backups');
refused(5, qr/is a storage folder/, 'nor may it be the storage itself', 'backup', $storage);
refused(6, qr/has no complete backup/, 'a folder without a backup is not restored', 'restore',
    $storage);
refused(6, qr/can't be read: No such file/, 'nor one that is missing', 'restore', "$folder/none");

subtest 'damaged files' => sub {
    my $damaged = $files[0]{sha256};
    my $other   = backup_folder($server, 'other');
    rename blob_path($storage, $damaged), "$storage/kept" or die "$!\n";
    my ($status, $json) = ctl('backup', $other);
    is $status, 6, 'a backup without a file ends with 6';
    is_deeply [ map { @$_{qw(sha256 fault)} } @{ $json->{faults} } ], [ $damaged, 'missing' ],
        'and names it' or diag explain $json;
    ok -e "$json->{backup}/manifest", 'but is complete otherwise';
    open my $out, '>', blob_path($storage, $damaged) or die "$!\n";
    print $out 'x' x $files[0]{size};
    close $out or die "$!\n";
    ($status, $json) = ctl('backup', $other);
    is_deeply [ $status, map { @$_{qw(sha256 fault)} } @{ $json->{faults} } ],
        [ 6, $damaged, 'changed' ], 'nor are changed bytes copied' or diag explain $json;
    rename "$storage/kept", blob_path($storage, $damaged) or die "$!\n";
};

# A file that is a pipe keeps the backup waiting.
subtest 'while a backup is made' => sub {
    my $path = blob_path($storage, $files[1]{sha256});
    rename $path, "$storage/kept" or die "$!\n";
    mkfifo($path, 0600) or die "$!\n";
    my $held = backup_folder($server, 'held');
    my $pid  = open my $out, '-|', MDL::Test::vars()->{build} . '/downloadsctl', '-f', conf_file(),
        'backup', $held or die "$!\n";
    wait_for(sub { glob "$held/*Z/files" }, 20, 'the list of files');
    my ($status, $json) = ctl('storage', 'status');
    is $json->{holds}, 1, 'the storage is held';
    is_deeply [ sql('SELECT count(*) FROM storage_hold WHERE lapses_at > held_at') ], [ [1] ],
        'for as long as the backup lives';
    refused(5, qr/Another backup is being made/, 'no other is made there', 'backup', $held);
    refused(6, qr/no complete backup/, 'it can\'t be restored yet', 'restore', $held);
    open my $pipe, '>:raw', $path or die "$!\n";
    print $pipe $files[1]{bytes};
    close $pipe or die "$!\n";
    like do { local $/; <$out> }, qr/0 faulty/, 'it ends once it has the bytes';
    close $out;
    is $?, 0, 'well';
    rename "$storage/kept", $path or die "$!\n";
};

subtest '--keep' => sub {
    is api('DELETE', "/assets/$unused->{id}", key => $shop->{token})->{status}, 204,
        'a file is deleted';
    sql("UPDATE asset SET sha256 = NULL WHERE id = $unused->{id}");
    sql("DELETE FROM blob WHERE sha256 = '$unused->{sha256}'");
    backed_up($folder, '--keep', 2);
    ok !-e $first->{backup}, 'the older backups are removed';
    is scalar(my @sets = glob "$folder/*Z"), 2, 'two stay';
    ok -e blob_path($folder, $unused->{sha256}), 'with the files of both';
    backed_up($folder, '--keep', 1);
    ok !-e blob_path($folder, $unused->{sha256}), 'and of no other';
};

subtest 'a clock that was set back' => sub {
    my $later = "$folder/2099-01-01T00-00-00Z";
    system('cp', '-r', (glob "$folder/*Z")[-1], $later) == 0 or die "cp\n";
    my $made = backed_up($folder, '--keep', 1);
    ok -e $made->{backup}, 'the backup that was just made stays';
    ok !-e $later, 'rather than one that has a later name';
};

subtest 'a backup that was killed' => sub {
    my $half = "$folder/2026-01-01T00-00-00Z";
    mkdir $half or die "$!\n";
    open my $out, '>', "$half/database" or die "$!\n";
    close $out or die "$!\n";
    sql("INSERT INTO storage_hold (id, user_name, held_at, lapses_at)
        VALUES ('hold_x', 'x', 1, 2)");
    refused(6, qr/was not completed/, 'is not restored', 'restore', $half);
    backed_up();
    ok !-e $half, 'is removed by the next';
    is_deeply [ sql('SELECT count(*) FROM storage_hold') ], [ [0] ], 'its hold has lapsed';
};

my @sets = glob "$folder/*Z";
for my $file (qw(manifest files)) {
    open my $in, '<:raw', "$sets[-1]/$file" or die "$!\n";
    my $text = do { local $/; <$in> };
    MDL::Instance::write_file("$sets[-1]/$file", $text =~ s/1/2/r);
    refused(6, qr/\Q$file\E is damaged/, "a $file with other bytes is not restored", 'restore',
        $sets[-1]);
    MDL::Instance::write_file("$sets[-1]/$file", $text);
}

# Writes a secret, of which the suites' configuration knows nothing.
sub other_secret
{
    my ($name) = @_;
    my $path = "$server->{folder}/$name";
    MDL::Instance::write_file($path, "another secret of the suites, $name, long enough");
    chmod 0600, $path or die "$path: $!\n";
    return $path;
}

sub configure_secrets
{
    my $files = join ' ', map { qq("$_") } @_;
    $server->configure(
        without => qr/^DownloadsSecretFile/,
        extra   => "DownloadsPollInterval 1\nDownloadsSecretFile $files\n");
    return;
}

my $own = MDL::Test::vars()->{t_logs} . '/secret';

subtest 'the secret' => sub {
    my $kept = "$server->{folder}/kept-secret";
    my $folder = backup_folder($server, 'apart');
    is backed_up($folder)->{secret}, undef, 'is not copied unless that is asked for';
    symlink $folder, "$server->{folder}/link" or die "$!\n";
    refused(5, qr/\Q$_\E is among the backups/, 'nor beside the backups', 'backup', $folder,
        '--secret', $_)
        for "$folder/secret", "$folder/blobs/../secret", "$server->{folder}/link/secret";
    is_deeply [ glob "$folder/*secret*" ], [], 'where it is not left';
    is backed_up($folder, '--secret', $kept)->{secret}, $kept, 'it is copied apart';
    is MDL::Test::slurp($kept), MDL::Test::slurp($own), 'byte by byte';
    is +(stat $kept)[2] & oct 777, oct 600, 'for its owner alone';
    my ($audit) =
        sql("SELECT detail FROM audit WHERE action = 'backed_up' ORDER BY id DESC LIMIT 1");
    is $audit->[0], "the secret: $kept", 'and the audit says so';
    backed_up($folder, '--secret', $kept);
    configure_secrets(other_secret('newer'), $own);
    refused(5, qr/is another secret: name another file/, 'the copy of another is not overwritten',
        'backup', $folder, '--secret', $kept);
    backed_up($folder, '--secret', "$kept-new");
    is MDL::Test::slurp("$kept-new.2"), MDL::Test::slurp($own), 'an older one is copied, too';
    $server->configure(without => undef, extra => "DownloadsPollInterval 1\n");
};

subtest 'a disk without room' => sub {
    $server->configure(extra => "DownloadsPollInterval 1\nDownloadsStorageReserve 16384G\n");
    refused(6, qr/has no space left/, 'a backup leaves the reserve free', 'backup',
        database() eq 'sqlite3' ? $folder : backup_folder($server, 'full'));
    $server->configure(extra => "DownloadsPollInterval 1\n");
};

# Each restoration locks the folder.
subtest 'while another restoration is under way' => sub {
    destroy($server);
    open my $other, '<', $storage or die "$!\n";
    flock $other, LOCK_EX or die "$!\n";
    refused(5, qr/Another restoration into .* is under way/, 'none is begun', 'restore', $folder);
    ok !-e "$storage/restoring", 'and nothing is written';
    close $other;
};

# --- killed --------------------------------------------------------------------------------------

sub mark
{
    my ($name) = @_;
    MDL::Instance::write_file("$storage/restoring", "$name\n");
    return;
}

subtest 'a restoration that was killed' => sub {
    my ($name) = $sets[-1] =~ m{([^/]+)\z};
    destroy($server);
    mark('2026-01-01T00-00-00Z');
    refused(5, qr/2026-01-01T00-00-00Z was being restored/, 'another one is not mixed with it',
        'restore', $folder);
    mark($name);
    mkdir "$storage/$_" or die "$!\n" for 'blobs', 'blobs/' . substr $files[1]{sha256}, 0, 1;
    system('cp', blob_path($folder, $files[1]{sha256}), blob_path($storage, $files[1]{sha256})) == 0
        or die "cp\n";
    my ($status, $json) = ctl('restore', $folder);
    is $status, 0, 'the same one goes on' or diag explain $json;
    is $json->{copied}, $json->{files} - 1, 'with the files that are missing';

    # As if it had been killed once the database was there.
    my ($hold) = MDL::Test::slurp("$sets[-1]/manifest") =~ /"hold":"(\w+)"/;
    sql("INSERT INTO storage_hold (id, user_name, held_at) VALUES ('$hold', 'x', 1)");
    unlink "$storage/identity" or die "$!\n";
    mark($name);
    my $log = error_log_size();
    $server->httpd('-k', 'start');
    wait_for(sub { error_log_since($log) =~ /MDL0350/ && !$server->processes }, 20, 'the refusal');
    pass 'httpd does not start';
    ($status, $json) = ctl('restore', $folder);
    is $status, 0, 'the restoration goes on again' or diag explain $json;
    is $json->{copied}, 0, 'all files are there';
    is_deeply [ sql('SELECT count(*) FROM storage_hold') ], [ [0] ],
        'a database that was not told yet is told now' if MDL::Target::database() eq 'pgsql';
    $server->start;
    orders_are_whole('and every order is whole', @orders);
};

subtest 'a terminal sees how far the restoration is' => sub {
    destroy($server);
    my $seen = on_terminal('restore', $folder);
    my $line = qr/[#.]+ +\d+ %, \d of 7 files/;
    like $seen, qr/^\r$line.*\r +\rThe database \.\.\.\r +\r+$line read/, 'by a line'
        or diag $seen;
    like $seen, qr/\r +\rRestored the state/, 'which is removed in the end';
};

subtest 'a restoration without the secret' => sub {
    destroy($server);
    configure_secrets(other_secret('wrong'));
    my ($status, $json) = ctl('restore', $folder);
    is $status, 6, 'is done, but all is not well';
    like $json->{secret_fault}, qr/another secret than the one that has signed/, 'and says why';
    destroy($server);
    configure_secrets("$server->{folder}/none");
    like on_terminal('restore', $folder), qr/removed\.  The secret file \S+ does not exist/,
        'a missing one, too';
    $server->configure(without => undef, extra => "DownloadsPollInterval 1\n");
    $server->start;
    orders_are_whole('with the right secret every order is whole', @orders);
};

done_testing();
