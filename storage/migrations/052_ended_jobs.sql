-- Monitors ask again and again what ended within an hour, which shall not cost what all jobs cost that are kept.
-- needs 036

-- only postgresql
CREATE INDEX jobs_by_end ON jobs (updated_at) WHERE status IN ('completed', 'failed');
