-- Wordings are found by a digest. Those that were kept before have none, and are kept once more when they are told again.

ALTER TABLE booking_wordings ADD COLUMN digest TEXT;   -- BLAKE2b of the wording, 128 bits in hexadecimal digits
