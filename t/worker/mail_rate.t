# Emails an hour of a shop (contract, section 10): those beyond wait for their turn, which their
# orders say, use up no attempt, and hold up no other shop's.
#
# both: the database counts
use strict;
use warnings;

use JSON::PP ();
use MDL::Contract;
use MDL::Instance;
use MDL::Mail;
use MDL::Target qw(slurp);
use MDL::Test;
use Test::More;
use Time::Local qw(timegm);

use constant RATE => 12;    # a turn each five minutes

my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\nDownloadsMailRate @{[RATE]}\n")
    ->start;
my $shop   = shop_with_product('Busy Shop');
my $other  = shop_with_product('Other Shop');

sub lines { return grep { /MDL0346/ } split /\n/, slurp(logs_dir() . '/error_log') }

sub waits { my ($email) = @_; return $email->{status} eq 'queued' && defined $email->{last_error} }

# When an email that waits says that it leaves.
sub leaves_at
{
    my ($email) = @_;
    my @at = $email->{last_error} =~ /leaves at (\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)/
        or return;
    return timegm(@at[ 5, 4, 3, 2 ], $at[1] - 1, $at[0]);
}

# The first email, from which turns count, leaves between these times.
my ($began, $left) = time;
my @orders = map { order_for($shop, "customer$_\@buyer.example") } 1 .. RATE + 3;
my @late   = @orders[ RATE .. $#orders ];

subtest 'as many as the shop may send leave at once, and the others wait' => sub {
    for my $order (@orders[ 0 .. RATE - 1 ]) {
        is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
            'an email';
        $left //= time + 1;
    }
    for my $i (0 .. $#late) {
        my $email = wait_email($shop, $late[$i], \&waits);
        is $email->{attempts}, 0, 'another uses up no attempt';
        my $at = leaves_at($email) - 300 * ($i + 1);
        cmp_ok $at, '>=', $began - 1, 'and says when it leaves,';
        cmp_ok $at, '<=', $left + 1, 'which is one turn behind the one before';
    }
    is scalar(lines()), 1, 'the log says it once';
    like((lines())[0], qr/shop $shop->{shop_id} /, 'and names the shop');
    my $check = api('GET', "/orders/$late[0]/diagnosis", key => $shop->{token});
    is_answer($check, 200, 'the diagnosis');
    like $check->{body}, qr/waits: The shop has sent as many emails/, 'says it, too';
};

subtest 'a resend waits, too' => sub {
    my $before = email_of($shop, $orders[0]);
    api('POST', "/orders/$orders[0]/resend", key => $shop->{token}, json => {});
    my $email = wait_email($shop, $orders[0], \&waits);
    cmp_ok leaves_at($email), '>=', $began + 300 * 4 - 1, 'behind the others';
    is scalar(lines()), 1, 'without another line';
};

sub other_is_sent
{
    my ($to) = @_;
    my $order = order_for($other, "$to\@buyer.example");
    return is wait_email($other, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
        "the other shop's email leaves";
}

subtest 'which holds up no other shop' => sub { other_is_sent('free') };

subtest 'what waits is not looked at before its turn' => sub {
    my $claims = "SELECT sum(lease_token) FROM job WHERE shop_id = $shop->{shop_id}";
    my ($before) = sql($claims);
    is_deeply [ (ctl('mail', 'flush'))[ 0, 1 ] ], [ 0, { flushed => 0 } ],
        'mail flush finds nothing that it may send';
    other_is_sent("meanwhile$_") for 1 .. 3;
    my ($after) = sql($claims);
    is $after->[0], $before->[0], 'no job was claimed with the three of the other shop';
};

subtest 'an email whose turn has come is sent' => sub {
    attempt_now($late[0]);
    my $email = wait_email($shop, $late[0], sub { $_[0]{status} eq 'sent' });
    is $email->{status}, 'sent', 'at once';
    is $email->{attempts}, 1, 'by its first attempt';
    is $email->{last_error}, undef, 'and nothing is left to say';
    ok waits(email_of($shop, $late[1])), 'the next goes on waiting';
};

subtest 'a restart loses none, and keeps their turns' => sub {
    httpd_graceful();
    other_is_sent('restarted');
    ok waits(email_of($shop, $_)), 'an email waits' for @late[ 1, 2 ];
    attempt_now($_) for @late[ 1, 2 ];
    is wait_email($shop, $_, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'and is sent'
        for @late[ 1, 2 ];
};

subtest 'emails about new versions take half at most, and only what orders leave' => sub {
    my $shop  = new_shop();
    my $asset = ready_asset($shop, "news-$$", 'one')->{id};
    my $of_shop = { %$shop, product => mapping_of($shop, [$asset])->{storefront_product_id} };
    assign($shop, digits(), [ $of_shop->{product} ], storefront_customer_id => digits(),
        customer => { email => "reader$_\@buyer.example" }) for 1 .. RATE / 2 + 2;
    my $reply = api('POST', "/assets/$asset/versions", key => $shop->{token},
        json => { source_url => source("news-$$-2", 'two'), notify => JSON::PP::true() });
    is $reply->{status}, 202, 'a new version is announced';
    my $news = sub {
        return (sql("SELECT count(*) FROM job WHERE type = 'news_email' "
            . "AND shop_id = $shop->{shop_id} AND $_[0]"))[0][0];
    };
    my $waiting = q{status = 'queued' AND validator IS NOT NULL AND attempts = 0};
    wait_for(sub { $news->($waiting) == 2 && $news->(q{status = 'succeeded'}) == RATE / 2 }, 30,
        'half of the rate to leave, and the others to wait');
    my @orders = map { order_for($of_shop, "buyer$_\@buyer.example") } 1 .. RATE / 2 + 1;
    is wait_email($shop, $_, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
        'the other half is for orders' for @orders[ 0 .. RATE / 2 - 1 ];
    cmp_ok leaves_at(wait_email($shop, $orders[-1], \&waits)), '<=', time + 301,
        'whose first to wait is behind none of the others';
    my ($id) = (sql("SELECT min(id) FROM job WHERE type = 'news_email' "
        . "AND shop_id = $shop->{shop_id} AND $waiting"))[0][0];
    my $due = sub { return (sql("SELECT due_at FROM job WHERE id = '$id'"))[0][0] };
    sql("UPDATE job SET due_at = 1 WHERE id = '$id'");
    wait_for(sub { ($due->() // 0) > 1_000_000 * (time + 60) }, 30, 'another turn');
    is $news->($waiting), 2, 'while an order waits none leaves';
};

$server->stop;
$server->configure(extra => "DownloadsPollInterval 1\nDownloadsMailRate 0\n");
$server->start;

subtest '0: there is no limit' => sub {
    my @more = map { order_for($shop, "more$_\@buyer.example") } 1 .. 2 * RATE;
    is wait_email($shop, $_, sub { $_[0]{status} eq 'sent' })->{status}, 'sent', 'an email'
        for @more;
};

$server->stop;
done_testing;
