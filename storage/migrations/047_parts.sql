-- What of a booking went where: parts that add up to it, and their tags.
-- needs 036

CREATE TABLE annotation_splits (
    user_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    amount DECIMAL(20, 5) NOT NULL,     -- of the booking's sign
    category TEXT NOT NULL,
    detailed_category TEXT,             -- below that category
    note TEXT,
    PRIMARY KEY (user_id, transaction_id, position)
);

CREATE TABLE annotation_split_tags (
    user_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    tag TEXT NOT NULL,                  -- as tags are compared
    name TEXT NOT NULL,                 -- as it was written
    tagged_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, transaction_id, position, tag)
);
