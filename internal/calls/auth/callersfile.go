// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
)

// rereadInterval is how often the file is read where the file system has no events.
const rereadInterval = 10 * time.Second

// CallersFile is a file with callers that may authenticate by a certificate or a static token, and the hooks that each
// of them may call. A file that becomes invalid changes nothing.
type CallersFile struct {
	path   string
	hooks  *catalog.Catalog
	logger *slog.Logger
	now    atomic.Pointer[callers]

	files  files.Reader
	again  *notify.Signal
	data   []byte // as last read; for Run alone
	failed string // the last error, which is logged once; for Run alone
}

// OpenCallers reads a file of callers. It returns an error unless the file is valid.
func OpenCallers(path string, hooks *catalog.Catalog, logger *slog.Logger) (*CallersFile, error) {
	f := &CallersFile{path: path, hooks: hooks, logger: logger, again: notify.NewSignal()}
	data, err := f.read()
	if err != nil {
		return nil, err
	}
	parsed, err := parseCallers(data, hooks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.data = data
	f.now.Store(parsed)
	return f, nil
}

// current returns the callers of the last valid content.
func (f *CallersFile) current() *callers { return f.now.Load() }

// Reload makes Run read the file at once.
func (f *CallersFile) Reload() { f.again.Notify() }

// Run follows the file until ctx is done.
func (f *CallersFile) Run(ctx context.Context) error {
	ticker := time.NewTicker(rereadInterval)
	defer ticker.Stop()
	var events chan fsnotify.Event
	// The directory is watched: a file that is replaced, as in a mounted Secret, is another file.
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer func() { _ = watcher.Close() }()
		if watcher.Add(filepath.Dir(f.path)) == nil {
			events = watcher.Events
		}
	}
	for {
		f.reload()
		select {
		case <-events:
		case <-f.again.C():
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// reload reads the file again.
func (f *CallersFile) reload() {
	data, err := f.read()
	if err == nil && bytes.Equal(data, f.data) && f.failed == "" {
		return
	}
	var parsed *callers
	if err == nil {
		if parsed, err = parseCallers(data, f.hooks); err != nil {
			err = fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if err != nil {
		if f.failed != err.Error() {
			f.failed = err.Error()
			f.logger.Error("file of callers cannot be used: the callers that were read last may still call",
				"error", err)
		}
		return
	}
	f.data, f.failed = data, ""
	f.now.Store(parsed)
	f.logger.Info("file of callers read", "path", f.path, "callers", len(parsed.entries))
}

// read returns the content of the file.
func (f *CallersFile) read() ([]byte, error) {
	data, err := f.files.Read(f.path, limits.CallersFileBytes)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, err // which names the path
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return data, nil
}
