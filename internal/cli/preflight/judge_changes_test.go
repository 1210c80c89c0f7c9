// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
)

// TestChanges judges what releases changed besides the version of objects.
func TestChanges(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		hook     string
		change   func(*Handler)
		direct   bool
		want     []string // level, rule, and a part of the problem
		policies []string
		remedy   string // of the first finding
	}{
		"Templates": {
			from: "v1.13", to: "v1.14", hook: "GeneratePatches",
			want: []string{
				"warn effects-change: since v1.14: patches of metadata.labels",
				"warn requests-change: since v1.14: templates of infrastructure clusters",
			},
			policies: []string{"acme-cluster-api: v1.13"},
		},
		"Validation": {
			from: "v1.13", to: "v1.14", hook: "ValidateTopology",
			want:     []string{"warn requests-change: since v1.14: templates of infrastructure clusters"},
			policies: []string{"acme-cluster-api: v1.13"},
			remedy:   "if the extension refuses members that it does not know, apply ExtensionPolicy acme-cluster-api",
		},
		"Stated": {
			from: "v1.13", to: "v1.14", hook: "ValidateTopology", change: func(h *Handler) { h.Release = "v1.12" },
			want: []string{"ok ok: "},
		},
		"StatedTooNew": {
			from: "v1.13", to: "v1.14", hook: "ValidateTopology",
			change: func(h *Handler) { h.Release, h.Policy = "v1.14", &Policy{Name: "p"} },
			want:   []string{"warn requests-change: since v1.14: templates of infrastructure clusters"},
			remedy: "if the extension refuses members that it does not know, add clusterAPIRelease: v1.13 to the spec of ExtensionPolicy p",
		},
		"NotBehindTheGateway": {
			from: "v1.13", to: "v1.14", hook: "ValidateTopology", direct: true,
			want: []string{"warn requests-change: since v1.14: templates of infrastructure clusters"},
			remedy: "if the extension refuses members that it does not know, upgrade it together with Cluster API, or put a " +
				"gateway before it, and state clusterAPIRelease: v1.13 in an ExtensionPolicy",
		},
		"OldestThatWasCompared": {
			from: "v1.10", to: "v1.14", hook: "ValidateTopology",
			want:     []string{"warn requests-change: since v1.12: for a control plane with contract v1beta1, holderReference.fieldPath"},
			policies: []string{"acme-cluster-api: v1.11"},
		},
		"FromNotKnown": {
			to: "v1.14", hook: "ValidateTopology",
			want: []string{"warn requests-change: since v1.12: for a control plane with contract v1beta1, holderReference.fieldPath"},
			remedy: "if the extension refuses members that it does not know, state clusterAPIRelease: the release that it was " +
				"built for in an ExtensionPolicy; --from cluster-api=VERSION leaves out what that release already has",
		},
		"BuiltForNewer": { // v1.13 was the first to send v1beta2
			from: "v1.11", to: "v1.13", hook: "BeforeClusterDelete", change: func(h *Handler) { h.States = "v1beta2" },
			want: []string{"ok ok: "},
		},
		"BuiltForTheRunning": {
			from: "v1.12", to: "v1.14", hook: "BeforeClusterUpgrade", change: func(h *Handler) { h.States = "v1beta1" },
			want:     []string{"degrade members-lost: ", "warn requests-change: since v1.13: the topology"},
			policies: []string{"acme-h-cluster-api: v1.12"},
		},
		"Announced": {
			from: "v1.14", to: "v1.15", hook: "CanUpdateMachine",
			want: []string{"warn effects-change: announced for v1.15: if the answer has affectsAvailability: false"},
		},
		"AnnouncedMembers": { // which no policy takes out yet
			from: "v1.14", to: "v1.15", hook: "AfterClusterUpgrade",
			want: []string{
				"warn effects-change: announced for v1.15: workers with a version of their own",
				"warn requests-change: announced for v1.15: MachineDeployments and MachinePools",
			},
		},
		"Nothing": {from: "v1.14", to: "v1.14", hook: "GeneratePatches", want: []string{"ok ok: "}},
	} {
		t.Run(name, func(t *testing.T) {
			target := Target{Hooks: catalog.New(), Lossy: lossy, Changes: catalog.ClusterAPIChanges}
			if err := target.ParseTarget("cluster-api=" + test.to + ".0"); err != nil {
				t.Fatal(err)
			}
			if test.from != "" {
				var err error
				if target.From, err = catalog.ClusterAPIReleaseOf(test.from); err != nil {
					t.Fatal(err)
				}
			}
			h := handler("h", test.hook)
			if test.change != nil {
				test.change(&h)
			}
			report := Judge(Inventory{Extensions: []Extension{{Name: "acme", Direct: test.direct, Handlers: []Handler{h}}}}, target)
			if report.Announced != (test.to == "v1.15") || strings.Contains(report.summary(), "not released") != report.Announced {
				t.Errorf("announced %t: %s", report.Announced, report.summary())
			}
			var policies []string
			for _, p := range report.Policies {
				policies = append(policies, p.Name+": "+p.Release)
				if !strings.Contains(p.Manifest, "\n  clusterAPIRelease: "+p.Release+"\n") || strings.Contains(p.Manifest, "clusterAPIVersion") {
					t.Errorf("the policy is\n%s", p.Manifest)
				}
			}
			if diff := cmp.Diff(test.policies, policies); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
			if len(report.Findings) != len(test.want) {
				t.Fatalf("findings are %+v, want %q", report.Findings, test.want)
			}
			for i, f := range report.Findings {
				if got := fmt.Sprintf("%s %s: %s", f.Level, f.Rule, f.Problem); !strings.HasPrefix(got, test.want[i]) {
					t.Errorf("finding %d is %s, want %s", i, got, test.want[i])
				}
			}
			if first := report.Findings[0].Remedy; test.remedy != "" && first != test.remedy {
				t.Errorf("the remedy is %s\nwant %s", first, test.remedy)
			}
		})
	}
}
