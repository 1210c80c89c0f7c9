// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/hookgate/hookgate/api/v1alpha1"
)

// What an object was compiled to stands for another one only if that says the same.
func TestSameSpec(t *testing.T) {
	with := func(change func(*v1alpha1.ExtensionPolicy)) *v1alpha1.ExtensionPolicy {
		p := &v1alpha1.ExtensionPolicy{}
		p.Name, p.Spec.TargetRef.Name, p.Spec.Order = "p", "acme", new(int32(3))
		change(p)
		return p
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExtensionPolicy)
		same   bool
	}{
		"Nothing": {func(*v1alpha1.ExtensionPolicy) {}, true},
		"Labels":  {func(p *v1alpha1.ExtensionPolicy) { p.Labels = map[string]string{"a": "b"} }, true},
		"Created": {func(p *v1alpha1.ExtensionPolicy) { p.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) }, false},
		"Target":  {func(p *v1alpha1.ExtensionPolicy) { p.Spec.TargetRef.Name = "other" }, false},
		"Order":   {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Order = nil }, false},
	} {
		if got := SameSpec(with(func(*v1alpha1.ExtensionPolicy) {}), with(tc.change)); got != tc.same {
			t.Errorf("%s: same is %t", name, got)
		}
	}
}

// A field that is not known is corrected if the type of its object has one that is nearly the same.
func TestFieldError(t *testing.T) {
	for content, want := range map[string]string{
		`{"spec": {"holds": []}}`:                                          `unknown field "spec.holds": did you mean "hold"?`,
		`{"spec": {"hold": [{"iff": "true"}]}}`:                            `unknown field "spec.hold[0].iff": did you mean "if"?`,
		`{"metadata": {"lables": {}}}`:                                     `unknown field "metadata.lables": did you mean "labels"?`,
		`{"metadata": {"managedFields": [{"fieldsV2": {}}]}}`:              `unknown field "metadata.managedFields[0].fieldsV2": did you mean "fieldsV1"?`,
		`{"Kind": "HookRule"}`:                                             `unknown field "Kind": did you mean "kind"?`,
		`{"spec": {"unlike": 1}}`:                                          `unknown field "spec.unlike"`,
		`{"spec": {"hol.d": 1}}`:                                           `unknown field "spec.hol.d"`,
		`{"spec": {"hook": "a", "hook": "b"}}`:                             `duplicate field "spec.hook"`,
		`{"metadata": {"labels": {"spec.holds": "a", "spec.holds": "b"}}}`: `duplicate field "metadata.labels.spec.holds"`,
		`{"` + strings.Repeat("kind", 1e5) + `": 1}`:                       `unknown field "` + strings.Repeat("kind", 1e5) + `"`,
	} {
		into := &v1alpha1.HookRule{}
		strict, err := json.UnmarshalStrict([]byte(content), into)
		if err != nil || len(strict) != 1 {
			t.Fatalf("%s: %v, %v", content, strict, err)
		}
		if got := FieldError(strict[0], into).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The log says where an object is if that is known.
func TestReportsPlace(t *testing.T) {
	var log bytes.Buffer
	r := newReports("rule", "hookRule", slog.New(slog.NewTextHandler(&log, nil)))
	for name, place := range map[string]string{"a": "a.yaml:1", "b": ""} {
		r.log(slog.LevelInfo, name, report{verdict: Verdictf("Ready", "Answers")}, "is ready", func(string) string { return place })
	}
	if got := log.String(); !strings.Contains(got, "hookRule=a at=a.yaml:1 reason=Ready") || !strings.Contains(got, "hookRule=b reason=Ready") {
		t.Errorf("got\n%s", got)
	}
}
