-- The finer category of a booking, below its category, and the rule that gave it; null where none is known.
-- needs 036

ALTER TABLE transactions ADD COLUMN detailed_category TEXT;
ALTER TABLE transactions ADD COLUMN detailed_rule TEXT;
ALTER TABLE pending_transactions ADD COLUMN detailed_category TEXT;
ALTER TABLE pending_transactions ADD COLUMN detailed_rule TEXT;
ALTER TABLE taken_back_transactions ADD COLUMN detailed_category TEXT;
ALTER TABLE taken_back_transactions ADD COLUMN detailed_rule TEXT;
ALTER TABLE earlier_transactions ADD COLUMN detailed_category TEXT;
ALTER TABLE earlier_transactions ADD COLUMN detailed_rule TEXT;
ALTER TABLE earlier_pending_transactions ADD COLUMN detailed_category TEXT;
ALTER TABLE earlier_pending_transactions ADD COLUMN detailed_rule TEXT;
