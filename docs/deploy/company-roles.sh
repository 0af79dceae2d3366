#!/bin/sh
# What a fresh PostgreSQL needs besides its owner: the role of requests, and a limit of statements, which PgBouncer does not
# hand on. The image runs it once, when it makes the database.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$(cat "${SECRETS:-/run/secrets}/database_app_password")" -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
CREATE ROLE bankdata_app LOGIN PASSWORD :'password';
ALTER ROLE bankdata SET statement_timeout = '30s';
ALTER ROLE bankdata_app SET statement_timeout = '30s';
SQL
