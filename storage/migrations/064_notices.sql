-- What people are told, each cause once: a cause is its kind, what it is about and its day, and never the ids of rows,
-- which change when a file is imported again.
-- needs 036

CREATE TABLE notices (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,              -- such as a mandate or a payee
    day DATE NOT NULL,
    stage TEXT NOT NULL,                -- another one of the same cause is told once more
    state TEXT NOT NULL,                -- open, read, snoozed, dismissed, over, withdrawn; known: never told
    interrupts BOOLEAN NOT NULL,
    content TEXT NOT NULL,              -- JSON: its sentence with arguments, and what it is about
    ends_on DATE,                       -- the last day on which it matters; null while that is not known
    snoozed_until DATE,
    untold TEXT NOT NULL,               -- the event that this commit tells of it, empty after it
    created_at TIMESTAMP NOT NULL,
    changed_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);

CREATE TABLE notice_looks (
    user_id TEXT PRIMARY KEY,
    life TEXT NOT NULL,                 -- the incarnation of the store in which it was: after a restore all is known
    accounts TEXT NOT NULL,             -- JSON: by account the last day of its bookings then
    ledgers TEXT,                       -- JSON: ids of the accounts of which it was looked whether they add up
    ledgers_on DATE,                    -- when it is due to look whether ledgers add up, which takes longest
    look_on DATE                        -- when the next look is due though nothing comes; null: with the next import
);
-- only postgresql
CREATE INDEX notice_looks_due ON notice_looks (least(look_on, ledgers_on)) WHERE least(look_on, ledgers_on) IS NOT NULL;
