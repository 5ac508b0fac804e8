# make demo, make test: each does all of its own set-up, inside .venv
PYTHON ?= python3
PIP_ARGS ?=
BIN := .venv/bin

.PHONY: demo test test-slow coverage bench results check format audit clean

demo: .venv/.demo-ready
	$(BIN)/siesta demo

test: .venv/.dev-ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not slow"  # two workers, a thread each

coverage: .venv/.dev-ready  # branch coverage of what `make test` runs
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not slow" --cov --cov-report=term

test-slow: .venv/.dev-ready
	$(BIN)/pytest -m slow

bench: .venv/.dev-ready
	$(BIN)/python -m benchmarks

results: .venv/.dev-ready  # every table and figure of README and docs, from results/
	$(BIN)/python -m scripts.results

check: .venv/.dev-ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev-ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

audit:  # known vulnerabilities of the pinned packages; needs access to PyPI
	$(PYTHON) -m venv .audit
	.audit/bin/pip install --quiet $(PIP_ARGS) pip-audit
	.audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

clean:
	rm -rf .venv .audit

.venv/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "siesta needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv

.venv/.demo-ready: pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/pip install --quiet --constraint constraints.txt $(PIP_ARGS) --editable '.[demo]'
	touch $@

.venv/.dev-ready: pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/pip install --quiet --constraint constraints.txt $(PIP_ARGS) --editable '.[dev]'
	touch .venv/.demo-ready $@
