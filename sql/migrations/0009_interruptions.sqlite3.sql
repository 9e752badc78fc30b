-- How often in a row the background process died while it worked on a job.
ALTER TABLE job ADD COLUMN interruptions INTEGER NOT NULL DEFAULT 0;
