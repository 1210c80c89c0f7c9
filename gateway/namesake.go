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

	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

// namesakes refuses calls about a Cluster of a second management cluster that has the namespace and name of another.
// Holds, places, records, cached answers, circuits and rollouts are kept by namespace and name, and would be those of
// both. It is safe for concurrent use.
type namesakes struct {
	mu    sync.Mutex
	known *lru.Cache // *namesake by namespace/name
}

// namesake is the Cluster that calls about a namespace and name are for.
type namesake struct {
	uid     string
	heard   time.Time // of the last call
	callers []string  // that have called about it, or about the one that it replaced
	former  []string  // UIDs of those that it replaced
	rivals  []string  // UIDs that came between two calls about it: of another management cluster
	refused []string  // callers of others
}

func newNamesakes() *namesakes { return &namesakes{known: lru.New(limits.Namesakes)} }

// checkNamesake is namesakes.check for calls of fronts. The controllers of this process call about Clusters of one
// management cluster, and comparisons with their calls.
func (d *Dispatcher) checkNamesake(ctx context.Context, request proto.Message) error {
	in := callFrom(ctx)
	if in == nil || in.Protocol == inProcess {
		return nil
	}
	return d.namesakes.check(in.admission.Caller.Name, request, time.Now())
}

// check returns an error if a request is about another Cluster than the one that has its namespace and name. A new UID
// is of a Cluster that was made again if its caller has called about the one before; UIDs are never used twice, so that
// one which returns shows that both exist. Requests without a UID are judged by their caller.
func (n *namesakes) check(caller string, request proto.Message, now time.Time) error {
	if _, gone := request.(*machinesv1alpha1.AfterClusterDeleteRequest); gone {
		return nil // it may have been made again
	}
	namespace, name, uid := subject.ClusterUID(request)
	if name == "" || len(namespace)+len(name) > limits.NameBytes || len(uid) > limits.UIDBytes {
		return nil
	}
	key := namespace + "/" + name
	n.mu.Lock()
	defer n.mu.Unlock()
	value, ok := n.known.Get(key)
	c, _ := value.(*namesake)
	switch {
	case !ok, uid != "" && uid != c.uid && now.Sub(c.heard) > limits.NamesakeTime:
		if uid != "" {
			n.known.Add(key, &namesake{uid: uid, heard: now, callers: []string{caller}})
		}
		return nil
	case !c.admits(caller, uid, now):
		return hook.Errorf(hook.Ambiguous, "Cluster %s: another management cluster has a Cluster of this namespace and "+
			"name: use one gateway for each management cluster", key).
			WithCause(fmt.Errorf("called about UID %q by %q, while callers %q have UID %q", uid, caller, c.callers, c.uid))
	}
	return nil
}

// admits reports whether a call is about the Cluster, or about one that takes its place.
func (c *namesake) admits(caller, uid string, now time.Time) bool {
	isKnown := slices.Contains(c.callers, caller)
	switch {
	case uid == "":
		return now.Sub(c.heard) > limits.NamesakeTime || !slices.Contains(c.refused, caller)
	case uid == c.uid:
		if !isKnown {
			c.callers = remember(c.callers, caller)
		}
	case !isKnown:
		if !slices.Contains(c.refused, caller) {
			c.refused = remember(c.refused, caller)
		}
		return false
	case slices.Contains(c.rivals, uid):
		return false
	case slices.Contains(c.former, uid):
		c.rivals, c.uid = remember(c.rivals, c.uid), uid
	default:
		c.former, c.uid = remember(c.former, c.uid), uid
	}
	c.heard = now
	return true
}

// remember adds s to a list, which forgets the oldest.
func remember(list []string, s string) []string {
	if len(list) == limits.NamesakeMemory {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, s)
}
