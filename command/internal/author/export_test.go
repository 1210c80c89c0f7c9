// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/cli/target"
)

const (
	RenderProgram = renderProgram
	SeekEvery     = seekEvery
)

var (
	Changes = changes
	Pinned  = pinned
	InPath  = inPath
)

// Restarts is what notices that an extension has restarted.
type Restarts struct{ *restarts }

// NewRestarts returns that of an extension, which begins to look.
func NewRestarts(ctx context.Context, url, ca string, hooks *catalog.Catalog) (*Restarts, error) {
	o := checkOptions{ClientOptions: target.ClientOptions{Server: url, CA: ca}}
	r, err := o.newRestarts(hooks)
	if err == nil {
		r.begin(ctx)
	}
	return &Restarts{r}, err
}

// Wait waits for a restart, and returns how it was noticed.
func (r *Restarts) Wait(ctx context.Context) string { return r.wait(ctx, func() {}) }

// Close ends the connections.
func (r *Restarts) Close() { r.close() }
