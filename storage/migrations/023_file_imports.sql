-- What becomes of a file sent over HTTP, for the processes that did not take it; and which program a store needs at least.

CREATE TABLE file_imports (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    answer TEXT NOT NULL,               -- JSON of the contract
    is_done BOOLEAN NOT NULL,
    begun_at TIMESTAMP NOT NULL,
    alive_at TIMESTAMP NOT NULL,        -- when the process that took it last said so
    PRIMARY KEY (user_id, id)
);

ALTER TABLE schema_version ADD COLUMN needs INTEGER;    -- the oldest program that may run on it; null: this number
