# Links and license keys on the order's page and in its email (contract, sections 8 and 10).
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();

sub made
{
    my ($noun, $path, $members) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $members);
    $reply->{status} == 201 or die "$path: $reply->{status} $reply->{body}\n";
    return $reply->{json}{$noun}{id};
}

sub link_of { my ($title, $url) = @_; return made('link', '/links', { title => $title, url => $url }) }

sub tag_of
{
    my (@keys) = @_;
    my $id = made('license_key_tag', '/license-key-tags', { name => 'Keys' });
    add_keys($id, @keys) if @keys;
    return $id;
}

sub add_keys
{
    my ($id, @keys) = @_;
    my $reply = api('POST', "/license-key-tags/$id/keys", key => $shop->{token}, json => { keys => \@keys });
    $reply->{status} == 200 or die "keys: $reply->{status} $reply->{body}\n";
    return;
}

# An order of mappings with these members, { items => [ { … } ], … }; returns { id, url }.
sub order_of
{
    my ($mappings, %more) = @_;
    my $quantity = delete $more{quantity} // 1;
    my @items = map {
        { storefront_product_id => mapping_of($shop, [], %$_)->{storefront_product_id},
            quantity => $quantity }
    } @$mappings;
    my $id    = digits();
    my $reply = assign($shop, $id, \@items, %more);
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    return { id => $id, url => $reply->{json}{order}{download_page_url},
        assignments => $reply->{json}{order}{assignments} };
}

sub shown { my ($order) = @_; return page('GET', $order->{url})->{body} }

