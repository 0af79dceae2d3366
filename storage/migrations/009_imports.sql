-- Names and hiding of accounts, other sources of one account, and what every import told, so that it can be taken back.

ALTER TABLE accounts ADD COLUMN given_name TEXT;        -- the user's own, before the source's
ALTER TABLE accounts ADD COLUMN hidden_at TIMESTAMP;    -- kept, and neither served nor summed

ALTER TABLE jobs ADD COLUMN undone_at TIMESTAMP;

CREATE TABLE account_aliases (          -- merged or chosen: what this source brings belongs to another account
    user_id TEXT NOT NULL,
    source_id TEXT NOT NULL,            -- the id that the source's account would have by itself
    account_id TEXT NOT NULL,
    PRIMARY KEY (user_id, source_id)
);

CREATE TABLE tellings (                 -- what one batch of one import said of one account
    user_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,           -- order within the user
    job_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    source_id TEXT NOT NULL,            -- as in account_aliases
    batch_id TEXT NOT NULL,
    label TEXT,                         -- the file's name
    blocks TEXT NOT NULL,               -- JSON: account and statement of each block, and how many bookings it has
    told_at TIMESTAMP NOT NULL
);

CREATE TABLE told_bookings (            -- each wording of a booking once, however often it is told
    user_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    wording TEXT NOT NULL               -- JSON of a transaction record
);

CREATE TABLE sightings (                -- which bookings a telling told, in their order
    user_id TEXT NOT NULL,
    telling BIGINT NOT NULL,
    position INTEGER NOT NULL,
    booking BIGINT NOT NULL
);

-- What was stored before imports were remembered. A column that the originals gain, these gain too.
CREATE TABLE earlier_accounts AS SELECT * FROM accounts;
CREATE TABLE earlier_account_sources AS SELECT * FROM account_sources;
CREATE TABLE earlier_transactions AS SELECT * FROM transactions;
CREATE TABLE earlier_pending_transactions AS SELECT * FROM pending_transactions;
CREATE TABLE earlier_statements AS SELECT * FROM statements;
