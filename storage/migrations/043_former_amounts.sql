-- What was booked and is no more, because the bank corrected it or took it back: its balances until then held it.
-- needs 036

CREATE TABLE former_amounts (
    user_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    booking_date DATE NOT NULL,
    amount DECIMAL(20, 5) NOT NULL,     -- negated where it is what was not there until then
    created_at TIMESTAMP NOT NULL,      -- when the booking came to be known
    ended_at TIMESTAMP NOT NULL         -- when it came to be known that this holds no longer
);
-- only postgresql
CREATE INDEX former_amounts_by_account ON former_amounts (user_id, account_id);
