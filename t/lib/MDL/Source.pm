# A server to import from, which answers as a test tells it to.
#
#   my $source = MDL::Source->new;
#   my $url = $source->offer('cut.bin', { size => 1 << 20, etag => '"a"', cut => 1000 }, {});
#   …
#   my @requests = $source->requests('cut.bin');   # { number, range, if_range, sent, ended (when) }
#
# Each request gets the next answer, and the last one serves all later requests.  An answer inherits
# what it does not set from the one before it:
#   status, headers => [ … ]    200, and further header lines
#   protocol                    HTTP/1.1
#   size, version               of the body; each version has other bytes
#   body                        bytes to send instead
#   etag                        with its quotes
#   ranges => 0                 ignores Range
#   length => 'none'|'chunked'|number    instead of the true Content-Length
#   range_total => n            the size that the Content-Range of a 206 tells, not the true one
#   cut => n                    closes the connection after so many bytes of the body
#   hold => n                   pauses after so many bytes until release(), or the client leaves
#   rate => n                   bytes a second
#
# The bytes of a body depend on their offset and on the version.
package MDL::Source;

use strict;
use warnings;

use Digest::SHA;
use Fcntl qw(:flock);
use File::Path qw(make_path remove_tree);
use IO::Select;
use IO::Socket::IP;
use JSON::PP;
use POSIX ();
use Socket qw(SOL_SOCKET SO_SNDBUF);
use Time::HiRes qw(sleep time);

use MDL::Test ();

use parent 'MDL::Helper';

use constant { BLOCK => 4096, PIECE => 65536, SEND_BUFFER => 131072 };

my $count = 0;

sub new
{
    my ($class, %opt) = @_;
    my $folder = MDL::Test::suite_dir() . "/sources-$$-" . ++$count;
    make_path($folder);
    my $listener = IO::Socket::IP->new(
        LocalHost => $opt{address} // '127.0.0.1',
        LocalPort => 0,
        Listen    => 128,
    ) or die "no port for a source: $@\n";
    # Its children watch the pipe, too.
    return $class->begin(sub { my ($self, $watch) = @_; $self->accept_all($listener, $watch) },
        folder => $folder, port => $listener->sockport);
}

sub stop
{
    my ($self) = @_;
    remove_tree($self->{folder}) if $self->SUPER::stop;
    return;
}

# --- the test's side ------------------------------------------------------------------------------

sub offer
{
    my ($self, $name, @answers) = @_;
    my %all;
    my @whole = map { %all = (%all, %$_); +{%all} } @answers;
    my $path = "$self->{folder}/$name.answers";
    open my $out, '>', "$path.new" or die "$path: $!";
    print $out encode_json(\@whole);
    close $out or die "$path: $!";
    rename "$path.new", $path or die "$path: $!";
    return $self->url($name);
}

sub url
{
    my ($self, $name) = @_;
    return "http://localhost:$self->{port}/$name";
}

# Lets held answers go on.
sub release
{
    my ($self, $name) = @_;
    open my $out, '>', "$self->{folder}/$name.released" or die "$name: $!";
    close $out;
    return;
}

# The requests for this name, oldest first.
sub requests
{
    my ($self, $name) = @_;
    open my $in, '<', "$self->{folder}/$name.requests" or return;
    my %requests;
    while (my $text = <$in>) {
        last if $text !~ /\n\z/;    # still being written
        my $line = decode_json($text);
        my $request = $requests{ $line->{number} } //= {};
        $requests{ $line->{number} } = { %$request, %$line };
    }
    return map { $requests{$_} } sort { $a <=> $b } keys %requests;
}

# The total of body bytes sent for this name, once no transfer is under way.
sub sent
{
    my ($self, $name) = @_;
    my @requests;
    MDL::Test::wait_for(
        sub {
            @requests = $self->requests($name);
            return !grep { !$_->{ended} } @requests;
        },
        60, "the end of the transfers of $name"
    );
    my $sum = 0;
    $sum += $_->{sent} for @requests;
    return $sum;
}

# --- the bytes ------------------------------------------------------------------------------------

sub bytes
{
    my ($version, $offset, $length) = @_;
    my $first = int($offset / BLOCK);
    my $last  = int(($offset + $length - 1) / BLOCK);
    my $fill  = '.' x (BLOCK - 32);
    my $text  = join '', map { sprintf '%-15.15s%016d%s' . "\n", $version, $_,
        $fill } $first .. $last;
    return substr $text, $offset - $first * BLOCK, $length;
}

