-- A role of one user reads no facts of the store: a look says by itself whether it was in another life of it, and `life`
-- is no longer read. What is due is found by one column.
-- needs 036

ALTER TABLE notice_looks ADD COLUMN is_past BOOLEAN DEFAULT FALSE;  -- after a restore all is known
ALTER TABLE notice_looks ADD COLUMN due_on DATE;                    -- the earlier of ledgers_on and look_on
-- only postgresql
DROP INDEX notice_looks_due;
-- only postgresql
CREATE INDEX notice_looks_by_day ON notice_looks (due_on) WHERE due_on IS NOT NULL;
