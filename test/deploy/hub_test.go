// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/rights"
)

// hubs lists the overlays that read their ExtensionConfigs from the cluster.
var hubs = map[string]struct {
	resources  []string
	components []string
	group      string
	readOnly   bool
}{
	"HubBesideCore":    {[]string{"overlays/hub-beside-core"}, nil, "runtime.hookgate.dev", false},
	"HubAlone":         {[]string{"overlays/hub-alone"}, nil, "runtime.cluster.x-k8s.io", false},
	"OneNamespace":     {[]string{"overlays/hub-beside-core"}, []string{"components/one-namespace"}, "runtime.hookgate.dev", false},
	"ReaderBesideCore": {[]string{"overlays/reader-beside-core"}, nil, "runtime.cluster.x-k8s.io", true},
}

// hub renders overlays with components.
func hub(t *testing.T, name string) []object {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", "..", "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, root)
	if err != nil {
		t.Fatal(err)
	}
	at := func(paths []string) []string {
		var all []string
		for _, p := range paths {
			all = append(all, filepath.Join(relative, p))
		}
		return all
	}
	writeFile(t, filepath.Join(dir, "kustomization.yaml"), marshal(t, map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": at(hubs[name].resources), "components": at(hubs[name].components),
	}))
	return decode(t, name, kustomize(t, dir))
}

func TestHubObjects(t *testing.T) {
	for name := range hubs {
		t.Run(name, func(t *testing.T) {
			objects := hub(t, name)
			checkSecurity(t, objects, true)
			d := one[*appsv1.Deployment](t, objects)
			ports := map[string]int32{}
			for _, p := range container(t, d).Ports {
				ports[p.Name] = p.ContainerPort
			}
			for _, s := range all[*corev1.Service](objects) {
				if len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
					t.Errorf("Service %s selects %v, and the Pods have %v", s.Name, s.Spec.Selector,
						d.Spec.Template.Labels)
				}
				for _, p := range s.Spec.Ports {
					if ports[p.TargetPort.StrVal] == 0 {
						t.Errorf("Service %s: the Pod has no port %s", s.Name, p.TargetPort.StrVal)
					}
				}
			}
			given := flags(container(t, d))
			if !hubs[name].readOnly && (given["--webhook-port"] != strconv.Itoa(int(ports["webhook"])) || given["--diagnostics-address"] != fmt.Sprintf(":%d", ports["metrics"])) {
				t.Errorf("flags %v and ports %v differ", given, ports)
			}
			if got, want := given["--gateway-address"], "hookgate.$(POD_NAMESPACE).svc"; got != want {
				t.Errorf("--gateway-address=%s, want %s: the gateway would not know itself", got, want)
			}
			var everywhere []string
			for _, rule := range one[*networkingv1.NetworkPolicy](t, objects).Spec.Egress {
				if len(rule.To) > 0 {
					continue
				}
				for _, p := range rule.Ports {
					everywhere = append(everywhere, fmt.Sprintf("%s %s", *p.Protocol, p.Port))
				}
			}
			if diff := cmp.Diff([]string{"UDP 53", "TCP 53", "TCP 443", "TCP 6443"}, everywhere); diff != "" {
				t.Errorf("let out to everywhere, and not only to where no credentials are (-want +got):\n%s", diff)
			}
			secrets := map[string]bool{}
			for _, c := range all[*certificate](objects) {
				secrets[c.Spec.SecretName] = true
			}
			for _, v := range d.Spec.Template.Spec.Volumes {
				if v.Secret != nil && !secrets[v.Secret.SecretName] {
					t.Errorf("nothing writes the Secret %s", v.Secret.SecretName)
				}
			}
			for _, o := range objects {
				if got := o.GetLabels()[providerLabel]; got != provider {
					t.Errorf("%s %s: label %s is %q, want %s", o.kind, o.GetName(), providerLabel, got, provider)
				}
			}
		})
	}
}

