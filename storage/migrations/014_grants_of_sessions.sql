-- The page of this server holds its grant for as long as the browser is signed in, and no longer.

ALTER TABLE oauth_grants ADD COLUMN session_hash TEXT;
