# Everything that is run by name. `make test` is what CI runs.
GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: run test lint web conformance clients generate bench bench-go faults fuzz fuzz-smoke load soak

# Has the MCP SDK answer what jsbridge would answer itself, see bridge/agent/shortcut.go.
WITHOUT_SHORTCUT = JSBRIDGE_NO_SHORTCUT=true

run:
	$(GO) run ./cmd/jsbridge

# -count=1: some tests build and run programs, of which Go's test cache knows nothing.
test: lint web conformance fuzz-smoke
	$(GO) test -race -timeout 10m -count=1 ./...
	$(WITHOUT_SHORTCUT) $(GO) test -race -timeout 5m -count=1 ./bridge ./bridge/agent

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

# The TypeScript: types, unit tests, and the committed bundles against fresh ones.
web:
	cd web && npm ci --no-audit --no-fund && npm run check && npm test
	$(GO) run ./web/bundle -check

# The official MCP conformance suite, through a page in a real browser.
conformance:
	cd internal/conformance && npm ci --no-audit --no-fund
	$(GO) run ./internal/conformance
	$(WITHOUT_SHORTCUT) $(GO) run ./internal/conformance

# Real MCP clients against a page in a real browser: the table of docs/clients.md.
clients:
	cd internal/clients && npm ci --no-audit --no-fund
	$(GO) run ./internal/clients

generate:
	$(GO) generate ./web

# jsbridge next to its yardsticks and, with BENCH_PEER, another server; docs/performance.md says
# what is measured. BENCH_FLAGS="-markdown docs/performance.md" writes the figures there.
bench:
	$(GO) run ./internal/bench $(BENCH_FLAGS)

# Go's benchmarks of the call path, with allocations; BASE=<revision> compares with it.
bench-go:
	GO="$(GO)" BASE="$(BASE)" ./internal/bench/benchgo.sh

# What breaks around jsbridge, one after the other: the table of docs/reliability.md.
# Takes a quarter of an hour, and the first time as long again for another Go library.
faults:
	$(GO) run ./internal/faults

# The table of docs/load.md: with 100, 1,000 and 10,000 pages.
load:
	$(GO) run ./internal/load

# Whether memory grows; part of `.ci/run weekly`.
SOAK = 10m
soak:
	$(GO) run ./internal/load -soak $(SOAK)

# Every fuzz target for so long. -fuzzminimizetime: or Go spends most of that on
# shrinking what it found.
FUZZTIME ?= 10m
fuzz:
	@git grep -o '^func Fuzz[A-Za-z0-9]*' -- '*_test.go' | sed 's|/[^/]*:func | |' | while read -r package target; do \
		echo "$$package: $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "./$$package" </dev/null || exit 1; \
	done

# What a push breaks at once is found by a second each.
fuzz-smoke:
	$(MAKE) fuzz FUZZTIME=1s
