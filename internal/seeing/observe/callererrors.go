// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hookgate/hookgate/hook"
)

const (
	// callerErrorInterval is how often a caller's errors of one kind are logged at the level info. The others have the
	// level debug: a caller who repeats one does not fill the log of those who cannot mend it.
	callerErrorInterval = time.Minute
	// maxCallerErrors is the number of callers and kinds that are remembered, each in about 100 bytes.
	maxCallerErrors = 4096
)

// callerErrors decides at which level a failed call is logged. Its zero value has seen none. It is safe for concurrent
// use.
type callerErrors struct {
	mu     sync.Mutex
	logged map[callerError]time.Time
}

// callerError is a kind of error of a caller.
type callerError struct {
	caller string
	kind   hook.Kind
}

// isCallerError reports whether errors of a kind are the fault of the caller, whom the error tells what is wrong.
func isCallerError(k hook.Kind) bool {
	switch k {
	case hook.InvalidRequest, hook.UnknownHook, hook.UnknownHandler, hook.Ambiguous, hook.TooLarge, hook.Unauthenticated,
		hook.Forbidden, hook.Canceled:
		return true
	}
	return false
}

// level returns the level for an error of a caller's call.
func (m *callerErrors) level(caller string, k hook.Kind, now time.Time) slog.Level {
	if !isCallerError(k) {
		return slog.LevelError
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	what := callerError{caller, k}
	if last, ok := m.logged[what]; ok && now.Sub(last) < callerErrorInterval {
		return slog.LevelDebug
	}
	if m.logged == nil || len(m.logged) >= maxCallerErrors {
		m.logged = map[callerError]time.Time{}
	}
	m.logged[what] = now
	return slog.LevelInfo
}
