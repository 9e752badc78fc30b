# The tab of API keys: the base address, a new key, whose token is shown once, and its end.
#
# once: the form calls what the API and downloadsctl call on both databases
use strict;
use warnings;

use MDL::Settings;
use MDL::Test;
use Test::More;

# Bodies that come late are waited for, however busy the machine is.
my $server = settings_server(extra => "RequestReadTimeout body=0\n");
my $shop   = new_shop(name => 'Books & <i>Bytes</i>');
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
told('member', 'add', 'operator', 'operator');

sub keys_of { return told('key', 'list', $id) }

# A request that the server has let in and whose body it waits for; returns a function that sends
# the body and returns the answer.
sub begun
{
    my ($path, $body, @headers) = @_;
    my $socket = MDL::Test::connection();
    print $socket join "\r\n", "POST $path HTTP/1.1", 'Host: localhost', 'Expect: 100-continue',
        'Connection: close', 'Content-Length: ' . length $body, @headers, '', '';
    $socket->flush;
    my $line = <$socket>;
    die "$path: $line" if $line !~ m{^HTTP/1\.1 100 };
    <$socket>;
    return sub { print $socket $body; $socket->flush; return MDL::Test::read_all($socket, 120) };
}

# --- the page ------------------------------------------------------------------------------------

my $page = visit('owner', 'GET', "/$id/keys");
is($page->{status}, 200, 'an owner sees the keys');
like($page->{body}, qr{<code[^>]*>\Q${\ base_url() }\E</code>}, 'the page shows the base address');
like($page->{body}, qr/Books &amp; &lt;i&gt;Bytes/, 'and the name of the shop, escaped');
like($page->{body}, qr/Signed in as <bdi>owner</, 'and who is signed in');
is($page->{headers}{'cache-control'}, 'private, no-store', 'no cache keeps it');
is($page->{headers}{'referrer-policy'}, 'same-origin', 'other sites learn no address');
unlike($page->{headers}{'content-security-policy'}, qr/unsafe/,
    'its policy allows nothing by its place');
like($page->{headers}{'content-security-policy'},
    qr/script-src(?: 'sha256-[^']+')+; form-action 'self'; base-uri 'none'; frame-ancestors 'none'/,
    'but its own scripts by their hashes');
my $german = visit('owner', 'GET', "/$id/keys",
    headers => { 'accept-language' => 'de-AT, en;q=0.5' });
like($german->{body}, qr/<html lang="de"[^>]*>.*Basisadresse/s, 'and there is a German one');
is($german->{headers}{'content-language'}, 'de', 'which says so');

# --- a key ---------------------------------------------------------------------------------------

my $made = submit('owner', $page, "/$id/keys",
    { name => '  Orders  ', scope => 'full', expires => '' });
is($made->{status}, 200, 'a key is created') or diag $made->{body};
my ($token) = $made->{body} =~ /(adk_live_\w+)/;
is(api('GET', '/ping', key => $token)->{json}{shop}{id}, $id, 'its token works');
is((grep { $_->{name} eq 'Orders' } @{ keys_of() })[0]{scope}, 'full',
    'its name has no spaces round it');
is(() = $made->{body} =~ /\Q$token\E/g, 2, 'the token is in the page, and in the call to try');
unlike(visit('owner', 'GET', "/$id/keys")->{body}, qr/\Q$token\E|\Q${\ substr $token, 26 }\E/,
    'the page of keys does not have it');

my $again = submit('owner', $page, "/$id/keys",
    { name => 'Orders', scope => 'full', expires => '' });
is($again->{status}, 409, 'the same form once more is refused');
like($again->{body}, qr/has taken effect once/, 'and says why');
unlike($again->{body}, qr/adk_live_/, 'without a token');
is(scalar(grep { $_->{name} eq 'Orders' } @{ keys_of() }), 1, 'there is one key');

$made = submit('owner', visit('owner', 'GET', "/$id/keys"), "/$id/keys",
    { name => 'Reports', scope => 'read', expires => '30' });
my ($reports) = grep { $_->{name} eq 'Reports' } @{ keys_of() };
is($reports->{scope}, 'read', 'a key may be one to read');
like($reports->{expires_at}, qr/^20\d\d-/, 'and expire');

my $faulty = submit('owner', visit('owner', 'GET', "/$id/keys"), "/$id/keys",
    { name => ('x' x 101), scope => 'read', expires => '90' });
is($faulty->{status}, 400, 'a name that is too long is refused');
like($faulty->{body}, qr/>This name is too long: shorten it to 25 characters\.</,
    'with a sentence');
