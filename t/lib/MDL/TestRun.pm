# Apache::Test's runner with what our suites need: a private database, state that is fresh for each
# run, prove for the files, and a look at what httpd left behind.
package MDL::TestRun;

use strict;
use warnings;

use parent 'Apache::TestRun';

use Apache::TestTrace qw(error);
use Cwd qw(getcwd);
use File::Path qw(make_path remove_tree);
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

# Those that httpd needs for the suites, besides the MPM and ours, under Debian's names.
my @MODULES = qw(unixd log_config logio version authz_core alias mime dir env headers setenvif
    unique_id dbd status);

# Lines of the error log that no suite may cause.  A suite that kills a process on purpose does it
# by SIGKILL.
my $BAD_LINE = qr/AddressSanitizer|LeakSanitizer|runtime\ error:|Segmentation|[Aa]ssertion
    |exit\ signal\ (?!Killed|Terminated)|double\ free|corrupted\ /x;

my $PID = $$;

sub apxs
{
    my ($what) = @_;
    my $apxs = $ENV{APXS} || 'apxs';
    my $answer = qx($apxs -q $what);
    chomp $answer;
    return $answer;
}

sub main
{
    my ($self, @argv) = @_;
    my $httpd = apxs('SBINDIR') . '/' . apxs('PROGNAME');
    $ENV{APACHE_TEST_ULIMIT_SET} = 1;    # tools/suites has seen to it
    $SIG{TERM} = sub { exit 143 };

    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1)
        or die "There is no free port: $!\n";
    my $port = $socket->sockport;
    close $socket;

    $self->{httpd} = $httpd;
    $self->run(
        -httpd      => $httpd,
        -apxs       => $ENV{APXS} || 'apxs',
        -port       => $port,
        -servername => 'localhost',
        -httpd_conf => getcwd() . '/t/conf/modules.list',
        @argv
    );
    my $left = $self->look_back;
    return $self->{failed} || $left ? 1 : 0;
}

# Before anything is configured: the state, the modules' list and the database.
sub pre_configure
{
    my ($self) = @_;
    my $top   = getcwd();
    my $logs  = "$top/t/logs";
    my $build = $ENV{BUILD} || 'build';
    my $mpm   = $ENV{MPM} || 'event';
    my $db    = $ENV{DB} || 'sqlite3';

    remove_tree($logs);
    make_path(map { "$logs/$_" } qw(cores storage source mail mail/new mail/cur mail/tmp));
    write_file("$logs/secret", random_bytes(48), 0600);

    my $folder = apxs('LIBEXECDIR');
    my @lines;
    for my $module ("mpm_$mpm", @MODULES) {
        my $file = "$folder/mod_$module.so";
        push @lines, qq(LoadModule ${module}_module "$file"\n) if -e $file;
    }
    my $own = $build =~ m{^/} ? $build : "$top/$build";
    push @lines, qq(LoadModule downloads_module "$own/mod_downloads.so"\n);
    write_file("$top/t/conf/modules.list", join('', @lines), 0644);

    my $conf = $self->{conf_opts};
    if ($db eq 'pgsql') {
        $self->{postgres} = "$logs/pg";
        make_path($self->{postgres});
        system("$top/tools/postgres", 'start', $self->{postgres}) == 0
            or die "PostgreSQL does not start.\n";
        chomp($conf->{db_params} = qx("$top/tools/postgres" params "$self->{postgres}"));
    }
    else {
        $conf->{db_params} = "$logs/downloads.db";
    }
    $conf->{db_driver} = $db;
    $conf->{build}     = $own;
    return;
}

# httpd itself knows nothing of a sanitizer; its runtime has to be there before the module is.
sub start
{
    my ($self) = @_;
    local $ENV{LD_PRELOAD}   = $ENV{SANITIZER_RUNTIME} // '';
    local $ENV{ASAN_OPTIONS} = 'detect_leaks=0:abort_on_error=1';
    return $self->SUPER::start;
}

