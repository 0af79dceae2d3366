-- How far an account may go below zero: as its bank says, and as its user says, which wins.
-- needs 036

ALTER TABLE accounts ADD COLUMN credit_line DECIMAL(20, 5);
ALTER TABLE accounts ADD COLUMN given_credit_line DECIMAL(20, 5);          -- null: as the bank says
ALTER TABLE account_aliases ADD COLUMN given_credit_line DECIMAL(20, 5);   -- as for the other settings, for a separation
