# A proxy in front of an instance, set up as docs/install.md says: nginx, HAProxy, or httpd's
# mod_proxy.
#
#   my $proxy = MDL::Proxy->new('nginx', $server);    # takes its place for MDL::DownloadClient
#   $proxy->stop;
#
# With further instances it is the balancer of docs/scale.md:
#
#   my $proxy = MDL::Proxy->new('haproxy', $first, $second);
#
# It speaks TLS with the instance's certificate, on tls_port(). The configuration is the guide's
# own, with other ports and paths.
package MDL::Proxy;

use strict;
use warnings;

use File::Path qw(make_path);
use IO::Socket::INET;
use MDL::Instance;
use MDL::Ports;
use MDL::Target qw(slurp top_dir wait_for);
use POSIX ();

my $count = 0;

# What starts each in the foreground, and what its configuration needs around the guide's text.
my %PROGRAMS = (
    nginx => {
        command => sub { ('nginx', '-p', $_[0]{folder}, '-c', "$_[0]{folder}/conf") },
        around  => <<'END',
daemon off;
pid nginx.pid;
error_log error_log;
events {}
http {
client_body_temp_path tmp;
proxy_temp_path tmp;
fastcgi_temp_path tmp;
uwsgi_temp_path tmp;
scgi_temp_path tmp;
access_log off;
GUIDE}
END
    },
    haproxy => { command => sub { ('haproxy', '-db', '-f', "$_[0]{folder}/conf") },
        around => 'GUIDE' },
    httpd   => {
        command => sub { ($ENV{HTTPD}, '-DFOREGROUND', '-f', "$_[0]{folder}/conf") },
        around  => <<'END',
ServerRoot "FOLDER"
PidFile "FOLDER/httpd.pid"
DefaultRuntimeDir "FOLDER"
ErrorLog "FOLDER/error_log"
ServerName localhost
MODULES
Listen 127.0.0.1:PORT https
GUIDE
END
    },
);

sub new
{
    my ($class, $kind, $server, @more) = @_;
    my $program = $PROGRAMS{$kind};
    my $self = bless {
        name   => "$server->{name} behind $kind",
        folder => "$server->{folder}/$kind-" . ++$count,
        server => $server,
        more   => \@more,
        vars   => { port => $server->{vars}{port}, tls_port => free_port() },
        owner  => $$,
    }, $class;
    make_path("$self->{folder}/tmp");
    MDL::Instance::write_file("$self->{folder}/both.pem", join '',
        map { slurp("$server->{folder}/tls.$_") } qw(crt key));
    MDL::Instance::write_file("$self->{folder}/conf",
        $self->configuration($kind, $program->{around}));
    $self->run($program->{command}->($self));
    return $self;
}

# The guide's text for this kind of proxy, for the instance.
sub configuration
{
    my ($self, $kind, $around) = @_;
    my ($folder, $server, $port) = (@$self{qw(folder server)}, $self->tls_port);
    my $name = 'docs/' . (@{ $self->{more} } ? 'scale.md' : 'install.md');
    my ($guide) = slurp(top_dir() . "/$name") =~ /^```$kind\n(.*?)^```$/ms
        or die "$name has no configuration of $kind\n";
    $guide =~ s{(?:127\.0\.0\.1|10\.0\.0\.11):8080}{127.0.0.1:$server->{vars}{port}}g;
    $guide =~ s{10\.0\.0\.12:8080}{127.0.0.1:$_->{vars}{port}} for @{ $self->{more} };
    $guide =~ s{\S*/fullchain\.pem}{$server->{folder}/tls.crt}g;
    $guide =~ s{\S*/privkey\.pem}{$server->{folder}/tls.key}g;
    $guide =~ s{/var/log/nginx/}{$folder/};
    $guide =~ s{\S*/downloads\.pem}{$folder/both.pem}g;
    $guide =~ s{\bdownloads\.example\.com\b}{localhost}g;
    $guide =~ s{(?<=listen )443|(?<=bind ):443}{127.0.0.1:$port};
    $guide =~ s{\*:443}{127.0.0.1:$port};
    my ($modules) = slurp("$server->{folder}/httpd.conf") =~ /^(LoadModule mpm_\w+ .*)$/m;
    my ($path) = $modules =~ m{"(.*)/mod_mpm_\w+\.so"};
    $modules .= qq(\nLoadModule ${_}_module "$path/mod_$_.so")
        for qw(authz_core ssl http2 headers proxy proxy_http);
    my %values = (GUIDE => $guide, FOLDER => $folder, PORT => $port, MODULES => $modules);
    return $around =~ s/\b(GUIDE|FOLDER|PORT|MODULES)\b/$values{$1}/gr;
}

sub run
{
    my ($self, @command) = @_;
    my $output = "$self->{folder}/output";
    local $ENV{LD_PRELOAD} = '';
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        POSIX::setpgid(0, 0);
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  $output;
        open STDERR, '>&', \*STDOUT;
        exec(@command) or POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    wait_for(
        sub {
            die "$command[0] has ended: " . slurp($output)
                . (slurp("$self->{folder}/error_log") // '') . "\n"
                if waitpid($pid, POSIX::WNOHANG()) != 0;
            IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->tls_port);
        },
        60, $command[0]
    );
    return;
}

sub tls_port    { return shift->{vars}{tls_port} }
sub certificate { return shift->{server}->certificate }

# Ends it at once, with all its processes.
sub stop
{
    my ($self) = @_;
    return if $$ != $self->{owner} || !$self->{pid};
    local $?;
    kill KILL => -$self->{pid};
    waitpid delete $self->{pid}, 0;
    return;
}

sub DESTROY { return shift->stop }

1;
