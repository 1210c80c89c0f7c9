// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

const (
	jsonPatch  = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	mergePatch = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
)

// hubMachine has members that v1beta1 cannot express, members that no type knows, and a list whose elements have both.
const hubMachine = `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"namespace":"n","labels":{"a":"b"}},"spec":{
	"clusterName":"c","version":"v1.33.0","minReadySeconds":3,"new":1,
	"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"AWSMachine","name":"i"},
	"deletion":{"nodeDrainTimeoutSeconds":60,"nodeDeletionTimeoutSeconds":0,"new":2},
	"taints":[{"key":"k","effect":"NoSchedule","propagation":"Always","new":3},{"key":"l","effect":"NoExecute","propagation":"Always"}]}}`

// oldMachineSet is a v1beta1 MachineSet whose references v1beta2 cannot express completely.
const oldMachineSet = `{"kind":"MachineSet","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"namespace":"n"},"spec":{"clusterName":"c","replicas":1,
	"selector":{},"template":{"spec":{"clusterName":"c","nodeDrainTimeout":"1.5s","bootstrap":{"configRef":{"kind":"B","name":"b","apiVersion":"acme.io/v1","namespace":"m"}},
	"infrastructureRef":{"kind":"I","name":"i","apiVersion":"acme.io/v1","uid":"u"}}}}}`

