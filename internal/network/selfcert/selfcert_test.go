// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	namespace = "gateways"
	webhooks  = "hooks"
)

// cluster is an API server in memory, and a clock.
type cluster struct {
	client.Client
	now time.Time
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().Build()
	return &cluster{Client: c, now: time.Now()}
}

// service returns the configuration of a webhook that a Service of namespace answers.
func service(name string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name},
	}
}

// newWebhooks returns all kinds of objects with a caBundle.
func newWebhooks() []client.Object {
	meta := metav1.ObjectMeta{Name: webhooks}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: meta}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: webhookService},
		},
	}}
	return []client.Object{
		crd,
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: service(webhookService)}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{
				{ClientConfig: service(webhookService)}, {ClientConfig: service("another")},
			},
		},
	}
}

// gateway is a replica.
type gateway struct {
	*Issuer
	dir string
}

func (c *cluster) gateway(t *testing.T, change ...func(*Config)) *gateway {
	t.Helper()
	dir := t.TempDir()
	config := Config{
		Client: c, Namespace: namespace, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return c.now },
		Serving:  Files{Dir: filepath.Join(dir, "serving"), Cert: "tls.crt", Key: "tls.key"},
		Webhook:  Files{Dir: filepath.Join(dir, "webhook"), Cert: "tls.crt", Key: "tls.key"},
		Webhooks: newWebhooks(),
	}
	for _, f := range change {
		f(&config)
	}
	return &gateway{New(config), dir}
}

func (g *gateway) sync(t *testing.T) {
	t.Helper()
	if err := g.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// leaf returns the certificate in a directory, whose key must fit.
func (g *gateway) leaf(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(g.dir, dir, "tls.crt"), filepath.Join(g.dir, dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func (c *cluster) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *cluster) remove(t *testing.T, name string) {
	t.Helper()
	if err := c.Delete(t.Context(), c.secret(t, name)); err != nil {
		t.Fatal(err)
	}
}

// certificates returns those in the key of a Secret.
func (c *cluster) certificates(t *testing.T, name, key string) []*x509.Certificate {
	t.Helper()
	found, err := cert.ParseCertsPEM(c.secret(t, name).Data[key])
	if err != nil {
		t.Fatalf("%s of %s: %v", key, name, err)
	}
	return found
}

// bundle returns the caBundle of the webhooks, which must be the same everywhere, and that of callers.
func (c *cluster) bundle(t *testing.T) []byte {
	t.Helper()
	want := c.secret(t, servingSecret).Data[caKey]
	for _, object := range newWebhooks() {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		for _, got := range New(Config{Namespace: namespace}).bundles(object) {
			if !bytes.Equal(*got, want) {
				t.Errorf("the caBundle of a %T is not ca.crt of %s: %s", object, servingSecret, *got)
			}
		}
	}
	if got := c.secret(t, authoritySecret).Data[caKey]; !bytes.Equal(got, want) {
		t.Errorf("ca.crt of %s is not that of %s", authoritySecret, servingSecret)
	}
	return want
}

// trusts returns an error unless someone with these authorities accepts a certificate now.
func (c *cluster) trusts(bundle []byte, leaf *x509.Certificate, usage x509.ExtKeyUsage, name string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: name, CurrentTime: c.now, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

// checkTrusted fails unless callers and the API server accept what a gateway shows, by each of the bundles.
func (c *cluster) checkTrusted(t *testing.T, when string, g *gateway, bundles ...[]byte) {
	t.Helper()
	for dir, name := range map[string]string{"serving": "hookgate." + namespace + ".svc", "webhook": "hookgate-webhook." + namespace + ".svc"} {
		for _, bundle := range bundles {
			if err := c.trusts(bundle, g.leaf(t, dir), x509.ExtKeyUsageServerAuth, name); err != nil {
				t.Errorf("%s, %s: %v", when, dir, err)
			}
		}
	}
}

func TestFirstStartMakesEverythingAndReplicasShareIt(t *testing.T) {
	c := newCluster(t, newWebhooks()...)
	g := c.gateway(t)
	g.sync(t)
	c.checkTrusted(t, "first start", g, c.bundle(t))
	callers, err := os.ReadFile(filepath.Join(g.dir, "serving", caKey))
	if err != nil {
		t.Fatal(err)
	}
	caller := c.certificates(t, clusterAPISecret, corev1.TLSCertKey)[0]
	if err := c.trusts(callers, caller, x509.ExtKeyUsageClientAuth, ""); err != nil || caller.Subject.CommonName != "cluster-api" {
		t.Errorf("the certificate for Cluster API: %v, %s", err, caller.Subject)
	}
	if err := c.trusts(callers, g.leaf(t, "serving"), x509.ExtKeyUsageServerAuth, ""); err == nil {
		t.Error("callers and servers have one CA: the gateway's own certificate lets one call")
	}
	if others := c.others(t); len(others) > 0 {
		t.Errorf("the webhook of another Service was changed: %s", others)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: infrastructureSecret}, &corev1.Secret{}); err == nil {
		t.Error("there is a certificate for the infrastructure provider, which is not installed")
	}

	before := c.versions(t)
	restarted := c.gateway(t)
	restarted.sync(t)
	g.sync(t)
	if after := c.versions(t); before != after {
		t.Errorf("a second replica writes, and nothing is due:\n%s\n%s", before, after)
	}
	for _, dir := range []string{"serving", "webhook"} {
		if !restarted.leaf(t, dir).Equal(g.leaf(t, dir)) {
			t.Errorf("%s: replicas show two certificates", dir)
		}
	}
}

// others returns the caBundle of the webhook of another Service.
func (c *cluster) others(t *testing.T) []byte {
	t.Helper()
	o := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: webhooks}, o); err != nil {
		t.Fatal(err)
	}
	return o.Webhooks[1].ClientConfig.CABundle
}

