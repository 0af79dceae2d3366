-- Signing in at the household's own provider: who is who there, and sign-ins that are under way.
-- needs 059

CREATE TABLE oauth_identities (
    id_hash TEXT PRIMARY KEY,           -- of issuer and subject
    user_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    shown TEXT NOT NULL,                -- the name there, to be shown
    linked_at TIMESTAMP NOT NULL
);

CREATE TABLE oauth_errands (
    secret_hash TEXT PRIMARY KEY,       -- of the state, or of a form that follows; of the id of a notice that somebody signed out
    session_hash TEXT NOT NULL,         -- of the browser; empty for a notice
    purpose TEXT NOT NULL,              -- what it is for
    user_id TEXT,                       -- who asked for it, if somebody had signed in
    goes_on TEXT NOT NULL,              -- the authorization request or page of ours that waits
    link_hash TEXT,                     -- of the invitation by which somebody comes in
    told TEXT,                          -- JSON, what the provider has said, while the person is asked
    expires_at TIMESTAMP NOT NULL
);

ALTER TABLE oauth_sessions ADD COLUMN identity_hash TEXT;        -- by which identity its user signed in
ALTER TABLE oauth_sessions ADD COLUMN provider_session TEXT;     -- hash of the session there
ALTER TABLE oauth_sessions ADD COLUMN proven_at TIMESTAMP;       -- when the person last showed who they are; null: at its start
