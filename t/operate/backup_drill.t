# A backup under load, a lost disk, and a restoration, both killed at random: every order that was
# acknowledged before the last backup has its page and its file again. Meanwhile the shop's slowest
# requests take no more than twice as long.
#
#   ORDERS=4000 MEGABYTES=1000 KILLS=5 SEED=4711     make check-backup
#
# both: each database is copied and filled in its own way
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Backup;
use MDL::Contract qw(assign mapping_of);
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $orders = $ENV{ORDERS} or plan skip_all => 'make check-backup takes its time';
my $bytes  = ($ENV{MEGABYTES} // 1000) * 1e6;
my $kills  = $ENV{KILLS} // 5;
my $seed   = $ENV{SEED}  // time ^ $$;
diag "SEED=$seed";
srand $seed;

use constant { MAKERS => 4, CLIENTS => 2, THINK => 0.02, MEASURED => 20, TIMES => 2 };

my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\nDownloadsStorageReserve 0\n")
    ->start;
my $folder = backup_folder($server);
my $source = MDL::Source->new;
my $shop   = new_shop();

# --- a shop --------------------------------------------------------------------------------------

# Files from a tenth to twenty times the mean.
sub make_files
{
    my $count  = $orders / 20 < 20 ? 20 : int($orders / 20);
    my @weight = map { 0.1 + 20 * (rand)**20 } 1 .. $count;
    my $sum    = 0;
    $sum += $_ for @weight;
    my (@files, @jobs);
    for my $n (0 .. $count - 1) {
        my $url = $source->offer("drill-$n", { version => $n,
            size => 1 + int($bytes * $weight[$n] / $sum) });
        my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
        die "import: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
        push @files, $reply->{json}{asset}{id};
        push @jobs,  $reply->{json}{job}{id};
    }
    wait_job($shop, $_, 900)->{status} eq 'succeeded' or die "import\n" for @jobs;
    return map {
        my $asset = api('GET', "/assets/$_", key => $shop->{token})->{json};
        {   id      => $_,
            sha256  => $asset->{sha256},
            size    => $asset->{size},
            product => mapping_of($shop, [$_], download_limit => 0)->{storefront_product_id},
        }
    } @files;
}

my @files = make_files();

# Makes an order; returns { path, file, at } or nothing.
sub make_order
{
    my ($id, $n) = @_;
    my $reply = assign($shop, $id, [ $files[$n]{product} ], storefront_customer_id => $id);
    my ($path) = ($reply->{json}{download_page_url} // '') =~ m{^https?://[^/]+(/.+)$};
    if ($reply->{status} != 201) {
        warn "order $id: $reply->{status} $reply->{body}\n";
        return;
    }
    return { id => $id, path => $path, file => $n, at => time,
        button => "$reply->{json}{assignments}[0]{id}-$files[$n]{id}" };
}

my @made = map { ref eq 'ARRAY' ? @$_ : die "orders: $_->{died}\n" } parallel(MAKERS, sub {
    my ($maker) = @_;
    return [ map { make_order(sprintf('1%d%07d', $maker, $_), $_ % @files) // die "no order\n" }
            1 .. $orders / MAKERS ];
});
note scalar(@made) . ' orders of ' . @files . ' files';

# --- load ----------------------------------------------------------------------------------------

my $loads = 0;

# Clients that open pages, read orders and make others, until load_end.
sub load_begin
{
    pipe my $watch, my $hold or die "pipe: $!";
    my @clients;
    my $path = "$server->{folder}/load-" . ++$loads;
    for my $client (1 .. CLIENTS) {
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            close $hold;
            eval { load_run("2$loads$client", $watch, "$path.$client") };
            POSIX::_exit(0);
        }
        push @clients, $pid;
    }
    return { hold => $hold, clients => \@clients, path => $path };
}

sub load_run
{
    my ($name, $watch, $path) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    vec(my $bits = '', fileno($watch), 1) = 1;
    srand;
    for (my $n = 0; !select my $ready = $bits, undef, undef, THINK; $n++) {
        my $order = $made[ rand @made ];
        my $began = time;
        my ($made, $good);
        if ($n % 3 == 0) {
            $made = make_order(sprintf('%s%07d', $name, $n), int rand @files);
            $good = defined $made;
        }
        else {
            my $reply = $n % 3 == 1 ? page('GET', $order->{path})
                : api('GET', "/orders/$order->{id}", key => $shop->{token});
            $good = $reply->{status} == 200;
        }
        syswrite $out, join(' ', time - $began, $good ? 1 : 0,
            $made ? @$made{qw(id path file at button)} : ()) . "\n";
    }
    return;
}

# Ends a load; returns { p99 in ms, failed, orders }.
sub load_end
{
    my ($load) = @_;
    close delete $load->{hold};
    { local $?; waitpid $_, 0 for @{ $load->{clients} }; }
    my (@took, @orders);
    my $failed = 0;
    for my $line (map { split /\n/, MDL::Test::slurp($_) } glob "$load->{path}.*") {
        my ($took, $good, $id, $path, $file, $at, $button) = split / /, $line;
        push @took, $took;
        $failed++ if !$good;
        push @orders, { id => $id, path => $path, file => int $file, at => $at, button => $button }
            if $at;
    }
    @took = sort { $a <=> $b } @took;
    return { p99 => 1000 * $took[ @took * 0.99 ], failed => $failed, orders => \@orders,
        requests => scalar @took };
}

# --- backups -------------------------------------------------------------------------------------

# Begins downloadsctl in a process group of its own; returns its pid.
sub begin
{
    my (@command) = @_;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec MDL::Test::vars()->{build} . '/downloadsctl', '-f', MDL::Test::conf_file(), @command
            or POSIX::_exit(127);
    }
    return $pid;
}

# Kills a command at a random instant of the time that it takes, or calls $ended once it has ended;
# returns how often it was killed.
sub kill_at_random
{
    my ($takes, $ended, @command) = @_;
    my $killed = 0;
    for (1 .. $kills) {
        my $pid = begin(@command);
        sleep rand($takes);
        kill KILL => $pid;
        local $?;
        waitpid $pid, 0;
        ($? & 127) == 9 ? $killed++ : $ended->();
    }
    return $killed;
}

sub timed
{
    my (@command) = @_;
    my $began = time;
    my ($code, $json, $text) = ctl(@command);
    is $code, 0, "@command[0 .. 0] succeeds" or diag $text;
    return (time - $began, $json);
}

my $load = load_begin();
sleep MEASURED;
my $alone = load_end($load);
push @made, @{ $alone->{orders} };

$load = load_begin();
my $began = time;
my ($took, $full) = timed('backup', $folder);
for (my $n = 1; time - $began < MEASURED; $n++) {
    my $other = backup_folder($server, "other-$n");
    timed('backup', $other);
    system 'rm', '-r', $other;
}
my $beside = load_end($load);
push @made, @{ $beside->{orders} };
is $full->{faulty}, 0, 'every file is in the backup';
is $alone->{failed} + $beside->{failed}, 0, 'no request fails';
cmp_ok $beside->{p99}, '<=', TIMES * $alone->{p99}, 'the slowest requests hardly notice a backup';

$load = load_begin();
my $killed = kill_at_random($took, sub { }, 'backup', backup_folder($server, 'killed'))
    + kill_at_random($took / 4, sub { }, 'backup', $folder);
cmp_ok $killed, '>', 0, 'backups are killed';
my $last = time;
my ($again, $incremental) = timed('backup', $folder, '--keep', 1);
my $during = load_end($load);
is $incremental->{copied}, 0, 'the next backup copies no file twice';
is_deeply [ sql('SELECT count(*) FROM storage_hold WHERE lapses_at IS NULL') ], [ [0] ],
    'no hold is for ever';
push @made, grep { $_->{at} < $last } @{ $during->{orders} };

# --- the disk is lost ----------------------------------------------------------------------------

my $size = (split ' ', qx(du -sb '$incremental->{backup}'))[0];
destroy($server);
$killed = kill_at_random($took, sub { destroy($server) }, 'restore', $folder);
destroy($server) if -e "$server->{folder}/storage/identity";
my ($restoring, $restored) = timed('restore', $folder);
is $restored->{faulty}, 0, 'every file is restored';
$server->start;

my @broken = map { ref eq 'ARRAY' ? @$_ : die "orders: $_->{died}\n" } parallel(MAKERS, sub {
    my ($client) = @_;
    return [ grep { !order_is_whole($_) } @made[ grep { $_ % MAKERS == $client } 0 .. $#made ] ];
});
is scalar(@broken), 0, 'all ' . @made . ' orders have their page and their file'
    or diag explain [ @broken[ 0 .. ($#broken < 4 ? $#broken : 4) ] ];

# Opens the order's page, presses the button, and reads the file's first bytes; the restoration has
# compared all.
sub order_is_whole
{
    my ($order) = @_;
    my $page = page('GET', $order->{path});
    my $pressed = page('POST', $order->{path}, form => { file => $order->{button} });
    my ($link) = ($pressed->{headers}{location} // '') =~ m{^https?://[^/]+(/.+)$} or return 0;
    my $part = page('GET', $link, headers => { range => 'bytes=0-99' });
    my $file = $files[ $order->{file} ];
    return $page->{status} == 200 && $part->{status} == 206
        && $part->{headers}{etag} eq qq("$file->{sha256}");
}

diag sprintf "%d orders, %.0f MB: backup %.1f s, again %.1f s, restore %.1f s after %d kills, "
    . "database %.0f MB; p99 %.1f ms alone, %.1f ms beside a backup (%.2f)",
    scalar @made, $full->{bytes} / 1e6, $took, $again, $restoring, $killed, $size / 1e6,
    $alone->{p99}, $beside->{p99}, $beside->{p99} / $alone->{p99};
done_testing();