// versions returns the names and versions of everything.
func (c *cluster) versions(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		text.WriteString(list.Items[i].Name + "=" + list.Items[i].ResourceVersion + " ")
	}
	for _, object := range newWebhooks() {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		text.WriteString(object.GetResourceVersion() + " ")
	}
	return text.String()
}

// TestRenewal holds that certificates are renewed in the last third of their lifetimes, and that those who have the
// bundle from before accept what comes, and the other way around.
func TestRenewal(t *testing.T) {
	c := newCluster(t, newWebhooks()...)
	g := c.gateway(t)
	g.sync(t)
	begin := c.now
	authority := c.certificates(t, authoritySecret, corev1.TLSCertKey)[0]
	const step = 20 * 24 * time.Hour
	for age := time.Duration(0); age < authorityLifetime*7/10; age += step {
		if age > 2*servingLifetime && age < authorityLifetime*6/10 { // years in which nothing else happens
			age = authorityLifetime * 6 / 10
			c.now = begin.Add(age - step)
			g.sync(t)
		}
		c.now = begin.Add(age)
		before, serving, webhook := c.bundle(t), g.leaf(t, "serving"), g.leaf(t, "webhook")
		g.sync(t)
		c.checkTrusted(t, age.String(), g, before, c.bundle(t))
		for name, leaf := range map[string]*x509.Certificate{"hookgate": serving, "hookgate-webhook": webhook} {
			if err := c.trusts(c.bundle(t), leaf, x509.ExtKeyUsageServerAuth, name+"."+namespace+".svc"); err != nil {
				t.Fatalf("%s: what another replica shows: %v", age, err)
			}
			if left := leaf.NotAfter.Sub(c.now); left < servingLifetime/3-step-24*time.Hour {
				t.Fatalf("%s: a certificate was left until %s before its end", age, left)
			}
		}
	}
	if now := c.certificates(t, authoritySecret, corev1.TLSCertKey)[0]; now.Equal(authority) || !sameKey(now, authority) {
		t.Error("the CA is the same one after ten years, or has another key")
	}
	if callers := c.certificates(t, callersSecret, caKey); len(callers) != 1 || callers[0].NotAfter.Before(c.now) {
		t.Errorf("the CA of callers: %d, until %s", len(callers), callers[0].NotAfter)
	}
	if caller := c.certificates(t, clusterAPISecret, corev1.TLSCertKey)[0]; caller.NotAfter.Before(c.now.Add(authorityLifetime / 4)) {
		t.Errorf("the certificate for Cluster API ends at %s", caller.NotAfter)
	}
}

