// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/registry"
)

// explainedBytes is about what an ExplainedHandler takes, with its texts in JSON.
const explainedBytes = 4 << 10

// Explain says what Dispatch would do with a request, which needs a Message, and calls nothing. It selects handlers as
// calls do. What fails the call before a handler is called is a part of the explanation; errors are those of requests
// that cannot be read, and of a registry that is not ready.
func (d *Dispatcher) Explain(ctx context.Context, r Request) (*Explanation, error) {
	x, _, err := d.explain(ctx, d.config.Registry.Snapshot(), r)
	return x, err
}

// explainer makes one Explanation.
type explainer struct {
	*Dispatcher
	ctx      context.Context
	snapshot *registry.Snapshot
	r        Request
	m        *selection.Matcher
	failed   bool           // the call fails before a handler is called
	chosen   map[string]int // the turns of the targets, by name
	left     int            // how many handlers may still be listed
	x        *Explanation
}

// explain is Explain, and returns the targets, too.
func (d *Dispatcher) explain(
	ctx context.Context, s *registry.Snapshot, r Request,
) (x *Explanation, targets []selection.Target, err error) {
	if !s.Ready() {
		return nil, nil, selection.NotReady(s)
	}
	if r.Hook.Singleton() {
		return nil, nil, hook.Errorf(hook.InvalidRequest, "%s is answered by the gateway itself", r.Hook.Hook)
	}
	if len(r.Handler) > limits.NameBytes {
		return nil, nil, selection.TooLong(r.Handler)
	}
	m := d.newMatcher()
	m.Looks = true
	e := explainer{
		Dispatcher: d, ctx: ctx, snapshot: s, r: r, m: &m, chosen: map[string]int{}, left: limits.ExplainedHandlers,
		x: &Explanation{
			Hook: r.Hook.Hook, APIVersion: r.Hook.APIVersion(), Handler: r.Handler, Handlers: []ExplainedHandler{},
		},
	}
	err = bounds.Heavy(ctx, func() error {
		defer m.Release(ctx)
		if err := m.Read(r.selected()); err != nil {
			return err
		}
		if namespace, name := subject.Cluster(m.Message); name != "" {
			e.x.Cluster = text.Cut(namespace+"/"+name, limits.QuotedBytes)
		}
		failure := d.lookAtCluster(ctx, m.Message)
		switch {
		case failure != nil:
		case selection.IsNamed(s, r.Hook, r.Handler):
			var one selection.Target
			if one, failure = selection.Named(ctx, s, r.selected(), &m); failure == nil {
				targets = []selection.Target{one}
			}
		default:
			targets, failure = selection.Matching(ctx, s, r.selected(), &m)
			if failure == nil && !r.Hook.Mergeable && len(targets) != 1 {
				failure = selection.WantOne(r.Hook, targets)
			}
		}
		if m.NamespacesErr != nil {
			return m.NamespacesErr
		}
		if failure != nil {
			e.failed, e.x.Failure = true, explainedError(failure)
		}
		return e.list(targets)
	})
	if err != nil {
		return nil, nil, err
	}
	return e.x, targets, nil
}

