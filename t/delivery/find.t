# Find my downloads: whoever has lost the email asks for the links of all orders of an address, gets
# the same answer for every address, and an email if there are orders (contract, section 8).
#
# both: the database finds the orders, and counts the emails
use strict;
use warnings;

use HTTP::Tiny;
use MDL::Contract;
use MDL::Instance;
use MDL::Maildir;
use MDL::Mail;
use MDL::Test;
use Test::More;

use constant HOUR => 3_600_000_000;

my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\nDownloadsMailRate 1\n")->start;
my $shop   = new_shop(name => 'Find Shop');
my $other  = new_shop(name => 'Other Shop');
for my $of ($shop, $other) {
    my $link = api('POST', '/links', key => $of->{token},
        json => { title => 'Link', url => 'https://a.example/' })->{json}{id};
    $of->{product} = mapping_of($of, [], link_ids => [$link])->{storefront_product_id};
}

my $networks = 0;
sub network { $networks++; return sprintf '127.1.%d.%d', $networks / 200, 1 + $networks % 200 }

sub path { my ($of) = @_; return "/d/find/$of->{domain}" }

# Asks from a network of its own, unless from is given.
sub ask
{
    my ($of, $address, %opt) = @_;
    my $http = HTTP::Tiny->new(local_address => $opt{from} // network(), timeout => 30);
    return $http->post_form('http://127.0.0.1:' . port() . path($of), { email => $address });
}

# An order; returns { id, url }.
sub order
{
    my ($of, $customer, %customer) = @_;
    my $id    = digits();
    my $reply = assign($of, $id, [ $of->{product} ],
        storefront_customer_id => $customer, customer => \%customer);
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    return { id => $id, url => $reply->{json}{download_page_url} };
}

sub requests
{
    my ($where) = @_;
    return (sql("SELECT count(*) FROM find_request WHERE $where"))[0][0];
}

sub all_looked_up
{
    wait_for(sub { requests('due_at IS NOT NULL') == 0 }, 20, 'the requests to be looked up');
    return;
}

# The links to pages in the only email to an address, after all emails have left.
sub links_to
{
    my ($address) = @_;
    all_looked_up();
    wait_for(sub { (sql("SELECT count(*) FROM job WHERE type = 'find_email' "
        . "AND status IN ('queued', 'running')"))[0][0] == 0 }, 20, 'the emails to leave');
    my @mails = mails($address);
    return scalar @mails, map { grep { m{/o/} } @{ $_->{urls} } } @mails;
}

# As if all of this had been asked and sent before the last hour.
sub hour_passes
{
    sql("UPDATE find_request SET asked_at = asked_at - @{[HOUR]}, sent_at = sent_at - @{[HOUR]}");
    return;
}

subtest 'the page asks for an address' => sub {
    my $reply = page('GET', path($shop));
    is $reply->{status}, 200, 'it is there';
    like $reply->{body}, qr/<form method="post" action="\Q@{[path($shop)]}\E">/, 'with a form';
    like $reply->{body}, qr/Find Shop/, 'of the shop';
    like page('GET', path($shop), headers => { 'accept-language' => 'de' })->{body},
        qr/Ihre Downloads finden/, "in the browser's language";
    like $reply->{headers}{'content-security-policy'}, qr/default-src 'none'/, 'and loads nothing';
    is page('GET', '/d/find/no.shop.example')->{status}, 404, 'no shop has another domain';
    is page('GET', "/d/find/$shop->{shop_id}")->{status}, 404, 'nor is a number one';
    $reply = page('PUT', path($shop), body => 'a');
    is $reply->{status}, 405, 'it can be read and sent';
    is $reply->{headers}{allow}, 'GET, HEAD, POST', 'as Allow says';
};

my @mine = (order($shop, '1', email => 'Ada@buyer.example'), order($shop, '1'),
    order($shop, '2', email => 'ada@Buyer.example'),
    order($shop, '3', email => 'bob@buyer.example'));
my $moved = order($shop, '1');
api('PATCH', "/orders/$_->[0]{id}", key => $shop->{token}, json => { email => $_->[1] })
    for [ $mine[3], 'ADA@buyer.example' ], [ $moved, 'eve@buyer.example' ];
my $elsewhere = order($other, '1', email => 'ada@buyer.example');

subtest 'known and unknown addresses get the same answer, and leave the same row' => sub {
    my @replies = map { ask($shop, $_) } 'ada@buyer.example', 'nobody@buyer.example';
    is $replies[0]{status}, 200, 'it is 200';
    is $replies[1]{content}, $replies[0]{content}, 'with the same bytes';
    delete $_->{headers}{date} for @replies;
    is_deeply $replies[1]{headers}, $replies[0]{headers}, 'and headers';
    unlike $replies[0]{content}, qr/buyer/, 'which say nothing of an address';
    like $replies[0]{content}, qr/<a href="\Q@{[path($shop)]}\E">Use another address</,
        'and lead back to the form';
    is requests('1 = 1'), 2, 'each is stored,';
    is requests("address LIKE '%buyer%' OR address_mac LIKE '%buyer%'"), 0, 'sealed';
};

subtest 'the pages of an order lead there' => sub {
    my $link = 'http://[^/"]+' . quotemeta path($shop);
    like page('GET', $mine[0]{url})->{body}, qr{<a href="$link">Lost an email}, 'the page itself';
    like page('PUT', $mine[0]{url}, body => 'a')->{body}, qr{<a href="$link">}, 'and a message';
};

subtest 'one email has the links of all orders that go to the address' => sub {
    my ($mails, @links) = links_to('ada@buyer.example');
    is $mails, 1, 'one email came';
    is_deeply [ sort @links ], [ sort map { $_->{url} } @mine ],
        'with the orders of customers and of the address itself, not the one that moved';
    my ($mail) = mails('ada@buyer.example');
    is $mail->{headers}{subject}, 'Your orders at Find Shop', 'it says what it is';
    like $mail->{text}, qr/Order $_->{id}, /, 'and names each order' for @mine;
    is page('GET', $links[0])->{status}, 200, 'whose page opens';
    is scalar(mails('nobody@buyer.example')), 0, 'an unknown address gets nothing';
    my $jobs = api('GET', '/jobs', key => $shop->{token});
    is_deeply $jobs->{json}{data} // $jobs->{json}{jobs}, [], 'the shop sees no job of it';
};

subtest 'a repetition changes nothing for an hour' => sub {
    my @before = sql('SELECT * FROM find_request ORDER BY address_mac');
    is ask($shop, 'ADA@BUYER.EXAMPLE')->{status}, 200, 'the answer is the same';
    is ask($shop, 'nobody@buyer.example')->{status}, 200, 'for both';
    is_deeply [ sql('SELECT * FROM find_request ORDER BY address_mac') ], \@before, 'as is the row';
    hour_passes();
    ask($shop, 'ada@buyer.example');
    my ($mails) = links_to('ada@buyer.example');
    is $mails, 2, 'then a second email comes';
};

subtest 'an address gets one email an hour over all shops' => sub {
    ask($other, 'ada@buyer.example');
    wait_for(sub { requests('due_at > asked_at') == 1 }, 20, 'the request to be put off');
    my ($wait) = sql('SELECT due_at - (SELECT max(sent_at) FROM find_request) FROM find_request '
        . 'WHERE due_at IS NOT NULL');
    is $wait->[0], HOUR, 'until an hour after the last';
    is scalar(mails('ada@buyer.example')), 2, 'nothing was sent';
    hour_passes();
    sql('UPDATE find_request SET due_at = asked_at WHERE due_at IS NOT NULL');
    my ($mails, @links) = links_to('ada@buyer.example');
    is $mails, 3, 'then it is';
    is $links[-1], $elsewhere->{url}, 'with the order of that shop';
};

subtest "the shop's own budget pays for none of it" => sub {
    my $id = digits();
    assign($shop, $id, [ $shop->{product} ], storefront_customer_id => '9',
        customer => { email => 'new@buyer.example' }, send_email => JSON::PP::true());
    is wait_email($shop, $id, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
        'the one email of its hour is left';
    hour_passes();
    ask($shop, 'bob@buyer.example');
    is_deeply [ links_to('bob@buyer.example') ], [0], 'an address whose order moved has none';
    ask($shop, 'new@buyer.example');
    my ($mails) = links_to('new@buyer.example');
    is $mails, 2, 'and another is found although the budget is used up';
};

subtest 'a shop sends a hundred an hour' => sub {
    my $now = int(time) * 1_000_000;
    sql('INSERT INTO find_request (shop_id, address_mac, address, asked_at, sent_at) VALUES '
        . join ',', map { "($other->{shop_id}, 'mac$_', 's', $now, $now - $_)" } 0 .. 99);
    order($other, '5', email => 'late@buyer.example');
    ask($other, 'late@buyer.example');
    wait_for(sub { requests("due_at = $now - 99 + @{[HOUR]}") == 1 }, 20,
        'the next to wait until the hour of the first of them is over');
    is scalar(mails('late@buyer.example')), 0, 'nothing was sent';
    sql("UPDATE find_request SET sent_at = NULL WHERE address_mac = 'mac99'");
    sql('UPDATE find_request SET due_at = 1 WHERE due_at IS NOT NULL');
    my ($mails) = links_to('late@buyer.example');
    is $mails, 1, 'it leaves with the turn of a hundredth';
};

subtest 'the newest fifty orders are listed, in the language of the newest' => sub {
    my @many = map { order($shop, '50', email => 'many@buyer.example', locale => 'de') } 1 .. 51;
    ask($shop, 'many@buyer.example');
    my ($mails, @links) = links_to('many@buyer.example');
    is scalar(@links), 50, 'fifty';
    is $links[0], $many[50]{url}, 'the newest first';
    ok !(grep { $_ eq $many[0]{url} } @links), 'without the oldest';
    my ($mail) = mails('many@buyer.example');
    like $mail->{text}, qr/Sie haben weitere Bestellungen/, 'in German, that there are more';
    like $mail->{html}, qr/<a href="\Q$many[50]{url}\E"/, 'as HTML, too';
};

subtest 'what is no address is refused, and not stored' => sub {
    my $before = requests('1 = 1');
    for my $address ('', 'ada', 'ada@', "ada\@buyer.example\r\nBcc: eve\@buyer.example",
        'x' x 300 . '@a.example') {
        my $reply = ask($shop, $address);
        is $reply->{status}, 400, 'an answer';
        like $reply->{content}, qr/That is not an email address/, 'says so';
    }
    like ask($shop, '"ada"@buyer example<b>')->{content},
        qr/name="email"[^>]* value="&quot;ada&quot;\@buyer example&lt;b&gt;"/,
        'and has what was typed, to be mended';
    unlike page('POST', path($shop), body => 'email=ada%FF',
        headers => { 'content-type' => 'application/x-www-form-urlencoded' })->{body},
        qr/value="ada/, 'unless it is no text';
    is ask($shop, " zoe\@b\x{fc}cher.example\n")->{status}, 200, 'a domain may be beyond ASCII';
    $before++;
    is page('POST', path($shop), form => { email => 'x' x 5000 })->{status}, 413, 'a form is short';
    is page('POST', path($shop), body => '{}', headers => { 'content-type' => 'application/json' })
        ->{status}, 415, 'and nothing else';
    is ask({ domain => 'no.shop.example' }, 'ada@buyer.example')->{status}, 404, 'or for no shop';
    is requests('1 = 1'), $before, 'no row was added';
};

subtest 'a network asks ten times an hour' => sub {
    my $from = network();
    is ask($shop, "n$_\@buyer.example", from => $from)->{status}, 200, 'it may' for 1 .. 10;
    my $reply = ask($shop, 'n11@buyer.example', from => $from);
    is $reply->{status}, 429, 'then it has to wait';
    like $reply->{headers}{'retry-after'}, qr/^[1-9]\d{0,3}\z/, 'for less than an hour';
    is ask($shop, 'n11@buyer.example')->{status}, 200, 'another may';
};

subtest 'ten thousand requests of a shop may wait' => sub {
    all_looked_up();
    my $far = int(time) * 1_000_000 + HOUR;
    for my $part (0 .. 9) {
        sql('INSERT INTO find_request (shop_id, address_mac, address, asked_at, due_at) VALUES '
            . join ',', map { "($shop->{shop_id}, 'full$part.$_', 's', $far, $far)" } 1 .. 1000);
    }
    my $reply = ask($shop, 'ada@buyer.example');
    is $reply->{status}, 503, 'then no other is taken, known or not';
    like $reply->{headers}{'retry-after'}, qr/^\d+\z/, 'for now';
    is ask($other, 'someone@buyer.example')->{status}, 200, 'except by another shop';
    sql("DELETE FROM find_request WHERE address_mac LIKE 'full0.1%'");
    is ask($shop, 'someone@buyer.example')->{status}, 200, 'as soon as fewer wait, it is';
};

subtest 'a blocked shop finds nothing' => sub {
    ctl('shop', 'block', $other->{shop_id}, '--reason', 'a test');
    is page('GET', path($other))->{status}, 403, 'its page is closed';
    is ask($other, 'ada@buyer.example')->{status}, 403, 'its form, too';
};

done_testing();
