# The ten first questions of docs/troubleshoot.md: the command beside each is run as it stands
# there, and answers it.
#
# once: the commands' own suites run on both
use strict;
use warnings;

use JSON::PP ();
use MDL::Contract;
use MDL::Customer;
use MDL::Instance;
use MDL::Test;
use Test::More;

open my $in, '<:encoding(UTF-8)', 'docs/troubleshoot.md' or die "docs/troubleshoot.md: $!\n";
my @rows = map { /^\| ([^|]+\?) \| `downloadsctl ([^`]+)`/ ? [ $1, $2 ] : () } <$in>;
close $in;

my $server = MDL::Instance->new->start;
my $shop  = new_shop();
my $to    = "questions-$$\@buyer.example";
my $file  = new_file($shop, 2000);
my $order = digits();
my $product = mapping_of($shop, [ $file->{id} ])->{storefront_product_id};
my $made = assign($shop, $order, [$product], send_email => JSON::PP::true(),
    customer => { email => $to });
my $import = api('POST', '/assets', key => $shop->{token}, json => {
    source_url => source("questions-$$.txt", "other bytes\n"), sha256 => '0' x 64 });
my $job = wait_job($shop, $import->{json}{job}{id});
wait_for(
    sub {
        my $emails = api('GET', "/orders/$order", key => $shop->{token})->{json}{email};
        return $emails->{status} eq 'sent';
    }, 20, 'the email');
api('POST', "/orders/$order/revoke", key => $shop->{token}, json => { reason => 'a chargeback' });
my ($stored) = split /\n/, qx(find '$server->{folder}' -type f -name '*$file->{sha256}*');
unlink $stored or die "no file has the name $file->{sha256}\n";

my %value = (
    REQUEST_ID => $made->{headers}{'x-request-id'},
    SHOP_ID    => $shop->{shop_id},
    ADDRESS    => $to,
    ORDER      => $order,
    JOB_ID     => $job->{id},
);

# By the beginning of the command: its exit code, and what the answer must have.
my %answers = (
    'check'          => [ 6, qr/^files +.*missing/m ],
    'trace'          => [ 0, qr/\Q$to\E +sent/ ],
    'customer list'  => [ 0, qr/\Q$to\E/ ],
    'order show'     => [ 0, qr/^email_status +sent$/m ],
    'order diagnose' => [ 6, qr/^access +fail .*a chargeback/m ],
    'mail test'      => [ 0, qr/took the email to \Q$to\E/ ],
    'job list'       => [ 0, qr/^\Q$job->{id}\E +asset_import +failed .*checksum_mismatch/m ],
    'job show'       => [ 0, qr/^error_message +\S/m ],
    'audit'          => [ 0, qr/ order +\Q$order\E +revoked +api .*a chargeback/ ],
    'storage verify' => [ 6, qr/missing.*\n +asset $file->{id} .*given to 1 order: $order/ ],
);

is(scalar @rows, 10, 'there are ten questions');
for my $row (@rows) {
    my ($question, $command) = @$row;
    my ($name) = grep { $command =~ /^$_/ } keys %answers;
    ok($name, "$question: downloadsctl $command") or next;
    my ($code, $words) = @{ delete $answers{$name} };
    my @words = map { $value{$_} // $_ } split / /, $command;
    is(scalar(grep { /^[A-Z_]+$/ } @words), 0, 'every name in it is explained');
    my $program = MDL::Test::vars()->{build} . '/downloadsctl';
    open my $out, '-|', $program, '-f', conf_file(), @words or die "$program: $!\n";
    my $text = do { local $/; <$out> // '' };
    close $out;
    is($? >> 8, $code, "it ends with $code");
    like($text, $words, 'and answers');
}

done_testing();
