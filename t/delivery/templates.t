# Which template a customer gets, by language and by shop, and what happens if one is broken.
#
# once: rendering does not depend on the database
use strict;
use warnings;
use utf8;

use Encode qw(decode);
use File::Path qw(make_path);
use Test::More;

use MDL::Contract;
use MDL::Instance;
use MDL::Test;

# A separate folder of templates, and a server whose mod_mime derives languages from file names.
my $server = MDL::Instance->new(extra => <<'END');
DownloadsTemplates "@t_logs@/templates"
AddLanguage de .de
AddEncoding x-gzip .gz
<Location /d>
    ModMimeUsePathInfo On
</Location>
END
my $folder = "$server->{folder}/templates";
system('cp', '-r', 'conf/templates', $folder) == 0 or die "no templates\n";
# Two languages of a few words.
for ([ ru => 'ltr' ], [ ar => 'rtl' ]) {
    my ($language, $dir) = @$_;
    MDL::Instance::write_file("$folder/$language.words", "lang = $language\ndir = $dir\n"
        . "downloads_left = {{\@downloads total}}\n" . join '',
        map { "downloads.$_ = {{total}} $_\n" } qw(zero one two few many other));
}
# Every number of downloads left is shown.
my $file = "$folder/page_file.mustache";
MDL::Instance::write_file($file, MDL::Instance::slurp($file) =~ s/\{\{[#\/]few\}\}//gr);
$server->start;
my $shop = new_shop(name => 'Bücher');

# An order of one file; returns { url, id, file }.
sub order
{
    my ($of, %customer) = @_;
    my $asset = ready_asset($of, digits() . '.txt', 'x' x 1500);
    my $product = mapping_of($of, [ $asset->{id} ], download_limit => 1)->{storefront_product_id};
    my %more = %customer ? (customer => \%customer) : ();
    my $reply = assign($of, digits(), [$product], storefront_customer_id => digits(), %more);
    $reply->{status} == 201 or die "assign: $reply->{status} $reply->{body}\n";
    my $order = $reply->{json};
    return { url => $order->{download_page_url}, id => $order->{storefront_order_id},
        file => "$order->{assignments}[0]{id}-$asset->{id}" };
}

# Requests a page with this Accept-Language; undef sends none.
sub asked
{
    my ($url, $languages, $method) = @_;
    return page($method // 'GET', $url,
        headers => defined $languages ? { 'Accept-Language' => $languages } : {});
}

# Checks a page's language, and whether it varies by Accept-Language.
sub is_in
{
    my ($reply, $language, $varies, $name) = @_;
    my %headers = %{ $reply->{headers} };
    subtest $name => sub {
        is($headers{'content-language'}, $language, "Content-Language is $language");
        is($headers{vary}, $varies ? 'Accept-Language' : undef,
            $varies ? 'Vary names Accept-Language' : 'there is no Vary');
        like(decode('UTF-8', $reply->{body}), qr/<html lang="$language"[ >]/,
            'the page has that language');
    };
    return;
}

subtest "A customer's locale decides" => sub {
    my $austrian = order($shop, locale => 'de-AT');
    my $page     = asked($austrian->{url}, 'en');

    is_in($page, 'de', 0, 'de-AT, with a browser that wants English');
    like(decode('UTF-8', $page->{body}), qr/Ihre Downloads.*1,5\x{a0}kB.*noch 1 von 1 Download\b/s,
        'sentences, number and plural are German');
    is_in(asked(order($shop, locale => 'de_CH')->{url}, 'en'), 'de', 0,
        'a locale with an underscore');
    is_in(asked(order($shop, locale => 'en-US')->{url}, 'de'), 'en', 0,
        'en-US gets the templates without a suffix');
    is_in(asked(order($shop, locale => 'nl')->{url}, 'de'), 'de', 1,
        'for a locale without words the browser decides');

    my $link = sub { page('POST', $austrian->{url}, form => { file => $austrian->{file} }) };
    my @links = map { $link->()->{headers}{location} } 1 .. 2;
    is_in($link->(), 'de', 0, 'the body of the redirect');
    is(page('GET', $links[0])->{status}, 200, 'the only download is used');
    wait_for(sub { page('GET', $austrian->{url})->{body} =~ /Download-Limit/ }, 15,
        'it to be settled');
    my $refused = asked($links[1], 'en');
    is_in($refused, 'de', 0, 'the refusal of a link');
    like(decode('UTF-8', $refused->{body}), qr/Das Download-Limit ist erreicht/, 'in German, too');
};

subtest 'Without a locale the browser decides' => sub {
    my $order = order($shop);
    for my $case (
        [ undef,                     'en', 'no Accept-Language' ],
        [ 'de',                      'de', 'German' ],
        [ 'de-DE,de;q=0.9,en;q=0.8', 'de', "a German browser's" ],
        [ 'en-GB,en;q=0.9,de;q=0.8', 'en', 'English before German' ],
        [ 'nl, en;q=0.2, de;q=0.3',  'de', 'by weight' ],
        [ 'nl;q=1.0, de;q=0',        'en', 'a language with weight 0 is not used' ],
        [ '*',                       'en', 'any language' ],
        [ ';;q=x, ../../x, %, de;;, -',    'en', 'nonsense' ],
    ) {
        my ($languages, $language, $name) = @$case;
        is_in(asked($order->{url}, $languages), $language, 1, $name);
    }
    is_in(asked("$order->{url}x", 'de'), 'de', 1, 'an unknown page');
    is_in(asked($order->{url}, 'de', 'PUT'), 'de', 1, 'another method');
};

subtest 'A shop offers some of the languages' => sub {
    my $of    = new_shop(name => 'Polyglot');
    my $plain = order($of);
    my ($austrian, $french) = map { order($of, locale => $_) } qw(de-AT fr);
    my $offer = sub {
        my $reply = api('PATCH', '/shop', key => $of->{token}, json => { languages => $_[0] });
        is($reply->{status}, 200, 'the shop offers others') or diag($reply->{body});
    };

    $offer->([qw(es de)]);
    is_in(asked($plain->{url}, 'en, de;q=0.5'), 'de', 1, 'the browser chooses among them');
    is_in(asked($plain->{url}, 'en'), 'es', 1, 'who reads none of them gets the first');
    is_in(asked($plain->{url}, undef), 'es', 1, 'also who asks for nothing');
    is_in(asked($austrian->{url}, 'es'), 'de', 0, 'a locale that they have decides');
    is_in(asked($french->{url}, 'de'), 'de', 1, 'one that they lack does not');
    is_in(asked(order($shop)->{url}, 'en'), 'en', 1, 'another shop has all');
    $offer->(undef);
    is_in(asked($french->{url}, 'de'), 'fr', 0, 'null is all again');
};

subtest "A file's name sets no Content-Encoding or Content-Language" => sub {
    my $asset = ready_asset($shop, 'plain.txt', 'not packed', filename => 'brief.de.gz');
    my $product = mapping_of($shop, [ $asset->{id} ])->{storefront_product_id};
    my $order = assign($shop, digits(), [$product])->{json};
    my $reply = page('POST', $order->{download_page_url},
        form => { file => "$order->{assignments}[0]{id}-$asset->{id}" });
    my $got = page('GET', $reply->{headers}{location});

    is($got->{body}, 'not packed', 'the bytes are the stored ones');
    is($got->{headers}{'content-encoding'}, undef, 'there is no Content-Encoding');
    is($got->{headers}{'content-language'}, undef, 'and no Content-Language');
};

subtest 'A shop can have its own templates' => sub {
    my $other = new_shop();
    my $half  = new_shop();
    my $look  = new_shop();
    my $own   = "$folder/shop-$other->{shop_id}";
    make_path($own, map { "$folder/shop-$_->{shop_id}" } $half, $look);
    MDL::Instance::write_file("$own/page.html",
        '<html lang="en"><title>{{order_id}}</title><main>{{#shop}}{{name}}{{/shop}} own</main>');
    MDL::Instance::write_file("$folder/shop-$half->{shop_id}/page.de.html",
        '<html lang="de">eigen');
    MDL::Instance::write_file("$folder/shop-$look->{shop_id}/style.mustache",
        "<style>p {}</style>\n");
    my @orders = map { order($_) } $shop, $other, $half, $look;
    MDL::Instance::write_file("$folder/shop-$look->{shop_id}/en.words",
        'your_downloads_from = Your books');
    httpd_graceful();
    my ($general, $its, $halfs, $looks) =
        map { my $url = $_->{url}; sub { asked($url, @_)->{body} } } @orders;

    is($its->('en'),
        qq(<html lang="en"><title>$orders[1]{id}</title><main>$other->{name} own</main>),
        'its page is used');
    is($its->('de'), $its->('en'), 'in place of the general ones of every language');
    like($looks->('en'), qr{<title>Your books.*<style>p \{\}</style>}s,
        'the general page uses its own style and words');
    like($looks->('de'), qr{Ihre Downloads.*<style>p \{\}</style>}s, 'in every language');
    unlike($general->('en'), qr/<style>p /, 'other shops do not get it');
    like($halfs->('de'), qr/eigen/, 'its own page in one language is used for that language');
    like($halfs->('en'), qr/Your downloads/, 'and the general one for other languages');
    like($general->('de'), qr/Ihre Downloads/, 'other shops get the general page');
    like(asked("$orders[1]{url}", 'de', 'PUT')->{body}, qr/Das geht hier nicht/,
        'for a template that the shop does not have the general one is used');
};

# The words of a language: { key => { form => text } }, the form '' for a word that has none.
sub words_of
{
    my ($language) = @_;
    my $text = decode('UTF-8', MDL::Test::slurp("conf/templates/$language.words"));
    my %words;
    $words{$1}{ $2 // '' } = $3 while $text =~ /^(\w+)(?:\.(\w+))? = (.*)$/mg;
    return \%words;
}

# The tags of a word, in all of its forms.
sub tags_of
{
    my ($forms) = @_;
    my %tags = map { $_ => 1 } map { /\{\{(.*?)\}\}/g } values %$forms;
    return join ' ', sort keys %tags;
}

# The plural categories of languages that have other ones than English.
my %PLURALS = (ja => [], ar => [qw(few many one other two zero)]);

# The words that customers read: those before the first that only staff read.
sub customers_words
{
    my ($words) = @_;
    my ($text) = MDL::Test::slurp('conf/templates/en.words') =~ /\A(.*?)^staff_hello /ms;
    my %read = map { $_ => $words->{$_} } $text =~ /^(\w+)(?:\.\w+)? = /mg;
    return \%read;
}

subtest 'French has spaces that do not break before its punctuation and within its quotes' => sub {
    my $words = words_of('fr');
    for my $key (sort keys %$words) {
        is_deeply([ grep { / [:;!?»](?: |$)|« |[^\x{202f}?][;!?](?: |$)|[^\x{a0}]:(?: |$)/ }
                values %{ $words->{$key} } ], [], $key);
    }
};

subtest 'Every language has the same words, with the same values in them' => sub {
    my $english = words_of('en');
    my $german  = words_of('de');
    cmp_ok(scalar keys %{ customers_words($english) }, '>', 80, 'customers read many');
    # Plural categories; numbers may have forms of their own.
    my $numeric = qr/^(?:zero|one|two|few|many|other|\d+|)$/;
    for my $language (map { m{/(\w+)\.words$} } glob 'conf/templates/*.words') {
        my $words = words_of($language);
        my $whole = $words->{staff_hello} ? $english : customers_words($english);
        is_deeply([ sort keys %$words ], [ sort keys %$whole ], "$language: the words");
        my (@forms, @tags);
        for my $key (sort keys %$words) {
            my ($mine, $its) = ($words->{$key}, $german->{$key});
            # For what the service itself says, English has no more than that.
            next if $english->{$key}{other} && $english->{$key}{other} eq '{{message}}'
                && $language eq 'en';
            if (grep { $_ !~ $numeric } keys %$its) {
                push @forms, $key if join(' ', sort keys %$mine) ne join(' ', sort keys %$its);
            } elsif (exists $its->{one}) {
                my @has = grep { /^[a-z]/ } sort keys %$mine;
                my @needs = @{ $PLURALS{$language} // [qw(one other)] };
                push @forms, $key if grep({ $_ !~ $numeric } keys %$mine)
                    || (@needs ? "@has" ne "@needs" : grep { $_ ne 'other' } @has);
            }
            push @tags, $key if tags_of($mine) ne tags_of($its);
        }
        is_deeply(\@forms, [], "$language: the forms");
        is_deeply(\@tags,  [], "$language: the values");
        is_deeply([ grep { /[<&]/ } map { values %$_ } values %$words ], [],
            "$language: no markup");
    }
    my %states = map { $_ => 1 } map { MDL::Test::slurp($_)
            =~ /(?:HTTP_\w+,|(?<![>_])status,|failure\(r,\ \w+,|MDL_ENTITLEMENT_\w+\]\ =)
                \ "(\w+)"/gx }
        glob('mod_downloads/delivery/*.c'), 'mod_downloads/core/download/entitlement.c';
    ok($states{link_old} && $states{wrong_method}, 'the code names states');
    is_deeply([ sort keys %{ $english->{$_} } ], [ sort keys %states ], "there is a $_ for each")
        for qw(message message_text);
};

# The words for so many downloads, in a language.
sub downloads_in
{
    my ($language, $limit, $bytes) = @_;
    my $asset = ready_asset($shop, digits() . '.txt', $bytes // 'x');
    my $product = mapping_of($shop, [ $asset->{id} ], download_limit => $limit)
        ->{storefront_product_id};
    my $url = assign($shop, digits(), [$product])->{json}{download_page_url};
    my ($line) = decode('UTF-8',
        asked($url, $language)->{body}) =~ m{<p><span class="soft">(.*)</span></p>};
    return $line;
}

subtest 'A number has the plural form of the language' => sub {
    is(downloads_in('en', 1), "1\x{a0}byte &middot; 1 of 1 download left",          'English: one');
    is(downloads_in('en', 2, ''), "0\x{a0}bytes &middot; 2 of 2 downloads left",
        'none, and two');
    is(downloads_in('fr', 1, ''), "0\x{a0}octet &middot; 1 restant sur 1 téléchargement",
        'French has the singular for none');
    is(downloads_in('fr', 2, 'xx'), "2\x{a0}octets &middot; 2 restants sur 2 téléchargements",
        'and the plural for two');
    is(downloads_in('es', 1, 'xx'), "2\x{a0}bytes &middot; queda 1 de 1 descarga",  'Spanish');
    my %forms = (
        ru => { 1 => 'one', 2 => 'few', 5 => 'many', 11 => 'many', 21 => 'one' },
        ar => { 1 => 'one', 2 => 'two', 3 => 'few', 11 => 'many', 100 => 'other' });
    for my $language (sort keys %forms) {
        like(downloads_in($language, $_), qr/ &middot; $_ $forms{$language}{$_}$/, "$language: $_")
            for sort { $a <=> $b } keys %{ $forms{$language} };
    }
    my $page = asked(order($shop)->{url}, 'ar');
    like($page->{body}, qr/<html lang="ar" dir="rtl">/,
        'a language that is written from right to left');
    like($page->{body}, qr/<button type="submit">Download</, 'a word that it lacks is English');
};

subtest 'What a value has does not become a script or style that is allowed' => sub {
    my $evil = order(new_shop(name => q{<style>b{}</style><script>alert(1)</script>}));
    my $path = "$folder/page.html";
    my $own  = MDL::Instance::slurp($path);
    my $before = page('GET', $evil->{url})->{headers}{'content-security-policy'};
    MDL::Instance::write_file($path, $own =~ s/<bdi>\{\{name\}\}<\/bdi>/{{{name}}}/r);
    $server->stop;
    $server->start;
    my $page = page('GET', $evil->{url});
    like($page->{body}, qr/<script>alert/, 'a template shows a name as it is');
    my $policy = $page->{headers}{'content-security-policy'};
    is(scalar(() = $policy =~ /script-src 'sha256-[^' ]+';/g), 1,
        "no script is allowed but the template's own");
    is(scalar(() = $policy =~ /sha256-/g), 2, 'and no style') or diag($policy);
    is($policy, $before, 'the policy is what it was') or diag($before);
    MDL::Instance::write_file($path, $own);
    $server->stop;
    $server->start;
};

subtest 'A broken template keeps httpd from starting, but does not stop a running one' => sub {
    my $order = order($shop);
    my $style = MDL::Test::slurp("$folder/style.mustache");
    MDL::Instance::write_file("$folder/page.de.html", "<p>\n{{#active}}");
    my ($code, $output) = $server->httpd('-t');
    isnt($code, 0, 'httpd -t refuses it');
    like($output, qr{page\.de\.html is not valid\. Line 2: }, 'and says where the mistake is');
    unlink "$folder/style.mustache";
    like(($server->httpd('-t'))[1],
        qr{/page\.html is not valid\. Line 8: there is no partial "style"}, 'a missing partial');
    MDL::Instance::write_file("$folder/style.mustache", "\n{{> style}}");
    like(($server->httpd('-t'))[1],
        qr{/style\.mustache is not valid\. Line 2: "style" is inside of itself},
        'a partial that includes itself');
    MDL::Instance::write_file("$folder/style.mustache", $style);

    # Children that start later read the changed folder.
    my %before = map { $_ => 1 } server_pids();
    my $since  = error_log_size();
    kill KILL => keys %before;
    wait_for(sub {
        my @new = grep { !$before{$_} } server_pids();
        @new && asked($order->{url})->{status} == 200;
    }, 20, 'new children');
    like(error_log_since($since),
        qr/MDL0402: .*page\.de\.html is not valid\. Line 2: .*downloadsctl check/,
        'the log says what to do');
    is_in(asked($order->{url}, 'de'), 'de', 1,
        'customers who would get it get the general one in their language');

    unlink "$folder/page.html", "$folder/message.html";
    MDL::Instance::write_file("$folder/message.de.html", '{{');
    %before = map { $_ => 1 } server_pids();
    kill KILL => keys %before;
    wait_for(sub {
        my @new = grep { !$before{$_} } server_pids();
        @new && asked($order->{url})->{status} != 599;
    }, 20, 'new children');
    my $plain = asked($order->{url});
    is($plain->{headers}{'content-type'}, 'text/plain; charset=utf-8',
        'without any template there is plain text');
    is($plain->{status}, 500, 'with status 500');
    like($plain->{body}, qr/write to the shop/, 'which says whom to ask');
    is(asked("$order->{url}x")->{status}, 404, 'an unknown page is still 404');
    my $pressed = page('POST', $order->{url}, form => { file => $order->{file} });
    is(page('GET', $pressed->{headers}{location})->{status}, 200, 'files can still be downloaded');
};

$server->stop;
done_testing();
