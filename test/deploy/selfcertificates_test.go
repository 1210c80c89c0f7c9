// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/rights"
)

// selfCertified lists the overlays with the components that do without cert-manager.
var selfCertified = map[string]string{
	"hub-beside-core":    "self-certificates/hub-beside-core",
	"hub-alone":          "self-certificates/hub-alone",
	"reader-beside-core": "self-certificates/without-webhooks",
	"directory":          "self-certificates/without-webhooks",
}

// guideWithoutCertManager is the name of the guide's kustomization.
const guideWithoutCertManager = "without-cert-manager/kustomization.yaml"

// selfCertificates renders the guide's kustomization, for an overlay.
func selfCertificates(t *testing.T, overlay string) []object {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	of := strings.NewReplacer("overlays/hub-beside-core", "overlays/"+overlay, "self-certificates/hub-beside-core", selfCertified[overlay])
	writeFile(t, filepath.Join(dir, "kustomization.yaml"), []byte(of.Replace(guideFiles(t, dir)[guideWithoutCertManager])))
	return decode(t, overlay, kustomize(t, dir))
}

// TestSelfCertificatesNeedNoCertManager checks that nothing of cert-manager is left, and that the gateway may write its own
// Secrets, webhooks and definitions, and no others.
func TestSelfCertificatesNeedNoCertManager(t *testing.T) {
	for overlay := range selfCertified {
		t.Run(overlay, func(t *testing.T) {
			objects := selfCertificates(t, overlay)
			var want []string // what has a caBundle
			for _, o := range objects {
				if bytes.Contains(o.manifest, []byte("cert-manager")) {
					t.Errorf("%s %s is for cert-manager:\n%s", o.kind, o.GetName(), o.manifest)
				}
				resource := ""
				switch o := o.Object.(type) {
				case *admissionregistrationv1.MutatingWebhookConfiguration:
					resource = "mutatingwebhookconfigurations"
				case *admissionregistrationv1.ValidatingWebhookConfiguration:
					resource = "validatingwebhookconfigurations"
				case *apiextensionsv1.CustomResourceDefinition:
					if c := o.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
						resource = "customresourcedefinitions"
					}
				}
				if resource != "" {
					want = append(want, resource+" "+o.GetName())
				}
			}
			var got []string
			rules := func(all []rbacv1.PolicyRule) {
				for _, rule := range all {
					for _, resource := range rule.Resources {
						if resource == "secrets" && slices.Contains(rule.Verbs, "create") && len(rule.ResourceNames) == 0 {
							t.Errorf("a role allows any Secret: %v", rule)
						}
						if strings.HasSuffix(resource, "webhookconfigurations") || slices.Contains(rule.Verbs, "patch") && resource == "customresourcedefinitions" {
							for _, name := range rule.ResourceNames {
								got = append(got, resource+" "+name)
							}
						}
					}
				}
			}
			for _, r := range all[*rbacv1.ClusterRole](objects) {
				rules(r.Rules)
			}
			for _, r := range all[*rbacv1.Role](objects) {
				rules(r.Rules)
			}
			if len(want) > 0 {
				want = append(want, "validatingwebhookconfigurations hookgate-infrastructure-validating-webhook") // of the provider
			}
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("the gateway may write the caBundles of\n%q, want those of\n%q", got, want)
			}
		})
	}
}

