-- What a user knows better: rules as text, and remembered corrections.

CREATE TABLE user_rules (
    user_id TEXT PRIMARY KEY,
    rules TEXT NOT NULL                 -- JSON lines, the format of docs/rules.md
);

CREATE TABLE corrections (
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,                  -- creditor id, else counterpart IBAN, else merchant
    category TEXT NOT NULL,
    PRIMARY KEY (user_id, key)
);
