# Links and license keys on the order's page and in its email (contract, sections 8 and 10).
#
# once: the page is made of rows that delivery.t reads on both databases
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop = new_shop();

sub made
{
    my ($path, $members) = @_;
    my $reply = api('POST', $path, key => $shop->{token}, json => $members);
    $reply->{status} == 201 or die "$path: $reply->{status} $reply->{body}\n";
    return $reply->{json}{id};
}

sub link_of { my ($title, $url) = @_; return made('/links', { title => $title, url => $url }) }

sub tag_of
{
    my (@keys) = @_;
    my $id = made('/license-key-tags', { name => 'Keys' });
    add_keys($id, @keys) if @keys;
    return $id;
}

sub add_keys
{
    my ($id, @keys) = @_;
    my $reply = api('POST', "/license-key-tags/$id/keys", key => $shop->{token},
        json => { keys => \@keys });
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
    return { id => $id, url => $reply->{json}{download_page_url},
        assignments => $reply->{json}{assignments} };
}

sub shown { my ($order) = @_; return page('GET', $order->{url})->{body} }

sub act
{
    my ($order, $action, $members) = @_;
    my $reply = api('POST', "/orders/$order->{id}/$action", key => $shop->{token},
        json => $members // {});
    $reply->{status} =~ /^2/ or die "$action: $reply->{status} $reply->{body}\n";
    return;
}

sub count_of { my ($text, $part) = @_; return scalar(() = $text =~ /\Q$part\E/g) }

subtest 'The page lists links and license keys' => sub {
    my $link  = link_of('The <b>Forum</b>', 'https://forum.example/?a=1&b=2');
    my $tag   = tag_of('AAAA-<1>&', 'BBBB-2');
    my $order = order_of([ { link_ids => [$link], license_key_tag_ids => [$tag] } ], quantity => 2);
    my $html  = shown($order);

    like($html, qr{<a href="\Q${\public_url()}\E/l/[\w-]+" rel="noreferrer noopener">},
        'the link, by a URL of the service that discloses nothing to its target');
    like($html, qr{\(forum\.example\)}, "with its target's host");
    like($html, qr{The &lt;b&gt;Forum&lt;/b&gt;}, 'with its title, escaped');
    like($html, qr{>AAAA-&lt;1&gt;&amp;<}, 'the first key, escaped');
    like($html, qr{>BBBB-2<}, 'the second key');
    unlike($html, qr/on (?:its|their) way/, 'the page mentions no pending keys');
    unlike($html, qr/nothing to download/, 'nor an empty order');
    unlike($html, qr{class="file"|checksum}, 'and has no files');
};

subtest 'The page says how many keys are pending' => sub {
    my $tag   = tag_of('ONE');
    my $order = order_of([ { license_key_tag_ids => [$tag] } ], quantity => 3);

    like(shown($order), qr/>ONE<.*2 more license keys are on their way/s,
        'two after the first key');
    add_keys($tag, 'TWO');
    like(shown($order), qr/>TWO<.*1 more license key is on its way/s, 'one after the second');
    add_keys($tag, 'THREE');
    my $html = shown($order);
    like($html, qr/>THREE</, 'the third key is shown');
    unlike($html, qr/on (?:its|their) way/, 'and none is pending');
};

subtest 'An order that waits for its only key is not empty' => sub {
    my $html = shown(order_of([ { license_key_tag_ids => [ tag_of() ] } ]));

    like($html, qr/[^\w]1 license key is on its way/, 'the page says that the key is on its way');
    unlike($html, qr/nothing to download/, 'and not that the order is empty');
};

subtest 'Each product shows its own link and keys' => sub {
    my $link  = link_of('Twice', 'https://twice.example/');
    my @keys  = map { tag_of("OF-$_") } 1, 2;
    my @about = map {
        { link_ids => [$link], license_key_tag_ids => [$_], title => "About $_" }
    } @keys;
    my $html     = shown(order_of(\@about));
    my @sections = $html =~ m{<section>(.*?)</section>}sg;

    is(@sections, 2, 'there are two products');
    for my $i (0, 1) {
        my $of = $i + 1;
        like($sections[$i], qr{<h2><bdi>About $keys[$i]</bdi>.*>OF-$of</code>.*twice\.example}s,
            "$of: its title, its key, the link");
        like($sections[$i], qr{<code class="key" data-copy="Copy" data-copied="Copied">OF-},
            "$of: the key can be copied");
    }
    my $product = product();
    mapping_of($shop, [], storefront_product_id => $product, link_ids => [$link],
        storefront_variant_ids => ["$_"]) for 1, 2;
    my $one = assign($shop, digits(), [ map { { storefront_product_id => $product,
        storefront_variant_id => "$_" } } 1, 2 ])->{json}{download_page_url};
    is(count_of(page('GET', $one)->{body}, 'twice.example'), 1,
        'a link of two items of one product is shown once');
};

subtest 'An order without access shows neither links nor keys' => sub {
    my $link = link_of('Secret', 'https://secret.example/');
    my $tag  = tag_of('SECRET-1', 'SECRET-2');
    my $order = order_of([ { link_ids => [$link], license_key_tag_ids => [$tag] } ], quantity => 3);
    my $closed = sub { unlike(shown($order), qr/secret|on (?:its|their) way/i, shift) };

    like(shown($order), qr/SECRET-1.*SECRET-2.*on its way.*secret\.example/s,
        'it shows both at first');
    act($order, 'revoke');
    $closed->('not while the order is revoked');
    act($order, 'restore');
    sql("UPDATE orders SET access_status = 'held', fraud_decision = 'held' "
        . "WHERE storefront_order_id = '$order->{id}'");
    $closed->('not while it is held');
    act($order, 'reject');
    $closed->('not when it is rejected');
    act($order, 'approve');
    like(shown($order), qr/SECRET-1/, 'after the approval it shows them');
    sql("UPDATE assignment SET expires_at = 1 WHERE id = $order->{assignments}[0]{id}");
    $closed->('not when access has expired');
};

subtest 'A revoked assignment hides its links and keys and leaves the others' => sub {
    my @links = map { link_of($_, "https://$_.example/") } qw(stays goes);
    my $order = order_of(
        [ map { { link_ids => [$_], license_key_tag_ids => [ tag_of("KEY-$_") ] } } @links ]);
    act($order, 'revoke', { assignment_ids => [ $order->{assignments}[1]{id} ] });
    my $html = shown($order);

    like($html, qr/KEY-$links[0].*stays\.example/s, 'those of the active one stay');
    unlike($html, qr/goes\.example|KEY-$links[1]/, 'those of the revoked one are gone');
};

# The paths of the links that a page shows.
sub ways_of { my ($order) = @_; return shown($order) =~ m{href="[^"]*?(/d/l/[^"]+)"}g }

# The visits of links in the error log since $since.
sub visits { my ($since) = @_; return error_log_since($since) =~ /MDL0450: (link .*)/g }

subtest 'A link redirects without a referrer, and each visit is logged' => sub {
    my $link  = link_of('Forum', 'https://forum.example/a?b=c#d');
    my $order = order_of([ { link_ids => [$link] } ]);
    my ($way) = ways_of($order);
    my $since = error_log_size();
    my $visit = "link $link of order $order->{id} of shop $shop->{shop_id}";
    my $reply = page('GET', $way, headers => { Referer => $order->{url} });

    is($reply->{status}, 303, 'it redirects');
    is($reply->{headers}{location}, 'https://forum.example/a?b=c#d', 'to the link');
    is($reply->{headers}{'referrer-policy'}, 'no-referrer', 'without a referrer');
    is($reply->{headers}{'cache-control'}, 'private, no-store', 'and it is not cached');
    like($reply->{body}, qr/The page opens/,
        'with a page for clients that do not follow redirects');
    is(page('HEAD', $way)->{status}, 303, 'HEAD as well');
    page('GET', $way, headers => { 'Sec-Purpose' => 'prefetch' });
    is_deeply([ visits($since) ],
        [ "$visit: visited", "$visit: HEAD, no visit", "$visit: prefetch, no visit" ],
        'the log names order and link');
    my ($token) = $way =~ m{([^/]+)$};
    is(index(error_log_since($since), $token), -1, "and not the link's token");
    is_deeply([ ways_of($order) ], [$way], 'the address stays the same');

    my $post = page('POST', $way, form => {});
    is($post->{status}, 405, 'nothing can be posted to it');
    is($post->{headers}{allow}, 'GET, HEAD', 'Allow lists the methods');
};

subtest 'A link of an order without access is answered like a file' => sub {
    my $link  = link_of('Secret', 'https://secret.example/');
    my $order = order_of([ { link_ids => [$link] } ]);
    my ($way) = ways_of($order);
    my $closed = sub {
        my ($words, $name) = @_;
        my $since = error_log_size();
        my $reply = page('GET', $way);
        is($reply->{status}, 403, "$name: forbidden");
        like($reply->{body}, qr/$words.*\Q$order->{url}\E/s,
            "$name: a page says why and links back");
        unlike("$reply->{body} " . ($reply->{headers}{location} // ''), qr/secret\.example/,
            "$name: and does not show the target");
        like((visits($since))[0], qr/not opened, 403: /, "$name: the log has it");
    };

    act($order, 'revoke', { reason => 'Refunded <b>in full</b>' });
    $closed->('was withdrawn.*Refunded &lt;b&gt;in full', 'revoked');
    act($order, 'restore');
    sql("UPDATE orders SET access_status = 'held', fraud_decision = 'held' "
        . "WHERE storefront_order_id = '$order->{id}'");
    $closed->('under review', 'held');
    act($order, 'reject', { reason => 'The card was stolen' });
    $closed->('was not released.*The card was stolen', 'rejected');
    act($order, 'approve');
    sql("UPDATE assignment SET expires_at = 1 WHERE id = $order->{assignments}[0]{id}");
    $closed->('expired', 'expired');
    sql("UPDATE assignment SET expires_at = 0, status = 'revoked' "
        . "WHERE id = $order->{assignments}[0]{id}");
    $closed->('was withdrawn', 'its assignment revoked');
};

subtest 'A link works as long as one of its assignments is active' => sub {
    my $link  = link_of('Twice', 'https://twice.example/');
    my $order = order_of([ { link_ids => [$link] }, { link_ids => [$link] } ]);
    my ($way) = ways_of($order);

    act($order, 'revoke', { assignment_ids => [ $order->{assignments}[0]{id} ] });
    is(page('GET', $way)->{status}, 303, 'the same URL works after one is revoked');
    act($order, 'revoke', { assignment_ids => [ $order->{assignments}[1]{id} ] });
    is(page('GET', $way)->{status}, 403, 'and not after the other');
};

subtest 'A link that the service did not issue is not found' => sub {
    my @links = map { link_of($_, "https://$_.example/") } qw(old new);
    my $order = order_of([ { link_ids => [ $links[0] ] } ]);
    my ($way) = ways_of($order);
    my $other = $way =~ s{(?<=/l/.{9})(.)}{ $1 eq 'A' ? 'B' : 'A' }er;

    is(page('GET', $other)->{status}, 404, 'a token with a wrong letter');
    is(page('GET', "$way/x")->{status}, 404, 'a segment after the token');
    is(page('GET', '/d/l/')->{status}, 404, 'an empty token');
    like(page('GET', $order->{url} =~ s{/o/}{/l/}r)->{body}, qr/no such link/,
        "a page's token as a link's");
    my $id = $order->{assignments}[0]{storefront_product_id};
    api('POST', '/mappings', key => $shop->{token},
        json => { storefront_product_id => $id, link_ids => [ $links[1] ] });
    my $gone = page('GET', $way);
    is($gone->{status}, 404, 'a link that was removed from the product');
    like($gone->{body}, qr/no longer part of your order.*\Q$order->{url}\E/s,
        'its page says so and links back');
};

subtest 'The email has links and keys in its text and its HTML' => sub {
    my $link  = link_of('The <b>Forum</b>', 'https://mail.example/?a=1&b=2');
    my $tag   = tag_of('CCCC-<3>');
    my $to    = 'content-' . digits() . '@buyer.example';
    my $order = order_of([ { link_ids => [$link], license_key_tag_ids => [$tag] } ], quantity => 2,
        send_email => JSON::PP::true(), customer => { email => $to });
    my $mail  = wait_mail($to);
    my $text  = $mail->{text} =~ s/\r//gr;

    my ($way) = $text =~ m{^- The <b>Forum</b>: (\Q${\public_url()}\E/l/[\w-]+)$}m;
    is($way, public_url() =~ s{/d$}{}r . (ways_of($order))[0],
        "the link in the text, with the page's URL");
    is(page('GET', $way)->{headers}{location}, 'https://mail.example/?a=1&b=2',
        'which leads there');
    like($text, qr{^- CCCC-<3>$}m, 'the key in the text');
    like($text, qr{^1 more license key is on its way\. }m, 'and the pending key');
    unlike($text, qr/Your files|\n\n\n/, 'without a gap for files');
    like($mail->{html}, qr{<a [^>]*href="\Q$way\E"[^>]*><bdi>The &lt;b&gt;Forum&lt;/b&gt;</bdi>},
        'the link in the HTML, escaped');
    like($mail->{html}, qr{>CCCC-&lt;3&gt;<}, 'the key in the HTML, escaped');
    like($mail->{html}, qr{>1 more license key is on its way}, 'and the pending key');
};

subtest 'An email of files alone mentions neither' => sub {
    my $asset = ready_asset($shop, 'alone.pdf', 'alone');
    my $to    = 'content-' . digits() . '@buyer.example';
    my $product = mapping_of($shop, [ $asset->{id} ])->{storefront_product_id};
    assign($shop, digits(), [$product], send_email => JSON::PP::true(),
        customer => { email => $to });
    my $mail = wait_mail($to);

    like($mail->{text}, qr/alone\.pdf/, 'it names the file');
    unlike("$mail->{text} $mail->{html}", qr/license|Your links/i, 'and nothing else');
};

done_testing();
