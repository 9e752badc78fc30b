# Two nodes on one PostgreSQL and one storage folder are upgraded one after the other under load,
# by a migration that adds and by one that older releases may not meet (t/operate/levels). Each
# import, email and download counts once, and no request fails: make check-upgrade.
#
#   UPGRADE=600 SEED=4711     for how many seconds, and which load
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use MDL::Chaos qw(copies table);
use MDL::Customer;
use MDL::Instance;
use MDL::Mail;
use MDL::MailServer;
use MDL::Source;
use MDL::Test;
use Test::More;
use Time::HiRes qw(sleep time);

plan skip_all => 'loads two nodes for minutes: make check-upgrade' if !$ENV{UPGRADE};

use constant { MB => 1024 * 1024, LEASE => 4, DOWNLOADERS => 2, PHASES => 5 };

my $seed = $ENV{SEED} // time ^ $$;
diag "SEED=$seed";

my $mail = MDL::MailServer->new;
my $conf = <<"END";
DownloadsMigrate Off
DownloadsPollInterval 1
DownloadsLeaseTime @{[LEASE]}
DownloadsSessionIdle 2
DownloadsMailConnections 5
DownloadsMailTransport smtp://127.0.0.1:$mail->{port}
END
my $first  = MDL::Instance->new(extra => $conf)->start;
my $second = MDL::Instance->new(without => qr/^DBDParams/, extra => $conf
        . qq(DBDParams "$first->{vars}{db_params}"\nDownloadsStorage "$first->{folder}/storage"\n))
    ->start;
my @nodes = ($first->aim, $second);
my $source = MDL::Source->new;
my $shop   = shop_with_product('Upgrade');
my $file   = new_file($shop, 2 * MB);
my $product = 'gid://upgrade/Product/1';
my $reply   = api('POST', '/mappings', key => $shop->{token}, json => {
    storefront_product_id => $product, file_ids => [ $file->{id} ], download_limit => 1,
    download_type => 'FILES' });
die "mapping: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20[01]$/;

my $chaos = MDL::Chaos->new(seed => $seed, ports => sub { map { $_->{vars}{port} } @nodes },
    shop => $shop, source => $source);
$chaos->load(0.1, sub { $chaos->import_one(@_) }) for 1, 2;
$chaos->load(0.05, sub { $chaos->email_one(@_) }) for 1, 2;
$chaos->load(0.2, sub { $chaos->download_one($_[0], $product, $file) }) for 1 .. DOWNLOADERS;

sub run_on { return sleep $ENV{UPGRADE} / PHASES }

sub migrate
{
    my ($level) = @_;
    $first->aim;
    my $said = qx('$ENV{BUILD}/level$level/downloadsctl' -f '${\ conf_file()}' migrate 2>&1);
    return like $said, qr/^Applied 1 migration; the schema is at version $level\./,
        "the schema gets version $level";
}

sub upgrade
{
    my ($node, $level) = @_;
    $node->aim->httpd('-k', 'graceful-stop');
    wait_for(sub { !$node->processes }, 60, 'the end of a node');
    $node->configure(level => $level);
    return $node->start;
}

run_on();
migrate(2);
$second->aim;
httpd_graceful();
run_on();
upgrade($first, 2);
run_on();
my $cut_from = time;
migrate(3);
upgrade($first, 3);
$second->aim;
my $health = api('GET', '/health');
is "$health->{status} $health->{json}{error}{message}",
    '503 This node is being upgraded; try again.', 'the node that is too old says so';
run_on();
is api('GET', '/health')->{status}, 503, 'as long as it is';
upgrade($second, 3);
my $cut_until = time;
run_on();
my @lines = $chaos->end;
$first->aim;

# --- what has become of it ------------------------------------------------------------------------

# What failed for a moment is not waited for.
wait_for(sub {
    sql("UPDATE job SET due_at = 1 WHERE status = 'queued'");
    (sql("SELECT count(*) FROM job WHERE status IN ('queued', 'running')"))[0][0] == 0;
}, 300, 'the end of all jobs');
wait_for(sub { (sql("SELECT count(*) FROM download_session WHERE status = 'open'"))[0][0] == 0 },
    120, 'the end of all sessions');

is_deeply [ map { $_->{refused} } grep { $_->{refused} } @lines ], [], 'no request is refused';
for my $node (@nodes) {
    my @failed = grep { /" 500 / } split /\n/, MDL::Test::slurp("$node->{folder}/access_log");
    is_deeply \@failed, [], 'no request has failed';
    unlike $node->error_log, qr/Assertion|exit signal|MDL0(?:201|403|502)/, 'nor a process';
}

my @imports = grep { $_->{import} } @lines;
my %jobs = table("SELECT id, status, error_message FROM job WHERE type = 'asset_import'");
my %assets = table('SELECT id, status, sha256, size FROM asset');
is_deeply [ grep { $_->[1] ne 'succeeded' } @jobs{ map { $_->{job} } @imports } ], [],
    'each import succeeds';
is scalar(keys %assets), @imports + 2, 'and each has made one asset';
is_deeply [ grep { $assets{ $_->{asset} }[2] ne MDL::Source::sha256($_->{size}, $_->{import}) }
    @imports ], [], 'with the right bytes';

my @downloads = grep { $_->{download} } @lines;
my %used = table('SELECT o.storefront_order_id, sum(w.downloads_counted) FROM orders o '
    . 'JOIN assignment a ON a.order_id = o.id LEFT JOIN allowance w '
    . 'ON w.assignment_id = a.id GROUP BY 1');
is_deeply [ grep { !$_->{whole} || $_->{odd} ne '' } @downloads ], [],
    'each customer gets the file';
is_deeply [ grep { ($used{ $_->{download} }[1] || 0) > 1 } @downloads ], [],
    'no download counts twice';
my $free = grep { !$used{ $_->{download} }[1] } @downloads;
cmp_ok $free, '<=', DOWNLOADERS, 'and each once, but for those that were cut off unrecorded';

my @emails = grep { $_->{email} } @lines;
my $emails = copies($mail, [ $cut_from, $cut_until ]);
my %unsent = table("SELECT recipient FROM email WHERE status <> 'sent'");
is_deeply [ grep { !$emails->{by_address}{$_} || $unsent{$_} } map { $_->{email} } @emails ], [],
    'each email arrives, and counts as sent';
is_deeply $emails->{more}, [], 'only of a connection whose node was cut off, one may come twice';
diag sprintf '%d imports; %d downloads, %d of them cut, %d given away; %d emails, %d too many',
    scalar @imports, scalar @downloads, scalar(grep { $_->{cuts} } @downloads), $free,
    scalar @emails, $emails->{extra};
$_->stop for @nodes;
done_testing;
