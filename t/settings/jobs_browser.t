# Ten jobs of a shop's staff in Chromium, each with the least that a person has to do: every click
# is counted, and every page that loads. A click is a press of a button, a link, a box or a fold, or
# the choice of a file; typing is none. A job begins on the overview, or on the order's page if it
# says so, and finds its way by what a person reads there, never by an address.
#
# once: the jobs' forms have suites that are run on both databases
# long: it has a browser
use strict;
use warnings;
use utf8;

use JSON::PP;
use MDL::Browser;
use MDL::Contract;
use MDL::Receiver;
use MDL::Settings;
use MDL::Target qw(logs_dir);
use MDL::Test;
use Test::More;

# Beside our clicks and pages: the clicks of the shortest way that a help page of others describes,
# counted in the same manner. Where it is silent about a step, that is not counted.
my @JOBS = (
    [ 'the first file, to the first email' => 6, 5, 'not documented as one job' ],
    [ 'from the order: the access has ended' => 1, 1,
        '3, Alva: menu, Reset download limits, Resend email (a)' ],
    [ 'from the order: the email is lost' => 2, 1,
        '2, Alva: Resend Download Email, Confirm Resend (b)' ],
    [ '500 license keys' => 4, 4,
        '5, SendOwl: Products, the product, manage license keys, Add licenses, '
            . 'Add license keys (c)' ],
    [ 'a new version of a file' => 4, 3,
        '4, Payhip: Products, Edit, the file, Save Changes (d)' ],
    [ 'a wrong address, for good' => 2, 2,
        '5, Gumroad: Sales, the customer, Edit, Save, Resend Receipt; for one order (e)' ],
    [ 'a new member' => 3, 3,
        '4, Gumroad: Settings, Team, a role, Send Invitation (f)' ],
    [ 'why a webhook fails' => 1, 1, 'not documented' ],
    [ 'an order that is held' => 2, 2,
        '2, Alva: Flagged Orders, Approve; the reasons are in the storefront (g)' ],
    [ 'an order by hand' => 4, 3,
        '6, Easy Digital Downloads: Downloads, Payment History, Create Payment, the product, '
            . 'the box of the receipt, the button (h)' ],
    [ 'a copy of a product' => 4, 3, 'not documented' ],
);

# (a) www.alvadigitaldownloads.com/help/customer-downloads/reset-download-limits-for-a-customer.html
# (b) alva-digital-downloads-help.pages.dev/email/manual-email-resend
# (c) help.sendowl.com/help/how-do-i-add-a-license-code-to-a-completed-order
# (d) help.payhip.com/article/208-customer-did-not-receive-email
# (e) help.gumroad.com/article/54-not-receiving-updates.html
# (f) blogiestools.com/invite-team-members-to-gumroad-account
# (g) www.alvadigitaldownloads.com/help/fraud-and-security/
#     approve-or-reject-a-flagged-order-from-the-fraud-queue.html
# (h) docs.easydigitaldownloads.com/article/386-manually-creating-purchases

my $true   = JSON::PP::true();
my $server = settings_server(extra => "DownloadsUploadURL http://127.0.0.1:\@port\@/u\n");
my $shop   = new_shop(name => 'Books & Bytes');
my %key    = (key => $shop->{token});
my $home   = origin() . "/settings/$shop->{shop_id}";
told('member', 'add', 'owner', 'owner', '--shop', $shop->{shop_id});

my $browser = MDL::Browser->new;
my ($clicks, $loads, $page);

sub does
{
    my ($do, %task) = @_;
    $page = $browser->task('owner', $do, %task);
    die "$page->{failed}\n" if $page->{failed};
    $loads += $page->{loads} // 0;
    return $page;
}

sub click
{
    my ($role, $name) = @_;
    $clicks++;
    return does('click', role => $role, name => $name);
}

sub choose
{
    my ($label, $name, $bytes) = @_;
    my $path = logs_dir() . "/$name";
    open my $out, '>:raw', $path or die "$path: $!\n";
    print $out $bytes;
    close $out or die "$path: $!\n";
    $clicks++;
    return does('choose', label => $label, path => $path);
}

