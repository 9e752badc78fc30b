# What an archive costs: each of its files by what was delivered of it (contract, section 8).
#
# both: bytes are settled under other locks
use strict;
use warnings;

use Test::More;

use MDL::Instance;
use MDL::DownloadClient;
use MDL::Test;
use MDL::Zip;

use constant KB => 1024;

my $server = MDL::Instance->new(extra => "DownloadsSessionIdle 1\n")->start;
my $shop   = new_shop();

sub random_bytes
{
    my ($size) = @_;
    open my $in, '<:raw', '/dev/urandom' or die "/dev/urandom: $!\n";
    read($in, my $bytes, $size) == $size or die "/dev/urandom is short\n";
    return $bytes;
}

my @files = map { { name => "part-$_.bin", bytes => random_bytes(300 * KB) } } 1, 2;
stock($shop, @files);

# --- helpers -------------------------------------------------------------------------------------

sub an_order { return order_of($shop, \@files, download_limit => 1) }

# The archive of these files is the same in each order.
my $archive = page('GET', link_of($shop, order_of($shop, \@files)))->{body};
my $size    = length $archive;

# Where each file's bytes begin and end in the archive.
my @begin = map { index $archive, $_->{bytes} } @files;
my @end   = map { $begin[$_] + $files[$_]{size} } 0, 1;
die "the archive has not both files\n" if grep { $_ < 0 } @begin;
my $middle = $begin[1] + $files[1]{size} / 2;

sub account
{
    my ($order) = @_;
    my $reply = api('GET', "/orders/$order->{id}", key => $shop->{token});
    die "order: $reply->{status} $reply->{body}\n" if $reply->{status} != 200;
    my $json = $reply->{json};
    return {
        used     => join(' ', map { $_->{downloads_used} } @{ $json->{assignments}[0]{files} }),
        sessions => join(' ', map { $_->{status} } @{ $json->{downloads} }),
    };
}

