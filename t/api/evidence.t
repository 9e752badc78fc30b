# The evidence of an order (contract, section 6): what its customer did is in it, to the byte, and
# nothing else.
#
# both: the database adds up what the metering has seen
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::MailServer;
use MDL::Test;
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

my $mail   = MDL::MailServer->new;
my $server = MDL::Instance->new(
    mpm     => 'event',
    tls     => 1,
    modules => ['remoteip'],
    extra   => <<"END")->start;
DownloadsMailTransport smtp://127.0.0.1:$mail->{port}
DownloadsSessionIdle 1
RemoteIPHeader X-Client-IP
RemoteIPInternalProxy 127.0.0.1
DownloadsRequireTLS Off
END
my $shop  = new_shop();
my $large = new_file($shop, 8 * MB);
my $small = new_file($shop, 40 * KB);

sub evidence
{
    my ($order, %opt) = @_;
    my $reply = api('GET', "/orders/$order->{id}/evidence", key => $shop->{token}, %opt);
    die "evidence: $reply->{status} $reply->{body}\n" if $reply->{status} != 200;
    return $reply->{json};
}

# An order of both files, as an archive, too.
sub order
{
    my (%more) = @_;
    my $product = mapping_of($shop, [ $large->{id}, $small->{id} ], download_type => 'ZIP',
        download_limit => 100, license_key_tag_ids => $more{tags} // [])->{storefront_product_id};
    my $id    = digits();
    my $reply = assign($shop, $id, [$product], storefront_customer_id => $id,
        customer => { email => "c$id\@buyer.example", first_name => 'Ada' },
        send_email => JSON::PP::true());
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    my ($path) = $reply->{json}{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    my $item = $reply->{json}{assignments}[0]{id};
    return { id => $id, path => $path, item => $item, product => $product };
}

# Presses a button of the order's page; returns the path of the link.
sub link_to
{
    my ($order, $field, $value) = @_;
    my $reply = page('POST', $order->{path}, form => { $field => $value });
    my ($path) = ($reply->{headers}{location} // '') =~ m{^https?://[^/]+(/.+)$};
    return $path // die "the button: $reply->{status}\n";
}

sub from { my ($ip, %headers) = @_; return (headers => { 'X-Client-IP' => $ip, %headers }) }

# The order's downloads once the newest is as it should be.
sub download_when
{
    my ($order, $what, $look) = @_;
    my $download;
    wait_for(sub { ($download) = @{ evidence($order)->{downloads}{data} };
            $download && $look->($download) }, 60, $what);
    return $download;
}

sub settled_one
{
    my ($order) = @_;
    return download_when($order, 'the end of the download', sub { $_[0]{status} ne 'open' });
}

my $tag =
    api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'A' })->{json}{id};
api('POST', "/license-key-tags/$tag/keys", key => $shop->{token},
    json => { keys => ['SECRET-KEY-1'] });

subtest 'An email that came back, with the words of the server that refused it' => sub {
    my $order = order();
    my $email;
    wait_for(sub { ($email) = @{ evidence($order)->{emails}{data} }; $email->{status} eq 'sent' },
        60, 'the email');
    sql("UPDATE email SET bounced_at = sent_at + 1000000, last_error = '552 5.2.2 mailbox full' "
        . "WHERE id = $email->{id}");
    is_shape(my $all = evidence($order), 'evidence', 'the evidence of a bounced email');
    ($email) = @{ $all->{emails}{data} };
    is $email->{status}, 'bounced', 'says that it came back';
    is $email->{last_error}, '552 5.2.2 mailbox full', 'and why';
    is $email->{response}, '250 taken', 'beside what the first server said';
};

subtest 'What was bought, and the email with the mail server\'s words' => sub {
    my $order = order(tags => [$tag]);
    my $email;
    wait_for(sub { ($email) = @{ evidence($order)->{emails}{data} }; $email->{status} eq 'sent' },
        60, 'the email');
    is_shape(my $all = evidence($order), 'evidence', 'it');
    is $all->{address}, "c$order->{id}\@buyer.example", 'it has the address';
    is $all->{customer}{first_name}, 'Ada', 'and the customer';
    my $item = $all->{items}[0];
    is_deeply [ map { "$_->{file_id} $_->{sha256} $_->{size}" } @{ $item->{files} } ],
        [ map { "$_->{id} $_->{sha256} $_->{size}" } $large, $small ], 'and the files';
    is $item->{license_keys}, 1, 'how many license keys there are';
    is $email->{to}, $all->{address}, 'where the email went';
    is $email->{response}, '250 taken', 'and what the mail server said when it took it';
    is $email->{last_error}, undef, 'which is no error';
    is_deeply [ map { $_->{action} } @{ $all->{events}{data} } ],
        [ map { $_->{action} }
            @{ api('GET', "/orders/$order->{id}", key => $shop->{token})->{json}{events} } ],
        'it has the audit trail';
    is_deeply $all->{visits}, { data => [], has_more => JSON::PP::false(), gone_before => undef },
        'no visit is claimed';
    is_deeply $all->{downloads}{data}, [], 'nor a download';
    my $text = JSON::PP->new->encode($all);
    unlike $text, qr/SECRET-KEY/, 'it has no license key';
    my ($token) = $order->{path} =~ m{([^/]+)$};
    unlike $text, qr/\Q$token\E/, 'and no token';
};

subtest 'The first visit of each day from each network' => sub {
    # Of a day, in UTC: what is left of this one has to be enough.
    wait_for(sub { time % 86_400 < 86_400 - 120 }, 180, 'midnight to pass');
    my $order = order();
    my $networks = sub { [ sort map { $_->{network} } @{ evidence($order)->{visits}{data} } ] };
    page('HEAD', $order->{path}, from('198.51.100.1'));
    page('GET', $order->{path}, from('198.51.100.2', 'Sec-Purpose' => 'prefetch'));
    page('GET', $order->{path}, from($_))
        for qw(203.0.113.9 203.0.113.77 2001:db8:7:1::5 2001:db8:7:2::6);
    wait_for(sub { @{ $networks->() } >= 2 }, 60, 'the visits');
    is_deeply $networks->(), [ '2001:db8:7::/48', '203.0.113.0/24' ],
        'two networks have visited: a HEAD and a prefetch are no visits';
    page('GET', $order->{path}, from("10.0.$_.1")) for 1 .. 30;
    wait_for(sub { @{ $networks->() } >= 20 }, 60, 'the visits');
    # Each process writes its visits down by and by, and the rest when it ends.
    $server->stop;
    $server->start;
    is scalar @{ $networks->() }, 20, 'a day has 20 at most';
    sql("UPDATE order_visit SET day = day - 1 WHERE order_id = (SELECT id FROM orders "
            . "WHERE storefront_order_id = '$order->{id}')");
    page('GET', $order->{path}, from('203.0.113.9'));
    wait_for(sub { @{ $networks->() } == 21 }, 60, 'the visit of the next day');
    like evidence($order)->{visits}{data}[0]{visited_at}, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
        'times are in UTC';
};

subtest 'A whole file' => sub {
    my $order = order();
    my $path  = link_to($order, file => "$order->{item}-$small->{id}");
    page('HEAD', $path);
    is_deeply evidence($order)->{downloads}{data}, [], 'a link and a HEAD are no download';
    is page('GET', $path, from('203.0.113.80'))->{status}, 200, 'the client gets it';
    my $download = settled_one($order);
    ok $download->{opened_at} le $download->{ended_at}, 'it begins before it ends';
    delete @$download{qw(opened_at ended_at)};
    is_deeply $download, {
        assignment_id => $order->{item}, file_id => $small->{id}, filename => $download->{filename},
        version => 1, sha256 => $small->{sha256}, size => $small->{size}, status => 'counted',
        bytes_sent => $small->{size}, bytes_acknowledged => $small->{size},
        bytes_handed_over => 0,
        transfers => 1, network => '203.0.113.0/24',
    }, 'the evidence has it';
};

subtest 'Parts are added up' => sub {
    my $order = order();
    my $path  = link_to($order, file => "$order->{item}-$large->{id}");
    page('GET', $path, headers => { Range => "bytes=$_" }) for '5-9', '100-1099', '0-0,2-3';
    my $download = settled_one($order);
    is $download->{bytes_acknowledged}, 5 + 1000 + 3, 'to the byte';
    is "$download->{status} $download->{transfers}", 'returned 3', 'of three requests';
};

for my $way ('HTTP/1.1', 'TLS', 'HTTP/2') {
    subtest "$way: a download that breaks off" => sub {
        my $order  = order();
        my $path   = link_to($order, file => "$order->{item}-$large->{id}");
        my $client = MDL::DownloadClient->over($way, $server, $path)->read_until(700_000);
        if ($way eq 'HTTP/1.1') {
            download_when($order, 'what has arrived, while it runs',
                sub { $_[0]{bytes_acknowledged} == $client->arrived });
        } else {
            download_when($order, 'bytes, while it runs', sub { $_[0]{bytes_acknowledged} > 0 });
        }
        $client->leave;
        my $arrived = $client->arrived;
        my $download = settled_one($order);
        if ($way eq 'HTTP/1.1') {
            is $download->{bytes_acknowledged}, $arrived, 'has what arrived, to the byte';
        } else {
            cmp_ok $download->{bytes_acknowledged}, '<=', $arrived + 16 * KB,
                'has no more than arrived, and a record of TLS';
            cmp_ok $download->{bytes_acknowledged}, '>', 0, 'and not nothing';
        }
        cmp_ok $download->{bytes_sent}, '>=', $download->{bytes_acknowledged}, 'no less was sent';
        is $download->{status}, 'returned', 'it was not whole';
        is $download->{size}, $large->{size}, 'as its size says';
    };
    subtest "$way: a whole one" => sub {
        my $order = order();
        my $path  = link_to($order, file => "$order->{item}-$large->{id}");
        ok(MDL::DownloadClient->over($way, $server, $path)->rest, 'it arrives');
        is settled_one($order)->{bytes_acknowledged}, $large->{size}, 'all of it is acknowledged';
    };
}

subtest 'An archive' => sub {
    my $order = order();
    my $path  = link_to($order, zip => $order->{item});
    my $reply = page('GET', $path);
    my $download = settled_one($order);
    is $download->{bytes_acknowledged}, length $reply->{body}, 'all of its bytes';
    is_deeply [ @$download{qw(file_id filename version sha256)} ], [ (undef) x 4 ],
        'it is no single file';
};

subtest 'New bytes have another version' => sub {
    my $order = order();
    my $file  = new_file($shop, 3 * KB);
    my $buy   = buy($shop, $file, limit => 9);
    page('GET', link_of($buy));
    my $old = settled_one($buy);
    my $url = source("second-$$.bin", 'other bytes');
    my $job = api('POST', "/assets/$file->{id}/versions", key => $shop->{token},
        json => { source_url => $url });
    wait_job($shop, $job->{json}{job}{id});
    page('GET', link_of($buy));
    download_when($buy, 'the second', sub { $_[0]{version} == 2 && $_[0]{status} eq 'counted' });
    my ($second, $first) = @{ evidence($buy)->{downloads}{data} };
    is $first->{sha256}, $file->{sha256}, 'a download keeps the SHA-256 of its bytes';
    is "$first->{version} $second->{version}", '1 2', 'and their version';
    isnt $second->{sha256}, $file->{sha256}, 'the next one has its own';
};

subtest 'What is no longer kept' => sub {
    my $order = order();
    my $year  = 365 * 86400 * 1_000_000;
    is evidence($order)->{downloads}{gone_before}, undef, 'of a new order nothing is gone';
    sql("UPDATE orders SET created_at = created_at - 2 * $year "
            . "WHERE storefront_order_id = '$order->{id}'");
    my $all = evidence($order);
    like $all->{$_}{gone_before}, qr/^\d{4}-/, "of an old one, $_ may be gone, and it says so"
        for qw(emails visits downloads);
    is $all->{events}{gone_before}, undef, 'its audit trail is kept for ever';
};

subtest 'Whose it is' => sub {
    my $order = order();
    my $reply = api('GET', "/orders/$order->{id}/evidence", key => new_shop()->{token});
    is_error($reply, 404, 'order_not_found', 'another shop has no such order');
};

$server->stop;
done_testing;
