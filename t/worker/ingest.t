# Imports (contract, section 9): from a source that behaves well, and from one that misbehaves.
#
# once: sources misbehave before anything is written; jobs.t and t/operate/kill.t import on both
use strict;
use warnings;
use feature qw(state);

use Encode qw(encode_utf8);
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use IO::Select;
use IO::Socket::IP;
use IO::Socket::SSL;
use Socket qw(getaddrinfo getnameinfo NI_NUMERICHOST SOCK_STREAM);
use Sys::Hostname qw(hostname);
use Test::More;
use Time::HiRes qw(time);

use constant { KB => 1024, MB => 1024 * 1024 };

# The poll interval is so long that each import here depends on a wake-up.
my $server = MDL::Instance->new(extra => <<'END')->start;
DownloadsIngestMaxSize 8M
DownloadsIngestAttempts 3
DownloadsRetryDelay 50
DownloadsPollInterval 25
DownloadsIngestConcurrency 10
DownloadsIngestAllowHost localhost no-such-host.invalid
AddType application/zip .zip
END
my $shop   = new_shop();
my $source = MDL::Source->new;

# Requests an import; returns the answer's { asset, job }.
sub import_of
{
    my ($url, %more) = @_;
    my $reply = api('POST', '/assets', key => $shop->{token}, patient => 1,
        json => { source_url => $url, %more });
    die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json};
}

sub asset
{
    my ($id) = @_;
    my ($row) = sql(
        'SELECT status, sha256, (SELECT size FROM blob b WHERE b.sha256 = asset.sha256), '
            . "content_type FROM asset WHERE id = $id");
    return { status => $row->[0], sha256 => $row->[1], size => $row->[2],
        content_type => $row->[3] };
}

sub blob_path
{
    my ($sha256) = @_;
    return storage_dir() . '/blobs/' . substr($sha256, 0, 1) . "/$sha256";
}

# A server whose certificate nobody has signed; it answers nothing.
sub tls_source
{
    my $folder = MDL::Test::suite_dir();
    system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 2 "
            . "-subj /CN=localhost -keyout $folder/source.key -out $folder/source.crt 2>/dev/null")
        == 0 or die "openssl failed\n";
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 8)
        or die "no port: $@\n";
    state $helper = MDL::Helper->begin(sub {
        my ($self, $watch) = @_;
        my $select = IO::Select->new($listener, $watch);
        while (1) {
            for my $ready ($select->can_read) {
                return if $ready == $watch;
                my $socket = $listener->accept or next;
                IO::Socket::SSL->start_SSL($socket, SSL_server => 1,
                    SSL_cert_file => "$folder/source.crt", SSL_key_file => "$folder/source.key");
            }
        }
    });
    return 'https://localhost:' . $listener->sockport;
}

sub partial_files { return glob storage_dir() . '/partial/*' }

# Performs an import; returns (job, asset).
sub done
{
    my ($url, %more) = @_;
    my $made = import_of($url, %more);
    my $job  = wait_job($shop, $made->{job}{id}, 120);
    return ($job, asset($made->{asset}{id}));
}

# Checks that an import succeeds with these bytes.
sub succeeds
{
    my ($what, $url, $sha256, $size, %more) = @_;
    return subtest $what => sub {
        my ($job, $asset) = done($url, %more);
        is $job->{status}, 'succeeded', 'the job succeeds' or diag explain $job;
        is $job->{error}, undef, 'and shows no error';
        is $job->{progress}{bytes_received}, $size, 'its progress is whole';
        is $job->{progress}{bytes_total}, $size, 'and so is the total';
        is $asset->{status}, 'ready', 'the asset is ready';
        is $asset->{sha256}, $sha256, 'its SHA-256 is that of the bytes';
        is -s blob_path($sha256), $size, 'the file is where its SHA-256 says';
        is_deeply [ partial_files() ], [], 'no partial file is left';
    };
}

