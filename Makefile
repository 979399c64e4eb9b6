# Commands for development. After an edit: test and lint. `.ci/run` runs lint, cross, unraced, race, slow and browser, on
# every commit; nightly is what takes longer.
GO ?= go
FUZZTIME ?= 30s
SOAK ?= 5m
GRAPHS ?= 10000
PAIRS ?= 2000
MUTANTS ?= all
SLOW ?= 1

# Of a pipe, every command must succeed.
SHELL = bash
.SHELLFLAGS = -o pipefail -c

.PHONY: all build cross test slow long cases same nightly lint race unraced graphs pairs mutants foreign browser bench bench-journal soak soak-journal corpora fuzz examples tidy

all: build lint test

build:
	$(GO) build ./...

# Type-checks all packages for Windows and macOS, which tests do not run on. `GOOS=windows go build ./cmd/runteam` also
# compiles and links, and compiles the standard library and SQLite for that.
cross:
	RUNTEAM_CROSS=1 $(GO) test . -run 'TestTypesFitOnOtherSystems$$' -count 1

test:
	$(GO) test ./...

# What the fast tests leave out: crashes, differential runs and long properties, and the servers of other projects. They
# share nothing, so -j2 runs them side by side.
slow: long foreign
long:
	tests=$$($(LIST) slow) && RUNTEAM_SLOW=$(SLOW) $(GO) test -vet=off -timeout 45m $$tests
# The same tests with all their cases.
cases:
	$(MAKE) long SLOW=all

# Compares the command with that of an earlier commit: plans, prompts, and how both show and resume each recorded run
# from each of its batches on. slow does that from some of them.
same:
	RUNTEAM_SLOW=1 SAME=all $(GO) test ./internal/same -count 1 -timeout 0

# What takes too long for every commit.
nightly: cases same mutants graphs pairs fuzz soak soak-journal

# Formatting, vet, modern forms, and go.mod as `go mod tidy` would write it; foreign/ and browser/ are modules of their own.
lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) fix -diff ./...
	$(GO) mod tidy -diff
	cd foreign && $(GO) mod tidy -diff && $(GO) vet ./...
	cd browser && $(GO) mod tidy -diff && $(GO) vet ./...

# Applies faults to the gate, one at a time, and runs the test that must notice each (docs/mutants.md): all, or as many
# as MUTANTS says.
mutants:
	RUNTEAM_MUTANTS=$(MUTANTS) $(GO) test -vet=off ./internal/mutants -run TestMutantsAreNoticed -count 1 -timeout 0 -v | grep -E "^ *---|^(ok|FAIL)|passes with"

# The fast tests, each once: race runs under the race detector the packages that start goroutines and, of others, the
# tests that do; unraced runs the rest. slow has those that the race detector runs in part (internal/slowtest).
# SQLite, translated from C, is spared both detectors, of races and of unsafe pointers: they multiply its time. The
# garbage collector runs less often, since it takes longest under the race detector.
LIST = $(GO) run ./internal/slowtest/list
RACE = GOGC=400 $(GO) test -race -vet=off -timeout 45m -gcflags='modernc.org/...=-race=false -d=checkptr=0'
race:
	tests=$$($(LIST) packages) && $(RACE) $$tests
	tests=$$($(LIST) concurrent) && $(RACE) $$tests
unraced:
	tests=$$($(LIST) rest) && $(GO) test -vet=off $$tests

# Tests against model servers, MCP servers and a client of other projects. They need Node 20 or later, and the
# packages of foreign/package.json from npm.
foreign:
	cd foreign && npm ci --silent && $(GO) vet ./... && $(GO) test -count 1 ./...

# The page of the inspector in the Chromium of this computer. They need it, and axe-core of browser/package.json
# from npm. `go test -update -run Views` in browser/ writes the screenshots of docs/images, and
# `go test -run '^$$' -bench .` measures the page.
browser:
	cd browser && npm ci --silent && $(GO) vet ./... && RUNTEAM_BROWSER=1 $(GO) test -count 1 ./...

