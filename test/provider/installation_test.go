// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/rights"
)

// The names in deploy/infrastructure.
const (
	installedNamespace = "hookgate-system"
	installedAccount   = "hookgate-infrastructure"
	installedUser      = "system:serviceaccount:" + installedNamespace + ":" + installedAccount
)

// installation is a fixture with an API server of its own, which keeps an audit log. hookgate infrastructure runs in it
// as the Deployment in deploy/infrastructure says, with the permissions there, and calls the extension through a gateway.
type installation struct {
	*fixture
	version     string // of Cluster API, which the extension understands
	audit       string // the path of the audit log
	kubeconfig  string // of the controllers
	container   corev1.Container
	pair        *devcert.Pair
	gateway     *process.Gateway
	controllers *process.Process
	ports       map[string]int // of the controllers, by their names in the Deployment
	roles       []rights.Role
	bindings    []rights.Binding
}

// newInstallation returns an installation whose controllers are ready, without a class.
func newInstallation(t testing.TB, change ...func(*installation)) *installation {
	t.Helper()
	binary, env, dir := process.Program(t, "HOOKGATE_BIN"), environment(t), t.TempDir()
	i := &installation{ports: map[string]int{}, version: "v1beta2"}
	var err error
	if i.audit, err = rights.Audit(env.ControlPlane.GetAPIServer(), dir); err != nil {
		t.Fatal(err)
	}
	// Without streamed lists, clients list and watch, as with older API servers.
	env.ControlPlane.GetAPIServer().Configure().Set("feature-gates", "WatchList=false")
	if _, err := env.Start(); err != nil {
		t.Fatalf("start kube-apiserver and etcd: %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop kube-apiserver and etcd: %v", err)
		}
	})
	i.fixture = newNamespace(t, env)
	for _, f := range change {
		f(i)
	}
	if i.pair, err = devcert.New(time.Now().Add(24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	i.serveGateway(dir, binary)
	i.install(dir)
	i.run(binary)
	i.registerWebhooks()
	return i
}

// serveGateway serves the extension, and a gateway in front of it.
func (i *installation) serveGateway(dir, binary string) {
	i.t.Helper()
	serving, err := i.pair.ServerTLS()
	if err != nil {
		i.t.Fatal(err)
	}
	i.address = i.cloud.serve(i.t, grpc.Creds(credentials.NewTLS(serving)))
	configs, certs := filepath.Join(dir, "configs"), filepath.Join(dir, "certs")
	for _, d := range []string{configs, certs} {
		if err := os.Mkdir(d, 0o700); err != nil {
			i.t.Fatal(err)
		}
	}
	ca, err := yaml.Marshal(i.pair.CAPEM)
	if err != nil {
		i.t.Fatal(err)
	}
	i.writeFile(filepath.Join(configs, "acme.yaml"), fmt.Appendf(nil, `
apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec:
  clientConfig: {url: "https://%s", caBundle: %s}
---
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionPolicy
metadata: {name: acme}
spec: {targetRef: {name: acme}, protocol: GRPC, clusterAPIVersion: %s}
`, i.address, bytes.TrimSpace(ca), i.version))
	for name, data := range map[string][]byte{"tls.crt": i.pair.CertPEM, "tls.key": i.pair.KeyPEM, "ca.crt": i.pair.CAPEM} {
		i.writeFile(filepath.Join(certs, name), data)
	}
	i.gateway = process.RunGateway(i.t, exec.Command(binary,
		append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs, "--resync=1s"}, process.AnyPorts()...)...))
	if err := i.gateway.AwaitReady(i.t.Context()); err != nil {
		i.t.Fatal(err)
	}
}

// install creates the service account's permissions, and reads the Deployment.
func (i *installation) install(dir string) {
	i.t.Helper()
	create := func(o client.Object) {
		if err := i.client.Create(i.t.Context(), o); err != nil {
			i.t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installedNamespace}})
	for _, text := range documents(i.t, "infrastructure", "rbac.yaml") {
		var kind metav1.TypeMeta
		i.decode(text, &kind)
		switch kind.Kind {
		case "ClusterRole":
			o := &rbacv1.ClusterRole{}
			i.decode(text, o)
			i.roles = append(i.roles, rights.Role{Kind: kind.Kind, Name: o.Name, Rules: o.Rules})
			create(o)
		case "Role":
			o := &rbacv1.Role{}
			i.decode(text, o)
			i.roles = append(i.roles, rights.Role{Kind: kind.Kind, Name: o.Name, Rules: o.Rules})
			o.Namespace = installedNamespace // as kustomize does
			create(o)
		case "ClusterRoleBinding":
			o := &rbacv1.ClusterRoleBinding{}
			i.decode(text, o)
			if o.Subjects[0].Name == installedAccount { // another one is the gateway's, for its page
				i.bindings = append(i.bindings, rights.Binding{Kind: kind.Kind, Name: o.Name, Role: o.RoleRef, Subjects: o.Subjects})
			}
			create(o)
		case "RoleBinding":
			o := &rbacv1.RoleBinding{}
			i.decode(text, o)
			i.bindings = append(i.bindings, rights.Binding{Kind: kind.Kind, Name: o.Name, Role: o.RoleRef, Subjects: o.Subjects})
			o.Namespace = installedNamespace
			create(o)
		default:
			i.t.Fatalf("rbac.yaml has a %s, which this test does not know", kind.Kind)
		}
	}
	rights.Await(i.t, i.server.Config, i.roles, i.bindings, installedNamespace, installedAccount)
	deployment := &appsv1.Deployment{}
	i.decode(documents(i.t, "infrastructure", "deployment.yaml")[0], deployment)
	i.container = deployment.Spec.Template.Spec.Containers[0]
	user, err := i.server.AddUser(envtest.User{Name: installedUser, Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:" + installedNamespace,
	}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		i.t.Fatal(err)
	}
	parsed, err := clientcmd.Load(text)
	if err != nil {
		i.t.Fatal(err)
	}
	parsed.Contexts[parsed.CurrentContext].Namespace = installedNamespace // as in a Pod
	if text, err = clientcmd.Write(*parsed); err != nil {
		i.t.Fatal(err)
	}
	i.kubeconfig = filepath.Join(dir, "kubeconfig")
	i.writeFile(i.kubeconfig, text)
}

