# What is over is kept for its time and removed after it, as a clock that is set forward shows; what
# the shop's books need stays.
#
# both: rows are removed by other queries
use strict;
use warnings;

use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Mail;
use MDL::Test;
use MDL::Upload;
use Test::More;

plan skip_all => 'libfaketime and the sanitizers wait for each other' if $ENV{SANITIZER_RUNTIME};

use constant DAY => 86400;

my $server = MDL::Instance->new(clock => 1, cluster => 1, extra => <<'END')->start;
DownloadsPollInterval 1
DownloadsMailBounces "maildir:@t_logs@/bounces"
END
my $shop   = shop_with_product('Prune');
my $file   = new_file($shop, 1000);
my $folder = logs_dir() . '/bounces';

# Days later, once a new background process has gone through all tables: the last of them is that of
# the answers, where a row is older than all that is kept.
sub days_later
{
    my ($days) = @_;
    $server->step_clock($days * DAY);
    sql('INSERT INTO idempotency (shop_id, key_hi, key_lo, fingerprint, status, body, created_at)'
            . " VALUES ($shop->{shop_id}, 1, 1, '', 200, '', 1)");
    httpd_graceful();
    wait_for(sub { !sql('SELECT 1 FROM idempotency WHERE created_at = 1') }, 20,
        'a pass over all tables');
    return;
}

sub get { my ($path) = @_; return api('GET', $path, key => $shop->{token}) }
sub job { my ($id) = @_; return get("/jobs/$id")->{status} }

# --- what a shop does on the first day -----------------------------------------------------------

my $import = api('POST', '/assets', key => $shop->{token},
    json => { source_url => source('one', 'the first') });
my $failed = api('POST', '/assets', key => $shop->{token},
    json => { source_url => source_url('nowhere') });
my ($done, $lost) = map { $_->{json}{job}{id} } $import, $failed;
is wait_job($shop, $done)->{status}, 'succeeded', 'an import succeeds';
is wait_job($shop, $lost)->{status}, 'failed', 'and one fails';

my ($whole, $given_up, $pieces) = map { begin_upload($shop, size => 8) } 1 .. 3;
put_bytes($whole, 'uploaded');
is complete_upload($shop, $whole)->{status}, 201, 'an upload is completed';
is api('DELETE', "/assets/uploads/$given_up->{id}", key => $shop->{token})->{status}, 204,
    'one is given up';
patch_bytes($pieces, 0, 'uplo');
patch_bytes($pieces, 4, 'aded');
my $verify = complete_upload($shop, $pieces)->{json}{job}{id};
is wait_job($shop, $verify)->{status}, 'succeeded', 'one in pieces is hashed by a job';

my $order = order_for($shop, 'first@buyer.example');
wait_email($shop, $order, sub { $_[0]{status} eq 'sent' });
is api('POST', "/orders/$order/resend", key => $shop->{token},
    json => { email => 'second@buyer.example' })->{status},
    202, 'an email is sent again';
wait_email($shop, $order, sub { $_[0]{status} eq 'sent' && $_[0]{to} eq 'second@buyer.example' });
my $alone = order_for($shop, 'alone@buyer.example');
wait_email($shop, $alone, sub { $_[0]{status} eq 'sent' });

my $buy = buy($shop, $file, limit => 3);
is page('GET', link_of($buy))->{status}, 200, 'a customer downloads a file';
is eval { settled($buy)->{used} }, 1, 'which is counted';

my @again = ('POST', '/packs', key => $shop->{token}, json => { name => 'Pack', file_ids => [] },
    idem => idem());
my $pack = api(@again);
is api(@again)->{json}{id}, $pack->{json}{id}, 'a request is replayed';

my @from = map {
    my $id = next_order_id();
    assign($shop, $id, [ $shop->{product} ], client_ip => '192.0.2.7');
    $id;
} 1 .. 2;
sub address_of
{
    my ($id) = @_;
    return (map { $_->[0] }
        sql("SELECT client_ip FROM orders WHERE storefront_order_id = '$id'"))[0];
}
sql("UPDATE orders SET risk_pending = 1 WHERE storefront_order_id = '$from[1]'");
my $made_at = etag_of($from[0]);
sub etag_of { my ($id) = @_; return get("/orders/$id")->{headers}{etag} }

mkdir $_ for $folder, "$folder/new", "$folder/cur";
for my $name ('cur/read:2,S', 'cur/unread:2,') {
    open my $out, '>', "$folder/$name" or die "$name: $!\n";
    print $out "A message\n";
    close $out or die "$name: $!\n";
}

# --- and what is left of it ----------------------------------------------------------------------

sub emails_of { return map { $_->{to} } @{ get("/orders/$order/emails")->{json}{data} } }
sub audit_of { return scalar @{ (ctl('audit', '--shop', $shop->{shop_id}, '--limit', 1000))[1] } }

my $audit  = audit_of();
my $events = get("/orders/$order")->{json}{events};

