-- What a user chose for CSV files of a layout that is not known, for the next ones like them.
-- needs 031

CREATE TABLE kept_layouts (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,                   -- made of the names of the columns
    file_name TEXT NOT NULL,            -- of the file for which it was chosen
    profile TEXT NOT NULL,              -- JSON, as docs/csv-profiles.md explains it
    account_id TEXT,                    -- which files are about that do not say so
    kept_at TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, id)
);