// run runs the controllers with the arguments of the Deployment, other ports, and each volume in a directory of its own.
func (i *installation) run(binary string) {
	i.t.Helper()
	mounted := map[string]string{}
	for _, m := range i.container.VolumeMounts {
		mounted[m.MountPath] = i.t.TempDir()
		for name, data := range map[string][]byte{"tls.crt": i.pair.CertPEM, "tls.key": i.pair.KeyPEM, "ca.crt": i.pair.CAPEM} {
			i.writeFile(filepath.Join(mounted[m.MountPath], name), data)
		}
	}
	ports := map[string]string{}
	for _, p := range i.container.Ports {
		if i.ports[p.Name] == 0 {
			i.ports[p.Name] = process.FreePort(i.t)
		}
		ports[strconv.Itoa(int(p.ContainerPort))] = strconv.Itoa(i.ports[p.Name])
	}
	args := []string{}
	for _, a := range i.container.Args {
		name, value, given := strings.Cut(a, "=")
		for path, dir := range mounted {
			if rest, ok := strings.CutPrefix(value, path); ok {
				value = dir + rest
			}
		}
		switch port := ports[strings.TrimPrefix(value, ":")]; {
		case name == "--gateway":
			value = "grpcs://" + i.gateway.GRPC
		case port != "" && strings.HasPrefix(value, ":"):
			value = ":" + port
		case port != "":
			value = port
		}
		if given {
			name += "=" + value
		}
		args = append(args, name)
	}
	i.controllers = process.Run(i.t, "controllers", exec.Command(binary, append(args, "--kubeconfig="+i.kubeconfig)...))
	i.probe("readiness", i.container.ReadinessProbe)
	i.probe("liveness", i.container.LivenessProbe)
}

// probe waits until a probe of the Deployment succeeds.
func (i *installation) probe(what string, p *corev1.Probe) {
	i.t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d%s", i.ports[p.HTTPGet.Port.StrVal], p.HTTPGet.Path)
	process.Eventually(i.t, what, func() bool {
		select {
		case <-i.controllers.Exited():
			i.t.Fatalf("the controllers have ended:%s", i.controllers.LogTail())
		default:
		}
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
}

// registerWebhooks makes the API server call the webhooks of the controllers.
func (i *installation) registerWebhooks() {
	i.t.Helper()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	i.decode(documents(i.t, "webhook", "infrastructure", "webhooks.yaml")[0], config)
	for n := range config.Webhooks {
		c := &config.Webhooks[n].ClientConfig
		url := fmt.Sprintf("https://127.0.0.1:%d%s", i.ports["webhook"], *c.Service.Path)
		c.URL, c.CABundle, c.Service = &url, i.pair.CAPEM, nil
	}
	if err := i.client.Create(i.t.Context(), config); err != nil {
		i.t.Fatal(err)
	}
}

// restart ends the controllers, and starts them again.
func (i *installation) restart() {
	i.t.Helper()
	i.end()
	i.run(process.Program(i.t, "HOOKGATE_BIN"))
}

// end ends the controllers as Kubernetes does.
func (i *installation) end() {
	i.t.Helper()
	i.controllers.EndWell(i.t)
}

// requests returns the requests of the controllers so far.
func (i *installation) requests() []rights.Request {
	i.t.Helper()
	all, err := rights.Read(i.audit)
	if err != nil {
		i.t.Fatal(err)
	}
	var own []rights.Request
	for _, r := range all {
		if r.User == installedUser {
			own = append(own, r)
		}
	}
	return own
}

// documents returns the documents of a manifest below deploy/.
func documents(t testing.TB, path ...string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "deploy"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document)
	}
}

func (i *installation) decode(text []byte, into any) {
	i.t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		i.t.Fatal(err)
	}
}

func (i *installation) writeFile(path string, data []byte) {
	i.t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		i.t.Fatal(err)
	}
}
