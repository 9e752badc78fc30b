# A proxy between a client and an object store, which counts the requests, and delays, cuts and
# refuses as a test tells it to. It passes everything else on as it is, with the Host that is
# signed, and takes the store's place:
#
#   my $proxy = MDL::ObjectProxy->new($store);     # an MDL::Swift
#   $proxy->url;  $proxy->key_file;                # as the store's, through the proxy
#   my %count = $proxy->counts;                    # since forget(): (get => 2, part => 7)
#   my @requests = $proxy->requests;               # { kind, method, target, range, status, sent }
#   $proxy->forget;
#   $proxy->rule(get => { status => 503, code => 'SlowDown', times => 2 });
#   $proxy->heal;                                  # no rules
#
# Kinds: get head put delete list; create part complete abort parts uploads (of multipart uploads);
# other. 'any' stands for each. A kind has one rule, its newest:
#
#   times => n         for so many requests; otherwise for all
#   after => n         not for the first so many
#   delay => seconds   before anything else
#   until => path      so, until there is such a file
#   status, code       an answer of its own, with S3's XML; or body => '…' instead of that XML
#   headers => [ … ]   further lines of that answer
#   refuse => 1        closes the connection before the request is read to its end
#   lose => 1          passes the request on, and closes instead of answering
#   cut => n           closes the connection behind so many bytes of the answer's body
#   patience => s      closes it when the client takes nothing for so many seconds
#   rate => n          bytes of the answer's body a second
package MDL::ObjectProxy;

use strict;
use warnings;

use Fcntl qw(:flock);
use File::Path qw(make_path remove_tree);
use IO::Select;
use IO::Socket::IP;
use JSON::PP;
use POSIX ();
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_LINGER SO_SNDBUF TCP_NODELAY);
use Time::HiRes qw(sleep time);

use MDL::Target qw(slurp suite_dir);

use parent -norequire, 'MDL::Swift';
use parent 'MDL::Helper';

use MDL::Swift ();

use constant { PIECE => 65536, SEND_BUFFER => 131072 };

my $count = 0;

sub new
{
    my ($class, $store) = @_;
    my $folder = suite_dir() . "/object-proxy-$$-" . ++$count;
    make_path($folder);
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 256)
        or die "no port for a proxy: $@\n";
    return $class->begin(
        sub { my ($self, $watch) = @_; $self->accept_all($listener, $watch) },
        %$store,
        origin => 'http://127.0.0.1:' . $listener->sockport,
        to     => $store->{origin} =~ s{^http://}{}r,
        folder => $folder,
    );
}

sub stop
{
    my ($self) = @_;
    return MDL::Helper::stop($self);
}

sub DESTROY { return shift->stop }

# --- the test's side ------------------------------------------------------------------------------

# Runs with the rules, which are locked, and kept.
sub with_rules
{
    my ($self, $run) = @_;
    open my $file, '+>>', "$self->{folder}/rules" or die "$self->{folder}: $!\n";
    flock $file, LOCK_EX;
    seek $file, 0, 0;
    my $text = do { local $/; <$file> };
    my $rules = $text ? decode_json($text) : {};
    my $result = $run->($rules);
    truncate $file, 0;
    print $file encode_json($rules);
    close $file or die "$self->{folder}: $!\n";
    return $result;
}

sub rule
{
    my ($self, $kind, $rule) = @_;
    return $self->with_rules(sub { $_[0]{$kind} = $rule });
}

sub heal { return shift->with_rules(sub { %{ $_[0] } = () }) }

# Requests are lines of a file, which only grows: each says what is new of the request of its id.
sub append
{
    my ($self, %line) = @_;
    open my $file, '>>', "$self->{folder}/requests" or die "$self->{folder}: $!\n";
    syswrite $file, encode_json(\%line) . "\n";
    close $file or die "$self->{folder}: $!\n";
    return;
}

sub forget
{
    my ($self) = @_;
    truncate "$self->{folder}/requests", 0;
    return;
}

