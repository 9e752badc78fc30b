# Output filters of other modules that an operator has put in front of the service's own and that
# read what it sends: what they pass on is metered all the same.
#
# once: what filters pass on does not depend on the database
use strict;
use warnings;

use Test::More;

use MDL::Customer;
use MDL::Instance;
use MDL::DownloadClient;
use MDL::Test;

use constant SIZE => 1_000_000;

my $server = MDL::Instance->new(modules => [qw(filter buffer substitute perl)], mpm => 'event',
    tls => 1, extra => <<'END')->start;
DownloadsSessionIdle 1
<Location /d>
    BufferSize 10000000
    AddOutputFilterByType BUFFER text/plain
    AddOutputFilterByType SUBSTITUTE text/html
    Substitute "s/ and this goes//n"
</Location>
<Perl>
package First;
use base qw(Apache2::Filter);
use Apache2::Const -compile => qw(OK);
use APR::Brigade;
use APR::Bucket;
# Reads the first bucket and passes on the rest as it is.
sub handler : FilterRequestHandler
{
    my ($filter, $brigade) = @_;
    my $first = $brigade->first;
    $first->read(my $bytes) if $first && !$filter->ctx;
    $filter->ctx(1);
    $filter->next->pass_brigade($brigade);
    return Apache2::Const::OK;
}
$INC{'First.pm'} = 1;
</Perl>
<If "req('X-Filter') == 'first'">
    PerlOutputFilterHandler First
</If>
END
my $shop = new_shop();

# --- helpers -------------------------------------------------------------------------------------

sub text_file
{
    my ($type, $line) = @_;
    return new_file($shop, 0, bytes => $line x (SIZE / length $line) . $$, content_type => $type);
}

# Downloads a link over a protocol; returns the status and the length of the body.
sub got
{
    my ($way, $path, @more) = @_;
    my @curl = (qw(curl -sk -m 60 -o /dev/null -w), '%{http_code} %{size_download}', @more,
        $way eq 'HTTP/2'
        ? ('--http2', 'https://localhost:' . $server->tls_port . $path)
        : ('--http1.1', "http://localhost:$server->{vars}{port}$path"));
    open my $out, '-|', @curl or die "curl: $!\n";
    my $output = readline $out;
    close $out;
    return $output;
}

sub costs
{
    my ($buy, $downloads, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $account = settled($buy);
    return is($account->{used}, $downloads, $name) || diag explain $account->{sessions};
}

# --- the cases -----------------------------------------------------------------------------------

my $plain = text_file('text/plain', "a line that stays as it is\n");
my $html  = text_file('text/html',  "one that stays and this goes\n");
my $binary = new_file($shop, SIZE);
my $short = $html->{bytes} =~ s/ and this goes//gr;

for my $way ('HTTP/1.1', 'HTTP/2') {
    subtest "A filter that reads what is sent, over $way" => sub {
        my $buy = buy($shop, $plain, limit => 1);
        is got($way, link_of($buy)), "200 $plain->{size}", 'the whole comes';
        costs($buy, 1, 'and is a download');

        $buy = buy($shop, $plain, limit => 1);
        my $path = link_of($buy);
        is got($way, $path, '-r', '0-499999'), '206 500000', 'a half comes';
        costs($buy, 0, 'and is none');
        is got($way, $path, '-r', '500000-'), '206 ' . ($plain->{size} - 500_000),
            'so does the other';
        costs($buy, 1, 'both are one download');
    };

    subtest "A filter that reads the beginning of what is sent, over $way" => sub {
        my $buy = buy($shop, $binary, limit => 1);
        is got($way, link_of($buy), '-H', 'X-Filter: first'), "200 $binary->{size}",
            'the whole comes';
        costs($buy, 1, 'and is a download');
        is account($buy)->{sessions}[0]{bytes_delivered}, $binary->{size}, 'each byte counts once';
    };

    subtest "A filter that shortens what is sent, over $way" => sub {
        my $buy = buy($shop, $html, limit => 1);
        is got($way, link_of($buy)), '200 ' . length $short, 'it comes';
        costs($buy, 1, 'and is a download');
    };

    subtest "Two bytes through a filter that reads, over $way" => sub {
        my $buy = buy($shop, $plain, limit => 1);
        my ($status, $length) = split / /, got($way, link_of($buy), '-r', '0-0,500000-500000');
        is $status, 206, 'they come in parts';
        costs($buy, 0, 'and are no download');
        is account($buy)->{sessions}[0]{bytes_delivered}, $length,
            'only the body counts as delivered';
    };
}

subtest 'A client that breaks off behind a filter pays nothing' => sub {
    my $buy    = buy($shop, $html, limit => 1);
    my $answer = MDL::DownloadClient->over('HTTP/1.1', $server, link_of($buy));
    $answer->read_until(20_000)->leave;
    costs($buy, 0, 'it costs nothing');
};

$server->stop;
done_testing();
