# One target for each task of developers and operators. `make` alone lists them.

BIN = node_modules/.bin
STAMP = node_modules/.installed
SOURCES = src handlers contract-tests
GENERATED = generated/openapi.d.ts
COMPILED = dist/openapi.json
TOOLS = contract-tests/tools
TOOLS_STAMP = $(TOOLS)/node_modules/.installed
PEERS_STAMP = bench/node_modules/.installed
MOCK_PORT ?= 4010

.PHONY: help run test lint types generate format build install clean clients tools
.PHONY: lint-contract mock fuzz fuzz-install contract-diff conformance conformance-table conformance-rows conformance-check
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
	  printf '  make %-18s %s\n' "$$name" "$$text"; done

run: build ## install what is missing, build, and start the server (Ctrl-C stops it)
	@exec node dist/src/main.js

.PHONY: dev
dev: build ## run a sandbox that rebuilds and restarts within seconds after you save a file (Ctrl-C stops it)
	@exec node dist/src/cli/main.js dev

test: build ## install what is missing, build, and run the tests (all except those that only .ci/run and make test-all run)
	@$(MAKE) --no-print-directory skipped
	@TESTS=$${TESTS:-local} exec $(BIN)/mocha

.PHONY: test-all
test-all: build $(TOOLS_STAMP) ## run every test with all its data rows and repetitions (.ci/run runs one row of each)
	@TESTS=all exec $(BIN)/mocha

.PHONY: test-quick
test-quick: build ## run the tests that take a second or two each (all except those in *.slow.test.ts)
	@TESTS=local exec $(BIN)/mocha --ignore '**/*.slow.test.js'

# A variable, because $(or …) would split the braces at the comma.
TESTED ?= {contract,handlers}
.PHONY: test-contract
test-contract: build ## run the tests of the contract and the handlers (TESTED=contract: only those of the contract)
	@exec $(BIN)/mocha --no-package --timeout 60000 --require ./dist/src/rails/solana/silence-bigint-warning.js --reporter dot \
	  --ignore '**/*.slow.test.js' 'dist/contract-tests/$(TESTED)/**/*.test.js'

.PHONY: test-postgres
test-postgres: build ## run the tests that also run on PostgreSQL (TEST_DATABASE_URL=postgres://…)
	@exec $(BIN)/mocha --no-package --parallel --jobs 3 --timeout 60000 --require ./dist/src/rails/solana/silence-bigint-warning.js \
	  --reporter dot -g PostgreSQL --ignore '**/faults.slow.test.js' \
	  'dist/contract-tests/**/*.slow.test.js' 'dist/contract-tests/**/!(*.slow).test.js'

.PHONY: test-pooler
test-pooler: build ## run the same tests with the servers behind a PgBouncer in transaction mode (TEST_DATABASE_URL=postgres://…; Debian's package pgbouncer)
	@node dist/contract-tests/ledger/behind-pooler.js $(MAKE) --no-print-directory test-postgres

.PHONY: faults
faults: build ## run 200 seeded random schedules of failures (SCHEDULES=200; with TEST_DATABASE_URL=…, on PostgreSQL, too)
	@FAULT_SCHEDULES=$${SCHEDULES:-200} exec $(BIN)/mocha --no-package --require ./dist/src/rails/solana/silence-bigint-warning.js --reporter spec \
	  'dist/contract-tests/**/faults.slow.test.js'

.PHONY: mutate
mutate: build ## break the payment and ledger code in over a hundred ways, and fail if a break is not caught by the test named for it (ONLY=settle)
	@exec node dist/contract-tests/mutate/run.js $(if $(ONLY),'$(ONLY)')

.PHONY: model
model: ## check every order of events in a model of the requests that wait for a payment (minutes and 6 GB; QUICK=1: half a minute)
	@exec node --max-old-space-size=6000 contract-tests/model/charge-model.js $(if $(QUICK),quick)

.PHONY: node-lines
node-lines: build ## start the server and buy a call on each Node.js version with long-term support (NODE_LINES='22 24 26'; Linux on x64; binaries from npm)
	@exec node dist/contract-tests/node-lines/run.js

