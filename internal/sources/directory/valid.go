// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// validDir is the directory of objects as they were last valid, in the directory of the state.
const validDir = "valid"

// validState keeps each object of the directory as it was last valid, so that it stays in effect after a restart while
// it has a mistake: a file for each object. It forgets an object that no manifest defines any more. Nil keeps nothing.
// It belongs to one goroutine.
type validState struct {
	dir       string
	manifests string // the directory of manifests
	logger    *slog.Logger
	reader    files.Reader
	saved     map[string][]byte // by file
	failed    string            // the error of a write that was logged last
}

// validObject is the content of a file.
type validObject struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	File   string          `json:"file"` // in the directory of manifests
	Object json.RawMessage `json:"object"`
}

// newValidState returns the objects in the directory of a state, or nil without a state.
func newValidState(state, manifests string, logger *slog.Logger) *validState {
	if state == "" {
		return nil
	}
	return &validState{
		dir: filepath.Join(state, validDir), manifests: manifests, logger: logger, saved: map[string][]byte{},
	}
}

// load returns the objects of the last run.
func (s *validState) load() []manifest.Valid {
	if s == nil {
		return nil
	}
	entries, err := s.reader.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.logger.Error("last valid versions of objects cannot be read: the gateway refuses every call that an "+
			"object with a mistake may apply to",
			"dir", s.dir, "error", err)
	}
	var all []manifest.Valid
	left := int64(limits.ManifestsBytes)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), stateSuffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		content, err := s.reader.Read(filepath.Join(s.dir, e.Name()), limits.ManifestBytes+limits.StateBytes)
		var of validObject
		if err == nil {
			err = json.Unmarshal(content, &of)
		}
		if left -= int64(len(content)); err == nil && left < 0 {
			err = errors.New("the files of the directory are too large in total")
		}
		if err != nil {
			s.logger.Error("last valid version of the object cannot be read: if the object has a mistake "+
				"now, the gateway refuses every call that the object may apply to",
				"file", e.Name(), "error", err)
			s.saved[e.Name()] = nil // to be removed, or written
			continue
		}
		s.saved[e.Name()] = content
		file := filepath.Join(s.manifests, of.File)
		all = append(all, manifest.Valid{Kind: of.Kind, Name: of.Name, File: file, Content: of.Object})
	}
	slices.SortStableFunc(all, func(a, b manifest.Valid) int { return strings.Compare(a.File, b.File) })
	return all
}

// save keeps the objects that are in effect, and forgets all others.
func (s *validState) save(all []manifest.Valid) {
	if s == nil {
		return
	}
	wanted := make(map[string][]byte, len(all))
	for i := range all {
		content, err := json.Marshal(validObject{all[i].Kind, all[i].Name, filepath.Base(all[i].File), all[i].Content})
		if err == nil {
			wanted[fileOf(all[i].Kind, all[i].Name)] = content
		}
	}
	var errs []error
	if len(wanted) > 0 {
		errs = append(errs, os.MkdirAll(s.dir, 0o700))
	}
	for name, content := range wanted {
		if bytes.Equal(s.saved[name], content) {
			continue
		}
		err := replaceFile(s.dir, name, content)
		if errs = append(errs, err); err == nil {
			s.saved[name] = content
		}
	}
	for name := range s.saved {
		if _, still := wanted[name]; still {
			continue
		}
		err := os.Remove(filepath.Join(s.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if errs = append(errs, err); err == nil {
			delete(s.saved, name)
		}
	}
	if len(wanted) == 0 {
		_ = os.Remove(s.dir) // it may not be there, or not be empty
	}
	s.report(errors.Join(errs...))
}

// report logs a failure of writes once.
func (s *validState) report(err error) {
	text := ""
	if err != nil {
		text, _, _ = strings.Cut(err.Error(), "\n")
	}
	if text != "" && text != s.failed {
		s.logger.Error("state cannot be written: after a restart, the gateway refuses every call that "+
			"an object with a mistake may apply to", "error", text)
	}
	s.failed = text
}

// fileOf returns the name of the file of an object. A long name has a hash in place of its end.
func fileOf(kind, name string) string {
	full := kind + "." + name
	if most := 200; len(full) > most {
		sum := sha256.Sum256([]byte(full))
		full = full[:most] + "-" + hex.EncodeToString(sum[:8])
	}
	return full + stateSuffix
}
