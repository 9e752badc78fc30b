# The current server: the one that the suites' helpers talk to, and where its files are.
#
# It is the MDL::Instance on which aim() was called last. If a suite makes none, one starts when it
# is first needed.
package MDL::Target;

use strict;
use warnings;

use Cwd qw(getcwd);
use Exporter qw(import);
use File::Path qw(make_path);
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
    port base_url public_url database logs_dir mail_dir storage_dir conf_file
    error_log error_log_size error_log_since wait_for
);
our @EXPORT_OK = qw(aim slurp suite_dir top_dir vars);

# Seconds between two looks of wait_for(): they grow, to leave the processor to others.
use constant { POLL => 0.01, POLL_MORE => 1.25, POLL_MOST => 0.15 };

# Seconds that wait_for() waits at least, for the machine may be busy. Where DownloadsPollInterval
# has to be longer than any wait, a suite sets it to less.
our $patience = 60;

my $top = getcwd();
my $aimed;

sub top_dir { return $top }

# The folder for the suite's files, such as t/logs/sqlite3/api/assets.
sub suite_dir
{
    my ($name) = $0 =~ m{(?:^|/)t/(.+)\.t\z};
    my $folder = join '/', "$top/t/logs",
        grep { defined } $ENV{MDL_RUN} // database(), $name // "other-$$";
    make_path($folder);
    return $folder;
}

sub aim { ($aimed) = @_; return }

sub vars
{
    return $aimed if $aimed;
    require MDL::Instance;
    MDL::Instance->new->start;
    return $aimed;
}

sub port        { return vars()->{port} }
sub base_url    { return 'http://127.0.0.1:' . port() . '/api/v1' }
sub public_url  { return 'http://localhost:' . port() . '/d' }
sub database    { return $aimed ? $aimed->{db_driver} : $ENV{DB} || 'sqlite3' }
sub logs_dir    { return vars()->{t_logs} }
sub mail_dir    { return logs_dir() . '/mail' }
sub storage_dir { return logs_dir() . '/storage' }
sub conf_file   { return vars()->{conf_file} }
sub error_log   { return logs_dir() . '/error_log' }

sub slurp
{
    my ($path) = @_;
    open my $in, '<:raw', $path or return;
    local $/;
    return scalar <$in>;
}

sub error_log_size { return -s error_log() // 0 }

# The error log's text from this byte on.
sub error_log_since
{
    my ($offset) = @_;
    return substr slurp(error_log()) // '', $offset;
}

# Calls $look until it returns something true, and returns that; dies after $seconds, or $patience
# if that is more, behind a last look.
sub wait_for
{
    my ($look, $seconds, $what) = @_;
    $seconds = $patience if $seconds < $patience;
    my $until = time + $seconds;
    for (my $pause = POLL;; $pause *= POLL_MORE) {
        my $last   = time >= $until;
        my $result = $look->();
        return $result if $result;
        die "waited $seconds s in vain for $what\n" if $last;
        sleep($pause < POLL_MOST ? $pause : POLL_MOST);
    }
}

1;
