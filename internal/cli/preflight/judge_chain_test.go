// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// A chain breaks with its steps, and several handlers are found only by a Cluster API that takes one.
func TestChains(t *testing.T) {
	patches := hook.GroupHook{Group: hook.Group, Hook: "GeneratePatches"}
	inPlace := hook.GroupHook{Group: hook.Group, Hook: "CanUpdateMachine"}
	several := []SeveralHandlers{{Hook: inPlace, Problem: "two are offered"}}
	for reason, tt := range map[string]struct {
		target, from string
		chains       []Chain
		several      []SeveralHandlers
		want         []string // level, rule, object, hook and problem
	}{
		"nothing changes": {
			"cluster-api=v1.14.0", "v1.13.0", []Chain{{Name: "c", Hook: patches, Steps: []string{"patch.acme"}}}, nil,
			[]string{"ok ok c GeneratePatches nothing keeps its steps from being called"},
		},
		"a Cluster API without the hook of a step": {
			"cluster-api=v1.11.0", "", []Chain{{Name: "c", Hook: inPlace, Steps: []string{"elsewhere.x", "can.acme"}}, {Name: "d", Hook: inPlace}}, several,
			[]string{
				"break chain-broken c CanUpdateMachine calls of the chain would fail, because of its steps can.acme",
				"ok ok d CanUpdateMachine nothing keeps its steps from being called",
			},
		},
		"a chain that is broken now": {
			"hookgate=v0.1.0", "", []Chain{{Name: "c", Hook: patches, Steps: []string{"gone.acme"}, Broken: "no handler"}, {Name: "typo", Broken: "no hook"}}, nil,
			[]string{
				"warn chain-not-ready c GeneratePatches calls of the chain fail: no handler",
				"warn chain-not-ready typo  calls of the chain fail: no hook",
			},
		},
		"several handlers, for a Cluster API that will call the hook": {
			"cluster-api=v1.14.0", "v1.11.0", nil, several, []string{"break several-handlers CanUpdateMachine CanUpdateMachine two are offered"},
		},
		"several handlers, for one that calls it already": {
			"cluster-api=v1.14.0", "v1.12.0", nil, several, []string{"warn several-handlers CanUpdateMachine CanUpdateMachine two are offered"},
		},
		"several handlers, for one that is not upgraded": {
			"hookgate=v0.1.0", "", nil, several, []string{"warn several-handlers CanUpdateMachine CanUpdateMachine two are offered"},
		},
	} {
		target := Target{Hooks: catalog.New(), Lossy: lossy}
		if err := target.ParseTarget(tt.target); err != nil {
			t.Fatal(err)
		}
		if tt.from != "" {
			target.From = releaseOf(t, tt.from)
		}
		report := Judge(Inventory{
			Extensions: []Extension{{Name: "acme", Handlers: []Handler{handler("can", "CanUpdateMachine"), handler("patch", "GeneratePatches")}}},
			Chains:     tt.chains, Several: tt.several,
		}, target)
		var got []string
		for i := range report.Findings {
			if f := &report.Findings[i]; f.ExtensionConfig == "" {
				got = append(got, strings.Join([]string{string(f.Level), f.Rule, f.Object(), f.hookName(), f.Problem}, " "))
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
		if report.HandlerChains != len(tt.chains) {
			t.Errorf("%s: counted %d chains", reason, report.HandlerChains)
		}
	}
}
