# What a customer may open no more, or not now: limits of downloads, links and assignments, states
# of the order, and faults of the service (contract, section 8).
#
# both: downloads are counted by several queries that differ
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Test::More;
use Time::HiRes qw(time);

use MDL::DownloadClient;
use MDL::Instance;
use MDL::Objects;
use MDL::Opened;
use MDL::Test;
use MDL::Upload qw(in_objects);

my $server    = MDL::Instance->new(cluster => 1)->start;
my $shop      = sell_at(new_shop(name => 'Books & <Bytes>'));
my $log_start = error_log_size();

# --- limits --------------------------------------------------------------------------------------

subtest 'Page and messages have an address to write to' => sub {
    my $first = asset('support');
    my $order = order(product([ $first, asset('second') ], download_limit => 1));
    my $file  = "$order->{assignments}[0]-$first->{id}";
    my $links = api('GET',
        "/orders/$order->{id}/assignments/$order->{assignments}[0]/download-urls",
        key => $shop->{token})->{json};
    my @urls  = ($order->{path}, link_of($order, $file), $links->{zip}{url});
    my $addresses = sub {
        my %found = map { $_ => 1 }
            map { page('GET', $_)->{body} =~ /href="mailto:([^"]+)"/g } @urls;
        return join ' ', sort keys %found;
    };
    page('GET', link_of($order, $file));

    is($addresses->(), '', 'no address is shown if the shop has none');
    MDL::Test::ctl_or_die('shop', 'set', $shop->{shop_id}, '--email', 'owner@shop.example');
    is($addresses->(), 'owner@shop.example', "the shop's address is shown");
    MDL::Test::ctl_or_die('shop', 'set', $shop->{shop_id}, '--reply-to', 'answers@shop.example');
    is($addresses->(), 'answers@shop.example', 'its reply-to address is shown if it has one');
    MDL::Test::ctl_or_die('shop', 'set', $shop->{shop_id}, '--reply-to', '', '--email', '');
};

subtest 'When the limit is reached the button disappears and links stop working' => sub {
    my ($order, $asset, $file) = one_file('limited', download_limit => 1);
    my ($first, $second) = map { link_of($order, $file) } 1 .. 2;

    is(page('GET', $first)->{status}, 200, 'the only download is used');
    wait_for_status($order, 'counted');
    is_page(page('GET', $second), 403, qr/limit is reached.*\Q$order->{token}\E/s,
        'another link is refused and leads back to the page');
    is(page('GET', $first, headers => { Range => 'bytes=1-' })->{status}, 206,
        'the first link still gives a part');
    is_page(page('GET', $first), 403, qr/limit is reached/, 'but not the whole again');
    my $page = page('GET', $order->{path});
    like($page->{body}, qr/limit of this file is reached/, 'the page says so');
    unlike($page->{body}, qr/downloads? left/, 'in one way');
    unlike($page->{body}, qr/name="(?:file|zip)"/, 'and has no button');
    is(press($order, $file)->{status}, 403, 'pressing it is refused like the link');
};

subtest 'Two of one product may be downloaded twice as often' => sub {
    my $asset   = asset('twice', title => 'Twice');
    my $product = product([$asset], download_limit => 1);
    my $order   = order($product);
    my $left    =
        sub { page('GET', $order->{path})->{body} =~ /(\d+ of \d+ downloads? left)/ ? $1 : undef };
    my $file    = "$order->{assignments}[0]-$asset->{id}";
    my $told    = sub {
        scalar grep { $_->{type} eq 'download.limit_reached'
            && $_->{data}{storefront_order_id} eq $order->{id} }
            @{ api('GET', '/events?after=0&limit=100&type=download.limit_reached',
            key => $shop->{token})->{json}{data} };
    };

    is($left->(), '1 of 1 download left', 'one of it once');
    is(api('POST', "/orders/$order->{id}/assignments", key => $shop->{token},
        json => { storefront_customer_id => $order->{id},
        items => [ { storefront_product_id => $product, quantity => 2 } ] })->{status}, 200,
        'another is bought');
    is($left->(), '2 of 2 downloads left', 'two of it twice');
    my @links = map { link_of($order, $file) } 1 .. 3;
    is(page('GET', $links[0])->{status}, 200, 'the first download');
    wait_for_status($order, 'counted');
    is(page('GET', $links[1])->{status}, 200, 'the second');
    wait_for(sub { $told->() }, 20, 'the event that it was the last');
    is($told->(), 1, 'of which an event tells that it was the last');
    is_page(page('GET', $links[2]), 403, qr/limit is reached/, 'a third is refused');
};

