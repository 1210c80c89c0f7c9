# Hookgate. `make help` lists the targets. Everything that they need besides Go, git, make and a C compiler (for the race
# detector) is pinned in go.mod and tools/, and built from there.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
BIN := $(CURDIR)/bin
TOOL := $(GO) tool -modfile=tools/go.mod
GOLANGCI_LINT := $(GO) tool -modfile=$(CURDIR)/tools/golangci-lint/go.mod golangci-lint
GOTESTSUM := $(TOOL) gotestsum

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)

# The image: its name, what it is for, and the file that it is written to.
IMAGE_NAME ?= ghcr.io/hookgate/hookgate
IMAGE_ARCHS ?= amd64 arm64
IMAGE_REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
IMAGE_OUT ?= $(CURDIR)/out/hookgate-$(VERSION).tar

# Where the files of a release are written to.
RELEASE_OUT ?= $(CURDIR)/out

# The languages of examples/. Each needs its own toolchain, and the registry of its packages.
EXAMPLES := go java python rust typescript

# The plain protoc that the contract is compiled with, as protobuf publishes it for Maven.
PROTOC_VERSION := 4.36.2
PROTOC := $(BIN)/protoc-$(PROTOC_VERSION)

# What the contract is compared with: the last release, if there is one; otherwise the main branch, or what came before it where
# main itself is checked out. Until there is a release, the packages of generated Java may still change.
RELEASED := $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)
BREAKING_AGAINST ?= $(or $(RELEASED),$(shell main=$$(git rev-parse -q --verify main || git rev-parse -q --verify origin/main); \
	if [ "$$main" = "$$(git rev-parse HEAD)" ]; then git rev-parse -q --verify 'HEAD~1' || echo "$$main"; else echo "$$main"; fi))
BREAKING_CONFIG := $(if $(RELEASED),,--config '{"version": "v2", "modules": [{"path": "proto"}, {"path": "test/hookversions/proto"}], "breaking": {"use": ["FILE"], \
	"except": ["FILE_SAME_JAVA_PACKAGE", "FILE_SAME_JAVA_MULTIPLE_FILES"]}}')

# The servers that the tests of the Kubernetes side run against. A folder of one's own with kube-apiserver, etcd and kubectl
# comes from KUBEBUILDER_ASSETS; otherwise they are built once, from the Go modules of tools/kubernetes.
KUBERNETES_VERSION := $(shell sed -n 's,^\tk8s.io/kubernetes v\([0-9.]*\).*,\1,p' tools/kubernetes/go.mod)
KUBERNETES_BINARIES := kube-apiserver kubectl etcd
KUBERNETES_BIN := $(BIN)/kubernetes
KUBERNETES_LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=v$(KUBERNETES_VERSION) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(KUBERNETES_VERSION))) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES_VERSION)))
KUBEBUILDER_ASSETS ?= $(KUBERNETES_BIN)

# The programs that only the end-to-end suite starts: Cluster API's, pinned by test/e2e/go.sum, and the controller manager.
E2E_BIN := $(BIN)/e2e
E2E_BINARIES := core kubeadm-bootstrap kubeadm-control-plane infrastructure test-extension kube-controller-manager test-extension-v1.12

# What suites start that is built with Cluster API v1.12, pinned by test/skew/go.sum: an extension, and what makes the requests of
# its core. The end-to-end suite also starts v1.12's own test extension.
SKEW_BINARIES := extension-v1.12 core-v1.12

FUZZTIME ?= 30s
BENCHFLAGS ?=

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Start an example extension and the gateway, call hooks through both fronts, serve until Ctrl-C
	@$(GO) build -o $(BIN)/quickstart ./examples/quickstart
	@exec $(BIN)/quickstart --hookgate $(BIN)/hookgate --extension $(BIN)/rest-extension $(RUNFLAGS)

.PHONY: build
build: ## Build bin/hookgate and the example extension
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/hookgate ./cmd/hookgate
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/rest-extension ./examples/rest-extension

# Only what is named here goes into the binaries: not the time, the folder, the machine or the state of the repository. A Go
# of another version makes other bytes.
.PHONY: image
image: ## Write out/hookgate-VERSION.tar, an OCI archive for linux/amd64 and linux/arm64; needs no container engine
	@for arch in $(IMAGE_ARCHS); do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= $(GO) build -trimpath -buildvcs=false \
			-ldflags '-s -w $(LDFLAGS)' -o $(BIN)/image/linux_$$arch/hookgate ./cmd/hookgate; \
	done
	@$(GO) -C tools/image build -o $(BIN)/image/pack .
	@$(BIN)/image/pack -name $(IMAGE_NAME) -version '$(VERSION)' -revision '$(IMAGE_REVISION)' -output '$(IMAGE_OUT)' \
		$(foreach arch,$(IMAGE_ARCHS),-binary linux/$(arch)=$(BIN)/image/linux_$(arch)/hookgate)

