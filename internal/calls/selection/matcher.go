// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection decides which handlers a request is for: by the selectors of registrations, the policies of
// operators, chains, and the members of Rollouts. It calls none of them. Calls and explanations decide by the same
// functions; a Verdict has a text only where Exclusion is asked for it.
//
// A Matcher belongs to one goroutine.
package selection

import (
	"context"
	"errors"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/registry"
)

// Namespaces returns the labels of namespaces. Implementations are safe for concurrent use and do not block, because
// calls wait for them.
type Namespaces interface {
	// NamespaceLabels returns the labels of a namespace, kubernetes.io/metadata.name among them, and reports whether
	// these are all: of a namespace that is not known, it returns that one alone. Callers do not change the map.
	NamespaceLabels(name string) (labels map[string]string, known bool)
}

// Clusters returns the labels of Clusters. Implementations are safe for concurrent use and do not block, because calls
// wait for them.
type Clusters interface {
	// ClusterLabels returns the labels of a Cluster, and reports whether they are known. Callers do not change the map.
	ClusterLabels(namespace, name string) (labels map[string]string, known bool)
}

// Matcher matches one request against the selectors and conditions of handlers. It reads labels and variables once, on
// first use, because most handlers need none. It belongs to one goroutine.
type Matcher struct {
	namespaceLabels Namespaces
	clusters        Clusters // may be nil
	versions        *hookversion.Converter
	codec           *codec.Codec

	// Message is the request in the newest version of the hook; perhaps a partial one.
	Message proto.Message
	body    []byte // the JSON of Message, if the caller sent it

	skipped        []string // namespaces of what Message lacks
	namespaces     []string
	readNamespaces bool
	// NamespacesErr says why the namespaces of the request cannot be read, if they cannot: the request fails.
	NamespacesErr error

	labels     labels.Set
	labelsErr  error
	readLabels bool

	// Looks means that the call is only explained.
	Looks       bool
	clusterName *[2]string                 // namespace and name; nil before they are read
	candidates  map[*registry.Rollout]bool // whether the candidate of a Rollout answers; nil before the first

	request  *policy.Request // Message as conditions see it
	reserved int64           // bytes that it has taken of the call's memory
}

// New returns a Matcher. clusters may be nil.
func New(n Namespaces, clusters Clusters, versions *hookversion.Converter, c *codec.Codec) Matcher {
	return Matcher{namespaceLabels: n, clusters: clusters, versions: versions, codec: c}
}

// Read makes m match r. It returns an error if r lacks the object that its hook is about.
func (m *Matcher) Read(r Request) (err error) {
	if r.Message == nil {
		m.Message, m.body, m.skipped = r.Partial, r.Body, r.Namespaces
		return m.check()
	}
	if m.Message, err = m.versions.ToHub(r.Message, r.Hook); err != nil {
		return err
	}
	if m.Message == r.Message {
		m.body = r.Body
	}
	return m.check()
}

// check returns an error if the request lacks the object that its hook is about, or is about too many namespaces.
func (m *Matcher) check() error {
	if err := subject.Check(m.Message); err != nil {
		return err
	}
	if n, _ := subject.Items(m.Message); n+len(m.skipped) <= limits.Namespaces {
		return nil // as in most requests, which need not be read for this
	}
	m.readNamespacesOf()
	if len(m.namespaces) > limits.Namespaces {
		return hook.Errorf(hook.TooLarge, "the items of the request belong to more than %d namespaces", limits.Namespaces)
	}
	return nil
}

func (m *Matcher) readNamespacesOf() {
	m.namespaces, m.NamespacesErr = subject.Namespaces(m.Message, m.skipped)
	m.readNamespaces = true
}

