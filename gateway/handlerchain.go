// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/registry"
)

// chained returns the target of a request for a chain: the steps whose selectors and policies match. It returns an
// error if a step is missing, or if it is not known whether one matches: an answer without it would say yes for
// somebody who was not asked.
func chained(ctx context.Context, s *registry.Snapshot, c *registry.Chain, m *matcher) (target, error) {
	if of := s.ClosedChain(c.Name); of != nil {
		return target{}, of.Error()
	}
	steps, err := s.StepsOf(c)
	if of, ok := errors.AsType[*hook.Error](err); ok {
		return target{}, of
	}
	if err != nil {
		return target{}, hook.Errorf(hook.NotReady, "%s cannot be called: %s", c,
			joined(strings.Split(err.Error(), "\n"), "; "))
	}
	t := target{chain: c}
	for _, step := range steps {
		e, of, err := m.member(ctx, step.Entry)
		switch {
		case err != nil:
			return target{}, err
		case e == nil && step.Optional:
			continue
		case e == nil:
			return target{}, noMember(s, step.Entry, of)
		}
		v := m.judgeStep(ctx, c, e)
		if of := s.Closed(e, false); of != nil && v.by != byNamespace {
			return target{}, of.Error()
		}
		switch {
		case !v.excluded():
			t.steps = append(t.steps, target{
				entry: e, policyError: v.policyError, settings: step.Settings, allow: step.Allow, member: of,
			})
		case v.by == byUnknownNamespace:
			return target{}, unknownNamespace(v.namespace, e.Registration.Name)
		case v.by == byUnknownCluster:
			return target{}, v.unknown
		}
	}
	return t, nil
}

// callChain calls the steps of a chain, and makes one answer of theirs. The steps share one deadline: each has what
// those before it have left, and no more than its own timeout.
func (d *Dispatcher) callChain(ctx context.Context, r Request, t target) (proto.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, limits.Timeout)
	defer cancel()
	switch r.Message.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		return d.chainPatches(ctx, r, t.steps)
	case *hooksv1alpha1.CanUpdateMachineRequest, *hooksv1alpha1.CanUpdateMachineSetRequest:
		return d.chainInPlace(ctx, r, t)
	case *hooksv1alpha1.UpdateMachineRequest:
		return d.chainUntil(ctx, r, t, func(answer proto.Message) bool {
			held, ok := answer.(blockingResponse)
			return ok && held.GetRetryAfterSeconds() > 0 // not done yet
		})
	case *hooksv1alpha1.GenerateUpgradePlanRequest:
		return d.chainUntil(ctx, r, t, func(answer proto.Message) bool {
			plan, ok := answer.(*hooksv1alpha1.GenerateUpgradePlanResponse)
			return ok && len(plan.GetControlPlaneUpgrades())+len(plan.GetWorkersUpgrades()) > 0
		})
	case *hooksv1alpha1.DiscoverVariablesRequest:
		return d.chainVariables(ctx, r, t.steps)
	case *hooksv1alpha1.ValidateTopologyRequest:
		return mergeAny(r.Hook, t.steps, d.callTogether(ctx, r, t.steps))
	}
	return mergeAny(r.Hook, t.steps, d.callInTurn(ctx, r, t.steps))
}

// mergeAny is merge of the answers of any number of steps. None are a success: the operator has excluded all of them.
func mergeAny(h *catalog.Hook, steps []target, answers []answer) (proto.Message, error) {
	if len(steps) == 0 {
		return newSuccess(h), nil
	}
	return merge(h, steps, answers)
}

// callTogether calls all steps at the same time.
func (d *Dispatcher) callTogether(ctx context.Context, r Request, steps []target) []answer {
	answers := make([]answer, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() { answers[i].response, answers[i].err = d.call(ctx, r, step) })
	}
	wg.Wait()
	return answers
}

// callInTurn calls the steps one after the other, until one fails.
func (d *Dispatcher) callInTurn(ctx context.Context, r Request, steps []target) []answer {
	answers := make([]answer, len(steps))
	for i, step := range steps {
		answers[i].response, answers[i].err = d.call(ctx, r, step)
		if answers[i].failed() {
			break
		}
	}
	return answers
}

