-- Bookings that a bank has taken back, with the columns of `transactions`; and what was remembered of files that come
-- again, which are read again now.
CREATE TABLE taken_back_transactions AS SELECT * FROM pending_transactions WHERE FALSE;
ALTER TABLE taken_back_transactions ADD PRIMARY KEY (user_id, id);
DROP TABLE known_files;
