#!/usr/bin/perl
# downloadsctl check: problems that it finds, what httpd says of its configuration, and warnings.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::INET;
use JSON::PP ();
use MDL::Downloadsctl;
use Sys::Hostname qw(hostname);
use Test::More;

my $module = "$built/mod_downloads.so";

# --- problems ------------------------------------------------------------------------------------

subtest 'check reports problems and what to do about them' => sub {
    fresh('check');
    ctl('migrate');
    # Bound, so that nobody else takes it, but without listening.
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
    my $port   = $socket->sockport;
    $conf = configure(DownloadsMailTransport => "smtp://127.0.0.1:$port");
    check_finds('mail', qr/DownloadsMailTransport .*, DownloadsMailTLS,/, 'no mail server answers');
    $conf = configure(DownloadsMailBounces => "maildir:$dir/data/bounces");
    check_finds('bounces', qr{\Q$dir\E/data/bounces/new.*mail server},
        'the mailbox for bounces is missing');

    system('cp', '-r', "$top/conf/templates", "$dir/templates") == 0 or die 'cp';
    write_file("$dir/templates/page.html", "<p>\n{{#shop}}\n");
    unlink "$dir/templates/email.txt";
    $conf = configure(DownloadsTemplates => "$dir/templates");
    check_finds('templates', qr{email\.txt.*page\.html}, 'templates are missing or wrong');

    $conf = configure(DownloadsStorage => "$dir/none");
    check_finds('storage', qr{\Q$dir\E/none}, 'the storage folder is missing');
    $conf = configure(DownloadsStorage => undef);
    check_finds('settings', qr/DownloadsStorage is missing/, 'no storage folder is configured');
    $conf = "$dir/none.conf";
    check_finds('settings', qr{none\.conf}, 'the configuration is missing');

SKIP: {
        skip 'file modes mean nothing to root', 2 if $> == 0;
        $conf = configure();
        chmod 0500, "$dir/data";
        check_finds('database', qr/can't be written to/, "SQLite's folder is not writable");
        chmod 0700, "$dir/data";
        chmod 0500, "$dir/data/storage/partial";
        check_finds('storage', qr/Files can't be stored/,
            'the folder of partial files is not writable');
        chmod 0700, "$dir/data/storage/partial";
        chmod 0500, "$dir/data/storage";
        check_finds('storage', qr/Files can't be stored/,
            'only the storage folder itself is not writable');
        chmod 0700, "$dir/data/storage";
        chmod 0400, $params{params};
        check_finds('database', qr{downloads\.db can't be written to by its owner: chmod u\+rw /},
            'the database is not writable');
        chmod 0600, $params{params};
    }
};

# --- httpd ---------------------------------------------------------------------------------------

# This process stands in for an httpd that runs, and for its background process: t/operate/check.t
# has a true one.
sub httpd_runs
{
    my ($build) = run('--version')->{out} =~ /^downloadsctl (.*)/;
    my ($host, $ahead) = (hostname(), (time + 86400) . '000000');
    write_file("$dir/httpd.pid", $$);
    sql("INSERT INTO node (host, pid_file, pid, build, beat_at) VALUES ('$host', '$dir/httpd.pid', "
        . "$$, '$build', $ahead)");
    return;
}

# Writes a configuration for httpd with these lines, and without a module; returns the command that
# reads it.
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
PidFile "$dir/httpd.pid"
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

subtest 'check asks httpd whether it can start' => sub {
    fresh('httpd');
    ctl('migrate');
    httpd_runs();
    my $include = qq(Include "$dir/downloads.conf"\n$HANDLERS);
    my $finds   = sub {
        my ($words, $what, $lines, $without) = @_;
        my $command = httpd_with($include . ($lines // ''), $without);
        my $check   = check('--httpd', $command);
        ok($check->{code} == 6 && !$check->{httpd}{ok}
                && $check->{httpd}{message}
                =~ /^httpd would not start\.  \Q$command\E -t says: .*$words/,
            "it finds $what") or diag(explain($check));
    };

    my $command = httpd_with($include);
    my $check   = check('--httpd', $command);
    is($check->{code}, 0, 'a good configuration has no problem') or diag(explain($check));
    is_deeply([ @{ $check->{httpd} }{qw(ok message)} ], [ JSON::PP::true, "$command -t" ],
        'the check names the command that it ran');
    is_deeply($check->{warnings}, [], 'there is no warning');

    $check = check('--httpd', httpd_with($include, 'reqtimeout_module'));
    is($check->{code}, 0, 'an httpd without mod_reqtimeout would start');
    like($check->{warnings}[0], qr/mod_reqtimeout is not loaded: .*a2enmod reqtimeout/,
        'and there is a warning');

    $finds->(qr/mod_dbd is not loaded .*a2enmod dbd/, 'that mod_dbd is missing', '', 'dbd_module');
    $finds->(qr/mod_downloads is not loaded .*a2enmod downloads/,
        'that the module itself is missing', '', 'downloads_module');
    $finds->(qr/must not exceed DBDKeep \(8\).*DBDMax/,   'DBDMax below DBDKeep',
        "DBDMax 5\nDBDKeep 8\n");
    $finds->(qr/DownloadsWorker cannot occur within <VirtualHost>/, 'a directive in a virtual host',
        "<VirtualHost *:9>\nDownloadsWorker Off\n</VirtualHost>\n");
    $finds->(qr/line \d+ of \S+httpd\.conf: Invalid command 'Nonesuch'/,
        'a directive of a module that is not loaded', "Nonesuch on\n");
    $conf = configure(DBDriver => 'sqlite');
    $finds->(qr/line 2 of \S+downloads\.conf: Can't load driver file apr_dbd_sqlite/,
        'an invalid driver');
    $conf = configure();

    $check = check('--httpd', httpd_with(''));
    is($check->{code}, 6, 'an httpd that does not read the file is a problem');
    like($check->{httpd}{message}, qr{does not read \Q$conf\E: .*a2enmod downloads.*Include},
        'the message says what to do');
    $check = check();
    is($check->{code}, 0, 'without --httpd that is not checked');
    like($check->{httpd}{message}, qr/not asked.*--httpd/,
        'the check says that httpd was not asked');
    $check = check('--httpd', "$dir/nonesuch");
    ok(!$check->{httpd}{ok} && $check->{httpd}{message} =~ /nonesuch.*not found/,
        'an unknown httpd is a problem')
        or diag(explain($check));
};

subtest 'check warns of settings that work but are probably a mistake' => sub {
    fresh('warnings');
    ctl('migrate');
    httpd_runs();
    my $warns = sub {
        my ($words, $what, $lines, %change) = @_;
        $conf = configure(%change);
        my $command = httpd_with(qq(Include "$dir/downloads.conf"\n$lines));
        my $check   = check('--httpd', $command);
        ok($check->{code} == 0 && @{ $check->{warnings} } == 1 && $check->{warnings}[0] =~ $words,
            "it warns of $what") or diag(explain($check));
    };
    my @url = (DownloadsPublicURL => 'https://shop.test/downloads');
    $warns->(qr/DBDMax \(3\) is less than an eighth of ThreadsPerChild \(25\).* at least 4\./,
        'a small DBDMax', "DBDMax 3\n$HANDLERS");
    $warns->(qr{DownloadsPublicURL\ leads\ to\ https://shop\.test/downloads,
        \ and\ no\ <Location>\ .*\(the\ first\ is\ /d\)}x,
        'a public URL that nothing serves', $HANDLERS, @url);
    $warns->(qr{DownloadsUploadURL leads to}, 'an upload URL that nothing serves', $HANDLERS,
        DownloadsUploadURL => 'https://shop.test/uploads');
    $warns->(qr{DownloadsPublicURL leads to}, 'a Location that is only a prefix of its path',
        $HANDLERS =~ s{/d>}{/down>}r, @url);
    $warns->(qr/^DownloadsPublicURL is still the sample's, /, "the sample's URL", $HANDLERS,
        DownloadsPublicURL => 'https://downloads.example.com/d');

    for my $lines (map { $HANDLERS =~ s{<Location /d>}{$_}r } '<Location "/downloads">',
        '<Location />', '<Location "/downloads/">', '<Location ~ "^/(d|downloads)">',
        '<Location /down*>')
    {
        $conf = configure(@url);
        my $check = check('--httpd', httpd_with(qq(Include "$dir/downloads.conf"\n$lines)));
        my ($section) = $lines =~ /(<.*>)\nSetHandler downloads-delivery/;
        is_deeply([ $check->{code}, $check->{warnings} ], [ 0, [] ], "it does not warn of $section")
            or diag(explain($check));
    }
    $conf = configure(DownloadsMailTransport => 'smtp://127.0.0.1:1',
        DownloadsMailFrom => 'a@example.com');
    like(ctl('check')->{out},
        qr/^warning +DownloadsMailFrom is still the sample's, a\@example\.com/m,
        "the text has a line for the sample's sender");
};

done_testing();
