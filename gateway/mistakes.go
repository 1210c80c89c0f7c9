// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hookgate/hookgate/hook"
)

const (
	// mistakeInterval is how often a caller's mistakes of one kind are logged at the level info. The others have the
	// level debug: a caller who repeats a mistake does not fill the log of those who cannot mend it.
	mistakeInterval = time.Minute
	// maxMistakes is the number of callers and kinds that are remembered, each in about 100 bytes.
	maxMistakes = 4096
)

// mistakes decides at which level a failed call is logged. Its zero value has seen none. It is safe for concurrent use.
type mistakes struct {
	mu     sync.Mutex
	logged map[mistake]time.Time
}

// mistake is what a caller does wrong.
type mistake struct {
	caller string
	kind   hook.Kind
}

// isMistake reports whether errors of a kind are mistakes of the caller, whom the error tells what is wrong.
func isMistake(k hook.Kind) bool {
	switch k {
	case hook.InvalidRequest, hook.UnknownHook, hook.UnknownHandler, hook.Ambiguous, hook.TooLarge, hook.Unauthenticated,
		hook.Forbidden, hook.Canceled:
		return true
	}
	return false
}

// level returns the level for an error of a caller's call.
func (m *mistakes) level(caller string, k hook.Kind, now time.Time) slog.Level {
	if !isMistake(k) {
		return slog.LevelError
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	what := mistake{caller, k}
	if last, ok := m.logged[what]; ok && now.Sub(last) < mistakeInterval {
		return slog.LevelDebug
	}
	if m.logged == nil || len(m.logged) >= maxMistakes {
		m.logged = map[mistake]time.Time{}
	}
	m.logged[what] = now
	return slog.LevelInfo
}