// TestSelfCertificates installs a hub without cert-manager on a real API server, with the rights of its roles: the API
// server calls the webhooks of two replicas by the name of the Service, a caller uses its certificate, and what is deleted
// comes back without a failed call.
func TestSelfCertificates(t *testing.T) {
	binary := program(t, gatewayVariable)
	address := addressOf(t)
	objects := selfCertificates(t, "hub-beside-core")
	s := newServer(t, func(a *envtest.APIServer) { a.Configure().Set("enable-aggregator-routing", "true") })
	for _, o := range objects {
		s.apply(t, marshal(t, o.Object))
	}
	roles, bindings := rolesOf(objects)
	rights.Await(t, s.Config, roles, bindings, namespace, "hookgate")

	container := container(t, one[*appsv1.Deployment](t, objects))
	start := func() replica {
		empty := map[string]map[string]string{}
		for _, m := range container.VolumeMounts {
			empty[m.MountPath] = map[string]string{}
		}
		port := process.FreePort(t)
		args := localArguments(t, container, certificates.New(t), empty)
		for i, a := range args {
			if strings.HasPrefix(a, "--webhook-port=") {
				args[i] = "--webhook-port=" + strconv.Itoa(port)
			}
		}
		return replica{process.RunGateway(t, exec.Command(binary, append(args, "--kubeconfig="+s.kubeconfig, "--resync=1s")...)), port}
	}
	first, second := start(), start()
	for i, r := range []replica{first, second} {
		s.apply(t, endpoint(t, fmt.Sprintf("hookgate-webhook-%d", i), address, r.port))
	}
	// It is kept in v1beta2, and checked and converted by the webhooks.
	old := "apiVersion: runtime.hookgate.dev/v1alpha1\nkind: ExtensionConfig\nmetadata: {name: acme}\nspec: {clientConfig: {url: 'https://127.0.0.1:1'}}\n"
	eventually(t, "the API server uses the webhooks", func() bool { return kubectlApply(s.admin, []byte(old)) == "" })
	chain := "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata: {name: chain}\nspec: {hook: Nothing, steps: [{handler: a.acme}]}\n"
	if refused := kubectlApply(s.admin, []byte(chain)); !strings.Contains(refused, "Nothing") {
		t.Errorf("a chain of a hook that there is not: %s", refused)
	}
	for _, r := range []replica{first, second} {
		eventually(t, "Cluster API may call", func() bool { return s.call200(t, r.Gateway) == nil })
	}

	for _, name := range []string{"hookgate-serving-cert", "hookgate-webhook-cert", "hookgate-callers-ca", "hookgate-cluster-api-client", "hookgate-ca"} {
		before := s.bundle(t)
		uid := s.secret(t, name).UID
		if err := s.client.Delete(t.Context(), s.secret(t, name)); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" is made anew", func() bool {
			// The webhooks answer all the time, and so does the gateway to those who trust what was trusted.
			if refused := kubectlApply(s.admin, []byte(strings.Replace(old, "url: ", "url:  ", 1)), "--force-conflicts"); refused != "" {
				t.Errorf("%s was deleted: %s", name, refused)
			}
			if err := shown(first.HTTPS, before, s.bundle(t)); err != nil {
				t.Errorf("%s was deleted: %v", name, err)
			}
			secret := &corev1.Secret{}
			return s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret) == nil && secret.UID != uid
		})
	}
	eventually(t, "Cluster API may call with its new certificate", func() bool { return s.call200(t, first.Gateway) == nil })

	authority := s.secret(t, "hookgate-ca")
	first.EndWell(t)
	third := start()
	if now := s.secret(t, "hookgate-ca"); now.ResourceVersion != authority.ResourceVersion {
		t.Error("a restart has changed the CA")
	}
	eventually(t, "Cluster API may call the restarted gateway", func() bool { return s.call200(t, third.Gateway) == nil })
	second.EndWell(t)
	third.EndWell(t)

	other := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
	if refused := kubectlApply(s.kubeconfig, marshal(t, other)); !strings.Contains(refused, "forbidden") {
		t.Errorf("the gateway may make other Secrets: %q", refused)
	}
	requests, err := rights.Read(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	requests = slices.DeleteFunc(requests, func(r rights.Request) bool { return strings.Contains(r.URI, "/secrets/other") })
	if _, forbidden := rights.Used(requests, account); len(forbidden) > 0 {
		t.Errorf("no role allowed what the gateway asked for: %s", strings.Join(forbidden, ", "))
	}
}

// replica is a gateway, with the port of its webhooks.
type replica struct {
	*process.Gateway
	port int
}

// addressOf returns an address of this machine that an EndpointSlice may have, which loopback is not.
func addressOf(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback, which an EndpointSlice may not have")
	return ""
}

// endpoint returns the manifest of an EndpointSlice for the Service of the webhooks.
func endpoint(t *testing.T, name, address string, port int) []byte {
	t.Helper()
	return marshal(t, &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "hookgate-webhook"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("webhook"), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)}},
	})
}

func (s *server) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// bundle returns what a caller trusts who reads the Secret now, as Cluster API does; nothing if it is being replaced.
func (s *server) bundle(t *testing.T) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "hookgate-serving-cert"}, secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return secret.Data["ca.crt"]
}

// shown returns an error unless all those with a bundle accept the certificate that is shown at an address.
func shown(address string, bundles ...[]byte) error {
	for _, bundle := range bundles {
		if len(bundle) == 0 {
			continue
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		// In TLS 1.3, a client has verified the server before that asks for its certificate.
		c, err := tls.Dial("tcp", "127.0.0.1"+portOf(address), &tls.Config{RootCAs: roots, ServerName: "hookgate." + namespace + ".svc"})
		if err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// call200 calls a hook with the certificate and the CA that Cluster API gets.
func (s *server) call200(t *testing.T, g *process.Gateway) error {
	t.Helper()
	caller := s.secret(t, "hookgate-cluster-api-client")
	pair, err := tls.X509KeyPair(caller.Data["tls.crt"], caller.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.bundle(t))
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "hookgate." + namespace + ".svc",
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: process.Patience}).Post("https://127.0.0.1"+portOf(g.HTTPS)+
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", "application/json", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("call with the certificate of the Secret: %s", resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}
