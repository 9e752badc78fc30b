# Buyers are told of a new version (contract, section 10): by one email an address a day about all
# files, with the shop's note, unless they have unsubscribed or their order gives nothing now.
#
# both: the database finds the buyers, and counts the emails
use strict;
use warnings;

use File::Path qw(make_path);
use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::Mail;
use MDL::Maildir;
use MDL::Source;
use MDL::Test;
use Test::More;

use constant DAY => 86_400_000_000;

my $true   = JSON::PP::true();
my $server = MDL::Instance->new;
my $bounces = "$server->{folder}/bounces";
make_path(map { "$bounces/$_" } qw(new cur tmp));
$server->configure(extra => <<"END");
DownloadsPollInterval 1
DownloadsMailBounces "maildir:$bounces"
END
$server->start;
my $source = MDL::Source->new;
my $shop   = new_shop(name => 'News Shop');

# A file in a product; returns { id, product }.
sub file
{
    my ($name, %mapping) = @_;
    my $id = ready_asset($shop, "$name-$$", "$name 1", title => $name)->{id};
    return { id => $id, name => $name,
        product => mapping_of($shop, [$id], %mapping)->{storefront_product_id} };
}

sub buy
{
    my ($address, @files) = @_;
    my $order = digits();
    my $reply = assign($shop, $order, [ map { $_->{product} } @files ], patient => 1,
        storefront_customer_id => $order, customer => { email => $address });
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    return { id => $order, url => $reply->{json}{download_page_url} };
}

# A new version of a file.
sub version
{
    my ($file, $bytes, %members) = @_;
    my $reply = api('POST', "/assets/$file->{id}/versions", key => $shop->{token}, patient => 1,
        json => { source_url => source("$file->{name}-$$-" . digits(), $bytes), %members });
    $reply->{status} == 202 or die "version: $reply->{status} $reply->{body}\n";
    wait_job($shop, $reply->{json}{job}{id});
    return;
}

sub count_of { return (sql("SELECT count(*) FROM $_[0]"))[0][0] }

# Waits until everybody was told who can be now.
sub all_told
{
    wait_for(sub {
        my $soon = 1_000_000 * (time + 2);
        my ($row) = sql('SELECT (SELECT count(*) FROM job '
            . "WHERE type IN ('tell_buyers', 'news_email') AND status IN ('queued', 'running')) "
            . "+ (SELECT count(*) FROM news_address WHERE due_at < $soon)");
        return $row->[0] == 0;
    }, 120,
        'the buyers to be told');
    return;
}

# The emails to an address, after all have left.
sub news
{
    my ($address) = @_;
    all_told();
    my @mails = sort { $a->{path} cmp $b->{path} } mails($address);
    return @mails;
}

sub forget { unlink map { $_->{path} } mails(); return }

sub day_passes
{
    sql('UPDATE news_address SET due_at = due_at - ' . DAY . ', sent_at = sent_at - ' . DAY);
    sql('UPDATE news_shop SET due_at = 1');
    return;
}

my $book = file('Book');
my $song = file('Song');
my $ada  = buy('Ada@buyer.example', $book);
buy('ada@buyer.example', $book, $song);
buy('bob@buyer.example', $song);

subtest 'without notify nobody is told' => sub {
    version($book, 'book 2', note => "Quiet.");
    all_told();
    is count_of('news_address'), 0, 'no address waits';
    is scalar mails(), 0, 'and no email left';
};

