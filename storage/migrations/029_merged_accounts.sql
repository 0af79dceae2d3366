-- What an account was before it was merged into another, so that it can stand by itself again.
ALTER TABLE account_aliases ADD COLUMN merged_into TEXT;    -- at first; account_id is where its bookings are now
ALTER TABLE account_aliases ADD COLUMN given_name TEXT;
ALTER TABLE account_aliases ADD COLUMN hidden_at TIMESTAMP;
