# Direct uploads: a client begins one by the API and writes the bytes to its upload URL.
#
#   my $upload = begin_upload($shop, filename => 'a.bin', size => 10);
#   put_bytes($upload, '0123456789');
#   my $reply = complete_upload($shop, $upload);
package MDL::Upload;

use strict;
use warnings;

use Exporter qw(import);
use IO::Socket::INET;
use MDL::Test;

our @EXPORT = qw(answer_on begin_upload begin_write complete_upload get_upload ask_upload put_bytes
    tus patch_bytes offset_of in_objects stored_bytes is_being_written);

# Called with the method, the headers and the answer of each request to an upload URL.
our $watch = sub { };

# Begins an upload and returns it as the API shows it.
sub begin_upload
{
    my ($shop, %members) = @_;
    my $reply = api('POST', '/assets/uploads', key => $shop->{token}, patient => 1,
        json => { filename => 'upload.bin', %members });
    die "the upload was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} != 201;
    return $reply->{json};
}

sub get_upload
{
    my ($shop, $upload) = @_;
    return api('GET', "/assets/uploads/$upload->{id}", key => $shop->{token})->{json};
}

sub complete_upload
{
    my ($shop, $upload, %with) = @_;
    return api('POST', "/assets/uploads/$upload->{id}/complete", key => $shop->{token}, %with);
}

# Sends a request to the upload URL; a header that is undef is left out.
sub ask_upload
{
    my ($method, $upload, $body, %headers) = @_;
    delete $headers{$_} for grep { !defined $headers{$_} } keys %headers;
    my $reply = page($method, $upload->{upload_url}, body => $body, headers => \%headers);
    $watch->($method, \%headers, $reply);
    return $reply;
}

sub put_bytes
{
    my ($upload, $bytes, %headers) = @_;
    return ask_upload('PUT', $upload, $bytes, %headers);
}

# A request as tus's clients send it.
sub tus
{
    my ($method, $upload, $body, %headers) = @_;
    return ask_upload($method, $upload, $body, 'Tus-Resumable' => '1.0.0', %headers);
}

sub patch_bytes
{
    my ($upload, $offset, $bytes, %headers) = @_;
    return tus('PATCH', $upload, $bytes, 'Upload-Offset' => $offset,
        'Content-Type' => 'application/offset+octet-stream', %headers);
}

# Begins a PATCH or PUT and sends a part of its body; returns the connection, for answer_on.
# Options: method, offset, port, and headers => [ lines ].
sub begin_write
{
    my ($upload, $length, $body, %opt) = @_;
    my ($path) = $upload->{upload_url} =~ m{^http://[^/]+(/.*)};
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $opt{port} // port(),
        Timeout => 30) or die "no connection to the server: $!";
    print $socket join("\r\n", ($opt{method} // 'PATCH') . " $path HTTP/1.1", 'Host: localhost',
        'Connection: close', 'Tus-Resumable: 1.0.0', 'Upload-Offset: ' . ($opt{offset} // 0),
        "Content-Length: $length", 'Content-Type: application/offset+octet-stream',
        @{ $opt{headers} // [] }, '', $body);
    $socket->flush;
    return $socket;
}

sub answer_on
{
    my ($socket) = @_;
    local $SIG{ALRM} = sub { die "no answer in time\n" };
    alarm 120;
    my $answer = do { local $/; <$socket> };
    alarm 0;
    return parse_reply($answer);
}

# Whether bytes go into objects (MDL::Instance).
sub in_objects { return ($ENV{MDL_STORAGE} // '') eq 'objects' }

# How many bytes of an upload are stored, whatever the service says.
sub stored_bytes
{
    my ($upload) = @_;
    return -s (storage_dir() . "/partial/$upload->{id}") // 0 if !in_objects();
    return (sql("SELECT arrived FROM upload WHERE id = '$upload->{id}'"))[0][0];
}

# Whether a request has begun to write an upload.
sub is_being_written
{
    my ($upload) = @_;
    return stored_bytes($upload) if !in_objects();
    return (sql("SELECT COALESCE(writer, '') FROM upload WHERE id = '$upload->{id}'"))[0][0] ne '';
}

# The number of bytes that have arrived, by a HEAD request.
sub offset_of
{
    my ($upload) = @_;
    return tus('HEAD', $upload)->{headers}{'upload-offset'};
}

1;