# Runs of 1,000 to 100,000 tasks compared with the least possible cost, folders that tasks pass on, assignment
# of tasks, reading a plan of 1,000, replies, the gate, redaction and the flow table.
bench:
	$(GO) test ./internal/engine -run '^$$' -bench 'Benchmark(Run|RunGated|Floor)$$' -benchtime 1s
	$(GO) test ./internal/engine -run '^$$' -bench 'Benchmark(FanOut|ResumeOpenQuestions)$$' -benchtime 3x
	$(GO) test ./internal/engine -run '^$$' -bench 'BenchmarkPolicyLock$$' -benchtime 300x
	$(GO) test ./internal/engine -run '^$$' -bench 'Benchmark(Messages|MessagesFloor|UnusedEdges|Children)$$' -benchtime 5x
	$(GO) test ./internal/engine -run '^$$' -bench 'BenchmarkFolderChain$$' -benchtime 3x
	$(GO) test ./internal/assign ./internal/planning -run '^$$' -bench 'Benchmark(Tasks|ParsePlan)$$' -benchtime 10x
	$(GO) test ./llm/openai -run '^$$' -bench 'BenchmarkReply$$' -benchtime 3x
	$(GO) test ./internal/gate ./redact ./internal/flow -run '^$$' -bench 'Benchmark(Between|Decide|Text|JSON|Repeated|Table)$$' -benchtime 1s

# The cost of a journal: completions per second compared with bare inserts of the same bytes, a
# run with and without a journal, loading and resuming a long run, reusing all answers of
# another, and removing old runs, alone and during other runs.
bench-journal:
	$(GO) test ./internal/journal -run '^$$' -bench 'Benchmark(Journal|Load)$$' -benchtime 2s
	TMPDIR=/tmp $(GO) test ./internal/journal -run '^$$' -bench 'BenchmarkStores$$' -benchtime 10x
	$(GO) test ./internal/journal -run '^$$' -bench 'Benchmark(Run|Reuse|Resume|Read)$$' -benchtime 3x
	$(GO) test ./internal/journal -run '^$$' -bench 'Benchmark(Remove|RunsBesideRemove)$$' -benchtime 1x

# Random runs and resumes under the race detector, for five minutes unless SOAK says otherwise.
soak:
	SOAK=$(SOAK) $(GO) test -race ./internal/engine -run 'TestSoak$$' -count 1 -v -timeout 0

# Properties of drawn graphs with branches, loops and lists: what assertions promise, equal prompts, and
# what runs again after an edit.
graphs:
	GRAPHS=$(GRAPHS) $(GO) test ./team -run 'TestGraphsHaveThePromptsOfWhatRan|TestDecisionsStayApart|TestAssertionsHoldInRuns|TestEditsAskOnlyForWhatIsNew' -count 1 -v -timeout 0

# Pairs of runs that differ above a viewer or their caller, who gets equal bytes from every route and command.
pairs:
	PAIRS=$(PAIRS) $(GO) test ./internal/cli -run '^(TestPairsOfRunsAboveAViewer|TestStoredPairsOfHiddenValues)GiveEqualBytes$$' -count 1 -v -timeout 0

# Twenty processes on one journal; five of them are killed at random moments.
soak-journal:
	SOAK=1 $(GO) test ./internal/journal -run 'ManyProcesses' -count 1 -v -timeout 20m

# What redaction finds in the corpora next to this repository, by kind; skipped if they are absent.
corpora:
	@$(GO) test ./redact -run 'Corpora$$' -count 1 -v | grep -E '^(ok|FAIL|---)|rows|spans|absent|Error' | sed 's/^ *corpora_test.go:[0-9]*: //'

# Every fuzz target, each for FUZZTIME.
fuzz:
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test $$pkg -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# The examples, offline, against their golden text.
examples:
	$(GO) test ./examples/... -count 1

tidy:
	$(GO) mod tidy
