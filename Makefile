# Zonal's commands. On a new machine with Python 3.11+ and make: `make run`, `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXEC := $(BIN)/python -m operations.embedded exec --
TESTS ?= tests
# CI runs all tests, and measures coverage as well. Here a sixth of them, which start and kill servers of
# their own or send random data, would take two thirds of the time: `make test-slow`.
CHOSEN := $(if $(CI),--cov --cov-report=,-m "not browser$(if $(filter tests,$(TESTS)), and not slow)")

# The oldest PostgreSQL that works, as Debian 12 has it, and the tests that it must pass.
POSTGRES15 ?= /usr/lib/postgresql/15/bin
ISOLATION := $(addprefix tests/sqlgateway/,attacks hardening databases \
  pg/test_connections.py pg/test_session_settings.py \
  pg/test_wire.py pg/test_changed_roles.py transfer/test_imports.py)

FUZZED ?= tests/rules/fuzzing tests/edgecache/brain/test_random_history.py

# Tests start hundreds of Python processes: none shall compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: screenshots run free-ports test test-again test-slow test-browser test-postgres15 test-store test-scale check check-deploy format lock vendor clients check-clients docs bench soak help

help:  ## list these commands
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

run: free-ports $(VENV)/.base  ## run the whole platform here, for development; Ctrl-C stops it
	@exec $(BIN)/python -m operations.embedded up

# Before the first installation, which takes a minute. Later `up` looks itself: what a start that was
# killed has left running holds ports, and `up` ends it first.
free-ports:
	@test -e $(VENV)/.base || $(PYTHON) -m operations.embedded.check_ports

test: $(VENV)/.dev  ## run the tests against throw-away databases, but for the slow and those in a browser
	$(EXEC) $(BIN)/python -m pytest -n 3 --dist worksteal $(CHOSEN) $(TESTS)
# Only now: a run that fails is to end with what failed.
	$(if $(CI),$(BIN)/coverage report)

