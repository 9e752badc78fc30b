-- For t/operate/upgrade*.t: a migration on which only its own release runs. queries.sed makes that
-- release's queries.
-- runs-with: 3
ALTER TABLE allowance RENAME COLUMN downloads_used TO downloads_counted;
