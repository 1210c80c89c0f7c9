// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

var generatePatches = hook.GroupHook{Group: "hooks.runtime.cluster.x-k8s.io", Hook: "GeneratePatches"}

// expression compiles an expression for GeneratePatches with the variables item and object.
func expression(t testing.TB, source string, kind policy.Kind) (*policy.Expression, error) {
	t.Helper()
	c, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	types, err := policy.NewTypes(catalog.New())
	if err != nil {
		t.Fatal(err)
	}
	return c.Expression(types, generatePatches, "spec.x", source, kind, policy.ItemVariable, "object")
}

const patchesRequest = `{"items":[{"uid":"0"},{"uid":"1","holderReference":{"kind":"Cluster"}}],` +
	`"settings":{"big":"x"},"variables":[{"name":"n","value":18014398509481985}]}`

func evaluation(t testing.TB) *policy.Evaluation {
	t.Helper()
	v := policy.NewRequest([]byte(patchesRequest), policy.Guard{}).Evaluate(t.Context())
	v.SetItem(1)
	v.Set("object", []byte(`{"b": 9007199254740993, "a": [1.50]}`))
	return v
}

func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, source, want string
	}{
		"LargeInteger":  {"an integer keeps all its digits", `9007199254740993`, `9007199254740993`},
		"FromRequest":   {"also one of the request", `request.variables[0].value`, `18014398509481985`},
		"Unsigned":      {"and the largest", `18446744073709551615u`, `18446744073709551615`},
		"WholeDouble":   {"a double is written as encoding/json writes it", `2.0`, `2`},
		"Double":        {"and with its fraction", `0.1`, `0.1`},
		"Null":          {"null is a value", `null`, `null`},
		"Text":          {"a text is escaped", `"a\"<\n"`, `"a\"\u003c\n"`},
		"Bytes":         {"bytes are base64", `b"ab"`, `"YWI="`},
		"Time":          {"a time is a text", `timestamp("2026-07-04T01:00:00Z")`, `"2026-07-04T01:00:00Z"`},
		"Duration":      {"and so is a duration", `duration("90s")`, `"90s"`},
		"Object":        {"members are in order, whatever their types", `{"b": 1, "a": "x", "c": {"y": true, "x": [1, "z"]}}`, `{"a":"x","b":1,"c":{"x":[1,"z"],"y":true}}`},
		"Empty":         {"nothing is in what is empty", `[{}, []]`, `[{},[]]`},
		"Verbatim":      {"what is read is as it is written", `{"was": object}`, `{"was":{"b": 9007199254740993, "a": [1.50]}}`},
		"List":          {"a list, too", `object.a`, `[1.50]`},
		"ListsTogether": {"two lists are one", `object.a + [2]`, `[1.5,2]`},
		"Optional":      {"a member may be left out", `{?"a": object.?z, ?"b": object.?b}`, `{"b":9007199254740993}`},
		"Item":          {"an item is that of the request", `item`, `{"uid":"1","holderReference":{"kind":"Cluster"}}`},
		"Holder":        {"with its members", `item.holderReference.kind`, `"Cluster"`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := expression(t, tc.source, policy.JSON)
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluation(t).JSON(e)
			if err != nil || string(got) != tc.want {
				t.Errorf("%s: got %s, %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestJSONErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, source string
		kind           policy.Kind
		want           error
		text           string
	}{
		"Type":     {"a type is no JSON", `type(1)`, policy.JSON, policy.ErrNotJSON, "it has a value of type type"},
		"Optional": {"nor is an optional value", `{"a": object.?b}`, policy.JSON, policy.ErrNotJSON, "add orValue(…)"},
		"Keys":     {"members have names", `{1: "a"}`, policy.JSON, policy.ErrNotJSON, "a map whose keys are not strings"},
		"Infinite": {"numbers are finite", `1.0 / 0.0`, policy.JSON, policy.ErrNotJSON, "a number is not finite"},
		"Absent":   {"an absent member is an error of the expression", `object.z`, policy.JSON, policy.ErrEvaluation, "no such key: z"},
		"Object":   {"where an object is needed, nothing else will do", `object.a`, policy.Object, policy.ErrNotObject, "is not an object"},
		"Growing": {"values that share others cost what their text does",
			`[[[[[["0123456789"]]]]]].map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a])` +
				`.map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a])`,
			policy.JSON, policy.ErrCost, "costs too much"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := expression(t, tc.source, tc.kind)
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluation(t).JSON(e)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) || !strings.HasPrefix(err.Error(), "spec.x: ") {
				t.Errorf("%s: got %.100s, %v", tc.reason, got, err)
			}
		})
	}
}

func TestExpressionRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, source string
		kind           policy.Kind
		want           string
	}{
		"NoObject":     {"a list is no object", `[1]`, policy.Object, "must be an object, but is of type list(int)"},
		"ItemMember":   {"items have the members of their messages", `item.holder.kind == ""`, policy.Bool, "undefined field 'holder'"},
		"HolderMember": {"and so have their holders", `item.holderReference.nam`, policy.JSON, "undefined field 'nam'"},
		"MixedList":    {"a condition is not about values of different types", `1 in [1, "a"]`, policy.Bool, "expected type 'int' but found 'string'"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := expression(t, tc.source, tc.kind); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
