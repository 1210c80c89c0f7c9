// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/registry"
)

// Store stores records.
type Store interface {
	// Put creates or replaces the record with the same name. It returns once the record would survive a crash. A record
	// whose ResourceVersion is not that of the stored one is not stored, and the error is ErrChanged.
	Put(ctx context.Context, record *v1alpha1.ExtensionRolloutRecord) error
}

// ErrChanged is the error of Store.Put if another process has stored or deleted the record meanwhile.
var ErrChanged = errors.New("the record has changed meanwhile")

// Clusters has the Clusters that are there now.
type Clusters interface {
	// ClusterMetadata returns labels and annotations of a Cluster, and reports whether they are known. It does not block.
	ClusterMetadata(namespace, name string) (labels, annotations map[string]string, known bool)
}

// The results of comparisons, for metrics.
const (
	ResultEqual     = "equal"
	ResultDifferent = "different"
	ResultFailed    = "failed"  // the candidate did not answer
	ResultDropped   = "dropped" // there was no room
)

// Results are all results of comparisons.
func Results() []string { return []string{ResultEqual, ResultDifferent, ResultFailed, ResultDropped} }

// Config describes an Engine. Logger is required.
type Config struct {
	// Store is nil in a process that only reads: it compares nothing, and moves no Cluster.
	Store  Store
	Logger *slog.Logger
	// Shared is whether other processes store records, too.
	Shared bool
	// Clusters may be nil: only what calls say of their Clusters is known then.
	Clusters Clusters
	// IsNew reports whether a Cluster has no objects of its topology yet. Nil means that this cannot be known.
	IsNew func(ctx context.Context, namespace, name string) (bool, error)
	// Compared, which may be nil, counts comparisons by their results.
	Compared func(rollout, result string)
	// Changed, which may be nil, is called when the record of a rollout has changed. It does not block.
	Changed func(record *v1alpha1.ExtensionRolloutRecord)
}

// Engine has the records of all ExtensionRollouts, and compares, decides and stores.
type Engine struct {
	config Config
	settle time.Duration

	read     atomic.Bool
	queue    chan *comparison
	queued   atomic.Int64        // bytes
	evidence atomic.Int64        // bytes
	writes   *notify.Set[string] // keys of records that may have to be stored

	mu     sync.Mutex
	states map[string]*state // by rollout
}

// New returns an Engine. It answers for no Cluster before SetRead, and decides nothing without Run.
func New(c Config) *Engine {
	return &Engine{
		config: c, settle: limits.RolloutSettle, states: map[string]*state{},
		queue: make(chan *comparison, limits.RolloutQueueCalls), writes: notify.NewSet[string](),
	}
}

// storePatience is how long a call waits for a record to be stored.
const storePatience = 3 * time.Second

// SetRead notes that Set has been called with all records that were stored before.
func (e *Engine) SetRead() { e.read.Store(true) }

func (e *Engine) readable() bool { return e.read.Load() }

// stateOf returns the state of a rollout, which lasts as long as the Engine.
func (e *Engine) stateOf(rollout string) *state {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.states[rollout]
	if s == nil {
		s = &state{engine: e, name: rollout, clusters: map[types.NamespacedName]*cluster{}}
		e.states[rollout] = s
	}
	return s
}

// all returns the states of all rollouts.
func (e *Engine) all() []*state {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*state, 0, len(e.states))
	for _, s := range e.states {
		all = append(all, s)
	}
	return all
}

// Use makes rollouts the ones in effect, and decides anew about their Clusters.
func (e *Engine) Use(rollouts []registry.Rollout) {
	now := make(map[string]*Rollout, len(rollouts))
	for i := range rollouts {
		if r, ok := rollouts[i].Assignment.(*Rollout); ok {
			now[r.name] = r
		}
	}
	for _, s := range e.all() {
		s.use(now[s.name])
	}
}

// Set takes a record that is stored, as the store has it now.
func (e *Engine) Set(record *v1alpha1.ExtensionRolloutRecord) {
	e.stateOf(record.Spec.Rollout).set(record, false)
}

// Remove takes note that a record is not stored any more.
func (e *Engine) Remove(record *v1alpha1.ExtensionRolloutRecord) {
	e.stateOf(record.Spec.Rollout).remove(record)
}