# Waits until the order's only session has this status.
sub wait_for_status
{
    my ($order, $status) = @_;
    return wait_for(sub {
        my ($last) = sql(
            "SELECT status FROM download_session WHERE assignment_id = $order->{assignments}[0]");
        return $last && $last->[0] eq $status;
    }, 20, "a session that is $status");
}

subtest 'While the last download runs the page says so, and once it is broken off its '
    . 'button is back' => sub {
    my ($order, $asset, $file) = one_file('x' x 8_000_000, download_limit => 1);
    my ($first, $second) = map { link_of($order, $file) } 1 .. 2;
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, $first)->read_until(1_000_000);
    my %seen   = map { $_ => page('GET', $order->{path},
        headers => { 'Accept-Language' => $_ })->{body} } qw(en de);

    my $running = 'A download of this file is running\. '
        . 'If it broke off, load this page again in a minute';
    like($seen{en}, qr/$running/,
        'the page says that one is running');
    like($seen{de}, qr/Gerade läuft ein Download dieser Datei\. Falls er abgebrochen ist/,
        'also in German');
    unlike($seen{en}, qr/name="(?:file|zip)"|limit of this file is reached/,
        'it has no button, and does not call it used up');
    is_page(press($order, $file), 403, qr/A download of this file is running/,
        'pressing it is refused');
    is_page(page('GET', $second), 403,
        qr/A download is running.*you can try again in a minute.*\Q$order->{token}\E/s,
        'another link is refused in these words, and leads back to the page');
    is(page('HEAD', $second)->{status}, 403, 'and so is HEAD');
    my $diagnosis = api('GET', "/orders/$order->{id}/diagnosis", key => $shop->{token})->{json};
    my ($allowance) = grep { $_->{name} eq 'allowance' } @{ $diagnosis->{checks} };
    is($allowance->{status}, 'warn', 'the diagnosis warns');
    like($allowance->{message},
        qr/^The last download of .* is running\. If it breaks off, it can be tried again/,
        'and says why');

    my $read = $client->leave(1);
    my $page = wait_for(sub { page('GET', $order->{path})->{body} =~ /^(.*<form.*)$/s && $1 }, 20,
        'the button');
    like($page, qr/1 of 1 download left/, 'it broke off: the page offers it again');
    my $whole = page('GET', link_of($order, $file));
    is(sha256_hex($whole->{body}), $asset->{sha256}, 'a press of the button gives the whole file');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'which is the one download');
    wait_for(sub { page('GET', $order->{path})->{body} =~ /limit of this file is reached/ }, 20,
        'the page to call it used up');
    is_page(page('GET', $first, headers => { Range => "bytes=$read-" }), 403, qr/limit is reached/,
        'the link that broke off does not go on with it');
};

subtest 'Of fifty links that are opened at once when one has broken off, '
    . 'one takes its download over' => sub {
    my ($order, $asset, $file) = one_file('y' x 8_000_000, download_limit => 1);
    my @links  = map { link_of($order, $file) } 1 .. 51;
    my $client = MDL::DownloadClient->over('HTTP/1.1', $server, pop @links)->read_until(1_000_000);

    $client->leave(1);
    wait_for(sub { page('HEAD', $links[0])->{status} == 200 }, 20, 'the end of the transfer');
    my %count;
    $count{ ref $_ ? $_->{died} : $_ }++
        for parallel(50, sub { page('GET', $links[ $_[0] ], patient => 1)->{status} });
    is_deeply(\%count, { 200 => 1, 403 => 49 }, 'one 200 and 49 times 403');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'one download is counted');
};

subtest 'If one download is left, fifty simultaneous attempts use only that one' => sub {
    my ($order, $asset, $file) = one_file('one for all', download_limit => 1);
    my @links = parallel(50, sub { link_of($order, $file) });
    my @answers = parallel(50, sub { page('GET', $links[ $_[0] ], patient => 1)->{status} });
    my %count;
    $count{ ref $_ ? $_->{died} : $_ }++ for @answers;

    is_deeply(\%count, { 200 => 1, 403 => 49 }, 'one 200 and 49 times 403');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'one download is counted');
};

