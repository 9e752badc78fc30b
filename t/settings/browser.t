# The settings in real browsers, on a fresh `make run`: from a shop that waits for approval to an
# order made with a key of its owner; and the page of the API's document.  With JavaScript every
# page is looked at, wide, narrow and dark; then the same without it, but for what jobs_browser.t
# does and for webhooks, whose suite sends their forms.  axe looks at the wide page and at the dark
# one; with FULL=1 at each, and build/screenshots keeps pictures of all.
#
# once: the look of the pages does not depend on the database
# long: it has several browsers
use strict;
use warnings;
use utf8;

use File::Path qw(make_path);
use Test::More;

use MDL::Browser;
use MDL::Contract;
use MDL::Receiver;
use MDL::Run;
use MDL::Settings;
use MDL::Source;
use MDL::Test;

my $folder = MDL::Target::top_dir() . '/t/logs/screenshots';
my @views  = (
    { name => 'wide',   width => 1280, height => 900, scheme => 'light', axe => 1 },
    { name => 'narrow', width => 320,  height => 700, scheme => 'light', axe => $ENV{FULL} },
    { name => 'dark',   width => 1280, height => 900, scheme => 'dark',  axe => 1 },
);
my $script;
make_path($folder) if $ENV{FULL};
binmode Test::More->builder->$_, ':utf8' for qw(output failure_output);

my $run      = MDL::Run->new;
my $settings = $run->env('SETTINGS_URL');

my $browser = MDL::Browser->new;

sub task { return $browser->task(@_) }

