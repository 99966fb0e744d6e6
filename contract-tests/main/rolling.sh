#!/usr/bin/env bash
# Builds an earlier release in a separate folder, and runs the rolling upgrade test from it to this version. Needs the Git history, HAProxy,
# and TEST_DATABASE_URL. EARLIER_RELEASE=folder: uses the release that is already built there.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
: "${TEST_DATABASE_URL:?is the URL of a PostgreSQL database for tests}"
if [ -z "${EARLIER_RELEASE:-}" ]; then
  commit=${1:-$(git log --format=%h --grep='^Release [0-9]' -1)}
  EARLIER_RELEASE=$(mktemp -d)
  trap 'rm -rf "$EARLIER_RELEASE"' EXIT
  git archive "$commit" | tar -x -C "$EARLIER_RELEASE"
  make --silent -C "$EARLIER_RELEASE" build
  echo "from $commit: $(git log --format=%s -1 "$commit")"
fi
export EARLIER_RELEASE
node_modules/.bin/mocha --no-package --timeout 60000 --require ./dist/src/rails/solana/silence-bigint-warning.js --reporter spec \
  dist/contract-tests/main/rolling.slow.test.js
