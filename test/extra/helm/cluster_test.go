// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// releaseName is the name under which the chart is installed.
const releaseName = "hookgate"

// cluster is a real API server, to which Helm installs. No controller runs in it, so that no Pods start, and nothing waits
// for them.
type cluster struct {
	client.Client
	config   *rest.Config
	cacheDir string // Helm's, of what the API server serves
	warnings *warnings
}

// startCluster starts an API server that knows the kinds of the projects that the chart makes objects of, and makes the
// namespace of the release as the guide does.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		BinaryAssetsDirectory: process.Program(t, "KUBEBUILDER_ASSETS"),
		CRDs: []*apiextensionsv1.CustomResourceDefinition{
			anykind.Of("cert-manager.io", "v1", "Certificate"), anykind.Of("cert-manager.io", "v1", "Issuer"),
			anykind.Of("monitoring.coreos.com", "v1", "ServiceMonitor"),
			anykind.Of("monitoring.coreos.com", "v1", "PrometheusRule"),
		},
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: process.ServerPatience},
		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start API server: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop API server: %v", err)
		}
	})
	c := &cluster{config: config, cacheDir: t.TempDir(), warnings: &warnings{}}
	if c.Client, err = client.New(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"cluster.x-k8s.io/provider": "runtime-extension-hookgate"}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		labels["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// helm returns what one command of Helm works with.
func (c *cluster) helm(t *testing.T) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(*rest.Config) *rest.Config {
		config := rest.CopyConfig(c.config)
		config.WarningHandlerWithContext, config.QPS = c.warnings, -1
		return config
	})
	flags.Namespace, flags.CacheDir = new(namespace), &c.cacheDir
	configuration := action.NewConfiguration()
	if err := configuration.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return configuration
}

// install is `helm install`. The API server must not warn of anything.
func (c *cluster) install(t *testing.T, ch *chart.Chart, set values) {
	t.Helper()
	i := action.NewInstall(c.helm(t))
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = releaseName, namespace, kube.HookOnlyStrategy, process.ServerPatience
	if _, err := i.RunWithContext(t.Context(), ch, copied(set)); err != nil {
		t.Fatalf("install: %v", err)
	}
	c.expectNoWarnings(t)
}

// upgrade is `helm upgrade --reset-values`, without the validation that the API server repeats. The API server must not
// warn of anything.
func (c *cluster) upgrade(t *testing.T, ch *chart.Chart, set values) {
	t.Helper()
	u := action.NewUpgrade(c.helm(t))
	u.Namespace, u.WaitStrategy, u.Timeout, u.ResetValues = namespace, kube.HookOnlyStrategy, process.ServerPatience, true
	u.ServerSideApply, u.DisableOpenAPIValidation = "auto", true // "auto" is the default of the command
	if _, err := u.RunWithContext(t.Context(), releaseName, ch, copied(set)); err != nil {
		t.Fatalf("upgrade: %v", err)
	}
	c.expectNoWarnings(t)
}

func (c *cluster) expectNoWarnings(t *testing.T) {
	t.Helper()
	if said := c.warnings.take(); len(said) > 0 {
		t.Errorf("the API server warns: %q", said)
	}
}

// uninstall is `helm uninstall`. It returns what Helm says about objects that it keeps.
func (c *cluster) uninstall(t *testing.T) string {
	t.Helper()
	u := action.NewUninstall(c.helm(t))
	u.WaitStrategy, u.Timeout = kube.HookOnlyStrategy, process.ServerPatience
	response, err := u.Run(releaseName)
	if err != nil {
		t.Fatal(err)
	}
	return response.Info
}

// copied returns a copy of values, which Helm writes to.
func copied(set values) values {
	c := values{}
	maps.Copy(c, set)
	return c
}

// get returns the API server's object for one of the chart's, or nil if there is none.
func (c *cluster) get(t *testing.T, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	wanted := unstructured.Unstructured{Object: object}
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(wanted.GroupVersionKind())
	err := c.Get(t.Context(), types.NamespacedName{Namespace: wanted.GetNamespace(), Name: wanted.GetName()}, got)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// caBundle returns the API server's own CA, for what cert-manager would write.
func (c *cluster) caBundle() string { return base64.StdEncoding.EncodeToString(c.config.CAData) }

// expect checks which of the objects the API server has.
func (c *cluster) expect(t *testing.T, all objects, exists func(object map[string]any) bool) {
	t.Helper()
	for key, object := range all {
		if got, want := c.get(t, object) != nil, exists(object); got != want {
			t.Errorf("%s: it is there: %v, want %v", key, got, want)
		}
	}
}

// warnings are what the API server has warned of, such as unknown fields. It is safe for concurrent use.
type warnings struct {
	mu   sync.Mutex
	said []string
}

var _ rest.WarningHandlerWithContext = (*warnings)(nil)

// HandleWarningHeaderWithContext records a warning.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := slices.Clone(w.said)
	w.said = nil
	return said
}
