#!/usr/bin/perl
# The alert rules for Prometheus: promtool accepts them, and t/unit/alerts.yml has each made true
# once and false once.  t/operate/prometheus.t asks a Prometheus whether their metrics exist.
use strict;
use warnings;

use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";

sub slurp
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$in>;
}

my @alerts = slurp('conf/prometheus/alerts.yml') =~ /^\s+- alert: (\w+)$/mg;
my $tests  = slurp('t/unit/alerts.yml');
cmp_ok scalar @alerts, '>', 10, 'there are alerts';
for my $alert (@alerts) {
    for my $state (qw(true false)) {
        like $tests, qr/^  - name: $alert is $state$/m, "there is a test with $alert $state";
    }
}
for my $arguments ('check rules conf/prometheus/alerts.yml', 'test rules t/unit/alerts.yml') {
    my $said = qx(promtool $arguments 2>&1);
    is $?, 0, "promtool $arguments" or diag $said;
}

done_testing;
