// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// patience is how long a test waits for something before it fails.
const patience = time.Minute

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// extensions is a Discoverer whose extensions all give the same answer.
type extensions struct {
	mu       sync.Mutex
	discover func(context.Context, registry.ClientConfig) (extension.Discovered, error)
	asked    []registry.ClientConfig
}

func (e *extensions) Discover(ctx context.Context, c registry.ClientConfig) (extension.Discovered, error) {
	e.mu.Lock()
	e.asked = append(e.asked, c)
	discover := e.discover
	e.mu.Unlock()
	return discover(ctx, c)
}

func (*extensions) Retain([]registry.ClientConfig) {}

func (e *extensions) set(discover func(context.Context, registry.ClientConfig) (extension.Discovered, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.discover = discover
}

// serve makes the extensions answer with these handlers.
func (e *extensions) serve(handlers ...registry.Handler) {
	e.set(func(context.Context, registry.ClientConfig) (extension.Discovered, error) {
		return extension.Discovered{Handlers: handlers}, nil
	})
}

// fail makes the extensions fail.
func (e *extensions) fail(message string) {
	e.set(func(context.Context, registry.ClientConfig) (extension.Discovered, error) {
		return extension.Discovered{}, hook.Errorf(hook.Unreachable, "%s", message)
	})
}

// calls returns the discoveries so far, as clients.
func (e *extensions) calls() []registry.ClientConfig {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// rounds waits until each of n extensions could have been discovered that often again.
func (e *extensions) rounds(t testing.TB, n int) {
	t.Helper()
	before := len(e.calls())
	eventually(t, fmt.Sprintf("%d more discoveries", n), func() (string, bool) {
		more := len(e.calls()) - before
		return strconv.Itoa(more), more >= n
	})
}

// awaitCalls waits until the extensions have been asked n times since the start. Unlike rounds, it counts what was
// asked before it is called.
func (e *extensions) awaitCalls(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d discoveries since the start", n), func() (string, bool) {
		asked := len(e.calls())
		return strconv.Itoa(asked), asked >= n
	})
}

// named returns a handler of BeforeClusterCreate, which states that it understands that version of objects, if it is
// not empty.
func named(name, clusterAPIVersion string) registry.Handler {
	return registry.Handler{
		Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
		Timeout: 10 * time.Second, FailurePolicy: hook.Fail, ClusterAPIVersion: clusterAPIVersion,
	}
}

// replica is a Source that runs against an apiServer.
type replica struct {
	*apiServer
	source     *controllers.Source
	registry   *registry.Registry
	extensions *extensions
	log        *process.Log
	stop       func()
}

// start runs a Source until the end of the test, and waits until it is ready. By default, it repeats discovery only
// after changes and failures, and its extensions have one handler. A Source that is ready may already have discovered
// what was registered before, so configure has to say what else those extensions answer.
func start(t testing.TB, api *apiServer, configure func(*controllers.Config)) *replica {
	t.Helper()
	r := &replica{apiServer: api, registry: registry.New(), extensions: &extensions{}, log: &process.Log{}}
	r.extensions.serve(named("a", ""))
	c := controllers.Config{
		REST:           api.config(),
		Catalog:        catalog.New(),
		Registry:       r.registry,
		Logger:         slog.New(slog.NewTextHandler(r.log, nil)),
		Resync:         time.Hour,
		SecretInterval: 20 * time.Millisecond,
		Shared: discovery.Shared{
			Discoverer: r.extensions,
			Backoff:    discovery.Backoff{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
		},
	}
	c.AwaitWrites()
	if configure != nil {
		configure(&c)
	}
	source, err := controllers.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.source = source
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("source ended: %v", err)
			}
		case <-time.After(patience):
			t.Errorf("source did not end within %s", patience)
		}
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("the source logged:\n%s", r.log)
		}
	})
	select {
	case <-r.registry.Ready():
	case <-time.After(patience):
		t.Fatalf("source is not ready within %s", patience)
	}
	return r
}

// answering makes the extensions of a Source answer so from the start.
func answering(
	c *controllers.Config,
	discover func(context.Context, registry.ClientConfig) (extension.Discovered, error),
) {
	c.Discoverer.(*extensions).set(discover)
}

// serving makes the extensions of a Source answer with these handlers from the start.
func serving(c *controllers.Config, handlers ...registry.Handler) {
	c.Discoverer.(*extensions).serve(handlers...)
}

// following makes a Source one of several replicas, of which another leads.
func following(api *apiServer) func(*controllers.Config) {
	api.lease("other")
	return elected
}

