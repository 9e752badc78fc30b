# The server's secret is replaced twice under load: no key, page, link or upload is void until the
# secret that has signed it is retired (docs/operate.md, "Replace the secret").
#
# once: a secret is replaced by SQL of one text; keys and links are checked above the database
use strict;
use warnings;

use HTTP::Tiny;
use MDL::Contract;
use MDL::Instance;
use MDL::Load;
use MDL::Source;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new;
my $folder = $server->{folder};
my $source = MDL::Source->new;

sub secret_file
{
    my ($name) = @_;
    my $path = "$folder/secret-$name";
    MDL::Instance::write_file($path, "the secret $name of the suites, which is long enough");
    chmod 0600, $path;
    return $path;
}

# The files of the secrets, that which signs first.
sub configured
{
    my (@names) = @_;
    return (without => qr/^DownloadsSecretFile/,
        extra => 'DownloadsSecretFile ' . join(' ', map { qq("$folder/secret-$_") } @names) . "\n");
}

sub signed_by
{
    my (@names) = @_;
    $server->configure(configured(@names));
    httpd_graceful();
    return;
}


secret_file($_) for qw(a b c);
$server->configure(configured('a'));
$server->start;

my $shop  = new_shop(key_name => 'the load');
my $asset = ready_asset($shop, "secret-$$.txt", "a file\n");
ready_asset($shop, "secret-$$-2.txt", "another\n");
my $tag = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'keys' })
    ->{json}{id};
my @keys = map { "LICENSE-$_" } 1 .. 9;
my $product = mapping_of($shop, [ $asset->{id} ], license_key_tag_ids => [$tag])
    ->{storefront_product_id};

sub add_keys
{
    return api('POST', "/license-key-tags/$tag/keys", key => $_[0] // $shop->{token},
        json => { keys => \@keys });
}


