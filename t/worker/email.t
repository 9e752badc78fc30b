# The delivery email through other people's mail servers: a real Postfix accepts it, two parsers
# read what was sent, in the shop's name and the customer's language, and a bounce is noted on the
# order.
#
# once: Postfix and its bounces; mail.t and mail_connections.t have the jobs on both databases
use strict;
use warnings;
use utf8;

use Encode qw(decode_utf8 encode_utf8);
use File::Path qw(make_path);
use JSON::PP;
use MDL::Contract qw(assign digits mapping_of ready_asset);
use MDL::Instance;
use MDL::Mail;
use MDL::Ports;
use MDL::Postfix;
use MDL::Test;
use POSIX ();
use Test::More;

my $true = JSON::PP::true();
binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

# --- servers -------------------------------------------------------------------------------------

my $server = MDL::Instance->new;
my $folder = $server->{folder};
my $templates = "$folder/templates";
system('cp', '-r', MDL::Target::top_dir() . '/conf/templates', $templates) == 0
    or die 'cp';

my @sinks;

# Starts Postfix's smtp-sink on a port, with options that say how it answers.
sub start_sink
{
    my ($port, @how) = @_;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDOUT, '>',  "$folder/sink.log";
        open STDERR, '>&', \*STDOUT;
        exec('/usr/sbin/smtp-sink', @how, "127.0.0.1:$port", 50) or POSIX::_exit(127);
    }
    push @sinks, $pid;
    wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) },
        10, "smtp-sink @how");
    return $pid;
}

sub stop_sink
{
    my ($pid) = @_;
    kill KILL => $pid;
    waitpid $pid, 0;
    @sinks = grep { $_ != $pid } @sinks;
    return;
}

my $owner = $$;
END { local $?; kill KILL => @sinks if @sinks && $$ == $owner }

my ($gone, $slow, $direct) = map { free_port() } 1 .. 3;
start_sink($gone, '-f', 'RCPT', '-B', '550 5.1.1 nobody of that name lives here');
start_sink($slow, '-r', 'RCPT');
my $postfix = MDL::Postfix->new(
    folder => "$folder/postfix",
    boxes  => {
        'buyer.test'       => 'buyers/',
        'shop@example.com' => 'bounces/',
        'shop@example.org' => 'bounces.mbox',
    },
    next_hop => { 'gone.test' => $gone, 'slow.test' => $slow },
);
make_path(map { $postfix->box('bounces/') . "/$_" } qw(new cur tmp));

sub configure
{
    my (%directive) = @_;
    %directive = (
        DownloadsMailTransport => "smtp://127.0.0.1:$postfix->{port}",
        DownloadsMailBounces   => 'maildir:' . $postfix->box('bounces/'),
        DownloadsTemplates     => $templates,
        DownloadsPollInterval  => 1,
        %directive
    );
    $server->configure(extra => join '', map { "$_ $directive{$_}\n" } sort keys %directive);
    return;
}
configure();
$server->start;

# The message that Postfix has put into the customers' Maildir for this address.
sub arrived
{
    my ($to) = @_;
    return wait_for(sub { my ($first) = $postfix->delivered('buyers/', $to); $first },
        120, "an email to $to; " . $postfix->tail);
}

# Presses the button of the link that the address was sent; it is then as if nothing had come.
sub confirm
{
    my ($to) = @_;
    my $path = arrived($to);
    my ($link) = read_by_python($path)->{parts}[0]{text} =~ m{^(http\S*/c/\S+)$}m;
    is page('POST', $link)->{status}, 200, "$to is confirmed";
    unlink $path or die "$path: $!";
    return;
}

# A message as both parsers read it, after checking that they agree; lines end in LF.
sub read_by_both
{
    my ($path) = @_;
    my ($python, $perl) = (read_by_python($path), read_by_perl($path));
    $_->{text} =~ s/\r\n/\n/g for @{ $perl->{parts} }, @{ $python->{parts} };
    is_deeply $python->{defects}, [], 'Python finds no defect';
    is $perl->{subject}, $python->{headers}{subject}, 'both read the same subject';
    is_deeply $perl->{from}, $python->{from}, 'the same sender';
    is_deeply [ map { [ @$_{qw(type text)} ] } @{ $perl->{parts} } ],
        [ map { [ @$_{qw(type text)} ] } @{ $python->{parts} } ],
        'and the same parts';
    return $python;
}

sub set_shop
{
    my ($shop, @options) = @_;
    my ($code, undef, $text) = ctl('shop', 'set', $shop->{shop_id},
        map { encode_utf8($_) } @options);
    is $code, 0, "shop set @options" or diag $text;
    return;
}

