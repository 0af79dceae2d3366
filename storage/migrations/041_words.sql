-- What a person says of single bookings: category, note and tags, beside what the booking was known by.
-- needs 036

CREATE TABLE annotations (
    user_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,       -- of a row that may be gone: then the words sleep until it comes back
    category TEXT,
    detailed_category TEXT,             -- below that category
    note TEXT,
    changed_at TIMESTAMP NOT NULL,
    account_id TEXT NOT NULL,           -- from here on: what the booking is found by under another id
    booking_date DATE NOT NULL,
    amount DECIMAL(20, 5) NOT NULL,
    currency TEXT NOT NULL,
    counterpart TEXT NOT NULL,          -- IBAN and name as they are compared, parted by a line end
    place INTEGER NOT NULL,             -- which one it was of equal ones, counted from 1
    equal_ones INTEGER NOT NULL,
    PRIMARY KEY (user_id, transaction_id)
);

CREATE TABLE annotation_tags (
    user_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    tag TEXT NOT NULL,                  -- as tags are compared
    name TEXT NOT NULL,                 -- as it was written
    tagged_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, transaction_id, tag)
);
