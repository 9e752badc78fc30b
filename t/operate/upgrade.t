# A node of a release while the schema goes up: it goes on beside a migration that only adds, and
# answers 503 beside one that it may not meet, until it is upgraded. The later releases are this
# module with other SQL (t/operate/levels).
#
# both: PostgreSQL cuts off what is too old; on SQLite each process notices by itself
use strict;
use warnings;

use MDL::Customer;
use MDL::Instance;
use MDL::Mail;
use MDL::Settings;
use MDL::Test;
use MDL::Upload;
use Test::More;

my $CONF = "DownloadsPollInterval 1\nDownloadsLeaseTime 4\nDownloadsSessionIdle 1\n";
my $NEW  = 'Nodes whose build knows version %d or newer go on beside it; others answer 503.';

# Another node on the database and folder of the first.
sub beside
{
    my ($first, %opt) = @_;
    my $node = MDL::Instance->new(%opt,
        extra => "$CONF$opt{extra}" . qq(DownloadsStorage "$first->{folder}/storage"\n));
    $node->{vars}{db_params} = $first->{vars}{db_params};
    $node->configure;
    return $node;
}

# What downloadsctl of a release says, on the current server's database.
sub told_by
{
    my ($level, @arguments) = @_;
    my $program = "$ENV{BUILD}/" . ($level > 1 ? "level$level/" : '') . 'downloadsctl';
    return scalar qx('$program' -f '${\ conf_file()}' @arguments 2>&1);
}

# An import, an email and a download, each by the current server or the background process of any.
sub works
{
    my ($shop, $what) = @_;
    return subtest "it works $what" => sub {
        my $file = new_file($shop, 20_000);
        my $buy  = buy($shop, $file, limit => 2);
        my $order = order_for($shop, 'somebody@buyer.example');
        is page('GET', link_of($buy))->{body}, $file->{bytes}, 'a customer gets the file';
        is settled($buy)->{used}, 1, 'that is one download';
        is wait_email($shop, $order, sub { $_[0]{status} eq 'sent' })->{status}, 'sent',
            'an email is sent';
    };
}

# A server is refused a request at once where it is cut off; else it may notice a second later, but
# never fails.
sub is_refused
{
    my ($name, $ask) = @_;
    my ($reply, %seen);
    wait_for(sub {
        $reply = $ask->();
        $seen{ $reply->{status} }++;
        return $reply->{status} == 503 || database() eq 'pgsql';
    }, 20, "$name to be refused");
    is join(' ', grep { $_ >= 500 } sort keys %seen), 503, "$name: 503" or diag explain $reply;
    like $reply->{headers}{'retry-after'} // 'none', qr/^\d+$/, 'with Retry-After';
    return $reply;
}