// TestHub installs each overlay on a real API server and runs the gateway with the Deployment's arguments and
// permissions. It makes the gateway do everything that it does in a cluster, and compares the recorded requests with
// the permissions, in both directions.
func TestHub(t *testing.T) {
	if os.Getenv(assetsVariable) == "" {
		t.Skipf("%s does not name a directory with kube-apiserver, etcd and kubectl", assetsVariable)
	}
	for name, h := range hubs {
		t.Run(name, func(t *testing.T) {
			objects := hub(t, name)
			binary := program(t, gatewayVariable)
			s := newServer(t)
			certs := certificates.New(t)
			webhookPort := strconv.Itoa(process.FreePort(t))
			if h.readOnly { // core has brought its own kind
				s.apply(t, definitionOf(t, h.group))
			}
			for _, o := range objects {
				callLocally(o.Object, "https://127.0.0.1:"+webhookPort, certs.CAPEM)
				s.apply(t, marshal(t, o.Object))
				if o.GetName() == "hookjobs.hookgate.dev" && !h.readOnly {
					s.refusedJob(t)
				}
			}
			roles, bindings := rolesOf(objects)
			rights.Await(t, s.Config, roles, bindings, namespace, "hookgate")
			args := s.arguments(t, container(t, one[*appsv1.Deployment](t, objects)), certs, webhookPort)
			g := process.RunGateway(t, exec.Command(binary, args...))
			logged(t, g, "registry has the handlers in the status of the ExtensionConfigs")

			x := newExtension(t)
			s.work(t, h.group, x, h.readOnly)
			if !h.readOnly {
				s.call(t, g, certs, roles)
				s.block(t, g, certs)
				s.auditRule(t, g, certs)
				s.roll(t, h.group, g, certs, x)
				s.scrape(t, g, certs, roles)
				s.view(t, g, certs, one[*appsv1.Deployment](t, objects))
				s.write(t, h.group, roles)
			}
			granted := rightsOf(t, objects)
			if h.readOnly {
				s.looked(t, granted)
			}
			g.EndWell(t)

			requests, err := rights.Read(s.audit)
			if err != nil {
				t.Fatal(err)
			}
			used, forbidden := rights.Used(requests, account)
			if len(forbidden) > 0 {
				t.Errorf("no role allowed what the gateway asked for: %s", strings.Join(forbidden, ", "))
			}
			if diff := cmp.Diff(granted, used); diff != "" {
				t.Errorf("rights by binding (-granted +used):\n%s", diff)
			}
		})
	}
}

// looked waits until the gateway has used what it is granted.
func (s *server) looked(t *testing.T, granted map[string][]string) {
	t.Helper()
	eventually(t, "the gateway has looked at everything", func() bool {
		requests, err := rights.Read(s.audit)
		if err != nil {
			t.Fatal(err)
		}
		used, _ := rights.Used(requests, account)
		return cmp.Equal(granted, used)
	})
}

// server is an API server that records the gateway's requests.
type server struct {
	*envtest.Environment
	client     client.Client
	audit      string
	kubeconfig string // of the gateway
	admin      string
}

const account = "system:serviceaccount:" + namespace + ":hookgate"

