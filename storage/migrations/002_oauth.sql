-- What the authorization server remembers. Secrets (codes, refresh tokens, session and request ids) are kept as
-- SHA-256 only. Primary keys alone: expired rows are swept, so that the few scans stay short (docs/security.md).

CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,        -- JSON list, byte for byte as registered
    metadata TEXT NOT NULL,             -- JSON, the optional members of RFC 7591 that were given
    registered_by TEXT NOT NULL,        -- self, operator, builtin
    address_hash TEXT,                  -- who registered, for the hourly limit, keyed hash of the network address
    created_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP                   -- first time a user allowed it
);

CREATE TABLE oauth_requests (           -- authorization requests on their way through sign-in and consent
    id_hash TEXT PRIMARY KEY,
    session_hash TEXT NOT NULL,
    client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    scope TEXT NOT NULL,
    state TEXT,
    code_challenge TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP
);

CREATE TABLE oauth_codes (
    code_hash TEXT PRIMARY KEY,
    grant_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP
);

CREATE TABLE oauth_grants (             -- one allowed connection of one app, the family of its tokens
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,      -- the absolute cap, whatever is refreshed
    redeemed_at TIMESTAMP,              -- when the app fetched its first tokens
    revoked_at TIMESTAMP,
    revoked_because TEXT
);

CREATE TABLE oauth_refresh_tokens (
    token_hash TEXT PRIMARY KEY,
    grant_id TEXT NOT NULL,
    issued_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP
);

CREATE TABLE oauth_revoked_tokens (     -- single access tokens, until they expire anyway
    token_id TEXT PRIMARY KEY,
    expires_at TIMESTAMP NOT NULL
);

CREATE TABLE oauth_sessions (           -- browsers; user_id is null before sign-in
    id_hash TEXT PRIMARY KEY,
    user_id TEXT,
    created_at TIMESTAMP NOT NULL,
    seen_at TIMESTAMP NOT NULL
);

CREATE TABLE oauth_throttles (          -- failed sign-ins, by keyed hash of account, address or known browser
    subject_hash TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    blocked_until TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
