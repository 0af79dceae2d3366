-- A giver may let their words come along: categories and notes of single bookings, which go with the share.
-- needs 059

ALTER TABLE oauth_shares ADD COLUMN with_words BOOLEAN DEFAULT FALSE;
ALTER TABLE oauth_shares ADD COLUMN words_told TEXT DEFAULT '';    -- digest of the words that the receiver has of it
ALTER TABLE annotations ADD COLUMN told_by TEXT;                   -- the share whose giver said this; null: the user did
