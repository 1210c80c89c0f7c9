# Hookgate. `make help` lists the targets. Everything they need besides Go, git, make and a C compiler (for the race
# detector) is pinned in go.mod and tools/, and built from there. Folders below bin/ and out/ hold what was built;
# nothing else is written.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# One build mode for every package: otherwise programs, tests and linters would each compile the same packages again.
# Only the race detector needs cgo, and so separate packages.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) $(if $(findstring -trimpath,$(GOFLAGS)),,-trimpath))

GO ?= go
BIN := $(CURDIR)/bin
GOLANGCI_LINT := $(GO) tool -modfile=$(CURDIR)/tools/golangci-lint/go.mod golangci-lint
BUF := $(BIN)/buf
BUF_VERSION := $(shell sed -n 's,.*"@bufbuild/buf": "\(.*\)".*,\1,p' tools/buf/package.json)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -X github.com/hookgate/hookgate/command.version=$(VERSION) -X github.com/hookgate/hookgate/command.commit=$(COMMIT)

# The modules of this repository, and the modules with Go code.
MODULES := . examples/go test/e2e test/extra test/infrastructure test/skew tools tools/clusterctl tools/kubernetes
LINTED := . examples/go test/e2e test/extra test/infrastructure test/skew tools

# With RACE=1, as in CI, tests and the gateway that they start have the race detector. Builds then take four minutes
# more.
RACE ?=
GATEWAY := $(if $(RACE),$(BIN)/race/hookgate,$(BIN)/hookgate)
GOTEST := $(if $(RACE),CGO_ENABLED=1) $(BIN)/gotestsum --format pkgname --format-hide-empty-pkg -- $(if $(RACE),-race) -vet=off -count=1 -timeout 20m

# The programs that the suites start. Suites of test-all fail if they lack a program; otherwise their tests are skipped.
PROGRAMS := HOOKGATE_BIN=$(GATEWAY) HOOKGATE_TEST_EXTENSION=$(BIN)/test-extension

# These suites need more than Go: `make test-all` runs them.
APART := /test/(badservers|clusterctl|contract|deploy|examples|image|kubernetes|monitoring|provider|proxies)$$

# `make test-all` runs the suites of each row one after the other, and both rows side by side: they wait as often as they
# compute. The faults come last, when the other row has ended: their latencies are printed.
ROW1 ?= e2e proxies examples
ROW2 ?= contract skew kubernetes clusterctl helm image infrastructure openapi monitoring faults

# What these suites start besides the gateway, and takes minutes to build.
BUILT := kubernetes-binaries e2e-binaries skew-binaries clusterctl fake-cloud $(BIN)/kustomize

# The image: its name, its platforms, and its file.
IMAGE_NAME ?= ghcr.io/hookgate/hookgate
IMAGE_ARCHS ?= amd64 arm64
IMAGE_OUT ?= $(CURDIR)/out/hookgate-$(VERSION).tar

# The platforms of the programs that a release has besides the image.
PROGRAM_PLATFORMS ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64

# The directory of a release's files.
RELEASE_OUT ?= $(CURDIR)/out

# The languages of examples/. Each needs its own toolchain and package registry.
EXAMPLES := go java python rust typescript

# The plain protoc that compiles the contract, as protobuf publishes it for Maven.
PROTOC_VERSION := 4.36.2
PROTOC := $(BIN)/protoc-$(PROTOC_VERSION)

# Prometheus and promtool, as Debian has them.
PROMETHEUS := $(BIN)/prometheus

# Envoy and nginx, for gateways behind them.
PROXIES := $(BIN)/proxies

# The contract as the last release has it. `make release-contract` writes it.
RELEASED_CONTRACT := proto/released.binpb

# axe-core, which examines the page for accessibility.
AXE := $(BIN)/axe/node_modules/axe-core/axe.min.js

# The servers of the Kubernetes tests. KUBEBUILDER_ASSETS may name a folder with kube-apiserver, etcd, kubectl
# and kube-controller-manager; otherwise they are built once, from the Go modules of tools/kubernetes.
KUBERNETES_VERSION := $(shell sed -n 's,^\tk8s.io/kubernetes v\([0-9.]*\).*,\1,p' tools/kubernetes/go.mod)
KUBERNETES_BIN := $(BIN)/kubernetes
KUBERNETES_LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=v$(KUBERNETES_VERSION) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(KUBERNETES_VERSION))) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES_VERSION)))
KUBEBUILDER_ASSETS ?= $(KUBERNETES_BIN)

