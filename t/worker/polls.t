# What the background process finds by its polls, of which nobody has told it.
#
# both: the database finds what is due
use strict;
use warnings;

use IPC::Open2 qw(open2);
use MDL::Instance;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\n")->start;
my $shop   = new_shop();

# An SQL statement that inserts an event, or one for each row of $from.
sub insert_event
{
    my ($from) = @_;
    return 'INSERT INTO event (shop_id, type, data, created_at) '
        . "SELECT $shop->{shop_id}, 'order.assigned', '{}', 1 " . ($from // '');
}

# Waits until each event that is committed has its number.
sub numbered
{
    return wait_for(sub { !(sql('SELECT count(*) FROM event WHERE number IS NULL'))[0][0] }, 20,
        'the numbers');
}

# Each look for times of before the clock was set back changes when this job is due.
subtest 'times of before the clock was set back are looked for ever less often' => sub {
    my $ahead = (time + 3600) * 1_000_000;
    my $due   = $ahead + 360_000_000_000;
    sql('INSERT INTO job (id, shop_id, type, lane, status, attempts, max_attempts, due_at, '
        . 'lease_token, '
        . "bytes_received, created_at, updated_at) VALUES ('job_ahead', $shop->{shop_id}, "
        . "'email', 'mail', 'queued', 0, 1, $due, 0, 0, $ahead, $ahead)");
    my $began = time;
    httpd_graceful();    # a background process that begins looks most often
    my %seen = ($due => 1);
    for (1 .. 8) {
        sql(insert_event());
        numbered();    # by a poll, after its look
        $seen{ (sql("SELECT due_at FROM job WHERE id = 'job_ahead'"))[0][0] } = 1;
    }
    my $looks = keys(%seen) - 1;
    cmp_ok $looks, '>', 0, 'they are looked for';
    # At once, after a second, and whenever that time has doubled: five times in eight seconds.
    cmp_ok $looks, '<=', 2 + log(time - $began + 1) / log(2), 'and not by each of eight polls';
};

subtest 'an event that is committed after 1,001 later ones gets its number' => sub {
    my $pid = open2(my $out, my $in, MDL::Database::psql(), MDL::Database::patient(), '-qAtX');
    print $in 'BEGIN; ', insert_event(), "RETURNING id;\n";
    chomp(my $late = <$out>);
    sql(insert_event('FROM generate_series(1, 1001)'));
    numbered();
    print $in "COMMIT;\n";
    close $in;
    waitpid $pid, 0;
    numbered();
    is_deeply [ sql('SELECT id FROM event ORDER BY number DESC LIMIT 1') ], [ [$late] ],
        'behind theirs';
} if database() eq 'pgsql';

$server->stop;
done_testing;
