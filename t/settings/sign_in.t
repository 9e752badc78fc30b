# conf/settings-form.conf as it is: who knows a password signs in, and is out once signed out,
# whoever has the cookie; and guesses are few, whether they are right or not.
#
# once: passwords and guesses; overview.t and staff_email.t have sessions on both databases
use strict;
use warnings;

use Test::More;

use MDL::Settings;
use MDL::Target qw(logs_dir slurp);
use MDL::Test;

use constant { OF_USER => 10, OF_NETWORK => 30 };    # passwords that may be tried in 15 minutes

# Who sends X-Client comes from there.
my $server = settings_server(form => 1, modules => ['remoteip'], extra => <<'END');
DownloadsRequireTLS Off
RemoteIPHeader X-Client
RemoteIPInternalProxy 127.0.0.1
END
my $shop = new_shop(name => 'Books');
my $keys = "/$shop->{shop_id}/keys";
told('member', 'add', $_, 'owner', '--shop', $shop->{shop_id}) for qw(owner staff other);
my $networks = 0;

# Headers of a client of a network of its own.
sub elsewhere
{
    $networks++;
    return (headers => { 'x-client' => join '.', 198, 18, $networks >> 8, $networks & 255 });
}

sub place
{
    return ($_[0]{headers}{location} // '') =~ s{^http://[^/]+/settings}{}r =~ s{^/settings}{}r;
}

# As every page of the settings, whatever it says.
sub is_guarded
{
    my ($reply, $name) = @_;
    my %headers = %{ $reply->{headers} };
    subtest "$name: nobody frames it, keeps it or puts anything into it" => sub {
        like $headers{'content-security-policy'},
            qr/^default-src 'none'; .*form-action 'self'; .*frame-ancestors 'none'/,
            'by its policy';
        is $headers{'cache-control'}, 'private, no-store', 'no cache keeps it';
        is $headers{'x-content-type-options'}, 'nosniff', 'nor is its type guessed';
    };
    return;
}

my $form = visit(undef, 'GET', '/sign-in');

subtest 'Without a session there is the form, which leads back' => sub {
    my $reply = visit(undef, 'GET', "$keys?a=b%20c");
    is $reply->{status}, 303, 'a page leads to the form';
    is place($reply), "/sign-in?to=$shop->{shop_id}%2fkeys%3fa%3db%2520c", 'with its own address';
    is_guarded($reply, 'the answer');
    $reply = visit(undef, 'GET', "/$shop->{shop_id}/search?q=K7Q2-X9PL");
    is place($reply), "/sign-in?to=$shop->{shop_id}%2fsearch",
        'without what was searched for, which may be a license key';
    my $asked = visit(undef, 'GET', "/sign-in?to=$shop->{shop_id}%2fkeys%3fa%3db%2520c");
    is $asked->{status}, 200, 'the form is for everybody';
    is_guarded($asked, 'the form');
    like $asked->{body}, qr{name="to" value="$shop->{shop_id}/keys\?a=b%20c"},
        'and keeps the address';
    like visit(undef, 'GET', '/sign-in', headers => { 'accept-language' => 'de' })->{body},
        qr/<h1>Anmelden/, 'in German too';
    is visit(undef, 'PUT', '/sign-in')->{status}, 405, 'it is sent by POST';
    is_deeply [ sql('SELECT count(*) FROM staff_session') ], [ [0] ], 'no stranger has a row';
    unlike $asked->{headers}{'set-cookie'} // '', qr/./, 'or a cookie';
};

subtest 'Who knows the password signs in' => sub {
    my $reply = sign_in('owner', to => "$shop->{shop_id}/keys?a=b");
    is $reply->{status}, 303, 'name and password lead on';
    is place($reply), "$keys?a=b", 'to where one wanted to go';
    is_guarded($reply, 'the answer');
    like $reply->{headers}{'set-cookie'},
        qr/^__Host-downloads=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax$/,
        'the cookie is out of reach of scripts, of other hosts and of requests in clear';
    my $page = visit($reply->{cookie}, 'GET', $keys);
    is $page->{status}, 200, 'the session opens the page';
    like $page->{body}, qr/Signed in as <bdi>owner</, 'as that user';
    # A line is written when the answer is over, which the client need not wait for.
    ok wait_for(sub {
        scalar grep { m{GET /settings$keys} && / owner / }
            split /\n/, slurp(logs_dir() . '/access_log');
    }, 20,
        'the line'), 'the access log has whom it was';
    my $made = submit($reply->{cookie}, $page, $keys,
        { name => 'Orders', scope => 'full', expires => '' });
    like $made->{body}, qr/adk_live_/, 'its forms take effect';
    my ($id) = $reply->{cookie} =~ /=(.*)/;
    is_deeply [ sql("SELECT count(*) FROM staff_session WHERE id = '$id'") ], [ [0] ],
        'the database does not have what the browser has';
    my $again = sign_in('owner', headers => { cookie => $reply->{cookie} });
    isnt $again->{cookie}, $reply->{cookie}, 'who signs in again gets another session';
    is visit($reply->{cookie}, 'GET', $keys)->{status}, 303, 'and the one before ends';
};

subtest 'The form leads nowhere else' => sub {
    for my $to ('https://evil.example/', '//evil.example/', '/evil.example', '\\\\evil.example',
        '../../evil', 'a/../../b', "x\r\nX-Evil: 1", 'x' x 1025)
    {
        my $reply = sign_in('owner', to => $to);
        is place($reply), '/', 'to=' . substr($to, 0, 30) . ' leads to the first page';
        is $reply->{headers}{'x-evil'}, undef, 'without a header of its own';
        unlike visit(undef, 'GET', '/sign-in?to=' . HTTP::Tiny->new->_uri_escape($to))->{body},
            qr/evil|x{1025}/, 'nor is it in the form';
    }
    is place(sign_in('owner', httpd_location => 'https://evil.example/')), '/',
        'no field of mod_auth_form does';
};

subtest 'A form whose session has ended leads back to its page' => sub {
    my $id = $shop->{shop_id};
    my $settings = origin() . '/settings';
    my $to = sub {
        my ($path, $referer) = @_;
        return place(visit(undef, 'POST', $path, form => {},
            headers => { origin => origin(), defined $referer ? (referer => $referer) : () }));
    };
    my $by_hand = "$settings/$id/orders/new?q=b%20c";
    my $ask = $to->("/$id/orders/new", $by_hand);
    is $ask, "/sign-in?ended&to=$id%2forders%2fnew%3fq%3db%2520c", 'where it was, with the query';
    my ($target) = visit(undef, 'GET', $ask)->{body} =~ /name="to" value="([^"]+)"/;
    is place(sign_in('owner', to => $target)), "/$id/orders/new?q=b%20c",
        'and who signs in gets there';
    is $to->("/$id/orders/7001/grant", "$settings/$id/orders/7001?done=order_revoked"),
        "/sign-in?ended&to=$id%2forders%2f7001", 'without what that page has told';
    is $to->("/$id/customers/5/merge", "$settings/$id/customers/5/merge?done=x&order=1"),
        "/sign-in?ended&to=$id%2fcustomers%2f5%2fmerge%3forder%3d1", 'but with the rest';
    is $to->("/$id/shop", "$settings/$id/search?q=K7Q2-X9PL"),
        "/sign-in?ended&to=$id%2fsearch", 'nor with what was searched for';
    is $to->("/$id/orders/7001/grant", $_), "/sign-in?ended&to=$id%2forders%2f7001",
        'the page above the form\'s address, if the browser names '
        . ($_ // 'none') for undef, 'https://evil.example/settings/1/keys',
        origin() . '.evil.example/settings/1/keys', "${settings}x/1/keys",
        origin() . '/api/v1/ping',
        "$settings/$id/orders/7001/grant", "$settings/$id/nothing", "$settings/sign-out",
        "$settings/$id/orders/%2fevil.example", "$settings//evil.example";
    is $to->("/$id/nothing/at/all", undef), '/sign-in?ended', 'the first page, if there is none';
    is $to->('/sign-out', undef), '/sign-in?ended', 'and nobody is led to sign out again';
};

