# once: forks do not depend on the database
# What httpd can't fork it tries again later, and goes on meanwhile. A download for which it has not
# what metering takes is refused.
use strict;
use warnings;

use MDL::Customer;
use MDL::Instance;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(single => 1)->start;
my $shop   = new_shop();
my $parent = httpd_pid();
my ($worker) = worker_pids();

sub limit
{
    my ($pid, $what, $most) = @_;
    return system(qw(prlimit --pid), $pid, "--$what=$most:") == 0 || die "prlimit failed\n";
}

sub limit_processes { return limit($parent, nproc => $_[0]) }

# Waits for a line in what is new in the log since the last call.
my $read = error_log_size();
sub wait_log
{
    my ($line, $name) = @_;
    my $seen = eval { wait_for(sub { error_log_since($read) =~ $line }, 20, $line) };
    ok $seen, $name or diag $server->tail;
    $read = error_log_size();
    return;
}

my ($most) = qx(prlimit --pid $parent --nproc --output SOFT --noheadings --raw) =~ /(\w+)/;
limit_processes(1);
kill KILL => $worker;
wait_log(qr/MDL0332: .*another try/, 'the background process dies, and no other can be forked');
is api('GET', '/ping', key => $shop->{token})->{status}, 200, 'requests are served meanwhile';
httpd_signal('USR1');
wait_log(qr/MDL0348: .*MDL0349: .*MDL0332: /s,
    'nor can one, or one for the schema, during a graceful restart');
is httpd_pid(), $parent, 'httpd goes on';
limit_processes($most);

wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $worker }, 120, 'a background process');
pass 'once there is room for a process, there is one';
my $url   = source('any', 'x' x 1000);
my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'which works';
is scalar(worker_pids()), 1, 'it is the only one';

subtest 'Downloads without a thread to settle them are refused' => sub {
    my $buy  = buy($shop, new_file($shop, 1000));
    my $path = link_of($buy);
    my ($child) = server_pids();
    limit($child, nproc => 1);
    my $reply = page('GET', $path);
    limit($child, nproc => $most);
    is $reply->{status}, 503, 'one is refused';
    like $reply->{headers}{'retry-after'}, qr/^\d+$/, 'until later';
    is_deeply account($buy), { used => 0, sessions => [] }, 'which costs nothing';
    wait_log(qr/MDL0415: /, 'the log says so');
    is page('GET', $path)->{status}, 200, 'once there is room for a thread, it comes';
};

# Two descriptors are for the connection and the file.
sub leave_descriptors
{
    my ($pid, $left) = @_;
    my $least = 0;
    while ($left >= 0) {
        $left-- if !-l "/proc/$pid/fd/$least";
        $least++;
    }
    return limit($pid, nofile => $least - 1);
}

subtest 'A download without a descriptor left for it is refused' => sub {
    my $file = new_file($shop, 1000);
    my ($child) = server_pids();
    my ($nofile) = qx(prlimit --pid $child --nofile --output SOFT --noheadings --raw) =~ /(\w+)/;
    is page('GET', link_of(buy($shop, $file)))->{status}, 200, 'with one it comes';
    my ($buy, $reply);
    # Those of connections that have just ended are still open now and then.
    my $is_refused = sub {
        $buy = buy($shop, $file);
        my $path = link_of($buy);
        leave_descriptors($child, 2);
        $reply = page('GET', $path);
        limit($child, nofile => $nofile);
        return $reply->{status} == 503;
    };
    ok eval { wait_for($is_refused, 20, '503') }, 'without one it is refused' or diag $@;
    like $reply->{headers}{'retry-after'}, qr/^\d+$/, 'until later';
    is_deeply account($buy), { used => 0, sessions => [] }, 'which costs nothing';
    wait_log(qr/MDL0414: /, 'the log says so');
    is page('GET', link_of($buy))->{status}, 200, 'and later it comes';
};

$server->stop;
done_testing;
