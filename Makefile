# Plain targets over the go command; `make` alone lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Go may be installed without being on PATH. The tools need it there.
export PATH := $(PATH):/usr/local/go/bin
GO ?= go

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)

# The end-to-end tests, all in packages below cmd: whole commands, run as their users run them.
# bench/gotest/stages_test.go checks that unit and e2e together run every test.
E2E     := ^Test(E2E|Script)
E2E_PKG := ./cmd/pacer ./cmd/server ./cmd/server/page

# Of them those on Slurm, Kubernetes and hosts with SSH, which mostly wait: they run beside the others.
CLUSTERS := ^TestE2E(Slurm|Kubernetes|Kueue|SSH|WatchNodes)

# The race detector makes tests several times as long, and finds nothing in one goroutine. It runs packages that start
# goroutines, and of others the tests that do: bench/gotest/race_test.go checks the lists. It leaves out the longest
# tests and four fifths of the draws of random tests, of the scheduler 5. All of them run in unit.
RACE       ?= ./planner/remote ./profiler ./profiler/device ./profiler/executor ./profiler/runner ./cmd/server ./cmd/server/access \
	./cmd/server/limits ./cmd/server/simqueue ./scheduler/learn ./scheduler/live ./scheduler/live/recording ./scheduler/policy/synth
CONCURRENT := Concurrent|Parallel|OneAtATime|CloseWaits|Backup|Verify|Runner|Synth|^Test(Conformance|Scenarios)$$/^synth$$
RACE_SOME  ?= ./perfmodel/atomicfile ./perfmodel/family/analytic ./perfmodel/registry ./planner ./profiler/store \
	./profiler/worker ./scheduler/internal/lp ./scheduler/policy/builtin ./scheduler/study

# Packages of the scheduler that start as many goroutines as there are cores: their results must also be equal on one.
# race_test.go checks that there are no others.
ONE_CORE ?= ./scheduler/policy/builtin ./scheduler/study

# Packages that run for minutes start first, so that two cores are busy to the end.
LONGEST := ./bench ./scheduler/policy/builtin ./scheduler/live/kubernetes ./profiler/worker ./cmd/server/page \
	./scheduler/live/slurm ./bench/accuracy ./profiler/runner

FUZZTIME ?= 30s
PKG      ?= ./...
BENCH    ?= .
COUNT    ?= 10

# The linter is built from source once per machine, for every clone. One that was built
# with an older Go cannot read today's code.
LINTER_VERSION := v2.15.0
TOOLS  := $(or $(XDG_CACHE_HOME),$(addsuffix /.cache,$(HOME)),$(CURDIR)/bin)/pacer/tools
LINTER := $(TOOLS)/golangci-lint-$(LINTER_VERSION)-$(shell PATH='$(PATH)' $(GO) env GOVERSION 2>/dev/null)

# The control plane of Kubernetes and an S3 server, likewise built once per machine for every version of their
# sources. Tests use them where they are built. bin/engines is for tests that run without make.
ENGINES_SRC := scheduler/live/engines
ENGINES     := $(TOOLS)/engines-$(shell cat $(ENGINES_SRC)/go.* $(ENGINES_SRC)/crds.txt $(ENGINES_SRC)/*/*.go $(ENGINES_SRC)/*/go.* | sha256sum | cut -c1-16)
ifneq ($(wildcard $(ENGINES)/kubectl),)
export PACER_ENGINES := $(ENGINES)
endif

# Runs tests and counts the skipped ones by reason; V=-skips lists each. Tests make much garbage in small
# heaps: collecting it less often saves a fifth of their time. lint vets, and no test reads debugging data.
GOTEST = GOGC=$${GOGC:-400} $(GO) run ./bench/gotest $(V) -vet=off -ldflags=-w
RACED  = $(GOTEST) -race -short -timeout 60m

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
build: need-go wasm ## build bin/pacer
	$(GO) build -tags wasmpage -ldflags '$(LDFLAGS)' -o bin/pacer ./cmd/pacer

# What pacer page writes: the planner for browsers. gzip -n keeps the file equal for equal code.
WASM := cmd/server/page/wasm

# protoc is of the system, its plugins are of these versions. The generated code is committed.
PROTOC_GEN_GRPC := v1.6.0

.PHONY: proto-plugins
proto-plugins: need-go
	@mkdir -p bin/proto
	GOBIN='$(CURDIR)/bin/proto' $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go
	GOBIN='$(CURDIR)/bin/proto' $(GO) install google.golang.org/grpc/cmd/protoc-gen-go-grpc@$(PROTOC_GEN_GRPC)

