// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/gateway"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/machines"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/sdk"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/apiserver"
)

// patience is how long a test waits for a state before it fails.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m)) }

// sharedServer returns the API server of all tests.
func sharedServer(t testing.TB) *envtest.Environment {
	t.Helper()
	crds := filepath.Join("..", "..", "deploy", "crd")
	return apiserver.Shared(t, apiserver.New(t,
		[]string{filepath.Join(crds, "machines"), filepath.Join(crds, "hookgate.dev_clusterrecords.yaml")},
		anykind.OfClusterAPI("Cluster"), anykind.OfClusterAPI("Machine")))
}

// fixture is a namespace with a Cluster, a gateway with an extension, and the controllers.
type fixture struct {
	t         testing.TB
	config    *rest.Config
	client    client.Client // reads from the API server
	namespace string
	registry  *registry.Registry
	url       string // of the extension
	hooks     machines.Hooks
	new       func(*machines.Config) // changes the configuration of the controllers
	writes    atomic.Int64           // of the controllers, but for Leases and events
	metrics   *prometheus.Registry
	stop      func()

	mu      sync.Mutex
	answers map[string]func() (sdk.Answer, error) // by hook, or by hook and Machine
	calls   map[string]int                        // by hook and Machine

	remediated []*machinesv1alpha1.RemediateMachineRequest
	deleted    []*machinesv1alpha1.AfterClusterDeleteRequest

	namespaces gateway.Namespaces
	selector   labels.Selector // of the namespaces of the extension
}

var worlds atomic.Int64

// newFixture returns a fixture whose extension has no handlers yet, and whose controllers do not run.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(scheme), machines.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &fixture{
		t: t, config: sharedServer(t).Config, namespace: fmt.Sprintf("w%d", worlds.Add(1)), stop: func() {},
		answers: map[string]func() (sdk.Answer, error){}, calls: map[string]int{}, new: func(*machines.Config) {},
		namespaces: anyNamespace{},
	}
	var err error
	if w.client, err = client.New(w.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	c := &clusterv1.Cluster{}
	c.Name = "c"
	w.create(c)
	w.serve()
	w.newGateway()
	return w
}

// serve serves the extension.
func (w *fixture) serve() {
	x := &sdk.Extension{Logger: slog.New(slog.DiscardHandler)}
	sdk.Handle(x, "provisioned", func(_ context.Context, in *machinesv1alpha1.AfterMachineProvisionedRequest) (sdk.Answer, error) {
		return w.answer("AfterMachineProvisioned", in)
	})
	sdk.Handle(x, "drain", func(_ context.Context, in *machinesv1alpha1.BeforeMachineDrainRequest) (sdk.Answer, error) {
		return w.answer("BeforeMachineDrain", in)
	})
	sdk.Handle(x, "terminate", func(_ context.Context, in *machinesv1alpha1.BeforeMachineTerminateRequest) (sdk.Answer, error) {
		return w.answer("BeforeMachineTerminate", in)
	})
	sdk.Handle(x, "before", func(_ context.Context, in *machinesv1alpha1.BeforeMachineRemediationRequest) (sdk.Answer, error) {
		return w.answer("BeforeMachineRemediation", in)
	})
	sdk.Handle(x, "remediate", func(_ context.Context, in *machinesv1alpha1.RemediateMachineRequest) (sdk.Answer, error) {
		w.mu.Lock()
		w.remediated = append(w.remediated, in)
		w.mu.Unlock()
		return w.answer("RemediateMachine", in)
	})
	sdk.Handle(x, "deleted", func(_ context.Context, in *machinesv1alpha1.AfterClusterDeleteRequest) (sdk.Answer, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.deleted = append(w.deleted, in)
		if f := w.answers["AfterClusterDelete"]; f != nil {
			return f()
		}
		return sdk.Done(), nil
	})
	dir, err := os.MkdirTemp("", "hookgate-machines-") // t.TempDir is too long for a socket
	if err != nil {
		w.t.Fatal(err)
	}
	socket := "unix://" + filepath.Join(dir, "x")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Serve(ctx, sdk.Config{Address: socket}) }()
	w.url = socket
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("extension: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
}

