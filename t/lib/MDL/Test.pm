# What the suites share: requests to the API, shops and keys made by downloadsctl, waiting for jobs
# and mail, many clients at once.
#
#   use MDL::Test;
#   use Test::More;
#
#   my $shop  = new_shop();
#   my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
#   is($reply->{status}, 202, 'an import is accepted') or diag(explain($reply));
#
# Waiting always has an end and says in its failure what it waited for.
package MDL::Test;

use strict;
use warnings;

use Apache::Test ();
use Cwd qw(getcwd);
use Exporter qw(import);
use HTTP::Tiny;
use IO::Handle;
use IO::Socket::INET;
use JSON::PP;
use MIME::QuotedPrint qw(decode_qp);
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
    api page raw idem new_shop ctl
    wait_for wait_job wait_mail mails source source_url parallel
    port base_url public_url database logs_dir mail_dir storage_dir conf_file error_log
    error_log_size error_log_since
    httpd_pid httpd_signal httpd_graceful httpd_restart server_pids worker_pids stop_database start_database sql
);

use constant POLL => 0.02;    # seconds between two looks at something that was not there yet

my $JSON = JSON::PP->new->utf8->canonical->allow_nonref;
my $top  = getcwd();
my $unique = 0;

# --- where things are ------------------------------------------------------------------------------