.PHONY: release
release: ## Write out/: what clusterctl installs as VERSION (v0.1.0), how to register it with Cluster API, the OpenAPI document, and checksums
	@$(GO) build -o $(BIN)/release ./deploy/release/generate
	@$(GO) build -modfile=tools/kustomize/go.mod -o $(BIN)/kustomize sigs.k8s.io/kustomize/kustomize/v5
	@$(BIN)/release -version '$(VERSION)' -image '$(IMAGE_NAME)' -kustomize $(BIN)/kustomize -source deploy/release -output '$(RELEASE_OUT)'

.PHONY: examples
examples: $(addprefix examples-,$(EXAMPLES)) ## Build the example extension of every language

.PHONY: examples-go
examples-go: ## Build examples/go
	@cd examples/go && CGO_ENABLED=0 $(GO) build -trimpath -o bin/extension . && echo "examples/go: built in $$SECONDS s"

.PHONY: examples-java
examples-java: ## Build examples/java, stubs included, with Maven
	@mvn -B -q -ntp -f examples/java/pom.xml package && echo "examples/java: built in $$SECONDS s"

.PHONY: examples-python
examples-python: ## Build examples/python: a virtual environment and the stubs
	@examples/python/build.sh && echo "examples/python: built in $$SECONDS s"

.PHONY: examples-rust
examples-rust: ## Build examples/rust, stubs included, with Cargo
	@cd examples/rust && cargo build -q --release --locked && echo "examples/rust: built in $$SECONDS s"

.PHONY: examples-typescript
examples-typescript: ## Build examples/typescript: its packages, the stubs, and what tsc makes
	@examples/typescript/build.sh && echo "examples/typescript: built in $$SECONDS s"

##@ Test

.PHONY: test
test: test-binaries kubernetes-binaries image ## Run every test with the race detector, and say what was skipped and why
	@HOOKGATE_BIN=$(BIN)/race/hookgate HOOKGATE_TEST_EXTENSION=$(BIN)/test-extension \
		HOOKGATE_SKEW_EXTENSION=$(BIN)/extension-v1.12 HOOKGATE_SKEW_CORE=$(BIN)/core-v1.12 \
		HOOKGATE_KUSTOMIZE=$(BIN)/kustomize KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' \
		$(GOTESTSUM) --format pkgname --format-hide-empty-pkg -- -race -count=1 -timeout 20m $$($(GO) list ./... | grep -v -E '/test/(image|clusterctl|examples|badservers)$$')
	@HOOKGATE_IMAGE='$(IMAGE_OUT)' $(GOTESTSUM) --format pkgname -- -race -count=1 ./test/image # alone: it links, and others measure time
	@$(MAKE) --no-print-directory test-clusterctl # alone too: it starts two API servers
	@$(MAKE) --no-print-directory test-openapi
	@for module in test/extension tools/image; do \
		cd $(CURDIR)/$$module && $(GO) tool -modfile=$(CURDIR)/tools/go.mod gotestsum --format pkgname -- -race -count=1 ./...; \
	done
	@cd test/conversion && HOOKGATE_BIN=$(BIN)/race/hookgate $(GO) tool -modfile=$(CURDIR)/tools/go.mod gotestsum --format pkgname -- -count=1 ./... # it compares values: the gateway has the race detector, the comparison needs none

.PHONY: test-clusterctl
test-clusterctl: test-binaries kubernetes-binaries ## Install, upgrade, move and delete a release with clusterctl, on real API servers
	@HOOKGATE_BIN=$(BIN)/race/hookgate HOOKGATE_CLUSTERCTL=$(BIN)/clusterctl HOOKGATE_RELEASE=$(BIN)/release \
		HOOKGATE_KUSTOMIZE=$(BIN)/kustomize KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' $(GOTESTSUM) --format pkgname -- -race -count=1 ./test/clusterctl

.PHONY: test-examples
test-examples: build examples $(PROTOC) ## Run the example of every language behind the gateway, over TCP and over a Unix socket, and hold all to the same answers
	@HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_PROTOC=$(PROTOC) $(GOTESTSUM) --format testname -- -count=1 -p 1 -timeout 20m ./test/examples ./test/badservers

$(PROTOC):
	@mkdir -p $(BIN)/download && cd $(BIN)/download && mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -DoutputDirectory=. \
		-Dartifact=com.google.protobuf:protoc:$(PROTOC_VERSION):exe:linux-$(subst aarch64,aarch_64,$(shell uname -m))
	@chmod +x $(BIN)/download/protoc-*.exe && mv $(BIN)/download/protoc-$(PROTOC_VERSION)-*.exe $@

