# Reads the emails of the current server (MDL::Target), which delivers them into a Maildir.
package MDL::Maildir;

use strict;
use warnings;

use Exporter qw(import);
use MIME::QuotedPrint qw(decode_qp);

use MDL::Target qw(:DEFAULT slurp);

our @EXPORT = qw(mails wait_mail);

# The emails to this address, or all, oldest first: { path, raw, headers, text, html, urls }.
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
    return wait_for(sub { my ($first) = mails($to); $first }, $seconds // 60, "an email to $to");
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

1;
