#!/usr/bin/perl
# What MDL::ObjectProxy counts, passes on, delays, cuts and refuses, in front of a real object store
# (MDL::Swift), so that the suites can rely on it.
use strict;
use warnings;

use File::Path qw(make_path);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";
use lib 't/lib';
require MDL::ObjectProxy;
require MDL::Swift;
use MDL::Target qw(wait_for);

plan skip_all => 'MDL_TEST_S3 is not set (tools/with-objects)' if !$ENV{MDL_TEST_S3};

my $store = MDL::Swift->new;
my $proxy = MDL::ObjectProxy->new($store);

sub status { return $proxy->request(@_)->{status} }

# The first request of this kind, once the proxy has noted how it ended: the client may know before.
sub ended
{
    my ($kind) = @_;
    return wait_for(sub {
        my ($found) = grep { $_->{kind} eq $kind } $proxy->requests;
        return defined $found->{sent} && $found;
    }, 60, "the end of the first $kind");
}

# Whether curl gave up, without a whole answer.
sub is_cut
{
    my (@request) = @_;
    open my $stderr, '>&', \*STDERR;
    open STDERR, '>', '/dev/null';
    my $cut = !eval { $proxy->request(@request); 1 };
    open STDERR, '>&', $stderr;
    return $cut;
}

subtest 'it passes everything on, and counts' => sub {
    my $bytes = join '', map { chr rand 256 } 1 .. 200_000;
    $proxy->put('a b/c', $bytes);
    is($store->get('a b/c'), $bytes, 'what was put through it is in the store');
    is($proxy->get('a b/c'), $bytes, 'and comes back');
    is_deeply({ $proxy->objects }, { 'a b/c' => 200_000 }, 'lists are those of the store');
    is(status('HEAD', 'a b/c'), 200, 'HEAD');
    is(status('GET', 'none'), 404, 'a missing object is missing');
    $proxy->delete('a b/c');
    is(status('POST', 'large', 'uploads='), 200, 'an upload begins');
    is_deeply([ $proxy->uploads ], ['large'], 'and is listed');
    is_deeply({ $proxy->counts },
        { put => 1, get => 2, head => 1, list => 1, delete => 1, create => 1, uploads => 1 },
        'each request is counted by its kind');
    my $get = ended('get');
    is_deeply([ @$get{qw(method status sent)} ], [ 'GET', 200, 200_000 ], 'with how it ended');
    is($get->{target}, "/$store->{bucket}/a%20b/c", 'and what was asked');
    $proxy->forget;
    is_deeply({ $proxy->counts }, {}, 'until it shall forget');
};

subtest 'it answers by rule' => sub {
    $store->put('key', 'x' x 100_000);
    $proxy->rule(get => { status => 503, code => 'SlowDown', times => 2, after => 1 });
    is_deeply([ map { status('GET', 'key') } 1 .. 4 ], [ 200, 503, 503, 200 ],
        'the second and third of four');
    $proxy->rule(any => { status => 500, body => 'no XML', headers => ['X-Test: 1'] });
    is($proxy->request('PUT', 'key', undef, body => 'y' x 300_000)->{body}, 'no XML',
        'with a body of its own, to a request with one');
    is(length $store->get('key'), 100_000, 'which the store does not see');
    $proxy->heal;
    is(status('GET', 'key'), 200, 'and no more when it is healed');
};

subtest 'it breaks connections by rule' => sub {
    $proxy->forget;
    $proxy->rule(get => { cut => 1000 });
    ok(is_cut('GET', 'key'), 'an answer is cut');
    is(ended('get')->{sent}, 1000, 'behind so many bytes');
    $proxy->rule(get => { refuse => 1 });
    ok(is_cut('GET', 'key'), 'a connection is closed');
    $proxy->heal;
    $proxy->rule(put => { lose => 1 });
    ok(is_cut('PUT', 'lost', undef, body => 'kept'), 'an answer is lost');
    is($store->get('lost'), 'kept', 'but the request was made');
};

done_testing;
