-- The state of a user's data: raised by every commit that changes anything the user could read.

ALTER TABLE users ADD COLUMN state BIGINT DEFAULT 0;
