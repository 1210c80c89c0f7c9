// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

// callChain calls the steps of a chain, and makes one answer of theirs. The steps share one deadline: each has what
// those before it have left, and no more than its own timeout.
func (d *Dispatcher) callChain(ctx context.Context, r Request, t selection.Target) (proto.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, limits.Timeout)
	defer cancel()
	switch r.Message.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		return d.chainPatches(ctx, r, t.Steps)
	case *hooksv1alpha1.CanUpdateMachineRequest, *hooksv1alpha1.CanUpdateMachineSetRequest:
		return d.chainInPlace(ctx, r, t)
	case *hooksv1alpha1.UpdateMachineRequest:
		return d.chainUntil(ctx, r, t, outcome.Holds) // the work of a step is not done yet
	case *hooksv1alpha1.GenerateUpgradePlanRequest:
		return d.chainUntil(ctx, r, t, func(answer proto.Message) bool {
			plan, ok := answer.(*hooksv1alpha1.GenerateUpgradePlanResponse)
			return ok && len(plan.GetControlPlaneUpgrades())+len(plan.GetWorkersUpgrades()) > 0
		})
	case *hooksv1alpha1.DiscoverVariablesRequest:
		return d.chainVariables(ctx, r, t.Steps)
	case *hooksv1alpha1.ValidateTopologyRequest:
		return mergeAny(r.Hook, t.Steps, d.callTogether(ctx, r, t.Steps))
	}
	return mergeAny(r.Hook, t.Steps, d.callInTurn(ctx, r, t.Steps))
}

// mergeAny is merge of the answers of any number of steps. None are a success: the operator has excluded all of them.
func mergeAny(h *catalog.Hook, steps []selection.Target, answers []outcome.Answer) (proto.Message, error) {
	if len(steps) == 0 {
		return outcome.Success(h), nil
	}
	return outcome.Merge(h, selection.NamesOf(steps), answers)
}

// callTogether calls all steps at the same time.
func (d *Dispatcher) callTogether(ctx context.Context, r Request, steps []selection.Target) []outcome.Answer {
	answers := make([]outcome.Answer, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() { answers[i].Response, answers[i].Err = d.call(ctx, r, step) })
	}
	wg.Wait()
	return answers
}

// callInTurn calls the steps one after the other, until one fails, or holds and says onHold: Stop. Then the last answer
// says which steps wait for it.
func (d *Dispatcher) callInTurn(ctx context.Context, r Request, steps []selection.Target) []outcome.Answer {
	answers := make([]outcome.Answer, len(steps))
	for i, step := range steps {
		answers[i].Response, answers[i].Err = d.call(ctx, r, step)
		if answers[i].Failed() {
			break
		}
		if waiting := steps[i+1:]; step.Stops && len(waiting) > 0 && outcome.Holds(answers[i].Response) {
			answers[i+1].Response = outcome.New(r.Hook, catalog.Success, stopped(step, waiting))
			return answers[:i+2]
		}
	}
	return answers
}

// stopped says that a step holds, and which steps are not called meanwhile.
func stopped(step selection.Target, waiting []selection.Target) string {
	names := make([]string, len(waiting))
	for i, t := range waiting {
		names[i] = strconv.Quote(t.Seen())
	}
	return fmt.Sprintf("these handlers are not called while handler %q holds: %s", step.Seen(),
		text.Join(names, ", ", selection.MaxNames))
}

// stepAnswer returns the answer of a step. ended is the answer of the whole chain, if it is one: a Failure.
func (d *Dispatcher) stepAnswer(
	ctx context.Context, r Request, step selection.Target,
) (response, ended proto.Message, err error) {
	a := outcome.Answer{}
	a.Response, a.Err = d.call(ctx, r, step)
	if a.Failed() {
		ended, err = outcome.Merge(r.Hook, selection.NamesOf([]selection.Target{step}), []outcome.Answer{a})
		return nil, ended, err
	}
	return a.Response, nil, nil
}

// with returns r with another message.
func (r Request) with(m proto.Message) Request {
	if m != r.Message {
		r.Message, r.Body = m, nil
	}
	return r
}

// badStep returns the error of an answer that does not fit into the chain.
func badStep(step selection.Target, err error) error {
	if refused, ok := errors.AsType[*hook.Error](err); ok { // of the memory or the time for calls
		return refused.WithHandler(step.Entry.Name)
	}
	return hook.Errorf(hook.BadResponse, "%s", err).WithHandler(step.Entry.Name)
}

// ignoredStep returns the answer of a step whose own does not fit into the chain, if its failure policy hides that, and
// otherwise the error.
func ignoredStep(h *catalog.Hook, step selection.Target, err error) (proto.Message, error) {
	if step.Entry.Handler.FailurePolicy != hook.Ignore || h.FailOnly || !hook.KindOf(err).Ignorable() {
		return nil, err
	}
	return ignoredAnswer(h, step.Entry.Name, err), nil
}

