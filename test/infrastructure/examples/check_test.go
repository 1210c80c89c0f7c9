// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
	"github.com/hookgate/hookgate/test/process"
)

// initData is the bootstrap data of a machine that initializes the cluster of its network, wherever that is.
const initData = "init"

// initializing gives machines with initData what they boot with: a caller that makes a network and a machine in one go,
// as hookgate check does, cannot know the endpoint before.
func initializing(t *testing.T, next http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var spec api.MachineSpec
		if err == nil && json.Unmarshal(body, &spec) == nil && spec.Bootstrap != nil && string(spec.Bootstrap.Data) == initData {
			var network api.Network
			client := &api.Client{URL: "http://" + r.Host, Token: cloudToken}
			err = client.Do(r.Context(), http.MethodGet, "/networks/"+spec.Network, nil, &network)
			if err == nil && network.Endpoint != nil {
				spec.ControlPlane = true
				spec.Bootstrap.Data = newBootstrap(t, &infrastructurev1alpha1.Endpoint{
					Host: network.Endpoint.Host, Port: network.Endpoint.Port,
				})
				body, err = json.Marshal(spec)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// TestCheck has hookgate check make infrastructure with every example: none breaks a rule, and nothing is left.
func TestCheck(t *testing.T) {
	worlds := map[string]func(*testing.T) *fixture{"jobs": func(t *testing.T) *fixture { t.Helper(); return newJobs(t).fixture }}
	for name, x := range extensions {
		worlds[name] = func(t *testing.T) *fixture { t.Helper(); return newFixture(t, x) }
	}
	for name, start := range worlds {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			file := filepath.Join(t.TempDir(), "infrastructure.yaml")
			text := "version: " + version + "\nbootstrap: " + initData + "\nwaitSeconds: 60\n" +
				"machine: {size: large}\ncredentials: {token: " + cloudToken + "}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			scheme := "https://"
			if strings.Contains(extensions[name].policy, "GRPC") {
				scheme = "grpcs://"
			}
			check := exec.CommandContext(w.soon(), process.Program(t, "HOOKGATE_BIN"), "check", scheme+w.address,
				"--ca", w.ca, "--only", "infrastructure", "--infrastructure", file, "-v")
			output, err := check.CombinedOutput()
			if err != nil || !strings.Contains(string(output), "pass  infrastructure.ready") {
				t.Errorf("%v\n%s", err, output)
			}
			w.checkMachines(0, 1)
			if networks := w.counts().Networks; networks.Exist != 0 || networks.Created != 1 {
				t.Errorf("networks: %+v", networks)
			}
		})
	}
}