sub act
{
    my ($order, $action, $members) = @_;
    my $reply = api('POST', "/orders/$order->{id}/$action", key => $shop->{token}, json => $members // {});
    $reply->{status} =~ /^2/ or die "$action: $reply->{status} $reply->{body}\n";
    return;
}

sub count_of { my ($text, $part) = @_; return scalar(() = $text =~ /\Q$part\E/g) }

subtest 'The page lists links and license keys' => sub {
    my $link  = link_of('The <b>Forum</b>', 'https://forum.example/?a=1&b=2');
    my $tag   = tag_of('AAAA-<1>&', 'BBBB-2');
    my $order = order_of([ { link_ids => [$link], license_key_tag_ids => [$tag] } ], quantity => 2);
    my $html  = shown($order);

    like($html, qr{<a href="https://forum\.example/\?a=1&amp;b=2" rel="noreferrer noopener">},
        'the link, which tells its target nothing');
    like($html, qr{The &lt;b&gt;Forum&lt;/b&gt;}, 'with its title, escaped');
    like($html, qr{>AAAA-&lt;1&gt;&amp;<}, 'the first key, escaped');
    like($html, qr{>BBBB-2<}, 'the second key');
    unlike($html, qr/on (?:its|their) way/, 'nothing is said of keys to come');
    unlike($html, qr/nothing to download/, 'and the order is not called empty');
    unlike($html, qr{<h2>Files</h2>}, 'files are not spoken of where there are none');
};

subtest 'The page says how many keys are still to come' => sub {
    my $tag   = tag_of('ONE');
    my $order = order_of([ { license_key_tag_ids => [$tag] } ], quantity => 3);

    like(shown($order), qr/>ONE<.*2 more license keys are on their way/s, 'two behind the first');
    add_keys($tag, 'TWO');
    like(shown($order), qr/>TWO<.*1 more license key is on its way/s, 'one when another has come');
    add_keys($tag, 'THREE');
    my $html = shown($order);
    like($html, qr/>THREE</, 'the last one is there in the end');
    unlike($html, qr/on (?:its|their) way/, 'and none is to come');
};

subtest 'An order that waits for its only key is not empty' => sub {
    my $html = shown(order_of([ { license_key_tag_ids => [ tag_of() ] } ]));

    like($html, qr/[^\w]1 license key is on its way/, 'the page says that it comes');
    unlike($html, qr/nothing to download/, 'and not that there is nothing');
};

subtest 'A link that two products give stands there once' => sub {
    my $link = link_of('Twice', 'https://twice.example/');

    is(count_of(shown(order_of([ { link_ids => [$link] }, { link_ids => [$link] } ])), 'https://twice.example/'),
        1, 'once');
};

subtest 'What is not open shows neither links nor keys' => sub {
    my $link = link_of('Secret', 'https://secret.example/');
    my $tag  = tag_of('SECRET-1', 'SECRET-2');
    my $order = order_of([ { link_ids => [$link], license_key_tag_ids => [$tag] } ], quantity => 3);
    my $closed = sub { unlike(shown($order), qr/secret|on (?:its|their) way/i, shift) };

    like(shown($order), qr/secret\.example.*SECRET-1.*SECRET-2.*on its way/s, 'they are there at first');
    act($order, 'revoke');
    $closed->('not while the order is revoked');
    act($order, 'restore');
    sql("UPDATE orders SET access_status = 'held', fraud_decision = 'held' "
        . "WHERE storefront_order_id = '$order->{id}'");
    $closed->('not while it is held');
    act($order, 'reject');
    $closed->('not when it is rejected');
    act($order, 'approve');
    like(shown($order), qr/SECRET-1/, 'approved, it shows them');
    sql("UPDATE assignment SET expires_at = 1 WHERE id = $order->{assignments}[0]{id}");
    $closed->('not when access has expired');
};

subtest 'A revoked assignment takes its own away and leaves the others' => sub {
    my @links = map { link_of($_, "https://$_.example/") } qw(stays goes);
    my $order = order_of([ map { { link_ids => [$_], license_key_tag_ids => [ tag_of("KEY-$_") ] } } @links ]);
    act($order, 'revoke', { assignment_ids => [ $order->{assignments}[1]{id} ] });
    my $html = shown($order);

    like($html, qr/stays\.example.*KEY-$links[0]/s, 'what is active stays');
    unlike($html, qr/goes\.example|KEY-$links[1]/, 'what is revoked has gone');
};

subtest 'The email has them in its text and in its HTML' => sub {
    my $link  = link_of('The <b>Forum</b>', 'https://mail.example/?a=1&b=2');
    my $tag   = tag_of('CCCC-<3>');
    my $to    = digits() . '@buyer.example';
    my $order = order_of([ { link_ids => [$link], license_key_tag_ids => [$tag] } ], quantity => 2,
        send_email => JSON::PP::true(), customer => { email => $to });
    my $mail  = wait_mail($to);
    my $text  = $mail->{text} =~ s/\r//gr;

    like($text, qr{^- The <b>Forum</b>: https://mail\.example/\?a=1&b=2$}m, 'the link in the text');
    like($text, qr{^- CCCC-<3>$}m, 'the key in the text');
    like($text, qr{^1 more license key is on its way\. }m, 'and what is to come');
    unlike($text, qr/Your files|\n\n\n/, 'without a gap where files would be');
    like($mail->{html}, qr{<a href="https://mail\.example/\?a=1&amp;b=2"[^>]*><bdi>The &lt;b&gt;Forum&lt;/b&gt;</bdi>},
        'the link in the HTML, escaped');
    like($mail->{html}, qr{>CCCC-&lt;3&gt;<}, 'the key in the HTML, escaped');
    like($mail->{html}, qr{>1 more license key is on its way}, 'and what is to come');
};

subtest 'An email of files alone speaks of neither' => sub {
    my $asset = ready_asset($shop, 'alone.pdf', 'alone');
    my $to    = digits() . '@buyer.example';
    my $product = mapping_of($shop, [ $asset->{id} ])->{storefront_product_id};
    assign($shop, digits(), [$product], send_email => JSON::PP::true(), customer => { email => $to });
    my $mail = wait_mail($to);

    like($mail->{text}, qr/alone\.pdf/, 'it names the file');
    unlike("$mail->{text} $mail->{html}", qr/license|Your links/i, 'and nothing else');
};

done_testing();
