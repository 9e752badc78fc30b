# once: forks do not depend on the database
# What httpd can't fork it tries again later, and goes on meanwhile.
use strict;
use warnings;

use MDL::Instance;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(single => 1)->start;
my $shop   = new_shop();
my $parent = httpd_pid();
my ($worker) = worker_pids();

sub limit_processes { return system(qw(prlimit --pid), $parent, "--nproc=$_[0]:") == 0 || die "prlimit failed\n" }

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
wait_log(qr/MDL0348: .*MDL0349: .*MDL0332: /s, 'nor can one, or one for the schema, during a graceful restart');
is httpd_pid(), $parent, 'httpd goes on';
limit_processes($most);

wait_for(sub { my ($pid) = worker_pids(); $pid && $pid != $worker }, 40, 'a background process');
pass 'once there is room for a process, there is one';
my $url   = source('any', 'x' x 1000);
my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'which works';
is scalar(worker_pids()), 1, 'it is the only one';

$server->stop;
done_testing;
