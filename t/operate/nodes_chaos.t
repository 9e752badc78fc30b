# Two nodes of one host name on one PostgreSQL and one storage folder, one of them a minute ahead,
# are killed, stopped for longer than a lease and restarted under load. Each import and download is
# done once, and of each connection to the mail server that a kill cut one email at most comes
# twice.
#
#   SEED=4711 CHAOS=600     what is done to the nodes, and for how many seconds (make check-nodes)
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use MDL::Chaos qw(copies jobs_end table);
use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Mail;
use MDL::MailServer;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

plan skip_all => 'libfaketime and the sanitizers wait for each other' if $ENV{SANITIZER_RUNTIME};

use constant { MB => 1024 * 1024, LEASE => 10, AHEAD => 60, DOWNLOADERS => 2 };

my $seed    = $ENV{SEED}  // ($ENV{CHAOS} ? time ^ $$ : 1);
my $seconds = $ENV{CHAOS} // 0;    # 0: a few things, once
diag "SEED=$seed";
srand $seed;

my $mail = MDL::MailServer->new;
my $conf = <<"END";
DownloadsPollInterval 1
DownloadsLeaseTime @{[LEASE]}
DownloadsSessionIdle 2
DownloadsMailConnections 5
DownloadsMailTransport smtp://127.0.0.1:$mail->{port}
END
my $right = MDL::Instance->new(extra => $conf)->start;
my $wrong = MDL::Instance->new(
    clock   => 1,
    without => qr/^DBDParams/,
    extra   => $conf
        . qq(DBDParams "$right->{vars}{db_params}"\nDownloadsStorage "$right->{folder}/storage"\n),
);
$wrong->step_clock(AHEAD);
my @nodes = ($right, $wrong->start);
$right->aim;
my $source = MDL::Source->new;
my $shop   = shop_with_product('Chaos');
my $file   = new_file($shop, 2 * MB);
my $chaos  = MDL::Chaos->new(seed => $seed, ports => sub { map { port_of($_) } 0, 1 },
    shop => $shop, source => $source);

# --- load: processes that go on with a request at either node until it has an answer --------------

sub port_of { my ($n) = @_; return $nodes[ $n % 2 ]{vars}{port} }

# --- what is done to the nodes --------------------------------------------------------------------

my %done;
my @stops;    # [ from, until ]

sub stop_for
{
    my (@pids) = @_;
    my $from = time;
    kill STOP => @pids;
    sleep LEASE + 1.5 + rand 2;
    kill CONT => @pids;
    push @stops, [ $from, time ];
    return;
}

