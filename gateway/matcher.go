// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

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

// matcher matches one request against the selectors and conditions of handlers. It reads labels and variables once, on
// first use, because most handlers need none. It belongs to one goroutine.
type matcher struct {
	namespaceLabels Namespaces
	clusters        Clusters // may be nil
	versions        *hookversion.Converter
	codec           *codec.Codec

	message proto.Message // in the newest version of the hook; perhaps a partial one
	body    []byte        // the JSON of message, if the caller sent it

	skipped        []string // namespaces of what message lacks
	namespaces     []string
	namespacesErr  error
	readNamespaces bool

	labels     labels.Set
	labelsErr  error
	readLabels bool

	clusterName *[2]string                 // namespace and name; nil before they are read
	looks       bool                       // the call is only explained
	candidates  map[*registry.Rollout]bool // whether the candidate of a Rollout answers; nil before the first

	request  *policy.Request // message as conditions see it
	reserved int64           // bytes that it has taken of the call's memory
}

func (d *Dispatcher) newMatcher() matcher {
	return matcher{
		namespaceLabels: d.config.Namespaces, clusters: d.config.Clusters, versions: d.config.Versions, codec: d.config.Codec,
	}
}

// read makes m match r. It returns an error if r lacks the object that its hook is about.
func (m *matcher) read(r Request) (err error) {
	if r.Message == nil {
		m.message, m.body, m.skipped = r.Partial, r.Body, r.Namespaces
		return m.check()
	}
	if m.message, err = m.versions.ToHub(r.Message, r.Hook); err != nil {
		return err
	}
	if m.message == r.Message {
		m.body = r.Body
	}
	return m.check()
}

// check returns an error if the request lacks the object that its hook is about, or is about too many namespaces.
func (m *matcher) check() error {
	if err := subject.Check(m.message); err != nil {
		return err
	}
	if n, _ := subject.Items(m.message); n+len(m.skipped) <= limits.Namespaces {
		return nil // as in most requests, which need not be read for this
	}
	m.readNamespacesOf()
	if len(m.namespaces) > limits.Namespaces {
		return hook.Errorf(hook.TooLarge, "request has items of more than %d namespaces", limits.Namespaces)
	}
	return nil
}

func (m *matcher) readNamespacesOf() {
	m.namespaces, m.namespacesErr = subject.Namespaces(m.message, m.skipped)
	m.readNamespaces = true
}

// verdict says whether a request is for a handler, and what decides that. It has no text, which calls do not need.
type verdict struct {
	by exclusion
	// policy is the one that excludes the handler, or that could not be evaluated, if it is one that does.
	policy *policy.Policy
	// namespace is the one that the namespaceSelector does not match, or whose labels are not known.
	namespace string
	// condition is the one that is false.
	condition *policy.Condition
	// cluster and labels are the Cluster that a step of an in-place chain is not for, and its labels. unknown, a
	// *hook.Error, says why these are not known.
	cluster string
	labels  labels.Set
	unknown error
	// policyError, a *hook.Error, says why the policy could not be evaluated, if it could not. The handler is called then,
	// and its call fails.
	policyError error
}

// exclusion is what excludes a handler from a request.
type exclusion int

// The exclusions. The zero value excludes nothing.
const (
	byNamespace exclusion = iota + 1
	byUnknownNamespace
	byObject
	byCluster
	byUnknownCluster
	byCondition
	byHooks        // of the policy for the extension
	byUndiscovered // which the policy or the ExtensionConfig ignores
)

// excluded reports whether the handler is not for the request.
func (v verdict) excluded() bool { return v.by != 0 }

// judge decides whether the request is for a handler: by the namespaceSelector and the selection of its registration,
// and by the operator's policy.
func (m *matcher) judge(ctx context.Context, e *registry.Entry) verdict {
	if e.Handler.Everything {
		return verdict{}
	}
	if v := m.judgeNamespaces(e.Registration.NamespaceSelector); v.by == byUnknownNamespace && e.Registration.Audit {
		// The call would fail before any handler is called. As an error of this one, it is only reported.
		return verdict{policyError: unknownNamespace(v.namespace, e.Registration.Describe())}
	} else if v.excluded() {
		return v
	}
	if v := m.judgePolicy(ctx, e.Registration.Selection); v.excluded() || v.policyError != nil {
		return v
	}
	return m.judgePolicy(ctx, e.Policy)
}