subtest 'a buyer gets one email about a file' => sub {
    version($book, 'book 3', notify => $true, note => "Chapter 7 is <new>.\nEnjoy!");
    my @mails = news('ada@buyer.example');
    is scalar @mails, 1, 'one for both orders' or return;
    my $mail = $mails[0];
    is $mail->{headers}{subject}, 'Updates of your downloads from News Shop', 'it says what it is';
    like $mail->{text}, qr/- Book \(version 3\)\n  Chapter 7 is <new>\.\n  Enjoy!/, 'with the note';
    like $mail->{html}, qr/Chapter 7 is &lt;new&gt;\.<br>Enjoy!/, 'also as HTML';
    my ($link) = grep { m{/o/} } @{ $mail->{urls} };
    is page('GET', $link)->{status}, 200, 'and a page that opens';
    like $mail->{raw}, qr{^List-Unsubscribe:\r?\n <http://[^>]+/u/[\w-]+>\r?$}m, 'it can be ended';
    is $mail->{headers}{'list-unsubscribe-post'}, 'List-Unsubscribe=One-Click', 'by one click';
    is scalar mails('bob@buyer.example'), 0, 'who has another file gets none';
    is count_of('news_item'), 0, 'and nothing is left to tell';
    forget();
};

subtest 'an address is what its owner made of it' => sub {
    my $file = file('Letters');
    buy("$_\@buyer.example", $file) for "\x{c4}RGER", "\x{c4}rger";
    version($file, 'letters 2', notify => $true);
    all_told();
    is scalar mails(), 1, 'with letters beyond ASCII, too';
    forget();
};

subtest 'the same bytes are told to nobody' => sub {
    version($book, 'book 3', notify => $true);
    day_passes();
    is scalar news('ada@buyer.example'), 0, 'no email left';
};

subtest 'all that is new within a day comes in one email' => sub {
    version($book, 'book 5', notify => $true);
    all_told();
    forget();
    version($book, 'book 6', notify => $true);
    version($song, 'song 2', notify => $true);
    is scalar news('ada@buyer.example'), 0, 'whoever was told waits';
    is scalar mails('bob@buyer.example'), 1, 'others do not';
    day_passes();
    my @mails = news('ada@buyer.example');
    is scalar @mails, 1, 'until a day later' or return;
    like $mails[0]{text}, qr/Book \(version 6\).*Song \(version 2\)|Song.*Book \(version 6\)/s,
        'one email has both files';
    forget();
    day_passes();
};

subtest 'pinned orders and packs are found too' => sub {
    my $film = file('Film');
    my $id   = api('POST', '/packs', key => $shop->{token},
        json => { name => 'Pack', file_ids => [ $film->{id} ] })->{json}{id};
    my $pack = { product => mapping_of($shop, [], pack_ids => [$id])->{storefront_product_id} };
    my $pin  = { product => mapping_of($shop, [ $film->{id} ], content => 'pinned')
        ->{storefront_product_id} };
    buy('pack@buyer.example', $pack);
    buy('pin@buyer.example', $pin);
    version($film, 'film 2', notify => $true);
    all_told();
    is scalar mails("$_\@buyer.example"), 1, $_ for qw(pack pin);
    forget();
    day_passes();
};

subtest 'who buys after the version was made is not told' => sub {
    my $globe = file('Globe');
    buy('early@buyer.example', $globe);
    my $late = buy('late@buyer.example', $globe);
    sql('UPDATE assignment SET created_at = created_at + 3600000000 WHERE order_id = '
        . "(SELECT id FROM orders WHERE storefront_order_id = '$late->{id}')");
    version($globe, 'globe 2', notify => $true);
    all_told();
    is scalar mails('early@buyer.example'), 1, 'unlike who bought before';
    is scalar mails('late@buyer.example'), 0, 'their order had it';
    forget();
    day_passes();
};

subtest 'an order that gives nothing now is not told' => sub {
    my $map  = file('Map');
    my %buys = map { $_ => buy("$_\@buyer.example", $map) } qw(revoked held expired waits moved);
    api('POST', "/orders/$buys{revoked}{id}/revoke", key => $shop->{token}, json => {});
    held_by_check($shop, $buys{held}{id});
    sql("UPDATE assignment SET expires_at = 1 WHERE order_id = (SELECT id FROM orders "
        . "WHERE storefront_order_id = '$buys{expired}{id}')");
    sql("UPDATE orders SET undeclared = 1 WHERE storefront_order_id = '$buys{waits}{id}'");
    buy('open@buyer.example', $map);
    version($map, 'map 2', notify => $true, note => 'Secret.');
    all_told();
    is scalar mails('open@buyer.example'), 1, 'another one is';
    is scalar mails("$_\@buyer.example"), 0, $_ for qw(revoked held expired waits);
    is count_of('news_item'), 0, 'and nothing is left';
    forget();
    day_passes();
};

subtest 'nor one that gives nothing any more when the email leaves' => sub {
    my $plan = file('Plan');
    my %buys = map { $_ => buy("$_\@late.example", $plan) }
        qw(revoked held waits expired moved open);
    version($plan, 'plan 2', notify => $true);
    all_told();
    is scalar mails("$_\@late.example"), 1, "$_ is told at first" for sort keys %buys;
    forget();
    version($plan, 'plan 3', notify => $true, note => 'Secret.');
    all_told();
    my $of = sub { "(SELECT id FROM orders WHERE storefront_order_id = '$buys{$_[0]}{id}')" };
    api('POST', "/orders/$buys{revoked}{id}/revoke", key => $shop->{token}, json => {});
    held_by_check($shop, $buys{held}{id});
    sql('UPDATE orders SET undeclared = 1 WHERE id = ' . $of->('waits'));
    sql('UPDATE assignment SET expires_at = 1 WHERE order_id = ' . $of->('expired'));
    api('PATCH', "/orders/$buys{moved}{id}", key => $shop->{token},
        json => { email => 'elsewhere@late.example' });
    day_passes();
    all_told();
    is scalar mails('open@late.example'), 1, 'the open one is told again';
    is scalar(map { mails("$_\@late.example") } qw(revoked held waits expired moved elsewhere)), 0,
        'no other is';
    is count_of('news_item'), 0, 'and nothing is left';
    is count_of("job WHERE type = 'news_email' AND status <> 'succeeded'"), 0, 'or has failed';
    forget();
    day_passes();
};

subtest 'a customer unsubscribes' => sub {
    buy('eve@buyer.example', $book);
    version($book, 'book 7', notify => $true);
    my ($mail) = news('eve@buyer.example');
    my ($url)  = grep { m{/u/} } @{ $mail->{urls} };
    my $reply  = page('GET', $url);
    is $reply->{status}, 200, 'the page is there';
    like $reply->{body}, qr/<form method="post" action="[^"]+">.*Yes, unsubscribe/s, 'and asks';
    is count_of('unsubscribed'), 0, 'which changes nothing';
    is page('GET', substr($url, 0, -1) . ($url =~ /A$/ ? 'Q' : 'A'))->{status}, 404,
        'a forged link is none';
    is page('PUT', $url, body => 'a')->{status}, 405, 'it can be read and sent';
    forget();
    day_passes();
    all_told();
    sql("UPDATE news_address SET due_at = NULL");
    $reply = page('POST', $url, body => 'List-Unsubscribe=One-Click',
        headers => { 'content-type' => 'application/x-www-form-urlencoded' });
    is $reply->{status}, 200, 'a mail reader ends them without a cookie';
    like $reply->{body}, qr/You are unsubscribed/, 'as a page says';
    like page('GET', $url)->{body}, qr/You are unsubscribed/, 'also later';
    is page('POST', $url)->{status}, 200, 'and again';
    is count_of('unsubscribed'), 1, 'it is kept once';
    is count_of("unsubscribed WHERE address_mac LIKE '%eve%'"), 0, 'without the address';
    buy('EVE@buyer.example', $song);
    my $emails = count_of("job WHERE type = 'news_email'");
    version($book, 'book 8', notify => $true);
    version($song, 'song 3', notify => $true);
    is scalar news('eve@buyer.example'), 0, 'no more emails come';
    is scalar mails('bob@buyer.example'), 1, 'others get theirs';
    is count_of("job WHERE type = 'news_email'") - $emails, 2, 'and no job was made for nothing';
    is count_of("news_item WHERE address = 'eve\@buyer.example'"), 0, 'and none waits';
    unlike $server->error_log, qr{/u/[\w-]{60}}, 'the log has no such link';
    forget();
    day_passes();
};

