# What a shop's staff get by email: an address is asked once, by whoever may name one, and gets
# nothing else before it is confirmed; and however many addresses and tags there are, a day has an
# end.
#
# both: emails are counted by queries that differ
use strict;
use warnings;

use MDL::Contract;
use MDL::Maildir;
use MDL::Settings;
use MDL::Target qw(slurp);
use MDL::Test;
use Test::More;

my %MOST = (emails_of_address => 20, emails_of_shop => 40, confirmations_of_address => 3,
    confirmations_of_shop => 10);

my $server = settings_server(extra => "DownloadsPollInterval 1\nDownloadsMailRate 1\n");
my $shop   = new_shop(name => 'Bücher & <b>' . 'x' x 100);
my $id     = $shop->{shop_id};
told('member', 'add', 'owner', 'owner', '--shop', $id);

sub call
{
    my ($of, $path, $json) = @_;
    return api('POST', $path, key => $of->{token}, json => $json)->{json};
}

# Waits until whatever was queued for staff is sent or given up.
sub all_sent
{
    wait_for(sub {
        (sql("SELECT count(*) FROM job WHERE type = 'staff_email' "
            . "AND status IN ('queued', 'running')"))[0][0] == 0;
    }, 60, "the staff's emails");
    return;
}

sub subject { my ($mail) = @_; return $mail->{headers}{subject} }

sub staff_mails
{
    my ($to) = @_;
    return grep { subject($_) !~ /^Please confirm/ && subject($_) =~ /shop \d+$/ } mails($to);
}

sub questions
{
    my ($to) = @_;
    return grep { subject($_) eq 'Please confirm your address' } mails($to);
}

sub link_of { my ($mail) = @_; return (grep { m{/c/} } @{ $mail->{urls} })[0] }

# The link of the newest question to an address, which must be there.
sub link_to
{
    my ($to, $count) = @_;
    $count //= 1;
    wait_for(sub { questions($to) >= $count }, 20, "$count questions to $to");
    my %new = map { link_of($_) => 1 } questions($to);
    return (grep { defined } map { link_of($_) } questions($to))[-1];
}

sub confirm
{
    my ($to) = @_;
    my $link = link_to($to);
    is(page('POST', $link)->{status}, 200, "$to confirms");
    return $link;
}

# Makes tags with two keys each, whose names are an advertisement, and an order that takes one of
# each, so that all of them come down to their threshold in one transaction.
my $tags = 0;
sub run_low
{
    my ($of, $count) = @_;
    my @tags =
        map { call($of, '/license-key-tags', { name => "Buy pills at http://spam.example/ now! #$_ "
            . 'y' x 60, low_stock_threshold => 1 })->{id} }
        map { ++$tags } 1 .. $count;
    call($of, "/license-key-tags/$_/keys", { keys => [qw(A B)] }) for @tags;
    my @products;
    push @products,
        mapping_of($of, [], license_key_tag_ids => [ splice @tags, 0, 10 ])->{storefront_product_id}
        while @tags;
    is(assign($of, digits(), \@products)->{status}, 201, "$count stocks run low at once");
    all_sent();
    return;
}

