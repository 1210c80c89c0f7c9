# Hookgate. `make help` lists the targets. Everything they need besides Go, git, make and a C compiler (for the race
# detector) is pinned in go.mod and tools/, and built from there. Folders below bin/ and out/ hold what was built;
# nothing else is written. What takes more than a few lines is in scripts/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: $(shell sed -n 's/^\([a-z][a-z0-9 -]*\):.*/\1/p' Makefile)

# One build mode for every package: otherwise programs, tests and linters would each compile the same packages again.
# Only the race detector needs cgo, and so separate packages.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) $(if $(findstring -trimpath,$(GOFLAGS)),,-trimpath))
export GO ?= go
export BIN := $(CURDIR)/bin

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
# The version of the packages for authors: that of the release, or none. `hookgate init` pins the same ones (command/internal/author/init.go).
RELEASED := $(shell printf '%s\n' '$(VERSION)' | grep -xE 'v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?')
LDFLAGS := -X github.com/hookgate/hookgate/command.version=$(VERSION) -X github.com/hookgate/hookgate/command.commit=$(COMMIT)
IMAGE_NAME ?= ghcr.io/hookgate/hookgate
IMAGE_ARCHS ?= amd64 arm64
IMAGE_OUT ?= $(CURDIR)/out/hookgate-$(VERSION).tar
IMAGE_DIR ?= $(BIN)/image
PROGRAM_PLATFORMS ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64
RELEASE_OUT ?= $(CURDIR)/out

# The packages of the product and of the modules that a release publishes with it, the tests of this module among them.
EVERY := github.com/hookgate/hookgate/...
# The modules of this repository that have Go code for the linters, and those that pin programs or have generated code.
MODULES := . cmd/hookgate-render examples/go sdk test/e2e test/extra test/infrastructure test/skew tools
PINNED := gen/go tools/clusterctl tools/coredns tools/kube-router tools/kubernetes

# The protos that keep what a release has: the contract, and that of the example of hooks of your own.
RELEASED_PROTOS := proto examples/own-hooks/proto

# What recipes call. The Kubernetes tests need kube-apiserver, etcd, kubectl and kube-controller-manager in KUBEBUILDER_ASSETS.
GENERATORS := controller-gen protoc-gen-go protoc-gen-go-grpc
TOOLS := actionlint gotestsum govulncheck gremlins kustomize oapi-codegen $(GENERATORS)
BUF := $(BIN)/buf
AXE := $(BIN)/axe/node_modules/axe-core/axe.min.js
ZENSICAL := $(BIN)/zensical/bin/zensical
PROTOC := $(BIN)/protoc-4.36.2
KUBEBUILDER_ASSETS ?= $(BIN)/kubernetes
API_SERVER := $(if $(filter $(BIN)/kubernetes,$(KUBEBUILDER_ASSETS)),$(BIN)/kubernetes/kube-apiserver)

# With RACE=1, as in CI, tests and the gateway that they start have the race detector. Builds then take four minutes more.
RACE ?=
GATEWAY := $(BIN)/$(if $(RACE),race/)hookgate
READY := build $(if $(RACE),race) $(BIN)/gotestsum
PLAINTEST := $(BIN)/gotestsum --format pkgname --format-hide-empty-pkg -- -vet=off -count=1 -timeout 20m
# Only the test itself has cgo then: what it builds with Go is what other tests and targets have built.
GOTEST := $(if $(RACE),CGO_ENABLED=1) $(PLAINTEST) $(if $(RACE),-race -exec 'env CGO_ENABLED=0')

# The programs that tests start. A test without its program is skipped; in a suite of test-all, it fails.
PROGRAMS := HOOKGATE_BIN=$(GATEWAY) HOOKGATE_TEST_EXTENSION=$(BIN)/test-extension
SUITE := HOOKGATE_COMPLETE=1 KUBEBUILDER_ASSETS='$(KUBEBUILDER_ASSETS)' HOOKGATE_CLUSTERCTL=$(BIN)/clusterctl \
	HOOKGATE_KUSTOMIZE=$(BIN)/kustomize HOOKGATE_RELEASE=$(BIN)/release HOOKGATE_SKEW_BIN=$(BIN)/skew $(PROGRAMS)
