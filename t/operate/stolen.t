# What a stolen copy of the database opens: nothing. A script tries every value of every column, and
# every part of one, as an API key, as the address of an upload, a page, a file, an archive and a
# link, and as the session and the token of a form of the settings. Nor do secrets lie there in
# clear.
#
# both: each is copied in its own way
use strict;
use warnings;

use Compress::Raw::Zlib ();
use HTTP::Tiny;
use JSON::PP ();
use MDL::Contract;
use MDL::Settings;
use MDL::Source;
use MDL::Storefront;
use MDL::Test;
use MDL::Upload;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Test::More;

my $true   = JSON::PP::true();
my $JSON   = JSON::PP->new->utf8;
my $server = settings_server(form => 1);
my $source = MDL::Source->new;
my $shop   = new_shop();
my $id     = $shop->{shop_id};
my %secret;    # what must not lie there in clear, by name
my $session;   # the cookie of an owner

# --- a little of everything ----------------------------------------------------------------------

sub made
{
    my ($method, $path, $json, %opt) = @_;
    my $reply = api($method, $path, key => $shop->{token},
        defined $json ? (json => $json) : (), %opt);
    die "$method $path: $reply->{status} $reply->{body}\n" if $reply->{status} !~ /^20/;
    return $reply->{json};
}

sub imported
{
    my ($name, @answers) = @_;
    return made('POST', '/assets',
        { source_url => $source->offer($name, @answers) . "?signature=Query-of-$name" });
}

sub last_part { my ($url) = @_; return $url =~ m{/([^/]+)\z} ? $1 : die "no address: $url\n" }

