# The metrics of the current server, and Debian's Prometheus that scrapes them.
#
#   my %conf = (modules => ['authz_host'], extra => metrics_conf());
#   my $metrics = metrics();                            # { 'downloads_up{…}' => 1 }
#   sum_of($metrics, 'downloads_requests_total', class => '2xx')
package MDL::Metrics;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Open3 qw(open3);
use List::Util qw(sum0);
use MDL::Test;

our @EXPORT = qw(metrics_conf metrics sum_of label_of promtool);

sub metrics_conf
{
    return <<'END';
<Location /metrics>
    SetHandler downloads-metrics
    Require ip 127.0.0.1
</Location>
END
}

# Each sample's value, by its name and labels.
sub metrics
{
    my (%headers) = @_;
    my $reply = page('GET', '/metrics', headers => \%headers);
    die "metrics: $reply->{status} $reply->{body}\n" if $reply->{status} != 200;
    return { map { /^([^#].*) (\S+)$/ ? ($1 => $2) : () } split /\n/, $reply->{body} };
}

sub label_of
{
    my ($sample, $label) = @_;
    return $sample =~ /[{,]$label="([^"]*)"/ ? $1 : '';
}

# The sum of a family's samples that have these labels; undef if there is none.
sub sum_of
{
    my ($metrics, $name, %labels) = @_;
    my @samples = grep { /^\Q$name\E(?:\{|\z)/ } keys %$metrics;
    for my $label (keys %labels) {
        @samples = grep { label_of($_, $label) eq $labels{$label} } @samples;
    }
    return @samples ? sum0(@{$metrics}{@samples}) : undef;
}

# Runs promtool with this input; returns its exit code and what it says.
sub promtool
{
    my ($input, @arguments) = @_;
    my $pid = open3(my $in, my $out, undef, 'promtool', @arguments);
    print $in $input;
    close $in;
    my $said = do { local $/; <$out> } // '';
    waitpid $pid, 0;
    return ($? >> 8, $said);
}

1;