.PHONY: proto
proto: proto-plugins ## generate cmd/server/pacerpb from pacer.proto
	@command -v protoc >/dev/null || { echo "make: protoc is missing: apt-get install -y protobuf-compiler"; exit 1; }
	PATH='$(CURDIR)/bin/proto':"$$PATH" protoc -I cmd/server/pacerpb --go_out=cmd/server/pacerpb --go_opt=paths=source_relative \
		--go-grpc_out=cmd/server/pacerpb --go-grpc_opt=paths=source_relative pacer.proto

# Functions of parsers of files are not inlined: it is 7 % smaller, and they do not take the time of an answer.
PARSERS := github.com/goccy/go-yaml mvdan.cc/sh/v3 github.com/BurntSushi/toml github.com/pacer-ml/pacer/planner/launch
.PHONY: wasm
wasm: need-go
	GOOS=js GOARCH=wasm $(GO) build -trimpath -ldflags '-s -w' $(PARSERS:%=-gcflags='%/...=-l') -o $(WASM)/pacer.wasm ./$(WASM)
	@gzip -n -9 -c $(WASM)/pacer.wasm > $(WASM)/pacer.wasm.gz && cp "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" $(WASM)/

# The symbols are left out, and the paths of this machine. zstd needs no more than 128 MiB to unpack it.
.PHONY: dist
dist: need-go ## build out/pacer-OS-ARCH.zst without Kubernetes, to copy to a machine that measures
	@command -v zstd >/dev/null || { echo "make: zstd is missing: apt-get install -y zstd"; exit 1; }
	@mkdir -p out
	$(GO) build -trimpath -tags nokubernetes -ldflags '-s -w $(LDFLAGS)' -o out/pacer-dist ./cmd/pacer
	zstd -q -f -9 --long=27 -T0 --rm out/pacer-dist -o "out/pacer-$$($(GO) env GOOS)-$$($(GO) env GOARCH).zst"
	@ls -l out/pacer-*.zst | awk '{printf "%s: %.1f MB\n", $$NF, $$5 / 1e6; if ($$5 > 25e6) {print "make: larger than 25 MB"; exit 1}}'

# Static, so that the image needs nothing else, and without NVML and Kubernetes, which pacer serve does not need.
IMAGE   ?= pacer
BUILDER ?= $(firstword $(foreach b,buildah podman docker,$(if $(shell command -v $(b)),$(b))))

.PHONY: image
image: need-go ## build an image of pacer serve with buildah, podman or docker: make image IMAGE=registry/pacer:1
	@[ -n '$(BUILDER)' ] || { echo "make: buildah, podman or docker is missing: apt-get install -y buildah"; exit 1; }
	@mkdir -p out/image
	CGO_ENABLED=0 $(GO) build -trimpath -tags nokubernetes -ldflags '-s -w $(LDFLAGS)' -o out/image/pacer ./cmd/pacer
	@cp /etc/ssl/certs/ca-certificates.crt out/image/
	$(BUILDER) build -t '$(IMAGE)' -f cmd/server/deploy/Containerfile out/image

.PHONY: check
check: need-go ## quick: formatting, vet, the shorter tests
	@$(gofmt)
	$(GO) vet ./...
	$(GO) test -short ./...

# Three stages run at a time, since some tests wait for processes, end-to-end tests most of all. The tests of lint are
# part of unit.
.PHONY: test
test: ## what CI runs: lint, unit, race and end-to-end tests; V=-skips lists every skipped test
	@status=0; { $(MAKE) --no-print-directory lint-code build && $(MAKE) --no-print-directory -j3 -o build e2e unit race; } || \
		status=$$?; $(missing); \
	if [ $$status = 0 ]; then echo "make test: passed"; else echo "make test: failed"; fi; exit $$status

.PHONY: lint
lint: lint-code ## formatting, vet, staticcheck and more (.golangci.yml), import arrows, links, plain words
	$(GO) test -vet=off -ldflags=-w -run '^Test(Arrows|Tree|Links|Architecture|DocumentedFlags)' ./cmd/pacer

.PHONY: lint-code
lint-code: need-go $(LINTER)
	@$(gofmt)
	$(LINTER) run ./...
	$(GO) run ./bench/words

