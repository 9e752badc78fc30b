# Visits of the settings: a server that asks for names and passwords, members, pages and forms.
#
#   my $server = settings_server();
#   told('member', 'add', 'ada', 'owner', '--shop', $shop->{shop_id});
#   my $reply = visit('ada', 'GET', "/$shop->{shop_id}/keys");
#   my $done  = submit('ada', $reply, "/$shop->{shop_id}/keys", { name => 'Orders', scope => 'full' });
#
# Any user can sign in; the password is "secret".
package MDL::Settings;

use strict;
use warnings;

use Digest::SHA qw(sha1_base64);
use Exporter qw(import);
use MIME::Base64 qw(encode_base64);

use MDL::Instance;
use MDL::Target qw(port slurp top_dir);
use MDL::Test;

our @EXPORT = qw(settings_server told visit submit form_token origin);

my @USERS = qw(owner staff reader operator nobody other);

my $URLS = <<'END';
DownloadsSettingsURL http://127.0.0.1:@port@/settings
DownloadsAPIURL http://127.0.0.1:@port@/api/v1
END

my $BASIC = <<'END';
<Location /settings>
    SetHandler downloads-settings
    AuthType Basic
    AuthName "Downloads"
    AuthUserFile "@t_logs@/users"
    Require valid-user
</Location>
<Location /settings/sign-in>
    AuthType None
    Require all granted
</Location>
END

my %MODULES = (
    basic => [qw(auth_basic authn_core authn_file authz_user)],
    form  => [qw(auth_form authn_core authn_file authz_user request session session_cookie session_crypto)],
);

# The sample, with the files that it names in the server's folder.
sub form_conf { return slurp(top_dir() . '/conf/settings-form.conf') =~ s{/etc/apache2/downloads\.}{\@t_logs\@/}gr }

sub write_to
{
    my ($path, $text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

# A running server; options as those of MDL::Instance, and form => 1 for the form to sign in that
# conf/settings-form.conf has.
sub settings_server
{
    my (%opt) = @_;
    my $form = delete $opt{form};
    my $server = MDL::Instance->new(%opt,
        extra => $URLS . ($form ? form_conf() : $BASIC) . ($opt{extra} // ''),
        modules => [ @{ $MODULES{ $form ? 'form' : 'basic' } }, @{ $opt{modules} // [] } ]);
    my $password = '{SHA}' . sha1_base64('secret') . '=';
    write_to("$server->{folder}/users", join '', map { "$_:$password\n" } @USERS);
    write_to("$server->{folder}/session", 'a passphrase of the suites that is long enough');
    return $server->start;
}

# What downloadsctl answers; dies if it fails.
sub told
{
    my ($code, $json, $text) = ctl(@_);
    die "downloadsctl @_ ended with $code: $text\n" if $code != 0;
    return $json;
}

sub origin { return 'http://127.0.0.1:' . port() }

sub credentials
{
    my ($user) = @_;
    return defined $user ? (authorization => 'Basic ' . encode_base64("$user:secret", '')) : ();
}

# A request of a user (undef: of nobody) for a page; the path is one below the settings.  Options as
# those of MDL::Test::page.
sub visit
{
    my ($user, $method, $path, %opt) = @_;
    return page($method, "/settings$path", %opt, headers => { credentials($user), %{ $opt{headers} // {} } });
}

sub form_token
{
    my ($reply) = @_;
    return $reply->{body} =~ /name="form_token" value="([^"]+)"/ ? $1 : undef;
}

# Sends a form of the page that $reply is, as a browser does.
sub submit
{
    my ($user, $reply, $path, $fields) = @_;
    return visit($user, 'POST', $path, form => { form_token => form_token($reply) // '', %$fields },
        headers => { origin => origin() });
}

1;