sub write_template
{
    my ($shop, $name, $text) = @_;
    make_path("$templates/shop-$shop->{shop_id}");
    open my $out, '>:utf8', "$templates/shop-$shop->{shop_id}/$name" or die $!;
    print $out $text;
    close $out or die $!;
    return;
}

# Makes an endpoint that the service switches off, for it has failed for five days.
sub switched_off
{
    my ($shop, $url) = @_;
    my %key = (key => $shop->{token});
    my $endpoint = api('POST', '/webhook-endpoints', %key, json => { url => $url })->{json};
    my $path = "/webhook-endpoints/$endpoint->{id}";
    api('POST', "$path/test", %key);
    wait_for(sub { api('GET', $path, %key)->{json}{failing_since} }, 20, 'the first failure');
    sql("UPDATE webhook_endpoint SET failing_since = failing_since - 432000000000 "
        . "WHERE id = $endpoint->{id}");
    api('POST', "$path/deliveries/" . api('GET', "$path/deliveries", %key)->{json}{data}[0]{id}
        . '/resend', %key);
    wait_for(sub { !api('GET', $path, %key)->{json}{is_active} }, 20,
        'the endpoint to be switched off');
    return $endpoint;
}

# --- what arrives --------------------------------------------------------------------------------

# Everything that a mail server could change on the way.
my $naughty = join "\n",
    '.', '..', '.a line with a dot', 'From the beginning', '>From', '-- ', '--=_boundary', '',
    'x' x 998, 'y' x 2999, '汉字漢字かな한글 ' x 30, '👩‍👩‍👧‍👦🎉' x 40, "tab\tand spaces   ",
    '=3D =?utf-8?Q?not_a_word?= =', 'Zoë „Söhne“ ‮rtl', "\x{7f}\x{85}\x{a0}", '.',
    'MAIL FROM:<x@y.test>', 'end';

subtest 'a real Postfix accepts an email, and two parsers read it as it was written' => sub {
    my $shop = shop_with_product('店 "Ünïcode" 🛒', title => '第一章 – „Anfang“ 🎉 & <b>');
    write_template($shop, 'email.subject',
        '📦 {{#products}}{{#files}}{{title}}{{/files}}{{/products}} für '
            . '{{#customer}}{{first_name}}{{/customer}} {{order_id}}');
    write_template($shop, "email.$_",
        "$naughty\n{{#products}}{{#files}}{{{title}}}\n{{/files}}{{/products}}{{{page_url}}}\n")
        for qw(txt html);
    my $order = order_for($shop, 'naughty@buyer.test', first_name => '李雷 O\'Neill');
    is wait_email($shop, $order, sub { $_[0]{status} ne 'queued' })->{status}, 'sent',
        'Postfix took it';
    my $mail = read_by_both(arrived('naughty@buyer.test'));
    my $url  = api('GET', "/orders/$order", key => $shop->{token})->{json}{download_page_url};
    my $text = "$naughty\n第一章 – „Anfang“ 🎉 & <b>\n$url\n";
    is $mail->{headers}{subject}, "📦 第一章 – „Anfang“ 🎉 & <b> für 李雷 O'Neill $order", 'the subject';
    is $mail->{from}[0], '店 "Ünïcode" 🛒', "the sender's name";
    is_deeply [ map { $_->{type} } @{ $mail->{parts} } ], [ 'text/plain', 'text/html' ],
        'two parts';
    is $mail->{parts}[$_]{text}, $text, "$mail->{parts}[$_]{type} is what was written" for 0, 1;
    my $head = (split /\n\n/, MDL::Test::slurp(arrived('naughty@buyer.test')))[0];
    like $head, qr/^Return-Path: <shop\+[0-9a-f]{32}\@example\.com>$/m,
        'it has a return path of its own';
};