E2E := $(SUITE) HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_E2E_BIN=$(BIN)/e2e HOOKGATE_CLOUD=$(BIN)/fake-cloud \
	HOOKGATE_PROVIDER=$(BIN)/infrastructure-go

CLUSTER := $(SUITE) HOOKGATE_NOT_CHECKED=$(BIN)/not-checked.log HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_CLUSTER_BIN=$(BIN)/cluster \
	HOOKGATE_POD_PROGRAMS=$(BIN)/pods HOOKGATE_IMAGE=$(BIN)/cluster-image/image.tar

# These packages need more than Go: `make test-all` runs them, two suites at a time, the longest first. SUITES chooses some
# of them; scripts/suites prints those that test what has changed.
APART := /test/(badservers|cluster|clusterctl|contract|deploy|examples|image|kubernetes|machines|monitoring|provider|proxies|scaffold)$$
SUITES ?= e2e kubernetes examples faults cluster clusterctl packages openapi image helm proxies skew infrastructure monitoring contract docs

AUTOSCALER_REPOSITORY ?= https://github.com/kubernetes/autoscaler
FUZZTIME ?= 30s
DURATION ?= 1h
SAMPLE ?= 300
FLEET ?= 500
SEED ?= 1
# The last release; until there is one, the commit that made ExtensionRolloutRecords namespaced, since no definition can change its scope.
EARLIER ?= $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || echo 616e54ea01b4d949a7d924ecd4ca0a9d06aa05d3)
export LINT_MEMORY ?= 6GiB
GOVULNDB ?= https://vuln.go.dev

##@ Use

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' Makefile
run: build ## Start an extension and the gateway, call hooks over REST and gRPC, serve until Ctrl-C
	@$(GO) build -o $(BIN)/quickstart ./examples/quickstart
	@exec $(BIN)/quickstart --hookgate $(BIN)/hookgate --extension $(BIN)/rest-extension $(RUNFLAGS)
run-infrastructure: build kubernetes-binaries e2e-binaries infrastructure-go fake-cloud ## Start Cluster API and an example of an infrastructure provider, make a Cluster, and say what to look at, until Ctrl-C
	@cd test/e2e && $(GO) test -vet=off -c -o $(BIN)/run-infrastructure . && HOOKGATE_LINGER=1 $(E2E) \
		$(BIN)/run-infrastructure -test.run '^TestRunInfrastructure$$' -test.timeout 0
build: ## Build bin/hookgate and bin/rest-extension
	@$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/hookgate ./examples/rest-extension
render: ## Build bin/hookgate-render, which has Cluster API's controllers in it, for hookgate render
	@$(GO) -C cmd/hookgate-render build -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/ .
image: ## Write out/hookgate-VERSION.tar, an OCI archive for linux/amd64 and linux/arm64; needs no container engine
	@scripts/build-platforms $(IMAGE_DIR) '$(LDFLAGS)' $(IMAGE_ARCHS:%=linux-%)
	@$(GO) -C tools build -o $(IMAGE_DIR)/pack ./image
	@$(IMAGE_DIR)/pack -name $(IMAGE_NAME) -version '$(VERSION)' -revision '$(COMMIT)' -output '$(IMAGE_OUT)' \
		$(foreach arch,$(IMAGE_ARCHS),-binary linux/$(arch)=$(IMAGE_DIR)/hookgate-linux-$(arch))
release: release-generator $(BIN)/kustomize ## Write the files of a release to out/, for VERSION=v0.1.0
	@RENDER_VERSION='$(VERSION)' scripts/build-platforms $(BIN)/programs '$(LDFLAGS)' $(PROGRAM_PLATFORMS)
	@$(GO) -C tools run ./sbom -version '$(VERSION)' -image '$(IMAGE_NAME)' -created "$$(git log -1 --format=%cI)" $(BIN)/programs
	@$(BIN)/release -version '$(VERSION)' -image '$(IMAGE_NAME)' -kustomize $(BIN)/kustomize -source deploy/release \
		-binaries $(BIN)/programs -output '$(RELEASE_OUT)'
# Make the commit of the release VERSION=v0.1.0 and the tags of its modules, and say how to push them
release-tags:
	@scripts/release-tags '$(VERSION)'