subtest 'Signing out ends the session, for everybody who has its cookie' => sub {
    my $cookie = sign_in('owner')->{cookie};
    my $other  = sign_in('owner')->{cookie};
    is visit($cookie, 'GET', '/sign-out')->{status}, 405, 'a link does nothing';
    my $page = visit($cookie, 'GET', $keys);
    like $page->{body}, qr{<form method="post" action="/settings/sign-out">},
        'a page has a button for it';
    is submit($cookie, $page, '/sign-out', {}, origin => 'https://evil.example')->{status}, 403,
        'a form of another site does nothing';
    is visit($cookie, 'POST', '/sign-out', form => {}, headers => { origin => origin() })->{status},
        403, 'nor does one without its token';
    is visit($cookie, 'GET', $keys)->{status}, 200, 'the session goes on';
    my $out = submit($cookie, $page, '/sign-out', {});
    is place($out), '/sign-in?out', 'the button ends it';
    like $out->{headers}{'set-cookie'}, qr/^__Host-downloads=; .*Max-Age=0/,
        'and takes the cookie away';
    like visit(undef, 'GET', '/sign-in?out')->{body}, qr/role="status">You are signed out/,
        'which the form says';
    is visit($cookie, 'GET', $keys)->{status}, 303, 'a copy of the cookie opens nothing';
    my $late =
        place(submit($cookie, $page, $keys, { name => 'Late', scope => 'full', expires => '' }));
    is $late, "/sign-in?ended&to=$shop->{shop_id}%2fkeys", 'nor does a form';
    like visit(undef, 'GET', $late)->{body}, qr/was not saved.*page opens again/s, 'which is told';
    unlike visit(undef, 'GET', '/sign-in?ended')->{body}, qr/page opens again/,
        'and what happens then, if it does';
    is visit($other, 'GET', $keys)->{status}, 200, 'the same user goes on in another browser';
    is visit("__Host-downloads=$_", 'GET', $keys)->{status}, 303,
        'another id opens nothing: ' . substr $_, 0, 8 for '', 'x', 'x' x 43, 'x' x 5000;
};

