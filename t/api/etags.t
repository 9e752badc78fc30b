# Versions of what can be changed (contract, section 3): updated_at, ETag, If-None-Match and
# If-Match.
#
# both: writes at the same moment wait for other locks
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use MDL::Upload;
use Test::More;

my $shop = new_shop();
my @files = map { ready_asset($shop, "etags-$$-$_.txt", "file $_\n")->{id} } 1 .. 2;

sub call
{
    my ($method, $path, %opt) = @_;
    return api($method, $path, key => $shop->{token}, %opt);
}

sub matching { my ($tag) = @_; return (headers => { 'If-Match' => $tag }) }

sub made
{
    my ($list, $members) = @_;
    my $reply = call('POST', $list, json => $members);
    die "POST $list was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^20[01]\z/;
    return $reply;
}


# What an ETag has before its dot.
sub version { my ($reply) = @_; return ($reply->{headers}{etag} // 'no ETag') =~ s/\..*//r }

my $product = product();
my @NOUNS = (
    {
        noun   => 'category',
        list   => '/categories',
        create => sub { made('/categories', { name => 'Music' }) },
        change => [ map { { name => "Name $_" } } 1 .. 3 ],
    },
    {
        noun   => 'pack',
        list   => '/packs',
        create => sub { made('/packs', { name => 'Pack', file_ids => [ $files[0] ] }) },
        change => [ { file_ids => [ $files[1] ] }, { name => 'Other pack' }, { file_ids => [] } ],
    },
    {
        noun   => 'link',
        list   => '/links',
        create => sub { made('/links', { title => 'Link', url => 'https://links.example.com/' }) },
        change => [ map { { title => "Title $_" } } 1 .. 3 ],
    },
    {
        noun   => 'license_key_tag',
        list   => '/license-key-tags',
        create => sub { made('/license-key-tags', { name => 'Tag' }) },
        change => [ { name => 'Other tag' }, { low_stock_threshold => 3 },
            { low_stock_threshold => undef } ],
    },
    {
        noun   => 'mapping',
        list   => '/mappings',
        create => sub {
            made('/mappings', { storefront_product_id => product(), file_ids => [ $files[0] ] });
        },
        change => [ map { { file_ids => [ $files[ $_ % 2 ] ] } } 1 .. 3 ],
    },
    {
        noun   => 'asset',
        list   => '/assets',
        create => sub {
            my $id = ready_asset($shop, 'etags-asset.txt', "an asset\n")->{id};
            return call('GET', "/assets/$id");
        },
        change => [ { title => 'Other title' }, { filename => 'b.txt' },
            { content_type => 'text/x-other' } ],
    },
);

for my $of (@NOUNS) {
    my ($noun, $list, $changes) = @$of{qw(noun list change)};
    my $created = $of->{create}->();
    my $path    = "$list/$created->{json}{id}";
    my $change  = sub { my ($n, %opt) = @_; call('PATCH', $path, json => $changes->[$n], %opt) };

    # ETag and 304.
    my $read = call('GET', $path);
    my $tag  = $read->{headers}{etag};
    like($tag, qr/^"\d+-\d{17}\.[\w-]{16}"\z/, "$noun: it has a strong ETag");
    is($created->{headers}{etag}, $tag, "$noun: which is that of the answer that made it");
    is(call('HEAD', $path)->{headers}{etag}, $tag, "$noun: and of HEAD");
    is(call('GET', $list)->{headers}{etag}, undef, "$noun: a list has none");
    for ([ $tag, 'the same' ], [ "W/$tag", 'the same, weak' ], [ qq("x", $tag), 'a list with it' ],
        [ '*', 'any' ]) {
        my $same = call('GET', $path, headers => { 'If-None-Match' => $_->[0] });
        is("$same->{status} [$same->{body}]", '304 []', "$noun: 304 for $_->[1]");
        is($same->{headers}{etag}, $tag, "$noun: which has the tag, too");
    }
    is(call('HEAD', $path, headers => { 'If-None-Match' => $tag })->{status}, 304,
        "$noun: 304 for HEAD");
    is_answer(call('GET', $path, headers => { 'If-None-Match' => '"x"' }), 200,
        "$noun: another tag");

    # A change with the version that was read, and with one that no longer is.
    my $changed = $change->(0, matching($tag));
    is_answer($changed, 200, "$noun: a change of the version that was read");
    isnt(version($changed), version($read), "$noun: has another version");
    cmp_ok($changed->{json}{updated_at}, 'gt', $read->{json}{updated_at},
        "$noun: and a later updated_at");
    is(call('GET', $path)->{headers}{etag}, $changed->{headers}{etag},
        "$noun: its ETag is that of GET");
    unstored();
    my @audited = sql('SELECT count(*) FROM audit');
    my $idem    = idem();
    for ([ $tag, 'the version before' ], [ "W/$changed->{headers}{etag}", 'a weak tag' ],
        [ '"0-20261123070501123.x"', 'the tag of another' ], [ '"x"', 'any other tag' ],
        [ '"*"', 'a quoted *' ]) {
        refused($change->(1, matching($_->[0]), idem => $idem), 412, 'precondition_failed',
            "$noun: a change of $_->[1]");
        refused(call('DELETE', $path, matching($_->[0])), 412, 'precondition_failed',
            "$noun: deleting $_->[1]");
    }
    for ('x', '"x', '"x" "y"', ',', '', 'W/', 'w/"x"', '*, "x"', '"a b"', join ',', ('"x"') x 101) {
        is_error($change->(1, matching($_)), 400, 'invalid_request',
            "$noun: If-Match: " . substr $_, 0, 20);
    }
    is_deeply([ sql('SELECT count(*) FROM audit') ], \@audited, "$noun: a refusal is not audited");
    is(call('GET', $path)->{headers}{etag}, $changed->{headers}{etag},
        "$noun: nothing has changed");

    # The key that a refusal had is free; a replay needs no version.
    my $again = $change->(1, matching(qq("x" , W/"y",,$changed->{headers}{etag})), idem => $idem);
    is_answer($again, 200, "$noun: a list with the version");
    my $replay = $change->(1, matching($changed->{headers}{etag}), idem => $idem);
    is("$replay->{status} $replay->{body}", "$again->{status} $again->{body}",
        "$noun: the same request is replayed");
    is($replay->{headers}{'idempotent-replayed'}, 'true', "$noun: though its version is gone");
    is($replay->{headers}{etag}, $again->{headers}{etag}, "$noun: with the ETag that it had");
    my $any = $change->(2, matching('*'));
    is_answer($any, 200, "$noun: * is whatever there is");
    my $nothing = call('PATCH', $path, json => {});
    is($nothing->{headers}{etag}, $any->{headers}{etag},
        "$noun: a change of nothing moves nothing");
    is_error(call('PATCH', $path, json => {}, matching($tag)), 412, 'precondition_failed',
        "$noun: nor is it made of another version");

    # Two that have read the same.
    my @replies = api_at_once(sub { },
        map { [ 'PATCH', $path, key => $shop->{token}, json => $changes->[$_],
        matching($any->{headers}{etag}) ] } (0, 1) x 4);
    is(join(' ', sort map { $_->{status} } @replies), '200' . ' 412' x 7,
        "$noun: of eight at once one is not refused");
    my ($won) = grep { $_->{status} == 200 } @replies;
    is(call('GET', $path)->{headers}{etag}, $won->{headers}{etag},
        "$noun: and has made its change");

    # A clock that steps back.
    sql("UPDATE $noun SET updated_at = 4102444800000000 WHERE id = $created->{json}{id}");
    is($change->(2)->{json}{updated_at}, '2100-01-01T00:00:00.001Z',
        "$noun: a version is later than the one before");
    my $last = $change->(0);
    is($last->{json}{updated_at}, '2100-01-01T00:00:00.002Z', "$noun: always");

    is(call('DELETE', $path, matching($last->{headers}{etag}))->{status}, 204,
        "$noun: it is deleted by its version");
    for ('*', $last->{headers}{etag}, '"x"') {
        is_error($change->(0, matching($_)), 404, "${noun}_not_found",
            "$noun: there is none to match $_");
        is_error(call('DELETE', $path, matching($_)), 404, "${noun}_not_found",
            "$noun: nor to delete");
    }
}

# --- orders --------------------------------------------------------------------------------------

my %ACTIONS = (
    'revoke'          => {},
    'restore'         => {},
    'grant-downloads' => { downloads => 1 },
    'resend'          => { email => 'ada@buyer.example' },
    'rotate-link'     => {},
    'approve'         => {},
    'reject'          => {},
);
my $order = digits();
is(assign($shop, $order, [ mapping_of($shop, [ $files[0] ])->{storefront_product_id} ])->{status},
    201, 'an order');
my $at    = "/orders/$order";
my $event = sub { scalar sql('SELECT e.id FROM order_timeline e JOIN orders o ON o.id = e.order_id'
    . " WHERE o.storefront_order_id = '$order' AND o.shop_id = $shop->{shop_id}") };
my $first = call('GET', $at);
like($first->{headers}{etag}, qr/^"$order-\d{17}\.[\w-]{16}"\z/, 'it has an ETag');
my $unchanged = call('GET', $at, headers => { 'If-None-Match' => $first->{headers}{etag} });
is("$unchanged->{status} [$unchanged->{body}]", '304 []', 'and is not sent again');
is(call('HEAD', $at)->{headers}{etag}, $first->{headers}{etag}, 'HEAD has it too');

my $granted = call('POST', "$at/grant-downloads", json => { downloads => 1 },
    matching($first->{headers}{etag}));
is_answer($granted, 200, 'an action on the version that was read');
is(version($granted), version(call('GET', $at)), 'answers with the version that it made');
isnt(version($granted), version($first), 'which is another');
unstored();
my $events = $event->();
for my $action (sort keys %ACTIONS) {
    refused(call('POST', "$at/$action", json => $ACTIONS{$action}, matching($_)), 412,
        'precondition_failed', "$action: $_")
        for $first->{headers}{etag}, "W/$granted->{headers}{etag}", '"x"';
    is_error(call('POST', "$at/$action", json => $ACTIONS{$action}, matching('x')), 400,
        'invalid_request', "$action: malformed");
    is_error(call('POST', "/orders/99999999999999999999/$action", json => $ACTIONS{$action},
        matching('*')), 404,
        'order_not_found', "$action: an unknown order");
}
is($event->(), $events, 'nothing was done');

my $tag = $granted->{headers}{etag};
for my $action (qw(resend revoke restore rotate-link)) {
    my %same    = (json => $ACTIONS{$action}, idem => idem());
    my $status  = $action eq 'resend' ? 202 : 200;
    my $acted   = call('POST', "$at/$action", %same, matching(qq("x", $tag)));
    is_answer($acted, $status, "$action: the version that there is");
    my $replayed = call('POST', "$at/$action", %same, matching($tag));
    is("$replayed->{status} $replayed->{body}", "$status $acted->{body}",
        "$action: it is replayed");
    is($replayed->{headers}{etag}, $acted->{headers}{etag}, "$action: with its ETag");
    if ($action eq 'resend') {
        wait_for(sub { call('GET', $at)->{json}{email}{status} eq 'sent' }, 60, 'the email');
        $acted = call('GET', $at);
    }
    $tag = $acted->{headers}{etag};
}
my $revoked = call('POST', "$at/revoke", json => {}, matching($tag));
my $repeat  = call('POST', "$at/revoke", json => {}, matching($revoked->{headers}{etag}));
is($repeat->{headers}{etag}, $revoked->{headers}{etag}, 'what changes nothing leaves the version');
is_answer(call('POST', "$at/restore", json => {}, matching('*')), 200, '* is whatever there is');

held_by_check($shop, $order);
my $held = call('GET', $at)->{headers}{etag};
my @decided = api_at_once(sub { },
    map { [ 'POST', "$at/$_", key => $shop->{token}, json => {}, matching($held) ] }
    (qw(approve reject)) x 4);
is(join(' ', sort map { $_->{status} } @decided), '200' . ' 412' x 7,
    'of eight decisions at once one is taken');

# --- what else changes by a path of its own ------------------------------------------------------

# A path, how its version is read, the change, its status, and whether it moves the version.
my @mapped = map { mapping_of($shop, [$_])->{storefront_product_id} } @files;
my $growing = '/orders/' . digits();
my $grown = assign($shop, $growing =~ s{.*/}{}r, [ $mapped[0] ]);
is($grown->{status}, 201, 'another order');
my $item = "$growing/assignments/$grown->{json}{assignments}[0]{id}";
my %more   = (storefront_customer_id => '77', items => [ { storefront_product_id => $mapped[1] } ]);
my $failed = import_of($shop, "etags-$$-gone.txt", 'x',
    source_url => source_url('nothing-is-here'));
my $job_id = $failed->{json}{job}{id};
is(wait_job($shop, $job_id)->{status}, 'failed', 'an import fails');
my $versioned = ready_asset($shop, "etags-$$-version.txt", "an asset\n")->{id};
my $replaced  = ready_asset($shop, "etags-$$-replaced.txt", "an asset\n")->{id};
wait_job($shop, call('POST', "/assets/$replaced/versions",
    json => { source_url => source("etags-$$-new.txt", "new\n") })->{json}{job}{id});
my $stock     = made('/license-key-tags', { name => 'Keys' })->{json}{id};
my ($aborted, $completed) = map { begin_upload($shop, size => 3) } 1 .. 2;
like($failed->{headers}{etag}, qr/^"$failed->{json}{asset}{id}-/,
    'the answer to an import has the asset\'s ETag');

for (
    [ $growing, POST => "$growing/assignments", \%more, 201, 'moves' ],
    [ $growing, POST => "$growing/assignments", \%more, 200, 'leaves' ],
    [ $growing, PATCH => $item, { quantity => 2 }, 200, 'moves' ],
    [ $growing, PATCH => $item, { quantity => 2 }, 200, 'leaves' ],
    [ "/jobs/$job_id", POST => "/jobs/$job_id/retry", undef, 202, 'moves' ],
    [ "/assets/$versioned", POST => "/assets/$versioned/versions",
        { source_url => source("etags-$$-2.txt", "more\n") }, 202, 'leaves' ],
    [ "/assets/$replaced", POST => "/assets/$replaced/versions/1/restore", undef, 200, 'moves' ],
    [ "/license-key-tags/$stock", POST => "/license-key-tags/$stock/keys", { keys => ['K2'] }, 200,
        'leaves' ],
    [ "/assets/uploads/$aborted->{id}", DELETE => "/assets/uploads/$aborted->{id}", undef, 204,
        'moves' ],
    [ "/assets/uploads/$completed->{id}", POST => "/assets/uploads/$completed->{id}/complete",
        undef, 201, 'moves' ],
    )
{
    my ($entity, $method, $path, $json, $status, $moves) = @$_;
    put_bytes($completed, 'abc') if $path =~ /complete/;
    my %json = defined $json ? (json => $json) : ();
    my $read = call('GET', $entity);
    my $stale = $read->{headers}{etag} =~ s/(\d{16})\d\./$1x./r;
    is(call('GET', $entity, headers => { 'If-None-Match' => $read->{headers}{etag} })->{status},
        304, "$method $path: 304 before");
    unstored();
    refused(call($method, $path, %json, matching($_)), 412, 'precondition_failed',
        "$method $path: $_") for $stale, '"x"';
    my %same    = (%json, idem => idem());
    my $changed = call($method, $path, %same, matching($read->{headers}{etag}));
    is_answer($changed, $status, "$method $path: the version that there is") if $status != 204;
    is($changed->{status}, $status, "$method $path: is the one that it changes");
    is(call($method, $path, %same, matching('"x"'))->{headers}{'idempotent-replayed'}, 'true',
        "$method $path: a replay needs no version");
    my $now = $changed->{headers}{etag} // call('GET', $entity)->{headers}{etag};
    my $moved = version($read) eq $now =~ s/\..*//r ? 'leaves' : 'moves';
    is($moved, $moves, "$method $path: $moves the version");
}
for ([ '/mappings', { storefront_product_id => product(), file_ids => [] } ],
    [ '/packs', { name => 'P' } ]) {
    is_error(call('POST', $_->[0], json => $_->[1], matching('*')), 400, 'invalid_request',
        "POST $_->[0] makes what has no version");
}
is_error(call('POST', '/orders/' . digits() . '/assignments', json => \%more, matching('*')), 404,
    'order_not_found', 'nor does an order that there is not');

my $waiting = import_of($shop, "etags-$$-wait.txt", 'x',
    source_url => source_url('nothing-is-here'))->{json}{job}{id};
wait_job($shop, $waiting);
my $was = call('GET', "/jobs/$waiting")->{headers}{etag};
my @retried = api_at_once(sub { }, map { [ 'POST', "/jobs/$waiting/retry", key => $shop->{token},
    json => {}, matching($was) ] } 1 .. 8);
is(join(' ', sort map { $_->{status} } @retried), '202' . ' 412' x 7,
    'of eight retries of one version one is made');

# --- what a version is of ------------------------------------------------------------------------

my $tag_id = made('/license-key-tags', { name => 'Stock' })->{json}{id};
my $before = call('GET', "/license-key-tags/$tag_id");
is(call('POST', "/license-key-tags/$tag_id/keys", json => { keys => ['K1'] })->{status}, 200,
    'a key is added');
my $stocked = call('GET', "/license-key-tags/$tag_id",
    headers => { 'If-None-Match' => $before->{headers}{etag} });
is_answer($stocked, 200, 'a stock that has changed is shown');
is(version($stocked), version($before), 'in the same version');
is_answer(call('PATCH', "/license-key-tags/$tag_id", json => { name => 'N' },
    matching($before->{headers}{etag})), 200,
    'so that the tag can be changed');

my $category = made('/categories', { name => 'Short' })->{json}{id};
my $sorted   = call('PATCH', "/assets/$files[0]", json => { category_id => $category });
is(call('DELETE', "/categories/$category")->{status}, 204, 'a category is deleted');
is_error(call('PATCH', "/assets/$files[0]", json => { title => 'T' },
    matching($sorted->{headers}{etag})), 412,
    'precondition_failed', 'which changes its assets');

my $put = { storefront_product_id => product(), file_ids => [] };
my $one = made('/mappings', $put);
my $two = made('/mappings', $put);
isnt(version($two), version($one), 'a mapping that is put again has another version');
is($two->{status}, 200, 'and is the same mapping');

# --- compressed answers --------------------------------------------------------------------------

MDL::Instance->new(modules => [qw(brotli deflate)], extra => <<'END')->start;
<Location /api/v1>
    SetOutputFilter BROTLI_COMPRESS;DEFLATE
</Location>
END
$shop = new_shop();
$category = made('/categories', { name => 'Packed' })->{json}{id};
for my $path ('/docs', '/openapi.json', "/categories/$category") {
    for my $coding (qw(gzip br)) {
        my @accept = ('Accept-Encoding' => $coding);
        my $tag = call('GET', $path, headers => {@accept})->{headers}{etag};
        like($tag, qr/-$coding"\z/,
            "$path: an answer compressed by $coding has a mark in its ETag");
        my $known = call('GET', $path,
            headers => { @accept, 'If-None-Match' => qq("other-$coding", $tag) });
        is($known->{status}, 304, 'with which the client asks again');
        is(call('GET', $path, headers => { @accept, 'If-None-Match' => $known->{headers}{etag} })
            ->{status}, 304, 'and once more, with the ETag of that answer');
        is(call('GET', $path, headers => { 'If-None-Match' => qq("other-$coding") })->{status}, 200,
            'another is not known');
    }
}
my $packed = call('GET', "/categories/$category", headers => { 'Accept-Encoding' => 'gzip' })
    ->{headers}{etag};
is(call('PATCH', "/categories/$category", json => { name => 'New' }, matching($packed))->{status},
    200, 'it names the version of a change');
is(call('PATCH', "/categories/$category", json => { name => 'Newer' }, matching($packed))->{status},
    412, 'once');

done_testing;
