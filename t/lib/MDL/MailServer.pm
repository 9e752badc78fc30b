# A mail server that says in which order things have happened: it takes each email, answers a moment
# later, and writes lines to a file.
#
#   my $server = MDL::MailServer->new;
#   … "DownloadsMailTransport smtp://127.0.0.1:" . $server->{port}
#   my @lines = $server->lines;
#       # [ time, 'open' | 'held' | 'taken' | 'quit' | 'closed', connection, address ]
#       # [ time, 'ends', connection, URL ]: the List-Unsubscribe of the email that comes
#
# The first time that an address is named that begins with "held", the server does not answer before
# release() is called, and from hold() on again.
#
# Connections have numbers. "taken" is an email whose final dot has come, whether or not anybody was
# left to hear the answer. A connection that was cut is "closed" without "quit".
package MDL::MailServer;

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);

use MDL::Target qw(slurp suite_dir);

use parent 'MDL::Helper';

use constant HESITATION => 0.02;    # seconds before an email is answered

my $count = 0;

sub new
{
    my ($class) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 64)
        or die "no port for a mail server: $!\n";
    return $class->begin(sub { my ($self, $watch) = @_; $self->serve($listener, $watch) },
        port => $listener->sockport, file => suite_dir() . "/mail-server-$$-" . ++$count);
}

sub lines
{
    my ($self) = @_;
    return map { [ split / / ] } split /\n/, slurp($self->{file}) // '';
}

sub release { my ($self) = @_; open my $out, '>', "$self->{file}.released" or die "$!\n"; return }

sub hold { my ($self) = @_; unlink "$self->{file}.released"; return }

sub serve
{
    my ($self, $listener, $watch) = @_;
    local $SIG{PIPE} = 'IGNORE';
    open my $out, '>>', $self->{file} or die "$self->{file}: $!\n";
    my $select = IO::Select->new($listener, $watch);
    my (%connections, $number, @late, %named, @held);
    my $note = sub { syswrite $out, join(' ', time, @_) . "\n" };
    while (1) {
        for my $socket ($select->can_read(@late || @held ? HESITATION / 4 : undef)) {
            return if $socket == $watch;
            if ($socket == $listener) {
                my $client = $listener->accept or next;
                $connections{$client} = { id => ++$number, in => '' };
                $note->('open', $number);
                $select->add($client);
                syswrite $client, "220 mock\r\n";
                next;
            }
            my $c = $connections{$socket};
            if (!sysread $socket, $c->{in}, 65_536, length $c->{in}) {
                $note->('closed', $c->{id});
                $select->remove($socket);
                delete $connections{$socket};
                close $socket;
                next;
            }
            while ($c->{in} =~ s/^(.*?)\r\n//) {
                my ($answer, $late) = answer($c, $1, $note);
                if ($c->{to} && $c->{to} =~ /^held/ && !$named{ $c->{to} }++) {
                    push @held, [ 0, $socket, $answer ];
                    $note->('held', $c->{id}, $c->{to});
                    next;
                }
                push @late, [ time + HESITATION, $socket, $answer ] if $late;
                syswrite $socket, $answer if defined $answer && !$late;
            }
        }
        push @late, splice @held if @held && -e "$self->{file}.released";
        while (@late && $late[0][0] <= time) {
            my (undef, $socket, $answer) = @{ shift @late };
            syswrite $socket, $answer if $connections{$socket};
        }
    }
    return;
}

# The answer to a line, and whether it comes late.
sub answer
{
    my ($c, $line, $note) = @_;
    if ($c->{data}) {
        $note->('ends', $c->{id}, $1) if $line =~ m{^ <(\S+/u/[\w-]+)>$};
        return if $line ne '.';
        $c->{data} = 0;
        $note->('taken', $c->{id}, $c->{to});
        return ("250 taken\r\n", 1);
    }
    $note->('quit', $c->{id}) if $line eq 'QUIT';
    $c->{to} = $1 if $line =~ /^RCPT TO:<(.*)>/;
    $c->{data} = $line eq 'DATA';
    return $line eq 'QUIT' ? "221 bye\r\n" : $c->{data} ? "354 go on\r\n" : "250 fine\r\n";
}

1;