func newServer(t *testing.T, options ...func(*envtest.APIServer)) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{kubeconfig: filepath.Join(dir, "kubeconfig"), admin: filepath.Join(dir, "admin")}
	s.Environment = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cert-manager.io", "v1", "Certificate"), anykind.Of("cert-manager.io", "v1", "Issuer"), anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")},
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: process.ServerPatience},
		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience}
	var err error
	if s.audit, err = rights.Audit(s.ControlPlane.GetAPIServer(), dir); err != nil {
		t.Fatal(err)
	}
	for _, option := range options {
		option(s.ControlPlane.GetAPIServer())
	}
	// Without streamed lists, clients list and watch, as with older API servers.
	s.ControlPlane.GetAPIServer().Configure().Set("feature-gates", "WatchList=false")
	config, err := s.Start()
	if err != nil {
		t.Fatalf("start API server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop API server: %v", err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authenticationv1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if s.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	for file, user := range map[string]envtest.User{
		s.admin: {Name: "operator", Groups: []string{"system:masters"}},
		s.kubeconfig: {Name: account, Groups: []string{"system:serviceaccounts",
			"system:serviceaccounts:" + namespace}},
	} {
		added, err := s.AddUser(user, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := added.KubeConfig()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := clientcmd.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed.Contexts[parsed.CurrentContext].Namespace = namespace // as in a Pod
		if text, err = clientcmd.Write(*parsed); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, text)
	}
	return s
}

// apply applies a manifest as an operator does.
func (s *server) apply(t *testing.T, manifest []byte) {
	t.Helper()
	if refused := kubectlApply(s.admin, manifest, "--force-conflicts"); refused != "" {
		t.Fatalf("%s\n%s", refused, manifest)
	}
}

// arguments returns the container's arguments, with the kubelet's substitutions and free ports.
func (s *server) arguments(t *testing.T, c corev1.Container, certs *devcert.Pair, webhookPort string) []string {
	t.Helper()
	args := localArguments(t, c, certs, nil)
	for i, a := range args {
		if strings.HasPrefix(a, "--webhook-port=") {
			args[i] = "--webhook-port=" + webhookPort
		}
	}
	return append(args, "--kubeconfig="+s.kubeconfig, "--resync=1s")
}

// localArguments returns the container's arguments with each volume in its own directory, which holds the given files
// or else a certificate.
func localArguments(t *testing.T, c corev1.Container, certs *devcert.Pair,
	files map[string]map[string]string) []string {
	t.Helper()
	dirs := map[string]string{}
	for _, m := range c.VolumeMounts {
		dir := t.TempDir()
		content, ok := files[m.MountPath]
		if !ok {
			content = map[string]string{"tls.crt": string(certs.CertPEM), "tls.key": string(certs.KeyPEM)}
			if _, anonymous := flags(c)["--allow-anonymous-callers"]; !anonymous {
				content["ca.crt"] = string(certs.CAPEM)
			}
		}
		for name, text := range content {
			writeFile(t, filepath.Join(dir, name), []byte(text))
		}
		dirs[m.MountPath] = dir
	}
	var args []string
	for _, a := range c.Args {
		name, value, _ := strings.Cut(strings.ReplaceAll(a, "$(POD_NAMESPACE)", namespace), "=")
		switch {
		case dirs[value] != "":
			value = dirs[value]
		case name == "--shutdown-delay":
			value = "0s"
		case strings.HasPrefix(value, ":"):
			value = ":0"
		}
		if value != "" {
			name += "=" + value
		}
		args = append(args, name)
	}
	_, sidecar := flags(c)["--sidecar"]
	if _, ok := flags(c)["--grpc-address"]; !ok && !sidecar {
		args = append(args, "--grpc-address=127.0.0.1:0")
	}
	if _, ok := flags(c)["--diagnostics-address"]; !ok {
		args = append(args, "--diagnostics-address=127.0.0.1:0")
	}
	return args
}

// callLocally makes the API server call a webhook on this machine in place of the Service, at the same path.
func callLocally(o metav1.Object, address string, ca []byte) {
	local := func(c *admissionregistrationv1.WebhookClientConfig) {
		url := address + *c.Service.Path
		c.URL, c.Service, c.CABundle = &url, nil, ca
	}
	switch o := o.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			local(&o.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			local(&o.Webhooks[i].ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil {
			url := address + *c.Webhook.ClientConfig.Service.Path
			c.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca}
		}
	}
}

// work makes the gateway do everything that it does in a cluster.
func (s *server) work(t *testing.T, group string, x *extension, readOnly bool) {
	t.Helper()
	s.apply(t, fmt.Appendf(nil, "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: acme}\nspec: {targetRef: {name: acme}, failurePolicy: Ignore}\n"))
	s.apply(t, marshal(t, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "acme-ca", Namespace: namespace},
		StringData: map[string]string{"ca.crt": string(x.authority())},
	}))
	// In the old version, so that the stored object was converted.
	s.apply(t, fmt.Appendf(nil, "apiVersion: %s/v1alpha1\nkind: ExtensionConfig\nmetadata:\n  name: acme\n  annotations: {%s: %s/acme-ca}\nspec: {clientConfig: {url: %q}}\n",
		group, runtimev1.InjectCAFromSecretAnnotation, namespace, x.URL))
	for name, hook := range map[string]string{"machines": "CanUpdateMachine", "sets": "CanUpdateMachineSet"} {
		s.apply(t, fmt.Appendf(nil, "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata: {name: %s}\nspec: {hook: %s, onPartialCoverage: Block, steps: [{handler: %s.acme}]}\n",
			name, hook, strings.ToLower(hook)))
		s.apply(t, fmt.Appendf(nil, "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: %s}\nspec: {targetRef: {name: acme, handler: %s}, failurePolicy: Fail}\n",
			name, strings.ToLower(hook)))
	}
	s.apply(t, []byte("apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: rule}\nspec: {hook: BeforeClusterDelete, action: Audit, fail: [{if: 'true', message: '\"no\"'}]}\n"))
	if readOnly {
		return // and see in the end that it did no more than look
	}
	s.await(t, group, metav1.ConditionTrue)
	policy := &v1alpha1.ExtensionPolicy{}
	eventually(t, "the policy is accepted", func() bool {
		err := s.client.Get(t.Context(), client.ObjectKey{Name: "acme"}, policy)
		return err == nil && meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.AcceptedCondition)
	})
	chain := &v1alpha1.HandlerChain{}
	eventually(t, "the chain is ready", func() bool {
		err := s.client.Get(t.Context(), client.ObjectKey{Name: "machines"}, chain)
		return err == nil && meta.IsStatusConditionTrue(chain.Status.Conditions, v1alpha1.ReadyCondition)
	})
	rule := &v1alpha1.HookRule{}
	eventually(t, "the rule is ready", func() bool {
		err := s.client.Get(t.Context(), client.ObjectKey{Name: "rule"}, rule)
		return err == nil && meta.IsStatusConditionTrue(rule.Status.Conditions, v1alpha1.ReadyCondition)
	})
	s.replaceRecord(t)
	x.broken.Store(true)
	s.await(t, group, metav1.ConditionFalse)
	x.broken.Store(false)
	s.await(t, group, metav1.ConditionTrue)
	s.followSecret(t, group, x)
	s.patch(t, "extensionconfigs."+group+"/acme", `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
	s.awaitCondition(t, group, "Paused", metav1.ConditionTrue)
}

// replaceRecord changes a rule once its spec is recorded, and waits until only the new spec is.
func (s *server) replaceRecord(t *testing.T) {
	t.Helper()
	recorded := func(generation string) {
		t.Helper()
		eventually(t, "generation "+generation+" of the rule is recorded", func() bool {
			out, err := kubectl(s.admin, nil, "-n", namespace, "get", "controllerrevisions", "-l", "hookgate.dev/last-valid=HookRule",
				"-o", "jsonpath={.items[*].revision}")
			return err == nil && string(out) == generation
		})
	}
	recorded("1")
	s.patch(t, "hookrules.hookgate.dev/rule", `{"spec":{"fail":[{"if":"1 == 1","message":"\"no\""}]}}`)
	recorded("2")
}

// followSecret replaces the CA of the extension until the gateway has patched an event to count two injections.
func (s *server) followSecret(t *testing.T, group string, x *extension) {
	t.Helper()
	eventually(t, "an event counts two injections of a CA", func() bool {
		ca, err := json.Marshal(x.renew(t))
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "acme-ca"}}
		change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"ca.crt":%s}}`, ca))
		if err := s.client.Patch(t.Context(), secret, change); err != nil {
			t.Fatal(err)
		}
		var list eventsv1.EventList
		if err := s.client.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == "CABundleInjected" && e.Series != nil })
	})
	eventually(t, "caBundle equals the Secret's", func() bool {
		out, err := kubectl(s.admin, nil, "get", "extensionconfigs.v1beta2."+group, "acme", "-o",
			"jsonpath={.spec.clientConfig.caBundle}")
		return err == nil && string(out) == base64.StdEncoding.EncodeToString(x.authority())
	})
	s.await(t, group, metav1.ConditionTrue)
}

