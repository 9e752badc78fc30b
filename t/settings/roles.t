# Each page and each form of the settings, as the sources list them, is for the roles that
# docs/settings.md names: staff act on orders, files, products and keys for customers, owners on the
# shop, operators on shops. Who is refused comes with a form token of their own, and a refused form
# changes no row of any table; neither does one of another shop's owner who names what is this
# shop's.
#
# once: the router decides before a form reaches the database
use strict;
use warnings;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use Test::More;

my %RANK = (reader => 0, staff => 1, owner => 2, operator => 3);

# The least role for the forms of a tab, and for its pages where not everybody sees them.
my %ACTS = (
    'own-emails' => 'reader',
    (map { $_ => 'staff' }
        qw(orders customers files products packs links categories license-keys jobs emails)),
    (map { $_ => 'owner' } qw(keys members webhooks shop audit)),
    (map { $_ => 'operator' } qw(shops approve suspend block unblock health)),
);
my %SEES = (
    (map { $_ => 'staff' } '{}/orders/new', '{}/files/uploads', '{}/files/uploads/{}',
        '{}/products/{}/delete', '{}/products/{}/buyers', '{}/customers/{}/merge'),
    (map { $_ => 'owner' } '{}/members', '{}/shop', '{}/shop/preview', '{}/audit',
        '{}/keys/{}/revoke',
        '{}/webhooks/{}/delete'),
    (map { $_ => 'operator' } 'shops', '{}/block', 'audit', 'health'),
);

# Paths that are for everybody who is signed in, or for nobody in particular.
my %FREE = map { $_ => 1 } '', 'sign-out', 'sign-in';

# --- what there is --------------------------------------------------------------------------------

my %pages = settings_pages();
cmp_ok(scalar(keys %pages), '>', 60, 'the pages are found in the sources');

my $server = settings_server();
my ($shop, $other) = map { new_shop() } 1 .. 2;
my ($id, $other_id) = map { $_->{shop_id} } $shop, $other;
told('member', 'add', $_, $_ eq 'reader' ? 'read-only' : $_, '--shop', $id)
    for qw(reader staff owner);
told('member', 'add', 'operator', 'operator');
# Everybody is somebody in another shop, whose pages give them a form token.
told('member', 'add', $_, 'owner', '--shop', $other_id) for qw(reader staff owner other);

sub made
{
    my ($path, $json) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $json);
    die "POST $path: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[012]$/;
    return $reply->{json};
}

# An upload that staff have begun in the settings.
sub begun_upload
{
    my $begun = submit('staff', visit('staff', 'GET', "/$id/files/uploads"), "/$id/files/uploads",
        { filename => 'part.bin', size => 10 });
    return $begun->{headers}{location} =~ m{/(upl_\w+)$} ? $1 : die "no upload: $begun->{body}\n";
}

my $asset   = ready_asset($shop, 'book.pdf', 'the book');
my $mapping = mapping_of($shop, [ $asset->{id} ]);
my $order   = assign($shop, 7001, [ $mapping->{storefront_product_id} ]);
my $failed = made('/assets', { source_url => source_url('absent.pdf') });
my %argument = (
    orders         => '7001',
    customers      => $order->{json}{customer}{id},
    files          => $asset->{id},
    products       => $mapping->{id},
    packs          => made('/packs', { name => 'Pack', file_ids => [ $asset->{id} ] })->{id},
    links          => made('/links', { title => 'Link', url => 'https://example.com/' })->{id},
    categories     => made('/categories', { name => 'Category' })->{id},
    'license-keys' => made('/license-key-tags', { name => 'Keys' })->{id},
    keys           => told('key', 'list', $id)->[0]{id},
    uploads        => begun_upload(),
    jobs           => wait_job($shop, $failed->{job}{id})->{id},
    webhooks       => made('/webhook-endpoints', { url => 'https://example.com/' })->{id},
);