# Make the release v0.1.0 of the working tree as release.yml does, publish it to registries on this machine, and install, test and run hello from them in every language
release-rehearsal:
	@HOOKGATE_COMPLETE=1 HOOKGATE_PACKAGES=$(CURDIR)/sdk HOOKGATE_REHEARSAL=1 $(GO) test -vet=off -count=1 -v -timeout 60m -run '^TestRelease$$' ./test/scaffold
examples: examples-go examples-java examples-python examples-rust examples-typescript ## Build the example extension of every language
# Build examples/go
examples-go:
	@cd examples/go && $(GO) build -o bin/extension . && echo "examples/go: built in $$SECONDS s"
# Build examples/java, and the package that it uses, with Maven
examples-java:
	@mvn -B -q -ntp -f sdk/java/pom.xml install -DskipTests && mvn -B -q -ntp -f examples/java/pom.xml package && echo "examples/java: built in $$SECONDS s"
# Build examples/python, with the package, in a virtual environment
examples-python: packages-python
	@examples/python/build.sh && echo "examples/python: built in $$SECONDS s"
# Build examples/infrastructure/ec2, with the package, and moto, which stands in for Amazon EC2 in tests
examples-ec2: packages-python
	@examples/infrastructure/ec2/build.sh test && echo "examples/infrastructure/ec2: built in $$SECONDS s"
# Build examples/rust, and the package that it uses, with Cargo
examples-rust:
	@cd examples/rust && cargo build -q --release --locked && echo "examples/rust: built in $$SECONDS s"
# Build examples/typescript, with the package, with npm
examples-typescript: packages-typescript
	@examples/typescript/build.sh && echo "examples/typescript: built in $$SECONDS s"
docs: $(ZENSICAL) ## Build the site of docs/ in out/docs; fails on pages that the index lacks, and on broken links and anchors
	@tools/docs/site sources $(BIN)/docs '$(VERSION)'
	@cd $(BIN)/docs && $(ZENSICAL) build --strict --clean >build.log 2>&1 || { cat build.log; exit 1; }
	@mkdir -p out && rm -rf out/docs && mv $(BIN)/docs/site out/docs
# Compare what an extension takes until it serves, on the package of each language and on the stubs alone
bench-packages: examples
	@$(GO) run ./test/hello
packages: packages-java packages-python packages-rust packages-typescript ## Write the packages for authors of extensions to out/packages/
# Write the jars and the POM of sdk/java
packages-java:
	@VERSION='$(RELEASED)' sdk/java/build.sh out/packages
# Write the crate of sdk/rust
packages-rust:
	@VERSION='$(RELEASED)' sdk/rust/build.sh out/packages
# Write the wheel of sdk/python
packages-python:
	@VERSION='$(RELEASED)' sdk/python/build.sh out/packages
# Write the npm package of sdk/typescript
packages-typescript:
	@sdk/typescript/pack '$(RELEASED)' out/packages

##@ Test

test: test-extension $(READY) ## Run the tests that need only Go: unit tests and suites that start the gateway
	@echo "go test $(if $(RACE),-race )$(EVERY) and the modules of test/ and tools/"
	@$(PROGRAMS) $(GOTEST) $$($(GO) list $(EVERY) | grep -v -E '$(APART)')
	@cd test/extra && $(GOTEST) ./extension
	@cd cmd/hookgate-render && $(GOTEST) ./...
	@cd tools && $(GOTEST) ./image ./performance ./sbom
	@$(if $(RACE),: compares values: the race detector has nothing to say,cd test/extra && $(PROGRAMS) $(PLAINTEST) ./conversion/...)
test-all: test-extension $(READY) test-all-programs examples-python examples-ec2 infrastructure-go ## Run the suites that need more than Go, each of which is test-NAME: API servers, browsers, other languages, Cluster API
	@MAKE='$(MAKE)' scripts/test-all $(SUITES)
# Build what test-all needs besides the gateway, which takes some minutes the first time
test-all-programs: $(if $(filter e2e skew kubernetes cluster clusterctl helm,$(SUITES)),kubernetes-binaries e2e-binaries skew-binaries clusterctl fake-cloud $(BIN)/kustomize) \
	$(if $(filter cluster,$(SUITES)),cluster-binaries)
