# downloadsctl copy-database moves a service that has a bit of everything from PostgreSQL to SQLite
# and on to another PostgreSQL, each time killed and gone on with. A dump of both is the same, and
# the service goes on with its copy. `make check-copy-database` does so with a million orders.
#
# pgsql: it copies to SQLite and back
use strict;
use warnings;

use MDL::Customer;
use MDL::Database;
use MDL::Instance;
use MDL::OpenApi;
use MDL::Operations;
use MDL::Test;
use MDL::Upload;
use POSIX ();
use Test::More;

use constant { F_SETPIPE_SZ => 1031, FIONREAD => 0x541B, LINES => 100 };

my $ORDERS = $ENV{ORDERS} // 0;
my $server = MDL::Instance->new->start;
my $vars   = $server->{vars};
my $other  = "$server->{name}_copy";
my %sqlite = (db_driver => 'sqlite3', db_params => "$server->{folder}/copy.db");
my %pgsql  = (db_driver => 'pgsql',
    db_params => $vars->{db_params} =~ s/dbname=\S+/dbname=$other/r);

system(MDL::Database::psql(), MDL::Database::patient(), '-qX', '-c', "CREATE DATABASE $other") == 0
    or die "the database $other can't be created\n";

# A request of every kind, and what customers do.
my $shop = new_shop();
for my $operation (grep { $_->{write} } operations()) {
    send_request($operation, request_for($operation, $shop), key => $shop->{token});
}
my $file = new_file($shop, 100_000);
my $buy  = buy($shop, $file);
page('GET', $buy->{path});
page('GET', link_of($buy));
page('GET', link_of($buy), headers => { Range => 'bytes=0-9' });
page('POST', $buy->{path} =~ s{/o/.*}{/find/$shop->{domain}}r, form => { email => 'a@b.example' });
my $upload = begin_upload($shop, size => 10);
put_bytes($upload, 'half');
api('PATCH', "/orders/$buy->{id}", key => $shop->{token},
    json => { note => "Zo\xc3\xab's \\ \"1\"\t" });
sql('UPDATE customer SET merged_into = (SELECT max(id) FROM customer) '
        . 'WHERE id = (SELECT min(id) FROM customer)');    # who comes later
settle();
wait_for(sub { sql('SELECT 1 FROM order_visit') }, 20, 'the visit');

# --- many orders ----------------------------------------------------------------------------------

sub without_limit { return $vars->{db_params} =~ s/statement_timeout=\d+/statement_timeout=0/r }

