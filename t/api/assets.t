# Importing files (contract, sections 6 and 9): POST /assets, GET /jobs/{id}, as an integrator sees
# them.
#
# once: openapi.t makes each of these requests on both databases; t/worker has the imports
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use MDL::Contract;
use MDL::Source;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $token = $shop->{token};
my $true  = JSON::PP::true();

sub import_from
{
    my (%members) = @_;
    return api('POST', '/assets', key => $token, json => \%members);
}

# GET /jobs/{id}, as api() returns it: { json, headers … }.
sub job { my ($id, $of) = @_; return api('GET', "/jobs/$id", key => ($of // $shop)->{token}) }

# The asset's file in a new order.
sub file_of
{
    my ($asset_id) = @_;
    my $mapping = mapping_of($shop, [$asset_id]);
    my $reply = assign($shop, digits(), [ $mapping->{storefront_product_id} ]);
    return $reply->{json}{assignments}[0]{files}[0];
}

# A column of an asset in the database; '' for NULL.
sub column
{
    my ($name, $asset_id) = @_;
    my ($row) = sql("SELECT $name FROM asset WHERE id = $asset_id");
    return $row->[0] // '';
}

# --- the main job --------------------------------------------------------------------------------

my $bytes = join '', map { chr(($_ * 7) % 256) } 1 .. 5000;
my $name  = "assets-$$.jpg";
my $url   = source($name, $bytes);
my $type  = page('GET', "/source/$name")->{headers}{'content-type'};
my $reply = import_from(source_url => $url);
is_answer($reply, 202, 'an import is accepted');
is(join(' ', sort keys %{ $reply->{json} }), 'asset job', 'the answer has asset and job');
my ($asset, $queued) = @{ $reply->{json} }{qw(asset job)};
is_shape($asset,  'asset', 'the asset');
is_shape($queued, 'job',   'the job');
like($reply->{headers}{location}, qr{^(?:http://[^/]+)?/api/v1/jobs/\Q$queued->{id}\E\z},
    'Location names the job');
is_deeply(
    [ @{$asset}{qw(status filename title content_type size sha256 category_id source_url
        version)} ],
    [ 'pending', $name, $name, undef, undef, undef, undef, $url, 1 ],
    'the initial state of the asset');
is($asset->{updated_at}, $asset->{created_at}, 'updated_at is created_at');
is($queued->{asset_id}, $asset->{id}, 'the job belongs to the asset');
is_deeply([ @{$queued}{qw(status attempts error started_at finished_at)} ],
    [ 'queued', 0, undef, undef, undef ], 'the initial state of the job');
is_deeply($queued->{progress}, { bytes_received => 0, bytes_total => undef, percent => undef },
    'nothing has arrived yet');
cmp_ok($queued->{max_attempts}, '>', 1, 'it has more than one attempt');
is($queued->{next_attempt_at}, $queued->{created_at}, 'it is due at once');

wait_job($shop, $queued->{id});
my $done = job($queued->{id});
is_answer($done, 200, 'the job can be polled');
is_shape($done->{json}, 'job', 'the job, done');
is_deeply([ @{ $done->{json} }{qw(id type status asset_id attempts error next_attempt_at)} ],
    [ $queued->{id}, 'asset_import', 'succeeded', $asset->{id}, 1, undef, undef ],
    'it has succeeded');
is_deeply($done->{json}{progress}, { bytes_received => 5000, bytes_total => 5000, percent => 100 },
    'all bytes have arrived');
is($done->{headers}{'retry-after'}, undef, 'there is no Retry-After');
cmp_ok($done->{json}{created_at}, 'le', $done->{json}{started_at}, 'it started after its creation');
cmp_ok($done->{json}{started_at}, 'le', $done->{json}{finished_at}, 'and finished after its start');
is_deeply(file_of($asset->{id}), {
    file_id => $asset->{id}, filename => $name, size => 5000, sha256 => sha256_hex($bytes),
    status => 'ready', downloads_used => 0, download_limit => 10,
}, 'the asset is ready, with size and SHA-256');
is(column('content_type', $asset->{id}), $type, 'its content type is the one that the source sent');
is($type, 'image/jpeg', 'a picture');

# --- members that the client sets ----------------------------------------------------------------

my %wanted = (
    source_url   => $url,
    filename     => "Bl\x{fc}mchen \x{1f33b} & Co.mp4",
    title        => "Der Film: \"\x{dc}ber\" <alles> \x{2026}",
    content_type => 'Video/X-Special; codecs="a, b"',
    sha256       => uc sha256_hex($bytes),
    category_id  => undef,
);
$reply = import_from(%wanted);
is_answer($reply, 202, 'every member is accepted');
is_deeply([ @{ $reply->{json}{asset} }{qw(source_url filename title content_type category_id)} ],
    [ @wanted{qw(source_url filename title content_type category_id)} ],
    'and answered as it was given');
is(wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded',
    'a SHA-256 in upper case is accepted');
is(column('content_type', $reply->{json}{asset}{id}), $wanted{content_type},
    "the source's content type does not replace the given one");
is(file_of($reply->{json}{asset}{id})->{filename}, $wanted{filename}, 'nor does its name');
isnt($reply->{json}{asset}{id}, $asset->{id}, 'importing the same URL twice makes two assets');

$reply = import_from(source_url => $url, filename => 'other.bin');
is($reply->{json}{asset}{title}, 'other.bin', 'the title defaults to the filename');
wait_job($shop, $reply->{json}{job}{id});
$reply = import_from(source_url => $url, title => 'A title');
is($reply->{json}{asset}{filename}, $name, 'the filename does not default to the title');
wait_job($shop, $reply->{json}{job}{id});
$reply = import_from(source_url => $url, filename => 'x' x 255, title => 'y' x 255);
is_answer($reply, 202, 'names of 255 bytes');
wait_job($shop, $reply->{json}{job}{id});

# --- the name in a URL ---------------------------------------------------------------------------

# The source answers 404 to these, but the filename is taken from the URL at once.
my %names = (
    '/source/none.pdf'                => 'none.pdf',
    '/source/none.pdf?name=x.zip#y'   => 'none.pdf',
    '/a/b/c/none'                     => 'none',
    '/caf%C3%A9%20menu.pdf'           => "caf\x{e9} menu.pdf",
    '/100%25.txt'                     => '100%.txt',
    '/a+b.txt'                        => 'a+b.txt',
    '/'                               => 'download',
    ''                                => 'download',
    '/folder/'                        => 'download',
    '/%2e%2e'                         => 'download',
    '/..%2Fetc%2Fpasswd'              => 'download',
    '/a%5Cb'                          => 'download',
    '/a%0D%0Ab'                       => 'download',
    '/%00'                            => 'download',
    '/caf%E9.pdf'                     => 'download',
    '/' . 'x' x 256                   => 'download',
);
my $nowhere = 'http://localhost:' . port();
my %pending;
for my $path (sort keys %names) {
    my $short = length $path > 60 ? length($path) . ' bytes' : "'$path'";
    my $accepted = import_from(source_url => "$nowhere$path");
    is($accepted->{json}{asset}{filename}, $names{$path}, "the name in $short")
        or diag($accepted->{body});
    $pending{$path} = $accepted->{json}{job}{id};
}
wait_job($shop, $_) for grep { defined } values %pending;

# --- hosts ---------------------------------------------------------------------------------------

unstored();
for my $host ('https://example.com/x', 'http://example.com/x', 'http://localhost.example.com/x',
    'http://xlocalhost/x', 'http://sub.localhost/x', 'ftp://localhost/x', 'gopher://localhost/x',
    'HTTPS://EXAMPLE.COM/x', 'http://example.com:8080/localhost', 'http://example.com/?localhost',
    'http://example.com/#@localhost')
{
    refused(import_from(source_url => $host), 422, 'source_host_not_allowed', $host, '/source_url');
}
my $stored = stored();
for my $host ('http://127.0.0.1/x', 'http://[::1]/x', 'http://2130706433/x', 'http://0x7f.1/x',
    'http://0177.0.0.1/x', 'http://127.1/x', 'http://localhost@127.0.0.1/x', 'data:text/plain,x',
    'file:///etc/passwd', 'file://localhost/etc/passwd')
{
    my $answer = import_from(source_url => $host);
    like($answer->{status}, qr/^4(?:00|22)\z/, "$host: refused without a job")
        or diag($answer->{body});
    is(pointers($answer), '/source_url', "$host: the member is named");
    is(stored(), $stored, "$host: nothing is stored");
}
refused(
    import_from(source_url => 'https://example.com/x', title => '', nonsense => 1),
    400, 'invalid_request', 'a host that is not allowed beside faulty members', '/title',
    '/nonsense'
);
refused(
    import_from(source_url => 'https://example.com/x', category_id => 5),
    422, 'source_host_not_allowed', 'the host is checked before the category',
    '/source_url'
);
is_answer(import_from(source_url => 'HTTP://LocalHost:' . port() . "/source/$name"), 202,
    'scheme and host are compared without case');

# --- how imports fail ----------------------------------------------------------------------------

my $missing = job($pending{'/source/none.pdf'});
is_shape($missing->{json}, 'job', 'a job that failed');
is($missing->{json}{status}, 'failed', 'an import of a missing source fails');
is($missing->{json}{error}{code}, 'source_not_found', 'and says why');
is($missing->{json}{next_attempt_at}, undef, 'it is not tried again');
is($missing->{headers}{'retry-after'}, undef, 'there is no Retry-After');
unlike($missing->{json}{error}{message}, qr/127\.0\.0\.1|::1/, 'the message has no address');

$reply = import_from(source_url => $url, sha256 => sha256_hex('something else'));
is_answer($reply, 202, 'an import with a wrong SHA-256 is accepted');
my $wrong = wait_job($shop, $reply->{json}{job}{id});
is($wrong->{status}, 'failed', 'the job fails');
is($wrong->{error}{code}, 'checksum_mismatch', 'with checksum_mismatch');
is_deeply([ @{ file_of($reply->{json}{asset}{id}) }{qw(status size sha256)} ],
    [ 'failed', undef, undef ], 'and its asset has no bytes');

# --- a running job -------------------------------------------------------------------------------

my $body = 'a' x 250 . 'b' x 750;
my $slow = MDL::Source->new;
$reply = import_from(source_url => $slow->offer('slow.bin',
    { body => $body, hold => 250, headers => ['Content-Type: application/x-slow'] }));
my $id = $reply->{json}{job}{id};
my $running = wait_for(sub {
    my $look = job($id);
    return $look->{json}{status} eq 'running' && $look->{json}{progress}{bytes_received}
        ? $look : undef;
}, 60, 'a job with progress');
is_shape($running->{json}, 'job', 'a running job');
is_deeply($running->{json}{progress}, { bytes_received => 250, bytes_total => 1000, percent => 25 },
    'it has progress');
is($running->{json}{attempts}, 1, 'it is the first attempt');
is($running->{json}{finished_at}, undef, 'it has not finished');
is($running->{json}{next_attempt_at}, undef, 'there is no next attempt');
like($running->{headers}{'retry-after'}, qr/^[1-9]\d*\z/, 'Retry-After says when to look again');
is(file_of($reply->{json}{asset}{id})->{status}, 'pending',
    'the asset is pending until all bytes have come');
$slow->release('slow.bin');
my $finished = wait_job($shop, $id);
is($finished->{status}, 'succeeded', 'the job succeeds');
is(file_of($reply->{json}{asset}{id})->{sha256}, sha256_hex($body),
    'with all of its bytes');
is(column('content_type', $reply->{json}{asset}{id}), 'application/x-slow',
    "and the source's content type");

$reply = import_of($shop, "assets-empty-$$.txt", '');
my $nothing = wait_job($shop, $reply->{json}{job}{id});
is($nothing->{status}, 'succeeded', 'an empty file can be imported');
is_deeply($nothing->{progress}, { bytes_received => 0, bytes_total => 0, percent => 100 },
    'its progress is 100 percent');
is_deeply([ @{ file_of($reply->{json}{asset}{id}) }{qw(size sha256)} ], [ 0, sha256_hex('') ],
    'its size is 0');

# --- the same bytes ------------------------------------------------------------------------------

my $twin = ready_asset($shop, "assets-twin-$$.unheard-of", $bytes);
is($twin->{sha256}, sha256_hex($bytes), 'an asset with the same bytes under another name');
my ($blobs) = sql("SELECT count(*) FROM blob WHERE sha256 = '$twin->{sha256}'");
is($blobs->[0], 1, 'the bytes are stored once');
is(column('content_type', $twin->{id}), '', 'without a type from the source the asset has none');

# --- other shops' jobs ---------------------------------------------------------------------------

my $other = new_shop();
sub without_id { my ($answer) = @_; return $answer->{body} =~ s/req_[\w@-]+/req/r }

my $foreign = job($queued->{id}, $other);
my $unknown = job('job_00000000000000000000000000', $other);
is_error($foreign, 404, 'job_not_found', "another shop's job");
is(without_id($foreign), without_id($unknown), 'is answered like an unknown job, byte for byte');
delete @{ $_->{headers} }{qw(date x-request-id)} for $foreign, $unknown;
is_deeply($foreign->{headers}, $unknown->{headers}, 'with the same headers');
is(without_id(job($_)), without_id($unknown), "the job '$_'")
    for 'nonsense', uc $queued->{id}, $queued->{id} . '0', 'job_', '%20', '-1', '%27';

# The API does not show the jobs of emails.
my $mapping = mapping_of($shop, [ $asset->{id} ]);
is_answer(assign($shop, digits(), [ $mapping->{storefront_product_id} ], send_email => $true,
    customer => { email => "assets-$$\@buyer.example" }), 201, 'an order with an email');
my ($email) = sql("SELECT id FROM job WHERE shop_id = $shop->{shop_id} AND type = 'email'");
is_error(job($email->[0]), 404, 'job_not_found', 'the job of an email');

done_testing();
