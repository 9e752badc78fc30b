# A way to the PostgreSQL of a suite that once loses the answer to a COMMIT: what was asked for is done,
# and who asked for it can't know.
#
#   my $way = MDL::LostCommit->new($server->{vars}{db_params});
#   $server->configure(extra => 'DBDParams "' . $way->params . "\"\n");
#   $way->lose('text');    # of the next transaction that has this text in a parameter
#   …                      # from then on nobody gets a new connection
#   $way->lost;            # whether that has happened
#   $way->heal;
package MDL::LostCommit;

use strict;
use warnings;

use File::Temp ();
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();

use constant { PIECE => 65536, NAME => '.s.PGSQL.5432' };

sub new
{
    my ($class, $params) = @_;
    my ($host) = $params =~ /\bhost=(\S+)/ or die "no folder of a socket in: $params\n";
    my $folder = File::Temp->newdir('lost-XXXXXX', TMPDIR => 1);
    chmod 0755, "$folder";
    my $listener = IO::Socket::UNIX->new(Local => "$folder/${\ NAME}", Listen => 64)
        or die "no socket in $folder: $!\n";
    pipe my $watch, my $hold or die "pipe: $!";
    my $self = bless { to => "$host/${\ NAME}", folder => $folder, listener => $listener,
        params => $params =~ s/\bhost=\S+/host=$folder/r, owner => $$ }, $class;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $hold;
        $self->carry($watch);
        POSIX::_exit(0);
    }
    close delete $self->{listener};
    # It ends when this is closed, however that happens.
    @$self{qw(pid hold)} = ($pid, $hold);
    return $self;
}

sub params { return shift->{params} }
sub lost   { return -e shift->{folder} . '/lost' }
sub heal   { return unlink shift->{folder} . '/lost' }

sub lose
{
    my ($self, $text) = @_;
    open my $out, '>', "$self->{folder}/new" or die "$self->{folder}: $!\n";
    print $out $text;
    close $out;
    return rename "$self->{folder}/new", "$self->{folder}/lose";
}

sub stop
{
    my ($self) = @_;
    return if !$self->{hold} || $$ != $self->{owner};
    close delete $self->{hold};
    local $?;
    waitpid $self->{pid}, 0;
    return;
}

sub DESTROY { return shift->stop }

sub carry
{
    my ($self, $watch) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $select = IO::Select->new($watch, $self->{listener});
    while (1) {
        for my $ready ($select->can_read) {
            return if $ready == $watch;
            if ($ready == $self->{listener}) {
                $select->add($self->open_pair);
            }
            elsif (my $end = $self->{ends}{$ready}) {
                next if $self->pass($end);
                $select->remove(@{ $end->{pair} }{qw(client server)});
                $self->close_pair($end->{pair});
            }
        }
    }
    return;
}

sub open_pair
{
    my ($self) = @_;
    my $client = $self->{listener}->accept or return;
    my $server = $self->lost ? undef : IO::Socket::UNIX->new(Peer => $self->{to});
    return if !$server;
    my $pair = { client => $client, server => $server, said => '' };
    $self->{ends}{$client} = { from => $client, to => $server, pair => $pair, up => 1 };
    $self->{ends}{$server} = { from => $server, to => $client, pair => $pair };
    return ($client, $server);
}

# False when the two have to be parted.
sub pass
{
    my ($self, $end) = @_;
    my $pair = $end->{pair};
    sysread $end->{from}, my $bytes, PIECE or return 0;
    $self->listen($pair, $bytes) if $end->{up};
    if ($pair->{doomed} && !$end->{up}) {
        rename "$self->{folder}/lose", "$self->{folder}/lost" or die "$self->{folder}: $!\n";
        return 0;
    }
    for (my $done = 0; $done < length $bytes;) {
        $done += syswrite($end->{to}, $bytes, length($bytes) - $done, $done) // return 0;
    }
    return 1;
}

# What a client says in a transaction; it sends nothing behind a COMMIT before the answer to it.
sub listen
{
    my ($self, $pair, $bytes) = @_;
    $pair->{said} = '' if $bytes =~ /^Q....BEGIN/s;
    $pair->{said} .= $bytes;
    return if $bytes !~ /Q....COMMIT\0$/s;
    open my $in, '<', "$self->{folder}/lose" or return;
    $pair->{doomed} = index($pair->{said}, readline $in) >= 0;
    return;
}

sub close_pair
{
    my ($self, $pair) = @_;
    for (@$pair{qw(server client)}) {
        delete $self->{ends}{$_};
        close $_;
    }
    return;
}

1;
