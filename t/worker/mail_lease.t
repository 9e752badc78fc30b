# An email is sent by who has its lease: a node that stood still while another sent it does not send
# it again.
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use MDL::Instance;
use MDL::Mail;
use MDL::MailServer;
use MDL::Test;
use Test::More;

my $mail = MDL::MailServer->new;
my $conf = "DownloadsPollInterval 1\nDownloadsLeaseTime 2\n"
    . "DownloadsMailTransport smtp://127.0.0.1:$mail->{port}\n";
my $node = MDL::Instance->new(extra => $conf)->start;
my $other = MDL::Instance->new(
    without => qr/^DBDParams/,
    extra   => $conf
        . qq(DBDParams "$node->{vars}{db_params}"\nDownloadsStorage "$node->{folder}/storage"\n),
)->start;
my ($second) = worker_pids();
$node->aim;
my ($first) = worker_pids();
my $shop = shop_with_product('Lease');

sub taken { my ($to) = @_; return grep { $_->[1] eq 'taken' && $_->[3] eq $to } $mail->lines }

pause_process($second);
my $order = order_for($shop, 'held@buyer.example');
wait_for(sub { grep { $_->[1] eq 'held' } $mail->lines }, 30, 'a conversation about it');
my ($job) = map { $_->[0] } sql("SELECT id FROM job WHERE type = 'email'");
wait_for(sub { sql("SELECT 1 FROM job WHERE id = '$job' AND status = 'running'") }, 10, 'the job');
pause_process($first);
kill CONT => $second;
wait_for(sub { taken('held@buyer.example') }, 60, 'the other node to send the email');
is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
    'another node sends it when the lease has ended';

my ($before) = sql("SELECT status, lease_token FROM job WHERE id = '$job'");
is $before->[0], 'succeeded', 'its job has succeeded';

my $log = -s "$node->{folder}/error_log";
kill CONT => $first;
$mail->release;
wait_for(sub { substr($node->error_log, $log) =~ /MDL032[35]: .*$job/ }, 10, 'the first to notice');
my $next = order_for($shop, 'next@buyer.example');
is wait_email($shop, $next, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'the first goes on';
is scalar taken('held@buyer.example'), 1, 'and does not send the email that it had begun';
is_deeply [ sql("SELECT status, lease_token FROM job WHERE id = '$job'") ], [$before],
    'nor changes its job';

$_->stop for $node, $other;
done_testing;
