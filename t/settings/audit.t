# The audit as owners and the operator see it: every change of a shop, by whom and when.
#
# once: the pages show rows that t/api reads on both databases
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $XSS = '"><script>alert(1)</script>';

my $server = settings_server();
my $shop   = new_shop(name => "Shop $XSS", key_name => "Key $XSS");
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
told('member', 'add', 'operator', 'operator');
my $other = new_shop();

# The rows of the page: what, by whom.
sub entries
{
    my ($reply) = @_;
    return map {
        my ($what, $who) = map { s/<[^>]+>//gr =~ s/^\s+|\s+$//gr }
            m{<td>(.*?)</td>.*?<td data-label="By whom">(.*?)</td>}s;
        "$what | $who";
    } $reply->{body} =~ m{<tr>\n(<td>.*?)</tr>}sg;
}

sub audit
{
    my ($query, %opt) = @_;
    return visit($opt{user} // 'owner', 'GET', ($opt{all} ? '' : "/$id") . "/audit$query");
}

# --- what the commands have done -----------------------------------------------------------------

my $user = $ENV{SUDO_USER} // getpwuid $<;
my $page = audit('');
is($page->{status}, 200, 'an owner sees the audit');
is_deeply([ entries($page) ], [
        map { "$_ | $user with downloadsctl" } 'Member reader: saved read-only',
        'Member staff: saved staff', 'Member owner: saved owner',
        "API key $shop->{key_id}: created Key &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;",
        "Shop $id: approved", "Shop $id: created",
    ], 'what the commands have done, the newest first') or diag $page->{body};
unlike($page->{body}, qr/<script>alert/, 'what somebody typed is text');
like($page->{body}, qr{<a href="/settings/$id/audit" aria-current="page">Audit</a>},
    'the tab is marked');
my $german = visit('owner', 'GET', "/$id/audit", headers => { 'accept-language' => 'de' });
like($german->{body},
    qr/<html lang="de"[^>]*>.*Mitglied <a [^>]*><bdi>reader<.*: gespeichert.*mit downloadsctl/s,
    'there is a German page');

# --- the API and the settings --------------------------------------------------------------------

my $asset   = ready_asset($shop, 'book.pdf', 'the book');
my $product = mapping_of($shop, [ $asset->{id} ])->{storefront_product_id};
assign($shop, '7001', [$product], send_email => JSON::PP::true,
    customer => { email => 'ada@example.com', first_name => 'Ada' });
my ($mapping) = map { $_->{id} } @{ api('GET', '/mappings', key => $shop->{token})->{json}{data} };
my $key = 'API key Key &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;';
is_deeply([ (entries(audit('')))[ 0 .. 2 ] ], [ "Order 7001: downloads assigned | $key",
    "Mapping $mapping: saved | $key", "File $asset->{id}: import begun | $key" ],
    'what a key does is there, too');
like(audit('')->{body}, qr{<a href="/settings/$id/orders/7001"><bdi>7001<},
    'with a link to the order');

sub press
{
    my ($user, $path, $fields) = @_;
    return submit($user, visit($user, 'GET', $path =~ s{/[^/]+$}{}r), $path, $fields);
}

is(press('staff', "/$id/orders/7001/revoke", { reason => "Back $XSS" })->{status}, 303,
    'a member revokes an order');
is((entries(audit('')))[0],
    'Order 7001: revoked Back &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt; | staff',
    'which is there with the reason');
is(press('staff', "/$id/orders/7001/grant", { downloads => 'x', days => 1 })->{status}, 400,
    'what is refused');
my $form = visit('staff', 'GET', "/$id/orders/7001");
is(submit('staff', $form, "/$id/orders/7001/restore", {})->{status}, 303, 'and a form');
is(submit('staff', $form, "/$id/orders/7001/restore", {})->{status}, 409, 'that is sent twice');
is_deeply([ (entries(audit('')))[ 0, 1 ] ], [ 'Order 7001: restored | staff',
    'Order 7001: revoked Back &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt; | staff' ],
    'add none, and one');

my $made = submit('owner', visit('owner', 'GET', "/$id/keys"), "/$id/keys",
    { name => 'Second', scope => 'full', expires => '' });
my ($token, $key_id) = $made->{body} =~ /(adk_live_([^_]+)_\w+)/;
submit('owner', visit('owner', 'GET', "/$id/keys"), "/$id/keys/$key_id/revoke", {});
submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members",
    { user => 'ada', role => 'staff' });
submit('owner', visit('owner', 'GET', "/$id/members"), "/$id/members/remove", { user => 'ada' });
submit('operator', visit('operator', 'GET', "/$id/"), "/$id/suspend", {});
submit('operator', visit('operator', 'GET', "/$id/"), "/$id/approve", {});
is_deeply([ (entries(audit('')))[ 0 .. 5 ] ], [ "Shop $id: approved | operator",
    "Shop $id: suspended | operator", 'Member ada: removed | owner',
    'Member ada: saved staff | owner', "API key $key_id: revoked | owner",
    "API key $key_id: created Second | owner" ], 'keys, members and the shop');
submit('operator', visit('operator', 'GET', '/shops'), '/shops',
    { name => 'Third', domain => 'third.example', email => '' });
my ($third) = grep { $_->{name} eq 'Third' } @{ told('shop', 'list') };

my $rows = join "\n", map { join "\t", @$_ } sql('SELECT * FROM audit');
unlike($rows, qr/\Q$token\E|\Q$shop->{token}\E|ada\@example|Ada\b|http|source/,
    'no entry has a token, an address or a name of a customer');

# --- who may -------------------------------------------------------------------------------------

is(audit('', user => $_)->{status}, 403, "$_ does not see it") for qw(staff reader);
unlike(visit('staff', 'GET', "/$id/")->{body}, qr{/audit"}, 'nor the tab');
is(audit('', user => 'nobody')->{status}, 404, 'to others the shop is not there');
is(visit('owner', 'GET', "/$other->{shop_id}/audit")->{status}, 404,
    'nor is another shop to an owner');
is(audit('', all => 1)->{status}, 403, 'an owner does not see all shops');
my $all = audit('?noun=shop&who=operator', all => 1, user => 'operator');
is_deeply([ (entries($all))[0 .. 2] ], [ "Shop $third->{id}: created | operator",
    "Shop $id: approved | operator", "Shop $id: suspended | operator" ], 'an operator does');
like($all->{body}, qr{<a href="/settings/$third->{id}/audit"><bdi>Third<}, 'with the shop of each');
like(audit('?noun=member', all => 1, user => 'operator')->{body}, qr{<bdi>operator</bdi>: saved},
    'operators have no shop');
like(visit('operator', 'GET', '/shops')->{body}, qr{href="/settings/audit"},
    'the list of shops leads there');

# --- finding -------------------------------------------------------------------------------------

is_deeply([ entries(audit('?noun=member&who=owner')) ],
    [ 'Member ada: removed | owner', 'Member ada: saved staff | owner' ], 'by noun and name');
is(scalar(entries(audit("?who=$shop->{key_id}"))), 3, 'by a key');
is(scalar(entries(audit('?who=Key+%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E'))), 3, 'or its name');
like(audit('?who=reader')->{body}, qr/No match among the entries/, 'a reader did nothing');
is(scalar(entries(audit('?noun=nonsense&before=x'))), scalar(entries(audit(''))),
    'what makes no sense is left out');
is(audit('?who=' . 'x' x 300)->{status}, 400, 'what is too long is refused');

sql("INSERT INTO audit (shop_id, noun, action, via, user_name, created_at) VALUES " . join ', ',
    ("($id, 'new', 'done', 'settings', 'many', 0)") x 400);
$page = audit('');
is(scalar(entries($page)), 50, 'a page has fifty');
my ($next) = $page->{body} =~ m{href="/settings/$id/audit(\?[^"]+)"};
is(scalar(entries(audit($next =~ s/&amp;/&/gr))), 50, 'as the next');
$page = audit('?who=owner');
like($page->{body}, qr/No match among the entries/, 'a search looks at some');
($next) = $page->{body} =~ m{href="/settings/$id/audit(\?[^"]+)"};
is(scalar(entries(audit($next =~ s/&amp;/&/gr))), 4, 'and goes on from there');

# --- every word ----------------------------------------------------------------------------------

{
    my $source = join '', map { MDL::Target::slurp(MDL::Target::top_dir() . "/mod_downloads/$_") }
        'settings/audit.c', 'core/audit.c';
    my %words = map {
        $_->[0] => [ ($source =~ /\b$_->[1]\[\] = \{(.*?)NULL\}/s)[0] =~ /"(\w+)"/g ]
    } [ nouns => 'mdl_audit_noun_names' ], [ actions => 'actions' ];
    my %used = map { $_ => 1 } map { $_->[0] }
        sql("SELECT DISTINCT action FROM audit WHERE action <> 'done'");
    is(join(' ', grep { my $action = $_; !grep { $_ eq $action } @{ $words{actions} } }
        sort keys %used), '', 'the page knows every action that this suite has seen');
    my $english = MDL::Target::slurp(MDL::Target::top_dir() . '/conf/templates/en.words');
    is(join(' ', sort @{ $words{actions} }), join(' ', sort $english =~ /^audit_action\.(\w+)/mg),
        'and every action that there are words for');
    for my $noun (@{ $words{nouns} }) {
        sql("INSERT INTO audit (shop_id, noun, action, via, user_name, created_at) VALUES "
            . join ', ', map { "($id, '$noun', '$_', 'settings', 'words', 0)" }
            @{ $words{actions} });
        for my $language (qw(en de)) {
            my $reply = visit('owner', 'GET', "/$id/audit?noun=$noun",
                headers => { 'accept-language' => $language });
            my @what = map { s/<[^>]+>//gr } $reply->{body} =~ m{<tr>\n<td>(.*?)</td>}g;
            my @without = grep { !/^\S.*: \S/ } @what[ 0 .. $#{ $words{actions} } ];
            is_deeply(\@without, [], "$noun, $language: every action has words");
        }
    }
}

# --- the end of entries --------------------------------------------------------------------------

my ($kept) = sql('SELECT count(*) FROM audit WHERE created_at > 0');
cmp_ok((sql('SELECT count(*) FROM audit WHERE created_at = 0'))[0][0], '>', 500,
    'there are many entries that are older than a year');
$server->stop;
$server->configure(extra => ($server->{extra} // '') . "DownloadsKeep audit=365\n");
$server->start;
wait_for(sub { !(sql('SELECT count(*) FROM audit WHERE created_at = 0'))[0][0] }, 180,
    'old entries to go');
is_deeply([ sql('SELECT count(*) FROM audit') ], [$kept],
    'only those are removed, when the service has started');

$server->stop;
done_testing;