// put stores a record, and then takes it.
func (e *Engine) put(ctx context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	if e.config.Store == nil {
		return errors.New("this process stores no records")
	}
	if err := e.config.Store.Put(ctx, record); err != nil {
		return err
	}
	e.stateOf(record.Spec.Rollout).set(record, true)
	if e.config.Changed != nil {
		e.config.Changed(record)
	}
	return nil
}

// Run compares and stores until ctx is done.
func (e *Engine) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for range limits.RolloutComparisons {
		running.Go(func() { e.compareAll(ctx) })
	}
	running.Go(func() { e.storeAll(ctx) })
	ticker := time.NewTicker(limits.RolloutPause / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			for _, s := range e.all() {
				s.settle(now)
			}
		}
	}
}

// comparison is a call that waits to be compared.
type comparison struct {
	rollout  *Rollout
	cluster  types.NamespacedName
	handler  string
	called   time.Time
	mayMove  bool // the Cluster may move if the answers are equal
	bytes    int64
	evidence *evidence
	release  func()
	ask      func(ctx context.Context) registry.Compared
}

// add makes a call wait to be compared, unless there is no room for it.
func (e *Engine) add(r *Rollout, of types.NamespacedName, c registry.Comparison, mayMove bool) {
	v, room := r.state.begin(r, of, c.Labels)
	if v == nil {
		return
	}
	if room {
		added := &comparison{
			rollout: r, cluster: of, handler: c.Handler, called: time.Now(), mayMove: mayMove, bytes: c.Bytes, evidence: v,
		}
		if e.enqueue(added, c) {
			return
		}
		r.state.dropped(added)
	}
	e.count(r, ResultDropped)
}

// enqueue makes a call wait if there is room for it, and memory to spare.
func (e *Engine) enqueue(added *comparison, c registry.Comparison) bool {
	if e.queued.Add(c.Bytes) <= limits.RolloutQueueBytes && len(e.queue) < cap(e.queue) {
		ok := true
		if added.release = func() {}; c.Keep != nil {
			added.release, ok = c.Keep(c.Bytes)
		}
		if ok {
			added.ask = c.Ask(added.rollout.unasked(c.Handler))
			select {
			case e.queue <- added:
				return true
			default:
				added.release()
			}
		}
	}
	e.queued.Add(-c.Bytes)
	return false
}

func (e *Engine) count(r *Rollout, result string) {
	if e.config.Compared != nil {
		e.config.Compared(r.name, result)
	}
}

// compareAll compares calls until ctx is done.
func (e *Engine) compareAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-e.queue:
			e.compare(ctx, c)
		}
	}
}

// compare compares a call. It asks until it is known that the candidate answers alike each time, and not too often.
func (e *Engine) compare(ctx context.Context, c *comparison) {
	defer e.queued.Add(-c.bytes)
	defer c.release()
	var compared registry.Compared
	for asks, again := 1, true; again; asks++ {
		asking, cancel := context.WithTimeout(ctx, limits.Timeout)
		compared = c.ask(asking)
		cancel()
		if ctx.Err() != nil && errors.Is(compared.Err, ctx.Err()) {
			return
		}
		again = c.rollout.state.take(c, &compared, asks)
	}
	switch {
	case compared.Dropped:
		e.count(c.rollout, ResultDropped)
		return
	case compared.Unasked:
		return // which says nothing about the candidate
	case compared.Err != nil:
		e.count(c.rollout, ResultFailed)
	case len(compared.Differences) > 0 || compared.Unproven != "":
		e.count(c.rollout, ResultDifferent)
	case compared.Question == "":
		return // it asked nothing
	default:
		e.count(c.rollout, ResultEqual)
	}
	c.rollout.state.count(c.rollout, compared.Err != nil)
}

// metadata returns the labels and annotations of a Cluster, as far as they are known.
func (e *Engine) metadata(of types.NamespacedName) (labels, annotations map[string]string) {
	if e.config.Clusters == nil || of.Name == "" {
		return nil, nil
	}
	labels, annotations, known := e.config.Clusters.ClusterMetadata(of.Namespace, of.Name)
	if !known {
		return nil, nil
	}
	if labels == nil {
		labels = map[string]string{}
	}
	return labels, annotations
}
