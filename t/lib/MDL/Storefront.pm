# A mock of a shop's Shopify storefront.  It executes queries with the real graphql-js on Shopify's
# types (t/node/storefront.mjs).
#
#   my $storefront = MDL::Storefront->new;
#   $storefront->customer('9001', email => 'zoe@buyer.example', first_name => 'Zoe');
#   $storefront->order('5001', risks => ['LOW'], client_ip => '192.0.2.7',
#       answers => [ { status => 429, headers => { 'Retry-After' => 1 } }, {} ]);
#   …
#   my @requests = $storefront->requests('5001');
#
# A customer has email, first_name, last_name and locale; an order has risks, client_ip
# and answers, and that of a guest what a customer has.
# Each request takes the next answer, and the last one serves all later requests:
#   status, headers    instead of 200 and none
#   body               JSON or text, instead of the answer to the query
#   repeat => n        repeats the text n times
#   hold => 1          does not answer until release()
#   cut => 1           breaks off within the answer
package MDL::Storefront;

use strict;
use warnings;

use File::Path qw(make_path);
use IPC::Open2 qw(open2);
use JSON::PP;

use MDL::Test ();

use parent 'MDL::Helper';

my $count = 0;

sub new
{
    my ($class) = @_;
    my $folder = MDL::Test::suite_dir() . "/storefronts-$$-" . ++$count;
    make_path($folder);
    system('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1'
            . ' -subj /CN=localhost -addext subjectAltName=DNS:localhost'
            . " -keyout $folder/key.pem -out $folder/cert.pem 2>/dev/null") == 0
        or die "openssl failed\n";
    my $self = bless {
        folder => $folder,
        owner  => $$,
        plan   => { token => "shpat_token-of-$$-$count", customers => {}, orders => {} },
    }, $class;
    $self->write_plan;
    $self->{pid} = open2($self->{from}, $self->{hold}, 'tools/node', 't/node/storefront.mjs',
        $folder, "$folder/cert.pem", "$folder/key.pem");
    my $from = $self->{from};
    @$self{qw(plain secure)} = (readline($from) // '') =~ /^(\d+) (\d+)$/
        or die "the storefront does not start\n";
    return $self;
}

sub url         { return 'http://localhost:' . shift->{plain} }
sub secure_url  { return 'https://localhost:' . shift->{secure} }
sub certificate { return shift->{folder} . '/cert.pem' }
sub token       { return shift->{plan}{token} }

sub write_plan
{
    my ($self) = @_;
    my $path = "$self->{folder}/plan.json";
    open my $out, '>', "$path.new" or die "$path: $!";
    print $out JSON::PP->new->utf8->encode($self->{plan});
    close $out or die "$path: $!";
    rename "$path.new", $path or die "$path: $!";
    return;
}

sub customer
{
    my ($self, $id, %customer) = @_;
    $self->{plan}{customers}{$id} = \%customer;
    return $self->write_plan;
}

sub order
{
    my ($self, $id, %order) = @_;
    $self->{plan}{orders}{$id} = \%order;
    return $self->write_plan;
}

# Answers the held requests for an order.
sub release
{
    my ($self, $id) = @_;
    open my $out, '>', "$self->{folder}/$id.released" or die "$id: $!";
    close $out;
    return;
}

# The requests for this order, or all, oldest first.
sub requests
{
    my ($self, $id) = @_;
    open my $in, '<:raw', "$self->{folder}/requests" or return;
    return grep { !defined $id || $_->{order} eq $id } map { decode_json($_) }
        grep { /\n\z/ } <$in>;    # the last may still be written
}

# Writes a token, by default the right one, to a file for downloadsctl shop set; returns its path.
sub token_file
{
    my ($self, $token) = @_;
    my $path = "$self->{folder}/token";
    open my $out, '>', $path or die "$path: $!";
    chmod 0600, $path;
    print $out $token // $self->token, "\n";
    close $out or die "$path: $!";
    return $path;
}

1;
