# conf/settings-openidc.conf as it is, with a real identity provider: who the provider says it is
# signs in, members see their shop, and signing out ends it here and there.
#
# once: who a user is does not depend on the database
use strict;
use warnings;

use IPC::Open2 qw(open2);
use Test::More;

use MDL::Ports;
use MDL::Settings;
use MDL::Test;

my $port   = free_port();
# And httpd waits for the provider, however busy the machine is.
my $server = settings_server(openidc => "http://127.0.0.1:$port",
    extra => "OIDCHTTPTimeoutShort 60\nOIDCHTTPTimeoutLong 60\n");
my $origin = 'https://localhost:' . $server->tls_port;
my $shop   = new_shop(name => 'Books');
told('member', 'add', 'ada@example.com', 'owner', '--shop', $shop->{shop_id});

my $provider = open2(my $from, my $hold, MDL::Target::top_dir() . '/tools/node',
    MDL::Target::top_dir() . '/t/node/identity-provider.mjs', $port, 'downloads',
    'a secret of the suites', "$origin/settings/signed-in", "$origin/");
is(readline($from), "listens\n", 'the provider listens');

# Asks as a browser of this person does, which follows redirects and keeps cookies; a form makes it
# a POST.
sub browse
{
    my ($who, $url, $form) = @_;
    my $jar = "$server->{folder}/cookies-$who";
    open my $out, '-|', 'curl', '-s', '-L', '--max-redirs', '10', '--cacert', $server->certificate,
        '-b', $jar, '-c', $jar, '-w', "\n%{http_code} %{url_effective}",
        (map { ('--data-urlencode', "$_=$form->{$_}") } sort keys %{ $form // {} }), $url
        or die "curl: $!\n";
    local $/;
    my ($body, $status, $at) = <$out> =~ /^(.*)\n(\d+) (\S+)$/s or die "curl said nothing\n";
    return { body => $body, status => $status, url => $at };
}

# Sends the only form of a page, with what it hides and what is typed.
sub fill_in
{
    my ($who, $page, %typed) = @_;
    my ($action) = $page->{body} =~ /<form[^>]* action="([^"]+)"/ or die "no form: $page->{body}\n";
    my %hidden = $page->{body} =~ /<input type="hidden" name="([^"]+)" value="([^"]*)"/g;
    return browse($who, $action =~ m{^/} ? "http://127.0.0.1:$port$action" : $action,
        { %hidden, %typed });
}

sub sign_in
{
    my ($who, $as) = @_;
    my $page = browse($who, "$origin/settings/");
    like($page->{url}, qr{^http://127\.0\.0\.1:$port/interaction/}, "$who is led to the provider");
    $page = fill_in($who, $page, login => $as, password => 'any');
    return fill_in($who, $page);    # the consent
}

my $page = sign_in('ada', 'ada@example.com');
is($page->{status}, 200, 'a member is back') or diag $page->{body};
is($page->{url}, "$origin/settings/$shop->{shop_id}/", 'at the shop');
like($page->{body}, qr/ada\@example\.com/, 'under the address that the provider knows');
is(browse('ada', "$origin/settings/$shop->{shop_id}/keys")->{status}, 200, 'and stays signed in');

my $keys  = browse('ada', "$origin/settings/$shop->{shop_id}/keys");
my ($token) = $keys->{body} =~ /name="form_token" value="([^"]+)"/;
open my $form, '-|', 'curl', '-s', '--cacert', $server->certificate, '-b',
    "$server->{folder}/cookies-ada", '-H', "Origin: $origin", '-d', "form_token=$token", '-d',
    'name=Orders', '-d', 'scope=full', "$origin/settings/$shop->{shop_id}/keys"
    or die "curl: $!\n";
like(do { local $/; <$form> }, qr/adk_live_\w+/, 'creates a key');

is(sign_in('eve', 'eve@example.com')->{status}, 403, 'who is no member of any shop is told so');
is(browse('eve', "$origin/settings/$shop->{shop_id}/")->{status}, 404, 'and finds no shop');

$page = fill_in('ada', browse('ada', "$origin/settings/sign-out"), logout => 'yes');
is($page->{url}, "$origin/",
    'signing out leads by way of the provider, which asks, to the address in the sample');
like(browse('ada', "$origin/settings/$shop->{shop_id}/")->{url},
    qr{^http://127\.0\.0\.1:$port/interaction/}, 'and has ended both sessions');

close $hold;
waitpid $provider, 0;
$server->stop;
done_testing;
