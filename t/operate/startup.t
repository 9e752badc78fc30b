# How a server starts or refuses to: mistakes in its configuration, a missing database, a background
# process that can't start, and each MPM.
#
# both: each is missing in its own way
use strict;
use warnings;

use File::Path qw(make_path);
use IO::Socket::INET;

use MDL::Instance;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $source = MDL::Source->new;

sub import_succeeds
{
    my ($what) = @_;
    my $shop  = new_shop();
    my $url   = $source->offer('any', { size => 1000 });
    my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
    is $reply->{status}, 202, "an import is accepted $what" or diag $reply->{body};
    return if $reply->{status} != 202;
    return is wait_job($shop, $reply->{json}{job}{id}, 20)->{status}, 'succeeded', 'and succeeds';
}

# --- mistakes that httpd -t finds -----------------------------------------------------------------

my $tested = MDL::Instance->new;
my $folder = $tested->{folder};

sub file
{
    my ($name, $text, $mode) = @_;
    MDL::Instance::write_file("$folder/$name", $text);
    chmod $mode // 0600, "$folder/$name";
    return "$folder/$name";
}

subtest 'httpd -t accepts a good configuration and changes nothing' => sub {
    my @before = sort glob "$folder/*";
    my ($code, $output) = $tested->httpd('-t');
    is $code, 0, 'it succeeds' or diag $output;
    like $output, qr/^Syntax OK$/m, 'the output says that the syntax is right';
    unlike $output, qr/MDL/, 'the module prints nothing' or diag $output;
    is_deeply [ grep { !m{/(?:output|error_log|access_log)$} } sort glob "$folder/*" ],
        [ grep { !m{/(?:output|error_log|access_log)$} } @before ], 'no file was created';
};

