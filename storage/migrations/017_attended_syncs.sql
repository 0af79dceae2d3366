-- Syncs for which the user was present, and what their sources were told of it.

ALTER TABLE jobs ADD COLUMN attended TEXT;  -- JSON of connectors.connector.Person; null: nobody was, or the job has ended
