-- The downloads of an assignment, in the order of their list.
DROP INDEX download_session_assignment;
CREATE INDEX download_session_assignment ON download_session (assignment_id, opened_at, id, generation);
