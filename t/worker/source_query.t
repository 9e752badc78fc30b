# The query of a source's URL may be a credential, as that of a pre-signed URL is: the source gets
# it, and nobody else does, from no answer, no log and no copy of the database.
#
# both: each is copied in its own way
use strict;
use warnings;

use MDL::Contract;
use MDL::Instance;
use MDL::Source;
use MDL::Test;
use Test::More;

my $server = MDL::Instance->new->start;
my $source = MDL::Source->new;
my $shop   = new_shop();
my $QUERY  = 'X-Amz-Expires=300&X-Amz-Signature=5EC2E7&a=%3F';

sub import_from
{
    my ($url, $path) = @_;
    my $reply = api('POST', $path // '/assets', key => $shop->{token},
        json => { source_url => $url });
    is_answer($reply, 202, "an import from $url");
    unlike($reply->{body}, qr/5EC2E7/, 'whose answer does not have the query');
    return $reply->{json};
}

sub shown
{
    my ($asset) = @_;
    return api('GET', "/assets/$asset->{id}", key => $shop->{token})->{json}{source_url};
}

# What the database has of the job's source.
sub kept
{
    my ($job) = @_;
    return (sql("SELECT source_url FROM job WHERE id = '$job->{id}'"))[0][0];
}

sub paths { my ($name) = @_; return map { $_->{path} } $source->requests($name) }

my $url  = $source->offer('signed', { size => 1000, hold => 500 });
my $made = import_from("$url?$QUERY");
wait_for(sub { $source->requests('signed') }, 20, 'the request');
is_deeply([ paths('signed') ], ["signed?$QUERY"], 'the source gets the query as it is');
is($made->{asset}{source_url}, "$url?***", 'the answer shows that there is one');
is(shown($made->{asset}), "$url?***", 'and so does the asset');
like(kept($made->{job}), qr/^\Q$url\E\?v1\.[\w-]+\z/, 'the job has it, sealed');
my ($code, $job, $text) = ctl('job', 'show', $made->{job}{id});
is($job->{source_url}, "$url?***", 'the operator does not see it') or diag($text);
$source->release('signed');
is(wait_job($shop, $made->{job}{id})->{status}, 'succeeded', 'the import succeeds');
is(kept($made->{job}), "$url?***", 'then the job has it no more');
is(shown($made->{asset}), "$url?***", 'nor has the asset');

my $second = import_from($source->offer('second', { size => 2000 }) . "?$QUERY",
    "/assets/$made->{asset}{id}/versions");
is(wait_job($shop, $second->{job}{id})->{status}, 'succeeded', 'a new version comes the same way');
is(shown($made->{asset}), $source->url('second') . '?***', 'and is shown the same way');

# One that fails keeps it for the next try.
my $gone = import_from($source->offer('gone', { status => 404 }, { status => 200, size => 10 })
    . "?$QUERY");
is(wait_job($shop, $gone->{job}{id})->{status}, 'failed', 'an import fails');
is(api('POST', "/jobs/$gone->{job}{id}/retry", key => $shop->{token})->{status}, 202,
    'it is tried again');
is(wait_job($shop, $gone->{job}{id})->{status}, 'succeeded', 'with success');
is_deeply([ paths('gone') ], [ ("gone?$QUERY") x 2 ], 'and the same query');

my $plain = import_from($source->offer('plain', { size => 10 }));
is(wait_job($shop, $plain->{job}{id})->{status}, 'succeeded', 'a URL without one is imported');
is(shown($plain->{asset}), $source->url('plain'), 'and shown as it is');

# A job whose query no secret opens: of another job, say.
my $stolen = import_from($source->offer('stolen', { status => 404 }) . "?$QUERY");
is(wait_job($shop, $stolen->{job}{id})->{status}, 'failed', 'another fails');
my $other = import_from($source->offer('other', { status => 404 }) . "?$QUERY");
wait_job($shop, $other->{job}{id});
sql("UPDATE job SET source_url = '" . kept($stolen->{job}) . "' WHERE id = '$other->{job}{id}'");
api('POST', "/jobs/$other->{job}{id}/retry", key => $shop->{token});
my $refused = wait_job($shop, $other->{job}{id});
is("$refused->{status} $refused->{error}{code}", 'failed source_unreadable',
    'what was sealed for one job is of no use to another');

my @dump = map { join "\t", map { $_ // '' } @$_ } map { sql("SELECT * FROM $_") }
    qw(asset job idempotency audit);
is(scalar(grep { /5EC2E7/ } @dump), 0, 'a copy of the database has no query');
my $log = $server->error_log;
unlike($log, qr/5EC2E7/, 'nor has the error log');
like($log, qr/MDL0307/, 'which says what to do about a query that can not be opened');

$server->stop;
done_testing();