test-unit: $(BIN)/gotestsum ## Run the tests that start no program
	@$(BIN)/gotestsum --format pkgname --format-hide-empty-pkg -- $(EVERY)
# Break the contract in every way that buf must notice
test-contract: $(BUF) $(BIN)/gotestsum
	@$(SUITE) HOOKGATE_BUF=$(BUF) $(GOTEST) ./test/contract
# Inject faults of extensions, callers and files under load, each gateway within 512 MiB, and print what happened
test-faults: build
	@cd test/extra && $(SUITE) HOOKGATE_BIN=$(BIN)/hookgate $(GO) test -vet=off -count=1 -v -timeout 30m -run '^Test(Cage|Faults)' ./faults
# Inject all faults in turns for DURATION (1h), and compare the end with the beginning
soak: build
	@cd test/extra && $(SUITE) HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_SOAK=$(DURATION) $(GO) test -vet=off -count=1 -v -timeout 0 -run '^TestSoak$$' ./faults
# Run extensions and a core that are built with Cluster API v1.12
test-skew: test-extension skew-binaries $(READY)
	@$(SUITE) $(GOTEST) -run '^TestSkew' ./test/suite
test-kubernetes: kubernetes-binaries $(READY) $(BIN)/kustomize ## Run the gateway and the manifests of deploy/ against a real API server
	@$(SUITE) $(GOTEST) -p 1 ./test/kubernetes ./test/provider ./test/machines ./test/deploy
test-cluster: cluster-programs $(BIN)/gotestsum ## Run the product in Pods, in a cluster of one node whose network has no way out; needs root
	@rm -f $(BIN)/not-checked.log
	@$(CLUSTER) $(PLAINTEST) ./test/cluster
	@cat $(BIN)/not-checked.log 2>/dev/null || true
# Run what test-cluster runs, with everything that takes longer, before a release, and print the figures
test-cluster-all: cluster-programs cluster-all-binaries
	@rm -f $(BIN)/not-checked.log
	@$(CLUSTER) HOOKGATE_CLUSTER_ALL=$(BIN)/cluster-all $(GO) test -vet=off -count=1 -v -timeout 60m ./test/cluster
	@cat $(BIN)/not-checked.log 2>/dev/null || true
# Install, upgrade, move and delete a release with clusterctl, on real API servers
test-clusterctl: clusterctl kubernetes-binaries release-generator $(READY) $(BIN)/kustomize
	@$(SUITE) $(GOTEST) ./test/clusterctl
# Lint the Helm chart, compare what it installs with the manifests of kustomize, and install it in a real API server
test-helm: kubernetes-binaries release-generator $(BIN)/gotestsum $(BIN)/kustomize
	@cd test/extra && $(SUITE) $(PLAINTEST) ./helm # without the race detector: it compares files
# Check the image, run it, and build it again, which must give the same bytes
test-image: image $(BIN)/gotestsum
	@$(SUITE) HOOKGATE_IMAGE='$(IMAGE_OUT)' $(GOTEST) ./test/image
# Run the tests of the fake cloud, with Cluster API's own code against its clusters, and of the providers in examples/
test-infrastructure: build examples-python examples-ec2 $(BIN)/gotestsum
	@cd test/infrastructure && $(SUITE) HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_MOTO=$(CURDIR)/examples/infrastructure/ec2/build/test/bin/moto_server $(PLAINTEST) ./... # without the race detector, to build Kubernetes' packages once
# Check the OpenAPI documents against the contract, and use their page and that of the extensions in a browser
test-openapi: browser $(AXE) $(READY) $(BIN)/oapi-codegen
	@cd test/extra && $(SUITE) HOOKGATE_OAPI_CODEGEN=$(BIN)/oapi-codegen HOOKGATE_AXE=$(AXE) $(GOTEST) -skip '^TestSite' ./openapi
# Read the site of docs/ in a browser: search, versions, dark mode
test-docs: browser docs $(BIN)/gotestsum
	@cd test/extra && $(SUITE) HOOKGATE_DOCS=$(CURDIR)/out/docs $(PLAINTEST) -run '^TestSite' ./openapi # without the race detector: it reads pages