subtest 'the address of a client' => sub {
    $server->step_clock(86_000);
    httpd_graceful();
    is address_of($_), '192.0.2.7', 'is there for the day of the fraud check' for @from;
    days_later(2);
    is address_of($from[0]), undef, 'and gone then';
    is etag_of($from[0]), $made_at, 'which changes nothing that the shop sees';
    is address_of($from[1]), '192.0.2.7', 'but not while the order still is to be checked';
    sql("UPDATE orders SET risk_pending = 0 WHERE storefront_order_id = '$from[1]'");
};

subtest 'after 29 days' => sub {
    days_later(29);
    is job($_), 200, 'a job is there' for $done, $lost, $verify;
    is get("/assets/uploads/$_->{id}")->{status}, 200, 'an upload is there' for $whole, $pieces;
    is_deeply [ sql("SELECT status FROM upload WHERE id = '$given_up->{id}'") ], [ ['aborted'] ],
        'and so is one that was given up';
    is address_of($from[1]), undef, 'the address of a client is not';
    ok -e "$folder/cur/read:2,S", 'an email that came back is there';
    isnt api(@again)->{json}{id}, $pack->{json}{id},
        'the answer to a request is not: it is kept for a day';
};

subtest 'after 31 days' => sub {
    days_later(31);
    is job($_), 404, 'the job is gone' for $done, $lost, $verify;
    is get('/jobs')->{json}{data}[0], undef, 'and in no list';
    is get("/assets/uploads/$_->{id}")->{status}, 404, 'the upload is gone' for $whole, $given_up;
    is get("/assets/$import->{json}{asset}{id}")->{json}{status}, 'ready', 'the asset stays';
    is get("/assets/$failed->{json}{asset}{id}")->{json}{status}, 'failed', 'one that failed, too';
    wait_for(sub { !-e "$folder/cur/read:2,S" }, 10, 'the email that came back to go');
    ok -e "$folder/cur/unread:2,", 'but not one that nobody has read';
    is sql("SELECT 1 FROM job WHERE type = 'email'"), 0, 'jobs of emails are gone';
    is_deeply [ emails_of() ], [qw(second@buyer.example first@buyer.example)],
        'the emails are there';
    is scalar @{ account($buy)->{sessions} }, 1, 'the download is there';
};

subtest 'after 32 days, what was in use for longer' => sub {
    days_later(32);
    is get("/assets/uploads/$pieces->{id}")->{status}, 404, 'an upload goes once its job has gone';
};

subtest 'after 364 days' => sub {
    days_later(364);
    is scalar(emails_of()), 2, 'the emails are there';
    is scalar @{ account($buy)->{sessions} }, 1, 'the download is there';
};

subtest 'after 366 days' => sub {
    days_later(366);
    is_deeply [ emails_of() ], ['second@buyer.example'], "an order's last email stays alone";
    is get("/orders/$order")->{json}{email}{status}, 'sent', 'and the order says so';
    is get("/orders/$alone")->{json}{email}{to}, 'alone@buyer.example',
        'the only one of an order stays';
    is_deeply account($buy), { used => 1, sessions => [] }, 'the download is gone, and counts';
    is_deeply get("/orders/$order")->{json}{events}, $events, "the order's events stay";
    cmp_ok audit_of(), '>=', $audit, 'the audit stays';
};

subtest 'everything goes on' => sub {
    is page('GET', $buy->{path})->{status}, 200, 'the customer has the page';
    is page('GET', link_of($buy))->{status}, 200, 'and downloads the file again';
    is eval { settled($buy)->{used} }, 2, 'which is counted';
    my $two = api('POST', '/assets', key => $shop->{token},
        json => { source_url => source('two', 'the first') });
    is wait_job($shop, $two->{json}{job}{id})->{status}, 'succeeded',
        'bytes that are stored come again';
    my $sha256 = get("/assets/$two->{json}{asset}{id}")->{json}{sha256};
    is get("/assets?sha256=$sha256")->{json}{data}[1]{id}, $import->{json}{asset}{id},
        'and are found';
    is assign($shop, $order, [ $shop->{product} ], send_email => JSON::PP::true())->{status}, 200,
        'an order that is assigned again';
    is scalar(emails_of()), 1, 'sends no second email';
};

subtest 'the operator sets the times' => sub {
    $server->configure(extra => $server->{extra} . "DownloadsKeep audit=300 jobs=forever\n");
    my $kept = sql("SELECT 1 FROM job WHERE type = 'asset_import'");
    days_later(500);
    is sql("SELECT 1 FROM job WHERE type = 'asset_import'"), $kept, 'jobs can be kept for ever';
    cmp_ok audit_of(), '<', $audit, 'and the audit for a time';
};

subtest 'docs/growth.md' => sub {
    my $guide  = MDL::Target::slurp(MDL::Target::top_dir() . '/docs/growth.md');
    my @tables = map { $_->[0] } database() eq 'sqlite3'
        ? sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        : sql("SELECT relname FROM pg_class WHERE relkind = 'r' "
            . "AND relnamespace = 'public'::regnamespace");
    cmp_ok scalar @tables, '>', 30, 'there are tables';
    is_deeply [ grep { $guide !~ /^\|.*`$_`.*\|.*\|.*\|/m } @tables ], [],
        'says of each how long its rows are kept';
};

done_testing;
