// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// Rollout is an ExtensionRollout: one of two ExtensionConfigs, its members, answers under one name, Cluster by Cluster.
// Callers see the handlers of the Rollout in place of those of the members. In a Snapshot it is immutable.
type Rollout struct {
	// Name is the name of the ExtensionRollout, a DNS-1123 label. An ExtensionConfig of this name is not called, unless it
	// is a member.
	Name string
	// Stable and Candidate are the names of the members. Candidate may be empty.
	Stable, Candidate string
	// Assignment decides which member answers. It is comparable.
	Assignment Assignment
}

// Assignment decides which member of a Rollout answers, Cluster by Cluster. It is safe for concurrent use, and calls
// wait for its methods, except for what Comparison.Ask returns.
type Assignment interface {
	// Candidate reports whether the candidate answers the calls about a Cluster. It returns a *hook.Error if that is not
	// known.
	Candidate(ctx context.Context, namespace, cluster string) (bool, error)
	// Look is Candidate for calls that are only explained: it moves no Cluster that is new.
	Look(ctx context.Context, namespace, cluster string) (bool, error)
	// Compare takes a call that the stable member has answered, to compare the answer with that of the candidate.
	Compare(c Comparison)
	// Failed notes that a call about a Cluster has failed, to whichever handler, of a hook whose answers are compared.
	Failed(namespace, cluster string)
	// Answered notes whether a call of the candidate has failed, other than a comparison.
	Answered(failed bool)
}

// Comparison is a call whose answer may be compared.
type Comparison struct {
	// Namespace and Cluster are empty for a call about no Cluster.
	Namespace, Cluster string
	// Labels are those of the Cluster, nil if the call does not say.
	Labels labels.Set
	// Handler is the name of the handler, without that of a member.
	Handler string
	// Bytes is what Ask keeps. Keep reserves that until release is called, and reports whether there is some to spare. Nil
	// bounds nothing.
	Bytes int64
	Keep  func(bytes int64) (release func(), ok bool)
	// Ask keeps what it needs of the call, and returns the function that asks the candidate, to be called later, as often
	// as is wanted. It must be called before Compare returns, or never. unasked, unless it is empty, says why the
	// candidate is not to be asked: the function then only finds out what the question was.
	Ask func(unasked string) func(ctx context.Context) Compared
}

// Compared is what came of a comparison.
type Compared struct {
	// Question identifies what was asked, among the questions to one handler, and Content the request. Without a question,
	// the request asked nothing, or it could not be read.
	Question, Content string
	// Reconcile identifies the reconcile that the request is of, if the request tells.
	Reconcile string
	// Dropped means that there was no room to compare, or no candidate yet, which is no fault of the candidate.
	Dropped bool
	// Err says why the candidate did not answer.
	Err error
	// Unproven says why the answers prove nothing, although they do not differ, such as two Failures. Unasked means that
	// the candidate was not to be asked.
	Unproven string
	Unasked  bool
	// Differences are the first values that differ; Omitted is the number of the others. None means that both answers mean
	// the same.
	Differences []Difference
	Omitted     int
}

// Difference is a value that differs.
type Difference struct {
	// Object is the object of the request that patches change, as in KubeadmControlPlane ns/name spec; empty for a value
	// of the answer itself.
	Object string
	// Path is the JSON pointer of the value.
	Path string
	// Stable and Candidate are the values as JSON, cut if they are long; empty where there is none.
	Stable, Candidate string
	// Machines says what the difference may do to Machines; empty for nothing.
	Machines string
}

// Variants are the handlers of a Rollout's members that an Entry stands for.
type Variants struct {
	*Rollout
	// StableEntry and CandidateEntry are nil if the member has no such handler.
	StableEntry, CandidateEntry *Entry
	// HasCandidate is whether it is known which handlers the candidate has.
	HasCandidate bool
}

// SetRollouts replaces all Rollouts. Of several with a common member, the first by name gets its handlers, and the
// others have none.
func (r *Registry) SetRollouts(rollouts []Rollout) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.current.Load().draft()
	d.rollouts = make([]*Rollout, len(rollouts))
	for i := range rollouts {
		d.rollouts[i] = &rollouts[i]
		if same, ok := d.base.Rollout(rollouts[i].Name); ok && *same == rollouts[i] {
			d.rollouts[i] = same
		}
	}
	slices.SortFunc(d.rollouts, func(a, b *Rollout) int { return cmp.Compare(a.Name, b.Name) })
	if slices.Equal(d.rollouts, d.base.rollouts) {
		return
	}
	for _, list := range [][]*Rollout{d.base.rollouts, d.rollouts} {
		for _, of := range list {
			for _, name := range of.names() {
				d.touched[name] = struct{}{}
			}
		}
	}
	r.store(d)
}

// placeMembers finds the Rollout that stands for each name. One whose own name a local registration has stands for
// none, and none stands for such a registration.
func (d *draft) placeMembers() {
	if len(d.rollouts) == 0 && len(d.memberOf) == 0 {
		return
	}
	memberOf := map[string]*Rollout{}
	for _, of := range d.rollouts {
		if len(d.localsNamed(of.Name)) > 0 {
			continue
		}
		for _, name := range of.names() {
			if memberOf[name] == nil && len(d.localsNamed(name)) == 0 {
				memberOf[name] = of
			}
		}
	}
	if maps.Equal(memberOf, d.memberOf) {
		return
	}
	for _, of := range []map[string]*Rollout{memberOf, d.memberOf} {
		for name := range of {
			if memberOf[name] != d.memberOf[name] {
				d.touched[name] = struct{}{}
			}
		}
	}
	d.memberOf = memberOf
}