subtest 'Fifty requests of one link open one session' => sub {
    my ($order, $asset, $file) = one_file('one session', download_limit => 1);
    my $link = link_of($order, $file);
    my @answers = parallel(50, sub { page('GET', $link, patient => 1)->{status} });

    my %count;
    $count{ ref $_ ? $_->{died} : $_ }++ for @answers;

    cmp_ok($count{200}, '>=', 1, 'at least one is served');
    is(($count{200} // 0) + ($count{403} // 0) + ($count{429} // 0), 50,
        'the others are refused or have to wait');
    is(counted_sql($order->{assignments}[0], $asset->{id}), 1, 'one download is counted');
};

subtest 'A link expires, and so does its session' => sub {
    my ($order, $asset, $file) = one_file('in time', download_limit => 3);
    my $old  = forge($order->{assignments}[0], $asset->{id}, int(time) - 1);
    my $late = forge($order->{assignments}[0], $asset->{id}, int(time) + 60);

    is_page(page('GET', $old), 410, qr/too old.*\Q$order->{token}\E/s,
        'an expired link is gone, and its page links back');
    is(page('GET', $late)->{status}, 200, 'a valid link is served');
    is(left($order), 2, 'and has cost a download');
    my $long_ago = int((time - 2 * 86_400) * 1e6);
    sql("UPDATE download_session SET opened_at = $long_ago "
            . "WHERE assignment_id = $order->{assignments}[0]");
    is_page(page('GET', $late), 410, qr/too old/, 'a link whose session is over a day old is gone');
    is(left($order), 2, 'which costs nothing');
};

# --- the order's state ---------------------------------------------------------------------------

for my $case (
    [ 'held', qr/under review/, 'The shop is checking' ],
    [ 'revoked', qr/withdrawn/, 'Refunded on request' ],
    [ 'rejected', qr/not released/, 'The card was stolen' ],
) {
    my ($status, $like, $reason) = @$case;
    subtest "An order that is $status gives no file" => sub {
        my $asset = asset("bytes of $status", filename => "secret-name-$status.bin", title => 'T');
        my $order = order(product([$asset]));
        my $file  = "$order->{assignments}[0]-$asset->{id}";
        my $link  = link_of($order, $file);
        sql("UPDATE orders SET access_status = '$status', access_reason = '$reason' "
                . "WHERE storefront_order_id = '$order->{id}'");
        my $page = page('GET', $order->{path});

        is($page->{status}, 200, 'the page opens');
        like($page->{body}, $like, 'and says why');
        unlike($page->{body}, qr/secret-name/, 'without a file\'s name');
        unlike($page->{body}, qr/name="(?:file|zip)"/, 'without a button');
        if ($status eq 'held') {
            unlike($page->{body}, qr/\Q$reason\E/, 'and without the reason');
        }
        else {
            like($page->{body}, qr/\Q$reason\E/, "with the shop's reason");
        }
        is_page(press($order, $file), 403, $like, 'pressing the button is forbidden');
        is_page(page('GET', $link), 403, qr/$like.*\Q$order->{token}\E/s,
            'an earlier link is forbidden, and its page links back');
        is(counted_sql($order->{assignments}[0], $asset->{id}), 0, 'nothing has been counted');
    };
}

subtest 'An expired assignment gives no file' => sub {
    my ($order, $asset, $file) = one_file('expired', access_days => 1);
    my $link = link_of($order, $file);

    like(page('GET', $order->{path})->{body},
        qr{available until <time datetime="[\d-]+T[\d:.]+Z">\d+ \w+ \d{4}, \d\d:\d\d UTC<},
        'before the end the page has its time');
    my $past = int((time - 10) * 1e6);
    sql("UPDATE assignment SET expires_at = $past WHERE id = $order->{assignments}[0]");
    my $page = page('GET', $order->{path});
    like($page->{body}, qr/have expired/, 'after it the page says so');
    unlike($page->{body}, qr/name="(?:file|zip)"/, 'without a button');
    is_page(press($order, $file), 403, qr/have expired/, 'pressing the button is forbidden');
    is_page(page('GET', $link), 403, qr/expired.*\Q$order->{token}\E/s,
        'an earlier link is forbidden');
};

subtest 'A revoked assignment does not affect the others of its order' => sub {
    my @assets = map { asset("part $_", filename => "part-$_.bin", title => "Part $_") } 1 .. 2;
    my $order  = order(map { product([$_]) } @assets);
    my @files  = map { "$order->{assignments}[$_]-$assets[$_]{id}" } 0 .. 1;
    my $link   = link_of($order, $files[0]);
    sql("UPDATE assignment SET status = 'revoked' WHERE id = $order->{assignments}[0]");
    my $page = page('GET', $order->{path});

    unlike($page->{body}, qr/part-1\.bin/, 'its file is left out');
    like($page->{body}, qr/part-2\.bin/, 'the other is shown');
    is(press($order, $files[0])->{status}, 403, 'its button is forbidden');
    is(page('GET', $link)->{status}, 403, 'its link is forbidden');
    is(page('GET', link_of($order, $files[1]))->{body}, 'part 2', 'the other can be downloaded');
    sql("UPDATE assignment SET status = 'revoked' WHERE id = $order->{assignments}[1]");
    like(page('GET', $order->{path})->{body}, qr/withdrawn/, 'if all are revoked the page says so');
};

subtest 'A file that is not ready has no button' => sub {
    my ($order, $asset, $file) = one_file('not ready');
    my $link = link_of($order, $file);

    for my $case ([ 'pending', qr/being prepared/ ], [ 'failed', qr/could not be prepared/ ]) {
        my ($status, $like) = @$case;
        sql("UPDATE asset SET status = '$status' WHERE id = $asset->{id}");
        my $page = page('GET', $order->{path});
        like($page->{body}, $like, "$status: the page says so");
        unlike($page->{body}, qr/name="(?:file|zip)"/, "$status: without a button");
        is(press($order, $file)->{status}, 409, "$status: pressing it is a conflict");
        is_page(page('GET', $link), 409, qr/$like.*\Q$order->{token}\E/s,
            "$status: so is an earlier link");
    }
    sql("UPDATE asset SET status = 'ready' WHERE id = $asset->{id}");
    is(page('GET', $link)->{body}, 'not ready', 'once it is ready the same link works');
};

subtest 'A file that was removed from the product is gone' => sub {
    my @assets  = map { asset("content $_") } 1 .. 2;
    my $product = product([ $assets[0] ]);
    my $order   = order($product);
    my $link    = link_of($order, "$order->{assignments}[0]-$assets[0]{id}");
    is(map_product($product, [ $assets[1] ])->{status}, 200, 'the product gets other content');

    is_page(page('GET', $link), 404, qr/no longer there/, 'the link of the old file is gone');
    is(press($order, "$order->{assignments}[0]-$assets[0]{id}")->{status}, 404, 'so is its button');
    is(page('GET', link_of($order, "$order->{assignments}[0]-$assets[1]{id}"))->{body}, 'content 2',
        'the new file can be downloaded');
};

# --- faults of the service -----------------------------------------------------------------------

subtest 'A file that is missing from the storage costs nothing and is reported '
    . 'to the operator' => sub {
    my ($order, $asset, $file) = one_file('missing bytes', download_limit => 1);
    my $link   = link_of($order, $file);
    my $offset = error_log_size();

    lose_bytes($asset);
    is_page(page('GET', $link), 500, qr/missing on our side/, 'the customer is told');
    my $log = error_log_since($offset);
    like($log, qr/MDL0406: .*\Q$asset->{sha256}\E/, 'the log names the file');
    if (!in_objects()) {
        open my $out, '>', blob_file($asset) or die "$asset->{sha256}: $!";
        print $out 'short';
        close $out;
        is(page('GET', $link)->{status}, 500, 'a file of another size is not sent either');
    }
    is(counted_sql($order->{assignments}[0], $asset->{id}), 0, 'no download was counted');
    find_bytes($asset);
    is(page('GET', $link)->{body}, 'missing bytes', 'once it is back the same link works');
};

SKIP: {
    skip 'SQLite has no server to stop', 1 if database() ne 'pgsql';
    subtest 'While the database is down customers are asked to try again' => sub {
        my ($order, $asset, $file) = one_file('away');
        my $link = link_of($order, $file);
        stop_database();
        my @replies = (page('GET', $order->{path}), press($order, $file), page('GET', $link),
            page('PUT', $link));
        start_database();

        for my $reply (@replies) {
            is_page($reply, 503, qr/try again/i, 'a page says so');
            is($reply->{headers}{'retry-after'}, 5, 'with Retry-After');
        }
        is(page('GET', $link)->{body}, 'away', 'the first request afterwards is served');
    };
}

subtest 'No token gets into the error log' => sub { tokens_stay_out($log_start) };

done_testing();
