# What the operator learns of the object store: `downloadsctl check` names what is wrong in each
# broken set-up, `GET /health/storage` says whether it answers, and a bucket of somebody else is
# refused at the start.
#
# once: the database's part is in t/unit/storage_identity.c
use strict;
use warnings;

use Digest::MD5 qw(md5_base64);
use JSON::PP ();
use Test::More;

use MDL::Instance;
use MDL::ObjectProxy;
use MDL::Ports;
use MDL::Swift;
use MDL::Test;

my $store = MDL::Swift->new;
my $proxy = MDL::ObjectProxy->new($store);
my $server = MDL::Instance->new(tls => 1, extra => lines());
my $folder = $server->{folder};
my $free   = free_port();
my $shop;

# The directives of a store; others replace those of the proxy.
sub lines
{
    my (%other) = @_;
    my %line = (Store => $proxy->url, KeyFile => $proxy->key_file, %other);
    return "DownloadsPollInterval 1\nDownloadsMailFrom shop\@shop.test\n"
        . join '', map { "DownloadsObject$_ $line{$_}\n" } sort keys %line;
}

sub key_file
{
    my ($name, @lines) = @_;
    MDL::Instance::write_file("$folder/$name", join '', map { "$_\n" } @lines);
    chmod 0600, "$folder/$name";
    return "$folder/$name";
}

sub set { return $server->configure(extra => lines(@_)) }

# The lines of `check` that have a fault, by their names, and the warnings.
my %environment;
sub faults
{
    local @ENV{ keys %environment } = values %environment;
    my ($code, $json, $text)
        = ctl('check', '--httpd', "$ENV{HTTPD} -f $folder/httpd.conf");
    # behind lines of the log
    $json //= JSON::PP->new->utf8->decode($text =~ s/^.*?(?=^\{)//msr);
    my %faults = map { $_->{name} => $_->{message} } grep { !$_->{ok} } @{ $json->{checks} };
    return (\%faults, $json->{warnings});
}

sub has_line
{
    my ($name) = @_;
    return scalar grep { $_->{name} eq $name } @{ (ctl('check'))[1]{checks} };
}

# --- at the start --------------------------------------------------------------------------------

subtest 'a store that is away stops nothing' => sub {
    $proxy->rule(any => { refuse => 1 });
    $server->start;
    $shop = new_shop();
    like MDL::Test::slurp(error_log()), qr/MDL0355: .*object store/, 'the log tells';
    my $reply = api('GET', '/health/storage');
    is_deeply [ $reply->{status}, $reply->{json} ],
        [ 503, { status => 'failing', folder => 'ok', objects => 'failing' } ],
        'so does /health/storage' or diag $reply->{body};
    is api('GET', '/health')->{status}, 200, 'which balancers do not ask';
    # Once the background process has said that it works.
    ok wait_for(sub { api('GET', '/health/ready')->{status} == 200 }, 60, 'readiness'),
        'nor does a readiness check see it';
    is_deeply [ sql('SELECT place FROM storage') ], [ ['folder'] ], 'no bucket is adopted yet';
    $proxy->heal;
    wait_for(sub { api('GET', '/health/storage')->{status} == 503 }, 20, 'an answer');
};

my $identity;
subtest 'a new bucket gets the identity of the database' => sub {
    httpd_graceful();
    ($identity) = map { $_->[0] } sql(q{SELECT identity FROM storage WHERE place = 'objects'});
    like $identity, qr/^storage_\w{26}$/, 'which the database knows';
    is $store->get('identity'), "$identity\n", 'and so does the bucket';
    my $reply;
    wait_for(sub { $reply = api('GET', '/health/storage'); $reply->{status} == 200 }, 20,
        'a healthy storage');
    is_deeply $reply->{json}, { status => 'ok', folder => 'ok', objects => 'ok' },
        '/health/storage is ok';
    $proxy->forget;
    my $began = time;
    parallel(8, sub { api('GET', '/health/storage') for 1 .. 20; 1 });
    my %count = $proxy->counts;
    cmp_ok $count{get} // 0, '<=', 2 + (time - $began) / 5, 'and asks once in five seconds';
};

