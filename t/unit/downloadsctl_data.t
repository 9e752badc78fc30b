#!/usr/bin/perl
# The commands of downloadsctl that use the database: migrate, check, shop, key, member, job and
# audit, on SQLite and, if MDL_TEST_PGSQL has libpq's parameters (tools/with-postgres), on
# PostgreSQL.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use MDL::Downloadsctl;
use Sys::Hostname ();
use Test::More;
use Time::HiRes qw(time);

my $TOKEN = qr/adk_live_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}/;

sub test_schema
{
    refuses(3, qr/version 0 .*downloadsctl migrate/, 'shop', 'list');
    ok(!-e $params{params}, 'reading creates no database') if $params{driver} eq 'sqlite3';
    check_finds('database', qr/downloadsctl migrate/, 'the schema is missing');

    my $pending = succeeds_json('migrate', '--dry-run');
    is_deeply($pending->[0], { version => 1, name => 'schema', runs_with => 1 },
        'a dry run lists the migrations');
    ok(!-e $params{params}, 'and creates no database') if $params{driver} eq 'sqlite3';
    refuses(3, qr/version 0/, 'shop', 'list');

    my $applied = succeeds_json('migrate');
    is($applied->{applied}, scalar @$pending, 'that are then applied');
    like(ctl('migrate', '--dry-run')->{out},
        qr/^Nothing to apply; .*version $applied->{version}\.$/,
        'after which nothing is left');
    cmp_ok($applied->{applied}, '>', 0, 'migrations are applied');
    cmp_ok($applied->{version}, '>=', $applied->{applied}, 'the version is printed');
    like(ctl('migrate')->{out}, qr/^Applied 0 migrations; .*version $applied->{version}\.$/,
        'a second run does nothing');

    my $later = 'INSERT INTO schema_migration (version, name, fingerprint, build, runs_with, '
        . 'applied_at) VALUES (999, ';
    sql("${later}'later', '', '0.9', $applied->{version}, 0)");
    succeeds_json('shop', 'list');
    like(ctl('migrate')->{out}, qr/^Applied 0 migrations; .*version 999\.$/,
        'a newer schema that this program runs on is left alone');
    sql("UPDATE schema_migration SET runs_with = 999 WHERE version = 999");
    refuses(3, qr/too new .*version 999, .* 0\.9, .*newer installation/, @$_)
        for [ 'shop', 'list' ], ['migrate'];
    check_finds('database', qr/too new .*version 999/, 'the schema is too new');
    sql('DELETE FROM schema_migration WHERE version = 999');

    sql(q{UPDATE schema_migration SET fingerprint = 'other' || fingerprint});
    refuses(3, qr/other migrations .*empty database/, @$_) for [ 'shop', 'list' ], ['migrate'];
    check_finds('database', qr/other migrations/, 'the schema is of another build');
    sql('UPDATE schema_migration SET fingerprint = substr(fingerprint, 6)');
    return;
}

