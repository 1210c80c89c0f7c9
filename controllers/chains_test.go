// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
)

const chains = "/apis/hookgate.dev/v1alpha1/handlerchains/"

// chain creates or changes a HandlerChain of BeforeClusterCreate.
func (s *apiServer) chain(name string, steps ...string) {
	var c *v1alpha1.HandlerChain
	if !s.read(chains+name, &c) {
		c = &v1alpha1.HandlerChain{TypeMeta: metav1.TypeMeta{APIVersion: "hookgate.dev/v1alpha1", Kind: "HandlerChain"}}
		c.Name, c.UID = name, "1"
	}
	c.Spec = v1alpha1.HandlerChainSpec{Hook: "BeforeClusterCreate"}
	for _, step := range steps {
		c.Spec.Steps = append(c.Spec.Steps, v1alpha1.HandlerChainStep{Handler: step})
	}
	s.put(chains+name, c)
}

// change changes a HandlerChain.
func (s *apiServer) change(name string, change func(*v1alpha1.HandlerChainSpec)) {
	var c *v1alpha1.HandlerChain
	s.read(chains+name, &c)
	change(&c.Spec)
	s.put(chains+name, c)
}

// awaitReady waits until the condition Ready of a chain is this one, for its generation.
func (s *apiServer) awaitReady(t testing.TB, name, reason, message string) {
	t.Helper()
	s.awaitReadyAt(t, chains+name, reason, message)
}

// awaitReadyAt is awaitReady for an object at a path.
func (s *apiServer) awaitReadyAt(t testing.TB, path, reason, message string) {
	t.Helper()
	eventually(t, path+" is "+reason+": "+message, func() (string, bool) {
		var c struct {
			metav1.ObjectMeta `json:"metadata"`
			Status            v1alpha1.HandlerChainStatus `json:"status"`
		}
		s.read(path, &c)
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil {
			return "no condition", false
		}
		return ready.Reason + ": " + ready.Message, ready.Reason == reason && strings.HasPrefix(ready.Message, message) &&
			ready.ObservedGeneration == c.Generation
	})
}

// The condition of a chain follows the handlers, and a mistake leaves in effect what was there before.
func TestChainTakesEffect(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	r.extensions.serve(named("a", ""), named("b", ""))
	api.chain("both", "a.acme", "b.acme")
	api.awaitReady(t, "both", v1alpha1.StepMissingReason, `Calls fail: step 1: no handler "a.acme" is registered`)
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme") // whose status may be written after that of the chain
	api.awaitReady(t, "both", v1alpha1.ReadyReason, "Calls go to 2 handlers")
	if c, ok := r.registry.Snapshot().Chain("both"); !ok || len(c.Steps) != 2 {
		t.Errorf("the registry has %+v, %t", c, ok)
	}

	marked := len(api.written())
	api.chain("both", "a.acme", "b")
	api.awaitReady(t, "both", v1alpha1.InvalidReason, `spec.steps[1].handler: Invalid value: "b"`)
	if c, ok := r.registry.Snapshot().Chain("both"); !ok || len(c.Steps) != 2 || c.Steps[1].Handler != "b.acme" {
		t.Errorf("with a mistake in it, the registry has %+v, %t", c, ok)
	}
	if listed := objectsOf(r.source).Chains; len(listed) != 1 || listed[0].Reason != v1alpha1.InvalidReason || len(listed[0].Steps) != 2 {
		t.Errorf("the status lists %+v", listed)
	}
	expectWrites(t, api, marked, "PATCH both/status 200")

	api.remove(chains + "both")
	eventually(t, "the chain is gone", func() (string, bool) {
		_, ok := r.registry.Snapshot().Chain("both")
		return "", !ok
	})
}

// A replica that is ready has the chains, so that no step is called alone. See TestPoliciesHoldFromTheStart.
func TestChainsHoldFromTheStart(t *testing.T) {
	api := newAPIServer(t)
	first := start(t, api, nil)
	api.register("acme", nil)
	api.chain("both", "a.acme")
	api.awaitReady(t, "both", v1alpha1.ReadyReason, "")
	api.awaitDiscovered(t, "acme")
	first.stop()
	marked := len(api.written())
	for i := range 20 {
		r := start(t, api, func(c *controllers.Config) { c.ReadOnly = i%2 == 1 })
		if _, ok := r.registry.Snapshot().Chain("both"); !ok {
			t.Fatalf("start %d: it is ready without the chain", i)
		}
		r.stop()
	}
	expectWrites(t, api, marked)
}