subtest 'an email is in the customer\'s language' => sub {
    my $shop = shop_with_product('Laden');
    for my $locale (qw(de de-AT de_CH)) {
        my $to = lc("$locale\@buyer.test");
        order_for($shop, $to, first_name => 'Jürgen', locale => $locale);
        my $mail = read_by_both(arrived($to));
        like $mail->{headers}{subject}, qr/^Ihre Downloads von Laden \(Bestellung \d+\)$/,
            "$locale: subject";
        like $mail->{parts}[0]{text}, qr/^Guten Tag Jürgen,.*Freundliche Grüße\nLaden/s, 'text';
        like $mail->{parts}[1]{text}, qr/<html lang="de"[^>]*>.*>Zu Ihren Downloads</s, 'and HTML';
        unlike $mail->{parts}[$_]{text} =~ s/<[^>]*>//gr, qr/\b(?:your|the|order|please)\b/i,
            'without an English word' for 0, 1;
    }
    order_for($shop, 'nl@buyer.test', locale => 'nl');
    like read_by_both(arrived('nl@buyer.test'))->{headers}{subject}, qr/^Your downloads from Laden/,
        'for a language without words it is English';
    api('PATCH', '/shop', key => $shop->{token}, json => { languages => [qw(es de)] });
    for ([ 'de-CH', 'Ihre Downloads' ], [ 'en', 'Sus descargas' ]) {
        my ($locale, $subject) = @$_;
        order_for($shop, lc("offered-$locale\@buyer.test"), locale => $locale);
        like read_by_both(arrived(lc("offered-$locale\@buyer.test")))->{headers}{subject},
            qr/^\Q$subject\E /, "$locale, of a shop that offers Spanish and German";
    }
};

subtest 'an email about nothing does not say that it is ready' => sub {
    my $shop = shop_with_product('Empty shop');
    my $mapping = mapping_of($shop, []);
    is assign($shop, digits(), [ $mapping->{storefront_product_id} ],
        send_email => JSON::PP::true(), customer => { email => 'nothing@buyer.test' })->{status},
        201, 'a product without content is assigned';
    my $mail = read_by_both(arrived('nothing@buyer.test'));
    like $mail->{parts}[$_]{text}, qr/Thank you for your order at Empty shop\./, 'thanks' for 0, 1;
    unlike $mail->{parts}[$_]{text}, qr/ready|waiting/i, 'and no more' for 0, 1;
};

# --- what a shop decides -------------------------------------------------------------------------

subtest 'a shop gives its emails a sender and an address for answers' => sub {
    my $shop = shop_with_product('Legal Name Ltd.');
    my @senders = (
        [ 'sender1@buyer.test', 'Legal Name Ltd.', 'help@shop.example' ],
        [ 'sender2@buyer.test', 'Die Käserei 🧀',  'answers@shop.example',
            '--sender-name', 'Die Käserei 🧀', '--reply-to', 'answers@shop.example' ],
        [ 'sender3@buyer.test', 'Legal Name Ltd.', 'help@shop.example',
            '--sender-name', '', '--reply-to', '' ],
    );
    for (@senders) {
        my ($to, $name, $reply_to, @options) = @$_;
        set_shop($shop, @options) if @options;
        order_for($shop, $to);
        my $mail = read_by_both(arrived($to));
        is_deeply $mail->{from}, [ $name, 'shop@example.com' ], "it is from $name";
        is $mail->{headers}{'reply-to'}, $reply_to, "and answered to $reply_to";
    }
};

sub job_of
{
    my ($order) = @_;
    my ($row) = sql("SELECT j.due_at - e.created_at, j.status FROM job j JOIN email e "
        . "ON e.id = j.email_id JOIN orders o ON o.id = e.order_id "
        . "WHERE o.storefront_order_id = '$order' ORDER BY e.id DESC LIMIT 1");
    return @$row;
}

subtest 'a shop delays its emails' => sub {
    my $shop = shop_with_product('Later');
    set_shop($shop, '--mail-delay', 30);
    my $order = order_for($shop, 'later@buyer.test');
    is_deeply [ job_of($order) ], [ 30 * 60 * 1_000_000, 'queued' ], 'it is due after 30 minutes';
    is email_of($shop, $order)->{status}, 'queued', 'and queued meanwhile';
    my $reply = api('POST', "/orders/$order/resend", key => $shop->{token},
        json => { email => 'now@buyer.test' });
    is $reply->{status}, 202, 'it is resent to another address';
    arrived('now@buyer.test');
    is scalar(my @none = $postfix->delivered('buyers/', 'later@buyer.test')), 0,
        'before the delayed one is sent';
    attempt_now($order);
    ok arrived('later@buyer.test'), 'the delayed one comes when it is due';

    # Two products in one order, one after the other.
    my $key   = { token => $shop->{token} };
    my $asset = ready_asset($key, 'second.pdf', 'the bytes of another');
    my $next  = mapping_of($key, [ $asset->{id} ])->{storefront_product_id};
    $order = order_for($shop, 'twice@buyer.test');
    assign($shop, $order, [$next], send_email => $true);
    attempt_now($order);
    my $mail = read_by_python(arrived('twice@buyer.test'));
    like $mail->{parts}[0]{text}, qr/guide\.pdf.*second\.pdf/s,
        'what was added meanwhile is in it as well';
    is((sql("SELECT count(*) FROM email e JOIN orders o ON o.id = e.order_id "
        . "WHERE o.storefront_order_id = '$order'"))[0][0], 1, 'and there is no second one');

    set_shop($shop, '--mail-delay', 0);
    order_for($shop, 'soon@buyer.test');
    ok arrived('soon@buyer.test'), 'without a delay it comes at once';
};

