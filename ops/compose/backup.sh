#!/bin/sh
# Dumps the ledger of compose.yaml every ten minutes while the servers run, and deletes dumps older than two weeks.
# `coinslot ledger backup` is for SQLite; this ledger is in PostgreSQL. docs/how-to/backup.md describes how to restore a dump.
set -eu
umask 077
# Keeps the password out of the environment and the command line.
export PGPASSFILE=/tmp/backup-password
printf '*:*:*:*:%s\n' "$(cat "$PASSWORD_FILE")" >"$PGPASSFILE"
rm -f "$BACKUPS"/*.part
while :; do
  file="$BACKUPS/ledger-$(date -u +%Y%m%dT%H%M%SZ).dump"
  if pg_dump --no-password --format=custom --file="$file.part"; then
    mv "$file.part" "$file"
    find "$BACKUPS" -name 'ledger-*.dump' -mtime +14 -delete
  else
    echo 'The dump of the ledger failed. Older dumps are kept; the next attempt is in ten minutes.' >&2
  fi
  sleep 600
done
