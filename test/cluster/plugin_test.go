// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// TestPlugin runs the plug-in of kubectl with nothing but a kubeconfig.
func TestPlugin(t *testing.T) {
	hub(t)
	p := newPlugin(t)
	for command, want := range map[string]string{"get extensions": "acme", "get holds": ""} {
		p.expect(t, command, want)
	}
}

// TestPluginCommands runs each command about a gateway, but for those about machines and the infrastructure provider,
// which TestMachines and TestInfrastructureProvider run, and callers, which TestClusterctl runs.
func TestPluginCommands(t *testing.T) {
	all(t)
	p := newPlugin(t)
	applyFile(t, "jobs.yaml")
	applyFile(t, "plugin.yaml")
	t.Cleanup(func() {
		kubectl(t, "delete", "extensionrollouts.hookgate.dev", "acme-v1", "--ignore-not-found")
		kubectl(t, "delete", "-f", node.file("plugin.yaml"))
	})
	kubectl(t, "wait", "extensionconfigs.runtime.hookgate.dev", "--all", "--for=condition=Discovered", "--timeout=60s")
	answers(t, "BeforeClusterUpgrade", "upgrade.yaml", "backed up")
	for key, file := range map[string]string{"ca.crt": "ca", "tls.crt": "cert", "tls.key": "key"} {
		p.write(t, file, kubectl(t, "-n", "callers", "get", "secret", "client", "-o", "go-template={{index .data \""+key+"\" | base64decode}}"))
	}
	p.write(t, "token", kubectl(t, "-n", "callers", "create", "token", "default"))
	p.write(t, "approved.test.yaml", `apiVersion: hookgate.dev/v1alpha1
kind: HandlerChainTest
metadata: {name: approvals}
spec:
  hook: BeforeClusterCreate
  chain: approvals
  cases:
  - name: approved
    given: {request: {cluster: {metadata: {annotations: {example.com/approved-by: me}}}}}
    want: {message: Cluster default/cluster is approved by me}
`)
	request := filepath.Join(root(t), "examples", "requests", "before-cluster-create-approved.yaml")
	const caller = " --ca ca --cert cert --key key"
	for _, step := range []struct{ command, want string }{
		{"get extensions", "acme"},
		{"get extensions --context test", "acme"},
		{"get handlers", "approval.acme"},
		{"get rules", ""},
		{"get jobs", "backup"},
		{"get chains", "approvals"},
		{"get policies", ""},
		{"get holds -o json", "{"},
		{"get routes default/c1", "approval.acme"},
		{"describe acme", "approval"},
		{"describe job backup", "BeforeClusterUpgrade"},
		{"preflight --for cluster-api=v1.14.0", "acme"},
		{"bug-report -f report.zip", ""},
		{"rule rbac", "no HookRule has params"},
		{"call BeforeClusterCreate -f " + request + caller, "Success"},
		{"explain BeforeClusterCreate -f " + request + caller, "approval.acme"},
		{"chain test approved.test.yaml" + caller, "ok"},
		{"job forget backup --cluster default/c1", "of Cluster default/c1 removed"},
		{"job rerun backup --cluster default/c1", "is deleted"},
		{"rollout adopt acme-v1 --extension-config-group runtime.hookgate.dev --candidate acme-v2", "is created"},
		{"describe rollout acme-v1", "acme-v2"},
		{"get rollouts", "acme-v1"},
		{"rollout approve acme-v1 --all --yes", "Approved."},
		{"rollout pause acme-v1", "No more Clusters move"},
		{"rollout resume acme-v1", "Clusters that are allowed to move will move again"},
		{"rollout undo acme-v1 --yes", "No Cluster has moved."},
		{"rollout promote acme-v1 --yes --force", "acme-v2 is stable"},
	} {
		p.expect(t, step.command, step.want)
	}
	if out, err := p.run(t, "get extensions --gateway absent"); err == nil || !strings.Contains(out, "namespace absent has no gateway Pod") {
		t.Errorf("the gateway of another namespace: %v\n%s", err, out)
	}

	end := load(t, 20, 10*time.Second)
	p.expect(t, "record approval.acme --for 3s -f calls.jsonl --ca ca --token-file token", "0 dropped")
	end()
	p.expect(t, "replay calls.jsonl --all-hooks"+caller, " equal, 0 different")

	dashboard := p.command(t, "dashboard --browser=false")
	out, err := dashboard.StdoutPipe()
	if err == nil {
		err = dashboard.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dashboard.Wait() }) // which the context of the test has ended
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(strings.TrimSpace(url))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if page, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(page), "</html>") {
		t.Errorf("the page: %v %.300s", err, page)
	}
}

// plugin is a folder in which hookgate is the plug-in of kubectl.
type plugin struct{ dir string }

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{dir: t.TempDir()}
	if err := os.Symlink(process.Program(t, "HOOKGATE_BIN"), filepath.Join(p.dir, "kubectl-hookgate")); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plugin) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command is a command of the plug-in, in that folder.
func (p *plugin) command(t *testing.T, command string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(assets(), "kubectl"), strings.Fields("hookgate "+command)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+node.kubeconfig, "HOME="+p.dir, "PATH="+p.dir+":"+os.Getenv("PATH"))
	return cmd
}

func (p *plugin) run(t *testing.T, command string) (string, error) {
	t.Helper()
	out, err := p.command(t, command).CombinedOutput()
	return string(out), err
}

// expect runs a command that succeeds, and expects a text of what it says. What only shows something is run until the
// gateway has seen what was done.
func (p *plugin) expect(t *testing.T, command, want string) {
	t.Helper()
	if strings.HasPrefix(command, "get ") || strings.HasPrefix(command, "describe ") {
		process.EventuallySees(t, process.Patience, command+" shows "+want, func() (string, bool) {
			out, err := p.run(t, command)
			return fmt.Sprint(err, out), err == nil && strings.Contains(out, want)
		})
		return
	}
	if out, err := p.run(t, command); err != nil || !strings.Contains(out, want) {
		t.Errorf("%s: %v, want %q\n%s", command, err, want, out)
	}
}
