// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

// builtin is the name of the variable that Cluster API makes itself.
const builtin = "builtin"

// The variables of expressions about topologies.
const (
	objectVariable    = "object"
	variablesVariable = "variables"
	settingsVariable  = "settings"
)

// ofRequests and ofItems are the variables of expressions about a request as a whole, and about an item.
var (
	ofRequests = []string{variablesVariable, settingsVariable}
	ofItems    = []string{variablesVariable, settingsVariable, policy.ItemVariable, objectVariable}
)

// topologyRequest is a request of GeneratePatches or of ValidateTopology.
type topologyRequest interface {
	GetSettings() map[string]string
	GetVariables() []*hooksv1alpha1.Variable
}

// topology sets the variables of expressions about a request.
type topology struct {
	v       *policy.Evaluation
	guard   jsonpatch.Guard
	request topologyRequest
	current int    // the index of the item that has variables, or -1
	builtin any    // the value in the request, when it was needed
	text    []byte // of the variables of an item
}

// newTopology sets the variables for the request as a whole.
func newTopology(v *policy.Evaluation, r topologyRequest) (*topology, error) {
	guard := v.Guard()
	t := &topology{v: v, request: r, current: -1, guard: jsonpatch.Guard{Step: guard.Step, Reserve: guard.Reserve}}
	settings, err := json.Marshal(r.GetSettings())
	if err != nil {
		return nil, err
	}
	if r.GetSettings() == nil {
		settings = []byte(`{}`)
	}
	v.Set(settingsVariable, settings)
	return t, t.variables(nil)
}

// selects reports whether s selects an item. The variables are then those of the item. Items are in order.
func (t *topology) selects(s *selector, index int, i item) (bool, error) {
	selected, err := s.selects(i)
	if err != nil || !selected || t.current == index {
		return selected, err
	}
	t.current = index
	t.v.SetItem(index)
	t.v.Set(objectVariable, i.GetObject().GetRaw())
	return true, t.variables(i.GetVariables())
}

// variables sets the variables by name: those of an item precede those of the request. What was read of them before
// must not be used any more.
func (t *topology) variables(own []*hooksv1alpha1.Variable) error {
	values := map[string][]byte{}
	for _, v := range t.request.GetVariables() {
		values[v.GetName()] = v.GetValue().GetRaw()
	}
	common := values[builtin]
	for _, v := range own {
		values[v.GetName()] = v.GetValue().GetRaw()
	}
	if mine := values[builtin]; len(own) > 0 && len(common) > 0 && len(mine) > 0 && &mine[0] != &common[0] {
		merged, err := t.merged(common, mine)
		if err != nil {
			return fmt.Errorf("variable builtin: %w", err)
		}
		values[builtin] = merged
	}
	size := len(`{}`)
	for name, value := range values {
		size += 6*len(name) + len(`"":null,`) + len(value)
	}
	if t.guard.Reserve != nil && size > cap(t.text) {
		if err := t.guard.Reserve(int64(size)); err != nil {
			return err
		}
	}
	t.text = append(slices.Grow(t.text[:0], size), '{')
	for n, name := range slices.Sorted(maps.Keys(values)) {
		if n > 0 {
			t.text = append(t.text, ',')
		}
		t.text = append(jsonscan.AppendString(t.text, name), ':')
		if len(values[name]) == 0 {
			t.text = append(t.text, "null"...)
		}
		t.text = append(t.text, values[name]...)
	}
	t.text = append(t.text, '}')
	t.v.Set(variablesVariable, t.text)
	return nil
}

// merged returns the builtin variables of the request with those of an item.
func (t *topology) merged(common, own []byte) ([]byte, error) {
	if t.builtin == nil {
		m := jsonpatch.Meter{Guard: t.guard}
		value, err := m.Parse(common)
		if err == nil {
			err = m.Flush()
		}
		if err != nil {
			return nil, err
		}
		t.builtin = value
	}
	m := jsonpatch.Meter{Guard: t.guard}
	value, err := m.Parse(own)
	if err == nil {
		err = m.Flush()
	}
	if err != nil {
		return nil, err
	}
	return jsonpatch.Append(nil, jsonpatch.Merge(t.builtin, value)), nil
}

// about returns the error of a rule that cannot be applied to an item of the request, at a place of the rule. Errors of
// the guard and of the context stay as they are.
func about(err error, where string, i item) error {
	var known *hook.Error
	var evaluation *policy.EvaluationError
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case !errors.As(err, &evaluation):
		err = &policy.EvaluationError{Where: where, Kind: err, Cause: err}
	}
	return fmt.Errorf("%w, for item %s", err, handlerchain.ItemName(i.GetHolderReference()))
}
