# What each kind of request costs the database: statements, round trips to PostgreSQL, and rows
# read. These numbers do not depend on the machine, so a change that raises one is noticed. The
# background process and the thread that settles downloads are not counted.
#
# both: each database is asked in another way
use strict;
use warnings;

use List::Util qw(sum0);
use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Test;
use Test::More;

# One connection, so that all statements of a kind are prepared after its first request.
my $server = MDL::Instance->new(mpm => 'event', single => 1, extra => <<'END')->start;
DBDMax 1
LogFormat "%{X-Kind}i %{downloads-db}n" costs
CustomLog "@t_logs@/costs" costs
END
my $shop    = new_shop();
my %key     = (key => $shop->{token});
my $file    = new_file($shop, 10_000);
my @others  = map { new_file($shop, 100 + $_) } 1 .. 2;
my @mapped  = map { mapping_of($shop, [ $_->{id} ])->{storefront_product_id} } $file, @others;
my $order   = digits();

sub item { my (@products) = @_; return [ map { { storefront_product_id => $_ } } @products ] }

sub assigned
{
    my ($id, $products, %more) = @_;
    my ($headers, $idem) = delete @more{qw(headers idem)};
    return api('POST', "/orders/$id/assignments", %key, headers => $headers,
        idem => $idem // idem(),
        json => { storefront_customer_id => $id, items => item(@$products), %more });
}

# The id of what was made.
sub made
{
    my ($path, %members) = @_;
    return api('POST', $path, %key, json => \%members)->{json}{id};
}

# Its links and license keys are asked for after it: most orders have none.
sub full_order
{
    my $id  = digits();
    my $tag = made('/license-key-tags', name => 'A');
    made("/license-key-tags/$tag/keys", keys => ['A-1']);
    my $link    = made('/links', title => 'A', url => 'https://a.example/');
    my $mapping = mapping_of($shop, [ $file->{id} ], link_ids => [$link],
        license_key_tag_ids => [$tag]);
    assigned($id, [ $mapping->{storefront_product_id} ]);
    return $id;
}

assigned($order, [ $mapped[0] ]);
my $updated = product();
my $turn    = 0;
my $full;
my $replay  = idem();
my $page    = buy($shop, $file, limit => 1000);
my $part    = link_of($page);
page('GET', $part);
settled($page);

# Each kind: its name, statements, round trips to PostgreSQL, rows, and a request that can be
# repeated.
my @kinds = (
    [ 'ping', 0, 0, 0, sub { api('GET', '/ping', %key, @_) } ],
    [ 'a mapping is created', 7, 3, 2,
        sub { api('POST', '/mappings', %key, @_,
            json => { storefront_product_id => product(), file_ids => [ $file->{id} ] }) } ],
    [ 'a mapping is put once more', 7, 4, 7,
        sub { api('POST', '/mappings', %key, @_,
            json => { storefront_product_id => $updated, file_ids => [ $file->{id} ] }) } ],
    [ 'a mapping is put with another file', 9, 4, 7,
        sub { api('POST', '/mappings', %key, @_,
            json => { storefront_product_id => $updated,
                file_ids => [ $others[ $turn++ % 2 ]{id} ] }) } ],
    [ 'one item is assigned to a new order', 11, 5, 5,
        sub { assigned(digits(), [ $mapped[0] ], @_) } ],
    [ 'three items are assigned to a new order, with an email', 18, 7, 13,
        sub { my $id = digits(); assigned($id, \@mapped, @_, send_email => JSON::PP::true(),
            customer => { email => "$id\@buyer.example" }) } ],
    [ 'an assignment is replayed', 1, 2, 1,
        sub { assigned('77', [ $mapped[0] ], @_, idem => $replay) } ],
    [ 'an order is read', 5, 2, 4, sub { api('GET', "/orders/$order", %key, @_) } ],
    [ '25 orders are listed', 4, 2, 84, sub { api('GET', '/orders?limit=25', %key, @_) } ],
    [ 'summaries of 25 orders are listed', 3, 2, 45,
        sub { api('GET', '/orders?limit=25&view=summary', %key, @_) } ],
    [ 'six emails are listed', 1, 1, 6, sub { api('GET', '/emails', %key, @_) } ],
    [ 'an order with a link and a license key is read', 7, 3, 6,
        sub { $full //= full_order(); api('GET', "/orders/$full", %key, @_) } ],
    [ 'a search', 11, 8, 6, sub { api('GET', "/search?q=$order", %key, @_) } ],
    [ 'an upload is begun', 5, 4, 2,
        sub { api('POST', '/assets/uploads', %key, @_, json => { filename => 'a', size => 1 }) } ],
    [ 'a page is looked at', 3, 2, 3, sub { page('GET', $page->{path}, @_) } ],
    [ 'a button is pressed', 3, 2, 3,
        sub { page('POST', $page->{path}, form => { file => $page->{button} }, @_) } ],
    [ 'a whole file is downloaded', 4, 2, 1, sub { page('GET', link_of($page), @_) } ],
    [ 'a part of what was counted is downloaded', 1, 1, 1,
        sub {
            my (undef, $headers) = @_;
            page('GET', $part, headers => { %$headers, Range => 'bytes=5-99' });
        } ],
);

# The cost of each request of a kind, as [ statements, trips, rows ].
sub costs_of
{
    my ($kind) = @_;
    my @costs;
    for my $line (split /\n/, MDL::Test::slurp(logs_dir() . '/costs')) {
        my ($name, @words) = split /[ ,]+/, $line;
        next if $name ne $kind;
        my @of = map { [/^statements=(\d+);trips=(\d+);rows=(\d+)$/] } grep { $_ ne '-' } @words;
        push @costs, [ map { my $i = $_; sum0(map { $_->[$i] } @of) } 0 .. 2 ];
    }
    return @costs;
}

# The lowest of several costs: now and then a request also checks whether a key has changed.
sub least
{
    my ($kind, $times) = @_;
    my @costs;
    wait_for(sub { (@costs = costs_of($kind)) >= $times }, 60, "$times lines of $kind");
    shift @costs;    # the first request also prepares the statements
    return [ map { my $i = $_; (sort { $a <=> $b } map { $_->[$i] } @costs)[0] } 0 .. 2 ];
}

for my $i (0 .. $#kinds) {
    my ($name, $statements, $trips, $rows, $request) = @{ $kinds[$i] };
    my $cost = join ' ', $statements, database() eq 'pgsql' ? $trips : 0, $rows;
    for (1 .. 6) {
        my $reply = $request->(headers => { 'X-Kind' => "kind-$i" });
        like $reply->{status}, qr/^(?:20[0126]|303)$/, "$name: it succeeds";
    }
    is join(' ', @{ least("kind-$i", 6) }), $cost, "$name: its cost";
}

$server->stop;
done_testing;