subtest 'whoever unsubscribes while an email waits gets none' => sub {
    buy('zoe@buyer.example', $book);
    version($book, 'book 9', notify => $true);
    my ($mail) = news('zoe@buyer.example');
    my ($url)  = grep { m{/u/} } @{ $mail->{urls} };
    forget();
    version($book, 'book 10', notify => $true);
    all_told();
    is count_of("news_item WHERE address = 'zoe\@buyer.example'"), 1, 'an email waits for a day';
    page('POST', $url);
    day_passes();
    is scalar news('zoe@buyer.example'), 0, 'it never leaves';
    my $zoe = '(SELECT id FROM orders WHERE customer_id = (SELECT id FROM customer WHERE '
        . "email = 'zoe\@buyer.example'))";
    my $later = 1_000_000 * (time + 86_400);
    sql('INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, due_at, '
        . 'lease_token, bytes_received, created_at) VALUES '
        . "('job_01zzzzzzzzzzzzzzzzzzzzzzzz', $shop->{shop_id}, 'news_email', 'news', 'queued', 0, "
        . "5, $later, 0, 0, 1)");
    sql("INSERT INTO news_item (order_id, asset_id, shop_id, address, version, job_id) "
        . "SELECT $zoe, id, shop_id, 'zoe\@buyer.example', told_version, "
        . "'job_01zzzzzzzzzzzzzzzzzzzzzzzz' FROM asset WHERE id = $book->{id}");
    sql("UPDATE job SET due_at = 1 WHERE id = 'job_01zzzzzzzzzzzzzzzzzzzzzzzz'");
    is scalar news('zoe@buyer.example'), 0, 'nor does one that has a job already';
    is count_of('news_item'), 0, 'which is over';
    is scalar mails('ada@buyer.example'), 1, 'unlike another';
    forget();
    day_passes();
};

