#!/usr/bin/perl
# What all commands of downloadsctl have in common: the command line, the configuration, output, and
# that it drops root's rights if root starts it.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use MDL::Downloadsctl;
use Test::More;

# --- the command line ----------------------------------------------------------------------------

subtest 'the command line is parsed strictly, before anything is read' => sub {
    $conf = "$temp/there-is-none.conf";
    my $help = run('--help');
    is($help->{code}, 0, '--help succeeds');
    like($help->{out}, qr/key create SHOP_ID NAME .*\n.*key list SHOP_ID\n/,
        '--help lists the commands');
    is_deeply(run(@$_), $help, "'@$_' does, too")
        for ['help'], [ 'help', 'key' ], [ '-f', $conf, 'help' ];

    my ($version) = slurp("$top/CHANGES") =~ /^(\d+\.\d+\.\d+)/m;
    # Behind it stands the commit, if this was built in a checkout.
    my ($build) = run('--version')->{out} =~ /^downloadsctl (\Q$version\E(?: \([\w.-]+\))?)\n\z/;
    ok(defined $build, '--version prints the version of CHANGES and the commit');
    is_deeply(run('--version', '--json')->{json}, { version => $version, build => $build },
        '--version --json prints both as JSON');

    refuses(1, qr/command is missing/);
    refuses(1, qr/usage: downloadsctl shop add\|list\|set\|approve\|suspend\|block\|unblock;/,
        'shop');
    refuses(1, qr/no command "sell"/,      'sell');
    refuses(1, qr/no command "shop sell"/, 'shop', 'sell');
    refuses(1, qr/--what/,                 'shop', 'list', '--what');
    refuses(1, qr/--email/,                'shop', 'add', 'a', 'a.example', '--email');
    refuses(1, qr/usage: downloadsctl shop add NAME/, 'shop', 'add', 'a');
    refuses(1, qr/usage: downloadsctl shop list$/,    'shop', 'list', 'a');
    refuses(1, qr/usage: downloadsctl shop list$/,    'shop', 'list', '--scope', 'read');
    refuses(1, qr/usage: downloadsctl shop list$/,    'shop', 'list', '--httpd', 'httpd');
    for my $bad ('0', '-1', '+1', '01', '1x', '1 2', '1.0', '', 'one', '9007199254740992',
        '9' x 30) {
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
    is(run('--what', '--json')->{json}{error}{code}, 'usage', '--json works in any place');
};

# --- the configuration ---------------------------------------------------------------------------

subtest 'a mistake in the configuration ends with 2 and is reported with its line' => sub {
    fresh('settings');
    $conf = "$dir/none.conf";
    refuses(2, qr{none\.conf: can't be read}, 'shop', 'list');
    refuses_json(2, 'configuration', 'migrate');

    $conf = configure(DownloadsLeaseTime => 'soon');
    refuses(2, qr{downloads\.conf:\d+: DownloadsLeaseTime}, 'shop', 'list');
    $conf = configure(DownloadsMailFrom => undef, DownloadsPublicURL => undef);
    refuses(2, qr/DownloadsPublicURL is missing.*DownloadsMailFrom is missing/, 'shop', 'list');
    check_finds('settings', qr/PublicURL is missing.*MailFrom is missing/,
        'directives are missing');

    $conf = configure(DBDriver => 'sqlite', DownloadsLeaseTime => 'soon');
    my $check = check();
    like($check->{settings}{message}, qr/DBDriver must be.*DownloadsLeaseTime must be/,
        'check reports every faulty line');
    like($check->{database}{message}, qr/Not tried: the settings come first/,
        'check reports what it could not check because of one');
    is(join(' ', map { $_->{name} } grep { !$_->{ok} } @{ $check->{checks} }),
        'settings database files worker', 'check does what does not depend on these lines')
        or diag(explain($check));
    unlike(join(' ', map { $_->{message} } @{ $check->{checks} }), qr/missing/,
        'check does not report directives with a mistake as missing');
SKIP: {
        skip 'the module is installed here', 1 if -e '/etc/apache2/mods-enabled/downloads.conf';
        like(run('shop', 'list')->{err}, qr/can't be read: .*a2enmod downloads.* -f\./,
            'the message says what to do without -f when the module is not enabled');
    }
};

subtest 'only commands that need the secret read it' => sub {
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
    is(ctl('key', 'list', 1)->{code}, 0, 'listing keys does not need it');

SKIP: {
        skip 'file modes mean nothing to root', 1 if $> == 0;
        write_file("$dir/secret", 'k' x 40, 0);
        refuses(2, qr/can't be opened by this user/, 'key', 'create', 1, 'k');
    }
};

# --- output --------------------------------------------------------------------------------------

subtest 'a failure to write the output is reported' => sub {
    fresh('output');
    ctl('migrate');
    system("$program -f $conf --json shop list >/dev/full 2>$temp/err");
    is($? >> 8, 7, 'a full disk ends with 7');
    like(slurp("$temp/err"), qr/standard output can't be written/, 'the full disk is reported');
};

# --- root ----------------------------------------------------------------------------------------

SKIP: {
    skip 'not started by root', 1 if $> != 0;
    subtest 'root switches to the owner of the storage folder' => sub {
        fresh('root');
        is((stat "$dir/secret")[4], 0, "the secret belongs to root");
        ctl('migrate');
        ctl('shop', 'add',     'A', 'a.example');
        ctl('shop', 'approve', 1);
        is(ctl('key', 'create', 1, 'k')->{code}, 0, 'a key can be created with it');
        is(ctl('check')->{code}, 0, 'check finds no problem');
        my @files = split /\n/, qx(find "$dir/data" -mindepth 1);
        cmp_ok(scalar @files, '>', 4, 'files were created');
        is(join(' ', grep { (stat)[4] != $owner } @files), '', "all of them are the owner's");
        is(join(' ', grep { (stat)[5] == 0 && !/storage$/ } @files), '',
            "none of them belongs to root's group");

        ctl('migrate');
        chown 0, 0, $params{params};
        chmod 0600, $params{params};
        check_finds('database',
            qr{downloads\.db belongs to root, and nobody can't .*: chown nobody /\S+\.db\.$},
            "the database belongs to root");

        $owner = 54321;
        fresh('nameless');
        is(ctl('migrate')->{code}, 0, 'the owner need not have a name');
        is((stat $params{params})[4], 54321, 'the owner without a name owns the database');

        $owner = 0;
        fresh('roots');
        refuses(2, qr/belongs to root/, 'migrate');
        ok(!-e $params{params}, 'root itself never opens the database');
        check_finds('storage', qr/belongs to root/, 'the storage folder belongs to root');
        check_finds('database', qr/Not tried as root/, 'root would have to open the database');
        ok(!-e $params{params}, 'check leaves nothing behind') or diag(qx(ls -l "$dir/data"));
    };
}

done_testing();
