# The fraud check of orders (contract, section 6): each signal at its threshold and one below, each
# level at which a shop can hold orders, and what a held order gives until it is approved or
# rejected.
#
# The wait for the storefront's answer is in t/unit/fraud.c, the syntax of the files of domains in
# t/unit/domains.c.
#
# both: the database counts
# long: it waits for its counts to age
use strict;
use warnings;

use JSON::PP;
use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true(), JSON::PP::false());

use constant { WINDOW => 7200, CUSTOMER => 2, ADDRESS => 3, IP => 4 };

my $server = MDL::Instance->new(mpm => 'event');
my %list = map { $_ => "$server->{folder}/$_.domains" } qw(disposable blocked);

sub write_list
{
    my ($name, @lines) = @_;
    MDL::Instance::write_file("$list{$name}.new", join '', map { "$_\n" } @lines);
    rename "$list{$name}.new", $list{$name} or die "$list{$name}: $!";
    return;
}

write_list(disposable => '# thrown away', 'trash.example', 'not a domain', 'Bin.Example # too');
write_list(blocked    => 'blocked.example');
# Two processes from the start, and no other: one that began after a list was removed would never
# have read it.
$server->configure(extra => join "\n", 'ServerLimit 2', 'MaxRequestWorkers 64',
    'DownloadsFraudWindow ' . WINDOW,
    'DownloadsFraudCustomerOrders ' . CUSTOMER, 'DownloadsFraudAddressOrders ' . ADDRESS,
    'DownloadsFraudIPOrders ' . IP, "DownloadsFraudDisposableDomains $list{disposable}",
    "DownloadsFraudBlockedDomains $list{blocked}", '');
$server->start;

my $unique = 0;

