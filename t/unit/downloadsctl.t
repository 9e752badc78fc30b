#!/usr/bin/perl
# downloadsctl as operators and programs use it: every command, every exit code, on SQLite and, if
# MDL_TEST_PGSQL has libpq's parameters (tools/with-postgres), on PostgreSQL.  Run by root, it also
# checks that the command drops root's rights.
#
#   BUILD=dir    where the command and the module are (build)
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $top     = abs_path("$FindBin::Bin/../..");
my $build   = $ENV{BUILD} || 'build';
my $built   = $build =~ m{^/} ? $build : "$top/$build";
my $program = "$built/downloadsctl";
my $module  = "$built/mod_downloads.so";
my $JSON    = JSON::PP->new->utf8;
my $TIME    = qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
my $TOKEN   = qr/adk_live_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}/;
my $temp    = tempdir('downloadsctl.XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $owner   = $> == 0 ? (getpwnam 'nobody')[2] : $>;
my ($dir, $conf, %params);

-x $program or BAIL_OUT("$program is not there: make build");
chmod 0755, $temp;

# --- helpers ----------------------------------------------------------------------------------------

sub slurp
{
    my ($path) = @_;
    open my $in, '<:raw', $path or die "$path: $!";
    local $/;
    return scalar <$in> // '';
}

sub write_file
{
    my ($path, $text, $mode) = @_;
    open my $out, '>:raw', $path or die "$path: $!";
    print $out $text;
    close $out or die "$path: $!";
    chmod $mode // 0644, $path;
    return $path;
}

# Runs the command; returns { code, out, err, json }.
sub run
{
    my (@arguments) = @_;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDOUT, '>', "$temp/out" or die $!;
        open STDERR, '>', "$temp/err" or die $!;
        exec $program, @arguments or die $!;
    }
    waitpid $pid, 0;
    my %result = (code => $? & 127 ? "signal $?" : $? >> 8);
    @result{qw(out err)} = map { slurp("$temp/$_") } qw(out err);
    $result{json} = eval { $JSON->decode($result{out}) };
    return \%result;
}

sub ctl  { return run('-f', $conf, @_) }
sub json { return run('-f', $conf, '--json', @_) }

# Runs a command that must end with this code and write this to standard error and nothing else.
sub refuses
{
    my ($code, $words, @arguments) = @_;
    my $got = ctl(@arguments);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $good = $got->{code} eq $code && $got->{err} =~ $words && $got->{out} eq '';
    ok($good, "'@arguments' ends with $code") or diag(explain($got));
    return;
}