// stepAnswer returns the answer of a step. ended is the answer of the whole chain, if it is one: a Failure.
func (d *Dispatcher) stepAnswer(
	ctx context.Context, r Request, step target,
) (response, ended proto.Message, err error) {
	a := answer{}
	a.response, a.err = d.call(ctx, r, step)
	if a.failed() {
		ended, err = merge(r.Hook, []target{step}, []answer{a})
		return nil, ended, err
	}
	return a.response, nil, nil
}

// with returns r with another message.
func (r Request) with(m proto.Message) Request {
	if m != r.Message {
		r.Message, r.Body = m, nil
	}
	return r
}

// badStep returns the error of an answer that does not fit into the chain.
func badStep(step target, err error) error {
	if refused, ok := errors.AsType[*hook.Error](err); ok { // of the memory or the time for calls
		return refused.WithHandler(step.entry.Name)
	}
	return hook.Errorf(hook.BadResponse, "%s", err).WithHandler(step.entry.Name)
}

// guardOf returns the bounds of the work on the objects of a call.
func guardOf(ctx context.Context) jsonpatch.Guard {
	g := jsonpatch.Guard{Step: ctx.Err}
	in := callFrom(ctx)
	if in == nil {
		return g
	}
	if in.Received > budget.Step {
		g.Step = in.work.Step
	}
	if in.memory != nil {
		g.Reserve = in.memory.Within(ctx)
	}
	return g
}

// ignoredStep returns the answer of a step whose own does not fit into the chain, if its failure policy hides that, and
// otherwise the error.
func ignoredStep(h *catalog.Hook, step target, err error) (proto.Message, error) {
	if step.entry.Handler.FailurePolicy != hook.Ignore || h.FailOnly || !hook.KindOf(err).Ignorable() {
		return nil, err
	}
	return ignoredAnswer(h, step.entry.Name, err), nil
}