// answer answers a hook as the test wants it to, or with done.
func (w *fixture) answer(hookName string, in sdkRequest) (sdk.Answer, error) {
	var m struct{ Metadata struct{ Name string } }
	if err := sdk.Load(in, "machine", &m); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := hookName + " " + m.Metadata.Name
	w.calls[key]++
	for _, name := range []string{key, hookName} {
		if f := w.answers[name]; f != nil {
			return f()
		}
	}
	return sdk.Done(), nil
}

// says sets what the extension answers to a hook, or to a hook about a Machine.
func (w *fixture) says(what string, f func() (sdk.Answer, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[what] = f
}

func (w *fixture) called(hookName, machine string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[hookName+" "+machine]
}

// newGateway makes the gateway, whose registry is ready.
func (w *fixture) newGateway() {
	hooks, versions, err := gateway.Hooks(gateway.Infrastructure(), gateway.Machines())
	if err != nil {
		w.t.Fatal(err)
	}
	mandated := codec.New(hooks)
	w.registry = registry.New(hooks.Merged()...)
	w.metrics = prometheus.NewRegistry()
	transports := extension.NewProtocols(extension.Config{Catalog: hooks, Codec: mandated})
	w.t.Cleanup(transports.Close)
	logger := slog.New(slog.DiscardHandler)
	d := gateway.NewDispatcher(gateway.Config{
		Catalog: hooks, Versions: versions, Registry: w.registry, Namespaces: w,
		Parts: shared.Parts{
			Codec: mandated, Transport: transports.Call, Objects: convert.NewObjects(convert.NewReferences()),
			Observer: observe.NewObserver(observe.NewMetrics(w.metrics, w.registry, hooks, "test"), noop.NewTracerProvider(), logger,
				convert.NewLosses(nil)),
		},
	})
	w.hooks = gateway.NewInProcess(d, "test")
	w.registry.SetReady()
}

// NamespaceLabels implements gateway.Namespaces.
func (w *fixture) NamespaceLabels(name string) (map[string]string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.namespaces.NamespaceLabels(name)
}

type anyNamespace struct{}

func (anyNamespace) NamespaceLabels(name string) (map[string]string, bool) {
	return map[string]string{corev1.LabelMetadataName: name}, true
}

// register registers handlers of hooks, for Machines with the label tier=held.
func (w *fixture) register(hooks ...string) {
	w.t.Helper()
	reg := registry.Registration{
		Name: "acme", ClientConfig: registry.ClientConfig{Owner: "acme", Protocol: registry.GRPC, URL: w.url},
		NamespaceSelector: w.selector,
	}
	names := map[string]string{
		"AfterMachineProvisioned": "provisioned", "BeforeMachineDrain": "drain", "BeforeMachineTerminate": "terminate",
		"BeforeMachineRemediation": "before", "RemediateMachine": "remediate", "AfterClusterDelete": "deleted",
	}
	for _, h := range hooks {
		reg.Handlers = append(reg.Handlers, registry.Handler{
			Name: names[h], Timeout: 5 * time.Second, FailurePolicy: hook.Fail,
			Hook: hook.GroupVersionHook{Group: hook.MachinesGroup, Version: hook.MachinesVersion, Hook: h},
		})
	}
	w.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{
		Name: "acme", ObjectSelector: labels.SelectorFromSet(labels.Set{"tier": "held"}),
	}})
	if err := w.registry.Apply(reg); err != nil {
		w.t.Fatal(err)
	}
}

// start starts the controllers.
func (w *fixture) start() {
	w.t.Helper()
	config := rest.CopyConfig(w.config)
	config.QPS, config.Burst = 500, 1000
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &w.writes} })
	hooks, _, err := gateway.Hooks(gateway.Infrastructure(), gateway.Machines())
	if err != nil {
		w.t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	if os.Getenv("HOOKGATE_TEST_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	c := machines.Config{
		REST: config, Catalog: hooks, Hooks: w.hooks, Registry: w.registry, Metrics: prometheus.NewRegistry(), Logger: logger,
		Namespace: w.namespace,
		LeaderElection: machines.LeaderElection{
			Enabled: true, Namespace: w.namespace, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second,
			RetryPeriod: 200 * time.Millisecond,
		},
	}
	w.new(&c)
	controllers, err := machines.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- controllers.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Errorf("controllers: %v", err)
			}
		})
	}
	w.t.Cleanup(w.stop)
}

