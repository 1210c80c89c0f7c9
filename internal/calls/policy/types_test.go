// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/test/samples"
)

func typesOf(t testing.TB) (*Types, *catalog.Catalog) {
	t.Helper()
	hooks := catalog.New()
	checked, err := NewTypes(hooks)
	if err != nil {
		t.Fatal(err)
	}
	return checked, hooks
}

// Expressions are checked against the request of each hook: those that suit it, and one word of each of them misspelled.
func TestExpressionsOfEachHook(t *testing.T) {
	checked, hooks := typesOf(t)
	clusters := "BeforeClusterCreate BeforeClusterUpgrade GenerateUpgradePlan"
	for expression, tc := range map[string]struct{ hooks, typo, mistake string }{
		`request.settings.region == 'north'`: {
			clusters + " GeneratePatches UpdateMachine", `request.setings.region == 'north'`, "line 1, column 8: undefined field 'setings'",
		},
		`request.kind != '' && request.apiVersion.startsWith('hooks')`: {
			clusters + " GeneratePatches", `request.knd != ''`, "line 1, column 8: undefined field 'knd'",
		},
		`request.cluster.metadata.namespace == 'a' && request.cluster.metadata.labels['x'] == request.cluster.metadata.labels.y`: {
			clusters, `request.cluster.metadata.nmespace == 'a'`, "line 1, column 25: undefined field 'nmespace'",
		},
		`has(request.cluster.spec.topology) && request.cluster.spec.topology.version.startsWith('v1') && request.cluster.spec.paused`: {
			clusters, `has(request.cluster.spec.toplogy)`, "line 1, column 4: undefined field 'toplogy'",
		},
		`size(request.cluster.spec.topology.workers.machineDeployments) > 3 && request.cluster.spec.topology.workers.machineDeployments.all(d, d.replicas < 5)`: {
			clusters, `request.cluster.spec.topology.workers.machineDeployments.all(d, d.replica < 5)`, "line 1, column 66: undefined field 'replica'",
		},
		`request.cluster.spec.topology.workers.machinePools.exists(p, p.name == 'a' && p.?version.orValue('') == 'v1.36.0')`: {
			clusters, `request.cluster.spec.topology.workers.machinePools.exists(p, p.vrsion == '')`, "undefined field 'vrsion'",
		},
		// Members that only one version has, and that are different in both.
		`request.cluster.spec.infrastructureRef.apiVersion != '' || request.cluster.spec.infrastructureRef.apiGroup != ''`: {
			clusters, `request.cluster.spec.infrastructureRef.version != ''`, "undefined field 'version'",
		},
		`dyn(request.cluster).spec.newer == 1`: {clusters, `dyn(request.clustr).spec.newer == 1`, "undefined field 'clustr'"},
		`request.?cluster.?metadata.?annotations[?'a'].orValue('') == ''`: {
			clusters, `request.?cluster.?metadata.?annotation.hasValue()`, "undefined field 'annotation'",
		},
		`request.fromKubernetesVersion < request.toKubernetesVersion`: {
			"BeforeClusterUpgrade", `request.fromKubernetesVersion < request.kubernetesVersion`, "line 1, column 40: undefined field 'kubernetesVersion'",
		},
		`request.items.exists(i, i.holderReference.kind == 'KubeadmControlPlane' && i.object.spec.anything == 1)`: {
			"GeneratePatches ValidateTopology", `request.items.exists(i, i.holderReference.knd == '')`, "line 1, column 42: undefined field 'knd'",
		},
		`request.variables.exists(v, v.name == 'builtin' && v.value.cluster.name == 'c')`: {
			"GeneratePatches", `request.variables.exists(v, v.nam == '')`, "undefined field 'nam'",
		},
		`request.current.machine.spec.version != request.desired.machine.spec.version`: {
			"CanUpdateMachine", `request.current.machine.spec.vrsion != ''`, "undefined field 'vrsion'",
		},
		`request.desired.machine.metadata.name == 'm' && request.desired.infrastructureMachine.spec.any == 1`: {
			"UpdateMachine CanUpdateMachine", `request.desired.machin.metadata.name == ''`, "undefined field 'machin'",
		},
		`request.current.machineSet.spec.replicas > 1`: {
			"CanUpdateMachineSet", `request.current.machineSet.spec.replcas > 1`, "undefined field 'replcas'",
		},
		`request.cluster.metadata.creationTimestamp.startsWith('2026') && timestamp(request.cluster.metadata.creationTimestamp).getFullYear() > 2025`: {
			clusters, `request.cluster.spec.paused == 'yes'`, "found no matching overload for '_==_'",
		},
	} {
		for name := range strings.FieldsSeq(tc.hooks) {
			h, _ := hooks.ByName(name)
			if errs := checked.Check(compiled(t, expression), h.GroupHook()); len(errs) > 0 {
				t.Errorf("%s: %s: %v", name, expression, errs[0])
			}
			errs := checked.Check(compiled(t, "true", tc.typo), h.GroupHook())
			if len(errs) != 1 || errs[0].Index != 1 || !strings.Contains(errs[0].Message, tc.mistake) ||
				!strings.HasPrefix(errs[0].Message, "in a request of "+name+": ") {
				t.Errorf("%s: %s: got %v, want %s", name, tc.typo, errs, tc.mistake)
			}
		}
		if errs := checked.CheckAny(compiled(t, expression)); len(errs) > 0 {
			t.Errorf("any hook: %s: %v", expression, errs[0])
		}
	}
}

