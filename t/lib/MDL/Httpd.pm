# The processes of the current server (MDL::Target): signals, restarts, pids.
package MDL::Httpd;

use strict;
use warnings;

use Exporter qw(import);
use HTTP::Tiny;

use MDL::Database;
use MDL::Target qw(:DEFAULT slurp vars);

our @EXPORT = qw(httpd_pid httpd_signal httpd_graceful httpd_restart server_pids worker_pids
    wait_heartbeat pause_process);

sub httpd_pid
{
    my $pid = slurp(vars()->{t_pid_file}) // return;
    return $pid =~ /(\d+)/ ? $1 : undef;
}

sub httpd_signal
{
    my ($signal) = @_;
    kill $signal => httpd_pid() or die "httpd is not running\n";
    return;
}

sub health { return HTTP::Tiny->new(timeout => 30)->get(base_url() . '/health')->{status} }

# The children that served before a restart: while they end they have no listening socket any more.
my %former;

# Signals httpd, does something meanwhile, and waits until it has read its configuration again and
# answers.
sub restart_by
{
    my ($signal, $what, $meanwhile) = @_;
    my $offset = error_log_size();
    $former{ begun($_) } = 1 for server_pids();
    httpd_signal($signal);
    $meanwhile->() if $meanwhile;
    wait_for(sub { error_log_since($offset) =~ /resuming normal operations/ }, 30, $what);
    wait_for(sub { health() == 200 }, 30, "/health after $what");
    return;
}

# Behind it no child serves that has read the configuration before: each has closed its listening
# socket, but one of prefork whose request goes on, which takes no other.
sub httpd_graceful
{
    my %before = map { $_ => 1 } server_pids();
    restart_by('USR1', 'a graceful restart');
    wait_for(sub { !grep { $before{$_} } server_pids() }, 60, 'the children of before to leave')
        if (slurp(logs_dir() . '/httpd.conf') // '') !~ /mpm_prefork/;
    return;
}
sub httpd_restart  { return restart_by('HUP',  'a restart') }

# What a process has to itself, unlike its pid.
sub begun
{
    my ($pid) = @_;
    my ($fields) = (slurp("/proc/$pid/stat") // '') =~ /\) (.*)/s;
    return join ' ', $pid, (split ' ', $fields // '')[19] // '';    # its start
}

# The pids of httpd's children, as ([ those that serve requests ], [ background processes ]).  A
# background process is a child that has not had the listening socket.
sub children
{
    my $parent = httpd_pid() // return ([], []);
    my $port   = sprintf ':%04X', port();
    my %listening;
    for my $table ('/proc/net/tcp', '/proc/net/tcp6') {
        for (split /\n/, slurp($table) // '') {
            my (undef, $local, undef, $state, @more) = split;
            $listening{"socket:[$more[5]]"} = 1
                if defined $state && $state eq '0A' && $local =~ /$port$/;
        }
    }
    my (@servers, @workers);
    for my $path (glob '/proc/[0-9]*') {
        my $stat = slurp("$path/stat") // next;
        my ($pid, $state, $ppid) = $stat =~ /^(\d+) \(.*\) (\S) (\d+)/s or next;
        next if $ppid != $parent || $state eq 'Z';
        my @open = glob "$path/fd/*" or next;    # it ends
        if (grep { $listening{ readlink($_) // '' } } @open) {
            push @servers, $pid;
        }
        elsif (!$former{ begun($pid) }) {
            push @workers, $pid;
        }
    }
    return (\@servers, \@workers);
}

sub server_pids { my ($servers) = children(); return @$servers }
sub worker_pids { my (undef, $workers) = children(); return @$workers }

# Waits until the background process has written its heartbeat down.
sub wait_heartbeat
{
    return wait_for(sub {
        my @pids = worker_pids() or return;
        return (sql('SELECT count(*) FROM node WHERE pid IN (' . join(', ', @pids) . ')'))[0][0];
    }, 60, 'a heartbeat');
}

# Whether a process may hold a lock of the database: on SQLite its own of the file for writers; on
# PostgreSQL anybody's transaction counts, but for a suite's.
sub holds_lock
{
    my ($pid) = @_;
    if (database() eq 'sqlite3') {
        my $inode = (stat vars()->{db_params} . '-writer')[1] // return 0;
        return (slurp('/proc/locks') // '') =~ /FLOCK\s.*\s$pid\s+\w+:\w+:$inode\s/;
    }
    return (sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        . " AND backend_type = 'client backend' AND state <> 'idle' "
        . "AND application_name <> 'psql'"))[0][0];
}

# Stops a process by SIGSTOP, at a moment at which no one else waits for its transaction.
sub pause_process
{
    my ($pid) = @_;
    return wait_for(sub {
        kill STOP => $pid;
        wait_for(sub {
            !grep { (slurp("$_/stat") // ') T') !~ /\) [TZ]/ } glob "/proc/$pid/task/*";
        }, 10, "$pid to stop");
        return 1 if !holds_lock($pid);
        kill CONT => $pid;
        return 0;
    }, 30, "a moment at which $pid has no transaction");
}

1;
