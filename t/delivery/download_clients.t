# What downloads cost (contract, section 8) with the clients that customers use (curl, wget, aria2,
# nghttp, Chromium), which requests cost nothing, and downloads through other modules of httpd.
#
# once: clients do not depend on the database
use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use JSON::PP;
use MDL::Customer;
use MDL::Instance;
use MDL::Metering qw(in_time $JOINED $CROWDED);
use MDL::Path;
use MDL::Test;
use POSIX ();
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

# mod_deflate compresses what it can, and mod_ratelimit slows down requests that ask for it.
my $server = MDL::Instance->new(tls => 1, modules => [qw(deflate ratelimit)],
    extra => <<'END')->start;
DownloadsSessionIdle 1
SetEnvIf Request_URI "^/d/./(.{24})" token=$1
LogFormat "%m %{token}e %H %>s %X %{Range}i" hits
CustomLog "@t_logs@/hits" hits
<Location /d>
    SetOutputFilter RATE_LIMIT;DEFLATE
    SetEnvIf X-Slow (\d+) rate-limit=$1
</Location>
END
my $shop = new_shop();
my $file = new_file($shop, 8 * MB);
my $text = new_file($shop, 0, bytes => "All work and no play.\n" x 50_000,
    content_type => 'text/plain', filename => 'text.txt');

my %WAYS = (
    'HTTP/1.1' => { curl => ['--http1.1'], protocol => 'HTTP/1.1' },
    'TLS'      => { curl => ['--http1.1'], protocol => 'HTTP/1.1', tls => 1 },
    'HTTP/2'   => { curl => ['--http2'], protocol => 'HTTP/2.0', tls => 1 },
    'h2c'      => { curl => ['--http2-prior-knowledge'], protocol => 'HTTP/2.0' },
);
# mod_http2 does not work under prefork.
my @http2 = $ENV{MPM} eq 'prefork' ? () : ('HTTP/2', 'h2c');
my @ways  = sort 'HTTP/1.1', 'TLS', @http2;

# --- clients -------------------------------------------------------------------------------------

my $count = 0;

my $folder = logs_dir() . '/got';
make_path($folder);

sub target { return "$folder/" . ++$count }

sub url
{
    my ($way, $path) = @_;
    return ($WAYS{$way}{tls} ? 'https://localhost:' . $server->tls_port : 'http://localhost:'
        . port())
        . $path;
}

