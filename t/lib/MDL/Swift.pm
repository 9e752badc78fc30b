# A bucket of its own in an S3-compatible object store: Debian's Swift, or Ceph's gateway if the
# environment has MDL_STORE=radosgw. The store is started by the first suite of a run that needs it,
# is shared by all, and ends with the run (MDL::TestRun).
#
#   my $store = MDL::Swift->new;              # or new(prefix => 'a/b')
#   $store->url                               # http://127.0.0.1:port/bucket[/prefix]
#   @$store{qw(access_key secret_key region bucket)}
#   my $path = $store->key_file;              # as DownloadsObjectKeyFile wants it
#   my %size = $store->objects;               # all objects of the bucket: key => size
#   my @keys = $store->uploads;               # of the unfinished multipart uploads
#   $store->put($key, $bytes);  my $bytes = $store->get($key);  $store->delete($key);
#   my $answer = $store->request('GET', $key, "uploads=", %options);    # { status, body }
#
# Requests are signed by curl. A query must be encoded, in the order of its names, each with "=".
package MDL::Swift;

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Fcntl qw(:flock);
use File::Temp ();

use MDL::Target qw(slurp suite_dir top_dir);

my $count = 0;

sub new
{
    my ($class, %opt) = @_;
    my ($origin, @keys) = split ' ', running();
    my $self = bless { prefix => '', %opt, origin => $origin }, $class;
    @$self{qw(access_key secret_key region)} = @keys;
    $self->{bucket} = join '-', 'suite', $$, time, ++$count;
    my $answer = $self->request('PUT', undef);
    die "no bucket can be made: $answer->{status} $answer->{body}\n" if $answer->{status} != 200;
    return $self;
}

# Whether a region that is not the store's is no mistake.
sub takes_any_region { return program() eq 'tools/radosgw' }

sub program { return 'tools/' . ($ENV{MDL_STORE} // 'objects') }

# The parameters of the store of this run, which is started if it isn't there.
sub running
{
    return $ENV{MDL_TEST_S3} if $ENV{MDL_TEST_S3};
    my $folder = top_dir() . '/t/logs/objects';
    open my $lock, '>', "$folder.lock" or die "$folder.lock: $!\n";
    flock $lock, LOCK_EX;
    if (!-e "$folder/pids") {
        system(program(), 'start', $folder) == 0 or die "no object store\n";
    }
    return slurp("$folder/params");
}

sub url
{
    my ($self) = @_;
    return join '/', @$self{qw(origin bucket)}, $self->{prefix} eq '' ? () : $self->{prefix};
}

sub key_file
{
    my ($self) = @_;
    my $path = suite_dir() . "/$self->{bucket}.keys";
    open my $out, '>', $path or die "$path: $!\n";
    chmod 0600, $path;
    print $out "$self->{access_key}\n$self->{secret_key}\n";
    close $out or die "$path: $!\n";
    return $path;
}

# --- requests -------------------------------------------------------------------------------------

# A key is of the bucket, with the prefix; undef is the bucket itself. Options: body => bytes;
# headers => [ … ].
sub request
{
    my ($self, $method, $key, $query, %opt) = @_;
    my $body = File::Temp->new;
    print {$body} $opt{body} // '';
    $body->flush;
    my $into = File::Temp->new;
    my $path = join '/', $self->{bucket}, map { s{([^\w.~/-])}{sprintf '%%%02X', ord $1}ger } $key
        // ();
    # curl takes a key with a colon from a URL alone.
    my $keys = join ':', map { s/:/%3A/r } @$self{qw(access_key secret_key)};
    my @command = (qw(curl -sS --noproxy * -w %{http_code}), '-o', "$into", '--aws-sigv4',
        "aws:amz:$self->{region}:s3",
        '-H', 'x-amz-content-sha256: ' . sha256_hex($opt{body} // ''),
        (map { ('-H', $_) } @{ $opt{headers} // [] }),
        $method eq 'HEAD' ? '-I' : ('-X', $method),
        defined $opt{body} ? ('-T', "$body") : (),
        $self->{origin} =~ s{//}{//$keys\@}r . "/$path" . (defined $query ? "?$query" : ''));
    open my $curl, '-|', @command or die "curl: $!\n";
    my $status = readline $curl;
    close $curl or die "curl failed\n";
    return { status => $status, body => slurp("$into") // '' };
}

sub done
{
    my ($self, @request) = @_;
    my $answer = $self->request(@request);
    die "$request[0] $request[1]: $answer->{status} $answer->{body}\n"
        if $answer->{status} !~ /^2/;
    return $answer->{body};
}

sub put    { my ($self, $key, $bytes) = @_; return $self->done('PUT', $key, undef, body => $bytes) }
sub get    { my ($self, $key) = @_; return $self->done('GET', $key) }
sub delete { my ($self, $key) = @_; return $self->done('DELETE', $key) }

sub unescaped
{
    my ($text) = @_;
    my %names = (lt => '<', gt => '>', quot => '"', apos => "'", amp => '&');
    return $text =~ s/&(\w+);/$names{$1}/gr;
}

sub objects
{
    my ($self) = @_;
    my (%size, $token);
    do {
        my $query = defined $token ? "continuation-token=$token&list-type=2" : 'list-type=2';
        my $xml = $self->done('GET', undef, $query);
        for my $item ($xml =~ m{<Contents>(.*?)</Contents>}gs) {
            my ($key) = $item =~ m{<Key>(.*?)</Key>};
            ($size{ unescaped($key) }) = $item =~ m{<Size>(\d+)</Size>};
        }
        ($token) = $xml =~ m{<NextContinuationToken>(.*?)</};
        $token =~ s/([^\w.~-])/sprintf '%%%02X', ord $1/ge if defined $token;
    } while (defined $token);
    return %size;
}

sub uploads
{
    my ($self) = @_;
    my $xml = $self->done('GET', undef, 'uploads=');
    return map { unescaped($_) } $xml =~ m{<Upload>.*?<Key>(.*?)</Key>.*?</Upload>}gs;
}

1;
