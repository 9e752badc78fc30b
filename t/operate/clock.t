# The machine's clock is set by an hour, back and forth, while the service runs.
#
# both: PostgreSQL has a clock of its own
use strict;
use warnings;

use MDL::Customer;
use MDL::DownloadClient;
use MDL::Instance;
use MDL::Mail;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::Piece ();

plan skip_all => 'libfaketime and the sanitizers wait for each other' if $ENV{SANITIZER_RUNTIME};

use constant { MB => 1024 * 1024, HOUR => 3600 };

# With its PostgreSQL: both are of one machine. httpd's own Timeout of what waits to be written goes
# by the clock that is set, so it is longer than a step.
my $server = MDL::Instance->new(clock => 1, cluster => 1, extra => <<'END')->start;
Timeout 7200
DownloadsPollInterval 1
DownloadsLeaseTime 10
DownloadsRetryDelay 10000
DownloadsSessionIdle 8
END
my $source = MDL::Source->new;
my $shop = new_shop();
my $buyers = shop_with_product('Clock');
my $file = new_file($shop, 64 * MB);

my @STEPS = (
    [ 'back by an hour'          => -HOUR() ],
    [ 'forward to the true time' => 0 ],
    $ENV{FULL} ? ([ 'forward by an hour' => HOUR ], [ 'back to the true time' => 0 ]) : (),
);

# Calls check for each step of the clock, with a function that does it.
sub each_step
{
    my ($name, $check) = @_;
    for (@STEPS) {
        my ($how, $seconds) = @$_;
        subtest "$name: the clock is set $how" => sub { $check->(sub { step($seconds) }) };
    }
    return;
}

sub step
{
    my ($seconds) = @_;
    $server->step_clock($seconds);
    my $told = api('GET', '/ping', key => $shop->{token})->{json}{server_time};
    my $ahead = Time::Piece->strptime($told, '%Y-%m-%dT%H:%M:%S.' . substr($told, 20))
        ->epoch - time;
    cmp_ok abs($ahead - $seconds), '<', 60, 'the server has the new time';
    return;
}

each_step('A revoked key', sub {
    my ($step) = @_;
    my $key = MDL::Test::new_key($shop->{shop_id});
    is api('GET', '/ping', key => $key->{token})->{status}, 200, 'the key works';
    $step->();
    is api('GET', '/ping', key => $key->{token})->{status}, 200, 'it does after the step, too';
    is((ctl('key', 'revoke', $key->{key_id}))[0], 0, 'it is revoked');
    is api('GET', '/ping', key => $key->{token})->{status}, 401, 'it works no longer';
});

# --- transfers -----------------------------------------------------------------------------------

# An order, and a transfer of it that has begun.
sub begin
{
    my $buy = buy($shop, $file, limit => 1);
    $buy->{client} = MDL::DownloadClient->over('HTTP/1.1', $server, link_of($buy))->read_until(MB);
    return $buy;
}

sub revoke
{
    my ($buy) = @_;
    my $log = error_log_size();
    is api('POST', "/orders/$buy->{id}/revoke", key => $shop->{token}, json => {})->{status}, 200,
        'an order is revoked';
    ok eval { wait_for(sub { error_log_since($log) =~ /MDL0412/ }, 20, 'the cut') },
        'its transfer is cut';
    return;
}

each_step('Transfers', sub {
    my ($step) = @_;
    my ($cut, $kept) = (begin(), begin());
    $step->();
    revoke($cut);
    ok !$cut->{client}->rest, 'and its client breaks off';
    ok $kept->{client}->rest, 'another goes on to its end';
    is eval { settled($kept)->{used} }, 1, 'and is one download';
});

# A customer who breaks off gets the download back after a while, wherever the clock goes.
each_step('A download that is broken off', sub {
    my ($step) = @_;
    my $buy = begin();
    wait_for(sub { account($buy)->{sessions}[0] && account($buy)->{used} == 1 }, 20, 'the session');
    $buy->{client}->leave;
    wait_for(
        sub { !sql("SELECT 1 FROM download_transfer WHERE assignment_id = $buy->{assignment}") },
        20, 'its end');
    $step->();
    is eval { settled($buy, 40)->{used} }, 0, 'is given back';
});

# --- jobs ----------------------------------------------------------------------------------------

my $count = 0;

sub import_of
{
    my ($name, @answers) = @_;
    my $url = $source->offer($name, @answers);
    my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
    die "POST /assets: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return $reply->{json}{job}{id};
}

sub job { my ($id) = @_; return api('GET', "/jobs/$id", key => $shop->{token})->{json} }

each_step('Jobs', sub {
    my ($step) = @_;
    my $n = ++$count;
    my $running = import_of("running-$n", { size => MB, etag => '"r"', hold => MB / 2 });
    wait_for(sub { (job($running)->{progress}{bytes_received} // 0) > 0 }, 20, 'a running job');
    my $waiting = import_of("waiting-$n", { status => 503 });
    wait_for(sub { my $job = job($waiting); $job->{error} && $job->{status} eq 'queued' }, 20,
        'a job that is to be tried again');
    my $early = order_for($buyers, "early-$n\@buyer.example");
    $step->();
    my $late = order_for($buyers, "late-$n\@buyer.example");
    $source->offer("waiting-$n", { size => 1000 });
    is wait_job($shop, $waiting, 60)->{status}, 'succeeded', 'a job that waited is tried again';
    is wait_email($buyers, $_, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
        'an email is sent'
        for $early, $late;
    $source->release("running-$n");
    is wait_job($shop, $running, 20)->{status}, 'succeeded', 'a running job goes on';
    is_deeply [ sql("SELECT lease_token FROM job WHERE id = '$running'") ], [ [1] ],
        'it was claimed once';
    is scalar($source->requests("running-$n")), 1, 'and asked for its source once';
    is scalar(mails("$_-$n\@buyer.example")), 1, "the $_ email came once" for qw(early late);
});

done_testing;
