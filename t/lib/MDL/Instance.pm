# A suite's own httpd with its own database, ports and folders.  Its configuration comes from the
# templates in t/conf, as that of this run's Apache::Test server does.
#
#   my $server = MDL::Instance->new(extra => "DownloadsLeaseTime 3\n");
#   $server->start;     # from here on api(), new_shop(), wait_job() … use this server
#
# Options:
#   extra    lines to add after t/conf/extra.conf.in; the last line of a directive counts
#   without  a pattern of lines in that file to leave out
#   mpm      event, worker or prefork; by default that of the run
#   level    2 or 3: the module and downloadsctl are a later release's (t/operate/levels); also of
#            configure()
#   single   1: one child of few threads, so that its memory is that of what it does, and each
#            thread soon has some
#   cluster  1: on PostgreSQL, a cluster of its own, which the suite may stop
#   empty    1: a database without the schema, as those on SQLite and of a cluster are anyway
#   clock    1: a wall clock of its own, also for the cluster's PostgreSQL; see step_clock. Not with
#            the sanitizers
#   modules  [ names ] of further httpd modules to load
#   preload  a library for httpd's LD_PRELOAD
#   tls      1: listens for TLS too, on tls_port(), and speaks HTTP/2 on both ports
# With MDL_STORAGE=objects in the environment its files are in a bucket of their own (MDL::Swift),
# unless extra names one. It stops with the test at the latest.
package MDL::Instance;

use strict;
use warnings;

use File::Path qw(make_path);
use HTTP::Tiny;
use POSIX ();
use Time::HiRes qw(sleep time);

use MDL::Database ();
use MDL::Ports;
use MDL::Target qw(slurp suite_dir top_dir wait_for);

my $TLS = <<'END';
Listen 127.0.0.1:@tls_port@ https
Protocols h2 h2c http/1.1
<VirtualHost *:@tls_port@>
    ServerName @ServerName@
    SSLEngine On
    SSLCertificateFile "@t_logs@/tls.crt"
    SSLCertificateKeyFile "@t_logs@/tls.key"
</VirtualHost>
END

my $SINGLE = <<'END';
ServerLimit 1
StartServers 1
ThreadsPerChild 4
MinSpareThreads 1
MaxSpareThreads 4
MaxRequestWorkers 4
DBDKeep 1
END

my $count = 0;
my @instances;

sub new
{
    my ($class, %opt) = @_;
    my $logs = suite_dir() . '/server-' . ++$count;
    my $self = bless {
        %opt,
        name   => join('_', $logs =~ m{/logs/(.*)/server-(\d+)\z}) =~ tr{/-}{__}r,
        folder => $logs,
        owner  => $$,
        vars   => {
            port       => free_port(),
            tls_port   => free_port(),
            top_dir    => top_dir(),
            t_dir      => top_dir() . '/t',
            t_logs     => $logs,
            t_pid_file => "$logs/httpd.pid",
            conf_file  => "$logs/extra.conf",
            db_driver  => $ENV{DB},
        },
    }, $class;
    make_path(map { "$logs/$_" } qw(storage source mail mail/new mail/cur mail/tmp));
    $self->step_clock(0) if $self->{clock};
    $self->make_database;
    $self->make_certificate if $self->{tls};
    $self->{objects} = object_store()
        if ($ENV{MDL_STORAGE} // '') eq 'objects' && ($opt{extra} // '') !~ /DownloadsObjectStore/;
    write_file("$logs/secret", 'a secret of the suites that is long enough for everybody');
    chmod 0600, "$logs/secret";
    $self->configure;
    push @instances, $self;
    return $self;
}

sub object_store
{
    require MDL::Objects;
    require MDL::Swift;
    return MDL::Objects::object_store(MDL::Swift->new);
}

sub make_database
{
    my ($self) = @_;
    my $vars = $self->{vars};
    if ($vars->{db_driver} eq 'sqlite3') {
        $vars->{db_params} = "$self->{folder}/downloads.db";
    }
    elsif ($self->{cluster}) {
        $vars->{cluster} = "$self->{folder}/pg";
        my $postgres = top_dir() . '/tools/postgres';
        $self->start_cluster($postgres);
        chomp($vars->{db_params} = qx("$postgres" params "$vars->{cluster}"));
    }
    else {
        system(MDL::Database::psql(), MDL::Database::patient($ENV{MDL_TEST_PGSQL}), '-qX', '-c',
            "CREATE DATABASE $self->{name}"
                . ($self->{empty} ? '' : ' TEMPLATE template_downloads')) == 0
            or die "the database $self->{name} can't be created\n";
        # Nobody stops this cluster, but it may be slow to begin a connection.
        $vars->{db_params} = $ENV{MDL_TEST_PGSQL} =~ s/dbname=\S+/dbname=$self->{name}/r
            =~ s/\b(connect_timeout=)\d+/${1}30/r;
    }
    return;
}

# With a clock of its own the shell that starts PostgreSQL leaves libfaketime's two files in
# /dev/shm.
sub start_cluster
{
    my ($self, $postgres) = @_;
    my $cluster = $self->{vars}{cluster};
    my %clock   = $self->{clock} ? clock_environment($self->{folder}) : ();
    local @ENV{ keys %clock } = values %clock;
    system($postgres, 'start', $cluster) == 0 or die "PostgreSQL does not start\n";
    if ($self->{clock}) {
        my ($pid) = slurp("$cluster/data/postmaster.pid") =~ /^(\d+)/;
        $self->{clock_files} = [ slurp("/proc/$pid/maps") =~ m{(/dev/shm/\S*faketime_\w+)}g ];
    }
    return;
}

sub make_certificate
{
    my ($self) = @_;
    system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 2"
            . " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
            . " -keyout '$self->{folder}/tls.key' -out '$self->{folder}/tls.crt' 2>/dev/null") == 0
        or die "openssl failed to make a certificate\n";
    return;
}