# Checks that an import fails with this code after so many attempts.
sub fails
{
    my ($what, $url, $code, $attempts, %more) = @_;
    my $says = delete $more{says};
    return subtest $what => sub {
        my ($job, $asset) = done($url, %more);
        is $job->{status}, 'failed', 'the job fails' or diag explain $job;
        is $job->{error}{code}, $code, "with $code";
        like $job->{error}{message}, $says, 'and words that say why' if $says;
        unlike $job->{error}{message}, qr/\d+\.\d+\.\d+\.\d+|::/, 'the message names no address';
        is $job->{attempts}, $attempts, "after $attempts attempts";
        is $asset->{status}, 'failed', 'the asset has failed too';
        is_deeply [ partial_files() ], [], 'no partial file is left';
    };
}

my $small = MDL::Source::sha256(100 * KB);
my $large = MDL::Source::sha256(3 * MB);

subtest 'what httpd itself serves is imported, with the type that it says' => sub {
    my $bytes = MDL::Source::bytes('httpd', 0, 2 * MB);
    my ($job, $asset) = done(source('real.zip', $bytes));
    is $job->{status}, 'succeeded', 'the job succeeds' or diag explain $job;
    is $asset->{content_type}, 'application/zip', 'the content type is that of the source';
    is -s blob_path($asset->{sha256}), 2 * MB, 'the file is whole';
};

succeeds 'a plain file is imported', $source->offer('plain', { size => 100 * KB }), $small,
    100 * KB;
succeeds 'an empty file is imported', $source->offer('empty', { size => 0 }),
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 0;
succeeds 'a chunked body has no Content-Length and is imported',
    $source->offer('chunked', { size => 3 * MB, length => 'chunked' }), $large, 3 * MB;

# What a source says about its file ends up in the database and in customers' browsers.
for my $odd ("text/html\x01<script>", "\xff\xfe/\xc3", 'multipart/byteranges; boundary=x',
    'x' x 4000) {
    state $count = 0;
    my $url = $source->offer('odd' . ++$count,
        { size => 100, headers => ["Content-Type: $odd"], etag => qq("\xff$count") });
    my ($job, $asset) = done($url);
    is $job->{status}, 'succeeded', 'a file of an odd media type is imported';
    is $asset->{content_type} // '', '', 'without that type';
}

subtest 'a small import is done at once' => sub {
    my $url  = source('at-once', 'x' x KB);
    my @jobs = map { (done($url))[0] } 1 .. 21;
    my $ids  = join ', ', map { "'$_->{id}'" } @jobs;
    my @took = sort { $a <=> $b }
        map { $_->[0] / 1000 } sql("SELECT finished_at - created_at FROM job WHERE id IN ($ids)");
    is scalar @took, 21, 'all of them have ended';
    diag sprintf 'a small import took %.1f ms, the longest of 21 %.1f ms', @took[ 10, 20 ];
};

subtest 'the same bytes are stored once' => sub {
    my $path = blob_path($small);
    my $inode = (stat $path)[1];
    my ($job, $asset) = done($source->offer('again', { size => 100 * KB }));
    is $asset->{sha256}, $small, 'another asset has the same SHA-256';
    is +(stat $path)[1], $inode, 'the file is the one that was there';
    is +(sql("SELECT count(*) FROM blob WHERE sha256 = '$small'"))[0][0], 1,
        'the database has one row for it';
};

# --- redirects ------------------------------------------------------------------------------------