sub type { my (%values) = @_; return does('fill', values => \%values) }

sub says { my ($words, $name) = @_; return like($page->{text}, $words, $name) }

# Does the next job of the table, from a page below the shop's.
sub job
{
    my ($name, $from, $do) = @_;
    my ($expected, $clicked, $loaded) = @{ shift @JOBS };
    is($name, $expected, "the next job: $expected");
    does('open', url => "$home/$from");
    ($clicks, $loads) = (0, 0);
    $do->();
    is($clicks, $clicked, "$name: clicks");
    is($loads, $loaded, "$name: pages");
    return;
}

sub of_api { return api('GET', $_[0], %key)->{json} }

# Makes an order of a product by the API; with an address the email is waited for.
sub ordered
{
    my ($number, $product, $email, %members) = @_;
    my $reply = assign($shop, $number, [$product], storefront_customer_id => "$number",
        customer => { email => $email }, send_email => $true, %members);
    die "assign: $reply->{status} $reply->{body}\n" if $reply->{status} != 201;
    return if exists $members{send_email};
    wait_mail($email, 60);
    wait_for(sub { of_api("/orders/$number")->{email}{status} eq 'sent' }, 60, 'the sent email');
    return;
}

# What has changed since a mail, at the same address: waits for one more.
sub one_more_mail
{
    my ($email) = @_;
    return wait_for(sub { my @mails = mails($email); $mails[1] }, 60, "a second email to $email");
}

