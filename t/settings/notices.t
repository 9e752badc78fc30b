# What members choose to be told: for each kind nothing, at once but once an hour, or one email a
# day that counts everything.
#
# both: rows are claimed by queries that differ
use strict;
use warnings;

use MDL::Contract;
use MDL::Httpd;
use MDL::Maildir;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server(extra => "DownloadsPollInterval 1\nDownloadsMailRate 1\n");
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my %HAS = (owner => 'owner@home.example', staff => 'staff@home.example',
    reader => 'reader@home.example');
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];

sub own { my ($user) = @_; return visit($user, 'GET', "/$id/own-emails") }

sub choose
{
    my ($user, %choice) = @_;
    return submit($user, own($user), "/$id/own-emails/notices",
        { held => 'off', bounced => 'off', import_failed => 'off', keys_low => 'off', help => 'off',
            %choice });
}

sub told_of
{
    my ($user) = @_;
    return grep { $_->{headers}{subject} =~ /^What happened/ } mails($HAS{$user});
}

# The texts of the emails to a member, of which there must be so many.
sub texts
{
    my ($user, $count) = @_;
    wait_for(sub { told_of($user) >= $count }, 20, "$count emails to $user");
    my @told = told_of($user);
    is(scalar @told, $count, "$user has $count");
    return map { $_->{text} } @told;
}

# Waits until what is due has been sent.
sub all_told
{
    wait_for(sub {
        my $now = (time() + 1) * 1_000_000;
        (sql("SELECT (SELECT count(*) FROM notice WHERE due_at <= $now) "
            . "+ (SELECT count(*) FROM job WHERE type = 'staff_email' "
            . "AND status IN ('queued', 'running'))"))[0][0] == 0;
    }, 20, 'what is due');
    return;
}

my $product = mapping_of($shop, [ ready_asset($shop, 'book.txt', 'a book')->{id} ])
    ->{storefront_product_id};

sub hold
{
    my $order = digits();
    assign($shop, $order, [$product]);
    held_by_check($shop, $order);
    return;
}

sub import_fails
{
    my $made = api('POST', '/assets', key => $shop->{token},
        json => { source_url => source_url('absent.pdf') })->{json};
    wait_job($shop, $made->{job}{id});
    return;
}

for my $user (sort keys %HAS) {
    submit($user, own($user), "/$id/own-emails", { email => $HAS{$user} });
    my $mail = wait_mail($HAS{$user});
    page('POST', (grep { m{/c/} } @{ $mail->{urls} })[0]) if $user ne 'reader';
}

subtest 'at first nobody is told' => sub {
    hold();
    is_deeply([ sql('SELECT * FROM notice') ], [], 'nothing waits');
    my @off = own('owner')->{body} =~ /<option value="off" selected>/g;
    is(scalar @off, 3, 'the page shows it for each kind');
};

subtest 'a choice is kept' => sub {
    is(choose('owner', held => 'now', import_failed => 'daily')->{status}, 303, 'it is taken');
    like(own('owner')->{body},
        qr/name="held">\s*<option value="off">[^<]*<\/option>\s*<option value="now" selected>/,
        'and shown');
    is(choose('owner', held => 'weekly')->{status}, 400, 'one that there is not is refused');
    is(submit('owner', own('owner'), "/$id/own-emails/notices", { held => 'now' })->{status}, 400,
        'a kind may not be left out');
    like(visit('owner', 'GET', "/$id/audit")->{body}, qr/owner<\/bdi><\/a>: changed/,
        'the audit has it');
    choose('owner', held => 'now');
};

subtest 'an email at once, and one an hour that counts the others' => sub {
    hold();
    my ($text) = texts('owner', 1);
    like($text, qr/^1 order was held for review\.\r?\nhttp\S+\/$id\/orders\?state=held\r?$/m,
        'tells how many, with the list\'s address');
    hold() for 1 .. 2;
    all_told();
    is(scalar(my @same = told_of('owner')), 1, 'within the hour there is no other');
    sql("UPDATE notice SET sent_at = sent_at - 3600000000, due_at = due_at - 3600000000 "
        . "WHERE kind = 'held'");
    my (undef, $next) = texts('owner', 2);
    like($next, qr/^2 orders were held/m, 'the next counts what was in between');
};

