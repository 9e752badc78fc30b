# A shop's system that is told of events by webhooks (t/node/receiver.mjs).
#
#   my $receiver = MDL::Receiver->new;
#   my $endpoint = $receiver->endpoint($shop, 'fast');               # an endpoint at its path /fast
#   $receiver->answers('slow', { hold => 1 });
#   my @received = $receiver->received('fast'); # { id, verified => [ … ], body, … }
#   $receiver->put_off($endpoint->{id});        # what has failed there is not tried again
#
# Each webhook takes the next answer of its path, and the last one serves all later ones:
#   status, headers, body     instead of 200 and nothing
#   repeat => n               repeats the body n times
#   hold => 1                 never answers
#   cut => 1                  breaks off within the answer
package MDL::Receiver;

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
    my $folder = MDL::Test::suite_dir() . "/receiver-$$-" . ++$count;
    make_path($folder);
    my $self = bless { folder => $folder, owner => $$, plan => {} }, $class;
    $self->write_plan;
    $self->{pid} = open2($self->{from}, $self->{hold}, 'tools/node', 't/node/receiver.mjs',
        $folder);
    ($self->{port}) = (readline($self->{from}) // '') =~ /^(\d+)$/
        or die "the receiver does not start\n";
    return $self;
}

sub url { my ($self, $name) = @_; return "http://localhost:$self->{port}/$name" }

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

sub answers
{
    my ($self, $name, @answers) = @_;
    $self->{plan}{"/$name"}{answers} = \@answers;
    return $self->write_plan;
}

# The secrets by which it tries to verify what comes to a path.
sub secrets
{
    my ($self, $name, @secrets) = @_;
    $self->{plan}{"/$name"}{secrets} = \@secrets;
    return $self->write_plan;
}

# Makes an endpoint of a shop at this path, and returns it.
sub endpoint
{
    my ($self, $shop, $name, %members) = @_;
    my $reply = MDL::Test::api('POST', '/webhook-endpoints', key => $shop->{token}, patient => 1,
        json => { url => $self->url($name), %members });
    die "the endpoint was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 201;
    $self->{plan}{"/$name"}{answers} //= [ {} ];
    $self->secrets($name, $reply->{json}{secret});
    return $reply->{json};
}

# What has come to a path so far.
sub received
{
    my ($self, $name) = @_;
    return if !-e "$self->{folder}/received";
    open my $in, '<:raw', "$self->{folder}/received" or die "received: $!";
    return grep { $_->{path} eq "/$name" } map { decode_json($_) } grep { /\n\z/ } <$in>;
}

# The first of each webhook that has come to a path: one that was answered too late comes again.
sub events
{
    my ($self, $name) = @_;
    my %seen;
    return grep { !$seen{ $_->{id} }++ } $self->received($name);
}

# Waits until so many different webhooks have come to a path, and returns the first of each.
sub await_events
{
    my ($self, $name, $count) = @_;
    my @events;
    MDL::Test::wait_for(sub { @events = $self->events($name); return @events >= $count }, 60,
        "$count different webhooks to $name");
    return @events;
}

# Waits until so many webhooks have come to a path, and returns them.
sub await
{
    my ($self, $name, $count, $seconds) = @_;
    my @received;
    MDL::Test::wait_for(sub { @received = $self->received($name); return @received >= $count },
        $seconds // 60, "$count webhooks to $name");
    return @received;
}

# Waits until a delivery to an endpoint has failed by an answer, and puts its next try off for an
# hour. The second comes five seconds after the first, so there may have been several: none may be
# about to begin.
sub put_off
{
    my ($self, $endpoint) = @_;
    my $now = MDL::Test::database() eq 'pgsql' ? 'extract(epoch FROM clock_timestamp())::bigint'
        : "CAST(strftime('%s', 'now') AS INTEGER)";
    MDL::Test::wait_for(sub {
        MDL::Test::sql("UPDATE webhook_delivery SET due_at = due_at + 3600000000 "
            . "WHERE endpoint_id = $endpoint AND attempts > 0 AND response_status IS NOT NULL "
            . "AND due_at > ($now + 2) * 1000000 RETURNING id");
    }, 60, "a failure at the endpoint $endpoint");
    return;
}

1;
