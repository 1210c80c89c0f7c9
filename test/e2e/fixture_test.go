// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// patience bounds each wait of the suite.
	patience = 3 * time.Minute
	// lifetime bounds the suite. It leaves go test's own limit time for everything to be stopped.
	lifetime = 15 * time.Minute

	namespace = "e2e"
	// upstream is the gateway's name for the test extension, and gateway is Cluster API's name for the gateway.
	upstream = "upstream"
	gateway  = "gateway"
	// caller is the name of Cluster API in its client certificate.
	caller = "cluster-api"
	// featureGates are those of Cluster API.
	featureGates = "RuntimeSDK=true,ClusterTopology=true,InPlaceUpdates=true,MachineTaintPropagation=true"
	// ownGroup is where the gateway looks for ExtensionConfigs. Cluster API does not look there.
	ownGroup = "runtime.hookgate.dev"
	// olderSources is the variable that names the folder with the sources of the older Cluster API that is tested, if any.
	olderSources = "HOOKGATE_E2E_SOURCES"
)

// fixture holds all running processes.
type fixture struct {
	t     *testing.T
	ctx   context.Context
	began time.Time
	client.Client

	logs       string // folder of what the processes printed
	kubeconfig string // of the administrator
	apiServer  *envtest.Environment
	certs      string // folder with tls.crt and tls.key, for every server, and with client.crt and ca.crt for callers of hooks
	ca         []byte
	rest       *rest.Config
	env        []string // of all processes, beside that of the suite
	running    []*process

	extension, core, controlPlane *server
	managers                      []*server // of Cluster API and its providers
	gateway, infrastructure       *server

	// What the gateway had counted when it was restarted, and the requests of Cluster API that found it away.
	callsBefore, requestsBefore []sample
	lost                        int
}

// server is a process with its ports of 127.0.0.1.
type server struct {
	*process
	port, diagnostics, health int
	kubeconfig                string   // the administrator's if it is empty
	flags                     []string // of a manager, beside those that all have
	start                     func() *process
}

func newServer(t *testing.T) *server {
	return &server{port: freePort(t), diagnostics: freePort(t), health: freePort(t)}
}

// worlds keeps two worlds of one kind from existing at the same time: they would take each other's ports. One of each
// kind runs beside the other, since they wait more than they work.
var worlds = map[bool]*sync.Mutex{true: {}, false: {}}

// begin starts Cluster API and its providers, with no extension as yet. The infrastructure provider is Cluster API's own,
// in memory, or none: then only the CRDs of Hookgate's exist.
func begin(t *testing.T, inMemory bool) *fixture {
	t.Helper()
	return beginWith(t, inMemory, true)
}

// beginWith is begin, without Hookgate's own CRDs unless they are wanted.
func beginWith(t *testing.T, inMemory, own bool) *fixture {
	t.Helper()
	t.Parallel()
	ctrllog.SetLogger(logr.Discard())
	worlds[inMemory].Lock()
	t.Cleanup(worlds[inMemory].Unlock)
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	t.Cleanup(cancel)
	w := &fixture{t: t, ctx: ctx, began: time.Now()}
	w.keepLogs()
	w.certs = t.TempDir()
	w.ca = issue(t, w.certs)
	w.startManagement(inMemory, own)
	return w
}

// beside returns another management cluster, whose programs have the same certificates.
func (w *fixture) beside() *fixture {
	w.t.Helper()
	other := &fixture{t: w.t, ctx: w.ctx, began: w.began, certs: w.certs, ca: w.ca}
	other.keepLogs()
	other.startManagement(false, true)
	return other
}