.PHONY: ops-check
ops-check: build ## run every query of ops/ against a Prometheus that scrapes a server under load (needs Debian's package prometheus)
	@node dist/contract-tests/observe/prometheus.js

.PHONY: week
week: build ## run every step of docs/how-to/a-week-as-operator.md (as root; needs Debian's packages caddy, prometheus and postgresql)
	@exec bash contract-tests/docs/week.sh

.PHONY: vps-all
vps-all: build ## run every step of docs/how-to/on-a-vps.md in a clean Debian, and buy a call over TLS (as root; needs debootstrap)
	@exec bash contract-tests/docs/vps.sh

.PHONY: rolling
rolling: build ## upgrade two servers of an earlier release to this version, under load behind HAProxy (TEST_DATABASE_URL=…; FROM=commit, default: the last release)
	@exec bash contract-tests/main/rolling.sh '$(FROM)'

.PHONY: failover failover-all
failover: build ## fail over from a PostgreSQL primary that is frozen under load, with Patroni and etcd (needs Debian's packages patroni, etcd-server and postgresql; ONLY=killed, ONLY='cut off'; RUNS=1)
	@ONLY="$${ONLY:-frozen}" exec node dist/contract-tests/failover/run.js

failover-all: build ## fail over 17 times in each of three ways: killed, frozen and cut off (about an hour; RUNS=17)
	@ONLY= RUNS=$${RUNS:-17} exec node dist/contract-tests/failover/run.js

.PHONY: attack-table
attack-table: build ## measure the service that honest callers get during each attack (ATTACKS="held bodies;unfunded flood" SECONDS=15 AFTER=60)
	@exec node dist/contract-tests/attack-table/table.js

.PHONY: first-call
first-call: build ## measure the time from a clone to the first paid call, in the terminal and in a browser
	@exec node dist/contract-tests/first-call/run.js

.PHONY: attacks
attacks: build ## send 100 000 garbage payments and 100 000 payments from empty wallets (COUNT=100000)
	@ATTACK_GARBAGE=$${COUNT:-100000} ATTACK_WALLETS=$${COUNT:-100000} exec $(BIN)/mocha --no-package \
	  --require ./dist/src/rails/solana/silence-bigint-warning.js --reporter spec -g 'garbage payments|empty wallets' 'dist/contract-tests/**/attacks.slow.test.js'

clients: build $(TOOLS_STAMP) ## generate clients with other tools, and let them and the official clients pay a sandbox (only some: CLIENTS="ts python")
	@contract-tests/clients/run.sh

.PHONY: bench
bench: build $(PEERS_STAMP) ## compare the server with other x402 servers (about half an hour; QUICK=1: under four minutes)
	@exec node bench/run.js

.PHONY: growth-all
growth-all: build $(PEERS_STAMP) ## fill ledgers with ten million sales and time the queries (an hour; ROWS=100000: a minute; TEST_DATABASE_URL: on PostgreSQL, too)
	@exec node bench/grown-ledgers.js

.PHONY: bench-smoke
bench-smoke: build $(PEERS_STAMP) ## run every benchmark briefly, to see that none is broken (a minute or two)
	@SMOKE=1 BEFORE='$(CURDIR)' exec node bench/run.js

.PHONY: bench-install
bench-install: $(PEERS_STAMP) ## install the servers that make bench compares Coinslot with

conformance: build ## check a deployed server: URL=https://… (with KEYPAIR=file MAX_PRICE=0.01 RPC_URL=…, also buy one call)
	@node dist/src/cli/conformance/main.js $(if $(KEYPAIR),--keypair $(KEYPAIR)) $(if $(MAX_PRICE),--max-price $(MAX_PRICE)) \
	  $(if $(RPC_URL),--rpc $(RPC_URL)) $(URL)

