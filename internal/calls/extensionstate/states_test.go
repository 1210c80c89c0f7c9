// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionstate

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

func registrationOf(name string) registry.Registration {
	return registry.Registration{
		Name: name, ClientConfig: registry.ClientConfig{URL: "https://" + name + ".example"},
		Handlers: []registry.Handler{{
			Name: "v", Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
			Timeout: time.Second, FailurePolicy: hook.Fail,
		}},
	}
}

// Extensions that come and go leave no states behind, even if they are called after they are gone.
func TestStatesGoWithTheirExtensions(t *testing.T) {
	r := registry.New()
	states := New(r)
	for i := range 10_000 {
		name := fmt.Sprintf("e%d", i)
		if err := r.Apply(registrationOf(name)); err != nil {
			t.Fatal(err)
		}
		e, ok := r.Snapshot().Handler("v." + name)
		if !ok {
			t.Fatalf("%s is not registered", name)
		}
		states.Of(e)
		r.Remove(name)
		states.Of(e)
	}
	if got := len(states.states); got > minStates {
		t.Errorf("%d states are left of 10,000 extensions that are gone", got)
	}
}

// An extension that names its handlers differently each time has no more circuits than there is room for.
func TestCircuitsOfHandlersAreBounded(t *testing.T) {
	r := registry.New()
	if err := r.Apply(registrationOf("a")); err != nil {
		t.Fatal(err)
	}
	e, _ := r.Snapshot().Handler("v.a")
	s := New(r).Of(e)
	for i := range 1000 {
		renamed := *e
		renamed.Name = strconv.Itoa(i)
		s.Handler(&renamed)
	}
	if n := len(s.handlers); n > minStates+2 {
		t.Errorf("%d circuits of one handler", n)
	}
}
