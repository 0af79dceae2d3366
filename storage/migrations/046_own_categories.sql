-- Categories under names of a user's own, each below a finer category or one of the thirteen, and what was said by them.
-- needs 036

CREATE TABLE own_categories (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,                   -- of the user, the place and the first name; another name leaves it as it is
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    detailed_category TEXT,             -- below that category
    PRIMARY KEY (user_id, id)
);

ALTER TABLE annotations ADD COLUMN own_category_id TEXT;
ALTER TABLE correction_batches ADD COLUMN own_category_id TEXT;
ALTER TABLE corrections ADD COLUMN detailed_category TEXT;
ALTER TABLE corrections ADD COLUMN own_category_id TEXT;
ALTER TABLE transactions ADD COLUMN own_category_id TEXT;
ALTER TABLE pending_transactions ADD COLUMN own_category_id TEXT;
ALTER TABLE taken_back_transactions ADD COLUMN own_category_id TEXT;
ALTER TABLE earlier_transactions ADD COLUMN own_category_id TEXT;
ALTER TABLE earlier_pending_transactions ADD COLUMN own_category_id TEXT;