# Starts a program whose output goes to a file.
sub start
{
    my (@command) = @_;
    my $output = target();
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  $output;
        open STDERR, '>&', \*STDOUT;
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

sub run { return ended(start(@_)) }

sub curl_command
{
    my ($way, $path, @options) = @_;
    return ('curl', '-sS', '--cacert', $server->certificate, @{ $WAYS{$way}{curl} }, @options,
        url($way, $path));
}

# Appends so many bytes of a program's output to a file, then kills the program.
sub read_bytes
{
    my ($path, $bytes, @command) = @_;
    my $pid = open my $in, '-|', @command or die "$command[0]: $!";
    open my $out, '>>:raw', $path or die "$path: $!";
    while ($bytes > 0) {
        my $count = read $in, my $piece, $bytes < 65536 ? $bytes : 65536;
        die "$command[0] ended $bytes bytes before it was to be killed\n" if !$count;
        print $out $piece;
        $bytes -= $count;
    }
    close $out or die "$path: $!";
    kill KILL => $pid;
    close $in;
    return;
}

# Downloads by curl: { exit (status of curl), status (of the answer), path, size }.
sub curl { my ($way, $path, @options) = @_; return curl_into(target(), $way, $path, @options) }

sub curl_into
{
    my ($got, $way, $path, @options) = @_;
    my ($status, $output) = run(curl_command($way, $path, '-w', '%{http_code}', '-o', $got,
        @options));
    return { exit => $status >> 8, status => $output, path => $got, size => -s $got // 0 };
}

# Kills the client once its file has so many bytes; returns false if it has ended before.
sub killed_at
{
    my ($client, $got, $bytes) = @_;
    my $over;
    wait_for(sub { ($over = waitpid $client->{pid}, POSIX::WNOHANG()) || (-s $got // 0) >= $bytes },
        60, "$bytes bytes of $got");
    return 0 if $over;
    kill KILL => $client->{pid};
    waitpid $client->{pid}, 0;
    return 1;
}

# --- results -------------------------------------------------------------------------------------

sub same
{
    my ($path, $bought, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is system('cmp', '-s', $path, $bought->{path}), 0,
        $name // 'the file is the same, byte for byte'
        or diag sprintf '%d bytes of %d', -s $path // 0, $bought->{size};
    unlink $path;
    return;
}

sub costs
{
    my ($buy, $downloads, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $account = eval { settled($buy) } // do { diag $@; account($buy) };
    is $account->{used}, $downloads, $name // "it has cost $downloads"
        or diag explain $account->{sessions};
    is scalar(grep { $_->{status} eq 'counted' } @{ $account->{sessions} }), $downloads,
        "of the order's sessions $downloads are counted";
    return $account;
}

# The requests for this path that have ended: { method, token, protocol, status, end, range }.
sub hits
{
    my ($path) = @_;
    return map {
        my %hit;
        @hit{qw(method token protocol status end range)} = split / /, $_, 6;
        length $hit{token} == 24 && index($path, $hit{token}) >= 0 ? \%hit : ()
    } split /\n/, MDL::Test::slurp(logs_dir() . '/hits') // '';
}

# --- each download costs one ---------------------------------------------------------------------

for my $way (@ways) {
    subtest "Over $way each whole transfer costs one download" => sub {
        my $buy  = buy($shop, $file);
        my ($path, $second, $third) = map { link_of($buy) } 1 .. 3;
        my $got = curl($way, $path);
        is $got->{exit}, 0, 'curl succeeds';
        same($got->{path}, $file);
        costs($buy, 1);
        same(curl($way, $second)->{path}, $file, 'another link gives it again');
        costs($buy, 2);
        same(curl($way, $path)->{path}, $file, 'the first link gives it once more');
        costs($buy, 3);
        is curl($way, $_)->{status}, 403, 'then the limit is reached' for $path, $third;
        is((hits($path))[0]{protocol}, $WAYS{$way}{protocol},
            "the protocol was $WAYS{$way}{protocol}");
    };
}

for my $way (@ways) {
    subtest "Over $way Range: bytes=0- twice costs two downloads" => sub {
        my $buy  = buy($shop, $file);
        my $path = link_of($buy);
        for my $time (1, 2) {
            my $got = curl($way, $path, '-H', 'Range: bytes=0-');
            is $got->{status}, 206, 'a range is answered';
            same($got->{path}, $file);
            costs($buy, $time);
        }
        curl($way, $path, '-r', '100-199');
        curl($way, $path, '-r', '-100');
        costs($buy, 2, 'parts of it again cost nothing');
    };
}

# Debian 12's curl can't reuse a connection of h2c.
my @several = grep { $_ ne 'h2c' } @ways;

for my $way (@several) {
    subtest "Over $way two transfers on one connection cost two downloads" => sub {
        my $buy = in_time($JOINED, sub {
            my $buy  = buy($shop, $file);
            my $path = link_of($buy);
            my ($one, $two) = (target(), target());
            run(curl_command($way, $path, '-o', $one, '-o', $two, url($way, $path)));
            same($_, $file) for $one, $two;
            return $buy;
        });
        costs($buy, 2);
    };
}

for my $way (@ways) {
    subtest "Over $way all parts in one answer cost one download" => sub {
        my $buy = buy($shop, $file);
        my $got = curl($way, link_of($buy), '-r', '0-999999,3000000-,1000000-2999999');
        is $got->{status}, 206, 'two parts come';
        cmp_ok $got->{size}, '>', $file->{size}, 'and are more than the whole';
        costs($buy, 1);
        unlink $got->{path};
    };
}

for my $way (@ways) {
    subtest "Over $way curl is cut ten times and goes on" => sub {
        my $buy  = buy($shop, $file, limit => 1);
        my $path = link_of($buy);
        my $got  = target();
        for my $point (sort { $a <=> $b } map { 1 + int rand 7 * MB } 1 .. 10) {
            my $from = -s $got // 0;
            read_bytes($got, $point - $from, curl_command($way, $path, '-N', '-C', $from));
        }
        my $all = curl_into($got, $way, $path, '-C', '-');
        is $all->{exit}, 0, 'the eleventh request succeeds';
        same($got, $file);
        my $account = costs($buy, 1);
        is scalar(@{ $account->{sessions} }), 1, 'all are one session';
        ok eval { wait_for(sub { 9 <= grep { $_->{status} == 206 } hits($path) }, 60, 'parts') },
            'in parts' or diag explain [ hits($path) ];
    };
}

# --- requests that cost nothing ------------------------------------------------------------------

for my $way (@ways) {
    subtest "Over $way answers without bytes of the file cost nothing" => sub {
        my $buy  = buy($shop, $file, limit => 1);
        my $path = link_of($buy);
        for my $case (
            [ 'HEAD',           200, '-I' ],
            [ 'If-None-Match',  304, '-H', "If-None-Match: $file->{etag}" ],
            [ 'a prefetch',     403, '-H', 'Sec-Purpose: prefetch' ],
            [ 'a prerendering', 403, '-H', 'Sec-Purpose: prefetch;prerender' ],
            [ 'a range behind the end', 416, '-r', ($file->{size}) . '-' ],
        ) {
            my ($name, $status, @options) = @$case;
            is curl($way, $path, @options)->{status}, $status, "$name: $status";
        }
        is_deeply costs($buy, 0)->{sessions}, [], 'no session was opened';
        same(curl($way, $path)->{path}, $file, 'the download is still there');
        costs($buy, 1);
    };
}

# User agents, with what they request besides GET.
my @PREVIEWS = (
    [ 'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)', '-r',
        '0-524287' ],
    [ 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)', '-r', '0-32768' ],
    [ 'WhatsApp/2.23.20.0', '-H', 'Accept-Language: en' ],
    [ 'TelegramBot (like TwitterBot)' ],
    [ 'Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)', '--compressed' ],
    [ 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, '
        . 'like Gecko) SkypeUriPreview' ],
    [ 'GoogleImageProxy', '-I' ],
);

subtest 'Previews of the page cost nothing' => sub {
    my $buy = buy($shop, $file, limit => 1);
    for (@PREVIEWS) {
        my ($agent, @options) = @$_;
        my $got = curl('HTTP/1.1', $buy->{path}, '-A', $agent, @options);
        like $got->{status}, qr/^20[06]$/, "$agent sees the page";
        unlike MDL::Test::slurp($got->{path}) // '', qr{/d/f/}, 'which has no link to follow';
    }
    is left($buy), $buy->{limit}, 'the page still offers it';
    is_deeply costs($buy, 0)->{sessions}, [], 'no session was opened';
};

subtest 'A scanner that submits the form and reads 64 KB costs nothing' => sub {
    my @buys = map { buy($shop, $file, limit => 1) } @ways;
    read_bytes('/dev/null', 64 * KB, curl_command($ways[$_], link_of($buys[$_]), '-N'))
        for 0 .. $#ways;
    for my $i (0 .. $#ways) {
        my $account = costs($buys[$i], 0);
        is $account->{sessions}[0]{status}, 'returned', "over $ways[$i] its download is given back";
        cmp_ok $account->{sessions}[0]{bytes_delivered}, '>=', 64 * KB,
            'at least what it read is counted as delivered';
        same(curl($ways[$i], link_of($buys[$i]))->{path}, $file, 'the customer gets the file');
        costs($buys[$i], 1);
    }
};

# --- many at once --------------------------------------------------------------------------------

for my $way (@several) {
    subtest "Over $way, if one download is left, fifty links fetched at once use "
        . "only that one" => sub {
        my $buy   = buy($shop, $file, limit => 1);
        my @links = map { link_of($buy) } 1 .. 50;
        my $got   = target();
        make_path($got);
        my ($status, $output) = run('curl', '-sS', '--cacert', $server->certificate,
            @{ $WAYS{$way}{curl} }, '-Z', '--parallel-max', 50, '--retry', 9,
            '-w', "%{http_code}\n",
            map { ('-o', "$got/$_", url($way, $links[$_])) } 0 .. 49);
        my %count;
        $count{$_}++ for $output =~ /^(\d+)$/mg;
        is_deeply \%count, { 200 => 1, 403 => 49 }, 'one is answered 200 and 49 are 403'
            or diag $output;
        my ($whole) = grep { -s $_ == $file->{size} } glob "$got/*";
        same($whole, $file) if $whole;
        remove_tree($got);
        costs($buy, 1);
    };
}

# --- other modules -------------------------------------------------------------------------------

for my $way (@ways) {
    subtest "Over $way mod_deflate does not compress a file" => sub {
        my $buy = buy($shop, $text);
        my $path = link_of($buy);
        my $got = target();
        my ($status, $output) = run(
            curl_command($way, $path, '-H', 'Accept-Encoding: gzip, deflate',
            '-D', '-', '-o', $got));
        unlike $output, qr/^content-encoding/mi, 'it is sent as it is stored';
        like $output, qr/^content-length: $text->{size}\r$/mi, 'with the stored length';
        like $output, qr/^etag: \Q$text->{etag}\E\r$/mi, 'and its own entity tag';
        same($got, $text);
        costs($buy, 1);
        my ($headers) = (
            run(curl_command($way, $buy->{path}, '-H', 'Accept-Encoding: gzip', '-D', '-',
            '-o', '/dev/null')))[1];
        like $headers, qr/^content-encoding: gzip/mi, 'but the page is compressed';
    };
}

for my $way (@ways) {
    subtest "Over $way mod_ratelimit slows a download down and changes nothing else" => sub {
        my $buy  = buy($shop, $text);
        my $path = link_of($buy);
        my @slow = ('-H', 'X-Slow: 2048');
        my $part = curl($way, $path, @slow, '-r', '300000-599999');
        is $part->{status}, 206, 'a part comes';
        ok MDL::Test::slurp($part->{path}) eq substr($text->{bytes}, 300_000, 300_000), 'as it is';
        my $parts = curl($way, $path, @slow, '-r', '5-9,100000-100009');
        like MDL::Test::slurp($parts->{path}), qr/\Q@{[ substr $text->{bytes}, 100_000, 10 ]}\E/,
            'two parts come';
        my $got = curl($way, $path, @slow);
        same($got->{path}, $text, 'the whole comes');
        costs($buy, 1);
    };
}

# --- the other clients ---------------------------------------------------------------------------

my $large = new_file($shop, 64 * MB);

for my $way ('HTTP/1.1', 'TLS') {
    subtest "Over $way aria2 downloads by sixteen connections" => sub {
        my ($got, $path, $status, $output);
        my $buy = in_time($CROWDED, sub {
            my $buy = buy($shop, $large, limit => 1);
            $path = link_of($buy);
            $got  = target();
            my ($name) = $got =~ m{([^/]+)$};
            ($status, $output) = run('aria2c', '--no-conf', '-x16', '-s16', '-k1M',
                '--file-allocation=none', '--summary-interval=0',
                '--max-overall-download-limit=40M', '--ca-certificate', $server->certificate,
                '-d', $folder, '-o', $name, url($way, $path));
            return $buy;
        });
        is $status, 0, 'it succeeds' or diag $output;
        same($got, $large);
        costs($buy, 1);
        ok eval {
            wait_for(sub { 16 <= grep { $_->{status} =~ /^20[06]$/ } hits($path) }, 60, 'parts');
        }, 'it requested at least sixteen parts';
        is scalar(grep { $_->{status} !~ /^20[06]$/ } hits($path)), 0, 'and none was refused';
    };

    subtest "Over $way wget is killed three times and goes on" => sub {
        my $buy  = buy($shop, $large, limit => 1);
        my $path = link_of($buy);
        my $got  = target();
        my $url  = url($way, $path);
        my @wget = ('wget', '-nv', '-c', '-O', $got, '--ca-certificate', $server->certificate);
        my $cut  = 0;
        for (1 .. 3) {
            my $more = int((4 + rand 4) * MB);
            my $road = MDL::Path->new(to => $url =~ /:(\d+)/, down => $more + MB);
            my $by   = $url =~ s/:\d+/':' . $road->port/er;
            $cut += killed_at(start(@wget, $by), $got, (-s $got // 0) + $more);
        }
        push @wget, $url;
        is $cut, 3, 'it is killed three times';
        my ($status, $output) = run(@wget);
        is $status, 0, 'the fourth run succeeds' or diag $output;
        is +(run(@wget))[0], 0, 'another run finds the file complete';
        same($got, $large);
        costs($buy, 1);
        wait_for(sub { 3 <= grep { $_->{status} == 206 } hits($path) }, 60, 'the end of all runs');
        is scalar(grep { $_->{status} == 206 } hits($path)), 3, 'it went on each time';
    };
}

for my $way (@http2) {
    subtest "Over $way nghttp downloads three files in one connection" => sub {
        my @buys  = map { buy($shop, $file, limit => 1) } 1 .. 3;
        my @paths = map { link_of($_) } @buys;
        my ($status, $output) = run('nghttp', '-n', '-s', '-y', map { url($way, $_) } @paths);
        is $status, 0, 'it succeeds' or diag $output;
        is scalar(() = $output =~ m{ 200 +8M }g), 3, 'three times 8 MB' or diag $output;
        costs($_, 1) for @buys;
        my $got = target();
        my $buy = buy($shop, $file);
        system("nghttp -y '" . url($way, link_of($buy)) . "' >'$got' 2>/dev/null");
        same($got, $file);
        costs($buy, 1);
    };
}

# --- a browser -----------------------------------------------------------------------------------

sub browser
{
    my (%wish) = @_;
    my ($status, $output) = run('tools/node', 't/node/browser-download.mjs',
        encode_json({ folder => target(), certificate => $server->certificate, %wish }));
    is $status, 0, 'the browser succeeds' or diag $output;
    return eval { decode_json($output) } // {};
}

subtest 'Chromium resumes by itself after a connection that ended early' => sub {
    my $buy  = buy($shop, $file, limit => 1);
    my $road = MDL::Path->new(to => port(), rate => 16 * MB, cuts => [ 2 * MB, 3 * MB ],
        how => 'fin');
    my $result = browser(page => $buy->{url}, instead => '127.0.0.1:' . $road->port);
    is_deeply $result->{states}, [qw(inProgress completed)], 'it completes the download'
        or diag explain $result;
    same($result->{path}, $file);
    costs($buy, 1);
};

subtest 'Chromium resumes by hand after a connection that was reset, over HTTP/2' => sub {
    $server->configure(extra => $server->{extra}
            . "DownloadsPublicURL https://localhost:\@tls_port\@/d\n");
    httpd_graceful();
    my $buy  = buy($shop, $file, limit => 1);
    my $road = MDL::Path->new(to => $server->tls_port, rate => 16 * MB, cuts => [ 4 * MB ],
        how => 'rst');
    my $result = browser(page => $buy->{url}, resume => JSON::PP::true,
        instead => '127.0.0.1:' . $road->port);
    is_deeply $result->{states}, [qw(inProgress canceled)], 'it is interrupted'
        or diag explain $result;
    same($result->{path}, $file, 'and has the whole file after the resume');
    costs($buy, 1);
};

remove_tree($folder);
done_testing();
