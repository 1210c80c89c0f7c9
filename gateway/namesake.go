// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/utils/lru"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

// namesakes refuses calls about a Cluster of a second management cluster that has the namespace and name of another.
// Holds, places, records, circuits and rollouts are kept by namespace and name, and would be those of both. It is safe
// for concurrent use.
//
// Clusters of one management cluster with equal names follow one another: each is created when no calls are about the
// one before any more, and no UID returns.
type namesakes struct {
	mu    sync.Mutex
	known *lru.Cache // *namesake by namespace/name
}

// namesake is the Cluster that calls about a namespace and name are for.
type namesake struct {
	uid     string
	heard   time.Time // of the last call about it
	former  []string  // UIDs of those that it replaced
	callers []string  // names of those that have called about it, or about one that it replaced
	refused []string  // names of those whose calls about another were refused
}

func newNamesakes() *namesakes { return &namesakes{known: lru.New(limits.Namesakes)} }

// checkCluster returns an error if a call is about a Cluster of another management cluster, and otherwise keeps that
// there was one about it.
func (d *Dispatcher) checkCluster(ctx context.Context, request proto.Message) error {
	of, now := subject.IdentityOf(request), time.Now()
	if in := callFrom(ctx); in != nil && d.namesakes != nil { // or else the request is one of a test, or of a render
		if err := d.namesakes.check(in.admission.Caller.Name, of, now); err != nil {
			return err
		}
	}
	d.config.Observer.Asked(of.Namespace, of.Name, now)
	return nil
}

// lookAtCluster returns the error that checkCluster would, and keeps nothing.
func (d *Dispatcher) lookAtCluster(ctx context.Context, request proto.Message) error {
	in := callFrom(ctx)
	if in == nil {
		return nil
	}
	return d.namesakes.look(in.admission.Caller.Name, subject.IdentityOf(request), time.Now())
}

// check returns an error if a call is about another Cluster than the one that has its namespace and name.
func (n *namesakes) check(caller string, of subject.Identity, now time.Time) error {
	return n.judge(caller, of, now, true)
}

// look is check of a call that is not made, and not remembered.
func (n *namesakes) look(caller string, of subject.Identity, now time.Time) error {
	return n.judge(caller, of, now, false)
}

func (n *namesakes) judge(caller string, of subject.Identity, now time.Time, keep bool) error {
	if of.Name == "" || len(of.Namespace)+len(of.Name) > limits.NameBytes { // nothing is kept for such a name
		return nil
	}
	of.UID = of.UID[:min(len(of.UID), limits.UIDBytes)]
	key := of.Namespace + "/" + of.Name
	n.mu.Lock()
	defer n.mu.Unlock()
	value, _ := n.known.Get(key)
	c, isKnown := value.(*namesake)
	if isKnown && of.UID != c.uid {
		if why := c.refuses(caller, of, now); why != "" {
			if keep {
				c.refused = remember(c.refused, caller)
			}
			return hook.Errorf(hook.Ambiguous, "Cluster %q: another management cluster has a Cluster of this namespace and "+
				"name: use one gateway for each management cluster", key).
				WithCause(fmt.Errorf("%s: this call is about UID %q, from %q; earlier calls were about UID %q, from %q", why,
					of.UID, caller, c.uid, c.callers))
		}
	}
	if !keep || of.UID == "" || of.Gone {
		return nil
	}
	if !isKnown {
		c = &namesake{uid: of.UID}
		n.known.Add(key, c)
	}
	c.called(caller, of.UID, now)
	return nil
}

// refuses says why a call about another UID, or about one that is not said, is not about the Cluster, or about one that
// takes its place. Empty means that it may be.
func (c *namesake) refuses(caller string, of subject.Identity, now time.Time) (why string) {
	quiet := now.Sub(c.heard)
	isOther := caller != "" && len(c.callers) > 0 && !slices.Contains(c.callers, caller)
	switch {
	case quiet > limits.NamesakeTime:
	case of.UID == "", of.Gone: // the one that is gone may have been replaced
		if isOther && slices.Contains(c.refused, caller) {
			return "the caller's calls about this name were refused"
		}
	case slices.Contains(c.former, of.UID):
		return "the UID was replaced"
	case isOther:
		return "the caller is a different one"
	case of.Created == "":
		if quiet < limits.NamesakeSkew {
			return "calls about both UIDs arrive at the same time"
		}
	default:
		created, err := time.Parse(time.RFC3339, of.Created)
		if err != nil || created.Before(c.heard.Add(-limits.NamesakeSkew)) {
			return "the Cluster was created before the last call about the other one"
		}
	}
	return ""
}

// called notes a call about the Cluster, or about one that takes its place.
func (c *namesake) called(caller, uid string, now time.Time) {
	if uid != c.uid {
		c.former = slices.DeleteFunc(c.former, func(s string) bool { return s == uid })
		c.former, c.uid = remember(c.former, c.uid), uid
		if now.Sub(c.heard) > limits.NamesakeTime {
			c.callers, c.refused = nil, nil
		}
	}
	c.callers, c.heard = remember(c.callers, caller), now
}

// remember adds s, unless it is empty, to a list of what is remembered, which forgets the oldest.
func remember(list []string, s string) []string {
	switch {
	case s == "" || slices.Contains(list, s):
		return list
	case len(list) == limits.NamesakeMemory:
		list = slices.Delete(list, 0, 1)
	}
	return append(list, s)
}