// counting counts writes.
type counting struct {
	next   http.RoundTripper
	writes *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "/events") {
		c.writes.Add(1)
	}
	return c.next.RoundTrip(r)
}

func (w *fixture) create(o client.Object) {
	w.t.Helper()
	if _, namespace := o.(*corev1.Namespace); !namespace {
		o.SetNamespace(w.namespace)
	}
	if err := w.client.Create(context.Background(), o); err != nil {
		w.t.Fatal(err)
	}
}

// machine creates a Machine with a finalizer, as Cluster API's.
func (w *fixture) machine(name, tier string) *clusterv1.Machine {
	w.t.Helper()
	m := &clusterv1.Machine{}
	m.Name, m.Spec.ClusterName = name, "c"
	m.Labels = map[string]string{"tier": tier}
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	w.create(m)
	return m
}

// status changes the status of a Machine, as Cluster API does.
func (w *fixture) status(name string, change func(*clusterv1.MachineStatus)) {
	w.t.Helper()
	m := w.get(name)
	before := m.DeepCopy()
	change(&m.Status)
	if err := w.client.Status().Patch(context.Background(), m, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

// waits makes Cluster API wait for hooks in a Machine's deletion.
func (w *fixture) waits(name, reason string) {
	w.t.Helper()
	w.status(name, func(s *clusterv1.MachineStatus) {
		s.Deletion = &clusterv1.MachineDeletionStatus{}
		now := metav1.Now()
		if reason == clusterv1.MachineDeletingWaitingForPreDrainHookReason {
			s.Deletion.WaitForPreDrainHookStartTime = now
		} else {
			s.Deletion.WaitForPreTerminateHookStartTime = now
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason,
		})
	})
}

func (w *fixture) delete(name string) {
	w.t.Helper()
	if err := w.client.Delete(context.Background(), w.get(name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) get(name string) *clusterv1.Machine {
	w.t.Helper()
	m := &clusterv1.Machine{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, m); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return m
}

// has waits until a Machine has exactly these of the controllers' annotations of deletion.
func (w *fixture) has(name string, want ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("Machine %s has the annotations %v", name, want), func() (string, bool) {
		got := annotationsOf(w.get(name))
		return fmt.Sprint(got), fmt.Sprint(got) == fmt.Sprint(want)
	})
}

func annotationsOf(m *clusterv1.Machine) []string {
	var got []string
	for short, annotation := range map[string]string{"drain": machines.DrainAnnotation, "terminate": machines.TerminateAnnotation} {
		if _, ok := m.Annotations[annotation]; ok {
			got = append(got, short)
		}
	}
	if len(got) == 2 {
		got = []string{"drain", "terminate"}
	}
	return got
}

// held waits until the condition of a Machine says that; "" wants no condition.
func (w *fixture) held(name, want string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("Machine %s is held: %q", name, want), func() (string, bool) {
		c := meta.FindStatusCondition(w.get(name).Status.Conditions, machines.HeldCondition)
		if c == nil {
			return "not held", want == ""
		}
		got := c.Reason + ": " + c.Message
		return got, got == want
	})
}

// event waits for an event about a Machine.
func (w *fixture) event(machine, want string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("there is the event %q", want), func() (string, bool) {
		list := &eventsv1.EventList{}
		if err := w.client.List(context.Background(), list, client.InNamespace(w.namespace)); err != nil {
			return err.Error(), false
		}
		var all []string
		for _, e := range list.Items {
			if e.Regarding.Name == machine {
				all = append(all, e.Reason+": "+e.Note)
			}
		}
		return strings.Join(all, "\n"), strings.Contains(strings.Join(all, "\n"), want)
	})
}

func (w *fixture) eventually(what string, check func() (saw string, ok bool)) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		saw, ok := check()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("still not: %s; last seen: %s", what, saw)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
