// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// watched returns a paramWatch that is not connected, and what counts how often it asks for all objects again.
func watched(of hookrule.Reference) (w *paramWatch, again *int) {
	again = new(int)
	w = &paramWatch{
		of: of, shared: &ruleParams{changed: func() {}}, settled: make(chan struct{}),
		again: context.CancelFunc(func() { *again++ }),
	}
	return w, again
}

// objectOf returns an object of about so many bytes.
func objectOf(name string, bytes int) any {
	o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"x": strings.Repeat("x", bytes)}}}
	o.SetNamespace("n")
	o.SetName(name)
	return o
}

func objectsOf(n, bytes int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = objectOf(fmt.Sprintf("o%05d", i), bytes)
	}
	return all
}

// A list that is too long, and objects that are too large, are errors and are not kept. When there is room again, all are
// read anew.
func TestParamWatchBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		objects []any
		want    hook.Kind
	}{
		"Most":        {"up to the limit, a list is read", objectsOf(limits.RuleParamObjects, 10), 0},
		"TooMany":     {"one more is too many", objectsOf(limits.RuleParamObjects+1, 10), hook.Policy},
		"TooLarge":    {"an object is bounded", objectsOf(1, limits.RuleParamBytes), hook.Policy},
		"AllTooLarge": {"and so are all together", objectsOf(20, limits.RuleParamsBytes/20), hook.Policy},
	} {
		t.Run(name, func(t *testing.T) {
			w, again := watched(hookrule.Reference{})
			if _, err := w.read(types.NamespacedName{}); hook.KindOf(err) != hook.NotReady {
				t.Errorf("before anything is known: got %v", err)
			}
			if err := w.Replace(tc.objects, ""); err != nil {
				t.Fatal(err)
			}
			list, err := w.read(types.NamespacedName{})
			if tc.want == 0 {
				if err != nil || len(list) != len(tc.objects) {
					t.Errorf("%s: got %d objects, %v", tc.reason, len(list), err)
				}
				return
			}
			if hook.KindOf(err) != tc.want || w.bytes > limits.RuleParamsBytes || len(w.objects) > limits.RuleParamObjects {
				t.Errorf("%s: got %v, and %d objects with %d bytes are kept", tc.reason, err, len(w.objects), w.bytes)
			}
			if len(tc.objects) == 1 {
				err = w.Update(objectOf("o00000", 10)) // which has become smaller
			} else {
				err = w.Delete(objectOf("o00000", 10))
			}
			if _, now := w.read(types.NamespacedName{}); err != nil || now != nil && *again != 1 {
				t.Errorf("after one was deleted or became smaller: got %v, and all were read anew %d times", now, *again)
			}
		})
	}
}

// The object of a request is one of all that are kept, and its absence is no answer.
func TestParamWatchSelf(t *testing.T) {
	w, _ := watched(hookrule.Reference{Self: true})
	if err := w.Replace([]any{objectOf("a", 1), objectOf("large", limits.RuleParamBytes)}, ""); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "", "large": "Policy", "gone": "NotReady"} {
		list, err := w.read(types.NamespacedName{Namespace: "n", Name: name})
		got := ""
		if err != nil {
			got = hook.KindOf(err).String()
		}
		if got != want || err == nil && (len(list) != 1 || !strings.Contains(string(list[0]), `"name":"a"`)) {
			t.Errorf("%s: got %s, %v", name, list, err)
		}
	}
}
