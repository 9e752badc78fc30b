# Small parts of a session that goes on, which begin with nothing but a look at the database
# (contract, section 8): what they cost, where they end, and that a change takes effect on them at
# once.
#
# both: what may take effect unasked depends on how a change is told
use strict;
use warnings;

use MDL::Customer;
use MDL::Instance;
use MDL::Test;
use MDL::Upload qw(in_objects);
use Test::More;

use constant KB => 1024;

my $server = MDL::Instance->new(mpm => 'event', single => 1, extra => <<'END')->start;
<If "req('X-Ranges') == 'none'">
    MaxRanges none
</If>
END
my $shop   = new_shop();

# A part of so many bytes.
sub part
{
    my ($path, $from, $bytes, %headers) = @_;
    return page('GET', $path,
        headers => { Range => sprintf('bytes=%d-%d', $from, $from + $bytes - 1), %headers });
}

# The status of a request for any ranges.
sub status
{
    my ($path, $ranges, %headers) = @_;
    return page('GET', $path, headers => { Range => "bytes=$ranges", %headers })->{status};
}

# An order of a file of so many KB whose whole was downloaded, and its link, of which a part was
# sent.
sub counted
{
    my ($kb, %opt) = @_;
    my $file = new_file($shop, $kb * KB);
    my $buy  = buy($shop, $file, %opt);
    my $path = link_of($buy);
    is page('GET', $path)->{status}, 200, 'the whole comes';
    is settled($buy)->{used}, 1, 'for one download';
    is part($path, 5, 10)->{status}, 206, 'and a part of it';
    return ($buy, $path);
}

sub order
{
    my ($buy, $what) = @_;
    return api('POST', "/orders/$buy->{id}/$what", key => $shop->{token}, json => {});
}

subtest 'A revoke takes effect on the next part' => sub {
    my ($buy, $path) = counted(64);
    for (1 .. 3) {
        is order($buy, 'revoke')->{status}, 200, 'the order is revoked';
        is part($path, 5, 10)->{status}, 403, 'a part is refused';
        is order($buy, 'restore')->{status}, 200, 'it is restored';
        is part($path, 5, 10)->{status}, 206, 'a part comes again';
    }
};

subtest 'A link that is replaced ends its parts' => sub {
    my ($buy, $path) = counted(64);
    is order($buy, 'rotate-link')->{status}, 200, "the order's link is replaced";
    is part($path, 5, 10)->{status}, 404, 'a part is not found';
};

subtest 'Parts are of the new version of a file' => sub {
    my ($buy, $path) = counted(64);
    my $bytes = join '', map { sprintf '%07d ', $_ } 1 .. 8 * KB;
    my $reply = api('POST', "/assets/$buy->{file}{id}/versions", key => $shop->{token},
        json => { source_url => source('changed.bin', $bytes) });
    is wait_job($shop, $reply->{json}{job}{id})->{status}, 'succeeded', 'the file has new bytes';
    is part($path, 16, 8)->{body}, '0000003 ', 'a part is of them';
    is part($path, 16, 8, 'If-Range' => $buy->{file}{etag})->{body}, $bytes,
        'what follows an old part is the whole';
};

subtest 'Parts of a link end at three times the size of its file' => sub {
    my ($buy, $path) = counted(256);
    my ($sum, $reply) = ($buy->{file}{size}, undef);
    for my $part (1 .. 400) {
        $reply = part($path, 7, 4 * KB);
        last if $reply->{status} != 206;
        $sum += 4 * KB;
        # What counts is what is settled, and that may be late on a busy machine.
        wait_for(sub {
            (sql("SELECT sum(bytes) FROM download_session WHERE asset_id = $buy->{file}{id}"))[0][0]
                >= $sum;
        }, 20, 'what was sent to be settled') if $part % 8 == 0;
    }
    is $reply->{status}, 403, 'in the end they are refused';
    cmp_ok $sum, '>=', 2.9 * $buy->{file}{size},
        "after $sum bytes: the link has sent three times the size";
    cmp_ok $sum, '<=', 3.3 * $buy->{file}{size}, 'and hardly more';
    is account($buy)->{used}, 1, 'for one download';
};

subtest 'A file that comes in small parts is one download' => sub {
    my $file = new_file($shop, 512 * KB);
    my $buy  = buy($shop, $file);
    my $path = link_of($buy);
    my @parts = map { part($path, 8 * KB * $_, 8 * KB) } 0 .. 63;
    is join('', map { $_->{body} } @parts), $file->{bytes}, 'its bytes come';
    is settled($buy)->{used}, 1, 'for one download';
    is page('GET', $path)->{status}, 200, 'the whole comes';
    is settled($buy)->{used}, 2, 'for another one';
};

subtest 'Only parts cost nothing' => sub {
    my ($buy, $path) = counted(64, limit => 2);
    is page('GET', $path, headers => { Range => 'bytes=0-' })->{status}, 206,
        'a range of the whole comes';
    is settled($buy)->{used}, 2, 'for the second download';
    is part($path, 5, 10)->{status}, 206, 'parts still come';
    is page('GET', $path)->{status}, 403, 'there is no third';
    is part($path, 64 * KB, 10)->{status}, 416, 'a part beyond the end is refused';
    is part($path, 5, 10, 'If-Match' => '"other"')->{status}, 412, 'so is one of another file';
    is part($path, 5, 10, 'If-None-Match' => $buy->{file}{etag})->{status}, 304,
        'and one that is there already';
    is part($path, 5, 10, 'Sec-Purpose' => 'prefetch')->{status}, 403, 'and a prefetch';
    is page('HEAD', $path, headers => { Range => 'bytes=5-14' })->{headers}{'content-length'},
        64 * KB, 'HEAD tells of the whole';
};

subtest 'A range that httpd ignores is a request for the whole' => sub {
    my ($buy, $path) = counted(64, limit => 9);
    my $used = 1;
    for ([ '0-0 ,2-2' ], [ '0-0, 2-2' ], [ '0-0,-0' ], [ '0-0,9223372036854775808-' ],
        [ '0-0', 'X-Ranges' => 'none' ]) {
        is status($path, @$_), 200, "@$_: the whole comes";
        is settled($buy)->{used}, ++$used, 'for another download';
    }
};

subtest 'Several ranges in place of which httpd sends the whole are not small' => sub {
    my %several = (overlapping => [ (5) x 22 ], reversed => [ reverse 1 .. 22 ],
        'too many' => [ map { 2 * $_ } 1 .. 201 ]);
    for my $name (sort keys %several) {
        my ($buy, $path) = counted(64);
        for (1, 2) {
            is status($path, join ',', map { "$_-$_" } @{ $several{$name} }), 200,
                "$name: the whole comes";
            settled($buy);
        }
        if (in_objects()) {    # which answer so few ranges that these are requests for the whole
            is settled($buy)->{used}, 3, 'each time for another download';
            next;
        }
        ok wait_for(sub { part($path, 5, 10)->{status} == 403 }, 20, 'a part that is refused'),
            'then the link has sent three times the size';
        is account($buy)->{used}, 1, 'for one download';
    }
};

$server->stop;
done_testing();
