#!/bin/sh
# Make what compose-company.yaml keeps secret, once, in a folder that only its owner may enter. Keep a copy of keys_secret
# apart from the backups: without it nobody stays signed in, and no bank stays connected.
set -eu
folder="${1:?the folder, such as secrets}"
mkdir -m 0700 "$folder"
cd "$folder"
umask 0333 # the users of the containers read them
owner="$(openssl rand -hex 24)"
app="$(openssl rand -hex 24)"
printf %s "$owner" >database_password
printf %s "$app" >database_app_password
printf %s "postgresql://bankdata:$owner@pgbouncer:6432/bankdata" >database_url
printf %s "postgresql://bankdata:$owner@pgbouncer:6432/rehearsal" >rehearsal_url
printf %s "postgresql://bankdata_app:$app@pgbouncer:6432/bankdata" >database_app_url
printf '"bankdata" "%s"\n"bankdata_app" "%s"\n' "$owner" "$app" >pgbouncer_users
openssl rand -base64 32 >keys_secret
