-- The query of a source's URL may be a credential: what is imported needs it no more.
UPDATE asset SET source_url = substr(source_url, 1, strpos(source_url, '?')) || '***' WHERE strpos(source_url, '?') > 0;
UPDATE job SET source_url = substr(source_url, 1, strpos(source_url, '?')) || '***'
WHERE strpos(source_url, '?') > 0 AND status = 'succeeded';
