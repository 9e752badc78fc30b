# Two shops: for each of them the other's entities do not exist.
#
# both: each query names the shop
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use MDL::Contract;
use MDL::Receiver;
use MDL::Test;
use Test::More;

my $receiver = MDL::Receiver->new;
$receiver->answers('takes', {});
my ($mine, $other) = (new_shop(), new_shop());
my %post = (json => {});

sub made
{
    my ($reply) = @_;
    die "$reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[0-2]\z/;
    return $reply->{json};
}

sub create
{
    my ($shop, $path, %members) = @_;
    return made(api('POST', $path, key => $shop->{token}, json => \%members));
}

# Makes one entity of each kind for a shop.
sub furnish
{
    my ($shop) = @_;
    my %has;
    $has{category} = create($shop, '/categories', name => 'A')->{id};
    my $import = import_of($shop, 'scope.bin', 'scope', category_id => $has{category});
    $has{asset} = made($import)->{asset}{id};
    $has{job}   = $import->{json}{job}{id};
    wait_job($shop, $has{job});
    $has{pack} = create($shop, '/packs', name => 'A', file_ids => [ $has{asset} ])->{id};
    $has{link} = create($shop, '/links', title => 'A', url => 'https://example.com/a')->{id};
    $has{tag}  = create($shop, '/license-key-tags', name => 'A')->{id};
    create($shop, "/license-key-tags/$has{tag}/keys", keys => ['K-1']);
    $has{license_key} = made(api('GET', "/license-key-tags/$has{tag}/keys", key => $shop->{token}))
        ->{data}[0]{id};
    $has{webhook} = create($shop, '/webhook-endpoints', url => $receiver->url('takes'),
        event_types => ['shop.blocked'])->{id};
    create($shop, "/webhook-endpoints/$has{webhook}/test");
    # Once it is over: it must not change any more.
    wait_for(sub { ($has{delivery}) = map { $_->[0] } sql('SELECT id FROM webhook_delivery '
        . "WHERE endpoint_id = $has{webhook} AND status = 'succeeded'") }, 60, 'a delivery');
    $has{upload} = create($shop, '/assets/uploads', filename => 'a.bin', size => 3)->{id};
    $has{product} = product();
    $has{mapping} = create($shop, '/mappings',
        storefront_product_id => $has{product},
        file_ids              => [ $has{asset} ],
        pack_ids              => [ $has{pack} ],
        link_ids              => [ $has{link} ],
        license_key_tag_ids   => [ $has{tag} ])->{id};
    $has{order} = digits();
    my $order = made(
        assign($shop, $has{order}, [ $has{product} ], customer => { email => 'a@example.com' },
            send_email => JSON::PP::true()));
    wait_for(sub { made(api('GET', "/orders/$has{order}", key => $shop->{token}))->{email}{status}
        eq 'sent' }, 60, 'an email');
    $has{assignment} = $order->{assignments}[0]{id};
    $has{version}    = 1;
    $has{help}       = help_asked($shop, $has{order});
    $has{customer}   = $order->{customer}{id};
    return \%has;
}

my $theirs = furnish($other);
my $own    = furnish($mine);

# Unknown ids of the same form.
my %nobody = (
    (map { $_ => '9007199254740991' }
        qw(asset category pack link tag mapping assignment webhook delivery license_key
            customer help)),
    version => 1,
    order  => '99999999999999999999',
    job    => 'job_7ZZZZZZZZZZZZZZZZZZZZZZZZZ',
    upload => 'upl_7ZZZZZZZZZZZZZZZZZZZZZZZZZ',
);