sub member
{
    my ($name, $of) = @_;
    return (grep { $_->{user} eq $name } @{ told('member', 'list', '--shop', $of // $id) })[0];
}

sub members { my ($user) = @_; return visit($user // 'owner', 'GET', "/$id/members") }
sub add
{
    my ($name, $role) = @_;
    return submit('owner', members(), "/$id/members", { user => $name, role => $role // 'owner' })
        ->{status};
}

sub row_of
{
    my ($name) = @_;
    return (grep { /<td><bdi>\Q$name\E</ } split m{</tr>}, members()->{body})[0] // '';
}

my @strangers = map { "stranger$_\@victim.example" } 1 .. 98;

subtest 'a hundred addresses that nobody has confirmed get a few questions, '
    . 'and nothing else' => sub {
    is(add('reader@victim.example', 'read-only'), 303, 'somebody who only reads is added');
    my @refused = grep { add($_) != 303 } @strangers;
    is("@refused", '', 'an owner names 98 others as owners');
    run_low($shop, 16);
    my @all = mails();
    is(scalar @all, $MOST{confirmations_of_shop},
        'all in all there are as many emails as a shop may ask within a day');
    is_deeply([ sort map { $_->{headers}{to} =~ /<(.*)>/ } @all ],
        [ sort @strangers[ 0 .. $MOST{confirmations_of_shop} - 1 ] ],
        'one to each of those who came first, and none to who only reads');
    is_deeply([ grep { !/^Please confirm your address$/ } map { subject($_) } @all ], [],
        'each asks');
    is_deeply([ grep { $_->{raw} =~ /pills/ } @all ], [], 'none has a word of the shop\'s tags');
    like($all[0]{text}, qr/shop Bücher & <b>x{47}… \(/, 'the name of the shop is cut');
    unlike($all[0]{html}, qr/<b>x/, 'and escaped');
};

subtest 'the pages say who is not confirmed' => sub {
    like(visit('owner', 'GET', "/$id/")->{body},
        qr/Nobody in this shop is told.*Customers get their emails.*href="[^"]*\/members"/s,
        'the overview says that nobody is told of anything, but customers get theirs');
    like(visit('owner', 'GET', "/$id/", headers => { 'accept-language' => 'de' })->{body},
        qr/Niemand in diesem Shop/, 'also in German');
    like(row_of($strangers[0]), qr/asked, not confirmed.*Ask again/s,
        'who was asked can be asked again');
    like(row_of($strangers[-1]), qr/>not confirmed.*Send a confirmation/s, 'who was not, can be');
    like(row_of('owner'), qr/not an address/, 'a name that is no address gets nothing');
    unlike(row_of('reader@victim.example'), qr/confirm/, 'nor does who is no owner');
    is_deeply([ map { member($_)->{email} } $strangers[0], $strangers[-1], 'owner',
        'reader@victim.example' ], [qw(asked not_asked none none)],
        'downloadsctl member list, too');
    my $refused = submit('owner', members(), "/$id/members/ask", { user => $strangers[-1] });
    is($refused->{status}, 429, 'the shop may ask nobody else today');
    like($refused->{body}, qr/role="alert">[^<]*Try again tomorrow/, 'and reads why');
};

subtest 'a link is opened by anybody, and only its button confirms' => sub {
    my $link = link_to($strangers[0]);
    for my $method (qw(GET HEAD GET)) {
        my $reply = page($method, $link);
        is($reply->{status}, 200, "$method shows the page");
        is($reply->{headers}{'cache-control'}, 'private, no-store', 'which no cache keeps');
        like($reply->{body}, qr/Should <bdi>\Q$strangers[0]\E<.*<form method="post"/s,
            'and which asks') if $method eq 'GET';
    }
    is(member($strangers[0])->{email}, 'asked', 'that confirms nothing');
    like(page('GET', $link, headers => { 'accept-language' => 'de' })->{body}, qr/Bestätigen Sie/,
        'it speaks German');
    is(page('DELETE', $link)->{status}, 405, 'another method is refused');
    like(page('POST', $link)->{body}, qr/The address is confirmed/, 'the button does confirm');
    is(member($strangers[0])->{email}, 'confirmed', 'which the list says');
    like(row_of($strangers[0]), qr/gets them/, 'and the page');
    is(page('POST', $link)->{status}, 200, 'once more changes nothing');
    is((sql("SELECT count(*) FROM audit WHERE noun_id = '$strangers[0]' "
        . "AND action = 'confirmed'"))[0][0], 1, 'the audit has it once');
    like(visit('owner', 'GET', "/$id/audit")->{body},
        qr{<bdi>\Q$strangers[0]\E</bdi></a>: address confirmed}, 'in words');
    unlike(visit('owner', 'GET', "/$id/")->{body}, qr/Nobody gets/, 'the overview is content');
    my $again = submit('owner', members(), "/$id/members/ask", { user => $strangers[0] });
    is($again->{status}, 409, 'who has confirmed is not asked again');
    my ($token) = $link =~ m{/c/(.*)};
    unlike(slurp(logs_dir() . '/access_log') . slurp(logs_dir() . '/error_log'), qr/\Q$token\E/,
        'no log has the link');
    substr($link, -3, 1) = substr($link, -3, 1) eq 'A' ? 'B' : 'A';
    my $forged = page('POST', $link);
    is($forged->{status}, 404, 'a changed link is none');
    like($forged->{body}, qr/There is no such page/, 'and says so');
};

subtest 'who has confirmed gets as many as a day allows, and is told which is the last' => sub {
    confirm($strangers[$_]) for 1, 2;
    run_low($shop, 30);
    my %got = map { $_ => [ staff_mails($_) ] } @strangers[ 0 .. 2 ];
    is(scalar(my @all = staff_mails()), $MOST{emails_of_shop}, 'the shop sends as many as it may');
    cmp_ok(scalar @{ $got{$_} }, '<=', $MOST{emails_of_address},
        "$_ gets no more than an address may") for @strangers[ 0 .. 2 ];
    is(scalar(map { @$_ } values %got), $MOST{emails_of_shop}, 'and nobody else gets any');
    is_deeply([ grep { $_ ne "License keys run low: shop $id" } map { subject($_) } @all ], [],
        'their subjects are ours');
    my @last = grep { $_->{text} =~ /^This is the last email for a day/m } @all;
    is(scalar @last, 1, 'the last one says so');
    like($all[0]{text}, qr{keys Buy pills at http://spam.example/ now! #\d+ y+… of },
        'the name of a tag is in the text, and cut');
    is(scalar(my @lines = slurp(logs_dir() . '/error_log') =~ /MDL0373: the staff of shop $id /g),
        1, 'the log names the shop, once');
    is((sql("SELECT count(*) FROM job WHERE type = 'staff_email' AND shop_id = $id "
        . "AND status <> 'succeeded'"))[0][0], 0, 'nothing else waits');
};

subtest 'customers and staff take nothing from each other' => sub {
    my $order = sub {
        my ($to) = @_;
        my $product = mapping_of($shop, [ ready_asset($shop, digits() . '.txt', 'a book')->{id} ])
            ->{storefront_product_id};
        my $reply = assign($shop, digits(), [$product], send_email => JSON::PP::true(),
            customer => { email => $to });
        is($reply->{status}, 201, "an order of $to");
        return;
    };
    $order->('first@buyer.example');
    ok(wait_mail('first@buyer.example'),
        'the staff had all that they may: a customer gets an email still');
    $order->('second@buyer.example');
    my $second = new_shop();
    my $own = $second->{shop_id};
    told('shop', 'set', $own, '--email', 'own@shop.example');
    told('member', 'add', 'ada', 'owner', '--shop', $own);
    confirm('own@shop.example');
    sql("UPDATE staff_email_budget SET began_at = began_at - 86400000000 "
        . "WHERE name LIKE '%/shop/$id'");
    run_low($shop, 1);
    is(scalar(my @all = staff_mails()), $MOST{emails_of_shop} + 3,
        'customers had all that they may: a day later the staff get theirs');
    is(scalar(mails('second@buyer.example')), 0, 'while the second customer waits');
    run_low($second, 1);
    is(scalar(my @own = staff_mails('own@shop.example')), 1,
        "of a shop whose owners have no address its own gets them");
    told('member', 'add', $strangers[0], 'owner', '--shop', $own);
    run_low($second, 1);
    is(scalar(@own = staff_mails('own@shop.example')), 2, 'also when an owner is not confirmed');
    my $before = staff_mails($strangers[0]);
    confirm_other($strangers[0], $own);
    run_low($second, 1);
    is(scalar(@own = staff_mails('own@shop.example')), 2, 'no more once an owner is,');
    is(scalar(my @his = staff_mails($strangers[0])), $before + 1, 'who gets it');
};

# Confirms the address for a shop by the link that it was sent for it.
sub confirm_other
{
    my ($to, $of) = @_;
    my @links = map { link_of($_) } questions($to);
    for my $link (@links) {
        my $page = page('GET', $link)->{body};
        page('POST', $link) if $page =~ /<form/;
    }
    return is(member($to, $of)->{email}, 'confirmed', "$to confirms for shop $of");
}

subtest 'an address is asked a few times a day, over all shops' => sub {
    my @shops = map { new_shop()->{shop_id} } 1 .. 5;
    told('member', 'add', 'Victim@victim.example', 'owner', '--shop', $shops[0]);
    told('member', 'add', 'Victim@victim.example', 'owner', '--shop', $shops[0]);
    told('member', 'add', 'victim@victim.example', 'owner', '--shop', $_) for @shops[ 1 .. 4 ];
    all_sent();
    is(scalar(my @asked = questions('victim@victim.example')), $MOST{confirmations_of_address},
        'by three of five');
    my ($code, undef, $text) = ctl('member', 'ask', 'victim@victim.example', '--shop', $shops[4]);
    is($code, 5, 'the operator can not ask again');
    like($text, qr/3 times a day at most/, 'and reads why');
    sql("UPDATE staff_email_budget SET began_at = began_at - 86400000000");
    told('member', 'ask', 'victim@victim.example', '--shop', $shops[4]);
    all_sent();
    is(scalar(@asked = questions('victim@victim.example')), $MOST{confirmations_of_address} + 1,
        'a day later it goes');
    is((ctl('member', 'ask', 'ada', '--shop', $shops[4]))[0], 4,
        'a name that is no address is not asked');
};

# Queues an email of staff once more, as one was queued before an address was removed, or by an
# older version.
sub queue_again
{
    my ($of, $to, $template, $age) = @_;
    my ($job) = sql("SELECT id FROM job WHERE type = 'staff_email' AND shop_id = $of "
        . "AND status = 'succeeded' ORDER BY id LIMIT 1");
    sql("INSERT INTO staff_email (job_id, recipient, template, data) "
        . "VALUES ('$job->[0]', '$to', '$template', '{}')");
    sql("UPDATE job SET status = 'queued', attempts = 0, finished_at = NULL, "
        . "created_at = created_at - $age, due_at = 1 WHERE id = '$job->[0]'");
    all_sent();
    return (sql("SELECT status, error_code FROM job WHERE id = '$job->[0]'"))[0];
}

subtest 'what was queued for an address that is not confirmed, or not any more, '
    . 'is not sent' => sub {
    my $to = $strangers[3];
    is_deeply(queue_again($id, $to, 'license_keys_low', 0), [ 'failed', 'not_confirmed' ],
        'not confirmed');
    is(scalar(my @none = staff_mails($to)), 0, 'it gets nothing');
    is(queue_again($id, $to, 'confirm', 8 * 86_400_000_000)->[0], 'succeeded',
        'a question of eight days ago');
    my $old = page('POST', link_to($to, 2));
    is($old->{status}, 410, 'has a link that is too old');
    like($old->{body}, qr/This link is too old/, 'and says so');
    my ($link) = map { link_of($_) } questions($to);
    is(submit('owner', members(), "/$id/members/remove", { user => $to })->{status}, 303,
        'the owner removes it');
    is(page('POST', $link)->{status}, 404, 'its link leads nowhere');
    is_deeply(queue_again($id, $strangers[3], 'confirm', 0), [ 'failed', 'not_confirmed' ],
        'it is asked no more');
    is(submit('owner', members(), "/$id/members/remove", { user => $strangers[0] })->{status}, 303,
        'one that was confirmed goes, too');
    is(add($strangers[0]), 303, 'and comes again');
    isnt(member($strangers[0])->{email}, 'confirmed', 'without its confirmation');
};

$server->stop;
done_testing;
