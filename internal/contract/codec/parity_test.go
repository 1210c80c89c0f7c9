// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// upstream returns Cluster API's own catalog of hooks.
func upstream(t testing.TB) *runtimecatalog.Catalog {
	t.Helper()
	c := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// envelope is one request or answer: ours and Cluster API's.
type envelope struct {
	name     string
	message  protoreflect.MessageType
	upstream reflect.Type // a struct
}

// envelopes pairs all requests and answers, by name.
func envelopes(t testing.TB) []envelope {
	t.Helper()
	up := upstream(t)
	var all []envelope
	for _, h := range catalog.New().Hooks() {
		gvh := runtimecatalog.GroupVersionHook{Group: h.Group, Version: h.Version, Hook: h.Hook}
		request, err := up.NewRequest(gvh)
		if err != nil {
			t.Fatal(err)
		}
		response, err := up.NewResponse(gvh)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all,
			envelope{h.Hook + "Request", h.Request, reflect.TypeOf(request).Elem()},
			envelope{h.Hook + "Response", h.Response, reflect.TypeOf(response).Elem()})
	}
	return all
}

func TestParityHooks(t *testing.T) {
	var theirs, ours []string
	for gvh := range upstream(t).AllKnownHooks() {
		theirs = append(theirs, hook.GroupVersionHook{Group: gvh.Group, Version: gvh.Version, Hook: gvh.Hook}.String())
	}
	for _, h := range catalog.New().Hooks() {
		ours = append(ours, h.String())
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("hooks (-Cluster API +contract):\n%s", diff)
	}
	if len(theirs) != 17 {
		t.Errorf("Cluster API has %d hooks, want 17", len(theirs))
	}
}

// ahead holds the members that the contract has before the release of Cluster API that go.mod requires, with the release
// that adds them. An entry goes when that release is required.
var ahead = map[string]string{
	"CanUpdateMachineResponse.affectsAvailability":    "v1.15.0",
	"CanUpdateMachineSetResponse.affectsAvailability": "v1.15.0",
}

func TestParityMembers(t *testing.T) {
	c := New(catalog.New())
	expected := maps.Clone(ahead)
	for _, e := range envelopes(t) {
		if got := reflect.New(e.upstream).Type().Elem().Name(); got != e.name {
			t.Errorf("%s: Cluster API's type is %s", e.name, got)
		}
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		for _, d := range differences(e.name, e.upstream, tab) {
			path, extra := strings.CutSuffix(d, notUpstream)
			if _, ok := expected[path]; ok && extra {
				delete(expected, path)
				continue
			}
			t.Error(d)
		}
	}
	for path, release := range expected {
		t.Errorf("%s: is listed as added by Cluster API %s, and is upstream already or not here: remove it from the list", path, release)
	}
}

// TestParityFinds checks that the comparison above can find every kind of difference.
func TestParityFinds(t *testing.T) {
	type reference struct {
		APIVersion string `json:"apiVersion"`
		Kind       int32  `json:"kind"`
		Namespace  string `json:"namespace,omitempty"`
		Name       string `json:"name"`
		FieldPath  string `json:"fieldPath"`
	}
	type item struct {
		UID             string               `json:"uid"`
		HolderReference reference            `json:"holderReference"`
		Added           string               `json:"added,omitempty"`
		Object          runtime.RawExtension `json:"object"`
	}
	type request struct {
		metav1.TypeMeta              `json:",inline"`
		runtimehooksv1.CommonRequest `json:",inline"`
		Items                        []item                    `json:"items"`
		Variables                    []runtimehooksv1.Variable `json:"variables,omitempty"`
	}
	c := New(catalog.New())
	got := differences("R", reflect.TypeFor[request](),
		c.tables[reflect.TypeFor[hooksv1alpha1.GeneratePatchesRequest]()])
	want := []string{
		"R: the order of members is [kind apiVersion settings items variables] upstream, [kind apiVersion settings variables items] here",
		"R.items[].holderReference.kind: is int upstream, string here",
		"R.items[].holderReference.namespace: always written is false upstream, true here",
		"R.items[].added: is missing here",
		"R.items[].variables: is not upstream",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// notUpstream ends the difference about a member that only the contract has.
const notUpstream = ": is not upstream"

// member is a member of one of Cluster API's types.
type member struct {
	name   string
	shape  string
	always bool
	next   reflect.Type // of an object, or of a list's elements
}

// differences compares one of Cluster API's types with a table, at all levels.
func differences(path string, goType reflect.Type, tab *table) []string {
	var out []string
	theirs := members(goType)
	var theirNames, ourNames []string
	ours := map[string]*field{}
	for i := range tab.fields {
		ours[tab.fields[i].name] = &tab.fields[i]
		ourNames = append(ourNames, tab.fields[i].name)
	}
	for _, m := range theirs {
		theirNames = append(theirNames, m.name)
		f, ok := ours[m.name]
		at := path + "." + m.name
		if !ok {
			out = append(out, at+": is missing here")
			continue
		}
		delete(ours, m.name)
		if got := shapeName(f.shape); got != m.shape {
			out = append(out, fmt.Sprintf("%s: is %s upstream, %s here", at, m.shape, got))
			continue
		}
		if f.always != m.always && f.shape != shapeTypeMeta {
			out = append(out, fmt.Sprintf("%s: always written is %t upstream, %t here", at, m.always, f.always))
		}
		switch f.shape {
		case shapeMessage:
			out = append(out, differences(at, m.next, f.message)...)
		case shapeList:
			out = append(out, differences(at+"[]", m.next, f.message)...)
		}
	}
	for _, name := range ourNames {
		if ours[name] != nil {
			out = append(out, path+"."+name+notUpstream)
		}
	}
	without := func(names, others []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(others, name) })
	}
	theirNames, ourNames = without(theirNames, ourNames), without(ourNames, theirNames)
	if !slices.Equal(theirNames, ourNames) {
		order := fmt.Sprintf("%s: the order of members is %v upstream, %v here", path, theirNames, ourNames)
		out = append([]string{order}, out...)
	}
	return out
}

