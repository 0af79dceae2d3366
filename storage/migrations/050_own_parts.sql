-- Parts of bookings in categories of a user's own.
-- needs 036

ALTER TABLE annotation_splits ADD COLUMN own_category_id TEXT;