// patch changes an object, named in kubectl's form, by a merge patch.
func (s *server) patch(t *testing.T, object, change string) {
	t.Helper()
	if out, err := kubectl(s.admin, nil, "patch", object, "--type=merge", "--patch="+change); err != nil {
		t.Fatalf("patch %s: %v: %s", object, err, out)
	}
}

// await waits until the condition Discovered has the given status.
func (s *server) await(t *testing.T, group string, status metav1.ConditionStatus) {
	t.Helper()
	s.awaitCondition(t, group, runtimev1.ExtensionConfigDiscoveredCondition, status)
}

// awaitCondition waits until a condition has the given status, for the current generation.
func (s *server) awaitCondition(t *testing.T, group, condition string, status metav1.ConditionStatus) {
	t.Helper()
	eventually(t, condition+" is "+string(status), func() bool {
		config := &runtimev1.ExtensionConfig{}
		out, err := kubectl(s.admin, nil, "get", "extensionconfigs.v1beta2."+group, "acme", "-o", "json")
		if err != nil || json.Unmarshal(out, config) != nil {
			return false
		}
		c := meta.FindStatusCondition(config.Status.Conditions, condition)
		return c != nil && c.Status == status && c.ObservedGeneration == config.Generation
	})
}

// tokenOf returns a token of a new service account, or nothing for no name.
func (s *server) tokenOf(t *testing.T, name string) string {
	t.Helper()
	if name == "" {
		return ""
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	if err := s.client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := s.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// bind binds a ClusterRole to a service account in the namespace default, and waits until that is in effect.
func (s *server) bind(t *testing.T, role, account string, roles []rights.Role) {
	t.Helper()
	b := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: metav1.NamespaceDefault}},
	}
	s.apply(t, marshal(t, b))
	rights.Await(t, s.Config, roles, []rights.Binding{{Kind: b.Kind, Name: b.Name, Role: b.RoleRef}},
		metav1.NamespaceDefault, account)
}

