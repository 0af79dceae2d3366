-- What the first question about a user asks for, in one row that is written with each change (storage/changes/first_answers.py).
-- Older programs know nothing of it: they raise the state of the user's data alone, by which the row is past.
-- needs 036

-- only duckdb
CREATE TABLE first_answers (
    user_id TEXT PRIMARY KEY,
    state BIGINT NOT NULL,           -- of the user's data to which the row belongs
    form INTEGER NOT NULL,           -- in which the rest is written
    shown TEXT NOT NULL,             -- the ids of the accounts that are not hidden
    bookings_state BIGINT NOT NULL,  -- in which bookings last changed
    accounts BLOB NOT NULL,
    bookings BLOB NOT NULL
);
-- only postgresql
CREATE TABLE first_answers (
    user_id TEXT PRIMARY KEY,
    state BIGINT NOT NULL,
    form INTEGER NOT NULL,
    shown TEXT NOT NULL,
    bookings_state BIGINT NOT NULL,
    accounts BYTEA NOT NULL,
    bookings BYTEA NOT NULL
);
