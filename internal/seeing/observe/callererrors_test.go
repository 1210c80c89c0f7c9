// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
)

func TestCallerErrorsAreLoggedOnceInAWhile(t *testing.T) {
	var m callerErrors
	now := time.Now()
	for _, step := range []struct {
		caller string
		kind   hook.Kind
		after  time.Duration
		want   slog.Level
	}{
		{"a", hook.InvalidRequest, 0, slog.LevelInfo},
		{"a", hook.InvalidRequest, 1, slog.LevelDebug},
		{"a", hook.UnknownHook, 1, slog.LevelInfo},
		{"b", hook.InvalidRequest, 1, slog.LevelInfo},
		{"a", hook.InvalidRequest, callerErrorInterval - 1, slog.LevelDebug},
		{"a", hook.InvalidRequest, callerErrorInterval, slog.LevelInfo},
		{"a", hook.Unreachable, 0, slog.LevelError},
		{"a", hook.Unreachable, 0, slog.LevelError},
	} {
		if got := m.level(step.caller, step.kind, now.Add(step.after)); got != step.want {
			t.Errorf("%s, %s, after %s: got %s, want %s", step.caller, step.kind, step.after, got, step.want)
		}
	}
	for n := range 2 * maxCallerErrors {
		m.level(strconv.Itoa(n), hook.TooLarge, now)
		if len(m.logged) > maxCallerErrors {
			t.Fatalf("%d callers are remembered, want at most %d", len(m.logged), maxCallerErrors)
		}
	}
}

// TestCallerErrorsByKind says of every kind whose error it is.
func TestCallerErrorsByKind(t *testing.T) {
	others := map[hook.Kind]bool{
		hook.Internal: true, hook.NotReady: true, hook.Conversion: true, hook.Unreachable: true, hook.Timeout: true,
		hook.BadResponse: true, hook.Policy: true, hook.Overloaded: true, hook.Loop: true,
	}
	for _, k := range hook.Kinds() {
		if isCallerError(k) == others[k] {
			t.Errorf("%s: an error of the caller: %t", k, isCallerError(k))
		}
	}
}
