# A service of `make bench`, with a shop, a key, files, mappings and orders: a fresh instance of
# tools/instance, with the settings that a shop's service has.
#
#   my $on = Bench::Service->new('pgsql', orders => 1000);
#   $on->api('GET', '/ping');                      # the answer, decoded
#   $on->sql('DELETE FROM …');                     # a script
#   my ($row) = $on->rows('SELECT a, b FROM …');   # [ a, b ]
#   $on->stop;                                     # nothing of it is left
#
# Options:
#   orders       orders that are there from the beginning
#   files        files of 10 KB, or of file_size, each mapped to a product
#   conf         lines behind those of the instance
#   mail_port    of an SMTP server in place of smtp-sink
#   environment  { NAME => value } of its programs
#   autovacuum   0: PostgreSQL never analyzes
#   nodes        so many httpds, each with a background process, and PostgreSQL counts the time of
#                its statements (pg_stat_statements)
#   downloads    links that are made for a run of whole files
#   limits       lines for downloads.conf, in place of limits of requests that are never reached
#   tls          1: it serves TLS 1.3, too, and HTTP/2 there, at $on->{tls_origin}
#
# SERVER_ROOT and SERVER_BUILD, in the environment, name another checkout, and its build, whose
# service it is.
package Bench::Service;

use strict;
use warnings;

use Bench::Rows;
use Bench::Sink;
use Cwd qw(abs_path);
use Exporter qw(import);
use HTTP::Tiny;
use IO::Handle;
use IPC::Open2 qw(open2);
use JSON::PP;
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(build run wait_for write_file);

my $json = JSON::PP->new->utf8->canonical;
my $made = 0;
my %running;

my $UNLIMITED = <<'END';
DownloadsRateBurst 1000000
DownloadsRateRefill 1000000
DownloadsRateReadCost 1
DownloadsRateWriteCost 1
DownloadsRatePages 1000000
DownloadsMailRate 1000000
DownloadsRateParts 1000000
DownloadsRateNetwork 1000000
END

sub build { return abs_path($ENV{BUILD} || 'build') . '/bench' }

sub run
{
    system(@_) == 0 or die "failed: @_\n";
    return;
}

