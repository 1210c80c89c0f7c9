// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/seeing/answerdiff"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// member is the handler of a Rollout's member that a request is for.
type member struct {
	*registry.Variants
	isCandidate        bool
	namespace, cluster string
	labels             labels.Set
}

// member returns the handler that answers in place of one of a Rollout, which is nil if the member that answers has
// none of the name; and e itself, with nothing else, for every other handler.
func (m *matcher) member(ctx context.Context, e *registry.Entry) (*registry.Entry, *member, error) {
	v := e.Variants
	if v == nil {
		return e, nil, nil
	}
	of := &member{Variants: v}
	var err error
	if of.isCandidate, err = m.isCandidate(ctx, v.Rollout); err != nil {
		return nil, nil, err
	}
	of.namespace, of.cluster = m.cluster()
	if !subject.OfMachine(m.message) { // whose labels are those of Machines
		of.labels, _ = m.objectLabels()
	}
	if of.isCandidate {
		return v.CandidateEntry, of, nil
	}
	return v.StableEntry, of, nil
}

// isCandidate reports whether the candidate of a Rollout answers the request. It asks once, so that one member answers
// for all handlers of a request.
func (m *matcher) isCandidate(ctx context.Context, of *registry.Rollout) (isCandidate bool, err error) {
	if isCandidate, ok := m.candidates[of]; ok {
		return isCandidate, nil
	}
	namespace, cluster := m.cluster()
	switch {
	case len(namespace)+len(cluster) > limits.NameBytes: // no Cluster has such a name
	case m.looks:
		isCandidate, err = of.Assignment.Look(ctx, namespace, cluster)
	default:
		isCandidate, err = of.Assignment.Candidate(ctx, namespace, cluster)
	}
	if err != nil {
		return false, err
	}
	if m.candidates == nil {
		m.candidates = map[*registry.Rollout]bool{}
	}
	m.candidates[of] = isCandidate
	return isCandidate, nil
}

// cluster returns the Cluster that the request is about, or nothing.
func (m *matcher) cluster() (namespace, name string) {
	if m.clusterName == nil {
		namespace, name = subject.Cluster(m.message)
		m.clusterName = &[2]string{namespace, name}
	}
	return m.clusterName[0], m.clusterName[1]
}

// answering returns the name of the ExtensionConfig that answers.
func (of *member) answering() string {
	if of.isCandidate {
		return of.Candidate
	}
	return of.Stable
}

// seen returns the name under which callers see what is called.
func (t target) seen() string {
	if t.member == nil {
		return t.name()
	}
	return t.entry.Handler.Name + "." + t.member.Name
}

// noMember returns the error of a request that names a handler which the member that answers does not have, as far as
// is known.
func noMember(s *registry.Snapshot, e *registry.Entry, of *member) error {
	if _, ok := s.Registration(of.answering()); !ok {
		return notDiscovered([]string{fmt.Sprintf("ExtensionConfig %q of %s", of.answering(), of.Rollout)})
	}
	about := "calls about no Cluster"
	if of.cluster != "" {
		about = fmt.Sprintf("Cluster %q", text.Cut(of.namespace+"/"+of.cluster, limits.QuotedBytes))
	}
	return hook.Errorf(hook.UnknownHandler, "no handler %q for %s: ExtensionConfig %q, which answers for it as a member "+
		"of %s, does not have it", e.Name, about, of.answering(), of.Rollout)
}

// notCalled reports whether an ExtensionConfig is of a Rollout in which another one answers the request.
func (m *matcher) notCalled(ctx context.Context, s *registry.Snapshot, extensionConfig string) (bool, error) {
	of, ok := s.MemberOf(extensionConfig)
	if !ok {
		return false, nil
	}
	isCandidate, err := m.isCandidate(ctx, of)
	if isCandidate {
		return extensionConfig != of.Candidate, err
	}
	return extensionConfig != of.Stable, err
}

