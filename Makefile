# Plain targets over the go command; `make` alone lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Go may be installed without being on PATH. The tools need it there.
export PATH := $(PATH):/usr/local/go/bin
GO ?= go

# The header of NVML marks old names of functions deprecated, all of which its
# binding mentions.
export CGO_CFLAGS ?= -g -O2 -Wno-deprecated-declarations

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)

# The end-to-end tests: whole commands, run as their users run them.
E2E := ^Test(E2E|Script|Published)

# Packages whose code runs in several goroutines, and those whose results must
# moreover be the same on one core as on two: of their random tests some draws.
RACE       ?= ./perfmodel/... ./planner/... ./profiler/... ./cmd/server ./scheduler/goodput
RACE_CORES ?= ./scheduler/policy ./scheduler/sim ./scheduler/study ./scheduler/schedulertest

FUZZTIME ?= 30s
PKG      ?= ./...
BENCH    ?= .
COUNT    ?= 10

# The linter, built from source at this version into bin/tools.
LINTER_VERSION := v2.15.0
LINTER := bin/tools/golangci-lint-$(LINTER_VERSION)

# Published data sets that some tests compare with.
ifndef PACER_SHARED
ifneq ($(wildcard ../shared/data),)
export PACER_SHARED := $(abspath ../shared)
endif
endif

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

.PHONY: build
build: need-go ## build bin/pacer
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/pacer ./cmd/pacer

.PHONY: check
check: need-go ## quick: formatting, vet, the shorter tests
	@$(gofmt)
	$(GO) vet ./...
	$(GO) test -short ./...

.PHONY: test
test: lint unit race e2e ## what CI runs: lint, unit, race and end-to-end tests
	@[ -n "$${PACER_SHARED:-}" ] || echo "make: not run: tests that compare with published data; docs/results.md says what PACER_SHARED is to hold"
	@$(torch) || echo "make: not run: tests that train; apt-get install -y --no-install-recommends python3-torch, or set PACER_PYTHON"
	@echo "make test: passed"

.PHONY: lint
lint: need-go $(LINTER) ## formatting, vet, staticcheck and more (.golangci.yml), import arrows
	@$(gofmt)
	$(LINTER) run ./...
	$(GO) test -run '^Test(Arrows|Tree)' ./cmd/pacer

.PHONY: unit
unit: need-go ## every test but the end-to-end ones
	$(GO) test -timeout 20m -skip '$(E2E)' ./...
	@command -v clp >/dev/null || echo "make: not run: linear programmes against CLP and GLPK; apt-get install -y --no-install-recommends coinor-clp glpk-utils"
	@! command -v clp >/dev/null || $(GO) test -tags clp -run 'CLP|GLPK' ./scheduler/internal/lp

.PHONY: race
race: need-go need-cc ## tests under the race detector, the scheduler's on one and two cores
	$(GO) test -race $(RACE)
	RAPID_CHECKS=$${RAPID_CHECKS:-5} $(GO) test -race -cpu 1,2 $(RACE_CORES)

.PHONY: e2e
e2e: build ## the built binary, from the command line
	bin/pacer version | grep -qF '$(VERSION)'
	PACER_BIN='$(CURDIR)/bin/pacer' $(GO) test -count=1 -run '$(E2E)' ./cmd/...

.PHONY: fuzz
fuzz: need-go ## every fuzz target in turn: make fuzz FUZZTIME=30s
	@failed=(); while read -r dir target; do \
		echo "== $$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || failed+=("$$target"); \
	done < <(grep -rE --include='*_test.go' '^func Fuzz' . | sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort); \
	if [ $${#failed[@]} -gt 0 ]; then echo "make: failed: $${failed[*]}" >&2; exit 1; fi

.PHONY: bench
bench: need-go ## ten runs of each benchmark, kept in out/ for benchstat: make bench PKG=./planner BENCH=Rank
	@mkdir -p out
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 0 $(PKG) | tee out/bench-$(VERSION).txt
	@echo "compare two with: go run golang.org/x/perf/cmd/benchstat@latest OLD out/bench-$(VERSION).txt"

.PHONY: bench-scale
bench-scale: need-go ## a million jobs on 100,000 devices under three policies, on one core
	$(GO) run ./bench/scale

.PHONY: experiments
experiments: ## list what makes the tables of docs/results.md, or run some: make experiments RUN=online, RUN=all
	@if [ -z "$(RUN)" ]; then sed -nE '2s/^# ([a-z0-9-]+)\.sh: /\1\t/p' --separate bench/experiments/*.sh | expand -t 20; exit; fi; \
	$(MAKE) --no-print-directory build; \
	for name in $(if $(filter all,$(RUN)),$(basename $(notdir $(wildcard bench/experiments/*.sh))),$(RUN)); do \
		echo "== $$name"; bench/experiments/$$name.sh; done

.PHONY: bench-planner
bench-planner: build ## what the planner's choices among measured plans cost, and whether published plans are legal and fit
	bin/pacer bench planner --shared "$${PACER_SHARED:?set it to the directory of the data sets, see docs/results.md}"

.PHONY: soak
soak: need-go ## hours of kills and random runs, before a release: RAPID_CHECKS=20000 make soak
	PACER_SOAK=1 RAPID_CHECKS=$${RAPID_CHECKS:-20000} $(GO) test -count=1 -timeout 0 ./...

.PHONY: soak-sim
soak-sim: need-go ## of soak, the 10,000 random simulations with failures alone: half a minute
	PACER_SOAK=1 $(GO) test -count=1 -timeout 30m -run 'TestSoak$$' -v ./scheduler/schedulertest

.PHONY: rewrite
rewrite: need-go ## renew the expected files of golden and scenario tests; read the diff
	$(GO) test -count=1 $$(grep -rlE --include='*_test.go' 'cockroachdb/datadriven"|"rewrite"' . | xargs -n1 dirname | sort -u) -rewrite

.PHONY: verify
verify: need-go ## formatting and go.mod are as they should be, nothing uncommitted
	@$(gofmt)
	$(GO) mod tidy -diff
	$(GO) mod verify
	@dirty="$$(git status --porcelain)"; if [ -n "$$dirty" ]; then echo "make: uncommitted:" >&2; echo "$$dirty" >&2; exit 1; fi

.PHONY: demo
demo: build ## the whole road on built-in data, without network: fit, plan, curve, policies compared
	bin/pacer demo

.PHONY: clean
clean: ## remove what was built
	rm -rf bin out

torch = "$${PACER_PYTHON:-/usr/bin/python3}" -c "import torch" 2>/dev/null

define gofmt
bad="$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go' | while read -r f; do [ -e "$$f" ] && echo "$$f"; done))"; \
	if [ -n "$$bad" ]; then echo "make: not formatted, run gofmt -w:" >&2; echo "$$bad" >&2; exit 1; fi
endef

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { \
		v="$$(sed -n 's/^go //p' go.mod)"; \
		echo "make: no go command. Install Go $$v or later, such as: curl -L https://go.dev/dl/go$$v.linux-amd64.tar.gz | tar -C /usr/local -xz" >&2; exit 1; }

.PHONY: need-cc
need-cc: need-go
	@cc="$$($(GO) env CC)"; command -v "$${cc%% *}" >/dev/null || { \
		echo "make: no C compiler ($$cc), the race detector needs one: apt-get install -y gcc libc6-dev" >&2; exit 1; }

$(LINTER): | need-go
	GOBIN='$(CURDIR)/bin/tools' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER_VERSION)
	@mv bin/tools/golangci-lint $@