// call calls a hook with the tokens of a service account that the role hookgate-caller is bound to, of another, and with
// a client certificate.
func (s *server) call(t *testing.T, g *process.Gateway, certs *devcert.Pair, roles []rights.Role) {
	t.Helper()
	s.bind(t, "hookgate-caller", "caller", roles)
	shown := certificates.Of(t, certs)
	for _, c := range []struct {
		account     string
		certificate []tls.Certificate
		code        int
	}{
		{"caller", nil, http.StatusOK}, {"nobody", nil, http.StatusForbidden}, {"", nil, http.StatusUnauthorized},
		{"", []tls.Certificate{shown}, http.StatusOK},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"https://127.0.0.1"+portOf(g.HTTPS)+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if c.account != "" {
			request.Header.Set("Authorization", "Bearer "+s.tokenOf(t, c.account))
		}
		config := certs.ClientTLS()
		config.Certificates = c.certificate
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport, Timeout: process.Patience}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
			t.Fatal(err, closeErr)
		}
		if resp.StatusCode != c.code {
			t.Errorf("call of %q, %d certificates: %s, want %d: %.200s", c.account, len(c.certificate), resp.Status, c.code, body)
		}
	}
}

// block makes the chains block updates in place of a KubeadmControlPlane and of a MachineDeployment, about which the
// gateway then wants to write an event.
func (s *server) block(t *testing.T, g *process.Gateway, certs *devcert.Pair) {
	t.Helper()
	for chain, c := range map[string]struct{ hook, member, label, resource string }{
		"machines": {"canupdatemachine", "machine", "control-plane-name", "kubeadmcontrolplanes"},
		"sets":     {"canupdatemachineset", "machineSet", "deployment-name", "machinedeployments"},
	} {
		object := func(version string) string {
			return fmt.Sprintf(`{%q:{"metadata":{"namespace":"team","labels":{"cluster.x-k8s.io/%s":"x"}},"spec":{"clusterName":"c","template":{"spec":{"version":%[3]q}},"version":%[3]q}}}`,
				c.member, c.label, version)
		}
		answer := ask(t, g, certs, c.hook+"/"+chain, `{"current":`+object("v1")+`,"desired":`+object("v2")+`}`)
		if !strings.Contains(answer, "is Block, and no step covers") {
			t.Errorf("%s is not blocked: %s", chain, answer)
		}
		eventually(t, "the gateway asks for "+c.resource, func() bool {
			requests, err := rights.Read(s.audit)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(requests, func(r rights.Request) bool { return r.User == account && r.Resource == c.resource })
		})
	}
}

