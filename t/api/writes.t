# Every operation of the OpenAPI document that writes: Idempotency-Key, scope, media type.  New
# operations are included automatically; t/lib/MDL/Operations.pm has a successful request for each.
#
# long: every operation that writes
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::OpenApi;
use MDL::Operations;
use MDL::Test;
use Test::More;

# All rows are compared, so no other suite's jobs may change one.
my $server = MDL::Instance->new;
$server->start;

my $shop = new_shop();
my ($code, $read) = ctl('key', 'create', $shop->{shop_id}, 'reader', '--scope', 'read');
is($code, 0, 'a read-only key is created');

# --- what is stored --------------------------------------------------------------------------------

# Without the tables that also change without a write.
my @TABLES = grep { !/^(?:api_key|epoch|schema_migration|sqlite_.*)$/ } map { $_->[0] } sql(
    database() eq 'pgsql'
    ? "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    : "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
);
ok(scalar(grep { $_ eq 'idempotency' } @TABLES), 'the tables are listed');

# Every row of every table, as "table column column …".
sub rows { return map { join "\t", @$_ } sql(join '; ', map { "SELECT '$_', t.* FROM $_ t" } @TABLES) }

# The lines that are only in the first list ("-"), and those that are only in the second ("+").
sub difference
{
    my ($before, $after) = @_;
    my %before = map { $_ => 1 } @$before;
    my %after  = map { $_ => 1 } @$after;
    return (
        (map { "- $_" } grep { !$after{$_} } @$before),
        (map { "+ $_" } grep { !$before{$_} } @$after)
    );
}

sub nothing_changed
{
    my ($before, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @difference = difference($before, [ rows() ]);
    return ok(!@difference, $name) || diag(join "\n", @difference);
}

# The number of rows that each table has gained or lost, as "table+1 table-2 …".
sub growth
{
    my ($before, $after) = @_;
    my %count;
    $count{ (split /\t/)[0] }++ for @$after;
    $count{ (split /\t/)[0] }-- for @$before;
    return join ' ', map { sprintf '%s%+d', $_, $count{$_} } grep { $count{$_} } sort keys %count;
}

# --- answers ---------------------------------------------------------------------------------------

sub is_refused
{
    my ($operation, $reply, $status, $wanted, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = "$reply->{status} " . ($reply->{json}{error}{code} // $reply->{body});
    is($got, "$status $wanted", "$operation->{id}: $name");
    return fits($operation, $reply, $name);
}

sub brief
{
    my ($reply) = @_;
    return {
        status   => $reply->{status},
        body     => $reply->{body},
        location => $reply->{headers}{location} // 'none',
        replayed => $reply->{headers}{'idempotent-replayed'} // 'no',
    };
}

sub refusals
{
    my ($operation, $request) = @_;
    my $send   = sub { send_request($operation, $request, key => $shop->{token}, @_) };
    my $before = [ rows() ];
    is_refused($operation, $send->(idem => undef), 400, 'idempotency_key_required', 'without Idempotency-Key');
    is_refused($operation, $send->(headers => { 'Idempotency-Key' => [ idem(), idem() ] }), 400,
        'idempotency_key_invalid', 'with two Idempotency-Keys');
    is_refused($operation, $send->(idem => 'not one key'), 400, 'idempotency_key_invalid', 'with a space in the Idempotency-Key');
    is_refused($operation, $send->(key => undef), 401, 'unauthorized', 'without a key');
    is_refused($operation, $send->(key => $read->{token}), 403, 'insufficient_scope', 'with a read-only key');
    is_refused($operation, $send->(body => '{}', headers => { 'Content-Type' => 'text/plain' }), 415,
        'unsupported_media_type', 'with text');
    is_refused($operation, $send->(body => '{"nonsense":1}'), 400, 'invalid_request', 'with an unknown member');
    is_refused($operation, $send->(body => '{'), 400, 'invalid_json', 'with half an object');
    return nothing_changed($before, "$operation->{id}: refused requests change nothing");
}

# --- the operations --------------------------------------------------------------------------------

my @writes = grep { $_->{write} } operations();
cmp_ok(scalar @writes, '>', 0, 'the document has operations that write');

for my $operation (@writes) {
    my $id      = $operation->{id};
    my $request = eval { request_for($operation, $shop) };
    my $other   = eval { request_for($operation, $shop) };
    if (!$request || !$other) {
        fail("$id can be prepared");
        diag($@);
        next;
    }
    settle();
    refusals($operation, $request);

    # Once.
    my @before = rows();
    my $key    = idem($id);
    my $first  = send_request($operation, $request, key => $shop->{token}, idem => $key);
    like($first->{status}, qr/^2/, "$id succeeds") or diag($first->{body});
    fits($operation, $first, 'the first time');
    is($first->{headers}{'idempotent-replayed'}, undef, "$id: the first answer is not a replay");
    settle();
    my @after = rows();
    my @effect = difference(\@before, \@after);
    ok(scalar @effect, "$id has an effect");

    # Again.
    my $again = send_request($operation, $request, key => $shop->{token}, idem => $key);
    is_deeply(brief($again), { %{ brief($first) }, replayed => 'true' },
        "$id: a replay has the same status, bytes and Location");
    fits($operation, $again, 'the second time');
    settle();
    nothing_changed(\@after, "$id: a replay changes nothing");

    # The same key with another request.
    is_refused($operation, send_request($operation, $other, key => $shop->{token}, idem => $key), 409,
        'idempotency_conflict', 'the key of another request');
    nothing_changed(\@after, "$id: a conflict changes nothing");

    # Five at once.
    $key = idem($id);
    my @answers = parallel(5, sub {
        brief(send_request($operation, $other, key => $shop->{token}, idem => $key, timeout => 60))
    });
    my %different = map { join("\n", map { $_ // 'none' } @$_{qw(died status location body)}) => 1 } @answers;
    is(scalar keys %different, 1, "$id: five at once get the same answer") or diag(join "\n\n", keys %different);
    is(scalar(grep { ($_->{replayed} // '') ne 'true' } @answers), 1, "$id: four of the five are replays");
    settle();
    is(growth(\@after, [ rows() ]), growth(\@before, \@after), "$id: five at once have the effect of one");
}

done_testing();
