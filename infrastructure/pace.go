// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// The times between two calls about an object, give or take a tenth.
const (
	provisioningInterval = 10 * time.Second
	deletingInterval     = 10 * time.Second
	poolInterval         = time.Minute
	readyInterval        = 10 * time.Minute
	classInterval        = time.Minute
	// leastInterval bounds what an extension may ask for.
	leastInterval = limits.LeastRecall
)

// newDelays returns the waits after calls about an object that failed.
func newDelays() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(limits.LeastRetry), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.2),
		backoff.WithMaxInterval(limits.LongestRetry), backoff.WithMaxElapsedTime(0), // never give up
	)
}

// jitter returns d, give or take a tenth, so that objects that were made together are not polled together.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d)) //nolint:gosec // it need not be a secret
}

// interval returns the time to the next call: asked, if the extension asks for one.
func interval(usual, asked time.Duration) time.Duration {
	if asked > 0 {
		return jitter(max(asked, leastInterval))
	}
	return jitter(usual)
}

// inputs is a digest of a request. Another one means that the extension has to know.
type inputs [sha256.Size]byte

// digest returns the inputs of a request, which has no objects yet: their status changes all the time.
func digest(hook string, req proto.Message) inputs {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return inputs{} // a request that cannot be marshaled cannot be sent either
	}
	return sha256.Sum256(append([]byte(hook+"\x00"), data...))
}

// scheduler decides when an object is due for its next call: when the inputs change, and otherwise after the time that
// the last answer or failure left. Events that change nothing for the extension cause no calls. It forgets everything
// when the process ends, so that each object is looked at after a restart. It is safe for concurrent use.
type scheduler struct {
	now func() time.Time

	mu      sync.Mutex
	objects map[types.NamespacedName]*pace
}

type pace struct {
	inputs inputs
	due    time.Time
	delays *backoff.ExponentialBackOff // nil after an answer
}

func newScheduler(now func() time.Time) *scheduler {
	return &scheduler{now: now, objects: map[types.NamespacedName]*pace{}}
}

// wait returns how long the next call about an object has to wait. Zero means that it is due.
func (p *scheduler) wait(key types.NamespacedName, in inputs) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.objects[key]
	if known == nil || known.inputs != in {
		return 0
	}
	return max(known.due.Sub(p.now()), 0)
}

// answered records an answer, after which the next call is due after d.
func (p *scheduler) answered(key types.NamespacedName, in inputs, d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects[key] = &pace{inputs: in, due: p.now().Add(d)}
	return d
}

// failed records a failure, and returns the time to the next call: asked, or else longer with each failure.
func (p *scheduler) failed(key types.NamespacedName, in inputs, asked time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.objects[key]
	if known == nil || known.inputs != in || known.delays == nil {
		known = &pace{inputs: in, delays: newDelays()}
		p.objects[key] = known
	}
	d := min(known.delays.NextBackOff(), limits.LongestRetry)
	if asked > 0 {
		d = max(d, jitter(asked))
	}
	known.due = p.now().Add(d)
	return d
}

// forget forgets an object, so that its next call is due at once.
func (p *scheduler) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.objects, key)
}
