# `downloadsctl check` against broken set-ups: it finds what is broken in each, says what to do and
# ends with 6, and finds nothing else; in a set-up that works it finds nothing at all.
#
# Most set-ups are files that the running httpd has not read; the command reads them each time.
#
# both: what can be wrong with each
use strict;
use warnings;

use File::Path qw(make_path);
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use Test::More;

use MDL::Customer;
use MDL::Helper;
use MDL::Instance;
use MDL::Ports;
use MDL::Test;

my $server = MDL::Instance->new(extra => "DownloadsMailFrom shop\@shop.test\n");
my $folder = $server->{folder};
my $extra  = $server->{extra};
system('cp', '-r', 'conf/templates', "$folder/templates") == 0 or die "no templates\n";
my $TEMPLATES = qq(DownloadsTemplates "$folder/templates"\n);
$server->configure(extra => $extra . $TEMPLATES);
$server->start;
my $shop = new_shop();
my $file = new_file($shop, 1000);
my $buy  = buy($shop, $file);

# The command, with the environment that a case wants: (code, lines by their names, warnings, text).
my %environment;
sub check
{
    my (@arguments) = @_;
    local @ENV{ keys %environment } = values %environment;
    # For the httpd that the command asks, too.
    local $ENV{LD_PRELOAD}   = $environment{LD_PRELOAD} // $ENV{SANITIZER_RUNTIME} // '';
    local $ENV{ASAN_OPTIONS} = 'detect_leaks=0:abort_on_error=1';
    my ($code, $json, $text)
        = ctl('check', '--httpd', "$ENV{HTTPD} -f $folder/httpd.conf", @arguments);
    # behind a line of the log
    $json //= JSON::PP->new->utf8->decode($text =~ s/^.*?(?=^\{)//msr);
    my %lines = map { $_->{name} => $_ } @{ $json->{checks} // [] };
    return ($code, \%lines, $json->{warnings} // [], $text);
}

sub finds_nothing
{
    my ($what) = @_;
    wait_heartbeat();
    my ($code, $lines, $warnings, $text) = check();
    is_deeply [ $code, [ grep { !$lines->{$_}{ok} } sort keys %$lines ], $warnings ],
        [ 0, [], [] ], $what
        or diag $text;
    return;
}

# Lines that configure() adds or leaves out; the last line of a directive counts.
sub set
{
    my ($lines, $without) = @_;
    $server->configure(extra => "$extra$TEMPLATES$lines\n", without => $without);
    return;
}

sub change_file
{
    my ($path, $change) = @_;
    my $text = MDL::Test::slurp($path);
    MDL::Instance::write_file($path, $change->($text));
    return sub { MDL::Instance::write_file($path, $text) };
}

# Changes the rows that match, and returns what puts them back.
sub change_rows
{
    my ($table, $column, $value, $where) = @_;
    my ($row) = sql("SELECT $column FROM $table WHERE $where");
    sql("UPDATE $table SET $column = $value WHERE $where");
    my $before = defined $row->[0] ? "'$row->[0]'" : 'NULL';
    return sub { sql("UPDATE $table SET $column = $before WHERE $where") };
}

# The background process neither beats nor takes jobs meanwhile.
sub paused
{
    my ($change) = @_;
    my ($worker) = worker_pids();
    pause_process($worker);
    my $back = $change->();
    return sub { kill CONT => $worker; $back->() };
}

# An SMTP server that greets everybody, and answers MAIL with this.
my @servers;
sub mail_server
{
    my ($answer) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 8)
        or die "$!\n";
    push @servers, MDL::Helper->begin(sub {
        my ($self, $watch) = @_;
        my $select = IO::Select->new($listener, $watch);
        while (1) {
            for my $ready ($select->can_read) {
                return if $ready == $watch;
                my $client = $listener->accept or next;
                print $client "220 there\r\n";
                while (my $line = <$client>) {
                    print $client $line =~ /^MAIL/i ? "$answer\r\n" : $line =~ /^QUIT/i
                        ? "221 bye\r\n" : "250 ok\r\n";
                    last if $line =~ /^QUIT/i;
                }
                close $client;
            }
        }
    });
    return $listener->sockport;
}

# Emails that were tried, the oldest first: 's'ent, 'f'ailed, or tried 'a'gain.
sub emails
{
    my ($fates) = @_;
    my %status = (s => 'sent', f => 'failed', a => 'queued');
    my $now    = int(time * 1e6);
    my $n      = 0;
    for my $fate (split //, $fates) {
        $n++;
        sql("INSERT INTO email (shop_id, order_id, recipient, message_id, status, held, attempts, "
            . "last_error, created_at) SELECT shop_id, id, 'a\@b.test', 'fate-$n', "
            . "'$status{$fate}', 0, 1, '554 5.7.1 not from you', $now FROM orders "
            . "ORDER BY id LIMIT 1");
    }
    return sub { sql("DELETE FROM email WHERE message_id LIKE 'fate-%'") };
}

# The database takes no write, for its disk is full.
sub full_disk
{
    if (database() eq 'sqlite3') {
        system("cc -shared -fPIC -o '$folder/full_disk.so' t/lib/full_disk.c") == 0
            or die "no full_disk.so\n";
        $environment{LD_PRELOAD} = join ' ',
            grep { $_ } $ENV{SANITIZER_RUNTIME}, "$folder/full_disk.so";
        return sub { %environment = () };
    }
    sql(q{CREATE FUNCTION full_disk() RETURNS trigger AS $$ BEGIN }
        . q{RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql});
    sql('CREATE TRIGGER full_disk BEFORE INSERT ON node FOR EACH ROW EXECUTE FUNCTION full_disk()');
    return sub { sql('DROP TRIGGER full_disk ON node'); sql('DROP FUNCTION full_disk()') };
}

sub read_only
{
    my $params = $server->{vars}{db_params};
    if (database() eq 'sqlite3') {
        chmod 0440, $params;
        return sub { chmod 0640, $params };
    }
    my ($name) = $params =~ /dbname=(\S+)/;
    my $set = sub {
        sql("BEGIN READ WRITE; ALTER DATABASE $name "
            . "SET default_transaction_read_only = $_[0]; COMMIT");
    };
    $set->('on');
    return sub { $set->('off') };
}

# A database that is not there.
sub elsewhere
{
    my $params = $server->{vars}{db_params};
    my $other = database() eq 'sqlite3' ? "$folder/none/downloads.db"
        : $params =~ s/dbname=\S+/dbname=none/r;
    return qq(DBDParams "$other");
}

sub modes
{
    my ($mode, $path) = @_;
    my $before = (stat $path)[2] & 07777;
    chmod $mode, $path;
    return sub { chmod $before, $path };
}

sub written
{
    my ($name, $text, $mode) = @_;
    MDL::Instance::write_file("$folder/$name", $text);
    chmod $mode // 0600, "$folder/$name";
    return "$folder/$name";
}

my $templates = "$folder/templates";
my ($key)     = sql(q{SELECT secret_id FROM api_key});
my $free      = free_port();
my $SECRET    = qr/^DownloadsSecretFile/;

# What is broken; how, which returns how to mend it; the lines of `check` that say so, and their
# words. "=" before a line: its own words do not matter, for it fails in consequence.
my @broken = (
    # settings, and what httpd -t says of them
    [ 'no storage folder is named', sub { set('', qr/^DownloadsStorage /) },
        settings => qr/DownloadsStorage is missing: give/, '=httpd', '=storage' ],
    [ 'a directive is misspelt', sub { set('DownloadsStoragee /x') }, '=settings',
        httpd => qr/DownloadsStoragee/ ],
    [ 'the public URL is none', sub { set('DownloadsPublicURL ftp://x/') },
        settings => qr{absolute URL.*https://}, '=httpd' ],
    [ 'jobs are looked for too seldom', sub { set('DownloadsPollInterval 30') },
        settings => qr/must be less than DownloadsLeaseTime/, '=httpd' ],
    [ 'others may read the mail password', sub {
            set("DownloadsMailTransport smtp://127.0.0.1:$free\nDownloadsMailCredentials "
                . written('login', "a:b\n", 0644)) },
        settings => qr/chmod 0600/, '=httpd', '=mail' ],
    [ 'a file of certificates has none', sub {
            set('DownloadsStorefrontCAFile ' . written('words.pem', "none\n")) },
        settings => qr/PEM/, '=httpd' ],
    [ 'a list of domains is missing', sub { set("DownloadsFraudBlockedDomains $folder/none") },
        settings => qr/there is no file \S+none\./, '=httpd' ],
    # httpd
    [ 'another module has a mistake',
        sub { change_file("$folder/httpd.conf", sub { "$_[0]\nNonesuch on\n" }) },
        httpd => qr/would not start.*Invalid command 'Nonesuch'/ ],
    [ 'no such handler', sub { set("<Location /x>\nSetHandler downloads-apo\n</Location>") },
        httpd => qr/no handler downloads-apo/ ],
    [ 'mod_dbd is not loaded', sub {
        change_file("$folder/httpd.conf", sub { $_[0] =~ s/^LoadModule dbd_module.*\n//mr });
    }, httpd => qr/a2enmod dbd/ ],
    [ 'httpd does not read the file',
        sub { change_file("$folder/httpd.conf", sub { $_[0] =~ s/^Include.*\n//mr }) },
        httpd => qr/does not read \S+: enable the module/ ],
    # the secret
    [ 'the secret is missing', sub { set("DownloadsSecretFile $folder/none", $SECRET) },
        secret => qr/none/, '=httpd' ],
    [ 'others may read the secret', sub { modes(0644, "$folder/secret") },
        secret => qr/chmod 0?600/, '=httpd' ],
    [ 'the secret is too short',
        sub { set('DownloadsSecretFile ' . written('short', 'x' x 31), $SECRET) }, secret => qr/32/,
        '=httpd' ],
    [ 'another secret has signed the keys',
        sub { set('DownloadsSecretFile ' . written('other', 'y' x 48), $SECRET) },
        secret =>
            qr/^DownloadsSecretFile names another secret .* get 401: 1; put the right file back/ ],
    [ 'another secret has signed some keys', sub {
            my $more = MDL::Test::new_key($shop->{shop_id});
            my $back = change_rows('api_key', 'secret_id', q{'strange'}, "id = '$more->{key_id}'");
            return sub { $back->() } },
        secret => qr/^Live API keys .* get 401: 1; .*key revoke/ ],
    [ 'another secret has sealed the data key', sub {
            sql(q{INSERT INTO data_key (id, sealed) VALUES (1, 'not ours')});
            return sub { sql('DELETE FROM data_key') } },
        secret => qr/^License keys can't be opened.*DownloadsSecretFile/ ],
    # the database
    [ 'there is no such database', sub { set(elsewhere(), qr/^DBDParams/) },
        database => qr/create it|start it, or correct DBDriver and DBDParams/, '=worker' ],
    [ 'there is no such driver', sub { set('DBDriver oracle7', qr/^DBDriver/) },
        settings => qr/DBDriver/, '=httpd', '=database', '=worker' ],
    [ 'the schema is older', sub {
            my ($last) = sql('SELECT version, name, fingerprint, build, runs_with, applied_at '
                . 'FROM schema_migration ORDER BY version DESC LIMIT 1');
            sql("DELETE FROM schema_migration WHERE version = $last->[0]");
            my $values = join ', ', map { "'$_'" } @$last;
            return sub {
                sql('INSERT INTO schema_migration (version, name, fingerprint, build, runs_with, '
                    . "applied_at) VALUES ($values)");
            } },
        database => qr/run 'downloadsctl migrate'/, '=worker' ],
    [ 'the schema is newer', sub {
            sql('INSERT INTO schema_migration (version, name, fingerprint, build, runs_with, '
                . q{applied_at) VALUES (9999, 'future', '', '0.9', 9999, 0)});
            return sub { sql('DELETE FROM schema_migration WHERE version = 9999') } },
        database => qr/version 9999, .* use the downloadsctl of the newer/, '=worker' ],
    [ 'the schema was made by other migrations',
        sub { change_rows('schema_migration', 'fingerprint', q{'other'}, 'version = 1') },
        database => qr/use the build that made it, or begin with an empty database/, '=worker' ],
    [ "the database's disk is full", \&full_disk, database => qr/disk is full.*free some space/ ],
    [ 'the database is read-only', \&read_only, database => qr/read-only|chmod u\+rw/,
        database() eq 'sqlite3' ? '=worker' : () ],
    # the storage
    [ 'the storage folder is missing', sub { set("DownloadsStorage $folder/none") },
        storage => qr{mount|correct DownloadsStorage|create}, '=httpd' ],
    [ 'the storage folder is read-only', sub { modes(0500, "$folder/storage") },
        storage => qr/Files can't be stored .*user that httpd runs as/ ],
    [ 'partial files can\'t be stored', sub { modes(0500, "$folder/storage/partial") },
        storage => qr/Files can't be stored/ ],
    [ 'the storage folder is another one',
        sub { make_path("$folder/empty"); set("DownloadsStorage $folder/empty") },
        storage => qr/mount or restore the folder/ ],
    [ 'the disk of the storage is full', sub { set('DownloadsStorageReserve 16384G') },
        storage => qr/full, or has less than DownloadsStorageReserve/ ],
    # templates
    [ 'the templates are missing', sub { set("DownloadsTemplates $folder/none") },
        templates => qr/none/, '=httpd' ],
    [ 'a template is missing', sub {
        rename "$templates/email.txt", "$folder/email.txt";
        sub { rename "$folder/email.txt", "$templates/email.txt" };
    }, templates => qr/email\.txt/, '=httpd' ],
    [ 'a template is broken',
        sub { change_file("$templates/page.html", sub { "<p>\n{{#shop}}\n" }) },
        templates => qr/page\.html is not valid\. Line 2/, '=httpd' ],
    [ 'a kept template has a name of an older release',
        sub { change_file("$templates/email.txt", sub { $_[0] . "{{buyer}}\n" }) }, templates =>
        qr/email\.txt has \{\{buyer\}\}, which this release does not know .*docs\/templates\.md/ ],
    [ 'words are broken', sub { change_file("$templates/de.words", sub { "nonsense\n$_[0]" }) },
        templates => qr/de\.words are not valid\. Line 1/, '=httpd' ],
    [ 'a language has a word that there is not',
        sub { change_file("$templates/de.words", sub { "$_[0]nonesuch = nichts\n" }) },
        templates => qr/de\.words has \{\{\@nonesuch\}\}, which this release does not know/ ],
    [ 'kept words lack a new one', sub {
            my $back = change_file("$templates/en.words", sub { $_[0] =~ s/^download = .*\n//mr });
            system('cp', 'conf/templates/en.words', "$templates/en.words.new");
            return sub { $back->(); unlink "$templates/en.words.new" } },
        templates => qr/en\.words\ was\ kept\ at\ an\ upgrade\ and\ lacks
            \ \{\{\@download\}\}\ of\ en\.words\.new:\ take\ over/x ],
    [ 'a kept template lacks what the new one shows', sub {
            my $back = change_file("$templates/page.html",
                sub { $_[0] =~ s/\{\{[#\/^]files_truncated\}\}//gr });
            system('cp', 'conf/templates/page.html', "$templates/page.html.new");
            return sub { $back->(); unlink "$templates/page.html.new" } },
        templates => qr/page\.html\ was\ kept\ at\ an\ upgrade\ and\ lacks
            \ \{\{files_truncated\}\}\ of\ page\.html\.new:\ take\ over/x ],
    # what comes in, and what goes out
    [ 'nothing is allowlisted', sub { set('', qr/^Downloads(?:IngestAllowHost|UploadURL)/) },
        imports => qr/DownloadsIngestAllowHost names no host/ ],
    [ 'no mail server listens', sub { set("DownloadsMailTransport smtp://127.0.0.1:$free") },
        mail => qr/Correct DownloadsMailTransport/ ],
    [ 'the mail server has no address', sub { set('DownloadsMailTransport smtp://mail.invalid') },
        mail => qr/resolve.*Correct DownloadsMailTransport/ ],
    [ 'the mail server wants no mail of ours',
        sub { set('DownloadsMailTransport smtp://127.0.0.1:' . mail_server('550 5.7.1 go away')) },
        mail => qr/550 5\.7\.1 go away.*Correct DownloadsMailTransport/ ],
    [ 'the mail server knows no such sender',
        sub { set('DownloadsMailTransport smtp://127.0.0.1:' . mail_server('553 5.1.8 who?')) },
        mail => qr/553 5\.1\.8 who\?/ ],
    [ 'the mail server has refused each recipient', sub { emails('sfffff' . 'f' x 15) },
        mail => qr/None\ of\ the\ 20\ newest\ emails\ was\ taken.*554\ 5\.7\.1\ not\ from\ you
            .*downloadsctl\ mail\ test/x ],
    [ 'there is no sendmail', sub { set("DownloadsMailTransport sendmail:$folder/none") },
        mail => qr/can't be run: .*Correct DownloadsMailTransport/, '=httpd' ],
    [ 'the Maildir can\'t be written to', sub { modes(0500, "$folder/mail/tmp") },
        mail => qr/Correct DownloadsMailTransport/ ],
    [ 'the box of bounces is missing', sub { set("DownloadsMailBounces maildir:$folder/bounces") },
        bounces => qr/Have the mail server deliver there/ ],
    # processes
    [ 'the background process hangs',
        sub { paused(sub { change_rows('node', 'beat_at', 'beat_at - 600000000', '1 = 1') }) },
        worker =>
            qr/of this host, pid \d+, has ended or hangs, silent for 6\d\d seconds.*restart it/ ],
    [ 'another node is silent', sub {
            sql('INSERT INTO node (host, pid_file, pid, build, beat_at) '
                . q{SELECT 'far.test', '/run/httpd.pid', 1, build, beat_at - 600000000 }
                . 'FROM node LIMIT 1');
            return sub { sql(q{DELETE FROM node WHERE host = 'far.test'}) } },
        worker => qr/of far\.test .* silent for 6\d\d seconds: start httpd there/ ],
    [ 'another node has another build', sub {
            sql('INSERT INTO node (host, pid_file, pid, build, beat_at) '
                . q{SELECT 'far.test', '/run/httpd.pid', 1, '0.0.9', beat_at FROM node LIMIT 1});
            return sub { sql(q{DELETE FROM node WHERE host = 'far.test'}) } },
        version => qr/far\.test runs 0\.0\.9: install the same build there/ ],
    [ 'httpd runs an older build',
        sub { paused(sub { change_rows('node', 'build', q{'0.0.9 (abc)'}, '1 = 1') }) },
        version => qr/^Installed is \d\S+.*httpd still runs 0\.0\.9 \(abc\): restart it/ ],
    [ 'a job waits for nobody', sub {
            paused(sub {
                my $job = api('POST', '/assets', key => $shop->{token},
                    json => { source_url => source('late', 'x') })->{json}{job}{id};
                sql("UPDATE job SET due_at = due_at - 600000000 WHERE id = '$job'");
                return sub { wait_job($shop, $job) };
            }) },
        worker => qr/has waited for 6\d\d seconds\.  Start httpd with DownloadsWorker On/ ],
);

finds_nothing('a set-up that works');
my ($code, undef, undef, $text) = check('--quiet');
is_deeply [ $code, JSON::PP->new->decode($text) ],
    [ 0, { checks => [], warnings => [], ok => JSON::PP::true } ], '--quiet finds nothing';

for my $case (@broken) {
    my ($name, $break, @expected) = @$case;
    my %words;
    while (my $line = shift @expected) {
        $words{ $line =~ s/^=//r } = $line =~ /^=/ ? qr/\S/ : shift @expected;
    }
    my $mend = $break->();
    my ($exit, $lines, undef, $output) = check('--quiet');
    delete $lines->{files} if $words{database} || $words{storage};    # looked at with both
    my $right = $exit == 6 && "@{[ sort keys %words ]}" eq "@{[ sort keys %$lines ]}"
        && !grep { $lines->{$_}{message} !~ $words{$_} } keys %words;
    ok $right, "found: $name" or diag "exit $exit, expected ", explain(\%words), $output;
    $mend->() if ref $mend;
    set('', undef);
}
cmp_ok scalar(@broken), '>=', 30, scalar(@broken) . ' set-ups';
finds_nothing('all is mended');

subtest 'what is unusual and works' => sub {
    my $mend = emails('s' . 'f' x 4 . 'a');
    finds_nothing('some emails fail');
    $mend->();
    $mend = change_file("$templates/page.html",
        sub { $_[0] =~ s/\{\{[#\/^]files_truncated\}\}//gr });
    make_path("$templates/shop-7");
    MDL::Instance::write_file("$templates/shop-7/page.html", '{{#shop}}{{name}}{{/shop}}');
    MDL::Instance::write_file("$templates/page.html.orig", '{{nonesuch}}');
    finds_nothing('templates are edited');
    $mend->();
    my $exit;
    for my $try (1 .. 3) {    # the next background process may take longer than the check waits
        httpd_graceful();
        ($exit) = check();
        last if $exit == 0;
    }
    is $exit, 0, 'just after a graceful restart';
    finds_nothing('nor later');
    set('', qr/^DownloadsIngestAllowHost/);
    ($exit, my $lines, my $warnings) = check();
    is_deeply [ $exit, scalar @$warnings ], [ 0, 1 ], 'uploads alone: a warning';
    like $warnings->[0], qr/DownloadsIngestAllowHost names no host/, 'which says so';
    set('', undef);
    system('cp', "$templates/page.html", "$templates/page.html.new");
    ($exit, $lines, $warnings) = check();
    is_deeply [ $exit, scalar @$warnings ], [ 0, 1 ],
        'a new template that was left, from which nothing is lost: a warning';
    like $warnings->[0], qr/page\.html\.new was put beside .*remove it/, 'which names it';
    unlink "$templates/page.html.new";
    $mend = change_file("$templates/fr.words", sub { $_[0] =~ s/^download = .*\n//mr });
    ($exit, $lines, $warnings) = check();
    is_deeply [ $exit, scalar @$warnings ], [ 0, 1 ], 'a language that lacks a word: a warning';
    like $warnings->[0], qr/fr\.words lacks \{\{\@download\}\}, which is shown in English/,
        'which names it';
    $mend->();
};

subtest 'the connections that PostgreSQL takes' => sub {
    plan skip_all => 'of PostgreSQL' if database() ne 'pgsql';
    # Children of 16 connections and a settler's, or of one and that; and the background process.
    my $most = ($ENV{MPM} // '') eq 'prefork' ? 64 * 2 + 1 : 4 * 17 + 1;
    my (undef, $lines) = check();
    like $lines->{database}{message},
        qr/, \d+ of 400 connections in use, live nodes \(1\) may open $most$/, 'they are counted';
    my $mend = paused(sub { change_rows('node', 'connections', 100_000, '1 = 1') });
    my ($exit, undef, $warnings, $text) = check();
    $mend->();
    is_deeply [ $exit, scalar @$warnings ], [ 0, 1 ], 'fewer than are needed: a warning'
        or diag $text;
    like $warnings->[0],
        qr/takes 400 connections, and 100\d+ are needed: 100000 by .*Raise max_connections/,
        'with the numbers';
};

subtest 'GET /health/ready' => sub {
    my $ready = sub { api('GET', '/health/ready') };
    my %all   = (maintenance => JSON::PP::false,
        map { $_ => 'ok' } qw(status database storage worker));
    my $becomes = sub {
        my ($what, $status, %parts) = @_;
        my $reply;
        eval { wait_for(sub { $reply = $ready->(); $reply->{status} == $status }, 20, $what) };
        is_deeply [ $reply->{status}, $reply->{json} ], [ $status, { %all, %parts } ], $what
            or diag $reply->{body};
        is api('GET', '/health')->{status}, 200, 'and a balancer goes on sending requests';
    };
    $becomes->('all is well', 200);
    is $ready->()->{headers}{'content-type'}, 'application/json', 'as JSON';

    sql('CREATE TABLE tries (host TEXT)');
    sql(database() eq 'sqlite3'
        ? q{CREATE TRIGGER tries AFTER INSERT ON node WHEN NEW.host = '' BEGIN }
            . q{INSERT INTO tries VALUES (NEW.host); END}
        : q{CREATE RULE tries AS ON INSERT TO node WHERE NEW.host = '' DO ALSO }
            . q{INSERT INTO tries VALUES (NEW.host)});
    my $began = time;
    my @statuses = parallel(16, sub { map { $ready->()->{status} } 1 .. 10; $ready->()->{status} });
    my ($tries) = sql('SELECT count(*) FROM tries');
    cmp_ok $tries->[0], '<=', 2 + (time - $began) / 5,
        '176 requests to all processes write once in five seconds';
    is_deeply \@statuses, [ (200) x 16 ], 'and all are answered';
    sql(database() eq 'sqlite3' ? 'DROP TRIGGER tries' : 'DROP RULE tries ON node');

    if (database() eq 'sqlite3') {
        sql(q{CREATE TRIGGER full_disk BEFORE INSERT ON node WHEN NEW.host = '' BEGIN }
            . q{SELECT RAISE(ABORT, 'no'); END});
        $becomes->('nothing can be written', 503, status => 'failing', database => 'failing');
        sql('DROP TRIGGER full_disk');
    }
    else {
        my $mend = full_disk();
        $becomes->('nothing can be written', 503, status => 'failing', database => 'failing');
        $mend->();
    }
    $becomes->('it can again', 200);
    my $mend = change_file("$folder/storage/identity", sub { 'storage_' . '0' x 26 . "\n" });
    $becomes->('another folder is mounted', 503, status => 'failing', storage => 'failing');
    $mend->();
    $becomes->('the right one is', 200);
};

subtest 'GET /health/storage, without an object store' => sub {
    my $mend = modes(0500, "$folder/storage/partial");
    my $reply;
    wait_for(sub { $reply = api('GET', '/health/storage'); $reply->{status} == 503 }, 20,
        'a folder that can not be written to');
    is_deeply $reply->{json}, { status => 'failing', folder => 'failing', objects => undef },
        'it says which place fails';
    $mend->();
    wait_for(sub { $reply = api('GET', '/health/storage'); $reply->{status} == 200 }, 20,
        'one that can');
    is_deeply $reply->{json}, { status => 'ok', folder => 'ok', objects => undef }, 'all is well';
};

subtest 'a start with another secret' => sub {
    my $other = sub { set("DownloadsSecretFile $folder/other", $SECRET) };
    $other->();
    my $log = error_log_size();
    httpd_graceful();
    like error_log_since($log), qr/MDL0141: .*put the right file back/,
        'a graceful restart says so';
    is api('GET', '/health')->{status}, 200, 'and goes on, for other hosts may be served';
    set('', undef);
    httpd_graceful();
    is api('GET', '/ping', key => $shop->{token})->{status}, 200, 'with the right one all is well';
    $server->stop;
    $other->();
    $log = error_log_size();
    $server->httpd('-k', 'start');
    wait_for(sub { error_log_since($log) =~ /MDL0141/ && !$server->processes }, 20, 'the refusal');
    unlike error_log_since($log), qr/MDL0331/, 'a start is refused before anything is signed';
    is +(ctl('key', 'create', $shop->{shop_id}, 'new'))[0], 0, 'a key that the new one signs';
    $log = error_log_size();
    $server->start;
    like error_log_since($log), qr/MDL0142: live API keys .* get 401: \d;/,
        'makes it the one to start with';
    wait_heartbeat();
    my ($exit, $lines) = check('--quiet');
    is "$exit @{[ sort keys %$lines ]}", '6 secret', 'though the older keys are told of';
    sql("DELETE FROM api_key WHERE id <> '$shop->{key_id}'");
    $server->stop;
    set('', undef);
    $server->start;
    finds_nothing('with the right one');
};

subtest 'httpd is stopped' => sub {
    $server->stop;
    my ($exit, $lines) = check('--quiet');
    is $exit, 6, 'a problem';
    is_deeply [ sort keys %$lines ], [qw(httpd worker)], 'of two lines';
    like $lines->{httpd}{message}, qr/does not run: .*Start it/, 'httpd';
    like $lines->{worker}{message}, qr/No background process of this host/,
        'and its background process';
    $server->start;
    finds_nothing('started again');
    $server->kill_all;
    ($exit, $lines) = check('--quiet');
    like $lines->{worker}{message}, qr/has ended or hangs/, 'one that was killed is missed at once';
    $server->start;
    finds_nothing('and again');
};

$server->stop;
done_testing();
