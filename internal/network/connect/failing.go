// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// maxFailing bounds the addresses that are remembered of one host.
const maxFailing = 256

// Failing remembers the addresses of a host that could not be connected to lately, so that connections go to the others
// first. Its zero value knows of none. It is safe for concurrent use.
type Failing struct {
	mu    sync.Mutex
	until map[netip.Addr]time.Time
}

// last returns the addresses with those that failed lately at the end, in the same order otherwise.
func (f *Failing) last(addresses []netip.Addr) []netip.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.until) == 0 {
		return addresses
	}
	now := time.Now()
	good := make([]netip.Addr, 0, len(addresses))
	var bad []netip.Addr
	for _, a := range addresses {
		if now.Before(f.until[a]) {
			bad = append(bad, a)
		} else {
			good = append(good, a)
		}
	}
	return slices.Concat(good, bad)
}

// record remembers whether an address could be connected to.
func (f *Failing) record(a netip.Addr, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !failed {
		delete(f.until, a)
		return
	}
	now := time.Now()
	for known, until := range f.until {
		if !now.Before(until) {
			delete(f.until, known)
		}
	}
	if len(f.until) >= maxFailing {
		return
	}
	if f.until == nil {
		f.until = map[netip.Addr]time.Time{}
	}
	f.until[a] = now.Add(limits.FailingTime)
}
