-- Registrations are counted per network too: an IPv6 customer has 65,536 of the /64 that count as one address.

ALTER TABLE oauth_clients ADD COLUMN network_hash TEXT;     -- keyed hash of the /48, or of the IPv4 address
