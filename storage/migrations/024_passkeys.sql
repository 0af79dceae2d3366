-- Passkeys as second step of signing in, beside the codes; and what a browser was told to sign with one.

CREATE TABLE passkeys (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,                   -- as the device calls it, base64url
    host TEXT NOT NULL,                 -- of the pages that it was made for; it signs for no other (RP ID)
    name TEXT NOT NULL,                 -- as the person calls it
    public_key TEXT NOT NULL,           -- COSE, base64url
    sign_count BIGINT NOT NULL,         -- as the device counted last; 0 for those that do not count
    made_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP,
    PRIMARY KEY (user_id, id)
);

ALTER TABLE oauth_sessions ADD COLUMN challenge TEXT;             -- what a passkey has to sign, once
ALTER TABLE oauth_sessions ADD COLUMN challenge_until TIMESTAMP;
