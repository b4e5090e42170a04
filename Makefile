# Three words: `make demo` shows it, `make check` tells soon what broke, `make test` proves it.
PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.core
STAMP := .venv/.ready
# Modules are compiled as they are first imported: compiling all of them took two fifths of the installation.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-compile
NODE_STAMP := sdks/ts/node_modules/.package-lock.json
RESULTS ?= results
# CI sets it to "not slow".
TESTS ?= not slow and not exhaustive
ASKED := --sdk all --dataset smoke --scorer exact --seed-reference-brain
DEMO := $(ASKED) --output $(RESULTS)

# What shares no daemon and no build is made side by side, line by line; JOBS=1 one after another.
JOBS ?= 2
SIDE_BY_SIDE := --no-print-directory --jobs=$(JOBS) \
	$(if $(filter output-sync,$(.FEATURES)),--output-sync=line)
UNIT := eval/tests/unit eval/tests/contract sdks/py/tests
# One more than cores: a third of the time of many tests is waiting for what a daemon must not do.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST = $(BIN)/pytest -m "$(TESTS)" --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# A missing toolchain leaves an SDK out, with a word; CI sets MEMCONFORM_REQUIRE_ALL=1.
ABSENT = echo "$(1) is not on PATH: the tests of sdks/$(2) are left out"; \
	test "$$MEMCONFORM_REQUIRE_ALL" != 1

ACTIONLINT := go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

.PHONY: demo check test lint types unit smoke sdk-go sdk-ts pytest bench mutate setup clean

demo: $(CORE)
	@$(BIN)/memconform run $(DEMO) --scenario search-retrieve-only
	@echo
	@$(BIN)/memconform run $(DEMO) --scenario ask-basic

test: $(STAMP)
	@$(MAKE) $(SIDE_BY_SIDE) lint types pytest sdk-go sdk-ts

check: $(STAMP)
	@$(MAKE) $(SIDE_BY_SIDE) lint types smoke
	@$(MAKE) --no-print-directory unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	@if command -v go >/dev/null; then $(ACTIONLINT) .github/workflows/*.yml; \
	else echo "go is not on PATH: the workflows are not checked"; test "$$MEMCONFORM_REQUIRE_ALL" != 1; fi

types: $(STAMP)
	$(BIN)/mypy

# A file is a unit: what its tests share is made once, and not by each process.
pytest: $(STAMP)
	$(PYTEST)

unit: $(STAMP)
	$(PYTEST) $(UNIT)

# Each daemon is built, started, filled and asked.
smoke: $(CORE)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT \
	&& $(BIN)/memconform run $(ASKED) --output "$$folder" --scenario ask-basic --quiet \
	$(if $(filter 1,$(MEMCONFORM_REQUIRE_ALL)),--no-skip)

sdk-go:
	@if command -v go >/dev/null; then cd sdks/go && { test -z "$$(gofmt -l .)" || { gofmt -l . >&2; false; }; } \
	&& go vet ./... && go tool staticcheck ./... && go test ./...; \
	else $(call ABSENT,go,go); fi

sdk-ts:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(NODE_STAMP) && cd sdks/ts \
	&& npm run --silent lint && npm run --silent typecheck && npm run --silent format:check \
	&& npm test --silent; \
	else $(call ABSENT,npm,ts); fi

$(NODE_STAMP): sdks/ts/package-lock.json
	@echo "setting up sdks/ts/node_modules (once)"
	@cd sdks/ts && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

bench: $(STAMP)
	$(BIN)/pytest -m slow
	cd sdks/go && go test -race ./...
	$(BIN)/python scripts/bench_all.py

mutate: $(STAMP)
	$(BIN)/memconform mutate

setup: $(STAMP)

# The program alone, so that a newcomer waits for no tool of its tests.
$(CORE): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("memconform needs Python 3.11 or newer, but $(PYTHON) is %d.%d; try: make PYTHON=python3.12 ..." % v[:2])'
	@echo "setting up .venv (once): the packages of requirements.lock"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $(CORE)

$(STAMP): $(CORE) requirements-dev.lock
	@echo "setting up .venv (once): the packages of requirements-dev.lock"
	@$(PIP) --require-hashes -r requirements-dev.lock
	@touch $(STAMP)

clean:
	rm -rf .venv sdks/ts/node_modules sdks/ts/dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
