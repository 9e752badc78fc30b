# Each alert is made true by what it is about, and false again, while Prometheus watches a service
# at work. For make check-alerts. The rules are those of conf/prometheus, with seconds for their
# minutes and hours. DownloadsDatabaseDiskFills alone is missing: a disk that is full needs a mount.
#
# pgsql: its database can go away
use strict;
use warnings;

use File::Path qw(make_path);
use MDL::Instance;
use MDL::Mail;
use MDL::Metrics;
use MDL::Prometheus;
use MDL::Receiver;
use MDL::Test;
use Test::More;

plan skip_all => 'make check-alerts tries this' if !$ENV{ALERTS};

use constant WINDOW => 20;    # seconds, for each range of the rules

my $server = MDL::Instance->new(cluster => 1, modules => ['authz_host'])->aim;
my $smtp   = start_peer();
my $conf   = metrics_conf() . <<"END";
DBDMin 2
DBDKeep 2
DBDMax 2
DownloadsMailTransport smtp://localhost:$smtp->{port}
DownloadsMailTLS off
END
$server->configure(extra => $conf);
$server->start;

my $rules = MDL::Target::slurp('conf/prometheus/alerts.yml');
$rules =~ s/\bfor: \w+/for: 1s/g;
$rules =~ s/\[\w+\]/[${\ WINDOW}s]/g;
my $prometheus = MDL::Prometheus->new(rules => $rules, other => '/source/metrics');
my $shop       = shop_with_product('Alerts');
my %key        = (key => $shop->{token});
my %tried;

# Debian's aiosmtpd; the address decides whether it takes an email.
sub start_peer
{
    my $folder = MDL::Test::suite_dir() . '/smtp';
    make_path($folder);
    system('openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost'
        . " -keyout $folder/key.pem -out $folder/cert.pem 2>/dev/null") == 0 or die "openssl\n";
    pipe my $in, my $hold or die "pipe: $!";
    pipe my $ports, my $out or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $hold;
        open STDIN,  '<&', $in;
        open STDOUT, '>&', $out;
        exec '/usr/bin/python3', '-W', 'ignore', 't/lib/smtp_peer.py', $folder,
            "$folder/cert.pem", "$folder/key.pem" or die "smtp_peer.py: $!\n";
    }
    close $out;
    my ($port) = (readline($ports) // '') =~ /(\d+)/ or die "the SMTP server does not start\n";
    return { hold => $hold, pid => $pid, port => $port };
}

sub fires { my ($alert) = @_; return scalar grep { $_ eq $alert } $prometheus->firing }

# Makes alerts true, and false again; what is done goes on until they are.
sub alerts
{
    my ($alerts, $what, $begin, $end, $during) = @_;
    my $see = sub {
        my ($alert, $state) = @_;
        my $seen = eval {
            wait_for(sub { $during->() if $during && $state; !!fires($alert) eq !!$state }, 150,
                $alert);
        };
        ok $seen, "$alert is " . ($state ? "true: $what" : 'false again')
            or diag explain [ $prometheus->firing ];
        return;
    };
    ok !fires($_), "$_ is false at first" for @$alerts;
    $begin->();
    $see->($_, 1) for @$alerts;
    $end->();
    $see->($_, '') for @$alerts;
    @tried{@$alerts} = ();
    return;
}

my $nothing = sub { };

alerts(['DownloadsMailServerAway'], 'the mail server takes no email',
    sub { order_for($shop, 'rcpt451@example.com') }, $nothing);

my $receiver = MDL::Receiver->new;
my $other    = "$server->{folder}/source/metrics";
my $endpoint;
alerts([qw(DownloadsEmailsBounce DownloadsJobsFail DownloadsRateLimited DownloadsWebhooksFail
        DownloadsBuildsDiffer)],
    'the mail server refuses emails, the source of imports is gone, somebody guesses keys, an '
        . 'endpoint answers 500, another node has another build',
    sub {
        $receiver->answers('bad', { status => 500 });
        $endpoint = $receiver->endpoint($shop, 'bad');
        MDL::Instance::write_file($other, qq(downloads_build_info{version="0"} 1\n));
        order_for($shop, 'rcpt550@example.com') for 1 .. 20;
        api('POST', '/assets', %key, json => { source_url => source_url('none') }) for 1 .. 20;
        api('GET', '/ping', key => 'adk_live_' . 'a' x 16 . '_' . 'b' x 20) for 1 .. 250;
    },
    sub {
        api('DELETE', "/webhook-endpoints/$endpoint->{id}", %key);
        unlink $other;
    });

alerts(['DownloadsStorageFills'], 'the storage has little left', sub {
    my $free = int(metrics()->{downloads_storage_free_bytes} / 2**30);
    $server->configure(extra => "${conf}DownloadsStorageReserve ${free}G\n");
    httpd_graceful();
}, sub {
    $server->configure(extra => $conf);
    httpd_graceful();
});

my ($worker) = worker_pids();
alerts([qw(DownloadsJobsWait DownloadsWorkerDown DownloadsNodeSilent)],
    'the background process stands still',
    sub {
        kill STOP => $worker;
        order_for($shop, 'b@example.com');
        sql("UPDATE job SET due_at = due_at - 700000000 WHERE status = 'queued'");
    },
    sub { kill CONT => $worker });

# Four connections for all: some requests wait for one, and are refused after five seconds.
alerts([qw(DownloadsSlow DownloadsConnectionsScarce DownloadsConnectionsRefused)],
    'a table is locked',
    sub {
        my $lock = MDL::Database::lock_tables('orders');
        parallel(30, sub { api('GET', '/orders/1', %key, timeout => 60)->{status} });
        MDL::Database::unlock($lock);
    }, $nothing);

alerts([qw(DownloadsDatabaseDown DownloadsErrors)], 'the database is stopped',
    sub { MDL::Database::stop_database() }, sub { MDL::Database::start_database() },
    sub { api('GET', '/orders/1', %key) for 1 .. 5 });

alerts(['DownloadsNodeDown'], 'httpd is stopped', sub { $server->stop }, sub { $server->start });

is_deeply [ sort keys %tried, 'DownloadsDatabaseDiskFills' ], [ sort $rules =~ /alert: (\w+)/g ],
    'no other alert is missing';

kill TERM => $smtp->{pid};    # others hold its input open, too
waitpid $smtp->{pid}, 0;
$prometheus->stop;
$server->stop;
done_testing;