# Checks what the order has cost, and its sessions, newest first, once none is open any more.
sub costs
{
    my ($order, $used, $sessions, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $account;
    wait_for(sub { $account = account($order); return $account->{sessions} !~ /open/ }, 20,
        "the end of the sessions of order $order->{id}");
    return is "$account->{used}, $account->{sessions}", "$used, $sessions", $name;
}

# Requests a range of the archive, or of another body, and checks the bytes.
sub is_part
{
    my ($path, $range, $name, $whole) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $whole //= $archive;
    my ($from, $to) = $range =~ /^(\d+)-(\d*)$/ or die "no range: $range\n";
    $to = length($whole) - 1 if $to eq '';
    my $reply = part($path, $range);
    is $reply->{status}, 206, $name or return;
    return ok $reply->{body} eq substr($whole, $from, $to - $from + 1), "$name: as it is";
}

# Presses a button and follows it; returns the final status, and the path.
sub pressed
{
    my ($order, %form) = @_;
    my $reply = page('POST', $order->{path}, form => \%form);
    return ($reply->{status}, '') if $reply->{status} != 303;
    my ($path) = $reply->{headers}{location} =~ m{^https?://[^/]+(/.+)$};
    return (page('GET', $path, headers => { Range => 'bytes=0-0' })->{status}, $path);
}

sub file_button { my ($order, $i) = @_; return (file => "$order->{assignment}-$files[$i]{id}") }

sub file_link
{
    my ($order, $i) = @_;
    my $url = urls($shop, $order)->{files}[$i]{url} // die "no link to a file\n";
    return $url =~ s{^https?://[^/]+}{}r;
}

sub is_refused
{
    my ($order, $name, %form) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is +(pressed($order, %form))[0], 403, $name;
}

# An order of whose archive one range was downloaded.
sub an_order_with
{
    my ($range, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $order = an_order();
    $order->{zip} = link_of($shop, $order);
    is_part($order->{zip}, $range, $name);
    return $order;
}

# --- the cases -----------------------------------------------------------------------------------

subtest 'A whole archive costs one of each file, at once' => sub {
    my $order = an_order();
    my $reply = page('GET', link_of($shop, $order));
    ok $reply->{body} eq $archive, 'it comes';
    is account($order)->{used}, '1 1', 'it has cost one of each';
    costs($order, '1 1', 'counted', 'and has still when it is idle');
};

subtest 'Headers alone cost nothing' => sub {
    costs(an_order_with('0-20', 'the first bytes'), '0 0', 'returned', 'once it is idle');
};

subtest 'An archive without the end of its directory costs as much as a whole one' => sub {
    my $order = an_order_with('0-' . ($size - 24), 'all but the last 23 bytes');
    costs($order, '1 1', 'counted', 'once it is idle');
    is_refused($order, "file @{[ $_ + 1 ]} is used up", file_button($order, $_)) for 0, 1;
    is_refused($order, 'and so is the archive', zip => $order->{assignment});
};

subtest 'A transfer that ends within a file costs the files before it' => sub {
    my $order = an_order_with('0-' . ($middle - 1), 'the first file and half of the second');
    costs($order, '1 0', 'returned', 'once it is idle');
    is_refused($order, 'the first file is used up', file_button($order, 0));
    is_refused($order, 'and there is no other archive', zip => $order->{assignment});
    my $reply = page('GET', file_link($order, 1));
    ok $reply->{body} eq $files[1]{bytes}, 'the second can be had by itself';
    costs($order, '1 1', 'counted returned', 'and is used up then');
    is part($order->{zip}, "$middle-")->{status}, 403, 'so that the archive does not go on';
};

subtest 'A file costs a download once its last byte has come' => sub {
    my $short = an_order_with('0-' . ($end[0] - 2), 'all of the first file but a byte');
    my $whole = an_order_with('0-' . ($end[0] - 1), 'all of the first file');
    costs($short, '0 0', 'returned', 'without it nothing');
    costs($whole, '1 0', 'returned', 'with it one');
};

subtest 'An archive goes on, though what it has delivered is used up' => sub {
    my $order = an_order_with('0-' . ($middle - 1), 'the first file and half of the second');
    costs($order, '1 0', 'returned', 'it is idle');
    is_part($order->{zip}, "$middle-", 'the rest by the same link');
    costs($order, '1 1', 'counted', 'one of each in the end');
    is_refused($order, "file @{[ $_ + 1 ]} is used up", file_button($order, $_)) for 0, 1;
};

subtest 'Half a file from the archive and half of it by itself are one download' => sub {
    my $order = an_order_with("$begin[1]-" . ($middle - 1), 'half of the second file');
    costs($order, '0 0', 'returned', 'which costs nothing');
    is_part(file_link($order, 1), $files[1]{size} / 2 . '-', 'the other half', $files[1]{bytes});
    costs($order, '0 1', 'counted returned', 'together they are a download of it');
    is_refused($order, 'which was the only one', file_button($order, 1));
    is +(pressed($order, file_button($order, 0)))[0], 206, 'the first file is still there';
};

subtest 'Two halves of a file from two archives are one download' => sub {
    my $half  = $begin[0] + $files[0]{size} / 2;
    my $order = an_order_with("$begin[0]-" . ($half - 1), 'half of the first file');
    costs($order, '0 0', 'returned', 'which costs nothing');
    is_part(link_of($shop, $order), "$half-" . ($end[0] - 1), 'the other half by another link');
    costs($order, '1 0', 'returned returned', 'together they are a download of it');
};

# An order of a pack whose content the shop changes during the download.
sub an_order_by_pack
{
    my $pack  = MDL::Zip::made($shop, 'POST', '/packs',
        { name => 'Changing', file_ids => [ $files[0]{id} ] });
    my $order = order_of($shop, [ $files[0], $files[1] ], pack_ids => [ $pack->{id} ],
        download_limit => 1);
    my $third = { name => 'part-3.bin', bytes => random_bytes(1000) };
    stock($shop, $third);
    $order->{change} = sub {
        MDL::Zip::made($shop, 'PATCH', "/packs/$pack->{id}", { file_ids => [ $third->{id} ] });
    };
    return $order;
}

subtest 'What was delivered counts although the archive changes before the session is idle' => sub {
    my $order = an_order_by_pack();
    is_part(link_of($shop, $order), '0-' . ($size - 24), 'all but the end');
    $order->{change}->();
    costs($order, '1 1 0', 'counted', 'the files that came count');
};

subtest 'What is being sent counts although its link has moved on to another archive' => sub {
    my $order  = an_order_by_pack();
    my $path   = link_of($shop, $order);
    my $answer = MDL::DownloadClient->over('HTTP/1.1', $server, $path);
    $answer->read_until(100 * KB);
    $order->{change}->();
    is part($path, '0-0')->{status}, 206, 'a byte of the new one';
    ok $answer->rest, 'the whole of the old one comes';
    costs($order, '1 1 0', 'returned counted', 'its files count');
};

$server->stop;
done_testing();
