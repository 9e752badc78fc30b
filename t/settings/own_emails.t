# Where a member gets emails: an address of their own, which is asked once and gets nothing else
# before it is confirmed.
#
# both: an address is whose by queries that compare two columns
use strict;
use warnings;

use MDL::Contract;
use MDL::Maildir;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server(extra => "DownloadsPollInterval 1\nDownloadsMailRate 1\n");
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ],
    [ 'ada@staff.example' => 'owner' ];
told('member', 'add', 'operator', 'operator');

sub own { my ($user) = @_; return visit($user, 'GET', "/$id/own-emails") }

sub moves
{
    my ($user, $to, $path) = @_;
    return submit($user, own($user), "/$id/own-emails" . ($path // ''), { email => $to });
}

sub member
{
    my ($name) = @_;
    return (grep { $_->{user} eq $name } @{ told('member', 'list', '--shop', $id) })[0];
}

# The links of the questions to an address, of which there must be so many.
sub links_to
{
    my ($to, $count) = @_;
    wait_for(sub { mails($to) >= $count }, 20, "$count emails to $to");
    return map { (grep { m{/c/} } @{ $_->{urls} })[0] } mails($to);
}

# Two keys, of which one order takes one: the stock has fallen to its threshold.
sub run_low
{
    my $tag = api('POST', '/license-key-tags', key => $shop->{token},
        json => { name => digits(), low_stock_threshold => 1 })->{json}{id};
    api('POST', "/license-key-tags/$tag/keys", key => $shop->{token},
        json => { keys => [qw(A B)] });
    my $product = mapping_of($shop, [], license_key_tag_ids => [$tag])->{storefront_product_id};
    is(assign($shop, digits(), [$product])->{status}, 201, 'a stock runs low');
    wait_for(sub { (sql("SELECT count(*) FROM job WHERE type = 'staff_email' "
        . "AND status IN ('queued', 'running')"))[0][0] == 0 }, 30, "the staff's emails");
    return;
}

sub lows { my ($to) = @_; return scalar grep { $_->{headers}{subject} =~ /run low/ } mails($to) }

subtest 'a member of any role has a page for it' => sub {
    for my $user (qw(owner staff reader)) {
        my $page = own($user);
        is($page->{status}, 200, "$user sees it");
        like($page->{body}, qr/You have no address/, 'and has none');
    }
    like(own('operator')->{body}, qr/You are no member of this shop/, 'an operator reads why not');
    is(submit('operator', visit('operator', 'GET', '/shops'), "/$id/own-emails",
        { email => 'root@home.example' })->{status}, 404, 'and can set none');
};

subtest 'an address of one\'s own is asked, and gets the emails once it is confirmed' => sub {
    is(moves('owner', 'owner@home.example')->{status}, 303, 'an owner names one');
    my ($link) = links_to('owner@home.example', 1);
    is(member('owner')->{email}, 'asked', 'which is asked');
    like(own('owner')->{body}, qr/owner\@home\.example<\/bdi> is not confirmed.*Ask again/s,
        'the page says so');
    like(visit('ada@staff.example', 'GET', "/$id/members")->{body},
        qr/<bdi>owner\@home\.example<\/bdi> asked, not confirmed/, 'the members page, too');
    run_low();
    is(lows('owner@home.example'), 0, 'it gets nothing yet');
    is(page('POST', $link)->{status}, 200, 'its button confirms');
    is(member('owner')->{email}, 'confirmed', 'which the list says');
    like(own('owner')->{body}, qr/owner\@home\.example<\/bdi> gets your emails/, 'and the page');
    run_low();
    is(lows('owner@home.example'), 1, 'now it gets the emails');
    is(moves('owner', '', '/ask')->{status}, 409, 'who has confirmed is not asked again');
    like(visit('ada@staff.example', 'GET', "/$id/audit")->{body},
        qr/owner<\/bdi><\/a>: address changed/,
        'the audit has it');
};

subtest 'it takes the place of an owner\'s name' => sub {
    my ($link) = links_to('ada@staff.example', 1);
    is(page('POST', $link)->{status}, 200, 'an owner has confirmed the name');
    is(moves('ada@staff.example', 'ada@home.example')->{status}, 303, 'and names another address');
    my ($other) = links_to('ada@home.example', 1);
    is(page('POST', $other)->{status}, 200, 'which is confirmed');
    is(page('POST', $link)->{status}, 404, 'the name is nobody\'s address now');
    run_low();
    is_deeply([ map { lows($_) } 'ada@staff.example', 'ada@home.example' ], [ 0, 1 ],
        'emails go to the other');
    is(moves('ada@staff.example', '')->{status}, 303, 'the owner removes it');
    links_to('ada@staff.example', 2);
    is(member('ada@staff.example')->{email}, 'asked', 'and is asked at the name, as if new');
    is(page('POST', $other)->{status}, 404, 'the other is nobody\'s');
};

subtest 'two owners with one address get one email' => sub {
    is(moves('ada@staff.example', 'owner@home.example')->{status}, 303, 'both have it');
    is(member('ada@staff.example')->{email}, 'confirmed', 'which is confirmed already');
    my $before = lows('owner@home.example');
    run_low();
    is(lows('owner@home.example'), $before + 1, 'one comes');
    is(moves('ada@staff.example', '')->{status}, 303, 'one goes');
    is(member('owner')->{email}, 'confirmed', 'the other keeps it');
};

subtest 'whoever is no owner gets only what the role does' => sub {
    is(moves('staff', 'staff@home.example')->{status}, 303, 'a member of the staff names one');
    my ($link) = links_to('staff@home.example', 1);
    is(page('POST', $link)->{status}, 200, 'and confirms it');
    run_low();
    is(lows('staff@home.example'), 0, 'the emails to owners don\'t come');
    told('member', 'remove', 'staff', '--shop', $id);
    is(page('POST', $link)->{status}, 404, 'who is removed takes the address along');
    is_deeply([ sql("SELECT * FROM staff_address WHERE address LIKE 'staff%'") ], [], 'wholly');
};

subtest 'what is no address is refused' => sub {
    for my $text ('nobody', 'a@b@c', "a\@x.example, b\@x.example", 'x' x 250 . '@x.example') {
        my $reply = moves('reader', $text);
        is($reply->{status}, 400, substr $text, 0, 30);
        like($reply->{body}, qr/role="alert">This is no email address/, 'with its reason');
    }
    is(member('reader')->{email}, 'none', 'nothing is set');
    is(moves('reader', '', '/ask')->{status}, 404, 'there is nothing to ask');
};

$server->stop;
done_testing;
