-- What apps ask for by authorization_details (RFC 9396), and whether they are answered with them.

ALTER TABLE oauth_requests ADD COLUMN details TEXT;
ALTER TABLE oauth_grants ADD COLUMN has_details BOOLEAN;
