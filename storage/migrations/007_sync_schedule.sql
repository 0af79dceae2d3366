-- When a sync job is due, since when its source has been asked, what was refused, and how long a source wants quiet.

ALTER TABLE jobs ADD COLUMN next_attempt_at TIMESTAMP;      -- before this its source need not be asked; null: due
ALTER TABLE jobs ADD COLUMN asked_at TIMESTAMP;             -- the first request to the source; null: waits in our queue
ALTER TABLE jobs ADD COLUMN refusals TEXT;                  -- JSON: [{"name": file or account, "reason": sentence}]
ALTER TABLE connections ADD COLUMN source_retry_at TIMESTAMP;  -- before this the source itself wants no request