# Writes the configuration; options given here replace those of new().
sub configure
{
    my ($self, %opt) = @_;
    $self->{$_} = $opt{$_} for keys %opt;
    my $vars = $self->{vars};
    my $conf = "$vars->{t_dir}/conf";
    $vars->{build} = $ENV{BUILD} . ($self->{level} ? "/level$self->{level}" : '');

    my $extra = $self->fill(slurp("$conf/extra.conf.in"));
    $extra = join "\n", grep { $_ !~ $self->{without} } split /\n/, $extra if $self->{without};
    write_file($vars->{conf_file},
        join '', "$extra\n", $self->{objects} // '', $self->{single} ? $SINGLE : '',
        $self->fill($self->{extra} // ''));

    my $modules = slurp("$conf/modules.list");
    my $mpm     = $self->{mpm} // $ENV{MPM};
    $modules =~ s{"[^"]*(?=/mod_downloads\.so")}{"$vars->{build}};
    $modules =~ s/(?<=mpm_)\w+(?=_module |\.so")/$mpm/g;
    my ($folder) = $modules =~ m{"(.*)/mod_dbd\.so"};
    for my $module (@{ $self->{modules} // [] }, $self->{tls} ? qw(ssl http2) : ()) {
        $modules .= qq(LoadModule ${module}_module "$folder/mod_$module.so"\n);
    }
    write_file("$self->{folder}/httpd.conf",
        "ServerName localhost\n$modules"
            . qq(TypesConfig "$conf/mime.types"\n)
            . $self->fill(slurp("$conf/httpd.conf.in") . ($self->{tls} ? $TLS : ''))
            . qq(Include "$vars->{conf_file}"\n));
    return;
}

sub fill
{
    my ($self, $text) = @_;
    my $vars   = $self->{vars};
    my %values = (
        %$vars,
        Port         => $vars->{port},
        ServerName   => 'localhost',
        ServerAdmin  => 'suites@example.com',
        ServerRoot   => $vars->{t_dir},
        DocumentRoot => "$self->{folder}/source",
    );
    $text =~ s/\@(\w+)\@/$values{$1} \/\/ die "no value for \@$1\@\n"/eg;
    return $text;
}

sub write_file
{
    my ($path, $text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

# Sets the wall clock of a server with clock => 1, to so many seconds ahead of the true time.
sub step_clock
{
    my ($self, $seconds) = @_;
    write_file("$self->{folder}/clock.new", sprintf "%+d\n", $seconds);
    rename "$self->{folder}/clock.new", "$self->{folder}/clock" or die "clock: $!\n";
    return;
}

# Gives a process the wall clock of this folder.
sub clock_environment
{
    my ($folder) = @_;
    my ($library) = glob '/usr/lib/*/faketime/libfaketimeMT.so.1';
    return (
        LD_PRELOAD => $library // die("libfaketime is missing: tools/dependencies test\n"),
        FAKETIME_TIMESTAMP_FILE => "$folder/clock",
        FAKETIME_NO_CACHE       => 1,
        DONT_FAKE_MONOTONIC     => 1,
        NO_FAKE_STAT            => 1,
    );
}

# Runs httpd with this configuration; returns (exit code, output).
sub httpd
{
    my ($self, @arguments) = @_;
    my %clock = $self->{clock} ? clock_environment($self->{folder}) : ();
    local @ENV{ keys %clock } = values %clock;
    local $ENV{LD_PRELOAD}   = join ' ', grep { $_ } $clock{LD_PRELOAD} // $ENV{SANITIZER_RUNTIME},
        $self->{preload};
    local $ENV{ASAN_OPTIONS} = 'detect_leaks=0:abort_on_error=1';
    # Into a file: a pipe would stay open for as long as the server lives.
    my $output = "$self->{folder}/output";
    my $pid  = fork // die "fork: $!";
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  $output;
        open STDERR, '>&', \*STDOUT;
        exec($ENV{HTTPD}, '-f', "$self->{folder}/httpd.conf", @arguments) or POSIX::_exit(127);
    }
    waitpid $pid, 0;
    return ($? >> 8, slurp($output));
}

# Makes this the current server, which the helpers of MDL::Test use.
sub aim
{
    my ($self) = @_;
    MDL::Target::aim($self->{vars});
    return $self;
}

# Starts httpd and waits until /health answers 200; any => 1 accepts any status.
sub start
{
    my ($self, %opt) = @_;
    $self->aim;
    my ($code, $output) = $self->httpd('-k', 'start');
    die "httpd does not start: $output" . $self->tail if $code != 0;
    my $health = MDL::Target::base_url() . '/health';
    eval {
        wait_for(
            sub {
                my $status = HTTP::Tiny->new(timeout => 60)->get($health)->{status};
                return $opt{any} ? $status != 599 : $status == 200;
            },
            120, "/health of $self->{name}"
        );
        1;
    } or die $@ . $self->tail;
    return $self;
}

# The parent's pid, or nothing if it is not running.
sub pid
{
    my ($self) = @_;
    my ($pid) = (slurp($self->{vars}{t_pid_file}) // '') =~ /(\d+)/ or return;
    return (grep { $_ == $pid } $self->processes) ? $pid : undef;
}

# The pids of all its processes, even if their parent has ended.
sub processes
{
    my ($self) = @_;
    my @found;
    for my $path (glob '/proc/[0-9]*') {
        my $line = slurp("$path/cmdline") // next;
        push @found, $path =~ /(\d+)/ if index($line, "$self->{folder}/httpd.conf") >= 0;
    }
    return @found;
}

# Whether these processes have ended completely. An ending process loses its command line before its
# sockets, so processes() is not enough.
sub are_gone
{
    return !grep { (slurp("/proc/$_/stat") // ') Z') !~ /\) [ZX]/ } @_;
}

# Stops httpd as httpd -k stop does; returns the seconds until its last process has ended.
sub stop
{
    my ($self) = @_;
    my $began = time;
    my $pid   = $self->pid // return 0;
    my @seen = $self->processes;
    kill TERM => $pid;
    wait_for(sub { !$self->processes && are_gone(@seen) }, 60, "the end of $self->{name}");
    return time - $began;
}

# Kills all its processes by SIGKILL.
sub kill_all
{
    my ($self) = @_;
    my %seen;
    for (my $until = time + 60; time < $until;) {
        my @left = $self->processes;
        last if !@left && are_gone(keys %seen);
        @seen{@left} = ();
        kill KILL => @left;
        sleep 0.02;
    }
    # httpd takes a zombie parent for a running one.
    unlink $self->{vars}{t_pid_file};
    return;
}

sub tls_port { return shift->{vars}{tls_port} }

sub certificate { return shift->{folder} . '/tls.crt' }

sub error_log { return slurp(shift->{folder} . '/error_log') // '' }

sub tail
{
    my ($self) = @_;
    my @lines = split /\n/, $self->error_log;
    splice @lines, 0, @lines - 25 if @lines > 25;
    return join "\n", "The error log ends with:", @lines, '';
}

END {
    local $?;
    for my $instance (grep { $_->{owner} == $$ } @instances) {
        $instance->kill_all;
        my $cluster = $instance->{vars}{cluster} // next;
        system(top_dir() . '/tools/postgres', 'stop', $cluster, 'immediate');
        unlink @{ $instance->{clock_files} // [] };
    }
}

1;
