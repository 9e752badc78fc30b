# Random requests, made from the OpenAPI document (t/node/fuzz.mjs): none gets 5xx, each answer is as the
# document declares, nothing that it allows is refused as malformed, and nothing that it forbids succeeds.
#
#   SEED=4711 FUZZ=20000     which requests, and how many (make check-fuzz)
#
# With 40,000 of them each code that the document declares is given, but for those that are named below; an
# operation may miss a rare one, and is told of.
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::OpenApi;
use MDL::Receiver;
use MDL::Source;
use MDL::Test;
use Test::More;

use constant ENOUGH => 20_000;

my $requests = $ENV{FUZZ} // 300;
my $seed     = $ENV{SEED} // 202;
diag "SEED=$seed FUZZ=$requests";

# Declared answers that random requests don't get: by code, or by "operation status code".
my %NOT_PROVOKED = (
    rate_limited                     => 'the limit is far away: t/api/rate_limit.t',
    request_timeout                  => 'nobody is slow: t/api/requests.t',
    idempotency_conflict_in_progress => 'nothing takes five seconds',
    internal_error                   => 'nothing is broken',
    service_unavailable              => 'the database is there: t/operate/database.t',
    insufficient_storage             => 'the disk has room: t/worker/reserve.t',
    too_many_items                   => 'takes an order of 250 items: t/api/too_many_files.t',
    too_many_files                   => 'takes 1,000 files: t/api/too_many_files.t',
    too_many_links                   => 'takes 1,000 links: t/api/too_many_links.t',
    too_many_license_keys            => 'takes 5,000 license keys: t/api/too_many_links.t',
    'completeUpload 422 storage_quota_exceeded'     => 'the upload has reserved its room: t/api/upload_limits.t',
    'createAssetVersion 422 storage_quota_exceeded' => 'the same',
);

# --- the service and what it meets -----------------------------------------------------------------

# Limits that are reached soon, and a rate limit that is told and never reached.
MDL::Instance->new(extra => <<'END')->start;
DownloadsRateLimit On
DownloadsRateBurst 1000000
DownloadsRateRefill 1000000
DownloadsRateNetwork 0
DownloadsStorageQuota 1G
DownloadsUploadMaxSize 2G
DownloadsUploadMaxOpen 5
DownloadsFraudCustomerOrders 1
END

my $shop = new_shop();
my ($suspended, $blocked, $stranger) = map { new_shop() } 1 .. 3;
my %keys = (full => $shop, suspended => $suspended, blocked => $blocked, stranger => $stranger);
for my $name (qw(deliver read revoked)) {
    my ($code, $made) = ctl('key', 'create', $shop->{shop_id}, $name, $name eq 'revoked' ? () : ('--scope', $name));
    $keys{$name} = { key_id => $made->{key}{id}, token => $made->{token} };
}
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
    size                   => [ 0, 10, 100, 50_000, 500_000_000, 1_500_000_000, 1_600_000_000, 3_000_000_000 ],
    url                    => [ $receiver->url('takes'), $receiver->url('refuses'), 'https://example.com/a' ],
);

# --- the requests ----------------------------------------------------------------------------------

my $plan = logs_dir() . '/fuzz.json';
open my $out, '>', $plan or die "$plan: $!\n";
print $out encode_json({
    base => base_url(), seed => $seed + 0, requests => $requests + 0, connections => 6,
    keys => { map { $_ => $keys{$_}{token} } keys %keys }, words => \%words,
});
close $out or die "$plan: $!\n";
open my $in, '-|', 'tools/node', 't/node/fuzz.mjs', document_file(), $plan or die "tools/node: $!\n";
my $told = do { local $/; <$in> };
ok(close $in, 'the requests are sent') or BAIL_OUT("t/node/fuzz.mjs ended with $?");
my ($seen, $faults) = @{ decode_json($told) }{qw(seen faults)};

is(scalar @$faults, 0, 'each answer is as the document says') or diag(map {
    my $change = $_->{change} ? ", by \"$_->{change}\"" : '';
    "\n$_->{what}\n$_->{count} times, such as this$change:\n$_->{curl}\n-> $_->{answer}\n"
} @$faults);

# --- what was seen ---------------------------------------------------------------------------------

my (%given, %declared, @silent, @lines);
for my $operation (operations()) {
    my @line;
    for my $status (@{ $operation->{responses} }) {
        for my $code (@{ $operation->{codes}{$status} // [''] }) {
            my $answer = "$operation->{id} $status $code";
            my $count = $seen->{$answer};
            $declared{ $code || $status } = 1;
            $given{ $code || $status } += $count // 0;
            push @line, "$status" . ($code && " $code") . ($count ? " $count" : ' -');
            push @silent, $answer if !$count && !$NOT_PROVOKED{$code} && !$NOT_PROVOKED{$answer};
        }
    }
    push @lines, "$operation->{id}: " . join(', ', @line) . "\n";
}
diag 'How often each answer was given:', "\n", @lines if $ENV{FUZZ};
diag 'Not given this time: ', join(', ', @silent) if $ENV{FUZZ} && @silent;
my @never = grep { !$given{$_} && !$NOT_PROVOKED{$_} } sort keys %declared;
is(join("\n", @never), '', 'each declared code was given, or it is named why not') if $requests >= ENOUGH;

done_testing();