// refusedJob creates a HookJob, before a webhook would refuse it. The gateway runs no Jobs, and says so.
func (s *server) refusedJob(t *testing.T) {
	t.Helper()
	manifest := []byte("apiVersion: hookgate.dev/v1alpha1\nkind: HookJob\nmetadata: {name: old}\nspec: {hook: AfterClusterUpgrade, " +
		"jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a:v1}]}}}}}\n")
	eventually(t, "the API server serves HookJobs", func() bool { return kubectlApply(s.admin, manifest) == "" })
}

// auditRule asks the rule, which only audits, and waits for its event.
func (s *server) auditRule(t *testing.T, g *process.Gateway, certs *devcert.Pair) {
	t.Helper()
	if answer := ask(t, g, certs, "beforeclusterdelete", `{"cluster":{"metadata":{"namespace":"team","name":"c"}}}`); !strings.Contains(answer, `"status":"Success"`) {
		t.Errorf("a rule that only audits: %s", answer)
	}
	eventually(t, "the rule has an event", func() bool {
		var list eventsv1.EventList
		if err := s.client.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == "Audit" && e.Note == "failure: no" })
	})
}

// roll moves a Cluster to another version of the extension, gives it a place of a rule, and deletes the Cluster.
func (s *server) roll(t *testing.T, group string, g *process.Gateway, certs *devcert.Pair, x *extension) {
	t.Helper()
	s.apply(t, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"))
	s.apply(t, []byte("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {namespace: team, name: c}\n"))
	s.apply(t, fmt.Appendf(nil, "apiVersion: %s/v1beta2\nkind: ExtensionConfig\nmetadata: {name: next}\nspec: {clientConfig: {url: %q, caBundle: %s}}\n",
		group, x.URL, base64.StdEncoding.EncodeToString(x.authority())))
	s.apply(t, []byte("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionRollout\nmetadata: {name: acme}\nspec: {stable: acme, candidate: next, candidateFor: {percent: 100}}\n"))
	states := func() (all []v1alpha1.RolloutState) {
		var list v1alpha1.ExtensionRolloutRecordList
		if err := s.client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			all = append(all, list.Items[i].Spec.State)
		}
		return all
	}
	s.apply(t, []byte("apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: places}\nspec: {hook: BeforeClusterUpgrade, concurrency: {limit: 1}}\n"))
	places := func() int {
		var list v1alpha1.ClusterRecordList
		if err := s.client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	eventually(t, "the Cluster has a place", func() bool {
		ask(t, g, certs, "beforeclusterupgrade/rule.places", `{"cluster":{"metadata":{"namespace":"team","name":"c"}}}`)
		return places() == 1
	})
	machine := func(version string) string {
		return `{"machine":{"metadata":{"namespace":"team","name":"m"},"spec":{"clusterName":"c","version":"` + version + `"}}}`
	}
	eventually(t, "the Cluster moves", func() bool {
		ask(t, g, certs, "canupdatemachine/machines", `{"current":`+machine("v1")+`,"desired":`+machine("v2")+`}`)
		return slices.Equal(states(), []v1alpha1.RolloutState{v1alpha1.RolloutStateMoved})
	})
	rollout := &v1alpha1.ExtensionRollout{}
	eventually(t, "the rollout is ready", func() bool {
		err := s.client.Get(t.Context(), client.ObjectKey{Name: "acme"}, rollout)
		return err == nil && meta.IsStatusConditionTrue(rollout.Status.Conditions, v1alpha1.ReadyCondition)
	})
	if out, err := kubectl(s.admin, nil, "delete", "extensionrollout", "acme"); err == nil || !strings.Contains(string(out), `1 Cluster has moved to "next"`) {
		t.Errorf("the rollout is deleted: %v: %s", err, out)
	}
	if out, err := kubectl(s.admin, nil, "delete", "-n", "team", "clusters.cluster.x-k8s.io", "c"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "its records are deleted", func() bool { return len(states()) == 0 && places() == 0 })
}

// ask calls a hook with a client certificate, and returns the answer.
func ask(t *testing.T, g *process.Gateway, certs *devcert.Pair, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1"+portOf(g.HTTPS)+
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	config := certs.ClientTLS()
	config.Certificates = []tls.Certificate{certificates.Of(t, certs)}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: process.Patience}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	return resp.Status + " " + string(answer)
}