// TestNewCAIsKnownBeforeItSigns holds that no call fails when the CA is deleted: the new one signs once all may know it,
// and the old one stays while a replica may show what it has signed.
func TestNewCAIsKnownBeforeItSigns(t *testing.T) {
	c := newCluster(t, newWebhooks()...)
	g := c.gateway(t)
	g.sync(t)
	first, alone := g.leaf(t, "serving"), c.bundle(t)
	c.now = c.now.Add(30 * 24 * time.Hour)
	c.remove(t, authoritySecret)
	g.sync(t)
	both := c.bundle(t)
	if !g.leaf(t, "serving").Equal(first) {
		t.Error("the new CA signs before anyone can know it")
	}
	c.checkTrusted(t, "new CA", g, alone, both)

	c.now = c.now.Add(spread + time.Second)
	g.sync(t)
	second := g.leaf(t, "serving")
	if second.Equal(first) {
		t.Error("the new CA does not sign")
	}
	c.checkTrusted(t, "new certificate", g, both, c.bundle(t))
	for _, later := range []time.Duration{time.Minute, retired - 2*time.Minute} { // for replicas that still show the first
		c.now = c.now.Add(later)
		g.sync(t)
		if err := c.trusts(c.bundle(t), first, x509.ExtKeyUsageServerAuth, ""); err != nil {
			t.Errorf("%s later: %v", later, err)
		}
	}
	c.now = c.now.Add(2 * time.Minute)
	g.sync(t)
	if err := c.trusts(c.bundle(t), first, x509.ExtKeyUsageServerAuth, ""); err == nil {
		t.Error("a CA that was deleted is trusted for good")
	}
	c.checkTrusted(t, "end", g, c.bundle(t))
}

func TestDeletedSecretsAreMadeAnew(t *testing.T) {
	c := newCluster(t, newWebhooks()...)
	g := c.gateway(t)
	g.sync(t)
	for _, name := range []string{authoritySecret, servingSecret, webhookSecret, callersSecret, clusterAPISecret} {
		before := c.bundle(t)
		c.remove(t, name)
		g.sync(t)
		c.checkTrusted(t, name, g, before, c.bundle(t))
		callers := c.secret(t, callersSecret).Data[caKey]
		if err := c.trusts(callers, c.certificates(t, clusterAPISecret, corev1.TLSCertKey)[0], x509.ExtKeyUsageClientAuth, ""); err != nil {
			t.Errorf("%s: the certificate for Cluster API: %v", name, err)
		}
		if n := len(c.certificates(t, callersSecret, caKey)); n != 1 {
			t.Errorf("%s: callers of %d CAs may call: to delete one is to revoke it", name, n)
		}
	}
}

// TestSecretsOfOthersStay holds that what cert-manager or a person has made is used, and never written.
func TestSecretsOfOthersStay(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(s *corev1.Secret)
		want   string // of the error; empty if the Secret is used
	}{
		"of cert-manager": {func(s *corev1.Secret) {
			s.Annotations = map[string]string{"cert-manager.io/certificate-name": s.Name}
		}, ""},
		"of a person":              {func(s *corev1.Secret) { s.Labels = nil }, ""},
		"of a person, without key": {func(s *corev1.Secret) { s.Labels, s.Data["tls.key"] = nil, nil }, "correct the Secret, or delete it so that the gateway makes another"},
		"of a person, not PEM":     {func(s *corev1.Secret) { s.Labels, s.Data[caKey] = nil, []byte("x") }, "correct the Secret, or delete it so that the gateway makes another"},
	} {
		for _, secret := range []string{authoritySecret, servingSecret, webhookSecret, callersSecret, clusterAPISecret} {
			c := newCluster(t, newWebhooks()...)
			c.gateway(t).sync(t)
			s := c.secret(t, secret)
			tt.change(s)
			if err := c.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			version := s.ResourceVersion
			g := c.gateway(t)
			err := g.Sync(t.Context())
			want := tt.want
			if secret == callersSecret && name == "of a person, without key" {
				want = "" // the key is elsewhere
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), secret)) {
				t.Errorf("%s, %s: got %v, want %q", name, secret, err, want)
			}
			if err == nil {
				c.checkTrusted(t, name, g, c.secret(t, servingSecret).Data[caKey])
			}
			c.now = c.now.Add(authorityLifetime) // everything is due, and expired
			_ = g.Sync(t.Context())
			if got := c.secret(t, secret).ResourceVersion; got != version {
				t.Errorf("%s: %s was written", name, secret)
			}
		}
	}
}

