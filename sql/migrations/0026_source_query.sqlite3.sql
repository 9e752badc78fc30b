-- The query of a source's URL may be a credential: what is imported needs it no more.
UPDATE asset SET source_url = substr(source_url, 1, instr(source_url, '?')) || '***' WHERE instr(source_url, '?') > 0;
UPDATE job SET source_url = substr(source_url, 1, instr(source_url, '?')) || '***'
WHERE instr(source_url, '?') > 0 AND status = 'succeeded';
