# `downloadsctl storage copy` between the folder and an object store, while customers download: each
# file keeps its bytes, whatever is killed, and nothing is left behind.
#
# both: a file has its new place in a transaction with the object's key
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use IO::Select;
use POSIX ();
use Test::More;

use MDL::Customer;
use MDL::Instance;
use MDL::Swift;
use MDL::Test;

use constant { KB => 1024, MB => 1024 * 1024, DAY => 86400 };

my $store  = MDL::Swift->new;
my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\n")->start;
my $shop   = new_shop();
my @files  = map { new_file($shop, $_) } 0, 1, 20 * MB, 9 * MB, map { 64 * KB + $_ } 1 .. 40;
my %sha256 = map { $_->{sha256} => $_ } @files;

# A command in the background; returns its pid.
sub begin_ctl
{
    my (@arguments) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    open STDOUT, '>', "$server->{folder}/copy.out" or die $!;
    exec MDL::Test::vars()->{build} . '/downloadsctl', '--json', '-f', conf_file(), @arguments
        or POSIX::_exit(127);
}

sub count
{
    my ($where) = @_;
    my ($row) = sql("SELECT count(*) FROM blob WHERE $where");
    return $row->[0];
}

# Begins a slow copy, and sends a signal once so many more files have the new place.
sub copy_until
{
    my ($signal, $more, $of, @copy) = @_;
    my $had = count($of);
    my $pid = begin_ctl('storage', 'copy', @copy, '--rate', 150 * KB);
    wait_for(sub { count($of) >= $had + $more }, 120, "$more files");
    kill $signal => $pid;
    waitpid $pid, 0;
    return $?;
}

sub path_of
{
    my ($sha256) = @_;
    return storage_dir() . '/blobs/' . substr($sha256, 0, 1) . "/$sha256";
}

