// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// source is a Directory that runs until the end of the test.
type source struct {
	*discoverytest.Fixture
	dir       string
	directory *Source
}

// newSource returns a source for a new directory, without a state. Failed discoveries are retried very soon.
func newSource(t *testing.T, discoverer discovery.Discoverer) *source {
	t.Helper()
	return newSourceWith(t, discoverer, "")
}

func newSourceWith(t *testing.T, discoverer discovery.Discoverer, stateDir string) *source {
	t.Helper()
	s := &source{
		Fixture: &discoverytest.Fixture{Registry: registry.New(), Extensions: discoverytest.NewExtensions(), Logs: &discoverytest.Logs{}, Observer: &discoverytest.Observations{}, Losses: convert.NewLosses(nil)}, dir: t.TempDir(),
	}
	if discoverer == nil {
		discoverer = s.Extensions
	}
	var err error
	s.directory, err = New(Config{
		Catalog: catalog.New(), StateDir: stateDir,
		Dir: s.dir, Registry: s.Registry, Discoverer: discoverer, Logger: s.Logs.Logger(), Observer: s.Observer, Losses: s.Losses,
		Backoff: discovery.Backoff{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.directory.debounce, s.directory.maxDebounce = 20*time.Millisecond, 100*time.Millisecond
	return s
}

// objects returns a status with the objects of the source.
func (s *source) objects() *status.Gateway {
	g := &status.Gateway{}
	s.directory.Objects(g)
	return g
}

// run starts the source and stops it at the end of the test.
func (s *source) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.directory.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func (s *source) eventuallyServes(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("served at the end: %v\n%s", got, strings.Join(s.Logs.Lines(), ""))
		}
	}()
	process.Eventually(t, fmt.Sprintf("serves %v", want), func() bool {
		got = discoverytest.Registered(s.Registry)
		return slices.Equal(got, want)
	})
}

func (s *source) eventuallyReady(t *testing.T) {
	t.Helper()
	process.Eventually(t, "the registry is ready", func() bool { return s.Registry.Snapshot().Ready() })
}

func (s *source) eventuallyLogs(t *testing.T, parts ...string) {
	t.Helper()
	process.Eventually(t, fmt.Sprintf("a log line with %q", parts), func() bool { return len(s.Logs.Lines(parts...)) > 0 })
}

func TestDirectoryFollowsChanges(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	s.Extensions.Serve(urlB, "w")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "n.json", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"tier": "gold"}}}`)
	writeFile(t, s.dir, ".hidden.yaml", config("hidden", urlA))
	writeFile(t, s.dir, "README.md", "not a manifest: [")
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	labels, known := s.directory.NamespaceLabels("team")
	if diff := cmp.Diff(map[string]string{"tier": "gold", "kubernetes.io/metadata.name": "team"}, labels); diff != "" || !known {
		t.Errorf("labels, known %v, -want +got\n%s", known, diff)
	}
	labels, known = s.directory.NamespaceLabels("x")
	if diff := cmp.Diff(map[string]string{"kubernetes.io/metadata.name": "x"}, labels); diff != "" || known {
		t.Errorf("labels of a namespace without manifest, known %v, -want +got\n%s", known, diff)
	}

	writeFile(t, s.dir, "b.yml", config("other", urlB))
	s.eventuallyServes(t, "v.acme "+urlA, "w.other "+urlB)
	writeFile(t, s.dir, "a.yaml", config("acme", urlB))
	s.eventuallyServes(t, "w.acme "+urlB, "w.other "+urlB)
	s.Losses.Record("acme", "w", []string{"cluster.spec.new"})
	for _, name := range []string{"a.yaml", "n.json"} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.eventuallyServes(t, "w.other "+urlB)
	process.Eventually(t, "the labels of a deleted namespace are gone", func() bool { _, known := s.directory.NamespaceLabels("team"); return !known })
	process.Eventually(t, "what conversions lost for the deleted extension is forgotten", func() bool { return len(s.Losses.Of("acme")) == 0 })
	process.Eventually(t, "the deleted extension's connections are given up", func() bool {
		return slices.Equal(s.Extensions.Retained(), []string{urlB})
	})
}

func TestDirectoryUnchangedExtensionsAreNotDiscoveredAgain(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	s.Extensions.Serve(urlB, "w")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	s.run(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	// The line, a comment and the order of members are no change.
	writeFile(t, s.dir, "a.yaml", config("other", urlB)+"---\n# moved\n"+strings.Replace(config("acme", urlA), "kind: ExtensionConfig\n", "", 1)+"kind: ExtensionConfig\n")
	s.eventuallyServes(t, "v.acme "+urlA, "w.other "+urlB)
	if calls := s.Extensions.Calls(urlA); len(calls) != 1 {
		t.Errorf("acme was discovered %d times", len(calls))
	}
}

func TestDirectoryBadManifests(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	s.Extensions.Serve(urlB, "w")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "b.yaml", config("bad", "http://b.example.com")+"---\n"+config("good", urlB)+"---\napiVersion: v1\nkind: Secret\n")
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyServes(t, "v.acme "+urlA, "w.good "+urlB)
	process.Eventually(t, "one error is observed", func() bool { return s.Observer.Errors() == 1 })
	s.eventuallyLogs(t, "manifests read")
	bad := filepath.Join(s.dir, "b.yaml") + `:7: ExtensionConfig \"bad\": spec.clientConfig.url: Invalid value`
	if got := s.Logs.Lines("level=ERROR", bad, "it is not used"); len(got) != 1 {
		t.Errorf("the error is logged once by file and line, got %q in\n%s", got, s.Logs.Lines())
	}
	if got := s.Logs.Lines("level=WARN", filepath.Join(s.dir, "b.yaml")+":17: Secret: v1 is ignored here"); len(got) != 1 {
		t.Errorf("the other kind is logged once, got %q", got)
	}

	// A bad update keeps what is served, and the half-written one after it, too.
	for i, content := range []string{config("acme", "http://a.example.com"), "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: {", ""} {
		writeFile(t, s.dir, "a.yaml", content)
		s.eventuallyLogs(t, []string{`a.yaml:7: `, `a.yaml:2: not YAML`, `a.yaml:1: the file is empty`}[i], "in use")
	}
	s.Serves(t, "nothing was removed", "v.acme "+urlA, "w.good "+urlB)
	if got := s.Logs.Lines(bad); len(got) != 1 {
		t.Errorf("an error that stays is logged once, got %d lines", len(got))
	}
	writeFile(t, s.dir, "a.yaml", config("acme", urlB))
	s.eventuallyServes(t, "w.acme "+urlB, "w.good "+urlB)
}

