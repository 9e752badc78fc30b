#!/usr/bin/perl
# Where `make install` puts files, what an upgrade replaces, and what `make uninstall` leaves, tried
# in a temporary folder.
use strict;
use warnings;

use File::Basename qw(basename);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!\n";
my $build = tempdir(CLEANUP => 1);
our ($apxs) = $ENV{APXS} // grep { -x } qw(/usr/bin/apxs /usr/bin/apxs2);
our ($tree, $dest);

# The built files are only copied, so any content will do.
mkdir "$build/gen" or die "mkdir: $!\n";
write_file("$build/$_", "built $_")
    for qw(mod_downloads.so downloadsctl gen/mod_downloads.8 gen/downloadsctl.8);

sub slurp
{
    my ($path) = @_;
    open my $in, '<', $path or return '';
    local $/;
    return scalar <$in>;
}

sub write_file
{
    my ($path, $text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
    return;
}

# Makes a checkout that may be changed, and a folder to install into.
sub fresh
{
    ($tree, $dest) = map { tempdir(CLEANUP => 1) } 1 .. 2;
    my @parts = ('tools/install', 'conf', 'docs', 'sql');
    system('cp', '-R', '--parents', @parts, $tree) == 0 or die "cp\n";
    return;
}

sub run_tool
{
    my (@arguments) = @_;
    local @ENV{qw(APXS BUILD DESTDIR)} = ($apxs // 'apxs', $build, $dest);
    delete local $ENV{PREFIX};
    my $output = qx('$tree/tools/install' @arguments 2>&1);
    return ($?, split /\n/, $output);
}

sub install
{
    my ($status, @output) = run_tool();
    is($status, 0, 'the command succeeds') or diag("@output");
    return @output;
}

sub remove
{
    my ($status, @output) = run_tool('remove');
    is($status, 0, 'the command succeeds') or diag("@output");
    return @output;
}

sub files
{
    return sort map { s/^\Q$dest\E//r } split /\n/, qx(find '$dest' -type f -o -type l);
}

# A mock of apxs with the answers of an httpd that was built from source.
sub apxs_of_source
{
    my %value = (
        LIBEXECDIR => '/opt/httpd/modules',
        SYSCONFDIR => '/opt/httpd/conf',
        PREFIX     => '/opt/httpd',
    );
    my $path = "$build/apxs";
    write_file($path, "#!/bin/sh\ncase \$2 in\n"
            . join('', map { "$_) echo '$value{$_}' ;;\n" } sort keys %value) . "esac\n");
    chmod 0755, $path;
    return $path;
}

subtest 'files are installed below DESTDIR, at the paths in the guides' => sub {
    fresh();
    my @output = install();
    my @shown  = map { /^    (\S+)/ ? $1 : () } @output;
    cmp_ok(scalar @output, '<=', 14, 'a person can read what is printed');
    is_deeply([ grep { !m{^\Q$dest\E/} || !-e } @shown ], [],
        'what is shown is there, below DESTDIR');
    is_deeply([ grep { my $file = "$dest$_"; !grep { $file eq $_ || $file =~ m{^\Q$_\E/} } @shown }
        files() ],
        [], 'nothing else is installed');
    like($output[-1], qr{^Next: a2enmod downloads, .*/install\.md},
        'the last line says what to do next');
    my @put = map { "$dest$_" } files();

    my $docs = "$dest/usr/share/doc/mod_downloads";
    for my $file (grep { $_ ne 'docs/extend.md' } glob 'docs/*.md') {
        is(slurp("$docs/" . basename($file)), slurp($file),
            "$file is installed with the documentation");
        my @targets = slurp($file) =~ /\]\(([^)#]+\.[a-z]+)(?:#[^)]*)?\)/g;
        is_deeply([ grep { !m{^https?://} && !-e "$docs/$_" } @targets ], [],
            "$file links only to installed files");
    }

    my ($sample) = grep { m{/etc/.*downloads\.conf$} || m{/extra/mod_downloads\.conf$} } @put;
    my @named = slurp($sample) =~ m{(\S*\.md)\b}g;
    ok(@named > 0, 'the sample configuration names the documentation');
    is_deeply([ grep { !m{^/} || !-f "$dest$_" } @named ], [],
        'it names the documentation by the installed path');

    open my $out, '>>', $sample or die "$sample: $!\n";
    print $out "# mine\n";
    close $out;
    install();
    like(slurp($sample), qr/^# mine$/m, 'an edited configuration is kept');
    ok(!-e "$sample.new", 'nothing is put beside it, for there is no other version');
    open $out, '>>', "$tree/conf/mod_downloads.conf" or die "$tree: $!\n";
    print $out "# new\n";
    close $out;
    install();
    ok(-f "$sample.new", 'a new one is put beside it');
    install();
    ok(-f "$sample.new", 'and stays there');
    unlink "$sample.new";
    install();
    ok(!-e "$sample.new", 'until it is removed, for that version has been seen');
};

subtest 'an upgrade replaces templates that were not edited' => sub {
    fresh();
    install();
    my $templates = "$dest/etc/apache2/downloads/templates";
    write_file("$templates/email.html", 'my email');
    write_file("$tree/conf/templates/$_", "new $_") for qw(page.html email.html message.html);
    unlink "$tree/conf/templates/date.mustache";
    my ($output) = grep { /kept/ } install();
    is(slurp("$templates/page.html"), 'new page.html', 'an unchanged template is replaced');
    ok(!-e "$templates/page.html.new", 'it has no .new file');
    is(slurp("$templates/email.html"), 'my email', 'an edited template is kept');
    is(slurp("$templates/email.html.new"), 'new email.html',
        'the new one is put beside the edited template');
    like($output, qr/was edited and is kept; the new one is \S+email\.html\.new$/,
        'the output names both files');
    ok(!-e "$templates/date.mustache", 'a template that this version does not have is removed');

    rename "$templates/email.html.new", "$templates/email.html" or die "rename: $!\n";
    write_file("$templates/page.html", 'my page');
    write_file("$tree/conf/templates/$_", "newer $_") for qw(page.html email.html);
    install();
    is(slurp("$templates/email.html"), 'newer email.html',
        'a new template that replaced an edited one is replaced again');
    is(slurp("$templates/page.html"), 'my page', 'a template that was edited later is kept');
    is(slurp("$templates/page.html.new"), 'newer page.html',
        'the new one is put beside the edited template');
    write_file("$templates/page.html", 'newer page.html');
    install();
    ok(!-e "$templates/page.html.new", 'a .new file that is no longer needed is removed');
};

subtest 'uninstalling removes installed files and leaves edited ones' => sub {
    fresh();
    my ($status, @output) = run_tool('remove');
    isnt($status, 0, 'uninstalling fails before anything was installed');
    like("@output", qr/no \S+manifest.*make install/, 'the message says why uninstalling fails');

    install();
    my $etc = "$dest/etc/apache2";
    write_file("$etc/mods-available/downloads.conf", 'mine');
    write_file("$etc/downloads/templates/page.html", 'mine');
    write_file("$etc/downloads/templates/page.fr.html", 'mine');
    write_file("$etc/downloads.secret", 'secret');
    mkdir "$etc/mods-enabled" or die "mkdir: $!\n";
    symlink "../mods-available/downloads.$_", "$etc/mods-enabled/downloads.$_" for qw(load conf);
    write_file("$tree/conf/templates/page.html", 'new');
    @output = install();
    like($output[-1], qr/^Next: .*restart httpd/,
        'where the module is enabled, the next step is another one');
    @output = remove();
    is_deeply(
        [ files() ],
        [   map { "/etc/apache2/$_" } 'downloads.secret', 'downloads/templates/page.fr.html',
            'downloads/templates/page.html', 'mods-available/downloads.conf'
        ],
        'only files that were edited or added are left'
    );
    is_deeply(
        [ sort grep { /kept/ } @output ],
        [   map { "$etc/$_ was edited and is kept" } 'downloads/templates/page.html',
            'mods-available/downloads.conf'
        ],
        'the output names the edited files'
    );
    ok(!-e "$dest/usr/share/mod_downloads" && !-e "$dest/usr/share/doc/mod_downloads",
        "the module's own folders are removed");
    ok(-d "$etc/mods-available", "Apache's own folders stay");
};

subtest 'with an httpd that was built from source all files are in its prefix' => sub {
    local $apxs = apxs_of_source();
    fresh();
    install();
    is_deeply([ grep { !m{^/opt/httpd/} } files() ], [], 'all files are below the prefix');
    my $sample = slurp("$dest/opt/httpd/conf/extra/mod_downloads.conf");
    like($sample, qr{^DownloadsSecretFile /opt/httpd/conf/downloads\.secret$}m,
        'the configuration is to be included, and has the paths of that httpd');
    unlike($sample, qr{/etc/apache2/}, "the configuration has no path of Debian's httpd");
    remove();
    is_deeply([ files() ], [], 'all files can be removed');
};

done_testing();