// write writes ExtensionConfigs, policies, chains and rules as those to whom one of the two roles for that is bound: each may do its
// own, and not the other's.
func (s *server) write(t *testing.T, group string, roles []rights.Role) {
	t.Helper()
	config := `{"apiVersion":"` + group + `/v1beta2","kind":"ExtensionConfig","metadata":{"name":"new"},"spec":{"clientConfig":{"url":"https://new.example"}}}`
	policy := `{"apiVersion":"hookgate.dev/v1alpha1","kind":"ExtensionPolicy","metadata":{"name":"new"},"spec":{"targetRef":{"name":"new"},"hooks":["AfterClusterUpgrade"]}}`
	chain := `{"apiVersion":"hookgate.dev/v1alpha1","kind":"HandlerChain","metadata":{"name":"newer"},"spec":{"hook":"AfterClusterUpgrade","steps":[{"handler":"a.new"}]}}`
	rule := `{"apiVersion":"hookgate.dev/v1alpha1","kind":"HookRule","metadata":{"name":"newest"},"spec":{"hook":"AfterClusterUpgrade","fail":[{"if":"false","message":"request.cluster.metadata.name"}]}}`
	objects := []struct{ writer, kind, name, text string }{
		{"hookgate-registrar", "extensionconfigs." + group, "new", config},
		{"hookgate-policy-author", "extensionpolicies", "new", policy},
		{"hookgate-policy-author", "handlerchains", "newer", chain},
		{"hookgate-policy-author", "hookrules", "newest", rule},
	}
	for _, role := range []string{"hookgate-registrar", "hookgate-policy-author"} {
		s.bind(t, role, role, roles)
		as := "--as=system:serviceaccount:default:" + role
		for _, o := range objects {
			if out, err := kubectl(s.admin, []byte(o.text), "create", "-f", "-", as); (err == nil) != (o.writer == role) || err != nil && !strings.Contains(string(out), "forbidden") {
				t.Errorf("%s creates %.90s: %v: %s", role, o.text, err, out)
			}
		}
		for _, o := range objects {
			if o.writer != role {
				continue
			}
			if out, err := kubectl(s.admin, nil, "delete", o.kind, o.name, as); err != nil {
				t.Errorf("%s deletes %s: %v: %s", role, o.kind, err, out)
			}
		}
	}
}

// scrape reads the metrics as an authorized service account, and as another.
func (s *server) scrape(t *testing.T, g *process.Gateway, certs *devcert.Pair, roles []rights.Role) {
	t.Helper()
	s.bind(t, "hookgate-metrics-reader", "monitoring", roles)
	want := map[string]int{"": http.StatusUnauthorized, "monitoring": http.StatusOK, "stranger": http.StatusForbidden}
	for name, code := range want {
		token := s.tokenOf(t, name)
		if got, body := diagnose(t, g, certs, http.MethodGet, "/metrics", token); got != code || (code == http.StatusOK) != strings.Contains(body, "hookgate_") {
			t.Errorf("metrics for %q: %d, want %d: %.200s", name, got, code, body)
		}
	}
}

