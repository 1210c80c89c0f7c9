// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/admission"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

func TestLimitsOfPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		given  *v1alpha1.Limits
		want   *admission.Limits
	}{
		"None":     {"the defaults are the gateway's", nil, nil},
		"InFlight": {"what is left out has its default", &v1alpha1.Limits{MaxInFlight: ptr.To[int32](1)}, &admission.Limits{MaxInFlight: 1, MaxWaiting: 1024}},
		"Waiting":  {"0 is a limit", &v1alpha1.Limits{MaxWaiting: ptr.To[int32](0)}, &admission.Limits{MaxInFlight: 256, MaxWaiting: 0}},
		"Most":     {"both at their limits", &v1alpha1.Limits{MaxInFlight: ptr.To[int32](65536), MaxWaiting: ptr.To[int32](65536)}, &admission.Limits{MaxInFlight: 65536, MaxWaiting: 65536}},
	} {
		got, errs := convertLimits(tc.given, nil)
		if diff := cmp.Diff(tc.want, got); diff != "" || len(errs) > 0 {
			t.Errorf("%s: %s: %v, -want +got:\n%s", name, tc.reason, errs, diff)
		}
	}
}

func TestCircuitsOfPolicies(t *testing.T) {
	with := func(change func(*circuit.Settings)) *circuit.Settings {
		s := circuit.Default()
		change(&s)
		return &s
	}
	for name, tc := range map[string]struct {
		reason string
		given  *v1alpha1.Circuit
		want   *circuit.Settings
	}{
		"None":     {"the defaults are the gateway's", nil, nil},
		"Enabled":  {"this is the default", &v1alpha1.Circuit{Mode: v1alpha1.CircuitModeEnabled}, with(func(*circuit.Settings) {})},
		"Disabled": {"the operator wants none", &v1alpha1.Circuit{Mode: v1alpha1.CircuitModeDisabled}, with(func(s *circuit.Settings) { s.Disabled = true })},
		"Failures": {"one is enough", &v1alpha1.Circuit{ConsecutiveFailures: ptr.To[int32](1)}, with(func(s *circuit.Settings) { s.ConsecutiveFailures = 1 })},
		"Rate":     {"each is enough", &v1alpha1.Circuit{FailureRatePercent: ptr.To[int32](1)}, with(func(s *circuit.Settings) { s.FailureRatePercent = 1 })},
		"MinAboveDefaultMax": {"what is set wins over the default", &v1alpha1.Circuit{MinOpenSeconds: ptr.To[int32](90)}, with(func(s *circuit.Settings) {
			s.MinOpen, s.MaxOpen = 90*time.Second, 90*time.Second
		})},
		"Max": {"the first interval keeps its default", &v1alpha1.Circuit{MaxOpenSeconds: ptr.To[int32](5)}, with(func(s *circuit.Settings) { s.MaxOpen = 5 * time.Second })},
		"Both": {"equal is allowed", &v1alpha1.Circuit{MinOpenSeconds: ptr.To[int32](7), MaxOpenSeconds: ptr.To[int32](7)}, with(func(s *circuit.Settings) {
			s.MinOpen, s.MaxOpen = 7*time.Second, 7*time.Second
		})},
	} {
		got, errs := convertCircuit(tc.given, nil)
		if diff := cmp.Diff(tc.want, got); diff != "" || len(errs) > 0 {
			t.Errorf("%s: %s: %v, -want +got:\n%s", name, tc.reason, errs, diff)
		}
	}
	_, errs := convertCircuit(&v1alpha1.Circuit{MinOpenSeconds: ptr.To[int32](8), MaxOpenSeconds: ptr.To[int32](7)}, nil)
	if len(errs) != 1 || errs[0].Detail != "must not be less than minOpenSeconds" {
		t.Errorf("a longest time below the shortest: %v", errs)
	}
}

func TestCachesOfPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		given  *v1alpha1.Cache
		want   time.Duration
		refuse bool
	}{
		"None":    {"nothing is kept", nil, 0, false},
		"Least":   {"the least time", &v1alpha1.Cache{TTLSeconds: 1}, time.Second, false},
		"Most":    {"the longest time", &v1alpha1.Cache{TTLSeconds: 3600}, time.Hour, false},
		"Empty":   {"the time is required", &v1alpha1.Cache{}, 0, true},
		"TooLong": {"a second more", &v1alpha1.Cache{TTLSeconds: 3601}, 0, true},
	} {
		got, errs := convertCache(tc.given, nil)
		if (len(errs) > 0) != tc.refuse || !tc.refuse && got != tc.want {
			t.Errorf("%s: %s: got %s, %v", name, tc.reason, got, errs)
		}
	}
}