sub redirect
{
    my ($name, $to, $status) = @_;
    return $source->offer($name, { status => $status // 302, headers => ["Location: $to"] });
}

my $target = $source->url('plain');
for my $status (301, 302, 303, 307, 308) {
    succeeds "a redirect $status within the allowlist is followed",
        redirect("to-$status", $target, $status), $small, 100 * KB;
}
my $hops = $target;
$hops = redirect("hop$_", $hops) for 1 .. 10;
succeeds 'ten redirects are followed', $hops, $small, 100 * KB;
fails 'an eleventh redirect is not followed', redirect('hop11', $hops), 'source_redirects', 1,
    says => qr/^localhost redirects again, after 10 redirects\. \w/;
fails 'a redirect to a host outside of the allowlist is not followed',
    redirect('outside', 'http://user:pass@cdn.example.com/x?signature=5EC2E7'),
    'source_host_not_allowed', 1;
fails 'a redirect off the allowlist names the host',
    redirect('off-list', 'https://CDN.example.com/x?signature=5EC2E7'),
    'source_host_not_allowed', 1,
    says =>
        qr/^localhost redirects to cdn\.example\.com, where imports may not go\. Ask the operator/;
my $log = error_log_since(0);
like $log,
    qr/MDL0302:\ import\ \S+\ \(req_\S+\),\ attempt\ 1:
        \ source_host_not_allowed:\ localhost\ redirects\ to\ cdn\.example\.com,/x,
    'so does the log';
unlike $log, qr/5EC2E7/, 'which has no query';
fails 'a redirect to a numeric address is not followed',
    redirect('literal', 'http://169.254.169.254/latest/meta-data/'), 'source_host_not_allowed', 1,
    says => qr/^localhost redirects to an address without a host's name,/;
(my $wide = $target) =~ s/localhost/\x{ff4c}\x{ff4f}calhost/ or die $target;
succeeds 'a host beyond ASCII is the one that it stands for', $wide, $small, 100 * KB;
succeeds 'and so it is in a redirect', redirect('wide', encode_utf8($wide)), $small, 100 * KB;
fails 'which is not followed to a numeric address in other digits',
    redirect('digits', encode_utf8("http://\x{ff11}\x{ff12}\x{ff17}.0.0.1/x")),
    'source_host_not_allowed', 1;
fails 'a redirect to another scheme is not followed',
    redirect('file', 'file:///etc/passwd'), 'source_host_not_allowed', 1;
fails 'a redirect without a target is refused',
    $source->offer('nowhere', { status => 302 }), 'source_refused', 1;
is scalar(grep { ($_->{sent} // 0) > 0 } map { $source->requests($_) } qw(outside literal file)), 0,
    'and none of these answers had a body';

# --- statuses -------------------------------------------------------------------------------------

fails 'a 404 ends an import at once', $source->offer('s404', { status => 404 }),
    'source_not_found', 1, says => qr/^localhost answered with status 404\. Check source_url/;
fails 'a 403 too', $source->offer('s403', { status => 403 }), 'source_refused', 1,
    says => qr/^localhost answered with status 403\. .*signing in/;
fails 'a 500 is tried as often as allowed', $source->offer('s500', { status => 500 }),
    'source_unavailable', 3, says => qr/^localhost answered with status 500\. .*retry the job/;
is scalar($source->requests('s500')), 3, 'three requests were made';
succeeds 'a source that answers 503 and 429 first is tried again',
    $source->offer('later', { status => 503 }, { status => 429 }, { status => 200,
        size => 100 * KB }),
    $small, 100 * KB;
fails 'a source that is not there is tried as often as allowed', 'http://localhost:1/x',
    'source_unavailable', 3, says => qr/^localhost refuses connections on that port\./;
fails 'a certificate that is not to be trusted is something else', tls_source() . '/x',
    'source_certificate_invalid', 3,
    says => qr/^localhost shows a certificate whose issuer is not trusted\./;
fails 'and so is a name without an address', 'http://no-such-host.invalid/x',
    'source_name_unknown', 3,
    says => qr/^no-such-host\.invalid has no address: the name can't be resolved\./;

subtest 'a source that says when to come again is asked no earlier' => sub {
    for ([ 7200, 7200 ], [ 90000000, 86400 ], [ 'Sun, 06 Nov 1994 09:49:37 GMT', 3600 ]) {
        my ($says, $seconds) = @$_;
        state $count = 0;
        my $made = import_of($source->offer('wait' . ++$count, { status => 503,
            headers => [ "Retry-After: $says", 'Date: Sun, 06 Nov 1994 08:49:37 GMT' ] }));
        my $id = $made->{job}{id};
        wait_for(sub {
            scalar sql("SELECT 1 FROM job WHERE id = '$id' AND status = 'queued' AND attempts = 1");
        }, 20, 'the first attempt');
        my ($row) = sql("SELECT due_at - updated_at FROM job WHERE id = '$id'");
        cmp_ok abs($row->[0] / 1e6 - $seconds), '<', 60, "Retry-After: $says";
        api('POST', "/jobs/$id/cancel", key => $shop->{token}, json => {});
    }
};

subtest 'attempts are further and further apart' => sub {
    my $url  = $source->offer('slow-retry', { status => 500 });
    my $made = import_of($url);
    my $seen = wait_for(sub {
        my $job = api('GET', "/jobs/$made->{job}{id}", key => $shop->{token})->{json};
        return $job->{attempts} >= 1 && $job->{status} ne 'running' ? $job : undef;
    }, 10, 'the first attempt');
    is $seen->{error}{code}, 'source_unavailable', 'the reason shows while it waits';
    my $job = wait_job($shop, $made->{job}{id});
    my ($row) = sql("SELECT finished_at - started_at FROM job WHERE id = '$job->{id}'");
    cmp_ok $row->[0], '>=', 150_000, 'between three attempts it waits at least 50 and 100 ms';
};

# --- bodies ---------------------------------------------------------------------------------------

# A file of more than 1 MB is requested twice: the first answer only shows that the import belongs
# to the lane of large ones.
subtest 'a transfer that is cut goes on where it was cut' => sub {
    my $url = $source->offer('cut', { size => 3 * MB, etag => '"one"', cut => 2 * MB },
        {}, { cut => undef });
    succeeds 'it is whole in the end', $url, $large, 3 * MB;
    my @requests = $source->requests('cut');
    my ($resumed) = grep { defined $_->{range} && $_->{range} >= MB } @requests;
    ok $resumed, 'a range was asked for' or diag explain \@requests;
    is $resumed->{if_range}, '"one"', 'on condition that the file is still the same';
    my $sent = $source->sent('cut');
    my ($first) = $source->requests('cut');
    cmp_ok $sent - $first->{sent}, '<', 3.1 * MB, 'hardly a byte was sent twice';
};

subtest 'a source that changed its file in between is read anew' => sub {
    my $url = $source->offer('changed', { size => 3 * MB, etag => '"one"', cut => 2 * MB }, {},
        { etag => '"two"', version => 2, cut => undef });
    succeeds 'with the new bytes alone', $url, MDL::Source::sha256(3 * MB, 2), 3 * MB;
};

# The rest of another file, whose entity tag says that it is the same.
subtest 'a source that tells another size under the same entity tag is read anew' => sub {
    my $url = $source->offer('another-size', { size => 900 * KB, etag => '"one"', cut => 500 * KB },
        { size => 800 * KB, version => 2, cut => undef });
    succeeds 'with the new bytes alone', $url, MDL::Source::sha256(800 * KB, 2), 800 * KB;
    is scalar(my @requests = $source->requests('another-size')), 3,
        'since it is asked for the whole file once more';
};

subtest 'a source without a strong entity tag is read anew' => sub {
    my $url = $source->offer('weak', { size => 900 * KB, etag => 'W/"one"', cut => 500 * KB },
        { cut => undef });
    succeeds 'and comes out right', $url, MDL::Source::sha256(900 * KB), 900 * KB;
    is scalar(grep { defined $_->{range} } $source->requests('weak')), 0, 'no range was asked for';
};

subtest 'a source that ignores ranges is read anew' => sub {
    my $url = $source->offer('no-range', { size => 900 * KB, etag => '"one"', cut => 500 * KB },
        { cut => undef, ranges => 0 });
    succeeds 'and comes out right', $url, MDL::Source::sha256(900 * KB), 900 * KB;
};

fails 'a source that is cut each time fails in the end',
    $source->offer('cut-always', { size => 500 * KB, cut => 100 * KB }), 'source_unavailable', 3;
# It could be cut and look whole: a checksum tells.
for my $protocol ('HTTP/1.0', 'HTTP/1.1') {
    my $name = 'unknown-' . substr $protocol, -1;
    my $url = $source->offer($name, { size => 100 * KB, length => 'none', protocol => $protocol });
    fails "a body of $protocol that ends with the connection is refused", $url, 'source_refused', 1,
        says => qr/^localhost does not say how long the file is, .*sha256/;
    succeeds 'unless its checksum was given', $url, $small, 100 * KB, sha256 => $small;
}
succeeds 'one that was cut is tried again then',
    $source->offer('unknown-cut', { size => 100 * KB, length => 'none', cut => KB },
        { cut => undef }),
    $small, 100 * KB, sha256 => $small;
succeeds 'a length that is there twice, in one line, is a length',
    $source->offer('list',
        { size => 100 * KB, length => 'none', headers => ['Content-Length: 102400, 102400'] }),
    $small, 100 * KB;
fails 'an encoded body is refused',
    $source->offer('encoded', { size => 100 * KB, headers => ['Content-Encoding: gzip'] }),
    'source_refused', 1;
fails 'a size over the limit is refused when it is announced',
    $source->offer('announced', { size => 8 * MB + 1 }), 'source_too_large', 1;
cmp_ok $source->sent('announced'), '<', MB, 'and hardly read';
fails 'a size over the limit is refused when it is not announced',
    $source->offer('unannounced', { size => 100 * MB, length => 'chunked', rate => 50 * MB }),
    'source_too_large', 1;
cmp_ok $source->sent('unannounced'), '<', 30 * MB, 'and not read to its end';
succeeds 'a file of just the limit is taken', $source->offer('limit', { size => 8 * MB }),
    MDL::Source::sha256(8 * MB), 8 * MB;
fails 'bytes with another SHA-256 than was announced are not taken',
    $source->offer('mismatch', { size => 300 * KB, version => 'x' }), 'checksum_mismatch', 1,
    sha256 => 'ab' x 32;
ok !-e blob_path(MDL::Source::sha256(300 * KB, 'x')), 'nor stored';
succeeds 'bytes with the SHA-256 that was announced are taken', $target, $small, 100 * KB,
    sha256 => $small;

# --- what the source calls its file, and pages in its place --------------------------------------

subtest 'the file has the name that the source gives it' => sub {
    my $named = sub {
        my ($name, $disposition, %more) = @_;
        my $made = import_of($source->offer($name, { size => 100,
            headers => ["Content-Disposition: $disposition"] }) . '?export=download', %more);
        my $job = wait_job($shop, $made->{job}{id});
        is $job->{status}, 'succeeded', $disposition or diag explain $job;
        my $asset = api('GET', "/assets/$made->{asset}{id}", key => $shop->{token})->{json};
        return ($asset->{filename}, $asset->{title});
    };
    is_deeply [
        $named->('uc', q{attachment; filename="a.zip"; filename*=UTF-8''%e2%82%ac%20rates.zip}) ],
        [ ("\x{20ac} rates.zip") x 2 ],
        'in place of the last segment of the URL, and so is the title';
    is_deeply [ $named->('uc2', 'attachment; filename="../../a.zip"', title => 'Mine') ],
        [ 'a.zip', 'Mine' ], 'of a path the end alone; a title that was given stays';
    is_deeply [ $named->('uc3', 'attachment; filename="a.zip"', filename => 'mine.zip') ],
        [ 'mine.zip', 'mine.zip' ], 'a filename that was given stays';
    is_deeply [ $named->('uc4', 'attachment') ], [ 'uc4', 'uc4' ], 'without one the URL decides';
    my $made = import_of($source->offer('uc5', { size => 100, hold => 10,
        headers => ['Content-Disposition: attachment; filename=a.zip'] }));
    is api('PATCH', "/assets/$made->{asset}{id}", key => $shop->{token},
        json => { filename => 'b.zip' })->{status},
        200, 'an asset is renamed while it is imported';
    $source->release('uc5');
    wait_job($shop, $made->{job}{id});
    is api('GET', "/assets/$made->{asset}{id}", key => $shop->{token})->{json}{filename}, 'b.zip',
        'and keeps that name';
};

sub page_of
{
    my ($name, @headers) = @_;
    return $source->offer($name, { body => "<!doctype html><p>$name", size => undef,
        headers => [ 'Content-Type: text/HTML; charset=utf-8', @headers ] });
}

for ([ 'view' => {} ], [ 'book.zip' => {} ], [ 'open' => { filename => 'book.pdf' } ],
    [ 'index.html' => { filename => 'book.pdf' } ]) {
    my ($name, $more) = @$_;
    fails "a page of HTML that comes for $name is not the file", page_of($name),
        'source_is_html', 1,
        says =>
            qr/^localhost sent a page of HTML in place of the file, .*content_type as text\/html/,
        %$more;
}
for ([ 'page.html' => {} ], [ 'page' => { filename => 'manual.HTM' } ],
    [ 'page2' => { content_type => 'text/html' } ]) {
    my ($name, $more) = @$_;
    is +(done(page_of($name), %$more))[0]{status}, 'succeeded',
        "a page that is the file is taken: $name";
}
is +(done(page_of('page3', 'Content-Disposition: attachment; filename=a.html')))[0]{status},
    'succeeded', 'so is one whose name the source says';

subtest 'a URL may have 8,192 characters' => sub {
    my $url = $source->offer('presigned', { size => 10 }) . '?X-Amz-Security-Token=';
    my $long = $url . 'x' x (8192 - length $url);
    is +(done($long))[0]{status}, 'succeeded', 'as one that is signed with a session has thousands';
    is length(($source->requests('presigned'))[0]{path}),
        length($long) - length("http://localhost:$source->{port}/"), 'the source gets all of it';
    is api('POST', '/assets', key => $shop->{token}, json => { source_url => "${long}x" })
        ->{status}, 400, 'and no more';
};

# --- many at once ---------------------------------------------------------------------------------

subtest 'small imports do not wait for large ones' => sub {
    my @names = map { "slow-$_" } 1 .. 9;
    my @made  = map {
        import_of($source->offer($_, { size => 4 * MB, etag => qq("$_"), version => $_,
            hold => 2 * MB,
            rate => 20 * MB }))
    } @names;
    my $running = wait_for(sub {
        my @begun = grep { -s $_ } partial_files();
        return @begun == 8;
    }, 60, 'eight transfers at once');
    ok $running, 'eight large ones are running';
    my $began = time;
    my ($job) = done($source->offer('quick', { size => KB }));
    diag sprintf 'a small import beside eight large ones took %.0f ms', 1000 * (time - $began);
    is $job->{status}, 'succeeded', 'a small one succeeds meanwhile';
    ok !grep({ $_->{status} eq 'succeeded' }
        map { api('GET', "/jobs/$_->{job}{id}", key => $shop->{token})->{json} } @made),
        'while none of the large ones has ended';
    $source->release($_) for @names;
    my @ends = map { wait_job($shop, $_->{job}{id}, 60) } @made;
    is_deeply [ map { $_->{status} } @ends ], [ ('succeeded') x 9 ],
        'all of them succeed afterwards'
        or diag explain \@ends;
    is_deeply [ partial_files() ], [], 'no partial file is left';
};

subtest 'progress can be seen and only grows' => sub {
    my $made = import_of($source->offer('progress',
        { size => 6 * MB, etag => '"p"', version => 'p', rate => 2.5 * MB, hold => 3 * MB }));
    my @seen;
    wait_for(sub {
        my $job = api('GET', "/jobs/$made->{job}{id}", key => $shop->{token})->{json};
        push @seen, $job->{progress}
            if !@seen || $seen[-1]{bytes_received} != $job->{progress}{bytes_received};
        $source->release('progress') if $job->{progress}{bytes_received};
        return $job->{status} eq 'succeeded';
    }, 60, 'the end of a slow import');
    my @received = map { $_->{bytes_received} } @seen;
    my @between  = grep { $_->{bytes_received} > 0 && $_->{bytes_received} < 6 * MB } @seen;
    ok @between > 0, "it is seen on its way (@received)";
    is_deeply \@received, [ sort { $a <=> $b } @received ], 'it only grows';
    is_deeply [ grep { $_->{bytes_total} != 6 * MB } @between ], [],
        'the total is known from the start';
    ok !grep({ $_->{percent} < 0 || $_->{percent} > 100 } grep { defined $_->{percent} } @seen),
        'the percentage makes sense';
};

subtest 'a transfer that stalls is given up' => sub {
    my $extra = $server->{extra};
    $server->configure(extra => "${extra}DownloadsIngestStallTimeout 1\n");
    httpd_restart();
    my $made = import_of($source->offer('stalled', { size => 500 * KB, hold => KB }));
    my $job  = wait_job($shop, $made->{job}{id}, 60);
    is $job->{status}, 'failed', 'the job fails';
    is $job->{error}{code}, 'source_timeout', 'with source_timeout';
    is $job->{attempts}, 3, 'after 3 attempts';
    is_deeply [ partial_files() ], [], 'no partial file is left';
    $server->configure(extra => $extra);
    httpd_restart();
};

# --- addresses ------------------------------------------------------------------------------------

# The machine's own name usually resolves to another address than 127.0.0.1; otherwise the source is
# on ::1, to which that name then does not resolve.
sub addresses_of
{
    my ($error, @found) = getaddrinfo(shift, '', { socktype => SOCK_STREAM });
    return map { (getnameinfo($_->{addr}, NI_NUMERICHOST))[1] } @found;
}

subtest 'an address that is not allowed is refused when it is connected to' => sub {
    my $name      = hostname();
    my @addresses = addresses_of($name);
    plan skip_all => "this machine's name $name leads nowhere" if !@addresses;
    my ($address) = grep { my $one = $_; !grep { $_ eq $one } @addresses } '127.0.0.1', '::1';
    plan skip_all => "this machine's name leads to both loopback addresses" if !$address;
    my $inner = eval { MDL::Source->new(address => $address) };
    plan skip_all => "this machine has no $address" if !$inner;

    $server->stop;
    $server->configure(
        without => qr/^DownloadsIngestAllowNetwork/,
        extra   => "$server->{extra}DownloadsIngestAllowHost $name\n"
            . "DownloadsIngestAllowNetwork $address/" . ($address =~ /:/ ? 128 : 32) . "\n"
    );
    $server->start;
    succeeds 'the address that is allowed is connected to', $inner->offer('inner',
        { size => 100 * KB }),
        $small, 100 * KB;
    my $outer = $inner->url('secret') =~ s/localhost/$name/r;
    fails 'a name that leads to another is refused', $outer, 'source_address_forbidden', 1;
    fails 'a redirect to such a name too',
        $inner->offer('redirect', { status => 302, headers => ["Location: $outer"] }),
        'source_address_forbidden', 1;
    is_deeply [ $inner->requests('secret') ], [], 'no request reached it';
};

$server->stop;
done_testing;
