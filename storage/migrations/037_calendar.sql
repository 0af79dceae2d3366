-- The address at which a user's calendar of recurring payments is read: the hash of its secret, one for each user.
-- needs 036

CREATE TABLE calendar_links (
    user_id TEXT PRIMARY KEY,
    secret_hash TEXT NOT NULL,
    made_at TIMESTAMP NOT NULL
);
-- only postgresql
CREATE INDEX calendar_links_by_secret ON calendar_links (secret_hash);
