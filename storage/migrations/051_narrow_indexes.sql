-- PostgreSQL keeps what many rows of an index share once, where nothing in it is unique. So indexes end before the ids of
-- bookings, and rows are not spread for updates in place: each update changes the state, which is indexed.
-- needs 036

-- only postgresql
CREATE INDEX transactions_by_date ON transactions (user_id, booking_date);
-- only postgresql
CREATE INDEX transactions_by_change ON transactions (user_id, changed_state);
-- only postgresql
CREATE INDEX journal_by_state ON journal (user_id, sequence, job_id);
-- only postgresql
CREATE INDEX contribution_bookings_by_contribution ON contribution_bookings (user_id, contribution);
-- only postgresql
DROP INDEX transactions_by_day;
-- only postgresql
DROP INDEX transactions_by_state;
-- only postgresql
ALTER TABLE journal REPLICA IDENTITY FULL;
-- only postgresql
ALTER TABLE journal DROP CONSTRAINT journal_pkey;
-- only postgresql
ALTER TABLE contribution_bookings REPLICA IDENTITY FULL;
-- only postgresql
ALTER TABLE contribution_bookings DROP CONSTRAINT contribution_bookings_pkey;
-- only postgresql
ALTER TABLE transactions SET (fillfactor = 100);
