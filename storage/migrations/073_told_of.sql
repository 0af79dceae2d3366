-- The account that a contribution was of before merges, so that a separation gives it back there.
-- needs 072

ALTER TABLE contributions ADD COLUMN told_of TEXT;     -- null: never merged, or told since