# The path as it is in a shop; without its argument if no tab is known for it.
sub real
{
    my ($path, $shop_id) = @_;
    my ($tab) = $path =~ m{([\w-]+)/\{\}(?:/[\w-]+)?$};
    $path =~ s/^\{\}/$shop_id/;
    $path =~ s/\{\}/$argument{$tab}/ if $tab;
    return "/$path";
}

sub tab_of { my ($path) = @_; return $path =~ m{^(?:\{\}/)?([\w-]*)} ? $1 : '' }

# Everything that is stored, but what a visit itself writes.
my @tables = map { $_->[0] } sql("SELECT name FROM sqlite_master WHERE type = 'table' "
        . "AND name NOT LIKE 'sqlite_%' AND name NOT IN ('node', 'rate_limit') ORDER BY name");

sub everything
{
    return { map { my $table = $_; $table => [ sql("SELECT * FROM \"$table\" ORDER BY 1, 2") ] }
            @tables };
}

# A form token of the user's own; each is good for one form.
sub token_page
{
    my ($user) = @_;
    return visit($user, 'GET', $user eq 'operator' ? '/shops' : "/$other_id/keys");
}

sub send_form
{
    my ($user, $path) = @_;
    my $page = token_page($user);
    die "$user has no form token\n" if !form_token($page);
    return visit($user, 'POST', $path, form => { form_token => form_token($page) },
        headers => { origin => origin() })->{status};
}

# --- pages ----------------------------------------------------------------------------------------

my @paths = sort keys %pages;
for my $path (grep { $pages{$_}{get} && !$FREE{$_} } @paths) {
    my $least = $SEES{$path} // 'reader';
    my %seen = map { $_ => visit($_, 'GET', real($path, $id))->{status} } keys %RANK, 'other';
    is_deeply(\%seen,
        { other => $path =~ /^\{/ ? 404 : 403,
            map { $_ => $RANK{$_} >= $RANK{$least} ? 200 : 403 } keys %RANK },
        "$path is seen by $least and above");
}

# --- forms that are refused -----------------------------------------------------------------------

# What ends a thing comes last, so that it is there until then.
my @forms = sort { ($a =~ /delete|remove|revoke|reject|block|abort|suspend/)
        <=> ($b =~ /delete|remove|revoke|reject|block|abort|suspend/) || $a cmp $b }
    grep { $pages{$_}{post} && !$FREE{$_} } @paths;
cmp_ok(scalar(@forms), '>', 50, 'and the forms');
is_deeply([ grep { !$ACTS{ tab_of($_) } } @forms ], [],
    'each belongs to a tab whose role is known');

# The background process writes by itself: the numbers of events, webhooks, the last use of keys.
my @workers = worker_pids();
pause_process($_) for @workers;
my $before = everything();
for my $path (@forms) {
    my $least = $ACTS{ tab_of($path) };
    my @below = grep { $RANK{$_} < $RANK{$least} } sort keys %RANK;
    is_deeply({ map { $_ => send_form($_, real($path, $id)) } @below, 'other' },
        { other => $path =~ /^\{/ ? 404 : 403, map { $_ => 403 } @below },
        "$path is refused to whoever is below $least, and to another shop's owner");
    next if $path !~ /\{\}.*\{\}/;
    my $status = send_form('other', real($path, $other_id));
    like($status, qr/^40[04]$/, "in another shop's $path this shop's thing is not there");
}
my $after = everything();
kill CONT => @workers;
is_deeply([ grep { !eq_array($before->{$_}, $after->{$_}) } @tables ], [],
    'all of this has changed no table');

# --- forms that are taken -------------------------------------------------------------------------

for my $path (@forms) {
    my $least = $ACTS{ tab_of($path) };
    like(send_form($least, real($path, $id)), qr/^(?:200|303|400|404|409|41[235]|422)$/,
        "$path is taken from $least");
}

$server->stop;
done_testing;
