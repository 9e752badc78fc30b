# The pages that upload files: what a form begins, what a script is told, who may, and what becomes
# of an upload. t/settings/upload_form.t has the form's bytes, t/settings/upload_browser.t the
# script.
#
# once: the pages call what the API calls on both databases
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use MDL::Upload;
use Test::More;

my $server = settings_server(extra => "DownloadsUploadMaxSize 1M\n");
my $shop   = new_shop(name => 'Noten & <i>Klang</i>');
my $id     = $shop->{shop_id};
my $list   = "/$id/files/uploads";
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];

my %json = (accept => 'application/json');

# What a script is answered; each answer has the token of its next form.
my $token;
sub script
{
    my ($path, $fields, $user) = @_;
    my $reply = visit($user // 'staff', 'POST', $path,
        form => { form_token => $token, %$fields }, headers => { origin => origin(), %json });
    my $data = eval { decode_json($reply->{body}) } // {};
    $token = $data->{form_token} // $token;
    return { %$data, status => $reply->{status} };
}

sub begun { return script($list, { name => 'a.zip', size => 5, modified => 1700000000123, @_ }) }

subtest 'without a script' => sub {
    my $page = visit('staff', 'GET', $list);
    is($page->{status}, 200, 'the page is there');
    like($page->{headers}{'content-security-policy'},
        qr{form-action 'self' http://\S+/u/;}, 'its forms may lead to upload URLs');
    my $begin = submit('staff', $page, $list, {});
    is($begin->{status}, 303, 'its button begins an upload');
    my ($path) = ($begin->{headers}{location} // '') =~ m{/settings(/$id/files/uploads/upl_\w+)$};
    my $one = visit('staff', 'GET', $path);
    like($one->{body}, qr{enctype="multipart/form-data" action="(http://[^"]+)"},
        'whose page has a form for the file');
    my ($url) = $one->{body} =~ m{enctype="multipart/form-data" action="([^"]+)"};
    my $sent = page('POST', $url,
        headers => { 'content-type' => 'multipart/form-data; boundary=B' },
        body => "--B\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\n<b>A</b>\r\n"
            . "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"<i>.txt\"\r\n\r\n"
            . "bytes\r\n--B--\r\n");
    is($sent->{headers}{location}, origin() . "/settings$path", 'which leads back to it');
    my $done = visit('staff', 'GET', $path);
    like($done->{body}, qr{role="status">The file is uploaded}, 'it says that the file is there');
    like($done->{body}, qr{<bdi>&lt;b&gt;A.*&lt;i&gt;\.txt}s, 'with its names, escaped');
    unlike($done->{body}, qr{multipart/form-data}, 'and has no form any more');
    like(visit('staff', 'GET', "$path?problem=upload_finished")->{body},
        qr{role="alert">This form has brought its file already}, 'what was wrong is said');
    like(visit('staff', 'GET', "$path?problem=%3Cb%3E", headers => { 'accept-language' => 'de' })
        ->{body}, qr{role="alert">Das hat nicht geklappt}, 'in the page\'s language');
    is((sql("SELECT count(*) FROM audit WHERE shop_id = $id AND user_name = 'staff'"))[0][0], 2,
        'the audit has its beginning and its end');
};

subtest 'a script uploads by tus' => sub {
    $token = form_token(visit('staff', 'GET', $list));
    my $begun = begun();
    is($begun->{status}, 201, 'a script begins an upload') or diag explain $begun;
    like($begun->{complete}, qr{^/settings$list/upl_\w+/complete$}, 'and learns how it ends');
    my $page = visit('staff', 'GET', $list);
    like($page->{body}, qr{data-name="a\.zip" data-size="5" data-modified="1700000000123"},
        'the page lists it with what its file is known by');
    like($page->{body}, qr{data-url="\Q$begun->{upload_url}\E"}, 'and where it goes on');
    my $complete = $begun->{complete} =~ s{^/settings}{}r;
    is(script($complete, {})->{problem}, 'upload_incomplete', 'it can\'t end without its bytes');
    is(patch_bytes($begun, 0, 'bytes')->{status}, 204, 'its bytes come by tus');
    my $done = script($complete, {});
    is($done->{status}, 200, 'then it ends') or diag explain $done;
    my $asset = api('GET', "/assets/$done->{asset_id}", key => $shop->{token})->{json};
    is("$asset->{filename} $asset->{size}", 'a.zip 5', 'as a file');
    is(script($complete, {})->{asset_id}, $done->{asset_id}, 'ended again it is the same');
    unlike(visit('staff', 'GET', $list)->{body}, qr{data-name="a\.zip"}, 'it is listed no more');

    my $new = begun(replaces => $done->{asset_id}, name => 'b.zip', size => 3,
        note => 'It is larger.');
    is(patch_bytes($new, 0, 'new')->{status}, 204, 'another brings new bytes');
    is(script("$list/$new->{upload_id}/complete", {})->{asset_id}, $done->{asset_id},
        'for the same file');
    $asset = api('GET', "/assets/$done->{asset_id}", key => $shop->{token})->{json};
    is("$asset->{filename} $asset->{version}", 'a.zip 2', 'which is its second version');
    is($asset->{note}, 'It is larger.', 'with what is said of it');
    like(visit('staff', 'GET', "$list?replaces=$asset->{id}")->{body},
        qr{<h1>Replace <bdi>a\.zip</bdi>}, 'the page says what is replaced');

    assign($shop, 7001, [ mapping_of($shop, [ $asset->{id} ])->{storefront_product_id} ]);
    my $news = begun(replaces => $asset->{id}, name => 'c.zip', size => 3, notify => 1);
    patch_bytes($news, 0, 'two');
    ok(script("$list/$news->{upload_id}/complete", {})->{told},
        'and with whether buyers are told of it');
    like(visit('staff', 'GET', "$list?replaces=$asset->{id}")->{body},
        qr{data-told="The buyer of the one order that has it will be told}, 'which it can say');
    my $open = begun(name => 'd.zip', size => 0);
    patch_bytes($open, 0, '');
    ok(!script("$list/$open->{upload_id}/complete", {})->{told}, 'unless nobody is');

    my $left = begun(name => 'left.zip');
    is(script("$list/$left->{upload_id}/abort", {})->{status}, 200, 'an upload can be cancelled');
    is(patch_bytes($left, 0, 'bytes')->{status}, 410, 'and takes nothing then');
    is(visit('staff', 'GET', "$list/$left->{upload_id}")->{headers}{location}
        =~ s{^http://[^/]+}{}r, "/settings$list", 'its page leads to the others');
};

subtest 'what can\'t be begun' => sub {
    is(begun(name => $_)->{problem}, 'upload_form_file', 'a name that is none is refused')
        for '', '..', 'a/b';
    is(begun(name => 'n' x 256)->{problem}, 'upload_form_name', 'and one that is too long');
    like(visit('staff', 'GET', $list)->{body},
        qr{data-code="upload_form_name">The file\S+s name is too long[^<]*at most 63 characters},
        'whose sentence says what fits');
    is(begun(size => $_)->{problem}, 'upload_form_file', "a size of '$_' is refused")
        for '', '-1', '1e3', '9' x 20;
    is(begun(size => 2**20 + 1)->{problem}, 'request_too_large', 'a file that is too large is');
    is(begun(replaces => 999_999)->{status}, 404, 'no file is there to be replaced');
    my $used = $token;
    begun(name => 'once.zip');
    my $reply = visit('staff', 'POST', $list,
        form => { form_token => $used, name => 'x', size => 1 }, headers =>
            { origin => origin(), %json });
    is($reply->{status}, 409, 'a token works once');
    $reply = visit('staff', 'GET', $list, headers => {%json});
    like(decode_json($reply->{body})->{form_token}, qr/^[\w-]{40,}$/, 'a script can have another');
    begun(name => "$_.zip") for 1 .. 20;
    is(begun()->{problem}, 'too_many_uploads', 'a shop has at most 20 open uploads');
};

subtest 'who may' => sub {
    is(visit('reader', 'GET', $list)->{status}, 403, 'a reader does not upload');
    is(submit('reader', own_form('reader', 'read-only', $list), $list, {})->{status}, 403,
        'not even by a form');
    is(visit('nobody', 'GET', $list)->{status}, 404, 'nor does another');
    my $other = new_shop();
    told('member', 'add', 'other', 'owner', '--shop', $other->{shop_id});
    my ($theirs) = sql("SELECT id FROM upload WHERE shop_id = $id AND status = 'open'");
    my $page = visit('other', 'GET', "/$other->{shop_id}/files/uploads");
    is(submit('other', $page, "/$other->{shop_id}/files/uploads/$theirs->[0]/$_", {})->{status},
        404, "another shop's upload can't $_") for qw(complete abort);
    unlike(visit('other', 'GET', "/$other->{shop_id}/files/uploads/$theirs->[0]")->{body},
        qr{multipart}, 'nor be filled');
    my $api = begin_upload($other);
    is(submit('other', visit('other', 'GET', "/$other->{shop_id}/files/uploads"),
        "/$other->{shop_id}/files/uploads/$api->{id}/abort", {})->{status}, 404,
        'nor can one of the API');
    my $allowed = tus('OPTIONS', $api, undef, origin => origin(),
        'Access-Control-Request-Method' => 'PATCH');
    is($allowed->{headers}{'access-control-allow-origin'}, origin(),
        'the settings\' pages may send to upload URLs');
    is(tus('OPTIONS', $api, undef, origin => 'https://evil.example')
        ->{headers}{'access-control-allow-origin'}, undef, 'others may not');
    my $pending = told('shop', 'add', 'Pending', 'pending.example')->{id};
    told('member', 'add', 'owner', 'owner', '--shop', $pending);
    my $form = visit('owner', 'GET', "/$pending/files/uploads");
    unlike($form->{body}, qr{id="begin"}, 'a shop that is not approved has no form');
    is(submit('owner', visit('owner', 'GET', "/$id/files/uploads"), "/$pending/files/uploads", {})
        ->{status}, 403, 'and begins none');
};

$server->stop;
done_testing;