// startManagement starts a management cluster: an API server, and Cluster API with its providers. Each has a service
// account with the roles that it installs, and no other rights: what Cluster API may do with Hookgate's kinds, it may by
// the roles that are aggregated.
func (w *fixture) startManagement(inMemory, own bool) {
	t := w.t
	t.Helper()
	assets, programs := folder(t, "KUBEBUILDER_ASSETS"), folder(t, "HOOKGATE_E2E_BIN")

	kubectl := w.startAPIServer(assets)
	w.launch("kube-controller-manager", filepath.Join(assets, "kube-controller-manager"), "--kubeconfig", w.kubeconfig,
		"--controllers", "garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller", "--leader-elect=false", "--secure-port=0")

	var objects []client.Object
	var crds []*apiextensionsv1.CustomResourceDefinition
	provider := func(name, module, dir string, flags ...string) *server {
		s := w.manager(name, filepath.Join(programs, name), flags...)
		root := moduleDir(t, module)
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			dir = "" // where core was until v1.13
		}
		i := w.manifests(kubectl, filepath.Join(root, dir, "config", "default"), s.port)
		objects, crds = append(objects, i.objects...), append(crds, i.crds...)
		s.kubeconfig = w.as(i.account.Namespace, i.account.Name)
		return s
	}
	shows := []string{ // to the gateway, which asks callers for a certificate
		"--runtime-extension-client-cert-file", filepath.Join(w.certs, "client.crt"),
		"--runtime-extension-client-key-file", filepath.Join(w.certs, "client.key"),
	}
	w.core = provider("core", "sigs.k8s.io/cluster-api", "core", shows...)
	var tokens []string
	if !inMemory {
		tokens = []string{"--bootstrap-token-ttl", bootstrapTokenTTL.String()}
	}
	bootstrap := provider("kubeadm-bootstrap", "sigs.k8s.io/cluster-api", "bootstrap/kubeadm", tokens...)
	w.controlPlane = provider("kubeadm-control-plane", "sigs.k8s.io/cluster-api", "controlplane/kubeadm",
		shows...)
	servers := []*server{w.core, bootstrap, w.controlPlane}
	if inMemory {
		servers = append(servers, provider("infrastructure", "sigs.k8s.io/cluster-api/test", "infrastructure/docker"))
	} else if own {
		crds = append(crds, w.infrastructureCRDs()...)
		objects = append(objects, w.infrastructureRoles()...)
	}
	if own {
		crds = append(crds, w.ownCRDs()...)
	}
	for _, crd := range crds {
		metav1.SetMetaDataLabel(&crd.ObjectMeta, "clusterctl.cluster.x-k8s.io", "") // as clusterctl does, for its move
	}
	if _, err := envtest.InstallCRDs(w.rest, envtest.CRDInstallOptions{CRDs: crds, MaxTime: patience}); err != nil {
		t.Fatalf("install CRDs: %v", err)
	}
	w.create(&corev1.Namespace{ObjectMeta: objectMeta("", namespace)})
	for _, o := range objects {
		w.create(o)
	}
	w.awaitRoles()

	w.managers = servers
	for _, s := range servers {
		s.process = s.start()
	}
	for _, s := range servers {
		w.ready(s)
	}
}

// as returns the kubeconfig of a service account.
func (w *fixture) as(namespace, account string) string {
	w.t.Helper()
	user, err := w.apiServer.AddUser(envtest.User{Name: "system:serviceaccount:" + namespace + ":" + account, Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:" + namespace,
	}}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		w.t.Fatal(err)
	}
	parsed, err := clientcmd.Load(text)
	if err != nil {
		w.t.Fatal(err)
	}
	parsed.Contexts[parsed.CurrentContext].Namespace = namespace // as in a Pod
	kubeconfig, err := clientcmd.Write(*parsed)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// awaitRoles waits until the ClusterRoles that are made of others have the rules of all of them.
func (w *fixture) awaitRoles() {
	w.t.Helper()
	w.eventually("the roles are aggregated", func() (string, bool) {
		list := &rbacv1.ClusterRoleList{}
		if err := w.List(w.ctx, list); err != nil {
			return err.Error(), false
		}
		for _, whole := range list.Items {
			for _, part := range list.Items {
				if !aggregates(&whole, &part) {
					continue
				}
				for _, rule := range part.Rules {
					if !slices.ContainsFunc(whole.Rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) }) {
						return fmt.Sprintf("%s lacks %v of %s", whole.Name, rule, part.Name), false
					}
				}
			}
		}
		return "", true
	})
}

// aggregates reports whether a ClusterRole shall have the rules of another one.
func aggregates(whole, part *rbacv1.ClusterRole) bool {
	return whole.AggregationRule != nil && whole.Name != part.Name &&
		slices.ContainsFunc(whole.AggregationRule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			return err == nil && selector.Matches(labels.Set(part.Labels))
		})
}