func TestPatches(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string // hubMachine unless it is set
		patch  *hooksv1alpha1.Patch
		want   string // the merge patch; "" if the patch is to be left alone
		losses []string
	}{
		"JSON patch": {
			reason: "what is renamed is where the caller has it, and nothing else is changed",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"test","path":"/spec/nodeDrainTimeout","value":"1m0s"},
				{"op":"replace","path":"/spec/nodeDrainTimeout","value":"2m0s"},{"op":"add","path":"/spec/version","value":"v1.34.0"}]`)},
			want: `{"spec":{"version":"v1.34.0","deletion":{"nodeDrainTimeoutSeconds":120}}}`,
		},
		"merge patch": {
			reason: "null removes a member",
			patch:  &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`{"spec":{"version":"v1.34.0","nodeDrainTimeout":null,"new":null},"metadata":{"labels":{"c":"d"}}}`)},
			want:   `{"metadata":{"labels":{"c":"d"}},"spec":{"version":"v1.34.0","new":null,"deletion":{"nodeDrainTimeoutSeconds":null}}}`,
		},
		"without effect": {
			reason: "minReadySeconds is not in v1beta1, but the handler has not removed it",
			patch: &hooksv1alpha1.Patch{PatchType: mergePatch,
				Patch: []byte(`{"spec":{"version":"v1.33.0","infrastructureRef":{"namespace":"n"}}}`)},
			want: `{}`,
		},
		"list": {
			reason: "lists are replaced as a whole, unknown members included",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"replace","path":"/spec/taints/0/effect","value":"NoExecute"},{"op":"remove","path":"/spec/taints/1"},
				{"op":"add","path":"/spec/taints/0","value":{"key":"m","effect":"NoSchedule","propagation":"Always"}}]`)},
			want: `{"spec":{"taints":[{"key":"m","effect":"NoSchedule","propagation":"Always"},{"key":"k","effect":"NoExecute","propagation":"Always","new":3}]}}`,
		},
		"lost": {
			reason: "changes that the caller's version cannot express are reported",
			patch:  &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`{"spec":{"nodeDrainTimeout":"1m0.5s","infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v9"}}}`)},
			want:   `{}`,
			losses: []string{"machine.spec.infrastructureRef.apiVersion", "machine.spec.nodeDrainTimeout"},
		},
		"from v1beta2 to v1beta1": {
			reason: "the other way round, and the caller's references keep what v1beta2 has not",
			object: oldMachineSet,
			patch: &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`{"spec":{"template":{"spec":{"minReadySeconds":7,"infrastructureRef":{"name":"j"},
				"deletion":{"nodeDeletionTimeoutSeconds":9}}}}}`)},
			want: `{"spec":{"minReadySeconds":7,"template":{"spec":{"nodeDeletionTimeout":"9s","infrastructureRef":{"name":"j"}}}}}`,
		},
		"metadata": {
			reason: "metadata is the same in both versions",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"remove","path":"/metadata/labels/a"},
				{"op":"add","path":"/metadata/annotations","value":{"c":"d"}},{"op":"copy","from":"/metadata/namespace","path":"/metadata/labels/n"}]`)},
			want: `{"metadata":{"labels":{"a":null,"n":"n"},"annotations":{"c":"d"}}}`,
		},
		"whole object": {
			reason: "a JSON patch may replace the root, and what is not there any more goes, but for what the handler has not seen",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"replace","path":"","value":{"kind":"Machine",
				"apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"clusterName":"c"}}}]`)},
			want: `{"metadata":null,"spec":{"version":null,"new":null,"infrastructureRef":null,"deletion":null,"taints":null}}`,
		},
		"spec removed": {
			reason: "null removes all that the handler has seen",
			patch:  &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`{"spec":null}`)},
			want:   `{"spec":null}`,
		},
		"null in an object": {
			reason: "a merge patch cannot make a member null, and removes it",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch,
				Patch: []byte(`[{"op":"replace","path":"/spec/new","value":null}]`)},
			want: `{"spec":{"new":null}}`,
		},
		"exact numbers": {
			reason: "two numbers that are one float64 differ",
			patch: &hooksv1alpha1.Patch{PatchType: mergePatch,
				Patch: []byte(`{"spec":{"new":9007199254740993,"newer":9007199254740992.0}}`)},
			want: `{"spec":{"new":9007199254740993,"newer":9007199254740992.0}}`,
		},
		"empty": {reason: "nothing to change",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(" []")}},
		"empty merge": {reason: "nothing to change",
			patch: &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte("{}")}},
		"no patch":      {reason: "nothing to change"},
		"unknown type":  {reason: "the caller refuses it", patch: &hooksv1alpha1.Patch{Patch: []byte(`{"spec":{}}`)}},
		"without patch": {reason: "the caller refuses it", patch: &hooksv1alpha1.Patch{PatchType: jsonPatch}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var req, resp proto.Message
			get := func(m proto.Message) *hooksv1alpha1.Patch {
				return m.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch
			}
			other := &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"remove","path":"/nowhere"}]`)}
			to := V1Beta1
			if tc.object == "" {
				req = &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: raw(hubMachine)}}
				resp = &hooksv1alpha1.CanUpdateMachineResponse{Message: "m", MachinePatch: tc.patch,
					BootstrapConfigPatch: other}
			} else {
				to = V1Beta2
				req = &hooksv1alpha1.CanUpdateMachineSetRequest{Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: raw(tc.object)}}
				resp = &hooksv1alpha1.CanUpdateMachineSetResponse{Message: "m", MachineSetPatch: tc.patch,
					InfrastructureMachineTemplatePatch: other}
				get = func(m proto.Message) *hooksv1alpha1.Patch {
					return m.(*hooksv1alpha1.CanUpdateMachineSetResponse).MachineSetPatch
				}
			}
			c, err := patchObjects().Request(req, to)
			if err != nil {
				t.Fatal(err)
			}
			before := proto.Clone(resp)
			got, losses, err := c.Response(resp)
			if err != nil {
				t.Fatalf("%s: %v: %v", tc.reason, err, errors.Unwrap(err))
			}
			if diff := cmp.Diff(before, resp, protocmp.Transform()); diff != "" {
				t.Errorf("the answer was changed:\n%s", diff)
			}
			if diff := cmp.Diff(tc.losses, losses); diff != "" {
				t.Errorf("%s: losses (-want +got):\n%s", tc.reason, diff)
			}
			if tc.want == "" {
				if got != resp {
					t.Errorf("%s: another answer: %v", tc.reason, got)
				}
				return
			}
			patch := get(got)
			if patch.PatchType != mergePatch {
				t.Errorf("%s: type %v", tc.reason, patch.PatchType)
			}
			if diff := cmp.Diff(parsed(t, []byte(tc.want)), parsed(t, patch.Patch)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			get(got).Reset()
			get(before).Reset()
			if diff := cmp.Diff(before, got, protocmp.Transform()); diff != "" {
				t.Errorf("something else was changed:\n%s", diff)
			}
		})
	}
}

func TestPatchErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  *hooksv1alpha1.Patch
		kind   hook.Kind
		want   string
	}{
		"does not apply": {
			reason: "a path of the caller's version",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch,
				Patch: []byte(`[{"op":"replace","path":"/spec/deletion/nodeDrainTimeoutSeconds","value":1}]`)},
			kind: hook.BadResponse, want: `convert machinePatch to v1beta2: the patch cannot be applied to current.machine in the form that was sent to the handler`,
		},
		"not a patch": {
			reason: "an object where a list has to be",
			patch:  &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`{"spec":{}}`)},
			kind:   hook.BadResponse, want: `convert machinePatch to v1beta2: the patch cannot be applied to current.machine in the form that was sent to the handler`,
		},
		"another kind": {
			reason: "the handler may not change what the object is",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch,
				Patch: []byte(`[{"op":"replace","path":"/kind","value":"MachineSet"}]`)},
			kind: hook.BadResponse, want: `convert machinePatch to v1beta2: the patch changes the kind or the version of current.machine`,
		},
		"no object": {
			reason: "a merge patch that is no object takes the object's place",
			patch:  &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`["a"]`)},
			kind:   hook.BadResponse, want: `convert machinePatch to v1beta2: the patch changes the kind or the version of current.machine`,
		},
		"null": {
			reason: "a merge patch that is null removes the object",
			patch:  &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`null`)},
			kind:   hook.BadResponse, want: `convert machinePatch to v1beta2: the patch changes the kind or the version of current.machine`,
		},
		"empty object": {
			reason: "an object without kind and version is none",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch,
				Patch: []byte(`[{"op":"replace","path":"","value":{}}]`)},
			kind: hook.BadResponse, want: `convert machinePatch to v1beta2: the patch changes the kind or the version of current.machine`,
		},
		"failed test": {
			reason: "nothing of a patch is taken when its test fails",
			patch: &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec/version","value":"v1"},
				{"op":"test","path":"/spec/clusterName","value":"another"}]`)},
			kind: hook.BadResponse, want: `convert machinePatch to v1beta2: the patch cannot be applied to current.machine in the form that was sent to the handler`,
		},
		"not JSON": {
			reason: "a merge patch that ends early",
			patch:  &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`{"spec":`)},
			kind:   hook.BadResponse, want: `convert machinePatch to v1beta2: the patch cannot be applied to current.machine in the form that was sent to the handler`,
		},
		"unknown reference": {
			reason: "no handler can ask for a reference of another form",
			patch: &hooksv1alpha1.Patch{PatchType: mergePatch,
				Patch: []byte(`{"spec":{"infrastructureRef":{"apiVersion":"a/b/c"}}}`)},
			kind: hook.BadResponse,
			want: `convert machinePatch to v1beta2: the result of the patch: convert current.machine from v1beta1 to v1beta2: ` +
				`spec.infrastructureRef.apiVersion is "a/b/c", which is not of the form group/version`,
		},
		"another version": {
			reason: "the handler may not change what the object is",
			patch: &hooksv1alpha1.Patch{PatchType: mergePatch,
				Patch: []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2"}`)},
			kind: hook.BadResponse, want: `convert machinePatch to v1beta2: the patch changes the kind or the version of current.machine`,
		},
		"another type": {
			reason: "the text says where",
			patch:  &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(`{"spec":{"nodeDrainTimeout":60}}`)},
			kind:   hook.BadResponse,
			want: `convert machinePatch to v1beta2: the result of the patch: convert current.machine to v1beta2: it is not a Machine of v1beta1: ` +
				`spec.nodeDrainTimeout is not a duration like 5m0s`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := sampleObjects().Request(&hooksv1alpha1.CanUpdateMachineRequest{
				Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: raw(hubMachine)},
			}, V1Beta1)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = c.Response(&hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: tc.patch})
			if err == nil || hook.KindOf(err) != tc.kind || err.Error() != tc.want {
				t.Errorf("%s:\n got %v (%v)\nwant %s (%v)", tc.reason, err, hook.KindOf(err), tc.want, tc.kind)
			}
		})
	}
}

