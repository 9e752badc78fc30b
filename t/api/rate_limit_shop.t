# The rate limit of a shop (contract, section 5): all its keys together have three times the tokens of
# one, over all processes, and an answer tells of the limit that has less left.
#
# once: rates are counted in memory
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Test;
use Test::More;
use Time::HiRes qw(time);

use constant { KEYS => 10, BURST => 60, FACTOR => 3 };

# One token of a key comes back each minute, so hardly any comes back during a check of a few seconds.
my $server = MDL::Instance->new(extra => "DownloadsRateLimit On\nDownloadsRateRefill 1\n")->start;

# A shop and its keys, as many as it can have.
sub shop_with_keys
{
    my $shop = new_shop();
    return ($shop, { %$shop }, map { { %$shop, %{ MDL::Test::new_key($shop->{shop_id}) } } } 2 .. KEYS);
}

sub ping { my ($key) = @_; return api('GET', '/ping', key => $key->{token}) }

# Of which limit an answer tells, and how many tokens are left.
sub told
{
    my ($reply) = @_;
    my ($policy, $quota) = ($reply->{headers}{'ratelimit-policy'} // '') =~ /^"(\w+)";q=(\d+);w=\d+\z/;
    my ($name, $left) = ($reply->{headers}{'ratelimit'} // '') =~ /^"(\w+)";r=(\d+);t=\d+\z/;
    is($policy // '', $name // '', 'policy and state are of the same limit');
    is($reply->{headers}{'x-ratelimit-limit'},     $quota, 'X-RateLimit-Limit is of the same');
    is($reply->{headers}{'x-ratelimit-remaining'}, $left,  'and so is X-RateLimit-Remaining');
    return ($name, $quota, $left);
}

subtest 'a shop with ten keys gets three times what a key gets' => sub {
    my ($shop, @keys) = shop_with_keys();
    my @statuses = map { @$_ } parallel(KEYS, sub {
        my ($i) = @_;
        return [ map { ping($keys[$i])->{status} } 1 .. BURST ];
    });
    my $succeeded = grep { $_ == 200 } @statuses;
    # Three come back each minute.
    cmp_ok $succeeded, '>=', FACTOR * BURST, 'three times a burst succeeds';
    cmp_ok $succeeded, '<=', FACTOR * BURST + 2, 'and no more';
    is scalar(grep { $_ != 200 && $_ != 429 } @statuses), 0, 'the others get 429';

    my $reply = ping($keys[0]);
    is_error $reply, 429, 'rate_limited', 'a further request';
    like $reply->{json}{error}{message}, qr/shop's keys/, 'which says that it is the shop';
    is_deeply [ told($reply) ], [ 'shop', FACTOR * BURST, 0 ], 'in the headers, too';
    like $reply->{headers}{'retry-after'}, qr/^[1-9]\d*\z/, 'Retry-After is a number of seconds';
    cmp_ok $reply->{headers}{'retry-after'}, '<=', 20, 'until the token that the read needs';
    my ($other) = shop_with_keys();
    is ping($other)->{status}, 200, 'another shop does not notice';
};

subtest 'an answer tells of the limit that has less left' => sub {
    my ($shop, @keys) = shop_with_keys();
    is_deeply [ told(ping($keys[0])) ], [ 'key', BURST, BURST - 1 ], 'with one key that is the key';
    for my $key (@keys[ 1 .. 2 ]) {
        ping($key) for 1 .. BURST - 10;
    }
    ping($keys[3]) for 1 .. 29;
    my ($name, $quota, $left) = told(ping($keys[4]));
    is $name, 'shop', 'with several it is the shop once that has fewer';
    is $quota, FACTOR * BURST, 'which has three times as many';
    cmp_ok $left, '>=', 49, 'of which those that the keys have taken together are gone';
    cmp_ok $left, '<=', 51, 'and no others';
    is +(told(ping($keys[1])))[0], 'key', 'for a key with fewer it is the key';
};

subtest 'what one of the two refuses takes nothing from the other' => sub {
    my ($shop, @keys) = shop_with_keys();
    ping($keys[0]) for 1 .. BURST + 30;
    ping($keys[1]) for 1 .. BURST;
    ping($keys[2]) for 1 .. 20;
    my ($name, undef, $left) = told(ping($keys[3]));
    is $name, 'shop', 'the shop has less left than a new key';
    cmp_ok $left, '>=', 39, 'but not less by what a key was refused';
    ping($keys[3]) for 1 .. $left + 30;
    is ping($keys[3])->{status}, 429, 'the shop has none left';
    ctl('shop', 'suspend', $shop->{shop_id});
    my $reply = ping($keys[3]);
    is_error $reply, 403, 'shop_not_approved', 'a request of the shop that is suspended then';
    is +(told($reply))[0], 'key', 'tells of the key';
    cmp_ok $reply->{headers}{'x-ratelimit-remaining'}, '>=', BURST - 1 - $left - 3,
        'which has all that the shop refused';
};

$server->stop;
$server->configure(extra => <<'END');
DownloadsRateLimit On
DownloadsRateBurst 4
DownloadsRateRefill 60
DownloadsRateReadCost 2
DownloadsRateShopFactor 1
END
$server->start;

subtest 'the factor can be configured, and tokens come back when Retry-After says' => sub {
    my ($shop, @keys) = shop_with_keys();
    is ping($keys[0])->{status}, 200, 'one key gets two requests';
    is ping($keys[0])->{status}, 200, 'of two tokens each';
    my $reply = ping($keys[1]);
    is_error $reply, 429, 'rate_limited', 'which is all that the shop gets';
    my $began = time;
    wait_for(sub { ping($keys[1])->{status} == 200 }, 10, 'tokens to come back');
    cmp_ok time - $began, '<=', $reply->{headers}{'retry-after'} + 1, 'no later than promised';
};

$server->stop;
done_testing;
