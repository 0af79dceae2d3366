-- A role of one user reads no facts of the store: a look says by itself whether it was in another life of it. What is
-- due is found by one column. Nobody has looked before this version: what is found next counts as known.
-- needs 036

DROP TABLE notice_looks;

CREATE TABLE notice_looks (
    user_id TEXT PRIMARY KEY,
    is_past BOOLEAN NOT NULL,           -- in another life of the store: after a restore all is known
    accounts TEXT NOT NULL,             -- JSON: by account the last day of its bookings then
    ledgers TEXT,                       -- JSON: ids of the accounts of which it was looked whether they add up
    ledgers_on DATE,                    -- when it is due to look whether ledgers add up, which takes longest
    look_on DATE,                       -- when the next look is due though nothing comes; null: with the next import
    due_on DATE                         -- the earlier of both
);
-- only postgresql
CREATE INDEX notice_looks_due ON notice_looks (due_on) WHERE due_on IS NOT NULL;
