# The delivery email (contract, section 10): its content as another program reads it, and its way to
# an SMTP server that accepts, refuses, hesitates, hangs or is not there.
#
# once: the content of emails and what mail servers say; mail_connections.t sends on both databases
use strict;
use warnings;
use utf8;

use Encode qw(decode_utf8 encode_utf8);
use File::Path qw(make_path);
use IO::Socket::INET;
use JSON::PP;
use MDL::Contract qw(assign);
use MDL::Instance;
use MDL::Mail;
use MDL::Ports;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

my $true = JSON::PP::true();
binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

# --- what is in it --------------------------------------------------------------------------------

my $server = MDL::Instance->new->start;

subtest 'any program can read the email' => sub {
    my $name  = 'Käse & „Söhne“ <🧀>';
    my $shop  = shop_with_product($name);
    my $began = int time;
    my $order = order_for($shop, 'zoe@buyer.example', first_name => 'Zoë');
    my $ended = time;
    is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'it is sent';
    my ($mail) = mails('zoe@buyer.example');
    my $read   = read_by_python($mail->{path});
    is_deeply $read->{defects}, [], 'Python finds no defect';
    is_deeply $read->{from}, [ $name, 'shop@example.com' ],
        'it is from the shop, by the sender of the settings';
    is_deeply $read->{to}, ['zoe@buyer.example'], 'to the customer';
    is $read->{headers}{'reply-to'}, 'help@shop.example', 'answers go to the shop';
    like $read->{headers}{subject},
        qr/\Q$name\E.*\Q$order\E/, 'the subject has the shop and the order';
    is $read->{headers}{'auto-submitted'}, 'auto-generated', 'it says that no person has sent it';
    like $read->{headers}{'message-id'}, qr/^<[^<>@\s]+@[^<>@\s]+>$/, 'it has a Message-ID';
    ok $read->{date} >= $began && $read->{date} <= $ended, 'and the date of the order'
        or diag "$began <= $read->{date} <= $ended";
    is_deeply [ grep { $read->{count}{$_} != 1 } keys %{ $read->{count} } ], [],
        'it has no header twice';
    cmp_ok $read->{longest}, '<=', 78, 'no line is longer than it should be';
    is $read->{type}, 'multipart/alternative', 'it is multipart/alternative';
    is_deeply [ map { $_->{type} } @{ $read->{parts} } ], [ 'text/plain', 'text/html' ],
        'text first';
    for my $part (@{ $read->{parts} }) {
        is_deeply [ @$part{qw(charset encoding)} ], [ 'utf-8', 'quoted-printable' ],
            "$part->{type} is UTF-8 in quoted-printable";
        is_deeply $part->{defects}, [], 'without a defect';
        like $part->{text}, qr/Zoë/, 'greets the customer';
        like $part->{text}, qr/guide\.pdf/, 'and names the file';
    }
    my ($text, $html) = map { $_->{text} } @{ $read->{parts} };
    my ($url) = $text =~ m{(http://\S+)};
    my $shown = api('GET', "/orders/$order", key => $shop->{token})->{json}{download_page_url};
    is $url, $shown, 'the link in the text is that of the order';
    like $html, qr/href="\Q$url\E"/, 'and so is the one in the HTML';
    like $html, qr/Käse &amp; „Söhne“ &lt;🧀&gt;/, 'where the name is escaped';
    my $page = page('GET', $url);
    is $page->{status}, 200, 'it opens';
    like $page->{body}, qr/guide\.pdf/, 'and shows the file';
};

subtest 'one order has one email' => sub {
    my $shop  = shop_with_product('Once');
    my $order = order_for($shop, 'once@buyer.example');
    wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    my $reply = assign($shop, $order, [ $shop->{product} ], send_email => $true);
    is $reply->{status}, 200, 'the same is assigned again';
    # A second email of the first order would have been sent before this one.
    my $later = order_for($shop, 'later@buyer.example');
    wait_email($shop, $later, sub { $_[0]{status} eq 'sent' });
    is scalar(mails('once@buyer.example')), 1, 'and no second email is sent';
};

subtest 'an address that would add a header is refused' => sub {
    my $shop = shop_with_product("Good Shop");
    my $sent = () = mails();
    for my $address ("a\@b.example\r\nBcc: c\@d.example", "a\@b.example\nX: y",
        'a@b.example, c@d.example',
        "a\@b.example\0", '<a@b.example>', 'a b@c.example') {
        my $reply = assign($shop, next_order_id(), [ $shop->{product} ],
            send_email => $true,
            customer => { email => $address });
        is $reply->{status}, 400, 'refused: ' . $address =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger
            or diag $reply->{body};
    }
    is scalar(my @now = mails()), $sent, 'nothing was sent';
};
$server->stop;

# --- SMTP -----------------------------------------------------------------------------------------

# The port of the SMTP server, which runs only some of the time.
my $smtp_port = free_port();

$server->configure(extra => <<"END");
DownloadsMailTransport smtp://localhost:$smtp_port
DownloadsMailConnections 1
DownloadsPollInterval 1
END
my $folder = "$server->{folder}/smtp";
make_path($folder);
system('openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost'
    . " -keyout $folder/key.pem -out $folder/cert.pem 2>/dev/null") == 0 or die "openssl failed\n";

# Starts the SMTP server, with "utf8" one with SMTPUTF8; it ends when the returned handle is closed.
sub start_peer
{
    my @options = @_;
    my $script = MDL::Target::top_dir() . '/t/lib/smtp_peer.py';
    pipe my $in, my $hold or die "pipe: $!";
    pipe my $ports, my $out or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $hold;
        open STDIN,  '<&', $in;
        open STDOUT, '>&', $out;
        exec('/usr/bin/python3', '-W', 'ignore', $script, $folder, "$folder/cert.pem",
            "$folder/key.pem",
            $smtp_port, @options) or POSIX::_exit(127);
    }
    close $out;
    my $line = <$ports> // die "the SMTP server does not start\n";
    return { hold => $hold, pid => $pid };
}

sub stop_peer
{
    my ($peer) = @_;
    close $peer->{hold};
    waitpid $peer->{pid}, 0;
    return;
}

# The messages that the SMTP server has accepted for this recipient.
sub accepted
{
    my ($address) = @_;
    return grep { (MDL::Test::slurp($_) // '') =~ /^To: .*\Q$address\E/m } glob "$folder/*.eml";
}

use constant ABOUT => 0.4;    # minutes by which the next may differ

# From the end of the last attempt.
sub minutes_until_next
{
    my ($order) = @_;
    my ($row) = sql(qq{SELECT due_at - updated_at FROM job WHERE status = 'queued' AND email_id IN
        (SELECT e.id FROM email e JOIN orders o ON o.id = e.order_id
         WHERE o.storefront_order_id = '$order')});
    return $row->[0] / 1e6 / 60;
}

$server->start;
my $shop = shop_with_product('Mail Shop');

my $waiting = order_for($shop, 'waiting@buyer.example');
subtest 'an email waits for an SMTP server that is not there' => sub {
    my $email = wait_email($shop, $waiting, sub { $_[0]{attempts} >= 1 });
    is $email->{status}, 'queued', 'it stays queued';
    ok length($email->{last_error} // ''), "and the order says why ($email->{last_error})";
    cmp_ok abs(minutes_until_next($waiting) - 1), '<', ABOUT, 'it is tried again in a minute';
};

my $peer = start_peer();
subtest 'and is sent once the server is there' => sub {
    attempt_now($waiting);
    my $email = wait_email($shop, $waiting, sub { $_[0]{status} eq 'sent' });
    is $email->{status}, 'sent', 'it is sent';
    is $email->{attempts}, 2, 'at the second attempt';
    is $email->{last_error}, undef, 'and the error is forgotten';
    ok $email->{sent_at}, 'the order says when';
    is scalar(my @mails = accepted('waiting@buyer.example')), 1, 'it arrived once';
    my $read = read_by_python($mails[0]);
    is_deeply $read->{defects}, [], 'without a defect';
    is_deeply $read->{to}, ['waiting@buyer.example'], 'with the recipient';
    my ($envelope) = grep { /waiting/ } split /\n/, MDL::Test::slurp("$folder/log");
    like $envelope, qr/ shop\@example\.com waiting\@buyer\.example$/,
        'the envelope has the recipient and the sender';
};

subtest 'a 4xx is tried again, with the same bytes' => sub {
    my $order = order_for($shop, 'once450@buyer.example');
    my $email = wait_email($shop, $order, sub { $_[0]{attempts} >= 1 });
    is $email->{status}, 'queued', 'it stays queued';
    like $email->{last_error},
        qr/450 1\.2\.3 the test chose this/, "with the server's words on the order";
    cmp_ok abs(minutes_until_next($order) - 1), '<', ABOUT, 'it is tried again in a minute';
    my ($before) = sql("SELECT message_id FROM email e JOIN orders o ON o.id = e.order_id "
        . "WHERE o.storefront_order_id = '$order'");
    attempt_now($order);
    $email = wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    is $email->{attempts}, 2, 'and sent at the second attempt';
    my ($path) = accepted('once450@buyer.example');
    like read_by_python($path)->{headers}{'message-id'},
        qr/\Q$before->[0]\E/, 'the Message-ID is the same';
};

for my $stage (qw(rcpt550 data554)) {
    subtest "a 5xx ($stage) is final" => sub {
        my $order = order_for($shop, "$stage\@buyer.example");
        my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'failed' });
        is $email->{status}, 'failed', 'it has failed';
        is $email->{attempts}, 1, 'after one attempt';
        my ($code) = $stage =~ /(\d+)/;
        like $email->{last_error},
            qr/$code 1\.2\.3 the test chose this/, "with the server's words on the order";
        is scalar(my @none = accepted("$stage\@buyer.example")), 0, 'nothing arrived';
    };
}

subtest "a relay's limit for its customer passes" => sub {
    my $order = order_for($shop, 'limit@buyer.example');
    my $email = wait_email($shop, $order, sub { $_[0]{attempts} >= 1 });
    is $email->{status}, 'queued', 'the email stays queued';
    like $email->{last_error}, qr/^550 5\.4\.5 Daily/, "with the server's words on the order";
    cmp_ok abs(minutes_until_next($order) - 1), '<', ABOUT, 'it is tried again in a minute';
};

subtest 'a server without SMTPUTF8 is not told of an address that takes it' => sub {
    my $order = order_for($shop, 'jürgen@bücher.example');
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'failed' });
    is $email->{status}, 'failed', 'the email has failed';
    is $email->{to}, 'jürgen@xn--bcher-kva.example', 'its domain has the xn-- form';
    like $email->{last_error}, qr/^The mail server does not accept addresses with such characters/,
        'in our own words';
};

