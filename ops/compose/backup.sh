#!/bin/sh
# Dumps the ledger of compose.yaml every ten minutes, beside the servers, and deletes dumps that are older than two weeks.
# `coinslot ledger backup` is for SQLite; the ledger here is in PostgreSQL. docs/how-to/backup.md says how to restore a dump.
set -eu
umask 077
# So that the password is in no environment and no arguments.
export PGPASSFILE=/tmp/backup-password
printf '*:*:*:*:%s\n' "$(cat "$PASSWORD_FILE")" >"$PGPASSFILE"
rm -f "$BACKUPS"/*.part
while :; do
  file="$BACKUPS/ledger-$(date -u +%Y%m%dT%H%M%SZ).dump"
  if pg_dump --no-password --format=custom --file="$file.part"; then
    mv "$file.part" "$file"
    find "$BACKUPS" -name 'ledger-*.dump' -mtime +14 -delete
  else
    echo 'The ledger was not dumped. Older dumps are kept; the next attempt is in ten minutes.' >&2
  fi
  sleep 600
done