subtest 'one email a day counts all kinds' => sub {
    choose('staff', held => 'daily', import_failed => 'daily');
    import_fails();
    my ($first) = texts('staff', 1);
    like($first, qr/^1 import of a file failed\./m, 'the first comes with the first event');
    hold();
    import_fails();
    all_told();
    is(scalar(my @same = told_of('staff')), 1, 'the same day has no other');
    choose('staff', held => 'daily', import_failed => 'now');
    choose('staff', held => 'daily', import_failed => 'daily');
    import_fails();
    all_told();
    is(scalar(@same = told_of('staff')), 1, 'not even by another choice');
    sql("UPDATE member SET told_at = told_at - 86400000000");
    sql("UPDATE notice SET due_at = 1 WHERE user_name = 'staff' AND due_at IS NOT NULL");
    my (undef, $next) = texts('staff', 2);
    like($next, qr/^1 order was held.*^1 import of a file failed/ms, 'the next has both');
};

subtest 'who has no confirmed address is told nothing' => sub {
    choose('reader', held => 'now');
    hold();
    all_told();
    is(scalar(my @none = told_of('reader')), 0, 'not even later');
    is((sql("SELECT waiting FROM notice WHERE user_name = 'reader' AND kind = 'held'"))[0][0], 0,
        'nothing waits');
};

subtest 'a background process that is killed loses nothing and repeats nothing' => sub {
    sql("UPDATE notice SET sent_at = 1, due_at = NULL, waiting = 0 WHERE kind = 'held'");
    my @workers = worker_pids();
    pause_process($_) for @workers;
    hold();
    kill KILL => @workers;
    my $text = (texts('owner', 3))[2];
    like($text, qr/^1 order was held/m, 'the next one tells');
    all_told();
    is(scalar(my @same = told_of('owner')), 3, 'once');
};

subtest 'what the budgets don\'t allow waits' => sub {
    sql("UPDATE staff_email_budget SET taken = 40 WHERE name = 'email/shop/$id'");
    sql("UPDATE notice SET sent_at = 1 WHERE user_name = 'owner' AND kind = 'held'");
    hold();
    all_told();
    my ($waiting) = sql("SELECT waiting FROM notice WHERE user_name = 'owner' AND kind = 'held'");
    cmp_ok($waiting->[0], '>=', 1, 'it is counted still');
    sql('DELETE FROM staff_email_budget');
    sql("UPDATE notice SET due_at = 1 WHERE user_name = 'owner' AND kind = 'held'");
    my $text = (texts('owner', 4))[3];
    like($text, qr/^$waiting->[0] orders? w/m, 'and told later');
};

# A new stock falls to its threshold; members get emails of it, or none.
sub run_low
{
    my ($name, @told) = @_;
    my $tag = api('POST', '/license-key-tags', key => $shop->{token},
        json => { name => $name, low_stock_threshold => 1 })->{json}{id};
    api('POST', "/license-key-tags/$tag/keys", key => $shop->{token},
        json => { keys => [ map { "$name-$_" } 1 .. 2 ] });
    assign($shop, digits(),
        [ mapping_of($shop, [], license_key_tag_ids => [$tag])->{storefront_product_id} ]);
    wait_for(sub { about($_, $name) }, 20, "$_ to be told of $name") for @told;
    all_told();
    for my $user (sort keys %HAS) {
        my $wanted = grep { $_ eq $user } @told;
        is(scalar(my @about = about($user, $name)), $wanted ? 1 : 0,
            "$user " . ($wanted ? 'is' : 'is not') . ' told at once');
    }
    return;
}

sub about
{
    my ($user, $name) = @_;
    return grep { $_->{text} =~ /stock of license keys \S*$name\b/ } mails($HAS{$user});
}

subtest 'stocks of license keys that run low' => sub {
    sql('DELETE FROM notice');
    sql('UPDATE member SET told_at = NULL');
    like(own('owner')->{body}, qr/name="keys_low">[^"]+"off">[^"]+"now" selected>/,
        'an owner who has chosen nothing is told at once');
    like(own('staff')->{body}, qr/name="keys_low">[^"]+"off" selected>/, 'staff are not');
    run_low('first', 'owner');
    choose('staff', keys_low => 'now');
    run_low('second', 'owner', 'staff');
    choose('owner');
    run_low('third', 'staff');
    choose('staff');
    run_low('fourth');
    choose('staff', keys_low => 'daily');
    my $before = told_of('staff');
    run_low('fifth');
    my $text = (texts('staff', $before + 1))[-1];
    my $told = qr/^1 stock of license keys fell to its threshold\.\r?\n/m;
    like($text, qr{${told}http\S+/$id/license-keys\r?$}m,
        'the daily email counts them');
};

subtest 'who is no member any more is told nothing' => sub {
    told('member', 'remove', 'staff', '--shop', $id);
    is_deeply([ sql("SELECT * FROM notice WHERE user_name = 'staff'") ], [], 'no choice is left');
};

$server->stop;
done_testing;
