# Requests of the API.  All of them are made with a key, below its limit.
use strict;
use warnings;

use Bench::Files;
use Bench::Load;
use Bench::Peer;
use Bench::Row;
use Bench::Service qw(build);

my $FILES = $ENV{FILES};

sub product { my ($i) = @_; return qq({"storefront_product_id":"gid://bench/Product/$i"}) }

sub assignment
{
    my ($items, %more) = @_;
    my $more = join '', map {qq(,"$_":$more{$_})} sort keys %more;
    return (method => 'POST', path => '/orders/{n}/assignments', idem => 'bench-{n}',
        random => $FILES - 2, body => qq({"storefront_customer_id":"{n}","items":[$items]$more}));
}

my %CREATE = (method => 'POST', path => '/mappings', idem => 'bench-{n}',
    body => '{"storefront_product_id":"gid://bench/Product/{n}","file_ids":[1],'
        . '"download_type":"FILES"}');

# Requests whose answers are stored, and the lines of the table that they are read from.
my $ANSWERS = build() . '/answers';

sub replay
{
    my ($which) = @_;
    return (%CREATE, idem => "bench-replay-$which", body => $CREATE{body} =~ s/\{n\}/7000$which/r);
}

sub store_answers
{
    my ($on) = @_;
    wrk($on, replay('{i}'), stop => $FILES, connections => 1);
    my @keys = $on->rows('SELECT shop_id, key_hi, key_lo FROM idempotency WHERE status = 201'
            . " ORDER BY created_at DESC LIMIT $FILES");
    write_new("$ANSWERS-$on->{db}", join '',
        map { '/bench/select?bench_answer&' . join('&', @$_) . "\n" } @keys);
    return;
}

row 'ping',
    title   => 'GET /ping / bare handler',
    request => sub { (path => '/ping') },
    beside  => sub { wrk($_[0], path => '/bench/bare', key => 0) },
    grows   => 1, goal => 0.80;

row 'mapping',
    title   => 'POST /mappings, new / least statements',
    request => sub {%CREATE},
    beside  => sub { least($_[0], 'mapping_create') },
    grows   => 1, goal => 0.70;

row 'mapping-update',
    title   => 'POST /mappings, known / least statements',
    request => sub { (%CREATE, random => $FILES,
        body => '{"storefront_product_id":"gid://bench/Product/{r}",'
            . '"file_ids":[{r}],"download_type":"FILES","download_limit":0,"access_days":{d}}') },
    beside  => sub { least($_[0], 'mapping_update') },
    grows   => 1, goal => 0.70;

row 'mapping-peer',
    title   => 'POST /mappings, new / Fastify + pg',
    on      => 'fresh', db => 'pgsql',
    prepare => \&Bench::Peer::start,
    request => sub {%CREATE},
    beside  => sub { wrk($_[0], %CREATE, origin => Bench::Peer::origin()) },
    goal => 2.0;

# What each request takes of the processors, PostgreSQL's processes apart.
for my $request (
    [ ping    => 'GET /ping',           1.0, path => '/ping' ],
    [ mapping => 'POST /mappings, new', 2.0, %CREATE ],
) {
    my ($name, $title, $goal, @request) = @$request;
    row "$name-processor",
        title   => "$title, /s of processor / Fastify + pg",
        on      => 'fresh', db => 'pgsql',
        prepare => \&Bench::Peer::start,
        ours    => sub {
            my ($on) = @_;
            return by_processor(sub { $on->processes }, sub { wrk($on, @request) });
        },
        beside  => sub {
            my ($on) = @_;
            return by_processor(\&Bench::Peer::processes,
                sub { wrk($on, @request, origin => Bench::Peer::origin()) });
        },
        goal => $goal;
}

row 'mapping-slow-disk',
    title   => 'POST /mappings, new, slow disk / a commit each',
    on      => 'slow_disk', db => 'sqlite3',
    request => sub {%CREATE},
    beside  =>
        sub { least($_[0], 'mapping_create', group => 1, environment => $_[0]{environment}) },
    goal => 8;

row 'assignment',
    title   => 'POST assignments, 1 item / least statements',
    request => sub { assignment(product('{r}')) },
    beside  => sub { least($_[0], 'assignment_1') },
    grows   => 1, goal => 0.50;

row 'assignment-3',
    title   => 'POST assignments, 3 items, email / least',
    request =>
        sub { assignment(join(',', map { product($_) } qw({r} {r1} {r2})), send_email => 'true',
            customer => '{"email":"buyer-{n}@example.com"}') },
    beside  => sub { least($_[0], 'assignment_3') },
    grows   => 1, goal => 0.50;

row 'order',
    title   => 'GET /orders/{id} / one prepared SELECT',
    request => sub { (path => '/orders/{r}', random => $_[0]{seeded}) },
    beside  => sub {
        wrk($_[0], key => 0, path => "/bench/select?bench_order&$_[0]{shop}&{r}",
            random => $_[0]{seeded});
    },
    grows   => 1, goal => 0.50;

row 'replay',
    title   => 'replayed write / one prepared SELECT',
    prepare => \&store_answers,
    request => sub { (replay('{r}'), random => $FILES) },
    beside  => sub { wrk($_[0], key => 0, paths => "$ANSWERS-$_[0]{db}") },
    grows   => 1, goal => 0.70;

1;
