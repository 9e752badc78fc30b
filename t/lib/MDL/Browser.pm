# Chromium, which does the tasks of t/node/browser-settings.mjs.
#
#   my $browser = MDL::Browser->new;
#   my $result  = $browser->task('owner', 'press', name => 'Sign in');
#       # whose browser, what to do; a failing check says what it complained about
#   $browser->stop;
package MDL::Browser;

use strict;
use warnings;

use IPC::Open2 qw(open2);
use JSON::PP;
use Test::More;

use MDL::Target qw(top_dir);

my $JSON = JSON::PP->new->utf8;

# All tasks get what is given here, such as noscript => 1.
sub new
{
    my ($class, %all) = @_;
    my $pid = open2(my $from, my $to, map { top_dir() . "/$_" } 'tools/node',
        't/node/browser-settings.mjs');
    $to->autoflush(1);
    return bless { all => \%all, pid => $pid, from => $from, to => $to }, $class;
}

sub always { my ($self, %all) = @_; $self->{all} = \%all; return }

sub task
{
    my ($self, $who, $do, %task) = @_;
    my $to = $self->{to};
    print $to $JSON->encode({ %{ $self->{all} }, who => $who, do => $do, %task }), "\n";
    my $line   = readline $self->{from};
    my $result = $JSON->decode($line // '{"wrong":["the browsers have ended"]}');
    local $Test::Builder::Level = $Test::Builder::Level + 2;
    is_deeply($result->{wrong}, [],
        join(' ', "$who:", $do, $task{name} // $task{label} // (), ': no complaint'))
        or diag(explain($result));
    return $result;
}

sub stop
{
    my ($self) = @_;
    close $self->{to};
    waitpid $self->{pid}, 0;
    return;
}

1;