// logf logs what has happened, and when.
func (w *fixture) logf(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("%4.0fs  %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// beginWithHub also starts Cluster API's own extension and a gateway, and registers the extension with the gateway and
// the gateway with Cluster API.
func beginWithHub(t *testing.T) *fixture {
	w := begin(t, true)
	w.startHub(filepath.Join(folder(t, "HOOKGATE_E2E_BIN"), "test-extension"))
	w.register(map[string]any{"defaultAllHandlersToBlocking": "true"})
	w.registerGateway(gateway)
	return w
}

// startHub starts a program, which is a build of Cluster API's own extension, and a gateway with more flags.
func (w *fixture) startHub(extension string, flags ...string) {
	w.t.Helper()
	w.extension = w.manager("test-extension", extension)
	w.prepareGateway(flags...)
	for _, s := range []*server{w.extension, w.gateway} {
		s.process = s.start()
	}
	for _, s := range []*server{w.extension, w.gateway} {
		w.ready(s)
	}
}

// prepareGateway prepares a gateway that reads its objects in the cluster, with more flags.
func (w *fixture) prepareGateway(flags ...string) {
	w.t.Helper()
	w.gateway = newServer(w.t)
	w.gateway.start = func() *process {
		return w.launch("hookgate", folder(w.t, "HOOKGATE_BIN"), append([]string{"serve", "--kubeconfig", w.kubeconfig,
			"--extension-config-group", ownGroup,
			"--cert-dir", w.certs, "--allowed-client-names", caller, "--http-address", loopback(w.gateway.port), "--grpc-address", loopback(0),
			"--diagnostics-address", loopback(w.gateway.diagnostics), "--health-addr", loopback(w.gateway.health),
			"--gateway-address", loopback(w.gateway.port)}, flags...)...)
	}
}

// register makes Cluster API's extension known to the gateway, with more settings.
func (w *fixture) register(settings map[string]any) {
	w.t.Helper()
	all := map[string]any{"extensionConfigName": upstream, "disableInPlaceUpdates": "true"}
	maps.Copy(all, settings)
	w.registerExtension(upstream, w.extension.port, all)
}

// registerExtension makes an extension known to the gateway.
func (w *fixture) registerExtension(name string, port int, settings map[string]any) {
	w.t.Helper()
	own := extensionConfig(ownGroup, name)
	content := map[string]any{
		"clientConfig":      map[string]any{"url": "https://" + loopback(port), "caBundle": w.ca},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
		"settings":          settings,
	}
	raw, err := json.Marshal(content) // turns the CA into base64
	if err == nil {
		err = json.Unmarshal(raw, &content)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	own.Object["spec"] = content
	w.create(own)
	w.discovered("the gateway discovered the extension "+name, own)
}

// registerGateway makes the gateway known to Cluster API under a name.
func (w *fixture) registerGateway(name string) {
	w.t.Helper()
	of := &runtimev1.ExtensionConfig{ObjectMeta: objectMeta("", name)}
	of.Spec.ClientConfig = runtimev1.ClientConfig{URL: "https://" + loopback(w.gateway.port), CABundle: w.ca}
	w.create(of)
	w.discovered("Cluster API discovered the gateway", extensionConfig(runtimev1.GroupVersion.Group, name))
}

// extensionConfig returns an ExtensionConfig of a group, to get or create.
func extensionConfig(group, name string) *unstructured.Unstructured {
	c := &unstructured.Unstructured{}
	c.SetAPIVersion(group + "/v1beta2")
	c.SetKind("ExtensionConfig")
	c.SetName(name)
	return c
}

// discovered waits until an ExtensionConfig, as it is now, has been discovered.
func (w *fixture) discovered(what string, config *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually(what, func() (string, bool) {
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err.Error(), false
		}
		conditions, _, _ := unstructured.NestedSlice(config.Object, "status", "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			generation, _, _ := unstructured.NestedInt64(c, "observedGeneration")
			if c["type"] == "Discovered" {
				return fmt.Sprint(c), c["status"] == "True" && generation == config.GetGeneration()
			}
		}
		return "no condition Discovered", false
	})
}

// keepLogs makes a folder for logs, which goes when all went well.
func (w *fixture) keepLogs() {
	dir, err := os.MkdirTemp("", "hookgate-e2e-")
	if err != nil {
		w.t.Fatal(err)
	}
	w.logs = dir
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("what the programs printed, and the objects of the cluster, are in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
}

// startAPIServer starts etcd and kube-apiserver, connects the fixture to them, and returns the path of kubectl.
func (w *fixture) startAPIServer(assets string) (kubectl string) {
	env := &envtest.Environment{BinaryAssetsDirectory: assets,
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience}
	log, err := os.Create(filepath.Join(w.logs, "kube-apiserver.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	server := env.ControlPlane.GetAPIServer()
	server.Out, server.Err = log, log
	config, err := env.Start()
	if err != nil {
		w.t.Fatalf("start kube-apiserver and etcd: %v", err)
	}
	w.apiServer = env
	w.t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			w.t.Errorf("stop kube-apiserver and etcd: %v", err)
		}
		_ = log.Close()
	})
	w.kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(w.kubeconfig, env.KubeConfig, 0o600); err != nil {
		w.t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, apiextensionsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme,
		bootstrapv1.AddToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme, runtimev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	if w.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		w.t.Fatal(err)
	}
	w.rest = config
	kubectl = filepath.Join(assets, "kubectl")
	w.t.Cleanup(func() { // before the API server stops
		if w.t.Failed() {
			out, _ := exec.Command(kubectl, "--kubeconfig", w.kubeconfig, "get", "-A", "-o", "yaml",
				"cluster-api,configmaps,extensionconfigs.runtime.cluster.x-k8s.io,extensionconfigs.runtime.hookgate.dev").CombinedOutput()
			_ = os.WriteFile(filepath.Join(w.logs, "objects.yaml"), out, 0o600)
		}
	})
	return kubectl
}

// manager prepares a manager of Cluster API, or the extension, which takes the same flags.
func (w *fixture) manager(name, path string, flags ...string) *server {
	s := newServer(w.t)
	s.flags = flags
	s.start = func() *process {
		return w.launchAs(cmp.Or(s.kubeconfig, w.kubeconfig), name, path, append([]string{
			"--leader-elect=false", "--webhook-port", strconv.Itoa(s.port), "--webhook-cert-dir", w.certs,
			"--diagnostics-address", loopback(s.diagnostics), "--insecure-diagnostics", "--health-addr", loopback(s.health),
			"--feature-gates", featureGates,
		}, s.flags...)...)
	}
	return s
}

// ownCRDs reads the CRDs of the gateway's own kinds.
func (w *fixture) ownCRDs() []*apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, file := range []string{
		"runtime.hookgate.dev_extensionconfigs.yaml", "hookgate.dev_extensionpolicies.yaml", "hookgate.dev_handlerchains.yaml",
		"hookgate.dev_hookjobs.yaml", "hookgate.dev_hookrules.yaml", "hookgate.dev_extensionrollouts.yaml",
		"hookgate.dev_extensionrolloutrecords.yaml", "hookgate.dev_clusterrecords.yaml", "machines/machines.hookgate.dev_hookgateremediations.yaml",
		"machines/machines.hookgate.dev_hookgateremediationtemplates.yaml",
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		convert(w.t, read(w.t, filepath.Join("..", "..", "deploy", "crd", file))[0], crd)
		list = append(list, crd)
	}
	return list
}

func (w *fixture) create(o client.Object) {
	w.t.Helper()
	if err := w.Create(w.ctx, o); err != nil {
		w.t.Fatalf("create %s %s: %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
	}
}

// folder returns what an environment variable names.
func folder(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: run `make test-e2e`, which builds what is needed and sets it", variable)
	}
	return path
}

// moduleDir returns where the sources of a module of go.mod are, or those of the older Cluster API that is tested. It
// downloads them, unless they are in Go's cache.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	if older := os.Getenv(olderSources); older != "" {
		return filepath.Join(older, path.Base(module))
	}
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	var found struct{ Dir string }
	if e := json.Unmarshal(out, &found); e != nil || err != nil {
		t.Fatalf("download module %s: %v %v %s", module, err, e, out)
	}
	return found.Dir
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
