#!/bin/sh
# Put the newest base backup of before an instant in the place of a stopped PostgreSQL, which replays the archived WAL up to
# that instant when it is started; without an instant, all of it. What was there is moved to /backups/replaced.
#
#   restore.sh /backups /var/lib/postgresql/17/main '2026-11-25 12:00:00 UTC'
set -eu
backups="${1:?the folder of the backups}"
data="${2:?the folder of PostgreSQL}"
at="${3:-}"
[ ! -e "$data/postmaster.pid" ] || { echo "PostgreSQL runs in $data, or died there and left postmaster.pid" >&2; exit 1; }
until="$(date -u -d "${at:-tomorrow}" +%Y%m%d-%H%M%S)"
base="$(ls -1 "$backups/base" | sort | awk -v until="$until" '$0 <= until' | tail -n 1)"
[ -n "$base" ] || { echo "no backup in $backups/base is of before $at" >&2; exit 1; }
mkdir -m 0700 "$backups/replaced"
find "$data" -mindepth 1 -maxdepth 1 -exec mv -t "$backups/replaced" {} +
cp -a "$backups/base/$base/." "$data"
sed -i '/^restore_command\|^recovery_target/d' "$data/postgresql.auto.conf" # of an earlier time
cat >> "$data/postgresql.auto.conf" <<EOF
restore_command = 'gunzip < $backups/wal/%f.gz > "%p" || cp $backups/wal/%f "%p"'
recovery_target_action = 'promote'
${at:+recovery_target_time = '$at'}
EOF
touch "$data/recovery.signal"
