// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watch tells when something in a directory has changed. Where the system has no events for it, it tells nothing, and
// the directory is read from time to time all the same.
type watch struct {
	dir     string
	logger  *slog.Logger
	watcher *fsnotify.Watcher // nil where there are no events
	events  chan struct{}     // holds one value if something has changed
	running sync.WaitGroup
	failed  bool // the last attempt to watch failed, which is logged once
}

func newWatch(dir string, logger *slog.Logger) *watch {
	w := &watch{dir: filepath.Clean(dir), logger: logger, events: make(chan struct{}, 1)}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Warn("directory is not watched, only read from time to time", "dir", dir, "error", err)
		return w
	}
	w.watcher = watcher
	w.renew()
	w.running.Go(w.forward)
	return w
}

// renew watches the directory again if it was replaced: a watch ends with the directory that it was for.
func (w *watch) renew() {
	if w.watcher == nil || slices.Contains(w.watcher.WatchList(), w.dir) {
		return
	}
	err := w.watcher.Add(w.dir)
	if err != nil && !w.failed {
		w.logger.Warn("directory is not watched, only read from time to time", "dir", w.dir, "error", err)
	}
	w.failed = err != nil
}

// forward makes one value of all events that nobody has looked at.
func (w *watch) forward() {
	for {
		select {
		case _, ok := <-w.watcher.Events:
			if !ok {
				return
			}
		case err, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
			w.logger.Warn("events of the directory were lost; it is read again", "dir", w.dir, "error", err)
		}
		select {
		case w.events <- struct{}{}:
		default:
		}
	}
}

func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // there is nothing left to do with an error
		w.running.Wait()
	}
}