# Adds rows like the last of a table, with other values in some columns.
sub multiply
{
    my ($table, %with) = @_;
    my @columns = map { $_->[0] } sql('SELECT column_name FROM information_schema.columns '
            . "WHERE table_schema = current_schema() AND table_name = '$table'");
    my $names  = join ', ', @columns;
    my $values = join ', ', map { $with{$_} // "s.$_" } @columns;
    local $vars->{db_params} = without_limit();
    sql("INSERT INTO $table ($names) SELECT $values "
            . "FROM generate_series(1000001, 1000000 + $ORDERS) n, "
            . "(SELECT * FROM $table ORDER BY 1 DESC LIMIT 1) s");
    sql("SELECT setval('${table}_id_seq', 1000000 + $ORDERS)") if ($with{id} // '') eq 'n';
    return;
}

if ($ORDERS) {
    multiply('customer', id => 'n', storefront_customer_id => "'mass-' || n",
        email => "'é' || n || '\@buyer.example'");
    multiply('orders', id => 'n', storefront_order_id => 'n', customer_id => 'n',
        page_id => "'page-' || n");
    multiply('assignment', id => 'n', order_id => 'n');
    multiply($_, assignment_id => 'n') for qw(assignment_file allowance);
    multiply('order_timeline', id => 'n', order_id => 'n');
    multiply('email', id => 'n', order_id => 'n', message_id => "'mass-' || n");
    multiply('download_session', id => "'mass-' || n", assignment_id => 'n');
}

# --- a copy ---------------------------------------------------------------------------------------

# The rows of each table of the current server: their number, and a digest of them as texts, sorted.
# What processes have, and the copy's own mark, differ.
sub dump_of
{
    my %columns;
    my $is_pgsql = database() eq 'pgsql';
    my $char = $is_pgsql ? 'chr' : 'char';
    push @{ $columns{ $_->[0] } }, $_->[1] for sql($is_pgsql
        ? "SELECT table_name, column_name FROM information_schema.columns "
            . "WHERE table_schema = current_schema() ORDER BY 2"
        : "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c "
            . "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY 2");
    delete @columns{qw(alert alert_finding meter node schema_migration)};
    return { map {
        my $list = join ', ',
            map { "COALESCE(replace(CAST(\"$_\" AS TEXT), $char(10), ' '), '(none)')" }
            @{ $columns{$_} };
        $_ => digest_of(qq(SELECT $list FROM "$_"))
    } keys %columns };
}

sub digest_of
{
    my ($query) = @_;
    local @ENV{qw(QUERY PARAMS)} = ($query, database() eq 'pgsql'
        ? without_limit() : $vars->{db_params});
    my $ask = database() eq 'pgsql' ? MDL::Database::psql() . q( "$PARAMS" -AtX -F "|" -c "$QUERY")
        : 'sqlite3 -separator "|" "$PARAMS" "$QUERY"';
    my $digest = qx(bash -o pipefail -c '$ask | LC_ALL=C sort | tee >(wc -l >&2) | sha256sum' 2>&1);
    die "no dump: $digest\n" if $?;
    my ($rows) = $digest =~ /^(\d+)$/m;
    my ($sha)  = $digest =~ /^(\w{64}) /m;
    return { rows => $rows, sha256 => $sha };
}

sub database_at
{
    my ($to) = @_;
    @$vars{qw(db_driver db_params)} = @$to{qw(db_driver db_params)};
    $server->configure;
    return $server->aim;
}

# Begins a command, and kills it once it has written a line. Its output goes to a pipe that has room
# for a few lines alone, so that it waits there and does not end before.
sub killed
{
    my (@command) = @_;
    pipe my $out, my $in or die "pipe: $!\n";
    my $filled = 0;
    if (!$ORDERS) {
        my $size = fcntl $in, F_SETPIPE_SZ, 4096 or die "F_SETPIPE_SZ: $!\n";
        $filled = syswrite $in, '-' x ($size - LINES);
    }
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>&', $in;
        exec @command or POSIX::_exit(127);
    }
    close $in;
    wait_for(sub {
        my $waiting = pack 'i', 0;
        ioctl $out, FIONREAD, $waiting or die "FIONREAD: $!\n";
        return unpack('i', $waiting) > $filled;
    }, 120, 'a line of the copy');
    sleep $ORDERS / 100_000;
    kill KILL => $pid;
    waitpid $pid, 0;
    my $how = $? & 127;
    return ($how, join '', <$out>);
}

# Copies to a database; kills the copy once it has copied a table, and has it go on.
sub copied
{
    my ($to) = @_;
    my @command = ("$vars->{build}/downloadsctl", '-f', $vars->{conf_file}, 'copy-database',
        @$to{qw(db_driver db_params)});
    my ($how, $said) = killed(@command);
    is $how, 9, 'the copy is killed' or diag $said;

    my %from = %$vars;
    database_at($to);
    my ($code, $answer) = ctl('maintenance', 'off');
    is "$code $answer->{error}{code}", '5 copy_unfinished', 'an unfinished copy stays closed';
    database_at(\%from);
    my $before = dump_of();
    ($code, $answer) = ctl('copy-database', @$to{qw(db_driver db_params)});
    is $code, 0, 'it goes on' or diag explain $answer;
    my $rows = 0;
    $rows += $_->{rows} for values %$before;
    cmp_ok $answer->{copied}, '<', $answer->{rows}, 'not from the beginning';
    is $answer->{tables}, keys(%$before) - 1, 'it has copied every table';
    is $answer->{rows}, $rows - 1, 'and every row' or diag explain $answer;
    ($code, $answer) = ctl('copy-database', @$to{qw(db_driver db_params)});
    is "$code $answer->{error}{code}", '5 target_not_empty', 'it does so once';

    $server->stop;
    database_at($to);
    my $after = dump_of();
    is_deeply [ grep { $before->{$_}{sha256} ne $after->{$_}{sha256} } sort keys %$before ], [],
        'a dump of both is the same';
    cmp_ok scalar(grep { $_->{rows} } values %$after), '>=', 44, 'of many tables';
    $server->start;
    is api('GET', "/orders/$buy->{id}", key => $shop->{token})->{status}, 200, 'reads go on';
    is page('GET', link_of($buy))->{status}, 503, 'downloads wait';
    is((ctl('maintenance', 'off'))[0], 0, 'until it is over');
    is page('GET', link_of($buy))->{status}, 200, 'then they go on';
    my ($last) = sql('SELECT max(id) FROM orders');
    my $new = buy($shop, $file);
    my ($id) = sql("SELECT id FROM orders WHERE storefront_order_id = '$new->{id}'");
    cmp_ok $id->[0], '>', $last->[0], 'new orders have new numbers';
    return page('GET', link_of($new));
}

my ($code, $answer) = ctl('copy-database', @sqlite{qw(db_driver db_params)});
is "$code $answer->{error}{code}", '5 maintenance_off', 'rows may not change meanwhile';
is((ctl('maintenance', 'on', '--reason', 'another database'))[0], 0, 'maintenance is on');
($code, $answer) = ctl('copy-database', @$vars{qw(db_driver db_params)});
is "$code $answer->{error}{code}", '5 same_database', 'a database is no copy of itself';
sql("INSERT INTO storage_hold (id, user_name, held_at, lapses_at) VALUES ('b', 'root', 1, "
        . 1_000_000 * (time + 3600) . ')');
($code, $answer) = ctl('copy-database', @sqlite{qw(db_driver db_params)});
is "$code $answer->{error}{code}", '5 still_running', 'a backup writes in the database';
like $answer->{error}{message}, qr/^A backup runs: wait/, 'and is waited for';
sql('DELETE FROM storage_hold');

subtest 'a terminal sees how far it is' => sub {
    my $command = "$vars->{build}/downloadsctl -f $vars->{conf_file} copy-database sqlite3 "
        . "$server->{folder}/seen.db";
    my $seen = qx(script -qec '$command' /dev/null);
    like $seen, qr/^(?:\r[#.]+ +\d+ %, \d+ of \d+ rows)+\r +\r\w+: \d+ rows copied/, 'by a line';
    like $seen, qr/%, \d+ of \d+ rows compared.*\r +\rAll \d+ rows/, 'also when it compares';
};
subtest 'to SQLite' => sub { copied(\%sqlite) };

is((ctl('maintenance', 'on'))[0], 0, 'maintenance is on again');
subtest 'and back' => sub { copied(\%pgsql) };
is((ctl('storage', 'verify', '--full'))[0], 0, 'every file is there');

$server->stop;
done_testing();
