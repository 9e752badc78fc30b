# Extends Apache::Test's runner.  Apache::Test finds httpd, writes its configuration, and starts and
# stops a server with it.  Each suite has its own servers and databases with the same configuration
# (MDL::Instance), so that TAP::Harness can run several suites at once.  On PostgreSQL they share a
# private cluster, which no suite stops; those that need an object store share one (MDL::Swift).
#
# A suite says in its first comment on which of DATABASES it runs:
#
#   # once: why     on the first, and under the first MPM of MPM: what it tests depends on neither,
#                   or another suite, which it names, has that on both
#   # both: why     on each, and under each MPM
#   # pgsql: why    on PostgreSQL alone
#
# FULL=1 runs those of the first kind as those of the second.  A suite with a line "# long: why" is
# among the first to run, so that it doesn't run alone at the end.
package MDL::TestRun;

use strict;
use warnings;

use parent 'Apache::TestRun';

use Apache::TestTrace qw(error);
use Cwd qw(getcwd);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use POSIX ();
use TAP::Harness;
use Time::HiRes qw(sleep time);

use MDL::Database ();
use MDL::Ports;
use MDL::Swift ();

# The httpd modules that the suites need besides the MPM and ours, by their names in Debian.
my @MODULES = qw(unixd log_config logio version authz_core alias mime dir env headers setenvif
    unique_id reqtimeout dbd status);

# Lines of the error log that no suite may cause.  Suites that kill a process use SIGKILL.
my $BAD_LINE = qr/AddressSanitizer|LeakSanitizer|runtime\ error:|Segmentation|[Aa]ssertion
    |exit\ signal\ (?!Killed|Terminated)|double\ free|corrupted\ /x;

# What no log may hold besides the secret: an API key, and what stands behind an address of the
# module's.
my $TOKEN = qr{adk_live_\w{16}_\w{20}|/([ofzlu])/[\w-]{20}};
my %KINDS = (o => 'page token', f => 'file token', z => 'archive token', l => 'link token',
    u => 'upload token');

my $top  = getcwd();
my $logs = "$top/t/logs";
my $pid  = $$;

sub apxs
{
    my ($what) = @_;
    my $apxs = $ENV{APXS} || 'apxs';
    chomp(my $answer = qx($apxs -q $what));
    return $answer;
}

sub main
{
    my ($self, @arguments) = @_;
    $ENV{APACHE_TEST_ULIMIT_SET} = 1;    # tools/suites has seen to it
    # Debian's localhost is ::1 first, where no server of a test listens; Node.js tries no other.
    $ENV{NODE_OPTIONS} = '--dns-result-order=ipv4first';
    $ENV{MDL_STORE_PARENT} = $$;         # not the suite that starts the store
    $ENV{MPM}       ||= 'event';
    $ENV{DATABASES} ||= 'sqlite3 pgsql';
    $ENV{BUILD}     ||= 'build';
    $ENV{BUILD} = "$top/$ENV{BUILD}" if $ENV{BUILD} !~ m{^/};
    $ENV{HTTPD} = $self->{httpd} = apxs('SBINDIR') . '/' . apxs('PROGNAME');
    $self->run(
        -httpd      => $self->{httpd},
        -apxs       => $ENV{APXS} || 'apxs',
        -port       => free_port(),
        -servername => 'localhost',
        -httpd_conf => "$top/t/conf/modules.list",
        @arguments
    );
    my $left = $self->look_back;
    return $self->{failed} || $left ? 1 : 0;
}

