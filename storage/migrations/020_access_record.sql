-- The record: which app read what of whom, by hour, and what was done to the account itself. Sums: no search words, no amounts.

CREATE TABLE access_record (
    user_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,             -- '' for what the person did, such as signing in
    operation TEXT NOT NULL,            -- an operationId, the name of a tool, or one of auth/record.py
    hour TIMESTAMP NOT NULL,            -- when it begins
    client_id TEXT NOT NULL,            -- '' as above
    client_name TEXT NOT NULL,          -- as it was then: the app may be forgotten before this is
    calls BIGINT NOT NULL,
    refusals BIGINT NOT NULL,           -- calls that were answered with an error
    last_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, grant_id, client_id, operation, hour)
);
