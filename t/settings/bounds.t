# The fields of the settings' forms take what the API takes and refuse what it refuses: each is
# given the largest value that the OpenAPI document has for its member, and one more, in characters
# of two bytes where it is text.
#
# once: a field is refused before it reaches the database
use strict;
use warnings;

use MDL::Contract;
use MDL::OpenApi;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', 'owner', 'owner', '--shop', $id);

my $asset = ready_asset($shop, 'book.pdf', 'the book');
my $item  = assign($shop, 7001, [ mapping_of($shop, [ $asset->{id} ])->{storefront_product_id} ])
    ->{json}{assignments}[0]{id};
my $webhook = api('POST', '/webhook-endpoints', key => $shop->{token},
    json => { url => 'https://shop.example/' });

# The schema of a member of an operation's body, without what it has for null.
sub schema_of
{
    my ($operation, $member) = @_;
    my $it     = document()->{paths}{ $operation->{path} }{ lc $operation->{method} };
    my $schema = MDL::OpenApi::resolve($it->{requestBody}{content}{'application/json'}{schema});
    $schema = MDL::OpenApi::resolve($schema->{properties}{$member});
    return MDL::OpenApi::resolve($schema->{oneOf} ? $schema->{oneOf}[0] : $schema);
}

my %LONG = (
    text    => sub { "\x{fc}" x $_[0] },
    url     => sub { 'https://shop.example/' . 'x' x ($_[0] - length 'https://shop.example/') },
    address => sub {
        my $domain = ('d' x 61 . '.') x 3;
        'a' x ($_[0] - length($domain) - 3) . "\@${domain}de";
    },
    name    => sub { 'x' x $_[0] },
    number  => sub { $_[0] },
);

# Each form: the page that has it, its path, the fields that make it right, the operation, and each
# field's member.
my $ORDER = "/$id/orders/7001";
my $HOOK  = "/$id/webhooks/$webhook->{json}{id}";
my $FILE  = "/$id/files/$asset->{id}";
my @REASON = ([ reason => 'reason', 'text' ]);
my @HOOK   = ([ url => 'url', 'url' ], [ description => 'description', 'text' ]);
my @FORMS  = (
    [ $ORDER, "$ORDER/revoke",      {}, 'revokeOrder',  @REASON ],
    [ $ORDER, "$ORDER/restore",     {}, 'restoreOrder', @REASON ],
    [ $ORDER, "$ORDER/approve",     {}, 'approveOrder', @REASON ],
    [ $ORDER, "$ORDER/reject",      {}, 'rejectOrder',  @REASON ],
    [ $ORDER, "$ORDER/rotate-link", {}, 'rotateLink',   @REASON ],
    [ $ORDER, "$ORDER/resend", { to => 'ada@example.com' }, 'resendEmail', @REASON,
        [ to => 'email', 'address' ] ],
    [ $ORDER, "$ORDER/address", { to => 'ada@example.com' }, 'updateOrder', @REASON,
        [ to => 'email', 'address' ] ],
    [ $ORDER, "$ORDER/grant", { downloads => 1, days => 1 }, 'grantDownloads', @REASON,
        [ downloads => 'downloads', 'number' ], [ days => 'extend_days', 'number' ] ],
    [ $ORDER, "$ORDER/quantity", { item => $item }, 'updateAssignment',
        [ quantity => 'quantity', 'number' ] ],
    [ "/$id/webhooks", "/$id/webhooks", { url => 'https://shop.example/' }, 'createWebhookEndpoint',
        @HOOK ],
    [ $HOOK, $HOOK, { url => 'https://shop.example/' }, 'updateWebhookEndpoint', @HOOK ],
    [ $FILE, $FILE, { title => 'Book', filename => 'book.pdf' }, 'updateAsset',
        [ title => 'title', 'text' ], [ filename => 'filename', 'name' ] ],
    [ "/$id/files", "/$id/files", {}, 'importAsset', [ source_url => 'source_url', 'url' ] ],
);

my %tried;
for my $form (@FORMS) {
    my ($page, $path, $right, $operation, @fields) = @$form;
    for my $field (@fields) {
        my ($name, $member, $kind) = @$field;
        my $schema = schema_of(operation($operation), $member);
        my $most   = $schema->{maxLength} // $schema->{maximum};
        $tried{"$path $name"} = 1;
        for my $value ($most, $most + 1) {
            my $status = submit('owner', visit('owner', 'GET', $page), $path,
                { %$right, $name => $LONG{$kind}->($value) })->{status};
            my $done = $status == 400 ? 'refused' : $status < 500 ? 'taken' : $status;
            is($done, $value > $most ? 'refused' : 'taken', "$path: $name of $value");
        }
    }
}

is((sql("SELECT max(length(detail)) FROM audit WHERE shop_id = $id"))[0][0], 500,
    'the audit keeps the longest reason whole');

# Nobody forgets a field: those that can be typed into, on the pages in every state of the order.
for my $access (qw(active held revoked)) {
    sql("UPDATE orders SET access_status = '$access' WHERE shop_id = $id");
    for my $page ($ORDER, "/$id/webhooks", $HOOK) {
        my $html = visit('owner', 'GET', $page)->{body};
        while ($html =~ m{<form method="post" action="/settings([^"]+)">(.*?)</form>}gs) {
            my ($path, $inputs) = ($1, $2);
            ok($tried{"$path $_"}, "$path: $_ was tried")
                for $inputs
                =~ /<(?:input type="(?:text|email|url|number)"|textarea)[^>]* name="([^"]+)"/g;
        }
    }
}

$server->stop;
done_testing;