.PHONY: test-openapi
test-openapi: browser ## Hold the OpenAPI document against the contract, and try hooks on its page in a browser
	@$(GO) build -race -ldflags '$(LDFLAGS)' -o $(BIN)/race/hookgate ./cmd/hookgate
	@$(GO) build -modfile=tools/oapi-codegen/go.mod -o $(BIN)/oapi-codegen github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
	@cd test/openapi && HOOKGATE_BIN=$(BIN)/race/hookgate HOOKGATE_OAPI_CODEGEN=$(BIN)/oapi-codegen \
		$(GO) tool -modfile=$(CURDIR)/tools/go.mod gotestsum --format pkgname -- -race -count=1 ./...

.PHONY: browser
browser: ## Install Debian's Chromium, where there is none
	@tools/browser/install

.PHONY: test-e2e
test-e2e: build kubernetes-binaries e2e-binaries skew-binaries examples-python ## Run Clusters with the real Cluster API, whose every hook goes through the gateway, as a hub and as a sidecar
	@cd test/e2e && HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_E2E_BIN=$(E2E_BIN) HOOKGATE_SKEW_EXTENSION=$(BIN)/extension-v1.12 \
		KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' $(GO) test -count=1 -v -timeout 30m ./...

.PHONY: test-unit
test-unit: ## Run the tests that need no other program
	@$(GOTESTSUM) --format pkgname --format-hide-empty-pkg -- ./...

.PHONY: test-binaries
test-binaries: build skew-binaries ## Build what the suites start: a gateway with the race detector, an extension on Cluster API's own server, and tools
	@$(GO) build -race -ldflags '$(LDFLAGS)' -o $(BIN)/race/hookgate ./cmd/hookgate
	@cd test/extension && $(GO) build -o $(BIN)/test-extension .
	@$(GO) build -modfile=tools/kustomize/go.mod -o $(BIN)/kustomize sigs.k8s.io/kustomize/kustomize/v5
	@$(GO) -C tools/clusterctl build -o $(BIN)/clusterctl sigs.k8s.io/cluster-api/cmd/clusterctl
	@$(GO) build -o $(BIN)/release ./deploy/release/generate

.PHONY: skew-binaries
skew-binaries: ## Build what the suites start of Cluster API v1.12
	@cd test/skew && $(foreach binary,$(SKEW_BINARIES),$(GO) build -o $(BIN)/$(binary) ./$(binary:-v1.12=) &&) true

.PHONY: kubernetes-binaries
ifeq ($(KUBEBUILDER_ASSETS),$(KUBERNETES_BIN))
kubernetes-binaries: $(addprefix $(KUBERNETES_BIN)/,$(KUBERNETES_BINARIES)) ## Build kube-apiserver, etcd and kubectl into bin/kubernetes, once
else
kubernetes-binaries:
	@echo "using kube-apiserver, etcd and kubectl of KUBEBUILDER_ASSETS=$(KUBEBUILDER_ASSETS)"
endif

# Built under another name first, so that a build that was cut off leaves nothing that looks finished.
$(KUBERNETES_BIN)/etcd: tools/kubernetes/go.mod tools/kubernetes/go.sum tools/kubernetes/etcd/main.go
	@cd tools/kubernetes && CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o $@.new ./etcd && mv $@.new $@

$(KUBERNETES_BIN)/%: tools/kubernetes/go.mod tools/kubernetes/go.sum
	@echo "building $* $(KUBERNETES_VERSION), which takes some minutes the first time"
	@cd tools/kubernetes && CGO_ENABLED=0 $(GO) build -ldflags '$(KUBERNETES_LDFLAGS)' -o $@.new k8s.io/kubernetes/cmd/$* && mv $@.new $@

.PHONY: e2e-binaries
e2e-binaries: $(addprefix $(E2E_BIN)/,$(E2E_BINARIES)) ## Build what the end-to-end suite starts into bin/e2e, once

$(E2E_BIN)/kube-controller-manager: tools/kubernetes/go.mod tools/kubernetes/go.sum
	@echo "building kube-controller-manager $(KUBERNETES_VERSION), which takes some minutes the first time"
	@cd tools/kubernetes && CGO_ENABLED=0 $(GO) build -ldflags '$(KUBERNETES_LDFLAGS)' -o $@.new k8s.io/kubernetes/cmd/kube-controller-manager && mv $@.new $@

