-- Codes from an app as second step of signing in, with codes to write down for when it is lost; and what people see of
-- the browsers they are signed in with.

CREATE TABLE second_factors (
    user_id TEXT PRIMARY KEY,
    sealed_seed TEXT NOT NULL,          -- AES-GCM under a key made of oauth-keys.json
    made_at TIMESTAMP NOT NULL,
    confirmed_at TIMESTAMP,             -- when a first code proved that the app has the seed; null: not asked for yet
    last_step BIGINT NOT NULL           -- of the last code that was used: no earlier one counts, nor this one again
);

CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL,
    code_hash TEXT NOT NULL,            -- SHA-256 of 120 random bits
    used_at TIMESTAMP,
    PRIMARY KEY (user_id, code_hash)
);

ALTER TABLE oauth_sessions ADD COLUMN agent TEXT;             -- such as Firefox, Linux
ALTER TABLE oauth_sessions ADD COLUMN awaits_user_id TEXT;    -- who showed the password, and has to show the second factor
ALTER TABLE oauth_sessions ADD COLUMN awaits_until TIMESTAMP;