// list adds the handlers of the hook, or the one that the request names.
func (e *explainer) list(targets []selection.Target) error {
	handlers, chains := e.snapshot.Handlers(e.r.Hook.GroupHook()), e.snapshot.Chains()
	if reserve := bounds.Guard(e.ctx).Reserve; reserve != nil {
		most := len(handlers) + len(e.snapshot.Undiscovered())
		for _, c := range chains {
			most += 1 + len(c.Steps)
		}
		if err := reserve(int64(min(most, limits.ExplainedHandlers)) * explainedBytes); err != nil {
			return err
		}
	}
	if !e.failed {
		ordered := selection.InOrder(targets)
		for turn, i := range ordered {
			e.chosen[targets[i].Seen()] = turn + 1
		}
		for _, t := range targets {
			if e.chosen[t.Seen()] == 0 {
				e.chosen[t.Seen()] = len(ordered) + 1
			}
		}
		if len(ordered) > 0 { // together, they have the time of one
			var cancel context.CancelFunc
			e.ctx, cancel = context.WithTimeout(e.ctx, limits.Timeout)
			defer cancel()
		}
	}
	only := ""
	if selection.IsNamed(e.snapshot, e.r.Hook, e.r.Handler) {
		only = e.r.Handler
	}
	_, steps := e.snapshot.StandsFor(e.r.Hook.GroupHook())
	for _, first := range []bool{true, false} { // those that are called are listed, whatever the limit is
		for _, c := range chains {
			if c.Hook == e.r.Hook.GroupHook() && (only == "" || strings.EqualFold(only, c.Name)) &&
				first == (e.chosen[c.Name] > 0) {
				e.add(1+len(c.Steps), func() ExplainedHandler { return e.chain(c) })
			}
		}
		for _, h := range handlers {
			if (only == "" || e.isNamed(h)) && first == (e.chosen[h.Name] > 0) {
				e.add(1, func() ExplainedHandler { return e.handler(h, steps[h.Name] && only == "") })
			}
		}
	}
	if only == "" {
		e.unserved()
	}
	slices.SortStableFunc(e.x.Handlers, func(a, b ExplainedHandler) int {
		return cmp.Or(compareTurns(a.Turn, b.Turn), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// isNamed reports whether the request names the handler.
func (e *explainer) isNamed(h *registry.Entry) bool {
	named, ok := e.snapshot.Handler(e.r.Handler)
	return ok && named == h
}

func excludedBy(by, message string) *Exclusion {
	return &Exclusion{By: by, Message: message}
}

// compareTurns orders handlers that are not called behind the others.
func compareTurns(a, b int) int {
	if a == 0 || b == 0 {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// add adds a handler with n rows, if the explanation has room for them.
func (e *explainer) add(n int, explained func() ExplainedHandler) {
	if e.left < n {
		e.x.NotListed++
		return
	}
	e.left -= n
	e.x.Handlers = append(e.x.Handlers, explained())
}

// handler explains a registered handler, which may be called as a step of a chain instead.
func (e *explainer) handler(h *registry.Entry, isStep bool) ExplainedHandler {
	x := ExplainedHandler{Name: h.Name, Turn: e.chosen[h.Name]}
	v := selection.Verdict{}
	if isStep {
		x.Excluded = excludedBy("chain", "it is a step of "+e.chainsWith(h.Name)+", which is called in its place")
	} else {
		answers := e.answers(&x, h)
		if answers == nil {
			return x
		}
		h = answers
		v = e.m.Judge(e.ctx, h)
		x.Excluded = e.exclusion(v, h)
	}
	e.describe(e.ctx, &x, h, v)
	return x
}

// answers returns the handler that answers in place of one of a Rollout; nil if none does, which x says then. Every
// other handler answers itself.
func (e *explainer) answers(x *ExplainedHandler, h *registry.Entry) *registry.Entry {
	if h.Variants == nil {
		return h
	}
	x.Kind = h.Registration.InProcess.Kind()
	answers, of, err := e.m.Member(e.ctx, h)
	if err == nil && answers == nil {
		err = selection.NoMember(e.snapshot, h, of)
	}
	if of != nil {
		x.Member = of.Answering()
	}
	if err != nil {
		x.Excluded = excludedBy("member", text.Cut(err.Error(), limits.PolicyMessageBytes))
	}
	return answers
}

// chainsWith names the chains that a handler is a step of.
func (e *explainer) chainsWith(handler string) string {
	var names []string
	chains, _ := e.snapshot.StandsFor(e.r.Hook.GroupHook())
	for _, c := range chains {
		if c.HasStep(handler) {
			names = append(names, c.String())
		}
	}
	return text.Join(names, ", ", selection.MaxNames)
}

// exclusion returns the reason of a verdict on a handler, or nil if it is called.
func (e *explainer) exclusion(v selection.Verdict, h *registry.Entry) *Exclusion {
	if v.Excluded() {
		return (*Exclusion)(e.m.Exclusion(v, h.Registration.Describe(), h.Registration.NamespaceSelector))
	}
	return e.unlessFailed()
}

// unlessFailed returns the reason why something that matches is not called, or nil if it is.
func (e *explainer) unlessFailed() *Exclusion {
	if e.failed {
		return excludedBy("failure", "the call fails before any handler is called")
	}
	return nil
}

// describe adds how a handler is called.
func (e *explainer) describe(ctx context.Context, x *ExplainedHandler, h *registry.Entry, v selection.Verdict) {
	if l := h.Registration.InProcess; l != nil {
		x.Kind, x.Audits = l.Kind(), h.Registration.Audit
	}
	x.TimeoutSeconds = timeoutWithin(ctx, h)
	x.FailurePolicy = string(hook.Fail)
	if h.Handler.FailurePolicy == hook.Ignore && !e.r.Hook.FailOnly {
		x.FailurePolicy = string(hook.Ignore)
	}
	x.HookVersion = h.Handler.Hook.Version
	if e.config.Objects != nil {
		x.ClusterAPIVersion = h.Handler.ClusterAPIVersion
	}
	x.ClusterAPIRelease = h.Handler.ClusterAPIRelease
	if e.r.Hook.Deterministic() {
		x.CacheSeconds = int64(cacheTTL(h) / time.Second)
	}
	if h.Policy != nil {
		x.Policy, x.Order = text.Cut(h.Policy.String(), limits.QuotedBytes), h.Policy.Order
		x.Messages = string(h.Policy.Masking())
		x.LiftedBy = liftedBy(&extension.Call{Hook: e.r.Hook, Handler: h, Request: e.r.Message, Partial: e.m.Message})
	}
	if x.Excluded == nil {
		x.Fails = e.fails(h, v)
	}
}

// timeoutWithin returns the timeout of a handler in seconds, rounded to tenths so that it is the same each time.
func timeoutWithin(ctx context.Context, h *registry.Entry) float64 {
	timeout, _ := timeoutOf(ctx, extension.Call{Handler: h})
	return timeout.Round(time.Second / 10).Seconds()
}

// fails says why the call of a handler fails at once, or nothing.
func (e *explainer) fails(h *registry.Entry, v selection.Verdict) string {
	if v.PolicyError != nil {
		return text.Cut(v.PolicyError.Error(), limits.PolicyMessageBytes)
	}
	if _, ok := e.r.Hook.In(h.Handler.Hook.Version); !ok {
		return fmt.Sprintf("it implements %s, which the gateway does not serve", h.Handler.Hook)
	}
	state := e.extensions.Known(h.Registration.Name)
	if state == nil || extensionstate.CircuitOf(h).Disabled {
		return ""
	}
	if state.Circuit.Status().State == circuit.Open {
		return fmt.Sprintf("the circuit of %s is open, because its server is down", h.Registration.Describe())
	}
	if state.HandlerCircuit(h.Name).State == circuit.Open {
		return "the handler's circuit is open, because its calls have failed"
	}
	if e.x.Cluster != "" && slices.Contains(state.RefusedClusters(h.Name), e.x.Cluster) {
		return "the handler's circuit for this Cluster is open, because the calls for it have failed"
	}
	return ""
}

// chain explains a chain and its steps.
func (e *explainer) chain(c *registry.Chain) ExplainedHandler {
	x := ExplainedHandler{Name: c.Name, Kind: registry.ChainKind, Turn: e.chosen[c.Name]}
	if taken := e.snapshot.Taken(c); taken != "" {
		x.Excluded = excludedBy("name", "its name is also "+taken)
		return x
	}
	x.FailurePolicy = string(hook.Fail)
	var timeout time.Duration // of all steps, as discovery announces it
	ctx, cancel := context.WithTimeout(e.ctx, limits.Timeout)
	defer cancel()
	together, turn := e.r.Hook.InParallel(), 0
	for i := range c.Steps {
		step := e.step(ctx, c, i)
		timeout += time.Duration(step.TimeoutSeconds * float64(time.Second))
		if step.Excluded == nil && x.Turn > 0 {
			if !together || turn == 0 {
				turn++
			}
			step.Turn = turn
		}
		x.Steps = append(x.Steps, step)
	}
	x.TimeoutSeconds = timeoutWithin(e.ctx, &registry.Entry{Handler: registry.Handler{Timeout: timeout}})
	if x.Turn == 0 {
		if x.Excluded = e.unlessFailed(); x.Excluded == nil {
			x.Excluded = excludedBy("steps", "none of its steps is for this request")
		}
	}
	return x
}

// step explains a step of a chain.
func (e *explainer) step(ctx context.Context, c *registry.Chain, i int) ExplainedHandler {
	x := ExplainedHandler{Name: text.Cut(c.Steps[i].Handler, limits.QuotedBytes)}
	h, err := e.snapshot.Step(c, i)
	switch {
	case err != nil:
		x.Excluded = excludedBy("missing", text.Cut(err.Error(), limits.PolicyMessageBytes))
		return x
	case h == nil:
		x.Excluded = excludedBy("optional", "no handler of this name is registered, and the step is optional")
		return x
	}
	if h = e.answers(&x, h); h == nil {
		return x
	}
	v := e.m.JudgeStep(e.ctx, c, h)
	x.Excluded = e.exclusion(v, h)
	e.describe(ctx, &x, h, v)
	x.Order, x.OnHold = nil, c.Steps[i].OnHold // chains do not follow the order
	return x
}

// unserved adds what the policies of extensions withhold, and the ExtensionConfigs whose handlers are not known.
func (e *explainer) unserved() {
	for _, registration := range e.snapshot.Registrations() {
		for _, h := range e.snapshot.Withheld(registration.Name) {
			if h.Hook.GroupHook() != e.r.Hook.GroupHook() {
				continue
			}
			e.add(1, func() ExplainedHandler {
				withheld := selection.Verdict{By: selection.ByHooks, Policy: e.snapshot.Policies(registration.Name).All}
				by := (*Exclusion)(e.m.Exclusion(withheld, "", nil))
				by.Message += " " + e.r.Hook.Hook
				return ExplainedHandler{Name: h.Name + "." + registration.Name, Excluded: by}
			})
		}
	}
	for _, u := range e.snapshot.Undiscovered() {
		e.add(1, func() ExplainedHandler {
			x := ExplainedHandler{Name: cmp.Or(u.Name, text.Cut(u.Unreadable, limits.QuotedBytes)), Kind: "ExtensionConfig"}
			v := e.m.Awaits(e.ctx, e.snapshot, u, e.r.Hook)
			switch x.Excluded = (*Exclusion)(e.m.Exclusion(v, u.String(), u.NamespaceSelector)); {
			case v.By == selection.ByHooks:
				x.Excluded.Message += " " + e.r.Hook.Hook
			case e.notCalled(u.Name):
				x.Excluded = excludedBy("member",
					"it belongs to an "+registry.RolloutKind+" in which another ExtensionConfig answers for the Cluster")
			case !v.Excluded():
				x.Excluded = excludedBy("undiscovered", "its handlers are not known yet, and calls wait for them")
			}
			return x
		})
	}
}

// notCalled reports whether an ExtensionConfig is of a Rollout in which another one answers.
func (e *explainer) notCalled(extensionConfig string) bool {
	no, err := e.m.NotCalled(e.ctx, e.snapshot, extensionConfig)
	return no && err == nil
}

func explainedError(err error) *ExplainedError {
	return &ExplainedError{hook.KindOf(err).String(), redact.Bounded(err.Error(), limits.MergedMessageBytes)}
}