// Verdict says whether a request is for a handler, and what decides that. It has no text, which calls do not need.
type Verdict struct {
	By By
	// Policy is the one that excludes the handler, or that could not be evaluated, if it is one that does.
	Policy *policy.Policy
	// namespace is the one that the namespaceSelector does not match, or whose labels are not known.
	namespace string
	// condition is the one that is false.
	condition *policy.Condition
	// cluster and labels are the Cluster that a step of an in-place chain is not for, and its labels. unknown, a
	// *hook.Error, says why these are not known.
	cluster string
	labels  labels.Set
	unknown error
	// PolicyError, a *hook.Error, says why the policy could not be evaluated, if it could not. The handler is called then,
	// and its call fails.
	PolicyError error
}

// By is what excludes a handler from a request.
type By int

// The exclusions. The zero value excludes nothing.
const (
	ByNamespace By = iota + 1
	ByUnknownNamespace
	ByObject
	ByCluster
	ByUnknownCluster
	ByCondition
	ByHooks        // of the policy for the extension
	ByUndiscovered // which the policy or the ExtensionConfig ignores
)

// Excluded reports whether the handler is not for the request.
func (v Verdict) Excluded() bool { return v.By != 0 }

// Judge decides whether the request is for a handler: by the namespaceSelector and the selection of its registration,
// and by the operator's policy.
func (m *Matcher) Judge(ctx context.Context, e *registry.Entry) Verdict {
	if e.Handler.Everything {
		return Verdict{}
	}
	if v := m.judgeNamespaces(e.Registration.NamespaceSelector); v.By == ByUnknownNamespace && e.Registration.Audit {
		// The call would fail before any handler is called. As an error of this one, it is only reported.
		return Verdict{PolicyError: unknownNamespace(v.namespace, e.Registration.Describe())}
	} else if v.Excluded() {
		return v
	}
	if v := m.judgePolicy(ctx, e.Registration.Selection); v.Excluded() || v.PolicyError != nil {
		return v
	}
	return m.judgePolicy(ctx, e.Policy)
}

// judgeNamespaces decides whether the namespaceSelector of an ExtensionConfig, which may be nil, matches every
// namespace of the request. A request about no object, such as one of DiscoverVariables, matches every selector. If
// one that does not match depends on labels of a namespace that is not known, the exclusion is ByUnknownNamespace. If
// NamespacesErr is set then, the verdict means nothing.
func (m *Matcher) judgeNamespaces(selector labels.Selector) Verdict {
	if selector == nil || selector.Empty() {
		return Verdict{}
	}
	if !m.readNamespaces {
		m.readNamespacesOf()
	}
	v := Verdict{}
	for _, n := range m.namespaces {
		of, known := m.labelsOf(n)
		if selector.Matches(of) {
			continue
		}
		if known || !mayMatch(selector, of) {
			return Verdict{By: ByNamespace, namespace: n}
		}
		v = Verdict{By: ByUnknownNamespace, namespace: n}
	}
	return v
}

// labelsOf returns the labels of a namespace, and reports whether all are known. Those of one that is gone may be in
// the request.
func (m *Matcher) labelsOf(namespace string) (labels.Set, bool) {
	of, known := m.namespaceLabels.NamespaceLabels(namespace)
	r, says := m.Message.(interface{ GetNamespaceLabels() map[string]string })
	if known || !says || len(r.GetNamespaceLabels()) == 0 {
		return of, known
	}
	return labels.Merge(r.GetNamespaceLabels(), of), true
}

// mayMatch reports whether a selector may match a namespace of which only these labels are known.
func mayMatch(selector labels.Selector, known labels.Set) bool {
	requirements, selectable := selector.Requirements()
	return selectable && !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return known.Has(r.Key()) && !r.Matches(known)
	})
}

// judgePolicy decides whether a policy, which may be nil, lets its handler be called.
func (m *Matcher) judgePolicy(ctx context.Context, p *policy.Policy) Verdict {
	if p == nil {
		return Verdict{}
	}
	if p.ObjectSelector != nil && !p.ObjectSelector.Empty() {
		switch matches, err := m.matchesLabels(p.ObjectSelector); {
		case err != nil:
			return Verdict{Policy: p, PolicyError: err}
		case !matches:
			return Verdict{By: ByObject, Policy: p}
		}
	}
	return m.judgeConditions(ctx, p)
}

