// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
)

func TestIsPlugin(t *testing.T) {
	for program, want := range map[string]bool{
		"kubectl-hookgate": true, "/usr/local/bin/kubectl-hookgate": true, "kubectl-hookgate.exe": true,
		"hookgate": false, "/kubectl-hookgate/hookgate": false, "kubectl-hookgate2": false, "": false,
	} {
		if got := isPlugin(program); got != want {
			t.Errorf("%q: %t, want %t", program, got, want)
		}
	}
}

// plugin runs the program as kubectl does.
func plugin(t *testing.T, env map[string]string, args ...string) commandtest.Outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(t.Context(), "/bin/kubectl-hookgate", args, strings.NewReader(""), &out, &errOut, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	return commandtest.Outcome{Code: code, Out: out.String(), ErrOut: errOut.String()}
}

// TestPlugin checks that texts name the plug-in as one calls it, and that it means the gateway in the cluster, unless a
// flag names another one.
func TestPlugin(t *testing.T) {
	g := commandtest.NewClusterGateway(t, commandtest.AcmeManifest)
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	t.Setenv("KUBECONFIG", g.Kubeconfig)
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Help":        {[]string{"describe", "--help"}, cmdline.ExitDone, "kubectl hookgate describe EXTENSION"},
		"Example":     {[]string{"describe", "--help"}, cmdline.ExitDone, "  kubectl hookgate describe acme\n"},
		"Text":        {[]string{"call", "--help"}, cmdline.ExitDone, "kubectl hookgate call HOOK"},
		"Usage":       {[]string{"describe"}, cmdline.ExitUsage, `Run "kubectl hookgate describe --help" for help.`},
		"Version":     {[]string{"--version"}, cmdline.ExitDone, "kubectl hookgate "},
		"Cluster":     {[]string{"describe", "acme"}, cmdline.ExitDone, "acme"},
		"Extensions":  {[]string{"get", "extensions"}, cmdline.ExitDone, "acme"},
		"Context":     {[]string{"get", "holds", "--context", "other"}, cmdline.ExitDone, "of hookgate-system/a."},
		"Diagnostics": {[]string{"get", "extensions", "--diagnostics", s.URL}, cmdline.ExitDone, "other"},
		"Server":      {[]string{"call", "Discovery", "--server", "https://127.0.0.1:1"}, cmdline.ExitFailed, "server https://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plugin(t, nil, tt.args...)
			if got.Code != tt.code || !strings.Contains(got.Out+got.ErrOut, tt.want) {
				t.Errorf("exit status %d, want %d; want %q\n%s%s", got.Code, tt.code, tt.want, got.Out, got.ErrOut)
			}
			if strings.Contains(strings.ReplaceAll(got.Out, "kubectl hookgate ", ""), "  hookgate ") {
				t.Errorf("the help names the program otherwise:\n%s", got.Out)
			}
		})
	}
}

// replicaOf serves a status over HTTPS, with a certificate that nobody trusts, to those with the token of the viewer.
func replicaOf(t *testing.T, g *status.Gateway) map[string]string {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-viewer" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		answer := *g
		if !r.URL.Query().Has(status.ReleasedQuery) {
			answer.Released = nil
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return map[string]string{"8443": s.Listener.Addr().String()}
}

// TestPluginWithAKubeconfigAlone checks that a kubeconfig is enough for the gateway that deploy/ installs, whose
// diagnostics are not on loopback, and what its two replicas know together.
func TestPluginWithAKubeconfigAlone(t *testing.T) {
	one, other := commandtest.GatewayStatus(), commandtest.GatewayStatus()
	one.Holds[1].Message = "an older answer"
	one.Holds[1].Last = one.Holds[1].Last.Add(-time.Second)
	released := one.Holds[0]
	other.Holds = other.Holds[1:]
	other.Released = []status.Release{{
		Namespace: released.Namespace, Cluster: released.Cluster, Hook: released.Hook, Handler: released.Handler, At: released.Last.Add(time.Second),
	}}
	server := func(forbid ...string) *tunneltest.Server {
		s := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour, "--diagnostics-address=:8443"),
			tunneltest.Pod("hookgate-system", "b", true, time.Minute, "--diagnostics-address=:8443"))
		s.PortsOf = map[string]map[string]string{"a": replicaOf(t, one), "b": replicaOf(t, other)}
		s.Tokens, s.Forbid = map[string]string{"hookgate-system/hookgate-viewer": "of-viewer"}, map[string]bool{}
		for _, resource := range forbid {
			s.Forbid[resource] = true
		}
		return s
	}
	installed, withoutAccount, ended := server(), server(), server()
	withoutAccount.Tokens = nil
	delete(ended.PortsOf, "b")
	const others = "This is what hookgate-system/a knows; --gateway hookgate-system/POD queries another replica: b.\n"
	for name, tt := range map[string]struct {
		server      *tunneltest.Server
		args        []string
		code        int
		out, errOut string
		not         string
	}{
		"Extensions": {installed, []string{"get", "extensions", "--context", "management"}, cmdline.ExitDone, "acme", others, ""},
		"Pod":        {installed, []string{"get", "extensions", "--gateway", "hookgate-system/b"}, cmdline.ExitDone, "acme", "", others},
		"Holds":      {installed, []string{"get", "holds"}, cmdline.ExitDone, "team-b", "", "team-a"},
		"Newest":     {installed, []string{"get", "holds", "-o", "json"}, cmdline.ExitDone, `"message": "no"`, "", "an older answer"},
		"OneReplica": {ended, []string{"get", "holds"}, cmdline.ExitDone, "team-a", "A replica is left out: cluster: nothing listens on port 8443 of Pod b", ""},
		"NoRight": {server("serviceaccounts/token"), []string{"get", "holds"}, cmdline.ExitFailed, "",
			"cluster: you may not create serviceaccounts/token hookgate-viewer in namespace hookgate-system\nYou need the Role hookgate-viewer", ""},
		"NoAccount": {withoutAccount, []string{"get", "extensions"}, cmdline.ExitFailed, "", "HTTP 401: Unauthorized\nUse --token-file FILE", ""},
		"Untrusted": {installed, []string{"get", "extensions", "--token", "of-the-user"}, cmdline.ExitFailed, "", "Use --ca FILE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.server.Kubeconfig(t, "management"))
			got := plugin(t, nil, tt.args...)
			if got.Code != tt.code || !strings.Contains(got.Out, tt.out) || !strings.Contains(got.ErrOut, tt.errOut) ||
				tt.not != "" && strings.Contains(got.Out+got.ErrOut, tt.not) {
				t.Errorf("exit status %d, want %d; want %q and %q, and not %q\n%s%s", got.Code, tt.code, tt.out, tt.errOut, tt.not, got.Out, got.ErrOut)
			}
		})
	}
}
