-- What a person has decided about a recurring payment: that it is one, or that it is none.
-- needs 037

CREATE TABLE recurring_decisions (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,                   -- of the recurring payment when it was decided
    transaction_id TEXT NOT NULL,       -- its latest charge then, by which it is known under another id
    confirmation TEXT NOT NULL,         -- confirmed, dismissed
    decided_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);