# Check the alerts of deploy/monitoring with promtool, and its dashboard with Prometheus
test-monitoring: $(BIN)/prometheus/promtool $(READY)
	@$(SUITE) HOOKGATE_PROMTOOL=$(BIN)/prometheus/promtool HOOKGATE_PROMETHEUS=$(BIN)/prometheus/prometheus $(GOTEST) ./test/monitoring
	@cd tools && $(PLAINTEST) ./monitoring # without the race detector: it compares files
# Call the gateway through a real Envoy and a real nginx
test-proxies: $(BIN)/proxies/envoy $(READY)
	@$(SUITE) HOOKGATE_ENVOY=$(BIN)/proxies/envoy HOOKGATE_NGINX=$(BIN)/proxies/nginx/sbin/nginx $(GOTEST) ./test/proxies
# Run the example of every language behind the gateway; all must give the same answers
test-examples: build examples $(PROTOC) $(BIN)/gotestsum
	@tools/ruby/install
	@$(SUITE) HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_PROTOC=$(PROTOC) HOOKGATE_RUBY="$$(command -v ruby)" $(PLAINTEST) -p 1 ./test/examples ./test/badservers
# Install the package of every language into an empty project outside of the repository, and test it there; make projects with hookgate init
test-packages: test-packages-java test-packages-python test-packages-rust test-packages-typescript test-init
# Make a project of every kind with hookgate init outside of the repository, and run the commands of its README
test-init: build packages-java packages-python packages-rust packages-typescript $(BIN)/gotestsum
	@$(SUITE) HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_PACKAGES=$(CURDIR)/out/packages $(PLAINTEST) ./test/scaffold
test-packages-java: build packages-java
	@HOOKGATE_BIN=$(BIN)/hookgate sdk/java/test.sh out/packages
test-packages-rust: build packages-rust
	@HOOKGATE_BIN=$(BIN)/hookgate sdk/rust/test.sh out/packages
test-packages-python: build packages-python
	@HOOKGATE_BIN=$(BIN)/hookgate sdk/python/test.sh out/packages
test-packages-typescript: build packages-typescript
	@HOOKGATE_BIN=$(BIN)/hookgate sdk/typescript/test-package out/packages/hookgate-sdk-*.tgz
test-e2e: build render kubernetes-binaries e2e-binaries skew-binaries examples-python examples-ec2 clusterctl infrastructure-go fake-cloud ## Run Clusters with the real Cluster API, which calls every hook through the gateway
	@cd test/e2e && $(E2E) HOOKGATE_RENDER_BIN=$(BIN)/hookgate-render $(GO) test -vet=off -count=1 -v -parallel 5 -timeout 70m ./...
# The older releases of Cluster API that the gateway is for, the lowest first.
OLDER_CLUSTER_API ?= v1.12.0 v1.13.0
# Run one lifecycle with each older release of Cluster API, before a release of the gateway
test-e2e-older: build kubernetes-binaries $(OLDER_CLUSTER_API:%=$(BIN)/e2e-%/core)
	@for version in $(OLDER_CLUSTER_API); do \
		(cd test/e2e && $(E2E) HOOKGATE_E2E_BIN=$(BIN)/e2e-$$version HOOKGATE_E2E_SOURCES=$(BIN)/e2e-$$version/sources \
			$(GO) test -vet=off -count=1 -v -timeout 20m -run '^TestLifecycle$$' .); \
	done
# Have the Cluster Autoscaler scale machines from zero and back; AUTOSCALER_REPOSITORY has its source, which no module proxy has
test-autoscaler: build kubernetes-binaries e2e-binaries infrastructure-go fake-cloud $(BIN)/cluster-autoscaler
	@cd test/e2e && $(E2E) HOOKGATE_AUTOSCALER=$(BIN)/cluster-autoscaler $(GO) test -vet=off -count=1 -v -timeout 30m -run '^TestAutoscaler$$' .
# Take the pictures of the page in docs/pictures/ anew
pictures: build browser
	@mkdir -p docs/pictures && cd test/extra && $(PROGRAMS) HOOKGATE_PICTURES=$(CURDIR)/docs/pictures $(GO) test -vet=off -count=1 -run '^(TestConsoleShowsAStoppedExtension|TestChartsWithoutScripts)$$' ./openapi

# Build what tests start

