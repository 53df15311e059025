# The commands for a clone. A machine needs only Python 3.11 or newer and make: each target makes .venv first when it is
# missing or older than the lock file. Java is the system's (17 or newer), else a packaged one.

SHELL := /bin/sh
PY := .venv/bin/python
# The stamp's name holds the clone's path: an environment that was copied or moved elsewhere is made anew.
READY := .venv/.ready-$(shell pwd | cksum | cut -d ' ' -f 1)
ARCHIVE := .cache/rekindle/made
# Hundreds of processes of the tests import the same modules: they share compiled ones, also where the environment says no.
unexport PYTHONDONTWRITEBYTECODE
# Arguments for the program of the target: make test ARGS="-k word_count"
ARGS ?=
# The benchmark to run: make bench BENCH=large_state ARGS=--quick
BENCH ?= keyed_count

.DEFAULT_GOAL := help
.PHONY: help demo test bytecode long explore check format bench chaos compat servers index lock clean

help: ## this list
	@echo "make <target> [ARGS=\"...\"] [PYTHON=/path/to/python3]"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12

demo: $(READY) ## a shop's order system is broken four times and loses nothing (two minutes; ARGS=--servers: with Kafka and HBase)
	@$(PY) -m examples.demo $(ARGS)

test: $(READY) ## the checks, then every test: unit and docstrings first, then those that need Spark
	@$(MAKE) --no-print-directory --jobs 2 check $(ARCHIVE) bytecode
	@$(PY) -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

# One process compiles the test modules: else each of four workers would, which takes a minute of both cores.
bytecode: $(ARCHIVE)
	@$(PY) -m pytest --collect-only -q >/dev/null 2>&1 || true

long: $(READY) ## the long proofs: more kills, more crash points, more forms of a cluster than make test has (25 minutes)
	@$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --long -m long $(ARGS)

explore: $(READY) ## the property tests with new random examples, again and again, until one fails
	@while $(PY) -m pytest -q -n 2 -m hypothesis --hypothesis-profile=explore tests $(ARGS); do :; done

check: $(READY) ## ruff (rules and format), mypy (strict over src), import-linter
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet src tests examples benchmarks tools
	@$(PY) -m mypy
	@$(PY) -c "from importlinter.cli import lint_imports_command; lint_imports_command()" --no-logo

format: $(READY) ## let ruff sort the imports and format the code
	@$(PY) -m ruff check --fix --quiet .
	@$(PY) -m ruff format --quiet src tests examples benchmarks tools

bench: $(READY) ## the keyed count, this engine beside its peers; or another one, BENCH=large_state
	@$(PY) -m benchmarks.$(BENCH) $(ARGS)

servers: $(READY) ## a Kafka broker and an HBase of your own on this machine, until Ctrl-C
	@$(PY) -m tools.servers $(ARGS)

compat: $(READY) ## comparisons with a real Flink: its command line, its dashboard, PyFlink's tests (FLINK_SOURCE=a checkout) and programs
	@$(PY) -m tools.compat $(ARGS)

chaos: $(READY) ## a job into Kafka, HBase and PostgreSQL: every kind of process is killed ten times; nothing is lost
	@$(PY) -m benchmarks.connector_chaos $(ARGS)

index: $(READY) ## write docs/modules.md, the index of all modules, from their docstrings
	@$(PY) -m tools.module_index

lock: $(READY) ## choose new versions within pyproject.toml, into requirements.lock
	@tools/lock.sh

clean: ## remove all files that these targets made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .cache build dist
	rm -rf spark-warehouse metastore_db derby.log
	find src tests examples benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# An archive of Spark's classes: each JVM of the tests starts with two thirds of the processor time. Tests pass without.
$(ARCHIVE): $(READY) src/rekindle/spark/class_archive.py
	@rm -rf .cache/rekindle
	@XDG_CACHE_HOME="$$(pwd)/.cache" $(PY) -m rekindle.spark.class_archive || echo "The tests run without a class archive."
	@mkdir -p .cache/rekindle && touch $@

$(READY): requirements.lock pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh $@
