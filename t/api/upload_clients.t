# Uploads (contract, section 7) by common clients: tus-js-client, Uppy in a browser, curl. The
# client or the server is killed during an upload, and the upload goes on.
#
# once: the bytes of an upload do not go through the database
# long: it waits for clients that are killed
use strict;
use warnings;

use Digest::SHA qw(sha1_base64 sha256_hex);
use Fcntl qw(F_SETFD);
use IO::Socket::INET;
use JSON::PP;
use List::Util qw(sum0);
use MDL::Instance;
use MDL::Objects;
use MDL::Path;
use MDL::Test;
use MDL::Upload;
use POSIX ();
use Test::More;

use constant MB => 1024 * 1024;

# The page's port is opened before the server starts, because the origin is in its configuration.
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 16)
    or die "no free port: $!\n";
my $page_port = $listener->sockport;

my $server = MDL::Instance->new(extra => <<"END")->start;
DownloadsUploadOrigin http://127.0.0.1:$page_port
SetEnvIf Request_URI "^/u/(.{24})" token=\$1
LogFormat "%m %P %I %{token}e %>s" received
CustomLog "\@t_logs\@/received_log" received
END
my $shop = new_shop();

my $big    = new_file('big',    ($ENV{FULL} ? 500 : 200) * MB);
my $middle = new_file('middle', ($ENV{FULL} ? 320 : 130) * MB);
my $small  = new_file('small',  60 * MB);

# --- files ---------------------------------------------------------------------------------------

# Makes a file of random bytes: { path, name, size, sha256 }.
sub new_file
{
    my ($name, $size) = @_;
    my $path = logs_dir() . "/$name";
    system("head -c $size /dev/urandom >'$path'") == 0 or die "no $path\n";
    return { path => $path, name => $name, size => $size, sha256 => sha256_of($path) };
}

sub sha256_of
{
    my ($path) = @_;
    my ($sha256) = qx(openssl dgst -sha256 -r '$path') =~ /^([0-9a-f]{64}) /
        or die "no SHA-256 of $path\n";
    return $sha256;
}

sub partial_files { return glob storage_dir() . '/partial/*' }

# Completes an upload, waits for its job if there is one, and checks the asset.
sub completes
{
    my ($upload, $file, $status) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $reply = complete_upload($shop, $upload);
    is $reply->{status}, $status, "complete: $status" or diag $reply->{body};
    my $job = $reply->{json}{job};
    if ($job) {
        my $ended = wait_job($shop, $job->{id}, 60);
        is $ended->{status}, 'succeeded', 'the job that hashes it succeeds' or diag explain $ended;
    }
    my $asset = api('GET', "/assets/$reply->{json}{asset}{id}", key => $shop->{token})->{json};
    is_deeply [ @$asset{qw(status size sha256)} ], [ 'ready', @$file{qw(size sha256)} ],
        'the asset has the size and the SHA-256 of the file';
    is sha256_of(blob_file($file)), $file->{sha256}, 'and so does what is stored'
        if !in_objects();
    wait_for(sub { !partial_files() }, 60, 'no partial file to be left');
    unlink blob_file($file);
    return;
}

# --- clients -------------------------------------------------------------------------------------

# Starts a program whose output goes to a file.
sub run
{
    my (@command) = @_;
    my $output = logs_dir() . '/client';
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  $output;
        open STDERR, '>&', \*STDOUT;
        fcntl $listener, F_SETFD, 0;
        exec @command or POSIX::_exit(127);
    }
    return { pid => $pid, output => $output };
}

# Waits for the program; returns its exit status and its output.
sub ended
{
    my ($client) = @_;
    waitpid $client->{pid}, 0;
    return ($?, MDL::Test::slurp($client->{output}));
}

sub tus_js_client
{
    my ($url, $file, $piece) = @_;
    return run('tools/node', 't/node/tus-upload.mjs', $url, $file->{path}, $piece);
}

