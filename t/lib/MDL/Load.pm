# Clients that request imports and ping until they are stopped, while a suite restarts or kills the
# server.
#
#   my $load = MDL::Load->new(key => $key, url => $url, clients => 4, keep_alive => 2);
#   $load->wait_for_more(20);    # acknowledged imports
#   my $result = $load->stop;    # { jobs => [ ids ], requests, retried, failures => [ … ] }
#
# Every second request is a POST with an Idempotency-Key of its own. The first keep_alive clients
# keep their connection. If the server closes an idle connection just as such a client sends, the
# client repeats the request on a new one, as RFC 9112 section 9.3.1 allows; retried counts these.
# Any other result than 200 or 202 is a failure.
package MDL::Load;

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP;
use POSIX ();
use Time::HiRes qw(sleep time);

use MDL::Test ();

use constant PAUSE => 0.004;    # seconds between a client's requests, to leave the server some CPU

my $count = 0;

sub new
{
    my ($class, %opt) = @_;
    my $self = bless { %opt, file => MDL::Test::suite_dir() . "/load-$$-" . ++$count }, $class;
    pipe my $watch, my $hold or die "pipe: $!";
    $self->{base} = MDL::Test::base_url();
    for my $i (1 .. $self->{clients}) {
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            close $hold;
            $self->run($i, $watch, $i <= ($self->{keep_alive} // 0));
            POSIX::_exit(0);
        }
        push @{ $self->{pids} }, $pid;
    }
    $self->{hold} = $hold;    # the clients end when it is closed, by stop or by the end of the test
    return $self;
}

sub run
{
    my ($self, $i, $watch, $keep_alive) = @_;
    my $http = HTTP::Tiny->new(keep_alive => $keep_alive, timeout => 120, max_redirect => 0);
    open my $out, '>>', "$self->{file}.$i" or die "$self->{file}.$i: $!";
    my $bits = '';
    vec($bits, fileno($watch), 1) = 1;
    for (my $n = 0; !select my $ready = $bits, undef, undef, PAUSE; $n++) {
        my $answer = $self->ask($http, $n, my $idem = "load-$$-$n-" . time);
        my $again = 0;
        if ($keep_alive && $n && $answer->{status} == 599
            && $answer->{content} =~ /Unexpected end of stream|Could not write|reset by peer/) {
            $http  = HTTP::Tiny->new(keep_alive => 1, timeout => 120, max_redirect => 0);
            $answer = $self->ask($http, $n, $idem);
            $again  = 1;
        }
        my ($job) = $answer->{status} == 202 ? $answer->{content} =~ /"(job_\w+)"/ : ();
        my $good = $answer->{status} == ($n % 2 ? 202 : 200);
        syswrite $out, encode_json({
            again   => $again,
            job     => $job,
            good    => $good ? 1 : 0,
            failure => $good ? undef : "client $i: $answer->{status} $answer->{content}",
        }) . "\n";
    }
    return;
}

sub ask
{
    my ($self, $http, $n, $idem) = @_;
    my %headers = (authorization => "Bearer $self->{key}");
    return $http->get("$self->{base}/ping", { headers => \%headers }) if $n % 2 == 0;
    return $http->post(
        "$self->{base}/assets",
        {   headers => { %headers, 'content-type' => 'application/json',
            'idempotency-key' => $idem },
            content => encode_json({ source_url => $self->{url} }),
        }
    );
}

sub result
{
    my ($self) = @_;
    my %result = (jobs => [], requests => 0, retried => 0, failures => []);
    for my $path (glob "$self->{file}.*") {
        for my $line (split /(?<=\n)/, MDL::Test::slurp($path)) {
            my $one = $line =~ /\n\z/ ? decode_json($line) : next;
            $result{requests}++;
            $result{retried} += $one->{again};
            push @{ $result{jobs} },     $one->{job}  if $one->{job};
            push @{ $result{failures} }, $one->{failure} if !$one->{good};
        }
    }
    return \%result;
}

sub wait_for_more
{
    my ($self, $more) = @_;
    my $wanted = @{ $self->result->{jobs} } + $more;
    MDL::Test::wait_for(sub { @{ $self->result->{jobs} } >= $wanted }, 120, "$more imports more");
    return;
}

sub stop
{
    my ($self) = @_;
    close delete $self->{hold};
    local $?;
    waitpid $_, 0 for @{ $self->{pids} };
    return $self->result;
}

# Waits until all these jobs have ended, as long as one ends within $seconds; returns those that did
# not succeed.
sub lost
{
    my ($jobs, $seconds) = @_;
    my %status;
    my $left = @$jobs + 1;
    while ($left > 0) {
        my $before = $left;
        MDL::Test::wait_for(
            sub {
                %status = map { $_->[0] => $_->[1] } MDL::Test::sql('SELECT id, status FROM job');
                $left   = grep { ($status{$_} // '') =~ /queued|running/ } @$jobs;
                return $left < $before;
            },
            $seconds, "the end of one of $before jobs"
        );
    }
    return grep { ($status{$_} // 'gone') ne 'succeeded' } @$jobs;
}

1;