make_path("$folder/few-templates");
for my $mistake (
    # lines added, a pattern of lines left out, the message
    [ 'DownloadsMigrate Perhaps', undef, qr/DownloadsMigrate must be On or Off, not "Perhaps"\./ ],
    [ 'DownloadsLeaseTime 1', undef,
        qr/DownloadsLeaseTime must be a whole number of seconds from 2 to 3600/ ],
    [ 'DownloadsIngestMaxSize many', undef, qr/DownloadsIngestMaxSize must be a number of bytes/ ],
    [ 'DownloadsStorage storage', undef, qr/DownloadsStorage must be an absolute path/ ],
    [ 'DownloadsPublicURL ftp://x/', undef,
        qr{DownloadsPublicURL must be an absolute URL .*https://downloads\.example\.com/d, not} ],
    [ 'DownloadsUploadURL /u', undef,
        qr{DownloadsUploadURL must be an absolute URL .*https://downloads\.example\.com/u, not} ],
    [ 'DownloadsIngestAllowHost http://x/', undef, qr/DownloadsIngestAllowHost .*x/ ],
    [ 'DownloadsIngestAllowNetwork 10.0.0.0/99', undef,
        qr/DownloadsIngestAllowNetwork .*10\.0\.0\.0/ ],
    [ 'DownloadsMailTransport pigeon:/x', undef, qr/DownloadsMailTransport .*smtp/ ],
    [ 'DownloadsMailFrom nobody', undef, qr/DownloadsMailFrom .*address/ ],
    [ 'DownloadsStoragee /x', undef, qr/Invalid command 'DownloadsStoragee'/ ],
    [ "<VirtualHost *:1>\nDownloadsWorker Off\n</VirtualHost>", undef,
        qr/DownloadsWorker .*VirtualHost/ ],
    [ '', qr/^DownloadsPublicURL/,     qr/DownloadsPublicURL is missing: / ],
    [ '', qr/^DownloadsSecretFile/,    qr/DownloadsSecretFile is missing: / ],
    [ '', qr/^DownloadsStorage/,       qr/DownloadsStorage is missing: / ],
    [ '', qr/^DownloadsTemplates/,     qr/DownloadsTemplates is missing: / ],
    [ '', qr/^DownloadsMailTransport/, qr/DownloadsMailTransport is missing: / ],
    [ '', qr/^DownloadsMailFrom/,      qr/DownloadsMailFrom is missing: / ],
    [ '', qr/^DBDriver/,               qr/DBDriver is missing: |DBDParams/ ],
    [ '', qr/^DBDParams/,              qr/DBDParams is missing: / ],
    [ 'DownloadsPollInterval 30', undef,
        qr/DownloadsPollInterval \(30 s\) must be less than DownloadsLeaseTime/ ],
    [ 'DownloadsIngestTimeout 5', undef, qr/must not be more than DownloadsIngestTimeout \(5 s\)/ ],
    [ "DownloadsSecretFile $folder/none", undef, qr/DownloadsSecretFile: .*none/ ],
    [ 'DownloadsSecretFile ' . file('open', 'x' x 48, 0644), undef,
        qr/DownloadsSecretFile: .*chmod 0?600/ ],
    [ 'DownloadsSecretFile ' . file('short', 'x' x 31), undef, qr/DownloadsSecretFile: .*32/ ],
    [ "DownloadsStorage $folder/none", undef,
        qr/DownloadsStorage: the folder \S+ can't be used: / ],
    [ "DownloadsStorage $folder/short", undef, qr/DownloadsStorage: \S+ is not a folder\./ ],
    [ "DownloadsTemplates $folder/none", undef,
        qr/DownloadsTemplates: the folder \S+ can't be used: / ],
    [ "DownloadsTemplates $folder/few-templates", undef, qr/DownloadsTemplates: .*email\.subject/ ],
    [ "DownloadsMailTransport sendmail:$folder/none", undef,
        qr/DownloadsMailTransport: there is no program / ],
    [ "DownloadsMailTransport smtp://localhost\nDownloadsMailCredentials " . file('open2', 'a:b',
        0644),
        undef, qr/DownloadsMailCredentials: .*0600/ ],
    [ 'DownloadsMailTLS required', undef,
        qr/DownloadsMailTLS .* of use only when DownloadsMailTransport is smtp/ ],
    [ 'DownloadsFraudWindow 59', undef,
        qr/DownloadsFraudWindow must be a whole number of seconds from 60 to 2592000/ ],
    [ 'DownloadsFraudIPOrders -1', undef,
        qr/DownloadsFraudIPOrders must be a whole number of orders/ ],
    [ "DownloadsFraudDisposableDomains $folder/none", undef,
        qr/DownloadsFraudDisposableDomains: there is no file \S+none\./ ],
    [ "DownloadsFraudBlockedDomains $folder/none", undef,
        qr/DownloadsFraudBlockedDomains: there is no file \S+none\./ ],
    [ 'DownloadsStorefrontCAFile ' . file('empty.pem', ''), undef,
        qr/DownloadsStorefrontCAFile: the file \S+empty\.pem must hold certificates in PEM form/ ],
    [ "DownloadsMailTransport smtp://localhost\nDownloadsMailCAFile "
            . file('words.pem', "no certificate\n"),
        undef, qr/DownloadsMailCAFile: the file \S+words\.pem must hold certificates in PEM form/ ],
    [ "<Location /x>\nSetHandler downloads-apo\n</Location>", undef,
        qr/there is no handler downloads-apo; / ],
) {
    my ($lines, $without, $wanted) = @$mistake;
    $tested->configure(extra => "$lines\n", without => $without);
    my ($code, $output) = $tested->httpd('-t');
    my $name = $lines || "without $without";
    ok $code != 0 && $output =~ $wanted, "httpd -t finds: $name"
        or diag "exit code $code, wanted $wanted, got: $output";
}

subtest 'httpd -t finds that mod_dbd is missing' => sub {
    $tested->configure(extra => '', without => qr/^DBD(?:river|Params|Max)/);
    my $path = "$folder/httpd.conf";
    my $conf = MDL::Test::slurp($path) =~ s/^LoadModule dbd_module.*\n//mr;
    MDL::Instance::write_file($path, $conf);
    my ($code, $output) = $tested->httpd('-t');
    isnt $code, 0, 'it fails';
    like $output, qr/mod_dbd is not loaded.*a2enmod/, 'and says what to do';
};

subtest 'several mistakes are reported at once' => sub {
    $tested->configure(extra => "DownloadsStorage $folder/none\nDownloadsTemplates $folder/none\n",
        without => undef);
    my (undef, $output) = $tested->httpd('-t');
    like $output, qr/DownloadsStorage: .*DownloadsTemplates: /s, 'the message has both';
};

subtest 'handlers without a Location are reported, and do not keep httpd from starting' => sub {
    $tested->configure(extra => '', without => qr/^\s*SetHandler /);
    my ($code, $output) = $tested->httpd('-t');
    is $code, 0, 'the configuration is accepted';
    like $output, qr/no "SetHandler $_"/, "there is no $_"
        for qw(downloads-api downloads-delivery downloads-upload);
};

# --- starts ---------------------------------------------------------------------------------------

# Starts a server that must refuse to run; returns its output and the error log.
sub refused
{
    my ($server) = @_;
    my (undef, $output) = $server->httpd('-k', 'start');
    wait_for(sub { !$server->processes }, 10, 'the end of a server that can\'t start');
    return $output . $server->error_log;
}

subtest 'a module that is loaded without any directive does nothing' => sub {
    my $server = MDL::Instance->new(without => qr/./, extra => '');
    $server->aim;
    my ($code, $output) = $server->httpd('-k', 'start');
    is $code, 0, 'httpd starts' or diag $output;
    wait_for(sub { page('GET', '/')->{status} != 599 }, 10, 'an answer');
    MDL::Instance::write_file("$server->{folder}/source/file.txt", 'hello');
    is page('GET', '/file.txt')->{body}, 'hello', 'and serves files';
    is api('GET', '/ping')->{status}, 404, 'there is no API';
    is_deeply [ worker_pids() ], [], 'and no background process';
    unlike $output . $server->error_log, qr/MDL/, 'the log does not mention the module';
    $server->stop;
};

subtest 'a secret that others may read is refused' => sub {
    my $server = MDL::Instance->new;
    chmod 0640, "$server->{folder}/secret";
    like refused($server), qr/DownloadsSecretFile: .*chmod 0?600/, 'the message says why';
};

subtest 'a file of domains that can\'t be read is refused' => sub {
    my $server = MDL::Instance->new;
    MDL::Instance::write_file("$server->{folder}/domains", "blocked.example\n");
    chmod 0, "$server->{folder}/domains";
    $server->configure(extra => "DownloadsFraudBlockedDomains $server->{folder}/domains\n");
    like refused($server), qr/DownloadsFraudBlockedDomains: the file \S+ can't be read: /,
        'the message says why';
};

subtest 'an empty database is refused unless DownloadsMigrate is On' => sub {
    my $server = MDL::Instance->new(empty => 1, extra => "DownloadsMigrate Off\n");
    like refused($server), qr/MDL0336: .*run "downloadsctl migrate", or set DownloadsMigrate On/,
        'the message says what to do';
    $server->aim;
    my ($code, undef, $text) = ctl('migrate');
    is $code, 0, 'downloadsctl migrate creates the schema' or diag $text;
    $server->start;
    import_succeeds('after that');
    $server->stop;
};

subtest 'a schema that is too new keeps a server from starting, but not from restarting' => sub {
    my $server = MDL::Instance->new(empty => 1)->start;
    like $server->error_log, qr/MDL0112/, 'with DownloadsMigrate On the server creates the schema';
    sql('INSERT INTO schema_migration (version, name, fingerprint, build, runs_with, applied_at) '
        . q{VALUES (9999, 'future', '', '9.9.9 (abc)', 9999, 0)});
    httpd_signal('USR1');
    wait_for(sub { $server->error_log =~ /MDL0337: .*install the release that made it/ }, 30,
        'the log to name the problem');
    wait_for(sub { api('GET', '/health')->{status} == 503 }, 30, 'requests to be refused');
    my $versions = 'version 9999, made by mod_downloads 9\.9\.9 \(abc\), for builds that know '
        . 'version 9999 or newer; this is \d+\.\S+.* knows version \d+';
    like $server->error_log, qr/MDL0337: .*\($versions\)/,
        'both versions, and which build made the schema';
    like $server->error_log, qr/MDL0140: mod_downloads \d+\.\d+\.\d+/, 'the start names the build';
    $server->stop;
    like refused($server), qr/MDL0337/, 'it does not start again';
};

subtest 'a schema of other migrations keeps a server from starting, '
    . 'but not from restarting' => sub {
    my $server = MDL::Instance->new(empty => 1)->start;
    my ($ours) = sql('SELECT fingerprint FROM schema_migration WHERE version = 1');
    sql(q{UPDATE schema_migration SET fingerprint = 'other' WHERE version = 1});
    httpd_graceful();
    is api('GET', '/health')->{status}, 200, 'the server still answers';
    like $server->error_log,
        qr/MDL0354: .*use the build that made it, or begin with an empty database/,
        'the log says what to do';
    $server->stop;
    like refused($server), qr/MDL0354/, 'it does not start again';
    sql('INSERT INTO schema_migration (version, name, fingerprint, build, runs_with, applied_at) '
        . q{VALUES (9999, 'of_another', '', '', 9999, 0)});
    like refused($server), qr/MDL0354(?!.*MDL0337)/s, 'whatever the version is';
    sql("UPDATE schema_migration SET fingerprint = '$ours->[0]'");
    sql('ALTER TABLE schema_migration DROP COLUMN fingerprint');
    like refused($server), qr/MDL0354/, 'nor on a database that has no fingerprints';
    $server->configure(extra => "DownloadsMigrate Off\n");
    like refused($server), qr/MDL0354/, 'nor with DownloadsMigrate Off';
};

subtest 'a request whose body does not arrive holds no database connection' => sub {
    my $server = MDL::Instance->new(extra => "DBDMax 2\n")->start;
    my $shop   = new_shop();
    my @waiting;
    # Each request uses a new key, which is not cached, so it looks it up in the database before its
    # body.
    for my $token ($shop->{token}, map { MDL::Test::new_key($shop->{shop_id})->{token} } 1 .. 8) {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port())
            or die "no connection: $!\n";
        print $socket "POST /api/v1/assets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
            . "Authorization: Bearer $token\r\nIdempotency-Key: slow\r\n"
            . "Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n";
        $socket->flush;
        like scalar <$socket>, qr{^HTTP/1\.1 100 }, 'the server waits for a body';
        push @waiting, $socket;
    }
    my @replies = parallel(16, sub { api('GET', '/health')->{status} });
    is_deeply \@replies, [ (200) x 16 ], 'other requests are answered';
    close $_ for @waiting;
    $server->stop;
};

subtest 'a database that is down at the start' => sub {
    my $server = MDL::Instance->new(cluster => 1);
    my $home   = "$server->{folder}/database";
    if (database() eq 'sqlite3') {
        make_path($home);
        $server->{vars}{db_params} = "$home/downloads.db";
        $server->configure;
    }
    $server->start;
    $server->stop;
    database() eq 'sqlite3' ? rename $home, "$home.away" : stop_database();
    $server->start(any => 1);
    my $reply = api('GET', '/health');
    is $reply->{status}, 503, 'the server starts, and answers 503';
    like $reply->{headers}{'retry-after'} // 'none', qr/^\d+$/, 'with Retry-After';
    wait_for(sub { $server->error_log =~ /MDL0320/ }, 20, 'the background process to log it');
    is scalar(() = $server->error_log =~ /MDL0320/g), 1, 'the background process logs it once';
    like $server->error_log, qr/MDL0339/, 'and the start logs it, too';
    database() eq 'sqlite3' ? rename "$home.away", $home : start_database();
    is api('GET', '/health')->{status}, 200, 'the first request after it is back succeeds';
    import_succeeds('afterwards');
    $server->stop;
};

subtest 'a background process that can\'t start is not restarted again and again' => sub {
    my $server = MDL::Instance->new;
    my $blobs  = "$server->{folder}/storage/blobs";
    MDL::Instance::write_file($blobs, 'a file where a folder should be');
    $server->start;
    wait_for(sub { $server->error_log =~ /MDL0333/ }, 10, 'the parent to give it up');
    like $server->error_log, qr/MDL0326: .*storage/, 'the log says why';
    sleep 2.5;    # httpd checks its children every second
    is scalar(() = $server->error_log =~ /MDL0331/g), 1, 'it was started once';
    is_deeply [ worker_pids() ], [], 'and is gone';
    is api('GET', '/health')->{status}, 200, 'requests are served';
    my $ready = api('GET', '/health/ready');
    is "$ready->{status} $ready->{json}{worker}", '503 failing', 'monitoring is told';
    unlink $blobs;
    httpd_graceful();
    import_succeeds('after a restart with the mistake corrected');
    $server->stop;
};

# Starts, restarts and stops a server with this MPM; returns its log.
sub goes_round
{
    my ($mpm)  = @_;
    my $server = MDL::Instance->new(mpm => $mpm)->start;
    my ($code, $output) = $server->httpd('-V');
    like $output, qr/Server MPM:\s+$mpm/i, 'httpd -V names it';
    import_succeeds('under it');
    httpd_graceful();
    import_succeeds('after a graceful restart');
    httpd_restart();
    import_succeeds('after a restart');
    is scalar(worker_pids()), 1, 'there is one background process';
    my ($worker) = worker_pids();
    kill KILL => $worker;
    wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $worker }, 60, 'the next one');
    import_succeeds('after the background process was killed');
    $server->stop;
    unlike $server->error_log, qr/exit signal (?!Killed)/, 'no child has crashed';
    return $server->error_log;
}

for my $mpm (qw(event worker prefork)) {
    subtest "with the MPM $mpm" => sub {
        my $log;
        for my $try (1 .. 3) {    # on a busy machine a child may need more time than httpd gives it
            $log = goes_round($mpm);
            last if $log !~ /AH00045|AH00046/;
        }
        unlike $log, qr/AH00045|AH00046/, 'no child had to be killed';
    };
}

done_testing;
