// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/test/certificates"
)

// newCA returns the certificate of a new CA in PEM.
func newCA(t testing.TB) []byte {
	t.Helper()
	return certificates.New(t).CAPEM
}

// injecting requests the CA of a Secret for an ExtensionConfig.
func injecting(reference string) func(*runtimev1.ExtensionConfig) {
	return func(c *runtimev1.ExtensionConfig) { c.Annotations[runtimev1.InjectCAFromSecretAnnotation] = reference }
}

func TestCABundleFollowsItsSecret(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	first, second := newCA(t), newCA(t)
	api.secret("ca", map[string][]byte{"ca.crt": first})
	api.register("acme", injecting("system/ca"))
	if config := api.awaitDiscovered(t, "acme"); !bytes.Equal(config.Spec.ClientConfig.CABundle, first) {
		t.Error("caBundle is not ca.crt of the Secret")
	}
	expectWrites(t, api, 0, "PATCH acme 200", "PATCH acme 200", "PATCH acme/status 200")
	asked := len(r.extensions.calls())
	api.secret("ca", map[string][]byte{"ca.crt": second})
	eventually(t, "the new CA is used", func() (string, bool) {
		calls := r.extensions.calls()
		return "", len(calls) > asked && bytes.Equal(calls[len(calls)-1].CABundle, second)
	})
	if config := api.awaitDiscovered(t, "acme"); !bytes.Equal(config.Spec.ClientConfig.CABundle, second) {
		t.Error("caBundle does not follow the Secret")
	}
	for i, c := range r.extensions.calls() {
		if want := [][]byte{first, second}[min(i/asked, 1)]; !bytes.Equal(c.CABundle, want) {
			t.Errorf("call %d of the extension, of %d, is with another CA than the Secret had", i, len(r.extensions.calls()))
		}
	}
	eventually(t, "an event reports it", func() (string, bool) {
		got := strings.Join(api.events(), "\n")
		return got, strings.Contains(
			got,
			"Normal CABundleInjected: caBundle is now set from the Secret in annotation runtime.cluster.x-k8s.io/inject-ca-from-secret",
		)
	})

	// A paused one is left alone.
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Annotations[clusterv1.PausedAnnotation] = "" })
	api.awaitCondition(t, "acme", paused, metav1.ConditionTrue, "annotation cluster.x-k8s.io/paused is set")
	marked := len(api.written())
	api.secret("ca", map[string][]byte{"ca.crt": first})
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"k": "v"} })
	api.awaitCondition(t, "acme", paused, metav1.ConditionTrue, "annotation cluster.x-k8s.io/paused is set")
	expectWrites(t, api, marked, "PATCH acme/status 200")
	api.register("acme", func(c *runtimev1.ExtensionConfig) { delete(c.Annotations, clusterv1.PausedAnnotation) })
	eventually(t, "what the Secret became during the pause is injected", func() (string, bool) {
		return "", bytes.Equal(api.get("acme").Spec.ClientConfig.CABundle, first)
	})
}

