# What a download costs, by what was delivered (contract, section 8), over HTTP/1.1, TLS and HTTP/2.
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Test::More;
use Time::HiRes qw(sleep time);

use MDL::Contract;
use MDL::Instance;
use MDL::Reader;
use MDL::Test;

use constant { MB => 1 << 20, SIZE => 8 << 20 };

my $server = MDL::Instance->new(tls => 1, extra => "DownloadsSessionIdle 2\n")->start;
my $shop   = new_shop(name => 'Metered');
my $bytes  = join '', map { pack 'N', $_ } 1 .. SIZE / 4;
my $asset  = ready_asset($shop, 'metered.bin', $bytes);

# --- what the cases are made of --------------------------------------------------------------------

# An order of the file; returns { id, path, assignment, file }.
sub order
{
    my (%mapping) = @_;
    my $mapping = mapping_of($shop, [ $asset->{id} ], %mapping);
    my $id      = digits();
    my $reply   = api('POST', "/orders/$id/assignments", key => $shop->{token}, json => {
        storefront_customer_id => digits(),
        items => [ { storefront_product_id => $mapping->{storefront_product_id} } ],
    });
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my ($path) = $reply->{json}{order}{download_page_url} =~ m{^http://[^/]+(/.*)$};
    my $assignment = $reply->{json}{order}{assignments}[0]{id};
    return { id => $id, path => $path, assignment => $assignment, file => "$assignment-$asset->{id}" };
}

# Presses the button; returns the path of the link.
sub link_of
{
    my ($order) = @_;
    my $reply = page('POST', $order->{path}, form => { file => $order->{file} });
    $reply->{status} == 303 or die "no redirect but $reply->{status}: $reply->{body}\n";
    my ($path) = $reply->{headers}{location} =~ m{^http://[^/]+(/.*)$};
    return $path;
}

sub whole_order
{
    my ($order) = @_;
    my $reply = api('GET', "/orders/$order->{id}", key => $shop->{token});
    return $reply->{json};
}

sub used
{
    my ($order) = @_;
    my ($row) = sql("SELECT downloads_used FROM allowance WHERE assignment_id = $order->{assignment}");
    return $row ? $row->[0] : 0;
}

# The states of the order's sessions, as a sorted line of text.
sub states
{
    my ($order) = @_;
    return join ' ', sort map { $_->[0] } sql(
        "SELECT status FROM download_session WHERE assignment_id = $order->{assignment}");
}

sub running
{
    my ($order) = @_;
    my ($row) = sql(
        "SELECT count(*) FROM download_transfer WHERE assignment_id = $order->{assignment}");
    return $row->[0];
}

sub wait_settled { my ($order) = @_; return wait_for(sub { !running($order) }, 30, 'the end of all transfers') }

sub wait_states
{
    my ($order, $wanted) = @_;
    wait_for(sub { states($order) eq $wanted }, 30, "sessions that are $wanted, not " . states($order));
    return;
}

sub delivered
{
    my ($order) = @_;
    my ($row) = sql("SELECT SUM(bytes) FROM download_session WHERE assignment_id = $order->{assignment}");
    return $row->[0];
}

# --- over each protocol ----------------------------------------------------------------------------

for my $protocol (qw(http tls h2)) {
    my $reader = sub { MDL::Reader->new($server, $protocol, @_) };

    subtest "$protocol: the whole is a download, and once more is another" => sub {
        my $order = order(download_limit => 5);
        my $link  = link_of($order);
        ok($reader->($link)->all eq $bytes, 'it comes whole');
        wait_states($order, 'counted');
        is(used($order), 1, 'which is one download');
        ok($reader->($link)->all eq $bytes, 'it comes again');
        is(used($order), 2, 'which is two');
        is($reader->($link, range => 'bytes=0-')->status, 206, 'it comes as a range from its beginning');
        is(used($order), 3, 'which is three');
        wait_settled($order);
        my $part = $reader->($link, range => 'bytes=1000-1999')->all;
        ok($part eq substr($bytes, 1000, 1000), 'a part of it comes');
        is(used($order), 3, 'at no cost');
    };

    subtest "$protocol: bytes=0- twice, one right after the other, is two downloads" => sub {
        my $order = order(download_limit => 2);
        my $link  = link_of($order);
        ok($reader->($link, range => 'bytes=0-')->all eq $bytes, "whole, time $_") for 1 .. 2;
        is($reader->($link, range => 'bytes=0-')->status, 403,
            'a third time is refused');
        is(used($order), 2, 'two are used');
    };

    subtest "$protocol: a download that breaks off and goes on is one" => sub {
        my $order = order(download_limit => 1);
        my $link  = link_of($order);
        my $got   = '';
        for my $until (map { $_ * 700_000 } 1 .. 10) {
            my $part = $reader->($link, range => 'bytes=' . length($got) . '-');
            $got .= $part->take($until - length $got);
            $part->leave;
        }
        wait_settled($order);
        is(states($order), 'open', 'it is open as long as some is left');
        $got .= $reader->($link, range => 'bytes=' . length($got) . '-')->all;
        ok($got eq $bytes, 'the parts make the file');
        wait_states($order, 'counted');
        is(used($order), 1, 'for one download');
        cmp_ok(delivered($order), '>=', SIZE, 'all of it was delivered');
        cmp_ok(delivered($order), '<', SIZE + 10 * 768 * 1024,
            'and little more than was taken is said to be');
    };

    subtest "$protocol: breaking off in the last megabyte does not count, nor is it free for ever" => sub {
        my $order = order(download_limit => 0);
        for my $i (1 .. 8) {
            my $part = $reader->(link_of($order));
            $part->take(7 * MB + int rand(MB / 2));
            $part->leave;
        }
        wait_states($order, join ' ', ('returned') x 8);
        is(used($order), 0, 'none of eight is counted');
        my $link = link_of($order);
        ok($reader->($link, range => 'bytes=' . 7 * MB . '-')->all eq substr($bytes, 7 * MB), 'the rest comes');
        wait_states($order, join ' ', 'counted', ('returned') x 8);
        is(used($order), 1, 'and makes one download of them');
    };

    subtest "$protocol: two halves by two links are one download" => sub {
        my $order = order(download_limit => 1);
        my $half  = SIZE / 2;
        ok($reader->(link_of($order), range => "bytes=0-@{[ $half - 1 ]}")->all eq substr($bytes, 0, $half),
            'the first half');
        wait_states($order, 'returned');
        is(used($order), 0, 'is given back once it is idle');
        ok($reader->(link_of($order), range => "bytes=$half-")->all eq substr($bytes, $half), 'the other half');
        wait_states($order, 'counted returned');
        is(used($order), 1, 'makes a download of them');
    };

    subtest "$protocol: revoking cuts what is running" => sub {
        my $order = order(download_limit => 1);
        my $part  = $reader->(link_of($order));
        $part->take(MB);
        my $reply = api('POST', "/orders/$order->{id}/revoke", key => $shop->{token}, json => {});
        is($reply->{status}, 200, 'the order is revoked');
        wait_for(sub { !running($order) }, 15, 'the end of the transfer');
        is($part->all, undef, 'the client is cut off');
        cmp_ok(delivered($order), '<', 4 * MB, 'with little more than it had');
        wait_states($order, 'returned');
    };
}

subtest 'h2: a reading client loses its stream and keeps its connection' => sub {
    my $order = order(download_limit => 1);
    my $part  = MDL::Reader->new($server, 'h2', link_of($order));
    api('POST', "/orders/$order->{id}/revoke", key => $shop->{token}, json => {});
    while (defined(my $more = $part->take(20_000))) { sleep 0.05 }
    ok($part->stream_reset, 'the stream was reset');
    ok($part->is_alive, 'and the connection answers');
};

# --- caps ------------------------------------------------------------------------------------------

subtest 'The seventeenth transfer of a download has to wait' => sub {
    my $order = order(download_limit => 1);
    my $link  = link_of($order);
    my @parts = map { MDL::Reader->new($server, 'http', $link, range => "bytes=${_}00-") } 1 .. 16;
    my $reply = page('GET', $link, headers => { Range => 'bytes=5-' });

    is(join(' ', map { $_->status } @parts), join(' ', (206) x 16), 'sixteen are answered');
    is($reply->{status}, 429, 'one more is not');
    ok($reply->{headers}{'retry-after'}, 'and is told when to come again');
    $_->leave for @parts;
    wait_settled($order);
    is(page('GET', $link, headers => { Range => 'bytes=0-9' })->{status}, 206, 'then it is answered');
    is(used($order), 1, 'all for one download');
};

subtest 'A download sends three times its size and no more' => sub {
    my $order = order(download_limit => 1);
    my $link  = link_of($order);
    my $range = 'bytes=1-' . (SIZE - 1);
    for (1 .. 4) {
        is(page('GET', $link, headers => { Range => $range })->{status}, 206, "time $_");
        wait_settled($order);
    }
    my $reply = page('GET', $link, headers => { Range => $range });
    is($reply->{status}, 403, 'then it is refused');
    like($reply->{body}, qr/press the button/, 'with what to do');
    is(used($order), 1, 'all for one download');
};

subtest 'An order shows its downloads' => sub {
    my $order = order(download_limit => 3);
    my $link  = link_of($order);
    page('GET', $link, headers => { Range => 'bytes=0-999' });
    page('GET', $link, headers => { Range => 'bytes=500-1499' });
    wait_settled($order);
    is_shape(whole_order($order), 'whole_order', 'the order');
    my $first = whole_order($order)->{downloads}[0];
    is($first->{status}, 'open', 'one that is not whole is open');
    is($first->{bytes_delivered}, 2000, 'with what it delivered');
    is($first->{transfers}, 2, 'by so many requests');
    is($first->{size}, SIZE, 'of so many bytes');
    is($first->{file_id}, $asset->{id}, 'of its file');
    page('GET', link_of($order));
    wait_for(sub { whole_order($order)->{downloads}[0]{status} eq 'counted' }, 10, 'the second one');
    is(scalar @{ whole_order($order)->{downloads} }, 2, 'the newest comes first');
};

subtest 'A session that gave its download back takes it again when it goes on' => sub {
    my $order = order(download_limit => 1);
    my ($link, $other) = map { link_of($order) } 1 .. 2;
    page('GET', $link, headers => { Range => 'bytes=0-65535' });
    is(page('GET', $other)->{status}, 403, 'meanwhile none is left');
    wait_states($order, 'returned');
    is(page('GET', $link, headers => { Range => 'bytes=65536-' })->{status}, 206, 'it goes on');
    is(used($order), 1, 'and has its download again');
    wait_states($order, 'counted');
    is(page('GET', $other)->{status}, 403, 'which is the only one');
};

# --- when the server goes --------------------------------------------------------------------------

subtest 'A graceful restart lets a transfer end, and it counts' => sub {
    my $order = order(download_limit => 1);
    my $part  = MDL::Reader->new($server, 'http', link_of($order));
    my $got   = $part->take(MB);
    httpd_graceful();
    $got .= $part->all;
    ok($got eq $bytes, 'the file comes whole');
    wait_states($order, 'counted');
};

subtest 'What was delivered before a stop is known after it' => sub {
    my $order = order(download_limit => 1);
    my $part  = MDL::Reader->new($server, 'http', link_of($order));
    $part->take(3 * MB);
    $server->stop;
    is(running($order), 0, 'the child settles what it ends');
    cmp_ok(delivered($order), '>=', 3 * MB, 'with all that the client had');
    cmp_ok(delivered($order), '<', 4 * MB, 'and little more');
    $server->start;
    wait_states($order, 'returned');
    is(used($order), 0, 'the download is given back');
};

subtest 'What was delivered before a kill is known about to the second' => sub {
    my $order = order(download_limit => 1);
    my $part  = MDL::Reader->new($server, 'http', link_of($order));
    $part->take(3 * MB);
    wait_for(
        sub {
            my ($row) = sql("SELECT bytes FROM download_transfer WHERE assignment_id = $order->{assignment}");
            return $row && $row->[0] >= 3 * MB;
        },
        10, 'the progress'
    );
    $server->kill_all;
    $server->start;
    wait_for(sub { !running($order) }, 60, 'the transfer to be given up');
    cmp_ok(delivered($order), '>=', 3 * MB, 'what it delivered is kept');
    wait_states($order, 'returned');
    is(used($order), 0, 'and the download is given back');
    my ($partial) = sql("SELECT ranges FROM download_partial WHERE assignment_id = $order->{assignment}");
    like($partial->[0], qr/^0-\d+$/, 'to be joined with what comes later');
};

# --- beside other modules --------------------------------------------------------------------------

$server->stop;
$server->configure(modules => [qw(deflate ratelimit env)], extra => <<'END');
<Location /d>
    SetOutputFilter RATE_LIMIT;DEFLATE
    SetEnv rate-limit 8192
</Location>
END
$server->start;

for my $protocol (qw(http tls h2)) {
    subtest "$protocol: mod_deflate and mod_ratelimit change neither bytes nor what is counted" => sub {
        my $order = order(download_limit => 2);
        my $link  = link_of($order);
        my $half  = MDL::Reader->new($server, $protocol, $link, 'accept-encoding' => 'gzip',
            range => 'bytes=' . SIZE / 2 . '-');
        ok($half->all eq substr($bytes, SIZE / 2), 'a part comes as it is');
        wait_settled($order);
        is(delivered($order), SIZE / 2, 'which is counted to the byte');
        my $first = MDL::Reader->new($server, $protocol, $link, 'accept-encoding' => 'gzip',
            range => 'bytes=0-' . (SIZE / 2 - 1));
        ok($first->all eq substr($bytes, 0, SIZE / 2), 'the other part, too');
        wait_states($order, 'counted');
        is(used($order), 1, 'and both are one download');
    };
}

done_testing();