stop_peer($peer);
$peer = start_peer('utf8');
subtest 'one with SMTPUTF8 gets the email' => sub {
    my $order = order_for($shop, 'jürgen@bücher.example');
    is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'it is sent';
    my ($envelope) = grep { /jürgen/ } split /\n/, decode_utf8(MDL::Test::slurp("$folder/log"));
    like $envelope, qr/ jürgen\@xn--bcher-kva\.example SMTPUTF8$/, 'with the extension';
    my ($path) = accepted(encode_utf8('jürgen@xn--bcher-kva.example'));
    ok $path, 'and has its recipient in its header';
};
stop_peer($peer);
$peer = start_peer();

subtest 'the delays grow' => sub {
    my $order = order_for($shop, 'data451@buyer.example');
    my $attempts = 0;
    for my $minutes (1, 5, 15, 30, 60, 60) {
        $attempts++;
        wait_email($shop, $order,
            sub { $_[0]{attempts} == $attempts && $_[0]{status} eq 'queued' });
        cmp_ok abs(minutes_until_next($order) - $minutes), '<', ABOUT,
            "attempt $attempts is followed by the next in $minutes min";
        attempt_now($order);
    }
};

subtest 'many emails arrive once each' => sub {
    # All at once: a connection without work is closed.
    my ($worker) = worker_pids();
    pause_process($worker);
    my @orders = map { order_for($shop, "many$_\@buyer.example") } 1 .. 30;
    kill CONT => $worker;
    wait_email($shop, $_, sub { $_[0]{status} eq 'sent' }) for @orders;
    is_deeply [ map { scalar(my @mails = accepted("many$_\@buyer.example")) } 1 .. 30 ],
        [ (1) x 30 ],
        'thirty emails, thirty messages';
    my %ports = map { /^plain mail (\d+) \S+ many/ ? ($1 => 1) : () } split /\n/,
        MDL::Test::slurp("$folder/log");
    is scalar(keys %ports), 1, 'over one connection';
};