# The SHA-256 of a body, by openssl, because Perl is slow with large ones.
sub sha256
{
    my ($size, $version) = @_;
    my $path = MDL::Test::suite_dir() . "/sha256-$$";
    open my $pipe, '|-', "openssl dgst -sha256 -r >'$path'" or die "openssl: $!";
    binmode $pipe;
    for (my $offset = 0; $offset < $size; $offset += 16 * PIECE) {
        my $left = $size - $offset;
        print $pipe bytes($version // '1', $offset, $left < 16 * PIECE ? $left : 16 * PIECE);
    }
    close $pipe or die "openssl failed\n";
    open my $in, '<', $path or die "$path: $!";
    my ($sum) = <$in> =~ /^([0-9a-f]{64})/;
    unlink $path;
    return $sum;
}

# --- the server -----------------------------------------------------------------------------------

sub note
{
    my ($self, $name, $line) = @_;
    open my $out, '+>>', "$self->{folder}/$name.requests" or die "$name: $!";
    flock $out, LOCK_EX;
    if (!$line->{number}) {
        seek $out, 0, 0;
        $line->{number} = 1 + grep { /"path"/ } <$out>;
    }
    syswrite $out, encode_json($line) . "\n";
    close $out;
    return $line->{number};
}

# Waits $seconds; returns false as soon as the client or the test has ended.
sub both_there
{
    my ($socket, $watch, $seconds) = @_;
    return !IO::Select->new($socket, $watch)->can_read($seconds);
}

sub serve
{
    my ($self, $socket, $watch) = @_;
    setsockopt $socket, SOL_SOCKET, SO_SNDBUF, pack 'l', SEND_BUFFER;
    my $head = '';
    while ($head !~ /\r\n\r\n/) {
        sysread $socket, $head, 4096, length $head or return;
    }
    my ($path)     = $head =~ m{^GET /(\S*)} or return;
    my ($range)    = $head =~ /^Range:\s*bytes=(\d+)-\r$/mi;
    my ($if_range) = $head =~ /^If-Range:\s*(.*?)\r$/mi;
    my ($name)     = $path =~ m{^([^?/]+)};
    my $number = $self->note($name, { path => $path, range => $range, if_range => $if_range });
    open my $in, '<', "$self->{folder}/$name.answers" or return;
    my $answers = decode_json(do { local $/; <$in> });
    my $answer = $answers->[$number - 1] // $answers->[-1];
    my $sent = $self->answer($socket, $watch, $name, $answer, $range, $if_range);
    $self->note($name, { number => $number, sent => $sent, ended => time });
    return;
}

sub answer
{
    my ($self, $socket, $watch, $name, $answer, $range, $if_range) = @_;
    my $status = $answer->{status} // 200;
    my $size   = defined $answer->{body} ? length $answer->{body} : $answer->{size} // 0;
    my $etag   = $answer->{etag};
    my $length = $answer->{length} // $size;
    my @headers = @{ $answer->{headers} // [] };
    my $offset = 0;

    push @headers, "ETag: $etag" if defined $etag;
    if (   defined $range && $range < $size && $status == 200 && ($answer->{ranges} // 1)
        && (!defined $if_range || $if_range eq ($etag // ''))) {
        $offset = $range;
        $status = 206;
        $length -= $offset if $length =~ /^\d+$/;
        push @headers, sprintf 'Content-Range: bytes %d-%d/%d', $offset, $size - 1,
            $answer->{range_total} // $size;
    }
    push @headers, "Content-Length: $length" if $length =~ /^\d+$/;
    push @headers, 'Transfer-Encoding: chunked' if $length eq 'chunked';
    my $protocol = $answer->{protocol} // 'HTTP/1.1';
    my $text = join "\r\n", "$protocol $status Answer", 'Connection: close', @headers, '', '';
    syswrite $socket, $text or return 0;

    my $began = time;
    my $sent  = 0;
    my $end   = $size - $offset;
    $end = $answer->{cut} if defined $answer->{cut} && $answer->{cut} < $end;
    while ($sent < $end) {
        my $until = $end;
        if (defined $answer->{hold} && !-e "$self->{folder}/$name.released") {
            $until = $answer->{hold} if $answer->{hold} < $until;
            if ($sent >= $until) {
                both_there($socket, $watch, 0.05) or return $sent;
                next;
            }
        }
        my $now = $until - $sent < PIECE ? $until - $sent : PIECE;
        my $piece
            = defined $answer->{body}
            ? substr($answer->{body}, $offset + $sent, $now)
            : bytes($answer->{version} // '1', $offset + $sent, $now);
        write_all($socket, $length eq 'chunked' ? sprintf("%x\r\n%s\r\n", $now, $piece) : $piece)
            or return $sent;
        $sent += $now;
        if ($answer->{rate}) {
            my $early = $sent / $answer->{rate} - (time - $began);
            $early <= 0 || both_there($socket, $watch, $early) or return $sent;
        }
    }
    syswrite $socket, "0\r\n\r\n" if $length eq 'chunked' && $end == $size - $offset;
    return $sent;
}

sub write_all
{
    my ($socket, $bytes) = @_;
    my $done = 0;
    while ($done < length $bytes) {
        $done += syswrite($socket, $bytes, length($bytes) - $done, $done) // return 0;
    }
    return 1;
}

1;
