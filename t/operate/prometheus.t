# Debian's Prometheus scrapes a server: it takes what it gets, each query of the Grafana board has
# an answer, and each metric that an alert names exists.
#
# once: t/operate/metrics.t compares the databases; here Prometheus reads what they give
use strict;
use warnings;

use JSON::PP qw(decode_json);
use MDL::Instance;
use MDL::Metrics;
use MDL::Prometheus;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new(modules => ['authz_host'], extra => metrics_conf())->start;
my $shop   = new_shop();
api('GET', '/ping', key => $shop->{token});
my $rules      = MDL::Target::slurp('conf/prometheus/alerts.yml');
my $prometheus = MDL::Prometheus->new(rules => $rules);

# Rates need two scrapes.
wait_for(sub { my ($n) = $prometheus->query('count_over_time(downloads_database_up[1m])');
    return $n && $n->{value}[1] >= 3 }, 60, 'three scrapes');

# A busy machine now and then needs more than the second that a scrape may take; until the next one
# there are no series then.
sub answer
{
    my ($query) = @_;
    my @series;
    eval { wait_for(sub { @series = $prometheus->query($query) }, 60, $query) };
    return @series;
}

ok wait_for(sub { my ($up) = $prometheus->query('up'); $up->{value}[1] == 1 }, 60, 'a scrape'),
    'the scrapes succeed';
is scalar $prometheus->query('up'), 1, 'of one server';
is_deeply [ $prometheus->firing ], [], 'no alert fires';

subtest "the board's queries have answers" => sub {
    my $board = decode_json(MDL::Target::slurp('conf/prometheus/grafana.json'));
    for my $panel (@{ $board->{panels} }) {
        for my $target (@{ $panel->{targets} }) {
            my $query = $target->{expr} =~ s/\$__rate_interval/1m/gr =~ s/\$instance/.*/gr;
            my @series = answer($query);
            cmp_ok scalar @series, '>', 0, "$panel->{title}: $target->{refId}" or diag $query;
            for my $label ($target->{legendFormat} =~ /\{\{(\w+)\}\}/g) {
                ok !(grep { !exists $_->{metric}{$label} } @series),
                    "each of its series has the label $label";
            }
        }
    }
};

subtest "the alerts' metrics exist, with their labels" => sub {
    my %seen;
    my @expressions = $rules =~ /^\s+expr: (.*?)(?=^\s+(?:for|labels):)/msg;
    for my $metric (grep { !$seen{$_}++ } map { /\b(downloads_\w+(?:\{.*?\})?)/g } @expressions) {
        next if $metric =~ /database_free_bytes/ && database() ne 'sqlite3';
        cmp_ok scalar answer($metric =~ s/class="5xx"/class="2xx"/r), '>', 0, $metric;
    }
};

$prometheus->stop;
$server->stop;
done_testing;
