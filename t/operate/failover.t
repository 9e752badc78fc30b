# A PostgreSQL that fails over to its standby, with "host=first,second
# target_session_attrs=read-write": writes get 503 meanwhile and then go on, without a restart of
# httpd. With synchronous replication no acknowledged write is lost; without it, what the standby
# has not got is.
#
# pgsql: SQLite has no standby
use strict;
use warnings;

use MDL::Helper;
use MDL::Instance;
use MDL::Source;
use MDL::Target qw(slurp top_dir);
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep);

use constant { WRITERS => 4, MB => 1024 * 1024 };

my $server   = MDL::Instance->new(cluster => 1, extra => "DownloadsPollInterval 1\n");
my $postgres = top_dir() . '/tools/postgres';
my $owner    = $$;
chomp(my $bin = qx(pg_config --bindir));

# The clusters: the folder of each, and libpq's parameters for it alone.
my @clusters = map { { folder => $_ } } $server->{vars}{cluster},
    map { "$server->{folder}/standby-$_" } 1, 2;
for my $cluster (@clusters) {
    mkdir $cluster->{folder};
    chomp($cluster->{params} = qx("$postgres" params "$cluster->{folder}"));
    ($cluster->{host}) = $cluster->{params} =~ /host=(\S+)/;
}
my ($first, $second, $third) = @clusters;

END {
    if ($$ == $owner) {
        local $?;
        system($postgres, 'stop', $_->{folder}, 'immediate') for @clusters;
    }
}

sub on
{
    my ($cluster, $query) = @_;
    local $server->{vars}{db_params} = $cluster->{params};
    my ($row) = sql($query);
    return $row->[0];
}

# Adds a standby of a running cluster.
sub begin_standby
{
    my ($cluster, $primary) = @_;
    system("$bin/pg_basebackup", '-h', $primary->{host}, '-U', 'downloads', '-D',
        "$cluster->{folder}/data", '-R', '-c', 'fast') == 0 or die "pg_basebackup failed\n";
    chmod 0700, "$cluster->{folder}/data";
    system($postgres, 'start', $cluster->{folder}) == 0 or die "the standby does not start\n";
    wait_for(sub { on($primary, 'SELECT count(*) FROM pg_stat_replication') }, 60, 'the standby');
    return;
}

sub crash { my ($cluster) = @_; return system $postgres, 'stop', $cluster->{folder}, 'immediate' }
sub promote { my ($cluster) = @_; on($cluster, 'SELECT pg_promote(true, 60)'); return }

sub processes { return [ httpd_pid(), sort(server_pids()), worker_pids() ] }

# A client that creates categories, each with its own key until it is acknowledged, and writes down
# every answer as "status name".
sub writer
{
    my ($shop, $number) = @_;
    my $file = "$server->{folder}/writer-$number";
    return MDL::Helper->begin(sub {
        my (undef, $watch) = @_;
        open my $out, '>>', $file or die "$file: $!\n";
        my $ended = '';
        vec($ended, fileno $watch, 1) = 1;
        for (my $i = 1; !select(my $look = $ended, undef, undef, 0.005);) {
            my $name = "writer-$number-$i";
            my $reply = api('POST', '/categories', key => $shop->{token}, idem => "$name-$$-key",
                timeout => 60, json => { name => $name });
            syswrite $out, "$reply->{status} $name\n";
            $i++ if $reply->{status} == 201;
        }
    }, file => $file);
}

sub answers { return map { [ split / / ] } split /\n/, slurp(shift->{file}) // '' }

# Waits until each writer has got so many more answers of this kind.
sub wait_answers
{
    my ($status, $n, @writers) = @_;
    for my $writer (@writers) {
        my $count = sub { scalar grep { $_->[0] == $status } answers($writer) };
        my $before = $count->();
        wait_for(sub { $count->() >= $before + $n }, 60, "$n answers $status");
    }
    return;
}

my $hosts = join ',', map { $_->{host} } @clusters;
$server->{vars}{db_params}
    = "$first->{params} target_session_attrs=read-write" =~ s/host=\S+/host=$hosts/r;
$server->configure;
$server->start;
my $shop   = new_shop();
my $source = MDL::Source->new;

subtest 'synchronous: no acknowledged write is lost' => sub {
    begin_standby($second, $first);
    on($first, q{ALTER SYSTEM SET synchronous_standby_names = '*'});
    on($first, 'SELECT pg_reload_conf()');
    wait_for(sub { on($first, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'") }, 60,
        'synchronous replication');

    my $before = processes();
    my $url = $source->offer('held', { size => 3 * MB, etag => '"h"', hold => 2 * MB });
    my $import = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
    is $import->{status}, 202, 'an import begins';
    my @writers = map { writer($shop, $_) } 1 .. WRITERS;
    wait_answers(201, 5, @writers);
    crash($first);
    wait_answers(503, 2, @writers);
    is api('GET', '/health')->{status}, 503, 'while no primary is there, requests get 503';
    promote($second);
    wait_answers(201, 5, @writers);
    $_->stop for @writers;
    is api('GET', '/health')->{status}, 200, 'then they are answered';

    my @answers = map { answers($_) } @writers;
    is_deeply [ grep { $_->[0] !~ /^(?:201|503)$/ } @answers ], [], 'writes got 201 or 503';
    my %acknowledged = map { $_->[1] => 1 } grep { $_->[0] == 201 } @answers;
    my %there;
    $there{ $_->[0] }++ for sql("SELECT name FROM category WHERE name LIKE 'writer-%'");
    is_deeply [ grep { !$there{$_} } sort keys %acknowledged ], [], 'each that got 201 is there';
    is_deeply [ grep { $_ > 1 } values %there ], [], 'and none is there twice';
    $source->release('held');
    is wait_job($shop, $import->{json}{job}{id}, 60)->{status}, 'succeeded', 'the import goes on';
    is_deeply processes(), $before, 'no process of httpd was started or ended';
};

subtest 'asynchronous: what the standby has not got is lost' => sub {
    begin_standby($third, $second);
    my $make = sub {
        return api('POST', '/categories', key => $shop->{token}, timeout => 60,
            json => { name => shift });
    };
    is $make->('got')->{status}, 201, 'a write';
    my $at = on($second, 'SELECT pg_current_wal_lsn()');
    wait_for(sub { on($third, "SELECT pg_last_wal_replay_lsn() >= '$at'") eq 't' }, 60, 'replay');
    on($third, q{ALTER SYSTEM SET primary_conninfo = ''});
    on($third, 'SELECT pg_reload_conf()');
    wait_for(sub { !on($third, 'SELECT count(*) FROM pg_stat_wal_receiver') }, 60,
        'the end of replication');
    is $make->('lost')->{status}, 201, 'another is acknowledged while the standby lags';
    crash($second);
    promote($third);
    wait_for(sub { api('GET', '/health')->{status} == 200 }, 60, 'the new primary');
    is on($third, "SELECT string_agg(name, ' ') FROM category WHERE name IN ('got', 'lost')"),
        'got', 'which does not have it';
};

$server->stop;
done_testing();
