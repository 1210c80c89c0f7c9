// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// startPatience is how long a sidecar waits for its extension before it counts as started.
	startPatience = 10 * time.Second
	// thriftPeriod is how often a sidecar looks at its heap.
	thriftPeriod = 10 * time.Second
	// thriftyHeap is what its heap may have, in bytes, before what is not in use is given back. Go by itself takes minutes.
	thriftyHeap = 8 << 20
)

// thrift keeps a sidecar small: there is one in every Pod of an extension.
type thrift struct {
	ready  <-chan struct{}
	logger *slog.Logger
}

// Run releases what the start needed, and from time to time what a burst of calls has left. It returns when ctx is done.
func (t thrift) Run(ctx context.Context) error {
	select {
	case <-t.ready:
	case <-time.After(startPatience):
	case <-ctx.Done():
		return nil
	}
	t.release()
	heap := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	period := time.NewTicker(thriftPeriod)
	defer period.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-period.C:
		}
		var held uint64
		metrics.Read(heap)
		for _, s := range heap {
			held += s.Value.Uint64()
		}
		if held > thriftyHeap {
			t.release()
		}
	}
}

func (t thrift) release() {
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		t.logger.Debug("memory of the program's file is not given back", "error", err)
	}
}