.PHONY: example
example: build $(TOOLS_STAMP) ## start examples/petstore, with a mock of the API that it sells (Ctrl-C stops both)
	@$(TOOLS)/node_modules/.bin/prism mock $(TOOLS)/node_modules/@readme/oas-examples/3.0/json/petstore.json --port $(MOCK_PORT) >/dev/null & \
	  trap "kill $$!" EXIT; SHOP_DIR=examples/petstore METHODS=x402,mpp ALLOW_PRIVATE_UPSTREAMS=true PETSTORE_KEY=$${PETSTORE_KEY:-special-key} \
	  PETSTORE_URL=$${PETSTORE_URL:-http://127.0.0.1:$(MOCK_PORT)} node dist/src/main.js

.PHONY: operation operation-remove package
ADD = $(if $(PRICE),--price '$(PRICE)') $(if $(PRICE_BY),--price-by '$(PRICE_BY)') $(if $(FLOW),--flow '$(FLOW)') $(if $(UPSTREAM),--upstream '$(UPSTREAM)') $(if $(METHOD),--method '$(METHOD)') \
  $(if $(ROUTE),--route '$(ROUTE)') $(if $(REQUEST),--request '$(REQUEST)') $(if $(ANSWER),--answer '$(ANSWER)') $(if $(SUMMARY),--summary '$(SUMMARY)') \
  $(if $(TAG),--tag '$(TAG)')
RELEASED = contract-tests/released/openapi-1.0.0.yaml
# Tests of what the included shop promised its buyers. They do not apply to a shop that sells something else.
PROMISES = $(addprefix contract-tests/contract/,frozen.test.ts contract.test.ts contract-described.test.ts body-limits.test.ts)

operation: command-made ## add an operation: NAME=textStats PRICE=0.01 (PRICE_BY='…' FLOW=upfront UPSTREAM=https://… METHOD=GET ROUTE=/v1/… REQUEST='{…}' ANSWER='{…}')
	@node dist/src/cli/main.js operation add $(NAME) $(ADD)
	@$(MAKE) -s --no-print-directory types-made

operation-remove: command-made ## remove an operation: NAME=textStats (or several: NAME='textStats quote'), and the tests of the included shop
	@test -n "$(NAME)" || { echo "NAME is missing: make operation-remove NAME=textStats"; exit 2; }
	@for name in $(NAME); do node dist/src/cli/main.js operation remove $$name || exit 1; \
	  ! grep -q "operationId: $$name\$$" $(RELEASED) || rm -vf $(PROMISES); done
	@$(MAKE) -s --no-print-directory types-made

# The command edits sources, which the next build compiles. The command itself is compiled only if it has changed.
.PHONY: command-made
command-made: install
	@test -z "$$(find src -name '*.ts' -newer dist/.compiled 2>&1 | head -n 1)" || $(MAKE) --no-print-directory build

package: build ## build the npm packages of Coinslot and its sandbox: coinslot-<version>.tgz, coinslot-sandbox-<version>.tgz
	@node dist/$(TOOLS)/package.js .

.PHONY: image-lint image-all
image-lint: build ## lint the Dockerfiles with hadolint
	@node dist/contract-tests/image/hadolint.js

image-all: build ## run every step of the Dockerfile in a clean Debian, start both images read-only, and buy a call (as root; needs debootstrap)
	@node dist/contract-tests/image/run.js

.PHONY: release
release: build ## prepare a release: date the unreleased part of CHANGELOG.md, and set the version in all files: VERSION=1.2.0
	@node dist/$(TOOLS)/release.js '$(VERSION)'
	@$(MAKE) --no-print-directory generate

.PHONY: audit
audit: build ## check all lock files for security advisories; accepted ones are in contract-tests/tools/audit-accepted.yaml
	@node dist/$(TOOLS)/audit.js

lint: build $(TOOLS_STAMP) lint-contract ## check format, style, types, unused exports, the contract, and that the generated types are up to date
	$(BIN)/prettier --check --log-level warn .
	$(BIN)/eslint .
	$(BIN)/tsc -p src/pages/assets
	$(TOOLS)/node_modules/.bin/knip --no-progress
	$(BIN)/openapi-typescript openapi.yaml --output $(GENERATED) --check

types: install ## check only the types
	$(BIN)/tsc --noEmit --incremental false
	$(BIN)/tsc -p src/pages/assets

generate: ## regenerate everything that is made from the contract (make build only does so if it has changed), and docs/reference
	@rm -f dist/types.cksum $(COMPILED)
	@$(MAKE) --no-print-directory build
	@node dist/$(TOOLS)/reference.js

lint-contract: build $(TOOLS_STAMP) ## check openapi.yaml with Redocly, Spectral and our own rules for them
	@node dist/$(TOOLS)/lint.js

mock: build $(TOOLS_STAMP) ## serve a mock of the contract that charges like the server, but without a chain (MOCK_PORT=4010)
	@exec node dist/src/cli/main.js mock --port $(MOCK_PORT)

.PHONY: mock-proxy
mock-proxy: $(TOOLS_STAMP) ## check the traffic of a running server against the contract: URL=http://127.0.0.1:8402
	@test -n "$(URL)" || { echo 'mock-proxy needs the URL of a running server: make mock-proxy URL=http://127.0.0.1:8402' >&2; exit 1; }
	@exec $(TOOLS)/node_modules/.bin/prism proxy openapi.yaml $(URL) --port $(MOCK_PORT)

fuzz: build ## fuzz a server in the sandbox, or the one at URL=http://…, with Schemathesis, unpaid and paid (SEED=1; CASES=5: examples of each operation; if set, it also applies to the run with the published settings, which otherwise makes 100)
	@URL=$(URL) node dist/contract-tests/fuzz/run.js

fuzz-install: build ## install Schemathesis in advance for make fuzz
	@node dist/contract-tests/fuzz/run.js --install

.PHONY: replaced-shop
replaced-shop: build $(TOOLS_STAMP) ## replace the included shop with three other operations, in a copy of this repository, and run every tool on it
	@node dist/contract-tests/replaced-shop/run.js

contract-diff: build ## fail if openapi.yaml has breaking changes since version 1.0.0
	@node dist/$(TOOLS)/diff.js

tools: build $(TOOLS_STAMP) ## run every tool on the contract, and write the table of results
	@$(MAKE) --no-print-directory lint-contract contract-diff fuzz clients
	@$(BIN)/mocha --no-package --timeout 20000 --reporter dot 'dist/contract-tests/**/{mock,prism,mutations}.slow.test.js'
	@$(MAKE) --no-print-directory conformance-table

.PHONY: summaries
summaries: build $(TOOLS_STAMP) ## score the embedded summarizer on 60 texts, and write docs/reports/summaries.md (SHOW=1: print the summaries instead)
	@node --no-deprecation dist/$(TOOLS)/summaries.js $(if $(SHOW),--show)

.PHONY: speech-check
speech-check: build ## run speech recognition on 30 synthesised texts, and count the wrong words (PIPER=1: also with a Piper server; SHOW=1: print them)
	@node --no-deprecation dist/contract-tests/speech/run.js $(if $(PIPER),--piper) $(if $(SHOW),--show)

.PHONY: frameworks frameworks-install
frameworks: build ## sell a FastAPI and an Express app with coinslot import and run, and buy every route with the official client
	@node dist/contract-tests/frameworks/run.js

frameworks-install: build
	@node dist/contract-tests/frameworks/run.js --install

.PHONY: imports
imports: build ## import every public document of contract-tests/fixtures/openapi, and write docs/reports/imports.md (two minutes)
	@node dist/$(TOOLS)/imports.js

conformance-table: build ## write docs/reports/conformance.md from the last results of the tools
	@node dist/$(TOOLS)/table.js

conformance-rows: build ## rewrite only the specification's part of docs/reports/conformance.md, from contract-tests/specification/rows.yaml
	@node dist/$(TOOLS)/table.js --rows

conformance-check: build ## print the conformance table, and fail if docs/reports/conformance.md differs
	@node dist/$(TOOLS)/table.js --check

format: install ## format every file
	$(BIN)/prettier --write --log-level warn .

# Also deletes compiled files whose source was deleted, because mocha would run them. The compiler needs ten seconds even if nothing has
# changed, so it runs only if something is newer than dist/.compiled, which has the time at which the last successful run began.
build: install ## compile into dist/, and regenerate what is made from the contract if it has changed
	@test -d dist || echo 'Compiling; this takes half a minute the first time'
	@$(MAKE) -s --no-print-directory types-made
	@find dist -name '*.js' | while read -r file; do source=$${file#dist/}; \
	  test -f "$${source%.js}.ts" || rm -f "$$file" "$$file.map" dist/.compiled; done
	@test -z "$$(find $(SOURCES) generated tsconfig.json $(STAMP) -name node_modules -prune -o \
	  \( -name '*.ts' -o -name tsconfig.json -o -name .installed \) -newer dist/.compiled -print 2>&1 | head -n 1)" || \
	  { touch dist/.compiling && $(BIN)/tsc && mv dist/.compiling dist/.compiled; }
	@$(MAKE) -s --no-print-directory $(COMPILED)
	@node dist/$(TOOLS)/check-shop.js

# Compares contents, because the file times of a fresh checkout mean nothing.
.PHONY: types-made
types-made:
	@test "$$(cat openapi.yaml $(GENERATED) 2>/dev/null | cksum)" = "$$(cat dist/types.cksum 2>/dev/null)" || { \
	  $(BIN)/openapi-typescript openapi.yaml --output $(GENERATED) >/dev/null && mkdir -p dist && \
	  cat openapi.yaml $(GENERATED) | cksum > dist/types.cksum; }

# The server reads this file instead of the YAML. The README's prices and the Bruno collection are generated from the same contract.
$(COMPILED): openapi.yaml package-lock.json $(wildcard dist/src/contract/*.js) dist/$(TOOLS)/readme.js dist/$(TOOLS)/collection.js dist/src/cli/build/bruno-collection.js
	@node dist/src/contract/compile.js
	@node dist/$(TOOLS)/readme.js
	@node dist/$(TOOLS)/collection.js

install: $(STAMP) ## install what is missing

clean: ## delete everything built and installed, but not the state folder (.coinslot)
	rm -rf dist dist-mutants-* packages/*/dist node_modules bench/node_modules bench/.cache bench/.run $(TOOLS)/node_modules $(TOOLS)/bin contract-tests/fuzz/.venv contract-tests/speech/.venv contract-tests/image/.venv

# Also runs `npm ci` if the lock file is newer than the installation. The stamp is written last, so that an interrupted install is repeated.
$(STAMP): package-lock.json
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' || \
	  { echo "Node 20.19 or newer is needed, this is $$(node --version): install it from https://nodejs.org." >&2; exit 1; }
	@echo 'Installing the packages of package-lock.json (about a minute)'
	@npm ci --include=dev --loglevel=error --no-progress
	@touch $@

# The linters and the mock have a package file of their own, because running the server does not need them.
$(TOOLS_STAMP): $(TOOLS)/package-lock.json
	@echo 'Installing the packages of $(TOOLS)/package-lock.json'
	@cd $(TOOLS) && npm ci --loglevel=error --no-progress
	@touch $@

# The servers that the benchmarks compare with need hundreds of packages that Coinslot itself does not.
$(PEERS_STAMP): bench/package-lock.json
	@echo 'Installing the packages of bench/package-lock.json'
	@cd bench && npm ci --loglevel=error --no-progress
	@touch $@

# Prints which tests this machine can't run, and how to enable them.
.PHONY: skipped
skipped:
	@test -n "$$TEST_DATABASE_URL" || \
	  echo 'skipped: the ledger on PostgreSQL (set TEST_DATABASE_URL=postgres://… to include it)'
	@test -d $(TOOLS)/node_modules || echo 'skipped: Prism (make lint-contract installs it)'
	@faketime --version >/dev/null 2>&1 || echo 'skipped: tests with a clock two days ahead (Debian: apt-get install faketime)'
	@test "$$(id -u)" = 0 || echo 'skipped: tests with a full disk (only root can mount a small one)'
	@test "$$TESTS" = ci || \
	  echo 'skipped: tests of browsers, packages, the tutorial, load storms and the linters (make test-all runs them)'
