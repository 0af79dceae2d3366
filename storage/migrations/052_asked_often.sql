-- What is asked each minute costs what there is to tell: monitors ask which jobs ended within an hour, and each process
-- whom a consent that ends soon is to be told of (storage/events/outbox.py).
-- needs 036

-- only postgresql
CREATE INDEX jobs_by_end ON jobs (updated_at) WHERE status IN ('completed', 'failed');
-- only postgresql
CREATE INDEX connections_by_notice ON connections ((CASE
    WHEN noticed_days IS NULL OR consent_expires_at > noticed_end + INTERVAL '1 day'
    THEN consent_expires_at - INTERVAL '14 days'
    WHEN noticed_days = 14 THEN consent_expires_at - INTERVAL '7 days'
    WHEN noticed_days = 7 THEN consent_expires_at - INTERVAL '1 day' END)) WHERE status IN ('ACTIVE', 'ERROR');
