-- Which count the numbers of events are of: after a backup was restored they are given again.
CREATE TABLE event_feed (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL
);
INSERT INTO event_feed (id, name) VALUES (1, 'feed_' || replace(gen_random_uuid()::text, '-', ''));