# After an outage of the mail server.
subtest 'an operator has what waits for another attempt leave now' => sub {
    stop_peer($peer);
    my @orders = map { order_for($shop, "flushed$_\@buyer.example") } 1 .. 3;
    wait_email($shop, $_, sub { $_[0]{attempts} >= 1 }) for @orders;
    ctl('shop', 'set', $shop->{shop_id}, '--mail-delay', 60);
    my $delayed = order_for($shop, 'delayed@buyer.example');
    ctl('shop', 'set', $shop->{shop_id}, '--mail-delay', 0);
    $peer = start_peer();
    my ($code, $answer, $text) = ctl('mail', 'flush');
    is $code, 0, 'mail flush succeeds' or diag $text;
    cmp_ok $answer->{flushed}, '>=', 3, 'and says how many';
    is wait_email($shop, $_, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'each is sent'
        for @orders;
    is_deeply [ map { scalar(my @mails = accepted("flushed$_\@buyer.example")) } 1 .. 3 ],
        [ 1, 1, 1 ], 'once';
    cmp_ok minutes_until_next($delayed), '>', 50,
        "one that waits for the shop's delay goes on waiting";
};

subtest 'an operator has what failed tried again' => sub {
    my ($before) = map { $_->[0] }
        sql("SELECT count(*) FROM job WHERE status = 'failed' AND type = 'email'");
    cmp_ok $before, '>=', 2, 'emails have failed';
    my ($code, $answer, $text) = ctl('job', 'retry', '--failed', '--type', 'email', '--shop',
        $shop->{shop_id});
    is $code, 0, 'job retry --failed succeeds' or diag $text;
    is $answer->{retried}, $before, 'each is queued again';
    wait_for(sub { !sql("SELECT 1 FROM job WHERE status IN ('queued', 'running') "
            . "AND type = 'email' AND attempts = 0 AND due_at < " . int(time * 1e6)) }, 20,
        'the attempts');
    wait_for(sub {
        (sql("SELECT count(*) FROM job WHERE status = 'failed' AND type = 'email'"))[0][0]
            == $before;
    }, 20,
        'the second refusals');
    my ($job) = map { $_->[0] } sql("SELECT j.id FROM job j JOIN email e ON e.id = j.email_id"
            . " WHERE e.recipient = 'rcpt550\@buyer.example'");
    my ($order) = map { $_->[0] }
        sql("SELECT o.storefront_order_id FROM orders o JOIN email e ON e.order_id = o.id"
            . " WHERE e.recipient = 'rcpt550\@buyer.example'");
    is ctl_of('job', 'show', $job)->{storefront_order_id}, $order,
        "the job of an email has the order's number";
};

sub ctl_of { my (@arguments) = @_; return (ctl(@arguments))[1] }

# From here on no email of before comes to a server that is there for another.
sub nothing_waits
{
    sql("UPDATE job SET status = 'cancelled', due_at = NULL, finished_at = 1 "
        . "WHERE type = 'email' AND status IN ('queued', 'running')");
    return;
}

stop_peer($peer);
nothing_waits();
subtest 'a server that says nothing does not hold up a stop' => sub {
    my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $smtp_port,
        Listen => 5,
        ReuseAddr => 1) or die "port $smtp_port: $!";
    my ($order, $connection, $took);
    # httpd kills a background process that has not ended after three seconds. On a busy machine it
    # may, so that only a stop that was quicker counts.
    for my $try (1 .. 10) {
        $order = order_for($shop, "silent$try\@buyer.example");
        $connection = $silent->accept;
        $took = $server->stop;
        last if $took < 2.5;
        nothing_waits();
        close $connection;
        $server->start;
    }
    diag sprintf 'the server stopped in %.0f ms', 1000 * $took;
    is_deeply [ sql('SELECT status, attempts FROM job ORDER BY id DESC LIMIT 1') ],
        [ [ 'queued', 0 ] ], 'the email was given back, not cut off';
    close $_ for $connection, $silent;
    $peer = start_peer();
    $server->start;
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    is $email->{status}, 'sent', 'and the email is sent after the next start, at once';
    is $email->{attempts}, 1, 'the stop cost it no attempt';
    stop_peer($peer);
};