sub address { return 'buyer-' . ++$unique . '@' . ($_[0] // 'mail.example') }
sub ip      { return '10.' . join '.', map { ++$unique >> $_ & 255 } 16, 8, 0 }

# A shop with a product that has a file and a license key: { token, product, file }.
sub shop
{
    my (%opt) = @_;
    my $shop = new_shop();
    my $tag  = api('POST', '/license-key-tags', key => $shop->{token}, json => { name => 'Keys' })
        ->{json}{id};
    api('POST', "/license-key-tags/$tag/keys", key => $shop->{token},
        json => { keys => [ map { "KEY-$shop->{shop_id}-$_" } 1 .. 200 ] });
    $shop->{tag}     = $tag;
    $shop->{asset}   = ready_asset($shop, "fraud-$shop->{shop_id}.txt", "what was bought\n");
    $shop->{product} = mapping_of($shop, [ $shop->{asset}{id} ], license_key_tag_ids => [$tag])
        ->{storefront_product_id};
    hold_at($shop, $opt{hold_at}) if $opt{hold_at};
    return $shop;
}

sub hold_at
{
    my ($shop, $level) = @_;
    my ($code, undef, $output) = ctl('shop', 'set', $shop->{shop_id}, '--hold-at', $level);
    die "shop set ended with $code: $output\n" if $code != 0;
    return;
}

# Assigns the shop's product to a new order, or to the one that id names, and returns the order.
sub ordered
{
    my ($shop, %opt) = @_;
    my $id = delete $opt{id} // digits();
    my $customer = delete $opt{customer} // digits();
    my $email    = exists $opt{email} ? delete $opt{email} : address();
    my $reply = assign($shop, $id, [ $shop->{product} ], storefront_customer_id => $customer,
        customer => { defined $email ? (email => $email) : () }, %opt);
    die "the order was answered with: $reply->{status} $reply->{body}\n"
        if $reply->{status} !~ /^20[01]$/;
    return $reply->{json};
}

sub checked { my ($shop, %opt) = @_; return ordered($shop, fraud_check => $true, %opt) }

sub read_order
{
    my ($shop, $id) = @_;
    return api('GET', "/orders/$id", key => $shop->{token})->{json};
}

sub act
{
    my ($shop, $order, $action, %members) = @_;
    return api('POST', "/orders/$order->{storefront_order_id}/$action", key => $shop->{token},
        json => \%members);
}

# "decision level code:level …"
sub outcome
{
    my ($order) = @_;
    my $fraud = $order->{fraud};
    return join ' ', $fraud->{decision}, $fraud->{level} // '-',
        map { "$_->{code}:$_->{level}" } @{ $fraud->{signals} };
}

sub messages
{
    my ($order) = @_;
    return join ' ', map { $_->{message} } @{ $order->{fraud}{signals} };
}

sub events
{
    my ($shop, $order) = @_;
    return reverse @{ read_order($shop, $order->{storefront_order_id})->{events} };
}

sub row_of
{
    my ($shop, $order) = @_;
    return "shop_id = $shop->{shop_id} AND storefront_order_id = '$order->{storefront_order_id}'";
}

sub older
{
    my ($shop, $seconds) = @_;
    sql("UPDATE orders SET created_at = created_at - ${seconds}000000 "
        . "WHERE shop_id = $shop->{shop_id}");
    return;
}

# --- orders in a window --------------------------------------------------------------------------

# What orders can share, and how the signal's message calls it.
my @shared = (
    [ 'customer_orders', CUSTOMER,
        sub { my $id = digits(); sub { (customer => $id, email => undef) } }, 'of this customer' ],
    [ 'address_orders', ADDRESS,
        sub { my $email = address(); my $n = 0; sub { (email => $n++ % 2 ? $email : uc $email) } },
        'with this email address' ],
    [ 'ip_orders', IP, sub { my $ip = ip(); sub { (client_ip => $ip) } }, 'from this IP address' ],
    [ 'ip_orders', IP,
        sub { my $ip = ip(); my $n = 0; sub { (client_ip => $n++ % 2 ? $ip : "::ffff:$ip") } },
        'from this IP address' ],
    [ 'ip_orders', IP, sub { my $n = 0; sub { (client_ip => sprintf '2001:db8:7:7:%x::1', ++$n) } },
        'from this IP address' ],
);

for my $way (@shared) {
    my ($code, $number, $make, $whose) = @$way;
    subtest "$code: medium at $number, high at twice that" => sub {
        my $shop = shop();
        my $same = $make->();
        my $last;
        for my $others (0 .. 2 * $number) {
            my $order = checked($shop, $same->());
            my $level = $others < $number ? 'none' : $others < 2 * $number ? 'medium' : 'high';
            my $decision = $level eq 'high' ? 'held' : 'passed';
            is(outcome($order), "$decision $level" . ($level eq 'none' ? '' : " $code:$level"),
                "after $others others");
            is_shape($order, 'order', "after $others others: the order");
            my $count = $others == 2 * $number ? "$others or more" : $others;
            is(messages($order), "$count other orders $whose in the last 2 hours.",
                'the message has the number')
                if $others >= $number;
            $last = $order;
        }
        is($last->{access}{status}, 'held', 'the last order is held');
        is(outcome(checked($shop, $same->(), id => $last->{storefront_order_id},
            customer => $last->{customer}{storefront_customer_id})), "held high $code:high",
            'a second assignment does not count its own order');
        my $stranger = shop();
        is(outcome(checked($stranger, $same->())), 'passed none',
            "another shop's orders do not count");
        older($shop, WINDOW - 600);
        is(outcome(checked($shop, $same->())), "held high $code:high",
            'orders within the window count');
        older($shop, 601);
        is(outcome(checked($shop, $same->())), 'passed none', 'older ones do not')
            or diag(explain([ sql("SELECT id, created_at, client_ip FROM orders "
                . "WHERE shop_id = $shop->{shop_id}") ]));
    };
}

subtest 'other addresses of the same network do not count' => sub {
    my $shop = shop();
    ordered($shop, client_ip => '10.1.1.1')       for 1 .. IP;
    ordered($shop, client_ip => '2001:db8:1:1::1') for 1 .. IP;
    is(outcome(checked($shop, client_ip => $_)), 'passed none', $_)
        for '10.1.1.10', '10.1.1.2', '2001:db8:1:2::1';
    is(outcome(checked($shop)), 'passed none', 'an order without an address');
    is(outcome(checked($shop, client_ip => '10.1.1.1')), 'passed medium ip_orders:medium',
        'the address itself');
};

subtest 'an order gets its IP address later, and keeps it' => sub {
    my $shop = shop();
    my $ip   = ip();
    ordered($shop, client_ip => $ip) for 1 .. IP;
    my $order = checked($shop);
    my @same  = (id => $order->{storefront_order_id},
        customer => $order->{customer}{storefront_customer_id});
    is(outcome($order), 'passed none', 'none at first');
    is(outcome(checked($shop, @same, client_ip => $ip)), 'passed medium ip_orders:medium',
        'then it counts');
    is(outcome(checked($shop, @same, client_ip => undef)), 'passed medium ip_orders:medium',
        'and stays');
    my ($row) = sql('SELECT client_ip FROM orders WHERE ' . row_of($shop, $order));
    is($row->[0], $ip, 'it is stored');
    unlike(api('GET', "/orders/$order->{storefront_order_id}", key => $shop->{token})->{body},
        qr/\Q$ip\E/, 'but not shown');
};

subtest 'anything but an IP address is refused' => sub {
    my $shop = shop();
    unstored();
    refused(assign($shop, digits(), [ $shop->{product} ], client_ip => $_), 400, 'invalid_request',
        "'$_'", '/client_ip')
        for '1.2.3', '1.2.3.256', '1.2.3.4.5', '1.2.3. 4', '1.2.3.4:80', '[::1]',
        'fe80::1%eth0', 'g::1', 'localhost', '::' . '0' x 50;
    refused(assign($shop, digits(), [ $shop->{product} ], client_ip => 16909060), 400,
        'invalid_request', 'a number', '/client_ip');
};

# --- orders that were revoked or rejected --------------------------------------------------------

subtest 'revoked_orders: one is medium, two are high' => sub {
    my $shop = shop();
    my @with = (customer => digits());
    my @orders = map { ordered($shop, @with) } 1 .. 3;
    older($shop, 10 * WINDOW);
    is(outcome(checked($shop, @with)), 'passed none', 'none');
    act($shop, $orders[0], 'revoke');
    my $order = checked($shop, @with);
    is(outcome($order), 'passed medium revoked_orders:medium', 'one, however old');
    is(messages($order), '1 other order of this customer was revoked or rejected.',
        'the message says so');
    sql("UPDATE orders SET access_status = 'rejected' WHERE " . row_of($shop, $orders[1]));
    older($shop, 10 * WINDOW);
    $order = checked($shop, @with);
    is(outcome($order), 'held high revoked_orders:high', 'two, one of them rejected');
    is(messages($order), '2 or more other orders of this customer were revoked or rejected.',
        'the message says so');
    act($shop, $order, 'reject');
    is(outcome(checked($shop)), 'passed none', 'another customer is not affected');
    act($shop, $orders[0], 'restore');
    sql("UPDATE orders SET access_status = 'active' WHERE " . row_of($shop, $orders[1]));
    older($shop, 10 * WINDOW);
    is(outcome(checked($shop, @with)), 'passed medium revoked_orders:medium',
        'restored orders do not count');
};

# --- levels and holds ----------------------------------------------------------------------------

for my $hold_at (qw(medium high)) {
    my $shop = shop(hold_at => $hold_at);
    my %held = (medium => $hold_at eq 'medium', high => 1);
    for my $risk (qw(none low medium high)) {
        my $order = ordered($shop);
        is(outcome($order), 'not_checked -',
            "held at $hold_at: without fraud_check nothing is checked");
        sql("UPDATE orders SET storefront_risk = '$risk' WHERE " . row_of($shop, $order));
        $order = checked($shop, id => $order->{storefront_order_id},
            customer => $order->{customer}{storefront_customer_id});
        my $signal = $risk eq 'none' ? '' : " storefront_risk:$risk";
        is(outcome($order), ($held{$risk} ? 'held' : 'passed') . " $risk$signal",
            "held at $hold_at: a risk of $risk");
        is($order->{access}{status}, $held{$risk} ? 'held' : 'active',
            'the access follows from it');
        is(messages($order),
            $risk eq 'none' ? '' : "The storefront rates the order's risk as $risk.",
            'the message names the storefront');
    }
}

subtest 'the highest of several signals counts, and each is named' => sub {
    my $shop = shop(hold_at => 'medium');
    my $ip   = ip();
    my @with = (customer => digits(), email => address('sub.trash.example'), client_ip => $ip);
    act($shop, ordered($shop, @with), 'revoke');
    ordered($shop, @with) for 1 .. 3;
    my $order = checked($shop, @with);
    is(outcome($order), 'held high customer_orders:high address_orders:medium ip_orders:medium'
        . ' revoked_orders:medium disposable_domain:medium', 'five signals');
    my $told = api('GET', "/orders/$order->{storefront_order_id}/diagnosis", key => $shop->{token})
        ->{json};
    is($told->{first_failure}, 'fraud', 'the diagnosis fails at the fraud check');
    my ($check) = grep { $_->{name} eq 'fraud' } @{ $told->{checks} };
    is($check->{message}, 'The order is under review: approve or reject it. ' . messages($order),
        'and quotes the signals');
    act($shop, $order, 'approve');
    $told = api('GET', "/orders/$order->{storefront_order_id}/diagnosis", key => $shop->{token})
        ->{json};
    is($told->{first_failure}, undef, 'once it is approved nothing fails');
    is(outcome(read_order($shop, $order->{storefront_order_id})),
        outcome($order) =~ s/held/approved/r, 'the signals stay on the order');
};

# --- files of domains ----------------------------------------------------------------------------

# How many processes have answered the requests for these orders since an offset of the access log,
# by the last field of its lines.
sub answered_by
{
    my ($offset, @ids) = @_;
    my $answered = wait_for(sub {
        open my $in, '<', logs_dir() . '/access_log' or die "access_log: $!";
        seek $in, $offset, 0;
        my %by = map { m{/orders/(\d+)/assignments .* (\d+)$} ? ($1 => $2) : () } <$in>;
        return (grep { !$by{$_} } @ids) ? undef : { map { $by{$_} => 1 } @ids };
    }, 60, 'the lines of the access log');
    return scalar keys %$answered;
}

subtest 'domains' => sub {
    my $shop = shop();
    my $order = checked($shop, email => address('Trash.Example'));
    is(outcome($order), 'passed medium disposable_domain:medium', 'a disposable domain');
    is(messages($order), 'Email addresses of Trash.Example are thrown away after use.',
        'the message names the domain');
    is(outcome(checked($shop, email => address('a.bin.example'))),
        'passed medium disposable_domain:medium', 'a subdomain of a disposable domain');
    is(outcome(checked($shop, email => address('nottrash.example'))), 'passed none',
        'another domain with the same ending');
    $order = checked($shop, email => address('blocked.example'));
    is(outcome($order), 'held high blocked_domain:high', 'a blocked domain');
    is(messages($order), 'The domain blocked.example of the email address is blocked.',
        'the message names the domain');
    is(outcome(checked($shop, email => undef)), 'passed none', 'an order without an address');
};

subtest 'the files are read again when they change' => sub {
    my $shop  = shop();
    my $next  = 720_000;
    # How many processes have answered eight requests at once, if all got that outcome. Each reads
    # the list itself, when it is asked.
    my $seen = sub {
        my ($domain) = @_;
        return sub {
            my ($wanted) = @_;
            my @ids = map { '' . $next++ } 1 .. 8;
            my $log = -s logs_dir() . '/access_log';
            my @got = parallel(8, sub {
                my $id = $ids[ $_[0] ];
                return { is => outcome(checked($shop, id => $id, customer => $id,
                    email => "buyer-$id\@$domain", patient => 1)) };
            });
            return 0 if grep { ($_->{is} // '') ne $wanted } @got;
            return answered_by($log, @ids);
        };
    };
    my ($fresh, $blocked) = ($seen->('fresh.example'), $seen->('blocked.example'));
    ok($fresh->('passed none'), 'a domain that is not listed passes');
    write_list(blocked => 'other.example', 'fresh.example');
    ok(wait_for(sub { $fresh->('held high blocked_domain:high') == 2 }, 60, 'the new list'),
        'it is blocked once it is listed');
    ok(wait_for(sub { $blocked->('passed none') }, 60, 'the new list'),
        'a domain that was removed from the list passes');
    my $offset = error_log_size();
    unlink $list{blocked};
    wait_for(sub {
        $fresh->('held high blocked_domain:high') && error_log_since($offset) =~ /MDL0381/;
    }, 60,
        'a warning that the list is gone');
    ok($fresh->('held high blocked_domain:high'),
        'if the file is missing the last list stays in force');
    write_list(blocked => 'blocked.example');
    ok(wait_for(sub { $fresh->('passed none') && $blocked->('held high blocked_domain:high') }, 60,
        'the first list'),
        'until the file is back');
};

subtest 'a line that is not a domain is reported with file and line' => sub {
    my @lines = MDL::Test::slurp(error_log()) =~ /(MDL0380: .*)/g;
    is_deeply([ map { s/ \S*MDL\S* .*//r } @lines ],
        ["MDL0380: $list{disposable}:3: this line is no domain and is passed over"],
        'once, when the file is read');
};

# --- held orders ---------------------------------------------------------------------------------

# A held order of a customer whose email address is of a blocked domain.
sub held
{
    my ($shop, %opt) = @_;
    my $order = checked($shop, email => address('blocked.example'), send_email => $true, %opt);
    die 'the order is not held: ' . outcome($order) . "\n" if $order->{access}{status} ne 'held';
    return $order;
}

sub page_of { my ($order) = @_; return page('GET', $order->{download_page_url}) }

sub button
{
    my ($order, $shop) = @_;
    return page('POST', $order->{download_page_url},
        form => { file => "$order->{assignments}[0]{id}-$shop->{asset}{id}" });
}

sub urls
{
    my ($shop, $order) = @_;
    my ($id, $assignment) = ($order->{storefront_order_id}, $order->{assignments}[0]{id});
    return api('GET', "/orders/$id/assignments/$assignment/download-urls", key => $shop->{token});
}

sub gives_nothing
{
    my ($shop, $order, $words, $code, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $page = page_of($order);
    is($page->{status}, 200, "$name: the page opens");
    like($page->{body}, $words, "$name: it says why");
    unlike($page->{body}, qr/KEY-|\Q$shop->{asset}{filename}\E|name="(?:file|zip)"|blocked_domain/,
        "$name: and shows nothing else");
    is(button($order, $shop)->{status}, 403, "$name: the button is refused");
    is_error(urls($shop, $order), 409, $code, "$name: addresses of files");
    is_deeply([ mails($order->{customer}{email}) ], [], "$name: no email was sent");
    my $now = read_order($shop, $order->{storefront_order_id});
    is_deeply([ @{ $now->{assignments}[0] }{qw(license_keys license_keys_pending)} ], [ [], 1 ],
        "$name: no license key was given");
    return $now;
}

sub gives_all
{
    my ($shop, $order, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $mail = wait_mail($order->{customer}{email});
    ok(scalar(grep { $_ eq $order->{download_page_url} } @{ $mail->{urls} }),
        "$name: the email has the page");
    my $now = read_order($shop, $order->{storefront_order_id});
    my $key = $now->{assignments}[0]{license_keys}[0];
    like($key, qr/^KEY-/, "$name: there is a license key");
    like(page_of($order)->{body}, qr/\Q$key\E/, "$name: on the page too");
    my $pressed = button($order, $shop);
    is($pressed->{status}, 303, "$name: the button works");
    is(page('GET', $pressed->{headers}{location})->{body}, "what was bought\n",
        "$name: to the file");
    wait_for(sub { read_order($shop, $order->{storefront_order_id})->{email}{status} eq 'sent' },
        60, 'the email');
    is(scalar(() = mails($order->{customer}{email})), 1, "$name: one email");
    return $now;
}

subtest 'an order that is held, then approved' => sub {
    my $shop  = shop();
    my $order = held($shop);
    is($order->{email}{status}, 'held', 'the email is held');
    is($order->{email}{to}, $order->{customer}{email}, 'for the customer');
    gives_nothing($shop, $order, qr/under review/, 'order_held', 'held');
    is_error(act($shop, $order, 'resend'), 409, 'order_held', 'to resend');
    is_error(act($shop, $order, 'restore'), 409, 'order_held', 'to restore');

    my $signals = $order->{fraud}{signals};
    is_deeply([ map { [ @{$_}{qw(action key_id details)} ] } events($shop, $order) ], [
        [ 'assigned', $shop->{key_id}, { send_email => $true, fraud_check => $true } ],
        [ 'fraud_held', $shop->{key_id}, { level => 'high', signals => $signals } ],
    ], 'the audit trail has the hold with its signals');

    my $told = api('GET', "/orders/$order->{storefront_order_id}/diagnosis", key => $shop->{token})
        ->{json};
    my ($mapping) = grep { $_->{name} eq 'mapping' } @{ $told->{checks} };
    is($mapping->{message}, '1 license key is handed out once access is given.',
        'the diagnosis does not ask for more keys');

    sql("UPDATE email SET created_at = 1700000000000000 WHERE id = (SELECT max(id) FROM email)");
    my $approved = act($shop, $order, 'approve', reason => 'a known customer');
    is_answer($approved, 200, 'approved');
    is(outcome($approved->{json}), 'approved high blocked_domain:high', 'the decision is approved');
    is($approved->{json}{access}{status}, 'active', 'the access is active');
    gives_all($shop, $order, 'approved');
    unlike(wait_mail($order->{customer}{email})->{headers}{date}, qr/2023/,
        'the date of the email is that of its release, not of the order');
    my ($event) = (events($shop, $order))[-1];
    is_deeply([ @{$event}{qw(action reason details)} ],
        [ 'approved', 'a known customer', { license_keys => 1 } ],
        'the audit trail has the approval');

    my @before = events($shop, $order);
    my $again = checked($shop, id => $order->{storefront_order_id},
        email => $order->{customer}{email},
        customer => $order->{customer}{storefront_customer_id}, send_email => $true);
    is(outcome($again), 'approved high blocked_domain:high',
        'an approved order stays approved in a later check');
    is_deeply([ events($shop, $order) ], \@before, 'without another event');
};

subtest 'an order that is held, then rejected' => sub {
    my $shop  = shop();
    my $order = held($shop);
    my $rejected = act($shop, $order, 'reject', reason => 'The card was stolen.');
    is(outcome($rejected->{json}), 'rejected high blocked_domain:high', 'the decision is rejected');
    my $now = gives_nothing($shop, $order, qr/not released.*The card was stolen\./s,
        'access_revoked', 'rejected');
    is($now->{access}{status}, 'rejected', 'the access is rejected');
    is_error(assign($shop, $order->{storefront_order_id}, [ $shop->{product} ],
        fraud_check => $true, storefront_customer_id => $order->{customer}{storefront_customer_id}),
        409, 'access_revoked', 'assigning more to it');
    is_error(act($shop, $order, 'restore'), 409, 'access_revoked', 'restoring it');
    act($shop, $order, 'approve');
    gives_all($shop, $order, 'rejected, then approved');
};

subtest 'an order that is held, then revoked and restored' => sub {
    my $shop  = shop();
    my $order = held($shop);
    act($shop, $order, 'revoke', reason => 'Refunded.');
    gives_nothing($shop, $order, qr/withdrawn.*Refunded\./s, 'access_revoked', 'revoked');
    act($shop, $order, 'restore');
    gives_nothing($shop, $order, qr/under review/, 'order_held', 'restored');
    act($shop, $order, 'revoke');
    act($shop, $order, 'approve');
    gives_nothing($shop, $order, qr/withdrawn/, 'access_revoked', 'approved while it is revoked');
    act($shop, $order, 'restore');
    gives_all($shop, $order, 'restored after the approval');
};

# --- checked again -------------------------------------------------------------------------------

subtest 'an order that passed is held by a later check' => sub {
    my $shop  = shop();
    my $order = checked($shop);
    my @same  = (id => $order->{storefront_order_id},
        customer => $order->{customer}{storefront_customer_id});
    my $key   = $order->{assignments}[0]{license_keys}[0];
    my $link  = button($order, $shop)->{headers}{location};
    is(outcome($order), 'passed none', 'it passes');
    is(outcome(checked($shop, @same, email => undef)), 'passed none',
        'a second check passes as well');
    is(outcome(ordered($shop, @same, email => address('blocked.example'))), 'passed none',
        'an assignment without fraud_check does not check it again');
    my $held = checked($shop, @same, email => undef);
    is(outcome($held), 'held high blocked_domain:high', 'one with fraud_check does');
    is($held->{access}{status}, 'held', 'and holds it');
    is(outcome(checked($shop, @same, email => undef)), 'held high blocked_domain:high',
        'a third check holds it as well');
    is(page('GET', $link)->{status}, 403, 'an earlier link is refused');
    unlike(page_of($order)->{body}, qr/\Q$key\E/, 'the page does not show the key');
    is(outcome(checked($shop, @same, email => address())), 'held high blocked_domain:high',
        'no later check releases it');
    is(outcome(ordered($shop, @same)), 'held high blocked_domain:high',
        'nor does an assignment without a check');
    is_deeply([ map { $_->{action} } events($shop, $order) ],
        [qw(assigned fraud_passed fraud_held)], 'the audit trail has each change');
    act($shop, $order, 'approve');
    is(page('GET', $link)->{status}, 200, 'once it is approved the link works again');
    like(page_of($order)->{body}, qr/\Q$key\E/, 'and the page shows the same key');
};

subtest 'products that are added to a held order wait too' => sub {
    my $shop  = shop();
    my $order = held($shop);
    my $more  = mapping_of($shop, [], license_key_tag_ids => [ $shop->{tag} ])
        ->{storefront_product_id};
    my $reply = assign($shop, $order->{storefront_order_id}, [$more], send_email => $true,
        storefront_customer_id => $order->{customer}{storefront_customer_id});
    is_answer($reply, 201, 'another product');
    is_deeply([ map { $_->{license_keys_pending} } @{ $reply->{json}{assignments} } ], [ 1, 1 ],
        'its key waits like the first one');
    is($reply->{json}{email}{status}, 'held', 'and so does the email');
    act($shop, $order, 'approve');
    gives_all($shop, $order, 'approved');
};

subtest 'a replayed request makes no check' => sub {
    my $shop = shop();
    my @with = (customer => digits(), idem => idem());
    my ($id, $email) = (digits(), address());
    my @same = (id => $id, email => $email, @with);
    my $order = checked($shop, @same);
    ordered($shop, customer => $with[1]) for 1 .. 2 * CUSTOMER;
    is_deeply(checked($shop, @same), $order, 'it gets the first answer');
    my $now = read_order($shop, $id);
    is(outcome($now), 'passed none', 'the order has not changed');
    is(scalar @{ $now->{events} }, 2, 'and has no more events');
    is(outcome(checked($shop, @same, idem => idem())),
        'held high customer_orders:high address_orders:medium', 'a new request does');
};

# --- many at once --------------------------------------------------------------------------------

sub tally
{
    my %count;
    $count{ $_->{is} // $_->{died} }++ for @_;
    return \%count;
}

# Fifty orders at once that share something: each counts the ones before it.
for my $way (@shared[ 0, 1, 2 ]) {
    my ($code, $number, $make) = @$way;
    my $shop = shop();
    my $same = $make->();
    my @told = parallel(50, sub {
        my ($i) = @_;
        my %order = (id => 700000 + $i, customer => '' . (700000 + $i),
            email => "at-once-$i\@mail.example", $same->(), patient => 1);
        return { is => outcome(checked($shop, %order)) };
    });
    is_deeply(tally(@told), {
        'passed none'               => $number,
        "passed medium $code:medium" => $number,
        "held high $code:high"      => 50 - 2 * $number,
    }, "$code: of fifty orders at once each counts the ones before it")
        or diag(explain(tally(@told)));
}

subtest 'fifty orders at once that share customers, addresses and IP addresses' => sub {
    my $shop = shop();
    my @replies = parallel(50, sub {
        my ($i) = @_;
        my $reply = assign($shop, 710000 + $i % 40, [ $shop->{product} ], fraud_check => $true,
            send_email => $true, storefront_customer_id => '' . (710000 + $i % 40 % 4),
            client_ip => '10.9.9.' . $i % 3,
            customer => { email => 'mixed-' . $i % 5 . '@mail.example' }, patient => 1);
        return { is => $reply->{status} };
    });
    is_deeply(tally(@replies), { 200 => 10, 201 => 40 }, 'all requests succeed');
    my ($row) = sql(
        "SELECT count(*), sum(CASE WHEN fraud_decision IN ('passed', 'held') THEN 1 ELSE 0 END)"
        . " FROM orders WHERE shop_id = $shop->{shop_id}");
    is_deeply($row, [ 40, 40 ], 'and each order is checked');
    my ($keys) = sql(
        "SELECT count(*) FROM license_key k JOIN assignment a ON a.id = k.assignment_id"
        . ' JOIN orders o ON o.id = a.order_id'
        . " WHERE o.shop_id = $shop->{shop_id} AND o.fraud_decision = 'held'");
    my ($held) = sql(
        "SELECT count(*) FROM orders WHERE shop_id = $shop->{shop_id} AND fraud_decision = 'held'");
    cmp_ok($held->[0], '>', 20, 'most are held');
};

done_testing();
