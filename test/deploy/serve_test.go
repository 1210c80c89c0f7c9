// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/devcert"
)

// patience is how long a test waits for the gateway, and lifetime how long that runs at most.
const (
	patience = 30 * time.Second
	lifetime = 3 * time.Minute
)

// TestGatewayTakesTheArguments runs the gateway as the Pod would, with other ports, on what is mounted there.
func TestGatewayTakesTheArguments(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		path := program(t, gatewayVariable)
		c := container(t, one[*appsv1.Deployment](t, objects))
		configs := one[*corev1.ConfigMap](t, objects)
		mounts := map[string]string{}
		for _, m := range c.VolumeMounts {
			mounts[m.MountPath] = t.TempDir()
		}
		manifests := 0
		for name, text := range configs.Data {
			writeFile(t, filepath.Join(mounts["/etc/hookgate/extension-configs"], name), []byte(text))
			manifests += len(all[*runtimev1.ExtensionConfig](decode(t, "ConfigMap, "+name, []byte(text))))
		}
		pair, err := devcert.New(time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		certs := map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM}
		if _, ok := flags(c)["--diagnostics-address"]; ok {
			certs["ca.crt"] = pair.CAPEM
		} else {
			c.Args = append(c.Args, "--diagnostics-address=127.0.0.1:0")
		}
		for name, data := range certs {
			writeFile(t, filepath.Join(mounts["/etc/hookgate/certs"], name), data)
		}
		var args []string
		port := regexp.MustCompile(`=:\d+$`)
		for _, a := range c.Args {
			name, value, _ := strings.Cut(a, "=")
			if dir, ok := mounts[value]; ok {
				a = name + "=" + dir
			}
			args = append(args, port.ReplaceAllString(a, "=:0"))
		}
		g := start(t, path, args)
		if read := g.await(t, "manifests read"); read["errors"] != 0.0 || read["extensionConfigs"] != float64(manifests) || manifests == 0 {
			t.Errorf("the log says %v, want %d ExtensionConfigs and no errors", read, manifests)
		}
		resp, err := http.Get("http://127.0.0.1:" + g.healthPort + c.LivenessProbe.HTTPGet.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("liveness probe: %s, %v", resp.Status, err)
		}
	})
}

// gateway is a gateway that runs until the end of the test.
type gateway struct {
	cmd                         *exec.Cmd
	diagnosticsPort, healthPort string
	logs                        chan map[string]any
}

func start(t *testing.T, path string, args []string) *gateway {
	t.Helper()
	cmd := exec.Command(path, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(lifetime, func() { _ = cmd.Process.Kill() })
	g := &gateway{cmd: cmd, logs: make(chan map[string]any, 1000)}
	go func() {
		defer close(g.logs)
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			line := map[string]any{"msg": lines.Text()}
			if json.Valid(lines.Bytes()) {
				_ = json.Unmarshal(lines.Bytes(), &line) // it is valid
			}
			g.logs <- line
		}
	}()
	t.Cleanup(func() {
		killer.Stop()
		_ = cmd.Process.Kill() // it may have ended already
		for range g.logs {     // so that all is read before Wait closes the pipe
		}
		_ = cmd.Wait() // killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	m := regexp.MustCompile(`diagnostics=\S+:(\d+) health=\S+:(\d+)\n`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("%v printed %q, %v, and no address for health; its log: %v", args, line, err, <-g.logs)
	}
	g.diagnosticsPort, g.healthPort = m[1], m[2]
	return g
}

// stop ends the gateway as the kubelet does, and waits until it has.
func (g *gateway) stop(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range g.logs { // until it has ended
	}
}

// await returns the first line of the log with that message.
func (g *gateway) await(t *testing.T, message string) map[string]any {
	t.Helper()
	for line := range g.logs {
		if line["msg"] == message {
			return line
		}
	}
	t.Fatalf("the gateway ended, or was stopped after %s, without logging %q", lifetime, message)
	return nil
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
