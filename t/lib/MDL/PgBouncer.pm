# PgBouncer in front of the suites' PostgreSQL, set up as docs/scale.md says.
#
#   my $pooler = MDL::PgBouncer->new($server, 'session');    # its pool_mode
#   $pooler->params;       # for DBDParams: those of the server's database, through the pooler
#   $pooler->stop;
package MDL::PgBouncer;

use strict;
use warnings;

use IO::Socket::INET;
use MDL::Instance;
use MDL::Ports;
use MDL::Target qw(slurp top_dir wait_for);
use POSIX ();

my $count = 0;

sub new
{
    my ($class, $server, $mode) = @_;
    my $folder = "$server->{folder}/pgbouncer-" . ++$count;
    my $self = bless { folder => $folder, port => free_port(), owner => $$,
        direct => $server->{vars}{db_params} }, $class;
    mkdir $folder or die "$folder: $!\n";
    my ($socket) = $self->{direct} =~ /host=(\S+)/;
    my ($guide) = slurp(top_dir() . '/docs/scale.md') =~ /^```pgbouncer\n(.*?)^```$/ms
        or die "docs/scale.md has no configuration of PgBouncer\n";
    $guide =~ s/(?<=host=)\S+/$socket/;
    $guide =~ s/(?<=dbname=)\S+/($self->{direct} =~ m{dbname=(\S+)})[0]/e;
    $guide =~ s/^(listen_addr = ).*/${1}127.0.0.1/m;
    $guide =~ s/^(listen_port = ).*/$1$self->{port}/m;
    $guide =~ s/^(pool_mode = ).*/$1$mode/m;
    $guide =~ s/^(auth_type = ).*/${1}trust/m;
    $guide =~ s{^(auth_file = ).*}{$1$folder/users}m;
    MDL::Instance::write_file("$folder/users", qq("downloads" ""\n));
    MDL::Instance::write_file("$folder/conf", "$guide\nunix_socket_dir =\n");
    $self->run;
    return $self;
}

sub run
{
    my ($self) = @_;
    my $output = "$self->{folder}/output";
    local $ENV{LD_PRELOAD} = '';
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  $output;
        open STDERR, '>&', \*STDOUT;
        exec('/usr/sbin/pgbouncer', "$self->{folder}/conf") or POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    wait_for(
        sub {
            die 'pgbouncer has ended: ' . slurp($output) . "\n"
                if waitpid($pid, POSIX::WNOHANG()) != 0;
            IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port});
        },
        20, 'pgbouncer'
    );
    return;
}

sub params
{
    my ($self) = @_;
    return "host=127.0.0.1 port=$self->{port} user=downloads dbname=downloads connect_timeout=2";
}

sub stop
{
    my ($self) = @_;
    return if $$ != $self->{owner} || !$self->{pid};
    local $?;
    kill KILL => $self->{pid};
    waitpid delete $self->{pid}, 0;
    return;
}

sub DESTROY { return shift->stop }

1;
