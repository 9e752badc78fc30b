# Direct access to the database of the current server (MDL::Target).
package MDL::Database;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Open2 qw(open2);

use MDL::Target qw(:DEFAULT vars top_dir);

our @EXPORT = qw(sql stop_database start_database take_database give_database lock_rows lock_tables
    unlock);

# PostgreSQL's own psql: Debian's is a script around it that takes ten times as long.
my $psql;

sub psql
{
    $psql //= (grep { -x } map { chomp; "$_/psql" } qx(pg_config --bindir))[0] // 'psql';
    return $psql;
}

# These parameters of libpq, or the current server's, for a psql of the suite, which waits longer
# than the service does: its machine may be busy.
sub patient
{
    my ($params) = @_;
    $params //= vars()->{db_params};
    return $params =~ s/\b(connect_timeout=)\d+/${1}60/r
        =~ s/\b(\w+(?<!connect)_timeout=)\d+/${1}300000/gr;
}

# Executes SQL; returns rows of columns as text.  Suites use it for checks, and for states that no
# request can cause.
sub sql
{
    my ($query) = @_;
    my @lines = database() eq 'pgsql' ? ask_psql($query) : ask_sqlite($query);
    return map { [ split /\t/, $_, -1 ] } @lines;
}

sub ask_sqlite
{
    my ($query) = @_;
    my @command = ('sqlite3', '-batch', '-separator', "\t", '-cmd', '.timeout 60000');
    open my $out, '-|', @command, vars()->{db_params}, $query
        or die "sqlite3: $!";
    chomp(my @lines = <$out>);
    close $out or die "sqlite3 failed on: $query\n";
    return @lines;
}

# The psql of each process and database: to start one takes PostgreSQL and psql 12 ms.  One whose
# connection was cut has executed nothing, so the next is asked.
my %psql;

sub ask_psql
{
    my ($query) = @_;
    my $params = patient();
    my $key    = "$$ $params";
    for my $known ($psql{$key} // (), undef) {
        my $psql = $known // ($psql{$key} = start_psql($params));
        local $SIG{PIPE} = 'IGNORE';
        print { $psql->{in} } "$query\n;\n\\echo answered\n";
        my @lines;
        while (my $line = readline $psql->{out}) {
            return @lines if $line eq "answered\n";
            chomp $line;
            push @lines, $line;
        }
        delete $psql{$key};
        last if end_psql($psql) != 2 || !$known;    # 2 is psql's word for a lost connection
    }
    die "psql failed on: $query\n";
}

sub start_psql
{
    my ($params) = @_;
    my $pid = open2(my $out, my $in, psql(), $params, qw(-qAtX -v ON_ERROR_STOP=1 -F), "\t");
    return { owner => $$, pid => $pid, in => $in, out => $out };
}

sub end_psql
{
    my ($psql) = @_;
    local $?;
    close $psql->{in};
    waitpid $psql->{pid}, 0;
    return $? >> 8;
}

# Other processes of the suite may hold its other end.
END {
    for my $psql (grep { $_->{owner} == $$ } values %psql) {
        kill TERM => $psql->{pid};
        end_psql($psql);
    }
}

# Locks rows, or tables against readers too, until unlock() is called with what this returns. SQLite
# has but one lock, against all writers.
sub lock_rows { my ($rows) = @_; return hold_lock("SELECT 1 FROM $rows FOR UPDATE") }
sub lock_tables { my (@tables) = @_; return hold_lock('LOCK TABLE ' . join ', ', @tables) }

sub hold_lock
{
    my ($statement) = @_;
    my $sqlite  = database() eq 'sqlite3';
    my @command = $sqlite ? ('sqlite3', '-batch', '-cmd', '.timeout 60000') : (psql(), '-qAtX');
    my $pid = open2(my $out, my $in, @command, $sqlite ? vars()->{db_params} : patient());
    print $in $sqlite ? "BEGIN IMMEDIATE;\n"
        : "BEGIN;\nSET LOCAL lock_timeout = '60s';\n"
        . "SET LOCAL idle_in_transaction_session_timeout = 0;\n$statement;\n", "SELECT 'locked';\n";
    while (my $line = <$out>) {
        return { pid => $pid, in => $in } if $line eq "locked\n";
    }
    die "psql failed on: $statement\n";
}

sub unlock { my ($lock) = @_; close $lock->{in}; waitpid $lock->{pid}, 0; return }

# Takes the database away from a process, and gives it back: a PostgreSQL takes no connection to it,
# on SQLite each write of the process fails as on a broken disk.
sub take_database { my ($pid) = @_; return hold_database($pid, 1) }
sub give_database { my ($pid) = @_; return hold_database($pid, 0) }

sub hold_database
{
    my ($pid, $held) = @_;
    if (database() eq 'sqlite3') {
        return system('prlimit', "--pid=$pid", '--fsize=' . ($held ? '0:' : 'unlimited:')) == 0
            || die "prlimit failed\n";
    }
    my $params = patient();
    my ($name) = $params =~ /dbname=(\S+)/;
    my @commands = ("ALTER DATABASE $name ALLOW_CONNECTIONS " . ($held ? 'false' : 'true'));
    push @commands, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '$name'"
        if $held;
    return system(psql(), $params =~ s/dbname=\S+/dbname=template1/r, '-qAtX', '-o', '/dev/null',
        map { ('-c', $_) } @commands) == 0
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
