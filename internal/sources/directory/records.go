// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// RecordsDir is the directory of records in the directory of the state, and RecordSuffix is what the names of their
// files end with.
const (
	RecordsDir   = "rollouts"
	RecordSuffix = stateSuffix
)

// records stores the records of ExtensionRollouts: a file for each, which has the form of an ExtensionRolloutRecord.
// Nil stores none. Put is safe for concurrent use; read belongs to one goroutine.
type records struct {
	dir    string
	logger *slog.Logger
	reader files.Reader

	mu    sync.Mutex
	known map[string]*v1alpha1.ExtensionRolloutRecord // by file, as the engine has them
	wrong map[string]string                           // the errors of files that were logged
}

var _ rollout.Store = (*records)(nil)

// newRecords returns the records in the directory of a state, or nil without a state.
func newRecords(state string, logger *slog.Logger) *records {
	if state == "" {
		return nil
	}
	return &records{
		dir: filepath.Join(state, RecordsDir), logger: logger,
		known: map[string]*v1alpha1.ExtensionRolloutRecord{}, wrong: map[string]string{},
	}
}

// Put writes a record, and returns once it would survive a crash.
func (s *records) Put(_ context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	if s == nil {
		return errors.New("there is no --state-dir")
	}
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	name := record.Name + stateSuffix
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := writeDurably(s.dir, name, text); err != nil {
		return err
	}
	s.known[name] = record
	return nil
}

// writeDurably replaces a file at once, and returns when its content and its name are on the disk.
func writeDurably(dir, name string, text []byte) error {
	next := filepath.Join(dir, "."+name+".next")
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// read gives the engine the records that it does not have, and takes those away whose files are gone. Once all of them
// have been read, the engine may answer; until then, a file that cannot be read may be of a Cluster that has moved.
func (s *records) read(engine *rollout.Engine) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := s.reader.ReadDir(s.dir)
	// There is no directory before the first record. One that was there may be about to be mounted again.
	if err != nil && (len(s.known) > 0 || !errors.Is(err, fs.ErrNotExist)) {
		s.report(s.dir, err)
		return
	}
	complete := true
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, stateSuffix) || strings.HasPrefix(name, ".") {
			continue
		}
		there[name] = true
		if s.known[name] != nil {
			continue
		}
		record, err := s.load(name)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				complete = false
				s.report(name, err)
			}
			continue
		}
		delete(s.wrong, name)
		s.known[name] = record
		engine.Set(record)
	}
	for name, record := range s.known {
		if !there[name] {
			delete(s.known, name)
			engine.Remove(record)
		}
	}
	if complete {
		engine.SetRead()
	}
}

func (s *records) load(name string) (*v1alpha1.ExtensionRolloutRecord, error) {
	text, err := s.reader.Read(filepath.Join(s.dir, name), limits.StateBytes)
	if err != nil {
		return nil, err
	}
	record := &v1alpha1.ExtensionRolloutRecord{}
	if err := json.Unmarshal(text, record); err != nil {
		return nil, err
	}
	if record.Kind != rollout.RecordKind || record.Name+stateSuffix != name {
		return nil, fmt.Errorf("not the %s %q", rollout.RecordKind, strings.TrimSuffix(name, stateSuffix))
	}
	return record, nil
}

// report logs an error of a file once.
func (s *records) report(name string, err error) {
	if s.wrong[name] == err.Error() {
		return
	}
	s.wrong[name] = err.Error()
	s.logger.Error("record of an ExtensionRollout cannot be read", "file", name, "error", err,
		"advice", "restore it, or delete it to move its Cluster back")
}
