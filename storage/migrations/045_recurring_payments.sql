-- What users have been told of their recurring payments, so that what is new of them is told once; and those that they
-- have added by hand.
-- needs 039

CREATE TABLE recurring_told (
    user_id TEXT PRIMARY KEY,
    data_version BIGINT NOT NULL,       -- of what was looked at last, and the day
    day DATE NOT NULL,
    look_at DATE,                       -- the next day on which something may be to tell though nothing comes
    accounts TEXT NOT NULL,             -- JSON: ids of those that had bookings then
    payments TEXT NOT NULL,             -- JSON: each payment as it was told
    untold TEXT NOT NULL                -- JSON: events that this commit tells, empty after it
);

CREATE TABLE recurring_added (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,                 -- as the person calls it, and as its bookings contain it
    amount DECIMAL(20, 5) NOT NULL,     -- positive, in the currency of the account
    direction TEXT NOT NULL,            -- outgoing, incoming
    frequency TEXT NOT NULL,
    next_day DATE NOT NULL,             -- the first day on which it is due
    PRIMARY KEY (user_id, id)
);
-- only postgresql
CREATE INDEX recurring_told_by_look ON recurring_told (look_at) WHERE look_at IS NOT NULL;