# A mock that takes a message and never answers: no real server can be made to fall silent there.
subtest 'a background process that dies before the answer sends the same message again' => sub {
    my $mock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $smtp_port, Listen => 5,
        ReuseAddr => 1) or die "port $smtp_port: $!";
    my $order = order_for($shop, 'killed@buyer.example');
    my $take  = sub {
        my $client = $mock->accept or die "accept: $!";
        print $client "220 mock\r\n";
        while (defined(my $line = <$client>)) {
            last if $line =~ /^DATA/;
            print $client "250 fine\r\n";
        }
        print $client "354 go on\r\n";
        my $message = '';
        while (defined(my $line = <$client>)) {
            last if $line eq ".\r\n";
            $message .= $line;
        }
        return ($client, $message);
    };
    my ($first, $message) = $take->();
    my ($second, $again);
    # deaths that are no fault of an email which waits for the mail server's answer
    for my $kills (1 .. 4) {
        my ($worker) = worker_pids();
        kill KILL => $worker;
        ($second, $again) = $take->();
        ok length $again, "kill $kills: its successor sends it once more";
        is $again, $message, 'the same bytes, with the same Message-ID';
    }
    print $second "250 got it\r\n";
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    is $email->{status}, 'sent', 'once that is accepted the email is sent';
    close $_ for $first, $second, $mock;
};

