# The commands of this repository. `make` alone lists them.

CARGO ?= cargo
PYTHON ?= python3
OUT ?= out
# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
CORRIDOR := $(TARGET)/release/corridor
SCENARIOS := crates/cli/scenarios

.DEFAULT_GOAL := help
.PHONY: help demo test soak torture bench bench-codec bench-lab bench-sim bench-radio bench-tcp \
	bench-constrained bench-core bench-paths bench-paths-lab bench-quic bench-relay bench-share \
	bench-tunnel bench-models bench-build bench-advise bench-advise-regret sensitivity python study \
	claims report instructions lint dist build build-parquet

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Show in 5 minutes what coding does on a lossy radio: a table, and out/demo.svg
	$(CORRIDOR) demo --out $(OUT)

test: ## Run all tests; the last line counts them
	@$(PYTHON) tools/test.py

# As `make soak SECONDS=3600`; SEED=... begins with that seed.
SECONDS ?= 600
soak: ## Run random tests from fresh seeds, 10 minutes: property tests, fuzzing, torture
	@$(PYTHON) tools/soak.py $(SECONDS) $(SEED)

torture: build ## Torture stations in virtual time, 100,000 seeds, minutes
	$(CORRIDOR) sim torture --seeds 100000

bench: build-parquet ## The paper's UDP tests in virtual time, minutes: out/bench/franc-sim
	$(CORRIDOR) sim run $(SCENARIOS)/bench-sim.toml --out $(OUT)/bench/franc-sim
	$(CORRIDOR) sim show $(OUT)/bench/franc-sim

bench-lab: build ## The paper's tests in real time with the kernel's TCP, an hour: out/bench/lab.json
	mkdir -p $(OUT)/bench
	$(CORRIDOR) lab run $(SCENARIOS)/bench-lab.toml --out $(OUT)/bench/lab.jsonl \
		--checks $(OUT)/bench/lab.json

bench-codec: ## The codec compared with other codecs and the machine's limits, 3 minutes: out/bench/codec.json
	$(CARGO) build --profile bench-codec --package corridor-bench --bin bench-codec
	$(TARGET)/bench-codec/bench-codec --out $(OUT)/bench

bench-sim: ## Cost of an event in the simulator, 2 minutes: out/bench/sim.json
	$(CARGO) build --release --package corridor-bench --bin bench-sim
	$(TARGET)/release/bench-sim --out $(OUT)/bench/sim.json

# With ns-3 where `NS3_PYTHON` (or python3) has its package: `pip install ns3==3.44.post0`.
bench-radio: ## The radios and their MACs compared with theory and ns-3, 10 minutes: out/bench/radio.json
	$(CARGO) build --release --package corridor-bench --bin bench-radio
	$(TARGET)/release/bench-radio --out $(OUT)/bench/radio.json

# With ns-3 as above; its recorded results are in crates/bench/data. To record them again: --record.
bench-constrained: ## Constrained networks compared with ns-3, and the cost of a transfer, 3 minutes: out/bench/constrained.json
	$(CARGO) build --release --package corridor-bench --bin bench-constrained
	$(TARGET)/release/bench-constrained --out $(OUT)/bench/constrained.json

# To record again, in an hour: remove the recording, then bench-tcp --record.
bench-tcp: ## The simulator's TCP compared with recorded and fresh runs of the kernel's, 5 minutes: out/bench/tcp.json
	$(CARGO) build --release --package corridor-bench --bin bench-tcp
	$(TARGET)/release/bench-tcp --out $(OUT)/bench/tcp.json

# Resumes after an interruption; in parts: `make bench-advise PROOF='--first 20 --networks 20'`.
bench-advise: python ## Advice for 200 random networks checked by fresh runs, a quarter of an hour: out/bench/advise.json
	$(OUT)/python/bin/python -m corridor.advise.proof $(PROOF) --out $(OUT)/bench/advise.json

# For ten networks of the same proof, into the same file.
bench-advise-regret: python ## Advice compared with an exhaustive search of 96 settings, 10 networks, minutes
	$(OUT)/python/bin/python -m corridor.advise.proof --only-exhaustive $(PROOF) \
		--out $(OUT)/bench/advise.json

# `make bench-paths SEED=1 COUNT=60` takes a few minutes; without SEED it draws and prints a seed.
bench-paths: ## Window mode compared with plain TCP on 500 drawn paths, half an hour: out/bench/paths.json
	$(CARGO) build --release --package corridor-bench --bin bench-paths
	$(TARGET)/release/bench-paths $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) \
		--out $(OUT)/bench/paths.json

