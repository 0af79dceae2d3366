-- What the sweep of the authorization server deletes is found by its moment.
-- needs 031

-- only postgresql
CREATE INDEX oauth_requests_by_end ON oauth_requests (expires_at);
-- only postgresql
CREATE INDEX oauth_codes_by_end ON oauth_codes (expires_at);
-- only postgresql
CREATE INDEX oauth_revoked_tokens_by_end ON oauth_revoked_tokens (expires_at);
-- only postgresql
CREATE INDEX oauth_refresh_tokens_by_end ON oauth_refresh_tokens (expires_at);
-- only postgresql
CREATE INDEX oauth_sessions_by_use ON oauth_sessions (seen_at);
-- only postgresql
CREATE INDEX oauth_sessions_of_strangers ON oauth_sessions (seen_at) WHERE user_id IS NULL;
-- only postgresql
CREATE INDEX oauth_sessions_by_birth ON oauth_sessions (created_at);
-- only postgresql
CREATE INDEX oauth_throttles_by_change ON oauth_throttles (updated_at);
-- only postgresql
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id, expires_at);
-- only postgresql
CREATE INDEX oauth_grants_revoked ON oauth_grants (client_id, revoked_at) WHERE revoked_at IS NOT NULL;
-- only postgresql
CREATE INDEX access_record_by_hour ON access_record (hour);
