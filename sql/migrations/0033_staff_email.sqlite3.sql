-- An email to the staff of a shop, as long as its job has not ended.
CREATE TABLE staff_email (
    job_id TEXT PRIMARY KEY,
    recipient TEXT NOT NULL,
    template TEXT NOT NULL,
    data TEXT NOT NULL -- what the template shows, a JSON object
);