sub keys_of_shop
{
    my $read = told('key', 'create', $id, 'to read', '--scope', 'read')->{token};
    my $gone = told('key', 'create', $id, 'revoked');
    told('key', 'revoke', $gone->{key}{id} // $gone->{id});
    told('member', 'add', 'owner', 'owner', '--shop', $id);
    $session = sign_in('owner')->{cookie};
    $secret{'the session'} = $session =~ s/^.*=//r;
    my $form = submit($session, visit($session, 'GET', "/$id/keys"), "/$id/keys",
        { name => 'Of a form', scope => 'full', expires => '' });
    my %keys = (used => $shop->{token}, read => $read, gone => $gone->{token},
        form => $form->{body} =~ /(adk_live_\w+)/);
    api('GET', '/ping', key => $_) for values %keys;
    $secret{"the key $_"} = substr $keys{$_}, 26 for keys %keys;
    return;
}

sub uploads
{
    my $whole = begin_upload($shop, filename => 'whole.bin', size => 10);
    put_bytes($whole, '0123456789');
    complete_upload($shop, $whole);
    my $part = begin_upload($shop, filename => 'part.bin', size => 1000);
    patch_bytes($part, 0, 'x' x 400);
    $secret{"the upload $_->{id}"} = last_part($_->{upload_url}) for $whole, $part;
    return $part;
}

# Two files, by URLs with queries; a third whose source says no keeps its query for the next try.
sub imports
{
    my @assets = map { imported($_, { size => 1000 }) } qw(first second);
    push @assets, imported('third', { status => 404 });
    wait_job($shop, $_->{job}{id}) for @assets;
    $secret{"the query of the $_ file"} = "Query-of-$_" for qw(first second third);
    return map { $_->{asset}{id} } @assets[ 0, 1 ];
}

sub mapped_product
{
    my @files = imports();
    my $link  = made('POST', '/links',
        { title => 'Manual', url => 'https://docs.example.com/manual' })->{id};
    my $tag   = made('POST', '/license-key-tags', { name => 'Editor' })->{id};
    made('POST', "/license-key-tags/$tag/keys",
        { keys => [ map { "LICENSE-$_-OF-EDITOR" } 1 .. 5 ] });
    $secret{"license key $_"} = "LICENSE-$_-OF-EDITOR" for 1 .. 5;
    return (mapping_of($shop, \@files, link_ids => [$link], license_key_tag_ids => [$tag],
        download_type => 'ZIP')->{storefront_product_id}, $tag);
}

# An order that was looked at, downloaded and mailed.
sub order
{
    my ($product, $quantity) = @_;
    my $number = digits();
    my $order  = made('POST', "/orders/$number/assignments", {
        storefront_customer_id => $number, send_email => $true,
        customer => { email => "buyer-$number\@example.com" },
        items => [ { storefront_product_id => $product, quantity => $quantity } ] });
    my $urls = made('GET',
        "/orders/$number/assignments/$order->{assignments}[0]{id}/download-urls", undef);
    my $page = page('GET', $order->{download_page_url});
    my ($link) = $page->{body} =~ m{href="([^"]*/l/[^"]+)"};
    my $pressed = page('POST', $order->{download_page_url},
        form => { file => $page->{body} =~ /name="file" value="([^"]+)"/ });
    my %order = (
        number  => $number,
        page    => last_part($order->{download_page_url}),
        file    => $urls->{files}[0]{url} =~ m{/f/([^/]+)},
        archive => $urls->{zip}{url} =~ m{/z/([^/]+)},
        link    => last_part($link),
        button  => $pressed->{headers}{location} =~ m{/f/([^/]+)},
    );
    is(page('GET', $_)->{status}, 200, 'a file is downloaded')
        for $urls->{files}[1]{url}, $pressed->{headers}{location};
    is(page('GET', $urls->{zip}{url}, headers => { Range => 'bytes=0-99' })->{status}, 206,
        'an archive in part');
    page('GET', $link);
    $secret{"the $_ of order $number"} = $order{$_} for qw(page file archive link button);
    return \%order;
}

# What happens to orders besides.
sub more_of_orders
{
    my ($product, $tag) = @_;
    my $revoked = order($product, 1);
    made('POST', "/orders/$revoked->{number}/revoke", { reason => 'A chargeback' });
    my $rotated = order($product, 1);
    my $now = made('POST', "/orders/$rotated->{number}/rotate-link", {});
    $secret{'the page that replaces another'} = last_part($now->{download_page_url});
    my $resent = order($product, 1);    # whose license key is to come
    made('POST', "/orders/$resent->{number}/resend", {});
    made('POST', "/license-key-tags/$tag/keys",
        { keys => [ 'LICENSE-6-OF-EDITOR', 'LICENSE-5-OF-EDITOR' ] });
    $secret{'license key 6'} = 'LICENSE-6-OF-EDITOR';
    told('shop', 'set', $id, '--mail-delay', '5');
    return ($revoked, $rotated, $resent, order($product, 1));    # the last one's email waits
}

# --- the thief -----------------------------------------------------------------------------------

sub tables
{
    my %columns;
    push @{ $columns{ $_->[0] } }, $_->[1] for sql(database() eq 'sqlite3'
        ? 'SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c '
            . "WHERE m.type = 'table'"
        : 'SELECT table_name, column_name FROM information_schema.columns '
            . 'WHERE table_schema = current_schema()');
    return \%columns;
}

# Every value, and every part of one that may be a secret, with the columns that have it.
sub dump_of
{
    my (@only) = @_;
    my $columns = tables();
    my $array   = database() eq 'sqlite3' ? 'json_array' : 'json_build_array';
    my (%values, $text);
    for my $table (@only ? @only : sort keys %$columns) {
        my @columns = @{ $columns->{$table} };
        for my $row (
            sql("SELECT $array(" . join(', ', map { qq("$_") } @columns) . qq[) FROM "$table"])) {
            my @values = @{ $JSON->decode($row->[0]) };
            for my $i (grep { defined $values[$_] } 0 .. $#columns) {
                my $value = "$values[$i]";
                utf8::encode($value);
                $text .= "$table.$columns[$i]: $value\n";
                $values{$_}{"$table.$columns[$i]"} = 1
                    for $value, (grep { length >= 10 } split /[^\w-]+/, $value),
                    (grep { length >= 20 } split /[^A-Za-z0-9]+/, $value);
            }
        }
    }
    return (\%values, $text);
}

# A key with a secret that may be $value, with and without the checksum that everybody can make.
sub as_key
{
    my ($key_id, $value) = @_;
    my $key = "adk_live_${key_id}_$value";
    my $crc = Compress::Raw::Zlib::crc32($key);
    my $sum = '';
    for (1 .. 6) {
        $sum = (0 .. 9, 'A' .. 'Z', 'a' .. 'z')[ $crc % 62 ] . $sum;
        $crc = int($crc / 62);
    }
    return ($key, "$key$sum");
}