# --- headers -------------------------------------------------------------------------------------

my @headers = sort qw(return-path x-original-to delivered-to received date from reply-to to subject
    message-id auto-submitted mime-version content-type);

my @injections = (
    "a\r\nBcc: c\@d.example",         "a\nX-Evil: 1",
    "a\rX-Evil: 1",                   "a\r\n\r\nbody",
    "a\r\n Bcc: c\@d.example",        "a\0b",
    "a\x{2028}X-Evil: 1",             "a\x{2029}X-Evil: 1",
    "a\x{85}X-Evil: 1",               "a\x0b\x0cX-Evil: 1",
    '=?utf-8?Q?a=0D=0ABcc:_c@d.test?=', '=?utf-8?B?DQpCY2M6IGNAZC50ZXN0?=',
    'a" <c@d.example>, "b',           'a>, <c@d.example',
    'a\\',                            '(a comment',
    'a, b; c: d@e.example;',          "\x{202e}evil",
    'x' x 190,                        '🎉' x 45,
);

sub shown { return shift =~ s/([^ -~])/sprintf '\\x{%x}', ord $1/ger }

sub is_untouched
{
    my ($to, $what) = @_;
    my $path = arrived($to);
    my $mail = read_by_python($path);
    my $perl = read_by_perl($path);
    is_deeply [ sort keys %{ $mail->{count} } ], \@headers, "$what: it has no header beside ours";
    is_deeply [ grep { $mail->{count}{$_} > 1 } @headers ], [], 'and none twice';
    is_deeply [ sort @{ $perl->{names} } ], \@headers, 'for another parser as well';
    is $mail->{from}[1], 'shop@example.com', 'it is from the right sender';
    is_deeply $mail->{to}, [$to], 'and to the right recipient';
    return $mail;
}

subtest 'no name or title adds a header' => sub {
    my ($taken, $n) = (0, 0);
    for my $evil (@injections) {
        my $to = sprintf 'evil%d@buyer.test', ++$n;
        my $shop = eval { shop_with_product($evil) };
        $shop //= shop_with_product('Plain');
        my ($code) = ctl('shop', 'set', $shop->{shop_id}, '--sender-name', encode_utf8($evil));
        my $asset = api('GET', '/assets', key => $shop->{token})->{json}{data}[0]{id};
        my $title = api('PATCH', "/assets/$asset", key => $shop->{token},
            json => { title => $evil });
        write_template($shop, 'email.subject',
            '{{#files}}{{title}}{{/files}} {{#customer}}{{first_name}}{{/customer}}');
        my $order = next_order_id();
        my $reply = assign($shop, $order, [ $shop->{product} ], send_email => $true,
            customer => { email => $to, first_name => $evil });
        $reply = assign($shop, $order, [ $shop->{product} ], send_email => $true,
            customer => { email => $to }) if $reply->{status} != 201;
        is $reply->{status}, 201, 'an order of ' . shown($evil) or diag $reply->{body};
        $taken++ if $code == 0 || $title->{status} == 200;
    }
    is_untouched("evil$_\@buyer.test", shown($injections[ $_ - 1 ])) for 1 .. $n;
    cmp_ok $taken, '>=', 8, "the API took $taken of them, and refused the others";
};

subtest 'nor does one that is already in the database' => sub {
    my $chr  = database() eq 'pgsql' ? 'chr' : 'char';
    my $evil = join '||',
        map { /^\d+$/ ? "$chr($_)" : "'$_'" } 'a', 13, 10, 'X-Evil: 1', 10, 13, 10,
        'Bcc: c@d.example', 13, 10, 13, 10, 'body';
    my $shop = shop_with_product('Plain');
    write_template($shop, 'email.subject',
        '{{#files}}{{title}}{{/files}} {{#shop}}{{name}}{{/shop}}');
    sql("UPDATE shop SET name = $evil, sender_name = $evil WHERE id = $shop->{shop_id}");
    sql("UPDATE asset SET title = $evil WHERE shop_id = $shop->{shop_id}");
    order_for($shop, 'database@buyer.test');
    my $mail = is_untouched('database@buyer.test', 'a name with line ends');
    like $mail->{headers}{subject}, qr/^a  X-Evil: 1/, 'line ends become spaces in the subject';

    sql("UPDATE shop SET reply_to = $evil WHERE id = $shop->{shop_id}");
    my $order = order_for($shop, 'address@buyer.test');
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'failed' });
    like $email->{last_error}, qr/address/, 'an address with line ends is not written to';
};

