# A shop changes itself and sends its logo, which its page and its emails show.
#
# both: the image waits in the database
use strict;
use warnings;

use HTTP::Tiny;
use MDL::Contract;
use MDL::Operations qw(png);
use MDL::Test;
use Test::More;
use Time::Local qw(timegm);

my $shop  = new_shop();
my $other = new_shop();

sub put_logo
{
    my ($bytes, $type) = @_;
    return api('PUT', '/shop/logo', key => $shop->{token}, body => $bytes,
        headers => { 'content-type' => $type // 'image/png' });
}

# The logo once nothing waits.
sub logo
{
    my $logo;
    wait_for(sub {
        $logo = api('GET', '/shop/logo', key => $shop->{token})->{json};
        return $logo->{status} ne 'preparing';
    }, 120, 'no image waits');
    return $logo;
}

sub fetched { my ($url) = @_; return HTTP::Tiny->new(timeout => 60, verify_SSL => 0)->get($url) }

sub changed
{
    my ($json) = @_;
    return api('PATCH', '/shop', key => $shop->{token}, json => $json);
}

# --- the shop -----------------------------------------------------------------------------------

my $read = api('GET', '/shop', key => $shop->{token})->{json};
is($read->{id}, $shop->{shop_id}, 'a key reads its own shop');
is($read->{logo}{status}, 'none', 'which has no logo');

my $change = changed({ name => 'Nordlicht', sender_name => 'The Nordlicht', accent => '#FFD700',
    reply_to => 'help@nordlicht.example', email_delay => 7, hold_at => 'medium' });
is($change->{status}, 200, 'it is changed') or diag($change->{body});
is_deeply({ %{ $change->{json} }{qw(name sender_name accent reply_to email_delay hold_at)} },
    { name => 'Nordlicht', sender_name => 'The Nordlicht', accent => '#ffd700',
        reply_to => 'help@nordlicht.example', email_delay => 7, hold_at => 'medium' },
    'and answers what it is now');
is(changed({ sender_name => undef, email_delay => 0 })->{json}{sender_name}, undef,
    'null takes a value away');
is(api('GET', '/shop', key => $shop->{token})->{json}{accent}, '#ffd700', 'the others stay');
isnt(api('GET', '/shop', key => $other->{token})->{json}{name}, 'Nordlicht',
    'another shop is not changed');

# --- its own words ---

my %NONE = (greeting => undef, closing => undef);
is_deeply($read->{emails}, { map { $_ => {%NONE} } qw(ar de en es fr ja) },
    'a new shop has no words of its own in its emails');
my $words = changed({ emails => {
    de => { greeting => " Moin!\r\nSch\x{f6}n ", closing => "Bis bald" },
    en => { closing => '<b>Bye</b> {{name}}' } } });
is_deeply($words->{json}{emails}, { (map { $_ => {%NONE} } qw(ar es fr ja)),
    de => { greeting => "Moin!\nSch\x{f6}n", closing => 'Bis bald' },
    en => { greeting => undef, closing => '<b>Bye</b> {{name}}' } }, 'each language has two texts');
is_deeply(changed({ emails => { de => { greeting => 'Tach' } } })->{json}{emails}{de},
    { greeting => 'Tach', closing => undef }, 'a language replaces both');
is(api('GET', '/shop', key => $shop->{token})->{json}{emails}{en}{closing}, '<b>Bye</b> {{name}}',
    'and leaves the others');
is(changed({ name => "\x{20ac}" x 200 })->{status}, 200, 'a name has 200 characters');
is(changed({ name => 'Nordlicht' })->{json}{emails}{de}{greeting}, 'Tach',
    'as does a change of something else');
my @changes = map { { emails => { $_ => { closing => 'at once' } } } } qw(ar de en es fr ja);
my @rounds  = map {
    changed({ emails => { map { $_ => {} } qw(ar de en es fr ja) } });
    parallel(scalar @changes, sub {
        my ($i) = @_;
        api('PATCH', '/shop', key => $shop->{token}, json => $changes[$i], patient => 1)->{status};
    });
    my $now = api('GET', '/shop', key => $shop->{token})->{json}{emails};
    join ' ', grep { ($now->{$_}{closing} // '') eq 'at once' } sort keys %$now;
} 1 .. 8;
is_deeply(\@rounds, [ ('ar de en es fr ja') x 8 ], 'changes at once leave one another, too');
is(changed({ emails => { de => { greeting => "\x{f6}" x 300 } } })->{status}, 200,
    'a text has 300 characters');

for (
    [ { emails => { de => { greeting => 'x' x 301 } } }, '/emails/de/greeting' ],
    [ { emails => { fr => { closing => "a\x{1}" } } },   '/emails/fr/closing' ],
    [ { emails => { nl => {} } },                        '/emails/nl' ],
    [ { emails => { de => { subject => 'x' } } },        '/emails/de/subject' ],
    [ { accent => 'red' }, '/accent' ], [ { accent => '#12345' }, '/accent' ],
    [ { reply_to => 'nobody' }, '/reply_to' ],
    (map { [ { withdrawal_url => $_ }, '/withdrawal_url' ] } 'http://a.example/', 'javascript:x',
        'https://u:p@a.example/', 'https://a.example/' . 'x' x 2031),
    [ { name => '' }, '/name' ],
    [ { name => "\x{e9}" x 201 }, '/name' ], [ { email_delay => 61 }, '/email_delay' ],
    [ { default_download_limit => -1 }, '/default_download_limit' ],
    [ { default_download_limit => 1_000_001 }, '/default_download_limit' ],
    [ { default_access_days => 0 }, '/default_access_days' ],
    [ { default_access_days => 36_501 }, '/default_access_days' ],
    [ { languages => [] }, '/languages' ], [ { languages => 'de' }, '/languages' ],
    [ { languages => ['de,en'] }, '/languages' ], [ { languages => [qw(de DE)] }, '/languages' ],
    [ { languages => [ map {; "x$_" =~ tr/0-9/a-j/r } 1 .. 21 ] }, '/languages' ],
    [ { languages => [ 'a' x 36 ] }, '/languages/0' ],
    [ { hold_at => 'low' }, '/hold_at' ], [ { domain => 'a.test' }, '/domain' ],
) {
    my ($json, $pointer) = @$_;
    my $reply = changed($json);
    is("$reply->{status} " . ($reply->{json}{error}{details}[0]{pointer} // $reply->{body}),
        "400 $pointer", "a wrong $pointer is refused by name");
}

# --- what it stores ------------------------------------------------------------------------------

sub storage { return api('GET', '/shop', key => $shop->{token})->{json}{storage} }

my %without = (former_bytes => 0, upload_bytes => 0, quota => undef, bytes_left => undef);
is_deeply(storage(), { files => 0, bytes => 0, %without }, 'a shop without files');
my $file = ready_asset($shop, 'stored.txt', '12345')->{id};
is_deeply(changed({})->{json}{storage}, { files => 1, bytes => 5, %without }, 'a file');
my $wait = api('POST', "/assets/$file/versions", key => $shop->{token},
    json => { source_url => source('stored-2.txt', '123') });
wait_job($shop, $wait->{json}{job}{id});
is_deeply(storage(), { files => 1, bytes => 3, %without, former_bytes => 5 },
    'with its former version');
api('POST', "/assets/$file/versions/1/restore", key => $shop->{token});
is_deeply(storage(), { files => 1, bytes => 5, %without, former_bytes => 3 },
    'also when that is put back');
my $upload = api('POST', '/assets/uploads', key => $shop->{token},
    json => { filename => 'open.txt', size => 100 })->{json}{id};
is_deeply(storage(), { files => 1, bytes => 5, %without, former_bytes => 3, upload_bytes => 100 },
    'an open upload');
api('DELETE', "/assets/uploads/$upload", key => $shop->{token});
api('DELETE', "/assets/$file", key => $shop->{token});
is_deeply(storage(), { files => 0, bytes => 0, %without }, 'and nothing is left');

# --- default limits -----------------------------------------------------------------------------

my $asset = ready_asset($shop, 'book.pdf', 'the book');
my ($plain, $special) = map { mapping_of($shop, [ $asset->{id} ], @$_)->{storefront_product_id} }
    [], [ download_limit => 2, access_days => 0 ];

# Makes an order of both products; what each gives: downloads of its file, days of access.
sub gives
{
    my ($number) = @_;
    my $order = assign($shop, $number, [ $plain, $special ], storefront_customer_id => '1')->{json};
    return limits($order);
}

sub limits
{
    my ($order) = @_;
    return [ map { [ $_->{files}[0]{download_limit},
        $_->{expires_at} ? int((parsed($_->{expires_at}) - time) / 86400 + 0.5) : undef ] }
            @{ $order->{assignments} } ];
}

sub parsed
{
    my ($year, $month, @rest) = $_[0] =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)/;
    return timegm(reverse(@rest), $month - 1, $year);
}

sub limits_of { return limits(api('GET', "/orders/$_[0]", key => $shop->{token})->{json}) }

is_deeply([ @$read{qw(default_download_limit default_access_days)} ], [ undef, undef ],
    'at first a shop has no limits');
is_deeply(gives(1), [ [ 10, undef ], [ 2, undef ] ], "so the service's hold");
changed({ default_download_limit => 1, default_access_days => 30 });
is_deeply(gives(2), [ [ 1, 30 ], [ 2, undef ] ],
    "the shop's hold for new orders, unless the mapping has its own");
my $order = assign($shop, 20, [$plain], storefront_customer_id => '1')->{json};
changed({ default_download_limit => 0 });
is_deeply(gives(3), [ [ 0, 30 ], [ 2, undef ] ], 'each on its own; 0 is unlimited');
changed({ default_download_limit => undef, default_access_days => undef });
is_deeply([ map { limits_of($_) } 1 .. 3 ],
    [ [ [ 10, undef ], [ 2, undef ] ], [ [ 1, 30 ], [ 2, undef ] ], [ [ 0, 30 ], [ 2, undef ] ] ],
    'orders that there are keep theirs');

my %file  = (file => "$order->{assignments}[0]{id}-$asset->{id}");
my $link  = page('POST', $order->{download_page_url}, form => \%file)->{headers}{location};
is(page('GET', $link)->{body}, 'the book', 'the only download of an order is made');
wait_for(sub {
    my $found = api('GET', '/orders?attention=limit_reached', key => $shop->{token})->{json}{data};
    return @$found == 1 && $found->[0]{storefront_order_id} eq '20';
}, 60, 'its limit is reached');
is(page('POST', $order->{download_page_url}, form => \%file)->{status}, 403,
    'and another is refused');
my $events = api('GET', '/events', key => $shop->{token})->{json}{data};
wait_for(sub {
    $events = api('GET', '/events', key => $shop->{token})->{json}{data};
    return grep { $_->{type} eq 'download.limit_reached' } @$events;
}, 60, 'an event says so');

# --- the logo -----------------------------------------------------------------------------------

my $png   = png();
my $reply = put_logo($png);
is($reply->{status}, 202, 'a PNG is taken') or diag($reply->{body});
my $logo = logo();
is_deeply({ %$logo{qw(status width height error)} },
    { status => 'ready', width => 1, height => 1, error => undef }, 'and becomes the logo')
    or diag(explain($logo));
my $got = fetched($logo->{url});
is($got->{status}, 200, 'everybody may fetch it') or diag($got->{content});
is($got->{headers}{'content-type'}, 'image/png', 'it is a PNG');
like($got->{headers}{'cache-control'}, qr/immutable/, 'which is kept for ever');
is($got->{headers}{'set-cookie'}, undef, 'and sets no cookie');
unlike($got->{content}, qr/tEXt/, 'without the text of the image that was sent');
is(fetched($logo->{url} =~ s/[0-9a-f]{4}\.png/0000.png/r)->{status}, 404,
    'another digest has none');
is(fetched($logo->{url} =~ s/\.png/.jpg/r)->{status}, 404, 'nor has another name');

for (
    [ 'GIF89a', 'image/png', 'A logo is a PNG or a JPEG' ],
    [ substr($png, 0, 16) . pack('NN', 100_000, 100_000), 'image/png', '16 megapixels' ],
) {
    my ($bytes, $type, $why) = @$_;
    my $refused = put_logo($bytes, $type);
    is($refused->{status}, 400, "refused at once: $why");
    like($refused->{json}{error}{message}, qr/\Q$why/, 'by a sentence');
}
is(put_logo('x' x (2 * 1024 * 1024 + 1))->{status}, 413, 'more than 2 MiB is refused');
is(put_logo($png, 'image/gif')->{status}, 415, 'another type, too');

put_logo(substr $png, 0, -20);
my $failed = logo();
is("$failed->{status} $failed->{error}{code}", 'failed damaged', 'a PNG that is cut is told');
is($failed->{url}, $logo->{url}, 'and the earlier logo stays');

my $idem = idem();
my %once = (key => $shop->{token}, idem => $idem, headers => { 'content-type' => 'image/png' });
is(api('PUT', '/shop/logo', %once, body => $png)->{status}, 202, 'an Idempotency-Key');
is(api('PUT', '/shop/logo', %once, body => $png)->{headers}{'idempotent-replayed'}, 'true',
    'repeats its answer');
is(api('PUT', '/shop/logo', %once, body => png())->{json}{error}{code}, 'idempotency_conflict',
    'but not with another image');

# --- the page -----------------------------------------------------------------------------------

is(logo()->{status}, 'ready', 'the logo is ready');
my $page_url = MDL::Operations::order($shop)->{download_page_url};
my $page     = fetched($page_url);
my $policy   = $page->{headers}{'content-security-policy'};
my ($base)   = $logo->{url} =~ m{^(.*/logo/)};
like($page->{content}, qr/<img src="\Q$logo->{url}\E" width="1" height="1" alt=""><bdi>Nordlicht</,
    'the page shows the logo');
like($policy, qr/img-src \Q$base\E;/, 'its policy names the place of logos alone');
like($page->{content}, qr/<style>:root\{--action:#[0-9a-f]{6}\}/, 'it has the accent');
is(scalar(() = $policy =~ /'sha256-/g), 3,
    'and the policy has the hash of both styles and the script');
unlike($policy, qr/unsafe|\*/, 'and nothing unsafe');

is(api('DELETE', '/shop/logo', key => $shop->{token})->{status}, 204, 'the logo is deleted');
is(logo()->{status}, 'none', 'so there is none');
is(fetched($logo->{url})->{status}, 404, 'its address has none any more');
unlike(fetched($page_url)->{headers}{'content-security-policy'}, qr/img-src/,
    'and the page shows no picture');

done_testing();