my @incidents = (
    [ 'kill a background process' => sub { kill KILL => worker_pids() } ],
    [ 'kill a child'              => sub { kill KILL => (server_pids())[0] // () } ],
    [ 'stop a background process' => sub { stop_for(worker_pids()) } ],
    [ 'kill a node'               => sub { my ($node) = @_; $node->kill_all; $node->start } ],
    [ 'restart gracefully'        => sub { httpd_graceful() } ],
    [ 'stop a node'               => sub { my ($node) = @_; stop_for($node->processes) } ],
    [ 'restart'                   => sub { httpd_restart() } ],
    [ 'stop and start'            => sub { my ($node) = @_; $node->stop; $node->start } ],
);

sub incident
{
    my ($node, $incident) = @_;
    my ($name, $do) = @$incident;
    $node->aim;
    $do->($node);
    $done{$name}++;
    return;
}

my $product = 'gid://chaos/Product/1';
my $reply   = api('POST', '/mappings', key => $shop->{token}, json => {
    storefront_product_id => $product, file_ids => [ $file->{id} ], download_limit => 1,
    download_type => 'FILES' });
die "mapping: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[01]$/;

$chaos->load(0.1, sub { $chaos->import_one(@_) }) for 1, 2;
$chaos->load(0.05, sub { $chaos->email_one(@_) }) for 1, 2;
$chaos->load(0.2, sub { $chaos->download_one($_[0], $product, $file) }) for 1 .. DOWNLOADERS;

my $began = time;
if ($seconds) {
    while (time < $began + $seconds) {
        sleep rand 2;
        incident($nodes[ rand 2 ], $incidents[ rand @incidents ]);
    }
}
else {
    # The others wait for the transfers of those that were killed first.
    incident($nodes[$_], $incidents[ (3, 2)[$_] ]) for 0, 1;
    incident($nodes[$_], $incidents[ (0, 4)[$_] ]) for 0, 1;
}
sleep 1;
my @lines = $chaos->end;
$right->aim;

# --- what has become of it ------------------------------------------------------------------------

my %given_up = jobs_end();
wait_for(sub {
    my ($row) = sql("SELECT count(*) FROM download_session WHERE status = 'open'");
    $row->[0] == 0;
}, 120, 'the end of all sessions');

my @refused  = grep { $_->{refused} } @lines;
is_deeply [ map { $_->{refused} } @refused ], [], 'no request is refused';

my @imports = grep { $_->{import} && !$_->{refused} } @lines;
my %jobs    = table("SELECT id, status, error_message FROM job WHERE type = 'asset_import'");
my %assets  = table('SELECT id, status, sha256, size FROM asset');
is_deeply [ grep { $jobs{$_}[1] ne 'succeeded' && !$given_up{$_} } map { $_->{job} } @imports ], [],
    'each import succeeds';
my %seen;
$seen{ $_->{asset} }++ for @imports;
is_deeply [ grep { $_ > 1 } values %seen ], [], 'each has an asset of its own';
is scalar(keys %assets), @imports + 2, 'and there is no other';
my @wrong = grep { $assets{ $_->{asset} }[1] eq 'ready'
    && $assets{ $_->{asset} }[2] ne MDL::Source::sha256($_->{size}, $_->{import}) }
    $seconds ? @imports[ map { rand @imports } 1 .. 100 ] : @imports;
is_deeply \@wrong, [], 'with the right bytes';
my $again = grep { $source->requests($_->{import}) > 1 } @imports;

my @downloads = grep { $_->{download} && !$_->{refused} } @lines;
my %used = table('SELECT o.storefront_order_id, sum(w.downloads_used) FROM orders o '
    . 'JOIN assignment a ON a.order_id = o.id LEFT JOIN allowance w '
    . 'ON w.assignment_id = a.id GROUP BY 1');
is_deeply [ grep { !$_->{whole} || $_->{odd} ne '' } @downloads ], [],
    'each customer gets the file, whatever was cut';
is_deeply [ grep { ($used{ $_->{download} }[1] || 0) > 1 } @downloads ], [],
    'no download counts twice';
# What was sent in the last second before a kill nobody has counted: it is given away.
my $free  = grep { !$used{ $_->{download} }[1] } @downloads;
my $kills = 0;
$kills += $done{$_} // 0 for 'kill a child', 'kill a node', 'restart', 'stop and start';
cmp_ok $free, '<=', DOWNLOADERS * $kills, 'and each once, but for those that a kill has cut';

my @emails = grep { $_->{email} && !$_->{refused} } @lines;
my $emails = copies($mail, @stops);
my %unsent = table("SELECT e.recipient FROM email e JOIN job j ON j.email_id = e.id "
    . "WHERE e.status <> 'sent' AND j.interruptions < 3");
is_deeply [ grep { !$emails->{by_address}{$_} || $unsent{$_} } map { $_->{email} } @emails ], [],
    'each email arrives, and counts as sent';
is_deeply $emails->{more}, [],
    'of each connection that was cut, or stood still, one at most comes twice';

for my $node (@nodes) {
    unlike $node->error_log, qr/Assertion|exit signal (?!Killed)/, 'no process has crashed';
}
diag sprintf '%.0f s: %s', time - $began, join ', ', map { "$done{$_} × $_" } sort keys %done;
diag sprintf '%d imports, %d of them fetched again; %d downloads, %d of them cut, %d given away',
    scalar @imports, $again, scalar @downloads, scalar(grep { $_->{cuts} } @downloads), $free;
diag sprintf '%d emails over %d connections, %d of them cut; %d emails too many; %d jobs given up',
    scalar @emails, scalar @{ $emails->{connections} }, @$emails{qw(cut extra)},
    scalar keys %given_up;

$_->stop for @nodes;
done_testing;
