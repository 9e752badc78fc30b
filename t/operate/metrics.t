# The metrics of a node: what is counted and measured, who may read it, and in which form.
#
# both: the database is asked in another way, and counts what it commits
use strict;
use warnings;

use JSON::PP qw(decode_json);
use MDL::Customer;
use MDL::Instance;
use MDL::Mail;
use MDL::Metrics;
use MDL::Receiver;
use MDL::Test;
use Test::More;

my $notes  = join '|', map { "%{downloads-$_}n" } qw(operation shop key order job db);
my $server = MDL::Instance->new(modules => ['authz_host'], extra => metrics_conf() . <<"END");
DownloadsMailRate 100
LogFormat "$notes" notes
CustomLog "\@t_logs\@/notes" notes
${\ json_log() }
<Location /server-status>
    SetHandler server-status
</Location>
<Location /closed>
    SetHandler downloads-metrics
    Require ip 192.0.2.1
</Location>
END
$server->start;
my $shop = shop_with_product('Metrics');
my %key  = (key => $shop->{token});

# Does something, and waits until a family's samples have grown by so much: a request is counted
# behind its answer, and a background process or thread counts, too.
sub grows
{
    my ($by, $what, $work, $name, %labels) = @_;
    my $before = sum_of(metrics(), $name, %labels) // 0;
    my $now    = $before;
    $work->();
    eval {
        wait_for(
            sub { ($now = sum_of(metrics(), $name, %labels) // 0) - $before >= $by }, 60, $what
        );
    };
    return is $now - $before, $by, $what;
}

subtest 'the text is what Prometheus expects' => sub {
    api('GET', '/ping', %key);
    my $reply = page('GET', '/metrics');
    is $reply->{headers}{'content-type'}, 'text/plain; version=0.0.4; charset=utf-8',
        'its type is that of the text format';
    my ($code, $said) = promtool($reply->{body}, qw(check metrics));
    is $code, 0, 'promtool check metrics finds nothing' or diag $said;
    is $said, '', 'and has no remark';
    unlike $reply->{body}, qr/\Q$shop->{token}\E|Metrics|mail-|\@|127\.0\.0\.1/,
        'there is no name, address or token in it';
    my %seen;
    $seen{$_}++ for $reply->{body} =~ /^([^#\n].*) \S+$/mg;
    is_deeply [ grep { $seen{$_} > 1 } keys %seen ], [], 'no series occurs twice';
};

subtest 'OpenMetrics is sent to who asks for it' => sub {
    my $reply = page('GET', '/metrics', headers => {
        accept => 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5' });
    is $reply->{headers}{'content-type'},
        'application/openmetrics-text; version=1.0.0; charset=utf-8', 'its type is that';
    like $reply->{body}, qr/# EOF\n\z/, 'it ends as OpenMetrics does';
    like $reply->{body}, qr/^# TYPE downloads_requests counter\n/m, 'a counter has its name there';
    like $reply->{body}, qr/^downloads_requests_total\{/m, 'and its samples their ending';
    unlike page('GET', '/metrics')->{body}, qr/EOF/, 'the text format has no end mark';
};

subtest 'who may not come in gets nothing' => sub {
    is page('GET', '/closed')->{status}, 403, 'another address is refused';
    is page('POST', '/metrics', body => 'x')->{status}, 405, 'there is nothing to POST to';
    my ($code, $said) = tested('');
    isnt $code, 0, 'without Require httpd does not start';
    like $said, qr/does not say who may read the metrics: add Require/, 'and says why';
    ($code, $said) = tested("<RequireAny>\nRequire local\n</RequireAny>");
    is $code, 0, 'a Require in a section within is good' or diag $said;
};

sub tested
{
    my ($lines) = @_;
    my $other = MDL::Instance->new(modules => ['authz_host'],
        extra => metrics_conf() =~ s/^ *Require.*/$lines/mr);
    return $other->httpd('-t');
}

subtest 'requests are counted by operation and class' => sub {
    my %ping = (handler => 'api', operation => 'GET /ping');
    grows(3, 'three pings', sub { api('GET', '/ping', %key) for 1 .. 3 },
        'downloads_requests_total', %ping, class => '2xx');
    grows(1, 'a refused one', sub { api('GET', '/ping', key => 'wrong') },
        'downloads_requests_total', %ping, class => '4xx');
    grows(1, 'the histogram has it', sub { api('GET', '/ping', %key) },
        'downloads_request_seconds_bucket', %ping, le => '+Inf');
    my $metrics = metrics();
    is sum_of($metrics, 'downloads_request_seconds_count', %ping),
        sum_of($metrics, 'downloads_requests_total', %ping), 'and all others';
    grows(5, 'orders are one operation', sub { api('GET', "/orders/$_", %key) for 1 .. 5 },
        'downloads_requests_total', operation => 'GET /orders/{}', class => '4xx');
    grows(5, 'unknown paths are another', sub { api('GET', "/no/such/$_", %key) for 1 .. 5 },
        'downloads_requests_total', handler => 'api', operation => 'other');
    grows(1, 'so is an unknown method', sub { api('DELETE', '/ping', %key) },
        'downloads_requests_total', handler => 'api', operation => 'other');
    my %one = (operation => 'GET /assets/{}');
    my $one = sum_of(metrics(), 'downloads_requests_total', %one);
    grows(1, 'a path that two routes match', sub { api('GET', '/assets/uploads', %key) },
        'downloads_requests_total');
    is sum_of(metrics(), 'downloads_requests_total', %one), $one, 'is of the literal one';
    grows(1, "a customer's page", sub { page('GET', '/d/o/x') },
        'downloads_requests_total', operation => 'GET /o/{}', class => '4xx');
    # The upload alone: neither the request of another handler nor those for metrics.
    grows(1, 'requests of other handlers are not', sub {
        page('GET', '/source/x');
        grows(1, 'an upload', sub { page('OPTIONS', '/u/x') },
            'downloads_requests_total', handler => 'upload', operation => 'OPTIONS');
    }, 'downloads_requests_total');
};

subtest 'writes, bytes, downloads, emails and jobs are counted' => sub {
    my $idem = idem();
    my $post = sub { api('POST', '/categories', %key, idem => $idem, json => { name => $idem }) };
    $post->();
    grows(1, 'a replay', $post, 'downloads_idempotency_replays_total');
    my $file;
    grows(1, 'its job', sub {
        grows(54_321, 'the bytes of an import', sub { $file = new_file($shop, 54_321) },
            'downloads_imported_bytes_total');
    }, 'downloads_jobs_ended_total', type => 'asset_import', outcome => 'succeeded');
    grows(1, 'a failed one',
        sub { api('POST', '/assets', %key, json => { source_url => source_url('none') }) },
        'downloads_jobs_ended_total', type => 'asset_import', outcome => 'failed');
    my $buy = buy($shop, $file);
    grows(1, 'and its count', sub {
        grows(54_321, 'the bytes of a download', sub { page('GET', link_of($buy)) },
            'downloads_delivered_bytes_total', from => 'server');
    }, 'downloads_downloads_total', outcome => 'counted');
    grows(1, 'a sent email', sub { order_for($shop, 'a@example.com') },
        'downloads_emails_total', outcome => 'sent');
    my $receiver = MDL::Receiver->new;
    $receiver->endpoint($shop, 'good', event_types => ['order.assigned']);
    grows(1, 'a webhook', sub { order_for($shop, 'b@example.com'); $receiver->await('good', 1) },
        'downloads_webhook_attempts_total', outcome => 'succeeded');
    $receiver->answers('good', { status => 500 });
    grows(1, 'a webhook that is refused', sub { order_for($shop, 'c@example.com') },
        'downloads_webhook_attempts_total', outcome => 'failed');
    wait_for(sub { (sum_of(metrics(), 'downloads_webhook_endpoints_failing') // 0) == 1 }, 20,
        'the failing endpoint');
    pass 'the endpoint fails';
    my $new = api('POST', '/assets/uploads', %key, json => { filename => 'u.bin', size => 7 });
    my $url = $new->{json}{upload_url} =~ s{localhost}{127.0.0.1}r;
    grows(7, 'the bytes of an upload', sub { page('PUT', $url, body => '1234567') },
        'downloads_uploaded_bytes_total')
        or diag explain $new;
};

subtest 'the state of the service is measured' => sub {
    my $metrics = metrics();
    is $metrics->{downloads_database_up}, 1, 'the database answers';
    is $metrics->{downloads_worker_up}, 1, 'the background process works';
    cmp_ok $metrics->{downloads_worker_heartbeat_age_seconds}, '<', 90, 'and has said so';
    is sum_of($metrics, 'downloads_nodes', state => 'live'), 1, 'there is one node';
    cmp_ok $metrics->{downloads_database_bytes}, '>', 100_000, 'the database has a size';
    cmp_ok $metrics->{downloads_storage_free_bytes}, '>', 0, 'the storage has room';
    is defined $metrics->{downloads_database_free_bytes}, database() eq 'sqlite3',
        "so has SQLite's disk";
    like join("\n", keys %$metrics), qr/^downloads_build_info\{version="[^"]+"\}$/m,
        'the build is named';
    my $used = sum_of(metrics(), 'downloads_database_connections_used_total');
    api('GET', "/orders/1", %key) for 1 .. 10;
    cmp_ok sum_of(metrics(), 'downloads_database_connections_used_total') - $used, '>=', 10,
        'the pool is watched';
    cmp_ok $metrics->{downloads_database_connections_max}, '>', 1, 'and has a limit';
};

subtest 'the database is asked every few seconds at most' => sub {
    my $asked = sub { return sum_of(metrics(), 'downloads_database_connections_used_total') };
    my $first = $asked->();
    my $began = time;
    $asked->() for 1 .. 50;
    cmp_ok $asked->() - $first, '<=', 2 + (time - $began) / 5, 'fifty scrapes are one question';
};

subtest 'mod_status has a section' => sub {
    my $pings = sum_of(metrics(), 'downloads_requests_total', class => '2xx');
    my $auto  = page('GET', '/server-status?auto')->{body};
    my %lines = map { /^(.*?): (.*)$/ ? ($1 => $2) : () } split /\n/, $auto;
    is $lines{'downloads_requests_total{class="2xx"}'}, $pings, 'requests by class';
    is $lines{downloads_worker_up}, 1, 'the background process';
    like $lines{DownloadsVersion}, qr/^\d/, 'the build';
    is((grep { /operation/ } keys %lines), 0, 'no operations');
    my $html = page('GET', '/server-status')->{body};
    like $html, qr{<h2>mod_downloads [^<]+</h2>}, 'the page has it, too';
    like $html, qr{<td>downloads_requests_total\{class="2xx"\}</td><td>\d+</td>}, 'as a table';
    unlike $html, qr{<td>downloads_\S+</td><td>0</td>}, 'without zeros';
};

subtest 'counters go on after restarts' => sub {
    my %ping = (operation => 'GET /ping', class => '2xx');
    my $before = sum_of(metrics(), 'downloads_requests_total', %ping);
    httpd_graceful();
    is sum_of(metrics(), 'downloads_requests_total', %ping), $before, 'after a graceful one';
};

subtest 'logs can say what a request was about' => sub {
    my $order = order_for($shop, 'd@example.com');
    my $job   = api('POST', '/assets', %key, json => { source_url => source('j', 'bytes') });
    my $log;
    my @lines = (qr/\|\Q$job->{json}{job}{id}\E\|/, qr/\|$order\|/);
    wait_for(sub {
        $log = slurp_notes();
        return !grep { $log !~ $_ } @lines;
    }, 60, 'the log');
    my ($key_id) = $log =~ m{^POST /assets\|$shop->{shop_id}\|([A-Za-z0-9]+)\|-\|job_\w+\|}m;
    ok $key_id, 'shop, key and job of an import';
    like $log,
        qr{^POST /orders/\{\}/assignments\|$shop->{shop_id}\|$key_id\|$order\|-\|statements=}m,
        'the order and what it cost';
    unlike $log, qr/\Q$shop->{token}\E/, 'no key itself';

    wait_for(sub { MDL::Target::slurp("$server->{folder}/json") =~ /"$order"/ }, 60, 'its line');
    my @json = split /\n/, MDL::Target::slurp("$server->{folder}/json") // '';
    my @read = map { eval { decode_json($_) } } @json;
    is scalar @read, scalar @json, 'each line of the sample in JSON can be read';
    my ($line) = grep { $_->{order} eq $order } @read;
    is $line->{status}, 201, 'and has the order';
    is_deeply [ grep { $_->{operation} eq '-' } @read ], [], 'it has our requests alone';
};

# The format of conf/metrics.conf.
sub json_log
{
    my $conf = MDL::Target::slurp('conf/metrics.conf');
    my @lines = $conf =~ /^#((?:LogFormat|CustomLog) .*)/mg;
    return join "\n", map { s{\$\{APACHE_LOG_DIR\}/downloads\.json}{\@t_logs\@/json}r } @lines;
}

sub slurp_notes { return MDL::Target::slurp("$server->{folder}/notes") // '' }

$server->stop;
done_testing;
