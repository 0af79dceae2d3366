-- Recurring payments are looked up by one key: a key of two columns is no index that DuckDB would use. What was stored
-- is computed anew when it is asked for, as it is every day.

DROP TABLE detections;

CREATE TABLE detections (
    id TEXT PRIMARY KEY,                -- the user's id, a colon, and the hash of the sorted account ids
    user_id TEXT NOT NULL,
    data_version BIGINT NOT NULL,
    day DATE NOT NULL,
    found TEXT NOT NULL                 -- JSON: one object per stream, analytics.frames.SUBSCRIPTIONS
);