does('open', url => $home =~ s{://}{://owner:secret\@}r . '/');

job('the first file, to the first email', '', sub {
    click('link', 'Upload the first file');
    choose('Drop files here, or choose them', 'first-book.pdf', 'the book');
    # Before its check is over, the page of a file renews itself.
    wait_for(sub { grep { $_->{status} eq 'ready' } @{ of_api('/assets')->{data} } }, 60,
        'the file');
    click('link', 'See the file');
    type('Product number in the storefront' => '1018', 'Title' => 'The first book');
    click('button', 'Sell it as this product');
    click('link', 'Make an order by hand');
    type('Email address of the customer' => 'first@buyer.example');
    click('button', 'Create the order');
});
says(qr/The order is there.*The customer can download/s, 'the page says so');
my ($url) = grep { m{/d/} } @{ wait_mail('first@buyer.example', 60)->{urls} };
like(page('GET', $url)->{body}, qr/Download<[^\n]*first-book\.pdf/,
    'the email leads to the file');
my ($first) = @{ of_api('/mappings')->{data} };
my $product = $first->{storefront_product_id};

ordered(5001, $product, 'late@buyer.example');
sql('UPDATE assignment SET expires_at = created_at + 1 WHERE order_id = '
    . "(SELECT id FROM orders WHERE storefront_order_id = '5001')");
job('from the order: the access has ended', 'orders/5001', sub {
    says(qr/The customer can’t download.*ended/s, 'the page says why');
    my ($button) = $page->{text} =~ /^(Extend to .* and email the customer)$/m;
    click('button', $button);
});
one_more_mail('late@buyer.example');
like(page('GET', of_api('/orders/5001')->{download_page_url})->{body}, qr/Download</,
    'the customer can download again');

ordered(5002, $product, 'lost@buyer.example');
job('from the order: the email is lost', 'orders/5002', sub {
    says(qr/The customer can download/, 'nothing is wrong');
    click('summary', 'Send the email again');
    click('button', 'Send it');
});
one_more_mail('lost@buyer.example');

my $tag = api('POST', '/license-key-tags', %key, json => { name => 'Pro licenses' })->{json};
job('500 license keys', '', sub {
    click('link', 'Products');
    click('link', 'License keys');
    click('link', 'Pro licenses');
    type('Keys, one on each line' => join "\n", map { "PRO-$_-" . $_ * 7919 } 1 .. 500);
    click('button', 'Add keys');
});
says(qr/500 keys were added/, 'the page says so');
is(of_api("/license-key-tags/$tag->{id}")->{available}, 500, 'as does the API');

job('a new version of a file', '', sub {
    click('link', 'Files');
    click('link', 'first-book.pdf');
    click('link', 'Upload a new version');
    choose('Drop the file here, or choose it', 'first-book.pdf', 'the book, corrected');
});
wait_for(sub { of_api("/assets/$first->{file_ids}[0]")->{version} == 2 }, 60, 'version 2');
is(of_api("/assets/$first->{file_ids}[0]")->{size}, length 'the book, corrected',
    'which has the new bytes');

ordered(5003, $product, 'ada@gmial.example', storefront_customer_id => '78');
ordered(5004, $product, 'ada@gmial.example', storefront_customer_id => '78', send_email =>
        JSON::PP::false());
sql("UPDATE email SET bounced_at = created_at, last_error = '550 5.1.1 No such domain' "
    . "WHERE recipient = 'ada\@gmial.example'");
job('a wrong address, for good', '', sub {
    says(qr/Emails that did not arrive.*Order 5003.*No such domain/s, 'the overview has it');
    click('link', 'Order 5003');
    type('The right email address' => 'ada@gmail.example');
    click('button', 'Change the address');
});
wait_mail('ada@gmail.example', 60);
is(of_api("/orders/$_")->{customer}{email}, 'ada@gmail.example', "order $_ has the right address")
    for 5003, 5004;

job('a new member', '', sub {
    click('link', 'Settings');
    click('link', 'Members');
    type('Name' => 'ada@staff.example');
    click('button', 'Add the member');
});
is_deeply([ map { "$_->{user}: $_->{role}" }
        @{ told('member', 'list', '--shop', $shop->{shop_id}) } ],
    [ 'ada@staff.example: staff', 'owner: owner' ], 'who is of the staff');

my $receiver = MDL::Receiver->new;
$receiver->answers('hook', { status => 500, body => '{"error":"out of order"}' });
my $hook = $receiver->endpoint($shop, 'hook');
ordered(5005, $product, 'held@buyer.example');
# By its answer: one that came too late is none.
wait_for(sub { grep { $_->{response_status} } @{ of_api("/webhook-endpoints/$hook->{id}/deliveries")
    ->{data} } }, 60, 'a failure');
job('why a webhook fails', '', sub {
    click('link', $receiver->url('hook'));
    says(qr/500.*out of order/s, 'the page shows the answer');
});

held_by_check($shop, '5005');
job('an order that is held', '', sub {
    click('link', 'Order 5005');
    says(qr/The order is under review/, 'the page says why it is held');
    unlike($page->{text}, qr/Access is held/, 'and does not say it twice');
    click('button', 'Approve the order');
});
is(of_api('/orders/5005')->{access}{status}, 'active', 'which gives the access');

mapping_of($shop, [ $first->{file_ids}[0] ], title => 'Another book');
job('an order by hand', '', sub {
    click('link', 'Orders');
    click('link', 'New order');
    click('radio', 'The first book');
    type('Email address of the customer' => 'hand@buyer.example');
    click('button', 'Create the order');
});
wait_mail('hand@buyer.example', 60);

api('PATCH', "/mappings/$first->{id}", %key, json => { note => 'Read it aloud.', access_days => 9,
    download_limit => 3 });
job('a copy of a product', '', sub {
    click('link', 'Products');
    click('link', 'The first book');
    click('summary', 'Copy it to a new product');
    type('Product number in the storefront' => '2018', 'Title of the copy' => 'The second book');
    click('button', 'Make the copy');
});
my ($copy) = @{ of_api('/mappings?storefront_product_id=' . $product =~ s/1018/2018/r)->{data} };
is_deeply([ @$copy{qw(title note access_days download_limit file_ids)} ],
    [ 'The second book', 'Read it aloud.', 9, 3, $first->{file_ids} ],
    'which has all but number and title');

is_deeply(\@JOBS, [], 'that was the last');
$browser->stop;
done_testing;