# What the commands before have changed; the user is the one that runs the suite.
sub test_audit
{
    my ($shop) = @_;
    my $user  = $ENV{SUDO_USER} // getpwuid $<;
    my $all   = succeeds_json('audit', '--limit', 10000);
    my ($add) = grep { ($_->{shop_id} // 0) == $shop } reverse @$all;
    like(delete $add->{created_at}, $TIME, 'an entry has a time');
    delete $add->{id};
    is_deeply($add, { shop_id => $shop, noun => 'shop', noun_id => "$shop", action => 'created',
        via => 'command', user => $user,
            key_id => undef, key_name => undef, request_id => undef, detail => undef },
        'the audit says who added the shop');
    is(scalar(grep { $_->{user} ne $user || $_->{via} ne 'command' } @$all), 0,
        'each entry has its user');
    my %count;
    $count{"$_->{noun} $_->{action}"}++ for @$all;
    is_deeply([ sort keys %count ], [
            'api_key created', 'api_key revoked', 'job retried', 'member asked', 'member deleted',
            'member saved',
            map { "shop $_" } qw(approved blocked changed created suspended unblocked),
        ], 'each kind of change is there');
    is($count{'api_key revoked'}, 1, 'once');
    is($count{'job retried'}, 1, 'a command that was refused is not');
    is($count{'shop blocked'}, 1, 'a change that takes several transactions is one entry');
    my ($retry) = grep { $_->{noun} eq 'job' } @$all;
    is_deeply([ @$retry{qw(shop_id noun_id)} ], [ $shop, 'job_001' ],
        'of a job, whose shop is noted');
    my ($revoked) = grep { $_->{action} eq 'revoked' } @$all;
    my ($key) = grep { $_->{noun} eq 'api_key' && $_->{detail} }
        grep { $_->{noun_id} eq $revoked->{noun_id} } @$all;
    is_deeply([ $revoked->{shop_id}, $key->{detail} ], [ $shop, 'one' ],
        'of a key, whose shop and name are');
    is((grep { $_->{action} eq 'blocked' } @$all)[0]{detail}, 'Complaints',
        'of a block, whose reason is');
    my ($member) = reverse grep { $_->{noun} eq 'member' } @$all;
    is_deeply([ @$member{qw(shop_id noun_id detail)} ], [ $shop, 'ada', 'owner' ],
        'of a member, whose role is');
    my ($operator) = grep { $_->{noun_id} eq 'root@example.com' } @$all;
    is($operator->{shop_id}, undef, 'of an operator, who belongs to no shop');
    unlike(join(' ', map { $_->{detail} // () } @$all), qr/example|shpat|Caf/,
        'no detail has an address or a token');
    is(scalar(grep { $_->{detail} eq 'sender_name, mail_delay' } grep { defined $_->{detail} }
        @$all), 2, 'but which options were set');

    is_deeply(succeeds_json('audit', '--shop', $shop, '--limit', 10000),
        [ grep { ($_->{shop_id} // 0) == $shop } @{ succeeds_json('audit', '--limit', 10000) } ],
        'or those of a shop');
    is(scalar @{ succeeds_json('audit', '--limit', 3) }, 3, 'as many as were asked for');
    like(ctl('audit', '--limit', 1)->{out}, qr/^CREATED AT .*\n.*\n\(there are older ones/,
        'the text says that there are more');
    refuses_json(4, 'not_found', 'audit', '--shop', 999);
    refuses(1, qr/from 1 to 10000, not "$_"/, 'audit', '--limit', $_) for 0, 10001, 'x';
    sql("INSERT INTO audit (shop_id, noun, action, via, user_name, created_at) "
        . "VALUES ($shop, 'shop', 'changed', 'command', '\e[2J', 0)");
    unlike(ctl('audit', '--limit', 1)->{out}, qr/\e/,
        'what would steer a terminal is not printed as it is');
    {
        local $ENV{SUDO_USER} = 'Zoë';
        ctl('shop', 'approve', $shop);
        $ENV{SUDO_USER} = "z\xff";
        ctl('shop', 'suspend', $shop);
    }
    is_deeply([ map { $_->{user} } @{ succeeds_json('audit', '--limit', 2) } ],
        [ scalar getpwuid $<, "Zo\x{eb}" ],
        'with sudo it is the user who ran that, if it is a name');
    sql("INSERT INTO audit (shop_id, noun, action, via, created_at) VALUES " . join ', ',
        ("($shop, 'shop', 'changed', 'command', 0)") x 60);
    is(scalar @{ succeeds_json('audit') }, 50, 'fifty are shown unless it is said');
    return;
}

# Who may open a shop's settings, and as what.
sub test_members
{
    my ($id) = @_;
    like(ctl('member', 'list')->{out}, qr/^There is no member\.$/, 'at first nobody is a member');
    is(succeeds_json('member', 'add', 'ada', 'owner', '--shop', $id)->{role}, 'owner',
        'an owner is added');
    is(succeeds_json('member', 'add', 'ada', 'staff', '--shop', $id)->{role}, 'staff',
        'the role is changed');
    is(succeeds_json('member', 'add', 'root@example.com', 'operator')->{shop_id}, undef,
        'an operator has no shop');
    is_deeply([ map { "$_->{user} $_->{role}" } @{ succeeds_json('member', 'list') } ],
        [ 'root@example.com operator', 'ada staff' ], 'all are listed, operators first');
    is_deeply([ map { $_->{user} } @{ succeeds_json('member', 'list', '--shop', $id) } ], ['ada'],
        'or those of a shop');
    refuses(5, qr/every shop/, 'member', 'add', 'ada', 'operator', '--shop', $id);
    refuses(5, qr/every shop/, 'member', 'add', 'ada', 'owner');
    refuses(1, qr/read-only, staff, owner or operator/, 'member', 'add', 'ada', 'boss',
        '--shop', $id);
    refuses(4, qr/no such shop/, 'member', 'add', 'ada', 'owner', '--shop', 999);
    refuses(5, qr/too long: shorten it to 63/, 'member', 'add', 'x' x 256, 'owner', '--shop', $id);
    refuses(5, qr/in one line/, 'member', 'add', "a\nb", 'owner', '--shop', $id);
    sql("INSERT INTO member (user_name, shop_id, role, created_at) VALUES "
            . join ', ', map { "('user$_', $id, 'staff', 0)" } 1 .. 99);
    refuses(5, qr/at most 100 members/, 'member', 'add', 'one-more', 'staff', '--shop', $id);
    is(ctl('member', 'add', 'user7', 'owner', '--shop', $id)->{code}, 0,
        'a full shop can change a role');
    my $owner = 'user1@example.com';
    sql("DELETE FROM member WHERE user_name = 'user1'");
    like(ctl('member', 'add', $owner, 'owner', '--shop', $id)->{out},
        qr/: owner\. The address gets the shop's emails once the link that was sent/,
        'an owner with an address is asked to confirm it');
    is_deeply([ map { $_->{email} } grep { $_->{user} =~ /^user[12](@|$)/ }
        @{ succeeds_json('member', 'list', '--shop', $id) } ], [qw(asked none)],
        'the list says so');
    is(ctl('member', 'ask', $owner, '--shop', $id)->{out},
        "$owner is sent a link to confirm the address.\n", 'it can be asked again');
    refuses(4, qr/no address of the shop or its staff/, 'member', 'ask', 'user2',
        '--shop', $id);
    refuses(4, qr/no address of the shop or its staff/, 'member', 'ask', $owner);
    is(ctl('member', 'remove', 'ada', '--shop', $id)->{out}, "ada is removed.\n",
        'a member is removed');
    refuses(4, qr/no such member/, 'member', 'remove', 'ada', '--shop', $id);
    refuses(4, qr/no such member/, 'member', 'remove', 'ada');
    is(ctl('member', 'remove', 'root@example.com')->{code}, 0, 'an operator is removed');
    sql('DELETE FROM member');
    return;
}

sub test_check
{
    check_finds('worker', qr/No background process of this host/, 'there was none');
    # As that of an httpd beats, for as long as this script may take.
    my ($host, $build) = (Sys::Hostname::hostname(), json('--version')->{json}{build});
    sql("INSERT INTO node (host, pid_file, pid, build, beat_at) VALUES ('$host', '/run/httpd.pid', "
            . "$$, '$build', "
            . (int(time) + 86400) . '000000)');
    my $document = succeeds_json('check');
    ok($document->{ok}, 'a good installation has no problem');
    is(join(' ', map { $_->{name} } @{ $document->{checks} }),
        'version settings httpd secret database storage files templates imports mail '
            . 'bounces worker', 'there are twelve checks');
    my $text = ctl('check');
    is(scalar(() = $text->{out} =~ /: ok$/mg), 12, 'each line of the text ends in ok')
        or diag($text->{out});
    return;
}

# The token may be readable by root alone, so it comes from a file or a pipe, never from the command
# line.
sub test_storefront
{
    my ($id) = @_;
    my $token = 'shpat_0123456789';
    my @file = ('--storefront-token-file', write_file("$temp/token", "$token\r\n", 0600));
    my $set = ctl('shop', 'set', $id, '--storefront', 'https://Shop.example/', @file);
    is($set->{code}, 0, 'a storefront is set');
    like($set->{out}, qr{its storefront is https://Shop\.example\.$}, 'the text names it');
    unlike("$set->{out}$set->{err}", qr/shpat/, 'the text does not show the token');
    my $sealed = sub { return (sql("SELECT storefront_token FROM shop WHERE id = $id"))[0] // '' };
    my $before = $sealed->();
    like($before, qr/^v1\./, 'the token is stored sealed');
    open my $stdin, '<&', \*STDIN or die $!;
    open STDIN, '<', "$temp/token" or die $!;
    is(ctl('shop', 'set', $id, '--storefront-token-file', '-')->{code}, 0,
        'the token can be read from standard input');
    open STDIN, '<&', $stdin or die $!;
    isnt($sealed->(), $before, 'the new token replaces the former one');
    refuses(5, qr/needs its access token too/, 'shop', 'set', $id, '--storefront',
        'https://b.example');
    refuses(5, qr/visible ASCII/, 'shop', 'set', $id, '--storefront-token-file',
        write_file("$temp/bad", "a\0b", 0600));
    refuses(1, qr/too large/, 'shop', 'set', $id, '--storefront-token-file',
        write_file("$temp/bad", 'x' x 5000, 0600));
    refuses(1, qr/can't be read/, 'shop', 'set', $id, '--storefront-token-file', "$temp/none");
    is(succeeds_json('shop', 'set', $id, '--storefront', '')->{storefront_url}, undef,
        'an empty value disconnects the storefront');
    return;
}

sub test_shops
{
    is(ctl('shop', 'list')->{out}, "There is no shop yet.\n",
        'the list without a shop is a sentence');
    is_deeply(succeeds_json('shop', 'list'), [],
        'the list without a shop is an empty array with --json');
    is(ctl('audit')->{out}, "Nothing was changed yet.\n", 'the audit is empty then');

    my $shop = succeeds_json('shop', 'add', "\xef\xbb\xbfCafé Ä\xc2\xa0", ' a.example', '--email',
        "help\@a.example\n");
    like(delete $shop->{created_at}, $TIME, 'a shop has a time');
    my $id = $shop->{id};
    is_deeply(
        $shop,
        {   id     => $id,
            name   => "Caf\x{e9} \x{c4}",
            domain => 'a.example',
            email  => 'help@a.example',
            email_state => 'asked',
            status => 'pending',
            sender_name => undef,
            reply_to    => undef,
            withdrawal_url => undef,
            mail_delay  => 0,
            hold_at     => 'high',
            declaration => 'off',
            help_requests => 'on',
            default_download_limit => undef,
            default_access_days    => undef,
            languages              => undef,
            storefront_url => undef,
            blocked_at     => undef,
            block_reason   => undef,
        },
        'a shop has the given values'
    );
    like(ctl('shop', 'add', '--', '-x-', 'b.example')->{out},
        qr/^Shop \d+ \(-x-\) waits for approval/, 'the text says what comes next');
    is(succeeds_json('shop', 'list')->[1]{email}, undef, 'a missing email is null');
    like(ctl('shop', 'list')->{out}, qr/^ID  NAME    DOMAIN .*\n +1  Café Ä  a\.example /,
        'the table is aligned by characters, not bytes');

    is(succeeds_json('shop', 'block', $id, '--reason', 'Complaints')->{block_reason}, 'Complaints',
        'a shop is blocked');
    is(succeeds_json('shop', 'unblock', $id)->{blocked_at}, undef, 'and not any more');

    my $set = succeeds_json('shop', 'set', $id, '--sender-name', 'A & B', '--mail-delay', 15);
    is_deeply([ @$set{qw(sender_name reply_to mail_delay hold_at)} ],
        [ 'A & B', undef, 15, 'high' ], 'given values are set');
    $set = succeeds_json('shop', 'set', $id, '--reply-to', 're@a.example', '--hold-at', 'medium');
    is_deeply([ @$set{qw(sender_name reply_to mail_delay hold_at)} ],
        [ 'A & B', 're@a.example', 15, 'medium' ], 'the other values are kept');
    is(succeeds_json('shop', 'set', $id, '--declaration', $_)->{declaration}, $_,
        "the declaration is $_") for qw(on off);
    is(succeeds_json('shop', 'set', $id, '--help-requests', $_)->{help_requests}, $_,
        "help is $_") for qw(off first_by_itself on);
    $set = succeeds_json('shop', 'set', $id, '--sender-name', '', '--mail-delay', 0);
    is_deeply([ @$set{qw(sender_name mail_delay)} ], [ undef, 0 ], 'an empty value clears a value');
    my @defaults = qw(default_download_limit default_access_days languages);
    $set = succeeds_json('shop', 'set', $id, '--default-download-limit', 0,
        '--default-access-days', 365, '--languages', 'de, EN');
    is_deeply([ @$set{@defaults} ], [ 0, 365, 'de,EN' ], 'defaults and languages are set');
    $set = succeeds_json('shop', 'set', $id, '--default-download-limit', 7);
    is_deeply([ @$set{@defaults} ], [ 7, 365, 'de,EN' ], 'each alone');
    $set = succeeds_json('shop', 'set', $id, map { ($_ => '') } '--default-download-limit',
        '--default-access-days', '--languages');
    is_deeply([ @$set{@defaults} ], [ undef, undef, undef ], 'and cleared');
    $set = succeeds_json('shop', 'set', $id, '--name', 'Cafe Oil', '--email', 'new@a.example');
    is_deeply([ @$set{qw(name email reply_to)} ], [ 'Cafe Oil', 'new@a.example', 're@a.example' ],
        'a shop can get another name and email');
    is(succeeds_json('shop', 'set', $id, '--email', '')->{email}, undef,
        'an empty email clears it');
    is(succeeds_json('shop', 'list')->[0]{name}, 'Cafe Oil', 'the list shows the new name');
    refuses(1, qr/usage: downloadsctl shop set ID \[--name/, 'shop', 'set', $id);
    like(ctl('shop', 'set', $id, '--name', 'Café Ä')->{out},
        qr/emails\ from\ "Café\ Ä",\ answered\ to\ re\@a\.example,\ sent\ after\ 0\ min;
            \ orders\ are\ held\ at\ medium/x,
        'the text shows the settings of emails and orders');
    refuses_json(4, 'not_found',       'shop', 'set', 999, '--mail-delay', 1);
    refuses_json(5, 'invalid_reply_to', 'shop', 'set', $id, '--reply-to',    'nobody');
    refuses_json(5, 'invalid_sender_name', 'shop', 'set', $id, '--sender-name', "a\r\nBcc: b");
    refuses_json(5, 'invalid_email', 'shop', 'set', $id, '--email',       'nobody');
    refuses_json(5, 'invalid_shop_name', 'shop', 'set', $id, '--name',        '');
    refuses_json(5, 'invalid_languages', 'shop', 'set', $id, '--languages',   '1');
    refuses(1, qr/from 0 to 1000000, not "$_"/, 'shop', 'set', $id, '--default-download-limit', $_)
        for '-1', '1000001', 'x';
    refuses(1, qr/from 1 to 36500, not "$_"/, 'shop', 'set', $id, '--default-access-days', $_)
        for 0, 36501, '1.5';
    refuses(1, qr/0 to 60, not "61"/,        'shop', 'set', $id, '--mail-delay', 61);
    refuses(1, qr/on or off, not "yes"/, 'shop', 'set', $id, '--declaration', 'yes');
    refuses(1, qr/first_by_itself, not "yes"/, 'shop', 'set', $id, '--help-requests', 'yes');
    refuses(1, qr/medium or high, not "low"/, 'shop', 'set', $id, '--hold-at',    'low');
    test_storefront($id);

    refuses(5, qr/domain already/, 'shop', 'add', 'C', 'a.example');
    refuses_json(5, 'domain_taken', 'shop', 'add', 'C', 'a.example');
    refuses_json(5, 'invalid_shop_name', 'shop', 'add', '',  'c.example');
    refuses_json(5, 'invalid_domain', 'shop', 'add', 'C', 'Not A Host');
    refuses_json(5, 'invalid_email', 'shop', 'add', 'C', 'c.example', '--email', 'nobody');
    refuses(4, qr/no such shop/, 'shop', $_, 999) for qw(approve suspend);
    refuses_json(4, 'not_found', 'shop', 'approve', '9007199254740991');

    refuses_json(5, 'invalid_shop_name', 'shop', 'add', "\e[2Jwiped\nout", 'esc.example');
    return $id;
}

# A shop with its first key, by one command: all of it or nothing.
sub test_shop_with_key
{
    my @add = ('shop', 'add', 'K', 'k.example', '--key');
    refuses_json(5, 'invalid_key_name', @add, '');
    is(scalar(grep { $_->{domain} eq 'k.example' } @{ succeeds_json('shop', 'list') }), 0,
        'without a good name for its key there is no shop');
    my $made = succeeds_json(@add, 'order system');
    like($made->{token}, qr/\A$TOKEN\z/, 'a shop is added with a key');
    my $id = $made->{key}{shop_id};
    is((grep { $_->{id} == $id } @{ succeeds_json('shop', 'list') })[0]{status}, 'approved',
        'and is approved');
    is_deeply([ map { [ @$_{qw(name scope)} ] } @{ succeeds_json('key', 'list', $id) } ],
        [ [ 'order system', 'full' ] ], 'the key is a full one, of the given name');
    is_deeply([ map { [ @$_{qw(noun noun_id action detail)} ] }
                @{ succeeds_json('audit', '--shop', $id) } ],
        [ [ 'api_key', $made->{key}{id}, 'created', 'order system' ],
            map { [ 'shop', "$id", $_, undef ] } qw(approved created) ],
        'the audit has the three steps');
    like(ctl('shop', 'add', 'L', 'l.example', '--key', 'k')->{out},
        qr/\AKey \w+ of shop \d+\. .*\n$TOKEN\n\z/, 'the text has the shop and the token');
    return;
}

sub test_keys
{
    my ($shop) = @_;
    refuses(5, qr/approved/, 'key', 'create', $shop, 'early');
    refuses_json(5, 'shop_not_approved', 'key', 'create', $shop, 'early');
    is(succeeds_json('shop', 'approve', $shop)->{status}, 'approved', 'the shop is approved');

    my $made = succeeds_json('key', 'create', $shop, 'one', '--scope', 'read', '--expires', 600);
    like($made->{token}, qr/^$TOKEN$/, 'the output has a token');
    like($made->{token}, qr/_$made->{key}{id}_/, "the token has the key's id");
    is($made->{key}{scope}, 'read', 'the key has its scope');
    like($made->{key}{expires_at}, $TIME, 'the key has its end');

    my $text = ctl('key', 'create', $shop, 'two');
    is(scalar(() = $text->{out} =~ /^$TOKEN$/mg), 1, 'the text has the token alone on a line');
    like($text->{out}, qr/Store its token now/, 'the text advises to store the token');

    ctl('key', 'create', $shop, "key $_") for 3 .. 10;
    refuses(5, qr/10 live keys/, 'key', 'create', $shop, 'eleventh');
    refuses_json(5, 'too_many_keys', 'key', 'create', $shop, 'eleventh');
    my $keys = json('key', 'list', $shop);
    is(scalar @{ $keys->{json} }, 10, 'ten keys are listed');
    is($keys->{json}[1]{$_}, undef, "$_ of a new key is null")
        for qw(last_used_at expires_at revoked_at);
    is($keys->{json}[1]{scope}, 'full', 'the scope is full unless given');
    my ($secret) = $made->{token} =~ /_([0-9A-Za-z]{43})[0-9A-Za-z]{6}$/;
    unlike($_, qr/adk_live|\Q$secret\E/, 'no list shows a token')
        for $keys->{out}, ctl('key', 'list', $shop)->{out};

    my $since   = time;
    my $revoked = succeeds_json('key', 'revoke', $made->{key}{id});
    cmp_ok(time - $since, '>=', 1, 'revoking returns once no cache has the key');
    like($revoked->{revoked_at}, $TIME, 'the time of the revocation is returned');
    is(ctl('key', 'create', $shop, 'eleventh')->{code}, 0, 'another key can be created after that');

    refuses_json(4, 'not_found',       'key', 'create', 999,   'k');
    refuses_json(4, 'not_found',       'key', 'list',   999);
    refuses_json(4, 'not_found',       'key', 'revoke', 'nonesuch');
    refuses_json(5, 'already_revoked', 'key', 'revoke', $made->{key}{id});
    refuses_json(5, 'invalid_key_name', 'key', 'create', $shop, '');

    $since = time;
    is(succeeds_json('shop', 'suspend', $shop)->{status}, 'suspended', 'the shop is suspended');
    cmp_ok(time - $since, '>=', 1, 'suspending also returns once no cache has its keys');
    refuses_json(5, 'shop_not_approved', 'key', 'create', $shop, 'late');
    return;
}

sub add_job
{
    my ($shop, $id, $status, $due_s) = @_;
    my $now = int(time * 1_000_000);
    my $due = defined $due_s ? $now + $due_s * 1_000_000 : 'NULL';
    sql('INSERT INTO job (id, shop_id, type, lane, source_url, status, attempts, max_attempts,'
            . ' due_at, lease_token, bytes_received, error_code, error_message, created_at, '
            . 'updated_at)'
            . " VALUES ('$id', $shop, 'asset_import', 'bulk', 'https://s.example/f.zip?sig=SECRET',"
            . " '$status', 5, 5, $due, 5, 1000, 'source_timeout', 'Too slow.', $now, $now)");
    return;
}

# job_003 to job_059, each second of them, have failed before.
sub test_retry_failed
{
    my ($shop) = @_;
    my $failed = sub { return scalar @{ succeeds_json('job', 'list', '--status', 'failed') } };
    refuses(1, qr/usage: downloadsctl job retry ID or downloadsctl job retry --failed/, 'job',
        'retry', @$_)
        for [], [ '--shop', 1 ], [ 'job_003', '--failed' ];
    refuses(1, qr/--type is asset_import, /, 'job', 'retry', '--failed', '--type', $_)
        for 'import', 'unknown';
    refuses(1, qr/--since is a time/, 'job', 'retry', '--failed', '--since', 'yesterday');
    refuses_json(4, 'not_found', 'job', 'retry', '--failed', '--shop', 999);
    my $other = succeeds_json('shop', 'add', 'Other', 'retry.example')->{id};
    is_deeply(succeeds_json('job', 'retry', '--failed', @$_),
        { retried => 0, refused => 0, refusals => [] }, "'@$_': what does not fit is not tried")
        for [ '--shop', $other ], [ '--type', 'email' ], [ '--since', '2099-01-01T00:00:00Z' ];
    is($failed->(), 29, 'and stays failed');
    sql("UPDATE job SET finished_at = 1000000 WHERE id < 'job_010'");
    is(succeeds_json('job', 'retry', '--failed', '--since', '2000-01-01T00:00:00+02:00', '--shop',
        $shop)->{retried}, 25,
        'those that failed since a time are queued');
    sql("UPDATE job SET asset_id = 999999 WHERE id = 'job_003'") if $params{driver} eq 'sqlite3';
    like(ctl('job', 'retry', '--failed', '--type', 'asset_import')->{out},
        $params{driver} eq 'sqlite3'
        ? qr/^Job\ job_003\ is\ not:\ The\ job's\ asset\ was\ deleted\.
            \n3\ jobs\ are\ queued\ again,\ 1\ refused\.$/x
        : qr/^4 jobs are queued again, 0 refused\.$/,
        'those that are left follow, and one that must not be is told');
    is($failed->(), $params{driver} eq 'sqlite3' ? 1 : 0, 'it has changed nothing');
    sql("UPDATE job SET asset_id = NULL, status = 'queued' WHERE id = 'job_003'");
    is((sql("SELECT count(*) FROM job WHERE status = 'queued' AND attempts = 0"))[0],
        $params{driver} eq 'sqlite3' ? 29 : 30, 'each has all of its attempts');
    is((sql("SELECT count(*) FROM audit WHERE noun = 'job' AND action = 'retried' "
        . "AND shop_id = $shop"))[0],
        $params{driver} eq 'sqlite3' ? 29 : 30, 'and an entry in the audit');
    sql('INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, lease_token, '
            . 'bytes_received, created_at) WITH RECURSIVE newer (n) AS (SELECT 2001 UNION ALL '
            . 'SELECT n + 1 FROM newer WHERE n < 2250)'
            . " SELECT 'job_' || n, $shop, 'email', 'mail', 'failed', 5, 5, 0, 0, 0 FROM newer");
    is(succeeds_json('job', 'retry', '--failed')->{retried}, 250, 'however many there are');
    my $later = int(time * 1_000_000) + 3_600_000_000;
    sql("UPDATE job SET attempts = 1, due_at = $later WHERE id BETWEEN 'job_2001' AND 'job_2003'");
    sql("UPDATE job SET due_at = $later WHERE id = 'job_2004'");
    sql("UPDATE job SET attempts = 1, due_at = $later, lane = 'blocked-mail' "
        . "WHERE id = 'job_2005'");
    sql("UPDATE job SET attempts = 1, due_at = $later WHERE id = 'job_005'");
    my $entries = scalar @{ succeeds_json('audit', '--limit', 10000) };
    is(succeeds_json('mail', 'flush')->{flushed}, 3,
        'emails that wait for another attempt are flushed');
    is(join(' ', sql("SELECT id FROM job WHERE due_at = $later ORDER BY id")),
        'job_005 job_2004 job_2005',
        'no other job, none that waits for its first attempt, and none of a blocked shop');
    is(ctl('mail', 'flush')->{out}, "0 emails do not wait any longer.\n",
        'nothing is left to flush');
    is(scalar @{ succeeds_json('audit', '--limit', 10000) }, $entries + 1,
        'what changes nothing is not in the audit');
    sql("DELETE FROM audit WHERE noun = 'email' OR noun_id LIKE 'job%' AND noun_id <> 'job_001' "
        . "OR shop_id = $other");
    sql("DELETE FROM shop WHERE id = $other");
    return;
}

sub test_jobs
{
    my ($shop) = @_;
    is_deeply([ grep { $_->{type} ne 'staff_email' } @{ succeeds_json('job', 'list') } ], [],
        'there is no job yet, but for questions to addresses');
    sql("DELETE FROM job");
    add_job($shop, sprintf('job_%03d', $_), $_ % 2 ? 'failed' : 'succeeded') for 1 .. 60;
    add_job($shop, 'job_100', 'running', 86_400);

    my $jobs = succeeds_json('job', 'list');
    is(scalar @$jobs, 50, 'fifty jobs are listed');
    is($jobs->[0]{id}, 'job_100', 'the newest job is first');
    like(ctl('job', 'list')->{out},
        qr/^ID\ .*\njob_100\ .*\n50\ of\ 61\ jobs;
            \ in\ all\ 0\ queued,\ 1\ running,\ 30\ succeeded,\ 30\ failed,\ 0\ cancelled$/sx,
        'the text says how many there are');
    like(ctl('job', 'list', '--status', 'failed', '--limit', 1)->{out},
        qr/^ID .*\njob_059 .*\n1 of 30 failed jobs; in all 0/, 'and how many of a status');
    is(scalar @{ succeeds_json('job', 'list', '--limit', 61) }, 61,
        'as many are listed as were asked for');
    refuses(1, qr/--limit is a whole number from 1 to 10000/, 'job', 'list', '--limit', 0);
    my $failed = succeeds_json('job', 'list', '--status', 'failed');
    is(scalar(grep { $_->{status} eq 'failed' } @$failed), 30,
        'the filter by status looks at all jobs');
    is(scalar @$failed, 30, 'no other jobs are listed');
    sql('INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, lease_token, '
            . 'bytes_received, created_at) WITH RECURSIVE newer (n) AS (SELECT 2001 UNION ALL '
            . 'SELECT n + 1 FROM newer WHERE n < 4500)'
            . " SELECT 'job_' || n, $shop, 'webhook', 'webhook', 'queued', 0, 5, 0, 0, "
            . "0 FROM newer");
    is_deeply([ map { $_->{id} } @{ succeeds_json('job', 'list', '--status', 'failed', @$_) } ],
        [ map { $_->{id} } @$failed ], 'however many newer ones there are')
        for [], [ '--shop', $shop ];
    is_deeply(succeeds_json('job', 'list', '--status', 'cancelled'), [],
        'what is not there is not found');
    is(scalar @{ succeeds_json('job', 'list', '--status', 'queued') }, 50,
        'no more than fifty are listed');
    sql("DELETE FROM job WHERE type = 'webhook'");
    is_deeply(succeeds_json('job', 'list', '--shop', $shop + 1), [], 'another shop has no jobs');
    refuses_json(4, 'not_found', 'job', 'list', '--shop', 999);

    my $job = json('job', 'show', 'job_001');
    is($job->{json}{error_code},  'source_timeout', 'a job shows its error');
    is($job->{json}{bytes_total}, undef,            'an unknown size is null');
    is($job->{json}{source_url},  'https://s.example/f.zip?***',
        'its source is shown without the query');
    unlike($_->{out}, qr/SECRET/, 'no signed URL is printed')
        for $job, ctl('job', 'show', 'job_001'), json('job', 'list');
    like(ctl('job', 'show', 'job_001')->{out}, qr/^status +failed$/m,
        'the text has one line for each field');

    my $again = succeeds_json('job', 'retry', 'job_001');
    is_deeply([ @$again{qw(status attempts error_code)} ], [ 'queued', 0, undef ],
        'a failed job is queued with all of its attempts');
    refuses_json(5, 'job_finished',  'job', 'retry', 'job_002');
    refuses_json(5, 'job_finished',  'job', 'retry', 'job_100');
    refuses_json(4, 'job_not_found', 'job', $_,      'job_nope') for qw(retry show);

    test_retry_failed($shop);
    is(json('check')->{code}, 0, 'a job that is due is not a problem');
    add_job($shop, 'job_101', 'queued', -120);
    is(json('check')->{code}, 0,
        'a job that waits while a worker has another job is not a problem');
    sql("DELETE FROM job WHERE id = 'job_100'");
    check_finds('worker', qr/No background process seems to take jobs.*bulk/,
        'a job has waited too long');
    for my $lane (qw(small hash mail lookup)) {
        sql("UPDATE job SET lane = '$lane' WHERE id = 'job_101'");
        check_finds('worker', qr/No background process seems to take jobs.*$lane/,
            "a job in the lane $lane has waited too long");
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
    test_members($shop);
    test_jobs($shop);
    test_audit($shop);
    test_shop_with_key();
    return;
}

subtest 'all commands on SQLite' => sub {
    fresh('sqlite3');
    test_database();

    my $mode = (stat $params{params})[2] & 0777;
    is($mode & 07, 0, "the database's file is not accessible to others");
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
        system(MDL::Database::psql(), $server, '-qX', '-c', "CREATE DATABASE $name") == 0
            or die 'no database';
        test_database();
        $conf = configure(DBDParams => qq("host=$dir user=x dbname=x connect_timeout=2"));
        refuses(3, qr/out of reach/, 'shop', 'list');
        refuses_json(3, 'database_unavailable', 'migrate');
        check_finds('database', qr/out of reach/, 'the server is down');
    };
    system(MDL::Database::psql(), $server, '-qX', '-c', "DROP DATABASE $name WITH (FORCE)");
}

done_testing();