// unregistered returns the ExtensionConfigs that answer the request as members of Rollouts, and of which nothing is
// known.
func (m *matcher) unregistered(ctx context.Context, s *registry.Snapshot) (all []string, err error) {
	for _, of := range s.Rollouts() {
		isCandidate, err := m.isCandidate(ctx, of)
		if err != nil {
			return nil, err
		}
		name := of.Stable
		if isCandidate {
			name = of.Candidate
		}
		if first, _ := s.MemberOf(name); first != of || !s.Knows(name) {
			all = append(all, fmt.Sprintf("ExtensionConfig %q of %s", name, of))
		}
	}
	return all, nil
}

// answered leaves an answer of the stable member to be compared with that of the candidate, and counts the calls of a
// candidate.
func (d *Dispatcher) answered(ctx context.Context, r Request, t target, answer proto.Message, err error) {
	of := t.member
	switch {
	case of == nil || r.trial != nil:
	case of.isCandidate:
		switch kind := hook.KindOf(err); {
		case err == nil:
			of.Assignment.Answered(false)
		case kind == hook.Unreachable, kind == hook.Timeout, kind == hook.BadResponse, kind == hook.Conversion:
			of.Assignment.Answered(true)
		}
	case err == nil && r.Hook.ReadOnly():
		of.Assignment.Compare(registry.Comparison{
			Namespace: of.namespace, Cluster: of.cluster, Labels: of.labels, Handler: t.entry.Handler.Name,
			Bytes: kept(r, answer), Keep: keepMemory(ctx),
			Ask: func() func(context.Context) registry.Compared { return d.ask(ctx, r, t, answer) },
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
// compares.
func (d *Dispatcher) ask(
	ctx context.Context, r Request, t target, answer proto.Message,
) func(ctx context.Context) registry.Compared {
	body, stable, id := bytes.Clone(r.Body), proto.Clone(answer), callID(ctx)
	kept := Request{Hook: r.Hook, via: r.via, calledAs: t.seen()}
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
		ctx = withCall(ctx, in)
		in.work = in.memory.Work(ctx)
		defer in.work.End()
		compared, err := d.compareKept(ctx, kept, body, t, stable)
		if kind := hook.KindOf(err); err != nil && (kind == hook.Overloaded || kind == hook.Canceled) {
			compared.Dropped = true // it is no fault of the candidate
			return compared
		}
		compared.Err = err
		return compared
	}
}

// compareKept asks the candidate what was kept, and compares its answer with the stable one.
func (d *Dispatcher) compareKept(
	ctx context.Context, r Request, body []byte, t target, stable proto.Message,
) (compared registry.Compared, err error) {
	guard := guardOf(ctx)
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
	err = d.compareWith(ctx, r, t, stable, &compared)
	return compared, err
}

// compareWith asks the candidate, and compares its answer with the stable one. An error is one of asking.
func (d *Dispatcher) compareWith(
	ctx context.Context, r Request, t target, stable proto.Message, compared *registry.Compared,
) error {
	not := func(why string) error {
		compared.Differences = []registry.Difference{{Candidate: why}}
		return nil
	}
	candidate := t.member.CandidateEntry
	switch {
	case candidate == nil && !t.member.HasCandidate:
		compared.Dropped = true
		return nil
	case candidate == nil:
		return not(fmt.Sprintf("%s has no handler of this name", t.member.Candidate))
	}
	m := d.newMatcher()
	defer m.release(ctx)
	if err := m.read(r); err != nil {
		return err
	}
	switch v := m.judge(ctx, candidate); {
	case v.policyError != nil:
		return v.policyError
	case v.excluded():
		return not(m.exclusion(v, candidate.Registration.Describe(), candidate.Registration.NamespaceSelector).Message)
	}
	t.entry, t.member, t.policyError = candidate, nil, nil
	result, err := d.callHandler(ctx, r, t)
	if err = cmp.Or(err, result.Ignored); err != nil {
		return err
	}
	comparer := answerdiff.Comparer{Codec: d.config.Codec, Guard: guardOf(ctx), Release: callFrom(ctx).memory.Shrink}
	differences, err := comparer.Compare(r.Message, stable, result.Response)
	switch failure, failed := catalog.FailureOf(result.Response); {
	case err != nil && hook.KindOf(err) == hook.Overloaded:
		return err
	case err != nil:
		compared.Unproven = "the answers cannot be compared: " + err.Error()
	case len(differences) == 0 && failed:
		compared.Unproven = "Failure: " + failure
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
