# Direct uploads: a client begins one by the API and writes the bytes to its upload URL.
#
#   my $upload = begin_upload($shop, filename => 'a.bin', size => 10);
#   put_bytes($upload, '0123456789');
#   my $reply = complete_upload($shop, $upload);
package MDL::Upload;

use strict;
use warnings;

use Exporter qw(import);
use MDL::Test;

our @EXPORT = qw(begin_upload complete_upload get_upload put_bytes tus patch_bytes offset_of);

# Begins an upload and returns it as the API shows it.
sub begin_upload
{
    my ($shop, %members) = @_;
    my $reply = api('POST', '/assets/uploads', key => $shop->{token},
        json => { filename => 'upload.bin', %members });
    die "the upload was answered with: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
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

sub put_bytes
{
    my ($upload, $bytes, %headers) = @_;
    return page('PUT', $upload->{upload_url}, body => $bytes, headers => \%headers);
}

# Sends a tus request; a header that is undef is left out.
sub tus
{
    my ($method, $upload, $body, %headers) = @_;
    my %all = ('Tus-Resumable' => '1.0.0', %headers);
    delete $all{$_} for grep { !defined $all{$_} } keys %all;
    return page($method, $upload->{upload_url}, body => $body, headers => \%all);
}

sub patch_bytes
{
    my ($upload, $offset, $bytes, %headers) = @_;
    return tus('PATCH', $upload, $bytes, 'Upload-Offset' => $offset,
        'Content-Type' => 'application/offset+octet-stream', %headers);
}

# The number of bytes that have arrived, by a HEAD request.
sub offset_of
{
    my ($upload) = @_;
    return tus('HEAD', $upload)->{headers}{'upload-offset'};
}

1;
