# What metrics cost: instructions and system calls of a ping and of a new mapping, with and without
# them.  For make check-metrics: METRICS_COST is the folder of a build without.
#
# both: a mapping is written in another way on each
use strict;
use warnings;

use MDL::Customer;
use MDL::Instance;
use MDL::Test;
use Test::More;

plan skip_all => 'make check-metrics measures this' if !$ENV{METRICS_COST};

# A worker's and settler's work is none of a request.  The requests are few: the more there are, the
# larger grows the database.
use constant { FEW => 10, MANY => 110 };

my $builds = { with => $ENV{BUILD}, without => MDL::Target::top_dir() . "/$ENV{METRICS_COST}" };
my %work   = (
    ping    => sub { my ($shop) = @_; api('GET', '/ping', key => $shop->{token}) },
    mapping => sub {
        my ($shop, $n) = @_;
        return api('POST', '/mappings', key => $shop->{token}, json => {
            storefront_product_id => "gid://shop/Product/$n", file_ids => [ $shop->{file} ],
            download_type => 'FILES' });
    },
);
my @callgrind = qw(valgrind -q --tool=callgrind --toggle-collect=ap_process_async_request
    --callgrind-out-file=);
my @strace = qw(strace -f -c -o);

# Runs httpd in one process under a program, has it work so often; returns what the program counts.
# In one process, the event MPM can crash while it closes its sockets at the end: that run counts
# for nothing.
sub measured
{
    my @run = @_;
    for (1 .. 10) {
        my $text = run_under(@run);
        next if !defined $text;
        return $text =~ /^(?:totals|summary): (\d+)/m ? $1 : system_calls($text);
    }
    die "httpd crashes at each end\n";
}

# undef: httpd crashed.
sub run_under
{
    my ($server, $program, $work, $shop, $times) = @_;
    my $out = "$server->{folder}/measured";
    unlink $out;
    $server->aim;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', "$out.log" or die "log: $!\n";
        open STDERR, '>&', \*STDOUT or die "log: $!\n";
        my @command = @$program;
        $command[-1] .= $out if $command[-1] =~ /=\z/;
        push @command, $out if $command[-1] !~ /=/;
        exec @command, $ENV{HTTPD}, '-X', '-f', "$server->{folder}/httpd.conf" or die "exec: $!\n";
    }
    wait_for(sub { api('GET', '/health', timeout => 60)->{status} == 200 }, 120, 'httpd');
    my $wrong = grep { $work->($shop, ++$shop->{number})->{status} !~ /^2/ } 1 .. $times;
    die "$wrong requests failed\n" if $wrong;
    $server->stop;
    waitpid $pid, 0;
    my $crashed = $?;
    my $text    = MDL::Target::slurp($out) // die MDL::Target::slurp("$out.log");
    return $crashed ? undef : $text;
}

# The calls in a table of strace.  How often a thread waits, or looks in vain, is chance.
sub system_calls
{
    my ($text) = @_;
    my $sum = 0;
    while ($text =~ /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:(\d+)\s+)?(\w+)$/mg) {
        my ($calls, $errors, $name) = ($1, $2 // 0, $3);
        $sum += $calls - $errors if $name !~ /^(?:futex|poll|epoll_wait|epoll_ctl|total)$/;
    }
    return $sum || die "no calls in $text\n";
}

# What one request costs.
sub cost
{
    my ($program, $work, $build) = @_;
    local $ENV{BUILD} = $builds->{$build};
    my $server = MDL::Instance->new(single => 1, extra => "DownloadsMigrate On\n")->start;
    my $shop   = new_shop();
    $shop->{file} = new_file($shop, 100)->{id};
    $server->stop;
    $server->configure(extra => "DownloadsWorker Off\n");
    my @sums = map { measured($server, $program, $work, $shop, $_) } FEW, MANY;
    return ($sums[1] - $sums[0]) / (MANY - FEW);
}

for my $name (sort keys %work) {
    my %instructions = map { $_ => cost(\@callgrind, $work{$name}, $_) } keys %$builds;
    my %calls        = map { $_ => cost(\@strace, $work{$name}, $_) } keys %$builds;
    my $more = 100 * ($instructions{with} / $instructions{without} - 1);
    diag sprintf '%s, %s: %.0f instructions, %.0f without metrics (%+.2f %%); %.2f system calls, '
        . '%.2f without', database(), $name, @instructions{qw(with without)}, $more,
        @calls{qw(with without)};
    cmp_ok $more, '<', 2, "$name: at most 2 % more instructions";
    cmp_ok $calls{with} - $calls{without}, '<', 0.5, "$name: no further system call";
}

done_testing;