# Before Apache::Test configures its server: clears t/logs, lists the modules and starts PostgreSQL.
sub pre_configure
{
    my ($self) = @_;
    remove_tree($logs);
    make_path(map { "$logs/$_" } qw(cores storage source mail mail/new mail/cur mail/tmp));
    write_file("$logs/secret", 'a secret of the suites that is long enough for everybody');
    chmod 0600, "$logs/secret";

    my ($mpm)  = split ' ', $ENV{MPM};
    my $folder = apxs('LIBEXECDIR');
    my @lines;
    for my $module ("mpm_$mpm", @MODULES) {
        my $file = "$folder/mod_$module.so";
        push @lines, qq(LoadModule ${module}_module "$file"\n) if -e $file;
    }
    push @lines, qq(LoadModule downloads_module "$ENV{BUILD}/mod_downloads.so"\n);
    write_file("$top/t/conf/modules.list", @lines);

    $self->{conf_opts}{db_driver} = 'sqlite3';
    $self->{conf_opts}{db_params} = "$logs/downloads.db";
    if ($ENV{DATABASES} =~ /pgsql/) {
        system('tools/postgres', 'start', "$logs/pg") == 0 or die "PostgreSQL does not start.\n";
        chomp($ENV{MDL_TEST_PGSQL} = qx(tools/postgres params "$logs/pg"));
    }
    return;
}

# httpd is built without a sanitizer, so its runtime has to be loaded before the module.
sub start
{
    my ($self) = @_;
    local $ENV{LD_PRELOAD}   = $ENV{SANITIZER_RUNTIME} // '';
    local $ENV{ASAN_OPTIONS} = 'detect_leaks=0:abort_on_error=1';
    return $self->SUPER::start;
}

# The runs of these suites, each as "database[-mpm] suite".
sub runs
{
    my (@suites) = @_;
    my @all = map {
        my $mpm = $_;
        map { $mpm eq 'event' ? $_ : "$_-$mpm" } split ' ', $ENV{DATABASES};
    } split ' ', $ENV{MPM};
    return map {
        my $suite = $_;
        my @on = says($suite, 'pgsql') ? grep { /^pgsql/ } @all
            : says($suite, 'both') ? @all
            : !says($suite, 'once')
            ? die "$suite says neither once, both nor pgsql (MDL::TestRun)\n"
            : $ENV{FULL} ? @all : $all[0];
        map { "$_ $suite" } @on;
    } @suites;
}

# Whether the first comment of a suite has a line "# word: why".
sub says
{
    my ($suite, $word) = @_;
    open my $in, '<', $suite or die "$suite: $!\n";
    while (my $line = <$in>) {
        return 0 if $line !~ /^#/;
        return 1 if $line =~ /^# $word: /;
    }
    return 0;
}

# Makes the database on PostgreSQL that those of the suites are copies of: to apply every migration
# takes a second each time. No suite stops this cluster, so what it writes need not reach the disk.
# The launcher of autovacuum would start a process for each suite's database every minute. As in
# most databases, lower() knows the letters of every language.
sub make_template
{
    my $params = $ENV{MDL_TEST_PGSQL} =~ s/dbname=\S+/dbname=template_downloads/r;
    write_file("$logs/template.conf", read_file("$top/t/conf/extra.conf"),
        qq(DBDriver pgsql\nDBDParams "$params"\n));
    my @commands = map { ('-c', $_) } 'ALTER SYSTEM SET fsync = off',
        'ALTER SYSTEM SET full_page_writes = off',
        $ENV{GROWTH} ? () : "ALTER SYSTEM SET autovacuum_naptime = '1h'",
        'SELECT pg_reload_conf()',
        "CREATE DATABASE template_downloads TEMPLATE template0 LC_CTYPE 'C.UTF-8'";
    my $cluster = MDL::Database::patient($ENV{MDL_TEST_PGSQL});
    system(MDL::Database::psql(), $cluster, qw(-qX -o /dev/null), @commands) == 0
        && system("'$ENV{BUILD}/downloadsctl' -f '$logs/template.conf' migrate "
            . ">'$logs/template.log' 2>&1") == 0
        or die "The suites' database can't be made.\n", read_file("$logs/template.log");
    return;
}

sub output_file { my ($run) = @_; return "$logs/" . $run =~ s{^(\S+) t/(.*)\.t\z}{$1/$2/output}r }

sub processor_file { return output_file(shift) =~ s/output\z/processor/r }