like($faulty->{body}, qr/value="x{101}"/, 'and what was typed is still there');
like($faulty->{body}, qr/value="read" checked.*value="90" selected/s, 'all of it');
for my $field ([ scope => 'all' ], [ expires => '7' ], [ expires => '-1' ]) {
    my %fields = (name => 'Odd', scope => 'full', @$field);
    is(submit('owner', visit('owner', 'GET', "/$id/keys"), "/$id/keys", \%fields)->{status}, 400,
        "@$field is refused");
}

# --- its end -------------------------------------------------------------------------------------

my ($orders) = grep { $_->{name} eq 'Orders' } @{ keys_of() };
my $ask = visit('owner', 'GET', "/$id/keys/$orders->{id}/revoke");
like($ask->{body}, qr{Revoke the key <bdi>Orders</bdi>\?},
    'before a key is revoked, its name is asked for');
my $finish = begun('/api/v1/categories', '{"name":"Late"}', "Authorization: Bearer $token",
    'Idempotency-Key: late', 'Content-Type: application/json');
is(api('GET', '/ping', key => $token)->{status}, 200, 'the key is used up to its end');
my $revoked = submit('owner', $ask, "/$id/keys/$orders->{id}/revoke", {});
is(api('GET', '/ping', key => $token)->{status}, 401, 'the next request with it is refused');
is($revoked->{status}, 303, 'it is revoked');
like($finish->(), qr{^HTTP/1\.1 401 }, 'as is one whose body was still to come');
is_deeply([ sql("SELECT count(*) FROM category WHERE name = 'Late'") ], [ [0] ],
    'which has no effect');
like($revoked->{headers}{location}, qr{/settings/$id/keys\?done=key_revoked$}, 'and leads back');
like(visit('owner', 'GET', "/$id/keys?done=key_revoked")->{body},
    qr/role="status">The key is revoked/, 'where that is said');
unlike(visit('owner', 'GET', "/$id/keys")->{body}, qr{keys/$orders->{id}/revoke},
    'a revoked key can\'t be revoked again');
$ask = visit('owner', 'GET', "/$id/keys/$orders->{id}/revoke");
like($ask->{body}, qr{<h1>The key <bdi>Orders</bdi> is revoked already</h1>},
    'who asks for it is told');
unlike($ask->{body}, qr/<form method="post"/, 'without a form');
$revoked = submit('owner', visit('owner', 'GET', "/$id/keys"),
    "/$id/keys/$orders->{id}/revoke", {});
is($revoked->{status}, 409, 'a form for it is refused');
like($revoked->{body}, qr/The key is revoked already/, 'with a sentence');
is_deeply(
    [ sql("SELECT count(*) FROM audit WHERE noun_id = '$orders->{id}' AND action = 'revoked'") ],
    [ [1] ], 'and the audit has it once');

# --- who may -------------------------------------------------------------------------------------

my $other = new_shop();
my ($theirs) = @{ told('key', 'list', $other->{shop_id}) };
is(visit('owner', 'GET', "/$other->{shop_id}/keys")->{status}, 404, 'another shop is not there');
is(visit('owner', 'GET', '/999999/keys')->{status}, 404, 'as one that does not exist');
is(visit('nobody', 'GET', "/$id/keys")->{status}, 404, 'as the shop is not for somebody else');
is(visit(undef, 'GET', "/$id/keys")->{status}, 401, 'and nobody comes in without a name');
$ask = visit('owner', 'GET', "/$id/keys");
is(submit('owner', $ask, "/$id/keys/$theirs->{id}/revoke", {})->{status}, 404,
    'another shop\'s key can\'t be revoked');
is(told('key', 'list', $other->{shop_id})->[0]{revoked_at}, undef, 'and is not');
my %role = (staff => 'staff', reader => 'read-only');
for my $user (sort keys %role) {
    my $seen = visit($user, 'GET', "/$id/keys");
    is($seen->{status}, 200, "$user sees the keys");
    unlike($seen->{body}, qr/<form method="post"/, 'without a form');
    is(submit($user, own_form($user, $role{$user}, "/$id/keys"), "/$id/keys",
        { name => 'Mine', scope => 'full', expires => '' })->{status}, 403, 'and may not make one');
    is(visit($user, 'GET', "/$id/keys/$reports->{id}/revoke")->{status}, 403,
        'is not asked to revoke one');
    is(submit($user, own_form($user, $role{$user}, "/$id/keys"), "/$id/keys/$reports->{id}/revoke",
        {})->{status}, 403, 'and may not');
}
is(visit('operator', 'GET', "/$other->{shop_id}/keys")->{status}, 200,
    'an operator sees every shop');
{
    told('member', 'add', 'other', 'owner', '--shop', $id);
    my $late = begun("/settings/$id/keys", 'name=Late&scope=full&expires=&form_token='
        . form_token(visit('other', 'GET', "/$id/keys")), 'Authorization: '
        . {MDL::Settings::credentials('other')}->{authorization}, 'Origin: ' . origin(),
        'Content-Type: application/x-www-form-urlencoded');
    told('member', 'remove', 'other', '--shop', $id);
    like($late->(), qr{^HTTP/1\.1 403 }, 'who is removed while the form comes may not any more');
    is(scalar(grep { $_->{name} eq 'Late' } @{ keys_of() }), 0, 'and makes no key');
}