// members lists the JSON members of a struct, with the members of inlined structs in place.
func members(goType reflect.Type) []member {
	var out []member
	for f := range goType.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type == reflect.TypeFor[metav1.TypeMeta]() {
			out = append(out, member{name: "kind", shape: "typeMeta"}, member{name: "apiVersion", shape: "typeMeta"})
			continue
		}
		if f.Anonymous && name == "" {
			out = append(out, members(f.Type)...)
			continue
		}
		m := member{name: name, always: !strings.Contains(options, "omitempty") &&
			!strings.Contains(options, "omitzero")}
		m.shape, m.next = shapeOf(f.Type)
		out = append(out, m)
	}
	return out
}

// shapeOf returns the form of a Go type in JSON.
func shapeOf(t reflect.Type) (string, reflect.Type) {
	switch t {
	case reflect.TypeFor[runtimehooksv1.ResponseStatus](), reflect.TypeFor[*runtimehooksv1.FailurePolicy](), reflect.TypeFor[runtimehooksv1.PatchType]():
		return "enum", nil
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[clusterv1.Cluster](), reflect.TypeFor[clusterv1.Machine](), reflect.TypeFor[clusterv1.MachineSet]():
		return "raw", nil
	case reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[clusterv1.JSONSchemaProps]():
		return "json", nil
	case reflect.TypeFor[map[string]string]():
		return "map", nil
	case reflect.TypeFor[[]byte]():
		return "base64", nil
	case reflect.TypeFor[*int32]():
		return "optional int", nil
	case reflect.TypeFor[*bool]():
		return "optional bool", nil
	}
	switch t.Kind() {
	case reflect.String:
		return "string", nil
	case reflect.Int32:
		return "int", nil
	case reflect.Struct:
		return "object", t
	case reflect.Slice:
		elem := t.Elem()
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if elem.Kind() == reflect.Struct {
			return "list", elem
		}
	}
	return "of unknown type " + t.String(), nil
}

func shapeName(s shape) string {
	return [...]string{
		shapeTypeMeta: "typeMeta", shapeString: "string", shapeEnum: "enum", shapeInt32: "int", shapeOptionalInt: "optional int",
		shapeOptionalBool: "optional bool", shapeBytes: "base64", shapeStringMap: "map", shapeRaw: "raw", shapeJSON: "json",
		shapeMessage: "object", shapeList: "list",
	}[s]
}

func TestParityEnums(t *testing.T) {
	cases := map[string]struct {
		enum protoreflect.EnumDescriptor
		want []string // by number
	}{
		"status": {
			hooksv1alpha1.ResponseStatus(0).Descriptor(),
			[]string{"", string(runtimehooksv1.ResponseStatusSuccess), string(runtimehooksv1.ResponseStatusFailure)},
		},
		"failurePolicy": {
			hooksv1alpha1.FailurePolicy(0).Descriptor(),
			[]string{"", string(runtimehooksv1.FailurePolicyIgnore), string(runtimehooksv1.FailurePolicyFail)},
		},
		"patchType": {
			hooksv1alpha1.PatchType(0).Descriptor(),
			[]string{"", string(runtimehooksv1.JSONPatchType), string(runtimehooksv1.JSONMergePatchType)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EnumTexts(tc.enum)); diff != "" {
				t.Errorf("texts (-Cluster API +contract):\n%s", diff)
			}
		})
	}
}
