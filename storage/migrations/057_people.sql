-- Who may come in: the operator's mark, pauses, and links that work once; of their secrets only hashes are kept.
-- needs 057

ALTER TABLE users ADD COLUMN is_operator BOOLEAN DEFAULT FALSE;
ALTER TABLE users ADD COLUMN paused_at TIMESTAMP;                 -- since when nobody may sign in as this user

CREATE TABLE oauth_links (
    secret_hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL,                 -- first, invitation, password
    user_id TEXT,                       -- whose password it sets; null for others
    made_by TEXT,                       -- the operator's user id; null if made by command or at a start
    made_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP,
    ended_at TIMESTAMP,                 -- revoked, or tried with too many names that were taken
    taken_names BIGINT NOT NULL,        -- that were tried with it
    told_at TIMESTAMP                   -- when its user was told that a password was set by it
);