# Prints the processor time of these runs and of their PostgreSQL, and the slowest runs.
sub print_processor_time
{
    my (@runs) = @_;
    my ($all, %used, %took) = 0;
    for my $run (@runs) {
        ($used{$run}, $took{$run}) = split ' ', read_file(processor_file($run));
        $all += $used{$run};
    }
    my ($postmaster) = read_file("$logs/pg/data/postmaster.pid") =~ /^(\d+)/;
    my $of_postgres = 0;
    if ($postmaster) {
        # Its ticks, and those of its processes that have ended.
        my (undef, $stat) = split /\) /, read_file("/proc/$postmaster/stat");
        my $second = POSIX::sysconf(POSIX::_SC_CLK_TCK());
        $of_postgres += $_ / $second for (split ' ', $stat)[ 11 .. 14 ];
    }
    my @slowest = sort { $used{$b} <=> $used{$a} } @runs;
    splice @slowest, $ENV{SLOWEST} || 10 if @slowest > ($ENV{SLOWEST} || 10);
    printf "Processor seconds: %.0f of %d runs, %.0f of their PostgreSQL.  The slowest:\n",
        $all, scalar @runs, $of_postgres;
    printf "%8.1f in %4d s: %s\n", $used{$_}, $took{$_}, $_ for @slowest;
    return;
}

