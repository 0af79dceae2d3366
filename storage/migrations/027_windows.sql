-- Which days a live source has told, and whether a statement contradicts itself: what a ledger is proven by.

ALTER TABLE statements ADD COLUMN told_from DATE;
ALTER TABLE statements ADD COLUMN told_until DATE;
ALTER TABLE statements ADD COLUMN adds_up BOOLEAN;
ALTER TABLE earlier_statements ADD COLUMN told_from DATE;
ALTER TABLE earlier_statements ADD COLUMN told_until DATE;
ALTER TABLE earlier_statements ADD COLUMN adds_up BOOLEAN;
