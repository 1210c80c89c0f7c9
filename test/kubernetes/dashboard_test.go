// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bufio"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
)

// withPod is the address of an API server in which a gateway runs: Pods are those of tunneltest, and all else is the
// real one, to which a user's token says who asks.
func withPod(t *testing.T, config *rest.Config, page string) string {
	t.Helper()
	pods := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour))
	pods.Ports["8443"] = page
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	others := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Impersonate-User", strings.TrimPrefix(r.In.Header.Get("Authorization"), "Bearer "))
		r.Out.Header.Del("Authorization")
	}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/pods") || strings.Contains(r.URL.Path, "/serviceaccounts") {
			pods.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// browser is a browser that sees a gateway's page through hookgate dashboard, with the rights of a user.
type browser struct {
	*http.Client
	actions string
}

// dashboard runs hookgate dashboard as a user, and opens the link that it prints.
func dashboard(t *testing.T, server, user string) *browser {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: server, InsecureSkipTLSVerify: true}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: user}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Getenv(gatewayVariable), "dashboard", "--kubeconfig", kubeconfig, "--browser=false")
	errOut, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(errOut)
	link := ""
	for said := ""; link == ""; {
		line, err := lines.ReadString('\n')
		if said += line; err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?code=\w+`).FindString(line)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	actions, _, _ := strings.Cut(link, "/?")
	b := &browser{Client: &http.Client{Jar: jar}, actions: actions}
	if code, body := b.visit(t, link, nil); code != http.StatusOK || !strings.Contains(body, "lift") {
		t.Fatalf("the page that the link leads to: %d %s", code, body)
	}
	return b
}

// visit gets a page, and sends a form to it if there is one.
func (b *browser) visit(t *testing.T, link string, form url.Values) (code int, body string) {
	t.Helper()
	send := func() (*http.Response, error) { return b.Get(link) }
	if form != nil {
		send = func() (*http.Response, error) { return b.PostForm(link, form) }
	}
	response, err := send()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, html.UnescapeString(string(text))
}

// confirm sends the form of a page.
func (b *browser) confirm(t *testing.T, action, page string) (code int, body string) {
	t.Helper()
	form := url.Values{}
	for _, match := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		form.Set(match[1], match[2])
	}
	return b.visit(t, b.actions+"/"+action, form)
}

// TestDashboardActs lifts a hold and approves a Cluster from a gateway's page, with the rights of who looks at it, and
// none of the gateway's. Who lacks the rights sees what the API server says, and nothing changes.
func TestDashboardActs(t *testing.T) {
	config, r := newRollouts(t)
	c := r.Client
	r.cluster(t, "prod-1")
	create(t, c, &v1alpha1.ExtensionRollout{ObjectMeta: metav1.ObjectMeta{Name: "acme"},
		Spec: v1alpha1.ExtensionRolloutSpec{Stable: "acme", Candidate: "acme-v7", Compare: true}})
	r.record(t, "prod-1", v1alpha1.RolloutStateDifferent)
	user(t, config, c, "operator", rbacv1.PolicyRule{APIGroups: []string{"hookgate.dev", "cluster.x-k8s.io", controllers.ClusterAPIGroup, controllers.HookgateGroup}, Resources: []string{"*"}, Verbs: []string{"*"}})
	user(t, config, c, "reader", rbacv1.PolicyRule{APIGroups: []string{"hookgate.dev", "cluster.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	// The gateway's page is tested where it is made. This one says which actions it is told of.
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get(status.ActionsHeader))
	}))
	t.Cleanup(page.Close)
	server := withPod(t, config, strings.TrimPrefix(page.URL, "http://"))
	const approve = "/approve?rollout=acme&cluster=team-a%2Fprod-1"
	const lift = "/lift?handler=volumes.acme&hook=BeforeClusterUpgrade&cluster=team-a%2Fprod-1"
	spec := v1alpha1.ExtensionRolloutSpec{Stable: "acme", Candidate: "acme-v7", Compare: true}
	policy := func() *v1alpha1.ExtensionPolicy {
		p := &v1alpha1.ExtensionPolicy{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "acme"}, p); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return p
	}

	stranger := dashboard(t, server, "stranger")
	if code, body := stranger.visit(t, stranger.actions+approve, nil); code != http.StatusForbidden || !strings.Contains(body, `User "stranger" cannot get resource "extensionrollouts"`) {
		t.Errorf("a stranger looks: %d %s", code, body)
	}
	reader := dashboard(t, server, "reader")
	for action, want := range map[string][]string{
		approve: {"Cluster team-a/prod-1: different", `User "reader" cannot update resource "extensionrollouts"`},
		lift:    {`ExtensionPolicy "acme" is created`, `User "reader" cannot create resource "extensionpolicies"`},
	} {
		code, body := reader.visit(t, reader.actions+action, nil)
		if code != http.StatusOK || !strings.Contains(body, want[0]) {
			t.Errorf("a reader looks: %d %s", code, body)
		}
		name, _, _ := strings.Cut(action[1:], "?")
		if code, body = reader.confirm(t, name, body); code != http.StatusForbidden || !strings.Contains(body, want[1]) {
			t.Errorf("a reader acts: %d %s", code, body)
		}
	}
	if r.spec(t, spec); policy().UID != "" {
		t.Errorf("a reader has lifted a hold: %+v", policy().Spec)
	}

	operator := dashboard(t, server, "operator")
	_, body := operator.visit(t, operator.actions+approve, nil)
	for _, want := range []string{"Cluster team-a/prod-1: different", "patch: KubeadmConfigTemplate x /spec/a 1 → 2", "Approve the answers of acme-v7?"} {
		if !strings.Contains(body, want) {
			t.Errorf("lacks %s: %s", want, body)
		}
	}
	r.spec(t, spec)
	if code, body := stranger.confirm(t, "approve", body); code != http.StatusForbidden {
		t.Errorf("the form of another process: %d %s", code, body)
	}
	if code, body := operator.confirm(t, "approve", body); code != http.StatusOK || !strings.Contains(body, "Approved.") {
		t.Errorf("an operator approves: %d %s", code, body)
	}
	spec.Approved = []string{"team-a/prod-1"}
	r.spec(t, spec)
	_, body = operator.visit(t, operator.actions+lift, nil)
	if code, body := operator.confirm(t, "lift", body); code != http.StatusOK || !strings.Contains(body, "Lifted: ") {
		t.Errorf("an operator lifts a hold: %d %s", code, body)
	}
	if p := policy(); len(p.Spec.LiftedHolds) != 1 || p.Spec.LiftedHolds[0].Version != "v1" || p.Spec.LiftedHolds[0].UID == "" || p.Spec.TargetRef.Name != "acme" {
		t.Errorf("the policy is %+v", p.Spec)
	}
	if _, body = operator.visit(t, operator.actions+lift, nil); !strings.Contains(body, `"acme" lifts this hold already`) {
		t.Errorf("once more: %s", body)
	}
	for handler, want := range map[string]string{
		"rule.nope":    `there is no HookRule "nope"`,
		"volumes.nope": `there is no ExtensionConfig or ExtensionRollout "nope"`,
	} {
		if _, body = operator.visit(t, operator.actions+strings.Replace(lift, "volumes.acme", handler, 1), nil); !strings.Contains(html.UnescapeString(body), want) {
			t.Errorf("lacks %s: %s", want, body)
		}
	}
	create(t, c, &v1alpha1.HookRule{ObjectMeta: metav1.ObjectMeta{Name: "hours"}, Spec: v1alpha1.HookRuleSpec{
		Hook: "BeforeClusterUpgrade", Hold: []v1alpha1.HookRuleHold{{HookRuleDecision: v1alpha1.HookRuleDecision{If: "true", Message: "'no'"}}},
	}})
	_, body = operator.visit(t, operator.actions+"/lift?handler=rule.hours&hook=BeforeClusterUpgrade&cluster=team-a%2Fprod-1", nil)
	if code, body := operator.confirm(t, "lift", body); code != http.StatusOK || !strings.Contains(body, "Lifted: ") {
		t.Errorf("an operator lifts the hold of a rule: %d %s", code, body)
	}
	_, body = operator.visit(t, operator.actions+"/pause?rollout=acme", nil)
	if code, body := operator.confirm(t, "pause", body); code != http.StatusOK || !strings.Contains(body, "No more Clusters move") {
		t.Errorf("an operator pauses: %d %s", code, body)
	}
	spec.Paused = true
	r.spec(t, spec)
}
