# A proxy in front, set up as docs/install.md says, changes nothing of what a download costs:
# neither for customers who leave and resume, nor for those who read slowly; and an upload reaches
# the service as it comes. PROXIES=1, which make check-proxies sets, does this with 1 GB and lets
# clients read slowly for longer than any time-out.
#
# once: what a proxy holds does not depend on the database
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use IO::Socket::SSL;
use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Proxy;
use MDL::Test;
use MDL::Upload;
use Test::More;
use Time::HiRes qw(sleep time);

use constant { KB => 1024, MB => 1024 * 1024 };

my $server = MDL::Instance->new(tls => 1, extra => <<'END')->start;
DownloadsSessionIdle 1
DownloadsTLSProxy 127.0.0.0/8
END
my $shop  = new_shop();
my $file  = new_file($shop, 40 * MB);
my @runs  = ([ 'TLS', $file ]);
if ($ENV{PROXIES}) {
    my $large = new_file($shop, undef, bytes => join '',
        map { pack('N', $_) . $file->{bytes} } 1 .. 26);
    @runs = ([ 'TLS', $large ], [ 'HTTP/2', $file ]);
}

# What the guide says that a proxy holds at most: its connection to the customer has the largest
# buffer.
my ($buffer) = MDL::Test::slurp('/proc/sys/net/ipv4/tcp_wmem') =~ /(\d+)$/;
my $holds = $buffer + 2 * MB;

sub begin
{
    my ($way, $front, $buy, %more) = @_;
    return MDL::DownloadClient->over($way, $front, $buy->{link} //= link_of($buy),
        buffer => 256 * KB, %more);
}

my %sha256;    # of files from an offset on

# Reads to the end, and tells whether these are the file's bytes from $from on.
sub is_rest
{
    my ($client, $file, $from, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $client->read_until($client->read_bytes + 32 * MB)
        while $client->read_bytes + 32 * MB < $file->{size} - $from;
    return ok $client->rest
        && $client->sha256 eq ($sha256{"$file->{id} $from"} //= sha256_hex(substr $file->{bytes},
            $from)), $name;
}

# The bytes that the service takes for delivered, while the transfer runs.
sub noted
{
    my ($buy) = @_;
    my ($row) = sql(
        "SELECT sum(bytes) FROM download_transfer WHERE assignment_id = $buy->{assignment}");
    return $row->[0] // 0;
}

# Waits until the service has looked at what was delivered: by then a proxy has read what it will.
sub is_noted
{
    my ($buy, $bytes) = @_;
    return wait_for(sub { noted($buy) >= $bytes }, 20, "$bytes bytes to be noted");
}

# What each kind of customer pays.
sub costs_over
{
    my ($way, $file, $front) = @_;
    my %buy = map { $_ => buy($shop, $file, limit => 1) } qw(whole gone resumed slow);

    is_rest(begin($way, $front, $buy{whole}), $file, 0, 'the whole file comes');
    my $gone = begin($way, $front, $buy{gone})->read_until(4 * MB);
    is_noted($buy{gone}, 4 * MB);
    $gone->leave(1);
    my $from = begin($way, $front, $buy{resumed})->read_until(4 * MB)->leave(0);
    is_rest(begin($way, $front, $buy{resumed}, headers => { Range => "bytes=$from-" }),
        $file, $from, 'the rest comes to one who resumes');
    my $slow = begin($way, $front, $buy{slow})->read_until(MB);
    is_noted($buy{slow}, MB);
    cmp_ok noted($buy{slow}), '<=', $slow->at_most + $holds,
        'the proxy does not read ahead of one who is slow';
    is_rest($slow, $file, 0, 'who gets the whole file, too');
    my %account = map { $_ => settled($buy{$_}, 30) } keys %buy;
    cmp_ok $account{gone}{sessions}[0]{bytes_delivered}, '<=', $gone->at_most + $holds,
        'little more than one who left has got is counted as delivered';
    return { map { $_ => $account{$_}{used} } keys %account };
}

# Sends half of an upload through the proxy, and the other half once that has arrived.
sub uploads
{
    my ($front) = @_;
    my $upload  = begin_upload($shop, size => 4 * MB);
    my ($path)  = $upload->{upload_url} =~ m{^https?://[^/]+(/.+)$};
    my $half    = 'h' x (2 * MB);
    my $socket  = IO::Socket::SSL->new(PeerAddr => '127.0.0.1', PeerPort => $front->tls_port,
        SSL_verify_mode => IO::Socket::SSL::SSL_VERIFY_NONE())
        or die "no TLS: $IO::Socket::SSL::SSL_ERROR\n";
    print $socket "PUT $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
        . 2 * length($half) . "\r\n\r\n$half";
    ok eval {
        wait_for(sub { is_being_written($upload) }, 20, 'bytes of the upload');
    },
        'an upload reaches the service as it comes';
    print $socket $half;
    my ($status) = (<$socket> // '') =~ m{^HTTP/1.1 (\d+)};
    is $status, 204, 'and is taken';
    is complete_upload($shop, $upload)->{status}, 201, 'whole';
    return;
}

my (%without, %fronts, @slow);
for (@runs) {
    my ($way, $file) = @$_;
    subtest "Over $way, without a proxy" => sub {
        $without{$way} = costs_over($way, $file, $server);
        is_deeply $without{$way}, { whole => 1, gone => 0, resumed => 1, slow => 1 },
            'who gets the file pays for it';
    };
}
for my $kind ('nginx', 'haproxy', 'httpd') {
    my $front = $fronts{$kind} = MDL::Proxy->new($kind, $server);
    for (@runs) {
        my ($way, $file) = @$_;
        subtest "Over $way, behind $kind" => sub {
            is_deeply costs_over($way, $file, $front), $without{$way},
                'each pays what he pays without a proxy';
        };
    }
    subtest "An upload behind $kind" => sub { uploads($front) };
}

# 128 KB a second for three minutes, with a pause of 45 s. The file is one of which the rest comes
# soon: the others stand still meanwhile, which ends a connection after a minute, with a proxy and
# without.
for my $kind ($ENV{PROXIES} ? sort keys %fronts : ()) {
    for (@runs) {
        my ($way) = @$_;
        my $buy = buy($shop, $file, limit => 1);
        push @slow,
            [ "Over $way, behind $kind", $buy, begin($way, $fronts{$kind}, $buy)->read_until(MB) ];
    }
}
for my $turn (1 .. (@slow ? 180 : 0)) {
    sleep $turn == 60 ? 45 : 1;
    $_->[2]->read_until($_->[2]->read_bytes + 128 * KB) for @slow;
}
for (@slow) {
    my ($name, $buy, $client) = @$_;
    subtest "$name: one who reads slowly for minutes is not cut" => sub {
        is_rest($client, $buy->{file}, 0, 'he gets the whole file');
        is settled($buy, 30)->{used}, 1, 'and pays for it';
    };
}

done_testing();
