# PgBouncer between httpd and PostgreSQL: with session pooling, as docs/scale.md has it, everything
# works and nothing runs twice; transaction pooling, which seems to work, is found by `check`.
#
# pgsql: SQLite has no server
use strict;
use warnings;

use MDL::Instance;
use MDL::PgBouncer;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(extra => "DownloadsMailFrom shop\@shop.test\n");
my $direct = $server->{vars}{db_params};
my $extra  = $server->{extra};

sub check_database
{
    my ($code, $json, $text) = ctl('check', '--httpd',
        "$ENV{HTTPD} -f $server->{folder}/httpd.conf");
    my ($line) = grep { $_->{name} eq 'database' } @{ $json->{checks} // [] };
    return ($code, $line // {}, $text);
}

sub start_behind
{
    my ($mode) = @_;
    my $pooler = MDL::PgBouncer->new($server, $mode);
    $server->configure(extra => $extra . qq(DBDParams "${\ $pooler->params}"\n),
        without => qr/^DBDParams/);
    $server->start;
    return $pooler;
}

# Writes by several processes at once; returns their statuses.
sub writes
{
    my ($shop) = @_;
    my @replies = parallel(24, sub {
        my ($i) = @_;
        return api('POST', '/categories', key => $shop->{token}, json => { name => "$$ $i" });
    });
    my %statuses;
    $statuses{ $_->{status} }++ for @replies;
    return \%statuses;
}

sub runs_again { return scalar(() = $server->error_log =~ /MDL0109/g) }

subtest 'session pooling' => sub {
    my $pooler = start_behind('session');
    my $shop   = new_shop();
    is_deeply writes($shop), { 201 => 24 }, 'writes succeed';
    is runs_again(), 0, 'and none runs twice';
    wait_heartbeat();
    my ($code, $line, $text) = check_database();
    is $code, 0, 'check finds nothing' or diag $text;
    like $line->{message}, qr/ \d+ of \d+ connections in use/, 'and counts the connections';
    $server->stop;
    $pooler->stop;
};

subtest 'transaction pooling' => sub {
    my $pooler = start_behind('transaction');
    my $shop   = new_shop();
    my $before = runs_again();
    cmp_ok writes($shop)->{201}, '>', 12, 'most writes seem to succeed';
    cmp_ok runs_again(), '>', $before, 'but run twice';
    for my $when ('beside httpd', 'alone') {
        my ($code, $line, $text) = check_database();
        is $code, 6, "check $when ends with 6" or diag $text;
        ok !$line->{ok}, 'for the database';
        like $line->{message}, qr/another connection.*pool_mode = session/, 'and says what to do';
        $server->stop if $server->pid;
    }
    $pooler->stop;
};

done_testing();
