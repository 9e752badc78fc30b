# PostgreSQL's host vanishes: its packets are dropped, or its kernel acknowledges and nothing
# answers. Requests get 503 within a client's patience, those that come meanwhile at once; other
# virtual hosts notice nothing; the first request afterwards succeeds.
#
# pgsql: SQLite has no host
use strict;
use warnings;

use HTTP::Tiny;
use List::Util qw(max min);
use Test::More;
use Time::HiRes qw(time);

use MDL::Instance;
use MDL::Source;
use MDL::Test;
use MDL::Vanishing;

my $drops = MDL::Vanishing->own_network;

# More requests at once than the server has connections, fewer than it has threads. A client's whole
# patience is of one that may come late because its machine is busy.
use constant { THREADS => 48, REQUESTS => 36, ROUNDS => 3, TRIES => 3, PATIENCE => 120 };

my $server = MDL::Instance->new(mpm => 'event');
my $host   = MDL::Vanishing->new($server->{vars}{db_params});
$server->configure(extra => <<"END");
DBDParams "${\ $host->params}"
DBDMax 16
DBDKeep 8
StartServers 1
ServerLimit 1
ThreadLimit ${\ THREADS}
ThreadsPerChild ${\ THREADS}
MaxRequestWorkers ${\ THREADS}
Listen 127.0.0.1:\@tls_port\@
<VirtualHost *:\@tls_port\@>
    ServerName other.test
    DocumentRoot \@t_logs\@/source
</VirtualHost>
END
$server->start;
my $source = MDL::Source->new;
my $shop   = new_shop();
my $key    = $shop->{token};
my $page   = 'http://127.0.0.1:' . $server->tls_port . '/page.txt';
my $file   = $source->offer('file', { size => 1000 });
MDL::Instance::write_file("$server->{folder}/source/page.txt", 'a page');

# Requests of each kind at once. Returns the statuses, how long the slowest took, and the slowest of
# the other host's page.
sub at_once
{
    my @kinds = (
        sub { api('GET', '/health', timeout => PATIENCE) },
        sub { api('GET', '/mappings', key => $key, timeout => PATIENCE) },
        sub {
            api('POST', '/assets', key => $key, timeout => PATIENCE,
                json => { source_url => $file });
        },
        sub { HTTP::Tiny->new(timeout => PATIENCE)->get($page) },
    );
    my @answers = parallel(REQUESTS, sub {
        my $began = time;
        return { status => $kinds[ $_[0] % @kinds ]->()->{status}, took => time - $began };
    });
    return ([ map { $_->{status} } @answers ], max(map { $_->{took} } @answers),
        max(map { $_->{took} } @answers[ grep { $_ % @kinds == 3 } 0 .. $#answers ]));
}

# What to expect of them.
sub each_gets
{
    my @statuses = @_;
    return map { $statuses[ $_ % @statuses ] } 0 .. REQUESTS - 1;
}

# Returns the rounds in which an answer or a page came late.
sub once_away
{
    my ($how, $limit) = @_;
    my @worker = worker_pids();
    my ($statuses, $took) = at_once();
    is_deeply $statuses, [ each_gets(200, 200, 202, 200) ], 'requests succeed before';
    # What a busy machine may add, unless it is as much as to wait twice.
    my $more = min(1 + 2 * $took, $limit - 0.5);
    my @late;
    $host->$how;
    for my $round (1 .. ROUNDS) {
        ($statuses, $took, my $took_page) = at_once();
        is_deeply $statuses, [ each_gets(503, 503, 503, 200) ],
            "each gets 503, and the other host's pages are served, round $round";
        push @late, sprintf 'round %d: %.1f s, pages %.1f s, of %.1f s', $round, $took, $took_page,
            $limit + $more
            if $took > $limit + $more || $took_page > 1 + $more;
    }
    $host->come_back;
    my $reply = api('POST', '/assets', key => $key, json => { source_url => $file });
    is $reply->{status}, 202, 'the first request afterwards succeeds';
    ($statuses) = at_once();
    is_deeply $statuses, [ each_gets(200, 200, 202, 200) ], 'and so do many';
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'the job is done';
    is_deeply [ worker_pids() ], \@worker, 'by the same background process';
    return @late;
}

# A busy machine is late now and then, a service that waits too long each time.
sub vanishes
{
    my ($how, $limit) = @_;
    my @late;
    for my $try (1 .. TRIES) {
        @late = once_away($how, $limit) or last;
        diag "late, $_" for @late;
    }
    is_deeply \@late, [], 'each answer and each page came in time';
    return;
}

# The server's own limits are 3 s and 8 s.
subtest 'its packets are dropped' => sub {
    plan skip_all => 'the kernel lets no user have a network of their own' if !$drops;
    vanishes('drop', 3);
};
subtest 'nothing answers' => sub { vanishes('silence', 8) };

like $server->error_log, qr/MDL0122: .*MDL0123: /s,
    'the log says when that began and when it ended';

$server->stop;
done_testing();
