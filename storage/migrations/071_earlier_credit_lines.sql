-- The accounts of before imports were remembered have all columns of accounts.
-- needs 036

ALTER TABLE earlier_accounts ADD COLUMN credit_line DECIMAL(20, 5);
ALTER TABLE earlier_accounts ADD COLUMN given_credit_line DECIMAL(20, 5);
