-- Apps that read by SimpleFIN: the setup token of a grant, and the password that it was exchanged for; hashes of both.
-- needs 036

CREATE TABLE simplefin_access (
    grant_id TEXT PRIMARY KEY,
    code_hash TEXT NOT NULL,            -- of the code in the setup token
    code_expires_at TIMESTAMP NOT NULL, -- by when it has to be exchanged
    user_part TEXT,                     -- of the address that the app asks; null until the token was exchanged
    password_hash TEXT,
    claimed_at TIMESTAMP,
    claimed_by TEXT,                    -- what the program that exchanged it calls itself
    tried_again_at TIMESTAMP            -- when somebody last sent the token once more
);
-- only postgresql
CREATE INDEX simplefin_access_by_code ON simplefin_access (code_hash);
-- only postgresql
CREATE INDEX simplefin_access_by_user_part ON simplefin_access (user_part);
-- only postgresql
CREATE INDEX oauth_grants_of_simplefin ON oauth_grants (id) WHERE resource = 'simplefin';
