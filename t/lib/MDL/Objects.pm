# Files whose bytes are in an object store.
#
#   my $store  = MDL::Swift->new;                   # or an MDL::ObjectProxy in front of one
#   my $server = MDL::Instance->new(extra => object_store($store))->start;
#   my $file   = into_object($store, new_file($shop, 1000));    # or a file of MDL::Zip::stock
#   $file->{object};                                # the object's key
package MDL::Objects;

use strict;
use warnings;

use Exporter qw(import);
use MDL::Test;

our @EXPORT = qw(object_store into_object blob_file lose_bytes find_bytes is_missing);

my $number = 0;

# The directives that name a store.
sub object_store
{
    my ($store) = @_;
    return join '', map { "$_\n" } 'DownloadsObjectStore ' . $store->url,
        'DownloadsObjectKeyFile "' . $store->key_file . '"',
        "DownloadsObjectRegion $store->{region}";
}

# The path of a blob in the storage folder.
sub blob_file
{
    my ($file) = @_;
    return storage_dir() . '/blobs/' . substr($file->{sha256}, 0, 1) . "/$file->{sha256}";
}

# Moves files from the folder into objects, unless they are there already, by another client of the
# store than the service's; returns the first.
sub into_object
{
    my ($store, @files) = @_;
    for my $file (@files) {
        my ($row) = sql("SELECT object FROM blob WHERE sha256 = '$file->{sha256}'");
        $file->{object} = $row->[0];
        next if $file->{object};
        $file->{object} = sprintf 'obj_%026d', 1e6 * $$ + ++$number;
        $store->put(($store->{prefix} eq '' ? '' : "$store->{prefix}/") . $file->{object},
            $file->{bytes});
        sql("UPDATE blob SET object = '$file->{object}' WHERE sha256 = '$file->{sha256}'");
        unlink blob_file($file) or die blob_file($file) . ": $!\n";
    }
    return $files[0];
}

# Takes a file's bytes from where they are, in the folder or in an object, whose loss has been
# noticed then; find_bytes brings them back.
my %lost;

sub lose_bytes
{
    my ($file) = @_;
    my $sha256 = $file->{sha256};
    my ($row)  = sql("SELECT object FROM blob WHERE sha256 = '$sha256'");
    $lost{$sha256} = $row->[0] // '';
    if ($lost{$sha256} eq '') {
        rename blob_file($file), blob_file($file) . '.away' or die blob_file($file) . ": $!\n";
        return;
    }
    my $absent = sprintf 'obj_%026d', ++$number;
    sql("UPDATE blob SET object = '$absent', missing_at = 1 WHERE sha256 = '$sha256'");
    return;
}

sub find_bytes
{
    my ($file) = @_;
    my $object = delete $lost{ $file->{sha256} };
    if ($object eq '') {
        rename blob_file($file) . '.away', blob_file($file) or die blob_file($file) . ": $!\n";
        return;
    }
    sql("UPDATE blob SET object = '$object', missing_at = NULL WHERE sha256 = '$file->{sha256}'");
    return;
}

# Whether the database knows that a file's object is gone.
sub is_missing
{
    my ($file) = @_;
    return (sql('SELECT CASE WHEN missing_at IS NULL THEN 0 ELSE 1 END FROM blob'
        . " WHERE sha256 = '$file->{sha256}'"))[0][0];
}

1;
