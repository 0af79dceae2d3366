-- Users, bank connections, accounts, transactions, sync jobs and the journal of what each import changed.
-- One text for DuckDB and PostgreSQL: TEXT, TIMESTAMP in UTC, DECIMAL; big tables have no index (docs/decisions).

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    password_hash TEXT,
    has_subscription BOOLEAN NOT NULL,
    home_currency TEXT NOT NULL,
    data_version BIGINT NOT NULL,       -- raised by each import; caches and stored results carry it
    journal_sequence BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE connections (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    connector TEXT NOT NULL,
    bank_name TEXT NOT NULL,
    status TEXT NOT NULL,
    settings TEXT NOT NULL,             -- JSON, read by the connector only
    cursor TEXT,                        -- JSON, where the next fetch goes on
    consent_expires_at TIMESTAMP,
    failures_in_row INTEGER NOT NULL,
    running_job_id TEXT,                -- the one job of this connection that is not final
    next_sync_at TIMESTAMP,             -- before this a sync is skipped
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,        -- the connection that brought it first
    stable_key TEXT NOT NULL,
    iban TEXT,
    name TEXT,
    kind TEXT,
    currency TEXT NOT NULL,
    bic TEXT,
    bank_name TEXT NOT NULL,
    balance DECIMAL(20, 5),
    balance_date DATE,
    position INTEGER NOT NULL,          -- order of first appearance within the user
    last_synced_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE account_sources (          -- every connection that brings an account (by file and by API: two)
    user_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    PRIMARY KEY (account_id, connection_id)
);

CREATE TABLE transactions (             -- sorted by user_id, booking_date descending, id; no index
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    booking_date DATE NOT NULL,
    value_date DATE,
    amount DECIMAL(20, 5) NOT NULL,
    currency TEXT NOT NULL,
    merchant_name TEXT,
    counterpart_name TEXT,
    counterpart_iban TEXT,
    counterpart_bic TEXT,
    counterpart_bank_name TEXT,
    creditor_id TEXT,
    debitor_id TEXT,
    mandate_reference TEXT,
    type TEXT,
    category TEXT,
    purpose TEXT,
    bank_transaction_code TEXT,
    purpose_code TEXT,
    is_potential_duplicate BOOLEAN NOT NULL,
    is_adjusting_entry BOOLEAN NOT NULL,
    created_at TIMESTAMP NOT NULL,
    search_text TEXT NOT NULL,          -- merchant, counterpart and purpose, folded, one line each
    transfer_account_id TEXT,           -- the own account on the other side
    transfer_id TEXT,                   -- the paired leg's id, null while it has not arrived
    type_rule TEXT,
    category_rule TEXT,
    merchant_rule TEXT,
    transfer_rule TEXT,
    identity TEXT NOT NULL,             -- what the id was made of: provider id, reference or fingerprint#ordinal
    fingerprint TEXT NOT NULL,          -- of the content, for counted merges
    reference_keys TEXT NOT NULL,       -- JSON list of every weaker key the source gave
    end_to_end_id TEXT,
    gvc TEXT,
    swift_code TEXT,
    mcc TEXT,
    bank_text TEXT,
    source_merchant_name TEXT,
    original_amount DECIMAL(20, 5),
    original_currency TEXT,
    is_reversal BOOLEAN NOT NULL,
    is_return BOOLEAN NOT NULL,
    connection_id TEXT NOT NULL,
    batch_id TEXT NOT NULL
);

CREATE TABLE pending_transactions AS SELECT * FROM transactions;  -- the same columns; kept, not served

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    status TEXT NOT NULL,
    handle TEXT,                        -- JSON of the connector
    new_transactions INTEGER,
    error TEXT,
    leased_until TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE journal (
    user_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    transaction_id TEXT NOT NULL,
    change TEXT NOT NULL,               -- added, modified, removed
    job_id TEXT NOT NULL,
    recorded_at TIMESTAMP NOT NULL
);

CREATE TABLE statements (               -- what files and banks said of an account as a whole
    user_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    batch_id TEXT NOT NULL,
    position INTEGER NOT NULL,          -- of the statement within its batch
    sequence TEXT,
    opening DECIMAL(20, 5),
    opening_date DATE,
    closing DECIMAL(20, 5),
    closing_date DATE,
    is_authoritative BOOLEAN NOT NULL,
    connection_id TEXT NOT NULL,
    received_at TIMESTAMP NOT NULL
);

CREATE TABLE settings (                 -- what the store remembers of itself: the demo clock's offset, for one
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