// swap replaces the content of a mounted ConfigMap as the kubelet does: by exchanging one link.
func swap(t *testing.T, dir, version string, files map[string]string) {
	t.Helper()
	data := filepath.Join(dir, "..data")
	old, _ := os.Readlink(data)
	steps := []error{os.Mkdir(filepath.Join(dir, version), 0o700)}
	for name, content := range files {
		writeFile(t, filepath.Join(dir, version), name, content)
	}
	steps = append(steps, os.Symlink(version, data+"_tmp"), os.Rename(data+"_tmp", data))
	for name := range files {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			steps = append(steps, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
		}
	}
	entries, err := os.ReadDir(dir)
	steps = append(steps, err)
	for _, e := range entries {
		if _, ok := files[e.Name()]; !ok && !strings.HasPrefix(e.Name(), "..") {
			steps = append(steps, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if old != "" {
		steps = append(steps, os.RemoveAll(filepath.Join(dir, old)))
	}
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDirectoryFollowsMountedConfigMap(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	s.Extensions.Serve(urlB, "w")
	swap(t, s.dir, "..1", map[string]string{"a.yaml": config("acme", urlA), "b.yaml": config("other", urlB)})
	s.run(t)
	s.eventuallyServes(t, "v.acme "+urlA, "w.other "+urlB)
	swap(t, s.dir, "..2", map[string]string{"a.yaml": config("acme", urlB), "b.yaml": config("other", urlB)})
	s.eventuallyServes(t, "w.acme "+urlB, "w.other "+urlB)
	swap(t, s.dir, "..3", map[string]string{"b.yaml": config("other", urlB)})
	s.eventuallyServes(t, "w.other "+urlB)
}

func TestDirectoryThatIsReplaced(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	s.Extensions.Serve(urlB, "w")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	s.run(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.eventuallyLogs(t, "level=ERROR", "read directory", "the last valid state stays in use")
	s.Serves(t, "a directory that is away removes nothing", "v.acme "+urlA)
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.dir, "a.yaml", config("acme", urlB))
	s.eventuallyServes(t, "w.acme "+urlB)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA)) // the new directory is watched
	s.eventuallyServes(t, "v.acme "+urlA)
}

func TestDirectoryIsReadWithoutEvents(t *testing.T) {
	s := newSource(t, nil)
	s.directory.reread = 20 * time.Millisecond
	s.Extensions.Serve(urlA, "v")
	elsewhere := t.TempDir()
	writeFile(t, elsewhere, "a.yaml", "# nothing\n")
	if err := os.Symlink(filepath.Join(elsewhere, "a.yaml"), filepath.Join(s.dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	s.run(t)
	s.eventuallyReady(t)
	writeFile(t, elsewhere, "a.yaml", config("acme", urlA)) // which is not watched
	s.eventuallyServes(t, "v.acme "+urlA)
}

func TestDirectoryErrorsAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, filepath.Dir(file), "file", "")
	for name, tc := range map[string]struct{ dir, want string }{
		"Missing": {file + "s", "no such file or directory; create the directory, or name"},
		"File":    {file, "not a directory; name the directory"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, nil)
			s.directory.dir = tc.dir
			err := s.directory.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if s.Registry.Snapshot().Ready() {
				t.Error("the registry must not be ready")
			}
		})
	}
}