// judgeNamespaces decides whether the namespaceSelector of an ExtensionConfig, which may be nil, matches every
// namespace of the request. A request about no object, such as one of DiscoverVariables, matches every selector. If
// one that does not match depends on labels of a namespace that is not known, the exclusion is byUnknownNamespace. If
// namespacesErr is set then, the verdict means nothing.
func (m *matcher) judgeNamespaces(selector labels.Selector) verdict {
	if selector == nil || selector.Empty() {
		return verdict{}
	}
	if !m.readNamespaces {
		m.readNamespacesOf()
	}
	v := verdict{}
	for _, n := range m.namespaces {
		of, known := m.namespaceLabels.NamespaceLabels(n)
		if selector.Matches(labels.Set(of)) {
			continue
		}
		if known || !mayMatch(selector, labels.Set(of)) {
			return verdict{by: byNamespace, namespace: n}
		}
		v = verdict{by: byUnknownNamespace, namespace: n}
	}
	return v
}

// mayMatch reports whether a selector may match a namespace of which only these labels are known.
func mayMatch(selector labels.Selector, known labels.Set) bool {
	requirements, selectable := selector.Requirements()
	return selectable && !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return known.Has(r.Key()) && !r.Matches(known)
	})
}

// judgePolicy decides whether a policy, which may be nil, lets its handler be called.
func (m *matcher) judgePolicy(ctx context.Context, p *policy.Policy) verdict {
	if p == nil {
		return verdict{}
	}
	if p.ObjectSelector != nil && !p.ObjectSelector.Empty() {
		switch matches, err := m.matchesLabels(p.ObjectSelector); {
		case err != nil:
			return verdict{policy: p, policyError: err}
		case !matches:
			return verdict{by: byObject, policy: p}
		}
	}
	return m.judgeConditions(ctx, p)
}

// judgeConditions decides whether the conditions of a policy let its handler be called.
func (m *matcher) judgeConditions(ctx context.Context, p *policy.Policy) verdict {
	if p.Conditions == nil {
		return verdict{}
	}
	if m.request == nil {
		m.request = m.newRequest(ctx)
	}
	unmet, err := p.Conditions.Unmet(ctx, m.request)
	switch {
	case err != nil:
		return verdict{policy: p, policyError: conditionError(p, err)}
	case unmet != nil:
		return verdict{by: byCondition, policy: p, condition: unmet}
	}
	return verdict{}
}

// conditionError classifies the error of a policy's conditions.
func conditionError(p *policy.Policy, err error) error {
	var evaluation *policy.EvaluationError
	var refused *hook.Error
	switch {
	case errors.As(err, &refused): // of the memory for calls
		return refused
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return gaveUp(err)
	case errors.Is(err, policy.ErrTooMany):
		return hook.Errorf(hook.TooLarge, "%s: %s", p, err)
	case errors.As(err, &evaluation):
		return hook.Errorf(hook.Policy, "%s: %s", p, evaluation).WithCause(evaluation.Cause)
	}
	return hook.Errorf(hook.Policy, "%s: match conditions cannot look at this request", p).
		WithCause(err)
}

// gaveUp returns the error of a call whose context has ended with err.
func gaveUp(err error) *hook.Error {
	if errors.Is(err, context.Canceled) {
		return hook.Errorf(hook.Canceled, "the caller left before the answer").WithCause(err)
	}
	return hook.Errorf(hook.Timeout, "no answer before the caller's deadline").WithCause(err)
}

// matchesLabels reports whether the selector matches the labels of the object that the request is about. A request
// about no object matches every selector.
func (m *matcher) matchesLabels(selector labels.Selector) (bool, error) {
	of, err := m.objectLabels()
	if err != nil {
		return false, err
	}
	return of == nil || selector.Matches(of), nil
}

// objectLabels returns the labels of the object that the request is about, nil if it is about none.
func (m *matcher) objectLabels() (labels.Set, error) {
	if !m.readLabels {
		m.labels, m.labelsErr = subject.Labels(m.message)
		m.readLabels = true
	}
	return m.labels, m.labelsErr
}

// newRequest returns the request as the caller sent it, without the settings of an ExtensionConfig. What conditions
// decode of it takes memory of the call until release.
func (m *matcher) newRequest(ctx context.Context) *policy.Request {
	guard := policy.Guard{Step: ctx.Err}
	if in := callFrom(ctx); in != nil {
		if in.Received > budget.Step {
			guard.Step = in.work.Step
		}
		guard.Reserve = func(bytes int64) error {
			if err := in.memory.Grow(ctx, bytes); err != nil {
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
		body, err := m.codec.EncodeWithin(part(m.message, member), math.MaxInt64, codec.Guard{Reserve: guard.Reserve})
		if err == nil && guard.Reserve != nil && body.Size() > reserveFrom {
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

// release gives back the memory that conditions have taken.
func (m *matcher) release(ctx context.Context) {
	if m.reserved > 0 {
		callFrom(ctx).memory.Shrink(m.reserved)
		m.request, m.reserved = nil, 0
	}
}
