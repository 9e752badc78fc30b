# A server as `make run` leaves it running, which then is the current one.
#
#   my $run = MDL::Run->new;
#   $run->password;         # of owner, staff, reader and operator
#   $run->stop;
package MDL::Run;

use strict;
use warnings;


use MDL::Target qw(slurp suite_dir top_dir wait_for);

sub new
{
    my ($class) = @_;
    my $folder = suite_dir() . '/server-run';
    local $ENV{INSTANCE}   = $folder;
    local $ENV{LD_PRELOAD} = $ENV{SANITIZER_RUNTIME} // '';
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  suite_dir() . '/make-run';
        open STDERR, '>&', \*STDOUT;
        exec top_dir() . '/tools/run' or POSIX::_exit(127);
    }
    my $self = bless { folder => $folder, pid => $pid, owner => $$ }, $class;
    wait_for(sub {
        -e "$folder/env" || $self->has_ended && die "make run has ended:\n"
            . slurp(suite_dir() . '/make-run');
    }, 180, 'make run');
    my $data = readlink "$folder/data" || "$folder/data";
    MDL::Target::aim({
        port      => $self->env('BASE_URL') =~ /:(\d+)/,
        build     => "$data/bin",
        conf_file => "$data/conf/downloads.conf",
        t_logs    => $data,
        db_driver => $ENV{DB} || 'sqlite3',
        db_params => slurp("$data/conf/downloads.conf") =~ /^\s*DBDParams "([^"]*)"/m,
    });
    return $self;
}

# A line of the file that `make run` writes for programs.
sub env
{
    my ($self, $name) = @_;
    return (slurp("$self->{folder}/env") =~ /^$name='(.*)'$/m)[0];
}

sub password { return shift->env('SETTINGS_PASSWORD') }

sub has_ended { return waitpid(shift->{pid}, 1) != 0 }

# As Ctrl-C does.
sub stop
{
    my ($self) = @_;
    return if $$ != $self->{owner} || !$self->{pid};
    kill TERM => $self->{pid};
    waitpid delete $self->{pid}, 0;
    return;
}

sub DESTROY { local $?; return shift->stop }

1;
