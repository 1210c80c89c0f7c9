// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/hookgate/hookgate/catalog"
)

// TestSARIF holds the output against the schema of SARIF 2.1.0, which the library has.
func TestSARIF(t *testing.T) {
	target := Target{Hooks: catalog.New(), Lossy: lossy}
	for _, text := range []string{"cluster-api=v1.14.0", "hookgate=v0.1.0"} {
		if err := target.ParseTarget(text); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if target.From, err = catalog.ClusterAPIReleaseOf("v1.12.0"); err != nil {
		t.Fatal(err)
	}
	at := func(file string, line int) func(*Handler) {
		return func(h *Handler) { h.Location = Location{file, line} }
	}
	report := Judge(Inventory{
		Extensions: []Extension{
			{Name: "acme", Handlers: []Handler{
				handler("create", "BeforeClusterCreate", at("manifests/acme 1.yaml", 12)),
				handler("old", "BeforeClusterDelete", states("v1beta1"), at("/etc/x.yaml", 3)),
				handler("patch", "GeneratePatches", at("manifests/acme.yaml", 13)),
			}},
			{Name: "cluster", Undiscovered: "nobody has asked", Discover: "ask"},
		},
		Ignored:    []IgnoredPolicy{{Name: "p", ExtensionConfig: "gone", Reason: "there is none"}},
		Unreadable: []Unreadable{{Location: Location{"manifests/bad.yaml", 0}, Reason: "empty"}},
	}, target)
	var out, again bytes.Buffer
	if err := report.WriteSARIF(&out, "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteSARIF(&again, "v0.1.0"); err != nil || out.String() != again.String() {
		t.Errorf("written twice, it differs: %v", err)
	}
	parsed, err := sarif.FromBytes(out.Bytes(), sarif.WithStrictValidation())
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if err := parsed.Validate(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Rules []struct{ ID, HelpURI string }
				}
			}
			Results []struct {
				RuleID, Level string
				RuleIndex     int
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
					LogicalLocations []struct{ FullyQualifiedName string }
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil || log.Version != "2.1.0" || len(log.Runs) != 1 {
		t.Fatalf("%v: %+v", err, log)
	}
	run := log.Runs[0]
	if len(run.Tool.Driver.Rules) != len(Rules())-1 {
		t.Errorf("%d rules, want all but ok", len(run.Tool.Driver.Rules))
	}
	var got []string
	for _, r := range run.Results {
		l := r.Locations[0]
		name := ""
		if len(l.LogicalLocations) > 0 {
			name = l.LogicalLocations[0].FullyQualifiedName
		}
		got = append(got, fmt.Sprintf("%s %s %s:%d %s", r.Level, r.RuleID, l.PhysicalLocation.ArtifactLocation.URI, l.PhysicalLocation.Region.StartLine, name))
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("%s has index %d, which is %s's", r.RuleID, r.RuleIndex, run.Tool.Driver.Rules[r.RuleIndex].ID)
		}
		if !strings.Contains(r.Message.Text, "What to do: ") {
			t.Errorf("%s does not say what to do: %s", r.RuleID, r.Message.Text)
		}
		if r.RuleID == ruleObjectsChange && !strings.Contains(r.Message.Text, "\n  clusterAPIVersion: v1beta1\n") {
			t.Errorf("the policy is missing in %s", r.Message.Text)
		}
	}
	want := []string{
		"error unreadable manifests/bad.yaml:1 ",
		"error objects-change manifests/acme%201.yaml:12 handler/create.acme",
		"error not-discovered :0 extensionconfig/cluster",
		"warning members-lost file:///etc/x.yaml:3 handler/old.acme",
		"note policy-ignored :0 extensionpolicy/p",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
