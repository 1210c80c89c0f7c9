// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// inFlight bounds the calls in flight: all of them, and those of each class, so that an extension that hangs does not
// keep those of other classes waiting.
type inFlight struct {
	all      *semaphore.Weighted
	perClass int

	mu      sync.Mutex
	classes map[string]int // without classes that have none
}

func newInFlight(all, perClass int) *inFlight {
	return &inFlight{all: semaphore.NewWeighted(int64(all)), perClass: perClass, classes: map[string]int{}}
}

// acquire takes a place. It waits for one among all calls, and returns ErrBusy if the class has none. The caller must
// call the function that it returns.
func (f *inFlight) acquire(ctx context.Context, class string) (func(), error) {
	if !f.enter(class) {
		return nil, ErrBusy
	}
	if err := f.all.Acquire(ctx, 1); err != nil {
		f.leave(class)
		return nil, err
	}
	return func() { f.all.Release(1); f.leave(class) }, nil
}

func (f *inFlight) enter(class string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.classes[class] >= f.perClass {
		return false
	}
	f.classes[class]++
	return true
}

func (f *inFlight) leave(class string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.classes[class]--; f.classes[class] == 0 {
		delete(f.classes, class)
	}
}
