-- An account whose bookings stand in another one too: hidden until its user has said whether the two are one.
ALTER TABLE accounts ADD COLUMN perhaps_same_as TEXT;
ALTER TABLE earlier_accounts ADD COLUMN perhaps_same_as TEXT;
ALTER TABLE account_aliases ADD COLUMN perhaps_same_as TEXT;