sub is_too_old
{
    my ($shop, $buy, $link, $upload) = @_;
    my %key = (key => $shop->{token});
    my $error = is_refused('health', sub { api('GET', '/health') })->{json}{error};
    is "$error->{code}: $error->{message}",
        'service_unavailable: This node is being upgraded; try again.', 'in these words';
    is_refused('a read', sub { api('GET', "/orders/$buy->{id}", %key) });
    is_refused('a write', sub {
        api('POST', '/categories', %key, json => { name => idem('category') }) });
    is_refused('a page', sub { page('GET', $buy->{path}) });
    is_refused('a button', sub { page('POST', $buy->{path}, form => { file => $buy->{button} }) });
    is_refused('a file', sub { page('GET', $link) });
    is_refused('the settings', sub { visit('owner', 'GET', "/$shop->{shop_id}/keys") });
    is_refused('an upload', sub { put_bytes($upload, '1234') });
    wait_for(sub { (api('GET', '/health/ready')->{json}{database} // '') eq 'failing' }, 20,
        'monitoring to be told');
    return;
}

sub count { my ($server, $number) = @_; return scalar(() = $server->error_log =~ /$number/g) }

# Waits until the background process of a node that is cut off has tried to connect again.
sub wait_tries
{
    my $sessions = sub {
        (sql('SELECT sessions FROM pg_stat_database WHERE datname = current_database()'))[0][0];
    };
    my $before = $sessions->();
    return wait_for(sub { $sessions->() >= $before + 3 }, 60, 'further connections');
}

# A migration that adds. Returns the node of the next release, stopped, if there can be another.
sub goes_on
{
    my ($old, $shop, $migrate) = @_;
    like told_by(2, 'check'), qr/ at version 1 .* needs 2: .*\Q${\ sprintf $NEW, 1}\E/,
        'the next release says which nodes can stay';
    is told_by(2, 'migrate'), 'Applied 1 migration; the schema is at version 2.  '
        . sprintf("$NEW\n", 1), 'and says it again as it migrates';
    works($shop, 'on a schema with additions');
    like told_by(1, 'check'), qr/^database .*schema version 2, .*: ok$/m, 'so does downloadsctl';
    httpd_graceful();
    works($shop, 'after a graceful restart');
    $old->stop;
    $old->start;
    works($shop, 'after a start');
    my $next;
    if (database() eq 'pgsql') {
        $next = beside($old, level => 2, extra => "DownloadsMigrate $migrate\n")->start;
        works($shop, 'on a node that knows them');
        $next->stop;
        $old->aim;
    }
    unlike $old->error_log, qr/MDL0(?:101|115|320|337)/, 'the log has nothing of it';
    return $next;
}

# The first node does no job while another, which is upgraded, works.
sub stands_by
{
    my ($shop, $next) = @_;
    $next->configure(level => 3, extra => "$next->{extra}DownloadsWorker Off\n");
    $next->start;
    my $url = source('waits', 'some bytes');
    my $job = api('POST', '/assets', key => $shop->{token}, json => { source_url => $url })
        ->{json}{job}{id};
    wait_tries();
    is_deeply [ sql("SELECT status, lease_token FROM job WHERE id = '$job'") ], [ [ 'queued', 0 ] ],
        'the old background process takes no job';
    $next->configure(extra => "$next->{extra}DownloadsWorker On\n");
    httpd_restart();
    is wait_job($shop, $job)->{status}, 'succeeded', 'the new one does';
    works($shop, 'on the upgraded node');
    $next->stop;
    return;
}

# The background process works again once the schema suits it, and stops again.
sub comes_back
{
    my ($old, $shop) = @_;
    is count($old, 'MDL0320'), 1, 'the background process has said so once';
    sql('UPDATE schema_migration SET runs_with = 1');
    wait_for(sub { count($old, 'MDL0321') }, 30, 'it to go on when the schema suits it');
    is new_file($shop, 1000)->{size}, 1000, 'and it imports';
    sql('UPDATE schema_migration SET runs_with = 3 WHERE version = 3');
    wait_for(sub { count($old, 'MDL0320') == 2 }, 30, 'it to notice that it does not any more');
    return;
}

for my $migrate (qw(Off On)) {
    subtest "DownloadsMigrate $migrate" => sub {
        my $old = settings_server(extra => $CONF);
        $old->configure(extra => "$old->{extra}DownloadsMigrate $migrate\n");
        httpd_restart();
        my $shop = shop_with_product('Upgrade');
        told('member', 'add', 'owner', 'owner', '--shop', $shop->{shop_id});
        works($shop, 'before');
        my $next = goes_on($old, $shop, $migrate);

        # A migration that it may not meet.
        my $buy = buy($shop, new_file($shop, 1000), limit => 3);
        my $link = link_of($buy);
        my $upload = begin_upload($shop, size => 8);
        is page('GET', $link)->{status}, 200, 'a file is downloaded';
        is settled($buy)->{used}, 1, 'once';
        like told_by(3, 'check'), qr/ needs 3: .*\Q${\ sprintf $NEW, 3}\E/,
            'the release after that says that no older node can stay';
        is told_by(3, 'migrate'), 'Applied 1 migration; the schema is at version 3.  '
            . sprintf("$NEW\n", 3), 'and says it again as it migrates';
        is_too_old($shop, $buy, $link, $upload);
        my $line = qr/: .*schema is too new .*version 3.*: upgrade this node/;
        like $old->error_log, qr/MDL0115$line/, 'the log says what to do';
        wait_for(sub { count($old, 'MDL0320') }, 30, 'the background process to notice');
        like $old->error_log, qr/MDL0320$line/, 'and says it of the background process, too';
        like told_by(1, 'shop', 'list'), qr/too new .*version 3.*newer installation/,
            'downloadsctl does nothing either';
        if ($next) {
            stands_by($shop, $next);
            $old->aim;
        }
        comes_back($old, $shop);

        httpd_signal('USR1');
        wait_for(sub { count($old, 'MDL0337') }, 30, 'a graceful restart');
        wait_for(sub { count($old, 'MDL0320') == 3 && api('GET', '/health')->{status} == 503 }, 30,
            'the next background process to notice');
        is_too_old($shop, $buy, $link, $upload);
        $old->stop;
        my (undef, $output) = $old->httpd('-k', 'start');
        wait_for(sub { !$old->processes }, 10, 'the end of a server that may not start');
        like $output . $old->error_log, qr/MDL0337.*MDL0337/s, 'it does not start again';
        unlike $old->error_log, qr/MDL0(?:201|403|502)/, 'no request has failed';

        $old->configure(level => 3);
        $old->start;
        works($shop, 'once it is upgraded');
        is account($buy)->{used}, 1, 'the download of before is counted';
        is page('GET', $link)->{status}, 200, 'and its link goes on';
        $old->stop;
    };
}

done_testing;