subtest 'a shop sends 2,000 a day' => sub {
    my $now = 1_000_000 * time;
    all_told();
    sql('DELETE FROM news_address');
    my $rows = join ', ', map { "($shop->{shop_id}, 'x$_\@buyer.example', NULL, $now)" } 1 .. 1999;
    sql("INSERT INTO news_address (shop_id, address, due_at, sent_at) VALUES $rows");
    my $atlas = file('Atlas');
    buy("$_\@buyer.example", $atlas) for qw(first second);
    version($atlas, 'atlas 2', notify => $true);
    wait_for(sub { count_of("job WHERE type IN ('tell_buyers', 'news_email') "
        . 'AND finished_at IS NULL') == 0
        && count_of('news_shop WHERE due_at > ' . (1_000_000 * time + DAY / 2)) == 1 }, 30,
        'the shop to wait');
    is scalar(map { mails("$_\@buyer.example") } qw(first second)), 1, 'one more left';
    is count_of('news_item WHERE job_id IS NULL'), 1, 'and one waits';
    day_passes();
    all_told();
    is scalar(map { mails("$_\@buyer.example") } qw(first second)), 2, 'until the day is over';
    forget();
    day_passes();
};

subtest 'a version that is put back is announced no more' => sub {
    my $map = file('Map');
    buy('carl@buyer.example', $map);
    version($map, 'map 2', notify => $true);
    is scalar news('carl@buyer.example'), 1, 'a buyer is told';
    version($map, 'map 3, faulty', notify => $true);
    all_told();
    is count_of("news_item WHERE address = 'carl\@buyer.example'"), 1, 'the next waits for a day';
    is api('POST', "/assets/$map->{id}/versions/2/restore", key => $shop->{token})->{status}, 200,
        'the former version is put back';
    day_passes();
    is scalar news('carl@buyer.example'), 1, 'so it does not leave';
    forget();
    day_passes();
    all_told();
};

