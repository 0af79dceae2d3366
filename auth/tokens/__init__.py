"""What an app holds: codes, access and refresh tokens, the grant they belong to, the keys that sign them."""
