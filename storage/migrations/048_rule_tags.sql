-- Tags that rules give to bookings, apart from those of a person.
-- needs 036

CREATE TABLE rule_tags (
    user_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    tag TEXT NOT NULL,                  -- as tags are compared
    name TEXT NOT NULL,                 -- as the first rule that gives it has it
    PRIMARY KEY (user_id, transaction_id, tag)
);
