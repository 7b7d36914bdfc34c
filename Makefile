# Everything that is run by name. `make test` is what CI runs.
GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: run test lint web generate bench fuzz

run:
	$(GO) run ./cmd/jsbridge

test: lint web
	$(GO) test -race -timeout 10m ./...

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

# The TypeScript: types, unit tests, and the committed bundles against fresh ones.
web:
	cd web && npm ci --no-audit --no-fund && npm run check && npm test
	$(GO) run ./web/bundle -check

generate:
	$(GO) generate ./web

bench:
	$(GO) run ./internal/bench

fuzz:
	$(GO) test -run '^$$' -fuzz FuzzParse -fuzztime 60s ./manifest
	$(GO) test -run '^$$' -fuzz FuzzCheckArguments -fuzztime 60s ./manifest
