-- What opens a bank connection, encrypted with a key that lies elsewhere, and the attempts to connect one.

CREATE TABLE connection_secrets (
    user_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    field TEXT NOT NULL,
    sealed TEXT NOT NULL,           -- key id, nonce and AES-256-GCM; bound to connection and field
    PRIMARY KEY (user_id, connection_id, field)
);

CREATE TABLE connection_attempts (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    connector TEXT NOT NULL,
    connection_id TEXT,             -- the one that is renewed; null: a new one
    browser_hash TEXT,              -- SHA-256 of the browser session that began it; null: a command did
    state_hash TEXT NOT NULL,       -- SHA-256 of the state that the browser has to come back with
    sealed TEXT NOT NULL,           -- the step, what was typed, what the source remembers; bound to the attempt
    version INTEGER NOT NULL,       -- raised by every step: of two answers at once one counts
    outcome TEXT,                   -- null: goes on; connected; a sentence: why it ended
    created_connection_id TEXT,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);