// chainPatches answers GeneratePatches: each step sees the items as those before it have patched them.
func (d *Dispatcher) chainPatches(ctx context.Context, r Request, steps []target) (proto.Message, error) {
	req, _ := r.Message.(*hooksv1alpha1.GeneratePatchesRequest)
	patches := handlerchain.NewPatches(req, guardOf(ctx))
	next := r
	var kept []*hooksv1alpha1.GeneratePatchesResponseItem // of the steps so far
	answers := make([]answer, len(steps))
	for i, step := range steps {
		answered, ended, err := d.stepAnswer(ctx, next, step)
		if err != nil || ended != nil {
			return ended, err
		}
		answers[i].response = answered
		of, _ := answered.(*hooksv1alpha1.GeneratePatchesResponse)
		if err := heavy(ctx, func() error {
			err := patches.Add(of)
			if err == nil && i+1 < len(steps) {
				err = patches.Check()
			}
			if err != nil {
				if answers[i].response, err = ignoredStep(r.Hook, step, badStep(step, err)); err != nil {
					return err
				}
				if patches, err = patches.Before(len(kept), guardOf(ctx)); err != nil {
					return err
				}
			}
			kept = patches.Items()
			if i+1 < len(steps) {
				next = r.with(patches.Request())
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	whole, _ := mergeSuccesses(r.Hook, answers).(*hooksv1alpha1.GeneratePatchesResponse)
	whole.Items = patches.Items()
	return whole, nil
}

// chainInPlace answers CanUpdateMachine and CanUpdateMachineSet: each step sees the current objects as those before it
// have patched them, until nothing that counts differs from the desired ones.
func (d *Dispatcher) chainInPlace(ctx context.Context, r Request, t target) (proto.Message, error) {
	changes := handlerchain.NewInPlace(r.Message, guardOf(ctx))
	uncovered, err := uncoveredBy(ctx, changes)
	var answers []answer
	for _, step := range t.steps {
		if err != nil || len(uncovered) == 0 {
			break
		}
		answered, ended, callErr := d.stepAnswer(ctx, r.with(changes.Request()), step)
		if callErr != nil || ended != nil {
			return ended, callErr
		}
		if err = changes.Add(answered, step.allow); err != nil {
			return nil, badStep(step, err) // registry.Chain.Strict: no failure of a step is ignored
		}
		answers = append(answers, answer{response: answered})
		uncovered, err = uncoveredBy(ctx, changes)
	}
	if err != nil {
		return nil, err
	}
	if t.chain.Block && len(uncovered) > 0 {
		return d.blocked(r, t, fmt.Sprintf("onPartialCoverage of %s is Block, and no step covers %s",
			t.chain, handlerchain.Listed(uncovered))), nil
	}
	d.unblocked(r, t)
	whole := mergeSuccesses(r.Hook, answers)
	changes.Complete(whole)
	return whole, nil
}

// uncoveredBy returns what no step has covered so far. An error is about the request.
func uncoveredBy(ctx context.Context, changes *handlerchain.InPlace) (uncovered []string, err error) {
	err = heavy(ctx, func() (err error) {
		uncovered, err = changes.Uncovered()
		return err
	})
	if _, ok := errors.AsType[*hook.Error](err); err != nil && !ok {
		err = hook.Errorf(hook.InvalidRequest, "%s", err)
	}
	return uncovered, err
}

// chainUntil returns the answer of the first step that ends the chain, or else of all steps. There has to be one:
// success without a step would say that the work is done.
func (d *Dispatcher) chainUntil(
	ctx context.Context, r Request, t target, ends func(answer proto.Message) bool,
) (proto.Message, error) {
	if len(t.steps) == 0 {
		return nil, hook.Errorf(hook.UnknownHandler, "no step of %s is for this request", t.chain)
	}
	answers := make([]answer, len(t.steps))
	for i, step := range t.steps {
		answered, ended, err := d.stepAnswer(ctx, r, step)
		if err != nil || ended != nil {
			return ended, err
		}
		if ends(answered) {
			return answered, nil
		}
		answers[i].response = answered
	}
	return merge(r.Hook, t.steps, answers)
}

// chainVariables answers DiscoverVariables with the variables of all steps.
func (d *Dispatcher) chainVariables(ctx context.Context, r Request, steps []target) (proto.Message, error) {
	answers := d.callTogether(ctx, r, steps)
	for _, a := range answers {
		if a.failed() {
			return merge(r.Hook, steps, answers)
		}
	}
	names := make([]string, len(steps))
	responses := make([]*hooksv1alpha1.DiscoverVariablesResponse, len(steps))
	for i, a := range answers {
		names[i] = steps[i].entry.Name
		responses[i], _ = a.response.(*hooksv1alpha1.DiscoverVariablesResponse)
	}
	whole, _ := mergeSuccesses(r.Hook, answers).(*hooksv1alpha1.DiscoverVariablesResponse)
	err := heavy(ctx, func() (err error) {
		whole.Variables, err = handlerchain.Variables(names, responses, guardOf(ctx))
		return err
	})
	if _, ok := errors.AsType[*hook.Error](err); err != nil && !ok {
		err = hook.Errorf(hook.BadResponse, "%s", err)
	}
	if err != nil {
		return nil, err
	}
	return whole, nil
}

// allSettings returns the settings that are added to requests of a target: those of a chain's step over those of the
// ExtensionConfig.
func (t target) allSettings() map[string]string {
	if len(t.settings) == 0 {
		return t.entry.Registration.Settings
	}
	all := maps.Clone(t.settings)
	for name, value := range t.entry.Registration.Settings {
		if _, ok := all[name]; !ok {
			all[name] = value
		}
	}
	return all
}

// blocked answers that a chain with onPartialCoverage: Block lets the Machines of a request be as they are. Cluster API
// writes the message to its log alone, so it is kept with the holds, and reported for an event.
func (d *Dispatcher) blocked(r Request, t target, message string) proto.Message {
	d.config.Observer.Block(r.Hook, t.chain.Name, r.Message, message)
	if d.config.Blocked != nil {
		apiVersion, kind, namespace, name := subject.Owner(r.Message)
		if name != "" && len(namespace)+len(name) <= limits.NameBytes { // of an object that may exist
			owner := corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
			d.config.Blocked(owner, t.chain.Name, message)
		}
	}
	return newFailure(r.Hook, message)
}

// unblocked notes that a chain does not block the update of a request, or not any more.
func (d *Dispatcher) unblocked(r Request, t target) {
	if t.chain.Block {
		d.config.Observer.Unblock(r.Hook, t.chain.Name, r.Message)
	}
}