subtest 'A session ends by itself' => sub {
    my $cookie = sign_in('owner')->{cookie};
    my ($now) = map { $_->[0] } sql("SELECT max(created_at) FROM staff_session");
    sql("UPDATE staff_session SET expires_at = expires_at - 3600000000 WHERE created_at = $now");
    is visit($cookie, 'GET', $keys)->{status}, 200, 'who comes back in time';
    my ($until) = map { $_->[0] }
        sql("SELECT expires_at FROM staff_session WHERE created_at = $now");
    cmp_ok $until, '>=', $now + 8 * 3600 * 1e6, 'has eight hours again';
    sql("UPDATE staff_session SET expires_at = $now WHERE created_at = $now");
    is visit($cookie, 'GET', $keys)->{status}, 303, 'after them it opens nothing';
    $cookie = sign_in('owner')->{cookie};
    my ($last) = map { $_->[0] } sql("SELECT max(created_at) FROM staff_session");
    sql("UPDATE staff_session SET created_at = created_at - 604400000000 WHERE created_at = $last");
    is visit($cookie, 'GET', $keys)->{status}, 200, 'a week is the longest';
    sql("UPDATE staff_session SET created_at = created_at - 3600000000, expires_at = $last - 1 "
        . "WHERE created_at < $now - 604000000000");
    is visit($cookie, 'GET', $keys)->{status}, 303, 'after it there is none';
    sign_in('owner') for 1 .. 25;
    is_deeply [ sql('SELECT count(*) FROM staff_session') ], [ [20] ],
        'a user has twenty at most, and what has expired goes';
};

subtest 'A member who is removed sees nothing more, and one who may not sign in any '
    . 'more neither' => sub {
    my $cookie = sign_in('staff')->{cookie};
    told('member', 'remove', 'staff', '--shop', $shop->{shop_id});
    is visit($cookie, 'GET', $keys)->{status}, 404,
        'the shop is not there for a member who was removed';
    my ($code, undef, $text) = ctl('member', 'sign-out', 'staff');
    is $code, 0, 'downloadsctl ends the sessions of a user' or diag $text;
    is visit($cookie, 'GET', $keys)->{status}, 303, 'all of them';
};

