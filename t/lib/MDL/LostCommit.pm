# A relay to a suite's PostgreSQL that loses the answer to one COMMIT: the transaction is committed,
# but the client can't know that.
#
#   my $relay = MDL::LostCommit->new($server->{vars}{db_params});
#   $server->configure(extra => 'DBDParams "' . $relay->params . "\"\n");
#   $relay->lose('text');    # loses the COMMIT of the next transaction with this text in
#   …                        # a parameter, and refuses new connections from then on
#   $relay->lost;            # whether that has happened
#   $relay->heal;            # accepts connections again
package MDL::LostCommit;

use strict;
use warnings;

use File::Temp ();
use IO::Socket::UNIX;

use parent 'MDL::Relay';

use constant { PIECE => 65536, NAME => '.s.PGSQL.5432' };

sub new
{
    my ($class, $params) = @_;
    my ($host) = $params =~ /\bhost=(\S+)/ or die "no folder of a socket in: $params\n";
    my $folder = File::Temp->newdir('lost-XXXXXX', TMPDIR => 1);
    chmod 0755, "$folder";
    my $listener = IO::Socket::UNIX->new(Local => "$folder/${\ NAME}", Listen => 64)
        or die "no socket in $folder: $!\n";
    return $class->carry($listener, to => "$host/${\ NAME}", folder => $folder,
        params => $params =~ s/\bhost=\S+/host=$folder/r);
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

sub open_pair
{
    my ($self, $client) = @_;
    return if $self->lost;
    my $server = IO::Socket::UNIX->new(Peer => $self->{to}) or return;
    return $self->add_pair($client, $server);
}

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
    return MDL::Relay::write_all($end->{to}, $bytes);
}

# Collects what a client sends in a transaction, and decides at its COMMIT whether to lose the
# answer. The COMMIT is the last of it: the client waits for the answer before it sends more.
sub listen
{
    my ($self, $pair, $bytes) = @_;
    $pair->{transaction} = '' if $bytes =~ /P....\0BEGIN\0/s;
    $pair->{transaction} .= $bytes;
    return if $bytes !~ /P....\0COMMIT\0/s;
    open my $in, '<', "$self->{folder}/lose" or return;
    $pair->{doomed} = index($pair->{transaction}, readline $in) >= 0;
    return;
}

1;
