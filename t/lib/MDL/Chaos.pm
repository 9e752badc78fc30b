# Load that goes on whatever is done to the servers, for the suites that do much to them, and what
# the mail server tells of it afterwards.
#
#   my $chaos = MDL::Chaos->new(seed => 4711, ports => sub { … }, shop => $shop, source => $source);
#   $chaos->load(0.1, sub { $chaos->import_one($_[0]) }); # each 0.1 s or so, with another name
#   …
#   my @lines = $chaos->end;    # what the calls returned; refused => why if there was no answer
#   my $emails = copies($mail, [ from, until ], …);
package MDL::Chaos;

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Exporter qw(import);
use HTTP::Tiny;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use Time::HiRes qw(sleep time);

use MDL::Helper;
use MDL::Test;

our @EXPORT_OK = qw(copies jobs_end table);

use constant { KB => 1024, MB => 1024 * 1024, PATIENCE => 5 };
use constant GIVE_UP => 600;    # seconds: outages in a row, and a lease of a process that died

my $JSON = JSON::PP->new->canonical;

sub new
{
    my ($class, %members) = @_;
    return bless { %members, loads => [], turn => $$ }, $class;
}

sub base
{
    my ($self) = @_;
    my @ports = $self->{ports}->();
    return 'http://127.0.0.1:' . $ports[ $self->{turn}++ % @ports ];
}

# A write, with one Idempotency-Key for all its tries.
sub write_until
{
    my ($self, $status, $path, $body) = @_;
    my $last = '';
    my %headers = (authorization => "Bearer $self->{shop}{token}",
        'content-type' => 'application/json', 'idempotency-key' => idem('chaos'));
    for (my $until = time + GIVE_UP; time < $until;) {
        my $answer = HTTP::Tiny->new(timeout => PATIENCE, max_redirect => 0)
            ->post($self->base . "/api/v1$path",
            { headers => \%headers, content => encode_json($body) });
        return decode_json($answer->{content}) if $answer->{status} =~ /^$status$/;
        return { refused => "$answer->{status} $answer->{content}" }
            if $answer->{status} !~ /^(?:599|503|409|429)$/;
        $last = "$path $answer->{status} $answer->{content}";
        sleep 0.1;
    }
    return { refused => "no answer: $last" };
}

sub import_one
{
    my ($self, $name) = @_;
    my $size  = 20 * KB + int rand 200 * KB;
    my $url   = $self->{source}->offer($name,
        { size => $size, version => $name, etag => qq("$name"), rate => 400 * KB });
    my $reply = $self->write_until(202, '/assets', { source_url => $url });
    return { import => $name, size => $size, job => $reply->{job}{id}, asset => $reply->{asset}{id},
        refused => $reply->{refused} };
}

# In parts, with an object store.
sub import_large
{
    my ($self, $name) = @_;
    my $size  = 17 * 1024 * KB + int rand 4096 * KB;
    my $url   = $self->{source}->offer($name,
        { size => $size, version => $name, etag => qq("$name"), rate => 8192 * KB });
    my $reply = $self->write_until(202, '/assets', { source_url => $url });
    return { import => $name, size => $size, job => $reply->{job}{id}, asset => $reply->{asset}{id},
        refused => $reply->{refused} };
}

sub email_one
{
    my ($self, $name) = @_;
    my $reply = $self->write_until(201, "/orders/$name/assignments", {
        storefront_customer_id => '77',
        items => [ { storefront_product_id => $self->{shop}{product} } ],
        send_email => JSON::PP::true, customer => { email => "$name\@buyer.example" },
    });
    return { email => "$name\@buyer.example", refused => $reply->{refused} };
}

