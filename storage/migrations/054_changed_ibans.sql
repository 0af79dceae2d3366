-- A bank gives an account another IBAN: what comes under either is one account, which shows the newer one. A transfer
-- between own accounts may lose a fee on its way.
-- needs 036

ALTER TABLE accounts ADD COLUMN former_ibans TEXT;          -- with a blank between them
ALTER TABLE earlier_accounts ADD COLUMN former_ibans TEXT;
ALTER TABLE account_aliases ADD COLUMN iban TEXT;           -- which the source showed when it was merged
ALTER TABLE account_aliases ADD COLUMN iban_rank INTEGER;   -- above 0: newer than the account's own

ALTER TABLE transactions ADD COLUMN transfer_fee DECIMAL(20, 5);  -- of the leaving leg, positive
ALTER TABLE pending_transactions ADD COLUMN transfer_fee DECIMAL(20, 5);
ALTER TABLE earlier_transactions ADD COLUMN transfer_fee DECIMAL(20, 5);
ALTER TABLE earlier_pending_transactions ADD COLUMN transfer_fee DECIMAL(20, 5);
ALTER TABLE taken_back_transactions ADD COLUMN transfer_fee DECIMAL(20, 5);
