// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/samples"
)

// fenced returns the YAML in a page of the documentation.
func fenced(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	rest := string(text)
	for {
		_, after, ok := strings.Cut(rest, "\n```yaml\n")
		if !ok {
			return blocks
		}
		block, tail, ok := strings.Cut(after, "\n```\n")
		if !ok {
			t.Fatalf("%s: a block does not end", page)
		}
		blocks, rest = append(blocks, block+"\n"), tail
	}
}

// The schema and the source accept the guide's examples, which do what the guide says.
func TestGuideToExtensionPolicy(t *testing.T) {
	blocks := fenced(t, "extension-policy.md")
	if len(blocks) != 8 {
		t.Fatalf("the guide has %d examples", len(blocks))
	}
	examples := strings.Join(blocks, "---\n")
	schema := readCRD(t, "extensionpolicies")
	for document := range strings.SplitSeq(examples, "---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
			t.Fatal(err)
		}
		if problems := schema.Problems(t, object, nil); len(problems) > 0 {
			t.Errorf("the API server would refuse the example: %v\n%s", problems, document)
		}
	}

	read := Inventory{}
	next, problems := read.Next([]File{{file: "acme.yaml", content: []byte(config("acme", urlA))}, {file: "policies.yaml", content: []byte(examples)}}, newDecoder(t))
	if len(problems) > 0 {
		t.Errorf("the example has problems: %v", problems)
	}
	var policies []extensionpolicy.Policy
	for _, o := range next.Of(extensionpolicy.Kind) {
		policies = append(policies, o.Compiled.(extensionpolicy.Policy))
	}
	resolved, verdicts := extensionpolicy.Resolve(policies, func(extensionpolicy.Target) error { return nil })
	for _, name := range []string{"acme", "acme-before-create", "small", "patches", "names", "nutanix", "volumes", "calm"} {
		if !verdicts[name].Accepted() {
			t.Errorf("policy %s: %+v", name, verdicts[name])
		}
	}
	if calm := resolved["gate"].All; calm.Messages != policy.Steady {
		t.Errorf("policy calm: messages are %s", calm.Messages)
	}
	small := resolved["small"].All
	if small.Limits.MaxInFlight != 4 || small.Limits.MaxWaiting != 100 || small.Circuit.ConsecutiveFailures != 10 ||
		small.Circuit.MaxOpen != 10*time.Second {
		t.Errorf("policy small: %+v, %+v", small.Limits, small.Circuit)
	}
	if ttl := resolved["patches"].All.CacheTTL; ttl != 5*time.Minute {
		t.Errorf("policy patches: answers are kept for %s", ttl)
	}
	if lifted := resolved["volumes"].All.Lifted; len(lifted.Of) != 2 {
		t.Errorf("policy volumes: lifts %+v", lifted)
	}
	r := registry.New()
	r.SetPolicies("acme", resolved["acme"])
	acme := next.Of(extensionconfig.Kind)["acme"].Extension.Registration
	acme.Handlers = discoverytest.Handlers("before-create", "other")
	if err := r.Apply(acme); err != nil {
		t.Fatal(err)
	}
	snapshot := r.Snapshot()
	other, ok := snapshot.Handler("other.acme")
	if !ok || other.Handler.Timeout.Seconds() != 5 || other.Handler.FailurePolicy != hook.Ignore {
		t.Errorf("other.acme: got %+v", other)
	}
	own, ok := snapshot.Handler("before-create.acme")
	if !ok || own.Handler.Timeout.Seconds() != 5 || own.Handler.FailurePolicy != hook.Ignore || own.Policy.Order == nil || *own.Policy.Order != 10 {
		t.Fatalf("before-create.acme: got %+v", own)
	}
	for name, tc := range map[string]struct {
		request []byte
		want    bool
	}{
		"Sample": {samples.S(), false},
		"Small":  {[]byte(`{"cluster":{"metadata":{"namespace":"default"}}}`), false},
		"Large":  {[]byte(`{"cluster":{"metadata":{"namespace":"default"},"spec":{"topology":{"workers":{"machineDeployments":[{},{},{},{}]}}}}}`), true},
		"System": {[]byte(`{"cluster":{"metadata":{"namespace":"kube-system"},"spec":{"topology":{"workers":{"machineDeployments":[{},{},{},{}]}}}}}`), false},
	} {
		request := policy.NewRequest(tc.request, policy.Guard{})
		if got, err := own.Policy.Conditions.Match(t.Context(), request); err != nil || got != tc.want {
			t.Errorf("%s: the conditions of the example are %v, %v, want %v", name, got, err, tc.want)
		}
	}
}
