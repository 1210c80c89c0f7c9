// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"time"
)

// checkInterval is the time between two looks at the memory of the process.
const checkInterval = 10 * time.Second

// every calls look each checkInterval until ctx is done, and returns nil.
func every(ctx context.Context, look func()) error {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			look()
		}
	}
}
