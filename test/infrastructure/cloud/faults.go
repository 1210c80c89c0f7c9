// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// faults is what goes wrong, as a test wants it.
type faults struct {
	api.Faults

	networkDelay, machineDelay, deletionDelay time.Duration
	// changed is closed when other faults take the place of these.
	changed chan struct{}
}

// newFaults returns no faults.
func newFaults() faults {
	return faults{changed: make(chan struct{})}
}

// set replaces the faults, and lets requests that hang go on.
func (f *faults) set(wanted api.Faults) error {
	next := newFaults()
	for _, delay := range []struct {
		text  string
		value *time.Duration
	}{
		{wanted.NetworkDelay, &next.networkDelay},
		{wanted.MachineDelay, &next.machineDelay},
		{wanted.DeletionDelay, &next.deletionDelay},
	} {
		if delay.text == "" {
			continue
		}
		value, err := time.ParseDuration(delay.text)
		if err != nil || value < 0 || value > time.Hour {
			return fail(api.InvalidParameters, "%q is not a duration from 0s to 1h", delay.text)
		}
		*delay.value = value
	}
	if !slices.Contains([]string{"", api.ListEmpty, api.ListShort, api.ListCut, api.ListDuplicate}, wanted.List) {
		return fail(api.InvalidParameters, "list: %q is not known", wanted.List)
	}
	if len(wanted.Rules) > maxRules {
		return fail(api.InvalidParameters, "rules has more than %d items", maxRules)
	}
	for i, rule := range wanted.Rules {
		if _, err := path.Match(rule.Path, "/"); err != nil || rule.Path == "" {
			return fail(api.InvalidParameters, "rules[%d].path: %q is not a pattern", i, rule.Path)
		}
		actions := []string{api.ActionError, api.ActionGarbage, api.ActionClose, api.ActionHang}
		if !slices.Contains(actions, rule.Action) {
			return fail(api.InvalidParameters, "rules[%d].action: %q is not known", i, rule.Action)
		}
		if rule.Status != 0 && (rule.Status < 400 || rule.Status > 599) {
			return fail(api.InvalidParameters, "rules[%d].status is from 400 to 599", i)
		}
		wanted.Rules[i].Hits = 0
	}
	next.Faults = wanted
	close(f.changed)
	*f = next
	return nil
}

// clear removes the faults.
func (f *faults) clear() {
	_ = f.set(api.Faults{}) // no faults are valid
}

// describe returns the faults as the API has them.
func (f *faults) describe() api.Faults {
	answer := f.Faults
	answer.Rules = slices.Clone(f.Rules)
	return answer
}

// unbroken has the paths that are for tests alone. A rule for every path must not keep a test from ending it.
var unbroken = []string{"/faults", "/counts", "/events"}

// match returns a copy of the first rule for this request, and counts that it applies. If there is none, it returns
// nil.
func (f *faults) match(request *http.Request) *api.Rule {
	if slices.Contains(unbroken, request.URL.Path) {
		return nil
	}
	for i := range f.Rules {
		rule := &f.Rules[i]
		if rule.Times > 0 && rule.Hits >= rule.Times || rule.Method != "" && rule.Method != request.Method {
			continue
		}
		if matches, _ := path.Match(rule.Path, request.URL.Path); matches { // set has checked the pattern
			rule.Hits++
			found := *rule
			return &found
		}
	}
	return nil
}

// lie returns the machines that a list shows, and how many it says there are.
func (f *faults) lie(machines []api.Machine) ([]api.Machine, int) {
	switch f.List {
	case api.ListEmpty:
		return []api.Machine{}, 0
	case api.ListShort:
		return machines[:len(machines)/2], len(machines) / 2
	case api.ListCut:
		return machines[:len(machines)/2], len(machines)
	case api.ListDuplicate:
		if len(machines) > 0 {
			machines = append(slices.Clone(machines), machines[0])
		}
	}
	return machines, len(machines)
}
