# Without DownloadsStorage every file is in an object, and an httpd that would miss a file of the
# folder does not start.
#
# both: each database is asked whether a file is left in the folder
use strict;
use warnings;

use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Objects;
use MDL::Source;
use MDL::Swift;
use MDL::Test;
use MDL::Upload;
use Test::More;

my $store  = MDL::Swift->new;
my $lines  = object_store($store);
my $alone  = qr/^DownloadsStorage /;
my $server = MDL::Instance->new->start;
my $shop   = new_shop();
my $old    = ready_asset($shop, 'old.pdf', 'in the folder');

sub uploaded
{
    my ($bytes) = @_;
    my $upload = begin_upload($shop, size => length $bytes, filename => 'up.pdf');
    put_bytes($upload, $bytes);
    my $reply = complete_upload($shop, $upload);
    is $reply->{status}, 201, 'an upload becomes an asset' or diag $reply->{body};
    return $reply->{json}{asset};
}

sub gives
{
    my ($file, $bytes, $name) = @_;
    my $got = page('GET', link_of(buy($shop, $file)));
    is_deeply [ $got->{status}, $got->{body} ], [ 200, $bytes ], $name;
    return;
}

subtest 'a file is left in the folder' => sub {
    $server->stop;
    $server->configure(extra => $lines, without => $alone);
    my $log = error_log_size();
    $server->httpd('-k', 'start');
    wait_for(sub { error_log_since($log) =~ /MDL0351/ && !$server->processes }, 60, 'the refusal');
    like error_log_since($log), qr/MDL0350: .*DownloadsStorage is missing.*storage copy/,
        'httpd does not start, and says what to do';
    my ($code, $check) = ctl('check');
    is $code, 6, 'downloadsctl check finds it';
    like join(' ', map { "$_->{name}: $_->{message}" } grep { !$_->{ok} } @{ $check->{checks} }),
        qr/storage: .*DownloadsStorage is missing/, 'in the same words';
};

subtest 'all files are in objects' => sub {
    $server->configure(extra => $lines, without => undef);
    $server->start;
    is((ctl('storage', 'copy', 'folder', 'object'))[0], 0, 'they are copied');
    $server->stop;
    $server->configure(extra => $lines, without => $alone);
    $server->start;
    gives($old, 'in the folder', 'an old file is downloaded');
    gives(ready_asset($shop, 'new.pdf', 'imported'), 'imported', 'an import too');
    gives(uploaded('uploaded'), 'uploaded', 'and an upload');
    my $reply;
    wait_for(sub { ($reply = api('GET', '/health/storage'))->{status} == 200 }, 60, 'health');
    is_deeply $reply->{json}, { status => 'ok', folder => undef, objects => 'ok' },
        '/health/storage says that there is no folder';
    is api('GET', '/health/ready')->{status}, 200, 'the node is ready';
    my ($line) = grep { $_->{name} eq 'storage' } @{ (ctl('check'))[1]{checks} };
    is_deeply [ @$line{qw(ok message)} ], [ JSON::PP::true(), 'no folder, only objects' ],
        'and so says downloadsctl check';
};

$server->stop;
done_testing;
