-- A balance is low since a day; what has risen and fallen again is another fall.
-- needs 036

ALTER TABLE balance_alerts ADD COLUMN low_since DATE;  -- the day of the last fall; null: it was before this column
