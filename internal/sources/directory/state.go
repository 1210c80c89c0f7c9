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
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
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
	saved  map[string]kept   // what the files have, as far as this process knows
	failed map[string]string // the errors of writes that were logged
}

// kept is what is kept of an ExtensionConfig: its handlers, and where they were discovered, which files of older
// gateways do not say.
type kept struct {
	handlers []registry.Handler
	at       *extensionconfig.LastClient
}

func (k *kept) equal(o *kept) bool {
	return slices.Equal(k.handlers, o.handlers) && (k.at == o.at || k.at != nil && o.at != nil && *k.at == *o.at)
}

const stateSuffix = ".json"

// openState returns the state in a directory, which it makes if need be.
func openState(dir string, hooks *catalog.Catalog, logger *slog.Logger) (*state, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := &state{
		dir: dir, hooks: hooks, logger: logger,
		saved: map[string]kept{}, failed: map[string]string{},
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

// load returns what is kept of an ExtensionConfig, and reports whether its handlers are known.
func (s *state) load(name string) (of kept, known bool) {
	if !s.has(name) {
		return kept{}, false
	}
	of, err := s.read(name)
	if err != nil {
		s.logger.Warn("state cannot be used: the handlers of the ExtensionConfig count as unknown", "extensionConfig", name,
			"file", s.file(name), "error", err)
		return kept{}, false
	}
	s.saved[name] = of
	return of, true
}

func (s *state) read(name string) (of kept, err error) {
	text, err := s.reader.Read(s.file(name), limits.StateBytes)
	if err != nil {
		return of, err
	}
	config := &runtimev1.ExtensionConfig{}
	if err := json.Unmarshal(text, config); err != nil {
		return of, err
	}
	if config.GroupVersionKind() != runtimev1.GroupVersion.WithKind("ExtensionConfig") || config.Name != name {
		return of, fmt.Errorf("not the state of ExtensionConfig %q", name)
	}
	at, errs := extensionconfig.DiscoveredAt(config)
	handlers, _, more := extensionconfig.LastKnownHandlers(config, s.hooks)
	if errs = append(errs, more...); len(errs) > 0 {
		return of, problems.Join(errs)
	}
	return kept{handlers, at}, nil
}

// save keeps a registration: the handlers that a discovery has found, and where. Until a discovery has succeeded, what
// is kept stays, but for where it is called meanwhile.
func (s *state) save(reg *registry.Registration, discovered bool) {
	if s == nil || reg == nil {
		return
	}
	name, now := reg.Name, kept{slices.Clone(reg.Handlers), extensionconfig.LastClientOf(reg)}
	s.mu.Lock()
	before, known := s.saved[name]
	s.mu.Unlock()
	if known && before.equal(&now) || !discovered && (!known || reg.Pending == nil) {
		return
	}
	err := s.write(name, &now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.saved[name] = now
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
func (s *state) write(name string, of *kept) error {
	config := &runtimev1.ExtensionConfig{}
	config.SetGroupVersionKind(runtimev1.GroupVersion.WithKind("ExtensionConfig"))
	config.Name = name
	for key, value := range map[string]string{
		extensionconfig.StatedVersionsAnnotation: extensionconfig.FormatStatedVersions(of.handlers),
		extensionconfig.GatewaysAnnotation:       extensionconfig.FormatGateways(of.handlers),
		extensionconfig.DiscoveredAtAnnotation:   of.at.String(),
	} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&config.ObjectMeta, key, value)
		}
	}
	config.Status.Handlers = extensionconfig.StatusHandlers(name, of.handlers)
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return replaceFile(s.dir, name+stateSuffix, text)
}

// replaceFile replaces a file at once. A power failure may leave it empty.
func replaceFile(dir, name string, content []byte) error {
	next := filepath.Join(dir, "."+name+".next")
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dir, name))
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
