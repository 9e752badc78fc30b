# A client that leaves the end of a file in the server's kernel for longer than the service waits for
# what it has sent (a minute) has it counted, or does not get it.  It takes the minute: make check-slow.
use strict;
use warnings;

use MDL::Buyer;
use MDL::Instance;
use MDL::Leaver;
use MDL::Test;
use Test::More;

use constant { KB => 1024, MB => 1024 * 1024 };

plan skip_all => 'waits for minutes: make check-slow' if !$ENV{SLOW};

my %WAYS = (
    event   => [ 'HTTP/1.1', 'TLS', 'HTTP/2' ],
    worker  => [ 'HTTP/1.1', 'TLS', 'HTTP/2' ],
    prefork => [ 'HTTP/1.1', 'TLS' ],
);

# Bytes that it leaves: what both kernels can hold between them, and less.
my @LEFT = (1, 20 * KB, 60 * KB, 120 * KB);

# All wait at the same time, each at a server of its processing model.
my @waiting;
for my $mpm (sort keys %WAYS) {
    my $server = MDL::Instance->new(tls => 1, mpm => $mpm, extra => "DownloadsSessionIdle 1\n")->start;
    my $shop   = new_shop();
    my $file   = new_file($shop, 8 * MB);
    for my $way (@{ $WAYS{$mpm} }) {
        for my $left (@LEFT) {
            my $buy    = buy($shop, $file, limit => 1);
            my $client = MDL::Leaver->over($way, $server, link_of($buy));
            push @waiting, { name => "$mpm, $way, $left bytes", server => $server, buy => $buy,
                client => $client->read_until($file->{size} - $left) };
        }
    }
}

for (@waiting) {
    my ($server, $buy, $client) = @$_{qw(server buy client)};
    subtest "A client that leaves the end for a minute: $_->{name}" => sub {
        $server->aim;
        my $before = settled($buy, 200);
        my $whole  = $client->rest && $client->sha256 eq $buy->{file}{sha256};
        is settled($buy, 200)->{used}, 1, 'what it gets whole in the end is a download' if $whole;
        ok !$whole || $before->{used} == 1, 'it is not given back before'
            or diag explain $before->{sessions};
    };
}

done_testing();
