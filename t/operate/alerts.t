# Alerts: what a test of the service finds wrong is told once, and once when it is well again, over
# restarts. The other suites of alerts have the rest: they wait for rounds, so each is a suite.
#
# both: what the tests find, and how the database remembers it
use strict;
use warnings;

use Test::More;

use MDL::Alerts;
use MDL::Instance;
use MDL::Maildir;
use MDL::Test;

my $TO = 'operator@example.test';

my $templates;

# How to make a test fail, and how it passes again; by its name.
sub breakages
{
    my ($node) = @_;
    my $folder = $node->{folder};
    my $template = "$templates/page.html";
    my $text     = MDL::Test::slurp($template);
    return (
        version => [ sub { other_node('old', q{'0.0.9'}, -3_600_000_000) },
            sub { sql(q{DELETE FROM node WHERE pid_file = '/run/old.pid'}) } ],
        worker => [ sub { other_node('silent', 'build', 600_000_000) },
            sub { sql(q{DELETE FROM node WHERE pid_file = '/run/silent.pid'}) } ],
        secret => [ sub { sql(q{UPDATE api_key SET secret_id = 'strange' WHERE secret_id <> ''}) },
            sub { sql(q{UPDATE api_key SET secret_id = (SELECT max(id) FROM secret)}) } ],
        storage => [ sub { chmod 0500, "$folder/storage/partial" },
            sub { chmod 0700, "$folder/storage/partial" } ],
        templates => [ sub { MDL::Instance::write_file($template, "<p>\n{{#shop}}\n") },
            sub { MDL::Instance::write_file($template, $text) } ],
        mail => [ sub { chmod 0500, "$folder/mail/tmp" }, sub { chmod 0700, "$folder/mail/tmp" } ],
        bounces => [ sub { rename "$folder/bounces", "$folder/away" },
            sub { rename "$folder/away", "$folder/bounces" } ],
    );
}

my $server = alerting('');
my $folder = $server->{folder};
$templates = "$folder/templates";
system('cp', '-r', 'conf/templates', $templates) == 0 or die "no templates\n";
$server->{extra} .= <<"END";
DownloadsTemplates "$templates"
DownloadsMailBounces "maildir:$folder/bounces"
DownloadsAlertEmail $TO
END
$server->configure(extra => $server->{extra});
$server->start;
my $shop = new_shop();
wait_for(sub { (sql('SELECT count(*) FROM node'))[0][0] }, 30, 'a heartbeat');
my %breakages = breakages($server);
my @names = sort keys %breakages;

sub break_all { $_->[0]->() for values %breakages; return }
sub mend      { $breakages{$_}[1]->() for @_; return }

subtest 'each test is told once, and once when it is well again' => sub {
    break_all();
    wait_told($server, "$_ failed") for @names;
    like((told($server, 'storage'))[0], qr/\|At \S+: Files can't be stored in \Q$folder\E/,
        'words name the node, and say what to do');
    like((told($server, 'templates'))[0], qr/page\.html is not valid/, 'those of another test');
    mend('templates');    # without which httpd does not restart
    round_over($server);
    httpd_graceful();
    wait_told($server, 'templates well');
    is_deeply [ told($server) ], [ sort 'templates well', map { "$_ failed" } @names ],
        'nothing twice, also not after a restart';
    mend(grep { $_ ne 'templates' } @names);
    wait_told($server, "$_ well") for @names;
    my @all = sort map { ("$_ failed", "$_ well") } @names;
    is_deeply [ told($server) ], \@all, 'each once in all';
    like((told($server, 'worker'))[1], qr/\|Well again\.  It was: At \S+: The background process/,
        'which say what it was');
    is log_count($server, 'MDL0390'), @names, 'the log has each that failed';
    is log_count($server, 'MDL0391'), @names, 'and each that is well again';
};

subtest 'emails' => sub {
    cmp_ok log_count($server, 'MDL0392: DownloadsAlertEmail could not tell of "mail failed": No '),
        '>=', 1, 'the log says that emails were at fault';
    wait_for(sub { (sql('SELECT count(*) FROM alert'))[0][0] == 0 }, 60, 'all was told');
    unlink map { $_->{path} } mails($TO);
    $breakages{storage}[0]->();
    my $mail = wait_mail($TO, 60);
    like $mail->{headers}{subject}, qr/: storage failed$/, 'the subject';
    like $mail->{text}, qr/Files can't be stored.*line "storage" of/s, 'the text';
    $breakages{storage}[1]->();
    wait_for(sub { mails($TO) > 1 }, 60, 'another email');
    is_deeply [ map { $_->{headers}{subject} =~ /: (.*)/ } mails($TO) ],
        [ 'storage failed', 'storage well' ], 'one each';
};

subtest 'a finding that comes and goes' => sub {
    forget_told($server);
    # Well for two rounds, which is too short to be believed, however late this test looks.
    on_telling($server, <<"END");
case "\$1 \$2" in
'storage failed') chmod 0700 '$folder/storage/partial'; mv '$folder/bounces' '$folder/away' ;;
'bounces failed') chmod 0500 '$folder/storage/partial'; mv '$folder/away' '$folder/bounces' ;;
esac
END
    $breakages{storage}[0]->();
    wait_told($server, $_) for 'storage failed', 'bounces failed', 'bounces well';
    is_deeply [ told($server, 'storage') ], [ (told($server, 'storage'))[0] ], 'is told once';
    unlink "$folder/first";
    mend('storage');
    wait_told($server, 'storage well');
    is scalar(told($server, 'storage')), 2, 'and that it is well, too';
};

$server->stop;
done_testing();