# --- forms of others -----------------------------------------------------------------------------

my $fields = { form_token => form_token($ask), name => 'Forged', scope => 'full', expires => '' };
for my $origin ('https://evil.example', 'null', origin() . '.evil.example', undef) {
    my $reply = visit('owner', 'POST', "/$id/keys", form => $fields,
        headers => { defined $origin ? (origin => $origin) : () });
    is($reply->{status}, 403, 'a form of the origin ' . ($origin // '(none)') . ' is refused');
}
for my $forged ('', 'x', form_token($ask) =~ s/^(.)/$1 eq '_' ? 'A' : '_'/er,
    form_token(visit('operator', 'GET', "/$id/keys"))) {
    is(submit('owner', $ask, "/$id/keys", { %$fields, form_token => $forged })->{status}, 403,
        'a token that the user was not shown is refused: ' . substr $forged, 0, 8);
}
is(visit('owner', 'POST', "/$id/keys", body => '{}',
    headers => { origin => origin(), 'content-type' => 'application/json' })->{status}, 415,
    'what is no form is refused');
is(visit('owner', 'DELETE', "/$id/keys")->{status}, 405, 'as are other methods');
is(scalar(grep { $_->{name} eq 'Forged' } @{ keys_of() }), 0, 'and none of it had an effect');

# --- members -------------------------------------------------------------------------------------

sub roles { return { map { $_->{user} => $_->{role} } @{ told('member', 'list', '--shop', $id) } } }

my $members = visit('owner', 'GET', "/$id/members");
like($members->{body}, qr{<bdi>owner<.*<bdi>reader<.*<bdi>staff<}s, 'an owner sees the members');
is(submit('owner', $members, "/$id/members", { user => ' nobody ', role => 'staff' })->{status},
    303, 'adds one');
is(roles()->{nobody}, 'staff', 'with a role');
is(visit('nobody', 'GET', "/$id/keys")->{status}, 200, 'who can come in');
is(submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members",
    { user => 'nobody', role => 'owner' })->{status}, 303, 'changes a role');
is(roles()->{nobody}, 'owner', 'at once');
is(submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members/remove",
    { user => 'nobody' })->{status}, 303, 'removes one');
is(roles()->{nobody}, undef, 'who is none any more');
is(visit('nobody', 'GET', "/$id/keys")->{status}, 404, 'and stays out');
my $self = submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members/remove",
    { user => 'owner' });
is($self->{status}, 409, 'nobody removes themselves');
like($self->{body}, qr/role="alert">Nobody can remove themselves/, 'and the page says so');
for my $role (qw(staff read-only)) {
    my $lowered = submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members",
        { user => ' owner ', role => $role });
    is($lowered->{status}, 409, "nor makes themselves $role");
    like($lowered->{body}, qr/role="alert">Nobody can lower their own role/,
        'and the page says so');
}
is(roles()->{owner}, 'owner', 'so that the owner stays one');
for my $fields ([ operator => 'operator' ], [ x => 'boss' ], [ '' => 'staff' ],
    [ ('x' x 256) => 'staff' ]) {
    is(submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members",
        { user => $fields->[0], role => $fields->[1] })->{status}, 400,
        'user ' . substr($fields->[0], 0, 8) . " as $fields->[1] is refused");
}
is(submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members/remove",
    { user => 'operator' })->{status}, 404, 'an operator is no member of the shop');
is(visit($_, 'GET', "/$id/members")->{status}, 403, "$_ does not see them") for qw(staff reader);
is(submit('staff', own_form('staff', 'staff', "/$id/members"), "/$id/members",
    { user => 'staff', role => 'owner' })->{status}, 403, 'nor makes themselves an owner');