# Returns a message to its sender, and waits until that was read.
my $returned = 0;
sub bounce
{
    my ($sender, $action) = @_;
    my $name = 'returned' . ++$returned;
    MDL::Instance::write_file("$bounces/tmp/$name", <<"END");
Return-Path: <>
Delivered-To: $sender
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; x

Action: $action
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 nobody here

--b--
END
    rename "$bounces/tmp/$name", "$bounces/new/$name" or die "$name: $!\n";
    wait_for(sub { -e "$bounces/cur/$name:2,S" }, 20, 'the message to be read');
    return;
}

subtest 'who can not be reached is told no more' => sub {
    my $film = file('Film');
    my $gone = buy('Gone@buyer.example', $film);
    my $kept = buy('kept@buyer.example', $film);
    my $before = count_of('unsubscribed');
    version($film, 'film 2', notify => $true);
    my ($mail) = news('gone@buyer.example');
    my ($sender) = $mail->{raw} =~ /^Return-Path: <(shop\+[0-9a-f]{32}\@example\.com)>/
        or return fail('a sender of its own');
    my ($other) = (news('kept@buyer.example'))[0]{raw} =~ /^Return-Path: <(.*)>/;
    isnt $other, $sender, 'each email has a sender of its own';
    bounce($sender, 'delayed');
    bounce($sender =~ s/\+.{16}/($other =~ m{(\+.{16})})[0]/er, 'failed');
    bounce($sender =~ s/(.)@/($1 eq '0' ? '1' : '0') . '@'/er, 'failed');
    is count_of('unsubscribed'), $before, 'a delay ends nothing, nor does a token with a fault';
    is api('PATCH', "/orders/$kept->{id}", key => $shop->{token},
        json => { email => 'found@buyer.example' })->{status}, 200, 'an address is corrected';
    bounce($other, 'failed');
    is count_of('unsubscribed'), $before, 'a bounce of the former one is not about it';
    bounce($sender, 'failed');
    is count_of('unsubscribed'), $before + 1, 'a failure ends emails to the address';
    like $server->error_log, qr/MDL0395: an email about new versions .* 550 5\.1\.1 nobody here/,
        'as the log says';
    forget();
    day_passes();
    version($film, 'film 3', notify => $true);
    is_deeply [ map { scalar news("$_\@buyer.example") } qw(found gone) ], [ 1, 0 ],
        'the next version is told to the other alone';
    forget();
    day_passes();
    all_told();
};

subtest 'an email that failed can be retried' => sub {
    my $guide = file('Guide');
    buy('dora@buyer.example', $guide);
    my ($tmp) = "$server->{folder}/mail/tmp";
    chmod 0500, $tmp or die "$tmp: $!\n";
    version($guide, 'guide 2', notify => $true);
    my $job;
    wait_for(sub { ($job) = map { $_->[0] } sql("SELECT id FROM job WHERE type = 'news_email' "
        . 'AND finished_at IS NULL AND due_at IS NOT NULL AND attempts > 0') }, 60, 'an attempt');
    sql("UPDATE job SET attempts = max_attempts - 1, due_at = 1 WHERE id = '$job'");
    wait_for(sub { count_of("job WHERE id = '$job' AND status = 'failed'") }, 60, 'the last one');
    chmod 0700, $tmp;
    is scalar mails('dora@buyer.example'), 0, 'nothing has left';
    MDL::Test::ctl_or_die('job', 'retry', $job);
    wait_for(sub { mails('dora@buyer.example') }, 60, 'the email');
    pass('it leaves once it is retried');
    all_told();
    is count_of('news_item'), 0, 'and is over';
    forget();
    day_passes();
    all_told();
};

subtest 'what nobody needs any more is forgotten' => sub {
    all_told();
    day_passes();
    wait_for(sub { count_of('news_shop') == 0 }, 30, 'the shop to be forgotten');
    is count_of($_), 0, $_ for qw(news_address news_item);
};

$server->stop;
done_testing();
