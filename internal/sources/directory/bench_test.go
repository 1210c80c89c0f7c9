// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// many is how many files the benchmarks have, each with an ExtensionConfig of ten handlers in its status.
const many = 2000

// manyFiles returns a directory of many files.
func manyFiles(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	for i := range many {
		writeManifest(b, dir, i, urlA)
	}
	return dir
}

// writeManifest replaces the i-th file at once, as tools do that know their trade.
func writeManifest(b *testing.B, dir string, i int, url string) {
	b.Helper()
	name := fmt.Sprintf("extension-%04d", i)
	lines := []string{"status:", "  handlers:"}
	for j := range 10 {
		lines = append(lines, fmt.Sprintf("  - name: handler-%d.%s", j, name),
			"    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}",
			"    timeoutSeconds: 10", "    failurePolicy: Fail")
	}
	file := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(file+".new", []byte(config(name, url, lines...)), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		b.Fatal(err)
	}
}

// silent is a Discoverer of extensions that do not answer.
type silent struct{}

func (silent) Discover(ctx context.Context, _ registry.ClientConfig) (extension.Discovered, error) {
	<-ctx.Done()
	return extension.Discovered{}, ctx.Err()
}
func (silent) Retain([]registry.ClientConfig) {}

// started returns a registry and a function that stops the source which has made it ready.
func started(b *testing.B, dir string) (*registry.Registry, func()) {
	b.Helper()
	r := registry.New()
	source, err := New(Config{
		Catalog: catalog.New(), Dir: dir, Registry: r, Discoverer: silent{}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	<-r.Ready()
	return r, func() {
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart reads many files until the handlers in their statuses are served.
func BenchmarkStart(b *testing.B) {
	dir := manyFiles(b)
	b.ReportAllocs()
	for b.Loop() {
		r, stop := started(b, dir)
		if got := len(r.Snapshot().All()); got != 10*many {
			b.Fatalf("%d handlers are served", got)
		}
		b.StopTimer()
		stop()
		b.StartTimer()
	}
}

// BenchmarkChange changes some of many files until the changes are in effect. The time has debounce in it.
func BenchmarkChange(b *testing.B) {
	dir := manyFiles(b)
	r, stop := started(b, dir)
	defer stop()
	for _, files := range []int{1, 100, many} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				url := []string{urlB, urlA}[i%2]
				for j := range files {
					writeManifest(b, dir, j, url)
				}
				process.EventuallySees(b, process.Patience, "the change is in effect", func() (string, bool) {
					regs := r.Snapshot().Registrations()[:files]
					return url, !slices.ContainsFunc(regs, func(reg *registry.Registration) bool { return reg.ClientConfig.URL != url })
				})
			}
		})
	}
}
