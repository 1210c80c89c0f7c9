// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package answercache

import (
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

func digestOf(m proto.Message) Key {
	d := NewDigest()
	d.Message(m.ProtoReflect(), "handler")
	return d.Key()
}

// Each request differs from all others in one place.
func TestDifferentMessagesHaveDifferentKeys(t *testing.T) {
	value := func(s string) *hooksv1alpha1.JSON { return &hooksv1alpha1.JSON{Raw: []byte(s)} }
	variable := func(name, v string) *hooksv1alpha1.Variable {
		return &hooksv1alpha1.Variable{Name: name, Value: value(v)}
	}
	type request = hooksv1alpha1.ValidateTopologyRequest
	item := func(object string, variables ...*hooksv1alpha1.Variable) *hooksv1alpha1.ValidateTopologyRequestItem {
		return &hooksv1alpha1.ValidateTopologyRequestItem{
			Object: &hooksv1alpha1.RawExtension{Raw: []byte(object)}, Variables: variables,
		}
	}
	seen := map[Key]int{}
	for i, r := range []*request{
		{},
		{Settings: map[string]string{"a": "b"}},
		{Settings: map[string]string{"ab": ""}},
		{Settings: map[string]string{"a": "", "b": ""}},
		{UnknownMembers: map[string]*hooksv1alpha1.JSON{"a": value("b")}},
		{Variables: []*hooksv1alpha1.Variable{variable("a", "1")}},
		{Variables: []*hooksv1alpha1.Variable{variable("a", "1"), variable("b", "1")}},
		{Variables: []*hooksv1alpha1.Variable{variable("b", "1"), variable("a", "1")}},
		{Variables: []*hooksv1alpha1.Variable{variable("a", "1"), {}}},
		{Items: []*hooksv1alpha1.ValidateTopologyRequestItem{item("{}")}},
		{Items: []*hooksv1alpha1.ValidateTopologyRequestItem{item("{}"), item("")}},
		{Items: []*hooksv1alpha1.ValidateTopologyRequestItem{item("{}", variable("a", "1"))}},
		{Items: []*hooksv1alpha1.ValidateTopologyRequestItem{{HolderReference: &hooksv1alpha1.HolderReference{Name: "{}"}}}},
	} {
		k := digestOf(r)
		if before, ok := seen[k]; ok {
			t.Errorf("requests %d and %d have the same key", before, i)
		}
		seen[k] = i
		again := proto.Clone(r).(*request)
		again.Handler = "x"
		if digestOf(again) != k {
			t.Errorf("request %d: a copy has another key", i)
		}
	}
}
