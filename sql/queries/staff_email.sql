-- name: staff_email_insert
INSERT INTO staff_email (job_id, recipient, template, data) VALUES (%s, %s, %s, %s)

-- name: staff_email_of_job
SELECT recipient, template, data FROM staff_email WHERE job_id = %s

-- name: staff_email_delete
DELETE FROM staff_email WHERE job_id = %s
