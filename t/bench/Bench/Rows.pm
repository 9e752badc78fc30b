# SQL that makes many rows at once, for PostgreSQL and SQLite, and reads those of an answer.
package Bench::Rows;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(rows);

use constant NOW => 1_700_000_000_000_000;

# SQL that inserts rows for the numbers $from + 1 to $from + $count, called i in expressions.
sub rows
{
    my ($table, $from, $count, %columns) = @_;
    my @names = sort keys %columns;
    return sprintf "INSERT INTO %s (%s) WITH RECURSIVE n (i) AS (SELECT CAST(%d AS BIGINT) "
        . "UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT %s FROM n;\n", $table,
        join(', ', @names), $from + 1, $from + $count, join ', ', @columns{@names};
}

# Columns that most tables have.
sub made
{
    my ($shop) = @_;
    my $now = NOW;
    return (id => 'i', shop_id => $shop, created_at => "$now + i", updated_at => "$now + i");
}

# Orders with a customer, an assignment and an email each; the mappings take turns.
sub orders
{
    my ($shop, $from, $count, $mappings) = @_;
    my $now  = NOW;
    my %made = made($shop);
    return join '',
        rows('customer', $from, $count, %made, storefront_customer_id => "'' || i",
            email => "'customer-' || i || '\@example.com'", first_name => "'Ada'",
            last_name => "'Lovelace'"),
        rows('orders', $from, $count, %made, storefront_order_id => "'' || i", customer_id => 'i',
            page_id => "'" . 'A' x 13 . "' || (10000000 + i) || 'A'",
            access_status => "'active'", fraud_decision => "'not_checked'"),
        rows('assignment', $from, $count, id => 'i', shop_id => $shop, order_id => 'i',
            storefront_product_id => "'gid://bench/Product/' || (1 + i % $mappings)",
            storefront_variant_id => "''", quantity => 1, mapping_id => "1 + i % $mappings",
            content => "'live'", status => "'active'", created_at => "$now + i"),
        rows('order_timeline', $from, $count, id => 'i', order_id => 'i', action => "'assigned'",
            created_at => "$now + i"),
        rows('email', $from, $count, id => 'i', shop_id => $shop, order_id => 'i',
            recipient => "'customer-' || i || '\@example.com'", message_id => "'bench-' || i",
            status => "'sent'", attempts => 1, created_at => "$now + i", sent_at => "$now + i");
}

# Mappings of the products 1 to $count, each with the file of the same number.
sub mappings
{
    my ($shop, $count) = @_;
    return products($shop, 0, $count)
        . rows('mapping_file', 0, $count, mapping_id => 'i', asset_id => 'i', position => 0);
}

# Files with the bytes of the first one, and mappings of the products that have the numbers behind
# $from, which share them out.
sub catalog
{
    my ($shop, $from, $files, $mappings) = @_;
    my %made = made($shop);
    return rows('asset', $from, $files, %made, status => "'ready'",
        filename => "'file-' || i || '.bin'",
            title => "'File ' || i", content_type => "'application/octet-stream'", version => 1,
            sha256 => '(SELECT MIN(sha256) FROM blob)',
            size => '(SELECT size FROM blob ORDER BY sha256 LIMIT 1)')
        . products($shop, $from, $mappings)
        . rows('mapping_file', $from, $files, asset_id => 'i', position => 'i',
            mapping_id => sprintf('%d + (i - 1 - %d) / %d', $from + 1, $from, $files / $mappings));
}

# Mappings without files.
sub products
{
    my ($shop, $from, $count) = @_;
    return rows('mapping', $from, $count, made($shop),
        storefront_product_id => "'gid://bench/Product/' || i", variants_hash => "''",
        download_type => "'FILES'", download_limit => 0, is_active => 1, content => "'live'");
}

# Emails that are due now; the orders take turns.
sub email_jobs
{
    my ($shop, $from, $count, $orders) = @_;
    return rows('email', $from, $count, id => 'i', shop_id => $shop, order_id => "1 + i % $orders",
        recipient => "'customer-' || i || '\@example.com'",
        message_id => "'bench-' || i || '\@example.com'", status => "'queued'", attempts => 0,
        created_at => NOW)
        . jobs($shop, $from, $count, type => "'email'", lane => "'mail'", email_id => 'i');
}

sub job_id { my ($number) = @_; return 'job_0000000000000000' . (1_000_000_000 + $number) }

sub jobs
{
    my ($shop, $from, $count, %columns) = @_;
    return rows('job', $from, $count, id => "'job_0000000000000000' || (1000000000 + i)",
        shop_id => $shop, status => "'queued'", attempts => 0, max_attempts => 5,
        due_at => NOW . ' + i', lease_token => 0, bytes_received => 0, created_at => NOW, %columns);
}

# The ids that the service gives go on far behind those.
sub sequences
{
    my ($db, @tables) = @_;
    my $far = 1_000_000_000_000;
    return join '',
        map { $db eq 'pgsql' ? "SELECT setval(pg_get_serial_sequence('$_', 'id'), $far);\n"
        : "UPDATE sqlite_sequence SET seq = $far WHERE name = '$_';\n" } @tables;
}

# The statements of the bench-select handler: [ label, SQL ].
sub selects
{
    return (
        [ 'bench_order', <<'END' =~ s/\n/ /gr ],
SELECT o.storefront_order_id, o.access_status, o.created_at, c.storefront_customer_id, c.email,
    c.first_name, c.last_name, a.id, a.storefront_product_id, a.status, a.created_at,
    m.download_type, m.download_limit, f.asset_id, s.filename, b.size, b.sha256, e.status,
    e.sent_at, v.action, v.created_at
FROM orders o JOIN customer c ON c.id = o.customer_id JOIN assignment a ON a.order_id = o.id
JOIN mapping m ON m.id = a.mapping_id JOIN mapping_file f ON f.mapping_id = m.id
JOIN asset s ON s.id = f.asset_id JOIN blob b ON b.sha256 = s.sha256
JOIN email e ON e.order_id = o.id JOIN order_timeline v ON v.order_id = o.id
WHERE o.shop_id = %lld AND o.storefront_order_id = %s
END
        [ 'bench_answer', 'SELECT status, location, body FROM idempotency WHERE shop_id = %lld'
            . ' AND key_hi = %lld AND key_lo = %lld' ],
    );
}

1;
