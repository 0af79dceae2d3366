-- The flows of a forecast are stored under another key: what is under the former one is never read. All of this table is
-- found anew where it is missing.
-- needs 036

DELETE FROM detections;