# --- downloadsctl check --------------------------------------------------------------------------

# What is broken; how; the words of the line "objects".
my @broken = (
    [ 'another secret key', sub {
            set(KeyFile => key_file('secret-key', $store->{access_key}, 'wrong')) },
        qr/SignatureDoesNotMatch.*secret key in DownloadsObjectKeyFile/ ],
    [ 'an access key that nobody knows', sub {
            set(KeyFile => key_file('access-key', 'nobody:else', $store->{secret_key})) },
        qr/(?:InvalidAccessKeyId|SignatureDoesNotMatch).* key in DownloadsObjectKeyFile/ ],
    [ 'another region', sub { set(Region => 'mars-1') },
        qr/AuthorizationHeaderMalformed.*DownloadsObjectRegion/ ],
    [ 'a bucket that does not exist', sub { set(Store => $proxy->{origin} . '/no-such-bucket') },
        qr/NoSuchBucket.*bucket in DownloadsObjectStore/ ],
    [ 'a port on which nobody listens', sub { set(Store => "http://127.0.0.1:$free/bucket") },
        qr/refuses connections.*Correct DownloadsObjectStore/ ],
    [ 'a host without an address', sub { set(Store => 'https://store.invalid/bucket') },
        qr/store\.invalid .*Correct DownloadsObjectStore/ ],
    [ 'a certificate that is not trusted',
        sub { set(Store => 'https://localhost:' . $server->tls_port . '/bucket') },
        qr/certificate/i ],
    [ 'a store that is down', sub { $proxy->rule(any => { status => 503, code => 'SlowDown' }) },
        qr/SlowDown/ ],
    [ 'a full store', sub { $proxy->rule(put => { status => 507 }) },
        qr/No object can be written.*full/ ],
    [ 'answers that are cut', sub { $proxy->rule(get => { status => 200, body => 'no range' }) },
        qr/No part of an object can be read/ ],
    map({ my ($kind, $action) = @$_;
        [ "a policy without $action",
            sub { $proxy->rule($kind => { status => 403, code => 'AccessDenied' }) },
            qr/AccessDenied.*policy allow \Q$action\E\./ ] }
        [ put => 's3:PutObject' ],   [ get => 's3:GetObject' ],  [ list => 's3:ListBucket' ],
        [ delete => 's3:DeleteObject' ], [ abort => 's3:AbortMultipartUpload' ],
        [ parts => 's3:ListMultipartUploadParts' ],
        [ uploads => 's3:ListBucketMultipartUploads' ]),
    [ 'a bucket of another database', sub { $store->put('identity', 'storage_' . '1' x 26) },
        qr/The database's objects are in the bucket \Q$identity\E, and http.* is storage_111/ ],
);

@broken = grep { $_->[0] ne 'another region' } @broken if MDL::Swift::takes_any_region();

# Swift knows no lifecycle, so the check asks for none there.
my $rule = '<LifecycleConfiguration><Rule><ID>a</ID><Prefix></Prefix><Status>Enabled</Status>'
    . '<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation>'
    . '</AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>';
$store->request('PUT', undef, 'lifecycle=', body => $rule,
    headers => [ 'Content-MD5: ' . md5_base64($rule) . '==' ]);

my ($faults, $warnings) = faults();
is_deeply [ $faults, $warnings ], [ {}, [] ], 'a set-up that works: nothing is found'
    or diag explain $faults, $warnings;
is has_line('objects'), 1, 'and it has a line';
is_deeply [ [ keys %{ { $store->objects } } ], [ $store->uploads ] ], [ ['identity'], [] ],
    'the check leaves nothing behind';

for my $case (@broken) {
    my ($name, $break, $words) = @$case;
    $break->();
    ($faults) = faults();
    delete @$faults{ 'files', 'httpd' };    # looked at with the bucket
    my $right = join(' ', sort keys %$faults) eq 'objects' && $faults->{objects} =~ $words;
    ok $right, "found: $name" or diag explain $faults;
    unlike join(' ', values %$faults), qr/\Q$store->{secret_key}\E|Signature=/, 'without a secret';
    $proxy->heal;
    $store->put('identity', "$identity\n");
    set();
}

subtest 'other faults' => sub {
    my $open = key_file('open', $store->{access_key}, $store->{secret_key});
    chmod 0644, $open;
    set(KeyFile => $open);
    ($faults) = faults();
    like $faults->{settings}, qr/DownloadsObjectKeyFile: .*chmod 0600/,
        'a key that others may read';
    $server->configure(extra => "DownloadsMailFrom shop\@shop.test\n");
    is has_line('objects'), 0, 'without a store there is no such line';
    set();
};

subtest 'what works and is worth a warning' => sub {
    # The second request of the kind asks for the lifecycle.
    $proxy->rule(list => { after => 1, status => 404, code => 'NoSuchLifecycleConfiguration' });
    ($faults, $warnings) = faults();
    is_deeply $faults, {}, 'a bucket without a lifecycle';
    like "@$warnings", qr/no lifecycle rule for unfinished multipart uploads/, 'which it says';
    $proxy->rule(list => { after => 1, status => 200, body => '<LifecycleConfiguration><Rule>'
            . '<AbortIncompleteMultipartUpload/></Rule></LifecycleConfiguration>' });
    is_deeply [ faults() ], [ {}, [] ], 'one that aborts uploads is right';
    $proxy->heal;
    my ($library) = glob '/usr/lib/*/faketime/libfaketimeMT.so.1';
    SKIP: {
        skip 'libfaketime and sanitizers do not go together', 2 if $ENV{SANITIZER_RUNTIME};
        %environment = (LD_PRELOAD => $library, FAKETIME => '+10m', DONT_FAKE_MONOTONIC => 1);
        ($faults, $warnings) = faults();
        %environment = ();
        is $faults->{objects}, undef, 'a clock that is ten minutes ahead';
        like "@$warnings", qr/clock of this machine is \d+ seconds ahead/, 'which it says';
    }
};

# --- somebody else's bucket ----------------------------------------------------------------------

subtest 'a bucket of somebody else' => sub {
    my $other = MDL::Swift->new;
    $other->put('identity', 'storage_' . '2' x 26 . "\n");
    set(Store => $other->url, KeyFile => $other->key_file);
    my $log = error_log_size();
    httpd_graceful();
    like error_log_since($log), qr/MDL0350: .*\Q$identity\E.*storage_222.*MDL0351/s,
        'is refused at a graceful restart, with both identities';
    my $reply = api('POST', '/assets/uploads', key => $shop->{token},
        json => { filename => 'a.pdf', size => 10 });
    is $reply->{status}, 503, 'nothing is stored' or diag $reply->{body};
    wait_for(sub { error_log_since($log) =~ /MDL0320: .*\Q$identity\E/ }, 20,
        'the background process to refuse it');
    is_deeply { $other->objects }, { identity => 35 }, 'nothing is written there';
    $server->stop;
    $log = error_log_size();
    $server->httpd('-k', 'start');
    wait_for(sub { error_log_since($log) =~ /MDL0351/ && !$server->processes }, 20, 'the refusal');
    pass 'a start is refused';
    $other->put('identity', "$identity\n");
    $server->start;
    is api('GET', '/health/storage')->{status}, 200,
        'with the identity of the database it takes the place of the other';
};

subtest 'a new database and the bucket of another' => sub {
    my %store = (Store => $store->url, KeyFile => $store->key_file);
    my $node = MDL::Instance->new(extra => lines(%store));
    my ($code) = $node->aim->httpd('-k', 'start');
    wait_for(sub { $node->error_log =~ /MDL0351/ && !$node->processes }, 20, 'the refusal');
    like $node->error_log, qr/MDL0350: The bucket \S+ belongs to another database/, 'is refused';
    $store->delete('identity');
    $node->start;
    isnt $store->get('identity'), "$identity\n", 'until its identity is deleted';
    $node->stop;
};

$server->aim;
$server->stop;
done_testing;