func TestWebhooksThatCertManagerSetsStay(t *testing.T) {
	objects := newWebhooks()
	objects[1].SetAnnotations(map[string]string{injectAnnotation: "gateways/other"})
	c := newCluster(t, objects...)
	err := c.gateway(t).Sync(t.Context())
	if want := "patch MutatingWebhookConfiguration hooks: the annotation cert-manager.io/inject-ca-from=gateways/other makes " +
		"cert-manager write the caBundle: remove the annotation"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	o := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: webhooks}, o); err != nil || o.Webhooks[0].ClientConfig.CABundle != nil {
		t.Errorf("%v, caBundle %s", err, o.Webhooks[0].ClientConfig.CABundle)
	}
}

func TestCallersOfTheOperator(t *testing.T) {
	c := newCluster(t)
	own := func(config *Config) { config.Callers = OwnCallers }
	want := "the Secret gateways/hookgate-callers-ca has no ca.crt: put the CA of your callers' certificates there"
	if err := c.gateway(t, own).Sync(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	ca := []byte("a CA")
	if err := c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: callersSecret}, Data: map[string][]byte{caKey: ca},
	}); err != nil {
		t.Fatal(err)
	}
	g := c.gateway(t, own)
	g.sync(t)
	if got, err := os.ReadFile(filepath.Join(g.dir, "serving", caKey)); err != nil || !bytes.Equal(got, ca) {
		t.Errorf("%v, %s", err, got)
	}
	anyone := c.gateway(t, func(config *Config) { config.Callers = AnyCallers })
	anyone.sync(t)
	if _, err := os.Stat(filepath.Join(anyone.dir, "serving", caKey)); err == nil {
		t.Error("callers must show a certificate")
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: clusterAPISecret}, &corev1.Secret{}); err == nil {
		t.Error("there is a certificate for Cluster API")
	}
}

func TestInfrastructureProviderGetsItsCertificates(t *testing.T) {
	provider := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: InfrastructureWebhooks},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{ClientConfig: service(infrastructureWebhookService)}},
	}
	c := newCluster(t, append(newWebhooks(), provider)...)
	c.gateway(t, func(config *Config) {
		config.Webhooks = append(config.Webhooks, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: provider.ObjectMeta})
	}).sync(t)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(provider), provider); err != nil {
		t.Fatal(err)
	}
	shown := c.certificates(t, infrastructureWebhookSecret, corev1.TLSCertKey)[0]
	if err := c.trusts(provider.Webhooks[0].ClientConfig.CABundle, shown, x509.ExtKeyUsageServerAuth, "hookgate-infrastructure-webhook.gateways.svc"); err != nil {
		t.Error(err)
	}
	caller := c.certificates(t, infrastructureSecret, corev1.TLSCertKey)[0]
	if err := c.trusts(c.secret(t, callersSecret).Data[caKey], caller, x509.ExtKeyUsageClientAuth, ""); err != nil {
		t.Error(err)
	}
}

// TestStartWithoutAPIServer holds that a gateway that has had its certificates starts again, and another says why not.
func TestStartWithoutAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newWebhooks()...)
		g := c.gateway(t)
		if err := g.Start(t.Context()); err != nil || g.Warning() != "" {
			t.Fatal(err, g.Warning())
		}
		down := errors.New("connection refused")
		c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return down
			},
		})
		if err := g.Start(t.Context()); err != nil || !strings.Contains(g.Warning(), down.Error()) {
			t.Errorf("with files: %v, warning %q", err, g.Warning())
		}
		if err := c.gateway(t).Start(t.Context()); !errors.Is(err, down) {
			t.Errorf("without files: %v", err)
		}
	})
}

// TestRunRepairs holds that a gateway that runs makes anew what is deleted, and stops.
func TestRunRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newWebhooks()...)
		g := c.gateway(t)
		g.sync(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.Run(ctx) }()
		c.remove(t, servingSecret)
		time.Sleep(interval + time.Second)
		c.secret(t, servingSecret)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