# --- bounces -------------------------------------------------------------------------------------

sub email_check
{
    my ($shop, $order) = @_;
    my $answer = api('GET', "/orders/$order/diagnosis", key => $shop->{token})->{json};
    my ($check) = grep { $_->{name} eq 'email' } @{ $answer->{checks} };
    return $check;
}

sub comes_back
{
    my ($shop, $order) = @_;
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'bounced' });
    is $email->{status}, 'bounced', 'the order says that it came back';
    like $email->{last_error}, qr/550 5\.1\.1 nobody of that name lives here/,
        'with the words of the server that refused it';
    ok $email->{sent_at}, 'and it still says when it was sent';
    my $check = email_check($shop, $order);
    is $check->{status}, 'fail', 'the diagnosis finds it';
    like $check->{message}, qr/came back: .*nobody of that name/, 'and says why';
    ok wait_for(sub {
        grep { $_->{data}{storefront_order_id} eq $order }
            @{ api('GET', '/events?type=email.bounced', key => $shop->{token})->{json}{data} };
    }, 10, 'the event'), "the shop's system is told";
    return;
}

my $bounces = $postfix->box('bounces/');

subtest 'Postfix sends back what it can\'t deliver' => sub {
    my $shop  = shop_with_product('Bounce');
    sql("INSERT INTO notice (shop_id, user_name, kind, choice, waiting, due_at) VALUES "
        . join ', ', map { "($shop->{shop_id}, '$_', 'bounced', 'daily', 0, 4000000000000000)" }
        qw(ada ben));
    sql("UPDATE notice SET choice = 'off' WHERE user_name = 'ben'");
    my $order = order_for($shop, 'jane@gone.test');
    comes_back($shop, $order);
    is_deeply [ sql('SELECT user_name, waiting FROM notice ORDER BY user_name') ],
        [ [ ada => 1 ], [ ben => 0 ] ], 'it is counted for the member who wants to be told';
    wait_for(sub { my @new = glob "$bounces/new/*"; !@new }, 60, 'the message to be moved');
    is scalar(my @read = grep { MDL::Test::slurp($_) =~ /jane\@gone\.test/ } glob "$bounces/cur/*"),
        1, 'the message is in cur/';
    my $reply = api('POST', "/orders/$order/resend", key => $shop->{token},
        json => { email => 'jane@buyer.test' });
    is $reply->{status}, 202, 'the email is sent to another address';
    is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{last_error}, undef,
        'and the order shows no error any more';
};

subtest 'an address that is refused at once fails at once' => sub {
    my $shop  = shop_with_product('Unknown');
    my $order = order_for($shop, 'unknown@buyer.test');
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'failed' });
    like $email->{last_error}, qr/^550 5\.1\.1 .*User unknown/, "with Postfix's words";
    is $email->{attempts}, 1, 'after one attempt';
};

# Delivers messages to the mailbox of bounces, and waits until all have been read.
my $put = 0;
sub deliver
{
    my (@texts) = @_;
    my @names = map { 'put' . ++$put } @texts;
    for my $i (0 .. $#texts) {
        open my $out, '>:raw', "$bounces/tmp/$names[$i]" or die $!;
        print $out $texts[$i];
        close $out or die $!;
        rename "$bounces/tmp/$names[$i]", "$bounces/new/$names[$i]" or die $!;
    }
    for my $name (@names) {
        wait_for(sub { -e "$bounces/cur/$name:2,S" }, 20, "the message $name to be read");
    }
    return;
}

sub report
{
    my ($to, $fields) = @_;
    return "Return-Path: <>\nDelivered-To: $to\nTo: $to\nMIME-Version: 1.0\n"
        . "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n"
        . "--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\n$fields\n--b--\n";
}