func TestSecretsWithoutCA(t *testing.T) {
	const greatest = 38400 // bytes, which are 51200 in base64
	ca := newCA(t)
	padded := func(n int) []byte {
		return append(bytes.Repeat([]byte("#"), n-len(ca)-1), append([]byte("\n"), ca...)...)
	}
	forbidden := func(method, path string) error {
		if method == http.MethodGet && strings.HasSuffix(path, "/secrets/ca") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "ca", nil)
		}
		return nil
	}
	for name, tc := range map[string]struct {
		reason    string
		reference string
		secret    []byte // ca.crt; nil for no Secret
		before    func(method, path string) error
		want      string // empty if it is injected
	}{
		"missing":      {"it may come later", "system/ca", nil, nil, "Secret system/ca does not exist; create it, or remove the annotation"},
		"empty":        {"cert-manager writes it where it knows the CA", "system/ca", []byte{}, nil, "Secret system/ca has no ca.crt; put the CA of the extension's certificate there"},
		"garbage":      {"every connection would fail", "system/ca", []byte("not PEM"), nil, "Secret system/ca: ca.crt has no certificate in PEM"},
		"greatest":     {"it has room", "system/ca", padded(greatest), nil, ""},
		"too large":    {"it has no room", "system/ca", padded(greatest + 1), nil, "Secret system/ca: ca.crt has 38401 bytes, which is more than caBundle has room for"},
		"no namespace": {"an ExtensionConfig has no namespace to default to", "ca", ca, nil, `"ca" is not of the form <namespace>/<name>`},
		"no name":      {"there is none to read", "system/", ca, nil, `"system/" is not of the form <namespace>/<name>`},
		"too much":     {"a name has no slash", "system/ca/x", ca, nil, `"system/ca/x" is not of the form <namespace>/<name>`},
		"elsewhere":    {"--namespace limits what is read", "other/ca", ca, nil, "Secret other/ca is not in namespace system, the only one that this gateway may read (--namespace)"},
		"forbidden":    {"an operator has to allow it", "system/ca", ca, forbidden, "Secret system/ca: the gateway may not read it; allow its service account to get it"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPIServer(t)
			api.before(tc.before)
			r := start(t, api, func(c *controllers.Config) { c.Namespace = "system" })
			if tc.secret != nil {
				api.secret("ca", map[string][]byte{"ca.crt": tc.secret, "tls.crt": ca})
			}
			api.register("acme", injecting(tc.reference))
			if tc.want == "" {
				api.awaitDiscovered(t, "acme")
				return
			}
			const annotation = "annotation runtime.cluster.x-k8s.io/inject-ca-from-secret: "
			api.awaitCondition(t, "acme", discovered, metav1.ConditionFalse, annotation+tc.want)
			expectWrites(t, api, 0, "PATCH acme/status 200")
			if calls := r.extensions.calls(); len(calls) > 0 {
				t.Errorf("%s: the extension was asked", tc.reason)
			}
			// It is looked at again by itself: the right to read a Secret may come without an event.
			api.before(nil)
			api.secret("ca", map[string][]byte{"ca.crt": ca})
			if tc.reference == "system/ca" {
				api.awaitDiscovered(t, "acme")
			}
		})
	}
}

func TestMissingSecretKeepsWhatIsServed(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	api.register("acme", func(c *runtimev1.ExtensionConfig) {
		injecting("system/ca")(c)
		c.Spec.Settings = map[string]string{"k": "v"}
	})
	api.awaitCondition(
		t,
		"acme",
		discovered,
		metav1.ConditionFalse,
		"annotation runtime.cluster.x-k8s.io/inject-ca-from-secret: Secret system/ca does not exist; create it, or remove the annotation"+
			"; its last known handlers are still served: 1",
	)
	r.awaitServed(t, "a.acme https://acme.example.com")
	if got := r.registry.Snapshot().All()[0].Registration.Settings["k"]; got != "v" {
		t.Errorf("setting k is %q: the new settings are not served with the last known handlers", got)
	}
}

func TestSecretThatCannotBeReadSaysNothing(t *testing.T) {
	api := newAPIServer(t)
	var reads atomic.Int32
	api.before(func(method, path string) error {
		if method == http.MethodGet && strings.HasSuffix(path, "/secrets/ca") && reads.Add(1) <= 3 {
			return apierrors.NewInternalError(errors.New("etcd is away"))
		}
		return nil
	})
	r := start(t, api, nil)
	ca := newCA(t)
	api.secret("ca", map[string][]byte{"ca.crt": ca})
	api.register("acme", injecting("system/ca"))
	api.awaitDiscovered(t, "acme")
	r.awaitLog(t, "API server refused; trying again")
	expectWrites(t, api, 0, "PATCH acme 200", "PATCH acme 200", "PATCH acme/status 200")
}
