# `make` says what there is. Every check of `make test` also runs alone.

CARGO ?= cargo
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test check lint clippy features fmt deny unit loom shuttle rules doc smoke fuzz bench compare soak dist

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

setup: ## Install what the checks need, or say what to install
	@scripts/setup

run: ## Start a gateway, in front of mocks or as ARGS="--upstream http://…" says
	$(CARGO) run --release --locked -- up $(ARGS)

test: ## Everything that must pass before a change is merged; one command, also on a fresh machine
	@scripts/test

check: ## The inner loop: formatting, clippy, and the quick tests of the crates that changed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@scripts/unit --changed

lint: deny clippy ## Formatting, clippy and the dependencies

clippy: ## Formatting and clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

features: ## The library with each of its features alone (two minutes; part of `make soak`)
	@scripts/features

deny: ## Licences, sources and duplicates of the dependencies
	@scripts/deny

fmt: ## Format the code
	$(CARGO) fmt --all

unit: ## Unit, integration and documentation tests; some of them by ARGS="gateway drill"
	@scripts/unit $(ARGS)

# With the whole workspace their dependencies are those of the other tests, and not built again.
loom: ## Every interleaving of the in-flight tracker, of the retry budget and of the windowed channel
	$(CARGO) test --workspace --locked --features tidegate-core/__loom,tidegate/__loom \
		--test loom_in_flight --test loom_retry_budget --test loom_channel

shuttle: ## Many random interleavings of the windowed channel and of the queue, longer than loom can search through
	$(CARGO) test --workspace --locked --features tidegate/__shuttle --test shuttle_channel --test shuttle_queue

doc: ## The API documentation
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

smoke: ## Every benchmark for a few seconds, to see that it works
	@scripts/bench-smoke

fuzz: ## Fuzz every parser that meets the outside for 20 seconds, or some by ARGS="frames lines --seconds 600"
	@scripts/fuzz $(ARGS)

rules: ## The alerts: their syntax, when each fires, and that each has its runbook
	@scripts/rules

bench: ## Measure decisions, queues, the gateway, the ingestion and tasks beside their peers, refusals and memory (about 25 minutes)
	@scripts/bench-deps
	$(CARGO) build --release --locked
	$(CARGO) bench --locked -p tidegate --bench admission --bench routing --bench outbox
	$(CARGO) bench --locked -p tidegate --bench channel --bench wire --bench tariff --bench store --bench client --bench claims
	bench/gateway.py
	bench/rejection.py
	bench/memory.py
	bench/ingest.py
	bench/tasks.py
	bench/progress.py

compare: ## The same drills on Tidegate, haproxy, nginx and Envoy, into docs/benchmarks.md (about 40 minutes)
	@scripts/bench-deps
	$(CARGO) build --release --locked
	bench/compare.py --write docs/benchmarks.md $(ARGS)

soak: features ## Every scenario in full: 200 seeds simulated, and the real drill (hours)
	$(CARGO) build --release --locked
	@scripts/soak

dist: ## The stripped binary and its symbols, in target/dist/package
	@scripts/dist