func elected(c *controllers.Config) {
	c.LeaderElection = controllers.LeaderElection{
		Enabled: true, Namespace: "system", Name: "hookgate",
		LeaseDuration: time.Hour, RenewDeadline: patience, RetryPeriod: 50 * time.Millisecond,
	}
}

// lease gives the lease to a replica, or to none.
func (s *apiServer) lease(holder string) {
	now := metav1.NowMicro()
	lease := coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	lease.Namespace, lease.Name = "system", "hookgate"
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity:       &holder,
		LeaseDurationSeconds: new(int32(3600)),
		AcquireTime:          &now,
		RenewTime:            &now,
	}
	s.put("/apis/coordination.k8s.io/v1/namespaces/system/leases/hookgate", lease)
}

const configs = "/apis/" + controllers.ClusterAPIGroup + "/v1beta2/extensionconfigs/"

// register creates an ExtensionConfig, or changes it.
func (s *apiServer) register(name string, change func(*runtimev1.ExtensionConfig)) {
	config := s.get(name)
	if config == nil {
		config = &runtimev1.ExtensionConfig{
			TypeMeta: metav1.TypeMeta{APIVersion: controllers.ClusterAPIGroup + "/v1beta2", Kind: "ExtensionConfig"},
		}
		config.Name = name
		config.Spec.ClientConfig.URL = "https://" + name + ".example.com"
	}
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	if change != nil {
		change(config)
	}
	s.put(configs+name, config)
}

// get returns an ExtensionConfig, nil if there is none.
func (s *apiServer) get(name string) *runtimev1.ExtensionConfig {
	var config *runtimev1.ExtensionConfig
	s.read(configs+name, &config)
	return config
}

// secret creates or replaces a Secret.
func (s *apiServer) secret(name string, data map[string][]byte) {
	o := corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: data}
	o.Namespace, o.Name = "system", name
	s.put("/api/v1/namespaces/system/secrets/"+name, o)
}

// awaitCondition waits until a condition of an ExtensionConfig has that status and message, for its generation.
func (s *apiServer) awaitCondition(
	t testing.TB,
	name, kind string,
	status metav1.ConditionStatus,
	message string,
) *runtimev1.ExtensionConfig {
	t.Helper()
	var config *runtimev1.ExtensionConfig
	eventually(t, fmt.Sprintf("condition %s of %s is %s: %s", kind, name, status, message), func() (string, bool) {
		config = s.get(name)
		c := meta.FindStatusCondition(config.Status.Conditions, kind)
		if c == nil {
			return "no such condition", false
		}
		return string(
				c.Status,
			) + " " + c.Message, c.Status == status && c.Message == message &&
				c.ObservedGeneration == config.Generation
	})
	return config
}

// awaitNone waits until an ExtensionConfig has no such condition.
func (s *apiServer) awaitNone(t testing.TB, name, kind string) {
	t.Helper()
	eventually(t, name+" has no condition "+kind, func() (string, bool) {
		c := meta.FindStatusCondition(s.get(name).Status.Conditions, kind)
		return fmt.Sprint(c), c == nil
	})
}

// awaitDiscovered waits until an ExtensionConfig has been discovered and has no remark.
func (s *apiServer) awaitDiscovered(t testing.TB, name string) *runtimev1.ExtensionConfig {
	t.Helper()
	return s.awaitCondition(t, name, runtimev1.ExtensionConfigDiscoveredCondition, metav1.ConditionTrue, "")
}

// awaitServed waits until the registry has these handlers, each as "a.acme https://acme.example.com".
func (r *replica) awaitServed(t testing.TB, want ...string) {
	t.Helper()
	eventually(t, "served is "+strings.Join(want, ", "), func() (string, bool) {
		got := r.served()
		return strings.Join(got, ", "), slices.Equal(got, want)
	})
}

func (r *replica) served() []string {
	var list []string
	for _, e := range r.registry.Snapshot().All() {
		list = append(list, e.Name+" "+e.Registration.ClientConfig.URL)
	}
	return list
}

func (r *replica) awaitLog(t testing.TB, part string) {
	t.Helper()
	eventually(
		t,
		"the log has "+part,
		func() (string, bool) { return r.log.String(), strings.Contains(r.log.String(), part) },
	)
}

// eventually waits until check holds; check also returns what it saw.
func eventually(t testing.TB, what string, check func() (saw string, ok bool)) {
	t.Helper()
	process.EventuallySees(t, patience, what, check)
}