# Of the server that the helpers mean: the shared one, unless MDL::Instance has taken aim at another.
my $aimed;
sub aim  { ($aimed) = @_; return }
sub vars { return $aimed // Apache::Test::vars() }

sub port        { return vars()->{port} }
sub base_url    { return 'http://127.0.0.1:' . port() . '/api/v1' }
sub public_url  { return 'http://localhost:' . port() . '/d' }
sub database    { return vars()->{db_driver} }
sub logs_dir    { return $aimed ? $aimed->{t_logs} : "$top/t/logs" }
sub mail_dir    { return logs_dir() . '/mail' }
sub storage_dir { return logs_dir() . '/storage' }
sub conf_file   { return $aimed ? $aimed->{conf_file} : "$top/t/conf/extra.conf" }
sub error_log   { return logs_dir() . '/error_log' }

# --- requests --------------------------------------------------------------------------------------

# A key for Idempotency-Key that no other request of this run has.
sub idem
{
    my ($prefix) = @_;
    return join '-', $prefix // 'test', $$, time, ++$unique;
}

sub client
{
    my (%opt) = @_;
    return HTTP::Tiny->new(
        max_redirect => 0,
        timeout      => $opt{timeout} // 30,
        agent        => 'mod_downloads-tests',
        keep_alive   => $opt{keep_alive} // 0,
        max_size     => $opt{max_size},
        verify_SSL   => 0,
    );
}

sub reply_of
{
    my ($answer) = @_;
    my $reply = {
        status  => $answer->{status},
        headers => $answer->{headers},
        body    => $answer->{content} // '',
    };
    # HTTP::Tiny's own failures (no connection, timeout) come as 599 with the reason as body.
    if (($answer->{headers}{'content-type'} // '') =~ m{^application/(?:\w+\+)?json\b}) {
        $reply->{json} = eval { $JSON->decode($reply->{body}) };
    }
    return $reply;
}

# A request to the API; returns { status, headers (lower-case names), body, json }.
#   key     => token, for Authorization
#   json    => value to send, or body => bytes to send
#   idem    => the Idempotency-Key; unless given a write gets one of its own, undef sends none
#   headers => { … }, which replace those above; undef takes one away
#   timeout => seconds (30)
sub api
{
    my ($method, $path, %opt) = @_;
    my %headers;
    $headers{'authorization'} = "Bearer $opt{key}" if defined $opt{key};
    my $body = exists $opt{json} ? $JSON->encode($opt{json}) : $opt{body};
    $headers{'content-type'} = 'application/json' if defined $body;
    if ($method !~ /^(?:GET|HEAD|OPTIONS)$/) {
        my $idem = exists $opt{idem} ? $opt{idem} : idem();
        $headers{'idempotency-key'} = $idem if defined $idem;
    }
    my %given = %{ $opt{headers} // {} };
    $headers{ lc $_ } = $given{$_} for keys %given;
    delete $headers{$_} for grep { !defined $headers{$_} } keys %headers;
    my %arguments = (headers => \%headers);
    $arguments{content} = $body if defined $body;
    return reply_of(client(%opt)->request($method, base_url() . $path, \%arguments));
}

# A request to any URL of the server, the buyer's side.  form => { … } is sent as a form would be,
# body as it is.  max_size => bytes that an answer may have, else its status is 599.
sub page
{
    my ($method, $url, %opt) = @_;
    $url = 'http://127.0.0.1:' . port() . $url if $url =~ m{^/};
    my %arguments = (headers => { %{ $opt{headers} // {} } });
    $arguments{content} = $opt{body} if defined $opt{body};
    if ($opt{form}) {
        $arguments{content} = HTTP::Tiny->new->www_form_urlencode($opt{form});
        $arguments{headers}{'content-type'} = 'application/x-www-form-urlencoded';
    }
    return reply_of(client(%opt)->request($method, $url, \%arguments));
}

# Bytes as they are, for what no decent client sends; returns every byte of the answer.  The request
# should ask for "Connection: close".  With end => 1 the sending side is closed behind the bytes.
sub raw
{
    my ($bytes, %opt) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port(), Timeout => 10)
        or die "no connection to the server: $!";
    local $SIG{PIPE} = 'IGNORE';
    local $SIG{ALRM} = sub { die "the server did not close the connection in time\n" };
    alarm($opt{timeout} // 30);
    print $socket $bytes;
    $socket->flush;
    shutdown $socket, 1 if $opt{end};
    local $/;
    my $answer = <$socket>;
    alarm 0;
    return $answer // '';
}

# --- the operator's command -------------------------------------------------------------------------

# Runs downloadsctl --json with the suites' configuration; returns (exit code, decoded output, text).
sub ctl
{
    my (@arguments) = @_;
    my $program = vars()->{build} . '/downloadsctl';
    my $pid = open my $out, '-|';
    defined $pid or die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec $program, '--json', '-f', conf_file(), @arguments or die "$program: $!\n";
    }
    my $text = do { local $/; <$out> // '' };
    close $out;
    return ($? >> 8, scalar eval { $JSON->decode($text) }, $text);
}

sub ctl_or_die
{
    my ($code, $json, $text) = ctl(@_);
    die "downloadsctl @_ ended with $code: $text\n" if $code != 0 || ref $json ne 'HASH';
    return $json;
}

# A new, approved shop with a key; returns { shop_id, name, domain, key_id, token }.
#   approve => 0 leaves it unapproved (then there is no key), scope => 'read' makes such a key.
sub new_shop
{
    my (%opt) = @_;
    my $name   = $opt{name}   // 'Shop ' . idem('shop');
    my $domain = $opt{domain} // idem('shop') =~ tr/./-/r . '.example';
    my $shop   = ctl_or_die('shop', 'add', $name, $domain);
    $shop = $shop->{shop} if ref $shop->{shop};
    my %made = (shop_id => $shop->{id}, name => $name, domain => $domain);
    return \%made if exists $opt{approve} && !$opt{approve};
    ctl_or_die('shop', 'approve', $made{shop_id});
    my $key = new_key($made{shop_id}, %opt);
    return { %made, %$key };
}

sub new_key
{
    my ($shop_id, %opt) = @_;
    my @scope = $opt{scope} ? ('--scope', $opt{scope}) : ();
    my $answer = ctl_or_die('key', 'create', $shop_id, $opt{key_name} // 'suites', @scope);
    my $key = ref $answer->{key} ? $answer->{key} : $answer;
    return { key_id => $key->{id}, token => $answer->{token} // $key->{token} };
}

# --- waiting ----------------------------------------------------------------------------------------

# Calls $look until it returns something true, and returns that; dies after $seconds.
sub wait_for
{
    my ($look, $seconds, $what) = @_;
    my $until = time + $seconds;
    while (1) {
        my $result = $look->();
        return $result if $result;
        die "waited $seconds s in vain for $what\n" if time >= $until;
        sleep POLL;
    }
}

# The job once it is finished, however it ended.
sub wait_job
{
    my ($shop, $id, $seconds) = @_;
    my $last = '';
    my $job = eval {
        wait_for(sub {
            my $reply = api('GET', "/jobs/$id", key => $shop->{token});
            $last = "$reply->{status} $reply->{body}";
            my $job = $reply->{json} // {};
            $job = $job->{job} if ref $job->{job};
            return ($job->{status} // '') =~ /^(?:succeeded|failed|cancelled)$/ ? $job : undef;
        }, $seconds // 30, "job $id");
    };
    die "$@last answer: $last\n" if !$job;
    return $job;
}

# Every email to this address, oldest first: { path, raw, headers, text, html, urls }.
sub mails
{
    my ($to) = @_;
    my @found;
    for my $path (sort glob mail_dir() . '/new/*') {
        my $raw = slurp($path) // next;
        my $mail = parse_mail($raw);
        next if defined $to && index(lc($mail->{headers}{to} // ''), lc $to) < 0;
        push @found, { %$mail, path => $path };
    }
    return @found;
}

sub wait_mail
{
    my ($to, $seconds) = @_;
    return wait_for(sub { my ($first) = mails($to); $first }, $seconds // 15, "an email to $to");
}

sub parse_part
{
    my ($raw) = @_;
    my ($head, $body) = split /\r?\n\r?\n/, $raw, 2;
    $head =~ s/\r?\n[ \t]+/ /g;
    my %headers = map { /^([^:\s]+):\s*(.*?)\s*$/ ? (lc $1 => $2) : () } split /\r?\n/, $head;
    $body //= '';
    $body = decode_qp($body)
        if lc($headers{'content-transfer-encoding'} // '') eq 'quoted-printable';
    return { headers => \%headers, body => $body };
}

sub parse_mail
{
    my ($raw) = @_;
    my $whole = parse_part($raw);
    my %mail = (raw => $raw, headers => $whole->{headers}, text => $whole->{body}, html => '');
    if (($whole->{headers}{'content-type'} // '') =~ m{^multipart/\S+.*boundary="?([^";]+)}i) {
        my (undef, @parts) = split /(?:^|\r?\n)--\Q$1\E(?:--)?[ \t]*\r?\n/, $whole->{body};
        for (@parts) {
            my $part = parse_part($_);
            my $type = $part->{headers}{'content-type'} // '';
            $mail{text} = $part->{body} if $type =~ m{^text/plain}i;
            $mail{html} = $part->{body} if $type =~ m{^text/html}i;
        }
    }
    $mail{urls} = [ $mail{text} =~ m{(https?://[^\s<>"]+)}g ];
    return \%mail;
}

# --- sources ----------------------------------------------------------------------------------------

# Puts a file where imports can read it, and returns its URL.
sub source
{
    my ($name, $bytes) = @_;
    my $path = logs_dir() . "/source/$name";
    open my $out, '>:raw', "$path.tmp" or die "$path: $!";
    print $out $bytes;
    close $out or die "$path: $!";
    rename "$path.tmp", $path or die "$path: $!";
    return source_url($name);
}

sub source_url
{
    my ($name) = @_;
    return 'http://localhost:' . port() . "/source/$name";
}

# --- many at once -----------------------------------------------------------------------------------

# Runs $work->(0 … $n - 1) in $n processes that begin at the same moment; returns what each returned
# (anything that JSON can carry), in order.  A process that dies gives { died => message }.
sub parallel
{
    my ($n, $work) = @_;
    pipe my $ready_in, my $ready_out or die "pipe: $!";
    pipe my $go_in, my $go_out or die "pipe: $!";
    my (@pids, @results);
    for my $i (0 .. $n - 1) {
        pipe my $in, my $out or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            close $_ for $in, $go_out, $ready_in, @results;
            close $ready_out;
            sysread $go_in, my $byte, 1;    # ends when the parent closes the other side
            my $result = eval { $work->($i) };
            $result = { died => "$@" } if $@;
            print $out $JSON->encode($result);
            close $out;
            # _exit: neither the test's plan nor its END blocks are this process's business.
            require POSIX;
            POSIX::_exit(0);
        }
        close $out;
        push @pids,    $pid;
        push @results, $in;
    }
    # All have been forked and hold what they need when their last copy of this is closed.
    close $ready_out;
    sysread $ready_in, my $nothing, 1;
    close $go_out;
    my @values = map {
        my $text = do { local $/; readline($_) };
        defined $text && length $text ? $JSON->decode($text) : { died => 'no result' }
    } @results;
    waitpid $_, 0 for @pids;
    return @values;
}

# --- the server -------------------------------------------------------------------------------------

sub slurp
{
    my ($path) = @_;
    open my $in, '<:raw', $path or return;
    local $/;
    return scalar <$in>;
}

sub httpd_pid
{
    my $pid = slurp(vars()->{t_pid_file}) // return;
    return $pid =~ /(\d+)/ ? $1 : undef;
}

sub httpd_signal
{
    my ($signal) = @_;
    kill $signal => httpd_pid() or die "httpd is not running\n";
    return;
}

sub error_log_size { return -s error_log() // 0 }

# The error log's text from this byte on.
sub error_log_since
{
    my ($offset) = @_;
    return substr slurp(error_log()) // '', $offset;
}

# Signals httpd and waits until it has taken its configuration up again and answers.
sub restart_by
{
    my ($signal, $what) = @_;
    my $offset = error_log_size();
    httpd_signal($signal);
    wait_for(sub { error_log_since($offset) =~ /resuming normal operations/ }, 30, $what);
    wait_for(sub { api('GET', '/health')->{status} == 200 }, 30, "/health after $what");
    return;
}

sub httpd_graceful { return restart_by('USR1', 'a graceful restart') }
sub httpd_restart  { return restart_by('HUP',  'a restart') }

# httpd's children, as (those that serve requests, the background process): the latter has closed
# the listening socket.
sub children
{
    my $parent = httpd_pid() // return ([], []);
    my $port   = sprintf ':%04X', port();
    my %listening;
    for my $table ('/proc/net/tcp', '/proc/net/tcp6') {
        for (split /\n/, slurp($table) // '') {
            my (undef, $local, undef, $state, @more) = split;
            $listening{"socket:[$more[5]]"} = 1
                if defined $state && $state eq '0A' && $local =~ /$port$/;
        }
    }
    my (@servers, @workers);
    for my $path (glob '/proc/[0-9]*') {
        my $stat = slurp("$path/stat") // next;
        my ($pid, $state, $ppid) = $stat =~ /^(\d+) \(.*\) (\S) (\d+)/s or next;
        next if $ppid != $parent || $state eq 'Z';
        if (grep { $listening{ readlink($_) // '' } } glob "$path/fd/*") {
            push @servers, $pid;
        }
        else {
            push @workers, $pid;
        }
    }
    return (\@servers, \@workers);
}

sub server_pids { my ($servers) = children(); return @$servers }
sub worker_pids { my (undef, $workers) = children(); return @$workers }

# --- the database -----------------------------------------------------------------------------------

sub postgres
{
    my ($command, @more) = @_;
    die "the database is not PostgreSQL\n" if database() ne 'pgsql';
    system("$top/tools/postgres", $command, "$top/t/logs/pg", @more) == 0
        or die "tools/postgres $command failed\n";
    return;
}

sub stop_database  { return postgres('stop', 'immediate') }
sub start_database { return postgres('start') }

# Asks the database behind the server's back; returns rows of columns as text.
# For looking, and for states that no request brings about yet.
sub sql
{
    my ($query) = @_;
    my $params = vars()->{db_params};
    my @command
        = database() eq 'pgsql'
        ? ('psql', $params, '-qAtX', '-F', "\t", '-c', $query)
        : ('sqlite3', '-batch', '-separator', "\t", '-cmd', '.timeout 5000', $params, $query);
    open my $out, '-|', @command or die "$command[0]: $!";
    my @rows = map { chomp; [ split /\t/, $_, -1 ] } <$out>;
    close $out or die "$command[0] failed on: $query\n";
    return @rows;
}

1;
