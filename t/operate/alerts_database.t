# Alerts when the database is away, which keeps what was told.
#
# both: each is away in its own way
use strict;
use warnings;

use Test::More;

use MDL::Alerts;
use MDL::Test;

my $server = alerting('')->start;
wait_for(sub { (sql('SELECT count(*) FROM node'))[0][0] }, 30, 'a heartbeat');

subtest 'a database that is away' => sub {
    my $lock = lock_tables('node');
    wait_told($server, 'database failed');
    round_over($server);
    my $rounds = log_count($server, 'MDL0394: .* round 3$');
    httpd_graceful();
    wait_for(sub { log_count($server, 'MDL0394: .* round 3$') > $rounds }, 180, 'three rounds');
    is_deeply [ told($server) ], ['database failed'], 'is told once, also over a restart';
    unlock($lock);
    wait_told($server, 'database well');
    is_deeply [ told($server) ], [ 'database failed', 'database well' ], 'each once';
};

$server->stop;
done_testing();
