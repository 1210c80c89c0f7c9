// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// circuits has the status of the circuit of every extension.
type circuits struct {
	mu      sync.Mutex
	status  circuit.Status
	changed func(extensionConfig string)
}

func (c *circuits) Circuit(string) (status circuit.Status, handler string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, ""
}

func (c *circuits) Notify(changed func(extensionConfig string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
}

// set changes the status, as calls to acme do.
func (c *circuits) set(s circuit.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = s
	c.changed("acme")
}

// A circuit that opens and closes is written, each time once, and reported as an event.
func TestLeaderWritesCircuits(t *testing.T) {
	api := newAPIServer(t)
	c := &circuits{}
	start(t, api, func(config *controllers.Config) { config.Circuits = c })
	api.register("acme", nil)
	await := func(want metav1.ConditionStatus, reason string) {
		t.Helper()
		eventually(t, "the condition Available", func() (string, bool) {
			got := meta.FindStatusCondition(api.get("acme").Status.Conditions, "Available")
			if got == nil {
				return "none", false
			}
			return string(got.Status) + " " + got.Reason, got.Status == want && got.Reason == reason
		})
	}
	await(metav1.ConditionTrue, "CircuitClosed")
	marked := len(api.written())
	c.set(circuit.Status{State: circuit.Open, Kind: hook.Timeout, Since: time.Now().Add(-time.Minute), Failed: time.Now()})
	await(metav1.ConditionFalse, "CircuitOpen")
	c.set(circuit.Status{State: circuit.HalfOpen, Kind: hook.Timeout, Since: time.Now().Add(-time.Minute), Failed: time.Now()})
	c.set(circuit.Status{Since: time.Now().Add(-time.Minute)})
	await(metav1.ConditionTrue, "CircuitClosed")
	expectWrites(t, api, marked, "PATCH acme/status 200", "PATCH acme/status 200")
	for _, want := range []string{
		"Warning CircuitOpen: Calls to the extension fail with Timeout. The gateway refuses these calls, except for one call at a time, which probes whether the extension works again",
		"Normal CircuitClosed: calls to the extension succeed again",
	} {
		eventually(t, want, func() (string, bool) { return "", slices.Contains(api.events(), want) })
	}
}