func TestNewDirectoryErrors(t *testing.T) {
	valid := Config{Dir: "d", Catalog: catalog.New(), Registry: registry.New(), Discoverer: discoverytest.NewExtensions(), Logger: (&discoverytest.Logs{}).Logger()}
	if _, err := New(valid); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"Dir is required":     func(c *Config) { c.Dir = "" },
		"Resync must be":      func(c *Config) { c.Resync = -1 },
		"backoff: BaseDelay":  func(c *Config) { c.Backoff.Jitter = 0.1 },
		"Logger are required": func(c *Config) { c.Logger = nil },
		"Catalog, Registry":   func(c *Config) { c.Catalog = nil },
	} {
		c := valid
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestDirectoryEmpty(t *testing.T) {
	s := newSource(t, nil)
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyLogs(t, "level=WARN", "directory defines no ExtensionConfig yet")
}

// TestDirectoryWarning checks that the errors are counted, and that the first of them are there with file and line.
func TestDirectoryWarning(t *testing.T) {
	s := newSource(t, nil)
	s.run(t)
	s.eventuallyReady(t)
	for _, step := range []struct {
		file, content, want string
		details             int
		last                string // of the details
	}{
		{"a.yaml", "kind: Nothing\n", "1 error", 1, "/a.yaml:1: "},
		{"b.yaml", "# a comment\nkind: Nothing\n", "2 errors", 2, "/b.yaml:2: "},
		{"c.yaml", strings.Repeat("kind: Nothing\n---\n", limits.Problems), fmt.Sprintf("%d errors, of which these are the first; the log has all of them", limits.Problems+2), limits.Problems, "/c.yaml:35: "},
		{"c.yaml", "kind: " + strings.Repeat("N", 2*limits.ProblemBytes) + "\n", "3 errors", 3, "/c.yaml:1: "},
	} {
		writeFile(t, s.dir, step.file, step.content)
		process.Eventually(t, "the warning is "+step.want, func() bool { return s.directory.Warning().Text == step.want })
		got := s.directory.Warning().Details
		if len(got) != step.details || !strings.HasPrefix(got[len(got)-1], s.dir+step.last) || len(got[len(got)-1]) > limits.ProblemBytes {
			t.Errorf("%s: got %q, want %d that end with %s", step.want, got, step.details, s.dir+step.last)
		}
	}
}

// The loss of all manifests unregisters nothing before a Reload confirms it, and says so.
func TestDirectoryThatIsEmptied(t *testing.T) {
	s := newSource(t, nil)
	s.directory.reread = 50 * time.Millisecond
	s.Extensions.Serve(urlA, "v")
	remove := func() {
		if err := os.Remove(filepath.Join(s.dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	s.run(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	remove()
	s.eventuallyLogs(t, "directory is emptied", "stay registered until SIGHUP confirms the removal")
	process.Eventually(t, "there is a warning", func() bool {
		return strings.Contains(s.directory.Warning().Text, "no longer defines ExtensionConfig")
	})
	writeFile(t, s.dir, "a.yaml", config("acme", urlA)) // it was only being replaced
	process.Eventually(t, "the warning is over", func() bool { return s.directory.Warning().Text == "" })
	s.eventuallyServes(t, "v.acme "+urlA)
	remove()
	process.Eventually(t, "there is a warning", func() bool { return s.directory.Warning().Text != "" })
	s.eventuallyServes(t, "v.acme "+urlA)
	s.directory.Reload()
	s.eventuallyServes(t)
	s.eventuallyLogs(t, "all are unregistered")
	process.Eventually(t, "the warning is over", func() bool { return s.directory.Warning().Text == "" })
}

func TestDirectoryFilesThatCannotBeRead(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	if err := syscall.Mkfifo(filepath.Join(s.dir, "fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "dir.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.dir, "large.yaml", "")
	if err := os.Truncate(filepath.Join(s.dir, "large.yaml"), limits.ManifestBytes+1); err != nil {
		t.Fatal(err)
	}
	s.run(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	for _, want := range []string{"fifo.yaml:1: not a regular file", "large.yaml:1: larger than 8388608 bytes"} {
		s.eventuallyLogs(t, "level=ERROR", want)
	}
	if got := s.Logs.Lines("dir.yaml"); len(got) > 0 {
		t.Errorf("a directory is no manifest, got %q", got)
	}
}

func TestDirectoryWarnsOfCAFromSecret(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	writeFile(t, s.dir, "a.yaml", strings.Replace(config("acme", urlA), "  name: acme",
		"  name: acme\n  annotations: {runtime.cluster.x-k8s.io/inject-ca-from-secret: ns/ca}", 1))
	s.run(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	s.eventuallyLogs(t, "level=WARN", "a.yaml:5: ", "needs a cluster", "put ca.crt of the secret into spec.clientConfig.caBundle")
}

// TestDirectoryServesBesideAnUnreachableExtension: it delays neither the other extensions nor, for long, readiness.
func TestDirectoryServesBesideAnUnreachableExtension(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "b.yaml", config("down", urlB))
	writeFile(t, s.dir, "c.yaml", config("wrong", "http://c.example.com"))
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	s.eventuallyLogs(t, "level=ERROR", "extensionConfig=down", "connection refused", "nothing is served for it yet")
	s.Extensions.Serve(urlB, "w") // it comes
	s.eventuallyServes(t, "v.acme "+urlA, "w.down "+urlB)
	if got := s.Logs.Lines("level=ERROR", "extensionConfig=down"); len(got) != 1 {
		t.Errorf("the failure is logged %d times", len(got))
	}
}

func TestDirectoryIsReadyAfterTheFirstPass(t *testing.T) {
	s := newSource(t, nil)
	asked, answer := make(chan struct{}), make(chan struct{})
	s.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		close(asked)
		<-answer
		return extension.Discovered{Handlers: discoverytest.Handlers("v")}, nil
	})
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "b.yaml", config("down", urlB))
	s.directory.patience = time.Hour
	s.run(t)
	<-asked
	process.Eventually(t, "the other was tried", func() bool { return s.Observer.Has("down Unreachable") })
	if s.Registry.Snapshot().Ready() {
		t.Error("one ExtensionConfig was not tried yet")
	}
	close(answer)
	s.eventuallyReady(t)
	s.Serves(t, "with what was discovered", "v.acme "+urlA)
}

func TestDirectoryReadinessHasALimit(t *testing.T) {
	s := newSource(t, nil)
	if s.directory.patience != time.Second {
		t.Errorf("patience is %v, want a second: one slow extension keeps all others waiting", s.directory.patience)
	}
	s.directory.patience = 50 * time.Millisecond
	s.Extensions.Hang(urlA)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	s.run(t)
	s.eventuallyReady(t)
}

// discoveryServer is a real extension as far as discovery goes.
type discoveryServer struct {
	*httptest.Server
	names atomic.Pointer[[]string]
}

func newDiscoveryServer(t *testing.T, names ...string) *discoveryServer {
	t.Helper()
	s := &discoveryServer{}
	s.names.Store(&names)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery" {
			http.NotFound(w, r)
			return
		}
		var list []string
		for _, name := range *s.names.Load() {
			list = append(list, fmt.Sprintf(`{"name": %q, "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"}}`, name))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "kind": "DiscoveryResponse", "status": "Success", "handlers": [%s]}`, strings.Join(list, ","))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are part of the tests
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *discoveryServer) ca() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// TestDirectoryWithRealExtensions drives all parts together: files, discovery over TLS, and the registry.
func TestDirectoryWithRealExtensions(t *testing.T) {
	hooks := catalog.New()
	rest := extension.NewREST(extension.Config{Catalog: hooks, Codec: codec.New(hooks)})
	t.Cleanup(rest.Close)
	s := newSource(t, rest)
	s.directory.workers.resync = 20 * time.Millisecond
	server := newDiscoveryServer(t, "v")
	stranger := newDiscoveryServer(t, "x")

	writeFile(t, s.dir, "a.yaml", config("acme", server.URL, "    caBundle: "+server.ca()))
	writeFile(t, s.dir, "b.yaml", config("untrusted", stranger.URL))
	s.run(t)
	s.eventuallyServes(t, "v.acme "+server.URL)
	s.eventuallyReady(t)
	s.eventuallyLogs(t, "level=ERROR", "extensionConfig=untrusted", "certificate")

	server.names.Store(&[]string{"w", "v"}) // an upgrade behind the same URL
	s.eventuallyServes(t, "v.acme "+server.URL, "w.acme "+server.URL)
	writeFile(t, s.dir, "b.yaml", config("untrusted", stranger.URL, "    caBundle: "+stranger.ca()))
	s.eventuallyServes(t, "v.acme "+server.URL, "w.acme "+server.URL, "x.untrusted "+stranger.URL)

	server.names.Store(&[]string{"Scan", "scan"})
	s.eventuallyLogs(t, "level=ERROR", "extensionConfig=acme", "its last known handlers are still served: 2")
	server.Close() // it goes away, and keeps its handlers
	s.eventuallyLogs(t, "level=ERROR", "extensionConfig=acme", "refused")
	s.Serves(t, "it keeps its handlers", "v.acme "+server.URL, "w.acme "+server.URL, "x.untrusted "+stranger.URL)
}

const definitionHead = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"

// References know the directory's definitions once it is ready, and follow them.
func TestDirectoryDefinitions(t *testing.T) {
	s := newSource(t, nil)
	references := convert.NewReferences()
	s.directory.references = references
	manifest := func(version string) string {
		return definitionHead + "metadata: {name: acmeclusters.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta2: " + version + "}}\n"
	}
	version := func() string {
		v, err := references.APIVersion("infrastructure.cluster.x-k8s.io", "AcmeCluster")
		if err != nil {
			return err.Error()
		}
		return v
	}
	writeFile(t, s.dir, "crds.yaml", manifest("v1alpha3_v1beta1"))
	s.run(t)
	s.eventuallyReady(t)
	if got, want := version(), "infrastructure.cluster.x-k8s.io/v1beta1"; got != want {
		t.Errorf("when it is ready: %s, want %s", got, want)
	}
	own, err := references.APIVersion("infrastructure.hookgate.dev", "HookgateMachine")
	if want := "infrastructure.hookgate.dev/v1alpha1"; err != nil || own != want {
		t.Errorf("a kind of Hookgate's, whose definition is not there: %q, %v, want %s", own, err, want)
	}
	for _, step := range []struct{ content, want string }{
		{manifest("v1"), "infrastructure.cluster.x-k8s.io/v1"},
		{"\t", "infrastructure.cluster.x-k8s.io/v1"}, // half-written
		{manifest("v2"), "infrastructure.cluster.x-k8s.io/v2"},
		{"# nothing\n", "add its manifest to the directory"},
	} {
		writeFile(t, s.dir, "crds.yaml", step.content)
		process.Eventually(t, "the version is "+step.want, func() bool { return strings.Contains(version(), step.want) })
	}
	s.eventuallyLogs(t, "manifests read", "customResourceDefinitions=1")
}
