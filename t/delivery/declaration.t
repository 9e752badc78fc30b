# An order that waits for its customer's declaration gives nothing, by any of its addresses; the
# declaration releases it, is kept, and is confirmed by email.
#
# both: what decides about a download is read by statements of each database
use strict;
use warnings;

use JSON::PP ();
use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();
my @files = map { ready_asset($shop, "secret-$_.bin", "bytes of $_") } 1 .. 2;
my $title = 'The forum';

sub made
{
    my ($path, $members) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $members);
    $reply->{status} =~ /^20/ or die "$path: $reply->{status} $reply->{body}\n";
    return $reply->{json};
}

my $link = made('/links', { title => $title, url => 'https://forum.example/' })->{id};

# An order with two files, a link and a license key of its own.
sub order_of
{
    my (%customer) = @_;
    my $id  = digits();
    my $key = "KEY-$id";
    my $tag = made('/license-key-tags', { name => "Keys $id" })->{id};
    made("/license-key-tags/$tag/keys", { keys => [$key] });
    my $product = mapping_of($shop, [ map { $_->{id} } @files ], link_ids => [$link],
        license_key_tag_ids => [$tag], download_type => 'ZIP', note => "Hint $id");
    my $reply = assign($shop, $id, [ $product->{storefront_product_id} ],
        storefront_customer_id => $id,
        %customer ? (send_email => JSON::PP::true(), customer => \%customer) : ());
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my $assignment = $reply->{json}{assignments}[0]{id};
    return { id => $id, key => $key, note => "Hint $id", url => $reply->{json}{download_page_url},
        assignment => $assignment, buttons => [
            { zip => $assignment }, map { { file => "$assignment-$_->{id}" } } @files ] };
}

sub switch
{
    my ($on) = @_;
    my $reply = api('PATCH', '/shop', key => $shop->{token},
        json => { declaration => $on ? JSON::PP::true() : JSON::PP::false() });
    is($reply->{json}{declaration}, $on, "the shop asks for a declaration: $on")
        or diag($reply->{body});
    return;
}

sub of_order
{
    my ($order, $more) = @_;
    return api('GET', "/orders/$order->{id}$more", key => $shop->{token});
}

sub urls_of { return of_order($_[0], "/assignments/$_[0]{assignment}/download-urls") }

sub declare { return page('POST', $_[0]{url}, form => { declare => 'yes', %{ $_[1] } }) }

my %both = (begin => 'yes', lose => 'yes');

# Nothing of the order's content: a name, a key, a note, an address.
sub gives_nothing
{
    my ($text, $order, $what) = @_;
    my $content = join '|', 'secret-\d', 'bytes of', $order->{key}, $order->{note}, $title,
        'forum\.example', '/f/', '/z/', '/l/';
    unlike($text, qr/$content/, $what);
    return;
}

sub declared_events
{
    my ($order) = @_;
    return grep { $_->{action} eq 'declared' } @{ of_order($order, '/events')->{json}{data} };
}

subtest 'A shop asks for no declaration unless it says so' => sub {
    my $order = order_of();
    like(page('GET', $order->{url})->{body}, qr/\Q$order->{key}\E/, 'the page has everything');
    switch(1);
    like(page('GET', $order->{url})->{body}, qr/\Q$order->{key}\E/, 'and keeps it afterwards');
    my $later = order_of();
    switch(0);
    gives_nothing(page('GET', $later->{url})->{body}, $later,
        'an order of that time waits for its declaration, even if no other does any more');
};

subtest 'No address of an undeclared order gives anything' => sub {
    my $order = order_of();
    my $page  = page('GET', $order->{url})->{body};
    my ($way) = $page =~ m{href="([^"]+/l/[^"]+)"} or die "no link: $page\n";
    my @old   = map { page('POST', $order->{url}, form => $_)->{headers}{location} }
        @{ $order->{buttons} };
    push @old, map { $_->{url} } @{ urls_of($order)->{json}{files} }, urls_of($order)->{json}{zip};
    is(scalar(grep { defined && m{/[fz]/} } @old), 6, 'it has addresses from before');
    sql("UPDATE orders SET undeclared = 1 WHERE storefront_order_id = '$order->{id}'");

    for my $method (qw(GET HEAD)) {
        for my $url (@old) {
            for my $range ({}, { range => 'bytes=0-3' }) {
                my $reply = page($method, $url, headers => $range);
                is($reply->{status}, 403, "$method of a signed address");
                gives_nothing($reply->{body}, $order, 'and nothing with it');
            }
        }
        my $reply = page($method, $way);
        is($reply->{status}, 403, "$method of a link");
        is($reply->{headers}{location}, undef, 'which leads nowhere');
        gives_nothing($reply->{body}, $order, 'and shows nothing');
        like($reply->{body}, qr/Your declaration.*\Q$order->{url}\E/s, 'but the way to the page')
            if $method eq 'GET';
    }
    for my $button (@{ $order->{buttons} }) {
        my $reply = page('POST', $order->{url}, form => { %$button, %both });
        is($reply->{status}, 403, 'a button of the old page');
        is($reply->{headers}{location}, undef, 'leads nowhere');
        gives_nothing($reply->{body}, $order, 'and shows nothing');
    }
    $page = page('GET', $order->{url});
    is($page->{status}, 200, 'the page opens');
    gives_nothing($page->{body}, $order, 'without content');
    is_error(urls_of($order), 409, 'declaration_required', 'the API gives no addresses');
    is_deeply(of_order($order, '')->{json}{assignments}[0]{license_keys}, [ $order->{key} ],
        'but the shop sees the key that it gave');
    is(sql("SELECT 1 FROM download_session WHERE assignment_id = $order->{assignment}"), 0,
        'nothing has been counted');

    is(declare($order, \%both)->{status}, 303, 'the customer declares');
    like(page('GET', $order->{url})->{body}, qr/\Q$order->{key}\E/, 'and the page has everything');
    is(page('GET', $way)->{status}, 303, 'the link leads on');
    is(page('GET', $_)->{status}, 200, 'an address gives its bytes') for @old;
    is(urls_of($order)->{status}, 200, 'and the API gives addresses');
};

