# Files on the order's page and in its email (contract, section 8): the end of access, files that
# are not ready yet, and files of several products, and of several items of one.
#
# once: the page is made of rows that delivery.t reads on both databases
use strict;
use warnings;

use IO::Compress::Gzip qw(gzip $GzipError);
use MDL::Contract;
use MDL::Source;
use MDL::Test;
use Test::More;

my $shop   = new_shop();
my $source = MDL::Source->new;
my $true   = JSON::PP::true();

# An order of mappings, each [ [ asset ids ], members ]; returns { id, url, assignments }.
sub order_of
{
    my (@mappings) = @_;
    return ordered(map { mapping_of($shop, $_->[0], %{ $_->[1] // {} })->{storefront_product_id} }
        @mappings);
}

# The same, but all are variants of one product.
sub order_of_one
{
    my (@mappings) = @_;
    my $product = product();
    my $variant = 0;
    return ordered(map {
        $variant++;
        mapping_of($shop, $_->[0], %{ $_->[1] // {} }, storefront_product_id => $product,
            storefront_variant_ids => ["$variant"]);
        { storefront_product_id => $product, storefront_variant_id => "$variant" };
    } @mappings);
}

sub ordered
{
    my (@items) = @_;
    my $id    = digits();
    my $reply = assign($shop, $id, \@items);
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my $order = $reply->{json};
    return { id => $id, url => $order->{download_page_url},
        assignments => [ map { $_->{id} } @{ $order->{assignments} } ] };
}

# Sets the end of access of each assignment: microseconds since 1970, or 'NULL'.
sub ends
{
    my ($order, @times) = @_;
    for my $id (@{ $order->{assignments} }) {
        my $time = shift @times;
        sql("UPDATE assignment SET expires_at = $time WHERE id = $id");
    }
    return;
}

sub shown { my ($order) = @_; return page('GET', $order->{url})->{body} }

# The page's products and files, in order.
sub sections_of { my ($order) = @_; return shown($order) =~ m{<section>(.*?)</section>}sg }
sub files_of    { my ($order) = @_; return shown($order) =~ m{<div class="file">(.*?)</div>}sg }

# Sends the order's email to a new address, and returns it.
sub mail_of
{
    my ($order) = @_;
    my $to = 'files-' . digits() . '@buyer.example';
    my $reply = api('POST', "/orders/$order->{id}/resend", key => $shop->{token},
        json => { email => $to });
    $reply->{status} =~ /^2/ or die "resend: $reply->{status} $reply->{body}\n";
    my $mail = wait_mail($to);
    $mail->{text} =~ s/\r//g;
    return $mail;
}

sub press { my ($order, %form) = @_; return page('POST', $order->{url}, form => \%form) }
sub count_of { my ($text, $part) = @_; return scalar(() = $text =~ /$part/g) }

sub asset
{
    my ($title, %more) = @_;
    return ready_asset($shop, digits() . '.txt', "bytes of $title", title => $title, %more);
}

sub link_of
{
    my ($title) = @_;
    return api('POST', '/links', key => $shop->{token},
        json => { title => $title, url => 'https://x.example/' })
        ->{json}{id};
}

# 22:13 on 14 November 2099, a moment later in the same minute, and 22:13 on 15 November.
my ($first, $same, $second) = (4_098_377_580_000_000, 4_098_377_620_000_000, 4_098_463_980_000_000);
my ($first_words, $second_words) = map { "$_ November 2099, 22:13 UTC" } 14, 15;

subtest 'If everything ends at the same time, the time is shown once' => sub {
    my $order = order_of([ [ asset('One')->{id} ] ],
        [ [ asset('Two')->{id} ], { link_ids => [ link_of('Forum') ] } ]);
    ends($order, $first, $same);
    my ($page, $mail) = (shown($order), mail_of($order));

    like($page,
        qr/Order\ <bdi>$order->{id}<\/bdi>\ &middot;\ <time[^>]*>[^<]*<\/time>
            \ &middot;\ available\ until\ <time[^>]*>\Q$first_words\E</x,
        'at the top of the page');
    is(count_of($page, 'available until'), 1, 'and nowhere else on the page');
    like($mail->{text}, qr/^You can download until $first_words\.$/m, 'in the text of the email');
    like($mail->{html}, qr/You can download until <time[^>]*>$first_words</, 'and in its HTML');
    is(count_of("$mail->{text} $mail->{html}", 'available until'), 0,
        'and nowhere else in the email');
};

subtest 'If products end at different times, each has its own' => sub {
    my $forum = link_of('Forum');
    my $order = order_of([ [ asset('Soon')->{id} ], { link_ids => [$forum] } ],
        [ [ asset('Later')->{id} ], { link_ids => [ $forum, link_of('Chat') ] } ],
        [ [ asset('Never')->{id} ] ]);
    ends($order, $first, $second, 'NULL');
    my ($soon, $later, $never) = my @sections = sections_of($order);
    my ($page, $mail) = (shown($order), mail_of($order));

    like($page,
        qr{<p class="soft">Order <bdi>$order->{id}</bdi> &middot; <time[^>]*>[^<]*</time></p>},
        'the top of the page has none');
    like($soon, qr/>Soon<.*>Available until <time[^>]*>$first_words<.*>Forum</s,
        'the first product has its time');
    like($later, qr/>Later<.*>Available until <time[^>]*>$second_words<.*>Chat</s,
        'and so has the second');
    unlike($never, qr/available until/i, 'the product without an end has none');
    is(count_of("@sections", 'vailable until'), 2, 'each once');
    like($mail->{text},
        qr/^-\ Soon\ \(.*^-\ Forum:.*^Available\ until\ \Q$first_words\E\n
            .*^-\ Later\ \(.*^-\ Chat:.*^Available\ until\ \Q$second_words\E\n
            .*^-\ Never\ \(\d+\W+bytes\)$(?!.*^Available)/msx,
        'the text of the email has the time below each product');
    like($mail->{html},
        qr/Soon<.*>Available\ until\ <time[^>]*>\Q$first_words\E<
            .*Later<.*>Available\ until\ <time[^>]*>\Q$second_words\E</sx,
        'and so has its HTML');
    unlike("$mail->{text} $mail->{html}", qr/download until/, 'without a common time');
};

subtest 'A revoked assignment does not change when the others end' => sub {
    my $order = order_of([ [ asset('Kept')->{id} ] ], [ [ asset('Withdrawn')->{id} ] ]);
    ends($order, $first, 'NULL');
    sql("UPDATE assignment SET status = 'revoked' WHERE id = $order->{assignments}[1]");

    like(shown($order), qr/<\/time> &middot; available until <time[^>]*>$first_words</,
        'on the page');
    like(mail_of($order)->{text}, qr/^You can download until $first_words\.$/m, 'nor in the email');
};

# An asset whose import lasts until it is released.
sub imported
{
    my ($title) = @_;
    my $name  = "held-$title";
    my $url   = $source->offer($name, { size => 1000, hold => 10 });
    my $made = api('POST', '/assets', key => $shop->{token},
        json => { source_url => $url, title => $title });
    return { id => $made->{json}{asset}{id}, job => $made->{json}{job}{id}, name => $name };
}

subtest 'The email does not call files ready before they are' => sub {
    my ($coming, $more) = map { imported($_) } qw(Coming More);
    my $there = asset('There');
    my $only  = order_of([ [ $coming->{id} ] ]);
    my $some  = order_of([ [ $coming->{id}, $there->{id} ] ]);
    my $many  = order_of([ [ $coming->{id}, $more->{id} ] ]);

    my $mail = mail_of($only);
    my $preparing = 'Your file is still being prepared\. '
        . 'It will be on your download page as soon as it is ready\.';
    like($mail->{text}, qr/^Thank you .*\. $preparing$/m,
        'the only file is being prepared');
    unlike("$mail->{text} $mail->{html}", qr/downloads are ready|Everything is waiting/,
        'nothing is called ready');
    $mail = mail_of($some);
    like($mail->{text}, qr/ One of your files is still being prepared\. It will be /,
        'one of several files is being prepared');
    like($mail->{text}, qr/^- Coming: still being prepared\n- There \(\d+\W+bytes\)$/m,
        'the text says which one');
    like($mail->{html},
        qr/One of your files is still .*>Coming<[^ ]*: still being prepared<.*>There</s,
        'and so does the HTML');
    unlike("$mail->{text} $mail->{html}", qr/downloads are ready|Everything is waiting/,
        'not all is called ready');
    $mail = mail_of($many);
    like($mail->{text}, qr/ Your files are still being prepared\. They will be /,
        'all of several files are being prepared');

    $source->release($_->{name}), wait_job($shop, $_->{job}) for $coming, $more;
    $mail = mail_of($many);
    like($mail->{text}, qr/^Thank you .*\. Your downloads are ready\.$/m,
        'after the imports they are ready');
    like($mail->{html},
        qr/<h1[^>]*>Your downloads are ready<.*Everything is waiting on your download page/s,
        'in the HTML, too');
    unlike("$mail->{text} $mail->{html}", qr/being prepared/, 'and none is being prepared');
};

subtest 'The email does not call a file ready whose import failed' => sub {
    my $asset = asset('Broken');
    my $order = order_of([ [ $asset->{id}, asset('Whole')->{id} ] ]);
    sql("UPDATE asset SET status = 'failed' WHERE id = $asset->{id}");
    my $mail = mail_of($order);

    like($mail->{text}, qr/^- Broken.*: could not be prepared$/m, 'the text says which one failed');
    unlike("$mail->{text} $mail->{html}",
        qr/downloads are ready|Everything is waiting|being prepared/, 'and nothing untrue');
};

subtest 'A file of two products is that of each, with its own downloads' => sub {
    my $asset = asset('Each');
    my $order = order_of([ [ $asset->{id} ], { download_limit => 1, title => 'First' } ],
        [ [ $asset->{id} ], { download_limit => 2, title => 'Second' } ]);
    my @ids   = map { /name="file" value="([^"]+)"/ } my @files = files_of($order);

    is(@files, 2, 'each shows it');
    is_deeply([ map { m{<h2><bdi>(\w+)} } sections_of($order) ], [qw(First Second)],
        'in the order in which they were bought');
    like($files[0], qr/1 of 1 download left/, 'the first with its limit');
    like($files[1], qr/2 of 2 downloads left/, 'and so the second');
    my $pressed = press($order, file => $ids[0]);
    is(page('GET', $pressed->{headers}{location})->{body}, 'bytes of Each',
        'the first button gives it');
    ok(wait_for(sub { (files_of($order))[0] =~ /limit of this file is reached/ }, 20, 'it'),
        'then it is used up');
    is(press($order, file => $ids[0])->{status}, 403,
        'and the button takes no download of the other product');
    like((files_of($order))[1], qr/2 of 2 downloads left/, 'which keeps them');
    my @used = sql("SELECT downloads_used FROM allowance WHERE asset_id = $asset->{id} "
        . "ORDER BY assignment_id");
    is_deeply(\@used, [ [1] ], 'one is used');
    is(count_of(mail_of($order)->{text}, '- Each'), 2, 'the email names it twice');
};

subtest 'A file of two items of a product is shown once, with the downloads of both' => sub {
    my $asset = asset('Twice');
    my $order = order_of_one([ [ $asset->{id} ], { download_limit => 1 } ],
        [ [ $asset->{id} ], { download_limit => 2 } ]);
    my ($file) = my @files = files_of($order);
    my ($id)   = $file =~ /name="file" value="([^"]+)"/;

    is(@files, 1, 'it is shown once');
    like($file, qr/3 of 3 downloads left/, 'with the sum of the limits');
    is(count_of(mail_of($order)->{text}, '- Twice'), 2, 'and in the email with each product');
    for my $left (2, 1, 0) {
        my $pressed = press($order, file => $id);
        is($pressed->{status}, 303, 'the first button still works');
        is(page('GET', $pressed->{headers}{location})->{body}, 'bytes of Twice',
            'and gives the file');
        like((files_of($order))[0], $left > 0 ? qr/$left of 3 downloads left/
            : qr/is running|is reached/, "$left are left");
    }
    my @used = sql("SELECT downloads_used FROM allowance WHERE asset_id = $asset->{id} "
        . "ORDER BY assignment_id");
    is_deeply(\@used, [ [1], [2] ], "each assignment's downloads are used");
    is(press($order, file => $id)->{status}, 403, 'when none is left it is refused');
    # Once the last one was settled: until then it runs.
    ok(wait_for(sub { (files_of($order))[0] =~ /limit of this file is reached/ }, 20,
        'the sentence'), 'and the page says so');
};

subtest 'Downloads are taken from the item with most left, '
    . 'so an archive stays available' => sub {
    my @ids   = map { asset($_)->{id} } qw(Left Right);
    my $order = order_of_one([ \@ids, { download_limit => 1 } ],
        [ [ $ids[1] ], { download_limit => 3 } ]);
    my $right = sub { my ($file) = grep { />Right</ } files_of($order); $file };

    unlike($right->(), qr/downloads left/, 'how many are left is not told while they are many');
    for my $left (3, 2) {
        my ($id) = $right->() =~ /name="file" value="([^"]+)"/;
        page('GET', press($order, file => $id)->{headers}{location});
        like($right->(), qr/$left of 4 downloads left/, "$left are left");
    }
    my ($zip) = shown($order) =~ /name="zip" value="(\d+)"/;
    is($zip, $order->{assignments}[0], 'the archive is still offered');
    is(page('GET', press($order, zip => $zip)->{headers}{location})->{status}, 200,
        'and can be downloaded');
    ok(wait_for(sub { shown($order) =~ /downloads of that purchase are used up/ }, 20,
        'the sentence'), 'once');
};

subtest 'A file has no limit if one of its items has none' => sub {
    my $asset = asset('Free');
    my $order = order_of_one([ [ $asset->{id} ], { download_limit => 1 } ],
        [ [ $asset->{id} ], { download_limit => 0 } ],
        [ [ $asset->{id} ], { download_limit => 1 } ]);
    my ($file) = my @files = files_of($order);

    is(@files, 1, 'the file is shown once');
    unlike($file, qr/downloads? left/, 'without a number of downloads');
    like($file, qr/value="$order->{assignments}[1]-/,
        'its button is that of the unlimited assignment');
};

subtest 'A file of items that end at different times is shown once for each' => sub {
    my $asset = asset('Both');
    my $order = order_of_one([ [ $asset->{id} ], { download_limit => 1 } ],
        [ [ $asset->{id} ], { download_limit => 2 } ]);
    ends($order, $first, $second);
    my @files = files_of($order);

    is(@files, 2, 'the file is shown twice');
    unlike(shown($order), qr/has expired/, 'and nothing has expired');
    like($files[0], qr/1 of 1 download left<.*>Available until <time[^>]*>$first_words</s,
        'with the limit and end of the first');
    like($files[1], qr/2 of 2 downloads left<.*>Available until <time[^>]*>$second_words</s,
        'and with those of the second');
    ends($order, 1, $second);
    is_deeply([ map { /(\d of \d downloads left)/ } files_of($order) ], ['2 of 2 downloads left'],
        'after the end of the first the second is left');
    like(shown($order), qr/A part of this order was available until <time[^>]*>[^<]+</,
        'and the page says so');
    my $pressed = press($order, file => "$order->{assignments}[0]-$asset->{id}");
    is(page('GET', $pressed->{headers}{location} // '/')->{status}, 200,
        "the first one's button still works");
};

subtest 'An archive of several items is shown once, too' => sub {
    my @ids   = map { asset($_)->{id} } qw(Left Right);
    my $order =
        order_of_one(map { [ $_, { download_limit => 1 } ] } \@ids, \@ids, [ reverse @ids ]);
    my ($id) = my @archives = shown($order) =~ /name="zip" value="(\d+)"/g;

    is(@archives, 1, 'in whatever order they have the files');
    for my $n (1 .. 3) {
        my $pressed = press($order, zip => $id);
        is($pressed->{status}, 303, 'the first button still works');
        is(page('GET', $pressed->{headers}{location} // '/')->{status}, 200,
            "and gives the archive, time $n");
    }
    is(press($order, zip => $id)->{status}, 403, 'when all downloads are used it is refused');
    like(shown($order), qr/can\W+t be downloaded together/, 'and the page says so');
};

subtest 'An archive is called "all" only if it has all files' => sub {
    my @ids  = map { asset($_)->{id} } qw(Left Right);
    my $all  = qr/Download all as ZIP \(2\W+files/;
    my $some = order_of_one([ \@ids ],
        [ [ $ids[1], asset('Single')->{id} ], { download_type => 'FILES' } ]);

    like(shown(order_of_one([ \@ids ], [ [ $ids[1] ] ])), $all,
        'if another assignment has one of its files');
    like(shown($some), qr/Download <bdi>Left<\/bdi> and 1 more as ZIP \(2\W+files/,
        'not if another assignment has a third file');
    sql("UPDATE assignment SET status = 'revoked' WHERE id = $some->{assignments}[1]");
    like(shown($some), $all, 'until that assignment is revoked');
};

subtest 'A page of 300 files is small, and its files are folded' => sub {
    my $model = asset('Model');
    sql('INSERT INTO asset (shop_id, status, filename, title, content_type, sha256, size, version, '
        . 'created_at, updated_at) WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 '
        . "FROM numbers WHERE n < 300) SELECT shop_id, status, 'file-' || n || '.pdf', "
        . "'Chapter ' || n, content_type, sha256, size, version, created_at, updated_at "
        . "FROM asset, numbers WHERE id = $model->{id}");
    my @ids = map { 0 + $_->[0] }
        sql("SELECT id FROM asset WHERE title LIKE 'Chapter %' ORDER BY id");
    my $order = order_of([ [ @ids[ 0 .. 99 ] ] ],
        [ [ @ids[ 100 .. 299 ] ], { download_type => 'FILES' } ]);
    my $page  = shown($order);
    my ($zip, $single) = sections_of($order);

    is(count_of($page, 'name="file"'), 300, 'all have a button');
    like($zip, qr/Download all as ZIP \(100\W+files.*<summary>100 single files</s,
        'those of an archive are folded behind it');
    like($single, qr/>Chapter 110<.*<summary>190 more files<.*>Chapter 111</s,
        'of the others all but ten are');
    # As if no two had the same bytes.
    $page =~ s/[0-9a-f]{64}/join '', map { sprintf '%02x', rand 256 } 1 .. 32/ge;
    gzip(\$page => \my $small) or die "gzip: $GzipError\n";
    cmp_ok(length $small, '<=', 60_000, 'compressed, the page has at most 60 KB');
    note(length($page) . ' bytes, ' . length($small) . ' compressed');
};

done_testing();