// What newer says is in the types of a newer release of Cluster API is not in these.
func TestNewerMembers(t *testing.T) {
	for path, of := range map[string]reflect.Type{
		"Cluster.spec.topology.workers.machineDeployments": reflect.TypeFor[clusterv1.MachineDeploymentTopology](),
		"Cluster.spec.topology.workers.machinePools":       reflect.TypeFor[clusterv1.MachinePoolTopology](),
	} {
		members := map[string][]reflect.Type{}
		if membersOf(of, members); !newer[path] || len(members["version"]) > 0 {
			t.Errorf("%s has a version: newer is not needed any more", path)
		}
	}
}

// A condition that suits no hook has the mistake of the hook that it suits for longest.
func TestExpressionsOfNoHook(t *testing.T) {
	checked, _ := typesOf(t)
	for expression, want := range map[string]string{
		`request.nmespace == 'a'`: "does not suit the requests of any hook; in a request of AfterClusterUpgrade: " +
			"line 1, column 8: undefined field 'nmespace'",
		`request.items.exists(i, i.holderReference.nmespace == 'a')`: "does not suit the requests of any hook; in a request of " +
			"GeneratePatches: line 1, column 42: undefined field 'nmespace'",
	} {
		errs := checked.CheckAny(compiled(t, `true`, expression))
		if len(errs) != 1 || errs[0].Index != 1 || errs[0].Message != want {
			t.Errorf("%s: got %v, want %s", expression, errs, want)
		}
	}
	if errs := checked.CheckAny(nil); errs != nil {
		t.Errorf("without conditions: %v", errs)
	}
}

// The types know every member of the sample requests.
func TestTypesHaveAllMembersOfTheSamples(t *testing.T) {
	checked, hooks := typesOf(t)
	for _, name := range append(samples.Hooks(), samples.InfrastructureHooks()...) {
		h, ok := hooks.ByName(name)
		if !ok || h.Singleton() {
			continue
		}
		r := decoded(string(samples.Body(name)))
		r.begin(t.Context())
		for _, path := range paths("request", r.root) {
			if errs := checked.Check(compiled(t, path+" == dyn(1)"), h.GroupHook()); len(errs) > 0 {
				t.Errorf("%s: %v", name, errs[0])
			}
		}
	}
}

// paths returns the paths of the members of an object that are names of CEL, and of the first elements of lists.
func paths(at string, v any) []string {
	switch v := v.(type) {
	case *object:
		var all []string
		for i := range v.distinct() {
			m := &v.members[i]
			name := v.name(m)
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" || slices.Contains([]string{"namespace", "null", "true", "false", ""}, name) {
				continue // some are reserved
			}
			all = append(all, at+"."+name)
			all = append(all, paths(at+"."+name, v.at(m))...)
		}
		return all
	case *list:
		if it := v.Iterator(); it.HasNext().Value() == true {
			return paths(at+"[0]", it.Next())
		}
	}
	return nil
}
