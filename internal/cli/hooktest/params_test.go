// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// The objects of a case are found as those of a cluster: by kind, namespace and name, by labels, or as that of the
// request.
func TestParams(t *testing.T) {
	given := Given{Params: []json.RawMessage{
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"b","name":"x","labels":{"a":"b"},"generation":9007199254740993}}`),
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"x","labels":{"a":"b"}}}`),
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"y"}}`),
	}}
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	params, err := given.Objects([]hookrule.Reference{{Kind: configMap}})
	if err != nil {
		t.Fatal(err)
	}
	for reason, tc := range map[string]struct {
		of   hookrule.Reference
		self types.NamespacedName
		want string // names, or the error
	}{
		"by name":                  {hookrule.Reference{Kind: configMap, Namespace: "a", Name: "x"}, types.NamespacedName{}, "a/x"},
		"by a name that none has":  {hookrule.Reference{Kind: configMap, Namespace: "c", Name: "x"}, types.NamespacedName{}, ""},
		"by labels":                {hookrule.Reference{Kind: configMap, Selector: "a=b"}, types.NamespacedName{}, "a/x b/x"},
		"all of a namespace":       {hookrule.Reference{Kind: configMap, Namespace: "a"}, types.NamespacedName{}, "a/x a/y"},
		"of another version":       {hookrule.Reference{Kind: schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"}}, types.NamespacedName{}, ""},
		"that of the request":      {hookrule.Reference{Kind: configMap, Self: true}, types.NamespacedName{Namespace: "b", Name: "x"}, "b/x"},
		"the request's is missing": {hookrule.Reference{Kind: configMap, Self: true}, types.NamespacedName{Namespace: "c", Name: "x"}, `ConfigMap "c/x" is not known`},
	} {
		found, err := params.Read(tc.of, tc.self)
		var got []string
		for _, raw := range found {
			var o struct {
				Metadata struct{ Namespace, Name string }
			}
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatal(err)
			}
			got = append(got, o.Metadata.Namespace+"/"+o.Metadata.Name)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: got %q, want %q", reason, got, tc.want)
		}
	}
	if raw, _ := params.Read(hookrule.Reference{Kind: configMap, Namespace: "b"}, types.NamespacedName{}); !strings.Contains(string(raw[0]), "9007199254740993") {
		t.Errorf("numbers are not kept: %s", raw[0])
	}
	for object, want := range map[string]string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`: "given.params[0]: no param of the rule reads a Secret of v1",
		`{"apiVersion":"v1","kind":"ConfigMap"}`:                      "given.params[0]: want an object with apiVersion, kind and metadata.name",
		`[]`:                                                          "given.params[0]: want an object with apiVersion, kind and metadata.name",
	} {
		given := Given{Params: []json.RawMessage{[]byte(object)}}
		if _, err := given.Objects([]hookrule.Reference{{Kind: configMap}}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", object, err, want)
		}
	}
}
