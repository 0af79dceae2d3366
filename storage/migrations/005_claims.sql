-- Which ids of which sources a stored booking is known by, where that does not follow from its identity.

ALTER TABLE transactions ADD COLUMN claims TEXT;  -- JSON: source and id -> fingerprint of what the source told last
ALTER TABLE pending_transactions ADD COLUMN claims TEXT;
