# Every state that an order can be in, as the customer's page, its button, a link that was given out
# before, the API and the diagnosis have it (contract, sections 6 and 8).
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(extra => qq(DownloadsFraudBlockedDomains "\@t_logs\@/blocked"\n));
MDL::Instance::write_file("$server->{folder}/blocked", "blocked.example\n");
$server->start;

my $contact = 'help@states.example';
my $shop    = do {
    my ($code, $made) = ctl('shop', 'add', 'States', 'states.example', '--email', $contact);
    my $id = ($made->{shop} // $made)->{id};
    ctl('shop', 'approve', $id);
    +{ shop_id => $id, %{ MDL::Test::new_key($id) } };
};
my $asset   = ready_asset($shop, 'states.txt', "bought\n");
my $mapping = mapping_of($shop, [ $asset->{id} ], download_limit => 1, download_type => 'FILES');

# --- what is looked at -----------------------------------------------------------------------------

# A new order; returns { id, path, assignment, … }.
sub new_order
{
    my ($address) = @_;
    my $id    = digits();
    my $reply = assign($shop, $id, [ $mapping->{storefront_product_id} ], storefront_customer_id => $id,
        fraud_check => JSON::PP::true(), send_email => JSON::PP::true(),
        customer => { email => $address // "customer-$id\@buyer.example" });
    die "the order was answered with: $reply->{body}\n" if $reply->{status} != 201;
    my $order = $reply->{json}{order};
    my ($path) = $order->{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    my $assignment = $order->{assignments}[0]{id};
    return { id => $id, path => $path, assignment => $assignment, button => "$assignment-$asset->{id}" };
}

sub act
{
    my ($order, $action, %members) = @_;
    my $reply = api('POST', "/orders/$order->{id}/$action", key => $shop->{token}, json => \%members);
    die "$action was answered with: $reply->{body}\n" if $reply->{status} !~ /^20[02]$/;
    return;
}

sub get { my ($order, $what) = @_; return api('GET', "/orders/$order->{id}$what", key => $shop->{token}) }

sub press { my ($order) = @_; return page('POST', $order->{path}, form => { file => $order->{button} }) }

sub link_of
{
    my ($order) = @_;
    my ($path) = (press($order)->{headers}{location} // '') =~ m{^https?://[^/]+(/.+)$};
    return $path // die "the button leads nowhere\n";
}

# All that can be seen of an order in this state, against what is wanted:
#   says => what the page says, offers => whether it has the button, press, link, urls => statuses (and
#   words that the answer to link has to have, and the code of urls), access, fraud, failure => as the
#   API has them
sub is_state
{
    my ($order, $link, %want) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $page = page('GET', $order->{path});
    is $page->{status}, 200, 'the page is there';
    like $page->{body}, $want{says}, 'and says it';
    like $page->{body}, qr/\Q$contact\E/, 'with the address of the shop';
    like $page->{body}, qr/\Q$order->{id}\E/, 'and the number of the order';
    is $page->{body} =~ /<button/ ? 1 : 0, $want{offers}, $want{offers} ? 'it has a button' : 'it has no button';
    unlike $page->{body}, qr/\Q$asset->{filename}\E/, 'it names no file' if $want{hides};

    my $pressed = press($order);
    is $pressed->{status}, $want{press}, "the button: $want{press}";
    my ($status, $code) = @{ $want{urls} };
    my $urls = get($order, "/assignments/$order->{assignment}/download-urls");
    is $urls->{status}, $status, "download-urls: $status";
    is $urls->{json}{error}{code}, $code, "with the code $code" if $code;

    my $said = get($order, '')->{json};
    is $said->{access}{status}, $want{access}, "the order's access is $want{access}";
    is $said->{fraud}{decision}, $want{fraud}, "its fraud check says $want{fraud}";
    is get($order, '/diagnosis')->{json}{first_failure}, $want{failure},
        'the diagnosis names ' . ($want{failure} // 'nothing');

    return if !$link;
    ($status, my $words) = @{ $want{link} };
    my $reply = page('GET', $link);
    is $reply->{status}, $status, "the link: $status";
    like $reply->{body}, $words, 'says what the matter is';
    like $reply->{body}, qr/\Q$contact\E/, 'and whom to ask' if $status != 200;
    return;
}

my %ACTIVE = (says => qr/1 of 1 download left/, offers => 1, press => 303, link => [ 200, qr/^bought$/ ],
    urls => [200], access => 'active', fraud => 'passed', failure => undef);

# --- the states ------------------------------------------------------------------------------------

subtest 'active' => sub {
    my $order = new_order();
    is_state($order, link_of($order), %ACTIVE);
};

subtest 'held, rejected, approved' => sub {
    my $order = new_order('somebody@blocked.example');
    my %held  = (says => qr/under review/, offers => 0, hides => 1, press => 403,
        urls => [ 409, 'order_held' ], access => 'held', fraud => 'held', failure => 'fraud');
    is_state($order, undef, %held);
    unlike page('GET', $order->{path})->{body}, qr/blocked/, 'the customer is not told why';
    is get($order, '')->{json}{email}{status}, 'held', 'the email waits';

    act($order, 'reject', reason => 'The card was stolen.');
    is_state($order, undef, says => qr/not released.*The card was stolen\./s, offers => 0, hides => 1,
        press => 403, urls => [ 409, 'access_revoked' ], access => 'rejected', fraud => 'rejected',
        failure => 'fraud');

    act($order, 'approve');
    is_state($order, link_of($order), %ACTIVE, fraud => 'approved');
};

subtest 'revoked, restored' => sub {
    my $order = new_order();
    my $link  = link_of($order);
    act($order, 'revoke', reason => 'Refunded on request.');
    is_state($order, $link, says => qr/withdrawn.*Refunded on request\./s, offers => 0, hides => 1,
        press => 403, link => [ 403, qr/withdrawn/ ], urls => [ 409, 'access_revoked' ],
        access => 'revoked', fraud => 'passed', failure => 'access');
    act($order, 'restore');
    is_state($order, $link, %ACTIVE);
};

subtest 'expired, extended' => sub {
    my $order = new_order();
    my $link  = link_of($order);
    sql("UPDATE assignment SET expires_at = 1 WHERE id = $order->{assignment}");
    is_state($order, $link, says => qr/have expired/, offers => 0, hides => 1, press => 403,
        link => [ 403, qr/expired/ ], urls => [409], access => 'active', fraud => 'passed',
        failure => 'access');
    act($order, 'grant-downloads', extend_days => 1);
    is_state($order, $link, %ACTIVE, says => qr/available until/);
};

subtest 'exhausted, granted more' => sub {
    my $order = new_order();
    my $link  = link_of($order);
    is page('GET', link_of($order))->{body}, "bought\n", 'the one download is had';
    is_state($order, $link, says => qr/limit of this file is reached/, offers => 0, press => 403,
        link => [ 403, qr/limit is reached/ ], urls => [200], access => 'active', fraud => 'passed',
        failure => 'allowance');
    act($order, 'grant-downloads', downloads => 1);
    is_state($order, $link, %ACTIVE, says => qr/1 of 2 downloads left/);
};

subtest 'missing, back' => sub {
    my $order = new_order();
    my $link  = link_of($order);
    my $blob  = storage_dir() . '/blobs/' . substr($asset->{sha256}, 0, 1) . "/$asset->{sha256}";
    rename $blob, "$blob.away" or die "$blob: $!";
    is_state($order, $link, %ACTIVE, link => [ 500, qr/missing on our side/ ], failure => 'file');
    rename "$blob.away", $blob or die "$blob: $!";
    is_state($order, $link, %ACTIVE);
};

done_testing();
