# Categories, packs and links (contract, section 6): /categories, /packs, /links.
#
# once: openapi.t makes each of these requests on both databases; lists.t has the pages
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());
my $LAST = 9007199254740991;    # an id that nobody has

my $shop  = new_shop();
my $other = new_shop();

# A request of our shop, or of the shop given in the option "of".
sub call
{
    my ($method, $path, %opt) = @_;
    my $of = delete $opt{of} // $shop;
    return api($method, $path, key => $of->{token}, %opt);
}

# Creates an entity by POST to a noun's list; dies if that fails.
sub made
{
    my ($list, $members, %opt) = @_;
    my $reply = call('POST', $list, json => $members, %opt);
    die "POST $list was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^20[01]\z/;
    return $reply->{json};
}

sub is_gone
{
    my ($reply, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is("$reply->{status} [$reply->{body}]", '204 []', $name);
}

# The body of an error without its request id.
sub bytes { my ($reply) = @_; return $reply->{body} =~ s/req_[\w@-]+/req/r }

my @files  = map { ready_asset($shop, "catalog-$$-$_.txt", "file $_\n")->{id} } 1 .. 3;
my $theirs = ready_asset($other, "catalog-$$-theirs.txt", "theirs\n")->{id};

# --- categories, packs and links alike -----------------------------------------------------------

my @NOUNS = (
    {
        noun   => 'category',
        list   => '/categories',
        given  => { name => 'Music' },
        full   => { name => "\x{1d11e}" . 'N' x 251 },
        new    => { name => 'Sheet music' },
        faults => [
            [ 'no name'                   => {},                                    '/name' ],
            [ 'a name of null'            => { name => undef },                     '/name' ],
            [ 'an empty name'             => { name => '' },                        '/name' ],
            [ 'a name of 256 characters'  => { name => 'N' x 256 },                 '/name' ],
            [ 'a name with a line feed'   => { name => "a\nb" },                    '/name' ],
            [ 'a name that is a number'   => { name => 7 },                         '/name' ],
            [ 'a member that is not known' => { name => 'A', parent_id => 1 },      '/parent_id' ],
            [ 'an id in the request'       => { name => 'A', id => 1 },              '/id' ],
        ],
    },
    {
        noun   => 'pack',
        list   => '/packs',
        given  => { name => 'Starter pack', file_ids => [ @files[ 2, 0 ] ] },
        full   => { name => 'N' x 255, file_ids => [ @files[ 1, 2, 0 ] ] },
        new    => { name => 'Another pack', file_ids => [ @files[ 0, 2, 1 ] ] },
        faults => [
            [ 'no name'                   => { file_ids => [] },                    '/name' ],
            [ 'a name of null'            => { name => undef },                     '/name' ],
            [ 'a name of 256 characters'  => { name => 'N' x 256 },                 '/name' ],
            [ 'files that are not a list'  => { name => 'A', file_ids => 1 },        '/file_ids' ],
            [ 'a file that is text'       => { name => 'A', file_ids => ["$files[0]"] },
                '/file_ids/0' ],
            [ 'a file of id 0'            => { name => 'A', file_ids => [ $files[0], 0 ] },
                '/file_ids/1' ],
            [ 'a file twice'              => { name => 'A', file_ids => [ @files[ 0, 1, 0 ] ] },
                '/file_ids/2' ],
            [ '251 files'                 => { name => 'A', file_ids => [ 1 .. 251 ] },
                '/file_ids' ],
            [ 'several faults'            => { name => '', file_ids => [ -1, 'x' ], files => [] },
                '/name', '/file_ids/0', '/file_ids/1', '/files' ],
        ],
    },
    {
        noun   => 'link',
        list   => '/links',
        given  => { title => 'Community', url => 'https://community.example/join?code=1#top' },
        full   => { title => 'T' x 255, url => 'https://example.com/' . 'u' x 2028 },
        new    => { title => 'Forum', url => 'https://forum.example:8443/new' },
        faults => [
            [ 'no title'                  => { url => 'https://example.com/' },     '/title' ],
            [ 'no url'                    => { title => 'A' },                      '/url' ],
            [ 'neither'                   => {},                                    '/title',
                '/url' ],
            [ 'a title of null'           => { title => undef, url => 'https://example.com/' },
                '/title' ],
            [ 'a url of null'             => { title => 'A', url => undef },        '/url' ],
            [ 'a title of 256 characters' => { title => 'T' x 256, url => 'https://example.com/' },
                '/title' ],
            [ 'a url of 2049 characters'      => { title => 'A',
                url => 'https://example.com/' . 'u' x 2029 }, '/url' ],
            [ 'a member that is not known' => { title => 'A', url => 'https://example.com/',
                name => 'A' }, '/name' ],
        ],
    },
);

for my $of (@NOUNS) {
    my ($noun, $list) = @$of{qw(noun list)};
    my $reply = call('POST', $list, json => $of->{given});
    is_answer($reply, 201, "a $noun is created");
    my $thing = $reply->{json};
    is_shape($thing, $noun, "the $noun");
    is_deeply({ map { $_ => $thing->{$_} } keys %{ $of->{given} } }, $of->{given},
        'has the given members');
    is($thing->{updated_at}, $thing->{created_at}, 'updated_at is created_at');
    like($reply->{headers}{location}, qr{/api/v1$list/$thing->{id}\z}, 'Location names it');
    my $read = call('GET', "$list/$thing->{id}");
    is_answer($read, 200, "the $noun can be read");
    is_deeply($read->{json}, $thing, 'as it was answered');
    my $full = made($list, $of->{full});
    is_deeply({ map { $_ => $full->{$_} } keys %{ $of->{full} } }, $of->{full},
        'the longest members');
    is_answer(call('POST', $list, json => $of->{given}), 201, "two may have the same members");

    my $idem  = idem();
    my @twice = map { call('POST', $list, json => $of->{given}, idem => $idem) } 1, 2;
    is($twice[1]{body}, $twice[0]{body}, 'a replay answers the same entity');
    is($twice[1]{headers}{'idempotent-replayed'}, 'true', 'and is marked as a replay');
    is($twice[1]{headers}{location}, $twice[0]{headers}{location}, 'with its Location');

    # Changing: one member after the other.
    my %now = %$thing;
    for my $member (sort keys %{ $of->{new} }) {
        my $change = call('PATCH', "$list/$thing->{id}",
            json => { $member => $of->{new}{$member} });
        is_answer($change, 200, "$member is changed");
        is_shape($change->{json}, $noun, "the changed $noun");
        cmp_ok($change->{json}{updated_at}, 'ge', $now{updated_at}, 'updated_at is not earlier');
        %now = (%now, $member => $of->{new}{$member}, updated_at => $change->{json}{updated_at});
        is_deeply($change->{json}, \%now, 'nothing else is changed');
    }
    my $before = join "\n",
        map { join ' ', @$_ } sql("SELECT * FROM $noun WHERE id = $thing->{id}");
    my $empty = call('PATCH', "$list/$thing->{id}", json => {});
    is_answer($empty, 200, 'a change of nothing');
    is_deeply($empty->{json}, \%now, 'changes nothing');
    is(join("\n", map { join ' ', @$_ } sql("SELECT * FROM $noun WHERE id = $thing->{id}")),
        $before, 'not even updated_at');
    is_deeply(call('GET', "$list/$thing->{id}")->{json}, \%now, 'the changes are stored');

    # Faulty members, at creation and in a change.
    unstored();
    for (@{ $of->{faults} }) {
        my ($name, $members, @pointers) = @$_;
        refused(call('POST', $list, json => $members), 400, 'invalid_request', $name, @pointers);
        my @given = grep { my $pointer = $_; grep { $pointer =~ m{^/\Q$_\E(?:/|\z)} }
            keys %$members } @pointers;
        next if @given != @pointers;
        refused(call('PATCH', "$list/$thing->{id}", json => $members), 400, 'invalid_request',
            "$name in a change", @pointers);
    }
    is_deeply(call('GET', "$list/$thing->{id}")->{json}, \%now, 'a refused change changes nothing');

    # Other shops' ids and unknown ones.
    my $foreign = made($list, { %{ $of->{given} }, $noun eq 'pack' ? (file_ids => [$theirs]) : () },
        of => $other);
    unstored();
    for my $method (qw(GET PATCH DELETE)) {
        my %body = $method eq 'PATCH' ? (json => $of->{new}) : ();
        my @replies = map { call($method, "$list/$_", %body) }
            $foreign->{id}, $LAST, 0, "0$thing->{id}", "-$thing->{id}", 'x',
            '12345678901234567890123';
        refused($replies[0], 404, "${noun}_not_found", "$method of another shop's $noun");
        is($replies[0]{json}{error}{message}, "There is no such $noun.",
            "$method: with this message");
        is(bytes($replies[$_]), bytes($replies[0]), "$method of an unknown id ($_): the same bytes")
            for 1 .. $#replies;
    }
    is_deeply(call('GET', "$list/$foreign->{id}", of => $other)->{json}, $foreign,
        "the other shop's $noun is unchanged");

    # Deleting.
    $idem = idem();
    my @gone = map { call('DELETE', "$list/$thing->{id}", idem => $idem) } 1, 2;
    is_gone($gone[0], "the $noun is deleted");
    is_gone($gone[1], 'the deletion is replayed');
    is($gone[1]{headers}{'idempotent-replayed'}, 'true', 'and says so');
    is_error(call('DELETE', "$list/$thing->{id}"), 404, "${noun}_not_found", 'a second deletion');
    is_error(call('GET', "$list/$thing->{id}"), 404, "${noun}_not_found",
        "the deleted $noun can't be read");
    is_error(call('PATCH', "$list/$thing->{id}", json => {}), 404, "${noun}_not_found",
        'nor changed');
    ok(!grep({ $_->{id} == $thing->{id} } @{ call('GET', "$list?limit=100")->{json}{data} }),
        'nor listed');
    unstored();
    refused(call('DELETE', "$list/$full->{id}", json => { force => $true }), 400, 'invalid_request',
        'a deletion with a member', '/force');
    refused(call('DELETE', "$list/$full->{id}", idem => undef), 400, 'idempotency_key_required',
        'a deletion without an Idempotency-Key');
}

# --- lists (t/api/lists.t tests what all lists have in common) -----------------------------------

for my $of (@NOUNS) {
    my ($noun, $list) = @$of{qw(noun list)};
    my $lister = new_shop();
    my @own = $noun eq 'pack'
        ? map { ready_asset($lister, "catalog-list-$$-$_.txt", "list $_\n")->{id} } 0 .. 2 : ();
    # Each pack has different files, so that mixed-up files are noticed.
    my @sets = $noun eq 'pack' ? ([], [ @own[ 2, 0 ] ], [], [ @own[ 0, 1, 2 ] ], [ $own[1] ])
        : (undef) x 5;
    my @made = reverse map {
        made($list, { %{ $of->{given} }, $_ ? (file_ids => $_) : () }, of => $lister)
    } @sets;
    my $page = call('GET', $list, of => $lister);
    is_answer($page, 200, "the list of each $noun");
    is_shape($page->{json}, $list =~ s{/}{}r, 'the list');
    is_deeply($page->{json}{data}, \@made, 'has each as it was created, newest first');
}

# --- categories ----------------------------------------------------------------------------------

my $category = made('/categories', { name => 'To be deleted' });
my $kept     = made('/categories', { name => 'To be kept' });
# Written into the database directly, with a deleted asset.
sql("UPDATE asset SET category_id = $category->{id} WHERE id IN ($files[0], $files[1])");
sql("UPDATE asset SET deleted_at = 1 WHERE id = $files[1]");
sql("UPDATE asset SET category_id = $kept->{id} WHERE id = $files[2]");
sql("INSERT INTO upload (id, shop_id, status, filename, title, category_id, created_at, expires_at)"
    . " VALUES ('upl_catalog$$', $shop->{shop_id}, 'aborted', 'a', 'a', $category->{id}, 1, 1)");
is_gone(call('DELETE', "/categories/$category->{id}"),
    'a category with assets and uploads is deleted');
is_deeply([ map { $_->[0] } sql("SELECT COALESCE(category_id, 0) FROM asset WHERE id IN ("
        . join(', ', @files) . ') ORDER BY id') ], [ 0, 0, $kept->{id} ],
    'its assets lose the category, others keep theirs');
is_deeply([ sql("SELECT COALESCE(category_id, 0) FROM upload WHERE id = 'upl_catalog$$'") ],
    [ [0] ], 'and so does its upload');
sql("UPDATE asset SET deleted_at = NULL WHERE id = $files[1]");

# --- packs ---------------------------------------------------------------------------------------

my $pack = made('/packs', { name => 'No files' });
is_deeply($pack->{file_ids}, [], 'a pack may be empty');
unstored();
refused(call('POST', '/packs', json => { name => 'No files', file_ids => undef }), 400,
    'invalid_request', 'null in a new pack', '/file_ids');
refused(call('PATCH', "/packs/$pack->{id}", json => { file_ids => undef }), 400, 'invalid_request',
    'null in a change', '/file_ids');
$pack = made('/packs', { name => 'Files', file_ids => [@files] });
is_deeply(call('PATCH', "/packs/$pack->{id}", json => { file_ids => [] })->{json}{file_ids}, [],
    'an empty list clears the files');

sql("UPDATE asset SET deleted_at = 1 WHERE id = $files[2]");
unstored();
for (
    [ 'files of another shop and unknown ones' => [ $files[0], $theirs, $LAST ], '/file_ids/1',
        '/file_ids/2' ],
    [ 'a deleted file'                      => [ @files[ 1, 2 ] ],            '/file_ids/1' ],
) {
    my ($name, $ids, @pointers) = @$_;
    refused(call('POST', '/packs', json => { name => 'Files', file_ids => $ids }), 422,
        'unknown_reference', "a pack of $name", @pointers);
    refused(call('PATCH', "/packs/$pack->{id}", json => { name => 'Changed', file_ids => $ids }),
        422, 'unknown_reference', "a pack that gets $name", @pointers);
}
is_deeply([ @{ call('GET', "/packs/$pack->{id}")->{json} }{qw(name file_ids)} ], [ 'Files', [] ],
    'a refused change changes nothing');
sql("UPDATE asset SET deleted_at = NULL WHERE id = $files[2]");
is(bytes(call('POST', '/packs', json => { name => 'A', file_ids => [$theirs] })),
    bytes(call('POST', '/packs', json => { name => 'A', file_ids => [$LAST] })),
    "another shop's file and an unknown one: the same bytes");

# --- links ---------------------------------------------------------------------------------------

unstored();
refused(call('POST', '/links', json => { title => 'A', url => $_ }), 400, 'invalid_request',
    "the url $_", '/url')
    for 'http://example.com/', 'HTTPS://example.com/', 'ftp://example.com/', 'javascript:alert(1)',
    'data:text/html,x', 'mailto:a@example.com', 'example.com', '//example.com/', '/path', 'https:',
    'https://', 'https:///path', 'https:/example.com/', 'https:///example.com/', 'https://?q',
    'https://#f', 'https://:443/', 'https://user@example.com/', 'https://user:secret@example.com/',
    'https://@example.com/', 'https://:@example.com/', 'https://example.com:0x1/',
    'https://example.com:65536/', 'https://exa mple.com/', 'https://example.com/a b',
    'https://example.com/"><b>', 'https://example.com/<x>', 'https://example.com\\@other.example/',
    "https://ex\x{e4}mple.com/", "https://example.com/\x{e4}", "https://example.com/\n\"><b>";
is(made('/links', { title => "\x{feff}A \n", url => "\x{a0}https://example.com/\n" })->{$_->[0]},
    $_->[1], "the $_->[0] without unseen edges")
    for [ title => 'A' ], [ url => 'https://example.com/' ];
is(made('/links', { title => 'A', url => $_ })->{url}, $_, "the url $_")
    for 'https://example.com', 'https://Example.COM/%41', 'https://xn--exmple-cua.com:1/',
    'https://192.0.2.1/', 'https://[2001:db8::1]/', "https://example.com/a;b=c/(d)?e[]=f&g='h'#/i!";

# --- deleting what is in use ---------------------------------------------------------------------

sub holders
{
    my ($reply) = @_;
    return { map { $_->{pointer} => "$_->{code}: $_->{message}" }
        @{ $reply->{json}{error}{details} // [] } };
}

my %held = (
    pack => made('/packs', { name => 'Held', file_ids => [ $files[0] ] }),
    link => made('/links', { title => 'Held', url => 'https://held.example/' }),
);
for my $noun (sort keys %held) {
    my $id = $held{$noun}{id};
    my @mappings = map { made('/mappings',
        { storefront_product_id => product(), "${noun}_ids" => [$id] }) } 1, 2;
    unstored();
    my $reply = call('DELETE', "/${noun}s/$id");
    refused($reply, 409, "${noun}_in_use", "a $noun that mappings hold",
        map { "/mappings/$_->{id}" } @mappings);
    is_deeply(holders($reply),
        { map { ("/mappings/$_->{id}" => "held_by_mapping: Mapping $_->{id} holds this $noun.") }
            @mappings },
        'the details name each mapping');

    # Deleted mappings: one without orders, and one with an order that still gets its content.
    my $order = digits();
    is_answer(assign($shop, $order, [ $mappings[0]{storefront_product_id} ]), 201,
        'an order of the first product');
    is_gone(call('DELETE', "/mappings/$_->{id}"), 'a mapping is deleted') for @mappings;
    $reply = call('DELETE', "/${noun}s/$id");
    is_error($reply, 409, "${noun}_in_use", "a $noun that an order still gets", "/orders/$order");
    is_deeply(holders($reply),
        { "/orders/$order" => "held_by_order: Order $order holds this $noun." },
        'the details name the order');
    is_answer(call('PATCH', "/${noun}s/$id", json => {}), 200, 'it is still there');
}

# An order with pinned content refers to the link itself.
my $pinned = made('/links', { title => 'Pinned', url => 'https://pinned.example/' });
my $pin_order = digits();
my $live = made('/mappings', { storefront_product_id => product() });
is_answer(assign($shop, $pin_order, [ $live->{storefront_product_id} ]), 201, 'an order');
sql("INSERT INTO assignment_link (assignment_id, link_id, position) SELECT id, $pinned->{id}, 0 "
    . "FROM assignment WHERE mapping_id = $live->{id}");
is_error(call('DELETE', "/links/$pinned->{id}"), 409, 'link_in_use', 'a link that an order keeps',
    "/orders/$pin_order");

# A link that its mapping no longer refers to.
my $free    = made('/links', { title => 'Free', url => 'https://free.example/' });
my $mapping = made('/mappings',
    { storefront_product_id => product(), link_ids => [ $free->{id} ] });
is_error(call('DELETE', "/links/$free->{id}"), 409, 'link_in_use', 'a link of a mapping',
    "/mappings/$mapping->{id}");
made('/mappings', { storefront_product_id => $mapping->{storefront_product_id} });
is_gone(call('DELETE', "/links/$free->{id}"),
    'a link that its mapping no longer refers to is deleted');

# --- lengths -------------------------------------------------------------------------------------

my $longest = "\x{1f600}" x 255;
is(call('POST', '/categories', json => { name => $longest })->{json}{name}, $longest,
    'a name of 255 characters with four bytes each');
is_error(call('POST', '/categories', json => { name => "$longest!" }), 400, 'invalid_request',
    'one more', '/name');
is(call('POST', '/assets/uploads', json => { filename => ("\x{1f600}" x 62) . '.txt' })->{status},
    201, 'a filename of 252 bytes');
is_error(call('POST', '/assets/uploads', json => { filename => "\x{1f600}" x 64 }), 400,
    'invalid_request', 'one of 256 bytes', '/filename');

done_testing();
