// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// patience is how long a test waits for a state before it fails.
const patience = process.ServerPatience

// stopPatience is how long a replica may take to stop.
const stopPatience = 30 * time.Second

// writes records the requests of a replica that change the cluster, except for Leases and events, which are written
// later in the background.
type writes struct {
	mu   sync.Mutex
	list []string
}

// before returns a RoundTripper that records the writes sent through it to next. A replica has several clients.
func (w *writes) before(next http.RoundTripper) http.RoundTripper {
	return watched{next: next, writes: w}
}

// watched is one client's transport to the API server.
type watched struct {
	next   http.RoundTripper
	writes *writes
}

func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	w.writes.note(r)
	return w.next.RoundTrip(r)
}

func (w *writes) note(r *http.Request) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") &&
		!strings.Contains(r.URL.Path, "/events") {
		w.mu.Lock()
		w.list = append(w.list, r.Method+" "+r.URL.Path)
		w.mu.Unlock()
	}
}

// since returns all but the first n writes.
func (w *writes) since(n int) []string { return w.all()[n:] }

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// replica is a running Source.
type replica struct {
	*controllers.Source
	client   client.Client // for the test, not the replica's
	registry *registry.Registry
	writes   *writes
	log      *process.Log
	stop     func()
}

// start runs a Source that watches the test's ExtensionConfigs until the end of the test.
func start(t testing.TB, change func(*controllers.Config)) *replica {
	t.Helper()
	r := prepare(t, change)
	r.run(t)
	return r
}

func prepare(t testing.TB, change func(*controllers.Config)) *replica {
	t.Helper()
	config, c := connect(t)
	r := &replica{client: c, registry: registry.New(), writes: &writes{}, log: &process.Log{}, stop: func() {}}
	config.QPS, config.Burst = 1000, 1000
	config.Wrap(r.writes.before)
	hooks := catalog.New()
	discoverer := extension.NewProtocols(extension.Config{
		Catalog: hooks, Codec: codec.New(hooks), LookupHost: lookup, MaxConnectionAge: time.Millisecond,
	})
	t.Cleanup(discoverer.Close)
	sourceConfig := controllers.Config{
		Catalog: hooks,
		REST:    config, Registry: r.registry,
		Logger:         slog.New(slog.NewTextHandler(r.log, nil)),
		WatchFilter:    filterOf(t),
		Resync:         time.Hour, // tests that want more say so
		SecretInterval: 20 * time.Millisecond,
		Shared: discovery.Shared{
			Discoverer: discoverer,
			Backoff:    discovery.Backoff{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, MaxDelay: 200 * time.Millisecond},
		},
	}
	if change != nil {
		change(&sourceConfig)
	}
	source, err := controllers.New(sourceConfig)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = source
	return r
}

func (r *replica) run(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("source ended: %v", err)
			}
		case <-time.After(stopPatience):
			stacks := make([]byte, 1<<20)
			t.Errorf("source did not end within %s:\n%s", stopPatience, stacks[:runtime.Stack(stacks, true)])
		}
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("the replica logged:\n%s", r.log)
		}
	})
}

func (r *replica) ready(t testing.TB) {
	t.Helper()
	select {
	case <-r.registry.Ready():
	case <-time.After(patience):
		t.Fatalf("replica was not ready within %s", patience)
	}
}

// served returns the registered handlers, as name and URL.
func (r *replica) served() []string {
	var list []string
	for _, e := range r.registry.Snapshot().All() {
		list = append(list, e.Name+" "+e.Registration.ClientConfig.URL)
	}
	return list
}

// serves waits until the replica has registered exactly these handlers.
func (r *replica) serves(t testing.TB, want ...string) {
	t.Helper()
	eventually(t, "served is "+strings.Join(want, ", "), func() (string, bool) {
		got := r.served()
		return strings.Join(got, ", "), slices.Equal(got, want)
	})
}

// eventually waits until check holds; check also returns what it saw.
func eventually(t testing.TB, what string, check func() (saw string, ok bool)) {
	t.Helper()
	process.EventuallySees(t, patience, what, check)
}

// filterOf returns the value of the watch-filter label of a test.
func filterOf(t testing.TB) string {
	t.Helper()
	return strings.ToLower(strings.NewReplacer("/", ".", "_", "-", "#", "-").Replace(t.Name()))
}

// newConfig returns an ExtensionConfig of the test for the extension.
func newConfig(t testing.TB, name string, s *serverOf) *runtimev1.ExtensionConfig {
	t.Helper()
	c := &runtimev1.ExtensionConfig{}
	c.Name = name
	c.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
	if s != nil {
		c.Spec.ClientConfig = runtimev1.ClientConfig{URL: s.URL, CABundle: s.ca()}
	}
	return c
}

// create creates an object and deletes it at the end of the test.
func create(t testing.TB, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(context.Background(), o); err != nil {
		t.Fatalf("create %s: %v", o.GetName(), err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), o); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete %s: %v", o.GetName(), err)
		}
	})
}

// update changes the current ExtensionConfig in the cluster.
func update(t testing.TB, c client.Client, name string, change func(*runtimev1.ExtensionConfig)) {
	t.Helper()
	for {
		config := get(t, c, name)
		change(config)
		err := c.Update(context.Background(), config)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatalf("update %s: %v", name, err)
		}
	}
}

func get(t testing.TB, c client.Client, name string) *runtimev1.ExtensionConfig {
	t.Helper()
	config := &runtimev1.ExtensionConfig{}
	if err := c.Get(context.Background(), client.ObjectKey{Name: name}, config); err != nil {
		t.Fatalf("get %s: %v", name, err)
	}
	return config
}

// awaitCondition waits until a condition has status, for the current generation, and a message that contains part.
func awaitCondition(t testing.TB, c client.Client, name, kind string, status metav1.ConditionStatus,
	part string) *runtimev1.ExtensionConfig {
	t.Helper()
	var config *runtimev1.ExtensionConfig
	eventually(t, name+": condition "+kind+" is "+string(status)+" with "+part, func() (string, bool) {
		config = get(t, c, name)
		found := meta.FindStatusCondition(config.Status.Conditions, kind)
		if found == nil {
			return "no such condition", false
		}
		return string(found.Status) + " " + found.Message,
			found.Status == status && strings.Contains(found.Message, part) &&
				found.ObservedGeneration == config.Generation
	})
	return config
}

func clientKey(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }
