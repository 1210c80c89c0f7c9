// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/hookgate/hookgate/internal/base/notify"
)

// maxNames is how many names of changed files are kept.
const maxNames = 10_000

// watch signals changes in a directory. Where the file system has no events, it signals nothing; the directory is
// reread periodically in any case.
type watch struct {
	dir     string
	logger  *slog.Logger
	watcher *fsnotify.Watcher // nil where there are no events
	changes *notify.Signal
	running sync.WaitGroup
	failed  bool // the last attempt to watch failed, which is logged once

	mu sync.Mutex
	// names has the files within the directory that have changed; nil means that any may have.
	names map[string]struct{}
}

func newWatch(dir string, logger *slog.Logger) *watch {
	w := &watch{dir: filepath.Clean(dir), logger: logger, changes: notify.NewSignal()}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Warn("changes of the directory are not watched; the directory is read from time to "+
			"time", "dir", dir, "error", err)
		return w
	}
	w.watcher = watcher
	w.renew()
	w.running.Go(w.forward)
	return w
}

// renew watches the directory again if it was replaced: a watch ends with the directory that it was for. It reports
// whether it does: what changed before has had no event.
func (w *watch) renew() bool {
	if w.watcher == nil || slices.Contains(w.watcher.WatchList(), w.dir) {
		return false
	}
	err := w.watcher.Add(w.dir)
	if err != nil && !w.failed {
		w.logger.Warn("changes of the directory are not watched; the directory is read from time to "+
			"time", "dir", w.dir, "error", err)
	}
	w.failed = err != nil
	return !w.failed
}

// forward coalesces events into one signal.
func (w *watch) forward() {
	for {
		select {
		case event, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			w.note(event.Name)
		case err, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
			w.logger.Warn("events of the directory were lost; the directory is read again", "dir", w.dir, "error", err)
			w.note(w.dir)
		}
		w.changes.Notify()
	}
}

// note remembers that a file has changed; the directory itself stands for all files.
func (w *watch) note(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path == w.dir || filepath.Dir(path) != w.dir || len(w.names) >= maxNames {
		w.names = nil
	}
	if w.names != nil {
		w.names[filepath.Base(path)] = struct{}{}
	}
}

// take returns the names of the files that have changed since the last call; nil means that any may have.
func (w *watch) take() map[string]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := w.names
	w.names = map[string]struct{}{}
	return names
}

func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // there is nothing left to do with an error
		w.running.Wait()
	}
}
