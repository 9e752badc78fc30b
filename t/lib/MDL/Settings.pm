# Visits of the settings: a server that asks for names and passwords, members, pages and forms.
#
#   my $server = settings_server();
#   told('member', 'add', 'ada', 'owner', '--shop', $shop->{shop_id});
#   my $reply = visit('ada', 'GET', "/$shop->{shop_id}/keys");
#   my $done  = submit('ada', $reply, "/$shop->{shop_id}/keys",
#       { name => 'Orders', scope => 'full' });
#
# Any user can sign in; the password is "secret". With form => 1 they do so as
# conf/settings-form.conf says:
#
#   my $cookie = sign_in('ada')->{cookie};
#   my $reply  = visit($cookie, 'GET', '/');      # or submit()
package MDL::Settings;

use strict;
use warnings;

use Digest::SHA qw(sha1_base64);
use Exporter qw(import);
use MIME::Base64 qw(encode_base64);

use MDL::Instance;
use MDL::Target qw(port slurp top_dir);
use MDL::Test;

our @EXPORT = qw(settings_server settings_pages told visit submit sign_in form_token own_form
    origin);

my @USERS = (qw(owner staff reader operator nobody other), 'ada@staff.example');

my $CLEAR = 'http://127.0.0.1:@port@';
my $TLS   = 'https://localhost:@tls_port@';

my $BASIC = <<'END';
<Location /settings>
    SetHandler downloads-settings
    AuthType Basic
    AuthName "Downloads"
    AuthUserFile "@t_logs@/users"
    Require valid-user
</Location>
END

my %MODULES = (
    basic   => [qw(auth_basic authn_core authn_file authz_user)],
    form    => [qw(authn_core authn_file)],
    openidc => [qw(auth_openidc authn_core authz_user alias)],
);

# A sample, with the paths that are to be put in.
sub sample
{
    return slurp(top_dir() . "/conf/settings-$_[0].conf")
        =~ s{/etc/apache2/downloads\.}{\@t_logs\@/}gr;
}

# The sample for a provider, with all values that are to be put in.
sub openidc_conf
{
    my ($provider) = @_;
    my $conf = sample('openidc');
    $conf =~ s{https://login\.example\.com}{$provider};
    $conf =~ s{put the provider's secret here}{a secret of the suites};
    $conf =~ s{https%3A%2F%2Fdownloads\.example\.com}{https%3A%2F%2Flocalhost%3A\@tls_port\@};
    return $conf;
}

sub write_to
{
    my ($path, $text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

# A running server; options as those of MDL::Instance, and openidc => URL for
# conf/settings-openidc.conf with that provider, and TLS; or form => 1 for conf/settings-form.conf.
sub settings_server
{
    my (%opt) = @_;
    my $provider = delete $opt{openidc};
    my $by = $provider ? 'openidc' : delete $opt{form} ? 'form' : 'basic';
    my $origin = $provider ? $TLS : $CLEAR;
    my $server = MDL::Instance->new(%opt,
        tls   => defined $provider || $opt{tls},
        extra => "DownloadsSettingsURL $origin/settings\nDownloadsAPIURL $origin/api/v1\n"
            . ($provider ? openidc_conf($provider) : $by eq 'form' ? sample('form') : $BASIC)
        . ($opt{extra} // ''), modules => [ @{ $MODULES{$by} }, @{ $opt{modules} // [] } ]);
    my $password = '{SHA}' . sha1_base64('secret') . '=';
    write_to("$server->{folder}/users", join '', map { "$_:$password\n" } @USERS);
    write_to("$server->{folder}/session", 'a passphrase of the suites that is long enough');
    return $server->start;
}

# The pages and forms that the sources list: path => { get, post }.
sub settings_pages
{
    my %pages;
    for my $source (map { slurp($_) } glob top_dir() . '/mod_downloads/settings/*.c') {
        while ($source =~ /^    \{"([^"]*)",((?:[^{}]|\n)*?\.(?:get|post)(?:[^{}]|\n)*)\}/gm) {
            my ($path, $rest) = ($1, $2);
            $pages{$path} = { map { $_ => scalar($rest =~ /\.$_ = /) } qw(get post) };
        }
    }
    return %pages;
}

# What downloadsctl answers; dies if it fails.
sub told
{
    my ($code, $json, $text) = ctl(@_);
    die "downloadsctl @_ ended with $code: $text\n" if $code != 0;
    return $json;
}

sub origin { return 'http://127.0.0.1:' . port() }

# Sends the form to sign in; $with has what differs from a right one, and headers. The reply has the
# session's cookie, which those who come with it have in the place of a name.
sub sign_in
{
    my ($user, %with) = @_;
    my $headers = delete $with{headers} // {};
    my $reply = visit(undef, 'POST', '/sign-in',
        form => { name => $user, password => 'secret', %with },
        headers => { origin => origin(), %$headers });
    ($reply->{cookie}) = ($reply->{headers}{'set-cookie'} // '') =~ /^(__Host-downloads=[^;]+)/;
    return $reply;
}

sub credentials
{
    my ($user) = @_;
    return (cookie => $user) if defined $user && $user =~ /^__Host-/;
    return defined $user ? (authorization => 'Basic ' . encode_base64("$user:secret", '')) : ();
}

# A request of a user (undef: of nobody) for a page; the path is one below the settings.  Options as
# those of MDL::Test::page.
sub visit
{
    my ($user, $method, $path, %opt) = @_;
    return page($method, "/settings$path", %opt,
        headers => { credentials($user), %{ $opt{headers} // {} } });
}

sub form_token
{
    my ($reply) = @_;
    return $reply->{body} =~ /name="form_token" value="([^"]+)"/ ? $1 : undef;
}

# Sends a form of the page that $reply is, as a browser does.
sub submit
{
    my ($user, $reply, $path, $fields, %headers) = @_;
    my ($seen) = $reply->{body} =~ /name="seen" value="([^"]+)"/;
    return visit($user, 'POST', $path,
        form => { form_token => form_token($reply) // '', defined $seen ? (seen => $seen) : (),
            %$fields },
        headers => { origin => origin(), %headers });
}

# A page of a shop with a form that the user's role in it is not shown, and a form token of the
# user's own: who sends it can be refused for the role alone.
sub own_form
{
    my ($user, $role, $path) = @_;
    my ($shop) = $path =~ m{^/(\d+)};
    told('member', 'add', $user, 'owner', '--shop', $shop);
    my $page = visit($user, 'GET', $path);
    told('member', 'add', $user, $role, '--shop', $shop);
    return $page;
}

1;
