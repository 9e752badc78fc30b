# Direct access to the database of the current server (MDL::Target).
package MDL::Database;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Open2 qw(open2);

use MDL::Target qw(:DEFAULT vars top_dir);

our @EXPORT = qw(sql stop_database start_database take_database give_database lock_rows lock_tables unlock);

# PostgreSQL's own psql: Debian's is a script around it that takes ten times as long.
my $psql;

sub psql
{
    $psql //= (grep { -x } map { chomp; "$_/psql" } qx(pg_config --bindir))[0] // 'psql';
    return $psql;
}

# Executes SQL; returns rows of columns as text.  Suites use it for checks, and for states that no
# request can cause.
sub sql
{
    my ($query) = @_;
    my $params = vars()->{db_params};
    my @command
        = database() eq 'pgsql'
        ? (psql(), $params, '-qAtX', '-F', "\t", '-c', $query)
        : ('sqlite3', '-batch', '-separator', "\t", '-cmd', '.timeout 5000', $params, $query);
    open my $out, '-|', @command or die "$command[0]: $!";
    my @rows = map { chomp; [ split /\t/, $_, -1 ] } <$out>;
    close $out or die "$command[0] failed on: $query\n";
    return @rows;
}

# Locks rows, or tables against readers too, until unlock() is called with what this returns.  SQLite has but one
# lock, against all writers.
sub lock_rows { my ($rows) = @_; return hold_lock("SELECT 1 FROM $rows FOR UPDATE") }
sub lock_tables { my (@tables) = @_; return hold_lock('LOCK TABLE ' . join ', ', @tables) }

sub hold_lock
{
    my ($statement) = @_;
    my $sqlite  = database() eq 'sqlite3';
    my @command = $sqlite ? ('sqlite3', '-batch', '-cmd', '.timeout 30000') : (psql(), '-qAtX');
    my $pid = open2(my $out, my $in, @command, vars()->{db_params});
    print $in $sqlite ? "BEGIN IMMEDIATE;\n" : "BEGIN;\nSET LOCAL lock_timeout = '60s';\n$statement;\n", "SELECT 'locked';\n";
    while (my $line = <$out>) {
        return { pid => $pid, in => $in } if $line eq "locked\n";
    }
    die "psql failed on: $statement\n";
}

sub unlock { my ($lock) = @_; close $lock->{in}; waitpid $lock->{pid}, 0; return }

# Takes the database away from a process, and gives it back: a PostgreSQL takes no connection to it, on SQLite
# each write of the process fails as on a broken disk.
sub take_database { my ($pid) = @_; return hold_database($pid, 1) }
sub give_database { my ($pid) = @_; return hold_database($pid, 0) }

sub hold_database
{
    my ($pid, $held) = @_;
    if (database() eq 'sqlite3') {
        return system('prlimit', "--pid=$pid", '--fsize=' . ($held ? '0:' : 'unlimited:')) == 0 || die "prlimit failed\n";
    }
    my $params = vars()->{db_params};
    my ($name) = $params =~ /dbname=(\S+)/;
    my @commands = ("ALTER DATABASE $name ALLOW_CONNECTIONS " . ($held ? 'false' : 'true'));
    push @commands, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '$name'" if $held;
    return system(psql(), $params =~ s/dbname=\S+/dbname=template1/r, '-qAtX', '-o', '/dev/null', map { ('-c', $_) } @commands) == 0
        || die "psql failed\n";
}

# Controls the server's own PostgreSQL cluster (option cluster of MDL::Instance).
sub postgres
{
    my ($command, @more) = @_;
    my $cluster = vars()->{cluster} // die "this server has no PostgreSQL of its own\n";
    system(top_dir() . '/tools/postgres', $command, $cluster, @more) == 0
        or die "tools/postgres $command failed\n";
    return;
}

sub stop_database  { return postgres('stop', 'immediate') }
sub start_database { return postgres('start') }

1;
