-- Amounts to compare with what was spent at a place, each from a month on until another one holds there.
-- needs 036

CREATE TABLE targets (
    user_id TEXT NOT NULL,
    place TEXT NOT NULL,                -- code of a category or a finer one, or id of an own one
    first_month DATE NOT NULL,          -- its first day
    amount DECIMAL(20, 5) NOT NULL,     -- zero: none holds from here on
    currency TEXT NOT NULL,             -- of the user's figures when it was set
    period TEXT NOT NULL,               -- month, year
    PRIMARY KEY (user_id, place, first_month)
);
