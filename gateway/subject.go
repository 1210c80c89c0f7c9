// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/codec"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/policy"
)

// subject is a request as policies look at it. What they look at is read when the first of them asks, and once. It belongs
// to one goroutine.
type subject struct {
	req   proto.Message
	body  []byte // the JSON of req, if the caller sent one
	codec *codec.Codec

	labels    labels.Set
	labelsErr error
	hasLabels bool // labels and labelsErr were read

	request    any
	requestErr error
	hasRequest bool // request and requestErr were read
}

// admits tells whether a policy lets its handler be called. With an error, a *hook.Error, nobody knows: it is that of a call
// to the handler.
func (s *subject) admits(ctx context.Context, p *policy.Policy) (bool, error) {
	if p.ObjectSelector != nil && !p.ObjectSelector.Empty() {
		if matches, err := s.matchesLabels(p.ObjectSelector); !matches {
			return false, err
		}
	}
	if p.Conditions == nil {
		return true, nil
	}
	request, err := s.decoded()
	if err == nil {
		var matches bool
		if matches, err = p.Conditions.Match(ctx, request); err == nil {
			return matches, nil
		}
	}
	var evaluation *policy.EvaluationError
	switch {
	case errors.Is(err, context.Canceled):
		return false, hook.Errorf(hook.Canceled, "the caller left before the answer").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return false, hook.Errorf(hook.Timeout, "no answer before the caller's deadline").WithCause(err)
	case errors.As(err, &evaluation):
		return false, hook.Errorf(hook.Policy, "ExtensionPolicy %q: %s", p.Name, evaluation).WithCause(evaluation.Cause)
	}
	return false, hook.Errorf(hook.Policy, "ExtensionPolicy %q: match conditions cannot look at this request", p.Name).WithCause(err)
}

// decoded returns the JSON value of the request. It is the caller's, without the settings of an ExtensionConfig.
func (s *subject) decoded() (any, error) {
	if s.hasRequest {
		return s.request, s.requestErr
	}
	s.hasRequest = true
	text := s.body
	if text == nil {
		if text, s.requestErr = s.codec.Append(nil, s.req); s.requestErr != nil {
			return nil, s.requestErr
		}
	}
	s.request, s.requestErr = policy.Decode(text)
	return s.request, s.requestErr
}

// matchesLabels tells whether the selector matches the labels of the object that the request is about. A request that is
// about none, as those of DiscoverVariables, is matched by every selector.
func (s *subject) matchesLabels(selector labels.Selector) (bool, error) {
	if !s.hasLabels {
		s.hasLabels = true
		s.labels, s.labelsErr = labelsOf(s.req)
	}
	if s.labelsErr != nil {
		return false, s.labelsErr
	}
	return s.labels == nil || selector.Matches(s.labels), nil
}

// labelsOf returns the labels of the object that the request is about, and nil if there is no object. Templates do not say
// much by their labels: GeneratePatches and ValidateTopology are about a Cluster, whose labels are in the variable builtin.
func labelsOf(req proto.Message) (labels.Set, error) {
	switch r := req.(type) {
	case interface {
		GetCluster() *hooksv1alpha1.RawExtension
	}:
		return labelsIn(r.GetCluster().GetRaw(), "cluster.metadata.labels", "metadata", "labels")
	case interface {
		GetVariables() []*hooksv1alpha1.Variable
	}:
		for _, v := range r.GetVariables() {
			if v.GetName() == builtinVariable {
				return labelsIn(v.GetValue().GetRaw(), "variable builtin: cluster.metadata.labels", "cluster", "metadata", "labels")
			}
		}
		return labels.Set{}, nil
	case *hooksv1alpha1.CanUpdateMachineRequest:
		return labelsIn(r.GetCurrent().GetMachine().GetRaw(), "current.machine.metadata.labels", "metadata", "labels")
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		return labelsIn(r.GetCurrent().GetMachineSet().GetRaw(), "current.machineSet.metadata.labels", "metadata", "labels")
	case *hooksv1alpha1.UpdateMachineRequest:
		return labelsIn(r.GetDesired().GetMachine().GetRaw(), "desired.machine.metadata.labels", "metadata", "labels")
	}
	return nil, nil
}

// builtinVariable is the variable in which Cluster API says what it knows of a Cluster.
const builtinVariable = "builtin"

// labelsIn returns the labels at a path of an object, none if there is nothing.
func labelsIn(raw []byte, member string, path ...string) (labels.Set, error) {
	value, ok := codec.Lookup(raw, path...)
	if !ok {
		return labels.Set{}, nil
	}
	set := labels.Set{}
	if err := json.Unmarshal(value, &set); err != nil {
		return nil, hook.Errorf(hook.InvalidRequest, "%s: want an object of strings", member).WithCause(err)
	}
	if set == nil { // null
		set = labels.Set{}
	}
	return set, nil
}
