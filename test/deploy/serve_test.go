// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// TestGatewayAcceptsTheArguments runs the gateway as the Pod would, with the mounted files but other ports.
func TestGatewayAcceptsTheArguments(t *testing.T) {
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
		pair := certificates.New(t)
		certs := map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM, "ca.crt": pair.CAPEM}
		if _, ok := flags(c)["--diagnostics-address"]; !ok {
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
		g := process.RunGateway(t, exec.Command(path, args...))
		if read := logged(t, g, "manifests read"); read["errors"] != 0.0 ||
			read["extensionConfigs"] != float64(manifests) || manifests == 0 {
			t.Errorf("the log says %v, want %d ExtensionConfigs and no errors", read, manifests)
		}
		resp, err := http.Get("http://127.0.0.1" + portOf(g.Health) + c.LivenessProbe.HTTPGet.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("liveness probe: %s, %v", resp.Status, err)
		}
	})
}

// logged waits for the first line of the gateway's log with a message, and returns its members.
func logged(t *testing.T, g *process.Gateway, message string) map[string]any {
	t.Helper()
	line := g.Expect(t, `(?m)^(\{.*"msg":"`+regexp.QuoteMeta(message)+`".*\})\n`)[1]
	var members map[string]any
	if err := json.Unmarshal([]byte(line), &members); err != nil {
		t.Fatalf("log line %s: %v", line, err)
	}
	return members
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// portOf returns the port of an address, with its colon.
func portOf(address string) string { return address[strings.LastIndexByte(address, ':'):] }
