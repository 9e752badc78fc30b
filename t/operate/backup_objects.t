# A backup of a service whose files are in an object store has their list, and the store has to keep
# the objects. The restored database finds them there.
#
# both: each list is read from a snapshot in its own way
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Backup;
use MDL::Customer;
use MDL::Instance;
use MDL::ObjectProxy;
use MDL::Swift;
use MDL::Test;
use Test::More;

my $proxy  = MDL::ObjectProxy->new(MDL::Swift->new);
my $server = MDL::Instance->new(extra => <<"END")->start;
DownloadsPollInterval 1
DownloadsObjectStore ${\ $proxy->url}
DownloadsObjectKeyFile ${\ $proxy->key_file}
END
my $folder = backup_folder($server);
my $shop   = new_shop();
my @files  = map { new_file($shop, 10_000 + $_) } 1 .. 3;
my @orders = map { buy($shop, $files[ $_ % 3 ], limit => 0) } 1 .. 5;
my %object = map { $_->[0] => $_->[1] } sql('SELECT sha256, object FROM blob');

my ($code, $made, $text) = ctl('backup', $folder);
is $code, 0, 'a backup is made' or diag $text;
is_deeply [ @$made{qw(files objects)} ], [ 0, 3 ], 'it has no bytes of objects';
my %listed = map { /^(\w+) \d+ (\S+)$/ ? ($1 => $2) : () } split /\n/,
    MDL::Test::slurp("$made->{backup}/files");
is_deeply \%listed, \%object, 'but lists what the store has to keep';

destroy($server);
($code, my $restored, $text) = ctl('restore', $folder);
is $code, 0, 'it is restored' or diag $text;
is_deeply [ @$restored{qw(files faulty)} ], [ 3, 0 ], 'every object was read';
$server->start;
is_deeply [ map { sha256_hex(page('GET', link_of($_))->{body}) } @orders ],
    [ map { $_->{file}{sha256} } @orders ], 'every order has its file';

subtest 'without a folder' => sub {
    $server->stop;
    $server->configure(without => qr/^DownloadsStorage /);
    $server->start;
    my ($status, $json) = ctl('backup', $folder);
    is $status, 0, 'a backup is made' or diag explain $json;
    my @refused = ctl('restore', $folder);
    is $refused[0], 5, 'a database that is there is not restored over' or diag explain \@refused;
    destroy($server);
    ($status, $json) = ctl('restore', $folder);
    is_deeply [ $status, $json->{files} ], [ 0, 3 ], 'it is restored' or diag explain $json;
    $server->start;
    is sha256_hex(page('GET', link_of($orders[0]))->{body}), $orders[0]{file}{sha256},
        'and serves its files';
};

sql("UPDATE blob SET object = object || 'x' WHERE sha256 = '$files[0]{sha256}'");
($code, $made) = ctl('backup', $folder);
is $code, 0, 'whether the store has the objects is not asked for a backup';
destroy($server);
($code, $restored) = ctl('restore', $folder);
is_deeply [ $code, map { @$_{qw(sha256 fault)} } @{ $restored->{faults} } ],
    [ 6, $files[0]{sha256}, 'missing' ], 'a restoration says which are missing'
    or diag explain $restored;

done_testing();
