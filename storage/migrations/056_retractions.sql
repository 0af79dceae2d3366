-- What users were told of recurring payments has another form, with the days told as missed, and what was detected has
-- the account of the latest charge. What is found next counts as known. Looks follow syncs and imports, and no calendar.
-- needs 056

DELETE FROM detections;
DELETE FROM recurring_told;
-- only postgresql
DROP INDEX recurring_told_by_look;

ALTER TABLE recurring_told DROP COLUMN look_at;
ALTER TABLE recurring_told DROP COLUMN day;
ALTER TABLE recurring_told DROP COLUMN data_version;
