# GET /jobs by status, type and asset (contract, section 6): alone, together, page by page, and
# beside thousands of jobs that do not fit.
#
# both: the database filters
use strict;
use warnings;

use MDL::Contract;
use MDL::Test;
use Test::More;

my $shop  = new_shop();
my $other = new_shop();
my @asset = map { ready_asset($shop, "job-filters-$$-$_.txt", "file $_\n")->{id} } 1 .. 2;
my $gone  = import_of($shop, "job-filters-$$-gone.txt", 'x',
    source_url => source_url('nothing-is-here'));
is(wait_job($shop, $gone->{json}{job}{id})->{status}, 'failed', 'an import fails');
ready_asset($other, "job-filters-$$-other.txt", "another's\n");

sub found
{
    my ($query) = @_;
    my ($cursor, @found);
    for my $page (1 .. 100) {
        my $reply = api('GET', "/jobs?$query" . (defined $cursor ? "&cursor=$cursor" : ''),
            key => $shop->{token});
        is_answer($reply, 200, "jobs?$query");
        push @found, map { $_->{asset_id} } @{ $reply->{json}{data} };
        $cursor = $reply->{json}{next_cursor} // return \@found;
    }
    die "jobs?$query has no end\n";
}

my $failed = $gone->{json}{asset}{id};
for (
    [ '',                                     [ $failed, @asset[ 1, 0 ] ] ],
    [ 'status=succeeded',                     [ @asset[ 1, 0 ] ] ],
    [ 'status=failed',                        [$failed] ],
    [ 'status=cancelled',                     [] ],
    [ 'type=asset_import',                    [ $failed, @asset[ 1, 0 ] ] ],
    [ 'type=storefront_lookup',               [] ],
    [ "asset_id=$asset[0]",                   [ $asset[0] ] ],
    [ 'asset_id=999999',                      [] ],
    [ "asset_id=$failed&status=failed&type=asset_import", [$failed] ],
    [ "asset_id=$failed&status=succeeded",    [] ],
) {
    my ($query, $expected) = @$_;
    is_deeply(found($query), $expected, "jobs?$query: those that fit");
    is_deeply(found("$query&limit=1"), $expected, 'one by one, too');
}
my $ended = sub { api('GET', "/jobs/$gone->{json}{job}{id}", key => $shop->{token})->{json} };
# A millisecond later if it changed twice in one.
cmp_ok($ended->()->{updated_at}, 'ge', $ended->()->{finished_at},
    'a job was last updated when it ended');
is(api('POST', "/jobs/$gone->{json}{job}{id}/retry", key => $shop->{token}, json => {})->{status},
    202, 'it is tried again');
cmp_ok($ended->()->{updated_at}, 'gt', $ended->()->{created_at}, 'which moves it');
is(wait_job($shop, $gone->{json}{job}{id})->{status}, 'failed', 'and fails again');
for my $query ('status=open', 'type=email', 'asset_id=x') {
    my ($name) = $query =~ /^(\w+)/;
    is_error(api('GET', "/jobs?$query", key => $shop->{token}), 400, 'invalid_request', $query,
        "/$name");
}

sql('INSERT INTO job (id, shop_id, type, lane, asset_id, status, attempts, max_attempts, '
        . 'lease_token, bytes_received, bytes_total, created_at) WITH RECURSIVE n (i) AS (SELECT 1 '
        . 'UNION ALL SELECT i + 1 FROM n WHERE i < 2500) '
        . "SELECT 'job_7ZZZZZZZZZZZZZZZZZZ' || (1000000 + i), $shop->{shop_id}, 'asset_import', "
        . "'small', $asset[0], 'succeeded', 1, 5, 1, 0, 0, i FROM n");
is_deeply(found('status=failed'), [$failed],
    'a job that failed is found behind thousands that did not');
is_deeply(found("asset_id=$asset[1]"), [ $asset[1] ], 'as is that of an asset');
is(scalar(@{ found('status=succeeded&limit=100') }), 2502, 'those that fit are found, all of them');
my $page = api('GET', '/jobs?status=cancelled', key => $shop->{token})->{json};
is_deeply([ scalar @{ $page->{data} }, $page->{has_more} ? 1 : 0 ], [ 0, 1 ],
    'a page can be empty, and not the last');
is_deeply(found('status=cancelled'), [], 'but the pages end');

done_testing();
