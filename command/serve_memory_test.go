// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestIdleConnections(t *testing.T) {
	for _, tc := range []struct {
		reason string
		calls  int64
		want   int
	}{
		{"the least budget", 96 << 20, 491},
		{"a quarter holds exactly the least", 256 * limits.IdleConnectionBytes * 4, 256},
		{"a quarter holds fewer than the least", 256*limits.IdleConnectionBytes*4 - 1, 256},
		{"one more than the least", 257 * limits.IdleConnectionBytes * 4, 257},
		{"a container with 512 MiB", 256 << 20, 1310},
		{"exactly the most", 4096 * limits.IdleConnectionBytes * 4, 4096},
		{"the largest default", 2 << 30, 4096},
	} {
		if got := idleConnections(tc.calls); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
		}
	}
}