# A path that carries so many bytes to the server until it is released, and the upload's URL by it.
sub held_path
{
    my ($upload, $bytes) = @_;
    my $path = MDL::Path->new(to => port(), up => $bytes);
    return ($path, $upload->{upload_url} =~ s{//[^/]+}{'//127.0.0.1:' . $path->port}er);
}

sub succeeds
{
    my ($client, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($status, $output) = ended($client);
    is $status, 0, $name or diag $output;
    return $output;
}

sub wait_offset
{
    my ($upload, $bytes) = @_;
    my $offset;
    wait_for(sub { ($offset = offset_of($upload) // 0) >= $bytes }, 120,
        "$bytes bytes of an upload");
    return $offset;
}

# Kills a client once $bytes bytes have arrived, $before of them before it; returns how many have by
# then.
sub killed_after
{
    my ($start, $upload, $bytes, $before) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $more = in_objects() ? 20 * MB : MB;    # the offset in an object grows by parts
    my ($path, $url) = held_path($upload, $bytes - $before + $more);
    my $client = $start->($url);
    my $offset = wait_offset($upload, $bytes);
    kill KILL => $client->{pid};
    my ($status, $output) = ended($client);
    is $status & 127, 9, "killed when $offset bytes had arrived" or diag $output;
    return $offset;
}

# --- the server's side ---------------------------------------------------------------------------

# The finished requests of a method (and path, if given) since the log had a given length: { child,
# bytes, token, status }, where bytes includes the request's head.
sub received
{
    my ($method, $since, $path) = @_;
    my @lines = split /\n/, substr MDL::Test::slurp(logs_dir() . '/received_log'), $since;
    return map { !defined $path || index($path, "/u/$_->{token}") == 0 ? $_ : () }
        map { /^$method (\d+) (\d+) (\S+) (\d+)$/
            ? { child => $1, bytes => $2, token => $3, status => $4 } : () }
            @lines;
}

# Without those of a client that came while the request before, which was cut, still had the upload.
sub bytes_received { return sum0 map { $_->{bytes} } grep { $_->{status} != 423 } received(@_) }

sub log_size { return -s logs_dir() . '/received_log' // 0 }

# The peak memory of httpd's children, in bytes.
sub peak_memory
{
    my ($most) = sort { $b <=> $a }
        map { (MDL::Test::slurp("/proc/$_/status") // '') =~ /^VmHWM:\s+(\d+) kB/m ? $1 * 1024 : 0 }
        server_pids();
    return $most;
}

# --- tests ---------------------------------------------------------------------------------------

for (1 .. 4) {
    my $upload = begin_upload($shop);
    succeeds(run('curl', '-sSf', '-T', $small->{path}, $upload->{upload_url}), 'a first upload');
    completes($upload, $small, 201);
}
my $memory = peak_memory();

for my $way ([ 'in pieces of 8 MB', 8 * MB ], [ 'in one request', 0 ]) {
    my ($how, $piece) = @$way;
    subtest "tus-js-client is killed five times while it uploads a large file $how" => sub {
        my $upload = begin_upload($shop, size => $big->{size});
        my $since  = log_size();
        my $offset = 0;
        for my $fifth (0 .. 4) {
            my $point = int(($fifth + 0.2 + rand 0.7) / 6 * $big->{size});
            my $next  = killed_after(sub { tus_js_client($_[0], $big, $piece) }, $upload,
                $point > $offset ? $point : $offset + MB, $offset);
            cmp_ok $next, '>', $offset, 'a new process went on from its offset';
            $offset = $next;
        }
        like succeeds(tus_js_client($upload->{upload_url}, $big, $piece),
            'the sixth process completes the upload'), qr/done/,
            'and says so';
        cmp_ok bytes_received('PATCH', $since), '<', $big->{size} + 5 * MB,
            'the server has received hardly any byte twice';
        completes($upload, $big, in_objects() ? 201 : 202);
    };
}

subtest 'curl -T puts a large file' => sub {
    my $upload = begin_upload($shop, size => $middle->{size}, sha256 => $middle->{sha256});
    my $since  = log_size();
    killed_after(sub { run('curl', '-sS', '-T', $middle->{path}, $_[0]) }, $upload, 30 * MB, 0);
    wait_for(sub { received('PUT', $since) }, 60, 'the end of the request that was cut off');
    succeeds(run('curl', '-sSf', '-T', $middle->{path}, $upload->{upload_url}),
        'a PUT replaces one that was cut off');
    my ($status, $output) = ended(run('curl', '-sS', '-T', $middle->{path}, $upload->{upload_url}));
    like $output, qr/"upload_finished"/, 'a finished PUT can not be replaced';
    completes($upload, $middle, 201);
};

subtest 'curl -T puts what it reads from a pipe' => sub {
    my $upload = begin_upload($shop);
    succeeds(run('sh', '-c', "cat '$small->{path}' | curl -sSf -T - '$upload->{upload_url}'"),
        'without a length');
    completes($upload, $small, 201);
};

# Runs Uppy on a page of a host.
sub uppy
{
    my ($host, $upload, %more) = @_;
    my %wish = (
        listener   => fileno $listener,
        page       => "http://$host:$page_port/",
        upload_url => $upload->{upload_url},
        file       => $small->{path},
        piece      => 5 * MB,
        rate       => 60 * MB,
        %more
    );
    my $output = succeeds(run('tools/node', 't/node/browser-upload.mjs', encode_json(\%wish)),
        'the browser runs Uppy');
    return decode_json($output);
}

subtest "Uppy uploads from another origin's page" => sub {
    my $upload = begin_upload($shop, size => $small->{size});
    # In the middle of a piece, so that its request is under way when the network is cut.
    my ($path, $url) = held_path($upload, 27 * MB);
    my $result = uppy('127.0.0.1', $upload, by => $url, cut => 26 * MB, release => $path->released);
    is $result->{failed}, 'net::ERR_INTERNET_DISCONNECTED', 'the network is cut';
    cmp_ok $result->{offset}, '>', 20 * MB, 'after some bytes have arrived';
    cmp_ok $result->{offset}, '<', $small->{size}, 'and before the last';
    is $result->{successful}, 1, 'Uppy reports success' or diag explain $result;
    completes($upload, $small, in_objects() ? 201 : 202);
};

subtest 'a page of an origin that is not listed can not upload' => sub {
    my $upload = begin_upload($shop, size => $small->{size});
    my $since  = log_size();
    my $result = uppy('localhost', $upload);
    is $result->{successful}, 0, 'Uppy reports a failure' or diag explain $result;
    my ($path) = $upload->{upload_url} =~ m{^https?://[^/]+(/.*)};
    wait_for(sub { received('OPTIONS', $since, $path) }, 60, "a preflight's line of the log");
    is scalar(my @sent = received('(?!OPTIONS)\w+', $since, $path)), 0,
        'the browser sends nothing but preflights';
};

SKIP: {
    skip "a sanitizer's memory is not the server's", 1 if $ENV{SANITIZER_RUNTIME};
    my $more = peak_memory() - $memory;
    note "at most $memory bytes for small files, $more more for large ones";
    cmp_ok $more, '<', 8 * MB,
        'no child of httpd has needed more memory for large files than for small ones';
}

# Uploads a file and calls $do on the way; returns the client's output, and how long the log was.
sub uploads_over
{
    my ($how, $do, $status) = @_;
    my $upload = begin_upload($shop, size => $middle->{size});
    my $since  = log_size();
    my ($path, $url) = held_path($upload, 60 * MB);
    my $client = tus_js_client($url, $middle, 0);
    wait_offset($upload, 50 * MB);
    $do->();
    $path->release;
    my $output = succeeds($client, "$how: the same process completes the upload");
    completes($upload, $middle, $status);
    return ($output, $since);
}

subtest 'the server is killed while tus-js-client uploads' => sub {
    my ($output) = uploads_over('kill -9', sub { $server->kill_all; $server->start },
        in_objects() ? 201 : 202);
    like $output, qr/^again$/m, 'the client had to retry';
};

subtest 'the server is restarted while tus-js-client uploads' => sub {
    my ($output) = uploads_over('a restart', \&httpd_restart, in_objects() ? 201 : 202);
    like $output, qr/^again$/m, 'the client had to retry';
};

subtest 'the server is killed in a piece that came with a checksum' => sub {
    my $bytes  = 'surely' . 'doubtful' x (3 * MB / 8);
    my $upload = begin_upload($shop, size => length $bytes);
    my %sha1   = ('Upload-Checksum' => 'sha1 ' . sha1_base64(substr $bytes, 6) . '=');
    is patch_bytes($upload, 0, 'surely')->{status}, 204, 'a piece arrives';
    my ($path) = $upload->{upload_url} =~ m{^http://[^/]+(/.*)};
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port())
        or die "no connection: $!\n";
    print $socket join "\r\n", "PATCH $path HTTP/1.1", 'Host: localhost', 'Tus-Resumable: 1.0.0',
        'Upload-Offset: 6', 'Content-Type: application/offset+octet-stream',
        'Content-Length: ' . 3 * MB, "Upload-Checksum: $sha1{'Upload-Checksum'}", '', substr $bytes,
        6, 1.5 * MB;
    $socket->flush;
    my $partial = storage_dir() . "/partial/$upload->{id}";
    wait_for(sub { in_objects() ? is_being_written($upload) : -s $partial > MB }, 60,
        'a part of the next piece');
    is offset_of($upload), 6, 'which does not count yet';
    $server->kill_all;
    $server->start;
    cmp_ok -s $partial, '>', MB, 'the part has survived the kill' if !in_objects();
    is offset_of($upload), 6, 'but does not count';
    my $again;    # 423, while a killed process may still write into the object
    wait_for(sub { ($again = patch_bytes($upload, 6, substr($bytes, 6), %sha1)->{status}) != 423 },
        60, 'the killed process to be given up');
    is $again, 204, 'the piece comes again';
    is offset_of($upload), length $bytes, 'and is the rest of the upload';
    my $reply = complete_upload($shop, $upload);
    wait_job($shop, $reply->{json}{job}{id}) if !in_objects();
    is api('GET', "/assets/$reply->{json}{asset}{id}", key => $shop->{token})->{json}{sha256},
        sha256_hex($bytes), 'the file is whole';
};

subtest 'the server is restarted gracefully while tus-js-client uploads' => sub {
    my ($output, $since) = uploads_over('a graceful restart', \&httpd_graceful, 201);
    wait_for(sub { bytes_received('PATCH', $since) >= $middle->{size} }, 60, 'its log');
    my @requests = received('PATCH', $since);
    is scalar(@requests), 1, 'one request uploads all';
    ok wait_for(sub { !grep { $_ == $requests[0]{child} } server_pids() }, 60, 'its end'),
        'to a child that has ended since';
};

subtest 'a body of an invalid upload URL is not read to its end' => sub {
    my $since = log_size();
    my $chunk = sprintf "%x\r\n%s\r\n", MB, 'x' x MB;
    local $SIG{PIPE} = 'IGNORE';
    # The children are stopped so that more bytes arrive than they read at once.
    my @children = server_pids();
    kill STOP => @children;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port())
        or die "no connection to the server: $!\n";
    $socket->blocking(0);
    syswrite $socket, "PUT /u/nonsense HTTP/1.1\r\nHost: localhost\r\n"
        . "Transfer-Encoding: chunked\r\n\r\n" . $chunk x 4;
    kill CONT => @children;
    wait_for(sub { received('PUT', $since) }, 60, 'an answer');
    close $socket;
    my ($request) = received('PUT', $since);
    cmp_ok $request->{bytes}, '<', 256 * 1024, 'only a small part is read';
};

unlink map { $_->{path} } $big, $middle, $small;

done_testing();
