-- Recurring payments are found for data, not for a day: what was found holds up to `last_day`, before which no booking
-- comes due that lies in the future yet; and they are part of a user's first answers (storage/changes/first_answers.py).
-- needs 058

ALTER TABLE detections ADD COLUMN last_day DATE;  -- null: an older program's, which is not read
-- only duckdb
ALTER TABLE first_answers ADD COLUMN recurring BLOB;
-- only postgresql
ALTER TABLE first_answers ADD COLUMN recurring BYTEA;