# --- in German -----------------------------------------------------------------------------------

my @page = map { visit('owner', 'GET', "/$id/members") } 1 .. 3;
is(submit('owner', $page[0], "/$id/members", { user => 'two', role => 'staff' })->{status}, 303,
    'one of two owners adds somebody');
my $told = submit('owner', $page[1], "/$id/members", { user => 'two', role => 'read-only' });
is($told->{status}, 412, 'the other, who has not seen that, is told');
like($told->{body},
    qr/Somebody has changed this.*<bdi>two<.*value="two".*value="read-only" selected/s,
    'with the members as they are, and what was typed');
is(submit('owner', $page[2], "/$id/members/remove", { user => 'staff' })->{status}, 412,
    'also who removes another');
is(submit('owner', $told, "/$id/members", { user => 'two', role => 'read-only' })->{status}, 303,
    'who has seen it may do it');
is(submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members/remove", { user => 'two' })
    ->{status}, 303, 'and remove them');
my @once = map { visit('owner', 'GET', "/$id/members") } 1 .. 2;
my @both = parallel(2, sub {
    submit('owner', $once[ $_[0] ], "/$id/members",
        { user => 'two', role => (qw(staff owner))[ $_[0] ] })->{status};
});
is(join(' ', sort @both), '303 412', 'of two at the same moment one does it');
submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members/remove", { user => 'two' });

for my $case ([ '', qr/Geben Sie den Namen an, mit dem sich/ ],
    [ "\x{9577}" x 86, qr/Dieser Name ist zu lang: Kürzen Sie ihn auf 63 Zeichen/ ])
{
    my $german = submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members",
        { user => $case->[0], role => 'staff' }, 'accept-language' => 'de');
    like($german->{body}, qr/role="alert">$case->[1]/,
        'what is wrong with a form is said in the language of the page');
}
my $top = MDL::Target::top_dir();
my %said = map { $_ => 1 }
    MDL::Target::slurp("$top/conf/templates/de.words") =~ /^problem\.(\w+) = /mg;
my @codes = map { MDL::Target::slurp($_) =~ /mdl_problem_set\([^;"]*"(\w+)"/g }
    glob("$top/mod_downloads/settings/*.c "
        . "$top/mod_downloads/core/shop/{key,member,shop,webhook,webhook_delivery}.c "
        . "$top/mod_downloads/core/order/{access,resend,state}.c $top/mod_downloads/core/job*.c");
cmp_ok(scalar(@codes), '>', 25, 'there is much that can be wrong');
is_deeply([ grep { !$said{$_} } @codes ], [], 'and all of it');

# --- a shop that waits ---------------------------------------------------------------------------

my $pending = told('shop', 'add', 'Pending', 'pending.example')->{id};
told('member', 'add', 'owner', 'owner', '--shop', $pending);
my $waits = visit('owner', 'GET', "/$pending/keys");
like($waits->{body}, qr/not approved for the API yet/,
    'a shop that is not approved sees why it has no keys');
unlike($waits->{body}, qr/<form method="post"/, 'and no form');
is(submit('owner', $ask, "/$pending/keys", { name => 'Early', scope => 'full' })->{status}, 403,
    'a key can\'t be made');
my $shops = visit('owner', 'GET', '/');
like($shops->{body}, qr{/settings/$id/"[^>]*><bdi>Books.*/settings/$pending/"[^>]*><bdi>Pending}s,
    'a member of two shops chooses');
is(visit('staff', 'GET', '/')->{headers}{location} =~ s{^http://[^/]+}{}r, "/settings/$id/",
    'a member of one is led to it');
is(visit('nobody', 'GET', '/')->{status}, 403, 'a member of none is told so');

my $approve = visit('operator', 'GET', "/$pending/");
is(submit('owner', visit('owner', 'GET', "/$pending/members"), "/$pending/approve", {})->{status},
    403, 'an owner can\'t approve');
is(submit('operator', $approve, "/$pending/approve", {})->{status}, 303, 'an operator approves');
like(visit('owner', 'GET', "/$pending/keys")->{body}, qr/<form/, 'and the owner can make a key');

# --- secrets -------------------------------------------------------------------------------------

my $logs = join '',
    map { MDL::Target::slurp($_) // '' } error_log(), MDL::Target::logs_dir() . '/access_log';
unlike($logs, qr/adk_live_|\Q${\ form_token($ask) }\E/, 'no log has a token');
is(visit('owner', 'GET', '/sign-in')->{status}, 404,
    'there is no form to sign in where httpd says who comes');

$server->stop;
done_testing;