# The programs that the end-to-end suite starts: Cluster API's, pinned by test/e2e/go.sum, and an old test extension.
E2E_BIN := $(BIN)/e2e

FUZZTIME ?= 30s
DURATION ?= 1h
BENCHFLAGS ?=
SCALEFLAGS ?=
BASELINE ?=

# The folders that `make mutation` changes: all of the product, or `make mutation PACKAGES="gateway codec"`.
PACKAGES ?= $(shell $(GO) list ./... | sed -n 's,^github.com/hookgate/hookgate/\([^/]*\).*,\1,p' | sort -u | grep -v -E '^(deploy|docs|examples|gen|proto|test)$$')
NOT_MUTATED := hookgate/(deploy|internal/devcert|docs|examples|gen|proto|test)(/|$$)|/(alloctest|discoverytest|yamltest)$$
SAMPLE ?= 300
SEED ?= 1

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Start an extension and the gateway, call hooks over REST and gRPC, serve until Ctrl-C
	@$(GO) build -o $(BIN)/quickstart ./examples/quickstart
	@exec $(BIN)/quickstart --hookgate $(BIN)/hookgate --extension $(BIN)/rest-extension $(RUNFLAGS)

.PHONY: build
build: ## Build bin/hookgate and bin/rest-extension
	@$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/hookgate ./examples/rest-extension

# The bytes depend only on the values here and on the version of Go; not on the time, the folder, the machine or the
# state of the repository.
.PHONY: image
image: ## Write out/hookgate-VERSION.tar, an OCI archive for linux/amd64 and linux/arm64; needs no container engine
	@for arch in $(IMAGE_ARCHS); do \
		GOOS=linux GOARCH=$$arch GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= $(GO) build -trimpath -buildvcs=false \
			-ldflags '-s -w $(LDFLAGS)' -o $(BIN)/image/linux_$$arch/hookgate ./cmd/hookgate; \
	done
	@$(GO) -C tools build -o $(BIN)/image/pack ./image
	@$(BIN)/image/pack -name $(IMAGE_NAME) -version '$(VERSION)' -revision '$(COMMIT)' -output '$(IMAGE_OUT)' \
		$(foreach arch,$(IMAGE_ARCHS),-binary linux/$(arch)=$(BIN)/image/linux_$(arch)/hookgate)

.PHONY: release
release: release-programs $(BIN)/kustomize ## Write the files of a release to out/, for VERSION=v0.1.0
	@$(GO) build -o $(BIN)/release ./deploy/release/generate
	@$(BIN)/release -version '$(VERSION)' -image '$(IMAGE_NAME)' -kustomize $(BIN)/kustomize -source deploy/release \
		-binaries $(BIN)/programs -output '$(RELEASE_OUT)'

