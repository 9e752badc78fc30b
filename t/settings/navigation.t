# The links at the top of the settings: who sees which, where they lead, and which of them a page
# says it is.
#
# once: a page of links
use strict;
use warnings;

use MDL::Settings;
use MDL::Test;
use Test::More;

my $server = settings_server();
my $id     = new_shop()->{shop_id};
told('member', 'add', $_->[0], $_->[1], '--shop', $id)
    for [ owner => 'owner' ], [ staff => 'staff' ], [ reader => 'read-only' ];
told('member', 'add', 'operator', 'operator');

sub links
{
    my ($list) = @_;
    my @links;
    push @links, [ $1, $2 // '', $3 ]
        while $list =~ m{<a href="/settings([^"]+)"(?: aria-current="(\w+)")?>([^<]+)</a>}g;
    return @links;
}

# The links of a page's lists, the first and the second level: [ href, aria-current, text ].
sub levels
{
    my ($user, $path) = @_;
    my $page = visit($user, 'GET', $path);
    is($page->{status}, 200, "$user opens $path");
    my ($nav) = $page->{body} =~ m{<nav[^>]*>(.*?)</nav>}s;
    return map { [ links($_) ] } $nav =~ m{<ul[^>]*>(.*?)</ul>}gs;
}

my %seen;
for my $user (qw(reader staff owner operator)) {
    my @to = map { $_->[0] } @{ (levels($user, "/$id/"))[0] };
    my %done;
    while (defined(my $path = shift @to)) {
        next if $done{$path}++;
        my ($first, $second) = levels($user, $path);
        my @current = grep { $_->[1] eq 'page' } @$first, @{ $second // [] };
        is_deeply([ map { $_->[0] } @current ], [$path], "$path says that it is this page");
        is(scalar(grep { $_->[1] } @$first), 1, 'in one tab');
        push @to, map { $_->[0] } @{ $second // [] };
        $seen{$user}{ $current[0][2] } = 1;
    }
}
ok(!$seen{$_}{Members} && !$seen{$_}{Audit}, "$_ has no link to an owner's page")
    for qw(reader staff);
ok($seen{$_}{Members} && $seen{$_}{Audit} && $seen{$_}{'API keys'}, "$_ has")
    for qw(owner operator);
for my $page ('All shops', 'Health') {
    is_deeply([ grep { $seen{$_}{$page} } sort keys %seen ], ['operator'],
        "only an operator has one to $page");
}

my ($first, $second) = levels('owner', "/$id/keys");
is((grep { $_->[1] } @$first)[0][2], 'Settings', 'the tab of a page of the second level is marked');
is(scalar(levels('owner', "/$id/")), 1, 'a tab with one page has no second level');
($first) = levels('operator', '/shops');
is_deeply([ map { $_->[2] } @$first ], [ 'All shops', 'Health' ],
    'without a shop there are no links to one');

$server->stop;
done_testing;
