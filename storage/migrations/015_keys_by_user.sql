-- Names of users, leases of jobs, and what several processes share. Keys of users' tables begin with the user.

CREATE TABLE user_names (                -- one row has the name, and two users cannot have it
    name_key TEXT NOT NULL,             -- as names are compared: storage.users.compared_name
    position INTEGER NOT NULL,          -- 0, but for users of older stores who differ by one letter
    user_id TEXT NOT NULL,
    PRIMARY KEY (name_key, position)
);

CREATE TABLE job_leases (               -- who advances a job now
    user_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    holder TEXT NOT NULL,               -- one process
    until TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, job_id)
);

CREATE TABLE documents (                -- files of the data folder that all processes have to read alike
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL,
    changed_at TIMESTAMP NOT NULL
);

-- only postgresql
ALTER TABLE connections DROP CONSTRAINT connections_pkey, ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE accounts DROP CONSTRAINT accounts_pkey, ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE account_sources DROP CONSTRAINT account_sources_pkey, ADD PRIMARY KEY (user_id, account_id, connection_id);
-- only postgresql
ALTER TABLE jobs DROP CONSTRAINT jobs_pkey, ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE detections DROP CONSTRAINT detections_pkey, ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE transactions ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE transactions SET (fillfactor = 90);
-- only postgresql
CREATE INDEX transactions_by_day ON transactions (user_id, booking_date DESC, id DESC);
-- only postgresql
ALTER TABLE pending_transactions ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE journal ADD PRIMARY KEY (user_id, sequence);
-- only postgresql
ALTER TABLE contributions ADD PRIMARY KEY (user_id, sequence);
-- only postgresql
ALTER TABLE booking_wordings ADD PRIMARY KEY (user_id, number);
-- only postgresql
CREATE INDEX booking_wordings_by_digest ON booking_wordings (user_id, digest);
-- only postgresql
ALTER TABLE contribution_bookings ADD PRIMARY KEY (user_id, contribution, position);
-- only postgresql
ALTER TABLE earlier_accounts ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE earlier_account_sources ADD PRIMARY KEY (user_id, account_id, connection_id);
-- only postgresql
ALTER TABLE earlier_transactions ADD PRIMARY KEY (user_id, id);
-- only postgresql
ALTER TABLE earlier_pending_transactions ADD PRIMARY KEY (user_id, id);
-- only postgresql
CREATE INDEX statements_by_account ON statements (user_id, account_id);
-- only postgresql
CREATE INDEX earlier_statements_by_account ON earlier_statements (user_id, account_id);
-- only postgresql
CREATE INDEX jobs_unfinished ON jobs (created_at) WHERE status IN ('pending', 'syncing', 'importing');
-- only postgresql
CREATE INDEX oauth_refresh_tokens_by_grant ON oauth_refresh_tokens (grant_id);
-- only postgresql
CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);
-- only postgresql
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
-- only postgresql
CREATE INDEX oauth_sessions_by_user ON oauth_sessions (user_id);
