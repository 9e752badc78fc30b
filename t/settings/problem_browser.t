# Forms that stand below a list: when one is refused, the browser shows why, with and without
# JavaScript, and not the top of the list.
#
# once: the pages do not depend on the database
# long: it has two browsers
use strict;
use warnings;

use MDL::Browser;
use MDL::Settings;
use MDL::Test;
use Test::More;

my $server  = settings_server();
my $shop    = new_shop();
my $in      = "/settings/$shop->{shop_id}";
my $browser = MDL::Browser->new;
told('member', 'add', 'owner',    'owner', '--shop', $shop->{shop_id});
told('member', 'add', 'operator', 'operator');

# What is wrong with each form, and what the page says.
my @forms = (
    [ 'owner', "$in/categories",   { name       => ' ' },                    qr/name/ ],
    [ 'owner', "$in/files",        { source_url => 'file:///etc/passwd' },   qr/address|URL/ ],
    [ 'owner', "$in/keys",         { name       => '' },                     qr/name/i ],
    [ 'owner', "$in/license-keys", { name       => '' },                     qr/name/i ],
    [ 'owner', "$in/links",        { title      => 'Forum', url => 'forum' }, qr/address|URL/ ],
    [ 'owner', "$in/packs",        { name       => '' },                     qr/name/i ],
    [ 'owner', "$in/products",     { product    => 'x', title => '' },       qr/number/ ],
    [ 'owner', "$in/webhooks",     { url        => 'ftp://x' },              qr/event|URL/ ],
    [ 'operator', '/settings/shops', { name => '', domain => 'x' },          qr/name|domain/i ],
);
for my $how ([ 'with JavaScript' => 0 ], [ 'without it' => 1 ]) {
    $browser->always(noscript => $how->[1]);
    for my $form (@forms) {
        my ($who, $path, $values, $why) = @$form;
        my %of = (user => $who);
        $browser->task($who, 'open', %of, url => origin() . $path);
        my $sent = $browser->task($who, 'send', %of, action => $path, values => $values);
        like($sent->{focused}, qr{\A[^\n]*$why[^\n]*\z},
            "$path, $how->[0]: what is wrong is in view");
    }
}
$browser->stop;

done_testing();