sub requests
{
    my ($self) = @_;
    open my $file, '<', "$self->{folder}/requests" or return;
    my (%found, @order);
    while (my $text = <$file>) {
        my $line = decode_json($text);
        my $id   = delete $line->{id};
        # What ends after forget() has no beginning.
        if (!$found{$id}) {
            next if !$line->{kind};
            push @order, $found{$id} = {};
        }
        $found{$id}{$_} = $line->{$_} for keys %$line;
    }
    return @order;
}

sub counts
{
    my ($self) = @_;
    my %count;
    $count{ $_->{kind} }++ for $self->requests;
    return %count;
}

# --- the proxy ------------------------------------------------------------------------------------

# Reads with a buffer, from a client or the store; ends when the test does.
sub stream
{
    my ($socket, $watch) = @_;
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
    return { socket => $socket, watch => $watch, bytes => '' };
}

sub fill
{
    my ($stream) = @_;
    my $select = IO::Select->new(@$stream{qw(socket watch)});
    for my $ready ($select->can_read) {
        POSIX::_exit(0) if $ready == $stream->{watch};
    }
    return sysread $stream->{socket}, $stream->{bytes}, PIECE, length $stream->{bytes};
}

sub head
{
    my ($stream) = @_;
    while ($stream->{bytes} !~ /\r\n\r\n/) {
        fill($stream) or return;
    }
    $stream->{bytes} =~ s/\A(.*?\r\n\r\n)//s;
    return $1;
}

# Up to so many bytes that have arrived; '' at the end.
sub some
{
    my ($stream, $most) = @_;
    fill($stream) if $stream->{bytes} eq '';
    return substr $stream->{bytes}, 0, $most < PIECE ? $most : PIECE, '';
}

sub line
{
    my ($stream) = @_;
    while ($stream->{bytes} !~ /\n/) {
        fill($stream) or return;
    }
    $stream->{bytes} =~ s/\A(.*?\n)//s;
    return $1;
}

sub write_all
{
    my ($socket, $bytes, $patience) = @_;
    my $select = IO::Select->new($socket);
    for (my $done = 0; $done < length $bytes;) {
        $select->can_write($patience) or return 0;
        $done += syswrite($socket, $bytes, length($bytes) - $done, $done) // return 0;
    }
    return 1;
}

# Passes so many bytes on; false if either side has gone.
sub pass
{
    my ($from, $to, $length, %limits) = @_;
    my $began = time;
    for (my $done = 0; $done < $length;) {
        my $bytes = some($from, $length - $done);
        return 0 if $bytes eq '' || !write_all($to->{socket}, $bytes, $limits{patience});
        $done += length $bytes;
        ${ $limits{sent} } += length $bytes if $limits{sent};
        if ($limits{rate}) {
            my $early = $done / $limits{rate} - (time - $began);
            sleep $early if $early > 0;
        }
    }
    return 1;
}

sub pass_chunks
{
    my ($from, $to, %limits) = @_;
    while (defined(my $line = line($from))) {
        write_all($to->{socket}, $line) or return 0;
        my $length = hex $line =~ s/[;\s].*//sr;
        if (!$length) {
            my $end = line($from) // return 0;
            return write_all($to->{socket}, $end);
        }
        pass($from, $to, $length + 2, %limits) or return 0;
    }
    return 0;
}

sub kind_of
{
    my ($method, $target) = @_;
    my ($path, $query) = split /\?/, $target, 2;
    $query //= '';
    my $bucket = $path !~ m{^/[^/]+/.};
    return 'part'     if $query =~ /partNumber=/;
    return 'create'   if $method eq 'POST' && $query =~ /^uploads\b/;
    return 'complete' if $method eq 'POST' && $query =~ /uploadId=/;
    return 'abort'    if $method eq 'DELETE' && $query =~ /uploadId=/;
    return 'parts'    if $method eq 'GET' && $query =~ /uploadId=/;
    return 'uploads'  if $method eq 'GET' && $query =~ /\buploads\b/;
    return 'list'     if $method eq 'GET' && $bucket;
    return $bucket ? 'other' : lc $method;
}

my $noted = 0;

