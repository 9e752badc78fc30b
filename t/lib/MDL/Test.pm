# What all suites share: requests to the API, shops and keys made by downloadsctl, waiting for jobs,
# sources of imports, and work in many processes at once.  It also exports what MDL::Target (the
# current server), MDL::Httpd (its processes), MDL::Database and MDL::Maildir export.
#
#   use MDL::Test;
#   use Test::More;
#
#   my $shop  = new_shop();
#   my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url });
#   is($reply->{status}, 202, 'an import is accepted') or diag(explain($reply));
#
# Every wait has a time limit, and its failure says what it waited for.
package MDL::Test;

use strict;
use warnings;

use Exporter qw(import);
use HTTP::Tiny;
use IO::Handle;
use IO::Socket::INET;
use JSON::PP ();
use Cpanel::JSON::XS ();
use Time::HiRes qw(time);

use MDL::Database;
use MDL::Httpd;
use MDL::Maildir;
use MDL::Target qw(:DEFAULT slurp suite_dir vars);

our @EXPORT = (
    qw(api api_at_once page raw parse_reply idem new_shop ctl wait_job source source_url parallel),
    @MDL::Target::EXPORT, @MDL::Httpd::EXPORT, @MDL::Database::EXPORT, @MDL::Maildir::EXPORT
);

my $JSON   = JSON::PP->new->utf8->canonical->allow_nonref;    # keeps a printed number a number
my $READER = Cpanel::JSON::XS->new->utf8->allow_nonref;    # reads answers ten times as fast
my $unique = 0;

# --- requests ------------------------------------------------------------------------------------

# An Idempotency-Key that no other request of this run has.
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
        timeout      => $opt{timeout} // 60,
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
    # HTTP::Tiny reports its own failures (no connection, timeout) as 599 with the reason in the
    # body.
    if (($answer->{headers}{'content-type'} // '') =~ m{^application/(?:\w+\+)?json\b}) {
        $reply->{json} = eval { $READER->decode($reply->{body}) };
    }
    return $reply;
}

# A request to the API; returns { status, headers (lower-case names), body, json }.
#   key     => token, for Authorization
#   json    => value to send, or body => bytes to send
#   idem    => the Idempotency-Key; by default a write gets a new one, undef sends none
#   headers => { … }, which replace those above; undef removes one
#   timeout => seconds (60)
#   patient => 1: repeats the request while the answer is one that tells a client to (contract,
#              sections 3 and 4)
sub api
{
    my ($method, $path, %opt) = @_;
    my ($headers, $body) = headers_and_body($method, %opt);
    my %arguments = (headers => $headers);
    $arguments{content} = $body if defined $body;
    return asked($method, base_url() . $path, \%arguments, %opt);
}

sub asked
{
    my ($method, $url, $arguments, %opt) = @_;
    my $until = time + 120;
    while (1) {
        my $reply = reply_of(client(%opt)->request($method, $url, $arguments));
        return $reply if !$opt{patient} || time > $until
            || $reply->{status} !~ /^(?:408|503)$/
            && $reply->{body} !~ /"idempotency_conflict_in_progress"/;
        sleep $reply->{headers}{'retry-after'} // 1;
    }
}

sub headers_and_body
{
    my ($method, %opt) = @_;
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
    return (\%headers, $body);
}

# Many requests to the API at once, each [ method, path, options ] with a body and on its own
# connection. It sends all requests without their last byte first, then the last bytes; then it
# calls $complete with the connections. Returns the replies in order.
sub api_at_once
{
    my ($complete, @requests) = @_;
    my @bytes = map {
        my ($method, $path, %opt) = @$_;
        my ($headers, $body) = headers_and_body($method, %opt);
        my %all = (host => 'localhost', connection => 'close', %$headers,
            'content-length' => length $body);
        join "\r\n", "$method /api/v1$path HTTP/1.1", (map { "$_: $all{$_}" } sort keys %all),
            '', $body;
    } @requests;
    my @sockets = map { connection() } @bytes;
    print { $sockets[$_] } substr $bytes[$_], 0, -1 for 0 .. $#bytes;
    print { $sockets[$_] } substr $bytes[$_], -1 for 0 .. $#bytes;
    $complete->(@sockets);
    return map { parse_reply(read_all($_, 60)) } @sockets;
}

# Parses the bytes of an answer; returns it as api() would.
sub parse_reply
{
    my ($bytes) = @_;
    my ($head, $body) = split /\r\n\r\n/, $bytes, 2;
    my ($first, @lines) = split /\r\n/, $head // '';
    my ($status) = ($first // '') =~ m{^HTTP/1\.1 (\d{3})\b};
    my %headers = map { /^([^:]+):[ \t]*(.*)\z/ ? (lc $1 => $2) : () } @lines;
    return reply_of({ status => $status // 0, headers => \%headers, content => $body // '' });
}

# A customer's request to any URL of the server.  form => { … } is sent as a form, body => bytes as
# they are.  An answer of more than max_size bytes gets the status 599.  patient is as of api().
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
    return asked($method, $url, \%arguments, %opt);
}

# Sends bytes that no proper client would send; returns every byte of the answer. The request should
# have "Connection: close". end => 1 closes the sending side after the bytes.
sub raw
{
    my ($bytes, %opt) = @_;
    my $socket = connection();
    local $SIG{PIPE} = 'IGNORE';
    print $socket $bytes;
    $socket->flush;
    shutdown $socket, 1 if $opt{end};
    return read_all($socket, $opt{timeout} // 60);
}

sub connection
{
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port(), Timeout => 60)
        // die "no connection to the server: $!\n";
}

sub read_all
{
    my ($socket, $seconds) = @_;
    local $SIG{ALRM} = sub { die "the server did not close the connection in time\n" };
    alarm $seconds;
    local $/;
    my $answer = <$socket>;
    alarm 0;
    return $answer // '';
}

# --- the operator's command ----------------------------------------------------------------------

# Runs downloadsctl --json with the server's configuration; returns (exit code, decoded output,
# output).
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
    return ($? >> 8, scalar eval { $READER->decode($text) }, $text);
}

sub ctl_or_die
{
    my ($code, $json, $text) = ctl(@_);
    die "downloadsctl @_ ended with $code: $text\n" if $code != 0 || ref $json ne 'HASH';
    return $json;
}

# Makes an approved shop with a key; returns { shop_id, name, domain, key_id, token }.
#   approve => 0 leaves the shop unapproved and without a key; scope => 'read' makes a key to read.
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

# --- jobs ----------------------------------------------------------------------------------------

# Waits until the job has succeeded, failed or been cancelled, and returns it.
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
        }, $seconds // 60, "job $id");
    };
    die "$@last answer: $last\n" if !$job;
    return $job;
}

# --- sources -------------------------------------------------------------------------------------

# Puts a file where imports can fetch it, and returns its URL.
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

# --- many at once --------------------------------------------------------------------------------

# Runs $work->(0 … $n - 1) in $n processes that begin at the same moment; returns the result of each
# (any JSON value), in order.  The result of a process that dies is { died => message }.
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
            # _exit, so that this process prints no plan and runs no END block.
            require POSIX;
            POSIX::_exit(0);
        }
        close $out;
        push @pids,    $pid;
        push @results, $in;
    }
    # The read ends once every process has closed its copy, and so is ready.
    close $ready_out;
    sysread $ready_in, my $nothing, 1;
    close $go_out;
    my @values = map {
        my $text = do { local $/; readline($_) };
        defined $text && length $text ? $READER->decode($text) : { died => 'no result' }
    } @results;
    waitpid $_, 0 for @pids;
    return @values;
}

1;
