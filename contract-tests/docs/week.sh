#!/usr/bin/env bash
# Runs every block of docs/how-to/a-week-as-operator.md in one shell, with ports of its own (a network namespace) and a PostgreSQL of its own.
# The last line is `N passed, N failed`. Needs Debian's packages caddy, prometheus and postgresql.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
page="$root/docs/how-to/a-week-as-operator.md"
if [ "${WEEK_INSIDE:-}" = '' ]; then
  for each in caddy prometheus promtool unshare ip curl; do
    command -v "$each" >/dev/null || { echo "there is no $each, so the week was not run"; echo '0 passed, 1 failed'; exit 1; }
  done
  WEEK_INSIDE=1 exec unshare -n --kill-child --pid --fork --mount-proc bash "$0"
fi
ip link set lo up
cd "$root" || exit 1
export WEEK
WEEK=$(mktemp -d)
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
data=$(mktemp -d)
chown postgres "$data" && as() { (cd / && runuser -u postgres -- "$@"); }
as "$bin/initdb" -D "$data" -A trust >/dev/null &&
  as "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "-c listen_addresses=127.0.0.1 -c unix_socket_directories=$data -c fsync=off" start >/dev/null
export POSTGRES_URL=postgres://postgres@127.0.0.1:5432/postgres
# A program, not a function, so that the background process is the server itself.
mkdir "$WEEK/bin" && printf '#!/bin/sh\nexec node "%s/src/cli/coinslot.js" "$@"\n' "$root" >"$WEEK/bin/coinslot" && chmod 755 "$WEEK/bin/coinslot"
PATH="$WEEK/bin:$PATH"
blocks=$(awk '/^```bash$/ { inside = 1; print "step " NR; next } /^```$/ { inside = 0 } inside' "$page")
passed=0
step() { passed=$((passed + 1)); echo "line $1 of the page, after $SECONDS s"; }
trap 'status=$?; as "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null; [ "$status" = 0 ] || tail -n 5 "$WEEK"/*.log; rm -rf "$WEEK" "$data"; echo "$passed passed, $((status != 0)) failed"; exit $status' EXIT
set -eo pipefail
eval "$blocks"
