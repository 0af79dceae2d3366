-- Recurring payments as computed once per selection, state of the data and day; never read for another of the three.

CREATE TABLE detections (
    user_id TEXT NOT NULL,
    selection TEXT NOT NULL,            -- hash of the sorted account ids
    data_version BIGINT NOT NULL,
    day DATE NOT NULL,
    found TEXT NOT NULL,                -- JSON: one object per stream, analytics.frames.SUBSCRIPTIONS
    PRIMARY KEY (user_id, selection)
);
