// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

const (
	// startPatience is how long a sidecar waits for its extension before it counts as started.
	startPatience = 10 * time.Second
	// thriftPeriod is how often a sidecar looks at what it has resident.
	thriftPeriod = 10 * time.Second
	// thrifty is what a sidecar may have resident, in bytes, before it gives back what it does not need. Go by itself takes minutes
	// for its heap, and the kernel keeps what was read of a file until memory is short.
	thrifty = 32 << 20
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
	period := time.NewTicker(thriftPeriod)
	defer period.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-period.C:
		}
		if resident() > thrifty {
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
