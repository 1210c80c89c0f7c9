// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hookgate/hookgate/caller"
	"github.com/hookgate/hookgate/infrastructure"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// patience is how long a test waits for a state before it fails.
const patience = 2 * time.Minute

// fixture is a namespace with a class, the controllers for it, and their extension.
type fixture struct {
	t         testing.TB
	server    *envtest.Environment
	cloud     *cloud
	client    client.Client // reads from the API server
	namespace string        // also the name of the class and the watch filter
	system    string        // the namespace of the controllers
	log       *process.Log  // of the controllers; nil for none
	metrics   *prometheus.Registry
	writes    *writes
	stop      func() // stops the controllers
	address   string
}

// newFixture returns a fixture with a class that is ready.
func newFixture(t *testing.T, change ...func(*fixture)) *fixture {
	t.Helper()
	t.Parallel()
	w := newNamespace(t, sharedServer(t))
	for _, f := range change {
		f(w)
	}
	w.address = w.cloud.serve(t)
	w.start()
	w.createClass()
	t.Cleanup(func() { w.stop() })
	return w
}

// worlds counts the worlds of this process.
var worlds atomic.Int64

// newNamespace returns a fixture without controllers, whose extension does not serve yet.
func newNamespace(t testing.TB, server *envtest.Environment) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(scheme), infrastructure.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.NewReplacer("test", "t", "benchmark", "b").Replace(strings.ToLower(
		strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())))
	if len(name) > 50 {
		name = strings.TrimRight(name[:50], "-")
	}
	name = fmt.Sprintf("%s-%d", name, worlds.Add(1)) // with -count, a test runs again
	w := &fixture{t: t, server: server, cloud: newCloud(), client: c, namespace: name, system: name}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return w
}

// createClass creates the class of the fixture.
func (w *fixture) createClass(change ...func(*infrav1.InfrastructureClass)) *infrav1.InfrastructureClass {
	w.t.Helper()
	class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	class.Spec.ExtensionRef.Name = "acme"
	for _, f := range change {
		f(class)
	}
	w.create(class)
	return class
}

// start starts the controllers.
func (w *fixture) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.writes = &writes{}
	config := rest.CopyConfig(w.server.Config)
	config.Wrap(w.writes.before)
	config.QPS = 500
	config.Burst = 1000
	scheme := runtime.NewScheme()
	if err := infrastructure.AddToScheme(scheme); err != nil {
		w.t.Fatal(err)
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	gateway, err := caller.New(caller.Config{URL: "grpc://" + w.address, UserAgent: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.metrics = prometheus.NewRegistry()
	metrics := infrastructure.NewMetrics(w.metrics)
	logger := slog.New(slog.DiscardHandler)
	if testing.Verbose() && os.Getenv("HOOKGATE_TEST_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if w.log != nil {
		logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if err := infrastructure.Setup(ctx, mgr, infrastructure.Config{
		Gateway: gateway, Metrics: metrics, Logger: logger, WatchFilter: w.namespace, Namespace: w.system,
	}); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		gateway.Close()
	}
}

// restart stops the controllers and starts new ones.
func (w *fixture) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// create creates an object in the fixture's namespace with the watch label.
func (w *fixture) create(o client.Object) {
	w.t.Helper()
	w.place(o)
	if err := w.client.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// place gives an object the watch label and, unless it has none, the namespace of the fixture.
func (w *fixture) place(o client.Object) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.WatchLabel] = w.namespace
	o.SetLabels(labels)
	switch o.(type) {
	case *corev1.Namespace, *infrav1.InfrastructureClass, *infrav1.HookgateClusterIdentity:
	default:
		o.SetNamespace(w.namespace)
	}
}

// get reads an object again, and reports whether it exists.
func (w *fixture) get(o client.Object) bool {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// eventually waits until an object is as ok wants it.
func eventually[O client.Object](w *fixture, o O, what string, ok func(O) bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if w.get(o) && ok(o) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s %s: still not: %s; the conditions are:\n%s", kind(o), o.GetName(), what, conditionsOf(o))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// gone waits until an object does not exist.
func (w *fixture) gone(o client.Object) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for w.get(o) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s %s still exists; the conditions are:\n%s", kind(o), o.GetName(), conditionsOf(o))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// until waits for a state outside the API server.
func (w *fixture) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("still not: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// update changes an object, and repeats that if another writer was faster.
func update[O client.Object](w *fixture, o O, change func(O)) {
	w.t.Helper()
	for {
		if !w.get(o) {
			w.t.Fatalf("%s %s does not exist", kind(o), o.GetName())
		}
		change(o)
		err := w.client.Update(w.t.Context(), o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			w.t.Fatal(err)
		}
	}
}

// updateStatus changes the status of an object.
func updateStatus[O client.Object](w *fixture, o O, change func(O)) {
	w.t.Helper()
	for {
		w.get(o)
		change(o)
		err := w.client.Status().Update(w.t.Context(), o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			w.t.Fatal(err)
		}
	}
}

func (w *fixture) delete(o client.Object) {
	w.t.Helper()
	if _, ok := o.(*corev1.Secret); ok {
		o.SetNamespace(w.namespace)
	}
	if err := w.client.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

type conditioned interface{ GetConditions() []metav1.Condition }

// has reports whether an object has a condition with a status, a reason, and a text in its message.
func has(o client.Object, kind string, status metav1.ConditionStatus, reason, message string) bool {
	c, ok := o.(conditioned)
	if !ok {
		return false
	}
	found := meta.FindStatusCondition(c.GetConditions(), kind)
	return found != nil && found.Status == status && (reason == "" || found.Reason == reason) &&
		strings.Contains(found.Message, message)
}

func conditionsOf(o client.Object) string {
	c, ok := o.(conditioned)
	if !ok {
		return "none"
	}
	var b strings.Builder
	for _, x := range c.GetConditions() {
		b.WriteString("  " + x.Type + "=" + string(x.Status) + " " + x.Reason + ": " + x.Message + "\n")
	}
	return b.String()
}

func kind(o client.Object) string {
	s := strings.Split(strings.TrimPrefix(typeName(o), "*"), ".")
	return s[len(s)-1]
}

func jsonOf(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// secret returns a Secret with one value.
func secret(name, key, value string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if key != "" {
		s.Data = map[string][]byte{key: []byte(value)}
	}
	return s
}
