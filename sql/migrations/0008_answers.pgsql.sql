-- Nothing to do: PostgreSQL keeps large answers apart from their rows.
SELECT 1;
