// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// scraper reads metrics as Prometheus does.
type scraper struct {
	client *http.Client
	token  string
}

func (s scraper) get(t testing.TB, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// serviceAccountToken returns a token of a new ServiceAccount.
func serviceAccountToken(t *testing.T, name string) string {
	t.Helper()
	config, c := connect(t)
	create(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}})
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// allowMetrics lets a ServiceAccount get /metrics.
func allowMetrics(t *testing.T, name string) {
	t.Helper()
	config, _ := connect(t)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	if _, err := clients.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server decides by what it has seen of roles, which is a little behind.
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:                  "system:serviceaccount:" + metav1.NamespaceDefault + ":" + name,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}}
	eventually(t, name+" may get /metrics", func() (string, bool) {
		answer, err := clients.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Reason, answer.Status.Allowed
	})
}

// TestDiagnosticsRequireAuthorizationBeyondLoopback: beyond loopback, metrics are served only to clients that the API
// server authorizes.
func TestDiagnosticsRequireAuthorizationBeyondLoopback(t *testing.T) {
	config, _ := connect(t)
	certs := t.TempDir()
	pair := certificates.In(t, certs)
	pool := pair.ClientTLS().RootCAs
	trusting := func(t *testing.T, certificates ...tls.Certificate) *http.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: patience}
	}
	runAt := func(t *testing.T, flags ...string) string {
		t.Helper()
		g := launchGateway(t, kubeconfigOf(t, config), certs,
			append([]string{"--diagnostics-address", "0.0.0.0:0"}, flags...)...)
		_, port, err := net.SplitHostPort(g.health)
		if err != nil {
			t.Fatal(err)
		}
		return "127.0.0.1:" + port
	}

	t.Run("Tokens", func(t *testing.T) {
		at := "https://" + runAt(t) + "/metrics"
		prometheus, stranger := serviceAccountToken(t, "prometheus"), serviceAccountToken(t, "stranger")
		allowMetrics(t, "prometheus")
		for name, tc := range map[string]struct {
			token string
			want  int
		}{
			"allowed": {prometheus, http.StatusOK},
			"known":   {stranger, http.StatusForbidden},
			"unknown": {"x", http.StatusInternalServerError}, // for which the API server has an error, not an answer
			"none":    {"", http.StatusUnauthorized},
		} {
			got, body := scraper{trusting(t), tc.token}.get(t, at)
			if got != tc.want || (got == http.StatusOK) != strings.Contains(body, "go_goroutines") {
				t.Errorf("%s: got %d, want %d:\n%.200s", name, got, tc.want, body)
			}
		}
	})
	t.Run("Insecure", func(t *testing.T) {
		if got, body := (scraper{client: trusting(t)}).get(t, "http://"+runAt(t, "--insecure-diagnostics")+"/metrics"); got != http.StatusOK {
			t.Errorf("got %d %s", got, body)
		}
	})
	t.Run("Profiler", func(t *testing.T) {
		port := strconv.Itoa(process.FreePort(t))
		at := runAt(t, "--insecure-diagnostics", "--profiler-address", "127.0.0.1:"+port)
		eventually(t, "the profiler answers", func() (string, bool) { // it may listen a little later than the others
			got, body := (scraper{client: trusting(t)}).get(t, "http://127.0.0.1:"+port+"/debug/pprof/goroutine?debug=1")
			return fmt.Sprintf("%d %.200s", got, body), got == http.StatusOK && strings.Contains(body, "goroutine profile")
		})
		if got, _ := (scraper{client: trusting(t)}).get(t, "http://"+at+"/debug/pprof/"); got != http.StatusNotFound {
			t.Errorf("diagnostics have profiles, too: %d", got)
		}
	})
	t.Run("Certificates", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(certs, "ca.crt"), pair.CAPEM, 0o600); err != nil {
			t.Fatal(err)
		}
		at := "https://" + runAt(t) + "/metrics"
		certificate := certificates.Of(t, pair)
		if got, body := (scraper{client: trusting(t, certificate)}).get(t, at); got != http.StatusOK {
			t.Errorf("with a certificate: %d %s", got, body)
		}
		if got, body := (scraper{client: trusting(t)}).get(t, at); got != http.StatusUnauthorized {
			t.Errorf("without one: %d %s", got, body)
		}
	})
}
