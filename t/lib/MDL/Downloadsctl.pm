# Shared by the tests of downloadsctl (t/unit/downloadsctl*.t): a folder with a configuration and a
# database, and checks of what the command prints.
#
#   fresh('name');                              # sets $dir, $conf and %params, on SQLite
#   refuses(4, qr/no such shop/, qw(shop approve 999));
#   my $shop = succeeds_json(qw(shop add Shop shop.example));
#
# $conf is the configuration that the following commands use. Run by root, data belongs to nobody,
# as whom the command then works.
#
#   BUILD=dir    where the command and the module are (build)
package MDL::Downloadsctl;
use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

use MDL::Database ();

our @EXPORT = qw(
    $top $built $program $temp $owner $dir $conf %params $TIME
    slurp write_file run ctl json refuses refuses_json succeeds_json sql configure fresh
    check_named check check_finds
);

our $top     = abs_path(dirname(__FILE__) . '/../../..');
our $built   = ($ENV{BUILD} || 'build') =~ m{^(/.*)} ? $1 : "$top/" . ($ENV{BUILD} || 'build');
our $program = "$built/downloadsctl";
our $TIME    = qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
our $temp    = tempdir('downloadsctl.XXXXXX', TMPDIR => 1, CLEANUP => 1);
our $owner   = $> == 0 ? (getpwnam 'nobody')[2] : $>;
our ($dir, $conf, %params);
my $JSON = JSON::PP->new->utf8;

-x $program or BAIL_OUT("$program is not there: make build");
chmod 0755, $temp;

sub slurp
{
    my ($path) = @_;
    open my $in, '<:raw', $path or die "$path: $!";
    local $/;
    return scalar <$in> // '';
}

sub write_file
{
    my ($path, $text, $mode) = @_;
    open my $out, '>:raw', $path or die "$path: $!";
    print $out $text;
    close $out or die "$path: $!";
    chmod $mode // 0644, $path;
    return $path;
}

# Runs downloadsctl; returns { code, out, err, json }.
sub run
{
    my (@arguments) = @_;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDOUT, '>', "$temp/out" or die $!;
        open STDERR, '>', "$temp/err" or die $!;
        exec $program, @arguments or die $!;
    }
    waitpid $pid, 0;
    my %result = (code => $? & 127 ? "signal $?" : $? >> 8);
    @result{qw(out err)} = map { slurp("$temp/$_") } qw(out err);
    $result{json} = eval { $JSON->decode($result{out}) };
    return \%result;
}

sub ctl  { return run('-f', $conf, @_) }
sub json { return run('-f', $conf, '--json', @_) }

# Checks that a command ends with this code, and writes these words to standard error and nothing to
# standard output.
sub refuses
{
    my ($code, $words, @arguments) = @_;
    my $got = ctl(@arguments);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $good = $got->{code} eq $code && $got->{err} =~ $words && $got->{out} eq '';
    ok($good, "'@arguments' ends with $code") or diag(explain($got));
    return;
}

# Checks that a command ends with this code, and with --json answers this error.
sub refuses_json
{
    my ($code, $error, @arguments) = @_;
    my $got = json(@arguments);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $good = $got->{code} eq $code && ref $got->{json} eq 'HASH'
        && ($got->{json}{error}{code} // '') eq $error && length $got->{json}{error}{message};
    ok($good, "'--json @arguments' ends with $code, $error") or diag(explain($got));
    return;
}

# Checks that a command succeeds with --json; returns its document.
sub succeeds_json
{
    my (@arguments) = @_;
    my $got = json(@arguments);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok($got->{code} eq 0 && defined $got->{json}, "'--json @arguments' succeeds")
        or diag(explain($got));
    return $got->{json};
}

sub sql
{
    my ($query) = @_;
    my @command
        = $params{driver} eq 'pgsql'
        ? (MDL::Database::psql(), $params{params}, '-qAtX', '-v', 'ON_ERROR_STOP=1', '-c', $query)
        : ('sqlite3', '-batch', '-cmd', '.timeout 60000', $params{params}, $query);
    open my $out, '-|', @command or die "$command[0]: $!";
    my @lines = <$out>;
    close $out or die "$command[0] failed on: $query\n";
    chomp @lines;
    return @lines;
}

# Writes the usual configuration with these directives added or replaced; undef removes one. Returns
# its path.
sub configure
{
    my (%change) = @_;
    my %directive = (
        DBDriver               => $params{driver},
        DBDParams              => qq("$params{params}"),
        DownloadsPublicURL     => 'http://127.0.0.1/d',
        DownloadsSecretFile    => "$dir/secret",
        DownloadsStorage       => "$dir/data/storage",
        DownloadsTemplates     => "$top/conf/templates",
        DownloadsMailTransport => "maildir:$dir/data/mail",
        DownloadsMailFrom      => 'shop@example.com',
        DownloadsIngestAllowHost => 'files.test',
        %change
    );
    my @lines = map { defined $directive{$_} ? "$_ $directive{$_}\n" : () } sort keys %directive;
    return write_file("$dir/downloads.conf", join '', @lines);
}

# Makes a new folder with a good configuration, whose data belongs to $owner.
sub fresh
{
    my ($name, %database) = @_;
    $dir = "$temp/$name";
    make_path("$dir/data/storage");
    chown $owner, -1, "$dir/data", "$dir/data/storage" if $> == 0;
    write_file("$dir/secret", 'k' x 40, 0600);
    %params = %database ? %database : (driver => 'sqlite3', params => "$dir/data/downloads.db");
    $conf = configure();
    return;
}

sub check_named
{
    my ($name, $document) = @_;
    my ($found) = grep { $_->{name} eq $name } @{ $document->{checks} };
    return $found // {};
}

# Runs `check`; returns its exit code and its document, with each check also by its name.
sub check
{
    my (@arguments) = @_;
    my $got = json('check', @arguments);
    $got->{json}{$_->{name}} = $_ for @{ $got->{json}{checks} // [] };
    return { code => $got->{code}, %{ $got->{json} // {} } };
}

# Checks that `check` reports a problem with this part, and still checks the others.
sub check_finds
{
    my ($name, $words, $what) = @_;
    my $got   = json('check');
    my $found = check_named($name, $got->{json} // {});
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $good = $got->{code} eq 6 && defined $found->{ok} && !$found->{ok}
        && $found->{message} =~ $words && @{ $got->{json}{checks} } == 12;
    ok($good, "check says what to do when $what") or diag(explain($got));
    return;
}

1;
