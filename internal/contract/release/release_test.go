// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

const (
	jsonPatch  = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	mergePatch = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH

	// What Cluster API v1.14 adds.
	addedLabels      = `"cluster.x-k8s.io/cluster-name":"c","topology.cluster.x-k8s.io/owned":""`
	addedAnnotations = `"cluster.x-k8s.io/cloned-from-groupkind":"G","cluster.x-k8s.io/cloned-from-name":"n"`
	added            = `"metadata":{"annotations":{` + addedAnnotations + `},"labels":{` + addedLabels + `}}`
)

// holders of one template of each kind, by name.
var holders = map[string]*hooksv1alpha1.HolderReference{
	"infrastructure": {ApiVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", FieldPath: "spec.infrastructureRef"},
	"control plane":  {ApiVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", FieldPath: "spec.controlPlaneRef"},
	"pool":           {ApiVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachinePool", FieldPath: "spec.template.spec.infrastructureRef"},
	"machines":       {ApiVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineDeployment", FieldPath: "spec.template.spec.infrastructureRef"},
	"control plane machines": {ApiVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane",
		FieldPath: "spec.machineTemplate.spec.infrastructureRef"},
}

func requestOf(holder *hooksv1alpha1.HolderReference, object string) *hooksv1alpha1.GeneratePatchesRequest {
	return &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{
		Uid: "u", HolderReference: holder, Object: &hooksv1alpha1.RawExtension{Raw: []byte(object)},
		Variables: []*hooksv1alpha1.Variable{{Name: "v"}},
	}}}
}

func reduced(t testing.TB, release string, holder *hooksv1alpha1.HolderReference, object string) (Reduced, string) {
	t.Helper()
	req := requestOf(holder, object)
	r, err := Request(jsonpatch.Guard{}, release, "GeneratePatches", req)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(req.GetItems()[0].GetObject().GetRaw()); got != object {
		t.Fatalf("the request of the caller is now %s", got)
	}
	item := r.Message.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0]
	if item.GetUid() != "u" || len(item.GetVariables()) != 1 || item.GetHolderReference() != holder {
		t.Fatalf("the item lost something: %v", item)
	}
	return r, string(item.GetObject().GetRaw())
}

func TestTemplates(t *testing.T) {
	for name, test := range map[string]struct {
		holder, release, whole, seen string
	}{
		"InfrastructureCluster": {"infrastructure", "v1.13", `{"spec":{"template":{` + added + `,"spec":{"a":1}}}}`, `{"spec":{"template":{"spec":{"a":1}}}}`},
		"OwnLabelsStay": {"infrastructure", "v1.12", `{"spec":{"template":{"metadata":{"labels":{"own":"x",` + addedLabels + `}},"spec":{}}}}`,
			`{"spec":{"template":{"metadata":{"labels":{"own":"x"}},"spec":{}}}}`},
		"Pool": {"pool", "v1.11", `{"spec":{"template":{"metadata":{"labels":{` + addedLabels + `,"topology.cluster.x-k8s.io/pool-name":"p"}}}}}`,
			`{"spec":{"template":{}}}`},
		"Workers":  {"machines", "v1.12", `{"metadata":{"labels":{"topology.cluster.x-k8s.io/deployment-name":"d",` + addedLabels + `}}}`, `{"metadata":{}}`},
		"Machines": {"machines", "v1.13", `{"metadata":{"name":"m","labels":{` + addedLabels + `}},"spec":{}}`, `{"metadata":{"name":"m"},"spec":{}}`},
		"ControlPlaneMachines": {"control plane machines", "v1.13", `{"metadata":{"annotations":{"own":"x",` + addedAnnotations + `},"name":"m"}}`,
			`{"metadata":{"annotations":{"own":"x"},"name":"m"}}`},
		"NestedMetadataOfMachinesStays": {"machines", "v1.13", `{"spec":{"template":{` + added + `}}}`, `{"spec":{"template":{` + added + `}}}`},
		"Kubeadm": {"control plane", "v1.13", `{"kind":"KubeadmControlPlaneTemplate","spec":{"template":{"metadata":{"labels":{"tier":"x",` + addedLabels + `}}}}}`,
			`{"kind":"KubeadmControlPlaneTemplate","spec":{"template":{"metadata":{"labels":{"tier":"x"}}}}}`},
		"OtherControlPlane": {"control plane", "v1.13", `{"kind":"RKE2ControlPlaneTemplate","spec":{"template":{"metadata":{"labels":{"tier":"x",` + addedLabels + `}}}}}`,
			`{"kind":"RKE2ControlPlaneTemplate","spec":{"template":{}}}`},
		"NewestRelease": {"infrastructure", "v1.14", `{"spec":{"template":{` + added + `}}}`, `{"spec":{"template":{` + added + `}}}`},
		"OlderCaller":   {"infrastructure", "v1.12", `{"spec":{"template":{"spec":{}}}}`, `{"spec":{"template":{"spec":{}}}}`},
		"OddShapes":     {"infrastructure", "v1.12", `{"spec":{"template":{"metadata":{"labels":["x"],"annotations":null}}}}`, `{"spec":{"template":{"metadata":{"labels":["x"],"annotations":null}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, seen := reduced(t, test.release, holders[test.holder], test.whole); seen != test.seen {
				t.Errorf("the handler sees\n%s\nwant\n%s", seen, test.seen)
			}
			validate := &hooksv1alpha1.ValidateTopologyRequest{Items: []*hooksv1alpha1.ValidateTopologyRequestItem{{
				HolderReference: holders[test.holder], Object: &hooksv1alpha1.RawExtension{Raw: []byte(test.whole)},
			}}}
			r, err := Request(jsonpatch.Guard{}, test.release, "ValidateTopology", validate)
			if err != nil {
				t.Fatal(err)
			}
			if seen := string(r.Message.(*hooksv1alpha1.ValidateTopologyRequest).GetItems()[0].GetObject().GetRaw()); seen != test.seen {
				t.Errorf("ValidateTopology: the handler sees\n%s\nwant\n%s", seen, test.seen)
			}
		})
	}
}

func TestMembers(t *testing.T) {
	cluster := `{"spec":{"topology":{"controlPlane":{"rollout":{"after":"t"},"taints":[]},"version":"v1",` +
		`"workers":{"machineDeployments":[{"name":"a","rollout":{"after":"t","strategy":{}}},{"taints":[1]}],"machinePools":[{"taints":[]}]}}}}`
	steps := []*hooksv1alpha1.UpgradeStepInfo{{Version: "v1.33.0"}}
	req := &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(cluster)}, ControlPlaneUpgrades: steps, WorkersUpgrades: steps,
		ToKubernetesVersion: "v1.33.0",
	}
	for release, want := range map[string]struct {
		cluster string
		steps   int
		lost    int
	}{
		"v1.11": {`{"spec":{"topology":{"controlPlane":{},"version":"v1","workers":{"machineDeployments":[{"name":"a","rollout":{"strategy":{}}},{}],"machinePools":[{}]}}}}`, 0, 5},
		"v1.12": {`{"spec":{"topology":{"controlPlane":{},"version":"v1","workers":{"machineDeployments":[{"name":"a","rollout":{"strategy":{}}},{}],"machinePools":[{}]}}}}`, 1, 5},
		"v1.13": {cluster, 1, 0},
		"":      {cluster, 1, 0},
	} {
		r, err := Request(jsonpatch.Guard{}, release, "BeforeClusterUpgrade", req)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Message.(*hooksv1alpha1.BeforeClusterUpgradeRequest)
		if diff := cmp.Diff(want.cluster, string(got.GetCluster().GetRaw())); diff != "" {
			t.Errorf("%s: Cluster (-want +got):\n%s", release, diff)
		}
		if len(got.GetControlPlaneUpgrades()) != want.steps || len(got.GetWorkersUpgrades()) != want.steps || got.GetToKubernetesVersion() != "v1.33.0" {
			t.Errorf("%s: the handler sees %v", release, got)
		}
		if len(r.Lost) != want.lost {
			t.Errorf("%s: lost %v, want %d", release, r.Lost, want.lost)
		}
	}
	if len(req.GetWorkersUpgrades()) != 1 || string(req.GetCluster().GetRaw()) != cluster {
		t.Error("the request of the caller was changed")
	}
}

// TestEveryMemberIsTakenOut takes each member of the table out of a request that has it.
func TestEveryMemberIsTakenOut(t *testing.T) {
	hooks := catalog.New()
	for _, c := range catalog.ClusterAPIChanges("", nil, nil) {
		if c.Kind != catalog.RequestGains || c.Announced {
			continue
		}
		before := fmt.Sprintf("v1.%d", minor(t, c.Release)-1)
		for _, name := range c.Hooks {
			if catalog.ObjectVersion(name, before) == "" && !strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "y") {
				continue // the hook is newer
			}
			h, ok := hooks.Lookup(hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: name})
			if !ok {
				t.Fatalf("%s is no hook", name)
			}
			for _, path := range c.Members {
				first, rest, nested := strings.Cut(path, ".")
				field := h.Request.Descriptor().Fields().ByJSONName(first)
				if field == nil {
					t.Errorf("%s: requests have no %s", name, path)
					continue
				}
				if !nested {
					continue
				}
				m := h.Request.New()
				m.Mutable(field).Message().Set(field.Message().Fields().ByName("raw"), rawValue(nest(strings.Split(rest, "."))))
				r, err := Request(jsonpatch.Guard{}, before, name, m.Interface())
				if err != nil || len(r.Lost) != 1 || r.Lost[0] != path {
					t.Errorf("%s: %s is not taken out for %s: %v %v", name, path, before, r.Lost, err)
				}
			}
		}
	}
}

func TestCarriedOver(t *testing.T) {
	const whole = `{"spec":{"template":{"metadata":{"labels":{"own":"x",` + addedLabels + `}},"spec":{"list":[1,2],"a":{"b":1}}}}}`
	for name, test := range map[string]struct {
		of    hooksv1alpha1.PatchType
		patch string
		want  string // what the patch of the answer makes of the whole object
		same  bool   // the patch is that of the handler
	}{
		"InsideTheSpec": {jsonPatch, `[{"op":"test","path":"/spec/template/spec/a/b","value":1},{"op":"add","path":"/spec/template/spec/list/-","value":3}]`,
			`{"spec":{"template":{"metadata":{"labels":{"own":"x",` + addedLabels + `}},"spec":{"list":[1,2,3],"a":{"b":1}}}}}`, true},
		"MergeInsideTheSpec": {mergePatch, `{"spec":{"template":{"spec":{"a":null}}}}`,
			`{"spec":{"template":{"metadata":{"labels":{"own":"x",` + addedLabels + `}},"spec":{"list":[1,2]}}}}`, true},
		"ReplaceTheTemplate": {jsonPatch, `[{"op":"replace","path":"/spec/template","value":{"spec":{"new":null}}}]`,
			`{"spec":{"template":{"metadata":{"labels":{` + addedLabels + `}},"spec":{"new":null}}}}`, false},
		"ReplaceTheTemplateAsGoWritesIt": {jsonPatch, `[{"op":"replace","path":"/spec/template","value":{"metadata":{"creationTimestamp":null},"spec":{}}}]`,
			`{"spec":{"template":{"metadata":{"creationTimestamp":null,"labels":{` + addedLabels + `}},"spec":{}}}}`, false},
		"RemoveTheTemplate": {mergePatch, `{"spec":{"template":null}}`, `{"spec":{"template":{"metadata":{"labels":{` + addedLabels + `}}}}}`, false},
		"RemoveLabels":      {jsonPatch, `[{"op":"remove","path":"/spec/template/metadata/labels"}]`, `{"spec":{"template":{"metadata":{"labels":{` + addedLabels + `}},"spec":{"list":[1,2],"a":{"b":1}}}}}`, false},
		"NullLabels":        {jsonPatch, `[{"op":"replace","path":"/spec/template/metadata/labels","value":null}]`, `{"spec":{"template":{"metadata":{"labels":{` + addedLabels + `}},"spec":{"list":[1,2],"a":{"b":1}}}}}`, false},
		"TestOfWhatItSaw": {jsonPatch, `[{"op":"test","path":"/spec/template/metadata","value":{"labels":{"own":"x"}}},{"op":"add","path":"/spec/template/metadata/labels/a~1b","value":"y"}]`,
			`{"spec":{"template":{"metadata":{"labels":{"a/b":"y","own":"x",` + addedLabels + `}},"spec":{"list":[1,2],"a":{"b":1}}}}}`, false},
		"WritesWhatItDidNotSee": {mergePatch, `{"spec":{"template":{"metadata":{"labels":{"topology.cluster.x-k8s.io/owned":"me"}}}}}`,
			`{"spec":{"template":{"metadata":{"labels":{"own":"x","cluster.x-k8s.io/cluster-name":"c","topology.cluster.x-k8s.io/owned":"me"}},"spec":{"list":[1,2],"a":{"b":1}}}}}`, false},
		"Nothing": {jsonPatch, `[]`, whole, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := reduced(t, "v1.12", holders["infrastructure"], whole)
			items := answered(t, &r, &hooksv1alpha1.GeneratePatchesResponseItem{Uid: "u", PatchType: test.of, Patch: []byte(test.patch)})
			if same := string(items[0].GetPatch()) == test.patch; same != test.same {
				t.Errorf("the patch is %s", items[0].GetPatch())
			}
			if diff := cmp.Diff(parsed(t, test.want), parsed(t, applied(t, whole, items))); diff != "" {
				t.Errorf("the whole object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotCarriedOver(t *testing.T) {
	const whole = `{"spec":{"template":{` + added + `,"spec":{}}}}`
	for name, test := range map[string]struct{ patch, want string }{
		"DoesNotApply":    {`[{"op":"remove","path":"/spec/template/metadata"}]`, "the patch does not apply to the template"},
		"AnotherTemplate": {`[{"op":"replace","path":"/spec/template","value":"x"}]`, "the patch replaces /spec/template, of which the handler saw only a part"},
		"NoObject":        {`[{"op":"replace","path":"","value":[]}]`, "is not an object"},
		"NoJSON":          {`[{`, "the patch is not JSON"},
		"NoOperations":    {`{"op":"add"}`, "the patch does not apply to the template"},
		"ListForMetadata": {`[{"op":"add","path":"/spec/template/metadata","value":[1]}]`, "the patch replaces /spec/template/metadata"},
	} {
		r, _ := reduced(t, "v1.12", holders["infrastructure"], whole)
		_, err := r.Response(&hooksv1alpha1.GeneratePatchesResponse{Items: []*hooksv1alpha1.GeneratePatchesResponseItem{
			{Uid: "u", PatchType: jsonPatch, Patch: []byte(test.patch)},
		}})
		if hook.KindOf(err) != hook.BadResponse || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), "Cluster spec.infrastructureRef, whose template was sent in the form of Cluster API v1.12") {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// TestSeveralPatchesOfOneTemplate applies them one after the other, the later ones to what the earlier ones made.
func TestSeveralPatchesOfOneTemplate(t *testing.T) {
	const whole = `{"spec":{"template":{` + added + `,"spec":{"n":1}}}}`
	r, _ := reduced(t, "v1.12", holders["infrastructure"], whole)
	items := answered(t, &r,
		&hooksv1alpha1.GeneratePatchesResponseItem{Uid: "u", PatchType: jsonPatch, Patch: []byte(`[{"op":"replace","path":"/spec/template/spec/n","value":2}]`)},
		&hooksv1alpha1.GeneratePatchesResponseItem{Uid: "other", PatchType: jsonPatch, Patch: []byte(`[{"op":"remove","path":"/spec"}]`)},
		&hooksv1alpha1.GeneratePatchesResponseItem{Uid: "u", PatchType: jsonPatch, Patch: []byte(`[{"op":"test","path":"/spec/template","value":{"spec":{"n":2}}},{"op":"move","from":"/spec/template/spec/n","path":"/spec/n"}]`)})
	if string(items[1].GetPatch()) != `[{"op":"remove","path":"/spec"}]` {
		t.Errorf("the patch of another item is %s", items[1].GetPatch())
	}
	want := `{"spec":{"n":2,"template":{` + added + `,"spec":{}}}}`
	got := applied(t, applied(t, whole, items[:1]), items[2:])
	if diff := cmp.Diff(parsed(t, want), parsed(t, got)); diff != "" {
		t.Errorf("the whole object (-want +got):\n%s", diff)
	}
}

// TestChangeIsTheSame makes random changes to what handlers see of random templates: the whole template, with the
// patch of the answer, is seen as what the handler made, and has what was taken out of it. Cluster API's library
// applies the patches.
func TestChangeIsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		checkChange(t, random, n)
	}
}

func FuzzChangeIsTheSame(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { checkChange(t, rand.New(rand.NewPCG(a, b)), 0) })
}

func checkChange(t *testing.T, random *rand.Rand, n int) {
	t.Helper()
	template := map[string]any{"spec": randomValue(random, 3)}
	if random.IntN(4) > 0 {
		template["metadata"] = map[string]any{"labels": randomLabels(random), "annotations": randomLabels(random)}
	}
	whole := encoded(t, map[string]any{"spec": map[string]any{"template": template, "other": randomValue(random, 1)}})
	r, seen := reduced(t, "v1.12", holders["infrastructure"], whole)

	if seen == whole {
		return // nothing is carried over
	}
	wanted := parsed(t, seen).(map[string]any)
	for range 1 + random.IntN(3) {
		mutate(random, wanted, 4)
	}
	if _, ok := wanted["spec"].(map[string]any); !ok {
		return // Cluster API would refuse it
	}
	var item *hooksv1alpha1.GeneratePatchesResponseItem
	if random.IntN(2) == 0 {
		wanted = map[string]any{"spec": wanted["spec"]}
		item = &hooksv1alpha1.GeneratePatchesResponseItem{Uid: "u", PatchType: jsonPatch,
			Patch: []byte(encoded(t, []any{map[string]any{"op": "test", "path": "", "value": parsed(t, seen)}, map[string]any{"op": "replace", "path": "/spec", "value": wanted["spec"]}}))}
	} else {
		merge, err := evanphx.CreateMergePatch([]byte(seen), []byte(encoded(t, wanted)))
		if err != nil {
			t.Fatal(err)
		}
		made, err := evanphx.MergePatch([]byte(seen), merge) // which cannot make all that is wanted
		if err != nil {
			t.Fatal(err)
		}
		wanted = parsed(t, string(made)).(map[string]any)
		item = &hooksv1alpha1.GeneratePatchesResponseItem{Uid: "u", PatchType: mergePatch, Patch: merge}
	}
	resp, err := r.Response(&hooksv1alpha1.GeneratePatchesResponse{Items: []*hooksv1alpha1.GeneratePatchesResponseItem{item}})
	if err != nil {
		if !strings.Contains(err.Error(), "cannot be applied to the whole template") {
			t.Fatalf("%d: %v", n, err)
		}
		return
	}
	got := applied(t, whole, resp.(*hooksv1alpha1.GeneratePatchesResponse).GetItems())
	if diff := cmp.Diff(bare(parsed(t, encoded(t, wanted))), bare(parsed(t, got))); diff != "" {
		t.Fatalf("%d: whole %s\nseen %s\npatch %s\nmade %s (-the handler +seen of the whole):\n%s", n, whole, seen, item.GetPatch(), got, diff)
	}
	for _, in := range []struct {
		name string
		keys []string
	}{{"labels", catalog.TopologyLabels}, {"annotations", catalog.TopologyAnnotations}} {
		for _, key := range in.keys {
			was, now := entry(parsed(t, whole), in.name, key), entry(parsed(t, got), in.name, key)
			if written := entry(wanted, in.name, key); written == nil && !cmp.Equal(was, now) {
				t.Fatalf("%d: %s is %v and was %v: the handler did not see it\npatch %s", n, key, now, was, item.GetPatch())
			} else if written != nil && !cmp.Equal(written, now) {
				t.Fatalf("%d: %s is %v, and the handler wrote %v", n, key, now, written)
			}
		}
	}
}

// bare removes what may be taken out, and what is empty around it, as nothing is there for whoever does not see it.
func bare(v any) any {
	o, _ := v.(map[string]any)
	spec, _ := o["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	if metadata, ok := template["metadata"].(map[string]any); ok {
		for name, keys := range map[string][]string{"labels": catalog.TopologyLabels, "annotations": catalog.TopologyAnnotations} {
			if entries, ok := metadata[name].(map[string]any); ok {
				for _, key := range keys {
					delete(entries, key)
				}
				if len(entries) == 0 {
					delete(metadata, name)
				}
			} else if metadata[name] == nil {
				delete(metadata, name)
			}
		}
		if len(metadata) == 0 {
			delete(template, "metadata")
		}
	} else if template["metadata"] == nil {
		delete(template, "metadata")
	}
	if template != nil && len(template) == 0 || spec["template"] == nil {
		delete(spec, "template")
	}
	return v
}

func entry(v any, name, key string) any {
	for _, member := range []string{"spec", "template", "metadata", name} {
		o, _ := v.(map[string]any)
		v = o[member]
	}
	o, _ := v.(map[string]any)
	return o[key]
}

func randomLabels(random *rand.Rand) map[string]any {
	labels := map[string]any{}
	for _, key := range append([]string{"own", "a/b", "c~d"}, append(catalog.TopologyLabels, catalog.TopologyAnnotations...)...) {
		if random.IntN(2) == 0 {
			labels[key] = strconv.Itoa(random.IntN(3))
		}
	}
	return labels
}

func randomValue(random *rand.Rand, depth int) any {
	switch n := random.IntN(7); {
	case n < 3 && depth > 0:
		o := map[string]any{}
		for _, name := range []string{"a", "b", "a/b~", "metadata", "labels"} {
			if random.IntN(2) == 0 {
				o[name] = randomValue(random, depth-1)
			}
		}
		return o
	case n < 5 && depth > 0:
		list := make([]any, random.IntN(3))
		for i := range list {
			list[i] = randomValue(random, depth-1)
		}
		return list
	case n == 5:
		return nil
	}
	return strconv.Itoa(random.IntN(3))
}

// mutate changes something in an object.
func mutate(random *rand.Rand, o map[string]any, depth int) {
	names := []string{"spec", "template", "metadata", "labels", "annotations", "a", catalog.TopologyLabels[0]}
	name := names[random.IntN(len(names))]
	if inner, ok := o[name].(map[string]any); ok && random.IntN(5) > 0 && depth > 0 {
		mutate(random, inner, depth-1)
		return
	}
	switch inner, isObject := o[name].(map[string]any); {
	case isObject && random.IntN(2) == 0:
		mutate(random, inner, depth-1)
	case random.IntN(3) == 0:
		delete(o, name)
	default:
		o[name] = randomValue(random, 2)
	}
}

func answered(t testing.TB, r *Reduced, items ...*hooksv1alpha1.GeneratePatchesResponseItem) []*hooksv1alpha1.GeneratePatchesResponseItem {
	t.Helper()
	resp, err := r.Response(&hooksv1alpha1.GeneratePatchesResponse{Message: "kept", Items: items})
	if err != nil {
		t.Fatal(err)
	}
	answer := resp.(*hooksv1alpha1.GeneratePatchesResponse)
	if answer.GetMessage() != "kept" || len(answer.GetItems()) != len(items) {
		t.Fatalf("the answer is %v", answer)
	}
	return answer.GetItems()
}

// applied applies patches as Cluster API does.
func applied(t testing.TB, object string, items []*hooksv1alpha1.GeneratePatchesResponseItem) string {
	t.Helper()
	made := []byte(object)
	for _, item := range items {
		var err error
		if item.GetPatchType() == mergePatch {
			made, err = evanphx.MergePatch(made, item.GetPatch())
		} else {
			var patch evanphx.Patch
			if patch, err = evanphx.DecodePatch(item.GetPatch()); err == nil {
				made, err = patch.Apply(made)
			}
		}
		if err != nil {
			t.Fatalf("patch %s of %s: %v", item.GetPatch(), made, err)
		}
	}
	return string(made)
}

func parsed(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func minor(t testing.TB, release string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(release, "v1.%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// nest returns an object with a value at a path.
func nest(path []string) any {
	if len(path) == 0 {
		return "x"
	}
	name, list := strings.CutSuffix(path[0], "[*]")
	inner := nest(path[1:])
	if list {
		inner = []any{inner}
	}
	return map[string]any{name: inner}
}

func rawValue(v any) protoreflect.Value {
	text, _ := json.Marshal(v) // of maps, lists and texts
	return protoreflect.ValueOfBytes(text)
}
