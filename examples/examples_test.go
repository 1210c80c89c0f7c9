// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples_test checks the example requests and manifests against Cluster API's own types, so that people who
// copy them start from something that is right.
package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/examples/requests"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

// upstream are the types that a request of that kind must fit, without a member left over.
var upstream = map[string]func() any{
	"BeforeClusterCreateRequest":          func() any { return new(runtimehooksv1.BeforeClusterCreateRequest) },
	"AfterControlPlaneInitializedRequest": func() any { return new(runtimehooksv1.AfterControlPlaneInitializedRequest) },
	"BeforeClusterUpgradeRequest":         func() any { return new(runtimehooksv1.BeforeClusterUpgradeRequest) },
	"BeforeControlPlaneUpgradeRequest":    func() any { return new(runtimehooksv1.BeforeControlPlaneUpgradeRequest) },
	"AfterControlPlaneUpgradeRequest":     func() any { return new(runtimehooksv1.AfterControlPlaneUpgradeRequest) },
	"BeforeWorkersUpgradeRequest":         func() any { return new(runtimehooksv1.BeforeWorkersUpgradeRequest) },
	"AfterWorkersUpgradeRequest":          func() any { return new(runtimehooksv1.AfterWorkersUpgradeRequest) },
	"AfterClusterUpgradeRequest":          func() any { return new(runtimehooksv1.AfterClusterUpgradeRequest) },
	"BeforeClusterDeleteRequest":          func() any { return new(runtimehooksv1.BeforeClusterDeleteRequest) },
	"GenerateUpgradePlanRequest":          func() any { return new(runtimehooksv1.GenerateUpgradePlanRequest) },
	"GeneratePatchesRequest":              func() any { return new(runtimehooksv1.GeneratePatchesRequest) },
	"ValidateTopologyRequest":             func() any { return new(runtimehooksv1.ValidateTopologyRequest) },
	"DiscoverVariablesRequest":            func() any { return new(runtimehooksv1.DiscoverVariablesRequest) },
	"CanUpdateMachineRequest":             func() any { return new(runtimehooksv1.CanUpdateMachineRequest) },
	"CanUpdateMachineSetRequest":          func() any { return new(runtimehooksv1.CanUpdateMachineSetRequest) },
	"UpdateMachineRequest":                func() any { return new(runtimehooksv1.UpdateMachineRequest) },
	"DiscoveryRequest":                    func() any { return new(runtimehooksv1.DiscoveryRequest) },
}

func documents(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	docs := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range strings.Split(string(data), "\n---\n") {
			body, err := yaml.YAMLToJSONStrict([]byte(doc))
			if err != nil {
				t.Fatalf("%s, document %d: %v", name, i+1, err)
			}
			docs[name+"#"+string(rune('1'+i))] = body
		}
	}
	return docs
}

// strict decodes and refuses members that the type does not have.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func kindOf(t *testing.T, body []byte) string {
	t.Helper()
	var meta struct{ Kind string }
	if err := json.Unmarshal(body, &meta); err != nil {
		t.Fatal(err)
	}
	return meta.Kind
}

func TestRequests(t *testing.T) {
	cat, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	mandated := codec.New(cat)
	for name, body := range documents(t, "requests/*.yaml") {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(t, body)
			h, ok := cat.ByName(strings.TrimSuffix(kind, "Request"))
			if !ok {
				t.Fatalf("kind %q is no request of a hook", kind)
			}
			message := h.Request.New().Interface()
			if err := mandated.Decode(body, message); err != nil {
				t.Fatal(err)
			}
			if h.Group != hook.Group {
				if text := prototext.Format(message); strings.Contains(text, "unknown_members") {
					t.Errorf("it has members that the hook does not know:\n%s", text)
				}
				return
			}
			newType, ok := upstream[kind]
			if !ok {
				t.Fatalf("this test does not know kind %s: add it", kind)
			}
			if err := strict(body, newType()); err != nil {
				t.Errorf("Cluster API's type does not fit: %v", err)
			}
			var withCluster struct{ Cluster json.RawMessage }
			if err := json.Unmarshal(body, &withCluster); err != nil {
				t.Fatal(err)
			}
			if withCluster.Cluster != nil {
				if err := strict(withCluster.Cluster, new(clusterv1.Cluster)); err != nil {
					t.Errorf("the Cluster is none: %v", err)
				}
			}
		})
	}
}

// Each hook has an example, whose comments name no file.
func TestExampleOfEachHook(t *testing.T) {
	cat, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range cat.Hooks() {
		example := string(requests.Example(h.GroupVersionHook))
		if !strings.Contains(example, "\nkind: "+h.Hook+"Request\n") || !strings.Contains(example, " -f <file>\n") {
			t.Errorf("%s has the example\n%s", h, example)
		}
	}
	if example := requests.Example(hook.GroupVersionHook{Group: "x", Version: "v1", Hook: "BeforeClusterCreate"}); example != nil {
		t.Errorf("the hook of another group has the example\n%s", example)
	}
}

// Chains are what a gateway accepts.
func TestChains(t *testing.T) {
	for name, body := range documents(t, "chains/*.yaml") {
		chain := new(v1alpha1.HandlerChain)
		if err := strict(body, chain); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, errs := handlerchain.Compile(chain, catalog.New()); len(errs) > 0 || chain.Kind != "HandlerChain" {
			t.Errorf("%s: %s: %v", name, chain.Kind, errs)
		}
	}
}

func TestExtensionConfigs(t *testing.T) {
	for name, body := range documents(t, "extension-configs/*.yaml") {
		t.Run(name, func(t *testing.T) {
			switch kind := kindOf(t, body); kind {
			case "ExtensionConfig":
				config := new(runtimev1.ExtensionConfig)
				if err := strict(body, config); err != nil {
					t.Fatal(err)
				}
				if config.APIVersion != runtimev1.GroupVersion.String() {
					t.Errorf("apiVersion %s, want the one that Cluster API stores", config.APIVersion)
				}
				if (config.Spec.ClientConfig.URL == "") == !config.Spec.ClientConfig.Service.IsDefined() {
					t.Error("want exactly one of url and service")
				}
			case "Namespace":
				if err := strict(body, new(corev1.Namespace)); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("kind %q is nothing that a gateway reads", kind)
			}
		})
	}
}