# An order of a product of one file, which its customer downloads in as many parts as it takes, at
# 2 MB/s at most. Returns whether the bytes are right, how often they were cut, and odd statuses.
sub download_one
{
    my ($self, $name, $product, $file) = @_;
    my $order = $self->write_until(201, "/orders/$name/assignments",
        { storefront_customer_id => '77', items => [ { storefront_product_id => $product } ] });
    return { download => $name, refused => $order->{refused} } if $order->{refused};
    $order = $order->{order} // $order;
    my ($page) = $order->{download_page_url} =~ m{^https?://[^/]+(/.+)$};
    my ($link, $bytes, $cuts, @odd) = (undef, '', 0);
    for (my $until = time + GIVE_UP; time < $until;) {
        last if length $bytes >= $file->{size};
        if (!$link) {
            my $answer = HTTP::Tiny->new(timeout => PATIENCE, max_redirect => 0)
                ->post_form($self->base . $page,
                { file => "$order->{assignments}[0]{id}-$file->{id}" });
            ($link) = ($answer->{headers}{location} // '') =~ m{^https?://[^/]+(/.+)$};
            push @odd, $answer->{status} if $answer->{status} !~ /^(?:303|503|429|599)$/;
            sleep 0.1 if !$link;
            next;
        }
        my ($status, $more) = $self->read_part($link, length $bytes);
        $bytes .= $more;
        $cuts++ if length $bytes < $file->{size};
        push @odd, $status if $status !~ /^(?:200|206|503|429|599)$/;
        sleep 0.2 if $more eq '';
    }
    return { download => $name, cuts => $cuts, whole => sha256_hex($bytes) eq $file->{sha256}
        ? 1 : 0, odd => "@odd" };
}

# Reads from a byte on; returns (status, bytes).
sub read_part
{
    my ($self, $path, $from) = @_;
    my ($port) = $self->base =~ /(\d+)$/;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port,
        Timeout => PATIENCE) or return (599, '');
    my ($in, $began) = ('', time);
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost:$port\r\nConnection: close\r\n"
        . ($from ? "Range: bytes=$from-\r\n" : '') . "\r\n";
    while (IO::Select->new($socket)->can_read(PATIENCE)) {
        sysread $socket, $in, 65_536, length $in or last;
        my $early = length($in) / (2 * MB) - (time - $began);
        sleep $early if $early > 0;
    }
    my ($head, $body) = split /\r\n\r\n/, $in, 2;
    my ($status) = ($head // '') =~ m{^HTTP/1.1 (\d+)};
    return ($status // 599, $status && $status =~ /^20[06]$/ ? $body // '' : '');
}

# An upload in two pieces, which the background process reads.
sub upload_one
{
    my ($self, $name) = @_;
    my $bytes = "$name " x (2 * KB + int rand 20 * KB);
    my $upload = $self->write_until(201, '/assets/uploads',
        { filename => $name, size => length $bytes });
    return { upload => $name, refused => $upload->{refused} } if $upload->{refused};
    my ($path) = $upload->{upload_url} =~ m{^https?://[^/]+(/.+)$};
    my $offset = 0;
    for (my $until = time + GIVE_UP; time < $until;) {
        last if $offset == length $bytes;
        my $half   = int(length($bytes) / 2);
        my $answer = $self->tus($path,
            PATCH => substr($bytes, $offset, ($offset < $half ? $half : length $bytes) - $offset),
            'Upload-Offset' => $offset, 'Content-Type' => 'application/offset+octet-stream');
        my $reply = $answer->{status};
        $answer = $self->tus($path, 'HEAD') if $reply != 204;
        $offset = $answer->{headers}{'upload-offset'} // $offset;
        # For longer while the process that wrote is dead or silent, or the object store away.
        sleep($reply =~ /^(?:423|503)$/ ? 0.5 : 0.1) if $reply ne '204';
    }
    my $reply = $self->write_until('20[12]', "/assets/uploads/$upload->{id}/complete", {});
    return { upload => $name, job => $reply->{job}{id}, asset => $reply->{asset}{id},
        sha256 => sha256_hex($bytes), refused => $reply->{refused} };
}

sub tus
{
    my ($self, $path, $method, $body, %headers) = @_;
    return HTTP::Tiny->new(timeout => PATIENCE)->request($method, $self->base . $path,
        { headers => { 'Tus-Resumable' => '1.0.0', %headers },
            defined $body ? (content => $body) : () });
}

sub load
{
    my ($self, $pause, $one) = @_;
    my $number = @{ $self->{loads} };
    push @{ $self->{loads} }, MDL::Helper->begin(sub {
        my ($helper, $watch) = @_;
        srand($self->{seed} + $number);
        open my $out, '>', $helper->{path} or die "$helper->{path}: $!\n";
        for (my $n = 1; !IO::Select->new($watch)->can_read($pause * (0.5 + rand)); $n++) {
            my $line = eval { $one->("$$" . sprintf '%05d', $n) } // { refused => "died: $@" };
            syswrite $out, $JSON->encode($line) . "\n";
        }
    }, path => MDL::Test::suite_dir() . "/chaos-$number");
    return;
}

sub end
{
    my ($self) = @_;
    my @loads = splice @{ $self->{loads} };
    $_->stop for @loads;
    return map { decode_json($_) } map { split /\n/, MDL::Test::slurp($_->{path}) } @loads;
}

# What a mail server (MDL::MailServer) has got: by address the connections that carried an email to
# it, as { open, until, cut, again: how many of its emails came again later }, and of all those that
# have more of these than one if it was cut, and one for each interval [ from, until ] in which it
# was open.
sub copies
{
    my ($mail, @intervals) = @_;
    my (%connection, %copies);
    for ($mail->lines) {
        my ($when, $what, $id, $to) = @$_;
        my $c = $connection{$id} //= { open => $when, until => time, again => 0 };
        $c->{quit}  = 1 if $what eq 'quit';
        $c->{cut}   = !$c->{quit} if $what eq 'closed';
        $c->{until} = $when if $what eq 'closed';
        push @{ $copies{$to} }, $c if $what eq 'taken';
    }
    for my $carried (values %copies) {
        $_->{again}++ for @$carried[ 0 .. $#$carried - 1 ];
    }
    my @connections = values %connection;
    my @more = grep {
        my $c = $_;
        $c->{again} > ($c->{cut} ? 1 : 0) + grep { $_->[0] < $c->{until} && $_->[1] > $c->{open} }
            @intervals;
    } @connections;
    my $extra = 0;
    $extra += @$_ - 1 for values %copies;
    return { by_address => \%copies, connections => \@connections,
        cut => scalar(grep { $_->{cut} } @connections),
        more => [ map { $JSON->encode($_) } @more ], extra => $extra };
}

# Waits for all jobs, not for what failed for a moment; returns those that were given up, by their
# ids: the background process died three times during them, and the contract lets them fail.
sub jobs_end
{
    wait_for(sub {
        sql("UPDATE job SET due_at = 1 WHERE status = 'queued'");
        my ($row) = sql("SELECT count(*) FROM job WHERE status IN ('queued', 'running')");
        return $row->[0] == 0;
    }, 300, 'the end of all jobs');
    return table("SELECT id FROM job WHERE status = 'failed' AND error_code = 'internal_error' "
        . "AND interruptions >= 3");
}

# The rows of a query by their first column.
sub table { my ($query) = @_; return map { $_->[0] => $_ } sql($query) }

1;