$(E2E_BIN)/core: package := sigs.k8s.io/cluster-api/core
$(E2E_BIN)/kubeadm-bootstrap: package := sigs.k8s.io/cluster-api/bootstrap/kubeadm
$(E2E_BIN)/kubeadm-control-plane: package := sigs.k8s.io/cluster-api/controlplane/kubeadm
$(E2E_BIN)/infrastructure: package := sigs.k8s.io/cluster-api/test/infrastructure/docker
$(E2E_BIN)/test-extension: package := sigs.k8s.io/cluster-api/test/extension
# Of v1.12, so from another module.
$(E2E_BIN)/test-extension-v1.12: test/skew/go.mod test/skew/go.sum
	@echo "building sigs.k8s.io/cluster-api/test/extension v1.12, which takes some minutes the first time"
	@cd test/skew && CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o $@.new sigs.k8s.io/cluster-api/test/extension && mv $@.new $@

$(E2E_BIN)/%: test/e2e/go.mod test/e2e/go.sum
	@echo "building $(package), which takes some minutes the first time"
	@cd test/e2e && CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o $@.new $(package) && mv $@.new $@

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (30s)
	@for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

.PHONY: bench
bench: build ## Measure the gateway side by side with its peers; prints ratios (BENCHFLAGS=--quick for a short run)
	@$(GO) build -o $(BIN)/bench ./test/bench
	@$(BIN)/bench --hookgate $(BIN)/hookgate $(BENCHFLAGS)

.PHONY: bench-scale
bench-scale: build kubernetes-binaries ## Measure a gateway with 2,000 ExtensionConfigs of 10 handlers on a real API server, beside one with 20
	@$(GO) build -o $(BIN)/scale ./test/scale
	@$(BIN)/scale --hookgate $(BIN)/hookgate --assets '$(KUBEBUILDER_ASSETS)' $(BENCHFLAGS)

.PHONY: bench-go
bench-go: ## Run the Go benchmarks
	@$(GO) test -run '^$$' -bench . -benchmem ./...

##@ Change

.PHONY: generate
generate: ## Regenerate gen/, test/hookversions/gen/, api/, deploy/crd/, proto/testdata/, docs/metrics.md, docs/errors.md, and parts of docs/conformance.md and docs/conversion.md
	@$(TOOL) buf generate
	@$(TOOL) buf generate --template test/hookversions/buf.gen.yaml
	@$(GO) -C tools/openapi run . $(CURDIR)
	@$(TOOL) controller-gen object:headerFile=api/boilerplate.go.txt crd paths=./api/... output:crd:dir=deploy/crd
	@$(GO) run ./docs/generate docs
	@$(GO) run ./test/vectors proto/testdata
	@$(GO) run ./deploy/crd/generate "$$(cd test/extension && $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)" deploy/crd

.PHONY: format
format: ## Format Go and proto files
	@$(GOLANGCI_LINT) fmt
	@$(TOOL) buf format -w

.PHONY: verify
verify: lint verify-proto verify-generated verify-modules ## Lint, check the contract, and check that generated files are up to date

.PHONY: lint
lint: ## Run the linters, the rule of import directions among them
	@$(GOLANGCI_LINT) run
	@cd examples/go && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml
	@cd test/extension && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml
	@cd test/conversion && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml
	@cd test/e2e && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml
	@cd test/skew && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml
	@cd tools/image && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml
	@cd tools/openapi && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml
	@cd test/openapi && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml

.PHONY: verify-proto
verify-proto: ## Lint the contract and compare it with the last release, or the main branch
	@$(TOOL) buf lint
	@$(TOOL) buf format -d --exit-code
	@echo "buf breaking against $(BREAKING_AGAINST)"
	@$(TOOL) buf breaking $(BREAKING_CONFIG) --against '.git#ref=$(BREAKING_AGAINST)'

.PHONY: verify-generated
verify-generated: generate ## Check that generated files are up to date
	@changed=$$(git status --porcelain -- gen test/hookversions/gen 'api/*/zz_generated*' deploy/crd proto/testdata docs/metrics.md docs/errors.md docs/conformance.md docs/conversion.md); if [ -n "$$changed" ]; then \
		echo "generated files are not up to date: run 'make generate' and commit"; echo "$$changed"; exit 1; fi

.PHONY: verify-modules
verify-modules: ## Check that go.mod files are tidy
	@for module in . examples/go test/conversion test/e2e test/extension test/openapi test/skew tools/clusterctl tools/image tools/kubernetes tools/openapi; do \
		(cd $$module && $(GO) mod tidy -diff) || { echo "$$module/go.mod is not tidy: run 'go mod tidy' there and commit"; exit 1; }; \
	done

.PHONY: clean
clean: ## Remove what was built
	@rm -rf $(BIN) out