// diagnose asks the diagnostics address of a gateway.
func diagnose(t *testing.T, g *process.Gateway, certs *devcert.Pair, method, path, token string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+portOf(g.Diagnostics)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: certs.ClientTLS()}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: process.Patience}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	return resp.StatusCode, string(text)
}

// rolesOf returns the roles and the bindings among objects, but for those of the account whose tokens see the status.
func rolesOf(objects []object) (roles []rights.Role, bindings []rights.Binding) {
	for _, r := range all[*rbacv1.ClusterRole](objects) {
		roles = append(roles, rights.Role{Kind: "ClusterRole", Name: r.Name, Rules: r.Rules})
	}
	for _, r := range all[*rbacv1.Role](objects) {
		roles = append(roles, rights.Role{Kind: "Role", Name: r.Name, Rules: r.Rules})
	}
	for _, b := range all[*rbacv1.ClusterRoleBinding](objects) {
		bindings = append(bindings, rights.Binding{Kind: "ClusterRoleBinding", Name: b.Name, Role: b.RoleRef, Subjects: b.Subjects})
	}
	for _, b := range all[*rbacv1.RoleBinding](objects) {
		bindings = append(bindings, rights.Binding{Kind: "RoleBinding", Name: b.Name, Role: b.RoleRef, Subjects: b.Subjects})
	}
	return roles, slices.DeleteFunc(bindings, func(b rights.Binding) bool { return b.Role.Name == "hookgate-viewer" })
}

// rightsOf returns the service account's permissions by binding, in order.
func rightsOf(t *testing.T, objects []object) map[string][]string {
	t.Helper()
	roles, bindings := rolesOf(objects)
	granted, err := rights.Granted(roles, bindings, namespace, "hookgate")
	if err != nil {
		t.Fatal(err)
	}
	return granted
}

// extension is an extension with one handler.
type extension struct {
	*httptest.Server
	pair   atomic.Pointer[devcert.Pair]
	broken atomic.Bool
}

// authority returns the CA of the extension's certificate.
func (x *extension) authority() []byte { return x.pair.Load().CAPEM }

// renew gives the extension a certificate of a new CA, and returns the CA.
func (x *extension) renew(t *testing.T) []byte {
	t.Helper()
	x.pair.Store(certificates.New(t))
	return x.authority()
}

func newExtension(t *testing.T) *extension {
	t.Helper()
	x := &extension{}
	x.renew(t)
	x.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if x.broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if _, after, ok := strings.Cut(r.URL.Path, "/canupdatemachine"); ok { // and covers nothing
			kind := "CanUpdateMachineResponse"
			if strings.HasPrefix(after, "set") {
				kind = "CanUpdateMachineSetResponse"
			}
			_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"status":"Success"}`, runtimehooksv1.GroupVersion, kind)
			return
		}
		list := &runtimehooksv1.DiscoveryResponse{}
		for name, hook := range map[string]string{
			"h": "BeforeClusterCreate", "canupdatemachine": "CanUpdateMachine", "canupdatemachineset": "CanUpdateMachineSet",
		} {
			list.Handlers = append(list.Handlers, runtimehooksv1.ExtensionHandler{Name: name,
				RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: hook}})
		}
		list.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("DiscoveryResponse"))
		list.Status = runtimehooksv1.ResponseStatusSuccess
		_ = json.NewEncoder(w).Encode(list) // the caller may have left
	}))
	x.Config.ErrorLog = log.New(io.Discard, "", 0) // the CA is not known before it was injected
	x.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return x.pair.Load().ServerTLS() }}
	x.StartTLS()
	t.Cleanup(x.Close)
	return x
}

// definitionOf returns the CustomResourceDefinition of ExtensionConfig in that group.
func definitionOf(t *testing.T, group string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "crd", group+"_extensionconfigs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(process.ServerPatience); !check(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", process.ServerPatience, what)
		}
	}
}
