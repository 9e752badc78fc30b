# Servers whose alerts go to a command that writes them down.
#
#   my $server = alerting("DownloadsAlertEmail $TO\n");      # not started
#   wait_told($server, 'storage failed');
#   round_over($server);                                      # and that is noted, too
#   my @all = told($server);                                  # "name state", sorted by the name
#   forget_told($server);
#   touch($server, 'hang');      # the command hangs once; 'fail': it fails, until that is unlinked
#   on_telling($server, "…");                                 # a shell does this before it tells
package MDL::Alerts;

use strict;
use warnings;

use Exporter qw(import);
use File::Path qw(make_path);

use MDL::Instance;
use MDL::Test;

our @EXPORT = qw(alerting told wait_told round_over forget_told touch on_telling log_count
    other_node);

# A server whose command writes a line for each alert, unless a file has it hang or fail.
sub alerting
{
    my ($extra, %opt) = @_;
    my $node = MDL::Instance->new(%opt);
    my $folder = $node->{folder};
    make_path(map { "$folder/bounces/$_" } qw(new cur tmp));
    MDL::Instance::write_file("$folder/told.sh", <<"END");
#!/bin/sh
mv '$folder/hang' '$folder/hangs' 2>/dev/null && exec sleep 600
[ -e '$folder/fail' ] && { echo trying; echo 'no network'; exit 3; }
[ -e '$folder/first' ] && . '$folder/first'
printf '%s|%s|%s|%s\\n' "\$#" "\$@" >>'$folder/told'
END
    chmod 0755, "$folder/told.sh";
    $node->{extra} .= <<"END" . $extra;
LogLevel downloads:debug
DownloadsAlertCommand "$folder/told.sh"
DownloadsAlertInterval 1
DownloadsMailFrom shop\@shop.test
END
    $node->configure(extra => $node->{extra}, without => $opt{without});
    return $node;
}

# What the command was told: "name state", sorted by the name, or the lines of one name.
sub told
{
    my ($node, $name) = @_;
    my @lines = split /\n/, MDL::Test::slurp("$node->{folder}/told") // '';
    return grep { /^3\|$name\|/ } @lines if $name;
    return sort map { /^3\|([^|]+)\|([^|]+)\|/ ? "$1 $2" : "what is $_" } @lines;
}

sub wait_told
{
    my ($node, $what, $seconds) = @_;
    return wait_for(sub { grep { $_ eq $what } told($node) }, $seconds // 180, "told: $what");
}

# Waits for the end of the round that is under way: what the command was told is noted by then.
sub round_over
{
    my ($node) = @_;
    my $before = log_count($node, 'MDL0394');
    return wait_for(sub { log_count($node, 'MDL0394') > $before }, 120, 'the end of a round');
}

# The command is run with the name and the state of an alert in $1 and $2; no round is under way
# meanwhile but its own.
sub on_telling
{
    my ($node, $shell) = @_;
    MDL::Instance::write_file("$node->{folder}/first.new", "$shell\n");
    return rename "$node->{folder}/first.new", "$node->{folder}/first";
}

sub forget_told { my ($node) = @_; unlink "$node->{folder}/told"; return }

sub touch { my ($node, $name) = @_; return MDL::Instance::write_file("$node->{folder}/$name", '') }

sub log_count { my ($node, $what) = @_; return scalar(() = $node->error_log =~ /$what/gm) }

# Notes another node: the name of its pid file, its build (SQL), and how old its heartbeat is; one
# that is to seem alive needs a heartbeat of the future.
sub other_node
{
    my ($name, $build, $age) = @_;
    return sql('INSERT INTO node (host, pid_file, pid, build, beat_at) '
            . "SELECT 'far.test', '/run/$name.pid', 1, $build, beat_at - $age FROM node "
            . q{WHERE host <> 'far.test' LIMIT 1});
}

1;
