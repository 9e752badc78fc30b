# The specification's typical flow (its section 4), line by line, with only the members that it
# names; then the customer's part.
#
# both: the main job
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $film  = join '', map { chr int rand 256 } 1 .. 3_000_000;
my $name  = "flow-$$.mp4";
my $customer = "flow-$$\@buyer.example";

# "Use one consistent form: {base_url}/<resource> where {base_url} ends at the API root."
like(base_url(), qr{/api/v1\z}, 'the base address ends at the root of the API');

# GET /ping: "Success confirms that the token can authenticate for the approved shop."
my $ping = api('GET', '/ping', key => $shop->{token});
is_answer($ping, 200, 'GET /ping');

# POST /assets: "source_url, filename, content_type, title.  Imports a remote file from an
# allowlisted host."
my $key = idem('asset');
my $asset_request = {
    source_url   => source($name, $film),
    filename     => 'film.mp4',
    content_type => 'video/mp4',
    title        => 'The film',
};
my $assets = api('POST', '/assets', key => $shop->{token}, idem => $key, json => $asset_request);
is_answer($assets, 202, 'POST /assets');
my $file_id = $assets->{json}{asset}{id};
my $job_id  = $assets->{json}{job}{id};

# "When the same key is reused with the same body, the service replays the earlier successful
# response and creates no duplicate asset."
my $replay = api('POST', '/assets', key => $shop->{token}, idem => $key, json => $asset_request);
is_answer($replay, 202, 'POST /assets with the same key and body');
is($replay->{body}, $assets->{body}, 'replays the response');

# GET /jobs/{job_id}: "The job is polled until the remote ingest completes."
my $job = wait_job($shop, $job_id);
is($job->{status}, 'succeeded', 'GET /jobs/{job_id}, until it succeeds');
is($job->{asset_id}, $file_id, 'the job has the file id');

# POST /mappings "with the resulting file id", as in section 2; the lists "may be empty".
my $product = product();
my $mapping_request = {
    storefront_product_id  => $product,
    storefront_variant_ids => [],
    file_ids               => [$file_id],
    pack_ids               => [],
    link_ids               => [],
    license_key_tag_ids    => [],
    download_type          => 'ZIP',
    is_active              => JSON::PP::true(),
};
$key = idem('mapping');
my $mapping = api('POST', '/mappings', key => $shop->{token}, idem => $key,
    json => $mapping_request);
is_answer($mapping, 201, 'POST /mappings');
is_deeply($mapping->{json}{$_}, $mapping_request->{$_}, "the mapping's $_")
    for sort keys %$mapping_request;
is(api('POST', '/mappings', key => $shop->{token}, idem => $key, json => $mapping_request)->{body},
    $mapping->{body}, 'POST /mappings with the same key and body replays the response');
is_answer(api('POST', '/mappings', key => $shop->{token}, json => $mapping_request), 200,
    '"Creates or updates a mapping."');

# POST /orders/{storefront_order_id}/assignments: "storefront_customer_id, items, send_email,
# fraud_check."  The storefront's customer has no address in the specification.
my $assign_request = {
    storefront_customer_id => '207119551',
    items                  => [ { storefront_product_id => $product } ],
    send_email             => JSON::PP::false(),
    fraud_check            => JSON::PP::false(),
};
$key = idem('assign');
my @assign = ('POST', '/orders/450789469/assignments', key => $shop->{token}, idem => $key,
    json => $assign_request);
my $assigned = api(@assign);
is_answer($assigned, 201, 'POST /orders/{storefront_order_id}/assignments');
is_shape($assigned->{json}, 'order', 'the order');
is($assigned->{json}{assignments}[0]{files}[0]{file_id}, $file_id, 'the order has the file');
is(api(@assign)->{body}, $assigned->{body}, 'with the same key and body the response is replayed');
is(scalar mails($customer), 0, 'without send_email no email is sent');

# "An assignment can create the customer record, create the purchase, and optionally send the
# delivery email."
my $emailed = api('POST', '/orders/450789470/assignments', key => $shop->{token},
    json => { %$assign_request, send_email => JSON::PP::true(), fraud_check => JSON::PP::true(),
        customer => { email => $customer, first_name => 'Ada' } });
is_answer($emailed, 201, 'the next order, with an email');
my $mail = wait_mail($customer);
my $page_url = $emailed->{json}{download_page_url};
like($mail->{headers}{to}, qr/\Q$customer\E/, 'the email goes to the customer');
ok(scalar(grep { $_ eq $page_url } @{ $mail->{urls} }), "it has the page's address");

# What the customer does.
my $page = page('GET', $page_url);
is($page->{status}, 200, 'the page opens');
like($page->{body}, qr/The film/, 'it names the file');
my ($form) = $page->{body} =~ m{(<form\b[^>]*method="post".*?</form>)}is;
ok($form, 'it has a form with a button') or diag($page->{body});
my ($action) = $form =~ /\baction="([^"]*)"/;
my %fields = $form =~ /<input\b[^>]*\bname="([^"]*)" value="([^"]*)"/g;
$action =~ s/&amp;/&/g;
my $pressed = page('POST', $action =~ m{^https?://} ? $action : $action eq '' ? $page_url
    : $action =~ m{^/} ? $action : $page_url =~ s{[^/]*\z}{$action}r, form => \%fields);
is($pressed->{status}, 303, 'pressing it redirects');
my $download = page('GET', $pressed->{headers}{location});
is($download->{status}, 200, 'to the file');
is(length $download->{body}, length $film, 'which has the right length');
is(sha256_hex($download->{body}), sha256_hex($film), 'and has the same bytes');
like($download->{headers}{'content-disposition'}, qr/^attachment\b.*film\.mp4/, 'under its name');
is($download->{headers}{'content-type'}, 'video/mp4', 'and of its type');
is(api('GET', '/orders/450789470', key => $shop->{token})
    ->{json}{assignments}[0]{files}[0]{downloads_used}, 1, 'the shop sees that it was downloaded');

done_testing();