// Where a patch changes a list, the merge patch has all of it: nothing may be lost in an element, or it would be
// removed.
func TestNothingIsLostInListsOfPatchedObjects(t *testing.T) {
	for _, kind := range []string{"Machine", "MachineSet"} {
		for _, path := range slices.Concat(Lossy(kind, V1Beta1, V1Beta2), Lossy(kind, V1Beta2, V1Beta1)) {
			if strings.Contains(path, "[*]") {
				t.Errorf("%s can be lost", path)
			}
		}
	}
}

// Patches are for the current object: they stay as they are if that was not converted.
func TestPatchOfWhatWasNotConverted(t *testing.T) {
	c, err := sampleObjects().Request(&hooksv1alpha1.CanUpdateMachineRequest{
		Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: raw(hubMachine)},
	}, V1Beta2)
	if err != nil {
		t.Fatal(err)
	}
	resp := &hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: &hooksv1alpha1.Patch{PatchType: jsonPatch,
		Patch: []byte(`[{"op":"remove","path":"/x"}]`)}}
	if got, losses, err := c.Response(resp); got != proto.Message(resp) || losses != nil || err != nil {
		t.Errorf("got %v, %v, %v", got, losses, err)
	}
}

func TestVariables(t *testing.T) {
	metadata := func() *hooksv1alpha1.ClusterClassVariableMetadata {
		return &hooksv1alpha1.ClusterClassVariableMetadata{
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
			UnknownMembers: map[string]*hooksv1alpha1.JSON{"e": {Raw: []byte("1.0")}},
		}
	}
	const old = `{"annotations":{"c":"d"},"e":1.0,"labels":{"a":"b"}}`
	unknown := func(raw string) map[string]*hooksv1alpha1.JSON {
		return map[string]*hooksv1alpha1.JSON{"metadata": {Raw: []byte(raw)}}
	}
	cases := map[string]struct {
		reason    string
		give, all *hooksv1alpha1.ClusterClassVariable // all is nil if it is to be left alone
		err       string
	}{
		"old": {
			reason: "an extension built for v1.12 says metadata; v1.14 reads the other name",
			give:   &hooksv1alpha1.ClusterClassVariable{Name: "v", UnknownMembers: unknown(old)},
			all: &hooksv1alpha1.ClusterClassVariable{Name: "v", UnknownMembers: unknown(old),
				DeprecatedV1Beta1Metadata: metadata()},
		},
		"new": {
			reason: "and v1.12 reads metadata",
			give:   &hooksv1alpha1.ClusterClassVariable{Name: "v", DeprecatedV1Beta1Metadata: metadata()},
			all: &hooksv1alpha1.ClusterClassVariable{Name: "v", UnknownMembers: unknown(old),
				DeprecatedV1Beta1Metadata: metadata()},
		},
		"new, with other members": {
			reason: "unknown members stay, and are not written into",
			give: &hooksv1alpha1.ClusterClassVariable{Name: "v",
				UnknownMembers:            map[string]*hooksv1alpha1.JSON{"f": {Raw: []byte("2")}},
				DeprecatedV1Beta1Metadata: metadata()},
			all: &hooksv1alpha1.ClusterClassVariable{Name: "v",
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"f": {Raw: []byte("2")},
					"metadata": {Raw: []byte(old)}}, DeprecatedV1Beta1Metadata: metadata()},
		},
		"labels alone": {
			reason: "what is empty is not written",
			give: &hooksv1alpha1.ClusterClassVariable{Name: "v",
				DeprecatedV1Beta1Metadata: &hooksv1alpha1.ClusterClassVariableMetadata{
					Labels: map[string]string{"a": "b"}}},
			all: &hooksv1alpha1.ClusterClassVariable{Name: "v", UnknownMembers: unknown(`{"labels":{"a":"b"}}`),
				DeprecatedV1Beta1Metadata: &hooksv1alpha1.ClusterClassVariableMetadata{Labels: map[string]string{"a": "b"}}},
		},
		"null labels": {
			reason: "null is as good as absent",
			give: &hooksv1alpha1.ClusterClassVariable{Name: "v",
				UnknownMembers: unknown(`{"labels":null,"annotations":{"c":"d"}}`)},
			all: &hooksv1alpha1.ClusterClassVariable{Name: "v",
				UnknownMembers:            unknown(`{"labels":null,"annotations":{"c":"d"}}`),
				DeprecatedV1Beta1Metadata: &hooksv1alpha1.ClusterClassVariableMetadata{Annotations: map[string]string{"c": "d"}}},
		},
		"a list": {
			reason: "no version has that", give: &hooksv1alpha1.ClusterClassVariable{Name: "v",
				UnknownMembers: unknown(`[]`)},
			err: `convert variable "v": metadata is not valid in v1beta1: labels and annotations must have strings as values`,
		},
		"both":    {reason: "they say it themselves", give: &hooksv1alpha1.ClusterClassVariable{UnknownMembers: unknown("5"), DeprecatedV1Beta1Metadata: metadata()}},
		"neither": {reason: "nothing to say", give: &hooksv1alpha1.ClusterClassVariable{Name: "v"}},
		"empty": {reason: "v1beta1 always writes the member",
			give: &hooksv1alpha1.ClusterClassVariable{Name: "v", UnknownMembers: unknown("{}")}},
		"null": {reason: "nothing to say",
			give: &hooksv1alpha1.ClusterClassVariable{Name: "v", UnknownMembers: unknown("null")}},
		"another type": {
			reason: "no version has that", give: &hooksv1alpha1.ClusterClassVariable{Name: "v",
				UnknownMembers: unknown(`{"labels":{"a":1}}`)},
			err: `convert variable "v": metadata is not valid in v1beta1: labels and annotations must have strings as values`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, to := range []string{V1Beta1, V1Beta2, ""} {
				req := &hooksv1alpha1.DiscoverVariablesRequest{}
				c, err := sampleObjects().Request(req, to)
				if err != nil || c.Message != proto.Message(req) {
					t.Fatalf("request: %v, %v", c.Message, err)
				}
				resp := &hooksv1alpha1.DiscoverVariablesResponse{Message: "m",
					Variables: []*hooksv1alpha1.ClusterClassVariable{{Name: "first"}, tc.give}}
				before := proto.Clone(resp)
				got, losses, err := c.Response(resp)
				if tc.err != "" && to != "" {
					if err == nil || err.Error() != tc.err || hook.KindOf(err) != hook.BadResponse {
						t.Fatalf("%s: error %v, want %s", tc.reason, err, tc.err)
					}
					continue
				}
				if err != nil || losses != nil {
					t.Fatalf("%s: %v, %v", tc.reason, losses, err)
				}
				if diff := cmp.Diff(before, resp, protocmp.Transform()); diff != "" {
					t.Errorf("the answer was changed:\n%s", diff)
				}
				if tc.all == nil || to == "" {
					if got != proto.Message(resp) {
						t.Errorf("%s: another answer: %v", tc.reason, got)
					}
					continue
				}
				want := &hooksv1alpha1.DiscoverVariablesResponse{Message: "m",
					Variables: []*hooksv1alpha1.ClusterClassVariable{{Name: "first"}, tc.all}}
				if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// Builtin variables and references to holders have been the same since v1.12, so that GeneratePatches and
// ValidateTopology need no conversion. The file has the members that they have in Cluster API v1.12.0.
func TestBuiltinVariablesAreUnchanged(t *testing.T) {
	pinned, err := os.ReadFile("testdata/builtins.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	membersOf(&b, reflect.TypeFor[runtimehooksv1.Builtins](), "")
	membersOf(&b, reflect.TypeFor[runtimehooksv1.HolderReference](), "holderReference")
	if diff := cmp.Diff(string(pinned), b.String()); diff != "" {
		t.Errorf("members differ from v1.12.0: package convert has to convert them (-v1.12.0 +now):\n%s", diff)
	}
}

// membersOf writes all members of a type of Cluster API, one in a line.
func membersOf(b *strings.Builder, t reflect.Type, path string) {
	switch {
	case t.Kind() == reflect.Pointer:
		membersOf(b, t.Elem(), path)
	case t.Kind() == reflect.Struct && strings.Contains(t.PkgPath(), "cluster-api"):
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "":
				membersOf(b, field.Type, path)
			case path == "":
				membersOf(b, field.Type, name)
			default:
				membersOf(b, field.Type, path+"."+name)
			}
		}
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		membersOf(b, t.Elem(), path+"[*]")
	default:
		b.WriteString(path + " " + t.Kind().String() + "\n")
	}
}
