-- What happened to a user's data, for clients that listen: told once, by the commit that it belongs to.
-- needs 036

CREATE TABLE events (
    user_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,           -- state of the data after it, and its place among those of one commit
    type TEXT NOT NULL,
    subject TEXT NOT NULL,              -- id of the account or connection that it is about, empty where of several
    data TEXT NOT NULL,                 -- JSON
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, sequence)
);

CREATE TABLE balance_alerts (
    user_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    amount DECIMAL(20, 5) NOT NULL,     -- below it the balance is low
    is_low BOOLEAN NOT NULL,            -- and has been told so
    PRIMARY KEY (user_id, account_id)
);

ALTER TABLE jobs ADD COLUMN is_told BOOLEAN;    -- whether its end was; null of jobs from before
ALTER TABLE connections ADD COLUMN told_status TEXT;
ALTER TABLE connections ADD COLUMN noticed_days INTEGER;    -- of the last notice that its consent ends
ALTER TABLE connections ADD COLUMN noticed_end TIMESTAMP;   -- of the consent that it was about
-- only postgresql
CREATE INDEX events_by_age ON events (recorded_at);
-- only postgresql
CREATE INDEX jobs_untold ON jobs (user_id) WHERE NOT is_told;