# Each method of each path with an id, and its body.
my %put = (storefront_product_id => product());
my @operations = (
    [ 'GET',    '/assets/{asset}' ],
    [ 'PATCH',  '/assets/{asset}',                 { title => 'B' } ],
    [ 'DELETE', '/assets/{asset}' ],
    [ 'POST',   '/assets/{asset}/versions',        { source_url => source('scope-2.bin', 'two') } ],
    [ 'POST',   '/assets/{asset}/versions/{version}/restore', {} ],
    [ 'GET',    '/assets/uploads/{upload}' ],
    [ 'DELETE', '/assets/uploads/{upload}' ],
    [ 'POST',   '/assets/uploads/{upload}/complete', {} ],
    [ 'GET',    '/jobs/{job}' ],
    [ 'POST',   '/jobs/{job}/cancel',              {} ],
    [ 'POST',   '/jobs/{job}/retry',               {} ],
    (map {
        my ($path, $noun, $change) = @$_;
        ([ 'GET', "/$path/{$noun}" ], [ 'PATCH', "/$path/{$noun}", $change ],
            [ 'DELETE', "/$path/{$noun}" ])
    } [ 'categories', 'category', { name => 'B' } ],
        [ 'packs',            'pack', { name  => 'B' } ],
        [ 'links',            'link', { title => 'B' } ],
        [ 'license-key-tags', 'tag',  { name  => 'B' } ],
        [ 'webhook-endpoints', 'webhook', { description => 'B' } ]),
    (map { [ 'POST', "/webhook-endpoints/{webhook}/$_", {} ] }
        qw(rotate-secret test deliveries/{delivery}/resend)),
    [ 'GET',    '/webhook-endpoints/{webhook}/deliveries' ],
    [ 'POST',   '/license-key-tags/{tag}/keys',    { keys => ['K-2'] } ],
    [ 'POST',   '/license-key-tags/{tag}/generate', { pattern => '********', count => 1 } ],
    [ 'GET',    '/license-key-tags/{tag}/keys' ],
    [ 'DELETE', '/license-key-tags/{tag}/keys/{license_key}' ],
    [ 'GET',    '/mappings/{mapping}' ],
    [ 'PUT',    '/mappings/{mapping}',             \%put ],
    [ 'PATCH',  '/mappings/{mapping}',             { is_active => JSON::PP::true() } ],
    [ 'DELETE', '/mappings/{mapping}' ],
    (map { [ $_, '/mappings/{mapping}/move-buyers/{mapping}' ] } qw(GET POST)),
    [ 'GET',    '/help-requests/{help}' ],
    [ 'POST',   '/help-requests/{help}/answer', { answer => 'refuse' } ],
    [ 'GET',    '/orders/{order}' ],
    [ 'PATCH',  '/orders/{order}', { email => 'b@example.com' } ],
    [ 'GET',    '/customers/{customer}' ],
    [ 'PATCH',  '/customers/{customer}', { email => 'b@example.com' } ],
    [ 'POST',   '/customers/{customer}/merge', { into_customer_id => $own->{customer} } ],
    [ 'GET',    '/orders/{order}/assignments' ],
    (map { [ 'GET', "/orders/{order}/$_" ] } qw(events downloads emails evidence)),
    [ 'GET',    '/orders/{order}/assignments/{assignment}' ],
    [ 'PATCH',  '/orders/{order}/assignments/{assignment}', { quantity => 2 } ],
    [ 'GET',    '/orders/{order}/assignments/{assignment}/download-urls' ],
    [ 'GET',    '/orders/{order}/diagnosis' ],
    [ 'POST',   '/orders/{order}/grant-downloads', { downloads => 1 } ],
    (map { [ 'POST', "/orders/{order}/$_", {} ] }
        qw(revoke restore resend rotate-link approve reject)),
);

sub call_as
{
    my ($shop, $operation, $ids) = @_;
    my ($method, $path, $json) = @$operation;
    $path =~ s/\{(\w+)\}/$ids->{$1}/g;
    return api($method, $path, key => $shop->{token}, $json ? (json => $json) : ());
}

# Everything in an answer that could tell two ids apart.
sub told
{
    my ($reply) = @_;
    my %headers = %{ $reply->{headers} };
    delete @headers{qw(date x-request-id)};
    return join "\n", $reply->{status}, (map { "$_: $headers{$_}" } sort keys %headers),
        $reply->{body} =~ s/"request_id":"[^"]*"//r;
}

my $untouched = join "\n", map { api('GET', $_, key => $other->{token})->{body} }
    map { s/\{(\w+)\}/$theirs->{$1}/gr } map { $_->[1] }
        grep { $_->[0] eq 'GET' && $_->[1] !~ /urls|evidence/ } @operations;

for my $operation (@operations) {
    my $name    = "$operation->[0] $operation->[1]";
    my $foreign = call_as($mine, $operation, $theirs);
    my $unknown = call_as($mine, $operation, \%nobody);
    is($foreign->{status}, 404, "$name of the other shop: 404") or diag $foreign->{body};
    is(told($foreign), told($unknown),
        "$name: the other shop's id is answered like an unknown one");
    # our order with the other shop's assignment
    if ($operation->[1] =~ /\{order\}.*\{assignment\}/) {
        my $mixed = call_as($mine, $operation, { %$theirs, order => $own->{order} });
        is($mixed->{status}, 404, "$name: the other shop's assignment in an order of ours");
    }
}

# A product of ours and one of the other shop's.
for my $pair ([ $own, $theirs ], [ $theirs, $own ]) {
    my ($from, $to) = map { $_->{mapping} } @$pair;
    is_error(api($_, "/mappings/$from/move-buyers/$to", key => $mine->{token}), 404,
        'mapping_not_found', "$_ moves no buyers between shops") for qw(GET POST);
}

# Ids in bodies.
my %body = (asset => 'file_ids', pack => 'pack_ids', link => 'link_ids',
    tag => 'license_key_tag_ids');