# `make bench-share SEED=1 COUNT=12` takes a minute; without SEED it draws and prints a seed.
bench-share: ## How tunnels share 60 drawn bottlenecks with each other, cubic and BBR, 4 minutes: out/bench/share.json
	$(CARGO) build --release --package corridor-bench --bin bench-share
	$(TARGET)/release/bench-share $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) \
		--out $(OUT)/bench/share.json

# As `make sensitivity SENSITIVITY='--seed 1 --only policy::GAIN_MAX'`; resumes after an interruption.
sensitivity: ## Halve and double each constant of window mode's rate control on drawn paths, hours: out/sensitivity
	@$(PYTHON) tools/sensitivity.py $(SENSITIVITY)

bench-paths-lab: ## The same varying paths in the lab and the simulator, 15 minutes: out/bench/paths-lab.json
	$(CARGO) build --release --package corridor-bench --bin bench-paths
	$(CARGO) build --release --package corridor
	$(TARGET)/release/bench-paths --lab $(if $(SEED),--seed $(SEED)) --out $(OUT)/bench/paths-lab.json

# Builds QUIC libraries that nothing else needs. As `make bench-quic QUIC='--rtt-ms 40 --loss 0.1'`.
bench-quic: ## QUIC and voice through the tunnel in the lab, 25 minutes: out/bench/quic.json
	$(CARGO) build --release --package corridor-bench --features quic --bin bench-quic
	$(CARGO) build --release --package corridor
	$(TARGET)/release/bench-quic $(QUIC) --out $(OUT)/bench/quic.json

bench-relay: ## How a hub shares capacity among its neighbours, TCP over hubs in a row, minutes: out/bench/relay.json
	$(CARGO) build --release --package corridor-bench --bin bench-relay
	$(TARGET)/release/bench-relay --out $(OUT)/bench/relay.json

bench-core: ## The core's guarantees: rekeying, floods, sessions, memory, minutes: out/bench/core.json
	$(CARGO) build --release --package corridor-bench --bin bench-core
	$(TARGET)/release/bench-core --out $(OUT)/bench/core.json

# As `make bench-build BASE=v1`: also builds that commit, and compares.
bench-build: ## Duration and size of builds, half an hour: out/bench/build.json
	@$(PYTHON) tools/bench_build.py $(if $(BASE),--base $(BASE)) --out $(OUT)/bench/build.json

python: ## Build the Python package and install it in out/python, minutes
	test -x $(OUT)/python/bin/python || $(PYTHON) -m venv $(OUT)/python
	$(OUT)/python/bin/python -m pip install --quiet .

study: python ## Repeat the TCP/NC paper's experiments with fewer runs: out/study
	$(OUT)/python/bin/corridor-study reproduce kim --quick --out $(OUT)/study

claims: python ## Check the papers' simulated claims, ten runs of each point or quick ones, 9 minutes: out/claims
	$(OUT)/python/bin/corridor-study reproduce franc kim --claims --replications 10 --out $(OUT)/claims
	$(OUT)/python/bin/corridor-study reproduce catwoman betzler --quick --out $(OUT)/claims

report: ## Build the site: four papers, measurements, tutorials: out/report/site/index.html
	test -x $(OUT)/python/bin/python || $(PYTHON) -m venv $(OUT)/python
	@echo "building the Python package: minutes the first time"
	$(OUT)/python/bin/python -m pip install --quiet --constraint python/constraints.txt '.[report]'
	$(OUT)/python/bin/corridor-study report --out $(OUT)/report

bench-models: python ## Time to compute a million points of the models
	$(OUT)/python/bin/python -m corridor.models.bench

# As `make bench-tunnel GATES=--quick`, or GATES='--only cpu'; GATES=--resume resumes;
# GATES='--against OLD' compares this program with another one, gate by gate.
bench-tunnel: build ## Window mode's guarantees, checked in the lab, 45 minutes: out/bench/tunnel.json
	$(CORRIDOR) lab gates $(GATES) --out $(OUT)/bench

instructions: ## Compare the codec's instruction counts (valgrind) with the baseline
	$(CARGO) build --profile bench-codec --package corridor-bench --bin bench-codec
	$(TARGET)/bench-codec/bench-codec --instructions

lint: ## Check formatting, lints, documentation, and this repository's own rules
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) clippy --package corridor --no-default-features --quiet -- -D warnings
	$(CARGO) clippy --package corridor --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --workspace --no-deps --quiet
	@$(PYTHON) tools/tidy.py
	@$(PYTHON) tools/circles.py

dist: ## Build the binary for packages: target/dist/corridor, debug information beside it
	$(CARGO) build --profile dist --package corridor
	@$(PYTHON) tools/bench_build.py --separate $(TARGET)/dist/corridor

build:
	@$(CARGO) build --release --package corridor

build-parquet:
	@$(CARGO) build --release --package corridor --features parquet
