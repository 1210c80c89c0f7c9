// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

const (
	// startTimeout bounds how long a sidecar waits for its extension before it counts as started.
	startTimeout = 10 * time.Second
	// maxResident is the resident memory, in bytes, above which a Releaser releases memory. The Go runtime takes
	// minutes to return its heap, and the kernel keeps pages of a file until memory is short.
	maxResident = 32 << 20
)

// Releaser keeps a sidecar small: there is one in every Pod of an extension. On Linux, an idle sidecar has 27 MiB
// resident with it and 55 MiB without, of which 46 MiB are pages of the program's own file; see BenchmarkRelease. 30 s
// after 36 requests of 8 MiB, 12 at a time, 28 MiB are resident with it, and 229 MiB if only those pages are released.
// Logger must be set; Ready is closed when the start is over.
type Releaser struct {
	Ready  <-chan struct{}
	Logger *slog.Logger
}

// Run releases the memory of the start, and later of bursts of calls. It returns when ctx is done.
func (r Releaser) Run(ctx context.Context) error {
	select {
	case <-r.Ready:
	case <-time.After(startTimeout):
	case <-ctx.Done():
		return nil
	}
	r.release()
	return every(ctx, func() {
		if resident() > maxResident {
			r.release()
		}
	})
}

func (r Releaser) release() {
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		r.Logger.Debug("release pages of the program's file", "error", err)
	}
}
