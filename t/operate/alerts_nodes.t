# Alerts of two nodes: what concerns both is told by one, a node's own folder by each.
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use Test::More;

use MDL::Alerts;
use MDL::Test;

my $one = alerting('');
my $two = alerting(<<"END", without => qr/^(?:DBDParams|DownloadsMailTransport)/);
DBDParams "$one->{vars}{db_params}"
DownloadsStorage "\@t_logs\@/shared"
DownloadsMailTransport "maildir:$one->{folder}/mail"
END
my $both = sub { sort map { told($_) } $one, $two };
my $secret = sub { sql("UPDATE api_key SET secret_id = $_[0]") };
symlink "$one->{folder}/storage", "$two->{folder}/shared" or die "symlink: $!\n";
$_->start for $two, $one;    # the last of which is asked from now on
new_shop();
wait_for(sub { (sql('SELECT count(*) FROM node'))[0][0] == 2 }, 30, 'both heartbeats');
$secret->(q{'strange'});
chmod 0500, "$one->{folder}/storage/partial";
wait_told($_, 'storage failed') for $one, $two;
wait_for(sub { grep { /secret/ } $both->() }, 30, 'told: secret failed');
wait_for(sub { log_count($_, 'MDL0394: .* round 12$') }, 180, 'more rounds') for $one, $two;
is_deeply [ $both->() ], [ 'secret failed', ('storage failed') x 2 ],
    'what concerns both is told by one, a folder by each';
chmod 0700, "$one->{folder}/storage/partial";
$secret->(q{(SELECT max(id) FROM secret)});
wait_told($_, 'storage well') for $one, $two;
wait_for(sub { (sql('SELECT count(*) FROM alert'))[0][0] == 0 }, 60, 'all was told');
is_deeply [ $both->() ],
    [ 'secret failed', 'secret well', ('storage failed') x 2, ('storage well') x 2 ],
    'and so that it is well';

$two->stop;
forget_told($one);
touch($one, 'fail');
other_node('old', q{'0.0.9'}, -3_600_000_000);
wait_for(sub { log_count($one, 'could not tell of "version failed"') }, 30, 'one that can not');
$one->stop;
forget_told($two);
$two->start;
wait_told($two, 'version failed');
is_deeply [ told($two) ], ['version failed'], 'another node tells what a stopped one has not';
$two->stop;

done_testing();