# The same with --json: the error is the document.
sub refuses_json
{
    my ($code, $error, @arguments) = @_;
    my $got = json(@arguments);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $good = $got->{code} eq $code && ref $got->{json} eq 'HASH'
        && ($got->{json}{error}{code} // '') eq $error && length $got->{json}{error}{message};
    ok($good, "'--json @arguments' ends with $code, $error") or diag(explain($got));
    return;
}

sub succeeds_json
{
    my (@arguments) = @_;
    my $got = json(@arguments);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok($got->{code} eq 0 && defined $got->{json}, "'--json @arguments' succeeds")
        or diag(explain($got));
    return $got->{json};
}

sub sql
{
    my ($query) = @_;
    my @command
        = $params{driver} eq 'pgsql'
        ? ('psql', $params{params}, '-qAtX', '-v', 'ON_ERROR_STOP=1', '-c', $query)
        : ('sqlite3', '-batch', '-cmd', '.timeout 5000', $params{params}, $query);
    open my $out, '-|', @command or die "$command[0]: $!";
    my @lines = <$out>;
    close $out or die "$command[0] failed on: $query\n";
    chomp @lines;
    return @lines;
}

# A configuration with these directives beside or instead of the usual; undef takes one away.
sub configure
{
    my (%change) = @_;
    my %directive = (
        DBDriver               => $params{driver},
        DBDParams              => qq("$params{params}"),
        DownloadsPublicURL     => 'http://127.0.0.1/d',
        DownloadsSecretFile    => "$dir/secret",
        DownloadsStorage       => "$dir/data/storage",
        DownloadsTemplates     => "$top/conf/templates",
        DownloadsMailTransport => "maildir:$dir/data/mail",
        DownloadsMailFrom      => 'shop@example.com',
        %change
    );
    my @lines = map { defined $directive{$_} ? "$_ $directive{$_}\n" : () } sort keys %directive;
    return write_file("$dir/downloads.conf", join '', @lines);
}

# A folder with a good configuration, whose data belongs to the storage owner.
sub fresh
{
    my ($name, %database) = @_;
    $dir = "$temp/$name";
    make_path("$dir/data/storage");
    chown $owner, -1, "$dir/data", "$dir/data/storage" if $> == 0;
    write_file("$dir/secret", 'k' x 40, 0600);
    %params = %database ? %database : (driver => 'sqlite3', params => "$dir/data/downloads.db");
    $conf = configure();
    return;
}

sub check_named
{
    my ($name, $document) = @_;
    my ($found) = grep { $_->{name} eq $name } @{ $document->{checks} };
    return $found // {};
}

# Runs `check` and returns its document, with the results also by name.
sub check
{
    my (@arguments) = @_;
    my $got = json('check', @arguments);
    $got->{json}{$_->{name}} = $_ for @{ $got->{json}{checks} // [] };
    return { code => $got->{code}, %{ $got->{json} // {} } };
}

# Checks that `check` reports a problem with this part, and still looks at the others.
sub check_finds
{
    my ($name, $words, $what) = @_;
    my $got   = json('check');
    my $found = check_named($name, $got->{json} // {});
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $good = $got->{code} eq 6 && defined $found->{ok} && !$found->{ok}
        && $found->{message} =~ $words && @{ $got->{json}{checks} } == 9;
    ok($good, "check says what to do when $what") or diag(explain($got));
    return;
}

# --- the command line ---------------------------------------------------------------------------------

subtest 'the command line is parsed strictly, before anything is read' => sub {
    $conf = "$temp/there-is-none.conf";
    my $help = run('--help');
    is($help->{code}, 0, '--help succeeds');
    like($help->{out}, qr/key create SHOP_ID NAME .*\n.*key list SHOP_ID\n/, 'and lists commands');

    my ($version) = slurp("$top/CHANGES") =~ /^(\d+\.\d+\.\d+)/m;
    is(run('--version')->{out}, "downloadsctl $version\n", '--version prints the version of CHANGES');
    is_deeply(run('--version', '--json')->{json}, { version => $version }, 'to a program as well');

    refuses(1, qr/command is missing/);
    refuses(1, qr/no command "shop"/,      'shop');
    refuses(1, qr/no command "shop sell"/, 'shop', 'sell');
    refuses(1, qr/--what/,                 'shop', 'list', '--what');
    refuses(1, qr/--email/,                'shop', 'add', 'a', 'a.example', '--email');
    refuses(1, qr/usage: downloadsctl shop add NAME/, 'shop', 'add', 'a');
    refuses(1, qr/usage: downloadsctl shop list$/,    'shop', 'list', 'a');
    refuses(1, qr/usage: downloadsctl shop list$/,    'shop', 'list', '--scope', 'read');
    refuses(1, qr/usage: downloadsctl shop list$/,    'shop', 'list', '--httpd', 'httpd');
    for my $bad ('0', '-1', '+1', '01', '1x', ' 1', '1.0', '', 'one', '9007199254740992', '9' x 30) {
        refuses(1, qr/number of a shop/, 'shop', 'approve', '--', $bad);
    }
    refuses(1, qr/number of a shop/,   'job', 'list',   '--shop',    '1,2');
    refuses(1, qr/--status is queued/, 'job', 'list',   '--status',  'done');
    refuses(1, qr/--scope is full/,    'key', 'create', '1', 'k', '--scope', 'write');
    refuses(1, qr/--expires/,          'key', 'create', '1', 'k', '--expires', $_)
        for '0', '-5', '1d', '3153600001';
    refuses(1, qr/not UTF-8/, 'shop', 'add', "\xFF", 'a.example');
    refuses_json(1, 'usage', 'shop');
    refuses_json(1, 'usage', '--what');
    is(run('--what', '--json')->{json}{error}{code}, 'usage', '--json counts wherever it stands');
};

# --- the configuration ----------------------------------------------------------------------------------

subtest 'a mistake in the configuration ends with 2 and is reported with its place' => sub {
    fresh('settings');
    $conf = "$dir/none.conf";
    refuses(2, qr{none\.conf: can't be read}, 'shop', 'list');
    refuses_json(2, 'configuration', 'migrate');

    $conf = configure(DownloadsLeaseTime => 'soon');
    refuses(2, qr{downloads\.conf:\d+: DownloadsLeaseTime}, 'shop', 'list');
    $conf = configure(DownloadsMailFrom => undef, DownloadsPublicURL => undef);
    refuses(2, qr/DownloadsPublicURL is missing.*DownloadsMailFrom is missing/, 'shop', 'list');
    check_finds('settings', qr/PublicURL is missing.*MailFrom is missing/, 'directives are missing');

    $conf = configure(DBDriver => 'sqlite', DownloadsLeaseTime => 'soon');
    my $check = check();
    like($check->{settings}{message}, qr/DBDriver must be.*DownloadsLeaseTime must be/,
        'check reports every faulty line');
    like($check->{database}{message}, qr/Not tried: the settings come first/,
        'and what it could not try for one');
    is(join(' ', map { $_->{name} } grep { !$_->{ok} } @{ $check->{checks} }),
        'settings database worker', 'what does not need the line is tried')
        or diag(explain($check));
    unlike(join(' ', map { $_->{message} } @{ $check->{checks} }), qr/missing/,
        'and nothing is missed that is there');
SKIP: {
        skip 'the module is installed here', 1 if -e '/etc/apache2/mods-enabled/downloads.conf';
        like(run('shop', 'list')->{err}, qr/can't be read: .*a2enmod downloads.* -f\./,
            'without -f and with the module not enabled it says what to do');
    }
};

subtest 'only what needs the secret asks for it' => sub {
    fresh('secret');
    ctl('migrate');
    ctl('shop', 'add', 'A', 'a.example');
    ctl('shop', 'approve', 1);

    chmod 0644, "$dir/secret";
    refuses(2, qr/chmod 600/, 'key', 'create', 1, 'k');
    check_finds('secret', qr/chmod 600/, 'the secret is open to others');
    unlink "$dir/secret";
    refuses(2, qr/does not exist/, 'key', 'create', 1, 'k');
    refuses_json(2, 'configuration', 'key', 'create', 1, 'k');
    is(ctl('key', 'list', 1)->{code}, 0, 'listing keys goes on');

SKIP: {
        skip 'file modes mean nothing to root', 1 if $> == 0;
        write_file("$dir/secret", 'k' x 40, 0);
        refuses(2, qr/can't be opened by this user/, 'key', 'create', 1, 'k');
    }
};

# --- each database --------------------------------------------------------------------------------------

sub test_schema
{
    refuses(3, qr/version 0 .*downloadsctl migrate/, 'shop', 'list');
    ok(!-e $params{params}, 'looking makes no database') if $params{driver} eq 'sqlite3';
    check_finds('database', qr/downloadsctl migrate/, 'the schema is not there');

    my $applied = succeeds_json('migrate');
    cmp_ok($applied->{applied}, '>', 0, 'migrations are applied');
    is($applied->{version}, $applied->{applied}, 'the version is printed');
    like(ctl('migrate')->{out}, qr/^Applied 0 migrations; .*version $applied->{version}\.$/,
        'a second time does nothing');

    sql("INSERT INTO schema_migration (version, name, applied_at) VALUES (999, 'later', 0)");
    refuses(3, qr/version 999 .*newer/, 'shop', 'list');
    refuses(3, qr/newer/, 'migrate');
    sql('DELETE FROM schema_migration WHERE version = 999');
    return;
}

sub test_check
{
    my $document = succeeds_json('check');
    ok($document->{ok}, 'a good installation is good');
    is(join(' ', map { $_->{name} } @{ $document->{checks} }),
        'settings httpd secret database storage templates mail bounces worker', 'everything is looked at');
    my $text = ctl('check');
    is(scalar(() = $text->{out} =~ /: ok$/mg), 9, 'for people each line ends in ok')
        or diag($text->{out});
    return;
}

# The token may be read by root alone, and comes from a file or a pipe, never from the command line.
sub test_storefront
{
    my ($id) = @_;
    my $token = 'shpat_0123456789';
    my @file = ('--storefront-token-file', write_file("$temp/token", "$token\r\n", 0600));
    my $set = ctl('shop', 'set', $id, '--storefront', 'https://Shop.example/', @file);
    is($set->{code}, 0, 'a storefront is set');
    like($set->{out}, qr{its storefront is https://Shop\.example\.$}, 'people read which');
    unlike("$set->{out}$set->{err}", qr/shpat/, 'and nothing of the token');
    my $sealed = sub { return (sql("SELECT storefront_token FROM shop WHERE id = $id"))[0] // '' };
    my $before = $sealed->();
    like($before, qr/^v1\./, 'which is stored sealed');
    open my $stdin, '<&', \*STDIN or die $!;
    open STDIN, '<', "$temp/token" or die $!;
    is(ctl('shop', 'set', $id, '--storefront-token-file', '-')->{code}, 0,
        'it is read from standard input');
    open STDIN, '<&', $stdin or die $!;
    isnt($sealed->(), $before, 'and replaces the one there was');
    refuses(5, qr/needs its access token too/, 'shop', 'set', $id, '--storefront', 'https://b.example');
    refuses(5, qr/visible ASCII/, 'shop', 'set', $id, '--storefront-token-file',
        write_file("$temp/bad", "a\0b", 0600));
    refuses(1, qr/too large/, 'shop', 'set', $id, '--storefront-token-file',
        write_file("$temp/bad", 'x' x 5000, 0600));
    refuses(1, qr/can't be read/, 'shop', 'set', $id, '--storefront-token-file', "$temp/none");
    is(succeeds_json('shop', 'set', $id, '--storefront', '')->{storefront_url}, undef,
        'nothing ends the connection');
    return;
}

sub test_shops
{
    is(ctl('shop', 'list')->{out}, "There is no shop yet.\n", 'no shop is no table');
    is_deeply(succeeds_json('shop', 'list'), [], 'but an empty array');

    my $shop = succeeds_json('shop', 'add', 'Café Ä', 'a.example', '--email', 'help@a.example');
    like(delete $shop->{created_at}, $TIME, 'a shop has a time');
    my $id = $shop->{id};
    is_deeply(
        $shop,
        {   id     => $id,
            name   => "Caf\x{e9} \x{c4}",
            domain => 'a.example',
            email  => 'help@a.example',
            status => 'pending',
            sender_name => undef,
            reply_to    => undef,
            mail_delay  => 0,
            hold_at     => 'high',
            storefront_url => undef,
        },
        'and all that was given'
    );
    like(ctl('shop', 'add', '--', '-x-', 'b.example')->{out}, qr/^Shop \d+ \(-x-\) waits for approval/,
        'people read what comes next');
    is(succeeds_json('shop', 'list')->[1]{email}, undef, 'no email is null');
    like(ctl('shop', 'list')->{out}, qr/^ID  NAME    DOMAIN .*\n +1  Café Ä  a\.example /,
        'the table is aligned by characters');

    my $set = succeeds_json('shop', 'set', $id, '--sender-name', 'A & B', '--mail-delay', 15);
    is_deeply([ @$set{qw(sender_name reply_to mail_delay hold_at)} ], [ 'A & B', undef, 15, 'high' ],
        'what is given is set');
    $set = succeeds_json('shop', 'set', $id, '--reply-to', 're@a.example', '--hold-at', 'medium');
    is_deeply([ @$set{qw(sender_name reply_to mail_delay hold_at)} ],
        [ 'A & B', 're@a.example', 15, 'medium' ], 'and the rest kept');
    $set = succeeds_json('shop', 'set', $id, '--sender-name', '', '--mail-delay', 0);
    is_deeply([ @$set{qw(sender_name mail_delay)} ], [ undef, 0 ], 'nothing clears it');
    $set = succeeds_json('shop', 'set', $id, '--name', 'Cafe Oil', '--email', 'new@a.example');
    is_deeply([ @$set{qw(name email reply_to)} ], [ 'Cafe Oil', 'new@a.example', 're@a.example' ],
        'a shop can get another name and email');
    is(succeeds_json('shop', 'set', $id, '--email', '')->{email}, undef, 'or no email');
    is(succeeds_json('shop', 'list')->[0]{name}, 'Cafe Oil', 'which is kept');
    succeeds_json('shop', 'set', $id, '--name', 'Café Ä');
    like(ctl('shop', 'set', $id)->{out},
        qr/emails from "Café Ä", answered to re\@a\.example, sent after 0 min; orders are held at medium/,
        'people read how it stands');
    refuses_json(4, 'not_found',       'shop', 'set', 999, '--mail-delay', 1);
    refuses_json(5, 'invalid_request', 'shop', 'set', $id, '--reply-to',    'nobody');
    refuses_json(5, 'invalid_request', 'shop', 'set', $id, '--sender-name', "a\r\nBcc: b");
    refuses_json(5, 'invalid_request', 'shop', 'set', $id, '--email',       'nobody');
    refuses_json(5, 'invalid_request', 'shop', 'set', $id, '--name',        '');
    refuses(1, qr/0 to 60, not "61"/,        'shop', 'set', $id, '--mail-delay', 61);
    refuses(1, qr/medium or high, not "low"/, 'shop', 'set', $id, '--hold-at',    'low');
    test_storefront($id);

    refuses(5, qr/domain already/, 'shop', 'add', 'C', 'a.example');
    refuses_json(5, 'conflict',        'shop', 'add', 'C', 'a.example');
    refuses_json(5, 'invalid_request', 'shop', 'add', '',  'c.example');
    refuses_json(5, 'invalid_request', 'shop', 'add', 'C', 'Not A Host');
    refuses_json(5, 'invalid_request', 'shop', 'add', 'C', 'c.example', '--email', 'nobody');
    refuses(4, qr/no such shop/, 'shop', $_, 999) for qw(approve suspend);
    refuses_json(4, 'not_found', 'shop', 'approve', '9007199254740991');

    refuses_json(5, 'invalid_request', 'shop', 'add', "\e[2Jwiped\nout", 'esc.example');
    return $id;
}

sub test_keys
{
    my ($shop) = @_;
    refuses(5, qr/approved/, 'key', 'create', $shop, 'early');
    refuses_json(5, 'shop_not_approved', 'key', 'create', $shop, 'early');
    is(succeeds_json('shop', 'approve', $shop)->{status}, 'approved', 'the shop is approved');

    my $made = succeeds_json('key', 'create', $shop, 'one', '--scope', 'read', '--expires', 600);
    like($made->{token}, qr/^$TOKEN$/, 'a token is given');
    like($made->{token}, qr/_$made->{key}{id}_/, 'which belongs to the key');
    is($made->{key}{scope}, 'read', 'with its scope');
    like($made->{key}{expires_at}, $TIME, 'and its end');

    my $text = ctl('key', 'create', $shop, 'two');
    is(scalar(() = $text->{out} =~ /^$TOKEN$/mg), 1, 'people get the token on a line of its own');
    like($text->{out}, qr/Store its token now/, 'with the advice to store it');

    ctl('key', 'create', $shop, "key $_") for 3 .. 10;
    refuses(5, qr/10 live keys/, 'key', 'create', $shop, 'eleventh');
    refuses_json(5, 'too_many_keys', 'key', 'create', $shop, 'eleventh');
    my $keys = json('key', 'list', $shop);
    is(scalar @{ $keys->{json} }, 10, 'ten keys are listed');
    is($keys->{json}[1]{$_}, undef, "$_ is null until then")
        for qw(last_used_at expires_at revoked_at);
    is($keys->{json}[1]{scope}, 'full', 'the scope is full unless given');
    my ($secret) = $made->{token} =~ /_([0-9A-Za-z]{43})[0-9A-Za-z]{6}$/;
    unlike($_, qr/adk_live|\Q$secret\E/, 'no list shows a token')
        for $keys->{out}, ctl('key', 'list', $shop)->{out};

    my $since   = time;
    my $revoked = succeeds_json('key', 'revoke', $made->{key}{id});
    cmp_ok(time - $since, '>=', 1, 'revoking returns once no cache has the key');
    like($revoked->{revoked_at}, $TIME, 'and the key is revoked');
    is(ctl('key', 'create', $shop, 'eleventh')->{code}, 0, 'which makes room for another');

    refuses_json(4, 'not_found',       'key', 'create', 999,   'k');
    refuses_json(4, 'not_found',       'key', 'list',   999);
    refuses_json(4, 'not_found',       'key', 'revoke', 'nonesuch');
    refuses_json(5, 'invalid_request', 'key', 'create', $shop, '');

    $since = time;
    is(succeeds_json('shop', 'suspend', $shop)->{status}, 'suspended', 'the shop is suspended');
    cmp_ok(time - $since, '>=', 1, 'suspending waits as well');
    refuses_json(5, 'shop_not_approved', 'key', 'create', $shop, 'late');
    return;
}

sub add_job
{
    my ($shop, $id, $status, $due_s) = @_;
    my $now = int(time * 1_000_000);
    my $due = defined $due_s ? $now + $due_s * 1_000_000 : 'NULL';
    sql('INSERT INTO job (id, shop_id, type, lane, source_url, status, attempts, max_attempts,'
            . ' due_at, lease_token, bytes_received, error_code, error_message, created_at)'
            . " VALUES ('$id', $shop, 'asset_import', 'bulk', 'https://s.example/f.zip?sig=SECRET',"
            . " '$status', 5, 5, $due, 5, 1000, 'source_timeout', 'Too slow.', $now)");
    return;
}

sub test_jobs
{
    my ($shop) = @_;
    is_deeply(succeeds_json('job', 'list'), [], 'there is no job yet');
    add_job($shop, sprintf('job_%03d', $_), $_ % 2 ? 'failed' : 'succeeded') for 1 .. 60;
    add_job($shop, 'job_100', 'running', 60);

    my $jobs = succeeds_json('job', 'list');
    is(scalar @$jobs, 50, 'fifty jobs are listed');
    is($jobs->[0]{id}, 'job_100', 'the newest first');
    like(ctl('job', 'list')->{out}, qr/^ID .*\njob_100 .*\n\(no more than 50 are shown\)$/s,
        'people are told that there may be more');
    my $failed = succeeds_json('job', 'list', '--status', 'failed');
    is(scalar(grep { $_->{status} eq 'failed' } @$failed), 30, 'a status is looked for in all');
    is(scalar @$failed, 30, 'and nothing else is listed');
    is_deeply(succeeds_json('job', 'list', '--shop', $shop + 1), [], 'another shop has none');
    refuses_json(4, 'not_found', 'job', 'list', '--shop', 999);

    my $job = json('job', 'show', 'job_001');
    is($job->{json}{error_code},  'source_timeout', 'a job shows its error');
    is($job->{json}{bytes_total}, undef,            'an unknown size is null');
    is($job->{json}{source_url},  'https://s.example/f.zip', 'its source goes without the query');
    unlike($_->{out}, qr/SECRET/, 'no signed URL is printed')
        for $job, ctl('job', 'show', 'job_001'), json('job', 'list');
    like(ctl('job', 'show', 'job_001')->{out}, qr/^status +failed$/m, 'people get a line a field');

    my $again = succeeds_json('job', 'retry', 'job_001');
    is_deeply([ @$again{qw(status attempts error_code)} ], [ 'queued', 0, undef ],
        'a failed job is queued with all of its attempts');
    refuses_json(5, 'job_finished',  'job', 'retry', 'job_002');
    refuses_json(5, 'job_finished',  'job', 'retry', 'job_100');
    refuses_json(4, 'job_not_found', 'job', $_,      'job_nope') for qw(retry show);

    is(json('check')->{code}, 0, 'a job that is due now is no problem');
    add_job($shop, 'job_101', 'queued', -120);
    is(json('check')->{code}, 0, 'nor one that waits for a slot of a worker that has others');
    sql("DELETE FROM job WHERE id = 'job_100'");
    check_finds('worker', qr/No background process seems to take jobs.*bulk/, 'a job waits long');
    for my $lane (qw(small hash mail lookup)) {
        sql("UPDATE job SET lane = '$lane' WHERE id = 'job_101'");
        check_finds('worker', qr/No background process seems to take jobs.*$lane/, "so in the lane $lane");
    }
    sql('DELETE FROM job');
    return;
}

sub test_database
{
    test_schema();
    test_check();
    my $shop = test_shops();
    test_keys($shop);
    test_jobs($shop);
    return;
}

subtest 'all commands on SQLite' => sub {
    fresh('sqlite3');
    test_database();

    my $mode = (stat $params{params})[2] & 0777;
    is($mode & 07, 0, "the database's file is closed to everybody else");
    $conf = configure(DBDParams => "$dir/nowhere/downloads.db");
    refuses(3, qr/out of reach/, 'shop', 'list');
    refuses_json(3, 'database_unavailable', $_) for 'migrate';
    check_finds('database', qr/nowhere/, "the database's folder is missing");
    write_file("$dir/data/words.db", 'these are no pages of a database' x 100, 0666);
    $conf = configure(DBDParams => "$dir/data/words.db");
    refuses(3, qr/not a database/, 'shop', 'list');
};

SKIP: {
    my $server = $ENV{MDL_TEST_PGSQL} or skip 'MDL_TEST_PGSQL is not set', 1;
    my $name = "downloadsctl_$$";
    subtest 'all commands on PostgreSQL' => sub {
        fresh('pgsql', driver => 'pgsql', params => "$server dbname=$name");
        system('psql', $server, '-qX', '-c', "CREATE DATABASE $name") == 0 or die 'no database';
        test_database();
        $conf = configure(DBDParams => qq("host=$dir user=x dbname=x connect_timeout=2"));
        refuses(3, qr/out of reach/, 'shop', 'list');
        refuses_json(3, 'database_unavailable', 'migrate');
        check_finds('database', qr/out of reach/, 'the server is away');
    };
    system('psql', $server, '-qX', '-c', "DROP DATABASE $name WITH (FORCE)");
}

# --- mail test ----------------------------------------------------------------------------------------

# An SMTP server that answers each recipient with its local part; every other command with 250.
sub answering_server
{
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die $!;
    my $pid = fork // die "fork: $!";
    return ($pid, $listener->sockport) if $pid;
    while (my $client = $listener->accept) {
        $client->autoflush(1);
        print $client "220 test\r\n";
        while (my $line = <$client>) {
            my $answer = $line =~ /^RCPT TO:<([0-9]{3})@/ ? "$1 as you wish" : '250 fine';
            $answer = '354 go on' if $line =~ /^DATA/;
            $answer = '221 bye'   if $line =~ /^QUIT/;
            print $client "$answer\r\n";
            next if $line !~ /^DATA/;
            1 while defined($line = <$client>) && $line ne ".\r\n";
            print $client "250 2.0.0 queued as 4711\r\n";
        }
    }
    POSIX::_exit(0);
}

subtest 'mail test sends one email and says what the mail server said' => sub {
    fresh('mail');
    refuses(1, qr/usage: downloadsctl mail test ADDRESS/, 'mail', 'test');
    refuses(5, qr/not an address/, 'mail', 'test', "a\@b.example\nBcc: c\@d.example");
    my $sent = succeeds_json('mail', 'test', 'ada@buyer.example');
    is($sent->{answer}, undef, 'a Maildir says nothing');
    my ($path) = glob "$dir/data/mail/new/*";
    my $mail = slurp($path // '/dev/null');
    like($mail, qr/^Return-Path: <shop\@example.com>\nDelivered-To: ada\@buyer.example\n/,
        'but has it');
    like($mail, qr/^Message-ID: <\Q$sent->{message_id}\E>$/m, 'with the Message-ID that was printed');

    my ($pid, $port) = answering_server();
    $conf = configure(DownloadsMailTransport => "smtp://127.0.0.1:$port");
    like(ctl('mail', 'test', '250@buyer.example')->{out}, qr/: 250 2\.0\.0 queued as 4711$/,
        'an SMTP server says what it did');
    refuses(5, qr/550 as you wish/, 'mail', 'test', '550@buyer.example');
    refuses_json(5, 'refused', 'mail', 'test', '550@buyer.example');
    refuses(6, qr/450 as you wish/, 'mail', 'test', '450@buyer.example');
    refuses_json(6, 'not_accepted_yet', 'mail', 'test', '450@buyer.example');
    kill TERM => $pid;
    waitpid $pid, 0;
    refuses(6, qr/No SMTP transfer: .*127\.0\.0\.1/, 'mail', 'test', '250@buyer.example');
};

# --- check ------------------------------------------------------------------------------------------------

subtest 'check looks at everything and says what to do' => sub {
    fresh('check');
    ctl('migrate');
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die $!;
    my $port   = $socket->sockport;
    close $socket;
    $conf = configure(DownloadsMailTransport => "smtp://127.0.0.1:$port");
    check_finds('mail', qr/DownloadsMailTransport .*, DownloadsMailTLS,/, 'no mail server answers');
    $conf = configure(DownloadsMailBounces => "maildir:$dir/data/bounces");
    check_finds('bounces', qr{\Q$dir\E/data/bounces/new.*mail server}, 'there is no box to read');

    system('cp', '-r', "$top/conf/templates", "$dir/templates") == 0 or die 'cp';
    write_file("$dir/templates/page.html", "<p>\n{{#shop}}\n");
    unlink "$dir/templates/email.txt";
    $conf = configure(DownloadsTemplates => "$dir/templates");
    check_finds('templates', qr{email\.txt.*page\.html}, 'templates are missing or wrong');

    $conf = configure(DownloadsStorage => "$dir/none");
    check_finds('storage', qr{\Q$dir\E/none}, 'there is no storage folder');
    $conf = configure(DownloadsStorage => undef);
    check_finds('settings', qr/DownloadsStorage is missing/, 'no storage folder is given');
    $conf = "$dir/none.conf";
    check_finds('settings', qr{none\.conf}, 'there is no configuration at all');

SKIP: {
        skip 'file modes mean nothing to root', 2 if $> == 0;
        $conf = configure();
        chmod 0500, "$dir/data";
        check_finds('database', qr/can't be written to/, "SQLite's folder is closed");
        chmod 0700, "$dir/data";
        chmod 0500, "$dir/data/storage/partial";
        check_finds('storage', qr/Files can't be stored/, 'the storage folder is closed');
        chmod 0700, "$dir/data/storage/partial";
        chmod 0500, "$dir/data/storage";
        check_finds('storage', qr/Files can't be stored/, 'it is closed but for what it holds');
        chmod 0700, "$dir/data/storage";
        chmod 0400, $params{params};
        check_finds('database', qr{downloads\.db can't be written to by its owner: chmod u\+rw /},
            'the database is closed');
        chmod 0600, $params{params};
    }
};

# --- check and httpd ------------------------------------------------------------------------------------

# A configuration of httpd's that has these lines besides; returns the command that reads it.
sub httpd_with
{
    my ($lines, $without) = @_;
    chomp(my $httpd = qx($top/tools/instance httpd));
    my $modules = qx($top/tools/instance modules);
    my ($user, $group) = ((getpwuid $owner)[0], (getgrgid((getpwuid $owner)[3]))[0]);
    my $conf = <<"END";
ServerRoot "$dir"
ServerName localhost
Listen 127.0.0.1:9
User $user
Group $group
DefaultRuntimeDir "$dir"
ErrorLog "$dir/error.log"
$modules
LoadModule downloads_module "$module"
DBDMax 8
$lines
END
    $conf =~ s/^LoadModule.*\b$without\b.*\n//mg if $without;
    write_file("$dir/httpd.conf", $conf);
    return "$httpd -d $dir -f $dir/httpd.conf";
}

my $HANDLERS = join '', map { "<Location $_->[0]>\nSetHandler downloads-$_->[1]\n</Location>\n" }
    [ '/api/v1', 'api' ], [ '/d', 'delivery' ], [ '/u', 'upload' ];

subtest 'check asks httpd whether it would start' => sub {
    fresh('httpd');
    ctl('migrate');
    my $include = qq(Include "$dir/downloads.conf"\n$HANDLERS);
    my $finds   = sub {
        my ($words, $what, $lines, $without) = @_;
        my $command = httpd_with($include . ($lines // ''), $without);
        my $check   = check('--httpd', $command);
        ok($check->{code} == 6 && !$check->{httpd}{ok}
                && $check->{httpd}{message} =~ /^httpd would not start\.  \Q$command\E -t says: .*$words/,
            "it finds $what") or diag(explain($check));
    };

    my $command = httpd_with($include);
    my $check   = check('--httpd', $command);
    is($check->{code}, 0, 'a good configuration is good') or diag(explain($check));
    is_deeply([ @{ $check->{httpd} }{qw(ok message)} ], [ JSON::PP::true, "$command -t" ], 'as httpd says');
    is_deeply($check->{warnings}, [], 'there is nothing to warn of');

    $finds->(qr/mod_dbd is not loaded .*a2enmod dbd/, 'that mod_dbd is missing', '', 'dbd_module');
    $finds->(qr/mod_downloads is not loaded .*a2enmod downloads/, 'that the module is missing itself', '',
        'downloads_module');
    $finds->(qr/must not exceed DBDKeep \(8\).*DBDMax/,   'DBDMax below DBDKeep', "DBDMax 5\nDBDKeep 8\n");
    $finds->(qr/DownloadsWorker cannot occur within <VirtualHost>/, 'a directive in a virtual host',
        "<VirtualHost *:9>\nDownloadsWorker Off\n</VirtualHost>\n");
    $finds->(qr/line \d+ of \S+httpd\.conf: Invalid command 'Nonesuch'/, 'what another module is missed for',
        "Nonesuch on\n");
    $conf = configure(DBDriver => 'sqlite');
    $finds->(qr/line 2 of \S+downloads\.conf: Can't load driver file apr_dbd_sqlite/, 'a faulty driver');
    $conf = configure();

    $check = check('--httpd', httpd_with(''));
    is($check->{code}, 6, 'an httpd that does not read the file is a problem');
    like($check->{httpd}{message}, qr{does not read \Q$conf\E: .*a2enmod downloads.*Include}, 'with what to do');
    $check = check();
    is($check->{code}, 0, 'unless none was named');
    like($check->{httpd}{message}, qr/not asked.*--httpd/, 'as is said');
    $check = check('--httpd', "$dir/nonesuch");
    ok(!$check->{httpd}{ok} && $check->{httpd}{message} =~ /nonesuch.*not found/, 'nor one that is not there')
        or diag(explain($check));
};

subtest 'check warns of settings that work but are probably not meant' => sub {
    fresh('warnings');
    ctl('migrate');
    my $warns = sub {
        my ($words, $what, $lines, %change) = @_;
        $conf = configure(%change);
        my $command = httpd_with(qq(Include "$dir/downloads.conf"\n$lines));
        my $check   = check('--httpd', $command);
        ok($check->{code} == 0 && @{ $check->{warnings} } == 1 && $check->{warnings}[0] =~ $words,
            "of $what") or diag(explain($check));
    };
    my @url = (DownloadsPublicURL => 'http://shop.test/downloads');
    $warns->(qr/DBDMax \(3\) is less than an eighth of ThreadsPerChild \(25\).* at least 4\./, 'a small DBDMax',
        "DBDMax 3\n$HANDLERS");
    $warns->(qr{DownloadsPublicURL leads to http://shop\.test/downloads, and no <Location> .*\(the first is /d\)},
        'a public URL that nothing serves', $HANDLERS, @url);
    $warns->(qr{DownloadsUploadURL leads to}, 'an upload URL that nothing serves', $HANDLERS,
        DownloadsUploadURL => 'http://shop.test/uploads');
    $warns->(qr{DownloadsPublicURL leads to}, 'a path that only begins like it',
        $HANDLERS =~ s{/d>}{/down>}r, @url);
    $warns->(qr/^DownloadsPublicURL is still the sample's, /, "the sample's URL", $HANDLERS,
        DownloadsPublicURL => 'https://downloads.example.com/d');

    for my $lines (map { $HANDLERS =~ s{<Location /d>}{$_}r } '<Location "/downloads">', '<Location />',
        '<Location "/downloads/">', '<Location ~ "^/(d|downloads)">', '<Location /down*>')
    {
        $conf = configure(@url);
        my $check = check('--httpd', httpd_with(qq(Include "$dir/downloads.conf"\n$lines)));
        my ($section) = $lines =~ /(<.*>)\nSetHandler downloads-delivery/;
        is_deeply([ $check->{code}, $check->{warnings} ], [ 0, [] ], "not of $section")
            or diag(explain($check));
    }
    $conf = configure(DownloadsMailTransport => 'smtp://127.0.0.1:1', DownloadsMailFrom => 'a@example.com');
    like(ctl('check')->{out}, qr/^warning +DownloadsMailFrom is still the sample's, a\@example\.com/m,
        "people read of the sample's sender on a line of its own");
};

subtest 'what can not be written is not passed over' => sub {
    fresh('output');
    ctl('migrate');
    system("$program -f $conf --json shop list >/dev/full 2>$temp/err");
    is($? >> 8, 7, 'a full disk ends with 7');
    like(slurp("$temp/err"), qr/standard output can't be written/, 'and is told');
};

# --- root ---------------------------------------------------------------------------------------------------

SKIP: {
    skip 'not started by root', 1 if $> != 0;
    subtest 'root becomes the owner of the storage folder' => sub {
        fresh('root');
        is((stat "$dir/secret")[4], 0, "the secret is root's and can be read");
        ctl('migrate');
        ctl('shop', 'add',     'A', 'a.example');
        ctl('shop', 'approve', 1);
        is(ctl('key', 'create', 1, 'k')->{code}, 0, 'a key is made under it');
        is(ctl('check')->{code}, 0, 'and everything is good');
        my @files = split /\n/, qx(find "$dir/data" -mindepth 1);
        cmp_ok(scalar @files, '>', 4, 'there are files');
        is(join(' ', grep { (stat)[4] != $owner } @files), '', "all of them are the owner's");
        is(join(' ', grep { (stat)[5] == 0 && !/storage$/ } @files), '', "and none is root's group's");

        ctl('migrate');
        chown 0, 0, $params{params};
        chmod 0600, $params{params};
        check_finds('database', qr{downloads\.db belongs to root, and nobody can't .*: chown nobody /\S+\.db\.$},
            "the database is root's");

        $owner = 54321;
        fresh('nameless');
        is(ctl('migrate')->{code}, 0, 'a user without a name can be become');
        is((stat $params{params})[4], 54321, 'and owns the database');

        $owner = 0;
        fresh('roots');
        refuses(2, qr/belongs to root/, 'migrate');
        ok(!-e $params{params}, 'root itself never opens the database');
        check_finds('storage', qr/belongs to root/, 'the storage folder is root\'s');
        check_finds('database', qr/Not tried as root/, 'root would have to open the database');
        ok(!-e $params{params}, 'and check leaves nothing behind') or diag(qx(ls -l "$dir/data"));
    };
}

done_testing();
