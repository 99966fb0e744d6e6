#!/usr/bin/env bash
# Updates src/site/assets/redoc.js.gz, the bundle that renders /docs: `contract-tests/tools/fetch-reference.sh 3.0.1`.
# It is Redoc's own bundle from npm, compressed, with one change: the logo, which would come from another host, is left out.
# Redoc is not a dependency, because npm would install hundreds of packages that the bundle already contains.
set -euo pipefail
version=${1:?which version of redoc}
assets=$(cd "$(dirname "$0")/../../src/site/assets" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent "redoc@$version" >/dev/null
tar xzf redoc-*.tgz
logo='https://cdn.redoc.ly/redoc/logo-mini'
grep -q "$logo" package/bundles/redoc.standalone.js
sed "s|$logo-full.svg|data:,|; s|$logo.svg|data:,|" package/bundles/redoc.standalone.js | gzip -9n >"$assets/redoc.js.gz"
cp package/LICENSE "$assets/redoc.LICENSE"
sha256sum package/bundles/redoc.standalone.js "$assets/redoc.js.gz"
