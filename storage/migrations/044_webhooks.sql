-- Addresses at which apps want to be told what happens, and what has to be told there. Their secrets are among those of
-- bank connections, sealed like them.
-- needs 036

CREATE TABLE webhooks (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    grant_id TEXT NOT NULL,             -- with which it ends
    client_id TEXT NOT NULL,
    scopes TEXT NOT NULL,               -- of the token that made it
    url TEXT NOT NULL,
    event_types TEXT,                   -- JSON; null for all
    description TEXT,
    disabled_reason TEXT,               -- null while it is enabled
    failing_since TIMESTAMP,            -- null after a success
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);

CREATE TABLE webhook_deliveries (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    type TEXT NOT NULL,
    sequence BIGINT,                    -- of the event; null of one that is about a webhook
    event_id TEXT,                      -- of such a one, and what it says
    data TEXT,
    state TEXT NOT NULL,                -- pending, delivered, failed
    due_at TIMESTAMP,                   -- when it is sent, or again if nobody says what came of it; null once it is not
    is_claimed BOOLEAN NOT NULL,        -- by a process that sends it
    attempts TEXT NOT NULL,             -- JSON
    made_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);
-- only postgresql
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE due_at IS NOT NULL;
-- only postgresql
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (user_id, webhook_id, made_at);
-- only postgresql
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (made_at);