# A failure that does not come back is a fault of the test, which is named here and is to be mended;
# more than ten failures are the code's.
test-again: $(VENV)/.dev  ## run the tests that failed just now once more, at most ten
	@$(BIN)/python -c 'import json; failed = json.load(open(".pytest_cache/v/cache/lastfailed")); \
	  print("Failed, and run again:", *failed, sep="\n  "); exit(len(failed) > 10)'
	$(EXEC) $(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(TESTS)
	$(if $(CI),$(BIN)/coverage report)

test-slow: $(VENV)/.dev  ## run the tests that take half a second or more each: crashes, load, random data
	$(EXEC) $(BIN)/python -m pytest -n 3 --dist worksteal -m "slow and not browser" $(TESTS)

test-browser: $(VENV)/.dev  ## run the tests in a browser (Debian's chromium-headless-shell)
	$(EXEC) $(BIN)/python -m pytest -n 2 --dist worksteal -m browser $(TESTS)

# Of each operation of the API; of the cache, whole histories.
fuzz: export ZFUZZ_EXAMPLES ?= 30
fuzz: $(VENV)/.dev  ## run the tests with random data at length (ZFUZZ_EXAMPLES=30)
	$(EXEC) $(BIN)/python -m pytest -n 3 --dist worksteal $(FUZZED)

test-postgres15: $(VENV)/.dev  ## run the isolation tests on PostgreSQL 15
	ZPG_BINDIR=$(POSTGRES15) $(EXEC) $(BIN)/python -m pytest -n 2 --dist worksteal $(ISOLATION)

# Ceph from Debian: a monitor, an OSD in memory, a RADOS gateway, all on loopback.
CEPH := ceph-mon ceph-osd ceph-common radosgw

test-store: $(VENV)/.dev  ## run the S3 tests and the random history on Ceph's RADOS gateway
	@command -v radosgw ceph-mon ceph-osd ceph >/dev/null || \
	  { apt-get update && apt-get install -y --no-install-recommends $(CEPH); }
	TEST_STORE=1 $(EXEC) $(BIN)/python -m pytest -n 2 --dist loadfile \
	  tests/edgecache/ceph tests/edgecache/brain/s3 tests/edgecache/brain/test_random_history.py

# On hosts of their own: network namespaces, which need root.
SCALE := patroni etcd-server haproxy pgbouncer postgresql-15 iproute2 $(CEPH)

test-scale: $(VENV)/.dev  ## run the tests of failover on several hosts; writes docs/scaling-figures.md
	@dpkg-query -W $(SCALE) >/dev/null 2>&1 || \
	  { apt-get update && apt-get install -y --no-install-recommends $(SCALE); }
	TEST_SCALE=1 $(EXEC) $(BIN)/python -m pytest tests/scale

check: check-clients $(VENV)/.dev  ## the gate: format, lint, layers, types, settings, migrations, schema
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(EXEC) $(BIN)/mypy .
	$(EXEC) $(BIN)/python -m tests.gate
	$(BIN)/djlint --check --lint --quiet templates
	$(BIN)/deptry .
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Python with its own dependencies and as 3.9; TypeScript with the tsc of `make clients`, or Debian's
# (`node-typescript`).
TSC := $(firstword $(wildcard clients/typescript/node_modules/.bin/tsc) $(shell command -v tsc))

check-clients: $(VENV)/.dev
	cd clients/python && ../../$(BIN)/lint-imports && ../../$(BIN)/deptry . && \
	  ../../$(BIN)/mypy --config-file pyproject.toml zonal
	@test -n "$(TSC)" || { echo "TypeScript is not checked: tsc is missing (apt-get install" \
	  "--no-install-recommends node-typescript)."; test -z "$(CI)"; }
	@test -z "$(TSC)" || { $(TSC) -p clients/typescript --noEmit && $(TSC) -p clients/typescript/tests; }

screenshots:  ## take the documentation's pictures anew, by the browser tests
	@folder=$$(mktemp -d) && ZONAL_SCREENSHOTS=$$folder $(MAKE) test-browser && \
	  for each in docs/screenshots/*.png; do cp $$folder/$$(basename $$each) $$each; done

# Debian's package `prometheus` has promtool.
check-deploy:  ## check the configuration and the alerts of deploy/prometheus
	@command -v promtool >/dev/null || { echo "Not checked: promtool is missing (apt-get install" \
	  "--no-install-recommends prometheus)."; test -z "$(CI)"; }
	@! command -v promtool >/dev/null || { promtool check config deploy/prometheus/prometheus.yml && \
	  promtool test rules deploy/prometheus/rules_test.yml; }

docs: $(VENV)/.dev  ## build the documentation into site/, links and anchors checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

format: $(VENV)/.dev  ## rewrite the files as the formatters want them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/djlint --reformat --quiet templates

# First all of it, so that one version of each serves the platform and its tests.
lock: $(VENV)/.dev  ## compile requirements/*.txt from pyproject.toml
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --extra dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  -c requirements/dev.txt pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  -c requirements/dev.txt --extra traces pyproject.toml -o requirements/image.txt
	$(BIN)/python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
	  print('\n'.join(project['optional-dependencies']['worker']))" | \
	  $(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --no-annotate -c requirements/base.txt - -o requirements/worker.txt

# Its result is committed: neither the platform nor a user of it needs Node.js.
VENDOR := console/vendor

vendor:  ## build what the console uses of npm packages (Node.js 20+) into its static files
	npm ci --prefix $(VENDOR) --ignore-scripts
	npm run build --prefix $(VENDOR)

clients: $(VENV)/.dev  ## write what the clients take from docs/openapi.yaml
	$(BIN)/python clients/python/tools/write_types.py
	$(BIN)/python clients/python/tools/write_sync.py
	$(BIN)/python clients/typescript/tools/build.py

# SOAK=--minutes=3 for a shorter one.
soak: $(VENV)/.dev  ## half an hour of mixed load on a whole installation whose processes are killed
	$(BIN)/python -m benchmarks.soak $(SOAK)

bench: $(VENV)/.dev  ## measure against the baselines; prints ratios
	$(BIN)/python -m operations.embedded exec --durable -- $(BIN)/python -m benchmarks

# Each stamp is newer than the requirements it installed. `--no-deps`: a lock names everything, and older
# pips take the newest release of what a dependency asks for with an extra, then refuse it for its hash.
$(VENV)/.base: requirements/base.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned dependencies ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@
