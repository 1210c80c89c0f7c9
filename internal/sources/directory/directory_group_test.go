// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
)

// counting is a Registry that counts the writes, each of which copies its lists.
type counting struct {
	*registry.Registry
	writes atomic.Int32
}

func (c *counting) ApplyAll(regs []registry.Registration) []error {
	c.writes.Add(1)
	return c.Registry.ApplyAll(regs)
}

func (c *counting) RemoveAll(names []string) {
	c.writes.Add(1)
	c.Registry.RemoveAll(names)
}

func (c *counting) SetAllPolicies(byConfig map[string]registry.Policies) {
	c.writes.Add(1)
	c.Registry.SetAllPolicies(byConfig)
}

// group is a source whose directory is read when the test says so, of extensions that never answer.
type group struct {
	dir      string
	source   *Source
	registry *counting
	logs     *discoverytest.Logs
}

func newGroup(t *testing.T) *group {
	g := &group{dir: t.TempDir(), registry: &counting{Registry: registry.New()}, logs: &discoverytest.Logs{}}
	var err error
	g.source, err = New(Config{
		Catalog: catalog.New(), Dir: g.dir, Registry: g.registry, Discoverer: silent{},
		Logger: slog.New(slog.NewTextHandler(g.logs, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.source.workers.patience = time.Minute // what is late is applied by itself
	t.Cleanup(g.source.workers.stop)
	return g
}

// write writes the manifest of the i-th ExtensionConfig, whose URL and handler have the version in their names.
func (g *group) write(t *testing.T, i, version int) {
	t.Helper()
	name := fmt.Sprintf("x%d", i)
	writeFile(t, g.dir, name+".yaml", config(name, versionURL(version), "status:", "  handlers:",
		fmt.Sprintf("  - name: v%d.%s", version, name),
		"    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}"))
	writeFile(t, g.dir, "policy-"+name+".yaml",
		policyOf("policy-"+name, "{name: "+name+"}", fmt.Sprintf("timeoutSeconds: %d", version)))
}

func versionURL(version int) string { return fmt.Sprintf("https://v%d.example.com", version) }

// read reads the directory once, and returns how many writes to the registry that takes.
func (g *group) read(t *testing.T) int32 {
	t.Helper()
	before := g.registry.writes.Load()
	if !g.source.refresh(t.Context(), nil, nil) {
		t.Fatal("the directory cannot be read")
	}
	return g.registry.writes.Load() - before
}

// What one reading of the directory finds is applied together, whatever the number of files. A file that is wrong keeps
// no other from being applied.
func TestDirectoryAppliesManyChangesTogether(t *testing.T) {
	const files = 30
	g := newGroup(t)
	for i := range files {
		g.write(t, i, 1)
	}
	if writes := g.read(t); writes != 2 {
		t.Errorf("the start wrote %d times, want 2: the policies and the handlers", writes)
	}

	for i := range files {
		g.write(t, i, 2)
	}
	writeFile(t, g.dir, "x7.yaml", "kind: [")
	for _, name := range []string{"x8", "x9"} {
		if err := os.Remove(filepath.Join(g.dir, name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	if writes := g.read(t); writes != 3 {
		t.Errorf("the changes were written %d times, want 3: the policies, the handlers and the removals", writes)
	}
	var want []string
	for i := range files {
		switch i {
		case 7:
			want = append(want, "v1.x7 "+versionURL(1))
		case 8, 9:
		default:
			want = append(want, fmt.Sprintf("v2.x%d %s", i, versionURL(2)))
		}
	}
	serves(t, g.registry.Registry, want)
	for _, e := range g.registry.Snapshot().All() {
		if got := e.Handler.Timeout.Seconds(); got != 2 {
			t.Errorf("%s has a timeout of %v s, want the one of its policy, 2 s", e.Name, got)
		}
	}
	if lines := g.logs.Lines("level=ERROR", "x7.yaml:1"); len(lines) != 1 {
		t.Errorf("the wrong file is logged %d times", len(lines))
	}
	if writes := g.read(t); writes != 0 {
		t.Errorf("without a change, the registry was written %d times", writes)
	}
}

// A reader of the registry sees each ExtensionConfig as one of its manifests has it, and all of one reading or none.
func TestReadersSeeNoHalfOfAChange(t *testing.T) {
	const files = 10
	g := newGroup(t)
	for i := range files {
		g.write(t, i, 1)
	}
	g.read(t)
	ctx, stop := context.WithCancel(t.Context())
	checked := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := g.whole(files); err != nil {
				checked <- err
				return
			}
		}
		checked <- nil
	}()
	for version := 2; version < 30; version++ {
		for i := range files {
			g.write(t, i, version)
		}
		g.read(t)
	}
	stop()
	if err := <-checked; err != nil {
		t.Error(err)
	}
}

// whole returns an error unless the registry has one version of all manifests.
func (g *group) whole(files int) error {
	s := g.registry.Snapshot()
	if len(s.All()) != files || len(s.Registrations()) != files {
		return fmt.Errorf("%d ExtensionConfigs have %d handlers", len(s.Registrations()), len(s.All()))
	}
	first := s.All()[0].Handler.Name
	for _, e := range s.All() {
		if e.Handler.Name != first || e.Registration.ClientConfig.URL != "https://"+first+".example.com" {
			return fmt.Errorf("%s is at %s, and another handler is %s", e.Name, e.Registration.ClientConfig.URL, first)
		}
	}
	return nil
}

func serves(t *testing.T, r *registry.Registry, want []string) {
	t.Helper()
	got := map[string]bool{}
	for _, text := range discoverytest.Registered(r) {
		got[text] = true
	}
	for _, text := range want {
		if !got[text] {
			t.Errorf("%s is not served", text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d handlers are served, want %d", len(got), len(want))
	}
}
