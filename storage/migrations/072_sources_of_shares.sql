-- What is shared comes by a connection for each of the giver's: every share is looked at again, and told anew.
-- needs 072

UPDATE oauth_shares SET seen = '';