sub write_file
{
    my ($path, $text) = @_;
    open my $out, '>>:raw', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

sub wait_for
{
    my ($check, $seconds, $what) = @_;
    my $end = time + $seconds;
    while (time < $end) {
        my $result = $check->();
        return $result if $result;
        sleep 0.02;
    }
    die "in vain, for $seconds s: $what\n";
}

sub new
{
    my ($class, $db, %opt) = @_;
    my $self = bless {
        db => $db, orders => 0, files => 0, file_size => 10_000, limits => $UNLIMITED, %opt,
        root   => abs_path($ENV{SERVER_ROOT} || '.'),
        build  => $ENV{SERVER_BUILD} || $ENV{BUILD} || 'build',
        folder => build() . '/instance-' . ++$made,
        http   => HTTP::Tiny->new(keep_alive => 1, timeout => 120, max_redirect => 0),
    }, $class;
    local $ENV{DB} = $db;
    $self->instance('make', 'fresh');
    $running{$self} = $self;
    $self->{data} = abs_path("$self->{folder}/data");
    $self->configure;
    $self->start;
    $self->count_statements if $self->{nodes};
    $self->instance('key');
    $self->{$1} = $2 while qx(tools/instance describe '$self->{folder}') =~ /^(\w+)='(.*)'$/mg;
    ($self->{origin}) = $self->{BASE_URL} =~ m{^(https?://[^/]+)};
    $self->{shop} = $self->api('GET', '/ping')->{shop}{id};
    $self->sql('ALTER SYSTEM SET autovacuum = off;', 'SELECT pg_reload_conf();')
        if $db eq 'pgsql' && defined $self->{autovacuum} && !$self->{autovacuum};
    $self->add_files;
    $self->add_orders($self->{orders});
    return $self;
}

# Runs tools/instance of the service's checkout.
sub instance
{
    my ($self, $command, @more) = @_;
    local %ENV = (%ENV, DB => $self->{db}, BUILD => $self->{build}, RATE_LIMIT => 'on');
    run("$self->{root}/tools/instance", $command, $self->{folder}, @more);
    return;
}

# Its limits, and the handlers that ours are compared with.
sub configure
{
    my ($self) = @_;
    my $module = build() . '/mod_bench.so';
    my $sink   = $self->{mail_port} // Bench::Sink::port();
    my $statements = join "\n", map { qq(BenchSelect $_->[0] "$_->[1]") } Bench::Rows::selects();
    write_file("$self->{data}/conf/downloads.conf", $self->{limits});
    write_file("$self->{data}/conf/httpd.conf", <<"END" . $self->tls_conf . ($self->{conf} // ''));
LoadModule bench_module "$module"
DownloadsMailTransport smtp://127.0.0.1:$sink
<IfDirective DownloadsMailTLS>
    DownloadsMailTLS off
</IfDirective>
MaxSpareThreads 128
$statements
<Location /bench/bare>
    SetHandler bench-bare
</Location>
<Location /bench/select>
    SetHandler bench-select
</Location>
END
    return;
}

# Without tickets each new connection takes a whole handshake, as that of a new customer does.
sub tls_conf
{
    my ($self) = @_;
    return '' if !$self->{tls};
    chomp(my $port    = qx(tools/instance port));
    chomp(my $modules = qx($ENV{APXS} -q LIBEXECDIR));
    my $name = "$self->{data}/conf/tls";
    run('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 2'
            . " -subj /CN=localhost -keyout '$name.key' -out '$name.crt' 2>/dev/null");
    $self->{tls_origin} = "https://127.0.0.1:$port";
    return <<"END";
LoadModule ssl_module "$modules/mod_ssl.so"
LoadModule http2_module "$modules/mod_http2.so"
Listen 127.0.0.1:$port https
<VirtualHost 127.0.0.1:$port>
    Protocols h2 http/1.1
    SSLEngine On
    SSLProtocol TLSv1.3
    SSLSessionTickets Off
    SSLCertificateFile "$name.crt"
    SSLCertificateKeyFile "$name.key"
</VirtualHost>
END
}

sub start
{
    my ($self) = @_;
    local %ENV = (%ENV, %{ $self->{environment} // {} });
    $self->instance('start');
    $self->start_node($_) for 2 .. $self->{nodes} // 1;
    return;
}

# Another httpd of the same configuration, which tools/instance stops with the first.
sub start_node
{
    my ($self, $number) = @_;
    my $name = 'node' . chr(ord('a') + $number);
    my $conf = "$self->{data}/conf/$name.conf";
    if (!-e $conf) {
        chomp(my $port = qx(tools/instance port));
        open my $in, '<', "$self->{data}/conf/httpd.conf" or die "httpd.conf: $!\n";
        my $text = join '', <$in>;
        $text =~ s/^(\s*Listen \S+:)\d+/$1$port/m;
        $text =~ s{^(\s*PidFile ".*/).*(?=\.pid")}{$1$name}m;
        $text =~ s{^(\s*(?:Error|Custom)Log ".*/)(?=\w+\.log")}{$1$name-}mg;
        $text =~ s/^(\s*(?:StartServers|ServerLimit)) \d+/$1 1/mg;
        $text =~ s/^(\s*MaxRequestWorkers) \d+/$1 32/m;
        write_file($conf, $text);
    }
    chomp(my $httpd = qx(tools/instance httpd));
    run($httpd, '-d', $self->{data}, '-f', $conf, '-k', 'start');
    return;
}

sub count_statements
{
    my ($self) = @_;
    $self->sql("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements';");
    $self->restart;
    $self->sql('CREATE EXTENSION pg_stat_statements;');
    wait_for(sub { ($self->rows('SELECT count(*) FROM node'))[0][0] == $self->{nodes} }, 60,
        'the background processes');
    return;
}

sub restart
{
    my ($self) = @_;
    $self->instance('stop');
    $self->start;
    $self->{http} = HTTP::Tiny->new(keep_alive => 1, timeout => 120, max_redirect => 0);
    return;
}

sub stop
{
    my ($self) = @_;
    delete $running{$self} or return;
    $self->close_client;
    $self->instance('remove');
    return;
}

sub processes { my ($self) = @_; return split ' ', qx(pgrep -f -- '-f $self->{data}/conf/') }

sub stop_all { $_->stop for values %running; return }

# --- requests ------------------------------------------------------------------------------------

# The decoded answer of a request that must succeed.
sub api
{
    my ($self, $method, $path, $body) = @_;
    my %headers = (authorization => "Bearer $self->{API_TOKEN}");
    $headers{'idempotency-key'} = join '-', 'bench', $$, ++$self->{requests} if $method ne 'GET';
    $headers{'content-type'} = 'application/json' if $body;
    my $answer = $self->{http}->request($method, $self->{BASE_URL} . $path,
        { headers => \%headers, $body ? (content => $json->encode($body)) : () });
    die "$method $path: $answer->{status} $answer->{content}\n" if $answer->{status} !~ /^20[0-2]$/;
    return $json->decode($answer->{content});
}

# Writes a file where imports can fetch it; returns its URL.
sub source
{
    my ($self, $name, $bytes) = @_;
    write_file("$self->{data}/source/$name", $bytes);
    return $self->{SOURCE_URL} =~ s{[^/]+$}{$name}r;
}

# --- the database --------------------------------------------------------------------------------

sub params
{
    my ($self) = @_;
    open my $in, '<', "$self->{data}/conf/downloads.conf" or die "downloads.conf: $!\n";
    my ($params) = join('', <$in>) =~ /^DBDParams "(.*)"$/m;
    return $params;
}

sub client
{
    my ($self) = @_;
    return $self->{db} eq 'pgsql'
        ? ('psql', $self->params, '-qXAt', '-F', '|', '-v', 'ON_ERROR_STOP=1')
        : ('sqlite3', '-batch', '-bail', '-cmd', '.timeout 60000', $self->params);
}

sub sql
{
    my ($self, @statements) = @_;
    my @command = $self->client;
    open my $in, '|-', "exec '" . join("' '", map { s/'/'\\''/gr } @command) . "' >/dev/null"
        or die "$command[0]: $!\n";
    print $in $self->{db} eq 'pgsql' ? "SET statement_timeout = 0;\n"
        : "PRAGMA synchronous = off;\n", map {"$_\n"} @statements;
    close $in or die "$command[0] failed\n";
    return;
}

# By one client that stays, for starting one costs more than most queries, and the machine is being
# measured.
sub rows
{
    my ($self, $query) = @_;
    my $end = $self->{db} eq 'pgsql' ? '\echo end' : '.print end';
    my @rows;
    $self->{client} //= do {
        my $pid = open2(my $out, my $in, $self->client);
        { pid => $pid, in => $in, out => $out };
    };
    $self->{client}{in}->printflush("$query;\n$end\n");
    while (defined(my $line = readline $self->{client}{out})) {
        chomp $line;
        return @rows if $line eq 'end';
        push @rows, [ split /\|/, $line, -1 ];
    }
    die "failed: $query\n";
}

sub close_client
{
    my ($self) = @_;
    my $client = delete $self->{client} or return;
    close $client->{in};
    waitpid $client->{pid}, 0;
    return;
}

# --- what is there from the beginning ------------------------------------------------------------

# Files that differ, each imported and mapped to a product; all have the same number from 1 on.
sub add_files
{
    my ($self) = @_;
    my $count = $self->{files} or return;
    for my $i (1 .. $count) {
        my $url = $self->source("file-$i.bin", sprintf('%-9d ', $i) x ($self->{file_size} / 10));
        $self->api('POST', '/assets', { source_url => $url });
    }
    wait_for(
        sub { ($self->rows("SELECT count(*) FROM asset WHERE status = 'ready'"))[0][0] == $count },
        60 + $count / 10, "$count imports");
    my ($range) = $self->rows('SELECT min(id), max(id) FROM asset');
    die "the assets have the ids @$range\n" if "@$range" ne "1 $count";
    $self->sql('BEGIN;', Bench::Rows::mappings($self->{shop}, $count),
        Bench::Rows::sequences($self->{db}, 'mapping'), 'COMMIT;');
    return;
}

# Orders up to this number, as if each had been assigned one of the products, with an email.
sub add_orders
{
    my ($self, $up_to) = @_;
    my $from = $self->{seeded} // 0;
    return if $up_to <= $from;
    $self->sql('BEGIN;', Bench::Rows::orders($self->{shop}, $from, $up_to - $from, $self->{files}),
        $from ? '' : Bench::Rows::sequences($self->{db},
            qw(customer orders assignment email order_timeline)), 'COMMIT;');
    $self->{seeded} = $up_to;
    return;
}

1;