# Whether each file of the folder has its bytes.
sub files_right
{
    return !grep { sha256_hex(MDL::Test::slurp(path_of($_)) // 'none') ne $_ } keys %sha256;
}

# What is wrong with the objects: '' if those of the rows, and the identity, are all there are.
sub objects_wrong
{
    my %object = map { $_->[1] => $_->[0] }
        sql('SELECT sha256, object FROM blob WHERE object IS NOT NULL');
    my %stray = map { $_->[0] => 1 } sql('SELECT key FROM stray_object');
    my %there = $store->objects;
    delete $there{identity};
    return join ' ',
        (map { "$_ missing" } grep { !exists $there{$_} } keys %object),
        (map { "$_ unknown" } grep { !$object{$_} && !$stray{$_} } keys %there),
        (map { "$_ changed" } grep { sha256_hex($store->get($_)) ne $object{$_} } keys %object);
}

my @downloads;

# Customers who download slowly, half of them a file of 20 MB and half of them one of 9 MB.
sub begin_downloads
{
    my ($count) = @_;
    for my $i (1 .. $count) {
        my $file = $files[ 2 + $i % 2 ];
        my $url  = 'http://127.0.0.1:' . port() . link_of(buy($shop, $file));
        my $rate = int $file->{size} / 30;
        open my $sum, '-|', "curl -sSL --noproxy '*' --limit-rate $rate '$url' | sha256sum"
            or die "curl: $!\n";
        push @downloads, [ $file, $sum ];
    }
    return;
}

sub end_downloads
{
    my ($what) = @_;
    my @wrong = grep { (readline($_->[1]) // '') !~ /^$_->[0]{sha256} / } @downloads;
    is scalar @wrong, 0, $what;
    @downloads = ();
    return;
}

# A customer who downloads one file after the other, until told to end, but each once at least.
my @orders = map { buy($shop, $_, limit => 1000) } @files;
my $customer;

sub begin_customer
{
    pipe my $tells, my $told or die "pipe: $!\n";
    my $pid = open(my $said, '-|') // die "fork: $!\n";
    if (!$pid) {
        close $told;
        my ($count, $wrong) = (0, 0);
        while ($count <= @orders || !IO::Select->new($tells)->can_read(0)) {
            my $order = $orders[ $count++ % @orders ];
            my $reply = page('GET', link_of($order), timeout => 120);
            $wrong++ if $reply->{status} != 200
                || sha256_hex($reply->{body}) ne $order->{file}{sha256};
        }
        print "$wrong of $count\n";
        close STDOUT;
        POSIX::_exit(0);
    }
    close $tells;
    $customer = [ $said, $told ];
    return;
}

sub end_customer
{
    my ($said, $told) = @$customer;
    close $told;
    my ($wrong, $count) = (readline($said) // '') =~ /^(\d+) of (\d+)$/;
    is $wrong, 0, 'each download that began meanwhile had its bytes';
    cmp_ok $count // 0, '>', @files, 'and there were many';
    return;
}

$server->configure(extra => <<"END");
DownloadsPollInterval 1
DownloadsObjectStore ${\ $store->url}
DownloadsObjectKeyFile ${\ $store->key_file}
END
httpd_graceful();

subtest 'files into objects' => sub {
    begin_downloads(50);
    begin_customer();
    is copy_until(KILL => 5, 'object IS NOT NULL', 'folder', 'object'), 9, "killed ($_)" for 1, 2;
    is objects_wrong(), '', 'what has been copied is whole, and nothing unknown is left';
    my ($row) = sql('SELECT count(*) FROM stray_object');
    cmp_ok $row->[0], '>', 0, 'what was cut is a stray';
    is copy_until(INT => 3, 'object IS NOT NULL', 'folder', 'object') >> 8, 6,
        'stopped, it says that some are left';
    my $said = MDL::Test::slurp("$server->{folder}/copy.out");
    like $said, qr/"stopped":\s*true/, 'and that it was stopped';
    my ($code, $json) = ctl('storage', 'copy', 'folder', 'object');
    is_deeply [ $code, @$json{qw(left faulty)} ], [ 0, 0, 0 ], 'then the rest'
        or diag explain $json;
    is count('object IS NULL'), 0, 'no file is left';
    is objects_wrong(), '', 'every object has its bytes';
    ($row) = sql('SELECT count(*) FROM stray_object s JOIN blob b ON b.object = s.key');
    is $row->[0], 0, 'and none of them is a stray';
    ok files_right(), 'and the files stay for now';
    is_deeply [ $store->uploads ], [], 'no upload is unfinished';
    end_customer();
    end_downloads('downloads that began before get their files');
    is +(ctl('storage', 'verify', '--full'))[0], 0, 'storage verify finds no fault';
    my ($status) = map { $_->[1] } [ ctl('storage', 'status') ];
    is_deeply [ @$status{qw(files objects missing holds)} ], [ 0, scalar @files, 0, 0 ],
        'and storage status counts them' or diag explain $status;
};

subtest 'the copies in the folder go' => sub {
    my ($code, $json) = ctl('storage', 'clean', 'folder');
    is_deeply [ $code, @$json{qw(removed kept)} ], [ 0, 0, scalar @files ], 'not before a day';
    utime time - 2 * DAY, time - 2 * DAY, path_of($_) for keys %sha256;
    my ($held) = map { $_->{id} } (ctl('storage', 'hold'))[1];
    is +(ctl('storage', 'clean', 'folder'))[0], 5, 'nor while a backup is made';
    ctl('storage', 'release', $held);
    ($code, $json) = ctl('storage', 'clean', 'folder');
    is_deeply [ $code, @$json{qw(removed kept)} ], [ 0, scalar @files, 0 ], 'then they do'
        or diag explain $json;
    is scalar(grep { -e path_of($_) } keys %sha256), 0, 'all of them';
    is objects_wrong(), '', 'and the objects stay';
};

subtest 'objects into the folder' => sub {
    begin_downloads(50);
    begin_customer();
    is copy_until(KILL => 5, 'object IS NULL', 'object', 'folder'), 9, "killed ($_)" for 1, 2;
    my ($code, $json) = ctl('storage', 'copy', 'object', 'folder', '--jobs', 2);
    is_deeply [ $code, @$json{qw(left faulty)} ], [ 0, 0, 0 ], 'then the rest'
        or diag explain $json;
    is count('object IS NOT NULL'), 0, 'no object is needed';
    ok files_right(), 'every file has its bytes';
    my %stray = map { $_->[0] => 1 } sql('SELECT key FROM stray_object');
    my %there = $store->objects;
    is_deeply [ grep { $_ ne 'identity' && !$stray{$_} } keys %there ], [],
        'the objects are to be removed';
    wait_for(sub { my @left = glob storage_dir() . '/partial/copy_*'; !@left }, 180,
        'the partial files to go');
    is +(ctl('storage', 'verify', '--full'))[0], 0, 'storage verify finds no fault';
    end_customer();
    end_downloads('downloads that began before get their files');
};

subtest 'there and back, with the files still there' => sub {
    is +(ctl('storage', 'copy', 'folder', 'object', '--jobs', 8))[0], 0, 'there';
    my ($first, $second) = map { path_of($_->{sha256}) } @files[ 4, 5 ];
    unlink $first or die "$!\n";
    MDL::Instance::write_file($second, 'x' x -s $second);
    is +(ctl('storage', 'copy', 'object', 'folder', '--jobs', 8))[0], 0, 'and back';
    ok files_right(), 'also a file that was gone, and one that was damaged';
    ok -e "$second.damaged", 'which is set aside';
};

subtest 'all strays are removed in the end' => sub {
    sql('UPDATE stray_object SET due_at = 1');
    wait_for(sub {
        my %there = $store->objects;
        keys %there == 1 && !$store->uploads;
    }, 300, 'an empty bucket');
    pass 'the bucket is empty but for its identity';
};

subtest 'files that can not be copied' => sub {
    my ($missing, $changed) = map { path_of($_->{sha256}) } @files[ 6, 7 ];
    rename $missing, "$missing.away" or die "$!\n";
    my $bytes = MDL::Test::slurp($changed);
    MDL::Instance::write_file($changed, 'x' x length $bytes);
    my ($code, $json) = ctl('storage', 'copy', 'folder', 'object');
    is_deeply [ $code, @$json{qw(left faulty)} ], [ 6, 2, 2 ], 'are told' or diag explain $json;
    is_deeply { map { $_->{sha256} => $_->{fault} } @{ $json->{faults} } },
        { $files[6]{sha256} => 'missing', $files[7]{sha256} => 'changed' }, 'each with its fault';
    is count('object IS NULL'), 2, 'and stay where they are';
    rename "$missing.away", $missing;
    MDL::Instance::write_file($changed, $bytes);
    is +(ctl('storage', 'copy', 'folder', 'object'))[0], 0, 'once mended they are copied';
};

$server->stop;
done_testing;
