// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Cluster is a Cluster that a call was about.
type Cluster struct {
	Namespace, Name string
	Last            time.Time // when that was last
}

// Clusters keeps the Clusters that calls were about last. It is safe for concurrent use.
type Clusters struct {
	pace *rate.Limiter

	mu     sync.Mutex
	recent *list.List // of Cluster, the one with the last call first
	byName map[clusterName]*list.Element
}

type clusterName struct{ namespace, name string }

// NewClusters returns Clusters without any.
func NewClusters() *Clusters {
	return &Clusters{
		pace:   rate.NewLimiter(limits.SeenClustersPerSecond, limits.SeenClustersPerSecond),
		recent: list.New(), byName: map[clusterName]*list.Element{},
	}
}

// Due reports whether there is time to find out which Cluster a call is about, for Record. It bounds the part of a
// processor that this takes.
func (c *Clusters) Due(now time.Time) bool { return c.pace.AllowN(now, 1) }

// Record keeps that a call was about a Cluster. If there are too many, the one whose last call was longest ago is
// forgotten. A name that no object of Kubernetes can have is that of no Cluster.
func (c *Clusters) Record(namespace, name string, at time.Time) {
	if name == "" || len(namespace) > validation.DNS1123LabelMaxLength ||
		len(name) > validation.DNS1123SubdomainMaxLength {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := clusterName{namespace, name}
	if e := c.byName[key]; e != nil {
		e.Value = Cluster{namespace, name, at}
		c.recent.MoveToFront(e)
		return
	}
	if c.recent.Len() >= limits.SeenClusters {
		oldest, _ := c.recent.Remove(c.recent.Back()).(Cluster)
		delete(c.byName, clusterName{oldest.Namespace, oldest.Name})
	}
	c.byName[key] = c.recent.PushFront(Cluster{namespace, name, at})
}

// Of returns when the last call about a Cluster was, and the zero time if that is not known.
func (c *Clusters) Of(namespace, name string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byName[clusterName{namespace, name}]; e != nil {
		found, _ := e.Value.(Cluster)
		return found.Last
	}
	return time.Time{}
}

// List returns the Clusters, the one with the last call first, and at most so many.
func (c *Clusters) List(most int) []Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Cluster, 0, min(most, c.recent.Len()))
	for e := c.recent.Front(); e != nil && len(all) < most; e = e.Next() {
		of, _ := e.Value.(Cluster)
		all = append(all, of)
	}
	return all
}
