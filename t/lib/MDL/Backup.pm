# Loses a server's database and files, as its disk would, so that a backup can be restored.
#
#   my $folder = backup_folder($server);
#   my ($code, $json) = ctl('backup', $folder);
#   destroy($server);                    # httpd is stopped; database and storage are empty
#   ($code, $json) = ctl('restore', $folder);
package MDL::Backup;

use strict;
use warnings;

use Exporter qw(import);
use File::Path qw(remove_tree);
use MDL::Database ();
use MDL::Target qw(database);

our @EXPORT = qw(backup_folder destroy empty_storage empty_database);

sub backup_folder
{
    my ($server, $name) = @_;
    return "$server->{folder}/" . ($name // 'backups');
}

sub empty_storage
{
    my ($server) = @_;
    my $storage = "$server->{folder}/storage";
    remove_tree($storage);
    mkdir $storage or die "$storage: $!\n";
    return;
}

sub empty_database
{
    my ($server) = @_;
    my $params = $server->{vars}{db_params};
    if (database() eq 'sqlite3') {
        unlink glob "'$params*'";
        return;
    }
    my ($name) = $params =~ /dbname=(\S+)/;
    my $other = MDL::Database::patient($params =~ s/dbname=\S+/dbname=postgres/r);
    for my $command ("DROP DATABASE $name WITH (FORCE)",
        "CREATE DATABASE $name TEMPLATE template0") {
        system(MDL::Database::psql(), $other, '-qX', '-c', $command) == 0
            or die "$command has failed\n";
    }
    return;
}

sub destroy
{
    my ($server) = @_;
    $server->stop;
    empty_database($server);
    empty_storage($server);
    return;
}

1;