// judgeConditions decides whether the conditions of a policy let its handler be called.
func (m *Matcher) judgeConditions(ctx context.Context, p *policy.Policy) Verdict {
	if p.Conditions == nil {
		return Verdict{}
	}
	if m.request == nil {
		m.request = m.newRequest(ctx)
	}
	unmet, err := p.Conditions.Unmet(ctx, m.request)
	switch {
	case err != nil:
		return Verdict{Policy: p, PolicyError: conditionError(p, err)}
	case unmet != nil:
		return Verdict{By: ByCondition, Policy: p, condition: unmet}
	}
	return Verdict{}
}

// conditionError classifies the error of a policy's conditions.
func conditionError(p *policy.Policy, err error) error {
	var evaluation *policy.EvaluationError
	var refused *hook.Error
	switch {
	case errors.As(err, &refused): // of the memory for calls
		return refused
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return bounds.GaveUp(err)
	case errors.Is(err, policy.ErrTooMany):
		return hook.Errorf(hook.TooLarge, "%s: %s", p, err)
	case errors.As(err, &evaluation):
		return hook.Errorf(hook.Policy, "%s: %s", p, evaluation).WithCause(evaluation.Cause)
	}
	return hook.Errorf(hook.Policy, "%s: match conditions cannot read this request", p).
		WithCause(err)
}

// matchesLabels reports whether the selector matches the labels of the object that the request is about. A request
// about no object matches every selector.
func (m *Matcher) matchesLabels(selector labels.Selector) (bool, error) {
	of, err := m.objectLabels()
	if err != nil {
		return false, err
	}
	return of == nil || selector.Matches(of), nil
}

// objectLabels returns the labels of the object that the request is about, nil if it is about none.
func (m *Matcher) objectLabels() (labels.Set, error) {
	if !m.readLabels {
		m.labels, m.labelsErr = subject.Labels(m.Message)
		m.readLabels = true
	}
	return m.labels, m.labelsErr
}

// newRequest returns the request as the caller sent it, without the settings of an ExtensionConfig. What conditions
// decode of it takes memory of the call until release.
func (m *Matcher) newRequest(ctx context.Context) *policy.Request {
	guard := policy.Guard{Step: ctx.Err}
	if in := bounds.From(ctx); in != nil {
		if in.Large() {
			guard.Step = in.Work().Step
		}
		memory := in.Memory()
		guard.Reserve = func(bytes int64) error {
			if err := memory.Grow(ctx, bytes); err != nil {
				return err
			}
			m.reserved += bytes
			return nil
		}
	}
	if m.body != nil {
		return policy.NewRequest(m.body, guard)
	}
	return policy.NewMessage(func(member string) ([]byte, error) {
		body, err := m.codec.EncodeWithin(part(m.Message, member), math.MaxInt64, codec.Guard{Reserve: guard.Reserve})
		if err == nil && guard.Reserve != nil && body.Size() > budget.CallBytes {
			err = guard.Reserve(body.Size())
		}
		if err != nil {
			return nil, err
		}
		return body.Bytes(), nil
	}, guard)
}

// part returns a message with that member of m, or with all members if member is empty. It shares them with m.
func part(m proto.Message, member string) proto.Message {
	if member == "" {
		return m
	}
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.JSONName() == member || field.Name() == "unknown_members" {
			to.Set(field, value)
		}
		return true
	})
	return to.Interface()
}

// Release gives back the memory that conditions have taken.
func (m *Matcher) Release(ctx context.Context) {
	if m.reserved > 0 {
		bounds.From(ctx).Memory().Shrink(m.reserved)
		m.request, m.reserved = nil, 0
	}
}