# The fraud check holds an order while its email's job is already running.
sub hold
{
    my ($order) = @_;
    sql("UPDATE orders SET access_status = 'held', fraud_decision = 'held' "
        . "WHERE storefront_order_id = '$order'");
    return;
}

sub held_then_approved
{
    my ($order, $address) = @_;
    my $job = "email_id IN (SELECT e.id FROM email e JOIN orders o ON o.id = e.order_id "
        . "WHERE o.storefront_order_id = '$order')";
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'held' });
    is $email->{status}, 'held', 'it is held';
    is_deeply [ sql("SELECT status FROM job WHERE $job") ], [ ['cancelled'] ],
        'and its job is cancelled';
    $peer = start_peer();
    is api('POST', "/orders/$order/approve", key => $shop->{token}, json => {})->{status}, 200,
        'the order is approved';
    is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'it is sent';
    is scalar(my @mails = accepted($address)), 1, 'and arrives once';
    stop_peer($peer);
    return $email;
}

subtest 'an email whose job runs when its order is held is held, too' => sub {
    my $order = order_for($shop, 'review@buyer.example');
    wait_email($shop, $order, sub { $_[0]{attempts} == 1 });
    hold($order);
    attempt_now($order);
    my $email = held_then_approved($order, 'review@buyer.example');
    is $email->{attempts}, 1, 'it was not tried once more';
};

subtest 'so is an email that the server deferred meanwhile' => sub {
    my $mock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $smtp_port, Listen => 5,
        ReuseAddr => 1) or die "port $smtp_port: $!";
    my $order  = order_for($shop, 'refused@buyer.example');
    my $client = $mock->accept or die "accept: $!";
    hold($order);
    print $client "421 later\r\n";
    close $_ for $client, $mock;
    held_then_approved($order, 'refused@buyer.example');
};

$server->stop;
done_testing;