my @bodies = (
    (map {
        my $noun = $_;
        ([ 'POST', '/mappings', { %put, $body{$noun} => [ \$noun ] }, "/$body{$noun}/0" ],
            [ 'PUT', "/mappings/$own->{mapping}", { %put, $body{$noun} => [ \$noun ] },
                "/$body{$noun}/0" ])
    } sort keys %body),
    [ 'POST',  '/packs',                   { name => 'B', file_ids => [ \'asset' ] },
        '/file_ids/0' ],
    [ 'PATCH', "/packs/$own->{pack}",      { file_ids => [ \'asset' ] },
        '/file_ids/0' ],
    [ 'PATCH', "/assets/$own->{asset}",    { category_id => \'category' },
        '/category_id' ],
    [ 'POST',  '/assets',
        { source_url => source('s.bin', 's'), category_id => \'category' }, '/category_id' ],
    [ 'POST', '/assets/uploads',           { filename => 'b', category_id => \'category' },
        '/category_id' ],
    [ 'POST', "/assets/$own->{asset}/versions",        { upload_id => \'upload' },
        '/upload_id' ],
    [ 'POST', "/orders/$own->{order}/revoke",          { assignment_ids => [ \'assignment' ] },
        '/assignment_ids/0' ],
    [ 'POST', "/orders/$own->{order}/restore",         { assignment_ids => [ \'assignment' ] },
        '/assignment_ids/0' ],
    [ 'POST', "/orders/$own->{order}/grant-downloads",
        { downloads => 1, assignment_ids => [ \'assignment' ] }, '/assignment_ids/0' ],
    [ 'POST', "/orders/$own->{order}/grant-downloads", { downloads => 1, file_ids => [ \'asset' ] },
        '/file_ids/0' ],
);

sub with_ids
{
    my ($value, $ids) = @_;
    return [ map { with_ids($_, $ids) } @$value ] if ref $value eq 'ARRAY';
    return { map { $_ => with_ids($value->{$_}, $ids) } keys %$value } if ref $value eq 'HASH';
    return $value if ref $value ne 'SCALAR';
    return $$value eq 'upload' ? $ids->{upload} : 0 + $ids->{$$value};
}

for my $body (@bodies) {
    my ($method, $path, $json, $pointer) = @$body;
    my ($foreign, $unknown) = map {
        api($method, $path, key => $mine->{token}, json => with_ids($json, $_))
    } $theirs, \%nobody;
    my $name = "$method " . ($path =~ s/\d+/{}/gr) . " $pointer";
    is_error($foreign, 422, 'unknown_reference', "$name of the other shop", $pointer);
    is(told($foreign), told($unknown),
        "$name: the other shop's id is answered like an unknown one");
}

# Two shops may have orders with the same storefront id.
my $twin = made(assign($mine, $theirs->{order}, [ $own->{product} ]));
isnt($twin->{assignments}[0]{id}, $theirs->{assignment},
    'an order of the same number is another order');

# Lists.
for my $path (qw(/assets /help-requests /jobs /categories /packs /links /license-key-tags
    /mappings /orders /emails /webhook-endpoints /audit)) {
    my %ids = map {
        my $shop = $_;
        ($shop => { map { ($_->{id} // $_->{customer}{id}) => 1 }
            @{ made(api('GET', "$path?limit=100", key => $shop->{token}))->{data} } })
    } $mine, $other;
    my ($m, $o) = @ids{ $mine, $other };
    ok(%$m && %$o, "GET $path: both shops have entities");
    is(scalar(grep { $o->{$_} } keys %$m), 0, "GET $path: the lists do not mix");
}
is_deeply([ map { $_->{id} } @{ made(api('GET', "/assets?category_id=$theirs->{category}",
    key => $mine->{token}))->{data} } ],
    [], "GET /assets of the other shop's category: nothing");
is(api('GET', "/emails?storefront_order_id=$theirs->{order}", key => $other->{token})
        ->{json}{data}[0]{to}, 'a@example.com', 'GET /emails of an order has its email');
is_deeply(made(api('GET', "/emails?storefront_order_id=$theirs->{order}", key => $mine->{token}))
    ->{data}, [], "GET /emails of the other shop's order: nothing");

is(join("\n", map { api('GET', $_, key => $other->{token})->{body} }
        map { s/\{(\w+)\}/$theirs->{$1}/gr } map { $_->[1] }
            grep { $_->[0] eq 'GET' && $_->[1] !~ /urls|evidence/ } @operations),
    $untouched, 'nothing of the other shop has changed');

# Every operation with an id in its path is covered, but for the upload URL, which has no key.
my $document = JSON::PP->new->utf8->decode(api('GET', '/openapi.json')->{body});
my %covered  = map { "$_->[0] " . ($_->[1] =~ s/\{\w+\}/{}/gr) => 1 } @operations;
$covered{'POST /orders/{}/assignments'} = 1;    # creates an order of the caller's, see above
my @missing = grep { !$covered{$_} } map {
    my $path = $_;
    map { uc($_) . ' ' . ($path =~ s/\{\w+\}/{}/gr) }
        grep { /^(?:get|put|post|patch|delete)\z/ } keys %{ $document->{paths}{$path} }
} grep { /\{/ && !$document->{paths}{$_}{servers} } keys %{ $document->{paths} };
is(join(', ', sort @missing), '', 'every operation with an id in its path was called');

done_testing();
