# The database refuses what came of a job (here by a trigger, as it may for want of memory or by a
# fault of the disk): it is written down a little later, and only what is refused for long has
# failed.
#
# both: each refuses in its own way
use strict;
use warnings;

use MDL::Instance;
use MDL::Mail;
use MDL::Receiver;
use MDL::Source;
use MDL::Test;
use Test::More;

my $server   = MDL::Instance->new(extra => "DownloadsRetryDelay 100\nDownloadsMailConnections 1\n")
    ->start;
my $source   = MDL::Source->new;
my $receiver = MDL::Receiver->new;
my $shop     = shop_with_product('Refused');

# From here on the database refuses to update a table's rows that fit.
sub refuse
{
    my ($table, $rows) = @_;
    return sql(database() eq 'pgsql'
        ? "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION "
        . "''refused''; END'; CREATE TRIGGER refuse BEFORE UPDATE "
        . "ON $table FOR EACH ROW WHEN ($rows) EXECUTE FUNCTION refuse()"
        : "CREATE TRIGGER refuse BEFORE UPDATE ON $table WHEN $rows BEGIN "
        . "SELECT RAISE(ABORT, 'refused'); END");
}

sub take_again
{
    return sql(database() eq 'pgsql' ? 'DROP FUNCTION refuse CASCADE' : 'DROP TRIGGER refuse');
}

sub refusals
{
    my ($offset) = @_;
    return scalar(my @found = error_log_since($offset) =~ /MDL0101.*refused/g);
}

sub wait_refused
{
    my ($offset, $times) = @_;
    return wait_for(sub { refusals($offset) >= $times }, 60, "$times refusals");
}

# Has what $begin begins refused, until $meanwhile is done; returns what $begin returned. After five
# refusals a job has failed: where the machine was busy for so long, it begins another.
sub refused_for_a_while
{
    my ($begin, $meanwhile) = @_;
    for my $try (1 .. 10) {
        my $log = error_log_size();
        refuse('job', "NEW.status = 'succeeded'");
        my $begun = $begin->($try);
        wait_refused($log, 1);
        $meanwhile->();
        return $begun if refusals($log) < 4;
    }
    die "what was refused was not taken again in time\n";
}

sub import_of
{
    my ($name) = @_;
    my $reply = api('POST', '/assets', key => $shop->{token}, patient => 1,
        json => { source_url => $source->offer($name, { size => 1000 }) });
    die "import: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json}{job}{id};
}

subtest 'what the database refuses once' => sub {
    my ($to, $name);
    my $order = refused_for_a_while(
        sub { order_for($shop, $to = "once$_[0]\@buyer.example") }, \&take_again);
    is wait_email($shop, $order, sub { $_[0]{status} =~ /^(?:sent|failed)$/ })->{status}, 'sent',
        'an email is sent';
    is scalar mails($to), 1, 'and only once';

    my $job = refused_for_a_while(sub { import_of($name = "once$_[0]") }, \&take_again);
    is wait_job($shop, $job)->{status}, 'succeeded', 'an import succeeds';
    is scalar $source->requests($name), 1, 'and is not done again';
};

# How often the background process has gone round, or more.
sub turns
{
    my ($pid) = @_;
    return (
        MDL::Test::slurp("/proc/$pid/task/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m)[0];
}

subtest 'what the database refuses, and then is away for' => sub {
    my ($worker) = worker_pids();
    my $to;
    my $away = sub {
        take_database($worker);
        take_again() if database() eq 'sqlite3';    # a trigger comes before the disk
        my $turns = turns($worker);
        wait_for(sub { turns($worker) > $turns + 15 }, 120, 'some tries');
        give_database($worker);
        take_again() if database() eq 'pgsql';
    };
    my $order = refused_for_a_while(
        sub { order_for($shop, $to = "away$_[0]\@buyer.example") }, $away);
    is wait_email($shop, $order, sub { $_[0]{status} =~ /^(?:sent|failed)$/ })->{status}, 'sent',
        'an email is sent';
    is scalar mails($to), 1, 'and only once';
    $order = order_for($shop, 'next@buyer.example');
    is wait_email($shop, $order, sub { $_[0]{status} =~ /^(?:sent|failed)$/ })->{status}, 'sent',
        'the only slot for emails is free again';
    is_deeply [ worker_pids() ], [$worker], 'of the same background process';
};

subtest 'what the database refuses each time' => sub {
    refuse('asset', "NEW.status = 'ready'");
    my $job = wait_job($shop, import_of('always'));
    take_again();
    is "$job->{status} $job->{error}{code}", 'failed internal_error', 'an import fails';
};

subtest "an endpoint's job lasts" => sub {
    my $endpoint = $receiver->endpoint($shop, 'hook');
    my $test     =
        sub { api('POST', "/webhook-endpoints/$endpoint->{id}/test", key => $shop->{token}) };
    my $log      = error_log_size();
    refuse('webhook_delivery', '1 = 1');
    $test->();
    wait_for(sub { error_log_since($log) =~ /MDL0324/ }, 30, 'the last refusal');
    take_again();
    my $deliveries;
    wait_for(sub {
        $deliveries = api('GET', "/webhook-endpoints/$endpoint->{id}/deliveries",
            key => $shop->{token})->{json}{data};
        return $deliveries->[0]{status} eq 'succeeded';
    }, 20, 'the delivery');
    is $deliveries->[0]{attempts}, 1, 'after refusals, the delivery goes on';

    wait_for(sub { (sql("SELECT status FROM job WHERE type = 'webhook'"))[0][0] eq 'queued' }, 10,
        'its job to wait');
    sql("UPDATE job SET interruptions = 3 WHERE type = 'webhook'");
    my $before = () = $receiver->received('hook');
    $test->();
    ok $receiver->await('hook', $before + 1), 'and after its worker died three times';
};

done_testing;
