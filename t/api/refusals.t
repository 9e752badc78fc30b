# What httpd refuses by itself below /api/v1 comes in the API's error envelope; elsewhere it stays
# httpd's page.
#
# once: none of these requests reaches the database
use strict;
use warnings;
use utf8;

use Test::More;

use MDL::Contract;
use MDL::Instance;
use MDL::Test;

my $server = MDL::Instance->new(tls => 1, mpm => 'event', extra => <<'END')->start;
TraceEnable off
<Location /api/v1/jobs>
    Require all denied
</Location>
ErrorDocument 406 /source/unused
END

my %refusals = (
    'an encoded slash'           => [ 404, 'not_found',          'GET %s/assets%%2F1 HTTP/1.1' ],
    'an encoded null byte'       => [ 404, 'not_found',          'GET %s/assets%%00 HTTP/1.1' ],
    'half an escape'             => [ 400, 'invalid_request',    'GET %s/assets%%4 HTTP/1.1' ],
    'a long line'                => [ 414, 'request_too_large',
        'GET %s/assets?' . 'x' x 9000 . ' HTTP/1.1' ],
    'a third word'               => [ 400, 'invalid_request',    'GET %s/assets there HTTP/1.1' ],
    'a long header'              => [ 400, 'invalid_request',    'GET %s/assets HTTP/1.1',
        'X-Long: ' . 'x' x 9000 ],
    'many headers'               => [ 400, 'invalid_request',    'GET %s/assets HTTP/1.1',
        ('X-Many: x') x 101 ],
    'a header without a colon'   => [ 400, 'invalid_request',    'GET %s/assets HTTP/1.1',
        'nonsense' ],
    'a name with a blank'        => [ 400, 'invalid_request',    'GET %s/assets HTTP/1.1',
        'A name: x' ],
    'a length that is no number' => [ 400, 'invalid_request',    'POST %s/assets HTTP/1.1',
        'Content-Length: x' ],
    'an unknown coding'          => [ 400, 'invalid_request',    'POST %s/assets HTTP/1.1',
        'Transfer-Encoding: x' ],
    'an unknown expectation'     => [ 417, 'invalid_request',    'POST %s/assets HTTP/1.1',
        'Expect: x', 'Content-Length: 0' ],
    'an access rule'             => [ 403, 'forbidden',          'GET %s/jobs HTTP/1.1' ],
);

# Sends the request below a path; returns the reply.
sub refusal_of
{
    my ($root, $line, @headers) = @_;
    return parse_reply(raw(join "\r\n", sprintf($line, $root), 'Host: localhost',
        'Connection: close', @headers, '', ''));
}

for my $name (sort keys %refusals) {
    my ($status, $code, @request) = @{ $refusals{$name} };
    my $reply = refusal_of('/api/v1', @request);
    is_error($reply, $status, $code, $name);
    is($reply->{headers}{'content-length'}, length $reply->{body}, '… of known length')
        if $status < 500;
    like($reply->{json}{error}{message}, qr/^The web server refused this request: [\w ,'-]+\.\z/,
        '… with a sentence');
    next if $name eq 'an access rule';
    my $other = refusal_of('/source', @request);
    unlike($other->{headers}{'content-type'} // '', qr/json/, '… and elsewhere as httpd has it');
}

is_error(refusal_of('/api/v1', 'TRACE %s/ping HTTP/1.1'), 405, 'method_not_allowed', 'TRACE');

my $no_host = parse_reply(raw("GET /api/v1/ping HTTP/1.1\r\nConnection: close\r\n\r\n"));
is_error($no_host, 400, 'invalid_request', 'no Host');
is(refusal_of('/api/v1', 'HEAD %s/assets%%2F1 HTTP/1.1')->{body}, '', 'HEAD has no body');
is_error(refusal_of('//api//v1', 'GET %s/assets%%2F1 HTTP/1.1'), 404, 'not_found',
    'with double slashes');
is_error(api('GET', '/nowhere'), 404, 'not_found', "the API's own refusal");
is(api('GET', '/ping')->{json}{error}{message},
    'A valid API key is required: Authorization: Bearer adk_live_…', '… keeps its message');

open my $curl, '-|', 'curl', '-s', '--http2', '--cacert', $server->certificate, '-i',
    'https://localhost:' . $server->tls_port . '/api/v1/assets%2F1' or die "curl: $!\n";
my $answer = do { local $/; <$curl> };
like($answer, qr{^HTTP/2 404.*^content-type: application/json.*"code":"not_found"}ms,
    'over HTTP/2, too');

$server->stop;
done_testing();
