-- Which account of ours each account of a live source is, whatever IBAN the source names for it later.

CREATE TABLE account_keys (
    user_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    stable_key TEXT NOT NULL,           -- the source's own
    currency TEXT NOT NULL,
    account_id TEXT NOT NULL,
    source_id TEXT NOT NULL,            -- as in account_aliases, when the account was first met
    PRIMARY KEY (user_id, connection_id, stable_key, currency)
);