# Build the gateway with the race detector
race:
	@CGO_ENABLED=1 $(GO) build -race -ldflags '$(LDFLAGS)' -o $(BIN)/race/hookgate ./cmd/hookgate
# Build the extension on Cluster API's own server that the suites start
test-extension:
	@$(GO) -C test/extra build -o $(BIN)/test-extension ./extension
# Build bin/clusterctl
clusterctl:
	@$(GO) -C tools/clusterctl build -o $(BIN)/clusterctl sigs.k8s.io/cluster-api/cmd/clusterctl
# Build bin/infrastructure-go, the example of an infrastructure provider over gRPC
infrastructure-go:
	@$(GO) build -o $(BIN)/infrastructure-go ./examples/infrastructure/go
# Build bin/fake-cloud, the cloud that extensions stand in front of in tests
fake-cloud:
	@$(GO) -C test/infrastructure build -o $(BIN)/fake-cloud ./cmd/fake-cloud
release-generator:
	@$(GO) build -o $(BIN)/release ./deploy/release/generate
# Install Debian's Chromium, unless there is a chromium
browser:
	@tools/browser/install
# Build what the suites start of Cluster API v1.12
skew-binaries: $(BIN)/skew/test-extension
	@$(GO) -C test/skew build -o $(BIN)/skew/ ./extension ./core
# Build kube-apiserver, etcd, kubectl and kube-controller-manager into bin/kubernetes, once
kubernetes-binaries: $(API_SERVER)
	@$(if $(API_SERVER),,echo "using the programs of KUBEBUILDER_ASSETS=$(KUBEBUILDER_ASSETS)")
# Build the programs of Cluster API into bin/e2e, once
e2e-binaries: $(BIN)/e2e/core
# Build what a node of Kubernetes runs into bin/cluster, once
cluster-binaries: $(BIN)/cluster/kubelet
# Build what test-cluster starts
cluster-programs: build kubernetes-binaries cluster-binaries cluster-image release-generator $(BIN)/kustomize
# Build what test-cluster-all starts besides, among it the release of the commit EARLIER, which it upgrades from
cluster-all-binaries: clusterctl e2e-binaries fake-cloud infrastructure-go release-generator $(BIN)/kustomize
	@scripts/build-cluster-all $(BIN)/cluster-all '$(EARLIER)'
# Build the image of the release that test/cluster runs, and the programs of the other Pods
cluster-image: build
	@$(MAKE) --no-print-directory image VERSION=v0.1.0 IMAGE_ARCHS=$$($(GO) env GOARCH) IMAGE_DIR=$(BIN)/cluster-image IMAGE_OUT=$(BIN)/cluster-image/image.tar
	@$(GO) build -o $(BIN)/pods/ ./test/cluster/pod ./examples/rest-extension
	@$(GO) -C examples/go build -o $(BIN)/pods/extension .
	@cp $(BIN)/hookgate $(BIN)/pods/cli # where HookJobs mount /hookgate
$(BIN)/skew/test-extension: test/skew/go.mod test/skew/go.sum
	@scripts/build-skew $@
$(BIN)/kubernetes/kube-apiserver: tools/kubernetes/go.mod tools/kubernetes/go.sum tools/kubernetes/etcd/main.go
	@scripts/build-kubernetes $(@D)
$(BIN)/cluster/kubelet: scripts/build-cluster tools/kubernetes/go.mod tools/kubernetes/go.sum tools/coredns/go.mod tools/coredns/go.sum
	@scripts/build-cluster $(@D)
$(BIN)/cluster-autoscaler: scripts/build-cluster-autoscaler
	@scripts/build-cluster-autoscaler $@ '$(AUTOSCALER_REPOSITORY)'
$(BIN)/e2e/core: test/e2e/go.mod test/e2e/go.sum
	@scripts/build-cluster-api $(@D)
$(BIN)/e2e-%/core: scripts/build-cluster-api
	@scripts/build-cluster-api $(@D) $*
$(BUF): tools/buf/package.json tools/buf/package-lock.json
	@scripts/install-buf $@
$(AXE): tools/axe/package-lock.json
	@mkdir -p $(BIN)/axe && cp tools/axe/package*.json $(BIN)/axe/
	@npm ci --prefix $(BIN)/axe --ignore-scripts --no-audit --no-fund --loglevel=error && touch $@
