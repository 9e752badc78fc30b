#!/usr/bin/perl
# downloadsctl mail test, with a Maildir and with SMTP servers.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::INET;
use POSIX ();
use MDL::Downloadsctl;
use Test::More;

# Starts an SMTP server that answers each recipient with the status in its local part, and
# everything else with success; returns its pid and port.
sub answering_server
{
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die $!;
    my $pid = fork // die "fork: $!";
    return ($pid, $listener->sockport) if $pid;
    while (my $client = $listener->accept) {
        $client->autoflush(1);
        print $client "220 test\r\n";
        while (my $line = <$client>) {
            my $answer = $line =~ /^RCPT TO:<([0-9]{3})@/ ? "$1 as you wish" : '250 fine';
            $answer = '354 go on' if $line =~ /^DATA/;
            $answer = '221 bye'   if $line =~ /^QUIT/;
            print $client "$answer\r\n";
            next if $line !~ /^DATA/;
            1 while defined($line = <$client>) && $line ne ".\r\n";
            print $client "250 2.0.0 queued as 4711\r\n";
        }
    }
    POSIX::_exit(0);
}

subtest 'mail test sends one email and prints what the mail server answered' => sub {
    fresh('mail');
    refuses(1, qr/usage: downloadsctl mail test ADDRESS/, 'mail', 'test');
    refuses(5, qr/not an address/, 'mail', 'test', "a\@b.example\nBcc: c\@d.example");
    my $sent = succeeds_json('mail', 'test', 'ada@buyer.example');
    is($sent->{answer}, undef, 'a Maildir has no answer');
    my ($path) = glob "$dir/data/mail/new/*";
    my $mail = slurp($path // '/dev/null');
    like($mail, qr/^Return-Path: <shop\@example.com>\nDelivered-To: ada\@buyer.example\n/,
        'the Maildir has the email');
    like($mail, qr/^Message-ID: <\Q$sent->{message_id}\E>$/m,
        'the email has the Message-ID that was printed');

    my ($pid, $port) = answering_server();
    $conf = configure(DownloadsMailTransport => "smtp://127.0.0.1:$port");
    like(ctl('mail', 'test', '250@buyer.example')->{out}, qr/: 250 2\.0\.0 queued as 4711$/,
        "an SMTP server's answer is printed");
    refuses(5, qr/550 as you wish/, 'mail', 'test', '550@buyer.example');
    refuses_json(5, 'refused', 'mail', 'test', '550@buyer.example');
    refuses(6, qr/450 as you wish/, 'mail', 'test', '450@buyer.example');
    refuses_json(6, 'not_accepted_yet', 'mail', 'test', '450@buyer.example');
    kill TERM => $pid;
    waitpid $pid, 0;
    # Bound again, so that nobody else takes the port, but without listening.
    my $held = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
        ReuseAddr => 1) or die $!;
    refuses(6, qr/No SMTP transfer: .*127\.0\.0\.1/, 'mail', 'test', '250@buyer.example');
};

done_testing();
