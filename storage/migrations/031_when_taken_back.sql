-- When a booking that its bank has taken back left the ledger; of those of before nobody knows.
ALTER TABLE taken_back_transactions ADD COLUMN taken_back_at TIMESTAMP;