sub order_of
{
    my ($it, $key) = @_;
    return api('GET', "/orders/$it->{order}", key => $key // $shop->{token})->{json};
}

# One of everything that a secret signs or seals.
sub made
{
    my ($name) = @_;
    my ($used, $idle) = map { my ($code, $made) = ctl('key', 'create', $shop->{shop_id},
        "$name $_"); $made } qw(used idle);
    my $order = digits();
    my %same  = (idem => idem(), json => { storefront_customer_id => '77',
        items => [ { storefront_product_id => $product } ] });
    my $assigned = api('POST', "/orders/$order/assignments", key => $shop->{token}, %same);
    my $of = "/orders/$order/assignments/$assigned->{json}{assignments}[0]{id}/download-urls";
    is(api('GET', '/ping', key => $used->{token})->{status}, 200, "$name: a key works");
    return {
        name   => $name,
        key    => $used->{token},
        idle   => $idle->{token},
        order  => $order,
        license => $assigned->{json}{assignments}[0]{license_keys}[0],
        same   => \%same,
        answer => $assigned->{body},
        page   => $assigned->{json}{download_page_url},
        file   => api('GET', $of, key => $shop->{token})->{json}{files}[0]{url},
        upload => api('POST', '/assets/uploads', key => $shop->{token},
            json => { filename => 'u.txt', size => 3 })->{json}{upload_url},
        cursor => api('GET', '/assets?limit=1', key => $shop->{token})->{json}{next_cursor},
    };
}

sub is_valid
{
    my ($it, $when) = @_;
    my $name = "$it->{name}, $when";
    is(api('GET', '/ping', key => $it->{key})->{status}, 200, "$name: its key works");
    is(page('GET', $it->{page})->{status}, 200, "$name: its page is there");
    is(page('GET', $it->{file})->{body}, "a file\n", "$name: its file link works");
    is(page('HEAD', $it->{upload}, headers => { 'Tus-Resumable' => '1.0.0' })->{status}, 200,
        "$name: its upload can go on");
    is_answer(api('GET', "/assets?limit=1&cursor=$it->{cursor}", key => $shop->{token}), 200,
        "$name: its cursor goes on");
    is_licensed($it, $when);
    is_replayed($it, $when);
    return;
}

sub is_licensed
{
    my ($it, $when) = @_;
    is(order_of($it)->{assignments}[0]{license_keys}[0], $it->{license},
        "$it->{name}, $when: its license key is there");
    is_deeply(add_keys()->{json}, { added => 0, duplicates => 9, handed_out => 0 },
        'and known');
    return;
}

sub is_replayed
{
    my ($it, $when) = @_;
    my $again = api('POST', "/orders/$it->{order}/assignments", key => $shop->{token},
        %{ $it->{same} });
    is($again->{headers}{'idempotent-replayed'}, 'true',
        "$it->{name}, $when: its request is replayed");
    is($again->{body}, $it->{answer}, 'with the same bytes');
    return;
}

sub status
{
    my ($code, $status, $text) = ctl('secret', 'status');
    is($code, 0, 'the status is read') or diag($text);
    return $status;
}

is(add_keys()->{json}{added}, 9, 'there are license keys');
my %made = (a => made('a'));
is($made{a}{license}, 'LICENSE-1', 'of which an order has one');
is_valid($made{a}, 'with its own secret');
wait_for(sub { defined status()->{since} }, 10, 'the background process to note the secret');
is(status()->{keys}, 0, 'all keys are signed by the only secret');
is(status()->{data_keys}, 0, 'and the data key is sealed by it');
my ($refused) = ctl('secret', 'retire');
is($refused, 5, 'the only secret is not retired');

my $load = MDL::Load->new(key => $shop->{token}, url => $source->offer('small', { size => 1000 }),
    clients => 2, keep_alive => 3);
$load->wait_for_more(20);
# In the second step both keys of the first secret are unused, and one of the second.
for my $step ([ 'b', 'a', 1 ], [ 'c', 'b', 3 ]) {
    my ($new, $old, $unused) = @$step;
    signed_by($new, $old);
    $load->wait_for_more(20);
    is_valid($made{$old}, 'behind a new secret');
    $made{$new} = made($new);
    is_valid($made{$new}, 'signed by the new one');
    my $status = wait_for(sub { my $now = status(); defined $now->{since} && $now }, 10,
        'the new secret to be noted');
    is($status->{keys}, $unused, 'the keys that nobody has used since are signed by the old one');
    is($status->{data_keys}, 1, 'and the data key is sealed by the old one');
    if ($new eq 'b') {
        is(api('GET', '/ping', key => $made{$old}{idle})->{status}, 200, 'such a key works');
        is(status()->{keys}, --$unused, 'and is signed anew when it is used');
    }

    my ($code, $retired, $text) = ctl('secret', 'retire');
    is($code, 0, 'the old secret is retired') or diag($text);
    is($retired->{revoked_keys}, $unused, 'with the keys that it alone has signed');
    is("$retired->{data_keys} $retired->{lost_data_keys}", '1 0', 'the data key is sealed anew');
    signed_by($new);
    $load->wait_for_more(20);
    is_valid($made{$new}, 'with the old secret gone');
    is(api('GET', '/ping', key => $made{$old}{key})->{status}, 200,
        'a key that was used since works on');
    is(api('GET', '/ping', key => $made{$old}{idle})->{status}, $new eq 'b' ? 200 : 401,
        'one that was not is revoked');
    is(page('GET', $made{$old}{$_})->{status}, 404, "the old $_ is void") for qw(page file);
    is(page('HEAD', $made{$old}{upload}, headers => { 'Tus-Resumable' => '1.0.0' })->{status}, 404,
        'and so is the upload URL');
    is_error(api('GET', "/assets?limit=1&cursor=$made{$old}{cursor}", key => $shop->{token}), 400,
        'invalid_cursor', 'and the cursor');
    is_replayed($made{$old}, 'after its secret is gone');
    is_licensed($made{$old}, 'after its secret is gone');
    isnt(api('GET', "/orders/$made{$old}{order}", key => $shop->{token})->{json}{download_page_url},
        $made{$old}{page}, 'the order has another page');
}
my $result = $load->stop;
is_deeply($result->{failures}, [], "$result->{requests} requests beside that, none has failed")
    or diag(explain($result->{failures}));

signed_by('a');
is(api('GET', '/ping', key => $made{c}{key})->{status}, 401,
    'with another secret alone a key is void');
my ($code, $new) = ctl('key', 'create', $shop->{shop_id}, 'behind another secret');
my $order = order_of($made{c}, $new->{token});
is($order->{storefront_order_id}, $made{c}{order}, 'an order is shown to a new one');
is($order->{assignments}[0]{license_keys}, undef,
    'without license keys, which the secret does not open');
is_error(add_keys($new->{token}), 500, 'internal_error', 'and none are added');
my $page = page('GET', $order->{download_page_url});
is($page->{status}, 200, 'the page is there');
like($page->{body}, qr/license key is on its way/, 'and says that the key is still to come');
unlike($page->{body}, qr/LICENSE-/, 'without showing any');
like($server->error_log, qr/MDL0130: .*put that file back behind the new one/,
    'a line of the log says what to do');
is(status()->{data_keys}, 1, 'and so does the status');
signed_by('c');
is_valid($made{c}, 'with its secret back');

# The secret is lost for good: what docs/operate.md says.
signed_by('a');
sql($_) for MDL::Test::slurp(MDL::Target::top_dir() . '/docs/operate.md')
    =~ /^((?:DELETE FROM|UPDATE) [^;]*license_key[^;]*;|DELETE FROM data_key;)$/mg;
is(add_keys($new->{token})->{json}{added}, 9, 'the shop adds its keys anew');
is(order_of($made{c}, $new->{token})->{assignments}[0]{license_keys}, undef,
    'those that were given away stay shut');
my $after = api('POST', '/orders/' . digits() . '/assignments', key => $new->{token},
    json => { storefront_customer_id => '77', items => [ { storefront_product_id => $product } ] });
is_deeply($after->{json}{assignments}[0]{license_keys}, ['LICENSE-1'], 'and orders get new ones');

$server->stop;
done_testing();
