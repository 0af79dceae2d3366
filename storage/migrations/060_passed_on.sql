-- A giver may let the receiver's apps see what is shared.
-- needs 059

ALTER TABLE oauth_shares ADD COLUMN pass_on BOOLEAN DEFAULT FALSE;
