# A file that a form of the settings brings, without JavaScript (contract, section 7): what is read
# of multipart/form-data, what becomes of it, and that nothing is left of what is refused or cut.
#
# both: a form is completed under the locks of an upload, its shop and its member
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Contract;
use MDL::Settings;
use MDL::Test;
use MDL::Target qw(logs_dir wait_for);
use MDL::Upload;
use Test::More;

use constant { KB => 1024, MB => 2**20 };
use constant BOUNDARY => '----WebKitFormBoundary7MA4YWxkTrZu0gW';

my $server = settings_server(extra => "DownloadsStorageQuota 4M\n");
my $shop   = new_shop();
my $id     = $shop->{shop_id};
told('member', 'add', 'staff', 'staff', '--shop', $id);

# An upload that waits for a form.
sub form_upload
{
    my (%columns) = @_;
    my $upload = begin_upload($shop, filename => 'file');
    $columns{begun_by} //= "'staff'";
    $columns{returns_to} //= "'$id/files/uploads'";
    sql('UPDATE upload SET ' . join(', ', map { "$_ = $columns{$_}" } sort keys %columns)
            . " WHERE id = '$upload->{id}'");
    return $upload;
}

sub part
{
    my ($name, $bytes, $more) = @_;
    return '--' . BOUNDARY . qq{\r\nContent-Disposition: form-data; name="$name"} . ($more // '')
        . "\r\n\r\n$bytes\r\n";
}

sub file
{
    my ($bytes, $name, $type) = @_;
    return part('file', $bytes, '; filename="' . ($name // 'a.bin') . '"'
            . ($type ? "\r\nContent-Type: $type" : ''));
}

sub ended { return join('', @_) . '--' . BOUNDARY . "--\r\n" }

sub post
{
    my ($upload, $body, %headers) = @_;
    return ask_upload('POST', $upload, $body,
        'Content-Type' => 'multipart/form-data; boundary=' . BOUNDARY, %headers);
}

sub assets { return (sql("SELECT count(*) FROM asset WHERE shop_id = $id"))[0][0] }

# The reply led to the upload's page, with this problem or none.
sub leads
{
    my ($reply, $upload, $problem, $name) = @_;
    is("$reply->{status} " . ($reply->{headers}{location} // ''),
        '303 ' . origin() . "/settings/$id/files/uploads/$upload->{id}"
            . (defined $problem ? "?problem=$problem" : ''), $name) or diag $reply->{body};
    return;
}

sub made_of
{
    my ($upload) = @_;
    my $now = get_upload($shop, $upload);
    return $now->{asset_id}
        && api('GET', "/assets/$now->{asset_id}", key => $shop->{token})->{json};
}

subtest 'a browser sends a file' => sub {
    my $bytes  = join '', map { chr(rand 256) } 1 .. 300 * KB;
    my $upload = form_upload();
    my $reply  = post($upload,
        ended(part('title', "  Caf\xc3\xa9  "), file($bytes, "C:\\Music\\na\xc3\xafve.mp3",
            'audio/mpeg')));
    leads($reply, $upload, undef, 'it is led to the upload\'s page');
    my $asset = made_of($upload);
    is($asset->{sha256}, sha256_hex($bytes), 'the file has the bytes');
    is($asset->{size}, length $bytes, 'and their number');
    is($asset->{status}, 'ready', 'it is ready at once');
    is($asset->{filename}, "na\x{ef}ve.mp3", 'its name has no path');
    is($asset->{title}, "Caf\x{e9}", 'its title is the form\'s');
    is($asset->{content_type}, 'audio/mpeg', 'so is its type');
    my ($entry) = @{ told('audit', '--shop', $id, '--limit', 1) };
    is("$entry->{action} $entry->{noun_id} $entry->{user} $entry->{via}",
        "completed $upload->{id} staff settings", 'the audit says who uploaded it');
    my $made = assets();
    leads(post($upload, ended(file('other'))), $upload, 'upload_finished',
        'the form sent once more is told so');
    is(assets(), $made, 'and makes no second file');
    is(made_of($upload)->{sha256}, $asset->{sha256}, 'nor changes the first');
};

subtest 'curl sends a file' => sub {
    my $path = logs_dir() . '/curl.bin';
    open my $out, '>:raw', $path or die "$path: $!\n";
    print $out my $bytes = "\r\n--" x (50 * KB);
    close $out or die "$path: $!\n";
    my $upload = form_upload();
    my $status
        = qx(curl -sS -o /dev/null -w '%{http_code}' -F 'file=\@$path' '$upload->{upload_url}');
    is($status, 303, 'it is led on');
    my $asset = made_of($upload);
    is($asset->{sha256}, sha256_hex($bytes), 'the bytes are the same');
    is($asset->{title}, 'curl.bin', 'without a title the name is the title');
    is($asset->{content_type}, undef, 'a type that says nothing is none');
};

subtest 'a file without bytes, and new bytes for a file' => sub {
    my $empty = form_upload();
    leads(post($empty, ended(file(''))), $empty, undef, 'an empty file is one');
    my $asset = made_of($empty);
    is($asset->{size}, 0, 'of no bytes');
    my $new = form_upload(replaces => $asset->{id});
    leads(post($new, ended(file('version two', 'other.bin'))), $new, undef, 'it gets new bytes');
    my $now = api('GET', "/assets/$asset->{id}", key => $shop->{token})->{json};
    is($now->{sha256}, sha256_hex('version two'), 'which it has');
    is($now->{version}, 2, 'as its second version');
    is($now->{filename}, 'a.bin', 'under its name');
    my $page = "/$id/files/uploads/$new->{id}";
    unlike(visit('staff', 'GET', $page)->{body}, qr/told by email/, 'of which nobody is told');
    assign($shop, 7001, [ mapping_of($shop, [ $asset->{id} ])->{storefront_product_id} ]);
    $new = form_upload(replaces => $asset->{id}, notify => 1);
    post($new, ended(file('version three')));
    like(visit('staff', 'GET', "/$id/files/uploads/$new->{id}")->{body},
        qr{role="status">The file is uploaded\. The buyer of the one order [^<]*will be told by},
        'unless the form asked for it, as its page then says');
};

subtest 'what is refused leaves nothing' => sub {
    my $made  = assets();
    my $small = 'x' x 100;
    my @cases = (
        [ 'no file', ended(part('title', 'A')) ],
        [ 'a file that is none', ended(part('file', 'text')), 'upload_form_file' ],
        [ 'no chosen file', ended(file('', '')), 'upload_form_file' ],
        [ 'a name that is none', ended(file($small, '..')), 'upload_form_file' ],
        [ 'a name that is too long', ended(file($small, 'n' x 256)), 'upload_form_name' ],
        [ 'a field behind the file', ended(file($small), part('title', 'A')) ],
        [ 'two files', ended(file($small), file($small)) ],
        [ 'no last boundary', file($small) ],
        [ 'half a last boundary', file($small) . '--' . BOUNDARY . '-' ],
        [ 'bytes behind the last boundary', ended(file($small)) . 'x' ],
        [ 'five fields', ended((map { part($_, '1') } 1 .. 5), file($small)) ],
        [ 'a field above 1 KB', ended(part('note', 'x' x (KB + 1)), file($small)) ],
        [ 'headers above 8 KB',
            ended(part('file', $small, '; filename="a"; x=' . 'x' x (8 * KB))) ],
        [ 'a title above 255 characters', ended(part('title', 'x' x 256), file($small)),
            'upload_form_title' ],
        [ 'a title that is not UTF-8', ended(part('title', "\xff"), file($small)),
            'upload_form_title' ],
        [ 'an encoded file', ended(part('file', $small,
            "; filename=a\r\nContent-Transfer-Encoding: base64")) ],
        [ 'a boundary above 70 characters', ended(file($small)), undef,
            'Content-Type' => 'multipart/form-data; boundary=' . 'b' x 71 ],
        [ 'no boundary', ended(file($small)), undef, 'Content-Type' => 'multipart/form-data' ],
        [ 'another type', 'title=A', undef,
            'Content-Type' => 'application/x-www-form-urlencoded' ],
        [ 'an encoded body', ended(file($small)), undef, 'Content-Encoding' => 'gzip' ],
        [ 'more than the quota', ended(file('x' x (4 * MB))), 'storage_quota_exceeded' ],
    );
    my $upload = form_upload();
    for my $case (@cases) {
        my ($what, $body, $problem, @headers) = @$case;
        leads(post($upload, $body, @headers), $upload, $problem // 'upload_form_faulty',
            "$what is refused");
        is(offset_of($upload), 0, 'and nothing is kept');
    }
    my @chunks = ended(file($small));
    my $reply = page('POST', $upload->{upload_url}, body => sub { shift @chunks },
        headers => { 'content-type' => 'multipart/form-data; boundary=' . BOUNDARY });
    leads($reply, $upload, 'upload_form_faulty', 'a body of unknown length is refused');
    is(assets(), $made, 'no file was made');
    is((sql("SELECT reserved FROM upload WHERE id = '$upload->{id}'"))[0][0], 0,
        'no room is reserved');
    leads(post($upload, ended((map { part($_, 'x' x KB) } 1 .. 4), file($small))), $upload, undef,
        'after all of that the upload takes a form with four fields of 1 KB');
    is(made_of($upload)->{size}, 100, 'and its file');
};

subtest 'a form that is cut' => sub {
    my $upload = form_upload();
    my $body   = ended(file('x' x MB));
    my ($path) = $upload->{upload_url} =~ m{^http://[^/]+(/.*)};
    my $socket = MDL::Test::connection();
    print $socket join "\r\n", "POST $path HTTP/1.1", 'Host: localhost',
        'Content-Type: multipart/form-data; boundary=' . BOUNDARY,
        'Content-Length: ' . length $body, '', substr $body, 0, 700 * KB;
    $socket->flush;
    wait_for(sub { is_being_written($upload) }, 120, 'the form that is written');
    cmp_ok((sql("SELECT reserved FROM upload WHERE id = '$upload->{id}'"))[0][0], '>=', MB,
        'what it announces is reserved');
    leads(post($upload, ended(file('other'))), $upload, 'upload_locked',
        'another form has to wait for it');
    close $socket;
    wait_for(sub { !is_being_written($upload) && !stored_bytes($upload) }, 120, 'its end');
    is(offset_of($upload), 0, 'leaves nothing');
    wait_for(sub {
        !(sql("SELECT reserved FROM upload WHERE id = '$upload->{id}'"))[0][0];
    }, 120, 'the reservation\'s end');
    leads(post($upload, $body), $upload, undef, 'and the form can be sent again');
    is(made_of($upload)->{size}, MB, 'whole');
};

subtest 'uploads that take no form' => sub {
    my $api = begin_upload($shop);
    my $reply = post($api, ended(file('x')));
    is($reply->{status}, 405, 'one of the API has no POST');
    is($reply->{json}{error}{code}, 'method_not_allowed', 'in its own form');
    for my $method (qw(PUT PATCH)) {
        is(ask_upload($method, $api, 'x', 'Upload-Offset' => 0, 'Tus-Resumable' => '1.0.0',
            'Content-Type' => 'multipart/form-data; boundary=x')->{status}, 415,
            "and no multipart by $method");
    }
    my $old = form_upload(expires_at => 1);
    leads(post($old, ended(file('x'))), $old, 'upload_gone', 'one that has expired says so');
    my $forged = { %$api };
    $forged->{upload_url} =~ s{(.)(?=.{5}\z)}{$1 eq 'A' ? 'B' : 'A'}e;
    is(post($forged, ended(file('x')))->{status}, 404, 'a forged URL is none');
    my $made = assets();
    told('member', 'add', 'other', 'staff', '--shop', $id);
    my $left = form_upload(begun_by => "'other'");
    told('member', 'add', 'other', 'read-only', '--shop', $id);
    leads(post($left, ended(file('x'))), $left, 'forbidden',
        'one of a member who may not any more is refused');
    my $blocked = form_upload();
    told('shop', 'block', $id, '--reason', 'A complaint.');
    leads(post($blocked, ended(file('x'))), $blocked, 'shop_blocked',
        'one of a blocked shop is refused');
    is(assets(), $made, 'none of them makes a file');
};

$server->stop;
done_testing;
