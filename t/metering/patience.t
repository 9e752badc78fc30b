# A client may leave the end of a file in the server's kernel for longer than the minute that the
# service waits for sent bytes to arrive: the download is then counted, or the client does not get
# the end. And a client gets nothing free from a process that was stopped until it was taken for
# dead. Both take minutes: make check-slow.
#
# both: bytes are settled under other locks
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Customer;
use MDL::Instance;
use MDL::DownloadClient;
use MDL::Test;
use Socket qw(unpack_sockaddr_in);
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

plan skip_all => 'waits for minutes: make check-slow' if !$ENV{SLOW};

my %WAYS = (
    event   => [ 'HTTP/1.1', 'TLS', 'HTTP/2' ],
    worker  => [ 'HTTP/1.1', 'TLS', 'HTTP/2' ],
    prefork => [ 'HTTP/1.1', 'TLS' ],
);

# The numbers of bytes left unread: as much as both kernels can hold, and less.
my @LEFT = (1, 20 * KB, 60 * KB, 120 * KB);

# --- processes that stand still ------------------------------------------------------------------

# The child of httpd that serves this client.
sub child_of
{
    my ($client) = @_;
    my ($port)  = unpack_sockaddr_in(getsockname $client->{socket});
    my $ends    = sprintf ':%04X \\S+:%04X 01 ', $client->{port}, $port;
    my ($inode) = map { (split)[9] } grep { /$ends/ } map { split /\n/, MDL::Test::slurp($_) // '' }
        '/proc/net/tcp', '/proc/net/tcp6';
    my ($child) = grep {
        my $fds = "/proc/$_/fd";
        grep { (readlink($_) // '') eq "socket:[$inode]" } glob "$fds/*"
    } server_pids();
    return $child // die "no child serves port $port\n";
}

# The bytes written down for the transfer of an order; undef if there is none.
sub noted
{
    my ($buy) = @_;
    my ($row) = sql("SELECT bytes FROM download_transfer WHERE assignment_id = $buy->{assignment}");
    return $row && $row->[0];
}

# Stops the child right after it has written to the database, so that it holds no lock.
sub stand_still
{
    my ($buy, $client) = @_;
    wait_for(sub { (noted($buy) // 0) >= $client->read_bytes }, 20, 'what has arrived to be noted');
    my $child = child_of($client);
    kill STOP => $child or die "no process $child: $!\n";
    return $child;
}

for my $way ('HTTP/1.1', 'TLS') {
    subtest "A process stands still until its meter counts as dead, "
        . "and its client reads on over $way" => sub {
        local $SIG{PIPE} = 'IGNORE';    # from TLS, on a connection that was cut
        my $server = MDL::Instance->new(tls => 1, mpm => 'event',
            extra => "DownloadsSessionIdle 1\n")->start;
        my $shop   = new_shop();
        my $file   = new_file($shop, 32 * MB);
        my $buy    = buy($shop, $file, limit => 1);
        my $path   = link_of($buy);
        my $client = MDL::DownloadClient->over($way, $server, $path)->read_until(MB);
        my $log    = error_log_size();
        my $child  = stand_still($buy, $client);
        my $given_back = eval { settled($buy, 60) };
        my $why = $@;
        kill CONT => $child;
        is $given_back && "$given_back->{used} $given_back->{sessions}[0]{status}", '0 returned',
            'its session is given back' or diag $why;
        # At most 800 KB a second, so that the service notices before the file ends.
        my $is_cut = sub { $client->read_some(16 * KB); return error_log_since($log) =~ /MDL0413/ };
        ok eval { wait_for($is_cut, 20, 'MDL0413 in the log') }, 'its transfer is cut' or diag $@;
        ok !$client->rest, 'the client does not get the rest';
        my $read = $client->read_bytes;
        cmp_ok $read, '<', $file->{size} / 2, "but $read bytes";
        is settled($buy)->{used}, 0, 'which cost nothing';
        my $rest = MDL::DownloadClient->over($way, $server, $path, buffer => MB,
            headers => { Range => "bytes=$read-" });
        ok $rest->rest && $rest->sha256 eq sha256_hex(substr $file->{bytes}, $read),
            'the rest comes';
        my $account = settled($buy);
        is "$account->{used} $account->{sessions}[0]{status}", '1 counted',
            'and makes it one download'
            or diag explain $account->{sessions};
        $server->stop;
    };
}

# --- clients that stand still --------------------------------------------------------------------

# All clients wait at the same time, on one server for each MPM.
my @waiting;
for my $mpm (sort keys %WAYS) {
    my $server = MDL::Instance->new(tls => 1, mpm => $mpm, extra => "DownloadsSessionIdle 1\n")
        ->start;
    my $shop   = new_shop();
    my $file   = new_file($shop, 8 * MB);
    for my $way (@{ $WAYS{$mpm} }) {
        for my $left (@LEFT) {
            my $buy    = buy($shop, $file, limit => 1);
            my $client = MDL::DownloadClient->over($way, $server, link_of($buy));
            push @waiting, { name => "$mpm, $way, $left bytes", server => $server, buy => $buy,
                client => $client->read_until($file->{size} - $left) };
        }
    }
}

for (@waiting) {
    my ($server, $buy, $client) = @$_{qw(server buy client)};
    subtest "A client that leaves the end for a minute: $_->{name}" => sub {
        $server->aim;
        my $before = settled($buy, 200);
        my $whole  = $client->rest && $client->sha256 eq $buy->{file}{sha256};
        is settled($buy, 200)->{used}, 1, 'what it gets whole in the end is a download' if $whole;
        ok !$whole || $before->{used} == 1, 'it is not given back before'
            or diag explain $before->{sessions};
    };
}

done_testing();
