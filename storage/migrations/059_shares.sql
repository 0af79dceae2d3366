-- Shares: accounts that one person lets another one see, in that one's own ledger.
-- needs 059

CREATE TABLE oauth_shares (
    id TEXT PRIMARY KEY,
    giver_id TEXT NOT NULL,
    giver_name TEXT NOT NULL,
    receiver_id TEXT,                   -- whom the name meant when it was offered; null for nobody
    receiver_key TEXT NOT NULL,         -- the name as names are compared
    receiver_name TEXT NOT NULL,        -- as the giver typed it
    accounts TEXT,                      -- JSON, ids of the giver's accounts; null: all
    all_but BOOLEAN NOT NULL,           -- the list is what is not shared
    offered_at TIMESTAMP NOT NULL,
    open_until TIMESTAMP NOT NULL,      -- to be accepted by then
    accepted_at TIMESTAMP,
    ends_at TIMESTAMP,                  -- null: until somebody ends it
    ended_at TIMESTAMP,
    life TEXT NOT NULL,                 -- the incarnation of the store for which the giver has said that it goes on
    seen TEXT NOT NULL,                 -- the states of both people in which nothing was left to hand over
    held TEXT NOT NULL                  -- JSON, ids of the receiver's accounts that no app of theirs may see
);