# HTTP::Tiny sends head and body of a POST one after the other: with TCP's delay that takes 40 ms.
sub send_at_once
{
    my ($http) = @_;
    my $socket = ($http->{handle} // {})->{fh};
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1 if $socket;
    return;
}

# What a value opens, of all that there is.
sub opens
{
    my ($http, $value) = @_;
    my $origin  = origin();
    my $escaped = $value =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ger;
    my @keys    = grep { !/[^ -~]/ } $value, as_key($shop->{key_id}, $value);
    my @asked   =
        map { [ "as the key $_", GET => '/api/v1/ping', { authorization => "Bearer $_" } ] } @keys;
    push @asked, (
        (map { [ "as /d/$_/", GET => "/d/$_/$escaped" . ($_ =~ /[fz]/ ? '/name' : ''), {} ] }
            qw(o f z l)),
        [ 'as an upload', HEAD => "/u/$escaped", { 'tus-resumable' => '1.0.0' } ],
        [ 'as a session', GET => "/settings/$id/keys", { cookie => "__Host-downloads=$escaped" } ],
        [ 'as a form', POST => "/settings/$id/keys", { cookie => $session, origin => $origin,
            'content-type' => 'application/x-www-form-urlencoded' },
            "form_token=$escaped&name=Stolen&scope=full&expires=" ],
    ) if $value !~ /adk_live_/;    # the log, too, must not have one
    my @open;
    for my $try (@asked) {
        my ($how, $method, $path, $headers, $body) = @$try;
        send_at_once($http) if defined $body;
        my $reply;
        for my $connection (1 .. 2) {    # httpd closes one that is idle
            $reply = $http->request($method, "$origin$path",
                { headers => $headers, defined $body ? (content => $body) : () });
            last if $reply->{status} != 599;
        }
        push @open, "$how: $reply->{status}" if $reply->{status} !~ /^4/
            && ($reply->{headers}{location} // '') !~ m{/settings/sign-in};
    }
    return @open;
}

# What the values of a dump open, each as a line; the work is shared by two processes.
sub all_that_opens
{
    my ($values) = @_;
    my @values = sort keys %$values;
    my @found  = parallel(2, sub {
        my ($process) = @_;
        my $http = HTTP::Tiny->new(keep_alive => 1, max_redirect => 0, timeout => 120);
        return [ map {
            my $value = $values[$_];
            map { join(' ', sort keys %{ $values->{$value} }) . " has $value, which opens $_" }
                opens($http, $value)
        } grep { $_ % 2 == $process } 0 .. $#values ];
    });
    return map { ref eq 'ARRAY' ? @$_ : "the thief has died: $_->{died}" } @found;
}

# Writes secrets into a column in clear; returns what opens then.
sub planted
{
    my (@secrets) = @_;
    sql("UPDATE link SET title = 'a note: " . join(' ', @secrets) . "'");
    my ($values) = dump_of('link');
    return all_that_opens($values);
}

keys_of_shop();
my $upload = uploads();
my ($product, $tag) = mapped_product();
my $order = order($product, 3);
is_deeply(made('GET', "/orders/$order->{number}", undef)->{assignments}[0]{license_keys},
    [ map { "LICENSE-$_-OF-EDITOR" } 1 .. 3 ], 'an order has license keys');
my @others = more_of_orders($product, $tag);
my $storefront = MDL::Storefront->new;
$secret{"the storefront's token"} = 'token-of-the-storefront';
told('shop', 'set', $id, '--storefront', $storefront->url, '--storefront-token-file',
    $storefront->token_file($secret{"the storefront's token"}));
wait_for(sub { mails() >= 4 }, 20, 'the emails');

my ($values, $text) = dump_of();
cmp_ok(scalar keys %$values, '>', 300, 'the dump has ' . keys(%$values) . ' different values');
my @clear = grep { index($text, $secret{$_}) >= 0 } sort keys %secret;
is_deeply([ map { my $it = $_; "$it: " . join ' ', $text =~ /^(.*\Q$secret{$it}\E.*)$/mg } @clear ],
    [], 'no secret lies in it in clear')
    or diag('of ' . keys %secret);
is_deeply([ all_that_opens($values) ], [], 'nothing in it opens anything');

# The thief would have noticed.
my %way = (
    $shop->{token}                    => qr/as the key adk_live_\w+: 200$/,
    substr($shop->{token}, 26)        => qr/as the key \Q$shop->{token}\E: 200$/,
    substr($shop->{token}, 26, 43)    => qr/as the key \Q$shop->{token}\E: 200$/,
    $order->{page}                    => qr{as /d/o/: 200$},
    $order->{file}                    => qr{as /d/f/: 200$},
    $order->{archive}                 => qr{as /d/z/: 200$},
    $order->{link}                    => qr{as /d/l/: 303$},
    last_part($upload->{upload_url})  => qr/as an upload: 200$/,
    $secret{'the session'}            => qr/as a session: 200$/,
    form_token(visit($session, 'GET', "/$id/keys")) => qr/as a form: 200$/,
);
my @found = planted(sort keys %way);
for my $planted (sort { $way{$a} cmp $way{$b} } keys %way) {
    is(scalar(grep { /^link\.title has \Q$planted\E, / && $_ =~ $way{$planted} } @found), 1,
        "in clear it would open: $way{$planted}")
        or diag(join "\n", @found);
}

$server->stop;
done_testing();