# Each page as it is seen; without JavaScript axe can't look.
sub seen
{
    my ($who, $name, %with) = @_;
    return if !$script;
    $with{folder} = $folder if $ENV{FULL};
    my @seen =
        @{ task($who, 'look', name => "settings-$name", views => \@views, %with)->{views} // [] };
    for my $view (@views) {
        my $seen = shift @seen // {};
        is_deeply($seen->{misfits}, [], "$name, $view->{name}: nothing is cut off")
            or diag(explain($seen->{misfits}));
        next if !$view->{axe};
        is_deeply($seen->{violations}, [], "$name, $view->{name}: axe finds nothing")
            or diag(explain($seen->{violations}));
    }
    return;
}

sub sign_in
{
    my ($who, %opt) = @_;
    task($who, 'open', url => "$settings/", %opt);
    task($who, 'fill', values => { Name => $who, Password => $run->password });
    return task($who, 'press', name => 'Sign in');
}

# Finds an order, sends its email, revokes and restores it.
sub orders
{
    my ($shop, $number, $token) = @_;
    task('owner', 'open', url => "$settings/$shop/orders");
    seen('owner', 'orders');
    task('owner', 'fill',
        values => { 'Order, customer or email address' => substr $number, 0, -1 });
    task('owner', 'press', name => 'Find');
    my $page = task('owner', 'press', name => $number);
    like($page->{text}, qr/The customer can download.*What was bought/s, 'an order has a page');
    seen('owner', 'order');
    task('owner', 'press', name => 'Send the email again');
    task('owner', 'fill',
        values => { "To another address (empty: the customer\x{2019}s)" => 'ada@example.com' });
    like(task('owner', 'press', name => 'Send it')->{text}, qr/The email is on its way/,
        'the email is sent again');
    # Of an order that is revoked before that none leaves.
    wait_for(sub { api('GET', "/orders/$number", key => $token)->{json}{email}{status} eq 'sent' },
        60, 'the email to leave');
    task('owner', 'press', name => 'Revoke the access');
    task('owner', 'fill', values => { 'Reason, which the customer reads' => 'Paid back' });
    is(task('owner', 'press', name => 'Revoke the access')->{status}, 200,
        'the access is revoked') ;
    seen('owner', 'order-revoked');
    is(api('GET', "/orders/$number", key => $token)->{json}{access}{reason}, 'Paid back',
        'with the reason');
    task('owner', 'press', name => 'Restore the access');
    is(api('GET', "/orders/$number", key => $token)->{json}{access}{status}, 'active',
        'and restored');
    task('owner', 'open', url => "$settings/$shop/orders?q=none");
    seen('owner', 'orders-none');
    return;
}

# The list of files, the page of one that failed, and a pack.
sub files
{
    my ($shop) = @_;
    my $to = "$settings/$shop->{shop_id}";
    my $pack = api('POST', '/packs', key => $shop->{token},
        json => { name => 'Album', file_ids => [ ready_asset($shop, 'a.mp3', 'a')->{id} ] });
    task('owner', 'open', url => "$to/packs/$pack->{json}{id}");
    seen('owner', 'pack');
    task('owner', 'open', url => "$to/files");
    seen('owner', 'files');
    like(task('owner', 'press', name => 'lost.pdf')->{text}, qr/could not be had.*Try again/s,
        'a file that failed has a page');
    seen('owner', 'file');
    return;
}

# The emails, and what they look like.
sub emails
{
    my ($shop) = @_;
    like(task('owner', 'open', url => "$settings/$shop->{shop_id}/emails")->{text},
        qr/came back.*Mailbox full.*Correct the address.*Send again/s, 'an email came back');
    seen('owner', 'emails');
    like(task('owner', 'press', name => 'See what they look like')->{text},
        qr/Subject.*As most people see it.*As plain text.*Hello Ada,/s, 'emails can be looked at');
    seen('owner', 'email-preview');
    task('owner', 'fill', values => { Language => 'Deutsch' });
    like(task('owner', 'press', name => 'Show')->{text}, qr/Guten Tag Ada,/, 'in each language');
    return;
}

# What needs somebody, and an import that is tried again.
sub needs
{
    my ($shop, $number) = @_;
    my %key = (key => $shop->{token});
    like(task('owner', 'open', url => "$settings/$shop->{shop_id}/")->{text},
        qr/Nothing needs attention/, 'nothing needs attention');
    seen('owner', 'overview');
    my $source = MDL::Source->new;
    my $import = api('POST', '/assets', %key,
        json => { source_url => $source->offer('lost.pdf', { status => 404 }) })->{json};
    wait_job($shop, $import->{job}{id});
    api('POST', '/license-key-tags', %key,
        json => { name => 'Pro licenses', low_stock_threshold => 50 });
    held_by_check($shop, $number);
    sql("UPDATE email SET bounced_at = created_at, last_error = '552 5.2.2 Mailbox full' "
        . "WHERE shop_id = $shop->{shop_id}");
    like(task('owner', 'open', url => "$settings/$shop->{shop_id}/")->{text},
        qr/Orders\ to\ review.*Imports\ that\ failed.*lost\.pdf.*Emails\ that\ did\ not\ arrive
            .*came\ back.*License\ keys\ that\ run\ low/sx,
        'then much does');
    seen('owner', 'overview-needs');
    emails($shop);
    files($shop);
    task('owner', 'open', url => "$settings/$shop->{shop_id}/");
    $source->offer('lost.pdf', { body => 'found' });
    like(task('owner', 'press', name => 'Try again')->{text}, qr/The import is on its way again/,
        'an import is tried again');
    is(wait_job($shop, $import->{job}{id})->{status}, 'succeeded', 'and succeeds');
    return;
}

# A stock of license keys is filled.
sub license_keys
{
    my ($shop) = @_;
    task('owner', 'open', url => "$settings/$shop->{shop_id}/license-keys");
    seen('owner', 'license-keys');
    task('owner', 'press', name => 'Pro licenses');
    task('owner', 'fill', values => { 'Keys, one on each line' => "PRO-1\nPRO-2\nPRO-1" });
    like(task('owner', 'press', name => 'Add keys')->{text},
        qr/2 keys were added\. 1 was there already.*PRO-2/s, 'license keys are pasted');
    seen('owner', 'license-key-stock');
    return;
}

# An endpoint, what was sent to it, its secrets, and its end.
sub webhooks
{
    my ($shop) = @_;
    my $receiver = MDL::Receiver->new;
    my $tab = "$settings/$shop->{shop_id}/webhooks";
    my %key = (key => $shop->{token});
    # An endpoint is told of what gets its number once it is there.
    wait_for(sub { !(sql('SELECT count(*) FROM event WHERE number IS NULL'))[0][0] }, 60,
        'the events of before to have numbers');
    task('owner', 'press', name => 'Settings');
    like(task('owner', 'press', name => 'Webhooks')->{text}, qr/There is no endpoint yet/,
        'there is no webhook endpoint');
    task('owner', 'fill', values => { URL => 'https://shop.example.com:1/', 'Only these:' => 1 });
    like(task('owner', 'press', name => 'Create the endpoint')->{text},
        qr/Choose at least one event|The URL has/, 'a form that is wrong');
    seen('owner', 'webhooks-problem');
    $receiver->answers('hook', { status => 500, body => '{"error":"out of order"}', repeat => 60 });
    task('owner', 'fill', values => { URL => $receiver->url('hook'), Description => 'Order system',
        'All events, also those of later versions' => 1 });
    my $page = task('owner', 'press', name => 'Create the endpoint');
    my ($secret) = $page->{text} =~ /(whsec_\S+)/;
    ok($secret, 'an endpoint is made, and its secret shown');
    seen('owner', 'webhook-secret');
    $receiver->secrets('hook', $secret);
    $page = task('owner', 'press', name => 'I have stored the secret');
    like($page->{text}, qr/Nothing was sent yet/, 'nothing was sent yet');
    unlike($page->{html}, qr/\Q$secret\E/, 'and the secret is not shown again');
    like(task('owner', 'press', name => 'Send a test')->{text}, qr/A test is on its way/,
        'a test is sent');
    my ($hook) = @{ api('GET', '/webhook-endpoints', %key)->{json}{data} };
    $receiver->put_off($hook->{id});
    like(task('owner', 'open', url => "$tab/$hook->{id}")->{text},
        qr/A test.*failing.*\d tr(?:y|ies), next on.*500/s, 'the endpoint has what came of it');
    task('owner', 'press', name => '500: what it said');
    seen('owner', 'webhook-failing');
    $receiver->answers('hook', {});
    like(task('owner', 'press', name => 'Send again')->{text}, qr/on its way again/,
        'which is sent again');
    wait_for(sub {
        grep { $_->{status} eq 'succeeded' }
            @{ api('GET', "/webhook-endpoints/$hook->{id}/deliveries", %key)->{json}{data} };
    }, 60, 'success');
    task('owner', 'open', url => "$tab/$hook->{id}");
    like(task('owner', 'press', name => 'Replace the secret')->{text},
        qr/The secret is replaced.*whsec_/s, 'the secret is replaced');
    task('owner', 'press', name => 'I have stored the secret');
    sql("UPDATE webhook_endpoint SET is_active = 0, disabled_at = updated_at, "
        . "failing_since = updated_at WHERE id = $hook->{id}");
    task('owner', 'open', url => "$tab/$hook->{id}");
    task('owner', 'open', url => $tab);
    seen('owner', 'webhooks');
    task('owner', 'press', name => $receiver->url('hook'));
    task('owner', 'press', name => 'Delete this endpoint');
    like(task('owner', 'press', name => 'Delete it')->{text}, qr/The endpoint is deleted/,
        'the endpoint is deleted');
    return;
}

# --- from a shop that waits to an order ----------------------------------------------------------

sub story
{
    my ($name) = @_;
    my $shop = told('shop', 'add', $name, lc($name) =~ tr/a-z0-9//cdr . '.example')->{id};
    told('member', 'add', 'owner', 'owner', '--shop', $shop);
    told('member', 'add', 'operator', 'operator');

    my $page = task('owner', 'open', url => "$settings/");
    like($page->{url}, qr{/settings/sign-in$}, 'who is not signed in gets the form');
    seen('owner', 'sign-in');
    task('owner', 'fill', values => { Name => 'owner', Password => 'wrong' });
    like(task('owner', 'press', name => 'Sign in')->{text}, qr/name or the password is wrong/,
        'a wrong password is told');
    $page = sign_in('owner');
    like($page->{text}, qr/Signed in as owner/, 'the owner is signed in');
    task('owner', 'open', url => "$settings/$shop/");
    seen('owner', 'overview-pending');
    task('owner', 'press', name => 'Settings');
    like(task('owner', 'press', name => 'API keys')->{text}, qr/not approved for the API yet/,
        'the shop has to wait');
    seen('owner', 'keys-pending');

    sign_in('operator');
    like(task('operator', 'press', name => $name)->{text}, qr/not approved for the API yet/,
        'the operator finds the shop');
    seen('operator', 'overview-operator');
    like(task('operator', 'press', name => "Approve $name")->{text}, qr/The shop is approved/,
        'and approves it');
    task('operator', 'press', name => 'All shops');
    seen('operator', 'shops');

    $page = task('owner', 'open', url => "$settings/$shop/keys");
    like($page->{text}, qr/There is no key yet/, 'the owner can make the first key');
    seen('owner', 'keys-empty');
    task('owner', 'fill', values => { Name => 'Order system', 'It expires' => 'after 90 days' });
    $page = task('owner', 'press', name => 'Create the key');
    my ($token) = $page->{text} =~ /(adk_live_\w+)/;
    ok($token, 'and sees its token');
    seen('owner', 'key-created');
    is(api('GET', '/ping', key => $token)->{json}{shop}{name}, $name, 'which works');
    $page = task('owner', 'press', name => 'I have stored the token');
    unlike($page->{html}, qr/\Q$token\E/, 'the list of keys does not have it');
    seen('owner', 'keys');
    unlike(task('owner', 'back')->{html}, qr/\Q$token\E/, 'nor does going back show it');

    my $customer = { shop_id => $shop, token => $token };
    my $asset = ready_asset($customer, 'book.pdf', 'a book');
    my $order = assign($customer, digits(),
        [ mapping_of($customer, [ $asset->{id} ])->{storefront_product_id} ]);
    is($order->{status}, 201, 'the key makes an order') or diag $order->{body};
    is(page('GET', $order->{json}{download_page_url})->{status}, 200, 'whose page is there');
    task('owner', 'open', url => "$settings/$shop/members");
    task('owner', 'fill',
        values => { Name => 'ada@example.com', Role => 'read-only: sees, and changes nothing' });
    like(task('owner', 'press', name => 'Add the member')->{text},
        qr/The member has this role now.*ada\@example\.com/s, 'the owner adds a member');
    told('member', 'add', 'bea@example.com', 'owner', '--shop', $shop);
    like(task('owner', 'open', url => "$settings/$shop/members")->{text},
        qr/bea\@example\.com.*asked, not confirmed.*Ask again/s,
        'who is not confirmed can be asked again');
    seen('owner', 'members');
    told('member', 'add', "clerk $_", 'staff', '--shop', $shop) for 1 .. 10;
    like(task('owner', 'open', url => "$settings/$shop/members")->{text},
        qr/ada\@example\.com.*clerk 7/s, 'a long list');
    if ($script) {
        my $fewer = task('owner', 'fill', values => { 'Show only' => ' CLERK 7' })->{text};
        unlike($fewer, qr/ada\@example\.com/, 'gets shorter as one types');
        like($fewer, qr/clerk 7/, 'and has what was looked for');
        seen('owner', 'members-filtered');
    }
    told('member', 'remove', "clerk $_", '--shop', $shop) for 1 .. 10;
    orders($shop, $order->{json}{storefront_order_id}, $token);
    needs($customer, $order->{json}{storefront_order_id});
    if ($script) {
        license_keys($customer);
        webhooks($customer);
    }
    task('owner', 'open', url => "$settings/$shop/");
    task('owner', 'press', name => 'Settings');
    like(task('owner', 'press', name => 'Audit')->{text},
        qr/Order \d+: restored.*owner.*Member ada\@example\.com: saved.*API key Order system/s,
        'the audit has it all');
    seen('owner', 'audit');
    task('operator', 'open', url => "$settings/$shop/block");
    seen('operator', 'shop-block');
    task('operator', 'fill', values => { 'Reason, which only operators see' => 'A complaint' });
    like(task('operator', 'press', name => "Block $name")->{text}, qr/The shop is blocked/,
        'the operator blocks the shop');
    seen('operator', 'overview-blocked');
    like(task('operator', 'press', name => "Stop blocking $name")->{text}, qr/no longer blocked/,
        'and stops that');
    wait_for(sub { api('GET', '/ping', key => $token)->{status} == 200 }, 60,
        'the key to work again');
    task('operator', 'open', url => "$settings/shops");
    like(task('operator', 'press', name => 'Changes in all shops')->{text},
        qr/: approved.*operator/s, 'the operator sees that of all shops');
    seen('operator', 'audit-all');

    task('owner', 'open', url => "$settings/$shop/keys");
    task('owner', 'press', name => 'Revoke : key Order system');
    seen('owner', 'key-revoke');
    like(task('owner', 'press', name => 'Revoke Order system')->{text}, qr/The key is revoked/,
        'the key is revoked');
    wait_for(sub { api('GET', '/ping', key => $token)->{status} == 401 }, 60,
        'the key to be refused');
    $page = task('owner', 'press', name => 'Sign out');
    like($page->{text}, qr/You are signed out/, 'the owner signs out');
    $page = task('owner', 'open', url => "$settings/$shop/keys");
    like($page->{url}, qr{/sign-in\?to=}, 'and is out');
    return;
}

# One operation is made like the other, and so is one schema.
sub reference
{
    my $page = task('integrator', 'open', url => $run->env('BASE_URL') . '/docs');
    like($page->{text}, qr{Idempotency.*/assets/uploads.*upload_offset_conflict}s,
        'the API has a page');
    task('integrator', 'cut',
        selector => 'main > section:not(#introduction, #tag-uploads, #error-codes, #schemas),'
            . ' #schemas > section:nth-of-type(n+9)');
    seen('integrator', 'reference', top => 1);
    return;
}

$script = 1;
story('Books & Bytes');
reference();
$script = 0;
$browser->always(noscript => 1);
story('Plain & Old');
$browser->stop;

$run->stop;
done_testing;