# If there are several runs, the standard error of each goes to a file, which is shown if it fails.
sub run_tests
{
    my ($self) = @_;
    make_template() if $ENV{MDL_TEST_PGSQL};
    my @suites = @{ $self->{tests} };
    my $whole  = !@suites;
    # The folders with the most long suites come first.
    @suites = glob 't/{metering,operate,delivery,worker,settings,api}/*.t' if !@suites;
    @suites = ((grep { says($_, 'long') } @suites), (grep { !says($_, 'long') } @suites));
    my @runs = runs(@suites);
    make_path(map { dirname(output_file($_)) } @runs);
    # Of all suites one that hangs must not hide the others' results.
    my @limit = $whole ? ('--limit', $ENV{LIMIT} || 1200) : ();
    my $harness = TAP::Harness->new({
        jobs      => $ENV{JOBS} || 4,
        timer     => 1,
        # an unused pipe for standard error would block the other runs at its end
        merge     => @runs > 1,
        verbosity => $self->{opts}{verbose} ? 1 : 0,
        exec      => sub {
            my (undef, $run) = @_;
            my ($label, $suite) = split / /, $run;
            my ($db, $mpm) = split /-/, $label;
            return [ 'tools/processor', @limit, processor_file($run),
                'env', "MDL_RUN=$label", "DB=$db", 'MPM=' . ($mpm // 'event'), 'sh', '-c',
                'exec "$@"' . (@runs > 1 ? " 2>'${\ output_file($run)}'" : ''), 'sh', $^X,
                '-It/lib', $suite ];
        },
    });
    my $result = $harness->runtests(@runs);
    my @failed = grep { ($result->parsers($_))[0]->has_problems } $result->descriptions;
    print STDERR "\n--- $_\n", read_file(output_file($_)) for @failed;
    print_processor_time(@runs) if @runs > 1;
    $self->{failed} = @failed > 0;
    return;
}

# After the servers have stopped: looks for core files, bad lines in the error logs, tokens in any
# log, and stray processes.
sub look_back
{
    my ($self) = @_;
    my @found;
    my %excused;
    for my $core (glob "$logs/cores/*") {
        my $pid = $self->mpm_race($core);
        $pid ? $excused{$pid} = 1 : push @found, "core file: $core";
    }
    for my $path (glob "$logs/error_log $logs/*/*/*/server-*/error_log") {
        open my $in, '<', $path or next;
        while (<$in>) {
            chomp;
            next if !/$BAD_LINE/ || (/ child pid (\d+) exit signal Segmentation / && $excused{$1});
            push @found, "$path:$.: $_";
        }
    }
    push @found, tokens();
    my @stray = processes();
    for (my $until = time + 5; @stray && time < $until; @stray = processes()) {
        sleep 0.05;
    }
    push @found, "still running: $_" for @stray;

    return 0 if !@found;
    error 'the servers left this behind:';
    print STDERR "    $_\n" for @found;
    return 1;
}

# The lines of logs of httpd, PostgreSQL and Postfix that hold a token or the secret, by their
# places. What Postfix and a server print as they start is a log, too; what a suite prints isn't.
sub tokens
{
    my $secret = read_file("$logs/secret");
    my @found;
    for my $path (grep { -f } map { glob "$_/{*log,costs,hits,ends,output}" } $logs, "$logs/pg",
        glob "$logs/*/*/*/server-* $logs/*/*/*/server-*/* $logs/*/*/*/server-run/data/logs")
    {
        open my $in, '<', $path or push(@found, "$path: $!"), next;
        while (<$in>) {
            s/%([[:xdigit:]]{2})/chr hex $1/ge;
            my $kind = index($_, $secret) >= 0 ? 'secret' : /$TOKEN/
                ? $KINDS{ $1 // '' } // 'API key' : next;
            push @found, "$path:$.: $kind";
        }
    }
    return @found;
}

# Returns the pid of a process that crashed by a race in httpd 2.4's event MPM, which also happens
# without our module, about once in sixty stops with clients that leave: when a child ends, its main
# thread closes the sockets of its busy workers (close_worker_sockets) while a worker whose client
# has just left frees the same socket. The stack of such a core goes from main to the socket through
# httpd's own frames alone. httpd's handler sends itself the signal again, which another thread may
# get: then the stack is that of the thread in which the handler was called.
sub mpm_race
{
    my ($self, $core) = @_;
    my $output = qx(gdb -batch -ex 'info inferiors' -ex bt -ex 'thread apply all bt' \\
        '$self->{httpd}' '$core' 2>/dev/null);
    my ($pid) = $output =~ /\bprocess (\d+)\b/;
    my ($stopped, @threads) = split /^Thread .*$/m, $output;
    # gdb shows the innermost frame twice.
    my (undef, @frames) = $stopped =~ /^[#]\d+ +(.*)$/mg;
    for my $thread (@threads) {
        @frames = $1 =~ /^[#]\d+ +(.*)$/mg if $thread =~ /<signal handler called>\n(.*)/s;
    }
    my ($top, @rest) = @frames;
    my @others = grep { !m{/mod_mpm_event\.so$|\bap_run_mpm \(|\bmain \(} } @rest;
    return @rest && !@others && $top =~ /\bapr_os_sock_get \(/
        ? $pid : undef;
}

# The running servers of the suites, each process as "pid command line".
sub processes
{
    my @found;
    for my $path (glob '/proc/[0-9]*/cmdline') {
        my $line = read_file($path) =~ tr/\0/ /r;
        my ($pid) = $path =~ /(\d+)/;
        push @found, "$pid $line"
            if $line =~ m{ \Q$top/t/\E\S*/httpd\.conf\b} && $line !~ /^\S*perl/;
    }
    return @found;
}

sub write_file
{
    my ($path, @text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out @text;
    close $out or die "$path: $!\n";
    return;
}

sub read_file
{
    my ($path) = @_;
    open my $in, '<', $path or return '';
    local $/;
    return scalar <$in> // '';
}

# Neither httpd, PostgreSQL nor an object store keeps running, however this run ends.
$SIG{TERM} = $SIG{HUP} = sub { exit 143 };
END {
    if ($$ == $pid) {
        local ($?, $@);
        for (processes()) {
            my ($server) = /^(\d+)/;
            kill TERM => $server;
        }
        system('tools/postgres', 'stop', s{/data/postmaster\.pid\z}{}r, 'immediate')
            for glob "$logs/pg/data/postmaster.pid $logs/*/*/*/server-*/pg/data/postmaster.pid";
        system(MDL::Swift::program(), 'stop', "$logs/objects") if -e "$logs/objects/pids";
    }
}

1;