$(ZENSICAL): tools/docs/requirements.txt
	@python3 -m venv --clear $(BIN)/zensical && $(BIN)/zensical/bin/pip install --quiet --require-hashes -r $< && touch $@
$(BIN)/protoc-%:
	@scripts/install-protoc $* $@
$(BIN)/prometheus/promtool:
	@tools/prometheus/install $(@D)
$(BIN)/proxies/envoy: tools/proxies/install tools/proxies/requirements.txt
	@tools/proxies/install $(@D) && touch $@
$(TOOLS:%=$(BIN)/%): tools/go.mod
$(BIN)/golangci-lint: tools/golangci-lint/go.mod
$(TOOLS:%=$(BIN)/%) $(BIN)/golangci-lint: # Go builds a tool into its cache, and names the file
	@mkdir -p $(BIN) && tool=$$($(GO) -C $(<D) tool -n $(@F)) && cp -f "$$tool" $@
bin/%: $(BIN)/% ; @:

##@ Measure

fuzz: ## Run each fuzz target for FUZZTIME (30s), all of which bound the memory of one input
	@scripts/fuzz $(FUZZTIME)
# Change the code of PACKAGES in small ways, and require that tests notice 85 % of them; takes hours
mutation: $(BIN)/gremlins
	@scripts/mutation $(PACKAGES)
# Try SAMPLE mutants (300) of all of the product, chosen by SEED (1), within SAMPLE_TIME (no limit)
mutation-sample:
	@scripts/mutation-sample $(SAMPLE) $(SEED) $(SAMPLE_TIME)
bench: build bench-program ## Measure the gateway beside its peers and print ratios; BENCHFLAGS=--quick is short, BASELINE=FILE adds another gateway
	@$(BIN)/bench --hookgate $(BIN)/hookgate $(if $(BASELINE),--baseline '$(BASELINE)') $(BENCHFLAGS)
performance: build bench-program $(BIN)/proxies/envoy ## Measure anew the tables and curves of docs/performance; takes half an hour
	@scripts/performance $(BENCHFLAGS)
# Print how the bars of docs/performance differ from those of AGAINST, a tag or a commit
performance-compare:
	@test -n '$(AGAINST)' || { echo 'make performance-compare: set AGAINST=TAG' >&2; exit 1; }
	@mkdir -p $(BIN) && git show '$(AGAINST):docs/performance/README.md' >$(BIN)/performance-then.md
	@cd tools && $(GO) run ./performance -against $(BIN)/performance-then.md -page $(CURDIR)/docs/performance/README.md
bench-ratio: build bench-program ## Fail if calls take 15 % more CPU time, or come 15 % slower, than with the gateway of RATIO_AGAINST: the last release, or the commit before
	@scripts/bench-ratio '$(RATIO_AGAINST)'
# Measure on real API servers: 2,000 ExtensionConfigs of 10 handlers beside 20; then 2,000 machines of the infrastructure provider, also at rest (SCALEFLAGS="-rest 2m"), and those of Cluster API's in-memory provider
bench-scale: build kubernetes-binaries e2e-binaries
	@$(GO) build -o $(BIN)/scale ./test/scale
	@$(BIN)/scale --hookgate $(BIN)/hookgate --assets '$(KUBEBUILDER_ASSETS)' $(BENCHFLAGS)
	@$(SUITE) HOOKGATE_BIN=$(BIN)/hookgate $(GO) test -vet=off -timeout 2h -run '^$$' -bench '^BenchmarkScale$$' -benchtime 1x ./test/provider $(if $(SCALEFLAGS),-args $(SCALEFLAGS))
	@cd test/e2e && $(SUITE) HOOKGATE_E2E_BIN=$(BIN)/e2e $(GO) test -vet=off -count=1 -v -timeout 40m -run '^TestScaleInMemory$$' . -args -clusters 100 -machines 20
# Restart the real Cluster API with FLEET (500) Clusters whose patches an extension makes: directly, through the gateway, with its cache
bench-fleet: build kubernetes-binaries e2e-binaries
	@cd test/e2e && $(SUITE) HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_E2E_BIN=$(BIN)/e2e $(GO) test -vet=off -count=1 -v -timeout 40m -run '^TestFleet$$' . \
		-args -clusters $(FLEET) -rounds 2 $(FLEETFLAGS)