subtest 'A form of another site signs nobody in' => sub {
    for my $origin ('https://evil.example', 'null', undef) {
        my $reply = sign_in('owner', headers => { origin => $origin // '' });
        is $reply->{status}, 403, 'from ' . ($origin // 'nowhere');
        is $reply->{cookie}, undef, 'without a session';
    }
};

subtest 'A guess is answered alike, whoever it is about' => sub {
    my %there = elsewhere();
    my $known   = sign_in('other', password => 'wrong', %there);
    my $unknown = sign_in('xxxxx', password => 'wrong', elsewhere());
    is $known->{status}, 403, 'a wrong password is refused';
    is $unknown->{status}, 403, 'and so is an unknown name';
    is $unknown->{body} =~ s/xxxxx/other/r, $known->{body}, 'in the same words';
    like $known->{body},
        qr/role="alert">The name or the password is wrong.*name="name" value="other"/s,
        'with what was typed';
    unlike $known->{body}, qr/wrong"|value="wrong/, 'but for the password';
    is_guarded($known, 'the answer');
    is sign_in($_->[0], password => $_->[1], elsewhere())->{status}, 403, "$_->[2] is refused"
        for [ '', 'secret', 'no name' ], [ 'owner', '', 'no password' ],
        [ 'x' x 256, 'secret', 'a long name' ], [ 'owner', 'x' x 1025, 'a long password' ];
    my $large = visit(undef, 'POST', '/sign-in', form => { name => 'x' x 17000 },
        headers => { origin => origin() });
    is $large->{status}, 413, 'a long form, too';
    like $large->{body}, qr/<h1>The text is too long.*together may have 16\.4\S+kB at most/s,
        'with how much it may have';
    is sign_in('owner', password => $_, elsewhere())->{status}, 403,
        'a byte more is another password' for 'secret ', 'Secret';
    like slurp(error_log()),
        qr/^\[[^\n]*\[downloads:warn\]\ \[pid\ [^\n]*\]\ MDL0220:
            \ refused\ password\ from\ \Q$there{headers}{'x-client'}\E$/mx,
        'each has a line for fail2ban';
};

# How many of so many guesses, all at once, are looked at; all others are told to wait.
sub looked_at
{
    my ($count, $guess) = @_;
    my @statuses = parallel($count, sub { $guess->($_[0])->{status} });
    my $looked_at = grep { $_ == 403 } @statuses;
    is scalar(grep { $_ == 429 } @statuses), $count - $looked_at, 'all others are told to wait';
    return $looked_at;
}

# As many, and those that have come back since.
sub is_about
{
    my ($looked_at, $most, $began, $name) = @_;
    cmp_ok $looked_at, '>=', $most, $name;
    cmp_ok $looked_at, '<=', $most + 1 + int $most * (time - $began) / 900, 'and no more';
    return;
}

# The answers to a guess that is not looked at, and right behind it to who knows the password: asked
# anew if a guess may have come back in between.
sub at_the_end
{
    my ($guess, $know) = @_;
    my ($wrong, $right);
    wait_for(sub {
        my $began = time;
        $wrong = $guess->();
        return 0 if $wrong->{status} != 429;
        $right = $know->();
        return time < $began + $wrong->{headers}{'retry-after'} - 1;
    }, 300, 'the end of the guesses');
    return ($wrong, $right);
}

subtest 'Few passwords of a user can be tried' => sub {
    my $began = time;
    is_about(looked_at(40, sub {
        sign_in('operator', password => "guess $_[0]",
            headers => { 'x-client' => "203.0.113.$_[0]" });
    }),
        OF_USER, $began, 'of forty at once, from as many networks, ten are looked at');
    my ($wrong, $right) = at_the_end(
        sub { sign_in('operator', password => 'wrong', elsewhere()) },
        sub { sign_in('operator', elsewhere()) });
    is $right->{status}, 429, 'so is who knows the password';
    is $right->{cookie}, undef, 'without a session';
    is $right->{body}, $wrong->{body}, 'in the same words';
    like $right->{body}, qr/role="alert">Too many passwords/, 'which say so';
    cmp_ok $right->{headers}{'retry-after'}, '<=', 90, 'with the time to wait';
    is_guarded($right, 'the answer');
    is sign_in('owner', elsewhere())->{status}, 303, 'others sign in';
    $began = time;
    is_about(looked_at(20, sub {
        sign_in('yyyyy', password => "guess $_[0]", headers => { 'x-client' => "192.0.2.$_[0]" });
    }),
        OF_USER, $began, 'of a name that nobody has as many');
    like slurp(error_log()),
        qr/MDL0505:\ too\ many\ wrong\ passwords\ of\ the\ user\ operator,
            \ the\ last\ from\ 203\.0\.113\.\d+:\ /x,
        'the log has the name';
    unlike slurp(error_log()), qr/xxxxx|yyyyy/, 'but none that may have been meant as a password';
};

subtest 'Few passwords can be tried from a network' => sub {
    my %there = elsewhere();
    my $began = time;
    is_about(looked_at(60, sub { sign_in("user $_[0]", password => 'wrong', %there) }),
        OF_NETWORK, $began, 'of sixty at once thirty are looked at');
    my (undef, $right) = at_the_end(sub { sign_in('user 0', password => 'wrong', %there) },
        sub { sign_in('owner', %there) });
    is $right->{status}, 429, 'then nobody signs in from there';
    is sign_in('owner', elsewhere())->{status}, 303, 'but from elsewhere';
    like slurp(error_log()),
        qr/MDL0506: too many wrong passwords from \Q$there{headers}{'x-client'}\E: /,
        'the log has the network';
};

subtest 'Who knows the password is not counted' => sub {
    my %there = elsewhere();
    is scalar(grep { sign_in('reader', %there)->{status} == 303 } 1 .. 35), 35,
        'thirty-five times from one network';
};

subtest 'A file of users that is not there' => sub {
    rename "$server->{folder}/users", "$server->{folder}/away" or die "rename: $!\n";
    my $reply = sign_in('owner');
    is $reply->{status}, 500, 'is told';
    like slurp(error_log()), qr/MDL0507: nobody can sign in/, 'and is in the log';
    is_guarded($reply, 'the answer');
    rename "$server->{folder}/away", "$server->{folder}/users" or die "rename: $!\n";
    is sign_in('owner')->{status}, 303, 'until it is there again';
};

subtest 'The file of users is made as the sample and the guide say' => sub {
    my $top = MDL::Target::top_dir();
    my ($guide, $sample) = map { slurp("$top/$_") } 'docs/settings.md', 'conf/settings-form.conf';
    my @commands = $sample =~ /^#   (\S.*)$/mg;
    is scalar(grep { $guide !~ /^ *\Q$_\E$/m } @commands), 0,
        'the guide has each command of the sample' or diag @commands;
    my $users = "$server->{folder}/made.users";
    my $group = getgrgid((split ' ', $))[0]);
    umask 022;
    for my $command (grep { /downloads\.users/ } @commands) {
        $command =~ s{/etc/apache2/downloads\.users}{$users};
        $command =~ s/-g www-data/-g $group/;
        $command =~ s/^(htpasswd)/printf '%s' typed | $1 -i/;
        is system("$command 2>/dev/null"), 0, "it works: $command";
    }
    is sprintf('%o', (stat $users)[2] & 07777), '640',
        'only its owner and the group of httpd read it';
    rename $users, "$server->{folder}/users" or die "rename: $!\n";
    is sign_in('ada', password => 'typed', elsewhere())->{status}, 303, 'who is in it signs in';
    is sign_in('ada', password => 'other', elsewhere())->{status}, 403, 'with that password alone';
};

unlike join('', map { slurp($_) // '' } error_log(), logs_dir() . '/access_log'),
    qr/__Host-downloads|\bsecret\b/, 'no log has a session or a password';

$server->stop;

for ([ 'DownloadsSettingsSignIn nobody',
    qr/DownloadsSettingsSignIn:\ no\ module\ that\ is\ loaded
        \ checks\ passwords\ as\ the\ provider\ nobody/x ]) {
    $server->configure(extra => ($server->{extra} =~ s/^DownloadsSettingsSignIn .*/$_->[0]/mr));
    my ($code, $output) = $server->httpd('-t');
    isnt $code, 0, "$_->[0] is refused";
    like $output, $_->[1], 'with what to do';
}

done_testing;
