# Three nodes on one PostgreSQL and one object store, killed, stopped for longer than a lease and
# restarted under load, while store and database are cut off now and then. Each import, upload and
# email is done once, and in the end the store has the objects of the blobs and nothing else.
#
#   SEED=4711 CHAOS=600     what is done, and for how many seconds (make check-objects)
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use MDL::Chaos qw(copies jobs_end table);
use MDL::Mail;
use MDL::Instance;
use MDL::MailServer;
use MDL::ObjectProxy;
use MDL::Source;
use MDL::Swift;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

use constant { LEASE => 4, NODES => 3 };

my $seconds = $ENV{CHAOS} or plan skip_all => 'make check-objects takes its time';
my $cut     = $seconds >= 600 ? 60 : 6;    # that the store is away
my $seed    = $ENV{SEED} // time ^ $$;
diag "SEED=$seed";
srand $seed;

my $store = MDL::Swift->new;
my $proxy = MDL::ObjectProxy->new($store);
my $mail  = MDL::MailServer->new;
my $conf  = <<"END";
DownloadsObjectStore ${\ $proxy->url}
DownloadsObjectKeyFile ${\ $proxy->key_file}
DownloadsPollInterval 1
DownloadsLeaseTime @{[LEASE]}
DownloadsMailConnections 5
DownloadsMailTransport smtp://127.0.0.1:$mail->{port}
END
my $first = MDL::Instance->new(cluster => 1, extra => $conf)->start;
my @nodes = ($first, map {
    MDL::Instance->new(
        without => qr/^DBDParams/,
        extra   => $conf . qq(DBDParams "$first->{vars}{db_params}"\n)
            . qq(DownloadsStorage "$first->{folder}/storage"\n),
    )->start
} 2 .. NODES);
$first->aim;
my $source = MDL::Source->new;
my $shop   = shop_with_product('Chaos');
my $chaos  = MDL::Chaos->new(seed => $seed, ports => sub { map { $_->{vars}{port} } @nodes },
    shop => $shop, source => $source);

# --- what is done to them -------------------------------------------------------------------------

my %done;
my @stops;    # [ from, until ]

sub stop_for
{
    my (@pids) = @_;
    my $from = time;
    kill STOP => @pids;
    sleep LEASE + 1.5 + rand($seconds >= 600 ? 36 : 2);
    kill CONT => @pids;
    push @stops, [ $from, time ];
    return;
}

sub cut_store
{
    $proxy->rule(any => { refuse => 1 });
    sleep $cut;
    $proxy->heal;
    return;
}

sub cut_database
{
    $first->aim;
    stop_database();
    sleep $cut / 2;
    start_database();
    return;
}

my @incidents = (
    [ 'kill a background process' => sub { kill KILL => worker_pids() } ],
    [ 'kill a child'              => sub { kill KILL => (server_pids())[0] // () } ],
    [ 'stop a background process' => sub { stop_for(worker_pids()) } ],
    [ 'kill a node'               => sub { my ($node) = @_; $node->kill_all; $node->start } ],
    [ 'restart gracefully'        => sub { httpd_graceful() } ],
    [ 'stop a node'               => sub { my ($node) = @_; stop_for($node->processes) } ],
    [ 'cut off the store'         => \&cut_store ],
    [ 'cut off the database'      => \&cut_database ],
    [ 'lose answers of the store' => sub {
        $proxy->rule(any => { lose => 1, times => 5 });
        sleep 2;
        $proxy->heal;
    } ],
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

$chaos->load(0.1, sub { $chaos->import_one(@_) }) for 1, 2;
$chaos->load(0.5, sub { $chaos->import_large(@_) });
$chaos->load(0.2, sub { $chaos->upload_one(@_) }) for 1, 2;
$chaos->load(0.1, sub { $chaos->email_one(@_) }) for 1, 2;

my $began = time;
incident($nodes[ $_ % NODES ], $incidents[$_]) for 0 .. $#incidents;
while (time < $began + $seconds) {
    sleep rand 3;
    incident($nodes[ rand @nodes ], $incidents[ rand @incidents ]);
}
sleep 1;
my @lines = $chaos->end;
$first->aim;

# --- what has become of it ------------------------------------------------------------------------

my %given_up = jobs_end();
is_deeply [ map { $_->{refused} // () } @lines ], [], 'no request is refused';

my @imports = grep { $_->{import} } @lines;
my @uploads = grep { $_->{upload} } @lines;
my %jobs    = table('SELECT id, status, error_code, error_message FROM job');
my %assets  = table('SELECT id, status, sha256, size FROM asset');
is_deeply [ map { $jobs{$_} } grep { $jobs{$_}[1] ne 'succeeded' && !$given_up{$_} }
        map { $_->{job} // () } @imports, @uploads ], [], 'each import and each upload succeeds';
my %seen;
$seen{ $_->{asset} }++ for @imports, @uploads;
is_deeply [ grep { $_ > 1 } values %seen ], [], 'each has an asset of its own';
my @wrong = grep { ($assets{ $_->{asset} }[2] // '') ne
        ($_->{sha256} // MDL::Source::sha256($_->{size}, $_->{import})) }
    grep { !$given_up{ $_->{job} // '' } } @imports, @uploads;
is_deeply \@wrong, [], 'with the right bytes';

my @emails = grep { $_->{email} } @lines;
my $emails = copies($mail, @stops);
is_deeply [ grep { !$emails->{by_address}{$_} } map { $_->{email} } @emails ], [],
    'each email arrives';
is_deeply $emails->{more}, [],
    'of each connection that was cut, or stood still, one at most comes twice';

# Strays are removed after an hour, and once more a day later, by one node here.
$_->stop for @nodes[ 1 .. $#nodes ];
sub swept
{
    my ($set, $left) = @_;
    sql("UPDATE stray_object SET due_at = 1 $set");
    httpd_graceful();
    wait_for(sub { (sql("SELECT count(*) FROM stray_object $left"))[0][0] == 0 }, 600, 'a sweep');
    return;
}
swept('', 'WHERE COALESCE(due_at - removed_at, 0) < 86400000000');
swept(', removed_at = 1', '');
my %blobs = table('SELECT object, size FROM blob WHERE object IS NOT NULL');
my %objects = $store->objects;
delete $objects{identity};
is_deeply \%objects, { map { $_ => $blobs{$_}[1] } keys %blobs },
    'the store has the objects of the blobs and nothing else';
is_deeply [ $store->uploads ], [], 'and no unfinished upload';

for my $node (@nodes) {
    unlike $node->error_log, qr/Assertion|exit signal (?!Killed)/, 'no process has crashed';
}
diag sprintf '%.0f s: %s', time - $began, join ', ', map { "$done{$_} × $_" } sort keys %done;
diag sprintf '%d imports, %d uploads, %d emails, %d emails too many; %d jobs given up',
    scalar @imports, scalar @uploads, scalar @emails, $emails->{extra}, scalar keys %given_up;

$first->stop;
done_testing;
