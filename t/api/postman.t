# The Postman collection that `make postman` makes: newman runs its main job against this server.
#
# once: the collection does not depend on the database
# long: it converts the whole document
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::OpenApi;
use MDL::Test;
use Test::More;

my $folder = logs_dir();
my ($collection, $report) = ("$folder/postman-$$.json", "$folder/newman-$$.json");

# Runs a command; returns its exit code and what it says.
sub run
{
    my (@command) = @_;
    my $pid = open my $out, '-|';
    defined $pid or die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec @command or die "$command[0]: $!";
    }
    my $said = do { local $/; readline $out };
    close $out;
    return ($? >> 8, $said // '');
}

sub read_json
{
    open my $in, '<', $_[0] or die "$_[0]: $!";
    return decode_json(do { local $/; readline $in });
}

my ($code, $said) = run('tools/postman', document_file(), $collection);
is($code, 0, 'the collection is made') or diag($said);
cmp_ok(-s $collection, '<', 1_000_000, 'and is small');

my $shop = new_shop();
my %variables = (baseUrl => base_url(), bearerToken => $shop->{token}, order_id => digits(),
    product_id => product(), email => 'ada@buyer.example',
    source_url => source("postman-$$.pdf", 'the manual'));
($code, $said) = run('tools/node', 'newman', 'run', $collection, '--folder', 'The main job',
    '--delay-request', 300, '--reporters', 'json', '--reporter-json-export', $report,
    map { ('--env-var', "$_=$variables{$_}") } sort keys %variables);
is($code, 0, 'newman runs the main job') or diag($said);
my $run = read_json($report)->{run};
is_deeply([ map { $_->{error}{message} } @{ $run->{failures} } ], [], 'nothing fails in it');
is($run->{executions}[-1]{response}{code}, 201, 'its last request assigns');

my $order = api('GET', "/orders/$variables{order_id}", key => $shop->{token})->{json};
is($order->{assignments}[0]{files}[0]{filename}, "postman-$$.pdf", 'the order has the file');

done_testing();