.PHONY: release-programs
release-programs:
	@rm -rf $(BIN)/programs && mkdir -p $(BIN)/programs
	@for platform in $(PROGRAM_PLATFORMS); do \
		GOOS=$${platform%-*} GOARCH=$${platform#*-} GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= $(GO) build -trimpath -buildvcs=false \
			-ldflags '-s -w $(LDFLAGS)' -o $(BIN)/programs/hookgate-$$platform ./cmd/hookgate; \
	done

.PHONY: examples
examples: $(addprefix examples-,$(EXAMPLES)) ## Build the example extension of every language

.PHONY: examples-go
examples-go: ## Build examples/go
	@cd examples/go && $(GO) build -o bin/extension . && echo "examples/go: built in $$SECONDS s"

.PHONY: examples-java
examples-java: ## Build examples/java, stubs included, with Maven
	@mvn -B -q -ntp -f examples/java/pom.xml package && echo "examples/java: built in $$SECONDS s"

.PHONY: examples-python
examples-python: ## Build examples/python, stubs included, in a virtual environment
	@examples/python/build.sh && echo "examples/python: built in $$SECONDS s"

.PHONY: examples-rust
examples-rust: ## Build examples/rust, stubs included, with Cargo
	@cd examples/rust && cargo build -q --release --locked && echo "examples/rust: built in $$SECONDS s"

.PHONY: examples-typescript
examples-typescript: ## Build examples/typescript, stubs included, with npm
	@examples/typescript/build.sh && echo "examples/typescript: built in $$SECONDS s"

##@ Test

.PHONY: test
test: build test-extension $(if $(RACE),race) $(BIN)/gotestsum ## Run the tests that need only Go: unit tests and suites that start the gateway
	@echo "go test $(if $(RACE),-race )./... and the modules of test/ and tools/"
	@$(PROGRAMS) $(GOTEST) $$($(GO) list ./... | grep -v -E '$(APART)')
	@cd test/extra && $(GOTEST) ./extension
	@cd tools && $(GOTEST) ./image ./performance
	@cd test/extra && $(PROGRAMS) $(BIN)/gotestsum --format pkgname -- -vet=off -count=1 ./conversion/... # it compares values, which needs no race detector

# The output of the rows comes one after the other, each when it and those above have ended.
.PHONY: test-all
test-all: build test-extension $(if $(RACE),race) $(BIN)/gotestsum test-all-programs examples-python infrastructure-go ## Run the suites that need more than Go: API servers, the image, a browser, Prometheus, other languages, faults, Cluster API
	@rows=(); trap 'kill "$${rows[@]}"' INT TERM; failed=; \
	for row in '$(ROW1)' '$(ROW2)'; do \
		$(MAKE) --no-print-directory suites SUITES="$$row" >$(BIN)/row$$(($${#rows[@]} + 1)).log 2>&1 & rows+=($$!); \
	done; \
	for i in 1 2; do wait "$${rows[i-1]}" || failed=1; cat $(BIN)/row$$i.log; done; \
	if [ -n "$$failed" ]; then echo "test-all: a suite failed: see the lines that begin with 'failed:'"; exit 1; fi

.PHONY: suites
suites:
	@failed=; for suite in $(SUITES); do \
		printf '\n-- make test-%s (%s)\n' $$suite "$$(date -u +%H:%M:%S)"; \
		$(MAKE) --no-print-directory test-$$suite || failed="$$failed $$suite"; \
	done; \
	printf '\n-- ended:%s (%s)\n' "$$(printf ' %s' $(SUITES))" "$$(date -u +%H:%M:%S)"; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

# All of them are built before the rows begin, so that no two build the same.
.PHONY: test-all-programs
test-all-programs: $(BUILT) ## Build what test-all needs besides the gateway, which takes some minutes the first time

.PHONY: test-unit
test-unit: $(BIN)/gotestsum ## Run the tests that start no program
	@$(BIN)/gotestsum --format pkgname --format-hide-empty-pkg -- ./...

.PHONY: test-contract
test-contract: $(BUF) $(BIN)/gotestsum ## Break the contract in every way that buf must notice
	@HOOKGATE_COMPLETE=1 HOOKGATE_BUF=$(BUF) $(GOTEST) ./test/contract

.PHONY: test-faults
test-faults: build ## Inject faults of extensions, callers and files under load, each gateway within 512 MiB, and print what happened
	@cd test/extra && HOOKGATE_COMPLETE=1 HOOKGATE_BIN=$(BIN)/hookgate $(GO) test -vet=off -count=1 -v -timeout 30m -run '^Test(Cage|Faults)' ./faults

.PHONY: soak
soak: build ## Inject all faults in turns for DURATION (1h), and compare the end with the beginning
	@cd test/extra && HOOKGATE_COMPLETE=1 HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_SOAK=$(DURATION) $(GO) test -vet=off -count=1 -v -timeout 0 -run '^TestSoak$$' ./faults

.PHONY: test-skew
test-skew: build test-extension skew-binaries $(if $(RACE),race) $(BIN)/gotestsum ## Run extensions and a core that are built with Cluster API v1.12
	@HOOKGATE_COMPLETE=1 $(PROGRAMS) HOOKGATE_SKEW_BIN=$(BIN)/skew $(GOTEST) -run '^TestSkew' ./test/suite

.PHONY: test-kubernetes
test-kubernetes: build kubernetes-binaries $(if $(RACE),race) $(BIN)/gotestsum $(BIN)/kustomize ## Run the gateway and the manifests of deploy/ against a real API server
	@HOOKGATE_COMPLETE=1 $(PROGRAMS) HOOKGATE_KUSTOMIZE=$(BIN)/kustomize KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' $(GOTEST) -p 1 ./test/kubernetes ./test/provider ./test/deploy

.PHONY: test-clusterctl
test-clusterctl: build clusterctl kubernetes-binaries $(if $(RACE),race) $(BIN)/gotestsum $(BIN)/kustomize ## Install, upgrade, move and delete a release with clusterctl, on real API servers
	@$(GO) build -o $(BIN)/release ./deploy/release/generate
	@HOOKGATE_COMPLETE=1 $(PROGRAMS) HOOKGATE_CLUSTERCTL=$(BIN)/clusterctl HOOKGATE_RELEASE=$(BIN)/release \
		HOOKGATE_KUSTOMIZE=$(BIN)/kustomize KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' $(GOTEST) ./test/clusterctl

.PHONY: test-helm
test-helm: kubernetes-binaries $(BIN)/gotestsum $(BIN)/kustomize ## Lint the Helm chart, compare what it installs with the manifests of kustomize, and install it in a real API server
	@$(GO) build -o $(BIN)/release ./deploy/release/generate
	@cd test/extra && HOOKGATE_COMPLETE=1 HOOKGATE_RELEASE=$(BIN)/release HOOKGATE_KUSTOMIZE=$(BIN)/kustomize \
		KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' \
		$(BIN)/gotestsum --format pkgname -- -vet=off -count=1 ./helm # without the race detector: it compares files

.PHONY: test-image
test-image: image $(BIN)/gotestsum ## Check the image, run it, and build it again, which must give the same bytes
	@HOOKGATE_COMPLETE=1 HOOKGATE_IMAGE='$(IMAGE_OUT)' $(GOTEST) ./test/image

.PHONY: test-infrastructure
test-infrastructure: build $(BIN)/gotestsum ## Run the tests of the fake cloud, with Cluster API's own code against its clusters, and of the providers in examples/
	@cd test/infrastructure && HOOKGATE_COMPLETE=1 HOOKGATE_BIN=$(BIN)/hookgate $(BIN)/gotestsum --format pkgname --format-hide-empty-pkg -- -vet=off -count=1 ./... # without the race detector, to build Kubernetes' packages once

.PHONY: clusterctl
clusterctl: ## Build bin/clusterctl
	@$(GO) -C tools/clusterctl build -o $(BIN)/clusterctl sigs.k8s.io/cluster-api/cmd/clusterctl

.PHONY: infrastructure-go
infrastructure-go: ## Build bin/infrastructure-go, the example of an infrastructure provider over gRPC
	@$(GO) build -o $(BIN)/infrastructure-go ./examples/infrastructure/go

.PHONY: fake-cloud
fake-cloud: ## Build bin/fake-cloud, the cloud that extensions stand in front of in tests
	@cd test/infrastructure && $(GO) build -o $(BIN)/fake-cloud ./cmd/fake-cloud

.PHONY: test-openapi
test-openapi: build browser $(AXE) $(if $(RACE),race) $(BIN)/gotestsum $(BIN)/oapi-codegen ## Check the OpenAPI documents against the contract, and use their page and that of the extensions in a browser
	@cd test/extra && HOOKGATE_COMPLETE=1 $(PROGRAMS) HOOKGATE_OAPI_CODEGEN=$(BIN)/oapi-codegen HOOKGATE_AXE=$(AXE) $(GOTEST) ./openapi

.PHONY: pictures
pictures: build browser ## Take the pictures of the page in docs/pictures/ anew
	@mkdir -p docs/pictures && cd test/extra && $(PROGRAMS) HOOKGATE_PICTURES=$(CURDIR)/docs/pictures $(GO) test -vet=off -count=1 -run '^TestConsoleShowsAStoppedExtension$$' ./openapi

$(AXE): tools/axe/package-lock.json
	@mkdir -p $(BIN)/axe && cp tools/axe/package*.json $(BIN)/axe/
	@npm ci --prefix $(BIN)/axe --ignore-scripts --no-audit --no-fund --loglevel=error && touch $@

.PHONY: browser
browser: ## Install Debian's Chromium, unless there is a chromium
	@tools/browser/install

.PHONY: test-monitoring
test-monitoring: build $(PROMETHEUS)/promtool $(if $(RACE),race) $(BIN)/gotestsum ## Check the alerts of deploy/monitoring with promtool, and its dashboard with Prometheus
	@HOOKGATE_COMPLETE=1 $(PROGRAMS) HOOKGATE_PROMTOOL=$(PROMETHEUS)/promtool HOOKGATE_PROMETHEUS=$(PROMETHEUS)/prometheus $(GOTEST) ./test/monitoring
	@cd tools && $(BIN)/gotestsum --format pkgname -- -vet=off -count=1 ./monitoring # without the race detector: it compares files

$(PROMETHEUS)/promtool:
	@tools/prometheus/install $(@D)

.PHONY: test-proxies
test-proxies: build $(PROXIES)/envoy $(if $(RACE),race) $(BIN)/gotestsum ## Call the gateway through a real Envoy and a real nginx
	@HOOKGATE_COMPLETE=1 $(PROGRAMS) HOOKGATE_ENVOY=$(PROXIES)/envoy HOOKGATE_NGINX=$(PROXIES)/nginx/sbin/nginx $(GOTEST) ./test/proxies

$(PROXIES)/envoy: tools/proxies/install tools/proxies/requirements.txt
	@tools/proxies/install $(@D) && touch $@

.PHONY: test-examples
test-examples: build examples $(PROTOC) $(BIN)/gotestsum ## Run the example of every language behind the gateway; all must give the same answers
	@tools/ruby/install
	@HOOKGATE_COMPLETE=1 HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_PROTOC=$(PROTOC) HOOKGATE_RUBY="$$(command -v ruby)" \
		$(BIN)/gotestsum --format testname -- -vet=off -count=1 -p 1 -timeout 20m ./test/examples ./test/badservers

$(PROTOC):
	@mkdir -p $(BIN)/download && cd $(BIN)/download && mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -DoutputDirectory=. \
		-Dartifact=com.google.protobuf:protoc:$(PROTOC_VERSION):exe:linux-$(subst aarch64,aarch_64,$(shell uname -m))
	@chmod +x $(BIN)/download/protoc-*.exe && mv $(BIN)/download/protoc-$(PROTOC_VERSION)-*.exe $@

.PHONY: test-e2e
test-e2e: build kubernetes-binaries e2e-binaries skew-binaries examples-python clusterctl infrastructure-go fake-cloud ## Run Clusters with the real Cluster API, which calls every hook through the gateway
	@cd test/e2e && HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_E2E_BIN=$(E2E_BIN) HOOKGATE_SKEW_BIN=$(BIN)/skew HOOKGATE_CLOUD=$(BIN)/fake-cloud \
		HOOKGATE_PROVIDER=$(BIN)/infrastructure-go HOOKGATE_CLUSTERCTL=$(BIN)/clusterctl \
		KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' $(GO) test -vet=off -count=1 -v -parallel 5 -timeout 30m ./...

.PHONY: race
race: ## Build the gateway with the race detector
	@CGO_ENABLED=1 $(GO) build -race -ldflags '$(LDFLAGS)' -o $(BIN)/race/hookgate ./cmd/hookgate

.PHONY: test-extension
test-extension: ## Build the extension on Cluster API's own server that the suites start
	@$(GO) -C test/extra build -o $(BIN)/test-extension ./extension

.PHONY: skew-binaries
skew-binaries: $(BIN)/skew/test-extension ## Build what the suites start of Cluster API v1.12
	@cd test/skew && $(GO) build -o $(BIN)/skew/ ./extension ./core

# Files that are slow to build get their names once complete, so that an interrupted build leaves nothing that looks
# finished.
$(BIN)/skew/test-extension: test/skew/go.mod test/skew/go.sum
	@echo "building Cluster API's test extension v1.12, which takes some minutes the first time"
	@mkdir -p $(@D) && cd test/skew && $(GO) build -ldflags '-s -w' -o $@.new sigs.k8s.io/cluster-api/test/extension && mv $@.new $@

.PHONY: kubernetes-binaries
ifeq ($(KUBEBUILDER_ASSETS),$(KUBERNETES_BIN))
kubernetes-binaries: $(KUBERNETES_BIN)/kube-apiserver ## Build kube-apiserver, etcd, kubectl and kube-controller-manager into bin/kubernetes, once
else
kubernetes-binaries:
	@echo "using the programs of KUBEBUILDER_ASSETS=$(KUBEBUILDER_ASSETS)"
endif

$(KUBERNETES_BIN)/kube-apiserver: tools/kubernetes/go.mod tools/kubernetes/go.sum tools/kubernetes/etcd/main.go
	@echo "building Kubernetes $(KUBERNETES_VERSION) and etcd, which takes some minutes the first time"
	@rm -rf $(@D) $(@D).new && cd tools/kubernetes && $(GO) build -ldflags '$(KUBERNETES_LDFLAGS)' -o $(@D).new/ ./etcd \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl && mv $(@D).new $(@D)

.PHONY: e2e-binaries
e2e-binaries: $(E2E_BIN)/core ## Build the programs of Cluster API into bin/e2e, once

# Two providers have the same name, so there are two builds.
$(E2E_BIN)/core: test/e2e/go.mod test/e2e/go.sum
	@echo "building Cluster API, which takes some minutes the first time"
	@rm -rf $(@D) $(@D).new && cd test/e2e && $(GO) build -ldflags '-s -w' -o $(@D).new/ sigs.k8s.io/cluster-api/core \
		sigs.k8s.io/cluster-api/bootstrap/kubeadm sigs.k8s.io/cluster-api/test/infrastructure/docker sigs.k8s.io/cluster-api/test/extension
	@cd $(@D).new && mv kubeadm kubeadm-bootstrap && mv docker infrastructure && mv extension test-extension
	@cd test/e2e && $(GO) build -ldflags '-s -w' -o $(@D).new/kubeadm-control-plane sigs.k8s.io/cluster-api/controlplane/kubeadm && mv $(@D).new $(@D)

# npm has buf as a program; where it has none, buf is built, for a minute and a half.
$(BUF): tools/buf/package.json tools/buf/package-lock.json
	@mkdir -p $(BIN)/npm && { command -v npm >/dev/null && cp tools/buf/package*.json $(BIN)/npm/ && \
		npm install --prefix $(BIN)/npm --ignore-scripts --no-audit --no-fund --loglevel=error && \
		cp $(BIN)/npm/node_modules/@bufbuild/buf-*/bin/buf $@; } || GOBIN=$(BIN) $(GO) install github.com/bufbuild/buf/cmd/buf@v$(BUF_VERSION)

# Go builds a tool into its cache, and names the file.
PLUGINS := protoc-gen-go protoc-gen-go-grpc protoc-gen-grpc-gateway
$(addprefix $(BIN)/,actionlint controller-gen gotestsum govulncheck gremlins kustomize oapi-codegen $(PLUGINS)): tools/go.mod
	@mkdir -p $(BIN) && tool=$$($(GO) -C tools tool -n $(@F)) && cp -f "$$tool" $@

##@ Measure

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (30s), all of which bound the memory of one input
	@for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$package; \
		done; \
	done

.PHONY: mutation
mutation: $(BIN)/gremlins ## Change the code of PACKAGES in small ways, and require that tests notice 85 % of them; takes hours
	@rm -rf $(BIN)/mutation && mkdir -p $(BIN)/mutation && git ls-files -z --cached --others --exclude-standard | \
		tar --null --files-from - --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C $(BIN)/mutation
	@failed=; for package in $(PACKAGES); do \
		echo "== $$package"; (cd $(BIN)/mutation && $(BIN)/gremlins unleash ./$$package) || failed="$$failed $$package"; \
	done; if [ -n "$$failed" ]; then echo "too few mutants were noticed in:$$failed"; exit 1; fi

.PHONY: mutation-sample
mutation-sample: ## Do so with SAMPLE mutants (300) of all of the product, chosen by SEED (1)
	@$(GO) -C tools build -o $(BIN)/mutation-sample ./mutation/sample
	@$(BIN)/mutation-sample -size $(SAMPLE) -seed $(SEED) $$($(GO) list ./... | grep -v -E '$(NOT_MUTATED)')

.PHONY: bench
bench: build ## Measure the gateway beside its peers and print ratios; BENCHFLAGS=--quick is short, BASELINE=FILE adds another gateway
	@$(GO) build -o $(BIN)/bench ./test/bench
	@$(BIN)/bench --hookgate $(BIN)/hookgate $(if $(BASELINE),--baseline '$(BASELINE)') $(BENCHFLAGS)

# Each line of curves has a few short rounds; the tables have what `make bench` has.
CURVE := $(BIN)/bench --hookgate $(BIN)/hookgate --protocols h1 --quick
PERFORMANCE := out/performance

.PHONY: performance
performance: build $(PROXIES)/envoy ## Measure anew the tables and curves of docs/performance; takes half an hour
	@$(GO) build -o $(BIN)/bench ./test/bench
	@$(GO) -C tools build -o $(BIN)/performance ./performance
	@rm -rf $(PERFORMANCE) && mkdir -p $(PERFORMANCE)
	@$(BIN)/bench --hookgate $(BIN)/hookgate --json $(PERFORMANCE)/cells.json --profiles $(PERFORMANCE) $(BENCHFLAGS)
	@$(CURVE) --parts cells --sizes S --callers 1,3,10,30,100,300,1000 --json $(PERFORMANCE)/callers.json
	@$(CURVE) --parts cells --sizes 1KB,4KB,16KB,64KB,256KB,1MB,5MB,20MiB --callers 16 --json $(PERFORMANCE)/bodies.json
	@$(CURVE) --parts handlers --handlers 1,3,10,30,100,300,1000 --peers gateway --json $(PERFORMANCE)/handlers.json
	@$(BIN)/performance -from $(PERFORMANCE) -page docs/performance/README.md -pictures docs/performance

# The gateway is compared with that of the last release; until there is one with that of the main branch, or of the
# commit before, if main itself is checked out.
RATIO_AGAINST ?= $(or $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null),$(shell \
	main=$$(git rev-parse -q --verify main || git rev-parse -q --verify origin/main); \
	if [ "$$main" = "$$(git rev-parse HEAD)" ]; then git rev-parse -q --verify 'HEAD~1' || echo "$$main"; else echo "$$main"; fi))

.PHONY: bench-ratio
bench-ratio: build ## Fail if calls take 15 % more CPU time, or come 15 % slower, than with the gateway of RATIO_AGAINST: the last release, or the commit before
	@$(GO) build -o $(BIN)/bench ./test/bench
	@if ! base=$$(git rev-parse -q --verify '$(RATIO_AGAINST)^{commit}'); then \
		echo "bench-ratio: there is no commit '$(RATIO_AGAINST)' to compare with, as in a shallow clone: skipped"; exit; fi; \
	if git diff --quiet "$$base" -- '*.go' '*.pgo' go.mod ':!*_test.go' ':!test' ':!tools' ':!examples'; then \
		echo "bench-ratio: the gateway of $(RATIO_AGAINST) has the same code: skipped"; exit; fi; \
	echo "bench-ratio: the gateway of $(RATIO_AGAINST) is the baseline"; \
	rm -rf $(BIN)/ratio && mkdir -p $(BIN)/ratio/source && git archive "$$base" | tar -xf - -C $(BIN)/ratio/source && \
	$(GO) -C $(BIN)/ratio/source build -buildvcs=false -o $(BIN)/ratio/hookgate ./cmd/hookgate && \
	rm -rf $(BIN)/ratio/source && $(BIN)/bench --ratio --hookgate $(BIN)/hookgate --baseline $(BIN)/ratio/hookgate

.PHONY: bench-scale
bench-scale: build kubernetes-binaries ## Measure on real API servers: 2,000 ExtensionConfigs of 10 handlers beside 20; then 1,000 machines of the infrastructure provider, also at rest (SCALEFLAGS="-rest 2m")
	@$(GO) build -o $(BIN)/scale ./test/scale
	@$(BIN)/scale --hookgate $(BIN)/hookgate --assets '$(KUBEBUILDER_ASSETS)' $(BENCHFLAGS)
	@HOOKGATE_COMPLETE=1 HOOKGATE_BIN=$(BIN)/hookgate KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' $(GO) test -vet=off -timeout 2h \
		-run '^$$' -bench '^BenchmarkScale$$' -benchtime 1x ./test/provider $(if $(SCALEFLAGS),-args $(SCALEFLAGS))

.PHONY: bench-go
bench-go: ## Run the Go benchmarks
	@$(GO) test -run '^$$' -bench . -benchmem ./...

##@ Change

.PHONY: download
download: ## Download all modules that the targets need, a module of this repository after the other
	@for module in $$(git ls-files '*go.mod' ':!*/testdata/*'); do \
		$(GO) -C "$$(dirname "$$module")" mod download || exit; \
	done

.PHONY: generate
generate: $(BUF) $(addprefix $(BIN)/,controller-gen $(PLUGINS)) ## Regenerate gen/, deploy/crd/, the dashboard, proto/testdata/ and the pages of docs/ that come from the code
	@$(BUF) generate
	@$(BUF) generate --template test/hookversions/buf.gen.yaml
	@$(BUF) generate --template examples/own-hooks/buf.gen.yaml
	@$(GO) -C tools run ./openapi $(CURDIR)
	@$(BIN)/controller-gen object:headerFile=api/boilerplate.go.txt crd paths=./api/v1alpha1/... output:crd:dir=deploy/crd
	@$(BIN)/controller-gen object:headerFile=api/boilerplate.go.txt crd paths=./provider/v1alpha1/... output:crd:dir=deploy/crd/infrastructure
	@$(GO) run ./docs/generate docs
	@$(GO) run ./test/vectors proto/testdata
	@$(GO) -C tools run ./monitoring >deploy/monitoring/dashboard.json
	@$(GO) run ./deploy/crd/generate "$$(cd test/extra && $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)" deploy/crd

.PHONY: format
format: $(BUF) ## Format Go and proto files
	@$(GOLANGCI_LINT) fmt
	@$(BUF) format -w

.PHONY: verify
verify: lint verify-proto verify-generated verify-modules verify-workflows verify-newer verify-vulnerabilities ## Lint, check the contract and the workflows, and check that generated files are up to date

# The linters' heap is large and lives long: with the usual pace, the garbage collector takes two fifths of the time.
LINT_MEMORY ?= 6GiB
LINT := GOGC=400 GOMEMLIMIT=$(LINT_MEMORY) $(GOLANGCI_LINT)

.PHONY: lint
lint: ## Run the linters, the rules of import directions among them; they take up to LINT_MEMORY (6GiB)
	@$(LINT) run
	@# The other modules, two at a time: they find in the linters' cache what the first has made of shared dependencies.
	@printf '%s\n' $(filter-out .,$(LINTED)) | xargs -P 2 -I{} bash -c 'found=$$(cd {} && $(LINT) run \
		--allow-parallel-runners --config $(CURDIR)/.golangci.yml 2>&1) || { printf "in {}:\n%s\n" "$$found"; exit 1; }'

.PHONY: verify-proto
verify-proto: $(BUF) ## Lint the contract and compare it with that of the last release
	@$(BUF) lint
	@$(BUF) format -d --exit-code
	@$(BUF) breaking proto --against $(RELEASED_CONTRACT)

.PHONY: release-contract
release-contract: $(BUF) ## Write proto/released.binpb, with which changes of the contract are compared from now on; once for each release
	@$(BUF) build proto --exclude-source-info -o $(RELEASED_CONTRACT)

.PHONY: verify-generated
verify-generated: generate ## Check that generated files are up to date
	@changed=$$(git status --porcelain -- gen test/hookversions/gen examples/own-hooks/gen 'api/*/zz_generated*' deploy/crd deploy/monitoring/dashboard.json proto/testdata docs/metrics.md docs/errors.md docs/conformance.md docs/conversion.md docs/infrastructure-kinds.md docs/limits.md); if [ -n "$$changed" ]; then \
		echo "generated files are not up to date: run 'make generate' and commit"; echo "$$changed"; exit 1; fi

.PHONY: verify-modules
verify-modules: ## Check that go.mod files are tidy
	@for module in $(MODULES); do \
		(cd $$module && $(GO) mod tidy -diff) || { echo "$$module/go.mod is not tidy: run 'go mod tidy' there and commit"; exit 1; }; \
	done

.PHONY: verify-workflows
verify-workflows: $(BIN)/actionlint ## Lint the workflows of .github
	@$(BIN)/actionlint -color=false

.PHONY: verify-newer
verify-newer: ## Say what the newest types of Cluster API have that the contract lacks, if the module proxy can be asked
	@mkdir -p $(BIN) && test/modules/newer | tee $(BIN)/newer.log

# The database is on the Internet, and no registry of packages has a copy. Where it cannot be reached, the check says so,
# does not fail, and .ci/run repeats it at its end; GOVULNDB names another one, for example a copy in a directory
# (file://). The check itself is tried first.
GOVULNDB ?= https://vuln.go.dev

.PHONY: verify-vulnerabilities
verify-vulnerabilities: $(BIN)/govulncheck ## Look for known vulnerabilities in what the gateway calls, if their database can be reached
	@HOOKGATE_GOVULNCHECK=$(BIN)/govulncheck $(GO) -C tools test -count=1 ./govulncheck
	@tools/govulncheck/check $(BIN)/govulncheck '$(GOVULNDB)' | tee $(BIN)/vulnerabilities.log

.PHONY: clean
clean: ## Remove what was built
	@rm -rf $(BIN) out
