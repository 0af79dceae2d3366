-- Corrections of some bookings at once, with what each of them had before: for 90 days they can be taken back.
-- needs 036

CREATE TABLE correction_batches (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    category TEXT NOT NULL,
    detailed_category TEXT,
    before TEXT NOT NULL,               -- JSON: category and detailed category that had been chosen, by id of the booking
    made_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);