// chainPatches answers GeneratePatches: each step sees the items as those before it have patched them.
func (d *Dispatcher) chainPatches(ctx context.Context, r Request, steps []selection.Target) (proto.Message, error) {
	req, _ := r.Message.(*hooksv1alpha1.GeneratePatchesRequest)
	patches := handlerchain.NewPatches(req, bounds.Guard(ctx))
	next := r
	var kept []*hooksv1alpha1.GeneratePatchesResponseItem // of the steps so far
	answers := make([]outcome.Answer, len(steps))
	for i, step := range steps {
		answered, ended, err := d.stepAnswer(ctx, next, step)
		if err != nil || ended != nil {
			return ended, err
		}
		answers[i].Response = answered
		of, _ := answered.(*hooksv1alpha1.GeneratePatchesResponse)
		if err := bounds.Heavy(ctx, func() error {
			err := patches.Add(of)
			if err == nil && i+1 < len(steps) {
				err = patches.Check()
			}
			if err != nil {
				if answers[i].Response, err = ignoredStep(r.Hook, step, badStep(step, err)); err != nil {
					return err
				}
				if patches, err = patches.Before(len(kept), bounds.Guard(ctx)); err != nil {
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
	whole, _ := outcome.Successes(r.Hook, answers).(*hooksv1alpha1.GeneratePatchesResponse)
	whole.Items = patches.Items()
	return whole, nil
}

// chainInPlace answers CanUpdateMachine and CanUpdateMachineSet: each step sees the current objects as those before it
// have patched them, until nothing that counts differs from the desired ones.
func (d *Dispatcher) chainInPlace(ctx context.Context, r Request, t selection.Target) (proto.Message, error) {
	changes := handlerchain.NewInPlace(r.Message, bounds.Guard(ctx))
	uncovered, err := uncoveredBy(ctx, changes)
	var answers []outcome.Answer
	for _, step := range t.Steps {
		if err != nil || len(uncovered) == 0 {
			break
		}
		answered, ended, callErr := d.stepAnswer(ctx, r.with(changes.Request()), step)
		if callErr != nil || ended != nil {
			return ended, callErr
		}
		if err = changes.Add(answered, step.Allow); err != nil {
			return nil, badStep(step, err) // registry.Chain.Strict: no failure of a step is ignored
		}
		answers = append(answers, outcome.Answer{Response: answered})
		uncovered, err = uncoveredBy(ctx, changes)
	}
	if err != nil {
		return nil, err
	}
	if t.Chain.Block && len(uncovered) > 0 {
		return d.blocked(r, t, fmt.Sprintf("onPartialCoverage of %s is Block, and no step covers %s",
			t.Chain, handlerchain.Listed(uncovered))), nil
	}
	d.unblocked(r, t)
	whole := outcome.Successes(r.Hook, answers)
	changes.Complete(whole)
	return whole, nil
}

// uncoveredBy returns what no step has covered so far. An error is about the request.
func uncoveredBy(ctx context.Context, changes *handlerchain.InPlace) (uncovered []string, err error) {
	err = bounds.Heavy(ctx, func() (err error) {
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
	ctx context.Context, r Request, t selection.Target, ends func(answer proto.Message) bool,
) (proto.Message, error) {
	if len(t.Steps) == 0 {
		return nil, hook.Errorf(hook.UnknownHandler, "no step of %s is for this request", t.Chain)
	}
	answers := make([]outcome.Answer, len(t.Steps))
	for i, step := range t.Steps {
		answered, ended, err := d.stepAnswer(ctx, r, step)
		if err != nil || ended != nil {
			return ended, err
		}
		if ends(answered) {
			return answered, nil
		}
		answers[i].Response = answered
	}
	return outcome.Merge(r.Hook, selection.NamesOf(t.Steps), answers)
}

// chainVariables answers DiscoverVariables with the variables of all steps.
func (d *Dispatcher) chainVariables(ctx context.Context, r Request, steps []selection.Target) (proto.Message, error) {
	answers := d.callTogether(ctx, r, steps)
	for _, a := range answers {
		if a.Failed() {
			return outcome.Merge(r.Hook, selection.NamesOf(steps), answers)
		}
	}
	names := make([]string, len(steps))
	responses := make([]*hooksv1alpha1.DiscoverVariablesResponse, len(steps))
	for i, a := range answers {
		names[i] = steps[i].Entry.Name
		responses[i], _ = a.Response.(*hooksv1alpha1.DiscoverVariablesResponse)
	}
	whole, _ := outcome.Successes(r.Hook, answers).(*hooksv1alpha1.DiscoverVariablesResponse)
	err := bounds.Heavy(ctx, func() (err error) {
		whole.Variables, err = handlerchain.Variables(names, responses, bounds.Guard(ctx))
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

// blocked answers that a chain with onPartialCoverage: Block lets the Machines of a request be as they are. Cluster API
// writes the message to its log alone, so it is kept with the holds, and reported for an event.
func (d *Dispatcher) blocked(r Request, t selection.Target, message string) proto.Message {
	d.config.Observer.Block(r.Hook, t.Chain.Name, r.Message, message)
	if d.config.Blocked != nil {
		apiVersion, kind, namespace, name := subject.Owner(r.Message)
		if name != "" && len(namespace)+len(name) <= limits.NameBytes { // of an object that may exist
			owner := corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
			d.config.Blocked(owner, t.Chain.Name, message)
		}
	}
	return outcome.Failure(r.Hook, message)
}

// unblocked notes that a chain does not block the update of a request, or not any more.
func (d *Dispatcher) unblocked(r Request, t selection.Target) {
	if t.Chain.Block {
		d.config.Observer.Unblock(r.Hook, t.Chain.Name, r.Message)
	}
}
