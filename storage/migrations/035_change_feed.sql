-- What changed since a state, for clients that keep copies: states on the rows, what is gone, what accounts showed.
-- One counter for all of it: users.state; data_version is the state in which the figures changed last.
-- needs 035

ALTER TABLE transactions ADD COLUMN added_state BIGINT DEFAULT 0;
ALTER TABLE transactions ADD COLUMN changed_state BIGINT DEFAULT 0;

CREATE TABLE account_states (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    bank_account TEXT NOT NULL,         -- what each of its transactions showed of the account
    account TEXT NOT NULL,              -- what it showed besides
    added_state BIGINT NOT NULL,
    changed_state BIGINT NOT NULL,
    removed_state BIGINT,               -- null while it is shown
    PRIMARY KEY (user_id, id)
);

CREATE TABLE removed (                  -- transactions that no list shows any more
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    removed_state BIGINT NOT NULL
);

INSERT INTO account_states (user_id, id, bank_account, account, added_state, changed_state)
SELECT a.user_id, a.id,
    concat_ws(chr(31), coalesce('=' || a.iban, '-'), coalesce('=' || coalesce(a.given_name, a.name), '-'), a.bank_name,
        a.stable_key),
    concat_ws(chr(31), coalesce(a.kind, ''), coalesce(a.balance::TEXT, ''), coalesce(a.last_synced_at::TEXT, ''),
        c.status),
    0, 0
FROM accounts AS a JOIN connections AS c ON c.user_id = a.user_id AND c.id = a.connection_id
WHERE a.hidden_at IS NULL;

UPDATE users SET state = greatest(state, data_version, journal_sequence);
ALTER TABLE users DROP COLUMN journal_sequence;

-- only postgresql
ALTER TABLE removed ADD PRIMARY KEY (user_id, id);
-- only postgresql
CREATE INDEX removed_by_state ON removed (user_id, removed_state, id);
-- only postgresql
CREATE INDEX transactions_by_state ON transactions (user_id, changed_state, id);
-- only postgresql
ALTER TABLE journal DROP CONSTRAINT journal_pkey, ADD PRIMARY KEY (user_id, sequence, job_id, transaction_id);
