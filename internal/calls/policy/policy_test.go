// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/admission"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// TestOver holds of each field that the narrower policy has it if it sets it, and otherwise the wider one.
func TestOver(t *testing.T) {
	first, second := int32(1), int32(2)
	narrow := &Policy{
		Name: "narrow", Timeout: time.Second, FailurePolicy: hook.Fail, ClusterAPIVersion: "v1beta1", Order: &first,
		ObjectSelector: labels.Everything(), Conditions: compiled(t, "true"), Lifted: &LiftedHolds{By: "narrow"},
		ClusterAPIRelease: "v1.12", Messages: Verbatim,
	}
	wide := &Policy{
		Name: "wide", Timeout: time.Minute, FailurePolicy: hook.Ignore, ClusterAPIVersion: "v1beta2", Order: &second,
		ObjectSelector: labels.SelectorFromSet(labels.Set{"a": "b"}), Conditions: compiled(t, "false"),
		Limits: &admission.Limits{}, Circuit: &circuit.Settings{}, CacheTTL: time.Hour, Hooks: []string{"x"}, OnUndiscovered: hook.Fail,
		OfferAs: Original, Lifted: &LiftedHolds{By: "wide"}, ClusterAPIRelease: "v1.13", Messages: Steady,
	}
	if got := (*Policy)(nil).Over(wide); got != wide {
		t.Errorf("nothing over a policy is %+v", got)
	}
	if got := narrow.Over(nil); got != narrow {
		t.Errorf("a policy over nothing is %+v", got)
	}
	ofWide := map[string]bool{ // which a policy for one handler cannot set
		"Limits": true, "Circuit": true, "CacheTTL": true, "Hooks": true, "OnUndiscovered": true,
		"OfferAs": true,
	}
	for i := range reflect.TypeFor[Policy]().NumField() {
		name := reflect.TypeFor[Policy]().Field(i).Name
		if name == "Name" || name == "Kind" || name == "Wider" {
			continue
		}
		field := func(p *Policy) any { return reflect.ValueOf(p).Elem().Field(i).Interface() }
		if reflect.ValueOf(field(wide)).IsZero() {
			t.Errorf("%s is not in this test", name)
		}
		if got := field((&Policy{Name: "narrow"}).Over(wide)); !reflect.DeepEqual(got, field(wide)) {
			t.Errorf("%s: not set: got %v", name, got)
		}
		if got := field(narrow.Over(wide)); !ofWide[name] && !reflect.DeepEqual(got, field(narrow)) {
			t.Errorf("%s: set: got %v", name, got)
		}
	}
	merged := narrow.Over(wide)
	if merged.String() != `ExtensionPolicy "narrow" over "wide"` || narrow.String() != `ExtensionPolicy "narrow"` {
		t.Errorf("names are %s and %s", merged, narrow)
	}
}
