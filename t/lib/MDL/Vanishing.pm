# The host of a suite's PostgreSQL, which vanishes: a relay on a port of its own.
#
#   my $drops = MDL::Vanishing->own_network;    # first of all, for drop
#   my $host  = MDL::Vanishing->new($server->{vars}{db_params});
#   $server->configure(extra => 'DBDParams "' . $host->params . "\"\n");
#   $host->drop;         # no packet reaches it any more
#   $host->silence;      # its kernel acknowledges and lets everybody connect, but nothing answers
#   $host->come_back;    # from either
package MDL::Vanishing;

use strict;
use warnings;

use IO::Socket::INET;
use IO::Socket::UNIX;

use MDL::Target qw(slurp wait_for);

use parent 'MDL::Relay';

use constant {
    PIECE => 65536,
    HERE  => '10.9.0.1',
    THERE => '10.9.0.2',
};

my $LOCAL = 'local ' . THERE . ' dev lo src ' . HERE;    # a route

# What is sent to THERE arrives at our own relay while that route is there. Otherwise it leaves by
# one end of a cable, and is ignored where it comes out.
my @NETWORK = (
    'link set lo up',
    'link add here type veth peer name there',
    'link set here up',
    'link set there up',
    "addr add ${\ HERE}/24 dev here",
    "neigh add ${\ THERE} lladdr 02:00:00:00:00:02 dev here nud permanent",
    "route add $LOCAL",
);

# Runs the test anew in a network of its own, which needs no root, but a kernel that lets users have
# one.  Returns whether it is in such a network.
sub own_network
{
    my @unshare = qw(unshare --user --map-current-user --keep-caps --net);
    if (!$ENV{MDL_OWN_NETWORK}) {
        return 0 if system("@unshare ip link add here type veth peer name there 2>/dev/null") != 0;
        local $ENV{MDL_OWN_NETWORK} = 1;
        exec @unshare, $^X, (map { "-I$_" } @INC), $0 or die "unshare: $!\n";
    }
    ip($_) for @NETWORK;
    return 1;
}

sub ip
{
    my ($command) = @_;
    return system("ip $command") == 0 || die "ip $command failed\n";
}

sub new
{
    my ($class, $params) = @_;
    my ($folder) = $params =~ /\bhost=(\S+)/ or die "no folder of a socket in: $params\n";
    my $listener = IO::Socket::INET->new(LocalAddr => '0.0.0.0', LocalPort => 0, Listen => 256)
        or die "no free port: $!\n";
    my $address = $ENV{MDL_OWN_NETWORK} ? THERE : '127.0.0.1';
    my $place   = "host=$address port=${\ $listener->sockport}";
    return $class->carry($listener, to => "$folder/.s.PGSQL.5432",
        params => $params =~ s/\bhost=\S+/$place/r =~ s/\bconnect_timeout=\d+/connect_timeout=2/r);
}

sub params { return shift->{params} }

sub drop
{
    my ($self) = @_;
    $self->{dropping} = 1;
    return ip("route del $LOCAL");
}

sub silence
{
    my ($self) = @_;
    kill STOP => $self->{pid};
    return wait_for(sub { slurp("/proc/$self->{pid}/stat") =~ /\) T/ }, 10,
        'a relay that stands still');
}

sub come_back
{
    my ($self) = @_;
    ip("route add $LOCAL") if delete $self->{dropping};
    return kill CONT => $self->{pid};
}

sub stop
{
    my ($self) = @_;
    kill CONT => $self->{pid} if $self->{hold} && $$ == $self->{owner};
    return $self->SUPER::stop;
}

sub open_pair
{
    my ($self, $client) = @_;
    my $server = IO::Socket::UNIX->new(Peer => $self->{to}) or return;
    return $self->add_pair($client, $server);
}

sub pass
{
    my ($self, $end) = @_;
    sysread $end->{from}, my $bytes, PIECE or return 0;
    return MDL::Relay::write_all($end->{to}, $bytes);
}

1;