switch(1);

subtest 'The declaration needs both ticks and counts once' => sub {
    my $order = order_of();
    for my $ticks ({}, { begin => 'yes' }, { lose => 'yes' }) {
        my $reply = declare($order, $ticks);
        is($reply->{status}, 400, join(' and ', sort keys %$ticks) . ' is not enough');
        like($reply->{body}, qr/tick both boxes\./, 'as the page says');
        gives_nothing($reply->{body}, $order, 'without content');
    }
    is(scalar(declared_events($order)), 0, 'nothing is kept of that');
    my $reply = declare($order, \%both);
    is($reply->{status}, 303, 'both of them are');
    is($reply->{headers}{location}, $order->{url}, 'and lead back to the page');
    is(declare($order, \%both)->{status}, 303, 'a second press does no harm');
    my @events = declared_events($order);
    is(scalar(@events), 1, 'and is not kept');
    is($events[0]{details}{language}, 'en', 'the first one is, with its language');
    like($events[0]{details}{text}, qr/expressly agree.*\n.*lose my right/, 'and its text');
    like($events[0]{created_at}, qr/^20/, 'and its time');
    is_shape($events[0], 'event', 'the entry');
};

subtest 'The declaration is in the language of the page' => sub {
    my $order = order_of();
    my %german = (headers => { 'accept-language' => 'de' });
    my ($text) = page('GET', $order->{url}, %german)->{body} =~ /(Ich stimme[^<]+)</;
    page('POST', $order->{url}, form => { declare => 'yes', %both }, %german);
    my ($event) = declared_events($order);
    is($event->{details}{language}, 'de', 'German');
    utf8::decode($text);
    like($event->{details}{text}, qr/\A\Q$text\E\n/, 'with what the page has said');
};

subtest 'An order that is held or has expired cannot be declared' => sub {
    for my $state ([ 'orders', "access_status = 'held'", "storefront_order_id = '%s'" ],
        [ 'assignment', 'expires_at = 1', "order_id = (SELECT id FROM orders"
            . " WHERE storefront_order_id = '%s')" ]) {
        my $order = order_of();
        sql(sprintf "UPDATE $state->[0] SET $state->[1] WHERE $state->[2]", $order->{id});
        unlike(page('GET', $order->{url})->{body}, qr/name="declare"/, "$state->[1]: no button");
        declare($order, \%both);
        is(scalar(declared_events($order)), 0, 'and no declaration');
    }
};

subtest 'Emails have nothing before the declaration, which another one confirms' => sub {
    my $to    = 'declares-' . digits() . '@buyer.example';
    my $order = order_of(email => $to);
    my $mail  = wait_mail($to);
    my $found = of_order($order, '/diagnosis')->{json};
    is($found->{first_failure}, 'access', 'the diagnosis says that nothing can be downloaded');
    like((grep { $_->{name} eq 'access' } @{ $found->{checks} })[0]{message},
        qr/yet to declare on the page/, 'and why');
    unlike(page('GET', $order->{url})->{body}, qr/name="help"/, 'which needs no help of the shop');
    for my $part (qw(text html)) {
        gives_nothing($mail->{$part}, $order, "nothing in the $part");
        like($mail->{$part}, qr/short declaration/, 'which asks for the declaration');
        like($mail->{$part}, qr/\Q$order->{url}\E/, 'on the page');
    }
    declare($order, \%both);
    wait_for(sub { mails($to) > 1 }, 60, 'a second email');
    my ($second) = grep { $_->{path} ne $mail->{path} } mails($to);
    like($second->{$_}, qr/\Q$order->{key}\E/, "the key is in the $_ of the next one")
        for qw(text html);
    like($second->{text}, qr/^On .*UTC you declared:\nI expressly agree .*\nI know that .*\n$/m,
        'it repeats the declaration');
    is(of_order($order, '/diagnosis')->{json}{first_failure}, undef, 'and nothing is wrong then');
    like($second->{html}, qr/you declared:<br>I expressly agree [^<]*<br>I know that /,
        'in its HTML, too');
    unlike("$mail->{text} $mail->{html}", qr/you declared/, 'which the first one had not');
};

done_testing();
