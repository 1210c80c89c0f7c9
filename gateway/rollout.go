// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/seeing/answerdiff"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// answered leaves an answer of the stable member to be compared with that of the candidate, and counts the calls of a
// candidate.
func (d *Dispatcher) answered(ctx context.Context, r Request, t selection.Target, answer proto.Message, err error) {
	of := t.Member
	switch {
	case of == nil || r.trial != nil:
	case of.IsCandidate:
		switch kind := hook.KindOf(err); {
		case err == nil:
			of.Assignment.Answered(false)
		case kind == hook.Unreachable, kind == hook.Timeout, kind == hook.BadResponse, kind == hook.Conversion:
			of.Assignment.Answered(true)
		}
	case err == nil && r.Hook.ReadOnly():
		of.Assignment.Compare(registry.Comparison{
			Namespace: of.Namespace, Cluster: of.Cluster, Labels: of.Labels, Handler: t.Entry.Handler.Name,
			Bytes: kept(r, answer), Keep: bounds.Keep(ctx),
			Ask: func(unasked string) func(context.Context) registry.Compared { return d.ask(ctx, r, t, answer, unasked) },
		})
	}
}

// failed lets Rollouts know that a call of a reconcile has failed, so that Cluster API asks no more in it, or that a
// member's failure was ignored, so that the answers could not be compared. What a chain holds because of
// onPartialCoverage is no failure: all its steps were asked.
func (d *Dispatcher) failed(s *registry.Snapshot, r Request) {
	if len(s.Rollouts()) == 0 || r.trial != nil || !r.Hook.ReadOnly() {
		return
	}
	message := r.Message
	if message == nil {
		message = r.Partial
	}
	if namespace, cluster := subject.Cluster(message); len(namespace)+len(cluster) <= limits.NameBytes {
		for _, of := range s.Rollouts() {
			of.Assignment.Failed(namespace, cluster)
		}
	}
}

// kept returns about how many bytes a request and its answer take while they wait to be compared.
func kept(r Request, answer proto.Message) int64 {
	size := int64(len(r.Body))
	if r.Body == nil {
		size = messageCost * int64(proto.Size(r.Message))
	}
	return size + messageCost*int64(proto.Size(answer)) + callBytes
}

// messageCost is how many times its encoded size a message may take.
const messageCost = 4

// comparisons is the account of the memory that comparisons take. No caller has such a name.
const comparisons = "\x00comparisons"

// ask keeps a request and the answer of the stable member, and returns the function that asks the candidate and
// compares, unless there is a reason not to ask.
func (d *Dispatcher) ask(
	ctx context.Context, r Request, t selection.Target, answer proto.Message, unasked string,
) func(ctx context.Context) registry.Compared {
	body, stable, id := bytes.Clone(r.Body), proto.Clone(answer), callID(ctx)
	kept := Request{Hook: r.Hook, via: r.via, calledAs: t.Seen()}
	if body == nil {
		kept.Message = proto.Clone(r.Message)
	}
	return func(ctx context.Context) registry.Compared {
		in := &call{Call: observe.Call{ID: id, Hook: r.Hook, Received: int64(len(body))}}
		var err error
		if in.memory, err = d.config.Memory.Reserve(ctx, budget.Caller(comparisons), callBytes); err != nil {
			return registry.Compared{Dropped: true}
		}
		defer in.memory.Release()
		ctx = bounds.With(ctx, in)
		in.work = in.memory.Work(ctx)
		defer in.work.End()
		compared, err := d.compareKept(ctx, kept, body, t, stable, unasked)
		if kind := hook.KindOf(err); err != nil && (kind == hook.Overloaded || kind == hook.Canceled) {
			compared.Dropped = true // it is no fault of the candidate
			return compared
		}
		compared.Err = err
		return compared
	}
}

// compareKept asks the candidate what was kept, and compares its answer with the stable one, unless there is a reason
// not to ask.
func (d *Dispatcher) compareKept(
	ctx context.Context, r Request, body []byte, t selection.Target, stable proto.Message, unasked string,
) (compared registry.Compared, err error) {
	guard := bounds.Guard(ctx)
	if r.Message == nil {
		r.Message = r.Hook.Request.New().Interface()
		decoding := codec.Guard{Step: guard.Step, Reserve: guard.Reserve}
		if _, err := d.config.Codec.DecodeGuarded(body, r.Message, decoding); err != nil {
			return compared, err
		}
	}
	var asks bool
	if compared.Question, compared.Content, asks = rollout.Identify(r.Hook, r.Message); !asks {
		return compared, nil
	}
	compared.Reconcile = rollout.ReconcileOf(r.Message)
	if unasked != "" {
		compared.Unproven, compared.Unasked = unasked, true
		return compared, nil
	}
	err = d.compareWith(ctx, r, t, stable, &compared)
	return compared, err
}

// compareWith asks the candidate, and compares its answer with the stable one. An error is one of asking.
func (d *Dispatcher) compareWith(
	ctx context.Context, r Request, t selection.Target, stable proto.Message, compared *registry.Compared,
) error {
	not := func(why string) error {
		compared.Differences = []registry.Difference{{Candidate: why}}
		return nil
	}
	candidate := t.Member.CandidateEntry
	switch {
	case candidate == nil && !t.Member.HasCandidate:
		compared.Dropped = true
		return nil
	case candidate == nil:
		return not(fmt.Sprintf("%s has no handler of this name", t.Member.Candidate))
	}
	m := d.newMatcher()
	defer m.Release(ctx)
	if err := m.Read(r.selected()); err != nil {
		return err
	}
	switch v := m.Judge(ctx, candidate); {
	case v.PolicyError != nil:
		return v.PolicyError
	case v.Excluded():
		return not(m.Exclusion(v, candidate.Registration.Describe(), candidate.Registration.NamespaceSelector).Message)
	}
	t.Entry, t.Member, t.PolicyError = candidate, nil, nil
	result, err := d.callHandler(ctx, r, t)
	if err = cmp.Or(err, result.Ignored); err != nil {
		return err
	}
	comparer := answerdiff.Comparer{Codec: d.config.Codec, Guard: bounds.Guard(ctx), Release: callFrom(ctx).memory.Shrink}
	differences, err := comparer.Compare(r.Message, stable, result.Response)
	switch _, failed := catalog.FailureOf(result.Response); {
	case err != nil && hook.KindOf(err) == hook.Overloaded:
		return err
	case err != nil:
		compared.Unproven = "the answers cannot be compared: " + err.Error()
	case len(differences) == 0 && failed:
		compared.Unproven = "Failure: " + cmp.Or(catalog.MessageOf(result.Response), "it does not say why")
	}
	compared.Omitted = max(0, len(differences)-limits.RolloutDifferences)
	for _, f := range differences[:len(differences)-compared.Omitted] {
		compared.Differences = append(compared.Differences, registry.Difference{
			Object: f.Object, Path: f.Path, Stable: f.Before, Candidate: f.After,
			Machines: rollout.Machines(r.Message, f.UID, f.Path),
		})
	}
	return nil
}
