# Random requests, made from the OpenAPI document (t/node/fuzz.mjs): none gets 5xx, each answer is
# as the document declares, nothing that it allows is refused as malformed, and nothing that it
# forbids succeeds.
#
#   SEED=4711 FUZZ=20000     which requests, and how many (make check-fuzz)
#
# With 20,000 of them each answer that an operation declares is given, but for those that are named
# below: what chance gives too seldom is asked for (t/node/fuzz-deck.mjs).
#
# both: values reach SQL
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::Kept;
use MDL::OpenApi;
use MDL::Receiver;
use MDL::Source;
use MDL::Test;
use Test::More;

use constant ENOUGH => 20_000;

my $requests = $ENV{FUZZ} // 300;
my $seed     = $ENV{SEED} // 202;
diag "SEED=$seed FUZZ=$requests";

# Codes and operations that these requests don't get, and the suite that does.
my %NOT_PROVOKED = (
    rate_limited                     => 'the limit is far away: t/api/rate_limit.t',
    request_timeout                  => 'nobody is slow: t/api/requests.t',
    idempotency_conflict_in_progress => 'nothing takes five seconds: t/operate/database.t',
    internal_error                   => 'nothing is broken: t/operate/secret.t',
    service_unavailable              => 'the database is there: t/operate/database.t',
    maintenance                      => 'nothing is moved: t/operate/maintenance.t',
    'getReadiness 503'               => 'nothing is broken: t/operate/check.t',
    'getStorageHealth 503'           => 'nothing is broken: t/operate/objects_check.t',
    putLogo                          => 'no body is an image: t/api/shop.t, t/api/openapi.t',
    insufficient_storage             => 'the disk has room: t/worker/reserve.t',
    too_many_items                   => 'takes an order of 250 items: t/api/too_many_files.t',
    too_many_files                   => 'takes 1,000 files: t/api/too_many_files.t',
    too_many_links                   => 'takes 1,000 links: t/api/too_many_links.t',
    too_many_license_keys            => 'takes 5,000 license keys: t/api/too_many_links.t',
);

# --- the service and what it meets ---------------------------------------------------------------

# Limits that are reached soon, and a rate limit that is told and never reached.
MDL::Instance->new(extra => <<'END')->start;
DownloadsRateLimit On
DownloadsRateBurst 1000000
DownloadsRateRefill 1000000
DownloadsRateNetwork 0
DownloadsStorageQuota 1G
DownloadsUploadMaxSize 2G
DownloadsUploadMaxOpen 8
DownloadsFraudCustomerOrders 1
END

my $shop = new_shop();
my ($suspended, $blocked, $stranger, $keeper, $no_room) = map { new_shop() } 1 .. 5;
my %keys = (full => $shop, suspended => $suspended, blocked => $blocked, stranger => $stranger,
    kept => $keeper, no_room => $no_room);
$keys{$_}          = MDL::Test::new_key($shop->{shop_id}, scope => $_) for qw(deliver read);
$keys{revoked}     = MDL::Test::new_key($shop->{shop_id});
$keys{kept_reader} = MDL::Test::new_key($keeper->{shop_id}, scope => 'read');
ctl('key',  'revoke',  $keys{revoked}{key_id});
ctl('shop', 'suspend', $suspended->{shop_id});
ctl('shop', 'block',   $blocked->{shop_id}, '--reason', 'a complaint');

my $source = MDL::Source->new;
my $receiver = MDL::Receiver->new;
$receiver->answers('takes',   {});
$receiver->answers('refuses', { status => 500 });
my %words = (
    source_url => [
        (map { source("fuzz-$_.txt", "bytes of file $_\n") } 1 .. 4),
        $source->offer('missing', { status => 404 }),
        $source->offer('busy', { status => 503 }),
        $source->offer('slow', { size => 100_000, rate => 10_000 }),
        'https://elsewhere.example/x',
    ],
    storefront_product_id  => [ map { product() } 1 .. 2 ],
    storefront_variant_id  => [ digits() ],
    storefront_customer_id => [ digits() ],
    is_active              => [ (JSON::PP::true) x 3, JSON::PP::false ],
    fraud_check            => [ JSON::PP::true ],
    client_ip              => [ '203.0.113.9', '2001:db8::9' ],
    size                   => [ 0, 10, 100, 50_000, 500_000_000, 1_500_000_000, 1_600_000_000,
        3_000_000_000 ],
    url                    => [ $receiver->url('takes'), $receiver->url('refuses'),
        'https://example.com/a' ],
);

# --- the requests --------------------------------------------------------------------------------

my $plan = logs_dir() . '/fuzz.json';
open my $out, '>', $plan or die "$plan: $!\n";
print $out encode_json({
    base => base_url(), seed => $seed + 0, requests => $requests + 0, connections => 6,
    keys => { map { $_ => $keys{$_}{token} } keys %keys }, words => \%words,
    kept => kept_things($keeper, $no_room,
        $source->offer('endless', { size => 50_000_000, rate => 10_000 })),
});
close $out or die "$plan: $!\n";
open my $in, '-|', 'tools/node', 't/node/fuzz.mjs', document_file(), $plan
    or die "tools/node: $!\n";
my $told = do { local $/; <$in> };
ok(close $in, 'the requests are sent') or BAIL_OUT("t/node/fuzz.mjs ended with $?");
my ($seen, $faults) = @{ decode_json($told) }{qw(seen faults)};

is(scalar @$faults, 0, 'each answer is as the document says') or diag(map {
    my $change = $_->{change} ? ", by \"$_->{change}\"" : '';
    "\n$_->{what}\n$_->{count} times, such as this$change:\n$_->{curl}\n-> $_->{answer}\n"
} @$faults);

# --- what was seen -------------------------------------------------------------------------------

my (@silent, @lines);
for my $operation (operations()) {
    my @line;
    for my $status (@{ $operation->{responses} }) {
        for my $code (@{ $operation->{codes}{$status} // [''] }) {
            my $answer = "$operation->{id} $status $code";
            my $count = $seen->{$answer};
            push @line, "$status" . ($code && " $code") . ($count ? " $count" : ' -');
            push @silent, $answer
                if !$count && !$NOT_PROVOKED{ $code || "$operation->{id} $status" }
                && !$NOT_PROVOKED{ $operation->{id} };
        }
    }
    push @lines, "$operation->{id}: " . join(', ', @line) . "\n";
}
diag 'How often each answer was given:', "\n", @lines if $ENV{FUZZ};
is(join("\n", @silent), '', 'each declared answer was given, or it is named why not')
    if $requests >= ENOUGH;

done_testing();
