# The OpenAPI document that the service answers: its operations, and checks of answers against it.
#
#   for my $operation (operations()) { … }      { id, method, path, write, lists, … } of /api/v1
#   upload_operations()                         those of the upload URL
#   fits($operation, $reply, 'an import');      checks status, headers and body
#   never_given($elsewhere, operations())       declared answers that nothing has given
#   strange_examples($elsewhere, operations())  examples of errors that say something else
package MDL::OpenApi;

use strict;
use warnings;

use Exporter qw(import);
use IO::Handle;
use IPC::Open2 qw(open2);
use JSON::PP;
use MDL::Test;
use Test::More;

our @EXPORT = qw(document document_file operations upload_operations operation fits misfits
    examples_in example_path never_given strange_examples);

my $JSON = JSON::PP->new->utf8->canonical;
my ($document, $file, @described, $to, $from, $pid, $owner, %seen, %told);

sub document
{
    return $document if $document;
    my $reply = api('GET', '/openapi.json');
    die "the document was answered with $reply->{status}\n" if $reply->{status} != 200;
    $file = logs_dir() . "/openapi-$$.json";
    open my $out, '>:raw', $file or die "$file: $!\n";
    print $out $reply->{body};
    close $out or die "$file: $!\n";
    return $document = $JSON->decode($reply->{body});
}

# The path of the document, for programs of node.
sub document_file { document(); return $file }

# Resolves a $ref of a parameter or response.
sub resolve
{
    my ($object) = @_;
    while (my $ref = $object->{'$ref'}) {
        $object = document();
        $object = $object->{ s{~1}{/}gr =~ s{~0}{~}gr } for grep { $_ ne '#' } split m{/}, $ref;
    }
    return $object;
}

my $METHOD = qr/^(?:get|head|post|put|patch|delete|options)\z/;

# Every operation of the document, in the order of paths:
#   id, method (upper case), path ("/assets/{asset_id}"), form ("/assets/{}", as the router has it)
#   away    is not below /api/v1, and has no route
#   open    needs no key            write    is not a GET
#   body    { type, example } of its request body, or nothing
#   parameters  as the document has them        lists    is a list with pages
#   codes   { status => [ codes ] } of its errors     examples  { status => [ errors ] }
sub described
{
    return @described if @described;
    my $paths = document()->{paths};
    for my $path (sort keys %$paths) {
        for my $method (grep { /$METHOD/ } sort keys %{ $paths->{$path} }) {
            my $it = $paths->{$path}{$method};
            my @parameters = map { resolve($_) } @{ $paths->{$path}{parameters} // [] },
                @{ $it->{parameters} // [] };
            my ($type) = keys %{ $it->{requestBody}{content} // {} };
            my (%codes, %examples);
            for my $status (grep { /^[45]/ } keys %{ $it->{responses} }) {
                my $content = resolve($it->{responses}{$status})->{content}{'application/json'};
                # no error, but what was asked for
                next if $content && !$content->{schema}{allOf};
                my $code = $content->{schema}{allOf}[1]{properties}{error}{properties}{code};
                $codes{$status} = $code->{'x-extensible-enum'} // [ $code->{const} ];
                $examples{$status} = [ map { $_->{value}{error} }
                    values %{ $content->{examples} // {} } ];
            }
            push @described, {
                id     => $it->{operationId},
                method => uc $method,
                path   => $path,
                form   => $path =~ s/\{\w+\}/{}/gr,
                away   => $paths->{$path}{servers} ? 1 : 0,
                open   => $it->{security} && !@{ $it->{security} } ? 1 : 0,
                write  => $method ne 'get' ? 1 : 0,
                body   => $type
                    && { type => $type, example => $it->{requestBody}{content}{$type}{example} },
                lists  => scalar(grep { $_->{name} eq 'cursor' } @parameters),
                parameters => \@parameters,
                codes     => \%codes,
                examples  => \%examples,
                responses => [ sort keys %{ $it->{responses} } ],
            };
        }
    }
    return @described;
}

# { name => example } of an operation's parameters in "path", "query" or "header".
sub examples_in
{
    my ($operation, $in) = @_;
    return map { ($_->{name} => $_->{example}) } grep { $_->{in} eq $in }
        @{ $operation->{parameters} };
}

# The path of an operation with the examples of its parameters.
sub example_path
{
    my ($operation) = @_;
    my %examples = examples_in($operation, 'path');
    return $operation->{path} =~ s/\{(\w+)\}/$examples{$1}/gr;
}

sub operations        { return grep { !$_->{away} } described() }
sub upload_operations { return grep { $_->{away} } described() }

sub operation
{
    my ($id) = @_;
    my ($operation) = grep { $_->{id} eq $id } described();
    return $operation // die "the document has no operation $id\n";
}

# What is wrong with an answer, as sentences.
sub misfits
{
    my ($operation, $reply) = @_;
    if (!$pid) {
        $pid = open2($from, $to, 'tools/node', 't/node/answers.mjs', document_file());
        $owner = $$;
        $to->autoflush;
    }
    my %headers = map { my $value = $reply->{headers}{$_};
        ($_ => ref $value ? join(', ', @$value) : $value) } keys %{ $reply->{headers} };
    print $to $JSON->encode({
        path    => $operation->{path},
        method  => lc $operation->{method},
        status  => $reply->{status},
        headers => \%headers,
        body    => $reply->{body},
    }), "\n";
    my $line = <$from> // die "t/node/answers.mjs has ended\n";
    my $code = $reply->{status} >= 400 ? $reply->{json}{error}{code} // '' : '';
    $seen{ join ' ', $operation->{id}, $reply->{status}, $code } = 1;
    $told{"$reply->{status} $code"}{ plain($reply->{json}{error}{message}) } = 1 if $code;
    return @{ $JSON->decode($line) };
}

# A message without what differs from one request to another.
sub plain { my ($message) = @_; return $message =~ s/\b(?:upl|job)_\w+/ID/gr =~ s/\d+/0/gr }

# The declared answers of operations that were not given, each as "operation status code", but for
# those that match $elsewhere.
sub never_given
{
    my ($elsewhere, @of) = @_;
    my @declared;
    for my $operation (@of) {
        for my $status (@{ $operation->{responses} }) {
            push @declared,
                map { "$operation->{id} $status $_" } @{ $operation->{codes}{$status} // [''] };
        }
    }
    return grep { $_ !~ $elsewhere && !$seen{$_} } @declared;
}

# The examples of errors that don't say what the service has said with that status and code, and
# what it has said; but for those that match $elsewhere.
sub strange_examples
{
    my ($elsewhere, @of) = @_;
    my %strange;
    for my $operation (@of) {
        for my $status (sort keys %{ $operation->{examples} }) {
            for my $error (@{ $operation->{examples}{$status} }) {
                my $said = $told{"$status $error->{code}"};
                next if !$said || " $error->{code}" =~ $elsewhere
                    || $said->{ plain($error->{message}) };
                $strange{ join "\n    ", "$status $error->{code}: $error->{message}",
                    sort keys %$said } = 1;
            }
        }
    }
    return sort keys %strange;
}

sub fits
{
    my ($operation, $reply, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @misfits = misfits($operation, $reply);
    return ok(!@misfits, "$operation->{id}: $name: $reply->{status} as declared")
        || diag(join "\n", @misfits, substr $reply->{body}, 0, 2000);
}

# Ends the program by a signal, since forked processes may still hold a copy of its input.
END {
    if ($pid && $$ == $owner) {
        local $?;
        kill TERM => $pid;
        waitpid $pid, 0;
    }
}

1;
