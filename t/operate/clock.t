# The machine's clock is set by an hour, back and forth, while the service runs.
use strict;
use warnings;

use MDL::Instance;
use MDL::Test;
use Test::More;
use Time::Piece ();

use constant HOUR => 3600;

# With its PostgreSQL: both are of one machine.
my $server = MDL::Instance->new(clock => 1, cluster => 1, extra => <<'END')->start;
DownloadsPollInterval 1
DownloadsLeaseTime 3
END
my $shop = new_shop();

my @STEPS = (
    [ 'back by an hour'          => -HOUR() ],
    [ 'forward to the true time' => 0 ],
    [ 'forward by an hour'       => HOUR ],
    [ 'back to the true time'    => 0 ],
);

# Calls check for each step of the clock, with a function that does it.
sub each_step
{
    my ($name, $check) = @_;
    for (@STEPS) {
        my ($how, $seconds) = @$_;
        subtest "$name: the clock is set $how" => sub { $check->(sub { step($seconds) }) };
    }
    return;
}

sub step
{
    my ($seconds) = @_;
    $server->step_clock($seconds);
    my $told = api('GET', '/ping', key => $shop->{token})->{json}{server_time};
    my $ahead = Time::Piece->strptime($told, '%Y-%m-%dT%H:%M:%S.' . substr($told, 20))->epoch - time;
    cmp_ok abs($ahead - $seconds), '<', 60, 'the server has the new time';
    return;
}

each_step('A revoked key', sub {
    my ($step) = @_;
    my $key = MDL::Test::new_key($shop->{shop_id});
    is api('GET', '/ping', key => $key->{token})->{status}, 200, 'the key works';
    $step->();
    is api('GET', '/ping', key => $key->{token})->{status}, 200, 'it does after the step, too';
    is((ctl('key', 'revoke', $key->{key_id}))[0], 0, 'it is revoked');
    is api('GET', '/ping', key => $key->{token})->{status}, 401, 'it works no longer';
});

done_testing;