subtest 'only a failure of a message of ours counts' => sub {
    my $shop   = shop_with_product('Others');
    my $order  = order_for($shop, 'fine@buyer.test');
    my ($path) = MDL::Test::slurp(arrived('fine@buyer.test')) =~ /^Return-Path: <(.*)>$/m;
    my $failed = "Action: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 forged\n";
    my $other  = order_for($shop, 'other@buyer.test');
    my ($its)  = MDL::Test::slurp(arrived('other@buyer.test')) =~ /^Return-Path: <(.*)>$/m;
    wait_email($shop, $_, sub { $_[0]{status} eq 'sent' }) for $order, $other;
    my %forged = (
        'a token with another end'  => $path =~ s/(.)@/($1 eq '0' ? '1' : '0') . '@'/er,
        'a token with another id'   => $path =~ s/\+\K.{16}/($its =~ m{\+(.{16})})[0]/er,
        'an id without a proof'     => $path =~ s/\+.{16}\K.{16}/'0' x 16/er,
        'no token'                  => 'shop@example.com',
        'a token behind a hyphen' => $path =~ s/\+/-/r,
    );
    my %harmless = map { $_ => report($forged{$_}, $failed =~ s/forged/$_/r) } keys %forged;
    $harmless{'a delay'} = report($path, "Action: delayed\nStatus: 4.4.1\n");
    $harmless{'an automatic reply'}
        = "Return-Path: <>\nTo: $path\nAuto-Submitted: auto-replied\n\nI am away. 550 5.1.1\n";
    $harmless{'a customer who answers'}
        = "Return-Path: <fine\@buyer.test>\nTo: $path\n\nI got 550 5.1.1 here, help!\n";
    $harmless{'noise'}   = "\0\xff\n" x 100_000;
    $harmless{'nothing'} = '';
    deliver(map { $harmless{$_} } sort keys %harmless);
    for ($order, $other) {
        my $email = email_of($shop, $_);
        is $email->{status}, 'sent', 'none of these changes it: ' . join ', ', sort keys %harmless
            or diag $email->{last_error};
    }
    deliver(report(uc $path, $failed));
    my $email = wait_email($shop, $order, sub { $_[0]{status} eq 'bounced' });
    is $email->{last_error}, '550 5.1.1 forged',
        'a failure does, also with its address in capitals';
    deliver(report($path, $failed =~ s/forged/again/r));
    is email_of($shop, $order)->{last_error}, '550 5.1.1 forged',
        'and a second report does not replace it';
};

subtest 'a bounce that is read before the email is known to be sent is kept' => sub {
    my $shop = shop_with_product('Fast');
    set_shop($shop, '--mail-delay', 60);
    my $order = order_for($shop, 'fast@buyer.test');
    sql("UPDATE email SET bounced_at = 1, last_error = '550 faster' WHERE order_id IN "
        . "(SELECT id FROM orders WHERE storefront_order_id = '$order')");
    is email_of($shop, $order)->{status}, 'queued', 'the email is queued until it is sent';
    attempt_now($order);
    my $email = wait_email($shop, $order, sub { $_[0]{status} ne 'queued' });
    is_deeply [ @$email{qw(status last_error)} ], [ 'bounced', '550 faster' ],
        'and is bounced then, with the words of the report';
};

subtest 'a warning of Postfix that it goes on trying is no failure' => sub {
    my $shop  = shop_with_product('Slow');
    my $order = order_for($shop, 'jane@slow.test');
    wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
    wait_for(
        sub {
            grep { MDL::Test::slurp($_) =~ /jane\@slow\.test.*^Action: delayed$/ms }
                glob "$bounces/cur/*";
        },
        120, 'a warning to be read; ' . $postfix->tail);
    is email_of($shop, $order)->{status}, 'sent', 'the order stays as it is';
    is email_check($shop, $order)->{status}, 'ok', 'and the diagnosis too';
};

$server->stop;
my $mbox = $postfix->box('bounces.mbox');
configure(DownloadsMailBounces => "mbox:$mbox", DownloadsMailFrom => 'shop@example.org');
$server->start;

subtest 'bounces are read from an mbox as well' => sub {
    my $shop = shop_with_product('Box');
    my @orders = map { order_for($shop, "jane$_\@gone.test") } 1 .. 3;
    comes_back($shop, $_) for @orders;
    wait_for(sub { -e $mbox && !-s $mbox }, 10, 'the mbox to be emptied');
    ok wait_for(sub { !-e "$mbox.lock" }, 60, 'the lock to go'), 'no lock is left behind';
};

# --- a server that misbehaves --------------------------------------------------------------------

$server->stop;
configure(DownloadsMailTransport => "smtp://127.0.0.1:$direct");
$server->start;

