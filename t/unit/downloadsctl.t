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

    my ($version) = slurp("$top/CHANGES") =~ /^(\d+\.\d+\.\d+\S*)/m;
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

# What bash proposes for the last of these words.
sub completions
{
    my (@words) = @_;
    my $script = 'source "$1"; shift; COMP_WORDS=(downloadsctl "$@"); COMP_CWORD=$#;'
        . ' _downloadsctl; printf "%s\n" "${COMPREPLY[@]}"';
    local $ENV{PATH} = "$built:$ENV{PATH}";
    open my $out, '-|', 'bash', '-c', $script, 'bash', "$top/conf/completion/downloadsctl", @words
        or die "bash: $!";
    chomp(my @proposed = <$out>);
    close $out or die "bash ended with $?";
    return { map { $_ => 1 } @proposed };
}

subtest 'help, completion and the man page name the same commands and options' => sub {
    my @forms = run('help')->{out} =~ /^ {2}([a-z].*)$/mg;
    cmp_ok(scalar @forms, '>', 35, 'there are many');
    my (%nouns, %verbs, %options);
    for my $form (@forms) {
        my ($noun, $verb) = $form =~ /^([a-z-]+)(?: ([a-z-]+)(?= |$))?/;
        $nouns{$noun} = 1;
        $verbs{$noun}{$verb} = 1 if defined $verb;
        $options{ join ' ', grep {defined} $noun, $verb }{$_} = 1 for $form =~ /--[a-z-]+/g;
    }
    is_deeply(completions(''), \%nouns, 'bash proposes the nouns');
    is_deeply(completions($_, ''), $verbs{$_}, "and the verbs of $_") for sort keys %verbs;
    is_deeply(completions(split(/ /, $_), '--'), $options{$_}, "and the options of $_")
        for sort keys %options;
    is_deeply(completions(qw(key create 1 k --scope re)), { read => 1 }, 'and values of options');

    my $page = "$built/gen/downloadsctl.8";
    is(qx(man --warnings -E UTF-8 -l -Tutf8 -Z '$_' 2>&1 >/dev/null), '',
        "man finds nothing wrong with $_") for $page, "$built/gen/mod_downloads.8";
    my $text = qx(MANWIDTH=2000 man -E UTF-8 -l '$page' 2>/dev/null | col -b);
    $text =~ s/\xE2\x88\x92|\xE2\x80\x90/-/g;
    for my $form (@forms) {
        my $typed = $form =~ s/\b([A-Z][A-Z_0-9]*)\b/lc $1/egr;
        like($text, qr/^ +\Q$typed\E$/m, "which has: $form");
    }
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
    refuses_json(2, 'configuration', 'shop', 'add', 'B', 'b.example', '--key', 'k');
    is(ctl('key', 'list', 1)->{code}, 0, 'listing keys does not need it');

SKIP: {
        skip 'file modes mean nothing to root', 1 if $> == 0;
        write_file("$dir/secret", 'k' x 40, 0);
        refuses(2, qr/can't be opened by this user/, 'key', 'create', 1, 'k');
    }
};

subtest 'config explain says where each value comes from' => sub {
    fresh('explain');
    write_file("$dir/more.conf", "# nothing\n\nDownloadsMailRate 20\ndownloadsleasetime 31\n");
    $conf = configure(DBDriver => 'pgsql',
        DBDParams => q{"host=h password='it\\'s secret' user=u sslpassword=other dbname=d"});
    write_file($conf, slurp($conf) . "DownloadsIngestAllowHost one.test \\\n  two.test\n"
        . "DownloadsMailRate 10\nInclude more.conf\n");
    my $lines = succeeds_json('config', 'explain');
    my %of;
    push @{ $of{ $_->{directive} } }, $_ for @$lines;
    my $count = () = slurp($conf) =~ /\n/g;
    is_deeply($of{DownloadsMailRate}, [ { directive => 'DownloadsMailRate', value => '20',
        origin => "$dir/more.conf:3", file => "$dir/more.conf", line => 3, default => '1000' } ],
        'the last line counts');
    is($of{DownloadsLeaseTime}[0]{value}, '31', 'in any case of letters');
    is_deeply([ map { @$_{qw(value line)} } @{ $of{DownloadsIngestAllowHost} } ],
        [ 'files.test', 3, 'one.test two.test', $count - 3 ], 'lists have a row for each line');
    is_deeply($of{DownloadsPollInterval}[0], { directive => 'DownloadsPollInterval', value => '2',
        origin => 'default', file => undef, line => undef, default => '2' }, 'or a default');
    is_deeply([ @{ $of{DownloadsUploadURL}[0] }{qw(value origin default)} ],
        [ undef, undef, undef ], 'or nothing');
    is($of{DBDParams}[0]{value}, 'host=h password=*** user=u sslpassword=*** dbname=d',
        'a password is hidden');
    my %sample = map { $_ => 1 } slurp("$top/conf/mod_downloads.conf") =~ /^#?(Downloads\w+) /mg;
    is_deeply([ sort grep { /^Downloads/ } keys %of ], [ sort keys %sample ], 'of every directive');
    like(ctl('config', 'explain')->{out}, qr{^DownloadsMailRate +20 +\Q$dir\E/more\.conf:3 +1000$}m,
        'also for people');
    $conf = configure(DBDriver => 'pgsql', DBDParams => 'postgresql://u:secret@h/d');
    like(ctl('config', 'explain')->{out}, qr{ postgresql://u:\*\*\*\@h/d }, 'also in a URL');
};

# --- the exit status ----------------------------------------------------------------------------

# How each command ends with ids that nothing has: in an empty database, and before there is one.
my %ENDS = map { /^(\S+(?: [a-z-]+)?) (\d) (\d)$/ ? ($1 => [ $2, $3 ]) : () } split /\n/, <<'END';
shop add 0 3
shop list 0 3
shop set 4 3
shop approve 4 3
shop suspend 4 3
shop block 4 3
shop unblock 4 3
key create 4 3
key list 4 3
key revoke 4 3
secret status 0 3
secret retire 5 5
feed renew 0 3
member add 5 3
member ask 4 3
member list 0 3
member sign-out 0 3
member remove 4 3
audit 0 3
trace 4 3
maintenance on 0 3
maintenance off 0 3
maintenance status 0 3
migrate 0 0
copy-database 5 3
backup 6 3
restore 6 6
config explain 0 0
check 6 6
storage status 0 3
storage copy 2 2
storage verify 0 3
storage clean 0 3
storage hold 0 3
storage release 0 3
mail test 0 0
mail flush 0 3
job list 0 3
job show 4 3
job retry 4 3
asset list 4 3
asset show 4 3
mapping list 4 3
mapping show 4 3
customer list 4 3
customer show 4 3
order show 4 3
order diagnose 4 3
order resend 4 3
END

# A command line for a line of the help, without its options.
sub example
{
    my ($form) = @_;
    my %value = (NAME => 'A', DOMAIN => 'a.example', USER => 'ann', ADDRESS => 'a@b.example',
        TEXT => 'x', 'HOLD|all' => 'all', FOLDER => '/nowhere/9', PARAMS => '/nowhere/9.db');
    $form =~ s/ \[.*?\](?= |$)//g;
    $form =~ s/ object\|object folder| \|.*//;
    my @words = map { $value{$_} // (/^[A-Z_]+$/ ? 9 : /^([a-z0-9-]+)\|/ ? $1 : $_) }
        split / /, $form;
    push @words, 'object'     if "@words" eq 'storage copy folder';
    push @words, '--name', 'B' if "@words" eq 'shop set 9';
    return @words;
}

subtest 'the exit status of each command says what was wrong' => sub {
    my @commands = map { [ $_, example($_) ] } run('help')->{out} =~ /^ {2}([a-z].*)$/mg;
    my $of = sub {
        my ($form) = @_;
        my ($name) = $form =~ /^([a-z-]+(?: [a-z-]+(?= |$))?)/;
        return $form =~ /^job retry --failed/ ? [ 0, 3 ] : $ENDS{$name} // [ 9, 9 ];
    };
    fresh('codes');
    for (@commands) {
        my ($form, @words) = @$_;
        refuses(1, qr/usage: downloadsctl $words[0]/, @words, 'more', 'words');
        my $code = ctl(@words)->{code};
        is($code, $of->($form)[1], "'@words' ends with $code without a database");
        unlink glob "$dir/data/downloads.db*" if $words[0] eq 'migrate';
    }
    ctl('migrate');
    for (@commands) {
        my ($form, @words) = @$_;
        my $got = ctl(@words);
        is($got->{code}, $of->($form)[0], "'@words' ends with $got->{code}") || diag($got->{err});
    }
    $conf = "$temp/there-is-none.conf";
    for (map { [ @$_[ 1 .. $#$_ ] ] } @commands) {
        my ($noun) = @$_;
        $noun eq 'check' ? is(ctl(@$_)->{code}, 6, 'check reports the configuration')
            : refuses(2, qr/can't be read/, @$_);
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

subtest '--quiet leaves out what went well' => sub {
    fresh('quiet');
    is(ctl('migrate', '--quiet')->{out}, '', 'migrate says nothing');
    is(ctl(qw(shop add A a.example --quiet))->{out}, "1\n", 'shop add prints the id');
    is(ctl(qw(--quiet shop approve 1))->{out}, '', 'shop approve says nothing');
    like(ctl(qw(key create 1 k --quiet))->{out}, qr/\Aadk_live_\S+\n\z/,
        'key create prints the token');
    like(ctl(qw(storage hold --quiet))->{out}, qr/\A\S+\n\z/, 'storage hold prints the id');
    for my $command ([qw(member add ann owner --shop 1)], [qw(member remove ann --shop 1)],
        [qw(storage release all)], [qw(storage verify)], [qw(job retry --failed)],
        [qw(mail flush)]) {
        is_deeply([ @{ ctl(@$command, '--quiet') }{qw(code out err)} ], [ 0, '', '' ],
            "'@$command' says nothing");
    }
    like(ctl(qw(shop list --quiet))->{out}, qr/a\.example/, 'a list is printed');
    is(run('-f', $conf, qw(shop approve 1 --quiet --json))->{json}{id}, 1, 'so is JSON');
    refuses(4, qr/no such shop/i, qw(shop approve 9 --quiet));
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
        my @problems = grep { !/: ok$/ } split /\n/, ctl('check')->{out};
        is(scalar @problems, 1, 'check finds one problem') or diag("@problems");
        like($problems[0], qr/^worker /, 'no background process runs here');
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
