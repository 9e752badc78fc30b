# Direct access to the database of the current server (MDL::Target).
package MDL::Database;

use strict;
use warnings;

use Exporter qw(import);

use MDL::Target qw(:DEFAULT vars top_dir);

our @EXPORT = qw(sql stop_database start_database);

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
