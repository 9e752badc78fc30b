# The test's own Postfix, run by an unprivileged user: fakeroot makes it believe that it may change
# its user, and everything it writes but its queue stays below one folder. Files then have other
# owners than Postfix expects, hence "strict_mailbox_ownership = no".
#
#   my $postfix = MDL::Postfix->new(folder => $dir, boxes => { 'shop@example.com' => 'bounces/' },
#       next_hop => { 'gone.test' => $port });
#   $postfix->{port}    # accepts mail from this machine
#   $postfix->box('bounces/')
#
# Options:
#   boxes     { address or domain => box }; an address also stands for those with "+…" before its
#             "@". A box whose name ends in a slash is a Maildir, any other an mbox. Addresses that
#             begin with "unknown" have no box in such a domain: 550 at RCPT
#   next_hop  { domain => port } of domains whose mail it passes on to an SMTP server on that port
# It stops with the test at the latest.
package MDL::Postfix;

use strict;
use warnings;

use File::Path qw(make_path);
use File::Temp ();
use IO::Socket::INET;
use POSIX ();

use MDL::Ports;
use MDL::Test ();

my @started;

sub write_file
{
    my ($path, $text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

sub new
{
    my ($class, %opt) = @_;
    my $self = bless { boxes => {}, next_hop => {}, port => free_port(), owner => $$, %opt },
        $class;
    my $folder = $self->{folder};
    # The path of a socket has at most 107 bytes.
    $self->{queue} = File::Temp->newdir;
    make_path(map { "$folder/$_" } qw(etc data mail));
    make_path(map { "$self->{queue}/$_" }
            qw(active bounce corrupt defer deferred flush hold incoming maildrop pid private public
            saved trace));
    $self->configure;
    push @started, $self;
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        # A process group of its own: fakeroot is a shell script, to be stopped with its children.
        setpgrp;
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  "$folder/output";
        open STDERR, '>&', \*STDOUT;
        exec('/usr/bin/fakeroot', '/usr/lib/postfix/sbin/master', '-c', "$folder/etc")
            or POSIX::_exit(127);
    }
    MDL::Test::wait_for(sub { $self->greets }, 60, "the greeting of Postfix, " . $self->tail);
    return $self;
}

sub greets
{
    my ($self) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port},
        Timeout => 5) or return;
    return (<$socket> // '') =~ /^220 /;
}

sub configure
{
    my ($self) = @_;
    my $folder = $self->{folder};
    my ($uid, $gid) = (getpwnam 'postfix')[ 2, 3 ];
    my $relayed = join ' ', sort keys %{ $self->{next_hop} };
    my %boxes   = %{ $self->{boxes} };
    my $domains = join ' ', map { s/.*@//r } sort keys %boxes;
    my $single  = join ' ', map { "{$_=$boxes{$_}}" } grep { /@/ } sort keys %boxes;
    write_file("$folder/etc/boxes",
        join '', "if !/^unknown/\n",
        (map { "/\@\Q$_\E\$/ $boxes{$_}\n" } grep { !/@/ } sort keys %boxes), "endif\n");
    write_file("$folder/etc/transport",
        join '', map { "/\@\Q$_\E\$/ smtp:[127.0.0.1]:$self->{next_hop}{$_}\n" }
            sort keys %{ $self->{next_hop} });
    write_file("$folder/etc/main.cf", <<"CONF");
compatibility_level = 3.6
queue_directory = $self->{queue}
data_directory = $folder/data
maillog_file = $folder/log
maillog_file_prefixes = $folder
import_environment = MAIL_CONFIG MAIL_DEBUG MAIL_LOGTAG TZ LD_PRELOAD LD_LIBRARY_PATH FAKEROOTKEY
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
myhostname = mx.test
mydestination =
local_recipient_maps =
alias_maps =
virtual_alias_maps =
recipient_delimiter = +
virtual_mailbox_domains = $domains
virtual_mailbox_maps = inline:{ $single } regexp:$folder/etc/boxes
virtual_mailbox_base = $folder/mail
virtual_uid_maps = static:$uid
virtual_gid_maps = static:$gid
strict_mailbox_ownership = no
relay_domains = $relayed
relay_recipient_maps =
transport_maps = regexp:$folder/etc/transport
smtp_dns_support_level = disabled
smtp_host_lookup = native
queue_run_delay = 1s
minimal_backoff_time = 1s
maximal_backoff_time = 1s
delay_warning_time = 1s
CONF
    write_file("$folder/etc/master.cf",
        "127.0.0.1:$self->{port} inet n - n - - smtpd\n" . <<'CONF');
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
tlsmgr unix - - n 1000? 1 tlsmgr
CONF
    return;
}

sub box
{
    my ($self, $name) = @_;
    return "$self->{folder}/mail/$name" =~ s{/\z}{}r;
}

# The messages of a Maildir that are addressed to this recipient, as paths.
sub delivered
{
    my ($self, $name, $to) = @_;
    return grep { (MDL::Test::slurp($_) // '') =~ /^X-Original-To: \Q$to\E$/m }
        glob $self->box($name) . '/new/*';
}

sub log_text { return MDL::Test::slurp(shift->{folder} . '/log') // '' }

sub tail
{
    my ($self) = @_;
    my @lines = split /\n/, ($self->log_text . (MDL::Test::slurp("$self->{folder}/output") // ''));
    splice @lines, 0, @lines - 25 if @lines > 25;
    return join "\n", "Postfix's log ends with:", @lines, '';
}

sub stop
{
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    my ($master) = (MDL::Test::slurp("$self->{queue}/pid/master.pid") // '') =~ /(\d+)/;
    kill TERM => $master if $master;
    for (1 .. 200) {
        last if waitpid($pid, POSIX::WNOHANG()) == $pid;
        select undef, undef, undef, 0.02;
    }
    kill KILL => -$pid;
    return;
}

END {
    local $?;
    $_->stop for grep { $_->{owner} == $$ } @started;
}

1;
