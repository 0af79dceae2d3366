-- Files that would change nothing if they were imported again: what they say, and of which state of the store that holds.

CREATE TABLE known_files (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,                   -- SHA-256 of the connection, the bytes of the file and how they are read
    outcome TEXT NOT NULL,              -- JSON of what the file says and contributed
    state TEXT NOT NULL,                -- BLAKE2b of everything that the file would be compared with
    PRIMARY KEY (user_id, id)
);
