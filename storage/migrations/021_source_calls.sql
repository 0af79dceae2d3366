-- When sources that count were asked, and which moment of the plan a connection has kept last.

CREATE TABLE source_calls (             -- syncs of the last 24 hours, one row each
    user_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    called_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, job_id)
);

ALTER TABLE connections ADD COLUMN planned_at TIMESTAMP;
