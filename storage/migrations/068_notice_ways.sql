-- How people want to be told: settings, addresses and what was sent there. Addresses are among the secrets of bank
-- connections, sealed like them.
-- needs 036

CREATE TABLE notice_settings (
    user_id TEXT PRIMARY KEY,
    content TEXT NOT NULL,              -- JSON: language, time zone, quiet hours, digest, kinds
    counted TEXT NOT NULL,              -- JSON: what was sent on a day of this person
    digest_at TIMESTAMP                 -- when the next digest is due; null for none
);
-- only postgresql
CREATE INDEX notice_settings_due ON notice_settings (digest_at) WHERE digest_at IS NOT NULL;

CREATE TABLE notice_targets (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    way TEXT NOT NULL,                  -- email, push, apprise
    scheme TEXT NOT NULL,               -- all that is shown of the address, with its last characters
    last TEXT NOT NULL,
    only_of TEXT NOT NULL,              -- what one target alone may have, such as a digest of its address; else empty
    name TEXT,
    whole_sentences BOOLEAN NOT NULL,
    state TEXT NOT NULL,                -- unconfirmed, working, paused, removed: until its last sentence was sent
    reason TEXT,                        -- why it is paused
    tries INTEGER NOT NULL,             -- codes entered in vain
    refusals INTEGER NOT NULL,          -- in a row
    refused_since TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);
-- only postgresql
CREATE INDEX notice_targets_by_owner ON notice_targets (only_of) WHERE only_of <> '';

CREATE TABLE notice_deliveries (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    what TEXT NOT NULL,                 -- notice, over, digest, test, code, removed
    kind TEXT,                          -- of the notice
    notice_id TEXT,
    content TEXT NOT NULL,              -- JSON: of a digest, its period
    state TEXT NOT NULL,                -- waiting, delivered, failed, dropped
    reason TEXT,
    due_at TIMESTAMP,                   -- when it is sent, or again if nobody says what came of it; null once it is not
    is_claimed BOOLEAN NOT NULL,        -- by a process that sends it
    attempts TEXT NOT NULL,             -- JSON
    made_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);
-- only postgresql
CREATE INDEX notice_deliveries_due ON notice_deliveries (due_at) WHERE due_at IS NOT NULL;
-- only postgresql
CREATE INDEX notice_deliveries_by_target ON notice_deliveries (user_id, target_id, made_at);
-- only postgresql
CREATE INDEX notice_deliveries_by_age ON notice_deliveries (made_at);
