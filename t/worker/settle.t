# What has ended is written down: one locked row holds back one job, which nobody else gets
# meanwhile.
#
# pgsql: only PostgreSQL locks rows
use strict;
use warnings;

use MDL::Instance;
use MDL::Mail;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

# A lease that a process which the machine lets wait does not lose at once.
use constant { MB => 1024 * 1024, LEASE => 20 };

my $conf  = "DownloadsPollInterval 1\nDownloadsLeaseTime @{[LEASE]}\n"
    . "DownloadsIngestStallTimeout 600\n";
my $node  = MDL::Instance->new(extra => $conf)->start;
my $other = MDL::Instance->new(
    without => qr/^(?:DBDParams|DownloadsMailTransport)/,
    extra   => $conf
        . qq(DBDParams "$node->{vars}{db_params}"\nDownloadsStorage "$node->{folder}/storage"\n)
        . qq(DownloadsMailTransport "maildir:$node->{folder}/mail"\n),
)->start;
my ($second) = worker_pids();
$node->aim;
my ($worker) = worker_pids();
my $source = MDL::Source->new;
my $shop   = shop_with_product('Locked');

sub import_of
{
    my ($name, %answer) = @_;
    my $url   = $source->offer($name, { size => MB, version => $name, %answer });
    my $reply = api('POST', '/assets', key => $shop->{token}, patient => 1,
        json => { source_url => $url });
    die "import: $reply->{status} $reply->{body}\n" if $reply->{status} != 202;
    return { asset => $reply->{json}{asset}{id}, job => $reply->{json}{job}{id} };
}

sub job_row { my ($what, $id) = @_; return (sql("SELECT $what FROM job WHERE id = '$id'"))[0][0] }

# Waits until a lease has been renewed for longer than others take to notice that it is not.
sub outlast_lease
{
    my ($id) = @_;
    return wait_for(sub { job_row('updated_at - started_at', $id) > (LEASE + 3) * 1e6 },
        LEASE + 60, "the lease of $id");
}

# One that ends while its asset is locked, one that is sent while its email is, one that runs while
# it is locked itself, and one that runs beside them. The other node waits for their leases to end.
pause_process($second);
my $ended   = import_of('ended', hold => MB / 2);
my $running = import_of('running', hold => MB / 2);
my $held    = import_of('held', hold => MB / 2);
wait_for(sub { job_row('status', $_->{job}) eq 'running' }, 10, 'an import')
    for $ended, $running, $held;
pause_process($worker);
my $order = order_for($shop, 'locked@buyer.example');
my ($email) = map { $_->[0] } sql('SELECT max(id) FROM email');
my @locks = map { lock_rows($_) } "asset WHERE id = $ended->{asset}", "email WHERE id = $email",
    "job WHERE id = '$held->{job}'";
$source->release('ended');
kill CONT => $worker;
wait_for(sub { scalar grep { $_->{ended} } $source->requests('ended') }, 10,
    'the end of a transfer');
wait_mail('locked@buyer.example');

my @beside = map { import_of("beside-$_") } 1 .. 8;
is_deeply [ map { wait_job($shop, $_->{job})->{status} } @beside ], [ ('succeeded') x 8 ],
    'other imports succeed beside locked rows';
my $sent = order_for($shop, 'beside@buyer.example');
is wait_email($shop, $sent, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
    'and another email is sent';

kill CONT => $second;
outlast_lease($_) for $ended->{job}, $running->{job};
unlock($_) for @locks;
$source->release($_) for 'running', 'held';
is_deeply [ map { wait_job($shop, $_->{job}, 60)->{status} } $ended, $running, $held ],
    [ ('succeeded') x 3 ], 'what was locked succeeds, too';
is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
    "and the email's result is written down";
is_deeply [ map { job_row('lease_token', $_->{job}) } $ended, $running ], [ 1, 1 ],
    'no other node had the imports';
is scalar $source->requests('ended'), 1, 'what had ended was not done again';
is scalar mails('locked@buyer.example'), 1, 'nor the email sent again';

# How often anybody has begun to wait for a lock.
my %waits;
sub waits
{
    $waits{ $_->[0] } = 1
        for sql('SELECT query_start FROM pg_stat_activity WHERE '
            . "datname = current_database() AND wait_event_type = 'Lock'");
    return scalar keys %waits;
}

# The background process is stopped while it can't write down what has been sent. It has three
# seconds for that, so only a stop that was quicker counts.
pause_process($second);
my $address;
for my $try (1 .. 10) {
    ($worker) = wait_for(sub { (worker_pids())[0] }, 60, 'a background process');
    pause_process($worker);
    $address = "stopped-$try\@buyer.example";
    $order   = order_for($shop, $address);
    my ($id) = map { $_->[0] } sql('SELECT max(id) FROM email');
    my $lock = lock_rows("email WHERE id = $id");
    kill CONT => $worker;
    wait_mail($address);
    %waits = ();
    wait_for(sub { waits() }, 60, 'its result to be postponed');
    my $stopped = time;
    kill TERM => $worker;
    my $before = waits();
    wait_for(sub { waits() > $before + 1 || !kill 0 => $worker }, 60, 'another try');
    unlock($lock);
    wait_for(sub { !kill 0 => $worker }, 60, 'the end of the background process');
    last if time - $stopped < 2.5;
}
is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
    'a stop waits for a locked row';
is scalar mails($address), 1, 'so that the email is not sent again';
kill CONT => $second;

done_testing;