# prove instead of Apache::TestHarness: its output is what everybody knows.
sub run_tests
{
    my ($self) = @_;
    return if !$self->{opts}{'run-tests'};
    my @tests = @{ $self->{tests} };
    @tests = sort glob 't/{api,delivery,metering,worker,operate}/*.t' if !@tests;
    if (!@tests) {
        print "There is no suite.\n";
        return;
    }
    my @verbose = $self->{opts}{verbose} ? ('--verbose') : ();
    my $status = system('prove', '-It/lib', '--timer', @verbose, @tests);
    $self->{failed} = $status != 0;
    return;
}

# After the server has stopped: core files, lines in the error log, processes that are still there.
sub look_back
{
    my ($self) = @_;
    my $logs = getcwd() . '/t/logs';
    my @found;

    my %excused;
    for my $core (glob("$logs/cores/*"), grep { -f } glob("$logs/core*")) {
        my $pid = $self->mpm_race($core);
        $pid ? $excused{$pid} = 1 : push @found, "core file: $core";
    }

    # Also of the suites' own instances (MDL::Instance).
    for my $path (glob "$logs/error_log $logs/instance-*/error_log") {
        open my $in, '<', $path or next;
        while (<$in>) {
            chomp;
            next if !/$BAD_LINE/ || (/ child pid (\d+) exit signal Segmentation / && $excused{$1});
            push @found, "$path:$.: $_";
        }
    }

    my @stray = $self->processes;
    for (my $until = time + 5; @stray && time < $until; @stray = $self->processes) {
        sleep 0.05;
    }
    push @found, "still running: $_" for @stray;

    return 0 if !@found;
    error "the server left this behind:";
    print STDERR "    $_\n" for @found;
    return 1;
}

# httpd 2.4's event MPM, when a child ends: the main thread closes the sockets of its busy workers
# (close_worker_sockets), and a worker whose client left at that moment frees the same one.  It is
# seen without our module too, once in some sixty stops with clients that leave.  Returns the pid of
# a process that ended so: only this stack, from main to the socket, and no frame of anyone else's.
sub mpm_race
{
    my ($self, $core) = @_;
    my $said  = qx(gdb -batch -ex 'info inferiors' -ex bt '$self->{httpd}' '$core' 2>/dev/null);
    my ($pid) = $said =~ /\bprocess (\d+)\b/;
    # gdb shows the innermost frame twice.
    my (undef, $top, @rest) = $said =~ /^[#]\d+ +(.*)$/mg;
    my @others = grep { !m{/mod_mpm_event\.so$|\bap_run_mpm \(|\bmain \(} } @rest;
    return @rest && !@others && $top =~ /\bapr_os_sock_get \(/
        ? $pid : undef;
}

# Servers that were started with a configuration file of ours, as "pid command line".
sub processes
{
    my $conf = getcwd() . '/t/';
    my @found;
    for my $path (glob '/proc/[0-9]*/cmdline') {
        open my $in, '<', $path or next;
        my $line = <$in> // next;
        $line =~ tr/\0/ /;
        my ($pid) = $path =~ /(\d+)/;
        push @found, "$pid $line" if $line =~ m{ \Q$conf\E\S*/httpd\.conf\b} && $line !~ /^\S*perl/;
    }
    return @found;
}

sub write_file
{
    my ($path, $text, $mode) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    chmod $mode, $path;
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

sub random_bytes
{
    my ($count) = @_;
    open my $in, '<:raw', '/dev/urandom' or die "/dev/urandom: $!\n";
    read($in, my $bytes, $count) == $count or die "/dev/urandom is short\n";
    return $bytes;
}

# However the run ends, neither httpd nor PostgreSQL stays.
my $instance;

sub new
{
    my ($class, @args) = @_;
    return $instance = $class->SUPER::new(@args);
}

END {
    if ($instance && $$ == $PID) {
        local ($?, $@);
        for ($instance->{server} ? $instance->processes : ()) {
            my ($pid) = /^(\d+)/;
            kill TERM => $pid;
        }
        system('tools/postgres', 'stop', $instance->{postgres}, 'immediate')
            if $instance->{postgres};
    }
}

1;
