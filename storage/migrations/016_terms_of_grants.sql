-- What of a user's data a grant covers: some accounts, or all but some; bookings, or figures only; whole account numbers.
-- What was allowed before covers everything, account numbers aside, which only assistants are not shown whole.

ALTER TABLE oauth_grants ADD COLUMN accounts TEXT;          -- JSON list of account ids; null: everything is covered
ALTER TABLE oauth_grants ADD COLUMN all_but BOOLEAN;        -- the list is what is not covered
ALTER TABLE oauth_grants ADD COLUMN figures_only BOOLEAN;
ALTER TABLE oauth_grants ADD COLUMN full_numbers BOOLEAN;
