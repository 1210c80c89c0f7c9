// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// write is a record that may have to be stored.
type write struct {
	rollout string
	cluster types.NamespacedName
	aborted bool // the record that says so, rather than that of a Cluster
}

const abortedKey = "aborted"

// key returns w as a text: names have no slashes.
func (w write) key() string {
	if w.aborted {
		return w.rollout + "/" + abortedKey
	}
	return w.rollout + "/" + w.cluster.String()
}

func writeOf(key string) write {
	rollout, rest, _ := strings.Cut(key, "/")
	if rest == abortedKey {
		return write{rollout: rollout, aborted: true}
	}
	namespace, name, _ := strings.Cut(rest, "/")
	return write{rollout: rollout, cluster: types.NamespacedName{Namespace: namespace, Name: name}}
}

// write makes the record be stored, if it has to be.
func (e *Engine) write(w write) { e.writes.Add(w.key()) }

// storeAll stores records until ctx is done. One that cannot be stored is tried again, later each time.
func (e *Engine) storeAll(ctx context.Context) {
	failed := map[string]int{} // attempts
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.writes.C():
		}
		for _, key := range e.writes.Take() {
			if e.store(ctx, writeOf(key), failed[key] == 0) {
				delete(failed, key)
				continue
			}
			delay := min(limits.RolloutRetry<<failed[key], limits.RolloutRetryMost)
			failed[key] = min(failed[key]+1, 16)
			time.AfterFunc(delay, func() { e.writes.Add(key) })
		}
	}
}

// store stores a record, and reports whether that succeeded, or was not necessary.
func (e *Engine) store(ctx context.Context, w write, first bool) bool {
	record := e.stateOf(w.rollout).recordToStore(w)
	if record == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, limits.RolloutStore)
	defer cancel()
	if err := e.put(ctx, record); err != nil {
		if first && ctx.Err() == nil && !errors.Is(err, ErrChanged) {
			e.config.Logger.Error("record cannot be stored; trying again: the Cluster stays with its version",
				"extensionRollout", w.rollout, "cluster", w.cluster.String(), "error", err)
		}
		return false
	}
	e.config.Logger.Info("record was stored", "extensionRollout", w.rollout, "cluster", w.cluster.String(),
		"state", record.Spec.State, "candidate", record.Spec.Candidate, "message", record.Spec.Message)
	if record.Spec.State == v1alpha1.RolloutStateEqual || record.Spec.State == v1alpha1.RolloutStateDifferent {
		e.write(w) // it may move now
	}
	return true
}
