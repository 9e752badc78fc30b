# A database that is read-only for a while, such as a standby or a write-protected file: meanwhile
# requests that write are refused, and leave no open sockets in the server.
#
# both: each refuses in its own way
use strict;
use warnings;

use Test::More;

use MDL::Customer;
use MDL::Instance;
use MDL::Test;

use constant TRIES => 40;

my $server = MDL::Instance->new(mpm => 'event', extra => "DownloadsSessionIdle 1\n")->start;
my $shop   = new_shop();
my $file   = new_file($shop, 100_000);
my $buy    = buy($shop, $file, limit => 1);
my $path   = link_of($buy);

# Switches read-only mode for new connections, and ends those that can write; those of SQLite end
# with their process.
sub make_readonly
{
    my ($value) = @_;
    my $params = $server->{vars}{db_params};
    if (database() eq 'sqlite3') {
        # SQLite creates -wal and -shm with the mode of the database's file.
        chmod $value eq 'on' ? 0440 : 0640, $params, grep { -e } map { "$params-$_" } qw(wal shm);
        renew_children() if $value eq 'on';
        return;
    }
    my ($name) = $params =~ /dbname=(\S+)/;
    sql('BEGIN READ WRITE; '
            . "ALTER DATABASE $name SET default_transaction_read_only = $value; COMMIT");
    sql('SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
            . 'WHERE datname = current_database() AND pid <> pg_backend_pid()');
    return;
}

# httpd_graceful would wait for /health.
sub renew_children
{
    my %old = map { $_ => 1 } server_pids();
    kill USR1 => $server->pid;
    return wait_for(sub { my @now = server_pids(); @now && !grep { $old{$_} } @now }, 30,
        'new children');
}

# The sockets that the children of the server have open.
sub sockets
{
    my ($pid) = MDL::Test::slurp($server->{vars}{t_pid_file}) =~ /(\d+)/;
    my $children = MDL::Test::slurp("/proc/$pid/task/$pid/children");
    return grep { (readlink($_) // '') =~ /^socket:/ } map { glob "/proc/$_/fd/*" }
        split ' ', $children;
}

page('GET', $path, headers => { Range => 'bytes=0-9' });
is settled($buy)->{used}, 0, 'a part costs nothing yet';
make_readonly('on');
my %answers;
page('GET', $path)->{status} == 503 or fail('the first download is refused');
my $before = sockets();
$answers{ page('GET', $path)->{status} }++ for 1 .. TRIES;
is_deeply \%answers, { 503 => TRIES }, 'downloads are answered 503';
my $told = database() eq 'pgsql' ? qr/read-only transaction$/ : qr/readonly database$/;
like $server->error_log, qr/MDL0110: .*$told/m, 'the log says why';
# The server notices a moment later that a client has closed its connection.
my $open;
eval { wait_for(sub { ($open = sockets()) < $before + TRIES / 2 }, 60, 'connections to close') };
cmp_ok $open, '<', $before + TRIES / 2, 'and no socket stays open' or diag "$before before";

is page('GET', $buy->{path})->{status}, database() eq 'pgsql' ? 200 : 503,
    'a database that can still be read shows the page, whose visit can\'t be written down';

make_readonly('off');
wait_for(sub { page('GET', $path)->{status} == 200 }, 10, 'the download');
is settled($buy)->{used}, 1, 'the customer gets the file, for one download';

page('GET', $buy->{path}) if database() ne 'pgsql';
wait_for(sub { sql('SELECT 1 FROM order_visit') }, 20, 'the visit');
pass 'the visit is written down then';

$server->stop;
done_testing();
