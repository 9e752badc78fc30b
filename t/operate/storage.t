# The storage folder belongs with the database: httpd starts on no other, and `downloadsctl check` says why.
use strict;
use warnings;

use MDL::Instance;
use MDL::Source;
use MDL::Test;
use Test::More;

use constant MB => 1024 * 1024;

my $server = MDL::Instance->new(extra => "DownloadsPollInterval 1\n")->start;
my $folder = "$server->{folder}/storage";
my $empty  = "$server->{folder}/empty";
mkdir $empty or die "$empty: $!\n";
my $source = MDL::Source->new;
my $shop   = new_shop();

sub import_of
{
    my ($name, %answer) = @_;
    my $reply = api('POST', '/assets', key => $shop->{token}, json => { source_url => $source->offer($name, \%answer) });
    return $reply->{json}{job}{id} // die "import: $reply->{status} $reply->{body}\n";
}

sub use_folder
{
    my ($path) = @_;
    $server->configure(extra => "DownloadsPollInterval 1\nDownloadsStorage $path\n");
    return;
}

# What downloadsctl says of the folder: (whether it is well, the line).
sub checked
{
    my ($code, $json) = ctl('check');
    my ($line) = grep { $_->{name} eq 'storage' } @{ $json->{checks} };
    return ($line->{ok} ? 1 : 0, $line->{message});
}

is wait_job($shop, import_of('first', body => 'first'))->{status}, 'succeeded', 'a new server makes a folder its own';
my ($identity) = (MDL::Test::slurp("$folder/identity") // 'none') =~ /^(storage_\w{26})\n\z/;
is_deeply [ sql('SELECT identity FROM storage') ], [ [$identity] ], 'and the database knows it';
is_deeply [ checked() ], [ 1, $folder ], 'downloadsctl has nothing to say';

subtest 'a graceful restart on an empty folder' => sub {
    use_folder($empty);
    my $log = error_log_size();
    httpd_graceful();
    like error_log_since($log), qr/MDL0350: .*\Q$identity\E.*MDL0351/s, 'the log says which folder is missing';
    is api('GET', '/ping', key => $shop->{token})->{status}, 200, 'requests are served';
    my $reply = api('POST', '/assets/uploads', key => $shop->{token}, json => { filename => 'a.pdf', size => 10 });
    is $reply->{status}, 503, 'but no upload is taken' or diag $reply->{body};
    wait_for(sub { error_log_since($log) =~ /MDL0320: .*\Q$identity\E/ }, 10, 'the background process');
    my $job = import_of('second', body => 'second');
    is qx(find '$empty' -type f), '', 'no file is written there';
    use_folder($folder);
    httpd_graceful();
    is wait_job($shop, $job)->{status}, 'succeeded', 'an import waits until the folder is right again';
};

subtest 'a start on an empty folder' => sub {
    $server->stop;
    use_folder($empty);
    my $log = error_log_size();
    $server->httpd('-k', 'start');
    wait_for(sub { error_log_since($log) =~ /MDL0351/ && !$server->processes }, 20, 'the refusal');
    my ($command) = error_log_since($log) =~ /MDL0350: .*: (echo \S+ >\S+)/;
    ok $command, 'is refused, and the log has a command';
    my ($well, $line) = checked();
    ok !$well, 'downloadsctl finds it, too';
    like $line, qr/\Q$command\E$/, 'and prints the same command';
    is qx(find '$empty' -type f), '', 'no file is written there';
    is system($command), 0, 'with which the folder takes the place of the other';
    $server->start;
    is wait_job($shop, import_of('third', body => 'third'))->{status}, 'succeeded', 'and is used';
};

subtest 'a node that starts on the same host with the same folder' => sub {
    my @running = map { import_of("running-$_", size => MB, hold => MB / 2) } 1 .. 4;
    wait_for(sub { my ($row) = sql("SELECT count(*) FROM job WHERE status = 'running'"); $row->[0] == 4 }, 10, 'four imports');
    my $node = MDL::Instance->new(
        without => qr/^DBDParams/,
        extra   => qq(DBDParams "$server->{vars}{db_params}"\nDownloadsStorage $empty\nDownloadsPollInterval 1\n),
    )->start;
    is wait_job($shop, import_of('fourth', body => 'fourth'))->{status}, 'succeeded', 'works';
    $server->aim;
    $source->release("running-$_") for 1 .. 4;
    is_deeply [ map { wait_job($shop, $_)->{status} } @running ], [ ('succeeded') x 4 ], 'the others go on';
    my $of = join ',', map { "'$_'" } @running;
    is_deeply [ sql("SELECT DISTINCT lease_token FROM job WHERE id IN ($of)") ], [ [1] ], 'with their jobs';
    $node->stop;
};

$server->aim;
$server->stop;
done_testing;
