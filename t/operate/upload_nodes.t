# Uploads into objects at several nodes on one PostgreSQL and one object store: pieces at each in
# turn, nodes that die or stand still while they write, a database that is away.
#
# pgsql: SQLite serves one node
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use MDL::Contract;
use MDL::Instance;
use MDL::Objects;
use MDL::Swift;
use MDL::Test;
use MDL::Upload;
use Test::More;

use constant { MB => 1024 * 1024, PART => 8 * 1024 * 1024, DEAD => 180 };

my $store = MDL::Swift->new;
my $conf  = object_store($store) . "DownloadsPollInterval 1\n";
my $first = MDL::Instance->new(cluster => 1, extra => $conf)->start;
my $other = MDL::Instance->new(
    without => qr/^DBDParams/,
    extra   => $conf . qq(DBDParams "$first->{vars}{db_params}"\n)
        . qq(DownloadsStorage "$first->{folder}/storage"\n),
)->start;
$first->aim;
my $shop = new_shop();

my $unique = 0;

sub fresh
{
    my ($size) = @_;
    my $line = sprintf '%d of %d, ', ++$unique, $$;
    return substr $line x ($size / length($line) + 1), 0, $size;
}

# An upload with its URL at a node.
sub at
{
    my ($node, $upload) = @_;
    my $url = $upload->{upload_url} =~ s{^http://[^/]+}{http://127.0.0.1:$node->{vars}{port}}r;
    return { %$upload, upload_url => $url };
}

sub row { my ($upload) = @_; return (sql("SELECT arrived, COALESCE(writer, '') FROM upload "
    . "WHERE id = '$upload->{id}'"))[0] }

sub database_back
{
    start_database();
    return wait_for(sub { eval { sql('SELECT 1') } && api('GET', '/health')->{status} == 200 }, 60,
        'the database');
}

# Sends a piece at a node until the upload is no longer locked; returns the answer.
sub patched
{
    my ($node, $upload, $offset, $bytes) = @_;
    return wait_for(sub {
        my $reply = patch_bytes(at($node, $upload), $offset, $bytes);
        return $reply->{status} == 423 ? undef : $reply;
    }, DEAD, 'the end of another write');
}

sub becomes
{
    my ($upload, $bytes) = @_;
    my $reply = complete_upload($shop, $upload);
    is $reply->{status}, 201, 'it becomes an asset' or diag $reply->{body};
    my ($row) = sql("SELECT object FROM blob WHERE sha256 = '${\ sha256_hex($bytes)}'");
    ok $row && $row->[0], 'which has the bytes that were sent' or return;
    is sha256_hex($store->get($row->[0])), sha256_hex($bytes), 'as its object has';
    return;
}

subtest 'pieces at two nodes in turn' => sub {
    my $bytes = fresh(2 * PART + 3 * MB + 17);
    my $upload = begin_upload($shop, size => length $bytes);
    my ($at, @nodes) = (0, $first, $other);
    while ($at < length $bytes) {
        my $reply = patch_bytes(at($nodes[0], $upload), $at, substr $bytes, $at, 3 * MB);
        is $reply->{status}, 204, "from $at on" or last;
        $at = $reply->{headers}{'upload-offset'};
        @nodes = reverse @nodes;
        is offset_of(at($nodes[0], $upload)), $at, 'the other node knows' if $at < length $bytes;
    }
    becomes($upload, $bytes);
};

subtest 'two nodes at once' => sub {
    my $bytes = fresh(MB);
    my $upload = begin_upload($shop, size => length $bytes);
    my $sent = 500;
    my $slow = begin_write($upload, length $bytes, substr($bytes, 0, $sent),
        port => $first->{vars}{port});
    wait_for(sub { row($upload)->[1] }, 60, 'the write');
    is_error(patch_bytes(at($other, $upload), 0, 'x'), 423, 'upload_locked', 'the second');
    my %beats;
    wait_for(sub {
        # mod_reqtimeout wants 500 bytes a second.
        print $slow substr $bytes, $sent, 1000;
        $sent += 1000;
        $beats{ $_->[0] } = 1 for sql('SELECT m.alive_until FROM meter m JOIN upload u '
            . "ON u.writer = m.id WHERE u.id = '$upload->{id}'");
        return keys %beats > 3;
    }, 120, 'heartbeats, for longer than a silent process counts as alive');
    is_error(patch_bytes(at($other, $upload), 0, 'x'), 423, 'upload_locked', 'also later');
    print $slow substr $bytes, $sent;
    is answer_on($slow)->{status}, 204, 'the first is not disturbed';
    becomes($upload, $bytes);
};

subtest 'a node that is killed while it writes' => sub {
    my $bytes = fresh(3 * PART);
    my $upload = begin_upload($shop, size => length $bytes);
    my $cut = begin_write($upload, length $bytes, substr($bytes, 0, 2 * PART + MB),
        port => $other->{vars}{port});
    wait_for(sub { row($upload)->[0] == 2 * PART }, 60, 'two parts');
    $other->kill_all;
    close $cut;
    is offset_of(at($first, $upload)), 2 * PART, 'the other node has all but what made no part';
    # As if it had been killed just now, and not a while ago.
    sql('UPDATE meter SET alive_until = alive_until + 1 WHERE id = '
        . "(SELECT writer FROM upload WHERE id = '$upload->{id}')");
    is_error(patch_bytes(at($first, $upload), 2 * PART, 'x'), 423, 'upload_locked',
        'which nobody may go on with at first');
    is patched($first, $upload, 2 * PART, substr $bytes, 2 * PART)->{status}, 204,
        'but once the dead process is known';
    becomes($upload, $bytes);
    $other->start;
    $first->aim;
};

subtest 'a node that stands still, and wakes up' => sub {
    my $bytes = fresh(2 * PART);
    my $upload = begin_upload($shop, size => length $bytes);
    my $slow = begin_write($upload, length $bytes, substr($bytes, 0, PART + 10),
        port => $other->{vars}{port});
    wait_for(sub { row($upload)->[0] == PART }, 60, 'a part');
    my @pids = $other->processes;
    kill STOP => @pids;
    my $reply = patched($first, $upload, PART, substr $bytes, PART, 100);
    is $reply->{status}, 204, 'another node goes on';
    kill CONT => @pids;
    print $slow 'z' x (PART - 10);
    is_error(answer_on($slow), 423, 'upload_locked', 'the first one is told when it wakes up');
    is offset_of(at($first, $upload)), PART + 100, 'and changes nothing';
    my ($key) = (sql("SELECT written FROM upload WHERE id = '$upload->{id}'"))[0][0]
        =~ /"key":\s*"(\w+)"/;
    ok !exists { $store->objects }->{$key}, 'nor has it made the object';
    is patch_bytes(at($first, $upload), PART + 100, substr $bytes, PART + 100)->{status}, 204,
        'the rest';
    becomes($upload, $bytes);
};

subtest 'the database is away in the middle and at the last byte' => sub {
    my $bytes = fresh(2 * PART + 10);
    my $upload = begin_upload($shop, size => length $bytes);
    my $slow = begin_write($upload, length $bytes, substr($bytes, 0, MB),
        port => $first->{vars}{port});
    wait_for(sub { row($upload)->[1] }, 60, 'the write');
    stop_database();
    is_error(patch_bytes(at($other, $upload), 0, 'x'), 503, 'service_unavailable',
        'a request that has to begin');
    print $slow substr $bytes, MB;
    is_error(answer_on($slow), 503, 'service_unavailable', 'the request');
    database_back();
    wait_for(sub { row($upload)->[1] eq '' }, 60, 'the end of the write');
    is offset_of($upload), length $bytes, 'no byte is lost';
    is patch_bytes($upload, length $bytes, '')->{status}, 204, 'nothing need be sent again';
    becomes($upload, $bytes);
    $bytes = fresh(1000);
    $upload = begin_upload($shop, size => length $bytes);
    $slow = begin_write($upload, 1000, substr($bytes, 0, 500),
        port => $first->{vars}{port});
    wait_for(sub { row($upload)->[1] }, 60, 'a small write');
    $store->delete($_) for grep { /\./ } keys %{ { $store->objects } };
    stop_database();
    close $slow;
    wait_for(sub { grep { /\./ } keys %{ { $store->objects } } }, 60, 'its bytes in the store');
    database_back();
    wait_for(sub { row($upload)->[1] eq '' }, 60, 'the end of a write that was cut meanwhile');
    is offset_of($upload), 500, 'of which every byte is kept';
    is patch_bytes($upload, 500, substr $bytes, 500)->{status}, 204, 'the rest';
    becomes($upload, $bytes);
};

subtest 'what is in the store' => sub {
    my %known = map { $_->[0] => 1 }
        sql('SELECT object FROM blob WHERE object IS NOT NULL UNION SELECT key FROM stray_object');
    my @strange = grep { my $key = $_; !grep { index($key, $_) == 0 } keys %known }
        grep { $_ ne 'identity' } keys %{ { $store->objects } }, $store->uploads;
    is_deeply \@strange, [], 'is a blob, or known as a stray';
};

unlike $_->error_log, qr/exit signal (?!Killed)/, 'no process has crashed' for $first, $other;
$_->stop for $first, $other;
done_testing();
