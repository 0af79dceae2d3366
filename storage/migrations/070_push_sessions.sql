-- A browser to which notices are pushed belongs to a session there: signing out ends both.
-- needs 036

ALTER TABLE notice_targets ADD COLUMN session_hash TEXT;  -- of a browser; null for other ways
