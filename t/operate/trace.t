# One request's id leads from its answer to all that it has caused, by downloadsctl trace: audit,
# jobs, emails, downloads and the lines of the error log.
#
# both: each part is a query
use strict;
use warnings;

use JSON::PP ();
use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Receiver;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(extra => "LogLevel downloads:info\n")->start;
my $shop = new_shop();

sub trace
{
    my ($id) = @_;
    my ($code, $json, $text) = ctl('trace', $id);
    is($code, 0, "$id is traced") or diag($text);
    return $json;
}

sub id_of
{
    my ($reply) = @_;
    my $id = $reply->{headers}{'x-request-id'};
    like($id, qr/^req_[\w-]{26,27}$/, 'the answer has the id of its request');
    return $id;
}

# The lines of the log that a trace tells to look for.
sub log_lines
{
    my ($trace) = @_;
    return grep { /$trace->{log_pattern}/ } split /\n/, error_log_since(0);
}

subtest 'an import' => sub {
    my $reply = import_of($shop, "trace-$$.txt", "bytes\n");
    my $job   = wait_job($shop, $reply->{json}{job}{id});
    my $trace = trace(id_of($reply));
    is_deeply([ map { join ' ', @$_{qw(noun action via)} } @{ $trace->{audit} } ],
        ['asset imported api'], 'its entry in the audit');
    is($trace->{audit}[0]{key_id}, $shop->{key_id}, 'by a key');
    is_deeply([ map { join ' ', @$_{qw(id type status)} } @{ $trace->{jobs} } ],
        ["$job->{id} asset_import succeeded"], 'its job');
    is($trace->{jobs}[0]{asset_id}, $reply->{json}{asset}{id}, 'with the file');
    is_deeply([ map { $_->{type} } @{ $trace->{events} } ], ['asset.ready'], 'what the job told');
    is_deeply([ $trace->{emails}, $trace->{downloads} ], [ [], [] ], 'and nothing else');
};

my $file = new_file($shop, 5000);
my $product = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};

subtest 'an order and its email' => sub {
    my $order = digits();
    my $to    = "trace-$$\@buyer.example";
    my $reply = assign($shop, $order, [$product], send_email => JSON::PP::true(),
        customer => { email => $to });
    my $id    = id_of($reply);
    wait_for(sub { ((ctl('trace', $id))[1]{jobs}[0]{status} // '') eq 'succeeded' }, 20,
        'the end of the job');
    my $trace = trace($id);
    is_deeply([ map { join ' ', @$_{qw(noun noun_id)} } @{ $trace->{audit} } ], ["order $order"],
        'its entry in the audit');
    is($trace->{jobs}[0]{type}, 'email', 'its job');
    my ($email) = @{ $trace->{emails} };
    is(scalar @{ $trace->{emails} }, 1, 'its email');
    is_deeply([ @$email{qw(id to status storefront_order_id)} ],
        [ $trace->{jobs}[0]{email_id}, $to, 'sent', $order ], 'with what became of it');
    is_deeply([ map { $_->{type} } @{ $trace->{events} } ], [ 'order.assigned', 'email.sent' ],
        'what it and its job told');
    ok(wait_for(sub { log_lines($trace) }, 60, $trace->{log_pattern}), 'its lines in the log');

    my $later = api('POST', "/orders/$order/resend", key => $shop->{token});
    my $again = trace(id_of($later));
    isnt($again->{emails}[0]{id}, $email->{id}, 'another request has another email');
    is(scalar @{ $again->{emails} }, 1, 'alone');
};

subtest 'an email that waits has no job' => sub {
    my $order = digits();
    my %customer = (customer => { email => "held-$$\@buyer.example" });
    assign($shop, $order, [$product], %customer);
    sql("UPDATE orders SET storefront_risk = 'high' WHERE storefront_order_id = '$order'");
    my $reply = assign($shop, $order, [$product], %customer, fraud_check => JSON::PP::true(),
        send_email => JSON::PP::true());
    my $trace = trace(id_of($reply));
    is($trace->{emails}[0]{status}, 'held', 'but is found by its order');
    is_deeply($trace->{jobs}, [], 'without one');
};

subtest 'an event and its webhook' => sub {
    my $receiver = MDL::Receiver->new;
    my $endpoint = $receiver->endpoint($shop, 'trace', event_types => ['order.assigned']);
    my @orders = map { assign($shop, digits(), [$product]) } 1 .. 3;
    $receiver->await('trace', 3);
    my $id = id_of($orders[1]);
    wait_for(
        sub { ((ctl('trace', $id))[1]{webhook_deliveries}[0]{status} // '') eq 'succeeded' },
        20, 'the delivery');
    my $trace = trace($id);
    is_deeply([ map { $_->{type} } @{ $trace->{events} } ], ['order.assigned'], 'its event alone');
    my @received = map { JSON::PP::decode_json($_->{body}) } $receiver->received('trace');
    my ($sent) = grep { $_->{id} eq $trace->{events}[0]{id} } @received;
    is($sent->{data}{storefront_order_id}, $orders[1]{json}{storefront_order_id},
        'as the receiver has it');
    is_deeply([ @{ $trace->{webhook_deliveries}[0] }{qw(endpoint_id event_id response_status)} ],
        [ $endpoint->{id}, $trace->{events}[0]{id}, 200 ], 'and its delivery');
    is(scalar @{ $trace->{webhook_deliveries} }, 1, 'alone');
};

subtest 'a download' => sub {
    my $buy  = buy($shop, $file);
    my $path = link_of($buy);
    is(length page('GET', $path)->{body}, 5000, 'a file is sent');
    settled($buy);
    my ($row) = sql('SELECT request_id FROM download_session'
            . " WHERE assignment_id = $buy->{assignment}");
    my $trace = trace($row->[0]);
    my ($download) = @{ $trace->{downloads} };
    is_deeply([ @$download{qw(storefront_order_id asset_id status bytes size)} ],
        [ $buy->{id}, $file->{id}, 'counted', 5000, 5000 ], 'is traced by its request');
    is_deeply([ $trace->{audit}, $trace->{jobs} ], [ [], [] ], 'and changed nothing else');
    wait_for(sub { log_lines($trace) }, 60, $trace->{log_pattern});
    like((log_lines($trace))[0], qr/MDL0405: download of asset $file->{id} /,
        'which the log names');
};

subtest 'what leads nowhere' => sub {
    my $refused = api('POST', '/assets', key => $shop->{token}, json => { nonsense => 1 });
    my ($code, $json) = ctl('trace', id_of($refused));
    is_deeply([ $code, $json->{error}{code} ], [ 4, 'not_found' ], 'a request that was refused');
    is((ctl('trace', "req_$_"))[0], 4, "an id that is not there: $_") for '0' x 26, 'x', 'Zz_-@';
};

done_testing();