# Options of smtp-sink, the final status of the email, and what the order says.
for (
    [ 'says no to the sender',                  [ '-f', 'MAIL' ], 'failed', qr/^500 / ],
    [ 'says no to the recipient',               [ '-f', 'RCPT' ], 'failed', qr/^500 / ],
    [ 'says no to DATA',                        [ '-f', 'DATA' ], 'failed', qr/^500 / ],
    [ 'says no to the message',                 [ '-f', '.' ],    'failed', qr/^500 / ],
    [ 'is busy for the sender',                 [ '-r', 'MAIL' ], 'queued', qr/^450 / ],
    [ 'is busy for the recipient',              [ '-r', 'RCPT' ], 'queued', qr/^450 / ],
    [ 'is busy for the message',                [ '-r', '.' ],    'queued', qr/^450 / ],
    [ 'breaks off at the greeting',             [ '-q', 'EHLO' ], 'queued', qr/No SMTP transfer/ ],
    [ 'breaks off at the recipient',            [ '-q', 'RCPT' ], 'queued', qr/No SMTP transfer/ ],
    [ 'breaks off after the message',             [ '-q', '.' ],    'queued',
        qr/before the SMTP server answered/ ],
    )
{
    my ($what, $how, $status, $words) = @$_;
    subtest "a server that $what" => sub {
        my $shop  = shop_with_product('Sink');
        my $sink  = start_sink($direct, @$how);
        my $order = order_for($shop, 'sink@buyer.test');
        my $email = wait_email($shop, $order, sub { $_[0]{attempts} > 0 });
        is $email->{status}, $status, "the email is $status";
        like $email->{last_error}, $words, 'with the words on the order';
        stop_sink($sink);
        if ($status eq 'queued') {
            is((sql("SELECT due_at > created_at FROM job ORDER BY id DESC LIMIT 1"))[0][0]
                =~ /^[1t]/, 1, 'and will be tried again');
            my ($before) = sql('SELECT message_id FROM email ORDER BY id DESC LIMIT 1');
            $sink = start_sink($direct, '-d', "$folder/sunk.");
            attempt_now($order);
            is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{attempts}, 2,
                'it is sent at the second attempt';
            wait_for(sub { grep { (MDL::Test::slurp($_) // '') =~ /^Message-ID: /mi }
                glob "$folder/sunk.*" }, 60, 'what has arrived');
            stop_sink($sink);
            my @sunk = glob "$folder/sunk.*";
            is scalar(@sunk), 1, 'it arrives once';
            like MDL::Test::slurp($sunk[0]) // '', qr/^Message-ID: <\Q$before->[0]\E>/mi,
                'with the same Message-ID';
            unlink @sunk;
        }
    };
}

# --- what a shop's staff are told ----------------------------------------------------------------

subtest 'the owners of a shop are told that a webhook endpoint was switched off' => sub {
    configure(DownloadsSettingsURL => 'https://downloads.example.com/settings',
        DownloadsAPIURL => 'https://downloads.example.com/api/v1');
    httpd_graceful();
    my $shop = new_shop(name => '店 & <b>');
    ctl('shop', 'set', $shop->{shop_id}, '--email', 'shop@buyer.test');
    my %member = ('ada@buyer.test' => 'owner', 'ben' => 'owner', 'eve@buyer.test' => 'staff');
    ctl('member', 'add', $_, $member{$_}, '--shop', $shop->{shop_id}) for sort keys %member;
    confirm($_) for 'ada@buyer.test', 'shop@buyer.test';
    my $url = "http://localhost:$direct/a&b?c=%3Cd%3E"; # where nobody listens
    my $endpoint = switched_off($shop, $url);
    my $path = arrived('ada@buyer.test');
    my $mail = read_by_both($path);
    is $mail->{headers}{subject}, "A webhook endpoint is switched off: shop $shop->{shop_id}",
        'the subject has no word of the shop';
    my ($text, $html) = map { $_->{text} } @{ $mail->{parts} };
    like $text, qr/endpoint of 店 & <b> has/, 'which the text names';
    like $text, qr/^\Q$url\E$/m, 'it has the URL';
    like $text, qr/^It has failed since \d+ \w+ 20\d\d, \d\d:\d\d UTC\./m, 'since when it fails';
    like $text, qr/last attempt: localhost refuses connections on that port\.$/m, 'and how';
    my $page = "https://downloads.example.com/settings/$shop->{shop_id}/webhooks/$endpoint->{id}";
    like $text, qr/^\Q$page\E$/m, 'and the address of its page';
    like $html,
        qr{<code[^>]*>http://localhost:$direct/a&amp;b\?c=%3Cd%3E</code>.*href="\Q$page\E"}s,
        'so has the HTML, escaped';
    wait_for(sub { (sql('SELECT count(*) FROM staff_email'))[0][0] == 0 }, 10,
        'the email to be gone');
    is scalar(my @once = $postfix->delivered('buyers/', 'ada@buyer.test')), 1, 'it is sent once';
    is((sql("SELECT count(*) FROM job WHERE shop_id = $shop->{shop_id} "
        . "AND type = 'staff_email'"))[0][0], 3,
        'and to the owner with an address alone, not to that of the shop: the others have asked');
    is_deeply api('GET', '/jobs', key => $shop->{token})->{json}{data}, [],
        'which is no job that the shop sees';
};

subtest 'the owners of a shop are told that license keys run low, once a day at most' => sub {
    configure(DownloadsSettingsURL => 'https://downloads.example.com/settings',
        DownloadsAPIURL => 'https://downloads.example.com/api/v1');
    httpd_graceful();
    my $shop = new_shop(name => 'Low & Co');
    ctl('member', 'add', 'low@buyer.test', 'owner', '--shop', $shop->{shop_id});
    confirm('low@buyer.test');
    my $call = sub {
        my ($path, $json) = @_;
        return api('POST', $path, key => $shop->{token}, json => $json)->{json};
    };
    my $tag = $call->('/license-key-tags', { name => 'Pro & <b>', low_stock_threshold => 1 })->{id};
    $call->("/license-key-tags/$tag/keys", { keys => [qw(A B C)] });
    my $product = mapping_of($shop, [], license_key_tag_ids => [$tag])->{storefront_product_id};
    my $queued = sub {
        (sql("SELECT count(*) FROM job WHERE shop_id = $shop->{shop_id} "
            . "AND type = 'staff_email'"))[0][0] - 1;
    };
    assign($shop, digits(), [$product]);
    is $queued->(), 0, 'two of three are enough';
    assign($shop, digits(), [$product]);
    my $mail = read_by_both(arrived('low@buyer.test'));
    is $mail->{headers}{subject}, "License keys run low: shop $shop->{shop_id}",
        'the subject has no word of the shop';
    my ($text, $html) = map { $_->{text} } @{ $mail->{parts} };
    my $low = 'license keys Pro & <b> of Low & Co has fallen to your threshold of 1: '
        . 'one is left\.';
    like $text, qr/$low$/m,
        'the text';
    like $text, qr{^https://downloads\.example\.com/settings/$shop->{shop_id}/$}m,
        'with the address of the settings';
    like $html, qr{<bdi>Pro &amp; &lt;b&gt;</bdi>}, 'the HTML is escaped';
    assign($shop, digits(), [$product]);
    $call->("/license-key-tags/$tag/keys", { keys => [qw(D E)] });
    assign($shop, digits(), [$product]);
    is $queued->(), 1, 'down to the threshold again on the same day: no second email';
    sql("UPDATE license_key_tag SET warned_at = warned_at - 86400000000 WHERE id = $tag");
    $call->("/license-key-tags/$tag/keys", { keys => ['F'] });
    assign($shop, digits(), [$product]);
    is $queued->(), 2, 'a day later there is';
    my ($key) = grep { $_->{license_key} eq 'F' } @{ api('GET',
        "/license-key-tags/$tag/keys?status=available", key => $shop->{token})->{json}{data} };
    my $events = sub { scalar grep { $_->{type} eq 'license_key.low' }
        @{ api('GET', '/events?limit=100', key => $shop->{token})->{json}{data} } };
    wait_for(sub { $events->() == 3 }, 10, 'three events');
    $call->("/license-key-tags/$tag/keys", { keys => ['G'] });
    is api('DELETE', "/license-key-tags/$tag/keys/$key->{id}", key => $shop->{token})->{status},
        204, 'a key is deleted';
    wait_for(sub { $events->() == 4 }, 10, 'a fourth event');
    is $queued->(), 2, 'which is an event, too';
};

subtest 'a shop whose owners have no address is told at its own' => sub {
    configure();
    httpd_graceful();
    my $shop = new_shop();
    ctl('shop', 'set', $shop->{shop_id}, '--email', 'shop-staff@buyer.test');
    ctl('member', 'add', 'ben', 'owner', '--shop', $shop->{shop_id});
    confirm('shop-staff@buyer.test');
    switched_off($shop, "http://localhost:$direct/");
    my $mail = read_by_both(arrived('shop-staff@buyer.test'));
    like $mail->{parts}[0]{text}, qr/has them\.\n\z/,
        'without the address of a page where there are no settings';
};

$server->stop;
$postfix->stop;
done_testing;
