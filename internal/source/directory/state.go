// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/extensionconfig"
	"github.com/hookgate/hookgate/internal/files"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/problems"
	"github.com/hookgate/hookgate/registry"
)

// state keeps the handlers that discoveries have found, for the next start: a file for each ExtensionConfig, which has
// the form of an ExtensionConfig with nothing but a status. A nil state keeps nothing. It is safe for concurrent use
// for different ExtensionConfigs, but not for the same one.
type state struct {
	dir    string
	hooks  *catalog.Catalog
	logger *slog.Logger
	reader files.Reader
	found  []string // the ExtensionConfigs that had a file when it was opened

	mu     sync.Mutex
	saved  map[string][]registry.Handler // what the files have, as far as this process knows
	failed map[string]string             // the errors of writes that were logged
}

const stateSuffix = ".json"

// openState returns the state in a directory, which it makes if need be.
func openState(dir string, hooks *catalog.Catalog, logger *slog.Logger) (*state, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := &state{
		dir: dir, hooks: hooks, logger: logger,
		saved: map[string][]registry.Handler{}, failed: map[string]string{},
	}
	entries, err := s.reader.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), stateSuffix)
		if ok && registry.CheckName(name) == nil && len(s.found) < limits.ManifestFiles {
			s.found = append(s.found, name)
		}
	}
	// It is better not to start than to find out later that nothing is kept.
	probe := filepath.Join(dir, ".probe")
	if err := errors.Join(os.WriteFile(probe, nil, 0o600), os.Remove(probe)); err != nil {
		return nil, fmt.Errorf("state: directory %q: %w", dir, err)
	}
	return s, nil
}

// has reports whether an ExtensionConfig had a file when the state was opened, whatever is in it.
func (s *state) has(name string) bool { return slices.Contains(s.found, name) }

// load returns the handlers of an ExtensionConfig, and reports whether they are known.
func (s *state) load(name string) (handlers []registry.Handler, known bool) {
	if !s.has(name) {
		return nil, false
	}
	handlers, err := s.read(name)
	if err != nil {
		s.logger.Warn("state cannot be used: the handlers of the ExtensionConfig count as unknown", "extensionConfig", name,
			"file", s.file(name), "error", err)
		return nil, false
	}
	s.saved[name] = handlers
	return handlers, true
}

func (s *state) read(name string) ([]registry.Handler, error) {
	text, err := s.reader.Read(s.file(name), limits.StateBytes)
	if err != nil {
		return nil, err
	}
	config := &runtimev1.ExtensionConfig{}
	if err := json.Unmarshal(text, config); err != nil {
		return nil, err
	}
	if config.GroupVersionKind() != runtimev1.GroupVersion.WithKind("ExtensionConfig") || config.Name != name {
		return nil, fmt.Errorf("not the state of ExtensionConfig %q", name)
	}
	handlers, _, errs := extensionconfig.LastKnownHandlers(config, s.hooks)
	if len(errs) > 0 {
		return nil, problems.Join(errs)
	}
	return handlers, nil
}

// save keeps the handlers that a discovery has found.
func (s *state) save(name string, handlers []registry.Handler) {
	if s == nil {
		return
	}
	s.mu.Lock()
	before, kept := s.saved[name]
	s.mu.Unlock()
	if kept && slices.Equal(before, handlers) {
		return
	}
	err := s.write(name, handlers)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.saved[name] = slices.Clone(handlers)
		delete(s.failed, name)
		return
	}
	if s.failed[name] != err.Error() {
		s.failed[name] = err.Error()
		s.logger.Error("state cannot be written: after a restart, the handlers of the ExtensionConfig may be unknown",
			"extensionConfig", name, "error", err)
	}
}

// write replaces the file at once. A power failure may leave it empty, and an empty file counts as unknown.
func (s *state) write(name string, handlers []registry.Handler) error {
	config := &runtimev1.ExtensionConfig{}
	config.SetGroupVersionKind(runtimev1.GroupVersion.WithKind("ExtensionConfig"))
	config.Name = name
	for key, value := range map[string]string{
		extensionconfig.StatedVersionsAnnotation: extensionconfig.FormatStatedVersions(handlers),
		extensionconfig.GatewaysAnnotation:       extensionconfig.FormatGateways(handlers),
	} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&config.ObjectMeta, key, value)
		}
	}
	config.Status.Handlers = extensionconfig.StatusHandlers(name, handlers)
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	next := filepath.Join(s.dir, "."+name+".next")
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.file(name))
}

// forget removes the files of ExtensionConfigs.
func (s *state) forget(names ...string) {
	if s == nil {
		return
	}
	for _, name := range names {
		if err := os.Remove(s.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.logger.Error("state cannot be removed", "extensionConfig", name, "error", err)
		}
		s.mu.Lock()
		delete(s.saved, name)
		delete(s.failed, name)
		s.mu.Unlock()
	}
}

func (s *state) file(name string) string { return filepath.Join(s.dir, name+stateSuffix) }