.PHONY: unit
unit: need-go ## every test except the end-to-end ones, and those of concurrent schedulers on one core again
	$(GOTEST) -timeout 60m -skip '$(E2E)' $(LONGEST) ./...
	RAPID_CHECKS=$${RAPID_CHECKS:-25} $(GOTEST) -short -cpu 1 -run '$(CONCURRENT)' -timeout 60m $(ONE_CORE)
	@[ "$${CI:-}" != true ] && ! command -v clp >/dev/null || $(GO) test -tags clp -run 'CLP|GLPK' ./scheduler/internal/lp

.PHONY: race
race: need-go need-cc ## the shorter tests with several goroutines, under the race detector
	$(RACED) $(RACE)
	RAPID_CHECKS=$${RAPID_CHECKS:-25} $(RACED) -run '$(CONCURRENT)' $(RACE_SOME)

.PHONY: e2e e2e-clusters e2e-others
e2e: e2e-clusters e2e-others ## the built binary, from the command line

E2E_TEST = PACER_BIN='$(CURDIR)/bin/pacer' $(GOTEST) -count=1 -timeout 60m

e2e-clusters: build
	$(E2E_TEST) -run '$(CLUSTERS)' ./cmd/pacer

e2e-others: build
	bin/pacer version | grep -qF '$(VERSION)'
	$(E2E_TEST) -run '$(E2E)' -skip '$(CLUSTERS)' $(E2E_PKG)

.PHONY: engines
engines: need-go $(ENGINES)/kubectl ## a real control plane of Kubernetes, Kueue and an S3 server for tests: more than 13 minutes of processor time, 3 GB of build cache
	@mkdir -p bin && ln -sfn '$(ENGINES)' bin/engines && echo '$(ENGINES)'

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

.PHONY: compare
compare: need-go ## every difference between the outputs of a commit and of this tree: make compare OLD=COMMIT RUN=simulate
	@[ -n "$(OLD)" ] || { echo "make: want OLD=COMMIT" >&2; exit 2; }
	$(GO) run ./bench/compare -commit '$(OLD)' -run '$(RUN)'

.PHONY: mutate
mutate: need-go ## changes of a package that none of its tests notices: make mutate PKG=./planner MOST=50
	@[ '$(PKG)' != ./... ] || { echo "make: want PKG=./PACKAGE" >&2; exit 2; }
	$(GO) run ./bench/mutate -most $(or $(MOST),100) '$(PKG)'

.PHONY: bench-scale
bench-scale: need-go ## a million jobs on 100,000 devices under three policies, on one core
	$(GO) run ./bench/scale

