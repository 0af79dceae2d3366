-- When the scheduler looks at a connection again, so that idle ones cost it nothing; found by an index where there are any.
-- needs 031

ALTER TABLE connections ADD COLUMN due_at TIMESTAMP DEFAULT TIMESTAMP '1970-01-01 00:00:00';

-- only postgresql
CREATE INDEX connections_due ON connections (due_at, user_id, id) WHERE status IN ('ACTIVE', 'ERROR');
-- only postgresql
CREATE INDEX connections_by_consent ON connections (consent_expires_at) WHERE status IN ('ACTIVE', 'ERROR');
-- only postgresql
CREATE INDEX connections_by_connector ON connections (connector);
