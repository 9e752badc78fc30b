# Alerts of what only some services have: an object store, and settings that let no file in.
#
# once: the database has no part in it
use strict;
use warnings;

use Test::More;

use MDL::Alerts;
use MDL::ObjectProxy;
use MDL::Swift;
use MDL::Test;

my $proxy  = MDL::ObjectProxy->new(MDL::Swift->new);
my $server = alerting(<<"END", without => qr/^Downloads(?:IngestAllowHost|UploadURL)/);
DownloadsObjectStore ${\ $proxy->url}
DownloadsObjectKeyFile ${\ $proxy->key_file}
END
$server->start;

subtest 'settings that let no file in' => sub {
    wait_told($server, 'imports failed');
    like((told($server, 'imports'))[0], qr/No file can get in: DownloadsIngestAllowHost names no/,
        'are told');
    round_over($server);
    $server->configure(without => undef);
    httpd_graceful();
    wait_told($server, 'imports well');
    is_deeply [ told($server) ], [ 'imports failed', 'imports well' ], 'each once';
};

subtest 'an object store that refuses requests' => sub {
    forget_told($server);
    $proxy->rule(any => { status => 403, code => 'AccessDenied' });
    wait_told($server, 'objects failed');
    like((told($server, 'objects'))[0], qr/ answered 403 AccessDenied: the policy of the key must/,
        'is told with what it says');
    $proxy->heal;
    wait_told($server, 'objects well');
    is_deeply [ told($server) ], [ 'objects failed', 'objects well' ], 'each once';
};

$server->stop;
done_testing();