# Notes a request; returns its id and the rule that is due for it, or none.
sub note
{
    my ($self, $method, $target, $range) = @_;
    my $kind = kind_of($method, $target);
    my $id   = "$$-" . ++$noted;
    $self->append(id => $id, kind => $kind, method => $method, target => $target,
        range => $range);
    my $rule = $self->with_rules(
        sub {
            my ($rules) = @_;
            my $rule = $rules->{$kind} // $rules->{any};
            my $due = $rule && !($rule->{after} && $rule->{after}-- > 0)
                && !(defined $rule->{times} && $rule->{times}-- <= 0);
            return $due ? +{%$rule} : {};
        }
    );
    return ($id, $rule);
}

# Closes a connection by a reset, so that nothing that is on its way still arrives.
sub reset_connection
{
    my ($socket) = @_;
    setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0;
    close $socket;
    return;
}

sub serve
{
    my ($self, $socket, $watch) = @_;
    setsockopt $socket, SOL_SOCKET, SO_SNDBUF, pack 'l', SEND_BUFFER;
    my $client = stream($socket, $watch);
    my $store;
    while (defined(my $head = head($client))) {
        my ($method, $target) = $head =~ m{^(\S+) (\S+) };
        my ($range)  = $head =~ /^Range:\s*bytes=(\S+?)\r$/mi;
        my ($length) = $head =~ /^Content-Length:\s*(\d+)/mi;
        my ($id, $rule) = $self->note($method, $target, $range);
        sleep $rule->{delay} if $rule->{delay};
        while (defined $rule->{until} && !-e $rule->{until}) {
            return if IO::Select->new($watch)->can_read(0.02);
        }
        return reset_connection($socket) if $rule->{refuse};
        if ($rule->{status}) {
            discard($client, $length // 0) or return;
            $self->append(id => $id, status => $rule->{status});
            answer($socket, $method, $rule) or return;
            next;
        }
        # A store may have closed its end of a connection that had nothing to do for a while.
        $store = undef if $store && IO::Select->new($store->{socket})->can_read(0);
        $store //= stream(IO::Socket::IP->new($self->{to}) // return, $watch);
        write_all($store->{socket}, $head) && pass($client, $store, $length // 0) or return;
        $self->pass_answer($store, $client, $method, $id, $rule) or return;
    }
    return;
}

sub discard
{
    my ($client, $length) = @_;
    for (my $done = 0; $done < $length;) {
        my $bytes = some($client, $length - $done);
        return 0 if $bytes eq '';
        $done += length $bytes;
    }
    return 1;
}

sub answer
{
    my ($socket, $method, $rule) = @_;
    my $code = $rule->{code} // '';
    my $body = $rule->{body}
        // qq(<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>$code</Code></Error>);
    my $text = join "\r\n", "HTTP/1.1 $rule->{status} Rule", 'Content-Length: ' . length $body,
        'Date: ' . POSIX::strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime),
        @{ $rule->{headers} // [] }, '', $method eq 'HEAD' ? '' : $body;
    return write_all($socket, $text);
}

# Passes an answer on; false if that was the connection's last.
sub pass_answer
{
    my ($self, $store, $client, $method, $id, $rule) = @_;
    my $head;
    do {
        $head = head($store) // return 0;
    } while ($head =~ m{^HTTP/1\.1 1});
    my ($status) = $head =~ m{^\S+ (\d+)};
    my ($length) = $head =~ /^Content-Length:\s*(\d+)/mi;
    my $chunked = $head =~ /^Transfer-Encoding:\s*chunked/mi;
    my $sent    = 0;
    $self->append(id => $id, status => $status);
    if ($rule->{lose}) {
        reset_connection($client->{socket});
        return 0;
    }
    write_all($client->{socket}, $head) or return 0;
    # Swift sends the end of a body that an answer to HEAD does not have.
    return !$chunked if $method eq 'HEAD';
    return 1 if $status == 204 || $status == 304;
    my %limits = (patience => $rule->{patience}, rate => $rule->{rate}, sent => \$sent);
    my $whole = 1;
    if ($chunked) {
        $whole = pass_chunks($store, $client, %limits);
    }
    else {
        my $end = $length // 1e18;
        $end = $rule->{cut} if defined $rule->{cut} && $rule->{cut} < $end;
        $whole = pass($store, $client, $end, %limits) && defined $length && $end == $length;
    }
    $self->append(id => $id, sent => $sent);
    return $whole;
}

1;
