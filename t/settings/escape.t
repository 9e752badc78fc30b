# A string that closes an attribute and begins a script, in every text field of the product: on
# every page that the settings link to it is text, in either language.
#
# once: what a page makes of a text does not depend on the database
use strict;
use warnings;

use Test::More;

use MDL::Contract;
use MDL::Settings;
use MDL::Test;

my $SCRIPT = '"><script>alert(1)</script>';
my @shown; # the fields that a page has to show

# A field's value, which tells where it comes from.
sub evil { my ($field) = @_; push @shown, $field; return $field . $SCRIPT }

my $server = settings_server();
my $shop   = new_shop(name => evil('shop'));
my $id     = $shop->{shop_id};
told('member', 'add', 'owner', 'owner', '--shop', $id);
told('member', 'add', evil('member'), 'staff', '--shop', $id);
told('member', 'add', 'operator', 'operator');
told('key', 'create', $id, evil('key'));

sub made
{
    my ($path, $json) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $json);
    die "POST $path: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[012]$/;
    return $reply->{json};
}

my $category = made('/categories', { name => "category$SCRIPT" });
my $asset = ready_asset($shop, 'book.pdf', 'the book',
    title => evil('title'), filename => evil('filename') =~ tr{/}{-}r,
    category_id => $category->{id});
my $pack = made('/packs', { name => "pack$SCRIPT", file_ids => [ $asset->{id} ] });
my $link = made('/links', { title => "link$SCRIPT", url =>
    'https://example.com/?"><script>alert(1)</script>' =~ s/(["<>])/sprintf '%%%02X', ord $1/ger });
my $tag  = made('/license-key-tags', { name => "tag$SCRIPT", low_stock_threshold => 5 });
api('POST', "/license-key-tags/$tag->{id}/keys", key => $shop->{token},
    json => { keys => ["license$SCRIPT"] });
my $mapping = made('/mappings', {
    storefront_product_id => product(), pack_ids => [ $pack->{id} ], link_ids => [ $link->{id} ],
    license_key_tag_ids => [ $tag->{id} ] });

sub order
{
    my ($number, $customer, %opt) = @_;
    my $reply = assign($shop, $number, [ $mapping->{storefront_product_id} ],
        storefront_customer_id => $customer, %opt);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return $reply->{json};
}

order(9001, '501', send_email => JSON::PP::true(), customer => {
    email => 'ada@example.com', first_name => evil('first'), last_name => evil('last') });
order(9002, '502');
wait_for(sub { api('GET', '/orders/9001', key => $shop->{token})->{json}{email}{status} eq 'sent' },
    20, 'the email');
api('POST', '/orders/9001/revoke', key => $shop->{token}, json => { reason => evil('reason') });

my $hook = made('/webhook-endpoints',
    { url => 'https://example.com/' . evil('hook'), description => evil('what') });
sql("INSERT INTO webhook_delivery (endpoint_id, event_id, status, attempts, response_status, "
    . "response_body, error, created_at, updated_at) VALUES ($hook->{id}, 0, 'failed', 10, 500, '"
    . evil('answer') . "', '" . evil('error') . "', 1, 1)");

# What others say: the mail server, the source of a file.
sql("UPDATE email SET status = 'failed', last_error = '" . evil('words') . "' WHERE shop_id = $id");
sql("UPDATE orders SET access_status = 'held', fraud_decision = 'held' WHERE shop_id = $id "
    . "AND storefront_order_id = '9002'");

# Every page below the settings that a page links to, by its path; "page" is the most that are
# looked at.
sub crawl
{
    my ($user, $language) = @_;
    my %page;
    my @to = ("/$id/");
    while (@to && keys %page < 100) {
        my $path = shift @to;
        next if exists $page{$path} || $path =~ m{^/(?:sign-out)?$};
        my $reply = visit($user, 'GET', $path, headers => { 'accept-language' => $language });
        is($reply->{status}, 200, "$user sees $path in $language");
        $page{$path} = $reply->{body};
        push @to, map { s/&amp;/&/gr } $reply->{body} =~ m{href="/settings(/[^"#]*)"}g;
    }
    return \%page;
}

for my $language (qw(en de)) {
    my %all;
    for my $user (qw(owner operator)) {
        my $page = crawl($user, $language);
        cmp_ok(scalar(keys %$page), '>=', 5, "$user finds the pages");
        %all = (%all, map { ("$user $_" => $page->{$_}) } keys %$page);
    }
    is_deeply([ grep { $all{$_} =~ /<script>alert|"><script/i } sort keys %all ], [],
        "on no page is it a script ($language)");
    for my $field (@shown) {
        ok(scalar(grep { /\Q$field\E&(?:quot|\#34);&gt;&lt;script&gt;/ } values %all),
            "$field is shown as text ($language)");
    }
}

$server->stop;
done_testing;