.PHONY: experiments
experiments: ## list the experiments behind docs/benchmarks, or run some: make experiments RUN=online, RUN=all
	@if [ -z "$(RUN)" ]; then sed -nE '2s/^# ([a-z0-9-]+)\.sh: /\1\t/p' --separate bench/experiments/*.sh | expand -t 20; exit; fi; \
	$(MAKE) --no-print-directory build; \
	for name in $(if $(filter all,$(RUN)),$(basename $(notdir $(wildcard bench/experiments/*.sh))),$(RUN)); do \
		echo "== $$name"; bench/experiments/$$name.sh; done

.PHONY: bench-planner
bench-planner: build ## regret of the planner's choices among measured plans; whether published plans are legal and fit
	bin/pacer bench planner --shared "$${PACER_SHARED:?set it to the directory of the data sets, see docs/benchmarks/README.md}"

.PHONY: abuse
abuse: need-go ## hostile clients of pacer serve, on an idle machine: large bodies, slow and heavy clients, a full disk
	PACER_ABUSE=1 $(GO) test -count=1 -timeout 30m -run '^Test(E2E)?Abuse' -v ./cmd/server ./cmd/server/limits ./cmd/pacer
	$(GO) test -count=1 -timeout 30m -run '^Test(StoreOnFullDisk|OpenOnFullDisk)$$' -v ./profiler/store

.PHONY: soak
soak: need-go ## hours of kills, random runs and a loaded server, before a release: RAPID_CHECKS=20000 make soak
	PACER_SOAK=1 RAPID_CHECKS=$${RAPID_CHECKS:-20000} $(GO) test -count=1 -timeout 0 ./...

.PHONY: soak-sim
soak-sim: need-go ## of soak, the 10,000 random simulations with failures alone: half a minute
	PACER_SOAK=1 $(GO) test -count=1 -timeout 30m -run 'TestSoak$$' -v ./scheduler/schedulertest

# Most of a schedule of faults is waiting, so several run at a time.
FAULTS := $(or $(SEED),$(shell seq 1 10 191 | awk '{print $$1 "-" $$1 + 9}'))
SHARDS ?= 6

.PHONY: soak-live
soak-live: build ## of soak, the real Slurm and Kubernetes: 200 jobs decided as in the simulator, 200 schedules of faults on each, 1000 nodes, transcripts; SEED=7 or 1-20 runs some
	PACER_SOAK=1 PACER_LIVE_SEED='$(SEED)' $(GO) test -count=1 -timeout 0 -run '^Test(Conformance|Faults)$$' -v ./scheduler/live/...
	@mkdir -p out && rm -f out/faults-*.txt && $(GO) test -c -vet=off -o out/faults.test ./cmd/pacer
	@status=0; for engine in Kubernetes Slurm; do for seeds in $(FAULTS); do echo $$engine $$seeds; done; done | \
		PACER_SOAK=1 PACER_BIN='$(CURDIR)/bin/pacer' xargs -P $(SHARDS) -L 1 sh -c 'cd cmd/pacer && PACER_LIVE_SEED=$$1 \
		../../out/faults.test -test.timeout 0 -test.run "^TestE2E$$0Faults\$$" -test.v >../../out/faults-$$0-$$1.txt 2>&1' || status=$$?; \
	grep -hE 'policy .* jobs|^ *--- FAIL|_test.go' out/faults-*.txt; exit $$status
	@cd cmd/pacer && PACER_SOAK=1 PACER_BIN='$(CURDIR)/bin/pacer' ../../out/faults.test -test.timeout 0 -test.run '^TestE2EKubernetesScale$$' -test.v
	@cd cmd/pacer && PACER_TRANSCRIPTS='$(CURDIR)/docs/benchmarks' PACER_BIN='$(CURDIR)/bin/pacer' ../../out/faults.test -test.timeout 0 -test.run 'Torch$$'

.PHONY: rewrite
rewrite: need-go ## renew the expected files of golden and scenario tests, and the generated reference; read the diff
	$(GO) test -count=1 -timeout 30m -run '^Test(Golden|Reference)$$|^TestScenarios$$/.' \
		$$(grep -rlE --include='*_test.go' 'spectest\.Golden|Scenarios\(t, "testdata"' . | xargs -n1 dirname | sort -u) -rewrite

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

# What the machine lacks, and which tests need it.
define missing
{ [ -n "$${PACER_SHARED:-}" ] || echo "make: not run: tests that compare with published data; docs/benchmarks/README.md says what PACER_SHARED is to hold"; \
"$${PACER_PYTHON:-/usr/bin/python3}" -c "import torch" 2>/dev/null || \
	echo "make: not run: tests that train; apt-get install -y --no-install-recommends python3-torch, or set PACER_PYTHON"; \
[ -n "$${PACER_ENGINES:-}" ] || echo "make: not run: tests on a real Kubernetes; make engines"; \
command -v clp >/dev/null || \
	echo "make: not run: linear programmes against CLP and GLPK; apt-get install -y --no-install-recommends coinor-clp glpk-utils"; \
command -v chromium >/dev/null || \
	echo "make: not run: the web page in a browser; apt-get install -y --no-install-recommends chromium fonts-dejavu-core"; }
endef

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
	@mkdir -p '$(TOOLS)'
	dir="$$(mktemp -d '$(TOOLS)/build.XXXXXX')"; trap 'rm -rf "$$dir"' EXIT; \
	GOBIN="$$dir" $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER_VERSION) && mv "$$dir/golangci-lint" $@

# The link is made last: it says that the engines are complete.
$(ENGINES)/kubectl: | need-go
	@mkdir -p '$(ENGINES)/crds'
	while read -r module files to; do \
		dir=$$(cd '$(ENGINES)' && $(GO) mod download -json "$$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
		mkdir -p "$(ENGINES)/crds/$$to" && cp --no-preserve=mode "$$dir/"$$files "$(ENGINES)/crds/$$to" || exit 1; \
	done <$(ENGINES_SRC)/crds.txt
	cd $(ENGINES_SRC) && $(GO) build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$(sed -n 's|.*k8s.io/kubernetes v|v|p' go.mod)" -o '$(ENGINES)/' ./...
	for of in kueue versitygw; do \
		(cd $(ENGINES_SRC)/$$of && $(GO) build -trimpath -ldflags '-s -w' -o '$(ENGINES)/' tool) || exit 1; \
	done
	ln -sf kubemin $@
