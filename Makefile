# Every target sets up what it needs: environments under .venvs/, output under build/ and dist/. Repeats are quick.
# The work is done by cargo, pip and the small programs in tools/; this file only says what depends on what.

SHELL := /bin/bash -o pipefail
PYTHON ?= python3
TOOLS := .venvs/tools/bin
XTASK := cargo run --quiet --package xtask --
VERSION := $(shell cat VERSION)
RUST_SOURCES := $(shell find crates spec Cargo.toml Cargo.lock VERSION pyproject.toml -type f -not -path '*/target/*' 2>/dev/null)
PYTHON_SOURCES := $(shell find python/hermetic -type f \( -name '*.py' -o -name '*.pyi' -o -name py.typed \) 2>/dev/null)
GO_CODE := go examples/polyglot/go
PYTHON_CODE := python tests benches examples tools
# What to run: make test-python PYTEST='-k clock', make test-rust CARGO='--package hermetic-model', make bench ROWS=import.
PYTEST ?=
CARGO ?=
GO ?=
ROWS ?=
KEEP ?=
FUZZ_SECONDS ?= 20
SOAK_MINUTES ?= 10

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-python test-stricttest test-go test-node lint fix bench fuzz soak soak-postgres docs wheel dist clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: wheel ## a flaky suite: watch it fail, record it, replay it, make it repeatable
	@$(PYTHON) tools/environments.py demo -r examples/requirements.txt --wheel "$$(cat build/wheels/latest)" >/dev/null
	@.venvs/demo/bin/python examples/demo.py

test: wheel ## all suites: Rust, Go, Node, and Python on each CPython from 3.10 on that this machine has
	@$(PYTHON) tools/suites.py rust go node lockstep python stricttest --wheel "$$(cat build/wheels/latest)"

test-rust: ## Rust's suite; CARGO='--package NAME' narrows it
	@$(PYTHON) tools/suites.py rust -- $(CARGO)

test-go: ## Go's suite; GO='./hygiene -run NAME' narrows it
	@$(PYTHON) tools/suites.py go -- $(GO)

test-node: ## Node's suite, with vitest, jest and mocha as its adapters are tested
	@$(PYTHON) tools/suites.py node

test-python: wheel ## Python's suite on each CPython; PYTEST='FILE -k WORD' narrows it, ON=3.12 chooses one
	@$(PYTHON) tools/suites.py python:$(ON) --wheel "$$(cat build/wheels/latest)" -- $(PYTEST)

test-stricttest: wheel ## the floor's suite on each CPython; PYTEST and ON as above
	@$(PYTHON) tools/suites.py stricttest:$(ON) --wheel "$$(cat build/wheels/latest)" -- $(PYTEST)

lint: $(TOOLS)/.ready ## formats, warnings, layers, generated files, types
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(XTASK) gen --check
	$(XTASK) tidy
	$(XTASK) layers
	$(TOOLS)/ruff format --check --quiet $(PYTHON_CODE)
	$(TOOLS)/ruff check --quiet $(PYTHON_CODE)
	$(TOOLS)/mypy
	@files="$$(gofmt -l $(GO_CODE))"; test -z "$$files" || { echo "gofmt: not formatted: $$files"; exit 1; }
	cd go && go vet ./...
	@test -d typescript/node_modules || npm ci --prefix typescript
	npm run --silent --prefix typescript lint
	@echo "lint: clean"

fix: $(TOOLS)/.ready ## repairs what lint can repair by itself
	cargo fmt --all
	$(XTASK) gen
	$(TOOLS)/ruff check --quiet --fix $(PYTHON_CODE)
	$(TOOLS)/ruff format --quiet $(PYTHON_CODE)
	gofmt -w $(GO_CODE)
	npm run --silent --prefix typescript fix

bench: wheel ## ratios against the peers, as docs/benchmarks.md keeps them; ROWS=WORD runs some, and keeps them with KEEP=1
	@$(PYTHON) benches/bench.py --wheel "$$(cat build/wheels/latest)" $(if $(ROWS),--rows $(ROWS)) \
	    $(if $(ROWS),$(if $(KEEP),--write docs/benchmarks.md),--write docs/benchmarks.md)

fuzz: .venvs/cargo/bin/cargo-fuzz ## each decoder's fuzz target for FUZZ_SECONDS (20)
	@# The coverage instrumentation is an unstable flag; RUSTC_BOOTSTRAP lets the stable compiler take it.
	@set -e; for target in fuzz/fuzz_targets/*.rs; do \
	    echo "--- fuzz $$(basename $$target .rs)"; \
	    RUSTC_BOOTSTRAP=1 $< run --sanitizer none "$$(basename $$target .rs)" -- -max_total_time=$(FUZZ_SECONDS) 2>&1 | tail -3; \
	done

soak: wheel ## random threads, waits, forks and kills in sandboxes, for SOAK_MINUTES (10)
	@$(PYTHON) tools/environments.py soak --wheel "$$(cat build/wheels/latest)" >/dev/null
	@.venvs/soak/bin/python tools/soak.py --minutes $(SOAK_MINUTES)

soak-postgres: wheel ## a thousand databases in sequence, and a hundred owners killed at random moments
	@$(PYTHON) tools/environments.py soak-postgres -r tests/python/requirements.txt --wheel "$$(cat build/wheels/latest)" \
	    --project python/stricttest >/dev/null
	@.venvs/soak-postgres/bin/python tools/soak_postgres.py

docs: ## Rust's reference pages, warnings refused; then every link between the Markdown pages
	@# For people who work here: private items have pages too, and module headers link to them.
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --quiet --workspace --no-deps --document-private-items
	$(PYTHON) tools/links.py

wheel: build/wheels/latest ## one wheel for every CPython from 3.10 on, into build/wheels/

dist: $(TOOLS)/.ready ## wheel and sdist into dist/, each installed alone in a clean environment and tried
	rm -rf dist && mkdir -p dist
	$(TOOLS)/maturin sdist --quiet --out dist
	$(TOOLS)/maturin build --quiet --release --strip --out dist
	$(PYTHON) tools/smoke.py dist/*.whl
	$(PYTHON) tools/smoke.py dist/*.tar.gz

clean: ## removes environments and output; cargo's own target folder stays
	rm -rf .venvs build dist

.venvs/cargo/bin/cargo-fuzz:
	cargo install --quiet --locked --root .venvs/cargo cargo-fuzz

$(TOOLS)/.ready: tools/requirements.txt tools/environments.py
	@$(PYTHON) tools/environments.py tools -r tools/requirements.txt >/dev/null
	@touch $@

build/wheels/latest: $(TOOLS)/.ready $(RUST_SOURCES) $(PYTHON_SOURCES)
	@echo "building the wheel"
	@rm -rf build/wheels/next && mkdir -p build/wheels/next
	@$(TOOLS)/maturin build --quiet --release --out build/wheels/next
	@rm -f build/wheels/*.whl && mv build/wheels/next/*.whl build/wheels/
	@ls build/wheels/*.whl > $@
