-- Passkeys that sign in alone, without a password; those that were made beside codes stay that.
-- needs 059

ALTER TABLE passkeys ADD COLUMN is_alone BOOLEAN DEFAULT FALSE;
