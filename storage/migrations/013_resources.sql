-- For which of the two resources an app asks and holds a grant: data, the data interface, or mcp, the one for assistants.
-- What was allowed before was for the data interface.

ALTER TABLE oauth_requests ADD COLUMN resource TEXT;
ALTER TABLE oauth_grants ADD COLUMN resource TEXT;
