# Debian's Prometheus, which scrapes the current server each second and asks the alerts as often.
#
#   my $prometheus = MDL::Prometheus->new(rules => $text);  # other => '/path': scrapes that, too
#   my @series = $prometheus->query('up');              # [ { metric => { … }, value => [ … ] }, … ]
package MDL::Prometheus;

use strict;
use warnings;

use File::Path qw(make_path);
use HTTP::Tiny;
use JSON::PP qw(decode_json);
use MDL::Ports;
use MDL::Test ();

use parent 'MDL::Helper';

sub new
{
    my ($class, %opt) = @_;
    my $folder = MDL::Test::suite_dir() . "/prometheus-$$";
    my $port   = free_port();
    my $target = '127.0.0.1:' . MDL::Test::port();
    make_path($folder);
    write_to("$folder/rules.yml", $opt{rules});
    write_to("$folder/prometheus.yml", <<"END");
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: mod_downloads
    static_configs: [{targets: ["$target"]}]
END
    append_to("$folder/prometheus.yml", <<"END") if $opt{other};
  - job_name: other
    metrics_path: $opt{other}
    static_configs: [{targets: ["$target"]}]
END
    my $self = $class->begin(sub { run($folder, $port, $_[1]) }, port => $port);
    MDL::Test::wait_for(sub { eval { $self->query('downloads_build_info') } }, 60,
        "a scrape by Prometheus, $folder/log");
    return $self;
}

sub append_to
{
    my ($path, $text) = @_;
    return write_to($path, MDL::Target::slurp($path) . $text);
}

# Runs the program until $watch is closed.
sub run
{
    my ($folder, $port, $watch) = @_;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', "$folder/log" or die "log: $!\n";
        open STDERR, '>&', \*STDOUT or die "log: $!\n";
        exec 'prometheus', "--config.file=$folder/prometheus.yml",
            "--storage.tsdb.path=$folder/data", "--web.listen-address=127.0.0.1:$port"
            or die "prometheus: $!\n";
    }
    sysread $watch, my $nothing, 1;
    kill TERM => $pid;
    waitpid $pid, 0;
    return;
}

sub write_to
{
    my ($path, $text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

# The series that an expression gives now; dies if Prometheus can't read it.
sub query
{
    my ($self, $expression) = @_;
    my $http  = HTTP::Tiny->new(timeout => 60);
    my $query = $http->www_form_urlencode({ query => $expression });
    my $reply = $http->get("http://127.0.0.1:$self->{port}/api/v1/query?$query");
    die "$expression: $reply->{status} $reply->{content}\n" if $reply->{status} != 200;
    return @{ decode_json($reply->{content})->{data}{result} };
}

# The names of the alerts that fire.
sub firing
{
    my ($self) = @_;
    return sort map { $_->{metric}{alertname} } $self->query('ALERTS{alertstate="firing"}');
}

1;