# Measure 1, 2 and 3 replicas under the calls of 1,000, 5,000 and 10,000 Clusters, in control groups, as root; LOADFLAGS='--clusters 1000 --replicas 2 --duration 10s' is short
bench-replicas: build
	@$(GO) build -o $(BIN)/fleet ./test/fleet && $(BIN)/fleet --hookgate $(BIN)/hookgate $(LOADFLAGS)
# Record the calls of the real Cluster API that bench-replicas makes
record-traffic: build kubernetes-binaries e2e-binaries
	@cd test/e2e && $(SUITE) HOOKGATE_BIN=$(BIN)/hookgate HOOKGATE_E2E_BIN=$(BIN)/e2e $(GO) test -vet=off -count=1 -v -timeout 45m -run '^TestTraffic$$' . \
		-args -traffic $(CURDIR)/test/fleet/testdata/traffic.json.gz
# Run the Go benchmarks
bench-go:
	@$(GO) test -run '^$$' -bench . -benchmem $(EVERY)
bench-program:
	@$(GO) build -o $(BIN)/bench ./test/bench

##@ Change

# Download all modules that the targets need, a module of this repository after the other
download:
	@git ls-files '*go.mod' ':!*/testdata/*' | xargs -n 1 dirname | xargs -I{} $(GO) -C {} mod download
generate: $(BUF) $(GENERATORS:%=$(BIN)/%) ## Regenerate gen/, deploy/crd/, the dashboard, proto/testdata/ and the pages of docs/ that come from the code
	@scripts/generate $(BUF)
GITLEAKS ?= v8.30.1
# Take over the rules of a release of gitleaks, GITLEAKS, by which secrets are recognized
secret-rules:
	@mkdir -p $(BIN) && $(GO) -C tools run ./redaction $(GITLEAKS) >$(BIN)/rules.json && mv $(BIN)/rules.json internal/contract/redact/rules.json
format: $(BUF) $(BIN)/golangci-lint ## Format Go and proto files
	@$(BIN)/golangci-lint fmt
	@$(BUF) format -w
verify: lint verify-proto verify-generated verify-modules verify-workflows verify-newer verify-vulnerabilities ## Lint, check the contract and the workflows, and check that generated files are up to date
lint: $(BIN)/golangci-lint ## Run the linters, the rules of import directions among them; they take up to LINT_MEMORY (6GiB)
	@scripts/lint $(MODULES)
# Lint the contract and compare it with that of the last release
verify-proto: $(BUF)
	@$(BUF) lint
	@$(BUF) format -d --exit-code
	@for module in $(RELEASED_PROTOS); do $(BUF) breaking $$module --against $$module/released.binpb; done
# Write released.binpb, with which changes of the protos are compared from now on; once for each release
release-contract: $(BUF)
	@for module in $(RELEASED_PROTOS); do $(BUF) build $$module --exclude-source-info -o $$module/released.binpb; done
# Check that generated files are up to date
verify-generated: generate
	@scripts/verify-generated
# Check that go.mod files are tidy
verify-modules:
	@for module in $(MODULES) $(PINNED); do \
		$(GO) -C $$module mod tidy -diff || { echo "$$module/go.mod is not tidy: run 'go mod tidy' there and commit"; exit 1; }; \
	done
# Lint the workflows of .github
verify-workflows: $(BIN)/actionlint
	@$(BIN)/actionlint -color=false
# Say what the newest types of Cluster API have that the contract lacks, if the module proxy can be asked
verify-newer:
	@mkdir -p $(BIN) && test/modules/newer | tee $(BIN)/newer.log
# Look for known vulnerabilities in what the gateway calls, if their database (GOVULNDB) can be reached
verify-vulnerabilities: $(BIN)/govulncheck
	@HOOKGATE_GOVULNCHECK=$(BIN)/govulncheck $(GO) -C tools test -count=1 ./govulncheck
	@tools/govulncheck/check $(BIN)/govulncheck '$(GOVULNDB)' | tee $(BIN)/vulnerabilities.log
clean: ## Remove what was built
	@rm -rf $(BIN) out
