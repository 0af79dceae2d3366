#!/bin/sh
# One base backup of PostgreSQL below a folder, of which the newest so many are kept, with the WAL since the oldest of them:
#
#   PGHOST=db.example PGUSER=backup base-backup.sh /backups 7
#
# The server itself archives its WAL into /backups/wal (archive_command), so that any instant since then can be restored.
set -eu
backups="${1:?the folder of the backups}"
keep="${2:-7}"
mkdir -p "$backups/base" "$backups/wal"
exec 9> "$backups/.lock"
flock -n 9 || { echo "another base backup into $backups is running" >&2; exit 1; }
rm -rf "$backups/base/.part"
pg_basebackup --pgdata="$backups/base/.part" --checkpoint=fast --wal-method=stream --no-password
mv "$backups/base/.part" "$backups/base/$(date -u +%Y%m%d-%H%M%S)" # of its end: what can be restored begins there
# for `bankdata check` and the alerts, which else know of no backup
psql -qX -d "${DATABASE:-bankdata}" -c "INSERT INTO settings (name, value) VALUES ('backed_up_at', '$(date -u +%Y-%m-%dT%H:%M:%SZ)')
    ON CONFLICT (name) DO UPDATE SET value = excluded.value" || echo "the service was not told of this backup" >&2
ls -1 "$backups/base" | sort -r | tail -n +$((keep + 1)) | while read -r old; do
    rm -rf "$backups/base/$old"
done
oldest="$(ls -1 "$backups/base" | sort | head -n 1)"
needed="$(sed -n 's/^START WAL LOCATION: .*(file \(.*\))$/\1/p' "$backups/base/$oldest/backup_label")"
pg_archivecleanup -x .gz "$backups/wal" "$needed"
