# Everything a developer or an operator does, one target each. `make` alone lists them.

BIN = node_modules/.bin
STAMP = node_modules/.installed
SOURCES = src handlers contract-tests
GENERATED = generated/openapi.d.ts

.PHONY: help run test lint types generate format build install clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
	  printf '  make %-10s %s\n' "$$name" "$$text"; done

run: build ## install what is missing, build, and start the server (Ctrl-C stops it)
	@exec node dist/src/main.js

test: build ## install what is missing, build, and run every test
	@$(MAKE) --no-print-directory skipped
	@exec $(BIN)/mocha

# Every test file that has tests for PostgreSQL; needs TEST_DATABASE_URL.
.PHONY: test-postgres
test-postgres: build
	@exec $(BIN)/mocha --no-package --timeout 60000 --reporter dot \
	  $$(grep -lE 'TEST_DATABASE_URL|support/places' contract-tests/*.test.ts | sed 's,^,dist/,; s,\.ts$$,.js,')

lint: install ## check format, style, types, and that the generated types are fresh
	$(BIN)/prettier --check --log-level warn .
	$(BIN)/eslint .
	$(BIN)/tsc --noEmit --incremental false
	$(BIN)/openapi-typescript openapi.yaml --output $(GENERATED) --check

types: install ## check the types alone
	$(BIN)/tsc --noEmit --incremental false

generate: install ## write the types of the contract (generated/) anew
	$(BIN)/openapi-typescript openapi.yaml --output $(GENERATED)

format: install ## format every file
	$(BIN)/prettier --write --log-level warn .

build: install ## compile into dist/
	@$(BIN)/tsc

install: $(STAMP) ## install what is missing

clean: ## remove what was built and installed; the state folder (.coinslot) stays
	rm -rf dist node_modules

# `npm ci` also where the lock file is newer than what is installed. The stamp is written last: a broken-off install is repeated.
$(STAMP): package-lock.json
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' || \
	  { echo "Node 20.19 or newer is needed, this is $$(node --version)" >&2; exit 1; }
	@echo 'Installing the packages of package-lock.json'
	@npm ci --include=dev --loglevel=error --no-progress
	@touch $@

# Says which tests this machine can't run, and what to do about it.
.PHONY: skipped
skipped:
	@test -n "$$TEST_DATABASE_URL" || \
	  echo 'skipped: the ledger on PostgreSQL (set TEST_DATABASE_URL=postgres://… to run it too)'
