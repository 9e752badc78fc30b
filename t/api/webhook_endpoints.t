# /webhook-endpoints (contract, section 11): the endpoints themselves. What is sent to them is
# tested in t/worker/webhooks.t.
#
# once: openapi.t makes each of these requests on both databases, and t/worker/webhooks.t sends
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());
my $shop = new_shop();
my $url  = source_url('webhooks');

sub call
{
    my ($method, $path, %opt) = @_;
    return api($method, "/webhook-endpoints$path", key => $shop->{token}, %opt);
}

my %same = (idem => idem(), json => { url => $url, description => 'Orders',
    event_types => [ 'order.held', 'email.bounced' ] });
my $made = call('POST', '', %same);
is_answer($made, 201, 'an endpoint is created');
is_shape($made->{json}, 'webhook_endpoint_with_secret', 'the answer');
my $id = $made->{json}{id};
like($made->{headers}{location}, qr{/api/v1/webhook-endpoints/$id\z}, 'Location names it');
is(call('POST', '', %same)->{body}, $made->{body}, 'a replay has the same secret');

my $read = call('GET', "/$id");
is_answer($read, 200, 'it can be read');
is_shape($read->{json}, 'webhook_endpoint', 'it');
delete $made->{json}{secret};
is_deeply($read->{json}, $made->{json}, 'as it was created, without the secret');
is_deeply(call('GET', '')->{json}{data}, [ $read->{json} ], 'and so can all');
is_deeply($read->{json}{event_types}, [ 'order.held', 'email.bounced' ],
    'with the types of events');

my $changed = call('PATCH', "/$id",
    json => { description => undef, event_types => undef, is_active => $false },
    headers => { 'if-match' => $read->{headers}{etag} });
is_answer($changed, 200, 'it is changed');
is_deeply([ @{ $changed->{json} }{qw(url description event_types is_active)} ],
    [ $url, undef, undef, $false ], 'null clears, and what is left out stays');
is_error(call('PATCH', "/$id", json => { is_active => $true },
    headers => { 'if-match' => $read->{headers}{etag} }),
    412, 'precondition_failed', 'who knew the version before');
is_deeply(call('PATCH', "/$id", json => {})->{json}, $changed->{json}, '{} changes nothing');

my $rotated = call('POST', "/$id/rotate-secret");
is_shape($rotated->{json}, 'webhook_endpoint_with_secret', 'a new secret');
ok($rotated->{json}{previous_secret_until}, 'says how long the former one signs');

for ([ 'ftp://shop.example.com/' ], [ 'https://127.0.0.1/' ],
    [ 'https://user:pw@shop.example.com/' ], [ '/relative' ],
    [ 'https://shop.example.com/#part' ], [ 'https://shop.example.com/' . 'a' x 2024 ], [7],
    [undef]) {
    is_error(call('POST', '', json => { url => $_->[0] }), 400, 'invalid_request',
        'the URL ' . substr($_->[0] // 'null', 0, 40), '/url');
}
my $long = call('POST', '', json => { url => 'https://shop.example.com/' . 'a' x 2023 });
is_answer($long, 201, 'a URL of 2,048 characters');
call('DELETE', "/$long->{json}{id}");
is_error(call('POST', '', json => {}), 400, 'invalid_request', 'no URL', '/url');
my $odd = call('POST', '', json => { url => $url,
    event_types => [ 'order.assigned', 'nonsense', 7, 'order.assigned' ], secret => 'x' });
is_error($odd, 400, 'invalid_request', 'types that there are not', '/event_types/1',
    '/event_types/2', '/event_types/3', '/secret');
my ($wrong) = grep { $_->{pointer} eq '/event_types/1' } @{ $odd->{json}{error}{details} };
like($wrong->{message}, qr/\AThis element must be one of: asset\.ready, .*, webhook\.test\.\z/,
    'which lists those that there are');
is_error(call('POST', '', json => { url => $url, event_types => [] }), 400, 'invalid_request',
    'no types', '/event_types');
is_error(call('PATCH', "/$id", json => { url => undef }), 400, 'invalid_request', 'no URL any more',
    '/url');
is_error(call('PATCH', "/$id", json => { is_active => undef }), 400, 'invalid_request',
    'neither on nor off', '/is_active');

is(call('POST', '', json => { url => "$url/$_" })->{status}, 201, "endpoint $_") for 2 .. 10;
is_error(call('POST', '', json => { url => $url }), 422, 'too_many_webhook_endpoints',
    'the eleventh');
is(call('DELETE', "/$id")->{status}, 204, 'one is deleted');
is_error(call('GET', "/$id"), 404, 'webhook_endpoint_not_found', 'it is gone');
is(call('POST', '', json => { url => $url })->{status}, 201, 'which makes room for another');
is(scalar @{ call('GET', '?limit=100')->{json}{data} }, 10, 'there are ten');

done_testing();
