# HAProxy in front of two nodes, set up as docs/scale.md says: clients notice neither that a node is
# taken out, while its downloads run to their ends, nor that a node was killed.
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use IO::Socket::SSL;
use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Proxy;
use MDL::Test;
use Test::More;

use constant { MB => 1024 * 1024, REQUESTS => 40 };

my $conf = "DownloadsTLSProxy 127.0.0.0/8\nDownloadsSessionIdle 2\n";
my $one  = MDL::Instance->new(tls => 1, extra => $conf);
my $two  = MDL::Instance->new(
    tls     => 1,
    without => qr/^DBDParams/,
    extra   => $conf
        . qq(DBDParams "$one->{vars}{db_params}"\nDownloadsStorage "$one->{folder}/storage"\n),
);
$_->start for $two, $one;
my $front = MDL::Proxy->new('haproxy', $one, $two);
my $shop  = new_shop();
my $file  = new_file($shop, 40 * MB);

# Requests of a client that makes a connection for each; returns how many got each status.
sub requests
{
    my %statuses;
    for (1 .. REQUESTS) {
        my $url = 'https://127.0.0.1:' . $front->tls_port . '/api/v1/ping';
        $statuses{ page('GET', $url, headers => { Authorization => "Bearer $shop->{token}" })
                ->{status} }++;
    }
    return \%statuses;
}

sub served { my ($node) = @_; return scalar(() = (MDL::Test::slurp("$node->{folder}/access_log")
        // '') =~ m{/api/v1/ping}g) }

# Whether httpd's parent, and so each of its processes, has ended.
sub wait_end { my ($node) = @_; return wait_for(sub { !$node->processes }, 60, 'the end') }

is_deeply requests(), { 200 => REQUESTS }, 'requests are answered';
# httpd writes a line after its answer.
ok wait_for(sub { served($two) && served($one) }, 60, 'lines of each node'), 'by each node';

subtest 'a node is taken out' => sub {
    # Two at once go to different nodes.
    my @buys    = map { buy($shop, $file, limit => 1) } 1 .. 2;
    my @clients = map { MDL::DownloadClient->over('TLS', $front, link_of($_), buffer => 256 * 1024)
            ->read_until(4 * MB) } @buys;
    kill WINCH => $two->pid;    # httpd -k graceful-stop
    is_deeply requests(), { 200 => REQUESTS }, 'no request fails';
    is scalar(grep { $_->rest } @clients), 2, 'downloads run to their ends';
    ok wait_end($two), 'then the node ends';
    is_deeply [ map { settled($_, 60)->{used} } @buys ], [ 1, 1 ], 'each is one download';
    is_deeply requests(), { 200 => REQUESTS }, 'and still no request fails';
};

subtest 'a node is killed' => sub {
    $two->start;
    $one->aim;
    my $before = served($two);
    wait_for(sub { requests(); served($two) > $before }, 60, 'the balancer to use it again');
    $two->kill_all;
    is_deeply requests(), { 200 => REQUESTS }, 'no new request fails';
};

$front->stop;
$one->stop;
done_testing();