// names returns the names whose ExtensionConfigs are called only through the Rollout.
func (o *Rollout) names() []string { return []string{o.Name, o.Stable, o.Candidate} }

// RolloutKind is the kind of the objects that Rollouts are of.
const RolloutKind = "ExtensionRollout"

// String names the Rollout in messages.
func (o *Rollout) String() string { return fmt.Sprintf("%s %q", RolloutKind, o.Name) }

// taken says what the name of an ExtensionConfig that the Rollout stands for means.
func (o *Rollout) taken(name string) string {
	if name == o.Name {
		return "the name of " + o.String()
	}
	return fmt.Sprintf("the name of a member of %s", o)
}

// Rollouts returns every Rollout, ordered by name. Callers must not change the slice.
func (s *Snapshot) Rollouts() []*Rollout { return s.rollouts }

// Rollout returns the Rollout with a name.
func (s *Snapshot) Rollout(name string) (*Rollout, bool) {
	i, ok := slices.BinarySearchFunc(s.rollouts, name, func(o *Rollout, name string) int {
		return cmp.Compare(o.Name, name)
	})
	if !ok {
		return nil, false
	}
	return s.rollouts[i], true
}

// MemberOf returns the Rollout that stands for an ExtensionConfig.
func (s *Snapshot) MemberOf(extensionConfig string) (*Rollout, bool) {
	of, ok := s.memberOf[extensionConfig]
	return of, ok
}

// Registered returns the handler with a registered name, also one of a Rollout's member, which callers cannot name.
func (s *Snapshot) Registered(name string) (*Entry, bool) {
	if handler, extensionConfig, ok := strings.Cut(name, "."); ok && s.byConfig[extensionConfig] != nil {
		return s.byConfig[extensionConfig].handler(handler)
	}
	return s.Handler(name)
}

// offering returns the handlers that callers see under the name of an ExtensionConfig or a Rollout, or nil.
func (s *Snapshot) offering(name string) *config {
	switch of := s.memberOf[name]; {
	case of == nil:
		return s.byConfig[name]
	case of.Name == name:
		return s.offers[name]
	}
	return nil
}

// Offers returns the handlers that callers see of a Rollout, ordered by their own names.
func (s *Snapshot) Offers(rollout string) []*Entry {
	if c := s.offers[rollout]; c != nil {
		return c.entries
	}
	return nil
}

// placeRollouts makes the handlers of the Rollouts anew whose members have changed.
func (d *draft) placeRollouts() {
	changed := map[string]bool{}
	for name := range d.touched {
		for _, of := range []*Rollout{d.memberOf[name], d.base.memberOf[name]} {
			if of != nil {
				changed[of.Name] = true
			}
		}
	}
	if len(changed) == 0 {
		return
	}
	d.offers = maps.Clone(d.offers)
	for name := range changed {
		d.touched[name] = struct{}{}
		if before := d.offers[name]; before != nil {
			for _, e := range before.entries {
				var own *Entry // of an ExtensionConfig with the name of the Rollout
				if c := d.byConfig[name]; c != nil {
					own, _ = c.handler(e.Handler.Name)
				}
				d.relabel(e, own)
			}
		}
		if delete(d.offers, name); d.memberOf[name] == nil {
			continue
		}
		if of, ok := d.Rollout(name); ok {
			d.offers[name] = d.newOffer(of)
			for _, e := range d.offers[name].entries {
				d.relabel(e, e)
			}
		}
	}
}

// newOffer returns the handlers of a Rollout: those of both members.
func (d *draft) newOffer(of *Rollout) *config {
	c := &config{registration: &Registration{Name: of.Name, InProcess: rolloutLocal{of}}}
	all := map[string]*Variants{}
	has := func(member string) bool { return d.byConfig[member] != nil && d.memberOf[member] == of }
	for _, member := range []string{of.Stable, of.Candidate} {
		if !has(member) {
			continue
		}
		for _, e := range d.byConfig[member].entries {
			v := all[e.Handler.Name]
			switch {
			case v == nil && member == of.Stable:
				all[e.Handler.Name] = &Variants{Rollout: of, StableEntry: e, HasCandidate: has(of.Candidate)}
			case v == nil:
				all[e.Handler.Name] = &Variants{Rollout: of, CandidateEntry: e, HasCandidate: true}
			case v.StableEntry.Handler.Hook.GroupHook() == e.Handler.Hook.GroupHook():
				v.CandidateEntry = e
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c.entries = append(c.entries, all[name].entry(name, c.registration))
	}
	return c
}

// entry returns the Entry that stands for v. What callers are told of it suits both members.
func (v *Variants) entry(handler string, of *Registration) *Entry {
	e := *cmp.Or(v.StableEntry, v.CandidateEntry)
	e.Name = handler + "." + of.Name
	e.Label, e.Registration, e.Variants = Label(e.Name), of, v
	if v.StableEntry != nil && v.CandidateEntry != nil {
		other := v.CandidateEntry.Handler
		e.Handler.Timeout = max(e.Handler.Timeout, other.Timeout)
		if other.FailurePolicy == hook.Ignore {
			e.Handler.FailurePolicy = hook.Ignore
		}
	}
	return &e
}

// rolloutLocal is the Answerer of the registration that a Rollout is seen as. It is never asked: its members are.
type rolloutLocal struct{ *Rollout }

// Kind returns the kind of the object.
func (rolloutLocal) Kind() string { return RolloutKind }

// Answer returns an error.
func (l rolloutLocal) Answer(context.Context, proto.Message, policy.Guard) (proto.Message, error) {
	return nil, hook.Errorf(hook.NotReady, "%s was called in place of its members", l.Rollout)
}
